-- Statistics beside the reductions: quantiles, modes, covariances, standard
-- scores. NaN gives NaN, if it is not to be left out.
local library, _, _, private = ...
local checks = require "lumat.checks"
local along = require "lumat.along"
local steps = require "lumat.statistics_steps"
local fail, is_complex, is_wide, shape_of = checks.fail, checks.is_complex,
    checks.is_wide, checks.shape_of
local statistics = {}
local ipairs, type = ipairs, type
local format, sort = string.format, table.sort
local floor, larger, smaller, tointeger = math.floor, math.max, math.min,
    math.tointeger
local nan = 0 / 0
-- The deviation of equal elements from their mean, in f64, is below this share.
local ROUNDING = 0x1p-48

-- --- what they share ----------------------------------------------------------

-- The axis of (A [, axis] [, options]), nil for none, and the options.
local function axis_and_options(what, A, axis, options)
    if type(axis) == "table" then axis, options = nil, axis end
    options = options or {}
    if axis and options.axis then
        fail(what, "the axis is given twice: write %s(A, {axis=%d})", what,
            options.axis)
    end
    axis = axis or options.axis
    if axis == 2 and A.ndim == 1 then fail(what, "a vector has no axis 2") end
    if options.keepdims ~= nil and not axis then
        fail(what, "keepdims is of what is done along an axis: there is none")
    end
    return axis, options
end

-- X, which is f64, in the type of a result of A.
local function rounded(X, A)
    return is_wide(A) and X or X:f32()
end

local function length_along(A, axis)
    return axis and along.size(A, axis) or A.size
end

-- Lines `list` (1-based) across the axis.
local function lines_at(A, axis, list)
    if axis == 2 then return library.take(A, nil, list) end
    return library.take(A, list)
end

-- Results of lines, 1 x n or m x 1, as they are asked for.
local function dropped(X, options)
    if options.keepdims ~= false then return X end
    return X:flatten()
end

local function warn_of_empty(what, lines)
    if lines > 0 then
        private.warn_once(what, format("%s nothing but NaN: the result is NaN",
            lines == 1 and "there is" or
            format("of %d columns or rows there is", lines)))
    end
end

-- --- ranks of quantiles -------------------------------------------------------
-- Where the quantile q of n sorted numbers lies, counted from 0, may be between
-- two of them: `share` then says how near the second. n is a number, or a matrix
-- of f64. Source: Hyndman and Fan, Sample quantiles in statistical packages,
-- 1996.

local function where(condition, x, y)
    if type(condition) == "boolean" then return condition and x or y end
    return library.where(condition, x, y)
end

local function is_above(x, y)
    return type(x) == "number" and x > y or type(x) ~= "number" and
        library.gt(x, y)
end

local function is_equal(x, y)
    return type(x) == "number" and x == y or type(x) ~= "number" and
        library.eq(x, y)
end

local function split(at)
    local whole = library.floor(at)
    return whole, at - whole
end

local function continuous(alpha, beta)
    return function(n, q)
        return split(n * q + (alpha + q * (1 - alpha - beta)) - 1)
    end
end

local methods = {
    linear = function(n, q) return split((n - 1) * q) end,
    hazen = continuous(0.5, 0.5),
    weibull = continuous(0, 0),
    median_unbiased = continuous(1 / 3, 1 / 3),
    normal_unbiased = continuous(3 / 8, 3 / 8),
    interpolated_inverted_cdf = continuous(0, 1),
}

function methods.inverted_cdf(n, q)
    local whole, share = split(n * q - 1)
    return whole, where(is_above(share, 0), 1, 0)
end

function methods.averaged_inverted_cdf(n, q)
    local whole, share = split(n * q - 1)
    return whole, where(is_above(share, 0), 1, 0.5)
end

-- Of two that are as near the one with an even number, counted from 1.
function methods.closest_observation(n, q)
    local whole, share = split(n * q - 1.5)
    local is_even = where(is_equal(share, 0), is_equal(whole % 2, 1),
        is_above(0 * share, 1))
    return whole, where(is_even, 0, 1)
end

function methods.lower(n, q)
    local whole, share = methods.linear(n, q)
    return whole, share * 0
end

function methods.higher(n, q)
    local whole, share = methods.linear(n, q)
    return whole, where(is_above(share, 0), 1, 0)
end

