-- The plan of an experiment: what is done of it, what is to do, and how long
-- that may take.
local checks = require "lumat.checks"
local bar, points_of = require "lumat.bar", require "lumat.points"
local text_lines = require "lumat.lines"
local fields, identity = require "lumat.fields", require "lumat.code_hash"
local copied, plural = fields.copied, fields.plural
local ipairs, pairs = ipairs, pairs
local concat, format, gsub = table.concat, string.format, string.gsub
local plan_of = {}

-- How many stale rows are of points that there are now.
local function stale_points(e, store)
    local by_point, count = {}, 0
    local codes = store and store:stale(e.code.hash)
    if not codes then return {}, 0 end
    for _, row in pairs(store.rows) do
        if codes[row.code] and not store:is_dropped(row) then
            by_point[identity.canonical(row.p)] = row
        end
    end
    for _, point in ipairs(e.list) do
        if by_point[identity.canonical(point.p)] then count = count + 1 end
    end
    return by_point, count
end

local function status_of(point, store, stale)
    local row = point.row or store and store:row(point.keys)
    if row then return row.status, row end
    return stale[identity.canonical(point.p)] and "stale" or "to do"
end

local function predicted(e, store)
    local model, left, count = bar.model(), 0, 0
    for _, point in ipairs(e.list) do
        local row = point.row or store and store:row(point.keys)
        if row and row.seconds and row.seconds > 0 then
            model:add(point.cost, row.seconds)
        elseif not row then
            left, count = left + point.cost, count + 1
        end
    end
    return count > 0 and model:predict(count, left) or nil
end

local function headline_of(e, counts, seconds)
    local parts = {}
    for _, status in ipairs{"ok", "skipped", "failed", "crashed", "timeout",
        "stale", "to do"} do
        if counts[status] then
            parts[#parts + 1] = format("%d %s", counts[status],
                status == "ok" and "done" or status)
        end
    end
    return format("%s: %s%s%s: %s%s", e.title and
        format("%s (%s)", text_lines.harmless(e.title), e.name) or e.name,
        plural(#e.list, "point"),
        e.left_out > 0 and format(" (%d left out)", e.left_out) or "",
        e.dir and " in " .. e.dir or "",
        concat(parts, ", "), seconds and ", about " .. bar.clock_text(seconds) ..
        " to go" or "")
end

local PLANNED = 40 -- lines of a plan that are shown

local function plan_text(e, plan, counts, seconds)
    local lines = {headline_of(e, counts, seconds)}
    for i, item in ipairs(plan) do
        if i > PLANNED then
            lines[#lines + 1] = format("  … %d more", #plan - PLANNED)
            break
        end
        lines[#lines + 1] = format("  %-8s %s%s", item.status,
            points_of.name(item.p, e.axes),
            item.message and "  " .. gsub(item.message, "%s+", " ") or "")
    end
    return concat(lines, "\n")
end

-- The plan's items, and how many there are of each status.
local function items_of(e, store)
    local stale, items, counts = stale_points(e, store), {}, {}
    for i, point in ipairs(e.list) do
        local status, row = status_of(point, store, stale)
        counts[status] = (counts[status] or 0) + 1
        items[i] = {p = copied(point.p), status = status, cost = point.cost,
            message = row and row.message}
    end
    return items, counts
end

-- A list of {p, status, cost, message}, which shows itself.
function plan_of.of(e, store)
    local items, counts = items_of(e, store)
    return checks.shown(items, plan_text(e, items, counts, predicted(e, store)))
end

-- How many points are done, failed, to do, in a line.
function plan_of.headline(e, store)
    local _, counts = items_of(e, store)
    return headline_of(e, counts)
end

return plan_of
