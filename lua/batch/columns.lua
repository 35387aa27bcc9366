-- What tables, charts and files take from rows: where rows come from, the
-- figures a row has by name, and how each is written.
local checks = require "lumat.checks"
local statistics = require "lumat.statistics"
local columns = {}
local getmetatable, ipairs, next, pairs = getmetatable, ipairs, next, pairs
local tostring, type = tostring, type
local concat, sort = table.concat, table.sort
local abs, format, gsub, huge = math.abs, string.format, string.gsub, math.huge
local larger, smaller, math_type = math.max, math.min, math.type

local WIDE = 0.05 -- of the median: an interval that is marked

-- --- sources ----------------------------------------------------------------

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

-- The rows of an experiment, or of a list of rows, with the names of the axes
-- and the points in their order (nil: that of the rows).
function columns.source(what, e)
    if type(e) ~= "table" then
        checks.fail(what, "%s is no experiment and no list of rows",
            checks.brief(e))
    end
    if e.results then
        return {e = e, name = e.name, axes = e.axes, rows = e:results(),
            points = e:points()}
    end
    for i, row in ipairs(e) do
        if type(row) ~= "table" or type(row.p) ~= "table" then
            checks.fail(what, "row %d has no table p of parameters", i)
        end
    end
    return {rows = e, axes = axes_of(e), name = e.name}
end

-- A value of an axis as text. Whole numbers are one whatever their type.
function columns.plain(value)
    if math_type(value) == "integer" then return format("%d", value) end
    if type(value) == "number" then return format("%.6g", value) end
    return tostring(value)
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
columns.signature = signature -- the same for the same parameters

