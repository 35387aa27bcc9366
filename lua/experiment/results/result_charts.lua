-- Charts of an experiment: what is drawn; how, lua/charts knows. Here a chart is
--   kind      "lines", "heat" or "roofline"
--   title, x, y   axes {title, name, log, labels of categories, what}
--   series    {name, points {x, y, low, high}, failed {x …}, gaps {x …}} each:
--             no line leads over a gap
--   joined    whether lines lead from point to point
--   cells     of a heat map: [row][column] = {value, text, has_less} or
--             {failed, status}
--   failed, skipped, lacking   how many points have no place
--   roofs     of a roofline: {name, flops, bytes}
--   left_out  how many series are not drawn
local checks = require "lumat.checks"
local texts = require "lumat.texts"
local data = require "lumat.chart_data"
local columns = require "lumat.columns"
local sources = require "lumat.sources"
local drawers = require "lumat.charts"
local text_lines = require "lumat.labels".lines
local charts = {}
local _G, io, ipairs, next, type = _G, io, ipairs, next, type
local format, match = string.format, string.match
local huge = math.huge

-- --- plot -------------------------------------------------------------------

-- The axis with numbers that has most values, else the one that has most.
local function natural_x(source, rows)
    local best, most, best_numeric
    for _, name in ipairs(source.axes) do
        local place, values = data.places_of(source, rows, name)
        local numeric = not place
        if not best or numeric and not best_numeric or
            numeric == best_numeric and #values > most then
            best, most, best_numeric = name, #values, numeric
        end
    end
    return best
end

-- What a kind has no use for, and what to write instead.
local unused = {
    lines = {value = "a heat map has it, with x and y; lines have y = \"rate\""},
    heat = {by = "a heat map has no series; where = chooses points, stat = " ..
        "merges those of a cell"},
    roofline = {x = "a roofline has flops a byte along it",
        y = "a roofline has the rate along it", value = "a roofline has none",
        log = "both axes of a roofline are logarithmic"},
}
local logs = {lines = {"^[xy]*$", '"x", "y", "xy" or ""'},
    heat = {"^v?$", '"v", its value, or ""'}}

local function check_use(o)
    for _, name in ipairs{"by", "value", "x", "y", "log"} do
        local why = o[name] ~= nil and unused[o.kind][name]
        if why then
            checks.fail("plot", "%s is not used: %s", name, why)
        end
    end
    local allowed = type(o.log) == "string" and logs[o.kind]
    if allowed and not match(o.log, allowed[1]) then
        checks.fail("plot", "log is %s, expected %s%s", checks.brief(o.log),
            allowed[2], o.kind == "heat" and "" or
                '; of a heat map "v", its value')
    elseif o.kind == "heat" and o.height and not o.file and
        not o.is_part then
        checks.fail("plot", "height is not used: a heat map as text has a " ..
            "line for each value of y; file = draws a picture")
    end
end

local function checked(source, rows, options, is_part)
    local o = {is_part = is_part}
    for name, value in next, options do o[name] = value end
    for _, name in ipairs{"width", "height"} do
        if o[name] and not (o[name] >= 1 and o[name] < huge) then
            checks.fail("plot", "%s is %s, expected a number from 1 on", name,
                checks.brief(o[name]))
        end
    end
    o.kind = o.kind or (o.value and "heat") or "lines"
    check_use(o)
    o.x = o.x or natural_x(source, rows)
    for _, name in ipairs(type(o.by) == "table" and o.by or {o.by}) do
        sources.check_axis("plot", "by", source, name)
    end
    if o.kind == "heat" then
        if not (o.y and o.value) then
            checks.fail("plot", "a heat map needs x and y, both axes, and " ..
                "value, a figure")
        end
        sources.check_axis("plot", "x", source, o.x)
        sources.check_axis("plot", "y", source, o.y)
        if o.x == o.y then
            checks.fail("plot", "x and y are both %s, expected two axes", o.x)
        end
        columns.check_name("plot", "value", source, o.value)
    else
        o.y = o.y or columns.has(rows, "rate") and "rate" or "median"
        columns.check_name("plot", "x", source, o.x)
        columns.check_name("plot", "y", source, o.y)
        o.y = columns.one_rate(rows, o.y)
    end
    o.value = o.value and columns.one_rate(rows, o.value)
    return o
end

-- The chart has no place: raises where the figure takes what nobody gave, else
-- gives a line that says so.
local function without_points(source, rows, o)
    local figure, failed = o.value or o.y, 0
    local lacking = columns.lacking(rows, figure)
    local text = format("no point has %s and %s to draw", columns.title(o.x),
        columns.title(figure))
    if lacking then checks.fail("plot", "%s: %s", text, lacking) end
    for _, row in ipairs(rows) do
        if not columns.is_good(row) then failed = failed + 1 end
    end
    return sources.told(source, text .. (failed > 0 and
        format(": %d of %d failed", failed, #rows) or ""))
end

-- The chart that options ask for, and these with what they leave open; or nil
-- and a line that says why there is nothing to draw. is_part: of a page.
function charts.build(e, options, is_part)
    options = checks.options("experiment.plot", options)
    local source = sources.source("plot", e)
    local rows = sources.filtered("plot", source, options.where)
    local o = checked(source, rows, options, is_part)
    if #rows == 0 then return nil, sources.nothing(source, "draw") end
    if not columns.any_good(rows) then
        return nil, sources.told(source, "nothing to draw: " ..
            columns.none_worked(source, rows))
    end
    local chart = data[o.kind](source, rows, o)
    if o.kind ~= "heat" and #data.all(chart, "y") == 0 or chart.low == huge then
        return nil, without_points(source, rows, o)
    end
    chart.shares = data.shares(rows, o)
    chart.plain_title = chart.title
    chart.title = o.title or sources.told(source, chart.title)
    return chart, o
end

-- --- showing it -------------------------------------------------------------

local function draw_file(chart, o)
    drawers.file("plot", data.described(chart), o.file, o)
    return "wrote " .. o.file
end

-- Of a script nobody sees the value.
local function tell_missing(file, why)
    if _G.arg and _G.arg[-1] then
        io.stderr:write(texts.visible(format(
            "note: %s is not written: %s\n", file, why)))
    end
end

-- e:plot{x=, y=, by=, stat=, log=, kind=, value=, where=, file=}: the chart as text,
-- or in the file; or why there is none.
charts.plot = checks.placed(function(e, options)
    local file = type(options) == "table" and options.file
    if type(file) == "string" then drawers.check_name("plot", file) end
    local chart, o = charts.build(e, options)
    local text
    if not chart then
        text = text_lines.harmless(o)
        if file then tell_missing(file, text) end
    else
        text = o.file and draw_file(chart, o) or
            drawers.text(data.described(chart), o)
    end
    return sources.shown({chart = chart, file = chart and o.file}, text, e)
end)

return charts
