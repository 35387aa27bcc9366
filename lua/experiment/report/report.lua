-- A report: everything about an experiment in one HTML file that needs no
-- network and, but for sorting, no scripts.
local checks = require "lumat.checks"
local charts = require "lumat.charts"
local columns = require "lumat.columns"
local parts = require "lumat.report_parts"
local sources = require "lumat.sources"
local style = require "lumat.report_style"
local svg = require "lumat.svg"
local svg_charts = require "lumat.svg_charts"
local table_section = require "lumat.report_table"
local texts = require "lumat.texts"
local report = {}
local ipairs, next, pcall, type = ipairs, next, pcall, type
local concat = table.concat
local gsub, match = string.gsub, string.match
local escape, section = svg.escape, style.section

local WIDTH, HEIGHT = 540, 390 -- of a chart beside another

-- --- plots ------------------------------------------------------------------

-- Axes whose values are all numbers, three or more of them.
local function wide_axes(source, rows)
    local list = {}
    for _, name in ipairs(source.axes) do
        local values = sources.values(source, rows, name)
        local numbers = #values >= 3
        for _, value in ipairs(values) do
            numbers = numbers and type(value) == "number"
        end
        if numbers then list[#list + 1] = name end
    end
    return list
end

-- Those drawn when none are asked for.
local function natural_plots(source, rows)
    local list, wide = {}, wide_axes(source, rows)
    local figure = columns.has(rows, "rate") and "rate" or "median"
    list[1] = {y = figure}
    if figure == "rate" then list[2] = {y = "median"} end
    if columns.has(rows, "check") then list[#list + 1] = {y = "check"} end
    if columns.has(rows, "flops_rate") and columns.has(rows, "gbs") then
        list[#list + 1] = {kind = "roofline"}
    end
    if #wide >= 2 then
        list[#list + 1] = {kind = "heat", x = wide[1], y = wide[2],
            value = figure}
    end
    return list
end

-- A plot that cannot be drawn, or that unlike points would share a place of, is
-- left out where nobody asked for it.
local function plot_section(e, source, rows, o)
    local figures = {}
    for _, options in ipairs(o.plots or natural_plots(source, rows)) do
        local given = {}
        for name, value in next, options do given[name] = value end
        given.where = given.where or o.where
        local ok, chart, why = pcall(charts.build, e, given, true)
        if not ok and o.plots then
            checks.fail("report", "%s", (gsub(chart, "^%a+:%d+: ", "")))
        elseif ok and not chart and o.plots then
            figures[#figures + 1] = '<p class="soft">' .. escape(why) .. "</p>"
        elseif ok and chart then
            if not given.title then -- the page has the name
                chart.title = chart.plain_title or chart.title
            end
            given.width, given.height = given.width or WIDTH,
                given.height or HEIGHT
            figures[#figures + 1] = "<figure>" ..
                svg_charts.draw(chart, given, true) .. "</figure>"
        end
    end
    if #figures == 0 then return "" end
    return section("Plots", '<div class="plots">' ..
        concat(figures, "\n") .. "</div>")
end

-- --- the page ---------------------------------------------------------------

local function nothing_section(source)
    return section("Points", '<p class="soft">' ..
        escape(sources.nothing(source, "tell of")) .. "</p>")
end

local kinds = {title = "string", plots = "table", where = "table|function"}

local function check_plots(plots)
    for i, options in next, plots or {} do
        if type(i) ~= "number" or type(options) ~= "table" then
            checks.fail("report", "plots has %s, expected a list of the " ..
                "options of charts: plots = {{y = \"time\"}, {y = \"rate\"}}",
                type(i) == "string" and i .. " =" or checks.brief(options))
        elseif options.file then
            checks.fail("report", "plots: file is not used: the page has the " ..
                "charts, e:plot{file = %s} draws one there",
                checks.brief(options.file))
        end
    end
end

-- The text of the page.
function report.text(e, options)
    local o = sources.options("report", options, kinds)
    local source = sources.source("report", e)
    check_plots(o.plots)
    local rows = sources.filtered("report", source, o.where)
    local title = o.title or source.name or "Experiment"
    return concat{'<!DOCTYPE html>\n<html lang="en">\n<head>\n',
        '<meta charset="utf-8">\n<meta name="viewport" ',
        'content="width=device-width,initial-scale=1">\n',
        "<title>", escape(title), "</title>\n<style>\n", style.css, svg.style,
        "</style>\n</head>\n<body>\n<main>\n", parts.header(title, source, rows),
        #rows == 0 and nothing_section(source) or
            plot_section(e, source, rows, o) .. table_section(source, rows),
        parts.failed(source, rows), parts.environment(e, rows),
        parts.script(e), "</main>\n<script>\n", style.script,
        "</script>\n</body>\n</html>\n"}
end

-- e:report(path [, {title=, plots=, where=}]) writes the page and gives e.
report.report = checks.placed(function(e, path, options)
    if type(path) ~= "string" then
        checks.fail("report", 'needs a file\'s name, such as "report.html"')
    elseif match(path, "%.%a+$") and not match(path, "%.html?$") then
        checks.fail("report", "%q: a report's file ends in .html", path)
    end
    texts.write("report", path, report.text(e, options))
    return e
end)

return report
