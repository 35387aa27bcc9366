-- Functions of matrices: exponentials; roots, logarithms and powers, by Schur
-- forms, or by the eigenvalues of a symmetric matrix. These are worked out in f64
-- and rounded once; of a real matrix with an eigenvalue below 0 they are complex.
local library = ...
local checks = require "lumat.checks"
local steps = require "lumat.factor_steps"
local make = require "lumat.factors".make
local fail, is_complex = checks.fail, checks.is_complex
local functions = {}
local ipairs = ipairs
local ceil, cos, exp, floor, huge, larger, log, pi, sin = math.ceil, math.cos,
    math.exp, math.floor, math.huge, math.max, math.log, math.pi, math.sin

-- --- operands and results ---------------------------------------------------

local wide = checks.as_wide

-- In the type that A has, complex where X is.
local function rounded(X, A)
    if checks.is_wide(A) then return X end
    return is_complex(X) and X:c64() or X:f32()
end

local function is_symmetric(A)
    local _, _, symmetric = steps.structure(A)
    return symmetric
end

local function one_like(A)
    return library.eye(A.rows, A.rows, {dtype = A.dtype, device = A.device})
end

local function adjoint(Q)
    return is_complex(Q) and Q.H or Q.T
end

-- V diag(values) V^H
local function of_values(V, values)
    return (V % values:row()) * adjoint(V)
end

-- The eigenvalues of a symmetric A, complex where one of them is below 0 by more
-- than rounding; and their vectors.
local function symmetric_values(A)
    local values, V = library.eigh(A):unpack()
    local none = values.rows * 2.0 ^ -52 * values:abs():max()
    if values[1] >= -none then return library.maximum(values, 0), V end
    return library.complex(values), V
end

-- --- exponentials -----------------------------------------------------------

-- Padé's approximations of rising degree: coefficients of A^0, A^1, …, and how
-- large a matrix may be for each; of the last one 1 over the first coefficient of
-- its error. Sources: Higham, The scaling and squaring method for the matrix
-- exponential revisited, 2005; Al-Mohy and Higham, A new scaling and squaring
-- algorithm for the matrix exponential, 2009.
local third = {120, 60, 12, 1}
local fifth = {30240, 15120, 3360, 420, 30, 1}
local seventh = {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}
local single = {{third, most = 0.4258730016922831},
    {fifth, most = 1.880152677804762}, {seventh, most = 3.925724783138660},
    degree = 7, error = 4487938430976000, unit = 2.0 ^ -24}
local double = {{third, most = 0.01495585217958292},
    {fifth, most = 0.2539398330063230}, {seventh, most = 0.9504178996162932},
    {{17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880,
        3960, 90, 1}, most = 2.097847961257068},
    {{64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800,
        129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920,
        40840800, 960960, 16380, 182, 1}, most = 4.25},
    degree = 13, error = 1.132507756060211e35, unit = 2.0 ^ -53}

-- The odd and the even part of the polynomial with coefficients b, of A's even
-- powers from the second on, of which `powers` has the first ones. Above degree 9
-- the sixth power is taken out of what is higher.
local function odd_and_even(A, b, powers)
    local count = #b > 10 and 3 or (#b - 1) // 2
    local one = one_like(A)
    local odd, even = b[2] * one, b[1] * one
    for i = 1, count do
        powers[i] = powers[i] or (i == 1 and A * A or powers[i - 1] * powers[1])
        odd = odd + b[2 * i + 2] * powers[i]
        even = even + b[2 * i + 1] * powers[i]
    end
    if #b > 10 then
        local square, fourth, sixth = powers[1], powers[2], powers[3]
        odd = odd + sixth * (b[10] * square + b[12] * fourth + b[14] * sixth)
        even = even + sixth * (b[9] * square + b[11] * fourth + b[13] * sixth)
    end
    return A * odd, even
end

local function power_of_two(x)
    return x > 0 and ceil(log(x, 2)) or 0
end

