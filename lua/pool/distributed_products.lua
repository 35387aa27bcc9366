-- Products of distributed matrices, their factors, and systems: what ScaLAPACK's
-- routines do on the processes (grid.c).
local library = ...
local checks = require "lumat.checks"
local determinants = require "lumat.determinants"
local elements = require "lumat.distributed_elements"
local parts = require "lumat.distributed_parts"
local is_dry = require "lumat.factor_steps".is_dry
local pool = require "lumat.pool"
local fail, brief, map = checks.fail, checks.brief, elements.map
local is_matrix, is_distributed = checks.is_matrix, parts.is
local as_wide = checks.as_wide
local state, shape, state_of = parts.state, parts.shape, parts.state_of
local methods, meta, spread = parts.methods, parts.meta, parts.spread
local new, new_parts, like, told = parts.new, parts.new_parts, parts.like,
    parts.told
local settled, check_alive = parts.settled, parts.check_alive
local ipairs, pairs, select = ipairs, pairs, select
local setmetatable, type = setmetatable, type
local concat, format, unpack = table.concat, string.format, table.unpack
local larger, smaller, to_integer = math.max, math.min, math.tointeger

-- --- products ----------------------------------------------------------------

-- The kernel of processes that have MPI, by the name of its library.
local SCALAPACK = "scalapack"

local function letter(s) return s.turned or "N" end

-- Two matrices as processes multiply them: of one type, with the same blocks
-- along the inner size; and those of their product, of which nobody is told.
local function matched(what, x, y)
    local a, b = state[x], state[y]
    local m, k = shape(a)
    local k2, n = shape(b)
    if k ~= k2 then
        fail(what, "inner dimensions differ (%d and %d): A is %dx%d, B is %dx%d",
            k, k2, m, k, k2, n)
    end
    local dtype = checks.wider_type(x, y)
    if x.dtype ~= dtype then return matched(what, x[dtype](x), y) end
    if y.dtype ~= dtype then return matched(what, x, y[dtype](y)) end
    local u, v = check_alive(what, a), check_alive(what, b)
    local across = a.turned and u.mb or u.nb
    if across ~= (b.turned and v.nb or v.mb) then
        local t = settled(what, b)
        return matched(what, x, new(parts.laid_in(what, t, across, t.nb)))
    end
    return x, y, new_parts(what, u.p, m, n, dtype, a.turned and u.nb or u.mb,
        b.turned and v.mb or v.nb)
end

-- What processes are told of x and y, which are matched: their numbers and how
-- they are read.
local function factors_of(x, y)
    local a, b = state[x], state[y]
    return a.where.id, letter(a), b.where.id, letter(b)
end

-- And of the product w of x and y, by that kernel.
local function product_of(x, y, w, kernel)
    local a, op_a, b, op_b = factors_of(x, y)
    return w.id, a, op_a, b, op_b, w.m, w.n, x.cols, w.mb, w.nb, kernel
end

-- By that kernel, or nil.
local function multiply(what, x, y, kernel)
    local w
    x, y, w = matched(what, x, y)
    pool.tell(w.p, what, "multiply", product_of(x, y, w, kernel))
    return new(w)
end

-- A vector is a column on the right and a row on the left; its product is one
-- here.
local function product(x, y)
    local what = "A * B"
    for _, z in ipairs{x == nil and false or x, y == nil and false or y} do
        if not (is_distributed(z) or is_matrix(z) or type(z) == "number" or
            checks.kind(z) == "complex number") then
            fail(what, "%s is no matrix or number", brief(z or nil))
        end
    end
    if type(x) == "number" or type(y) == "number" or
        type(x) == "userdata" and not is_matrix(x) or
        type(y) == "userdata" and not is_matrix(y) then
        return map(what, "mul", x, y)
    end
    local is_vector = not is_distributed(x) and x.ndim == 1 or
        not is_distributed(y) and y.ndim == 1
    if not is_distributed(x) then
        x = spread(x.ndim == 1 and x:row() or x)
    elseif not is_distributed(y) then
        y = spread(y.ndim == 1 and y:col() or y)
    end
    local result = multiply(what, x, y)
    if not is_vector then return result end
    local line = result:gather()
    return line:reshape(line.rows * line.cols)
end
meta.__mul = product

