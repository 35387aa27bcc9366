-- Every option that is documented for experiments has an effect: a walk over
-- those that Tab offers, which are those of the help. And what a run says of
-- points that were done before it.
local lu = require "luaunit"
local t = require "common"
local raises, content = t.raises, t.content
local journal = require "lumat.journal"
local bar = require "lumat.progress".bar
local root, new_dir = t.folders()

-- What runs say, each line of it.
local said = {}
local new_bar = bar.new
bar.new = function(name, options)
    options.put = function(text)
        if not options.quiet then said[#said + 1] = text:gsub("\n$", "") end
    end
    options.columns = function() return nil end
    return new_bar(name, options)
end

local function told()
    local text = table.concat(said, "\n")
    said = {}
    return text
end

-- An experiment of six points that is kept nowhere, and what was called.
local function define(more)
    local calls = {}
    local spec = {name = "a", dir = false, repeats = 1,
        axes = {n = {1, 2, 4}, kind = {"x", "y"}},
        measure = function(p)
            calls[#calls + 1] = p.kind .. p.n
            return p.n * (p.kind == "x" and 1 or 2)
        end}
    for name, value in pairs(more or {}) do
        if value == "none" then value = nil end
        spec[name] = value
    end
    return experiment(spec), calls
end

local function ran(more, options)
    local e, calls = define(more)
    options = options or {}
    if options.quiet == nil then options.quiet = true end
    e:run(options)
    return e, e:results(), calls
end

local function sum() return 1 + 1 end
local function work() return sum end

-- --- experiment{…} ------------------------------------------------------------

local described = {}

function described.name()
    lu.assertStrContains(tostring(define{name = "b.c"}), "b.c: 6 points")
end
function described.axes() lu.assertEquals(#define{axes = {n = {3}}}:points(), 1) end
function described.measure()
    local _, rows = ran{measure = function() return 7 end}
    lu.assertEquals(rows[1].median, 7)
end
function described.setup()
    local _, rows = ran{setup = function(p) return 10 * p.n end,
        measure = function(_, state) return state end}
    lu.assertEquals(rows[1].median, 10)
end
function described.group()
    for _, case in ipairs{{{"n"}, 3}, {false, 6}} do
        local count = 0
        ran{group = case[1], setup = function() count = count + 1 end}
        lu.assertEquals(count, case[2])
    end
end
function described.check()
    local _, rows = ran{check = function() return 0.25 end}
    lu.assertEquals(rows[1].check, 0.25)
end
function described.where()
    lu.assertEquals(#define{where = function(p) return p.n > 1 end}:points(), 4)
end
function described.fixed()
    lu.assertEquals(define{fixed = {seed = 5}}:points()[1].seed, 5)
end
for name, value in pairs{flops = 1e6, bytes = function(p) return 8 * p.n end} do
    described[name] = function()
        local _, rows = ran{[name] = value}
        lu.assertEquals(rows[1][name], value == 1e6 and 1e6 or 8)
    end
end
function described.cost()
    lu.assertEquals(define{cost = function(p) return 9 * p.n end}:plan()[1].cost, 9)
end
function described.repeats()
    local _, rows = ran{repeats = 4}
    lu.assertEquals(#rows[1].samples, 4)
end
function described.stop()
    local _, rows = ran{repeats = "none", stop = {least = 7, most = 7}}
    lu.assertEquals(#rows[1].samples, 7)
    raises(function() define{repeats = 3, stop = {most = 9}} end,
        "repeats and stop both say how many samples", "stop = {most = 3}")
end
function described.warmup()
    for _, case in ipairs{{0, 3}, {"none", 4}, {2, 5}} do
        local _, _, calls = ran{axes = {n = {1}, kind = {"x"}}, repeats = 3,
            warmup = case[1]}
        lu.assertEquals(#calls, case[2])
    end
end
function described.cold()
    local _, rows = ran{cold = true, measure = work, axes = {n = {1}}}
    lu.assertTrue(rows[1].cold)
end
function described.hold()
    local _, rows = ran{hold = 0.002, measure = work, axes = {n = {1}}}
    lu.assertTrue(rows[1].held > 0)
    _, rows = ran{hold = 0.002}
    lu.assertStrContains(rows[1].message, "hold: measure returned seconds, and " ..
        "what is repeated is a function that it returns")
end
function described.timeout()
    raises(function() ran{timeout = 3} end, "a timeout ends the worker")
end
function described.order()
    lu.assertEquals(define{order = {"n", "kind"}}.axes, {"n", "kind"})
end
function described.version()
    lu.assertNotEquals(define{version = 2}.code.hash, define().code.hash)
end
function described.dir()
    local dir = new_dir()
    ran{dir = dir}
    lu.assertNotNil(journal.list(dir))
end

-- Over tables, pictures, reports; kept with the run, also as it changes.
function described.title()
    local dir, title = new_dir(), "Six \27 points"
    local e = ran{dir = dir, title = title}
    local shown = "Six \\027 points"
    for _, found in ipairs{e, experiment.open(dir)} do
        lu.assertStrContains(tostring(found), shown .. " (a): 6 points in ")
        lu.assertStrContains(tostring(found:table()), shown .. ": 6 points")
        lu.assertStrContains(tostring(found:plot{x = "n"}), shown .. ": time by n")
        lu.assertStrContains(tostring(found:plot{x = "n", title = "Mine"}), "Mine\n")
        lu.assertStrContains(tostring(experiment.compare(dir, found)),
            dir .. " -> " .. shown)
        local path = t.scratch(".html")
        found:report(path)
        local text = t.taken(path)
        lu.assertStrContains(text, "<h1>Six ␛ points</h1>")
        lu.assertStrContains(text, ">a · 6 points")
        path = t.scratch(".svg")
        found:plot{x = "n", file = path}
        lu.assertStrContains(t.taken(path), ">Six ␛ points: time by n and kind<")
    end
    ran{dir = dir, title = "Another"}
    lu.assertEquals(experiment.open(dir).title, "Another")
    ran{dir = dir}
    lu.assertNil(experiment.open(dir).title)
    raises(function() define{title = " "} end, "title is empty")
end

-- --- e:run{…} -----------------------------------------------------------------

local run = {}

function run.resume()
    local dir = new_dir()
    ran{dir = dir}
    for _, case in ipairs{{true, 0}, {false, 6}} do
        local _, _, calls = ran({dir = dir}, {resume = case[1]})
        lu.assertEquals(#calls, case[2])
    end
end
function run.workers()
    raises(function() ran({}, {workers = 2}) end, "processes could share")
end
function run.threads()
    raises(function() ran({}, {threads = 977}) end, "another number of threads")
end
function run.devices()
    local before = device()
    local _, rows = ran({}, {devices = {"cpu"}})
    lu.assertEquals(rows[1].device, "cpu")
    lu.assertEquals((device()), before)
    for _, case in ipairs{{{"cpu", "cpu"}, "devices names 2, and one process " ..
        "measures: workers = 2 takes as many"}, {{}, "devices is no list"},
        {{1}, "devices is no list"}, {{"abacus"}, "abacus"}} do
        raises(function() ran({}, {devices = case[1]}) end, case[2])
    end
end
function run.shard()
    local _, rows = ran({}, {shard = "1/3"})
    lu.assertEquals(#rows, 2)
end
function run.budget()
    local _, rows = ran({measure = function()
        journal.sleep(0.02)
        return 1
    end}, {budget = 0.01})
    lu.assertTrue(#rows < 6)
end
function run.only()
    local _, rows = ran({}, {only = function(p) return p.n == 4 end})
    lu.assertEquals(#rows, 2)
end
function run.retry_failed()
    local dir, bad = new_dir(), true
    local e = define{dir = dir, measure = function()
        if bad then error("no", 0) end
        return 1
    end}
    e:run{quiet = true}
    bad = false
    e:run{quiet = true, retry_failed = true}
    lu.assertEquals(e:results()[6].status, "ok")
end
function run.quiet()
    told()
    ran()
    lu.assertEquals(told(), "")
    ran({}, {quiet = false})
    lu.assertStrContains(told(), "a: 6 of 6 points done in 0:0")
end
function run.launcher()
    raises(function() ran({}, {launcher = "srun"}) end, "takes workers")
    raises(function() ran({}, {launcher = "srun", workers = 1}) end,
        "processes could share")
end
function run.slurm()
    raises(function() ran({}, {slurm = {time = 1}}) end, "is for launcher")
    raises(function()
        ran({}, {launcher = "srun", workers = 2, slurm = {output = "a"}})
    end, "slurm.output is settled")
end
function run.stale()
    for way, count in pairs{drop = 6, keep = 0} do
        local dir = new_dir()
        ran{dir = dir}
        raises(function() ran{dir = dir, version = 2} end, "version changed")
        local _, _, calls = ran({dir = dir, version = 2}, {stale = way})
        lu.assertEquals(#calls, count)
    end
end
function run.mix()
    local dir = new_dir()
    ran({dir = dir}, {only = function(p) return p.n == 1 end})
    local text = content(dir .. "/env-1.json")
    t.write(dir .. "/env-1.json", (text:gsub('"threads":%d+', '"threads":977')))
    raises(function() ran{dir = dir} end, "such times cannot be compared")
    lu.assertEquals(#ran({dir = dir}, {mix = true}):results(), 6)
end
function run.order()
    local _, _, calls = ran({}, {order = "given"})
    lu.assertEquals(table.concat(calls, " "), "x1 x2 x4 y1 y2 y4")
    _, _, calls = ran({cost = function(p) return p.n end}, {order = "longest"})
    lu.assertStrContains(calls[1], "4")
end
function run.each()
    local count = 0
    ran({}, {each = function() count = count + 1 end})
    lu.assertEquals(count, 6)
end

-- --- what shows them ------------------------------------------------------------

local shown = {table = {}, plot = {}, report = {}, csv = {}, jsonl = {},
    compare = {}}
local e = ran{flops = 1e9, repeats = 2, warmup = 0, measure = function(p)
    p.count = (p.count or 0) + 1
    return p.n * (p.kind == "x" and 1 or 2), {steps = 10 * p.n}
end}

-- With the option the text of the view has a part that it lacks without.
local function differs(view, option, value, part, more)
    shown[view][option] = function()
        local options = {}
        for k, v in pairs(more or {}) do options[k] = v end
        lu.assertNotStrContains(tostring(e[view](e, options)), part)
        options[option] = value
        lu.assertStrContains(tostring(e[view](e, options)), part)
    end
end

local cross = {rows = "kind", cols = "n"}
differs("table", "rows", "n", "  n  kind ")
differs("table", "cols", "n", "kind        1", {rows = "kind"})
differs("table", "value", "samples", "samples")
differs("table", "stat", "max", "max time")
differs("table", "where", {n = 2}, "a: 2 points")
differs("table", "best", true, "best", cross)
differs("table", "ratio_to", {kind = "y"}, "x y")
differs("plot", "x", "kind", "time by kind", {y = "time", where = {n = 1}})
differs("plot", "y", "steps", "steps by n")
differs("plot", "by", {}, "max time by n\n", {y = "time", stat = "max"})
function shown.plot.value()
    lu.assertStrContains(tostring(e:plot{x = "n", y = "kind", value = "steps"}),
        "steps by n and kind")
end
differs("plot", "stat", "min", "min time", {y = "time"})
differs("plot", "log", "", " 3  ", {y = "time"})
function shown.plot.kind()
    raises(function() e:plot{kind = "roofline"} end, "a roofline needs points")
end
differs("plot", "where", {kind = "x"}, "time by n\n", {y = "time"})
differs("plot", "title", "My own", "My own\n")
function shown.plot.width()
    local narrow, wide = tostring(e:plot{width = 30}), tostring(e:plot{width = 90})
    lu.assertTrue(#narrow < #wide)
end
function shown.plot.height()
    lu.assertTrue(#tostring(e:plot{height = 6}) < #tostring(e:plot{height = 20}))
end
function shown.plot.file()
    local path = t.scratch(".svg")
    lu.assertEquals(tostring(e:plot{file = path}), "wrote " .. path)
    lu.assertStrContains(t.taken(path), "<svg ")
end

local function page(options)
    local path = t.scratch(".html")
    e:report(path, options)
    return t.taken(path)
end
function shown.report.title()
    lu.assertStrContains(page{title = "My own"}, "<h1>My own</h1>")
end
function shown.report.where()
    lu.assertStrContains(page{where = {n = 1}}, "2 points · 2 good")
end
function shown.report.plots()
    lu.assertStrContains(page{plots = {{x = "n", y = "steps"}}}, "steps by n")
    lu.assertNotStrContains(page{plots = {}}, "<svg ")
    for _, case in ipairs{{{y = "time"}, "plots has y =, expected a list"},
        {{"time"}, 'plots has "time", expected a list'},
        {{{file = "a.svg"}}, "file is not used: the page has the charts"}} do
        raises(function() page{plots = case[1]} end, "report: ", case[2])
    end
end
for _, view in ipairs{"csv", "jsonl"} do
    shown[view].where = function()
        local path = t.scratch("." .. view)
        e[view](e, path, {where = {n = 1}})
        lu.assertEquals(select(2, t.taken(path):gsub("\n", "")),
            view == "csv" and 3 or 2)
    end
end
function shown.compare.threshold()
    lu.assertStrContains(tostring(experiment.compare(e, e, {threshold = 0.3})),
        "changes under 30 %")
end

-- --- the walk -------------------------------------------------------------------

TestEveryOption = {}

local function walk(line, effects)
    local names = completions(line)
    lu.assertTrue(#names > 0, line)
    for _, name in ipairs(names) do
        name = name:gsub("=$", "")
        lu.assertNotNil(effects[name], line .. name .. " has no test")
        local ok, problem = pcall(effects[name])
        lu.assertTrue(ok, line .. name .. ": " .. tostring(problem and
            problem.msg or problem))
    end
end

function TestEveryOption:setUp() walked = e end
function TestEveryOption:tearDown() walked = nil end

function TestEveryOption:test_of_experiment() walk("experiment{", described) end
function TestEveryOption:test_of_run() walk("walked:run{", run) end
function TestEveryOption:test_of_table() walk("walked:table{", shown.table) end
function TestEveryOption:test_of_plot() walk("walked:plot{", shown.plot) end
function TestEveryOption:test_of_report()
    walk("walked:report('f.html', {", shown.report)
end
function TestEveryOption:test_of_files()
    walk("walked:csv('f.csv', {", shown.csv)
    walk("walked:jsonl('f.jsonl', {", shown.jsonl)
end
function TestEveryOption:test_of_compare()
    walk("experiment.compare(a, b, {", shown.compare)
end

function TestEveryOption:test_arguments_that_have_no_use()
    for _, name in ipairs{"points", "plan", "results", "environments"} do
        raises(function() e[name](e, {where = {n = 1}}) end,
            name .. ": takes no arguments; e:table{where = …} chooses rows")
    end
    raises(function() e:table{where = {n = {1, 2}}} end,
        "where: n is a table, expected one value; a function chooses several")
end

-- What shows an experiment is shown in other ways by its own methods, with the
-- rows that it has.
function TestEveryOption:test_what_shows_can_be_shown()
    local one = e:table{where = {n = 1}}
    lu.assertEquals({#one, #one:results(), one.name}, {2, 6, "a"})
    lu.assertStrContains(tostring(one:table()), "a: 2 points")
    lu.assertStrContains(tostring(one:plot{x = "n"}:table()), "a: 2 points")
    lu.assertEquals(#experiment.compare(one, e), 2)
    lu.assertStrContains(tostring(e:plot{x = "n"}:table()), "a: 6 points")
    raises(function() e.results({}) end, "is called with a colon")
end

-- --- what was done before --------------------------------------------------------

TestBefore = {}

local function one(p) return p.n == 1 end

function TestBefore:test_is_said()
    local dir = new_dir()
    told()
    ran({dir = dir}, {quiet = false, only = one})
    lu.assertNotStrContains(told(), "before this run")
    local again = ran({dir = dir}, {quiet = false})
    lu.assertEquals(told():gsub("0:0%d  .*", "0:00"),
        "a: 2 of 6 points were done before this run, 4 to do\n" ..
        "a: 6 of 6 points done (2 before this run) in 0:00")
    local path = t.scratch(".html")
    again:report(path)
    lu.assertStrContains(t.taken(path), "6 good · 2 of them done before this run")
    again = ran({dir = dir}, {quiet = false})
    lu.assertEquals(told():gsub("0:0%d  .*", "0:00"),
        "a: 6 of 6 points done (all before this run) in 0:00")
    again:report(path)
    lu.assertStrContains(t.taken(path), "6 good · all done before this run")
    again:report(path, {where = {n = 1}})
    lu.assertStrContains(t.taken(path), "2 good · measured in")
end

function TestBefore:test_beside_points_that_failed()
    local dir = new_dir()
    local function fails() error("no", 0) end
    told()
    ran({dir = dir, measure = fails}, {only = one})
    ran({dir = dir, measure = fails}, {quiet = false, only = one})
    lu.assertStrContains(told(), "a: 2 of 2 points done (all before this run, 2 " ..
        "failed; run{retry_failed = true} does them again) in ")
end

local code = lu.LuaUnit.run("-o", "tap")
os.execute("rm -rf '" .. root .. "'")
os.exit(code)
