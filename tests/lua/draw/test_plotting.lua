-- plot, scatter, boxplot, imshow, contour and subplot: what they take, what
-- they refuse, and what is kept of long series; on the device under test.
local lu = require "luaunit"
local t = require "common"
local seeing = require "draw.seeing"
local inf, nan, raises = t.inf, t.nan, t.raises
local shows, has = seeing.shows, seeing.has

-- The text of a chart in 30 columns and 5 lines, unless o says more.
local function small(o)
    local all = {width = 30, height = 5}
    for name, value in pairs(o or {}) do all[name] = value end
    return all
end

local function lacks(chart, text)
    lu.assertNotStrContains(tostring(chart), text)
end

-- --- styles ---------------------------------------------------------------------

TestStyles = {}

function TestStyles:test_each()
    local v = vec{1, 3, 2}
    shows(plot(v, small{style = "steps"}),
        " 3 ┤             ⡏⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⢹",
        "   │             ⡇           ⢸",
        " 2 ┤             ⡇           ⠸",
        "   │             ⡇",
        " 1 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⡇",
        "   └┬────────────┬───────────┬",
        "    1            2           3")
    shows(plot(v, small{style = "points"}),
        " 3 ┤             ●",
        "   │",
        " 2 ┤                        ●",
        "   │",
        " 1 ┤ ●",
        "   └─┬───────────┬──────────┬─",
        "     1           2          3")
    shows(plot(v, small{style = "bars"}),
        "  1 │███████▍ 1",
        "  2 │██████████████████████ 3",
        "  3 │██████████████▋ 2")
    shows(plot(v, small{style = "bars", names = {"a", "bb", "c"}}),
        "   a │███████ 1",
        "  bb │█████████████████████ 3",
        "   c │██████████████ 2")
    has(plot(v, small{style = "bars", xlabel = "month"}), "⣿⣿", "month")
    local chart = plot(v, small{style = "errors", error = 1})
    lu.assertTrue(chart.low <= 0 and chart.high >= 4)
    has(chart, "●")
    has(plot(v, {error = vec{1, 0, 1}}), "●")
    has(plot(v, {error = {vec{0, 0, 0}, vec{9, 9, 9}}}), "10 ┤")
end

-- No options are as good as none, also where the arguments are in a table.
function TestStyles:test_no_options()
    local v, w = vec{1, 3, 2}, vec{2, 1, 3}
    lu.assertEquals(tostring(plot(v, {})), tostring(plot(v)))
    lu.assertEquals(tostring(plot{v}), tostring(plot(v)))
    lu.assertEquals(tostring(plot{v, w}), tostring(plot(v, w)))
    lu.assertEquals(tostring(scatter{v, w}), tostring(scatter(v, w)))
    lu.assertEquals(tostring(boxplot{v, w}), tostring(boxplot(v, w)))
    lu.assertEquals(tostring(scatter(v, w, {})), tostring(scatter(v, w)))
    raises(function() scatter(v, {}) end, "scatter: y has no elements")
end

-- A list has a style for each series.
function TestStyles:test_a_list_of_styles()
    local chart = plot(vec{1, 2, 3}, vec{1, 2, 3}, vec{3, 2, 1},
        {style = {"points", "line"}, legend = {"p", "l"}})
    has(chart, "● p   + l")
end

-- Each key is a series, in the keys' order.
function TestStyles:test_by()
    local x, y = vec{1, 2, 3, 4, 5}, vec{4, 3, 2, 1, 0}
    has(scatter(x, y, {by = {"b", "a", "b", "a", "a"}}), "● a   ■ b")
    local T = frame{kind = {"b", "a", "b", false, "a"}, x = x, y = y}
    local chart = tostring(scatter(T.x, T.y, {by = T.kind}))
    lu.assertStrContains(chart, "● a   ■ b")
    lu.assertEquals(select(2, chart:gsub("●", "")), 2 + 1)
    lu.assertEquals(select(2, chart:gsub("■", "")), 2 + 1)
    has(plot(y, {by = vec{2, 2, 1, 1, 0.5}, style = "points"}),
        "● 0.5   ■ 1   ▲ 2")
    has(plot(y, {by = vec{1, 1, 2, 2, 2}, legend = {"low", "high"}}),
        "low", "high")
    raises(function() scatter(x, y, {by = vec{1, 2}}) end, "by has 2 elements, y has 5")
    raises(function() plot(x, y, y, {by = x}) end, "there are 2 series")
    raises(function() plot(y, {by = x, names = {"a", "b"}}) end, "leave by out")
    raises(function() plot(range(1, 9), {by = range(1, 9)}) end, "more than 8 different keys")
    raises(function() plot(y, {by = x * nan}) end, "no keys but NaN")
    raises(function() plot(y, {by = {x, x}}) end, "by is a list of several keys")
