-- The table of a report: a line for each point, in columns that can be sorted.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local notes = require "lumat.notes"
local origins = require "lumat.origins"
local sources = require "lumat.sources"
local style = require "lumat.report_style"
local escape = require("lumat.svg").escape
local section, sorted_names = style.section, style.sorted_names
local ipairs, next, type = ipairs, next, type
local concat, format = table.concat, string.format

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
    add("error", "check", function(x)
        return checks.figure("%.2g", x)
    end)
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
return function(source, rows)
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
