-- Operations of sparse matrices with sparse ones, dense ones and numbers, against
-- the same of dense matrices over random patterns; what results keep; and what
-- would be dense and is refused.
local lu = require "luaunit"
local t = require "common"
local equals, raises, inf, nan = t.equals, t.raises, t.inf, t.nan
local f64 = {dtype = "f64"}
local types = t.sparse_types

local function pattern(m, n, dtype, seed)
    return t.pattern(m, n, dtype, seed, {0.05, 0.3, 0.7})
end

local shapes = {{1, 1}, {1, 7}, {7, 1}, {3, 3}, {31, 33}, {64, 65}, {5, 200},
    {200, 5}, {130, 130}}

-- Calls f(A, B, types of both) for pairs of random matrices of each shape.
local function pairs_of(f)
    local seed = 0
    for _, s in ipairs(shapes) do
        for i, first in ipairs(types) do
            local second = types[(i + seed) % 4 + 1]
            seed = seed + 1
            f(pattern(s[1], s[2], first, 100 * seed),
                pattern(s[1], s[2], second, 100 * seed + 50), seed)
        end
    end
end

local same = t.is_sparse_of

TestPairs = {}

function TestPairs:test_sum_difference_product_by_elements()
    pairs_of(function(A, B)
        local S, R = sparse(A), sparse(B)
        same(S + R, A + B)
        same(S - R, A - B)
        same(S % R, A % B)
        same(add(S, R), A + B)
        same(S:sub(R), A - B)
        same(S:mul(R), A % B)
    end)
end

function TestPairs:test_products()
    pairs_of(function(A, B)
        same(sparse(A) * sparse(B.T), A * B.T)
        same(sparse(A.T) * sparse(B), A.T * B)
    end)
end

function TestPairs:test_what_comes_out_as_zero_is_not_kept()
    local S = sparse({1, 1, 2}, {1, 2, 2}, {1, 2, 3}, 2, 2)
    lu.assertEquals((S - S).nnz, 0)
    lu.assertEquals((S + S).nnz, 3)
    local R = S - sparse({1, 2}, {2, 2}, {2, 1}, 2, 2)
    lu.assertEquals(R.nnz, 2)
    equals(full(R), {{1, 0}, {0, 2}})
    -- 1e-30 squared is 0 in f32.
    lu.assertEquals((sparse({1}, {1}, 1e-30) % sparse({1}, {1}, 1e-30)).nnz, 0)
end

function TestPairs:test_what_is_no_number()
    local S = sparse({1, 1, 2}, {1, 2, 2}, {nan, inf, 1}, 2, 2)
    equals(full(S + S), {{nan, inf}, {0, 2}})
    equals(full(S - S), {{nan, nan}, {0, 0}})
    equals(full(S % sparse(eye(2))), {{nan, 0}, {0, 1}})
end

function TestPairs:test_empty_ones()
    local none = sparse({}, {}, {}, 3, 2)
    lu.assertEquals((none + none).nnz, 0)
    lu.assertEquals((none * none.T).shape, {3, 3})
    lu.assertEquals((sparse(zeros(0, 3)) + sparse(zeros(0, 3))).shape, {0, 3})
    lu.assertEquals((sparse(zeros(0, 3)) * sparse(zeros(3, 2))).shape, {0, 2})
    lu.assertEquals((sparse(zeros(2, 0)) * sparse(zeros(0, 2))).nnz, 0)
end

function TestPairs:test_many_columns_and_long_rows()
    local n = 300000
    local i, j = randint(1, 40, 3000, {seed = 1}), randint(1, n, 3000, {seed = 2})
    local S = sparse(i, j, randint(1, 5, 3000, {seed = 3}), 40, n, f64)
    local G = S * S.T
    lu.assertTrue(full(G) == S * full(S.T))
    local wide = S.T * sparse(ones(40, 1))
    lu.assertTrue(full(wide) == S.T * ones(40, 1, f64))
    same(S + S - S, full(S))
end

-- Rows of S with a single entry, which is what scales or orders rows.
function TestPairs:test_rows_of_a_single_entry()
    for _, dtype in ipairs(types) do
        local A = pattern(40, 30, dtype, 7)
        local R, order = sparse(A), randperm(40, {seed = 8})
        local P = sparse(range(1, 40), order, ones(40, f64), 40, 40, f64)
        same(P[dtype](P) * R, A[{order, {}}])
        local d = randint(-2, 2, 40, {seed = 9})[dtype](
            randint(-2, 2, 40, {seed = 9}))
        same(spdiags(d, 0, 40, 40, {dtype = dtype}) * R, d:col() % A)
    end
    local x = sparse({1, 3}, {2, 1}, vec({2, -1}, f64), 3, 2, f64) *
        sparse({1, 2, 2}, {1, 1, 3}, vec({nan, inf, 3}, f64), 2, 3, f64)
    local i, j, v = x:triplets()
    equals(i, {1, 1, 3})
    equals(j, {1, 3, 1})
    equals(v, {inf, 6, nan})
