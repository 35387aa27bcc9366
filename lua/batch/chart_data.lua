-- What charts are made of: rows gathered into series, the cells of a map, the
-- roofs above them.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local scales = require "lumat.scales"
local sources = require "lumat.sources"
local data = {}
local ipairs, type = ipairs, type
local concat, sort = table.concat, table.sort
local find, format = string.find, string.format
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
            local low, high = data.spread(values)
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
        local place, values = data.places_of(source, rows, name)
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

function data.all(chart, key)
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
                    if point[side] > 0 then kept[#kept + 1] = point
                    else count = count + 1 end
                end
                s.points = kept
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
    local by = by_of(source, rows, o, {[o.x] = true})
    local chart = {kind = "lines", title = title_of(source, o.y, o.x, by),
        by = by, series = gather(source, rows, by, function(row)
            if not is_axis then return (columns.get(row, o.x)) end
            local value = row.p[o.x]
            return place and place[value] or not place and value
        end, o.y)}
    chart.labels = labels
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

local function places(values)
    local place = {}
    for i, value in ipairs(values) do place[value] = i end
    return place
end

function data.heat(source, rows, o)
    local across = sources.values(source, rows, o.x)
    local down = sources.values(source, rows, o.y)
    local col, line, cells = places(across), places(down), {}
    local low, high, is_merged = huge, -huge, false
    for i = 1, #down do cells[i] = {} end
    local what = what_of(source, rows, o.value)
    for _, row in ipairs(rows) do
        local i, j = line[row.p[o.y]], col[row.p[o.x]]
        local value = columns.is_good(row) and columns.get(row, o.value)
        if i and j and is_number(value) then
            local cell = cells[i][j] or {values = {}}
            cell.values[#cell.values + 1] = value
            cell.value = columns.stats.median(cell.values)
            is_merged = is_merged or #cell.values > 1
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
        is_merged = is_merged, series = {}, title = (is_merged and "median " or
            "") .. title_of(source, o.value, o.x, {o.y}),
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
function data.roofline(source, rows, o)
    local by = by_of(source, rows, o, {})
    if not o.by then -- numbers along the line, names apart
        local names = {}
        for _, name in ipairs(by) do
            if data.places_of(source, rows, name) then names[#names + 1] = name end
        end
        by = names
    end
    local chart = {kind = "roofline", roofs = roofs_of(rows), by = by,
        title = "roofline",
        series = gather(source, rows, by, function(row)
            return row.flops and row.bytes and row.flops > 0 and
                row.bytes > 0 and row.flops / row.bytes or nil
        end, "flops_rate")}
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

return data
