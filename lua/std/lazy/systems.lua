-- Linear systems by what their matrix is, and how good the answer is. solve in
-- lua/math/linear.c comes here with options, with a rectangular matrix, and
-- with one that two corners show may have structure.
local library, _, _, private = ...
local checks = require "lumat.checks"
local steps = require "lumat.factor_steps"
local refuse_singular = require "lumat.factors".make.refuse_singular
local fail, shape_of = checks.fail, checks.shape_of
local huge, larger = math.huge, math.max
local systems = {}

-- --- condition --------------------------------------------------------------

local part = {c64 = "f32", c128 = "f64"} -- of complex elements

-- A as precise as b, at least.
local function as_wide(A, b)
    return checks.is_wide(b) and checks.as_wide(A) or A
end

-- 1 or -1, of complex numbers those of size 1 that they are their sizes times.
local function signs(y)
    if not part[y.dtype] then
        local ones = library.where(y:ge(0), 1, -1)
        return ones[y.dtype](ones)
    end
    return library.where(y:eq(0), 1, library.sign(y))
end

-- |A^-1| in the 1-norm, of an n x n A: solve(b) gives A^-1 b of a column,
-- turned(b) A^-H b. Exact mostly, seldom more than three times too small.
-- Source: Higham, FORTRAN codes for estimating the one-norm of a real or
-- complex matrix, 1988.
local function inverse_norm(n, like, solve, turned)
    local there = {dtype = like.dtype, device = like.device}
    local x, weight, most = library.ones(n, 1, there), n, 0 -- x over weight
    for _ = 1, 5 do
        local y = solve(x)
        local size = y:abs():sum() / weight
        if n == 1 or size ~= size or size == huge then return size end
        if size <= most then break end
        most = size
        local z = turned(signs(y))
        local at = z:abs():argmax()
        if library.abs(z[{at, 1}]) <=
            library.abs((z % library.conj(x)):sum()) / weight then
            break
        end
        x, weight = library.zeros(n, 1, there), 1
        x[{at, 1}] = 1
    end
    -- where all of that has cancelled
    there.dtype = part[like.dtype] or like.dtype
    local i = library.range(0, n - 1, there):col()
    local odd = i - 2 * library.floor(i / 2)
    local test = (1 - 2 * odd) % (1 + i / (n - 1))
    return larger(most, 2 * solve(test):abs():sum() / (3 * n))
end

-- In the 1-norm, of what solves with A and with A.H. Of a sparse matrix its
-- norm is given, and A is a table of rows, dtype and device.
function systems.rcond_of(A, solve, turned, norm)
    if A.rows == 0 then return 1.0 end
    norm = norm or library.norm(A, 1)
    -- what is solved has A's size, so that the inverse of a small A, or of a
    -- large one, stays in the range of its type, as the size does
    local least = checks.is_wide(A) and -1022 or -126
    local scale = norm > 0 and norm < huge and
        2.0 ^ larger(select(2, math.frexp(norm)) - 2, least) or 1.0
    local function by_scale(solves)
        return function(b) return solves(b * scale) end
    end
    local size = norm / scale *
        inverse_norm(A.rows, A, by_scale(solve), by_scale(turned))
    if size ~= size then return 0.0 end
    return size > 1 and 1 / size or size == 0 and 0.0 or 1.0
end

-- How far b is from A x, for what rounding A and b once would do: the norms are
-- those of rows, the arithmetic f64's. norm: that of a sparse A.
local function backward_error(A, x, b, norm)
    A, x, b = checks.as_wide(A), checks.as_wide(x), checks.as_wide(b)
    local size = (norm or library.norm(A, "inf")) * library.norm(x, "inf") +
        library.norm(b, "inf")
    return size == 0 and 0.0 or library.norm(b - A * x, "inf") / size
end
systems.backward_error = backward_error

