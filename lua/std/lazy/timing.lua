-- Timing a function rightly on either device.
local library, _, _, private = ...
local checks = require "lumat.checks"
local trace, watch = require "lumat.trace", require "lumat.watch"
local timing = {}
local require, sort = require, table.sort
local ceil, larger, smaller = math.ceil, math.max, math.min
local format, unpack = string.format, table.unpack

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

-- Seconds as a person reads them.
local function seconds_text(s)
    return require "lumat.unit_text".seconds(s, "%.4g")
end

-- What the single operation of f reached; nothing is known of several.
local function add_rate(found, event)
    if not event then return {} end
    found.operation, found.kernel = event.operation, event.kernel
    found.rate, found.unit, found.share, found.peak = library.rate(event.flops,
        event.bytes, found.median, event.dtype ~= "bool" and event.dtype or "f32",
        event.device, event.devices)
    local above = private.above_peak(found.share)
    return {event.operation .. " " .. event.kernel,
        format("%.4g %s", found.rate, found.unit),
        format("%.0f %% of %s peak", 100 * found.share, found.peak),
        above ~= "" and "(" .. above .. ")" or nil}
end

-- Seconds of a call, again and again: so many times, or for so long.
local function times_of(time, device, options)
    local seconds, least = options.seconds or 0.3, options.least or 5
    local clock, times = library.clock, {}
    if options.runs then
        for i = 1, ceil(options.runs) do times[i] = time(1) end
        return times, 1
    end
    local batch = batch_for(time, smaller(worth_timing(device), seconds / least))
    local stop = clock() + seconds
    repeat
        times[#times + 1] = time(batch) / batch
    until #times >= least and clock() > stop
    return times, batch
end

row{
    name = "bench",
    takes = "f: function {seconds, least, runs, device}",
    gives = "table",
    group = "timing costs rates experiments",
    help = "Times f() until `seconds` have passed and it ran `least` times, or " ..
        "`runs` times, after a warm-up. Fields: median, low, high (seconds; " ..
        "quartiles), runs; of a single operation also operation, kernel, " ..
        "rate, unit, share and whose peak. Also :bench.",
    example = "bench(function() end, {seconds = 0.01}).runs >= 5",
    result = "true",
    options = {
        {"seconds", "positive", "0.3", "how long to repeat f"},
        {"least", "positive", "5", "at least so many runs"},
        {"runs", "positive", false, "so many runs, whatever time they take"},
        {"device", "device", "the default device", "the one whose work is timed"}},
}
function timing.bench(f, options)
    options = options or {}
    local device, timed = options.device or library.device(), library.timed
    local function time(calls)
        return (timed(function()
            for _ = 1, calls do f() end
        end, device))
    end
    local event = trace.captured(f)
    return trace.quietly(function()
        local times, batch = times_of(time, device, options)
        local middle = median(times)
        local found = {median = middle, low = times[1 + #times // 4],
            high = times[#times - #times // 4], runs = #times * batch}
        local rate = add_rate(found, event)
        return checks.shown(found, require "lumat.text_layout".flow{
            seconds_text(middle), format("(%s to %s, %d run%s)",
                seconds_text(found.low), seconds_text(found.high),
                found.runs, found.runs == 1 and "" or "s"), unpack(rate)})
    end)
end

row{
    name = "timing",
    takes = "f: function",
    gives = "table",
    group = "timing",
    help = "Calls f() once and waits for the devices. Fields: seconds, gpu (by " ..
        "the device's events, where there is one), operations, allocated " ..
        "(bytes). bench(f) is the better clock; also :time.",
    example = "timing(function() return zeros(2, 2) end).allocated",
    result = "16",
}
function timing.timing(f)
    return checks.shown(watch(f))
end

timing.batch_for = batch_for
return timing
