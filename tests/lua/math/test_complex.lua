-- Complex numbers and matrices: every operation on matrices of any layout is
-- compared with the same on single numbers, and those with their definitions.
local lu = require "luaunit"
local t = require "common"
local pi, huge = math.pi, math.huge
local nan = 0 / 0

-- Two numbers that are equal, or NaN both.
local function same(x, y) return x == y or (x ~= x and y ~= y) end

local function check_number(z, re, im, what)
    lu.assertTrue(same(real(z), re) and same(imag(z), im),
        ("%s: %s, expected %s + %si"):format(what or "", z, re, im))
end

-- Is x within so many units in the last place of the larger part of y?
local function is_near(x, y, eps)
    local re, i = math.abs(real(y)), math.abs(imag(y))
    local size = math.max(re < huge and re or 0, i < huge and i or 0)
    local function near(a, b)
        return same(a, b) or math.abs(a - b) <= eps * size
    end
    return near(real(x), real(y)) and near(imag(x), imag(y))
end

TestNumbers = {}

function TestNumbers:test_arithmetic()
    check_number(im * im, -1, 0)
    check_number((3 + 2 * im) * (1 - im), 5, -1)
    check_number((1 + im) / (1 - im), 0, 1)
    check_number(-(1 - 2 * im), -1, 2)
    check_number(2 - im, 2, -1)
    check_number(im - 2, -2, 1)
    check_number((1 + im) ^ 2, 0, 2)
    check_number((2 + im) ^ -1, 0.4, -0.2)
    lu.assertTrue(is_near(2 ^ im, complex(math.cos(math.log(2)),
        math.sin(math.log(2))), 1e-15))
    check_number(im ^ 0, 1, 0)
    check_number(true + im, 1, 1)
end

function TestNumbers:test_a_real_operand_has_no_imaginary_part()
    check_number(2 * complex(huge, 1), huge, 2)
    check_number(huge * complex(1, 2), huge, huge)
    check_number(complex(huge, -huge) / 2, huge, -huge)
    check_number(complex(1, -0.0) + 1, 2, 0)
    lu.assertEquals(1 / imag(complex(1, -0.0) + 1), -huge)
end

function TestNumbers:test_quotients_stay_in_range()
    check_number(complex(1e300, 1e300) / complex(1e300, 1e300), 1, 0)
    check_number(complex(1e-300, 0) / complex(1e-300, 1e-300), 0.5, -0.5)
    check_number(complex(1, 1) / complex(huge, 0), 0, 0)
end

function TestNumbers:test_fields_and_functions()
    local z = complex(3, -4)
    lu.assertEquals({z.real, z.imag}, {3, -4})
    lu.assertEquals({abs(z), real(z), imag(z)}, {5, 3, -4})
    lu.assertEquals(angle(im), pi / 2)
    lu.assertEquals(angle(complex(-1, -0.0)), -pi)
    check_number(conj(z), 3, 4)
    check_number(z:conj(), 3, 4)
    lu.assertEquals(z:abs(), 5)
    check_number(sqrt(complex(-1)), 0, 1)
    check_number(sqrt(complex(-4, -0.0)), 0, -2)
    check_number(log(complex(-1)), 0, pi)
    check_number(log(complex(8), 2), 3, 0)
    check_number(sign(complex(3, 4)), 0.6, 0.8)
    check_number(sign(complex(0, 0)), 0, 0)
    lu.assertTrue(is_near(exp(pi * im), complex(-1, 0), 1e-15))
    lu.assertEquals({real(3), imag(3), conj(3), angle(-3)}, {3, 0, 3, pi})
    t.raises(function() return z.size end, "has no 'size'")
    t.raises(function() z.real = 1 end, "does not change")
end

function TestNumbers:test_small_differences_are_kept()
    lu.assertTrue(is_near(log1p(complex(1e-20, 1e-18)), complex(1e-20, 1e-18),
        1e-15))
    lu.assertTrue(is_near(expm1(complex(1e-20, 0)), complex(1e-20, 0), 1e-15))
    lu.assertTrue(is_near(exp2(complex(3, 0)), complex(8, 0), 0))
    lu.assertTrue(is_near(complex(2, 3) ^ 5, complex(122, -597), 0))
end

function TestNumbers:test_equality_is_all_the_order_there_is()
    lu.assertTrue(complex(1, 2) == complex(1, 2))
    lu.assertFalse(complex(1, 2) == complex(1, -2))
    lu.assertFalse(complex(1, 0) == 1)
    lu.assertTrue(eq(complex(1, 0), 1))
    lu.assertTrue(ne(im, 1))
    t.raises(function() return im < im end, "no order")
    t.raises(function() lt(im, 1) end, "lt: complex numbers have no order")
    t.raises(function() maximum(im, 1) end, "maximum: complex")
    t.raises(function() floor(im) end, "floor: is of real numbers")
    lu.assertTrue(round(1.26 * im, 1) == 1.3 * im)
