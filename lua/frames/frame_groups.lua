-- Groups of a frame's rows, and what else goes by equal values: how often each
-- is there, which there are, and the description of columns.
--
-- Keys become one number a row, by which lua/std/lazy/groups.lua groups the
-- rows; what is missing among the numbers of a column is left out.
local library, _, _, private = ...
local checks = require "lumat.checks"
local columns = require "lumat.frame_columns"
local frames = require "lumat.frames"
local kept = require "lumat.kept"
local vector_groups = require "lumat.groups"
local by = vector_groups.by
local fail, brief, plural = checks.fail, checks.brief, checks.plural
local kind_of = columns.kind_of
local groups = {}
local assert, ipairs, next, pairs, select = assert, ipairs, next, pairs, select
local getmetatable, setmetatable, type = getmetatable, setmetatable, type
local concat, sort, unpack = table.concat, table.sort, table.unpack
local format = string.format
local floor_of, larger = math.floor, math.max

local NAN = 0 / 0
local WHOLE = 2.0 ^ 53 -- whole numbers below are exact in f64
local FEW_LABELS = 4096

-- The whole number that a count is; in a dry run nobody knows it.
local function floor(x)
    if type(x) ~= "number" then
        fail("frame", "how many groups there are depends on elements, which " ..
            "are not looked at here")
    end
    return floor_of(x)
end

-- --- codes of keys -----------------------------------------------------------

