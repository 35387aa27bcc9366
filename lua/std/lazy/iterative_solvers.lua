-- Systems and least squares by products with a matrix alone: each method takes
-- steps from an x on, and begins again from what it has found as long as that
-- gains. Sources: Hestenes and Stiefel, Methods of conjugate gradients for
-- solving linear systems, 1952; Paige and Saunders, Solution of sparse indefinite
-- systems of linear equations, 1975 (MINRES, its preconditioned form that of
-- Elman, Silvester and Wathen, Finite elements and fast iterative solvers, 2014),
-- and LSQR, 1982; Saad and Schultz, GMRES, 1986; van der Vorst, Bi-CGSTAB, 1992.
local library = ...
local checks = require "lumat.checks"
local operators = require "lumat.operators"
local progress = require "lumat.progress_steps"
local fail, shape_of = checks.fail, checks.shape_of
local adjoint, unit = operators.adjoint, checks.unit
local solvers = {}
local getmetatable, ipairs, type = getmetatable, ipairs, type
local floor, huge, larger, log, root, smaller = math.floor, math.huge,
    math.max, math.log, math.sqrt, math.min
local format = string.format

local tolerance = {f32 = 1e-5, f64 = 1e-10, c64 = 1e-5, c128 = 1e-10}

-- Of vectors: x.H y, of which the real part is meant where it has to be real.
local function inner(x, y)
    local product = library.dot(x, y)
    return type(product) == "number" and product or product.real
end

local function is_finite(x)
    return x == x and x < huge and x > -huge
end

-- --- preconditions ----------------------------------------------------------
-- Each is a function that gives of a vector r the z with M z = r; turned(r), of
-- lsqr's, the same with M.H.

-- The numbers that one divides by for "jacobi": A's diagonal, and of lsqr the
-- lengths of A's columns.
local function jacobi_scale(what, A)
    local n = A.cols
    local is_dense = checks.kind(A) == "matrix"
    local there = {dtype = "f64", device = A.device}
    if what == "lsqr" then
        if is_dense then return A:norm{axis = 1}:flatten() end
        local sizes = A:abs()
        return ((sizes % sizes).T * library.ones(A.rows, there)):sqrt()
    elseif is_dense then
        return library.diag(A)
    end
    local places = library.range(1, n, 1, there)
    local ones = library.ones(n, there)
    return A % library.sparse(places, places, ones, n, n) * ones
end

local function jacobi(what, A)
    if operators.is_function(A) then
        fail(what, "\"jacobi\" needs the elements of A, which is a function: " ..
            "precondition = function(r) return r / d end, with d A's diagonal")
    end
    local scale = jacobi_scale(what, A)
    local zero = scale:eq(0)
    if what == "lsqr" then
        scale = library.where(zero, 1, scale)
    elseif zero:any() then
        local at = zero:argmax()
        fail(what, "\"jacobi\" divides by A's diagonal, and A(%d, %d) is 0", at,
            at)
    end
    return function(r) return r / scale end,
        function(r) return r / library.conj(scale) end
end

local function by_function(what, f, n)
    local function solve(r, turned)
        return operators.checked(what, f, n, r:col(), turned):flatten()
    end
    return function(r) return solve(r, false) end,
        function(r) return solve(r, true) end
end

-- F solves with A.H as well: one of a sparse matrix by its parts, of a dense one
-- by other factors.
local function turned_solve(F, s)
    if checks.kind(s.A) == "sparse matrix" then
        local solve_turned = require "lumat.sparse_systems".solve_turned
        return function(r) return solve_turned(F, r) end
    end
    local turned
    return function(r)
        turned = turned or library.lu(adjoint(s.A))
        return turned:solve(r)
    end
end

local function by_factors(what, F, op)
    local s = require "lumat.factors".make.state[F]
    if s.rows ~= op.cols or s.cols ~= op.cols then
        fail(what, "the precondition is %s, expected %dx%d", s.shape, op.cols,
            op.cols)
    end
    return function(r) return F:solve(r) end, turned_solve(F, s)
end

-- "ilu" or "ichol", which lsqr makes of A.H A: its M is then the factor L.H, as
-- with "jacobi" it is the root of the diagonal.
local function incomplete(what, A, name, op)
    if checks.kind(A) ~= "sparse matrix" then
        fail(what, "\"%s\" is of sparse matrices, A is a %s: %s", name,
            checks.kind(A), operators.is_function(A) and
                "precondition = " .. name .. "(S) takes an S near A" or
                "precondition = A is exact")
    elseif what == "lsqr" and name == "ichol" then
        return require "lumat.sparse_systems".normal_halves(what, A)
    end
    return by_factors(what, library[name](A), op)
