-- Reductions, norms, diagonals and traces of sparse matrices, against the same of
-- the dense matrix over random patterns: what is not stored counts as 0.
local lu = require "luaunit"
local t = require "common"
local equals, raises, inf, nan = t.equals, t.raises, t.inf, t.nan
local types = t.sparse_types
local shapes = {{1, 1}, {1, 9}, {9, 1}, {4, 4}, {31, 33}, {5, 300}, {300, 5},
    {130, 130}}

-- Calls f(A, S) for random matrices of each shape and type; S is A.
local function each(kinds, f)
    t.each_pattern(shapes, kinds, {0.05, 0.4, 0.9, 1}, function(A)
        f(A, sparse(A))
    end)
end

-- Of one kind, type and shape, and equal, or nearly where elements are not added
-- up in one order.
local function same(a, b, tolerance)
    tolerance = tolerance or 0
    if type(b) == "boolean" then
        lu.assertEquals(a, b)
    elseif type(b) == "number" or not pcall(function() return b.dtype end) then
        lu.assertTrue(a == b or abs(a - b) <= tolerance * (1 + abs(b)))
    else
        lu.assertEquals({a.dtype, a.shape, a.ndim}, {b.dtype, b.shape, b.ndim})
        lu.assertTrue(a == b or a.dtype ~= "bool" and
            (abs(a - b):le(tolerance * (1 + abs(b)))):all())
    end
end

TestReductions = {}

function TestReductions:test_sums_and_means_and_truths()
    each(types, function(A, S)
        for _, f in ipairs{sum, mean, any, all} do
            same(f(S), f(A), 1e-6)
            same(f(S, 1), f(A, 1), 1e-6)
            same(f(S, 2), f(A, 2), 1e-6)
        end
        -- A GPU adds up what lies dense in another order.
        local near = S.device == "cpu" and 0 or 1e-6
        same(S:sum(2, {keepdims = false}), A:sum(2, {keepdims = false}), near)
        same(S:sum{axis = 1}, A:sum(1), near)
    end)
end

function TestReductions:test_extremes()
    each({"f32", "f64"}, function(A, S)
        for _, f in ipairs{max, min} do
            same(f(S), f(A))
            same(f(S, 1), f(A, 1))
            same(f(S, 2), f(A, 2))
            same(f(-1 * S, 2), f(-1 * A, 2))
        end
    end)
end

function TestReductions:test_products()
    each(types, function(A, S)
        same(prod(S), prod(A), 1e-4)
        same(prod(S, 1), prod(A, 1), 1e-4)
        same(prod(S, 2), prod(A, 2), 1e-4)
    end)
end

function TestReductions:test_spreads()
    each(types, function(A, S)
        for _, f in ipairs{var, std} do
            if A.rows * A.cols > 1 then same(f(S), f(A), 1e-5) end
            if A.rows > 1 then same(f(S, 1), f(A, 1), 1e-5) end
            if A.cols > 1 then same(f(S, 2), f(A, 2), 1e-5) end
        end
    end)
    local S = sparse(mat{{1, 0}, {3, 5}})
    equals(var(S, 1, {ddof = 0}), {{1, 6.25}})
    lu.assertAlmostEquals(std(S, {ddof = 0}), std(full(S), {ddof = 0}), 1e-12)
end

function TestReductions:test_norms()
    each(types, function(A, S)
        same(norm(S), norm(A), 1e-6)
        same(norm(S, "fro"), norm(A), 1e-6)
        same(norm(S, 1), norm(A, 1), 1e-6)
        same(norm(S, "inf"), norm(A, "inf"), 1e-6)
        for _, p in ipairs{1, 2, 3, 0.5, "inf"} do
            same(norm(S, p, {axis = 1}), norm(A, p, {axis = 1}), 1e-5)
            same(norm(S, p, {axis = 2}), norm(A, p, {axis = 2}), 1e-5)
        end
    end)
    local large = mat({{3e200, 4e200}, {3e-200, 4e-200}}, {dtype = "f64"})
    lu.assertTrue((norm(sparse(large), {axis = 2}) /
        vec({5e200, 5e-200}, {dtype = "f64"}):col() - 1):abs():max() < 1e-14)
end

function TestReductions:test_what_is_no_number()
    local A = mat{{nan, 0, 1}, {inf, 2, -1}, {0, 0, 0}, {nan, nan, nan}}
    local S = sparse(A)
    for _, f in ipairs{sum, mean, max, min, prod, var, std, any, all} do
        for _, axis in ipairs{1, 2} do
            local told = f(A, axis)
            lu.assertTrue((told:eq(f(S, axis)):lor(told:ne(told)
                :land(f(S, axis):ne(f(S, axis))))):all())
        end
        local a, s = f(A), f(S)
        lu.assertTrue(a == s or (a ~= a and s ~= s))
    end
end

