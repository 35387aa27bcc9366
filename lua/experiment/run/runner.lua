-- Running the points of an experiment: claiming a unit of them, measuring it,
-- writing a row for each of its points when that is done, until none is left
-- that this process may claim.
local library = ...
local checks = require "lumat.checks"
local journal = require "lumat.journal"
local bar = require "lumat.progress".bar
local identity = require "lumat.code_hash"
local points_of = require "lumat.axes".points_of
local progress = require "lumat.progress"
local store_of = require "lumat.store"
local units = require "lumat.units"
local fail, copied = checks.fail, checks.copied
local collectgarbage, error, ipairs, pairs, pcall, setmetatable, tonumber,
    tostring = collectgarbage, error, ipairs, pairs, pcall, setmetatable,
    tonumber, tostring
local smaller = math.min
local format, match = string.format, string.match
local getenv, time = os.getenv, os.time
local claiming, claim, runner = {}, {}, {}
claim.__index = claim

-- --- claims ----------------------------------------------------------------
-- Which worker has a unit. A claim is KEY.N in the folder of claims, N - 1
-- being how often the unit was claimed before: its numbers are there from 1 on,
-- without a gap, and who has the highest one has the unit. Whoever finds that
-- holder gone links the next number, which one process alone can; then it looks
-- whether what it judged is still there. The holder itself links the next one
-- before each row, which tells it for certain that nobody else did. When the
-- unit is done, lower numbers are taken away first, one's own last.

-- Seconds after which a worker that nothing is heard of counts as gone.
function claiming.lease()
    return tonumber(getenv("LUMAT_LEASE") or "") or 30
end

-- Is the worker whose claim was looked at gone? Its process is not there any
-- more, or nothing was heard of it, by this process's own clock, for the time
-- of a lease.
local function is_gone(run, path, owner, inode, stamp)
    if owner then
        local alive = journal.is_alive(owner.machine, owner.pid, owner.start)
        if alive == false then return true end
    end
    local seen, now = run.seen[path], library.clock()
    if not seen or seen.inode ~= inode or seen.stamp ~= stamp then
        run.seen[path] = {inode = inode, stamp = stamp, since = now}
        return false
    end
    return now - seen.since > run.lease
end

local function path_of(run, key, n)
    return format("%s/%s.%d", run.claims, key, n)
end

-- The highest number of a claim that is there, or 0. There are as many as rows
-- of a group, so that looking goes on from where it was.
local function highest(run, key)
    local n = run.highest[key] or 0
    if n > 0 and not journal.look(path_of(run, key, n)) then n = 0 end
    while journal.look(path_of(run, key, n + 1)) do n = n + 1 end
    run.highest[key] = n
    return n
end

-- Who has the number: what there is to know of a holder that is gone; or nil,
-- and whether it is this worker.
local function judge(run, key, n)
    local path = path_of(run, key, n)
    local text, inode, stamp = journal.look(path)
    if not text then return nil end
    local owner = store_of.owner(text)
    if owner and owner.name == run.worker_name then return nil, true end
    if not is_gone(run, path, owner, inode, stamp) then return nil end
    return {path = path, inode = inode,
        owner = owner or {name = "unknown-" .. inode}}
end

local function still_there(judged)
    local _, inode = journal.look(judged.path)
    return inode == judged.inode
end

local function new_claim(run, worker, key, n, from)
    return setmetatable({run = run, worker = worker, key = key, number = n,
        from = from}, claim)
end

-- What a process has of a point that no other can take.
local own = setmetatable({keep = function() return true end},
    {__close = function() end})

-- Tries to claim the key: a claim, with `from`: the owner it was taken from;
-- or nil. Without a worker there are no others. What was thought lost, to one
-- who let go of it, is one's own still.
function claiming.take(run, worker, key)
    if not worker then return own end
    local n, judged, is_own = highest(run, key), nil, nil
    if n > 0 then
        judged, is_own = judge(run, key, n)
        if is_own then return new_claim(run, worker, key, n) end
        if not judged then return nil end
    end
    local name = format("%s.%d", key, n + 1)
    local mine, why = worker:take(name)
    if mine == nil then run.store:cannot_write(why) end
    if not mine then return nil end
    if highest(run, key) > n + 1 or judged and not still_there(judged) then
        worker:drop(name)
        return nil
    end
    return new_claim(run, worker, key, n + 1, judged and judged.owner)
end

-- Takes the next number: true; false when the claim is lost, nil and why when
-- that cannot be known. Whoever took the claim over has that number, or has
-- done the unit and took the lower one, which is this worker's, away before.
local function go_on(c)
    local own = format("%s.%d", c.key, c.number)
    local following = format("%s.%d", c.key, c.number + 1)
    local mine, why = c.worker:take(following)
    if mine == nil then return nil, why end
    if mine and c.worker:has(own) then
        c.number = c.number + 1
        return true
    end
    if mine then c.worker:drop(following) end
    c.is_lost = true
    return false
