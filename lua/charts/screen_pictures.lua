-- Charts as pictures on a terminal that shows them: the control sequences of
-- kitty, of iTerm2 and of sixels.
local chart_files = require "lumat.chart_files"
local chart_values = require "lumat.chart_values"
local svg = require "lumat.svg"
local vector_charts = require "lumat.vector_charts"
local screen_pictures = {}
local floor, larger, smaller = math.floor, math.max, math.min
local concat = table.concat
local format, sub = string.format, string.sub

local WIDEST = 100 -- columns
local SMALLEST, LARGEST = 0.6, 3 -- pixels for one of the chart's

local PIECE = 4096 -- bytes of a kitty sequence

local ways = {}

function ways.kitty(raster)
    local data, out = svg.base64(raster:png()), {}
    for i = 1, #data, PIECE do
        out[#out + 1] = format("\27_G%sm=%d;%s\27\\", i == 1 and
            "a=T,f=100,q=2," or "", i + PIECE <= #data and 1 or 0,
            sub(data, i, i + PIECE - 1))
    end
    return concat(out)
end

function ways.iterm(raster)
    local png = raster:png()
    return format("\27]1337;File=inline=1;size=%d:%s\a", #png, svg.base64(png))
end

function ways.sixels(raster) return raster:sixels() end

-- The sequence that shows the chart, a newline behind it; nil of what is none.
-- s: shows (a way), width and height of the screen in characters, cell_width and
-- cell_height in pixels, dark.
function screen_pictures.draw(value, s)
    local chart, o = chart_values.chart_of(value)
    if not chart then return nil end
    local size = o.size or {vector_charts.width_of(chart), vector_charts.HEIGHT}
    local width, height = size[1], size[2]
    local scale = smaller((o.width or smaller(s.width, WIDEST)) * s.cell_width /
        width, (larger(s.height, 6) - 2) * s.cell_height / height)
    scale = larger(SMALLEST, smaller(LARGEST, floor(scale * 20) / 20))
    local raster = chart_files.pixels(chart, {width = width, height = height,
        dark = o.dark or s.dark}, scale)
    return ways[s.shows](raster) .. "\n"
end

return screen_pictures
