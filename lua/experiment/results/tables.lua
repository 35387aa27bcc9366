-- Tables of an experiment: a plain list of its points, or one axis against
-- another.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local notes = require "lumat.notes"
local pivots = require "lumat.pivots"
local ratios = require "lumat.ratios"
local sources = require "lumat.sources"
local text_lines = require "lumat.lines"
local texts = require "lumat.texts"
local tables = {}
local ipairs, next, type = ipairs, next, type
local concat, format = table.concat, string.format

-- --- the plain list ---------------------------------------------------------

-- The figures that a list shows: those the points have.
local function figures_of(rows, o)
    local list = {}
    for _, name in ipairs(o.value and {o.value} or
        {"median", "width", "rate", "share", "held", "held_rate",
            "check"}) do
        if columns.has(rows, name) or name == "median" then
            list[#list + 1] = name
        end
    end
    local seen = {}
    if o.value and o.ratio then list[#list + 1] = o.ratio end
    for _, row in ipairs(o.value and {} or rows) do
        for name in next, row.values or {} do
            if not seen[name] then list[#list + 1] = name end
            seen[name] = true
        end
    end
    return list
end

local function list_line(row, axes, names, o)
    local line = {}
    for i, name in ipairs(axes) do
        line[i] = row.p[name] == nil and "-" or sources.plain(row.p[name])
    end
    if not columns.is_good(row) then
        line[#line + 1] = row.status:upper()
        return line
    end
    for _, name in ipairs(names) do
        local value = columns.get(row, name, o.stat)
        line[#line + 1] = value == nil and "-" or
            columns.text(row, name, value) ..
            (name == names[1] and columns.is_wide(row, name) and "~" or
                name == names[1] and " " or "")
    end
    return line
end

-- The axes in the order of a list: those named first, the others behind.
local function order_of(source, named)
    local axes, seen = {}, {}
    for _, list in ipairs{named or {}, source.axes} do
        for _, name in ipairs(list) do
            if not seen[name] then axes[#axes + 1] = name end
            seen[name] = true
        end
    end
    return axes
end

local function has(list, name)
    for _, other in ipairs(list) do
        if other == name then return true end
    end
    return false
end

local function list_text(source, rows, o)
    local axes = order_of(source, o.rows)
    local names, left, head, marked = figures_of(rows, o), {}, {}, false
    for i, name in ipairs(axes) do
        head[i], left[i] = name, not pivots.is_numeric(rows, name)
    end
    for i, name in ipairs(names) do
        head[#head + 1] = columns.stat_title(name,
            columns.is_sampled(name) and o.stat) .. (i == 1 and " " or "")
    end
    local lines = {head}
    for i, row in ipairs(sources.ordered(source, rows)) do
        lines[i + 1] = list_line(row, axes, names, o)
        marked = marked or columns.is_good(row) and
            columns.is_wide(row, names[1])
    end
    return text_lines.aligned(lines, left, #axes, (texts.style())), marked,
        has(names, "share")
end

-- --- both -------------------------------------------------------------------

local function as_list(x)
    if type(x) == "table" then return x end
    return {x}
end

local kinds = {rows = "string|table", cols = "string|table",
    value = "string|function", stat = "string", where = "table|function",
    best = "boolean", ratio_to = "table"}

local function checked(source, options)
    local o = {}
    for name, value in next, sources.options("table", options, kinds) do
        o[name] = value
    end
    for _, side in ipairs{"rows", "cols"} do
        o[side] = o[side] and as_list(o[side])
        for _, name in ipairs(o[side] or {}) do
            sources.check_axis("table", side, source, name)
        end
    end
    if o.cols and not o.rows then
        checks.fail("table", "cols is %s, but rows names no axis",
            concat(o.cols, " "))
    elseif o.best ~= nil and not o.cols then
        checks.fail("table", "best is not used: it names the best column of a " ..
            "line; rows = and cols = make such a table")
    elseif o.cols and (#o.rows == 0 or #o.cols == 0) then
        checks.fail("table", "%s names no axis", #o.rows == 0 and "rows" or
            "cols")
    end
    columns.check_stat("table", o.stat)
    local _, better = columns.kind(o.value or "median")
    if o.best and not (better or o.ratio_to and not o.value) then
        checks.fail("table", "best is not used: of %s nobody knows which is",
            columns.title(o.value))
    end
    if o.value then columns.check_name("table", "value", source, o.value) end
    if o.ratio_to and o.cols and o.value then
        checks.fail("table", "value is %s, and ratio_to another figure of " ..
            "the cells", checks.brief(o.value))
    end
    return o
end

local function heading(source, rows, o, unit)
    local what = columns.stat_title(o.value or "median", o.stat)
    if unit then what = what .. ", " .. unit end
    local text = sources.told(source, format("%d point%s", #rows,
        #rows == 1 and "" or "s"))
    return text_lines.harmless(o.cols and text .. "; " .. what or text)
end

-- What did not work, by name; the first few where there are many.
local FEW = 10
local function failures(source, rows)
    local lines, without = {}, 0
    for _, row in ipairs(sources.ordered(source, rows)) do
        if not columns.is_good(row) and #lines < FEW then
            lines[#lines + 1] = text_lines.harmless(format("  %s  %s: %s",
                row.status:upper(), sources.describe(source.axes, row.p),
                columns.reason(row)))
        elseif not columns.is_good(row) then
            without = without + 1
        end
    end
    if without > 0 then
        lines[#lines + 1] = format("  and %d more that did not work", without)
    end
    return lines
end
tables.failures = failures

-- The text of a table, and the rows that stand in it.
function tables.text(e, options)
    local source = sources.source("table", e)
    local o = checked(source, options)
    local rows = sources.filtered("table", source, o.where)
    if #rows == 0 then
        return sources.nothing(source, "show"), rows
    end
    local lacking = o.value and columns.lacking(rows, o.value)
    if lacking then checks.fail("table", "no point has one: %s", lacking) end
    local lines, unit, marked, beside, has_shares
    if o.ratio_to then
        local name
        rows, name, beside = ratios.add("table", source, rows, o.ratio_to)
        o.value = o.cols and name or o.value
        o.ratio = name
    end
    if o.cols then
        o.value = columns.one_rate(rows, o.value or "median")
        lines, unit, marked = pivots.text(source, rows, o)
        has_shares = o.value == "share"
    else
        lines, marked, has_shares = list_text(source, rows, o)
    end
    local text = {heading(source, rows, o, unit), concat(lines, "\n")}
    if marked then
        text[#text + 1] = "  ~ the 95 % interval is wider than 5 %"
    end
    if beside then text[#text + 1] = "  " .. text_lines.harmless(beside) end
    for _, line in ipairs(notes.lines(source, rows, has_shares)) do
        text[#text + 1] = "  " .. line
    end
    for _, line in ipairs(failures(source, rows)) do text[#text + 1] = line end
    return concat(text, "\n"), rows
end

-- e:table{rows=, cols=, value=, stat=, where=, best=}
tables.table = checks.placed(function(e, options)
    local text, found = tables.text(e, options)
    local rows = {}
    for i, row in ipairs(found) do rows[i] = row end
    return sources.shown(rows, text, e, rows)
end)

return tables
