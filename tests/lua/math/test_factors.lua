-- Factorisations and what is made of them: residuals as LAPACK's own tests
-- measure them, in units of n eps |A|, which stay below 30.
local lu_ = require "luaunit"
local t = require "common"
local equals, raises, near = t.equals, t.raises, t.near
warn("@off")

local function random(m, n, dtype, seed)
    return randn(m, n, {seed = seed, dtype = dtype})
end

local function one(n, dtype)
    return eye(n, {dtype = dtype})
end

local all_types = {"f32", "f64", "c64", "c128"}

local function wide(X)
    return (X.dtype == "c64" or X.dtype == "c128") and X:c128() or X:f64()
end

-- |X| over n eps |A|, in the 1-norm; below 30 where the method is stable.
local function residual(X, A, n)
    if X.size == 0 then return 0 end
    local size = A and norm(wide(A), 1) or 1
    return norm(wide(X), 1) / (math.max(n, 1) * t.unit[X.dtype] *
        (size > 0 and size or 1))
end

local function small(X, A, n, what)
    local r = residual(X, A, n)
    lu_.assertIsTrue(r < 30, string.format("%s: residual %g", what, r))
end

local sizes = {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {10, 10}, {129, 129}, {0, 3},
    {3, 0}, {1, 5}, {5, 1}, {50, 20}, {20, 50}, {129, 64}}

-- Every size and type, of a matrix and of views that lie otherwise, or
-- conjugated.
local function each(f, only_square)
    for _, dtype in ipairs(all_types) do
        for k, s in ipairs(sizes) do
            local m, n = s[1], s[2]
            if m == n or not only_square then
                f(random(m, n, dtype, k), m, n, dtype)
                f(random(n, m, dtype, k).T, m, n, dtype)
                if dtype == "c64" or dtype == "c128" then
                    f(random(n, m, dtype, k).H, m, n, dtype)
                    f(conj(random(m, n, dtype, k)), m, n, dtype)
                end
                local wide = random(2 * m + 1, n + 2, dtype, k)
                if m > 0 and n > 0 then
                    f(wide[{{2, 2 * m, 2}, {2, n + 1}}], m, n, dtype)
                end
            end
        end
    end
end

local function same(A, B)
    lu_.assertIsTrue(A == B, tostring(A) .. " is not " .. tostring(B))
end

TestFactors = {}

function TestFactors:test_lu()
    each(function(A, m, n)
        local before = A:clone()
        local F = lu(A)
        local L, U, p = F:unpack()
        local k = math.min(m, n)
        lu_.assertEquals({L.shape, U.shape, p.shape}, {{m, k}, {k, n}, {m}})
        small(L * U - A[p], A, n, "lu")
        if k > 0 then same(triu(L[{{1, k}, {}}]), one(k, A.dtype)) end
        same(tril(U, -1), zeros(k, n, {dtype = A.dtype}))
        -- complex pivots are those of the largest |re| + |im|
        local most = A.dtype:find "c" and math.sqrt(2) or 1
        lu_.assertIsTrue(k == 0 or L:abs():max() <= most)
        lu_.assertEquals(sort(p):totable(), m > 0 and
            range(1, m):totable() or {})
        same(A, before)
        lu_.assertEquals(L.dtype, A.dtype)
    end)
end

function TestFactors:test_solving()
    each(function(A, _, n, dtype)
        A = A + 2 * n * one(n, dtype)
        local x, X = random(n, 1, dtype, 7):flatten(), random(n, 3, dtype, 8)
        local S = A * A.H
        for _, F in ipairs{lu(A), qr(A), qr(A, {pivots = true}), svd(A)} do
            small(A * F:solve(A * x) - A * x, A, n, tostring(F))
            small(A * F:solve(X) - X, nil, n, tostring(F))
        end
        for _, F in ipairs{chol((S + S.H) / 2), eigh((S + S.H) / 2)} do
            small(S * F:solve(X) - X, nil, 10 * n, tostring(F))
        end
    end, true)
end

function TestFactors:test_determinants()
    each(function(A, _, n, dtype)
        if n > 50 then return end
        local S = A * A.H + one(n, dtype)
        S = (S + S.H) / 2
        local tolerance = 1000 * (n + 1) * t.unit[dtype]
        local size, sign = logdet(A)
        near(abs(lu(A):det() / det(A) - 1) + 1, 1, tolerance)
        near(abs(sign * math.exp(size) / det(A) - 1) + 1, 1, tolerance)
        for F, expected in pairs{[qr(A)] = det(A), [qr(triu(A))] = det(triu(A)),
            [qr(A, {pivots = true})] = det(A)} do
            near(abs(F:det() / expected - 1) + 1, 1, tolerance)
            size, sign = F:logdet()
            near(abs(sign * math.exp(size) / expected - 1) + 1, 1, tolerance)
        end
        if n > 0 then
            -- which both estimate
            for _, F in ipairs{qr(A), qr(A, {pivots = true})} do
                local off = math.log(F:rcond() / rcond(A), 3)
                lu_.assertIsTrue(math.abs(off) <= 1, off)
            end
        end
        local of_S = real(det(S))
        for _, F in ipairs{lu(S), chol(S), eigh(S), ldl(S)} do
            near(abs(F:det() / of_S - 1) + 1, 1, tolerance)
            lu_.assertIsTrue(math.abs(F:logdet() - math.log(of_S)) <=
                    tolerance * (1 + math.abs(math.log(of_S))))
        end
        lu_.assertEquals(math.type(chol(S):det()), "float")
        lu_.assertEquals(math.type(eigh(S):det()), "float")
    end, true)
    lu_.assertEquals({logdet(zeros(2, 2))}, {-math.huge, 0})
    lu_.assertEquals({logdet(mat{{0, 1}, {1, 0}})}, {0.0, -1})
    local size, sign = logdet(mat{{0, 2}, {3 * im, 0}})
    near(size, math.log(6), 1e-6)
    lu_.assertIsTrue(abs(sign + im) < 1e-6)
    -- where det would overflow
    local A = 1e3 * one(200, "f64")
    near(logdet(A), 200 * math.log(1e3), 1e-9)
    near(chol(A):logdet(), 200 * math.log(1e3), 1e-9)
end

-- Every square object solves, and has det, logdet and rcond.
function TestFactors:test_methods_of_all_of_them()
    each(function(A, _, n, dtype)
        if n > 50 then return end
        A = A + n * one(n, dtype)
        local tolerance = 1000 * (n + 1) * t.unit[dtype]
        local X, expected, S = random(n, 3, dtype, 8), det(A), A + A.H
        local function look(F, A, expected)
            local name, size, sign = tostring(F), F:logdet()
            small(A * F:solve(X) - X, nil, 100 * n, name)
            near(abs(F:det() / expected - 1) + 1, 1, tolerance)
            near(abs(sign * math.exp(size) / expected - 1) + 1, 1, tolerance)
            local off = math.log(F:rcond() / rcond(A), n + 2)
            lu_.assertIsTrue(math.abs(off) <= 1.01, name)
        end
        for _, make in ipairs{lu, qr, svd, schur, hess, eig} do
            look(make(A), A, expected)
        end
        for _, make in ipairs{ldl, eigh} do look(make(S), S, det(S)) end
        if n > 0 then look(svd(-A), -A, det(-A)) end
        same(svd(A):pinv(), pinv(A))
    end, true)
    local tall, none = mat{{3, 0}, {0, 2}, {0, 0}}, zeros(2, 2)
    near(svd(tall):rcond(), 2 / 3, 1e-6)
    same(svd(tall):pinv(2.5), pinv(tall, 2.5))
    lu_.assertEquals({svd(none):rcond(), svd(none):det(), schur(none):det(),
        eig(none):rcond()}, {0.0, 0.0, 0.0, 0.0})
    lu_.assertEquals({svd(mat{{0, 1}, {1, 0}}):logdet()}, {0.0, -1})
    local size, sign = eig(mat{{0, 2}, {2, 0}}):logdet()
    near(size, math.log(4), 1e-6)
    lu_.assertEquals(sign, -1)
    local A, B = mat{{2, 1}, {0, 3}}, mat{{1, 0}, {1, 1}}
    equals(eig(A, B):solve(vec{3, 3}), {1, 1})
    near(eigh(mat{{2, 1}, {1, 2}}, mat{{100, 0}, {0, 1}}):rcond(), 1 / 3, 1e-6)
    lu_.assertEquals({eig(A, B):logdet()}, {logdet(A)})
    raises(function() return svd(tall):det() end, "square", "3x2")
    raises(function() return svd(tall):logdet() end, "square", "3x2")
    for _, make in ipairs{schur, hess, eig} do
        raises(function() return make(none):solve(vec{1, 2}) end, "singular",
            "lstsq")
        raises(function() return make(none):solve(vec{1}) end, "2 rows",
            "vector 1")
    end
