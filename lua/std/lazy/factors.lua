-- Factorisations as objects, and what is made of them: least squares, rank,
-- condition, null spaces. The steps are LAPACK's; see lua/math/factor_steps.c.
--
-- An object holds a copy of its matrix, which nobody can write to, works out
-- its parts when they are asked for, and hands out copies of them.
local library, _, _, private = ...
local checks = require "lumat.checks"
local determinants = require "lumat.determinants"
local steps = require "lumat.factor_steps"
local fail, is_complex, shape_of = checks.fail, checks.is_complex,
    checks.shape_of
local factors = {}
local ipairs, next, rawequal, require, select, setmetatable, tostring, type =
    ipairs, next, rawequal, require, select, setmetatable, tostring, type
local concat = table.concat
local ceil, huge, larger = math.ceil, math.huge, math.max
local format, unpack = string.format, table.unpack

local as_wide, unit = checks.as_wide, checks.unit
local parity, product_of, sign_and_log = determinants.parity,
    determinants.product_of, determinants.sign_and_log

-- --- operands --------------------------------------------------------------

-- A in the narrowest type that has its values and B's.
local function common(A, B)
    local type = checks.wider_type(A, B)
    return A.dtype == type and A or A[type](A)
end

-- What does the same of matrices that are not symmetric.
local takes_any = {eigh = "eig(A)", chol = "lu(A)", ldl = "lu(A)"}

-- A copy to factor, which has to be of finite numbers, and symmetric where that
-- is wanted (of complex ones Hermitian): but for what rounding a product may
-- leave. name: what messages call it, A by default. Then whether it is exactly
-- symmetric.
local function operand_and_look(what, A, square, symmetric, name)
    name = name or "A"
    checks.matrix(what, name, A)
    if A.ndim ~= 2 then
        fail(what, "needs a matrix, not %s; v:col() is a column",
            shape_of(A))
    elseif square and A.rows ~= A.cols then
        fail(what, "needs a square matrix, not %s", shape_of(A))
    end
    local row, col, apart, largest = steps.look(A, symmetric)
    if row then
        checks.refuse_odd(what, name, row, col, checks.figure("%s", A(row, col)))
    end
    A = A.dtype == "bool" and A:f32() or A:clone()
    if symmetric and apart and checks.is_asymmetric(A, apart, largest) then
        checks.refuse_asymmetry(what, name, A, apart,
            name == "A" and takes_any[what] or nil)
    end
    return A, symmetric and apart == 0
end

local function operand(...)
    return (operand_and_look(...))
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
-- times the longer side, as NumPy and Octave have it, or above `tol`. None is
-- above NaN, and below 0 even those that are 0 would count.
local function count_above(what, s, tol)
    if tol and not (type(tol) == "number" and tol >= 0) then
        fail(what, "tol is %s, expected a number from 0 on", checks.brief(tol))
    end
    local S = s.S
    if S.rows == 0 then return 0 end
    tol = tol or larger(s.rows, s.cols) * unit[S.dtype] * S[1]
    return count_of(S:gt(tol), S.rows)
end

-- The condition in the 2-norm, by the sizes that are its limits; of none 1.
local function least_over_most(sizes)
    if sizes.rows == 0 then return 1.0 end
    local least, most = sizes:min(), sizes:max()
    return (steps.is_dry() or most > 0) and least / most or 0.0
end

-- --- objects ---------------------------------------------------------------

local state = setmetatable({}, {__mode = "k"}) -- of each object
-- By name: parts, functions that work one or several out; order, a function
-- of the state, their names; methods; says, what is told behind the shape.
local kinds = {}

local function add_kind(name, kind)
    for method, f in next, kind.methods do
        kind.methods[method] = checks.method(method, "F", f)
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
        fail(what, "needs a square matrix, not %s%s", s.shape,
            what == "solve" and "; lstsq(A, b) takes any" or "")
    end
    return s
end

local function smaller_side(s)
    return math.min(s.rows, s.cols)
end

-- What has no single solution, and why.
local function refuse_singular(why, ...)
    fail("solve", "the matrix is singular (" .. why .. "); lstsq(A, b) finds " ..
        "the shortest x of those that come nearest", ...)
