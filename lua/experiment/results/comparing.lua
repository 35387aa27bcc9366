-- Two runs of an experiment beside each other: which points became faster or
-- slower, which are the same, and which cannot be told.
local library = ...
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local distributions = require "lumat.distributions"
local comparison = require "lumat.comparison"
local origins = require "lumat.origins"
local shifts = require "lumat.shifts"
local sources = require "lumat.sources"
local statistics = require "lumat.statistics"
local comparing = {}
local ipairs, type = ipairs, type
local abs, ceil, exp, log = math.abs, math.ceil, math.exp, math.log
local larger = math.max
local format, match, sort = string.format, string.match, table.sort

local THRESHOLD = 0.02 -- smaller changes do not count
local CHANCE = 0.05 -- of a false alarm in a table where nothing changed
local MOST_NEEDED = 10000 -- samples that anybody would take

-- --- the shift of a row -----------------------------------------------------

-- How many samples a row rests on; of one read from a CSV file, what it says.
local function count_of(row)
    return row.samples and #row.samples or row.count or 0
end

local function has_samples(row)
    return row.samples and #row.samples >= shifts.fewest
end

-- All times of a row, as far as it has them, are above 0.
local function is_positive(row)
    for _, x in ipairs(row.samples or {}) do
        if not (x > 0) then return false end
    end
    return row.median and row.median > 0 and (row.low or row.median) > 0
end

local function are_alike(list, other)
    if #list ~= #other then return false end
    for i, x in ipairs(list) do
        if x ~= other[i] then return false end
    end
    return true
end

-- Are both rows one measurement, as where a run is compared with itself or
-- with a file of it? There is nothing to be unsure of, however few samples
-- there are. Other runs whose times happen to agree are two.
local function is_same(a, b)
    for _, name in ipairs{"worker", "time", "key"} do
        if a[name] and b[name] and a[name] ~= b[name] then return false end
    end
    if a.samples and b.samples then return are_alike(a.samples, b.samples) end
    return a.median == b.median and a.low == b.low and a.high == b.high and
        count_of(a) == count_of(b)
end

-- Why two rows need not, or cannot, be compared, if so: verdict and reason.
local function obstacle(a, b)
    for _, side in ipairs{{"now", b}, {"before", a}} do
        if not columns.is_good(side[2]) then
            return "FAILED", format("%s: %s", side[1],
                columns.reason(side[2]))
        end
    end
    if is_same(a, b) then return "SAME", "the same samples" end
    if not (is_positive(a) and is_positive(b)) then
        return "UNSURE", "a time of zero"
    end
    local n, m = count_of(a), count_of(b)
    local fewest = a.samples and b.samples and shifts.fewest or
        statistics.fewest
    if n < fewest or m < fewest then
        return "UNSURE", format("%d and %d samples, %d needed", n, m, fewest)
    end
end

-- The shift of medians of which no samples are there, by their intervals.
local function shift_of_medians(a, b)
    local n, m = count_of(a), count_of(b)
    local change, low, high = statistics.change(
        {a.median, a.low, a.high}, {b.median, b.low, b.high})
    local width = (log(1 + high) - log(1 + low)) / 2
    return {by = log(1 + change), df = n + m - 2, share = n * m / (n + m),
        error = width / distributions.normal_quantile(0.025)}
end

