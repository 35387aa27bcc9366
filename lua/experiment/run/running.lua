-- `run`: its options, from the script and from the command line, what has to be
-- settled before it, and what it tells.
local library = ...
local checks = require "lumat.checks"
local journal = require "lumat.journal"
local bar = require "lumat.progress".bar
local environment = require "lumat.environment"
local identity = require "lumat.code_hash"
local points_of = require "lumat.axes".points_of
local progress = require "lumat.progress"
local runner = require "lumat.runner"
local slurm = require "lumat.slurm"
local store_of = require "lumat.store"
local units = require "lumat.units"
local workers = require "lumat.workers"
local fail, brief, copied, plural = checks.fail, checks.brief, checks.copied,
    checks.plural
local _G, ipairs, next, pairs, setmetatable, tonumber, tostring, type = _G,
    ipairs, next, pairs, setmetatable, tonumber, tostring, type
local concat, sort = table.concat, table.sort
local math_type, smaller, to_integer = math.type, math.min, math.tointeger
local format, gsub, match = string.format, string.gsub, string.match
local date, exit, time = os.date, os.exit, os.time
local run_options, running = {}, {}

-- --- options ---------------------------------------------------------------

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
    launcher = "string", quiet = "boolean", ["retry-failed"] = "boolean"}

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
    local o = take_words(copied(given or {}))
    checks.options("experiment.run", o)
    o.workers = check_count("workers", o.workers)
    o.threads = check_count("threads", o.threads)
    check_devices(o.devices)
    slurm.check(o)
    if o.budget then o.budget = seconds_of(o.budget) end
    return o
end

-- --- which points a run has -----------------------------------------------

-- Every n-th by key: parts of one size, whatever order the axes have.
local function shard_of(list, shard)
    local i, n = run_options.shard(shard)
    local sorted, part = units.in_order(list, "interleaved"), {}
    for k = i, #sorted, n do part[#part + 1] = sorted[k] end
    return part
end

