-- Measuring a point of an experiment, or a group of points whose samples take
-- turns. Nothing a measure does gets out of here but an interrupt: what goes
-- wrong becomes the status and the message of the point.
local library = ...
local checks = require "lumat.checks"
local peaks = require "lumat.peaks"
local sampling = require "lumat.sampling"
local statistics = require "lumat.statistics"
local batch_for = require "lumat.timing".batch_for
local quietly = require "lumat.trace".quietly
local measuring = {}
local error, getmetatable, ipairs = error, getmetatable, ipairs
local pcall, tostring, type = pcall, tostring, type
local find, format, gsub = string.find, string.format, string.gsub
local huge, smaller = math.huge, math.min

-- --- what a point fails by --------------------------------------------------

-- Calls f; an interrupt goes on to whoever runs the experiment.
local function attempt(f, ...)
    local function kept(ok, first, ...)
        if not ok and find(tostring(first), "interrupted", 1, true) then
            error(first, 0)
        end
        return ok, first, ...
    end
    return kept(pcall(f, ...))
end

-- The message without the place in the library where it was raised.
local function said(message)
    return (gsub(tostring(message), "^measuring:%d+: ", ""))
end

-- Ends the point as failed.
local function fail(m, what, text, ...)
    m.failed = what .. ": " .. format(text, ...)
    return nil
end

-- f's results but for the first, which says whether it ran.
local function try(m, what, f, ...)
    local function kept(ok, ...)
        if ok then return true, ... end
        return fail(m, what, "%s", said((...)))
    end
    return kept(attempt(f, ...))
end

local function describe(x)
    if type(x) == "userdata" then
        local kind = getmetatable(x)
        return "a " .. (type(kind) == "string" and kind or "userdata")
    end
    return checks.brief(x)
end

-- Seconds as a measure may give them, or why not.
local function is_time(m, seconds, what)
    if type(seconds) ~= "number" then
        return fail(m, "measure", "%s %s; it returns the seconds of one run, " ..
            "or a function to be timed", what,
            seconds == nil and "nothing" or describe(seconds))
    elseif seconds ~= seconds then
        return fail(m, "measure", "%s NaN", what)
    elseif seconds < 0 or seconds == huge then
        return fail(m, "measure", "%s %g seconds", what, seconds)
    end
    return true
end

-- --- one point --------------------------------------------------------------

-- A number of the specification for the point: flops or bytes of one run.
local function work_of(m, name)
    local value = m.spec[name]
    if type(value) == "function" then
        local ok, found = try(m, name, value, m.p, m.state)
        if not ok then return nil end
        value = found
    end
    if value == nil then return nil end
    if type(value) ~= "number" or not (value >= 0 and value < huge) then
        return fail(m, name, "%s, expected a number from 0 on",
            describe(value))
    end
    return value
end

-- What is measured: spec, p, state, device, cold, rule, samples; run() takes
-- one sample.
local function new_measurement(spec, p, state, options)
    local cold = spec.cold
    local m = {spec = spec, p = p, state = state, samples = {},
        device = p.device or options.device or library.device(), spent = 0}
    if type(cold) == "function" then
        local ok, answer = try(m, "cold", cold, p)
        if not ok then return m end
        cold = answer
    end
    m.cold = cold
    if state == nil and spec.setup then
        local ok, made = try(m, "setup", spec.setup, p)
        m.state = ok and made or nil
    end
    if not m.failed then
        m.flops, m.bytes = work_of(m, "flops"), work_of(m, "bytes")
    end
    return m
end

local function sample_of_number(m)
    local ok, seconds = try(m, "measure", m.spec.measure, m.p, m.state)
    if ok and is_time(m, seconds, "returned") then return seconds end
end

-- Seconds of so many runs of the work, timed on its device.
local function time_work(m, work, calls)
    local ok, seconds = try(m, "measure", library.timed, function()
        for _ = 1, calls do work() end
    end, m.device)
    return ok and seconds or nil
end

-- A cold run stands alone: a second one would find what the first left.
local function prepare_work(m, work)
    local batch = 1
    if not m.cold then
        local ok, found = try(m, "measure", batch_for, function(calls)
            return (library.timed(function()
                for _ = 1, calls do work() end
            end, m.device))
        end, smaller(sampling.SPAN, m.rule.seconds / m.rule.least))
        if not ok then return end
        batch = found
    end
    m.batch = batch
    m.take = function()
        local seconds = time_work(m, work, batch)
        return seconds and seconds / batch
    end
end

