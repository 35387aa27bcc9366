-- Roots, logarithms and powers of matrices, a few values of large ones, and the
-- cross product: against what defines them.
local lu = require "luaunit"
local t = require "common"
local raises, near = t.raises, t.near
warn("@off")

local function random(m, n, dtype, seed)
    return randn(m, n, {seed = seed, dtype = dtype})
end

local function one(n, dtype)
    return eye(n, {dtype = dtype})
end

-- |X - Y| is at most so many units of Y's type, of the size.
local function agrees(X, Y, units, what, size)
    local off = norm(X:f64() - Y:f64())
    local allowed = units * t.unit[Y.dtype] * (size or norm(Y:f64()))
    lu.assertIsTrue(off <= allowed,
        ("%s: off by %.3g, allowed %.3g"):format(what or "result", off, allowed))
end

-- Matrices without eigenvalues at or left of 0, with complex ones and without.
local function each_regular(f)
    for _, dtype in ipairs{"f32", "f64"} do
        for seed, n in ipairs{1, 2, 3, 5, 10, 30} do
            local A = random(n, n, dtype, seed) / math.sqrt(n)
            f(A + 3 * one(n, dtype), n, dtype, "shifted " .. n)
            f(A * A.T + one(n, dtype), n, dtype, "symmetric " .. n)
            f(triu(A, 1) + diag(range(1, n, 1, {dtype = dtype})), n, dtype,
                "triangular " .. n)
            f((expm(A - A.T)).T, n, dtype, "rotation " .. n)
        end
    end
end

TestMatrixFunctions = {}

-- Each approximation, and halvings, against the eigenvalues.
-- Of which an element overflows, and no other one does.
function TestMatrixFunctions:test_expm_of_diagonals()
    for _, dtype in ipairs{"f32", "f64"} do
        local d = vec({3000, 1, -3000}, {dtype = dtype})
        lu.assertTrue(expm(diag(d)) == diag(exp(d)), dtype)
    end
    local z = vec{im, 2, 0}
    lu.assertTrue(expm(diag(z)) == diag(exp(z)))
end

function TestMatrixFunctions:test_expm_of_every_size()
    for _, size in ipairs{1e-6, 1e-2, 0.1, 0.3, 0.9, 1.8, 2, 4, 30} do
        for _, dtype in ipairs{"f32", "f64"} do
            local A = randn(20, 20, {dtype = "f64", seed = 3})
            A = (A + A.T) * (size / norm(A + A.T, 1))
            if dtype == "f32" then A = A:f32():f64() end
            local values, V = eigh(A):unpack()
            local X = expm(dtype == "f32" and A:f32() or A):f64()
            local exact = (V % exp(values):row()) * V.T
            local unit = dtype == "f32" and 2.0 ^ -24 or 2.0 ^ -53
            lu.assertTrue(norm(X - exact) <=
                (50 + 5 * size) * unit * norm(exact), dtype .. " " .. size)
        end
    end
end

-- Eigenvalues on the negative axis, several times, which rounding puts on either
-- side of it: a permutation's are roots of 1.
function TestMatrixFunctions:test_values_on_both_sides_of_the_cut()
    for _, seed in ipairs{59, 68, 77, 185, 203} do
        local order = randperm(7, {seed = seed, device = "cpu"})
        local P = complex(one(7, "f64")[{order, {}}]) * 2
        for _, A in ipairs{P, -P, P:c64()} do
            local R, X, third = sqrtm(A), logm(A), A ^ (1 / 3)
            for _, B in ipairs{R * R, expm(X), third * third * third} do
                lu.assertIsTrue(norm(B - A) < 300 * t.unit[A.dtype] * norm(A))
            end
        end
    end
    -- a diagonal one keeps its elements' own roots
    local D = diag(vec({complex(-4, -0.0), complex(-9, 1e-20), -1 + 0 * im},
        {dtype = "c128"}))
    lu.assertTrue(close(sqrtm(D), diag(sqrt(diag(D)))))
end

