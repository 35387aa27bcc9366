-- Charts in files, drawn by gnuplot: what heat, hist, spy and plot call for
-- {file = "p.png"}. Numbers and names go to gnuplot in a script of its own in
-- a temporary file; nothing of them stands in a command for the shell. The
-- picture comes back through a pipe, and the file is written here, whole or
-- not at all: gnuplot says nothing of a disk that is full.
local checks = require "lumat.checks"
local journal = require "lumat.journal"
local palette = require "lumat.palette"
local parts_of = require "lumat.chart_parts"
local scales = require "lumat.scales"
local svg = require "lumat.svg"
local texts = require "lumat.texts"
local error, ipairs, pcall, tostring, type = error, ipairs, pcall, tostring,
    type
local concat, huge, larger, smaller = table.concat, math.huge, math.max,
    math.min
local format, gsub, lower, match, sub = string.format, string.gsub,
    string.lower, string.match, string.sub
local io, os = io, os
local gnuplot = {}

local WIDTH, HEIGHT = 960, 640
local terminals = {png = "pngcairo", svg = "svg", pdf = "pdfcairo"}
-- how each ends: one that does not is not whole
local ends = {png = "IEND....$", svg = "</svg>%s*$", pdf = "%%%%EOF%s*$"}
-- pdf is measured in inches
local sizes = {png = "size 960,640", svg = "size 960,640", pdf = "size 10,6.7"}

-- As gnuplot reads it between single quotes, where nothing else is special and
-- a line ends the string.
local function quoted(text)
    return "'" .. gsub(gsub(text, "'", "''"), "%c", " ") .. "'"
end

-- Text in which gnuplot finds no markup.
local function plain(text)
    return quoted(text) .. " noenhanced"
end

local function number(x)
    if x ~= x or x == huge or x == -huge then return "NaN" end
    return format("%.9g", x)
end

-- The extension, which says what to draw.
local function extension_of(kind, file)
    local extension = lower(match(file, "%.(%w+)$") or "")
    if not terminals[extension] then
        checks.fail(kind, "%q: a picture's name ends in .png, .svg or .pdf",
            file)
    elseif match(file, "[%c]") then
        checks.fail(kind, "%q: a picture's name has no control characters",
            file)
    end
    return extension
end

-- --- the script -------------------------------------------------------------
-- A script s is a list of lines: first blocks of data, then settings, and
-- plots, the elements of its plot command.

local function new_script(first)
    return {plots = {}, blocks = first or 0}
end

