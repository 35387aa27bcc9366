-- Medians and their 95 % intervals. No shape of the noise is assumed:
-- everything goes by order.
local statistics = {}
local ipairs = ipairs
local exp, floor, log, sqrt = math.exp, math.floor, math.log, math.sqrt
local larger = math.max
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

return statistics
