-- What an experiment is seen by: tables, files that are read back, charts as
-- text and as SVG, the report.
local lu = require "luaunit"
local t = require "common"
local views = require "lumat.experiment".views
local export = require "lumat.export"
local charts = require "lumat.result_charts"
local scales = require "lumat.scales"
local svg = require "lumat.svg"
local raises, content, scratch = t.raises, t.taken, t.scratch

local NASTY = "<b onload='x'>&\"\27[31m\1\255"

local function row(p, seconds, more)
    return t.row(p, seconds, 0.01, 0.01, more)
end

local peak = {name = "f32", value = 1e11, flops = 1e11, bytes = 1e10}

-- Three sizes, two kernels; one point failed.
local function sample()
    local rows = {}
    for _, n in ipairs{64, 128, 1024} do
        for i, kernel in ipairs{"tiled", "naive"} do
            rows[#rows + 1] = row({n = n, kernel = kernel}, i * n * 1e-6,
                {flops = 1e4 * n, bytes = 10 * n, peak = peak, check = i * 1e-7,
                    env = 1, values = {steps = 3 * i}})
        end
    end
    rows[6] = {p = {n = 1024, kernel = "naive"}, status = "failed",
        message = "measure: out of\nmemory", samples = {}}
    return rows
end

TestTable = {}

function TestTable:test_one_axis_against_another()
    lu.assertEquals(tostring(views.table(sample(), {rows = "n",
        cols = "kernel", value = "rate"})), [[
6 points; rate, GFLOP/s
     n  tiled    naive   best
    64  10.00    5.000   tiled
   128  10.00    5.000   tiled
  1024  10.00   FAILED   tiled
  FAILED  kernel=naive n=1024: measure: out of memory]])
end

function TestTable:test_a_plain_list()
    local text = tostring(views.table(sample()))
    for _, line in ipairs{
        "  kernel     n      time   interval           rate  share of peak",
        "  tiled     64  64.00 us      2.0 %  10.00 GFLOP/s           10 %",
        "  naive   1024     FAILED"} do
        lu.assertStrContains(text, line)
    end
end

function TestTable:test_marks_wide_intervals()
    local rows = sample()
    rows[1].high = 1.1 * rows[1].median
    local text = tostring(views.table(rows, {rows = "kernel", cols = "n"}))
    lu.assertStrContains(text, "64.00 us~  128.0 us")
    lu.assertStrContains(text, "~ the 95 % interval is wider than 5 %")
    -- of what was not timed nothing is said
    lu.assertNotStrContains(tostring(views.table(rows, {rows = "kernel",
        cols = "n", value = "error"})), "~")
end

function TestTable:test_where_and_stat()
    local rows = sample()
    lu.assertEquals(#views.table(rows, {where = {kernel = "tiled"}}), 3)
    lu.assertEquals(#views.table(rows, {where = function(p, r)
        return p.n < 1000 and r.check < 1.5e-7
    end}), 2)
    lu.assertStrContains(tostring(views.table(rows, {where = {n = 1}})),
        "no points match")
    local text = tostring(views.table(rows, {rows = "n", cols = "kernel",
        value = "steps"}))
    lu.assertStrContains(text, "\n    64      3        6")
    text = tostring(views.table(rows, {rows = "kernel", cols = "kernel",
        stat = "max"}))
    lu.assertStrContains(text, "max time")
    lu.assertStrContains(text, "1.024 ms")
end

function TestTable:test_leaves_the_rows_as_they_are()
    local rows = sample()
    views.table(rows)
    lu.assertNil(getmetatable(rows))
    lu.assertEquals(tostring(views.table{}), "no points to show")
end

function TestTable:test_names_do_no_harm()
    local rows = {row({[NASTY] = 1, kernel = NASTY}, 1)}
    local text = tostring(views.table(rows)) ..
        tostring(views.table(rows, {rows = "kernel", cols = NASTY})) ..
        tostring(views.plot(rows, {x = NASTY, by = "kernel"}))
    lu.assertNil(text:find("[%z\1-\9\11-\31\127]"))
    lu.assertNotNil(utf8.len(text))
