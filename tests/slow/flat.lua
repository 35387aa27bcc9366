-- LUMAT_SECONDS=600 lumat [--device cuda] flat.lua: a mixed load for so many
-- seconds, of which nothing may stay: at looks in between, when garbage and
-- caches are gone, the process's memory (resident) grows by 1 MiB at most and the
-- device's not at all, from the first third of the time to the last. A line a
-- look, and BAD. A word: that load alone.
local seconds = tonumber(os.getenv "LUMAT_SECONDS") or 600
local LOOKS, MIB = 30, 1 << 20
local on = ones(1).device
local is_gpu = on ~= "cpu"
local tile = is_gpu and 16384 or 512 -- a matrix of 1 GiB, or of 1 MiB

-- --- the load ------------------------------------------------------------------

local loads = {}

-- Chains that wait: some are used, some go unseen, some are read twice.
function loads.pending()
    local x, y = rand(300, 300, {seed = 1}), rand(300, 300, {seed = 2})
    local z = sqrt(sin(x) % y + 2) - x / 3
    local unseen = exp(z) + 1
    local twice = z % z
    x:add_(1)
    return sum(twice) + max(twice) + (z - y):sum()
end

function loads.large_temporaries()
    for _ = 1, 4 do
        local t = zeros(tile, tile)
        local u = t + 1
        if not is_gpu then u = u % u end
    end
    return 1
end

function loads.small_temporaries()
    local A = ones(2, 2)
    for _ = 1, 2000 do A = A + 0 end
    return A(1, 1)
end

function loads.growing_and_shrinking()
    local total = 0
    for n = 10, 400, 39 do
        local A = rand(n, n)
        total = total + (A * A):sum() + sum(A["1:5, :"]) + A.T:clone()(1, 1)
    end
    return total
end

-- Left in their midst with all that they hold.
function loads.coroutines()
    local total = 0
    for i = 1, 20 do
        local held = rand(100, 700)
        local step = coroutine.wrap(function()
            local waiting = held + i
            for k = 1, 10 do
                coroutine.yield(waiting(1, k))
                waiting = waiting % held
            end
        end)
        total = total + step() + step()
    end
    return total
end

-- Finalisers that compute, and one that brings back what it held for a while.
local last
function loads.finalisers()
    for i = 1, 20 do
        local held = rand(100, 700) + i
        setmetatable({}, {__gc = function()
            local s = (held % held):sum()
            last = s > 0 and held or nil
        end})
    end
    return 1
end

function loads.reductions()
    local A = randn(500, 300)
    return A:sum() + A:mean(1)(1, 1) + std(A) + norm(A, 1) + A:argmax(2)(1, 1) +
        cumsum(A, 1)(500, 300)
end

function loads.masks_and_moves()
    local A = rand(400, 300)
    A[A:gt(0.9)] = 0
    A["3, :"] = 5
    local B = vcat(A, A)[{{1, 800, 3}, {}}]
    return sort(B, 1)(1, 1) + A[A:lt(0.1)]:sum() + take(A[1], vec{1, 2}):sum()
end

function loads.systems()
    local A = rand(60, 60, {dtype = "f64"}) + 60 * eye(60)
    return solve(A, ones(60, {dtype = "f64"}))(1) + det(A / 60) + qr(A).R(1, 1)
end

function loads.sparse()
    local S = sparse(rand(200, 200, {device = "cpu"}):gt(0.9))
    local there = S:to(on)
    return (there * ones(200)):sum() + full(there.T)(1, 1)
end

function loads.crossing()
    local A = rand(600, 700)
    local here = A:to "cpu"
    return here:sum() + A["1:9, 2:8"]:to "cpu"(1, 1) + here.T:to(on)(1, 1)
end

function loads.tiles()
    if not is_gpu then return 0 end
    local by = {device = on}
    local A, B = rand(900, 900, {device = "cpu"}), rand(900, 900, {device = "cpu"})
    return add(A, B, by)(1, 1) + A:sum(by) + matmul(A, B, by)(1, 1)
end

function loads.errors()
    for _ = 1, 20 do
        pcall(function() return rand(30, 40) * rand(30, 40) end)
        pcall(function() return zeros(1 << 20, 1 << 20) end)
        pcall(function()
            local A <close> = rand(100, 700) + 1
            error(A:sum())
        end)
    end
    return 1
end

function loads.by_hand()
    local A = rand(300, 300)
    local B = A + 1
    A:free()
    local C <close> = B % B
    return C:sum()
end

function loads.functions_of_elements()
    local A = rand(300, 300)
    return A:map(function(x) return x * 2 + 1 end):sum()
end

function loads.texts()
    local A = rand(40, 40)
    return #tostring(A) + #tostring(inspect(A)) + #tostring(hist(A[1]))
end

-- --- looking -------------------------------------------------------------------

local function resident()
    for line in io.lines "/proc/self/status" do
        local kib = line:match "^VmRSS:%s*(%d+)"
        if kib then return tonumber(kib) * 1024 end
    end
end

local names = {}
for name in pairs(loads) do names[#names + 1] = name end
table.sort(names)
local only = arg[1]
if only then names = {only} end

local looks = {}
local function look(spent, rounds)
    last = nil
    for _ = 1, 3 do collectgarbage() end
    sync()
    for _, device in ipairs{"cpu", on} do -- all that is cached goes for these
        pcall(zeros, 1 << 21, 1 << 20, {device = device})
    end
    local m = memory(on)
    local now = {resident = resident(), live = m.live,
        used = is_gpu and m.total - m.free or 0}
    looks[#looks + 1] = now
    print(("%6.0f s %8d rounds  resident %9.2f MiB  matrices on %s %.2f MiB%s"):format(
        spent, rounds, now.resident / MIB, on, now.live / MIB,
        is_gpu and (", in use there %.2f MiB"):format(now.used / MIB) or ""))
end

-- The least of a third of the looks, but for the first few of all: what comes
-- and goes is in none.
local function least(what, third)
    local found, early = math.huge, #looks // 10
    local n = #looks - early
    for i = n * (third - 1) // 3 + 1, n * third // 3 do
        found = math.min(found, looks[early + i][what])
    end
    return found
end

local start, rounds = clock(), 0
repeat
    rounds = rounds + 1
    for _, name in ipairs(names) do
        local value = loads[name]()
        if value ~= value then print("BAD", name, "gave", value) end
    end
    local spent = clock() - start
    if spent > seconds * (#looks + 1) / LOOKS then look(spent, rounds) end
until #looks >= LOOKS or clock() - start > seconds
if #looks < 6 then look(clock() - start, rounds) end

local bad = false
for what, most in pairs{resident = MIB, live = 0, used = 0} do
    local grown = least(what, 3) - least(what, 1)
    if grown > most then
        bad = true
        print(("BAD: %s grew by %.2f MiB"):format(what, grown / MIB))
    end
end
print(bad and "not flat" or "flat", rounds .. " rounds")
os.exit(not bad)