end

function TestStyles:test_forms()
    local x, y = vec{1, 2, 3}, vec{2, 4, 3}
    local chart = tostring(plot(x, y, small{style = "points"}))
    lu.assertEquals(tostring(plot{x, y, style = "points", width = 30,
        height = 5}), chart)
    lu.assertEquals(tostring(plot({1, 2, 3}, {2, 4, 3}, small{
        style = "points"})), chart)
    lu.assertEquals(tostring(x:plot(y, small{style = "points"})), chart)
    lu.assertEquals(tostring(scatter(x, y, small())), chart)
    lu.assertEquals(tostring(scatter{x, y, width = 30, height = 5}), chart)
    lu.assertEquals(tostring(plot{1, 4, 9, width = 30}),
        tostring(plot(vec{1, 4, 9}, {width = 30})))
    lu.assertEquals(tostring(plot(x:col(), y:row(), small())),
        tostring(plot(x, y, small())))
    has(plot(x, y, x, y), "* y1   + y2   o y3")
    has(plot(x, x:col() .. y:col(), y), "* y1 column 1   + y1 column 2   o y2")
end

-- --- options --------------------------------------------------------------------

TestOptions = {}

function TestOptions:test_texts()
    shows(plot(vec{1, 2}, small{title = "T", xlabel = "X", ylabel = "Y"}),
        "T", "Y",
        " 2.0 ┤                   ⢀⡠⠤⠒⠉",
        "     │              ⢀⡠⠤⠒⠉⠁",
        " 1.5 ┤         ⢀⣀⠤⠒⠉⠁",
        "     │    ⢀⣀⠤⠒⠊⠁",
        " 1.0 ┤⣀⠤⠒⠊⠁",
        "     └┬──────────────────────┬",
        "      1                      2",
        "                 X")
    has(plot(vec{1, 2}, {title = "caf\xc3\xa9 \27[31m"}), "café \\027[31m")
    has(hist(vec{1, 2, 2}, {title = "mine", logy = true}), "mine")
end

function TestOptions:test_legends()
    local x = vec{1, 2}
    has(plot(x, x, x, {legend = {"one", "two"}}), "* one   + two")
    lacks(plot(x, x, x, {legend = false}), "y1")
    has(plot(x, {legend = {"one"}}), "one")
end

function TestOptions:test_ends_of_axes()
    local chart = plot(vec{0, 50, 100}, small{ylim = {40, 60}, xlim = {1, 5}})
    lu.assertEquals({chart.low, chart.high}, {40, 60})
    has(chart, " 60 ┤", " 40 ┤", "\n           2           4")
    lu.assertEquals(plot(vec{0, 9}, {low = -5}).low, -5)
    lu.assertEquals(plot(vec{0, 9}, {high = 12}).high, 12)
    -- bars beside the axis are not seen
    lacks(plot(vec{5, 6}, small{style = "bars", xlim = {10, 20}}), "⣿")
end

function TestOptions:test_logarithms()
    local v = vec{1, 10, 100, 1000}
    has(plot(v, small{logy = true}), " 100 ┤", "   1 ┤")
    has(plot(v, {logy = true}), "1000 ┤", "   1 ┤")
    has(plot(v, v, {logx = true, logy = true, width = 60}), "1000 ┤", "1   ", "100   ",
        "1000")
    has(plot(vec{-1, 0, 1, 10}, {logy = true}),
        "2 points at or below 0 are not on the logarithmic axis")
    has(plot(vec{0, 1, 10}, vec{1, 2, 3}, {logx = true}),
        "1 point at or below 0 is not on the logarithmic axis")
    raises(function() plot(vec{-1, 0}, {logy = true}) end,
        "plot: there is no point above 0")
    raises(function() plot(v, {logy = true, ylim = {0, 5}}) end,
        "ylim begins at 0")
