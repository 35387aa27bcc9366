-- What axes are made of: values that are checked, rows of parameters, axes of
-- several parameters, and how they are multiplied out.
local checks = require "lumat.checks"
local fail, brief = checks.fail, checks.brief
local getmetatable, ipairs, pairs, setmetatable, type = getmetatable, ipairs,
    pairs, setmetatable, type
local concat, sort = table.concat, table.sort
local huge, to_integer, math_type = math.huge, math.tointeger, math.type
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

return {MOST = MOST, as_joint = as_joint, check_name = check_name,
    check_value = check_value, in_order = in_order, is_joint = is_joint,
    joint_of = joint_of, list_of = list_of, multiply = multiply,
    rows_of = rows_of, sorted_keys = sorted_keys, tidy = tidy, union = union}