function TestMatrixFunctions:test_roots()
    each_regular(function(A, n, dtype, what)
        local before, X = A:clone(), sqrtm(A)
        lu.assertEquals({X.dtype, X.shape}, {dtype, {n, n}})
        agrees(X * X, A, 20 * n, "root of " .. what, norm(X) ^ 2)
        lu.assertIsTrue(A == before)
        lu.assertIsTrue(real(eigvals(X:f64())):min() > 0, what)
        agrees(A ^ 0.5, X, 1, what)
    end)
    t.equals(sqrtm(mat{{1, 3}, {0, 4}}), {{1, 1}, {0, 2}})
    t.equals(sqrtm(zeros(2, 2)), {{0, 0}, {0, 0}})
    lu.assertEquals(sqrtm(zeros(0, 0)).shape, {0, 0})
    -- one zero has a root, in several there may be none
    t.equals(sqrtm(mat{{1, 2}, {0, 0}}), {{1, 2}, {0, 0}})
    raises(function() sqrtm(mat{{0, 1}, {0, 0}}) end, "sqrtm", "0 as an eigen")
    raises(function() sqrtm(ones(2, 3)) end, "square", "2x3")
    raises(function() sqrtm(mat{{1, 0 / 0}, {0, 1}}) end, "A[{1, 2}] is NaN")
    -- rounding of a symmetric matrix of low rank makes no complex root
    local v = random(6, 2, "f64", 1)
    local X = sqrtm(v * v.T)
    lu.assertEquals(X.dtype, "f64")
    agrees(X * X, v * v.T, 100, "low rank")
end

function TestMatrixFunctions:test_logarithms()
    each_regular(function(A, n, dtype, what)
        local X = logm(A)
        lu.assertEquals({X.dtype, X.shape}, {dtype, {n, n}})
        agrees(expm(X:f64()), A, 100 * n, "log of " .. what)
        lu.assertIsTrue(imag(eigvals(X:f64())):abs():max() <= math.pi)
    end)
    t.equals(logm(mat{{1, 1}, {0, 1}}), {{0, 1}, {0, 0}})
    lu.assertEquals(logm(zeros(0, 0)).shape, {0, 0})
    -- known: that of a rotation, and of what is close to the identity
    for _, angle in ipairs{1e-12, 1e-3, 1, 3.1} do
        local c, s = math.cos(angle), math.sin(angle)
        local X = logm(mat({{c, -s}, {s, c}}, {dtype = "f64"}))
        near(X(2, 1), angle, 1e-15)
        near(X(1, 2), -angle, 1e-15)
        lu.assertIsTrue(diag(X):abs():max() <= t.unit.f64)
    end
    local small = mat({{1, 2e-9}, {0, 1 + 2.0 ^ -40}}, {dtype = "f64"})
    near(logm(small)(2, 2), math.log(1 + 2.0 ^ -40), 1e-15)
    near(logm(small)(1, 2), 2e-9 * math.log(1 + 2.0 ^ -40) * 2.0 ^ 40, 1e-9)
    -- graded and far from normal; values worked out in 60 digits
    local graded = mat({{1e8, 1e4, 3}, {0, 1, 1e5}, {0, 0, 1e-8}},
        {dtype = "f64"})
    local X = logm(graded)
    near(X(1, 2), 0.00184206809281591747, 1e-14)
    near(X(1, 3), -184.206806334282828, 1e-13)
    near(X(2, 3), 1842068.09281591747, 1e-14)
    near(X(3, 3), -18.4206807439523655, 1e-15)
    raises(function() logm(mat{{1, 2}, {0, 0}}) end, "singular", "logarithm")
    raises(function() logm(zeros(2, 2)) end, "singular", "logarithm")
end

