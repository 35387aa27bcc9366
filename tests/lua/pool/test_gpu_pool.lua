-- What the tests of pools ask, of processes that each compute on a GPU of their
-- own, where there are several; tests/faults/gpu_pools.t makes them of the CPU.
-- LUMAT_POOL_TEST: one of these tests.
local count = require "lumat.workers".gpu_count()
if count < 2 then
    print("1..0 # SKIP 2 GPUs are needed, and there are " .. count)
    os.exit(0)
end
POOL_LAUNCHER, POOL_DEVICE, POOL_MOST = "local", "gpu", math.min(count, 4)
require("pool." .. (os.getenv "LUMAT_POOL_TEST" or "test_pool"))