end

local function precondition_of(what, A, M, op)
    if M == nil then
        local function same(r) return r end
        return same, same
    elseif M == "jacobi" then
        return jacobi(what, A)
    elseif M == "ilu" or M == "ichol" then
        return incomplete(what, A, M, op)
    elseif not operators.is_function(M) then
        return by_factors(what, library.lu(M), op)
    elseif getmetatable(M) == "factorisation" then
        return by_factors(what, M, op)
    end
    return by_function(what, M, op.cols)
end

-- --- methods ----------------------------------------------------------------
-- A method takes steps from x on, of which b - A x is `left`, until `p.note`,
-- told how large that is after each, says that it is enough or that there have
-- been too many. It gives the better x and, where going on is of no use, why.

local methods = {}

function methods.cg(p, x, r)
    local d, before = nil, nil
    repeat
        local z = p.solve(r)
        local size = inner(r, z)
        if not (size > 0) then
            return x, format("the precondition is not positive definite: " ..
                "r.H z is %s of the z with M z = r", checks.figure("%.3g", size))
        end
        d = d and z + size / before * d or z
        local product = p.apply(d)
        local curve = inner(d, product)
        if not (curve > 0) then
            return x, format("A is not positive definite: d.H A d is %s for a " ..
                "direction d", checks.figure("%.3g", curve)) ..
                "; minres or gmres may do"
        end
        x = x + size / curve * d
        r = r - size / curve * product
        before = size
    until p.note(r:norm())
    return x
end

-- z of length 1 in the sense of M are Lanczos' vectors, v those times M; c and s
-- turn the tridiagonal matrix into a triangle, whose columns w are.
function methods.minres(p, x, r)
    local v, v_before = r, nil
    local z = p.solve(v)
    local gamma, gamma_before = inner(z, v), nil
    if not (gamma > 0) then
        return x, format("the precondition is not positive definite: r.H z is " ..
            "%s of the z with M z = r", checks.figure("%.3g", gamma))
    end
    gamma = root(gamma)
    local w, w_before
    local c, c_before, s, s_before, eta, size = 1, 1, 0, 0, gamma, 0
    repeat
        z = z / gamma
        local product = p.apply(z)
        local delta = inner(z, product)
        local next_v = product - delta / gamma * v
        if v_before then next_v = next_v - gamma / gamma_before * v_before end
        local next_z = p.solve(next_v)
        local next_gamma = root(larger(inner(next_z, next_v), 0))
        local corner = c * delta - c_before * s * gamma
        size = larger(size, root(delta * delta + gamma * gamma * (w and 1 or 0) +
            next_gamma * next_gamma))
        if not is_finite(size) then return x end
        if root(corner * corner + (c * next_gamma) ^ 2) <=
            10 * p.unit * size then
            return x, "A is singular and b not in its range: no x does better"
        end
        local pivot = root(corner * corner + next_gamma * next_gamma)
        local next_w = z
        if w_before then next_w = next_w - s_before * gamma * w_before end
        if w then next_w = next_w - (s * delta + c_before * c * gamma) * w end
        next_w = next_w / pivot
        c_before, s_before = c, s
        c, s = corner / pivot, next_gamma / pivot
        x = x + c * eta * next_w
        eta = -s * eta
        local is_all = next_gamma <= p.unit * size
        r = s * s * r
        if not is_all then r = r + eta * c / next_gamma * next_v end
        v_before, v, z, w_before, w = v, next_v, next_z, w, next_w
        gamma_before, gamma = gamma, next_gamma
    until p.note(r:norm()) or is_all
    return x
end

function methods.bicgstab(p, x, r)
    local shadow, d, product = r, r, nil
    local rho = library.dot(shadow, r)
    local first = r:norm()
    repeat
        local z = p.solve(d)
        product = p.apply(z)
        local along = library.dot(shadow, product)
        if not (library.abs(along) > 0) then return x end
        local alpha = rho / along
        x, r = x + alpha * z, r - alpha * product
        local size = r:norm()
        if size <= p.goal then
            p.note(size)
            return x
        end
        local y = p.solve(r)
        local turn = p.apply(y)
        local length = inner(turn, turn)
        if not (length > 0) then
            p.note(size)
            return x
        end
        local omega = library.dot(turn, r) / length
        x, r = x + omega * y, r - omega * turn
        size = r:norm()
        if p.note(size) then return x end
        local next_rho = library.dot(shadow, r)
        -- where that is but rounding, other directions have to be taken
        if not (library.abs(next_rho) > p.unit * first * size and
            library.abs(omega) > 0) then
            return x
        end
        d = r + next_rho / rho * (alpha / omega) * (d - omega * product)
        rho = next_rho
    until not is_finite(size)
    return x