function TestMatrixFunctions:test_powers()
    each_regular(function(A, n, dtype, what)
        local B = A:f64()
        local third = B ^ (1 / 3)
        agrees(third * third * third, B, 1e3 * n, "third of " .. what)
        agrees(B ^ -0.5 * sqrtm(B), one(n, "f64"), 1e3 * n * cond(B), what)
        agrees(B ^ 2.5, B * B * sqrtm(B), 1e3 * n, what)
        agrees(A ^ -1.25, (B ^ -1.25), 10 / t.unit.f64 * t.unit[dtype], what)
        lu.assertEquals((A ^ 0.3).dtype, dtype)
    end)
    -- of any size as of one near 1
    local A = random(6, 6, "f64", 7) + 3 * one(6, "f64")
    for _, p in ipairs{0.3, -0.5, 1.7} do
        local far = 2.0 ^ (-400 * p)
        agrees((A * 2.0 ^ -400) ^ p / far, A ^ p, 100, "far from 1")
    end
    t.equals(mat{{4, 0}, {0, 9}} ^ 0.5, {{2, 0}, {0, 3}})
    t.equals(mat{{2, 0}, {0, 0}} ^ 2.5, {{2 ^ 2.5, 0}, {0, 0}}, "zero", 2)
    raises(function() return mat{{2, 0}, {0, 0}} ^ -0.5 end, "singular")
    raises(function() return eye(2) ^ (0 / 0) end, "NaN")
    raises(function() return eye(2) ^ "x" end, "number", "pow")
    raises(function() return ones(2, 3) ^ 0.5 end, "square", "2x3")
    raises(function() return 2 ^ eye(2) end, "expm(log(x) * A)")
end

-- Of a real matrix with eigenvalues below 0 they are complex, above the axis as
-- the numbers' own.
function TestMatrixFunctions:test_complex_results()
    for _, dtype in ipairs{"f32", "f64"} do
        local wide = dtype == "f64" and "c128" or "c64"
        local P = zeros(6, 6, {dtype = dtype})
        for i = 1, 6 do P[{i, i % 6 + 1}] = 1 end
        for _, A in ipairs{random(5, 5, dtype, 4) + random(5, 5, dtype, 4).T, P,
            random(7, 7, dtype, 1), -one(3, dtype),
            triu(random(6, 6, dtype, 8)) - 3 * one(6, dtype)} do
            local B = A:f64()
            for _, f in ipairs{sqrtm, logm, function(X) return X ^ 1.5 end} do
                lu.assertEquals(f(A).dtype, wide)
            end
            local X, L = sqrtm(B), logm(B)
            local scale = 1e3 * t.unit.f64 * norm(B) * (1 + norm(X) ^ 2 + norm(L))
            lu.assertIsTrue(norm(X * X - B) <= scale)
            lu.assertIsTrue(norm(expm(L) - B) <= scale)
            lu.assertIsTrue(norm(B ^ 1.5 - B * X) <= 100 * scale)
            -- no part of the spectrum is on the wrong side of the cut
            local values = eigvals(L)
            lu.assertIsTrue(imag(values):min() > -math.pi * (1 - 1e-6))
            lu.assertIsTrue(imag(values):max() <= math.pi * (1 + 1e-12))
        end
    end
    t.equals(real(logm(mat{{-1}})), {{0}})
    t.equals(imag(logm(mat{{-1}})), {{t.single(math.pi)}})
end

function TestMatrixFunctions:test_of_complex_matrices()
    for _, n in ipairs{1, 2, 5, 12} do
        local A = complex(random(n, n, "f64", n), random(n, n, "f64", n + 9))
        for _, M in ipairs{A, A:c64(), A + A.H, A[{{}, {n, 1, -1}}]} do
            local X, L, B = sqrtm(M), logm(M), M:c128()
            lu.assertEquals({X.dtype, L.dtype}, {M.dtype, M.dtype})
            local scale = M.dtype == "c64" and t.unit.f32 or t.unit.f64
            scale = scale * 1e3 * norm(B) * (1 + norm(X) ^ 2 + norm(L))
            lu.assertIsTrue(norm(X:c128() * X:c128() - B) <= scale)
            lu.assertIsTrue(norm(expm(L:c128()) - B) <= scale)
            lu.assertIsTrue(norm(B ^ -0.5 * X:c128() - one(n, "f64")) <=
                scale * cond(B))
        end
    end
    raises(function() logm(complex(zeros(2, 2))) end, "singular")
