-- Comparing runs: what the statistics rest on, checked against tables and by
-- many runs of known noise; verdicts, and what is said beside them.
local lu = require "luaunit"
local t = require "common"
local distributions = require "lumat.statistics".distributions
local shifts = require "lumat.comparing".shifts
local statistics = require "lumat.statistics"
local compare = experiment.compare

TestDistributions = {}

-- As printed in any table of Student's t: 2.5 % at one side.
function TestDistributions:test_t()
    for df, t_table in pairs{[1] = 12.706, [2] = 4.303, [5] = 2.571,
        [10] = 2.228, [18] = 2.101, [30] = 2.042, [120] = 1.980} do
        lu.assertAlmostEquals(distributions.t_quantile(0.025, df), t_table, 6e-4)
    end
    lu.assertAlmostEquals(distributions.normal_quantile(0.025), 1.95996, 1e-5)
    lu.assertAlmostEquals(distributions.t_beyond(1, 1), 0.5, 1e-12)
    lu.assertAlmostEquals(distributions.t_beyond(3, 7), 0.0199421, 1e-6)
end

-- As in tables of Mann and Whitney's test: the largest U that is significant
-- at 5 %, both sides.
function TestDistributions:test_u()
    for n, u in pairs{[4] = 0, [5] = 2, [6] = 5, [8] = 13, [10] = 23,
        [15] = 64, [20] = 127} do
        lu.assertEquals(distributions.rank(n, n, 0.025), u + 1, n)
    end
    local r, tail = distributions.rank(5, 5, 0.025)
    lu.assertAlmostEquals(tail, 4 / 252, 1e-12)
    lu.assertEquals(distributions.rank(3, 3, 0.025), 0)
    -- where the normal approximation takes over there is no step
    local exact, beyond = distributions.rank(50, 50, 0.025),
        distributions.rank(50, 51, 0.025)
    lu.assertTrue(beyond - exact > 15 and beyond - exact < 30)
end

-- The example of Benjamini and Hochberg, 3.2: four are found at 5 %.
function TestDistributions:test_many_tests()
    local list = {0.0201, 0.0001, 0.0004, 0.0095, 0.0019, 0.0278, 0.0298,
        0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0}
    local adjusted, found = distributions.together(list), 0
    for i, p in ipairs(adjusted) do
        lu.assertTrue(p >= list[i])
        if p < 0.05 then found = found + 1 end
    end
    lu.assertEquals(found, 4)
    lu.assertAlmostEquals(adjusted[2], 0.0015, 1e-12)
    lu.assertAlmostEquals(adjusted[4], 0.0095 * 15 / 4, 1e-12)
    lu.assertEquals(distributions.together{}, {})
end

-- --- noise ------------------------------------------------------------------

local function normal()
    return math.sqrt(-2 * math.log(1 - math.random())) *
        math.cos(2 * math.pi * math.random())
end

-- n samples about 1 with noise of a standard deviation s (heavy: without what
-- lies far out).
local models = {}
function models.normal(n, s)
    local list = {}
    for i = 1, n do list[i] = 1 + s * normal() end
    return list
end
function models.skewed(n, s) -- lognormal
    local list = {}
    for i = 1, n do list[i] = 1 + s * (math.exp(normal()) - 1) / 2.16 end
    return list
end
function models.heavy(n, s) -- one in twenty is far off
    local list = {}
    for i = 1, n do
        list[i] = (1 + s * normal()) * (math.random() < 0.05 and
            1.1 + 0.4 * math.random() or 1)
    end
    return list
end
function models.clocks(n, s) -- two of them
    local list = {}
    for i = 1, n do
        list[i] = (1 + 0.3 * s * normal()) * (math.random() < 0.3 and
            1 + 2 * s or 1)
    end
    return list
end
function models.drifting(n, s) -- half of it stays from sample to sample
    local list, drift = {}, s * math.sqrt(0.5) * normal()
    for i = 1, n do
        drift = 0.8 * drift + 0.6 * s * math.sqrt(0.5) * normal()
        list[i] = 1 + drift + s * math.sqrt(0.5) * normal()
    end
    return list
end

local function row_of(p, samples)
    local median, low, high = statistics.interval(samples)
    return {p = p, status = "ok", samples = samples, median = median,
        low = low, high = high}
