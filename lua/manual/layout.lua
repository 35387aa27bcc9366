-- Laying out the manual's text for a screen: paragraphs and two columns,
-- filled to a width that people read, cut where the screen ends.
local manual = ...
local concat, format = table.concat, string.format
local rep, gsub, gmatch, find = string.rep, string.gsub, string.gmatch, string.find
local ipairs, max, min = ipairs, math.max, math.min
local length_of = utf8.len

local WIDEST = 90 -- longer lines are hard to read
local NARROW = 50 -- below it, columns stand under each other
local MOST_LEFT = 30

-- Of a screen: characters, or bytes of what is no UTF-8.
local function columns(text)
    return length_of(text) or #text
end
manual.columns = columns

local function padded(text, width)
    return text .. rep(" ", width - columns(text))
end
manual.padded = padded

-- Adds the words of text to lines, the first line behind `first`, the others
-- behind so many blanks.
local function fill(lines, text, width, first, indent)
    local line, empty = first, true
    for word in gmatch(text, "%S+") do
        if not empty and columns(line) + 1 + columns(word) > width then
            lines[#lines + 1] = line
            line, empty = rep(" ", indent), true
        end
        line = line .. (empty and "" or " ") .. word
        empty = false
    end
    lines[#lines + 1] = gsub(line, "%s+$", "")
end

-- The style, no wider than people read.
function manual.screen(style)
    return {width = min(style.width, WIDEST), height = style.height,
            ascii = style.ascii}
end

-- Adds the text, filled, from column `indent` on.
function manual.paragraph(lines, text, width, indent)
    fill(lines, text, width, rep(" ", indent), indent)
end

-- The width of the left column: as the longest entry that is not too long.
local function left_of(rows, most)
    local left = 0
    for _, row in ipairs(rows) do
        local n = columns(row[1])
        if n <= most then left = max(left, n) end
    end
    return left
end

-- Adds rows of two columns from `indent` on, the left one `least` wide or more;
-- in a narrow screen the right one stands under the left one.
function manual.rows(lines, rows, width, indent, least)
    local narrow = width < NARROW
    local left = max(left_of(rows, MOST_LEFT), least or 0)
    local text = indent + left + 2
    for _, row in ipairs(rows) do
        local first = rep(" ", indent) .. row[1]
        if narrow or columns(row[1]) > left then
            lines[#lines + 1] = first
            local to = narrow and indent + 2 or text
            fill(lines, row[2], width, rep(" ", to), to)
        else
            fill(lines, row[2], width, padded(first, text), text)
        end
    end
end

local plain = {["…"] = "...", ["·"] = ".", ["→"] = "->", ["↑"] = "Up",
               ["↓"] = "Down"}

-- The lines as one text, in characters the terminal has.
function manual.text(lines, style)
    local text = concat(lines, "\n")
    return style.ascii and gsub(text, "[\xC2-\xF4][\x80-\xBF]*", plain) or text
end
