-- Systems whose matrix is sparse: by what it is, by its factors, and what is
-- refused; beside what full(S) gives.
local factor = lu -- the library's
local lu = require "luaunit"
local t = require "common"

-- That a call is refused with that text.
local function raises(text, f, ...)
    local given = table.pack(...)
    t.raises(function() return f(table.unpack(given, 1, given.n)) end, text)
end

local here = zeros(1).device
local f64, nan = {dtype = "f64"}, t.nan

local types = t.sparse_types
local tolerance = {f32 = 2e-5, f64 = 1e-12, c64 = 2e-5, c128 = 1e-12}

-- m x n random numbers of a type.
local function random(m, n, dtype, seed)
    local part = {f32 = "f32", c64 = "f32"}
    local how = {dtype = part[dtype] or "f64", seed = seed}
    local A = rand(m, n, how) - 0.5
    if dtype == "f32" or dtype == "f64" then return A end
    how.seed = seed + 1
    return complex(A, rand(m, n, how) - 0.5)
end

-- A sparse one of which about that share is there, with `more` on the diagonal.
local function matrix(m, n, dtype, seed, more, share)
    local places = rand(m, n, {seed = seed + 2}):lt(share or 0.2)
    local A = random(m, n, dtype, seed) % places
    return sparse(A + (more or 0) * eye(m, n, {dtype = dtype}))
end

local function near(x, y, dtype)
    lu.assertEquals({x.rows, x.cols, x.ndim, x.dtype, x.device},
        {y.rows, y.cols, y.ndim, dtype, here})
    local off = norm(x - y) / (1 + norm(y))
    lu.assertTrue(off <= tolerance[dtype], off)
end

-- What S is found to be, and that its solutions are those of full(S).
local function check(S, kind, seed)
    for _, b in ipairs{random(S.rows, 1, S.dtype, seed):flatten(),
        random(S.rows, 3, S.dtype, seed + 5)} do
        local x, told = solve(S, b, {info = true})
        near(x, solve(full(S), b), S.dtype)
        near(solve(S, b), x, S.dtype)
        lu.assertEquals(told.kind, kind)
        if kind == "rectangular" then
            local off = norm(full(S) * x - b)
            lu.assertTrue(norm(told.residual) - off <= tolerance[S.dtype] * 10)
        else
            lu.assertTrue(told.error < 10 * tolerance[S.dtype], told.error)
            local exact = rcond(full(S))
            lu.assertTrue(told.rcond < 3.1 * exact and told.rcond > 0.3 * exact,
                told.rcond)
        end
    end
end

TestSolving = {}

function TestSolving:test_by_what_it_is()
    for k, dtype in ipairs(types) do
        for _, n in ipairs{1, 2, 7, 60} do
            local S = matrix(n, n, dtype, 10 * n + k, 3)
            local A = full(S)
            check(sparse(diag(diag(A))), "diagonal", k)
            if n > 2 then
                check(sparse(tril(A) + 1e-3 * tril(A * A)), "lower", k)
                check(sparse(triu(A) + 1e-3 * triu(A * A)), "upper", k)
                check(sparse(A + 1e-3 * A * A), "general", k)
                local H = A * A.H -- whose halves may differ by a rounding
                check(sparse(H + H.H), "positive", k)
            end
        end
    end
end

function TestSolving:test_symmetric_that_is_not_positive_definite()
    local S = sparse({1, 2, 1, 2}, {1, 2, 2, 1}, {1, -1, 2, 2},
        {dtype = "f64"})
    local x, told = solve(S, vec{1, 2}, {info = true})
    near(x, solve(full(S), vec{1, 2}), "f64")
    lu.assertEquals(told.kind, "general")
    raises("solve: the matrix is not positive definite; lu(S) takes any square " ..
        "one that is not singular", solve, S, vec{1, 2}, {kind = "positive"})
end

function TestSolving:test_least_squares_and_shortest()
    for k, dtype in ipairs(types) do
        check(matrix(30, 12, dtype, k, 2), "rectangular", k)
        check(matrix(12, 30, dtype, k, 2), "rectangular", k)
        local S, b = matrix(9, 9, dtype, k, 3), random(9, 2, dtype, k)
        near(solve(S, b, {kind = "rectangular"}), solve(S, b), dtype)
    end
end

