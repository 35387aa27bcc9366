-- Elementwise operations: each one of ops.def against a formula in plain Lua,
-- over every kind of number, and the GPU's results against the CPU's.
local lu = require "luaunit"
local t = require "common"
local formulas = require "math.formulas"
local unary, binary = formulas.unary, formulas.binary
local ternary, round_to = formulas.ternary, formulas.round_to
local equals, raises, inf, nan = t.equals, t.raises, t.inf, t.nan

local kinds = {0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 2, 3, -3, 7, 0.1,
    -0.7, 1e-3, -1e-3, 1e-10, 20.25, -20.25, 85, -100, 1e5, -1e10, 1e15,
    math.pi, nan, -nan, inf, -inf, 3.3e38, -3.3e38, 1.2e-38, 1e-40, -1e-45}
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
            check(name, entry, dtype, lists, _G[name](m[1], m[2],
                m[3]):totable())
        end
    end
end

function TestEvery:test_no_operation_is_left_out()
    local help = debug.getregistry()["lumat.help"]
    for name, entry in pairs(help) do
        local usage = entry.usage:gsub(" %[, {out=}%]", "")
        local operands = usage:match("^" .. name .. "(%b())$")
        if operands == "(A)" or operands == "(A, B)" or operands == "(A, B, C)" then
            local methods = debug.getregistry()["lumat.methods"]
            if methods[name .. "_"] then
                lu.assertNotNil(unary[name] or binary[name] or ternary[name],
                    name .. ": formulas.lua lacks its formula")
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

-- --- a second operand ------------------------------------------------------

TestSecond = {}

function TestSecond:test_round_to_digits()
    lu.assertEquals({round(2.567, 2), round(-2.567, 2), round(1234.5, -2)},
        {2.57, -2.57, 1200})
    -- 2.675 lies below what it looks like, 0.125 and 1250 on the half
    lu.assertEquals({round(2.675, 2), round(0.125, 2), round(0.375, 2)},
        {2.67, 0.12, 0.38})
    lu.assertEquals({round(1250, -2), round(1350, -2), round(49, -2)}, {1200, 1400, 0})
    lu.assertEquals({round(1e300, 2), round(inf, 2), round(1e22, -3)}, {1e300, inf, 1e22})
    lu.assertIsNaN(round(nan, 3))
    lu.assertEquals({round(2.5, 0), round(3.5), round(2.5, nil)}, {2, 4, 2})
    equals(round(vec{2.567, -1.5, 0.125}, 2), {t.single(2.57), -1.5, t.single(0.12)})
    equals(round(vec{1234, 56, -50}, -2), {1200, 100, -0.0})
    equals(round(mat{{true, false}}, 1), {{1, 0}})
    local v, C = vec{1.26, 2.34}, zeros(2)
    lu.assertTrue(rawequal(v:round_(1), v))
    equals(v, {t.single(1.3), t.single(2.3)})
    lu.assertTrue(rawequal(round(vec{1.26, 2.34}, 1, {out = C}), C))
    equals(C, v:totable())
    for _, digits in ipairs{2.5, "2", 400, -309, nan, true} do
        raises(function() round(1.5, digits) end, "round: digits is ")
        raises(function() round(v, digits) end, "round: digits is ")
    end
    raises(function() round(v, v) end, "digits", "a matrix")
end

-- What C prints with so many digits is rounded exactly.
function TestSecond:test_rounding_is_that_of_decimals()
    local x = rand(2000, {seed = 1, low = -100, high = 100, dtype = "f64"})
    for _, digits in ipairs{1, 2, 5, 13} do
        local ties = round(x * 2 ^ 10) / 2 ^ 10 -- every half is met
        for _, A in ipairs{x, ties, x:f32(), ties:f32()} do
            local rounded = round(A, digits):totable()
            for i, y in ipairs(A:totable()) do
                local expected = tonumber(("%." .. digits .. "f"):format(y))
                if A.dtype == "f32" then expected = t.single(expected) end
                lu.assertEquals(rounded[i], expected)
                if A.dtype == "f64" then lu.assertEquals(round(y, digits), expected) end
            end
        end
    end
end