end

-- The rest of a solution: T x = b of a triangle.
local function by_triangle(T, b, how)
    local x, zero = steps.triangle(T, b, how)
    return x or refuse_singular("pivot %d is zero", zero)
end

-- Once for an object: what solve says of a poor matrix.
local function warn_if_poor(F, s)
    local rcond = F:rcond()
    if steps.is_dry() or not (rcond < 10 * unit[s.dtype]) then return end
    private.warn_once("solve", format("the matrix is nearly singular or badly " ..
        "scaled (rcond %.1e)", s.rcond))
end

local function diagonal(A)
    return library.diag(A)
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
    return s.sign * product_of(diagonal(s.packed))
end

function lu_methods.logdet(F)
    local s = square_lu("logdet", F)
    local sign, size = sign_and_log(diagonal(s.packed))
    return size, sign * s.sign
end

-- Of factors there are, by what they solve; in a dry run, where nothing is
-- looked at, as of any matrix.
local function rcond_by(s, solve, turned)
    if steps.is_dry() then return library.rcond(s.A) end
    return require "lumat.systems".rcond_of(s.A, solve, turned)
end

-- Of what has no factors to estimate it by.
local function rcond_of(s)
    s.rcond = s.rcond or library.rcond(s.A)
    return s.rcond
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
    instead = "lu(A).p is the order of the rows, eye(n)[{lu(A).p, {}}] the " ..
        "matrix of it",
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
        local minor -- A.H's columns, where it is A, lie as A's rows do
        s.L, minor = steps.chol(s.is_exact and s.A.H or s.A, s.kernel)
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
    local _, size = sign_and_log(diagonal(s.L))
    return 2 * size, 1
end

function chol_methods.det(F)
    local s = factored_chol(state[F])
    return product_of(diagonal(s.L):abs():f64():square())
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
    instead = "chol(A).L is the lower factor, chol(A).L.H the upper one",
    example = "chol(mat{{4, 2}, {2, 5}}).L",
    result = "{{2, 0}, {1, 2}}",
    options = {{"kernel", "kernel", "the fastest", "one of kernels \"chol\" by " ..
        "name"}},
}
function factors.chol(A, options)
    if checks.kind(A) == "sparse matrix" then
        return of_sparse("chol", A, options)
    end
    local own, is_exact = operand_and_look("chol", A, true, true)
    local F = object("chol", own, {kernel = options and options.kernel,
        is_exact = is_exact})
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

-- The rank that the diagonal of R shows, of no fewer rows than columns: a column
-- counts by what it adds to those before it, relative to its own length, which is
-- that of R's; so small units are no small rank.
local function rank_of_R(s)
    local R = library.triu(corner(s.packed, s.cols, s.cols))
    local least = (s.rows + 10) * unit[s.dtype] * R:norm{axis = 1}
    return count_of(diagonal(R):abs():gt(least:flatten()), s.cols)
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

local function square_state(what, F)
    local s = state[F]
    if s.rows ~= s.cols then
        fail(what, "needs a square matrix, not %s", s.shape)
    end
    return s
end

local function square_qr(what, F)
    return packed_qr(square_state(what, F))
end

-- The determinant of Q, by its reflections I - tau v v^H, and of the order of
-- the columns. In a dry run 1.
local function sign_of_Q(s)
    if steps.is_dry() or s.rows == 0 then return 1 end
    local sign = s.p and parity(s.p:totable()) or 1
    if not is_complex(s.A) then
        return s.tau:ne(0):sum() % 2 == 0 and sign or -sign
    end
    local v = as_wide(library.tril(s.packed, -1))
    local sizes = v:norm{axis = 1}:flatten():square() + 1
    local each = 1 - as_wide(s.tau) % sizes
    return sign * library.sign(each:prod())
end

function qr_methods.det(F)
    local s = square_qr("det", F)
    return sign_of_Q(s) * product_of(diagonal(s.packed))
end

function qr_methods.logdet(F)
    local s = square_qr("logdet", F)
    local sign, size = sign_and_log(diagonal(s.packed))
    return size, sign * sign_of_Q(s)
