-- inspect, on the device under test, against what a look at the elements says.
local lu = require "luaunit"
local t = require "common"
local seeing = require "draw.seeing"
local inf, nan = t.inf, t.nan
local shows, has, reader, shapes = seeing.shows, seeing.has, seeing.reader, seeing.shapes

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
    t.raises(function() inspect(5) end,
        "inspect: A is 5, expected a matrix, a sparse matrix or a frame: write " ..
        "inspect(")
    t.raises(function() inspect("A") end, "inspect: A is \"A\", expected")
    t.raises(function() inspect({1}) end, "inspect: A is a table, expected a matrix")
    t.raises(function() inspect() end, "inspect: A is missing, expected a matrix")
    t.raises(function() inspect(vec{im}) end, "inspect: is of real numbers")
    local A = ones(2)
    A:free()
    t.raises(function() inspect(A) end, "inspect: A is a freed matrix")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
