-- An experiment as defined: its description checked, its points, what is done
-- of them; and `run`.
local library = ...
local journal = require "lumat.journal"
local checks = require "lumat.checks"
local axes, bar = require "lumat.axes", require "lumat.bar"
local environment = require "lumat.environment"
local identity = require "lumat.identity"
local runner, workers = require "lumat.runner", require "lumat.workers"
local store_of = require "lumat.store"
local fail, brief = checks.fail, checks.brief
local _G, ipairs, next, pairs, pcall = _G, ipairs, next, pairs, pcall
local rawget, setmetatable, tonumber, tostring, type = rawget, setmetatable,
    tonumber, tostring, type
local concat, sort = table.concat, table.sort
local find, format, gsub, match, rep = string.find, string.format, string.gsub,
    string.match, string.rep
local huge, math_type, to_integer = math.huge, math.type, math.tointeger
local date, exit, open_file = os.date, os.exit, io.open
local definition, methods = {}, {}

-- --- the description ------------------------------------------------------

local fields = {name = "string", axes = "table", measure = "function",
    dir = "string", where = "function", fixed = "table", setup = "function",
    check = "function", flops = "function number", bytes = "function number",
    cost = "function number", repeats = "number", stop = "table function number",
    warmup = "number", cold = "boolean function", timeout = "number",
    order = "table", version = "number string", title = "string"}

local run_options = {resume = "boolean", workers = "number", devices = "table",
    shard = "string", budget = "string number", only = "function",
    retry_failed = "boolean", quiet = "boolean", stale = "string",
    mix = "boolean", order = "string"}

local function article(word)
    return (find(word, "^[aeiou]") and "an " or "a ") .. word
end

-- Every key of t is one of `kinds` and its value of a kind given there.
local function check_fields(what, t, kinds)
    for _, key in ipairs(axes.sorted_keys(t)) do
        local kind, value = kinds[key], t[key]
        if not kind then
            local names = axes.sorted_keys(kinds)
            local near = type(key) == "string" and
                journal.nearest(key, concat(names, " "))
            fail(what, "unknown option %s: %s", brief(key), near and
                "did you mean " .. near .. "?" or
                "there are " .. concat(names, " "))
        elseif not find(" " .. kind .. " ", " " .. type(value) .. " ", 1, true) then
            fail(what, "%s is %s, expected %s", key, brief(value),
                article(gsub(kind, " ", " or a ")))
        end
    end
end

local function check_name(name)
    if not name then
        fail("experiment", "has no name: experiment{name = \"sweep\", axes = " ..
            "{n = pow2(6, 9)}, measure = function(p) … end}")
    elseif not find(name, "^[%w_][%w_.-]*$") or #name > 80 then
        fail("experiment", "%q is no name: letters, digits, _ . and -", name)
    end
end

local function check_spec(spec)
    if type(spec) ~= "table" then
        fail("experiment", "takes a table: experiment{name = …}, not %s",
            brief(spec))
    end
    check_fields("experiment", spec, fields)
    check_name(spec.name)
    if not spec.measure then
        fail("experiment", "%s has no measure = function(p) … end", spec.name)
    elseif spec.dir == "" then
        fail("experiment", "dir is empty")
    elseif spec.timeout and not (spec.timeout > 0 and spec.timeout < huge) then
        fail("experiment", "timeout is %s, expected seconds above 0",
            brief(spec.timeout))
    end
end

local function script_text()
    local path = _G.arg and _G.arg[0]
    local file = type(path) == "string" and open_file(path, "rb")
    if not file then return nil end
    local text = file:read(1000000)
    file:close()
    return text and utf8.len(text) and {path = path, text = text} or nil
end

-- --- points ---------------------------------------------------------------

local function cost_of(spec, p)
    local names = {"cost", "flops", "bytes"}
    for _, name in ipairs(names) do
        local cost = spec[name]
        if type(cost) == "function" then
            local ok, value = pcall(cost, p)
            cost = ok and value or nil
        end
        if type(cost) == "number" and cost >= 0 and cost < huge then
            return cost
        end
    end
    return 1
end

-- {p, index, cost}; their keys come with a store.
local function list_points(spec, points)
    local list = {}
    for i, p in ipairs(points) do
        list[i] = {p = p, index = i, cost = cost_of(spec, p)}
    end
    return list
end

local function set_keys(list, codes)
    for _, point in ipairs(list) do
        point.keys = {}
        for i, code in ipairs(codes) do
            point.keys[i] = identity.key(point.p, code)
        end
    end
end

