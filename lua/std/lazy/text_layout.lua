-- Text in the width of the terminal: columns of which some are left out where
-- it is narrow, and lines broken between words.
local texts = require "lumat.texts"
local layout = {}
local ipairs = ipairs
local concat, larger, smaller = table.concat, math.max, math.min
local gmatch, gsub, len = string.gmatch, string.gsub, utf8.len
local rep, sub, offset = string.rep, string.sub, utf8.offset

local function columns_of(text)
    return len(text) or #text
end

-- Columns of the terminal, or of what stands for one.
local function width()
    return (texts.style())
end
layout.width = width

-- Words in lines, the first behind `lead`, the others behind as many blanks as
-- that takes, or `indent`. A word that is wider than the terminal stays whole.
function layout.wrap(lead, text, indent)
    local lines, wide = {}, width()
    indent = smaller(indent or columns_of(lead), wide // 2)
    local line, empty = lead, true
    for word in gmatch(text, "%S+") do
        local blank = empty and "" or " "
        if columns_of(line .. blank .. word) > wide and not (empty and
            columns_of(line) <= indent) then
            lines[#lines + 1] = gsub(line, " +$", "")
            line, blank = rep(" ", indent), ""
        end
        line, empty = line .. blank .. word, false
    end
    lines[#lines + 1] = gsub(line, " +$", "")
    return concat(lines, "\n")
end

-- Parts of a line, two blanks between them, as many in a row as fit; rows but
-- the first are indented.
function layout.flow(parts)
    local lines, wide, line = {}, width(), nil
    for _, part in ipairs(parts) do
        if line and columns_of(line) + 2 + columns_of(part) <= wide then
            line = line .. "  " .. part
        else
            lines[#lines + 1] = line
            line = #lines > 0 and layout.wrap("  ", part) or
                layout.wrap("", part, 2)
        end
    end
    lines[#lines + 1] = line
    return concat(lines, "\n")
end

local function cut(text, columns)
    if columns_of(text) <= columns then return text end
    local last = len(text) and offset(text, columns) or columns
    local _, ascii = texts.style()
    return sub(text, 1, last - 1) .. (ascii and "~" or "…")
end

local function measure(columns, rows)
    for i, c in ipairs(columns) do
        c.columns = columns_of(c.title)
        for _, row in ipairs(rows) do
            c.columns = larger(c.columns, columns_of(row[i]))
        end
    end
end

local function whole(columns, indent)
    local sum, shown = indent, 0
    for _, c in ipairs(columns) do
        if not c.left_out then sum, shown = sum + c.columns, shown + 1 end
    end
    return sum + 2 * (shown - 1)
end

-- The column to be left out next, if one may be.
local function least_of(columns)
    local least
    for _, c in ipairs(columns) do
        if c.drop and not c.left_out and
            (not least or c.drop < least.drop) then least = c end
    end
    return least
end

-- By how much the columns that may be cut can be.
local function slack_of(columns)
    local slack = 0
    for _, c in ipairs(columns) do
        slack = slack + larger(0, c.columns - (c.least or c.columns))
    end
    return slack
end

-- Leaves out columns until cutting makes the others fit; returns the names of
-- those that are gone.
local function fit(columns, indent)
    local gone, wide, slack = {}, width(), slack_of(columns)
    while whole(columns, indent) - slack > wide and least_of(columns) do
        local c = least_of(columns)
        c.left_out, gone[#gone + 1] = true, c.name or c.title
    end
    for _, c in ipairs(columns) do
        local over = whole(columns, indent) - wide
        if over > 0 and c.least then
            c.columns = larger(c.least, c.columns - over)
        end
    end
    return gone
end

local function line_of(columns, indent, cell)
    local parts = {}
    for i, c in ipairs(columns) do
        if not c.left_out then
            local text = cut(cell(i, c), c.columns)
            local pad = rep(" ", c.columns - columns_of(text))
            parts[#parts + 1] = c.left and text .. pad or pad .. text
        end
    end
    return rep(" ", indent) .. gsub(concat(parts, "  "), " +$", "")
end

-- Lines of a table with a heading. A column has a title (or a name for where
-- it is left out); left: its texts begin at the left; least: it may be cut to
-- so many columns; drop: it may be left out, the smallest first. Rows are
-- lists of texts.
function layout.table(columns, rows, indent)
    measure(columns, rows)
    local gone, lines = fit(columns, indent), {}
    lines[1] = line_of(columns, indent, function(_, c) return c.title end)
    for k, row in ipairs(rows) do
        lines[k + 1] = line_of(columns, indent, function(i) return row[i] end)
    end
    return lines, gone
end

-- Names in columns, downwards, as many as fit.
function layout.list(names)
    local wide, longest, lines = width(), 0, {}
    for _, name in ipairs(names) do
        longest = larger(longest, columns_of(name))
    end
    local columns = larger(1, (wide + 2) // (longest + 2))
    local rows = (#names + columns - 1) // columns
    for row = 1, rows do
        local line = ""
        for i = row, #names, rows do
            local name = gsub(names[i], "%c", "?")
            line = line .. name .. rep(" ", longest + 2 - columns_of(name))
        end
        lines[row] = gsub(line, " +$", "")
    end
    return concat(lines, "\n")
end

-- What a table says of the columns that it had no room for.
function layout.gone(gone)
    return layout.wrap("  ", "left out at " .. width() .. " columns: " ..
        concat(gone, ", "), 2)
end

return layout
