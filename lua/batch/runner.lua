-- Running the points of an experiment: claiming one, measuring it, writing its
-- row, until none is left that this process may claim.
--
-- A claim is KEY.N in the folder of claims, N - 1 being how many workers had
-- the point before and are gone. Whoever finds the holder of the highest
-- number gone links the next number, which one process alone can; then it
-- looks whether what it judged is still there, and whether the point was done
-- meanwhile. Lower numbers are taken away first, one's own last.
local library = ...
local journal = require "lumat.journal"
local checks = require "lumat.checks"
local axes, bar = require "lumat.axes", require "lumat.bar"
local identity = require "lumat.identity"
local store_of = require "lumat.store"
local fail = checks.fail
local getenv, time = os.getenv, os.time
local error, ipairs, next, pairs, pcall = error, ipairs, next, pairs, pcall
local tonumber, tostring = tonumber, tostring
local find, format, match = string.find, string.format, string.match
local larger, smaller = math.max, math.min
local sort = table.sort
local runner = {}

-- A point is crashed when so many workers ended by a fault of their own at it
-- or, which says less of the point, were killed.
local FAULTS, DEATHS = 2, 20
local signals = {["4"] = "illegal instruction", ["6"] = "abort",
    ["7"] = "bus error", ["8"] = "arithmetic fault",
    ["11"] = "segmentation fault"}

local function lease()
    return tonumber(getenv("LUMAT_LEASE") or "") or 30
end

-- The keys of points for the codes that count.
function runner.set_keys(list, codes)
    for _, point in ipairs(list) do
        point.keys = {}
        for i, code in ipairs(codes) do
            point.keys[i] = identity.key(point.p, code)
        end
    end
end

-- --- which points ---------------------------------------------------------

-- Of a failed point of an earlier round something is left to do.
local function is_done(run, point)
    local row = run.store:row(point.keys)
    if not row then return false end
    return row.status == "ok" or (row.round or 0) >= run.store.round, row
end

-- How many points are done, how many of these failed; and what the others
-- cost together.
function runner.count(run)
    local done, failed, cost = 0, 0, 0
    for _, point in ipairs(run.points) do
        local is, row = is_done(run, point)
        if is then
            done = done + 1
            if row.status ~= "ok" then failed = failed + 1 end
        else
            cost = cost + point.cost
        end
    end
    return done, failed, cost
end

local orders = {
    given = function(a, b) return a.index < b.index end,
    -- by key: as if shuffled, and always the same
    interleaved = function(a, b) return a.keys[1] < b.keys[1] end,
    longest = function(a, b)
        if a.cost ~= b.cost then return a.cost > b.cost end
        return a.keys[1] < b.keys[1]
    end,
}

-- The points of this run in the order in which they are claimed.
local function in_order(run)
    local list = {}
    for i, point in ipairs(run.points) do list[i] = point end
    sort(list, orders[run.order])
    return list
end

-- --- progress -------------------------------------------------------------

-- What a row says in half a line.
local function told(row, names)
    local name = axes.name_point(row.p, names)
    if row.status ~= "ok" then
        return format("%s %s: %s", name, row.status, tostring(row.message))
    end
    return row.median and name .. ": " .. bar.seconds_text(row.median) or name
end

-- Adds the rows that came since to the cost model.
local function learn(run)
    for _, point in ipairs(run.points) do
        local row = not point.learnt and run.store:row(point.keys)
        if row then
            point.learnt = true
            if row.seconds and row.seconds > 0 then
                run.model:add(point.cost, row.seconds)
            end
        end
    end
end

local function show(run, hands)
    if not run.bar:is_due() then return end
    local start = library.clock()
    run.store:refresh()
    local done, failed, cost = runner.count(run)
    local total, last = #run.points, run.store.last
    learn(run)
    local left = run.model:predict(total - done, cost)
    run.bar:show{done = done, failed = failed, total = total,
        left = left and left / larger(1, hands),
        last = last and last ~= run.first_last and told(last, run.names) or nil}
    run.bar.took = library.clock() - start
end
runner.show = show

-- --- claims ---------------------------------------------------------------

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

-- The highest number of a claim that is there, from n on.
local function highest(run, key, n)
    while journal.look(format("%s/%s.%d", run.claims, key, n + 1)) do
        n = n + 1
    end
    return n
end

-- Of one that was lost, what is there now may be another worker's.
local function drop_claim(run, worker, claim)
    for n = 1, claim.number do
        local name = format("%s.%d", claim.key, n)
        if not claim.is_lost or worker:has(name) then worker:drop(name) end
    end
end

local function still_there(run, judged)
    local _, inode = journal.look(judged.path)
    return inode == judged.inode
end

-- Tries to claim the key: {key, number, from: the owner it was taken from},
-- or nil and whose it is.
local function claim(run, worker, key)
    local n, judged = 1, nil
    while true do
        local name = format("%s.%d", key, n)
        local mine, why = worker:take(name)
        if mine == nil then run.store:cannot_write(why) end
        if mine then
            if highest(run, key, n) > n or
                (judged and not still_there(run, judged)) then
                worker:drop(name)
                return nil
            end
            return {key = key, number = n, from = judged and judged.owner}
        end
        n = highest(run, key, n)
        local path = format("%s/%s.%d", run.claims, key, n)
        local text, inode, stamp = journal.look(path)
        if not text then return nil end
        local owner = store_of.owner(text)
        if not is_gone(run, path, owner, inode, stamp) then
            return nil, owner
        end
        judged = {path = path, inode = inode,
            owner = owner or {name = "unknown-" .. inode}}
        n = n + 1
    end
end

