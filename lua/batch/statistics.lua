-- Medians, their 95 % intervals, and whether two lists of samples differ. No
-- shape of the noise is assumed: everything goes by order.
local library = ...
local statistics = {}
local ipairs = ipairs
local abs, exp, floor, log, sqrt = math.abs, math.exp, math.floor, math.log,
    math.sqrt
local larger, smaller = math.max, math.min
local sort = table.sort

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

-- How many times wider an interval must be that takes samples for independent
-- when neighbours are alike: sqrt((1 + r) / (1 - r)) by the correlation r of
-- the ranks of neighbours, that of a process of order one (Bartlett, Some
-- aspects of the time-correlation problem, 1935). 1 where r is what chance
-- gives.
function statistics.dependence(list)
    local n, place = #list, {}
    for i = 1, n do place[i] = i end
    sort(place, function(i, j) return list[i] < list[j] end)
    local rank, products, squares = {}, 0, 0
    for r, i in ipairs(place) do rank[i] = r - (n + 1) / 2 end
    for i = 1, n do
        squares = squares + rank[i] ^ 2
        if i > 1 then products = products + rank[i] * rank[i - 1] end
    end
    local r = squares > 0 and products / squares + 1 / n or 0
    if r < 1 / sqrt(n) then return 1 end
    return sqrt((1 + smaller(r, 0.9)) / (1 - smaller(r, 0.9)))
end

-- The interval of samples in the order they were taken, widened to what the
-- medians of their thirds span and by how alike neighbours are: noise that
-- drifts has more to it than its order tells.
function statistics.steady_interval(list)
    local median, low, high = statistics.interval(list)
    local wider = statistics.dependence(list)
    low = median * (low / median) ^ wider
    high = median * (high / median) ^ wider
    local third = #list // 3
    if third < 3 then return median, low, high end
    for start = 0, 2 do
        local part = {}
        for i = 1, third do part[i] = list[start * (#list - third) // 2 + i] end
        local m = statistics.median(part)
        low, high = smaller(low, m), larger(high, m)
    end
    return median, low, high
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

-- Both lists in order, as {x, list} with 1 and 2 for the lists.
local function merged(a, b)
    local all = {}
    for i, x in ipairs(a) do all[i] = {x, 1} end
    for _, x in ipairs(b) do all[#all + 1] = {x, 2} end
    sort(all, function(p, q) return p[1] < q[1] end)
    return all
end

-- The sum of a's ranks in both lists, equal ones sharing theirs, and what the
-- ties take from the variance.
local function rank_sum(all)
    local sum, ties, i = 0, 0, 1
    while i <= #all do
        local j = i
        while all[j + 1] and all[j + 1][1] == all[i][1] do j = j + 1 end
        local count = j - i + 1
        ties = ties + (count ^ 3 - count)
        for k = i, j do
            if all[k][2] == 1 then sum = sum + (i + j) / 2 end
        end
        i = j + 1
    end
    return sum, ties
end

-- How likely it is that lists of one distribution differ as much: the
-- two-sided p of Mann and Whitney's rank test (On a test of whether one of
-- two random variables is stochastically larger than the other, Annals of
-- Mathematical Statistics 18, 1947), by the normal distribution, corrected
-- for ties and continuity, which serves from about nine samples each on.
function statistics.rank_test(a, b)
    local n, m = #a, #b
    local total = n + m
    local sum, ties = rank_sum(merged(a, b))
    local u = sum - n * (n + 1) / 2
    local variance = n * m / 12 *
        (total + 1 - ties / (total * (total - 1)))
    if variance <= 0 then return 1 end
    local z = larger(abs(u - n * m / 2) - 0.5, 0) / sqrt(variance)
    return library.erfc(z / sqrt(2))
end

return statistics
