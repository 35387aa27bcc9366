-- Kinds of axes: ranges, powers, and those of several parameters.
local checks = require "lumat.checks"
local parts = require "lumat.axis_parts"
local fail, brief, tidy = checks.fail, checks.brief, parts.tidy
local ipairs, next, type = ipairs, next, type
local floor, huge, to_integer, math_type = math.floor, math.huge,
    math.tointeger, math.type
local axes = {}

-- --- lists of values ------------------------------------------------------

local function check_number(what, name, x)
    if type(x) ~= "number" or x ~= x or x == huge or x == -huge then
        fail(what, "%s is %s, expected a finite number", name, brief(x))
    end
    return x
end

local function check_count(what, k)
    if math_type(tidy(k)) ~= "integer" or k < 1 or k > parts.MOST then
        fail(what, "the number of values is %s, expected 1 to %d", brief(k),
            parts.MOST)
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
    for _, name in ipairs(parts.sorted_keys(given)) do
        local own, own_names = parts.rows_of(what, name, given[name])
        if first and #own ~= #rows then
            fail(what, "axis %s has %s, %s has %d", name,
                checks.plural(#own, "value"), first, #rows)
        end
        first = first or name
        for i, row in ipairs(own) do rows[i] = parts.union(what, rows[i] or {}, row) end
        for _, n in ipairs(own_names) do names[#names + 1] = n end
    end
    return parts.as_joint(rows, names)
end

-- Every combination, as one axis.
function axes.product(given)
    local what = "experiment.product"
    if type(given) ~= "table" or next(given) == nil then
        fail(what, "takes a table of axes: product{m = {1, 2}, n = {3, 4}}")
    end
    local rows, names = parts.multiply(what, parts.in_order(what, given))
    return parts.as_joint(rows, names)
end

return axes
