-- Triangles, joined blocks, Kronecker products and other shapes of sparse
-- matrices, rows and columns of them and masks of elements, against the same of
-- the dense matrix over random patterns.
local lu = require "luaunit"
local t = require "common"
local equals, raises, inf, nan = t.equals, t.raises, t.inf, t.nan
local whole = t.whole
local types = t.sparse_types
local shapes = {{1, 1}, {1, 9}, {9, 1}, {4, 4}, {31, 33}, {5, 200}, {200, 5},
    {90, 90}}

local shares = {0.05, 0.4, 1}
local same = t.is_sparse_of

local function pattern(m, n, dtype, seed)
    return t.pattern(m, n, dtype, seed, shares)
end

local function each(kinds, f)
    t.each_pattern(shapes, kinds, shares, f)
end

TestBlocks = {}

function TestBlocks:test_triangles()
    each(types, function(A)
        local S = sparse(A)
        for _, k in ipairs{-300, -9, -1, 0, 1, 4, 300} do
            same(tril(S, k), tril(A, k))
            same(S:triu(k), triu(A, k))
        end
        same(tril(S), tril(A))
        lu.assertEquals(tril(S, -300).nnz, 0)
        lu.assertEquals(triu(S, -1e15).nnz, S.nnz)
        lu.assertTrue(tril(S, -1) + triu(S) == S)
    end)
end

function TestBlocks:test_joined()
    each(types, function(A, seed)
        local B = pattern(A.rows, A.cols, types[seed % 4 + 1], seed)
        local S, R = sparse(A), sparse(B)
        same(hcat(S, R), hcat(A, B))
        same(vcat(S, R), vcat(A, B))
        same(S .. R, A .. B)
        same(S .. B, A .. B)
        same(A .. R, A .. B)
        same(hcat(S, R, A, S), hcat(A, B, A, A))
        same(vcat(A, R, S), vcat(A, B, A))
        same(vcat(S, sparse(0, A.cols, {dtype = A.dtype})), A)
        same(hcat(sparse(A.rows, 0, {dtype = A.dtype}), S), A)
    end)
    same(hcat(sparse(eye(2)), vec{0, 3}), hcat(eye(2), vec{0, 3}))
    same(vcat(vec{0, 3}, sparse(eye(2))), vcat(vec{0, 3}, eye(2)))
    same(hcat(eye(2):gt(0), sparse(eye(2))), hcat(eye(2), eye(2)))
    same(hcat(sparse(eye(2))), eye(2))
end

function TestBlocks:test_kronecker_products()
    each(types, function(A, seed)
        local B = pattern(3, 7, types[(seed + 1) % 4 + 1], seed)
        local S, R = sparse(A), sparse(B)
        same(kron(S, R), kron(A, B))
        same(kron(S, B), kron(A, B))
        same(kron(B, S), kron(B, A))
        same(R:kron(S), kron(B, A))
    end)
    lu.assertEquals(kron(speye(3), sparse(2, 2)).nnz, 0)
    equals(kron(sparse(mat{{0, 2}}), mat{{nan}}):full(), {{0, nan}})
end

