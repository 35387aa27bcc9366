-- Comparing matrices as a person means it.
local library, methods, help = ...
local checks = require "lumat.checks"
local error, getmetatable, tostring, type = error, getmetatable, tostring, type
local abs, larger, format, huge = math.abs, math.max, string.format, math.huge

-- Numbers: an infinity is near itself alone, NaN near NaN.
local function is_near(a, b, tolerance)
    if a == b or (a ~= a and b ~= b) then return true end
    return abs(a) < huge and abs(b) < huge and
        abs(a / 2 - b / 2) <= tolerance * (larger(1, abs(b)) / 2)
end

-- Argument `name` of close as a number or a matrix that is there; the place
-- of an error is close's caller.
local function check_operand(name, x)
    if type(x) == "number" then return end
    if type(x) ~= "userdata" or getmetatable(x) ~= "matrix" then
        error(format("close: %s is a %s, expected a matrix or a number", name,
            checks.kind(x)), 3)
    end
    if x.device == "none" then
        error(format("close: %s has been freed", name), 3)
    end
end

library.close = function(A, B, tolerance)
    check_operand("A", A)
    check_operand("B", B)
    if tolerance ~= nil and not (type(tolerance) == "number" and
        tolerance >= 0) then
        error("close: the tolerance is a number from 0 on, not " ..
            (type(tolerance) == "number" and tostring(tolerance) or
                "a " .. checks.kind(tolerance)), 2)
    end
    tolerance = tolerance or 1e-5
    if type(A) == "number" and type(B) == "number" then
        return is_near(A, B, tolerance)
    end
    if type(A) == "number" or type(B) == "number" or A.ndim ~= B.ndim or
        A.rows ~= B.rows or A.cols ~= B.cols then
        return false
    end
    if A.device ~= B.device then
        error(format("close: A is on %s, B on %s; use A:to(\"%s\")", A.device,
            B.device, B.device), 2)
    end
    A, B = A:f64(), B:f64()
    local scale = library.maximum(B:abs(), 1) / 2
    local near = (A / 2 - B / 2):abs():le(tolerance * scale) & A:isfinite() &
        B:isfinite() | A:eq(B) | (A:isnan() & B:isnan())
    return near:all()
end
methods.close = library.close
help.close = {
    usage = "close(A, B [, tolerance])",
    help = "Have A and B one shape, and do their elements differ by at most " ..
        "tolerance (1e-5), relative to those above 1? An infinity is close to " ..
        "the same infinity alone; NaN equals NaN here.",
    example = "close(vec{1, 2}, vec{1, 2.000001})", result = "true"}