end

TestFewValues = {}

-- Is every value of the few one of all, and the k that `before` orders first?
local function check_values(F, all, k, before)
    local list = {}
    for i, z in ipairs(all:totable()) do list[i] = complex(z, 0) + 0 * im end
    table.sort(list, before)
    for i = 1, k do
        local off = math.huge
        for j = 1, k + 1 do
            if list[j] then
                off = math.min(off, abs(list[j] - F.values(i)))
            end
        end
        lu.assertIsTrue(off <= 1e-9 * abs(list[1]) + 1e-9, F.values)
    end
end

local orders = {
    largestabs = function(a, b) return abs(a) > abs(b) end,
    smallestabs = function(a, b) return abs(a) < abs(b) end,
    largestreal = function(a, b) return a.real > b.real end,
    smallestreal = function(a, b) return a.real < b.real end,
}

function TestFewValues:test_of_symmetric_matrices()
    for _, n in ipairs{1, 2, 10, 60, 150} do
        local A = random(n, n, "f64", n)
        local S, k = A + A.T, math.min(n, 4)
        local all = eigh(S).values
        for which, before in pairs(orders) do
            local F = eigs(S, k, {which = which})
            local values, V, residuals = F:unpack()
            lu.assertEquals({values.shape, V.shape, residuals.shape},
                {{k}, {n, k}, {k}})
            lu.assertEquals({values.dtype, V.dtype}, {"f64", "f64"})
            check_values(F, all, k, before)
            agrees(V.T * V, one(k, "f64"), 1e5, "vectors")
            agrees(S * V, V * diag(values), 1e5, "pairs", norm(S))
            lu.assertIsTrue(residuals:max() <= 1e-12, F)
        end
    end
end

function TestFewValues:test_of_any_matrices()
    for _, n in ipairs{1, 3, 10, 60, 150} do
        local A, k = random(n, n, "f64", n), math.min(n, 3)
        local all = eigvals(A)
        for which in pairs(orders) do
            local F = eigs(A, k, {which = which})
            for i = 1, k do
                lu.assertIsTrue((all - F.values(i)):abs():min() <= 1e-9)
            end
            local off = A * F.vectors - F.vectors % F.values:row()
            lu.assertIsTrue(off:abs():max() <= 1e-9)
        end
        local F = eigs(A, k, {near = 0.7})
        near((all - 0.7):abs():min(), (F.values - 0.7):abs():min(), 1e-9)
    end
end

-- Values above each other: as many keep their pairs together as there are.
function TestFewValues:test_of_antisymmetric_matrices()
    local A = random(140, 140, "f64", 3)
    A = A - A.T
    local all = imag(eigvals(A)):abs():max()
    for which in pairs(orders) do
        local F = eigs(A, 4, {which = which})
        local off = A * F.vectors - F.vectors % F.values:row()
        lu.assertIsTrue(off:abs():max() <= 1e-9)
        lu.assertIsTrue(real(F.values):abs():max() <= 1e-9)
    end
    local F = eigs(A, 4)
    near(imag(F.values):abs():max(), all, 1e-12)
    lu.assertIsTrue(abs(F.values(1) - conj(F.values(2))) <= 1e-9)
end

-- Values that agree, of a matrix that a single vector would see but one of.
function TestFewValues:test_values_that_agree()
    local d = vec({7, 7, 7, 5, 5, 1}, {dtype = "f64"}) ..
        rand(144, {dtype = "f64", seed = 3})
    local Q = qr(random(150, 150, "f64", 1)).Q
    agrees(eigs(Q * diag(d) * Q.T, 5).values,
        vec({7, 7, 7, 5, 5}, {dtype = "f64"}), 1e3)
    lu.assertIsTrue(close(eigs(eye(130), 6).values, ones(6), 1e-5))
    t.equals(eigs(zeros(130, 130), 2).values, {0, 0})
    lu.assertIsTrue(close(svds(eye(130), 3).S, ones(3), 1e-5))
    -- near a value itself
    local n = 130
    near(eigs(diag(range(1, n, 1, {dtype = "f64"})), 1, {near = 40}).values[1],
        40, 1e-12)
