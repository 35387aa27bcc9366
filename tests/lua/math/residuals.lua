-- The residuals by which LAPACK's own tests judge factorisations (Anderson et
-- al., LAPACK Users' Guide, and its working note 41): |what should be zero| over
-- eps, the sizes of what it is made of and of the problem, 1-norms. A stable
-- method stays below 30, whatever its matrix; and the matrices to try.
local residuals = {}
local eps = {f32 = 2.0 ^ -24, f64 = 2.0 ^ -53, c64 = 2.0 ^ -24, c128 = 2.0 ^ -53}

local function is_complex(A)
    return A.dtype == "c64" or A.dtype == "c128"
end

local function wide(A)
    return is_complex(A) and A:c128() or A:f64()
end

local function size(A)
    return A.size == 0 and 0 or norm(A, 1)
end

local function one_like(A, n)
    return eye(n, {dtype = is_complex(A) and "c128" or "f64"})
end

-- --- matrices ----------------------------------------------------------------

-- In f64, or c128 where it is to be complex.
local function random(m, n, dtype, seed)
    local A = randn(m, n, {seed = seed, dtype = "f64"})
    if dtype ~= "c64" and dtype ~= "c128" then return A end
    return complex(A, randn(m, n, {seed = seed + 100, dtype = "f64"}))
end

local function with_values(n, dtype, values)
    local Q = qr(random(n, n, dtype, 1)).Q
    return Q * (values:col() % qr(random(n, n, dtype, 2)).Q)
end

-- name -> f(n, dtype), n x n in f64 or c128.
local makers = {
    random = function(n, dtype) return random(n, n, dtype, 3) end,
    -- singular values from 1 down to 10 eps
    ["ill-conditioned"] = function(n, dtype)
        return with_values(n, dtype, exp(linspace(0, math.log(10 * eps[dtype]),
            n, {dtype = "f64"})))
    end,
    ["one small value"] = function(n, dtype)
        local values = ones(n, {dtype = "f64"})
        values[n] = 10 * eps[dtype]
        return with_values(n, dtype, values)
    end,
    graded = function(n, dtype)
        return random(n, n, dtype, 4) %
            exp2(linspace(0, -20, n, {dtype = "f64"})):col()
    end,
    large = function(n, dtype)
        local most = eps[dtype] == eps.f32 and 60 or 480
        return random(n, n, dtype, 5) * 2.0 ^ most
    end,
    small = function(n, dtype)
        local least = eps[dtype] == eps.f32 and -50 or -400
        return random(n, n, dtype, 5) * 2.0 ^ least
    end,
    triangular = function(n, dtype)
        return triu(random(n, n, dtype, 6)) + 2 * one_like({dtype = dtype}, n)
    end,
    repeated = function(n, dtype)
        return with_values(n, dtype, floor(linspace(4, 1, n, {dtype = "f64"})))
    end,
}

for _, name in ipairs{"chebspec", "circul", "clement", "forsythe", "frank",
    "grcar", "kahan", "lehmer", "lotkin", "minij", "parter", "prolate", "ris",
    "triw"} do
    makers["gallery " .. name] = function(n) return gallery(name, n,
        {dtype = "f64"}) end
end