end

function qr_methods.rcond(F)
    local s = square_qr("rcond", F)
    if s.rcond then return s.rcond end
    if not steps.is_dry() and diagonal(s.packed):eq(0):any() then return 0.0 end
    local R = corner(s.packed, s.rows, s.cols)
    s.rcond = rcond_by(s, function(b)
        return back(s, steps.qr_apply(s.packed, s.tau, true, b))
    end, function(b)
        local y = steps.triangle(R, s.p and b[s.p] or b, {turned = true})
        return steps.qr_apply(s.packed, s.tau, false, y)
    end)
    return s.rcond
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
        "x for which A x is nearest to b; of a square A F:det() F:logdet() " ..
        "F:rcond(); Q, R = F:unpack(). Of a sparse one by SPQR: F:solve(b), " ..
        "of fewer rows than columns the shortest x; all else as of lu.",
    instead = "qr(A) is the thin one; a square Q comes with {full = true}",
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

local function rank_of_values(s, tol)
    values_of(s)
    return count_above("rank", s, tol)
end

local function cond_of_values(s)
    values_of(s)
    if s.S.rows == 0 then return 0.0 end
    local least = s.S[-1]
    return least == 0 and huge or s.S[1] / least
end

function svd_methods.rank(F, tol)
    return rank_of_values(state[F], tol)
end

function svd_methods.cond(F)
    return cond_of_values(state[F])
end

-- The parts of the first r values.
local function leading(s, r)
    return s.U[{{}, {1, r}}], s.S[{{1, r}}], s.V[{{}, {1, r}}]
end

-- What `what` asks for the singular values of A: the state of an object.
local function values_for(what, A, full)
    A = operand(what, A)
    return {A = A, rows = A.rows, cols = A.cols, dtype = A.dtype,
        device = A.device, full = full}
end

-- V diag(1 / S) U^H b of the values that count.
local function by_values(s, b, tol)
    local r = count_above("solve", s, tol)
    if r == 0 then return zeros(s, s.cols, b.ndim == 2 and b.cols) end
    local U, S, V = leading(s, r)
    local y = U.H * b
    return V * (b.ndim == 1 and y / S or y / S:col())
end

function svd_methods.solve(F, b, tol)
    local s = vectors_of(state[F])
    return by_values(s, right_side("solve", s.rows, b), tol)
end

-- U diag(S) V^H has det U conj(det V) as its determinant's sign, as S has none.
local function sign_of_vectors(s)
    if s.rows == 0 or steps.is_dry() then return 1 end
    local u, v = library.det(s.U), library.det(s.V)
    if is_complex(s.A) then return library.sign(u * library.conj(v)) end
    return (u < 0) == (v < 0) and 1 or -1
end

function svd_methods.det(F)
    local s = vectors_of(square_state("det", F))
    return sign_of_vectors(s) * product_of(s.S)
end

function svd_methods.logdet(F)
    local s = vectors_of(square_state("logdet", F))
    local sign, size = sign_and_log(s.S)
    return size, sign * sign_of_vectors(s)
end

-- In the 2-norm, of any shape.
function svd_methods.rcond(F)
    local s = state[F]
    values_of(s)
    return least_over_most(s.S)
end

local function pseudo_inverse(s, tol)
    local r = count_above("pinv", s, tol)
    if r == 0 then return zeros(s, s.cols, s.rows) end
    local U, S, V = leading(s, r)
    return V * (U.H / S:col())
end

function svd_methods.pinv(F, tol)
    return pseudo_inverse(vectors_of(state[F]), tol)
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
        "F:cond() F:rcond() F:pinv() F:solve(b), the shortest x for which " ..
        "A x is nearest to b, all three with a least size of the values that " ..
        "count as a last argument; of a square A F:det() F:logdet(); " ..
        "U, S, V = F:unpack().",
    instead = "svd(A) is the thin one; square U and V come with {full = true}",
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
    return product_of(s.values) * (s.B and factors.chol(s.B):det() or 1)
end

function eigh_methods.logdet(F)
    local s = state[F]
    eigenvalues(s)
    local sign, size = sign_and_log(s.values)
    if s.B then size = size + factors.chol(s.B):logdet() end
    return size, sign
