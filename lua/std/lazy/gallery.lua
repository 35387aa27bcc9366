-- Matrices whose properties are known, for tests and lessons. Source: Higham,
-- The Test Matrix Toolbox for MATLAB, 1995, and the functions that MATLAB and
-- Octave have under the same names.
--
-- All are made in f64 on the device they are wanted on, and rounded once.
local library, _, _, private = ...
local checks = require "lumat.checks"
local fail, brief = checks.fail, checks.brief
local matrices = {}
local ipairs, pairs, select, type = ipairs, pairs, select, type
local concat, sort, unpack = table.concat, table.sort, table.unpack
local cos, sin, pi = math.cos, math.sin, math.pi
local format, gsub = string.format, string.gsub

-- --- what they are made of ---------------------------------------------------

local function wide(options, is_complex)
    return {dtype = is_complex and "c128" or "f64",
        device = options and options.device}
end

local made_complex = {f32 = "c64", f64 = "c128"}

local function finished(A, options)
    local dtype = options and options.dtype
    if not dtype then
        dtype = library.default_dtype()
        dtype = checks.is_complex(A) and made_complex[dtype] or dtype
    elseif dtype == "bool" then
        fail("gallery", "dtype is \"f32\", \"f64\", \"c64\" or \"c128\", " ..
            "not %s", brief(dtype))
    elseif checks.is_complex(A) and made_complex[dtype] then
        fail("gallery", "the elements are complex, so dtype is \"c64\" or " ..
            "\"c128\", not %s", brief(dtype))
    end
    return A[dtype](A)
end

-- The numbers of the rows as a column, of the columns as a row.
local function places(m, n, options)
    local there = wide(options)
    if m == 0 or n == 0 then
        return library.zeros(m, 1, there), library.zeros(1, n, there)
    end
    return library.range(1, m, 1, there):col(), library.range(1, n, 1, there):row()
end

-- f of the places of an n x n matrix, or m x n.
local function of_places(options, m, n, f)
    local i, j = places(m, n, options)
    return f(i, j)
end

-- Of the types and sizes that the functions share.
local function vector_of(what, v, options)
    if type(v) == "table" then
        local is_complex = false
        for _, x in ipairs(v) do
            is_complex = is_complex or checks.kind(x) == "complex number"
        end
        v = library.vec(v, wide(options, is_complex))
    end
    checks.matrix(what, "v", v)
    if v.ndim ~= 1 then
        fail(what, "needs a vector, not %s", checks.shape_of(v))
    end
    return checks.as_wide(v)
end

local function options_of_last(...)
    local n = select("#", ...)
    local last = n > 0 and select(n, ...)
    if type(last) == "table" and not last[1] then
        return last, {unpack({...}, 1, n - 1)}
    end
    return nil, {...}
end

-- --- the common ones ---------------------------------------------------------

row{
    name = "hilb",
    takes = "n: size {dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "The Hilbert matrix, 1 / (i + j - 1): symmetric positive definite, " ..
        "with a condition of about exp(3.5 n).",
    example = "hilb(2)",
    result = "{{1, 0.5}, {0.5, 0.3333333}}",
}
function matrices.hilb(n, options)
    return finished(of_places(options, n, n, function(i, j)
        return 1 / (i + j - 1)
    end), options)
end

row{
    name = "invhilb",
    takes = "n: size {dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "The inverse of the Hilbert matrix, of whole numbers, which f64 " ..
        "holds exactly up to n = 12.",
    example = "invhilb(2)",
    result = "{{4, -6}, {-6, 12}}",
}
function matrices.invhilb(n, options)
    local v, p = {}, n
    for i = 1, n do
        v[i] = p
        p = (n - i) * p * (n + i) / (i * i)
    end
    return finished(n == 0 and library.zeros(0, 0, wide(options)) or
        library.fromfn(n, n, function(i, j)
            local sign = (i + j) % 2 == 0 and 1 or -1
            return sign * v[i] * v[j] / (i + j - 1)
        end, wide(options)), options)
end

row{
    name = "pascal",
    takes = "n: size {dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "Pascal's triangle as a matrix: symmetric positive definite, its " ..
        "determinant is 1, its inverse has whole numbers.",
    example = "pascal(3)",
    result = "{{1, 1, 1}, {1, 2, 3}, {1, 3, 6}}",
}
function matrices.pascal(n, options)
    local A = library.ones(n, n, wide(options))
    for i = 2, n do A[i] = A[i - 1]:cumsum() end
    return finished(A, options)
