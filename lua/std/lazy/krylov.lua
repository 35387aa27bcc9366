-- What products with a large matrix alone give: a few of its eigenvalues or
-- singular values, by block Krylov methods with thick restarts. Sources: Stewart,
-- A Krylov-Schur algorithm for large eigenproblems, 2001; Zhou and Saad, Block
-- Krylov-Schur method for large symmetric eigenvalue problems, 2008.
--
-- The basis V, orthonormal columns, stands beside A V. What is wanted is sought in
-- the space of V by a small dense problem; where that does not do yet, V keeps the
-- best part of its space and goes on from the same next block.
local library = ...
local checks = require "lumat.checks"
local operators = require "lumat.operators"
local steps = require "lumat.factor_steps"
local factors = require "lumat.factors"
local make = factors.make
local fail, is_complex = checks.fail, checks.is_complex
local krylov = {}
local ipairs = ipairs
local abs, huge, larger, smaller = math.abs, math.huge, math.max, math.min
local format, sort, unpack = string.format, table.sort, table.unpack

local adjoint, operator_for, unit = operators.adjoint, operators.of,
    checks.unit
local tolerance = {f32 = 1e-5, f64 = 1e-12, c64 = 1e-5, c128 = 1e-12}

-- Columns of random numbers, the same every time.
local function random_columns(op, cols, seed)
    local X = library.randn(op.cols, cols, {seed = seed, device = op.device,
        dtype = checks.is_wide(op) and "f64" or "f32"})
    return is_complex(op) and library.complex(X) or X
end

-- --- the basis --------------------------------------------------------------

local function first_columns(A, count)
    return A[{{}, {1, count}}]
end

-- Columns orthonormal to each other and to those of V, which may be nil; of W as
-- far as it has any, which are no rounding of what it was; random ones for the
-- rest.
local function orthonormal(op, W, V, seed)
    local size = W:norm{axis = 1}:to "cpu"
    local function without_V(X)
        return V and X - V * (adjoint(V) * X) or X
    end
    local Q, R = library.qr(without_V(without_V(W))):unpack()
    local fresh
    for j, r in ipairs(library.diag(R):abs():to "cpu":totable()) do
        if r <= 10 * unit[op.dtype] * size(1, j) then
            fresh = fresh or random_columns(op, W.cols, seed)
            Q[{{}, j}] = fresh[{{}, j}]
        end
    end
    if fresh then Q = library.qr(without_V(Q)):unpack() end
    -- again, as columns that QR had to make up are not orthogonal to V
    return (library.qr(without_V(Q)):unpack())
end

-- A basis of at most `most` columns, block by block.
local function new_basis(op, block, most)
    local like = {dtype = op.dtype, device = op.device}
    return {op = op, count = 0, most = most, products = 0,
        all = library.zeros(op.cols, most, like),
        all_products = library.zeros(op.rows, most, like),
        next_block = orthonormal(op, random_columns(op, block, 1), nil, 2)}
end

-- V and A V, as views.
local function parts_of(basis)
    return first_columns(basis.all, basis.count),
        first_columns(basis.all_products, basis.count)
end

-- Takes the next block in; expand(A Q) gives of its product the direction in
-- which to go on.
local function grow(basis, expand)
    local Q, op = basis.next_block, basis.op
    local product = op.apply(Q)
    local here = {basis.count + 1, basis.count + Q.cols}
    basis.all[{{}, here}], basis.all_products[{{}, here}] = Q, product
    basis.count, basis.products = here[2], basis.products + 1
    basis.next_block = orthonormal(op, expand and expand(product) or product,
        (parts_of(basis)), 2 + basis.products)
end

-- Takes blocks in until the basis is full, or there have been enough products:
-- but k columns at least. expand: see grow.
local function fill(basis, k, how, expand)
    repeat
        grow(basis, expand)
    until basis.count + how.block > how.most or
        basis.products >= how.steps and basis.count >= k
end

-- V becomes V X.
local function restart(basis, X)
    local V, AV = parts_of(basis)
    V, AV = V * X, AV * X
    basis.count = X.cols
    basis.all[{{}, {1, X.cols}}], basis.all_products[{{}, {1, X.cols}}] = V, AV
