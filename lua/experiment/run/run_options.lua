-- The options of `run`, from the script and from the command line.
local checks = require "lumat.checks"
local fields = require "lumat.fields"
local fail, brief = checks.fail, checks.brief
local _G, next, tonumber, tostring, type = _G, next, tonumber, tostring, type
local gsub, match = string.gsub, string.match
local math_type, to_integer = math.type, math.tointeger
local run_options = {}

local kinds = {resume = "boolean", workers = "number", devices = "table",
    shard = "string", budget = "string number", only = "function",
    retry_failed = "boolean", quiet = "boolean", stale = "string",
    mix = "boolean", threads = "number", order = "string", each = "function"}

local unit_seconds = {s = 1, m = 60, h = 3600, d = 86400, [""] = 1}

-- "90s", "10m", "1.5h", "2d" or seconds.
local function seconds_of(budget)
    local value, unit = match(tostring(budget), "^%s*([%d.]+)%s*([smhd]?)%s*$")
    local number = tonumber(value or "")
    if not number or number <= 0 then
        fail("run", "budget is %s, expected a time such as \"10m\", \"90s\" or " ..
            "\"2h\"", brief(budget))
    end
    return number * unit_seconds[unit]
end

-- Words of the command line that say how to run, as in --workers 4, go before
-- what the script says.
local words = {workers = "number", threads = "number", shard = "string", budget = "string",
    quiet = "boolean", ["retry-failed"] = "boolean"}

local function take_words(options)
    local arg = _G.arg or {}
    for i = 1, #arg do
        local name, value = match(tostring(arg[i]), "^%-%-([%a-]+)=?(.*)$")
        local kind = name and words[name]
        if kind == "boolean" then
            options[gsub(name, "%-", "_")] = true
        elseif kind then
            if value == "" then value = tostring(arg[i + 1] or "") end
            options[name] = kind == "number" and tonumber(value) or value
        end
    end
    return options
end

-- 2 and 8 of "2/8".
function run_options.shard(shard)
    local i, n = match(shard, "^%s*(%d+)%s*/%s*(%d+)%s*$")
    i, n = to_integer(tonumber(i)), to_integer(tonumber(n))
    if not i or n < 1 or i < 1 or i > n then
        fail("run", "shard is %s, expected \"2/8\" for the second of eight " ..
            "parts", brief(shard))
    end
    return i, n
end

local stale_ways = {drop = true, keep = true}
local run_orders = {given = true, interleaved = true, longest = true}

-- Processes, or threads of one.
local function check_count(name, n)
    if n and (math_type(to_integer(n)) ~= "integer" or n < 1 or n > 1024) then
        fail("run", "%s is %s, expected a whole number from 1 to 1024", name,
            brief(n))
    end
    return to_integer(n)
end

local function check_devices(list)
    local count = 0
    for _, name in next, list or {} do
        count = count + 1
        if type(name) ~= "string" then count = -1 break end
    end
    if list and (count < 1 or count ~= #list) then
        fail("run", "devices is no list of their names, such as {\"cuda:0\", " ..
            "\"cuda:1\"}")
    end
end

-- The options of a run, checked, with those of the command line.
function run_options.read(given)
    if given ~= nil and type(given) ~= "table" then
        fail("run", "the options are %s, expected a table", brief(given))
    end
    local o = take_words(fields.copied(given or {}))
    fields.check("run", o, kinds)
    o.workers = check_count("workers", o.workers)
    o.threads = check_count("threads", o.threads)
    check_devices(o.devices)
    if o.stale and not stale_ways[o.stale] then
        fail("run", "stale is %s, expected \"drop\" or \"keep\"", brief(o.stale))
    elseif o.order and not run_orders[o.order] then
        fail("run", "order is %s, expected \"interleaved\", \"given\" or " ..
            "\"longest\"", brief(o.order))
    end
    if o.budget then o.budget = seconds_of(o.budget) end
    return o
end

return run_options
