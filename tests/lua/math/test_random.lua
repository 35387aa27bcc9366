-- Random numbers: the generator itself against Philox4x32-10 written out in
-- Lua, so that every device and machine gives the numbers told here.
local lu = require "luaunit"
local t = require "common"
local equals, raises = t.equals, t.raises

-- Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011.
local function philox(counter, key)
    local c0, c1, c2, c3 = table.unpack(counter)
    local k0, k1 = key[1], key[2]
    for _ = 1, 10 do
        local p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ~ c1 ~ k0, p1 & 0xFFFFFFFF,
            p0 >> 32 ~ c3 ~ k1, p0 & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    end
    return {c0, c1, c2, c3}
end

local function block(seed, call, number)
    return philox({number & 0xFFFFFFFF, number >> 32, call & 0xFFFFFFFF,
        call >> 32}, {seed & 0xFFFFFFFF, seed >> 32})
end

-- The upper half of an unsigned 64x64-bit product.
local function high_product(a, b)
    local mask = 0xFFFFFFFF
    local a0, a1, b0, b1 = a & mask, a >> 32, b & mask, b >> 32
    local middle = a1 * b0 + (a0 * b0 >> 32)
    local carry = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> 32) + (carry >> 32)
end

-- Element e, counted from 0.
local element = {}

function element.f32(seed, call, e)
    return (block(seed, call, e // 4)[e % 4 + 1] >> 8) * 2.0 ^ -24
end

local function word(seed, call, e)
    local b = block(seed, call, e // 2)
    return b[2 * (e % 2) + 1] | b[2 * (e % 2) + 2] << 32
end

function element.f64(seed, call, e)
    return (word(seed, call, e) >> 11) * 2.0 ^ -53
end

local function integer(seed, call, e, low, high)
    return low + high_product(word(seed, call, e), high - low + 1)
end


TestPhilox = {}

-- The known answers that its authors publish with it (Random123, kat_vectors).
function TestPhilox:test_known_answers()
    lu.assertEquals(philox({0, 0, 0, 0}, {0, 0}),
        {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8})
    local ones32 = 0xFFFFFFFF
    lu.assertEquals(philox({ones32, ones32, ones32, ones32}, {ones32, ones32}),
        {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd})
    lu.assertEquals(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
        {0xa4093822, 0x299f31d0}),
        {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1})
end

function TestPhilox:test_uniform_numbers()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, seed in ipairs{0, 1, 42, 1 << 40, -1} do
            local list = {}
            for e = 0, 1100 do list[e + 1] = element[dtype](seed, 0, e) end
            equals(rand(1101, {seed = seed, dtype = dtype}), list, dtype)
        end
    end
end

-- Seed 1, written out.
function TestPhilox:test_pinned_numbers()
    equals(rand(8, {seed = 1}), vec{0.890259147, 0.894684672,
        0.585725904, 0.711268067, 0.671998262, 0.874111891, 0.475593209,
        0.656103134}:totable())
    equals(rand(8, {seed = 1, dtype = "f64"}), {0.89468471633509239,
        0.71126807657669433, 0.87411193518713071, 0.6561031684921107,
        0.55650023306892282, 0.92158832929868473, 0.036543809985189246,
        0.053858498610410033})
    equals(randint(1, 100, 8, {seed = 1}), {90, 72, 88, 66, 56, 93, 4, 6})
    raises(function() randint(6, 1, 3) end, "randint: the upper limit 1 is below")
end

function TestPhilox:test_integers()
    for _, limits in ipairs{{1, 6}, {-5, 5}, {0, 0}, {-16777216, 16777216}} do
        local list = {}
        for e = 0, 999 do
            list[e + 1] = integer(7, 0, e, limits[1], limits[2]) + 0.0
        end
        equals(randint(limits[1], limits[2], 1000, {seed = 7}), list)
    end
    local big, list = 1 << 53, {}
    for e = 0, 99 do list[e + 1] = integer(7, 0, e, -big, big) + 0.0 end
    equals(randint(-big, big, 100, {seed = 7, dtype = "f64"}), list)
end

function TestPhilox:test_normal_numbers()
    for _, dtype in ipairs{"f32", "f64"} do
        local list = {}
        for e = 0, 499, 2 do
            local b = block(3, 0, e // 2)
            local u = ((b[1] | b[2] << 32) >> 11) + 1
            local angle = ((b[3] | b[4] << 32) >> 11) * 2.0 ^ -53 * 2 * math.pi
            local radius = math.sqrt(-2 * math.log(u * 2.0 ^ -53))
            list[e + 1], list[e + 2] = radius * math.cos(angle),
                radius * math.sin(angle)
        end
        local v = randn(500, {seed = 3, dtype = dtype})
        lu.assertIsTrue(close(v, vec(list, {dtype = dtype}),
            dtype == "f32" and 1e-6 or 1e-14))
    end
end

-- Rows of a matrix that is never made whole, also beyond the 2^32 blocks whose
-- numbers have the upper half in common.
function TestPhilox:test_rows_of_a_whole()
    local drawn = require "lumat.block_cyclic".drawn
    for _, dtype in ipairs{"f32", "f64", "c64", "c128"} do
        local like = zeros(1, {dtype = dtype})
        for _, n in ipairs{1, 6, 7, 32} do
            local u = rand(20, n, {seed = 6, dtype = dtype})
            local z = randn(20, n, {seed = 6, dtype = dtype})
            for _, row in ipairs{0, 1, 2, 3, 17} do
                local rows = math.min(5, 20 - row)
                lu.assertIsTrue(drawn(like, row, rows, n, "uniform", 6, 0, 0, 1) ==
                    u[{{row + 1, row + rows}, {}}], dtype)
                lu.assertIsTrue(drawn(like, row, rows, n, "normal", 6, 0, 0, 1) ==
                    z[{{row + 1, row + rows}, {}}], dtype)
            end
        end
    end
    for dtype, share in pairs{f32 = 4, f64 = 2} do
        local n, rows = 1 << 20, share << 12 -- of 2^32 blocks
        local like, list = zeros(1, {dtype = dtype}), {}
        local far = drawn(like, rows - 1, 3, n, "uniform", 6, 5, 0, 1)
        for i, at in ipairs{1, n - 1, n, n + 1, 3 * n} do
            list[i] = element[dtype](6, 5, (rows - 1) * n + at - 1)
            lu.assertEquals(far:reshape(3 * n)[at], list[i])
        end
    end
end

-- Threads make several elements at once: what is left over at the end, and
-- limits in which f32 cannot reckon.
function TestPhilox:test_every_length()
    for _, dtype in ipairs{"f32", "f64"} do
        local u, z = rand(1030, {seed = 6, dtype = dtype}),
            randn(1030, {seed = 6, dtype = dtype})
        local k = randint(-9, 9, 1030, {seed = 6, dtype = dtype})
        for _, n in ipairs{1, 2, 3, 4, 5, 6, 7, 127, 129, 1023, 1026} do
            lu.assertIsTrue(rand(n, {seed = 6, dtype = dtype}) ==
                u[{{1, n}}], n)
            lu.assertIsTrue(randn(n, {seed = 6, dtype = dtype}) ==
                z[{{1, n}}], n)
            lu.assertIsTrue(randint(-9, 9, n, {seed = 6, dtype = dtype}) ==
                k[{{1, n}}], n)
        end
    end
end

function TestPhilox:test_normal_numbers_of_any_scale()
    local z = randn(1001, {seed = 3, dtype = "f64"})
    for _, m in ipairs{{0, 1e-30}, {0, 1e30}, {5, 2.5}, {-1e20, 1e18}} do
        local v = randn(1001, {seed = 3, mean = m[1], std = m[2]}):f64()
        local wanted = z * m[2] + m[1]
        local unit = abs(wanted) + math.abs(m[1])
        lu.assertIsTrue((abs(v - wanted) / unit):max() < 1e-6, m[2])
    end
end

TestSeeds = {}

function TestSeeds:test_the_same_seed_gives_the_same_numbers()
    for _, make in ipairs{rand, randn} do
        lu.assertIsTrue(make(33, 65, {seed = 9}) == make(33, 65, {seed = 9}))
        lu.assertIsFalse(make(33, 65, {seed = 9}) == make(33, 65, {seed = 10}))
        lu.assertIsTrue(make(33, 65, {seed = 9}):flatten() ==
            make(33 * 65, {seed = 9}))
        lu.assertIsTrue(make(100, {seed = 9})["1:10"] == make(10, {seed = 9}))
    end
    lu.assertIsTrue(randperm(100, {seed = 1}) == randperm(100, {seed = 1}))
end

function TestSeeds:test_seed_starts_all_anew_and_each_call_differs()
    seed(5)
    local a, b, c, d = rand(10), rand(10), randn(10), randint(1, 1000, 10)
    local e = randperm(50)
    lu.assertIsFalse(a == b)
    seed(5)
    lu.assertIsTrue(rand(10) == a)
    rand(10, {seed = 3})
    lu.assertIsTrue(rand(10) == b)
    lu.assertIsTrue(randn(10) == c)
    lu.assertIsTrue(randint(1, 1000, 10) == d)
    lu.assertIsTrue(randperm(50) == e)
    local list = {}
    for i = 0, 9 do list[i + 1] = element.f32(5, 1, i) end
    equals(b, list, "the second call")
    raises(function() seed(1.5) end, "seed: n is 1.5, expected a whole number")
    raises(function() seed("x") end, 'seed: n is "x", expected a whole number')
    raises(function() rand(2, {seed = 0.5}) end, "seed", "0.5")
    raises(function() rand(2, {seed = "x"}) end, "seed", "x")
end

TestMoments = {}

function TestMoments:test_uniform()
    for _, dtype in ipairs{"f32", "f64"} do
        local v = rand(1000000, {seed = 1, dtype = dtype})
        lu.assertAlmostEquals(mean(v), 0.5, 2e-3)
        lu.assertAlmostEquals(var(v), 1 / 12, 1e-3)
        lu.assertIsTrue(min(v) >= 0 and max(v) < 1)
        v = rand(100000, {seed = 1, dtype = dtype, low = -2, high = 3})
        lu.assertIsTrue(min(v) >= -2 and max(v) < 3)
        lu.assertAlmostEquals(mean(v), 0.5, 2e-2)
        v = rand(100000, {seed = 1, dtype = dtype, low = 1,
            high = 1 + 2.0 ^ -22})
        lu.assertIsTrue(min(v) >= 1 and max(v) < 1 + 2.0 ^ -22)
        equals(rand(2, {low = 4, high = 4, dtype = dtype}), {4, 4})
    end
end

function TestMoments:test_normal()
    local v = randn(1000000, {seed = 1, dtype = "f64"})
    lu.assertAlmostEquals(mean(v), 0, 4e-3)
    lu.assertAlmostEquals(var(v), 1, 6e-3)
    lu.assertAlmostEquals(mean(v % v % v), 0, 1.5e-2)
    lu.assertAlmostEquals(mean(square(v % v)), 3, 5e-2)
    lu.assertAlmostEquals(mean(abs(v):lt(1):f64()), 0.6826895, 2e-3)
    lu.assertIsTrue(isfinite(v):all())
    v = randn(100000, {seed = 2, mean = 10, std = 0.5})
    lu.assertAlmostEquals(mean(v), 10, 1e-2)
    lu.assertAlmostEquals(std(v), 0.5, 1e-2)
    equals(randn(2, {mean = 3, std = 0}), {3, 3})
end

function TestMoments:test_integers()
    local v = randint(1, 6, 600000, {seed = 1})
    for face = 1, 6 do
        lu.assertAlmostEquals(sum(v:eq(face)), 100000, 1500)
    end
    lu.assertIsTrue(v == floor(v))
    equals(randint(3, 3, 2, 2), {{3, 3}, {3, 3}})
end

function TestMoments:test_permutations()
    for _, n in ipairs{1, 2, 10, 1000, 100003} do
        local p = randperm(n, {seed = 4})
        lu.assertIsTrue(sort(p) == range(1, n))
    end
    local seen = {}
    for s = 1, 60 do seen[table.concat(randperm(3, {seed = s}):totable(), " ")] = 1 end
    local count = 0
    for _ in pairs(seen) do count = count + 1 end
    lu.assertEquals(count, 6)
end

TestRefused = {}

function TestRefused:test_limits_that_are_none()
    raises(function() randint(6, 1, 3) end, "1", "6")
    raises(function() randint(0, 1 << 30, 3) end, "1073741824", "f32", "f64")
    raises(function() randint(0, 1 << 60, 3, {dtype = "f64"}) end, "f64")
    raises(function() randint(0.5, 2, 3) end, "low is 0.5, expected a whole number")
    raises(function() randint(0, 2) end, "m is missing, expected a whole number")
    raises(function() rand(3, {low = 2, high = 1}) end, "2", "1")
    raises(function() rand(3, {low = "x"}) end, 'low is "x", expected a number')
    raises(function() rand(3, {high = t.inf}) end, "finite")
    raises(function() rand(3, {low = t.nan}) end, "finite")
    raises(function() randn(3, {std = -1}) end, "-1", "negative")
    raises(function() randn(3, {mean = t.inf}) end, "finite")
    raises(function() randperm(-1) end, "-1")
    raises(function() randperm(2.5) end, "2.5")
    raises(function() randperm(2 ^ 24 + 1, {dtype = "f32"}) end,
        "randperm: 1..16777217 is more than f32 holds", "f64")
    raises(function() randperm(2 ^ 24 + 4, {dtype = "f32"}) end, "f32 holds")
    raises(function() randperm(3, {dtype = "bool"}) end, "bool holds")
end

TestDevices = {}

function TestDevices:test_every_device_gives_the_same()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, n in ipairs{1, 3, 65, 4099} do
            t.agrees(function()
                return rand(n, 3, {seed = 8, dtype = dtype}),
                    rand(3, n, {seed = 8, dtype = dtype, low = -3, high = 0.7}),
                    randint(-7, 1000, n, 5, {seed = 8, dtype = dtype}),
                    randperm(n, {seed = 8, dtype = dtype})
            end, dtype .. " " .. n)
            t.agrees(function()
                return randn(n, 3, {seed = 8, dtype = dtype})
            end, "normal " .. dtype, 16)
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