function TestSolving:test_types_of_the_right_side()
    local S, Z = matrix(8, 8, "f64", 1, 3), matrix(8, 8, "c64", 1, 3)
    local b, z = random(8, 2, "f64", 3), random(8, 2, "c128", 3)
    near(solve(S, z), solve(full(S), z), "c128")
    near(solve(Z, b), solve(full(Z):c128(), b), "c128")
    near(solve(S:f32(), b), solve(full(S:f32()):f64(), b), "f64")
    near(solve(S, b.T:clone().T), solve(S, b), "f64")
    near(solve(Z, conj(z)), solve(full(Z):c128(), conj(z)), "c128")
end

function TestSolving:test_nothing_to_solve()
    local S = matrix(3, 3, "f64", 1, 3)
    lu.assertEquals(solve(S, zeros(3, 0)).shape, {3, 0})
    lu.assertEquals(solve(sparse(zeros(0, 0)), zeros(0, 2)).shape, {0, 2})
    lu.assertEquals(solve(sparse(zeros(0, 0)), zeros(0)).shape, {0})
    lu.assertEquals(factor(sparse(zeros(0, 0))):solve(zeros(0)).shape, {0})
end

function TestSolving:test_what_is_singular()
    local b = vec{1, 2}
    raises("solve: the matrix is singular (element 2 is zero)", solve,
        sparse({1}, {1}, 1, 2, 2), b)
    raises("solve: the matrix is singular (pivot 1 is zero)", solve,
        sparse({1, 2}, {2, 2}, 1, 2, 2), b)
    raises("solve: the matrix is singular (1 pivot of its factors is zero)",
        solve, sparse(ones(2, 2)), b)
    raises("solve: the entry in row 2, column 1 is not finite; a " ..
        "factorisation needs finite numbers", solve,
        sparse({1, 2, 1, 2}, {1, 1, 2, 2}, {1, 0 / 0, 2, 3}), b)
end

function TestSolving:test_a_poor_matrix_is_told_of()
    local S = sparse(mat({{1, 1}, {1, 1 + 4e-16}}, {dtype = "f64"}))
    local path = t.scratch(".lua")
    t.write(path, "solve(sparse(eye(80) - 2 * diag(ones(79), 1)), ones(80))")
    local pipe = assert(io.popen(("'%s' --no-init --device=%s '%s' 2>&1")
        :format(os.getenv("LUMAT"), t.device, path)))
    lu.assertStrContains(pipe:read("a"), ":1: solve: the matrix is nearly " ..
        "singular")
    pipe:close()
    os.remove(path)
end

function TestSolving:test_what_is_refused()
    local S, b = matrix(3, 3, "f32", 1, 3), vec{1, 2, 3}
    raises("solve: the matrix has 3 rows, the right side is vector 2", solve, S,
        vec{1, 2})
    raises("solve: kind is \"lower\", but S has entries above the diagonal",
        solve, sparse({1, 2, 1, 3}, {1, 2, 2, 3}, 1), b, {kind = "lower"})
    raises("solve: kind \"symmetric\" is of dense matrices; a sparse one is " ..
        "diagonal, lower, upper, banded, positive, general or rectangular",
        solve, S, b, {kind = "symmetric"})
    raises("solve: method is of dense matrices; leave it out, or write full(S)",
        solve, S, b, {method = "direct"})
    raises("solve: kind is \"general\", which only a square matrix can be, " ..
        "not 3x2", solve, sparse(ones(3, 2)), b, {kind = "general"})
    raises("solve: b is a sparse matrix; write full(b)", solve, S,
        sparse(b:col()))
end