end

TestDense = {}

function TestDense:test_with_dense_matrices()
    pairs_of(function(A, B)
        local S = sparse(A)
        lu.assertTrue(S + B == A + B)
        lu.assertTrue(B - S == B - A)
        same(S % B, A % B)
        same(B % S, B % A)
        lu.assertTrue(B.T * S == B.T * A)
        lu.assertTrue(B[{{}, 1}] * S == A.T * B[{{}, 1}])
    end)
end

function TestDense:test_rows_and_columns_are_scaled()
    pairs_of(function(A, B)
        local S = sparse(A)
        local rows, columns = B[{{}, {1, 1}}], B[{{1, 1}, {}}]
        same(S % rows, A % rows)
        same(S % columns, A % columns)
    end)
end

TestElements = {}

-- Functions of which 0 gives 0 are those of the elements that are stored.
function TestElements:test_functions()
    for _, dtype in ipairs{"f32", "f64"} do
        local A = pattern(20, 30, dtype, 4)
        local S = sparse(A)
        for _, name in ipairs{"abs", "sign", "sqrt", "sin", "tan", "floor",
            "atan", "expm1", "log1p", "neg"} do
            local f = require "lumat"[name]
            local wanted, got = f(A), f(S)
            lu.assertEquals(got.nnz, S.nnz)
            wanted = where(wanted:isnan(), 77, wanted)
            got = full(got)
            lu.assertTrue(where(got:isnan(), 77, got) == wanted, name)
        end
        same(S:pow(2), A:pow(2))
        same(S / 4, A / 4)
        same(-S, -A)
        same(S % 2, A % 2)
        same(3 * S, 3 * A)
    end
end

function TestElements:test_comparisons_keep_what_is_true()
    local A = pattern(20, 30, "f64", 5)
    for _, name in ipairs{"gt", "lt", "ne", "ge", "le"} do
        local limit = (name == "gt" or name == "ge") and 1 or name == "ne" and 0
            or -1
        local S = sparse(A)[name](sparse(A), limit)
        lu.assertEquals(S.dtype, "f32")
        lu.assertTrue(full(S):ne(0) == A[name](A, limit))
        lu.assertEquals(S.nnz, A[name](A, limit):sum())
    end
end

function TestElements:test_powers()
    local A = pattern(9, 9, "f64", 4)
    local S = sparse(A)
    for n = 0, 7 do same(S ^ n, A ^ n) end
    local C = sparse(pattern(5, 5, "c128", 4))
    same(C ^ 3, full(C) * full(C) * full(C))
    same(C ^ 0, eye(5, {dtype = "f64"}):c128())
end

TestErrors = {}

function TestErrors:test_what_would_be_dense()
    local S, D = sparse(eye(3)), eye(3)
    raises(function() return exp(S) end, "exp: of 0, which is not stored, it " ..
        "would give 1.0, so the result is dense: write full(S)")
    raises(function() return S + 1 end, "add: of 0", "write full(S)")
    raises(function() return 1 / S end, "div: of 0", "give Inf")
    raises(function() return S / 0 end, "div: of 0", "give NaN")
    raises(function() return S:lt(1) end, "lt: of 0", "give true")
    raises(function() return S / S end, "div: of two sparse matrices", "+, - and %")
    raises(function() return maximum(S, D) end, "maximum: of two sparse")
    raises(function() return S & S end, "land: of two sparse")
    raises(function() return abs(S, {out = D}) end, "options go with dense")
    raises(function() return D:add_(S) end, "add_: A stays dense")
end

function TestErrors:test_shapes()
    local S, R = sparse(ones(3, 4)), sparse(ones(4, 3))
    raises(function() return S + R end, "add: shapes 3x4 and 4x3 do not match")
    raises(function() return S % R end, "mul: shapes 3x4 and 4x3 do not match")
    raises(function() return S % ones(2, 4) end, "shapes 3x4 and 2x4")
    raises(function() return S * S end, "inner dimensions differ (4 and 3)")
    raises(function() return S ^ 2 end, "pow: S ^ 2: a square sparse matrix")
    raises(function() return sparse(eye(2)) ^ -1 end, "solve(S, b)")
    raises(function() return sparse(eye(2)) ^ 0.5 end, "whole number")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
