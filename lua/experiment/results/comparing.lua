-- experiment.compare: two sets of rows beside one another.
local library = ...
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local scales = require "lumat.scales"
local distributions = require "lumat.statistics".distributions
local lines_of = require "lumat.labels".lines
local origins = require "lumat.environment".origins
local sources = require "lumat.sources"
local statistics = require "lumat.statistics"
local texts = require "lumat.texts"
local ipairs, type = ipairs, type
local concat, sort = table.concat, table.sort
local abs, ceil, exp, floor, huge, larger, log, smaller, sqrt = math.abs,
    math.ceil, math.exp, math.floor, math.huge, math.max, math.log, math.min,
    math.sqrt
local format, match = string.format, string.match
local comparing, comparison, shifts = {}, {}, {}

-- --- shifts ----------------------------------------------------------------
-- By which factor the samples of one list are above those of another: nothing
-- is assumed of the shape of their noise but that it is alike.

-- Samples each from which a 95 % interval can be told, by a wide margin.
shifts.fewest = 5

-- --- dependence -------------------------------------------------------------

local WEIGHT = 50 -- samples that outweigh what all lists have in common
local MOST = 0.9 -- correlation that is believed

-- What few samples leave of a correlation of neighbours (Kendall, Note on bias
-- in the estimation of autocorrelation, Biometrika 41, 1954).
local function left_of(n)
    return 1 - smaller(4 / n, 0.6)
end

-- The correlation of the ranks of neighbours and of next but ones.
local function correlations(list)
    local n, place, rank = #list, {}, {}
    for i = 1, n do place[i] = i end
    table.sort(place, function(i, j)
        if list[i] ~= list[j] then return list[i] < list[j] end
        return i < j
    end)
    for r, i in ipairs(place) do rank[i] = r - (n + 1) / 2 end
    local squares, one, two = 0, 0, 0
    for i = 1, n do
        squares = squares + rank[i] ^ 2
        one = one + rank[i] * (rank[i - 1] or 0)
        two = two + rank[i] * (rank[i - 2] or 0)
    end
    local share = left_of(n)
    if list[place[1]] == list[place[n]] then return 0, 0 end
    return (one / squares + 1 / n) / share, (two / squares + 1 / n) / share
end

-- Samples that independent noise would make as good an estimate from.
local function weight_of(n)
    return n * left_of(n) ^ 2
end