local function names_of(t)
    local names = {}
    for name in pairs(t) do names[#names + 1] = name end
    table.sort(names)
    return names
end
residuals.kinds = names_of(makers)

-- As it lies: plain, transposed, or rows and columns of a larger matrix.
local layouts = {
    function(A) return A end,
    function(A) return A.T:clone().T end,
    function(A)
        local m, n = A.rows, A.cols
        local large = ones(2 * m + 1, n + 3, {dtype = A.dtype, device = A.device})
        local block = large[{{2, 2 * m, 2}, {3, n + 2}}]
        if A.size > 0 then block[{{}, {}}] = A end
        return block
    end,
}

-- n x n of that name and dtype; the layouts take turns.
local turn = 0
local function matrix(name, n, dtype)
    if n == 0 then return zeros(0, 0, {dtype = dtype}) end
    local A = makers[name](n, dtype)
    turn = turn + 1
    return layouts[turn % #layouts + 1](A[dtype](A))
end

-- --- residuals ---------------------------------------------------------------

-- |X| over eps times the sizes, which may be 0 together with it.
local function ratio(X, dtype, ...)
    local found, by = size(X), eps[dtype]
    for _, factor in ipairs{...} do by = by * factor end
    return found == 0 and 0 or found / by
end

local function orthonormal(Q, dtype)
    return ratio(Q.H * Q - one_like(Q, Q.cols), dtype, Q.rows)
end

-- by name: what f(A) has to give, {ratio, …}
local checks = {}

function checks.lu(A, W, n)
    local L, U, p = lu(A):unpack()
    return ratio(wide(L) * wide(U) - W[p], A.dtype, n, size(W))
end

function checks.solve(A, W, n)
    local b = A * ones(n, 2, {dtype = A.dtype})
    local ok, x = pcall(solve, A, b)
    if not ok then return tostring(x):find "singular" and 0 or error(x, 0) end
    if x:isnan():any() or x:isinf():any() then return 0 end -- of no condition
    x = wide(x)
    return ratio(wide(b) - W * x, A.dtype, size(W), size(x), math.max(1, n / 10))
end

function checks.inverse(A, W, n)
    local ok, X = pcall(inv, A)
    if not ok then return tostring(X):find "singular" and 0 or error(X, 0) end
    X = wide(X)
    if size(X) * size(W) > 1 / eps[A.dtype] or size(X) ~= size(X) then return 0 end
    return ratio(W * X - one_like(A, n), A.dtype, n, size(W), size(X))
end

function checks.qr(A, W, n)
    local Q, R = qr(A):unpack()
    Q, R = wide(Q), wide(R)
    return ratio(Q * R - W, A.dtype, n, size(W)), orthonormal(Q, A.dtype)
end

function checks.pivoted_qr(A, W, n)
    local Q, R, p = qr(A, {pivots = true}):unpack()
    Q, R = wide(Q), wide(R)
    return ratio(Q * R - W[{{}, p}], A.dtype, n, size(W)),
        orthonormal(Q, A.dtype)
end

function checks.least_squares(A, W, n)
    local tall = A[{{}, {1, (n + 1) // 2}}]
    local b = wide(ones(n, 1, {dtype = A.dtype}))
    local x = wide(lstsq(tall, ones(n, 1, {dtype = A.dtype})))
    local T = wide(tall)
    local left = b - T * x
    -- what is left is orthogonal to the columns
    return ratio(left.H * T, A.dtype, n, size(T), size(b) + size(T) * size(x))
end

function checks.svd(A, W, n)
    local U, S, V = svd(A):unpack()
    U, V = wide(U), wide(V)
    return ratio((U % wide(S):row()) * V.H - W, A.dtype, n, size(W)),
        orthonormal(U, A.dtype), orthonormal(V, A.dtype)
end

function checks.eigh(A, W, n)
    local S = (A + A.H) / 2
    local values, V = eigh(S):unpack()
    V, S = wide(V), wide(S)
    return ratio(S * V - V % wide(values):row(), A.dtype, n, size(S)),
        orthonormal(V, A.dtype)
end

function checks.cholesky(A, W, n)
    local scale = size(W) > 0 and size(W) or 1
    local B = W / scale
    local S = B * B.H + one_like(W, n) / math.max(n, 1)
    S = (S + S.H) * (scale / 2)
    S = S[A.dtype](S)
    local L = wide(chol(S).L)
    S = wide(S)
    return ratio(L * L.H - S, A.dtype, n, size(S))
end

function checks.ldl(A, W, n)
    local S = (A + A.H) / 2
    local L, D, p = ldl(S):unpack()
    L, D, S = wide(L), wide(D), wide(S)
    return ratio(L * D * L.H - S[{p, p}], A.dtype, n, size(S))
end

function checks.hessenberg(A, W, n)
    local Q, H = hess(A):unpack()
    Q, H = wide(Q), wide(H)
    return ratio(Q * H * Q.H - W, A.dtype, n, size(W)), orthonormal(Q, A.dtype)
end

function checks.schur(A, W, n)
    local Q, T = schur(A):unpack()
    Q, T = wide(Q), wide(T)
    return ratio(Q * T * Q.H - W, A.dtype, n, size(W)), orthonormal(Q, A.dtype)
end

function checks.eig(A, W, n)
    local values, V = eig(A):unpack()
    V = wide(V)
    return ratio(W * V - V % wide(values):row(), A.dtype, n, size(W), size(V))
end

residuals.checks = names_of(checks)

-- Of elements of many sizes LAPACK's geev balances the matrix first: its values
-- are better for it, but residuals are those of the balanced one.
local is_balanced = {graded = true, ["gallery forsythe"] = true}

-- Calls tell(ratio) of what is 30 or more, for a check of n x n of a kind; gives
-- the largest ratio.
function residuals.judge(check, kind, n, dtype, tell)
    local largest = 0
    if check == "eig" and is_balanced[kind] then return largest end
    local A = matrix(kind, n, dtype)
    for _, r in ipairs{checks[check](A, wide(A), n)} do
        if not (r < 30) then tell(r) end
        largest = math.max(largest, r)
    end
    return largest
end

return residuals
