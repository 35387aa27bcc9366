-- Timing a function rightly on either device.
local library = ...
local checks = require "lumat.checks"
local type, sort = type, table.sort
local ceil, larger, smaller = math.ceil, math.max, math.min
local format = string.format

local function median(list)
    sort(list)
    local n = #list
    return n % 2 == 1 and list[(n + 1) // 2] or
        (list[n // 2] + list[n // 2 + 1]) / 2
end

-- Seconds that one timing should span: on a GPU the two events and what lies
-- between them and the work cost microseconds, the CPU's clock far less.
local function worth_timing(device)
    return device == "cpu" and 2e-5 or 1e-3
end

-- How many calls to time at once so that they span `aim` seconds. A few calls
-- tell better than one, which pays for both ends alone.
local function batch_for(time, aim)
    local one = larger(time(1), 1e-9)
    if one >= aim then return 1 end
    local few = smaller(16, ceil(aim / one))
    one = larger(time(few) / few, 1e-9)
    return smaller(1000000, ceil(aim / one))
end

checks.add("bench", "bench(f [, {seconds=, least=, device=}])",
    "Times f() until `seconds` (0.3) have passed and it ran `least` (5) " ..
    "times, after a warm-up. Fields: median, low, high (seconds), runs.",
    "bench(function() end, {seconds = 0.01}).runs >= 5", "true",
    function(f, options)
        if type(f) ~= "function" then
            checks.fail("bench", "f is %s, expected a function",
                checks.brief(f))
        end
        options = checks.options("bench", options,
            {seconds = "number", least = "number", device = "string"})
        local seconds, least = options.seconds or 0.3, options.least or 5
        local device = options.device or library.device()
        local clock, timed = library.clock, library.timed
        local function time(calls)
            return (timed(function()
                for _ = 1, calls do f() end
            end, device))
        end
        time(1)
        local batch = batch_for(time,
            smaller(worth_timing(device), seconds / least))
        local times, stop = {}, clock() + seconds
        repeat
            times[#times + 1] = time(batch) / batch
        until #times >= least and clock() > stop
        local middle = median(times)
        local low, high = times[1 + #times // 4], times[#times - #times // 4]
        return checks.shown({median = middle, low = low, high = high,
                             runs = #times * batch},
            format("%.4g us  (%.4g to %.4g, %d runs)", middle * 1e6,
                low * 1e6, high * 1e6, #times * batch))
    end)

package.loaded["lumat.timing"] = {batch_for = batch_for}
