-- Elements in other places: differences of neighbours, turns, frames around a
-- matrix, elements and vectors repeated, bands.
local library = ...
local checks = require "lumat.checks"
local along = require "lumat.along"
local steps = require "lumat.moving_steps"
local fail, shape_of = checks.fail, checks.shape_of
local axis_of, like, part, put, size_of = along.axis, along.like, along.part,
    along.put, along.size
local rearranging = {}
local ipairs, type = ipairs, type
local smaller = math.min
local unpack = table.unpack

-- --- neighbours ---------------------------------------------------------------

row{
    name = "diff", method = true,
    takes = "A: matrix [, n: size] {axis}",
    gives = "matrix",
    group = "running",
    help = "Differences of neighbours down each column (axis 1) or along each " ..
        "row (2): one fewer than there are elements. n times over (1), n of " ..
        "them fewer.",
    example = "diff(vec{1, 4, 9, 16})",
    result = "{3, 5, 7}",
}
function rearranging.diff(A, n, options)
    n, options = along.options(n, options)
    local axis = axis_of("diff", A, options)
    local D = A.dtype == "bool" and A:f32() or A
    n = smaller(n or 1, size_of(A, axis))
    if n == 0 then return D:clone() end
    for _ = 1, n do
        local size = size_of(D, axis)
        D = part(D, axis, 2, size) - part(D, axis, 1, size - 1)
    end
    return D
end

-- --- turns --------------------------------------------------------------------

row{
    name = "roll", method = true,
    takes = "A: matrix, k: integer {axis}",
    gives = "matrix",
    group = "places",
    help = "Elements k places further down each column (axis 1) or along each " ..
        "row (2); what leaves at the end comes back at the beginning. A k " ..
        "below 0 moves towards the beginning.",
    example = "roll(vec{1, 2, 3, 4}, 1)",
    result = "{4, 1, 2, 3}",
}
function rearranging.roll(A, k, options)
    local axis = axis_of("roll", A, options)
    local size = size_of(A, axis)
    local stay = size - (size > 0 and k % size or 0)
    return along.join(A, axis, part(A, axis, stay + 1, size),
        part(A, axis, 1, stay))
end

row{
    name = "rot90", method = true,
    takes = "A: matrix [, k: integer]",
    gives = "matrix",
    group = "places",
    help = "A view of A turned by k (1) quarter turns, against the clock; a k " ..
        "below 0 turns with it.",
    example = "rot90(mat{{1, 2}, {3, 4}})",
    result = "{{2, 4}, {1, 3}}",
}
function rearranging.rot90(A, k)
    if A.ndim == 1 then
        fail("rot90", "A is a vector (%s), expected a matrix: A:row() is 1x%d",
            shape_of(A), A.rows)
    end
    k = (k or 1) % 4
    if k == 0 then return A.T.T end
    if k == 1 then return A.T:flip(1) end
    if k == 2 then return A:flip(1):flip(2) end
    return A:flip(1).T
end

-- --- a frame around -----------------------------------------------------------

-- For each place of an axis beyond the n elements, from 1 - before on or from
-- n + 1 on, `count` of them: which element is there. places counts from 0.
local sources = {}
function sources.edge(places, n) return places:clip(0, n - 1) end
function sources.wrap(places, n) return places % n end
function sources.symmetric(places, n)
    local k = places % (2 * n)
    return library.minimum(k, 2 * n - 1 - k)
end
function sources.reflect(places, n)
    if n == 1 then return 0 * places end
    local k = places % (2 * n - 2)
    return library.minimum(k, 2 * n - 2 - k)
end

-- The places that the options name, over the width that is everywhere.
local function widths_of(A, width, options)
    local names = A.ndim == 1 and {"before", "after"} or
        {"top", "bottom", "left", "right"}
    local others = A.ndim == 1 and {"top", "bottom", "left", "right"} or
        {"before", "after"}
    for _, name in ipairs(others) do
        if options[name] then
            fail("pad", "%s has no %s: write %s", shape_of(A), name,
                A.ndim == 1 and "before and after" or
                "top, bottom, left and right")
        end
    end
    local list, is_given = {0, 0, 0, 0}, width ~= nil
    for i, name in ipairs(names) do
        list[i] = options[name] or width or 0
        is_given = is_given or options[name] ~= nil
    end
    if not is_given then
        fail("pad", "no width is given: write pad(A, 1), or pad(A, {%s = 1})",
            names[1])
    end
    return list
