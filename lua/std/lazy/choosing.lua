-- Elements and rows chosen: by places, masks, values and functions, and by
-- their order.
local library = ...
local checks = require "lumat.checks"
local along = require "lumat.along"
local search = require "lumat.data_steps".search
local select = require "lumat.statistics_steps".select
local sort_first = require "lumat.data_steps".sort_first
local steps = require "lumat.moving_steps"
local brief, fail, is_complex, is_wide, shape_of = checks.brief, checks.fail,
    checks.is_complex, checks.is_wide, checks.shape_of
local axis_of, like, part, size_of = along.axis, along.like, along.part,
    along.size
local choosing = {}
local ipairs, type = ipairs, type
local huge, larger, smaller, to_integer = math.huge, math.max, math.min,
    math.tointeger
local getinfo = debug.getinfo

-- 1 … n. On the host, where lists of places are read, if not like a matrix.
local function counted(n, A)
    return library.range(1, n, 1, {dtype = "f64", device = A and A.device or
        "cpu"})
end

-- --- all but ------------------------------------------------------------------

local sides = {"row", "column"}

-- The 1-based place of `key` among n.
local function place_of(A, side, key, n)
    local place = to_integer(key)
    if not place then
        fail("drop", "%s %s is not a whole number", side, brief(key))
    end
    local found = place < 0 and place + n + 1 or place
    if found < 1 or found > n then
        fail("drop", "there is no %s %s in a %s%s", side, brief(place),
            shape_of(A), A.ndim == 1 and "" or " matrix")
    end
    return found
end

-- A mask of n, true for what stays; `list` has the places of what goes, or is a
-- mask of it.
local function kept_of_list(A, side, list, n)
    if list.dtype == "bool" then
        if list.rows ~= n then
            fail("drop", "the mask has length %d, there are %s in %s", list.rows,
                checks.plural(n, side), shape_of(A))
        end
        return ~list
    end
    if is_complex(list) then
        fail("drop", "a list of %ss holds whole numbers, not complex ones", side)
    end
    local places = list:to("cpu"):f64()
    local wrong = places:abs():lt(1) | places:abs():gt(n) |
        places:ne(places:floor())
    if wrong:any() == true then place_of(A, side, places[wrong:argmax()], n) end
    local kept = library.full(n, true, {dtype = "bool", device = "cpu"})
    if list.rows > 0 then kept[list] = false end
    return kept
end

-- What stays of n: a mask, or a list of ranges {first, last}.
local function kept_of(A, side, key, n)
    if type(key) == "userdata" then return kept_of_list(A, side, key, n) end
    if type(key) == "number" then
        local place = place_of(A, side, key, n)
        return {{1, place - 1}, {place + 1, n}}
    end
    local first, last, step = key[1], key[2], key[3] or 1
    if #key < 2 or #key > 3 or not (to_integer(first) and to_integer(last) and
        to_integer(step)) or step == 0 then
        fail("drop", "the %ss are no range {first, last} or {first, last, " ..
            "step}; a list of places is a vector: vec{…}", side)
    end
    if step == 1 and last == first - 1 then return {{1, n}} end -- none of them
    first, last = place_of(A, side, first, n), place_of(A, side, last, n)
    if step == 1 and first <= last then
        return {{1, first - 1}, {last + 1, n}}
    end
    return kept_of_list(A, side, counted(n)[{{first, last, step}}], n)
end

-- What stays along an axis, a copy.
local function dropped(A, axis, key)
    local side = A.ndim == 1 and "element" or sides[axis]
    local kept = kept_of(A, side, key, size_of(A, axis))
    if type(kept) ~= "table" then return along.take(A, axis, kept) end
    local parts = {}
    for i, range in ipairs(kept) do
        parts[i] = part(A, axis, range[1], range[2])
    end
    return along.join(A, axis, table.unpack(parts))
end

