-- How long a command of a pool takes, from the prompt to all processes and back:
-- the median and the 99th percentile of an empty one, of a small D + 1, of
-- D:sum() and of one element, beside how long the pool took to start. The
-- targets are 100 us at the 99th percentile and 1 s, with four processes on two
-- cores that nobody else uses.
--   lumat bench_pool.lua [--ranks N] [--calls N] [--launcher L]
--     --ranks     processes (4)
--     --calls     how often each is called (2000)
--     --launcher  mpirun, srun or local
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local options = require "options"("bench_pool",
    "[--ranks N] [--calls N] [--launcher L]",
    {ranks = "count", calls = "count", launcher = "text"})
local ranks, calls = options.ranks or 4, options.calls or 2000

local began = clock()
pool{ranks = ranks, launcher = options.launcher}
local started = clock() - began
print(("%d processes: started in %.2f s (1 s asked)"):format(ranks, started))

local D = drand(64, {dtype = "f64", block = 16})
local cases = {
    {"empty", pool.ping},
    {"D + 1", function() local _ = D + 1 end},
    {"D:sum()", function() return D:sum() end},
    {"D[{3, 5}]", function() return D[{3, 5}] end},
}
print(("%-12s %10s %10s %10s"):format("", "median us", "99 % us", "target us"))
for _, case in ipairs(cases) do
    local name, f = case[1], case[2]
    local times = zeros(calls, {dtype = "f64", device = "cpu"})
    for _ = 1, 50 do f() end
    for i = 1, calls do
        local start = clock()
        f()
        times[i] = clock() - start
    end
    print(("%-12s %10.0f %10.0f %10s"):format(name, median(times) * 1e6,
        quantile(times, 0.99) * 1e6, name == "empty" and "100" or ""))
end
