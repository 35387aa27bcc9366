-- Systems whose matrix is sparse, by what it is, and its factors as objects. The
-- steps are those of gpu/sparse/sparse_factor.c, which work in f64 or c128 on the
-- CPU, on right sides that are rows.
local library, _, _, private = ...
local checks = require "lumat.checks"
local factors = require "lumat.factors"
local systems = require "lumat.systems"
local steps = require "lumat.sparse_steps"
local dense_steps = require "lumat.factor_steps"
local make = factors.make
local fail, is_complex, shape_of = checks.fail, checks.is_complex,
    checks.shape_of
local add_kind, object, state = make.add_kind, make.object, make.state
local larger = math.max
local sparse = {}

-- --- operands ---------------------------------------------------------------

-- b, a matrix or vector that fits `rows` rows of a matrix on `device`.
local function right_side(b, rows, device)
    make.right_side("solve", rows, b)
    if b.device ~= device then
        fail("solve", "the matrix is on %s, the right side on %s; b:to(%q) is " ..
            "there", device, b.device, device)
    end
    return b
end

-- What `solve` gives of right sides as rows, for b; of a real matrix and a
-- complex b part by part.
local function solved(solve, A, b)
    if is_complex(b) and not is_complex(A) then
        return library.complex(solved(solve, A, library.real(b)),
            solved(solve, A, library.imag(b)))
    end
    local X = solve(b.ndim == 1 and b:row() or b.T)
    return b.ndim == 1 and X:flatten() or X.T:clone()
end

-- The x of so many rows where there is nothing to solve.
local function no_solution(rows, b)
    if b.ndim == 1 then return library.zeros(rows) end
    return library.zeros(rows, b.cols)
end

-- x as the result of A x = b.
local function as_result(x, A, b)
    local type = checks.wider_type(A, b)
    if x.dtype ~= type then x = x[type](x) end
    return x:to(A.device)
end

-- --- norms ------------------------------------------------------------------

-- The largest sum of a row of |A|.
local function row_norm(A)
    if A.rows == 0 or A.cols == 0 then return 0.0 end
    local size = library.abs(A)
    return (size * library.ones(A.cols, {dtype = size.dtype,
        device = size.device})):max()
end

-- Is nothing computed, as in cost(f)?
local function is_dry(A) return not steps.bands(A) end

-- 1 / (|A| |A^-1|) in the 1-norm; solve and turned take and give rows.
local function rcond_of(A, solve, turned)
    if is_dry(A) then return 1.0 end
    local like = {rows = A.rows, device = "cpu",
        dtype = is_complex(A) and "c128" or "f64"}
    return systems.rcond_of(like, function(y) return solve(y.T).T:clone() end,
        function(y) return turned(y.T).T:clone() end, row_norm(A.T))
end

-- --- factors ----------------------------------------------------------------
-- Of A: what solves with it and with A.H, in rows, and how many entries the
-- factors have; or nil and what is wrong. What is factored is the transpose of
-- what the steps are given.

local conj = library.conj
local kinds = {}

local function by_lu(how)
    return function(A)
        local F, zeros, _, count = steps.factor(A, how)
        if zeros > 0 then return nil, zeros end
        return function(B) return steps.solve(F, false, B) end,
            function(B) return conj(steps.solve(F, true, conj(B))) end, count
    end
end
kinds.lu = by_lu "lu"

local function by_chol(how)
    return function(A)
        local F, minor, _, count = steps.factor(A, how)
        if minor > 0 then return nil, minor end
        local function solve(B) return conj(steps.solve(F, false, conj(B))) end
        return solve, solve, count
    end
end
kinds.chol = by_chol "chol"

-- An x for which |A x - b| is least, with as many numbers that are not 0 as A has
-- rank; and that rank.
local function basic(A)
    local F, _, rank, count = steps.factor(A.T, "qr")
    return function(B) return steps.solve(F, false, B) end, rank, count
end

-- Of an A whose rows and columns depend on each other the shortest such x: the
-- part of any other in the space of A's rows, which is what A.H y comes nearest
-- to it with.
local function shortest(A)
    local first, rank, count = basic(A)
    local second, _, more = basic(A.H)
    local turned = checks.as_wide(A):to("cpu").H
    return function(B) return (turned * second(first(B)).T).T end, nil,
        count + more, rank
