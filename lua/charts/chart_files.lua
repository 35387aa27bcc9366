-- Charts in files: .svg, .png and .pdf, each by a painter of its own, so that
-- no other program is needed. A file is written whole or not at all.
local checks = require "lumat.checks"
local svg = require "lumat.svg"
local texts = require "lumat.texts"
local vector_charts = require "lumat.vector_charts"
local chart_files = {}
local error, gsub, lower, match, pcall, require, tostring = error,
    string.gsub, string.lower, string.match, pcall, require, tostring

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

local function pdf(chart, o)
    local pages = require "lumat.pdf"
    return vector_charts.draw(chart, o, pages.new):finish(chart.title or
        "chart", o.dark)
end

local SHARP = 2 -- pixels of a .png file for one of the chart

local made = {svg = chart_files.svg, pdf = pdf, png = function(chart, o)
    return chart_files.pixels(chart, o, SHARP):png()
end}

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

-- Draws the chart into the file; errors begin with "who: ". o: width, height
-- and dark. Gives what shows that it did.
function chart_files.write(who, chart, file, o)
    local ok, message = pcall(function()
        file = texts.path(file)
        local make = made[extension_of(who, file)]
        texts.write(who, file, function() return make(chart, o) end)
    end)
    -- whoever asked for the picture says where that was
    if not ok then error((gsub(tostring(message), "^[%a_]+:%d+: ", "")), 0) end
    return checks.shown({file = file}, "wrote " .. file)
end

return chart_files
