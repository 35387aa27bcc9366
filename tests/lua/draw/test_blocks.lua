-- Blocks and histograms, on the device under test, against what a look at the
-- elements says.
local lu = require "luaunit"
local t = require "common"
local seeing = require "draw.seeing"
local inf, nan = t.inf, t.nan
local shows, has, reader, shapes = seeing.shows, seeing.has, seeing.reader, seeing.shapes

-- --- blocks --------------------------------------------------------------------

TestBlocks = {}

local function block(at, rows, cols, kind)
    local function number(x) return x == true and 1 or x or 0 end
    local sum, largest, low, high, count = 0, 0, nan, nan, 0
    for i = rows[1], rows[2] do
        for j = cols[1], cols[2] do
            local x = number(at(i, j))
            count, sum = count + 1, sum + x
            if x ~= x or math.abs(x) > largest then largest = math.abs(x) end
            if low ~= low or x < low then low = x end
            if high ~= high or x > high then high = x end
        end
    end
    return ({mean = sum / count, largest = largest, min = low, max = high})[kind]
end

local function compare_blocks(A, r, c, kind)
    local at, m, n = reader(A)
    local got = blocks(A, r, c, kind):totable()
    for p = 1, r do
        for q = 1, c do
            local want = block(at, {(p - 1) * m // r + 1, p * m // r},
                {(q - 1) * n // c + 1, q * n // c}, kind)
            t.near(A.ndim == 1 and got[p] or got[p][q], want, 1e-12, kind)
        end
    end
end

function TestBlocks:test_every_shape_layout_and_kind()
    for seed, shape in ipairs(shapes) do
        local m, n = shape[1], shape[2]
        local A = t.whole(m, n, "f32", seed)
        local r, c = math.min(m, 7), math.min(n, 5)
        for _, kind in ipairs {"mean", "largest", "min", "max"} do
            compare_blocks(A, r, c, kind)
            compare_blocks(A, 1, 1, kind)
            compare_blocks(A, m, n, kind)
            compare_blocks(t.uniform(n, m, "f64", seed).T, r, c, kind)
            compare_blocks(t.whole(3 * m, 2 * n, "f32", seed)["::3, ::2"], r, c, kind)
            compare_blocks(A:gt(0), r, c, kind)
            compare_blocks(A:reshape(m * n), math.min(m * n, 9), 1, kind)
        end
    end
end

function TestBlocks:test_long_vectors_are_shared_out()
    local v = t.whole(3000000, 1, "f32", 1):reshape(3000000)
    lu.assertEquals(blocks(v, 3, 1, "max"):totable(), {4, 4, 4})
    t.near(blocks(v, 1)(1), v:mean(), 1e-6)
    lu.assertEquals(blocks(v:col().T, 1, 2, "largest"):totable(), {{4, 4}})
end

function TestBlocks:test_nan()
    local A = t.whole(8, 8, "f32", 1)
    A[{2, 2}] = nan
    lu.assertIsTrue(isnan(blocks(A, 2, 2)):sum() == 1)
    lu.assertIsTrue(isnan(blocks(A, 2, 2, "largest")):sum() == 1)
    lu.assertIsTrue(isnan(blocks(A, 2, 2, "min")):sum() == 0)
    lu.assertIsTrue(isnan(blocks(full(4, 4, nan), 2, 2, "max")):sum() == 4)
end

function TestBlocks:test_refusals()
    t.raises(function() blocks(ones(2, 3), 3, 1) end,
        "blocks: 2x3 cannot be cut into 3 x 1 blocks")
    t.raises(function() blocks(ones(2, 3), 0, 1) end, "cannot be cut")
    t.raises(function() blocks(ones(0, 3), 1, 1) end, "has no elements")
    t.raises(function() blocks(ones(2, 3), 1, 1, "median") end, "median")
end

-- --- hist ------------------------------------------------------------------------

TestHist = {}

function TestHist:test_counts()
    for seed, shape in ipairs(shapes) do
        local A = t.whole(shape[1], shape[2], "f32", seed)
        for bins = 1, 9, 4 do
            local h = hist(A, {low = -4, high = 4, bins = bins})
            local at, m, n = reader(A)
            local want = {}
            for b = 1, bins do want[b] = 0 end
            for i = 1, m do
                for j = 1, n do
                    local b = math.min((at(i, j) + 4) * bins // 8 + 1, bins)
                    want[b] = want[b] + 1
                end
            end
            lu.assertEquals(h.counts, want)
            lu.assertEquals(hist(A.T, {low = -4, high = 4, bins = bins}).counts, want)
        end
    end
end

-- The outer edges are the range, the edges ascend, and each bin has what lies
-- from its edge on, below the next.
local function check_edges(list, dtype, bins)
    local A = vec(list, {dtype = dtype})
    local h, low, high = hist(A, bins), min(A), max(A)
    local edges, want = h.edges, {}
    lu.assertEquals({edges[1], edges[#edges]}, {low, high})
    for i = 1, #edges - 1 do
        lu.assertTrue(edges[i] <= edges[i + 1])
        want[i] = 0
    end
    for _, x in ipairs(A:totable()) do
        local b = #want
        while b > 1 and x < edges[b] do b = b - 1 end
        want[b] = want[b] + 1
    end
    lu.assertEquals(h.counts, want)
end

function TestHist:test_edges_are_exact()
    lu.assertEquals(hist(vec{-3, -1, 4}, 3).edges[4], 4)
    for bins = 1, 50, 7 do
        for _, dtype in ipairs{"f32", "f64"} do
            check_edges({-3, -1, 4}, dtype, bins)
            check_edges(rand(500, {seed = bins}):totable(), dtype, bins)
            check_edges(range(0, 100):totable(), dtype, bins)
            check_edges({16777215, 16777216, 16777214}, dtype, bins)
            check_edges({1e-45, 3e-45, 0}, dtype, bins)
            check_edges({-3.4e38, 3.4e38, 1}, dtype, bins)
        end
        check_edges({-1.7e308, 1.7e308, 0, 1e308}, "f64", bins)
        check_edges({5e-324, 0, 15e-324}, "f64", bins)
        check_edges({1, 1 + 2.0 ^ -52, 1 + 2.0 ^ -51}, "f64", bins)
        check_edges({0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}, "f64", bins)
    end
end

-- Edges with few digits are those decimals.
function TestHist:test_nice_edges_are_decimals()
    local h = hist(vec({0.1, 0.2, 0.3, 0.4, 1}, {dtype = "f64"}))
    lu.assertEquals(h.edges, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1})
    lu.assertEquals(h.counts, {1, 1, 1, 1, 0, 0, 0, 0, 1})
    h = hist(vec{-2500, 3.5, 7500})
    lu.assertEquals({h.edges[1], h.edges[2], h.edges[#h.edges]}, {-3000, -2000, 8000})
    h = hist(vec({0.05, 0.15, 0.35}, {dtype = "f64"}), {low = 0, high = 0.5, bins = 5})
    lu.assertEquals({h.edges[1], h.edges[6]}, {0, 0.5})
    lu.assertEquals(h.counts, {1, 1, 0, 1, 0})
end

function TestHist:test_every_element_is_counted()
    local h = hist(randn(1000, 300, {seed = 1}))
    local sum = 0
    for _, count in ipairs(h.counts) do sum = sum + count end
    lu.assertEquals(sum, 300000)
    lu.assertEquals(#h.edges, #h.counts + 1)
    -- all in one bin
    lu.assertEquals(hist(full(500, 500, 3)).counts, {250000})
end

function TestHist:test_bars()
    shows(hist(vec{1, 2, 2, 3, 3, 3, 3}, {width = 20}), "f32 vector 7  @  28 B",
        "  1 │███ 1",
        "  2 │██████ 2",
        "  3 │████████████ 4")
    shows(hist(vec{0, 0.1, 0.4, 1, nan, inf, -inf}, 2, {width = 40}),
        "f32 vector 7  @  28 B",
        "    0 … 0.5 │" .. ("█"):rep(24) .. " 3",
        "  0.5 …   1 │████████ 1",
        "  1 NaN left out    2 Inf left out")
    has(hist(vec{1, 2, 3}, {low = 2, high = 4, bins = 2}), "1 outside the range")
    has(hist(vec{1, 2}:gt(1)), "0 │", "1 │")
    has(hist(sparse(eye(30))), "│", " 30")
    -- a bar that has none beside it
    has(hist(vec{5, 5}), " 5 │")
    has(plot(vec{-3}, vec{2}, {style = "bars"}), " -3 │")
end

function TestHist:test_extremes()
    local h = hist(mat({{-1.7e308, 1.7e308, 0, 1}}, {dtype = "f64"}), 4)
    lu.assertEquals(h.counts, {1, 0, 2, 1})
    h = hist(vec({0, 5e-324, 1e-323}, {dtype = "f64"}), 2)
    lu.assertEquals(h.counts, {1, 2})
    h = hist(vec({1e9, 1e9 + 1e-6}, {dtype = "f64"}))
    lu.assertEquals(h.counts[1] + h.counts[#h.counts], 2)
end

function TestHist:test_refusals()
    t.raises(function() hist(ones(3), 0) end, "hist: bins is 0, expected a whole number above 0")
    t.raises(function() hist(ones(3), 5000) end, "use 1 to 4096")
    t.raises(function() hist(full(3, nan)) end, "hist: none of the 3 elements is finite")
    t.raises(function() hist(ones(3), {low = 2, high = 1}) end, "is not one")
    t.raises(function() hist(zeros(0)) end, "has no elements")
    t.raises(function() hist(3) end, "hist: A is 3, expected a matrix")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
