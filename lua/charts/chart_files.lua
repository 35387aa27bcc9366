-- Charts in files: .svg, .png and .pdf, each by a painter of its own, so that
-- no other program is needed. A file is written whole or not at all.
local checks = require "lumat.checks"
local svg = require "lumat.svg"
local texts = require "lumat.texts"
local vector_charts = require "lumat.vector_charts"
local chart_files = {}
local lower, match, require = string.lower, string.match, require
local larger = math.max

-- The text of an SVG file, or of a part of a page. o: width, height, dark.
function chart_files.svg(chart, o, is_part)
    return vector_charts.draw(chart, o, svg.new):finish(chart.title or "chart",
        is_part, o.dark)
end

-- A raster, `scale` pixels wide and high for each of the chart's.
function chart_files.pixels(chart, o, scale)
    local png = require "lumat.png"
    return vector_charts.draw(chart, o, png.new):pixels(o.dark, scale)
end

local function pdf(_, chart, o)
    local pages = require "lumat.pdf"
    return vector_charts.draw(chart, o, pages.new):finish(chart.title or
        "chart", o.dark)
end

local SHARP = 2 -- pixels of a .png file for one of the chart, if it has room
local MOST_EDGE, MOST_PIXELS = 20000, 1 << 26

local function png(who, chart, o)
    local painter = vector_charts.draw(chart, o, require "lumat.png".new)
    local width, height = painter.width, painter.height
    local function fits(scale)
        return larger(width, height) * scale < MOST_EDGE and
            width * height * scale * scale < MOST_PIXELS
    end
    if not fits(1) then
        checks.fail(who, "%.0f x %.0f pixels are too many for a .png file",
            width, height)
    end
    return painter:pixels(o.dark, fits(SHARP) and SHARP or 1):png()
end

local function as_svg(_, chart, o) return chart_files.svg(chart, o) end

local made = {svg = as_svg, pdf = pdf, png = png}

-- The extension, which says what to draw.
local function extension_of(who, file)
    local extension = lower(match(file, "%.(%w+)$") or "")
    if not made[extension] then
        checks.fail(who, "%q: a picture's name ends in .svg, .png or .pdf",
            file)
    elseif match(file, "%c") then
        checks.fail(who, "%q: a picture's name has no control characters",
            file)
    end
    return extension
end

-- Raises what is wrong with the name.
function chart_files.check_name(who, file) extension_of(who, file) end

-- Draws the chart into the file; errors begin with "who: ". o: width, height
-- and dark. Gives what shows that it did.
function chart_files.write(who, chart, file, o)
    file = texts.path(file)
    local make = made[extension_of(who, file)]
    texts.write(who, file, function() return make(who, chart, o) end)
    return checks.shown({file = file}, "wrote " .. file)
end

return chart_files
