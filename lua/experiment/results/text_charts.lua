-- Charts as text: lines of braille dots between marks that tell the series
-- apart, or plain characters where the terminal has no others.
local charts = require "lumat.charts"
local data = require "lumat.chart_data"
local scales = require "lumat.chart_data".scales
local lines_of = require "lumat.labels".lines
local columns = require "lumat.columns"
local labels = require "lumat.labels"
local texts = require "lumat.texts"
local text_charts = {}
local ipairs, type = ipairs, type
local abs, floor, huge, log = math.abs, math.floor, math.huge, math.log
local larger, smaller = math.max, math.min
local concat = table.concat
local format, gmatch, gsub, rep = string.format, string.gmatch, string.gsub,
    string.rep
local char, width_of = utf8.char, labels.width

local HEIGHT = 16
local marks = {"●", "■", "▲", "◆", "○", "□", "△", "◇"}
local plain_marks = {"o", "x", "+", "*", "#", "@", "%", "&"}

-- --- a canvas ---------------------------------------------------------------

-- Dots 2 wide and 4 high in a character; marks over them.
local function new_canvas(width, height, ascii)
    return {width = width, height = height, ascii = ascii, dots = {},
        marks = {}, ink = {}}
end

local bits = {{1, 2, 4, 64}, {8, 16, 32, 128}}

local function cell_of(c, x, y)
    local col, line = x // 2, y // 4
    if col < 0 or col >= c.width or line < 0 or line >= c.height then
        return nil
    end
    return line * c.width + col
end

local function dot(c, x, y, ink)
    local cell = cell_of(c, x, y)
    if cell then
        c.dots[cell] = (c.dots[cell] or 0) | bits[x % 2 + 1][y % 4 + 1]
        c.ink[cell] = c.ink[cell] or ink
    end
end

local function draw_line(c, x1, y1, x2, y2, ink)
    local steps = larger(abs(x2 - x1), abs(y2 - y1), 1)
    for i = 0, steps do
        dot(c, floor(x1 + (x2 - x1) * i / steps + 0.5),
            floor(y1 + (y2 - y1) * i / steps + 0.5), ink)
    end
end

local function set_mark(c, x, y, mark, ink)
    local cell = cell_of(c, x, y)
    if cell then c.marks[cell], c.ink[cell] = mark, ink end
end

local function character(c, cell)
    local mark, dots = c.marks[cell], c.dots[cell]
    if mark then return mark end
    if not dots then return " " end
    return c.ascii and "." or char(0x2800 + dots)
end

local inks = {34, 33, 32, 35, 31, 36, 93, 90}