-- A random one with diagonals -below .. above, mostly not symmetric.
local function banded(n, below, above, dtype, seed, more)
    local D = random(n, below + above + 1, dtype, seed)
    local places = {}
    for k = -below, above do places[#places + 1] = k end
    return spdiags(D, places, n, n, {dtype = dtype}) +
        (more or 0) * speye(n, {dtype = dtype})
end

function TestSolving:test_bands()
    for k, dtype in ipairs(types) do
        for _, s in ipairs{{17, 1, 1}, {40, 1, 2}, {90, 7, 1}, {200, 3, 12}} do
            check(banded(s[1], s[2], s[3], dtype, k, 3), "banded", k)
        end
        local S = banded(70, 2, 2, dtype, k, 1)
        check(S + S.H + 20 * speye(70, {dtype = dtype}), "banded", k)
        check(S + S.H, "banded", k) -- not positive definite
    end
    -- Told to be one, whatever is in the band.
    local S, b = matrix(9, 9, "f64", 4, 3), random(9, 2, "f64", 5)
    near(solve(S, b, {kind = "banded"}), solve(full(S), b), "f64")
    -- Few entries in a wide band are general ones.
    local wide = 9 * speye(80, f64) + sparse({1, 9}, {9, 1}, 1, 80, 80, f64)
    local _, told = solve(wide, ones(80, f64), {info = true})
    lu.assertEquals(told.kind, "positive")
    raises("solve: the matrix is singular (1 pivot of its factors is zero)",
        solve, spdiags(mat{{0, 1, 1}}, {-1, 0, 1}, 30, 30) -
        sparse({30}, {30}, 1, 30, 30), ones(30), {kind = "banded"})
end

-- Of less than full rank the shortest, as of the dense one; that there are
-- others is told.
function TestSolving:test_less_than_full_rank()
    for k, dtype in ipairs(types) do
        for i, s in ipairs{{30, 12, 7}, {12, 30, 5}, {9, 9, 4}, {6, 5, 1},
            {40, 3, 0}, {3, 40, 0}} do
            local m, n, r = s[1], s[2], s[3]
            local S = matrix(m, r, dtype, 7 * i + k, 0, 0.6) *
                matrix(r, n, dtype, 9 * i + k, 0, 0.6)
            local A = full(S)
            for _, b in ipairs{random(m, 2, dtype, i),
                random(m, 1, dtype, k):flatten()} do
                local x, told = solve(S, b, {kind = "rectangular", info = true})
                local y, dense = lstsq(A, b, {info = true})
                near(x, y, dtype)
                near(qr(S):solve(b), y, dtype)
                lu.assertEquals(told.rank, dense.rank)
                lu.assertEquals(qr(S).rank, dense.rank)
            end
        end
    end
    local path = t.scratch(".lua")
    t.write(path, "solve(sparse(ones(3, 2)), vec{1, 2, 3})\n" ..
        "x = solve(sparse(ones(2, 3)), vec{1, 2}, {info = true})\nqr(sparse(ones(2, 2)))")
    local pipe = assert(io.popen(("'%s' --no-init --device=%s '%s' 2>&1")
        :format(os.getenv("LUMAT"), t.device, path)))
    local said = pipe:read("a")
    pipe:close()
    os.remove(path)
    lu.assertStrContains(said, ":1: solve: the columns depend on each other " ..
        "(rank 1 of 2): of all solutions the shortest is given")
    lu.assertStrContains(said, ":3: qr: the columns depend on each other")
    lu.assertNotStrContains(said, ":2:")
end

TestFactors = {}

function TestFactors:test_solve_again_and_again()
    for k, dtype in ipairs(types) do
        local S = matrix(40, 40, dtype, k, 4)
        local F, C, Q = factor(S), chol(S * S.H), S:qr()
        for i = 1, 3 do
            local b = random(40, i, dtype, i)
            near(F:solve(b), solve(full(S), b), dtype)
            near(Q:solve(b), solve(full(S), b), dtype)
            near(C:solve(b), chol(full(S * S.H)):solve(b), dtype)
        end
        lu.assertAlmostEquals(F:rcond() / rcond(full(S)), 1, 0.7)
        lu.assertTrue(F.nnz >= 80 and C.nnz >= 40)
    end
end

function TestFactors:test_what_they_say()
    local S = sparse({1, 2, 2}, {1, 2, 1}, {2, 4, 1}, {dtype = "f64"})
    lu.assertEquals(tostring(factor(S)), "sparse lu of 2x2 f64, nnz 3, rcond 0.4")
    lu.assertEquals(tostring(chol(S * S.T)),
        "sparse chol of 2x2 f64, nnz 3, rcond 0.18")
    lu.assertEquals(tostring(qr(S)), "sparse qr of 2x2 f64, nnz 3, rank 2")
    raises("sparse lu: there is no 'L' of it: it has F.nnz, and the methods " ..
        "rcond solve unpack", function() return factor(S).L end)
end

function TestFactors:test_what_they_refuse()
    local S = sparse({1, 2, 2}, {1, 2, 1}, {2, 4, 1}, 2, 3, {dtype = "f64"})
    raises("lu: needs a square matrix, not 2x3; qr(S) takes any", factor, S)
    raises("chol: needs a square matrix, not 2x3; qr(S) takes any", chol, S)
    raises("qr: full is of dense matrices; leave it out, or write full(S)", qr,
        S, {full = true})
    local T = sparse({1, 2, 2}, {1, 2, 1}, {2, 4, 1}, {dtype = "f64"})
    raises("chol: the matrix is not symmetric: a row of S - S.T adds up to 1; " ..
        "0.5 * (S + S.T) is", chol, T)
    raises("solve: the matrix is singular (1 pivot of its factors is zero)",
        function() return factor(sparse(ones(2, 2))):solve(vec{1, 2}) end)
    lu.assertEquals(factor(sparse(ones(2, 2))):rcond(), 0)
end

-- What they are of may be written to afterwards.
function TestFactors:test_they_keep_what_they_are_of()
    local S = sparse(mat({{4, 1}, {1, 3}}, f64))
    for _, f in ipairs{factor, chol, qr, ilu, ichol} do
        local T = S:clone()
        local F = f(T)
        T[{1, 1}] = 100
        near(F:solve(vec({6, 7}, f64)), vec({1, 2}, f64), "f64")
    end
end

function TestFactors:test_cost_runs_none()
    local S = sparse({1, 1, 2, 2}, {1, 2, 1, 2}, {1, 2, 2, 3})
    local R = sparse(ones(3, 2))
    for _, f in ipairs{
        function() return solve(S, vec{1, 2}) end,
        function() return solve(S, ones(2, 3), {info = true}) end,
        function() return solve(R, ones(3, 3)) end,
        function() return factor(S):solve(vec{1, 2}) end,
        function() return chol(S):solve(ones(2, 3)) end,
        function() return qr(R):solve(ones(3, 1)) end,
        function() return ilu(S).U, ilu(S):solve(vec{1, 2}) end,
        function() return ichol(S):solve(ones(2, 3)) end,
    } do
        lu.assertEquals(type(cost(f)), "table")
    end
end

function TestFactors:test_sessions_keep_them()
    local path, b = t.scratch(".lum"), vec{1, 2}
    local S = sparse(mat{{1, 2}, {2, 5}})
    kept = {factor(S), chol(S), qr(sparse(ones(2, 1))), ilu(S),
        ichol(S, {diagcomp = 0.5})} -- a global of the session
    local expected = {}
    for i, F in ipairs(kept) do expected[i] = F:solve(b) end
    save_session(path, {"kept"})
    kept = nil
    load_session(path)
    for i, F in ipairs(kept) do t.equals(F:solve(b), expected[i]:totable()) end
    kept = nil
    os.remove(path)
end

-- --- incomplete ones ----------------------------------------------------------

TestIncomplete = {}

-- The factors as textbooks have them, of a dense A with the places of S.
local function dense_lu(A, there)
    A = A:clone()
    local n = A.rows
    for i = 2, n do
        for k = 1, i - 1 do
            if there(i, k) then
                A[{i, k}] = A(i, k) / A(k, k)
                for j = k + 1, n do
                    if there(i, j) then A[{i, j}] = A(i, j) - A(i, k) * A(k, j) end
                end
            end
        end
    end
    return tril(A, -1) + eye(n, {dtype = A.dtype}), triu(A)
end

local function dense_chol(A, there)
    local n = A.rows
    local L = zeros(n, n, {dtype = A.dtype})
    for i = 1, n do
        for j = 1, i do
            local sum = A(i, j)
            for k = 1, j - 1 do sum = sum - L(i, k) * conj(L(j, k)) end
            if i == j then
                L[{i, j}] = sqrt(sum)
            elseif there(i, j) then
                L[{i, j}] = sum / L(j, j)
            end
        end
    end
    return L
end

local function places_of(S)
    local T = full(S):ne(0)
    return function(i, j) return T(i, j) end, T
end

function TestIncomplete:test_beside_dense_ones()
    for k, dtype in ipairs(types) do
        for _, n in ipairs{1, 2, 17, 40} do
            local S = matrix(n, n, dtype, 10 * n + k, 5)
            local there, mask = places_of(S)
            local L, U, count = ilu(S):unpack()
            local l, u = dense_lu(full(S), there)
            near(full(L), l, dtype)
            near(full(U), u, dtype)
            lu.assertEquals(count, S.nnz)
            near(full(L * U) % mask, full(S), dtype)
            local H = S + S.H + 4 * speye(n, {dtype = dtype})
            there, mask = places_of(H)
            local F = ichol(H)
            near(full(F.L), dense_chol(full(H), there), dtype)
            near(full(F.L * F.L.H) % mask, full(H), dtype)
            lu.assertEquals(F.nnz, (H.nnz + n) // 2)
        end
    end
end

function TestIncomplete:test_they_solve()
    for k, dtype in ipairs(types) do
        local S = matrix(30, 30, dtype, k, 5)
        local H = S + S.H + 4 * speye(30, {dtype = dtype})
        local F, G = ilu(S), ichol(H)
        for i = 1, 2 do
            local b = random(30, i, dtype, i)
            near(F:solve(b), solve(full(F.L * F.U), b), dtype)
            near(G:solve(b), solve(full(G.L * G.L.H), b), dtype)
        end
        local b = random(30, 1, dtype, 7):flatten()
        near(F:solve(b), solve(full(F.L * F.U), b), dtype)
    end
    local S = matrix(8, 8, "f32", 1, 5)
    local z = random(8, 2, "c128", 3)
    near(ilu(S):solve(z), solve(complex(full(ilu(S:f64()).L * ilu(S:f64()).U)), z),
        "c128")
    lu.assertEquals(ilu(sparse(zeros(0, 0))):solve(zeros(0)).shape, {0})
    lu.assertEquals(ichol(S + S.T + 9 * speye(8)):solve(zeros(8, 0)).shape, {8, 0})
end

-- Where nothing is left out they are those of a dense matrix.
function TestIncomplete:test_what_they_say()
    local S = sparse(mat({{4, 2, 0}, {2, 5, 1}, {0, 1, 3}}, f64))
    t.equals(full(ichol(S).L), chol(full(S)).L:totable())
    lu.assertEquals(tostring(ilu(S)), "ilu of 3x3 f64, nnz 7")
    lu.assertEquals(tostring(ichol(S)), "ichol of 3x3 f64, nnz 5")
    raises("ilu: there is no 'p' of it: it has F.L, F.U, F.nnz, and the methods " ..
        "solve unpack", function() return ilu(S).p end)
    near(full(ichol(S, {diagcomp = 0.5}).L),
        chol(full(S) + 0.5 * diag(vec({4, 5, 3}, f64))).L, "f64")
end

function TestIncomplete:test_what_breaks_down()
    raises("ilu: nothing is stored at (2, 2), where a pivot has to be: another " ..
        "order of rows, or S + t * speye(2) with a small t, has one", ilu,
        sparse(mat{{1, 2}, {3, 0}}))
    raises("ilu: pivot 2 is 0: S + t * speye(2) with a small t may do; lu(S) " ..
        "looks for better pivots", ilu, sparse(mat{{1, 2}, {1, 2}}))
    raises("ichol: pivot 2 is -3, and has to be above 0: where S is positive " ..
        "definite, {diagcomp = 0.1} makes up for what is left out", ichol,
        sparse(mat{{1, 2}, {2, 1}}))
    raises("ichol: pivot 2 is -2.1, and has to be above 0: where S is positive " ..
        "definite, {diagcomp = 2.5} makes up for what is left out better than " ..
        "0.25", ichol, sparse(mat({{1, 2}, {2, 0.88}}, f64)), {diagcomp = 0.25})
    raises("ichol: the matrix is not symmetric: a row of S - S.T adds up to 1; " ..
        "0.5 * (S + S.T) is", ichol, sparse(mat{{1, 2}, {1, 9}}))
    raises("ilu: needs a square matrix, not 3x2", ilu, sparse(ones(3, 2)))
    raises("ichol: needs a square matrix, not 3x2; S.T * S is one", ichol,
        sparse(ones(3, 2)))
    raises("ilu: the entry in row 1, column 2 is not finite; a factorisation " ..
        "needs finite numbers", ilu, sparse(mat{{1, nan}, {3, 1}}))
    raises("expected a sparse matrix", ilu, eye(2))
    raises("2 rows, the right side is vector 3", function()
        return ilu(speye(2)):solve(zeros(3))
    end)
    raises("diagcomp", ichol, speye(2), {diagcomp = -1})
end

os.exit(lu.LuaUnit.run("-o", "tap"))
