-- What is shown where it is not easy: long and wide names, narrow screens,
-- zeros on logarithmic axes, several environments, NaN in files, nothing yet.
local lu = require "luaunit"
local t = require "common"
local views = require "lumat.experiment".views
local export = require "lumat.export"
local labels = require "lumat.labels"
local lines = require "lumat.labels".lines
local charts = require "lumat.result_charts"
local raises, content, scratch = t.raises, t.taken, t.scratch

local function row(p, seconds, more)
    return t.row(p, seconds, 0.07, 0.05, more)
end

TestLabels = {}

function TestLabels:test_width()
    for text, width in pairs{["abc"] = 3, ["über"] = 4, ["日本語"] = 6,
        ["e\u{301}"] = 1, ["\u{1f600}!"] = 3, [""] = 0, ["\xff"] = 1} do
        lu.assertEquals(labels.width(text), width, text)
    end
end

function TestLabels:test_cut_names_stay_apart()
    local function fitted(list, most)
        return table.concat(labels.fitted(list, most, labels.width), " ")
    end
    lu.assertEquals(fitted({"tiled", "naive"}, 8), "tiled naive")
    lu.assertEquals(fitted({"register tiles", "naive"}, 8), "registe… naive")
    lu.assertEquals(fitted({"kernel_number_1_x", "kernel_number_2_x"}, 8),
        "…1… …2…")
    lu.assertEquals(fitted({"größe_ä1", "größe_ä2"}, 7), "…1 …2")
    lu.assertEquals(fitted({"same", "same"}, 3), "sa… sa…")
    lu.assertEquals(fitted({"tile_size_16_a", "tile_size_16_b", "x"}, 9),
        "tile…16_a tile…16_b x")
    lu.assertEquals(fitted({}, 3), "")
end

function TestLabels:test_columns_of_wide_characters()
    local out = lines.aligned({{"日本", "1"}, {"a", "22"}}, {true})
    lu.assertEquals(out, {"  日本   1", "  a     22"})
end

-- Names give way where a line would be wider than there is room.
function TestLabels:test_narrow_tables()
    local name = ("long "):rep(20)
    local out = lines.aligned({{"name", "time"}, {name .. "a", "1 s"},
        {name .. "b", "2 s"}, {"short", "3 s"}}, {true}, 1, 50)
    for _, line in ipairs(out) do lu.assertTrue(labels.width(line) <= 50) end
    lu.assertNotEquals(out[2]:gsub("1 s", ""), out[3]:gsub("2 s", ""))
end

TestAxes = {}

