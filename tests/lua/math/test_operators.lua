-- What goes with every elementwise operation: operators, broadcasting, types,
-- in-place forms, out=, overlapping operands.
local lu = require "luaunit"
local t = require "common"
local formulas = require "math.formulas"
local unary, binary = formulas.unary, formulas.binary
local equals, raises, places, nan = t.equals, t.raises, t.places, t.nan

TestOperators = {}

function TestOperators:test_each_is_its_function()
    local A, B = mat{{7, -7}, {2, 0.5}}, mat{{2, 2}, {-4, 3}}
    equals(A + B, add(A, B):totable())
    equals(A - B, sub(A, B):totable())
    equals(A % B, mul(A, B):totable())
    equals(A / B, div(A, B):totable())
    equals(A // B, idiv(A, B):totable())
    equals(-A, neg(A):totable())
    equals(A % 3, {{1, 2}, {2, 0.5}})
    equals(3 % B, {{1, 1}, {-1, 0}})
    equals(A * 2, {{14, -14}, {4, 1}})
    equals(2 * A, {{14, -14}, {4, 1}})
    equals(1 - B, {{-1, -1}, {5, -2}})
    equals(1 / B, {{0.5, 0.5}, {-0.25, t.single(1 / 3)}})
    equals(A + 1, {{8, -6}, {3, 1.5}})
    equals(7 // B, {{3, 3}, {-2, 2}})
end

function TestOperators:test_masks_combine()
    local x = range(1, 6)
    equals(x:gt(2) & x:lt(5), {false, false, true, true, false, false})
    equals(x:lt(2) | x:gt(5), {true, false, false, false, false, true})
    equals(x:gt(2) ~ x:gt(4), {false, false, true, true, false, false})
    equals(~x:gt(2), {true, true, false, false, false, false})
end

function TestOperators:test_equality_is_one_boolean()
    local A = mat{{1, 2}, {3, 4}}
    lu.assertIsTrue(A == mat{{1, 2}, {3, 4}})
    lu.assertIsTrue(A == A:f64())
    lu.assertIsTrue(A.T.T == A:clone())
    lu.assertIsFalse(A == mat{{1, 2}, {3, 5}})
    lu.assertIsFalse(A == mat{{1, 2}})
    lu.assertIsFalse(vec{1, 2} == mat{{1, 2}})
    lu.assertIsFalse(vec{1, nan} == vec{1, nan})
    lu.assertIsFalse(A == 1)
    lu.assertIsFalse(A == nil)
    lu.assertIsTrue(A ~= A.T)
    lu.assertIsTrue(zeros(0, 3) == ones(0, 3))
    lu.assertIsTrue(vec{0} == vec{-0.0})
end

function TestOperators:test_concat()
    equals(mat{{1}, {2}} .. mat{{3}, {4}}, {{1, 3}, {2, 4}})
    lu.assertStrContains("A: " .. ones(2, 3), "2x3")
    lu.assertStrContains(vec{1} .. "!", "vector 1")
    raises(function() return ones(2) .. {} end, "table")
end

TestShapes = {}

function TestShapes:test_rows_and_columns_are_broadcast()
    local A = places(2, 3)
    equals(A + mat{{100, 200, 300}}, {{111, 212, 313}, {121, 222, 323}})
    equals(mat{{100}, {200}} + A, {{111, 112, 113}, {221, 222, 223}})
    equals(mat{{1}, {2}} + mat{{10, 20, 30}}, {{11, 21, 31}, {12, 22, 32}})
    equals(A - mat{{10}}, {{1, 2, 3}, {11, 12, 13}})
    equals(where(mat{{true, false, true}}, A, mat{{-1}, {-2}}),
        {{11, -1, 13}, {21, -2, 23}})
    equals(clip(A, mat{{12}, {22}}, 22), {{12, 12, 13}, {22, 22, 22}})
    lu.assertEquals((zeros(0, 3) + ones(1, 3)).shape, {0, 3})
    lu.assertEquals((zeros(0, 3) + 1).shape, {0, 3})
end

function TestShapes:test_a_vector_never_broadcasts()
    local A, v = ones(2, 3), vec{1, 2, 3}
    raises(function() return A + v end, "2x3", "vector 3", "v:row()")
    raises(function() return v - A end, "2x3", "vector 3")
    raises(function() return v + vec{1} end, "vector 3", "vector 1")
    raises(function() return v % vec{1, 2} end, "vector 3", "vector 2")
    raises(function() return add(v, mat{{1}}) end, "vector 3", "1x1")
    equals(A + v:row(), {{2, 3, 4}, {2, 3, 4}})
    equals(ones(3, 2) + v:col(), {{2, 2}, {3, 3}, {4, 4}})
end

function TestShapes:test_errors_name_operands_shapes_and_what_fits()
    local tall, wide_one = ones(3, 2), ones(2, 3)
    local message = raises(function()
        local P, Q = tall, wide_one
        return P + Q
    end, "add", "P is 3x2", "Q is 2x3", "Q.T would fit")
    lu.assertStrContains(message, "test_operators.lua:")
    raises(function() return tall / ones(4, 4) end, "div", "3x2", "4x4")
    raises(function() return maximum(tall, ones(2, 2)) end, "maximum")
    raises(function() return where(tall, wide_one, 0) end, "where")
end

function TestShapes:test_wrong_operands_are_named()
    local A = ones(2, 2)
    raises(function() return A + {} end, "A + B: B is a table, expected a matrix or a number")
    raises(function() return A - "1" end, "A - B: B is \"1\", expected a matrix or a number")
    raises(function() return nil / A end, "B / A: B is nil, expected a matrix or a number")
    raises(function() return "x" * A end, "test_operators.lua:",
        "B * A: B is \"x\", expected a matrix or a number")
    raises(function() return sqrt("4") end, 'sqrt: A is "4", expected a matrix, a number')
    raises(function() return add(A) end, "add: B is missing, expected a matrix")
    raises(function() return sqrt() end, "sqrt: A is missing, expected a matrix")
    raises(function() return add(A, 1, {ot = A}) end, "'ot'", "'out'")
    raises(function() return add(A, 1, {out = 3}) end, "out is 3, expected a matrix")
    raises(function() return add(A, 1, 3) end, "add: 3 arguments are too many",
        "{out=, device=}")
end

TestClose = {}

-- An infinity is close to itself alone, on whatever side it stands.
function TestClose:test_infinities_and_nan()
    local inf, nan = math.huge, 0 / 0
    for _, dtype in ipairs{"f32", "f64"} do
        for _, p in ipairs{{5, inf}, {inf, 5}, {-inf, inf}, {inf, -inf}, {nan, inf},
            {inf, nan}, {5, nan}, {nan, 5}} do
            for _, tolerance in ipairs{0, 1e-5, 10, inf} do
                local x, y = p[1], p[2]
                lu.assertFalse(close(x, y, tolerance))
                lu.assertFalse(close(vec({1, x}, {dtype = dtype}),
                    vec({1, y}, {dtype = dtype}), tolerance))
            end
        end
        for _, x in ipairs{inf, -inf, nan, 0, 1e30} do
            lu.assertTrue(close(x, x))
            lu.assertTrue(close(vec({x, 1}, {dtype = dtype}),
                vec({x, 1}, {dtype = dtype}), 0))
        end
    end
    lu.assertTrue(close(1e308, -1e308, 2))
    lu.assertFalse(close(1.7e308, -1.7e308))
    lu.assertTrue(close(vec{1, 2}, vec{1, 2.000001}))
    lu.assertFalse(close(vec{1, 2}, vec{1, 2.0001}))
    lu.assertTrue(close(1000000, 1000001))
end

TestTypes = {}

function TestTypes:test_the_wider_type_wins()
    local s, d, b = vec{1.5}, vec({0.1}, {dtype = "f64"}), vec{true}
    lu.assertEquals((s + s).dtype, "f32")
    lu.assertEquals((s + d).dtype, "f64")
    lu.assertEquals((d + b).dtype, "f64")
    lu.assertEquals((s + b).dtype, "f32")
    lu.assertEquals((b + b).dtype, "f32")
    lu.assertEquals((b + 0.1).dtype, "f32")
    lu.assertEquals((d * 2).dtype, "f64")
    lu.assertEquals(s:lt(d).dtype, "bool")
    equals(s + d, {1.6})
    equals(b + b, {2})
    equals(s + 0.1, {t.single(1.5 + t.single(0.1))})
end

-- Of many elements and of what is left over, at each place.
function TestTypes:test_every_comparison_of_many_elements()
    local compare = {lt = function(x, y) return x < y end,
        le = function(x, y) return x <= y end,
        gt = function(x, y) return x > y end,
        ge = function(x, y) return x >= y end,
        eq = function(x, y) return x == y end,
        ne = function(x, y) return x ~= y end}
    for _, dtype in ipairs{"f32", "f64"} do
        local x = randint(0, 3, 999, {dtype = dtype, seed = 1})
        local y = randint(0, 3, 999, {dtype = dtype, seed = 2})
        x[x:eq(3)] = t.nan
        y[y:eq(0)] = -t.inf
        for _, n in ipairs{1, 31, 32, 33, 64, 999} do
            local a, b = x[{{1, n}}]:totable(), y[{{1, n}}]:totable()
            for name, holds in pairs(compare) do
                local expected = {}
                for i = 1, n do expected[i] = holds(a[i], b[i]) end
                lu.assertEquals(_G[name](x[{{1, n}}], y[{{1, n}}]):totable(),
                    expected)
            end
        end
    end
end

function TestTypes:test_f32_is_compared_with_f64_exactly()
    lu.assertIsFalse(vec{0.1} == vec({0.1}, {dtype = "f64"}))
    lu.assertIsTrue(vec{0.1} == vec({t.single(0.1)}, {dtype = "f64"}))
end

TestInPlace = {}

function TestInPlace:test_every_form_writes_and_returns_the_matrix()
    for name, entry in pairs(unary) do
        if entry[2] then
            local A = mat{{0.5, 0.25}, {0.75, 0.125}}
            local expected = _G[name](A):totable()
            lu.assertIsTrue(rawequal(A[name .. "_"](A), A), name)
            equals(A, expected, name)
        end
    end
    for name, entry in pairs(binary) do
        if entry[2] then
            local A, B = mat{{5, 6}, {7, 8}}, mat{{2, 3}, {4, 5}}
            local expected = _G[name](A, B):totable()
            A[name .. "_"](A, B)
            equals(A, expected, name)
        end
    end
    local A = range(1, 4)
    A:clip_(2, 3)
    equals(A, {2, 2, 3, 3})
end

function TestInPlace:test_overlapping_operands_act_as_copies()
    for _, n in ipairs{2, 3, 65} do
        local A = places(n, n)
        local expected = A + A.T:clone()
        A:add_(A.T)
        equals(A, expected:totable(), "A + A.T")
        local B = places(n, n)
        expected = B - B:flip():clone()
        B:sub_(B:flip())
        equals(B, expected:totable(), "A - flip")
        local C = places(n, n)
        expected = C % C["1:1,:"]:clone()
        C:mul_(C["1:1,:"])
        equals(C, expected:totable(), "A % row")
        local D = places(n, n)
        expected = D["1:end-1,:"] + D["2:end,:"]
        D["2:end,:"]:add_(D["1:end-1,:"])
        equals(D["2:end,:"], expected:totable(), "shifted")
    end
end

function TestInPlace:test_the_type_of_the_matrix_stays()
    local A = vec{1, 2}
    A:add_(vec({0.1, 0.2}, {dtype = "f64"}))
    lu.assertEquals(A.dtype, "f32")
    equals(A, {t.single(1.1), t.single(2.2)})
end

function TestInPlace:test_the_shape_of_the_matrix_stays()
    local row = mat{{1, 2}}
    raises(function() row:add_(ones(3, 2)) end, "3x2", "1x2")
    raises(function() row:add_(vec{1, 2}) end, "vector")
    row:add_(1)
    equals(row, {{2, 3}})
end

function TestInPlace:test_out()
    local A, B, out = vec{1, 2}, vec{3, 4}, zeros(2)
    lu.assertIsTrue(rawequal(add(A, B, {out = out}), out))
    equals(out, {4, 6})
    sqrt(vec{4, 9}, {out = out})
    equals(out, {2, 3})
    lt(A, 2, {out = out})
    equals(out, {1, 0})
    local C = zeros(3, 3)
    add(ones(3, 3), 1, {out = C.T})
    clip(C, 0, 1, {out = C})
    equals(C, ones(3, 3):totable())
    raises(function() add(A, B, {out = zeros(3)}) end, "2", "3")
    raises(function() add(A, B, {out = zeros(2, 1)}) end, "out")
end

TestDevices = {}

function TestDevices:test_broadcasts_and_views_agree()
    for _, dtype in ipairs{"f32", "f64"} do
        t.agrees(function()
            local A = rand(33, 65, {seed = 1, dtype = dtype})
            local c = rand(33, 1, {seed = 2, dtype = dtype})
            local r = rand(1, 65, {seed = 3, dtype = dtype})
            return A + c, c - r, A["::-2,:"] % r, (A / c).T + A.T["::1,::-1"],
                where(A:gt(0.5), c, r)
        end, dtype)
    end
end

function TestDevices:test_operands_on_two_devices_name_the_fix()
    if not t.on_gpu then lu.skip("needs a GPU") end
    local A, B = ones(2, 2), ones(2, 2, {device = "cpu"})
    raises(function() return A + B end, "cpu", "cuda", ":to(")
    equals(A:to("cpu") + B, {{2, 2}, {2, 2}})
end

os.exit(lu.LuaUnit.run("-o", "tap"))
