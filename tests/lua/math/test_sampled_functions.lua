-- Integrals of sampled functions and what lies between their places, against
-- definitions in plain Lua.
local lu_ = require "luaunit"
local t = require "common"
local nan, inf = t.nan, t.inf

local function near(A, want, tolerance, what)
    local list = type(A) == "number" and {A} or A:flatten():totable()
    for i, x in ipairs(list) do
        if not (math.abs(x - want[i]) <= tolerance * math.max(1, math.abs(want[i])))
            and not t.same(x, want[i]) then
            lu_.fail(("%s: element %d is %.17g, expected %.17g"):format(
                what or "result", i, x, want[i]))
        end
    end
    lu_.assertEquals(#list, #want)
end

TestTrapz = {}

function TestTrapz:test_vectors()
    lu_.assertEquals(trapz(vec{1, 2, 4}), 4.5)
    lu_.assertEquals(trapz(vec{1, 2, 4}, 2), 9)
    lu_.assertEquals(trapz(vec{1, 2, 4}, vec{0, 1, 3}), 7.5)
    lu_.assertEquals(trapz(vec{1, 2, 4}, vec{3, 1, 0}), -6)
    lu_.assertEquals(trapz(vec{7}), 0)
    lu_.assertEquals(trapz(zeros(0)), 0)
    lu_.assertEquals(trapz(vec{true, true, false}), 1.5)
    lu_.assertEquals(trapz(complex(vec{1, 2}, vec{0, 4})), 1.5 + 2 * im)
    t.equals(cumtrapz(vec{1, 2, 4}, vec{0, 1, 3}), {0, 1.5, 7.5})
    t.equals(cumtrapz(vec{1, nan, 4, 5}), {0, nan, nan, nan})
    t.equals(cumtrapz(vec{7}), {0})
    lu_.assertEquals(cumtrapz(zeros(0)).shape, {0})
    lu_.assertEquals(cumtrapz(zeros(0, 2)).shape, {0, 2})
    -- Sums of f32 are f64's: a running sum in f32 would stop at 2^24.
    local n = 1 << 25
    lu_.assertEquals(trapz(ones(n + 1)), n)
end

function TestTrapz:test_axes()
    local Y = mat{{1, 2, 4}, {3, 5, 8}}
    for _, A in ipairs{Y, Y.T:clone().T} do
        t.equals(trapz(A), {{2, 3.5, 6}})
        t.equals(trapz(A, {axis = 2}), {{4.5}, {10.5}})
        t.equals(trapz(A, vec{0, 1, 3}, {axis = 2}), {{7.5}, {17}})
        t.equals(trapz(A, vec{0, 2}), {{4, 7, 12}})
        t.equals(trapz(A, mat{{0, 0, 0}, {1, 2, 3}}), {{2, 7, 18}})
        t.equals(cumtrapz(A, 2, {axis = 2}), {{0, 3, 9}, {0, 8, 21}})
        t.equals(cumtrapz(A), {{0, 0, 0}, {2, 3.5, 6}})
    end
    t.equals(trapz(zeros(0, 2)), {{0, 0}})
    t.equals(trapz(zeros(1, 2)), {{0, 0}})
    t.equals(trapz(zeros(2, 0), {axis = 2}), {{0}, {0}})
    t.raises(function() trapz(Y, vec{1, 2, 3}) end,
        "trapz: x is vector 3, y 2x3: expected a number, 2 places or a matrix")
    t.raises(function() cumtrapz(Y, mat{{1}}) end, "x is 1x1, y 2x3")
    t.raises(function() trapz(vec{1}, 1, {axis = 2}) end, "a vector has no axis 2")
end

TestInterp1 = {}

local x, y = vec{1, 2, 4}, vec{10, 20, 0}
local at = vec{0, 1, 1.5, 2, 3, 4, 5, nan}
local function check(kind, outside, want, tolerance)
    near(interp1(x, y, at, {kind = kind, outside = outside}), want,
        tolerance or 0, kind)
end

function TestInterp1:test_kinds()
    t.equals(interp1(x, y, at), {nan, 10, 15, 20, 10, 0, nan, nan})
    check("linear", "nearest", {10, 10, 15, 20, 10, 0, 0, nan})
    check("linear", "extend", {0, 10, 15, 20, 10, 0, -10, nan})
    check("linear", 7, {7, 10, 15, 20, 10, 0, 7, nan})
    check("nearest", "nan", {nan, 10, 20, 20, 0, 0, nan, nan})
    check("nearest", "extend", {10, 10, 20, 20, 0, 0, 0, nan})
    check("previous", "nan", {nan, 10, 10, 20, 20, 0, nan, nan})
    check("previous", "extend", {nan, 10, 10, 20, 20, 0, 0, nan})
    check("previous", "nearest", {10, 10, 10, 20, 20, 0, 0, nan})
    check("next", "nan", {nan, 10, 20, 20, 0, 0, nan, nan})
    check("next", "extend", {10, 10, 20, 20, 0, 0, nan, nan})
    -- SciPy's PchipInterpolator
    check("cubic", "extend", {-20 / 3, 10, 205 / 12, 20, 95 / 6, 0, -32.5, nan},
        1e-6)
end

-- A cubic that rises everywhere is met up to the slopes' error; the curve never
-- leaves what its neighbours span.
function TestInterp1:test_cubic()
    local dtype = {dtype = "f64"}
    local places = linspace(0, 3, 31, dtype)
    local fine = linspace(0, 3, 301, dtype)
    local off = abs(interp1(places, exp(places), fine, {kind = "cubic"}) -
        exp(fine)):max()
    lu_.assertTrue(off > 0 and off < 3e-3, off)
    local steps = floor(rand(40, {seed = 1, dtype = "f64"}) * 3)
    local many = linspace(1, 40, 2000, dtype)
    local k = range(1, 40, 1, dtype)
    local smooth = interp1(k, steps, many, {kind = "cubic"})
    local before = interp1(k, steps, many, {kind = "previous"})
    local behind = interp1(k, steps, many, {kind = "next"})
    lu_.assertTrue((smooth:ge(minimum(before, behind) - 1e-12)):all())
    lu_.assertTrue((smooth:le(maximum(before, behind) + 1e-12)):all())
    -- Two places: a line.
    t.equals(interp1(vec{0, 2}, vec{1, 5}, vec{1, 3}, {kind = "cubic",
        outside = "extend"}), {3, 7})
end

-- A cubic is met everywhere, and outside; of other functions it is SciPy's.
function TestInterp1:test_spline()
    local there = {dtype = "f64", device = t.device}
    local function spline(x, y, xi, outside)
        return interp1(x, y, xi, {kind = "spline", outside = outside})
    end
    local function near(X, expected, tolerance)
        if type(expected) == "table" then
            expected = (type(expected[1]) == "table" and mat or vec)(expected, there)
        end
        lu_.assertTrue(abs(X - expected):max() <= tolerance)
    end
    local places = vec({4, 0.5, 1, 7, 3.5, -2}, there)
    local function f(x) return x:pow(3) - 2 * x:square() + 5 end
    local fine = linspace(-4, 9, 53, there)
    near(spline(places, f(places), fine, "extend"), f(fine), 1e-11)
    near(spline(vec({0, 1, 3, 4, 7}, there), vec({1, 0, 2, -1, 3}, there),
        vec({0.5, 2, 3.5, 5.5}, there)),
        {-0.046875, 1.55, 0.834375, -5.328125}, 1e-13)
    local few = vec({0, 1, 4}, there)
    near(spline(few, few:square(), vec({-1, 0.5, 3, 6}, there), "extend"),
        {1, 0.25, 9, 36}, 1e-13)
    near(spline(vec{0, 2}, vec{1, 5}, vec{1, 3}, "extend"), {3, 7}, 1e-13)
    local Y = spline(places, mat({{4, 8}, {0.5, 1}, {1, 2}, {7, 14}, {3.5, 7},
        {-2, -4}}, there), vec({0, 5}, there))
    near(Y, {{0, 0}, {5, 10}}, 1e-12)
    t.equals(spline(vec{1, 2, 3, 4}, vec{1, 2, nan, 4}, vec{1, 1.5}), {1, nan})
end

function TestInterp1:test_shapes()
    local Y = mat{{1, 10}, {3, 30}, {2, 20}}
    t.equals(interp1(vec{1, 3, 2}, Y, vec{1.5, 2.5}), {{1.5, 15}, {2.5, 25}})
    t.equals(interp1(vec{3, 2, 1}, vec{3, 2, 1}, mat{{1.5, 2}, {3, 4}}),
        {{1.5, 2}, {3, nan}})
    lu_.assertEquals(interp1(x, y, 3), 10)
    t.equals(interp1(vec{1, 3, 2}, Y, 1.5), {1.5, 15})
    lu_.assertEquals(interp1(x, y, zeros(0)).shape, {0})
    lu_.assertEquals(interp1(x, Y, zeros(0)).shape, {0, 2})
    lu_.assertEquals(interp1(x, y, at).dtype, "f32")
    lu_.assertEquals(interp1(x, y:f64(), at).dtype, "f64")
    lu_.assertEquals(interp1(x, y, at:f64()).dtype, "f64")
    -- A single place
    t.equals(interp1(vec{2}, vec{5}, vec{1, 2, 3}), {nan, 5, nan})
    t.equals(interp1(vec{2}, vec{5}, vec{1, 2, 3}, {outside = "nearest"}),
        {5, 5, 5})
    t.equals(interp1(vec{2}, vec{5}, vec{1, 2, 3}, {outside = "extend"}),
        {nan, 5, nan})
    t.equals(interp1(vec{2}, vec{5}, vec{1, 2, 3}, {kind = "nearest",
        outside = "extend"}), {5, 5, 5})
end

-- At a place it is that y, whatever lies beside it.
function TestInterp1:test_exact()
    local places = cumsum(rand(100, {seed = 1, dtype = "f64"}) + 0.01)
    local values = randn(100, {seed = 2, dtype = "f64"})
    for _, kind in ipairs{"linear", "nearest", "previous", "next", "cubic",
        "spline"} do
        lu_.assertTrue(interp1(places, values, places, {kind = kind}) == values)
        t.equals(interp1(vec{1, 2, 3, 4}, vec{1, nan, 3, inf}, vec{1, 2, 3, 4},
            {kind = kind}), {1, nan, 3, inf}, kind)
    end
    t.equals(interp1(vec{1, 2, 3, 4}, vec{1, nan, 3, 5}, vec{1.5, 2.5, 3.5}),
        {nan, nan, 4})
end

function TestInterp1:test_errors()
    t.raises(function() interp1(x, vec{1, 2}, at) end,
        "interp1: x has 3 places, y is vector 2")
    t.raises(function() interp1(vec{1, 3, 1}, y, at) end,
        "x[1] and x[3] are both 1", "which y is there?")
    t.raises(function() interp1(vec{1, nan, 3}, y, at) end, "x[2] is NaN")
    t.raises(function() interp1(vec{nan}, vec{1}, at) end, "x[1] is NaN")
    t.raises(function() interp1(zeros(0), zeros(0), at) end, "x and y are empty")
    t.raises(function() interp1(x, mat{{1}, {2}, {3}}, mat{{1}}) end,
        "y is a matrix (3x1), so xi is a vector, not 1x1")
    t.raises(function() interp1(x, complex(y, 1), at) end, "y is complex",
        "real(y)")
    t.raises(function() interp1(x, y, at, {kind = "akima"}) end, "akima")
    t.raises(function() interp1(x, y, at, {outside = "clamp"}) end, "clamp")
end

os.exit(lu_.LuaUnit.run("-o", "tap"))
