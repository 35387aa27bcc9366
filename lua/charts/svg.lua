-- Scalable vector graphics as text: elements with their attributes, every
-- name escaped. Colours stand in classes, so that a reader's dark theme can
-- change them; without style sheets the plain ones serve.
local canvas = require "lumat.canvas"
local labels = require "lumat.labels"
local marks = require "lumat.marks"
local palette = require "lumat.palette"
local svg = {}
local ipairs, tostring = ipairs, tostring
local concat = table.concat
local byte, format, gmatch, gsub, sub = string.byte, string.format,
    string.gmatch, string.gsub, string.sub
local char, len = utf8.char, utf8.len
local next, setmetatable, type = next, setmetatable, type

svg.FONT = 13

local rules = {
    ".chart text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;" ..
        "fill:#1d2129}",
    ".chart .title{font-weight:600;font-size:15px}",
    ".chart .soft{fill:#5b6370}",
    ".chart .small{stroke:#ffffff;stroke-width:3;paint-order:stroke}",

    ".chart .paper{fill:#ffffff}",
    ".chart .grid{stroke:#e3e6ea;fill:none}",
    ".chart .axis{stroke:#8b93a0;fill:none}",
    ".chart .roof{stroke:#1d2129;stroke-width:1.5;fill:none}",
    ".chart .line{fill:none;stroke-width:2;stroke-linejoin:round}",
    ".chart .dots{fill:none;stroke-width:2.2;stroke-linecap:round}",
    ".chart .bar{fill:none;stroke-width:1.2;opacity:.75}",
    ".chart .hollow{fill:#ffffff;stroke-width:2}",
    ".chart .none{fill:#d9dde3}",
    ".chart .box{fill:#ffffff;fill-opacity:.6;stroke-width:1.5}",
    ".chart .level{fill:none;stroke-width:1.5}",
    ".chart .small{font-size:11px}",
    ".chart .on-light{fill:#111111;stroke:none}",
    ".chart .on-dark{fill:#ffffff;stroke:none}",
}
local dark = {
    ".chart text{fill:#e4e7ec}", ".chart .soft{fill:#a3abb8}",
    ".chart .paper,.chart .hollow,.chart .box{fill:#15181e}",
    ".chart .small{stroke:#15181e}",
    ".chart .grid{stroke:#2b3038}", ".chart .axis{stroke:#6c7480}",
    ".chart .roof{stroke:#e4e7ec}", ".chart .none{fill:#343a44}",
    ".chart .on-light{fill:#111111;stroke:none}",
    ".chart .on-dark{fill:#ffffff;stroke:none}",
}
for i, colour in ipairs(palette.colours) do
    rules[#rules + 1] = format(".chart .s%d{stroke:%s}.chart .f%d{fill:%s}", i,
        colour, i, colour)
end

-- The style sheet of every chart.
svg.style = concat(rules, "\n") .. "\n@media(prefers-color-scheme:dark){\n" ..
    concat(dark, "\n") .. "\n}\n"

-- What the rules say of classes, for painters without style sheets:
-- {fill = "#rrggbb", ["stroke-width"] = "2" …}, the later class the stronger.
local said = {}
for _, is_dark in ipairs{false, true} do
    local of = {}
    for _, list in ipairs{rules, is_dark and dark or {}} do
        for _, rule in ipairs(list) do
            for names, text in gmatch(rule, "([^{}]+){([^}]*)}") do
                for name in gmatch(names, "%.chart ([%w.-]+)") do
                    of[name] = of[name] or {}
                    for key, value in gmatch(text, "([%w-]+):([^;]+)") do
                        of[name][key] = value
                    end
                end
            end
        end
    end
    said[is_dark] = of
end

function svg.properties(classes, is_dark)
    local of, all = said[is_dark or false], {}
    for name in gmatch(classes or "", "%S+") do
        for key, value in next, of["." .. name] or {} do all[key] = value end
    end
    return all
end

-- The colour of text that no class changes.
function svg.ink(is_dark) return said[is_dark or false].text.fill end

-- --- text -------------------------------------------------------------------

local entities = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;",
    ['"'] = "&quot;", ["'"] = "&#39;"}

