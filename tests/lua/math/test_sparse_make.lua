-- Sparse matrices made otherwise than of triplets: empty, unit, banded and random
-- ones; and taken apart.
local lu = require "luaunit"
local t = require "common"
local equals, raises, inf, nan = t.equals, t.raises, t.inf, t.nan
local types = t.sparse_types

TestMaking = {}

function TestMaking:test_without_entries()
    for _, dtype in ipairs(types) do
        local S = sparse(2, 3, {dtype = dtype})
        lu.assertEquals({S.nnz, S.rows, S.cols, S.dtype}, {0, 2, 3, dtype})
        lu.assertTrue(full(S) == zeros(2, 3, {dtype = dtype}))
    end
    lu.assertEquals(sparse(0, 3).shape, {0, 3})
    raises(function() sparse(2, 2147483648) end, "below 2147483648")
    raises(function() sparse(2, 3, {dtype = "bool"}) end, "not bool")
end

function TestMaking:test_speye()
    for _, s in ipairs{{3, 3}, {2, 5}, {5, 2}, {0, 3}, {1, 1}} do
        local S = speye(s[1], s[2], {dtype = "f64"})
        lu.assertTrue(full(S) == eye(s[1], s[2], {dtype = "f64"}))
        lu.assertEquals(S.nnz, math.min(s[1], s[2]))
    end
    lu.assertEquals({speye(4).nnz, speye(4).dtype}, {4, "f32"})
    lu.assertEquals(speye(4, {dtype = "c64"}).dtype, "c64")
    lu.assertEquals(speye(0).shape, {0, 0})
    -- Beyond what f32 counts.
    local S = speye(16777219)
    lu.assertEquals({S.nnz, S(16777219, 16777219), S(16777218, 16777217)},
        {16777219, 1, 0})
end

-- The element of the matrix that spdiags makes.
local function of_diagonals(D, offsets, i, j)
    for k, d in ipairs(offsets) do
        if d == j - i then return D(D.rows > 1 and j or 1, k) end
    end
    return 0
end

-- Diagonals in any order, that reach outside, of one number each or of a column,
-- with zeros and without.
function TestMaking:test_spdiags_of_any_shape()
    for k = 1, 60 do
        local m, n, count = 1 + k % 7, 1 + k % 5, 1 + k % 4
        local order, offsets = randperm(15, {seed = k}), {}
        for q = 1, count do offsets[q] = order(q) - 8 end
        local D = randint(k % 3 == 0 and 1 or -1, 2, k % 2 == 0 and n or 1, count,
            {seed = k})
        D = k % 5 == 0 and complex(D, D) or D
        D = k % 4 == 1 and D.T:clone().T or D
        local A = zeros(m, n, {dtype = D.dtype})
        for i = 1, m do
            for q = 1, count do
                local j = i + offsets[q]
                if j >= 1 and j <= n then
                    A[{i, j}] = D(D.rows > 1 and j or 1, q)
                end
            end
        end
        local S = spdiags(D, offsets, m, n)
        lu.assertTrue(full(S) == A)
        lu.assertEquals(S.nnz, A:ne(0):sum())
    end
end

function TestMaking:test_spdiags()
    local seed = 0
    for m = 0, 5 do
        for n = 0, 5 do
            for _, offsets in ipairs{{0}, {-1, 1}, {2, 0, -3}, {7, -9}, {-1, 1, 4}} do
                seed = seed + 1
                local D = randint(0, 3, n > 1 and n or 2, #offsets,
                    {seed = seed, dtype = "f64"})
                local S = spdiags(D, offsets, m, n)
                lu.assertEquals({S.rows, S.cols, S.dtype}, {m, n, "f64"})
                for i = 1, m do
                    for j = 1, n do
                        lu.assertEquals(S(i, j), of_diagonals(D, offsets, i, j))
                    end
                end
                lu.assertEquals(S.nnz, S:prune().nnz)
            end
        end
    end
end