end

-- From seconds to centuries, in UTC.
function TestOptions:test_dates()
    local function axis(first, last, o)
        local chart = plot(vec({first, last}, {dtype = "f64"}), vec{1, 2},
            {xdates = true, width = 60, height = 4, xlabel = o})
        return tostring(chart):match("┬[^\n]*\n(.*)")
    end
    has(axis(0, 86400 * 3), "1970-01-01", "1970-01-02", "1970-01-03")
    has(axis(1700000000, 1700003600), "22:30", "23:00", "2023-11-14 UTC")
    has(axis(1700000000, 1700000060), "22:13:30", "22:14:00")
    has(axis(951782400 - 2 * 86400, 951782400 + 86400), "2000-02-27",
        "2000-02-29", "2000-03-01") -- a leap year
    has(axis(1e9, 1.05e9), "2002-01", "2003-01")
    has(axis(-3e9, 3e9), "1900", "1950", "2000")
    has(axis(1700000000, 1700003600, "when"), "when, 2023-11-14 UTC")
    -- further than dates go, seconds
    has(axis(0, 1e15), "1e15")
    has(plot(vec({5, 5}, {dtype = "f64"}), vec{1, 2}, {xdates = true}),
        "1970-01-01")
end

-- --- what has no place ------------------------------------------------------------

TestPlaces = {}

function TestPlaces:test_breaks_and_infinities()
    local chart = plot(vec{1, 1, nan, 1, inf, 1}, small())
    has(chart, "1 Inf left out")
    lu.assertStrMatches(tostring(chart):match(" 1%.0 ┤([^\n]*)"),
        "[^ ]+ +[^ ]+ +[^ ]+")
    raises(function() plot(vec{nan, inf}) end, "plot: there is no finite point")
    raises(function() plot(vec{nan, 1}, vec{1, nan}) end, "no finite point")
    raises(function() scatter(vec{1, inf}, vec{nan, 1}) end,
        "scatter: there is no finite point")
end