-- Does the claim still count? A machine that slept longer than the lease may
-- have lost it. Whoever took it over had the next number, which is taken here:
-- that alone is certain, whatever this machine remembers of the folder; and who
-- has done the point since took the lower number away first.
local function keep(run, worker, claim)
    local name = format("%s.%d", claim.key, claim.number)
    local following = format("%s.%d", claim.key, claim.number + 1)
    local mine, why = worker:take(following)
    if mine == nil then run.store:cannot_write(why) end
    if mine and worker:has(name) then
        worker:drop(name)
        claim.number = claim.number + 1
        return true
    end
    if mine then worker:drop(following) end
    claim.is_lost = true
    return false
end

-- --- rows -----------------------------------------------------------------

local function finish(run, point, row)
    row.key, row.p, row.code = point.keys[1], point.p, run.code.hash
    row.gen, row.round = run.store.generation, run.store.round
    row.env, row.worker, row.time = run.env, run.id, time()
    return row
end

-- What the worker died of: its own word, or what may be known without.
local function cause_of(owner)
    if owner.cause then return owner.cause end
    local _, _, _, machine = journal.identity()
    return machine == owner.machine and journal.oom_kills() > owner.kills and
        "out of memory" or "unknown"
end

-- Writes down that a worker died at the point, and what of; the row of a
-- point that is given up.
local function note_death(run, point, owner)
    local store, key = run.store, point.keys[1]
    local note = {note = "died", key = key, worker = owner.name,
        cause = cause_of(owner), gen = store.generation,
        round = store.round}
    store:append(note)
    store:take_in(note)
    local faults, deaths, cause = 0, 0, nil
    for _, other in pairs(store.died[key]) do
        if other.gen == store.generation and other.round == store.round then
            deaths = deaths + 1
            if other.cause ~= "unknown" then
                faults, cause = faults + 1, other.cause
            end
        end
    end
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

-- A copy, which measure may change without changing the point.
local function copy(p)
    local q = {}
    for name, value in next, p do q[name] = value end
    return q
end

-- A GPU that failed cannot be used by this process any more: its other points
-- would all fail.
local function check_device(run)
    local ok, message = pcall(library.sync)
    if not ok then
        if find(tostring(message), "interrupted", 1, true) then
            error(message, 0)
        end
        fail("run", "%s; the rows so far are safe", tostring(message))
    end
end

local function measure(run, worker, point)
    local spec, start = run.spec, library.clock()
    if run.is_spawned and spec.timeout then worker:limit(spec.timeout) end
    local row = run.measuring.measure_point(spec, copy(point.p), nil,
        {device = run.device})
    worker:limit()
    row.seconds = row.seconds or library.clock() - start
    if row.status ~= "ok" then check_device(run) end
    return row
end

-- Does the point that was claimed, unless somebody did meanwhile.
local function do_point(run, worker, point, claim)
    run.store:refresh(true)
    if is_done(run, point) then return end
    local row = claim.from and note_death(run, point, claim.from)
    if not row then row = measure(run, worker, point) end
    local written = run.store:append(finish(run, point, row), function()
        return keep(run, worker, claim)
    end)
    if not written then
        run.bar:say(format("%s: this process was stopped for so long that " ..
            "another one took %s over; its result is dropped", run.name,
            axes.name_point(point.p, run.names)))
    end
end

-- --- the loop -------------------------------------------------------------

local function is_over(run)
    return run.deadline and library.clock() >= run.deadline
end

-- Goes once through the list; those that others have are left, and whether
-- any was claimed.
local function pass(run, worker, list)
    local left, any = {}, false
    for i, point in ipairs(list) do
        if is_over(run) then return {}, false, true end
        if not is_done(run, point) then
            local claimed = claim(run, worker, point.keys[1])
            if claimed then
                do_point(run, worker, point, claimed)
                drop_claim(run, worker, claimed)
                any = true
            else
                left[#left + 1] = point
            end
        end
        show(run, run.hands)
    end
    return left, any
end

-- Points that others have are waited for: some of these may die.
local function pass_all(run, worker)
    local list, over, pause = in_order(run), false, 0.01
    while true do
        local any
        list, any, over = pass(run, worker, list)
        if #list == 0 then return over end
        pause = any and 0.01 or smaller(0.25, pause * 1.5)
        journal.sleep(pause)
        run.store:refresh(true)
        show(run, run.hands)
    end
end

-- Takes part until nothing is left; true when the budget was used up first.
function runner.work(run)
    local host, pid = journal.identity()
    run.id = journal.unique()
    run.store:begin(run.id, {note = "start", name = run.name, axes = run.names,
        values = run.values, code = run.code.hash, env = run.env,
        script = run.script, time = time(), host = host, pid = pid})
    local store <close> = run.store
    local name = "w-" .. run.id
    local worker <close> = journal.join(run.claims, name,
        store_of.introduce(name), run.lease)
    return pass_all(run, worker)
end

-- Takes away what workers that are gone left of points that are done.
function runner.tidy(run)
    local points = {}
    for _, point in ipairs(run.points) do points[point.keys[1]] = point end
    run.store:workers()
    for name in pairs(journal.list(run.claims) or {}) do
        local point = points[match(name, "^(%x+)%.%d+$")]
        local text = point and is_done(run, point) and
            journal.look(run.claims .. "/" .. name)
        local owner = text and store_of.owner(text)
        if owner and journal.is_alive(owner.machine, owner.pid,
            owner.start) == false then
            journal.forget(run.claims, name)
        end
    end
end

function runner.prepare(run)
    run.lease, run.seen = lease(), {}
    run.claims = run.store.dir .. "/claims"
    run.model = bar.model()
    run.first_last = run.store.last
    run.measuring = require "lumat.measuring"
    run.hands = 1
    return run
end

return runner
