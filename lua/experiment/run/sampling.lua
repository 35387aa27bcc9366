-- How samples are taken: when there are enough of them, and caches that are
-- cold before each.
local library = ...
local checks = require "lumat.checks"
local statistics = require "lumat.statistics"
local sampling = {}
local io, next, tonumber, type = io, next, tonumber, type
local format, match = string.format, string.match
local ceil, huge, larger = math.ceil, math.huge, math.max

-- --- when to stop -----------------------------------------------------------

-- Samples are taken until the interval of their median is narrower than
-- `interval` of it, and there are `least`; at most `most`, at most for
-- `seconds`. PATIENCE times that even where there are fewer than `least`.
local rule = {interval = 0.01, least = 10, most = 100, seconds = 1}
local PATIENCE = 10
sampling.SPAN = 1e-3 -- seconds of a sample, if need be of many runs

local function check_count(name, value, least)
    if value ~= nil and not (type(value) == "number" and value >= least and
        value == ceil(value) and value < huge) then
        checks.fail("experiment", "%s is %s, expected a whole number from %d on",
            name, checks.brief(value), least)
    end
end

-- The rule of a specification; raises when it is none.
function sampling.rule_of(spec)
    local stop, repeats = spec.stop, spec.repeats
    check_count("repeats", repeats, 1)
    check_count("warmup", spec.warmup, 0)
    if type(stop) == "function" then
        return {done = stop, least = 1, most = repeats or huge, seconds = huge,
            interval = 0}
    end
    local given = checks.options("experiment.stop", stop)
    if given.least and given.most and given.least > given.most then
        checks.fail("experiment", "stop: least is %s, more than most, %s",
            given.least, given.most)
    end
    if repeats and next(given) ~= nil then
        checks.fail("experiment", "repeats and stop both say how many samples " ..
            "there are: repeats = %d alone takes as many, stop = {most = %d} " ..
            "as many at most", repeats, repeats)
    end
    local r = {}
    for name, value in next, rule do r[name] = given[name] or value end
    if repeats then
        r.least, r.most, r.seconds = repeats, repeats, huge
    end
    return r
end

local function narrow(samples, limit)
    if #samples < statistics.fewest then return false end
    local median, low, high = statistics.interval(samples)
    return high - low <= limit * median
end

-- spent: seconds since the first sample was begun. The interval is looked at
-- now and then, or sorting would cost more than measuring.
function sampling.is_done(r, samples, spent)
    local n = #samples
    if n >= r.most then return true end
    if r.done then return n > 0 and r.done(samples, spent) or false end
    if n < r.least then return n > 0 and spent > PATIENCE * r.seconds end
    if spent > r.seconds then return true end
    return (n < 32 or n % 16 == 0) and n < r.most and
        r.most > r.least and narrow(samples, r.interval)
end

-- Which sample the n-th is, in words; nil where there is only one.
function sampling.name(r, n)
    if r.most == 1 then return nil end
    return format(r.least == r.most and "sample %d of %d" or "sample %d", n,
        r.most)
end

-- --- cold caches ------------------------------------------------------------

local GPU_CACHE = 2 ^ 28 -- above the L2 cache of any GPU there is

-- Bytes of the CPU's last cache, or what it may have where nothing tells.
local function cpu_cache()
    local most = 2 ^ 25
    for index = 0, 4 do
        local path = "/sys/devices/system/cpu/cpu0/cache/index%d/size"
        local file = io and io.open and io.open(format(path, index))
        if file then
            local size, unit = match(file:read("l") or "", "^(%d+)([KMG]?)")
            file:close()
            local scale = {K = 2 ^ 10, M = 2 ^ 20, G = 2 ^ 30}
            most = larger(most, (tonumber(size) or 0) * (scale[unit] or 1))
        end
    end
    return most
end

-- A function that fills the device's caches with other data than the work's,
-- by reading and writing more than they hold.
local sweepers = {}
function sampling.sweeper(device)
    if not sweepers[device] then
        local bytes = device == "cpu" and 1.25 * cpu_cache() or GPU_CACHE
        local buffer = library.zeros(ceil(bytes / 4),
            {dtype = "f32", device = device})
        sweepers[device] = function() buffer:add_(1) end
    end
    return sweepers[device]
end

return sampling