-- The values of each parameter in the order in which they come.
local function values_of(names, points)
    local values, seen = {}, {}
    for _, name in ipairs(names) do values[name], seen[name] = {}, {} end
    for _, p in ipairs(points) do
        for _, name in ipairs(names) do
            local value = p[name]
            if value ~= nil and not seen[name][value] then
                seen[name][value] = true
                values[name][#values[name] + 1] = value
            end
        end
    end
    return values
end

-- --- an experiment --------------------------------------------------------

local experiment = {__name = "experiment"}

-- What shows results is in files of its own; where nothing is to be seen,
-- since another process shows it, it does nothing.
local views = {table = true, csv = true, jsonl = true, plot = true,
    report = true}

function experiment.__index(e, name)
    if methods[name] then return methods[name] end
    local seen = package.loaded["lumat.experiment_views"]
    local view = seen and seen[name]
    if view and rawget(e, "silent") and views[name] then
        return function() return e end
    end
    return view
end

function definition.define(spec)
    check_spec(spec)
    local points, names, left_out = axes.points(spec)
    local e = {name = spec.name, dir = spec.dir or "runs/" .. spec.name,
        axes = names, spec = spec, list = list_points(spec, points),
        values = values_of(names, points), left_out = left_out,
        code = identity.code(spec, journal.version), script = script_text()}
    e.rank = workers.rank()
    e.silent = e.rank ~= nil and e.rank.rank > 0
    if e.silent then journal.mute() end
    return setmetatable(e, experiment)
end

-- The experiment's store, if it ever ran, with what was written since, and its
-- points with their keys.
local function refresh(e)
    local store = rawget(e, "store")
    if store then
        store:refresh()
    elseif store_of.exists(e.dir) then
        store = store_of.open(e.dir, e.name)
        e.store = store
    end
    set_keys(e.list, store and store:accepted(e.code.hash) or {e.code.hash})
    return store
end

-- Copies, so that nobody changes them from outside.
local function copied(t)
    local c = {}
    for key, value in next, t do c[key] = value end
    return c
end

function methods.points(e)
    local list = {}
    for i, point in ipairs(e.list) do list[i] = copied(point.p) end
    return list
end

function methods.results(e)
    local store, rows = refresh(e), {}
    for _, point in ipairs(store and e.list or {}) do
        local row = point.row or store:row(point.keys)
        if row then rows[#rows + 1] = row end
    end
    return rows
end

-- The environments that rows name by number.
function methods.environments(e)
    local store = refresh(e)
    return store and environment.list(store) or {}
end

-- --- a run directory alone ------------------------------------------------

-- Rows of the code that ran last, and of those that count as it.
local function latest(store)
    local last
    for _, start in ipairs(store.starts) do
        if not last or (start.time or 0) >= (last.time or 0) then last = start end
    end
    return last
end

-- The place of a row's point among the values of the axes.
local function places(names, values)
    local place = {}
    for _, name in ipairs(names) do
        place[name] = {}
        for i, value in ipairs(values[name] or {}) do place[name][value] = i end
    end
    return function(a, b)
        for _, name in ipairs(names) do
            local x, y = place[name][a.p[name]] or huge,
                place[name][b.p[name]] or huge
            if x ~= y then return x < y end
        end
        return a.key < b.key
    end
end

-- One row a point: of two codes that count alike the later one.
local function rows_of(store, code)
    local by_point = {}
    local accepted = {}
    for _, c in ipairs(store:accepted(code)) do accepted[c] = true end
    for _, row in pairs(store.rows) do
        if accepted[row.code] and not store:is_dropped(row) then
            local name = identity.canonical(row.p)
            local other = by_point[name]
            if not other or row.code == code then by_point[name] = row end
        end
    end
    local rows = {}
    for _, row in pairs(by_point) do rows[#rows + 1] = row end
    return rows
end

function definition.open(dir)
    if type(dir) ~= "string" then
        fail("experiment.open", "takes the name of a run directory, not %s",
            brief(dir))
    end
    dir = #dir > 1 and gsub(dir, "/+$", "") or dir
    local store = store_of.open(dir)
    local start = latest(store) or {axes = {}, values = {}, code = ""}
    local rows = rows_of(store, start.code)
    sort(rows, places(start.axes, start.values))
    local list = {}
    for i, row in ipairs(rows) do
        list[i] = {p = row.p, index = i, cost = 1, row = row}
    end
    local known = store:code(start.code)
    return setmetatable({name = store.plan.name, dir = dir, axes = start.axes,
        spec = {}, list = list, values = start.values, left_out = 0,
        store = store, script = known.script, is_opened = true,
        code = {hash = start.code, parts = known.parts}}, experiment)
end

-- --- the plan -------------------------------------------------------------

local function plural(n, word)
    return format("%d %s%s", n, word, n == 1 and "" or "s")
end

-- How many stale rows are of points that there are now.
local function stale_points(e, store)
    local by_point, count = {}, 0
    local codes = store and store:stale(e.code.hash)
    if not codes then return {}, 0 end
    for _, row in pairs(store.rows) do
        if codes[row.code] and not store:is_dropped(row) then
            by_point[identity.canonical(row.p)] = row
        end
    end
    for _, point in ipairs(e.list) do
        if by_point[identity.canonical(point.p)] then count = count + 1 end
    end
    return by_point, count
end

local function status_of(point, store, stale)
    local row = point.row or store and store:row(point.keys)
    if row then return row.status, row end
    return stale[identity.canonical(point.p)] and "stale" or "to do"
end

local function predicted(e, store)
    local model, left, count = bar.model(), 0, 0
    for _, point in ipairs(e.list) do
        local row = point.row or store and store:row(point.keys)
        if row and row.seconds and row.seconds > 0 then
            model:add(point.cost, row.seconds)
        elseif not row then
            left, count = left + point.cost, count + 1
        end
    end
    return count > 0 and model:predict(count, left) or nil
end

local function headline(e, counts, seconds)
    local parts = {}
    for _, status in ipairs{"ok", "failed", "crashed", "timeout", "stale",
        "to do"} do
        if counts[status] then
            parts[#parts + 1] = format("%d %s", counts[status],
                status == "ok" and "done" or status)
        end
    end
    return format("%s: %s%s in %s: %s%s", e.name, plural(#e.list, "point"),
        e.left_out > 0 and format(" (%d left out)", e.left_out) or "", e.dir,
        concat(parts, ", "), seconds and ", about " .. bar.clock_text(seconds) ..
        " to go" or "")
end

local PLANNED = 40 -- lines of a plan that are shown

local function plan_text(e, plan, counts, seconds)
    local lines = {headline(e, counts, seconds)}
    for i, item in ipairs(plan) do
        if i > PLANNED then
            lines[#lines + 1] = format("  … %d more", #plan - PLANNED)
            break
        end
        lines[#lines + 1] = format("  %-8s %s%s", item.status,
            axes.name_point(item.p, e.axes),
            item.message and "  " .. gsub(item.message, "%s+", " ") or "")
    end
    return concat(lines, "\n")
end

-- A list of {p, status, cost, message}, which shows itself.
function methods.plan(e)
    local store = refresh(e)
    local stale, plan, counts = stale_points(e, store), {}, {}
    for i, point in ipairs(e.list) do
        local status, row = status_of(point, store, stale)
        counts[status] = (counts[status] or 0) + 1
        plan[i] = {p = copied(point.p), status = status, cost = point.cost,
            message = row and row.message}
    end
    local seconds = predicted(e, store)
    return checks.shown(plan, plan_text(e, plan, counts, seconds))
end

function experiment.__tostring(e)
    local ok, store = pcall(refresh, e)
    local counts = {}
    if not ok then return format("%s: %s", e.name, tostring(store)) end
    local stale = stale_points(e, store)
    for _, point in ipairs(e.list) do
        local status = status_of(point, store, stale)
        counts[status] = (counts[status] or 0) + 1
    end
    return headline(e, counts)
end

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
    check_fields("run", o, run_options)
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
    if rank then run.device = workers.device(o.devices, rank.here) end
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
    local left = run.is_spawned and workers.seconds_left() or o.budget
    run.deadline = left and library.clock() + left
    run.store = store_of.create(e.dir, e.name)
    e.store = run.store
    if o.workers and o.workers > 1 and not e.rank then
        run.count = to_integer(o.workers)
    end
    return run
end

-- --- running --------------------------------------------------------------

local FAILED = 5 -- lines about failed points

local function tell_end(run, over)
    run.store:refresh()
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
    return workers.supervise(run, math.min(run.count, todo))
end

-- Notes are the first records of a journal of their own.
local function write_notes(run)
    if #run.notes == 0 then return end
    local host, pid = journal.identity()
    run.store:begin(format("%s-%d-%d-notes", gsub(host, "[^%w_.-]", "_"), pid,
        math.floor(library.clock() * 1000)), {note = "notes", time = os.time(),
        host = host, pid = pid})
    local store <close> = run.store
    for _, note in ipairs(run.notes) do run.store:append(note) end
end

local function is_for_another(e)
    local dir = workers.spawned_for()
    return dir and dir ~= journal.real_path(e.dir)
end

function methods.run(e, options)
    if e.is_opened then
        fail("run", "%s was opened from its folder, which has no measure: run " ..
            "the script that made it", e.name)
    end
    if is_for_another(e) then return e end
    local run = new_run(e, options)
    if run.count and not run.is_spawned then workers.check_script() end
    settle_rows(run)
    set_keys(e.list, run.store:accepted(e.code.hash))
    run.points = select_points(e, run.options)
    local cost = e.spec.cost or e.spec.flops or e.spec.bytes
    run.order = run.options.order or
        ((run.count or e.rank) and cost and "longest" or "interleaved")
    tell_start(run)
    note_environment(run)
    runner.prepare(run)
    write_notes(run)
    run.store:add_code(e.code, e.script)
    local over = work(run)
    if run.is_spawned then exit(0, true) end
    tell_end(run, over)
    return e
end

for name, method in pairs(methods) do methods[name] = checks.placed(method) end

return definition