-- Text as markup shows it, in UTF-8 without what XML does not allow: bytes
-- that are none become the characters of their numbers, control characters
-- their pictures.
function svg.escape(text)
    text = tostring(text)
    if not len(text) then
        text = gsub(text, "[\x80-\xff]", function(c) return char(byte(c)) end)
    end
    text = gsub(text, "[&<>\"']", entities)
    text = gsub(text, "[%z\1-\8\11\12\14-\31]", function(c)
        return char(0x2400 + byte(c))
    end)
    return (gsub(gsub(text, "\127", "\u{2421}"), "\u{fffe}", "\u{fffd}")
        :gsub("\u{ffff}", "\u{fffd}"))
end

local wide = {}
for c in gmatch(" .,:;'|!iIjl", ".") do wide[byte(c)] = 0.36 end
for c in gmatch("mwMW@%", ".") do wide[byte(c)] = 0.97 end
for c in gmatch("<>&+=~#", ".") do wide[byte(c)] = 0.85 end

-- About how wide a text is: wide enough for any common font.
function svg.width(text, size)
    local units = 0
    if not len(text) then return 0.6 * #text * (size or svg.FONT) end
    for _, c in utf8.codes(text) do
        units = units + (c >= 0x1100 and 1.05 or wide[c] or
            c >= 0x41 and c <= 0x5a and 0.74 or 0.63)
    end
    return units * (size or svg.FONT)
end

-- The text, or its beginning where it would be wider than so much.
function svg.cut(text, most, size)
    return labels.cut(text, most, function(part)
        return svg.width(part, size)
    end)
end

-- Texts cut so that they can still be told apart.
function svg.fitted(list, most)
    return labels.fitted(list, most, svg.width)
end

-- --- elements ---------------------------------------------------------------

-- A coordinate, to a tenth.
local function number(x)
    if type(x) ~= "number" then return svg.escape(x) end
    local text = gsub(format("%.1f", x), "%.0$", "")
    return text == "-0" and "0" or text
end
svg.number = number

local picture = {}
picture.__index = picture

function svg.new(width, height)
    return setmetatable({width = width, height = height}, picture)
end