end

function eigh_methods.rcond(F)
    local s = state[F]
    if s.B then return rcond_of(s) end -- whose values are the pair's
    eigenvalues(s)
    s.rcond = s.rcond or least_over_most(s.values:abs())
    return s.rcond
end

function eigh_methods.solve(F, b)
    local s = eigenvectors(state[F])
    right_side("solve", s.rows, b)
    if not steps.is_dry() and s.values:eq(0):any() then refuse_singular("an eigenvalue is zero") end
    warn_if_poor(F, s)
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
        "F:solve(b), of A, F:det() F:logdet() F:rcond(), by A's values; " ..
        "values, vectors = F:unpack().",
    example = "eigh(mat{{2, 1}, {1, 2}}).values",
    result = "{1, 3}",
}
function factors.eigh(A, B)
    A = operand("eigh", A, true, true)
    if B == nil then return object("eigh", A) end
    B = operand("eigh", B, true, true, "B")
    if B.rows ~= A.rows then
        fail("eigh", "A is %s, B %s", shape_of(A), shape_of(B))
    end
    return object("eigh", common(A, B), {B = common(B, A)})
end

-- --- how good factors are ---------------------------------------------------
-- What should be zero, by kind, of a state whose parts are there: {text, matrix},
-- and where that is not |A| what its size is measured by, as number and text. All
-- are wide.

local function one_like(Q)
    return library.eye(Q.cols, Q.cols, {dtype = Q.dtype, device = Q.device})
end

local function orthonormal(name, Q)
    return {format("%s.H %s - I", name, name), Q.H * Q - one_like(Q), 1, ""}
end

local function similar(name)
    return function(s, A)
        local Q = as_wide(s.Q)
        return {{format("Q %s Q.H - A", name), Q * as_wide(s[name]) * Q.H - A},
            orthonormal("Q", Q)}
    end
end

local residuals = {schur = similar "T", hess = similar "H"}

function residuals.lu(s, A)
    return {{"L U - A[p]", as_wide(s.L) * as_wide(s.U) - A[{s.p, {}}]}}
end

function residuals.chol(s, A)
    local L = as_wide(s.L)
    return {{"L L.H - A", L * L.H - A}}
end

function residuals.ldl(s, A)
    local L = as_wide(s.L)
    return {{"L D L.H - A[p, p]", L * as_wide(s.D) * L.H - A[{s.p, s.p}]}}
end

function residuals.qr(s, A)
    local Q = as_wide(s.Q)
    return {{s.p and "Q R - A[:, p]" or "Q R - A",
        Q * as_wide(s.R) - (s.p and A[{{}, s.p}] or A)}, orthonormal("Q", Q)}
end

function residuals.svd(s, A)
    local U, V, k = as_wide(s.U), as_wide(s.V), s.S.rows
    local product = corner(U, s.rows, k) % as_wide(s.S):row() *
        corner(V, s.cols, k).H
    return {{"U S V.H - A", product - A}, orthonormal("U", U),
        orthonormal("V", V)}
end

function residuals.eigh(s, A)
    local V = as_wide(s.vectors)
    local values = as_wide(s.values)
    if not s.B then
        return {{"A V - V D", A * V - V % values:row()}, orthonormal("V", V)}
    end
    local B = as_wide(s.B)
    local size = library.norm(A, 1) + library.norm(B, 1) *
        library.norm(values, "inf")
    return {{"A V - B V D", A * V - B * V % values:row(),
        size * library.norm(V, 1), " (|A| + |B| |D|) |V|"}}
end

function residuals.eig(s, A)
    local V = as_wide(s.vectors)
    if not s.B then
        return {{"A V - V D", A * V - V % as_wide(s.values):row(),
            library.norm(A, 1) * library.norm(V, 1), " |A| |V|"}}
    end
    local B, alpha, beta = as_wide(s.B), as_wide(s.alpha), as_wide(s.beta)
    local size = library.norm(A, 1) * library.norm(beta, "inf") +
        library.norm(B, 1) * library.norm(alpha, "inf")
    return {{"A V b - B V a", A * (V % beta:row()) - B * (V % alpha:row()),
        size * library.norm(V, 1), " (|A| |b| + |B| |a|) |V|"}}