end

-- The y for which |h y - beta e1| is least, of a corner of h, and how large that
-- is: as large as what is left of b.
local function least(h, count, beta)
    local corner = h[{{1, count + 1}, {1, count}}]
    local e = library.zeros(count + 1, 1, {dtype = h.dtype, device = "cpu"})
    e[{1, 1}] = beta
    local y = library.lstsq(corner, e)
    return y, (e - corner * y):norm()
end

local function first_columns(A, count)
    return A[{{}, {1, count}}]
end

-- w without its part in the space of V, and that part's coordinates: twice, as
-- the first time leaves rounding.
local function without(V, w)
    local along = adjoint(V) * w
    w = w - V * along
    local more = adjoint(V) * w
    return w - V * more, along + more
end

function methods.gmres(p, x, r)
    local beta, m = r:norm(), p.restart
    local V = library.zeros(r.rows, m + 1, {dtype = r.dtype,
        device = r.device})
    local h = library.zeros(m + 1, m, {dtype = r.dtype, device = "cpu"})
    V[{{}, 1}] = r / beta
    local count, y, rest = 0, nil, nil
    repeat
        count = count + 1
        local w, along = without(first_columns(V, count),
            p.apply(p.solve(V[{{}, count}])):col())
        local size = w:norm()
        if not is_finite(size) then return x end
        h[{{1, count}, {count, count}}], h[{count + 1, count}] =
            along:to "cpu", size
        y, rest = least(h, count, beta)
        local is_all = size <= p.unit * along:norm()
        if not is_all then V[{{}, count + 1}] = w:flatten() / size end
    until p.note(rest) or is_all or count == m
    return x + p.solve((first_columns(V, count) * y:to(r.device)):flatten())
end

-- u and v are Golub's and Kahan's vectors, of the operator A M^-1.
function methods.lsqr(p, x, r)
    local beta = r:norm()
    local u = r / beta
    local v = p.turned_solve(p.turned(u))
    local alpha = v:norm()
    if not (alpha > 0) then return x end
    v = v / alpha
    local w, y = v, library.zeros(v.rows, {dtype = v.dtype, device = v.device})
    local rest, corner, size = beta, alpha, 0
    repeat
        u = p.apply(p.solve(v)) - alpha * u
        beta = u:norm()
        size = root(size * size + alpha * alpha + beta * beta)
        if beta > 0 then u = u / beta end
        local pivot = root(corner * corner + beta * beta)
        local c, s = corner / pivot, beta / pivot
        y = y + c * rest / pivot * w
        v = p.turned_solve(p.turned(u)) - beta * v
        alpha = v:norm()
        if alpha > 0 then v = v / alpha end
        w = v - s * alpha / pivot * w
        corner, rest = -c * alpha, s * rest
        local is_least = alpha * library.abs(c) <= p.tol / 2 * size
    until p.note(rest) or is_least or not is_finite(alpha)
    p.size = larger(p.size or 0, size)
    return x + p.solve(y)
end

-- --- one right side ---------------------------------------------------------

-- Of b, what is left by x; its size relative to b's; and of lsqr |A.H left|
-- relative to |A| |left|, which is 0 where no x does better.
local function look(p, x)
    local left = p.b - p.apply(x)
    local size = left:norm()
    local slope
    if p.what == "lsqr" then
        local steepest = p.turned_solve(p.turned(left)):norm()
        slope = steepest == 0 and 0.0 or steepest / ((p.size or 0) * size)
    end
    return left, size, slope
end

-- Rounds from x on until it is good enough, or they gain nothing.
local function rounds(p, x, count_of)
    local left, rest, slope = look(p, x)
    local trouble
    local function is_done()
        return rest <= p.goal or slope ~= nil and slope <= p.tol
    end
    p.history[1] = rest / p.length
    while not is_done() and not trouble and count_of() < p.steps do
        local better
        better, trouble = p.method(p, x, left)
        local new_left, size, new_slope = look(p, better)
        if not (size < rest or new_slope and new_slope < slope) then break end
        x, left, rest, slope = better, new_left, size, new_slope
    end
    return x, {steps = count_of(), residual = rest / p.length, slope = slope,
        converged = is_done(), trouble = trouble}
