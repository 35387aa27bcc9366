-- Colours and marks: which series is which, and which colour a value of an
-- image has. The drawers take them from here, so that a chart looks alike in
-- a terminal, in a page and in a file.
local canvas = require "lumat.canvas"
local palette = {}
local ipairs = ipairs
local floor, larger, log, smaller = math.floor, math.max, math.log, math.min
local format, sub, tonumber = string.format, string.sub, tonumber

-- Series have numbers from 1 on, their inks; an eighth is followed by the
-- first again. Colours have a contrast of 3 to 1 and more on white and on dark
-- paper; a terminal's are the nearest bright ones of its 256.
palette.colours = {"#3b82d6", "#d9650b", "#2a9d4a", "#a259d9", "#e0405a",
    "#14919b", "#a5782c", "#7c828d"}
palette.codes = {"38;5;39", "38;5;208", "38;5;35", "38;5;141", "38;5;197",
    "38;5;45", "38;5;178", "38;5;245"}

-- What marks points, and what draws whole lines where there are no colours.
palette.marks = {"●", "■", "▲", "◆", "○", "□", "△", "◇"}
palette.plain_marks = {"*", "+", "o", "x", "#", "%", "@", "&"}
palette.MOST = #palette.colours

function palette.ink(i) return (i - 1) % palette.MOST + 1 end

-- --- values of images -------------------------------------------------------

local stops = {}

-- The nine colours from the least value to the greatest, {r, g, b} each: from
-- dark to light, or, where values lie on both sides of 0, blue below it and
-- red above.
function palette.stops(is_two_sided)
    local key = is_two_sided and 2 or 1
    stops[key] = stops[key] or canvas.palette(is_two_sided)
    return stops[key]
end

-- Do low .. high have a side below 0 and one above it?
function palette.is_two_sided(low, high, is_log)
    return not is_log and low < 0 and high > 0
end

-- Where a value of low .. high lies among the colours, from 0 to 1.
function palette.share(value, low, high, is_log)
    if high / 2 <= low / 2 then return 0.5 end
    if is_log then
        -- differences, as the quotients may overflow
        local width = log(high) - log(low)
        return width > 0 and (log(value) - log(low)) / width or 0.5
    end
    if low < 0 and high > 0 then
        return 0.5 + value / larger(-low, high) / 2
    end
    return (value / 2 - low / 2) / (high / 2 - low / 2)
end

-- The colour at a share, as "#rrggbb".
function palette.colour(share, is_two_sided)
    local list = palette.stops(is_two_sided)
    local at = smaller(larger(share, 0), 1) * (#list - 1)
    local i = smaller(floor(at), #list - 2)
    local a, b, rest, c = list[i + 1], list[i + 2], at - i, {}
    for k = 1, 3 do c[k] = floor(a[k] + rest * (b[k] - a[k]) + 0.5) end
    return format("#%02x%02x%02x", c[1], c[2], c[3])
end

-- Light as eyes see it, of a channel from 0 to 255 and of a colour. Source: WCAG
-- 2.1, relative luminance.
local function linear(value)
    value = value / 255
    return value <= 0.03928 and value / 12.92 or ((value + 0.055) / 1.055) ^ 2.4
end

local function encoded(value)
    value = value <= 0.0031 and value * 12.92 or 1.055 * value ^ (1 / 2.4) - 0.055
    return floor(smaller(larger(value, 0), 1) * 255 + 0.5)
end

-- With these a line has a contrast of 3 to 1 on white and on dark paper.
local DARKEST, LIGHTEST = 0.14, 0.28

-- The colour of a line at a share: that of an image, but never as light or as
-- dark as paper.
function palette.line_colour(share, is_two_sided)
    local colour, c, light = palette.colour(share, is_two_sided), {}, 0
    for k, weight in ipairs{0.2126, 0.7152, 0.0722} do
        c[k] = linear(tonumber(sub(colour, 2 * k, 2 * k + 1), 16))
        light = light + weight * c[k]
    end
    for k = 1, 3 do
        if light > LIGHTEST then
            c[k] = c[k] * LIGHTEST / light
        elseif light < DARKEST then
            c[k] = c[k] + (1 - c[k]) * (DARKEST - light) / (1 - light)
        end
    end
    return format("#%02x%02x%02x", encoded(c[1]), encoded(c[2]), encoded(c[3]))
end

-- The nearest of a terminal's 256 colours to "#rrggbb".
function palette.code(colour)
    local function level(k)
        local value = tonumber(sub(colour, k, k + 1), 16)
        return value < 48 and 0 or value < 115 and 1 or (value - 35) // 40
    end
    return format("38;5;%d", 16 + 36 * level(2) + 6 * level(4) + level(6))
end

-- Is text on that colour to be dark?
function palette.is_light(share, is_two_sided)
    if is_two_sided then return share > 0.2 and share < 0.8 end
    return share > 0.55
end

return palette