end

function TestNumbers:test_texts()
    lu.assertEquals(tostring(3 - 4 * im), "3 - 4i")
    lu.assertEquals(tostring(complex(-0.0, -0.0)), "-0 - 0i")
    lu.assertEquals(tostring(complex(huge, nan)), "Inf + NaNi")
    lu.assertEquals(tostring(complex(0.1, 1e-20)), "0.1 + 1e-20i")
end

TestMaking = {}

function TestMaking:test_types()
    lu.assertEquals(complex(rand(2, 2), 1).dtype, "c64")
    lu.assertEquals(complex(1, rand(2, {dtype = "f64"})).dtype, "c128")
    lu.assertEquals(complex(vec{1, 2}, {dtype = "c128"}).dtype, "c128")
    lu.assertEquals(complex(vec{true, false}).dtype, "c64")
    lu.assertEquals(mat{{1, im}}.dtype, "c64")
    lu.assertEquals(vec({1, im}, {dtype = "c128"}).dtype, "c128")
    lu.assertEquals(full(2, im).dtype, "c64")
    lu.assertEquals((vec{1, 2} * im).dtype, "c64")
    lu.assertEquals((vec({1}, {dtype = "f64"}) * im).dtype, "c128")
    lu.assertEquals((vec{im} + vec({1}, {dtype = "f64"})).dtype, "c128")
    lu.assertEquals((vec{im} + 0.1).dtype, "c64")
    lu.assertEquals(abs(vec{im}).dtype, "f32")
    lu.assertEquals(real(vec{im}:c128()).dtype, "f64")
    lu.assertEquals(eq(vec{im}, im).dtype, "bool")
    lu.assertEquals(sum(mat{{im, 1}}, 1).dtype, "c64")
end

function TestMaking:test_values()
    local Z = complex(mat{{1, 2}, {3, 4}}, vec{5, 6}:row())
    lu.assertTrue(Z == mat{{1 + 5 * im, 2 + 6 * im}, {3 + 5 * im, 4 + 6 * im}})
    lu.assertTrue(zeros(2, 2, {dtype = "c64"}) == mat{{0 * im, 0}, {0, 0}})
    lu.assertTrue(eye(2, {dtype = "c128"}) ==
        mat({{1, 0}, {0, 1}}, {dtype = "c128"}))
    lu.assertTrue(range(1, 3, {dtype = "c64"}) == vec({1, 2, 3},
        {dtype = "c64"}))
    lu.assertTrue(Z:totable()[2][1] == 3 + 5 * im)
end

function TestMaking:test_random_numbers()
    for _, dtype in ipairs{"c64", "c128"} do
        local Z = randn(200, 200, {dtype = dtype, seed = 3})
        lu.assertAlmostEquals(std(Z), 1, 0.02)
        lu.assertAlmostEquals(std(real(Z)), math.sqrt(0.5), 0.02)
        lu.assertAlmostEquals(abs(mean(Z)), 0, 0.02)
        local U = rand(100, 100, {dtype = dtype, seed = 3, low = -1})
        lu.assertTrue(all(real(U):ge(-1)) and all(imag(U):lt(1)))
        lu.assertAlmostEquals(mean(real(U) % imag(U)), 0, 0.02)
    end
    t.raises(function() randint(1, 2, 3, {dtype = "c64"}) end, "randint")
end

function TestMaking:test_what_is_refused()
    t.raises(function() complex(vec{im}, 1) end, "complex")
    t.raises(function()
        return vec({im}, {dtype = "f32"})
    end, "does not go into a matrix of f32")
    local A, Z = rand(2, 2), mat{{im, 1}, {2, 3}}
    t.raises(function() return Z:f32() end, "f32: is of real numbers",
        "real(A)")
    t.raises(function() return f64(Z) end, "f64: is of real numbers")
    for _, name in ipairs{"sort", "argsort", "sortrows", "tiedrank"} do
        t.raises(function() return _G[name](Z) end,
            name .. ": complex numbers have no order")
    end
    t.raises(function() A[{1, 1}] = im end, "complex")
    t.raises(function() A[1] = Z[1] end, "complex")
    t.raises(function() A:add_(Z) end, "complex")
    t.raises(function() add(A, Z, {out = A}) end, "complex")
    t.raises(function() A[vec{1, 2}] = Z end, "complex")
    for _, f in ipairs{"sort", "argmax", "max", "median", "floor", "erf",
        "sparse", "hist", "cummax"} do
        if _G[f] then
            t.raises(function() return _G[f](Z, Z) end)
        end
    end
    t.raises(function() return sort(Z) end, "no order")
    t.raises(function() max(Z) end, "max: complex numbers have no order")
    t.raises(function() map(Z, function(x) return x end) end, "map: is of real")
    t.raises(function() return im % Z end, "no remainder", "z * A")
    t.raises(function() return Z % 3 end, "no remainder")
    t.raises(function() return A[vec{im}] end, "whole numbers")