-- A * B; by a kernel of a process's device, where these are lumat's own.
function methods.matmul(D, E, options)
    local kernel = parts.option("matmul", options, "kernel")
    local p = check_alive("matmul", state_of("matmul", D)).p
    if kernel == "auto" then kernel = nil end
    if p.options.launcher ~= "local" and kernel then
        if kernel ~= SCALAPACK then
            fail("matmul", "processes of MPI multiply by ScaLAPACK's p?gemm, " ..
                "which is kernel \"%s\", and have no %s; pool{launcher = " ..
                "\"local\"} has the kernels of this program", SCALAPACK,
                brief(kernel))
        end
        kernel = nil
    end
    if not kernel then return product(D, E) end
    if not is_distributed(E) then E = spread(E) end
    return multiply("matmul", D, E, kernel)
end

function meta.__pow(D, power)
    local count = to_integer(power)
    local m, n = shape(state_of("A ^ n", D))
    if m ~= n then fail("A ^ n", "%dx%d is not square", m, n) end
    if not count or count < 1 then
        fail("A ^ n", "a distributed matrix has whole powers from 1 on, not %s",
            brief(power))
    end
    local result, square = nil, D
    while count > 0 do
        if count % 2 == 1 then result = result and result * square or square end
        count = count // 2
        if count > 0 then square = square * square end
    end
    return result
end

-- --- factors and systems -----------------------------------------------------

-- D, of a mask as numbers.
local function numbers_of(what, D)
    local s = state_of(what, D)
    return s.where.dtype == "bool" and state_of(what, D:f32()) or s
end

-- Where D's blocks have the first element, in the order of rows, that is NaN or
-- infinite, and how it is shown; or nil. A dry run has no elements.
local function odd_of(what, w)
    local row, col, text
    if is_dry() then return end
    for _, found in ipairs(pool.tell(w.p, what, "look", w.id)) do
        local i, j = found[1], found[2]
        if i > 0 and (not row or i < row or i == row and j < col) then
            row, col, text = i, j, found[3]
        end
    end
    return row, col, text
end

-- D's blocks, to be factored: its elements have to be finite.
local function finite_of(what, D)
    local w = settled(what, numbers_of(what, D))
    local row, col, text = odd_of(what, w)
    if row then checks.refuse_odd(what, "A", row, col, text) end
    return w
end

-- How many rows and columns it has, which is square.
local function side_of(what, D)
    local m, n = shape(state_of(what, D))
    if m ~= n then
        fail(what, "%dx%d is not square", m, n)
    end
    return n
end

-- What does the same of matrices that are not symmetric.
local takes_any = {chol = "lu(A)"}

local function check_symmetry(what, w)
    if is_dry() or w.m == 0 then return end
    local D = new(w)
    local t = parts.laid_in(what, settled(what, state[D.H]), w.mb, w.nb)
    local apart, largest = 0, 0
    for _, found in ipairs(pool.tell(w.p, what, "farthest", w.id, t.id)) do
        apart, largest = larger(apart, found[1]), larger(largest, found[2])
    end
    if apart > 0 and checks.is_asymmetric(D, apart, largest) then
        checks.refuse_asymmetry(what, "A", D, apart, takes_any[what])
    end
end

-- Right sides on D's processes, with blocks as A's; and whether b was a vector.
local function right_side(what, w, b, n)
    local is_vector = is_matrix(b) and b.ndim == 1
    local E = is_distributed(b) and b or spread(is_vector and
        b:col() or b, {block = w.mb})
    if E.rows ~= n then
        fail(what, "A is %dx%d and b has %d rows", n, n, E.rows)
    end
    if E.dtype ~= w.dtype then E = E[w.dtype](E) end
    local v = settled(what, state[E])
    if v.mb ~= w.mb or v.nb ~= w.mb then
        v = parts.laid_in(what, v, w.mb, w.mb)
    end
    return v, is_vector, is_distributed(b)
end

-- Values, as a vector here, that the first process sent.
local function values_of(w, what, name, ...)
    local found
    local answers = pool.tell_with(w.p, what, nil, function(link, told_value, number)
        if number == 1 and told_value[2] > 0 then
            found = link:matrix(told_value[3], told_value[2], 1)
        end
    end, name, ...)
    if answers[1][1] ~= 0 then
        fail(what, "the iteration did not converge (info %d)", answers[1][1])
    end
    if not found then return library.zeros(0, {dtype = w.dtype}) end
    return found:reshape(found.rows)
end

local factor_meta = {__name = "factors", __metatable = "factors"}
local factors = setmetatable({}, {__mode = "k"})