end

-- Two runs of so many rows, `changed` of them slower by `change`: verdicts of
-- the changed ones, of the others, and the comparison.
local function verdicts(model, n, s, rows, changed, change)
    local old, new = {}, {}
    for i = 1, rows do
        local a, b = models[model](n, s), models[model](n, s)
        for k = 1, n do
            b[k] = b[k] * (i <= changed and 1 + change or 1)
        end
        old[i], new[i] = row_of({i = i}, a), row_of({i = i}, b)
    end
    local of_changed, of_others = {}, {}
    local found = compare(old, new)
    for _, entry in ipairs(found) do
        local list = entry.p.i <= changed and of_changed or of_others
        list[entry.verdict] = (list[entry.verdict] or 0) + 1
    end
    return of_changed, of_others, found
end

TestShifts = {}

-- Against all differences in order.
function TestShifts:test_estimate_and_interval()
    math.randomseed(3)
    for _, sizes in ipairs{{5, 5}, {6, 9}, {12, 7}, {10, 10}, {31, 30}} do
        local a, b, all = models.heavy(sizes[1], 0.02),
            models.heavy(sizes[2], 0.02), {}
        for _, x in ipairs(a) do
            for _, y in ipairs(b) do all[#all + 1] = math.log(y / x) end
        end
        local s = shifts.shift(a, b, 1)
        lu.assertAlmostEquals(s.by, statistics.median(all), 1e-9)
        table.sort(all)
        local r, tail = distributions.rank(sizes[1], sizes[2], 0.025)
        local low, high = shifts.interval(s, tail)
        lu.assertAlmostEquals(high - low, all[#all + 1 - r] - all[r], 1e-9)
    end
end

-- The 95 % interval of the change holds it in 95 of 100, about.
function TestShifts:test_coverage()
    math.randomseed(4)
    for _, model in ipairs{"normal", "skewed", "heavy", "clocks"} do
        for _, n in ipairs{5, 10, 30} do
            local held = 0
            for _ = 1, 1000 do
                local s = shifts.shift(models[model](n, 0.02),
                    models[model](n, 0.02), 1)
                local low, high = shifts.interval(s, 0.025)
                if low <= 0 and 0 <= high then held = held + 1 end
            end
            lu.assertTrue(held >= 920 and held <= 990,
                model .. " " .. n .. ": " .. held)
        end
    end
end

-- Noise that stays makes the interval wider: without it 75 of 100 would hold.
function TestShifts:test_coverage_where_noise_stays()
    math.randomseed(5)
    local lists = {}
    for i = 1, 400 do lists[i] = models.drifting(20, 0.02) end
    local common, held = shifts.common(lists), 0
    lu.assertTrue(common.mean > 0.25 and common.mean < 0.5, common.mean)
    for i = 1, 400, 2 do
        local s = shifts.shift(lists[i], lists[i + 1],
            (shifts.inflation(common, i, 20) +
                shifts.inflation(common, i + 1, 20)) / 2)
        local low, high = shifts.interval(s, 0.025)
        if low <= 0 and 0 <= high then held = held + 1 end
    end
    lu.assertTrue(held >= 172, held)
    for i = 1, 400 do lists[i] = models.normal(20, 0.02) end
    common = shifts.common(lists)
    lu.assertTrue(math.abs(common.mean) < 0.05, common.mean)
end

TestVerdicts = {}

-- Of tables of 100 points where nothing changed one in twenty has an alarm.
function TestVerdicts:test_false_alarms_of_tables()
    math.randomseed(6)
    for _, model in ipairs{"normal", "skewed", "heavy", "clocks"} do
        for _, n in ipairs{5, 10} do
            local alarms = 0
            for _ = 1, 30 do
                local _, others = verdicts(model, n, 0.03, 100, 0, 0)
                if others.SLOWER or others.FASTER then alarms = alarms + 1 end
            end
            lu.assertTrue(alarms <= 5, model .. " " .. n .. ": " .. alarms)
        end
    end
end

-- Noise that stays for some samples deceives more, but not many.
function TestVerdicts:test_false_alarms_where_noise_stays()
    math.randomseed(7)
    local alarms = 0
    for _ = 1, 20 do
        local _, others = verdicts("drifting", 10, 0.02, 100, 0, 0)
        alarms = alarms + (others.SLOWER or 0) + (others.FASTER or 0)
    end
    lu.assertTrue(alarms <= 36, alarms) -- of 2000
end

-- How many of 100 points slower by 5 % are found among 1000 others.
function TestVerdicts:test_power()
    math.randomseed(8)
    for _, case in ipairs{{"normal", 5, 0.01, 92}, {"normal", 10, 0.01, 98},
        {"normal", 10, 0.02, 86}, {"heavy", 10, 0.01, 92},
        {"heavy", 10, 0.02, 74}, {"skewed", 10, 0.02, 94},
        {"drifting", 10, 0.01, 86}, {"normal", 30, 0.03, 96}} do
        local model, n, s, least = table.unpack(case)
        local found, wrong = 0, 0
        for _ = 1, 10 do
            local changed = verdicts(model, n, s, 110, 10, 0.05)
            found = found + (changed.SLOWER or 0)
            wrong = wrong + (changed.FASTER or 0)
        end
        lu.assertTrue(found >= least, ("%s, %d samples, %g: %d"):format(model,
            n, s, found))
        lu.assertEquals(wrong, 0)
    end
end

-- SAME is a claim of its own: a change at the threshold is called so once in
-- twenty.
function TestVerdicts:test_same()
    math.randomseed(9)
    local same, honest = 0, 0
    for _ = 1, 5 do
        local changed, others = verdicts("normal", 10, 0.01, 200, 100, 0.02)
        same = same + (changed.SAME or 0)
        honest = honest + (others.SAME or 0)
    end
    lu.assertTrue(same <= 45, same) -- of 500
    lu.assertTrue(honest >= 480, honest)
end

-- With as many samples as an UNSURE asks for, most are sure.
function TestVerdicts:test_how_many_samples_would_tell()
    math.randomseed(10)
    local old, new, asked = {}, {}, 0
    local _, _, found = verdicts("normal", 10, 0.03, 150, 30, 0.05)
    for _, entry in ipairs(found) do
        lu.assertEquals(entry.needed ~= nil, entry.verdict == "UNSURE" and
            not entry.why:find("more than", 1, true))
        if entry.needed and entry.needed < 400 then
            lu.assertTrue(entry.needed > 10)
            asked = asked + 1
            local a, b = models.normal(entry.needed, 0.03),
                models.normal(entry.needed, 0.03)
            for k in ipairs(b) do b[k] = b[k] * (1 + entry.change) end
            old[asked], new[asked] = row_of({i = asked}, a),
                row_of({i = asked}, b)
        end
    end
    lu.assertTrue(asked > 60, asked)
    local counts = compare(old, new).counts
    lu.assertTrue(counts.UNSURE <= 0.35 * asked, counts.UNSURE .. " of " ..
        asked)
    lu.assertStrContains(tostring(found), "samples would tell")
end

TestCompare = {}

-- A run as machines make them: skewed, drifting, with outliers, and a little
-- faster or slower than the one before.
local function row(level, noise, p, n)
    local samples, drift = {}, 0
    local base = level * (1 + 0.002 * normal())
    local trend = 0.004 * normal()
    for i = 1, n do
        drift = 0.8 * drift + 0.3 * noise * normal()
        local x = base * (1 + drift + trend * i / n) *
            math.exp(noise * math.abs(normal()))
        samples[i] = math.random() < 0.03 and x * (1.1 + 0.4 * math.random())
            or x
    end
    local median, low, high = statistics.interval(samples)
    return {p = p, status = "ok", samples = samples, median = median,
        low = low, high = high}
end

-- At most 1 % false alarms of 1,000, and 95 % of slow-downs by 5 % found.
function TestCompare:test_noise()
    math.randomseed(11)
    for _, noise in ipairs{0.003, 0.015} do
        local old, same, slower, faster = {}, {}, {}, {}
        for i = 1, 1000 do
            local level, n = 10 ^ (-6 + 4 * math.random()), math.random(15, 60)
            old[i] = row(level, noise, {i = i}, n)
            same[i] = row(level, noise, {i = i}, n)
            slower[i] = row(1.05 * level, noise, {i = i}, n)
            faster[i] = row(level / 1.05, noise, {i = i}, n)
        end
        local null = compare(old, same).counts
        lu.assertTrue(null.SLOWER + null.FASTER <= 10, noise .. ": " ..
            null.SLOWER + null.FASTER .. " false alarms")
        lu.assertTrue(null.SAME >= 850, noise .. ": " .. null.SAME .. " same")
        local found = compare(old, slower).counts
        lu.assertTrue(found.SLOWER >= 950, noise .. ": " .. found.SLOWER)
        lu.assertEquals(found.FASTER, 0)
        lu.assertTrue(compare(old, faster).counts.FASTER >= 950)
    end
end

local function steady(p, seconds, n)
    local samples = {}
    for i = 1, n or 12 do samples[i] = seconds * (1 + 1e-4 * (i * 7 % 5)) end
    local median, low, high = statistics.interval(samples)
    return {p = p, status = "ok", samples = samples, median = median,
        low = low, high = high}
end

function TestCompare:test_a_row_of_each_verdict()
    local old = {steady({n = 1}, 1), steady({n = 2}, 1), steady({n = 3}, 1),
        steady({n = 4}, 1), steady({n = 5}, 1, 3), steady({n = 6}, 1),
        steady({n = 7}, 1)}
    local new = {steady({n = 1}, 1.1), steady({n = 2}, 0.9),
        steady({n = 3}, 1.001), {p = {n = 4}, status = "failed",
        message = "measure: no"}, steady({n = 5}, 2, 3), steady({n = 8}, 1)}
    local found = compare(old, new)
    local verdicts = {}
    for _, entry in ipairs(found) do verdicts[entry.p.n] = entry.verdict end
    lu.assertEquals(verdicts, {"SLOWER", "FASTER", "SAME", "FAILED", "UNSURE"})
    lu.assertEquals(found.counts, {SLOWER = 1, FASTER = 1, SAME = 1,
        UNSURE = 1, FAILED = 1})
    lu.assertAlmostEquals(found[1].change, 0.1, 1e-3)
    local text = tostring(found)
    for _, part in ipairs{"5 points compared", "2 points only in before:\n" ..
        "    n=6\n    n=7\n  1 point only in after:\n    n=8\n",
        "FASTER 1   SLOWER 1   SAME 1   UNSURE 1   FAILED 1",
        "+10.0 %", "now: measure: no", "3 and 3 samples, 5 needed"} do
        lu.assertStrContains(text, part)
    end
    lu.assertEquals(found.alone, {{{n = 6}, {n = 7}}, {{n = 8}}})
    lu.assertEquals(compare(old, new, {threshold = 0.2}).counts.SLOWER, 0)
end

-- A CSV file keeps how many samples there were, not the samples.
function TestCompare:test_a_csv_file_of_few_samples()
    local path = os.tmpname()
    os.rename(path, path .. ".csv")
    path = path .. ".csv"
    local rows = {steady({n = 1}, 1), steady({n = 2}, 1, 3)}
    require("lumat.experiment").views.csv(rows, path)
    lu.assertEquals(compare(path, rows).counts.SAME, 2)
    rows[1], rows[2] = steady({n = 1}, 1.001), steady({n = 2}, 1.001, 3)
    local found = compare(path, rows)
    os.remove(path)
    lu.assertEquals({found.counts.SAME, found.counts.UNSURE}, {1, 1})
    lu.assertStrContains(tostring(found), "3 and 3 samples, 6 needed")
end

-- 512 and 512.0 are one value, "512" is another; axes may come in any order.
function TestCompare:test_rows_are_matched_by_their_parameters()
    local old = {steady({n = 512, k = "a"}, 1), steady({n = 7, k = "a"}, 1)}
    local new = {steady({k = "a", n = 512.0}, 1), steady({k = "a", n = "7"}, 1)}
    lu.assertEquals(#compare(old, new), 1)
end

function TestCompare:test_refusals()
    t.raises(function() compare(1, {}) end,
        "compare: before is 1; expected an experiment")
    t.raises(function() compare(1, {}) end, "test_comparing.lua:")
    t.raises(function() compare({}, {{}}) end, "row 1 has no table p")
    t.raises(function() compare({}, {}, {treshold = 1}) end,
        "unknown option 'treshold': did you mean 'threshold'?")
    t.raises(function() compare({}, {}, {threshold = 2}) end,
        "threshold is 2, expected a share such as 0.02")
    t.raises(function() compare("/no/where.jsonl", {}) end, "/no/where.jsonl")
    lu.assertStrContains(tostring(compare({}, {})), "0 points compared")
end

-- What was not alike is said, above everything.
local function run_of(name, rows, environment)
    return {name = name, axes = {"n"}, results = function() return rows end,
        points = function()
            local points = {}
            for i, r in ipairs(rows) do points[i] = r.p end
            return points
        end, environments = function() return environment end}
end

function TestCompare:test_other_environments_are_told()
    local function rows()
        local list = {}
        for n = 1, 3 do
            list[n] = steady({n = n}, 1)
            list[n].env, list[n].device = n == 3 and 2 or 1, "cuda:0"
        end
        return list
    end
    local here = {device = "cuda", driver = "550.1", threads = 2}
    local there = {device = "cuda", driver = "580.2", threads = 2}
    local old, new = run_of("old", rows(), {here, here}),
        run_of("new", rows(), {here, there})
    local found = compare(old, new)
    lu.assertStrContains(tostring(found),
        "\n  NOT ALIKE: driver was 550.1, is 580.2 (1 point)\n")
    lu.assertEquals(found[3].differs, {"driver was 550.1, is 580.2"})
    lu.assertNil(found[1].differs)
    lu.assertNotStrContains(tostring(compare(old, old)), "NOT ALIKE")
    local on_cpu = rows()
    for _, r in ipairs(on_cpu) do r.device = "cpu" end
    lu.assertStrContains(tostring(compare(old, run_of("cpu", on_cpu,
        {here, here}))), "NOT ALIKE: device was cuda:0, is cpu (all points)")
    lu.assertStrContains(tostring(compare(old, rows())),
        "where the rows after were measured is not known (all points)")
end

function TestCompare:test_cold_and_warm()
    local function rows(device, cold)
        local r = steady({n = 1}, 1)
        r.device, r.cold = device, cold
        return {r}
    end
    lu.assertStrContains(tostring(compare(rows("cpu"), rows("cpu", true))),
        "NOT ALIKE: cold was false, is true (all points)")
    -- files have neither
    lu.assertNotStrContains(tostring(compare(rows(), rows("cpu", true))),
        "cold was")
end

function TestCompare:test_points_of_one_run_alone()
    local many = {}
    for n = 1, 30 do many[n] = steady({n = n}, 1) end
    local text = tostring(compare(many, {steady({n = 30}, 1)}))
    lu.assertStrContains(text, "  29 points only in before:\n    n=1\n")
    lu.assertStrContains(text, "    n=9\n    and 20 more\n")
end

function TestCompare:test_errors_that_differ()
    local old, new = {}, {}
    for n, errors in ipairs{{1e-7, 1e-7}, {1e-7, 1.001e-7}, {1e-7, 3e-7},
        {2e-7, 1e-7}, {nil, 1e-7}} do
        old[n], new[n] = steady({n = n}, 1), steady({n = n}, 1)
        old[n].check, new[n].check = errors[1], errors[2]
    end
    local found = compare(old, new)
    local text = tostring(found)
    lu.assertStrContains(text, "the error differs at 3 points, and is larger at 1")
    lu.assertStrContains(text, "error 1.0e-07 -> 3.0e-07")
    lu.assertStrContains(text, "error none -> 1.0e-07")
    lu.assertNil(found[2].error_differs)
end

-- A run beside itself, whatever its samples are: as it is, opened from its
-- folder, read from a file.
function TestCompare:test_a_run_with_itself()
    local root, new_dir = t.folders()
    for name, spec in pairs{wild = {repeats = 5, measure = function(p)
        return 10.0 ^ (-9 * math.random())
    end}, one = {repeats = 1, measure = function(p) return p.n end},
        zero = {repeats = 6, measure = function() return 0 end},
        work = {repeats = 5, measure = function() return function() end end}} do
        spec.name, spec.dir, spec.axes = name, new_dir(), {n = {1, 2, 3}}
        local e = experiment(spec)
        e:run{quiet = true}
        local file = t.scratch(".jsonl")
        e:jsonl(file)
        for _, other in ipairs{e, experiment.open(spec.dir), spec.dir, file} do
            local found = compare(e, other)
            lu.assertEquals(found.counts.SAME, 3, name)
            lu.assertEquals({found[1].change, found[1].low, found[1].high,
                found[1].chance}, {0, 0, 0, 1})
            lu.assertStrContains(tostring(found), "0.0 %   0.0 .. 0.0 %  " ..
                "the same samples")
        end
        os.remove(file)
    end
    os.execute("rm -rf '" .. root .. "'")
end

-- Another run whose times happen to agree is another one.
function TestCompare:test_other_runs_of_the_same_times()
    local function rows(worker)
        local r = row_of({n = 1}, {1e-6})
        r.worker, r.time = worker, 7
        return {r}
    end
    lu.assertEquals(compare(rows("a"), rows("a")).counts.SAME, 1)
    lu.assertStrContains(tostring(compare(rows("a"), rows("b"))),
        "1 and 1 samples, 5 needed")
end

-- A point that is all noise does not make the others unsure, and samples that
-- drift are worth one at least.
function TestCompare:test_noise_that_says_nothing()
    math.randomseed(12)
    for _, n in ipairs{5, 8, 20} do
        local function rows()
            local wild = {}
            for i = 1, n do wild[i] = 10.0 ^ (-9 * math.random()) end
            local list = {row_of({i = 1}, wild)}
            for i = 2, 3 do
                list[i] = row_of({i = i}, models.normal(n, 1e-4))
            end
            return list
        end
        local found = compare(rows(), rows())
        lu.assertEquals({found.counts.SAME, found.counts.UNSURE}, {2, 1})
        for _, entry in ipairs(found) do
            if entry.verdict == "SAME" then
                lu.assertTrue(entry.high < 0.01 and entry.low > -0.01)
            end
        end
        lu.assertTrue(tostring(found):find("/ [%d.e+]+ %.%. x [%d.e+]+") ~= nil)
    end
    for _, n in ipairs{5, 10, 100} do
        local rising = {}
        for i = 1, n do rising[i] = i end
        local common = shifts.common{rising}
        lu.assertTrue(shifts.inflation(common, 1, n) <= n)
    end
end

-- What is known of it: psi(1) = -gamma, psi(1/2) = -gamma - 2 log 2, and the
-- squares of pi.
function TestDistributions:test_variances()
    local gamma = 0.57721566490153286
    lu.assertAlmostEquals(distributions.digamma(1), -gamma, 1e-10)
    lu.assertAlmostEquals(distributions.digamma(0.5), -gamma - 2 * math.log(2),
        1e-10)
    lu.assertAlmostEquals(distributions.trigamma(1), math.pi ^ 2 / 6, 1e-10)
    lu.assertAlmostEquals(distributions.trigamma(0.5), math.pi ^ 2 / 2, 1e-10)
    math.randomseed(13)
    -- variances of 4 samples each about ones that are 4 times a chi square's
    for _, d0 in ipairs{2, 6, math.huge} do
        local variances, dfs = {}, {}
        for i = 1, 3000 do
            local own, sum = 4, 0
            if d0 < math.huge then
                for _ = 1, d0 do sum = sum + normal() ^ 2 end
                own = 4 * d0 / sum
            end
            sum = 0
            for _ = 1, 4 do sum = sum + normal() ^ 2 end
            variances[i], dfs[i] = own * sum / 4, 4
        end
        local worth, usual = distributions.common_variance(variances, dfs)
        lu.assertTrue(d0 == math.huge and worth > 50 or
            math.abs(worth / d0 - 1) < 0.25, worth)
        lu.assertTrue(math.abs(usual / 4 - 1) < 0.15, usual)
    end
end

function TestCompare:test_times_of_no_noise_and_of_zero()
    local function flat(n, seconds)
        local samples = {}
        for i = 1, 10 do samples[i] = seconds end
        return row_of({n = n}, samples)
    end
    local found = compare({flat(1, 1), flat(2, 1), flat(3, 0), flat(4, 1)},
        {flat(1, 1), flat(2, 1.03), flat(3, 1), flat(4, 1.01)})
    local got = {}
    for _, entry in ipairs(found) do got[entry.p.n] = entry.verdict end
    lu.assertEquals(got, {"SAME", "SLOWER", "UNSURE", "SAME"})
    lu.assertStrContains(tostring(found), "a time of zero")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
