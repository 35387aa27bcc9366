-- Functions that are known at places alone: their integrals and what lies
-- between. Sources: Fritsch and Carlson, Monotone piecewise cubic
-- interpolation, 1980; Fritsch and Butland, A method for constructing local
-- monotone piecewise cubic interpolants, 1984 (the slopes); de Boor, A practical
-- guide to splines, 1978 (those of splines).
local library = ...
local checks = require "lumat.checks"
local along = require "lumat.along"
local search = require "lumat.data_steps".search
local brief, fail, shape_of = checks.brief, checks.fail, checks.shape_of
local axis_of, like, part, size_of = along.axis, along.like, along.part,
    along.size
local sampled = {}
local type = type

-- --- integrals ----------------------------------------------------------------

-- The trapezium between each two neighbours, times 2 / factor.
local function trapezia(what, y, x, axis)
    local n = size_of(y, axis)
    local pairs_ = part(y, axis, 2, n) + part(y, axis, 1, n - 1)
    if x == nil then return pairs_, 0.5 end
    if type(x) == "number" then return pairs_, x / 2 end
    if x.ndim == 1 and x.rows == n then
        x = along.stretched(x, y, axis)
    elseif x.ndim ~= y.ndim or x.rows ~= y.rows or x.cols ~= y.cols then
        fail(what, "x is %s, y %s: expected a number, %d places or a matrix " ..
            "like y", shape_of(x), shape_of(y), n)
    end
    return pairs_ % library.diff(x, {axis = axis}), 0.5
end

-- (y [, x] [, options]), where x may stand in a table's place.
local function arguments_of(what, y, x, options)
    x, options = along.options(x, options)
    if y.dtype == "bool" then y = y:f32() end
    return y, x, axis_of(what, y, options), options
end

row{
    name = "trapz", method = true,
    takes = "y: matrix [, x: number|matrix] {axis, keepdims}",
    gives = "number or matrix",
    group = "sampled",
    help = "The integral of what is y at the places x, by trapezia: of a vector, " ..
        "of each column (axis 1) or each row (2). x is a vector of places, a " ..
        "matrix like y, or a number, the distance from each to the next (1).",
    example = "trapz(vec{1, 2, 4}, vec{0, 1, 3})",
    result = "7.5",
}
function sampled.trapz(y, x, options)
    local axis
    y, x, axis, options = arguments_of("trapz", y, x, options)
    if y.ndim == 1 and options.keepdims ~= nil then
        fail("trapz", "keepdims is of a matrix: of a vector a number comes")
    end
    local areas, factor = trapezia("trapz", y, x, axis)
    if y.ndim == 1 then return areas:sum() * factor end
    return areas:sum{axis = axis, keepdims = options.keepdims} * factor
end

row{
    name = "cumtrapz", method = true,
    takes = "y: matrix [, x: number|matrix] {axis}",
    gives = "matrix",
    group = "sampled",
    help = "trapz up to each place: as many as there are elements of y, the " ..
        "first 0.",
    example = "cumtrapz(vec{1, 2, 4}, vec{0, 1, 3})",
    result = "{0, 1.5, 7.5}",
}
function sampled.cumtrapz(y, x, options)
    local axis
    y, x, axis = arguments_of("cumtrapz", y, x, options)
    if y.size == 0 then return y:clone() end
    local areas, factor = trapezia("cumtrapz", y, x, axis)
    local first = part(y, axis, 1, 1)
    local zero = y.ndim == 1 and library.zeros(1, like(areas)) or
        library.zeros(first.rows, first.cols, like(areas))
    return along.join(y, axis, zero, library.cumsum(areas * factor, axis))
end

-- --- between places -----------------------------------------------------------

