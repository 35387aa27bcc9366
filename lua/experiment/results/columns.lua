-- The figures that a row has by name, and how each is written.
local checks = require "lumat.checks"
local peaks = require "lumat.peaks"
local scales = require "lumat.scales"
local sources = require "lumat.sources"
local statistics = require "lumat.statistics"
local columns = {}
local significant, time_unit = scales.significant, scales.time_unit
local ipairs, next, type = ipairs, next, type
local abs, format, gsub, huge = math.abs, string.format, string.gsub, math.huge
local larger, smaller, math_type = math.max, math.min, math.type

local WIDE = 0.05 -- of the median: an interval that is marked

-- --- figures ----------------------------------------------------------------

local function is_good(row)
    return row.status == nil or row.status == "ok"
end
columns.is_good = is_good

-- Has any of the rows figures at all?
local function any_good(rows)
    for _, row in ipairs(rows) do
        if is_good(row) then return true end
    end
    return false
end
columns.any_good = any_good

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

-- The least rate is that of the longest sample.
local opposite = {min = "max", max = "min"}

local function per_second(row, work, stat)
    local seconds, low, high = seconds_of(row, opposite[stat] or stat)
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
        local peak = peaks.value(row)
        if not peak then return nil end
        return scaled(1 / peak, per_second(row, work_of(row), stat))
    end},
    check = {kind = "error", better = "low", of = function(row)
        return row.check
    end},
    width = {kind = "share", better = "low", of = function(row)
        return row.median and row.median > 0 and row.low and row.high and
            (row.high - row.low) / row.median or nil
    end},
    held = {kind = "time", better = "low", of = function(row)
        return row.held
    end},
    held_rate = {kind = "rate", better = "high", of = function(row)
        local work = work_of(row)
        return work and row.held and row.held > 0 and work / row.held or nil
    end},
    samples = {kind = "number", of = function(row)
        return row.samples and #row.samples
    end},
}
figures.time, figures.error = figures.median, figures.check
for _, name in ipairs{"low", "high", "seconds"} do
    figures[name] = {kind = "time", of = function(row) return row[name] end}
end

-- Is it the name of a figure that every row may have?
function columns.is_figure(name) return figures[name] ~= nil end

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
    held_rate = "held rate", gflops = "GFLOP/s", tflops = "TFLOP/s",
    gbs = "GB/s", share = "share of peak", width = "interval", seconds = "seconds spent"}

function columns.title(name)
    return type(name) == "function" and "value" or titles[name] or name
end

-- The same where a stat was asked for: "max time".
function columns.stat_title(name, stat)
    return (stat and stat .. " " or "") .. columns.title(name)
end

-- Does a stat of a point's samples make another figure of it?
function columns.is_sampled(name)
    local figure = figures[name]
    return figure and (name == "median" or name == "time" or
        figure.better == "high" and name ~= "held_rate") or false
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

-- NaN where one of them is: what is sorted or compared with it says nothing.
local function stat_of(values, stat)
    for _, x in ipairs(values) do
        if x ~= x then return x end
    end
    return stats[stat](values)
end

-- The figure of the rows of one place: value, low, high, the first row that has
-- it; nil where none has. Numbers of several are settled by the stat.
function columns.settled(rows, name, stat)
    local values, first, low, high = {}, nil, nil, nil
    local numeric = true
    for _, row in ipairs(rows) do
        local value, l, h
        if is_good(row) then value, l, h = columns.get(row, name, stat) end
        if value ~= nil then
            values[#values + 1], first = value, first or row
            low, high = l, h
            numeric = numeric and type(value) == "number"
        end
    end
    if #values < 2 then return values[1], low, high, first end
    if numeric then
        return stat_of(values, stat), stat_of(values, "min"),
            stat_of(values, "max"), first
    end
    for _, value in ipairs(values) do
        if value ~= values[1] then return "several", nil, nil, first end
    end
    return values[1], nil, nil, first
end

-- Has any row the figure?
function columns.has(rows, name)
    for _, row in ipairs(rows) do
        if is_good(row) and columns.get(row, name) ~= nil then return true end
    end
    return false
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
        "tflops", "gbs", "held", "held_rate", "share", "check", "error",
        "width", "samples", "seconds", "status"} do
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
        return sources.plain(value)
    elseif value ~= value or value == huge or value == -huge then
        return checks.figure("%g", value)
    elseif kind == "time" then
        local scale, unit = time_unit(value)
        return significant(value / scale, 4) .. " " .. unit
    elseif kind == "rate" then
        local scale, unit = columns.rate_unit(row, name)
        return significant(value / scale, 4) .. (bare and "" or " " .. unit)
    elseif kind == "share" then
        return format(value < 0.0995 and "%.1f %%" or "%.0f %%", 100 * value)
    elseif kind == "error" then
        return value == 0 and "0" or format("%.1e", value)
    end
    return math_type(value) == "integer" and format("%d", value) or
        trimmed(value, 5)
end

local timed = {time = true, rate = true, share = true, number = false}

-- Is its interval too wide for the figure (the time) to be taken at its word?
function columns.is_wide(row, name)
    if name and not timed[columns.kind(name)] then return false end
    return row.median and row.low and row.high and row.median > 0 and
        (row.high - row.low) / row.median > WIDE
end

-- Why a point has no figure, in a line.
function columns.reason(row)
    local text = row.message or ""
    return (gsub(gsub(text, "%s+", " "), "^ ", ""))
end

-- "none of 6 points worked; the first, n=1: measure: no": of rows none of which
-- has figures.
function columns.none_worked(source, rows)
    local first = sources.ordered(source, rows)[1]
    return format("%s, %s, %s: %s", #rows == 1 and "the only point" or
        format("none of %d points worked; the first", #rows),
        sources.describe(source.axes, first.p), first.status,
        columns.reason(first))
end

-- --- checking ---------------------------------------------------------------

-- What a figure that no row has takes, where more is to be said than that.
local function needs(name)
    local kind = columns.kind(name)
    if kind == "rate" or kind == "share" and name ~= "width" then
        return "flops= or bytes= of the experiment"
    end
    return ({gflops = "flops= of the experiment", tflops = "flops= of the " ..
        "experiment", gbs = "bytes= of the experiment"})[name] or
        kind == "error" and "check= of the experiment" or nil
end

-- ": it takes flops= …" for a figure that no row has.
function columns.lacking(rows, name)
    local why = type(name) == "string" and any_good(rows) and needs(name)
    for _, row in ipairs(rows) do
        if not why or is_good(row) and columns.get(row, name) ~= nil then
            return nil
        end
    end
    return format("%s takes %s", columns.title(name), why)
end

-- Raises unless the name is a figure of some row. Where no point worked, nobody
-- knows which figures measure and check give.
function columns.check_name(what, option, source, name)
    if type(name) == "function" or not any_good(source.rows) then return end
    local names = columns.names(source)
    for _, known in ipairs(names) do
        if known == name then return end
    end
    checks.fail(what, "%s: there is no %s%s", option, checks.brief(name),
        sources.suggest(name, names))
end

return columns
