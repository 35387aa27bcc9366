-- Factorisations beside those of factors.lua: Schur and Hessenberg forms, LDL,
-- and the matrix equations that Schur forms solve.
local library = ...
local checks = require "lumat.checks"
local determinants = require "lumat.determinants"
local steps = require "lumat.factor_steps"
local factors = require "lumat.factors"
local make = factors.make
local fail, shape_of = checks.fail, checks.shape_of
local add_kind, object, operand, part, state = make.add_kind, make.object,
    make.operand, make.part, make.state
local common, is_complex = make.common, checks.is_complex
local spectra = {}

-- --- forms ------------------------------------------------------------------

local function both_forms(F)
    part(F, "Q")
    return make.unpack_parts(F)
end

-- Methods of an A = Q T Q^H by the LU factors of the form T, the part of that
-- name.
local function methods_by(name)
    local function factored(F)
        local s = state[F]
        local form = part(F, name)
        s.lu = s.lu or factors.lu(form)
        return s.lu, s
    end
    return {
        unpack = both_forms,
        solve = function(F, b)
            local lu, s = factored(F)
            make.right_side("solve", s.rows, b)
            if s.rows == 0 then return b:clone() end
            return s.Q * lu:solve(s.Q.H * b)
        end,
        det = function(F) return factored(F):det() end,
        logdet = function(F) return factored(F):logdet() end,
        rcond = function(F) return make.rcond_of(state[F]) end,
    }
end

local function hessenberg(s)
    if not s.H then s.H, s.Q = steps.hess(s.A) end
end

add_kind("hess", {order = make.fixed("Q", "H"), methods = methods_by "H",
    parts = {Q = hessenberg, H = hessenberg}})

row{
    name = "hess", method = true,
    takes = "A: square",
    gives = "factors",
    group = "factors",
    help = "Hessenberg form: A is F.Q * F.H * F.Q.H, where F.Q has " ..
        "orthonormal columns and F.H zeros below its first subdiagonal. " ..
        "F:solve(b) F:det() F:logdet() F:rcond(); Q, H = F:unpack().",
    example = "hess(mat{{1, 2}, {3, 4}}).H",
    result = "{{1, 2}, {3, 4}}",
}
function spectra.hess(A)
    return object("hess", operand("hess", A, true))
end

local function schur_form(s)
    if s.T then return end
    local T, Q = steps.schur(s.A)
    if not T then make.no_convergence("schur", Q) end
    s.T, s.Q = T, Q
end

add_kind("schur", {order = make.fixed("Q", "T"),
    methods = methods_by "T", parts = {Q = schur_form, T = schur_form}})

row{
    name = "schur", method = true,
    takes = "A: square",
    gives = "factors",
    group = "factors",
    help = "Schur form: A is F.Q * F.T * F.Q.H, where F.Q has orthonormal " ..
        "columns. F.T is upper triangular with the eigenvalues on its " ..
        "diagonal, but of a real A for a 2 x 2 block of each pair of complex " ..
        "ones. F:solve(b) F:det() F:logdet() F:rcond(); Q, T = F:unpack().",
    example = "schur(mat{{1, 2}, {0, 3}}).T",
    result = "{{1, 2}, {0, 3}}",
}
function spectra.schur(A)
    return object("schur", operand("schur", A, true))
end

-- --- eigenvalues ------------------------------------------------------------

-- LAPACK's vectors: of a pair of values the real and the imaginary part of the
-- first's in two columns, the second's being its conjugate.
local function unpaired(V, imaginary)
    local real_at, imaginary_at, sign = {}, {}, {}
    for j, w in ipairs(imaginary:totable()) do
        real_at[j], imaginary_at[j] = w < 0 and j - 1 or j, w > 0 and j + 1 or j
        sign[j] = w > 0 and 1 or w < 0 and -1 or 0
    end
    return library.complex(V[{{}, library.vec(real_at)}],
        V[{{}, library.vec(imaginary_at)}] %
        library.vec(sign, {dtype = V.dtype, device = V.device}):row())
end

-- Are some of a real matrix's values complex? In a dry run none is.
local function has_pairs(imaginary)
    return imaginary and imaginary.rows > 0 and not steps.is_dry() and
        imaginary:ne(0):any()
end

-- Columns of length 1.
local function of_length_1(V)
    return V and V / V:norm{axis = 1}
end

