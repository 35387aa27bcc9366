-- How exact the elementwise functions are, on whatever device: f32 against
-- f64 on the CPU, which is exact beside it; f64 on a GPU against the CPU, whose
-- own f64 is held to its bounds in long double by test_cpu_ops.c.
local lu = require "luaunit"
local t = require "common"
local inf = t.inf

local COUNT = 20000
local host = {dtype = "f64", device = "cpu"}

-- In units in the last place. GPUs: maximum errors of the CUDA C++ Programming
-- Guide, which are of the rounded value; f32's gamma and lgamma go through f64.
local ON_CPU = setmetatable({gamma = 2, lgamma = 2, erfc = 2, logaddexp = 2},
    {__index = function() return 1 end})
local ON_GPU = {
    f32 = {cbrt = 1, hypot = 3, exp = 2, exp2 = 2, expm1 = 1, log = 1,
        log2 = 1, log10 = 2, log1p = 1, sin = 2, cos = 2, tan = 4, asin = 2,
        acos = 2, atan = 2, atan2 = 3, sinh = 3, cosh = 2, tanh = 2,
        asinh = 3, acosh = 4, atanh = 3, pow = 4, erf = 2, erfc = 4,
        gamma = 1, lgamma = 1, logaddexp = 4, sqrt = 0.5, reciprocal = 0.5,
        div = 0.5},
    f64 = {cbrt = 1, hypot = 2, exp = 1, exp2 = 1, expm1 = 1, log = 1,
        log2 = 1, log10 = 1, log1p = 1, sin = 2, cos = 2, tan = 2, asin = 2,
        acos = 2, atan = 2, atan2 = 2, sinh = 2, cosh = 1, tanh = 1,
        asinh = 3, acosh = 3, atanh = 2, pow = 2, erf = 2, erfc = 5,
        gamma = 10, lgamma = 4, sqrt = 0.5, reciprocal = 0.5, div = 0.5},
}

-- --- arguments ------------------------------------------------------------

local seed = 0
local function uniform(low, high)
    seed = seed + 1
    return rand(COUNT, {dtype = "f64", device = "cpu", seed = seed, low = low,
        high = high})
end

-- Of both signs, and of every size between 2^low and 2^high.
local function sizes(low, high)
    return exp2(uniform(low, high)) % sign(uniform(-1, 1))
end

-- As many numbers about each of a list.
local function near(list, spread)
    local parts = {}
    for i, x in ipairs(list) do
        parts[i] = uniform(x - spread * math.max(math.abs(x), 1),
            x + spread * math.max(math.abs(x), 1))
    end
    return table.unpack(parts)
end

