-- Two runs of an experiment beside each other: which points became faster or
-- slower, and which cannot be told.
local library = ...
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local sources = require "lumat.sources"
local statistics = require "lumat.statistics"
local lines_of = require "lumat.lines"
local comparing = {}
local ipairs, type = ipairs, type
local next, abs, format = next, math.abs, string.format
local concat, sort = table.concat, table.sort
local match = string.match

local THRESHOLD = 0.02 -- smaller changes do not count
local CHANCE = 0.01 -- that a rank test leaves to noise
local ENOUGH = 9 -- samples from which the rank test says something

-- --- one row ----------------------------------------------------------------

-- Median and interval of a row, wider where its samples drift.
local function spread(row)
    if row.samples and #row.samples >= statistics.fewest then
        return {statistics.steady_interval(row.samples)}
    end
    return {row.median, row.low or row.median, row.high or row.median}
end

-- How many samples a row rests on; of one read from a CSV file, what it says.
local function count_of(row)
    return row.samples and #row.samples or row.count or 0
end

local function chance_of(a, b)
    if a.samples and b.samples and #a.samples >= ENOUGH and
        #b.samples >= ENOUGH then
        return statistics.rank_test(a.samples, b.samples)
    end
end

-- The change counts when the median moved by more than the threshold, its
-- whole interval by more than half of it, and the rank test calls it no
-- accident. It is SAME
-- when the whole interval stays within the threshold, or within twice of it
-- with the median inside.
local function judge(entry, threshold)
    local c, low, high = entry.change, entry.low, entry.high
    local certain = not entry.chance or entry.chance < CHANCE
    if abs(c) > threshold and certain and
        (low > threshold / 2 or high < -threshold / 2) then
        return c > 0 and "SLOWER" or "FASTER"
    elseif abs(c) <= threshold and low >= -2 * threshold and
        high <= 2 * threshold then
        return "SAME"
    end
    return "UNSURE"
end

local function compare_rows(a, b, threshold)
    local entry = {p = b.p, before = a.median, after = b.median}
    if not columns.is_good(a) or not columns.is_good(b) then
        entry.verdict = "FAILED"
        entry.why = format("%s: %s", columns.is_good(a) and "now" or "before",
            columns.reason(columns.is_good(a) and b or a))
        return entry
    elseif not (a.median and b.median and a.median > 0 and b.median > 0) then
        entry.verdict, entry.why = "UNSURE", "a time of zero"
        return entry
    end
    local before, after = spread(a), spread(b)
    if before[2] <= 0 or after[2] <= 0 then
        entry.verdict, entry.why = "UNSURE", "a time of zero"
        return entry
    end
    entry.change, entry.low, entry.high = statistics.change(before, after)
    entry.chance = chance_of(a, b)
    entry.verdict = judge(entry, threshold)
    local n, m = count_of(a), count_of(b)
    if n < statistics.fewest or m < statistics.fewest then
        entry.verdict = "UNSURE"
        entry.why = format("%d and %d samples, %d needed", n, m,
            statistics.fewest)
    end
    return entry
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
    return sources.source("compare", x), x.name or which
end

-- The rows by their parameters; of points measured again the later counts.
local function by_parameters(source)
    local found = {}
    for _, row in ipairs(source.rows) do
        found[sources.signature(row.p)] = row
    end
    return found
end

local order = {SLOWER = 1, FASTER = 2, UNSURE = 3, FAILED = 4, SAME = 5}

local function match_rows(old, new, threshold)
    local before, list, alone = by_parameters(old), {}, {0, 0}
    local after = by_parameters(new)
    for place, row in ipairs(sources.ordered(new, new.rows)) do
        local signature = sources.signature(row.p)
        if after[signature] == row then
            if before[signature] then
                local entry = compare_rows(before[signature], row, threshold)
                entry.place = place
                list[#list + 1] = entry
                before[signature] = nil
            else
                alone[2] = alone[2] + 1
            end
        end
    end
    for _ in next, before do alone[1] = alone[1] + 1 end
    sort(list, function(a, b)
        if a.verdict ~= b.verdict then
            return order[a.verdict] < order[b.verdict]
        end
        return a.place < b.place
    end)
    return list, alone
end

-- --- text -------------------------------------------------------------------

local function time_text(seconds)
    if not seconds then return "-" end
    local scale, unit = columns.time_unit(seconds)
    return columns.significant(seconds / scale, 4) .. " " .. unit
end

local function entry_line(entry, axes)
    local line = {entry.verdict}
    for _, name in ipairs(axes) do
        line[#line + 1] = entry.p[name] == nil and "-" or
            sources.plain(entry.p[name])
    end
    line[#line + 1] = time_text(entry.before)
    line[#line + 1] = time_text(entry.after)
    line[#line + 1] = entry.change and format("%+.1f %%", 100 * entry.change)
        or "-"
    line[#line + 1] = entry.change and format("%+.1f .. %+.1f %%",
        100 * entry.low, 100 * entry.high) or "-"
    line[#line + 1] = entry.why or entry.chance and
        format("p = %.1g", entry.chance) or ""
    return line
end

local function table_text(list, axes)
    local head, left, lines = {""}, {true}, {}
    for i, name in ipairs(axes) do
        head[#head + 1] = name
        left[i + 1] = type(list[1].p[name]) ~= "number"
    end
    for _, name in ipairs{"before", "after", "change", "95 % interval", ""} do
        head[#head + 1] = name
    end
    left[#head] = true
    lines[1] = head
    for _, entry in ipairs(list) do
        lines[#lines + 1] = entry_line(entry, axes)
    end
    return concat(lines_of.aligned(lines, left), "\n")
end

local function summary(list, alone, names, threshold)
    local counts = {SLOWER = 0, FASTER = 0, UNSURE = 0, FAILED = 0, SAME = 0}
    for _, entry in ipairs(list) do
        counts[entry.verdict] = counts[entry.verdict] + 1
    end
    local lines = {format("%s -> %s: %d points compared, changes under " ..
        "%g %% do not count", names[1], names[2], #list, 100 * threshold)}
    for i = 1, 2 do
        if alone[i] > 0 then
            lines[#lines + 1] = format("  %d points only in %s", alone[i],
                names[i])
        end
    end
    lines[#lines + 1] = format("  FASTER %d   SLOWER %d   SAME %d   UNSURE %d",
        counts.FASTER, counts.SLOWER, counts.SAME, counts.UNSURE) ..
        (counts.FAILED > 0 and format("   FAILED %d", counts.FAILED) or "")
    for i, line in ipairs(lines) do lines[i] = lines_of.harmless(line) end
    return counts, concat(lines, "\n")
end

-- compare(a, b [, {threshold=}]): a list of {verdict, p, before, after,
-- change, low, high, chance, why} that shows itself, with the field counts.
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
    local list, alone = match_rows(old, new, threshold)
    local counts, text = summary(list, alone, {old_name, new_name}, threshold)
    if #list > 0 then text = text .. "\n" .. table_text(list, new.axes) end
    list.counts = counts
    return checks.shown(list, text)
end)

return comparing
