-- Axes: ranges, powers, random samples, those of several parameters; and the
-- points that the axes of an experiment make together.
local checks = require "lumat.checks"
local fail, brief = checks.fail, checks.brief
local error, getmetatable, ipairs, next, pairs, pcall, setmetatable, tostring,
    type = error, getmetatable, ipairs, next, pairs, pcall, setmetatable,
    tostring, type
local concat, sort = table.concat, table.sort
local floor, huge, math_type, to_integer = math.floor, math.huge, math.type,
    math.tointeger
local format = string.format
local axes, points_of = {}, {}

-- --- what axes are made of -------------------------------------------------
-- Values that are checked, rows of parameters, axes of several parameters, and
-- how they are multiplied out.

local MOST = 1000000 -- points

-- --- one of them ----------------------------------------------------------

-- An axis of several parameters: a list of tables {name = value}, and the
-- names in order.
local joint = {__name = "axis"}
local function is_joint(x) return getmetatable(x) == joint end
local function as_joint(rows, names)
    return setmetatable({rows = rows, names = names}, joint)
end

-- Whole numbers are integers, however they were made.
local function tidy(value)
    return math_type(value) == "float" and to_integer(value) or value
end

local function check_value(what, name, value)
    local kind = type(value)
    if kind == "number" and (value ~= value or value == huge or
        value == -huge) then
        fail(what, "axis %s has %s: values are finite", name, brief(value))
    elseif kind ~= "number" and kind ~= "string" and kind ~= "boolean" then
        fail(what, "axis %s has %s: values are numbers, strings and " ..
            "booleans; experiment.zip makes an axis of several parameters",
            name, brief(value))
    end
    return tidy(value)
end

local function check_name(what, name)
    if type(name) ~= "string" or not name:find("^[%a_][%w_]*$") then
        fail(what, "%s is no name of a parameter: letters, digits and _",
            brief(name))
    end
end

-- The values of one parameter: from a list, a vector or a single value.
local function list_of(what, name, given)
    if type(given) == "userdata" and getmetatable(given) == "matrix" then
        if given.ndim ~= 1 then
            fail(what, "axis %s is a matrix: a list or a vector is needed", name)
        end
        given = given:totable()
    end
    if type(given) ~= "table" then given = {given} end
    local list, seen = {}, {}
    for i, value in ipairs(given) do
        value = check_value(what, name, value)
        if seen[value] then
            fail(what, "axis %s has %s twice", name, brief(value))
        end
        seen[value], list[i] = true, value
    end
    for key in pairs(given) do
        if math_type(key) == "integer" and key > #list then
            fail(what, "axis %s has an entry %d, and none before it: nil is " ..
                "no value", name, key)
        elseif math_type(key) ~= "integer" or key < 1 then
            fail(what, "axis %s is a list, and has an entry %s", name,
                brief(key))
        end
    end
    if #list == 0 then fail(what, "axis %s has no values", name) end
    return list
end

-- {{n = 1}, {n = 2}} and {"n"} of whatever stands at `name`.
local function rows_of(what, name, given)
    if is_joint(given) then return given.rows, given.names end
    check_name(what, name)
    local rows = {}
    for i, value in ipairs(list_of(what, name, given)) do
        rows[i] = {[name] = value}
    end
    return rows, {name}
end

