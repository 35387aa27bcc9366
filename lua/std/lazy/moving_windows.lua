-- Moving windows: means, extremes, medians and deviations of the elements
-- around each one.
local library = ...
local checks = require "lumat.checks"
local along = require "lumat.along"
local window = require "lumat.data_steps".window
local fail = checks.fail
local moving = {}
local nan = 0 / 0
local larger, smaller = math.max, math.min

-- The windows of `length` elements of which `before` come before the place.
local function windows(what, kind, A, length, options)
    options = options or {}
    local axis, ends = along.axis(what, A, options), options.ends or "shrink"
    local before = options.before or length // 2
    if before >= length then
        fail(what, "before=%d: of %s come before the place %d at most", before,
            checks.plural(length, "element"), length - 1)
    end
    if checks.is_complex(A) then
        fail(what, "is of real numbers: take real(A), imag(A) or abs(A) of a " ..
            "complex matrix first")
    end
    local n = along.size(A, axis)
    if ends == "discard" then
        return window(kind, A, axis, length, 0, larger(0, n - length + 1))
    end
    local out = window(kind, A, axis, length, -before, n)
    if ends == "fill" then
        local behind = length - 1 - before
        along.put(out, axis, 1, smaller(before, n), nan)
        along.put(out, axis, n - smaller(behind, n) + 1, n, nan)
    end
    return out
end

row{
    name = "movmean", method = true,
    takes = "A: matrix, k: count {axis, before, ends}",
    gives = "matrix",
    group = "windows",
    help = "The mean of k elements around each one, down each column (axis=2: " ..
        "along each row); NaN where one of them is.",
    example = "movmean(vec{1, 2, 6, 4}, 3)",
    result = "{1.5, 3, 4, 5}",
}
function moving.movmean(A, k, options)
    return windows("movmean", "mean", A, k, options)
end

row{
    name = "movmin", method = true,
    takes = "A: matrix, k: count {axis, before, ends}",
    gives = "matrix",
    group = "windows",
    help = "The smallest of k elements around each one, down each column " ..
        "(axis=2: along each row); NaN where one of them is.",
    example = "movmin(vec{3, 2, 6, 4}, 3)",
    result = "{2, 2, 2, 4}",
}
function moving.movmin(A, k, options)
    return windows("movmin", "min", A, k, options)
end

row{
    name = "movmax", method = true,
    takes = "A: matrix, k: count {axis, before, ends}",
    gives = "matrix",
    group = "windows",
    help = "The largest of k elements around each one, down each column " ..
        "(axis=2: along each row); NaN where one of them is.",
    example = "movmax(vec{3, 2, 6, 4}, 3)",
    result = "{3, 6, 6, 6}",
}
function moving.movmax(A, k, options)
    return windows("movmax", "max", A, k, options)
end

row{
    name = "movmedian", method = true,
    takes = "A: matrix, k: count {axis, before, ends}",
    gives = "matrix",
    group = "windows",
    help = "The median of k elements around each one, down each column " ..
        "(axis=2: along each row); NaN where one of them is.",
    example = "movmedian(vec{1, 9, 2, 3}, 3)",
    result = "{5, 2, 3, 2.5}",
}
function moving.movmedian(A, k, options)
    return windows("movmedian", "median", A, k, options)
end

row{
    name = "movstd", method = true,
    takes = "A: matrix, k: count {axis, before, ends}",
    gives = "matrix",
    group = "windows",
    help = "The standard deviation (by n - 1) of k elements around each one, " ..
        "down each column (axis=2: along each row); NaN where one of them is " ..
        "or is infinite, and of a single one.",
    example = "movstd(vec{1, 3, 5, 5}, 3, {ends = \"discard\"})",
    result = "{2, 1.1547005}",
}
function moving.movstd(A, k, options)
    return library.sqrt(windows("movstd", "var", A, k, options))
end

return moving