local function of_zeros()
    local rows = {}
    for n = -3, 3 do rows[#rows + 1] = row({n = n}, math.max(0, n)) end
    return rows
end

function TestAxes:test_what_has_no_logarithm_is_told()
    local text = tostring(views.plot(of_zeros(), {log = "y"}))
    lu.assertStrContains(text, "4 points left out: y is 0 or less")
    local chart = charts.build(of_zeros(), {log = "xy"})
    lu.assertEquals({#chart.series[1].points, chart.x.log, chart.y.log},
        {3, true, true})
    -- nobody asked
    lu.assertNil(charts.build(of_zeros(), {}).without)
    local below = {row({n = -1}, 1), row({n = -2}, 2)}
    lu.assertStrContains(tostring(views.plot(below, {log = "x"})),
        "x has no logarithm: nothing is above 0")
end

function TestAxes:test_equal_values_on_a_logarithm()
    local rows = {row({n = 1}, 1e-3), row({n = 2}, 1e-3)}
    local text = tostring(views.plot(rows, {log = "y"}))
    lu.assertStrContains(text, "1 ms ┤")
    lu.assertNotStrContains(text, "635")
end

function TestAxes:test_names_below_a_chart()
    local rows = {}
    for i = 1, 12 do
        rows[i] = row({kernel = ("kernel_number_%d_of_many"):format(i)}, i)
    end
    local text = tostring(views.plot(rows, {width = 80}))
    for i = 1, 12 do lu.assertStrContains(text, ("…%d…"):format(i)) end
    for _, width in ipairs{20, 40, 60} do
        for line in tostring(views.plot(rows, {width = width})):gmatch("[^\n]+") do
            lu.assertTrue(labels.width(line) <= width, line)
        end
    end
end

function TestAxes:test_rows_without_intervals_and_samples()
    local rows = {{p = {n = 1}, status = "ok", median = 1, samples = {}},
        {p = {n = 2}, status = "ok", median = 2}}
    lu.assertStrContains(tostring(views.table(rows)), "2.000 s")
    local path = scratch(".html")
    views.report(rows, path)
    lu.assertStrContains(content(path), "<td>2.000")
end

-- What shows results does not end a script where there are none to show.
function TestAxes:test_all_failed()
    local rows = {{p = {n = 1, k = "a"}, status = "failed", message = "no"},
        {p = {n = 2, k = "a"}, status = "failed", message = "nor that"}}
    for _, options in ipairs{{}, {y = "rate"}, {y = "steps"},
        {kind = "roofline"}, {x = "n", y = "k", value = "error"}} do
        local shown = views.plot(rows, options)
        lu.assertEquals(tostring(shown), "nothing to draw: none of 2 points " ..
            "worked; the first, k=a n=1, failed: no")
        lu.assertNil(shown.chart)
    end
    for _, options in ipairs{{value = "steps"}, {rows = "n", cols = "k",
        value = "rate"}, {ratio_to = {k = "a"}}} do
        lu.assertStrContains(tostring(views.table(rows, options)),
            "FAILED  k=a n=2: nor that")
    end
    local path = scratch(".html")
    views.report(rows, path, {plots = {{y = "steps"}}})
    local text = content(path)
    lu.assertStrContains(text, "nothing to draw: none of 2 points")
    lu.assertStrContains(text, "nor that")
    raises(function() views.plot(rows, {by = "m"}) end, "by: there is no axis")
    raises(function() views.plot(rows, {kind = "pie"}) end, 'kind is "pie", expected "lines"')
end

function TestAxes:test_a_picture_that_is_not_there()
    local rows = {{p = {n = 1}, status = "skipped", message = "too large"}}
    local path = scratch(".svg")
    local shown = views.plot(rows, {file = path})
    lu.assertEquals(tostring(shown), "nothing to draw: the only point, " ..
        "n=1, skipped: too large")
    lu.assertNil(shown.file)
    lu.assertNil(io.open(path))
    rows = {{p = {n = 1}, status = "ok", median = 0 / 0, samples = {}},
        {p = {n = 2}, status = "failed", message = "no"}}
    lu.assertEquals(tostring(views.plot(rows)),
        "no point has n and time to draw: 1 of 2 failed")
end

TestMessages = {}

local function experiment_of(rows, axes, environments)
    return {name = "e", axes = axes, results = function() return rows end,
        environments = function() return environments or {} end,
        points = function()
            local points = {}
            for i, r in ipairs(rows) do points[i] = r.p end
            return points
        end}
end

function TestMessages:test_nothing_measured_yet()
    local e = experiment_of({}, {"n"})
    lu.assertEquals(tostring(views.table(e)),
        "e: no points to show yet; :run() measures them")
    lu.assertEquals(tostring(views.plot(e, {y = "steps"})),
        "e: no points to draw yet; :run() measures them")
    local path = scratch(".html")
    views.report(e, path, {plots = {{y = "steps"}}})
    lu.assertStrContains(content(path),
        "e: no points to tell of yet; :run() measures them")
end

function TestMessages:test_what_is_missing_is_named()
    local rows = {row({n = 1}, 1)}
    raises(function() views.table(rows, {value = "rate"}) end,
        "no point has one: rate takes flops= or bytes= of the experiment")
    raises(function() views.plot(rows, {y = "gbs"}) end,
        "GB/s takes bytes= of the experiment")
    raises(function() views.plot(rows, {y = "error"}) end,
        "error takes check= of the experiment")
    raises(function() views.table(rows, {value = "GFLOPS"}) end,
        "did you mean gflops?")
    raises(function() views.table{rows = "n"} end, "e:table{…}")
end

-- A list shows every axis, those named first.
function TestMessages:test_a_list_hides_no_axis()
    local text = tostring(views.table({row({n = 1, k = "a"}, 1),
        row({n = 1, k = "b"}, 1)}, {rows = "n"}))
    lu.assertStrContains(text, "  n  k     time")
end

TestEnvironments = {}

local function of_two()
    local rows = {}
    for n = 1, 4 do rows[n] = row({n = n}, n, {env = n > 3 and 2 or 1}) end
    return experiment_of(rows, {"n"}, {{device = "cuda", driver = "550"},
        {device = "cuda", driver = "580"}})
end

function TestEnvironments:test_are_told_below_tables_and_in_reports()
    local text = tostring(views.table(of_two()))
    lu.assertStrContains(text, "  3 points of environment 1\n" ..
        "  1 point of environment 2: driver was 550, is 580")
    local path = scratch(".html")
    views.report(of_two(), path)
    text = content(path)
    lu.assertStrContains(text, "<th>environment")
    lu.assertStrContains(text, "<br>1 point of environment 2: driver was 550")
    local one = of_two()
    for _, r in ipairs(one:results()) do r.env = 1 end
    lu.assertNotStrContains(tostring(views.table(one)), "environment")
end

-- A file of JSON lines says where its rows are from.
function TestEnvironments:test_travel_with_the_rows()
    local e, path = of_two(), scratch(".jsonl")
    for _, r in ipairs(e:results()) do
        r.samples = {1, 1.001, 0.999, 1, 1.002, 0.998}
    end
    views.jsonl(e, path)
    local rows = export.read("test", path)
    lu.assertEquals(rows.environments, e:environments())
    for i, r in ipairs(e:results()) do lu.assertEquals(rows[i], r) end
    for _, r in ipairs(rows) do r.env = 2 end
    lu.assertStrContains(tostring(experiment.compare(path, rows)),
        "NOT ALIKE: driver was 550, is 580 (3 points)")
    lu.assertNotStrContains(tostring(experiment.compare(path, e)), "NOT ALIKE")
    os.remove(path)
end

TestRoundTrips = {}

local inf, nan = math.huge, 0 / 0

local function same(a, b)
    if a ~= a then return b ~= b end
    return a == b and type(a) == type(b) and (a ~= 0 or 1 / a == 1 / b)
end

local function odd_rows()
    return {
        {p = {n = 1, k = 'quote " and, comma'}, status = "ok",
            samples = {1, 2, 3}, median = 2, low = 1, high = 3,
            values = {a = inf, b = -inf, c = nan, t = "NaN", s = "inf"}},
        {p = {n = 2.5, k = "two\nlines\r\nand"}, status = "failed",
            message = 'measure: "out",\nof\r\nmemory\ttab', samples = {}},
        {p = {n = -0.0, k = " lead"}, status = "ok", samples = {1e-300},
            median = 5e-324, low = 0.1, high = 0.30000000000000004, check = 0,
            values = {a = 9007199254740993, b = true, t = "true", s = "0x10"}},
        {p = {n = math.mininteger, k = "日本\u{1f600}"}, status = "ok",
            samples = {1}, median = 1, low = 1, high = 1,
            values = {t = "-nan", s = "", b = false}},
        {p = {n = 4, k = "1e5"}, status = "ok", samples = {1}, median = 1,
            low = 1, high = 1, values = {t = "false", s = "nan"}}}
end

function TestRoundTrips:test_nothing_changes()
    for _, kind in ipairs{"csv", "jsonl"} do
        local rows, path = odd_rows(), scratch("." .. kind)
        views[kind](rows, path)
        local back = export.read("test", path)
        os.remove(path)
        for i, r in ipairs(rows) do
            for _, name in ipairs{"status", "median", "low", "high", "check",
                "message"} do
                lu.assertTrue(same(r[name], back[i][name]), kind .. name)
            end
            for name, value in pairs(r.p) do
                lu.assertTrue(same(value, back[i].p[name]), kind .. i .. name)
            end
            for name, value in pairs(r.values or {}) do
                lu.assertTrue(same(value, back[i].values[name]),
                    kind .. i .. name)
            end
            lu.assertNil(back[i].special)
        end
    end
end

-- As Python's own modules read them; its json refuses nothing, so constants
-- that JSON has not are caught.
function TestRoundTrips:test_python_reads_them()
    lu.skipIf(not os.execute("command -v python3 >/dev/null"), "no python3")
    local rows, path = odd_rows(), scratch("")
    views.csv(rows, path .. ".csv")
    views.jsonl(rows, path .. ".jsonl")
    local script = [[
import csv, json, sys
for r in csv.DictReader(open(sys.argv[1] + ".csv", newline="")):
    print(repr((r["k"], r["message"], r["a"])))
def no(x): raise ValueError(x)
for line in open(sys.argv[1] + ".jsonl", encoding="utf-8"):
    r = json.loads(line, parse_constant=no)
    print(repr((r["p"]["k"], r.get("message", ""), r.get("special"))))
]]
    local file = assert(io.open(path .. ".py", "w"))
    file:write(script)
    file:close()
    local pipe = io.popen(("PYTHONIOENCODING=utf-8 python3 '%s.py' '%s' 2>&1")
        :format(path, path))
    local text = pipe:read("a")
    pipe:close()
    for _, suffix in ipairs{".py", ".csv", ".jsonl"} do os.remove(path .. suffix) end
    for _, part in ipairs{[[('quote " and, comma', '', 'inf')]],
        [[('two\nlines\r\nand', 'measure: "out",\nof\r\nmemory\ttab', '')]],
        "('日本😀', '', '')", "'a': 'inf'", "'b': '-inf'", "'c': 'nan'"} do
        lu.assertStrContains(text, part)
    end
    lu.assertNotStrContains(text, "Traceback")
end

-- --- in a browser -----------------------------------------------------------

TestBrowser = {}

-- Counts, in every chart, texts that reach out of it and labels that stand in
-- one another; those that lie aslant are only looked at for the first.
local script = [[<script>
var out = 0, over = 0;
document.querySelectorAll("svg").forEach(function (s) {
    var box = s.getBoundingClientRect(), seen = [];
    s.querySelectorAll("text").forEach(function (x) {
        var b = x.getBoundingClientRect();
        if (b.left < box.left - 1 || b.right > box.right + 1 ||
            b.top < box.top - 1 || b.bottom > box.bottom + 1) out++;
        if (x.hasAttribute("transform") || x.classList.contains("small")) return;
        seen.forEach(function (o) {
            if (b.left < o.right - 1 && o.left < b.right - 1 &&
                b.top < o.bottom - 4 && o.top < b.bottom - 4) over++;
        });
        seen.push(b);
    });
});
document.title = "out " + out + " over " + over + " wide " +
    (document.documentElement.scrollWidth > innerWidth) + " rows " +
    document.querySelectorAll("tbody tr").length;
</script></body>]]

local function title_in_chromium(e, plots, width)
    local path = scratch(".html")
    views.report(e, path, {plots = plots})
    local text = content(path):gsub("</body>", function() return script end)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local pipe = io.popen(("timeout 60 chromium --headless --no-sandbox " ..
        "--disable-gpu --window-size=%d,900 --dump-dom 'file://%s' 2>/dev/null")
        :format(width, path))
    local dom = pipe:read("a")
    pipe:close()
    os.remove(path)
    return dom:match("<title>([^<]*)</title>")
end

local peak = {name = "f32", value = 1e11, flops = 1e11, bytes = 1e10}

local function kernels(count, of)
    local rows = {}
    for n = 6, 10 do
        for k = 1, count do
            rows[#rows + 1] = row({n = 2 ^ n // 1 | 0, kernel = of(k)},
                k * 2.0 ^ n * 1e-6, {flops = 1e4 * 2.0 ^ n, check = k * 1e-7,
                    bytes = 10 * 2.0 ^ n * k, peak = peak})
        end
    end
    return experiment_of(rows, {"n", "kernel"})
end

function TestBrowser:test_labels_have_room()
    lu.skipIf(not os.execute("command -v chromium >/dev/null"), "no chromium")
    local names = {"tiled", "naïve", 'a<b & "c">', "ein überlanger Name, der " ..
        "kein Ende nimmt, 日本語", "simt"}
    local plots = {{}, {x = "kernel", y = "time"}, {kind = "roofline"},
        {x = "n", y = "kernel", value = "rate"},
        {x = "kernel", y = "n", value = "time"}}
    for _, e in ipairs{kernels(5, function(k) return names[k] end),
        kernels(14, function(k)
            return ("kernel_number_%d_of_a_long_name_%d"):format(k, k)
        end)} do
        local title = title_in_chromium(e, plots, 1200)
        lu.assertStrContains(title, "out 0 over 0 wide false")
        lu.assertStrContains(title_in_chromium(e, plots, 400), "wide false")
    end
end

function TestBrowser:test_a_thousand_rows()
    lu.skipIf(not os.execute("command -v chromium >/dev/null"), "no chromium")
    local rows = {}
    for i = 1, 40 do
        for j = 1, 25 do
            rows[#rows + 1] = row({n = 64 * i, m = 16 * j}, i * j * 1e-6,
                {flops = 1e6 * i, bytes = 1e5 * j, peak = peak})
        end
    end
    lu.assertEquals(title_in_chromium(experiment_of(rows, {"n", "m"}),
        {{}, {x = "n", y = "m", value = "rate"}}, 1000),
        "out 0 over 0 wide false rows 1000")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
