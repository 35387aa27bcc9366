-- A page of everything there is to see of an experiment, one file of HTML.
local library = ...
local checks = require "lumat.checks"
local charts = require "lumat.result_charts"
local columns = require "lumat.columns"
local scales = require "lumat.scales"
local identity = require "lumat.code_hash"
local notes = require "lumat.tables".notes
local origins = require "lumat.environment".origins
local sources = require "lumat.sources"
local svg = require "lumat.svg"
local drawers = require "lumat.charts"
local described = require "lumat.chart_data".described
local texts = require "lumat.texts"
local escape = require("lumat.svg").escape
local debug, ipairs, next, os, pcall, tostring, type = debug, ipairs, next, os,
    pcall, tostring, type
local concat, insert, sort = table.concat, table.insert, table.sort
local format, gmatch, gsub, match = string.format, string.gmatch, string.gsub,
    string.match
local report, style, told = {}, {}, {}

-- --- style -----------------------------------------------------------------
-- How a report looks, and the few lines that sort its table: nothing in it asks
-- the network for anything.

-- A part of the page.
local function section(title, body, class)
    return format("<section%s>\n<h2>%s</h2>\n%s\n</section>\n",
        class and ' class="' .. class .. '"' or "", escape(title), body)
end

-- The keys of a table in the order in which a page lists them.
local function sorted_names(t)
    local names = {}
    for name in next, t do names[#names + 1] = name end
    sort(names, function(a, b) return tostring(a) < tostring(b) end)
    return names
end

style.css = [[
:root{--ink:#1d2129;--soft:#5b6370;--line:#dfe3e8;--paper:#fff;--back:#f5f6f8;
--bad:#b3261e;--badback:#fdecea;--link:#2667b8}
@media(prefers-color-scheme:dark){:root{--ink:#e4e7ec;--soft:#a3abb8;
--line:#2e343d;--paper:#15181e;--back:#0e1116;--bad:#ff8a80;
--badback:#38191a;--link:#7db2f0}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}
main{max-width:1200px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:18px;margin:0 0 12px}
.soft{color:var(--soft)}
p{margin:0 0 12px}.wide+p{margin:12px 0 0}section>:last-child{margin-bottom:0}
section{background:var(--paper);border:1px solid var(--line);
border-radius:10px;padding:16px;margin:16px 0}
.facts{display:grid;gap:4px 24px;
grid-template-columns:repeat(auto-fit,minmax(min(100%,330px),1fr));margin:0}
.facts div{display:flex;gap:12px;min-width:0}
.facts dt{color:var(--soft);flex:0 0 7em;overflow-wrap:anywhere}
.facts dd{margin:0;overflow-wrap:anywhere;min-width:0}
h3{font-size:15px;margin:16px 0 6px}h3:first-of-type{margin-top:0}
.plots{display:grid;gap:16px;
grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr))}
.plots figure{margin:0;overflow-x:auto}
.plots svg{display:block;width:100%;min-width:400px;height:auto}
.wide{overflow:auto;max-height:75vh}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;
font-size:14px;width:100%}
th,td{padding:4px 12px;text-align:right;white-space:nowrap;
border-bottom:1px solid var(--line)}
thead th{position:sticky;top:0;background:var(--paper);color:var(--soft);
font-weight:600;z-index:1;box-shadow:0 1px 0 var(--line);border:0}
th button{all:unset;cursor:pointer;color:inherit}
th button:hover{color:var(--ink)}
th button:focus-visible{outline:2px solid var(--link);outline-offset:2px}
th button::after{content:" \2195";opacity:.35}
th[aria-sort=ascending] button::after{content:" \2191";opacity:1}
th[aria-sort=descending] button::after{content:" \2193";opacity:1}
tbody tr:hover{background:var(--back)}
.f{color:var(--bad)}
.failed{border-left:4px solid var(--bad)}
.failed li{margin:0 0 8px;overflow-wrap:anywhere}
.failed ul{margin:0;padding-left:20px}
.failed code{color:var(--bad);white-space:pre-wrap}
code,pre{font:13px/1.5 ui-monospace,'DejaVu Sans Mono',Menlo,monospace}
pre{margin:0;overflow:auto;max-height:80vh;counter-reset:n;tab-size:4}
pre span{display:block;min-height:1.5em;padding-left:4.5em;position:relative}
pre span::before{counter-increment:n;content:counter(n);position:absolute;
left:0;width:3.5em;text-align:right;color:var(--soft);user-select:none}
@media print{body{background:#fff}.wide,pre{max-height:none;overflow:visible}
section{break-inside:avoid-page;border:0}}
]]

-- Numbers by size, the rest by name, what is missing last.
style.script = [[
(function(){
var t=document.getElementById("points");if(!t)return;
var heads=t.tHead.rows[0].cells,body=t.tBodies[0];
function value(r,i){var c=r.cells[i];
return c?c.textContent.replace(/[~\u2009]/g,"").trim():""}
function key(s){var n=parseFloat(s);
return s!==""&&isFinite(s.replace(/ ?%$/,""))?n:null}
function sort(i){var down=heads[i].getAttribute("aria-sort")==="ascending",
rows=[].map.call(body.rows,function(r,k){var s=value(r,i);
return{r:r,s:s,n:key(s),k:k}});
rows.sort(function(a,b){
if(a.n!==null&&b.n!==null)return(down?b.n-a.n:a.n-b.n)||a.k-b.k;
if((a.n===null)!==(b.n===null))return a.n===null?1:-1;
return(down?-1:1)*a.s.localeCompare(b.s)||a.k-b.k});
var f=document.createDocumentFragment();
rows.forEach(function(x){f.appendChild(x.r)});body.appendChild(f);
[].forEach.call(heads,function(h){h.removeAttribute("aria-sort")});
heads[i].setAttribute("aria-sort",down?"descending":"ascending")}
[].forEach.call(heads,function(h,i){var b=document.createElement("button");
b.textContent=h.textContent;h.textContent="";h.appendChild(b);
b.addEventListener("click",function(){sort(i)})});
})();
]]

-- --- sections --------------------------------------------------------------
-- What a report says of a run beside its points: where it was measured, what
-- failed, the script.

local MOST_FAILED = 200 -- that are told one by one

-- --- what there is to tell --------------------------------------------------

-- The environments of the run, by number.
local function environments_of(e)
    return e.environments and e:environments() or {}
end

-- The script that defines the experiment, and its name.
local function script_of(e)
    if type(e.script) == "table" then return e.script.text, e.script.path end
    local measure = type(e.spec) == "table" and e.spec.measure
    if not (debug and type(measure) == "function") then return nil end
    local path = match(debug.getinfo(measure, "S").source, "^@(.*)")
    local text = path and identity.script(path)
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

-- Which run it is, where the title does not say so; how its points are.
function told.header(title, source, rows)
    local good, failed, seconds = count(rows)
    local e = source.e or {}
    local parts = {format("%d points", #rows), format("%d good", good)}
    if e.name and e.name ~= title then insert(parts, 1, escape(e.name)) end
    if (e.found or 0) > 0 and rows == source.rows then
        parts[#parts + 1] = format("%s done before this run",
            e.found == #rows and "all" or format("%d of them", e.found))
    end
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
function told.environment(e, rows)
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

-- --- failures and the script ------------------------------------------------

function told.failed(source, rows)
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

function told.script(e)
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

-- --- the table -------------------------------------------------------------
-- The table of a report: a line for each point, in columns that can be sorted.

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
    return scales.time_unit(columns.stats.median(list))
end

-- Columns of figures: title, of(row) -> text.
local function figure_columns(source, rows)
    local list = {}
    local scale, unit = time_unit(rows)
    list[1] = {"time, " .. unit, function(row)
        return row.median and scales.significant(row.median / scale, 4) ..
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
                return scales.significant(x / by, 4)
            end)
            break
        end
    end
    add("% of peak", "share", function(x) return format("%.3g", 100 * x) end)
    add("error", "check", function(x)
        return checks.figure("%.2g", x)
    end)
    add("held, " .. unit, "held", function(x)
        return scales.significant(x / scale, 4)
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
            return type(x) == "number" and x % 1 ~= 0 and
                checks.figure("%.4g", x) or
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
    for i, line in ipairs(notes.lines(source, rows, true)) do
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

-- --- the page --------------------------------------------------------------
-- A report: everything about an experiment in one HTML file that needs no
-- network and, but for sorting, no scripts.

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
        local given = checks.copied(options)
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
                drawers.svg(described(chart), given, true) .. "</figure>"
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
    local o = checks.options("experiment.report", options)
    local source = sources.source("report", e)
    check_plots(o.plots)
    local rows = sources.filtered("report", source, o.where)
    local title = o.title or source.name or "Experiment"
    return concat{'<!DOCTYPE html>\n<html lang="en">\n<head>\n',
        '<meta charset="utf-8">\n<meta name="viewport" ',
        'content="width=device-width,initial-scale=1">\n',
        "<title>", escape(title), "</title>\n<style>\n", style.css, svg.style,
        "</style>\n</head>\n<body>\n<main>\n", told.header(title, source, rows),
        #rows == 0 and nothing_section(source) or
            plot_section(e, source, rows, o) .. table_section(source, rows),
        told.failed(source, rows), told.environment(e, rows),
        told.script(e), "</main>\n<script>\n", style.script,
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