-- What is common to the lists of a table, as they come from one machine: the
-- mean correlation of neighbours, and how it falls with their distance.
function shifts.common(lists)
    local one, two, sum, own = 0, 0, 0, {}
    for i, list in ipairs(lists) do
        local r1, r2 = correlations(list)
        local weight = weight_of(#list)
        own[i] = r1
        one, two, sum = one + weight * r1, two + weight * r2, sum + weight
    end
    local r1, r2 = one / (sum + WEIGHT), two / (sum + WEIGHT)
    local falls = r1 > 0 and r2 * r1 / (r1 * r1 + 1 / (sum + WEIGHT)) or 0
    return {own = own, mean = r1, falls = falls}
end

-- How many times the variance of a mean is that of independent samples where
-- the i-th list's are correlated by r, r g, r g² …: 1 + 2 r / (1 - g), after
-- Bartlett (1935), but no more than there are samples: those that are all alike
-- are worth one. r is drawn towards what the other lists have.
function shifts.inflation(common, i, count)
    local weight = weight_of(count)
    local r = (weight * common.own[i] + WEIGHT * common.mean) /
        (weight + WEIGHT)
    r = smaller(larger(r, 0), MOST)
    return smaller(count,
        1 + 2 * r / (1 - smaller(larger(common.falls, r), MOST)))
end

-- --- the shift --------------------------------------------------------------

local function logarithms(list)
    local logs = {}
    for i, x in ipairs(list) do logs[i] = log(x) end
    return statistics.sorted(logs)
end

-- How many y - x of sorted lists are d or below.
local function count_below(a, b, d)
    local count, j = 0, 1
    for i = 1, #a do
        local edge = a[i] + d
        while j <= #b and b[j] <= edge do j = j + 1 end
        count = count + j - 1
    end
    return count
end

-- The largest y - x that is d or below, but for rounding.
local function difference_at(a, b, d)
    local most, j = -huge, 0
    for i = 1, #a do
        local edge = a[i] + d
        while j < #b and b[j + 1] <= edge do j = j + 1 end
        if j > 0 then most = larger(most, b[j] - a[i]) end
    end
    return most > -huge and most or d
end

-- The k-th smallest y - x, by halving: no list of all pairs is needed.
local function nth_difference(a, b, k)
    local low, high = b[1] - a[#a], b[#b] - a[1]
    if count_below(a, b, low) >= k then return low end
    for _ = 1, 60 do
        local d = (low + high) / 2
        if d <= low or d >= high then break end
        if count_below(a, b, d) >= k then high = d else low = d end
    end
    return difference_at(a, b, high)
end

local function middle_difference(a, b)
    local pairs_of = #a * #b
    local d = nth_difference(a, b, pairs_of // 2 + 1)
    if pairs_of % 2 == 1 then return d end
    return (d + nth_difference(a, b, pairs_of // 2)) / 2
end

-- The shift of log(b) from log(a): `by` (Hodges and Lehmann, Estimates of
-- location based on rank tests, Annals of Mathematical Statistics 34, 1963),
-- its standard `error` from the width of its interval (Moses; Hollander and
-- Wolfe, Nonparametric Statistical Methods, 4.3), made larger by `inflation`,
-- and the degrees of freedom `df` that are left. inflation: of the variance.
function shifts.shift(a, b, inflation)
    a, b = logarithms(a), logarithms(b)
    local n, m = #a, #b
    local r, tail = distributions.rank(n, m, 0.025)
    local low = nth_difference(a, b, r)
    local high = nth_difference(a, b, n * m + 1 - r)
    local width = (high - low) / 2
    local t = distributions.t_quantile(tail, n + m - 2)
    local df = floor((n + m) / inflation - 2 + 0.5)
    return {by = middle_difference(a, b), df = larger(df, 2),
        error = sqrt(inflation) * width / t, share = n * m / (n + m)}
end

-- Of few samples all may happen to lie close: a shift whose noise is below
-- what is usual in the table is taken as if so many degrees of freedom told of
-- the usual one (after Smyth; never towards less noise): the fewer the more the
-- noise of the points differs, so that one of them that is all noise does not
-- make the others unsure. Samples that are all the same have none.
local USUAL_DF = 3
function shifts.moderate(list)
    local noisy, variances, dfs = {}, {}, {}
    for _, s in ipairs(list) do
        if s.error > 0 then
            local n = #noisy + 1
            noisy[n], variances[n], dfs[n] = s, s.error ^ 2 * s.share, s.df
        end
    end
    if #noisy < 2 then return end
    local worth, usual = distributions.common_variance(variances, dfs)
    worth = smaller(worth, USUAL_DF)
    for i, s in ipairs(noisy) do
        local moderated = (worth * usual + s.df * variances[i]) /
            (worth + s.df)
        s.error = sqrt(larger(variances[i], moderated) / s.share)
    end
end

-- --- what it says -----------------------------------------------------------

-- How likely a shift as large is where there is none.
function shifts.chance(s)
    if s.error <= 0 then return s.by == 0 and 1 or 0 end
    return distributions.t_beyond(abs(s.by) / s.error, s.df)
end

-- The ends of the interval that leaves out `tail` at either side.
function shifts.interval(s, tail)
    local reach = s.error * distributions.t_quantile(tail, s.df)
    return s.by - reach, s.by + reach
end

-- Samples each with which a `distance` is told with a power of 80 % from
-- nothing, where the test leaves out `tail` at a side.
function shifts.needed(s, distance, tail)
    if distance <= 0 then return huge end
    local z = distributions.normal_quantile(tail) +
        distributions.normal_quantile(0.2)
    return 2 * s.share * (s.error * z / distance) ^ 2
end

-- --- what is said ----------------------------------------------------------
-- The text of a comparison: what was found, what is not comparable, the table.

local FEW = 10 -- points that are named one by one

local function plural(n, word)
    return format("%d %s%s", n, word, n == 1 and "" or "s")
end

-- --- the table --------------------------------------------------------------

local function time_text(seconds)
    if not seconds then return "-" end
    local scale, unit = scales.time_unit(seconds)
    return scales.significant(seconds / scale, 4) .. " " .. unit
end

local function error_text(x)
    return x == nil and "none" or type(x) == "number" and format("%.1e", x) or
        sources.plain(x)
end

-- What is to be said of an entry besides its figures.
local function note_of(entry)
    local parts = {}
    if entry.why then parts[1] = entry.why
    elseif entry.chance then parts[1] = format("p = %.1g", entry.chance) end
    if entry.error_differs then
        parts[#parts + 1] = format("error %s -> %s",
            error_text(entry.error_before), error_text(entry.error_after))
    end
    return concat(parts, "; ")
end

-- A share in per cent with its sign, and none of what is shown as 0.
local function percent(x)
    local text = format("%+.1f", 100 * x)
    return (text == "-0.0" or text == "+0.0") and "0.0" or text
end

-- A change of less than ten times is a share; beyond that it is a factor.
local TIMES = 10
local function is_large(x)
    return 1 + x > TIMES or 1 + x < 1 / TIMES
end

local function times(x)
    local factor = 1 + x
    local by = factor < 1 and 1 / factor or factor
    return (factor < 1 and "/ " or "x ") ..
        format(by < 1e4 and "%.3g" or "%.1e", by)
end

local function change_text(x)
    return is_large(x) and times(x) or percent(x) .. " %"
end

local function interval_text(low, high)
    if is_large(low) or is_large(high) then
        return times(low) .. " .. " .. times(high)
    end
    return percent(low) .. " .. " .. percent(high) .. " %"
end

local function entry_line(entry, axes)
    local line = {entry.verdict}
    for _, name in ipairs(axes) do
        line[#line + 1] = entry.p[name] == nil and "-" or
            sources.plain(entry.p[name])
    end
    line[#line + 1] = time_text(entry.before)
    line[#line + 1] = time_text(entry.after)
    line[#line + 1] = entry.change and change_text(entry.change) or "-"
    line[#line + 1] = entry.change and
        interval_text(entry.low, entry.high) or "-"
    line[#line + 1] = note_of(entry)
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
    return concat(lines_of.aligned(lines, left, 1 + #axes, (texts.style())),
        "\n")
end

-- --- above it ---------------------------------------------------------------

local function add_alone(lines, points, name, axes)
    if #points == 0 then return end
    lines[#lines + 1] = format("  %s only in %s:", plural(#points, "point"),
        name)
    for i = 1, #points <= FEW and #points or FEW - 1 do
        lines[#lines + 1] = "    " .. sources.describe(axes, points[i])
    end
    if #points > FEW then
        lines[#lines + 1] = format("    and %d more", #points - FEW + 1)
    end
end

-- What was not the same when the rows were measured, and for how many.
local function add_differences(lines, list)
    local counts, found = {}, {}
    for _, entry in ipairs(list) do
        for _, text in ipairs(entry.differs or {}) do
            if not counts[text] then found[#found + 1] = text end
            counts[text] = (counts[text] or 0) + 1
        end
    end
    sort(found)
    for _, text in ipairs(found) do
        lines[#lines + 1] = format("  NOT ALIKE: %s (%s)", text,
            counts[text] == #list and "all points" or
                plural(counts[text], "point"))
    end
end

local function add_errors(lines, list)
    local count, worse = 0, 0
    for _, entry in ipairs(list) do
        local a, b = entry.error_before, entry.error_after
        if entry.error_differs then count = count + 1 end
        if a and b and b > a then worse = worse + 1 end
    end
    if count > 0 then
        lines[#lines + 1] = format("  the error differs at %s%s",
            plural(count, "point"), worse > 0 and format(
                ", and is larger at %d", worse) or "")
    end
end

local function middle_change(list)
    local changes = {}
    for _, entry in ipairs(list) do
        changes[#changes + 1] = entry.change
    end
    return #changes > 1 and columns.stats.median(changes)
end

-- The text: o has names and sides (sources) of both runs, and the threshold.
function comparison.text(list, o)
    local lines = {format("%s -> %s: %s compared, changes under %g %% do " ..
        "not count", o.names[1], o.names[2], plural(#list, "point"),
        100 * o.threshold)}
    add_differences(lines, list)
    for i = 1, 2 do
        add_alone(lines, list.alone[i], o.names[i], o.sides[i].axes)
    end
    add_errors(lines, list)
    local counts, middle = list.counts, middle_change(list)
    lines[#lines + 1] = format("  FASTER %d   SLOWER %d   SAME %d   UNSURE %d",
        counts.FASTER, counts.SLOWER, counts.SAME, counts.UNSURE) ..
        (counts.FAILED > 0 and format("   FAILED %d", counts.FAILED) or "") ..
        (middle and "   median change " .. change_text(middle) or "")
    for i, line in ipairs(lines) do lines[i] = lines_of.harmless(line) end
    if #list > 0 then
        lines[#lines + 1] = table_text(list, o.sides[2].axes)
    end
    return concat(lines, "\n")
end

-- --- comparing -------------------------------------------------------------
-- Two runs of an experiment beside each other: which points became faster or
-- slower, which are the same, and which cannot be told.

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
    local o = checks.options("experiment.compare", options)
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

comparing.shifts = shifts

return comparing