end

-- So many columns are best for k values of n: nil where a dense problem is.
local function basis_size(k, block, n)
    local most = larger(2 * k, k + 24 * block)
    most = (most + block - 1) // block * block + block
    return most + block < n and most or nil
end

-- --- which values -----------------------------------------------------------

local keys = {
    largestabs = function(re, im) return -(re * re + im * im) end,
    smallestabs = function(re, im) return re * re + im * im end,
    largestreal = function(re) return -re end,
    smallestreal = function(re) return re end,
}

-- The places of the values, those with the least key first; of a pair of complex
-- ones that above the axis, and the other beside it.
local function order_of(values, key)
    local re, im = library.real(values):totable(),
        library.imag(values):totable()
    local places, at = {}, {}
    for i = 1, #re do
        places[i], at[i] = i, key(re[i], im[i])
    end
    sort(places, function(i, j)
        if at[i] ~= at[j] then return at[i] < at[j] end
        if re[i] ~= re[j] then return re[i] > re[j] end
        local a, b = abs(im[i]), abs(im[j])
        if a ~= b then return a > b end
        return im[i] ~= im[j] and im[i] > im[j] or im[i] == im[j] and i < j
    end)
    return places, im
end

local function cut(list, count)
    return library.vec({unpack(list, 1, count)},
        {dtype = "f64", device = "cpu"})
end

-- --- what is found ----------------------------------------------------------

local few_methods = {unpack = make.unpack_parts}

-- Of rows x cols elements of a type.
local function few(kind, rows, cols, dtype, parts)
    local device = (parts.vectors or parts.U).device
    parts.residuals = parts.residuals:to(device)
    return make.object(kind, {rows = rows, cols = cols, ndim = 2,
        dtype = dtype, device = device}, parts)
end

-- For sessions, which keep an object as the matrices it is made of again.
local function with_rows(values, residuals)
    if is_complex(values) then residuals = library.complex(residuals) end
    return library.vcat(values:row(), residuals:row())
end

local function says_few(name)
    return function(_, s)
        if s[name].rows == 0 then return "" end
        local size = s[name]:abs()
        return format(", %s |%s| %.4g to %.4g, residual %.1e at most%s",
            checks.plural(s[name].rows, "value"), name == "S" and "S" or "values",
            size:min(), size:max(), s.residuals:max(),
            s.products and ", " .. checks.plural(s.products, "block product") or "")
    end
end

-- --- eigenvalues ------------------------------------------------------------

local function small_problem(H, is_symmetric)
    if is_symmetric then
        return library.eigh((H + adjoint(H)) / 2):unpack()
    end
    return library.eig(H):unpack()
end

-- Orthonormal columns that span the first `count` vectors in this order; of a
-- real problem real ones, so one more where a pair would be parted.
local function kept_space(vectors, order, im, count, is_real)
    if is_real and im[order[count]] > 0 then count = count + 1 end
    local X = vectors[{{}, cut(order, count)}]
    if is_real and is_complex(X) then
        local parts = {}
        for j = 1, count do
            local x = vectors[{{}, {order[j], order[j]}}]
            parts[j] = im[order[j]] < 0 and library.imag(x) or library.real(x)
        end
        X = library.hcat(unpack(parts))
    end
    return (library.qr(X):unpack())
end

-- The values sought in the basis as it is: values, vectors in terms of V, their
-- residuals relative to the largest value, order and imaginary parts.
local function seek(basis, k, how)
    local V, AV = parts_of(basis)
    local H = (adjoint(V) * AV):to "cpu"
    local values, vectors = small_problem(H, how.is_symmetric)
    local order, im = order_of(values, how.key)
    local chosen = cut(order, k)
    local there = basis.op.device
    local theta, X = values[chosen]:to(there), vectors[{{}, chosen}]:to(there)
    local found = V * X
    local off = AV * X - found % theta:row()
    local size = values:abs():max()
    return {values = theta, vectors = found, order = order, im = im,
        all = vectors, residuals = off:norm{axis = 1}:flatten():to "cpu" /
            (size > 0 and size or 1)}
