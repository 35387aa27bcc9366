-- Charts as vector graphics.
local charts = require "lumat.charts"
local columns = require "lumat.columns"
local data = require "lumat.chart_data"
local scales = require "lumat.chart_data".scales
local svg = require "lumat.svg"
local number = svg.number
local ipairs, tonumber = ipairs, tonumber
local atan, floor, huge, larger, log, pi, smaller = math.atan, math.floor,
    math.huge, math.max, math.log, math.pi, math.min
local format = string.format
local frame, svg_charts = {}, {}

-- --- the frame -------------------------------------------------------------
-- The frame of a chart as vector graphics: title, axes, legend, and where
-- numbers lie in it.

local WIDTH, HEIGHT = 680, 420
local SPACE = 12 -- around everything

-- --- what it has to hold ----------------------------------------------------

local function axis_title(axis, unit)
    return unit and axis.title .. ", " .. unit or axis.title
end

local function widest(ticks)
    local most = 0
    for _, tick in ipairs(ticks) do
        most = larger(most, svg.width(tick.text))
    end
    return most
end

-- Lines of entries {text, i, width} that fit side by side.
local function legend_lines(chart, width)
    local lines, used = {}, huge
    for i, s in ipairs(#chart.series > 1 and chart.series or {}) do
        local text = svg.cut(s.name, width - 40)
        local wide = svg.width(text) + 34
        if used + wide > width then
            lines[#lines + 1], used = {}, 0
        end
        local line = lines[#lines]
        line[#line + 1] = {text = text, i = i, at = used}
        used = used + wide
    end
    return lines
end

-- What stands below the legend, in lines as wide as the picture.
local function notes_of(chart, width)
    local notes = data.notes(chart)
    if chart.failed and chart.kind ~= "heat" then
        notes[1] = "× " .. notes[1]
    end
    if (chart.left_out or 0) > 0 then
        notes[#notes + 1] = format("%d more series are not drawn",
            chart.left_out)
    end
    if chart.has_less then
        notes[#notes + 1] = "* some of its points have none"
    end
    local lines = {}
    for _, note in ipairs(notes) do
        local last = lines[#lines]
        local joined = last and last .. " · " .. note
        if joined and svg.width(joined) <= width then
            lines[#lines] = joined
        else
            lines[#lines + 1] = svg.cut(note, width)
        end
    end
    return lines
end

local MOST_SLANTED, MOST_SIDE = 130, 180 -- widths of labels

-- Makes the labels of categories no wider than that.
local function fit_labels(axis, most)
    if axis.kind ~= "categories" then return end
    local list = {}
    for i, tick in ipairs(axis.ticks) do list[i] = tick.text end
    for i, text in ipairs(svg.fitted(list, most)) do axis.ticks[i].text = text end
end

local function are_numbers(ticks)
    for _, tick in ipairs(ticks) do
        if not tonumber(tick.text) then return false end
    end
    return true
end

-- Names lie aslant where they do not fit beside one another; of numbers some
-- are left out instead.
local function slant_of(axis, length)
    if axis.kind ~= "categories" or are_numbers(axis.ticks) then return false end
    local room = length / #axis.ticks
    return widest(axis.ticks) + 8 > room
end

-- How far labels that lie aslant reach out at the left.
local function left_of_slanted(f)
    local first = f.x.ticks[1]
    return f.slant and 0.82 * svg.width(first.text) -
        first.at * (f.right - f.left) or 0
end

-- How far the last label reaches out at the right.
local function last_half(axis)
    local last = axis.kind ~= "categories" and axis.ticks[#axis.ticks]
    return last and last.at > 0.9 and svg.width(last.text) / 2 or 6
end

-- The frame's places: left, right, top, bottom of where lines are drawn.
function frame.lay_out(chart, o, right_room)
    local f = {width = o.width or WIDTH, height = o.height or HEIGHT,
        crosses = {}}
    f.y = charts.scale(chart, "y", larger(3, f.height // 70))
    f.x = charts.scale(chart, "x", larger(3, f.width // 75))
    fit_labels(f.y, MOST_SIDE)
    fit_labels(f.x, MOST_SLANTED)
    f.left = SPACE + smaller(widest(f.y.ticks), MOST_SIDE) + 10
    f.right = f.width - SPACE - (right_room or last_half(f.x))
    f.top = 66
    f.legend = legend_lines(chart, f.width - 2 * SPACE)
    f.notes = notes_of(chart, f.width - 2 * SPACE)
    f.slant = slant_of(f.x, f.right - f.left)
    f.left = larger(f.left, SPACE + left_of_slanted(f))
    local labels = f.slant and
        smaller(widest(f.x.ticks), MOST_SLANTED) * 0.6 + 14 or 20
    local below = labels + 20 + 20 * #f.legend + 20 * #f.notes + SPACE
    f.height = larger(f.height, f.top + below + 120)
    f.bottom = f.height - below
    f.labels = labels
    return f
end

-- Where the numbers lie in the picture.
local function place(f, x, y)
    return f.left + f.x.at(x) * (f.right - f.left),
        f.bottom - f.y.at(y) * (f.bottom - f.top)
end

local function draw_y_axis(p, f)
    local length = f.bottom - f.top
    local ticks = scales.thinned(f.y, length, function() return 14 end, 2)
    for _, tick in ipairs(ticks) do
        local y = f.bottom - tick.at * length
        if f.y.kind ~= "categories" then
            p:line(f.left, y, f.right, y, "grid")
        end
        p:text(f.left - 8, y + 4.5, svg.cut(tick.text, MOST_SIDE), nil, "end")
    end
end

local function draw_x_axis(p, f)
    local length = f.right - f.left
    local ticks = f.slant and
        scales.thinned(f.x, length, function() return 12 end, 4) or
        scales.thinned(f.x, length, svg.width, 10)
    for _, tick in ipairs(ticks) do
        local x = f.left + tick.at * length
        p:line(x, f.bottom, x, f.bottom + 4, "axis")
        if f.slant then
            p:text(x + 4, f.bottom + 16, tick.text, nil, "end", -35)
        else
            p:text(x, f.bottom + 19, tick.text, nil, "middle")
        end
    end
    p:line(f.left, f.bottom, f.right, f.bottom, "axis")
end

local function draw_legend(p, f)
    local y = f.bottom + f.labels + 40
    for _, line in ipairs(f.legend) do
        for _, entry in ipairs(line) do
            local x = SPACE + entry.at
            p:line(x, y - 4.5, x + 20, y - 4.5, "line s" .. entry.i)
            p:mark(entry.i, x + 10, y - 4.5)
            p:text(x + 26, y, entry.text)
        end
        y = y + 20
    end
    for i, note in ipairs(f.notes) do
        p:text(SPACE, y + 20 * (i - 1), note, "soft")
    end
end

function frame.draw(p, chart, f)
    p:rect(0, 0, f.width, f.height, "paper", "#fff")
    p:text(SPACE, 24, svg.cut(chart.title, f.width - 2 * SPACE, 15), "title")
    p:text(SPACE, 46, svg.cut(axis_title(chart.y, f.y.unit),
        f.width - 2 * SPACE), "soft")
    draw_y_axis(p, f)
    draw_x_axis(p, f)
    p:text((f.left + f.right) / 2, f.bottom + f.labels + 18,
        axis_title(chart.x, f.x.unit), "soft", "middle")
    draw_legend(p, f)
end

local function value_text(axis, y, bare)
    local kind = axis.what.kind
    if kind == "time" then
        local scale, unit = columns.time_unit(y)
        return columns.significant(y / scale, 4) .. " " .. unit
    elseif kind == "share" then
        return format("%.3g %%", 100 * y)
    elseif kind == "rate" then
        return columns.significant(y / axis.what.scale, 4) ..
            (bare and "" or " " .. axis.what.unit)
    end
    return format("%.5g", y)
end

-- --- lines -----------------------------------------------------------------
-- Lines and rooflines as vector graphics.

local MARKED = 48 -- points of a series that are marked one by one

-- --- lines ------------------------------------------------------------------

-- Of a line with more points than there are places across, the least and the
-- greatest of each place.
local function thin_line(points)
    local kept, i = {}, 1
    while i < #points do
        local least, most, from = i, i, points[i]
        local j = i
        while points[j] and points[j] - from < 1 do
            if points[j + 1] < points[least + 1] then least = j end
            if points[j + 1] > points[most + 1] then most = j end
            j = j + 2
        end
        for _, k in ipairs(least == most and {least} or
            {smaller(least, most), larger(least, most)}) do
            kept[#kept + 1] = points[k]
            kept[#kept + 1] = points[k + 1]
        end
        i = j
    end
    return kept
end

local function note_of(chart, s, point)
    local x = chart.x.labels and chart.x.labels[point.x] or
        format("%.6g", point.x)
    return (s.name ~= "" and s.name .. ", " or "") .. chart.x.title .. " " ..
        x .. ": " .. value_text(chart.y, point.y)
end

-- The interval as a bar with caps, where it can be seen at all.
local function draw_interval(p, f, i, point)
    if not (point.low and point.high) then return end
    local x, low = place(f, point.x, point.low)
    local _, high = place(f, point.x, point.high)
    low, high = smaller(low, f.bottom), larger(high, f.top)
    if low - high < 4 then return end
    p:add("path", {"class", "bar s" .. i, "d", format(
        "M%s %sh6m-3 0V%sm-3 0h6", number(x - 3), number(low), number(high))})
end

-- Of many marks those that lie on one another are one.
local function draw_marks(p, chart, s, i, run, points, few)
    local seen = {}
    for k, point in ipairs(run) do
        local x, y = points[2 * k - 1], points[2 * k]
        local place = not few and number(floor(x)) .. " " .. number(floor(y))
        if not seen[place] then
            p:mark(i, x, y, note_of(chart, s, point))
            seen[place or 0] = not few
        end
    end
end

local function draw_series(p, chart, f, i, s)
    local few = #s.points <= MARKED
    for _, run in ipairs(data.runs(s)) do
        local points = {}
        for _, point in ipairs(run) do
            points[#points + 1], points[#points + 2] = place(f, point.x, point.y)
            if few then draw_interval(p, f, i, point) end
        end
        if chart.joined and #run > 1 then
            p:path(few and points or thin_line(points), "line s" .. i)
        end
        if few or not chart.joined or #run == 1 then
            draw_marks(p, chart, s, i, run, points, few)
        end
    end
    for _, x in ipairs(few and s.failed or {}) do
        local below = f.crosses[x] or 0 -- of other series
        f.crosses[x] = below + 1
        p:cross(i, f.left + f.x.at(x) * (f.right - f.left),
            f.bottom - 7 - 10 * below, s.name .. " failed")
    end
end

local function draw_lines(chart, o)
    local f = frame.lay_out(chart, o)
    local p = svg.new(f.width, f.height)
    frame.draw(p, chart, f)
    for i, s in ipairs(chart.series) do draw_series(p, chart, f, i, s) end
    return p
end

-- --- rooflines --------------------------------------------------------------

-- Where the line of a roof begins, bends and ends.
local function roof_points(chart, f, roof)
    local low, high = huge, -huge
    for _, tick in ipairs{0, 1} do
        -- the axis is logarithmic: its ends from two known places
        local a, b = f.x.at(1), f.x.at(10)
        local x = 10.0 ^ ((tick - a) / (b - a))
        low, high = smaller(low, x), larger(high, x)
    end
    local ridge = roof.flops / roof.bytes
    return low, smaller(larger(ridge, low), high), high
end

-- The line of a roof, and where its parts lie.
local function draw_roof(p, chart, f, roof)
    local low, ridge, high = roof_points(chart, f, roof)
    local x1, y1 = place(f, low, low * roof.bytes)
    local x2, y2 = place(f, ridge, smaller(roof.flops, ridge * roof.bytes))
    local x3, y3 = place(f, high, roof.flops)
    local slope = (y2 - y1) / (x2 - x1)
    if y1 > f.bottom then -- begins where it comes into the picture
        x1, y1 = x1 + (f.bottom - y1) / slope, f.bottom
    end
    p:path({x1, y1, x2, y2, x3, y3}, "roof")
    return {x1 = x1, y1 = y1, x2 = x2, y2 = y2, y3 = y3, slope = slope}
end

-- What the roof is: over all that lies in its way.
local function name_roof(p, chart, roof, at, is_first)
    p:text(at.x2 + 4, at.y3 - 7, format("%s peak %s", roof.name,
        value_text(chart.y, roof.flops)), "small")
    if not is_first then return end
    local part = 0.42
    p:text(at.x1 + part * (at.x2 - at.x1) - 5,
        at.y1 + part * (at.y2 - at.y1) - 7, format("memory %s GB/s",
            columns.significant(roof.bytes / 1e9, 4)), "small", "middle",
        atan(at.slope) * 180 / pi)
end

local function draw_roofline(chart, o)
    local f = frame.lay_out(chart, o)
    local p = svg.new(f.width, f.height)
    frame.draw(p, chart, f)
    local at = {}
    for i, roof in ipairs(chart.roofs) do at[i] = draw_roof(p, chart, f, roof) end
    for i, s in ipairs(chart.series) do draw_series(p, chart, f, i, s) end
    for i, roof in ipairs(chart.roofs) do
        name_roof(p, chart, roof, at[i], i == 1)
    end
    return p
end

-- --- heat maps -------------------------------------------------------------
-- Heat maps as vector graphics.

-- Viridis, by Stéfan van der Walt and Nathaniel Smith, at nine places.
local palette = {{68, 1, 84}, {71, 44, 122}, {59, 81, 139}, {44, 113, 142},
    {33, 144, 141}, {39, 173, 129}, {92, 200, 99}, {170, 220, 50},
    {253, 231, 37}}

-- The colour at 0 .. 1, and the class of text that reads on it.
local function colour_at(t)
    local at = smaller(larger(t, 0), 1) * (#palette - 1)
    local i = smaller(floor(at), #palette - 2)
    local a, b, rest, c = palette[i + 1], palette[i + 2], at - i, {}
    for k = 1, 3 do c[k] = floor(a[k] + rest * (b[k] - a[k]) + 0.5) end
    return format("#%02x%02x%02x", c[1], c[2], c[3]),
        t > 0.55 and "on-light small" or "on-dark small"
end

local function heat_place(chart, value)
    if chart.high <= chart.low then return 0.5 end
    if chart.value.log then
        return log(value / chart.low) / log(chart.high / chart.low)
    end
    return (value - chart.low) / (chart.high - chart.low)
end

local function draw_cell(p, chart, x, y, width, height, cell, note)
    if not cell then return end
    if cell.failed then
        p:rect(x, y, width, height, "none")
        p:text(x + width / 2, y + height / 2 + 4,
            svg.width(cell.status, 11) + 4 < width and cell.status or "×",
            "small soft", "middle")
        return
    end
    local colour, class = colour_at(heat_place(chart, cell.value))
    local text = cell.text .. (cell.has_less and "*" or "")
    p:add("rect", {"x", x, "y", y, "width", width, "height", height,
        "fill", colour}, "<title>" .. svg.escape(note .. ": " .. text) ..
        "</title>")
    if svg.width(text, 11) + 4 < width and height > 13 then
        p:text(x + width / 2, y + height / 2 + 4, text, class, "middle")
    end
end

local function draw_colours(p, chart, f)
    local x, height, steps = f.right + 18, f.bottom - f.top, 32
    for i = 0, steps - 1 do
        p:rect(x, f.bottom - (i + 1) * height / steps, 14,
            height / steps + 0.5, nil, (colour_at((i + 0.5) / steps)))
    end
    for _, t in ipairs{0, 0.5, 1} do
        local value = chart.value.log and
            chart.low * (chart.high / chart.low) ^ t or
            chart.low + t * (chart.high - chart.low)
        p:text(x + 20, f.bottom - t * height + 4.5,
            value_text(chart.value, value, true))
    end
end

local function draw_heat(chart, o)
    local f = frame.lay_out(chart, o, 115)
    local p = svg.new(f.width, f.height)
    frame.draw(p, chart, f)
    if chart.value.what.unit then
        p:text(f.right + 18, 46, chart.value.what.unit, "soft")
    end
    local rows, cols = #chart.y.labels, #chart.x.labels
    local width = (f.right - f.left) / cols
    local height = (f.bottom - f.top) / rows
    local gap = smaller(width, height) > 8 and 1 or 0
    for i = 1, rows do
        for j = 1, cols do
            draw_cell(p, chart, f.left + (j - 1) * width + gap,
                f.bottom - i * height, width - gap, height - gap,
                chart.cells[i][j], chart.y.title .. " " .. chart.y.labels[i] ..
                ", " .. chart.x.title .. " " .. chart.x.labels[j])
        end
    end
    draw_colours(p, chart, f)
    return p
end

-- --- charts ----------------------------------------------------------------

local draw = {lines = draw_lines, roofline = draw_roofline,
    heat = draw_heat}

-- The text of an SVG file, or of a part of a page.
function svg_charts.draw(chart, options, is_part)
    local p = draw[chart.kind](chart, options or {})
    return p:finish(chart.title, is_part)
end

return svg_charts
