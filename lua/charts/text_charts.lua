-- Charts as text: dots in braille between marks that tell the series apart, or
-- plain characters where the terminal has no others; lines of bars; numbers
-- behind shades.
local canvas = require "lumat.canvas"
local checks = require "lumat.checks"
local labels = require "lumat.labels"
local palette = require "lumat.palette"
local parts_of = require "lumat.chart_parts"
local scales = require "lumat.scales"
local texts = require "lumat.texts"
local text_charts = {}
local ipairs, tostring, type = ipairs, tostring, type
local abs, floor, huge, larger, smaller = math.abs, math.floor, math.huge,
    math.max, math.min
local concat = table.concat
local format, gmatch, gsub, match, rep = string.format, string.gmatch,
    string.gsub, string.match, string.rep
local harmless, width_of = labels.lines.harmless, labels.width
local is_number = parts_of.is_number

local WIDEST, HEIGHT = 100, 16 -- where nobody says another
local LINES_A_TICK, COLUMNS_A_TICK = 4, 12
local LEAST_COLUMNS, LEAST_LINES = 4, 4
local LEVELS = 5 -- where nobody says how many

-- --- a line of text ---------------------------------------------------------

local function without_colours(text) return (gsub(text, "\27%[[%d;]*m", "")) end
text_charts.without_colours = without_colours

local function columns_of(text) return width_of(without_colours(text)) end

local function dim(o, text)
    return o.colour and text ~= "" and "\27[2m" .. text .. "\27[0m" or text
end

local function coloured(o, code, text)
    return o.colour and format("\27[%sm%s\27[0m", code, text) or text
end

