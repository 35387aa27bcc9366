-- Random numbers of many distributions: how far their sorted values are from
-- what the distribution says (Kolmogorov and Smirnov), how often whole numbers
-- come (chi-squared), moments, edges of parameters. Seeds are fixed, so what
-- passes once passes always.
local lu = require "luaunit"
local t = require "common"
local equals, raises, near, inf, nan = t.equals, t.raises, t.near, t.inf, t.nan
local N = 20000

local function options(seed, dtype)
    return {seed = seed, dtype = dtype or "f64", device = t.device}
end

-- --- distribution functions -------------------------------------------------

-- The lower incomplete gamma function over the whole: a series, or Lentz's
-- continued fraction of the rest.
local function gamma_share(a, x)
    if x <= 0 then return 0 end
    local scale = math.exp(a * math.log(x) - x - lgamma(a))
    if x < a + 1 then
        local sum, term, k = 1 / a, 1 / a, a
        repeat
            k = k + 1
            term = term * x / k
            sum = sum + term
        until term < sum * 1e-15
        return sum * scale
    end
    local b, c, d = x + 1 - a, 1e300, 1 / (x + 1 - a)
    local h = d
    for i = 1, 500 do
        local an = -i * (i - a)
        b = b + 2
        d = 1 / (an * d + b)
        c = b + an / c
        h = h * d * c
        if math.abs(d * c - 1) < 1e-15 then break end
    end
    return 1 - scale * h
end

-- The incomplete beta function over the whole, by Lentz's continued fraction.
local function beta_share(a, b, x)
    if x <= 0 then return 0 end
    if x >= 1 then return 1 end
    if x > (a + 1) / (a + b + 2) then return 1 - beta_share(b, a, 1 - x) end
    local front = math.exp(lgamma(a + b) - lgamma(a) - lgamma(b) +
        a * math.log(x) + b * math.log(1 - x)) / a
    local c, d = 1, 1 / (1 - (a + b) * x / (a + 1))
    local h = d
    for m = 1, 500 do
        local even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + even * d)
        c = 1 + even / c
        h = h * d * c
        local odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + odd * d)
        c = 1 + odd / c
        h = h * d * c
        if math.abs(d * c - 1) < 1e-15 then break end
    end
    return front * h
end

local function normal_share(x)
    return erfc(-x / math.sqrt(2)) / 2
end

local function student_share(nu)
    return function(x)
        local half = beta_share(nu / 2, 0.5, nu / (nu + x * x)) / 2
        return x > 0 and 1 - half or half
    end
end

-- The largest distance between the share of values below x and what `share`
-- says, times sqrt(n), is above 1.95 in 1 of 1000 samples.
local function check_fit(X, share, what)
    local list = sort(X:flatten():to "cpu"):totable()
    local n, worst = #list, 0
    for i, x in ipairs(list) do
        local p = share(x)
        worst = math.max(worst, math.abs(p - i / n), math.abs(p - (i - 1) / n))
    end
    lu.assertTrue(worst * math.sqrt(n) < 1.95,
        ("%s: %g"):format(what, worst * math.sqrt(n)))
end

-- Of whole numbers: the chi-squared statistic of those expected 10 times or
-- more, the others together, is above mean + 4.5 deviations in 1 of 1000 or so.
local function check_counts(X, chance, first, last, what)
    local seen, others, n = {}, 0, X.size
    for _, k in ipairs(X:flatten():totable()) do
        lu.assertEquals(k, math.floor(k), what)
        seen[k] = (seen[k] or 0) + 1
    end
    local sum, count, rest, total = 0, 0, n, 0
    for k = first, last do
        local expected = n * chance(k)
        if expected >= 10 then
            local found = seen[k] or 0
            sum = sum + (found - expected) ^ 2 / expected
            count, rest, total = count + 1, rest - found, total + expected
        end
    end
    others = n - total
    if others >= 10 then
        sum, count = sum + (rest - others) ^ 2 / others, count + 1
    end
    local freedom = math.max(count - 1, 1)
    lu.assertTrue(sum < freedom + 4.5 * math.sqrt(2 * freedom),
        ("%s: %g of %d"):format(what, sum, freedom))
end

-- --- by formulas ------------------------------------------------------------

TestContinuous = {}

function TestContinuous:test_exponential()
    for _, scale in ipairs{0.01, 1, 70} do
        check_fit(exponential(scale, N, options(1)), function(x)
            return 1 - math.exp(-x / scale)
        end, "scale " .. scale)
    end
    equals(exponential(0, 3, options(1)), {0, 0, 0})
    lu.assertTrue(exponential(2, N, options(3)):ge(0):all())
