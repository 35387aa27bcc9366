-- Frames: named columns of one length, small on purpose. A frame holds the very
-- vectors that it was given; what is made of it is a new frame, and whole
-- columns are shared between the two.
--
-- Other files of the library make one by
--   require "lumat.frames".make{{name =, kind =, …}, …}
-- with kind = "number" and values, a vector; kind = "text" with codes, a vector
-- in f64 of places in the list labels, NaN where there is no text; kind =
-- "date" with values, a vector in f64 of seconds since 1970 UTC, NaN where
-- there is none, and a format. columns(T) gives such a list back.
local library, _, _, private = ...
local checks = require "lumat.checks"
local cells = require "lumat.cells"
local columns = require "lumat.frame_columns"
local dates = require "lumat.frame_dates"
local fail, brief, plural = checks.fail, checks.brief, checks.plural
local is_matrix, kind_of = checks.is_matrix, columns.kind_of
local frames = {}
local getmetatable, ipairs, next, pairs, pcall = getmetatable, ipairs, next,
    pairs, pcall
local require, setmetatable, type = require, setmetatable, type
local concat, remove_at, sort = table.concat, table.remove, table.sort
local find, format, gmatch, match = string.find, string.format, string.gmatch,
    string.match
local math_type, smaller = math.type, math.min

local NAN = 0 / 0

-- --- what a frame is ---------------------------------------------------------

-- Of each: names in order, columns `by` name, how many rows; device, where its
-- columns lie.
local state = setmetatable({}, {__mode = "k"})
local methods, meta = {}, {}
frames.methods = methods

-- What T.name means beside columns and methods.
local properties = {
    rows = function(s) return s.rows end,
    cols = function(s) return #s.names end,
}

local function is_frame(x)
    return state[x] ~= nil
end
frames.is_frame = is_frame

-- What Tab offers behind a frame: names behind it, and those in quotes.
local function tell_members(T, s)
    local members = checks.copied(methods)
    for name in pairs(properties) do members[name] = true end
    for name, c in pairs(s.by) do
        if members[name] == nil then members[name] = c end
    end
    s.meta.__members, s.meta.__columns = members, s.by
    return T
end

-- A frame of columns that are right. It keeps `by`, and a list of names of its
-- own, as each may get and lose columns.
local function new(names, by, rows)
    local T, s = {}, {names = checks.copied(names), by = by, rows = rows}
    local first = names[1]
    s.device = first and columns.vector(by[first]).device
    s.meta = checks.copied(meta)
    state[T] = s
    return tell_members(setmetatable(T, s.meta), s)
end
frames.new = new

-- Of some of the names, each column made by f, if there is one.
local function made(s, names, rows, f)
    local by = {}
    for _, name in ipairs(names) do
        by[name] = f and f(s.by[name], name) or s.by[name]
    end
    return new(names, by, rows)
end

-- The state of an argument, for other files.
function frames.state_of(T)
    return state[T]
end

-- --- names -------------------------------------------------------------------

