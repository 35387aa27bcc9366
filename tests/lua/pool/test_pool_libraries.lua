-- Products and factors that a library of the vendor makes of matrices on several
-- GPUs (cuBLASMp, cuSOLVERMp), where it is found.
if not POOL_DEVICE then
    local count = require "lumat.workers".gpu_count()
    if count < 2 then
        print("1..0 # SKIP 2 GPUs are needed, and there are " .. count)
        os.exit(0)
    end
    POOL_LAUNCHER, POOL_DEVICE, POOL_MOST = "local", "gpu", math.min(count, 4)
end
local lu = require "luaunit"
local t = require "common"
local pools = require "pool.pools"
local each_grid, near, random, start = pools.each_grid, pools.near, pools.random,
    pools.start
local here = {device = "cpu"}
TestLibraries = {}

-- The kernel of that name of a product or a factorisation, if it can be had.
local function is_there(name)
    local D = dzeros(2)
    if name == "cublasmp" then
        for _, kernel in ipairs(kernels(D, D)) do
            if kernel.name == name then return kernel.available end
        end
        return false
    end
    local ok, why = pcall(function() return D:qr({kernel = name}) end)
    return ok or not why:find "is not there"
end

-- In gpu_pools.t, where they are told to.
local all_fail = (os.getenv "LUMAT_FAKE_LIBRARY_FAILS" or "") ~= ""

local function needs(name)
    if all_fail then lu.skip("libraries fail") end
    if not is_there(name) then lu.skip("needs " .. name) end
end

each_grid(TestLibraries, "products", function(what)
    needs "cublasmp"
    for _, dtype in ipairs(pools.types) do
        local block = tonumber(what:match "blocks of (%d+)")
        local m, k, n = 4 * block, 6 * block, 5 * block
        local A, B = random(m, k, dtype, 1), random(k, n, dtype, 2)
        local D, E = spread(A), spread(B)
        local function by_library(x, y)
            return x:matmul(y, {kernel = "cublasmp"}):gather()
        end
        near(by_library(D, E), A * B, k, what .. dtype)
        near(by_library(spread(A.T:clone()).T, E), A * B, k, what .. dtype)
        near(by_library(D, spread(B.H:clone()).H), A * B, k, what .. dtype)
    end
end, {3, 12})

-- By kernel `name`, of n x n.
local function check_factors(n, dtype, what)
    local by = {kernel = "cusolvermp"}
    local A = random(n, n, dtype, 1)
    local b = random(n, 3, dtype, 2)
    local D, size, allowed = spread(A), A:norm(), 16 * n * t.unit[dtype]
    local F = D:lu(by)
    lu.assertTrue(norm((F.L * F.U):gather() - A[{F.p, {}}]) <= allowed * size, what)
    local x = F:solve(b)
    lu.assertTrue(norm(A * x - b) <= allowed * size * norm(x), what)
    local got, sign = F:logdet()
    local wanted, its = logdet(A)
    lu.assertTrue(abs(got - wanted) <= allowed * cond(A) * (1 + abs(wanted)), what)
    lu.assertTrue(abs(sign - its) <= allowed * cond(A), what)
    local S = D * D.H + n * deye(n, {dtype = dtype})
    local C = S:chol(by)
    lu.assertTrue((C.L * C.L.H - S):norm() <= allowed * S:norm(), what)
    local y = C:solve(b)
    lu.assertTrue(norm(S:gather() * y - b) <= allowed * S:norm() * norm(y), what)
    local log = logdet(S:gather())
    lu.assertTrue(abs(C:logdet() - log) <= allowed * cond(S:gather()) * abs(log), what)
    local w, V = (D + D.H):eigh(by):unpack()
    lu.assertTrue(((D + D.H) * V - V % w:row()):norm() <= allowed * size, what)
    lu.assertTrue((V.H * V - deye(n, {dtype = dtype})):norm() <= allowed, what)
end