-- x ascending, in f64, and y with it.
local function ascending(x, y)
    if #x < 2 then
        if #x == 1 and x:isnan():any() == true then
            fail("interp1", "x[1] is NaN")
        end
        return x, y
    end
    if library.diff(x):gt(0):all() ~= false then return x, y end
    if x:isnan():any() == true then
        fail("interp1", "x[%d] is NaN", x:isnan():argmax())
    end
    local sorted, order = library.sort(x, {places = true})
    local equal = part(sorted, 1, 2, #x):eq(part(sorted, 1, 1, #x - 1))
    if equal:any() == true then
        local i = equal:argmax()
        fail("interp1", "x[%d] and x[%d] are both %s: which y is there?",
            order[i], order[i + 1], brief(sorted[i]))
    end
    return sorted, along.take(y, 1, order)
end

-- Slopes at the places of a curve that overshoots no y; n x m of n places.
local function end_slope(h0, h1, m0, m1)
    local d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    local turned = library.sign(d):ne(library.sign(m0))
    local steep = library.sign(m0):ne(library.sign(m1)) &
        library.abs(d):gt(3 * library.abs(m0))
    return library.where(turned, 0 * m0, library.where(steep, 3 * m0, d))
end

local function slopes_of(h, m)
    local n = m.rows
    if n == 1 then return library.vcat(m, m) end
    local h0, h1 = part(h, 1, 1, n - 1), part(h, 1, 2, n)
    local m0, m1 = part(m, 1, 1, n - 1), part(m, 1, 2, n)
    local w0, w1 = h0 + 2 * h1, 2 * h0 + h1
    local inner = (w0 + w1) / (w0 / m0 + w1 / m1)
    local is_flat = library.sign(m0):ne(library.sign(m1)) | m0:eq(0)
    inner = library.where(is_flat & ~(m0:isnan() | m1:isnan()), 0, inner)
    return library.vcat(
        end_slope(h(1, 1), h(2, 1), m:row(1), m:row(2)), inner,
        end_slope(h(n, 1), h(n - 1, 1), m:row(n), m:row(n - 1)))
end

-- The system of the slopes of a curve whose second derivative is continuous,
-- too, and the third at the second place and the last but one; each row over the
-- width that it is of. n of n + 1 places, 4 or more.
local function spline_system(h, m)
    local n = m.rows
    local h0, h1 = part(h, 1, 1, n - 1), part(h, 1, 2, n)
    local m0, m1 = part(m, 1, 1, n - 1), part(m, 1, 2, n)
    local function end_row(near, far, m_near, m_far)
        local d = near + far
        return ((near + 2 * d) * far * m_near + near * near * m_far) / (d * d)
    end
    local b = library.vcat(end_row(h(1, 1), h(2, 1), m:row(1), m:row(2)),
        3 * (h1 % m0 + h0 % m1) / (h0 + h1),
        end_row(h(n, 1), h(n - 1, 1), m:row(n), m:row(n - 1)))
    local behind, ahead = (h1 / (h0 + h1)):flatten(), (h0 / (h0 + h1)):flatten()
    local one, first = library.ones(1, like(h)), library.range(1, n, 1, like(h))
    local S = library.sparse(
        first:hcat(first + 1, library.range(1, n + 1, 1, like(h))),
        (first + 1):hcat(first, library.range(1, n + 1, 1, like(h))),
        library.hcat(one, ahead, behind, one, behind[{{1, 1}}],
            library.full(n - 1, 2, like(h)), ahead[{{n - 1, n - 1}}]),
        n + 1, n + 1)
    return S, b
end

local function spline_slopes(h, m)
    local n = m.rows
    if n == 1 then return library.vcat(m, m) end
    if n == 2 then -- a parabola
        local c = (m:row(2) - m:row(1)) / (h(1, 1) + h(2, 1))
        return library.vcat(m:row(1) - h(1, 1) * c, m:row(1) + h(1, 1) * c,
            m:row(2) + h(2, 1) * c)
    end
    local S, b = spline_system(h:to "cpu", m:to "cpu")
    return library.solve(S, b):to(m.device)
end

-- How far each place is from the next, and the slopes between them.
local function secants(x, Y)
    local h = library.diff(x):reshape(#x - 1, 1)
    return h, library.diff(Y) / h
end

-- Coefficients of (xi - x[i])^1, 2, 3 from each place to the next, n of them;
-- behind the last one the curve goes on.
local function linear(x, Y)
    local _, m = secants(x, Y)
    return {library.vcat(m, m:row(#x - 1))}
end

local function cubic(x, Y, slopes)
    local n, h, m = #x, secants(x, Y)
    local d = slopes(h, m)
    local d0, d1 = part(d, 1, 1, n - 1), part(d, 1, 2, n)
    local c2, c3 = (3 * m - 2 * d0 - d1) / h, (d0 + d1 - 2 * m) / (h % h)
    local last = c2:row(n - 1) + 3 * h(n - 1, 1) * c3:row(n - 1)
    return {d, library.vcat(c2, last), library.vcat(c3, c3:row(n - 1))}
end

local curves = {
    linear = linear,
    cubic = function(x, Y) return cubic(x, Y, slopes_of) end,
    spline = function(x, Y) return cubic(x, Y, spline_slopes) end,
}

-- Where the next step of a curve of steps begins.
local function steps_of(kind, x)
    if kind ~= "nearest" then return x end
    return (part(x, 1, 1, #x - 1) + part(x, 1, 2, #x)) / 2
end

-- The places' own numbers for xi, 1 … n; those outside count as the last.
local function stepwise(kind, x, Y, xi)
    local n = #x
    local at = search(steps_of(kind, x), xi, kind ~= "next")
    if kind == "previous" then at = at - 1 end
    return along.take(Y, 1, library.clip(at, 1, n))
end

local function smooth(kind, x, Y, xi)
    local at = library.clip(search(x, xi, true) - 1, 1, #x)
    local base = along.take(Y, 1, at)
    if #x == 1 then return base end
    local s = (xi - x[at]):reshape(#xi, 1)
    local coefficients = curves[kind](x, Y)
    local sum = along.take(coefficients[#coefficients], 1, at)
    for k = #coefficients - 1, 1, -1 do
        sum = sum % s + along.take(coefficients[k], 1, at)
    end
    return library.where(s:eq(0), base, base + sum % s)
end

-- Before the first place there is no previous one, behind the last no next one.
local function is_beyond(kind, x, xi)
    if kind == "previous" then return xi:lt(x[1]) end
    if kind == "next" then return xi:gt(x[#x]) end
    return #x == 1 and kind ~= "nearest" and xi:ne(x[1]) or nil
end

local function between(x, Y, xi, kind, outside)
    local first, last = x[1], x[#x]
    local at = outside == "nearest" and library.clip(xi, first, last) or xi
    local values = (curves[kind] and smooth or stepwise)(kind, x, Y, at)
    local other, value
    if outside == "extend" then
        other, value = is_beyond(kind, x, xi), 0 / 0
    elseif outside ~= "nearest" then
        other = xi:lt(first) | xi:gt(last)
        value = outside == "nan" and 0 / 0 or outside
    end
    local function put(mask, x)
        values = library.where(mask:reshape(#xi, 1), x, values)
    end
    if other then put(other, value) end
    put(xi:isnan(), 0 / 0)
    return values
end

local function check(x, y, xi, kind)
    if y.rows ~= #x then
        fail("interp1", "x has %s, y is %s", checks.plural(#x, "place"),
            shape_of(y))
    end
    if #x == 0 then fail("interp1", "x and y are empty") end
    if y.ndim == 2 and xi.ndim == 2 then
        fail("interp1", "y is a matrix (%s), so xi is a vector, not %s",
            shape_of(y), shape_of(xi))
    end
    for name, A in next, {x = x, y = y, xi = xi} do
        if checks.is_complex(A) then
            fail("interp1", "%s is complex: interpolate real(%s) and imag(%s)",
                name, name, name)
        end
    end
end

row{
    name = "interp1", method = true,
    takes = "x: vector, y: matrix, xi: matrix|number {kind, outside}",
    gives = "matrix",
    group = "sampled",
    help = "y at the places xi, of which y[i] is known at x[i], in any order: " ..
        "numbers of the shape of xi; of a matrix y a row for each, its columns " ..
        "being one function each. y is given back exactly at x; NaN in y " ..
        "reaches up to its neighbours, of a spline everywhere; NaN in xi gives NaN.",
    example = "interp1(vec{1, 2, 4}, vec{10, 20, 0}, vec{1.5, 3, 5})",
    result = "{15, 10, 0/0}",
    options = {{"kind", "\"linear\"|\"nearest\"|\"previous\"|\"next\"|\"cubic\"|" ..
        "\"spline\"", "\"linear\"", "\"nearest\": y of the nearest x, of two the larger; " ..
            "\"previous\", \"next\": of the x before or behind; \"cubic\": a " ..
            "smooth curve that overshoots no y (pchip); \"spline\": the " ..
            "smoothest one, which may, by the not-a-knot rule (SciPy's cubic)"},
        {"outside", "\"nan\"|\"nearest\"|\"extend\"|number", "\"nan\"",
            "what is before the first x and behind the last: NaN, the y there, " ..
                "the curve carried on, or this number"}},
}
function sampled.interp1(x, y, xi, options)
    options = options or {}
    local is_number = type(xi) == "number"
    if is_number then xi = library.vec({xi}, like(x, "f64")) end
    check(x, y, xi)
    local is_wide = x.dtype == "f64" or y.dtype == "f64" or
        not is_number and xi.dtype == "f64"
    local Y
    x, Y = ascending(x:f64(), y:f64())
    if Y.ndim == 1 then Y = Y:reshape(#x, 1) end
    local out = between(x, Y, xi:f64():flatten(), options.kind or "linear",
        options.outside or "nan")
    if not is_wide then out = out:f32() end
    if y.ndim == 2 then return is_number and out[1] or out end
    if is_number then return out(1, 1) end
    if xi.ndim == 1 then return out:flatten() end
    return out:reshape(xi.rows, xi.cols)
end

return sampled