local function listed(names, most)
    local said = {}
    for i = 1, smaller(#names, most or 8) do
        said[i] = find(names[i], "^[%a_][%w_]*$") and names[i] or
            format("%q", names[i])
    end
    if #names > #said then said[#said + 1] = "…" end
    return #said > 0 and concat(said, " ") or "none"
end

local function no_column(what, s, name)
    local near = columns.near(name, s.names)
    fail(what, "there is no column %q: %s", name, near and "did you mean " ..
        near .. "?" or "there are " .. listed(s.names))
end

-- What is written instead of methods that frames of others have.
local instead = {
    join = "map brings what a join by a key does, as " ..
        "T.price = T.species:map{oak = 3}",
    pivot = "frames have no reshaping; vcat puts them one below the other",
    concat = "vcat(T, U) puts frames one below the other",
    query = "T[T.a:gt(1)] are rows by a mask, T[{{1, 3}}] from one to another",
    columns = "T:names() are the names, T.cols says how many",
    len = "#T says how many rows, T.cols how many columns",
    sample = "T[choice(#T, 10, {replace = false})] are some rows",
    nlargest = "T:sort(\"a\", {descending = true}):head(5) are those rows",
    corr = "corr(T:matrix()) is of all numbers",
    cov = "cov(T:matrix()) is of all numbers",
}
for own, others in next, {join = "merge", pivot = "melt", concat = "append",
    query = "loc iloc filter", len = "shape size"} do
    for name in gmatch(others, "%a+") do instead[name] = instead[own] end
end
for _, name in ipairs{"sum", "mean", "median", "std", "var", "min", "max",
    "quantile", "mode", "cumsum", "diff", "zscore", "topk", "round", "abs"} do
    instead[name] = format("T.a:%s() is of a column, T:matrix() is all numbers, " ..
        "T:describe() a survey", name)
end

local function column(what, s, name)
    if type(name) ~= "string" then
        fail(what, "a column is named by text, not by %s", brief(name))
    end
    return s.by[name] or no_column(what, s, name)
end
frames.column = column

-- Refuses what a list of names has beside its names: it would not be used.
local function check_names(what, list)
    local count = #list
    for key in next, list do
        if math_type(key) ~= "integer" or key < 1 or key > count then
            fail(what, "a list of names has no [%s]: options, where there are " ..
                "any, stand behind it, as in T:sort({\"a\"}, {descending = true})",
                brief(key))
        end
    end
end
frames.check_names = check_names

-- The names of an argument: one, or a list of them, none twice.
local function names_of(what, s, list)
    if type(list) == "string" then list = {list} end
    check_names(what, list)
    local names, seen = {}, {}
    for i, name in ipairs(list) do
        column(what, s, name)
        if seen[name] then fail(what, "the column %q is named twice", name) end
        names[i], seen[name] = name, true
    end
    if #names == 0 then
        fail(what, "names no column: there are %s", listed(s.names))
    end
    return names, seen
end
frames.names_of = names_of

local function names_of_kind(s, kind)
    local names = {}
    for _, name in ipairs(s.names) do
        if kind_of(s.by[name]) == kind then names[#names + 1] = name end
    end
    return names
end
frames.names_of_kind = names_of_kind

local function is_taken(name)
    return methods[name] ~= nil or properties[name] ~= nil
end

-- --- columns of values -------------------------------------------------------

-- Lua's numbers are f64, and stay so: identifiers and sums of many do not fit
-- into f32.
local function exact(s)
    return {dtype = "f64", device = s and s.device}
end

-- The kind of a list's first element that is there. false is what is missing,
-- unless there are none but true and false.
local function first_of(list)
    local has_false = false
    for i = 1, #list do
        local x = list[i]
        if x ~= false and x == x then return type(x) end
        has_false = has_false or x == false
    end
    return has_false and "boolean" or "number"
end

local function of_list(what, list, s)
    local count, kind = #list, first_of(list)
    local device = s and s.device
    if kind == "string" then
        return columns.text_of_list(list, count, what, device)
    end
    local numbers = {}
    for i = 1, count do
        local x = list[i]
        if x == false and kind == "number" then x = NAN end
        if x ~= x and kind == "boolean" then
            fail(what, "element %d is NaN, among true and false", i)
        elseif type(x) ~= kind then
            fail(what, "element %d is %s, and those before it are %s", i,
                brief(x), kind == "number" and "numbers" or kind .. "s")
        end
        numbers[i] = kind == "boolean" and (x and 1 or 0) or x
    end
    if kind ~= "number" and kind ~= "boolean" then
        fail(what, "a column holds numbers, text, dates or true and false, " ..
            "not a %s", kind)
    end
    local v = library.vec(numbers, exact(s))
    return kind == "boolean" and v:ne(0) or v
end

-- One value for all rows.
local function constant(what, value, rows, s)
    if type(value) == "string" then
        return columns.text(library.ones(rows, exact(s)), {value})
    end
    local v = library.full(rows, value == true and 1 or value or 0,
        exact(s))
    return type(value) == "boolean" and v:ne(0) or v
end

-- A column of what is assigned or given: a vector, a matrix of one column, a
-- list, a column of a frame, or one value. s: the frame it is to be of, if
-- there is one with columns.
local function column_of(what, value, s)
    local kind = type(value)
    if kind == "number" or kind == "string" or kind == "boolean" then
        if not s then
            fail(what, "is %s: the first column is a vector or a list",
                brief(value))
        end
        return constant(what, value, s.rows, s)
    end
    local c = value
    if is_matrix(value) then
        if value.device == "none" then fail(what, "has been freed") end
        if checks.is_complex(value) then
            fail(what, "is complex: columns are real; z:real(), z:imag()")
        elseif value.ndim == 2 then
            if value.cols ~= 1 then
                fail(what, "is a matrix of %s: a column is a vector",
                    checks.shape_of(value))
            end
            c = value:flatten()
        end
    elseif kind_of(value) == nil then
        if kind ~= "table" or getmetatable(value) ~= nil then
            fail(what, "is %s, expected a vector, a list or a column",
                brief(value))
        end
        c = of_list(what, value, s)
    end
    local v = columns.vector(c)
    if s and v.rows ~= s.rows then
        fail(what, "has %s, the frame %s", plural(v.rows, "element"),
            plural(s.rows, "row"))
    elseif s and v.device ~= s.device then
        fail(what, "lies on %s, the frame on %s: bring it there with " ..
            "to(\"%s\")", v.device, s.device, s.device)
    end
    return c
end

-- "frame: column "a"", of messages on it.
local function about(name)
    return format("frame: column %q", name)
end

local function check_name(what, name)
    if type(name) ~= "string" or name == "" then
        fail(what, "a column is named by text, not by %s", brief(name))
    end
end

-- Sets a column, behind the others where the name is new.
local function set(T, name, value)
    local s = state[T]
    local alone = #s.names == 0 or #s.names == 1 and s.by[name] ~= nil
    local is_one = type(value) ~= "table" and not is_matrix(value)
    local beside = #s.names > 0 and (is_one or not alone) and s or nil
    local c = column_of(about(name), value, beside)
    if s.by[name] == nil then s.names[#s.names + 1] = name end
    s.by[name] = c
    if alone then
        local v = columns.vector(c)
        s.rows, s.device = v.rows, v.device
    end
    tell_members(T, s)
end

local function remove(T, name)
    local s = state[T]
    column("frame", s, name)
    for i, other in ipairs(s.names) do
        if other == name then
            s.by[name] = nil
            remove_at(s.names, i)
            break
        end
    end
    tell_members(T, s)
end

-- --- making them -------------------------------------------------------------

row{
    name = "frame", method = true,
    takes = "columns: table or A: matrix, names: table",
    gives = "frame",
    usage = "frame{a = …, b = …}, frame{{\"a\", …}, …} or frame(A, names)",
    group = "frames",
    help = "Named columns of one length: vectors, lists of numbers (f64), " ..
        "of text, of true and false, dates{…}. The columns of {a =, b =} " ..
        "come in the order of their names, those of {{\"a\", …}, {\"b\", " ..
        "…}} as they stand, those of a matrix are named by a list. load " ..
        "\"f.csv\" gives a frame where a column is text or dates. T.a is a " ..
        "column, T[T.a:gt(1)] are rows: ?frames.",
    example = "frame{a = {1, 2, 3}, b = {\"x\", \"y\", \"x\"}}:sort(\"a\", " ..
        "{descending = true}).a",
    result = "{3, 2, 1}",
}
function frames.frame(list, names)
    local T, order = new({}, {}, 0), {}
    if is_matrix(list) then
        if list.ndim ~= 2 or #names ~= list.cols then
            fail("frame", "A is %s, and there are %s", checks.shape_of(list),
                plural(#names, "name"))
        end
        for i, name in ipairs(names) do
            order[i] = {name, list:col(i):flatten()}
        end
    elseif #list > 0 then
        for i, pair in ipairs(list) do
            if type(pair) ~= "table" or #pair ~= 2 then
                fail("frame", "part %d is %s, expected {\"name\", values}", i,
                    brief(pair))
            end
            order[i] = pair
        end
    else
        for name, value in next, list do
            check_name("frame", name)
            order[#order + 1] = {name, value}
        end
        sort(order, function(a, b) return a[1] < b[1] end)
    end
    for _, pair in ipairs(order) do
        check_name("frame", pair[1])
        if state[T].by[pair[1]] then
            fail("frame", "there are two columns %q", pair[1])
        end
        set(T, pair[1], pair[2])
    end
    return T
end

-- Columns that methods hide: told once.
local function tell_hidden(names)
    local hidden = {}
    for _, name in ipairs(names) do
        if is_taken(name) then hidden[#hidden + 1] = name end
    end
    if not hidden[1] then return end
    local why = #hidden == 1 and "a method of frames has that name" or
        "methods of frames have those names"
    private.note("hidden " .. concat(hidden, " "), format(
        "%s: %s; T:col %q is the column", listed(hidden), why, hidden[1]))
end

-- A frame of a list of descriptions, as above. Names that are missing or there
-- already get a number.
function frames.make(list)
    local names, by, rows = {}, {}, 0
    for i, d in ipairs(list) do
        local name, again = d.name, 1
        if name == nil or name == "" then name = "column" .. i end
        while by[name] do
            again = again + 1
            name = format("%s_%d", d.name, again)
        end
        names[i] = name
        if d.kind == "text" then
            by[name] = columns.text(d.codes, d.labels)
        elseif d.kind == "date" then
            by[name] = dates.make(d.values, d.format)
        else
            by[name] = d.values
        end
        rows = columns.length(by[name])
    end
    tell_hidden(names)
    return new(names, by, rows)
end

-- What describes the columns of a frame, in order.
function frames.columns(T)
    local s, list = state[T], {}
    for i, name in ipairs(s.names) do
        local c = s.by[name]
        local kind = kind_of(c)
        list[i] = {name = name, kind = kind}
        if kind == "text" then
            list[i].codes, list[i].labels = c.codes, c.labels
        else
            list[i].values = columns.vector(c)
            list[i].format = kind == "date" and c.format or nil
        end
    end
    return list
end

-- --- indices -----------------------------------------------------------------

-- A row as a table by names; what is missing in text and dates is not there.
local function row_at(s, i)
    local t = {}
    for _, name in ipairs(s.names) do t[name] = columns.value(s.by[name], i) end
    return t
end

local function check_row(s, i)
    local place = i < 0 and i + s.rows + 1 or i
    if math_type(i) ~= "integer" and i ~= i // 1 then
        fail("row", "%s is not a whole number", brief(i))
    elseif place < 1 or place > s.rows then
        fail("row", "%d is outside 1..%d%s", i, s.rows,
            i == s.rows + 1 and "; to visit all, use T:eachrow()" or "")
    end
    return place // 1 | 0
end

-- Of those columns the rows at places, in a mask or in a range.
local function pick_rows(s, names, key)
    local by, rows = {}, 0
    for _, name in ipairs(names) do
        by[name] = columns.pick(s.by[name], key)
        rows = columns.length(by[name])
    end
    return new(names, by, rows)
end
frames.pick_rows = pick_rows

-- The names at places: a number, a range, a vector, a slice.
local function names_at(s, key)
    local places = columns.counted(1, #s.names, "cpu")
    local chosen = places[key]
    if type(chosen) == "number" then return s.names[chosen // 1 | 0] end
    local names = {}
    for i, place in ipairs(chosen:totable()) do
        names[i] = s.names[place // 1 | 0]
    end
    return names
end

-- Of T[{rows, columns}] the columns: a name, or a list of names; and whether it
-- is one column.
local function side_of_columns(s, key)
    if key == nil then return s.names end
    if type(key) == "string" then
        column("frame", s, key)
        return {key}, true
    elseif type(key) == "table" and type(key[1]) == "string" then
        return (names_of("frame", s, key))
    elseif type(key) == "table" and next(key) == nil then
        return s.names
    elseif type(key) == "number" then
        return {names_at(s, key)}, true
    end
    return names_at(s, type(key) == "table" and {key} or key)
end

local function block(s, rows, cols)
    local names, is_one = side_of_columns(s, cols)
    if type(rows) == "number" then
        local i = check_row(s, rows)
        if is_one then return columns.value(s.by[names[1]], i) end
        return row_at({names = names, by = s.by}, i)
    end
    local all = type(rows) == "table" and next(rows) == nil
    if type(rows) == "table" and not all then rows = {rows} end
    if is_one then
        local c = s.by[names[1]]
        return all and c or columns.pick(c, rows)
    end
    if all then return made(s, names, s.rows) end
    return pick_rows(s, names, rows)
end

-- T["1:5"], T["end, 2:3"]
local function slice(s, text)
    local rows, cols = match(text, "^([^,]*),?(.*)$")
    local places = columns.counted(1, s.rows, "cpu")
    local chosen = find(rows, "%S") and places[rows] or {}
    return block(s, chosen, find(cols, "%S") and names_at(s, cols) or nil)
end

function meta.__index(T, key)
    local s, kind = state[T], type(key)
    if kind == "string" then
        local f = methods[key]
        if f then return f end
        if properties[key] then return properties[key](s) end
        if s.by[key] then return s.by[key] end
        if columns.is_slice(key) then
            return slice(s, key)
        end
        if instead[key] and not columns.near(key, s.names) then
            fail("frame", "there is no column or method %q: %s", key, instead[key])
        end
        return no_column("frame", s, key)
    elseif kind == "number" then
        return row_at(s, check_row(s, key))
    elseif is_matrix(key) then
        return pick_rows(s, s.names, key)
    elseif kind == "table" and getmetatable(key) == nil then
        if #key > 2 then
            fail("frame", "T[{rows, columns}] has two sides, not %d", #key)
        elseif s.by[key[1]] and not columns.is_slice(key[1]) then
            fail("frame", "T[{rows, columns}] has rows first, not %q: columns " ..
                "are T:select{%q, …}", key[1], key[1])
        end
        return block(s, key[1] == nil and {} or key[1], key[2])
    elseif kind == "boolean" then
        columns.refuse_boolean("frame", "T.a")
    end
    fail("frame", "an index is a name, a mask, places or a range, not %s",
        brief(key))
end

function meta.__newindex(T, key, value)
    local s = state[T]
    if type(key) ~= "string" or key == "" then
        fail("frame", "T[%s] cannot be assigned: T.a[3] = 0 and " ..
            "T.a[T.b:gt(1)] = 0 write to a column", type(key) == "number" and
            format("%s", key) or "…")
    elseif is_taken(key) and not s.by[key] then
        fail("frame", "'%s' is a method of frames: T:set(%q, v) sets a " ..
            "column of that name", key, key)
    elseif is_taken(key) then
        fail("frame", "T.%s is a method of frames: T:set(%q, v) sets the " ..
            "column", key, key)
    elseif value == nil then
        remove(T, key)
    else
        set(T, key, value)
    end
end

function meta.__len(T) return state[T].rows end

function meta.__pairs(T)
    local s, i = state[T], 0
    return function()
        i = i + 1
        local name = s.names[i]
        if name ~= nil then return name, s.by[name] end
    end
end

local function is_same_column(a, b)
    if kind_of(a) ~= kind_of(b) then return false end
    if kind_of(a) ~= "number" then return a == b end
    if a.rows ~= b.rows then return false end
    local x, y = a:f64(), b:f64()
    return library.all(library.lor(x:eq(y), library.land(x:isnan(), y:isnan())))
end

-- The same names in the same order, and the same elements.
function meta.__eq(A, B)
    local s, t = state[A], state[B]
    if not s or not t or #s.names ~= #t.names or s.rows ~= t.rows then
        return false
    end
    for i, name in ipairs(s.names) do
        if t.names[i] ~= name or
            s.rows > 0 and not is_same_column(s.by[name], t.by[name]) then
            return false
        end
    end
    return true
end

local function refuse()
    fail("frame", "operators are for columns, as T.a / T.b, and for T:matrix()")
end
for _, name in ipairs{"add", "sub", "mul", "div", "mod", "pow", "unm", "idiv",
    "lt", "le", "band", "bor", "bxor", "bnot", "concat"} do
    meta["__" .. name] = refuse
end
for name, f in pairs(meta) do meta[name] = checks.placed(f) end

function meta.__text(T, style)
    return require "lumat.frame_text".frame_text(T, style)
end

-- Bytes of the vectors, each once.
local function bytes_of(s)
    local bytes = 0
    for _, c in pairs(s.by) do
        bytes = bytes + (columns.is_freed(c) and 0 or columns.vector(c).bytes)
    end
    return bytes
end

function meta.__headline(T)
    local s = state[T]
    local shape = format("frame %dx%d", s.rows, #s.names)
    if #s.names == 0 or s.rows == 0 then return shape .. "  (empty)" end
    return format("%s  %s  %s", shape, s.device,
        require "lumat.unit_text".bytes(bytes_of(s), "%.1f"))
end
frames.headline = meta.__headline
meta.__tostring = cells.tostring
meta.__name, meta.__metatable = "frame", "frame"

-- --- methods -----------------------------------------------------------------

-- One with a row of its own, by which its calls are held.
local function method(name, f)
    methods[name] = private.checked("frame." .. name, f)
end

row{
    name = "frame.names",
    takes = "T: frame", gives = "table",
    usage = "T:names()",
    help = "The names of the columns, a list.",
}
method("names", function(T) return checks.copied(state[T].names) end)

row{
    name = "frame.col",
    takes = "T: frame, name: column", gives = "value",
    usage = "T:col(name)",
    help = "The column of that name, also where a method has it: T.a is " ..
        "T:col \"a\".",
}
method("col", function(T, name) return column("col", state[T], name) end)

row{
    name = "frame.set",
    takes = "T: frame, name: string, value: value", gives = "nothing",
    usage = "T:set(name, value)",
    help = "Sets or adds the column of that name, whatever it is called: " ..
        "T.a = v is T:set(\"a\", v). A number or a text is put in every " ..
        "row; nil takes the column out.",
}
method("set", function(T, name, value)
    check_name("set", name)
    if value == nil then remove(T, name) else set(T, name, value) end
end)

row{
    name = "frame.rename",
    takes = "T: frame, names: table", gives = "frame",
    usage = "T:rename{old = \"new\"}",
    help = "A frame whose columns have other names.",
}
method("rename", function(T, new_names)
    local s, names, by = state[T], {}, {}
    for old, name in next, new_names do
        column("rename", s, old)
        check_name("rename", name)
    end
    for i, old in ipairs(s.names) do
        local name = new_names[old] or old
        if by[name] then
            fail("rename", "there would be two columns %q", name)
        end
        names[i], by[name] = name, s.by[old]
    end
    return new(names, by, s.rows)
end)

row{
    name = "frame.select",
    takes = "T: frame, names: columns", gives = "frame",
    usage = "T:select{\"a\", \"b\"}",
    help = "A frame of those columns, in that order.",
}
method("select", function(T, list)
    local s = state[T]
    return made(s, names_of("select", s, list), s.rows)
end)

row{
    name = "frame.drop",
    takes = "T: frame, names: columns", gives = "frame",
    usage = "T:drop{\"a\", \"b\"}",
    help = "A frame without those columns.",
}
method("drop", function(T, list)
    local s, names = state[T], {}
    local _, gone = names_of("drop", s, list)
    for _, name in ipairs(s.names) do
        if not gone[name] then names[#names + 1] = name end
    end
    return made(s, names, #names > 0 and s.rows or 0)
end)

local function rows_between(T, first, last)
    local s = state[T]
    if s.rows == 0 or last < first then
        return pick_rows(s, s.names, library.zeros(0, {dtype = "f64",
            device = "cpu"}))
    end
    return pick_rows(s, s.names, {{first, last}})
end

row{
    name = "frame.head",
    takes = "T: frame [, n: size]", gives = "frame",
    usage = "T:head([n])",
    help = "The first n rows (5).",
}
method("head", function(T, n)
    return rows_between(T, 1, smaller(n or 5, state[T].rows))
end)

row{
    name = "frame.tail",
    takes = "T: frame [, n: size]", gives = "frame",
    usage = "T:tail([n])",
    help = "The last n rows (5).",
}
method("tail", function(T, n)
    local rows = state[T].rows
    return rows_between(T, rows - smaller(n or 5, rows) + 1, rows)
end)

row{
    name = "frame.matrix",
    takes = "T: frame [, names: columns]", gives = "matrix",
    usage = "T:matrix{\"a\", \"b\"} or T:matrix()",
    help = "The columns side by side as a matrix; without names all that " ..
        "are numbers. It is f64 where one of them is.",
}
method("matrix", function(T, list)
    local s = state[T]
    local names = list and names_of("matrix", s, list) or
        names_of_kind(s, "number")
    local dtype
    for _, name in ipairs(names) do
        local c = s.by[name]
        if kind_of(c) ~= "number" then
            fail("matrix", "the column %q is %s: T.%s:%s gives numbers", name,
                kind_of(c), name, kind_of(c) == "text" and
                "map{…}" or "year() or T." .. name .. ".seconds")
        end
        if c.dtype == "f64" or dtype == nil and c.dtype ~= "bool" then
            dtype = c.dtype
        end
    end
    local A = library.zeros(s.rows, #names, {dtype = dtype,
        device = s.device})
    for j, name in ipairs(names) do
        if s.rows > 0 then A[{{}, j}] = s.by[name] end
    end
    return A
end)

row{
    name = "frame.eachrow",
    takes = "T: frame", gives = "function, value, value",
    usage = "for i, row in T:eachrow() do … end",
    help = "Goes through the rows: tables by names, as T[i] gives.",
}
local AT_ONCE = 4096 -- rows that are brought here together
method("eachrow", function(T)
    local s = state[T]
    local lists, from = nil, 1
    return function(_, i)
        i = (i or 0) + 1
        if i > s.rows then return nil end
        if not lists or i >= from + AT_ONCE then
            lists, from = {}, i
            for _, name in ipairs(s.names) do
                lists[name] = columns.totable(columns.pick(s.by[name],
                    {{i, smaller(i + AT_ONCE - 1, s.rows)}}))
            end
        end
        local t = {}
        for name, list in pairs(lists) do
            local x = list[i - from + 1]
            if x ~= false or kind_of(s.by[name]) == "number" then
                t[name] = x
            end
        end
        return i, t
    end, nil, 0
end)

row{
    name = "frame.totable",
    takes = "T: frame", gives = "table",
    usage = "T:totable()",
    help = "The columns as lists by name, false where text or a date is " ..
        "missing: frame(t) makes a frame of them again.",
}
method("totable", function(T)
    local s, t = state[T], {}
    for _, name in ipairs(s.names) do t[name] = columns.totable(s.by[name]) end
    return t
end)

row{
    name = "frame.to",
    takes = "T: frame, device: device", gives = "frame",
    usage = "T:to(device)",
    help = "The frame on a device: \"cpu\", \"cuda\", \"cuda:1\".",
}
method("to", function(T, device)
    local s = state[T]
    return made(s, s.names, s.rows, function(c)
        return columns.alike(c, columns.vector(c):to(device))
    end)
end)

row{
    name = "frame.sort",
    takes = "T: frame, names: columns {descending}", gives = "frame",
    usage = "T:sort(name or {names} [, {descending=}])",
    help = "The rows in the order of a column, or of several, the first " ..
        "first: numbers and dates rise, text goes by its bytes; equal rows " ..
        "keep their order, what is missing comes last.",
    options = {{"descending", "boolean|columns", "false",
        "true, or the columns of which the largest comes first"}},
}
method("sort", function(T, list, options)
    local s = state[T]
    local names, is_key = names_of("sort", s, list)
    local descending = options and options.descending
    local falls, _ = descending == true and is_key or {}, nil
    if descending and descending ~= true then
        _, falls = names_of("sort", s, descending)
        for name in pairs(falls) do
            if not is_key[name] then
                fail("sort", "descending names %q, which is not sorted by",
                    name)
            end
        end
    end
    local places
    for i = #names, 1, -1 do
        local keys = columns.sort_keys(s.by[names[i]])
        if places then keys = keys[places] end
        local order = library.argsort(keys,
            {descending = falls[names[i]] == true})
        places = places and places[order] or order
    end
    return pick_rows(s, s.names, places)
end)

row{
    name = "frame.dropna",
    takes = "T: frame [, names: columns]", gives = "frame",
    usage = "T:dropna([names])",
    help = "The rows in which nothing is missing: no NaN, no empty text or " ..
        "date; with names in those columns.",
}
method("dropna", function(T, list)
    local s = state[T]
    local there
    for _, name in ipairs(list and names_of("dropna", s, list) or s.names) do
        local here = library.lnot(columns.missing(s.by[name]))
        there = there and library.land(there, here) or here
    end
    return there and pick_rows(s, s.names, there) or T
end)

-- The column with a value where it is missing.
local function filled(name, c, value)
    local missing = columns.missing(c)
    if not missing:any() then return c end
    local kind = kind_of(c)
    if kind == "number" then
        if type(value) ~= "number" then
            fail("fillna", "the column %q holds numbers, not %s", name,
                brief(value))
        end
        return library.where(missing, value, c)
    end
    if type(value) ~= "string" then
        fail("fillna", "the column %q holds %s, not %s", name,
            kind == "date" and "dates" or kind, brief(value))
    end
    local copy = columns.alike(c, columns.vector(c):clone())
    copy[missing] = value
    return copy
end

row{
    name = "frame.fillna",
    takes = "T: frame, value: number|string|table", gives = "frame",
    usage = "T:fillna(value) or T:fillna{a = 0, b = \"none\"}",
    help = "The frame with a value where one is missing: a number for all " ..
        "columns of numbers, a text for all of text, or by column.",
}
method("fillna", function(T, value)
    local s, by = state[T], {}
    if type(value) == "table" then
        for name in next, value do column("fillna", s, name) end
        by = value
    else
        local kind = type(value) == "number" and "number" or "text"
        for _, name in ipairs(names_of_kind(s, kind)) do by[name] = value end
    end
    return made(s, s.names, s.rows, function(c, name)
        if by[name] == nil then return c end
        return filled(name, c, by[name])
    end)
end)

-- Those that stand in lua/frames/frame_groups.lua.
local function elsewhere(name)
    method(name, function(...)
        return require "lumat.frame_groups"[name](...)
    end)
end

row{
    name = "frame.groupby",
    takes = "T: frame, names: columns", gives = "table",
    usage = "T:groupby(name or {names})",
    help = "The rows in groups of equal keys, in the order of these: " ..
        "T:groupby \"a\":mean(). Groups g have g:count(), g:sum() g:mean() " ..
        "g:median() g:min() g:max() g:std() g:var() g:first() g:last(), " ..
        "each of all columns that it can be of or of those named, g:agg{a = " ..
        "\"mean\", b = {\"min\", \"max\"}} and g:apply(f), f being given a " ..
        "frame a group and giving a number or a table by names. The result " ..
        "is a frame, keys first. What is missing is left out, but with " ..
        "{nan=\"keep\"}; g:std(names, {ddof=0}) is possible, too. Rows without " ..
        "a key are left out.",
}
elsewhere "groupby"

row{
    name = "frame.describe",
    takes = "T: frame [, names: columns]", gives = "frame",
    usage = "T:describe([names])",
    help = "A row a column: how many are there, of numbers mean, standard " ..
        "deviation, smallest, quartiles, largest; of text and dates how " ..
        "many different ones, the most frequent and how often it is there.",
}
elsewhere "describe"

row{
    name = "frame.unique",
    takes = "T: frame, name: column", gives = "value",
    usage = "T:unique(name)",
    help = "The different values of a column, in order.",
}
elsewhere "unique"

row{
    name = "frame.value_counts",
    takes = "T: frame, name: columns", gives = "frame",
    usage = "T:value_counts(name)",
    help = "How often each value of a column, or each combination of " ..
        "several, is there: a frame with a column count, the most frequent " ..
        "first.",
}
elsewhere "value_counts"

-- --- for the list of variables -----------------------------------------------

-- The vectors of a frame, or of a column of text or dates, each once; nil for
-- other values.
function frames.vectors_of(value)
    local s, c = state[value], columns.state[value]
    if c then return columns.is_freed(value) and {} or {c.vector} end
    if not s then return nil end
    local list, seen = {}, {}
    for _, name in ipairs(s.names) do
        local v = columns.vector(s.by[name])
        if not seen[v] and v.device ~= "none" then list[#list + 1] = v end
        seen[v] = true
    end
    return list
end

-- Their size as text, and where they lie.
function frames.facts(value)
    local s, c = state[value], columns.state[value]
    if c then return format("vector %d", c.vector.rows), c.vector.device end
    return format("%dx%d", s.rows, #s.names), s.device or "cpu"
end

-- --- for sessions ------------------------------------------------------------

-- What a frame, or a column of text or dates, consists of: a plain table; what
-- of that lies on a device by name; and what it is. nil for other values.
function frames.parts_of(value)
    local s, c = state[value], columns.state[value]
    if s then
        return {names = checks.copied(s.names), columns = checks.copied(s.by)},
            s.by, "frame"
    elseif c then
        local parts = {kind = c.kind, vector = c.vector, labels = c.labels,
            format = c.format}
        return parts, {vector = c.vector}, c.kind
    end
end

-- One without anything, to be filled.
function frames.blank(kind)
    if kind == "frame" then return new({}, {}, 0) end
    if kind == "text" or kind == "date" then return columns.object(kind, {}) end
    return false
end

-- Is it a vector of codes of labels, or of seconds?
local function are_codes(v, labels)
    if not is_matrix(v) or v.ndim ~= 1 or v.dtype ~= "f64" then return false end
    if not labels or v.rows == 0 then return true end
    local is_one = library.land(v:ge(1), v:le(#labels))
    return library.all(library.lor(v:isnan(),
        library.land(is_one, v:eq(v:floor()))))
end

local function is_plain(t)
    return type(t) == "table" and getmetatable(t) == nil
end

local function are_labels(list)
    local seen = {}
    if not is_plain(list) then return false end
    for _, label in ipairs(list) do
        if type(label) ~= "string" or seen[label] then return false end
        seen[label] = true
    end
    return true
end

local function fill_column(c, parts)
    if c.kind == "text" then
        if not are_labels(parts.labels) or
            not are_codes(parts.vector, parts.labels) then return false end
        c.labels = parts.labels
    else
        if type(parts.format) ~= "string" or not are_codes(parts.vector) then
            return false
        end
        c.format = parts.format
    end
    c.vector = parts.vector
    return true
end

-- Makes a blank one what those parts say; false where they are not right, as
-- in a file that somebody wrote.
function frames.fill(value, parts)
    if not is_plain(parts) then return false end
    local c = columns.state[value]
    if c then return fill_column(c, parts) end
    local names, by = parts.names, parts.columns
    if not are_labels(names) or not is_plain(by) then return false end
    local T = new({}, {}, 0)
    for _, name in ipairs(names) do
        if kind_of(by[name]) == nil or not pcall(set, T, name, by[name]) then
            return false
        end
    end
    local s, filled = state[value], state[T]
    s.names, s.by, s.rows, s.device = filled.names, filled.by, filled.rows,
        filled.device
    tell_members(value, s)
    return true
end

-- --- one below the other -----------------------------------------------------

-- vcat of frames with equal columns, in the order of the first.
function frames.vcat(...)
    local list = {...}
    local s = state[list[1]]
    for i = 2, #list do
        local t = state[list[i]]
        if not t then
            fail("vcat", "argument %d is %s, and those before it are frames", i,
                brief(list[i]))
        end
        for _, name in ipairs(t.names) do
            if not s.by[name] then
                fail("vcat", "frame %d has a column %q, the first has %s", i,
                    name, listed(s.names))
            end
        end
        for _, name in ipairs(s.names) do
            local c = t.by[name]
            if not c then
                fail("vcat", "frame %d has no column %q", i, name)
            elseif kind_of(c) ~= kind_of(s.by[name]) then
                fail("vcat", "the column %q is %s in the first frame and %s " ..
                    "in frame %d", name, kind_of(s.by[name]), kind_of(c), i)
            end
        end
    end
    local rows = 0
    for _, T in ipairs(list) do rows = rows + state[T].rows end
    return made(s, s.names, rows, function(_, name)
        local parts = {}
        for i, T in ipairs(list) do parts[i] = state[T].by[name] end
        return columns.joined(parts)
    end)
end

return frames
