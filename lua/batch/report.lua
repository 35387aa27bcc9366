-- A report: everything about an experiment in one HTML file that needs no
-- network and, but for sorting, no scripts.
local library = ...
local checks = require "lumat.checks"
local charts = require "lumat.charts"
local columns = require "lumat.columns"
local notes = require "lumat.notes"
local origins = require "lumat.origins"
local sources = require "lumat.sources"
local style = require "lumat.report_style"
local svg = require "lumat.svg"
local svg_charts = require "lumat.svg_charts"
local texts = require "lumat.texts"
local report = {}
local ipairs, next, pcall, tostring, type = ipairs, next, pcall, tostring,
    type
local concat, sort = table.concat, table.sort
local format, gmatch, gsub, match = string.format, string.gmatch, string.gsub,
    string.match
local debug, io, os = debug, io, os
local escape = svg.escape

local MOST_FAILED = 200 -- that are told one by one
local WIDTH, HEIGHT = 540, 390 -- of a chart beside another

-- --- what there is to tell --------------------------------------------------

-- The environments of the run, by number.
local function environments_of(e)
    return e.environments and e:environments() or {}
end

local function read_file(path)
    local file = io and io.open(path, "rb")
    if not file then return nil end
    local text = file:read("a")
    file:close()
    return text
end

-- The script that defines the experiment, and its name.
local function script_of(e)
    if type(e.script) == "table" then return e.script.text, e.script.path end
    local measure = type(e.spec) == "table" and e.spec.measure
    if not (debug and type(measure) == "function") then return nil end
    local path = match(debug.getinfo(measure, "S").source, "^@(.*)")
    local text = path and read_file(path)
    return text, path
end

local function count(rows)
    local good, failed, seconds = 0, 0, 0
    for _, row in ipairs(rows) do
        if columns.is_good(row) then good = good + 1
        else failed = failed + 1 end
        seconds = seconds + (row.seconds or 0)
    end
    return good, failed, seconds
end

