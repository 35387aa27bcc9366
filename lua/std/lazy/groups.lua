-- What belongs together: unique values and their counts, histograms, and groups
-- of rows that have the same keys.
--
-- Rows get a code, a whole number that tells their group. Keys that are whole
-- numbers close together are codes as they are; of others with few different
-- values each is looked up among these; what is left is sorted. Folds go over
-- the codes on a CPU, and over rows ordered by group on a GPU.
local library, _, _, private = ...
local checks = require "lumat.checks"
local kept = require "lumat.kept"
local steps = require "lumat.data_steps"
local find = require "lumat.moving_steps".find
local optional = require "lumat.along".options
local fail, is_matrix, plural, shape_of = checks.fail, checks.is_matrix,
    checks.plural, checks.shape_of
local groups = {}
local assert, getmetatable, ipairs, next, setmetatable, tostring, type =
    assert, getmetatable, ipairs, next, setmetatable, tostring, type
local concat, sort, unpack = table.concat, table.sort, table.unpack
local ceil, floor, huge, larger, smaller = math.ceil, math.floor, math.huge,
    math.max, math.min
local format = string.format
local packed, unpacked = string.pack, string.unpack

-- --- vectors ------------------------------------------------------------------

local function wide(like) return {dtype = "f64", device = like.device} end

-- first, first + 1, … last
local function counted(first, last, like)
    return library.range(first, last, 1, wide(like))
end

-- How many are true.
local function count_true(mask)
    return mask.size == 0 and 0 or floor(mask:sum())
end

-- A vector of numbers as keys are: its own, or what is in a mask.
local function numbers_of(what, name, v)
    checks.matrix(what, name, v)
    checks.ordered(what, v)
    if v.dtype == "bool" then return v:f32() end
    return v
end

-- Where groups of so many rows begin, from 1, and where one more would.
local function starts_of(counts)
    local starts = library.ones(counts.rows + 1, wide(counts))
    if counts.rows > 0 then
        starts[{{2, counts.rows + 1}}] = library.cumsum(counts) + 1
    end
    return starts
end

-- As f32 where that is what x was.
local function as_type(x, dtype)
    if dtype == "f32" then return x:f32() end
    return x
end

-- --- which rows have the same key ---------------------------------------------

-- Codes between their extremes are no more than so many for each row.
local SLOTS_A_ROW, LEAST_SLOTS, MOST_SLOTS = 2, 4096, 2 ^ 31 - 8
-- On a GPU, where counts and marks of many slots miss the cache and a sort is
-- quick.
local MOST_COUNTED, MOST_MARKED = 2 ^ 22, 2 ^ 25
-- A look at so many rows tells how many values there are; up to one in SPREAD of
-- them, which is fewer on a CPU, as it sorts faster than it looks up, values are
-- looked up.
local SAMPLE, SPREAD, SPREAD_ON_CPU, MOST_KNOWN = 16384, 4, 8, 65536
local LOOK = 256 -- rows that tell whether they are of whole numbers

