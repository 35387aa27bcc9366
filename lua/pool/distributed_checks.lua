-- Products of distributed matrices checked, by Freivalds' way: C x against
-- A (B x) in double precision, for a vector x of random signs.
local library = ...
local checks = require "lumat.checks"
local parts = require "lumat.distributed_parts"
local products = require "lumat.products"
local reductions = require "lumat.distributed_reductions"
local fail, methods, state_of = checks.fail, parts.methods, parts.state_of
local pairs, require = pairs, require
local format, sqrt = string.format, math.sqrt

-- Row i of (C - AB) x is at most SIGMAS gamma times the sum over k of |A_ik|
-- times the 2-norm of row k of B, with a probability of 1 - 5e-18 (see
-- gpu/operations/freivalds.c).
local SIGMAS = 9

local function times(...) return reductions.weighted_sums("verify", ...) end

local function operand(name, X)
    local s = state_of("verify", X)
    parts.check_alive("verify", s)
    local m, n = parts.shape(s)
    return m, n
end

-- What each row may be off: gamma, and what the check itself rounds.
local function limits(A, B, gamma, terms)
    local one = library.ones(B.cols, 1, {dtype = "f64", device = "cpu"})
    local norms = times(B, "squares", one):sqrt()
    return times(A, "abs", norms) * (SIGMAS * gamma) +
        times(A, "abs", times(B, "abs", one)) * (4 * terms * 2.0 ^ -53)
end

-- How far each row of a product may be off, relative to that: where a kernel
-- promises gamma for real numbers, or sums in the type of A have theirs.
local function gamma_of(A, k, gamma)
    gamma = gamma or products.gamma(checks.is_wide(A) and "f64" or "f32", k)
    return gamma * (checks.is_complex(A) and 2 * sqrt(2) or 1)
end

-- What any result of A * B is judged by: for a vector of random signs.
local function reference(A, B)
    local x = library.randint(0, 1, B.cols, 1,
        {dtype = "f64", device = "cpu"}) * 2 - 1
    if checks.is_complex(A) or checks.is_complex(B) then x = x:c128() end
    return {A = A, B = B, x = x, exact = times(A, "same", times(B, "same", x))}
end

-- Is C that, as far as gamma promises? The ratio is to the bound of a row.
local function judge(C, known, gamma)
    local A, B, exact = known.A, known.B, known.exact
    local off = (times(C, "same", known.x) - exact):abs()
    local limit = limits(A, B, gamma, A.cols + B.cols)
    local ratio = A.rows == 0 and 0 or
        library.where(off:eq(0), 0, off / limit):max()
    local result = {ratio = ratio, accept = ratio <= 1,
        error = off:norm() / math.max(exact:norm(), 2.0 ^ -1022)}
    return checks.shown(result, result.accept and
        format("Accept: relative error %.2g, at most %.2g of the bound",
            result.error, ratio) or
        format("FAILS: %.3g times the bound, relative error %.2g", ratio,
            result.error))
end

-- verify(C, A, B [, {bound=}]): as of matrices.
function methods.verify(C, A, B, options)
    local m, k = operand("A", A)
    local k2, n = operand("B", B)
    local rows, cols = operand("C", C)
    local bound = parts.option("verify", options, "bound")
    if k ~= k2 or rows ~= m or cols ~= n then
        fail("verify", "C is %dx%d, A %dx%d and B %dx%d", rows, cols, m, k, k2, n)
    end
    return judge(C, reference(A, B), bound or gamma_of(C, k))
end

return {gamma_of = gamma_of, reference = reference, judge = judge}
