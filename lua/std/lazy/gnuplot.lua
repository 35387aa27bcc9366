-- Pictures in files, drawn by gnuplot: what heat, hist, spy and plot call for
-- {file = "p.png"}. Numbers and titles go to gnuplot in a script of its own in
-- a temporary file; nothing of them stands in a command for the shell. The
-- picture comes back through a pipe, and the file is written here, whole or
-- not at all: gnuplot says nothing of a disk that is full.
local checks = require "lumat.checks"
local texts = require "lumat.texts"
local error, ipairs, pcall = error, ipairs, pcall
local select, tostring = select, tostring
local concat, huge, larger = table.concat, math.huge, math.max
local format, gsub, lower, match, sub = string.format, string.gsub,
    string.lower, string.match, string.sub
local journal = require "lumat.journal"
local io, os = io, os

local terminals = {png = "pngcairo", svg = "svg", pdf = "pdfcairo"}
-- how each ends: one that does not is not whole
local ends = {png = "IEND....$", svg = "</svg>%s*$", pdf = "%%%%EOF%s*$"}
-- pdf is measured in inches
local sizes = {png = "size 960,640", svg = "size 960,640", pdf = "size 10,6.7"}

-- As gnuplot reads it between single quotes, where nothing else is special.
local function quoted(text)
    return "'" .. gsub(text, "'", "''") .. "'"
end

-- A title in which gnuplot finds no markup.
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

-- --- what each kind draws --------------------------------------------------

local draw = {}

-- A grid of numbers as gnuplot reads them: one row of the matrix a line.
local function grid(data, of)
    local lines, values = {}, data.values
    for p = 1, data.rows do
        local line = {}
        for q = 1, data.cols do
            line[q] = of(values[(p - 1) * data.cols + q])
        end
        lines[p] = concat(line, " ")
    end
    return concat(lines, "\n")
end

-- Axes that count rows down and columns across, as matrices do; blocks of a
-- larger matrix stand at their middles.
local function matrix_axes(data)
    local down, across = data.m / data.rows, data.n / data.cols
    return format([[
set xrange [0.5:%d.5]
set yrange [%d.5:0.5]
set size ratio %.6g
set tics out nomirror
across(q) = (q + 0.5) * %.17g + 0.5
down(p) = (p + 0.5) * %.17g + 0.5
]], data.n, data.m, data.m / data.n > 4 and 1 or data.m / data.n < 0.25 and
        0.25 or data.m / data.n, across, down)
end

function draw.heat(data)
    local low, high = 0, 0
    for _, x in ipairs(data.values) do
        if x == x and x < low and x > -huge then low = x end
        if x == x and x > high and x < huge then high = x end
    end
    low, high = data.low or low, data.high or high
    local palette = low < 0 and high > 0 and format(
        "set palette defined (-1 '#3b4cc0', 0 '#dddddd', 1 '#b40426')\n" ..
        "set cbrange [%.9g:%.9g]\n", -larger(-low, high),
        larger(-low, high)) or
        "set palette defined (0 '#440154', 1 '#472c7a', 2 '#3b518b', " ..
        "3 '#2c718e', 4 '#21908d', 5 '#27ad81', 6 '#5cc863', 7 '#aadc32', " ..
        "8 '#fde725')\n" ..
        (data.low and data.high and
            format("set cbrange [%.9g:%.9g]\n", low, high) or "")
    return matrix_axes(data) .. palette .. "$data << EOD\n" ..
        grid(data, number) .. "\nEOD\n" ..
        "plot $data matrix using (across($1)):(down($2)):3 with image notitle\n"
end

function draw.spy(data)
    local function is_set(x) return x ~= 0 and "1" or "NaN" end
    return matrix_axes(data) .. "unset colorbox\n" ..
        "set palette defined (0 '#1f4e9c', 1 '#1f4e9c')\n" ..
        "$data << EOD\n" .. grid(data, is_set) .. "\nEOD\n" ..
        "plot $data matrix using (across($1)):(down($2)):3 with image notitle\n"
end

function draw.hist(edges, counts)
    local lines = {}
    for i, count in ipairs(counts) do
        lines[i] = format("%.17g %d %.17g", (edges[i] + edges[i + 1]) / 2,
            count, edges[i + 1] - edges[i])
    end
    return "set style fill solid 0.7 border\nset yrange [0:*]\n" ..
        "set tics out nomirror\n$data << EOD\n" .. concat(lines, "\n") ..
        "\nEOD\nplot $data using 1:2:3 with boxes notitle\n"
end

function draw.plot(series)
    local blocks, plots = {}, {}
    for i, line in ipairs(series) do
        local points = {}
        for k, x in ipairs(line.x) do
            points[k] = number(x) .. " " .. number(line.y[k])
        end
        blocks[i] = format("$line%d << EOD\n%s\nEOD\n", i,
            concat(points, "\n"))
        plots[i] = format("$line%d using 1:2 with lines lw 1.5 %s", i,
            #series > 1 and format("title 'column %d'", i) or "notitle")
    end
    return concat(blocks) .. "set grid lc rgb '#dddddd'\n" ..
        "set tics out nomirror\nset autoscale xfix\nplot " .. concat(plots, ", ") .. "\n"
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
local function write(kind, file, title, script)
    file = texts.path(file)
    local extension = extension_of(kind, file)
    if journal.is_safe() then
        checks.fail(kind, "--safe starts no other program, and %s needs gnuplot",
            file)
    end
    texts.write(kind, file, function()
        return picture(kind, file, concat {
            "set terminal ", terminals[extension], " ", sizes[extension],
            " enhanced background '#ffffff'\n",
            title ~= "" and "set title " .. plain(title) .. "\n" or "",
            "set linetype 1 lc rgb '#1f6fb2'\nset linetype 2 lc rgb '#e07b1a'\n",
            script, "set output\n"}, ends[extension])
    end)
end

local gnuplot = {}

function gnuplot.draw(kind, file, ...)
    local n = select("#", ...)
    local title = select(n, ...)
    local ok, message = pcall(write, kind, file, title, draw[kind](...))
    -- whoever asked for the picture says where that was
    if not ok then error((gsub(tostring(message), "^%a+:%d+: ", "")), 0) end
    return checks.shown({file = file}, "wrote " .. file)
end

return gnuplot
