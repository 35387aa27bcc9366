-- The frame of a chart as vector graphics: title, axes, legend, and where numbers
-- lie in it.
local charts = require "lumat.charts"
local data = require "lumat.chart_data"
local columns = require "lumat.columns"
local scales = require "lumat.scales"
local svg = require "lumat.svg"
local frame = {}
local ipairs, tonumber = ipairs, tonumber
local huge, larger, smaller = math.huge, math.max, math.min
local format = string.format

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
function frame.place(f, x, y)
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

function frame.value_text(axis, y, bare)
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

return frame
