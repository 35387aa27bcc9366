-- What hist, heat and spy show of matrices, as charts. C made the passes
-- over the elements; heat maps in the terminal it draws itself, as it must
-- while an entry runs (watch). Errors begin with the kind.
local charts = require "lumat.charts"
local chart_values = require "lumat.chart_values"
local checks = require "lumat.checks"
local plotting = require "lumat.plotting"
local matrix_charts = {}
local ipairs, pcall = ipairs, pcall
local larger = math.max
local format = string.format

local describe = {}

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
    local ratio = data.m / data.n
    local s = {kind = "image", rows = data.rows, cols = data.cols,
        values = data.values}
    local chart = {title = data.title, series = {s},
        ratio = ratio > STEEPEST and 1 or larger(ratio, FLATTEST)}
    plotting.lay_image(chart, s, data.m, data.n)
    return chart, s
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

local function draw(kind, data, o)
    local chart = describe[kind](data, o)
    chart_values.check_sizes(kind, o)
    if o.file and kind ~= "hist" then
        return charts.file(kind, chart, o.file, {dark = o.dark})
    end
    o = checks.copied(o)
    plotting.dress(kind, chart, o)
    return chart_values.shown(kind, chart, o, {edges = data.edges,
        counts = data.counts})
end

-- What hist gives, and what shows that a picture of any kind went into o.file.
function matrix_charts.draw(kind, data, o)
    local ok, picture = pcall(draw, kind, data, o)
    if not ok then checks.raise_again(picture) end
    return picture
end

return matrix_charts
