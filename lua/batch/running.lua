-- `run`: its options, what has to be settled before it, and what it tells.
local library = ...
local journal = require "lumat.journal"
local checks = require "lumat.checks"
local bar = require "lumat.bar"
local axes = require "lumat.axes"
local environment = require "lumat.environment"
local fields, identity = require "lumat.fields", require "lumat.identity"
local runner, workers = require "lumat.runner", require "lumat.workers"
local store_of = require "lumat.store"
local fail, brief = checks.fail, checks.brief
local copied, plural = fields.copied, fields.plural
local _G, ipairs, next, pairs = _G, ipairs, next, pairs
local tonumber, tostring, type = tonumber, tostring, type
local concat, sort = table.concat, table.sort
local format, gsub, match = string.format, string.gsub, string.match
local smaller = math.min
local math_type, to_integer = math.type, math.tointeger
local date, exit, time = os.date, os.exit, os.time
local running = {}

local run_options = {resume = "boolean", workers = "number", devices = "table",
    shard = "string", budget = "string number", only = "function",
    retry_failed = "boolean", quiet = "boolean", stale = "string",
    mix = "boolean", order = "string"}

-- --- options of a run -----------------------------------------------------

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
local words = {workers = "number", shard = "string", budget = "string",
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

local function check_shard(shard)
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

local function check_options(e, given)
    if given ~= nil and type(given) ~= "table" then
        fail("run", "the options are %s, expected a table", brief(given))
    end
    local o = take_words(copied(given or {}))
    fields.check("run", o, run_options)
    if o.workers and (math_type(to_integer(o.workers)) ~= "integer" or
        o.workers < 1 or o.workers > 1024) then
        fail("run", "workers is %s, expected a whole number from 1 to 1024",
            brief(o.workers))
    elseif o.stale and not stale_ways[o.stale] then
        fail("run", "stale is %s, expected \"drop\" or \"keep\"", brief(o.stale))
    elseif o.order and not run_orders[o.order] then
        fail("run", "order is %s, expected \"interleaved\", \"given\" or " ..
            "\"longest\"", brief(o.order))
    end
    if o.budget then o.budget = seconds_of(o.budget) end
    return o
end

-- --- which points a run has -----------------------------------------------

-- Every n-th by key: parts of one size, whatever order the axes have.
local function shard_of(list, shard)
    local i, n = check_shard(shard)
    local sorted, part = {}, {}
    for k, point in ipairs(list) do sorted[k] = point end
    sort(sorted, function(a, b) return a.keys[1] < b.keys[1] end)
    for k = i, #sorted, n do part[#part + 1] = sorted[k] end
    return part
end

local function select_points(e, o)
    local list = e.list
    if o.only then
        local kept = {}
        for _, point in ipairs(list) do
            if o.only(copied(point.p)) then kept[#kept + 1] = point end
        end
        if #kept == 0 then fail("run", "only leaves none of the %d points", #list) end
        list = kept
    end
    return o.shard and shard_of(list, o.shard) or list
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
end

-- What an environment is to be compared with: that of the workers, where
-- these do the work.
local function note_environment(run)
    local rank, o = run.e.rank, run.options
    local given = {}
    if run.count and not run.is_spawned then
        given.threads = workers.threads(run.count)
        run.threads = given.threads
    end
    local place = workers.place(rank)
    if place and not run.count then
        run.device = workers.device(o.devices, place)
    end
    if run.device then library.device(run.device) end
    local here = environment.gather(given)
    local number, note = environment.number(run.store, here, o.mix)
    run.env = number
    if note then run.bar:say(run.name .. ": " .. note) end
end

local function tell_start(run)
    local store = run.store
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

local function new_run(e, options)
    local o = check_options(e, options)
    local spawned = workers.spawned_for()
    local run = {e = e, options = o, name = e.name, spec = e.spec,
        names = e.axes, values = e.values, code = e.code, notes = {},
        is_spawned = spawned ~= nil, devices = o.devices}
    local quiet = o.quiet or run.is_spawned or e.silent
    run.bar = bar.new(e.name, {quiet = quiet})
    run.store = store_of.create(e.dir, e.name)
    e.store = run.store
    if o.workers and o.workers > 1 and not e.rank then
        run.count = to_integer(o.workers)
    elseif e.spec.timeout and not run.is_spawned then
        run.count = 1 -- whose end does not end this process
    end
    return run
end

-- --- running --------------------------------------------------------------

local FAILED = 5 -- lines about failed points

local function tell_end(run, over)
    run.store:refresh(true)
    runner.tidy(run)
    local done, failed = runner.count(run)
    local told = 0
    for _, point in ipairs(run.points) do
        local row = run.store:row(point.keys)
        if row and row.status ~= "ok" and told < FAILED then
            told = told + 1
            run.bar:say(format("%s: %s %s: %s", run.name, row.status,
                axes.name_point(row.p, run.names),
                (gsub(tostring(row.message), "%s+", " "))))
        end
    end
    if failed > told then
        run.bar:say(format("%s: … %d more failed", run.name, failed - told))
    end
    run.bar:say(format("%s: %d of %s done%s%s in %s  %s", run.name, done,
        plural(#run.points, "point"), failed > 0 and format(
        " (%d failed; run{retry_failed = true} does them again)", failed) or "",
        over and ", the budget is used up; running again goes on" or "",
        bar.clock_text(library.clock() - run.bar.started), run.store.dir))
end

local function work(run)
    if not run.count or run.is_spawned then return runner.work(run) end
    local done = runner.count(run)
    local todo = #run.points - done
    if todo == 0 then return false end
    return workers.supervise(run, smaller(run.count, todo))
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
    return dir and dir ~= journal.real_path(e.dir)
end

function running.run(e, options)
    if e.is_opened then
        fail("run", "%s was opened from its folder, which has no measure: run " ..
            "the script that made it", e.name)
    end
    if is_for_another(e) then return e end
    local run = new_run(e, options)
    if run.count and not run.is_spawned then
        workers.check_script(run.count == 1)
    end
    settle_rows(run)
    runner.set_keys(e.list, run.store:accepted(e.code.hash))
    run.points = select_points(e, run.options)
    local cost = e.spec.cost or e.spec.flops or e.spec.bytes
    run.order = run.options.order or
        ((run.count or e.rank) and cost and "longest" or "interleaved")
    tell_start(run)
    note_environment(run)
    runner.prepare(run)
    write_notes(run)
    run.store:add_code(e.code, e.script)
    local left = run.is_spawned and workers.seconds_left() or
        run.options.budget
    run.deadline = left and library.clock() + left
    local over = work(run)
    if run.is_spawned then exit(0, true) end
    tell_end(run, over)
    return e
end

return running
