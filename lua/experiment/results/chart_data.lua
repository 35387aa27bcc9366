-- What the charts of an experiment are made of: rows gathered into series, the
-- cells of a map, the roofs above them; and how lua/charts is told of them.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local peaks = require "lumat.peaks"
local scales = require "lumat.scales"
local sources = require "lumat.sources"
local ipairs, next, type = ipairs, next, type
local concat, remove, sort = table.concat, table.remove, table.sort
local huge, larger, smaller = math.huge, math.max, math.min
local find, format = string.find, string.format
local data = {}

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
            s = {name = sources.label(cell[1], chart.by), points = {}, failed = {},
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

-- --- as lua/charts has it ---------------------------------------------------

local function axis_of(axis, more)
    local a = {title = axis.title, labels = axis.labels, what = axis.what,
        scale = axis.log and "log" or "linear", zero = true}
    for name, value in next, more or {} do a[name] = value end
    return a
end

-- Points with NaN where the line has a gap.
local function line_of(chart, s)
    local line = {kind = chart.joined and "line" or "points", name = s.name,
        marks = true, x = {}, y = {}, low = {}, high = {}, failed = s.failed}
    for k, run in ipairs(data.runs(s)) do
        if k > 1 then
            line.x[#line.x + 1], line.y[#line.y + 1] = 0 / 0, 0 / 0
        end
        for _, point in ipairs(run) do
            local i = #line.x + 1
            line.x[i], line.y[i] = point.x, point.y
            line.low[i], line.high[i] = point.low, point.high
        end
    end
    return line
end

-- A roof: the bytes bound the rate up to the ridge, the flops behind it.
local function roof_of(chart, roof, is_first)
    local name = roof.name .. " peak " .. scales.text(chart.y.what, roof.flops)
    return {kind = "line", limit = true, knots = {roof.flops / roof.bytes},
        y = function(x) return smaller(roof.flops, x * roof.bytes) end,
        labels = {{name, part = 2}, is_first and {"memory " ..
            scales.significant(roof.bytes / 1e9, 4) .. " GB/s", share = 0.42} or
            nil}}
end

-- What a roofline's axes must show: the ridge and both sides of the roofs.
local function room_of(chart)
    local x, y = {}, {}
    for _, roof in ipairs(chart.roofs or {}) do
        local ridge = roof.flops / roof.bytes
        x[#x + 1], x[#x + 2] = ridge / 8, ridge * 8
        y[#y + 1] = roof.flops * 1.5
    end
    return x, y
end

local function image_of(chart)
    local rows, cols = #chart.y.labels, #chart.x.labels
    local s = {kind = "image", rows = rows, cols = cols, values = {},
        texts = {}, cell_notes = {}, low = chart.low, high = chart.high,
        log = chart.value.log, what = chart.value.what}
    for i = 1, rows do
        for j = 1, cols do
            local cell, k = chart.cells[i][j], (i - 1) * cols + j
            s.values[k] = cell and cell.value or 0 / 0
            s.texts[k] = cell and (cell.failed and cell.status or cell.text ..
                (cell.has_less and "*" or ""))
            s.cell_notes[k] = chart.y.title .. " " .. chart.y.labels[i] ..
                ", " .. chart.x.title .. " " .. chart.x.labels[j]
        end
    end
    return s
end

-- The chart as the drawers take it: see lua/charts/charts.lua.
function data.described(chart)
    local d = {title = chart.title, notes = data.notes(chart), series = {}}
    if (chart.left_out or 0) > 0 then
        d.notes[#d.notes + 1] = format("%d more series are not drawn",
            chart.left_out)
    end
    if chart.has_less then
        d.notes[#d.notes + 1] = "* some of its points have none"
    end
    if chart.kind == "heat" then
        d.x, d.y = axis_of(chart.x), axis_of(chart.y)
        d.series[1] = image_of(chart)
        return d
    end
    if chart.failed then d.notes[1] = {d.notes[1], failed = true} end
    local x, y = room_of(chart)
    d.x = axis_of(chart.x, {include = x,
        base = chart.kind == "roofline" and 10 or nil})
    d.y = axis_of(chart.y, {include = y})
    for i, roof in ipairs(chart.roofs or {}) do
        d.series[i] = roof_of(chart, roof, i == 1)
    end
    for _, s in ipairs(chart.series) do
        d.series[#d.series + 1] = line_of(chart, s)
    end
    return d
end

return data