-- Each value as the number of those that are smaller, from 0, NaN where it is
-- NaN; and how many different ones there are.
local function dense(v)
    local g = by(v, true)
    return g.group - 1, larger(1, #g.count)
end

-- A number a row that is the same for the same keys and rises with them; NaN
-- where one is missing.
local function codes_of(list)
    local codes, count
    if #list == 1 then return columns.sort_keys(list[1]) end
    for _, c in ipairs(list) do
        local more, size
        if kind_of(c) == "text" then
            more = columns.sort_keys(c)
            size = larger(1, columns.count_labels(c))
        else
            more, size = dense(columns.sort_keys(c))
        end
        if codes and count * size > WHOLE then codes, count = dense(codes) end
        codes = codes and codes * size + more or more
        count = (count or 1) * size
    end
    return codes
end

-- --- groups ------------------------------------------------------------------

local state = setmetatable({}, {__mode = "k"})
local methods, meta = {}, {}

-- A row a group in the order of keys, of what `by` gave for each.
local function arranged(g, v)
    return g.places and v[g.places] or v
end

-- What is known of the groups of equal keys: `by`, which reduces the numbers of
-- each; places, where that has them in another order, by the codes of few
-- labels; how many there are, and how many rows each has; how many rows there
-- are, and how many of these have a key.
local function group_rows(keys)
    local c = keys[1]
    local is_by_label = #keys == 1 and kind_of(c) == "text" and
        columns.count_labels(c) <= FEW_LABELS
    local codes = is_by_label and c.codes or codes_of(keys)
    local g = {by = by(codes, true), rows = codes.rows, device = codes.device}
    if is_by_label then g.places = columns.label_places(c, g.by.keys) end
    g.count = arranged(g, g.by.count)
    g.number = #g.count
    g.there = g.number > 0 and floor(g.count:sum()) or 0
    return g
end

-- The places of the first, or last, rows of groups.
local function edge_places(g, which)
    if not g[which] then
        local places = columns.counted(1, g.rows, g.device)
        g[which] = g.number > 0 and arranged(g, g.by[which](g.by, places)) or
            library.zeros(0, {dtype = "f64", device = g.device})
    end
    return g[which]
end

-- The keys of groups by one column.
local function key_column(g, c)
    local keys = arranged(g, g.by.keys)
    if g.places then return columns.alike(c, keys:f64()) end
    if kind_of(c) == "text" then return columns.of_ranks(c, keys) end
    if kind_of(c) == "date" then return columns.alike(c, keys) end
    if c.dtype == "bool" then return keys:ne(0) end
    return c.dtype == "f32" and keys:f32() or keys
end

-- The keys of the groups, by the names of their columns.
local function key_columns(g)
    local named, list = {}, g.keys
    for _, name in ipairs(list) do
        local c = g.frame.by[name]
        named[name] = #list == 1 and key_column(g, c) or
            columns.pick(c, edge_places(g, "first"))
    end
    return named
end

-- --- of a column, group by group ---------------------------------------------

-- By name: of groups, a column and options for groups of vectors.
local statistics = {}
for _, name in ipairs{"sum", "mean", "median", "min", "max", "var", "std"} do
    statistics[name] = function(g, c, options)
        local v = columns.vector(c)
        if v.dtype == "bool" then v = v:f32() end
        return arranged(g, g.by[name](g.by, v, options))
    end
end

for _, name in ipairs{"first", "last"} do
    statistics[name] = function(g, c, options)
        local v = columns.vector(c)
        if v.dtype == "bool" or options.nan == "keep" then
            return columns.pick(c, edge_places(g, name))
        end
        return columns.alike(c, arranged(g, g.by[name](g.by, v, options)))
    end
end

-- How many are there.
function statistics.count(g, c)
    return arranged(g, g.by:sum(library.lnot(columns.missing(c)):f64()))
end

-- The kinds of columns that each is of.
local of_kinds = {
    sum = {number = true}, mean = {number = true}, var = {number = true},
    std = {number = true}, min = {number = true, date = true},
    max = {number = true, date = true}, median = {number = true, date = true},
    first = {number = true, date = true, text = true},
    last = {number = true, date = true, text = true},
    count = {number = true, date = true, text = true},
}

local order_of_statistics = "count sum mean median min max std var first last"

local function statistic(what, name)
    if type(name) == "function" then
        fail(what, "statistics are named: there are %s; g:apply(f) calls " ..
            "f(rows) for each group", order_of_statistics)
    end
    if type(name) ~= "string" or not statistics[name] then
        fail(what, "%s is no statistic: there are %s", brief(name),
            order_of_statistics)
    end
    return statistics[name]
end

local left_out = {nan = "skip"} -- unless options say something else

local function of_column(g, what, name, column_name, options)
    local c = frames.column(what, g.frame, column_name)
    local kind = kind_of(c)
    if not of_kinds[name][kind] then
        fail(what, "%s of the column %q, which is %s", name, column_name,
            kind == "date" and "dates" or kind)
    end
    if g.number == 0 and name ~= "count" then
        return columns.pick(c, edge_places(g, "first"))
    elseif g.number == 0 then
        return g.count
    end
    local out = statistics[name](g, c, options or left_out)
    local is_number = name ~= "first" and name ~= "last" and name ~= "count"
    return is_number and kind == "date" and columns.alike(c, out) or out
end

-- --- what groups do ----------------------------------------------------------

-- A frame of the keys, and columns in order: {name, column}.
local function result(g, list)
    local names, by = checks.copied(g.keys), key_columns(g)
    for _, item in ipairs(list) do
        local name = item[1]
        if by[name] then
            fail("groupby", "there would be two columns %q", name)
        end
        names[#names + 1], by[name] = name, item[2]
    end
    return frames.new(names, by, g.number)
end

local function is_key(g, name)
    for _, key in ipairs(g.keys) do
        if key == name then return true end
    end
    return false
end

-- The options of g:std(names, options), which are those of groupby(v):std.
local function options_of(name, options)
    if type(options) == "string" then
        fail(name, "there is a second name, %s: several are a list, as {\"a\", " ..
            "%s}", brief(options), brief(options))
    elseif options ~= nil and name == "count" then
        fail(name, "has no options, and there are %s", brief(options))
    end
    vector_groups.check_options(name, options, name == "var" or name == "std")
    local all = checks.copied(options or {})
    all.nan = all.nan or "skip"
    return all
end

-- Is it {ddof = 0}, and not a list of names?
local function are_options(x)
    return type(x) == "table" and getmetatable(x) == nil and #x == 0 and
        next(x) ~= nil
end

local function reduced(g, name, wanted, options)
    if options == nil and are_options(wanted) then wanted, options = nil, wanted end
    options = options_of(name, options)
    local list, names = {}, nil
    if wanted ~= nil then
        if type(wanted) ~= "string" and type(wanted) ~= "table" then
            fail(name, "names are %s, expected a column's name or a list of " ..
                "names", brief(wanted))
        end
        names = frames.names_of(name, g.frame, wanted)
    end
    for _, column_name in ipairs(names or g.frame.names) do
        local kind = kind_of(g.frame.by[column_name])
        if names or of_kinds[name][kind] and not is_key(g, column_name) then
            list[#list + 1] = {column_name, of_column(g, name, name,
                column_name, options)}
        end
    end
    return result(g, list)
end

for name in pairs(statistics) do
    methods[name] = function(G, wanted, options, ...)
        if select("#", ...) > 0 then
            fail(name, "takes names and options: write g:%s({\"a\", \"b\"})", name)
        end
        return reduced(state[G], name, wanted, options)
    end
end

-- How many rows each has; with names how many of those columns are there.
local counted = methods.count
function methods.count(G, wanted, ...)
    if wanted ~= nil or select("#", ...) > 0 then return counted(G, wanted, ...) end
    local g = state[G]
    return result(g, {{"count", checks.handed_out(g.count)}})
end

function methods.agg(G, wanted)
    local g, list = state[G], {}
    if type(wanted) ~= "table" then
        fail("agg", "takes {column = \"mean\", …}, not %s", brief(wanted))
    end
    for name in next, wanted do frames.column("agg", g.frame, name) end
    for _, name in ipairs(g.frame.names) do
        local how = wanted[name]
        if type(how) == "string" then
            statistic("agg", how)
            list[#list + 1] = {name, of_column(g, "agg", how, name)}
        elseif type(how) == "table" then
            frames.check_names("agg", how)
            for _, one in ipairs(how) do
                statistic("agg", one)
                list[#list + 1] = {name .. "_" .. one,
                    of_column(g, "agg", one, name)}
            end
        elseif how ~= nil then
            statistic("agg", how)
        end
    end
    return result(g, list)
end

-- A frame of group i.
local function part(g, i)
    return frames.pick_rows(g.frame, g.frame.names,
        g.by:places(g.places and floor(g.places[i]) or i))
end

-- Columns of what f gave for each group, under the names of what it gave.
function methods.apply(G, f)
    local g, lists, order = state[G], {}, {}
    if type(f) ~= "function" then
        fail("apply", "takes a function, not %s", brief(f))
    end
    for i = 1, g.number do
        local given = f(part(g, i))
        if given == nil then
            fail("apply", "the function gave nothing for group %d", i)
        elseif type(given) ~= "table" or getmetatable(given) ~= nil then
            given = {value = given}
        elseif next(given) == nil then
            fail("apply", "the function gave an empty table for group %d", i)
        end
        for name, x in next, given do
            if kind_of(x) == "date" or kind_of(x) == "text" then
                fail("apply", "the function gives a %s column of group %d, " ..
                    "expected one value: c[1] is its first", kind_of(x), i)
            elseif type(x) ~= "number" and type(x) ~= "string" and
                type(x) ~= "boolean" then
                fail("apply", "the function gives %s of group %d, expected " ..
                    "a number, text or a table of them by names", brief(x), i)
            end
            if not lists[name] then
                lists[name] = {}
                order[#order + 1] = name
            end
            lists[name][i] = x
        end
    end
    sort(order)
    local list = {}
    for k, name in ipairs(order) do
        for i = 1, g.number do
            if lists[name][i] == nil then lists[name][i] = false end
        end
        list[k] = {name, frames.frame({{name, lists[name]}}):col(name)}
    end
    return result(g, list)
end

-- Goes through the groups: their keys as a table by names, and a frame each.
function methods.each(G)
    local g = state[G]
    local keys, i = G.keys, 0
    return function()
        i = i + 1
        if i <= g.number then return keys[i], part(g, i) end
    end
end

function meta.__index(G, key)
    if methods[key] then return methods[key] end
    local g = state[G]
    if key == "keys" then
        return frames.new(g.keys, key_columns(g), g.number)
    end
    fail("groupby", "there is no %s of groups: there are %s agg apply each, " ..
        "and keys", brief(key), order_of_statistics)
end

function meta.__newindex()
    fail("groupby", "groups cannot be assigned to")
end

function meta.__len(G) return state[G].number end

for name, f in pairs(methods) do
    methods[name] = checks.method(name, "g", f)
end
for name, f in pairs(meta) do meta[name] = checks.placed(f) end

local function headline(G)
    local g = state[G]
    local text = format("%s of %s by %s", plural(g.number, "group"),
        plural(g.rows, "row"), concat(g.keys, ", "))
    if g.number == 0 then return text end
    local least, most = floor(g.count:min()), floor(g.count:max())
    return format("%s, %s each", text, least == most and format("%d", least) or
        format("%d to %d", least, most))
end
meta.__headline, meta.__tostring = headline, headline
meta.__text = function(G) return headline(G) end
meta.__name, meta.__metatable = "groups", "groups"
meta.__members = checks.copied(methods)
meta.__members.keys = true

local function grouped(what, T, wanted)
    local s = frames.state_of(T)
    local names, list = frames.names_of(what, s, wanted), {}
    for i, name in ipairs(names) do list[i] = s.by[name] end
    local g = group_rows(list)
    g.keys = names
    -- columns may be set in the frame later
    g.frame = {names = checks.copied(s.names), by = checks.copied(s.by)}
    return g
end

local function object(G, g)
    state[G] = g
    return kept.note(setmetatable(G, meta), "frame_groups")
end

function groups.groupby(T, names)
    local g = grouped("groupby", T, names)
    if g.there < g.rows then
        private.warn_once("groupby", format("%s without a key (%s) %s left out",
            plural(g.rows - g.there, "row"), concat(g.keys, ", "),
            g.rows - g.there == 1 and "is" or "are"))
    end
    return object({}, g)
end

-- For sessions: the frame, of which the groups are found again.
kept.add_kind("frame_groups", function(G)
    local g = state[G]
    local fields = {frame = frames.new(g.frame.names, checks.copied(g.frame.by),
        g.rows), keys = checks.copied(g.keys)}
    return fields, fields
end, function(G, parts)
    object(G, grouped("groupby", assert(frames.is_frame(parts.frame) and
        parts.frame), parts.keys))
end)

-- --- which there are, and how often ------------------------------------------

function groups.unique(T, name)
    local g = grouped("unique", T, name)
    return key_columns(g)[name]
end

function groups.value_counts(T, wanted)
    local g = grouped("value_counts", T, wanted)
    if is_key(g, "count") then
        fail("value_counts", "the column \"count\" would be there twice: " ..
            "T:rename{count = \"…\"} gives it another name")
    end
    local all = result(g, {{"count", g.count}})
    return all:sort("count", {descending = true})
end

-- --- description -------------------------------------------------------------

local figures = {"mean", "std", "min", "25%", "50%", "75%", "max"}

local function describe_numbers(c)
    local v = columns.vector(c):f64()
    local missing = v:isnan()
    if missing:any() then v = v[library.lnot(missing)] end
    if v.rows == 0 then return {count = 0} end
    local t = {count = v.rows, mean = v:mean(), min = v:min(), max = v:max(),
        std = v.rows > 1 and v:std() or NAN}
    t["25%"], t["50%"], t["75%"] = unpack(library.quantile(v,
        {0.25, 0.5, 0.75}):totable())
    return t
end

-- Of text and dates.
local function describe_values(c)
    local g = group_rows{c}
    if g.number == 0 then return {count = 0, distinct = 0} end
    local at_most = floor(g.count:argmax())
    local top = key_column(g, c)
    return {count = g.there, distinct = g.number, freq = g.count[at_most],
        top = columns.value(top, at_most)}
end

function groups.describe(T, wanted)
    local s = frames.state_of(T)
    local given = wanted and frames.names_of("describe", s, wanted) or s.names
    local found, has_numbers, has_values = {}, false, false
    for i, name in ipairs(given) do
        local c = s.by[name]
        local is_number = kind_of(c) == "number"
        found[i] = is_number and describe_numbers(c) or describe_values(c)
        has_numbers = has_numbers or is_number
        has_values = has_values or not is_number
    end
    local names, by = {}, {}
    local function add_text(name, list)
        names[#names + 1] = name
        by[name] = columns.text_of_list(list, #list, "describe", "cpu")
    end
    local function add(name)
        local list = {}
        for i, t in ipairs(found) do list[i] = t[name] or NAN end
        names[#names + 1] = name
        by[name] = library.vec(list, {dtype = "f64", device = "cpu"})
    end
    add_text("column", given)
    add "count"
    for _, name in ipairs(has_numbers and figures or {}) do add(name) end
    if has_values then
        local top = {}
        for i, t in ipairs(found) do top[i] = t.top or false end
        add "distinct"
        add_text("top", top)
        add "freq"
    end
    return frames.new(names, by, #given)
end

return groups
