-- Tables of an experiment: a plain list of its points, or one axis against
-- another.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local sources = require "lumat.sources"
local tables = {}
local ipairs, next, setmetatable, type = ipairs, next, setmetatable, type
local concat, sort = table.concat, table.sort
local format, gsub, rep = string.format, string.gsub, string.rep
local len = utf8.len
local larger = math.max

-- --- text -------------------------------------------------------------------

-- Text that a terminal shows as it is: no control characters in it.
local function harmless(text)
    if not len(text) then text = gsub(text, "[\x80-\xff]", "?") end
    return (gsub(text, "%c", function(c) return format("\\%03d", c:byte()) end))
end
tables.harmless = harmless

local function padded(text, width, to_left)
    local space = rep(" ", width - len(text))
    return to_left and text .. space or space .. text
end

-- Lines of cells in columns as wide as they need to be; left: columns whose
-- text begins at the left.
local function aligned(lines, left)
    local widths, out = {}, {}
    for _, line in ipairs(lines) do
        for i, cell in ipairs(line) do
            line[i] = harmless(cell)
            widths[i] = larger(widths[i] or 0, len(line[i]))
        end
    end
    for n, line in ipairs(lines) do
        local cells = {}
        for i, cell in ipairs(line) do
            cells[i] = padded(cell, widths[i], left[i])
        end
        out[n] = (gsub("  " .. concat(cells, "  "), "%s+$", ""))
    end
    return out
end
tables.aligned = aligned

-- --- one axis against another -----------------------------------------------

local function as_list(x)
    if type(x) == "table" then return x end
    return {x}
end

-- Is every value of the axis a number?
local function is_numeric(rows, name)
    for _, row in ipairs(rows) do
        if type(row.p[name]) ~= "number" then return false end
    end
    return true
end

-- The values of the axes, joined; what stands for a line of the table.
local function label_of(row, axes)
    local parts = {}
    for i, name in ipairs(axes) do
        parts[i] = row.p[name] == nil and "-" or sources.plain(row.p[name])
    end
    return concat(parts, " ")
end