local function sorted_keys(t)
    local keys = {}
    for key in pairs(t) do keys[#keys + 1] = key end
    sort(keys, function(a, b)
        if type(a) ~= type(b) then return type(a) == "number" end
        return a < b
    end)
    return keys
end

local function union(what, ...)
    local all = {}
    for _, row in ipairs{...} do
        for name, value in pairs(row) do
            if all[name] ~= nil then
                fail(what, "parameter %s stands on two axes", name)
            end
            all[name] = value
        end
    end
    return all
end

-- The axis of several parameters that a list of tables is.
local function joint_of(what, kind, list)
    local names, rows = sorted_keys(list[1]), {}
    for i, given in ipairs(list) do
        local own = type(given) == "table" and sorted_keys(given) or {}
        if concat(own, " ") ~= concat(names, " ") then
            fail(what, "%s %d has the parameters %s, the first one %s", kind,
                i, concat(own, " "), concat(names, " "))
        end
        rows[i] = {}
        for _, name in ipairs(names) do
            check_name(what, name)
            rows[i][name] = check_value(what, name, given[name])
        end
    end
    return as_joint(rows, names)
end

-- --- several of them ------------------------------------------------------

-- {{rows, names}, …} multiplied out, the last axis fastest.
local function multiply(what, list)
    local rows, names, count = {{}}, {}, 1
    for _, axis in ipairs(list) do
        count = count * #axis.rows
        if count > MOST then
            fail(what, "the axes make %.3g points, at most %d are allowed",
                count, MOST)
        end
        local more = {}
        for _, row in ipairs(rows) do
            for _, own in ipairs(axis.rows) do
                more[#more + 1] = union(what, row, own)
            end
        end
        rows = more
        for _, name in ipairs(axis.names) do names[#names + 1] = name end
    end
    return rows, names
end

-- The axes of a table in order: first those `order` names, then others by
-- name.
local function in_order(what, given, order)
    local list, taken = {}, {}
    local function add(key)
        local rows, names = rows_of(what, key, given[key])
        list[#list + 1] = {rows = rows, names = names}
        taken[key] = true
    end
    for _, key in ipairs(order or {}) do
        if given[key] == nil then
            fail(what, "order names %s, which is no axis", brief(key))
        end
        if taken[key] then fail(what, "order names %s twice", key) end
        add(key)
    end
    for _, key in ipairs(sorted_keys(given)) do
        if not taken[key] then add(key) end
    end
    return list
end

axes.sorted_keys = sorted_keys

-- --- lists of values ------------------------------------------------------

local function check_number(what, name, x)
    if type(x) ~= "number" or x ~= x or x == huge or x == -huge then
        fail(what, "%s is %s, expected a finite number", name, brief(x))
    end
    return x
end

local function check_count(what, k)
    if math_type(tidy(k)) ~= "integer" or k < 1 or k > MOST then
        fail(what, "the number of values is %s, expected 1 to %d", brief(k),
            MOST)
    end
    return tidy(k)
end
axes.check_count = check_count

-- From first to last, both included where the step fits.
function axes.range(first, last, step)
    local what = "experiment.range"
    check_number(what, "first", first)
    check_number(what, "last", last)
    step = step or 1
    if check_number(what, "step", step) == 0 or (last - first) / step < 0 then
        fail(what, "a step of %s does not lead from %s to %s", step, first,
            last)
    end
    local list = {}
    for i = 0, check_count(what, floor((last - first) / step + 1e-9) + 1) - 1 do
        list[i + 1] = tidy(first + i * step)
    end
    return list
end

row{
    name = "pow2",
    takes = "first: integer, last: integer",
    gives = "table",
    group = "experiments",
    help = "A list of the powers 2^first … 2^last, for the axis of an " ..
        "experiment.",
    example = "pow2(6, 8)[3]",
    result = "256",
}
-- 2^first … 2^last.
function axes.pow2(first, last)
    local what = "pow2"
    for _, e in ipairs{first or huge, last or huge} do
        if math_type(tidy(e)) ~= "integer" or e < -1022 or e > 1023 then
            fail(what, "the exponents are whole numbers, not %s and %s",
                brief(first), brief(last))
        end
    end
    if last < first then
        fail(what, "goes up: the first exponent is %s, the last %s", first,
            last)
    end
    local list = {}
    for e = tidy(first), tidy(last) do list[#list + 1] = tidy(2.0 ^ e) end
    return list
end

-- `count` values from first to last, each the same multiple of the one
-- before; whole ones where first and last are and the values stay apart.
function axes.logspace(first, last, count)
    local what = "experiment.logspace"
    check_number(what, "first", first)
    check_number(what, "last", last)
    check_count(what, count)
    if not (first > 0 and last > first) or count < 2 then
        fail(what, "goes from a value above 0 to a larger one, in 2 or more: " ..
            "experiment.logspace(1, 1000, 4) has 1, 10, 100, 1000")
    end
    local list, whole = {}, {}
    for i = 0, count - 1 do
        local x = i == count - 1 and last or
            first * (last / first) ^ (i / (count - 1))
        list[i + 1], whole[i + 1] = x, to_integer(floor(x + 0.5))
    end
    if not (to_integer(first) and to_integer(last)) then return list end
    for i = 2, count do
        if whole[i] == whole[i - 1] then return list end
    end
    return whole
end

-- --- several parameters ---------------------------------------------------

-- Parameters that go together: zip{m = {1, 2}, n = {3, 4}}.
function axes.zip(given)
    local what = "experiment.zip"
    if type(given) ~= "table" or next(given) == nil then
        fail(what, "takes a table of axes: zip{m = {1, 2}, n = {3, 4}}")
    end
    local rows, names, first = {}, {}, nil
    for _, name in ipairs(sorted_keys(given)) do
        local own, own_names = rows_of(what, name, given[name])
        if first and #own ~= #rows then
            fail(what, "axis %s has %s, %s has %d", name,
                checks.plural(#own, "value"), first, #rows)
        end
        first = first or name
        for i, row in ipairs(own) do rows[i] = union(what, rows[i] or {}, row) end
        for _, n in ipairs(own_names) do names[#names + 1] = n end
    end
    return as_joint(rows, names)
end

-- Every combination, as one axis.
function axes.product(given)
    local what = "experiment.product"
    if type(given) ~= "table" or next(given) == nil then
        fail(what, "takes a table of axes: product{m = {1, 2}, n = {3, 4}}")
    end
    local rows, names = multiply(what, in_order(what, given))
    return as_joint(rows, names)
end

-- --- random samples --------------------------------------------------------
-- The same ones for the same seed.

-- SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number
-- generators, 2014): numbers from 0 up to 1, the same on every machine.
local function generator(seed)
    local state = seed
    return function()
        state = state + 0x9E3779B97F4A7C15
        local z = state
        z = (z ~ z >> 30) * 0xBF58476D1CE4E5B9
        z = (z ~ z >> 27) * 0x94D049BB133111EB
        return ((z ~ z >> 31) >> 11) * 2.0 ^ -53
    end
end

-- `count` different ones of a list.
local function choose(what, count, list, u)
    local rest, chosen = {}, {}
    for i, value in ipairs(list_of(what, "list", list)) do rest[i] = value end
    if count > #rest then
        fail(what, "%d of %d values cannot all be different", count, #rest)
    end
    for i = 1, count do
        local k = i + floor(u() * (#rest - i + 1))
        rest[i], rest[k] = rest[k], rest[i]
        chosen[i] = rest[i]
    end
    return chosen
end

-- random(count, list or function [, seed]): samples of a list, or what the
-- function makes of u, which gives numbers from 0 up to 1.
function axes.random(count, source, seed)
    local what = "experiment.random"
    count, seed = check_count(what, count), seed or 1
    if math_type(tidy(seed)) ~= "integer" then
        fail(what, "the seed is %s, expected a whole number", brief(seed))
    end
    local u = generator(tidy(seed))
    if type(source) ~= "function" then return choose(what, count, source, u) end
    local list = {}
    for i = 1, count do list[i] = source(u) end
    if type(list[1]) == "table" then return joint_of(what, "sample", list) end
    return list
end

-- --- points ----------------------------------------------------------------

-- "n = 512, kernel = \"tiled\"": how messages and lists name a point.
function points_of.name(p, names)
    local words = {}
    for _, name in ipairs(names or sorted_keys(p)) do
        if p[name] ~= nil then
            words[#words + 1] = format("%s=%s", name, tostring(p[name]))
        end
    end
    return concat(words, " ")
end

local function is_wanted(where, p, names)
    local ok, wanted = pcall(where, p)
    if not ok then
        if checks.is_interrupt(wanted) then error(wanted, 0) end
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
    if type(given[1]) == "table" and not is_joint(given[1]) then
        given = joint_of(what, "point", given) -- the points themselves
    end
    if is_joint(given) then given = {given} end
    local list = in_order(what, given, spec.order)
    local rows, names = multiply(what, list)
    local fixed = {}
    for name, value in pairs(spec.fixed or {}) do
        check_name(what, name)
        fixed[name] = check_value(what, name, value)
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

axes.points_of = points_of

return axes