end

local function no_convergence(what, k, found, tol, basis)
    fail(what, "%d of %d values did not converge in %s (residual %.2g); " ..
        "more steps, a larger tol or another which may do",
        found.residuals:gt(tol):sum(), k,
        checks.plural(basis.products, "block product"), found.residuals:max())
end

-- Is H, of the first block, that of a symmetric operator?
local function looks_symmetric(basis)
    local V, AV = parts_of(basis)
    local H = adjoint(V) * AV
    return (H - adjoint(H)):abs():max() <=
        1000 * unit[basis.op.dtype] * AV:norm{axis = 1}:max()
end

local function by_blocks(op, k, how)
    local basis = new_basis(op, how.block, how.most)
    if how.is_symmetric == nil then
        repeat grow(basis) until basis.count > 1
        how.is_symmetric = looks_symmetric(basis)
    end
    while true do
        fill(basis, k, how)
        local found = seek(basis, k, how)
        if not found.residuals:gt(how.tol):any() then
            found.products = basis.products
            return found
        elseif basis.products >= how.steps then
            no_convergence("eigs", k, found, how.tol, basis)
        end
        local kept = k + (basis.count - k) // 2
        restart(basis, kept_space(found.all, found.order, found.im, kept,
            not is_complex(op)):to(op.device))
    end
end

local function refuse_symmetric()
    fail("eigs", "symmetric is true, but A is not the same as A.H; " ..
        "(A + A.H) / 2 is")
end

-- All of a small matrix. Where that is claimed to be symmetric, and was not looked
-- at, residuals tell; by blocks they would not converge.
local function by_all(op, k, how)
    local A = op.matrix or op.apply(library.eye(op.cols,
        {dtype = op.dtype, device = op.device}))
    local is_symmetric = how.is_symmetric
    if is_symmetric == nil then
        is_symmetric = operators.of_matrix("eigs", A).is_symmetric
    end
    local values, vectors = small_problem(A, is_symmetric)
    local chosen = cut((order_of(values, how.key)), k)
    local theta, X = values[chosen], vectors[{{}, chosen}]
    local size = k > 0 and values:abs():max() or 0
    local residuals = (A * X - X % theta:row()):norm{axis = 1}:flatten() /
        (size > 0 and size or 1)
    if how.is_claimed and
        residuals:gt(larger(how.tol, tolerance[op.dtype])):any() then
        refuse_symmetric()
    end
    return {values = theta, vectors = X, residuals = residuals}
end

-- The operator (A - near I)^-1, whose largest values belong to those of A that
-- are nearest to `near`, and `near`: moved a little where it is a value itself.
local function inverted(op, near)
    local A = op.matrix
    if not A then
        fail("eigs", "near and \"smallestabs\" need a dense matrix; of a " ..
            "function that solves with A, 1 / values are those of A")
    end
    local one = library.eye(A.rows, {dtype = A.dtype, device = A.device})
    local packed, places, _, zero = steps.lu(A - near * one)
    if zero > 0 then
        local size = library.norm(A, 1)
        near = near + 10 * unit[A.dtype] * (size > 0 and size or 1)
        packed, places = steps.lu(A - near * one)
    end
    local function apply(X)
        return steps.triangle(packed, steps.triangle(packed, X[{places, {}}],
            {lower = true, unit = true}), {})
    end
    return {rows = op.rows, cols = op.cols, dtype = op.dtype,
        device = op.device, apply = apply}, near
end

-- Of A, what was found of (A - near I)^-1.
local function as_of_A(op, found, near)
    local values, X = 1 / found.values + near, found.vectors
    local size = library.norm(op.matrix, 1)
    found.values = values
    found.residuals = (op.matrix * X - X % values:row()):norm{axis = 1}:flatten() /
        (size > 0 and size or 1)
    return found
end

local function check_near(options)
    local near = options.near
    if near and not (abs(near) < huge) then
        fail("eigs", "near is %s, expected a finite number",
            checks.brief(near))
    elseif near and options.which then
        fail("eigs", "near says which values: leave out which")
    end
end

local function check_count(what, k, n)
    if k > n then
        fail(what, "there are %d values, not %d", n, k)
    end
