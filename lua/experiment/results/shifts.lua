-- By which factor the samples of one list are above those of another: nothing
-- is assumed of the shape of their noise but that it is alike.
local distributions = require "lumat.distributions"
local statistics = require "lumat.statistics"
local shifts = {}
local ipairs = ipairs
local abs, floor, huge, log, sqrt = math.abs, math.floor, math.huge, math.log,
    math.sqrt
local larger, smaller = math.max, math.min

-- Samples each from which a 95 % interval can be told, by a wide margin.
shifts.fewest = 5

-- --- dependence -------------------------------------------------------------

local WEIGHT = 50 -- samples that outweigh what all lists have in common
local MOST = 0.9 -- correlation that is believed

-- What few samples leave of a correlation of neighbours (Kendall, Note on bias
-- in the estimation of autocorrelation, Biometrika 41, 1954).
local function left_of(n)
    return 1 - smaller(4 / n, 0.6)
end

-- The correlation of the ranks of neighbours and of next but ones.
local function correlations(list)
    local n, place, rank = #list, {}, {}
    for i = 1, n do place[i] = i end
    table.sort(place, function(i, j)
        if list[i] ~= list[j] then return list[i] < list[j] end
        return i < j
    end)
    for r, i in ipairs(place) do rank[i] = r - (n + 1) / 2 end
    local squares, one, two = 0, 0, 0
    for i = 1, n do
        squares = squares + rank[i] ^ 2
        one = one + rank[i] * (rank[i - 1] or 0)
        two = two + rank[i] * (rank[i - 2] or 0)
    end
    local share = left_of(n)
    if list[place[1]] == list[place[n]] then return 0, 0 end
    return (one / squares + 1 / n) / share, (two / squares + 1 / n) / share
end

-- Samples that independent noise would make as good an estimate from.
local function weight_of(n)
    return n * left_of(n) ^ 2
end

-- What is common to the lists of a table, as they come from one machine: the
-- mean correlation of neighbours, and how it falls with their distance.
function shifts.common(lists)
    local one, two, sum, own = 0, 0, 0, {}
    for i, list in ipairs(lists) do
        local r1, r2 = correlations(list)
        local weight = weight_of(#list)
        own[i] = r1
        one, two, sum = one + weight * r1, two + weight * r2, sum + weight
    end
    local r1, r2 = one / (sum + WEIGHT), two / (sum + WEIGHT)
    local falls = r1 > 0 and r2 * r1 / (r1 * r1 + 1 / (sum + WEIGHT)) or 0
    return {own = own, mean = r1, falls = falls}
end

-- How many times the variance of a mean is that of independent samples where
-- the i-th list's are correlated by r, r g, r g² …: 1 + 2 r / (1 - g), after
-- Bartlett (1935), but no more than there are samples: those that are all alike
-- are worth one. r is drawn towards what the other lists have.
function shifts.inflation(common, i, count)
    local weight = weight_of(count)
    local r = (weight * common.own[i] + WEIGHT * common.mean) /
        (weight + WEIGHT)
    r = smaller(larger(r, 0), MOST)
    return smaller(count,
        1 + 2 * r / (1 - smaller(larger(common.falls, r), MOST)))
end

-- --- the shift --------------------------------------------------------------

local function logarithms(list)
    local logs = {}
    for i, x in ipairs(list) do logs[i] = log(x) end
    return statistics.sorted(logs)
end

-- How many y - x of sorted lists are d or below.
local function count_below(a, b, d)
    local count, j = 0, 1
    for i = 1, #a do
        local edge = a[i] + d
        while j <= #b and b[j] <= edge do j = j + 1 end
        count = count + j - 1
    end
    return count
end

-- The largest y - x that is d or below, but for rounding.
local function difference_at(a, b, d)
    local most, j = -huge, 0
    for i = 1, #a do
        local edge = a[i] + d
        while j < #b and b[j + 1] <= edge do j = j + 1 end
        if j > 0 then most = larger(most, b[j] - a[i]) end
    end
    return most > -huge and most or d
end

-- The k-th smallest y - x, by halving: no list of all pairs is needed.
local function nth_difference(a, b, k)
    local low, high = b[1] - a[#a], b[#b] - a[1]
    if count_below(a, b, low) >= k then return low end
    for _ = 1, 60 do
        local d = (low + high) / 2
        if d <= low or d >= high then break end
        if count_below(a, b, d) >= k then high = d else low = d end
    end
    return difference_at(a, b, high)
end

local function middle_difference(a, b)
    local pairs_of = #a * #b
    local d = nth_difference(a, b, pairs_of // 2 + 1)
    if pairs_of % 2 == 1 then return d end
    return (d + nth_difference(a, b, pairs_of // 2)) / 2
end

-- The shift of log(b) from log(a): `by` (Hodges and Lehmann, Estimates of
-- location based on rank tests, Annals of Mathematical Statistics 34, 1963),
-- its standard `error` from the width of its interval (Moses; Hollander and
-- Wolfe, Nonparametric Statistical Methods, 4.3), made larger by `inflation`,
-- and the degrees of freedom `df` that are left. inflation: of the variance.
function shifts.shift(a, b, inflation)
    a, b = logarithms(a), logarithms(b)
    local n, m = #a, #b
    local r, tail = distributions.rank(n, m, 0.025)
    local low = nth_difference(a, b, r)
    local high = nth_difference(a, b, n * m + 1 - r)
    local width = (high - low) / 2
    local t = distributions.t_quantile(tail, n + m - 2)
    local df = floor((n + m) / inflation - 2 + 0.5)
    return {by = middle_difference(a, b), df = larger(df, 2),
        error = sqrt(inflation) * width / t, share = n * m / (n + m)}
end

-- Of few samples all may happen to lie close: a shift whose noise is below
-- what is usual in the table is taken as if so many degrees of freedom told of
-- the usual one (after Smyth; never towards less noise): the fewer the more the
-- noise of the points differs, so that one of them that is all noise does not
-- make the others unsure. Samples that are all the same have none.
local USUAL_DF = 3
function shifts.moderate(list)
    local noisy, variances, dfs = {}, {}, {}
    for _, s in ipairs(list) do
        if s.error > 0 then
            local n = #noisy + 1
            noisy[n], variances[n], dfs[n] = s, s.error ^ 2 * s.share, s.df
        end
    end
    if #noisy < 2 then return end
    local worth, usual = distributions.common_variance(variances, dfs)
    worth = smaller(worth, USUAL_DF)
    for i, s in ipairs(noisy) do
        local moderated = (worth * usual + s.df * variances[i]) /
            (worth + s.df)
        s.error = sqrt(larger(variances[i], moderated) / s.share)
    end
end

-- --- what it says -----------------------------------------------------------

-- How likely a shift as large is where there is none.
function shifts.chance(s)
    if s.error <= 0 then return s.by == 0 and 1 or 0 end
    return distributions.t_beyond(abs(s.by) / s.error, s.df)
end

-- The ends of the interval that leaves out `tail` at either side.
function shifts.interval(s, tail)
    local reach = s.error * distributions.t_quantile(tail, s.df)
    return s.by - reach, s.by + reach
end

-- Samples each with which a `distance` is told with a power of 80 % from
-- nothing, where the test leaves out `tail` at a side.
function shifts.needed(s, distance, tail)
    if distance <= 0 then return huge end
    local z = distributions.normal_quantile(tail) +
        distributions.normal_quantile(0.2)
    return 2 * s.share * (s.error * z / distance) ^ 2
end

return shifts