end

function TestFewValues:test_of_functions_and_sparse_matrices()
    local n = 140
    local A = random(n, n, "f64", 2)
    local S = A + A.T
    local calls = 0
    local F = eigs(function(X)
        calls = calls + 1
        return S * X
    end, 3, {n = n})
    lu.assertEquals(F.values.dtype, "f64")
    agrees(F.values, eigs(S, 3).values, 1e4)
    lu.assertStrContains(tostring(F), calls .. " block products")
    lu.assertStrContains(tostring(F), "eigs of 140x140 f64, 3 values")
    F = svds(function(X, turned)
        return turned and A.T * X or A * X
    end, 3, {rows = n, cols = n})
    agrees(F.S, svdvals(A)[{{1, 3}}], 1e4)
    if not t.on_gpu then
        local T = diag(range(1, n)) + diag(ones(n - 1), 1) + diag(ones(n - 1), -1)
        lu.assertIsTrue(close(eigs(sparse(T), 2).values, eigs(T, 2).values, 1e-4))
    end
    raises(function() eigs(function(X) return X end, 2) end, "{n = …}")
    raises(function() svds(function(X) return X end, 2) end, "rows")
    raises(function() eigs(function() return 1 end, 2, {n = 9}) end, "function")
    raises(function() eigs(function(X) return X.T end, 2, {n = 200}) end,
        "4x200 of 200x4")
    raises(function() eigs(function(X) return X end, 2, {n = 200, near = 1}) end,
        "near", "matrix")
end

function TestFewValues:test_singular_values()
    for _, s in ipairs{{1, 1}, {5, 3}, {3, 5}, {150, 130}, {130, 300}, {400, 120}} do
        local A = random(s[1], s[2], "f64", s[1])
        local k = math.min(s[1], s[2], 3)
        local U, S, V = svds(A, k):unpack()
        local all = svdvals(A)
        agrees(S, all[{{1, k}}], 1e4, "values")
        agrees(A * V, U * diag(S), 1e5, "pairs", norm(A))
        agrees(U.T * U, one(k, "f64"), 1e5, "U")
        agrees(V.T * V, one(k, "f64"), 1e5, "V")
        agrees(svds(A, k, {which = "smallest"}).S, all[{{-k, -1}}], 1e4)
    end
    local A = random(200, 150, "f32", 1)
    lu.assertEquals(svds(A, 2).S.dtype, "f32")
    lu.assertIsTrue(close(svds(A, 2).S, svdvals(A)[{{1, 2}}], 1e-5))
end

function TestFewValues:test_of_complex_matrices()
    for _, n in ipairs{20, 150} do
        local A = complex(random(n, n, "f64", n), random(n, n, "f64", n + 1))
        for _, M in ipairs{A, A + A.H} do
            local F = eigs(M, 3)
            lu.assertEquals(F.values.dtype, M == A and "c128" or "f64")
            lu.assertIsTrue((M * F.vectors - F.vectors % F.values:row()):norm() <=
                1e-10 * norm(M))
            for i = 1, 3 do
                lu.assertIsTrue((eigvals(M) - F.values(i)):abs():min() <= 1e-9)
            end
        end
        agrees(svds(A, 2).S, svdvals(A)[{{1, 2}}], 1e4)
        local shifted = A + 4 * math.sqrt(n) * one(n, "f64")
        local b = ones(n, {dtype = "f64"})
        lu.assertIsTrue(norm(shifted * gmres(shifted, b) - b) <= 1e-9 * norm(b))
    end
    lu.assertEquals(eigs(eye(130) * im, 1).values.dtype, "c64")
end

