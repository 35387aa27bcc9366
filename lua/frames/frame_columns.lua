-- Columns of frames. Numbers are vectors. Text is codes, a vector in f64 of
-- places in a list of labels; NaN where there is none. Dates are seconds since
-- 1970 UTC, a vector in f64, with the format that they are shown in: those are
-- in lua/frames/frame_dates.lua. Here are texts, and what is asked of a column
-- of any kind.
local library, _, _, private = ...
local checks = require "lumat.checks"
local cells = require "lumat.cells"
local fail, brief, is_matrix, plural = checks.fail, checks.brief,
    checks.is_matrix, checks.plural
local columns = {}
local ipairs, pairs, require = ipairs, pairs, require
local setmetatable, type = setmetatable, type
local concat, sort, unpack = table.concat, table.sort, table.unpack
local find, format, lower, match = string.find, string.format, string.lower,
    string.match
local floor, larger, smaller = math.floor, math.max, math.min

local NAN = 0 / 0
local NEAR = 3  -- names that a message tells of
local LEAST = 3 -- letters that one has in common with a part of another

-- --- names that are not there ------------------------------------------------

-- "\"a\", \"b\" or \"c\"": those of the names that are like the word, or nil.
function columns.near(word, names)
    local found, small = {}, lower(word)
    for i, name in ipairs(names) do
        local other = lower(name)
        local apart = cells.distance(small, other)
        if smaller(#small, #other) >= LEAST and
            (find(other, small, 1, true) or find(small, other, 1, true)) then
            apart = smaller(apart, 1)
        end
        if apart <= larger(1, #word // 3) then
            found[#found + 1] = {name, apart, i}
        end
    end
    sort(found, function(a, b)
        if a[2] ~= b[2] then return a[2] < b[2] end
        return a[3] < b[3]
    end)
    if not found[1] then return nil end
    local said = {}
    for i = 1, smaller(#found, NEAR) do
        said[i] = format("%q", found[i][1])
    end
    local last = said[#said]
    if #said == 1 then return last end
    said[#said] = nil
    return concat(said, ", ") .. " or " .. last
end

-- --- vectors -----------------------------------------------------------------

-- first … last, on a device.
local function counted(first, last, device)
    return library.range(first, last, 1, {dtype = "f64", device = device})
end
columns.counted = counted

local function is_missing(v)
    return v:isnan()
end

-- values[codes], and `otherwise` where codes are NaN.
local function spread(codes, values, otherwise)
    local missing = is_missing(codes)
    if not missing:any() then return values[codes] end
    if values.rows == 0 then
        return library.full(codes.rows, otherwise,
            {dtype = values.dtype, device = codes.device})
    end
    local known = values[library.where(missing, 1, codes)]
    return library.where(missing, otherwise, known)
end

-- A list as a vector in f64 beside codes.
local function vector_of(list, codes)
    return library.vec(list, {dtype = "f64", device = codes.device})
end

-- Elements of a vector as a Lua list.
local function listed(v)
    return v.rows == 0 and {} or v:totable()
end
columns.listed = listed

-- --- objects -----------------------------------------------------------------

-- What text and date columns share: fields that nobody changes but through
-- them, methods, and what an index means. Each kind has `say`, what stands in
-- its headline, and `part(c, vector)`, one like c of other elements.
local kinds = {}       -- text, date: the metatables
local state = setmetatable({}, {__mode = "k"})
columns.state = state

-- "text", "date" or "number"; nil: it is no column.
local function kind_of(c)
    local s = state[c]
    if s then return s.kind end
    return is_matrix(c) and "number" or nil
end
columns.kind_of = kind_of

-- The vector with c's elements: codes, seconds, or c itself.
local function vector(c)
    local s = state[c]
    return s and s.vector or c
end
columns.vector = vector

-- Were its elements given up, by free()?
function columns.is_freed(c)
    return vector(c).device == "none"
end

-- A column of c's kind with other elements.
local function alike(c, v)
    local s = state[c]
    return s and kinds[s.kind].part(s, v) or v
end
columns.alike = alike

-- Of places, a mask, a range or a slice.
local function pick(c, key)
    return alike(c, vector(c)[key])
end
columns.pick = pick

local function object(kind, fields)
    local c = setmetatable({}, kinds[kind].meta)
    fields.kind = kind
    state[c] = fields
    return c
end
columns.object = object

-- Are two columns of objects the same, element by element?
local function is_same(a, b)
    local s, t = state[a], state[b]
    if not s or not t or s.kind ~= t.kind or s.vector.rows ~= t.vector.rows then
        return false
    end
    local same = a:eq(b)
    return library.all(library.lor(same, library.land(a:isnan(), b:isnan())))
end

local function headline(c)
    local s = state[c]
    local v = s.vector
    return format("%s vector %d%s%s", s.kind, v.rows, kinds[s.kind].say(s),
        v.rows == 0 and "  (empty)" or "  " .. v.device)
end

-- Does a text mean places, as "2:5" and "end" do, rather than a name?
function columns.is_slice(key)
    return find(key, "^[%d:%-, ]") or find(key, "^end%f[^%w_]")
end

-- A bad step on the way to elements: T.a == "x" is false in Lua, whatever a is.
function columns.refuse_boolean(what, name)
    fail(what, "an index is true or false: where it is %s == \"x\", write " ..
        "%s:eq(\"x\")", name, name)
end

-- What frames do with a column that is named, and the column itself does not.
local of_frames = {unique = true, value_counts = true, sort = true,
    groupby = true, fillna = true}

-- The kind of columns with those methods and fields: a function of the state
-- each.
function columns.add_kind(name, kind)
    local meta = {__name = name .. " column", __metatable = name .. " column"}
    for method, f in pairs(kind.methods) do
        kind.methods[method] = checks.method(method, "c", f)
    end
    function meta.__index(c, key)
        local s = state[c]
        if type(key) == "boolean" then columns.refuse_boolean(name, "T.a") end
        if type(key) == "string" then
            local field = kind.fields[key]
            if field then return field(s) end
            if kind.methods[key] then return kind.methods[key] end
            if not columns.is_slice(key) then
                local names = {}
                for other in pairs(kind.meta.__members) do
                    names[#names + 1] = other
                end
                sort(names)
                fail(name .. " column", "there is no '%s' of it: there are %s%s",
                    key, concat(names, " "), of_frames[key] and
                    format("; T:%s \"a\" is of a frame", key) or "")
            end
        end
        local v = s.vector[key]
        if type(v) == "number" then return kind.value(s, v) end
        return kind.part(s, v)
    end
    function meta.__newindex(c, key, value)
        local s = state[c]
        if type(key) == "string" and not columns.is_slice(key) then
            fail(name .. " column", "'%s' cannot be assigned", key)
        end
        s.vector[key] = kind.code(s, value)
    end
    function meta.__len(c) return state[c].vector.rows end
    meta.__eq = is_same
    for event, f in pairs(kind.operators or {}) do meta[event] = f end
    for event, f in pairs(meta) do
        if type(f) == "function" then meta[event] = checks.placed(f) end
    end
    meta.__text = function(c, style)
        return require "lumat.frame_text".column_text(c, headline(c), style)
    end
    meta.__headline, meta.__tostring = headline, cells.tostring
    meta.__members = checks.copied(kind.methods)
    for field in pairs(kind.fields) do meta.__members[field] = true end
    kind.meta = meta
    kinds[name] = kind
end

-- --- text --------------------------------------------------------------------

local function text(codes, labels)
    return object("text", {vector = codes, labels = labels})
end

-- code[label], made when it is first needed.
local function index_of(s)
    if not s.index then
        s.index = {}
        for i, label in ipairs(s.labels) do s.index[label] = i end
    end
    return s.index
end

-- The places of labels in the order of their bytes, from 0.
local function ranks(s)
    if not s.ranks then
        local order, rank = {}, {}
        for i in ipairs(s.labels) do order[i] = i end
        sort(order, function(a, b) return s.labels[a] < s.labels[b] end)
        for i, code in ipairs(order) do rank[code] = i - 1 end
        s.ranks = rank
    end
    return s.ranks
end

-- A text column of labels that may repeat, codes being places in their list.
-- false stands for no text.
local function merged(codes, labels)
    local seen, list, moved, same = {}, {}, {}, true
    for i, label in ipairs(labels) do
        if label and not seen[label] then
            list[#list + 1] = label
            seen[label] = #list
        end
        moved[i] = label and seen[label] or NAN
        same = same and moved[i] == i
    end
    if same then return text(codes:clone(), list) end
    return text(spread(codes, vector_of(moved, codes), NAN), list)
end

-- Of a Lua list of strings; false and NaN are missing.
function columns.text_of_list(list, count, what, device)
    local labels, seen, codes = {}, {}, {}
    for i = 1, count do
        local label = list[i]
        if label == false or label ~= label then
            codes[i] = NAN
        elseif type(label) ~= "string" then
            fail(what, "element %d is %s, and those before it are text", i,
                brief(label))
        else
            if not seen[label] then
                labels[#labels + 1] = label
                seen[label] = #labels
            end
            codes[i] = seen[label]
        end
    end
    return text(library.vec(codes, {dtype = "f64", device = device}), labels)
end

-- Of codes, places in a list of labels no two of which are the same.
columns.text = text

-- A mask of the elements whose label `is` true for.
local function where_label(s, is)
    local truth = {}
    for i, label in ipairs(s.labels) do truth[i] = is(label) and 1 or 0 end
    return spread(s.vector, vector_of(truth, s.vector), 0):ne(0)
end

local function note_absent(s, what, label)
    local near = columns.near(label, s.labels)
    if near then
        private.note("no " .. label, format("%s: no element is %q: did you " ..
            "mean %s?", what, label, near))
    end
end

-- Of two columns: the codes of b among a's labels, 0 for others.
local function codes_among(s, other)
    local index, moved = index_of(s), {}
    for i, label in ipairs(other.labels) do moved[i] = index[label] or 0 end
    return spread(other.vector, vector_of(moved, other.vector), NAN)
end

-- The codes, or the code, that are compared with.
local function compared(what, s, other)
    local t = state[other]
    if type(other) == "string" then
        local code = index_of(s)[other]
        if not code then note_absent(s, what, other) end
        return code or 0
    elseif t and t.kind == "text" then
        if t.vector.rows ~= s.vector.rows then
            fail(what, "the columns have %d and %d elements", s.vector.rows,
                t.vector.rows)
        end
        return codes_among(s, t)
    end
    fail(what, "compares text with text, not with %s", brief(other))
end

local methods = {}

function methods.eq(c, other)
    local s = state[c]
    return s.vector:eq(compared("eq", s, other))
end

function methods.ne(c, other)
    local s = state[c]
    return s.vector:ne(compared("ne", s, other))
end

function methods.isin(c, list)
    local wanted, s = {}, state[c]
    if type(list) ~= "table" then
        fail("isin", "takes a list such as {\"a\", \"b\"}, not %s", brief(list))
    end
    for _, label in ipairs(list) do
        if type(label) == "string" and not index_of(s)[label] then
            note_absent(s, "isin", label)
        end
        wanted[label] = true
    end
    return where_label(s, function(label) return wanted[label] end)
end

function methods.match(c, pattern)
    if type(pattern) ~= "string" then
        fail("match", "takes a pattern of Lua's, as \"^A\", not %s",
            brief(pattern))
    end
    return where_label(state[c], function(label)
        return match(label, pattern)
    end)
end

function methods.isnan(c)
    return is_missing(state[c].vector)
end

-- What a label becomes, by a function or a table; nil: nothing.
local function image(f, label)
    if type(f) == "function" then return f(label) end
    local x = f[label]
    if x == nil then
        fail("map", "the table has nothing for %q; a function gives nil for " ..
            "what is to be missing", label)
    end
    return x
end

function methods.map(c, f)
    local s, list, is_of = state[c], {}, nil
    if type(f) ~= "function" and type(f) ~= "table" then
        fail("map", "takes a function or a table of labels, not %s", brief(f))
    end
    for i, label in ipairs(s.labels) do
        local x = image(f, label)
        local of = type(x)
        if x == nil then
            x = false
        elseif of ~= "string" and of ~= "number" and of ~= "boolean" then
            fail("map", "%q becomes %s, expected text, a number or true or " ..
                "false", label, brief(x))
        elseif is_of and of ~= is_of then
            fail("map", "%q becomes %s, and others became a %s", label,
                brief(x), is_of)
        else
            is_of = of
        end
        list[i] = x
    end
    if is_of == "boolean" then
        return where_label(s, function(label) return image(f, label) end)
    elseif is_of ~= "number" then
        return merged(s.vector, list)
    end
    for i, x in ipairs(list) do
        if x == false then list[i] = NAN end
    end
    return spread(s.vector, vector_of(list, s.vector), NAN)
end

function methods.totable(c)
    local s, list = state[c], {}
    for i, code in ipairs(listed(s.vector)) do
        list[i] = code == code and s.labels[floor(code)] or false
    end
    return list
end

local function part(s, v)
    local c = text(v, s.labels)
    state[c].index, state[c].ranks = s.index, s.ranks
    return c
end

-- The code of what is assigned; another label makes another list of them.
local function code(s, value)
    if value == nil or value == false then return NAN end
    local other = state[value]
    if other and other.kind == "text" then
        for _, label in ipairs(other.labels) do code(s, label) end
        return codes_among(s, other)
    elseif type(value) ~= "string" then
        fail("text column", "holds text, not %s", brief(value))
    end
    local known = index_of(s)[value]
    if known then return known end
    local labels = checks.copied(s.labels)
    labels[#labels + 1] = value
    s.labels, s.index, s.ranks = labels, nil, nil
    return #labels
end

columns.add_kind("text", {
    methods = methods, part = part, code = code,
    fields = {
        kind = function() return "text" end,
        codes = function(s) return s.vector end,
        labels = function(s) return checks.copied(s.labels) end,
        rows = function(s) return s.vector.rows end,
        device = function(s) return s.vector.device end},
    say = function(s) return "  " .. plural(#s.labels, "label") end,
    value = function(s, x) return x == x and s.labels[floor(x)] or nil end})

-- --- of any kind -------------------------------------------------------------

-- How many there are.
function columns.length(c)
    return vector(c).rows
end

-- A mask of what is missing.
function columns.missing(c)
    return is_missing(vector(c))
end

-- Numbers in the order of the elements, NaN where one is missing.
function columns.sort_keys(c)
    local s = state[c]
    if not s then return c.dtype == "bool" and c:f64() or c end
    if s.kind ~= "text" then return s.vector end
    local rank, is_sorted = ranks(s), true
    for code, r in ipairs(rank) do is_sorted = is_sorted and r == code - 1 end
    if is_sorted then return s.vector - 1 end
    return spread(s.vector, vector_of(rank, s.vector), NAN)
end

-- The element at a place, as Lua has it; nil where it is missing.
function columns.value(c, i)
    local x = c[i]
    if is_matrix(c) and c.dtype == "bool" then return x ~= 0 and x ~= false end
    return x
end

-- All elements as Lua has them; those of text and dates that are missing are
-- false.
function columns.totable(c)
    return state[c] and c:totable() or listed(c)
end

-- Columns of one kind, one below the other.
function columns.joined(list)
    local first = state[list[1]]
    local vectors = {}
    for i, c in ipairs(list) do vectors[i] = vector(c) end
    if first and first.kind == "text" then
        local all = text(first.vector, first.labels)
        for i = 2, #list do vectors[i] = code(state[all], list[i]) end
        return text(library.hcat(unpack(vectors)), state[all].labels)
    end
    return alike(list[1], library.hcat(unpack(vectors)))
end

function columns.count_labels(c)
    return #state[c].labels
end

-- Text of the same labels, by their places in the order of sort_keys.
function columns.of_ranks(c, v)
    local s, codes = state[c], {}
    for code, rank in ipairs(ranks(s)) do codes[rank + 1] = code end
    if v.rows == 0 then return alike(c, v:f64()) end
    return alike(c, vector_of(codes, v)[v + 1])
end

-- The places that put a vector of codes in the order of their labels.
function columns.label_places(c, codes)
    local rank, list, order = ranks(state[c]), listed(codes), {}
    for i in ipairs(list) do order[i] = i end
    sort(order, function(a, b)
        return rank[floor(list[a])] < rank[floor(list[b])]
    end)
    return vector_of(order, codes)
end

columns.spread, columns.vector_of = spread, vector_of

return columns