function methods.midpoint(n, q)
    local whole, share = methods.linear(n, q)
    return whole, where(is_above(share, 0), 0.5, 0)
end

function methods.nearest(n, q)
    local at = (n - 1) * q
    local whole = library.floor(at)
    return whole, library.round(at) - whole
end

-- Within 0 … n - 1.
local function rank_of(method, n, q)
    local whole, share = methods[method](n, q)
    local last = n - 1
    if type(n) == "number" then
        if whole < 0 then whole, share = 0, 0 end
        if whole >= last then whole, share = last, 0 end
        return tointeger(whole), share
    end
    share = library.where(library.lt(whole, 0), 0, share)
    return library.clip(whole, 0, last), where(library.ge(whole, last), 0, share)
end

-- --- quantiles ----------------------------------------------------------------

-- Between `base` and `other`, which may be infinite, or too far apart.
local function between(base, other, share)
    local apart = other - base
    local near = library.where(library.isinf(apart),
        library.mul(base, 1 - share) + library.mul(other, share),
        base + library.mul(apart, share))
    return library.where(library.eq(base, other), base, near)
end

-- The quantiles qs of lines that have n elements each, one line of results for
-- each q, in A's type.
local function of_equal_lines(A, axis, n, qs, method, spreads)
    local is_wanted, places, ranks = {}, {}, {}
    local function want(place)
        if not is_wanted[place] then places[#places + 1] = place end
        is_wanted[place] = true
    end
    for i, q in ipairs(qs) do
        local whole, share = rank_of(method, n, q)
        local base, other = whole, whole + 1
        if share >= 0.5 then
            base, other, share = other, base, 1 - share
        end
        if share == 0 then other = base end
        ranks[i] = {base, other, share}
        want(base)
        want(other)
    end
    sort(places)
    local at = {}
    for i, place in ipairs(places) do at[place] = i end
    local P = steps.select(A, axis or 0, spreads, places)
    local bases, others, shares, is_between = {}, {}, {}, false
    for i, r in ipairs(ranks) do
        bases[i], others[i], shares[i] = at[r[1]], at[r[2]], r[3]
        is_between = is_between or r[3] > 0
    end
    local base = #places == 1 and #qs == 1 and P or lines_at(P, axis, bases)
    if not is_between then return base end
    return rounded(between(base:f64(), lines_at(P, axis, others):f64(),
        along.stretched(library.vec(shares, along.like(P, "f64")), P,
            axis or 1)), A)
end

-- What stands at the places (from 0), one for each line of a sorted S.
local function elements_at(S, axis, places)
    local index = along.stretched(library.range(0, along.size(S, axis) - 1, 1,
        along.like(S, "f64")), S, axis)
    return library.where(library.eq(index, places), S, 0):sum(axis):f64()
end

-- The same of lines of which `counts` are numbers, and come first in S.
local function of_counted_lines(S, axis, counts, qs, method)
    local list = {}
    for i, q in ipairs(qs) do
        local whole, share = rank_of(method, library.maximum(counts, 1), q)
        local base = elements_at(S, axis, whole)
        local other = elements_at(S, axis, library.minimum(whole + 1,
            library.maximum(counts, 1) - 1))
        other = library.where(library.eq(share, 0), base, other)
        base = library.where(library.eq(share, 1), other, base)
        list[i] = library.where(library.gt(counts, 0),
            between(base, other, share), nan)
    end
    local join = axis == 1 and library.vcat or library.hcat
    return rounded(#list == 1 and list[1] or join(table.unpack(list)), S)
end

-- NaN does not count.
local function skipping(what, A, axis, qs, method)
    local is_number = ~library.isnan(A)
    if not axis or A.ndim == 1 then
        local n = tointeger(is_number:sum()) or A.size -- of a dry run
        warn_of_empty(what, n == 0 and 1 or 0)
        return of_equal_lines(A, axis, larger(n, 1), qs, method, false)
    end
    local counts = is_number:f64():sum(axis)
    local n, least = length_along(A, axis), counts:min()
    if least == n then return of_equal_lines(A, axis, n, qs, method, false) end
    warn_of_empty(what, least == 0 and tointeger(counts:eq(0):sum()) or 0)
    return of_counted_lines(library.sort(A, axis), axis, counts, qs, method)
end

-- Of one line, a vector, with weights: the first element up to which at least
-- the share q of all the weights lies.
local function of_weighted_line(v, w, qs, skips)
    local is_nan = library.isnan(v)
    local numbers = skips and library.where(is_nan, 0, w) or w
    local S, places = library.sort(v, {places = true})
    local W = library.take(numbers, places)
    local sums = library.cumsum(W)
    local total = sums[-1]
    local list = {}
    if not skips and is_nan:any() or not (total > 0) then
        for i = 1, #qs do list[i] = nan end
        return list, total
    end
    local share = sums / total
    for i, q in ipairs(qs) do
        local before = library.lor(share:lt(q), share:le(0)):sum()
        list[i] = S[smaller(tointeger(before), v.size - 1) + 1]
    end
    return list, total
end

local function check_weights(what, A, axis, w)
    local is_line = axis and A.ndim == 2 and w.ndim == 1 and
        w.rows == length_along(A, axis)
    if not is_line and (w.ndim ~= A.ndim or w.rows ~= A.rows or
        w.cols ~= A.cols) then
        fail(what, "the weights are %s, and A is %s: give one for each %s",
            shape_of(w), shape_of(A), axis == 1 and A.ndim == 2 and "row" or
            axis == 2 and "column" or "element")
    end
    if not library.all(library.ge(w, 0) & library.isfinite(w)) then
        fail(what, "weights are numbers from 0 on, neither NaN nor infinite")
    end
end

local function line_of(A, axis, i)
    if A.ndim == 1 then return A end
    if axis == 1 then return A:col(i):flatten() end
    return A:row(i):flatten()
end

-- The quantiles of each line with weights, one line of results for each q.
local function weighted(what, A, axis, qs, options)
    local w = options.weights
    check_weights(what, A, axis, w)
    w = w:f64()
    local skips = options.nan == "skip"
    if not axis or A.ndim == 1 then
        local list, total = of_weighted_line(A:flatten(), w:flatten(), qs, skips)
        if not (total > 0) then
            private.warn_once(what, "there is no element that counts: the " ..
                "result is NaN")
        end
        return library.vec(list, {dtype = is_wide(A) and "f64" or "f32",
            device = A.device})
    end
    local rows, empty = {}, 0
    for i = 1, axis == 1 and A.cols or A.rows do
        local list, total = of_weighted_line(line_of(A, axis, i),
            w.ndim == 1 and w or line_of(w, axis, i), qs, skips)
        if not (total > 0) then empty = empty + 1 end
        rows[i] = list
    end
    warn_of_empty(what, empty)
    local R = library.mat(rows, {dtype = is_wide(A) and "f64" or "f32",
        device = A.device})
    return axis == 1 and R.T:clone() or R
end

local function quantiles(what, A, qs, axis, options)
    checks.ordered(what, A)
    local n = length_along(A, axis)
    if n == 0 then fail(what, "of no elements") end
    local method = options.method
    if options.weights then
        if method and method ~= "inverted_cdf" then
            fail(what, "with weights the method is \"inverted_cdf\", not %q",
                method)
        end
        return weighted(what, A, axis, qs, options)
    end
    method = method or "linear"
    if options.nan == "skip" and A.dtype ~= "bool" then
        return skipping(what, A, axis, qs, method)
    end
    return of_equal_lines(A, axis, n, qs, method, true)
end

-- q of quantile(A, q), as a list of numbers from 0 to `one`, each divided by it.
local function shares_of(what, q, one)
    local given = type(q) == "number" and {q} or type(q) == "table" and q or
        q:totable()
    private.refuse_strays(what, given)
    local list = {}
    for i = 1, #given do
        local x = given[i]
        if type(x) ~= "number" or not (x >= 0 and x <= one) then
            fail(what, "%s is %s, expected a number from 0 to %d%s",
                type(q) == "number" and "q" or format("q[%d]", i),
                checks.brief(x), one, one == 1 and type(x) == "number" and
                x > 1 and x <= 100 and
                format(": %s %% is percentile(A, %s)", x, x) or "")
        end
        list[i] = x / one
    end
    return list
end

local function quantile(what, A, q, options, one)
    local axis
    axis, options = axis_and_options(what, A, nil, options)
    local qs = shares_of(what, q, one)
    if #qs == 0 then fail(what, "q is an empty list") end
    if type(q) ~= "number" and options.keepdims ~= nil then
        fail(what, "keepdims is of one q: of a list there is a line for each")
    end
    local R = quantiles(what, A, qs, axis, options)
    if type(q) ~= "number" then return R end
    if not axis or A.ndim == 1 and options.keepdims == false then return R[1] end
    return dropped(R, options)
end

row{
    name = "quantile", method = true,
    takes = "A: matrix, q: number|list {axis, method, nan, weights, keepdims}",
    gives = "number or matrix",
    group = "statistics",
    help = "The number below which the share q (0 to 1) of the elements lies, " ..
        "of all of them or along an axis; of several q a vector, along an " ..
        "axis a matrix: a row for each q (axis 1), or a column (2). Between " ..
        "two elements it is interpolated, unless another method is asked " ..
        "for: Octave and MATLAB have \"hazen\".",
    example = "quantile(vec{1, 2, 3, 4}, 0.5)",
    result = "2.5",
    options = {
        {"weights", "matrix", "all 1",
            "how much each element counts: from 0 on, of A's shape or one for " ..
            "each place along the axis; the method is inverted_cdf"},
    },
}
function statistics.quantile(A, q, options)
    return quantile("quantile", A, q, options, 1)
end

row{
    name = "percentile", method = true,
    takes = "A: matrix, p: number|list {axis, method, nan, weights, keepdims}",
    gives = "number or matrix",
    group = "statistics",
    help = "quantile(A, p / 100), p being 0 to 100.",
    example = "percentile(vec{10, 20, 30}, 75)",
    result = "25",
    options = {
        {"weights", "matrix", "all 1", "how much each element counts, as " ..
            "quantile has it"},
    },
}
function statistics.percentile(A, p, options)
    return quantile("percentile", A, p, options, 100)
end

row{
    name = "median", method = true,
    takes = "A: matrix [, axis: axis] {axis, nan, weights, keepdims}",
    gives = "number or matrix with axis",
    group = "statistics",
    help = "The element in the middle when all are sorted, or the mean of the " ..
        "two there; of all elements or along an axis.",
    example = "median(vec{5, 1, 2, 100})",
    result = "3.5",
    options = {
        {"weights", "matrix", "all 1", "how much each element counts: the " ..
            "first element up to which half of the weight lies"},
    },
}
function statistics.median(A, axis, options)
    axis, options = axis_and_options("median", A, axis, options)
    local R = quantiles("median", A, {0.5}, axis, options)
    if not axis or A.ndim == 1 and options.keepdims == false then return R[1] end
    return dropped(R, options)
end

-- --- modes --------------------------------------------------------------------

-- Of each row of a sorted matrix the element that is there most often, of
-- several the first: a vector. Runs of equals are put in order by their length,
-- and then by their row, so that the first of each row is its longest.
local function modes_of_rows(S)
    local rows, n = S.rows, S.cols
    local options = {dtype = "f64", device = S.device}
    local v = S:flatten()
    local index = library.range(0, rows * n - 1, 1, options)
    local begins = library.eq(index % n, 0)
    if n > 1 then
        local changes = v["2:end"]:ne(v["1:end-1"])
        begins["2:end"] = library.lor(begins["2:end"], changes)
    end
    local starts = index[begins]
    local stops = library.hcat(starts["2:end"],
        library.vec({rows * n}, options))
    local order = library.argsort(stops - starts, {descending = true})
    starts = library.take(starts, order)
    local lines = library.floor(starts / n)
    order = library.argsort(lines)
    lines = library.take(lines, order)
    starts = library.take(starts, order)
    local is_first = library.ones(starts.size, {device = S.device}):gt(0)
    if starts.size > 1 then
        is_first["2:end"] = lines["2:end"]:ne(lines["1:end-1"])
    end
    return library.take(v, starts[is_first] + 1)
end

row{
    name = "mode", method = true,
    takes = "A: matrix [, axis: axis] {axis, nan, keepdims}",
    gives = "number or matrix with axis",
    group = "statistics",
    help = "The element that is there most often, of several the smallest; of " ..
        "all elements or along an axis.",
    example = "mode(vec{3, 1, 3, 2, 2})",
    result = "2",
}
function statistics.mode(A, axis, options)
    axis, options = axis_and_options("mode", A, axis, options)
    checks.ordered("mode", A)
    if length_along(A, axis) == 0 then fail("mode", "of no elements") end
    local is_line = not axis or A.ndim == 1
    local lines = is_line and A:flatten():row() or axis == 1 and A.T or A
    if A.dtype == "bool" then lines = lines:f32() end
    local R = lines.rows == 0 and library.zeros(0, {dtype = lines.dtype,
        device = A.device}) or modes_of_rows(library.sort(lines, 2))
    local counts = library.isnan(lines):sum(2):flatten()
    if options.nan == "skip" then
        warn_of_empty("mode", lines.rows > 0 and
            tointeger(counts:eq(lines.cols):sum()) or 0)
    else
        R = library.where(counts:gt(0), nan, R)
    end
    if not axis or is_line and options.keepdims == false then return R[1] end
    if is_line or options.keepdims == false then return R end
    return axis == 1 and R:row() or R:col()
end

-- --- standard scores ----------------------------------------------------------

-- X, a matrix, less its means along how.axis, over the standard deviations
-- there, in f64; NaN where all elements are equal. Their mean is rounded, so that
-- what is left of them would pass for a deviation: they are told by extremes.
local function standard_scores(X, how)
    local wide, w = X:f64(), how.weights
    local means = library.mean(wide, {axis = how.axis, weights = w,
        nan = how.nan})
    local spreads = library.std(wide, how)
    if library.any(spreads:le(ROUNDING * library.abs(means))) then
        local skips = {axis = how.axis, nan = "skip"}
        local counted = w and library.where(w:col():gt(0), wide, nan) or wide
        local varies = library.min(counted, skips):lt(
            library.max(counted, skips))
        spreads = library.where(varies, spreads, 0)
    end
    local is_fine = spreads:gt(0) & spreads:lt(math.huge)
    return (wide - means) / library.where(is_fine, spreads, nan)
end

row{
    name = "zscore", method = true,
    takes = "A: matrix [, axis: axis] {axis, ddof, nan}",
    gives = "matrix",
    group = "statistics",
    help = "Each element less the mean of its column (axis 1) or row (2), over " ..
        "the standard deviation there. NaN where all are equal.",
    example = "zscore(vec{1, 2, 3})",
    result = "{-1, 0, 1}",
    options = {
        {"ddof", "number", "1", "as std has it"},
        {"nan", "\"skip\"|\"keep\"", "\"keep\"", "\"skip\": NaN stays NaN, and " ..
            "does not count in the others; else all of a line with NaN is NaN"},
    },
}
function statistics.zscore(A, axis, options)
    axis, options = axis_and_options("zscore", A, axis, options)
    axis = axis or 1
    if is_complex(A) then
        fail("zscore", "complex numbers are not taken: write (A - mean(A, %d)) " ..
            "/ std(A, %d)", axis, axis)
    end
    if A.size == 0 then return A:clone() end
    local Z = standard_scores(A.ndim == 1 and A:col() or A, {axis = axis,
        nan = options.nan, ddof = options.ddof})
    return rounded(A.ndim == 1 and Z:flatten() or Z, A)
end

-- --- covariances --------------------------------------------------------------

local function as_columns(X)
    return X.ndim == 1 and X:col() or X
end

-- The rows of X and Y (which may be X) that are complete, and their weights.
local function complete_rows(X, Y, w)
    local is_complete = library.isnan(X):sum(2):eq(0)
    if Y ~= X then
        is_complete = library.land(is_complete, library.isnan(Y):sum(2):eq(0))
    end
    is_complete = is_complete:flatten()
    if is_complete:all() then return X, Y, w end
    local function kept(Z) return Z[is_complete] end
    local rows = kept(X)
    return rows, Y ~= X and kept(Y) or rows, w and w[is_complete]
end

local function take_weights(what, X, options)
    local w = options.weights
    if not w then return nil end
    if w.ndim ~= 1 or w.rows ~= X.rows then
        fail(what, "the weights are %s, and A is %s: give one for each row",
            shape_of(w), shape_of(X))
    end
    check_weights(what, w, nil, w)
    return w:f64()
end

-- The columns of X and Y, in one type, of the rows that count, and the weights
-- of these.
local function observations(what, X, Y, options)
    if is_complex(X) or Y and is_complex(Y) then
        fail(what, "complex numbers are not taken: X.H * X / (n - 1) of what " ..
            "is less its mean")
    end
    X = as_columns(X)
    Y = Y and as_columns(Y) or X
    if X.rows ~= Y.rows then
        fail(what, "numbers of rows differ (%d and %d)", X.rows, Y.rows)
    end
    local w = take_weights(what, X, options)
    local is_own = rawequal(X, Y)
    if X.dtype == "bool" then X = X:f32() end
    if Y.dtype == "bool" then Y = Y:f32() end
    if is_own then Y = X end
    if options.nan == "skip" then X, Y, w = complete_rows(X, Y, w) end
    if X.dtype ~= Y.dtype then X, Y = X:f64(), Y:f64() end
    if X.rows == 0 then
        fail(what, options.nan == "skip" and "no row is without NaN" or
            "of no rows")
    end
    return X, Y, w
end

local function sums_of_products(A, B, w)
    return A.T * (w and rounded(B:f64() % w:col(), B) or B)
end

-- cov(X [, Y] [, options]): a matrix, of vectors a number.
local function two_operands(what, X, Y, options)
    if type(Y) == "table" then Y, options = nil, Y end
    if Y and Y.ndim ~= X.ndim then
        fail(what, "takes two vectors, or two matrices, not %s and %s",
            shape_of(X), shape_of(Y))
    end
    return Y, options or {}
end

row{
    name = "cov", method = true,
    takes = "A: matrix [, B: matrix rows A] {ddof, nan, weights}",
    gives = "matrix or number",
    group = "statistics",
    help = "The covariances of the columns of A with each other, or with those " ..
        "of B: rows are observations. Of a vector its variance, of two vectors " ..
        "a number.",
    example = "cov(vec{1, 2, 3}, vec{1, 2, 5})",
    result = "2",
    options = {
        {"ddof", "number", "1",
            "what the number of rows is less when products are divided by it"},
        {"nan", "\"skip\"|\"keep\"", "\"keep\"",
            "\"skip\": rows with NaN are left out, all of them"},
        {"weights", "vector", "all 1", "how reliable each row is: from 0 on; " ..
            "the divisor is sum - ddof (sum of squares) / sum"},
    },
}
function statistics.cov(X, Y, options)
    Y, options = two_operands("cov", X, Y, options)
    local ddof = options.ddof or 1
    if not (ddof >= 0 and ddof < math.huge) then
        fail("cov", "ddof is %s, expected a number from 0 on",
            checks.brief(ddof))
    end
    local A, B, w = observations("cov", X, Y, options)
    local divisor = A.rows - ddof
    if w then
        local total = w:sum()
        divisor = total - ddof * w:square():sum() / total
    end
    local function centred(Z)
        local means = library.mean(Z:f64(), 1, w and {weights = w})
        return rounded(Z:f64() - means, Z)
    end
    local D = centred(A)
    local C = sums_of_products(D, rawequal(A, B) and D or centred(B), w)
    C = C / (divisor > 0 and divisor or nan)
    return X.ndim == 1 and C(1, 1) or C
end

row{
    name = "corr", method = true,
    takes = "A: matrix [, B: matrix rows A] {nan, weights}",
    gives = "matrix or number",
    group = "statistics",
    help = "Pearson's correlations, -1 to 1, of the columns of A with each " ..
        "other, or with those of B: rows are observations. Of two vectors a " ..
        "number. NaN of what does not vary.",
    example = "corr(vec{1, 2, 3}, vec{2, 4, 6})",
    result = "1",
    options = {
        {"nan", "\"skip\"|\"keep\"", "\"keep\"", "as cov has it"},
        {"weights", "vector", "all 1", "how reliable each row is: from 0 on"},
    },
}
function statistics.corr(X, Y, options)
    Y, options = two_operands("corr", X, Y, options)
    local A, B, w = observations("corr", X, Y, options)
    local function scores(Z)
        return rounded(standard_scores(Z, {axis = 1, ddof = 0, weights = w}), Z)
    end
    local P = scores(A)
    local Q = rawequal(A, B) and P or scores(B)
    local C = sums_of_products(P, Q, w):f64()
    if rawequal(P, Q) then
        local d = library.diag(C):sqrt()
        C = C / d:col() / d:row()
    else
        C = C / (w and w:sum() or A.rows)
    end
    C = rounded(library.clip(C, -1, 1), A)
    return X.ndim == 1 and C(1, 1) or C
end

return statistics
