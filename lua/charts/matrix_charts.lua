-- What plot, hist, heat and spy show of matrices, as charts. C made the passes
-- over the elements; heat maps in the terminal it draws itself, as it must
-- while an entry runs (watch). Errors begin with the kind.
local canvas = require "lumat.canvas"
local charts = require "lumat.charts"
local checks = require "lumat.checks"
local text_charts = require "lumat.text_charts"
local matrix_charts = {}
local ipairs, tostring = ipairs, tostring
local huge, larger, smaller = math.huge, math.max, math.min
local error, format, gsub, pcall = error, string.format, string.gsub, pcall

local describe = {}

-- --- plot -------------------------------------------------------------------

-- The options' range, which holds beside that of the points.
local function check_range(data, o)
    if not (o.low or o.high) then return end
    local low, high = huge, -huge
    for _, s in ipairs(data) do
        local _, _, y1, y2 = canvas.spread(s.x, s.y)
        if y1 then low, high = smaller(low, y1), larger(high, y2) end
    end
    low, high = o.low or low, o.high or high
    if not (low <= high and low > -huge and high < huge) then
        checks.fail("plot", "%s to %s is no range", checks.figure("%.5g", low),
            checks.figure("%.5g", high))
    end
end

-- data: {x, y} of each line, and `columns`, how many the matrix has.
function describe.plot(data, o)
    local chart = {x = {tight = true}, y = {low = o.low, high = o.high},
        series = {}}
    check_range(data, o)
    for i, line in ipairs(data) do
        chart.series[i] = {kind = "line", x = line.x, y = line.y,
            name = #data > 1 and "column " .. i or nil}
    end
    if data.columns > #data then
        chart.notes = {format("the first %d of %d columns", #data, data.columns)}
    end
    return chart
end

-- --- hist -------------------------------------------------------------------

-- data: edges, counts, title; are_whole: each bin is a number; nan, inf,
-- outside: how many elements are in none.
function describe.hist(data)
    local notes, s = {}, {kind = "bars", y = data.counts}
    for _, note in ipairs{{"nan", "%d NaN left out"}, {"inf", "%d Inf left out"},
        {"outside", "%d outside the range"}} do
        local count = data[note[1]]
        if count > 0 then notes[#notes + 1] = format(note[2], count) end
    end
    if data.are_whole then
        s.x, s.width = {}, 1
        for i = 1, #data.counts do s.x[i] = data.edges[i] end
    else
        s.edges = data.edges
    end
    return {title = data.title, series = {s}, notes = notes, x = {tight = true}}
end

-- --- heat and spy -----------------------------------------------------------

local STEEPEST, FLATTEST = 4, 0.25 -- where a picture keeps the matrix's shape

-- data: values, one of each of rows x cols blocks of an m x n matrix; title.
local function blocks(data)
    local down, across = data.m / data.rows, data.n / data.cols
    local ratio = data.m / data.n
    local s = {kind = "image", rows = data.rows, cols = data.cols,
        values = data.values,
        x = {0.5 * across + 0.5, (data.cols - 0.5) * across + 0.5},
        y = {0.5 * down + 0.5, (data.rows - 0.5) * down + 0.5}}
    return {title = data.title, x = {low = 0.5, high = data.n + 0.5,
            whole = true},
        y = {low = 0.5, high = data.m + 0.5, whole = true,
            reversed = true}, series = {s},
        ratio = ratio > STEEPEST and 1 or larger(ratio, FLATTEST)}, s
end

function describe.heat(data, o)
    local chart, s = blocks(data)
    s.low, s.high = o.low, o.high
    return chart
end

function describe.spy(data)
    local chart, s = blocks(data)
    s.mask = true
    return chart
end

-- --- drawing ----------------------------------------------------------------

-- What a picture's value has beside its text.
local fields = {}

function fields.plot(_, scale)
    return {low = scale.low, high = scale.high}
end

function fields.hist(data)
    return {edges = data.edges, counts = data.counts}
end

local function draw(kind, data, o, style)
    local chart = describe[kind](data, o)
    if o.file then return charts.file(kind, chart, o.file) end
    local coloured, scale = text_charts.draw(chart, style)
    local picture = fields[kind](data, scale)
    picture.coloured, picture.text = coloured, coloured
    if style.colour and #chart.series > 1 then
        -- without colours marks tell the series apart
        style.colour = false
        picture.text = text_charts.draw(chart, style)
    elseif style.colour then
        picture.text = gsub(coloured, "\27%[[%d;]*m", "")
    end
    return picture
end

-- The picture of a kind: a table with `coloured` and `text`, what it is with
-- colours and without; or what shows that it went into o.file.
function matrix_charts.draw(kind, data, o, style)
    local ok, picture = pcall(draw, kind, data, o, style)
    -- whoever asked for it says where that was
    if not ok then error((gsub(tostring(picture), "^[%a_]+:%d+: ", "")), 0) end
    return picture
end

return matrix_charts