end

make.add_kind("eigs", {order = make.fixed("values", "vectors", "residuals"),
    methods = few_methods, parts = {}, says = says_few "values",
    recipe = function(s)
        return {kind = "eigs", matrix = s.vectors,
            second = with_rows(s.values, s.residuals)}
    end})

function factors.makers.eigs(vectors, _, told)
    return few("eigs", vectors.rows, vectors.rows, vectors.dtype, {vectors = vectors,
        values = told[1], residuals = library.real(told[2])})
end

row{
    name = "eigs", method = true,
    takes = "A: matrix|sparse|function, k: count {which, near, symmetric, n, " ..
        "tol, steps, block, dtype, device}",
    gives = "factors",
    group = "factors",
    help = "k eigenvalues of a large matrix, by products with it: F.values, " ..
        "F.vectors of length 1, and F.residuals, |A v - value v| relative to " ..
        "the size of A. A is a matrix, or a function f(X) of columns X that " ..
        "gives A X, of which {n = …} is the size. Of a matrix that is " ..
        "symmetric, or a function that looks so, values are real. With near " ..
        "and for \"smallestabs\" A is factored once.",
    example = "eigs(mat{{2, 1}, {1, 2}}, 1).values",
    result = "{3}",
    options = {
        {"which", "\"largestabs\"|\"smallestabs\"|\"largestreal\"|" ..
            "\"smallestreal\"", "\"largestabs\"", "the values that are wanted"},
        {"near", "number", "none", "those nearest to it, in place of which"},
        {"symmetric", "boolean", "what A is seen to be", "is A the same as " ..
            "A.H?"},
        {"n", "count", "A's", "the size of a function's A"},
        {"tol", "positive", "1e-12, 1e-5 in f32", "the largest residual"},
        {"steps", "count", "1000", "products with a block of columns, at most"},
        {"block", "count", "4", "columns at a time: more find values that " ..
            "agree more often"},
        {"dtype", "dtype", "f64", "element type of a function's A"},
        {"device", "device", "the default device", "where a function's A is"}},
}
function krylov.eigs(A, k, options)
    options = options or {}
    operators.refuse_told("eigs", A, options)
    check_near(options)
    local op = operator_for("eigs", A, options.n, options.n, options)
    if op.rows ~= op.cols then
        fail("eigs", "needs a square matrix, not %dx%d", op.rows, op.cols)
    end
    check_count("eigs", k, op.cols)
    local which = options.which or "largestabs"
    local how = {key = keys[which], is_symmetric = options.symmetric,
        tol = options.tol or tolerance[op.dtype],
        steps = options.steps or 1000, block = options.block or 4}
    if how.is_symmetric and op.is_symmetric == false then refuse_symmetric() end
    how.is_claimed = how.is_symmetric and op.is_symmetric == nil
    if how.is_symmetric == nil then how.is_symmetric = op.is_symmetric end
    local near = options.near or which == "smallestabs" and 0
    how.most = basis_size(k, how.block, op.cols)
    local found
    if not how.most then
        if near then
            how.key = function(re, im) return (re - near) ^ 2 + im * im end
        end
        found = by_all(op, k, how)
    elseif near then
        local inverse
        inverse, near = inverted(op, near)
        how.key = keys.largestabs
        found = as_of_A(op, by_blocks(inverse, k, how), near)
    else
        found = by_blocks(op, k, how)
    end
    return few("eigs", op.rows, op.cols, op.dtype, {values = found.values,
        vectors = found.vectors, residuals = found.residuals:to(op.device),
        products = found.products})
end

-- --- singular values --------------------------------------------------------

-- U, S and V of A V's k largest, and all of V's side.
local function seek_svd(basis, k)
    local V, AV = parts_of(basis)
    local U, S, W = library.svd(AV):unpack()
    local left, right = first_columns(U, k), V * first_columns(W, k)
    local values = S[{{1, k}}]
    local off = basis.op.turned(left) - right % values:row()
    return {U = left, S = values, V = right, all = W,
        residuals = off:norm{axis = 1}:flatten():to "cpu" /
            (S[1] > 0 and S[1] or 1)}