-- --- by kind ----------------------------------------------------------------
-- Of A and columns b: x, and what solves further ones with A and with A.H (by
-- default the same), to estimate the condition with; some also what gives a
-- number that the 1-norm of A^-1 is not above, or nil. nil: A is not of the kind
-- after all.

local kinds = {}

local function singular(what, at)
    refuse_singular("%s %d is zero", what, at)
end

function kinds.diagonal(A, b)
    local d = library.diag(A):col()
    local zero = d:eq(0)
    if zero:any() then singular("element", zero:argmax()) end
    local function solve(y) return y / d end
    return solve(b), solve, function(y) return y / library.conj(d) end
end

local function by_triangle(lower)
    return function(A, b)
        local function solve(y, turned)
            local x, zero = steps.triangle(A, y, {lower = lower,
                turned = turned})
            return x or singular("pivot", zero)
        end
        return solve(b), solve, function(y) return solve(y, true) end
    end
end
kinds.lower, kinds.upper = by_triangle(true), by_triangle(false)

function kinds.banded(A, b, below, above)
    if not below then below, above = steps.structure(A) end
    if not below then below, above = 1, 1 end -- in a dry run
    local x, zero = steps.band(A, below, above, b)
    if not x then singular("pivot", zero) end
    return x, function(y) return (steps.band(A, below, above, y)) end,
        function(y) return (steps.band(A.H, above, below, y)) end
end

function kinds.positive(A, b) -- A.H is A, and its columns lie as A's rows do
    local L, minor = steps.chol(A.H)
    if not L then return nil, minor end
    local function solve(y)
        return steps.triangle(L, steps.triangle(L, y, {lower = true}),
            {lower = true, turned = true})
    end
    return solve(b), solve, nil, function() return steps.inverse_bound(L) end
end

function kinds.symmetric(A, b)
    local F = library.ldl(A)
    local function solve(y) return F:solve(y) end
    return solve(b), solve
end

-- --- what A is --------------------------------------------------------------

-- Bands are worth it where together they are at most such a part of the rows.
local NARROW = 1 / 8

local function kind_of(A)
    local below, above, is_symmetric, is_positive = steps.structure(A)
    if not below then return "general" end -- in a dry run
    if below == 0 and above == 0 then return "diagonal" end
    if below == 0 then return "upper" end
    if above == 0 then return "lower" end
    if below + above < NARROW * A.rows then return "banded", below, above end
    return is_symmetric and (is_positive or
        library.real(library.diag(A)):gt(0):all()) and "positive" or "general"
end

-- --- solve ------------------------------------------------------------------

-- "A[{4, 1}] is NaN" of the first element of M that is no finite number, M
-- being A's rows from `first` on; nil: there is none.
local function odd_in(name, M, first)
    local row, col = steps.look(M)
    return row and ("%s[{%d, %d}] is %s"):format(name, first + row - 1, col,
        checks.figure("%s", M(row, col)))
end

-- Of a batch that a CPU has solved: the first element of A that is not finite,
-- or the first solution of a finite b. On a GPU looking takes as long as solving.
local function warn_of_odd(A, b, x)
    if x.device ~= "cpu" or not steps.warns() then return end
    local odd = odd_in("A", A, 1)
    if not odd then
        local row = steps.look(x)
        if not row or steps.look(b) then return end
        local s, n = (row - 1) // A.cols + 1, A.cols
        odd = ("the solution of system %d of the batch is not finite: its " ..
            "matrix is nearly singular (rows %d to %d of A)"):format(s,
            (s - 1) * n + 1, s * n)
    end
    private.warn_once("solve", odd)
end

local function solve_batch(A, b, how)
    if how.kind and how.kind ~= "general" and how.kind ~= "auto" or how.info then
        fail("solve", "batch goes without %s: all systems are general ones",
            how.info and "info" or "kind")
    end
    local columns = b.ndim == 1 and b:col() or b
    local x, at = steps.batch(A, columns, how.batch)
    if x then
        warn_of_odd(A, columns, x)
        return b.ndim == 1 and x:flatten() or x
    end
    local first, last = (at - 1) * A.cols + 1, at * A.cols
    local odd = odd_in("A", A[{{first, last}, {}}], first)
    if odd then fail("solve", "%s, in system %d of the batch", odd, at) end
    fail("solve", "system %d of the batch is singular (rows %d to %d of A)", at,
        first, last)