end

-- Of an odd side: siamese.
local function odd_magic(n, i, j)
    local a, b = (i + j + (n - 3) // 2) % n, (i + 2 * j - 2) % n
    return n * a + b + 1
end

local function magic_element(n, i, j)
    if n % 2 == 1 then return odd_magic(n, i, j) end
    if n % 4 == 0 then
        local place = (i - 1) * n + j
        local same = (i % 4) // 2 == (j % 4) // 2
        return same and n * n + 1 - place or place
    end
    local p, k = n // 2, (n - 2) // 4
    local row, col = (i - 1) % p + 1, (j - 1) % p + 1
    local below, right = i > p, j > p
    -- in the columns of the margins the halves are exchanged
    local margin = j <= k or j > n - k + 1
    if row == (p + 1) // 2 and j <= k + 1 and not right then
        margin = j > 1 and j <= k + 1
    end
    if margin then below = not below end
    local quarter = (below and (right and 1 or 3)) or (right and 2 or 0)
    return odd_magic(p, row, col) + quarter * p * p
end

row{
    name = "magic",
    takes = "n: size {dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "A magic square of 1 to n n, whose rows, columns and diagonals have " ..
        "one sum; there is none of 2.",
    example = "magic(3)",
    result = "{{8, 1, 6}, {3, 5, 7}, {4, 9, 2}}",
}
function matrices.magic(n, options)
    if n == 2 then fail("magic", "there is no magic square of 2") end
    return finished(n == 0 and library.zeros(0, 0, wide(options)) or
        library.fromfn(n, n, function(i, j)
            return magic_element(n, i, j)
        end, wide(options)), options)
end

row{
    name = "rosser",
    takes = "{dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "Rosser's 8 x 8 matrix, a trial for eigenvalue programs: a double " ..
        "eigenvalue, three that nearly agree, one that is 0, one that is small.",
    example = "trace(rosser())",
    result = "4040",
}
function matrices.rosser(options)
    return finished(library.mat({
        {611, 196, -192, 407, -8, -52, -49, 29},
        {196, 899, 113, -192, -71, -43, -8, -44},
        {-192, 113, 899, 196, 61, 49, 8, 52},
        {407, -192, 196, 611, 8, 44, 59, -23},
        {-8, -71, 61, 8, 411, -599, 208, 208},
        {-52, -43, 49, 44, -599, 411, 208, 208},
        {-49, -8, 8, 59, 208, 208, 99, -911},
        {29, -44, 52, -23, 208, 208, -911, 99}}, wide(options)), options)
end

-- The element that both lists have is c's, as in MATLAB: it is told where r has
-- another one than rounding would leave.
local function warn_of_corner(what, c, place, r)
    local mine, other = c[place], r[1]
    if library.abs(mine - other) > 1e-6 * library.abs(mine) then
        private.warn_once(what, format("c[%d] is %s and r[1] is %s at the same " ..
            "place, which is c's", place, mine, other))
    end
end

-- A matrix of c's and r's lengths, of element(i, j, c, r) as tables; r may be
-- left out: then it is c again, or zeros. r is the first row, or the last one.
local function of_two_lists(what, c, r, options, element, is_first)
    if type(r) == "table" and not r[1] then r, options = nil, r end
    c = vector_of(what, c, options)
    local is_given = r
    r = r and vector_of(what, r, options) or
        is_first and (checks.is_complex(c) and library.conj(c) or c) or
        library.zeros(c.rows, wide(options))
    local there = wide(options, checks.is_complex(c) or checks.is_complex(r))
    local first, last = c:totable(), r:totable()
    if #first == 0 or #last == 0 then
        return finished(library.zeros(#first, #last, there), options)
    end
    if is_given then
        warn_of_corner(what, first, is_first and 1 or #first, last)
    end
    return finished(library.fromfn(#first, #last, function(i, j)
        return element(i, j, first, last)
    end, there), options)
end

row{
    name = "toeplitz",
    takes = "c: list [, r: list] {dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "The matrix with c as its first column and r, or c again (of " ..
        "complex numbers their conjugates), as its first row, whose elements " ..
        "depend on i - j alone; c[1] counts, where r[1] is another.",
    example = "toeplitz(vec{1, 2, 3})",
    result = "{{1, 2, 3}, {2, 1, 2}, {3, 2, 1}}",
}
function matrices.toeplitz(c, r, options)
    return of_two_lists("toeplitz", c, r, options, function(i, j, first, last)
        return i >= j and first[i - j + 1] or last[j - i + 1]
    end, true)
end

row{
    name = "hankel",
    takes = "c: list [, r: list] {dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "The matrix with c as its first column and r as its last row, or " ..
        "zeros below c's diagonal, whose elements depend on i + j alone; c's " ..
        "last counts, where r[1] is another.",
    example = "hankel(vec{1, 2, 3})",
    result = "{{1, 2, 3}, {2, 3, 0}, {3, 0, 0}}",
}
function matrices.hankel(c, r, options)
    return of_two_lists("hankel", c, r, options, function(i, j, first, last)
        local k = i + j - 1
        return k <= #first and first[k] or last[k - #first + 1]
    end)
end

row{
    name = "vander", method = true,
    takes = "v: list [, n: size] {dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "The Vandermonde matrix: n columns (v's length) of falling powers " ..
        "of v, the last of ones.",
    example = "vander(vec{1, 2, 3})",
    result = "{{1, 1, 1}, {4, 2, 1}, {9, 3, 1}}",
}
function matrices.vander(v, n, options)
    if type(n) == "table" then n, options = nil, n end
    v = vector_of("vander", v, options)
    n = n or v.rows
    local A = library.ones(v.rows, n, wide(options, checks.is_complex(v)))
    for k = n - 1, v.rows > 0 and 1 or n, -1 do
        A[{{}, k}] = A[{{}, k + 1}] % v
    end
    return finished(A, options)
end

row{
    name = "wilkinson",
    takes = "n: size {dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "Wilkinson's tridiagonal matrix, symmetric, with pairs of " ..
        "eigenvalues that nearly agree: wilkinson(21).",
    example = "wilkinson(3)",
    result = "{{1, 1, 0}, {1, 0, 1}, {0, 1, 1}}",
}
function matrices.wilkinson(n, options)
    return finished(of_places(options, n, n, function(i, j)
        local apart = (i - j):abs()
        return library.where(apart:eq(0), (i - (n + 1) / 2):abs(), apart:eq(1))
    end), options)
end

-- Paley's: of a prime q that leaves 3 when it is divided by 4, q + 1 rows.
local function paley(q, options)
    local sign = {}
    for x = 1, q - 1 do sign[x * x % q] = 1 end
    return library.fromfn(q + 1, q + 1, function(i, j)
        if i == j or i == 1 then return 1 end
        if j == 1 then return -1 end
        return sign[(j - i) % q] or -1
    end, wide(options))
end

row{
    name = "hadamard",
    takes = "n: count {dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "A matrix H of 1 and -1 with H * H.T = n times the identity; n is 1, " ..
        "2, 12 or 20 times a power of 2.",
    example = "hadamard(2)",
    result = "{{1, 1}, {1, -1}}",
}
function matrices.hadamard(n, options)
    local times, rest = 0, n
    while rest % 2 == 0 and rest ~= 12 and rest ~= 20 do
        times, rest = times + 1, rest // 2
    end
    local H
    if rest == 1 then
        H = library.ones(1, 1, wide(options))
    elseif rest == 12 or rest == 20 then
        H = paley(rest - 1, options)
    else
        fail("hadamard", "none is known here of %d: n is 1, 2, 12 or 20 times a " ..
            "power of 2", n)
    end
    local two = library.mat({{1, 1}, {1, -1}}, wide(options))
    for _ = 1, times do H = library.kron(two, H) end
    return finished(H, options)
end

row{
    name = "companion",
    takes = "p: list {dtype, device}",
    gives = "matrix",
    group = "gallery",
    help = "The companion matrix of a polynomial, the coefficient of the highest " ..
        "power first: its eigenvalues are the polynomial's zeros.",
    example = "companion(vec{1, -3, 2})",
    result = "{{3, -2}, {1, 0}}",
}
function matrices.companion(p, options)
    p = vector_of("companion", p, options)
    local list = p:totable()
    local n = #list - 1
    if n < 1 or library.abs(list[1]) == 0 then
        fail("companion", "needs two coefficients or more, the first not 0")
    end
    return finished(library.fromfn(n, n, function(i, j)
        return i == 1 and -list[j + 1] / list[1] or i == j + 1 and 1 or 0
    end, wide(options, checks.is_complex(p))), options)
end

-- --- by name -----------------------------------------------------------------

-- Each: what it takes behind the name, what is known, and how it is made of n,
-- or of what else it takes.
local known = {}

local function add(name, takes, says, make)
    known[name] = {takes = takes, says = says, make = make}
end

local function of_n(f)
    return function(options, n, ...)
        local more = {...}
        return of_places(options, n, n, function(i, j)
            return f(i, j, n, unpack(more))
        end)
    end
end

add("cauchy", "n", "1 / (i + j): symmetric positive definite, ill-conditioned",
    of_n(function(i, j) return 1 / (i + j) end))
add("chebspec", "n", "Chebyshev spectral differentiation: nilpotent",
    function(options, n)
        -- Trefethen, Spectral Methods in MATLAB, 2000, cheb
        local x, c = {}, {}
        for k = 1, n do
            x[k] = cos(pi * (k - 1) / (n - 1))
            c[k] = ((k == 1 or k == n) and 2 or 1) * (k % 2 == 1 and 1 or -1)
        end
        local function off(i, j) return c[i] / c[j] / (x[i] - x[j]) end
        return library.fromfn(n, n, function(i, j)
            if i ~= j then return off(i, j) end
            local sum = 0
            for k = 1, n do
                if k ~= i then sum = sum - off(i, k) end
            end
            return sum
        end, wide(options))
    end)
add("circul", "n", "circulant of 1 to n: normal, its eigenvalues are a Fourier " ..
    "transform", of_n(function(i, j, n) return library.mod(j - i, n) + 1 end))
add("clement", "n", "tridiagonal, zeros on the diagonal: eigenvalues " ..
    "n - 1, n - 3, …, 1 - n", of_n(function(i, j, n)
        return library.where((i - j):eq(1), n - j,
            library.where((j - i):eq(1), i + 0 * j, 0))
    end))
add("fiedler", "n", "|i - j|: one positive eigenvalue, all others negative",
    of_n(function(i, j) return (i - j):abs() end))
add("forsythe", "n [, alpha [, lambda]]", "a Jordan block with alpha " ..
    "(sqrt(eps)) in a corner: eigenvalues on a circle",
    of_n(function(i, j, n, alpha, lambda)
        return (lambda or 0) * i:eq(j):f64() + (j - i):eq(1):f64() +
            (alpha or 2.0 ^ -26) * (n > 1 and (i - j):eq(n - 1):f64() or 1)
    end))
add("frank", "n", "upper Hessenberg: determinant 1, small eigenvalues are " ..
    "ill-conditioned", of_n(function(i, j, n)
        return library.where((i - j):le(1), n + 1 - library.maximum(i, j), 0)
    end))
add("grcar", "n [, k]", "Toeplitz, -1 below the diagonal, 1 on it and on k (3) " ..
    "above: eigenvalues are sensitive", of_n(function(i, j, _, k)
        local d = j - i
        return (d:ge(0) & d:le(k or 3)):f64() - d:eq(-1):f64()
    end))
add("kahan", "n [, theta]", "upper triangular: QR with pivots hides how near it " ..
    "is to a singular one", of_n(function(i, j, n, theta)
        local s, c = sin(theta or 1.2), cos(theta or 1.2)
        local U = i:eq(j):f64() - c * i:lt(j):f64()
        return U % library.pow(0 * i + s, i - 1) +
            25 * 2.0 ^ -52 * (i:eq(j):f64() % (n + 1 - i))
    end))
add("kms", "n [, rho]", "rho (0.5) to the power |i - j|: symmetric positive " ..
    "definite, its inverse is tridiagonal", of_n(function(i, j, _, rho)
        local power = (i - j):abs()
        return library.pow(0 * power + (rho or 0.5), power)
    end))
add("lehmer", "n", "min(i, j) / max(i, j): symmetric positive definite, its " ..
    "inverse is tridiagonal", of_n(function(i, j)
        return library.minimum(i, j) / library.maximum(i, j)
    end))
add("lesp", "n", "tridiagonal with sensitive eigenvalues, real and negative",
    of_n(function(i, j)
        return library.where(i:eq(j), -(2 * i + 3), library.where((j - i):eq(1),
            j + 0 * i, library.where((i - j):eq(1), 1 / (i + 0 * j), 0)))
    end))
add("lotkin", "n", "a Hilbert matrix with ones as its first row: not symmetric, " ..
    "ill-conditioned", of_n(function(i, j)
        return library.where(i:eq(1), 1, 1 / (i + j - 1))
    end))
add("minij", "n", "min(i, j): symmetric positive definite, its inverse is " ..
    "tridiagonal", of_n(function(i, j) return library.minimum(i, j) end))
add("moler", "n [, alpha]", "U.T * U of triw: symmetric positive definite, one " ..
    "eigenvalue is small", of_n(function(i, j, _, alpha)
        local U = i:eq(j):f64() + (alpha or -1) * i:lt(j):f64()
        return U.T * U
    end))
add("parter", "n", "1 / (i - j + 0.5): singular values near pi",
    of_n(function(i, j) return 1 / (i - j + 0.5) end))
add("pei", "n [, alpha]", "alpha (1) I plus ones: symmetric",
    of_n(function(i, j, _, alpha) return (alpha or 1) * i:eq(j):f64() + 1 end))
add("prolate", "n [, w]", "symmetric Toeplitz, for 0 < w (0.25) < 0.5 positive " ..
    "definite and ill-conditioned", of_n(function(i, j, _, w)
        local d = (i - j):abs()
        w = w or 0.25
        return library.where(d:eq(0), 2 * w,
            (2 * pi * w * d):sin() / library.where(d:eq(0), 1, pi * d))
    end))
add("ris", "n", "0.5 / (n - i - j + 1.5): eigenvalues near pi / 2 and -pi / 2",
    of_n(function(i, j, n) return 0.5 / (n - i - j + 1.5) end))
add("tridiag", "n [, c, d, e]", "tridiagonal of c, d, e (-1, 2, -1): the second " ..
    "difference", of_n(function(i, j, _, c, d, e)
        return (c or -1) * (i - j):eq(1):f64() + (d or 2) * i:eq(j):f64() +
            (e or -1) * (j - i):eq(1):f64()
    end))
add("triw", "n [, alpha]", "upper triangular, alpha (-1) above the diagonal: an " ..
    "ill-conditioned basis", of_n(function(i, j, _, alpha)
        return i:eq(j):f64() + (alpha or -1) * i:lt(j):f64()
    end))

local function names()
    local list = {}
    for name in pairs(known) do list[#list + 1] = name end
    sort(list)
    return list
end

-- A table of what there is, that shows itself.
local function listing()
    local rows, fields = {}, {}
    for _, name in ipairs(names()) do
        local k = known[name]
        fields[name] = k.says
        rows[#rows + 1] = format("  gallery(%q, %s)\n    %s", name, k.takes, k.says)
    end
    return checks.shown(fields, concat(rows, "\n") ..
        "\nalso hilb invhilb pascal magic rosser toeplitz hankel vander " ..
        "wilkinson hadamard companion")
end

row{
    name = "gallery",
    takes = "[name: string [, n: size [, x: number [, y: number [, " ..
        "z: number]]]]] {dtype, device}",
    gives = "table or matrix with n",
    group = "gallery",
    help = "A matrix of Higham's by name, of n rows, or of what else it takes; " ..
        "gallery() lists them with what is known of them.",
    example = "gallery(\"minij\", 3)",
    result = "{{1, 1, 1}, {1, 2, 2}, {1, 2, 3}}",
}
function matrices.gallery(name, n, ...)
    if name == nil then return listing() end
    if n == nil then fail("gallery", "%q needs a size n", name) end
    local k = known[name]
    if not k then
        fail("gallery", "there is no %s: there are %s", brief(name),
            concat(names(), " "))
    end
    local options, more = options_of_last(...)
    local _, most = gsub(k.takes, "%a+", "")
    if #more > most - 1 then
        fail("gallery", "too many numbers: gallery(%q, %s)", name, k.takes)
    end
    if n == 0 then return finished(library.zeros(0, 0, wide(options)), options) end
    local A = k.make(options, n, unpack(more))
    return finished(A, options)
end

return matrices
