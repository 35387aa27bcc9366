-- Reductions of distributed matrices: of each process's part there, then of
-- what came in the order of the processes, by pairs, so that one grid gives the
-- same bits again.
local library = ...
local checks = require "lumat.checks"
local cyclic = require "lumat.block_cyclic"
local elements = require "lumat.distributed_elements"
local parts = require "lumat.distributed_parts"
local pool = require "lumat.pool"
local number_of = require "lumat.ranks".number_of
local fail, brief, map = checks.fail, checks.brief, elements.map
local methods, check_alive = parts.methods, parts.check_alive
local shape, state_of = parts.shape, parts.state_of
local ipairs, pairs, type = ipairs, pairs, type
local huge, larger, smaller, sqrt, to_integer = math.huge, math.max, math.min,
    math.sqrt, math.tointeger

-- Rows of a block of what running sums of blocks come to; the most that a f32
-- counts one by one.
local SCAN, MOST_COUNTED = 64, 1 << 24

-- Numbers of processes, in the order of these, by pairs.
local function folded(list, f)
    local values = {}
    for i = 1, #list do values[i] = list[i] end
    while #values > 1 do
        local half = {}
        for i = 1, #values, 2 do
            local y = values[i + 1]
            half[#half + 1] = y == nil and values[i] or f(values[i], y)
        end
        values = half
    end
    return values[1]
end

local function is_nan(x) return x ~= x end

local folds = {
    sum = function(x, y) return x + y end,
    prod = function(x, y) return x * y end,
    norm = function(x, y)
        local big = larger(x, y)
        if not (big > 0 and big < huge) then return x + y end
        return big * sqrt((x / big) ^ 2 + (y / big) ^ 2)
    end,
    max = function(x, y)
        if is_nan(x) or is_nan(y) then return 0 / 0 end
        return larger(x, y)
    end,
    min = function(x, y)
        if is_nan(x) or is_nan(y) then return 0 / 0 end
        return smaller(x, y)
    end,
    any = function(x, y) return x or y end,
    all = function(x, y) return x and y end,
}

-- The same of vectors of values, and what they are of nothing.
local line_folds = {sum = "add", prod = "mul", max = "maximum",
    min = "minimum", any = "lor", all = "land"}
local nothing = {sum = 0.0, prod = 1.0, norm = 0.0, any = false, all = true}

local function reduce_all(name, s)
    local w = check_alive(name, s)
    local values, list = pool.tell(w.p, name, "reduce", w.id, name), {}
    for number = 1, w.p.count do
        if values[number] ~= nil then
            list[#list + 1] = number_of(values[number])
        end
    end
    if #list == 0 and nothing[name] == nil then
        fail(name, "of no elements")
    end
    local value = folded(list, folds[name])
    if value == nil then return nothing[name] end
    if s.turned == "C" and type(value) == "userdata" then return value:conj() end
    return value
end

-- f(list, places) of what the processes of each line of the grid gave, by number
-- in `found`: those that have the columns at these places, of axis 1, or rows.
local function each_line(w, axis, found, f)
    local p = w.p
    local lines = axis == 1 and p.cols or p.rows
    for line = 0, lines - 1 do
        local list = {}
        for other = 0, p.count // lines - 1 do
            local number = axis == 1 and other * p.cols + line + 1 or
                line * p.cols + other + 1
            list[#list + 1] = found[number]
        end
        if #list > 0 then
            f(list, (axis == 1 and cyclic.places(w.n, w.nb, line, p.cols) or
                cyclic.places(w.m, w.mb, line, p.rows)))
        end
    end
end

-- What processes give of the columns, or rows, that they have part of: matrices by
-- their numbers, of those that have any. The rest as for pool.tell_with.
local function line_values(w, what, matrix_for, ...)
    local found = {}
    pool.tell_with(w.p, what, matrix_for, function(link, size, number)
        if size[1] == 0 then return end
        found[number] = link:matrix(size[3], size[1], size[2])
    end, ...)
    return found
end

-- One value a column (axis 1) or row (axis 2), here: 1 x n or m x 1.
local function reduce_axis(name, s, axis)
    local w = check_alive(name, s)
    local own = s.turned and 3 - axis or axis
    local n = own == 1 and w.n or w.m
    local kind = (name == "any" or name == "all") and "bool" or
        w.dtype == "bool" and "f32" or w.dtype
    local found = line_values(w, name, nil, "reduce_axis", w.id, name, own)
    local out = library.full(n, 1, nothing[name] or 0 / 0,
        {dtype = name == "sum" and (kind == "c64" and "c128" or
            kind == "f32" and "f64") or kind, device = "cpu"})
    each_line(w, own, found, function(list, place)
        local value = folded(list, library[line_folds[name]])
        out[{place, {}}] = own == 1 and value or value.T
    end)
    if out.dtype ~= kind then out = library[kind](out) end
    if s.turned == "C" then out = library.conj(out) end
    return axis == 1 and out.T:clone() or out
end

-- f(D) v as a column here, in double precision, for a column v here: f is
-- "same", "abs" or "squares", of what elements are.
local function weighted_sums(what, D, f, v)
    local s = state_of(what, D)
    local w = check_alive(what, s)
    local own = s.turned and 1 or 2
    if s.turned == "C" then v = library.conj(v) end
    local found = line_values(w, what, function(number)
        local i, j = parts.places(w, number, {1, w.m}, {1, w.n})
        return v[{own == 1 and i or j, {}}]:clone()
    end, "weighted_sums", w.id, f, own, v.dtype)
    local out = library.zeros(own == 1 and w.n or w.m, 1, {device = "cpu",
        dtype = f == "same" and checks.is_complex(D) and "c128" or v.dtype})
    each_line(w, own, found, function(list, place)
        local value = folded(list, library.add)
        out[{place, {}}] = own == 1 and value or value.T
    end)
    return s.turned == "C" and library.conj(out) or out
end

-- What a reduction f(D [, axis] [, {axis=, …}]) is asked for: its axis or nil, and
-- its options, of which those of these names are there.
local function request(name, D, axis, options, ...)
    local is_given = type(axis) ~= "table" and axis
    if type(axis) == "table" then
        if options ~= nil then fail(name, "%s after the options", brief(options)) end
        axis, options = nil, axis
    end
    options = parts.options(name, options, "axis", ...)
    if is_given and options.axis then
        fail(name, "the axis is given twice: write D:%s{axis = %s}", name,
            brief(options.axis))
    end
    axis = is_given or options.axis
    if axis ~= nil and axis ~= 1 and axis ~= 2 then
        fail(name, "axis is %s, expected 1 (down each column) or 2 (along each " ..
            "row)", brief(axis))
    end
    local nan, keepdims = options.nan, options.keepdims
    if checks.is_complex(D) and (nan == "skip" and name ~= "norm" or
        options.ddof and options.ddof ~= 1) then
        fail(name, "NaN and ddof are for real numbers: take D:real() and D:imag()")
    end
    if nan ~= nil and nan ~= "skip" and nan ~= "keep" then
        fail(name, 'nan is %s, expected "skip" or "keep"', brief(nan))
    end
    if keepdims ~= nil and type(keepdims) ~= "boolean" then
        fail(name, "keepdims is %s, expected true or false", brief(keepdims))
    elseif keepdims ~= nil and not axis then
        fail(name, "keepdims is of a reduction along an axis: D:%s() is of all " ..
            "elements", name)
    end
    return axis, options
end

-- What comes along an axis, in the shape that was asked for.
local function shaped(values, axis, options)
    if not axis or options.keepdims ~= false then return values end
    return values:flatten()
end

-- D without its NaN, if these are to be skipped: `neutral` is in their place.
local function without_nan(name, D, options, neutral)
    if options.nan ~= "skip" then return D end
    return map(name, "where", map(name, "eq", D, D), D, neutral)
end

-- How many elements count: a number, or along an axis a matrix here.
local function count_of(name, D, axis, options)
    local m, n = shape(state_of(name, D))
    if options.nan ~= "skip" then
        return not axis and m * n or axis == 1 and m or n
    end
    local kept = map(name, "eq", D, D)
    if larger(m, n) > MOST_COUNTED then kept = kept:f64() end
    return kept:sum(axis)
end

-- values where that many elements are behind them, else NaN.
local function where_any(values, count)
    if type(count) == "number" then
        return count > 0 and values or values * (0 / 0)
    end
    return library.where(count:gt(0), values, 0 / 0)
end

-- What stands for NaN that is skipped.
local neutral = {sum = 0, prod = 1, max = -huge, min = huge, any = 0, all = 1}

local function reduced(name, D, axis)
    local s = state_of(name, D)
    if not axis then return reduce_all(name, s) end
    return reduce_axis(name, s, axis)
end

for name, stands in pairs(neutral) do
    methods[name] = function(D, axis, options)
        axis, options = request(name, D, axis, options, "nan", "keepdims")
        local values = reduced(name, without_nan(name, D, options, stands), axis)
        if options.nan == "skip" and (name == "max" or name == "min") then
            values = where_any(values, count_of(name, D, axis, options))
        end
        return shaped(values, axis, options)
    end
end

local function mean(name, D, axis, options)
    return without_nan(name, D, options, 0):sum(axis) /
        count_of(name, D, axis, options)
end

function methods.mean(D, axis, options)
    axis, options = request("mean", D, axis, options, "nan", "keepdims")
    return shaped(mean("mean", D, axis, options), axis, options)
end

-- Squares are divided by the number of elements less ddof.
local function variance(name, D, axis, options)
    axis, options = request(name, D, axis, options, "ddof", "nan", "keepdims")
    local ddof = options.ddof or 1
    if type(ddof) ~= "number" or not (ddof >= 0) then
        fail(name, "ddof is %s, expected a number from 0 on", brief(ddof))
    end
    local apart = map(name, "abs", D - mean(name, D, axis, options))
    local squares = map(name, "square", without_nan(name, apart, options, 0))
    local count = count_of(name, D, axis, options) - ddof
    return shaped(where_any(squares:sum(axis) / count, count), axis, options)
end

function methods.var(D, axis, options) return variance("var", D, axis, options) end
function methods.std(D, axis, options)
    local v = variance("std", D, axis, options)
    return type(v) == "number" and sqrt(v) or v:sqrt()
end

-- --- norms -------------------------------------------------------------------

-- Of each column or row: powers of what the elements are of its largest one, which
-- neither overflow nor vanish.
local function line_norms(D, p, axis)
    local sizes = D:abs()
    local m, n = shape(state_of("norm", D))
    if p == 1 or m == 0 or n == 0 then return sizes:sum(axis) end
    local most = sizes:max(axis)
    if p == "inf" then return most end
    local scale = library.where(library.land(most:gt(0), most:lt(huge)), most, 1)
    local sum = map("norm", "pow", sizes / scale, p):sum(axis)
    return scale % library.pow(sum, 1 / p)
end

local function singular_values(D) return D:svd().S end

local matrix_norms = {
    fro = function(D) return reduce_all("norm", state_of("norm", D)) end,
    nuc = function(D) return singular_values(D):sum() end,
    inf = function(D) return D:abs():sum(2):max() end,
    [1] = function(D) return D:abs():sum(1):max() end,
    [2] = function(D) return singular_values(D):max() end,
}

-- Of the matrix, or with an axis of its columns or rows.
function methods.norm(D, p, options)
    if type(p) == "table" and options == nil then p, options = nil, p end
    local axis, given = request("norm", D, nil, options, "nan", "keepdims")
    if p == huge then p = "inf" end
    D = without_nan("norm", D, given, 0)
    if not axis then
        local norm = matrix_norms[p == nil and "fro" or p]
        if not norm then
            fail("norm", 'of a matrix p is 1, 2, "inf", "fro" or "nuc", not %s: ' ..
                "D:norm(p, {axis=1}) is one norm a column", brief(p))
        end
        local m, n = shape(state_of("norm", D))
        return (m == 0 or n == 0) and 0.0 or norm(D)
    end
    if p == nil or p == "fro" then p = 2 end
    if p ~= "inf" and not (type(p) == "number" and p > 0) then
        fail("norm", 'p is a number above 0, "inf" or "fro", not %s', brief(p))
    end
    return shaped(line_norms(D, p, axis), axis, given)
end

function methods.trace(D)
    local m, n = shape(state_of("trace", D))
    if m ~= n then fail("trace", "%dx%d is not square", m, n) end
    local line = D:diag()
    return (line.dtype == "f32" and line:f64() or line.dtype == "c64" and
        line:c128() or line):sum()
end

-- --- where the largest is ----------------------------------------------------

-- Is {value, row, column} before the other: larger, or smaller, and of equals
-- the first in the order of rows? NaN comes before all numbers.
local function is_before(name, x, y)
    local a, b = x[1], y[1]
    if is_nan(a) ~= is_nan(b) then return is_nan(a) end
    if a == b or is_nan(a) then
        return x[2] < y[2] or x[2] == y[2] and x[3] < y[3]
    end
    if name == "argmax" then return a > b end
    return a < b
end

local function place_of_all(name, s)
    local w = check_alive(name, s)
    local best
    for _, found in pairs(pool.tell(w.p, name, "reduce_place", w.id, name,
        s.turned and true or false)) do
        if s.turned then found[2], found[3] = found[3], found[2] end
        if not best or is_before(name, found, best) then best = found end
    end
    if not best then fail(name, "of no elements") end
    return to_integer(best[2]), to_integer(best[3])
end

-- Of two rows of values and places the better ones.
local function better(name)
    return function(x, y)
        local a, b = x[{{1, 1}, {}}], y[{{1, 1}, {}}]
        local i, j = x[{{2, 2}, {}}], y[{{2, 2}, {}}]
        local wins = name == "argmax" and b:gt(a) or b:lt(a)
        local is_same = library.lor(a:eq(b), library.land(a:ne(a), b:ne(b)))
        wins = library.lor(wins, library.land(b:ne(b), a:eq(a)))
        wins = library.lor(wins, library.land(is_same, j:lt(i)))
        return library.vcat(library.where(wins, b, a), library.where(wins, j, i))
    end
end

local function places_along(name, s, axis)
    local w = check_alive(name, s)
    local p = w.p
    local own = s.turned and 3 - axis or axis
    local found = {}
    if w.m == 0 or w.n == 0 then fail(name, "of no elements") end
    pool.tell_with(p, name, nil, function(link, size, number)
        if size[1] > 0 then found[number] = link:matrix("f64", 2, size[1]) end
    end, "reduce_place_axis", w.id, name, own)
    local n = own == 1 and w.n or w.m
    local out = library.zeros(n, 1, {dtype = "f64", device = "cpu"})
    each_line(w, own, found, function(list, place)
        out[{place, {}}] = folded(list, better(name))[{{2, 2}, {}}].T
    end)
    return axis == 1 and out.T:clone() or out
end

for _, name in ipairs{"argmax", "argmin"} do
    methods[name] = function(D, axis, options)
        local s = state_of(name, D)
        if checks.is_complex(D) then fail(name, "of complex matrices is not there") end
        axis, options = request(name, D, axis, options, "keepdims")
        if not axis then return place_of_all(name, s) end
        return shaped(places_along(name, s, axis), axis, options)
    end
end

-- --- running sums ------------------------------------------------------------

-- Down the columns: within each block first; then of what the blocks come to,
-- which are few, in the same way; then both together. So the order of the sums
-- follows from the blocks alone.
local function scanned(name, w)
    local t = parts.like(name, w)
    local blocks = (w.m + w.mb - 1) // w.mb
    local ends = parts.new_parts(name, w.p, blocks, w.n, w.dtype, 1, w.nb)
    pool.tell(w.p, name, "scan_blocks", t.id, ends.id, w.id, name)
    if blocks <= 1 then return t end
    local above = scanned(name, parts.laid_in(name, ends, SCAN, w.nb))
    local shifted = parts.new_parts(name, w.p, blocks, w.n, w.dtype, 1, w.nb)
    pool.tell(w.p, name, "full", shifted.id, blocks, w.n, 1, w.nb, w.dtype,
        name == "cumsum" and 0 or 1)
    local most = parts.new_parts(name, w.p, blocks - 1, w.n, w.dtype, SCAN, w.nb)
    pool.tell(w.p, name, "block", most.id, above.id, 1, 1, blocks - 1, w.n, SCAN,
        w.nb)
    pool.tell(w.p, name, "place", shifted.id, 2, 1, most.id)
    pool.tell(w.p, name, "scan_join", t.id, shifted.id, name)
    return t
end

for _, name in ipairs{"cumsum", "cumprod"} do
    methods[name] = function(D, axis, options)
        axis = request(name, D, axis, options) or 1
        local turned = axis == 1 and D or D.T
        local t = parts.new(scanned(name, parts.settled(name, state_of(name,
            turned))))
        return axis == 1 and t or t.T
    end
end

return {weighted_sums = weighted_sums}
