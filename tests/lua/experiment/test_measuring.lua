-- Measuring points: what a measure may return, when sampling stops, what a
-- point fails by; medians and their intervals.
local lu = require "luaunit"
local t = require "common"
local measuring = require "lumat.measuring"
local statistics = require "lumat.statistics"

local function measure(spec, p)
    return measuring.measure_group(spec, {p or {n = 4}}, {device = t.device})[1]
end

TestMeasure = {}

function TestMeasure:test_seconds_that_a_measure_returns()
    local row = measure{measure = function(p) return p.n / 8 end}
    lu.assertEquals(row.status, "ok")
    lu.assertEquals({row.median, row.low, row.high}, {0.5, 0.5, 0.5})
    lu.assertEquals(#row.samples, 10)
    lu.assertTrue(row.seconds >= 0)
end

function TestMeasure:test_work_is_timed_and_its_result_checked()
    local seen
    local row = measure{setup = function(p) return {A = eye(p.n)} end,
        measure = function(p, s) return function() return s.A * s.A, "more" end end,
        check = function(p, s, C, more)
            seen = {C == s.A, more, p.n}
            return 0.25, {size = C.rows}
        end, repeats = 7, flops = function(p) return 2 * p.n ^ 3 end}
    lu.assertEquals(seen, {true, "more", 4})
    lu.assertEquals(#row.samples, 7)
    lu.assertTrue(row.median > 0 and row.low <= row.median and
        row.median <= row.high)
    lu.assertEquals({row.check, row.values.size, row.flops}, {0.25, 4, 128})
    lu.assertTrue(row.peak.value > 0)
    lu.assertTableContains({"f32", "memory"}, row.peak.name)
    lu.assertTrue(row.batch >= 1)
end

-- Short work runs many times in a sample; cold work once.
function TestMeasure:test_cold_runs_stand_alone()
    local calls = 0
    local function work() calls = calls + 1 end
    local row = measure{measure = function() return work end, repeats = 3}
    lu.assertTrue(row.batch > 1)
    calls = 0
    row = measure{measure = function() return work end, repeats = 3, cold = true}
    lu.assertEquals({row.batch, row.cold, calls}, {1, true, 4})
    row = measure{measure = function() return work end, repeats = 2,
        cold = function(p) return p.n > 4 end}
    lu.assertNil(row.cold)
end

function TestMeasure:test_when_sampling_stops()
    local n = 0
    local function noisy() -- never within 1 %
        n = n + 1
        return 1 + n % 2
    end
    lu.assertEquals(#measure{measure = noisy}.samples, 100)
    lu.assertEquals(#measure{measure = noisy, repeats = 3}.samples, 3)
    lu.assertEquals(#measure{measure = noisy, stop = {most = 20}}.samples, 20)
    lu.assertEquals(#measure{measure = noisy, stop = {interval = 1.1}}.samples, 10)
    lu.assertEquals(#measure{measure = noisy, stop = function(samples)
        return #samples == 5
    end}.samples, 5)
    local start = clock()
    measure{measure = function()
        local stop = clock() + 0.002
        repeat until clock() > stop
        return noisy()
    end, stop = {seconds = 0.05, most = 1e6}}
    lu.assertTrue(clock() - start < 20)
end

function TestMeasure:test_first_run_is_no_sample()
    local times, n = {9, 1, 1, 1}, 0
    local row = measure{measure = function()
        n = n + 1
        return times[n]
    end, repeats = 3}
    lu.assertEquals(row.samples, {1, 1, 1})
    n = 0
    row = measure{measure = function()
        n = n + 1
        return times[n]
    end, repeats = 3, warmup = 0}
    lu.assertEquals(row.samples, {9, 1, 1})
    n = 0
    row = measure{measure = function() n = n + 1 return 1 end, repeats = 1}
    lu.assertEquals(n, 1)
    n, times = 0, {9, 8, 1}
    row = measure{measure = function()
        n = n + 1
        return times[n]
    end, repeats = 1, warmup = 2}
    lu.assertEquals({n, row.samples}, {3, {1}})
end

-- As README.md and the help say: eleven times, or as often as is asked for.
function TestMeasure:test_how_often_measure_is_called()
    for _, case in ipairs{{{}, 11}, {{repeats = 1}, 1}, {{repeats = 5}, 6},
        {{repeats = 5, warmup = 0}, 5}, {{stop = {least = 3, most = 3}}, 4}} do
        local spec, count = case[1], 0
        spec.measure = function()
            count = count + 1
            return 1
        end
        measure(spec)
        lu.assertEquals(count, case[2])
    end
end

function TestMeasure:test_groups_take_turns()
    local order = {}
    local rows = measuring.measure_group({measure = function(p)
        order[#order + 1] = p.k
        return 1
    end, repeats = 3, warmup = 0}, {{k = "a"}, {k = "b"}})
    lu.assertEquals(#order, 6)
    for i = 1, 5, 2 do lu.assertNotEquals(order[i], order[i + 1]) end
    lu.assertEquals({#rows, rows[2].status}, {2, "ok"})
end

-- One of a group that fails does not disturb the others.
function TestMeasure:test_a_member_that_fails()
    local rows = measuring.measure_group({measure = function(p)
        if p.k == 2 then error("no " .. p.k, 0) end
        return 1
    end, repeats = 2}, {{k = 1}, {k = 2}, {k = 3}})
    lu.assertEquals({rows[1].status, rows[2].status, rows[3].status},
        {"ok", "failed", "ok"})
    lu.assertEquals(rows[2].message, "measure: no 2")
end

TestFailures = {}

local function fails(spec, message)
    spec.measure = spec.measure or function() return 1 end
    local row = measure(spec)
    lu.assertEquals(row.status, "failed")
    lu.assertStrContains(row.message, message)
    lu.assertNil(row.median)
end

function TestFailures:test_by_name()
    local function returns(...)
        local values = table.pack(...)
        return {measure = function() return table.unpack(values, 1, values.n) end}
    end
    fails(returns(), "measure: returned nothing; it returns the seconds of " ..
        "one run, or a function to be timed")
    fails(returns(0 / 0), "measure: returned NaN")
    fails(returns(-1), "measure: returned -1 seconds")
    fails(returns(math.huge), "measure: returned Inf seconds")
    fails(returns(eye(2)), "measure: returned a matrix")
    fails(returns("fast"), 'measure: returned "fast"')
    fails({measure = function() return eye(2) * eye(3) end},
        "inner dimensions differ (2 and 3)")
    fails({measure = function() return function() error "in work" end end},
        "in work")
    fails({setup = function() error "no data" end}, "setup: ")
    fails({flops = function() return "many" end}, 'flops: "many", expected')
    fails({bytes = -1}, "bytes: -1, expected a number from 0 on")
    fails({cold = function() error "who knows" end}, "cold: ")
end

-- What is given beside the seconds or the error is kept, or said to be none.
function TestFailures:test_figures()
    local function given(name, value)
        return function() return 1, {steps = 3, [name] = value} end
    end
    fails({measure = given("x", eye(2))}, "measure: x, a matrix, is no figure")
    fails({check = given("f", print)}, "check: f, a function, is no figure")
    fails({check = given(1, 3)}, "check: [1] is no figure")
    fails({measure = given("error", 0.1)},
        "measure: a figure needs another name than error, which is a figure " ..
        "of every point")
    fails({check = given("n", 3)},
        "check: a figure needs another name than n, which is a parameter")
    local seen
    local row = measure{measure = given("x", eye(2)), check = function(_, _, out)
        seen = out
        return true
    end}
    lu.assertEquals({row.status, seen.steps, row.values}, {"ok", 3, nil})
end

-- Later samples are looked at too.
function TestFailures:test_nan_later()
    local n = 0
    fails({measure = function()
        n = n + 1
        return n < 5 and 1 or 0 / 0
    end}, "measure: returned NaN")
end

function TestFailures:test_a_wrong_result_is_not_timed()
    local runs = 0
    local function spec(answer)
        return {check = function() return answer end, measure = function()
            return function() runs = runs + 1 end
        end}
    end
    fails(spec(false), "check: the result is wrong")
    fails(spec(0 / 0), "check: returned NaN")
    fails(spec("good"), 'check: returned "good", expected a number')
    fails(spec(verify(ones(2, 2), eye(2), eye(2))), "check: FAILS: ")
    lu.assertEquals(runs, 4)
    lu.assertEquals(measure(spec(true)).status, "ok")
    lu.assertEquals(measure(spec(verify(eye(2), eye(2), eye(2)))).check, 0)
end

function TestFailures:test_an_interrupt_goes_on()
    lu.assertErrorMsgContains("stopped", function()
        measure{measure = function() t.interrupt() end}
    end)
end

TestStatistics = {}

-- Ranks from the binomial distribution, as tables of the sign test have them.
function TestStatistics:test_ranks_of_the_interval()
    for n, rank in pairs{[6] = 1, [8] = 1, [9] = 2, [10] = 2, [15] = 4,
        [20] = 6, [30] = 10, [50] = 18, [100] = 40, [1000] = 469} do
        local list = {}
        for i = 1, n do list[i] = n + 1 - i end
        local median, low, high = statistics.interval(list)
        lu.assertEquals({median, low, high}, {(n + 1) / 2, rank, n + 1 - rank},
            n .. " samples")
    end
end

-- Of many lists the interval holds the median in 95 of 100, or more.
function TestStatistics:test_coverage()
    math.randomseed(7)
    for _, n in ipairs{7, 12, 40} do
        local held = 0
        for _ = 1, 2000 do
            local list = {}
            for i = 1, n do list[i] = -math.log(1 - math.random()) end
            local _, low, high = statistics.interval(list)
            if low <= math.log(2) and math.log(2) <= high then
                held = held + 1
            end
        end
        lu.assertTrue(held / 2000 > 0.94, n .. ": " .. held)
    end
end

function TestStatistics:test_change()
    local c, low, high = statistics.change({1, 1, 1}, {1.5, 1.5, 1.5})
    lu.assertAlmostEquals(c, 0.5, 1e-12)
    lu.assertAlmostEquals(low, 0.5, 1e-12)
    lu.assertAlmostEquals(high, 0.5, 1e-12)
    c, low, high = statistics.change({1, 0.9, 1.2}, {1.5, 1.4, 1.6})
    lu.assertTrue(low < c and c < high and low > 0.1 and high < 1)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
