-- What charts are made of: axes, their ranges and ticks, rows gathered into
-- series, the cells of a map, the roofs above them.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local peaks = require "lumat.peaks"
local sources = require "lumat.sources"
local ipairs, next, type = ipairs, next, type
local concat, remove, sort = table.concat, table.remove, table.sort
local abs, ceil, floor, huge, larger, log, smaller = math.abs, math.ceil,
    math.floor, math.huge, math.max, math.log, math.min
local find, format, gsub = string.find, string.format, string.gsub
local data, scales = {}, {}

-- --- axes ------------------------------------------------------------------
-- The range they span, where their ticks stand and what these say. at(x) is a
-- place from 0 to 1.

-- --- ticks ------------------------------------------------------------------

-- The smallest of 1, 2, 5, 10, 20 … that is not below x > 0.
local function nice_above(x)
    local power = 10.0 ^ floor(log(x, 10) + 1e-9)
    for _, factor in ipairs{1, 2, 5, 10} do
        if factor * power >= x * (1 - 1e-9) then return factor * power end
    end
end

-- A number in few characters.
local function brief(x)
    if x == 0 then return "0" end
    if abs(x) >= 1e5 or abs(x) < 1e-3 then
        local text = gsub(format("%.3g", x), "e([+-])0*(%d)", function(s, d)
            return "e" .. (s == "-" and "-" or "") .. d
        end)
        return text
    end
    return format("%.6g", x)
end

local function time_text(x)
    local scale, unit = columns.time_unit(x)
    return format("%.4g %s", x / scale, unit)
end

-- --- kinds of axes ----------------------------------------------------------

-- Every value has its place, one as far from the next as any other.
function scales.categories(labels)
    local axis, n = {ticks = {}, kind = "categories"}, #labels
    function axis.at(i) return (i - 0.5) / n end
    for i, label in ipairs(labels) do
        axis.ticks[i] = {at = axis.at(i), text = label}
    end
    return axis
end

-- What the numbers along an axis are multiplied with, and the unit's name.
local function linear_unit(most, kind, unit_scale, unit)
    if kind == "time" then
        local scale, name = columns.time_unit(most)
        return 1 / scale, name
    elseif kind == "share" then
        return 100, "%"
    elseif kind == "rate" then
        return 1 / unit_scale, unit
    end
    return 1, nil
end

-- From low to high or a little farther, about `count` ticks. what: kind of the
-- figure, and for rates the scale and the name of the unit.
function scales.linear(low, high, count, what)
    local kind = what and what.kind
    if kind and kind ~= "number" and kind ~= "axis" or
        low > 0 and low < 0.4 * high then
        low = smaller(low, 0) -- figures are seen beside nothing
    end
    if high - low <= 1e-6 * larger(abs(low), abs(high)) then
        local about = larger(abs(low), 1e-300)
        low, high = low - 0.5 * about, high + 0.5 * about
    end
    local scale, unit = linear_unit(larger(abs(low), abs(high)), kind,
        what and what.scale, what and what.unit)
    low, high = low * scale, high * scale
    local step = nice_above((high - low) / count)
    local first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    local bottom, span = first * step, (last - first) * step
    local axis = {ticks = {}, unit = unit, kind = "linear"}
    function axis.at(x) return (x * scale - bottom) / span end
    local places = larger(0, ceil(-log(step, 10) - 1e-9))
    for i = first, last do
        local value = i * step
        axis.ticks[#axis.ticks + 1] = {at = (value - bottom) / span,
            text = (abs(value) >= 1e6 or places > 6) and brief(value) or
                format("%." .. places .. "f", value)}
    end
    return axis
end

local function is_power_of_two(x)
    local power = log(x, 2)
    return abs(power - floor(power + 0.5)) < 1e-9
end

-- Is every value one?
function scales.powers_of_two(values)
    for _, x in ipairs(values or {}) do
        if x <= 0 or not is_power_of_two(x) then return false end
    end
    return values ~= nil and #values > 1
end

local function log_text(x, what)
    if what and what.kind == "time" then return time_text(x) end
    if what and what.kind == "share" then return brief(100 * x) end
    if what and what.kind == "rate" then return brief(x / what.scale) end
    return brief(x)
end