local function duration(seconds)
    if seconds < 60 then return format("%.3g s", seconds) end
    if seconds < 3600 then
        return format("%d min %02d s", seconds // 60, seconds // 1 % 60)
    end
    return format("%d h %02d min", seconds // 3600, seconds // 60 % 60)
end

-- --- parts of the page ------------------------------------------------------

local function section(title, body, class)
    return format("<section%s>\n<h2>%s</h2>\n%s\n</section>\n",
        class and ' class="' .. class .. '"' or "", escape(title), body)
end

local function header(title, source, rows)
    local good, failed, seconds = count(rows)
    local parts = {format("%d points", #rows), format("%d good", good)}
    if failed > 0 then
        parts[#parts + 1] = format('<span class="f">%d failed</span>', failed)
    end
    if seconds > 0 then
        parts[#parts + 1] = "measured in " .. duration(seconds)
    end
    parts[#parts + 1] = os.date("%Y-%m-%d %H:%M")
    return format('<h1>%s</h1>\n<p class="soft">%s</p>\n', escape(title),
        concat(parts, " · "))
end

local function sorted_names(t)
    local names = {}
    for name in next, t do names[#names + 1] = name end
    sort(names, function(a, b) return tostring(a) < tostring(b) end)
    return names
end

local function facts(t)
    local lines = {}
    for _, name in ipairs(sorted_names(t)) do
        local value = t[name]
        if type(value) ~= "table" then
            lines[#lines + 1] = format("<div><dt>%s</dt><dd>%s</dd></div>",
                escape(name), escape(sources.plain(value)))
        end
    end
    return '<dl class="facts">' .. concat(lines, "\n") .. "</dl>"
end

-- The environments, and which rows are of which where there are several.
local function environment_section(e, rows)
    local list, used, parts = environments_of(e), {}, {}
    for _, row in ipairs(rows) do
        if row.env then used[row.env] = (used[row.env] or 0) + 1 end
    end
    for i, environment in ipairs(list) do
        if #list > 1 and used[i] then
            parts[#parts + 1] = format("<h3>Environment %d, of %d points</h3>",
                i, used[i])
        end
        parts[#parts + 1] = (used[i] or #list == 1) and facts(environment) or nil
    end
    if #parts == 0 then
        local name, description = library.device()
        parts[1] = "<p class=\"soft\">Recorded with none of the points; this " ..
            "report was written here:</p>" ..
            facts{device = name, description = description}
    end
    return section("Environment", concat(parts, "\n"))
end

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

-- A plot that cannot be drawn, or has unlike points in one cell, is left out
-- where nobody asked for it.
local function plot_section(e, source, rows, o)
    local figures = {}
    for _, options in ipairs(o.plots or natural_plots(source, rows)) do
        local given = {}
        for name, value in next, options do given[name] = value end
        given.where, given.file = given.where or o.where, nil
        local ok, chart, why = pcall(charts.build, e, given)
        if not ok and o.plots then
            checks.fail("report", "%s", (gsub(chart, "^%a+:%d+: ", "")))
        elseif ok and not chart and o.plots then
            figures[#figures + 1] = '<p class="soft">' .. escape(why) .. "</p>"
        elseif ok and chart and (o.plots or not chart.is_merged) then
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

-- --- the table --------------------------------------------------------------

-- One unit for a whole column, so that its numbers can be compared and sorted:
-- scale and name for the times of the rows.
local function time_unit(rows)
    local list = {}
    for _, row in ipairs(rows) do
        if columns.is_good(row) and row.median then
            list[#list + 1] = row.median
        end
    end
    if #list == 0 then return 1, "s" end
    return columns.time_unit(columns.stats.median(list))
end

-- Columns of figures: title, of(row) -> text.
local function figure_columns(source, rows)
    local list = {}
    local scale, unit = time_unit(rows)
    list[1] = {"time, " .. unit, function(row)
        return row.median and columns.significant(row.median / scale, 4) ..
            (columns.is_wide(row) and "~" or "")
    end}
    local function add(title, name, write)
        if not columns.has(rows, name) then return end
        list[#list + 1] = {title, function(row)
            local value = columns.get(row, name)
            return value ~= nil and write(value, row) or ""
        end}
    end
    add("± %", "width", function(x) return format("%.1f", 50 * x) end)
    local rate = columns.one_rate(rows, "rate")
    for _, row in ipairs(rows) do
        if columns.is_good(row) and columns.get(row, rate) then
            local by, name = columns.rate_unit(row, rate)
            add(name, rate, function(x)
                return columns.significant(x / by, 4)
            end)
            break
        end
    end
    add("% of peak", "share", function(x) return format("%.3g", 100 * x) end)
    add("error", "check", function(x) return format("%.2g", x) end)
    add("held, " .. unit, "held", function(x)
        return columns.significant(x / scale, 4)
    end)
    if #origins.several(source, rows) > 1 then
        add("environment", "env", sources.plain)
    end
    local extra = {}
    for _, row in ipairs(rows) do
        for name in next, row.values or {} do extra[name] = true end
    end
    for _, name in ipairs(sorted_names(extra)) do
        add(name, name, function(x)
            return type(x) == "number" and x % 1 ~= 0 and format("%.4g", x) or
                sources.plain(x)
        end)
    end
    return list
end

local LONG = 24 -- characters of a name that goes on in a second line

-- Is an axis one of names, and are some of them long?
local function kind_of(rows, axis)
    local is_text, is_long = false, false
    for _, row in ipairs(rows) do
        local value = row.p[axis]
        is_text = is_text or type(value) ~= "number"
        is_long = is_long or type(value) == "string" and #value > LONG
    end
    return is_text, is_long
end

-- Names begin at the left; a style sheet of the columns.
local function sides(source, rows)
    local rules = {}
    for i, name in ipairs(source.axes) do
        local is_text, is_long = kind_of(rows, name)
        if is_text then
            rules[#rules + 1] = format("#points tr>:nth-child(%d){" ..
                "text-align:left%s}", i, is_long and ";white-space:normal;" ..
                "min-width:16em;overflow-wrap:break-word" or "")
        end
    end
    return #rules == 0 and "" or "<style>" .. concat(rules) .. "</style>\n"
end

local function notes_below(source, rows)
    local parts = {}
    for i, line in ipairs(notes.lines(source, rows)) do
        parts[i] = "<br>" .. escape(line)
    end
    return concat(parts)
end

-- Closing tags that HTML does not need are left out: many rows stay small.
local function table_section(source, rows)
    local figures, lines, head = figure_columns(source, rows), {}, {}
    for i, name in ipairs(source.axes) do
        head[i] = "<th>" .. escape(name)
    end
    for _, figure in ipairs(figures) do
        head[#head + 1] = "<th>" .. escape(figure[1])
    end
    for _, row in ipairs(sources.ordered(source, rows)) do
        local line = {"<tr>"}
        for i, name in ipairs(source.axes) do
            line[i + 1] = "<td>" .. (row.p[name] == nil and "" or
                escape(sources.plain(row.p[name])))
        end
        if columns.is_good(row) then
            for _, figure in ipairs(figures) do
                line[#line + 1] = "<td>" .. escape(figure[2](row) or "")
            end
        else
            line[#line + 1] = format("<td class=f colspan=%d>%s", #figures,
                escape(row.status))
        end
        lines[#lines + 1] = concat(line)
    end
    return section("Points", sides(source, rows) ..
        '<div class="wide"><table id="points">' ..
        "<thead><tr>" .. concat(head) .. "</thead>\n<tbody>\n" ..
        concat(lines, "\n") .. "\n</tbody></table></div>\n" ..
        '<p class="soft">Times are medians, ± half of their 95 % interval; ' ..
        "~ marks intervals wider than 5 % of the median. A share of the peak " ..
        "is of the one that the work comes nearest to." ..
        notes_below(source, rows) .. "</p>")
end

-- --- failures and the script ------------------------------------------------

local function failed_section(source, rows)
    local items, without = {}, 0
    for _, row in ipairs(sources.ordered(source, rows)) do
        if not columns.is_good(row) and #items < MOST_FAILED then
            items[#items + 1] = format("<li>%s, %s<br><code>%s</code></li>",
                escape(sources.describe(source.axes, row.p)),
                escape(row.status), escape(row.message or "no message"))
        elseif not columns.is_good(row) then
            without = without + 1
        end
    end
    if #items == 0 then return "" end
    if without > 0 then
        items[#items + 1] = format("<li>and %d more</li>", without)
    end
    return section("What failed", "<ul>" .. concat(items, "\n") .. "</ul>",
        "failed")
end

local function script_section(e)
    local text, name = script_of(e)
    if not text or text == "" then return "" end
    local lines = {}
    for line in gmatch(gsub(text, "\n$", ""), "([^\n]*)\n?") do
        lines[#lines + 1] = "<span>" .. escape(line) .. "</span>"
    end
    if lines[#lines] == "<span></span>" then lines[#lines] = nil end
    return section("Script: " .. match(name or "script", "[^/]*$"),
        "<pre>" .. concat(lines) .. "</pre>")
end

-- --- the page ---------------------------------------------------------------

local function nothing_section(source)
    return section("Points", '<p class="soft">' ..
        escape(sources.nothing(source, "tell of")) .. "</p>")
end

local kinds = {title = "string", plots = "table", where = "table|function"}

-- The text of the page.
function report.text(e, options)
    local o = sources.options("report", options, kinds)
    local source = sources.source("report", e)
    local rows = sources.filtered("report", source, o.where)
    local title = o.title or source.name or "Experiment"
    return concat{'<!DOCTYPE html>\n<html lang="en">\n<head>\n',
        '<meta charset="utf-8">\n<meta name="viewport" ',
        'content="width=device-width,initial-scale=1">\n',
        "<title>", escape(title), "</title>\n<style>\n", style.css, svg.style,
        "</style>\n</head>\n<body>\n<main>\n", header(title, source, rows),
        #rows == 0 and nothing_section(source) or
            plot_section(e, source, rows, o) .. table_section(source, rows),
        failed_section(source, rows), environment_section(e, rows),
        script_section(e), "</main>\n<script>\n", style.script,
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