end

-- The x for which |A x - b| is least, the shortest of them, and what rank A has.
function kinds.qr(A)
    local is_tall = A.rows >= A.cols
    local F, _, rank, count = steps.factor(is_tall and A.T or A, "qr")
    if rank < math.min(A.rows, A.cols) then return shortest(A) end
    return function(B)
        if is_tall then return steps.solve(F, false, B) end
        return conj(steps.solve(F, true, conj(B)))
    end, nil, count, rank
end

local function refuse_singular(zeros)
    fail("solve", "the matrix is singular (%s of its factors %s zero)",
        checks.plural(zeros, "pivot"), zeros == 1 and "is" or "are")
end

local function refuse_indefinite(what)
    fail(what, "the matrix is not positive definite; lu(S) takes any square " ..
        "one that is not singular")
end

-- Several x are as good where A has less than full rank.
local function tell_rank(what, A, rank)
    if is_dry(A) or rank == math.min(A.rows, A.cols) then return end
    private.warn_once(what, string.format("the %s depend on each other (rank " ..
        "%d of %d): of all solutions the shortest is given",
        A.rows >= A.cols and "columns" or "rows", rank,
        math.min(A.rows, A.cols)))
end

-- The factors of an object, made once.
local function factored(s)
    if not s.solve then
        s.solve, s.turned, s.nnz, s.rank = kinds[s.how](s.A)
    end
    return s
end

-- What `solve` gives of b, with a matrix of the object's.
local function solution(s, solve, b)
    right_side(b, s.rows, s.device)
    if s.rows == 0 or s.cols == 0 then
        return as_result(no_solution(s.cols, b), s.A, b)
    end
    return as_result(solved(solve, s.A, b), s.A, b)
end

local methods = {}

function methods.solve(F, b)
    local s = state[F]
    if s.rows > 0 and s.cols > 0 then
        right_side(b, s.rows, s.device)
        if not factored(s).solve then refuse_singular(s.turned) end
        if s.turned and F:rcond() < 10 * 2.0 ^ -52 then
            dense_steps.warn_if_poor("f64", s.rcond)
        end
    end
    return solution(s, s.solve, b)
end

function methods.rcond(F)
    local s = factored(state[F])
    if not s.rcond then
        s.rcond = s.solve and rcond_of(s.A, s.solve, s.turned) or 0.0
    end
    return s.rcond
end

local function add_sparse_kind(how, has_rcond)
    local kind = "sparse " .. how
    add_kind(kind, {order = has_rcond and make.fixed("nnz") or
            make.fixed("nnz", "rank"),
        parts = {nnz = factored, rank = not has_rcond and factored or nil},
        methods = {solve = methods.solve, unpack = make.unpack_parts,
            rcond = has_rcond and methods.rcond or nil},
        says = function(F)
            return string.format(", nnz %d, %s", F.nnz or 0,
                has_rcond and string.format("rcond %.2g", F:rcond()) or
                "rank " .. (F.rank or 0))
        end, recipe = function(s) return {kind = how, matrix = s.A} end})
end
add_sparse_kind("lu", true)
add_sparse_kind("chol", true)
add_sparse_kind("qr", false)

local function check_options(what, options, names)
    for _, name in ipairs(names) do
        if options and options[name] then
            fail(what, "%s is of dense matrices; leave it out, or write full(S)",
                name)
        end
    end
end

local function check_square(what, A)
    if A.rows ~= A.cols then
        fail(what, "needs a square matrix, not %s; qr(S) takes any",
            shape_of(A))
    end
end

-- But for what rounding a product may leave.
local function check_symmetric(what, A)
    if is_dry(A) or A == A.H then return end
    local apart = row_norm(A - A.H)
    local unit = checks.unit[A.dtype]
    if apart > 100 * A.rows * unit * row_norm(A) then
        local kind, turned = "symmetric", "S.T"
        if is_complex(A) then kind, turned = "Hermitian", "S.H" end
        fail(what, "the matrix is not %s: a row of S - %s adds up to %.3g; " ..
            "0.5 * (S + %s) is", kind, turned, apart, turned)
    end
