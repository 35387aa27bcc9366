-- The one description of charts, as its drawers show it: every kind of series
-- as text, as SVG, PNG and PDF.
local lu = require "luaunit"
local t = require "common"
local charts = require "lumat.charts"
local palette = require "lumat.palette"
local parts = require "lumat.chart_parts"
local scales = require "lumat.scales"
local nan, raises = 0 / 0, t.raises

-- The text of a chart in 30 columns, 5 lines between the axes.
local function text_of(chart, more)
    local o = {width = 30, height = 5, ascii = false, colour = false}
    for name, value in pairs(more or {}) do o[name] = value end
    return charts.text(chart, o)
end

local function shows(chart, text, more)
    lu.assertEquals(text_of(chart, more), text)
end

local function has(text, ...)
    for _, part in ipairs{...} do lu.assertStrContains(text, part) end
end

local function count(text, pattern) return select(2, text:gsub(pattern, "")) end

-- Numbers of a hill of rows x cols.
local function hill(rows, cols)
    local values = {}
    for i = 1, rows do
        for j = 1, cols do
            values[#values + 1] = math.sin(math.pi * (i - 1) / (rows - 1)) *
                math.sin(math.pi * (j - 1) / (cols - 1))
        end
    end
    return values
end

local box = {low = 1, lower = 2, middle = 3, upper = 4, high = 5,
    outliers = {0, 8}}

-- A chart of every kind.
local every = {
    line = {title = "T", x = {title = "X"}, y = {title = "Y"}, series = {
        {kind = "line", name = "one", marks = true, x = {0, 1, 2, 3},
            y = {0, 1, nan, 3}, low = {0, 0, 0, 2}, high = {1, 2, 0, 4},
            failed = {2}},
        {kind = "line", name = "two", y = {3, 2, 1}}},
        notes = {{"1 point failed", failed = true}, "a note"}},
    points = {series = {{kind = "points", x = {1, 2, 4}, y = {1, 4, 2}}}},
    steps = {series = {{kind = "steps", y = {1, 3, 2}}}},
    errors = {series = {{kind = "errors", x = {1, 2}, y = {2, 4},
        low = {1, 3}, high = {3, 6}}}},
    bars = {x = {labels = {"a", "b"}}, series = {
        {kind = "bars", name = "u", y = {1, 4}},
        {kind = "bars", name = "v", y = {2, 3}}}},
    one_series_of_bars = {series = {{kind = "bars", edges = {0, 1, 2},
        y = {3, 1}}}},
    box = {x = {labels = {"a", "b"}}, series = {{kind = "box", boxes = {box,
        box}}}},
    image = {series = {{kind = "image", rows = 2, cols = 3,
        values = {1, 2, 3, 4, 5, nan}, title = "depth"}}},
    mask = {y = {reversed = true}, series = {{kind = "image", mask = true,
        rows = 2, cols = 2, values = {1, 0, 0, 1}}}},
    contour = {series = {{kind = "contour", rows = 9, cols = 9,
        values = hill(9, 9), levels = {0.25, 0.75}}}},
    both = {series = {
        {kind = "image", rows = 9, cols = 9, values = hill(9, 9)},
        {kind = "contour", rows = 9, cols = 9, values = hill(9, 9)}}},
    log = {x = {scale = "log"}, y = {scale = "log", what = {kind = "time"}},
        series = {{kind = "line", x = {1, 10, 100}, y = {1e-6, 1e-3, 1}}}},
    bound = {x = {low = 1, high = 4}, y = {include = {0, 5}}, series = {
        {kind = "line", limit = true, knots = {2}, labels = {{"rising",
            share = 0.5}, {"flat", part = 2}},
            y = function(x) return math.min(2 * x, 4) end},
        {kind = "line", y = math.sqrt}}},
}
every.subplots = {title = "all", subplots = {{every.line, every.box},
    {every.image}}, notes = {"below"}}

TestText = {}

function TestText:test_lines()
    shows({title = "T", x = {title = "X"}, y = {title = "Y",
        what = {unit = "m"}}, series = {{kind = "line", y = {1, 2, 3}}}}, [[
T
Y, m
 3 ┤                     ⣀⡠⠔⠒⠉
   │               ⢀⣀⠤⠒⠊⠉
 2 ┤          ⢀⣀⠤⠖⠉⠁
   │     ⣀⡠⠤⠒⠉⠁
 1 ┤⣀⠤⠔⠊⠉
   └┬────────────┬───────────┬
    1            2           3
                X]])
end

function TestText:test_marks_failures_and_legend()
    local text = text_of(every.line)
    has(text, "T\nY\n", "×", "    ● one   + two\n  × 1 point failed\n  a note")
    lu.assertEquals(count(text, "●"), 4) -- three points and the legend
    text = text_of(every.line, {ascii = true})
    lu.assertNil(text:find("[\x80-\xff]"))
    has(text, "* one   + two", "! 1 point failed")
end

-- A line ends at what is no number.
function TestText:test_gaps()
    local text = text_of{series = {{kind = "line", y = {1, 1, nan, 1, 1}}}}
    lu.assertStrMatches(text:match(" 1%.0 ┤([^\n]*)"), " *[^ ]+ +[^ ]+")
end

function TestText:test_without_colours_characters_tell_lines_apart()
    local chart = {series = {{kind = "line", name = "a", y = {1, 2}},
        {kind = "line", name = "b", y = {2, 1}}}}
    has(text_of(chart), "* a   + b")
    local text = text_of(chart, {colour = true})
    has(text, "\27[38;5;39m⠒⠒\27[0m a   \27[38;5;208m⠒⠒\27[0m b")
    lu.assertNil(text:find("*", 1, true))
end

function TestText:test_bars()
    shows({series = {{kind = "bars", edges = {0, 0.5, 1}, y = {1234, 617}}},
        notes = {"1 NaN left out", "2 Inf left out"}}, [[
    0 … 0.5 │████████████████████ 1 234
  0.5 …   1 │██████████ 617
  1 NaN left out    2 Inf left out]], {width = 40})
    shows({x = {labels = {"a", "bb"}}, series = {{kind = "bars", y = {4, 2}}}},
        "   a |###################### 4\n  bb |########### 2",
        {ascii = true, width = 31})
    shows(every.bars, [[
 4 ┤              ******
   │              *****++++++
 2 ┤      ++++++  *****++++++
   │ *****++++++  *****++++++
 0 ┤ *****++++++  *****++++++
   └──────┬────────────┬──────
          a            b
    * u   + v]])
end

function TestText:test_points_steps_and_errors()
    shows(every.points, [[
 4 ┤        ●
   │
 2 ┤                         ●
   │●
 0 ┤
   └┬───────┬────────┬───────┬
    1       2        3       4]])
    shows(every.steps, [[
 3 ┤             ⡏⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⢹
   │             ⡇           ⢸
 2 ┤             ⡇           ⠸
   │             ⡇
 1 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⡇
   └┬────────────┬───────────┬
    1            2           3]])
    shows(every.errors, [[
 10 ┤
    │
  5 ┤                        ●
    │●                       ⠘
  0 ┤⠃
    └┬───────────┬───────────┬
     1.0        1.5        2.0]])
end

function TestText:test_boxes()
    shows({x = {labels = {"a"}}, series = {{kind = "box", boxes = {box}}}}, [[
 10 ┤
    │            ●
  5 ┤       ⢀⣀⣀⣤⣤⣤⣤⣤⣀⣀⡀
    │       ⢸⣒⣒⣒⣒⣒⣒⣒⣒⣒⡇
  0 ┤          ⠒⠒●⠒⠒
    └────────────┬────────────
                 a]])
end

-- An image lies where its axes say, and what they leave out is not seen.
function TestText:test_places_of_images()
    local image = every.image.series[1]
    shows({y = {low = 0.5, high = 4.5}, x = {low = -2.5, high = 2.5},
        series = {image}}, [[
 4 ┤
   │
   │                ▓▓▓▓▓█████
 2 ┤                ▓▓▓▓▓█████
   │                     ░░░░░
   └──┬──────────┬─────────┬──
     -2          0         2
  depth 1   ░░▒▒▓▓██ 5]])
    lu.assertNil(text_of{x = {low = 0.5, high = 2.5}, series = {image}}
        :find("!", 1, true))
    has(text_of{series = {image, {kind = "line", y = {9, 1}}}}, "+", "!")
end

-- The first row is below, or above where the axis is reversed.
function TestText:test_images()
    local lines = [[
   │▓▓▓▓▓▓▓▓▓████████!!!!!!!!!
 2 ┤▓▓▓▓▓▓▓▓▓████████!!!!!!!!!
   │▓▓▓▓▓▓▓▓▓████████!!!!!!!!!
 1 ┤         ░░░░░░░░▒▒▒▒▒▒▒▒▒
   │         ░░░░░░░░▒▒▒▒▒▒▒▒▒
   └────┬────────┬───────┬────
        1        2       3
  depth 1   ░░▒▒▓▓██ 5]]
    shows(every.image, lines)
    local image = every.image.series[1]
    local text = text_of{y = {reversed = true}, series = {image}}
    has(text, "   │         ░░░░░░░░▒", "▒\n 1 ┤", "\n 2 ┤▓")
    has(text_of(every.image, {colour = true}), "\27[38;5;53m", "▀")
end

function TestText:test_masks_and_levels()
    local text = text_of(every.mask)
    has(text, " 1 ┤⣿⣿⣿", " 2 ┤             ⣿⣿⣿")
    text = text_of(every.contour)
    -- letters tell levels apart, or colours
    has(text, " 8 ┤    aaaaaaaaaaaaaaaaaa\n", " 6 ┤  aaa   bbbbbbbbbb   aaa\n",
        "   │  a    b          b    a\n", "levels a 0.25  b 0.75")
    text = text_of(every.contour, {colour = true})
    has(text, "⠤", "levels \27[38;5;")
    lu.assertNil(text:find("a 0.25", 1, true))
    text = text_of(every.both)
    has(text, "░", "⠤", "levels 0.2  0.4  0.6  0.8")
end

function TestText:test_logarithms()
    has(text_of(every.log), " 10 ms ┤", "  1 us ┤⠤⠒", "1                  100")
    -- what is 0 has no place there, and does no harm
    local text = text_of{x = {scale = "log"}, y = {scale = "log"}, series = {
        {kind = "line", x = {0, 1, 10}, y = {1, 0, 5}}}}
    lu.assertNil(text:find("nan", 1, true))
    text_of{y = {scale = "log"}, series = {{kind = "line", y = {0, -1}}}}
end

function TestText:test_bounds()
    has(text_of(every.bound), "\n  ⠉ rising\n  ⠉ flat", " 5 ┤")
end

-- Charts beside one another, none wider than its share.
function TestText:test_subplots()
    for _, width in ipairs{30, 61, 100} do
        for _, colour in ipairs{false, true} do
            local text = text_of(every.subplots, {width = width,
                colour = colour})
            has(text, "all\n", " one", "  below")
            for line in text:gsub("\27%[[%d;]*m", ""):gmatch("[^\n]+") do
                lu.assertTrue(utf8.len(line) <= width, line)
            end
        end
    end
end

-- What is no number has no place, in whatever it stands.
function TestText:test_no_numbers()
    local inf = 1 / 0
    for name, s in pairs{bars = {y = {1, nan, inf, -inf, 2}},
        line = {y = {1, nan, inf, 2}, low = {0, 0, nan, 1}, high = {2, 2, 2,
            inf}}, steps = {y = {1, nan, 3}}, points = {x = {nan, 2}, y = {1, 2}},
        box = {boxes = {{low = nan, lower = 1, middle = 2, upper = 3,
            high = inf, outliers = {nan}}, {}}},
        image = {rows = 2, cols = 2, values = {nan, inf, -inf, 1}},
        contour = {rows = 2, cols = 2, values = {nan, inf, -inf, 1}}} do
        s.kind = name
        local text = text_of{series = {s}} ..
            charts.svg{series = {s}}:gsub("<style>.-</style>", "")
        lu.assertNil(text:find("nan", 1, true), name)
        lu.assertNil(text:find("[^f]inf[^i]"), name)
    end
    has(text_of{series = {{kind = "bars", y = {1, nan}}}}, "  2 │ NaN")
    has(text_of{series = {{kind = "bars", y = {1, -1}}}}, " 0 ┤")
    -- nothing at all
    text_of{series = {}}
    text_of{series = {{kind = "line", y = {}}, {kind = "bars", y = {}}}}
    local endless = setmetatable({}, {__len = function() return 1 << 61 end})
    raises(function() text_of{series = {{kind = "line", x = endless,
        y = endless}}} end, "a chart has room for")
end

-- Whatever the width, lines fit it and ASCII stays ASCII.
function TestText:test_every_kind_fits()
    for name, chart in pairs(every) do
        for _, width in ipairs{10, 24, 40, 133} do
            local text = text_of(chart, {width = width, ascii = true})
            lu.assertNil(text:find("[\x80-\xff\27]"), name)
            for line in text:gmatch("[^\n]+") do
                lu.assertTrue(width < 40 or #line <= width, name .. line)
            end
        end
    end
end

function TestText:test_the_chart_is_not_changed()
    local function copy(x)
        if type(x) ~= "table" then return x end
        local c = {}
        for k, v in pairs(x) do c[k] = copy(v) end
        return c
    end
    local chart = copy(every.bars)
    text_of(chart)
    charts.svg(chart)
    charts.svg(chart)
    lu.assertEquals(chart, every.bars)
end

function TestText:test_what_is_wrong_is_told()
    local function of(s) return function() text_of{series = {s}} end end
    raises(of{kind = "pie", y = {1}}, 'there is no kind "pie" of series, but ' ..
        "bars box contour errors image line points steps")
    raises(of{kind = "line"}, "y of the line is nil, expected a list")
    raises(of{kind = "line", x = {1}, y = {1, 2}}, "the line has 1 numbers in x, " ..
        "expected 2")
    raises(of{kind = "errors", y = {1}, low = {1, 2}, high = {1}}, "in low, ")
    raises(of{kind = "image", values = {1, 2}, rows = 2, cols = 2},
        "the image has 2 values, expected rows x cols, 2 x 2")
    raises(function()
        charts.svg{series = {{kind = "bars", y = {1, 2}, edges = {1, 2}}}}
    end, "the bars have 2 edges, expected 3")
end

TestParts = {}

-- Lists of C's and of Lua's serve alike; functions are sampled where the axis
-- is.
function TestParts:test_ranges()
    local function ranges(chart)
        local p = parts.of(chart)
        return {p.ranges.x[1], p.ranges.x[2], p.ranges.y[1], p.ranges.y[2]}
    end
    lu.assertEquals(ranges{series = {{kind = "line", x = {1, 2, 3, 4},
        y = {5, nan, 1 / 0, 7}}}}, {1, 4, 5, 7})
    lu.assertEquals(ranges{x = {low = 0, high = 2}, series = {{kind = "line",
        y = function(x) return x * x end}}}, {0, 2, 0, 4})
    lu.assertEquals(ranges{series = {{kind = "bars", x = {1, 3}, y = {2, -1},
        width = 1}}}, {0.5, 3.5, -1, 2})
    lu.assertEquals(ranges{series = {{kind = "image", rows = 2, cols = 4,
        values = {1, 1, 1, 1, 1, 1, 1, 1}, x = {0, 3}, y = {10, 20}}}},
        {-0.5, 3.5, 5, 25})
    lu.assertEquals(ranges{y = {scale = "log", include = {100, -5}},
        series = {{kind = "errors", y = {1, 10}, low = {0, 5},
            high = {2, 20}}}}, {1, 2, 1, 100})
end

-- The lines of a level of a cone are a circle.
function TestParts:test_contours()
    local n, values = 41, {}
    for i = 1, n do
        for j = 1, n do
            values[#values + 1] = math.sqrt((i - 21) ^ 2 + (j - 21) ^ 2)
        end
    end
    local p = parts.of{series = {{kind = "contour", rows = n, cols = n,
        values = values, levels = {15}, x = {-20, 20}, y = {-20, 20}}}}
    local level, ends = p.list[1].levels[1], {}
    lu.assertTrue(#level.segments > 60)
    for _, s in ipairs(level.segments) do
        for k = 1, 3, 2 do
            lu.assertAlmostEquals(math.sqrt(s[k] ^ 2 + s[k + 1] ^ 2), 15, 0.05)
            local key = ("%.6f %.6f"):format(s[k] + 0.0, s[k + 1] + 0.0)
                :gsub("%-0%.000000", "0.000000")
            ends[key] = (ends[key] or 0) + 1
        end
    end
    for _, times in pairs(ends) do lu.assertEquals(times % 2, 0) end
end

-- A saddle has two lines that do not meet, on either side of its middle.
function TestParts:test_saddles()
    local function segments(level)
        return parts.of{series = {{kind = "contour", rows = 2, cols = 2,
            values = {1, 0, 0, 1}, levels = {level}}}}.list[1].levels[1].segments
    end
    for level, corner in pairs{[0.25] = {2, 1}, [0.75] = {1, 1}} do
        local list = segments(level)
        lu.assertEquals(#list, 2)
        -- each cuts one corner off: its ends are near it
        local near = 0
        for _, s in ipairs(list) do
            if math.abs(s[1] - corner[1]) + math.abs(s[2] - corner[2]) < 0.5 and
                math.abs(s[3] - corner[1]) + math.abs(s[4] - corner[2]) < 0.5 then
                near = near + 1
            end
        end
        lu.assertEquals(near, 1)
    end
end

function TestParts:test_scales()
    local function texts(scale)
        local list = {}
        for i, tick in ipairs(scale.ticks) do list[i] = tick.text end
        return table.concat(list, " ")
    end
    lu.assertEquals(texts(scales.of({whole = true, tight = true}, 0.5, 3.5, 9)),
        "1 2 3")
    lu.assertEquals(texts(scales.of({ticks = {1, {2, "two"}}}, 0, 3, 4)), "1 two")
    local back = scales.of({reversed = true}, 0, 4, 4)
    lu.assertEquals({back.at(0), back.at(4), texts(back)}, {1, 0, "4 3 2 1 0"})
    lu.assertEquals(texts(scales.of({}, 0, 3e-8, 3)), "0 1e-8 2e-8 3e-8")
    lu.assertEquals(texts(scales.of({}, 1e6, 1000004, 4)),
        "1000000 1000001 1000002 1000003 1000004")
    lu.assertEquals(texts(scales.of({}, -1.7e308, 1.7e308, 4)),
        "-1.7e+308 1.7e+308")
    lu.assertEquals(texts(scales.of({scale = "log"}, math.huge, -math.huge, 4)),
        "1 1.5")
    lu.assertEquals(texts(scales.of({labels = {"a", "b"}}, 1, 2, 4)), "a b")
end

TestSvg = {}

-- Tags match, and nothing is a number that has no place.
local function check_svg(text, name)
    local open = {}
    lu.assertNotNil(utf8.len(text))
    for close, tag, rest in text:gsub("<style>.-</style>", ""):gmatch(
        "<(/?)(%a+)([^<>]*)>") do
        if close == "/" then
            lu.assertEquals(table.remove(open), tag, name)
        elseif not rest:find("/$") then
            open[#open + 1] = tag
        end
        lu.assertNil(rest:find("nan", 1, true), name)
        lu.assertNil(rest:find("inf", 1, true), name)
    end
    lu.assertEquals(open, {}, name)
end

function TestSvg:test_every_kind()
    for name, chart in pairs(every) do
        for _, width in ipairs{200, 680} do
            check_svg(charts.svg(chart, {width = width}), name)
        end
    end
end

-- What lies where, on axes from 0 to 4.
function TestSvg:test_places()
    local text = charts.svg{x = {low = 0, high = 4}, y = {low = 0, high = 4},
        series = {{kind = "points", x = {0, 4, 2}, y = {0, 4, 2}}}}
    local left, bottom, right = text:match('class="axis" d="M([%d.]+) ([%d.]+)L' ..
        '([%d.]+) %2"')
    local places = {}
    for x, y in text:gmatch('class="f1" d="M([%d.]+) ([%d.]+)a4') do
        places[#places + 1] = {x + 4, y + 0}
    end
    lu.assertEquals(#places, 3)
    lu.assertAlmostEquals(places[1][1], left + 0, 0.11)
    lu.assertAlmostEquals(places[1][2], bottom + 0, 0.11)
    lu.assertAlmostEquals(places[2][1], right + 0, 0.11)
    lu.assertAlmostEquals(places[3][1], (left + right) / 2, 0.11)
    lu.assertAlmostEquals(places[3][2], (places[1][2] + places[2][2]) / 2, 0.11)
end

function TestSvg:test_bars_boxes_and_intervals()
    local text = charts.svg(every.bars)
    lu.assertEquals(count(text, '<rect [^>]*class="f[12]"><title>'), 4)
    has(text, "<title>u, x a: 1</title>", ">u</text>", ">v</text>")
    text = charts.svg(every.box)
    lu.assertEquals(count(text, 'class="box s1"'), 2)
    lu.assertEquals(count(text, '<path class="line s1"'), 10)
    lu.assertEquals(count(charts.svg(every.errors), 'class="bar s1"'), 2)
    -- higher where the value is
    local heights = {}
    for h in charts.svg(every.bars):gmatch('height="([%d.]+)" class="f1"><t') do
        heights[#heights + 1] = h + 0
    end
    lu.assertTrue(math.abs(heights[1] * 4 - heights[2]) < 0.5)
end

function TestSvg:test_images_and_levels()
    local text = charts.svg(every.image)
    local cells = count(text, '<rect [^>]*fill="#%x+"/>') - 33 -- scale, paper
    lu.assertEquals(cells, 5) -- what is NaN is left out
    has(text, 'fill="' .. palette.colour(0) .. '"',
        'fill="' .. palette.colour(1) .. '"', ">depth<")
    text = charts.svg(every.contour)
    lu.assertEquals(count(text, 'class="level"'), 2)
    has(text, "<title>0.25</title>")
    has(charts.svg(every.both), 'stroke="#111111"')
    lu.assertEquals(count(charts.svg(every.mask), '<rect [^>]*class="f1"'), 2)
    -- a large image has no more cells than there are places
    local large = {}
    for i = 1, 1000 * 800 do large[i] = i end
    lu.assertTrue(#charts.svg{series = {{kind = "image", rows = 800,
        cols = 1000, values = large}}} < 6e6)
end

-- What lies beyond the ends of an axis is cut off; else nothing is.
function TestSvg:test_ends_of_axes()
    local line = {kind = "line", y = {0, 100}}
    has(charts.svg{y = {low = 40, high = 60}, series = {line}},
        '<svg x="', 'viewBox="')
    lu.assertEquals(count(charts.svg{y = {low = 0, high = 100},
        series = {line}}, "<svg "), 1)
end

function TestSvg:test_bounds_and_subplots()
    has(charts.svg(every.bound), 'class="roof"', ">flat<", "rotate(", ">rising<")
    local text = charts.svg(every.subplots)
    lu.assertEquals(count(text, "<g transform"), 3)
    has(text, ">all<", ">below<")
end

-- --- files ----------------------------------------------------------------------

TestFiles = {}

-- What a file of that ending has.
local function written(chart, ending, o)
    local path = os.tmpname()
    os.remove(path)
    path = path .. ending
    lu.assertEquals(tostring(charts.file("test", chart, path, o)),
        "wrote " .. path)
    local file <close> = assert(io.open(path, "rb"))
    os.remove(path)
    return file:read "a"
end

-- Width and height of a PNG file.
local function size_of(png)
    local width, height = string.unpack(">I4I4", png, 17)
    return width, height
end

function TestFiles:test_every_kind_in_every_format()
    for name, chart in pairs(every) do
        for _, is_dark in ipairs{false, true} do
            local o = {dark = is_dark}
            local svg = written(chart, ".svg", o)
            has(svg, "<svg ", "</svg>")
            lu.assertEquals(svg, charts.svg(chart, o), name)
            local png = written(chart, ".png", o)
            lu.assertEquals(png:sub(1, 8), "\137PNG\r\n\26\n", name)
            lu.assertEquals(png:sub(-12), "\0\0\0\0IEND\174B`\130", name)
            local pdf = written(chart, ".pdf", o)
            lu.assertEquals(pdf:sub(1, 9), "%PDF-1.5\n", name)
            lu.assertEquals(pdf:sub(-6), "%%EOF\n", name)
        end
    end
end

-- A PNG has two pixels for each of the chart's, which is as high as it needs.
function TestFiles:test_sizes()
    lu.assertEquals({size_of(written(every.steps, ".png"))}, {1360, 840})
    local o = {width = 300, height = 250}
    lu.assertEquals({size_of(written(every.steps, ".png", o))}, {600, 500})
    has(written(every.steps, ".svg", o), 'width="300" height="250"')
    has(written(every.steps, ".pdf", o), "/MediaBox [0 0 225 187.5]")
end

-- Its objects lie where its table says.
function TestFiles:test_places_in_a_pdf()
    for _, name in ipairs{"line", "image", "subplots"} do
        local pdf = written(every[name], ".pdf")
        local at = tonumber(pdf:match "startxref\n(%d+)\n%%%%EOF\n$")
        local count = tonumber(pdf:match("^xref\n0 (%d+)\n", at + 1))
        lu.assertTrue(count >= 9)
        local entries = pdf:sub(at + 1):gmatch "(%d+) 00000 n \n"
        for i = 1, count - 1 do
            local place = tonumber(entries())
            has(pdf:sub(place + 1, place + 12), i .. " 0 obj\n")
        end
    end
    has(written(every.line, ".pdf"), "/Title <FEFF0054>")
end

function TestFiles:test_what_is_wrong_is_told()
    raises(function() charts.file("test", every.line, "p.gif") end,
        "test: \"p.gif\": a picture's name ends in .svg, .png or .pdf")
    raises(function() charts.file("test", every.line, "/no/such/p.png") end,
        "test: cannot write '/no/such/p.png'")
end

TestRaster = {}

local canvas = require "lumat.canvas"

-- Red, green and blue at x, y, from 0.
local function pixel(r, width, x, y)
    return {r:rgb():byte(3 * (y * width + x) + 1, 3 * (y * width + x) + 3)}
end

function TestRaster:test_shapes()
    local r = canvas.raster(10, 8, "#ffffff")
    r:fill({2, 2, 5, 2, 5, 4, 2, 4}, "#102030")
    lu.assertEquals(pixel(r, 10, 2, 2), {16, 32, 48})
    lu.assertEquals(pixel(r, 10, 4, 3), {16, 32, 48})
    lu.assertEquals(pixel(r, 10, 5, 2), {255, 255, 255})
    lu.assertEquals(pixel(r, 10, 2, 4), {255, 255, 255})
    -- half a pixel is half of the colour
    r:fill({6.5, 6, 8, 6, 8, 7, 6.5, 7}, "#000000")
    lu.assertEquals(pixel(r, 10, 6, 6), {128, 128, 128})
    r:stroke({0, 0.5, 10, 0.5}, 1, "#000000")
    lu.assertEquals(pixel(r, 10, 5, 0), {0, 0, 0})
    lu.assertEquals(pixel(r, 10, 5, 1), {255, 255, 255})
    r:put(0, 4, 4, 4, 1, 2, "abcdef")
    lu.assertEquals(pixel(r, 10, 1, 7), {97, 98, 99})
    lu.assertEquals(pixel(r, 10, 2, 4), {100, 101, 102})
end

-- What lies outside, or nowhere, does no harm.
function TestRaster:test_outside()
    local inf = 1 / 0
    local r = canvas.raster(4, 4, "#ffffff")
    r:clip(1, 1, 2, 2)
    r:fill({-9, -9, 99, -9, 99, 99, -9, 99}, "#000000")
    lu.assertEquals(pixel(r, 4, 0, 0), {255, 255, 255})
    lu.assertEquals(pixel(r, 4, 1, 1), {0, 0, 0})
    lu.assertEquals(pixel(r, 4, 3, 3), {255, 255, 255})
    r:clip()
    for _, x in ipairs{nan, inf, -inf, 1e300, -1e300, 1e9} do
        r:stroke({x, 0, 0, x, 1, 1}, 2, "#ff0000")
        r:stroke({0, 0, x, x}, 2, "#ff0000")
        r:fill({x, 0, 1, 1, 0, x}, "#ff0000")
        r:put(x, x, 2, 2, 1, 1, "abc")
        r:put(0, 0, x, x, 1, 1, "abc")
        r:clip(x, x, x, x)
        r:clip()
    end
    raises(function() r:fill({0, 0}, "red") end, "no colour")
    raises(function() r:put(0, 0, 1, 1, 2, 2, "abc") end, "not 3 bytes a cell")
    raises(function() canvas.raster(0, 1, "#ffffff") end, "no width")
    raises(function() canvas.raster(20000, 20000, "#ffffff") end, "too many")
end

-- Two lines of one band: a colour after the other, six lines a character.
function TestRaster:test_sixels()
    local r = canvas.raster(6, 7, "#ffffff")
    r:fill({0, 0, 5, 0, 5, 1, 0, 1}, "#ff0000")
    local text = r:sixels()
    lu.assertEquals(text:sub(1, 14), "\27Pq\"1;1;6;7#0;")
    -- red is 5 times the first line, white the others; then a line of white
    lu.assertEquals(text:match("#255;2;100;100;100(.*)"),
        "#180!5@$#255!5}~$-#255!6@$-\27\\")
end

function TestRaster:test_base64()
    local svg = require "lumat.svg"
    for text, wanted in pairs{[""] = "", f = "Zg==", fo = "Zm8=", foo = "Zm9v",
        foob = "Zm9vYg==", ["\255\254\253"] = "//79"} do
        lu.assertEquals(svg.base64(text), wanted)
    end
end

-- Every letter has lines, and the accented ones more than those below them.
function TestRaster:test_letters()
    local font = require "lumat.stroke_font"
    for c = 33, 126 do
        lu.assertNil(font.missing(string.char(c)))
        lu.assertTrue(#font.strokes(string.char(c), 0, 0, 20, 1, 0) >= 4, c)
    end
    lu.assertNil(font.missing "äöüßÄÖÜéèçñøÅåŠšžžµαβΣ±×°²³…–∞≤")
    lu.assertEquals(font.missing "a温b", "温")
    lu.assertTrue(#font.strokes("é", 0, 0, 20, 1, 0) >
        #font.strokes("e", 0, 0, 20, 1, 0))
    lu.assertEquals(font.width("", 13), 0)
    lu.assertEquals(font.width("ii", 20), 10)
    lu.assertEquals(font.width("\xff", 20), font.width("?", 20))
    -- none is wider than the frame has room for
    local svg = require "lumat.svg"
    for c = 33, 126 do
        local text = string.char(c):rep(4)
        lu.assertTrue(font.width(text, 13) <= svg.width(text, 13) + 0.5,
            string.char(c))
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
