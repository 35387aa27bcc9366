-- Measuring one point: its first run, which is checked, its samples, its row.
-- Nothing that a measure does gets out of here but an interrupt: what goes
-- wrong becomes the status and the message of the point.
local library = ...
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local peaks = require "lumat.peaks"
local sampling = require "lumat.sampling"
local statistics = require "lumat.statistics"
local batch_for = require "lumat.timing".batch_for
local measurement = {}
local error, getmetatable, next = error, getmetatable, next
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
measurement.attempt = attempt

-- The message without the place in the library where it was raised.
local function said(message)
    return (gsub(tostring(message), "^measurement:%d+: ", ""))
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
measurement.try = try

-- Seconds as a measure may give them, or why not.
local function is_time(m, seconds, what)
    if type(seconds) ~= "number" then
        return fail(m, "measure", "%s %s; it returns the seconds of one run, " ..
            "or a function to be timed", what,
            seconds == nil and "nothing" or checks.brief(seconds))
    elseif seconds ~= seconds then
        return fail(m, "measure", "%s NaN", what)
    elseif seconds < 0 or seconds == huge then
        return fail(m, "measure", "%s %s seconds", what,
            checks.figure("%g", seconds))
    end
    return true
end

-- --- a measurement ----------------------------------------------------------

-- A number of the specification for the point: flops or bytes of one run.
local function number_of(m, name)
    local value = m.spec[name]
    if type(value) == "function" then
        local ok, found = try(m, name, value, m.p, m.state)
        if not ok then return nil end
        value = found
    end
    if value == nil or value == false then return nil end
    if type(value) ~= "number" or not (value >= 0 and value < huge) then
        return fail(m, name, "%s, expected a number from 0 on",
            checks.brief(value))
    end
    return value
end

-- What is measured: spec, p, state, device, cold, rule, hold (seconds),
-- samples; take() gives one sample, runs(n) the seconds of n runs.
function measurement.new(spec, p, state, options)
    local cold = spec.cold
    local m = {spec = spec, p = p, state = state, samples = {},
        device = p.device or options.device or library.device(), spent = 0,
        cost = 0}
    if type(cold) == "function" then
        local ok, answer = try(m, "cold", cold, p)
        if not ok then return m end
        cold = answer
    end
    m.cold = cold
    for _, name in next, {"flops", "bytes", "hold"} do
        if not m.failed then m[name] = number_of(m, name) end
    end
    return m
end

local figure_kinds = {number = true, string = true, boolean = true}

-- Has a table figures alone? Else what is none, and whether some are.
local function has_figures(t)
    local other, any = nil, false
    for name, value in next, t do
        if type(name) ~= "string" then
            other = other or format("[%s]", tostring(name))
        elseif not figure_kinds[type(value)] then
            other = other or format("%s, %s,", name, checks.brief(value))
        else
            any = true
        end
    end
    return not other, other, any
end

-- Keeps the figures that `what` gave beside the rest.
local function keep_figures(m, what, figures)
    local sound, other = has_figures(figures)
    if not sound then
        return fail(m, what, "%s is no figure: these have names, and are " ..
            "numbers, strings or booleans", other)
    end
    m.values = m.values or {}
    for name, value in next, figures do
        local is_axis = m.p[name] ~= nil
        if is_axis or columns.is_figure(name) then
            return fail(m, what, "a figure needs another name than %s, " ..
                "which is %s", name, is_axis and "a parameter" or
                "a figure of every point")
        end
        m.values[name] = value
    end
    return true
end

-- Figures that a measure gives beside its seconds. A table of other things is
-- what check is to see.
local function add_figures(m, figures, is_output)
    if type(figures) ~= "table" or getmetatable(figures) then return true end
    local sound, _, any = has_figures(figures)
    if not sound and (is_output or not any) then return true end
    return keep_figures(m, "measure", figures)
end

local function sample_of_number(m)
    local ok, seconds = try(m, "measure", m.spec.measure, m.p, m.state)
    if ok and is_time(m, seconds, "returned") then return seconds end
end

-- --- work that is timed here ------------------------------------------------

