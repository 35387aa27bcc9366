-- Elementwise operations: each one of ops.def against a formula in plain Lua,
-- over every kind of number; broadcasting, types, in-place forms, operators.
local lu = require "luaunit"
local t = dofile((arg[0]:match("^.*/") or "") .. "common.lua")
local equals, raises, inf, nan = t.equals, t.raises, t.inf, t.nan
local places = t.places

-- --- formulas ---------------------------------------------------------------

local function floor(x)
    return x ~= x and x or math.abs(x) == inf and x or x // 1.0
end

local function toward_zero(x) return x < 0 and -floor(-x) or floor(x) end

local function half_to_even(x)
    if math.abs(x) >= 2.0 ^ 52 or x ~= x then return x end
    local low = floor(x)
    local rest = x - low
    if rest > 0.5 or (rest == 0.5 and low % 2 ~= 0) then low = low + 1 end
    return low == 0 and x * 0 or low
end

-- Kahan: exact differences of rounded values cancel the rounding.
local function expm1(x)
    local u = math.exp(x)
    if u == 1 or x == inf then return x end
    if u - 1 == -1 then return -1 end
    return u == inf and inf or (u - 1) * x / math.log(u)
end

local function log1p(x)
    local u = 1 + x
    if u == 1 or x == inf then return x end
    return u <= 0 and math.log(u) or math.log(u) * x / (u - 1)
end

local function odd(f)
    return function(x)
        if x == 0 or x ~= x then return x end
        return x < 0 and -f(-x) or f(x)
    end
end

local sinh = odd(function(x)
    if x > 30 then return math.exp(x / 2) / 2 * math.exp(x / 2) end
    local e = expm1(x)
    return (e + e / (e + 1)) / 2
end)

local function cosh(x)
    local e = math.exp(math.abs(x) / 2)
    return math.abs(x) > 30 and e / 2 * e or (e * e + 1 / (e * e)) / 2
end

local tanh = odd(function(x)
    local e = expm1(2 * x)
    return e == inf and 1 or e / (e + 2)
end)

local ln2 = math.log(2)

local asinh = odd(function(x)
    if x > 1e8 then return math.log(x) + ln2 end
    return log1p(x + x * x / (1 + math.sqrt(1 + x * x)))
end)

local function acosh(x)
    if x > 1e8 then return math.log(x) + ln2 end
    return x < 1 and nan or log1p(x - 1 + math.sqrt((x - 1) * (x + 1)))
end

local atanh = odd(function(x)
    return x > 1 and nan or x == 1 and inf or log1p(2 * x / (1 - x)) / 2
end)

local cbrt
cbrt = odd(function(x)
    if x == inf then return x end
    if x < 1e-290 then return cbrt(x * 2.0 ^ 600) / 2.0 ^ 200 end
    local y = x ^ (1 / 3)
    return y - (y * y * y - x) / (3 * y * y)
end)

-- Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.6: a series
-- of positive terms.
local erf = odd(function(x)
    if x > 6 then return 1 end
    local term, sum, n = x, x, 0
    repeat
        n = n + 1
        term = term * 2 * x * x / (2 * n + 1)
        sum = sum + term
    until term <= sum * 1e-18
    return 2 / math.sqrt(math.pi) * math.exp(-x * x) * sum
end)

-- 7.1.14 there: a continued fraction, for x where it converges fast.
local function erfc(x)
    if x ~= x then return x end
    if x < 2 then return 1 - erf(x) end
    if x > 30 then return 0 end
    local fraction = x
    for k = 200, 1, -1 do fraction = x + k / 2 / fraction end
    return math.exp(-x * x) / math.sqrt(math.pi) / fraction
end

-- Stirling's series after shifting; 6.1.41 and, for x < 1/2, 6.1.17 there.
local function lgamma(x)
    if x ~= x then return x end
    if x == -inf or x == inf then return inf end
    if x <= 0 and x == floor(x) then return inf end
    if math.abs(x) < 1e-20 then return -math.log(math.abs(x)) end
    if x < 0.5 then
        local turn = x % 2
        return math.log(math.pi / math.abs(math.sin(math.pi * turn))) -
            lgamma(1 - x)
    end
    local shift = 1
    while x < 20 do shift, x = shift * x, x + 1 end
    local z = 1 / (x * x)
    return (x - 0.5) * math.log(x) - x + math.log(2 * math.pi) / 2 +
        (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z / 1680))) / x -
        math.log(shift)