end

function sparse.lu(A, options)
    check_options("lu", options, {"kernel"})
    check_square("lu", A)
    return object("sparse lu", A:clone(), {how = "lu"})
end

function sparse.chol(A, options)
    check_options("chol", options, {"kernel"})
    check_square("chol", A)
    check_symmetric("chol", A)
    local F = object("sparse chol", A:clone(), {how = "chol"})
    if A.rows > 0 and not factored(state[F]).solve then
        refuse_indefinite("chol")
    end
    return F
end

function sparse.qr(A, options)
    check_options("qr", options, {"kernel", "full", "pivots"})
    local F = object("sparse qr", A:clone(), {how = "qr"})
    if A.rows > 0 and A.cols > 0 then
        tell_rank("qr", A, factored(state[F]).rank)
    end
    return F
end

-- --- incomplete factors -------------------------------------------------------
-- ILU(0) and IC(0), made at once, as they may break down. Of A.H the triangles are
-- turned, and change places.

local function triangle(T, is_lower, turned)
    return function(B) return (steps.triangle(T, is_lower, turned, B)) end
end

local function one_after_other(first, second)
    return function(B) return second(first(B)) end
end

local incomplete_methods = {unpack = make.unpack_parts}

function incomplete_methods.solve(F, b)
    return solution(state[F], state[F].solve, b)
end