end

function TestTable:test_refusals()
    local rows = sample()
    for _, case in ipairs{
        {{row = "n"}, "unknown option 'row': did you mean 'rows'?"},
        {{rows = "m"}, 'rows: there is no axis "m"'},
        {{rows = "n", cols = "kernel", value = "shore"},
            'value: there is no "shore"; did you mean share?'},
        {{rows = "n", cols = "n"}, "several points stand in one cell: " ..
            "kernel differs; name it in rows, cols or where"},
        {{cols = "n"}, "cols is n, but rows names no axis"},
        {{stat = "mode"}, 'stat is "mode", expected "min", "max", "mean" or "median"'},
        {{best = false}, "best is not used: it names the best column"},
        {{rows = "n", cols = "kernel", value = "steps", best = true},
            "best is not used: of steps nobody knows"},
        {{rows = {}, cols = "n"}, "rows names no axis"},
        {{where = {m = 1}}, 'where: there is no axis "m", but kernel n'},
        {{rows = 1}, "rows is 1, expected a string or a table"}} do
        raises(function() views.table(rows, case[1]) end, "table: ", case[2])
    end
    raises(function() views.table(7) end, "7 is no experiment and no list")
end

TestFiles = {}

function TestFiles:test_csv_reads_back()
    local rows, path = sample(), scratch(".csv")
    rows[1].p.kernel = 'a "quoted", name\nof two lines'
    rows[2].p.kernel = "12" -- a name that looks like a number
    lu.assertIs(views.csv(rows, path), rows)
    local back = export.read("test", path)
    os.remove(path)
    lu.assertEquals(#back, 6)
    for i, r in ipairs(rows) do
        lu.assertEquals(back[i].p, r.p)
        for _, name in ipairs{"status", "median", "low", "high", "flops",
            "bytes", "check", "env", "message"} do
            lu.assertEquals(back[i][name], r[name], name)
        end
    end
    lu.assertEquals(back[1].values.steps, 3)
    lu.assertEquals(back[1].peak.value, 1e11)
end

-- Figures of `hold` are a column of files, tables and reports.
function TestFiles:test_held()
    local rows = sample()
    for i, r in ipairs(rows) do r.held = i < 6 and i * 1e-6 or nil end
    for _, ending in ipairs{"csv", "jsonl"} do
        local path = scratch("." .. ending)
        views[ending](rows, path)
        local back = export.read("test", path)
        os.remove(path)
        for i, r in ipairs(rows) do
            lu.assertEquals(back[i].held, r.held)
            lu.assertEquals(back[i].check, r.check)
        end
    end
    lu.assertStrContains(export.csv_text(rows), ",check,held,env,")
    lu.assertStrContains(tostring(views.table(rows)), "held")
    local path = scratch(".html")
    views.report(rows, path)
    lu.assertStrContains(content(path), ">held, us<")
    views.report(sample(), path)
    lu.assertNotStrContains(content(path), "held, ")
end

-- Files of versions that had fewer columns.
function TestFiles:test_an_older_csv()
    local path = scratch(".csv")
    t.write(path, "n,status,seconds,low,high,samples,check,env,message,steps\n" ..
        "2,ok,0.5,0.4,0.6,7,1e-07,1,,3\n")
    local r = export.read("test", path)[1]
    os.remove(path)
    lu.assertEquals({r.p, r.median, r.high, r.count, r.check, r.env, r.values},
        {{n = 2}, 0.5, 0.6, 7, 1e-7, 1, {steps = 3}})
end

function TestFiles:test_jsonl_reads_back()
    local rows, path = sample(), scratch(".jsonl")
    rows[1].p.kernel = "quote \" and \\ and \n and ü"
    views.jsonl(rows, path)
    local back = export.read("test", path)
    os.remove(path)
    lu.assertEquals(back, rows)
end

function TestFiles:test_damage_is_told()
    local path = scratch(".csv")
    local function read(text)
        local file = assert(io.open(path, "w"))
        file:write(text)
        file:close()
        return export.read("test", path)
    end
    raises(function() read "a,b\n1,2\n" end, "has no columns status and seconds")
    raises(function() read('n,status,seconds\n1,"ok') end,
        "a quoted field does not end")
    raises(function() read "n,status,seconds\n1,ok\n" end,
        "record 2 has 2 fields, not 3")
    os.remove(path)
    path = scratch(".jsonl")
    raises(function() read '{"p":{}}\n{"p":' end, "line 2: ")
    raises(function() read '[1]\n' end, "line 1 is no row of results")
    os.remove(path)
end

function TestFiles:test_a_failed_write_leaves_what_was_there()
    raises(function() views.csv(sample(), "/no/where/x.csv") end,
        "csv: cannot write '/no/where/x.csv': No such file")
    raises(function() views.jsonl(sample()) end, "needs a file's name")
    raises(function() views.report(sample(), "/") end, "cannot write '/'")
end

TestScales = {}

local function texts(axis)
    local list = {}
    for i, tick in ipairs(axis.ticks) do list[i] = tick.text end
    return table.concat(list, " ")
end

function TestScales:test_ticks()
    lu.assertEquals(texts(scales.linear(0, 10, 5)), "0 2 4 6 8 10")
    lu.assertEquals(texts(scales.linear(0.12, 0.34, 5, {zero = true})), "0.0 0.1 0.2 0.3 0.4")
    lu.assertEquals(texts(scales.linear(-3, 7, 5)), "-4 -2 0 2 4 6 8")
    lu.assertEquals(texts(scales.linear(5, 5, 4)), "2 4 6 8")
    lu.assertEquals(texts(scales.log(1, 1e6, 4)), "1 100 10000 1e6")
    lu.assertEquals(texts(scales.log(64, 1024, 5, nil, {64, 256, 1024})),
        "64 128 256 512 1024")
    lu.assertEquals(texts(scales.log(1e-6, 1e-3, 5,
        {what = {kind = "time"}})),
        "1 us 10 us 100 us 1 ms")
end

-- Every tick stands on its value, from low to high, whatever the range.
function TestScales:test_ranges()
    math.randomseed(5)
    for _ = 1, 300 do
        local low = (math.random() - 0.5) * 10 ^ math.random(-12, 12)
        local high = low + math.random() * 10 ^ math.random(-12, 12)
        local axis = scales.linear(low, high, 6)
        lu.assertTrue(#axis.ticks >= 2 and #axis.ticks < 20)
        lu.assertTrue(axis.at(low) >= -1e-6 and axis.at(high) <= 1 + 1e-6)
        low = 10 ^ (20 * math.random() - 10)
        high = low * 10 ^ (8 * math.random())
        axis = scales.log(low, high, 6)
        lu.assertTrue(#axis.ticks >= 2 and #axis.ticks < 20)
        lu.assertTrue(axis.at(low) >= -1e-6 and axis.at(high) <= 1 + 1e-6)
    end
end

TestPlot = {}

function TestPlot:test_series_and_points()
    local chart = charts.build(sample(), {x = "n", y = "rate", by = "kernel"})
    lu.assertEquals(#chart.series, 2)
    lu.assertEquals(#chart.series[1].points, 3)
    lu.assertEquals(#chart.series[2].points, 2)
    lu.assertEquals(chart.series[2].failed, {1024})
    lu.assertTrue(chart.x.log)
    lu.assertFalse(charts.build(sample(), {x = "n", log = "y"}).x.log)
    local point = chart.series[1].points[1]
    lu.assertAlmostEquals(point.y, 1e10, 1)
    lu.assertTrue(point.low < point.y and point.y < point.high)
end

function TestPlot:test_text_fits_its_width()
    for _, width in ipairs{20, 40, 80} do
        for _, options in ipairs{{}, {x = "kernel"}, {y = "check"},
            {kind = "roofline"}} do
            options.width = width
            local text = tostring(views.plot(sample(), options))
            local count = 0
            for line in text:gmatch("[^\n]+") do
                count = count + 1
                if width >= 40 and not line:find(" by ") then
                    lu.assertTrue(utf8.len(line) <= width, line)
                end
            end
            lu.assertTrue(count > 16)
        end
    end
end

function TestPlot:test_heat_in_text()
    local text = tostring(views.plot(sample(), {x = "n", y = "kernel",
        value = "rate"}))
    lu.assertStrContains(text, "10.00")
    lu.assertStrContains(text, "FAILED")
end

function TestPlot:test_refusals()
    for _, case in ipairs{
        {{kind = "pie"}, 'kind is "pie", expected "lines", "heat" or "roofline"'},
        {{kind = "heat", x = "n"}, "a heat map needs x and y"},
        {{by = "colour"}, 'by: there is no axis "colour"'},
        {{y = "rats"}, 'y: there is no "rats"'},
        {{log = "z"}, 'log is "z", expected "x", "y", "xy" or ""'},
        {{width = -3}, "width is -3, expected a number from 1 on"},
        {{file = "a.gif"}, "a picture's name ends in .svg, .png or .pdf"},
        {{kind = "lines", value = "rate"}, "value is not used: a heat map has it"},
        {{x = "n", y = "kernel", value = "rate", by = "n"},
            "by is not used: a heat map has no series"},
        {{x = "n", y = "n", value = "rate"}, "x and y are both n"},
        {{x = "n", y = "kernel", value = "rate", log = "x"}, 'log is "x", ' ..
            'expected "v", its value'},
        {{log = "v"}, 'log is "v", expected "x"'},
        {{x = "n", y = "kernel", value = "rate", height = 9},
            "height is not used"},
        {{kind = "roofline", x = "n"}, "x is not used: a roofline has flops"},
        {{kind = "roofline", log = false}, "log is not used"}} do
        raises(function() views.plot(sample(), case[1]) end, "plot: ", case[2])
    end
    lu.assertEquals(tostring(views.plot(sample(), {where = {n = 7}})),
        "no points match")
    raises(function()
        views.plot({row({n = 1}, 1)}, {kind = "roofline"})
    end, "a roofline needs points with flops= and bytes=")
end

-- Sizes by kernel and type; what `status` says of a point is its row.
local function grid(status)
    local rows = {}
    for _, n in ipairs{16, 32, 64, 128} do
        for i, kernel in ipairs{"a", "b"} do
            for k, dtype in ipairs{"f32", "f64"} do
                local p = {n = n, kernel = kernel, dtype = dtype}
                rows[#rows + 1] = status and status(p) and {p = p,
                    status = status(p), message = "measure: no"} or
                    row(p, n * i * k * 1e-6, {flops = 1e6})
            end
        end
    end
    return rows
end

TestPlaces = {}

-- One rule for tables, lines and maps: points that differ share no place but
-- by a stat.
function TestPlaces:test_points_that_differ()
    local rows = grid()
    local what = ": several points stand "
    for _, case in ipairs{
        {"table", {rows = "n", cols = "kernel"}, what .. "in one cell: dtype " ..
            "differs; name it in rows, cols or where, or say which stat of " ..
            'them, as in rows = {"n", "dtype"}, where = {dtype = "f64"} or ' ..
            'stat = "median"'},
        {"plot", {x = "n", y = "time", by = "kernel"}, what .. "at one n of a " ..
            "line: dtype differs; name it in by or where", 'by = {"kernel", ' ..
            '"dtype"}'},
        {"plot", {x = "n", by = {}}, "dtype differs", 'by = "dtype"'},
        {"plot", {x = "kernel", by = "dtype"}, "n differs"},
        {"plot", {x = "n", y = "kernel", value = "time"}, what .. "in one cell"}} do
        local view, options = case[1], case[2]
        raises(function() views[view](rows, options) end, view .. ": ",
            table.unpack(case, 3))
        options.stat = "max"
        lu.assertStrContains(tostring(views[view](rows, options)), "max ")
    end
    local chart = charts.build(rows, {x = "n", y = "time", by = "kernel",
        stat = "mean"})
    lu.assertAlmostEquals(chart.series[2].points[1].y, 1.5 * 32e-6, 1e-12)
    raises(function() views.plot(rows, {stat = "mode"}) end,
        'plot: stat is "mode", expected "min", "max", "mean" or "median"')
end

-- Where nobody says `by`, it is all that tells points apart.
function TestPlaces:test_series_that_nobody_named()
    local chart = charts.build(grid(), {x = "n", y = "time"})
    lu.assertEquals(chart.by, {"dtype", "kernel"})
    lu.assertEquals(#chart.series, 4)
    local rows = {}
    for i = 1, 12 do -- as a zip has them: k goes along with n
        rows[2 * i - 1] = row({n = i, k = 2 * i, kernel = "a"}, i)
        rows[2 * i] = row({n = i, k = 2 * i, kernel = "b"}, i)
    end
    lu.assertEquals(charts.build(rows, {x = "n"}).by, {"kernel"})
    lu.assertEquals(charts.build(rows, {x = "k"}).by, {"kernel"})
end

function TestPlaces:test_of_a_point_measured_again_the_later_row_counts()
    local rows = {row({n = 1, k = 1}, 5), row({n = 2, k = 1}, 7),
        row({n = 1, k = 1}, 6)}
    lu.assertEquals(charts.build(rows, {x = "n", y = "time"}).series[1].points[1].y,
        6)
    lu.assertEquals(charts.build(rows, {x = "n", y = "k", value = "time"})
        .cells[1][1].value, 6)
    lu.assertStrContains(tostring(views.table(rows, {rows = "n", cols = "k"})),
        "\n  1  6.000 s")
end

-- Values that are written alike are two.
function TestPlaces:test_values_that_look_alike()
    local rows = {row({n = 0.1, k = "1"}, 1), row({n = 0.1 + 1e-9, k = 1}, 2)}
    lu.assertEquals(select(2, tostring(views.table(rows, {rows = "n",
        cols = "k"})):gsub("0%.1 ", "")), 2)
    lu.assertEquals(#charts.build(rows, {x = "n", by = "k"}).series, 2)
end

-- The least rate is that of the longest sample.
function TestPlaces:test_stats_of_rates()
    local r = row({n = 1}, 2, {flops = 12e9})
    r.samples = {1, 2, 4}
    for stat, value in pairs{min = "3.000", median = "6.000", max = "12.00"} do
        lu.assertStrContains(tostring(views.table({r}, {stat = stat,
            value = "rate"})), value .. " GFLOP/s")
        lu.assertStrContains(tostring(views.table({r}, {stat = stat})),
            stat .. " time")
    end
end

TestGaps = {}

local function failing(p)
    return p.dtype == "f32" and p.n == 32 and
        (p.kernel == "a" and "failed" or "skipped")
end

local function runs_of(s)
    local words = {}
    for i, run in ipairs(require "lumat.chart_data".runs(s)) do
        words[i] = {}
        for k, point in ipairs(run) do words[i][k] = point.x end
        words[i] = table.concat(words[i], " ")
    end
    return table.concat(words, ", ")
end

function TestGaps:test_lines_end_at_points_that_failed()
    local rows = grid(failing)
    local chart = charts.build(rows, {x = "n", y = "time"})
    local found = {}
    for _, s in ipairs(chart.series) do found[s.name] = runs_of(s) end
    lu.assertEquals(found, {["f32 a"] = "16, 64 128", ["f32 b"] = "16, 64 128",
        ["f64 a"] = "16 32 64 128", ["f64 b"] = "16 32 64 128"})
    local text = tostring(views.plot(rows, {x = "n", y = "time"}))
    lu.assertStrContains(text, "×")
    lu.assertStrContains(text, "× 1 point failed\n  1 point was skipped")
    local path = scratch(".svg")
    views.plot(rows, {x = "n", y = "time", file = path})
    text = content(path)
    lu.assertStrContains(text, "× 1 point failed · 1 point was skipped")
    -- one line for each run of two points or more, one in the legend
    lu.assertEquals(select(2, text:gsub('class="line s%d" d="M[%d. L]+"', "")), 8)
end

function TestGaps:test_numbers_that_are_none_and_logarithms()
    local rows = {}
    for n = 1, 9 do
        rows[n] = row({n = n}, 1, {values = {x = n == 3 and 0 / 0 or n == 6 and 0
            or n ~= 8 and n or nil}})
    end
    local chart = charts.build(rows, {x = "n", y = "x", log = "y"})
    lu.assertEquals(runs_of(chart.series[1]), "1 2, 4 5, 7, 9")
    local text = tostring(views.plot(rows, {x = "n", y = "x", log = "y"}))
    lu.assertStrContains(text, "  2 points have no x\n  1 point left out: y is 0")
end

-- Below charts of shares stands what they are of, in lines that fit.
function TestGaps:test_what_shares_are_of()
    local rows = sample()
    local said = "shares are of the f32 peak 100 GFLOP/s"
    lu.assertStrContains(tostring(views.plot(rows, {x = "n", y = "share"})),
        "× 1 point failed\n  " .. said)
    lu.assertStrContains(tostring(views.plot(rows, {x = "n", y = "kernel",
        value = "share"})), said)
    lu.assertNotStrContains(tostring(views.plot(rows, {x = "n"})), said)
    local path = scratch(".svg")
    views.plot(rows, {x = "n", y = "share", file = path})
    lu.assertStrContains(content(path), "× 1 point failed · " .. said .. "<")
    views.plot(rows, {x = "n", y = "share", file = path, width = 320})
    local text = content(path)
    lu.assertStrContains(text, ">× 1 point failed<")
    lu.assertStrContains(text, ">" .. said .. "<")
end

-- The line of few dots that one point makes is seen, too.
function TestGaps:test_a_point_between_gaps_is_seen()
    local rows = {}
    for n = 1, 300 do
        rows[n] = n ~= 150 and n > 100 and n < 200 and {p = {n = n},
            status = "failed", message = "no"} or row({n = n}, n == 150 and 9 or 1)
    end
    local path = scratch(".svg")
    views.plot(rows, {x = "n", y = "time", file = path})
    lu.assertStrContains(content(path), "<title>n 150: 9.000 s</title>")
end

function TestGaps:test_heat_maps_of_which_points_failed()
    local rows = grid(function(p)
        return p.kernel == "a" and (p.n == 32 and p.dtype == "f32" and "failed" or
            p.n == 64 and "failed" or p.n == 128 and "skipped")
    end)
    local heat = {x = "n", y = "kernel", value = "time", stat = "median"}
    local text = tostring(views.plot(rows, heat))
    for _, part in ipairs{"64.00 us*", "FAILED", "SKIPPED",
        "* some of its points have none", "3 points failed",
        "2 points were skipped"} do
        lu.assertStrContains(text, part)
    end
    heat.file = scratch(".svg")
    views.plot(rows, heat)
    text = content(heat.file)
    lu.assertStrContains(text, "64.00 us*<")
    lu.assertStrContains(text, "3 points failed · 2 points were skipped · * some")
end

-- --- markup -----------------------------------------------------------------

-- Tags match, attributes are quoted, entities are known, no character is one
-- that XML forbids.
local function is_well_formed(text)
    lu.assertNotNil(utf8.len(text), "UTF-8")
    lu.assertNil(text:find("[%z\1-\8\11\12\14-\31]"))
    local open = {}
    text = text:gsub("<style>.-</style>", "")
    for entity in text:gmatch("&[^;]*;?") do
        lu.assertTableContains({"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"},
            entity)
    end
    local rest = text:gsub("<(/?)([%a]+)([^<>]*)>", function(close, name, inside)
        if close == "/" then
            lu.assertEquals(table.remove(open), name)
        elseif not inside:find("/$") then
            open[#open + 1] = name
        end
        lu.assertEquals(inside:gsub(' [%w:-]+="[^"<]*"', ""):gsub("/$", ""), "")
        return ""
    end)
    lu.assertEquals(open, {})
    lu.assertNil(rest:find("[<>]"))
end

TestSvg = {}

-- Where a cell has several points a stat says which figure of them counts, and
-- no report has such a map unasked.
function TestSvg:test_heat_maps_of_several_points()
    local rows, path = {}, scratch(".html")
    for i = 1, 18 do
        rows[i] = {p = {n = i % 3, seed = i % 9 // 3, k = i % 2 == 0 and "a" or "b"},
            status = "ok", median = i, low = i, high = i, samples = {i}}
    end
    local heat = {x = "n", y = "seed", value = "time"}
    raises(function() views.plot(rows, heat) end, "plot: several points stand " ..
        "in one cell: k differs; name it in where, or say which stat of them, " ..
        'as in where = {k = "a"} or stat = "median"')
    heat.stat = "median"
    lu.assertStrContains(tostring(views.plot(rows, heat)), "median time by n and seed")
    heat.stat = nil
    views.report(rows, path)
    lu.assertNotStrContains(content(path), "time by n and seed")
    heat.where = {k = "a"}
    lu.assertNotStrContains(tostring(views.plot(rows, heat)), "median")
    views.report(rows, path, {where = {k = "a"}})
    lu.assertStrContains(content(path), "time by n and seed")
end

function TestSvg:test_escape()
    lu.assertEquals(svg.escape("<a&\"'>"), "&lt;a&amp;&quot;&#39;&gt;")
    is_well_formed("<g>" .. svg.escape(NASTY) .. "</g>")
    lu.assertEquals(svg.escape("\255"), "ÿ")
    lu.assertNil(svg.escape("\u{ffff}"):find("\u{ffff}", 1, true))
end

local all_kinds = {{}, {x = "kernel", y = "time"}, {y = "check", log = false},
    {kind = "roofline"}, {x = "n", y = "kernel", value = "rate"},
    {x = "steps", y = "error"}, {y = "share"}}

function TestSvg:test_every_kind_is_well_formed()
    for _, options in ipairs(all_kinds) do
        options.file = scratch(".svg")
        local said = tostring(views.plot(sample(), options))
        lu.assertEquals(said, "wrote " .. options.file)
        local text = content(options.file)
        options.file = nil
        lu.assertStrContains(text, '<svg xmlns="http://www.w3.org/2000/svg"')
        is_well_formed(text)
        lu.assertNil(text:find("nan", 1, true))
        lu.assertNil(text:find("inf", 1, true))
        lu.assertNil(text:gsub("http://www.w3.org/2000/svg", ""):find("://"))
    end
end

function TestSvg:test_names_do_no_harm()
    local rows = {}
    for n = 1, 3 do
        rows[n] = row({[NASTY] = n, kernel = NASTY .. n}, n, {flops = 1,
            bytes = 1, peak = peak})
    end
    for _, options in ipairs{{}, {x = "kernel"}, {kind = "roofline"},
        {x = NASTY, y = "kernel", value = "time"}} do
        options.file, options.title = scratch(".svg"), NASTY
        views.plot(rows, options)
        is_well_formed(content(options.file))
    end
end

-- Labels of an axis do not overlap, by the widths they are given.
function TestSvg:test_labels_leave_room()
    for _, count in ipairs{2, 7, 40, 300} do
        local rows = {}
        for n = 1, count do rows[n] = row({n = n * 12345}, n) end
        local path = scratch(".svg")
        views.plot(rows, {file = path})
        local free = -math.huge
        for x, label in content(path):gmatch(
            '<text x="([%d.]+)" y="[%d.]+" text%-anchor="middle">([%d.e]+)<') do
            local half = svg.width(label) / 2
            lu.assertTrue(x - half > free, label)
            free = x + half
        end
        lu.assertTrue(free > 0)
    end
end

-- Many points and series do not make a file large.
function TestSvg:test_many_points()
    local rows = {}
    for n = 1, 5000 do
        rows[n] = row({n = n, k = "s" .. n % 20}, 1 + n % 7)
    end
    local path = scratch(".svg")
    views.plot(rows, {file = path})
    local text = content(path)
    lu.assertTrue(#text < 200000, #text)
    lu.assertStrContains(text, "12 more series are not drawn")
end

TestReport = {}

local function report(e, options)
    local path = scratch(".html")
    lu.assertIs(views.report(e, path, options), e)
    return content(path)
end

-- An experiment as the views see one.
local function experiment_of(rows, script)
    return {name = "shoot-out", axes = {"n", "kernel"},
        results = function() return rows end,
        points = function()
            local points = {}
            for i, r in ipairs(rows) do points[i] = r.p end
            return points
        end,
        environments = function()
            return {{device = "cpu", threads = 2, git = "v1<2"}}
        end,
        script = script and {path = "/here/s.lua", text = script}}
end

function TestReport:test_has_everything()
    local text = report(experiment_of(sample(), "local a <const> = 1\n\nprint(a)"))
    for _, part in ipairs{"<h1>shoot-out</h1>", "6 points", "5 good",
        "1 failed", "<th>n<th>kernel<th>time, us", "n=1024 kernel=naive",
        "measure: out of\nmemory", "<dd>v1&lt;2</dd>", "Script: s.lua",
        "<span>local a &lt;const&gt; = 1</span><span></span>" ..
        "<span>print(a)</span></pre>"} do
        lu.assertStrContains(text, part)
    end
    lu.assertEquals(select(2, text:gsub("<svg ", "")), 4)
    for drawing in text:gmatch("<svg .-</svg>") do is_well_formed(drawing) end
end

-- Nothing is fetched from anywhere, and names stay names.
function TestReport:test_stands_alone_and_escapes()
    local rows = sample()
    rows[1].p.kernel, rows[6].message = NASTY, NASTY .. "<script>alert(1)</script>"
    local e = experiment_of(rows, "x = '</pre><script>alert(2)</script>'")
    e.name = NASTY
    local text = report(e, {plots = {{x = "n", by = "kernel"}}})
    lu.assertNil(text:find("<b onload", 1, true))
    lu.assertNil(text:find("<script>alert", 1, true))
    lu.assertEquals(select(2, text:gsub("<script", "")), 1)
    lu.assertNil(text:gsub("http://www.w3.org/2000/svg", ""):find("://"))
    lu.assertNil(text:find("src=", 1, true))
    lu.assertNil(text:find("<link", 1, true))
end

function TestReport:test_refusals()
    raises(function() views.report(sample()) end, "needs a file's name")
    raises(function() views.report(sample(), "a.pdf") end,
        '"a.pdf": a report\'s file ends in .html')
    raises(function()
        views.report(sample(), "x.html", {plots = {{y = "rats"}}})
    end, 'report: plot: y: there is no "rats"')
end

function TestReport:test_size()
    local rows = {}
    for i = 1, 10000 do
        rows[i] = row({n = i, kernel = "kernel" .. i % 5}, i * 1e-6,
            {flops = 1e3 * i, bytes = i, peak = peak, check = 1e-7})
    end
    local start = clock()
    lu.assertTrue(#report(rows) <= 2 ^ 20)
    lu.assertTrue(clock() - start < 20)
end

-- --- in a browser -----------------------------------------------------------

local function chromium()
    local pipe = io.popen("command -v chromium || command -v chromium-browser")
    local path = pipe:read("l")
    pipe:close()
    return path
end

-- The page as the browser has it after its script ran, and after a click.
function TestReport:test_in_chromium()
    local program = chromium()
    lu.skipIf(not program, "no chromium here")
    local text = report(experiment_of(sample(), "print(1)"))
    text = text:gsub("</body>", [[<script>
        document.querySelectorAll("th button")[2].click();
        document.querySelectorAll("th button")[2].click();
        var wide = document.documentElement.scrollWidth > innerWidth;
        document.title = "wide " + wide + " first " +
            document.querySelector("tbody tr").cells[0].textContent + "/" +
            document.querySelector("tbody tr").cells[1].textContent;
        </script></body>]])
    local path = scratch(".html")
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    for _, width in ipairs{1200, 400} do
        local pipe = io.popen(("timeout 60 '%s' --headless --no-sandbox " ..
            "--disable-gpu --window-size=%d,900 --dump-dom 'file://%s' " ..
            "2>/dev/null"):format(program, width, path))
        local dom = pipe:read("a")
        pipe:close()
        lu.assertStrContains(dom, "<title>wide false first 1024/tiled</title>")
        lu.assertEquals(select(2, dom:gsub("<th aria%-sort=\"descending\"", "")),
            1)
    end
    os.remove(path)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
