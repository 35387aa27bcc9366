-- The description of an experiment: which fields it has, and of what kind.
local checks = require "lumat.checks"
local fields = require "lumat.fields"
local sampling = require "lumat.sampling"
local fail, brief = checks.fail, checks.brief
local ipairs, type = ipairs, type
local find, huge = string.find, math.huge

local known_fields = {name = "string", axes = "table", measure = "function",
    dir = "string boolean", where = "function", fixed = "table", setup = "function",
    check = "function", flops = "function number", bytes = "function number",
    cost = "function number", repeats = "number", stop = "table function number",
    warmup = "number", cold = "boolean function", timeout = "number",
    order = "table", version = "number string", title = "string",
    group = "table string boolean", hold = "function number"}

local function check_name(name)
    if not name then
        fail("experiment", "has no name: experiment{name = \"sweep\", axes = " ..
            "{n = pow2(6, 9)}, measure = function(p) … end}")
    elseif not find(name, "^[%w_][%w_.-]*$") or #name > 80 then
        fail("experiment", "%q is no name: letters, digits, _ . and -", name)
    end
end

-- Numbers that the description has in the place of functions.
local function check_numbers(spec)
    for _, name in ipairs{"flops", "bytes", "cost", "hold"} do
        local x = spec[name]
        if type(x) == "number" and not (x >= 0 and x < huge) then
            fail("experiment", "%s is %s, expected a number from 0 on", name,
                brief(x))
        end
    end
    if spec.timeout and not (spec.timeout > 0 and spec.timeout < huge) then
        fail("experiment", "timeout is %s, expected seconds above 0",
            brief(spec.timeout))
    end
end

-- Raises unless the description is one.
return function(spec)
    if type(spec) ~= "table" then
        fail("experiment", "takes a table: experiment{name = …}, not %s",
            brief(spec))
    end
    fields.check("experiment", spec, known_fields)
    check_name(spec.name)
    if not spec.measure then
        fail("experiment", "%s has no measure = function(p) … end", spec.name)
    elseif spec.dir == "" or spec.dir == true then
        fail("experiment", "dir is %s, expected the name of a folder, or " ..
            "false to keep nothing", brief(spec.dir))
    elseif spec.title and not find(spec.title, "%S") then
        fail("experiment", "title is empty: without it the name stands over " ..
            "tables and pictures")
    elseif spec.group == true then
        fail("experiment", "group is true: the names of axes are expected, " ..
            "or false")
    end
    check_numbers(spec)
    sampling.rule_of(spec) -- says what is wrong with `stop`
end