local function add_incomplete_kind(kind, ...)
    local names, parts = {...}, {}
    for i, name in ipairs(names) do
        parts[name] = function(s)
            s[name] = as_result(s.triangles[i], s.A, s.A)
        end
    end
    names[#names + 1] = "nnz"
    add_kind(kind, {order = make.fixed(table.unpack(names)), parts = parts,
        methods = incomplete_methods,
        says = function(F) return string.format(", nnz %d", F.nnz) end,
        recipe = function(s) return {kind = kind, matrix = s.A} end})
    factors.makers[kind] = function(A) return sparse[kind](A) end
end
add_incomplete_kind("ilu", "L", "U")
add_incomplete_kind("ichol", "L")

local function check_incomplete(what, S)
    if S.rows ~= S.cols then
        fail(what, "needs a square matrix, not %s%s", shape_of(S),
            what == "ichol" and "; S.T * S is one" or "")
    end
end

-- What to do about row `row`; pivot nil: there is none. diagcomp: what was added
-- to the diagonal, nil: nothing.
local function refuse_breakdown(what, row, pivot, n, diagcomp)
    if not pivot then
        fail(what, "nothing is stored at (%d, %d), where a pivot has to be: " ..
            "another order of rows, or S + t * speye(%d) with a small t, has one",
            row, row, n)
    elseif what == "ilu" then
        fail(what, "pivot %d is %s: S + t * speye(%d) with a small t may do; " ..
            "lu(S) looks for better pivots", row,
            checks.brief(pivot == 0 and 0 or pivot), n)
    end
    fail(what, "pivot %d is %s, and has to be above 0: where S is positive " ..
        "definite, {diagcomp = %s} makes up for what is left out%s", row,
        checks.figure("%.3g", pivot), checks.figure("%g", 10 * (diagcomp or 0.01)),
        diagcomp and checks.figure(" better than %g", diagcomp) or "")
end

local function compensated(S, shift)
    return S + shift * (S % library.speye(S.rows, {dtype = S.dtype,
        device = S.device}))
end

-- The triangles of S, to whose diagonal that part of it was added.
local function triangles_of(what, S, diagcomp)
    local L, U, pivot = steps.incomplete(S, what == "ichol")
    if not L then refuse_breakdown(what, U, pivot, S.rows, diagcomp) end
    return L, U
end

row{
    name = "ilu", method = true,
    takes = "S: sparse",
    gives = "factors",
    group = "iterative",
    help = "Incomplete LU factors of a square sparse matrix, ILU(0): F.L with " ..
        "ones on its diagonal and F.U, which have entries where S has some, and " ..
        "whose product is S there. F:solve(b) solves L U x = b, so that F is a " ..
        "precondition of gmres, bicgstab and lsqr: {precondition = ilu(S)}, or " ..
        "\"ilu\". L, U = F:unpack(); F.nnz tells how many entries both have. " ..
        "They are made in f64 on the CPU. There have to be entries on the " ..
        "diagonal, and what they become is not to be 0.",
    example = "full(ilu(sparse(mat{{2, 1}, {4, 5}})).U)",
    result = "{{2, 1}, {0, 3}}",
}
function sparse.ilu(S)
    check_incomplete("ilu", S)
    local L, U = triangles_of("ilu", S)
    return object("ilu", S:clone(), {triangles = {L, U},
        nnz = L.nnz + U.nnz - S.rows,
        solve = one_after_other(triangle(L, true, false),
            triangle(U, false, false)),
        turned = one_after_other(triangle(U, false, true),
            triangle(L, true, true))})
end

row{
    name = "ichol", method = true,
    takes = "S: sparse {diagcomp}",
    gives = "factors",
    group = "iterative",
    help = "The incomplete Cholesky factor of a symmetric positive definite " ..
        "sparse matrix, of complex numbers a Hermitian one, IC(0): F.L has " ..
        "entries where the lower half of S has some, and L * L.H is S there. " ..
        "F:solve(b) solves L L.H x = b, so that F is a precondition of cg and " ..
        "minres: {precondition = ichol(S)}, or \"ichol\". F.nnz tells how " ..
        "many entries L has. It is made in f64 on the CPU. Where a pivot is not " ..
        "above 0, diagcomp adds that part of its diagonal to S.",
    example = "full(ichol(sparse(mat{{4, 2}, {2, 5}})).L)",
    result = "{{2, 0}, {1, 2}}",
    options = {{"diagcomp", "positive", "none", "S + diagcomp * its diagonal is " ..
        "the matrix"}},
}
function sparse.ichol(S, options)
    check_incomplete("ichol", S)
    check_symmetric("ichol", S)
    local shift = options and options.diagcomp
    S = shift and compensated(S, shift) or S:clone()
    local L = triangles_of("ichol", S, shift)
    local solve = one_after_other(triangle(L, true, false),
        triangle(L, true, true))
    return object("ichol", S, {triangles = {L}, nnz = L.nnz,
        solve = solve, turned = solve})
end

-- The x with A.H x = b, of an object of a square sparse A.
function sparse.solve_turned(F, b)
    local s = state[F]
    return solution(s, factored(s).turned, b)
end

-- Of L of ichol(A.H * A): what gives of a vector b the x with L.H x = b, and with
-- L x = b. Where it breaks down more and more is added to the diagonal, as in Lin
-- and More, Incomplete Cholesky factorizations with limited memory, 1999.
function sparse.normal_halves(what, A)
    local S = A.H * A
    local shift, L, row, pivot = 0, steps.incomplete(S, true)
    while not L do
        if not pivot then
            fail(what, "\"ichol\" needs an entry in each column of A, and " ..
                "column %d has none; \"jacobi\" does not", row)
        end
        shift = larger(2 * shift, 1e-3)
        L, row, pivot = steps.incomplete(compensated(S, shift), true)
    end
    local like = {A = S, rows = S.rows, cols = S.cols, device = S.device}
    local half, other = triangle(L, true, true), triangle(L, true, false)
    return function(b) return solution(like, half, b) end,
        function(b) return solution(like, other, b) end
end

-- --- what A is --------------------------------------------------------------

-- A band is worth it where it is narrow, and a good part of it are entries: else
-- an order that brings few of them up does with less.
local NARROW, FULL = 1 / 8, 1 / 4

local function kind_of(A)
    local below, above = steps.bands(A)
    if not below then return "general" end -- in a dry run
    if below == 0 and above == 0 then return "diagonal" end
    if below == 0 then return "upper" end
    if above == 0 then return "lower" end
    if below + above < NARROW * A.rows and
        A.nnz >= FULL * (below + above + 1) * A.rows then
        return "banded"
    end
    return A == A.H and "positive" or "general"
end

-- By kind: what solves with A and with A.H; nil: it is not of the kind.
local solvers = {}

local function by_triangle(is_lower, what)
    local function solve_by(A, turned)
        return function(B)
            local X, zero = steps.triangle(A, is_lower, turned, B)
            return X or fail("solve", "the matrix is singular (%s %d is zero)",
                what, zero)
        end
    end
    return function(A) return solve_by(A, false), solve_by(A, true) end
end
solvers.diagonal = by_triangle(true, "element")
solvers.lower, solvers.upper = by_triangle(true, "pivot"),
    by_triangle(false, "pivot")
solvers.positive = kinds.chol

function solvers.general(A, factor)
    local solve, turned = (factor or kinds.lu)(A)
    if not solve then refuse_singular(turned) end
    return solve, turned
end

local band_chol, band_lu = by_chol "band_chol", by_lu "band"

function solvers.banded(A)
    if A == A.H then
        local solve, turned = band_chol(A)
        if solve then return solve, turned end
    end
    return solvers.general(A, band_lu)
end

-- Of a kind that reads a part of A only, the rest has to be empty.
local function check_kind(A, kind)
    local below, above = steps.bands(A)
    if not below then return end
    if kind == "diagonal" and below + above > 0 or
        kind == "lower" and above > 0 or kind == "upper" and below > 0 then
        fail("solve", "kind is \"%s\", but S has entries %s the diagonal", kind,
            (kind == "lower" or below == 0) and "above" or "below")
    elseif kind == "positive" then
        check_symmetric("solve", A)
    end
end

local function find_solver(A, kind)
    local is_told = kind ~= "auto"
    if is_told then
        if not solvers[kind] then
            fail("solve", "kind \"%s\" is of dense matrices; a sparse one is " ..
                "diagonal, lower, upper, banded, positive, general or " ..
                "rectangular", kind)
        end
        check_kind(A, kind)
    else
        kind = kind_of(A)
    end
    local solve, turned = solvers[kind](A)
    if solve then return kind, solve, turned end
    if is_told then refuse_indefinite("solve") end
    return "general", solvers.general(A)
end

local function solve_square(A, b, kind, how)
    local found, solve, turned = find_solver(A, kind)
    local x = solved(solve, A, b)
    local rcond = (how.info or dense_steps.warns()) and
        rcond_of(A, solve, turned)
    if rcond then dense_steps.warn_if_poor("f64", rcond) end
    return x, {kind = found, rcond = rcond or nil}
end

local function solve_rectangular(A, b, how)
    local solve, _, _, rank = kinds.qr(A)
    local x = solved(solve, A, b)
    if not how.info then
        tell_rank("solve", A, rank)
        return x
    end
    local off = A * x:to(A.device) - b
    local told = {kind = "rectangular"}
    if is_dry(A) then return x, told end
    told.rank, told.method = rank, "qr"
    told.residual = off.ndim == 1 and off:norm() or off:norm{axis = 1}
    return x, told
end

sparse.solve = checks.placed(function(A, b, how)
    how = how or {}
    local kind = how.kind or "auto"
    check_options("solve", how, {"method", "batch"})
    right_side(b, A.rows, A.device)
    local is_rectangular = A.rows ~= A.cols and kind == "auto" or
        kind == "rectangular"
    if not is_rectangular and A.rows ~= A.cols then
        fail("solve", "kind is \"%s\", which only a square matrix can be, not " ..
            "%s", kind, shape_of(A))
    end
    local x, told
    if A.rows == 0 or A.cols == 0 or b.ndim == 2 and b.cols == 0 then
        x = no_solution(A.cols, b)
        told = {kind = kind == "auto" and "general" or kind}
    elseif is_rectangular then
        x, told = solve_rectangular(A, b, how)
    else
        x, told = solve_square(A, b, kind, how)
    end
    x = as_result(x, A, b)
    if not how.info then return x end
    if told.kind == "rectangular" then return x, told end
    local function columns(v) return v.ndim == 1 and v:col() or v end
    if is_dry(A) then return x, told end
    told.error = systems.backward_error(A, columns(x), columns(b), row_norm(A))
    return x, told
end, 3)

return sparse
