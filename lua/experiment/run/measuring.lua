-- Measuring a point of an experiment, or a group of points that share what
-- setup makes: their samples take turns, so that what disturbs the machine, or
-- slowly changes, meets them all.
local library = ...
local measurement = require "lumat.measurement"
local sampling = require "lumat.sampling"
local quietly = require "lumat.trace".quietly
local measuring = {}
local getmetatable, ipairs, next, type = getmetatable, ipairs, next, type
local ceil, larger = math.ceil, math.max

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
    local copy = {}
    for name, value in next, state do copy[name] = value end
    return copy
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
