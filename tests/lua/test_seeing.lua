-- Looking at matrices: inspect, heat, spy, hist, plot, blocks and watch, on
-- the device under test, against what a look at the elements says.
local lu = require "luaunit"
local t = dofile((arg[0]:match("^.*/") or "") .. "common.lua")
local inf, nan = t.inf, t.nan
local where = zeros(1).device

-- The text of x, with the device's name put in for @ in the lines expected.
local function shows(x, ...)
    local expected = table.concat({...}, "\n"):gsub("@", where)
    lu.assertEquals(tostring(x), expected)
end

local function has(x, ...)
    for _, text in ipairs {...} do lu.assertStrContains(tostring(x), text) end
end

-- A function that gives element (i, j) of A, whatever its layout.
local function reader(A)
    local list = A:totable()
    if A.ndim == 1 then return function(i) return list[i] end, A.rows, 1 end
    return function(i, j) return list[i][j] end, A.rows, A.cols
end

-- --- inspect -----------------------------------------------------------------

local function survey(A)
    local at, m, n = reader(A)
    local s = {min = inf, max = -inf, zeros = 0, nan = 0, inf = 0, finite = 0,
               subnormal = 0, sum = 0, lower = -inf, upper = -inf}
    local tiny = A.dtype == "f64" and 2.0 ^ -1022 or 2.0 ^ -126
    for i = 1, m do
        for j = 1, n do
            local x = at(i, j)
            if x ~= 0 then
                s.lower = math.max(s.lower, i - j)
                s.upper = math.max(s.upper, j - i)
            end
            if x == 0 then s.zeros = s.zeros + 1
            elseif math.abs(x) < tiny then s.subnormal = s.subnormal + 1 end
            if x ~= x then
                s.nan = s.nan + 1
            elseif math.abs(x) == inf then
                s.inf = s.inf + 1
            else
                s.finite, s.sum = s.finite + 1, s.sum + x
                if x < s.min then s.min, s.min_at = x, {i, j} end
                if x > s.max then s.max, s.max_at = x, {i, j} end
            end
        end
    end
    s.mean = s.sum / s.finite
    return s
end

local function check(A, what)
    local got, want = inspect(A), survey(A)
    for _, key in ipairs {"zeros", "nan", "inf", "subnormal", "finite"} do
        lu.assertEquals(got[key], want[key], what .. " " .. key)
    end
    for _, key in ipairs {"lower", "upper"} do
        if A.ndim == 2 and want.lower > -inf then
            lu.assertEquals(got[key], want[key], what .. " " .. key)
        end
    end
    if want.finite == 0 then return end
    lu.assertEquals(got.min, want.min, what)
    lu.assertEquals(got.max, want.max, what)
    for _, key in ipairs {"min_at", "max_at"} do
        local place = A.ndim == 1 and {want[key][1]} or want[key]
        lu.assertEquals(got[key], place, what .. " " .. key)
    end
    lu.assertIsTrue(math.abs(got.mean - want.mean) <=
        1e-6 * (math.abs(want.max) + math.abs(want.min)), what .. " mean")
end

local shapes = {{1, 1}, {2, 2}, {3, 5}, {31, 33}, {32, 32}, {65, 65}, {1, 70},
                {70, 1}, {200, 3}, {3, 2000}, {130, 130}, {1025, 4}}

TestInspect = {}

function TestInspect:test_every_shape_layout_and_type()
    for seed, shape in ipairs(shapes) do
        local m, n = shape[1], shape[2]
        for _, dtype in ipairs {"f32", "f64"} do
            local what = string.format("%dx%d %s", m, n, dtype)
            check(t.whole(m, n, dtype, seed), what)
            check(t.uniform(n, m, dtype, seed).T, what .. " turned")
            check(t.uniform(2 * m, 3 * n, dtype, seed)["::2, ::3"], what .. " gaps")
        end
        check(t.uniform(m * n, 1, "f32", seed):reshape(m * n), "vector")
        check(t.whole(m, n, "f32", seed):gt(0):f32(), "zeros and ones")
    end
end