function TestMaking:test_forms_of_diagonals()
    local expected = {{2, -1, 0}, {-1, 2, -1}, {0, -1, 2}}
    equals(full(spdiags({-1, 2, -1}, {-1, 0, 1}, 3, 3)), expected)
    equals(full(spdiags(vec{-1, 2, -1}, vec{-1, 0, 1}, 3, 3)), expected)
    equals(full(spdiags(mat{{-1, 2, -1}}, {-1, 0, 1}, 3, 3)), expected)
    equals(full(spdiags({{1, 4}, {2, 5}}, {0, 1}, 2, 2)), {{1, 5}, {0, 2}})
    equals(full(spdiags({7}, 0, 2, 2)), {{7, 0}, {0, 7}})
    equals(full(spdiags(vec{1, 2, 3}, 1, 2, 3)), {{0, 2, 0}, {0, 0, 3}})
    equals(full(spdiags(vec{1, 2, 3}, -1, 3, 2)), {{0, 0}, {1, 0}, {0, 2}})
    lu.assertEquals(spdiags({1, 2}, {0, 1}, 3, 3, {dtype = "c128"}).dtype, "c128")
    local S = spdiags(complex(vec{1, 2}, vec{3, 4}), 0, 2, 2)
    lu.assertTrue(S(2, 2) == 2 + 4 * im)
    raises(function() spdiags({1, 2}, {0, 0}, 3, 3) end,
        "spdiags: offsets 1 and 2 are both 0")
    raises(function() spdiags({1, 2}, {0, 1.5}, 3, 3) end,
        "spdiags: offset 2 is 1.5, expected a whole number")
    raises(function() spdiags({1, 2, 3}, {0, 1}, 3, 3) end,
        "spdiags: there are 2 offsets, and 1x3 has 3 diagonals, one a column")
    raises(function() spdiags(vec{1, 2}, 0, 3, 3) end,
        "spdiags: diagonal 0 reaches column 3, `diagonals` has 2 rows")
    raises(function() spdiags({1}, eye(2), 3, 3) end,
        "spdiags: offsets is a matrix, expected a vector")
end

TestRandom = {}

function TestRandom:test_as_many_entries_as_asked_for()
    for _, make in ipairs{sprand, sprandn} do
        for _, c in ipairs{{1, 1, 1}, {1, 1, 0}, {0, 5, 1}, {10, 20, 0.1},
            {10, 20, 0.5}, {10, 20, 0.73}, {10, 20, 1}, {1000000, 1000000, 1e-9}} do
            local S = make(c[1], c[2], c[3], {seed = 3})
            lu.assertEquals({S.rows, S.cols, S.nnz},
                {c[1], c[2], math.floor(c[1] * c[2] * c[3] + 0.5)})
            lu.assertEquals(S:prune().nnz, S.nnz)
        end
    end
end

function TestRandom:test_the_stream()
    lu.assertTrue(sprand(30, 20, 0.2, {seed = 1}) == sprand(30, 20, 0.2, {seed = 1}))
    lu.assertFalse(sprand(30, 20, 0.2, {seed = 1}) == sprand(30, 20, 0.2, {seed = 2}))
    seed(5)
    local A, B = sprandn(30, 20, 0.2), sprandn(30, 20, 0.2)
    seed(5)
    lu.assertTrue(sprandn(30, 20, 0.2) == A)
    lu.assertTrue(sprandn(30, 20, 0.2) == B)
    lu.assertFalse(A == B)
end

function TestRandom:test_every_place_is_as_likely()
    for _, density in ipairs{0.3, 0.7} do
        local hits = zeros(4, 6, {dtype = "f64"})
        for k = 1, 500 do
            hits = hits + full(sprand(4, 6, density, {seed = k}):ne(0)):f64()
        end
        -- Five standard deviations.
        local far = 5 * math.sqrt(500 * density * (1 - density))
        lu.assertTrue(max(abs(hits - 500 * density)) < far)
    end
end

function TestRandom:test_values()
    local _, _, u = sprand(1000, 1000, 0.1, {seed = 1, dtype = "f64"}):triplets()
    lu.assertTrue(min(u) > 0 and max(u) <= 1)
    lu.assertAlmostEquals(mean(u), 0.5, 0.01)
    local _, _, g = sprandn(1000, 1000, 0.1, {seed = 1, dtype = "f64"}):triplets()
    lu.assertAlmostEquals(mean(g), 0, 0.02)
    lu.assertAlmostEquals(std(g), 1, 0.02)
end

function TestRandom:test_errors()
    raises(function() sprand(3, 3, 1.5) end, "sprand: density is 1.5: expected 0 to 1")
    raises(function() sprandn(3, 3, nan) end, "sprandn: density is NaN")
    raises(function() sprand(3, 3, 1, {dtype = "bool"}) end,
        "sprand: results are f32 or f64, not bool")
    raises(function() sprand(1000000, 1000000, 0.1) end,
        "sprand: there would be ", "fewer than 2147483648")