end

-- Tells of a step and what it has left: of the digits that are wanted a share is
-- there.
local function tell_progress(p, count, rest)
    local share = rest > 0 and log(rest) / log(p.tol) or 1
    progress.tell(p.work, format("%s step %d, residual %.1e", p.what, count, rest),
        larger(0, smaller(share, 1)))
end

-- The x for a vector b, from `start` on, which may be nil; and what is told.
local function solve_vector(p, b, start)
    local length = b:norm()
    if not is_finite(length) then
        fail(p.what, "b has the length %s; it needs finite numbers",
            checks.figure("%s", length))
    end
    local x = start or library.zeros(p.cols, {dtype = b.dtype,
        device = b.device})
    p.history = {0.0}
    if length == 0 then
        return x * 0, {steps = 0, residual = 0.0, converged = true}
    end
    -- a power of two leaves digits as they are, and squares in range
    local scale = 2.0 ^ floor(log(length, 2))
    p.b, p.length = b / scale, length / scale
    p.goal = p.tol * p.length
    local count = 0
    function p.note(size)
        count = count + 1
        p.history[count + 1] = size / p.length
        if p.work then tell_progress(p, count, size / p.length) end
        return not (size > p.goal) or count >= p.steps
    end
    local told
    x, told = rounds(p, x / scale, function() return count end)
    return x * scale, told
end

-- --- several ----------------------------------------------------------------

local function no_convergence(p, told, where)
    local reason = "a precondition, more steps or a larger tol may do"
    if p.what == "gmres" then
        reason = "a precondition, a larger restart or tol may do"
    elseif p.is_symmetric and not p.is_symmetric() then
        reason = "A is not symmetric, as it has to be: gmres may do"
    elseif told.trouble then
        reason = told.trouble
    end
    fail(p.what, "it did not converge%s in %s (residual %.2g); %s; with " ..
        "{info = true} it gives what it has", where,
        checks.plural(told.steps, "step"), told.residual, reason)
end