function TestSecond:test_log_to_a_base()
    lu.assertEquals({log(8, 2), log(1000, 10), log(125, 5), log(243, 3), log(1 / 9, 3)},
        {3, 3, 3, 5, -2})
    lu.assertEquals({log(0, 2), log(inf, 3), log(1, 7)}, {-inf, inf, 0})
    lu.assertIsNaN(log(-1, 2))
    t.near(log(7, 3), math.log(7) / math.log(3), 1e-15)
    lu.assertEquals(log(7, nil), math.log(7))
    for _, dtype in ipairs{"f32", "f64"} do
        local most = dtype == "f32" and 2 ^ 24 or 2 ^ 53
        for base = 2, 12 do
            local powers, exponents = {}, {}
            for k = 0, 40 do
                if base ^ k > most then break end
                powers[k + 1], exponents[k + 1] = base ^ k, k
            end
            local A = vec(powers, {dtype = dtype})
            equals(log(A, base), exponents, base .. " " .. dtype)
            equals(log(A, full(A.rows, base, {dtype = dtype})), exponents)
        end
    end
    equals(log(8, vec{2, 8, 64}), {3, 1, 0.5})
    equals(log(mat{{8}, {9}}, mat{{2, 3}})[":, 1"], {3, t.single(math.log(9, 2))})
    equals(vec{8, 4}:log_(2), {3, 2})
end

function TestSecond:test_atan_of_two()
    for _, p in ipairs{{1, 2}, {-1, -2}, {0.0, -1}, {-0.0, -1}, {0, 0}, {3, -inf}} do
        local y, x = p[1], p[2]
        lu.assertTrue(t.same(atan(y, x), math.atan(y, x)))
        equals(atan(vec({y}, {dtype = "f64"}), x), {math.atan(y, x)}, nil, 1)
        equals(atan(y, vec({x}, {dtype = "f64"})), {math.atan(y, x)}, nil, 1)
    end
    local Y, X = rand(3, 4, {seed = 1}), rand(3, 4, {seed = 2})
    lu.assertTrue(atan(Y, X) == atan2(Y, X))
    lu.assertTrue(atan(Y, X:row(1)) == atan2(Y, X:row(1)))
    lu.assertTrue(Y:clone():atan_(X) == atan2(Y, X))
    lu.assertEquals(atan(1), math.atan(1))
    raises(function() atan(Y, X.T) end, "shapes differ")
end

-- An argument that is not used is refused.
function TestSecond:test_more_operands_than_there_are()
    for name in pairs(unary) do
        if name ~= "round" and name ~= "log" and name ~= "atan" then
            raises(function() _G[name](1, 2) end, name .. ": 2 arguments", name .. "(A")
            raises(function() _G[name](vec{1}, 2) end, name .. ": 2 arguments")
        end
        raises(function() _G[name](1, 2, 3) end, name)
        raises(function() _G[name](1, {out = zeros(1)}) end, "of numbers write " .. name)
    end
    for name in pairs(binary) do
        raises(function() _G[name](1, 2, 3) end, name .. ": ")
        raises(function() _G[name](vec{1}, 2, 3) end, name .. ": 3 arguments")
        raises(function() _G[name](vec{1}, 2, {}, 3) end, name .. ": 4 arguments")
    end
    raises(function() maximum(1, 2, 3) end, "max(x, y, z)")
    raises(function() clip(5, 0, 1, 2) end, "clip: 4 arguments")
    raises(function() vec{1}:sqrt_(2) end, "sqrt_: 2 arguments", "A:sqrt_()")
    raises(function() vec{1}:add_(2, 3) end, "add_: 3 arguments", "A:add_(B)")
    equals(sqrt(vec{4}, nil), {2})
    lu.assertEquals({sqrt(4, nil), add(1, 2, nil)}, {2, 3})
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

TestDevices = {}

-- Inputs whose results are neither all NaN nor all 1.
local low = {acosh = 1, logaddexp = 0.1, log = 0.01, log2 = 0.01, log10 = 0.01, sqrt = 0,
    gamma = 0.1, lgamma = 3, pow = 0.1}
local high = {asin = 1, acos = 1, atanh = 0.99}

function TestDevices:test_every_operation_agrees_over_odd_shapes()
    if not t.on_gpu then lu.skip("needs a GPU") end
    for _, list in ipairs{unary, binary} do
        for name, entry in pairs(list) do
            for _, shape in ipairs{{1, 1}, {3, 5}, {31, 127}, {65, 33}} do
                for _, dtype in ipairs{"f32", "f64"} do
                    t.agrees(function()
                        local how = {seed = 1, dtype = dtype,
                            low = low[name] or -5,
                            high = high[name] or 5}
                        local A = rand(shape[1], shape[2], how)
                        how.seed = 2
                        local B = rand(shape[2], shape[1], how).T
                        if list == unary then return _G[name](A) end
                        return _G[name](A, B)
                    end, name .. " " .. dtype, (entry[2] or 0) * 4)
                end
            end
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