-- Adds <name key="value" …>text</name>; attributes are pairs in a list.
function picture:add(name, attributes, text)
    local parts = {"<", name}
    for i = 1, #attributes, 2 do
        if attributes[i + 1] then
            parts[#parts + 1] = format(' %s="%s"', attributes[i],
                number(attributes[i + 1]))
        end
    end
    parts[#parts + 1] = text and ">" .. text .. "</" .. name .. ">" or "/>"
    self[#self + 1] = concat(parts)
end

-- anchor: "start", "middle" or "end" of the text is at x; turned: degrees.
function picture:text(x, y, text, class, anchor, turned)
    self:add("text", {"x", x, "y", y, "class", class,
        "text-anchor", anchor ~= "start" and anchor,
        "transform", turned and format("rotate(%s %s %s)", number(turned),
            number(x), number(y))}, svg.escape(text))
end

function picture:line(x1, y1, x2, y2, class)
    self:add("path", {"class", class, "d", format("M%s %sL%s %s", number(x1),
        number(y1), number(x2), number(y2))})
end

local function titled(note)
    return note and "<title>" .. svg.escape(note) .. "</title>"
end

-- Through points {x, y, x, y …}; is_closed: and back to the first.
function picture:path(points, class, note, is_closed)
    local parts = {}
    for i = 1, #points, 2 do
        parts[#parts + 1] = (i == 1 and "M" or "L") .. number(points[i]) ..
            " " .. number(points[i + 1])
    end
    parts[#parts + 1] = is_closed and "z" or nil
    self:add("path", {"class", class, "d", concat(parts)}, titled(note))
end

function picture:rect(x, y, width, height, class, fill, note)
    self:add("rect", {"x", x, "y", y, "width", width, "height", height,
        "class", class, "fill", fill}, titled(note))
end

-- An interval: a bar with caps.
function picture:bar(i, x, low, high)
    self:add("path", {"class", "bar s" .. i, "d", format(
        "M%s %sh6m-3 0V%sm-3 0h6", number(x - 3), number(low), number(high))})
end

-- Lines {x1, y1, x2, y2} of one colour.
function picture:level(segments, colour, note)
    local d = {}
    for i, s in ipairs(segments) do
        d[i] = format("M%s %sL%s %s", number(s[1]), number(s[2]), number(s[3]),
            number(s[4]))
    end
    self:add("path", {"class", "level", "stroke", colour, "d", concat(d)},
        titled(note))
end

-- Points {x, y, x, y …} that are too many for marks.
function picture:dots(points, i)
    local d = {}
    for k = 1, #points, 2 do
        d[#d + 1] = "M" .. number(points[k]) .. " " .. number(points[k + 1]) ..
            "h0"
    end
    self:add("path", {"class", "dots s" .. i, "d", concat(d)})
end

local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- Source: RFC 4648.
function svg.base64(bytes)
    local out = {}
    for i = 1, #bytes, 3 do
        local a, b, c = byte(bytes, i, i + 2)
        local all = a << 16 | (b or 0) << 8 | (c or 0)
        local four = ""
        for k = 18, 0, -6 do
            local at = (all >> k & 63) + 1
            four = four .. sub(digits, at, at)
        end
        out[#out + 1] = b and (c and four or sub(four, 1, 3) .. "=") or
            sub(four, 1, 2) .. "=="
    end
    return concat(out)
end

-- Cells of three bytes, the first row at the top.
function picture:image(x, y, width, height, rows, cols, rgb)
    local pixels = canvas.raster(cols, rows, "#ffffff")
    pixels:put(0, 0, cols, rows, rows, cols, rgb)
    self:add("image", {"x", x, "y", y, "width", width, "height", height,
        "preserveAspectRatio", "none", "style", "image-rendering:pixelated",
        "href", "data:image/png;base64," .. svg.base64(pixels:png())})
end

-- The mark of the i-th series: shapes too tell them apart.
function picture:mark(i, x, y, note)
    local points, is_hollow, r = marks.of(i, x, y)
    local class = is_hollow and "hollow s" .. i or "f" .. i
    if not r then return self:path(points, class, note, true) end
    r = number(r)
    local arc = format("a%s %s 0 1 0 ", r, r)
    self:add("path", {"class", class, "d", format("M%s %s%s%s 0%s-%s 0z",
        number(x - r), number(y), arc, number(2 * r), arc, number(2 * r))},
        titled(note))
end

-- A cross, for what failed.
function picture:cross(i, x, y, note)
    self:add("path", {"class", "line s" .. i, "d",
        format("M%s %sl8 8m0 -8l-8 8", number(x - 4), number(y - 4))},
        titled(note))
end

-- What is added until picture:uncut is seen in this rectangle alone.
function picture:cut(x, y, width, height)
    local at = concat({number(x), number(y), number(width), number(height)}, " ")
    self[#self + 1] = format('<svg x="%s" y="%s" width="%s" height="%s" ' ..
        'viewBox="%s">', number(x), number(y), number(width), number(height), at)
end

function picture:uncut() self[#self + 1] = "</svg>" end

-- Another picture inside this one.
function picture:put(x, y, other)
    self[#self + 1] = format('<g transform="translate(%s %s)">', number(x),
        number(y))
    for _, element in ipairs(other) do self[#self + 1] = element end
    self[#self + 1] = "</g>"
end

-- The whole picture; is_part: of a page that has the style sheet.
function picture:finish(title, is_part, is_dark)
    local head = format('<svg xmlns="http://www.w3.org/2000/svg" ' ..
        'class="chart" viewBox="0 0 %s %s" %srole="img" aria-label="%s">',
        number(self.width), number(self.height), is_part and "" or
        format('width="%s" height="%s" ', number(self.width),
            number(self.height)), svg.escape(title))
    return head .. "\n" .. (is_part and "" or "<style>" .. (is_dark and
        concat(rules, "\n") .. "\n" .. concat(dark, "\n") .. "\n" or
        svg.style) .. "</style>\n") .. concat(self, "\n") .. "\n</svg>\n"
end

return svg