end

function TestContinuous:test_lognormal()
    check_fit(lognormal(1, 0.5, N, options(2)), function(x)
        return normal_share((math.log(x) - 1) / 0.5)
    end, "lognormal")
    near(max(lognormal(2, 0, 5, options(2))), math.exp(2), 1e-12)
end

function TestContinuous:test_student()
    for seed, nu in ipairs{0.7, 1, 2, 5, 40} do
        check_fit(student(nu, N, options(seed)), student_share(nu), "nu " .. nu)
    end
    check_fit(student(inf, N, options(9)), normal_share, "normal")
end

function TestContinuous:test_gamma()
    for seed, shape in ipairs{0.05, 0.3, 1, 1.5, 4, 300} do
        check_fit(randgamma(shape, 2, N, options(seed)), function(x)
            return gamma_share(shape, x / 2)
        end, "shape " .. shape)
    end
    local large = randgamma(1e12, 1, N, options(8))
    near(mean(large), 1e12, 1e-7)
    near(std(large), 1e6, 0.05)
    -- what is too small for f64 is 0
    local tiny = randgamma(1e-9, 1, 100, options(8))
    lu.assertTrue((tiny:ge(0) & tiny:lt(1e-100)):all())
end

function TestContinuous:test_chi2()
    for seed, k in ipairs{0.5, 1, 2, 9} do
        check_fit(chi2(k, N, options(seed)), function(x)
            return gamma_share(k / 2, x / 2)
        end, "k " .. k)
    end
end

function TestContinuous:test_beta()
    for seed, ab in ipairs{{0.5, 0.5}, {1, 1}, {2, 5}, {0.2, 3}, {80, 20}} do
        check_fit(beta(ab[1], ab[2], N, options(seed)), function(x)
            return beta_share(ab[1], ab[2], x)
        end, "beta " .. ab[1] .. " " .. ab[2])
    end
    -- nearly a coin, whose sides are as likely as a and b say
    local coin = beta(1e-5, 3e-5, N, options(6))
    lu.assertTrue((coin:lt(1e-9) | coin:gt(1 - 1e-9)):to("cpu"):f64():mean() > 0.99)
    near(mean(coin), 0.25, 0.05)
    near(mean(beta(1e-250, 1e-250, N, options(7))), 0.5, 0.05)
end

function TestContinuous:test_f32()
    check_fit(exponential(1, N, options(1, "f32")), function(x)
        return 1 - math.exp(-x)
    end, "f32")
    check_fit(randgamma(2.5, 1, N, options(1, "f32")), function(x)
        return gamma_share(2.5, x)
    end, "f32")
    lu.assertEquals(student(3, 2, options(1, "f32")).dtype, "f32")
end

-- --- whole numbers ----------------------------------------------------------

local function poisson_chance(mean)
    return function(k)
        return math.exp(k * math.log(mean) - mean - lgamma(k + 1))
    end
end

local function binomial_chance(n, p)
    return function(k)
        return math.exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) +
            k * math.log(p) + (n - k) * math.log(1 - p))
    end
end

local function same_everywhere(draw, what)
    if not t.on_gpu then return end
    lu.assertTrue(draw(t.device):to "cpu" == draw "cpu", what)
end

TestWhole = {}

function TestWhole:test_poisson()
    for seed, mean in ipairs{0.02, 0.9, 4, 30, 700} do
        local X = poisson(mean, N, options(seed))
        check_counts(X, poisson_chance(mean), 0, math.floor(3 * mean + 30),
            "mean " .. mean)
        local Y = poisson(mean * ones(N, options()), options(seed + 20))
        check_counts(Y, poisson_chance(mean), 0, math.floor(3 * mean + 30),
            "means " .. mean)
        same_everywhere(function(d)
            return poisson(mean, 1000, {seed = 5, device = d})
        end, "poisson")
        same_everywhere(function(d)
            return poisson(mean * ones(1000, {device = d}), {seed = 5})
        end, "poisson of a matrix")
    end
end

-- Normal ones nearly, to which half a step more is added.
local function check_nearly_normal(X, mean, deviation, what)
    local u = rand(X.size, {seed = 99, dtype = "f64", device = t.device})
    check_fit((X - mean + u - 0.5) / deviation, normal_share, what)
end

function TestWhole:test_large_numbers_are_nearly_normal()
    for seed, mean in ipairs{1e8, 1e11, 1e15} do
        check_nearly_normal(poisson(mean, N, options(seed)), mean,
            math.sqrt(mean), "mean " .. mean)
    end
    for seed, n in ipairs{1e9, 1e12, 1e15} do
        check_nearly_normal(binomial(n, 0.25, N, options(seed)), n / 4,
            math.sqrt(n * 3 / 16), "trials " .. n)
    end