-- As far apart as numbers go, and as near.
function TestPlaces:test_extreme_ranges()
    local o = {dtype = "f64"}
    for _, v in ipairs{vec({-1.7e308, 1.7e308}, o), vec({0, 1.7e308}, o),
        vec({-8.9e307, 8.9e307}, o), vec({0, 5e-324}, o), vec({1, 1 + 2^-52}, o)} do
        for _, chart in ipairs{plot(v), plot(v, v), scatter(v, v), boxplot(v),
            plot(v, {style = "bars"}), imshow(v)} do
            lu.assertTrue(#tostring(chart) > 0)
            local svg = require "lumat.chart_files".svg(
                require "lumat.chart_values".chart_of(chart), {})
            lu.assertNotStrContains(svg:gsub("<style>.-</style>", ""), "nan")
        end
    end
    lu.assertTrue(#tostring(imshow(mat{{-1, 0}, {1, nan}}, {log = true})) > 0)
    -- nor do logarithms of what has none reach a file
    local w = vec{-1, 0, 1, 10, 100}
    for _, chart in ipairs{plot(w, {logy = true}), scatter(w, w, {logx = true}),
        plot(w, {logy = true, style = "steps"}), boxplot(w, {logy = true}),
        plot(w, {logy = true, error = 5})} do
        local svg = require "lumat.chart_files".svg(
            require "lumat.chart_values".chart_of(chart), {})
        lu.assertNil(svg:gsub("<style>.-</style>", ""):find("inf[^%a]"))
    end
end

function TestPlaces:test_one_and_constant()
    has(plot(vec{5}, small()), "●")
    has(plot(vec{5}, {style = "bars"}), "1 │", "█ 5")
    has(plot(vec{2, 2, 2}, small()), "⠤⠤⠤")
    lu.assertEquals(boxplot(vec{7}).boxes[1].middle, 7)
    has(boxplot(vec{7}, small()), "⠤⠤⠤⠤")
    has(imshow(mat{{3}}, small()), "3")
end

-- --- long series --------------------------------------------------------------------

TestLong = {}

local LONG = 100000

-- The least and the greatest of a line are drawn, wherever they lie.
function TestLong:test_extremes()
    for _, dtype in ipairs{"f32", "f64"} do
        local o = {dtype = dtype}
        local x = linspace(0, 10, LONG, o)
        local y = zeros(LONG, o)
        y[77777], y[12345] = 50, -50
        for _, chart in ipairs{plot(y), plot(x, y), plot(-x, y),
            plot(x, y, {style = "steps"}), plot(x:exp(), y, {logx = true})} do
            lu.assertEquals({chart.low, chart.high}, {-50, 50})
            local text = tostring(chart)
            -- both of them reach the ends
            lu.assertStrMatches(text:match " 50 ┤([^\n]*)", " *[^ ]+ *")
            lu.assertStrMatches(text:match "%-50 ┤([^\n]*)", " *[^ ]+ *")
        end
    end
end

function TestLong:test_a_line_is_where_it_was()
    local thinning = require "lumat.thinning"
    local x = linspace(0, 1, LONG, {dtype = "f64"})
    local y = (6 * x):sin()
    for _, o in ipairs{{}, {xlim = {0.25, 0.5}}, {ylim = {-0.5, 0.5}},
        {logx = true, xlim = {0.01, 1}}, {logy = true, ylim = {0.01, 1}}} do
        local xs, ys, is_line = thinning.line(x, y, thinning.survey(x),
            thinning.survey(y), o)
        lu.assertTrue(is_line)
        lu.assertTrue(#xs > 200 and #xs < 5000)
        for i = 1, #xs do
            local at = math.sin(6 * xs[i])
            local is_near = ys[i] ~= ys[i] or
                o.ylim and (at > o.ylim[2] or at < o.ylim[1] + 0.01) or
                math.abs(ys[i] - at) < (o.logy and 0.05 * at + 2e-3 or 0.012)
            lu.assertTrue(is_near, i)
        end
    end
end

function TestLong:test_gaps_stay()
    local x = linspace(0, 1, LONG)
    local y = ones(LONG)
    y[{{40000, 60000}}] = nan
    for _, chart in ipairs{plot(x, y, small()), plot(y, small())} do
        lu.assertStrMatches(tostring(chart):match(" 1%.?0? ┤([^\n]*)"),
            "[^ ]+ +[^ ]+")
    end
end

function TestLong:test_points()
    local x, y = rand(LONG, {seed = 1}), rand(LONG, {seed = 2})
    local chart = scatter(x, y, small())
    lu.assertTrue(select(2, tostring(chart):gsub("⣿", "")) > 60)
    -- one that lies apart is there
    x[1], y[1] = 3, 3
    lu.assertTrue(scatter(x, y).high > 3)
    has(plot(x, y), "100000 points in no order of x are drawn without a line")
    -- limits cut, they do not squeeze
    has(scatter(x, y, small{xlim = {2, 4}, ylim = {2, 4}}), " 3 ┤             ●")
    local u = x:clone()
    u[{{5, 9}}] = inf
    has(scatter(u, y), "5 Inf left out")
    has(scatter(x - 1, y, {logx = true}), "points at or below 0 are not on")
end

function TestLong:test_too_many_to_tell_apart()
    raises(function() plot(ones(LONG), {style = "bars"}) end,
        "plot: 100000 bars cannot be told apart", 'style = "line"')
    raises(function() plot(ones(LONG), {error = 1}) end,
        "100000 error bars cannot be told apart")
end

-- --- boxes, images and levels -----------------------------------------------------------

TestKinds = {}

-- Quartiles are those of R's quantile and NumPy's percentile.
function TestKinds:test_boxes()
    local v = vec{9, 1, 2, 3, 4, 5, 6, 7, 8, 100, -50, nan}
    local b = boxplot(v).boxes[1]
    lu.assertEquals({b.low, b.lower, b.middle, b.upper, b.high},
        {1, 2.5, 5, 7.5, 9})
    lu.assertEquals(b.outliers, {-50, 100})
    has(boxplot(v), "1 NaN left out")
    has(boxplot(vec{1, inf, 2}), "1 Inf left out")
    lu.assertEquals(#boxplot(rand(10, 3)).boxes, 3)
    lu.assertEquals(#boxplot(rand(10, 3), rand(5)).boxes, 4)
    lu.assertEquals(boxplot(mat{{1, 10}, {3, 30}}).boxes[2].middle, 20)
    has(boxplot(rand(9, 2), {names = {"one", "two"}}), "one", "two")
    -- a column without numbers has its place and no box
    has(boxplot(vec{1, 2, 3}, vec{nan, nan}, {names = {"a", "none"}}), "none",
        "2 NaN left out")
    -- of many outliers the farthest are drawn
    local w = zeros(9000)
    w[{{1, 1000}}] = range(1, 1000)
    has(boxplot(w), "750 outliers are not drawn")
    lu.assertEquals(#boxplot(w).boxes[1].outliers, 250)
    local by = boxplot(vec{1, 9, 2, 8, 3, 7, 50}, {by = {"x", "y", "x", "y", "x", "y",
        "y"}})
    lu.assertEquals(#by.boxes, 2)
    lu.assertEquals(by.boxes[1].middle, 2)
    lu.assertEquals(by.boxes[2].middle, 8.5)
    has(by, "x", "y")
    lu.assertEquals(#boxplot(range(1, 20), {by = range(1, 20)}).boxes, 20)
    has(boxplot(vec{1, 2}, {by = vec{2.5, 1}, names = {"low", "high"}}), "low", "high")
    raises(function() boxplot(vec{1, 2}, {by = vec{1}}) end,
        "boxplot: by has 1 element, A has 2")
    raises(function() boxplot(rand(2, 2), {by = vec{1, 2}}) end,
        "elements of one vector apart, and there are 2")
    raises(function() boxplot(range(1, 201), {by = range(1, 201)}) end,
        "more than 200 different keys, each of which would be a box")
    raises(function() boxplot(vec{nan}) end, "boxplot: there is no finite")
    raises(function() boxplot(ones(2, 201)) end, "201 boxes cannot be told")
end

function TestKinds:test_images()
    shows(imshow(mat{{1, 2}, {3, 4}}, {width = 24, height = 4, title = "T",
        xlabel = "col"}), "T",
        "   │          ░░░░░░░░░░",
        " 1 ┤          ░░░░░░░░░░",
        " 2 ┤▓▓▓▓▓▓▓▓▓▓██████████",
        "   │▓▓▓▓▓▓▓▓▓▓██████████",
        "   └─────┬────────┬─────",
        "         1        2",
        "            col",
        "  1   ░░▒▒▓▓██ 4")
    local chart = imshow(rand(500, 900), {low = 0, high = 1})
    lu.assertEquals({chart.rows, chart.cols}, {500, 900})
    has(chart, "  0   ░░▒▒▓▓██ 1", "400 ┤")
    has(imshow(mat{{0, 1}, {10, 100}}, {log = true}),
        "1 element at or below 0 has no colour")
    has(imshow(mat{{nan, 1}}), "1 NaN")
    raises(function() imshow(mat{{nan}}) end, "imshow: there is no finite")
    raises(function() imshow(mat{{1}}, {low = 2, high = 1}) end, "no range")
    raises(function() imshow(mat{{0}}, {log = true}) end, "no element above 0")
end

function TestKinds:test_levels()
    local A = range(0, 8):col() + range(0, 8):row()
    local chart = contour(A, small{levels = {4, 12}})
    lu.assertEquals(chart.levels, {4, 12})
    has(chart, "levels a 4  b 12", "a", "b")
    lu.assertTrue(#contour(A).levels >= 4)
    -- x and y are where the heights lie
    local x, y = linspace(-1, 1, 9), linspace(10, 20, 9)
    has(contour(x, y, A), "20 ┤", "-1.0")
    raises(function() contour(x, vec{1, 2}, A) end,
        "contour: y has 2 elements, A has 9 rows")
    raises(function() contour(x:exp(), y, A) end, "x is not evenly spaced")
    raises(function() contour(x, y) end, "contour: A is missing")
    raises(function() contour(vec{1, 2}) end, "heights need two rows")
    raises(function() contour(A, {levels = {}}) end, "levels is empty")
    raises(function() contour(A, {levels = {"x"}}) end, 'level 1 is "x"')
end

-- Without a line the chart says so.
function TestKinds:test_flat_heights()
    local A = mat{{1, 2}, {3, 4}}
    local flat = contour(ones(4, 5))
    lu.assertEquals(flat.levels, {})
    has(flat, "there is no line to draw: all heights are 1")
    has(contour(zeros(2, 2), {levels = {0, 1}}), "all heights are 0")
    has(contour(A, {levels = {7}}),
        "there is no line to draw: heights lie between 1 and 4")
    lacks(contour(A, {levels = {0, 2}}), "no line")
    lacks(contour(A), "no line")
    -- of one level, too, where the round numbers are the ends
    lu.assertEquals(contour(A, {levels = 1}).levels, {2.5})
end

function TestKinds:test_grids()
    local a, b = plot(vec{1, 2}), hist(vec{1, 2})
    local chart = subplot({{a, b}, {imshow(eye(2))}}, {title = "all"})
    lu.assertEquals({chart.rows, chart.cols}, {2, 2})
    has(chart, "all\n")
    for line in tostring(chart):gmatch "[^\n]+" do
        lu.assertTrue(utf8.len(line) <= 80, line)
    end
    lu.assertEquals(subplot{a, b}.rows, 1)
    -- where there is no room beside it, below
    lu.assertTrue(#tostring(subplot({a, a}, {width = 30})) > 0)
    for line in tostring(subplot({a, b}, {width = 30})):gmatch "[^\n]+" do
        lu.assertTrue(utf8.len(line) <= 30, line)
    end
    -- and a picture is as wide as all of them need to be
    local image = imshow(eye(6))
    local function size_of(chart)
        local path = os.tmpname() .. ".svg"
        save(chart, path)
        local text = io.open(path):read "a"
        os.remove(path)
        return text:match 'viewBox="0 0 (%d+) '
    end
    lu.assertEquals(size_of(subplot{a, b}), "680")
    lu.assertEquals(size_of(subplot{a, b, a, image}), "1120")
    lu.assertEquals(size_of(subplot({a, b, a, image}, {size = {700, 300}})), "700")
    raises(function() subplot{} end, "subplot: there is no chart")
    raises(function() subplot{{a, 3}} end,
        "subplot: place 2 of row 1 is 3, expected a chart")
    raises(function() subplot{a, heat(eye(2))} end, "place 2 of row 1",
        "as plot, hist or imshow give it")
    raises(function() subplot{{a}, {subplot{a}}} end, "is a grid itself")
    raises(function() subplot{{a}, 3} end, "row 2 is 3, expected a list")
end

-- --- charts as values ------------------------------------------------------------------

TestValues = {}

function TestValues:test_fields()
    local chart = plot(vec{0, 10})
    lu.assertEquals({chart.low, chart.high}, {0, 10})
    local seen = {}
    for key in pairs(chart) do seen[#seen + 1] = tostring(key) end
    lu.assertEquals(getmetatable(chart).__name, "chart")
    lu.assertNil(chart.other)
    -- the text is of the chart as it was made
    local v = vec{1, 2}
    local made = plot(v)
    local text = tostring(made)
    v[1] = 9
    lu.assertEquals(tostring(made), text)
end

-- What is handed over stays as it is.
function TestValues:test_options_are_not_changed()
    local o = {error = 1, width = 40, height = 5}
    local chart = plot(vec{1, 2}, o)
    local text = tostring(chart)
    lu.assertEquals(o, {error = 1, width = 40, height = 5})
    o.width, o.error = 80, nil
    lu.assertEquals(tostring(chart), text)
    local style = {"points"}
    plot(vec{1}, {style = style})
    lu.assertEquals(style, {"points"})
end

function TestValues:test_saved()
    local name = os.tmpname() .. ".svg"
    local chart = plot(vec{1, 3, 2}, {title = "T", size = {300, 250}})
    save(chart, name)
    local file = io.open(name)
    local text = file:read "a"
    file:close()
    has(text, 'width="300" height="250"', ">T</text>", "<path class=\"line s1\"")
    chart:save(name)
    os.remove(name)
    raises(function() plot(vec{1}, {size = {10000, 10000}, file = "a.png"}) end,
        "plot: 10000 x 10000 pixels are too many for a .png file")
    raises(function() save(chart, "a.csv") end,
        'save: "a.csv": a picture\'s name ends in .svg, .png or .pdf')
    raises(function() chart:save() end, "save(chart,")
end

-- --- what is wrong ------------------------------------------------------------------------

TestRefusals = {}

function TestRefusals:test_words()
    local v = vec{1, 2}
    for _, case in ipairs{
        {function() plot(v, {style = "dots"}) end, 'plot: style is "dots", ' ..
            'expected "line", "points", "bars", "steps", "errors"'},
        {function() plot(v, {style = {"lnie"}}) end, "did you mean 'line'?"},
        {function() plot(v, {stlye = "line"}) end, "did you mean 'style'?"},
        {function() plot(v, vec{1, 2, 3}) end,
            "plot: x has 2 elements, y has 3"},
        {function() plot(v, v, vec{1, 2, 3}) end,
            "plot: x has 2 elements, y2 has 3"},
        {function() plot(v, {style = {"line", "bars"}}) end,
            "style has 2 words for 1 series"},
        {function() plot(v, {style = {}}) end, "style is nil, expected"},
        {function() plot(v, {xdates = true}) end, "xdates is of x"},
        {function() plot(v, {names = {"a", "b"}, logx = true}) end,
            "an axis of names has no logarithm"},
        {function() plot(v, {logy = true, low = -1}) end, "low is -1"},
        {function() imshow(eye(2), {log = true, low = 0}) end, "low is 0"},
        {function() hist(v, {width = 80, file = "a.png"}) end,
            "hist: width and height are of text"},
        {function() heat(eye(2), {width = 80, file = "a.png"}) end,
            "heat: width and height are of text"},
        {function() plot(v, {style = "errors"}) end, "takes error = e"},
        {function() plot(v, {error = vec{1, 2, 3}}) end,
            "error has 3 elements, y has 2"},
        {function() plot(v, {error = 1, style = "line"}) end,
            "error is not used"},
        {function() plot(v, {xlim = {2, 1}}) end, "xlim is no range"},
        {function() plot(v, {xlim = {1, inf}}) end, "xlim is no range"},
        {function() plot(v, {ylim = {1, 2}, low = 0}) end, "say the same"},
        {function() plot(v, {legend = {"a", "b"}}) end,
            "legend has 2 names for 1 series"},
        {function() plot(v, {legend = {3}}) end, "name 1 of legend is 3"},
        {function() plot(v, {names = {"a"}}) end, "names has 1 name for 2"},
        {function() plot(v, v, {names = {"a", "b"}}) end, "leave x out"},
        {function() plot(v, v, {xdates = true, logx = true}) end, "no logarithm"},
        {function() plot(v, {width = 3}) end, "width: needs 10 to"},
        {function() plot(v, {size = {10, 10}}) end, "size[1]: needs 100 to"},
        {function() plot(v, {file = "a.svg", width = 80}) end,
            "write size = {680, 420}"},
        {function() plot(complex(v, v)) end, "y is complex: draw real(y)"},
        {function() plot(v):save("a.svg", 3) end,
            "save: chart:save takes 1 argument, not 3"},
        {function() scatter(v) end, "scatter: y is missing"},
        {function() plot(v, zeros(2, 0)) end, "y has no elements"},
        {function() plot(frame{v = {1, 2}}) end, "y is a frame: draw one"},
        {function() plot(frame{s = {"a", "b"}}.s) end, "y is a column of text"},
        {function() plot{{1, 2}, {3}} end, "plot:"},
        {function() plot("a.csv") end, "plot: y is"},
    } do raises(case[1], case[2]) end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