end

-- F, once the work is done that its parts are read from.
function factors.factored(F)
    local s = state[F]
    if s.kind == "lu" then packed_lu(s) elseif s.kind == "qr" then packed_qr(s) end
    return F
end

-- Is it one of these, whose parts are matrices?
function factors.has_residuals(F)
    return state[F] ~= nil and residuals[state[F].kind] ~= nil
end

-- LAPACK's: a list of {text, ratio, text}, |what should be zero| over n eps and
-- what it is measured by, in 1-norms. A stable method stays below 30.
function factors.residuals(F)
    local s, told = state[F], {}
    for _, name in ipairs(kinds[s.kind].order(s)) do part(F, name) end
    local A = as_wide(s.A)
    for i, r in ipairs(residuals[s.kind](s, A)) do
        local off = library.norm(r[2], 1)
        local by = larger(s.rows, s.cols, 1) * unit[s.dtype] / 2 *
            (r[3] or library.norm(A, 1))
        told[i] = {r[1], off == 0 and 0.0 or off / by, r[4] or " |A|"}
    end
    return told
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
    rcond_of = rcond_of, refuse_singular = refuse_singular,
    warn_if_poor = warn_if_poor, by_triangle = by_triangle, common = common}

-- --- least squares ---------------------------------------------------------

-- From so many columns on QR without pivots is tried first, in f64 by f32
-- factors: it takes half or a fifth of the time of one with pivots.
local LEAST_PLAIN, MOST_STEPS = 256, 12

-- What solves with R and R.H of a QR without pivots, and how well that can be
-- done; nil where R has a zero on its diagonal, and in a dry run.
local function plain_qr(A, rows, cols)
    if select("#", steps.look(A)) == 0 then return end
    local s = packed_qr{A = A, rows = rows, cols = cols, dtype = A.dtype}
    local R = corner(s.packed, cols, cols)
    local function solve(y) return (steps.triangle(R, y, {})) end
    local function turned(y) return (steps.triangle(R, y, {turned = true})) end
    if diagonal(R):eq(0):any() then return end
    return s, require "lumat.systems".rcond_of(library.triu(R), solve, turned),
        solve, turned
end

-- Of independent columns in f64: by R of f32, x += R^-1 R^-T A^T (b - A x) until
-- x changes no more. R R^-T is A^T A but for f32's rounding, so that a step is
-- 1e-7 over rcond, or less, of the one before. nil where it is not, or
-- the columns are nearly dependent. Source: Bjorck, Numerical Methods for Least
-- Squares Problems, 6.6.5.
local function refined(A, b)
    local _, _, _, most = steps.look(A)
    if A.dtype ~= "f64" or not most then return end
    local _, e = math.frexp(most)
    local scale = 2.0 ^ -e
    if not (scale > 0 and scale < huge) then return end
    local _, rcond, solve, turned = plain_qr((A * scale):f32(), A.rows, A.cols)
    if not rcond or rcond < 1e-6 then return end
    local columns = b.ndim == 1 and b:col() or b
    local x, r, last = library.zeros(A.cols, columns.cols, {dtype = "f64",
        device = A.device}), columns, huge
    for count = 1, MOST_STEPS do
        local g = A.T * r
        local size = g:norm{axis = 1}
        size = size + size:eq(0)
        local step = solve(turned((g / size):f32())):f64() % size * scale ^ 2
        x = x + step
        r = columns - A * x
        local part_of_x = step:norm{axis = 1} /
            (x:norm{axis = 1} + 2.0 ^ -1000)
        local change = part_of_x:max()
        if change ~= change then return end
        if change <= unit.f64 or count > 3 and change > last / 4 then
            return b.ndim == 1 and x:flatten() or x, count
        elseif change > last / 4 then
            return
        end
        last = change
    end
end

