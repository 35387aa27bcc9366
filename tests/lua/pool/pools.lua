-- What tests of pools share: matrices to be compared, and tests that are run on
-- each grid, with blocks of several sizes. POOL_LAUNCHER, a global, says what
-- starts them, where it is set, POOL_DEVICE where they compute, and POOL_MOST how
-- many there are at most: in the place of a larger grid is one of so many. Where
-- the program was built without MPI only "local" can be tested: else who requires
-- this ends. What is compared with them the prompt computes on the CPU.
local lu = require "luaunit"
local t = require "common"
local pools = {}

local worker = io.open((os.getenv "LUMAT" or ""):gsub("[^/]*$", "") ..
    "lumat-worker")
if worker then
    worker:close()
elseif POOL_LAUNCHER ~= "local" then
    print("1..0 # SKIP built without MPI and ScaLAPACK")
    os.exit(0)
end

pools.types = {"f32", "f64", "c64", "c128"}

-- LUMAT_POOLS=all: every grid and block; else some of both.
pools.are_all = os.getenv "LUMAT_POOLS" == "all"
local most = POOL_MOST or 4
local grids = {}
for _, grid in ipairs((pools.are_all or most < 4) and
    {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 4}, {4, 1}} or
    {{1, 1}, {2, 2}, {1, 3}}) do
    if grid[1] * grid[2] <= most then grids[#grids + 1] = grid end
end
local all_blocks = {1, 3, 37, 64}
settings{device = "cpu"}

-- What is running then, in words, and of how many processes.
local running
function pools.start(rows, cols, block)
    if rows * cols > most then rows, cols = 1, most end
    local wanted = ("%dx%d, blocks of %d"):format(rows, cols, block)
    if running ~= wanted or pool.count() ~= rows * cols then
        pool{ranks = rows * cols, grid = {rows, cols}, block = block,
            launcher = POOL_LAUNCHER, device = POOL_DEVICE}
        running = wanted
    end
    return wanted, rows * cols
end

-- The processes' ids, as texts.
function pools.pids()
    local list <close> = io.popen([[
children() { # of $1, whose command lines have $2
    for s in /proc/[0-9]*/stat; do
        read -r pid name state parent rest <$s && [ "$parent" = $1 ] &&
            [ $pid != $$ ] && grep -q -- "$2" /proc/$pid/cmdline && echo $pid
    done 2>/dev/null | sort -n
}
]] .. (POOL_LAUNCHER == "local" and "children $PPID -pool-process" or
        "children $(children $PPID mpirun | head -n 1) lumat-worker"))
    local pids = {}
    for pid in list:lines() do pids[#pids + 1] = pid end
    return pids
end

-- A test of the class for each grid and block, named so that those on one pool
-- follow each other: f(what), which says where it failed.
function pools.each_grid(class, name, f, blocks)
    for _, grid in ipairs(grids) do
        for _, block in ipairs(pools.are_all and all_blocks or blocks or
            {1, 37}) do
            local title = ("test_%dx%d_%02d_%s"):format(grid[1], grid[2], block,
                name)
            class[title] = function()
                f(pools.start(grid[1], grid[2], block))
            end
        end
    end
end

function pools.random(m, n, dtype, seed)
    return rand(m, n, {dtype = dtype, device = "cpu", seed = seed}) - 0.5
end

-- Whole numbers, of which every sum is exact.
function pools.whole(m, n, dtype, seed)
    local A = randint(-9, 9, m, n, {device = "cpu", seed = seed})
    return A[dtype](A)
end

function pools.same(D, A, what)
    local B = D:gather()
    lu.assertEquals(B.shape, A.shape, what)
    lu.assertEquals(B.dtype, A.dtype, what)
    lu.assertTrue(B == A, what)
end

-- |got - want| within 16 roundings of the sums behind it.
function pools.near(got, want, size, what)
    local unit = t.unit[want.dtype]
    local apart = abs(got - want):max()
    lu.assertTrue(apart <= 16 * unit * size, ("%s: %g, allowed %g"):format(what,
        apart, 16 * unit * size))
end

return pools
