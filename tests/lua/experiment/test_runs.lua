-- Experiments: what a run directory keeps, what a rerun does, what is refused.
local lu = require "luaunit"
local t = require "common"
local raises, content, write = t.raises, t.content, t.write
local journal = require "lumat.journal"
local identity = require "lumat.code_hash"
local root, new_dir = t.folders()

local function files(dir, pattern)
    local list = {}
    for name in pairs(journal.list(dir)) do
        if name:find(pattern) then list[#list + 1] = dir .. "/" .. name end
    end
    table.sort(list)
    return list
end

-- An experiment that notes the points it measures.
local function counting(dir, more)
    local seen = {}
    local spec = {name = "a", dir = dir, axes = {n = {1, 2, 3, 4}},
        repeats = 1, measure = function(p)
            seen[#seen + 1] = p.n
            return p.n
        end}
    for key, value in pairs(more or {}) do spec[key] = value end
    local e = experiment(spec)
    return e, function(options)
        options = options or {}
        options.quiet = true
        for i = 1, #seen do seen[i] = nil end
        e:run(options)
        table.sort(seen)
        return table.concat(seen, " ")
    end
end

TestRuns = {}

function TestRuns:test_a_rerun_does_what_is_missing()
    local dir = new_dir()
    local e, run = counting(dir)
    lu.assertEquals(#e:results(), 0)
    lu.assertEquals(run{only = function(p) return p.n % 2 == 0 end}, "2 4")
    lu.assertEquals(run(), "1 3")
    lu.assertEquals(run(), "")
    local rows = e:results()
    lu.assertEquals(#rows, 4)
    for i, row in ipairs(rows) do
        lu.assertEquals(row.p, {n = i})
        lu.assertEquals(row.status, "ok")
        lu.assertEquals(row.median, i)
        lu.assertEquals(row.env, 1)
    end
    local _, again = counting(dir, {axes = {n = {4, 5, 1}}})
    lu.assertEquals(again(), "5")
    lu.assertEquals(run{resume = false}, "1 2 3 4")
    lu.assertEquals(run(), "")
end

function TestRuns:test_shards_are_parts()
    local axes = {n = experiment.range(1, 22)}
    local all = {}
    for i = 1, 4 do
        local _, run = counting(new_dir(), {axes = axes})
        local part = run{shard = i .. "/4"}
        local size = select(2, part:gsub("%d+", function(n)
            lu.assertNil(all[n])
            all[n] = true
        end))
        lu.assertTrue(size == 5 or size == 6)
    end
    local _, run = counting(new_dir(), {axes = axes})
    for _, shard in ipairs{"0/4", "5/4", "x", "1"} do
        raises(function() run{shard = shard} end, "shard is ")
    end
end

function TestRuns:test_a_budget_ends_a_run()
    local e, run = counting(new_dir(), {measure = function()
        journal.sleep(0.03)
        return 1
    end})
    run{budget = 0.05}
    lu.assertTrue(#e:results() >= 1 and #e:results() < 4)
    run{budget = "1m"}
    lu.assertEquals(#e:results(), 4)
    for _, budget in ipairs{"soon", "10x", "-1", 0} do
        raises(function() run{budget = budget} end, "budget is ")
    end
end

function TestRuns:test_failures_do_not_stop_the_rest()
    local bad = true
    local e, run = counting(new_dir(), {measure = function(p)
        if not bad then return 1 end
        if p.n == 1 then error("no good") end
        if p.n == 2 then return 0 / 0 end
        if p.n == 3 then return end
        return 1
    end})
    run()
    local rows = e:results()
    lu.assertStrContains(rows[1].message, "no good")
    lu.assertStrContains(rows[2].message, "NaN")
    lu.assertStrContains(rows[3].message, "nothing")
    for i, status in ipairs{"failed", "failed", "failed", "ok"} do
        lu.assertEquals(rows[i].status, status)
    end
    lu.assertStrContains(tostring(e:plan()), "1 done, 3 failed")
    bad = false
    run()
    lu.assertEquals(e:results()[1].status, "failed")
    run{retry_failed = true}
    for _, row in ipairs(e:results()) do lu.assertEquals(row.status, "ok") end
end

-- Rates are of the work as it is described now, not when it was measured.
function TestRuns:test_work_that_is_described_later()
    local dir = new_dir()
    local function rates(more)
        local e, run = counting(dir, more)
        run()
        local words = {}
        for i, row in ipairs(e:results()) do
            words[i] = tostring(row.flops or row.bytes)
        end
        return table.concat(words, " "), e
    end
    lu.assertEquals(rates(), "nil nil nil nil")
    lu.assertEquals(rates{bytes = 8}, "8 8 8 8")
    local words, e = rates{flops = function(p) return 10 * p.n end}
    lu.assertEquals(words, "10 20 30 40")
    lu.assertStrContains(tostring(e:table{value = "gflops"}), "1e-08")
    lu.assertEquals(rates{flops = function(p, state) return state.no end},
        "nil nil nil nil")
end

function TestRuns:test_the_state_and_a_changed_parameter()
    local e, run = counting(new_dir(), {
        setup = function(p) return {twice = 2 * p.n} end,
        measure = function(p, state)
            p.n = 0
            return state.twice
        end})
    run()
    lu.assertEquals(e:results()[3].median, 6)
    lu.assertEquals(e:results()[3].p.n, 3)
end

function TestRuns:test_opened_from_its_folder()
    local dir = new_dir()
    local _, run = counting(dir, {axes = {n = {3, 1, 2}, k = {"b", "a"}}})
    run()
    local e = experiment.open(dir .. "/")
    lu.assertEquals(e.name, "a")
    lu.assertEquals(e.axes, {"k", "n"})
    local words = {}
    for i, row in ipairs(e:results()) do words[i] = row.p.k .. row.p.n end
    lu.assertEquals(table.concat(words, " "), "b3 b1 b2 a3 a1 a2")
    lu.assertEquals(e:environments()[1].device, device():match("^%a+"))
    raises(function() e:run() end, "run the script that made it")
    raises(function() e.run{} end, "run: is called with a colon, as in e:run()")
    raises(function() experiment.open(root .. "/none") end,
        "is no run directory")
end

function TestRuns:test_folders_of_others_stay_as_they_are()
    local dir = new_dir()
    journal.make_folder(dir)
    write(dir .. "/mine", "text")
    local _, run = counting(dir)
    raises(run, "has files, such as mine, and is no run directory")
    lu.assertNil(journal.list(dir .. "/claims"))
end

-- Without a directory nothing is written, synced or claimed.
TestPassing = {}

local function of_passing(more)
    local spec = {name = "a", dir = false, axes = {n = {1, 2}}, repeats = 1,
        measure = function() return 1 end}
    for key, value in pairs(more or {}) do spec[key] = value end
    return experiment(spec)
end

local doors = {"create", "found", "make_folder", "join", "is_writable", "probe"}
local really = {}

function TestPassing:setUp()
    for _, name in ipairs(doors) do
        really[name] = journal[name]
        journal[name] = function() error(name .. " is called", 0) end
    end
end

function TestPassing:tearDown()
    for _, name in ipairs(doors) do journal[name] = really[name] end
end

function TestPassing:test_a_run_in_memory()
    local told = {}
    local e, run = counting(false, {axes = {n = {1, 2, 3}, k = {"a", "b"}},
        setup = function(p) return p.n end, check = function() return 1e-7 end,
        measure = function(p)
            if p.n == 2 then error("no good", 0) end
            return p.n, {twice = 2 * p.n}
        end})
    run{each = function(row) told[#told + 1] = row.p.n end}
    local rows = e:results()
    lu.assertEquals(#rows, 6)
    lu.assertEquals(#told, 6)
    lu.assertEquals({rows[1].p, rows[1].median, rows[1].values.twice,
        rows[2].message}, {{n = 1, k = "a"}, 1, 2, "measure: no good"})
    lu.assertEquals(e:environments()[rows[1].env].lumat, journal.version)
    rows[1].p.n = 9
    lu.assertEquals(e:points()[1].n, 1)
    lu.assertStrContains(tostring(e:plan()), "6 points: 4 done, 2 failed")
    run() -- everything anew
    lu.assertEquals(e:results()[1].p.n, 1)
    run{only = function(p) return p.n == 3 end, shard = "1/1", resume = false,
        retry_failed = true}
    lu.assertEquals(#e:results(), 2)
    lu.assertStrContains(tostring(e:table{rows = "n", cols = "k"}), "3.000 s")
end

function TestPassing:test_what_takes_other_processes()
    for _, options in ipairs{{workers = 2}, {threads = 977}} do
        raises(function() of_passing():run(options) end, "dir = false keeps ",
            "dir = names a folder")
    end
    raises(function() of_passing{timeout = 1}:run() end, "a timeout ends the worker")
    of_passing():run{workers = 1, quiet = true}
end

function TestPassing:test_time()
    local slow, best = os.getenv("LUMAT_SLOW") and 20 or 1, math.huge
    for _ = 1, 5 do
        local _, run = counting(false, {axes = {n = experiment.range(1, 1000)}})
        local start = os.clock() -- whatever else runs
        run()
        best = math.min(best, os.clock() - start) -- of 1000: ms of one
    end
    print(("# %.3g ms a point that is kept nowhere"):format(best))
    lu.assertTrue(best < 0.1 * slow, best .. " ms a point")
end

TestChanges = {}

local function of_code(dir, x, more)
    local spec = {name = "a", dir = dir, axes = {n = {1, 2}}, repeats = 1,
        measure = function() return x end}
    for key, value in pairs(more or {}) do spec[key] = value end
    return experiment(spec)
end

function TestChanges:test_another_measure_is_refused()
    local dir = new_dir()
    of_code(dir, 1):run{quiet = true}
    local e = of_code(dir, 2)
    local message = raises(function() e:run{quiet = true} end,
        "measure's x changed since 2", "there are 2 points in " .. dir,
        'run{stale = "drop"}', 'run{stale = "keep"}', "test_runs.lua:")
    lu.assertStrContains(tostring(e:plan()), "2 stale")
    lu.assertEquals(#e:results(), 0)
    lu.assertEquals(#of_code(dir, 1):results(), 2)
    e:run{quiet = true, stale = "drop"}
    lu.assertEquals(e:results()[1].median, 2)
    lu.assertEquals(#of_code(dir, 1):results(), 0)
    lu.assertNotNil(message)
end

function TestChanges:test_old_points_can_count()
    local dir = new_dir()
    of_code(dir, 1):run{quiet = true}
    local e = of_code(dir, 2, {axes = {n = {1, 2, 3}}})
    e:run{quiet = true, stale = "keep"}
    local rows = e:results()
    lu.assertEquals({rows[1].median, rows[2].median, rows[3].median}, {1, 1, 2})
    e:run{quiet = true}
    lu.assertEquals(#experiment.open(dir):results(), 3)
end

function TestChanges:test_versions()
    local dir = new_dir()
    of_code(dir, 1, {version = 1}):run{quiet = true}
    raises(function() of_code(dir, 1, {version = 2}):run{quiet = true} end,
        "version changed since")
    raises(function() of_code(dir, 1, {check = function() return 0 end})
        :run{quiet = true} end, "check changed since")
end

function TestChanges:test_another_experiment_or_folder()
    local dir = new_dir()
    of_code(dir, 1):run{quiet = true}
    raises(function() of_code(dir, 1, {name = "b"}):run{quiet = true} end,
        dir .. ' has the runs of "a", not of "b"')
    write(dir .. "/experiment.json", '{"format":2,"name":"a","lumat":"9"}')
    raises(function() of_code(dir, 1):run{quiet = true} end,
        "of another version of lumat (9)")
    write(dir .. "/experiment.json", "{")
    raises(function() of_code(dir, 1):run{quiet = true} end, "is damaged")
    local other = new_dir()
    journal.make_folder(other)
    write(other .. "/thesis.txt", "all my work")
    raises(function() of_code(other, 1):run{quiet = true} end,
        "has files, such as thesis.txt")
    raises(function() of_code("/proc/nowhere", 1):run{quiet = true} end,
        "cannot write in /proc/nowhere")
    raises(function() of_code(other .. "/thesis.txt", 1):run{quiet = true} end,
        "Not a directory")
end

function TestChanges:test_another_machine()
    local dir = new_dir()
    local e = of_code(dir, 1)
    e:run{quiet = true, only = function(p) return p.n == 1 end}
    local env = content(dir .. "/env-1.json")
    write(dir .. "/env-1.json", (env:gsub('"threads":%d+', '"threads":77')))
    raises(function() e:run{quiet = true} end, "1 point in " .. dir ..
        " was measured with 77 threads, this run has ",
        "such times cannot be compared", "run{threads = 77} takes as many",
        "run{mix = true}", "run{resume = false}")
    e:run{quiet = true, mix = true}
    lu.assertEquals(e:results()[1].env, 1)
    lu.assertEquals(e:results()[2].env, 2)
    e:run{quiet = true}
    write(dir .. "/env-2.json", (content(dir .. "/env-2.json"):gsub(
        '"device":"%a+"', '"device":"abacus"')))
    write(dir .. "/env-1.json", (env:gsub('"device":"%a+"',
        '"device":"abacus","driver":"1"')))
    e:run{quiet = true} -- nothing is left to measure
    e = of_code(dir, 1, {axes = {n = {1, 2, 3}}})
    raises(function() e:run{quiet = true} end, "2 points in " .. dir ..
        " were measured elsewhere (device was abacus, is ")
end

-- What binds are the rows that are there: measured all anew, they are of where
-- that was, and the former place is another one.
function TestChanges:test_anew_on_another_machine()
    local dir = new_dir()
    local e = of_code(dir, 1)
    local first = {quiet = true, only = function(p) return p.n == 1 end}
    e:run(first)
    local env = content(dir .. "/env-1.json")
    write(dir .. "/env-1.json", (env:gsub('"threads":%d+', '"threads":77')))
    first.resume = false
    e:run(first)
    lu.assertEquals(e:results()[1].env, 2)
    e:run{quiet = true}
    lu.assertEquals(e:results()[2].env, 2)
    write(dir .. "/env-1.json", env)
    write(dir .. "/env-2.json", (content(dir .. "/env-2.json"):gsub(
        '"threads":%d+', '"threads":77')))
    e:run{quiet = true} -- nothing is left to measure
    e = of_code(dir, 1, {axes = {n = {1, 2, 3}}})
    raises(function() e:run{quiet = true} end, "2 points in ",
        "77 threads, this run has ")
end

function TestChanges:test_begun_elsewhere()
    local dir = new_dir()
    local e = of_code(dir, 1)
    pcall(e.run, e, {quiet = true, each = function() error("no", 0) end})
    for _, file in ipairs(files(dir, "^j%-")) do os.remove(file) end
    local env = content(dir .. "/env-1.json")
    write(dir .. "/env-1.json", (env:gsub('"threads":%d+', '"threads":77')))
    raises(function() e:run{quiet = true} end, "the run in " .. dir ..
        " began with 77 threads", "run{resume = false} begins anew")
end

function TestChanges:test_options()
    local e = of_code(new_dir(), 1)
    raises(function() e:run{worker = 2} end, "did you mean 'workers'?")
    raises(function() e:run{workers = 0} end, "workers is 0")
    raises(function() e:run{workers = 1.5} end, "workers is 1.5")
    raises(function() e:run{threads = 0} end, "threads is 0")
    raises(function() e:run{threads = 2.5} end, "threads is 2.5")
    raises(function() e:run{stale = "yes"} end, '"drop" or "keep"')
    raises(function() e:run{only = function() end} end, "only leaves none")
    raises(function() e:run(4) end, "the options are 4")
end

TestJournal = {}

local function last_journal(dir)
    local list = files(dir, "^j%-")
    return list[#list]
end

function TestJournal:test_a_torn_last_line_is_dropped()
    local dir = new_dir()
    local e, run = counting(dir)
    run()
    local path = last_journal(dir)
    local text = content(path)
    -- at every length of the last line, and with zeros in its place
    local last = text:match("\n([^\n]*\n)$")
    for _, cut in ipairs{1, 2, 9, 10, 40, #last - 1} do
        write(path, text:sub(1, -cut - 1))
        lu.assertEquals(#experiment.open(dir):results(), 3, cut)
    end
    write(path, text:sub(1, -#last - 1) .. ("\0"):rep(#last))
    lu.assertEquals(#experiment.open(dir):results(), 3)
    write(path, text:sub(1, -30))
    local _, again = counting(dir)
    lu.assertEquals(#again():gsub("%s", ""), 1)
    lu.assertEquals(#experiment.open(dir):results(), 4)
    lu.assertEquals(#e:results(), 4)
end

function TestJournal:test_a_damaged_middle_is_refused()
    local dir = new_dir()
    local e, run = counting(dir)
    run()
    local path = last_journal(dir)
    local text = content(path)
    local damaged = text:gsub('"status":"ok"', '"status":"OK"', 1)
    write(path, damaged)
    for _, f in ipairs{function() experiment.open(dir) end,
        function() counting(dir):run{quiet = true} end} do
        raises(f, path .. ":2: this line is damaged")
    end
    lu.assertEquals(content(path), damaged)
    os.remove(path)
    lu.assertEquals(run(), "1 2 3 4")
    lu.assertEquals(#e:results(), 4)
end

function TestJournal:test_every_damaged_byte_is_found()
    local dir = new_dir()
    local _, run = counting(dir, {axes = {n = {1, 2}}})
    run()
    local path = last_journal(dir)
    local text = content(path)
    local _, first = text:find("\n", 1, true)
    local _, second = text:find("\n", first + 1, true)
    for at = first + 1, second - 1 do
        local byte = text:byte(at)
        write(path, text:sub(1, at - 1) .. string.char(byte ~ 1) ..
            text:sub(at + 1))
        raises(function() experiment.open(dir) end, ":2: this line is damaged")
    end
    write(path, text)
    lu.assertEquals(#experiment.open(dir):results(), 2)
end

function TestJournal:test_a_removed_folder()
    local dir = new_dir()
    local e = of_code(dir, 1, {axes = {n = {1, 2, 3}}, measure = function(p)
        if p.n == 2 then os.execute("rm -r '" .. dir .. "'") end
        return 1
    end})
    raises(function() e:run{quiet = true, order = "given"} end, "cannot write in " .. dir)
end

function TestJournal:test_json()
    local values = {1, 1.0, -0.5, 2 ^ 60, math.mininteger, 0.1, "a\"\\\n\0é",
        true, {}, {1, {2}}, {a = {b = "c"}}, {["a\0b"] = 1, a = 2}, math.huge,
        -math.huge}
    for _, value in ipairs(values) do
        local text = journal.encode(value)
        lu.assertEquals(journal.decode(text), value, text)
        lu.assertEquals(math.type(journal.decode(text)), math.type(value))
    end
    local nan = journal.decode(journal.encode(0 / 0))
    lu.assertTrue(nan ~= nan)
    lu.assertEquals(journal.encode({0 / 0, 1}, true), "[null,1]")
    lu.assertEquals(journal.decode('"\\u00e9\\ud83d\\ude00"'), "é😀")
    for _, text in ipairs{"", "{", "[1", "[1,]", '{"a"}', '"a', "1 2", "nul",
        "[1}", '"\\x"', '"\\ud83dx"', ("["):rep(100), "0x10", "+-1"} do
        lu.assertNil((journal.decode(text)), text)
    end
end

-- Milliseconds of computing a point costs beside its measure and the disk: in
-- memory, where there is a folder for that.
local function cost_of_a_point()
    local best = math.huge
    for i = 1, 3 do
        local dir = journal.is_writable("/dev/shm") and
            "/dev/shm/lumat" .. root:gsub("/", "-") .. i or new_dir()
        local _, run = counting(dir, {axes = {n = experiment.range(1, 500)}})
        local start = os.clock()
        run()
        best = math.min(best, (os.clock() - start) / 500 * 1e3)
        os.execute("rm -rf '" .. dir .. "'")
    end
    return best
end

-- Writes rows for all points but the first, as another process would.
local function fill(e, dir)
    local text = content(last_journal(dir))
    local row = journal.decode(text:match("\n([^\n]*)\t"))
    local file = assert(io.open(dir .. "/j-others.jsonl", "wb"))
    row.samples = {}
    for i = 1, 20 do row.samples[i] = 1 / i end
    local points = e:points()
    for i = 2, #points do
        row.p, row.key = points[i], identity.key(points[i], e.code.hash)
        local line = journal.encode(row)
        file:write(line, "\t", journal.checksum(line), "\n")
    end
    file:close()
end

function TestJournal:test_time()
    local slow = os.getenv("LUMAT_SLOW") and 20 or 1
    local dir = new_dir()
    local e, run = counting(dir, {axes = {n = experiment.range(1, 10000)}})
    run{only = function(p) return p.n == 1 end}
    fill(e, dir)
    local best = math.huge
    for _ = 1, 3 do
        local start = os.clock()
        local opened = experiment.open(dir)
        best = math.min(best, os.clock() - start)
        lu.assertEquals(#opened:results(), 10000)
    end
    lu.assertEquals(#e:results(), 10000)
    local each = cost_of_a_point()
    print(("# %.3g ms a point, %.3g s to open 10000"):format(each, best))
    lu.assertTrue(each < 1 * slow, each .. " ms a point")
    lu.assertTrue(best < 1 * slow, best .. " s to open")
end

local code = lu.LuaUnit.run("-o", "tap")
os.execute("rm -rf '" .. root .. "'")
os.exit(code)