end

local function solve_rectangular(A, b, how)
    if not how.info then return library.lstsq(A, b) end
    local x, told = library.lstsq(A, b, {info = true})
    told.kind = "rectangular"
    return x, told
end

-- Is rcond(A) far above what is warned of? By a bound, which takes a fraction of
-- an estimate.
local function is_surely_good(A, bound)
    local most = bound and bound()
    return most and library.norm(A, 1) * most < (A.dtype == "f32" and 2.0 ^ 16 or
        2.0 ^ 45)
end

-- x, what A is found to be unless it is told, and rcond(A) where it is wanted or
-- may have to be warned of. Of a general one also how many steps of refinement
-- there were.
local function solve_square(A, b, kind, how)
    local is_told = kind ~= "auto"
    local below, above, x, again, turned, bound
    if not is_told then kind, below, above = kind_of(A) end
    if kind ~= "general" then
        x, again, turned, bound = kinds[kind](A, b, below, above)
        if not x and is_told then
            fail("solve", "the matrix is not positive definite (its leading " ..
                "minor of order %d is not positive)", again)
        end
    end
    if x then
        local wants_rcond = how.info or
            steps.warns() and not is_surely_good(A, bound)
        return x, kind, wants_rcond and
            systems.rcond_of(A, again, turned or again)
    end
    local rcond, count
    x, rcond, count = steps.general(A, b, how.method == "direct", how.info)
    return x, "general", rcond, count
end

-- Of a matrix of a kind that reads a part of A only, the rest has to be zero.
local function check_kind(A, kind)
    local below, above, is_symmetric = steps.structure(A)
    if not below then return end
    if kind == "diagonal" and below + above > 0 or
        kind == "lower" and above > 0 or kind == "upper" and below > 0 then
        fail("solve", "kind is \"%s\", but A has elements %s the diagonal; " ..
            "solve(%s, b) takes the part that is meant", kind,
            (kind == "lower" or below == 0) and "above" or "below",
            kind == "diagonal" and "diag(diag(A))" or
            kind == "lower" and "tril(A)" or "triu(A)")
    end
    if (kind == "positive" or kind == "symmetric") and not is_symmetric then
        local is_complex = part[A.dtype]
        fail("solve", "kind is \"%s\", but A is not %s; (A + A.%s) / 2 is", kind,
            is_complex and "Hermitian" or "symmetric", is_complex and "H" or "T")
    end
end

systems.solve = checks.placed(function(A, b, how)
    how = how or {}
    local kind = how.kind or "auto"
    if how.batch then return solve_batch(A, b, how) end
    if A.rows ~= A.cols and kind == "auto" or kind == "rectangular" then
        return solve_rectangular(A, b, how)
    elseif A.ndim ~= 2 or A.rows ~= A.cols then
        fail("solve", "kind is \"%s\", which only a square matrix can be, " ..
            "not %s", kind, shape_of(A))
    end
    if kind ~= "auto" and kind ~= "general" then check_kind(A, kind) end
    local columns = b.ndim == 1 and b:col() or b
    if A.rows == 0 or columns.cols == 0 then kind = "general" end
    if A.dtype == "bool" then A = A:f32() end
    A = as_wide(A, columns)
    local x, found, rcond, count = solve_square(A, columns, kind, how)
    if rcond then steps.warn_if_poor(A, rcond) end
    if b.ndim == 1 then x = x:flatten() end
    if not how.info then return x end
    if columns.cols == 0 then rcond = library.rcond(A) end
    return x, {kind = found, rcond = rcond, error = backward_error(A, x, b),
        steps = count, method = count and (count > 0 and "refinement" or
            "direct")}
end, 3)

return systems
