-- The cross product; and products checked: A B in double precision, and how far
-- a result is from it.
local library = ...
local checks = require "lumat.checks"
local fail = checks.fail
local products = {}
local ipairs, require, tostring, type = ipairs, require, tostring, type
local concat, unpack = table.concat, table.unpack
local sqrt, format = math.sqrt, string.format

local smallest = {f32 = 2.0 ^ -149, f64 = 2.0 ^ -1074}

-- How far a sum of k products may be off, relative to |A||B|: gamma_k of
-- Higham, Accuracy and Stability of Numerical Algorithms, 3.1, for k + 1
-- roundings; where that says little (from a thousandth on), roundings are
-- taken as random: Higham and Mary, A new approach to probabilistic rounding
-- error analysis, 2019, with lambda = 6.
local function gamma(dtype, k)
    local u = dtype == "f64" and 2.0 ^ -53 or 2.0 ^ -24
    local nu = (k + 1) * u
    if nu < 1e-3 then return nu / (1 - nu) end
    return 6 * sqrt(k + 1) * u
end
products.gamma = gamma

local function operation_on(A, B)
    if checks.is_sparse(A) then
        return (B.ndim == 1 or B.cols == 1) and "spmv" or "spmm"
    end
    return A.ndim == 1 and B.ndim == 1 and "dot" or "matmul"
end
products.operation_on = operation_on

-- f64 where everything is.
local function type_of(A, B, C)
    return A.dtype == "f64" and B.dtype == "f64" and C.dtype == "f64" and
        "f64" or "f32"
end

-- What a check promises: the bound given, or the kernel's own, or gamma.
local function bound_of(options, A, B, dtype)
    local _, _, inner = checks.sizes(A, B)
    if options.bound then return options.bound end
    local kernel = options.kernel
    if not kernel then return gamma(dtype, inner) end
    if kernel == "auto" then kernel = library.kernel_choice(A, B) end
    return library.kernel_bound(operation_on(A, B), kernel, dtype, inner,
        A.device)
end

-- A B in double precision, by another way than the one being checked: three
-- loops on the CPU where that takes no minutes, else the device's best.
local function exactly(A, B)
    local rows, cols, inner = checks.sizes(A, B)
    A, B = A:f64(), B:f64()
    local how
    if checks.is_sparse(A) then return A:to("cpu") * B:to("cpu") end
    if 2.0 * rows * cols * inner <= 5e8 then
        A, B, how = A:to("cpu"), B:to("cpu"), {kernel = "reference"}
    end
    local result = library[operation_on(A, B)](A, B, how)
    if type(result) == "number" then
        return library.vec({result}, {dtype = "f64", device = A.device})
    end
    return result
end

-- What every result of A * B is compared with.
function products.reference(A, B)
    return {exact = exactly(A, B), size = exactly(A:abs(), B:abs())}
end

-- What is beyond the numbers of a type is Inf there.
local function as_held(dtype, X)
    return dtype == "f64" and X or X:f32():f64()
end

-- Do NaN and Inf stand where they must? A result may be Inf where the exact
-- one is beyond its type, or as near to that as rounding goes.
local function is_alike(wide, exact, limit, dtype)
    local isnan = library.isnan
    return wide:eq(exact) | (isnan(wide) & isnan(exact)) |
        (library.isfinite(exact) & (library.isfinite(wide) |
            wide:eq(as_held(dtype, exact + limit)) |
            wide:eq(as_held(dtype, exact - limit))))
end

-- C against the reference: the largest error as a multiple of the bound
-- (`ratio`, where `at` says) and of |A||B| (`worst`), the whole error by
-- Frobenius norms (`error`), and whether NaN and Inf stand where they must.
local function compare(C, A, B, known, gamma_k, dtype)
    local exact, size = known.exact, known.size
    if type(C) == "number" then
        C = library.vec({C}, {dtype = "f64", device = exact.device})
    end
    local wide, where = C:f64():to(exact.device), library.where
    local _, _, inner = checks.sizes(A, B)
    -- products may be lost below the smallest number, whatever |A||B| is
    local limit = size * gamma_k + inner * smallest[C.dtype]
    local finite = library.isfinite(exact)
    local alike = is_alike(wide, exact, limit, dtype)
    local off = where(finite & library.isfinite(wide), (wide - exact):abs(), 0)
    local norm = library.norm(where(finite, exact, 0))
    local ratio = where(off:eq(0), 0, off / limit)
    local whole = ratio.size > 0
    return {ratio = whole and ratio:max() or 0,
        worst = whole and where(off:eq(0), 0, off / size):max() or 0,
        error = off:norm() / (norm > 0 and norm or 1),
        alike = alike:all(), at = function()
            local bad = alike:all() and ratio or (~alike):f32()
            return bad.ndim == 2 and format(" at [%d, %d]", bad:argmax()) or ""
        end}
end

local function text_of(found)
    if not found.alike then
        return "FAILS: NaN or Inf where the reference has another value" ..
            found.at()
    elseif found.accept then
        return format("Accept: relative error %.2g, at most %.2g of the bound",
            found.error, found.ratio)
    end
    return format("FAILS: %.3g times the bound%s, relative error %.2g",
        found.ratio, found.at(), found.error)
end

