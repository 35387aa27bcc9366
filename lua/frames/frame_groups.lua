-- Groups of a frame's rows, and what else goes by equal values: how often each
-- is there, which there are, and the description of columns.
--
-- Rows are ordered by their keys once. A group is a run of them then, and sums
-- of groups are the product of a sparse matrix, a row a group with a 1 for each
-- of its rows, with a column.
local library, _, _, private = ...
local checks = require "lumat.checks"
local columns = require "lumat.frame_columns"
local frames = require "lumat.frames"
local fail, brief, plural = checks.fail, checks.brief, checks.plural
local kind_of = columns.kind_of
local groups = {}
local error, ipairs, next, pairs, pcall = error, ipairs, next, pairs, pcall
local setmetatable, type = setmetatable, type
local concat, sort, unpack = table.concat, table.sort, table.unpack
local format = string.format
local floor_of = math.floor

local NAN = 0 / 0
local WHOLE = 2.0 ^ 53 -- whole numbers below are exact in f64

local function f64_on(device)
    return {dtype = "f64", device = device}
end

-- The whole number that a count is; in a dry run nobody knows it.
local function floor(x)
    if type(x) ~= "number" then
        fail("frame", "how many groups there are depends on elements, which " ..
            "are not looked at here")
    end
    return floor_of(x)
end

-- --- codes of keys -----------------------------------------------------------

-- Of a vector without NaN in rising order: 1 where another value begins.
local function changes(v)
    local n = v.rows
    local out = library.ones(n, f64_on(v.device))
    if n > 1 then
        out[{{2, n}}] = v[{{2, n}}]:ne(v[{{1, n - 1}}]):f64()
    end
    return out
end

-- The places that put a vector in rising order, without those of NaN, and the
-- vector so.
local function ordered(v)
    local order = library.argsort(v)
    local there = v.rows - floor(v:isnan():sum())
    if there < v.rows then
        order = there > 0 and order[{{1, there}}] or
            library.zeros(0, f64_on(v.device))
    end
    return order, v[order]
end

-- Each value as the number of those that are smaller, from 0; how many
-- different ones there are.
local function dense(v)
    local order, values = ordered(v)
    local codes = library.full(v.rows, NAN, f64_on(v.device))
    if values.rows == 0 then return codes, 1 end
    local ranks = changes(values):cumsum() - 1
    codes[order] = ranks
    return codes, floor(ranks[-1]) + 1
end

-- One number a row that is the same for the same keys and rises with them; NaN
-- where one is missing.
local function codes_of(list)
    local codes, count
    for _, c in ipairs(list) do
        local more, size
        if kind_of(c) == "text" then
            more, size = columns.sort_keys(c), #c.labels
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

-- What is known of the groups of equal keys: how many there are; order, the
-- places of rows group by group, as many as `there`; group, of each of these
-- its number; starts, where each group begins among them; count, how many rows
-- each has.
local function group_rows(keys)
    local g = {}
    local codes = codes_of(keys)
    local order, values = ordered(codes)
    g.rows, g.there, g.order, g.device = codes.rows, values.rows, order,
        codes.device
    if g.there == 0 then
        local none = library.zeros(0, f64_on(g.device))
        g.number, g.group, g.starts, g.count = 0, none, none, none
        return g
    end
    local new = changes(values)
    g.group = new:cumsum()
    g.number = floor(g.group[-1])
    local places = columns.counted(1, g.there, g.device)
    g.starts = places[new:ne(0)]
    g.count = library.full(g.number, g.there + 1.0, f64_on(g.device)) - g.starts
    if g.number > 1 then
        g.count[{{1, g.number - 1}}] = g.starts[{{2, g.number}}] -
            g.starts[{{1, g.number - 1}}]
    end
    return g
end

-- The sums of a vector, in the order of groups, over each of them.
local function sums(g, x)
    if not g.members then
        g.members = library.sparse(g.group,
            columns.counted(1, g.there, g.device),
            library.ones(g.there, f64_on(g.device)), g.number, g.there,
            f64_on(g.device))
    end
    return g.members * x
end

-- The keys of the groups, as a frame without other columns.
local function key_columns(g)
    local by = {}
    local first = g.order[g.starts]
    for _, name in ipairs(g.keys) do
        by[name] = columns.pick(g.frame.by[name], first)
    end
    return by
end

-- --- of the numbers of a column, group by group ------------------------------