-- By QR where the columns are independent; else by singular values, which
-- give the shortest of all solutions. Also their rank, how, and steps.
local function least_squares(A, b, method)
    local s = {A = A, rows = A.rows, cols = A.cols, dtype = A.dtype,
        device = A.device, pivots = true}
    if s.rows >= s.cols and s.cols >= LEAST_PLAIN and
        (method == nil or method == "direct") then
        local x, count
        if method == nil then x, count = refined(A, b) end
        if x then return x, s.cols, "refinement", count end
        local plain, rcond = plain_qr(A, s.rows, s.cols)
        if plain and rcond > 10 * s.rows * unit[s.dtype] then
            return back(plain, steps.qr_apply(plain.packed, plain.tau, true,
                b)), s.cols, "qr"
        end
    end
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
    return by_values(s, b), count_above("lstsq", s), "svd"
end

row{
    name = "lstsq", method = true,
    takes = "A: matrix, b: matrix rows A {info, method}",
    gives = "matrix, table with info",
    group = "systems factors",
    help = "The x for which |A x - b| is least, of those the shortest: for " ..
        "more rows than columns, fewer, or columns that depend on each " ..
        "other, whatever they are measured in. b is a vector or a matrix of " ..
        "right sides. Large f64 ones are solved by f32 factors, where A " ..
        "allows it, and x refined until it changes no more. With info also a " ..
        "table: rank, residual (|A x - b|, one a right side), method and, of " ..
        "refinement, steps.",
    example = "lstsq(mat{{1, 0}, {1, 1}, {1, 2}}, vec{1, 3, 5})",
    result = "{1, 2}",
    options = {
        {"info", "boolean", "false", "tells rank, residual, method"},
        {"method", "\"qr\"|\"svd\"|\"direct\"", "\"qr\" (with pivots) " ..
            "where the columns are independent", "\"svd\": by singular " ..
            "values at once; \"direct\": without f32 factors"}},
}
function factors.lstsq(A, b, options)
    A = operand("lstsq", A)
    right_side("lstsq", A.rows, b)
    A = common(A, b)
    options = options or {}
    local x, rank, method, count = least_squares(A, b, options.method)
    if not options.info then return x end
    local off = A * x - b
    return x, {rank = rank, method = method, steps = count,
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
    return pseudo_inverse(vectors_of(values_for("pinv", A)), tol)
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
    local s = values_for("svdvals", A)
    values_of(s)
    return s.S
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
    return rank_of_values(values_for("rank", A), tol)
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
        return cond_of_values(values_for("cond", A))
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
    local s = vectors_of(values_for("null", A, true))
    local r = count_above("null", s, tol)
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
    local s = vectors_of(values_for("orth", A))
    local r = count_above("orth", s, tol)
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

-- A vector, which has to be of finite numbers.
local function finite(what, name, v)
    local row = steps.look(v:col())
    if row then
        fail(what, "%s[%d] is %s; it needs finite numbers", name, row,
            checks.figure("%s", v[row]))
    end
    return v
end

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
    if x.rows ~= y.rows then
        fail("polyfit", "x has %d points, y %d", x.rows, y.rows)
    end
    if x.rows < n + 1 then
        fail("polyfit", "a polynomial of degree %d wants %d points, there are " ..
            "%d", n, n + 1, x.rows)
    end
    x = finite("polyfit", "x", as_wide(x))
    y = finite("polyfit", "y", as_wide(y))
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

-- The coefficients, or what else `name` calls them, in a list or vector; they have
-- to be finite numbers.
function factors.coefficients(what, name, p)
    local list = type(p) == "table" and p or p:totable()
    for i, c in ipairs(list) do
        local kind = checks.kind(c)
        if kind ~= "number" and kind ~= "complex number" or
            library.abs(c - c) ~= 0 then
            fail(what, "%s %d is %s, expected a finite number", name, i,
                checks.brief(c))
        end
    end
    return list
end

local coefficients = factors.coefficients

-- A vector of them in f64, or c128 where one is complex, where p lies.
local function polynomial(list, p)
    local dtype = "f64"
    for _, c in ipairs(list) do
        if type(c) ~= "number" then dtype = "c128" end
    end
    return library.vec(list, {dtype = dtype, device = type(p) == "table" and
        library.device() or p.device})
end

-- Has every complex root its conjugate among them, as often?
local function are_paired(roots)
    local counts = {}
    local function key(re, im) return format("%a %a", re + 0.0, im + 0.0) end
    for _, z in ipairs(roots) do
        local k = type(z) ~= "number" and key(z.real, z.imag)
        if k then counts[k] = (counts[k] or 0) + 1 end
    end
    for _, z in ipairs(roots) do
        if type(z) ~= "number" and counts[key(z.real, z.imag)] ~=
            counts[key(z.real, -z.imag)] then
            return false
        end
    end
    return true
end

row{
    name = "poly", method = true,
    takes = "A: list|square",
    gives = "matrix",
    group = "factors",
    help = "The coefficients, in f64 or c128, of the polynomial with the roots " ..
        "in a list or vector, that of the highest power, 1, first; of a matrix " ..
        "those of its characteristic polynomial, whose roots are the eigenvalues.",
    example = "poly{1, 2}",
    result = "{1, -3, 2}",
}
function factors.poly(r)
    local is_matrix = checks.is_matrix(r) and r.ndim == 2
    if is_matrix and r.rows ~= r.cols then
        fail("poly", "needs a square matrix, or a vector of roots, not %s",
            shape_of(r))
    end
    local roots = coefficients("poly", "root", is_matrix and
        library.eigvals(as_wide(r)) or r)
    local list = {1}
    for _, z in ipairs(roots) do
        for k = #list + 1, 2, -1 do
            list[k] = (list[k] or 0) - z * list[k - 1]
        end
    end
    if is_matrix and not is_complex(r) or are_paired(roots) then
        for k, c in ipairs(list) do
            list[k] = type(c) == "number" and c or c.real
        end
    end
    return polynomial(list, r)
end

row{
    name = "polyder",
    takes = "p: list",
    gives = "matrix",
    group = "factors",
    help = "The coefficients, in f64 or c128, of the derivative of the " ..
        "polynomial with the coefficients p, that of the highest power first.",
    example = "polyder{1, 0, 3}",
    result = "{2, 0}",
}
function factors.polyder(p)
    local list, out = coefficients("polyder", "coefficient", p), {}
    for i = 1, #list - 1 do out[i] = (#list - i) * list[i] end
    if #out == 0 then out[1] = 0 end
    return polynomial(out, p)
end

row{
    name = "polyint",
    takes = "p: list [, c: number|complex]",
    gives = "matrix",
    group = "factors",
    help = "The coefficients, in f64 or c128, of the integral of the " ..
        "polynomial with the coefficients p, that of the highest power first; " ..
        "c is the last of them, 0 by default.",
    example = "polyint{2, 0}",
    result = "{1, 0, 0}",
}
function factors.polyint(p, c)
    local list, out = coefficients("polyint", "coefficient", p), {}
    for i, a in ipairs(list) do out[i] = a / (#list - i + 1) end
    out[#out + 1] = c or 0
    return polynomial(coefficients("polyint", "coefficient", out), p)
end

row{
    name = "deconv",
    takes = "p: list, q: list",
    gives = "matrix, matrix",
    group = "factors fourier",
    help = "The quotient of two polynomials, in f64 or c128, that of the " ..
        "highest power first, and what is left, as long as p: p is conv(q, " ..
        "quotient) plus that.",
    example = "deconv({1, 5, 6}, {1, 2})",
    result = "{1, 3}",
}
function factors.deconv(p, q)
    local by = coefficients("deconv", "coefficient", q)
    local left, quotient = {}, {}
    for i, c in ipairs(coefficients("deconv", "coefficient", p)) do left[i] = c end
    if #by == 0 or library.abs(by[1]) == 0 then
        fail("deconv", "the first coefficient of q is %s, which nothing is " ..
            "divided by", #by == 0 and "missing" or "0")
    end
    for i = 1, #left - #by + 1 do
        local times = left[i] / by[1]
        quotient[i], left[i] = times, 0
        for k = 2, #by do
            left[i + k - 1] = left[i + k - 1] - times * by[k]
        end
    end
    if #quotient == 0 then quotient[1] = 0 end
    return polynomial(quotient, p), polynomial(left, p)
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
