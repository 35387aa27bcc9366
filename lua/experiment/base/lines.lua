-- Lines of text for terminals: columns that stand below one another.
local labels = require "lumat.labels"
local lines = {}
local ipairs = ipairs
local concat = table.concat
local format, gsub, rep = string.format, string.gsub, string.rep
local len = utf8.len
local larger = math.max

-- Text that a terminal shows as it is: no control characters in it.
local function harmless(text)
    if not len(text) then text = gsub(text, "[\x80-\xff]", "?") end
    return (gsub(text, "%c", function(c) return format("\\%03d", c:byte()) end))
end
lines.harmless = harmless

local function padded(text, width, to_left)
    local space = rep(" ", width - labels.width(text))
    return to_left and text .. space or space .. text
end

local GAP, LEAST = 2, 24 -- between columns; of one that is made narrower

local function widths_of(table_of)
    local widths = {}
    for _, line in ipairs(table_of) do
        for i, cell in ipairs(line) do
            line[i] = harmless(cell)
            widths[i] = larger(widths[i] or 0, labels.width(line[i]))
        end
    end
    return widths
end

local function cut_column(table_of, i, most)
    local cells = {}
    for n = 2, #table_of do cells[n - 1] = table_of[n][i] or "" end
    for n, cell in ipairs(labels.fitted(cells, most, labels.width)) do
        if table_of[n + 1][i] then table_of[n + 1][i] = cell end
    end
end

-- Makes the widest columns of names narrower, until the table is no wider than
-- `most` or nothing is left to take.
local function narrow(table_of, left, names, most)
    for _ = 1, names do
        local widths, whole, widest = widths_of(table_of), 0, nil
        for i, width in ipairs(widths) do
            whole = whole + width + GAP
            if i <= names and left[i] and width > LEAST and
                (not widest or width > widths[widest]) then
                widest = i
            end
        end
        if whole <= most or not widest then return end
        cut_column(table_of, widest,
            larger(LEAST, widths[widest] - (whole - most)))
    end
end

-- A table's lines, cells in columns as wide as they need to be; left: columns
-- whose text begins at the left; the first of them, `names` many, may be cut
-- where a line would be wider than `most`.
local function aligned(table_of, left, names, most)
    if most and most > 0 then narrow(table_of, left, names, most) end
    local widths, out = widths_of(table_of), {}
    for n, line in ipairs(table_of) do
        local cells = {}
        for i, cell in ipairs(line) do
            cells[i] = padded(cell, widths[i], left[i])
        end
        out[n] = (gsub("  " .. concat(cells, "  "), "%s+$", ""))
    end
    return out
end
lines.aligned = aligned

return lines