end

TestParts = {}

function TestParts:test_triplets_make_the_matrix_again()
    for k, dtype in ipairs(types) do
        local S = sprandn(40, 30, 0.1, {seed = k, dtype = "f64"})
        if dtype ~= "f64" then S = S[dtype](S) end
        local i, j, v = S:triplets()
        lu.assertEquals({i.dtype, j.dtype, v.dtype}, {"f64", "f64", dtype})
        lu.assertTrue(sparse(i, j, v, 40, 30) == S)
        local places = (i - 1) * 30 + j
        lu.assertTrue(all(diff(places):gt(0)))
    end
    local i, j, v = sparse(3, 4):triplets()
    lu.assertEquals({#i, #j, #v}, {0, 0, 0})
    -- The vectors are others than the matrix's own.
    local S = sparse({1, 2}, {1, 2}, {3, 4})
    local _, _, w = triplets(S)
    w[1] = 9
    lu.assertEquals(S(1, 1), 3)
end

function TestParts:test_prune()
    local S = sparse({1, 1, 2, 2, 3}, {1, 2, 1, 3, 3}, {0, -0.5, 2, nan, -3}, 3, 3)
    lu.assertEquals(S.nnz, 5)
    equals(full(S:prune()), {{0, -0.5, 0}, {2, 0, nan}, {0, 0, -3}})
    lu.assertEquals({S:prune().nnz, S:prune(0.5).nnz, S:prune(2).nnz,
        prune(S, inf).nnz}, {4, 3, 2, 1})
    equals(full(S:prune(2)), {{0, 0, 0}, {0, 0, nan}, {0, 0, -3}})
    for _, dtype in ipairs{"c64", "c128"} do
        local C = sparse({1, 2}, {1, 2}, {3 + 4 * im, 3}, {dtype = dtype})
        lu.assertEquals({C:prune(4.9).nnz, C:prune(5).nnz, C:prune(4.9).dtype},
            {1, 0, dtype})
    end
    raises(function() S:prune(-1) end, "prune: tolerance is -1.0: expected 0 or more")
    raises(function() S:prune(nan) end, "prune: tolerance is")
    raises(function() prune(eye(2)) end, "expected a sparse matrix")
end

function TestParts:test_nonzeros()
    equals(nonzeros(mat{{1, 0}, {nan, 5}}), {1, nan, 5})
    equals(sparse({2, 1, 1}, {1, 2, 1}, {7, 5, 0}):nonzeros(), {5, 7})
    lu.assertEquals(#sparse(2, 2):nonzeros(), 0)
end

TestAssignment = {}

-- A random choice of a side of n places, as a key, and how many; a single index
-- where it may be one.
local function choose(k, n, may_be_one)
    local kind = k % (may_be_one and 5 or 4)
    local low = randint(1, n, 1, {seed = k})(1) // 1 | 0
    local high = randint(low, n, 1, {seed = k + 1})(1) // 1 | 0
    if kind == 0 then return {}, n end
    if kind == 1 then return {low, high}, high - low + 1 end
    if kind == 2 then return {high, low, -1}, high - low + 1 end
    if kind == 3 then return randint(1, n, 5, {seed = k + 2}), 5 end
    return low, nil
end

-- Assigns X to both, dense as it is, and sparse.
local function check(S, D, key, X, seed)
    local before = S.T
    local was = full(before)
    D[key] = X
    if seed % 2 == 0 and type(X) == "userdata" and X.ndim == 2 then X = sparse(X) end
    S[key] = X
    lu.assertTrue(full(S) == D)
    lu.assertTrue(full(S.T) == D.T)
    lu.assertTrue(full(before) == was)
    -- What is inside is in order.
    local i, j, v = S:triplets()
    lu.assertTrue(all(diff((i - 1) * S.cols + j):gt(0)))
    lu.assertTrue(sparse(i, j, v, S.rows, S.cols) == S)
end

function TestAssignment:test_is_that_of_a_dense_matrix()
    for k = 1, 240 do
        local dtype = types[k % 4 + 1]
        local m, n = k % 7 + 1, k % 11 + 1
        local S = sprandn(m, n, 0.4, {seed = k})
        S = S[dtype](S)
        local rows, height = choose(7 * k, m, true)
        local cols, width = choose(5 * k + 1, n, height ~= nil)
        local X
        if k % 6 == 0 then
            X = k % 4
        elseif height and width then
            X = full(sprand(height, width, 0.5, {seed = k}))
        else
            X = randint(0, 2, height or width, {seed = k})
        end
        check(S, full(S), {rows, cols}, X, k)
    end
end

function TestAssignment:test_forms_of_keys()
    local S, D = sparse(3, 4), zeros(3, 4)
    for k, c in ipairs{
        {{1, 2}, 5}, {{-1, -1}, 6}, {{1, 2}, 0}, {{2, 2}, true}, {2, vec{1, 0, 3, 4}},
        {{{}, 3}, {7, 8, 9}}, {"1:2,2:3", mat{{0, 1}, {2, 0}}}, {"3,:", 4},
        {"end,1", 0}, {vec{3, 1}, mat{{1, 2, 3, 4}, {5, 6, 7, 8}}},
        {vec{1, 0, 1}:gt(0), 2}, {{vec{1, 1}, vec{4, 4}}, mat{{1, 2}, {3, 0}}},
        {{{}, {}}, mat{{1, 0, 0, 2}}}, {{{}, {}}, mat{{1}, {0}, {3}}}, {{{}, {}}, 0},
        {{2, 3}, nan}} do
        D[c[1]] = c[2]
        S[c[1]] = c[2]
        t.equals(full(S), D:totable(), k)
    end
    lu.assertEquals(S.nnz, 1)
end

function TestAssignment:test_types()
    local S = sparse({1, 2}, {1, 2}, {3, 4})
    S[{1, 2}] = vec({1 / 3}, {dtype = "f64"})(1)
    lu.assertEquals({S.dtype, S(1, 2)}, {"f32", vec{1 / 3}(1)})
    S[{1, 2}] = 1e-60 -- 0 in f32
    lu.assertEquals(S.nnz, 2)
    local C = S:c64()
    C[{2, 1}] = 2 * im
    lu.assertTrue(C(2, 1) == 2 * im)
    C[{{}, {}}] = S
    lu.assertTrue(C == S:c64())
    lu.assertEquals(S.nnz, 2)
    local no = "assignment: complex values do not fit f32: make it complex first, " ..
        "S = S:c64()"
    raises(function() S[{1, 1}] = 2 * im end, no)
    raises(function() S[{{}, {}}] = C end, no)
    raises(function() S[1] = complex(vec{1, 2}, vec{3, 4}) end, no)
    lu.assertEquals(S(1, 1), 3)
end

function TestAssignment:test_rows_and_columns_may_be_sparse()
    local S = sparse(3, 4)
    S[2] = sparse({1}, {3}, 5, 1, 4)
    S[{{}, 1}] = sparse({1}, {3}, 6, 1, 3)
    S[{{}, 4}] = sparse({2}, {1}, 7, 3, 1)
    equals(full(S), {{0, 0, 0, 0}, {0, 0, 5, 7}, {6, 0, 0, 0}})
    S[{{}, {}}] = S
    S[{{1, 2}, {}}] = S[vec{3, 2}]
    equals(full(S), {{6, 0, 0, 0}, {0, 0, 5, 7}, {6, 0, 0, 0}})
end

function TestAssignment:test_errors()
    local S = sparse({1, 2}, {1, 2}, {3, 4}, 2, 3)
    raises(function() S[{3, 1}] = 1 end, "row 3 is outside 1..2 (S is 2x3)")
    raises(function() S[{1, 1}] = vec{1} end, "assignment: an element is a number")
    raises(function() S[1] = vec{1, 2} end,
        "assignment: vector 2 does not fit into vector 3")
    raises(function() S[{{}, {}}] = eye(2) end, "assignment: 2x2 does not fit into 2x3")
    raises(function() S[{{}, {}}] = sparse(eye(2)) end,
        "assignment: 2x2 does not fit into 2x3")
    raises(function() S[{{}, {}}] = "x" end,
        "assignment: cannot put a string into a sparse matrix")
    raises(function() S.rows = 2 end, "assignment: 'rows' cannot be assigned")
    raises(function() S[true] = 2 end, "boolean")
    raises(function() S[ones(3, 2):gt(0)] = 1 end,
        "assignment: shapes differ (2x3, mask 3x2)")
    equals(full(S), {{3, 0, 0}, {0, 4, 0}})
    S:free()
    raises(function() S[{1, 1}] = 1 end, "the sparse matrix has been freed")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
