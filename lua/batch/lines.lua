-- Lines of text for terminals: columns that stand below one another.
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
    local space = rep(" ", width - len(text))
    return to_left and text .. space or space .. text
end

-- A table's lines, cells in columns as wide as they need to be; left: columns
-- whose text begins at the left.
local function aligned(table_of, left)
    local widths, out = {}, {}
    for _, line in ipairs(table_of) do
        for i, cell in ipairs(line) do
            line[i] = harmless(cell)
            widths[i] = larger(widths[i] or 0, len(line[i]))
        end
    end
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