-- Histories as one vector, or as columns, NaN behind the end of the shorter.
local function histories(all)
    local longest = 0
    for _, history in ipairs(all) do longest = larger(longest, #history) end
    local H = library.full(longest, #all, 0 / 0, {dtype = "f64",
        device = "cpu"})
    for j, history in ipairs(all) do
        H[{{1, #history}, j}] = library.vec(history, {dtype = "f64",
            device = "cpu"})
    end
    return H
end

-- What is told of each; NaN where it is not.
local function list_of(all, name)
    local list = {}
    for j, told in ipairs(all) do
        list[j] = told[name]
        if list[j] == nil then list[j] = 0 / 0 end
    end
    return library.vec(list, {dtype = "f64", device = "cpu"})
end

-- Each column of B; of a vector, which is_one says it was, results are plain.
local function solve_columns(p, B, start, options, is_one)
    local X = library.zeros(p.cols, B.cols, {dtype = B.dtype,
        device = B.device})
    local all, kept, converged = {}, {}, true
    for j = 1, B.cols do
        local x, told = solve_vector(p, B[{{}, j}], start and start[{{}, j}])
        if not told.converged and not options.info then
            no_convergence(p, told,
                is_one and "" or format(" for column %d of b", j))
        end
        X[{{}, j}], all[j], kept[j] = x, told, p.history
        converged = converged and told.converged
    end
    if is_one then
        local told = all[1]
        told.history = histories(kept):flatten()
        return X:flatten(), told
    elseif B.cols == 0 then
        return X, {converged = true}
    end
    return X, {steps = list_of(all, "steps"), residual = list_of(all, "residual"),
        slope = p.what == "lsqr" and list_of(all, "slope") or nil,
        converged = converged, history = histories(kept)}
end

local function as_type(M, dtype)
    return M.dtype == dtype and M or M[dtype](M)
end

local function start_of(what, start, op, b, dtype)
    if start == nil then return nil end
    if start.ndim ~= b.ndim or start.rows ~= op.cols or start.cols ~= b.cols then
        fail(what, "start is %s, expected %s", shape_of(start),
            b.ndim == 1 and format("vector %d", op.cols) or
            format("%dx%d", op.cols, b.cols))
    end
    start = as_type(start, dtype)
    return start.ndim == 1 and start:col() or start
end

local function iterate(what, A, b, options)
    options = options or {}
    local is_function = operators.is_function(A)
    operators.refuse_told(what, A, options)
    local dtype = checks.wider_type(is_function and b or A, b)
    if not is_function then A = as_type(A, dtype) end
    local cols = b.rows
    if what == "lsqr" and is_function then cols = options.cols end
    local op = operators.of(what, A, b.rows, cols, {dtype = dtype,
        device = b.device})
    if what ~= "lsqr" and op.rows ~= op.cols or op.rows ~= b.rows then
        fail(what, "A is %dx%d, b %s%s", op.rows, op.cols, shape_of(b),
            op.rows ~= op.cols and what ~= "lsqr" and
            "; lsqr has no need of a square one" or "")
    end
    local p = {what = what, method = methods[what], cols = op.cols,
        unit = unit[dtype], tol = options.tol or tolerance[dtype],
        steps = options.steps or 1000,
        restart = smaller(options.restart or 50, b.rows)}
    function p.apply(x) return op.apply(x:col()):flatten() end
    function p.turned(y) return op.turned(y:col()):flatten() end
    p.solve, p.turned_solve = precondition_of(what, A, options.precondition, op)
    if (what == "cg" or what == "minres") and not is_function then
        function p.is_symmetric()
            if op.matrix then return op.is_symmetric end
            return adjoint(A) == A
        end
    end
    local is_one = b.ndim == 1
    b = as_type(b, dtype)
    local work <close> = not is_function and
        type(options.precondition) ~= "function" and progress.begin(what) or nil
    p.work = work
    local start = start_of(what, options.start, op, b, dtype)
    local x, told = solve_columns(p, is_one and b:col() or b, start, options,
        is_one)
    if options.info then return x, told end
    return x
end

row{
    name = "cg", method = true,
    takes = "A: matrix|sparse|function, b: matrix {tol, steps, precondition, " ..
        "start, info}",
    gives = "matrix, table with info",
    group = "iterative",
    help = "The x with A x = b of a symmetric positive definite A, of " ..
        "complex numbers a Hermitian one, by conjugate gradients: one " ..
        "product with A a step, and room for a few vectors. A is a " ..
        "matrix, a sparse one, or a function f(x) that gives A x of a " ..
        "column x. With precondition, \"jacobi\" (the diagonal of A), " ..
        "\"ichol\" (of a sparse A), a matrix M near A, which is " ..
        "factored, factors such as ichol(S) or chol(M), or a function " ..
        "that gives the z with M z = r, it takes fewer steps. It has to " ..
        "be positive definite, too. With info also a table: steps, " ..
        "residual (|b - A x| / |b|), converged, history " ..
        "(the residual after each step, which plot shows) and trouble, " ..
        "where a method had to stop; without, what does not converge is " ..
        "an error. Columns of b are solved one by one, and told of as " ..
        "vectors.",
    example = "cg(mat{{4, 1}, {1, 2}}, vec{6, 5})",
    result = "{1, 2}",
    options = {
        {"tol", "positive",
            "1e-10, 1e-5 in f32", "the largest |b - A x| / |b|"},
        {"steps", "count", "1000", "at most"},
        {"precondition",
            "\"jacobi\"|\"ilu\"|\"ichol\"|matrix|sparse|function|factors",
            "none", "what is near A, or solves with it"},
        {"start", "matrix", "zeros", "the x to begin with"},
        {"info", "boolean", "false", "tells steps, residual, history"}},
}
function solvers.cg(A, b, options)
    return iterate("cg", A, b, options)
end

row{
    name = "minres", method = true,
    takes = "A: matrix|sparse|function, b: matrix {tol, steps, precondition, " ..
        "start, info}",
    gives = "matrix, table with info",
    group = "iterative",
    help = "The x with A x = b of a symmetric A, which may be indefinite, " ..
        "of complex numbers a Hermitian one, by products with it: |b - " ..
        "A x| is as small as it can be after as many steps. A is as of " ..
        "cg, and so are preconditions, which have to be positive " ..
        "definite. With info also a table: steps, residual (|b - A x| / " ..
        "|b|), converged, history (the residual after each step, which " ..
        "plot shows) and trouble, where a method had to stop; without, " ..
        "what does not converge is an error. Columns of b are solved " ..
        "one by one, and told of as vectors.",
    example = "minres(mat{{0, 1}, {1, 0}}, vec{1, 2})",
    result = "{2, 1}",
    options_of = "cg",
}
function solvers.minres(A, b, options)
    return iterate("minres", A, b, options)
end

row{
    name = "gmres", method = true,
    takes = "A: matrix|sparse|function, b: matrix {tol, restart, " ..
        "steps, precondition, start, info}",
    gives = "matrix, table with info",
    group = "iterative systems factors",
    help = "The x with A x = b, by products with A alone, as exact as tol " ..
        "says: for matrices too large to factor, sparse ones, and " ..
        "functions f(x) that give A x of a column x. It remembers a " ..
        "vector for each step up to a restart. With precondition, " ..
        "\"jacobi\" (the diagonal of A), \"ilu\" (of a sparse A), a matrix " ..
        "M near A, which is factored, factors such as ilu(S) or lu(M), or " ..
        "a function that gives the z with M z = r, it takes fewer steps. " ..
        "With info also a table: steps, residual (|b - A x| / |b|), converged, history (the " ..
        "residual after each step, which plot shows) and trouble, where " ..
        "a method had to stop; without, what does not converge is an " ..
        "error. Columns of b are solved one by one, and told of as " ..
        "vectors.",
    example = "gmres(mat{{4, 1}, {0, 2}}, vec{6, 4})",
    result = "{1, 2}",
    options_of = "cg",
    options = {{"restart", "count", "50", "steps that are remembered"}},
}
function solvers.gmres(A, b, options)
    return iterate("gmres", A, b, options)
end

row{
    name = "bicgstab", method = true,
    takes = "A: matrix|sparse|function, b: matrix {tol, steps, precondition, " ..
        "start, info}",
    gives = "matrix, table with info",
    group = "iterative",
    help = "The x with A x = b of any square A, by two products with it a " ..
        "step, and room for a few vectors: where gmres would have to " ..
        "remember too many. A is as of gmres, and so are preconditions. " ..
        "With info also a table: steps, residual (|b - A x| / |b|), " ..
        "converged, history (the residual after each step, which plot " ..
        "shows) and trouble, where a method had to stop; without, what " ..
        "does not converge is an error. Columns of b are solved one by " ..
        "one, and told of as vectors.",
    example = "bicgstab(mat{{4, 1}, {0, 2}}, vec{6, 4})",
    result = "{1, 2}",
    options_of = "cg",
}
function solvers.bicgstab(A, b, options)
    return iterate("bicgstab", A, b, options)
end

row{
    name = "lsqr", method = true,
    takes = "A: matrix|sparse|function, b: matrix {tol, steps, precondition, " ..
        "start, cols, info}",
    gives = "matrix, table with info",
    group = "iterative factors",
    help = "The x with the least |b - A x| of an A of any shape, from " ..
        "zeros on the shortest such x, by products with A and A.H, one " ..
        "of each a step. A is a matrix, a sparse one, or a function " ..
        "f(x, turned) of a column x that gives A x, or A.H x where " ..
        "turned is true, of which {cols = …} is the size. It has " ..
        "converged where |b - A x| / |b| or slope, |A.H r| / (|A| |r|) " ..
        "of what is left, r, is at most tol. A precondition M, \"jacobi\" " ..
        "(the lengths of A's columns), \"ichol\" (ichol(A.H * A).L.H, of a " ..
        "sparse A), factors, a matrix, or a function f(r, turned) that " ..
        "gives the z with M z = r or M.H z = r, makes it solve for " ..
        "M x: then M x is the shortest. With info also a " ..
        "table: steps, residual (|b - A x| / |b|), slope, converged and " ..
        "history (the residual after each step, which plot shows); " ..
        "without, what does not converge is an error. Columns of b are " ..
        "solved one by one, and told of as vectors.",
    example = "lsqr(mat{{1, 0}, {0, 1}, {0, 1}}, vec{1, 2, 4})",
    result = "{1, 3}",
    options_of = "cg",
    options = {
        {"tol", "positive",
            "1e-10, 1e-5 in f32", "the largest residual or slope"},
        {"precondition",
            "\"jacobi\"|\"ilu\"|\"ichol\"|matrix|sparse|function|factors",
            "none", "the M of columns that are more alike"},
        {"cols", "count", "A's", "the size of a function's A"}},
}
function solvers.lsqr(A, b, options)
    return iterate("lsqr", A, b, options)
end

return solvers