-- Of beta A v = alpha B v; a value is infinite where beta is 0.
local function pair_parts(s, right, left)
    local both, imaginary, V, W = steps.eig_pair(s.A, s.B, right, left)
    if not both then make.no_convergence("eig", imaginary) end
    local n = s.rows
    local alpha, beta = both, both
    if n > 0 then alpha, beta = both[{{1, n}}], both[{{n + 1, 2 * n}}] end
    s.alpha, s.beta, s.values = alpha, beta, alpha / beta
    if has_pairs(imaginary) then
        s.alpha = library.complex(alpha, imaginary)
        s.values = library.complex(s.values,
            library.where(beta:eq(0), 0, imaginary / beta))
        V, W = V and unpaired(V, imaginary), W and unpaired(W, imaginary)
    end
    s.vectors, s.left = of_length_1(V) or s.vectors, of_length_1(W) or s.left
end

local function eigen_parts(s, right, left)
    if s.B then return pair_parts(s, right, left) end
    local values, imaginary, V, W = steps.eig(s.A, right, left)
    if not values then make.no_convergence("eig", imaginary) end
    if has_pairs(imaginary) then
        values = library.complex(values, imaginary)
        V, W = V and unpaired(V, imaginary), W and unpaired(W, imaginary)
    end
    s.values, s.vectors, s.left = values, V or s.vectors, W or s.left
end

local function eigenvalues(s)
    if not s.values then eigen_parts(s, false, false) end
end

local function eigenvectors(s)
    if not s.vectors then eigen_parts(s, true, s.wants_left) end
    return s
end

local eig_methods = {}

function eig_methods.unpack(F)
    eigenvectors(state[F])
    return make.unpack_parts(F)
end

function eig_methods.det(F)
    local s = state[F]
    if s.B then return library.det(s.A) end
    eigenvalues(s)
    local product = determinants.product_of(s.values)
    if steps.is_dry() then return product end
    return (type(product) == "number" or is_complex(s.A)) and product or
        product.real
end

function eig_methods.logdet(F)
    local s = state[F]
    if s.B then return library.logdet(s.A) end
    eigenvalues(s)
    local sign, size = determinants.sign_and_log(s.values)
    if type(sign) ~= "number" and not is_complex(s.A) then
        sign = sign.real < 0 and -1 or 1
    end
    return size, sign
end

-- By A's LU factors: eigenvectors may depend on each other, nearly or wholly.
function eig_methods.solve(F, b)
    local s = state[F]
    s.lu = s.lu or factors.lu(s.A)
    return s.lu:solve(b)
end

function eig_methods.rcond(F)
    return make.rcond_of(state[F])
end