end

-- Writes what lies beyond the elements first … last of an axis of `out`, which
-- are there: `before` others and `after`.
local function extend(out, axis, before, after, mode)
    local size = size_of(out, axis)
    local n = size - before - after
    local inner = part(out, axis, before + 1, before + n)
    local function fill(first, count, from)
        if count == 0 then return end
        local places = library.range(from, from + count - 1, 1,
            {dtype = "f64", device = "cpu"})
        local strip = along.take(inner, axis, sources[mode](places, n) + 1)
        put(out, axis, first, first + count - 1, strip)
    end
    fill(1, before, -before)
    fill(before + n + 1, after, n)
end

row{
    name = "pad", method = true,
    takes = "A: matrix, width: size {mode, value, top, bottom, left, right, " ..
        "before, after} or A: matrix, {mode, value, top, bottom, left, right, " ..
        "before, after}",
    gives = "matrix",
    group = "joining",
    help = "A with `width` more elements on every side, or with as many as " ..
        "each side's option says: top, bottom, left, right of a matrix, before " ..
        "and after of a vector.",
    example = "pad(vec{1, 2, 3}, 2, {mode = \"reflect\"})",
    result = "{3, 2, 1, 2, 3, 2, 1}",
    options = {{"mode", "\"constant\"|\"edge\"|\"reflect\"|\"symmetric\"|\"wrap\"",
        "\"constant\"", "what they are: \"constant\" value; \"edge\" the " ..
            "outermost element; \"reflect\" mirrored at it, \"symmetric\" " ..
            "mirrored behind it; \"wrap\" those of the other side"},
        {"value", "scalar|boolean", "0", "of mode \"constant\""},
        {"top", "size", "width, or 0", "rows above"},
        {"bottom", "size", "width, or 0", "rows below"},
        {"left", "size", "width, or 0", "columns on the left"},
        {"right", "size", "width, or 0", "columns on the right"},
        {"before", "size", "width, or 0", "elements before a vector's first"},
        {"after", "size", "width, or 0", "elements behind a vector's last"}},
}
function rearranging.pad(A, width, options)
    width, options = along.options(width, options)
    local top, bottom, left, right = unpack(widths_of(A, width, options))
    local mode, value = options.mode or "constant", options.value
    if mode ~= "constant" then
        if value then fail("pad", "value goes with mode \"constant\" alone") end
        if A.rows == 0 and top + bottom > 0 or A.cols == 0 and left + right > 0 then
            fail("pad", "A is empty (%s), so there is nothing to pad it with",
                shape_of(A))
        end
    end
    local rows, cols = A.rows + top + bottom, A.cols + left + right
    local out = steps.empty(A, rows, A.ndim == 2 and cols or nil)
    local middle = part(out, 1, top + 1, top + A.rows)
    if A.ndim == 1 then
        put(out, 1, top + 1, top + A.rows, A)
    else
        put(middle, 2, left + 1, left + A.cols, A)
    end
    if mode == "constant" then
        value = value or 0
        put(middle, 2, 1, left, value)
        put(middle, 2, left + A.cols + 1, cols, value)
        put(out, 1, 1, top, value)
        put(out, 1, top + A.rows + 1, rows, value)
        return out
    end
    if A.ndim == 2 then extend(middle, 2, left, right, mode) end
    extend(out, 1, top, bottom, mode)
    return out
end

-- --- repeated -----------------------------------------------------------------

