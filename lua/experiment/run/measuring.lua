-- Measuring a point of an experiment, or a group of points that share what
-- setup makes: their samples take turns, so that what disturbs the machine, or
-- slowly changes, meets them all.
local library = ...
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local peaks = require "lumat.peaks"
local sampling = require "lumat.sampling"
local statistics = require "lumat.statistics"
local batch_for = require "lumat.timing".batch_for
local quietly = require "lumat.trace".quietly
local error, getmetatable, ipairs, next, pcall, tostring, type = error,
    getmetatable, ipairs, next, pcall, tostring, type
local ceil, huge, larger, smaller = math.ceil, math.huge, math.max, math.min
local format, gsub = string.format, string.gsub
local measuring, measurement = {}, {}

-- --- one point -------------------------------------------------------------
-- Its first run, which is checked, its samples, its row. Nothing that a measure
-- does gets out of here but an interrupt: what goes wrong becomes the status
-- and the message of the point.

-- --- what a point fails by --------------------------------------------------

-- Calls f; an interrupt goes on to whoever runs the experiment.
local function attempt(f, ...)
    local function kept(ok, first, ...)
        if not ok and checks.is_interrupt(first) then error(first, 0) end
        return ok, first, ...
    end
    return kept(pcall(f, ...))
end
measurement.attempt = attempt

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

-- --- a step of a point ------------------------------------------------------

-- Runs f(m), counting its time against what the point may take.
local function step(group, m, f)
    if m.failed or m.skipped then return end
    if group.on_step then
        group.on_step(m.number, f == measurement.take_sample and
            sampling.name(m.rule, #m.samples + 1) or nil)
    end
    local start = library.clock()
    if group.timeout then group.limit(larger(1e-3, group.timeout - m.cost)) end
    local ok, problem = measurement.attempt(f, m)
    if group.timeout then group.limit() end
    if not ok then measurement.went_wrong(m, "measure", problem) end
    m.cost = m.cost + library.clock() - start
end

local function each(group, f)
    for _, m in ipairs(group) do
        if not m.ended then step(group, m, f) end
    end
end

local function stop(group)
    for _, m in ipairs(group) do m.ended = true end
end

-- The point is done: its row goes to whoever waits for it, at once; who has no
-- use for it, nor for the rest, says false.
local function finish(group, m)
    m.ended = true
    m.cost = m.cost + group.shared_cost
    group.rows[m.number] = measurement.row(m)
    m.state, m.take, m.runs = nil, nil, nil
    if group.on_row and
        group.on_row(m.number, group.rows[m.number]) == false then
        stop(group)
    end
end

-- --- samples ----------------------------------------------------------------

-- Puts the points in another order, the same in every run, so that none has
-- always the same one before it.
local function shuffle(group)
    local state = #group
    return function()
        for i = #group, 2, -1 do -- by a generator of Knuth's (MMIX)
            state = state * 6364136223846793005 + 1442695040888963407
            local k = (state >> 33) % i + 1
            group[i], group[k] = group[k], group[i]
        end
    end
end

-- The next sample of a point that has not enough of them; points that are to
-- be held wait for the others then.
local function go_on(group, m)
    if m.ended or m.is_sampled then return false end
    m.is_sampled = measurement.is_done(m)
    if not m.is_sampled then
        step(group, m, measurement.take_sample)
        return true
    elseif m.failed or not m.hold or not m.runs then
        finish(group, m)
    end
    return false
end

-- A sample of each point in turn, until each has enough of its own.
local function take_turns(group)
    local turns, again = {}, nil
    for i, m in ipairs(group) do turns[i] = m end
    again = shuffle(turns)
    repeat
        local busy = false
        for _, m in ipairs(turns) do
            if go_on(group, m) then busy = true end
        end
        again()
    until not busy
end

-- Seconds of a run when it is repeated for so long without pause, after half
-- of that to settle: what ran before may have left the device hot.
local function repeated(m, seconds)
    local few = m.runs(1) and m.runs(3)
    if not few then return nil end
    local one = larger(few / 3, 1e-9)
    if not m.runs(ceil(seconds / 2 / one)) then return nil end
    local count = larger(2, ceil(seconds / one))
    local all = m.runs(count)
    return all and all / count
end

-- Times under a load that lasts, as long as a limit of power or heat needs to
-- show: one point after the other, twice, so that all are of one time and one
-- temperature.
local function hold(group)
    for _ = 1, 2 do
        each(group, function(m)
            local seconds = repeated(m, m.hold / 2)
            m.held = seconds and (m.held or 0) + seconds / 2
        end)
    end
end

local function take_samples(group)
    each(group, measurement.first_run)
    each(group, measurement.warm_up)
    take_turns(group)
    hold(group)
    for _, m in ipairs(group) do
        if not m.ended then finish(group, m) end
    end
end

-- --- groups -----------------------------------------------------------------

-- What setup made, for one of several points: what it adds or puts in the
-- place of a field is its own.
local function own_state(state, count)
    if count == 1 or type(state) ~= "table" or getmetatable(state) then
        return state
    end
    return checks.copied(state)
end

-- Calls setup; nil and its message where it fails.
local function set_up(spec, p, limit)
    if limit and spec.timeout then limit(spec.timeout) end
    local m = {}
    local ok, state = measurement.try(m, "setup", spec.setup, p)
    if limit and spec.timeout then limit() end
    return ok and state or nil, m.failed
end

local function new_group(spec, points, options)
    local start = library.clock()
    local state, problem
    if spec.setup then
        state, problem = set_up(spec, options.shared or points[1],
            options.limit)
    end
    local rule = sampling.rule_of(spec)
    local group = {rows = {}, on_row = options.on_row, limit = options.limit,
        timeout = options.limit and spec.timeout, on_step = options.on_step}
    for i, p in ipairs(points) do
        local m = problem and {failed = problem, samples = {}, cost = 0} or
            measurement.new(spec, p, own_state(state, #points), options)
        m.rule, m.number = rule, i
        group[i] = m
    end
    group.shared_cost = (library.clock() - start) / #points
    return group
end

-- Measures points whose samples take turns; gives a row's fields for each.
-- options: device; shared, what setup is called with; on_row(i, row), called
-- when point i is done, which ends the others by false; limit(seconds), which
-- ends the process unless it is called again, without seconds, in time;
-- on_step(i, sample), called before each step of point i, with the sample's
-- name if it is one.
function measuring.measure_group(spec, points, options)
    local rows
    quietly(function()
        local group = new_group(spec, points, options or {})
        take_samples(group)
        rows = group.rows
    end)
    return rows
end

return measuring
