-- The points that the axes of an experiment make together.
local checks = require "lumat.checks"
local parts = require "lumat.axis_parts"
local fail, union = checks.fail, parts.union
local error, ipairs, next, pairs, pcall = error, ipairs, next, pairs, pcall
local tostring, type = tostring, type
local concat, format = table.concat, string.format
local points_of = {}

-- "n = 512, kernel = \"tiled\"": how messages and lists name a point.
function points_of.name(p, names)
    local words = {}
    for _, name in ipairs(names or parts.sorted_keys(p)) do
        if p[name] ~= nil then
            words[#words + 1] = format("%s=%s", name, tostring(p[name]))
        end
    end
    return concat(words, " ")
end

local function is_wanted(where, p, names)
    local ok, wanted = pcall(where, p)
    if not ok then
        if tostring(wanted):find("interrupted", 1, true) then error(wanted, 0) end
        fail("experiment", "where fails for %s: %s",
            points_of.name(p, names), tostring(wanted))
    end
    return wanted
end

-- Which names stand on one axis together, where an axis has several.
local function joints(list)
    local joint = {}
    for _, axis in ipairs(list) do
        if #axis.names > 1 then joint[#joint + 1] = axis.names end
    end
    return joint
end

-- The points of a spec in order, the names of the parameters, how many points
-- `where` left out, and lists of the names that are zipped.
function points_of.all(spec)
    local what = "experiment"
    if type(spec.axes) ~= "table" or next(spec.axes) == nil then
        fail(what, "has no axes: axes = {n = pow2(6, 9)} makes four points")
    end
    local given = spec.axes
    if type(given[1]) == "table" and not parts.is_joint(given[1]) then
        given = parts.joint_of(what, "point", given) -- the points themselves
    end
    if parts.is_joint(given) then given = {given} end
    local list = parts.in_order(what, given, spec.order)
    local rows, names = parts.multiply(what, list)
    local fixed = {}
    for name, value in pairs(spec.fixed or {}) do
        parts.check_name(what, name)
        fixed[name] = parts.check_value(what, name, value)
    end
    local points, seen = {}, {}
    for i, row in ipairs(rows) do
        local p = union(what, row, fixed)
        if not spec.where or is_wanted(spec.where, p, names) then
            points[#points + 1] = p
            local name = points_of.name(p)
            if seen[name] then fail(what, "the point %s comes twice", name) end
            seen[name] = i
        end
    end
    if #points == 0 then
        fail(what, "where leaves none of the %d points", #rows)
    end
    return points, names, #rows - #points, joints(list)
end

return points_of