end

-- --- matrices of every layout against numbers ---------------------------------

TestEvery = {}

local cases = tonumber(os.getenv "LUMAT_CASES") or 120

local special = {0, -0.0, 1, -1, 0.5, huge, -huge, nan, 2, 3}

local function some_part()
    if math.random() < 0.1 then return special[math.random(#special)] end
    return (math.random() - 0.5) * 10 ^ math.random(-2, 2)
end

local types = {"c64", "c128", "f32", "f64", "bool"}

-- A matrix, at times a view: transposed, conjugated, every other row, part of
-- a larger one, a repeated row.
local function some_matrix(rows, cols, dtype, is_tame)
    local list = {}
    local turned = math.random(2) == 1
    local m, n = rows, cols
    if turned then m, n = n, m end
    local step, more = math.random(2), math.random(0, 2)
    for i = 1, m * step do
        list[i] = {}
        for j = 1, n + more do
            local x, y = some_part(), some_part()
            if is_tame then
                x, y = math.random(-4, 4), math.random(-4, 4)
            end
            list[i][j] = dtype:find "^c" and complex(x, y) or
                dtype == "bool" and x > 0 or x
        end
    end
    local A = mat(list, {dtype = dtype})
    if step == 2 or more > 0 then
        A = A[{{1, m * step, step}, {1 + more // 2, more // 2 + n}}]
    end
    if turned then A = math.random(2) == 1 and A.T or A.H end
    if math.random(4) == 1 then A = A.T.H end
    return A
end

local function is_matrix(x) return getmetatable(x) == "matrix" end

local function element(A, i, j)
    return A(A.rows == 1 and 1 or i, A.cols == 1 and 1 or j)
end

local wide = {c64 = false, f32 = false, bool = false, c128 = true, f64 = true}

-- R = f of the operands, element by element, matrices and numbers, of which
-- the elements are rounded to R's type.
local function check_elements(name, R, operands, is_wide, eps)
    for i = 1, R.rows do
        for j = 1, R.cols do
            local list = {}
            for k, x in ipairs(operands) do
                if is_matrix(x) then x = element(x, i, j) end
                list[k] = x
                if type(list[k]) == "boolean" then
                    list[k] = list[k] and 1 or 0
                end
            end
            local expected = _G[name](table.unpack(list))
            local got = R(i, j)
            if type(expected) == "boolean" then
                lu.assertEquals(got, expected, name)
            elseif (name == "div" or name == "reciprocal") and
                (isnan(list[1]) or isnan(list[#list])) then
                -- of NaN and infinities: nothing, or not a number
            else
                if not is_wide then -- an overflow of f32
                    expected = complex(expected):conj():conj()
                    expected = vec({expected}, {dtype = "c64"})[1]
                end
                lu.assertTrue(is_near(got, expected, eps), ("%s(%s, %s): %s, not %s"):
                    format(name, list[1], list[2], got, expected))
            end
        end
    end
end

local function shape_of(rows, cols)
    local which = math.random(5)
    if which == 1 then return 1, cols end
    if which == 2 then return rows, 1 end
    if which == 3 then return 1, 1 end
    return rows, cols
end

local function check_binary(name)
    local rows, cols = math.random(1, 4), math.random(1, 4)
    local A = some_matrix(rows, cols, types[math.random(2)])
    local B
    if math.random(3) == 1 then
        local x, y = some_part(), some_part()
        B = math.random(2) == 1 and complex(x, y) or x
    else
        local m, n = shape_of(rows, cols)
        B = some_matrix(m, n, types[math.random(#types)])
    end
    local is_wide = wide[A.dtype] or (is_matrix(B) and wide[B.dtype])
    if not is_matrix(B) and not is_wide then
        B = vec({B}, {dtype = getmetatable(B) and "c64" or "f32"})[1]
    end
    local operands = math.random(2) == 1 and {A, B} or {B, A}
    local R = _G[name](table.unpack(operands))
    check_elements(name, R, operands, is_wide, is_wide and 1e-14 or 1e-6)
    if R.dtype:find "^c" and math.random(3) == 1 then -- into what there is
        local out = some_matrix(rows, cols, R.dtype)
        _G[name](operands[1], operands[2], {out = out})
        check_elements(name, out, operands, is_wide, is_wide and 1e-14 or 1e-6)
    end
end

local both = {"add", "sub", "mul", "div", "eq", "ne", "land", "lor", "lxor"}

for _, name in ipairs(both) do
    TestEvery["test_" .. name] = function()
        math.randomseed(#name)
        for _ = 1, cases do check_binary(name) end
    end
end

local single = {"neg", "conj", "real", "imag", "abs", "angle", "sign", "square",
    "reciprocal", "sqrt", "exp", "expm1", "log", "log2", "log10", "log1p",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "lnot", "isnan", "isinf", "isfinite"}

for _, name in ipairs(single) do
    TestEvery["test_" .. name] = function()
        math.randomseed(#name)
        for _ = 1, cases / 3 do
            local A = some_matrix(math.random(1, 4), math.random(1, 4),
                types[math.random(2)])
            local is_wide = wide[A.dtype]
            check_elements(name, _G[name](A), {A}, is_wide,
                is_wide and 1e-14 or 1e-6)
        end
    end
end

function TestEvery:test_a_large_one_is_its_parts()
    local A, B = randn(301, 257, {dtype = "c64"}), randn(301, 257,
        {dtype = "c64"})
    local ar, ai, br, bi = real(A), imag(A), real(B), imag(B)
    lu.assertTrue(A + B == complex(ar + br, ai + bi))
    lu.assertTrue(A - B.H.H == complex(ar - br, ai - bi))
    lu.assertTrue(2 * A == complex(2 * ar, 2 * ai))
    lu.assertTrue(close(A % B, complex(ar % br - ai % bi, ar % bi + ai % br)))
    lu.assertTrue(conj(A) == A.H.T)
    lu.assertTrue(A.T.T == A)
    lu.assertTrue(close(abs(A), hypot(ar, ai)))
    lu.assertTrue(close((A / B) % B, A, 1e-4))
end

function TestEvery:test_in_place()
    local A = some_matrix(3, 4, "c128", true)
    local B = A:clone()
    A:add_(2 * im)
    lu.assertTrue(A == B + 2 * im)
    A:mul_(B.H.T)
    lu.assertTrue(A == (B + 2 * im) % conj(B))
    local C = some_matrix(3, 3, "c64", true)
    local D = C:clone()
    C:mul_(C.H)
    lu.assertTrue(C == D % D.H)
    C:conj_()
    lu.assertTrue(C == conj(D % D.H))
end

function TestEvery:test_where()
    local Z = vec{1 + im, 2, 3 * im}
    local mask = vec{true, false, true}
    lu.assertTrue(where(mask, Z, 0) == vec{1 + im, 0, 3 * im})
    lu.assertTrue(where(mask, 1, Z) == vec({1, 2, 1}, {dtype = "c64"}))
    lu.assertTrue(where(mask, im, Z) == vec{im, 2, im})
    lu.assertEquals(where(Z, 1, 2).dtype, "f32")
end

-- --- reading and writing --------------------------------------------------------

TestPlaces = {}

function TestPlaces:test_reading()
    for _, dtype in ipairs{"c64", "c128"} do
        local Z = mat({{1 + im, 2, -3 * im}, {4, 5 - im, 6}}, {dtype = dtype})
        lu.assertTrue(Z(1, 3) == complex(0, -3) or Z(1, 3) == -3 * im)
        lu.assertTrue(Z[2] == vec({4, 5 - im, 6}, {dtype = dtype}))
        lu.assertTrue(Z["1:2, 2"] == vec({2, 5 - im}, {dtype = dtype}))
        lu.assertTrue(Z[vec{2, 1}][2] == Z[1])
        lu.assertTrue(Z[{{}, vec{3, 1}}] ==
            mat({{-3 * im, 1 + im}, {6, 4}}, {dtype = dtype}))
        lu.assertTrue(Z[abs(Z):gt(4.5)] == vec({5 - im, 6}, {dtype = dtype}))
        lu.assertTrue(Z.H(3, 1) == complex(0, 3) or Z.H(3, 1) == 3 * im)
        lu.assertTrue(Z.H[vec{3}][1] == vec({3 * im, 6}, {dtype = dtype}))
        lu.assertTrue(Z.H[eq(Z.H, 5 + im)] == vec({5 + im}, {dtype = dtype}))
        lu.assertTrue(Z:reshape(3, 2)[2] == vec({-3 * im, 4}, {dtype = dtype}))
        lu.assertTrue(Z.H:flatten()[3] == 2 * Z.H(2, 1) / 2)
        lu.assertTrue(take(Z, vec{2})[1] == Z[2])
    end
end

function TestPlaces:test_writing()
    for _, dtype in ipairs{"c64", "c128"} do
        local Z = zeros(3, 3, {dtype = dtype})
        Z[{1, 1}] = 1 + im
        Z[2] = im
        Z[{3, {1, 2}}] = vec{1, 2}
        Z["3, 3"] = 7
        lu.assertTrue(Z == mat({{1 + im, 0, 0}, {im, im, im}, {1, 2, 7}},
            {dtype = dtype}))
        Z[eq(Z, im)] = 2 - im
        Z[eq(Z, 7)] = vec{5 * im}
        Z[vec{1}] = mat{{3, im, -im}}
        lu.assertTrue(Z == mat({{3, im, -im}, {2 - im, 2 - im, 2 - im},
            {1, 2, 5 * im}}, {dtype = dtype}))
        Z.H[{3, 1}] = 8 + im -- through the view
        Z.H[vec{1}] = mat{{im, im, im}}
        lu.assertTrue(Z["1:3, 1"] == vec({-im, -im, -im}, {dtype = dtype}))
        lu.assertTrue(Z(1, 3) == 8 - im)
        Z.H[eq(Z.H, 8 + im)] = 4 * im
        lu.assertTrue(Z(1, 3) == -4 * im)
        Z[{{}, {}}] = rand(3, 3, {dtype = "f64"})
        lu.assertTrue(all(imag(Z):eq(0)))
    end
end

function TestPlaces:test_verify_looks_at_the_product_of_the_parts()
    local A, B = randn(5, 7, {seed = 1, dtype = "c64"}), randn(7, 3, {seed = 2})
    local told = verify(A * B, A, B)
    lu.assertTrue(told.accept and told.ratio > 0)
    lu.assertTrue(verify(B.T * A.H, B.T, A.H).accept)
    local wrong = A * B
    wrong[{2, 1}] = wrong(2, 1) + 1e-3 * im
    lu.assertTrue(not verify(wrong, A, B).accept)
    t.raises(function() return verify(A * B[{{}, 1}], A, B[{{}, 1}]) end,
        "v:row()")
end

-- Running products, as many lines side by side as there are, of every layout.
function TestPlaces:test_running_products()
    for _, dtype in ipairs{"c64", "c128"} do
        local tolerance = 1e3 * t.unit[dtype]
        for _, shape in ipairs{{1, 1}, {3, 2}, {7, 70}, {300, 3}, {2, 1000}} do
            local m, n = shape[1], shape[2]
            local A = exp(complex(0, randn(m, n, {seed = 3, dtype = "f64"})))
            A = A[dtype](A)
            local views = {A, A.T:clone().T, A.H, conj(A),
                hcat(A, A)[{{}, {n, 2 * n - 1}}]}
            for _, B in ipairs(views) do
                for axis = 1, 2 do
                    local lines = axis == 1 and B or B.T
                    local product = cumprod(B, axis)
                    product = axis == 1 and product or product.T
                    lu.assertEquals(product.dtype, dtype)
                    local so_far = ones(lines.cols, {dtype = dtype})
                    for i = 1, lines.rows do
                        so_far = so_far % lines[i]
                        lu.assertTrue(norm(product[i] - so_far, "inf") <
                            tolerance)
                    end
                end
            end
        end
    end
    -- in f64, one after the other: nothing leaves the range that comes back
    local wide = vec({1e-300, complex(0, 1e300), complex(0, 1e300), 1e-300},
        {dtype = "c128"})
    lu.assertTrue(close(cumprod(wide), vec({1e-300, im, -1e300, -1},
        {dtype = "c128"})))
    lu.assertTrue(cumprod(vec{1e30 * im, 1e30 * im, 1e-30 + 0 * im})[-1].real ==
        cumprod(vec{-1e30, 1e30, 1e-30})[-1])
    lu.assertEquals(cumprod(zeros(0, 3, {dtype = "c64"})).shape, {0, 3})
    t.raises(function() return cumprod(vec{im}, 2) end, "no axis 2")
    t.raises(function() return cummax(vec{im}) end, "no order")
end

-- Truth is what is not 0, and both parts are rounded.
function TestPlaces:test_masks_and_rounding()
    local A = mat{{0 * im, im}, {2, 0}}
    lu.assertTrue(A:bool() == mat{{false, true}, {true, false}})
    lu.assertTrue(cumany(A) == mat{{false, true}, {true, true}})
    lu.assertTrue(cumany(A.H, 2) == mat{{false, true}, {true, true}})
    lu.assertTrue(cumall(A, 2) == mat{{false, false}, {true, false}})
    local B = mat{{complex(1.26, -2.75), complex(-0.5, 2.5)}}
    lu.assertTrue(round(B) == mat{{complex(1, -3), complex(0, 2)}})
    lu.assertTrue(round(B.H) == mat{{complex(1, 3)}, {complex(0, -2)}})
    lu.assertTrue(close(B:c128():round(1), complex(mat{{1.3, -0.5}}:f64(),
        mat{{-2.8, 2.5}}:f64()), 1e-6))
    lu.assertTrue(round(complex(1.26, -2.75), 1) == complex(1.3, -2.8))
    local out = zeros(1, 2, {dtype = "c64"})
    lu.assertTrue(round(B, {out = out}) == out and out == round(B))
    lu.assertTrue(B:round_() == out)
    t.raises(function() return round(B, {out = zeros(1, 2)}) end, "real(A)")
end

function TestPlaces:test_joining_and_copies()
    local Z, A = mat{{1 + im, 2}}, mat{{5, 6}}
    lu.assertTrue(vcat(A, Z) == mat{{5, 6}, {1 + im, 2 + 0 * im}})
    lu.assertTrue(hcat(Z.H, A.T) == mat{{1 - im, 5}, {2, 6}})
    lu.assertTrue(Z.H:clone() == mat{{1 - im}, {2}})
    lu.assertTrue(tile(Z, 2, 1) == vcat(Z, Z))
    lu.assertTrue(kron(Z, mat{{im, 1}}) == mat{{-1 + im, 1 + im, 2 * im, 2}})
    lu.assertTrue(cumsum(Z.H, 1) == mat{{1 - im}, {3 - im}})
    lu.assertTrue(cumprod(Z.H, 1) == mat{{1 - im}, {2 - 2 * im}})
    lu.assertTrue(diag(vec{im, 2}) == mat{{im, 0}, {0, 2}})
    lu.assertTrue(Z:c128():c64() == Z)
    local A = mat{{im, 2}, {3, 4 - im}}
    lu.assertTrue(tril(A) == mat{{im, 0}, {3, 4 - im}})
    lu.assertTrue(triu(A.H) == mat{{-im, 3}, {0, 4 + im}})
    lu.assertTrue(trace(A) == complex(4))
    lu.assertTrue(flip(A.H, 1) == mat{{2, 4 + im}, {-im, 3}})
    lu.assertTrue(outer(vec{im, 1}, vec{1, im}) == mat{{im, -1}, {1, im}})
end

-- --- over everything ----------------------------------------------------------

TestTotals = {}

function TestTotals:test_sums_products_and_means()
    math.randomseed(5)
    for _ = 1, 100 do
        local A = some_matrix(math.random(1, 6), math.random(1, 6),
            types[math.random(2)], true)
        local total, product = complex(0), complex(1)
        local down = {}
        for j = 1, A.cols do down[j] = complex(0) end
        for i = 1, A.rows do
            for j = 1, A.cols do
                total, product = total + A(i, j), product * A(i, j)
                down[j] = down[j] + A(i, j)
            end
        end
        lu.assertTrue(sum(A) == total)
        lu.assertTrue(sum(A, 1)[1] == vec(down, {dtype = A.dtype}))
        lu.assertTrue(sum(A.T, 2):flatten() == vec(down, {dtype = A.dtype}))
        lu.assertTrue(is_near(mean(A), total / (A.rows * A.cols), 1e-6))
        if abs(product) < 2 ^ 24 then
            lu.assertTrue(prod(A) == product)
            lu.assertTrue(prod(prod(A, 1), 2)(1, 1) == product)
        end
    end
    lu.assertTrue(sum(zeros(0, 3, {dtype = "c64"})) == complex(0))
    -- of c64 in the range of c128, as of f32 in that of f64
    local large = complex(mat{{1e30, 1e30 * im, 1e-30}})
    lu.assertTrue(abs(prod(large) / 1e30 - im) < 1e-6)
    lu.assertTrue(abs(prod(large, 2)(1, 1) / 1e30 - im) < 1e-6)
    lu.assertTrue(abs(prod(complex(vec{1e30, 1e30, im})) / 1e60 - im) < 1e-6)
    lu.assertTrue(prod(zeros(0, 3, {dtype = "c64"}), 1) ==
        ones(1, 3, {dtype = "c64"}))
end

function TestTotals:test_sizes_and_questions()
    local Z = mat{{3 + 4 * im, 0}, {0, 12 * im}}
    lu.assertEquals(norm(Z), 13)
    lu.assertEquals(norm(Z, 1), 12)
    lu.assertEquals(norm(Z.H, "inf"), 12)
    lu.assertTrue(norm(Z, {axis = 2}) == mat{{5}, {12}})
    lu.assertEquals(norm(vec{3 * im, 4}, 1), 7)
    lu.assertEquals({any(Z), all(Z)}, {true, false})
    lu.assertTrue(any(Z, 1) == mat{{true, true}})
    lu.assertEquals(var(vec{1 + im, 1 - im}), 2)
    lu.assertEquals(std(vec{3, 3 + 0 * im}), 0)
    lu.assertTrue(var(mat{{1, im}, {-1, -im}}, 1) == mat{{2, 2}})
end

-- --- products ------------------------------------------------------------------

TestProducts = {}

function TestProducts:test_every_layout_and_type()
    math.randomseed(7)
    for _ = 1, 60 do
        local m, k, n = math.random(1, 6), math.random(1, 6), math.random(1, 6)
        local A = some_matrix(m, k, types[math.random(#types)], true)
        local B = some_matrix(k, n, types[math.random(2)], true)
        if math.random(2) == 1 then
            A, B = B.T, A.T
            m, n = n, m
        end
        local C = A * B
        for i = 1, m do
            for j = 1, n do
                local total = complex(0)
                for l = 1, k do
                    local x, y = A(i, l), B(l, j)
                    if x == true or x == false then x = x and 1 or 0 end
                    if y == true or y == false then y = y and 1 or 0 end
                    total = total + x * y
                end
                lu.assertTrue(C(i, j) == total)
            end
        end
    end
end

-- Whole numbers, so that every order of the sums has the same bits.
local function whole(m, n, dtype)
    local A = randint(-9, 9, m, n)
    if dtype:find "^c" then A = complex(A, randint(-9, 9, m, n)) end
    return A[dtype](A)
end

function TestProducts:test_products_of_many_rows()
    for n, case in ipairs{{"c64", "c64"}, {"c128", "c64"}, {"f32", "c64"},
        {"f64", "c128"}, {"c64", "f32"}, {"c128", "c128"}} do
        local A, B = whole(70, 33, case[1]), whole(33, 45, case[2])
        local v = whole(33, 1, case[2])
        for how = 1, 5 do
            local X, Y = how == 2 and A:clone().H.T or A,
                how == 3 and conj(B).H.T or B
            X = how == 4 and whole(33, 70, case[1]).H or X
            Y = how == 5 and v:reshape(33) or Y
            local C = X * Y
            local re = real(X):f64() * real(Y):f64() -
                imag(X):f64() * imag(Y):f64()
            local rest = real(X):f64() * imag(Y):f64() +
                imag(X):f64() * real(Y):f64()
            lu.assertTrue(real(C) == re and imag(C) == rest, n .. " " .. how)
            lu.assertEquals(C.shape, re.shape)
        end
        lu.assertTrue((A * v):reshape(70) == A * v:reshape(33))
    end
end

function TestProducts:test_options()
    local A, B = mat{{1 + im, 2}, {3, im}}, mat{{im, 1}, {2, 1 - im}}
    local C = mat{{1, 2}, {3, 4 * im}}
    local expected = 2 * (A * B) + 3 * C
    matmul(A, B, {alpha = 2, beta = 3, out = C})
    lu.assertTrue(C == expected)
    if not t.on_gpu then
        lu.assertTrue(matmul(A, B, {kernel = "reference"}) == A * B)
    end
    lu.assertTrue(matmul(A, B, {transA = true}) == A.T * B)
    lu.assertTrue(A ^ 3 == A * A * A)
    lu.assertTrue(A * vec{1, im} == vec{1 + 3 * im, 2})
    lu.assertTrue(vec{1, im} * A == vec{1 + 4 * im, 1})
    t.raises(function() return A * ones(3, 3) end, "inner dimensions differ")
end

function TestProducts:test_dot_conjugates_its_first_vector()
    local x, y = vec{1 + im, 2}, vec{im, 3}
    lu.assertTrue(dot(x, y) == 7 + im)
    lu.assertTrue(x * y == 5 + im)
    lu.assertTrue(dot(x, vec{1, 1}) == 3 - im)
    lu.assertTrue(dot(vec{1, 1}, x) == 3 + im)
    lu.assertTrue(dot(x.H, y) == x * y)
end

function TestProducts:test_determinants()
    lu.assertTrue(is_near(det(mat{{im, 2}, {3, 4 - im}}), -5 + 4 * im, 1e-12))
    lu.assertTrue(det(zeros(2, 2, {dtype = "c64"})) == complex(0))
    local A = randn(20, 20, {dtype = "c128", seed = 1})
    lu.assertTrue(is_near(det(A.H), conj(det(A)), 1e-12))
    lu.assertTrue(is_near(det(A * A), det(A) ^ 2, 1e-11))
    t.raises(function() det(mat{{im, 1}}) end, "square")
end

-- --- beside real ones ------------------------------------------------------------

TestFiles = {}

function TestFiles:test_what_is_saved_comes_back()
    local path = os.tmpname()
    for _, dtype in ipairs{"c64", "c128"} do
        local Z = randn(5, 4, {dtype = dtype})
        Z[{1, 1}] = complex(huge, -huge)
        Z[{2, 1}] = complex(-0.0, -0.0)
        for _, M in ipairs{Z, Z.H, Z["1:5:2, 2:4"]} do
            save(M, path .. ".npy")
            local B = load(path .. ".npy")
            lu.assertTrue(B == M and B.dtype == dtype)
            save(M, path .. ".csv")
            lu.assertTrue(load(path .. ".csv", {dtype = dtype}) == M)
            lu.assertEquals(load(path .. ".csv").dtype, "c64")
        end
        save(real(Z), path .. ".npy")
        lu.assertTrue(load(path .. ".npy", {dtype = dtype}) == real(Z))
    end
    save(vec{im}, path .. ".npy")
    t.raises(function()
        load(path .. ".npy", {dtype = "f64"})
    end, "complex numbers")
    for _, ending in ipairs{"", ".npy", ".csv"} do os.remove(path .. ending) end
end

function TestFiles:test_sessions()
    local path = os.tmpname()
    z_saved, Z_saved = complex(0.1, -huge), randn(3, 2, {dtype = "c64"})
    H_saved, t_saved = Z_saved.H, {im, complex(nan, -0.0)}
    local z, Z = z_saved, Z_saved:clone()
    save_session(path .. ".lum", {"z_saved", "Z_saved", "H_saved", "t_saved"})
    z_saved, Z_saved, H_saved, t_saved = nil, nil, nil, nil
    load_session(path .. ".lum", {"z_saved", "Z_saved", "H_saved", "t_saved"})
    lu.assertTrue(z_saved == z and Z_saved == Z and H_saved == Z.H)
    lu.assertTrue(t_saved[1] == im)
    lu.assertEquals(tostring(t_saved[2]), "NaN - 0i")
    os.remove(path)
    os.remove(path .. ".lum")
end

function TestFiles:test_cells()
    local path = os.tmpname()
    local function read(text)
        local f <close> = io.open(path .. ".csv", "w")
        f:write(text)
        f:close()
        return load(path .. ".csv")
    end
    local Z = read "(1+2j), 3 ,-i\n nan,1e3i,Inf-2.5e-1i\n"
    lu.assertEquals(tostring(Z(1, 1)), "1 + 2i")
    lu.assertEquals(tostring(Z(1, 3)), "0 - 1i")
    lu.assertEquals(tostring(Z(2, 1)), "NaN + 0i")
    lu.assertEquals(tostring(Z(2, 2)), "0 + 1000i")
    lu.assertEquals(tostring(Z(2, 3)), "Inf - 0.25i")
    t.raises(function() read "1+2i,3\n1+2k,4\n" end, "is not a number")
    t.raises(function() read "1+2i,3\n1+2i3,4\n" end, "is not a number")
    t.raises(function() read "1+2i,3\n1+2,4\n" end, "is not a number")
    os.remove(path)
    os.remove(path .. ".csv")
end

function TestFiles:test_close()
    lu.assertTrue(close(vec{1 + im}, vec{1.000001 + im}))
    lu.assertFalse(close(vec{1 + im}, vec{1.1 + im}))
    lu.assertTrue(close(1 + im, 1 + im))
    lu.assertFalse(close(1 + im, 1 - im))
end

TestDry = {}

function TestDry:test_what_it_costs_is_known()
    local Z = randn(10, 10, {dtype = "c64"})
    for _, f in ipairs{
        function() return exp(Z) end,
        function() return Z * Z.H end,
        function() return sum(Z) + Z % Z end,
        function() return Z / 2 end,
    } do
        lu.assertTrue(cost(f).bytes > 0)
    end
    lu.assertTrue(Z == Z.H.H)
end

TestPrinting = {}

function TestPrinting:test_columns()
    local Z = mat{{1 + 2 * im, -3.25}, {-10 * im, 0.5 - im}}
    lu.assertEquals(tostring(Z), "c64 2x2  " .. Z.device .. "  32 B\n" ..
        "   1 +  2i  -3.25 + 0i\n" ..
        "  -0 - 10i   0.50 - 1i")
    lu.assertStrContains(tostring(vec{im, complex(nan, 1), complex(1, huge)}),
        "1 NaN, 1 Inf")
    lu.assertStrContains(tostring(rand(500, 400, {dtype = "c128"})),
        "of 200 000, no NaN or Inf")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