end

function TestWhole:test_large_means()
    local X = poisson(1e14, N, options(1))
    near(mean(X), 1e14, 1e-9)
    near(std(X), 1e7, 0.03)
    near(std(poisson(1e8, N, options(2))), 1e4, 0.03)
    lu.assertEquals(max(poisson(0, 10, options(2))), 0)
end

function TestWhole:test_binomial()
    for seed, np in ipairs{{1, 0.5}, {10, 0.3}, {10, 0.9}, {200, 0.5}, {3000, 0.01},
        {60, 0.8}} do
        local n, p = np[1], np[2]
        check_counts(binomial(n, p, N, options(seed)), binomial_chance(n, p), 0,
            n, n .. " times " .. p)
        check_counts(binomial(n * ones(N, options()), p, options(seed + 20)),
            binomial_chance(n, p), 0, n, "each of " .. n .. " times " .. p)
        same_everywhere(function(d)
            return binomial(n, p, 1000, {seed = 5, device = d})
        end, "binomial")
    end
    equals(binomial(7, vec({0, 1, 0}, {device = t.device})), {0, 7, 0})
    equals(binomial(9, 1, 2, options(1)), {9, 9})
    equals(binomial(9, 0, 2, options(1)), {0, 0})
    equals(binomial(0, 0.5, 2, options(1)), {0, 0})
    local X = binomial(1e14, 0.25, N, options(1))
    near(mean(X), 2.5e13, 1e-8)
    near(std(X), math.sqrt(1e14 * 3 / 16), 0.03)
end

function TestWhole:test_categorical()
    local p = vec({0, 3, 0, 1, 4, 0}, {device = t.device})
    local chances = {0, 3 / 8, 0, 1 / 8, 1 / 2, 0}
    local X = categorical(p, 100, 200, options(1))
    lu.assertEquals(X.shape, {100, 200})
    check_counts(X, function(k) return chances[k] end, 1, 6, "categorical")
    lu.assertEquals({min(X), max(X)}, {2, 5})
    same_everywhere(function(d)
        return categorical(p:to(d), 1000, {seed = 5})
    end, "categorical")
    local P = mat({{1, 0, 0}, {0, 2, 2}, {0, 0, 9}}, {device = t.device})
    local one = categorical(P, options(2)):totable()
    lu.assertEquals({one[1], one[3]}, {1, 3})
    local many = categorical(P, 5000, options(3))
    lu.assertEquals(many.shape, {3, 5000})
    check_counts(many[2], function(k) return k > 1 and 0.5 or 0 end, 1, 3, "rows")
    equals(categorical(P, 2, options(3))["1:3:2, :"], {{1, 1}, {3, 3}})
end

-- --- choosing ---------------------------------------------------------------

TestChoosing = {}

function TestChoosing:test_with_replacement()
    check_counts(choice(7, N, options(1)), function() return 1 / 7 end, 1, 7, "choice")
    local v = vec({10, 20, 30}, {device = t.device})
    local X = choice(v, N, {weights = vec({1, 0, 3}, {device = t.device}), seed = 2})
    check_counts(X, function(k) return ({[10] = 0.25, [30] = 0.75})[k] or 0 end, 10,
        30, "weights")
    lu.assertEquals(X.dtype, "f32")
    lu.assertEquals(choice(mat({{1, 2}, {1, 2}}, {device = t.device}), 3).shape, {3, 2})
    equals(choice(mat({{1, 2}, {1, 2}}, {device = t.device})), {1, 2})
    lu.assertEquals(math.type(choice(1)), "integer")
    lu.assertEquals(choice(vec({4}, {device = t.device})), 4)
    lu.assertEquals(choice(5, 0).size, 0)
end

