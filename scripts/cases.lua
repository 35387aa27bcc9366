-- Products to test and to time, each declared once: what is multiplied, how it
-- lies in memory, how it is made on a device and how a result is judged.
--
-- A case is a table:
--   m, n, k       C (m x n) = A (m x k) B (k x n); a dot has only k
--   operation     "matmul" (when absent) or "dot"
--   dtype         "f32" (when absent) or "f64"
--   data          one of cases.data ("uniform" when absent)
--   turned        "NN" "TN" "NT" "TT": which operands are transposed views
--   block         true: operands and result are blocks at odd offsets of
--                 larger matrices with an odd leading dimension
--   alpha, beta   1 and 0 when absent
local cases = {}
local nan = 0 / 0

-- --- data ----------------------------------------------------------------

local function signs(m, n, how)
    return randint(0, 1, m, n, how) * 2 - 1
end

local function uniform(m, n, how, low, high)
    return rand(m, n, {low = low, high = high, seed = how.seed,
        dtype = how.dtype, device = how.device})
end

-- Integers up to `most` where only three of the inner dimension's places are
-- not zero in A: no sum leaves what f32 holds, and the products need all of
-- its bits.
local function few_integers(most)
    return function(m, n, how, side)
        local X = randint(-most, most, m, n, how)
        if side == "B" then return X end
        local kept = zeros(n, {dtype = how.dtype, device = how.device})
        for _, j in ipairs{1, (n + 1) // 2, n} do kept[j] = 1 end
        return X % kept:row()
    end
end

-- Uniform numbers and a few that are not finite, in A or in B.
local function planted(x)
    return function(m, n, how, side)
        local X = uniform(m, n, how, -1, 1)
        if side == "A" then X[{(m + 1) // 2, (n + 1) // 2}] = x end
        if side == "B" then X[{1, (n + 1) // 2}] = -x end
        return X
    end
end

-- Whole multiples of the smallest number of all, times small integers: exact
-- unless what is below the normal range is lost.
local smallest = {f32 = 2.0 ^ -149, f64 = 2.0 ^ -1074}
local function denormals(m, n, how, side)
    local X = randint(-8, 8, m, n, how)
    return side == "A" and X * smallest[how.dtype] or X
end

-- name, make(rows, cols, how, side), whether results must be exact in kernels
-- of full precision, and whether others may lose everything.
cases.data = {
    {name = "uniform", text = "uniform -1 .. 1",
     make = function(m, n, how) return uniform(m, n, how, -1, 1) end},
    {name = "positive", text = "uniform 0 .. 1",
     make = function(m, n, how) return uniform(m, n, how, 0, 1) end},
    {name = "wide", text = "2^uniform(-10, 10), random sign",
     make = function(m, n, how)
         local X = exp2(uniform(m, n, how, -10, 10))
         how.seed = how.seed + 1000
         return X % signs(m, n, how)
     end},
    {name = "lognormal", text = "lognormal, sigma 6",
     make = function(m, n, how) return exp(randn(m, n, how) * 6) end},
    {name = "integers", text = "integers -8 .. 8", exact = true,
     make = function(m, n, how) return randint(-8, 8, m, n, how) end},
    {name = "bits", text = "0 and 1", exact = true,
     make = function(m, n, how) return randint(0, 1, m, n, how) end},
    {name = "large", text = "integers up to 2048", exact = true,
     make = few_integers(2048)},
    {name = "larger", text = "integers up to 2300", exact = true,
     make = few_integers(2300)},
    {name = "denormals", text = "below the normal range", exact = true,
     tiny = true, make = denormals},
    {name = "nan", text = "uniform, one NaN in A and in B",
     special = true, make = planted(nan)},
    {name = "inf", text = "uniform, one Inf in A and in B",
     special = true, make = planted(math.huge)},
}
for _, d in ipairs(cases.data) do cases.data[d.name] = d end

-- --- operands ------------------------------------------------------------

-- X as a block at an odd offset of a matrix with an odd leading dimension;
-- what lies around it is `around`.
local function as_block(X, around)
    local width = X.cols + 6 + X.cols % 2
    width = width + (width % 2 == 0 and 1 or 0)
    local big = full(X.rows + 5, width, around,
        {dtype = X.dtype, device = X.device})
    local block = big[{{4, 3 + X.rows}, {4, 3 + X.cols}}]
    block[":,:"] = X
    return block, big
end

-- X lying as the case says: transposed, in a block, or both.
local function laid(case, X, is_turned)
    if is_turned then X = X.T:clone() end
    if case.block then X = as_block(X, nan) end
    return is_turned and X.T or X
end

local function is_turned(case, side)
    return (case.turned or "NN"):sub(side, side) == "T"
end

-- The case's A and B (x and y of a dot), and C0 where beta is not 0.
function cases.operands(case, where, seed)
    local make = cases.data[case.data or "uniform"].make
    local dtype = case.dtype or "f32"
    local function how(offset)
        return {seed = (seed or 1) + offset, dtype = dtype, device = where}
    end
    if case.operation == "dot" then
        local A = laid(case, make(1, case.k, how(0), "A"), false)
        local B = laid(case, make(case.k, 1, how(1), "B"), false)
        return A[1], B.T[1]
    end
    local A = make(case.m, case.k, how(0), "A")
    local B = make(case.k, case.n, how(1), "B")
    local C0 = (case.beta or 0) ~= 0 and
        randint(-8, 8, case.m, case.n, how(2)) or nil
    return laid(case, A, is_turned(case, 1)), laid(case, B, is_turned(case, 2)),
        C0
end

-- --- running -------------------------------------------------------------

local SENTINEL = 12345 -- around a result that is a block

-- Where the result goes: full of NaN, or of C0; and what it is a block of.
function cases.target(case, C0, where)
    local how = {dtype = case.dtype or "f32", device = where}
    local C = C0 and C0:clone() or full(case.m, case.n, nan, how)
    if not case.block then return C end
    return as_block(C, SENTINEL)
end

-- Was anything written outside of the block?
function cases.is_spilled(C, big)
    return big and sum(big:ne(SENTINEL)) > sum(C:ne(SENTINEL))
end

-- The result by a kernel, and what is wrong with the places written, or nil.
function cases.run(case, A, B, C0, kernel)
    if case.operation == "dot" then return dot(A, B, {kernel = kernel}) end
    local C, big = cases.target(case, C0, A.device)
    matmul(A, B, {kernel = kernel, alpha = case.alpha, beta = case.beta,
        out = C})
    return C, cases.is_spilled(C, big) and "wrote outside of the result" or nil
end

-- --- judging -------------------------------------------------------------

-- Multiplications that the CPU's three loops may have for a reference.
local most_loops = 2e7

-- The f64 kernel that judges large products on a device: the vendor's where
-- it runs, as nothing here is made of it.
local judges = {}

local function find_judge(where)
    local A = ones(2, 2, {dtype = "f64", device = where})
    for _, k in ipairs(kernel_list(where)) do
        if k.operation == "matmul" and k.available and
            (k.name == "cublas" or k.name == "openblas") and
            pcall(matmul, A, A, {kernel = k.name}) then
            return k.name
        end
    end
    return "auto"
end

local function judge_kernel(where)
    judges[where] = judges[where] or find_judge(where)
    return judges[where]
end

-- A dot's is a sum of products, element by element.
local function dot_reference(A, B)
    local function wrapped(x)
        return mat({{x}}, {dtype = "f64", device = "cpu"})
    end
    return {exact = wrapped(sum(A % B)), size = wrapped(sum(abs(A) % abs(B)))}
end

-- alpha A B + beta C0 and |alpha| |A| |B| + |beta| |C0| in double precision,
-- where A lies or on the CPU: by another kernel than those that are judged
-- wherever there is one.
function cases.reference(case, A, B, C0)
    A, B, C0 = A:f64(), B:f64(), C0 and C0:f64()
    if case.operation == "dot" then return dot_reference(A, B) end
    local alpha, beta = case.alpha or 1, case.beta or 0
    local kernel = judge_kernel(A.device)
    if 1.0 * case.m * case.n * case.k <= most_loops then
        A, B, C0 = A:to("cpu"), B:to("cpu"), C0 and C0:to("cpu")
        kernel = "reference"
    end
    local function product(x, y, z, p, q)
        local out = z and z:clone()
        return matmul(x, y, {kernel = kernel, alpha = p, beta = z and q,
            out = out}) or out
    end
    return {exact = product(A, B, C0, alpha, beta),
        size = product(A:abs(), B:abs(), C0 and C0:abs(), math.abs(alpha),
            math.abs(beta))}
end

-- The statistical bound of k roundings in a type, relative to |A||B|: Higham
-- and Mary, A new approach to probabilistic rounding error analysis, 2019,
-- with lambda = 6.
function cases.statistical(dtype, k)
    return 6 * math.sqrt(k + 2) * (dtype == "f64" and 2.0 ^ -53 or 2.0 ^ -24)
end

-- What a kernel of full precision keeps, others being tf32 and bf16.
function cases.is_full(rung)
    return rung.precision == "f32"
end

-- How far C is from the reference. error: by Frobenius norms; worst: the
-- largest |e| / (|A||B|); ratio: to the bound gamma; chance: to the
-- statistical one; alike: do NaN and Inf stand where they must; equal: are
-- all the others exact.
function cases.errors(case, C, known, gamma)
    if type(C) == "number" then
        C = mat({{C}}, {dtype = "f64", device = known.exact.device})
    end
    local wide, exact = C:f64():to(known.exact.device), known.exact
    local finite = isfinite(exact)
    local alike = where(finite, isfinite(wide),
        (isnan(wide) & isnan(exact)) | wide:eq(exact))
    local off = where(finite & alike, (wide - exact):abs(), 0)
    local dtype = case.dtype or "f32"
    local lost = case.k * smallest[dtype]
    local function most(limit)
        return where(off:eq(0), 0, off / limit):max()
    end
    local scale = norm(where(finite, exact, 0))
    return {alike = alike:all(), equal = not any(off:ne(0)),
        error = norm(off) / (scale > 0 and scale or 1),
        worst = most(known.size), ratio = most(known.size * gamma + lost),
        chance = most(known.size * cases.statistical(dtype, case.k) + lost)}
end

-- What a kernel promises, with the rounding of the reference itself.
function cases.bound(case, rung, where)
    local dtype = case.dtype or "f32"
    return kernel_bound(case.operation or "matmul", rung.name, dtype, case.k,
        where) + kernel_bound("matmul", "reference", "f64", case.k, "cpu")
end

-- nil when C is what this kernel promises, or what is wrong; and the errors.
function cases.judge(case, C, known, rung, where)
    local found = cases.errors(case, C, known, cases.bound(case, rung, where))
    local data = cases.data[case.data or "uniform"]
    if not found.alike then
        return "NaN or Inf where they do not belong", found
    elseif data.tiny and not cases.is_full(rung) then
        return nil, found
    elseif found.ratio > 1 then
        return ("%.3g times its bound"):format(found.ratio), found
    elseif not cases.is_full(rung) then
        return nil, found
    elseif data.exact and not found.equal then
        return ("not exact: relative error %.2g"):format(found.error), found
    elseif found.chance > 1 then
        return ("%.3g times what chance allows"):format(found.chance), found
    end
    return nil, found
end

-- --- the lists -----------------------------------------------------------

-- A line that names the case.
function cases.name(case)
    local size = case.operation == "dot" and ("%d"):format(case.k) or
        ("%dx%dx%d"):format(case.m, case.n, case.k)
    local words = {case.operation or "matmul", size, case.dtype or "f32",
        case.turned or "NN", case.data or "uniform"}
    if case.block then words[#words + 1] = "block" end
    if case.alpha or case.beta then
        words[#words + 1] = ("alpha %g beta %g"):format(case.alpha or 1,
            case.beta or 0)
    end
    return table.concat(words, " ")
end

cases.edges = {1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 129, 1055, 2137}
cases.turns = {"NN", "NT", "TN", "TT"}

-- m, n, k of the products that are timed, beside squares.
cases.oblongs = {{2137, 108, 1055}, {16384, 64, 16384}, {64, 64, 131072},
    {32768, 128, 128}, {256, 256, 16384}}

-- --- for timing ----------------------------------------------------------

-- Operands and results that together do not fit a cache: {A, B, C} each.
local beyond_cache = 128 * 2 ^ 20

-- Vectors are parts of two long ones.
local function dot_sets(case, where, count)
    local all = {operation = "dot", k = case.k * count, dtype = case.dtype,
        data = case.data}
    local x, y = cases.operands(all, where)
    local sets = {}
    for i = 1, count do
        local part = {{1 + (i - 1) * case.k, i * case.k}}
        sets[i] = {A = x[part], B = y[part]}
    end
    return sets
end

function cases.sets(case, where)
    local size = case.dtype == "f64" and 8 or 4
    if case.operation == "dot" then
        return dot_sets(case, where, math.ceil(beyond_cache /
            (2 * size * case.k)))
    end
    local most, sets = 64, {}
    local bytes = size * (case.m * case.k + case.k * case.n + case.m * case.n)
    for i = 1, math.min(most, math.ceil(beyond_cache / bytes)) do
        local A, B = cases.operands(case, where, 10 * i)
        sets[i] = {A = A, B = B, C = cases.target(case, nil, where)}
    end
    return sets
end

-- Every edge in every place, the other two of a modest size.
function cases.shapes()
    local shapes = {}
    for _, edge in ipairs(cases.edges) do
        shapes[#shapes + 1] = {edge, 65, 33}
        shapes[#shapes + 1] = {33, edge, 65}
        shapes[#shapes + 1] = {65, 33, edge}
    end
    shapes[#shapes + 1] = {127, 129, 127}
    shapes[#shapes + 1] = {2137, 108, 1055}
    return shapes
end

return cases