-- The kernels of a factorisation that a pool has; nil: in a dry run.
local function kernels_of_factor(p, operation)
    local found = pool.tell(p, operation, "factor_kernels", operation)[1]
    if found then return type(found) == "table" and found or nil end
    return {{name = SCALAPACK, operation = operation, available = true,
        needs = "MPI and ScaLAPACK"}}
end

-- The one that options name, or nil for the usual one, and whether it is a
-- library's.
local function kernel_in(what, p, options)
    local wanted, names = parts.option(what, options, "kernel"), {}
    if wanted == nil or wanted == "auto" then return end
    local list = kernels_of_factor(p, what)
    for i, kernel in ipairs(list or {}) do
        if kernel.name == wanted then
            if kernel.available then return wanted, kernel.is_of_library end
            fail(what, "kernel %s is not there: it needs %s", wanted, kernel.needs)
        end
        names[i] = kernel.name
    end
    if not list then return wanted end
    fail(what, "kernel is %s, expected %s", brief(wanted), concat(names, ", "))
end

-- What all were in trouble with, 0: nothing. Each knows its own part.
local function least_trouble(answers)
    local least = 0
    for _, trouble in ipairs(answers) do
        if trouble > 0 and (least == 0 or trouble < least) then least = trouble end
    end
    return least
end

-- Of factors of a library, which may not say so: the first pivot that is 0, or
-- the first minor that is not positive.
local function trouble_on(t, kind)
    local pivots = new(t):diag()
    local places = library.find(kind == "lu" and pivots:eq(0) or
        ~library.real(pivots):gt(0))
    return places.rows > 0 and places[1] // 1 | 0 or 0
end

-- what: who asks for it, which is by default the factorisation itself. w: D's
-- blocks, where they have been looked at.
local function factored(kind, D, options, what, w)
    local n = side_of(what or kind, D)
    w = w or finite_of(what or kind, D)
    local kernel, is_of_library = kernel_in(kind, w.p, options)
    if kind == "chol" then check_symmetry(kind, w) end
    if w.mb ~= w.nb then w = parts.laid_in(kind, w, w.mb, w.mb) end
    local t = like(kind, w)
    local trouble = least_trouble(pool.tell(w.p, kind, kind, t.id, w.id, kernel))
    if trouble == 0 and is_of_library then trouble = trouble_on(t, kind) end
    if kind == "chol" and trouble > 0 then
        fail("chol", "the matrix is not positive definite: its leading minor of " ..
            "order %d is not positive", trouble)
    end
    local F = setmetatable({}, factor_meta)
    factors[F] = {kind = kind, where = t, zero = trouble, n = n}
    return F
end

local function solve_by(f, b)
    local what = "solve"
    if f.zero > 0 then
        fail(what, "the matrix is singular: pivot %d is 0", f.zero)
    end
    local v, is_vector, stays = right_side(what, f.where, b, f.n)
    local w = like(what, v)
    pool.tell(v.p, what, "solve", w.id, f.where.id, v.id)
    local X = new(w)
    if stays then return X end
    local x = X:gather()
    return is_vector and x:reshape(f.n) or x
end

local function triangle(f, which, with_ones)
    local w = like(f.kind, f.where)
    return told(f.kind, w, "triangle", f.where.id, which, with_ones)
end

-- The order of the rows of a matrix that lu factored.
local function order_of(f)
    if not f.order then
        f.order = values_of(f.where, f.kind, "lu_order", f.where.id):f64()
    end
    return f.order
end

-- The numbers on the diagonal of the factors, as a vector here.
local function pivots_of(f) return new(f.where):diag() end

local factor_methods = {}
function factor_methods.solve(F, b) return solve_by(factors[F], b) end

function factor_methods.det(F)
    local f = factors[F]
    local pivots = pivots_of(f)
    if f.kind == "chol" then
        return determinants.product_of(as_wide(pivots):abs():square())
    end
    return determinants.parity(order_of(f):totable()) *
        determinants.product_of(pivots)
end

function factor_methods.logdet(F)
    local f = factors[F]
    local sign, size = determinants.sign_and_log(pivots_of(f))
    if f.kind == "chol" then return 2 * size, 1 end
    return size, sign * determinants.parity(order_of(f):totable())
end

-- What each kind has; of those that are not kept as LAPACK has them, `found` is all
-- of it.
local fields = {lu = {"L", "U", "p"}, chol = {"L"}, qr = {"Q", "R"},
    eigh = {"values", "vectors"}, svd = {"U", "S", "V"}}

