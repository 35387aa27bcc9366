-- Comparing matrices as a person means it.
local library, methods, help = ...

library.close = function(A, B, tolerance)
    tolerance = tolerance or 1e-5
    if type(A) == "number" and type(B) == "number" then
        return A == B or math.abs(A - B) <= tolerance * math.max(1, math.abs(B))
            or (A ~= A and B ~= B)
    end
    if type(A) == "number" or type(B) == "number" or A.ndim ~= B.ndim or
        A.rows ~= B.rows or A.cols ~= B.cols then
        return false
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
