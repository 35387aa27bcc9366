-- Shares of peaks that were measured too low: under load, by several
-- processes, beside work that no plain loop can match.
local lu = require "luaunit"
local t = require "common"
local lumat = require "lumat"
local peaks = require "lumat.peaks"
local columns = require "lumat.columns"
local views = require "lumat.experiment".views

TestPeaks = {}

local really = {peak = lumat.peak, rate = lumat.rate, clock = lumat.clock}

-- A device whose peaks are those of the list in turn, the better of each kept.
local machine
function TestPeaks:setUp()
    machine = {now = 0, count = 0}
    lumat.clock = function() return machine.now end
    lumat.peak = function(_, again)
        if again or machine.count == 0 then
            machine.count = machine.count + 1
            local found = machine[machine.count] or machine[#machine]
            machine.best = math.max(machine.best or 0, found)
        end
        return {f32_flops = machine.best, f64_flops = machine.best / 2,
            bytes = 1e9}
    end
    lumat.rate = function(flops, bytes, seconds, dtype)
        local most = lumat.peak()[dtype .. "_flops"]
        local by_flops, by_bytes = flops / seconds / most, bytes / seconds / 1e9
        if by_flops > by_bytes then
            return flops / seconds, "FLOP/s", by_flops, dtype
        end
        return bytes / seconds, "B/s", by_bytes, "memory"
    end
end

function TestPeaks:tearDown()
    for name, f in pairs(really) do lumat[name] = f end
end

local number = 0
local function new_device()
    number = number + 1
    return "device " .. number
end

local function row_of(flops, device)
    local row = {p = {n = flops}, status = "ok", flops = flops, median = 1,
        low = 1, high = 1, device = device}
    row.peak = peaks.of(row, "f32", device)
    return row
end

function TestPeaks:test_the_best_of_two_before_anything_counts()
    machine[1], machine[2] = 50, 80
    local row = row_of(40, new_device())
    lu.assertEquals({row.peak.name, row.peak.value, row.peak.was}, {"f32", 80})
    lu.assertEquals(machine.count, 2)
end

function TestPeaks:test_measured_again_when_a_point_is_above()
    machine[1], machine[2], machine[3] = 50, 50, 100
    local device = new_device()
    local first, second = row_of(40, device), row_of(90, device)
    lu.assertEquals({first.peak.value, second.peak.value, second.peak.was},
        {50, 100, 50})
    lu.assertEquals(machine.count, 3)
    -- the first too is a share of the better one
    local rows = {first, second}
    local text = tostring(views.table(rows))
    lu.assertAlmostEquals(columns.get(first, "share"), 0.4, 1e-12)
    lu.assertStrContains(text, "the f32 peak was measured again beside n=90: " ..
        "1e-07 GFLOP/s, before 5e-08 GFLOP/s; shares are of the best")
    lu.assertNotStrContains(text, "beyond the peak")
end

-- Work that is faster than any peak does not have it measured at every point.
function TestPeaks:test_in_vain_twice_then_after_a_while()
    machine[1] = 50
    local device, rows = new_device(), {}
    for i = 1, 20 do rows[i] = row_of(100 + i, device) end
    lu.assertEquals(machine.count, 4)
    machine.now = 100
    row_of(200, device)
    lu.assertEquals(machine.count, 5)
    lu.assertStrContains(tostring(views.table(rows)),
        "20 points are beyond the peak, which was measured again: data in caches")
end

-- Rows of other devices and environments keep their own.
function TestPeaks:test_best_of_each_environment()
    local function row(env, device, value)
        return {p = {n = value}, status = "ok", flops = 10, median = 1, low = 1,
            high = 1, env = env, device = device,
            peak = {name = "f32", value = value, flops = value, bytes = 1}}
    end
    local rows = {row(1, "cpu", 20), row(1, "cpu", 40), row(2, "cpu", 100),
        row(1, "cuda:0", 1000), {p = {n = 1}, status = "failed", message = "no"}}
    peaks.settle(rows)
    local values = {}
    for i = 1, 4 do values[i] = peaks.value(rows[i]) end
    lu.assertEquals(values, {40, 40, 100, 1000})
    lu.assertNil(peaks.value(rows[5]))
end

-- Rows of a run and of the one that went on: whatever shows them, and however
-- few of them, a row has one share.
function TestPeaks:test_one_share_everywhere()
    local export = require "lumat.export"
    local function rows()
        local list = {}
        for n, value in ipairs{100, 125, 125} do
            list[n] = t.row({n = n, k = "a"}, 1, 0, 0, {flops = 50 + n - 1,
                env = 1, device = "cpu", peak = {name = "f32", value = value,
                flops = value, bytes = 1}})
        end
        return list
    end
    local list = rows()
    local first = {list[1]}
    local e = {name = "e", axes = {"n", "k"}, results = function() return list end,
        points = function() return {list[1].p, list[2].p, list[3].p} end}
    local said = "\n  shares are of the f32 peak 1.25e-07 GFLOP/s, the best " ..
        "that was measured"
    for _, options in ipairs{{}, {ratio_to = {n = 2}}, {where = {n = 1}},
        {rows = "n", cols = "k", value = "share"}} do
        local text = tostring(views.table(e, options))
        lu.assertStrContains(text, "40 %")
        lu.assertStrContains(text, said)
    end
    lu.assertStrContains(tostring(views.table(first)), "40 %")
    lu.assertNotStrContains(tostring(views.table(e, {value = "rate"})), "shares")
    for _, ending in ipairs{"csv", "jsonl"} do
        local path = t.scratch("." .. ending)
        views[ending](rows(), path)
        local back = export.read("test", path)
        views[ending](back, path, {where = {n = 1}})
        back = export.read("test", path)
        lu.assertStrContains(tostring(views.table(back)), "40 %")
        lu.assertEquals(back[1].peak.measured, ending == "jsonl" and 100 or nil)
        os.remove(path)
    end
    local path = t.scratch(".html")
    views.report(e, path)
    lu.assertStrContains(t.taken(path), said:sub(4))
end

-- On the device under test: nothing stands above what is measured again.
TestDevice = {}

function TestDevice:test_again_is_never_less()
    local first = peak(t.device)
    for _ = 1, 3 do
        local again = peak(t.device, true)
        for name, value in pairs(again) do
            lu.assertTrue(value >= first[name], name)
        end
        first = again
    end
    lu.assertEquals(peak(t.device), first)
end

-- A share above 1 has the peak measured again, once for each and never while
-- something is being timed; what is shown says why it may be.
function TestDevice:test_a_share_above_1_doubts_the_peak()
    local function seconds_of(flops, bytes)
        local start = clock()
        local _, _, share = rate(flops, bytes, 1, "f32", t.device)
        lu.assertTrue(share > 1)
        return clock() - start
    end
    peak(t.device)
    local start = clock()
    peak(t.device, true)
    local long = (clock() - start) / 4
    for _, work in ipairs{{1e30, 0}, {0, 1e30}} do
        local meanwhile
        timed(function() meanwhile = seconds_of(table.unpack(work)) end)
        lu.assertTrue(meanwhile < long)
        lu.assertTrue(seconds_of(table.unpack(work)) > long)
        lu.assertTrue(seconds_of(table.unpack(work)) < long)
    end
end

function TestDevice:test_what_stays_above_the_peak_says_so()
    local A = ones(64, 64, {device = t.device})
    for _ = 1, 3 do
        local found = bench(function() return A * 3 end, {seconds = 0.01})
        lu.assertEquals(tostring(found):find("measured while busy", 1, true) ~=
            nil, found.share > 1.005)
        local ranked = race(A, A, {seconds = 0.001})
        local highest = 0
        for _, row in ipairs(ranked) do
            highest = math.max(highest, row.share or 0)
        end
        lu.assertEquals(tostring(ranked):find("above 100 %", 1, true) ~= nil,
            highest > 1.005)
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
