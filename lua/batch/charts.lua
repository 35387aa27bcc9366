-- Charts of an experiment: what is drawn, apart from how. A chart is
--   kind      "lines", "heat" or "roofline"
--   title, x, y   axes {title, name, log, labels of categories, what}
--   series    {name, points {x, y, low, high}, failed {x …}} each
--   joined    whether lines lead from point to point
--   cells     of a heat map: [row][column] = {value, text} or {failed}
--   roofs     of a roofline: {name, flops, bytes}
--   left_out  how many series are not drawn
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local sources = require "lumat.sources"
local scales = require "lumat.scales"
local charts = {}
local ipairs, next, setmetatable, type = ipairs, next, setmetatable, type
local concat, sort = table.concat, table.sort
local find, format, match = string.find, string.format, string.match
local huge, larger, smaller = math.huge, math.max, math.min

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

local function spread(values)
    local low, high = huge, -huge
    for _, x in ipairs(values) do
        low, high = smaller(low, x), larger(high, x)
    end
    return low, high
end

-- Does log= ask for a logarithm along the side? Where it says nothing, values
-- that span much have one.
local function is_log(option, side, values)
    local low, high = spread(values)
    if low <= 0 or #values == 0 then return false end
    if option == nil then
        return high / low >= GEOMETRIC or
            side == "x" and high > low and scales.powers_of_two(values)
    end
    if type(option) == "boolean" then return option end
    return find(option, side, 1, true) ~= nil
end

-- Axis values as numbers: themselves, or the places of categories.
local function places_of(source, rows, name)
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