end

-- What f32 has no room for f64 may have, and what leaves the range on the way
-- comes back.
function TestFactors:test_determinants_stay_in_range()
    local function of_size(A, expected, is_spread) -- which no values survive
        for name, F in pairs{lu = lu(A), ldl = ldl(A), chol = chol(A),
            eig = not is_spread and eig(A) or nil,
            eigh = not is_spread and eigh(A) or nil} do
            lu_.assertIsTrue(abs(F:det() / expected - 1) < 1e-5,
                name .. ": " .. tostring(F:det()))
        end
    end
    of_size(eye(3) * 1e20, 1e60)
    of_size(eye(3) * 1e-20, 1e-60)
    of_size(complex(eye(3) * 1e20), 1e60)
    of_size(complex(eye(5) * 1e-20), 1e-100)
    of_size(diag(vec({1e200, 1e200, 1e-300, 1e-50}, {dtype = "f64"})), 1e50,
        true)
    of_size(diag(complex(vec({1e-200, 1e-200, 1e250}, {dtype = "f64"}))), 1e-150,
        true)
    local Z = eye(2, {dtype = "c64"}) * (1e30 * im)
    lu_.assertIsTrue(abs(lu(Z):det() / det(Z) - 1) < 1e-6)
    near(lu(eye(2) * 3):logdet(), 2 * math.log(3), 1e-15)
    near(chol(eye(2) * 3):logdet(), 2 * math.log(3), 1e-6)
    lu_.assertEquals(lu(diag(vec{1e30, 1e30, 0})):det(), 0.0)
    lu_.assertEquals({qr(ones(3, 3) * 0):det(), qr(zeros(2, 2)):rcond(),
        qr(zeros(0, 0)):det(), qr(zeros(0, 0)):rcond()}, {0.0, 0.0, 1.0, 1.0})
    raises(function() return qr(ones(3, 2)):det() end, "square", "3x2")
    lu_.assertEquals(lu(eye(40, {dtype = "f64"}) * 1e300):det(), math.huge)
end

-- verify(F) is what residual() here is, and says where that is 30 or more.
function TestFactors:test_verify()
    each(function(A, m, n)
        local L, U, p = lu(A):unpack()
        local told = verify(lu(A))
        lu_.assertIsTrue(told.accept)
        if m == 0 or n == 0 then return end
        local by = math.max(m, n) * t.unit[A.dtype] / 2 * norm(wide(A), 1)
        local off = norm(wide(L) * wide(U) - wide(A)[p], 1)
        lu_.assertIsTrue(math.abs(told.ratio - off / by) <= 1e-6 * off / by)
        for _, F in ipairs{qr(A), qr(A, {pivots = true}), svd(A, {full = true})} do
            told = verify(F)
            lu_.assertIsTrue(told.accept, tostring(told))
        end
        if m ~= n or n > 50 then return end
        local S, B = A + A.H, A * A.H + one(n, A.dtype)
        B = (B + B.H) / 2
        for _, F in ipairs{eig(A), schur(A), hess(A), ldl(S), eigh(S), chol(B),
            eigh(S, B), eig(A, B)} do
            told = verify(F)
            lu_.assertIsTrue(told.accept, tostring(F) .. ": " .. tostring(told))
        end
    end)
    lu_.assertStrContains(tostring(verify(lu(eye(2)))),
        "Accept: |L U - A[p]| is 0 n eps |A|")
    lu_.assertStrContains(tostring(verify(qr(eye(2)))), "|Q.H Q - I| is 0 n eps")
    -- LAPACK balances it first
    local graded = verify(eig(gallery("forsythe", 30, {dtype = "f64"})))
    lu_.assertIsTrue(not graded.accept and graded.ratio > 30)
    lu_.assertStrContains(tostring(graded), "FAILS, 30 or more: |A V - V D| is ")
    raises(function() return verify{} end, "a factorisation", "lu(A)")
    raises(function() return verify(lu(sparse(eye(3)))) end, "dense")
    raises(function() return verify(eye(2)) end, "A is missing", "verify(F)")
end

