-- The text of a comparison: what was found, what is not comparable, the table.
local columns = require "lumat.columns"
local lines_of = require "lumat.lines"
local sources = require "lumat.sources"
local texts = require "lumat.texts"
local comparison = {}
local ipairs, type = ipairs, type
local concat, sort = table.concat, table.sort
local format = string.format

local FEW = 10 -- points that are named one by one

local function plural(n, word)
    return format("%d %s%s", n, word, n == 1 and "" or "s")
end

-- --- the table --------------------------------------------------------------

local function time_text(seconds)
    if not seconds then return "-" end
    local scale, unit = columns.time_unit(seconds)
    return columns.significant(seconds / scale, 4) .. " " .. unit
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

return comparison
