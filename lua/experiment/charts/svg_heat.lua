-- Heat maps as vector graphics.
local frame = require "lumat.svg_frame"
local svg = require "lumat.svg"
local ipairs = ipairs
local floor, log, larger, smaller = math.floor, math.log, math.max, math.min
local format = string.format

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
            frame.value_text(chart.value, value, true))
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

return draw_heat
