-- What functions that work along an axis share: its size, parts of a matrix
-- along it, and putting parts together. Of a vector the axis is 1.
local library = ...
local checks = require "lumat.checks"
local fail = checks.fail
local along = {}
local type = type

-- The axis of (A, …, {axis=}), 1 where there is none.
function along.axis(what, A, options)
    local axis = options and options.axis or 1
    if axis == 2 and A.ndim == 1 then fail(what, "a vector has no axis 2") end
    return axis
end

function along.size(A, axis)
    return axis == 1 and A.rows or A.cols
end

-- A view of the elements first … last, none where last is first - 1.
function along.part(A, axis, first, last)
    if last < first then first, last = 1, 0 end
    if A.ndim == 1 then return A[{{first, last}}] end
    if axis == 1 then return A[{{first, last}, {}}] end
    return A[{{}, {first, last}}]
end

-- Writes B, or a number, there.
function along.put(A, axis, first, last, B)
    if last < first then return end
    if A.ndim == 1 then
        A[{{first, last}}] = B
    elseif axis == 1 then
        A[{{first, last}, {}}] = B
    else
        A[{{}, {first, last}}] = B
    end
end

-- Views behind each other, as one matrix of its own.
function along.join(A, axis, ...)
    if A.ndim == 1 or axis == 2 then return library.hcat(...) end
    return library.vcat(...)
end

-- A vector of the axis' length, in the shape that goes with A's elements.
function along.stretched(v, A, axis)
    if A.ndim == 1 then return v end
    return axis == 1 and v:reshape(v.rows, 1) or v:row()
end

-- What stands at `places` (a vector, or one mask) along the axis, as a copy.
function along.take(A, axis, places)
    if A.ndim == 1 then return A[places] end
    if axis == 1 then return A[{places, {}}] end
    return A[{{}, places}]
end

-- (…, n, options) without n: the table stands in its place.
function along.options(n, options)
    if type(n) == "table" then return nil, n end
    return n, options or {}
end

-- What new matrices that go with A are made with.
function along.like(A, dtype)
    return {dtype = dtype or A.dtype, device = A.device}
end

return along
