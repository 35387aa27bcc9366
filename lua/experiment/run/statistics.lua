-- Medians and their 95 % intervals, for which no shape of the noise is assumed;
-- and the distributions that comparisons rest on: the normal one, Student's t,
-- and that of Mann and Whitney's U.
local library = ...
local ipairs = ipairs
local sort = table.sort
local atan, cos, exp, floor, huge, larger, log, pi, sin, smaller, sqrt =
    math.atan, math.cos, math.exp, math.floor, math.huge, math.max, math.log,
    math.pi, math.sin, math.min, math.sqrt
local statistics, distributions = {}, {}

-- --- medians ---------------------------------------------------------------
-- Everything goes by order.

-- Samples from which their order gives a 95 % interval of the median.
statistics.fewest = 6

function statistics.sorted(list)
    local copy = {}
    for i, x in ipairs(list) do copy[i] = x end
    sort(copy)
    return copy
end

local function middle(sorted)
    local n = #sorted
    return n % 2 == 1 and sorted[(n + 1) // 2] or
        (sorted[n // 2] + sorted[n // 2 + 1]) / 2
end

function statistics.median(list)
    return middle(statistics.sorted(list))
end

-- The r for which the median lies between the r-th smallest and the r-th
-- largest of n samples with a probability of 95 % or more: the largest with
-- P(B <= r - 1) <= 2.5 %, B of n fair coins (Conover, Practical Nonparametric
-- Statistics, 3.2). One where six samples are not there: then it is less.
local ranks = {}
local function rank_of(n)
    if ranks[n] then return ranks[n] end
    local r
    if n > 500 then -- where the normal distribution serves
        r = floor(n / 2 - 0.98 * sqrt(n))
    else
        local term, sum = 0.5 ^ n, 0.5 ^ n
        r = 0
        while sum <= 0.025 do
            r = r + 1
            term = term * (n - r + 1) / r
            sum = sum + term
        end
    end
    ranks[n] = larger(r, 1)
    return ranks[n]
end

-- Median, low and high of its 95 % interval.
function statistics.interval(list)
    local sorted = statistics.sorted(list)
    local r = rank_of(#sorted)
    return middle(sorted), sorted[r], sorted[#sorted + 1 - r]
end

-- b / a - 1 of two medians with their intervals {median, low, high}, all
-- above 0, and its own interval: on logarithms, by the distances of the
-- limits (Zou and Donner, Construction of confidence limits about effect
-- measures, Statistics in Medicine 27, 2008).
function statistics.change(a, b)
    local middle_a, middle_b = log(a[1]), log(b[1])
    local d = middle_b - middle_a
    local below = sqrt((middle_b - log(b[2])) ^ 2 + (log(a[3]) - middle_a) ^ 2)
    local above = sqrt((log(b[3]) - middle_b) ^ 2 + (middle_a - log(a[2])) ^ 2)
    return exp(d) - 1, exp(d - below) - 1, exp(d + above) - 1
end

local NORMAL_DF = 300 -- degrees of freedom from which t is as good as normal
local EXACT = 2500 -- pairs of samples up to which U is counted out

-- --- Student's t ------------------------------------------------------------

-- How likely |T| > t >= 0 is for a whole number of degrees of freedom:
-- Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 4.
function distributions.t_beyond(t, df)
    if df > NORMAL_DF then return library.erfc(t / sqrt(2)) end
    local angle = atan(t / sqrt(df))
    local c, s = cos(angle), sin(angle)
    local is_odd = df % 2
    local term = is_odd == 1 and c or 1
    local sum = df > 1 and term or 0
    for k = 2 + is_odd, df - 2, 2 do
        term = term * c * c * (k - 1) / k
        sum = sum + term
    end
    local within = s * sum
    if is_odd == 1 then within = 2 / pi * (angle + within) end
    return larger(0, 1 - within)
end

-- The t that T exceeds with the probability `tail`.
local quantiles = {}
function distributions.t_quantile(tail, df)
    df = smaller(df, NORMAL_DF + 1)
    quantiles[df] = quantiles[df] or {}
    if quantiles[df][tail] then return quantiles[df][tail] end
    local low, high = 0, 1
    while distributions.t_beyond(high, df) / 2 > tail and high < 1e9 do
        high = 2 * high
    end
    for _ = 1, 60 do
        local t = (low + high) / 2
        if distributions.t_beyond(t, df) / 2 > tail then low = t
        else high = t end
    end
    quantiles[df][tail] = high
    return high
end

-- The same of the normal distribution.
function distributions.normal_quantile(tail)
    return distributions.t_quantile(tail, NORMAL_DF + 1)
end

-- --- variances --------------------------------------------------------------

-- Digamma and trigamma of x > 0: up to where their series serve, and these
-- (Abramowitz and Stegun, 6.3.18 and 6.4.12).
function distributions.digamma(x)
    local sum = 0
    while x < 10 do
        sum, x = sum - 1 / x, x + 1
    end
    local y = 1 / (x * x)
    return sum + log(x) - 0.5 / x -
        y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))
end

function distributions.trigamma(x)
    local sum = 0
    while x < 10 do
        sum, x = sum + 1 / (x * x), x + 1
    end
    local y = 1 / (x * x)
    return sum + 1 / x + y / 2 +
        y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))
end

-- The x > 0 whose trigamma is y > 0; it falls from infinity to 0.
local function inverse_trigamma(y)
    local low, high = 0, 1
    while distributions.trigamma(high) > y and high < 1e9 do high = 2 * high end
    for _ = 1, 60 do
        local x = (low + high) / 2
        if distributions.trigamma(x) > y then low = x else high = x end
    end
    return high
end

-- What variances above 0 with their degrees of freedom tell of those they were
-- drawn from: how many degrees of freedom that is worth, and the usual one
-- (Smyth, Linear models and empirical Bayes methods, Statistical Applications
-- in Genetics and Molecular Biology 3, 2004, section 6.2). Where they differ by
-- no more than chance, infinitely many.
function distributions.common_variance(variances, dfs)
    local logs, middle, expected = {}, 0, 0
    local n = #variances
    for i, v in ipairs(variances) do
        local half = dfs[i] / 2
        logs[i] = log(v) - distributions.digamma(half) + log(half)
        middle = middle + logs[i] / n
        expected = expected + distributions.trigamma(half) / n
    end
    local spread = 0
    for _, x in ipairs(logs) do spread = spread + (x - middle) ^ 2 / (n - 1) end
    if n < 2 or spread <= expected then return huge, exp(middle) end
    local half = inverse_trigamma(spread - expected)
    return 2 * half, exp(middle + distributions.digamma(half) - log(half))
end

-- --- Mann and Whitney's U ---------------------------------------------------

-- P(U <= u) for u from 0 on: the coefficients of the Gaussian binomial of
-- n + m over n, each of its factors multiplied in and divided out in turn.
local counted = {}
local function cumulative(n, m)
    local key = n .. " " .. m
    if counted[key] then return counted[key] end
    local c, top = {[0] = 1.0}, n * m
    for u = 1, top do c[u] = 0.0 end
    for i = 1, n do
        for u = top, m + i, -1 do c[u] = c[u] - c[u - m - i] end
        for u = i, top do c[u] = c[u] + c[u - i] end
    end
    local total, sum = 0, 0
    for u = 0, top do total = total + c[u] end
    for u = 0, top do
        sum = sum + c[u]
        c[u] = sum / total
    end
    counted[key] = c
    return c
end

-- The largest r with P(U <= r - 1) <= tail for n and m samples of one
-- distribution (0: there is none), and that probability.
function distributions.rank(n, m, tail)
    if n * m > EXACT then -- the normal approximation, with its half
        local sigma = sqrt(n * m * (n + m + 1) / 12)
        local z = distributions.normal_quantile(tail)
        return larger(1, floor(n * m / 2 + 0.5 - z * sigma)), tail
    end
    local c, r = cumulative(n, m), 0
    while c[r] <= tail do r = r + 1 end
    return r, r > 0 and c[r - 1] or 0
end

-- --- many tests at once -----------------------------------------------------

-- What the p of several tests are worth together: by Benjamini and Hochberg,
-- Controlling the false discovery rate, Journal of the Royal Statistical
-- Society B 57, 1995. Where nothing is true, one of them is below q with the
-- probability q.
function distributions.together(list)
    local order, adjusted, least = {}, {}, 1
    for i in ipairs(list) do order[i] = i end
    table.sort(order, function(i, j) return list[i] < list[j] end)
    for k = #order, 1, -1 do
        least = smaller(least, list[order[k]] * #order / k)
        adjusted[order[k]] = least
    end
    return adjusted
end

statistics.distributions = distributions

return statistics