-- The shifts of all entries that have none to keep them from it.
local function add_shifts(list)
    local lists, place = {}, {}
    for i, entry in ipairs(list) do
        if not entry.verdict and has_samples(entry.a) and
            has_samples(entry.b) then
            place[i] = #lists + 1
            lists[#lists + 1] = entry.a.samples
            lists[#lists + 1] = entry.b.samples
        end
    end
    local common, sampled = shifts.common(lists), {}
    for i, entry in ipairs(list) do
        local k = place[i]
        if k then
            local inflation = (shifts.inflation(common, k, #lists[k]) +
                shifts.inflation(common, k + 1, #lists[k + 1])) / 2
            entry.shift = shifts.shift(lists[k], lists[k + 1], inflation)
            sampled[#sampled + 1] = entry.shift
        elseif not entry.verdict then
            entry.shift = shift_of_medians(entry.a, entry.b)
        end
    end
    shifts.moderate(sampled)
end

-- To two digits, not below.
local function rounded_up(n)
    local step = n > 100 and 10 or 1
    if n > 1000 then step = 100 end
    return ceil(n / step) * step
end

-- --- verdicts ---------------------------------------------------------------

-- SLOWER or FASTER: the estimate is beyond the threshold, its 95 % interval
-- beyond half of it, and there being no change at all is refuted beside the
-- other points of the table. SAME: both one-sided tests at 5 % refute a change
-- beyond the threshold (Schuirmann, A comparison of the two one-sided tests
-- procedure, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
local function judge(entry, threshold)
    local s, edge = entry.shift, log(1 + threshold)
    local low, high = shifts.interval(s, 0.025)
    local inner_low, inner_high = shifts.interval(s, 0.05)
    local half = log(1 + threshold / 2)
    entry.change = exp(s.by) - 1
    entry.low, entry.high = exp(low) - 1, exp(high) - 1
    if entry.chance < CHANCE and abs(s.by) > edge and
        (low > half or high < -half) then
        return s.by > 0 and "SLOWER" or "FASTER"
    end
    return inner_low >= -edge and inner_high <= edge and "SAME" or "UNSURE"
end

-- What would make an UNSURE sure: the samples that the same estimate would
-- take, for SAME where it is below the threshold, else for a change.
local function advice(entry, threshold, tests)
    local s, edge = entry.shift, log(1 + threshold)
    local distance, needed = abs(s.by), nil
    if distance <= edge then
        needed = shifts.needed(s, edge - distance, 0.05)
    else
        needed = larger(shifts.needed(s, distance, CHANCE / 2 / tests),
            shifts.needed(s, distance - log(1 + threshold / 2), 0.025))
    end
    needed = larger(needed, count_of(entry.a) + 1, count_of(entry.b) + 1)
    if needed > MOST_NEEDED then
        return nil, format("more than %d samples would be needed",
            MOST_NEEDED)
    end
    return ceil(needed), format("about %d samples would tell",
        rounded_up(needed))
end

local function judge_all(list, threshold)
    local tested, chances = {}, {}
    for _, entry in ipairs(list) do
        if entry.shift then
            tested[#tested + 1] = entry
            chances[#tested] = shifts.chance(entry.shift)
        end
    end
    local adjusted = distributions.together(chances)
    for i, entry in ipairs(tested) do
        entry.chance = adjusted[i]
        entry.verdict = judge(entry, threshold)
        if entry.verdict == "UNSURE" then
            entry.needed, entry.why = advice(entry, threshold, #tested)
        end
    end
    for _, entry in ipairs(list) do entry.shift = nil end
end

-- --- both runs --------------------------------------------------------------

-- The source that an experiment, its directory, a file of results or a list
-- of rows stands for, and its name.
local function open(x, which)
    if type(x) == "string" then
        if match(x, "%.jsonl$") or match(x, "%.csv$") then
            local rows = require "lumat.export".read("compare", x)
            return sources.source("compare", rows), x
        end
        return sources.source("compare", library.experiment.open(x)), x
    end
    if type(x) ~= "table" then
        checks.fail("compare", "%s is %s; expected an experiment, its " ..
            "directory, a .jsonl or .csv file, or a list of rows", which,
            checks.brief(x))
    end
    local source = sources.source("compare", x)
    return source, source.name or which
end

-- The rows by their parameters; of points measured again the later counts.
local function by_parameters(source)
    local found = {}
    for _, row in ipairs(source.rows) do
        found[sources.signature(row.p)] = row
    end
    return found
end

-- The rows of the source that are the last of their point, in order.
local function last_rows(source)
    local last, list = by_parameters(source), {}
    for _, row in ipairs(sources.ordered(source, source.rows)) do
        if last[sources.signature(row.p)] == row then list[#list + 1] = row end
    end
    return list, last
end

-- The points both runs have, and the parameters of those that one has alone.
local function matched(old, new)
    local list, alone = {}, {{}, {}}
    local old_rows, before = last_rows(old)
    local new_rows, after = last_rows(new)
    for place, row in ipairs(new_rows) do
        local other = before[sources.signature(row.p)]
        if other then
            local entry = {p = row.p, a = other, b = row, place = place,
                before = other.median, after = row.median,
                differs = origins.differences(old, other, new, row)}
            entry.verdict, entry.why = obstacle(other, row)
            if entry.verdict == "SAME" then
                entry.change, entry.low, entry.high = 0, 0, 0
                entry.chance = 1
            end
            list[#list + 1] = entry
        else
            alone[2][#alone[2] + 1] = row.p
        end
    end
    for _, row in ipairs(old_rows) do
        if not after[sources.signature(row.p)] then
            alone[1][#alone[1] + 1] = row.p
        end
    end
    return list, alone
end

-- Errors that are not what they were, but for rounding.
local ALIKE = 0.01
local function note_error(entry)
    local a, b = entry.a.check, entry.b.check
    if a == b or entry.verdict == "FAILED" then return end
    if a and b and abs(a - b) <= ALIKE * larger(abs(a), abs(b)) then return end
    entry.error_before, entry.error_after = a, b
    entry.error_differs = true
end

local order = {SLOWER = 1, FASTER = 2, UNSURE = 3, FAILED = 4, SAME = 5}

local function sort_entries(list)
    sort(list, function(a, b)
        if a.verdict ~= b.verdict then
            return order[a.verdict] < order[b.verdict]
        end
        return a.place < b.place
    end)
end

local function counts_of(list)
    local counts = {SLOWER = 0, FASTER = 0, UNSURE = 0, FAILED = 0, SAME = 0}
    for _, entry in ipairs(list) do
        counts[entry.verdict] = counts[entry.verdict] + 1
    end
    return counts
end

-- compare(a, b [, {threshold=}]): a list of {verdict, p, before, after,
-- change, low, high, chance, needed, why, differs} that shows itself, with the
-- fields counts and alone.
comparing.compare = checks.placed(function(a, b, options)
    local o = sources.options("compare", options, {threshold = "number"})
    local threshold = o.threshold or THRESHOLD
    if not (threshold > 0 and threshold < 1) then
        checks.fail("compare", "threshold is %g, expected a share such as " ..
            "0.02", threshold)
    end
    local old, old_name = open(a, "before")
    local new, new_name = open(b, "after")
    if old_name == new_name then old_name = old_name .. " (before)" end
    local list, alone = matched(old, new)
    add_shifts(list)
    judge_all(list, threshold)
    for _, entry in ipairs(list) do
        note_error(entry)
        entry.a, entry.b = nil, nil
    end
    sort_entries(list)
    list.counts, list.alone = counts_of(list), alone
    return checks.shown(list, comparison.text(list, {names = {old_name,
        new_name}, sides = {old, new}, threshold = threshold}))
end)

return comparing
