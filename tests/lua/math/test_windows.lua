-- Moving windows.
local lu = require "luaunit"
local t = require "common"
local equals, raises, nan = t.equals, t.raises, t.nan

TestWindows = {}

local names = {"movmean", "movmin", "movmax", "movmedian", "movstd"}

-- What is around element i of a list: by hand.
local function by_hand(name, list, k, before, ends)
    local out, lumat = {}, require "lumat"
    for i = 1, #list do
        local first, last = i - before, i - before + k - 1
        local is_whole = first >= 1 and last <= #list
        local own = vec({table.unpack(list, math.max(first, 1),
            math.min(last, #list))}, {dtype = "f64"})
        local value
        if name == "movmedian" then
            local s = sort(own)
            value = s[-1] ~= s[-1] and nan or
                (s[(#s + 1) // 2] + s[#s // 2 + 1]) / 2
        else
            value = lumat[name:sub(4)](own)
        end
        if is_whole or ends == "shrink" then
            out[#out + 1] = value
        elseif ends == "fill" then
            out[#out + 1] = nan
        end
    end
    return out
end

local function close(got, want, what)
    lu.assertEquals(#got, #want, what)
    for i, x in ipairs(want) do
        lu.assertTrue(x ~= x and got[i] ~= got[i] or
            math.abs(got[i] - x) <= 1e-5 * (1 + math.abs(x)), what)
    end
end

function TestWindows:test_all_of_them()
    for _, dtype in ipairs{"f32", "f64"} do
        local A = randn(40, 3, {seed = 1, dtype = dtype})
        A[{7, 2}] = nan
        for _, k in ipairs{1, 2, 3, 8, 13, 30, 55, 90} do
            for _, before in ipairs{false, 0, k - 1} do
                for _, ends in ipairs{"shrink", "fill", "discard"} do
                    for _, name in ipairs(names) do
                        local how = {before = before or nil, ends = ends}
                        local got = A[name](A, k, how)
                        how.axis = 2
                        local across = A.T[name](A.T, k, how)
                        for j = 1, 3 do
                            local want = by_hand(name, A[{{}, j}]:totable(), k,
                                before or k // 2, ends)
                            local what = name .. " " .. k .. " " .. ends
                            close(got[{{}, j}]:totable(), want, what)
                            close(across[j]:totable(), want, what)
                        end
                        lu.assertEquals(got.dtype, dtype)
                    end
                end
            end
        end
    end
end

function TestWindows:test_long_lines()
    local v = randint(-50, 50, 30001, {seed = 2, dtype = "f64"})
    for _, k in ipairs{7, 101, 2500, 9000} do
        local s = cumsum(hcat(vec({0}, {dtype = "f64"}), v))
        local sums = s[{{k + 1, 30002}}] - s[{{1, 30002 - k}}]
        local mean = movmean(v, k, {ends = "discard"})
        lu.assertTrue(all((mean - sums / k):abs():le(1e-12)))
        lu.assertTrue(movmin(v, k) == -movmax(-v, k))
        lu.assertTrue(all(movmedian(v, k):le(movmax(v, k))))
        -- of a window that holds no other number than its first
        equals(movstd(full(100, 0.1), k), full(100, 0):totable())
    end
end

function TestWindows:test_nothing_is_lost_to_large_numbers()
    local v = vec({1e16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        {dtype = "f64"})
    equals(movmean(v, 15, {ends = "discard"})[{{2, 4}}], {1, 1, 1})
    equals(movstd(v, 15, {ends = "discard"})[{{2, 4}}], {0, 0, 0})
end

function TestWindows:test_deviations_of_infinite_numbers()
    local inf = math.huge
    equals(movstd(vec{-inf, 2, 3, 5, 1}, 2), {nan, nan, movstd(vec{2, 3}, 2)[2],
        movstd(vec{3, 5}, 2)[2], movstd(vec{5, 1}, 2)[2]})
    local v = full(100, 2)
    v[50] = inf
    lu.assertEquals(isnan(movstd(v, 20, {ends = "discard"})):sum(), 20)
end

function TestWindows:test_edges()
    equals(movmean(vec{1, 2, 6, 4}, 3), {1.5, 3, 4, 5})
    equals(movmean(vec{1, 2, 6, 4}, 2), {1, 1.5, 4, 5})
    equals(movmax(vec{true, false, false}, 2), {1, 1, 0})
    lu.assertEquals(movmin(zeros(0, 3), 2).shape, {0, 3})
    lu.assertEquals(movmin(zeros(3, 2), 9, {ends = "discard"}).shape, {0, 2})
    raises(function() movmean(vec{1}, 0) end, "k")
    raises(function() movmean(vec{1}, 2, {before = 2}) end, "the place 1 at most")
    raises(function() movmean(vec{1}, 2, {axis = 2}) end, "no axis 2")
    raises(function() movmean(vec{im}, 2) end, "of real numbers")
    raises(function() movmean(vec{1}, 2, {ends = "cut"}) end, "ends")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
