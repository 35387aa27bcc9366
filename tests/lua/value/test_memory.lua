-- Memory: temporaries that nobody collects, release by hand, freed matrices,
-- and sizes beyond the machine.
local lu = require "luaunit"
local t = require "common"
local equals, raises = t.equals, t.raises

local MIB = 1 << 20

local function live()
    return memory(t.device).live
end

-- Of many repetitions, those of a build that is slow.
local function fewer(n)
    return os.getenv "LUMAT_TEST_EVERY" and n // 5 or n
end

-- The most bytes alive while f runs n times, beyond those before.
local function most_alive(n, f)
    collectgarbage()
    local before, most = live(), 0
    for i = 1, n do
        f(i)
        most = math.max(most, live() - before)
    end
    return most
end

TestTemporaries = {}

-- Nothing here asks for a collection. A GPU can afford all 20,000; the pages
-- of as many on the CPU would take minutes.
function TestTemporaries:test_thousands_of_8_mib_stay_bounded()
    local most = most_alive(t.on_gpu and 20000 or 300, function()
        local _ = zeros(1024, 2048)
    end)
    lu.assertIsTrue(most <= 512 * MIB, most // MIB .. " MiB")
end

function TestTemporaries:test_20000_of_64_kib_stay_bounded()
    local most = most_alive(fewer(20000), function() local _ = zeros(128, 128) end)
    lu.assertIsTrue(most <= 256 * MIB, most // MIB .. " MiB")
end

function TestTemporaries:test_many_small_ones_stay_bounded()
    local A = ones(2, 2)
    local most = most_alive(fewer(300000), function() A = A + 0 end)
    lu.assertIsTrue(most <= 64 * MIB, most // MIB .. " MiB")
    lu.assertIsTrue(collectgarbage("count") < 256 * 1024)
    equals(A, {{1, 1}, {1, 1}})
end

-- A variable that holds the last result, and temporaries on the way to it: few
-- are alive at a time, whatever their size, and none grow old.
function TestTemporaries:test_a_few_results_are_alive()
    for _, n in ipairs{100, 300, 700, 1500, 2600} do
        local A, last = ones(n, n, {dtype = "f64"}), nil
        local most = most_alive(fewer(n > 1000 and 60 or 600), function()
            last = (A + A) % A - A
        end)
        local bound = MIB + 8 * n * n * 8
        lu.assertIsTrue(most <= bound, ("%dx%d: %.1f results"):format(n, n,
            most / (n * n * 8)))
        lu.assertEquals(last[{n, n}], 1)
    end
end

-- 70 results of 4 MiB or more each, of which few may stay.
function TestTemporaries:test_results_of_every_kind_are_counted()
    local A, m = ones(1024, 1024), ones(1024, 1024):gt(0)
    local v = ones(1024)
    for name, f in pairs{
        sum = function() return A + A end,
        product = function() return v:col() * v:row() end,
        mask = function() return A[m] end,
        clone = function() return A:clone() end,
        wide = function() return A:f64() end,
        joined = function() return A .. A end,
        outer = function() return outer(v, v) end,
        diagonal = function() return diag(v) end,
        tile = function() return tile(v:row(), 1024, 1) end,
        scan = function() return cumsum(A, 2) end} do
        local most = most_alive(70, f)
        lu.assertIsTrue(most <= 200 * MIB, name .. " " .. most // MIB .. " MiB")
    end
end

function TestTemporaries:test_what_is_held_stays()
    local held = {}
    for i = 1, 50 do held[i] = full(300, 300, i) end
    for _ = 1, 2000 do local _ = zeros(128, 128) end
    for i = 1, 50 do lu.assertEquals(held[i](300, 300), i) end
end

TestPending = {}

-- Matrices of 256 MiB on a GPU; of 1 MiB on the CPU, which touches them all.
local side = t.on_gpu and 8192 or 512
local times = t.on_gpu and 20000 or 3000
local bytes = 4 * side * side
-- What has waited has often seen two collections, and goes with the next of all
-- garbage: up to 64 MiB, or a few results, may be of such.
local bound = 8 * bytes + 64 * MIB

function TestPending:setUp() self.fusion = settings().fusion end
function TestPending:tearDown() settings{fusion = self.fusion} end

-- Of results that wait few are worked out, as nobody asks for most.
function TestPending:test_thousands_that_nobody_looks_at()
    local X = ones(side, side)
    local most = most_alive(times, function(i)
        local y = X + i
        if i % 1000 == 0 then lu.assertEquals(y(side, side), 1 + i) end
    end)
    lu.assertIsTrue(most <= bound, most / bytes .. " results")
end

-- And of those that are asked for one stays.
function TestPending:test_hundreds_that_are_looked_at()
    local X = ones(side, side)
    local most = most_alive(times // 10, function(i)
        local y = (X + i) % X
        lu.assertEquals(max(y), 1 + i)
        lu.assertEquals(y(1, side), 1 + i)
    end)
    lu.assertIsTrue(most <= bound, most / bytes .. " results")
end

-- Each is made of the one before: what waits is bounded, too.
function TestPending:test_a_chain_without_end()
    local A = ones(side, side)
    local most = most_alive(times // 10, function() A = A + 1 end)
    lu.assertIsTrue(most <= bound, most / bytes .. " results")
    lu.assertEquals(A(side, 1), 1 + times // 10)
end

function TestPending:test_many_small_ones_that_wait()
    settings{fusion = "always"}
    local A, n = zeros(2, 2), fewer(t.on_gpu and 1000000 or 200000)
    local most = most_alive(n, function() A = A + 1 end)
    lu.assertIsTrue(most <= 64 * MIB, most // MIB .. " MiB")
    lu.assertIsTrue(collectgarbage("count") < 256 * 1024)
    equals(A, {{n, n}, {n, n}})
end

-- Coroutines that are left in their midst hold what waits, and it goes with
-- them.
function TestPending:test_coroutines_that_are_left()
    local X = ones(side, side)
    local most = most_alive(200, function(i)
        local step = coroutine.wrap(function()
            local y = X + i
            coroutine.yield(y(1, 1))
            local z = y % y
            coroutine.yield(z)
            return z
        end)
        lu.assertEquals(step(), 1 + i)
        step()
    end)
    lu.assertIsTrue(most <= bound, most / bytes .. " results")
end

-- Finalisers that work out what waits, and record more, while others are being
-- settled.
function TestPending:test_finalisers_that_compute()
    local X, sums = ones(side, side), 0
    local most = most_alive(200, function(i)
        local y = X + i
        setmetatable({}, {__gc = function()
            local z = y % X
            sums = sums + z(1, 1) - i
        end})
        if i % 20 == 0 then lu.assertEquals(max(y - i), 1) end
    end)
    collectgarbage()
    lu.assertEquals(sums, 200)
    -- what a finaliser needs stays until it has run
    lu.assertIsTrue(most <= bound + 24 * bytes, most / bytes .. " results")
end

TestRelease = {}

function TestRelease:test_free_gives_the_bytes_back_at_once()
    collectgarbage()
    local before = live()
    local A = zeros(1024, 1024)
    lu.assertEquals(live() - before, 4 * MIB)
    A:free()
    lu.assertEquals(live(), before)
    A:free() -- twice is once
end

function TestRelease:test_close_gives_the_bytes_back_at_the_end_of_the_block()
    collectgarbage()
    local before = live()
    do
        local A <close> = zeros(1024, 1024)
        lu.assertEquals(live() - before, 4 * MIB)
    end
    lu.assertEquals(live(), before)
    pcall(function()
        local A <close> = zeros(1024, 1024)
        error("mine")
    end)
    lu.assertEquals(live(), before)
end

function TestRelease:test_views_keep_the_elements()
    local A = t.places(3, 3)
    local row = A[2]
    A:free()
    equals(row, {21, 22, 23})
    raises(function() return A[1] end, "freed")
end

function TestRelease:test_a_freed_matrix_is_named_as_such()
    local A, B = ones(2, 2), ones(2, 2)
    A:free()
    for name, f in pairs{
        index = function() return A[1] end,
        call = function() return A(1, 1) end,
        write = function() A[1] = 0 end,
        length = function() return #A end,
        add = function() return A + B end,
        left = function() return B - A end,
        negate = function() return -A end,
        scale = function() return 2 * A end,
        product = function() return A * B end,
        right = function() return B * A end,
        power = function() return A ^ 2 end,
        sum = function() return A:sum() end,
        sqrt = function() return sqrt(A) end,
        in_place = function() A:add_(1) end,
        out = function() add(B, B, {out = A}) end,
        product_out = function() matmul(B, B, {out = A}) end,
        joined = function() return A .. B end,
        mask = function() return B[A] end,
        value = function() B[":,:"] = A end,
        sort = function() return sort(A) end,
        inverse = function() return inv(A) end,
        solve = function() return solve(B, A) end,
        table = function() return A:totable() end,
        clone = function() return A:clone() end,
        convert = function() return A:f64() end,
        reshape = function() return A:reshape(4) end,
        rows = function() for _ in A:eachrow() do end end,
        map = function() return A:map(math.abs) end} do
        local ok, message = pcall(f)
        lu.assertIsFalse(ok, name)
        lu.assertStrContains(message, "freed", false, name)
    end
    lu.assertStrContains(tostring(A), "freed")
    lu.assertIsFalse(A == B)
    equals(B, {{1, 1}, {1, 1}})
end

TestTooMuch = {}

function TestTooMuch:test_more_than_there_is_names_both_sizes()
    raises(function() zeros(1 << 20, 1 << 20) end, "out of memory", "4.0 TiB")
    raises(function() rand(1 << 21, 1 << 20) end, "out of memory", "8.0 TiB")
    raises(function() tile(ones(1000, 1000), 1000, 1000) end, "out of memory")
    raises(function() outer(ones(1 << 20), ones(1 << 20)) end, "out of memory")
    raises(function() return ones(1 << 20, 1) * ones(1, 1 << 20) end,
        "out of memory")
    raises(function() return ones(1 << 20, 1) + ones(1, 1 << 20) end,
        "out of memory")
    raises(function() diag(ones(1 << 20)) end, "out of memory")
    raises(function() kron(ones(1 << 10, 1 << 10), ones(1 << 10, 1 << 10)) end,
        "out of memory")
    equals(ones(2) + ones(2), {2, 2})
end

function TestTooMuch:test_errors_tell_the_place_in_the_script()
    raises(function() zeros(1 << 20, 1 << 20) end, "test_memory.lua:")
end

function TestTooMuch:test_1000_times_in_a_row_leave_things_working()
    collectgarbage()
    local A = rand(100, 100, {seed = 1})
    local expected = sum(A)
    local before = live()
    for _ = 1, 1000 do
        lu.assertIsFalse((pcall(zeros, 1 << 20, 1 << 20)))
    end
    lu.assertEquals(live(), before)
    lu.assertEquals(sum(A), expected)
    equals(ones(2, 2) * ones(2, 2), {{2, 2}, {2, 2}})
end

-- Whatever fails, the next thing works and nothing is lost.
function TestTooMuch:test_the_session_goes_on_after_each_error()
    local A = t.places(2, 2)
    for _, f in ipairs{
        function() return A * ones(3, 3) end, function() return A + vec{1} end,
        function() return A[9] end, function() A["1:9"] = 0 end,
        function() A[1] = vec{1, 2, 3} end, function() return A < 1 end,
        function() return inv(ones(2, 2)) end, function() return A.nothing end,
        function() zeros(-1) end, function() mat{{1}, {1, 2}} end,
        function() A:map(function() error() end) end,
        function() sum(A, 7) end, function() A:reshape(3, 3) end,
        function() matmul(A, A, {kernel = "x"}) end} do
        lu.assertIsFalse((pcall(f)))
        equals(A, {{11, 12}, {21, 22}})
        equals(A + 1, {{12, 13}, {22, 23}})
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
