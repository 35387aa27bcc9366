-- Charts: one description, drawn as text, as SVG, PNG or PDF. plot and the
-- others, experiments and the pictures of matrices describe theirs here; whoever
-- wants another one does, too.
--
--   local charts = require "lumat.charts"
--   print(charts.text{series = {{kind = "line", y = {1, 4, 9}}}})
--
-- A chart is a plain table; none of it is changed. All but series may be left
-- out.
--   title     above it
--   x, y      its axes:
--     title     what runs along it
--     scale     "linear" or "log": then what is 0 or less has no place
--     labels    names in the place of numbers: 1 is at the first
--     low, high its ends, where they are not to fit the data
--     room      the share of it that stays free at each end
--     tight     true: it ends where the data do, not at round numbers
--     whole     true: its ticks are whole numbers
--     zero      true: it begins at 0 where that is not far away
--     include   a list of numbers that lie within it
--     base      10: its logarithms are never of base 2
--     dates     true: its numbers are seconds since 1970, UTC, shown as dates
--     reversed  true: to the left, or downwards
--     ticks     {1, 2, {3, "three"} …} in the place of round numbers
--     what      how its numbers are written: {kind = "time"} of seconds, "share"
--               of a percentage, "rate", with unit and scale, of what is
--               divided by it; {unit = "m"} of any others
--   series    a list of {kind = …, name = …}, by kind with
--     line      y, and x unless that is 1, 2, 3 …; NaN breaks the line. marks =
--               true: its points are marked where they are few; low, high:
--               lists of the ends of an interval around each point. y may be a
--               function of x
--     points    x, y, low, high; small = true: dots, however few they are
--     steps     x, y: as high as a point until the next one
--     errors    x, y, low, high: intervals, and a mark in each
--     bars      y, and either x (with width, in the unit of x), or edges, one
--               more than y; those of several series stand side by side
--     box       boxes, a list of {low, lower, middle, upper, high, outliers =
--               {…}}, and x
--     image     values, row by row, rows and cols; x and y: {first, last}, where
--               the middles of the first and the last column and row lie;
--               low, high: of the colours; log = true; title and what as of an
--               axis; texts and cell_notes, lists as values, of what stands in
--               each cell and of what a page says of it; mask = true: what is
--               not 0 is drawn in the colour of a series, the rest not at all
--     contour   values, rows, cols, x and y as an image; levels, a list of
--               values or how many there shall be
--     A series may have: failed, a list of x where there is no point and a cross
--     says so; limit = true (of lines): it is a bound, drawn like the axes and
--     through the whole of the chart, with names written along its parts:
--     labels = {{text, part = 1, share = 0.4} …}, and knots = {x …} where a
--     function has its corners
--   legend    true or false; else where two series and more have names
--   notes     a list of lines below; {text, failed = true} begins with the cross
--             that stands where points failed
--   ratio     of the height to the width of a picture in a file
--   subplots  {{chart, chart …} …}, rows of charts, in the place of axes and
--             series
--
-- x, y and values are lists of numbers, or what lumat's C hands over in their
-- place (#list and list[i] are all that is asked of them).
--
-- Options o of the drawers: width and height of the picture; of text in
-- characters, the height that of the lines between the axes, with ascii and
-- colour (where they are nil, as the terminal is).
local checks = require "lumat.checks"
local charts = {}
local next, require = next, require

-- The chart as lines of text, without a newline at the end.
function charts.text(chart, o)
    return (require "lumat.text_charts".draw(chart, o or {}))
end

-- The chart as an SVG document; is_part: of a page that has the style sheet of
-- require "lumat.svg".style. o.dark: its ground is dark, whoever reads it.
function charts.svg(chart, o, is_part)
    return require "lumat.chart_files".svg(chart, o or {}, is_part)
end

-- Raises "who: …" of a file's name that does not say which of them it is.
function charts.check_name(who, file)
    require "lumat.chart_files".check_name(who, file)
end

-- Draws the chart into a file whose name ends in .svg, .png or .pdf. Raises
-- "who: …" where it cannot.
function charts.file(who, chart, file, o)
    return require "lumat.chart_files".write(who, chart, file, o or {})
end

for name, f in next, charts do charts[name] = checks.placed(f) end

return charts
