-- Names in little room: how many places of a terminal a text takes, texts cut
-- so that they can still be told apart, and lines whose columns stand below one
-- another.
local ipairs = ipairs
local concat = table.concat
local larger, smaller = math.max, math.min
local find, format, gmatch, gsub, rep, sub = string.find, string.format,
    string.gmatch, string.gsub, string.rep, string.sub
local codes, len, pattern = utf8.codes, utf8.len, utf8.charpattern
local labels, lines = {}, {}

-- --- places -----------------------------------------------------------------

-- First and last of the characters that take no place, and of those that take
-- two: combining marks, joiners and selectors; East Asian wide ones, pictures.
local none = {{0x300, 0x36f}, {0x200b, 0x200f}, {0x20d0, 0x20ff},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}}
local two = {{0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0xa4cf},
    {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60},
    {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
    {0x1f900, 0x1faff}, {0x20000, 0x3fffd}}

local function is_in(ranges, c)
    for _, range in ipairs(ranges) do
        if c >= range[1] and c <= range[2] then return true end
    end
    return false
end

function labels.width(text)
    if not find(text, "[\x80-\xff]") then return #text end
    if not len(text) then return #text end
    local width = 0
    for _, c in codes(text) do
        width = width + (c < 0x300 and 1 or is_in(none, c) and 0 or
            is_in(two, c) and 2 or 1)
    end
    return width
end

-- --- cutting ----------------------------------------------------------------

-- The beginning of a text that is no wider than `most` with "…", or what is
-- given, behind it, or all of it; width(text) measures.
function labels.cut(text, most, width, dots)
    dots = dots or "…"
    if not len(text) or width(text) <= most then return text end
    local parts = {}
    for c in gmatch(text, pattern) do
        parts[#parts + 1] = c
        if width(concat(parts) .. dots) > most then
            parts[#parts] = nil
            break
        end
    end
    return concat(parts) .. dots
end

local function reverse(text)
    local parts, n = {}, 0
    for c in gmatch(text, pattern) do n = n + 1 parts[n] = c end
    for k = 1, n // 2 do
        parts[k], parts[n + 1 - k] = parts[n + 1 - k], parts[k]
    end
    return concat(parts)
end

-- Its beginning and its end.
local function cut_inside(text, most, width)
    if not len(text) or width(text) <= most then return text end
    local head = labels.cut(text, (most + width("…")) / 2, width)
    local tail = labels.cut(reverse(text), most - width(head) + width("…"),
        width)
    return head .. reverse(sub(tail, 1, -1 - #"…"))
end

-- Every text cut, and whether two that differ are alike then.
local function cut_all(list, most, width, cut_one)
    local cut, seen, clash = {}, {}, false
    for i, text in ipairs(list) do
        cut[i] = cut_one(text, most, width)
        clash = clash or (seen[cut[i]] or text) ~= text
        seen[cut[i]] = text
    end
    return cut, clash
end

local function reversed(list)
    local back = {}
    for i, text in ipairs(list) do back[i] = reverse(text) end
    return back
end

-- The texts without what all of them begin with.
local function without_common(list)
    local shortest, common = #list[1], nil
    for _, text in ipairs(list) do shortest = smaller(shortest, #text) end
    common = sub(list[1], 1, shortest)
    for _, text in ipairs(list) do
        while sub(text, 1, #common) ~= common do common = sub(common, 1, -2) end
    end
    while #common > 0 and not len(common) do common = sub(common, 1, -2) end
    local rest = {}
    for i, text in ipairs(list) do
        rest[i] = #common > 1 and "…" .. sub(text, #common + 1) or text
    end
    return rest
end

-- Texts, none wider than `most`: where cutting makes two of them alike, what
-- all begin with and end with goes first, or else what is inside.
function labels.fitted(list, most, width)
    local cut, clash = cut_all(list, most, width, labels.cut)
    if not clash then return cut end
    local short = reversed(without_common(reversed(without_common(list))))
    cut, clash = cut_all(short, most, width, labels.cut)
    if not clash then return cut end
    return (cut_all(short, most, width, cut_inside))
end

-- --- lines of text ---------------------------------------------------------
-- For terminals.

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

labels.lines = lines

return labels