-- A cold run stands alone: a second one would find what the first left.
local function prepare_work(m, work)
    local function runs(calls)
        return (library.timed(function()
            for _ = 1, calls do work() end
        end, m.device))
    end
    local batch = 1
    if not m.cold then
        local ok, found = try(m, "measure", batch_for, runs,
            smaller(sampling.SPAN, m.rule.seconds / m.rule.least))
        if not ok then return end
        batch = found
    end
    m.batch = batch
    m.runs = function(calls)
        local ok, seconds = try(m, "measure", runs, calls)
        return ok and seconds or nil
    end
    m.take = function()
        local seconds = m.runs(batch)
        return seconds and seconds / batch
    end
end

-- The check's answer: true, a number, or what verify gives; more figures in a
-- table may follow, and why after false.
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
    elseif found == false then
        return fail(m, "check", "%s", type(more) == "string" and more or
            "the result is wrong")
    elseif found ~= true then
        return fail(m, "check", "returned %s, expected a number, true, " ..
            "false or what verify gives", checks.brief(found))
    end
    if more ~= nil and type(more) ~= "table" then
        return fail(m, "check", "returned %s after the number, expected a " ..
            "table of figures", checks.brief(more))
    end
    return not more or keep_figures(m, "check", more)
end

-- The first run: warms up, tells what kind of measure it is, and has its
-- result checked before anything is timed. Of false the point is left out.
function measurement.first_run(m)
    local function of_number(seconds, ...)
        if not is_time(m, seconds, "returned") then return end
        if m.hold then
            return fail(m, "hold", "measure returned seconds, and what is " ..
                "repeated is a function that it returns")
        end
        m.take = function() return sample_of_number(m) end
        if (m.spec.warmup or m.rule.most == 1 and 0) == 0 then
            m.samples[1] = seconds
        end
        if not add_figures(m, (...), m.spec.check ~= nil) then return end
        return check_output(m, ...)
    end
    local function of_work(work, ok, ...)
        if ok and check_output(m, ...) then prepare_work(m, work) end
    end
    local function begin(ok, first, ...)
        if not ok then return end
        if first == false then
            m.skipped = tostring((...) or "measure returned false")
        elseif type(first) == "function" then
            if not add_figures(m, (...)) then return end
            return of_work(first, try(m, "measure", first))
        else
            return of_number(first, ...)
        end
    end
    begin(try(m, "measure", m.spec.measure, m.p, m.state))
end

function measurement.warm_up(m)
    for _ = 2, m.spec.warmup or 1 do
        if m.failed or not m.take then return end
        m.take()
    end
end

function measurement.take_sample(m)
    local start = library.clock()
    if m.cold then sampling.sweeper(m.device)() end
    local seconds = m.take()
    if seconds and is_time(m, seconds, "returned") then
        m.samples[#m.samples + 1] = seconds
    end
    m.spent = m.spent + library.clock() - start
end

-- Is there nothing more to sample?
function measurement.is_done(m)
    return m.failed or m.skipped or not m.take or
        sampling.is_done(m.rule, m.samples, m.spent)
end

-- --- rows -------------------------------------------------------------------

local function add_rates(m, row)
    if (row.flops or row.bytes) and row.median > 0 then
        local ok, peak = try(m, "rate", peaks.of, row, m.p.dtype, m.device)
        row.peak = ok and peak or nil
    end
end

local function add_times(m, row)
    if #m.samples == 0 then
        return fail(m, "measure", "no sample was taken")
    end
    row.median, row.low, row.high = statistics.interval(m.samples)
    add_rates(m, row)
end

-- The fields of a row.
function measurement.row(m)
    local row = {status = "ok", samples = m.samples, check = m.check,
        values = m.values, device = m.device, batch = m.batch, held = m.held,
        cold = m.cold and true or nil, flops = m.flops, bytes = m.bytes,
        seconds = m.cost}
    if m.skipped then
        row.status, row.message = "skipped", m.skipped
        return row
    end
    if not m.failed then add_times(m, row) end
    if m.failed then row.status, row.message = "failed", m.failed end
    return row
end

-- An error that none of the above expects.
function measurement.went_wrong(m, what, problem)
    return fail(m, what, "%s", said(problem))
end

return measurement