end

-- Does the claim still count? A machine that slept longer than the lease may
-- have lost it. To be asked before each row: what is known of the folder may
-- be old, and the next number alone is certain.
function claim:keep()
    local kept, why = go_on(self)
    if kept == nil then self.run.store:cannot_write(why) end
    return kept
end

-- Of a claim that was lost, nothing is taken away: its numbers are the lower
-- ones of somebody's who does that.
function claim:drop()
    if not self.is_lost and go_on(self) then self.worker:release() end
end
claim.__close = claim.drop

-- --- the runner ------------------------------------------------------------

-- A point is crashed when so many workers ended by a fault of their own at it
-- or, which says less of the point, were killed. A group's points are done
-- each one alone, to know which it is, after one or two.
local FAULTS, DEATHS = 2, 20
local GROUP_FAULTS, GROUP_DEATHS = 1, 2
local signals = {["4"] = "illegal instruction", ["6"] = "abort",
    ["7"] = "bus error", ["8"] = "arithmetic fault",
    ["11"] = "segmentation fault"}

-- The keys of points for the codes that count.
function runner.set_keys(list, codes)
    for _, point in ipairs(list) do
        point.keys = {}
        for i, code in ipairs(codes) do
            point.keys[i] = identity.key(point.p, code)
        end
    end
end

-- --- deaths ---------------------------------------------------------------

-- What the worker died of: its own word, or what may be known without.
local function cause_of(owner)
    if owner.cause then return owner.cause end
    local _, _, _, machine = journal.identity()
    return machine == owner.machine and journal.oom_kills() > owner.kills and
        "out of memory" or "unknown"
end

-- Writes down that a worker died at the unit, and what of.
local function note_death(run, unit, owner)
    local store = run.store
    local note = {note = "died", key = unit.key, worker = owner.name,
        cause = cause_of(owner), gen = store.generation,
        round = store.round}
    store:append(note)
    store:take_in(note)
    return note
end

-- How many workers died at the unit by a fault of their own, how many in all,
-- and a cause of the former.
local function deaths_at(run, unit)
    local store = run.store
    local faults, deaths, cause = 0, 0, nil
    for _, note in pairs(store.died[unit.key] or {}) do
        if note.gen == store.generation and note.round == store.round then
            deaths = deaths + 1
            if note.cause ~= "unknown" then
                faults, cause = faults + 1, note.cause
            end
        end
    end
    return faults, deaths, cause
end

local function is_broken(run, unit)
    local faults, deaths = deaths_at(run, unit)
    return unit.is_group and (faults >= GROUP_FAULTS or deaths >= GROUP_DEATHS)
end

-- The row of a point that is given up after this death, if it is.
local function given_up(run, unit, note)
    local faults, deaths, cause = deaths_at(run, unit)
    if note.cause == "timeout" then
        return {status = "timeout", message = format(
            "took longer than %g s; its worker was ended", run.spec.timeout)}
    elseif faults >= FAULTS or deaths >= DEATHS then
        local number = match(cause or "", "^signal (%d+)")
        return {status = "crashed", message = format(
            "killed its worker %d times (%s)", deaths, number and
            signals[number] or cause or "it was killed from outside")}
    end
end

-- --- rows -----------------------------------------------------------------

-- A GPU that failed cannot be used by this process any more: its other points
-- would all fail.
local function check_device(run)
    local ok, message = pcall(library.sync)
    if not ok then
        if checks.is_interrupt(message) then error(message, 0) end
        fail("run", "%s; the rows so far are safe", tostring(message))
    end
end

-- Writes the row of a point, if the claim still counts; says so where not, and
-- gives false.
local function write_row(run, claim, point, row)
    row.key, row.p, row.code = point.keys[1], point.p, run.code.hash
    row.gen, row.round = run.store.generation, run.store.round
    row.env, row.worker, row.time = run.env, run.id, time()
    if run.store:append(row, function() return claim:keep() end) then
        run.bar:count(progress.has_failed(row))
        return true
    end
    run.bar:say(format("%s: this process was stopped for so long that " ..
        "another one took %s over; its result is dropped", run.name,
        points_of.name(point.p, run.names)))
    return false
end

-- Lets go of what setup made, where that took long enough to be worth it: the
-- next unit may make as much.
local function let_go(run, took)
    if not run.spec.setup or run.collecting and took < 20 * run.collecting then
        return
    end
    local start = library.clock()
    collectgarbage()
    run.collecting = library.clock() - start
end