-- "n=512 kernel=tiled"
function columns.describe(axes, p)
    local parts = {}
    for _, name in ipairs(axes) do
        if p[name] ~= nil then
            parts[#parts + 1] = name .. "=" .. columns.plain(p[name])
        end
    end
    return concat(parts, " ")
end

-- Rows that `where` names: a function of the parameters and the row, or a
-- table of the values they must have.
function columns.filtered(what, source, where)
    if where == nil then return source.rows end
    local kept = {}
    for name in next, type(where) == "table" and where or {} do
        local known = false
        for _, axis in ipairs(source.axes) do known = known or axis == name end
        if not known then
            checks.fail(what, "where: there is no axis %s, but %s",
                checks.brief(name), concat(source.axes, " "))
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
function columns.values(source, rows, axis)
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
function columns.ordered(source, rows)
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

-- --- figures ----------------------------------------------------------------

local function is_good(row)
    return row.status == nil or row.status == "ok"
end
columns.is_good = is_good

local stats = {median = statistics.median}
function stats.mean(list)
    local sum = 0
    for _, x in ipairs(list) do sum = sum + x end
    return sum / #list
end
function stats.min(list)
    local least = huge
    for _, x in ipairs(list) do least = smaller(least, x) end
    return least
end
function stats.max(list)
    local most = -huge
    for _, x in ipairs(list) do most = larger(most, x) end
    return most
end
columns.stats = stats

-- Seconds of one run by a statistic of the samples, with the interval where
-- it is the median.
local function seconds_of(row, stat)
    if stat and stat ~= "median" and row.samples and #row.samples > 0 then
        return stats[stat](row.samples)
    end
    return row.median, row.low, row.high
end

-- Work over seconds, in base units a second: which work goes by the peak.
local function work_of(row)
    local by_memory = row.peak and row.peak.name == "memory" or not row.flops
    return by_memory and row.bytes or row.flops, by_memory
end

local function per_second(row, work, stat)
    local seconds, low, high = seconds_of(row, stat)
    if not work or not seconds or seconds <= 0 then return nil end
    return work / seconds, high and high > 0 and work / high,
        low and low > 0 and work / low
end

local function scaled(scale, value, low, high)
    if not value then return nil end
    return value * scale, low and low * scale, high and high * scale
end

-- name: of(row, stat) -> value, low, high; how it is written; which is best.
local figures = {
    median = {of = seconds_of, kind = "time", better = "low"},
    rate = {kind = "rate", better = "high", of = function(row, stat)
        return per_second(row, work_of(row), stat)
    end},
    flops_rate = {kind = "rate", better = "high", of = function(row, stat)
        return per_second(row, row.flops, stat)
    end},
    tflops = {kind = "number", better = "high", of = function(row, stat)
        return scaled(1e-12, per_second(row, row.flops, stat))
    end},
    gflops = {kind = "number", better = "high", of = function(row, stat)
        return scaled(1e-9, per_second(row, row.flops, stat))
    end},
    gbs = {kind = "number", better = "high", of = function(row, stat)
        return scaled(1e-9, per_second(row, row.bytes, stat))
    end},
    share = {kind = "share", better = "high", of = function(row, stat)
        if not row.peak then return nil end
        return scaled(1 / row.peak.value, per_second(row, work_of(row), stat))
    end},
    check = {kind = "error", better = "low", of = function(row)
        return row.check
    end},
    width = {kind = "share", better = "low", of = function(row)
        return row.median and row.median > 0 and
            (row.high - row.low) / row.median or nil
    end},
    samples = {kind = "number", of = function(row)
        return row.samples and #row.samples
    end},
}
figures.time, figures.error = figures.median, figures.check
for _, name in ipairs{"low", "high", "seconds"} do
    figures[name] = {kind = "time", of = function(row) return row[name] end}
end

-- One rate for all rows where they stand beside one another: flops, unless all
-- of them are bound by the memory.
function columns.one_rate(rows, name)
    if name ~= "rate" then return name end
    for _, row in ipairs(rows) do
        if is_good(row) and row.flops and row.peak and
            row.peak.name ~= "memory" then
            return "flops_rate"
        end
    end
    return name
end

local titles = {median = "time", check = "error", flops_rate = "rate",
    gflops = "GFLOP/s", tflops = "TFLOP/s", gbs = "GB/s",
    share = "share of peak", width = "interval", seconds = "seconds spent"}

function columns.title(name)
    return type(name) == "function" and "value" or titles[name] or name
end

-- What a name that is no figure of every row may be: an axis, another field,
-- a figure that check gave.
local function other(row, name)
    if row.p[name] ~= nil then return row.p[name] end
    if row.values and row.values[name] ~= nil then return row.values[name] end
    return row[name]
end

-- Value, low and high of a row's figure; nil where it has none.
function columns.get(row, name, stat)
    if type(name) == "function" then return name(row) end
    local figure = row.p[name] == nil and figures[name]
    if figure then return figure.of(row, stat) end
    return other(row, name)
end

function columns.kind(name)
    local figure = figures[name]
    return figure and figure.kind or "number", figure and figure.better
end

-- Every name that the rows have a figure for.
function columns.names(source)
    local names, seen = {}, {}
    local function add(name)
        if not seen[name] then names[#names + 1] = name end
        seen[name] = true
    end
    for _, axis in ipairs(source.axes) do add(axis) end
    for _, name in ipairs{"median", "time", "low", "high", "rate", "gflops",
        "tflops", "gbs", "share", "check", "error", "width", "samples",
        "seconds", "status"} do
        add(name)
    end
    for _, row in ipairs(source.rows) do
        for name in next, row.values or {} do add(name) end
    end
    return names
end

-- --- how figures are written ------------------------------------------------

local function trimmed(x, digits)
    local text = format("%." .. digits .. "g", x)
    if x ~= 0 and abs(x) >= 10 ^ digits and abs(x) < 1e7 then
        return format("%.0f", x)
    end
    return text
end

-- x with so many significant digits, those that are 0 too: 1.20 of 1.2.
local function significant(x, digits)
    local size = abs(x)
    if x == 0 then return "0" end
    if size >= 1e6 or size < 1e-4 then
        return format("%." .. digits - 1 .. "e", x)
    end
    local places, edge = digits - 1, 10
    while size >= edge - 0.5 * 10.0 ^ -places and places > 0 do
        places, edge = places - 1, edge * 10
    end
    while size < 1 and size > 0 do places, size = places + 1, size * 10 end
    return format("%." .. places .. "f", x)
end
columns.significant = significant

local time_units = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}

-- The unit in which a time reads best: its seconds and its name.
function columns.time_unit(seconds)
    for _, unit in ipairs(time_units) do
        if abs(seconds) >= 0.9995 * unit[1] then return unit[1], unit[2] end
    end
    return 1e-9, "ns"
end

-- The unit of a row's rate: flops of the GPU count in tera.
function columns.rate_unit(row, name)
    local _, by_memory = work_of(row)
    if by_memory and name ~= "flops_rate" then return 1e9, "GB/s" end
    local peak = row.peak and (row.peak.flops or row.peak.value) or 0
    if peak >= 1e12 then return 1e12, "TFLOP/s" end
    return 1e9, "GFLOP/s"
end

-- A figure as people read it, with its unit unless `bare`.
function columns.text(row, name, value, bare)
    local kind = columns.kind(name)
    if row and row.p[name] ~= nil or type(value) ~= "number" then
        return columns.plain(value)
    elseif value ~= value then
        return "NaN"
    elseif kind == "time" then
        local scale, unit = columns.time_unit(value)
        return significant(value / scale, 4) .. " " .. unit
    elseif kind == "rate" then
        local scale, unit = columns.rate_unit(row, name)
        return significant(value / scale, 4) .. (bare and "" or " " .. unit)
    elseif kind == "share" then
        return format(value < 0.1 and "%.1f %%" or "%.0f %%", 100 * value)
    elseif kind == "error" then
        return value == 0 and "0" or format("%.1e", value)
    end
    return math_type(value) == "integer" and format("%d", value) or
        trimmed(value, 5)
end

-- Is its interval too wide to be taken at its word?
function columns.is_wide(row)
    return row.median and row.low and row.median > 0 and
        (row.high - row.low) / row.median > WIDE
end

-- Why a point has no figure, in a line.
function columns.reason(row)
    local text = row.message or ""
    return (gsub(gsub(text, "%s+", " "), "^ ", ""))
end

-- --- options ----------------------------------------------------------------

-- The fewest changes of a letter that make a of b.
local function distance(a, b)
    local before = {}
    for j = 0, #b do before[j] = j end
    for i = 1, #a do
        local now = {[0] = i}
        for j = 1, #b do
            local same = a:byte(i) == b:byte(j) and 0 or 1
            now[j] = smaller(before[j] + 1, now[j - 1] + 1,
                before[j - 1] + same)
        end
        before = now
    end
    return before[#b]
end

-- "; did you mean tiled?" when one of the names is near, else all of them.
function columns.suggest(name, names)
    local best, least = nil, 3
    for _, candidate in ipairs(names) do
        local d = type(name) == "string" and distance(name, candidate) or 3
        if d < least then best, least = candidate, d end
    end
    if best then return format("; did you mean %s?", best) end
    return ": there are " .. concat(names, " ")
end

-- The options table, each key of the kinds listed: "string|table".
function columns.options(what, options, kinds)
    if options == nil then return {} end
    if type(options) ~= "table" or getmetatable(options) then
        checks.fail(what, "the options are %s, expected a table",
            checks.brief(options))
    end
    local names = {}
    for name in pairs(kinds) do names[#names + 1] = name end
    sort(names)
    for key, value in next, options do
        local kind = kinds[key]
        if not kind then
            checks.fail(what, "unknown option %s%s", checks.brief(key),
                columns.suggest(key, names))
        elseif not (("|" .. kind .. "|"):find("|" .. type(value) .. "|", 1,
            true)) then
            checks.fail(what, "%s is %s, expected a %s", key,
                checks.brief(value), (gsub(kind, "|", " or a ")))
        end
    end
    return options
end

-- Raises unless the name is a figure of some row.
function columns.check_name(what, option, source, name)
    if type(name) == "function" then return end
    local names = columns.names(source)
    for _, known in ipairs(names) do
        if known == name then return end
    end
    checks.fail(what, "%s: there is no %s%s", option, checks.brief(name),
        columns.suggest(name, names))
end

function columns.check_axis(what, option, source, name)
    for _, axis in ipairs(source.axes) do
        if axis == name then return end
    end
    checks.fail(what, "%s: there is no axis %s%s", option, checks.brief(name),
        columns.suggest(name, source.axes))
end

return columns