-- The check's answer: true, a number, or what verify gives; more numbers in a
-- table may follow.
local function check_output(m, ...)
    local check = m.spec.check
    if not check then return true end
    local ok, found, more = try(m, "check", check, m.p, m.state, ...)
    if not ok then return end
    if type(found) == "table" and found.accept ~= nil then
        m.check = found.error
        return found.accept or fail(m, "check", "%s", tostring(found))
    elseif type(found) == "number" then
        if found ~= found then return fail(m, "check", "returned NaN") end
        m.check = found
    elseif found ~= true then
        return fail(m, "check", "%s", found == false and
            "the result is wrong" or "returned " .. describe(found) ..
            ", expected a number, true, false or what verify gives")
    end
    if more ~= nil and type(more) ~= "table" then
        return fail(m, "check", "returned %s after the number, expected a " ..
            "table of figures", describe(more))
    end
    m.values = more
    return true
end

-- The first run: warms up, tells what kind of measure it is, and has its
-- result checked before anything is timed.
local function first_run(m)
    local function of_number(ok, seconds, ...)
        if not ok or not is_time(m, seconds, "returned") then return end
        m.take = function() return sample_of_number(m) end
        if m.spec.warmup == 0 or m.rule.most == 1 then
            m.samples[1] = seconds
        end
        return check_output(m, ...)
    end
    local function of_work(work, ok, ...)
        if ok and check_output(m, ...) then prepare_work(m, work) end
    end
    local function begin(ok, first, ...)
        if ok and type(first) == "function" then
            return of_work(first, try(m, "measure", first))
        end
        return of_number(ok, first, ...)
    end
    begin(try(m, "measure", m.spec.measure, m.p, m.state))
end

local function warm_up(m)
    for _ = 2, m.spec.warmup or 1 do
        if m.failed or not m.take then return end
        m.take()
    end
end

local function take_sample(m)
    local start = library.clock()
    if m.cold then sampling.sweeper(m.device)() end
    local seconds = m.take()
    if seconds and is_time(m, seconds, "returned") then
        m.samples[#m.samples + 1] = seconds
    end
    m.spent = m.spent + library.clock() - start
end

-- --- rows -------------------------------------------------------------------

local function add_rates(m, row)
    if (row.flops or row.bytes) and row.median > 0 then
        local ok, peak = try(m, "rate", peaks.of, row, m.p.dtype, m.device)
        row.peak = ok and peak or nil
    end
end

-- The fields of a row.
local function row_of(m)
    local row = {status = "ok", samples = m.samples, check = m.check,
        values = m.values, device = m.device, batch = m.batch,
        cold = m.cold and true or nil, flops = m.flops, bytes = m.bytes}
    if not m.failed and #m.samples == 0 then
        fail(m, "measure", "no sample was taken")
    end
    if not m.failed then
        row.median, row.low, row.high = statistics.interval(m.samples)
        add_rates(m, row)
    end
    if m.failed then row.status, row.message = "failed", m.failed end
    row.seconds = m.cost
    return row
end

-- Runs f(m) for the measurements that have not failed, counting its time.
local function each_alive(list, f)
    local alive = false
    for _, m in ipairs(list) do
        if not m.failed then
            local start = library.clock()
            local ok, problem = attempt(f, m)
            if not ok then fail(m, "measure", "%s", said(problem)) end
            m.cost = (m.cost or 0) + library.clock() - start
            alive = true
        end
    end
    return alive
end

local function take_samples(list, r)
    each_alive(list, first_run)
    each_alive(list, warm_up)
    repeat
        local busy = false
        each_alive(list, function(m)
            if not sampling.is_done(r, m.samples, m.spent) then
                take_sample(m)
                busy = true
            end
        end)
    until not busy
end

-- Measures points whose samples take turns, so that what disturbs the machine
-- meets them all; gives a row's fields for each. options: device; states, a
-- list of what setup made (where one is absent, setup is called).
function measuring.measure_group(spec, points, options)
    options = options or {}
    local list = {}
    local sound, r = attempt(sampling.rule_of, spec)
    for i, p in ipairs(points) do
        local start = library.clock()
        list[i] = new_measurement(spec, p,
            options.states and options.states[i], options)
        list[i].rule, list[i].cost = r, library.clock() - start
        if not sound then fail(list[i], "stop", "%s", said(r)) end
    end
    quietly(function() take_samples(list, r) end)
    local rows = {}
    for i, m in ipairs(list) do rows[i] = row_of(m) end
    return rows
end

-- The fields of a row for one point; state is what setup gave, or nil: then
-- setup is called.
function measuring.measure_point(spec, p, state, options)
    local states = state ~= nil and {state} or nil
    return measuring.measure_group(spec, {p}, {states = states,
        device = options and options.device})[1]
end

return measuring