-- The labels of the rows in the order of the axes' values.
local function labels(source, rows, axes)
    local place, seen, list = {}, {}, {}
    for _, name in ipairs(axes) do
        place[name] = {}
        for i, value in ipairs(sources.values(source, rows, name)) do
            place[name][value] = i
        end
    end
    for _, row in ipairs(rows) do
        local label = label_of(row, axes)
        if not seen[label] then
            seen[label] = true
            list[#list + 1] = {label = label, p = row.p}
        end
    end
    sort(list, function(a, b)
        for _, name in ipairs(axes) do
            local i = place[name][a.p[name]] or 0
            local j = place[name][b.p[name]] or 0
            if i ~= j then return i < j end
        end
        return a.label < b.label
    end)
    return list
end

-- The axes on which two points differ, for the message that says what to do.
local function difference(source, a, b)
    local names = {}
    for _, name in ipairs(source.axes) do
        if a.p[name] ~= b.p[name] then names[#names + 1] = name end
    end
    return #names > 0 and concat(names, " ") or nil
end

-- Rows of one place in the table, by both labels.
local function gathered(source, rows, o)
    local cells = {}
    for _, row in ipairs(rows) do
        local key = label_of(row, o.rows) .. "\0" .. label_of(row, o.cols)
        local cell = cells[key] or {}
        local first = cell[1]
        if first and not o.stat then
            local by = difference(source, first, row)
            if not by then -- measured again: the later one counts
                cell[1] = nil
            else
                checks.fail("table", "several points stand in one cell: %s " ..
                    "differs; name it in rows, cols or where, or say which " ..
                    "stat of them", by)
            end
        end
        cell[#cell + 1] = row
        cells[key] = cell
    end
    return cells
end

-- What a cell says: value, text, and whether its points failed.
local function settle(cell, o)
    local values, first = {}, nil
    for _, row in ipairs(cell) do
        local value = columns.is_good(row) and
            columns.get(row, o.value, o.stat)
        if value then
            values[#values + 1], first = value, first or row
        end
    end
    if #values == 0 then
        return {text = columns.is_good(cell[1]) and "-" or
            cell[1].status == "failed" and "FAILED" or
            cell[1].status:upper()}
    end
    local value = values[1]
    if #values > 1 then
        value = type(value) == "number" and
            columns.stats[o.stat](values) or value
    end
    return {value = value, row = first, wide = columns.is_wide(first, o.value)}
end

local function best_of(line, better)
    local best
    for i = 2, #line do
        local value = line[i].value
        if type(value) == "number" and (not best or
            better == "low" and value < line[best].value or
            better == "high" and value > line[best].value) then
            best = i
        end
    end
    return best
end

-- The one unit of all cells, where there is one.
local function common_unit(lines, o)
    if columns.kind(o.value) ~= "rate" then return nil end
    local unit
    for _, line in ipairs(lines) do
        for i = 2, #line do
            if line[i].row then
                local _, name = columns.rate_unit(line[i].row, o.value)
                if unit and unit ~= name then return nil end
                unit = name
            end
        end
    end
    return unit
end

-- Lines of cells {text, value, row, wide}, the first of each its label.
local function pivot(source, rows, o)
    local cells = gathered(source, rows, o)
    local across, lines = labels(source, rows, o.cols), {}
    for _, down in ipairs(labels(source, rows, o.rows)) do
        local line = {{p = down.p}}
        for _, col in ipairs(across) do
            local cell = cells[down.label .. "\0" .. col.label]
            line[#line + 1] = cell and settle(cell, o) or {text = "."}
        end
        lines[#lines + 1] = line
    end
    return lines, across
end

local function cell_text(cell, o, bare)
    if cell.text then return cell.text end
    local text = columns.text(cell.row, o.value, cell.value, bare)
    return text .. (cell.wide and "~" or "")
end

-- The cells of a line as text: marks stand behind numbers that stay below one
-- another.
local function pivot_line(line, across, o, unit, better)
    local texts = {}
    for i, name in ipairs(o.rows) do
        local value = line[1].p[name]
        texts[i] = value == nil and "-" or sources.plain(value)
    end
    for i = 2, #line do
        texts[#texts + 1] = cell_text(line[i], o, unit) ..
            (line[i].wide and "" or " ")
    end
    if better then
        local best = best_of(line, better)
        texts[#texts + 1] = best and across[best - 1].label or "-"
    end
    return texts
end

local function has_wide(lines)
    for _, line in ipairs(lines) do
        for i = 2, #line do
            if line[i].wide then return true end
        end
    end
    return false
end

local function pivot_text(rows, lines, across, o)
    local unit, left, head = common_unit(lines, o), {}, {}
    local _, better = columns.kind(o.value)
    if o.best == false or #across < 2 or
        #o.cols == 1 and is_numeric(rows, o.cols[1]) then
        better = nil
    end
    for i, name in ipairs(o.rows) do
        head[i], left[i] = name, not is_numeric(rows, name)
    end
    for _, col in ipairs(across) do head[#head + 1] = col.label .. " " end
    if better then
        head[#head + 1] = "best"
        left[#head] = true
    end
    local out = {head}
    for n, line in ipairs(lines) do
        out[n + 1] = pivot_line(line, across, o, unit, better)
    end
    return aligned(out, left), unit, has_wide(lines)
end

-- --- the plain list ---------------------------------------------------------

local function has(rows, name)
    for _, row in ipairs(rows) do
        if columns.is_good(row) and columns.get(row, name) ~= nil then
            return true
        end
    end
    return false
end

-- The figures that a list shows: those the points have.
local function figures_of(rows, o)
    local list = {}
    for _, name in ipairs(o.value and {o.value} or
        {"median", "width", "rate", "share", "check"}) do
        if name ~= "rate" or has(rows, "rate") then
            if has(rows, name) or name == "median" then
                list[#list + 1] = name
            end
        end
    end
    local seen = {}
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

local function list_text(source, rows, o)
    local axes = o.rows or source.axes
    local names, left, head, marked = figures_of(rows, o), {}, {}, false
    for i, name in ipairs(axes) do
        head[i], left[i] = name, not is_numeric(rows, name)
    end
    for i, name in ipairs(names) do
        head[#head + 1] = columns.title(name) .. (i == 1 and " " or "")
    end
    local lines = {head}
    for i, row in ipairs(sources.ordered(source, rows)) do
        lines[i + 1] = list_line(row, axes, names, o)
        marked = marked or columns.is_good(row) and
            columns.is_wide(row, names[1])
    end
    return aligned(lines, left), marked
end

-- --- both -------------------------------------------------------------------

local kinds = {rows = "string|table", cols = "string|table",
    value = "string|function", stat = "string", where = "table|function",
    best = "boolean"}

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
    elseif o.stat and not columns.stats[o.stat] then
        checks.fail("table", "there is no stat %s%s", checks.brief(o.stat),
            sources.suggest(o.stat, {"max", "mean", "median", "min"}))
    end
    if o.value then columns.check_name("table", "value", source, o.value) end
    return o
end

local function heading(source, rows, o, unit)
    local what = columns.title(o.value or "median")
    if unit then what = what .. ", " .. unit end
    if o.stat and o.stat ~= "median" then what = o.stat .. " " .. what end
    local text = format("%s%d points", source.name and source.name .. ": " or
        "", #rows)
    return harmless(o.cols and text .. "; " .. what or text)
end

-- What did not work, by name; the first few where there are many.
local FEW = 10
local function failures(source, rows)
    local lines, without = {}, 0
    for _, row in ipairs(sources.ordered(source, rows)) do
        if not columns.is_good(row) and #lines < FEW then
            lines[#lines + 1] = harmless(format("  %s  %s: %s",
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
        return (source.name and source.name .. ": " or "") .. "no points" ..
            (o.where and #source.rows > 0 and " match" or ""), rows
    end
    local lines, unit, marked
    if o.cols then
        o.value = columns.one_rate(rows, o.value or "median")
        local cells, across = pivot(source, rows, o)
        lines, unit, marked = pivot_text(rows, cells, across, o)
    else
        lines, marked = list_text(source, rows, o)
    end
    local text = {heading(source, rows, o, unit), concat(lines, "\n")}
    if marked then
        text[#text + 1] = "  ~ the 95 % interval is wider than 5 %"
    end
    for _, line in ipairs(failures(source, rows)) do text[#text + 1] = line end
    return concat(text, "\n"), rows
end

-- e:table{rows=, cols=, value=, stat=, where=, best=}
tables.table = checks.placed(function(e, options)
    local text, found = tables.text(e, options)
    local rows = {}
    for i, row in ipairs(found) do rows[i] = row end
    return setmetatable(rows, {__tostring = function() return text end,
        __index = type(e) == "table" and e.results and e or nil})
end)

return tables
