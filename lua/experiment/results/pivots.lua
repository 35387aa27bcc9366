-- One axis of an experiment against another: a figure in each cell.
local columns = require "lumat.columns"
local sources = require "lumat.sources"
local style = require "lumat.texts"
local text = require "lumat.lines"
local pivots = {}
local ipairs, type = ipairs, type
local concat, sort = table.concat, table.sort

-- Is every value of the axis a number?
function pivots.is_numeric(rows, name)
    for _, row in ipairs(rows) do
        if type(row.p[name]) ~= "number" then return false end
    end
    return true
end

-- The values of the axes, joined.
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
        local part = sources.part(row.p, axes)
        if not seen[part] then
            seen[part] = true
            list[#list + 1] = {label = label_of(row, axes), p = row.p}
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

-- Where a row stands: by the values, as two of them may be written alike.
local function place_of(p, o)
    return sources.part(p, o.rows) .. "\1" .. sources.part(p, o.cols)
end

-- What a cell says: value, text, and whether its points failed.
local function settle(cell, o)
    local value, _, _, first = columns.settled(cell, o.value, o.stat)
    if value == nil then
        return {text = columns.is_good(cell[1]) and "-" or
            cell[1].status == "failed" and "FAILED" or
            cell[1].status:upper()}
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
    local cells = sources.gathered("table", source, rows, function(row)
        return place_of(row.p, o)
    end, {stat = o.stat, place = "in one cell", names = "rows, cols or where",
        option = "rows", named = o.rows})
    local across, lines = labels(source, rows, o.cols), {}
    for _, down in ipairs(labels(source, rows, o.rows)) do
        local line = {{p = down.p}}
        for _, col in ipairs(across) do
            local cell = cells[sources.part(down.p, o.rows) .. "\1" ..
                sources.part(col.p, o.cols)]
            line[#line + 1] = cell and settle(cell, o) or {text = "."}
        end
        lines[#lines + 1] = line
    end
    return lines, across
end

local function cell_text(cell, o, bare)
    if cell.text then return cell.text end
    return columns.text(cell.row, o.value, cell.value, bare) ..
        (cell.wide and "~" or "")
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
    if o.best == false or o.best == nil and (#across < 2 or
        #o.cols == 1 and pivots.is_numeric(rows, o.cols[1])) then
        better = nil
    end
    for i, name in ipairs(o.rows) do
        head[i], left[i] = name, not pivots.is_numeric(rows, name)
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
    return text.aligned(out, left, #o.rows, (style.style())), unit,
        has_wide(lines)
end

-- The lines of a table, the one unit of its numbers if there is one, and
-- whether any is marked as wide. o: rows and cols, lists of axes; value, stat,
-- best.
function pivots.text(source, rows, o)
    local lines, across = pivot(source, rows, o)
    return pivot_text(rows, lines, across, o)
end

return pivots