-- Points of one series at one x become their median.
local function merge_points(points)
    local merged, i = {}, 1
    sort(points, function(a, b) return a.x < b.x end)
    while i <= #points do
        local j = i
        while points[j + 1] and points[j + 1].x == points[i].x do j = j + 1 end
        if i == j then
            merged[#merged + 1] = points[i]
        else
            local values = {}
            for k = i, j do values[#values + 1] = points[k].y end
            local low, high = spread(values)
            merged[#merged + 1] = {x = points[i].x, low = low, high = high,
                y = columns.stats.median(values)}
        end
        i = j + 1
    end
    return merged
end

local function is_number(x)
    return type(x) == "number" and x == x and x > -huge and x < huge
end

-- Series by the values of `by`; x_of(row) may be nil.
local function gather(source, rows, by, x_of, y)
    local series, list = {}, {}
    for _, row in ipairs(sources.ordered(source, rows)) do
        local name, x = label_of(row, by), x_of(row)
        local s = series[name]
        if not s then
            s = {name = name, points = {}, failed = {}}
            series[name], list[#list + 1] = s, s
        end
        local value, low, high
        if columns.is_good(row) then value, low, high = columns.get(row, y) end
        if is_number(x) and is_number(value) then
            s.points[#s.points + 1] = {x = x, y = value, low = low or nil,
                high = high or nil}
        elseif is_number(x) and not columns.is_good(row) then
            s.failed[#s.failed + 1] = x
        end
    end
    for _, s in ipairs(list) do s.points = merge_points(s.points) end
    return list
end

-- The axes that tell the points of one x apart, where `by` is not given. Where
-- these make too many series, those of most values go: first of numbers.
local function other_axes(source, rows, taken)
    local list, product = {}, 1
    for _, name in ipairs(source.axes) do
        local place, values = places_of(source, rows, name)
        if not taken[name] and #values > 1 then
            list[#list + 1] = {name = name, count = #values,
                numeric = not place, order = #list}
            product = product * #values
        end
    end
    sort(list, function(a, b)
        if a.numeric ~= b.numeric then return b.numeric end
        if a.count ~= b.count then return a.count < b.count end
        return a.order < b.order
    end)
    while #list > 1 and product > MOST_SERIES do
        product = product // list[#list].count
        list[#list] = nil
    end
    local by = {}
    sort(list, function(a, b) return a.order < b.order end)
    for i, axis in ipairs(list) do by[i] = axis.name end
    return by
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

local function all(chart, key)
    local list = {}
    for _, s in ipairs(chart.series) do
        for _, point in ipairs(s.points) do list[#list + 1] = point[key] end
    end
    return list
end

local function by_of(source, rows, o, taken)
    if type(o.by) == "string" then return {o.by} end
    return o.by or other_axes(source, rows, taken)
end

local function title_of(source, y, x, by)
    local text = columns.title(y) .. " by " .. columns.title(x)
    if #by > 0 then text = text .. " and " .. concat(by, ", ") end
    return text
end

function charts.lines(source, rows, o)
    local place, _, labels = places_of(source, rows, o.x)
    local is_axis = what_of(source, rows, o.x).kind == "axis"
    if not is_axis then place, labels = nil, nil end
    local by = by_of(source, rows, o, {[o.x] = true})
    local chart = {kind = "lines", title = title_of(source, o.y, o.x, by),
        by = by, series = gather(source, rows, by, function(row)
            if not is_axis then return (columns.get(row, o.x)) end
            local value = row.p[o.x]
            return place and place[value] or not place and value
        end, o.y)}
    keep_few(chart)
    chart.joined = not labels
    chart.x = {title = columns.title(o.x), labels = labels,
        what = what_of(source, rows, o.x),
        log = not labels and is_log(o.log, "x", all(chart, "x"))}
    chart.y = {title = columns.title(o.y), what = what_of(source, rows, o.y),
        log = is_log(o.log, "y", all(chart, "y"))}
    return chart
end

-- --- heat maps --------------------------------------------------------------

local function texts_of(values)
    local list = {}
    for i, value in ipairs(values) do list[i] = sources.plain(value) end
    return list
end

local function places(values)
    local place = {}
    for i, value in ipairs(values) do place[value] = i end
    return place
end

function charts.heat(source, rows, o)
    local across = sources.values(source, rows, o.x)
    local down = sources.values(source, rows, o.y)
    local col, line, cells = places(across), places(down), {}
    local low, high = huge, -huge
    for i = 1, #down do cells[i] = {} end
    local what = what_of(source, rows, o.value)
    for _, row in ipairs(rows) do
        local i, j = line[row.p[o.y]], col[row.p[o.x]]
        local value = columns.is_good(row) and columns.get(row, o.value)
        if i and j and is_number(value) then
            local cell = cells[i][j] or {values = {}}
            cell.values[#cell.values + 1] = value
            cell.value = columns.stats.median(cell.values)
            cell.text = columns.text(row, o.value, cell.value, true)
            cells[i][j] = cell
        elseif i and j and not columns.is_good(row) then
            cells[i][j] = cells[i][j] or {failed = true}
        end
    end
    for _, list in ipairs(cells) do
        for j = 1, #across do
            local value = list[j] and list[j].value
            if value then low, high = smaller(low, value), larger(high, value) end
        end
    end
    return {kind = "heat", cells = cells, low = low, high = high,
        title = title_of(source, o.value, o.x, {o.y}), series = {},
        x = {title = o.x, labels = texts_of(across)},
        y = {title = o.y, labels = texts_of(down)},
        value = {title = columns.title(o.value), what = what,
            log = low > 0 and is_log(o.log, "v", {low, high})}}
end

-- --- rooflines --------------------------------------------------------------

-- The peaks that rows were measured beside, one of each name and size.
local function roofs_of(rows)
    local seen, roofs = {}, {}
    for _, row in ipairs(rows) do
        local peak = row.peak
        if columns.is_good(row) and peak and peak.flops and peak.bytes then
            local name = peak.name ~= "memory" and peak.name or
                row.p.dtype or "f32"
            local key = format("%s %.3g", name, peak.flops)
            if not seen[key] and (seen[name] or 0) < 1 then
                seen[key], seen[name] = true, 1
                roofs[#roofs + 1] = {name = sources.plain(name),
                    flops = peak.flops, bytes = peak.bytes}
            end
        end
    end
    return roofs
end

-- Flops a second over flops a byte, under what the machine was measured to
-- reach.
function charts.roofline(source, rows, o)
    local by = by_of(source, rows, o, {})
    if not o.by then -- numbers along the line, names apart
        local names = {}
        for _, name in ipairs(by) do
            if places_of(source, rows, name) then names[#names + 1] = name end
        end
        by = names
    end
    local chart = {kind = "roofline", roofs = roofs_of(rows), by = by,
        title = "roofline",
        series = gather(source, rows, by, function(row)
            return row.flops and row.bytes and row.flops > 0 and
                row.bytes > 0 and row.flops / row.bytes or nil
        end, "flops_rate")}
    if #chart.roofs == 0 or #all(chart, "x") == 0 then
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

-- --- ranges -----------------------------------------------------------------

local function line_range(chart, side)
    local low, high = spread(all(chart, side))
    if side == "y" then
        for _, s in ipairs(chart.series) do
            for _, point in ipairs(s.points) do
                low = smaller(low, point.low or low)
                high = larger(high, point.high or high)
            end
        end
    end
    if chart.y.log and side == "y" then low = larger(low, 1e-300) end
    return low, high
end

-- Room for the ridge and both sides of the roofs.
local function roofline_range(chart, side)
    local low, high = line_range(chart, side)
    for _, roof in ipairs(chart.roofs) do
        if side == "x" then
            local ridge = roof.flops / roof.bytes
            low, high = smaller(low, ridge / 8), larger(high, ridge * 8)
        else
            high = larger(high, roof.flops * 1.5)
        end
    end
    return low, high
end

-- The axis of a side, with about `count` ticks.
function charts.scale(chart, side, count)
    local axis = chart[side]
    if axis.labels then return scales.categories(axis.labels) end
    local range = chart.kind == "roofline" and roofline_range or line_range
    local low, high = range(chart, side)
    if low > high then low, high = 0, 1 end
    if axis.log then
        return scales.log(low, high, count, axis.what,
            side == "x" and chart.kind == "lines" and all(chart, "x") or nil)
    end
    return scales.linear(low, high, count, axis.what)
end

-- --- plot -------------------------------------------------------------------

local kinds = {x = "string", y = "string|function", by = "string|table",
    value = "string|function", log = "string|boolean", file = "string",
    kind = "string", where = "table|function", width = "number",
    height = "number", title = "string"}

-- The axis with numbers that has most values, else the one that has most.
local function natural_x(source, rows)
    local best, most, best_numeric
    for _, name in ipairs(source.axes) do
        local place, values = places_of(source, rows, name)
        local numeric = not place
        if not best or numeric and not best_numeric or
            numeric == best_numeric and #values > most then
            best, most, best_numeric = name, #values, numeric
        end
    end
    return best
end

local function has(rows, name)
    for _, row in ipairs(rows) do
        if columns.is_good(row) and columns.get(row, name) then return true end
    end
    return false
end

local function checked(source, rows, options)
    local o = {}
    for name, value in next, options do o[name] = value end
    o.kind = o.kind or (o.value and "heat") or "lines"
    if not (o.kind == "lines" or o.kind == "heat" or o.kind == "roofline") then
        checks.fail("plot", "there is no kind %s%s", checks.brief(o.kind),
            sources.suggest(o.kind, {"lines", "heat", "roofline"}))
    end
    o.x = o.x or natural_x(source, rows)
    for _, name in ipairs(type(o.by) == "table" and o.by or {o.by}) do
        sources.check_axis("plot", "by", source, name)
    end
    if o.kind == "heat" then
        if not (o.y and o.value) then
            checks.fail("plot", "a heat map needs x and y, both axes, and " ..
                "value, a figure")
        end
        sources.check_axis("plot", "x", source, o.x)
        sources.check_axis("plot", "y", source, o.y)
        columns.check_name("plot", "value", source, o.value)
    else
        o.y = o.y or has(rows, "rate") and "rate" or "median"
        columns.check_name("plot", "x", source, o.x)
        columns.check_name("plot", "y", source, o.y)
        o.y = columns.one_rate(rows, o.y)
    end
    o.value = o.value and columns.one_rate(rows, o.value)
    return o
end

-- The chart that options ask for; raises when there is nothing to draw.
function charts.build(e, options)
    options = sources.options("plot", options, kinds)
    local source = sources.source("plot", e)
    local rows = sources.filtered("plot", source, options.where)
    if #rows == 0 then checks.fail("plot", "there are no points to draw") end
    local o = checked(source, rows, options)
    local chart = charts[o.kind](source, rows, o)
    if o.kind ~= "heat" and #all(chart, "y") == 0 or chart.low == huge then
        checks.fail("plot", "no point has %s and %s to draw",
            columns.title(o.x), columns.title(o.value or o.y))
    end
    chart.plain_title = chart.title
    chart.title = o.title or (source.name and source.name .. ": " or "") ..
        chart.title
    return chart, o
end

-- e:plot{x=, y=, by=, log=, kind=, value=, where=, file=}: the chart as text,
-- and as SVG in the file.
charts.plot = checks.placed(function(e, options)
    local chart, o = charts.build(e, options)
    if o.file then
        if not match(o.file, "%.svg$") then
            checks.fail("plot", "%q: a chart's file ends in .svg", o.file)
        end
        local picture = require "lumat.svg_charts".draw(chart, o)
        require "lumat.texts".write("plot", o.file, picture)
    end
    local text = o.file and "wrote " .. o.file or
        require "lumat.text_charts".draw(chart, o)
    return setmetatable({chart = chart, file = o.file}, {
        __tostring = function() return text end,
        __index = type(e) == "table" and e.results and e or nil})
end)

return charts
