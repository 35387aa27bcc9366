-- The points of an experiment as a table.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local origins = require "lumat.environment".origins
local peaks = require "lumat.peaks"
local sources = require "lumat.sources"
local text_lines = require "lumat.labels".lines
local texts = require "lumat.texts"
local ipairs, next, type = ipairs, next, type
local concat, sort = table.concat, table.sort
local format = string.format
local notes, pivots, ratios, tables = {}, {}, {}, {}

-- --- notes -----------------------------------------------------------------
-- What is said below a table of rows: of the peaks they are shares of, and of
-- the environments they are from where there are several.

local function environment_lines(source, rows, lines)
    local several = origins.several(source, rows)
    if #several < 2 then return end
    for i, e in ipairs(several) do
        lines[#lines + 1] = format("%d point%s of environment %d%s", e.count,
            e.count == 1 and "" or "s", e.number, #e.differs > 0 and ": " ..
                concat(e.differs, "; ") or i > 1 and
                ": another commit of the working folder" or "")
    end
end

-- The lines, none of them with characters that a terminal acts on. has_shares:
-- the rows are shown with their shares of peaks.
function notes.lines(source, rows, has_shares)
    local good, lines = {}, {}
    for _, row in ipairs(rows) do
        if columns.is_good(row) then good[#good + 1] = row end
    end
    lines[1] = has_shares and peaks.said(good) or nil
    for _, line in ipairs(peaks.notes(good, function(row)
        return (columns.get(row, "share"))
    end, function(row)
        return sources.describe(source.axes, row.p)
    end)) do
        lines[#lines + 1] = line
    end
    environment_lines(source, rows, lines)
    for i, line in ipairs(lines) do lines[i] = text_lines.harmless(line) end
    return lines
end

-- --- pivots ----------------------------------------------------------------
-- One axis of an experiment against another: a figure in each cell.

-- Is every value of the axis a number?
function pivots.is_numeric(rows, name)
    for _, row in ipairs(rows) do
        if type(row.p[name]) ~= "number" then return false end
    end
    return true
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
            list[#list + 1] = {label = sources.label(row, axes), p = row.p}
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
    return text_lines.aligned(out, left, #o.rows, (texts.style())), unit,
        has_wide(lines)
end

-- The lines of a table, the one unit of its numbers if there is one, and
-- whether any is marked as wide. o: rows and cols, lists of axes; value, stat,
-- best.
function pivots.text(source, rows, o)
    local lines, across = pivot(source, rows, o)
    return pivot_text(rows, lines, across, o)
end

-- --- ratios ----------------------------------------------------------------
-- Times as fast as another point: that of the same parameters but for some,
-- which name the base. What is zipped with these goes along with them.

local function check_base(what, source, base)
    if type(base) ~= "table" or next(base) == nil then
        checks.fail(what, "ratio_to is %s, expected the base's parameters: " ..
            "ratio_to = {kernel = \"cublas\"}", checks.brief(base))
    end
    for name in next, base do
        sources.check_axis(what, "ratio_to", source, name)
    end
end

-- "x cublas"
local function name_of(base)
    local words = {}
    for _, value in next, base do words[#words + 1] = sources.plain(value) end
    sort(words)
    return "x " .. concat(words, " ")
end

-- Seconds that count: under a load that lasts where both have them.
local function ratio_of(row, base)
    if row.held and base.held then return base.held / row.held end
    return row.median and row.median > 0 and base.median and
        base.median / row.median or nil
end

-- --- zipped axes ------------------------------------------------------------

-- Has the axis one value for each of the leading ones' values?
local function follows(source, axis, leading)
    local values = {}
    for _, p in ipairs(source.points or {}) do
        local key = sources.part(p, leading)
        if values[key] == nil then values[key] = p[axis] end
        if values[key] ~= p[axis] then return false end
    end
    return true
end

-- Of the axes that are zipped with some of the base: those that these decide,
-- and those that they do not, each with its leading ones.
local function partners(source, base)
    local along, apart = {}, {}
    for _, names in ipairs(source.joint or {}) do
        local leading, others = {}, {}
        for _, name in ipairs(names) do
            local list = base[name] == nil and others or leading
            list[#list + 1] = name
        end
        for _, name in ipairs(#leading > 0 and others or {}) do
            local list = follows(source, name, leading) and along or apart
            list[#list + 1] = {name = name, leading = leading}
        end
    end
    return along, apart
end

local function refuse(what, base, partner)
    local leading = concat(partner.leading, ", ")
    checks.fail(what, "ratio_to: %s and %s go together, and %s has several " ..
        "values of %s, none of which another point has: name %s in ratio_to " ..
        "as well", leading, partner.name,
        sources.describe(partner.leading, base), partner.name, partner.name)
end

-- --- bases ------------------------------------------------------------------

local function is_of(row, base)
    for name, value in next, base do
        if row.p[name] ~= value then return false end
    end
    return true
end

-- The rows that have the base's parameters and worked, by what `key` says of
-- them; one of them, and whether others are there.
local function find_bases(source, base, key)
    local bases, one, failed = {}, nil, false
    for _, row in ipairs(source.rows) do
        local is = is_of(row, base)
        if is and columns.is_good(row) then
            bases[key(row)], one = row, row
        end
        failed = failed or is
    end
    return bases, one, failed
end

-- What is to be said of the base: that it has other values of what is zipped,
-- or that it did not work.
local function note_of(source, name, base, along, one)
    if not one then
        return format("%s: no point that worked has %s", name,
            sources.describe(source.axes, base))
    elseif #along == 0 then
        return nil
    end
    local named, words = checks.copied(base), {}
    for i, partner in ipairs(along) do
        named[partner.name] = one.p[partner.name]
        words[i] = partner.name .. " and " .. concat(partner.leading, ", ")
    end
    return format("%s: beside %s; together go %s", name,
        sources.describe(source.axes, named), concat(words, ", "))
end

-- Copies of the rows with the figure, its name, and what is to be said of it.
function ratios.add(what, source, rows, base)
    check_base(what, source, base)
    local along, apart = partners(source, base)
    local left_out = checks.copied(base)
    for _, partner in ipairs(along) do left_out[partner.name] = true end
    local function key(row)
        local p = {}
        for name, value in next, row.p do
            if left_out[name] == nil then p[name] = value end
        end
        return sources.signature(p)
    end
    local bases, one, failed = find_bases(source, base, key)
    if not one and not failed then
        checks.fail(what, "ratio_to: no point has %s",
            sources.describe(source.axes, base))
    end
    local name, list, beside = name_of(base), {}, false
    for i, row in ipairs(rows) do
        local other = columns.is_good(row) and bases[key(row)]
        local values = checks.copied(row.values or {})
        values[name] = other and ratio_of(row, other) or nil
        list[i] = checks.copied(row)
        list[i].values = values
        beside = beside or other and other ~= row
    end
    if one and not beside and apart[1] then refuse(what, base, apart[1]) end
    return list, name, note_of(source, name, base, along, one)
end

-- --- tables ----------------------------------------------------------------
-- Tables of an experiment: a plain list of its points, or one axis against
-- another.

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

local function checked(source, options)
    local o = {}
    for name, value in next, checks.options("experiment.table", options) do
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

tables.notes = notes

return tables
