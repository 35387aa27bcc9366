-- What is told of distributed matrices and of what is done with them: inspect,
-- cost, the trace, pool.info; what fits nowhere; processes that end at any
-- moment.
local lu = require "luaunit"
local t = require "common"
local pools = require "pool.pools"

TestPoolReports = {}

function TestPoolReports.test_inspect()
    pools.start(2, 2, 3)
    local A = pools.random(20, 13, "f64", 1)
    A[{4, 5}], A[{6, 1}], A[{7, 1}], A[{2, 2}] = 3, -2, 0, 0
    local found = inspect(spread(A), "D")
    lu.assertEquals({found.min, found.max, found.zeros, found.nan},
        {-2.0, 3.0, 2.0, 0.0})
    t.near(found.mean, mean(A), 1e-13)
    t.near(found.std, std(A), 1e-13)
    t.near(found.norm, norm(A), 1e-13)
    local text = tostring(found)
    for _, piece in ipairs{"D = f64 20x13  pool 2x2", "blocks of 3x3",
        "the largest part 11x7", "max    3 at [4, 5]", "min    -2 at [6, 1]"} do
        lu.assertStrContains(text, piece)
    end
    A[{1, 1}] = 0 / 0
    lu.assertEquals(inspect(spread(A)).nan, 1.0)
    lu.assertEquals(inspect(spread(A):gt(0))["true"], A:gt(0):f64():sum())
    lu.assertStrContains(tostring(inspect(dzeros(0, 3))), "0x3")
    lu.assertNotNil(inspect(spread(A):c128()).norm)
end

-- A model: nothing is computed, and nothing is there afterwards.
function TestPoolReports.test_cost()
    pools.start(2, 2, 16)
    local D, E = drand(64, {dtype = "f64"}), drand(64, {dtype = "f64"})
    local before = pool.info():match "process 1 at.-parts"
    local found = cost(function() return D * E end)
    lu.assertEquals(found.pool.flops, 2.0 * 64 ^ 3)
    -- 32 rows of A and 32 columns of B, of which half lie there
    lu.assertEquals(found.pool.link_bytes, 8.0 * 64 * 32)
    lu.assertEquals(found.pool.kept, 8.0 * 32 * 32)
    lu.assertStrContains(tostring(found), "on the pool: 131 kFLOP for each of 4")
    found = cost(function() return D:lu():solve(E) end)
    lu.assertTrue(found.pool.flops > 64 ^ 3)
    lu.assertEquals(cost(function() return (D + E):gt(0) end).pool.commands, 2)
    lu.assertEquals(cost(function() return ones(2) end).pool, nil)
    lu.assertEquals(pool.info():match "process 1 at.-parts", before)
    lu.assertErrorMsgContains("depends on elements", cost,
        function() return D:argmax() end)
end

-- Lines that a command writes to the standard error.
local function traced(code)
    local file, out = os.tmpname(), os.tmpname()
    t.write(file, code)
    os.execute(("%s %s 2>%s"):format(os.getenv "LUMAT", file, out))
    os.remove(file)
    return t.taken(out)
end

function TestPoolReports.test_trace()
    local text = traced [[
        pool{ranks = 2, grid = {1, 2}, block = 32}
        local D = drand(64, {dtype = "f64"})
        tracing(true)
        local E = D * D
        E = D + 1
        E = D:sum(1)
        tracing(false)
        E = D * D
    ]]
    -- of A what the other has, 64 x 32 f64, and little beside
    local multiply, map = text:match(
        "pool 1x2  multiply (.-)\n.*pool 1x2  map (.-)\n")
    lu.assertStrContains(multiply, "GFLOP/s")
    lu.assertStrMatches(multiply, ".*1 to 2 1[67]%.?%d* KiB, 2 to 1 1[67].*")
    lu.assertStrMatches(map, ".*%d+ B over links.*")
    lu.assertStrContains(text, "pool 1x2  reduce_axis") -- with parts that answer
    local _, count = text:gsub("multiply", "")
    lu.assertEquals(count, 1)
end

function TestPoolReports.test_info()
    pools.start(1, 2, 16)
    local text = pool.info()
    lu.assertStrMatches(text, ".*: 2 processes, .* free of .*")
    lu.assertStrMatches(text, ".*between neighbours: .* GB/s at 1 MiB, .*s for a " ..
        "small message.*")
end

-- Nothing is made where there is no room, or no counting.
function TestPoolReports.test_room()
    pools.start(2, 2, 64)
    local D = drand(10)
    for text, f in pairs{
        ["40000000000 elements for a process, 149.0 GiB, more than ScaLAPACK " ..
            "counts"] = function() return dzeros(400000) end,
        ["is more rows or columns than ScaLAPACK counts"] = function()
            return dzeros(2 ^ 31, 1)
        end,
    } do
        lu.assertErrorMsgContains(text, f)
    end
    if memory("cpu").free < 120 * 2 ^ 30 then
        lu.assertErrorMsgContains("c128 90000x90000, 120.7 GiB: each of 4 " ..
            "processes needs 30.2 GiB, and ", dzeros, 90000, {dtype = "c128"})
    end
    lu.assertTrue(D:sum() > 0)
end

-- Processes end at any moment of what they do, or have no memory any more: each
-- time one error, and a pool like it goes on; at last there are none.
-- BLAS asks for memory until it has it; so it has it before there is none.
function TestPoolReports.test_little_memory()
    pools.start(2, 2, 16)
    local D = drand(150, {dtype = "f64"})
    local pid = pools.pids()[2]
    local size = t.content("/proc/" .. pid .. "/status"):match "VmSize:%s*(%d+)"
    os.execute(("prlimit --as=%d --pid %d"):format((size + 0x8000) * 0x400, pid))
    os.execute(("(sleep 20; kill -KILL %d 2>/dev/null) &"):format(pid))
    lu.assertTrue((D * D):sum() > 0)
    pool.close()
end

function TestPoolReports.test_any_moment()
    local pids = {}
    for round = 1, pools.are_all and 20 or 3 do
        pools.start(2, 2, 16)
        pids = pools.pids()
        lu.assertEquals(#pids, 4)
        local ways = {"kill -KILL", "kill -SEGV", "prlimit --as=1000000 --pid"}
        os.execute(("(sleep %.3f; %s %s) &"):format(math.random() * 0.3,
            ways[round % 3 + 1], pids[round % 4 + 1]))
        local ok, message = pcall(function()
            local D = drand(150, {dtype = "f64"})
            for _ = 1, 1e6 do
                local E = D * D
                E = E:lu():solve(D)
                E = E[vec{3, 1, 2}] .. D[{{1, 3}, {}}]
            end
        end)
        lu.assertFalse(ok)
        if round % 3 ~= 2 then
            lu.assertStrMatches(message, ".*pool%.restart%(%).*")
        end
        lu.assertTrue(rand(5):sum() > 0)
        pool.restart()
        lu.assertTrue(drand(40):sum() > 0)
    end
    pids = pools.pids()
    pool.close()
    for _, pid in ipairs(pids) do
        lu.assertNil(t.content("/proc/" .. pid .. "/stat"))
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
