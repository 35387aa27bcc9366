-- Lines and rooflines as vector graphics.
local data = require "lumat.chart_data"
local frame = require "lumat.svg_frame"
local svg = require "lumat.svg"
local ipairs = ipairs
local columns = require "lumat.columns"
local atan, floor, huge, larger, smaller, pi = math.atan, math.floor,
    math.huge, math.max, math.min, math.pi
local format = string.format
local place, value_text = frame.place, frame.value_text
local number = svg.number

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

return {lines = draw_lines, roofline = draw_roofline}