add_kind("eig", {methods = eig_methods,
    order = function(s)
        local names = {"values", "vectors", s.wants_left and "left" or nil}
        if s.B then
            names[#names + 1] = "alpha"
            names[#names + 1] = "beta"
        end
        return names
    end,
    says = function(_, s)
        eigenvalues(s)
        if s.rows == 0 then return "" end
        return ("%s, |values| %.4g to %.4g"):format(s.B and " with B" or "",
            s.values:abs():min(), s.values:abs():max())
    end,
    parts = {values = eigenvalues, vectors = eigenvectors, left = eigenvectors,
        alpha = eigenvalues, beta = eigenvalues}})

row{
    name = "eig", method = true,
    takes = "A: square [, B: square] {left}",
    gives = "factors",
    group = "factors",
    help = "Eigenvalues and eigenvectors of any square matrix: A * F.vectors " ..
        "is F.vectors * diag(F.values), with columns of length 1; complex " ..
        "where one of the values is. eig(A).values works out no vectors. " ..
        "With left also F.left, with F.left.H * A = diag(F.values) * " ..
        "F.left.H. With B: A * F.vectors is B * F.vectors * diag(F.values), " ..
        "with values F.alpha / F.beta, which are infinite where F.beta is 0. " ..
        "Of a symmetric matrix use eigh: its vectors are " ..
        "orthonormal. F:solve(b), of A, by LU, F:det() F:logdet() " ..
        "F:rcond(); values, vectors = F:unpack().",
    example = "eig(mat{{0, 1}, {-1, 0}}).values",
    result = "vec{im, -im}",
    options = {{"left", "boolean", "false", "left vectors, too"}},
}
function spectra.eig(A, B, options)
    if type(B) == "table" then B, options = nil, B end
    A, B = operand("eig", A, true), B and operand("eig", B, true, false, "B")
    if B and B.rows ~= A.rows then
        fail("eig", "A is %s, B %s", shape_of(A), shape_of(B))
    end
    if B then A, B = common(A, B), common(B, A) end
    return object("eig", A, {B = B,
        wants_left = options and options.left or false})
end

row{
    name = "eigvals", method = true,
    takes = "A: square",
    gives = "matrix",
    group = "factors",
    help = "The eigenvalues, complex where one of them is; eig(A).values is " ..
        "the same, eigh(A).values those of a symmetric matrix.",
    example = "eigvals(mat{{2, 1}, {0, 3}})",
    result = "{2, 3}",
}
function spectra.eigvals(A)
    return spectra.eig(A).values
end

row{
    name = "roots",
    takes = "p: list",
    gives = "matrix",
    group = "factors",
    help = "The roots, in f64 or c128, of the polynomial with the " ..
        "coefficients p, that of the highest power first: eigenvalues of its " ..
        "companion matrix, complex where one of them is.",
    example = "roots{1, -3, 2}",
    result = "{2, 1}",
}
function spectra.roots(p)
    local list = factors.coefficients("roots", "coefficient", p)
    local first, last, has_complex = 1, #list, false
    for _, c in ipairs(list) do
        has_complex = has_complex or type(c) ~= "number"
    end
    local function is_zero(c) return c and library.abs(c) == 0 end
    while is_zero(list[first]) do first = first + 1 end
    while last > first and is_zero(list[last]) do last = last - 1 end
    if first > #list then
        fail("roots", "all coefficients are 0: every number is a root")
    end
    local n, zeros = last - first, #list - last
    local there = {dtype = has_complex and "c128" or "f64", device = "cpu"}
    local C = library.zeros(n, n, there)
    for j = 1, n do
        C[{1, j}] = -list[first + j] / list[first]
        if j > 1 then C[{j, j - 1}] = 1 end
    end
    local values = n > 0 and spectra.eigvals(C) or library.zeros(0, there)
    if zeros > 0 then
        values = library.hcat(values:row(), library.zeros(1, zeros,
            {dtype = values.dtype, device = "cpu"})):flatten()
    end
    return values:to(type(p) == "table" and library.device() or p.device)
end

-- --- LDL --------------------------------------------------------------------

local function packed_ldl(s)
    if not s.packed then s.packed, s.below, s.p = steps.ldl(s.A) end
    return s
end

-- Rows moved up or down by one; zeros follow.
local function moved(A, by)
    local n = A.rows
    local zero = make.zeros(A, 1, A.cols)
    return by < 0 and library.vcat(A[{{2, n}, {}}], zero) or
        library.vcat(zero, A[{{1, n - 1}, {}}])
end

-- As columns: D's diagonal, which is real, and for every row what stands beside
-- it in its block, of its first row to the right, of its second to the left.
local function diagonals(s)
    packed_ldl(s)
    local below = s.below:col()
    return library.real(library.diag(s.packed)):col(), library.conj(below),
        moved(below, 1)
end

-- The blocks as columns, by rows: their own diagonal element, the block's other
-- one, what stands beside them, all over `size`, |what stands beside them| or 1;
-- and their determinants over the square of it. They would overflow without it.
local function scaled_blocks(s)
    local d, after, before = diagonals(s)
    local size = library.abs(after) + library.abs(before)
    size = library.where(size:eq(0), 1, size)
    d, after, before = d / size, after / size, before / size
    local is_first, is_second = after:ne(0), before:ne(0)
    local other = library.where(is_first, moved(d, -1),
        library.where(is_second, moved(d, 1), 1))
    local dets = library.where(is_first | is_second, d % other - 1, d)
    return {size = size, after = after, before = before, other = other,
        dets = dets, is_second = is_second}
end

local ldl_methods = {unpack = make.unpack_parts}

function ldl_methods.det(F)
    local s = state[F]
    if s.rows == 0 then return 1.0 end
    local blocks = scaled_blocks(s)
    local dets = blocks.dets:f64() % blocks.size:f64():square()
    return determinants.product_of(library.where(blocks.is_second, 1, dets):flatten())
end

function ldl_methods.logdet(F)
    local s = state[F]
    if s.rows == 0 then return 0.0, 1 end
    local blocks = scaled_blocks(s)
    local sign, log = determinants.sign_and_log(library.where(blocks.is_second, 1,
        blocks.dets))
    return log + blocks.size:log():sum(), sign -- of both rows of a block
end

function ldl_methods.rcond(F)
    return make.rcond_of(state[F])
end

-- D^-1 y, of the columns of y.
local function by_blocks(s, y)
    local blocks = scaled_blocks(s)
    if not steps.is_dry() and blocks.dets:eq(0):any() then
        make.refuse_singular("a block of D is")
    end
    y = y / blocks.size
    return (blocks.other % y - blocks.after % moved(y, -1) -
        blocks.before % moved(y, 1)) / blocks.dets
end

function ldl_methods.solve(F, b)
    local s = packed_ldl(state[F])
    make.right_side("solve", s.rows, b)
    if s.rows == 0 then return b:clone() end
    local columns = b.ndim == 1 and b:col() or b
    local y = steps.triangle(s.packed, columns[{s.p, {}}],
        {lower = true, unit = true})
    y = steps.triangle(s.packed, by_blocks(s, y),
        {lower = true, unit = true, turned = true})
    make.warn_if_poor(F, s)
    local x = y:clone()
    x[{s.p, {}}] = y
    return b.ndim == 1 and x:flatten() or x
end

add_kind("ldl", {order = make.fixed("L", "D", "p"), methods = ldl_methods,
    says = function(F, s)
        return s.rows > 0 and (", rcond %.2g"):format(F:rcond()) or ""
    end,
    parts = {
        p = packed_ldl,
        L = function(s)
            s.L = library.tril(packed_ldl(s).packed, -1) +
                library.eye(s.rows, s.rows, {dtype = s.dtype, device = s.device})
        end,
        D = function(s)
            packed_ldl(s)
            s.D = library.diag(library.diag(s.packed))
            if s.rows > 1 then
                local off = s.below[{{1, -2}}]
                s.D = s.D + library.diag(library.conj(off), 1) +
                    library.diag(off, -1)
            end
        end}})

row{
    name = "ldl", method = true,
    takes = "A: square",
    gives = "factors",
    group = "factors",
    help = "A symmetric or Hermitian matrix of any signs as F.L * F.D * F.L.H, " ..
        "which are " ..
        "its rows and columns in the order F.p, A[{F.p, F.p}]: F.L lower " ..
        "triangular with ones, F.D diagonal but for 2 x 2 blocks. " ..
        "F:solve(b) F:det() F:logdet() F:rcond(); L, D, p = F:unpack().",
    example = "ldl(mat{{4, 2}, {2, 5}}).D",
    result = "{{4, 0}, {0, 4}}",
}
function spectra.ldl(A)
    return object("ldl", operand("ldl", A, true, true))
end

-- --- equations --------------------------------------------------------------

-- X of A X + X B = C, by the Schur forms of A and B. Source: Bartels and
-- Stewart, Solution of the matrix equation AX + XB = C, 1972.
local function solve_sylvester(what, A, B, C)
    if C.rows ~= A.rows or C.cols ~= B.rows then
        fail(what, "A is %s and B %s, so C has to be %dx%d, not %s",
            shape_of(A), shape_of(B), A.rows, B.rows, shape_of(C))
    end
    if C.rows == 0 or C.cols == 0 then return C:clone() end
    A = common(common(A, B), C)
    B, C = common(B, A), common(C, A)
    local Q, T = both_forms(object("schur", A))
    local P, S = both_forms(object("schur", B))
    local Y = steps.sylvester(T, S, Q.H * C * P)
    if not Y then
        fail(what, "there is no single solution: A and -B share an " ..
            "eigenvalue, or nearly")
    end
    return Q * Y * P.H
end

row{
    name = "sylvester", method = true,
    takes = "A: square, B: square, C: matrix",
    gives = "matrix",
    group = "systems factors",
    help = "The X with A X + X B = C.",
    example = "sylvester(mat{{1}}, mat{{2}}, mat{{6}})",
    result = "{{2}}",
}
function spectra.sylvester(A, B, C)
    return solve_sylvester("sylvester", operand("sylvester", A, true),
        operand("sylvester", B, true, false, "B"),
        operand("sylvester", C, false, false, "C"))
end

row{
    name = "lyap", method = true,
    takes = "A: square, Q: square",
    gives = "matrix",
    group = "systems factors",
    help = "The X with A X + X A.H + Q = 0, as MATLAB's and Julia's lyap; " ..
        "SciPy's has Q on the other side.",
    example = "lyap(mat{{-1}}, mat{{4}})",
    result = "{{2}}",
}
function spectra.lyap(A, Q)
    A = operand("lyap", A, true)
    return solve_sylvester("lyap", A, A.H:clone(), -operand("lyap", Q, true,
        false, "Q"))
end

for _, kind in ipairs{"hess", "schur", "ldl"} do
    factors.makers[kind] = spectra[kind]
end
function factors.makers.eig(A, how, B)
    return spectra.eig(A, B, {left = how.full})
end

return spectra
