-- Comparing matrices as a person means it.
local library, methods, help = ...
local error, getmetatable, tostring, type = error, getmetatable, tostring, type
local abs, larger, format = math.abs, math.max, string.format

-- Argument `name` of close as a number or a matrix that is there; the place
-- of an error is close's caller.
local function check_operand(name, x)
    if type(x) == "number" then return end
    if type(x) ~= "userdata" or getmetatable(x) ~= "matrix" then
        error(format("close: %s is a %s, expected a matrix or a number", name,
            type(x)), 3)
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
                "a " .. type(tolerance)), 2)
    end
    tolerance = tolerance or 1e-5
    if type(A) == "number" and type(B) == "number" then
        return A == B or abs(A - B) <= tolerance * larger(1, abs(B))
            or (A ~= A and B ~= B)
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
    local scale = library.maximum(B:abs(), 1)
    local near = (A - B):abs():le(tolerance * scale) | A:eq(B) |
        (A:isnan() & B:isnan())
    return near:all()
end
methods.close = library.close
help.close = {
    usage = "close(A, B [, tolerance])",
    help = "Have A and B one shape, and do their elements differ by at most " ..
        "tolerance (1e-5), relative to those above 1? NaN equals NaN here.",
    example = "close(vec{1, 2}, vec{1, 2.000001})", result = "true"}