-- The halvings after which A is small enough for the last approximation, by the
-- size of its powers: a matrix far from normal is smaller than its norm says, and
-- squares that it does not need cost digits. And the powers of what is halved.
local function halvings(A, pade, norm)
    local first = power_of_two(norm)
    local B = A / 2.0 ^ first
    local square = B * B
    local fourth = square * square
    local sixth = fourth * square
    local d6 = library.norm(sixth, 1) ^ (1 / 6)
    local d8 = library.norm(fourth * fourth, 1) ^ (1 / 8)
    local size = larger(d6, d8)
    local times = larger(0, first + power_of_two(size / pade[#pade].most))
    -- as many more as rounding in the approximation asks for, whose terms are
    -- those of |A|
    local row = library.ones(1, A.rows, {dtype = "f64", device = A.device})
    local sizes = library.abs(A):f64() / 2.0 ^ times
    for _ = 1, 2 * pade.degree + 1 do row = row * sizes end
    local lost = row:max() / (norm / 2.0 ^ times) / pade.error / pade.unit
    if not (lost < 2.0 ^ 1000) then return first, {square, fourth, sixth} end
    times = times + larger(0, ceil(log(larger(lost, 1), 2) / (2 * pade.degree)))
    local by = 4.0 ^ (first - times)
    return times, {square * by, fourth * by ^ 2, sixth * by ^ 3}
end

row{
    name = "expm", method = true,
    takes = "A: square",
    gives = "matrix",
    group = "factors",
    help = "The exponential of a matrix, I + A + A A / 2 + …; exp(A) is " ..
        "element by element.",
    example = "expm(mat{{0, 1}, {0, 0}})",
    result = "{{1, 1}, {0, 1}}",
}
function functions.expm(A)
    A = make.operand("expm", A, true)
    if A.rows == 0 then return A end
    local pade = checks.is_wide(A) and double or single
    local norm, times, powers, at = library.norm(A, 1), 0, {}, 1
    if norm == huge then fail("expm", "the norm of A overflows") end
    -- where an element overflows, squares would have infinity times 0
    local below, above = steps.structure(A)
    if below == 0 and above == 0 then
        return library.diag(library.exp(library.diag(A)))
    end
    while at < #pade and norm > pade[at].most do at = at + 1 end
    if norm > pade[at].most then times, powers = halvings(A, pade, norm) end
    local odd, even = odd_and_even(A / 2.0 ^ times, pade[at][1], powers)
    local X = steps.general(even - odd, even + odd)
    for _ = 1, times do X = X * X end
    return X
end

-- --- Schur forms ------------------------------------------------------------
-- A form is on the CPU, which works it out, whatever `device` A is on. It holds
-- T, upper triangular but for the 2 x 2 blocks of complex eigenvalues of a real
-- matrix; Q, with A = Q T Q^H; and `blocks`, a list of {first row, last row,
-- eigenvalue}. The eigenvalue is a complex number, of a 2 x 2 block that of the
-- two above the axis.

local function eigenvalue(T, i, is_pair)
    if not is_pair then return library.complex(T(i, i), 0) end
    return library.complex(T(i, i), math.sqrt(-T(i, i + 1) * T(i + 1, i)))
end

local function blocks_of(T)
    local blocks, n, i = {}, T.rows, 1
    local below = n > 1 and not is_complex(T) and
        library.diag(T, -1):totable()
    while i <= n do
        local is_pair = below and i < n and (below[i] > 0 or below[i] < 0)
        local last = is_pair and i + 1 or i
        blocks[#blocks + 1] = {i, last, is_complex(T) and T(i, i) or
            eigenvalue(T, i, is_pair)}
        i = last + 1
    end
    return blocks
end

local function form_of(A)
    local Q, T = library.schur(A:to "cpu"):unpack()
    return {T = T, Q = Q, blocks = blocks_of(T), device = A.device}
end

-- The form of a real matrix as one of complex numbers: each 2 x 2 block is
-- turned until it is a triangle, so that real eigenvalues stay as they are, and
-- have no side of the cut along the negative axis.
local function made_complex(form)
    local T, Q = library.complex(form.T), library.complex(form.Q)
    local n = T.rows
    for _, block in ipairs(form.blocks) do
        local i, k, value = block[1], block[2], block[3]
        if k > i then
            local c, s = value - T(k, k), T(k, i)
            local size = library.hypot(library.abs(c), library.abs(s))
            c, s = c / size, s / size
            local turn = library.mat({{library.conj(c), s}, {-s, c}},
                {dtype = T.dtype, device = "cpu"})
            local rows, cols = {{i, k}, {i, n}}, {{1, k}, {i, k}}
            T[rows] = turn * T[rows]
            T[cols] = T[cols] * turn.H
            T[{k, i}] = 0
            Q[{{}, {i, k}}] = Q[{{}, {i, k}}] * turn.H
        end
    end
    return {T = T, Q = Q, blocks = blocks_of(T), device = form.device}
end

-- A complex form whose eigenvalues on the negative axis, but for rounding, lie
-- on one side of it: the roots of two that are on both would be opposite ones,
-- which what stands between the two would be divided by the sum of.
local function on_one_side(form)
    local T = form.T
    local d = library.diag(T)
    local re, im = library.real(d), library.imag(d)
    local is_near = re:lt(0) & im:abs():le(T.rows * 2.0 ^ -52 *
        library.norm(T, 1))
    local is_below = im:signbit()
    if not (is_near & is_below):any() or not (is_near & ~is_below):any() or
        not library.triu(T, 1):ne(0):any() then
        return form
    end
    T = library.triu(T, 1) + library.diag(library.complex(re,
        library.where(is_near, 0, im)))
    return {T = T, Q = form.Q, blocks = blocks_of(T), device = form.device}
end

-- The form of A, complex where `needs` so of a real eigenvalue.
local function form_for(A, needs)
    local form = form_of(A)
    if is_complex(A) then return on_one_side(form) end
    for _, block in ipairs(form.blocks) do
        if block[1] == block[2] and needs(block[3].real) then
            return made_complex(form)
        end
    end
    return form
end

local function is_real(form)
    return not is_complex(form.T)
end

-- Writes f of the blocks onto the diagonal of X. f takes and gives a complex
-- number; of a block with the eigenvalues a +- b i, and a twice on its own
-- diagonal, it is Re f + Im f / b (block - a).
local function set_blocks(X, form, f)
    local T = form.T
    for _, block in ipairs(form.blocks) do
        local i, k, value = block[1], block[2], f(block[3])
        if i == k then
            X[{i, i}] = is_real(form) and value.real or value
        else
            local by = value.imag / block[3].imag
            X[{i, i}], X[{k, k}] = value.real, value.real
            X[{i, k}], X[{k, i}] = by * T(i, k), by * T(k, i)
        end
    end
end

-- Writes the elements of f(T) beside the diagonal, where neither neighbour is
-- of a block: the difference of f over that of the eigenvalues, times T's.
local function set_beside(X, form, difference)
    local T = form.T
    for b = 1, #form.blocks - 1 do
        local left, right = form.blocks[b], form.blocks[b + 1]
        local i, k = left[1], right[1]
        if left[2] == i and right[2] == k then
            local by = difference(left[3], right[3])
            X[{i, k}] = (is_real(form) and by.real or by) * T(i, k)
        end
    end
end

-- Back from Schur's basis, to A's device.
local function turned_back(form, X)
    local Q = form.Q:to(form.device)
    return Q * X:to(form.device) * adjoint(Q)
end

-- --- square roots -----------------------------------------------------------

-- R becomes the root of the T of blocks first to last, whose own roots stand on
-- its diagonal: what lies beside two halves solves R1 X + X R2 = T12. Source:
-- Deadman, Higham and Ralha, Blocked Schur algorithms for computing the matrix
-- square root, 2013.
local function fill_root(what, R, T, blocks, first, last)
    if first == last then return end
    local middle = (first + last) // 2
    fill_root(what, R, T, blocks, first, middle)
    fill_root(what, R, T, blocks, middle + 1, last)
    local up = {blocks[first][1], blocks[middle][2]}
    local down = {blocks[middle + 1][1], blocks[last][2]}
    local C = T[{up, down}]
    local X = steps.sylvester(R[{up, up}], R[{down, down}], C)
    if not X and C:ne(0):any() then
        fail(what, "the matrix has 0 as an eigenvalue more than once, and " ..
            "there may be no square root of it")
    end
    R[{up, down}] = X or 0
end

-- The root of a form's T.
local function root_of(what, form)
    local R = make.zeros(form.T, form.T.rows, form.T.rows)
    set_blocks(R, form, library.sqrt)
    fill_root(what, R, form.T, form.blocks, 1, #form.blocks)
    return R
end

local function is_below_zero(x)
    return x < 0
end

-- In f64 or c128.
local function root(what, A)
    if is_symmetric(A) then
        local values, V = symmetric_values(A)
        return of_values(V, values:sqrt())
    end
    local form = form_for(A, is_below_zero)
    return turned_back(form, root_of(what, form))
end

row{
    name = "sqrtm", method = true,
    takes = "A: square",
    gives = "matrix",
    group = "factors",
    help = "The square root of a matrix: X X is A, and the eigenvalues of X " ..
        "are not left of 0. Complex where a real A has an eigenvalue below 0. " ..
        "sqrt(A) is element by element.",
    example = "sqrtm(mat{{1, 3}, {0, 4}})",
    result = "{{1, 1}, {0, 2}}",
}
function functions.sqrtm(A)
    A = make.operand("sqrtm", A, true)
    if A.rows == 0 then return A end
    return rounded(root("sqrtm", wide(A)), A)
end

-- --- logarithms -------------------------------------------------------------

-- Nodes and weights of Gauss and Legendre on 0 to 1, m of them.
local function gauss(m)
    local nodes = {}
    for i = 1, m do
        local x, slope = cos(pi * (i - 0.25) / (m + 0.5)), nil
        for _ = 1, 10 do
            local p, before = x, 1.0
            for k = 2, m do
                p, before = ((2 * k - 1) * x * p - (k - 1) * before) / k, p
            end
            slope = m * (x * p - before) / (x * x - 1)
            x = x - p / slope
        end
        nodes[i] = {(1 + x) / 2, 1 / ((1 - x * x) * slope * slope)}
    end
    return nodes
end

-- log(I + E) is nearly the sum of weight E / (I + node E), to f64's last digit
-- where E is at most most[m]. Source: Al-Mohy and Higham, Improved inverse
-- scaling and squaring algorithms for the matrix logarithm, 2012.
local most = {1.586970738772063e-5, 2.313807884242979e-3, 1.938179313533253e-2,
    6.209171588994762e-2, 1.276404810806775e-1, 2.060962623452836e-1,
    2.879093714241194e-1}
local NODES = #most

-- How large E is for a sum of powers, which may be much less than its norm.
local function size_of_powers(E)
    local square = E * E
    local two, three = library.norm(square, 1), library.norm(square * E, 1)
    return larger(two ^ (1 / 2), three ^ (1 / 3))
end

local function by_gauss(E, is_triangular)
    local size, m = size_of_powers(E), NODES
    while m > 1 and most[m - 1] >= size do m = m - 1 end
    local one, sum = one_like(E), nil
    for _, node in ipairs(gauss(m)) do
        local divisor = one + node[1] * E
        local part = is_triangular and steps.triangle(divisor, E, {}) or
            steps.general(divisor, E)
        sum = sum and sum + node[2] * part or node[2] * part
    end
    return sum
end

-- exp(z) - 1
local function expm1(z)
    local x, y = z.real, z.imag
    local half = sin(y / 2)
    local grown = library.expm1(x)
    return library.complex(grown * cos(y) - 2 * half * half,
        exp(x) * sin(y))
end

-- The difference of the logarithms of two numbers over theirs; where they are
-- near each other it would cancel. Source: Higham, Functions of Matrices, 2008,
-- (11.28).
local function difference_of_logs(a, b)
    if a == b then return 1 / a end
    local apart, sum = b - a, b + a
    local of_logs = library.log(b) - library.log(a)
    if library.abs(apart) > library.abs(sum) / 2 then return of_logs / apart end
    local near = 2 * library.atanh(apart / sum)
    local turns = floor((of_logs.imag - near.imag) / (2 * pi) + 0.5)
    return (near + library.complex(0, 2 * pi * turns)) / apart
end

-- The logarithm of a form's T: roots are taken until the rest is near the
-- identity. Its diagonal, of which most has cancelled then, is worked out anew.
local function log_of(form)
    local T, times = form.T, 0
    local one = one_like(T)
    local E = T - one
    while size_of_powers(E) > most[NODES] and times < 100 do
        T = root_of("logm", {T = T, blocks = blocks_of(T)})
        E, times = T - one, times + 1
    end
    set_blocks(E, form, function(z)
        return times == 0 and z - 1 or expm1(library.log(z) / 2.0 ^ times)
    end)
    local X = by_gauss(E, #form.blocks == T.rows) * 2.0 ^ times
    set_blocks(X, form, library.log)
    set_beside(X, form, difference_of_logs)
    return X
end

local function fail_singular(what)
    fail(what, "the matrix is singular, and has no logarithm")
end

-- A form of which no eigenvalue is 0.
local function regular_form(what, A)
    local form = form_for(A, function(x)
        return x == 0 and fail_singular(what) or x < 0
    end)
    for _, block in ipairs(form.blocks) do
        if library.abs(block[3]) == 0 then fail_singular(what) end
    end
    return form
end

row{
    name = "logm", method = true,
    takes = "A: square",
    gives = "matrix",
    group = "factors",
    help = "The logarithm of a matrix: expm(X) is A, and the eigenvalues of X " ..
        "have imaginary parts of at most pi. Complex where a real A has an " ..
        "eigenvalue below 0. log(A) is element by element.",
    example = "logm(mat{{1, 1}, {0, 1}})",
    result = "{{0, 1}, {0, 0}}",
}
function functions.logm(A)
    A = make.operand("logm", A, true)
    if A.rows == 0 then return A end
    local B = wide(A)
    if is_symmetric(B) then
        local values, V = symmetric_values(B)
        if values:eq(0):any() then fail_singular("logm") end
        return rounded(of_values(V, values:log()), A)
    end
    local form = regular_form("logm", B)
    return rounded(turned_back(form, log_of(form)), A)
end

-- --- powers -----------------------------------------------------------------

-- A ^ p for a p that is not whole, in f64 or c128.
local function power(A, p)
    if is_symmetric(A) then
        local values, V = symmetric_values(A)
        if p < 0 and values:eq(0):any() then
            fail("A ^ p", "the matrix is singular, and p is %g", p)
        end
        return of_values(V, values:pow(p))
    elseif p == 0.5 then
        return root("A ^ p", A)
    end
    -- near 1 in size: the larger the logarithm, the more its exponential loses
    local size = 2.0 ^ floor(log(A:abs():max(), 2))
    A = A / size
    local whole = p < 0 and ceil(p) or floor(p)
    local form = regular_form("A ^ p", A)
    local X = turned_back(form, functions.expm(log_of(form) * (p - whole)))
    return (whole == 0 and X or A ^ whole * X) * size ^ p
end

-- For the operator ^, of a number that is not whole.
functions.power = checks.placed(function(A, p)
    A = make.operand("A ^ p", A, true)
    if p - p ~= 0 then fail("A ^ p", "p is %s", checks.brief(p)) end
    if A.rows == 0 then return A end
    return rounded(power(wide(A), p), A)
end, 3)

return functions