local function field(f, name)
    if f.found then return checks.handed_out(f.found[name]) end
    if name == "L" then return triangle(f, "lower", f.kind == "lu") end
    if name == "U" then return triangle(f, "upper") end
    return order_of(f):clone()
end

function factor_methods.unpack(F)
    local f, values = factors[F], {}
    local names = fields[f.kind]
    for i, name in ipairs(names) do values[i] = field(f, name) end
    return unpack(values, 1, #names)
end

function factor_meta.__index(F, key)
    local f = factors[F]
    local names = fields[f.kind]
    if factor_methods[key] and (key == "unpack" or not f.found) then
        return factor_methods[key]
    end
    for _, name in ipairs(names) do
        if name == key then return field(f, name) end
    end
    fail(f.kind, "there is no %s: this distributed factorisation has %s%s",
        brief(key), concat(names, ", "), f.found and " and :unpack()" or
        ", :unpack(), :solve(b), :det() and :logdet()")
end
function factor_meta.__headline(F)
    local f = factors[F]
    return format("%s of a distributed %dx%d matrix", f.kind, f.m or f.n, f.n)
end
for name, method in pairs(factor_methods) do
    factor_methods[name] = checks.method(name, "F", method)
end
factor_meta.__index = checks.placed(factor_meta.__index)
factor_meta.__tostring, factor_meta.__text = factor_meta.__headline,
    factor_meta.__headline

function methods.lu(D, options) return factored("lu", D, options) end
function methods.chol(D, options) return factored("chol", D, options) end

function methods.solve(D, b)
    return solve_by(factors[factored("lu", D, nil, "solve")], b)
end

function methods.det(D)
    side_of("det", D)
    local w = settled("det", numbers_of("det", D))
    if odd_of("det", w) then
        return checks.is_complex(D) and library.complex(0 / 0, 0 / 0) or 0 / 0
    end
    return factored("lu", D, nil, "det", w):det()
end

function methods.logdet(D)
    return factored("lu", D, nil, "logdet"):logdet()
end

function methods.inv(D)
    local F = factors[factored("lu", D, nil, "inv")]
    return solve_by(F, parts.unit("inv", F.n, F.where.dtype, F.where.mb))
end

-- The factors of w, by the names of its kind.
local function found(kind, w, ...)
    local F, values = setmetatable({}, factor_meta), {}
    for i, name in ipairs(fields[kind]) do values[name] = (select(i, ...)) end
    factors[F] = {kind = kind, m = w.m, n = w.n, found = values}
    return F
end

-- Q with orthonormal columns, and R, of rows at least as many as columns.
function methods.qr(D, options)
    local w = finite_of("qr", D)
    local m, n = w.m, w.n
    local k = smaller(m, n)
    local t = like("qr", w)
    pool.tell(w.p, "qr", "qr", t.id, w.id, (kernel_in("qr", w.p, options)))
    local q = like("qr", w, m, k)
    pool.tell(w.p, "qr", "eye", q.id, parts.geometry(q))
    pool.tell(w.p, "qr", "qr_q", q.id, t.id)
    local upper = like("qr", w)
    pool.tell(w.p, "qr", "triangle", upper.id, t.id, "upper")
    local r = like("qr", w, k, n)
    pool.tell(w.p, "qr", "block", r.id, upper.id, 1, 1, k, n, r.mb, r.nb)
    return found("qr", w, new(q), new(r))
end

-- Values in rising order and their vectors, of a symmetric matrix.
function methods.eigh(D, options)
    side_of("eigh", D)
    local w = finite_of("eigh", D)
    local kernel = kernel_in("eigh", w.p, options)
    check_symmetry("eigh", w)
    local z = like("eigh", w)
    local values = values_of(w, "eigh", "eigh", z.id, w.id, kernel)
    return found("eigh", w, values, new(z))
end

-- U, the singular values, V.
function methods.svd(D)
    if checks.is_complex(D) then
        fail("svd", "of complex distributed matrices is not there: eigh(A.H * A)")
    end
    local w = finite_of("svd", D)
    local m, n = w.m, w.n
    local k = smaller(m, n)
    local u, v = like("svd", w, m, k), like("svd", w, k, n)
    local values = values_of(w, "svd", "svd", u.id, v.id, w.id)
    return found("svd", w, new(u), values, new(v, "T"))
end

return {matched = matched, factors_of = factors_of, product_of = product_of,
    numbers_of = numbers_of, kernels_of_factor = kernels_of_factor,
    SCALAPACK = SCALAPACK}