function TestChoosing:test_without_replacement()
    for _, nk in ipairs{{6, 6}, {6, 1}, {40, 9}, {1000, 600}, {5000, 1000}, {1, 1}} do
        local places = choice(nk[1], nk[2], {replace = false, seed = 3,
            device = t.device})
        lu.assertEquals(places.size, nk[2])
        local seen = {}
        for _, k in ipairs(places:totable()) do
            lu.assertTrue(k >= 1 and k <= nk[1] and not seen[k])
            seen[k] = true
        end
    end
    -- first and last places are of all numbers alike
    local first, last, all = {}, {}, {}
    for i = 1, 3000 do
        local places = choice(12, 3, {replace = false, seed = i,
            device = "cpu"}):totable()
        first[i], last[i] = places[1], places[3]
    end
    local function even() return 1 / 12 end
    check_counts(vec(first), even, 1, 12, "first")
    check_counts(vec(last), even, 1, 12, "last")
    same_everywhere(function(d)
        return choice(1000, 50, {replace = false, seed = 5, device = d})
    end, "choice")
    -- a heavier one comes first as often as its weight says
    for i = 1, 3000 do
        all[i] = choice(4, 2, {replace = false, weights = vec({1, 0, 2, 5},
            {device = "cpu"}), seed = i, device = "cpu"})[1]
    end
    check_counts(vec(all), function(k) return ({1, 0, 2, 5})[k] / 8 end, 1, 4, "first")
end

function TestChoosing:test_shuffle()
    local v = range(1, 100, 1, {device = t.device})
    local w = shuffle(v, {seed = 1})
    lu.assertTrue(sort(w) == v and not (w == v))
    local A = range(1, 12, 1, {device = t.device}):reshape(4, 3)
    local B = shuffle(A, {seed = 2})
    lu.assertTrue(B:sum(1) == A:sum(1))
    equals(B - B[{{}, {1, 1}}], {{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}})
    lu.assertTrue(shuffle(A, 2, {seed = 2}):sum(2) == A:sum(2))
    local first = {}
    for i = 1, 3000 do first[i] = shuffle(range(1, 5, 1, {device = "cpu"}), {seed = i})[1] end
    check_counts(vec(first), function() return 1 / 5 end, 1, 5, "shuffle")
end

-- --- normal vectors ---------------------------------------------------------

TestVectors = {}

function TestVectors:test_means_and_covariances()
    local S = mat({{4, 1, 0}, {1, 2, -1}, {0, -1, 3}}, {dtype = "f64",
        device = t.device})
    local mu = vec({1, -2, 5}, {dtype = "f64", device = t.device})
    local X = mvnrnd(mu, S, 50000, {seed = 1})
    lu.assertEquals(X.shape, {50000, 3})
    lu.assertEquals(X.dtype, "f64")
    lu.assertTrue((X:mean(1) - mu:row()):abs():max() < 0.04)
    lu.assertTrue((cov(X) - S):abs():max() < 0.1)
    for j = 1, 3 do
        check_fit((X:col(j)[{{1, N}, {}}] - mu[j]) / math.sqrt(S(j, j)),
            normal_share, "component " .. j)
    end
end

function TestVectors:test_singular_ones()
    local one = {device = t.device}
    local X = mvnrnd(vec({0, 0}, one), mat({{1, 2}, {2, 4}}, one), 100)
    lu.assertTrue((X:col(2) - 2 * X:col(1)):abs():max() < 1e-5)
    equals(mvnrnd(vec({3, 4}, one), zeros(2, 2, one), 2), {{3, 4}, {3, 4}})
    lu.assertEquals(mvnrnd(vec({3, 4}, one), eye(2, one), 0).shape, {0, 2})
end

function TestVectors:test_mistakes()
    local one = {device = t.device}
    local mu = vec({1, 2}, one)
    raises(function() mvnrnd(mu, eye(3, one), 2) end, "vector 2", "3x3")
    raises(function() mvnrnd(mu, mat({{1, 2}, {0, 1}}, one), 2) end, "symmetric")
    raises(function() mvnrnd(mu, mat({{1, 2}, {2, 1}}, one), 2) end,
        "positive semidefinite")
    raises(function() mvnrnd(mu, mat({{1, nan}, {nan, 1}}, one), 2) end, "finite")
end

-- --- calls ------------------------------------------------------------------

TestCalls = {}

function TestCalls:test_shapes_and_parameters_that_differ()
    local one = {device = t.device}
    lu.assertEquals(poisson(3, 2, 4).shape, {2, 4})
    lu.assertEquals(poisson(3, 4).shape, {4})
    lu.assertEquals(exponential(mat({{1, 2, 3}}, one), 5, 3).shape, {5, 3})
    lu.assertEquals(randgamma(mat({{1}, {2}}, one), mat({{1, 2, 3}}, one)).shape,
        {2, 3})
    lu.assertEquals(beta(ones(3, one), 2).shape, {3})
    for _, f in ipairs{exponential, poisson, chi2, student} do
        lu.assertEquals(f(2, 0, one).size, 0)
        lu.assertEquals(f(2, 0, 3, one).cols, 3)
        lu.assertEquals(f(ones(2, 2, one)).device, ones(2, one).device)
        lu.assertEquals(f(ones(2, {dtype = "f64", device = t.device})).dtype, "f64")
    end
    -- each element has its own parameter
    local scale = vec({1, 1e3, 1e6}, {dtype = "f64", device = t.device})
    for name, X in pairs{
        exponential = exponential(scale:row(), 2000, 3, options(1)),
        randgamma = randgamma(scale:row(), 1, 2000, 3, options(1)),
        poisson = poisson(scale:row(), 2000, 3, options(1)),
        binomial = binomial(2 * scale:row(), 0.5, 2000, 3, options(1))} do
        lu.assertTrue((X:mean(1) / scale:row() - 1):abs():max() < 0.1, name)
    end
