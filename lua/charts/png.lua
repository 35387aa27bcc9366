-- Charts as pixels: what a painter is told is kept until it is known how large
-- they are, and laid onto a raster then.
local canvas = require "lumat.canvas"
local font = require "lumat.stroke_font"
local marks = require "lumat.marks"
local svg = require "lumat.svg"
local png = {}
local ipairs, next, setmetatable, tonumber = ipairs, next, setmetatable,
    tonumber
local cos, pi, sin = math.cos, math.pi, math.sin
local unpack = table.unpack
local nan <const> = 0 / 0

local painter = {}
painter.__index = painter

function png.new(width, height)
    return setmetatable({width = width, height = height}, painter)
end

-- --- drawing ------------------------------------------------------------------
-- d: raster, scale, x and y of what is drawn, is_dark.

local draw = {}

local function properties(d, class) return svg.properties(class, d.is_dark) end

-- Points of the chart in pixels.
local function placed(d, points)
    local list = {}
    for i = 1, #points, 2 do
        list[i] = (points[i] + d.x) * d.scale
        list[i + 1] = (points[i + 1] + d.y) * d.scale
    end
    return list
end

local function stroke(d, points, style, colour, width)
    colour = colour or style.stroke
    if not colour or colour == "none" then return end
    d.raster:stroke(placed(d, points), (width or tonumber(
        style["stroke-width"]) or 1) * d.scale, colour,
        tonumber(style.opacity) or 1)
end

local function fill(d, points, style, colour)
    colour = colour or style.fill
    if colour == "none" then return end
    d.raster:fill(placed(d, points), colour or "#000000",
        tonumber(style["fill-opacity"] or style.opacity) or 1)
end

local BOLD, THIN = 0.115, 0.085 -- of the size, the width of the pen

function draw.text(d, x, y, text, class, anchor, turned)
    local style = properties(d, class)
    local size = tonumber((style["font-size"] or "13"):match("[%d.]+"))
    local angle = (turned or 0) * pi / 180
    local c, s = cos(angle), sin(angle)
    local back = anchor == "end" and 1 or anchor == "middle" and 0.5 or 0
    local width = back * font.width(text, size)
    local lines = font.strokes(text, x - width * c, y - width * s, size, c, s)
    local pen = size * (style["font-weight"] and BOLD or THIN)
    if style.stroke and style.stroke ~= "none" then -- around the letters
        stroke(d, lines, style, nil, pen + tonumber(style["stroke-width"]))
    end
    stroke(d, lines, style, style.fill or svg.ink(d.is_dark), pen)
end

function draw.line(d, x1, y1, x2, y2, class)
    local style = properties(d, class)
    if not style["stroke-width"] and (x1 == x2 or y1 == y2) then
        -- a thin line on whole pixels is sharp
        local function sharp(a, by) return ((a + by) * d.scale + 0.5) // 1 end
        local px1, px2 = sharp(x1, d.x), sharp(x2, d.x)
        local py1, py2 = sharp(y1, d.y), sharp(y2, d.y)
        local thick = d.scale // 1 < 1 and 1 or d.scale // 1
        if x1 == x2 then px2 = px2 + thick else py2 = py2 + thick end
        d.raster:fill({px1, py1, px2, py1, px2, py2, px1, py2}, style.stroke)
        return
    end
    stroke(d, {x1, y1, x2, y2}, style)
end

function draw.path(d, points, class) stroke(d, points, properties(d, class)) end

function draw.rect(d, x, y, width, height, class, colour)
    local style = properties(d, class)
    local corners = {x, y, x + width, y, x + width, y + height, x, y + height}
    fill(d, corners, style, not class and colour or nil)
    corners[9], corners[10] = x, y
    stroke(d, corners, style)
end

function draw.mark(d, i, x, y)
    local points, is_hollow = marks.of(i, x, y)
    local style = properties(d, is_hollow and "hollow s" .. i or "f" .. i)
    fill(d, points, style)
    points[#points + 1], points[#points + 2] = points[1], points[2]
    stroke(d, points, style)
end

function draw.dots(d, points, i)
    local list = {}
    for k = 1, #points, 2 do
        local n = #list
        list[n + 1], list[n + 2] = points[k], points[k + 1]
        list[n + 3], list[n + 4] = nan, nan
    end
    stroke(d, list, properties(d, "dots s" .. i))
end

function draw.cross(d, i, x, y)
    stroke(d, marks.cross(x, y), properties(d, "line s" .. i))
end

function draw.bar(d, i, x, low, high)
    stroke(d, marks.bar(x, low, high), properties(d, "bar s" .. i))
end

function draw.level(d, segments, colour)
    stroke(d, marks.level(segments), properties(d, "level"), colour)
end

function draw.image(d, x, y, width, height, rows, cols, rgb)
    d.raster:put((x + d.x) * d.scale, (y + d.y) * d.scale, width * d.scale,
        height * d.scale, rows, cols, rgb)
end

function draw.cut(d, x, y, width, height)
    d.raster:clip((x + d.x) * d.scale, (y + d.y) * d.scale, width * d.scale,
        height * d.scale)
end

function draw.uncut(d) d.raster:clip() end

function draw.move(d, x, y) d.x, d.y = d.x + x, d.y + y end

for name in next, draw do
    painter[name] = function(self, ...) self[#self + 1] = {name, ...} end
end

-- All of another one, moved.
function painter:put(x, y, other)
    self[#self + 1] = {"move", x, y}
    for _, told in ipairs(other) do self[#self + 1] = told end
    self[#self + 1] = {"move", -x, -y}
end

-- The raster, `scale` pixels wide and high for each of the chart's.
function painter:pixels(is_dark, scale)
    local paper = svg.properties("paper", is_dark).fill
    local d = {scale = scale, x = 0, y = 0, is_dark = is_dark,
        raster = canvas.raster((self.width * scale + 0.5) // 1 | 0,
            (self.height * scale + 0.5) // 1 | 0, paper)}
    for _, told in ipairs(self) do draw[told[1]](d, unpack(told, 2, 9)) end
    return d.raster
end

return png
