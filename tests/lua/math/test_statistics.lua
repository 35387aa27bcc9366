-- Quantiles, modes, covariances and standard scores, against their definitions
-- in plain Lua; and elements by rank against a sort.
local lu = require "luaunit"
local t = require "common"
local equals, raises, near, inf, nan = t.equals, t.raises, t.near, t.inf, t.nan
local steps = require "lumat.statistics_steps"
local device = {device = t.device}

local function sorted(list)
    local copy = {}
    for i, x in ipairs(list) do copy[i] = x end
    table.sort(copy)
    return copy
end

-- Between the two elements nearest to place `at` (from 0).
local function interpolated(list, at)
    at = math.max(0, math.min(#list - 1, at))
    local low = math.floor(at)
    local a, b = list[low + 1], list[math.min(low + 2, #list)]
    return a == b and a or a + (b - a) * (at - low)
end

-- Hyndman and Fan's types 4 to 9, by their alpha and beta.
local continuous = {linear = {1, 1}, interpolated_inverted_cdf = {0, 1},
    hazen = {0.5, 0.5}, weibull = {0, 0}, median_unbiased = {1 / 3, 1 / 3},
    normal_unbiased = {3 / 8, 3 / 8}}

local function quantile_of(list, q, method)
    local n, s = #list, sorted(list)
    local ab = continuous[method]
    if ab then
        return interpolated(s, n * q + ab[1] + q * (1 - ab[1] - ab[2]) - 1)
    end
    local at = (n - 1) * q
    if method == "lower" then return s[math.floor(at) + 1] end
    if method == "higher" then return s[math.ceil(at) + 1] end
    if method == "midpoint" then
        return (s[math.floor(at) + 1] + s[math.ceil(at) + 1]) / 2
    end
    local k = math.max(1, math.ceil(n * q)) -- inverted_cdf
    if method == "averaged_inverted_cdf" and k == n * q and k < n then
        return (s[k] + s[k + 1]) / 2
    end
    return s[k]
end

local function random_list(n, whole)
    local list = {}
    for i = 1, n do
        list[i] = whole and math.random(-3, 3) or
            t.single(math.random() * 10 - 5)
    end
    return list
end

TestQuantiles = {}

function TestQuantiles:test_methods()
    math.randomseed(4)
    local methods = {"lower", "higher", "midpoint", "inverted_cdf",
        "averaged_inverted_cdf"}
    for name in pairs(continuous) do methods[#methods + 1] = name end
    for _, method in ipairs(methods) do
        for _, n in ipairs{1, 2, 5, 8, 33, 100} do
            local list = random_list(n, n == 8)
            for _, q in ipairs{0, 0.25, 0.5, 0.625, 0.75, 1} do
                near(quantile(vec(list, device), q, {method = method}),
                    t.single(quantile_of(list, q, method)), 1e-6,
                    method .. " of " .. n .. " at " .. q)
            end
        end
    end
end

-- Of two that are as near: the even one of ranks from 1; of places from 0.
function TestQuantiles:test_ties()
    local v = vec({1, 2, 3, 4}, device)
    local how = {method = "closest_observation"}
    equals(quantile(v, {0, 0.125, 0.375, 0.625, 0.875, 1}, how),
        {1, 1, 2, 2, 4, 4})
    equals(quantile(v, {1 / 6, 0.5, 5 / 6}, {method = "nearest"}), {1, 3, 3})
end

function TestQuantiles:test_axes_and_shapes()
    local A = mat({{1, 5, 9}, {2, 6, 10}, {3, 7, 11}, {4, 8, 12}}, device)
    lu.assertEquals(median(A), 6.5)
    equals(A:median(1), {{2.5, 6.5, 10.5}})
    equals(A:median(2), {{5}, {6}, {7}, {8}})
    equals(A.T:median(2), {{2.5}, {6.5}, {10.5}})
    equals(A:median{axis = 2, keepdims = false}, {5, 6, 7, 8})
    lu.assertEquals(median(vec({3, 1}, device), {axis = 1, keepdims = false}), 2)
    equals(median(vec({3, 1, 2}, device), 1), {2})
    equals(A:quantile({0, 0.5, 1}, {axis = 1}),
        {{1, 5, 9}, {2.5, 6.5, 10.5}, {4, 8, 12}})
    equals(A:quantile({1, 0}, {axis = 2}), {{9, 1}, {10, 2}, {11, 3}, {12, 4}})
    equals(A:quantile(vec({0.5, 0}, device)), {6.5, 1})
    equals(A["2:3, ::2"]:median(1), {{2.5, 10.5}})
    equals(A:percentile({0, 100}, {axis = 2})[{{1, 2}, {}}], {{1, 9}, {2, 10}})
    lu.assertEquals(A:median(1).dtype, "f32")
    lu.assertEquals(A:f64():median(1).dtype, "f64")
    lu.assertEquals(median(A:gt(6)), 0.5)
end

function TestQuantiles:test_nan_spreads_or_is_left_out()
    local A = mat({{1, nan, 3}, {2, 5, nan}, {4, nan, nan}}, device)
    lu.assertTrue(median(A) ~= median(A))
    equals(A:median(1), {{2, nan, nan}})
    lu.assertEquals(median(A, {nan = "skip"}), 3)
    equals(A:median(1, {nan = "skip"}), {{2, 5, 3}})
    equals(A:median(2, {nan = "skip"}), {{2}, {3.5}, {4}})
    equals(A:quantile({0, 1}, {axis = 2, nan = "skip"}), {{1, 3}, {2, 5}, {4, 4}})
    warn "@off"
    equals(mat({{nan, 1}, {nan, nan}}, device):median(1, {nan = "skip"}),
        {{nan, 1}})
    local none = median(vec({nan}, device), {nan = "skip"})
    lu.assertTrue(none ~= none)
    warn "@on"
end

function TestQuantiles:test_infinities()
    local v = vec({inf, 1, inf, -inf}, device)
    lu.assertEquals(quantile(v, 1), inf)
    lu.assertEquals(quantile(v, 0), -inf)
    lu.assertEquals(median(v), inf)
    lu.assertEquals(median(vec({inf, inf}, device)), inf)
    lu.assertEquals(median(vec({1.5e308, -1.5e308, 1.7e308, 1.6e308},
        {dtype = "f64", device = t.device})), 1.55e308)
end

function TestQuantiles:test_weights()
    local v = vec({30, 10, 20}, device)
    lu.assertEquals(median(v, {weights = vec({1, 1, 3}, device)}), 20)
    lu.assertEquals(median(v, {weights = vec({5, 1, 3}, device)}), 30)
    equals(quantile(v, {0, 0.2, 0.3, 1}, {weights = vec({1, 1, 3}, device)}),
        {10, 10, 20, 30})
    -- what weighs nothing is not there
    lu.assertEquals(quantile(v, 0, {weights = vec({1, 0, 3}, device)}), 20)
    local A = mat({{1, 10}, {2, 20}, {3, nan}}, device)
    equals(A:median(1, {weights = vec({1, 1, 8}, device)}), {{3, nan}})
    equals(A:median(1, {weights = vec({1, 3, 8}, device), nan = "skip"}),
        {{3, 20}})
    equals(A:quantile(0.9, {axis = 2, weights = vec({1, 1}, device),
        nan = "skip"}), {{10}, {20}, {3}})
end

function TestQuantiles:test_mistakes()
    local v = vec({1, 2}, device)
    raises(function() quantile(v, 1.5) end, "q is 1.5", "percentile(A, 1.5)")
    raises(function() quantile(v, {0.5, -1}) end, "q[2] is -1")
    raises(function() quantile(v, {}) end, "q is an empty list")
    raises(function() quantile(v, {0.5, method = "lower"}) end,
        "method stands among the elements", '({…}, {method = "lower"})')
    raises(function() quantile(v, {0.5, [3] = 0.7}) end,
        "quantile: the table has [3] besides its elements 1 … 1")
    raises(function() percentile(v, {50, [0] = 1}) end,
        "percentile: the table has [0]")
    raises(function() quantile(v, {0.5, nil, 0.7}) end, "q[2] is nil")
    raises(function() percentile(v, 101) end, "from 0 to 100")
    raises(function() quantile(v, 0.5, {method = "linaer"}) end, "method")
    raises(function() quantile(v, 0.5, {method = "linear", weights = v}) end,
        '"inverted_cdf"')
    raises(function() median(zeros(0, device)) end, "median: of no elements")
    raises(function() median(v, {keepdims = false}) end, "keepdims")
    for _, keeps in ipairs{true, false} do
        raises(function()
            quantile(eye(3), {0.2, 0.4}, {axis = 1, keepdims = keeps})
        end, "quantile: keepdims is of one q")
    end
    raises(function() median(v, 2) end, "no axis 2")
    raises(function() median(v, 1, {axis = 1}) end, "given twice")
    raises(function() median(complex(v, 1)) end, "no order")
    raises(function() median(v, {weights = vec({1}, device)}) end, "the weights")
    raises(function() median(v, {weights = vec({1, -1}, device)}) end, "from 0 on")
end

-- --- elements by rank -----------------------------------------------------------

TestRanks = {}

-- Those at some places of each line, against a sort of all.
local function compare_ranks(A, axis, what)
    local n = axis == 0 and A.size or axis == 1 and A.rows or A.cols
    local S = axis == 0 and sort(A:flatten()) or sort(A, axis)
    local list, seen = {}, {}
    for _, at in ipairs{0, 1, n // 3, n // 2 - 1, n // 2, n - 2, n - 1} do
        if at >= 0 and at < n and not seen[at] then
            list[#list + 1], seen[at] = at, true
        end
    end
    table.sort(list)
    local places = {}
    for i, at in ipairs(list) do places[i] = at + 1 end
    local want = axis == 2 and take(S, nil, places) or take(S, places)
    local got = steps.select(A, axis, false, list)
    local same = got:eq(want) | (isnan(got) & isnan(want))
    lu.assertTrue(same:all(), what)
end

function TestRanks:test_lines_of_every_length()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, n in ipairs{1, 2, 3, 16, 47, 48, 49, 63, 200, 1000, 5000} do
            local options = {dtype = dtype, seed = n, device = t.device}
            local A = randn(n, 7, options)
            compare_ranks(A, 1, "columns of " .. n)
            compare_ranks(A.T, 2, "rows of " .. n)
            compare_ranks(A.T:clone(), 2, "plain rows of " .. n)
            compare_ranks(A, 0, "all of 7 times " .. n)
            compare_ranks(floor(A * 2), 1, "few values in " .. n)
            compare_ranks(A:col(1):flatten(), 1, "a vector of " .. n)
        end
    end
end

-- Lines that all cores look at together.
function TestRanks:test_long_lines()
    local n = 300000
    for _, dtype in ipairs{"f32", "f64"} do
        local v = randn(n, {dtype = dtype, seed = 5, device = t.device})
        compare_ranks(v, 1, "numbers")
        compare_ranks(v, 0, "numbers, all")
        compare_ranks(floor(v), 1, "whole numbers")
        compare_ranks(v:gt(0), 1, "truth values")
        compare_ranks(0 * v, 1, "zeros")
        compare_ranks(cumsum(abs(v)), 1, "rising numbers")
        compare_ranks(where(v:gt(1), nan, v), 1, "NaN among them")
        compare_ranks(where(v:gt(-3.5), nan, v), 1, "mostly NaN")
        compare_ranks(where(v:gt(0), inf, v), 1, "infinities")
        compare_ranks(v["1:end:2"], 1, "every second")
        compare_ranks(v:reshape(3, n // 3), 2, "three rows")
        compare_ranks(v:reshape(n // 3, 3), 1, "three columns")
        compare_ranks(v:reshape(n // 3, 3)[{{}, {1, 2}}], 0, "of a view")
    end
end

function TestRanks:test_nan_spreads()
    local v = randn(200000, {seed = 2, device = t.device})
    v[777] = nan
    equals(steps.select(v, 1, true, {0, 5}), {nan, nan})
    local A = v[{{1, 2000}}]:reshape(20, 100)
    lu.assertEquals(isnan(steps.select(A, 1, true, {3})):sum(), 1)
    lu.assertEquals(isnan(steps.select(A, 2, true, {3, 4})):sum(), 2)
end

-- --- modes ----------------------------------------------------------------------

TestMode = {}

function TestMode:test_against_counting()
    math.randomseed(7)
    for _, n in ipairs{1, 2, 9, 50} do
        local list = random_list(n, true)
        local count, best = {}, nil
        for _, x in ipairs(sorted(list)) do
            count[x] = (count[x] or 0) + 1
            if not best or count[x] > count[best] or
                count[x] == count[best] and x < best then best = x end
        end
        for _, x in ipairs(sorted(list)) do
            if count[x] > count[best] then best = x end
        end
        lu.assertEquals(mode(vec(list, device)), best)
    end
end

function TestMode:test_axes_and_nan()
    local A = mat({{3, 1, nan}, {1, 1, nan}, {3, 2, 5}, {0, 2, 5}}, device)
    equals(A:mode(1), {{3, 1, nan}})
    equals(A:mode(1, {nan = "skip"}), {{3, 1, 5}})
    equals(A:mode(2, {nan = "skip"}), {{1}, {1}, {2}, {0}})
    equals(A:mode{axis = 1, keepdims = false, nan = "skip"}, {3, 1, 5})
    lu.assertEquals(mode(A, {nan = "skip"}), 1)
    lu.assertEquals(mode(vec({2, 1}, device):gt(1)), 0)
    warn "@off"
    equals(mat({{nan, 1}}, device):mode(1, {nan = "skip"}), {{nan, 1}})
    warn "@on"
    raises(function() mode(zeros(0, device)) end, "of no elements")
end

-- --- covariances ------------------------------------------------------------------

local rows = {{1, 2, 0.5}, {2, 4, -1}, {3, 9, 2}, {5, 1, 7}}

-- By the definition, of columns i and j of the rows.
local function covariance(list, i, j, ddof, w)
    local total, squares, a, b = 0, 0, 0, 0
    for k, row in ipairs(list) do
        local weight = w and w[k] or 1
        total, squares = total + weight, squares + weight * weight
        a, b = a + weight * row[i], b + weight * row[j]
    end
    local sum = 0
    for k, row in ipairs(list) do
        sum = sum + (w and w[k] or 1) * (row[i] - a / total) * (row[j] - b / total)
    end
    return sum / (total - ddof * squares / total)
end

TestCov = {}

function TestCov:test_definition()
    local X = mat(rows, {dtype = "f64", device = t.device})
    local w = {1, 0.5, 2, 3}
    for _, ddof in ipairs{0, 1, 2} do
        local C = cov(X, {ddof = ddof})
        local D = cov(X, {ddof = ddof, weights = vec(w, device)})
        for i = 1, 3 do
            for j = 1, 3 do
                near(C(i, j), covariance(rows, i, j, ddof), 1e-13)
                near(D(i, j), covariance(rows, i, j, ddof, w), 1e-13)
            end
        end
    end
    near(cov(X:col(1):flatten()), covariance(rows, 1, 1, 1), 1e-13)
    near(cov(X:col(1):flatten(), X:col(3):flatten()),
        covariance(rows, 1, 3, 1), 1e-13)
    local C = cov(X[{{}, {1, 2}}], X[{{}, {3, 3}}])
    lu.assertEquals(C.shape, {2, 1})
    near(C(2, 1), covariance(rows, 2, 3, 1), 1e-13)
end

function TestCov:test_correlations()
    local X = mat(rows, {dtype = "f64", device = t.device})
    local R = corr(X)
    for i = 1, 3 do
        for j = 1, 3 do
            near(R(i, j), covariance(rows, i, j, 0) /
                math.sqrt(covariance(rows, i, i, 0) * covariance(rows, j, j, 0)),
                1e-13)
        end
        near(R(i, i), 1, 1e-15)
    end
    near(corr(X:col(1):flatten(), X:col(2):flatten()), R(1, 2), 1e-13)
    lu.assertTrue(corr(X, X):lt(1 + 1e-15):all())
    local flat = corr(mat({{1, 2}, {1, 3}}, device))
    equals(flat, {{nan, nan}, {nan, 1}})
end

-- What does not vary, though its mean is rounded, and numbers whose squares are
-- too small or too large for their type.
function TestCov:test_correlations_of_hard_columns()
    local X = mat({{0.1, 1}, {0.1, 2}, {0.1, 4}, {0.1, 3}, {0.1, 3}, {0.1, 8},
        {0.1, 5}}, {dtype = "f64", device = t.device})
    local none = {{nan, nan}, {nan, 1}}
    equals(corr(X), none)
    equals(corr(X, X:clone()), none)
    X[{1, 1}] = 7
    equals(corr(X, {weights = vec({0, 1, 1, 1, 1, 1, 1}, device)}), none)
    local a, b = vec({1, 2, 4}, device), vec({1, 2, 3}, device)
    for _, scale in ipairs{1e-25, 1e25} do
        near(corr(a * scale, b), 27 / math.sqrt(756), 1e-6)
        near(corr(a * scale, b / scale), 27 / math.sqrt(756), 1e-6)
        near(corr(hcat(a:col() * scale, b:col()))(1, 2), 27 / math.sqrt(756),
            1e-6)
    end
end

function TestCov:test_rows_with_nan()
    local X = mat({{1, 2}, {2, nan}, {3, 5}, {4, 4}}, device)
    local Y = mat({{1, 2}, {3, 5}, {4, 4}}, device)
    equals(cov(X, {nan = "skip"}), cov(Y):totable())
    equals(corr(X, {nan = "skip"}), corr(Y):totable())
    lu.assertEquals(isnan(cov(X)):sum(), 3)
    near(cov(X, {nan = "skip", weights = vec({1, 9, 1, 1}, device)})(1, 2),
        cov(Y)(1, 2), 1e-6)
end

function TestCov:test_mistakes()
    local X = mat(rows, device)
    raises(function() cov(X, X[{{1, 2}, {}}]) end, "cov:", "rows")
    raises(function() cov(X, vec({1}, device)) end, "cov")
    raises(function() cov(X, {weights = vec({1, 2}, device)}) end,
        "one for each row")
    raises(function() cov(X, {ddof = -1}) end, "ddof is -1")
    raises(function() cov(complex(X)) end, "complex")
    raises(function() cov(zeros(0, 2, device)) end, "of no rows")
    near(cov(vec({1}, device)), nan, 0)
end

TestScores = {}

function TestScores:test_definition()
    local A = mat({{1, 2, nan}, {2, 2, 1}, {3, 2, 3}}, device)
    equals(A:zscore(), {{-1, nan, nan}, {0, nan, nan}, {1, nan, nan}})
    equals(A:zscore{nan = "skip", ddof = 0}["2:3, 3:3"], {{-1}, {1}})
    local Z = randn(50, 4, {seed = 1, device = t.device}):zscore(2)
    near(abs(Z:mean(2)):max() + 1, 1, 1e-6)
    near(Z:std(2):min(), 1, 1e-5)
    equals(zscore(vec({1, 2, 3}, device)), {-1, 0, 1})
    lu.assertEquals(zscore(zeros(0, 3, device)).cols, 3)
    raises(function() zscore(A, 1, {axis = 2}) end, "given twice")
end

function TestScores:test_nan_of_what_does_not_vary()
    local A = full(7, 2, 0.1, {dtype = "f64", device = t.device})
    lu.assertTrue(isnan(zscore(A)):all())
    lu.assertTrue(isnan(zscore(A, 2)):all())
    A[{{}, 2}] = vec({1, 1, 1, 1, 1, 1, 1 + 0x1p-52}, {dtype = "f64"})
    equals(isnan(zscore(A)):all(1), {{true, false}})
    A[{1, 1}] = nan
    lu.assertTrue(isnan(zscore(A, {nan = "skip"})[{{}, 1}]):all())
end

os.exit(lu.LuaUnit.run("-o", "tap"))
