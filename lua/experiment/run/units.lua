-- Units: points that are claimed and measured together, as they share what
-- setup makes. Which those are is known before anything runs, and the same in
-- every process: by `group`, or by what the text of setup reads.
local journal = require "lumat.journal"
local checks = require "lumat.checks"
local identity = require "lumat.code_hash"
local fail, brief = checks.fail, checks.brief
local error, ipairs, next, setmetatable, type = error, ipairs, next,
    setmetatable, type
local concat, sort = table.concat, table.sort
local format = string.format
local units = {}

-- Points of a unit that the text of setup makes: all of them are in flight at
-- once. Those that `group` names are as many as there are.
local MOST = 16

-- --- what a unit shares ---------------------------------------------------

local function as_set(list)
    local set = {}
    for _, name in ipairs(list) do set[name] = true end
    return set
end

local function check_group(group, axes)
    local known = as_set(axes)
    for _, name in ipairs(group) do
        if not known[name] then
            local near = type(name) == "string" and
                journal.nearest(name, concat(axes, " "))
            fail("experiment", "group names %s, which is no axis: %s",
                brief(name), near and "did you mean " .. near .. "?" or
                "there are " .. concat(axes, " "))
        end
    end
    return as_set(group)
end

-- The names of the parameters in which the points of a unit agree, and how
-- many points it has at most; nil: every point is a unit of its own.
function units.shared(spec, axes)
    local group, reads, most = spec.group, nil, nil
    if type(group) == "string" then group = {group} end
    if group then
        reads = check_group(group, axes)
    elseif group == nil and spec.setup then
        reads, most = identity.reads(spec.setup, "setup"), MOST
    end
    if not reads then return nil end
    local names = {}
    for _, name in ipairs(axes) do
        if reads[name] then names[#names + 1] = name end
    end
    if #names == #axes then return nil end
    for name in next, spec.fixed or {} do names[#names + 1] = name end
    return names, most
end

-- --- units ----------------------------------------------------------------

local function part_of(p, names)
    local part = {}
    for _, name in ipairs(names) do part[name] = p[name] end
    return part
end

-- All points in units {points, name, part, shared}, whatever a run chooses of
-- them.
function units.divide(list, shared, most)
    local all, open = {}, {}
    for _, point in ipairs(list) do
        local name = shared and identity.canonical(part_of(point.p, shared))
        local unit = name and open[name]
        if not unit or most and #unit.points >= most then
            unit = {points = {}, name = name, shared = shared,
                part = unit and unit.part + 1 or 1}
            all[#all + 1] = unit
            if name then open[name] = unit end
        end
        unit.points[#unit.points + 1] = point
    end
    return all
end

local function of_one(point)
    return {points = {point}, key = point.keys[1], index = point.index,
        cost = point.cost}
end

local function key_of(unit, code)
    return journal.hash(format("part %d of %s\n%s", unit.part, unit.name, code))
end

-- Units with those of their points that are wanted: {points, key (of the
-- claim), index, cost, is_group, shared}.
function units.chosen(all, points, code)
    local wanted, list = {}, {}
    for _, point in ipairs(points) do wanted[point] = true end
    for _, unit in ipairs(all) do
        local chosen, cost = {}, 0
        for _, point in ipairs(unit.points) do
            if wanted[point] then
                chosen[#chosen + 1], cost = point, cost + point.cost
            end
        end
        if #chosen > 0 and #unit.points == 1 then
            list[#list + 1] = of_one(chosen[1])
        elseif #chosen > 0 then
            list[#list + 1] = {points = chosen, cost = cost, is_group = true,
                key = key_of(unit, code), index = chosen[1].index,
                shared = unit.shared}
        end
    end
    return list
end

-- The points of some units, one unit after the other.
function units.points(list)
    local points = {}
    for _, unit in ipairs(list) do
        for _, point in ipairs(unit.points) do points[#points + 1] = point end
    end
    return points
end

-- A unit's points, each one alone.
function units.apart(unit)
    local list = {}
    for i, point in ipairs(unit.points) do list[i] = of_one(point) end
    return list
end

local orders = {
    given = function(a, b) return a.index < b.index end,
    -- by key: as if shuffled, and always the same
    interleaved = function(a, b) return a.key < b.key end,
    longest = function(a, b)
        if a.cost ~= b.cost then return a.cost > b.cost end
        return a.key < b.key
    end,
}

-- The units in the order in which they are claimed.
function units.in_order(list, order)
    local sorted = {}
    for i, unit in ipairs(list) do sorted[i] = unit end
    sort(sorted, orders[order])
    return sorted
end

-- --- what setup gets ------------------------------------------------------

-- The parameters in which the points of a group agree: a table like p in
-- which the others cannot be read.
function units.parameters(p, shared)
    local own = part_of(p, shared)
    return setmetatable(own, {__index = function(_, name)
        if p[name] ~= nil then
            error(format("it reads p.%s, in which the points of a group " ..
                "differ: group = {…} names what they have in common, and " ..
                "group = false sets up each point anew", name), 0)
        end
    end})
end

return units
