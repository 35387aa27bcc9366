-- What sharing an experiment costs: points a second of one worker, with one
-- thread or one GPU, and of several. Where nothing is lost, as many times as many
-- as there are workers, or cores or GPUs if these are fewer: the share of that is
-- the efficiency.
--   lumat bench_workers.lua [--several N] [--rounds R] [--points P] [--quick]
--                           [--sleep S] [--device D] [--least E]
--     --several   how many (4); --workers would be told to every run
--     --rounds    both are measured so often in turn, the medians count (3)
--     --points    of each worker in a round (400)
--     --sleep     points wait so many seconds in place of computing: of which
--                 every worker has as many, whatever the cores do
--     --least     ends with code 1 where the efficiency is below it, as 0.9
-- A point computes about 10 ms on a core: products of a 256 x 256 matrix, of
-- 8192 x 8192 on a GPU.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local options = require "options"("bench_workers", "[--several N] [--rounds R] " ..
    "[--points P] [--quick] [--sleep S] [--device D] [--least E]",
    {several = "count", rounds = "count", points = "count", quick = "switch",
        sleep = "number", device = "text", least = "number"})
local rounds = options.rounds or options.quick and 1 or 3
local points = options.points or options.quick and 20 or 400
local least = options.least or 0
if options.device then device(options.device) end

local on_gpu = device() ~= "cpu"
local workers = options.several or 4
local sleep = options.sleep

-- So many workers there could be without one being in another's way.
local function hands()
    if sleep then return workers end
    local pipe = io.popen(on_gpu and "nvidia-smi -L 2>/dev/null" or "nproc")
    local text = pipe:read "a"
    pipe:close()
    local _, count = text:gsub("GPU %d+:", "")
    return math.min(workers, math.max(1, on_gpu and count or tonumber(text) or 1))
end

-- Rounds are kept in a folder of their own, which is that of whoever started this
-- worker, and goes at the end.
local own = os.getenv "LUMAT_WORKER"
local folder = own and own:match "^(.*)/" or os.tmpname()
if not own then os.remove(folder) end

-- One round of one worker, or of several: points a second. The workers run this script,
-- too, and of all its experiments take part in the one they were started for.
local function round(number, which)
    local count = which == "one" and 1 or workers
    local e = experiment{name = ("%s-%d"):format(which, number),
        dir = ("%s/%s-%d"):format(folder, which, number),
        axes = {point = experiment.range(1, points * count)},
        setup = function()
            local n = on_gpu and 8192 or 256
            return {A = rand(n, n), times = 20, sleep = options.sleep}
        end,
        group = false, repeats = 1, warmup = 0,
        measure = function(_, s)
            local began = clock()
            if s.sleep then
                os.execute("sleep " .. s.sleep)
            else
                for _ = 1, s.times do local _ = s.A * s.A end
                sync()
            end
            return clock() - began
        end}
    local began = clock()
    e:run{workers = count, threads = 1, quiet = true}
    local seconds = clock() - began
    for _, row in ipairs(e:results()) do
        if row.status ~= "ok" then error(row.message, 0) end
    end
    return points * count / seconds
end

local rates = {{}, {}}
for number = 1, rounds do
    rates[1][number] = round(number, "one")
    rates[2][number] = round(number, "several")
end
os.execute("rm -rf '" .. folder .. "'")
local one, several = median(vec(rates[1])), median(vec(rates[2]))
local most = hands()
local efficiency = several / one / most
print(("1 worker    %8.2f points/s"):format(one))
print(("%-2d workers  %8.2f points/s, %.2f times as many; %d could be at it at once")
    :format(workers, several, several / one, most))
print(("efficiency  %8.1f %%"):format(100 * efficiency))
if efficiency < least then
    print(("FAILS: below %.1f %%"):format(100 * least))
    os.exit(1)
end