-- A line of the canvas, in colours where the terminal has them.
local function canvas_line(c, line, colour)
    local parts, last = {}, nil
    for col = 0, c.width - 1 do
        local cell = line * c.width + col
        local text, ink = character(c, cell), c.ink[cell]
        if colour and ink ~= last and text ~= " " then
            parts[#parts + 1] = format("\27[%sm", ink and inks[ink] or 0)
            last = ink
        end
        parts[#parts + 1] = text
    end
    if last then parts[#parts + 1] = "\27[0m" end
    return (gsub(concat(parts), "%s+$", ""))
end

-- --- axes -------------------------------------------------------------------

local function tick_width(ticks)
    local most = 0
    for _, tick in ipairs(ticks) do most = larger(most, width_of(tick.text)) end
    return most
end

-- line number -> label, one at a line.
local function labels_at(axis, height)
    local list = {}
    for _, tick in ipairs(axis.ticks) do
        local line = floor((1 - tick.at) * (height - 1) + 0.5)
        list[line] = list[line] or tick.text
    end
    return list
end

-- A character that takes two places has the second one empty.
local function put(line, at, text)
    for c in gmatch(text, utf8.charpattern) do
        local width = width_of(c)
        if width > 0 then at = at + 1 end
        line[at] = (width == 0 and line[at] or "") .. c
        if width == 2 then
            at = at + 1
            line[at] = ""
        end
    end
end

-- The line of labels below, each in the middle below its tick.
local function x_labels(axis, gutter, width)
    local line, shown = {}, {}
    for _, tick in ipairs(scales.thinned(axis, width - 1, width_of, 2)) do
        local size = width_of(tick.text)
        local at = gutter + floor(tick.at * (width - 1) + 0.5) - size // 2
        put(line, larger(0, smaller(at, gutter + width - size)), tick.text)
        shown[gutter + floor(tick.at * (width - 1) + 0.5)] = true
    end
    local text = {}
    for i = 1, gutter + width + 1 do text[i] = line[i] or " " end
    return (gsub(concat(text), "%s+$", "")), shown
end

local function x_axis(ascii, gutter, width, shown)
    local parts = {rep(" ", gutter - 1), ascii and "+" or "└"}
    for col = gutter, gutter + width - 1 do
        parts[#parts + 1] = shown[col] and (ascii and "+" or "┴") or
            ascii and "-" or "─"
    end
    return concat(parts)
end

-- --- lines ------------------------------------------------------------------

local function draw_series(c, chart, x, y, i, s, mark)
    local across, down = 2 * c.width - 1, 4 * c.height - 1
    for _, run in ipairs(data.runs(s)) do
        local last_x, last_y
        for _, point in ipairs(run) do
            local px = floor(x.at(point.x) * across + 0.5)
            local py = floor((1 - y.at(point.y)) * down + 0.5)
            dot(c, px, py, i)
            if last_x and chart.joined then
                draw_line(c, last_x, last_y, px, py, i)
            end
            last_x, last_y = px, py
            if #s.points <= c.width then set_mark(c, px, py, mark, i) end
        end
    end
end

-- Where points failed, on the lowest line of the canvas, as far as it is free.
local function draw_failed(c, x, i, s)
    for _, at in ipairs(#s.failed <= c.width and s.failed or {}) do
        local px = floor(x.at(at) * (2 * c.width - 1) + 0.5)
        local cell = cell_of(c, px, 4 * c.height - 1)
        if cell and not c.marks[cell] then
            set_mark(c, px, 4 * c.height - 1, c.ascii and "!" or "×", i)
        end
    end
end

local function draw_roofs(c, chart, x, y)
    local across, down = 2 * c.width - 1, 4 * c.height - 1
    local a, b = x.at(1), x.at(10)
    for _, roof in ipairs(chart.roofs or {}) do
        for px = 0, across do
            local intensity = 10.0 ^ ((px / across - a) / (b - a))
            local rate = smaller(roof.flops, intensity * roof.bytes)
            dot(c, px, floor((1 - y.at(rate)) * down + 0.5), nil)
        end
    end
end

local function legend(chart, used, colour, width)
    local lines, line, length = {}, {}, 0
    for i, s in ipairs(#chart.series > 1 and chart.series or {}) do
        local name = lines_of.harmless(s.name)
        local size = width_of(name) + 5
        if length + size > width and length > 0 then
            lines[#lines + 1], line, length = "  " .. concat(line, "   "), {},
                0
        end
        line[#line + 1] = (colour and format("\27[%dm%s\27[0m", inks[i],
            used[i]) or used[i]) .. " " .. name
        length = length + size
    end
    if #line > 0 then lines[#lines + 1] = "  " .. concat(line, "   ") end
    if (chart.left_out or 0) > 0 then
        lines[#lines + 1] = format("  %d more series are not drawn",
            chart.left_out)
    end
    return lines
end

-- mark: what stands where points failed, if it does.
local function add_notes(chart, lines, mark)
    for i, note in ipairs(data.notes(chart)) do
        lines[#lines + 1] = "  " .. (i == 1 and chart.failed and mark and
            mark .. " " or "") .. lines_of.harmless(note)
    end
end

local function axis_name(axis, unit)
    return lines_of.harmless(unit and axis.title .. ", " .. unit or axis.title)
end

-- Cuts names so that all fit beside one another, if that leaves something of
-- them.
local FEWEST, SHORT = 3, 12 -- places of a name; where some are left out
local function fit_categories(axis, width)
    if axis.kind ~= "categories" then return end
    local room, list = width // #axis.ticks - 2, {}
    for i, tick in ipairs(axis.ticks) do
        list[i] = lines_of.harmless(tick.text)
    end
    list = labels.fitted(list, room >= FEWEST and room or SHORT, width_of)
    for i, text in ipairs(list) do
        axis.ticks[i].text = text
    end
end

local function roof_notes(chart, lines, ascii)
    local mark = ascii and "." or "⠉"
    for _, roof in ipairs(chart.roofs or {}) do
        lines[#lines + 1] = format("  %s %s peak %s %s", mark,
            lines_of.harmless(roof.name), columns.significant(
                roof.flops / chart.y.what.scale, 4), chart.y.what.unit)
        lines[#lines + 1] = format("  %s memory %s GB/s", mark,
            columns.significant(roof.bytes / 1e9, 4))
    end
end

local function draw_chart(chart, width, height, ascii, colour)
    local y = charts.scale(chart, "y", height // 3)
    local x = charts.scale(chart, "x", width // 9)
    local gutter = tick_width(y.ticks) + 2
    fit_categories(x, width - gutter - 1)
    local c = new_canvas(larger(10, width - gutter - 1), height, ascii)
    local used = ascii and plain_marks or marks
    draw_roofs(c, chart, x, y)
    for i, s in ipairs(chart.series) do
        draw_series(c, chart, x, y, i, s, used[i])
    end
    for i, s in ipairs(chart.series) do draw_failed(c, x, i, s) end
    local beside = labels_at(y, height)
    local out = {lines_of.harmless(chart.title), axis_name(chart.y, y.unit)}
    for line = 0, height - 1 do
        local label = beside[line] or ""
        out[#out + 1] = rep(" ", gutter - 2 - width_of(label)) .. label ..
            (beside[line] and (ascii and " +" or " ┤") or
                ascii and " |" or " │") .. canvas_line(c, line, colour)
    end
    local below, shown = x_labels(x, gutter, c.width)
    out[#out + 1] = x_axis(ascii, gutter, c.width, shown)
    out[#out + 1] = below
    local name = axis_name(chart.x, x.unit)
    out[#out + 1] = rep(" ", gutter + larger(0, (c.width - width_of(name)) // 2)) ..
        name
    for _, line in ipairs(legend(chart, used, colour, width)) do
        out[#out + 1] = line
    end
    roof_notes(chart, out, ascii)
    add_notes(chart, out, ascii and "!" or "×")
    return concat(out, "\n")
end

-- --- heat maps --------------------------------------------------------------

local shades = {"░", "▒", "▓", "█"}
local plain_shades = {".", "-", "+", "#"}

local function shade_of(chart, value, ascii)
    local t = 0.5
    if chart.high > chart.low then
        t = chart.value.log and log(value / chart.low) /
            log(chart.high / chart.low) or
            (value - chart.low) / (chart.high - chart.low)
    end
    local list = ascii and plain_shades or shades
    return list[smaller(#list, 1 + floor(t * #list))]
end

-- Numbers in the places of the map, each behind its shade.
local function draw_heat(chart, width, ascii)
    local lines, head = {}, {chart.y.title .. " \\ " .. chart.x.title}
    for j, label in ipairs(chart.x.labels) do head[j + 1] = label end
    for i = #chart.y.labels, 1, -1 do
        local line = {chart.y.labels[i]}
        for j = 1, #chart.x.labels do
            local cell = chart.cells[i][j]
            line[j + 1] = not cell and "." or
                cell.failed and cell.status:upper() or
                shade_of(chart, cell.value, ascii) .. " " .. cell.text ..
                    (cell.has_less and "*" or "")
        end
        lines[#lines + 1] = line
    end
    table.insert(lines, 1, head)
    local what, out = chart.value.what, {}
    out[1] = lines_of.harmless(chart.title .. (what.unit and ", " ..
        what.unit or ""))
    for _, line in ipairs(lines_of.aligned(lines, {true}, 1, width)) do
        out[#out + 1] = line
    end
    if chart.has_less then
        out[#out + 1] = "  * some of its points have none"
    end
    add_notes(chart, out)
    return concat(out, "\n")
end

-- The text of a chart.
function text_charts.draw(chart, o)
    local width, ascii, colour = texts.style()
    width = o.width or smaller(width > 0 and width or 80, 100)
    if chart.kind == "heat" then return draw_heat(chart, width, ascii) end
    return draw_chart(chart, larger(width, 20), larger(o.height or HEIGHT, 4),
        ascii, colour)
end

return text_charts
