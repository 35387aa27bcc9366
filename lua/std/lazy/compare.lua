-- Comparing matrices as a person means it.
local library = ...
local compare = {}
local checks = require "lumat.checks"
local error, type = error, type
local abs, larger, huge = math.abs, math.max, math.huge

-- Numbers: an infinity is near itself alone, NaN near NaN.
local function is_near(a, b, tolerance)
    if a == b or (a ~= a and b ~= b) then return true end
    return abs(a) < huge and abs(b) < huge and
        abs(a / 2 - b / 2) <= tolerance * (larger(1, abs(b)) / 2)
end

local function is_number(x)
    return type(x) == "number" or checks.kind(x) == "complex number"
end

row{
    name = "close", method = true,
    takes = "A: matrix|scalar, B: matrix|scalar elements A [, tolerance: " ..
        "number]",
    gives = "boolean",
    group = "comparing",
    help = "Have A and B one shape, and do their elements differ by at most " ..
        "tolerance (1e-5), relative to those above 1? An infinity is close " ..
        "to the same infinity alone; NaN equals NaN here.",
    example = "close(vec{1, 2}, vec{1, 2.000001})",
    result = "true",
}
function compare.close(A, B, tolerance)
    if tolerance and not (tolerance >= 0) then
        checks.fail("close", "the tolerance is a number from 0 on, not %s",
            checks.brief(tolerance))
    end
    tolerance = tolerance or 1e-5
    if is_number(A) and is_number(B) then
        return is_near(library.real(A), library.real(B), tolerance) and
            is_near(library.imag(A), library.imag(B), tolerance)
    end
    if is_number(A) or is_number(B) or A.ndim ~= B.ndim or
        A.rows ~= B.rows or A.cols ~= B.cols then
        return false
    end
    if A.device ~= B.device then
        checks.fail("close", "A is on %s, B on %s; use A:to(\"%s\")", A.device,
            B.device, B.device)
    end
    A, B = checks.as_wide(A), checks.as_wide(B)
    local scale = library.maximum(B:abs(), 1) / 2
    local near = (A / 2 - B / 2):abs():le(tolerance * scale) & A:isfinite() &
        B:isfinite() | A:eq(B) | (A:isnan() & B:isnan())
    return near:all()
end

return compare