end

local function gamma(x)
    if math.abs(x) < 1e-20 then return 1 / x end
    if x == -inf or (x < 0 and x == floor(x)) then return nan end
    local negative = x < 0 and floor(x) % 2 ~= 0
    if x > 0 and x <= 23 and x == floor(x) then
        local product = 1.0
        for i = 2, x - 1 do product = product * i end
        return product
    end
    local size = math.exp(lgamma(x))
    return negative and -size or size
end

local function hypot(x, y)
    x, y = math.abs(x), math.abs(y)
    if x == inf or y == inf then return inf end
    if x ~= x or y ~= y then return nan end
    if x < y then x, y = y, x end
    if x == 0 then return 0 end
    local small = x < 1e-290 and 2.0 ^ 600 or 1
    x, y = x * small, y * small
    return x * math.sqrt(1 + (y / x) * (y / x)) / small
end

local function sign_bit(x) return string.pack(">d", x):byte() >= 128 end

local function copysign(x, y)
    return sign_bit(x) == sign_bit(y) and x or -x
end

local function nextafter(x, y, dtype)
    if x ~= x or y ~= y then return nan end
    if x == y then return y end
    if x == 0 then return copysign(t.smallest[dtype], y) end
    local number, bits = "d", "i8"
    if dtype == "f32" then number, bits = "f", "i4" end
    local n = string.unpack(bits, string.pack(number, x))
    n = n + (((y > x) == (x > 0)) and 1 or -1)
    return (string.unpack(number, string.pack(bits, n)))
end

local function larger(x, y)
    return (x ~= x or y ~= y) and nan or x > y and x or y
end

local function smaller(x, y)
    return (x ~= x or y ~= y) and nan or x < y and x or y
end

local function logaddexp(x, y)
    if x == y then return x + ln2 end
    return larger(x, y) + log1p(math.exp(-math.abs(x - y)))
end

-- Lua's own power gives 1 for 1 ^ NaN and NaN ^ 0, as C does.
local function power(x, y) return x ^ y end

local function round_to(dtype, x) return dtype == "f32" and t.single(x) or x end

