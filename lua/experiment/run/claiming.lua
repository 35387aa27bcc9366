-- Claims: which worker has a unit. One is KEY.N in the folder of claims, N - 1
-- being how often the unit was claimed before: its numbers are there from 1
-- on, without a gap, and who has the highest one has the unit. Whoever finds
-- that holder gone links the next number, which one process alone can; then it
-- looks whether what it judged is still there. The holder itself links the next
-- one before each row, which tells it for certain that nobody else did. When
-- the unit is done, lower numbers are taken away first, one's own last.
local library = ...
local journal = require "lumat.journal"
local store_of = require "lumat.store"
local getenv, setmetatable, tonumber = os.getenv, setmetatable, tonumber
local format = string.format
local claiming, claim = {}, {}
claim.__index = claim

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

return claiming
