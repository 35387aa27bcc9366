-- Charts as PDF files: a page of shapes and of text that can be searched, in
-- the fonts that every reader has. Source: ISO 32000-1.
local canvas = require "lumat.canvas"
local marks = require "lumat.marks"
local svg = require "lumat.svg"
local pdf = {}
local ipairs, next, setmetatable, tonumber, type = ipairs, next,
    setmetatable, tonumber, type
local concat, sort, unpack = table.concat, table.sort, table.unpack
local cos, pi, sin = math.cos, math.pi, math.sin
local byte, char, format, gmatch, gsub, sub = string.byte, string.char,
    string.format, string.gmatch, string.gsub, string.sub
local codes, len = utf8.codes, utf8.len

local POINTS = 0.75 -- of a page for one of the chart's pixels

-- --- text ---------------------------------------------------------------------

-- Widths of Helvetica's letters from " " to "~", in thousandths of its size.
-- Source: Adobe's font metrics.
local widths = {}
for w in gmatch([[278 278 355 556 556 889 667 191 333 333 389 584 278 333 278
    278 556 556 556 556 556 556 556 556 556 556 278 278 584 584 584 556 1015 667
    667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611
    722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556
    556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500
    334 260 334 584]], "%d+") do widths[#widths + 1] = tonumber(w) end

-- Characters beyond Latin-1 that the encoding has, and its bytes.
local extra = {["€"] = 128, ["‚"] = 130, ["ƒ"] = 131, ["„"] = 132, ["…"] = 133,
    ["†"] = 134, ["‡"] = 135, ["‰"] = 137, ["Š"] = 138, ["Œ"] = 140,
    ["Ž"] = 142, ["‘"] = 145, ["’"] = 146, ["“"] = 147, ["”"] = 148,
    ["•"] = 149, ["–"] = 150, ["—"] = 151, ["™"] = 153, ["š"] = 154,
    ["œ"] = 156, ["ž"] = 158, ["Ÿ"] = 159, ["−"] = 150}
-- Those of the font Symbol, by the letters that stand for them there.
local greek = {}
for c, letter in gmatch([[αa βb χc δd εe φf γg ηh ιi κk λl μm νn οo πp θq ρr σs
    τt υu ωw ξx ψy ζz ΔD ΦF ΓG ΛL ΠP ΘQ ΣS ΩW ΞX ΨY]],
    "([\xc2-\xf4][\x80-\xbf]+)(%a)") do greek[c] = byte(letter) end
greek["∞"], greek["≤"], greek["≥"], greek["√"], greek["≈"], greek["→"] = 165,
    163, 179, 214, 187, 174

-- The text in runs {font, bytes, width in thousandths}.
local function runs_of(text, bold)
    local runs = {}
    if not len(text) then
        text = gsub(text, "[\x80-\xff]", function(c) return utf8.char(byte(c)) end)
    end
    for _, c in codes(text) do
        local one = utf8.char(c)
        local font = greek[one] and "S" or bold and "B" or "R"
        local code = greek[one] or extra[one] or c < 256 and c or 63
        if code < 32 or code >= 127 and code < 160 and not extra[one] then
            code = 63
        end
        local run = runs[#runs]
        if not run or run[1] ~= font then
            run = {font, "", 0}
            runs[#runs + 1] = run
        end
        run[2] = run[2] .. char(code)
        run[3] = run[3] + (widths[code - 31] or 556)
    end
    return runs
end

local function quoted(bytes)
    return "(" .. gsub(bytes, "[()\\]", "\\%0") .. ")"
end

-- --- painting -----------------------------------------------------------------

local painter = {}
painter.__index = painter

function pdf.new(width, height)
    return setmetatable({width = width, height = height}, painter)
end

-- d: list of what the page says, is_dark, shades {opacity = name}, images.
local draw = {}

local function number(x)
    local text = gsub(gsub(format("%.2f", x), "0+$", ""), "%.$", "")
    return text == "-0" and "0" or text
end

local function say(d, ...)
    local list = {...}
    for i, x in ipairs(list) do
        if type(x) == "number" then list[i] = number(x) end
    end
    d[#d + 1] = concat(list, " ")
end

local function colour_of(colour)
    return tonumber(sub(colour, 2, 3), 16) / 255,
        tonumber(sub(colour, 4, 5), 16) / 255,
        tonumber(sub(colour, 6, 7), 16) / 255
end

local function set_colour(d, colour, operator)
    local r, g, b = colour_of(colour)
    d[#d + 1] = format("%.3f %.3f %.3f %s", r, g, b, operator)
end

local function set_opacity(d, opacity)
    opacity = tonumber(opacity) or 1
    local name = format("G%d", opacity * 100)
    d.shades[name] = opacity
    say(d, "/" .. name .. " gs")
end

-- Closes what was begun by lines and curves: its inside, its lines, or both.
local function finish(d, style, fill, stroke, width)
    fill = fill ~= "none" and fill or nil
    stroke = stroke ~= "none" and stroke or nil
    set_opacity(d, fill and style["fill-opacity"] or style.opacity)
    if fill then set_colour(d, fill, "rg") end
    if stroke then
        set_colour(d, stroke, "RG")
        say(d, (width or tonumber(style["stroke-width"]) or 1), "w")
    end
    -- the path comes behind the colours
    say(d, d.path, fill and stroke and "B" or fill and "f" or stroke and "S" or
        "n")
end

local function path_of(points, is_closed)
    local list, begin = {}, true
    for i = 1, #points, 2 do
        local x, y = points[i], points[i + 1]
        if x ~= x then
            begin = true
        else
            list[#list + 1] = number(x) .. " " .. number(y) ..
                (begin and " m" or " l")
            begin = false
        end
    end
    return concat(list, " ") .. (is_closed and " h" or "")
end

local function stroke(d, points, class, colour)
    local style = svg.properties(class, d.is_dark)
    d.path = path_of(points)
    finish(d, style, nil, colour or style.stroke)
end

function draw.text(d, x, y, text, class, anchor, turned)
    local style = svg.properties(class, d.is_dark)
    local size = tonumber((style["font-size"] or "13"):match("[%d.]+"))
    local runs, width = runs_of(text, style["font-weight"]), 0
    for _, run in ipairs(runs) do width = width + run[3] * size / 1000 end
    local angle = (turned or 0) * pi / 180
    local c, s = cos(angle), sin(angle)
    local back = anchor == "end" and width or anchor == "middle" and width / 2 or
        0
    local has_rim = style.stroke and style.stroke ~= "none"
    for pass = has_rim and 1 or 2, 2 do
        say(d, "BT")
        set_opacity(d, 1)
        if pass == 1 then
            set_colour(d, style.stroke, "RG")
            say(d, tonumber(style["stroke-width"]), "w 1 Tr")
        else
            set_colour(d, style.fill or svg.ink(d.is_dark), "rg")
            say(d, "0 Tr")
        end
        d[#d + 1] = format("%.4f %.4f %.4f %.4f %s %s Tm", c, s, s, -c,
            number(x - back * c), number(y - back * s))
        for _, run in ipairs(runs) do
            say(d, "/" .. run[1], size, "Tf", quoted(run[2]), "Tj")
        end
        say(d, "ET")
    end
end

function draw.line(d, x1, y1, x2, y2, class) stroke(d, {x1, y1, x2, y2}, class) end

function draw.path(d, points, class) stroke(d, points, class) end

function draw.rect(d, x, y, width, height, class, colour)
    local style = svg.properties(class, d.is_dark)
    d.path = number(x) .. " " .. number(y) .. " " .. number(width) .. " " ..
        number(height) .. " re"
    finish(d, style, style.fill or colour or "#000000", style.stroke)
end

function draw.mark(d, i, x, y)
    local points, is_hollow = marks.of(i, x, y)
    local style = svg.properties(is_hollow and "hollow s" .. i or "f" .. i,
        d.is_dark)
    d.path = path_of(points, true)
    finish(d, style, style.fill, style.stroke)
end

function draw.dots(d, points, i)
    local list = {}
    for k = 1, #points, 2 do
        local x, y = number(points[k]), number(points[k + 1])
        list[#list + 1] = x .. " " .. y .. " m " .. x .. " " .. y .. " l"
    end
    local style = svg.properties("dots s" .. i, d.is_dark)
    d.path = concat(list, "\n")
    finish(d, style, nil, style.stroke)
end

function draw.cross(d, i, x, y)
    stroke(d, marks.cross(x, y), "line s" .. i)
end

function draw.bar(d, i, x, low, high)
    stroke(d, marks.bar(x, low, high), "bar s" .. i)
end

function draw.level(d, segments, colour)
    stroke(d, marks.level(segments), "level", colour)
end

function draw.image(d, x, y, width, height, rows, cols, rgb)
    local name = "I" .. #d.images + 1
    d.images[#d.images + 1] = {name = name, rows = rows, cols = cols, rgb = rgb}
    set_opacity(d, 1)
    -- an image is 1 wide and high, upwards
    say(d, "q", width, "0 0", -height, x, y + height, "cm /" .. name .. " Do Q")
end

function draw.cut(d, x, y, width, height)
    say(d, "q", x, y, width, height, "re W n")
end

function draw.uncut(d) say(d, "Q") end

local function draw_all(d, list)
    for _, told in ipairs(list) do
        draw[told[1]](d, unpack(told, 2, 9))
    end
end

function draw.put(d, x, y, other)
    say(d, "q 1 0 0 1", x, y, "cm")
    draw_all(d, other)
    say(d, "Q")
end

for name in next, draw do
    painter[name] = function(self, ...) self[#self + 1] = {name, ...} end
end

-- --- the file -----------------------------------------------------------------

local function stream(head, bytes)
    local packed = canvas.deflate(bytes)
    return format("<<%s /Filter /FlateDecode /Length %d>>\nstream\n", head,
        #packed) .. packed .. "\nendstream"
end

-- Objects with their numbers, the list of where they begin, and its place.
local function joined(objects)
    local out, at, places = {"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n"}, 15, {}
    for i, object in ipairs(objects) do
        places[i] = format("%010d 00000 n \n", at)
        out[#out + 1] = format("%d 0 obj\n", i) .. object .. "\nendobj\n"
        at = at + #out[#out]
    end
    out[#out + 1] = format("xref\n0 %d\n0000000000 65535 f \n%s" ..
        "trailer\n<</Size %d /Root 1 0 R /Info 2 0 R>>\nstartxref\n%d\n%%%%EOF\n",
        #objects + 1, concat(places), #objects + 1, at)
    return concat(out)
end

-- A text of a file's own, in the two bytes a character that all have.
local function told(text)
    local list = {"FEFF"}
    if not len(text) then text = gsub(text, "[\x80-\xff]", "?") end
    for _, c in codes(text) do
        list[#list + 1] = c < 0x10000 and format("%04X", c) or "FFFD"
    end
    return "<" .. concat(list) .. ">"
end

local function font(name, encoding)
    return format("<</Type /Font /Subtype /Type1 /BaseFont /%s%s>>", name,
        encoding and " /Encoding /WinAnsiEncoding" or "")
end

-- The bytes of a file.
function painter:finish(title, is_dark)
    local d = {is_dark = is_dark, shades = {}, images = {}}
    local height = self.height * POINTS
    say(d, "q", POINTS, "0 0", -POINTS, "0", height, "cm 1 J 1 j")
    draw_all(d, self)
    say(d, "Q")
    local shades, names, images = {}, {}, {}
    for name in next, d.shades do names[#names + 1] = name end
    sort(names)
    for i, name in ipairs(names) do
        shades[i] = format("/%s <</ca %.2f /CA %.2f>>", name, d.shades[name],
            d.shades[name])
    end
    for i, image in ipairs(d.images) do
        images[i] = format("/%s %d 0 R", image.name, 8 + i)
    end
    local objects = {
        "<</Type /Catalog /Pages 3 0 R>>",
        "<</Title " .. told(title) .. " /Producer (lumat)>>",
        "<</Type /Pages /Kids [4 0 R] /Count 1>>",
        format("<</Type /Page /Parent 3 0 R /MediaBox [0 0 %s %s] " ..
            "/Contents 5 0 R /Resources <</Font <</R 6 0 R /B 7 0 R /S 8 0 R>> " ..
            "/ExtGState <<%s>> /XObject <<%s>>>>>>", number(self.width * POINTS),
            number(height), concat(shades, " "), concat(images, " ")),
        stream("", concat(d, "\n")),
        font("Helvetica", true), font("Helvetica-Bold", true), font("Symbol"),
    }
    for _, image in ipairs(d.images) do
        objects[#objects + 1] = stream(format("/Type /XObject /Subtype /Image " ..
            "/Width %d /Height %d /ColorSpace /DeviceRGB /BitsPerComponent 8",
            image.cols, image.rows), image.rgb)
    end
    return joined(objects)
end

return pdf