-- Pieces behind one another, on a new line where one does not fit.
local function flow(pieces, width, margin, gap)
    local lines, line, used = {}, nil, 0
    for _, piece in ipairs(pieces) do
        local size = columns_of(piece)
        if line and used + gap + size <= width then
            line, used = line .. rep(" ", gap) .. piece, used + gap + size
        else
            lines[#lines + 1] = line
            line, used = rep(" ", margin) .. piece, margin + size
        end
    end
    lines[#lines + 1] = line
    return lines
end

local function add(lines, more)
    for _, line in ipairs(more) do lines[#lines + 1] = line end
end

-- --- axes -------------------------------------------------------------------

local function tick_width(ticks)
    local most = 1
    for _, tick in ipairs(ticks) do most = larger(most, width_of(tick.text)) end
    return most
end

-- line number -> label, one at a line.
local function labels_at(scale, height)
    local list = {}
    for _, tick in ipairs(scale.ticks) do
        local line = floor((1 - tick.at) * (4 * height - 1) + 0.5) // 4 + 1
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

-- The axis below with its ticks, and the labels, each in the middle below its
-- own.
local function bottom_axis(scale, columns, o)
    local axis, below = {}, {}
    for i = 1, columns do
        axis[i], below[i] = o.ascii and "-" or "─", " "
    end
    for _, tick in ipairs(scales.thinned(scale, columns - 1, width_of, 2)) do
        local at = floor(tick.at * (2 * columns - 1) + 0.5) // 2
        local size = width_of(tick.text)
        axis[at + 1] = o.ascii and "+" or "┬"
        put(below, larger(0, smaller(at - size // 2, columns - size)),
            tick.text)
    end
    return (o.ascii and "+" or "└") .. concat(axis),
        (gsub(concat(below), "%s+$", ""))
end

-- Cuts names so that all fit beside one another, if that leaves something of
-- them.
local FEWEST, SHORT = 3, 12 -- places of a name; where some are left out
local function fit_categories(scale, width)
    if scale.kind ~= "categories" then return end
    local room, list = width // #scale.ticks - 2, {}
    for i, tick in ipairs(scale.ticks) do list[i] = harmless(tick.text) end
    list = labels.fitted(list, room >= FEWEST and room or SHORT, width_of)
    for i, text in ipairs(list) do scale.ticks[i].text = text end
end

local function axis_name(axis, unit)
    if not axis.title then return unit and harmless(unit) or nil end
    return harmless(unit and axis.title .. ", " .. unit or axis.title)
end

-- --- parts on the canvas ----------------------------------------------------

-- Is every point of the part marked by itself?
local function is_marked(part, columns)
    return part.marked and part.count <= columns or part.count == 1
end

local function clamp(t) return t ~= t and 0 or smaller(larger(t, 0), 1) end

local function draw_box(d, box, ink, is_hollow)
    local x1, x2 = d.x.at(box[1]), d.x.at(box[3])
    local y1, y2 = d.y.at(box[2]), d.y.at(box[4])
    if not is_hollow then
        d.canvas:fill(clamp(x1), clamp(y1), clamp(x2), clamp(y2), ink)
        return
    end
    d.canvas:line(x1, y1, x2, y1, ink)
    d.canvas:line(x1, y2, x2, y2, ink)
    d.canvas:line(x1, y1, x1, y2, ink)
    d.canvas:line(x2, y1, x2, y2, ink)
end

local function draw_segments(d, segments, ink)
    for _, s in ipairs(segments or {}) do
        d.canvas:line(d.x.at(s[1]), d.y.at(s[2]), d.x.at(s[3]), d.y.at(s[4]),
            ink)
    end
end

local function draw_path(d, part)
    local x, y = parts_of.along(part, d.x)
    if part.joined and part.count ~= 1 or not is_marked(part, d.columns) then
        d.canvas:series(x, y, d.x, d.y, part.ink, part.joined)
    end
    if is_marked(part, d.columns) then
        for i = 1, #x do
            if is_number(x[i]) and is_number(y[i]) then
                d.canvas:mark(d.x.at(x[i]), d.y.at(y[i]), part.ink, part.ink)
            end
        end
    end
end

-- What draws the i-th level where there are no colours.
local function letter_of(i)
    return i <= 26 and string.char(96 + i) or "."
end

-- Levels have inks of their own behind those of the series.
local function draw_levels(d, part)
    for i, level in ipairs(part.levels or {}) do
        d.inks[#d.inks + 1] = not level.is_over and
            palette.code(level.colour) or nil
        if not level.is_over then d.letters[#d.inks] = letter_of(i) end
        draw_segments(d, level.segments, level.is_over and 0 or #d.inks)
    end
end

-- The cells of a mask.
local function draw_mask(d, part)
    local image = part.image
    local dx = (image.x2 - image.x1) / larger(1, image.cols - 1)
    local dy = (image.y2 - image.y1) / larger(1, image.rows - 1)
    local x, y = (image.right - image.left) / image.cols / 2,
        (image.top - image.bottom) / image.rows / 2
    for i = 1, image.rows do
        for j = 1, image.cols do
            if image.values[(i - 1) * image.cols + j] ~= 0 then
                local at_x = image.x1 + (j - 1) * dx
                local at_y = image.y1 + (i - 1) * dy
                draw_box(d, {at_x - x, at_y - y, at_x + x, at_y + y}, part.ink)
            end
        end
    end
end

local FAILED = palette.MOST + 1 -- number of the mark where points failed

local function draw_part(d, part)
    for _, box in ipairs(part.rects or {}) do
        draw_box(d, box, part.ink, part.is_hollow)
    end
    if part.image and part.image.mask then draw_mask(d, part) end
    draw_segments(d, part.segments, part.ink)
    if part.are_errors then
        for _, i in ipairs(part.intervals) do
            d.canvas:line(d.x.at(i[1]), d.y.at(i[2]), d.x.at(i[1]),
                d.y.at(i[3]), part.ink)
        end
    end
    draw_levels(d, part)
    if part.x or part.series.limit then draw_path(d, part) end
end

-- Where points failed, on the lowest line of the canvas, as far as it is free.
local function draw_failed(d, part)
    local failed = part.series.failed or {}
    for _, x in ipairs(#failed <= d.columns and failed or {}) do
        d.canvas:mark(d.x.at(x), 0, FAILED, part.ink, true)
    end
end

-- Which of the image's count cells, from edge first to edge last, lie at the n
-- places along a scale: a list of their numbers, and the place of the first;
-- places beside the image have none.
local function cells_along(n, scale, first, last, count)
    local list, from = {}, nil
    for k = 1, n do
        local share = (scales.value_at(scale, (k - 0.5) / n) - first) /
            (last - first)
        if share >= 0 and share < 1 then
            from = from or k
            list[#list + 1] = floor(share * count) + 1
        end
    end
    return list, from or 1
end

-- The lines of an image in colours or shades, as wide as the canvas.
local function image_lines(d, part, o)
    local image, lines, values = part.image, {}, {}
    local low, high = image.low, image.high
    local left, right = image.left, image.right
    local bottom, top = image.bottom, image.top
    if image.x1 > image.x2 then left, right = right, left end
    if image.y1 > image.y2 then bottom, top = top, bottom end
    -- two places a line, the first at the bottom
    local up, from_y = cells_along(2 * d.lines, d.y, bottom, top, image.rows)
    local across, from_x = cells_along(d.columns, d.x, left, right, image.cols)
    if #up % 2 == 1 then
        local at_end = from_y % 2 == 1
        table.insert(up, at_end and #up or 1, up[at_end and #up or 1])
        from_y = at_end and from_y or from_y - 1
    end
    if #up == 0 or #across == 0 then return lines end
    for i = #up, 1, -1 do
        for _, j in ipairs(across) do
            local value = image.values[(up[i] - 1) * image.cols + j]
            values[#values + 1] = image.log and
                palette.share(value, low, high, true) or value
        end
    end
    if image.log then low, high = 0, 1 end
    local line = d.lines - (from_y - 1 + #up) // 2
    for text in gmatch(canvas.image(values, #up, #across, low, high, #across,
        #up // 2, o.colour, o.ascii), "([^\n]*)\n") do
        line = line + 1
        lines[line] = rep(" ", from_x - 1) .. text
    end
    return lines
end

-- "low ░▒▓█ high": which colour is which number.
local SCALE = 10
local function colour_scale(image, o)
    local values = {}
    for i = 1, SCALE do
        local t = (i - 1) / (SCALE - 1)
        values[i] = image.low * (1 - t) + image.high * t
    end
    local bar = gsub(canvas.image(values, 1, SCALE, image.low, image.high,
        SCALE, 1, o.colour, o.ascii), "\n", "")
    return format("%s%s %s %s", image.title and harmless(image.title) .. " " or
        "", scales.text(image.what, image.low), bar,
        scales.text(image.what, image.high))
end

-- --- below the chart --------------------------------------------------------

-- Do the dots of the part say by their character which series they are of?
local function has_char(d, part, o)
    return not is_marked(part, d.columns) and
        (o.ascii or not o.colour and #d.parts.list > 1)
end

local function sample_of(d, part, o)
    return coloured(o, palette.codes[part.ink],
        is_marked(part, d.columns) and d.marks[part.ink] or
        has_char(d, part, o) and palette.plain_marks[part.ink] or
        o.ascii and "*" or "⠒⠒")
end

local function add_legend(lines, d, o, margin)
    local pieces = {}
    for i, part in ipairs(d.parts.legend) do
        pieces[i] = sample_of(d, part, o) .. " " .. harmless(part.name)
    end
    add(lines, flow(pieces, o.width, margin, 3))
end

-- What names the bounds, the colours and the levels.
local function add_names(lines, d, o)
    for _, part in ipairs(d.parts.list) do
        for _, label in ipairs(part.series.limit and part.series.labels or {}) do
            lines[#lines + 1] = format("  %s %s", o.ascii and "." or "⠉",
                harmless(label[1]))
        end
        if part.image and not part.image.mask then
            lines[#lines + 1] = "  " .. colour_scale(part.image, o)
        end
        local pieces = {}
        for i, level in ipairs(part.levels or {}) do
            pieces[i] = scales.text(part.series.what, level.value)
            if not level.is_over then
                pieces[i] = coloured(o, palette.code(level.colour), o.colour and
                    pieces[i] or letter_of(i) .. " " .. pieces[i])
            end
        end
        if #pieces > 0 then
            add(lines, flow({"levels " .. pieces[1],
                table.unpack(pieces, 2)}, o.width, 2, 2))
        end
    end
end

-- The notes as lines; cross: what stands where points failed.
local function notes_of(chart, cross)
    local notes = {}
    for i, note in ipairs(chart.notes or {}) do
        local is_failed = type(note) == "table"
        notes[i] = (is_failed and cross .. " " or "") ..
            harmless(is_failed and note[1] or note)
    end
    return notes
end

local function add_notes(lines, chart, o)
    for _, note in ipairs(notes_of(chart, o.ascii and "!" or "×")) do
        lines[#lines + 1] = "  " .. note
    end
end

-- --- a chart with axes ------------------------------------------------------

-- What every ink's dots are drawn as, where they are no dots.
local function chars_of(d, o)
    local chars = {[0] = o.ascii and "." or nil}
    for _, part in ipairs(d.parts.list) do
        if part.ink > 0 then
            chars[part.ink] = has_char(d, part, o) and
                palette.plain_marks[part.ink] or o.ascii and "." or nil
        end
    end
    for ink = palette.MOST + 1, #d.inks do
        chars[ink] = not o.colour and d.letters[ink] or o.ascii and "." or nil
    end
    return chars
end

-- The characters of a line, each with the codes of its colours before it.
local function cells_of(line)
    local cells, codes, at = {}, "", 1
    while at <= #line do
        local code = match(line, "^\27%[[%d;]*m", at)
        if code then
            codes = code == "\27[0m" and "" or codes .. code
            at = at + #code
        else
            local c = match(line, utf8.charpattern, at)
            cells[#cells + 1] = codes ~= "" and codes .. c .. "\27[0m" or c
            at = at + #c
        end
    end
    return cells
end

-- What is drawn over an image, and the image where nothing is.
local function laid_over(row, behind)
    local above, cells = cells_of(row), cells_of(behind)
    for i, c in ipairs(above) do
        if without_colours(c) ~= " " or not cells[i] then cells[i] = c end
    end
    return concat(cells)
end

local function rows_of(d, o)
    local rows, image = {}, nil
    local chars = chars_of(d, o)
    for _, part in ipairs(d.parts.list) do
        image = part.image and not part.image.mask and
            image_lines(d, part, o) or image
    end
    for line = 1, d.lines do
        local row = d.canvas:row(line, d.marks, o.colour and d.inks or nil,
            chars)
        local behind = image and image[line] or ""
        rows[line] = behind == "" and row or row == "" and behind or
            laid_over(row, behind)
    end
    return rows
end

local function draw_axes(chart, o)
    local parts = parts_of.of(chart, LEVELS)
    local lines = larger(o.height or HEIGHT, LEAST_LINES)
    local y = parts:scale("y", lines // LINES_A_TICK + 1)
    local gutter = tick_width(y.ticks) + 1
    local columns = larger(o.width - gutter - 2, LEAST_COLUMNS)
    local x = parts:scale("x", columns // COLUMNS_A_TICK + 1)
    fit_categories(x, columns)
    local d = {parts = parts, x = x, y = y, columns = columns, lines = lines,
        canvas = canvas.new(columns, lines), inks = {}, marks = {},
        letters = {}}
    for i, mark in ipairs(o.ascii and palette.plain_marks or palette.marks) do
        d.marks[i], d.inks[i] = mark, palette.codes[i]
    end
    d.marks[FAILED] = o.ascii and "!" or "×"
    for _, part in ipairs(parts.list) do draw_part(d, part) end
    for _, part in ipairs(parts.list) do draw_failed(d, part) end
    local out = {chart.title and harmless(chart.title)}
    out[#out + 1] = axis_name(parts.y, y.unit)
    local beside = labels_at(y, lines)
    for i, row in ipairs(rows_of(d, o)) do
        local label = beside[i] or ""
        out[#out + 1] = dim(o, rep(" ", gutter - width_of(label)) .. label ..
            (beside[i] and (o.ascii and " +" or " ┤") or
                o.ascii and " |" or " │")) .. row
    end
    local axis, below = bottom_axis(x, columns, o)
    out[#out + 1] = rep(" ", gutter + 1) .. dim(o, axis)
    out[#out + 1] = rep(" ", gutter + 2) .. dim(o, below)
    local name = axis_name(parts.x, x.unit)
    if name then
        out[#out + 1] = rep(" ", gutter + 2 +
            larger(0, (columns - width_of(name)) // 2)) .. name
    end
    add_legend(out, d, o, gutter + 2)
    add_names(out, d, o)
    add_notes(out, chart, o)
    return concat(out, "\n"), y
end

-- --- lines of bars ----------------------------------------------------------

local eighths = {"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}

-- A bar for a share of 0 .. 1 of so many columns.
local function bar(share, columns, ascii)
    local n = floor(share * columns * 8 + 0.5)
    if share > 0 and n == 0 then n = 1 end
    if ascii then return rep("#", (n + 7) // 8) end
    return rep("█", n // 8) .. (eighths[n % 8] or "")
end

-- A count with its digits in threes, another number in few.
local function amount(y)
    if not is_number(y) or y ~= floor(y) then
        return checks.figure("%.4g", y)
    end
    local text, n = format("%.0f", y), 1
    while n > 0 do text, n = gsub(text, "^(-?%d+)(%d%d%d)", "%1 %2") end
    return text
end

-- Digits with which neighbouring edges differ, and how far these are apart at
-- least: huge of a single one.
local function edge_digits(edges)
    local most, least = 0, huge
    for i = 1, #edges do
        most = larger(most, abs(edges[i]))
        if i > 1 then least = smaller(least, edges[i] - edges[i - 1]) end
    end
    local apart = least > 0 and least < huge and most / least or 1
    local digits = apart > 0 and apart < huge and
        math.ceil(math.log(apart, 10)) + 2 or 3
    return smaller(larger(digits, 3), 17), least
end

-- The texts that stand before the bars.
local function bar_labels(chart, s, o)
    local list, names = {}, chart.x and chart.x.labels
    local at = s.edges or s.x or {}
    local digits, least = edge_digits(at)
    local function edge(i)
        local x = at[i]
        if least < huge and abs(x) < least * 1e-9 then x = 0 end
        return format("%." .. digits .. "g", x == 0 and 0 or x)
    end
    local widest = 0
    for i = 1, #at do widest = larger(widest, #edge(i)) end
    local lead = o.width < 40 and " " or "  "
    for i = 1, #s.y do
        if names or #at == 0 then
            list[i] = "  " .. harmless(names and names[i] or tostring(i)) .. " "
        elseif not s.edges or #s.edges == 2 then
            list[i] = format("  %" .. widest .. "s ", edge(i))
        else
            list[i] = format("%s%" .. widest .. "s ", lead, edge(i))
            if o.width >= 40 then
                list[i] = list[i] .. format("%s %" .. widest .. "s ",
                    o.ascii and ".." or "…", edge(i + 1))
            end
        end
    end
    return list
end

-- One series of bars: each a line, the number behind it.
local function draw_bars(chart, s, o)
    local before, most, widest, longest = bar_labels(chart, s, o), 0, 0, 0
    local numbers, out = {}, {}
    for i = 1, #s.y do
        if is_number(s.y[i]) then most = larger(most, s.y[i]) end
        numbers[i] = amount(s.y[i])
        longest = larger(longest, #numbers[i])
        widest = larger(widest, width_of(before[i]))
    end
    out[1] = chart.title and harmless(chart.title)
    local room = larger(1, o.width - widest - longest - 3)
    for i = 1, #s.y do
        local share = most > 0 and is_number(s.y[i]) and s.y[i] / most or 0
        out[#out + 1] = dim(o, rep(" ", widest - width_of(before[i])) ..
            before[i]) .. (o.ascii and "|" or "│") ..
            bar(share, room, o.ascii) .. " " .. numbers[i]
    end
    add(out, flow(notes_of(chart, o.ascii and "!" or "×"), o.width, 2, 4))
    return concat(out, "\n")
end

-- --- numbers behind shades --------------------------------------------------

local shades = {"░", "▒", "▓", "█"}
local plain_shades = {".", "-", "+", "#"}

local function shade_of(image, value, ascii)
    local list = ascii and plain_shades or shades
    local t = palette.share(value, image.low, image.high, image.log)
    return list[larger(1, smaller(#list, 1 + floor(t * #list)))]
end

-- An image whose cells have texts: these in a table, each behind its shade.
local function draw_table(chart, s, o)
    local x, y = chart.x or {}, chart.y or {}
    local image = parts_of.of(chart).list[1].image
    local lines, head = {}, {(y.title or "") .. " \\ " .. (x.title or "")}
    for j = 1, s.cols do
        head[j + 1] = x.labels and x.labels[j] or tostring(j)
    end
    lines[1] = head
    for k = 1, s.rows do
        local i = y.reversed and k or s.rows + 1 - k
        local line = {y.labels and y.labels[i] or tostring(i)}
        for j = 1, s.cols do
            local at = (i - 1) * s.cols + j
            local text, value = s.texts[at], s.values[at]
            line[j + 1] = not text and "." or value ~= value and text:upper() or
                shade_of(image, value, o.ascii) .. " " .. text
        end
        lines[#lines + 1] = line
    end
    local out, unit = {}, s.what and s.what.unit
    out[1] = chart.title and harmless(chart.title .. (unit and ", " .. unit or
        ""))
    add(out, labels.lines.aligned(lines, {true}, 1, o.width))
    add_notes(out, chart, o)
    return concat(out, "\n")
end

-- --- charts beside one another ----------------------------------------------

local function lines_in(text)
    local lines = {}
    for line in gmatch(text .. "\n", "([^\n]*)\n") do lines[#lines + 1] = line end
    return lines
end

local GAP, NARROWEST, LOWEST = 2, 24, 8

-- Rows of which a chart would be too narrow become charts below one another.
local function rows_that_fit(subplots, width)
    local rows = {}
    for _, row in ipairs(subplots) do
        if #row == 1 or (width - GAP * (#row - 1)) // #row >= NARROWEST then
            rows[#rows + 1] = row
        else
            for _, part in ipairs(row) do rows[#rows + 1] = {part} end
        end
    end
    return rows
end

local function draw_subplots(chart, o)
    local out = {chart.title and harmless(chart.title)}
    local height = o.height and larger(LOWEST, o.height // #chart.subplots)
    for _, row in ipairs(rows_that_fit(chart.subplots, o.width)) do
        local width, cells, most = (o.width - GAP * (#row - 1)) // #row, {}, 0
        for i, part in ipairs(row) do
            cells[i] = lines_in(text_charts.draw(part, {width = width,
                height = height, ascii = o.ascii, colour = o.colour}))
            for n, line in ipairs(cells[i]) do
                -- titles and notes have no colours
                if columns_of(line) > width and line == without_colours(line) then
                    cells[i][n] = labels.cut(line, width, width_of, o.ascii and
                        "~")
                end
            end
            most = larger(most, #cells[i])
        end
        for n = 1, most do
            local line = {}
            for i, cell in ipairs(cells) do
                local text = cell[n] or ""
                line[i] = text .. rep(" ", i < #cells and
                    width - columns_of(text) or 0)
            end
            out[#out + 1] = (gsub(concat(line, rep(" ", GAP)), "%s+$", ""))
        end
    end
    add_notes(out, chart, o)
    return concat(out, "\n")
end

-- --- any chart --------------------------------------------------------------

local function styled(o)
    local width, ascii, colour = texts.style()
    local function either(asked, otherwise)
        if asked == nil then return otherwise end
        return asked
    end
    return {width = larger(o.width or smaller(width > 0 and width or 80,
        WIDEST), 10), height = o.height, ascii = either(o.ascii, ascii),
        colour = either(o.colour, colour)}
end

-- Is nothing of the list below 0?
local function none_below(list)
    local is_list = type(list) == "table" or type(list) == "userdata"
    for i = 1, is_list and #list or 0 do
        if list[i] < 0 then return false end
    end
    return is_list
end

local MOST_BARS = 40 -- that are a line each

-- Does nobody ask for axes that bars of a line each have not?
local function needs_no_axes(chart)
    for _, axis in ipairs{chart.x or {}, chart.y or {}} do
        if axis.title or axis.low or axis.high or axis.dates or
            axis.scale == "log" then
            return false
        end
    end
    return true
end

-- The text of a chart, and the scale of its y axis if it has one. Of one series
-- of bars, none below 0, each bar is a line; an image whose cells have texts is a table.
function text_charts.draw(chart, o)
    o = styled(o)
    local first = chart.series and #chart.series == 1 and chart.series[1] or {}
    if chart.subplots then return draw_subplots(chart, o) end
    if first.kind == "bars" and none_below(first.y) and
        #first.y <= (first.edges and 100 or MOST_BARS) and
        needs_no_axes(chart) then
        return draw_bars(chart, first, o)
    end
    if first.texts then return draw_table(chart, first, o) end
    return draw_axes(chart, o)
end

return text_charts