function TestInspect:test_oddities()
    for seed, shape in ipairs(shapes) do
        local m, n = shape[1], shape[2]
        local A = t.uniform(m, n, "f32", seed)
        A[{m, n}] = nan
        check(A, "one NaN")
        A[{1, 1}] = -inf
        A[{(m + 1) // 2, n}] = 1e-40
        check(A, "NaN and Inf")
        check(full(m, n, nan), "all NaN")
        check(zeros(m, n), "zeros")
    end
end

function TestInspect:test_moments_are_those_of_the_reductions()
    for _, dtype in ipairs {"f32", "f64"} do
        local A = randn(300, 170, {seed = 1, dtype = dtype}) + 1000
        local s, tolerance = inspect(A), dtype == "f32" and 1e-6 or 1e-12
        t.near(s.mean, A:mean(), tolerance, "mean")
        t.near(s.std, A:std(), tolerance, "std")
        t.near(s.norm, A:norm(), tolerance, "norm")
    end
end

function TestInspect:test_squares_that_leave_f64()
    local A = t.uniform(50, 50, "f64", 1)
    local s = inspect(A)
    for _, power in ipairs {600, -600, 1015, -1000} do
        local scaled = inspect(A * 2.0 ^ power)
        t.near(scaled.norm * 2.0 ^ -power, s.norm, 1e-12, "norm")
        t.near(scaled.std * 2.0 ^ -power, s.std, 1e-12, "std")
        t.near(scaled.mean * 2.0 ^ -power, s.mean, 1e-12, "mean")
    end
end

function TestInspect:test_structure()
    local R = t.uniform(100, 100, "f32", 3)
    has(R, "f32")
    has(inspect(R + R.T), "symmetric     not triangular")
    lu.assertIsTrue(inspect(R + R.T).symmetric)
    lu.assertIsFalse(inspect(R).symmetric)
    t.near(inspect(R).asymmetry, (R - R.T):abs():max(), 1e-6)
    has(inspect(eye(100)), "symmetric     diagonal     99 % zeros")
    local function part(f)
        return fromfn(70, 70, function(i, j) return f(i, j) and 1 or 0 end)
    end
    has(inspect(part(function(i, j) return i >= j end)), "     lower triangular")
    has(inspect(part(function(i, j) return i <= j end)), "     upper triangular")
    has(inspect(part(function(i, j) return i < j end)), "strictly upper triangular")
    has(inspect(part(function(i, j) return math.abs(i - j) < 2 end)), "tridiagonal")
    has(inspect(part(function(i, j) return i - j < 3 and j - i < 2 end)),
        "banded: 2 below, 1 above the diagonal")
    has(inspect(ones(3, 4)), "not triangular")
    has(inspect(zeros(4, 4)), "all zeros")
    has(inspect(mat{{1, 2, 3}, {0, 4, 5}}), "upper trapezoidal")
end

function TestInspect:test_symmetry_and_nan()
    local A = zeros(40, 40)
    A[{3, 35}], A[{35, 3}] = nan, nan
    lu.assertIsTrue(inspect(A).symmetric)
    A[{3, 35}] = 1
    lu.assertEquals(inspect(A).asymmetry, inf)
    A[{3, 35}], A[{35, 3}] = inf, inf
    lu.assertIsTrue(inspect(A).symmetric)
    A[{35, 3}] = -inf
    lu.assertEquals(inspect(A).asymmetry, inf)
end

function TestInspect:test_text()
    local A = mat{{1, -2}, {nan, inf}}
    shows(inspect(A), "A   f32 2x2  @  16 B   row-major, contiguous",
        "    min -2 at [1, 2]     max 1 at [1, 1]     mean -0.5     std 2.1213",
        "    norm 2.2361",
        "    zeros 0     NaN 1     Inf 1     subnormal 0     " ..
        "first NaN or Inf at [2, 1]",
        "    (min to norm are of the others)",
        "    distribution  -2 █                      █ 1",
        "    structure     not symmetric (max |A - A.T| Inf)     not triangular")
end

function TestInspect:test_layouts_and_aliases()
    original = t.places(4, 6)
    turned, row, same = original.T, original[2], original
    has(inspect(original, "original"), "row-major, contiguous",
        "row (a view)", "same (the same)", "turned (transposed)")
    has(inspect(turned), "column-major, contiguous: a transposed view")
    has(inspect(row), "contiguous   of storage of 96 B")
    has(inspect(original["1:3, 2"]), "a view of every 6th element")
    has(inspect(original["1:3, 1:5:2"]),
        "a view: 6 from row to row, 2 from column to column")
    original, turned, row, same = nil
end

function TestInspect:test_masks_vectors_and_empties()
    has(inspect(vec{1, 2, 3}:gt(1)), "true 2 of 3 (66.7 %)")
    has(inspect(vec{5}), "one element", "min 5 at [1]")
    shows(inspect(zeros(0, 3)), "f32 0x3  (empty)")
    shows(inspect(zeros(3, 0)), "f32 3x0  (empty)")
    shows(inspect(zeros(0)), "f32 vector 0  (empty)")
    lu.assertEquals(inspect(zeros(3, 0)).finite, 0)
    has(inspect(full(2, 2, nan)), "no finite element")
end

function TestInspect:test_sparse()
    local S = sparse({1, 2, 4}, {2, 1, 4}, {5, 6, 0}, 4, 4)
    local s = inspect(S)
    has(s, "entries 3     min 0 at [4, 4]     max 6 at [2, 1]",
        "zeros among them 1", "rows without entries 1     longest row 1",
        "symmetric pattern, other values", "tridiagonal")
    lu.assertEquals({s.nnz, s.empty_rows, s.symmetric, s.symmetric_pattern},
        {3, 1, false, true})
    has(inspect(sparse({}, {}, {}, 3, 5)), "no entries")
    has(inspect(sparse(eye(9))), "symmetric     diagonal")
end

function TestInspect:test_values_that_are_no_matrix()
    t.raises(function() inspect(5) end, "inspect: 5 is a number, expected a matrix")
    t.raises(function() inspect("A") end, "inspect: \"A\" is a string")
    t.raises(function() inspect({1}) end, "inspect: a table", "mat(t)")
    t.raises(function() inspect() end, "inspect: there is nothing to inspect")
    local A = ones(2)
    A:free()
    t.raises(function() inspect(A) end, "has been freed")
end

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
    t.raises(function() hist(ones(3), 0) end, "hist: 0 bins: use 1 to 4096")
    t.raises(function() hist(ones(3), 5000) end, "use 1 to 4096")
    t.raises(function() hist(full(3, nan)) end, "hist: none of the 3 elements is finite")
    t.raises(function() hist(ones(3), {low = 2, high = 1}) end, "is not one")
    t.raises(function() hist(zeros(0)) end, "has no elements")
    t.raises(function() hist(3) end, "matrix expected")
end

-- --- heat and spy ------------------------------------------------------------------

TestHeat = {}

function TestHeat:test_small()
    shows(heat(mat{{1, 2}, {nan, 4}}), "f32 2x2  @  16 B",
        "1     ░░░░",
        "      ░░░░",
        "  !!!!████",
        "2 !!!!████",
        "  1      2",
        "  1   ░░▒▒▓▓██ 4    ! NaN or Inf in 1 element")
    shows(heat(vec{1, 2, 3}), "f32 vector 3  @  12 B", "1     ▒▒▒▒████",
        "      ▒▒▒▒████", "  1          3", "  1   ░░▒▒▓▓██ 3")
end

function TestHeat:test_blocks()
    local A = fromfn(100, 100, function(i, j) return (i > 50) == (j > 50) and 1 or 0 end)
    has(heat(A, {width = 15, height = 5}), "means of 20x10 elements",
        "  1 █████     \n",
        "100      █████\n")
    lu.assertEquals(heat(A).low, 0)
    lu.assertEquals(heat(A).high, 1)
end

-- What the program prints with colours, for an expression on the CPU.
local function coloured(expression)
    local command = string.format("COLORTERM= LC_ALL=C.UTF-8 '%s' --device cpu " ..
        "--color=always -p '%s'", os.getenv "LUMAT", expression)
    local pipe <close> = io.popen(command)
    return pipe:read "a"
end

function TestHeat:test_colours()
    -- blue below 0, red above it: the upper half, and what is behind it
    has(coloured "heat(mat{{-1}, {1}}, {width = 10})", "\27[38;5;61m\27[48;5;61m▀",
        "\27[38;5;124m\27[48;5;124m▀")
    -- from dark to light
    has(coloured "heat(mat{{1}, {2}}, {width = 10})", "\27[38;5;53m", "\27[38;5;220m")
    has(coloured "heat(vec{0/0})", "\27[1;37;41m!\27[0m")
    lu.assertNotStrContains(tostring(heat(mat{{-1}, {1}})), "\27")
end

function TestHeat:test_range()
    has(heat(vec{1, 2, 3}, {low = 0, high = 10}), "  0   ░░▒▒▓▓██ 10")
    t.raises(function() heat(vec{1}, {low = 2, high = 1}) end, "is no range")
end

function TestHeat:test_elongated()
    for _, shape in ipairs {{1, 100000}, {100000, 1}, {3, 5000}, {5000, 3}} do
        local text = tostring(heat(ones(shape[1], shape[2])))
        for line in text:gmatch "[^\n]+" do
            lu.assertIsTrue(utf8.len(line) <= 80, line)
        end
    end
end

function TestHeat:test_sparse_is_as_its_dense_matrix()
    local D = t.whole(90, 120, "f32", 1)
    D[D:lt(3)] = 0
    local dense = tostring(heat(D)):gsub("^[^\n]*", "")
    lu.assertEquals((tostring(heat(sparse(D))):gsub("^[^\n]*", "")), dense)
    lu.assertEquals(spy(sparse(D)).filled, spy(D).filled)
end

function TestHeat:test_spy()
    shows(spy(eye(4)), "f32 4x4  @  64 B",
        "  ┌────────┐",
        "1 │⣿⣿      │",
        "  │  ⣿⣿    │",
        "  │    ⣿⣿  │",
        "4 │      ⣿⣿│",
        "  └────────┘",
        "   1      4", "  4 not zero (25 %)")
    local A = zeros(3000, 3000)
    A[{2999, 1}], A[{1500, 1500}] = 5, nan
    lu.assertEquals(spy(A).filled, 2)
    lu.assertEquals(select(2, tostring(spy(A)):gsub("[⠁-⣿]", "")) > 0, true)
end

function TestHeat:test_refusals()
    t.raises(function() heat(ones(2, 2), {widht = 3}) end, "did you mean 'width'?")
    t.raises(function() heat(ones(2, 2), {width = 3}) end, "width: needs 10 to")
    t.raises(function() heat(zeros(0, 2)) end, "has no elements")
    t.raises(function() spy("x") end, "matrix expected")
end

-- --- plot ---------------------------------------------------------------------------

TestPlot = {}

function TestPlot:test_lines()
    shows(plot(vec{1, 2, 3}, {width = 20, height = 5}),
        " 3 ┤             ⡠⠔⠊",
        "   │         ⢀⡠⠒⠉   ",
        " 2 ┤      ⢀⡠⠎⠁      ",
        "   │   ⣀⠤⠊⠁         ",
        " 1 ┤⡠⠔⠊             ",
        "   └┬───────┬──────┬",
        "    1       2      3")
end

function TestPlot:test_many_points_keep_their_extremes()
    local v = zeros(1000000)
    v[777777] = 50
    v[123456] = -50
    local p = plot(v)
    lu.assertEquals({p.low, p.high}, {-50, 50})
    has(p, " 50 ┤", "-50 ┤")
end

function TestPlot:test_forms()
    local x = linspace(0, 1, 50)
    has(plot(x, sin(x)), "┤")
    has(plot(x, x:col() .. sin(x):col()), "* column 1   + column 2")
    has(plot(ones(20, 12)), "the first 8 of 12 columns")
    has(plot(math.sin, 0, 6), "┤")
    has(plot{1, 4, 9}, "┤")
    has(plot({1, 2}, {3, 4}), "┤")
    has(plot(vec{1, nan, 3, inf, 2}), "┤")
    has(plot(ones(5)), "┤")
    has(plot(vec{1e300 * 1e10, 3}), "┤")
    has(plot(vec({-1.7e308, 1.7e308}, {dtype = "f64"})), "┤")
    has(plot(vec{1, 2, 3}:gt(1)), "┤")
    has(plot(ones(3, 3).T["1, :"]), "┤")
    has(plot(vec{0, 100}, {low = 40, high = 60}), "60 ┤", "40 ┤")
end

function TestPlot:test_refusals()
    t.raises(function() plot() end, "to draw expected")
    t.raises(function() plot(vec{1, 2}, vec{1, 2, 3}) end,
        "plot: x has 2 elements, y has 3")
    t.raises(function() plot(ones(2, 2), ones(2, 2)) end, "x is a vector")
    t.raises(function() plot(full(3, nan)) end, "no finite point")
    t.raises(function() plot(math.sin, 1) end, "plot(f, a, b)")
    t.raises(function() plot(math.sin, 1, 0) end, "no range")
    t.raises(function() plot(function() end, 0, 1) end, "gave a nil, expected a number")
    t.raises(function() plot(sparse(eye(2))) end, "full(S)")
    t.raises(function() plot(zeros(0)) end, "has no elements")
end

-- --- files ------------------------------------------------------------------------

TestFiles = {}

local has_gnuplot = os.execute("command -v gnuplot >/dev/null 2>&1")

-- A new folder, which is removed with what f makes in it.
local function in_folder(f)
    local name = os.tmpname()
    os.remove(name)
    os.execute("mkdir '" .. name .. "'")
    local ok, problem = pcall(f, name .. "/")
    os.execute("rm -r '" .. name .. "'")
    if not ok then error(problem, 0) end
end

local function read(name)
    local file <close> = assert(io.open(name, "rb"))
    return file:read "a"
end

function TestFiles:test_every_picture()
    lu.skipIf(not has_gnuplot, "no gnuplot")
    in_folder(function(folder)
        local x = linspace(0, 6, 100)
        local A = x:col() .. sin(x):col()
        for _, draw in ipairs {heat, hist, spy, plot} do
            shows(draw(A, {file = folder .. "p.png"}), "wrote " .. folder .. "p.png")
            lu.assertEquals(read(folder .. "p.png"):sub(1, 8), "\137PNG\r\n\26\n")
            draw(A, folder .. "p.svg")
            has(read(folder .. "p.svg"), "<svg", "</svg>")
        end
        lu.assertNil(io.open(folder .. "p.svg.part"))
    end)
end

function TestFiles:test_names_are_only_names()
    lu.skipIf(not has_gnuplot, "no gnuplot")
    in_folder(function(folder)
        for _, name in ipairs {"it's.svg", "a b.svg", "$(touch x).svg",
                "`touch y`.svg", "|touch z.svg", "~.svg", "-.svg",
                "\"q\".svg", "@A.svg", "back\\slash.svg"} do
            plot(vec{1, 2}, folder .. name)
            has(read(folder .. name), "<svg")
        end
        for _, made in ipairs {"x", "y", "z"} do
            lu.assertNil(io.open(folder .. made))
        end
    end)
end

function TestFiles:test_refusals()
    t.raises(function() plot(vec{1, 2}, "p.gif") end,
        "plot: \"p.gif\": a picture's name ends in .png, .svg or .pdf")
    t.raises(function() heat(ones(2, 2), "png") end, "ends in .png")
    t.raises(function() heat(ones(2, 2), "a\nb.png") end, "control characters")
    t.raises(function() heat(ones(2, 2), {file = 3}) end, "file: needs a name, not 3")
    t.raises(function() spy(ones(2, 2), "/no/such/place/p.png") end,
        "spy: cannot write", "No such file")
end

function TestFiles:test_a_failure_leaves_the_old_file()
    lu.skipIf(not has_gnuplot, "no gnuplot")
    in_folder(function(folder)
        local name = folder .. "old.svg"
        plot(vec{1, 2}, name)
        local before = read(name)
        local popen = io.popen
        io.popen = function(command, mode)
            return popen("echo 'line 3: no way'; exit 1 # " .. command, mode)
        end
        local ok, message = pcall(plot, vec{2, 1}, name)
        io.popen = popen
        lu.assertIsFalse(ok)
        lu.assertStrContains(message, "gnuplot could not draw " .. name .. ": no way")
        lu.assertEquals(read(name), before)
        lu.assertNil(io.open(name .. ".part"))
    end)
end

function TestFiles:test_no_gnuplot_and_no_programs_at_all()
    local popen = io.popen
    in_folder(function(folder)
        io.popen = function(_, mode) return popen("exit 127", mode) end
        local _, message = pcall(plot, vec{1, 2}, folder .. "p.png")
        lu.assertStrContains(message, "plot: needs gnuplot for ")
        lu.assertStrContains(message, "apt install gnuplot")
        io.popen = nil
        _, message = pcall(plot, vec{1, 2}, folder .. "p.png")
        io.popen = popen
        lu.assertStrContains(message, "--safe starts no other program")
    end)
    io.popen = popen
end

-- --- watch ----------------------------------------------------------------------

TestWatch = {}

function TestWatch:test_names()
    lu.assertNil(watch())
    lu.assertEquals(watch("later"), "later")
    lu.assertEquals(watch(), "later")
    watched = ones(2, 2)
    lu.assertEquals(watch(watched), "watched")
    lu.assertEquals(watch(ones(3)), "a matrix")
    lu.assertNil(watch(false))
    lu.assertNil(watch())
    watched = nil
    t.raises(function() watch(5) end, "matrix, name or false expected")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
