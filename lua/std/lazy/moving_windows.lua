-- Moving windows: means, extremes, medians and deviations of the elements
-- around each one.
local library = ...
local checks = require "lumat.checks"
local steps = require "lumat.data_steps"
local fail = checks.fail
local moving = {}
local find = string.find
local smaller = math.min

-- The windows of `length` elements of which `before` come before the place.
local function windows(what, kind, A, length, options)
    options = options or {}
    local axis, ends = options.axis or 1, options.ends or "shrink"
    local before = options.before or length // 2
    if axis == 2 and A.ndim == 1 then fail(what, "a vector has no axis 2") end
    if before >= length then
        fail(what, "before=%d: of %s come before the place %d at most", before,
            checks.plural(length, "element"), length - 1)
    end
    if find(A.dtype, "^c") then
        fail(what, "is of real numbers: take real(A), imag(A) or abs(A) of a " ..
            "complex matrix first")
    end
    local n = axis == 1 and A.rows or A.cols
    local behind = length - 1 - before
    local function made(first, count)
        if count < 1 then count = 0 end
        return steps.window(kind, A, axis, length, first, count)
    end
    if ends == "discard" then return made(0, n - length + 1) end
    local out = made(-before, n)
    if ends == "shrink" then return out end
    local function fill(first, last)
        if first > last then return end
        if A.ndim == 1 then
            out[{{first, last}}] = 0 / 0
        elseif axis == 1 then
            out[{{first, last}, {}}] = 0 / 0
        else
            out[{{}, {first, last}}] = 0 / 0
        end
    end
    fill(1, smaller(before, n))
    fill(n - smaller(behind, n) + 1, n)
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
        "down each column (axis=2: along each row); NaN where one of them is, " ..
        "and of a single one.",
    example = "movstd(vec{1, 3, 5, 5}, 3, {ends = \"discard\"})",
    result = "{2, 1.1547005}",
}
function moving.movstd(A, k, options)
    return library.sqrt(windows("movstd", "var", A, k, options))
end

return moving