-- A column's numbers in the order of groups, 0 for what is missing, a vector of
-- 1 and 0, whether it is there, and how many are in each group.
local function numbers_of(g, c)
    local x = columns.vector(c)[g.order]:f64()
    local missing = x:isnan()
    local here = library.lnot(missing):f64()
    return library.where(missing, 0, x), here, sums(g, here)
end

local function where_any(count, least, values)
    return library.where(count:lt(least), NAN, values)
end

-- In the order of their values within each group, what is missing last; and
-- how many there are.
local function sorted_in_groups(g, c)
    local x = columns.vector(c)[g.order]:f64()
    local by_value = library.argsort(x)
    local places = by_value[library.argsort(g.group[by_value])]
    return x[places], sums(g, library.lnot(x:isnan()):f64())
end

-- The element of each group at a place from its first one on.
local function at(g, sorted, count, place)
    local places = g.starts + library.where(count:gt(0), place, 0)
    return where_any(count, 1, sorted[places])
end

local statistics = {}

function statistics.sum(g, c)
    return sums(g, (numbers_of(g, c)))
end

function statistics.mean(g, c)
    local x, _, count = numbers_of(g, c)
    return where_any(count, 1, sums(g, x) / count)
end

function statistics.var(g, c)
    local x, here, count = numbers_of(g, c)
    local mean = sums(g, x) / library.maximum(count, 1)
    local off = (x - mean[g.group]) % here
    return where_any(count, 2, sums(g, off:square()) / (count - 1))
end

function statistics.std(g, c)
    return statistics.var(g, c):sqrt()
end

function statistics.min(g, c)
    local sorted, count = sorted_in_groups(g, c)
    return at(g, sorted, count, 0)
end

function statistics.max(g, c)
    local sorted, count = sorted_in_groups(g, c)
    return at(g, sorted, count, count - 1)
end

function statistics.median(g, c)
    local sorted, count = sorted_in_groups(g, c)
    local low = at(g, sorted, count, ((count - 1) / 2):floor())
    local high = at(g, sorted, count, (count / 2):floor())
    return library.where(low:eq(high), low, low / 2 + high / 2)
end

function statistics.first(g, c)
    return columns.pick(c, g.order[g.starts])
end

function statistics.last(g, c)
    return columns.pick(c, g.order[g.starts + g.count - 1])
end

-- How many are there.
function statistics.count(g, c)
    return sums(g, library.lnot(columns.missing(c)[g.order]):f64())
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
    if type(name) ~= "string" or not statistics[name] then
        fail(what, "%s is no statistic: there are %s", brief(name),
            order_of_statistics)
    end
    return statistics[name]
end

local function of_column(g, what, name, column_name)
    local c = frames.column(what, g.frame, column_name)
    local kind = kind_of(c)
    if not of_kinds[name][kind] then
        fail(what, "%s of the column %q, which is %s", name, column_name,
            kind == "date" and "dates" or kind)
    end
    if g.number == 0 and name ~= "count" then
        return columns.pick(c, g.starts)
    elseif g.number == 0 then
        return g.count
    end
    local out = statistics[name](g, c)
    if name == "count" or name == "first" or name == "last" then return out end
    if kind == "date" then return columns.alike(c, out) end
    return c.dtype == "f64" and out or out:f32()
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

local function reduced(g, name, wanted)
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
                column_name)}
        end
    end
    return result(g, list)
end

for name in pairs(statistics) do
    methods[name] = function(G, wanted)
        return reduced(state[G], name, wanted)
    end
end

-- How many rows each has; with names how many of those columns are there.
local counted = methods.count
function methods.count(G, wanted)
    if wanted ~= nil then return counted(G, wanted) end
    local g = state[G]
    return result(g, {{"count", g.count}})
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

-- The places of the rows of group i, in their order.
local function places_of(g, i)
    local first = floor(g.starts[i])
    return g.order[{{first, first + floor(g.count[i]) - 1}}]
end

-- A frame of group i.
local function part(g, i)
    local by = {}
    local places = places_of(g, i)
    for _, name in ipairs(g.frame.names) do
        by[name] = columns.pick(g.frame.by[name], places)
    end
    return frames.new(checks.copied(g.frame.names), by, places.rows)
end

-- Columns of what f gave for each group, under the names of what it gave.
function methods.apply(G, f)
    local g, lists, order = state[G], {}, {}
    if type(f) ~= "function" then
        fail("apply", "takes a function, not %s", brief(f))
    end
    for i = 1, g.number do
        local given = f(part(g, i))
        if type(given) ~= "table" or frames.is_frame(given) then
            given = {value = given}
        end
        for name, x in next, given do
            if type(x) ~= "number" and type(x) ~= "string" and
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
    local keys = frames.new(checks.copied(g.keys), key_columns(g), g.number)
    local i = 0
    return function()
        i = i + 1
        if i <= g.number then return keys[i], part(g, i) end
    end