-- Candidates for ticks from low to high: powers of the base, and between them
-- where these are few.
local function log_ticks(low, high, base, count)
    local first, last = ceil(log(low, base) - 1e-9),
        floor(log(high, base) + 1e-9)
    local list, every = {}, larger(1, ceil((last - first + 1) / count))
    local factors = base == 10 and last - first < 2 and {1, 2, 5} or {1}
    for power = first - 1, last do
        if (power - first) % every == 0 or #factors > 1 then
            for _, factor in ipairs(factors) do
                local x = factor * (base + 0.0) ^ power
                if x >= low * (1 - 1e-9) and x <= high * (1 + 1e-9) then
                    list[#list + 1] = x
                end
            end
        end
    end
    return list
end

-- Multiples of a step, where the range has less than two powers.
local function even_ticks(low, high, count)
    local step, list = nice_above((high - low) / count), {}
    for i = ceil(low / step), floor(high / step) do list[#list + 1] = i * step end
    return #list > 1 and list or {low, high}
end

-- low > 0; values: those that points have, whose ticks are powers of two where
-- all of them are.
function scales.log(low, high, count, what, values)
    local by_two = scales.powers_of_two(values)
    if high < low * 1.5 then low, high = low / 1.5, high * 1.5 end
    if what and not by_two then -- some room at the ends
        local room = (high / low) ^ 0.04
        low, high = low / room, high * room
    end
    local bottom, span = log(low), log(high) - log(low)
    local axis = {ticks = {}, kind = "log", unit = what and
        (what.kind == "share" and "%" or what.kind == "rate" and what.unit)
        or nil}
    function axis.at(x) return x > 0 and (log(x) - bottom) / span or -huge end
    local list = log_ticks(low, high, by_two and 2 or 10, count)
    if #list < 2 then list = even_ticks(low, high, count) end
    for i, x in ipairs(list) do
        axis.ticks[i] = {at = axis.at(x), text = log_text(x, what)}
    end
    return axis
end

-- Ticks that leave room for one another: width(text) and length in the same
-- unit, and the least room between two. The first ones stay.
function scales.thinned(axis, length, width, room)
    local ticks, every = axis.ticks, 1
    local function fits()
        local free = -huge
        for i = 1, #ticks, every do
            local half = width(ticks[i].text) / 2
            local at = ticks[i].at * length
            if at - half < free then return false end
            free = at + half + room
        end
        return true
    end
    while every < #ticks and not fits() do every = every + 1 end
    local kept = {}
    for i = 1, #ticks, every do kept[#kept + 1] = ticks[i] end
    return kept
end

-- --- data ------------------------------------------------------------------

local MOST_SERIES = 8 -- that eyes and colours tell apart
local GEOMETRIC = 30 -- spread from which a logarithmic axis says more

-- --- figures of an axis -----------------------------------------------------

-- How numbers of the figure are written along an axis.
local function what_of(source, rows, name)
    for _, axis in ipairs(source.axes) do
        if axis == name then return {kind = "axis"} end
    end
    if type(name) == "function" then return {kind = "number"} end
    local kind = columns.kind(name)
    if kind ~= "rate" then return {kind = kind} end
    for _, row in ipairs(rows) do
        if columns.is_good(row) and columns.get(row, name) then
            local scale, unit = columns.rate_unit(row, name)
            return {kind = kind, scale = scale, unit = unit}
        end
    end
    return {kind = kind, scale = 1e9, unit = "GFLOP/s"}
end

function data.spread(values)
    local low, high = huge, -huge
    for _, x in ipairs(values) do
        low, high = smaller(low, x), larger(high, x)
    end
    return low, high
end

-- Does log= ask for a logarithm along the side? Where it says nothing, values
-- that span much have one.
local function is_log(option, side, values)
    local low, high = data.spread(values)
    if low <= 0 or #values == 0 then return false end
    if option == nil then
        return high / low >= GEOMETRIC or
            side == "x" and high > low and scales.powers_of_two(values)
    end
    if type(option) == "boolean" then return option end
    return find(option, side, 1, true) ~= nil
end

-- Axis values as numbers: themselves, or the places of categories.
function data.places_of(source, rows, name)
    local values, place, numeric = sources.values(source, rows, name), {}, true
    for _, value in ipairs(values) do
        numeric = numeric and type(value) == "number"
    end
    if numeric then return nil, values end
    local labels = {}
    for i, value in ipairs(values) do
        place[value], labels[i] = i, sources.plain(value)
    end
    return place, values, labels
end

-- --- lines ------------------------------------------------------------------

local function label_of(row, by)
    local parts = {}
    for i, name in ipairs(by) do
        parts[i] = row.p[name] == nil and "-" or sources.plain(row.p[name])
    end
    return concat(parts, " ")
end

local function is_number(x)
    return type(x) == "number" and x == x and x > -huge and x < huge
end

-- The rows of a place that have no part in its figure, and how many of them
-- failed, were left out by their measure, or lack it.
local function rest_of(chart, rows, has_figure)
    local rest = {}
    for _, row in ipairs(rows) do
        local is_good = columns.is_good(row)
        if not (is_good and has_figure) then
            local kind = is_good and "lacking" or row.status == "skipped" and
                "skipped" or "failed"
            chart[kind] = (chart[kind] or 0) + 1
            rest[#rest + 1] = row
        end
    end
    return rest
end

-- Adds the rows of one place of a line: a point, or a gap in it.
local function add_place(chart, s, x, rows, o)
    local value, low, high = columns.settled(rows, o.y, o.stat)
    local has_place = is_number(x) and is_number(value)
    if has_place then
        s.points[#s.points + 1] = {x = x, y = value, low = low or nil,
            high = high or nil}
    else
        s.gaps[#s.gaps + 1] = is_number(x) and x or nil
    end
    for _, row in ipairs(rest_of(chart, rows, has_place)) do
        if is_number(x) and not columns.is_good(row) and
            row.status ~= "skipped" then
            s.failed[#s.failed + 1] = x
        end
    end
end

-- Series by the values of `by`; x_of(row) may be nil. Where x is an axis the
-- points of one x and series are one; a figure may be the same for several.
local function gather(chart, source, rows, x_of, o)
    local series, list, places = {}, {}, {}
    rows = sources.ordered(source, rows)
    local cells = sources.gathered("plot", source, rows, function(row)
        if not o.is_axis or row.p[o.x] == nil then return row end
        return sources.part(row.p, chart.by) .. "\1" ..
            sources.part(row.p, {o.x})
    end, {stat = o.stat, place = "at one " .. columns.title(o.x) .. " of a line",
        names = "by or where", option = "by", named = chart.by})
    for _, cell in next, cells do places[#places + 1] = cell end
    local order = {}
    for i, row in ipairs(rows) do order[row] = i end
    sort(places, function(a, b) return order[a[1]] < order[b[1]] end)
    for _, cell in ipairs(places) do
        local key = sources.part(cell[1].p, chart.by)
        local s = series[key]
        if not s then
            s = {name = label_of(cell[1], chart.by), points = {}, failed = {},
                gaps = {}}
            series[key], list[#list + 1] = s, s
        end
        add_place(chart, s, x_of(cell[1]), cell, o)
    end
    for _, s in ipairs(list) do
        sort(s.points, function(a, b)
            if a.x ~= b.x then return a.x < b.x end
            return a.y < b.y
        end)
        sort(s.gaps)
    end
    chart.series = list
end

-- The points of a series that a line leads through, in lists: it ends where a
-- point between has no figure.
function data.runs(s)
    local runs, g = {}, 1
    for i, point in ipairs(s.points) do
        local ends = i == 1
        while s.gaps[g] and s.gaps[g] <= point.x do
            ends, g = ends or s.gaps[g] < point.x, g + 1
        end
        if ends then runs[#runs + 1] = {} end
        local run = runs[#runs]
        run[#run + 1] = point
    end
    return runs
end

-- Do x and the axes in `by` tell all points apart?
local function tells_apart(source, rows, x, by)
    local seen = {}
    for _, row in ipairs(rows) do
        local key = sources.part(row.p, by) .. "\1" .. sources.part(row.p, {x})
        if seen[key] and sources.signature(seen[key].p) ~=
            sources.signature(row.p) then
            return false
        end
        seen[key] = row
    end
    return true
end

-- The axes but x that have several values; those that are given up first come
-- first: numbers before names, many values before few.
local function varying_axes(source, rows, x)
    local list = {}
    for i, name in ipairs(source.axes) do
        local place, values = data.places_of(source, rows, name)
        if name ~= x and #values > 1 then
            list[#list + 1] = {name = name, count = #values,
                numeric = not place, order = i}
        end
    end
    sort(list, function(a, b)
        if a.numeric ~= b.numeric then return a.numeric end
        if a.count ~= b.count then return a.count > b.count end
        return a.order < b.order
    end)
    return list
end

-- Their names in the order of the axes, but for one of them.
local function names_of(list, gone)
    local kept, names = {}, {}
    for _, axis in ipairs(list) do
        if axis ~= gone then kept[#kept + 1] = axis end
    end
    sort(kept, function(a, b) return a.order < b.order end)
    for i, axis in ipairs(kept) do names[i] = axis.name end
    return names
end

-- The axes that tell the points of one x apart, where `by` is not given: all
-- but numbers that go along with the others, as those of a zip do. Where x is
-- no axis, or a stat merges points, as many as make few series.
local function other_axes(source, rows, o)
    local list, product, i = varying_axes(source, rows, o.x), 1, 1
    while o.is_axis and list[i] do
        if list[i].numeric and tells_apart(source, rows, o.x,
            names_of(list, list[i])) then
            remove(list, i)
        else
            i = i + 1
        end
    end
    for _, axis in ipairs(list) do product = product * axis.count end
    while (o.stat or not o.is_axis) and #list > 1 and product > MOST_SERIES do
        product = product // remove(list, 1).count
    end
    return names_of(list)
end

local function keep_few(chart)
    local kept, without = {}, 0
    for _, s in ipairs(chart.series) do
        if #s.points + #s.failed > 0 then
            if #kept < MOST_SERIES then kept[#kept + 1] = s
            else without = without + 1 end
        end
    end
    chart.series, chart.left_out = kept, without
    return chart
end

-- What the shares of a chart are of, if it has any.
function data.shares(rows, o)
    if o.y ~= "share" and o.value ~= "share" then return nil end
    local good = {}
    for _, row in ipairs(rows) do
        if columns.is_good(row) then good[#good + 1] = row end
    end
    return peaks.said(good)
end

-- What is to be said of points that are not in the chart, and of those that
-- are: a list of texts.
function data.notes(chart)
    local notes, figure = {}, (chart.value or chart.y).title
    for _, kind in ipairs{"failed", "skipped", "lacking"} do
        local count = chart[kind]
        if count then
            local one = count == 1
            notes[#notes + 1] = checks.plural(count, "point") .. " " ..
                (kind == "failed" and "failed" or
                    kind == "skipped" and (one and "was" or "were") ..
                        " skipped" or
                    (one and "has" or "have") .. " no " .. figure)
        end
    end
    notes[#notes + 1] = chart.without
    notes[#notes + 1] = chart.shares
    return notes
end

function data.all(chart, key)
    local list = {}
    for _, s in ipairs(chart.series) do
        for _, point in ipairs(s.points) do list[#list + 1] = point[key] end
    end
    return list
end

local function by_of(source, rows, o)
    if type(o.by) == "string" then return {o.by} end
    return o.by or other_axes(source, rows, o)
end

local function title_of(y, x, by, stat)
    local text = columns.stat_title(y, stat) .. " by " .. columns.title(x)
    if #by > 0 then text = text .. " and " .. concat(by, ", ") end
    return text
end

-- Is a logarithm asked for where some values have none?
local function is_asked(option, side)
    return option == true or type(option) == "string" and
        find(option, side, 1, true) ~= nil
end

-- Leaves out the points that have no place on a logarithmic axis somebody asked
-- for, if others are left; says so.
local function leave_out(chart, option)
    local notes = {}
    for _, side in ipairs{"x", "y"} do
        local low, high = data.spread(data.all(chart, side))
        if is_asked(option, side) and low <= 0 and high > 0 and
            not (side == "x" and chart.labels) then
            local count = 0
            for _, s in ipairs(chart.series) do
                local kept = {}
                for _, point in ipairs(s.points) do
                    if point[side] > 0 then
                        kept[#kept + 1] = point
                    else
                        count = count + 1
                        s.gaps[#s.gaps + 1] = point.x
                    end
                end
                s.points = kept
                sort(s.gaps)
            end
            notes[#notes + 1] = format("%d point%s left out: %s is 0 or " ..
                "less, which a logarithm has no place for", count,
                count == 1 and "" or "s", side)
        elseif is_asked(option, side) and high <= 0 then
            notes[#notes + 1] = format("%s has no logarithm: nothing is " ..
                "above 0", side)
        end
    end
    return #notes > 0 and concat(notes, "; ") or nil
end

function data.lines(source, rows, o)
    local place, _, labels = data.places_of(source, rows, o.x)
    local is_axis = what_of(source, rows, o.x).kind == "axis"
    if not is_axis then place, labels = nil, nil end
    o.is_axis = is_axis
    local by = by_of(source, rows, o)
    local chart = {kind = "lines", title = title_of(o.y, o.x, by, o.stat),
        by = by, labels = labels}
    gather(chart, source, rows, function(row)
        if not is_axis then return (columns.get(row, o.x)) end
        local value = row.p[o.x]
        return place and place[value] or not place and value
    end, o)
    chart.without = leave_out(chart, o.log)
    keep_few(chart)
    chart.joined = not labels
    chart.x = {title = columns.title(o.x), labels = labels,
        what = what_of(source, rows, o.x),
        log = not labels and is_log(o.log, "x", data.all(chart, "x"))}
    chart.y = {title = columns.title(o.y), what = what_of(source, rows, o.y),
        log = is_log(o.log, "y", data.all(chart, "y"))}
    return chart
end

-- --- heat maps --------------------------------------------------------------

local function texts_of(values)
    local list = {}
    for i, value in ipairs(values) do list[i] = sources.plain(value) end
    return list
end

-- The cell of some rows: value and text, or what became of them.
local function cell_of(chart, rows, o)
    local value, _, _, first = columns.settled(rows, o.value, o.stat)
    local rest = rest_of(chart, rows, is_number(value))
    if is_number(value) then
        chart.has_less = chart.has_less or #rest > 0
        return {value = value, text = columns.text(first, o.value, value, true),
            has_less = #rest > 0}
    end
    if columns.is_good(rest[1]) then return nil end
    return {failed = true, status = rest[1].status}
end

function data.heat(source, rows, o)
    local across = sources.values(source, rows, o.x)
    local down = sources.values(source, rows, o.y)
    local low, high, cells = huge, -huge, {}
    local lists = sources.gathered("plot", source, rows, function(row)
        return row.p[o.y] ~= nil and row.p[o.x] ~= nil and
            sources.part(row.p, {o.y}) .. "\1" .. sources.part(row.p, {o.x}) or
            nil
    end, {stat = o.stat, place = "in one cell", names = "where"})
    local chart = {kind = "heat", cells = cells, series = {},
        title = title_of(o.value, o.x, {o.y}, o.stat),
        x = {title = o.x, labels = texts_of(across)},
        y = {title = o.y, labels = texts_of(down)}}
    for i, y in ipairs(down) do
        cells[i] = {}
        for j, x in ipairs(across) do
            local list = lists[sources.part({[o.y] = y}, {o.y}) .. "\1" ..
                sources.part({[o.x] = x}, {o.x})]
            local cell = list and cell_of(chart, list, o)
            cells[i][j] = cell
            if cell and cell.value then
                low, high = smaller(low, cell.value), larger(high, cell.value)
            end
        end
    end
    chart.low, chart.high = low, high
    chart.value = {title = columns.title(o.value),
        what = what_of(source, rows, o.value),
        log = low > 0 and is_log(o.log, "v", {low, high})}
    return chart
end

-- --- rooflines --------------------------------------------------------------

-- The peaks that rows were measured beside, one of each name: the best.
local function roofs_of(rows)
    local seen, roofs = {}, {}
    for _, row in ipairs(rows) do
        local peak = row.peak
        if columns.is_good(row) and peak and peak.flops and peak.bytes then
            local name = sources.plain(peak.name ~= "memory" and peak.name or
                row.p.dtype or "f32")
            local roof = seen[name]
            if not roof then
                roof = {name = name, flops = 0, bytes = 0}
                seen[name], roofs[#roofs + 1] = roof, roof
            end
            roof.flops = larger(roof.flops, peak.flops)
            roof.bytes = larger(roof.bytes, peak.bytes)
        end
    end
    return roofs
end

-- Flops a second over flops a byte, under what the machine was measured to
-- reach.
function data.roofline(source, rows, o)
    local by = by_of(source, rows, {by = o.by})
    if not o.by then -- numbers along the line, names apart
        local names = {}
        for _, name in ipairs(by) do
            if data.places_of(source, rows, name) then names[#names + 1] = name end
        end
        by = names
    end
    local chart = {kind = "roofline", roofs = roofs_of(rows), by = by,
        title = "roofline"}
    gather(chart, source, rows, function(row)
        return row.flops and row.bytes and row.flops > 0 and
            row.bytes > 0 and row.flops / row.bytes or nil
    end, {y = "flops_rate", x = "flops a byte", stat = o.stat})
    if #chart.roofs == 0 or #data.all(chart, "x") == 0 then
        checks.fail("plot", "a roofline needs points with flops= and bytes=")
    end
    local what = {kind = "rate", scale = 1e9, unit = "GFLOP/s"}
    if chart.roofs[1].flops >= 1e12 then
        what.scale, what.unit = 1e12, "TFLOP/s"
    end
    chart.x = {title = "flops a byte", log = true, what = {kind = "number"}}
    chart.y = {title = "rate", log = true, what = what}
    return keep_few(chart)
end

data.scales = scales

return data