-- Measures the points, each of which has its row when it is done; those that
-- are left when the claim is lost are another worker's.
local function measure(run, worker, unit, points, claim)
    local list, start = {}, library.clock()
    for i, point in ipairs(points) do list[i] = copied(point.p) end
    local options = {device = run.device, on_row = function(i, row)
        if row.status ~= "ok" then check_device(run) end
        if not write_row(run, claim, points[i], row) then return false end
        if unit.is_group then progress.show(run, run.hands) end
        progress.tell(run)
    end}
    if unit.is_group then
        options.shared = units.parameters(points[1].p, unit.shared)
    end
    local function name(i) return points_of.name(points[i].p, run.names) end
    local shown <close> = run.bar:measuring(name(1))
    options.on_step = shown and function(i, sample)
        shown.tell(name(i), sample)
    end
    if run.is_spawned then
        options.limit = function(seconds) worker:limit(seconds) end
    end
    run.measuring.measure_group(run.spec, list, options)
    let_go(run, library.clock() - start)
end

-- --- units ----------------------------------------------------------------

-- The points of the unit that are not done.
local function left_of(run, unit)
    local left = {}
    for _, point in ipairs(unit.points) do
        if not progress.is_done(run, point) then left[#left + 1] = point end
    end
    return left
end

-- Does what is left to do of the unit that was claimed; the units that it
-- falls apart to, where its points are to be done alone.
local function do_unit(run, worker, unit, claim)
    run.store:refresh(true)
    local left = left_of(run, unit)
    if #left == 0 then return {} end
    local row
    if claim.from then
        local note = note_death(run, unit, claim.from)
        row = not unit.is_group and given_up(run, unit, note)
    end
    if row then
        write_row(run, claim, left[1], row)
    elseif is_broken(run, unit) then
        return units.apart(unit)
    else
        measure(run, worker, unit, left, claim)
    end
    return {}
end

-- --- the loop -------------------------------------------------------------

local function is_over(run)
    return run.deadline and library.clock() >= run.deadline
end

-- Does the unit unless another worker has it: what is left to come back to,
-- and whether it was claimed.
local function try_unit(run, worker, unit)
    local claim <close> = claiming.take(run, worker, unit.key)
    if not claim then return {unit}, false end
    local parts = do_unit(run, worker, unit, claim)
    return claim.is_lost and {unit} or parts, true
end

-- Goes once through the list; those that others have are left, and whether
-- any was claimed.
local function pass(run, worker, list)
    local left, any = {}, false
    for _, unit in ipairs(list) do
        if is_over(run) then return {}, false, true end
        if #left_of(run, unit) > 0 then
            local parts, claimed = try_unit(run, worker, unit)
            for _, part in ipairs(parts) do left[#left + 1] = part end
            any = any or claimed
        end
        progress.show(run, run.hands)
    end
    return left, any
end

-- Points that others have are waited for: some of these may die.
local function pass_all(run, worker)
    local list, over = units.in_order(run.units, run.order), false
    progress.show(run, run.hands)
    local pause = 0.01
    while true do
        local any
        list, any, over = pass(run, worker, list)
        if #list == 0 then break end
        pause = any and 0.01 or smaller(0.25, pause * 1.5)
        journal.sleep(pause)
        run.store:refresh(true)
        progress.show(run, run.hands)
        progress.tell(run)
    end
    progress.tell(run)
    return over
end

-- Takes part until nothing is left; true when the budget was used up first.
function runner.work(run)
    local host, pid = journal.identity()
    run.id = journal.unique()
    run.store:begin(run.id, {note = "start", name = run.name, axes = run.names,
        values = run.values, joint = run.e.joint, code = run.code.hash, env = run.env,
        script = run.script, time = time(), host = host, pid = pid})
    local store <close> = run.store
    run.worker_name = "w-" .. run.id
    local worker <close> = run.store:join(run.worker_name, run.lease)
    return pass_all(run, worker)
end

-- Takes away what workers that are gone left of units that are done.
function runner.tidy(run)
    local by_key = {}
    for _, unit in ipairs(run.units) do
        by_key[unit.key] = unit
        for _, part in ipairs(unit.is_group and units.apart(unit) or {}) do
            by_key[part.key] = part
        end
    end
    run.store:workers()
    for name in pairs(run.claims and journal.list(run.claims) or {}) do
        local unit = by_key[match(name, "^(%x+)%.%d+$")]
        local text = unit and #left_of(run, unit) == 0 and
            journal.look(run.claims .. "/" .. name)
        local owner = text and store_of.owner(text)
        if owner and journal.is_alive(owner.machine, owner.pid,
            owner.start) == false then
            journal.forget(run.claims, name)
        end
    end
end

function runner.prepare(run)
    run.lease, run.seen, run.highest = claiming.lease(), {}, {}
    run.claims = run.store.dir and run.store.dir .. "/claims"
    run.model = bar.model()
    run.first_last = run.store.last
    run.measuring = require "lumat.measuring"
    run.hands = 1
    progress.listen(run)
    return run
end

return runner