-- name: {formula, how many ulps apart it may be, f64 formula's own error}
local exact, close = 0, 4
local unary = {
    neg = {function(x) return -x end, exact},
    abs = {math.abs, exact},
    sign = {function(x)
        return x ~= x and x or x > 0 and 1 or x < 0 and -1 or 0
    end, exact},
    square = {function(x) return x * x end, exact},
    reciprocal = {function(x) return 1 / x end, exact},
    floor = {floor, exact},
    ceil = {function(x) return -floor(-x) end, exact},
    trunc = {toward_zero, exact},
    round = {half_to_even, exact},
    sqrt = {math.sqrt, exact},
    cbrt = {cbrt, close}, exp = {math.exp, close},
    exp2 = {function(x) return 2.0 ^ x end, close},
    expm1 = {expm1, close}, log = {math.log, close},
    log2 = {function(x) return math.log(x, 2) end, close},
    log10 = {function(x) return math.log(x, 10) end, close},
    log1p = {log1p, close},
    sin = {math.sin, close}, cos = {math.cos, close}, tan = {math.tan, close},
    asin = {math.asin, close}, acos = {math.acos, close},
    atan = {math.atan, close},
    sinh = {sinh, close}, cosh = {cosh, close}, tanh = {tanh, close},
    asinh = {asinh, close}, acosh = {acosh, close}, atanh = {atanh, close},
    erf = {erf, close}, erfc = {erfc, close, 1e-13},
    gamma = {gamma, close, 1e-11}, lgamma = {lgamma, close, 1e-13},
    lnot = {function(x) return x == 0 end},
    isnan = {function(x) return x ~= x end},
    isinf = {function(x) return x == inf or x == -inf end},
    isfinite = {function(x) return x - x == 0 end},
    signbit = {sign_bit},
}

local binary = {
    add = {function(x, y) return x + y end, exact},
    sub = {function(x, y) return x - y end, exact},
    mul = {function(x, y) return x * y end, exact},
    div = {function(x, y) return x / y end, exact},
    idiv = {function(x, y, dtype) return floor(round_to(dtype, x / y)) end, exact},
    mod = {function(x, y) return y == 0 and nan or x % y end, exact},
    pow = {power, close},
    maximum = {larger, exact}, minimum = {smaller, exact},
    hypot = {hypot, close}, atan2 = {math.atan, close},
    copysign = {copysign, exact}, nextafter = {nextafter, exact},
    logaddexp = {logaddexp, close},
    lt = {function(x, y) return x < y end},
    le = {function(x, y) return x <= y end},
    gt = {function(x, y) return x > y end},
    ge = {function(x, y) return x >= y end},
    eq = {function(x, y) return x == y end},
    ne = {function(x, y) return x ~= y end},
    land = {function(x, y) return x ~= 0 and y ~= 0 end},
    lor = {function(x, y) return x ~= 0 or y ~= 0 end},
    lxor = {function(x, y) return (x ~= 0) ~= (y ~= 0) end},
}

local ternary = {
    clip = {function(x, y, z) return smaller(larger(x, y), z) end, exact},
    where = {function(x, y, z) if x ~= 0 then return y end return z end, exact},
}

-- --- every operation over every kind of number ------------------------------

local kinds = {0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 2, 3, -3, 7, 0.1,
    -0.7, 1e-3, -1e-3, 1e-10, 20.25, -20.25, 85, -100, 1e5, -1e10, 1e15,
    math.pi, nan, inf, -inf, 3.3e38, -3.3e38, 1.2e-38, 1e-40, -1e-45}
local wide = {5e-324, -1e-310, 1e-300, 1e300, -1.7e308, 700.5, -744.0}

local function numbers(dtype)
    local list = {}
    for _, x in ipairs(kinds) do
        list[#list + 1] = round_to(dtype, x + 0.0)
    end
    if dtype == "f64" then table.move(wide, 1, #wide, #list + 1, list) end
    return list
end

local function show(...)
    local list = table.pack(...)
    for i = 1, list.n do
        list[i] = type(list[i]) == "number" and
            string.format("%.9g", list[i]) or tostring(list[i])
    end
    return table.concat(list, ", ")
end

-- A result near a root or below the normal range may miss by this much.
local function small_enough(got, expected, dtype, relative)
    local least = dtype == "f32" and 2.0 ^ -126 or 2.0 ^ -1022
    local size = math.max(math.abs(expected), least)
    return math.abs(got - expected) <= (relative or 0) * size
end

local function check(name, entry, dtype, lists, results)
    local ulps = entry[2] or 0
    if dtype == "f64" and ulps > 0 then ulps = 32 end
    if t.on_gpu then ulps = 2 * ulps end
    for i, got in ipairs(results) do
        local x, y, z = lists[1][i], lists[2] and lists[2][i],
            lists[3] and lists[3][i]
        local expected
        if lists[3] then expected = entry[1](x, y, z)
        elseif lists[2] then expected = entry[1](x, y, dtype)
        else expected = entry[1](x) end
        local fits
        if type(expected) == "boolean" then
            fits = got == expected
        else
            expected = round_to(dtype, expected)
            fits = t.within(got, expected, ulps, dtype) or
                (entry[3] or ulps > 0) and expected - expected == 0 and
                small_enough(got, expected, dtype,
                    entry[3] and dtype == "f64" and entry[3] or
                    ulps * t.unit[dtype])
        end
        if not fits then
            lu.fail(string.format("%s(%s) in %s is %s, expected %s", name,
                show(x, y, z), dtype, show(got), show(expected)))
        end
    end
end

TestEvery = {}

-- One test for each operation: TestEvery.test_sqrt and so on.
for name, entry in pairs(unary) do
    TestEvery["test_" .. name] = function()
        for _, dtype in ipairs{"f32", "f64"} do
            local list = numbers(dtype)
            local A = vec(list, {dtype = dtype})
            check(name, entry, dtype, {list}, _G[name](A):totable())
            equals(A[name](A), _G[name](A):totable(), "the method")
        end
    end
end

for name, entry in pairs(binary) do
    TestEvery["test_" .. name] = function()
        for _, dtype in ipairs{"f32", "f64"} do
            local x, y = {}, {}
            for _, a in ipairs(numbers(dtype)) do
                for _, b in ipairs(numbers(dtype)) do
                    x[#x + 1], y[#y + 1] = a, b
                end
            end
            local A, B = vec(x, {dtype = dtype}), vec(y, {dtype = dtype})
            check(name, entry, dtype, {x, y}, _G[name](A, B):totable())
        end
    end
end

for name, entry in pairs(ternary) do
    TestEvery["test_" .. name] = function()
        for _, dtype in ipairs{"f32", "f64"} do
            local lists = {{}, {}, {}}
            for _, a in ipairs(numbers(dtype)) do
                for _, b in ipairs{-1, 0, nan, 2} do
                    for _, c in ipairs{0.5, 3, inf, nan} do
                        table.insert(lists[1], a)
                        table.insert(lists[2], b)
                        table.insert(lists[3], c)
                    end
                end
            end
            local m = {}
            for i = 1, 3 do m[i] = vec(lists[i], {dtype = dtype}) end
            check(name, entry, dtype, lists, _G[name](m[1], m[2], m[3]):totable())
        end
    end
end

function TestEvery:test_no_operation_is_left_out()
    local help = debug.getregistry()["lumat.help"]
    for name, entry in pairs(help) do
        local operands = entry.usage:match("^" .. name .. "(%b())$")
        if operands == "(A)" or operands == "(A, B)" or operands == "(A, B, C)" then
            local methods = debug.getregistry()["lumat.methods"]
            if methods[name .. "_"] then
                lu.assertNotNil(unary[name] or binary[name] or ternary[name], name)
            end
        end
    end
end

function TestEvery:test_numbers_give_numbers()
    for name, entry in pairs(unary) do
        for _, x in ipairs(numbers("f64")) do
            check(name, entry, "f64", {{x}}, {_G[name](x)})
        end
    end
    for name, entry in pairs(binary) do
        check(name, entry, "f64", {{7.5}, {-2}}, {_G[name](7.5, -2)})
    end
    lu.assertEquals(add(1, 2), 3)
    lu.assertIsTrue(lt(1, 2))
    lu.assertEquals(clip(5, 0, 1), 1)
    lu.assertEquals(where(true, 4, 5), 4)
end

-- Long runs take other loops than short ones: vector code and its remainder.
function TestEvery:test_long_runs_equal_short_ones()
    for _, dtype in ipairs{"f32", "f64"} do
        local A = rand(1009, {seed = 1, low = -3, high = 3, dtype = dtype})
        for name in pairs(unary) do
            local whole = _G[name](A)
            for _, i in ipairs{1, 2, 500, 1008, 1009} do
                local one = _G[name](A[{{i, i}}])
                equals(whole[{{i, i}}], one:totable(), name .. " " .. dtype, 1)
            end
            equals(_G[name](A["::-3"]), whole["::-3"]:totable(),
                name .. " strided", 1)
        end
    end
end

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
    lu.assertStrContains(message, "test_ops.lua:")
    raises(function() return tall / ones(4, 4) end, "div", "3x2", "4x4")
    raises(function() return maximum(tall, ones(2, 2)) end, "maximum")
    raises(function() return where(tall, wide_one, 0) end, "where")
end

function TestShapes:test_wrong_operands_are_named()
    local A = ones(2, 2)
    raises(function() return A + {} end, "matrix or number", "table")
    raises(function() return A - "1" end, "matrix or number", "string")
    raises(function() return A / nil end, "matrix or number", "nil")
    raises(function() return sqrt("4") end, "matrix or number", "string")
    raises(function() return add(A) end, "#2", "value expected")
    raises(function() return sqrt() end, "#1", "value expected")
    raises(function() return add(A, 1, {ot = A}) end, "'ot'", "'out'")
    raises(function() return add(A, 1, {out = 3}) end, "out", "number")
    raises(function() return add(A, 1, 3) end, "table expected")
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

-- Inputs whose results are neither all NaN nor all 1.
local low = {acosh = 1, log = 0.01, log2 = 0.01, log10 = 0.01, sqrt = 0,
    gamma = 0.1, lgamma = 3, pow = 0.1}
local high = {asin = 1, acos = 1, atanh = 0.99}

function TestDevices:test_every_operation_agrees_over_odd_shapes()
    if not t.on_gpu then lu.skip("needs a GPU") end
    for _, list in ipairs{unary, binary} do
        for name, entry in pairs(list) do
            for _, shape in ipairs{{1, 1}, {3, 5}, {31, 127}, {65, 33}} do
                for _, dtype in ipairs{"f32", "f64"} do
                    t.agrees(function()
                        local how = {seed = 1, dtype = dtype, low = low[name] or -5,
                            high = high[name] or 5}
                        local A = rand(shape[1], shape[2], how)
                        how.seed = 2
                        local B = rand(shape[2], shape[1], how).T
                        return _G[name](A, B)
                    end, name .. " " .. dtype, (entry[2] or 0) * 4)
                end
            end
        end
    end
end

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
