-- Are the processes of a pool still there? While an answer is waited for each is
-- asked by the link that stops it, where a thread of its own answers, whatever
-- the others of the process do. One that is stopped, or whose host is gone, says
-- nothing, and no launcher tells.
local library = ...
local launching = require "lumat.launching"
local ipairs = ipairs
local smaller = math.min
local format = string.format
local heartbeats = {}

-- The bytes that go by that link: to stop what runs, to be answered.
heartbeats.STOP, heartbeats.ASK = "s", "a"

-- Asks all of them, a second after it did so before or later: what is wrong, or
-- nothing. Time in which this process stood still itself does not count.
function heartbeats.trouble(p)
    local now = library.clock()
    local passed = smaller(now - (p.asked or now), 2)
    p.asked = now
    for number, link in ipairs(p.watched) do
        local heard = link:heard()
        if not heard or not link:signal(heartbeats.ASK) then
            return launching.cause(p, number)
        end
        local silent = heard > 0 and 0 or (p.silent[number] or 0) + passed
        p.silent[number] = silent
        if silent > p.timeout then
            return format("process %d of %d on %s has not answered for %.0f s " ..
                "and was ended", number, p.count, p.hosts[number], silent)
        end
    end
    return launching.end_of_launcher(p)
end

return heartbeats