-- Whole numbers close together, and no more than `most` on a GPU: the least of
-- them, how many there may be, and whether there are NaN beside them.
local function whole_range(v, most)
    if v.device == "cpu" then most = MOST_SLOTS end
    if #v == 0 then return nil end
    if #v > 4 * SAMPLE then -- a look says it of most
        local some = v[{{1, #v, #v // LOOK}}]:to "cpu"
        if library.any(some:gt(library.floor(some))) or
            some:max() - some:min() >= most then
            return nil
        end
    end
    local low, high = v:min(), v:max()
    local has_nan = low ~= low
    if has_nan then
        local is_nan = v:isnan()
        low = library.where(is_nan, huge, v):min()
        high = library.where(is_nan, -huge, v):max()
        if low > high then return nil end -- there are only NaN
        v = library.where(is_nan, low, v)
    end
    local slots = high - low + 1
    if not (slots <= larger(LEAST_SLOTS, SLOTS_A_ROW * v.rows)) or
        slots > most or low ~= floor(low) or
        library.any(v:ne(library.floor(v))) then
        return nil
    end
    return low, ceil(slots), has_nan
end

-- The different values of a sorted vector, which has no NaN, and the places at
-- which they begin, and one behind the last.
local function runs_of(sorted)
    if sorted.rows == 0 then return sorted:clone(), counted(1, 1, sorted) end
    return steps.runs(sorted, true, true, false)
end

-- The same values, and how often each is there.
local function lengths_of(sorted)
    if sorted.rows == 0 then
        return sorted:clone(), library.zeros(0, wide(sorted))
    end
    return steps.runs(sorted, true, false, true)
end

-- These values alone.
local function values_of(sorted)
    if sorted.rows == 0 then return sorted:clone() end
    return (steps.runs(sorted, true, false, false))
end

-- v in order, without its NaN, which come last, and the places it has them from.
local function in_order(v, wants_places)
    local sorted, places
    if wants_places then
        sorted, places = library.sort(v, {places = true})
    else
        sorted = library.sort(v)
    end
    local n = v.rows
    local last = n > 0 and sorted[n] or 0
    if last == last then return sorted, places, false end
    n = n - count_true(v:isnan())
    if n == 0 then
        return library.zeros(0, {dtype = v.dtype, device = v.device}),
            places and library.zeros(0, wide(v)), true
    end
    return sorted[{{1, n}}], places and places[{{1, n}}], true
end

-- The different values in order, NaN aside, where a look says that there are
-- few, and each one's place among them: NaN has the place behind. nil: many.
-- What the look did not see is put in order by itself.
local function few_values(v)
    local n = v.rows
    if n < 4 * SAMPLE then return nil end
    local known = values_of((in_order(v[{{1, n, n // SAMPLE}}]:clone())))
    local spread = v.device == "cpu" and SPREAD_ON_CPU or SPREAD
    if #known == 0 or #known * spread > SAMPLE then return nil end
    local place = steps.search(known, v, false)
    -- what is behind all of them, NaN too, is not the last one again
    local there = library.hcat(known, known[{{#known, #known}}]):take(place)
    local missing = there:ne(v) & ~v:isnan()
    local count = count_true(missing)
    if count == 0 then return known, place end
    if count * spread > n then return nil end
    local more = values_of((in_order(v[missing])))
    if #known + #more > MOST_KNOWN then return nil end
    known = library.sort(library.hcat(known, more))
    return known, steps.search(known, v, false)
end

-- How the rows of v, a vector of numbers, are told apart. Either by codes: code,
-- first, slots, as steps.group takes them, and present, the slots that have
-- rows, as places, where not all of them do; or by starts and order; or, where
-- only counts are wanted, by counts alone. And values, one a group, and where it
-- is known whether there are NaN, which are in none. Nothing of it is v itself,
-- which others may write to.
local function told_apart(v, wants_counts)
    local low, slots, has_nan = whole_range(v, MOST_COUNTED)
    if low then
        local counts = steps.group(v, low, slots, false)
        local has = counts:gt(0)
        local n = count_true(has)
        local places = counted(1, slots, v)
        if n < slots then places = places[has] end
        return {code = v:clone(), first = low, slots = slots, rows = v.rows,
            present = n < slots and places or nil,
            slot_counts = counts, has_nan = has_nan,
            values = as_type(places - 1 + low, v.dtype)}
    end
    local known, place
    if not wants_counts then known, place = few_values(v) end
    if known then
        return {code = place, first = 1, slots = #known, rows = v.rows,
            values = known}
    end
    if v.device == "cpu" and not wants_counts then
        local sorted, _, has_nans = in_order(v)
        local values = values_of(sorted)
        return {code = steps.search(values, v, false), first = 1,
            slots = #values, rows = v.rows, values = values,
            has_nan = has_nans}
    end
    local sorted, order, has_nans = in_order(v, not wants_counts)
    local t = {order = order, rows = v.rows, has_nan = has_nans}
    if wants_counts then
        t.values, t.counts = lengths_of(sorted)
    else
        t.values, t.starts = runs_of(sorted)
    end
    return t
end

-- How many rows each group has.
local function counts_of(t)
    if t.counts then return t.counts end
    if t.starts then
        local n = #t.starts
        t.counts = n > 1 and t.starts[{{2, n}}] - t.starts[{{1, n - 1}}] or
            library.zeros(0, wide(t.starts))
        return t.counts
    end
    t.slot_counts = t.slot_counts or
        steps.group(t.code, t.first, t.slots, false)
    t.counts = t.present and t.slot_counts:take(t.present) or t.slot_counts
    return t.counts
end

-- Rows in order, and where each group begins among them.
local function ordered(t)
    if not t.order then
        local counts = counts_of(t)
        local _
        _, t.order = steps.group(t.code, t.first, t.slots, true)
        t.starts = starts_of(counts)
    end
    return t.order, t.starts
end

-- The number of each row's group, from 1; of none NaN.
local function numbers_of_rows(t)
    if t.number then return t.number end
    local count = #counts_of(t)
    local number
    if t.code and not t.present then
        number = library.floor(t.code:f64() - t.first) + 1
        number = library.where(number:ge(1) & number:le(count), number, 0 / 0)
    else
        local order, starts = ordered(t)
        number = library.full(t.rows, 0 / 0, wide(order))
        local n = floor(starts[#starts]) - 1
        if n > 0 then
            local places = counted(1, n, order)
            number:put(steps.search(starts, places, true) - 1,
                order[{{1, n}}])
        end
    end
    t.number = number
    return number
end

-- One fold of X's rows, f64, a row or an element a group.
local function folded(t, kind, X, skips, about)
    if t.code and X.device == "cpu" and kind ~= "median" then
        if about and t.present then
            local all = library.zeros(t.slots, about.cols, wide(about))
            if about.ndim == 1 then all = all:flatten() end
            about = all:put(about, t.present)
        end
        local out = steps.fold(kind, X, skips, t.code, t.first, t.slots, about)
        return t.present and out:take(t.present) or out
    end
    local order, starts = ordered(t)
    return steps.fold_ordered(kind, X, skips, starts, order, about)
end

-- The place of each group's first row.
local function first_places(t)
    local order, starts = ordered(t)
    return order:take(starts[{{1, #starts - 1}}])
end

-- --- objects that show themselves ---------------------------------------------

local state = setmetatable({}, {__mode = "k"}) -- of each object

-- kind: name, called (as messages call one), order (the fields, in the order of
-- unpack), parts (functions of the state that make fields), methods, says (the
-- text). What it makes has these fields, of which it hands out copies, and which
-- nobody assigns. For sessions: kept(s, self, rescues), a table of plain values,
-- of which again(parts) makes the state once more.
local function class(kind)
    local meta = {__name = kind.name, __metatable = kind.name, __members = {}}
    for _, name in ipairs(kind.order) do meta.__members[name] = true end
    for name, f in next, kind.methods do
        kind.methods[name] = checks.method(name, kind.called, f)
        meta.__members[name] = kind.methods[name]
    end
    meta.__index = checks.placed(function(self, name)
        local s = state[self]
        if kind.methods[name] then return kind.methods[name] end
        if s[name] ~= nil and meta.__members[name] then
            return checks.handed_out(s[name])
        end
        if not kind.parts[name] then
            local names = {}
            for member in next, meta.__members do
                names[#names + 1] = member
            end
            sort(names)
            fail(kind.name, "there is no '%s' of it: it has %s",
                tostring(name), concat(names, " "))
        end
        s[name] = kind.parts[name](s)
        return checks.handed_out(s[name])
    end)
    meta.__newindex = checks.placed(function(_, name)
        fail(kind.name, "'%s' cannot be assigned: it is what was found",
            tostring(name))
    end)
    function meta.__tostring(self) return kind.says(state[self]) end
    local function object(s, self)
        state[self] = s
        return kept.note(setmetatable(self, meta), kind.name)
    end
    kept.add_kind(kind.name, function(self, rescues)
        local fields = kind.kept(state[self], self, rescues)
        return fields, fields
    end, function(self, parts) object(kind.again(parts), self) end)
    return function(s) return object(s, {}) end
end

-- A part of an object from a file, where it has to be a vector of so many.
local function vector_part(v, rows)
    return assert(is_matrix(v) and v.ndim == 1 and (not rows or #v == rows) and v)
end

-- --- searching ----------------------------------------------------------------

-- A look at all of a vector is worth it where it costs less than the search, or
-- little.
local SHORT_SEARCH = 65536

row{
    name = "searchsorted", method = true,
    takes = "v: vector, x: matrix|number {side}",
    gives = "matrix or number",
    group = "places",
    help = "The place in the sorted vector v before which each x would go, so " ..
        "that v stays sorted: 1 where all of v is larger, #v + 1 where nothing " ..
        "is (NumPy's result and 1). Of elements that equal x it is before the " ..
        "first, with side=\"right\" behind the last. NaN counts as the largest.",
    example = "searchsorted(vec{1, 3, 5}, 4)",
    result = "3",
    options = {{"side", "\"left\"|\"right\"", "\"left\"",
        "before the first element that equals x, or behind the last"}},
}
function groups.searchsorted(v, x, options)
    local is_after = options and options.side == "right"
    local sought = x
    if type(x) == "number" then sought = library.full(1, x, wide(v)) end
    if (#v <= SHORT_SEARCH or #v <= 16 * sought.size) and
        not checks.is_complex(v) and not steps.is_sorted(v) then
        fail("searchsorted", "v is not sorted: write sort(v)")
    end
    local place = steps.search(v, sought, is_after)
    if type(x) ~= "number" then return place end
    return floor(place[1])
end

-- --- unique values ------------------------------------------------------------

local unique_object = class{name = "unique", called = "u",
    order = {"values", "places", "counts"}, parts = {
        places = function(s)
            if not s.has_places then
                fail("unique", "places were not asked for: write unique(A, " ..
                    "{places = true})")
            end
            local places = first_places(s.told)
            if s.nan then places = library.hcat(places, s.nan.place) end
            return places
        end,
        counts = function(s)
            local counts = counts_of(s.told)
            if s.nan then counts = library.hcat(counts, s.nan.count) end
            return counts
        end},
    methods = {unpack = function(self)
        local places = state[self].has_places and self.places or nil
        return self.values, places, self.counts
    end},
    says = function(s)
        return format("%s of %s", plural(#s.values, "different value"),
            plural(s.told.rows, "element"))
    end,
    kept = function(s, self, rescues)
        if rescues then return nil end
        return {values = s.values, counts = self.counts,
            places = s.has_places and self.places or nil, rows = s.told.rows}
    end,
    again = function(parts)
        local n = #vector_part(parts.values)
        return {values = parts.values, counts = vector_part(parts.counts, n),
            places = parts.places and vector_part(parts.places, n),
            has_places = parts.places ~= nil, told = {rows = parts.rows // 1}}
    end}

-- All elements as a vector.
local function flat(v)
    return v.ndim == 1 and v or v:flatten()
end

-- The different values of a vector, when nothing else is wanted of them.
local function only_values(v)
    local low, slots, has_nan = whole_range(v, MOST_MARKED)
    if low then
        local has = steps.groups_present(v, low, slots)
        return as_type(counted(low, low + slots - 1, v)[has], v.dtype), has_nan
    end
    local sorted, _, has_nans = in_order(v)
    return values_of(sorted), has_nans
end

row{
    name = "unique", method = true,
    takes = "A: matrix {places, counts}",
    gives = "matrix or table with places",
    group = "sets",
    help = "The different elements of A in order, a vector; all NaN are one, " ..
        "which comes last. With places or counts an object u: u.values, " ..
        "u.counts and, where they are asked for, u.places (of each one's first " ..
        "element, in row-major order); values, places, counts = u:unpack().",
    example = "unique(vec{3, 1, 3, 2, 1})",
    result = "{1, 2, 3}",
    options = {{"places", "boolean", "false", "also where each value is first"},
        {"counts", "boolean", "false", "also how often each value is there"}},
}
function groups.unique(A, options)
    local is_mask = A.dtype == "bool"
    local v = flat(numbers_of("unique", "A", A))
    local function nan()
        return library.full(1, 0 / 0, {dtype = v.dtype, device = v.device})
    end
    if not options or not (options.places or options.counts) then
        local values, has_nan = only_values(v)
        if has_nan then values = library.hcat(values, nan()) end
        return is_mask and values:bool() or values
    end
    local told = told_apart(v, not options.places)
    local s = {told = told, values = told.values, has_places = options.places}
    local has_nan = told.has_nan
    if has_nan == nil and v.size > 0 then
        local least = v:min()
        has_nan = least ~= least
    end
    if has_nan then
        local nans = v:isnan()
        s.values = library.hcat(s.values, nan())
        s.nan = {count = library.full(1, count_true(nans), wide(v)),
            place = library.full(1, nans:argmax(), wide(v))}
    end
    if is_mask then s.values = s.values:bool() end
    return unique_object(s)
end

-- --- counts -------------------------------------------------------------------

-- One number for each element of x, as a vector.
local function weights_for(what, x, weights)
    if weights.size ~= x.size then
        fail(what, "weights are %s, but there are %s", shape_of(weights),
            plural(x.size, "element"))
    end
    return flat(weights)
end

row{
    name = "bincount", method = true,
    takes = "v: vector {weights, length}",
    gives = "matrix",
    group = "sets",
    help = "How often each of 1, 2, … is in v, whole numbers from 1 on: as many " ..
        "counts as the largest says. With weights the sum of those at the " ..
        "places of each number.",
    example = "bincount(vec{1, 3, 1, 4})",
    result = "{2, 0, 1, 1}",
    options = {{"weights", "vector", "1 each", "what each element counts"},
        {"length", "size", "the largest element",
            "how many counts there are; larger elements are an error"}},
}
function groups.bincount(v, options)
    local weights = options and options.weights
    local length = options and options.length
    v = numbers_of("bincount", "v", v)
    local low, high = huge, 0
    if #v > 0 then low, high = v:min(), v:max() end
    if #v > 0 and (low ~= low or library.any(v:ne(library.floor(v)))) then
        local odd = (v:ne(library.floor(v)) | v:isnan()):argmax()
        fail("bincount", "element %d is %s: counts are of whole numbers; " ..
            "histogram(v) counts others", odd, checks.figure("%s", v[odd]))
    elseif low < 1 then
        fail("bincount", "an element is %s: counts begin with 1; " ..
            "unique(v, {counts = true}) counts any numbers",
            checks.figure("%.0f", low))
    elseif length and high > length then
        fail("bincount", "an element is %s, above length=%d",
            checks.figure("%.0f", high), length)
    elseif high > MOST_SLOTS then
        fail("bincount", "%s counts are too many; unique(v, {counts = true}) " ..
            "counts what is there", checks.figure("%.0f", high))
    end
    length = length or ceil(high)
    if not weights then return (steps.group(v, 1, length, false)) end
    weights = weights_for("bincount", v, weights)
    return as_type(steps.fold("sum", weights, false, v, 1, length),
        weights.dtype)
end

local histogram_object = class{name = "histogram", called = "h",
    order = {"counts", "edges"}, parts = {}, methods = {unpack = function(self)
        return self.counts, self.edges
    end},
    says = function(s)
        return format("histogram of %s in %s from %s to %s",
            plural(s.size, "element"), plural(#s.counts, "bin"),
            checks.figure("%.5g", s.edges[1]),
            checks.figure("%.5g", s.edges[-1]))
    end,
    kept = checks.copied,
    again = function(parts)
        local bins = #vector_part(parts.counts)
        return {counts = parts.counts, size = parts.size // 1,
            edges = vector_part(parts.edges, bins + 1)}
    end}

-- The next number above x, which is finite.
local function above(x)
    if x == 0 then return 2.0 ^ -1074 end
    local bits = unpacked("<i8", (packed("<d", x)))
    return (unpacked("<d", (packed("<i8", bits + (x > 0 and 1 or -1)))))
end

-- The outer edges of what is finite in x, a width of 1 where it is all the same.
local function range_of(x, range)
    if range then
        local low, high = range[1], range[2]
        if #range ~= 2 or type(low) ~= "number" or type(high) ~= "number" or
            not (low < high) or high - low == huge then
            fail("histogram", "range is {low, high} with low < high")
        end
        return low, high
    end
    if x.size == 0 then return 0, 1 end
    local low, high = x:min(), x:max()
    if low ~= low then
        local is_nan = x:isnan()
        low = library.where(is_nan, huge, x):min()
        high = library.where(is_nan, -huge, x):max()
        if low > high then low, high = 0, 0 end
    end
    if low == -huge or high == huge then
        fail("histogram", "an element is infinite: say range={low, high}")
    end
    if low == high then return low - 0.5, high + 0.5 end
    return low, high
end

-- The counts, or sums of weights, of bins whose edges are searched for each
-- element.
local function sought_counts(x, edges, weights)
    local bins, inner, last = #edges - 1, edges:clone(), edges[-1]
    if last < huge then inner[-1] = above(last) end
    local place = steps.search(inner, x, true)
    if not weights then return (steps.group(place, 2, bins, false)) end
    weights = weights_for("histogram", x, weights)
    return steps.fold("sum", weights, false, place, 2, bins)
end

row{
    name = "histogram", method = true,
    takes = "A: matrix [, bins: count] {bins, edges, range, weights, density}",
    gives = "table",
    group = "sets",
    help = "How many elements lie in each of some bins: an object h with " ..
        "h.counts and h.edges, one more; counts, edges = h:unpack(). A bin has " ..
        "its lower edge, the last both. NaN, and what lies outside, is in none. " ..
        "hist(A) draws.",
    example = "histogram(vec{1, 2, 2, 5}, 2).counts",
    result = "{3, 1}",
    options = {{"bins", "count", "10", "how many, all as wide"},
        {"edges", "vector|table", "those of bins", "where bins begin, and the last " ..
            "ends: in order"},
        {"range", "table", "from min to max", "{low, high}: the outer edges"},
        {"weights", "matrix", "1 each", "what each element counts"},
        {"density", "boolean", "false",
            "counts over their sum and the widths of bins, whose area is 1"}},
}
function groups.histogram(A, bins, options)
    bins, options = optional(bins, options)
    if bins and options.bins then
        fail("histogram", "bins stand twice: %d and {bins=%d}", bins,
            options.bins)
    end
    bins = bins or options.bins
    local x = flat(numbers_of("histogram", "A", A))
    local edges, counts = options.edges, nil
    if edges and (bins or options.range) then
        fail("histogram", "edges say all: leave out %s",
            bins and "bins" or "range")
    elseif edges then
        if not is_matrix(edges) then edges = library.vec(edges, wide(x)) end
        edges = numbers_of("histogram", "edges", edges):f64():to(x.device)
        if #edges < 2 or not steps.is_sorted(edges) or edges[-1] ~= edges[-1] then
            fail("histogram", "edges are two numbers or more in order")
        end
    else
        local low, high = range_of(x, options.range)
        edges = library.linspace(low, high, (bins or 10) + 1, wide(x))
        counts = not options.weights and
            steps.even_bins(x, low, high, #edges - 1)
    end
    bins = #edges - 1
    counts = counts or sought_counts(x, edges, options.weights)
    if options.density then
        counts = counts / counts:sum() /
            (edges[{{2, bins + 1}}] - edges[{{1, bins}}])
    end
    return histogram_object{counts = counts, edges = edges, size = x.size}
end

-- --- groups -------------------------------------------------------------------

-- A column of keys: {kind, values or codes and labels, name}, as frames have
-- them; also a vector, and a list of texts.
local function column_of(key)
    if is_matrix(key) then
        if key.ndim ~= 1 then
            fail("groupby", "a key is a vector, not %s: take a column, or a " ..
                "list of several", shape_of(key))
        end
        return {kind = "number", values = numbers_of("groupby", "a key", key)}
    elseif type(key) ~= "table" then
        fail("groupby", "a key is a vector or a list of texts, not %s",
            checks.brief(key))
    elseif key.codes then
        return {kind = "text", values = key.codes, labels = key.labels,
            name = key.name}
    elseif key.values then
        return {kind = key.kind or "number", values = numbers_of("groupby",
            key.name or "a key", key.values), name = key.name,
            format = key.format}
    end
    local labels, code, codes = {}, {}, {}
    for i, text in ipairs(key) do
        if type(text) ~= "string" then
            fail("groupby", "key %d is %s, where others are texts", i,
                checks.brief(text))
        end
        if not code[text] then labels[#labels + 1], code[text] = text, true end
    end
    sort(labels)
    for i, text in ipairs(labels) do code[text] = i end
    for i, text in ipairs(key) do codes[i] = code[text] end
    return {kind = "text", labels = labels,
        values = library.vec(codes, {dtype = "f64"})}
end

-- A text or date column of a frame as what column_of takes.
local function plain_key(key)
    if type(key) ~= "table" or not getmetatable(key) then return key end
    local columns = require "lumat.frame_columns"
    local kind = columns.kind_of(key)
    if kind == "text" then -- its groups follow the labels' order
        local labels = checks.copied(key.labels)
        sort(labels)
        return {codes = columns.sort_keys(key) + 1, labels = labels}
    elseif kind == "date" then
        return {kind = "date", values = columns.vector(key)}
    end
    return key
end

-- Is it one key, and not a list of several?
local function is_one_key(keys)
    return is_matrix(keys) or keys.codes or keys.values or
        type(keys[1]) == "string"
end

-- The columns of keys in all their forms.
local function columns_of(keys)
    if is_one_key(keys) then return {column_of(keys)} end
    local columns = {}
    for i, key in ipairs(keys) do columns[i] = column_of(plain_key(key)) end
    if #columns == 0 then fail("groupby", "there are no keys") end
    for i, c in ipairs(columns) do
        if #c.values ~= #columns[1].values then
            fail("groupby", "key %d has %s, the first has %d", i,
                plural(#c.values, "row"), #columns[1].values)
        end
    end
    return columns
end

-- Of texts each label is a group, also one that no row has.
local function by_labels(c)
    return {code = c.values:clone(), first = 1, slots = #c.labels, rows = #c.values}
end

-- Several keys: the numbers of their groups are the digits of one.
local function by_several(columns)
    local number, sizes = nil, {}
    for i, c in ipairs(columns) do
        local t = c.labels and by_labels(c) or told_apart(c.values)
        c.told = t
        sizes[i] = larger(1, #counts_of(t))
        local own = numbers_of_rows(t)
        number = number and number * sizes[i] + (own - 1) or own - 1
    end
    local t = told_apart(number)
    local rest = t.values
    for i = #columns, 1, -1 do
        local c = columns[i]
        local digit = rest % sizes[i]
        rest = library.floor(rest / sizes[i])
        c.digit = digit + 1
    end
    return t
end

-- One key a group: a vector, or a list of texts.
local function keys_of(c, t)
    if not c.labels then
        return c.digit and c.told.values:take(c.digit) or t.values
    end
    if not c.digit then return checks.copied(c.labels) end
    local list = {}
    for i, label in ipairs(c.digit:totable()) do
        list[i] = c.labels[floor(label)]
    end
    return list
end

local function check_values(what, s, X)
    checks.matrix(what, "X", X)
    if X.rows ~= s.told.rows then
        fail(what, "X is %s, and there are keys for %s", shape_of(X),
            plural(s.told.rows, "row"))
    end
    if X.device ~= s.device then
        fail(what, "X lies on %s, the keys on %s: X:to(\"%s\")", X.device,
            s.device, s.device)
    end
    if checks.is_complex(X) then
        fail(what, "X is complex: take real(X), imag(X) or abs(X)")
    end
    return numbers_of(what, "X", X)
end

-- {nan = "skip"} and, where that has a meaning, {ddof = n}.
local function check_options(what, options, has_ddof)
    if options ~= nil and (type(options) ~= "table" or getmetatable(options)) then
        fail(what, "the options are %s, expected a table such as {nan = \"skip\"}",
            checks.brief(options))
    end
    for name, value in next, options or {} do
        if name == "nan" then
            if value ~= "skip" and value ~= "keep" then
                fail(what, "nan is %s, expected \"skip\" or \"keep\"",
                    checks.brief(value))
            end
        elseif name ~= "ddof" or not has_ddof then
            fail(what, "there is no option '%s': there %s", tostring(name),
                has_ddof and "are nan and ddof" or "is nan")
        elseif type(value) ~= "number" then
            fail(what, "ddof is %s, expected a number", checks.brief(value))
        end
    end
    return options and options.nan == "skip"
end
groups.check_options = check_options

-- Counts as they divide what there is of X.
local function counts_for(s, X, skips)
    if skips then return folded(s.told, "count", X, true) end
    local counts = counts_of(s.told)
    return X.ndim == 2 and counts:reshape(#counts, 1) or counts
end

-- Sums of truths are exact where f32 is not.
local function result_type(X, dtype)
    return dtype == "bool" and (X.size >= 2 ^ 24 and "f64" or "f32") or dtype
end

-- What a fold of X is of: the groups' state, X's numbers, and whether NaN is
-- left out.
local function operands(what, self, X, options, has_ddof)
    local s = state[self]
    return s, check_values(what, s, X), check_options(what, options, has_ddof)
end

-- R, a row a group; a warning tells of groups that have nothing else than NaN,
-- where that is left out and no number stands for nothing.
local function told_of_empty(what, s, X, skips, R)
    if not skips or R:isnan():any() ~= true then return R end
    local count = count_true(folded(s.told, "count", X, true):eq(0))
    if count > 0 then
        private.warn_once(what, format("of %s%s there is nothing but NaN: the %s NaN",
            plural(count, "group"), X.ndim == 2 and " or its columns" or "",
            count == 1 and "result is" or "results are"))
    end
    return R
end

local function simple_fold(what, kind)
    local is_extreme = kind == "min" or kind == "max"
    return function(self, X, options)
        local s, x, skips = operands(what, self, X, options)
        local out = folded(s.told, kind, x, skips)
        return as_type(told_of_empty(what, s, x, is_extreme and skips, out),
            result_type(x, X.dtype))
    end
end

local function mean_of(s, X, skips)
    return folded(s.told, "sum", X, skips) / counts_for(s, X, skips)
end

local function spread(what, self, X, options)
    local s, x, skips = operands(what, self, X, options, true)
    local squares = folded(s.told, "spread", x, skips, mean_of(s, x, skips))
    local free = counts_for(s, x, skips) - (options and options.ddof or 1)
    local out = library.where(free:gt(0), squares / free, 0 / 0)
    return as_type(told_of_empty(what, s, x, skips, out), x.dtype)
end

-- Where a sorted column of each group has its middle. X is a vector.
local function median_on_gpu(s, x, skips)
    local t = s.told
    local _, by_value = library.sort(x, {places = true})
    local number = numbers_of_rows(t):take(by_value)
    local counts, order = steps.group(number, 1, #counts_of(t), true)
    local sorted = x:take(by_value:take(order))
    local there = folded(t, "count", x, true)
    local starts = starts_of(counts)
    local first = library.minimum(starts[{{1, #counts}}], larger(1, x.rows))
    local function at(half)
        local place = first + library.maximum(library.floor(half), 0)
        return sorted:take(library.minimum(place, x.rows)):f64()
    end
    local low, high = at((there - 1) / 2), at(there / 2)
    local middle = library.where(low:eq(high), low, low / 2 + high / 2)
    local has = there:gt(0)
    if not skips then has = has & there:eq(counts) end
    return library.where(has, middle, 0 / 0)
end

local function medians_of(s, X, skips)
    if X.device == "cpu" or X.rows == 0 then
        local order, starts = ordered(s.told)
        local kind = X.rows == 0 and "max" or "median"
        return steps.fold_ordered(kind, X, skips, starts, order)
    elseif X.ndim == 1 then
        return median_on_gpu(s, X, skips)
    end
    local out = library.zeros(#counts_of(s.told), X.cols, wide(X))
    for j = 1, X.cols do
        out[{{}, j}] = median_on_gpu(s, X[{{}, j}], skips)
    end
    return out
end

local function median(self, X, options)
    local s, x, skips = operands("median", self, X, options)
    return as_type(told_of_empty("median", s, x, skips, medians_of(s, x, skips)),
        x.dtype)
end

-- For each group and column of X the first, or last, row that is not NaN there;
-- NaN where there is none.
local function present_rows(s, X, is_last)
    local rows = counted(1, X.rows, X)
    if X.ndim == 2 then rows = rows:col() end
    return folded(s.told, is_last and "max" or "min",
        library.where(X:isnan(), 0 / 0, rows), true)
end

-- The elements of X's columns in rows that are a matrix like the result.
local function gathered(X, rows)
    if X.ndim == 1 then return X:take(rows) end
    local places = (rows - 1) * X.cols + counted(1, X.cols, X):row()
    return X:flatten():take(places:flatten()):reshape(rows.rows, rows.cols)
end

-- The rows of X that are each group's first, or last; NaN where it has none.
local function edge_row(what, is_last)
    return function(self, X, options)
        local s = state[self]
        X = check_values(what, s, X)
        local skips = check_options(what, options)
        if X.size == 0 then
            return as_type(folded(s.told, "max", X, false), X.dtype)
        elseif skips then
            local rows = present_rows(s, X, is_last)
            local has = ~rows:isnan()
            local out = gathered(X, library.where(has, rows, 1))
            return library.where(has, out, 0 / 0)
        end
        local order, starts = ordered(s.told)
        local n = #starts - 1
        local place = is_last and starts[{{2, n + 1}}] - 1 or
            starts[{{1, n}}]
        place = library.minimum(library.maximum(place, 1), X.rows)
        local out = X:take(order:take(place))
        local has = counts_of(s.told):gt(0)
        if library.all(has) then return out end
        return library.where(X.ndim == 2 and has:reshape(n, 1) or has, out,
            0 / 0)
    end
end

-- Which rows group i has, as a vector of places.
local function places_of(s, i)
    local order, starts = ordered(s.told)
    local count = #starts - 1
    if type(i) ~= "number" or i ~= floor(i) or i < 1 or i > count then
        fail("places", "there is no group %s: there are %s", checks.brief(i),
            plural(count, "group"))
    end
    return order[{{floor(starts[i]), floor(starts[i + 1]) - 1}}]
end

-- The i-th key as a value, or several.
local function key_values(s, i)
    local list = {}
    for k, c in ipairs(s.columns) do
        s.lists = s.lists or {}
        s.lists[k] = s.lists[k] or keys_of(c, s.told)
        list[k] = s.lists[k][i]
    end
    return list
end

-- Results of all groups as one: numbers a vector, vectors of one length the
-- rows of a matrix, others a list.
local function joined(list)
    local first = list[1]
    local all_numbers, all_vectors = #list > 0, #list > 0 and is_matrix(first)
    for _, x in ipairs(list) do
        all_numbers = all_numbers and type(x) == "number"
        all_vectors = all_vectors and is_matrix(x) and x.ndim == 1 and
            #x == #first
    end
    if all_numbers then return library.vec(list, {dtype = "f64"}) end
    if all_vectors then return library.vcat(unpack(list)) end
    return list
end

local function apply(self, X, f)
    local s = state[self]
    if f == nil then X, f = nil, X end
    if type(f) ~= "function" then
        fail("apply", "write g:apply(X, f) or g:apply(f) with a function " ..
            "f(rows, key)")
    end
    if X ~= nil then check_values("apply", s, X) end
    local list = {}
    for i = 1, #counts_of(s.told) do
        local places = places_of(s, i)
        local result = f(X and X:take(places) or places, unpack(key_values(s, i)))
        if result == nil then
            fail("apply", "the function gave nothing for group %d", i)
        end
        list[i] = result
    end
    return joined(list)
end

local SHOWN = 8

local function cell(x)
    return type(x) == "number" and checks.figure("%.5g", x) or tostring(x)
end

-- Keys and counts, of the first groups.
local function table_of(s)
    local counts = counts_of(s.told)
    local n, lines = smaller(#counts, SHOWN), {{}}
    for k, c in ipairs(s.columns) do
        lines[1][k] = c.name or "key"
    end
    lines[1][#s.columns + 1] = "count"
    for i = 1, n do
        local line = {}
        for k, key in ipairs(key_values(s, i)) do line[k] = cell(key) end
        line[#s.columns + 1] = format("%.0f", counts[i])
        lines[i + 1] = line
    end
    lines = require "lumat.labels".lines.aligned(lines, {}, 0)
    if #counts > n then
        lines[#lines + 1] = format("  and %s more", plural(#counts - n, "group"))
    end
    return concat(lines, "\n")
end

-- What is known of the groups of such keys.
local function state_of(keys, is_told)
    local columns, is_list = columns_of(keys), not is_one_key(keys)
    local told
    if #columns > 1 then
        told = by_several(columns)
    else
        local c = columns[1]
        told = c.labels and by_labels(c) or told_apart(c.values)
    end
    local left_out = told.rows - (#counts_of(told) > 0 and
        floor(counts_of(told):sum()) or 0)
    if left_out > 0 and not is_told then
        private.warn_once("groupby", format("%s no key (NaN) and %s in no group",
            left_out == 1 and "1 row has" or format("%d rows have", left_out),
            left_out == 1 and "is" or "are"))
    end
    return {told = told, columns = columns, is_list = is_list,
        device = columns[1].values.device}
end

-- The keys of state_of once more, those of each row: from the groups, as what
-- they were made of may have been written to.
local function keys_by_row(s)
    local list, group = {}, numbers_of_rows(s.told)
    local is_none = group:isnan()
    local place = library.where(is_none, 1, group)
    local function spread(v) -- a number of each group over the rows
        if #v == 0 then return library.full(#group, 0 / 0, wide(group)) end
        return as_type(library.where(is_none, 0 / 0, v:take(place)), v.dtype)
    end
    for k, c in ipairs(s.columns) do
        local key = {kind = c.kind, name = c.name, format = c.format,
            labels = c.labels}
        if not c.labels then
            key.values = spread(keys_of(c, s.told))
        else
            key.codes = c.digit and spread(c.digit) or group
        end
        list[k] = key
    end
    return {keys = list, is_list = s.is_list}
end

local group_object = class{name = "groups", called = "g",
    order = {"keys", "count", "group"},
    parts = {
        keys = function(s)
            local list = {}
            for k, c in ipairs(s.columns) do list[k] = keys_of(c, s.told) end
            return s.is_list and list or list[1]
        end,
        count = function(s) return counts_of(s.told) end,
        group = function(s) return numbers_of_rows(s.told) end,
    },
    methods = {
        sum = simple_fold("sum", "sum"), prod = simple_fold("prod", "prod"),
        min = simple_fold("min", "min"), max = simple_fold("max", "max"),
        mean = function(self, X, options)
            local s, x, skips = operands("mean", self, X, options)
            return as_type(told_of_empty("mean", s, x, skips,
                mean_of(s, x, skips)), x.dtype)
        end,
        var = function(self, X, options)
            return spread("var", self, X, options)
        end,
        std = function(self, X, options)
            return library.sqrt(spread("std", self, X, options))
        end,
        median = median, first = edge_row("first"),
        last = edge_row("last", true), apply = apply,
        places = function(self, i)
            local s, list = state[self], {}
            if i ~= nil then return places_of(s, i) end
            for k = 1, #counts_of(s.told) do list[k] = places_of(s, k) end
            return list
        end,
    },
    says = function(s)
        return format("%s of %s\n%s", plural(#counts_of(s.told), "group"),
            plural(s.told.rows, "row"), table_of(s))
    end,
    kept = function(s, _, rescues) return not rescues and keys_by_row(s) or nil end,
    again = function(parts)
        local keys = {}
        for k, key in ipairs(parts.keys) do
            for _, label in ipairs(key.labels or {}) do format("%s", label) end
            vector_part(key.labels and key.codes or key.values)
            keys[k] = key
        end
        return state_of(parts.is_list and keys or keys[1], true)
    end}

-- The groups of rows that have the same keys: keys is a vector, a column of a
-- frame, also as {name =, kind =, values =} or {name =, codes =, labels =}, a
-- list of texts, or a list of several of these. Of rows without a key there is
-- a warning, unless is_told: the caller tells of them in words of his own.
function groups.by(keys, is_told)
    return group_object(state_of(plain_key(keys), is_told))
end

row{
    name = "groupby",
    takes = "keys: vector|table",
    gives = "table",
    group = "sets",
    help = "The groups of rows that have the same keys: a vector, a list of " ..
        "texts, a column of a frame, or a list of several, {a, b}. g.keys in " ..
        "order, g.count, g.group (each row's, as a number). Of a vector or matrix X of as many " ..
        "rows g:sum(X) g:mean(X) g:median(X) g:min(X) g:max(X) g:prod(X) " ..
        "g:std(X) g:var(X) g:first(X) g:last(X) have a row a group; " ..
        "{nan=\"skip\"} leaves NaN out. g:apply(X, f) calls f(rows, key), " ..
        "g:places(i) are a group's rows. Rows whose key is NaN are in no group.",
    example = "groupby(vec{2, 1, 2}):sum(vec{1, 10, 100})",
    result = "{10, 101}",
}
function groups.groupby(keys) return groups.by(keys) end

return groups
