-- Where rows come from, in which order they stand, and which of them are
-- wanted; and the options by which people say so.
local checks = require "lumat.checks"
local journal = require "lumat.journal"
local peaks = require "lumat.peaks"
local sources = {}
local getmetatable, ipairs, next, pairs, setmetatable = getmetatable, ipairs,
    next, pairs, setmetatable
local tostring, type = tostring, type
local concat, sort = table.concat, table.sort
local find, format, gsub = string.find, string.format, string.gsub
local huge, math_type = math.huge, math.type

-- --- rows -------------------------------------------------------------------

-- Numbers by size, then all else by its text.
local function comes_before(a, b)
    if type(a) == "number" and type(b) == "number" then return a < b end
    if type(a) ~= type(b) then return type(a) == "number" end
    return tostring(a) < tostring(b)
end

local function axes_of(rows)
    local seen, axes = {}, {}
    for _, row in ipairs(rows) do
        for name in next, row.p do
            if not seen[name] then
                seen[name] = true
                axes[#axes + 1] = name
            end
        end
    end
    sort(axes, comes_before)
    return axes
end

-- What tables and charts are of, so that they can be shown in other ways, too.
local origins = setmetatable({}, {__mode = "k"})

-- Makes a value of what is shown: it prints the text, has the methods of the
-- experiment e and stands for its rows, or for those given.
function sources.shown(value, text, e, rows)
    origins[value] = {e = e, rows = rows}
    return setmetatable(value, {__tostring = function() return text end,
        __index = type(e) == "table" and e.results and e or nil})
end

-- The experiment that something stands for.
function sources.origin(e)
    while origins[e] do e = origins[e].e end
    return e
end

-- The rows of an experiment, of what shows it or of a list of rows, with the
-- names of the axes and the points in their order (nil: that of the rows).
function sources.source(what, e)
    local shown = type(e) == "table" and origins[e]
    if shown then
        local source = sources.source(what, shown.e)
        source.rows = shown.rows or source.rows
        return source
    end
    if type(e) ~= "table" then
        checks.fail(what, "%s is no experiment and no list of rows",
            checks.brief(e))
    end
    if e.results then
        local rows = e:results()
        peaks.settle(rows)
        return {e = e, name = e.title or e.name, axes = e.axes, rows = rows,
            points = e:points(), joint = e.joint,
            environments = e.environments and e:environments()}
    end
    if #e == 0 and next(e) ~= nil then
        checks.fail(what, "the first argument has no rows; a colon hands the " ..
            "experiment over: e:%s{…}", what)
    end
    for i, row in ipairs(e) do
        if type(row) ~= "table" or type(row.p) ~= "table" then
            checks.fail(what, "row %d has no table p of parameters", i)
        end
    end
    peaks.settle(e)
    return {rows = e, axes = axes_of(e), name = e.name,
        environments = e.environments}
end

-- A value of an axis as text. Whole numbers are one whatever their type.
function sources.plain(value)
    if math_type(value) == "integer" then return format("%d", value) end
    if type(value) == "number" then return checks.figure("%.6g", value) end
    return tostring(value)
end

-- The row's values of those axes, joined.
function sources.label(row, axes)
    local parts = {}
    for i, name in ipairs(axes) do
        parts[i] = row.p[name] == nil and "-" or sources.plain(row.p[name])
    end
    return concat(parts, " ")
end

local function signature(p)
    local names, parts = {}, {}
    for name in next, p do names[#names + 1] = name end
    sort(names, comes_before)
    for i, name in ipairs(names) do
        local value = p[name]
        parts[i] = format("%s=%s:%s", name, type(value),
            type(value) == "number" and format("%.17g", value) or
            tostring(value))
    end
    return concat(parts, "\0")
end
sources.signature = signature -- the same for the same parameters

-- "n=512 kernel=tiled"
function sources.describe(axes, p)
    local parts = {}
    for _, name in ipairs(axes) do
        if p[name] ~= nil then
            parts[#parts + 1] = name .. "=" .. sources.plain(p[name])
        end
    end
    return concat(parts, " ")
end

-- Rows that `where` names: a function of the parameters and the row, or a
-- table of the values they must have.
function sources.filtered(what, source, where)
    if where == nil then return source.rows end
    local kept = {}
    for name in next, type(where) == "table" and where or {} do
        local known = false
        for _, axis in ipairs(source.axes) do known = known or axis == name end
        if not known then
            checks.fail(what, "where: there is no axis %s, but %s",
                checks.brief(name), concat(source.axes, " "))
        elseif type(where[name]) == "table" then
            checks.fail(what, "where: %s is a table, expected one value; a " ..
                "function chooses several: where = function(p) return p.%s > " ..
                "… end", name, name)
        end
    end
    local function matches(row)
        if type(where) == "function" then return where(row.p, row) end
        for name, value in next, where do
            if row.p[name] ~= value then return false end
        end
        return true
    end
    for _, row in ipairs(source.rows) do
        if matches(row) then kept[#kept + 1] = row end
    end
    return kept
end

-- The values an axis has in the rows: numbers by size, others as the points
-- have them, or as they come.
function sources.values(source, rows, axis)
    local seen, list, place = {}, {}, {}
    for i, p in ipairs(source.points or {}) do
        local value = p[axis]
        if value ~= nil and not place[value] then place[value] = i end
    end
    for i, row in ipairs(rows) do
        local value = row.p[axis]
        if value ~= nil and not seen[value] then
            seen[value] = true
            place[value] = place[value] or huge
            list[#list + 1] = value
            seen[value] = i
        end
    end
    sort(list, function(a, b)
        if type(a) == "number" and type(b) == "number" then return a < b end
        if type(a) ~= type(b) then return type(a) == "number" end
        if place[a] ~= place[b] then return place[a] < place[b] end
        return seen[a] < seen[b]
    end)
    return list
end

-- The rows in the order of the points; those of none last.
function sources.ordered(source, rows)
    local place, list = {}, {}
    for i, p in ipairs(source.points or {}) do
        place[signature(p)] = i
    end
    for i, row in ipairs(rows) do
        list[i] = {row, place[signature(row.p)] or huge, i}
    end
    sort(list, function(a, b)
        if a[2] ~= b[2] then return a[2] < b[2] end
        return a[3] < b[3]
    end)
    for i, entry in ipairs(list) do list[i] = entry[1] end
    return list
end

-- --- places -----------------------------------------------------------------

-- What the axes named say of the parameters: the same for the same values.
function sources.part(p, axes)
    local some = {}
    for _, name in ipairs(axes) do some[name] = p[name] end
    return signature(some)
end

-- Of points that were measured again the later row counts.
local function later_rows(rows)
    local last, list = {}, {}
    for _, row in ipairs(rows) do last[signature(row.p)] = row end
    for _, row in ipairs(rows) do
        if last[signature(row.p)] == row then list[#list + 1] = row end
    end
    return list
end

local function differing(source, a, b)
    local names = {}
    for _, name in ipairs(source.axes) do
        if a.p[name] ~= b.p[name] then names[#names + 1] = name end
    end
    return names
end

local function literal(value)
    return type(value) == "string" and format("%q", value) or tostring(value)
end

-- What to write so that a place has one point.
local function refuse_several(what, source, a, b, o)
    local names = differing(source, a, b)
    local first, all, ways = names[1], {}, {}
    for _, name in ipairs(o.named or {}) do all[#all + 1] = format("%q", name) end
    for _, name in ipairs(names) do all[#all + 1] = format("%q", name) end
    if o.option then
        ways[1] = format(#all > 1 and "%s = {%s}" or "%s = %s", o.option,
            concat(all, ", "))
    end
    ways[#ways + 1] = format("where = {%s = %s}", first, literal(b.p[first]))
    checks.fail(what, "several points stand %s: %s %s; name %s in %s, or say " ..
        "which stat of them, as in %s or stat = \"median\"", o.place,
        concat(names, ", "), #names > 1 and "differ" or "differs",
        #names > 1 and "them" or "it", o.names, concat(ways, ", "))
end

-- The rows by their place in a table, a map or a line, which key(row) names:
-- lists, by key. Points that differ share a place only where a stat says which
-- of their figures counts. o: stat; place, names: words for the message;
-- option, named: which of the options could take more axes, and those it has.
function sources.gathered(what, source, rows, key, o)
    local cells = {}
    for _, row in ipairs(later_rows(rows)) do
        local k = key(row)
        local cell = cells[k] or {}
        if k ~= nil and cell[1] and not o.stat then
            refuse_several(what, source, cell[1], row, o)
        end
        if k ~= nil then
            cell[#cell + 1], cells[k] = row, cell
        end
    end
    return cells
end

-- --- options ----------------------------------------------------------------

-- A line about the rows of the source.
function sources.told(source, text)
    return (source.name and source.name .. ": " or "") .. text
end

-- What to say where no rows are chosen.
function sources.nothing(source, what)
    return sources.told(source, #source.rows > 0 and "no points match" or
        source.e and format("no points to %s yet; :run() measures them",
        what) or "no points to " .. what)
end

-- "; did you mean tiled?" when one of the names is near, but for capitals too,
-- else all of them.
function sources.suggest(name, names)
    local all = concat(names, " ")
    local near = type(name) == "string" and
        (journal.nearest(name, all) or journal.nearest(name:lower(), all))
    if near then return format("; did you mean %s?", near) end
    return ": there are " .. concat(names, " ")
end

function sources.check_axis(what, option, source, name)
    for _, axis in ipairs(source.axes) do
        if axis == name then return end
    end
    checks.fail(what, "%s: there is no axis %s%s", option, checks.brief(name),
        sources.suggest(name, source.axes))
end

return sources