local function select_points(e, o)
    if not o.only then return e.list end
    local kept = {}
    for _, point in ipairs(e.list) do
        if o.only(copied(point.p)) then kept[#kept + 1] = point end
    end
    if #kept == 0 then
        fail("run", "only leaves none of the %d points", #e.list)
    end
    return kept
end

-- The units of the run, and their points.
local function choose(run)
    local e, o = run.e, run.options
    local all = units.divide(e.list, units.shared(e.spec, e.axes))
    local list = units.chosen(all, select_points(e, o), e.code.hash)
    run.units = o.shard and shard_of(list, o.shard) or list
    run.points = units.points(run.units)
end

-- --- before a run ---------------------------------------------------------

-- A note that decides what counts. Of processes started together the first
-- one writes it for all; those of a launch that has no name wait for nothing,
-- the first rank alone writes.
local function write_note(run, note)
    local rank = run.e.rank
    local launch = rank and rank.launch
    if launch then
        note.launch = note.note .. launch
        if run.store.launches[note.launch] then return end
    elseif rank and rank.rank > 0 then
        return
    end
    run.notes[#run.notes + 1] = note
    run.store:take_in(note)
end

local function refuse_stale(e, store, codes)
    local lines, total = {}, 0
    for code, count in pairs(codes) do
        local known = store:code(code)
        total = total + count
        lines[#lines + 1] = format("%s changed since %s", identity.difference(
            known.parts, e.code.parts), known.since and
            date("%Y-%m-%d %H:%M", known.since) or "then")
    end
    sort(lines)
    fail("run", "%s: %s in %s of the code as it was: run{stale = \"drop\"} " ..
        "measures anew, run{stale = \"keep\"} lets the old ones count, another " ..
        "dir = leaves them alone", concat(lines, "; "), total == 1 and
        "there is 1 point" or format("there are %d points", total), e.dir)
end

-- Rows of another code: refused, dropped, or taken as of this one.
local function settle_stale(run)
    local e, store = run.e, run.store
    local codes = store:stale(e.code.hash)
    if not codes then return end
    local way = run.options.stale
    if run.options.resume == false then way = "drop" end
    if not way then refuse_stale(e, store, codes) end
    for code in pairs(codes) do
        write_note(run, way == "drop" and {note = "drop", code = code,
            gen = store.generation + 1} or {note = "keep", code = code,
            as = e.code.hash})
    end
end

local function settle_rows(run)
    local store, o = run.store, run.options
    if run.is_spawned then -- who started it did
        local codes = store:stale(run.code.hash)
        if codes then refuse_stale(run.e, store, codes) end
        return
    end
    if o.resume == false and run.job then
        fail("run", "job %s is at %s: run{resume = false} would take its " ..
            "points away; scancel %s ends it", run.job.id, store.dir, run.job.id)
    end
    local others = o.resume == false and not run.e.rank and store:workers()
    if others and #others > 0 then
        fail("run", "%s is being measured (process %d on %s): run{resume = " ..
            "false} would take its points away; wait for it or stop it",
            store.dir, others[1].pid, others[1].host)
    end
    settle_stale(run)
    if o.resume == false and next(store.rows) then
        for _, code in ipairs(store:accepted(run.code.hash)) do
            write_note(run, {note = "drop", code = code,
                gen = store.generation + 1})
        end
    end
    if o.retry_failed then
        write_note(run, {note = "retry", round = store.round + 1})
    end
    if run.e.title ~= store.title then
        write_note(run, {note = "title", title = run.e.title,
            number = store.titles + 1})
    end
end

-- The device that this process measures on, where it is not the one in use:
-- that of its place among several, or the one that was named.
local function own_device(run)
    local o, place = run.options, workers.place(run.e.rank)
    if run.count then return nil end
    if place then return workers.device(o.devices, place) end
    if o.devices and #o.devices > 1 and not o.workers then
        fail("run", "devices names %d, and one process measures: workers = %d " ..
            "takes as many", #o.devices, #o.devices)
    end
    return o.devices and o.devices[1]
end

-- What an environment is to be compared with: that of the workers, where
-- these do the work. The device in use is another one until the result is
-- closed.
local function note_environment(run)
    local o, given = run.options, {}
    if run.count and not run.is_spawned then
        given.threads = o.threads or workers.threads(run.count)
        run.threads = given.threads
    end
    local before = library.device()
    run.device = own_device(run)
    if run.device then library.device(run.device) end
    local back = run.device and setmetatable({}, {__close = function()
        library.device(before)
    end})
    local here = environment.gather(given)
    local number, note = environment.number(run.store, here, o.mix,
        run.count ~= 1 and run.count or nil)
    run.env = number
    if note then run.bar:say(run.name .. ": " .. note) end
    return back
end

-- " (2 before this run, 1 failed; run{retry_failed = true} does them again)"
local function more_of(run, done, failed, remedy)
    local parts = {}
    if run.found > 0 then
        parts[1] = (run.found == done and "all" or tostring(run.found)) ..
            " before this run"
    end
    if failed > 0 then
        parts[#parts + 1] = format("%d failed%s", failed, remedy or "")
    end
    return #parts > 0 and " (" .. concat(parts, ", ") .. ")" or ""
end

local function tell_start(run)
    local store, left = run.store, #run.points - run.found
    if run.found > 0 and left > 0 and not run.is_spawned then
        run.bar:say(format("%s: %d of %s done before this run, %d to do",
            run.name, run.found, #run.points == 1 and "1 point was" or
            plural(#run.points, "point") .. " were", left))
    end
    for _, name in ipairs(store.torn) do
        run.bar:say(format("%s: the last line of %s/%s was cut off while it " ..
            "was written and is dropped: its point is measured again",
            run.name, store.dir, name))
    end
    store.torn = {}
    local others = store:workers()
    if #others > 0 and not run.is_spawned and not run.e.rank then
        run.bar:say(format("%s: %s at work here already (process %d on %s): " ..
            "the points are shared", run.name, plural(#others, "worker"),
            others[1].pid, others[1].host))
    end
end

-- What one worker is needed for, where no others do the work: the end of a
-- point that does not end this process; threads, which a process has for good.
local function needs_worker(e, o)
    if workers.spawned_for() then return nil end
    return e.spec.timeout and "timeout" or
        o.threads and o.threads ~= environment.threads() and "threads" or nil
end

local function new_run(e, options)
    local o = run_options.read(options)
    local spawned = workers.spawned_for()
    local run = {e = e, options = o, name = e.name, spec = e.spec,
        names = e.axes, values = e.values, code = e.code, notes = {},
        is_spawned = spawned ~= nil, devices = o.devices}
    local quiet = o.quiet or run.is_spawned or e.silent
    run.bar = bar.new(e.name, {quiet = quiet})
    run.store = e.dir and store_of.create(e.dir, e.name) or store_of.passing()
    e.store = run.store
    if o.workers and (o.workers > 1 or o.launcher) and not e.rank then
        run.count = o.workers
    elseif needs_worker(e, o) then
        run.count = 1
    end
    run.is_submitted = o.launcher and run.count and not run.is_spawned
    return run
end

-- --- running --------------------------------------------------------------

local FAILED = 5 -- lines about failed points

local function tell_end(run, over)
    run.store:refresh(true)
    runner.tidy(run)
    local done, failed = progress.count(run)
    local told = 0
    for _, point in ipairs(run.points) do
        local row = run.store:row(point.keys)
        if row and progress.has_failed(row) and told < FAILED then
            told = told + 1
            run.bar:say(format("%s: %s %s: %s", run.name, row.status,
                points_of.name(row.p, run.names),
                (gsub(tostring(row.message), "%s+", " "))))
        end
    end
    if failed > told then
        run.bar:say(format("%s: … %d more failed", run.name, failed - told))
    end
    run.bar:say(format("%s: %d of %s done%s%s in %s  %s", run.name, done,
        plural(#run.points, "point"), more_of(run, done, failed,
            "; run{retry_failed = true} does them again"),
        over and ", the budget is used up; running again goes on" or "",
        bar.clock_text(library.clock() - run.bar.started), run.e.dir or ""))
end

-- Ctrl-C stopped the run, and its workers: what of it is there.
local function tell_stop(run)
    run.store:refresh(true)
    local done, failed = progress.count(run)
    run.bar:say_stopped(format("%s: stopped; %d of %s done%s%s%s", run.name, done,
        plural(#run.points, "point"), more_of(run, done, failed),
        not run.e.dir and " (dir = false keeps none of them)" or
        done > 0 and ", kept in " .. run.e.dir or "",
        run.e.dir and done < #run.points and "; run again for the rest" or ""))
end

-- Does what is left; whether the time that was given was over first.
local function measure_points(run, left)
    local seconds = run.is_spawned and workers.seconds_left() or
        run.options.budget
    run.deadline = seconds and library.clock() + seconds
    local told = run.is_submitted and slurm.tell_stop or tell_stop
    local rest <close> = journal.when_stopped(function() told(run) end)
    if not run.count or run.is_spawned then return runner.work(run) end
    if run.is_submitted then
        return slurm.supervise(run, smaller(run.count, left))
    end
    return workers.supervise(run, smaller(run.count, left))
end

-- Notes are the first records of a journal of their own.
local function write_notes(run)
    if #run.notes == 0 then return end
    local host, pid = journal.identity()
    run.store:begin(journal.unique() .. "-notes", {note = "notes", time = time(),
        host = host, pid = pid})
    local store <close> = run.store
    for _, note in ipairs(run.notes) do run.store:append(note) end
end

local function is_for_another(e)
    local dir = workers.spawned_for()
    return dir and (not e.dir or dir ~= journal.real_path(e.dir))
end

local function measure(e, options)
    local run = new_run(e, options)
    if run.count and not run.is_spawned then
        workers.check_script(run.count == 1 and
            needs_worker(e, run.options) or "workers")
    end
    if run.is_submitted then run.job = slurm.find(run) end
    settle_rows(run)
    runner.set_keys(e.list, run.store:accepted(e.code.hash))
    choose(run)
    local cost = e.spec.cost or e.spec.flops or e.spec.bytes
    run.order = run.options.order or
        ((run.count or e.rank) and cost and "longest" or "interleaved")
    run.found = progress.count(run)
    e.found = run.found -- how many points were done before
    tell_start(run)
    local left = #run.points - run.found
    -- the hosts of a job find out themselves where they measure
    local device <close> = left > 0 and not run.is_submitted and
        note_environment(run) or nil
    runner.prepare(run)
    write_notes(run)
    run.store:add_code(e.code, e.script)
    local over = left > 0 and measure_points(run, left)
    if run.is_spawned then exit(0, true) end
    tell_end(run, over)
end

-- A run that keeps nothing has nothing to share.
local function check_passing(e, options)
    local o = run_options.read(options)
    if e.rank or (o.workers or 1) > 1 or o.launcher then
        fail("run", "dir = false keeps nothing that processes could share: " ..
            "dir = names a folder")
    end
    local reason = needs_worker(e, o)
    if reason then
        fail("run", "%s, and dir = false keeps nothing that it could share: " ..
            "dir = names a folder", workers.reasons[reason])
    end
end

function running.run(e, options)
    if e.is_opened then
        fail("run", "%s was opened from its folder, which has no measure: run " ..
            "the script that made it", e.name)
    end
    if is_for_another(e) then return e end
    if not e.dir then check_passing(e, options) end
    measure(e, options)
    return e
end

return running
