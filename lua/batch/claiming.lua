-- Claims: which worker has a unit. One is KEY.N in the folder of claims, N - 1
-- being how many workers had the unit before and are gone. Whoever finds the
-- holder of the highest number gone links the next number, which one process
-- alone can; then it looks whether what it judged is still there. Lower numbers
-- are taken away first, one's own last.
local library = ...
local journal = require "lumat.journal"
local store_of = require "lumat.store"
local getenv, tonumber = os.getenv, tonumber
local format = string.format
local claiming = {}

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

-- The highest number of a claim that is there, from n on.
local function highest(run, key, n)
    while journal.look(format("%s/%s.%d", run.claims, key, n + 1)) do
        n = n + 1
    end
    return n
end

function claiming.drop(worker, claim)
    for n = 1, claim.number do
        worker:drop(format("%s.%d", claim.key, n))
    end
end

local function still_there(run, judged)
    local _, inode = journal.look(judged.path)
    return inode == judged.inode
end

-- Tries to claim the key: {key, number, from: the owner it was taken from},
-- or nil and whose it is.
function claiming.take(run, worker, key)
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
-- have lost it.
function claiming.is_mine(run, worker, claim)
    return worker:has(format("%s.%d", claim.key, claim.number)) and
        highest(run, claim.key, claim.number) == claim.number
end

return claiming
