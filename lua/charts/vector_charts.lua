-- Charts as shapes on a page: what the painters of SVG, PDF and PNG files are
-- told to draw. A painter p has width and height, is measured in pixels from
-- the top left, and knows colours by the classes of svg.lua:
--   p:text(x, y, text, class, anchor, turned)   p:line(x1, y1, x2, y2, class)
--   p:path(points, class)     p:rect(x, y, width, height, class, fill, note)
--   p:mark(ink, x, y, note)   p:dots(points, ink)   p:cross(ink, x, y, note)
--   p:bar(ink, x, low, high)  p:level(segments, colour, note)
--   p:image(x, y, width, height, rows, cols, rgb)
--   p:cut(x, y, width, height) … p:uncut()   p:put(x, y, other painter)
local palette = require "lumat.palette"
local parts_of = require "lumat.chart_parts"
local scales = require "lumat.scales"
local svg = require "lumat.svg"
local number, is_number = svg.number, parts_of.is_number
local ipairs, tonumber, type = ipairs, tonumber, type
local char, concat, gsub, sub = string.char, table.concat, string.gsub,
    string.sub
local abs, atan, floor, huge, larger, pi, smaller = math.abs, math.atan, math.floor,
    math.huge, math.max, math.pi, math.min
local format = string.format
local frame, vector_charts = {}, {}

-- --- the frame --------------------------------------------------------------
-- Title, axes, legend, and where numbers lie between them.

local WIDTH, HEIGHT = 680, 420 -- where nobody says another
vector_charts.HEIGHT = HEIGHT
local SPACE = 12 -- around everything
local COLOURS = 115 -- beside an image

local function axis_title(axis, unit)
    if not axis.title then return unit or "" end
    return unit and axis.title .. ", " .. unit or axis.title
end

local function widest(ticks)
    local most = 0
    for _, tick in ipairs(ticks) do
        most = larger(most, svg.width(tick.text))
    end
    return most
end