end

function TestCalls:test_seeds()
    for name, f in pairs{exponential = exponential, poisson = poisson,
        student = student, chi2 = chi2} do
        lu.assertTrue(f(3, 50, options(1)) == f(3, 50, options(1)), name)
        lu.assertFalse(f(3, 50, options(1)) == f(3, 50, options(2)), name)
        seed(7)
        local a, b = f(3, 50, {device = t.device}), rand(3, {device = t.device})
        seed(7)
        local c, d = f(3, 50, {device = t.device}), rand(3, {device = t.device})
        lu.assertTrue(a == c and b == d, name)
        lu.assertFalse(a == f(3, 50, {device = t.device}), name)
        -- one number of the generator, whatever it takes
        seed(7, 1)
        lu.assertTrue(rand(3, {device = t.device}) == b, name)
    end
end

-- Streams of a call, and those of other calls, have nothing in common.
function TestCalls:test_streams_are_apart()
    local steps = require "lumat.statistics_steps"
    local list = {}
    for call = 0, 1 do
        for stream = 0, 3 do
            list[#list + 1] = steps.draw(stream % 2 == 0 and "normal" or "uniform",
                1, call, stream, "f64", t.device, N):col()
        end
    end
    local R = corr(hcat(table.unpack(list))) - eye(#list, options())
    lu.assertTrue(R:abs():max() < 0.035)
    lu.assertTrue(steps.draw("uniform", 3, 0, 0, "f64", t.device, 9) ==
        rand(9, options(3)))
end

function TestCalls:test_mistakes()
    local one = {device = t.device}
    raises(function() poisson(3) end, "the number of results is missing")
    raises(function() poisson(-1, 3) end, "lambda is -1")
    raises(function() poisson(nan, 3) end, "lambda is NaN")
    raises(function() poisson(inf, 3) end, "lambda is Inf")
    raises(function() poisson(vec({1, -2}, one)) end, "elements of lambda")
    raises(function() poisson(1e9, 3, {dtype = "f32"}) end, 'dtype="f64"')
    raises(function() poisson(vec({1e9}, one)) end, 'dtype="f64"')
    raises(function() binomial(2.5, 0.5, 3) end, "trials is 2.5", "whole")
    raises(function() binomial(2, 1.5, 3) end, "p is 1.5", "from 0 to 1")
    raises(function() exponential(-1, 3) end, "scale is -1")
    raises(function() exponential(inf, 3) end, "scale is Inf")
    raises(function() randgamma(0, 1, 3) end, "shape is 0")
    raises(function() beta(1, nan, 3) end, "b is NaN")
    raises(function() student(0, 3) end, "nu is 0")
    raises(function() lognormal(0, -1, 3) end, "sigma is -1")
    if t.on_gpu then
        raises(function() exponential(ones(3, one), {device = "cpu"}) end,
            "the parameters are on cuda")
    end
    raises(function() exponential(ones(3, one), 4) end, "a parameter is vector 3")
    raises(function() exponential(1, 3, {dtype = "bool"}) end, "f32 or f64")
    raises(function() exponential(1, 3, {scale = 1}) end, "scale")
    raises(function() categorical(vec({0, 0}, one), 3) end, "all 0")
    raises(function() categorical(mat({{1, 1}, {0, 0}}, one)) end, "row 2")
    raises(function() categorical(vec({1, -1}, one), 3) end, "from 0 on")
    raises(function() categorical(vec({1, 1}, one)) end, "number of results")
    raises(function() choice(3, 4, {replace = false}) end, "4 of 3")
    raises(function()
        choice(3, 2, {replace = false, weights = vec({1, 0, 0}, one),
            device = t.device})
    end, "2 of 1", "weight above 0")
    raises(function() choice(3, 4, {weights = vec({1, 1}, one)}) end, "weights are")
    raises(function() shuffle(vec({1, 2}, one), 2) end, "no axis 2")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