local function say(s, shape, ...) s[#s + 1] = format(shape, ...) end

-- Adds a block of numbers, lists of them a line; an empty list is a gap. Gives
-- its name.
local function block(s, rows)
    local lines = {}
    for i, row in ipairs(rows) do
        local line = {}
        for k, x in ipairs(row) do line[k] = number(x) end
        lines[i] = concat(line, " ")
    end
    s.blocks = s.blocks + 1
    say(s, "$data%d << EOD\n%s\nEOD", s.blocks, concat(lines, "\n"))
    return "$data" .. s.blocks
end

-- What a series is called where the legend names it; once.
local function title_of(f, part)
    for _, named in ipairs(f.parts.legend) do
        if named == part and not f.titled[part] then
            f.titled[part] = true
            return "title " .. plain(part.name)
        end
    end
    return "notitle"
end

local function colour_of(part)
    return part.ink > 0 and palette.colours[part.ink] or "#1d2129"
end

local function plot(s, shape, ...)
    s.plots[#s.plots + 1] = format(shape, ...)
end

local function add_path(s, f, part)
    local x, y = parts_of.along(part, f.x)
    local rows = {}
    for i = 1, #x do rows[i] = {x[i], y[i]} end
    local name = block(s, rows)
    if part.joined then
        plot(s, "%s using 1:2 with lines lw 1.5 lc rgb '%s' %s", name,
            colour_of(part), title_of(f, part))
    end
    if part.marked then
        plot(s, "%s using 1:2 with points pt %d ps 0.9 lc rgb '%s' %s", name,
            ({7, 5, 9, 13, 6, 4, 8, 12})[part.ink], colour_of(part),
            title_of(f, part))
    end
end

local function add_rects(s, f, part)
    local rows = {}
    for i, box in ipairs(part.rects) do
        rows[i] = {(box[1] + box[3]) / 2, box[4], box[1], box[3], box[2], box[4]}
        if f.y.is_log and box[2] <= 0 then
            rows[i][5] = smaller(f.y.low, f.y.high)
        end
    end
    plot(s, "%s using 1:2:3:4:5:6 with boxxyerror lc rgb '%s' fs %s %s",
        block(s, rows), colour_of(part), part.is_hollow and "empty" or
        "solid 0.7 border", title_of(f, part))
end

local function add_segments(s, segments, colour, title)
    local rows = {}
    for _, segment in ipairs(segments) do
        rows[#rows + 1] = {segment[1], segment[2]}
        rows[#rows + 1] = {segment[3], segment[4]}
        rows[#rows + 1] = {}
    end
    plot(s, "%s using 1:2 with lines lw 1.5 lc rgb '%s' %s", block(s, rows),
        colour, title)
end

local function add_intervals(s, part)
    plot(s, "%s using 1:2:2:3 with yerrorbars pt -1 lc rgb '%s' notitle",
        block(s, part.intervals), colour_of(part))
end

local function add_failed(s, f, part)
    local rows, low = {}, f.y.low
    for i, x in ipairs(part.series.failed) do rows[i] = {x, low} end
    plot(s, "%s using 1:2 with points pt 2 lc rgb '%s' notitle", block(s, rows),
        colour_of(part))
end

local function palette_text(image)
    if image.mask then
        return format("(0 '%s', 1 '%s')\nunset colorbox", palette.colours[1],
            palette.colours[1])
    end
    local two_sided = palette.is_two_sided(image.low, image.high, image.log)
    local list = {}
    for i = 0, 8 do
        list[i + 1] = format("%d '%s'", i, palette.colour(i / 8, two_sided))
    end
    local low, high = image.low, image.high
    if two_sided then
        high = larger(-low, high)
        low = -high
    elseif low == high then
        low, high = low - 0.5, high + 0.5
    end
    return format("(%s)\nset cbrange [%.9g:%.9g]%s", concat(list, ", "), low,
        high, image.log and "\nset logscale cb" or "")
end

local function add_image(s, part)
    local image, rows = part.image, {}
    for i = 1, image.rows do
        local row = {}
        for j = 1, image.cols do
            local value = image.values[(i - 1) * image.cols + j]
            row[j] = not image.mask and value or value ~= 0 and 1 or 0 / 0
        end
        rows[i] = row
    end
    -- gnuplot draws no image of one row or column
    if image.cols == 1 then
        for _, row in ipairs(rows) do row[2] = row[1] end
    end
    if image.rows == 1 then rows[2] = rows[1] end
    local dx, dy = image.right - image.left, image.top - image.bottom
    local x, y = image.left, image.bottom
    dx, dy = dx / larger(2, image.cols), dy / larger(2, image.rows)
    if image.x1 > image.x2 then x, dx = image.right, -dx end
    if image.y1 > image.y2 then y, dy = image.top, -dy end
    say(s, "set palette defined %s", palette_text(image))
    if image.title then say(s, "set cblabel %s", plain(image.title)) end
    plot(s, "%s matrix using (%.17g+%.17g*$1):(%.17g+%.17g*$2):3 with image " ..
        "notitle", block(s, rows), x + dx / 2, dx, y + dy / 2, dy)
end

local function add_names(s, f, part)
    local x, y = parts_of.along(part, f.x)
    for _, label in ipairs(part.series.labels or {}) do
        local k, share = label.part or 1, label.share or 0
        say(s, "set label %s at %.9g,%.9g offset 0.5,0.7", plain(label[1]),
            f.x.is_log and x[k] * (x[k + 1] / x[k]) ^ share or
            x[k] + share * (x[k + 1] - x[k]), f.y.is_log and
            y[k] * (y[k + 1] / y[k]) ^ share or y[k] + share * (y[k + 1] - y[k]))
    end
end

-- --- axes -------------------------------------------------------------------

local function add_axis(s, side, scale, axis, ticks)
    local list, title = {}, axis.title
    for i, tick in ipairs(ticks) do
        list[i] = format("%s %.17g", quoted(tick.text), scales.value_at(scale, tick.at))
    end
    if scale.is_log then say(s, "set logscale %s", side) end
    say(s, "set %srange [%.17g:%.17g]", side, scale.low, scale.high)
    say(s, "set %stics out nomirror noenhanced (%s)", side, concat(list, ", "))
    if title or scale.unit then
        say(s, "set %slabel %s", side, plain(title and scale.unit and
            title .. ", " .. scale.unit or title or scale.unit))
    end
end

-- The notes in a line, or nil.
local function notes_of(chart)
    local notes = {}
    for i, note in ipairs(chart.notes or {}) do
        notes[i] = type(note) == "table" and "× " .. note[1] or note
    end
    return #notes > 0 and plain(concat(notes, " · ")) or nil
end

local function add_part(s, f, part)
    if part.image then add_image(s, part) end
    if part.rects then add_rects(s, f, part) end
    if part.segments then 
        add_segments(s, part.segments, colour_of(part), "notitle")
    end
    for _, level in ipairs(part.levels or {}) do
        add_segments(s, level.segments, level.colour,
            "title " .. plain(scales.text(part.series.what, level.value)))
    end
    if part.intervals and #part.intervals > 0 then add_intervals(s, part) end
    if part.x and #part.x > 0 or part.series.limit then add_path(s, f, part) end
    if part.series.limit then add_names(s, f, part) end
    if part.series.failed and #part.series.failed > 0 then
        add_failed(s, f, part)
    end
end

-- Adds one chart, whose picture takes a share of the width and the height.
local function add_chart(s, chart, columns, rows)
    local parts = parts_of.of(chart)
    local width, height = WIDTH / columns, HEIGHT / rows
    local f = {parts = parts, titled = {},
        x = parts:scale("x", larger(3, width // 75)),
        y = parts:scale("y", larger(3, height // 70))}
    s.plots = {}
    if chart.title then say(s, "set title %s", plain(chart.title)) end
    add_axis(s, "x", f.x, parts.x, scales.thinned(f.x, width - 100, svg.width,
        10))
    add_axis(s, "y", f.y, parts.y, scales.thinned(f.y, height - 100,
        function() return 14 end, 2))
    if chart.ratio then say(s, "set size ratio %.6g", chart.ratio) end
    if parts.list[1] and not parts.list[1].image then
        say(s, "set grid lc rgb '#dddddd'")
    end
    for _, part in ipairs(parts.list) do add_part(s, f, part) end
    local notes = notes_of(chart)
    if notes then
        say(s, "set bmargin 6\nset label %s at graph 0, graph 0 offset 0,-4.5",
            notes)
    end
    say(s, "plot %s", #s.plots > 0 and concat(s.plots, ", \\\n    ") or
        "NaN notitle")
end

-- The script that draws the chart, but for the terminal.
function gnuplot.script(chart)
    local s = new_script()
    if chart.subplots then
        local rows, columns, notes = #chart.subplots, 1, notes_of(chart)
        for _, row in ipairs(chart.subplots) do columns = larger(columns, #row) end
        say(s, "set multiplot layout %d,%d%s", rows, columns, chart.title and
            " title " .. plain(chart.title) or "")
        for _, row in ipairs(chart.subplots) do
            for i = 1, columns do
                say(s, "reset")
                if notes then
                    say(s, "set label %s at screen 0.02, screen 0.02", notes)
                    notes = nil
                end
                if row[i] then add_chart(s, row[i], columns, rows)
                else say(s, "set multiplot next") end
            end
        end
        say(s, "unset multiplot")
    else
        add_chart(s, chart, 1, 1)
    end
    return concat(s, "\n") .. "\n"
end

-- --- gnuplot ----------------------------------------------------------------

-- What a program printed when it came to its end without an error; else nil
-- and its code.
local function output_of(kind, command)
    local pipe, problem = io.popen(command, "r")
    if not pipe then
        checks.fail(kind, "no program can be started: %s", problem)
    end
    local text, why = pipe:read("a")
    local ok, _, code = pipe:close()
    if not text then error(why, 0) end
    if not ok then return nil, code end
    return text
end

-- The first line of what gnuplot said.
local function complaint(path)
    local file = io.open(path, "rb")
    local said = file and file:read("a") or ""
    if file then file:close() end
    return match(said, "line %d+: ([^\n]*)") or match(said, "[^\n]+")
end

-- The picture that gnuplot makes of the script; ending: the pattern of its end.
local function picture(kind, file, script, ending)
    local name, errors = os.tmpname(), os.tmpname()
    local ok, drawn, code = pcall(function()
        texts.write(kind, name, script)
        return output_of(kind, "gnuplot " .. name .. " 2>" .. errors)
    end)
    local said = complaint(errors)
    os.remove(name)
    os.remove(errors)
    if not ok then error(drawn, 0) end
    if code == 127 then
        checks.fail(kind, "needs gnuplot for %s: apt install gnuplot", file)
    elseif not drawn or not match(sub(drawn, -40), ending) then
        checks.fail(kind, "gnuplot could not draw %s: %s", file, said or
            not drawn and "it was stopped" or
            drawn == "" and "it gave no picture" or "it gave half of it")
    end
    return drawn
end

-- A stopped or failing gnuplot leaves the file that was there.
local function write(kind, file, chart)
    file = texts.path(file)
    local extension = extension_of(kind, file)
    if journal.is_safe() then
        checks.fail(kind, "--safe starts no other program, and %s needs gnuplot",
            file)
    end
    local script = gnuplot.script(chart)
    texts.write(kind, file, function()
        return picture(kind, file, concat {
            "set terminal ", terminals[extension], " ", sizes[extension],
            " enhanced background '#ffffff'\n", script, "set output\n"},
            ends[extension])
    end)
end

-- Draws the chart into the file; errors begin with "kind: ".
function gnuplot.draw(kind, file, chart)
    local ok, message = pcall(write, kind, file, chart)
    -- whoever asked for the picture says where that was
    if not ok then error((gsub(tostring(message), "^[%a_]+:%d+: ", "")), 0) end
    return checks.shown({file = file}, "wrote " .. file)
end

return gnuplot