row{
    name = "drop", method = true,
    takes = "A: matrix, rows: integer|table|vector|nothing [, columns: " ..
        "integer|table|vector]",
    gives = "matrix",
    group = "places",
    help = "A without some rows, columns or, of a vector, elements, as a copy. " ..
        "They are named as in A[{rows, columns}]: by a number, a range {first, " ..
        "last}, a vector of places, or a mask; nil drops none.",
    example = "drop(mat{{1, 2, 3}, {4, 5, 6}}, 1, {1, 2})",
    result = "{{6}}",
}
function choosing.drop(A, rows, columns)
    if columns ~= nil and A.ndim == 1 then
        fail("drop", "A is a vector (%s), which has no columns", shape_of(A))
    end
    if rows == nil and columns == nil then return A:clone() end
    if rows ~= nil then A = dropped(A, 1, rows) end
    if columns ~= nil then A = dropped(A, 2, columns) end
    return A
end

-- --- where --------------------------------------------------------------------

row{
    name = "find", method = true,
    takes = "A: matrix [, n: integer]",
    gives = "matrix",
    group = "questions places",
    help = "The places of what is true, or not 0 (as NaN is): of a vector a " ..
        "vector, of a matrix two columns, their rows and columns, row by row. " ..
        "With n only the first n, or the last -n.",
    example = "find(vec{5, 0, 7, 8}:gt(5))",
    result = "{3, 4}",
}
function choosing.find(A, n)
    local places = steps.find(A.dtype == "bool" and A or A:ne(0))
    if n and n >= 0 then
        places = part(places, 1, 1, smaller(n, #places)):clone()
    elseif n then
        places = part(places, 1, larger(#places + n, 0) + 1, #places):clone()
    end
    if A.ndim == 1 then return places end
    local out = steps.empty(places, #places, 2)
    local row = (places - 1) // larger(A.cols, 1)
    out[{{}, 1}] = row + 1
    out[{{}, 2}] = places - row * A.cols
    return out
end

-- The columns that f gets: as many as it has parameters, at least one, which
-- map needs to know how many rows there are.
local function columns_for(A, f)
    if A.ndim == 1 then return {A} end
    local count = A.cols
    local info = type(f) == "function" and getinfo(f, "u")
    if info and not info.isvararg then
        if info.nparams > count + 1 then
            fail("filter", "f takes %d numbers, a row of A has %d (behind them " ..
                "comes its place)", info.nparams, count)
        end
        count = larger(smaller(info.nparams, count), 1)
    end
    local columns = {}
    for j = 1, count do columns[j] = A:col(j) end
    return columns
end

row{
    name = "filter", method = true,
    takes = "A: matrix, f: function",
    gives = "matrix",
    group = "places mapping",
    help = "The rows for which f(x, y, …) is true, as a copy: f gets the numbers " ..
        "of a row, and its place behind them; of a vector, elements. f runs as " ..
        "in map: where it only computes, as one pass over memory.",
    example = "filter(mat{{1, 5}, {2, 3}, {4, 6}}, function(x, y) return x + y > 5 end)",
    result = "{{1, 5}, {4, 6}}",
}
function choosing.filter(A, f)
    if A.ndim == 2 and A.cols == 0 then
        fail("filter", "A has no columns (%s)", shape_of(A))
    end
    local columns = columns_for(A, f)
    columns[#columns + 1] = f
    local truth = library.map(table.unpack(columns)):flatten()
    if truth.dtype ~= "bool" then
        local wrong = truth:ne(0) & truth:ne(1)
        if wrong:any() == true then
            local i = wrong:argmax()
            fail("filter", "f gave %s for %s %d, expected true or false",
                brief(truth[i]), A.ndim == 1 and "element" or "row", i)
        end
        truth = truth:ne(0)
    end
    return along.take(A, 1, truth)
end

-- --- members ------------------------------------------------------------------

local FEW = 16 -- compared one by one

row{
    name = "isin", method = true,
    takes = "A: matrix, values: matrix|table",
    gives = "matrix",
    group = "comparing",
    help = "Is each element one of the values? A mask as A:eq(values[1]) | " ..
        "A:eq(values[2]) … gives it; NaN equals none.",
    example = "isin(vec{1, 2, 3, 4}, {2, 4, 9})",
    result = "{false, true, false, true}",
}
function choosing.isin(A, values)
    if type(values) == "table" then
        values = library.vec(values, like(A, A.dtype == "bool" and "f32" or nil))
    end
    if is_wide(values) and not is_wide(A) then -- as A:eq(values) compares them
        A = is_complex(A) and library.c128(A) or A:f64()
    end
    if values.size <= FEW or is_complex(A) or is_complex(values) then
        local truth
        for _, x in ipairs(values:flatten():totable()) do
            local equal = A:eq(x)
            truth = truth and truth | equal or equal
        end
        return truth or (A:ne(A) & false)
    end
    local sorted = values:flatten():sort()
    local v = A:flatten()
    local at = search(sorted, v, false)
    local found = sorted[library.minimum(at, #sorted)]:eq(v)
    return A.ndim == 1 and found or found:reshape(A.rows, A.cols)
end

-- --- order --------------------------------------------------------------------

-- {{column, is_descending}, …}
local function sort_keys(A, columns, is_descending)
    if type(columns) == "number" then columns = {columns} end
    if type(columns) == "userdata" then columns = columns:totable() end
    local keys = {}
    if columns == nil then
        for j = 1, A.cols do keys[j] = {j, is_descending} end
        return keys
    end
    for i, column in ipairs(columns) do
        local j = type(column) == "number" and to_integer(column)
        if not j then
            fail("sortrows", "column %s is not a whole number", brief(column))
        end
        if j == 0 or j > A.cols or -j > A.cols then
            fail("sortrows", "there is no column %d in a %s matrix",
                j < 0 and -j or j, shape_of(A))
        end
        keys[i] = {j < 0 and -j or j, (j < 0) ~= is_descending}
    end
    return keys
end

-- The places that sort the rows by the first `count` keys.
local function row_order(A, keys, count)
    local order
    for i = count, 1, -1 do
        local key = A[{{}, keys[i][1]}]
        if order then key = key[order] end
        local places = key:argsort{descending = keys[i][2]}
        order = order and order[places] or places
    end
    return order
end

-- Are two rows beside each other equal in the first `count` keys?
local function has_ties(A, keys, count, order)
    local n, equal = A.rows, nil
    for i = 1, count do
        local key = A[{{}, keys[i][1]}][order]
        local x, y = key[{{1, n - 1}}], key[{{2, n}}]
        local same = x:eq(y) | (x:ne(x) & y:ne(y))
        equal = equal and equal & same or same
    end
    return equal:any() == true
end

-- By all keys: by few of them at first, where that may do.
local SURE = 2
local function order_of_rows(A, keys)
    local count = #keys > SURE and 1 or #keys
    local order = row_order(A, keys, count)
    while count < #keys and has_ties(A, keys, count, order) do
        count = smaller(2 * count, #keys)
        order = row_order(A, keys, count)
    end
    return order
end

row{
    name = "sortrows", method = true,
    takes = "A: matrix [, columns: integer|list] {descending, places}",
    gives = "matrix or matrix, matrix with places",
    group = "places",
    help = "The rows in order of a column, then of the next one: those given, " ..
        "else all. -j is column j descending; NaN comes last. Equal rows keep " ..
        "their order.",
    example = "sortrows(mat{{2, 1}, {1, 5}, {2, 0}}, {1, -2})",
    result = "{{1, 5}, {2, 1}, {2, 0}}",
    options = {{"places", "boolean", "false",
        "a second result says where each row came from"}},
}
function choosing.sortrows(A, columns, options)
    if type(columns) == "table" and options == nil and #columns == 0 then
        columns, options = nil, columns
    end
    options = options or {}
    if A.ndim == 1 then
        fail("sortrows", "A is a vector (%s): sort(v) sorts its elements",
            shape_of(A))
    end
    checks.ordered("sortrows", A)
    local keys = sort_keys(A, columns, options.descending == true)
    local order = (#keys == 0 or A.rows < 2) and counted(A.rows, A) or
        order_of_rows(A, keys)
    local sorted = along.take(A, 1, order)
    if not options.places then return sorted end
    return sorted, order
end

-- The k largest elements of a long vector are among those that reach the k-th
-- largest of the maxima of many groups of it. Groups take every GROUPS-th
-- element, so that those of a sorted vector are alike.
local LONG, GROUPS, SHARE = 1 << 16, 4096, 16

local function bound_of_groups(v, k, how)
    local rows = #v // GROUPS
    local groups = v[{{1, rows * GROUPS}}]:reshape(rows, GROUPS)
    local none = how.descending and -huge or huge
    local numbers = library.where(groups:isnan(), none, groups)
    local bounds = how.descending and numbers:max(1) or numbers:min(1)
    return library.sort(bounds:flatten(), {descending = how.descending})[k]
end

-- The k-th element of each line in their order, as they would be without NaN.
local function bound_of_lines(A, axis, k, how)
    return select(A, axis, false, {how.descending and size_of(A, axis) - k or
        k - 1})
end

local function reaches(A, bound, how)
    return how.descending and A:ge(bound) or A:le(bound)
end

-- The first k of the sorted elements of each line, and their places where
-- these are wanted.
local function first_sorted(A, axis, k, how)
    local values, places = library.sort(A, axis, how)
    return part(values, axis, 1, k):clone(),
        places and part(places, axis, 1, k):clone()
end

-- The same, where the device has a way that sorts nothing else.
local function first_alone(A, axis, k, how)
    return sort_first(A, axis, k, how.descending == true, how.places == true)
end

-- So few elements are sorted as fast.
local function is_little(A)
    return A.size < (A.device == "cpu" and 512 or 1 << 17)
end

-- The same of a vector: only those are sorted that may be among them. How many
-- they are is no number in a dry run; with NaN they may be too few.
local function first_of_vector(v, k, how)
    local bound
    if #v >= LONG and k <= GROUPS // SHARE then
        bound = bound_of_groups(v, k, how)
    elseif 2 * k <= #v and not is_little(v) then
        bound = bound_of_lines(v, 1, k, how)[1]
    else
        return first_sorted(v, 1, k, how)
    end
    local mask = reaches(v, bound, how)
    local count = mask:sum()
    if type(count) ~= "number" or count < k or count > 0.75 * #v then
        return first_sorted(v, 1, k, how)
    end
    local values, order = first_sorted(v[mask], 1, k, how)
    return values, order and steps.find(mask)[order]
end

-- The same of all rows of a matrix. Rows in which more than k reach the bound,
-- or fewer, as there are NaN, are sorted, unless they are many.
local function first_of_rows(A, k, how)
    local mask = reaches(A, bound_of_lines(A, 2, k, how), how)
    local odd = mask:sum(2):ne(k):flatten()
    local count = odd:sum()
    if type(count) ~= "number" or count > A.rows // SHARE then return nil end
    local rows = count > 0 and steps.find(odd)
    if rows then -- any k of theirs make the number even
        mask[{rows, {}}] = counted(A.cols, A):row():le(k)
    end
    local values, order = library.sort(A[mask]:reshape(A.rows, k), 2, how)
    local places
    if order then
        local all = (steps.find(mask) - 1) % A.cols + 1
        local before = counted(A.rows, A):col() * k - k
        places = all[(order + before):flatten()]:reshape(A.rows, k)
    end
    if rows then
        local sorted, theirs = first_sorted(A[{rows, {}}], 2, k, how)
        values[{rows, {}}] = sorted
        if places then places[{rows, {}}] = theirs end
    end
    return values, places
end

-- Few long lines are taken one by one.
local MANY = 64
local function first_of_lines(A, axis, k, how)
    if A.dtype == "bool" then A = A:f32() end
    if k == 0 then return first_sorted(A, axis, k, how) end
    local first, whence = first_alone(A, axis, k, how)
    if first then return first, whence end
    if A.ndim == 1 then return first_of_vector(A, k, how) end
    local lines, size = axis == 1 and A.cols or A.rows, size_of(A, axis)
    if lines > MANY or size < LONG or k > GROUPS // SHARE then
        if 2 * k > size or is_little(A) then
            return first_sorted(A, axis, k, how)
        end
        local values, places = first_of_rows(axis == 2 and A or A.T, k, how)
        if not values then return first_sorted(A, axis, k, how) end
        if axis == 2 then return values, places end
        return values.T:clone(), places and places.T:clone()
    end
    local rows, cols = axis == 1 and k or A.rows, axis == 1 and A.cols or k
    local values = steps.empty(A, rows, cols)
    local places = how.places and library.zeros(rows, cols, like(A, "f64"))
    for i = 1, lines do
        local at = axis == 1 and {{}, i} or {i, {}}
        local x, p = first_of_vector(A[at], k, how)
        values[at] = x
        if p then places[at] = p end
    end
    return values, places
end

row{
    name = "topk", method = true,
    takes = "A: matrix, k: size {axis, smallest, places}",
    gives = "matrix or matrix, matrix with places",
    group = "extremes places",
    help = "The k largest elements of each column (axis 1) or row (2), the " ..
        "largest first, of equal ones the first; NaN comes behind all numbers. " ..
        "With {places=true} a second result says where each was.",
    example = "topk(vec{3, 9, 1, 7}, 2)",
    result = "{9, 7}",
    options = {{"smallest", "boolean", "false",
        "the k smallest, the smallest first"},
        {"places", "boolean", "false",
            "a second result says where each element was"}},
}
function choosing.topk(A, k, options)
    options = options or {}
    local axis = axis_of("topk", A, options)
    local size = size_of(A, axis)
    if k > size then
        fail("topk", "k is %d, there are %d %s in %s", k, size,
            A.ndim == 1 and "elements" or axis == 1 and "rows" or "columns",
            shape_of(A))
    end
    local values, places = first_of_lines(A, axis, k,
        {descending = not options.smallest, places = options.places})
    if not options.places then return values end
    return values, places
end

row{
    name = "tiedrank", method = true,
    takes = "A: matrix {axis}",
    gives = "matrix",
    group = "places",
    help = "The rank of each element among those of its column (axis 1) or row " ..
        "(2): 1 of the smallest; equal ones share the mean of theirs. NaN has " ..
        "the rank NaN, and counts for none.",
    example = "tiedrank(vec{10, 30, 20, 30})",
    result = "{1, 3.5, 2, 3.5}",
}
function choosing.tiedrank(A, options)
    local axis = axis_of("tiedrank", A, options)
    checks.ordered("tiedrank", A)
    local n = size_of(A, axis)
    if A.size == 0 then return A:f64() end
    local values, places = library.sort(A, axis, {places = true})
    local at = along.stretched(counted(n, A), A, axis)
    local same = part(values, axis, 2, n):eq(part(values, axis, 1, n - 1))
    local ends = part(places, axis, 1, 1) * 0 -- of the shape of one place
    -- Of each element the first and the last place of those that equal it.
    local first = library.cummax(along.join(A, axis, ends + 1,
        library.where(same, 0, part(at, axis, 2, n))), axis)
    local last = along.join(A, axis,
        library.where(same, huge, part(at, axis, 1, n - 1)), ends + n)
    last = library.cummin(last:flip(axis), axis):flip(axis)
    local ranks = library.where(values:isnan(), 0 / 0, (first + last) / 2)
    local out = library.zeros(A.size, like(places))
    if A.ndim == 1 then
        out[places] = ranks
        return out
    end
    if axis == 1 then places, ranks = places.T, ranks.T end
    local before = counted(places.rows, A):col() * n - n
    out[(places + before):flatten()] = ranks:flatten()
    out = out:reshape(places.rows, n)
    return axis == 1 and out.T:clone() or out
end

return choosing