local function joined(...)
    local parts = {...}
    local all = zeros(#parts * COUNT, host)
    for i, part in ipairs(parts) do
        all[{{(i - 1) * COUNT + 1, i * COUNT}}] = part
    end
    return all
end

local roots = {-2.4570247382208, -2.7476826467274, -3.1435808883500,
    -3.9552942848586, -4.0393618395141, -4.9915445470421, -5.0082181682257,
    1, 2}
local ends = {f32 = {88.7228, 89.416, 35.04, 128, -87.34, -103.97, 9.19, 10.05},
    f64 = {709.7827128934, 710.4758600739, 171.6243769563, 1024, -708.396,
        -745.13, 26.543, 27.22}}

local function arguments(dtype)
    local most = dtype == "f32" and 127 or 1022
    return joined(uniform(-1, 1), uniform(-10, 10), uniform(-200, 200),
        sizes(-most - 20, most), sizes(-20, 20), near(roots, 1e-6),
        near(ends[dtype], 1e-6))
end

-- --- distance -------------------------------------------------------------

-- In units of the last place, of f64 vectors on the CPU. Equal to the rounded
-- value is no distance; nor is an overflow within the last unit.
local function distances(got, exact, dtype)
    local rounded = dtype == "f32" and exact:f32() or exact
    local above = nextafter(abs(rounded), inf)
    local unit = above:f64() - abs(rounded):f64()
    rounded = rounded:f64()
    local most = dtype == "f32" and 2.0 ^ 128 * (1 - 2.0 ^ -23) or
        2.0 ^ 1023 * (2 - 2.0 ^ -51)
    local same = (got:eq(rounded) & signbit(got):eq(signbit(rounded))) |
        (isnan(got) & isnan(rounded)) |
        (isinf(got) & abs(rounded):ge(most) & signbit(got):eq(signbit(rounded)))
    local off = abs(got - exact) / unit
    off = where(isnan(off), inf, off)
    off = where(got:eq(0) & rounded:eq(0), inf, off)
    return where(same, 0, off)
end

local function check(name, dtype, bound, x, y)
    local function on(options, v)
        return v and v:to(options.device):clone() and
            (options.dtype == "f64" and v:to(options.device):f64() or
                v:to(options.device):f32())
    end
    local there = {dtype = dtype, device = t.device}
    local f = _G[name]
    local got, exact
    if y then
        got = f(on(there, x), on(there, y)):to("cpu"):f64()
        exact = f(x, y)
    else
        got, exact = f(on(there, x)):to("cpu"):f64(), f(x)
    end
    local off = distances(got, exact, dtype)
    local worst = argmax(off)
    if not (off[worst] <= bound) then
        lu.fail(("%s %s(%.17g%s) = %.17g, not %.17g: %.3g units, of %g")
            :format(dtype, name, x[worst], y and (", %.17g"):format(y[worst]) or
                "", got[worst], exact[worst], off[worst], bound))
    end
end

-- What is compared: f32 everywhere, f64 where there is a GPU.
local function each_type(name, f)
    f("f32", t.on_gpu and ON_GPU.f32[name] + 0.5 or ON_CPU[name] + 1e-3)
    if t.on_gpu and ON_GPU.f64[name] then
        f("f64", ON_GPU.f64[name] + 1.5)
    end
end

-- --- tests ----------------------------------------------------------------

TestAccuracy = {}

for name in ("sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin " ..
    "acos atan sinh cosh tanh asinh acosh atanh erf erfc gamma lgamma " ..
    "reciprocal"):gmatch "%w+" do
    TestAccuracy["test_" .. name] = function()
        each_type(name, function(dtype, bound)
            local x = arguments(dtype)
            if dtype == "f32" then x = x:f32():f64() end
            -- between its roots CUDA gives no bound for f64's
            if name == "lgamma" and dtype == "f64" then
                x = where(x:lt(-2), -x, x)
            end
            check(name, dtype, bound, x)
        end)
    end
end

for name in ("pow hypot atan2 div"):gmatch "%w+" do
    TestAccuracy["test_" .. name] = function()
        each_type(name, function(dtype, bound)
            local x, y = arguments(dtype), arguments(dtype)
            if dtype == "f32" then x, y = x:f32():f64(), y:f32():f64() end
            check(name, dtype, bound, x, y:flip())
            check(name, dtype, bound, abs(x), y)
        end)
    end
end

-- Exponents that are products and roots, beside the same ones given element by
-- element; and in an expression that is one program, as norms are.
function TestAccuracy:test_pow_of_constants()
    local hard = vec({0, -0.0, 1, -1, inf, -inf, 0 / 0, 2.0 ^ -1074, -2.0 ^ -1074,
        2.0 ^ -149, 2.0 ^ -126, 2.0 ^ 127, -2.0 ^ 1023, 1e13, -1e13, 1.5}, host)
    for _, dtype in ipairs{"f32", "f64"} do
        local all = vcat(arguments(dtype):col(), uniform(-2, 2):col(),
            hard:col()):flatten()
        all = dtype == "f32" and all:f32():to(t.device) or all:to(t.device)
        for _, e in ipairs{1, 2, 3, -1, 0.5, -0.5, 4, 0, -3} do
            local got = pow(all, e):to("cpu"):f64()
            local wide = all:to("cpu"):f64()
            local off = distances(got, pow(wide, zeros(#wide, host) + e), dtype)
            -- f64 is compared with another that may be two units off
            local bound = dtype == "f64" and 3 or t.on_gpu and 4.5 or 1.51
            local worst = argmax(off)
            if not (off[worst] <= bound) then
                lu.fail(("%s %.17g^%g = %.17g: %.3g units"):format(dtype,
                    wide[worst], e, got[worst], off[worst]))
            end
        end
    end
    lu.assertAlmostEquals(norm(vec({3, 4, 5}, host), 3), 216 ^ (1 / 3), 1e-12)
end

-- Near its roots, too: exp(x) + exp(y) = 1.
function TestAccuracy:test_logaddexp()
    each_type("logaddexp", function(dtype, bound)
        local y = -exp2(uniform(-20, 6)):f32():f64()
        if t.device == "cpu" then -- a GPU has no more than f64 where they cancel
            check("logaddexp", dtype, bound, log(-expm1(y)):f32():f64(), y)
        end
        local x, z = uniform(-30, 30), uniform(-30, 30)
        check("logaddexp", dtype, bound, x:f32():f64(), z:f32():f64())
    end)
end

-- 15 million doubles below exp's border once gave infinity, and powers did.
function TestAccuracy:test_the_largest()
    local function wide(x) return vec({x}, {dtype = "f64"}) end
    local border = 709.782712893384
    lu.assertIsTrue(exp(wide(border))[1] < inf)
    lu.assertEquals(exp(wide(border + 1e-12))[1], inf)
    local x = border
    for _ = 1, 200 do
        x = nextafter(x, 0)
        lu.assertIsTrue(exp(wide(x))[1] < inf)
    end
    local most = math.maxinteger and 0x1.fffffffffffffp1023
    lu.assertEquals(pow(wide(most), 1)[1], most)
    lu.assertEquals(pow(wide(-most), 1)[1], -most)
    lu.assertEquals(pow(wide(most), 1.0000001)[1], inf)
    lu.assertEquals(pow(wide(2), 1023.5)[1] < inf, true)
    lu.assertIsTrue(sinh(wide(710.4758))[1] < inf)
    lu.assertIsTrue(gamma(wide(171.624))[1] < inf)
end

-- The same bits wherever an element stands, whatever its neighbours are.
function TestAccuracy:test_places_and_neighbours()
    local x = joined(uniform(-3, 3), sizes(-30, 60))
    for _, dtype in ipairs{"f32", "f64"} do
        local v = dtype == "f32" and x:f32():to(t.device) or x:to(t.device)
        local order = v:reshape(200, #v // 200)
        for name in ("sin cos tan exp log tanh gamma erf"):gmatch "%w+" do
            local f = _G[name]
            local whole, parts = f(v), f(order.T).T:reshape(#v)
            local same = whole:eq(parts) | (isnan(whole) & isnan(parts))
            lu.assertIsTrue(all(same), name)
            for i = 1, #v, 4999 do
                local one = f(v[{{i, i}}])[1]
                lu.assertIsTrue(t.same(one, whole[i]), name)
            end
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