end

function meta.__index(G, key)
    if methods[key] then return methods[key] end
    local g = state[G]
    if key == "keys" then
        return frames.new(checks.copied(g.keys), key_columns(g), g.number)
    end
    fail("groupby", "there is no %s of groups: there are %s agg apply each, " ..
        "and keys", brief(key), order_of_statistics)
end

function meta.__newindex()
    fail("groupby", "groups cannot be assigned to")
end

function meta.__len(G) return state[G].number end

for name, f in pairs(methods) do methods[name] = checks.placed(f) end
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

function groups.groupby(T, names)
    local g = grouped("groupby", T, names)
    if g.there < g.rows then
        private.warn_once("groupby", format("%s without a key (%s) %s left out",
            plural(g.rows - g.there, "row"), concat(g.keys, ", "),
            g.rows - g.there == 1 and "is" or "are"))
    end
    local G = setmetatable({}, meta)
    state[G] = g
    return G
end

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

-- The elements that are there, rising, in f64.
local function present(c)
    local v = columns.vector(c):f64()
    local missing = v:isnan()
    if missing:any() then v = v[library.lnot(missing)] end
    return v:sort()
end

-- Source: Hyndman and Fan, Sample quantiles in statistical packages, 1996, the
-- seventh, which NumPy, pandas and R take.
local function quantile(v, share)
    local place = (v.rows - 1) * share
    local low = floor(place)
    local a = v[low + 1]
    if place == low then return a end
    local b = v[low + 2]
    return a == b and a or a + (b - a) * (place - low)
end

local function describe_numbers(c)
    local v = present(c)
    local n = v.rows
    local t = {count = n}
    for _, name in ipairs(figures) do t[name] = NAN end
    if n == 0 then return t end
    t.mean, t.min, t.max = v:mean(), v[1], v[-1]
    t.std = n > 1 and v:std() or NAN
    t["25%"], t["50%"], t["75%"] = quantile(v, 0.25), quantile(v, 0.5),
        quantile(v, 0.75)
    return t
end

-- Of text and dates.
local function describe_values(c)
    local g = group_rows{c}
    if g.number == 0 then return {count = 0, distinct = 0} end
    local at_most = floor(g.count:argmax())
    local top = columns.pick(c, g.order[g.starts])
    return {count = g.there, distinct = g.number, freq = g.count[at_most],
        top = columns.value(top, at_most)}
end

function groups.describe(T, wanted)
    local s = frames.state_of(T)
    local names = wanted and frames.names_of("describe", s, wanted) or s.names
    local lists = {count = {}, distinct = {}, top = {}, freq = {}}
    local has_numbers, has_values = false, false
    for _, name in ipairs(figures) do lists[name] = {} end
    for i, name in ipairs(names) do
        local c = s.by[name]
        local is_number = kind_of(c) == "number"
        local t = is_number and describe_numbers(c) or describe_values(c)
        has_numbers = has_numbers or is_number
        has_values = has_values or not is_number
        for figure, list in pairs(lists) do
            list[i] = t[figure] or figure == "top" and false or
                t[figure] == nil and NAN or t[figure]
        end
    end
    local pairs_of = {{"column", names}, {"count", lists.count}}
    local function add(figure)
        pairs_of[#pairs_of + 1] = {figure, lists[figure]}
    end
    if has_numbers then
        for _, figure in ipairs(figures) do add(figure) end
    end
    if has_values then add "distinct" add "top" add "freq" end
    for i = 2, #pairs_of do
        local name, list = unpack(pairs_of[i])
        if name ~= "top" then
            pairs_of[i][2] = #list > 0 and library.vec(list,
                {dtype = "f64", device = "cpu"}) or library.zeros(0)
        end
    end
    local out = {}
    for i, pair in ipairs(pairs_of) do
        local name, values = pair[1], pair[2]
        local kind = (name == "column" or name == "top") and "text" or "number"
        out[i] = {name = name, kind = kind, values = values}
        if kind == "text" then
            local c = columns.text_of_list(values, #values, "describe", "cpu")
            out[i].codes, out[i].labels = c.codes, c.labels
        end
    end
    return frames.make(out)
end

return groups
