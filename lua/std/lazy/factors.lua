-- Factorisations as objects, and what is made of them: least squares, rank,
-- condition, null spaces. The steps are LAPACK's; see lua/math/factor_steps.c.
--
-- An object holds a copy of its matrix, which nobody can write to, works out
-- its parts when they are asked for, and hands out copies of them.
local library, _, _, private = ...
local checks = require "lumat.checks"
local steps = require "lumat.factor_steps"
local fail, is_complex, shape_of = checks.fail, checks.is_complex,
    checks.shape_of
local factors = {}
local ipairs, next, rawequal, require, select, setmetatable, tostring, type =
    ipairs, next, rawequal, require, select, setmetatable, tostring, type
local concat = table.concat
local ceil, huge, larger = math.ceil, math.huge, math.max
local format, unpack = string.format, table.unpack

local unit = {f32 = 2.0 ^ -23, f64 = 2.0 ^ -52, c64 = 2.0 ^ -23,
    c128 = 2.0 ^ -52}

-- --- operands --------------------------------------------------------------

-- A in the narrowest type that has its values and B's.
local function common(A, B)
    local is_wide = unit[A.dtype] == unit.f64 or unit[B.dtype] == unit.f64
    if is_complex(A) or is_complex(B) then
        return is_wide and A:c128() or A:c64()
    end
    return is_wide and A:f64() or A
end

local function as_wide(A)
    return is_complex(A) and A:c128() or A:f64()
end

-- A copy to factor, which has to be of finite numbers, and symmetric where that
-- is wanted (of complex ones Hermitian): but for what rounding a product may
-- leave.
local function operand(what, A, square, symmetric)
    checks.matrix(what, "A", A)
    if A.ndim ~= 2 then
        fail(what, "needs a matrix, not %s; v:col() is a column",
            shape_of(A))
    elseif square and A.rows ~= A.cols then
        fail(what, "needs a square matrix, not %s", shape_of(A))
    end
    local row, col, apart, largest = steps.look(A, symmetric)
    if row then
        fail(what, "A[{%d, %d}] is %s; a factorisation needs finite numbers",
            row, col, checks.figure("%s", A(row, col)))
    end
    A = A.dtype == "bool" and A:f32() or A:clone()
    if symmetric and apart and
        apart > 100 * A.rows * unit[A.dtype] * largest then
        local kind, turned = "symmetric", "A.T"
        if is_complex(A) then kind, turned = "Hermitian", "A.H" end
        fail(what, "the matrix is not %s: A and %s differ by %.3g; (A + %s) " ..
            "/ 2 is", kind, turned, apart, turned)
    end
    return A
end

-- Zeros of the type and on the device of `like`; without cols a vector.
local function zeros(like, rows, cols)
    local there = {dtype = like.dtype, device = like.device}
    if cols then return library.zeros(rows, cols, there) end
    return library.zeros(rows, there)
end

-- The first rows and columns, of which there may be none.
local function corner(A, rows, cols)
    if rows == 0 or cols == 0 then return zeros(A, rows, cols) end
    return A[{{1, rows}, {1, cols}}]
end

-- b fits the rows of the matrix that was factored.
local function right_side(what, rows, b)
    checks.matrix(what, "b", b)
    if b.rows ~= rows then
        fail(what, "the matrix has %d rows, the right side is %s", rows,
            shape_of(b))
    end
    return b
end

local function no_convergence(what, count)
    fail(what, "%s did not converge", checks.plural(count, "value"))
end

-- How many are true; in a dry run, where nobody knows, all that may be.
local function count_of(mask, all)
    local count = mask:sum()
    return type(count) == "number" and ceil(count) or all
end

-- The number of singular values that count: above the largest times eps
-- times the longer side, as NumPy and Octave have it, or above `tol`.
local function count_above(S, rows, cols, tol)
    if tol and type(tol) ~= "number" then
        fail("rank", "tol is %s, expected a number", checks.brief(tol))
    end
    if S.rows == 0 then return 0 end
    tol = tol or larger(rows, cols) * unit[S.dtype] * S[1]
    return count_of(S:gt(tol), S.rows)
end

-- --- objects ---------------------------------------------------------------