-- Lines of entries {text, part, at} that fit side by side.
local function legend_lines(parts, width)
    local lines, used = {}, huge
    for _, part in ipairs(parts.legend) do
        local text = svg.cut(part.name, width - 40)
        local wide = svg.width(text) + 34
        if used + wide > width then
            lines[#lines + 1], used = {}, 0
        end
        local line = lines[#lines]
        line[#line + 1] = {text = text, part = part, at = used}
        used = used + wide
    end
    return lines
end

-- What stands below the legend, in lines as wide as the picture.
local function notes_of(chart, width)
    local lines = {}
    for _, note in ipairs(chart.notes or {}) do
        if type(note) == "table" then note = "× " .. note[1] end
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
local function fit_labels(scale, most)
    if scale.kind ~= "categories" then return end
    local list = {}
    for i, tick in ipairs(scale.ticks) do list[i] = tick.text end
    for i, text in ipairs(svg.fitted(list, most)) do
        scale.ticks[i].text = text
    end
end

local function are_numbers(ticks)
    for _, tick in ipairs(ticks) do
        if not tonumber(tick.text) then return false end
    end
    return true
end

-- Names lie aslant where they do not fit beside one another; of numbers some
-- are left out instead.
local function slant_of(scale, length)
    if scale.kind ~= "categories" or are_numbers(scale.ticks) then
        return false
    end
    return widest(scale.ticks) + 8 > length / #scale.ticks
end

-- How far labels that lie aslant reach out at the left.
local function left_of_slanted(f)
    local first = f.x.ticks[1]
    return f.slant and 0.82 * svg.width(first.text) -
        first.at * (f.right - f.left) or 0
end

-- How far the last label reaches out at the right.
local function last_half(scale)
    local last = scale.kind ~= "categories" and scale.ticks[#scale.ticks]
    return last and last.at > 0.9 and svg.width(last.text) / 2 or 6
end

local function image_of(parts)
    for _, part in ipairs(parts.list) do
        if part.image then return part.image end
    end
    return nil
end

-- Makes the frame's height so much of its width.
local function keep_ratio(f, ratio)
    local width, height = f.right - f.left, f.bottom - f.top
    if height > ratio * width then
        f.height = f.height - (height - ratio * width)
        f.bottom = f.top + ratio * width
    else
        f.right = f.left + height / ratio
    end
end

-- The frame's places: left, right, top, bottom of where series are drawn.
function frame.lay_out(chart, o)
    local parts = parts_of.of(chart)
    local f = {width = o.width or WIDTH, height = o.height or HEIGHT,
        crosses = {}, parts = parts, image = image_of(parts)}
    f.y = parts:scale("y", larger(3, f.height // 70))
    f.x = parts:scale("x", larger(3, f.width // 75))
    fit_labels(f.y, MOST_SIDE)
    fit_labels(f.x, MOST_SLANTED)
    f.left = SPACE + smaller(widest(f.y.ticks), MOST_SIDE) + 10
    f.right = f.width - SPACE - (f.image and COLOURS or last_half(f.x))
    local unit = f.image and (f.image.what and f.image.what.unit or
        f.image.title)
    f.head = chart.title and 46 or 24 -- what names the axis upwards
    f.top = (axis_title(parts.y, f.y.unit) ~= "" or unit) and f.head + 20 or
        chart.title and 46 or 20
    f.unit = unit
    f.legend = legend_lines(parts, f.width - 2 * SPACE)
    f.notes = notes_of(chart, f.width - 2 * SPACE)
    f.slant = slant_of(f.x, f.right - f.left)
    f.left = larger(f.left, SPACE + left_of_slanted(f))
    f.labels = f.slant and
        smaller(widest(f.x.ticks), MOST_SLANTED) * 0.6 + 14 or 20
    local below = f.labels + (axis_title(parts.x, f.x.unit) ~= "" and 20 or 0) +
        20 * #f.legend + (#f.legend + #f.notes > 0 and 8 or 0) + 20 * #f.notes + SPACE
    f.height = larger(f.height, f.top + below + 120)
    f.bottom = f.height - below
    if chart.ratio then keep_ratio(f, chart.ratio) end
    return f
end

local FAR = 1000 -- frames: what lies farther away is drawn there

local function near(share) return smaller(larger(share, -FAR), FAR) end

-- Where the numbers lie in the picture.
local function place(f, x, y)
    return f.left + near(f.x.at(x)) * (f.right - f.left),
        f.bottom - near(f.y.at(y)) * (f.bottom - f.top)
end

-- Have they a place on the axes?
local function has_place(f, x, y)
    return is_number(x) and is_number(y) and (x > 0 or not f.x.is_log) and
        (y > 0 or not f.y.is_log)
end

-- The same, and not beyond the frame.
local function place_inside(f, x, y)
    local px, py = place(f, x, y)
    return smaller(larger(px, f.left), f.right),
        smaller(larger(py, f.top), f.bottom)
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

-- Bars that go down from 0 begin at a line.
local function draw_zero(p, f)
    local low, high = smaller(f.y.low, f.y.high), larger(f.y.low, f.y.high)
    if f.y.is_log or not (low < 0 and high > 0) then return end
    for _, part in ipairs(f.parts.list) do
        if part.rects and not part.is_hollow then
            local y = f.bottom - f.y.at(0) * (f.bottom - f.top)
            p:line(f.left, y, f.right, y, "axis")
            return
        end
    end
end

local function draw_legend(p, f)
    local y = f.height - SPACE - 20 * (#f.legend + #f.notes) + 12
    for _, line in ipairs(f.legend) do
        for _, entry in ipairs(line) do
            local x, part = SPACE + entry.at, entry.part
            if part.rects then
                p:rect(x + 2, y - 10, 16, 11, "f" .. part.ink)
            elseif part.joined then
                p:line(x, y - 4.5, x + 20, y - 4.5, "line s" .. part.ink)
            end
            if part.marked then p:mark(part.ink, x + 10, y - 4.5) end
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
    p:text(SPACE, 24, svg.cut(chart.title or "", f.width - 2 * SPACE, 15),
        "title")
    p:text(SPACE, f.head, svg.cut(axis_title(f.parts.y, f.y.unit),
        f.width - 2 * SPACE), "soft")
    draw_y_axis(p, f)
    draw_x_axis(p, f)
    p:text((f.left + f.right) / 2, f.bottom + f.labels + 18,
        axis_title(f.parts.x, f.x.unit), "soft", "middle")
    draw_legend(p, f)
end

-- --- lines and points -------------------------------------------------------

local MARKED = 48 -- points of a series that are marked one by one
local MANY = 1500 -- points from which on they are dots

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
        i = larger(j, i + 2)
    end
    return kept
end

local function note_of(f, part, x, y)
    local axis, name = f.parts.x, part.name
    local at = axis.labels and axis.labels[x] or format("%.6g", x)
    return (name and name ~= "" and name .. ", " or "") ..
        (axis.title or "x") .. " " .. at .. ": " .. scales.text(f.parts.y.what, y)
end

-- The interval as a bar with caps, where it can be seen at all.
local function draw_interval(p, f, part, interval)
    local x, low = place(f, interval[1], interval[2])
    local _, high = place(f, interval[1], interval[3])
    low, high = smaller(low, f.bottom), larger(high, f.top)
    if low - high < 4 then return end
    p:bar(part.ink, x, low, high)
end

-- The places of the points that a line leads through, in lists {x, y, x, y …},
-- with the indices of the points.
local function runs_of(f, part)
    local runs, run = {}, nil
    for i = 1, #part.x do
        if has_place(f, part.x[i], part.y[i]) then
            if not run then
                run = {at = {}}
                runs[#runs + 1] = run
            end
            run.at[#run.at + 1] = i
            run[#run + 1], run[#run + 2] = place(f, part.x[i], part.y[i])
        else
            run = nil
        end
    end
    return runs
end

-- Of many marks those that lie on one another are one.
local function draw_marks(p, f, part, run, few, seen)
    for k, i in ipairs(run.at) do
        local x, y = run[2 * k - 1], run[2 * k]
        local key = not few and number(floor(x)) .. " " .. number(floor(y))
        if not seen[key] then
            p:mark(part.ink, x, y, note_of(f, part, part.x[i], part.y[i]))
            seen[key or 0] = not few
        end
    end
end

-- Points that are too many for marks, without those beside the frame.
local function draw_dots(p, f, part)
    local points = {}
    for i = 1, #part.x do
        if has_place(f, part.x[i], part.y[i]) then
            local x, y = place(f, part.x[i], part.y[i])
            if x >= f.left and x <= f.right and y >= f.top and y <= f.bottom then
                points[#points + 1], points[#points + 2] = x, y
            end
        end
    end
    p:dots(points, part.ink)
end

local function draw_path(p, f, part)
    if part.marked and not part.joined and part.count > MANY then
        draw_dots(p, f, part)
        return
    end
    local runs, count = runs_of(f, part), 0
    for _, run in ipairs(runs) do count = count + #run.at end
    local few = count <= MARKED
    for _, interval in ipairs((few or part.are_errors) and part.intervals or
        {}) do
        draw_interval(p, f, part, interval)
    end
    local seen = {}
    for _, run in ipairs(runs) do
        if part.joined and #run.at > 1 then
            p:path(few and run or thin_line(run), "line s" .. part.ink)
        end
        if part.marked and (few or not part.joined) or #run.at == 1 then
            draw_marks(p, f, part, run, few, seen)
        end
    end
    for _, x in ipairs(few and part.series.failed or {}) do
        local below = f.crosses[x] or 0 -- of other series
        f.crosses[x] = below + 1
        p:cross(part.ink, f.left + f.x.at(x) * (f.right - f.left),
            f.bottom - 7 - 10 * below, (part.name or "") .. " failed")
    end
end

-- --- bounds -----------------------------------------------------------------

-- The line of a bound, which begins where it comes into the picture; gives its
-- places.
local function draw_limit(p, f, part)
    local x, y = parts_of.along(part, f.x)
    local points = {}
    for i = 1, #x do
        points[2 * i - 1], points[2 * i] = place(f, x[i], y[i])
    end
    if #points > 2 and points[2] > f.bottom then
        local slope = (points[4] - points[2]) / (points[3] - points[1])
        points[1] = points[1] + (f.bottom - points[2]) / slope
        points[2] = f.bottom
    end
    p:path(points, "roof")
    return points
end

-- Names along the parts of a bound, over all that lies in their way.
local function name_limit(p, part, at)
    for _, label in ipairs(part.series.labels or {}) do
        local k = 2 * (label.part or 1) - 1
        local x1, y1, x2, y2 = at[k], at[k + 1], at[k + 2], at[k + 3]
        local share = label.share
        if not share then
            p:text(x1 + 4, y2 - 7, label[1], "small")
        else
            p:text(x1 + share * (x2 - x1) - 5, y1 + share * (y2 - y1) - 7,
                label[1], "small", "middle",
                atan((y2 - y1) / (x2 - x1)) * 180 / pi)
        end
    end
end

-- --- bars, boxes and segments -----------------------------------------------

local function draw_rects(p, f, part)
    for _, box in ipairs(part.rects) do
        local x1, y1 = place_inside(f, box[1], box[2])
        local x2, y2 = place_inside(f, box[3], box[4])
        local height = larger(y1, y2) - smaller(y1, y2)
        p:rect(smaller(x1, x2), smaller(y1, y2),
            larger(x1, x2) - smaller(x1, x2) -
                (part.series.edges and x2 - x1 > 4 and 1 or 0), height,
            part.is_hollow and "box s" .. part.ink or "f" .. part.ink, nil,
            part.series.kind == "bars" and
                note_of(f, part, box.middle, box[4]) or nil)
    end
end

local function draw_segments(p, f, part)
    for _, s in ipairs(part.segments) do
        local x1, y1 = place(f, s[1], s[2])
        local x2, y2 = place(f, s[3], s[4])
        p:line(x1, y1, x2, y2, "line s" .. part.ink)
    end
end

local function draw_levels(p, f, part)
    for _, level in ipairs(part.levels) do
        local list = {}
        for i, s in ipairs(level.segments) do
            local x1, y1 = place(f, s[1], s[2])
            local x2, y2 = place(f, s[3], s[4])
            list[i] = {x1, y1, x2, y2}
        end
        p:level(list, level.colour, scales.text(part.series.what, level.value))
    end
end

local TRIES = 40 -- places along a level where its number may stand

-- Is there room for a label in the frame that no other one takes?
local function is_free(f, taken, x, y, half)
    if x - half < f.left + 2 or x + half > f.right - 2 or y < f.top + 14 or
        y > f.bottom - 6 then
        return false
    end
    for _, other in ipairs(taken) do
        if abs(other[1] - x) < other[3] + half + 6 and
            abs(other[2] - y) < 16 then
            return false
        end
    end
    return true
end

-- What each level is, on its line where no other number is.
local function name_levels(p, f, part)
    local taken = {}
    for k, level in ipairs(part.levels) do
        local text = scales.text(part.series.what, level.value)
        local half, n = svg.width(text, 11) / 2, #level.segments
        for try = 0, smaller(TRIES, n) - 1 do
            -- from another place for each level, so that they do not line up
            local s = level.segments[(try * n // TRIES + k * n // 7) % n + 1]
            local x, y = place(f, (s[1] + s[3]) / 2, (s[2] + s[4]) / 2)
            if is_free(f, taken, x, y, half) then
                p:text(x, y + 4, text, "small", "middle")
                taken[#taken + 1] = {x, y, half}
                break
            end
        end
    end
end

-- --- images -----------------------------------------------------------------

local LEAST_CELL, MOST_GAP = 2, 8 -- what a cell takes; where they stand apart

-- Where a value lies among the image's colours, from 0 to 1.
local function share_of(image, value)
    return palette.share(value, image.low, image.high, image.log)
end

local function draw_cell(p, f, box, k)
    local image = f.image
    local value = image.values[k]
    if image.mask then
        if value ~= 0 then
            p:rect(box[1], box[2], box[3], box[4], "f1")
        end
        return
    end
    local text = image.texts and image.texts[k]
    local middle_x, middle_y = box[1] + box[3] / 2, box[2] + box[4] / 2 + 4
    if not is_number(value) or image.log and value <= 0 then
        if image.texts and not text then return end
        p:rect(box[1], box[2], box[3], box[4], "none")
        if not text then return end
        p:text(middle_x, middle_y, svg.width(text, 11) + 4 < box[3] and text or
            "×", "small soft", "middle")
        return
    end
    local note, share = image.notes and image.notes[k], share_of(image, value)
    p:rect(box[1], box[2], box[3], box[4], nil, palette.colour(share,
        image.is_two_sided), note and note .. ": " .. (text or ""))
    if text and svg.width(text, 11) + 4 < box[3] and box[4] > 13 then
        p:text(middle_x, middle_y, text, palette.is_light(share,
            image.is_two_sided) and "on-light small" or "on-dark small",
            "middle")
    end
end

local MOST_RECTS = 1600 -- cells that are shapes each; of more, one of pixels

-- The cells as bytes of red, green and blue, the first row at the top. What is
-- no number is grey.
local function rgb_of(image, up, back)
    local lines, bytes = {}, {}
    for t = 0, 255 do
        bytes[t] = gsub(sub(palette.colour(t / 255, image.is_two_sided), 2),
            "..", function(pair) return char(tonumber(pair, 16)) end)
    end
    local grey = char(160, 166, 175)
    for i = 1, image.rows do
        local line, from = {}, (up and image.rows - i or i - 1) * image.cols
        for j = 1, image.cols do
            local value = image.values[from + (back and image.cols + 1 - j or j)]
            local has_colour = is_number(value) and (value > 0 or not image.log)
            line[j] = has_colour and bytes[floor(255 * smaller(1, larger(0,
                share_of(image, value))) + 0.5)] or grey
        end
        lines[i] = concat(line)
    end
    return concat(lines)
end

-- Cells that would be too small are left out.
local function draw_image(p, f)
    local image = f.image
    local x1, y1 = place(f, image.left, image.bottom)
    local x2, y2 = place(f, image.right, image.top)
    local left, top = smaller(x1, x2), smaller(y1, y2)
    local width, height = larger(x1, x2) - left, larger(y1, y2) - top
    local cols = larger(1, smaller(image.cols, floor(width / LEAST_CELL)))
    local rows = larger(1, smaller(image.rows, floor(height / LEAST_CELL)))
    local dx, dy = width / cols, height / rows
    local gap = image.texts and smaller(dx, dy) > MOST_GAP and 1 or 0
    local up = (image.y1 <= image.y2) == (f.y.low < f.y.high)
    local back = (image.x1 <= image.x2) ~= (f.x.low < f.x.high)
    if not image.mask and not image.texts and rows * cols > MOST_RECTS then
        p:image(left, top, width, height, image.rows, image.cols,
            rgb_of(image, up, back))
        return
    end
    for i = 1, rows do
        local from = ((i - 1) * image.rows // rows) * image.cols
        local y = up and top + height - i * dy or top + (i - 1) * dy
        for j = 1, cols do
            local x = left + (back and cols - j or j - 1) * dx
            draw_cell(p, f, {x + gap, y, dx - gap + (image.texts and 0 or 0.2),
                dy - gap + (image.texts and 0 or 0.2)},
                from + (j - 1) * image.cols // cols + 1)
        end
    end
end

local function draw_colours(p, f)
    local image = f.image
    local x, height, steps = f.right + 18, f.bottom - f.top, 32
    local low, high, two_sided = image.low, image.high, image.is_two_sided
    local function value_at(t)
        return image.log and low * (high / low) ^ t or
            low * (1 - t) + high * t
    end
    for i = 0, steps - 1 do
        local share = two_sided and palette.share(value_at((i + 0.5) / steps),
            low, high) or (i + 0.5) / steps
        p:rect(x, f.bottom - (i + 1) * height / steps, 14,
            height / steps + 0.5, nil, palette.colour(share, two_sided))
    end
    if not image.what then
        local scale = image.log and low > 0 and scales.log(low, high, 5,
            {tight = true}) or scales.linear(low, high, 4, {tight = true})
        for _, tick in ipairs(scales.thinned(scale, height, function()
            return 14
        end, 2)) do
            p:text(x + 20, f.bottom - tick.at * height + 4.5, tick.text)
        end
        return
    end
    for _, t in ipairs{0, 0.5, 1} do
        p:text(x + 20, f.bottom - t * height + 4.5,
            scales.text(image.what, value_at(t), true))
    end
end

-- --- charts -----------------------------------------------------------------

-- Do series reach out of axes whose ends somebody said?
local function is_cut(f)
    for _, side in ipairs{"x", "y"} do
        local scale, range = f[side], f.parts.ranges[side]
        local low, high = smaller(scale.low, scale.high),
            larger(scale.low, scale.high)
        local room = (high - low) * 1e-9
        if range[1] < low - room or range[2] > high + room then return true end
    end
    return false
end

local function picture_of(chart, o, new)
    local f = frame.lay_out(chart, o)
    local p, limits = new(f.width, f.height), {}
    frame.draw(p, chart, f)
    if f.unit then p:text(f.right + 18, f.head, f.unit, "soft") end
    local cut = is_cut(f)
    if cut then
        p:cut(f.left, f.top, f.right - f.left, f.bottom - f.top)
    end
    if f.image then draw_image(p, f) end
    for _, part in ipairs(f.parts.list) do
        if part.series.limit then limits[part] = draw_limit(p, f, part) end
    end
    for _, part in ipairs(f.parts.list) do
        if part.rects then draw_rects(p, f, part) end
        if part.segments then draw_segments(p, f, part) end
        if part.levels then draw_levels(p, f, part) end
        if part.x and not part.series.limit then draw_path(p, f, part) end
    end
    draw_zero(p, f)
    if cut then p:uncut() end
    for _, part in ipairs(f.parts.list) do
        if part.levels then name_levels(p, f, part) end
    end
    if f.image and not f.image.mask then draw_colours(p, f) end
    for _, part in ipairs(f.parts.list) do
        if limits[part] then name_limit(p, part, limits[part]) end
    end
    return p
end

local TITLE = 36 -- above subplots
local NARROWEST = 280 -- of these, where nobody says how wide all are

-- How wide a chart is where nobody says it.
function vector_charts.width_of(chart)
    local most = 0
    for _, row in ipairs(chart.subplots or {}) do most = larger(most, #row) end
    return larger(WIDTH, NARROWEST * most)
end

local function subplots_of(chart, o, new)
    local width, height = o.width or vector_charts.width_of(chart), TITLE
    local placed = {}
    for _, row in ipairs(chart.subplots) do
        local wide, most = width / #row, 0
        for i, part in ipairs(row) do
            local p = picture_of(part, {width = wide,
                height = (o.height or HEIGHT) / #chart.subplots}, new)
            placed[#placed + 1] = {(i - 1) * wide, height, p}
            most = larger(most, p.height)
        end
        height = height + most
    end
    local notes = notes_of(chart, width - 2 * SPACE)
    local p = new(width, height + 20 * #notes)
    p:rect(0, 0, p.width, p.height, "paper", "#fff")
    for i, note in ipairs(notes) do
        p:text(SPACE, height + 20 * i - 8, note, "soft")
    end
    p:text(SPACE, 24, svg.cut(chart.title or "", width - 2 * SPACE, 15), "title")
    for _, part in ipairs(placed) do p:put(part[1], part[2], part[3]) end
    return p
end

-- The chart on a painter that new(width, height) makes. o: width, height.
function vector_charts.draw(chart, o, new)
    return (chart.subplots and subplots_of or picture_of)(chart, o, new)
end

return vector_charts