function TestBlocks:test_other_shapes()
    each(types, function(A)
        local S, n = sparse(A), A.rows * A.cols
        for rows = 1, n do
            if n % rows == 0 then
                same(S:reshape(rows, n // rows), A:reshape(rows, n // rows))
            end
        end
    end)
    lu.assertEquals(sparse(0, 5):reshape(3, 0).shape, {3, 0})
    lu.assertEquals(sparse(5, 0):reshape(0, 7).shape, {0, 7})
end

function TestBlocks:test_refusals()
    local S = sparse(eye(3))
    raises(function() return hcat(S, eye(2)) end,
        "hcat: numbers of rows differ (3 and 2)", "S is 3x3")
    raises(function() return vcat(eye(2), S) end,
        "vcat: numbers of columns differ (2 and 3)")
    raises(function() return hcat(S, vec{1, 2}) end, "(3 and 2)")
    raises(function() return S .. 1 end,
        "..: cannot join a sparse matrix and a number")
    raises(function() return hcat(S, 1) end, "hcat: ", "is 1")
    raises(function() return kron(S, vec{1}) end, "kron: B is a vector")
    raises(function() return S:reshape(9) end,
        "reshape: n is missing: there are no sparse vectors")
    raises(function() return S:reshape(2, 3) end,
        "reshape: 3x3 has 9 elements, 2x3 has 6")
    raises(function() return kron(speye(50000), speye(50000)) end,
        "kron: 2500000000x2500000000: a size of a sparse matrix must be below")
    local D = sparse(ones(700, 100))
    raises(function() return kron(D, D) end,
        "kron: the result has 4900000000 entries: there must be fewer than")
    raises(function() return tril(S, 0.5) end, "tril: k is 0.5")
end

TestKeys = {}

function TestKeys:test_rows_and_columns()
    each(types, function(A)
        local S = sparse(A)
        for _, i in ipairs{1, -1, (A.rows + 1) // 2} do
            lu.assertTrue(S[i] == A[i])
            lu.assertEquals(S[i].dtype, A.dtype)
            lu.assertEquals(S[i].shape, A[i].shape)
            lu.assertTrue(S[{i, {}}] == A[{i, {}}])
            lu.assertTrue(S[{i, {A.cols, 1, -1}}] == A[{i, {A.cols, 1, -1}}])
            lu.assertTrue(S[{i, vec{1, A.cols}}] == A[{i, vec{1, A.cols}}])
        end
        for _, j in ipairs{1, -1, (A.cols + 1) // 2} do
            lu.assertTrue(S[{{}, j}] == A[{{}, j}])
            lu.assertTrue(S[{{1, A.rows}, j}] == A[{{1, A.rows}, j}])
        end
    end)
    lu.assertTrue(sparse(eye(3))["2,:"] == eye(3)["2,:"])
end

-- A mask of S, which is S's entries above x, and the same of A.
local function masks(A, S, x)
    if A.dtype:sub(1, 1) == "c" then return real(A):gt(x), real(S):gt(x) end
    return A:gt(x), S:gt(x)
end

-- So many entries that all cores work at them, against the same of the dense
-- matrix: lists that fall, rise and repeat, runs and masks, on either side.
function TestKeys:test_large_blocks()
    seed(8)
    local m, n = 900, 500
    local A = randint(-9, 9, m, n, {dtype = "f64"})
    A = A % rand(m, n):lt(0.3):f64()
    local function sides(size)
        local function list(count) return randint(1, size, count, {dtype = "f64"}) end
        return {{}, {size // 3, size - 7}, {size, 1, -2}, list(size + 300),
            sort(list(size // 2)), randperm(size), sort(randperm(size)[{{1, size // 3}}]),
            rand(size):lt(0.5), vec{size}}
    end
    for _, dtype in ipairs{"f32", "f64", "c128"} do
        local D = A[dtype](A)
        local S = sparse(D)
        for r, rows in ipairs(sides(m)) do
            for c, cols in ipairs(sides(n)) do
                local got, want = S[{rows, cols}], D[{rows, cols}]
                local what = table.concat({dtype, r, c}, " ")
                lu.assertEquals(got.shape, want.shape, what)
                lu.assertTrue(full(got) == want, what)
                lu.assertEquals(got.nnz, sparse(want).nnz, what)
            end
        end
    end
end

function TestKeys:test_masks_read()
    each(types, function(A, seed)
        local S = sparse(A)
        local D, M = masks(A, S, 1)
        lu.assertTrue(S[M] == A[D])
        lu.assertEquals(S[M].dtype, A.dtype)
        lu.assertTrue(S[S:ne(0)] == A[A:ne(0)])
        lu.assertTrue(S[D] == A[D])
        -- Where S has nothing it is 0.
        local other = pattern(A.rows, A.cols, "f64", seed)
        lu.assertTrue(S[sparse(other):ne(0)] == A[other:ne(0)])
    end)
    lu.assertEquals(sparse(eye(3))[sparse(3, 3)].rows, 0)
end

function TestKeys:test_masks_written()
    each(types, function(A, seed)
        local other = pattern(A.rows, A.cols, "f32", seed)
        for _, x in ipairs{0, 5} do
            local S, B = sparse(A), A:clone()
            local D, M = masks(A, S, 1)
            S[M], B[D] = x, x
            lu.assertTrue(full(S) == B)
            lu.assertEquals(S.nnz, (B:ne(0)):f64():sum())
            S, B = sparse(A), A:clone()
            S[sparse(other):ne(0)], B[other:ne(0)] = x, x
            same(S, B)
        end
        local S, B = sparse(A), A:clone()
        local values = whole(1, math.tointeger(other:ne(0):f64():sum()), "f32",
            seed)[1]
        S[sparse(other):ne(0)], B[other:ne(0)] = values, values
        same(S, B)
        S, B = sparse(A), A:clone()
        S[other:ne(0)], B[other:ne(0)] = values, values
        same(S, B)
    end)
end

function TestKeys:test_a_mask_is_of_ones()
    local S = sparse(mat{{0, 5}, {7, 0}})
    equals(S[sparse({1, 2}, {2, 1}, {0, 1}, 2, 2)], {7})
    S[S:gt(6)] = {9}
    equals(full(S), {{0, 5}, {9, 0}})
    S[S:ne(0)] = nan
    equals(full(S), {{0, nan}, {nan, 0}})
    S[S:ne(0)] = inf
    equals(S[2], {inf, 0})
    local Z = sparse(mat{{0, 5}, {7, 0}}):c64()
    Z[Z:ne(0)] = complex(1, 2)
    lu.assertEquals(Z(1, 2), complex(1, 2))
end

function TestKeys:test_transpose_of_before_stays()
    local S = sparse(mat{{0, 5}, {7, 0}})
    local T = S.T
    S[S:gt(6)] = 0
    equals(full(T), {{0, 7}, {5, 0}})
    equals(full(S.T), {{0, 0}, {5, 0}})
end

-- What is only planned reads no element, and has the right sizes.
function TestKeys:test_planned()
    local S = sparse(eye(30))
    cost(function()
        local R = S * 1
        R[R:gt(1)] = 0
        R[R:ne(0)] = S[S:gt(0)]
        lu.assertEquals(hcat(S, S).shape, {30, 60})
        lu.assertEquals(kron(S, S).shape, {900, 900})
        lu.assertEquals(S:reshape(10, 90).shape, {10, 90})
        lu.assertEquals(sum(S, 1, {nan = "skip"}).shape, {1, 30})
        lu.assertEquals(norm(S, {axis = 2}).shape, {30, 1})
        lu.assertEquals(S[{{}, 2}].rows, 30)
        return tril(R), diag(S, 3), S[2], var(S, 1), sum(S) + max(S) + trace(S)
    end)
    equals(full(S), full(speye(30)):totable())
end

function TestKeys:test_refusals()
    local S, M = sparse(mat{{0, 5}, {7, 0}}), sparse(eye(3))
    raises(function() return S[S] end, "index: a sparse mask has ones where it " ..
        "is true, S has other values: S:ne(0) is where it is not 0")
    raises(function() S[S] = 1 end, "S:ne(0) is where it is not 0")
    raises(function() return S[M] end, "index: shapes differ (2x2, mask 3x3)")
    raises(function() S[M] = 0 end, "assignment: shapes differ (2x2, mask 3x3)")
    raises(function() S[S:ne(0)] = {1, 2, 3} end,
        "assignment: the mask chooses 2 elements, the vector has 3")
    raises(function() S[S:ne(0)] = eye(2) end, "assignment: what a mask " ..
        "chooses gets a number, or a vector of 2, not a matrix")
    raises(function() S[S:ne(0)] = "x" end, "not a string")
    raises(function() S[S:ne(0)] = complex(1, 2) end,
        "assignment: complex values do not fit f32: make it complex first")
    raises(function() return S[M:c64()] end, "other values")
    raises(function() return eye(3)[M] end, "index: a sparse mask chooses " ..
        "elements of a sparse matrix: of a dense one write full(M):ne(0)")
    M:free()
    raises(function() return S[M] end, "index: the mask has been freed")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