function TestFewValues:test_bad_input()
    raises(function() eigs(eye(3), 4) end, "3 values, not 4")
    raises(function() eigs(eye(3), 0) end, "above 0")
    raises(function() eigs(ones(2, 3), 1) end, "square", "2x3")
    raises(function() eigs(mat{{1, 2}, {0 / 0, 1}}, 1) end, "A[{2, 1}] is NaN")
    raises(function() eigs(random(200, 200, "f64", 1), 4, {steps = 3}) end,
        "4 of 4 values", "3 block products")
    raises(function() eigs(eye(3), 1, {which = "best"}) end, "largestabs")
    raises(function() svds(vec{1, 2}, 1) end, "vector 2")
    for _, near in ipairs{0 / 0, 1 / 0, -1 / 0} do
        raises(function() eigs(eye(3), 1, {near = near}) end, "near is",
            "expected a finite number")
    end
    raises(function() eigs(eye(3), 1, {near = 2, which = "largestabs"}) end,
        "near says which values")
    raises(function() svds(sparse(eye(3)), 1, {which = "smallest"}) end,
        "need a dense matrix: svdvals(full(A))")
end

-- Options that only a function needs.
function TestFewValues:test_what_a_matrix_does_not_hear()
    raises(function() eigs(eye(3), 1, {n = 5}) end,
        "eigs: n is the size of a function's A; this one has 3")
    raises(function() svds(ones(3, 2), 1, {rows = 5}) end, "this one has 3")
    raises(function() svds(ones(3, 2), 1, {cols = 5}) end, "this one has 2")
    for _, f in ipairs{eigs, svds} do
        raises(function() f(eye(3), 1, {dtype = "f64"}) end, "A:f64()")
        raises(function() f(eye(3), 1, {device = "cpu"}) end, 'A:to("cpu")')
    end
end

function TestFewValues:test_what_is_not_symmetric()
    local told, says = {symmetric = true}, "symmetric is true, but A is not"
    local A = random(5, 5, "f64", 1)
    raises(function() eigs(A, 1, told) end, says, "(A + A.H) / 2")
    raises(function() eigs(random(150, 150, "f64", 1), 1, told) end, says)
    raises(function() eigs(function(X) return A * X end, 1,
        {symmetric = true, n = 5}) end, says)
    local S = A + A.T
    agrees(eigs(S, 2, told).values, eigs(S, 2).values, 10)
    agrees(eigs(function(X) return S * X end, 2,
        {symmetric = true, n = 5}).values, eigs(S, 2).values, 10)
    if not t.on_gpu then
        raises(function() eigs(sparse(A), 1, told) end, says)
    end
end

-- What another process makes of them again.
function TestFewValues:test_sessions()
    local path = t.scratch(".lum")
    local A = random(150, 150, "f64", 5)
    kept = {eigs(A, 2), eigs(A + A.T, 2), svds(A["1:140, :"], 2),
        eig(A["1:3, 1:3"])}
    local said = {}
    for i, F in ipairs(kept) do
        local values, vectors = F:unpack()
        said[i] = tostring(values) .. tostring(vectors)
    end
    save_session(path, {"kept"})
    kept = nil
    local pipe = assert(io.popen(("%s --no-init --device %s -e '%s' 2>&1")
        :format(os.getenv "LUMAT", t.device, ([[
            load_session(%q)
            for _, F in ipairs(kept) do
                local values, vectors = F:unpack()
                print(tostring(values) .. tostring(vectors))
            end]]):format(path))))
    local text = pipe:read "a"
    pipe:close()
    os.remove(path)
    lu.assertEquals(text, table.concat(said, "\n") .. "\n")
end

TestGmres = {}