-- How often each of n elements comes: a number, or an f64 vector.
local function counts_of(name, counts, n)
    if type(counts) == "number" then return counts end
    if type(counts) == "table" then
        counts = library.vec(counts, {dtype = "f64", device = "cpu"})
    end
    if checks.is_complex(counts) then
        fail("repelem", "%s holds complex numbers, expected whole ones", name)
    end
    if counts.rows ~= n then
        fail("repelem", "%s has %s, expected one for each of %d", name,
            checks.plural(counts.rows, "count"), n)
    end
    return counts:f64()
end

-- Elements of a row from which a CPU copies row by row.
local LONG_ROW = 32

-- Each element along the axis so many times, a copy.
local function repeated(A, axis, counts, name)
    if type(counts) ~= "number" then
        return steps.repeated(A, axis, counts, name)
    end
    local rows, cols = A.rows, A.cols
    if axis == 2 or A.ndim == 1 then
        local out = steps.spread(A:reshape(rows * cols, 1), counts)
        if A.ndim == 1 then return out:flatten() end
        return out:reshape(rows, cols * counts)
    end
    if counts > cols and rows * cols > 0 then -- long runs of a short row
        return repeated(A.T, 2, counts).T:clone()
    end
    if A.device == "cpu" and cols >= LONG_ROW then
        return steps.repeated_rows(A, counts)
    end
    local out = steps.empty(A, rows, cols * counts)
    for k = 1, counts do put(out, 2, (k - 1) * cols + 1, k * cols, A) end
    return out:reshape(rows * counts, cols)
end

row{
    name = "repelem", method = true,
    takes = "v: vector, counts: size|list or A: matrix, rows: size|list, " ..
        "columns: size|list",
    gives = "matrix",
    group = "joining",
    help = "Each element so many times, one behind the other; of a matrix each " ..
        "row and each column. A vector or table of counts says it for each. " ..
        "(tile repeats the whole.)",
    example = "repelem(vec{1, 2, 3}, {2, 0, 1})",
    result = "{1, 1, 3}",
}
function rearranging.repelem(A, rows, columns)
    if A.ndim == 1 then
        if columns ~= nil then
            fail("repelem", "A is a vector (%s), which has no columns: write " ..
                "repelem(v, counts)", shape_of(A))
        end
        return repeated(A, 1, counts_of("counts", rows, A.rows), "counts")
    end
    rows = counts_of("rows", rows, A.rows)
    columns = counts_of("columns", columns, A.cols)
    if columns == 1 then return repeated(A, 1, rows, "rows") end
    if type(rows) == "number" and type(columns) == "number" and
        rows <= columns then -- what lies between the two is smaller
        return repeated(repeated(A, 1, rows), 2, columns)
    end
    local wide = repeated(A, 2, columns, "columns")
    return rows == 1 and wide or repeated(wide, 1, rows, "rows")
end

-- --- grids --------------------------------------------------------------------

row{
    name = "meshgrid", method = true,
    takes = "x: vector [, y: vector]",
    gives = "matrix, matrix",
    group = "joining",
    help = "The coordinates of a grid, two matrices with a row for each y and a " ..
        "column for each x (y is x where it is not given): X, Y = meshgrid(x, " ..
        "y). Where operands are stretched, as in x:row() + y:col(), there is " ..
        "no need of them.",
    example = "meshgrid(vec{1, 2}, vec{5, 6})",
    result = "{{1, 2}, {1, 2}}",
}
function rearranging.meshgrid(x, y)
    y = y or x
    local X, Y = steps.empty(x, y.rows, x.rows), steps.empty(y, y.rows, x.rows)
    X[{{}, {}}] = x:row()
    Y[{{}, {}}] = y:reshape(y.rows, 1)
    return X, Y
end

-- --- bands --------------------------------------------------------------------

row{
    name = "band", method = true,
    takes = "A: matrix, below: integer [, above: integer]",
    gives = "matrix",
    group = "diagonals",
    help = "The diagonal of A and so many below and above it (above: as below), " ..
        "with zeros elsewhere: A:tril(above):triu(-below).",
    example = "band(ones(3, 3), 0, 1)",
    result = "{{1, 1, 0}, {0, 1, 1}, {0, 0, 1}}",
}
function rearranging.band(A, below, above)
    return steps.band(A, below, above or below)
end

return rearranging
