-- Points that share what setup makes: which those are, that setup runs once
-- for them and their samples take turns, what is written when.
local lu = require "luaunit"
local t = require "common"
local raises = t.raises
local journal = require "lumat.journal"
local identity = require "lumat.code_hash"
local root, new_dir = t.folders()

-- Runs an experiment over n and kind; it, and what setup and measure saw.
local function run(more, options)
    local seen = {}
    local function see(text) seen[#seen + 1] = text end
    local spec = {name = "a", dir = new_dir(), order = {"n", "kind"},
        axes = {n = {1, 2}, kind = {"x", "y", "z"}}, repeats = 2, warmup = 0,
        setup = function(p)
            see("setup" .. p.n)
            return {n = p.n}
        end,
        measure = function(p, s)
            see(p.kind .. s.n)
            return p.n
        end}
    for key, value in pairs(more(see)) do spec[key] = value end
    if spec.stop then spec.repeats = nil end
    if spec.order == false then spec.order = nil end
    local e = experiment(spec)
    options = options or {}
    options.quiet, options.order = true, options.order or "given"
    e:run(options)
    return e, table.concat(seen, " "), seen
end

local function nothing() return {} end

TestReads = {}

local function reads(setup)
    local found = identity.reads(setup, "setup")
    if not found then return "?" end
    local names = {}
    for name in pairs(found) do names[#names + 1] = name end
    table.sort(names)
    return table.concat(names, " ")
end

function TestReads:test_what_the_text_of_a_function_reads()
    local q = {p = 1}
    lu.assertEquals(reads(function(p) return rand(p.n, p.m) end), "m n")
    lu.assertEquals(reads(function(x)
        -- x alone is a comment's
        return function() return x.a .. x.b .. "p.c" end
    end), "a b")
    lu.assertEquals(reads(function() return q end), "")
    lu.assertEquals(reads(function(p) return q.p + p.k + q . p end), "k")
    lu.assertEquals(reads(function(p) return p.n == 1 end), "n")
end

function TestReads:test_other_uses_may_read_anything()
    local q = {}
    lu.assertEquals(reads(function(p) return pairs(p) end), "?")
    lu.assertEquals(reads(function(p) return {p = p} end), "?")
    lu.assertEquals(reads(function(p) return p[q] end), "?")
    lu.assertEquals(reads(function(p) p.n = 1 end), "?")
    lu.assertEquals(reads(function(...) return ... end), "?")
    lu.assertEquals(reads(function(p) return "a" .. p .. p.n end), "?")
    function q:setup(p) return p.n, self end
    lu.assertEquals(reads(q.setup), "?")
    lu.assertEquals(reads(print), "?")
end

TestGroups = {}

-- In turns whose order is another one each time.
function TestGroups:test_one_setup_and_samples_in_turn()
    local e, _, seen = run(function() return {repeats = 20} end)
    local turns = {}
    lu.assertEquals(#seen, 2 * 61)
    for i = 0, 39 do
        local at = i // 20 * 61 + 2 + i % 20 * 3
        if i % 20 == 0 then
            lu.assertEquals(seen[at - 1], "setup" .. i // 20 + 1)
        end
        local turn = table.concat(seen, " ", at, at + 2)
        turns[turn] = true
        local sorted = {table.unpack(seen, at, at + 2)}
        table.sort(sorted)
        local n = i // 20 + 1
        lu.assertEquals(table.concat(sorted, " "),
            ("x%d y%d z%d"):format(n, n, n))
    end
    local count_of = 0
    for _ in pairs(turns) do count_of = count_of + 1 end
    lu.assertTrue(count_of > 6)
    local rows = e:results()
    lu.assertEquals(#rows, 6)
    for _, row in ipairs(rows) do
        lu.assertEquals({row.status, row.median}, {"ok", row.p.n})
    end
end

-- Setup is given what its points have in common, under any order and part.
function TestGroups:test_named_groups()
    local _, seen = run(function(see)
        return {group = "kind", fixed = {n0 = 7}, setup = function(p)
            see("setup" .. p.kind .. p.n0)
            return {n = "-"}
        end}
    end)
    lu.assertEquals(seen, "setupx7 x- x- x- x- setupy7 y- y- y- y- " ..
        "setupz7 z- z- z- z-")
    _, seen = run(function() return {group = false} end)
    lu.assertEquals(select(2, seen:gsub("setup", "")), 6)
    _, seen = run(nothing, {only = function(p) return p.kind ~= "y" end})
    lu.assertEquals(seen:gsub("[xz]", "_"),
        "setup1 _1 _1 _1 _1 setup2 _2 _2 _2 _2")
    _, seen = run(function(see)
        return {group = {}, setup = function(p)
            see("setup")
            return {n = p.kind or 0}
        end}
    end)
    lu.assertEquals(seen, "setup")
end

function TestGroups:test_a_parameter_that_differs_cannot_be_read()
    local e = run(function()
        return {group = {"n"}, setup = function(p)
            return {n = p[p.n == 1 and "kind" or "n"]}
        end}
    end)
    local rows = e:results()
    lu.assertEquals(#rows, 6)
    for i, row in ipairs(rows) do
        lu.assertEquals(row.status, i <= 3 and "failed" or "ok")
    end
    lu.assertStrContains(rows[1].message, "setup: it reads p.kind, in which " ..
        "the points of a group differ")
    raises(function() run(function() return {group = "kin"} end) end,
        'group names "kin", which is no axis: did you mean kind?')
    raises(function() run(function() return {group = true} end) end,
        "group is true")
end

function TestGroups:test_a_setup_that_fails()
    local bad = true
    local e = run(function()
        return {setup = function(p)
            if p.n == 1 and bad then error("no data", 0) end
            return {n = p.n}
        end}
    end)
    for i, row in ipairs(e:results()) do
        lu.assertEquals({row.status, row.message}, i <= 3 and
            {"failed", "setup: no data"} or {"ok"})
    end
    bad = false
    e:run{quiet = true, retry_failed = true}
    for _, row in ipairs(e:results()) do lu.assertEquals(row.status, "ok") end
end

-- What a point adds to the state is not seen by the others.
function TestGroups:test_fields_of_the_state_are_each_points_own()
    local e = run(function()
        return {measure = function(p, s)
            s.first = s.first or p.kind
            s.n = s.n + 1
            return s.first == p.kind and s.n <= 4 and 1 or 0 / 0
        end}
    end)
    for _, row in ipairs(e:results()) do lu.assertEquals(row.status, "ok") end
end

-- A point is written when it has its samples, while others still take theirs.
function TestGroups:test_rows_are_written_one_by_one()
    local dir, known = new_dir(), nil
    local e = run(function()
        return {dir = dir, stop = function(samples)
            return #samples >= 3
        end, measure = function(p, s)
            s.count = (s.count or 0) + 1
            if p.kind == "y" and s.count == 2 then return end
            if p.kind == "z" and s.count == 3 then
                known = #experiment.open(dir):results()
            end
            if p.kind == "z" and p.n == 2 and s.count == 3 then
                t.interrupt()
            end
            return p.n
        end}
    end, {only = function(p) return p.n == 1 end})
    lu.assertEquals({#e:results(), known}, {3, 1})
    lu.assertEquals(e:results()[2].status, "failed")
    raises(function() e:run{quiet = true, order = "given"} end, "stopped")
    local rows = experiment.open(dir):results()
    lu.assertEquals(#rows, 4)
    lu.assertEquals({rows[4].p.kind, rows[4].status}, {"y", "failed"})
    lu.assertEquals(journal.list(dir .. "/claims"), {})
end

-- How many groups' states are alive at a time where one takes so long.
local function states_alive(seconds)
    local alive = setmetatable({}, {__mode = "k"})
    local most = 0
    run(function()
        return {axes = {n = experiment.range(1, 5), kind = {"x", "y"}},
            setup = function(p)
                local all = 1
                for _ in pairs(alive) do all = all + 1 end
                most = math.max(most, all)
                local state = {n = p.n}
                alive[state] = true
                journal.sleep(seconds)
                return state
            end}
    end)
    return most
end

-- Never two once they are worth a look, which on a machine that does something
-- else takes longer.
function TestGroups:test_one_state_at_a_time()
    local most
    for _, seconds in ipairs{0.1, 0.3, 1} do
        most = states_alive(seconds)
        if most == 1 then break end
    end
    lu.assertEquals(most, 1)
end

-- Of groups that the text of setup makes no more than 16 points are at work.
function TestGroups:test_large_groups_are_divided()
    local _, seen = run(function(see)
        return {axes = {n = experiment.range(1, 40), kind = {"x"}},
            setup = function()
                see("setup")
                return {n = 0}
            end}
    end)
    lu.assertEquals(select(2, seen:gsub("setup", "")), 3)
end

function TestGroups:test_shards_and_budgets_take_whole_groups()
    local setups = {}
    for i = 1, 2 do
        local _, _, seen = run(nothing, {shard = i .. "/2"})
        lu.assertEquals(#seen, 7)
        setups[seen[1]] = true
    end
    lu.assertEquals(setups, {setup1 = true, setup2 = true})
    local e = run(function()
        return {measure = function()
            journal.sleep(0.02)
            return 1
        end}
    end, {budget = 0.01})
    lu.assertEquals(#e:results(), 3)
end

TestMore = {}

-- The options that groups are measured by in the benchmarks.
function TestMore:test_points_that_measure_leaves_out()
    local e = run(function()
        return {measure = function(p)
            if p.kind == "y" then return false, "not made for this" end
            return p.n, {half = p.n / 2, word = "w"}
        end}
    end)
    local rows = e:results()
    lu.assertEquals({rows[2].status, rows[2].message},
        {"skipped", "not made for this"})
    lu.assertEquals(rows[4].values, {half = 1.0, word = "w"})
    lu.assertStrContains(tostring(e:plan()), "4 done, 2 skipped")
    lu.assertStrContains(tostring(e:table()), "SKIPPED")
    local before = rows[2].time
    e:run{quiet = true, retry_failed = true}
    lu.assertEquals(e:results()[2].time, before)
end

-- Under a load that lasts: twice, one after the other, after a start of it.
function TestMore:test_held_times_and_ratios()
    local calls = {x = 0, y = 0, z = 0}
    local e, _, seen = run(function(see)
        return {hold = function(p) return p.kind ~= "z" and 0.02 end,
            flops = 1e9, axes = {n = {1}, kind = {"x", "y", "z"}},
            measure = function(p)
                return function()
                    calls[p.kind] = calls[p.kind] + 1
                    if calls[p.kind] > 3 then see(p.kind) end
                    journal.sleep(0.001)
                end
            end}
    end)
    local rows = e:results()
    for i = 1, 2 do
        lu.assertTrue(rows[i].held > 0.0009 and rows[i].held < 0.01)
        lu.assertTrue(calls[rows[i].p.kind] >= 3 + 20)
    end
    lu.assertNil(rows[3].held)
    local turns = {}
    for i = 2, #seen do
        if seen[i] ~= seen[i - 1] then turns[#turns + 1] = seen[i] end
    end
    lu.assertStrContains(table.concat(turns), "xyxy")
    local text = tostring(e:table{ratio_to = {kind = "y"}})
    lu.assertStrContains(text, "held rate")
    lu.assertStrContains(text, "x y")
    local found = e:table{ratio_to = {kind = "y"}}
    lu.assertEquals(found[2].values["x y"], 1.0)
    lu.assertAlmostEquals(found[1].values["x y"], rows[2].held / rows[1].held,
        1e-9)
    lu.assertNil(e:results()[1].values)
    lu.assertStrContains(tostring(e:table{rows = "n", cols = "kind",
        ratio_to = {kind = "x"}}), "x x")
    raises(function() e:table{ratio_to = {kin = "x"}} end, "kind")
    raises(function() e:table{ratio_to = {kind = "w"}} end,
        "no point has kind=w")
    raises(function() e:table{ratio_to = {}} end, "ratio_to is")
end

function TestMore:test_each_row_as_it_comes()
    local told = {}
    local function tell(row) told[#told + 1] = row.p.n .. row.p.kind end
    local e = run(nothing, {each = tell,
        only = function(p) return p.kind == "x" end})
    lu.assertEquals(told, {"1x", "2x"})
    e:run{quiet = true, order = "given", each = tell}
    lu.assertEquals(#told, 6)
    e:run{quiet = true, each = tell}
    lu.assertEquals(#told, 6)
    -- before the next one is begun
    told = {}
    local counts = {}
    run(function()
        return {axes = {n = {1, 2, 3}, kind = {"x"}}, measure = function()
            counts[#counts + 1] = #told
            return 1
        end}
    end, {each = tell})
    lu.assertEquals(counts, {0, 0, 1, 1, 2, 2})
end

-- Nothing is kept, and what was found is there all the same.
function TestMore:test_a_run_that_keeps_nothing()
    local e, _, seen = run(function()
        return {dir = false, check = function() return 0.5 end}
    end)
    lu.assertNil(e.store.dir)
    lu.assertEquals(#e:results(), 6)
    lu.assertEquals(e:environments()[1].device, (device()):match("^%a+"))
    lu.assertStrContains(tostring(e:plan()), "6 points: 6 done")
    local before = #seen
    e:run{quiet = true}
    lu.assertEquals(#e:results(), 6)
    lu.assertEquals(#seen, 2 * before)
    raises(function() e:run{workers = 2} end, "dir = false keeps nothing")
    raises(function() run(function()
        return {dir = false, timeout = 1}
    end) end, "a timeout ends the worker a point is in, and dir = false keeps nothing")
    e = experiment{name = "a", dir = false, axes = {n = {1, 2}}, repeats = 1,
        measure = function() t.interrupt() end}
    raises(function() e:run{quiet = true} end, "stopped")
    lu.assertEquals(#e:results(), 0)
end

-- The points themselves, in their order.
function TestMore:test_a_list_of_points()
    local given = {{n = 2, kind = "b"}, {n = 1.0, kind = "a"}}
    local e, seen = run(function() return {axes = given, order = false} end)
    lu.assertEquals(e:points(), {{n = 2, kind = "b"}, {n = 1, kind = "a"}})
    lu.assertStrContains(seen, "setup2 b2 b2 setup1 a1 a1")
    lu.assertEquals(given[2], {n = 1.0, kind = "a"})
    raises(function() run(function()
        return {axes = {{n = 1}, {kind = "a"}}}
    end) end, "point 2 has the parameters kind, the first one n")
end

TestClaims = {}

-- Two workers in a folder of claims, and what is in it beside them.
local function two_workers()
    local dir = new_dir()
    lu.assertTrue(os.execute("mkdir -p '" .. dir .. "'"))
    local function claims()
        local names = {}
        for name in pairs(journal.list(dir)) do
            if not name:find("^w%-") then names[#names + 1] = name end
        end
        table.sort(names)
        return table.concat(names, " ")
    end
    return journal.join(dir, "w-1", "one", 30),
        journal.join(dir, "w-2", "two", 30), claims
end

-- As when Ctrl-C stops all Lua: closing is all that is done.
function TestClaims:test_a_worker_that_ends_lets_go_of_every_number()
    local one, two, claims = two_workers()
    for i = 1, 12 do
        lu.assertTrue(one:take("00000000000000aa." .. i))
    end
    lu.assertFalse(two:take("00000000000000aa.12"))
    one:close()
    lu.assertEquals(claims(), "")
    two:close()
end

function TestClaims:test_what_another_took_over_stays()
    local one, two, claims = two_workers()
    lu.assertTrue(one:take("00000000000000aa.1"))
    lu.assertTrue(one:take("00000000000000aa.2"))
    lu.assertTrue(two:take("00000000000000aa.3"))
    one:close()
    lu.assertEquals(claims(), "00000000000000aa.1 00000000000000aa.2 " ..
        "00000000000000aa.3")
    two:release()
    lu.assertEquals(claims(), "")
    two:close()
end

local code = lu.LuaUnit.run("-o", "tap")
os.execute("rm -rf '" .. root .. "'")
os.exit(code)