-- Warnings of lines with nothing else are the same.
function TestReductions:test_nan_left_out()
    local A = mat({{nan, 0, 1}, {inf, 2, -1}, {0, 0, 0}, {nan, nan, nan},
        {nan, nan, 3}, {-2, -3, nan}}, {dtype = "f64"})
    local S = sparse(A)
    for _, f in ipairs{sum, mean, max, min, prod, any, all, var, std} do
        for _, axis in ipairs{1, 2} do
            local a = f(A, axis, {nan = "skip"}):f64()
            local s = f(S, axis, {nan = "skip"}):f64()
            lu.assertEquals(a.shape, s.shape)
            lu.assertTrue((a:eq(s):lor(a:ne(a):land(s:ne(s))):lor(
                abs(a - s):lt(1e-12))):all())
        end
        local a, s = f(A, {nan = "skip"}), f(S, {nan = "skip"})
        lu.assertTrue(a == s or (a ~= a and s ~= s) or math.abs(a - s) < 1e-12)
    end
    lu.assertEquals(norm(sparse(mat{{nan, 3}, {4, 0}}), {nan = "skip"}), 5)
    lu.assertEquals(max(sparse(vec{nan}:col()) .. sparse(1, 1), {nan = "skip"}), 0)
end

function TestReductions:test_of_nothing()
    for _, s in ipairs{{0, 0}, {0, 3}, {3, 0}} do
        local A, S = zeros(s[1], s[2]), sparse(s[1], s[2])
        for _, f in ipairs{sum, prod, any, all, norm, max, min, mean, var} do
            for _, axis in ipairs{false, 1, 2} do
                local options = axis and {axis = axis} or {}
                local fine, a = pcall(f, A, options)
                local good, b = pcall(f, S, options)
                lu.assertEquals(good, fine)
                if not fine then
                    lu.assertEquals(b, a)
                elseif axis then
                    lu.assertEquals(b.shape, a.shape)
                    lu.assertTrue(a == b)
                else
                    lu.assertTrue(a == b or (a ~= a and b ~= b))
                end
            end
        end
    end
    lu.assertEquals(sum(sparse(4, 4)), 0)
    lu.assertEquals(max(sparse(4, 4)), 0)
    equals(min(sparse(2, 2), 1), {{0, 0}})
end

-- f32 is added up in f64, and lines in blocks, however many threads there are.
function TestReductions:test_digits()
    local n = 300000
    local S = sparse(range(1, n), 1, ones(n) * 0.1, n, 2)
    local tenth = ones(1) * 0.1
    lu.assertAlmostEquals(sum(S) / (n * tenth(1)), 1, 1e-15)
    lu.assertTrue(sum(S, 1)(1, 1) == (ones(1):f64() * n * tenth(1)):f32()(1))
    local wide = S.T
    lu.assertTrue(sum(wide, 2)(1, 1) == sum(S, 1)(1, 1))
    local R = sprandn(20000, 300, 0.05, {seed = 3, dtype = "f64"})
    lu.assertTrue(abs(sum(R, 1) - sum(full(R), 1)):max() < 1e-11)
    lu.assertTrue(sum(R, 1) == sum(R, 1))
    lu.assertTrue(max(R, 1) == max(full(R), 1))
end

-- A zero that is stored is one like any other.
function TestReductions:test_stored_zeros()
    local S = sparse({1, 1, 2}, {1, 2, 2}, {0, 3, -1}, 2, 3)
    lu.assertEquals(S.nnz, 3)
    equals(any(S, 1), {{false, true, false}})
    equals(all(S[{{}, {2, 2}}], 1), {{true}})
    equals(max(S, 1), {{0, 3, 0}})
    lu.assertTrue(max(-1 * S, 1) == mat{{0, 1, 0}})
    lu.assertEquals(prod(S[{{}, {2, 2}}]), -3)
    lu.assertTrue(prod(S, 2) == mat{{0}, {0}})
end

function TestReductions:test_refusals()
    local S = sparse(eye(3))
    raises(function() return mean(S, {weights = ones(3, 3)}) end,
        "mean: weights goes with dense matrices: leave it out, or write full(S)")
    raises(function() return sum(S, {device = "cpu"}) end,
        "sum: device goes with dense matrices")
    raises(function() return norm(S, {device = "cpu"}) end, "norm: device")
    raises(function() return max(S:c64()) end, "max: complex numbers")
    raises(function() return max(S:c64(), 1) end, "max: complex numbers")
    raises(function() return sum(S:c64(), {nan = "skip"}) end,
        "sum: NaN, weights and ddof are for real numbers")
    raises(function() return sum(S, 3) end, "sum: ", "3")
    raises(function() return sum(S, 1, {axis = 2}) end, "given twice")
    raises(function() return sum(S, {keepdims = false}) end,
        "sum: keepdims is of a reduction along an axis: sum(S) is of all elements")
    raises(function() return norm(S, 2) end, "norm: norm 2 of a sparse matrix " ..
        "is its largest singular value: write svds(S, 1), or norm(full(S), 2)")
    raises(function() return norm(S, "nuc") end, 'norm(full(S), "nuc")')
    raises(function() return norm(S, 3) end, "norm(S, 3, {axis=1})")
    raises(function() return norm(S, -1) end, "a number above 0")
    raises(function() return S:argmin() end,
        "a sparse matrix has no 'argmin', which dense ones have")
    S:free()
    for _, f in ipairs{sum, max, norm, diag, trace, tril} do
        raises(function() return f(S) end, "has been freed")
    end
end

TestDiagonals = {}

function TestDiagonals:test_diagonals_and_traces()
    each(types, function(A, S)
        for k = -6, 6 do same(diag(S, k), diag(A, k)) end
        same(S:diag(), A:diag())
        same(trace(S), trace(A), 1e-6)
    end)
    lu.assertEquals(diag(sparse(3, 3), 7).rows, 0)
    raises(function() return diag(sparse(eye(2)), 2 ^ 40) end,
        "diag: k is 1099511627776: there is no such diagonal")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