function TestGmres:test_systems()
    for _, dtype in ipairs{"f32", "f64"} do
        local tolerance = dtype == "f64" and 1e-10 or 1e-5
        for _, n in ipairs{1, 2, 10, 120} do
            local A = random(n, n, dtype, n) + 3 * math.sqrt(n) * one(n, dtype)
            local b = random(n, 1, dtype, 9):flatten()
            local x, told = gmres(A, b, {info = true})
            lu.assertEquals({x.shape, x.dtype, told.converged}, {{n}, dtype, true})
            lu.assertIsTrue(norm(A * x - b) <= 2 * tolerance * norm(b))
            near(told.residual, norm(A * x - b) / norm(b), 0.5)
            lu.assertIsTrue(told.steps <= math.min(n, 50))
            lu.assertIsTrue(gmres(A, b) == x)
            -- a function, one that begins well, few columns at a time
            lu.assertIsTrue(close(gmres(function(v) return A * v end, b), x, 1e-4))
            local _, near_it = gmres(A, b, {start = x, info = true})
            lu.assertEquals(near_it.steps, 0)
            lu.assertIsTrue(close(gmres(A, b, {restart = 5}), x, 1e-4))
        end
    end
    t.equals(gmres(eye(3), zeros(3)), {0, 0, 0})
    lu.assertEquals(gmres(zeros(0, 0), zeros(0)).shape, {0})
end

-- Of columns of very different sizes, which the precondition knows.
function TestGmres:test_preconditions()
    local n = 150
    local d = exp2(linspace(0, 20, n, {dtype = "f64"}))
    local A = diag(d) + random(n, n, "f64", 1) / n
    local b = ones(n, {dtype = "f64"})
    local _, plain = gmres(A, b, {info = true, steps = 60})
    for _, M in ipairs{diag(d), function(r) return r / d:col() end} do
        local x, told = gmres(A, b, {info = true, precondition = M})
        lu.assertIsTrue(told.converged and told.steps < plain.steps / 3)
        lu.assertIsTrue(norm(A * x - b) <= 1e-10 * norm(b))
    end
end

function TestGmres:test_what_does_not_converge()
    local n = 60
    -- the identity's columns in turn: no step but the last gains anything
    local A = eye(n)[{vec(range(2, n):totable()) .. vec{1}, {}}]
    local b = zeros(n)
    b[1] = 1
    raises(function() gmres(A, b, {restart = 10}) end, "10 steps", "residual 1",
        "precondition")
    local _, told = gmres(A, b, {restart = 10, info = true})
    lu.assertEquals({told.converged, told.steps}, {false, 10})
    lu.assertIsTrue(close(A * gmres(A, b, {restart = n}), b))
    -- singular, but b is in its range
    local S = diag(vec{1, 2, 0})
    lu.assertIsTrue(close(S * gmres(S, vec{1, 2, 0}), vec{1, 2, 0}, 1e-5))
    raises(function() gmres(S, vec{1, 1, 1}) end, "converge")
    raises(function() gmres(ones(2, 3), vec{1, 2}) end, "2x3")
    raises(function() gmres(eye(3), vec{1, 2}) end, "3x3", "vector 2")
    raises(function() gmres(function() return 1 end, vec{1, 2}) end, "function")
    raises(function() gmres(eye(2), vec{1, 2}, {tol = -1}) end, "above 0")
end

TestCross = {}

function TestCross:test_of_vectors_rows_and_columns()
    t.equals(cross(vec{1, 2, 3}, vec{4, 5, 6}), {-3, 6, -3})
    t.equals(vec{1, 0, 0}:cross(vec{0, 1, 0}), {0, 0, 1})
    local A, B = random(4, 3, "f64", 1), random(4, 3, "f64", 2)
    local C = cross(A, B)
    for i = 1, 4 do
        lu.assertIsTrue(C[i] == cross(A[i], B[i]))
        lu.assertIsTrue(cross(A, B[1])[i] == cross(A[i], B[1]))
    end
    lu.assertIsTrue(cross(A.T, B.T, {axis = 1}) == C.T)
    near(dot(C[1], A[1]), 0, 1e300 * 1e-14)
    lu.assertEquals(cross(zeros(0, 3), zeros(0, 3)).shape, {0, 3})
    lu.assertEquals(cross(vec{1, 2, 3}, A).dtype, "f64")
    raises(function() cross(vec{1, 2}, vec{1, 2}) end, "x is vector 2", "three")
    raises(function() cross(A.T, B.T) end, "3x4", "as its rows")
    raises(function() cross(A, B, {axis = 1}) end, "4x3", "as its columns")
    raises(function() cross(A, ones(2, 3)) end, "4 vectors", "2")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
