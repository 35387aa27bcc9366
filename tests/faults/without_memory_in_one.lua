-- lumat without_memory_in_one.lua LAUNCHER MOST FILE: of what the processes of a pool
-- do together, with one allocation after the other that fails in one of them
-- (see fail_alloc.c), MOST of each. Prints a line for each operation: its name,
-- how many failed in all and left the pool, how many took the pool with them,
-- and the most seconds that an answer took; and BAD lines. With TELL in the
-- environment each loss is told.
local launcher, most = arg[1], tonumber(arg[2])
local path = arg[3]
local A, B, S, V
local function begin()
    pool{ranks = 4, grid = {2, 2}, block = 16, launcher = launcher}
    A, B = drandn(96, 80, {seed = 1, dtype = "f64"}),
        drandn(80, 64, {seed = 2, dtype = "f64"})
    S = drandn(80, 80, {seed = 3, dtype = "f64"})
    V = vec{9, 60, 2, 31}
end

local does = {}
function does.multiply() return A * B end
function does.turned() return A.T * A end
function does.transpose() return A.T + 0 end
function does.block() return A[{{3, 90}, {2, 70}}] end
function does.take() return A[V] end
function does.assign()
    local C = A + 0
    C[{{1, 40}, {}}] = A[{{20, 59}, {}}]
    return C
end
function does.cumsum() return cumsum(A) end
function does.lu() return S:lu().U end
function does.solve() return S:solve(B) end
function does.chol() return (S * S.T + 80 * deye(80, {dtype = "f64"})):chol().L end
function does.qr() return A:qr().Q end
function does.eigh()
    local W = (S + S.T):eigh().vectors
    return W
end
function does.svd() return A:svd().U end

local generation = 0
local function arm(n)
    generation = generation + 1
    local file = assert(io.open(path, "w"))
    file:write(n, " ", generation)
    file:close()
end

local function disarm()
    return os.remove(path) ~= nil
end

local names = {}
for name in pairs(does) do names[#names + 1] = name end
table.sort(names)
begin()
for _, name in ipairs(names) do
    local expected = does[name]():gather()
    local kept, lost, slowest = 0, 0, 0
    for n = 1, most do
        arm(n)
        local began = clock()
        local ok, result = pcall(function() return does[name]():gather() end)
        slowest = math.max(slowest, clock() - began)
        if disarm() then break end -- there are no more of them
        local text = tostring(result)
        if not ok and not text:find "memory" and not text:find "pool%.restart" then
            print("BAD", name, n, text)
        end
        if pool.count() == 0 then
            lost = lost + 1
            if os.getenv "TELL" then
                io.stderr:write(("lost %s %d %.1f s %s\n"):format(name, n, clock() - began, text))
            end
            begin()
        else
            kept = kept + 1
        end
        if does[name]():gather() ~= expected then print("BAD", name, n, "differs") end
    end
    print(name, kept, lost, ("%.1f"):format(slowest))
end