local state = setmetatable({}, {__mode = "k"}) -- of each object
-- By name: parts, functions that work one or several out; order, a function
-- of the state, their names; methods; says, what is told behind the shape.
local kinds = {}
local function add_kind(name, kind)
    for method, f in next, kind.methods do
        kind.methods[method] = checks.placed(f)
    end
    kinds[name] = kind
end

-- What Tab offers behind an object.
local function members_of(kind)
    local members = {}
    for _, name in ipairs(kind.order{pivots = true}) do members[name] = true end
    for name, f in next, kind.methods do members[name] = f end
    return members
end

-- The part of an object, worked out once.
local function part(F, name)
    local s = state[F]
    if s[name] == nil then
        local make = kinds[s.kind].parts[name]
        if not make then return nil end
        make(s)
    end
    return s[name]
end

local function list_of(names)
    for i, name in ipairs(names) do names[i] = "F." .. name end
    return concat(names, ", ")
end

local meta = {}

function meta.__index(F, name)
    local kind = kinds[state[F].kind]
    if kind.methods[name] then return kind.methods[name] end
    for _, known in ipairs(kind.order(state[F])) do
        if known == name then return checks.handed_out(part(F, name)) end
    end
    local names = {}
    for method in next, kind.methods do names[#names + 1] = method end
    table.sort(names)
    fail(state[F].kind, "there is no '%s' of it: it has %s, and the methods " ..
        "%s", tostring(name), list_of(kind.order(state[F])),
        concat(names, " "))
end

function meta.__newindex(F, name)
    fail(state[F].kind, "'%s' cannot be assigned: its parts are what they are",
        tostring(name))
end

function meta.__tostring(F)
    local s = state[F]
    local says = kinds[s.kind].says
    return format("%s of %s %s%s", s.kind, s.shape, s.dtype,
        says and says(F, s) or "")
end

-- Operators, of which none is meant: the parts are.
local function refuse(A, B)
    local F = state[A] and A or B
    fail(state[F].kind, "gives an object, whose parts are %s; all of them: " ..
        "F:unpack()", list_of(kinds[state[F].kind].order(state[F])))
end
for _, name in ipairs{"add", "sub", "mul", "div", "mod", "pow", "unm", "idiv",
    "concat", "len", "lt", "le", "call", "band", "bor", "bxor"} do
    meta["__" .. name] = refuse
end
for name, f in next, meta do meta[name] = checks.placed(f) end
meta.__name, meta.__metatable = "factorisation", "factorisation"

local function object(kind, A, fields)
    if not kinds[kind].meta then
        local own = checks.copied(meta)
        own.__members = members_of(kinds[kind])
        kinds[kind].meta = own
    end
    local F, s = setmetatable({}, kinds[kind].meta), fields or {}
    s.kind, s.A, s.dtype, s.device = kind, A, A.dtype, A.device
    s.rows, s.cols, s.shape = A.rows, A.cols, shape_of(A)
    state[F] = s
    return F
end

-- The parts as several values, in their order.
local function unpack_parts(F)
    local list, s = {}, state[F]
    local order = kinds[s.kind].order(s)
    for i, name in ipairs(order) do
        list[i] = checks.handed_out(part(F, name))
    end
    return unpack(list, 1, #order)
end

local function fixed(...)
    local order = {...}
    return function() return {unpack(order)} end
end

-- ", rcond 0.12" of a square one.
local function says_rcond(F, s)
    return s.rows == s.cols and s.rows > 0 and
        format(", rcond %.2g", F:rcond()) or ""
end

-- Of a sparse A, as lua/std/lazy/sparse_systems.lua makes them.
local function of_sparse(what, A, options)
    return require "lumat.sparse_systems"[what](A, options)
end

-- --- lu --------------------------------------------------------------------

local function packed_lu(s)
    if not s.packed then
        s.packed, s.p, s.sign, s.zero = steps.lu(s.A, s.kernel)
    end
    return s
end

local function square_lu(what, F)
    local s = packed_lu(state[F])
    if s.rows ~= s.cols then
        fail(what, "needs a square matrix, not %s", s.shape)
    end
    return s
end

local function smaller_side(s)
    return math.min(s.rows, s.cols)
end

-- The rest of a solution: T x = b of a triangle.
local function by_triangle(T, b, how)
    local x, zero = steps.triangle(T, b, how)
    if not x then
        fail("solve", "the matrix is singular (pivot %d is zero)", zero)
    end
    return x
end

-- Once for an object: what solve says of a poor matrix.
local function warn_if_poor(F, s)
    if not (F:rcond() < 10 * unit[s.dtype]) then return end
    private.warn_once("solve", format("the matrix is nearly singular or badly " ..
        "scaled (rcond %.1e)", s.rcond))
end

local function diagonal(A)
    return library.diag(A)
end

-- Of the numbers on a diagonal: the sign of their product, of complex ones the
-- product over its size, and the logarithm of its size.
local function sign_and_log(d)
    if d.rows == 0 then return 1, 0.0 end
    local zeros = d:eq(0):sum()
    if zeros > 0 then return 0, -huge end
    if is_complex(d) then
        return library.sign(library.sign(d):prod()), d:abs():log():sum()
    end
    return d:lt(0):sum() % 2 == 0 and 1 or -1, d:abs():log():sum()
end

local lu_methods = {unpack = unpack_parts}

function lu_methods.solve(F, b)
    local s = square_lu("solve", F)
    right_side("solve", s.rows, b)
    if s.rows == 0 then return b:clone() end
    local y = steps.triangle(s.packed, b[s.p], {lower = true, unit = true})
    local x = by_triangle(s.packed, y, {})
    warn_if_poor(F, s)
    return x
end

function lu_methods.det(F)
    local s = square_lu("det", F)
    return s.rows == 0 and 1.0 or s.sign * diagonal(s.packed):prod()
end

function lu_methods.logdet(F)
    local s = square_lu("logdet", F)
    local sign, size = sign_and_log(diagonal(s.packed))
    return size, sign * s.sign
end

-- Of factors there are, by what they solve; in a dry run, where nothing is
-- looked at, as of any matrix.
local function rcond_by(s, solve, turned)
    if select("#", steps.look(s.A)) == 0 then return library.rcond(s.A) end
    return require "lumat.systems".rcond_of(s.A, solve, turned)
end

function lu_methods.rcond(F)
    local s = square_lu("rcond", F)
    if s.rcond or s.zero > 0 then
        s.rcond = s.rcond or 0.0
        return s.rcond
    end
    local function solve(b)
        return steps.triangle(s.packed, steps.triangle(s.packed, b[s.p],
            {lower = true, unit = true}), {})
    end
    local function turned(b)
        local y = steps.triangle(s.packed, steps.triangle(s.packed, b,
            {turned = true}), {lower = true, unit = true, turned = true})
        local x = y:clone()
        x[s.p] = y
        return x
    end
    s.rcond = rcond_by(s, solve, turned)
    return s.rcond
end

add_kind("lu", {order = fixed("L", "U", "p"), says = says_rcond,
    methods = lu_methods, parts = {
        p = packed_lu,
        L = function(s)
            local k = smaller_side(packed_lu(s))
            s.L = library.tril(corner(s.packed, s.rows, k), -1) + library.eye(
                s.rows, k, {dtype = s.dtype, device = s.device})
        end,
        U = function(s)
            local k = smaller_side(packed_lu(s))
            s.U = library.triu(corner(s.packed, k, s.cols))
        end}})

row{
    name = "lu", method = true,
    takes = "A: matrix|sparse {kernel}",
    gives = "factors",
    group = "factors",
    help = "LU factorisation with partial pivoting: F.L (ones on the diagonal) " ..
        "times F.U is A[F.p], the rows of A in the order p. " ..
        "F:solve(b) F:det() F:logdet() F:rcond(); L, U, p = F:unpack(). Of a " ..
        "sparse one, square, by UMFPACK, which chooses rows and columns so " ..
        "that few entries come up, F.nnz in all: F:solve(b) F:rcond(). It is " ..
        "factored on the CPU in f64; of one on a GPU its entries, right sides " ..
        "and solutions cross the bus, and Ctrl-C waits for it.",
    example = "lu(mat{{1, 2}, {3, 4}}).U",
    result = "{{3, 4}, {0, 0.6666667}}",
    options = {{"kernel", "kernel", "the fastest", "one of kernels \"lu\" by " ..
        "name"}},
}
function factors.lu(A, options)
    if checks.kind(A) == "sparse matrix" then
        return of_sparse("lu", A, options)
    end
    return object("lu", operand("lu", A), {kernel = options and options.kernel})
end

-- --- chol ------------------------------------------------------------------

local function factored_chol(s)
    if not s.L then
        local minor
        s.L, minor = steps.chol(s.A, s.kernel)
        if not s.L then
            fail("chol", "the matrix is not positive definite (its leading " ..
                "minor of order %d is not positive)", minor)
        end
    end
    return s
end

local chol_methods = {unpack = unpack_parts}

function chol_methods.solve(F, b)
    local s = factored_chol(state[F])
    right_side("solve", s.rows, b)
    if s.rows == 0 then return b:clone() end
    warn_if_poor(F, s)
    return by_triangle(s.L, by_triangle(s.L, b, {lower = true}),
        {lower = true, turned = true})
end

function chol_methods.logdet(F)
    local s = factored_chol(state[F])
    return s.rows == 0 and 0.0 or 2 * diagonal(s.L):abs():log():sum(), 1
end

function chol_methods.det(F)
    local s = factored_chol(state[F])
    return s.rows == 0 and 1.0 or
        diagonal(s.L):abs():f64():square():prod()
end

function chol_methods.rcond(F)
    local s = factored_chol(state[F])
    local function solve(b)
        return steps.triangle(s.L, steps.triangle(s.L, b, {lower = true}),
            {lower = true, turned = true})
    end
    s.rcond = s.rcond or rcond_by(s, solve, solve)
    return s.rcond
end

add_kind("chol", {order = fixed("L"), says = says_rcond, methods = chol_methods,
    parts = {L = factored_chol}})

row{
    name = "chol", method = true,
    takes = "A: matrix|sparse {kernel}",
    gives = "factors",
    group = "factors",
    help = "Cholesky factorisation of a symmetric positive definite matrix: " ..
        "F.L, lower triangular, times F.L.T is A; of a Hermitian one times " ..
        "F.L.H. F:solve(b) F:det() F:logdet() F:rcond(); L = F:unpack(). " ..
        "(Octave's and MATLAB's chol gives L.T.) Of a sparse one by CHOLMOD: " ..
        "F:solve(b) F:rcond(), all else as of lu.",
    example = "chol(mat{{4, 2}, {2, 5}}).L",
    result = "{{2, 0}, {1, 2}}",
    options = {{"kernel", "kernel", "the fastest", "one of kernels \"chol\" by " ..
        "name"}},
}
function factors.chol(A, options)
    if checks.kind(A) == "sparse matrix" then
        return of_sparse("chol", A, options)
    end
    local F = object("chol", operand("chol", A, true, true),
        {kernel = options and options.kernel})
    factored_chol(state[F])
    return F
end

-- --- qr --------------------------------------------------------------------

local function packed_qr(s)
    if not s.packed then
        s.packed, s.tau, s.p = steps.qr(s.A, s.pivots, s.kernel)
    end
    return s
end

-- So many columns of Q, and rows of R.
local function width(s)
    return s.full and s.rows or smaller_side(s)
end

local qr_methods = {unpack = unpack_parts}

-- The rank that the diagonal of R shows.
local function rank_of_R(s)
    local d = diagonal(s.packed):abs()
    local most = d:max()
    return count_of(d:gt(larger(s.rows, s.cols) * unit[s.dtype] * most),
        d.rows)
end

-- x of R x = y, of the n columns of a matrix of full rank, in their own order.
local function back(s, y)
    local n = s.cols
    local R = corner(s.packed, n, n)
    y = y.ndim == 1 and y[{{1, n}}] or y[{{1, n}, {}}]
    local x = by_triangle(R, y, {})
    if not s.p then return x end
    local ordered = x:clone()
    ordered[s.p] = x
    return ordered
end

function qr_methods.solve(F, b)
    local s = packed_qr(state[F])
    right_side("solve", s.rows, b)
    if s.rows < s.cols then
        fail("solve", "%s has more columns than rows: lstsq(A, b) finds the " ..
            "shortest solution", s.shape)
    end
    if s.cols == 0 then return zeros(s, 0, b.ndim == 2 and b.cols) end
    if rank_of_R(s) < s.cols then
        fail("solve", "the columns depend on each other: lstsq(A, b) finds " ..
            "the shortest solution")
    end
    return back(s, steps.qr_apply(common(s.packed, b), common(s.tau, b), true,
        b))
end

add_kind("qr", {methods = qr_methods,
    order = function(s)
        return s.pivots and {"Q", "R", "p"} or {"Q", "R"}
    end,
    says = function(_, s)
        return (s.pivots and ", pivoted" or "") .. (s.full and ", full" or "")
    end,
    parts = {
        p = packed_qr,
        Q = function(s)
            packed_qr(s)
            s.Q = steps.qr_q(s.packed, s.tau, width(s))
        end,
        R = function(s)
            packed_qr(s)
            s.R = library.triu(corner(s.packed, width(s), s.cols))
        end}})

row{
    name = "qr", method = true,
    takes = "A: matrix|sparse {full, pivots, kernel}",
    gives = "factors",
    group = "factors",
    help = "QR factorisation: F.Q has orthonormal columns, as many as A's " ..
        "shorter side, F.R is upper triangular, F.Q * F.R is A; with pivots " ..
        "it is A's columns in the order F.p, A[{{}, F.p}]. F:solve(b) is the " ..
        "x for which A x is nearest to b; Q, R = F:unpack(). Of a sparse one " ..
        "by SPQR: F:solve(b), of fewer rows than columns the shortest x; all " ..
        "else as of lu.",
    example = "qr(mat{{3, 1}, {4, 2}}).R:abs()",
    result = "{{5, 2.2}, {0, 0.4}}",
    options = {
        {"full", "boolean", "false", "a square Q, and R of as many rows"},
        {"pivots", "boolean", "false", "columns ordered so that R's " ..
            "diagonal falls"},
        {"kernel", "kernel", "the fastest", "one of kernels \"qr\" by name, " ..
            "without pivots"}},
}
function factors.qr(A, options)
    if checks.kind(A) == "sparse matrix" then
        return of_sparse("qr", A, options)
    end
    options = options or {}
    return object("qr", operand("qr", A),
        {full = options.full or false, pivots = options.pivots or false,
            kernel = options.kernel})
end

-- --- svd -------------------------------------------------------------------

local function values_of(s)
    if not s.S then
        local S, count = steps.svd(s.A, "values")
        s.S = S or no_convergence("svd", count)
    end
end

local function vectors_of(s)
    if not s.U then
        local S, U, V = steps.svd(s.A, s.full and "full" or "thin")
        if not S then no_convergence("svd", U) end
        s.S, s.U, s.V = S, U, V
    end
    return s
end

local svd_methods = {unpack = function(F)
    vectors_of(state[F])
    return unpack_parts(F)
end}

function svd_methods.rank(F, tol)
    local s = state[F]
    values_of(s)
    return count_above(s.S, s.rows, s.cols, tol)
end

function svd_methods.cond(F)
    local s = state[F]
    values_of(s)
    if s.S.rows == 0 then return 0.0 end
    local least = s.S[-1]
    return least == 0 and huge or s.S[1] / least
end

-- The parts of the first r values.
local function leading(s, r)
    return s.U[{{}, {1, r}}], s.S[{{1, r}}], s.V[{{}, {1, r}}]
end

-- V diag(1 / S) U^H b of the values that count.
local function by_values(s, b, tol)
    local r = count_above(s.S, s.rows, s.cols, tol)
    if r == 0 then return zeros(s, s.cols, b.ndim == 2 and b.cols) end
    local U, S, V = leading(s, r)
    local y = U.H * b
    return V * (b.ndim == 1 and y / S or y / S:col())
end

function svd_methods.solve(F, b, tol)
    local s = vectors_of(state[F])
    return by_values(s, right_side("solve", s.rows, b), tol)
end

add_kind("svd", {order = fixed("U", "S", "V"), methods = svd_methods,
    parts = {S = values_of, U = vectors_of, V = vectors_of},
    says = function(F)
        return format(", rank %d", svd_methods.rank(F))
    end})

row{
    name = "svd", method = true,
    takes = "A: matrix {full}",
    gives = "factors",
    group = "factors",
    help = "Singular values: A is F.U * diag(F.S) * F.V.H, with orthonormal " ..
        "columns in U and V, as many as A's shorter side, and the values of " ..
        "the vector S falling. svd(A).S works out no vectors. F:rank() " ..
        "F:cond() F:solve(b), the shortest x for which A x is nearest to b; " ..
        "U, S, V = F:unpack().",
    example = "svd(mat{{3, 0}, {0, -2}}).S",
    result = "{3, 2}",
    options = {{"full", "boolean", "false", "square U and V"}},
}
function factors.svd(A, options)
    return object("svd", operand("svd", A), {full = options and options.full})
end

-- --- eigh ------------------------------------------------------------------

-- Of A, or of A v = value B v.
local function symmetric_values(s, with_vectors)
    if not s.B then
        local values, more = steps.eigh(s.A, with_vectors)
        return values or no_convergence("eigh", more), more
    end
    local values, more, minor = steps.eigh_pair(s.A, s.B, with_vectors)
    if not values and minor > 0 then
        fail("eigh", "B is not positive definite (its leading minor of order " ..
            "%d is not positive)", minor)
    end
    return values or no_convergence("eigh", more), more
end

local function eigenvalues(s)
    if not s.values then s.values = symmetric_values(s, false) end
end

local function eigenvectors(s)
    if not s.vectors then
        s.values, s.vectors = symmetric_values(s, true)
    end
    return s
end

local eigh_methods = {unpack = function(F)
    eigenvectors(state[F])
    return unpack_parts(F)
end}

-- With B their product is that of A's over B's.
function eigh_methods.det(F)
    local s = state[F]
    eigenvalues(s)
    if s.rows == 0 then return 1.0 end
    return s.values:prod() * (s.B and factors.chol(s.B):det() or 1)
end

function eigh_methods.logdet(F)
    local s = state[F]
    eigenvalues(s)
    local sign, size = sign_and_log(s.values)
    if s.B then size = size + factors.chol(s.B):logdet() end
    return size, sign
end

function eigh_methods.solve(F, b)
    local s = eigenvectors(state[F])
    right_side("solve", s.rows, b)
    if s.values:eq(0):any() then
        fail("solve", "the matrix is singular (an eigenvalue is zero)")
    end
    local y = s.vectors.H * b
    return s.vectors * (b.ndim == 1 and y / s.values or y / s.values:col())
end

add_kind("eigh", {order = fixed("values", "vectors"), methods = eigh_methods,
    parts = {values = eigenvalues, vectors = eigenvectors},
    says = function(F, s)
        if s.rows == 0 then return "" end
        eigenvalues(s)
        return format("%s, values %.4g to %.4g", s.B and " with B" or "",
            s.values[1], s.values[-1])
    end})

row{
    name = "eigh", method = true,
    takes = "A: square [, B: square]",
    gives = "factors",
    group = "factors",
    help = "Eigenvalues and eigenvectors of a symmetric matrix, of a complex " ..
        "one that is Hermitian (A == A.H): A * F.vectors is F.vectors * " ..
        "diag(F.values), the values rise, the vectors are orthonormal " ..
        "columns. With a symmetric positive definite B: A * F.vectors is B * " ..
        "F.vectors * diag(F.values), and F.vectors.H * B * F.vectors the " ..
        "identity. eigh(A).values works out no vectors. " ..
        "F:solve(b), of A, F:det() F:logdet(); values, vectors = F:unpack().",
    example = "eigh(mat{{2, 1}, {1, 2}}).values",
    result = "{1, 3}",
}
function factors.eigh(A, B)
    A = operand("eigh", A, true, true)
    if B == nil then return object("eigh", A) end
    B = operand("eigh", B, true, true)
    if B.rows ~= A.rows then
        fail("eigh", "A is %s, B %s", shape_of(A), shape_of(B))
    end
    return object("eigh", common(A, B), {B = common(B, A)})
end

-- --- for sessions ----------------------------------------------------------

-- What makes an object again, and the functions that do.
function factors.recipe(F)
    local s = state[F]
    if kinds[s.kind].recipe then return kinds[s.kind].recipe(s) end
    return {kind = s.kind, matrix = s.A, second = s.B, full = s.full or s.wants_left,
        pivots = s.pivots}
end

-- By kind: of the matrix, options, and a second matrix.
factors.makers = {lu = factors.lu, chol = factors.chol, qr = factors.qr,
    svd = factors.svd,
    eigh = function(A, _, B) return factors.eigh(A, B) end}

-- That of a kind, from whatever file; nil: there is none.
function factors.maker(kind)
    if not factors.makers[kind] then
        require "lumat.spectra"
        require "lumat.krylov"
        require "lumat.sparse_systems"
    end
    return factors.makers[kind]
end

-- For lua/std/lazy/spectra.lua, whose objects are of the same make.
factors.make = {object = object, operand = operand, add_kind = add_kind,
    part = part, state = state, fixed = fixed, unpack_parts = unpack_parts,
    right_side = right_side, no_convergence = no_convergence, zeros = zeros,
    sign_and_log = sign_and_log, warn_if_poor = warn_if_poor,
    by_triangle = by_triangle, common = common}

-- --- least squares ---------------------------------------------------------

-- By QR where the columns are independent; else by singular values, which
-- give the shortest of all solutions.
local function least_squares(A, b, method)
    local s = {A = A, rows = A.rows, cols = A.cols, dtype = A.dtype,
        device = A.device, pivots = true}
    if s.rows >= s.cols and s.cols > 0 and method ~= "svd" then
        packed_qr(s)
        if rank_of_R(s) == s.cols then
            return back(s, steps.qr_apply(s.packed, s.tau, true, b)), s.cols,
                "qr"
        end
    end
    if method == "qr" then
        fail("lstsq", "method is \"qr\", but the columns depend on each other; " ..
            "\"svd\" finds the shortest solution")
    end
    vectors_of(s)
    return by_values(s, b), count_above(s.S, s.rows, s.cols), "svd"
end

row{
    name = "lstsq", method = true,
    takes = "A: matrix, b: matrix rows A {info, method}",
    gives = "matrix, table with info",
    group = "systems factors",
    help = "The x for which |A x - b| is least, of those the shortest: for " ..
        "more rows than columns, fewer, or columns that depend on each " ..
        "other. b is a vector or a matrix of right sides. With info also a " ..
        "table: rank, residual (|A x - b|, one a right side) and method.",
    example = "lstsq(mat{{1, 0}, {1, 1}, {1, 2}}, vec{1, 3, 5})",
    result = "{1, 2}",
    options = {
        {"info", "boolean", "false", "tells rank, residual, method"},
        {"method", "\"qr\"|\"svd\"", "\"qr\" (with pivots) where the columns " ..
            "are independent", "\"svd\": by singular values at once"}},
}
function factors.lstsq(A, b, options)
    A = operand("lstsq", A)
    right_side("lstsq", A.rows, b)
    A = common(A, b)
    options = options or {}
    local x, rank, method = least_squares(A, b, options.method)
    if not options.info then return x end
    local off = A * x - b
    return x, {rank = rank, method = method,
        residual = off.ndim == 1 and off:norm() or off:norm{axis = 1}}
end

row{
    name = "pinv", method = true,
    takes = "A: matrix [, tol: number]",
    gives = "matrix",
    group = "systems factors",
    help = "The pseudo-inverse (Moore and Penrose): of singular values above " ..
        "tol, by default the largest times eps times the longer side.",
    example = "pinv(mat{{2, 0}, {0, 4}, {0, 0}})",
    result = "{{0.5, 0, 0}, {0, 0.25, 0}}",
}
function factors.pinv(A, tol)
    local F = factors.svd(A)
    local s = vectors_of(state[F])
    local r = count_above(s.S, s.rows, s.cols, tol)
    if r == 0 then return zeros(s, s.cols, s.rows) end
    local U, S, V = leading(s, r)
    return V * (U.H / S:col())
end

-- --- of singular values ----------------------------------------------------

row{
    name = "svdvals", method = true,
    takes = "A: matrix",
    gives = "matrix",
    group = "factors",
    help = "The singular values, falling; svd(A).S is the same.",
    example = "svdvals(mat{{3, 0}, {0, -2}})",
    result = "{3, 2}",
}
function factors.svdvals(A)
    return factors.svd(A).S
end

row{
    name = "rank", method = true,
    takes = "A: matrix [, tol: number]",
    gives = "integer",
    group = "factors",
    help = "How many rows or columns are independent: the singular values " ..
        "above tol, by default the largest times eps times the longer side.",
    example = "rank(mat{{1, 2}, {2, 4}})",
    result = "1",
}
function factors.rank(A, tol)
    return svd_methods.rank(factors.svd(A), tol)
end

row{
    name = "cond", method = true,
    takes = "A: matrix [, p: number|\"inf\"|\"fro\"|\"nuc\"]",
    gives = "number",
    group = "factors",
    help = "The condition in the 2-norm: the largest singular value over the " ..
        "smallest; with p (1, \"inf\", \"fro\", \"nuc\") |A| |inv(A)| in that " ..
        "norm.",
    example = "cond(mat{{1, 0}, {0, 4}})",
    result = "4",
}
function factors.cond(A, p)
    if p == nil or p == 2 then
        return svd_methods.cond(factors.svd(A))
    end
    local B = operand("cond", A, true)
    if B.rows == 0 then return 0.0 end
    if library.rcond(B) == 0 then return huge end
    return library.norm(B, p) * library.norm(library.inv(B), p)
end

row{
    name = "null", method = true,
    takes = "A: matrix [, tol: number]",
    gives = "matrix",
    group = "factors",
    help = "Orthonormal columns that span the x with A x = 0; none where the " ..
        "columns are independent.",
    example = "null(mat{{1, -1}}):abs()",
    result = "{{0.7071068}, {0.7071068}}",
}
function factors.null(A, tol)
    local s = vectors_of(state[factors.svd(A, {full = true})])
    local r = count_above(s.S, s.rows, s.cols, tol)
    return r == s.cols and zeros(s, s.cols, 0) or
        s.V[{{}, {r + 1, s.cols}}]:clone()
end

row{
    name = "orth", method = true,
    takes = "A: matrix [, tol: number]",
    gives = "matrix",
    group = "factors",
    help = "Orthonormal columns that span those of A, as many as its rank.",
    example = "orth(mat{{2, 0}, {0, 0}}):abs()",
    result = "{{1}, {0}}",
}
function factors.orth(A, tol)
    local s = vectors_of(state[factors.svd(A)])
    local r = count_above(s.S, s.rows, s.cols, tol)
    return r == 0 and zeros(s, s.rows, 0) or
        s.U[{{}, {1, r}}]:clone()
end

row{
    name = "logdet", method = true,
    takes = "A: square",
    gives = "number, number",
    group = "systems factors",
    help = "The logarithm of the size of the determinant, which itself " ..
        "overflows soon, and as a second result its sign: 1, -1 or 0, of a " ..
        "complex one the number of size 1 (or 0) that it is that size times.",
    example = "logdet(mat{{0, 2}, {3, 0}})",
    result = "1.791759",
}
function factors.logdet(A)
    return lu_methods.logdet(object("lu", operand("logdet", A, true)))
end

-- --- polynomials -----------------------------------------------------------

row{
    name = "polyfit", method = true,
    takes = "x: vector, y: vector lengths x, n: size",
    gives = "matrix",
    group = "factors",
    help = "The coefficients, in f64 or c128, of the polynomial of degree n " ..
        "that is nearest to the points, by least squares; that of the highest " ..
        "power first, as polyval wants them.",
    example = "polyfit(vec{0, 1, 2}, vec{1, 3, 5}, 1)",
    result = "{2, 1}",
}
function factors.polyfit(x, y, n)
    if x.rows < n + 1 then
        fail("polyfit", "a polynomial of degree %d wants %d points, there are " ..
            "%d", n, n + 1, x.rows)
    end
    x, y = as_wide(x), as_wide(y)
    local V = library.ones(x.rows, n + 1, {dtype = x.dtype, device = x.device})
    for k = n, 1, -1 do V[{{}, k}] = V[{{}, k + 1}] % x end
    -- columns of one size, so that high powers count as low ones do
    local size = V:norm{axis = 1}
    local scaled, rank = least_squares(common(V / size, y), y)
    if rank <= n then
        private.warn_once("polyfit", format("the points determine only %d " ..
            "of %d coefficients", rank, n + 1))
    end
    return scaled / size:flatten()
end

row{
    name = "polyval",
    takes = "p: list, x: matrix|number|complex",
    gives = "matrix or number",
    group = "factors",
    help = "The polynomial with the coefficients p, that of the highest power " ..
        "first, at every element of x.",
    example = "polyval(vec{2, 1}, 3)",
    result = "7",
}
function factors.polyval(p, x)
    local list = type(p) == "table" and p or p:totable()
    local is_matrix = checks.kind(x) == "matrix"
    local y = is_matrix and zeros(x, x.rows, x.ndim == 2 and x.cols) or 0
    for _, c in ipairs(list) do
        y = (is_matrix and library.mul(y, x) or y * x) + c
    end
    return y
end

return factors
