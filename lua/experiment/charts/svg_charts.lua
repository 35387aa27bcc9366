-- Charts as vector graphics.
local lines = require "lumat.svg_lines"
local svg_charts = {}

local draw = {lines = lines.lines, roofline = lines.roofline,
    heat = require "lumat.svg_heat"}

-- The text of an SVG file, or of a part of a page.
function svg_charts.draw(chart, options, is_part)
    local p = draw[chart.kind](chart, options or {})
    return p:finish(chart.title, is_part)
end

return svg_charts