end

local function svd_by_blocks(op, k, how)
    local basis = new_basis(op, how.block, how.most)
    while true do
        fill(basis, k, how, op.turned)
        local found = seek_svd(basis, k)
        if not found.residuals:gt(how.tol):any() then
            found.products = 2 * basis.products
            return found
        elseif basis.products >= how.steps then
            no_convergence("svds", k, found, how.tol, basis)
        end
        restart(basis, first_columns(found.all, k + (basis.count - k) // 2))
    end
end

local function svd_by_all(op, k, is_smallest)
    local A = op.matrix or op.apply(library.eye(op.cols,
        {dtype = op.dtype, device = op.device}))
    local U, S, V = library.svd(A):unpack()
    local n = S.rows
    local part = is_smallest and {n - k + 1, n} or {1, k}
    local found = {U = U[{{}, part}]:clone(), S = S[{part}]:clone(),
        V = V[{{}, part}]:clone()}
    found.residuals = (A * found.V - found.U % found.S:row()):norm{axis = 1}
        :flatten() / (S[1] > 0 and S[1] or 1)
    return found
end

make.add_kind("svds", {order = make.fixed("U", "S", "V", "residuals"),
    methods = few_methods, parts = {}, says = says_few "S",
    recipe = function(s)
        return {kind = "svds", matrix = s.U,
            second = library.vcat(s.V, with_rows(s.S, s.residuals))}
    end})

function factors.makers.svds(U, _, told)
    local n = told.rows - 2
    return few("svds", U.rows, n, U.dtype, {U = U, V = told[{{1, n}, {}}],
        S = library.real(told[-2]), residuals = library.real(told[-1])})
end

row{
    name = "svds", method = true,
    takes = "A: matrix|sparse|function, k: count {which, rows, cols, tol, " ..
        "steps, block, dtype, device}",
    gives = "factors",
    group = "factors",
    help = "k singular values of a large matrix, by products with it and with " ..
        "A.T: F.U, F.S, F.V as of svd, and F.residuals, |A.T u - s v| " ..
        "relative to the largest value. A is a matrix, or a function f(X, turned) " ..
        "of columns X that gives A X, or A.T X where turned is true, of which " ..
        "{rows = …, cols = …} is the size. \"smallest\" works them all out, of a " ..
        "dense matrix alone.",
    example = "svds(mat{{3, 0}, {0, -2}}, 1).S",
    result = "{3}",
    options = {
        {"which", "\"largest\"|\"smallest\"", "\"largest\"", "the values that " ..
            "are wanted"},
        {"rows", "count", "A's", "the size of a function's A"},
        {"cols", "count", "A's", "the size of a function's A"},
        {"tol", "positive", "1e-12, 1e-5 in f32", "the largest residual"},
        {"steps", "count", "1000", "products with a block of columns, at most"},
        {"block", "count", "4", "columns at a time: more find values that " ..
            "agree more often"},
        {"dtype", "dtype", "f64", "element type of a function's A"},
        {"device", "device", "the default device", "where a function's A is"}},
}
function krylov.svds(A, k, options)
    options = options or {}
    operators.refuse_told("svds", A, options)
    local op = operator_for("svds", A, options.rows, options.cols, options)
    check_count("svds", k, smaller(op.rows, op.cols))
    local how = {tol = options.tol or tolerance[op.dtype],
        steps = options.steps or 1000, block = options.block or 4}
    how.most = basis_size(k, how.block, smaller(op.rows, op.cols))
    local is_smallest = options.which == "smallest"
    if is_smallest and not op.matrix then
        fail("svds", "the smallest values need a dense matrix%s",
            type(A) ~= "function" and ": svdvals(full(A)) gives all values, " ..
            'svds(full(A), k, {which = "smallest"}) some with their vectors' or "")
    end
    local found = (is_smallest or not how.most) and
        svd_by_all(op, k, is_smallest) or svd_by_blocks(op, k, how)
    return few("svds", op.rows, op.cols, op.dtype, {U = found.U, S = found.S, V = found.V,
        residuals = found.residuals, products = found.products})
end

return krylov