-- verify with a reference that is there.
function products.judge(C, A, B, known, options)
    local dtype = type(C) == "number" and type_of(A, B, A) or type_of(A, B, C)
    local found = compare(C, A, B, known, bound_of(options, A, B, dtype),
        dtype)
    found.accept = found.ratio <= 1 and found.alike
    local text = text_of(found)
    found.alike, found.at = nil, nil
    return checks.shown(found, text)
end

-- Complex matrices as real ones with the same product but for its layout: C's
-- parts below each other are A's parts in four blocks times B's.
local function by_parts(C, A, B)
    local is_complex = checks.is_complex
    if not is_complex(A) and not is_complex(B) or checks.is_sparse(A) then
        return C, A, B
    end
    local function parts(M)
        local columns = M.ndim == 1 and M:col() or M
        return library.vcat(library.real(columns), library.imag(columns))
    end
    if type(C) == "number" or C.ndim and (A.ndim == 1 or B.ndim == 1) then
        fail("verify", "of complex operands takes matrices: v:row() and " ..
            "v:col() are some")
    end
    local re, im = library.real(A), library.imag(A)
    return parts(C), library.vcat(library.hcat(re, -im), library.hcat(im, re)),
        parts(B)
end

-- The residuals of a factorisation, as LAPACK's own tests judge them.
local function verify_factors(F)
    local factors = require "lumat.factors"
    if not factors.has_residuals(F) then
        fail("verify", "takes a factorisation of a dense matrix, such as " ..
            "lu(A), or C, A and B with C = A * B")
    end
    local list, worst, texts = factors.residuals(F), 0, {}
    for i, r in ipairs(list) do
        -- also where it is NaN
        if not (r[2] <= worst) then worst = r[2] end
        texts[i] = format("|%s| is %.2g n eps%s", r[1], r[2], r[3])
    end
    local accept = worst < 30
    return checks.shown({accept = accept, ratio = worst},
        (accept and "Accept: " or "FAILS, 30 or more: ") .. concat(texts, ", "))
end

row{
    name = "verify", method = true,
    takes = "F: factors or C: matrix|number, A: matrix|sparse, B: matrix " ..
        "product A {kernel, bound}",
    gives = "table",
    group = "products",
    help = "verify(F) tells a factorisation's residuals, such as |L U - A[p]| " ..
        "over n eps |A| in the 1-norm, by which LAPACK's own tests judge: those " ..
        "of a stable method are below 30. Fields: accept, ratio. verify(C, A, B) " ..
        "compares C with A * B in double precision and says Accept, or by " ..
        "how much it fails the bound gamma |A||B|: a kernel's own, one " ..
        "given, or that of sums in C's type. Fields: accept, ratio (to the " ..
        "bound), error (Frobenius), worst (to |A||B|).",
    example = "verify(mat{{1, 2}} * mat{{3}, {4}}, mat{{1, 2}}, mat{{3}, " ..
        "{4}}).accept",
    result = "true",
    options = {
        {"kernel", "kernel", false, "the kernel whose bound is meant"},
        {"bound", "positive", false, "a bound given as a number"}},
}
function products.verify(C, A, B, options)
    if A == nil and type(C) == "table" then return verify_factors(C) end
    C, A, B = by_parts(C, A, B)
    local shape = checks.product("verify", A, B)
    if checks.shape_of(C) ~= shape then
        fail("verify", "C is %s, but A * B is %s (A is %s, B is %s)",
            checks.shape_of(C), shape, checks.shape_of(A), checks.shape_of(B))
    end
    return products.judge(C, A, B, products.reference(A, B), options or {})
end

-- --- the cross product -------------------------------------------------------

-- As rows of three, and how many vectors it holds.
local function rows_of_three(name, A, axis)
    checks.matrix("cross", name, A)
    local rows = A.ndim == 1 and A:row() or axis == 1 and A.T or A
    if rows.cols ~= 3 then
        fail("cross", "%s is %s, which has no vectors of three%s", name,
            checks.shape_of(A), A.ndim == 2 and (axis == 1 and
                " as its columns" or " as its rows") or "")
    end
    return rows
end

row{
    name = "cross", method = true,
    takes = "x: matrix, y: matrix {axis}",
    gives = "matrix",
    group = "outer",
    help = "The cross product of two vectors of three; of matrices with three " ..
        "columns that of their rows, with axis=1 that of columns of three. One " ..
        "vector goes with all of a matrix.",
    example = "cross(vec{1, 0, 0}, vec{0, 1, 0})",
    result = "{0, 0, 1}",
    options = {{"axis", "axis", "2", "1: vectors are columns, 2: rows"}},
}
function products.cross(x, y, options)
    local axis = options and options.axis or 2
    local a, b = rows_of_three("x", x, axis), rows_of_three("y", y, axis)
    if a.rows ~= b.rows and a.rows ~= 1 and b.rows ~= 1 then
        fail("cross", "x has %d vectors, y %d", a.rows, b.rows)
    end
    local parts = {}
    for k = 1, 3 do
        local i, j = k % 3 + 1, (k + 1) % 3 + 1
        parts[k] = a:col(i) % b:col(j) - a:col(j) % b:col(i)
    end
    local out = library.hcat(unpack(parts))
    if x.ndim == 1 and y.ndim == 1 then return out:flatten() end
    return axis == 1 and out.T or out
end

return products