-- On a CPU there is one way, on a GPU every kernel that does the type.
function TestFactors:test_race()
    local A = random(40, 40, "f32", 1)
    local B = A * A.T + one(40, "f32")
    for name, M in pairs{lu = A, qr = A:f64(), chol = (B + B.T) / 2} do
        local rows = race(M, name, {seconds = 0.01})
        lu_.assertIsTrue(#rows >= 1)
        lu_.assertIsTrue(rows[1].accept and rows[1].error < 30)
        lu_.assertIsTrue(rows[1].time > 0 and rows[1].gflops > 0)
        lu_.assertEquals(rows[1].operation, name)
        lu_.assertStrContains(tostring(rows), name .. " 40x40")
        lu_.assertStrContains(tostring(rows), "residual")
    end
    lu_.assertStrContains(tostring(race(A, "chol")), "cannot: the matrix is not")
    raises(function() return race(A, "svd") end, '"svd"', '"lu", "chol" or "qr"')
    if t.device == "cpu" then
        raises(function() return kernels "lu" end, "lu has no choice of kernels")
        raises(function() return lu(A, {kernel = "cusolver"}).L end,
            "where there is no choice; leave kernel out")
    end
end

-- Pivots that are no normal numbers have no reciprocals.
function TestFactors:test_lu_of_the_smallest()
    local B = vcat(random(5, 5, "f64", 1), random(3, 5, "f64", 2))
    for _, dtype in ipairs(all_types) do
        local is_f32 = t.unit[dtype] == t.unit.f32
        local A = round(B * 1e4) * 2.0 ^ (is_f32 and -149 or -1074)
        if dtype:find "c" then A = complex(A, A) end
        for _, M in ipairs{A[dtype](A), A[dtype](A).H} do
            local L, U, p = lu(M):unpack()
            lu_.assertIsTrue(L:isfinite():all())
            lu_.assertIsTrue(L:abs():max() < 1.5)
            -- in units of the smallest number, of which U's are whole
            local up = is_f32 and 2.0 ^ 149 or 2.0 ^ 500
            local more = is_f32 and 1 or 2.0 ^ 574
            local off = (wide(L) * (wide(U) * up * more) -
                wide(M)[p] * up * more):abs():max()
            lu_.assertIsTrue(off < 8, off)
        end
    end
    near(lu(mat{{0, 2}, {3, 0}} * 2.0 ^ -140):logdet() / math.log(2),
        math.log(6, 2) - 280, 1e-4)
end

-- The inverse of these leaves the range, their condition does not.
function TestFactors:test_rcond_at_the_ends_of_the_range()
    for _, dtype in ipairs{"f32", "f64"} do
        local least = dtype == "f32" and 2.0 ^ -149 or 2.0 ^ -1074
        local A = mat({{least, 0}, {0, least}}, {dtype = dtype, device = "cpu"})
        lu_.assertEquals(lu(A):rcond(), 1.0, dtype)
    end
    for _, dtype in ipairs(all_types) do
        local is_f32 = t.unit[dtype] == t.unit.f32
        local A = random(6, 6, dtype, 3)
        local S = A * A.H + one(6, dtype)
        S = (S + S.H) / 2
        for _, power in ipairs(is_f32 and {-120, -100, 110} or
            {-1010, -900, 1000}) do
            local by = 2.0 ^ (power / 2) -- c64 takes no 2^-126 and less at once
            local function far(M) return M * by * by end
            for _, make in ipairs{lu, qr, chol, ldl} do
                local near_1 = make(S):rcond()
                local there = make(far(S)):rcond()
                lu_.assertIsTrue(math.abs(there / near_1 - 1) < 1e-3,
                    ("%s of %s: %g, %g"):format(dtype, power, there, near_1))
            end
            lu_.assertIsTrue(abs(rcond(far(A)) / rcond(A) - 1) < 1e-3)
            local _, told = solve(far(S), far(ones(6, {dtype = dtype})),
                {info = true})
            lu_.assertIsTrue(math.abs(told.rcond / chol(S):rcond() - 1) < 0.9)
        end
    end
end

-- Of sides from which all cores of a CPU share the work.
function TestFactors:test_large_complex_ones()
    for _, dtype in ipairs{"c64", "c128"} do
        for _, s in ipairs{{192, 192}, {193, 193}, {200, 300}, {300, 200}} do
            local m, n = s[1], s[2]
            local A = random(m, n, dtype, m)
            local L, U, p = lu(A):unpack()
            small(L * U - A[p], A, n, "lu")
            lu_.assertIsTrue(L:abs():max() <= math.sqrt(2))
            A[{{}, 100}] = 0
            L, U, p = lu(A):unpack()
            small(L * U - A[p], A, n, "singular lu")
            lu_.assertEquals(abs(U(100, 100)), 0)
            if m == n then
                local P = A * A.H + n * one(n, dtype)
                P = (P + P.H) / 2
                L = chol(P).L
                small(L * L.H - P, P, n, "chol")
                same(imag(diag(L)), zeros(n, {dtype = real(P).dtype}))
                P[{n - 3, n - 3}] = -1
                raises(function() chol(P) end, "order " .. n - 3)
            end
        end
    end
end

local function lu_by_kernel(kernel, m, n, dtype)
    local A = random(m, n, dtype, n)
    local what = ("%s %s %dx%d"):format(kernel, dtype, m, n)
    local L, U, p = lu(A, {kernel = kernel}):unpack()
    small(L * U - A[p], A, n, what)
    -- complex pivots are those of the largest |re| + |im|
    lu_.assertIsTrue(L:abs():max() <= (dtype == "c64" and math.sqrt(2) or 1))
    same(lu(A, {kernel = kernel}).L, L)
    A[{{}, n // 2}] = 0 -- the pivot is zero, and what follows is
    A[{{}, n}] = A[{{}, 1}]
    L, U, p = lu(A, {kernel = kernel}):unpack()
    small(L * U - A[p], A, n, "singular " .. what)
    lu_.assertEquals(abs(U(n // 2, n // 2)), 0)
end

local function chol_by_kernel(kernel, n, dtype)
    local S = random(n, n, dtype, n)
    S = S * S.H + n * one(n, dtype)
    S = (S + S.H) / 2
    local L = chol(S, {kernel = kernel}).L
    small(L * L.H - S, S, n, ("%s %s %d"):format(kernel, dtype, n))
    same(triu(L, 1), zeros(n, n, {dtype = dtype}))
    if dtype == "c64" then same(imag(diag(L)), zeros(n)) end
    same(chol(S, {kernel = kernel}).L, L)
    S[{n - 3, n - 3}] = -1
    raises(function() chol(S, {kernel = kernel}) end, "order " .. n - 3)
end

local function qr_by_kernel(kernel, m, n, dtype)
    local A = random(m, n, dtype, n)
    local what = ("%s %s %dx%d"):format(kernel, dtype, m, n)
    local least = math.min(m, n)
    -- the factors are LAPACK's, whose signs and real diagonal these have
    local B = A + 3 * math.sqrt(m + n) * eye(m, n, {dtype = dtype})
    local R = qr(B, {kernel = kernel}).R
    small(R - qr(B:to "cpu").R:to(R.device), B, least, what)
    A[{{}, 3}] = 0 -- no reflection
    A[{{}, n // 2}] = A[{{}, 1}]
    local F = qr(A, {kernel = kernel})
    small(F.Q * F.R - A, A, n, what)
    small(F.Q.H * F.Q - one(F.Q.cols, dtype), F.Q, n, what)
    same(qr(A, {kernel = kernel}).R, F.R)
    -- Q is made, and is what vectors are multiplied by, by one convention
    small(qr(A, {kernel = kernel, full = true}).Q[{{}, {1, least}}] - F.Q, F.Q,
        n, what)
end

-- Columns and matrices whose numbers are far from 1, by all ways that there are.
local function each_kernel(operation, f)
    f(nil, "f32")
    f(nil, "c64")
    for _, k in ipairs(kernel_list()) do
        for _, dtype in ipairs{"f32", "c64"} do
            if k.operation == operation and k.available and k[dtype] then
                f(k.name, dtype)
            end
        end
    end
end

function TestFactors:test_qr_of_columns_of_any_size()
    local n = 100
    local sizes = exp2(floor(linspace(-60, 60, n, {dtype = "f64"})))
    each_kernel("qr", function(kernel, dtype)
        local A = random(300, n, dtype, 1)
        local scaled = A % sizes:row():f32()
        local F = qr(scaled, {kernel = kernel})
        local off = wide(F.Q) * wide(F.R) - wide(scaled)
        local of_column = norm(off, {axis = 1}) / norm(wide(scaled), {axis = 1})
        lu_.assertIsTrue(of_column:max() < 1e-5, of_column:max())
    end)
end

function TestFactors:test_chol_of_any_size()
    each_kernel("chol", function(kernel, dtype)
        local n = 150
        local S = random(n, n, dtype, 1)
        S = S * S.H / n + one(n, dtype)
        S = (S + S.H) / 2
        for _, power in ipairs{-130, -126, -100, 100, 122, 124} do
            local half = 2.0 ^ (power // 2)
            local M = S * half * 2.0 ^ (power - power // 2)
            local L = wide(chol(M, {kernel = kernel}).L) / 2.0 ^ (power // 2)
            local off = (L * L.H * 2.0 ^ (power // 2 * 2 - power) -
                wide(M) * 2.0 ^ -power):abs():max()
            lu_.assertIsTrue(off < (power < -110 and 1e-2 or 1e-4),
                ("%s %s 2^%d: %g"):format(kernel, dtype, power, off))
        end
    end)
end

-- Of one right side that is none the others know nothing.
function TestFactors:test_right_sides_stay_apart()
    for _, dtype in ipairs{"f32", "c64"} do
        local n = 1024
        local A = random(n, n, dtype, 1) + 60 * one(n, dtype)
        local b = random(n, n, dtype, 2)
        local x = qr(A):solve(b)
        for _, odd in ipairs{0 / 0, 3e38} do
            local c = b:clone()
            c[{1, 7}] = odd
            local y = qr(A):solve(c)
            for _, own in ipairs{{1, 6}, {8, n}} do
                local off = (y[{{}, own}] - x[{{}, own}]):abs():max()
                lu_.assertIsTrue(off < 1e-4, dtype .. ": " .. off)
            end
        end
    end
end

-- Those of a device; a CPU has none.
function TestFactors:test_kernels()
    for _, k in ipairs(kernel_list()) do
        for _, n in ipairs{64, 65, 100, 129, 500, 1100} do
            for _, dtype in ipairs(k.available and {"f32", "c64"} or {}) do
                if not k[dtype] then
                    -- another's
                elseif k.operation == "lu" then
                    lu_by_kernel(k.name, n, n, dtype)
                elseif k.operation == "chol" then
                    chol_by_kernel(k.name, n, dtype)
                elseif k.operation == "qr" then
                    qr_by_kernel(k.name, n, n, dtype)
                    qr_by_kernel(k.name, n + 77, n, dtype)
                    qr_by_kernel(k.name, n, n + 77, dtype)
                end
            end
        end
    end
    -- a last block of columns of every width
    for _, k in ipairs(kernel_list()) do
        for n = 288, 800, 32 do
            for _, dtype in ipairs(k.available and {"f32", "c64"} or {}) do
                if k.name ~= "split16" or not k[dtype] then
                    -- a library's
                elseif k.operation == "chol" then
                    chol_by_kernel(k.name, n, dtype)
                elseif k.operation == "qr" then
                    qr_by_kernel(k.name, n + 160, n, dtype)
                end
            end
        end
    end
    -- tall ones, of which a thread has several rows
    for _, k in ipairs(kernel_list()) do
        for _, rows in ipairs{4099, 8200, 12300, 17001} do
            for _, dtype in ipairs{"f32", "c64"} do
                if k.operation == "qr" and k.name == "split16" and k.available and
                    k[dtype] and (dtype == "f32" or rows < 16384) then
                    qr_by_kernel(k.name, rows, 96, dtype)
                end
            end
        end
    end
    -- taller than wide, of whole blocks of columns; of more rows than 16384 fewer
    -- columns are done at once
    for _, k in ipairs(kernel_list()) do
        if k.operation == "lu" and k.available and k.f32 then
            for _, shape in ipairs{{96, 64}, {141, 64}, {1700, 896}, {1700, 1088},
                {17001, 96}, {32768, 160}} do
                lu_by_kernel(k.name, shape[1], shape[2], "f32")
            end
            -- a last block of columns of every width: rows are exchanged by so many
            -- columns at a time, none of them twice
            for n = 544, 1024, 32 do lu_by_kernel(k.name, n, n, "f32") end
        end
    end
    raises(function() return lu(eye(3), {kernel = "abacus"}).U end, "lu",
        "abacus")
    raises(function() chol(eye(3), {kernel = "abacus"}) end, "chol", "abacus")
end

-- Of sizes that are cut into blocks, halves and squares.
function TestFactors:test_chol_has_zeros_above_the_diagonal()
    for _, n in ipairs{64, 65, 130, 385, 450} do
        for _, dtype in ipairs(all_types) do
            local S = random(n, n, dtype, n)
            S = S * S.H + n * one(n, dtype)
            S = (S + S.H) / 2
            local L = chol(S).L
            small(L * L.H - S, S, n, "chol of " .. n .. " " .. dtype)
            lu_.assertIsTrue(triu(L, 1):abs():max() == 0, dtype)
            lu_.assertIsTrue(real(diag(L)):min() > 0, dtype)
        end
    end
end

-- What rounding leaves of the symmetry of a product is above the diagonal.
function TestFactors:test_chol_takes_what_is_below_the_diagonal()
    for _, n in ipairs{3, 150, 400} do
        for _, dtype in ipairs(all_types) do
            local S = random(n, n, dtype, n)
            S = S * S.H + n * one(n, dtype)
            S = tril(S) + tril(S, -1).H
            S = S - imag(S) % one(n, S.dtype) * im
            S = dtype:sub(1, 1) == "f" and real(S) or S
            local A = S:clone()
            A[{1, n}] = A[{1, n}] * (1 + 4 * t.unit[dtype])
            lu_.assertIsFalse(A == S)
            lu_.assertIsTrue(chol(A).L == chol(S).L, n .. " " .. dtype)
        end
    end
end

function TestFactors:test_chol()
    each(function(A, _, n, dtype)
        local S = A * A.H + n * one(n, dtype)
        S = (S + S.H) / 2
        local L = chol(S):unpack()
        small(L * L.H - S, S, n, "chol")
        same(triu(L, 1), zeros(n, n, {dtype = dtype}))
    end, true)
    raises(function() chol(mat{{1, 2}, {2, 1}}) end, "positive definite",
        "order 2")
    raises(function() chol(mat{{1, 2}, {3, 9}}) end, "not symmetric",
        "(A + A.T) / 2")
    raises(function() chol(mat{{1, im}, {im, 1}}) end, "not Hermitian",
        "(A + A.H) / 2")
    raises(function() chol(mat{{im, 0}, {0, 1}}) end, "not Hermitian")
    raises(function() chol(mat{{1, 2 * im}, {-2 * im, 1}}) end,
        "positive definite", "order 2")
    raises(function() chol(ones(2, 3)) end, "square", "2x3")
end

function TestFactors:test_qr()
    for _, pivots in ipairs{false, true} do
        for _, full in ipairs{false, true} do
            each(function(A, m, n, dtype)
                local k = full and m or math.min(m, n)
                local Q, R, p = qr(A, {full = full, pivots = pivots}):unpack()
                lu_.assertEquals({Q.shape, R.shape}, {{m, k}, {k, n}})
                small(Q * R - (p and A[{{}, p}] or A), A, m, "qr")
                small(Q.H * Q - one(k, dtype), nil, m, "Q")
                same(tril(R, -1), zeros(k, n, {dtype = dtype}))
                local d = diag(R):abs()
                for i = 2, pivots and d.rows or 0 do
                    lu_.assertIsTrue(d[i] <= d[i - 1] * (1 + 1e-5))
                end
            end)
        end
    end
end

function TestFactors:test_svd()
    for _, full in ipairs{false, true} do
        each(function(A, m, n, dtype)
            local k = math.min(m, n)
            local F = svd(A, {full = full})
            local U, S, V = F:unpack()
            lu_.assertEquals({U.shape, S.shape, V.shape},
                {{m, full and m or k}, {k}, {n, full and n or k}})
            small(U.H * U - one(U.cols, dtype), nil, m, "U")
            small(V.H * V - one(V.cols, dtype), nil, n, "V")
            local D = k > 0 and diag(S) or zeros(0, 0, {dtype = dtype})
            small(k > 0 and U[{{}, {1, k}}] * D * V[{{}, {1, k}}].H - A or A,
                A, m + n, "svd")
            small(svd(A).S - S, A, m + n, "values alone")
            for i = 2, k do lu_.assertIsTrue(S[i] <= S[i - 1]) end
            lu_.assertEquals(F:rank(), k)
            near(F:cond(), k > 0 and S[1] / S[k] or 0, 100 * t.unit[dtype])
            lu_.assertEquals({U.dtype, S.dtype}, {dtype, real(A).dtype})
        end)
    end
    equals(svd(mat{{3, 0}, {0, -2}}).S, {3, 2})
end

function TestFactors:test_eigh()
    each(function(A, _, n, dtype)
        local S = A + A.H
        local values, vectors = eigh(S):unpack()
        small(vectors.H * vectors - one(n, dtype), nil, n, "vectors")
        if n > 0 then
            small(S * vectors - vectors * diag(values), S, n, "eigh")
        end
        small(eigh(S).values - values, S, n, "values alone")
        for i = 2, n do lu_.assertIsTrue(values[i] >= values[i - 1]) end
    end, true)
    raises(function() eigh(mat{{1, 2}, {3, 4}}) end, "not symmetric")
    raises(function() eigh(mat{{1, im}, {im, 1}}) end, "not Hermitian", "A.H")
    equals(eigh(mat{{0, -im}, {im, 0}}).values, {-1, 1}, "values", 2)
    lu_.assertEquals({eigh(mat{{0, -im}, {im, 0}}):rcond(),
        eigh(diag(vec{-4, 0, 2})):rcond(), eigh(diag(vec{-4, 1, 2})):rcond(),
        eigh(zeros(2, 2)):rcond(), eigh(zeros(0, 0)):rcond()},
        {1.0, 0.0, 0.25, 0.0, 1.0})
    raises(function() return eigh(diag(vec{1, 0})):solve(vec{1, 2}) end,
        "singular", "eigenvalue", "lstsq")
end

-- Who writes to a part that he was given changes no factors.
function TestFactors:test_parts_are_copies()
    local A, b = mat{{4, 1}, {1, 3}}, vec{1, 2}
    for _, kind in ipairs{lu, chol, qr, svd, eigh, eig, ldl, schur} do
        local F = kind(A)
        for _, part in ipairs{F:unpack()} do part:add_(100) end
        for _, name in ipairs{"L", "U", "p", "Q", "R", "S", "V", "values", "vectors"} do
            local is_there, part = pcall(function() return F[name] end)
            if is_there then
                lu_.assertTrue(part:abs():max() < 100, name)
                part:add_(100)
            end
        end
        if pcall(function() return F.solve end) then
            lu_.assertTrue(norm(A * F:solve(b) - b) < 1e-6)
        end
        local parts = {kind(A):unpack()}
        for i, part in ipairs{F:unpack()} do
            lu_.assertTrue(part == parts[i])
        end
    end
end

-- What was factored is a copy, and parts are worked out when they are read.
function TestFactors:test_objects()
    local A = mat{{3, 0}, {0, 2}}
    local F = svd(A)
    A[{1, 1}] = 100
    equals(F.S, {3, 2})
    lu_.assertEquals(tostring(F), "svd of 2x2 f32, rank 2")
    lu_.assertEquals(tostring(lu(eye(2))), "lu of 2x2 f32, rcond 1")
    lu_.assertEquals(tostring(qr(ones(3, 2), {pivots = true})),
        "qr of 3x2 f32, pivoted")
    lu_.assertEquals(type(F), "table")
    raises(function() return F + 1 end, "svd", "F.U, F.S, F.V", "unpack")
    raises(function() return A * F end, "svd", "F.U, F.S, F.V", "unpack")
    raises(function() return A - lu(A) end, "lu", "F.L, F.U, F.p", "unpack")
    raises(function() return sparse(A) * F end, "svd", "F.U, F.S, F.V")
    raises(function() return F.W end, "'W'", "F.S", "rank")
    raises(function() return qr(eye(2)).p end, "'p'")
    raises(function() F.S = 1 end, "cannot be assigned")
    raises(function() return svd(vec{1, 2}) end, "vector 2", "v:col()")
    local N = mat{{1, 0 / 0}, {0, 1}}
    for _, name in ipairs{"rank", "cond", "pinv", "null", "orth", "svdvals"} do
        raises(function() return _G[name](N) end, name .. ": A[{1, 2}] is NaN")
    end
    raises(function() return eigh(A, N) end, "eigh: B[{1, 2}] is NaN")
    raises(function() return eigh(A, mat{{1, 2}, {3, 4}}) end, "B and B.T")
    raises(function() return eig(A, N) end, "eig: B[{1, 2}] is NaN")
    raises(function() return lyap(A, N) end, "lyap: Q[{1, 2}] is NaN")
    raises(function() return svd(mat{{1, 0 / 0}}) end, "A[{1, 2}] is NaN")
    raises(function() return lu(mat{{1}, {1 / 0}}) end, "A[{2, 1}] is Inf")
    raises(function()
        return lu(mat{{1, im}, {complex(1, 0 / 0), 1 / 0}})
    end, "A[{2, 1}] is 1 + NaNi")
    lu_.assertEquals(tostring(chol(eye(2, {dtype = "c128"}))),
        "chol of 2x2 c128, rcond 1")
    raises(function() return svd(eye(2), {ful = true}) end, "ful", "full")
    for _, make in ipairs{lu, chol, qr, svd, eigh, eig, hess, schur, ldl} do
        local F = make(eye(2))
        raises(function() return F:det(5) end, "det: F:det takes no arguments, not 5")
        raises(function() return F:unpack({}) end, "unpack: F:unpack takes no arguments")
        equals(F:solve(vec{1, 2}, nil), {1, 2})
    end
    for _, make in ipairs{lu, chol} do
        raises(function() return make(sparse(eye(2))):solve(vec{1, 2}, {foo = 1}) end,
            "solve: F:solve takes 1 argument, not a table")
    end
    raises(function() return lu(ones(2, 2)):solve(vec{1, 2}) end, "singular",
        "pivot 2")
    raises(function() return lu(ones(2, 3)):solve(vec{1, 2}) end, "square",
        "lstsq")
    raises(function() return lu(eye(2)):solve(vec{1, 2, 3}) end, "2 rows",
        "vector 3")
    raises(function() return qr(ones(3, 2)):solve(vec{1, 2, 3}) end, "depend",
        "lstsq")
    raises(function() return qr(ones(2, 3)):solve(vec{1, 2}) end,
        "more columns", "lstsq")
    raises(function() return F:rank("x") end, "tol")
    for _, tol in ipairs{-1, 0 / 0} do
        for _, name in ipairs{"rank", "pinv", "null", "orth"} do
            raises(function() return _G[name](eye(2), tol) end,
                name .. ": tol is", "expected a number from 0 on")
        end
        raises(function() F:rank(tol) end, "rank: tol is")
        raises(function() F:pinv(tol) end, "pinv: tol is")
        raises(function() F:solve(ones(F.U.rows), tol) end, "solve: tol is")
    end
    lu_.assertEquals(rank(diag(vec{3, 0}), 0), 1)
    equals(svd(mat{{true, false}}).S, {1})
end

-- A session keeps what an object is of, and how it is made.
function TestFactors:test_sessions()
    local A, path = random(4, 3, "f64", 1), t.scratch(".lum")
    local C = random(3, 3, "c128", 1)
    kept = {svd(A, {full = true}), qr(A, {pivots = true}), lu(A),
        chol(A.H * A), eigh(A.H * A), eigh(A.H * A, one(3, "f64") * 2),
        ldl(A.H * A), hess(A.H * A), schur(A.H * A), eig(A.H * A, {left = true}),
        eig(A["1:3, :"]), eig(A["1:3, :"], A["2:4, :"], {left = true}),
        svd(C), qr(C.H), lu(C), chol(C.H * C), eigh(C.H * C),
        ldl(C.H * C), hess(C), schur(C), eig(C, {left = true})}
    local before = kept
    save_session(path, {"kept"})
    kept = nil
    load_session(path)
    os.remove(path)
    lu_.assertEquals(#kept, #before)
    for i, F in ipairs(before) do
        lu_.assertEquals(tostring(kept[i]), tostring(F))
        local want = {F:unpack()}
        for k, part in ipairs{kept[i]:unpack()} do same(part, want[k]) end
    end
    kept = nil
end

TestOfFactors = {}

function TestOfFactors:test_least_squares()
    for _, dtype in ipairs(all_types) do
        for k, s in ipairs{{5, 3}, {50, 20}, {3, 5}, {20, 50}, {4, 4}} do
            local A, b = random(s[1], s[2], dtype, k), random(s[1], 2, dtype, 9)
            local x, about = lstsq(A, b, {info = true})
            small(A.H * (A * x - b), A, 10 * s[1] * s[2], "lstsq")
            lu_.assertEquals(about.rank, math.min(s[1], s[2]))
            lu_.assertEquals(about.residual.shape, {1, 2})
            -- the shortest: in the space of A's rows
            small(x - A.H * (pinv(A.H) * x), nil, 100 * s[2], "shortest")
        end
    end
    lu_.assertIsTrue(close(lstsq(ones(3, 2), vec{1, 2, 3}), ones(2), 1e-6))
    local _, about = lstsq(ones(3, 2), vec{1, 2, 3}, {info = true})
    lu_.assertEquals({about.rank, about.method}, {1, "svd"})
    near(about.residual, math.sqrt(2), 1e-6)
    equals(lstsq(zeros(2, 3), vec{1, 2}), {0, 0, 0})
    lu_.assertEquals(lstsq(zeros(3, 0), vec{1, 2, 3}).shape, {0})
    lu_.assertEquals(lstsq(mat{{1}}, vec({1}, {dtype = "f64"})).dtype, "f64")
    raises(function() lstsq(ones(3, 2), vec{1, 2}) end, "rows")
    local A, b = random(6, 3, "f64", 1), random(6, 1, "f64", 2):flatten()
    for _, method in ipairs{"qr", "svd"} do
        local x, told = lstsq(A, b, {method = method, info = true})
        lu_.assertEquals({told.method, told.rank}, {method, 3})
        lu_.assertIsTrue(close(x, lstsq(A, b), 1e-12))
    end
    raises(function() lstsq(ones(3, 2), vec{1, 2, 3}, {method = "qr"}) end,
        "depend", "svd")
    raises(function() lstsq(A, b, {method = "lu"}) end, "method")
    -- a real matrix with complex right sides, and the other way round
    local A, Z = random(5, 3, "f32", 1), random(5, 3, "c128", 2)
    for _, pair in ipairs{{A, Z}, {Z, A}, {Z, A:f64()}, {A:c64(), A:f64()}} do
        local x = lstsq(pair[1], pair[2])
        lu_.assertEquals(x.dtype, "c128")
        small(pair[1].H * (pair[1] * x - pair[2]), wide(pair[1]), 100, "mixed")
    end
end

-- From 256 columns on: without pivots, in f64 refined from f32 factors, unless
-- the columns are nearly dependent; columns of one size or of many.
function TestOfFactors:test_large_ones_are_refined()
    local m, n = 300, 256
    local U = qr(randn(m, n, {dtype = "f64", seed = 1})).Q
    local V = qr(randn(n, n, {dtype = "f64", seed = 2})).Q
    local b = randn(m, 2, {dtype = "f64", seed = 3}) % mat{{1, 1e-30}}
    local function with(range)
        return 1e9 * U % logspace(0, -range, n, {dtype = "f64"}):row() * V.T
    end
    for range, expected in pairs{[1] = "refinement", [9] = "qr"} do
        local A = with(range)
        local x, told = lstsq(A, b, {info = true})
        lu_.assertEquals({told.method, told.rank}, {expected, n})
        lu_.assertEquals(told.steps ~= nil, expected == "refinement")
        for j = 1, 2 do
            local off = A * x:col(j) - b:col(j)
            lu_.assertIsTrue((A.T * off):norm() <=
                1e-15 * 10 ^ range * A:norm() * off:norm())
        end
        lu_.assertEquals(select(2, lstsq(A, b, {info = true,
            method = "direct"})).method, "qr")
    end
    local A, x = with(1), randn(n, {dtype = "f64", seed = 4})
    local y = A * x
    lu_.assertIsTrue((lstsq(A, y) - x):norm() <= 1e-13 * x:norm())
    lu_.assertIsTrue((lstsq(A, y, {method = "direct"}) - x):norm() <=
        1e-13 * x:norm())
    lu_.assertIsTrue((lstsq(A:f32(), y:f32()) - x):norm() <= 1e-3 * x:norm())
    lu_.assertIsTrue(cost(function() return lstsq(A, y) end).flops > 0)
    A["1:2, :"], A[{{}, 7}] = 0, A[{{}, 9}]
    lu_.assertEquals(select(2, lstsq(A, y, {info = true})).method, "svd")
end

function TestOfFactors:test_rank_and_spaces()
    for _, dtype in ipairs{"f64", "c128"} do
        local A = random(20, 5, dtype, 1) * random(5, 30, dtype, 2)
        lu_.assertEquals({rank(A), rank(A.H), rank(A, 1e9), rank(zeros(3, 3))},
            {5, 5, 0, 0})
        lu_.assertEquals(math.type(rank(A)), "integer")
        local N, Q, P = null(A), orth(A), pinv(A)
        lu_.assertEquals({N.shape, Q.shape, P.shape}, {{30, 25}, {20, 5},
            {30, 20}})
        small(A * N, A, 30, "null")
        small(N.H * N - one(25, dtype), nil, 30, "null")
        small(Q * (Q.H * A) - A, A, 30, "orth")
        small(A * P * A - A, A, 300, "pinv")
        small(P * A * P - P, P, 300, "pinv")
        small(A * P - (A * P).H, nil, 300, "pinv")
    end
    lu_.assertEquals({null(eye(3)).shape, orth(zeros(3, 2)).shape},
        {{3, 0}, {3, 0}})
    equals(pinv(zeros(2, 3)), {{0, 0}, {0, 0}, {0, 0}})
end

function TestOfFactors:test_conditions_and_norms()
    local A = mat{{1, 0}, {0, 4}}
    lu_.assertEquals({cond(A), cond(A, 1), cond(A, "inf"), cond(ones(2, 2), 1)},
        {4.0, 4.0, 4.0, math.huge})
    lu_.assertEquals({norm(A, 2), norm(A, "nuc")}, {4.0, 5.0})
    lu_.assertEquals({norm(zeros(0, 2), 2), norm(zeros(0, 2), "nuc")}, {0.0, 0.0})
    for _, p in ipairs{2, "nuc"} do
        for _, scale in ipairs{1, im} do
            lu_.assertIsNaN(norm(mat{{1, 2}, {3, 0 / 0}} * scale, p))
            lu_.assertEquals(norm(mat{{1, 0}, {3, -1 / 0}} % mat{{scale, 1},
                {1, 1}}, p), math.huge)
        end
    end
    lu_.assertIsTrue(cond(mat{{1, 2}, {2, 4}}) > 1e6)
    near(cond(A, "fro"), math.sqrt(17) * math.sqrt(17) / 4, 1e-6)
    local Z = A:c128() * im
    lu_.assertEquals({cond(Z), cond(Z, 1), norm(Z, 2), norm(Z, "nuc")},
        {4.0, 4.0, 4.0, 5.0})
    raises(function() norm(A, 3) end, "nuc", "{axis=1}")
    raises(function() norm(vec{1, 2}, "nuc") end, "matrix")
    equals(svdvals(A), {4, 1})
end

function TestOfFactors:test_expm()
    equals(expm(zeros(2, 2)), {{1, 0}, {0, 1}})
    -- e^(i t X) = cos t + i sin t X
    local X = mat({{0, 1}, {1, 0}}, {dtype = "f64"})
    lu_.assertIsTrue(close(expm(3 * im * X), math.cos(3) *
        one(2, "f64") + im * math.sin(3) * X, 1e-14))
    for _, dtype in ipairs(all_types) do
        local tolerance = 1e3 * t.unit[dtype]
        local angle = mat({{0, -1}, {1, 0}}, {dtype = dtype}) * 10
        lu_.assertIsTrue(close(expm(angle), mat({{math.cos(10),
            -math.sin(10)}, {math.sin(10), math.cos(10)}}, {dtype = dtype}),
            tolerance))
        local S = random(6, 6, dtype, 3)
        S = S + S.H
        local values, V = eigh(S):unpack()
        small(expm(S) - V * diag(values:exp()) * V.H, expm(S), 60, "expm")
        small(expm(S) * expm(-S) - one(6, dtype), nil,
            10 * norm(expm(S), 1) * norm(expm(-S), 1), "inverse")
    end
    -- far from normal: its norm says nothing of its exponential
    for _, b in ipairs{1e2, 1e6, 1e12} do
        local X = expm(mat({{1, b}, {0, -1}}, {dtype = "f64"}))
        near(X(1, 1), math.exp(1), 1e-14)
        near(X(1, 2), b * (math.exp(1) - math.exp(-1)) / 2, 1e-14)
        near(X(2, 2), math.exp(-1), 1e-14)
    end
    same(expm(zeros(0, 0)), zeros(0, 0))
    raises(function() expm(ones(2, 3)) end, "square")
end

function TestOfFactors:test_polynomials()
    local x = linspace(-1, 1, 20, {dtype = "f64"})
    local p = vec({2, -1, 0, 3}, {dtype = "f64"})
    lu_.assertIsTrue(close(polyfit(x, polyval(p, x), 3), p, 1e-12))
    local z, q = random(20, 1, "c128", 1):flatten(), vec{2 * im, -1, 0, 3 + im}
    lu_.assertIsTrue(close(polyfit(z, polyval(q, z), 3), q, 1e-10))
    lu_.assertIsTrue(close(polyfit(x, polyval(q, x), 3), q, 1e-6))
    lu_.assertIsTrue(polyval({1, im}, im) == 2 * im)
    lu_.assertEquals(polyval({1, 2, 3}, 2), 11)
    equals(polyval(vec{5}, mat{{1, 0 / 0}}), {{5, 0 / 0}})
    raises(function() polyfit(vec{1, 2}, vec{1, 2}, 2) end, "3 points", "2")
    raises(function() polyfit(vec{1, 2, 3}, vec{1, 2}, 1) end,
        "polyfit: x has 3 points, y 2")
    raises(function() polyfit(vec{1, 0 / 0}, vec{1, 2}, 1) end,
        "polyfit: x[2] is NaN")
    raises(function() polyfit(vec{1, 2}, vec{1 / 0, im}, 1) end,
        "polyfit: y[1] is Inf")
end

function TestOfFactors:test_polynomials_as_numbers()
    equals(poly{}, {1})
    equals(poly(vec{2, -1}), {1, -1, -2})
    equals(poly{im, -im}, {1, 0, 1})
    lu_.assertEquals(poly{im, -im}.dtype, "f64")
    lu_.assertTrue(poly{im, 1} == vec({1, -1 - im, im}, {dtype = "c128"}))
    local A = random(5, 5, "f64", 2)
    local p = poly(A)
    lu_.assertEquals(p.dtype, "f64")
    near(p[1], 1, 0)
    near(p[2], -trace(A), 1e-12)
    near(p[-1], -det(A), 1e-12)
    -- every matrix is a root of its own polynomial
    local sum = zeros(5, 5, {dtype = "f64"})
    for i = 1, 6 do sum = sum * A + p[i] * eye(5, {dtype = "f64"}) end
    lu_.assertTrue(norm(sum) < 1e-12 * norm(A) ^ 5)
    equals(poly(eye(2)), {1, -2, 1})
    equals(polyder{3, 2, 1}, {6, 2})
    equals(polyder(vec{7}), {0})
    equals(polyder{}, {0})
    equals(polyint{6, 2}, {3, 2, 0})
    equals(polyint({6, 2}, 1), {3, 2, 1})
    lu_.assertTrue(polyint{2 * im} == vec({2 * im, 0}, {dtype = "c128"}))
    local q, r = deconv(vec{1, 5, 6, 1}, {1, 2})
    equals(q, {1, 3, 0})
    equals(r, {0, 0, 0, 1})
    q, r = deconv({1, 2}, {1, 0, 0})
    equals(q, {0})
    equals(r, {1, 2})
    local x, y = random(4, 1, "f64", 1):flatten(), random(9, 1, "f64", 2):flatten()
    q, r = deconv(y, x)
    lu_.assertTrue(norm(conv(x, q) + r - y) < 1e-12 * (1 + norm(q)))
    raises(function() return deconv({1, 2}, {0, 1}) end, "first coefficient", "0")
    raises(function() return deconv({1, 2}, {}) end, "missing")
    raises(function() return poly{1, 0 / 0} end, "root 2 is NaN")
    raises(function() return polyder(ones(2, 2)) end, "p is a matrix")
    raises(function() return poly(ones(2, 3)) end,
        "poly: needs a square matrix, or a vector of roots, not 2x3")
    raises(function() return polyint({1}, 1 / 0) end, "coefficient 2 is Inf")
end

TestSpectra = {}

local function is_upper(A, below)
    lu_.assertIsTrue(tril(A, -below - 1):eq(0):all())
end

function TestSpectra:test_forms()
    each(function(A, n)
        local before = A:clone()
        for _, make in ipairs{hess, schur} do
            local Q, X = make(A):unpack()
            small(Q * X * Q.H - A, A, n, "form")
            small(Q.H * Q - one(n, A.dtype), nil, n, "Q")
            if n > 0 then is_upper(X, 1) end
            if n > 0 and make == schur and A.dtype:find "c" then
                is_upper(X, 0)
            end
        end
        same(A, before)
    end, true)
    -- two complex values are a block, real ones none
    is_upper(schur(mat{{1, 2}, {3, 4}}).T, 0)
    local block = schur(mat{{0, 1}, {-1, 0}}).T
    lu_.assertIsTrue(block(2, 1) ~= 0)
    raises(function() return schur(ones(2, 3)) end, "square")
    raises(function() return hess(eye(2)).T end, "F.Q", "F.H")
end

function TestSpectra:test_pairs()
    each(function(A, n, _, dtype)
        local S, B = A + A.H, A * A.H / math.max(n, 1) + one(n, dtype)
        local F = eigh(S, B)
        local values, V = F:unpack()
        small(S * V - B * V * diag(values), S, 10 * n, "pair")
        small(V.H * B * V - one(n, dtype), nil, 10 * n, "vectors")
        lu_.assertIsTrue(close(eigh(S, B).values, values, n * 1e-3))
        if n > 0 and n < 20 then
            local scale = norm(S) ^ n
            lu_.assertIsTrue(abs(F:det() - det(S)) <= 1e-4 * scale)
        end
    end, true)
    raises(function() return eigh(eye(2), mat{{1, 0}, {0, -1}}).values end,
        "B is not positive definite", "order 2")
    raises(function() return eigh(eye(2), eye(3)) end, "2x2", "3x3")
    raises(function() return eigh(eye(2), mat{{1, 2}, {3, 4}}) end, "symmetric")
    lu_.assertEquals(eigh(eye(2), eye(2, {dtype = "f64"})).values.dtype, "f64")
end

-- Of A v = value B v with any square matrices.
function TestSpectra:test_pairs_of_any_matrices()
    each(function(A, n, _, dtype)
        if n > 50 then return end
        local B = random(n, n, dtype, 77)
        local F = eig(A, B, {left = true})
        local values, V, W, alpha, beta = F:unpack()
        lu_.assertEquals({values.shape, V.shape, W.shape, alpha.shape, beta.shape},
            {{n}, {n, n}, {n, n}, {n}, {n}})
        if n == 0 then return end
        local unit = t.unit[dtype]
        local off = A * V % beta:row() - B * V % alpha:row()
        lu_.assertIsTrue(off:abs():max() <= 30 * n * unit *
            (norm(A) * beta:abs():max() + norm(B) * alpha:abs():max()))
        off = beta:col() % (W.H * A) - alpha:col() % (W.H * B)
        lu_.assertIsTrue(off:abs():max() <= 30 * n * unit *
            (norm(A) * beta:abs():max() + norm(B) * alpha:abs():max()))
        lu_.assertIsTrue((V:norm{axis = 1} - 1):abs():max() <= 10 * unit)
        lu_.assertIsTrue(close(values, alpha / beta, 1e-4))
        lu_.assertEquals(tostring(eig(A, B).values), tostring(values))
    end, true)
    -- as many are infinite as B lacks ranks
    local A = random(4, 4, "f64", 5)
    local F = eig(A, diag(vec({1, 2, 0, 4}, {dtype = "f64"})))
    lu_.assertEquals(F.values:isinf():sum(), 1)
    lu_.assertEquals(F.beta:eq(0):sum(), 1)
    equals(eig(eye(2), zeros(2, 2)).values, {1 / 0, 1 / 0})
    near(eig(A, one(4, "f64")):det(), det(A), 1e-12)
    lu_.assertStrContains(tostring(F), "eig of 4x4 f64 with B")
    lu_.assertEquals(eig(eye(2), eye(2, {dtype = "f64"})).values.dtype, "f64")
    raises(function() eig(eye(2), eye(3)) end, "2x2", "3x3")
    raises(function() eig(eye(2), ones(2, 3)) end, "square")
    raises(function() return eig(eye(2)).alpha end, "'alpha'")
end

function TestSpectra:test_ldl()
    each(function(A, n, _, dtype)
        local S = A + A.H
        local F = ldl(S)
        local L, D, p = F:unpack()
        if n > 0 then
            small(L * D * L.H - S[{p, p}], S, n, "LDL")
            is_upper(L.H, 0)
            lu_.assertIsTrue(diag(L):eq(1):all())
            local b = random(n, 2, dtype, 9)
            local x = F:solve(b)
            lu_.assertIsTrue(norm(S * x - b) <=
                30 * n * t.unit[dtype] * norm(S) * norm(x))
            lu_.assertIsTrue(close(F:solve(b[{{}, 1}]), x[{{}, 1}], 1e-3))
        end
        local size, sign = F:logdet()
        local of_lu, sign_of_lu = lu(S):logdet()
        lu_.assertIsTrue(abs(sign - sign_of_lu) < 0.1)
        lu_.assertAlmostEquals(size, of_lu, 1e-2 + 1e-2 * n)
    end, true)
    local Z = ldl(mat{{0, 1}, {1, 0}})
    equals(Z.D, {{0, 1}, {1, 0}})
    lu_.assertEquals(Z:det(), -1)
    equals(Z:solve(vec{3, 4}), {4, 3})
    local H = mat{{0, 2 * im}, {-2 * im, 0}}
    lu_.assertIsTrue(ldl(H).D == H)
    lu_.assertEquals(ldl(H):det(), -4)
    lu_.assertIsTrue(close(H * ldl(H):solve(vec{3, im}), vec{3, im}))
    raises(function() ldl(mat{{im, 1}, {1, 0}}) end, "not Hermitian")
    raises(function() ldl(zeros(2, 2)):solve(vec{1, 2}) end, "singular")
    -- where products of elements leave the range of f32
    for _, size in ipairs{1e-30, 1e30} do
        local B = mat{{1, 2, 0}, {2, 1, 3}, {0, 3, -2}}
        Z = ldl(B * size)
        local x = Z:solve(B * vec{3, 4, 5} * size)
        lu_.assertIsTrue(close(x, vec{3, 4, 5}, 1e-5))
        local log, sign = Z:logdet()
        near(log, logdet(B) + 3 * math.log(size), 1e-6)
        lu_.assertEquals(sign, select(2, logdet(B)))
        near(Z:det(), det(B) * size ^ 3, 1e-5)
    end
    near(chol(1e30 * one(2)):det(), 1e60, 1e-6)
    near(chol(1e38 * one(2)):det(), 1e76, 1e-6)
    raises(function() ldl(mat{{1, 2}, {3, 4}}) end, "not symmetric")
end

function TestSpectra:test_eigenvalues()
    each(function(A, n, _, dtype)
        local F = eig(A, {left = true})
        local values, V, W = F:unpack()
        lu_.assertEquals(eig(A).values.dtype, values.dtype)
        if n == 0 then return end
        local D = diag(values)
        local tolerance = 100 * n * t.unit[dtype] * norm(A)
        lu_.assertIsTrue(norm(A * V - V * D) <= tolerance * norm(V))
        lu_.assertIsTrue(norm(W.H * A - D * W.H) <= tolerance * norm(W))
        lu_.assertIsTrue(abs(trace(A) - values:sum()) <= tolerance)
        lu_.assertIsTrue(close(norm(V, {axis = 1}), ones(1, n), 1e-5))
        if n < 20 then
            lu_.assertIsTrue(abs(F:det() - det(A)) <= 1e-4 * norm(A) ^ n)
        end
    end, true)
    -- pairs, the one above the axis first; real ones stay real
    equals(eigvals(mat{{0, 1}, {-1, 0}}):imag(), {1, -1})
    lu_.assertEquals(eig(mat{{2, 1}, {0, 3}}).vectors.dtype, "f32")
    lu_.assertIsTrue(tostring(eig(eye(2))):find("|values| 1 to 1", 1, true) ~= nil)
    raises(function() eig(ones(2, 3)) end, "square")
    lu_.assertEquals(eig(eye(2) * im).values.dtype, "c64")
    lu_.assertIsTrue(abs(eig(mat{{im, 1}, {0, 2}}):det() - 2 * im) < 1e-5)
    raises(function() return eig(eye(2)).left end, "'left'")
end

function TestSpectra:test_roots()
    lu_.assertIsTrue(close(roots{1, -3, 2}, vec{2, 1}))
    equals(roots(vec{0, 2, -4, 0}), {2, 0})
    lu_.assertEquals(roots{7}.size, 0)
    lu_.assertIsTrue(close(roots{1, 0, 4}:imag(), vec{2, -2}))
    local p = {1, -15, 85, -225, 274, -120} -- of 1 to 5
    lu_.assertIsTrue(close(sort(roots(p)), vec{1, 2, 3, 4, 5}:f64(), 1e-12))
    local z = roots{1, -3 * im, -2, 0} -- of 0, i and 2 i
    lu_.assertIsTrue(close(sort(z:imag()), vec{0, 1, 2}, 1e-12))
    lu_.assertIsTrue(z:real():abs():max() < 1e-12)
    lu_.assertEquals({z.dtype, z[3]}, {"c128", complex(0)})
    raises(function() roots{im, complex(0, 1 / 0)} end, "coefficient 2 is")
    raises(function() roots{0, 0} end, "all coefficients")
    raises(function() roots{1, 0 / 0} end, "coefficient 2 is NaN")
    raises(function() roots{1, "x"} end, "coefficient 2")
end

function TestSpectra:test_equations()
    for _, dtype in ipairs(all_types) do
        for _, s in ipairs{{1, 1}, {3, 5}, {20, 7}, {0, 3}} do
            local A, B = random(s[1], s[1], dtype, 1), random(s[2], s[2], dtype, 2)
            local C = random(s[1], s[2], dtype, 3)
            local X = sylvester(A, B, C)
            lu_.assertEquals({X.rows, X.cols, X.dtype}, {s[1], s[2], dtype})
            if s[1] > 0 then
                local size = (norm(A) + norm(B)) * norm(X)
                lu_.assertIsTrue(norm(A * X + X * B - C) <=
                    100 * t.unit[dtype] * size)
                local Y = lyap(A, A + A.H)
                lu_.assertIsTrue(norm(A * Y + Y * A.H + A + A.H) <=
                    100 * t.unit[dtype] * 2 * norm(A) * norm(Y))
            end
        end
    end
    -- of which some are real, with pairs of complex eigenvalues
    local A, B = random(5, 5, "f64", 1), random(4, 4, "c64", 2)
    local C = random(5, 4, "f32", 3)
    local X = sylvester(A, B, C)
    lu_.assertEquals(X.dtype, "c128")
    lu_.assertIsTrue(norm(A * X + X * B - C) <= 1e-13 * norm(X))
    raises(function() sylvester(eye(2), -eye(2), ones(2, 2)) end,
        "share an eigenvalue")
    raises(function() sylvester(eye(2), eye(3), ones(2, 2)) end, "2x3", "2x2")
end

-- On a device as on the CPU, and nothing is computed in a dry run.
function TestOfFactors:test_places()
    local A = random(30, 30, "f64", 5)
    lu_.assertEquals({lu(A).L.device, svd(A).U.device, eigh(A + A.T).values.device,
        qr(A).Q.device, lstsq(A, A).device}, {A.device, A.device, A.device,
        A.device, A.device})
end

-- What factors of distributed matrices are updated by: each element once, beyond
-- whole tiles, too.
function TestOfFactors:test_updates_in_place()
    local subtract = require "lumat.factor_steps".subtract
    local is_gpu = ones(1).device ~= "cpu"
    for _, shape in ipairs{{2052, 2052}, {2050, 2304}, {2304, 2052}, {300, 513}} do
        for _, k in ipairs(is_gpu and {64, 1024} or {64}) do
            local A = randn(shape[1], k, {dtype = "f32", seed = 1})
            local B = randn(k, shape[2], {dtype = "f32", seed = 2})
            local C = randn(shape[1], shape[2], {dtype = "f32", seed = 3})
            local wanted = C - A * B
            subtract(C, A, B)
            lu_.assertTrue((C - wanted):abs():max() <= 1e-5 * k)
        end
    end
    for _, dtype in ipairs(all_types) do
        local A, B, C = random(9, 5, dtype, 1), random(5, 7, dtype, 2),
            random(9, 7, dtype, 3)
        local wanted = C - A * B
        subtract(C, A, B)
        lu_.assertTrue((C - wanted):norm() <= 1e-5, dtype)
    end
end

os.exit(lu_.LuaUnit.run("-o", "tap"))