each_grid(TestLibraries, "factors", function(what)
    needs "cusolvermp"
    local by, block = {kernel = "cusolvermp"}, tonumber(what:match "blocks of (%d+)")
    if block % 16 > 0 then
        lu.assertErrorMsgContains("kernel cusolvermp takes whole blocks of a " ..
            "multiple of 16", function() return drandn(200):lu(by) end)
        return
    end
    local n, rows, cols = 128, what:match "(%d+)x(%d+)"
    if n < block * math.max(tonumber(rows), tonumber(cols)) then return end
    for _, dtype in ipairs(pools.types) do
        check_factors(n, dtype, what .. dtype)
        for _, shape in ipairs{{n, n}, {n + 64, n}, {n, n + 64}, {0, 3}} do
            local D = spread(random(shape[1], shape[2], dtype, 4))
            local Q, R = D:qr{kernel = "cusolvermp"}:unpack()
            local allowed = 16 * shape[1] * t.unit[dtype]
            lu.assertTrue((Q * R - D):norm() <= allowed * D:norm(), what)
            lu.assertTrue((Q.H * Q - deye(math.min(shape[1], shape[2]),
                {dtype = dtype})):norm() <= allowed, what)
        end
    end
    lu.assertEquals(dzeros(0):lu{kernel = "cusolvermp"}.p.shape, {0})
    lu.assertEquals(dzeros(0):chol{kernel = "cusolvermp"}.L.rows, 0)
    local pivots = ones(n)
    pivots[3] = -1
    local _, why = pcall(chol, spread(diag(pivots)), by) -- 0.8 says no more
    lu.assertTrue((why:find "order 3" or why:find "cusolverMpPotrf: internal error") ~= nil, why)
    lu.assertErrorMsgContains("pivot 1 is 0", function()
        return dzeros(n):lu(by):solve(ones(n, here))
    end)
    if pool.count() > 1 then
        lu.assertErrorMsgContains("of which each process has some: these are of " ..
            "1x1 in blocks of", function() return deye(1):lu(by) end)
        lu.assertErrorMsgContains("whole blocks", function() return deye(129):lu(by) end)
    end
end, {3, 16, 32})

function TestLibraries.test_race()
    if all_fail then lu.skip("libraries fail") end
    start(1, 2, 16)
    if is_there "cusolvermp" then
        for _, operation in ipairs{"lu", "chol", "qr"} do
            local D = drandn(64, {seed = 1})
            local found = {}
            for _, row in ipairs(race(operation == "chol" and
                D * D.T + 64 * deye(64) or D, operation, {seconds = 0.01})) do
                found[row.name] = row.accept
            end
            lu.assertEquals(found, {panels = true, cusolvermp = true}, operation)
        end
    end
    if is_there "cublasmp" then
        local D = drandn(64, {seed = 1})
        for _, row in ipairs(race(D, D, {seconds = 0.01})) do
            if row.name == "cublasmp" then lu.assertTrue(row.accept) end
        end
    end
    -- where it cannot, the others are compared
    local D = drandn(70, {seed = 1})
    for _, row in ipairs(race(D, "lu", {seconds = 0.01})) do
        lu.assertEquals(row.accept ~= nil, row.name ~= "cusolvermp")
    end
end

-- A library that fails in one process alone is one error, and the pool is kept.
function TestLibraries.test_one_fails()
    if not all_fail then lu.skip("needs a library that can be told to fail") end
    start(1, 2, 16)
    local D = drandn(64, {seed = 1})
    for _, f in ipairs{
        function() return D:lu{kernel = "cusolvermp"} end,
        function() return D:matmul(D, {kernel = "cublasmp"}) end,
        function() return (D + D.T):eigh{kernel = "cusolvermp"} end} do
        local ok, why = pcall(f)
        lu.assertFalse(ok)
        lu.assertStrContains(why, "the library failed here")
        lu.assertEquals(pool.count(), 2)
        lu.assertTrue((D * D):norm() > 0)
    end
end

function TestLibraries.test_refused()
    start(1, 2, 16)
    local D = drandn(8, {seed = 1})
    for text, f in pairs{
        ["lu: kernel is \"abacus\", expected panels, cusolvermp"] =
            function() return D:lu{kernel = "abacus"} end,
        ["chol: of distributed matrices takes kernel= alone, not \"full\""] =
            function() return D:chol{full = true} end,
        ["qr: kernel is \"abacus\""] = function() return D:qr{kernel = "abacus"} end,
        ["eigh: kernel is \"abacus\", expected first, cusolvermp"] =
            function() return D:eigh{kernel = "abacus"} end,
        ["lu: options are \"panels\", expected a table, as {kernel = …}"] =
            function() return D:lu("panels") end,
    } do lu.assertErrorMsgContains(text, f) end
    if not is_there "cusolvermp" then
        lu.assertErrorMsgContains("lu: kernel cusolvermp is not there: it needs " ..
            "cuSOLVERMp: lib", function() return D:lu{kernel = "cusolvermp"} end)
    end
    if not is_there "cublasmp" then
        lu.assertErrorMsgContains("cuBLASMp: lib",
            function() return D:matmul(D, {kernel = "cublasmp"}) end)
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
