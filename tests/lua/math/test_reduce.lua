-- Reductions, whole and along either axis, against plain loops in Lua; each
-- one of ops.def is among them.
local lu = require "luaunit"
local t = require "common"
local equals, raises, near, inf, nan = t.equals, t.raises, t.near, t.inf, t.nan

-- Each over a list of numbers.
local plain = {}

function plain.sum(list)
    local s = 0
    for _, x in ipairs(list) do s = s + x end
    return s
end

function plain.prod(list)
    local p = 1
    for _, x in ipairs(list) do p = p * x end
    return p
end

local function extreme(list, better)
    local place = 1
    for i, x in ipairs(list) do
        local best = list[place]
        if best == best and (x ~= x or better(x, best)) then place = i end
    end
    return place
end

local function smaller(x, y) return x < y end
local function larger(x, y) return x > y end

function plain.argmin(list) return extreme(list, smaller) end
function plain.argmax(list) return extreme(list, larger) end
function plain.min(list) return list[plain.argmin(list)] end
function plain.max(list) return list[plain.argmax(list)] end
function plain.mean(list) return plain.sum(list) / #list end

function plain.any(list)
    for _, x in ipairs(list) do if x ~= 0 then return true end end
    return false
end

function plain.all(list)
    for _, x in ipairs(list) do if x == 0 then return false end end
    return true
end

function plain.norm(list)
    local s = 0
    for _, x in ipairs(list) do s = s + x * x end
    return math.sqrt(s)
end

function plain.var(list)
    local mean, s = plain.mean(list), 0
    for _, x in ipairs(list) do s = s + (x - mean) ^ 2 end
    return s / (#list - 1)
end

function plain.std(list) return math.sqrt(plain.var(list)) end

-- A reduction that is composed of others is the same of a line by itself as of
-- that line within a matrix, which is all that one without a plain definition
-- is held to beside the example of its row.
local function by_itself(name)
    return function(list)
        return (_G[name](vec(list, {dtype = "f64"})))
    end
end

-- What each is compared with; the names of those that are composed.
local defined, composed = {}, {}
for line in io.lines(t.root .. "gpu/ops.def") do
    local name, word = line:match("^REDUCTION%((%w+),%s*(%u+),")
    if name then
        if word ~= "PRIMITIVE" then composed[#composed + 1] = name end
        defined[name] = plain[name] or word ~= "PRIMITIVE" and by_itself(name)
        assert(defined[name], name .. " is not composed: say what it is above")
    end
end

local function flat(rows)
    local list = {}
    for _, row in ipairs(rows) do table.move(row, 1, #row, #list + 1, list) end
    return list
end

local function transposed(rows)
    local columns = {}
    for j = 1, #rows[1] do
        columns[j] = {}
        for i = 1, #rows do columns[j][i] = rows[i][j] end
    end
    return columns
end

local function each(rows, f)
    local results = {}
    for i, row in ipairs(rows) do results[i] = f(row) end
    return results
end

local exact = {min = true, max = true, argmin = true, argmax = true,
    any = true, all = true}

local function agree(got, expected, name, tolerance, what)
    what = name .. " " .. what
    if type(expected) == "boolean" then
        lu.assertEquals(got, expected, what)
    elseif exact[name] then
        lu.assertIsTrue(t.same(got, expected), what)
    else
        near(got, expected, tolerance, what)
    end
end

local function column(list)
    return each(list, function(x) return {x} end)
end

-- All of A's reductions by name are those of its elements, as `wanted` has
-- them.
local function check(name, A, what, wanted)
    local rows, f = A:totable(), _G[name]
    local function along_axis(i) return f(A, name == "norm" and {axis = i} or i) end
    local tolerance = A.dtype == "f32" and 3e-7 or 1e-12
    if name ~= "argmin" and name ~= "argmax" then
        agree(f(A), wanted(flat(rows)), name, 1e-12, what)
    else
        local place = wanted(flat(rows)) - 1
        lu.assertEquals({f(A)}, {place // A.cols + 1, place % A.cols + 1},
            name .. " " .. what)
    end
    local down, along = along_axis(1), along_axis(2)
    lu.assertEquals({down.shape, along.shape}, {{1, A.cols}, {A.rows, 1}})
    equals(f(A, {axis = 1}), down:totable())
    equals(f(A, {axis = 2}), along:totable())
    for j, x in ipairs(each(transposed(rows), wanted)) do
        agree(down(1, j), x, name, tolerance, what .. " down " .. j)
    end
    for i, x in ipairs(each(rows, wanted)) do
        agree(along(i, 1), x, name, tolerance, what .. " along " .. i)
    end
end

-- Values of like sign, so that no sum loses its digits; 0 and ties among them.
local function sample(m, n, dtype, name)
    if name == "prod" then
        return rand(m, n, {seed = 2, low = 0.9, high = 1.1, dtype = dtype})
    end
    return randint(0, 20, m, n, {seed = m * n, dtype = dtype}) / 4
end

TestEvery = {}

local function check_shapes(name, wanted)
    for _, dtype in ipairs{"f32", "f64"} do
        for _, shape in ipairs{{2, 1}, {2, 2}, {3, 5}, {31, 33}, {64, 65},
            {127, 3}, {5, 127}} do
            local A = sample(shape[1], shape[2], dtype, name)
            check(name, A, dtype .. " " .. shape[1] .. "x" .. shape[2], wanted)
        end
        local A = sample(33, 65, dtype, name)
        check(name, A.T, dtype .. " transposed", wanted)
        check(name, A["::2, ::3"], dtype .. " strided", wanted)
        check(name, A["::-1, end:2:-2"], dtype .. " backwards", wanted)
        check(name, A["3:30, 5:40"], dtype .. " block", wanted)
    end
end

for name, wanted in pairs(defined) do
    TestEvery["test_" .. name] = function() check_shapes(name, wanted) end
end

function TestEvery:test_composed_ones_of_a_line_by_itself()
    lu.assertIsTrue(#composed >= 6)
    for _, name in ipairs(composed) do check_shapes(name, by_itself(name)) end
end

function TestEvery:test_vectors()
    for name, f in pairs(defined) do
        for _, n in ipairs{2, 3, 31, 64, 127, 1000} do
            local v = sample(n, 3, "f64", name)[":,2"]
            agree(_G[name](v), f(v:totable()), name, 1e-12, "of vector " .. n)
            agree(v[name](v), f(v:totable()), name, 1e-12, "method")
        end
        if name ~= "argmin" and name ~= "argmax" then
            local v = vec{1, 0, 2}
            agree(_G[name](v, {axis = 1})[1], f{1, 0, 2}, name, 3e-7, "axis 1")
        end
    end
end

function TestEvery:test_masks_and_numbers()
    local m = mat{{true, false, true}, {true, false, false}}
    lu.assertEquals(sum(m), 3)
    equals(sum(m, 1), {{2, 0, 1}})
    equals(any(m, 1), {{true, false, true}})
    equals(all(m, 1), {{true, false, false}})
    lu.assertEquals(mean(m), 0.5)
    lu.assertEquals(max(m, 1).dtype, "f32")
    lu.assertEquals({sum(3), max(4), norm(-2), any(0), all(1)},
        {3, 4, 2, false, true})
    lu.assertEquals(any(m, 1).dtype, "bool")
    lu.assertEquals(argmax(m:f32(), 1).dtype, "f64")
end

-- --- numbers ----------------------------------------------------------------

TestNumbers = {}

function TestNumbers:test_the_largest_and_smallest_of_any_count()
    lu.assertEquals({max(3, 5), min(3, 1), max(2, 9, 4, 9), min(7)}, {5, 1, 9, 7})
    lu.assertEquals(math.type(max(3, 5)), "integer")
    lu.assertEquals(math.type(min(3, 1.5, 2)), "float")
    lu.assertEquals(max(1 << 53, (1 << 53) + 1), (1 << 53) + 1)
    lu.assertEquals({max(-inf, 2), min(inf, 2.5)}, {2, 2.5})
    lu.assertIsNaN(max(1, nan, 3))
    lu.assertIsNaN(min(nan, 1))
    raises(function() max(3, "x") end, 'max: y is "x", expected a number')
    raises(function() max(3, nil) end, "max: y is nil, expected a number")
    raises(function() min(1, 2, {}) end, "min: argument 3 is a table, expected a number")
end

function TestNumbers:test_several_are_no_vector()
    for _, name in ipairs{"sum", "prod", "mean", "any", "all", "argmin", "argmax",
        "norm", "var", "std"} do
        raises(function() _G[name](1, 2, 3) end, name .. ": of several numbers",
            name .. "(vec{1, 2, 3})")
        raises(function() _G[name](3, {axis = 1}) end, name .. ": 3 is a number")
    end
    raises(function() all(true, false) end, "all(vec{true, false})")
    raises(function() sum(3, 1) end, "sum(vec{3, 1})")
    raises(function() sum(3, "x") end, "sum: 3 is a number")
    lu.assertEquals({sum(3), sum(3, nil), mean(2.5)}, {3, 3, 2.5})
end

function TestNumbers:test_two_matrices_are_compared_by_another_function()
    local A, B, v = ones(2, 2), ones(2, 2), vec{1, 2}
    raises(function() max(A, B) end, "max: ", "maximum(A, B)")
    raises(function() A:min(B) end, "min: ", "minimum(A, B)")
    raises(function() max(3, A) end, "max: argument 2 is a matrix", "maximum(3, A)")
    raises(function() max(A, 3) end, "max: a matrix has no axis 3", "maximum(A, 3)")
    raises(function() min(v, 2) end, "a vector has no axis 2", "minimum(v, 2)")
    raises(function() max(A, nil, 2) end, "max(A, 2)")
    raises(function() max(A, {}, 1) end, "max(A, 1)")
    raises(function() sum(A, B) end, "sum: takes one matrix", "axis")
end

function TestNumbers:test_what_is_too_much_is_refused()
    local A = ones(2, 2)
    for _, name in ipairs{"sum", "max", "argmin", "any", "mean", "std", "cumsum",
        "cumprod"} do
        raises(function() _G[name](A, {axis = 1}, 3) end, name .. ": 3 arguments",
            "write " .. name .. "(A")
        raises(function() _G[name](A, {axes = 1}) end, "'axes'", "'axis'")
        raises(function() _G[name](A, {axis = 3}) end, "axis is 3, expected 1")
        raises(function() _G[name](A, {axis = "x"}) end, "axis", '"x"')
        raises(function() _G[name](vec{1}, {axis = 2}) end, "a vector has no axis 2")
    end
    equals(cumsum(mat{{1, 2}, {3, 4}}, {axis = 2}), {{1, 3}, {3, 7}})
    lu.assertEquals(sum(A, nil), 4)
    lu.assertEquals(sum(A, {}), 4)
end

-- f32 counts up to 2^24.
function TestNumbers:test_counts_along_an_axis()
    local n = 2 ^ 24 + 3 | 0
    local m = full(n, 1, true, {dtype = "bool"})
    local counted = sum(m, 1)
    lu.assertEquals({counted.dtype, counted(1, 1)}, {"f64", n})
    local running = cumsum(m["1:" .. n .. ", 1"])
    lu.assertEquals({running.dtype, running[n - 2], running[n]}, {"f64", n - 2, n})
end

-- --- norms --------------------------------------------------------------------

TestNorms = {}

local function power_norm(list, p)
    local largest, s = 0, 0
    for _, x in ipairs(list) do largest = math.max(largest, math.abs(x)) end
    if p == inf or largest == 0 then return largest end
    for _, x in ipairs(list) do s = s + (math.abs(x) / largest) ^ p end
    return largest * s ^ (1 / p)
end

function TestNorms:test_powers_of_vectors()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, n in ipairs{1, 3, 100, 5000} do
            local v = rand(n, {seed = n, low = -3, high = 3, dtype = dtype})
            for _, p in ipairs{0.5, 1, 1.5, 2, 3, 10, 400, inf} do
                near(norm(v, p), power_norm(v:totable(), p), 1e-12, p)
            end
            lu.assertEquals(norm(v, "inf"), max(abs(v)))
            lu.assertEquals(norm(v, "fro"), norm(v))
            lu.assertEquals(norm(v, 2), norm(v))
        end
    end
    lu.assertEquals({norm(vec{3, -4}, 1), norm(vec{3, -4}, "inf")}, {7, 4})
    near(norm(vec{3, 4, 5}, 3), 6, 1e-15)
    lu.assertEquals(norm(vec{true, true, false}, 1), 2)
end

function TestNorms:test_matrices()
    local A = mat{{1, -2, 3}, {-4, 5, -6}}
    lu.assertEquals({norm(A, 1), norm(A, "inf"), norm(A, inf)}, {9, 15, 15})
    lu.assertEquals(norm(A, "fro"), norm(A))
    near(norm(A), math.sqrt(91), 1e-15)
    lu.assertEquals({norm(A.T, 1), norm(A["::-1, ::2"], "inf")}, {15, 10})
    lu.assertEquals(norm(full(10, 1, 1e38), 1), 10 * t.single(1e38))
    raises(function() norm(A, 3) end, 'p is 1, 2, "inf", "fro" or "nuc", not 3',
        "norm(A, 3, {axis=1})")
    raises(function() norm(A, "max") end, '"max"')
    for _, p in ipairs{0, -1, nan, -inf} do
        raises(function() norm(vec{1}, p) end, "p is a number above 0")
    end
    raises(function() norm(A, 1, {axis = 1}, 2) end, "norm: 4 arguments")
    raises(function() norm(A, {axis = 1}, 2) end, "norm: 3 arguments")
    raises(function() norm(A, 1, {axes = 1}) end, "'axes'")
    raises(function() norm(A, {}, {}) end, "norm: 3 arguments")
end

function TestNorms:test_lines()
    local A = mat({{1, -2, 2}, {-4, 3, 0}}, {dtype = "f64"})
    equals(norm(A, {axis = 2}), {{3}, {5}})
    equals(norm(A, 1, {axis = 2}), {{5}, {7}})
    equals(A:norm(1, {axis = 1}), {{5, 5, 2}})
    equals(norm(A, "inf", {axis = 1}), {{4, 3, 2}})
    equals(norm(A:f32(), "fro", {axis = 2}), {{3}, {5}})
    for i = 1, 2 do
        near(norm(A, 2.5, {axis = 2})(i, 1), norm(A[i], 2.5), 1e-14)
    end
    lu.assertEquals(norm(A:f32(), 3, {axis = 1}).dtype, "f32")
    lu.assertEquals(norm(A, 3, {axis = 1}).dtype, "f64")
    equals(norm(vec{3, 4}, {axis = 1}), {5})
end

function TestNorms:test_range()
    local wide = {dtype = "f64"}
    for _, x in ipairs{1e200, 1e-200, 1e300, 1e-305} do
        for _, p in ipairs{0.5, 1, 1.5, 3, 40} do
            near(norm(vec({x, x}, wide), p), x * 2 ^ (1 / p), 1e-13, x)
            near(norm(mat({{x, x}, {x, x}}, wide), p, {axis = 1})(1, 2),
                x * 2 ^ (1 / p), 1e-13, x)
        end
    end
    lu.assertEquals(norm(vec({5e-324, 5e-324}, wide), 1), 1e-323)
    lu.assertEquals(norm(vec({4e-323, 0}, wide), 20), 4e-323)
    near(norm(vec{1e30, 1e30}, 4), t.single(1e30) * 2 ^ 0.25, 1e-14)
    near(norm(vec{1e-30, 1e-30}, 4), t.single(1e-30) * 2 ^ 0.25, 1e-14)
    near(norm(full(10000, 1e-300, wide), 0.01), 1e100, 1e-11)
    for _, p in ipairs{0.5, 1, 3, inf} do
        lu.assertEquals(norm(vec{inf, 1}, p), inf)
        lu.assertEquals(norm(vec({-inf, 1}, wide), p), inf)
        lu.assertIsNaN(norm(vec({nan, 1}, wide), p))
        lu.assertEquals({norm(zeros(3), p), norm(zeros(0), p)}, {0, 0})
        equals(norm(zeros(0, 2), p, {axis = 1}), {{0, 0}})
    end
    lu.assertEquals({norm(zeros(0, 3), 1), norm(zeros(3, 0), "inf")}, {0, 0})
end

TestSpecial = {}

function TestSpecial:test_nan_wins_min_and_max()
    for _, list in ipairs{{nan, 1, 2}, {1, nan, 2}, {1, 2, nan}} do
        local v = vec(list)
        lu.assertIsNaN(min(v))
        lu.assertIsNaN(max(v))
        lu.assertIsNaN(sum(v))
        lu.assertEquals(argmin(v), plain.argmin(list))
        lu.assertEquals(argmax(v), plain.argmax(list))
        lu.assertIsTrue(any(v))
    end
    local A = rand(40, 67, {seed = 1})
    A[{33, 60}] = nan
    lu.assertIsNaN(max(A))
    lu.assertEquals({argmax(A)}, {33, 60})
    lu.assertIsNaN(max(A, 1)(1, 60))
    lu.assertIsNaN(min(A, 2)(33, 1))
    lu.assertEquals(max(A, 1):isnan():sum(), 1)
    lu.assertIsTrue(any(vec{nan}))
    lu.assertIsTrue(all(vec{nan, 1}))
end

function TestSpecial:test_infinities()
    lu.assertEquals(sum(vec{inf, 1}), inf)
    lu.assertIsNaN(sum(vec{inf, -inf}))
    lu.assertEquals({min(vec{inf, -inf}), max(vec{inf, -inf})}, {-inf, inf})
    lu.assertEquals({max(vec{-inf, -inf}), argmax(vec{-inf, -inf})}, {-inf, 1})
    lu.assertEquals({min(full(3, inf)), argmin(full(3, inf))}, {inf, 1})
    lu.assertEquals(norm(vec{inf, 1}), inf)
    lu.assertEquals(norm(vec({-inf, 1}, {dtype = "f64"})), inf)
    lu.assertIsNaN(norm(vec({nan, inf}, {dtype = "f64"})))
end

function TestSpecial:test_the_first_of_several_wins()
    lu.assertEquals(argmax(vec{1, 3, 2, 3}), 2)
    lu.assertEquals(argmin(vec{2, 1, 3, 1}), 2)
    lu.assertEquals(argmax(zeros(1000)), 1)
    lu.assertEquals({argmax(ones(50, 50))}, {1, 1})
    equals(argmax(ones(70, 3), 1), {{1, 1, 1}})
    equals(argmin(mat{{1, 0, 0}, {2, 2, 2}}, 2), {{2}, {1}})
    lu.assertEquals(argmin(vec{0, -0.0}), 1)
    lu.assertEquals({argmax(mat{{1, 2}, {5, 5}}.T)}, {1, 2})
end

function TestSpecial:test_empties()
    lu.assertEquals({sum(zeros(0)), prod(zeros(0)), norm(zeros(0))}, {0, 1, 0})
    lu.assertEquals({any(zeros(0)), all(zeros(0))}, {false, true})
    equals(sum(zeros(0, 3), 1), {{0, 0, 0}})
    equals(prod(zeros(2, 0), 2), {{1}, {1}})
    equals(all(zeros(0, 2), 1), {{true, true}})
    equals(any(zeros(0, 2), 1), {{false, false}})
    lu.assertEquals(sum(zeros(0, 3), 2).shape, {0, 1})
    lu.assertEquals(max(zeros(0, 3), 2).shape, {0, 1})
    for _, f in ipairs{min, max, argmin, argmax, mean, var, std} do
        raises(function() f(zeros(0)) end, "no elements")
        raises(function() f(zeros(0, 3), 1) end, "no elements")
    end
end

function TestSpecial:test_one_element()
    lu.assertEquals({sum(vec{3}), mean(vec{3}), max(vec{3})}, {3, 3, 3})
    lu.assertIsNaN(var(vec{3}))
    lu.assertIsNaN(std(vec{3}))
end

function TestSpecial:test_wrong_axes()
    raises(function() sum(ones(2, 2), 3) end, "axis")
    raises(function() sum(ones(2, 2), 0) end, "axis")
    raises(function() max(vec{1}, 2) end, "vector", "axis 2")
    raises(function() sum(ones(2, 2), "x") end, 'sum: axis is "x", expected 1')
    raises(function() sum("x") end, 'sum: A is "x", expected a matrix')
    raises(function() sum() end, "sum: A is missing, expected a matrix")
end

TestAccuracy = {}

-- 10^7 times 0.1: adding in f32 would lose a tenth of it.
function TestAccuracy:test_f32_sums_are_those_of_f64()
    local n = 10000000
    local tenth = t.single(0.1)
    near(sum(full(n, 0.1)), n * tenth, 1e-12)
    near(mean(full(n, 0.1)), tenth, 1e-12)
    near(sum(full(n // 10, 10, 0.1), 1)(1, 3), n // 10 * tenth, 1e-7)
    lu.assertEquals(sum(ones(20000000)), 20000000)
    lu.assertEquals(sum(full(4097, 4097, true, {dtype = "bool"})), 4097 ^ 2)
end

function TestAccuracy:test_norm_without_overflow()
    for _, x in ipairs{1e200, 1e-200, 1e308, 5e-324, 1} do
        near(norm(vec({3 * x / 4, x}, {dtype = "f64"})), 5 * x / 4,
            x < 1e-300 and 1 or 1e-15)
    end
    near(norm(vec{3e30, 4e30}), t.single(5e30), 1e-6)
    near(norm(vec{3e-30, 4e-30}), 5e-30, 1e-6)
    near(norm(mat({{3e200}, {4e200}}, {dtype = "f64"}), {axis = 1})(1, 1), 5e200,
        1e-15)
    lu.assertEquals(norm(zeros(4, {dtype = "f64"})), 0)
end

function TestAccuracy:test_variance_of_large_numbers()
    local v = vec({1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}, {dtype = "f64"})
    lu.assertEquals(var(v), 30)
    near(std(v), math.sqrt(30), 1e-15)
    lu.assertEquals(var(full(100000, 0.1)), 0)
end

-- --- variance -----------------------------------------------------------------
-- Found in one pass: from distances to some of the elements.

TestVariance = {}

-- In two, from a centre that is known: the sums are small.
local function spread(list, centre)
    local n, s, squares = #list, 0, 0
    for _, x in ipairs(list) do s = s + (x - centre) end
    for _, x in ipairs(list) do squares = squares + (x - centre - s / n) ^ 2 end
    return squares / (n - 1)
end

local function check_lines(A, centre, tolerance, what)
    local rows = A:totable()
    near(var(A), spread(flat(rows), centre), tolerance, what .. " whole")
    local down, along = var(A, {axis = 1}), std(A, {axis = 2})
    local limit = A.dtype == "f32" and 3e-7 or tolerance
    for j, list in ipairs(transposed(rows)) do
        near(down(1, j), spread(list, centre), limit, what .. " down " .. j)
    end
    for i, list in ipairs(rows) do
        near(along(i, 1), math.sqrt(spread(list, centre)), limit,
            what .. " along " .. i)
    end
end

function TestVariance:test_small_noise_far_from_zero()
    for _, centre in ipairs{1e9, -1e15, 1e300} do
        local unit = 2.0 ^ math.floor(math.log(math.abs(centre), 2) - 40)
        local noise = randint(0, 1000, 301, 67, {seed = 1, dtype = "f64"}) * unit
        local A = centre + noise
        check_lines(A, centre, 1e-12, tostring(centre))
        check_lines(A.T, centre, 1e-12, centre .. " transposed")
        check_lines(A["::-1, 2::3"], centre, 1e-12, centre .. " strided")
    end
    local A = randint(16000000, 16777216, 301, 67, {seed = 1})
    check_lines(A, 16e6, 1e-12, "f32")
    check_lines(A["2:, 2:"], 16e6, 1e-12, "f32 block")
end

-- Far longer than what one thread takes in; the far one may be what distances
-- are measured from.
function TestVariance:test_one_far_from_all_others()
    local n = 300001
    for _, place in ipairs{1, 2, 5000, n} do
        local v = rand(n, {seed = place, dtype = "f64"})
        local s = std(v)
        near(s, math.sqrt(1 / 12), 0.01)
        v[place] = 1e9
        local others = v[v:ne(1e9)]
        local apart = 1e9 - mean(others)
        near(var(v), (var(others) * (n - 2) + apart ^ 2 / n * (n - 1)) / (n - 1),
            1e-12, place)
        near(var(v:reshape(n, 1), {axis = 1})(1, 1), var(v), 1e-12, place)
        near(var(v:reshape(1, n), {axis = 2})(1, 1), var(v), 1e-12, place)
    end
end

function TestVariance:test_constants_have_none()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, x in ipairs{0.1, -3e-38, 1e38, 0} do
            local A = full(257, 130, x, {dtype = dtype})
            lu.assertEquals({var(A), std(A), var(A["1:2, 1"])}, {0, 0, 0})
            lu.assertEquals({sum(var(A, {axis = 1})), sum(std(A, {axis = 2}))},
                {0, 0})
        end
    end
    lu.assertEquals(var(full(70000, 1e308, {dtype = "f64"})), 0)
    lu.assertEquals(var(full(70000, 5e-324, {dtype = "f64"})), 0)
    lu.assertEquals(var(full(70000, true, {dtype = "bool"})), 0)
end

function TestVariance:test_nan_and_infinities_have_no_variance()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, x in ipairs{nan, inf, -inf} do
            for _, place in ipairs{1, 2, 100, 4000} do
                local A = rand(80, 50, {seed = 1, dtype = dtype})
                local i, j = (place - 1) // 50 + 1, (place - 1) % 50 + 1
                A[{i, j}] = x
                lu.assertIsNaN(var(A))
                lu.assertIsNaN(std(A, {axis = 1})(1, j))
                lu.assertIsNaN(std(A, {axis = 2})(i, 1))
                lu.assertEquals(isnan(var(A, {axis = 1})):sum(), 1)
                lu.assertEquals(isnan(var(A, {axis = 2})):sum(), 1)
            end
        end
    end
end

-- Finite elements have one, though it may be larger than any number.
function TestVariance:test_squares_that_overflow()
    local wide = {dtype = "f64"}
    for _, x in ipairs{1e200, 1.7e308} do
        local A = where(rand(400, 30, {seed = 1}):gt(0.5), full(400, 30, x, wide),
            full(400, 30, -x, wide))
        lu.assertEquals({var(A), std(A), var(A[{{}, 1}])}, {inf, inf, inf})
        equals(std(A, {axis = 1}), full(1, 30, inf, wide):totable())
        equals(var(A, {axis = 2}), full(400, 1, inf, wide):totable())
        A[{7, 7}] = inf
        lu.assertIsNaN(var(A))
        lu.assertEquals(isnan(var(A, {axis = 1})):sum(), 1)
    end
    near(std(vec{3e38, -3e38}), t.single(3e38) * math.sqrt(2), 1e-12)
    near(std(vec({1e150, -1e150}, wide)), 1e150 * math.sqrt(2), 1e-12)
end

function TestVariance:test_masks()
    local m = rand(1003, 31, {seed = 5}):gt(0.7)
    for _, M in ipairs{m, m.T, m["2:, 3:"], m["::2, ::-1"], m[{{}, 3}]} do
        local A = M:f64()
        near(var(M), var(A), 1e-12)
        near(std(M), std(A), 1e-12)
        near(norm(M), norm(A), 1e-12)
        lu.assertEquals({sum(M), any(M), all(M), argmax(M)},
            {sum(A), any(A), all(A), argmax(A)})
        lu.assertEquals({any(M:eq(M)), all(M:eq(M)), any(M:ne(M))},
            {true, true, false})
        if M.ndim == 2 then
            equals(argmin(M, {axis = 1}), argmin(A, {axis = 1}):totable())
            equals(argmax(M, {axis = 2}), argmax(A, {axis = 2}):totable())
            local down = var(A, {axis = 1})
            for j = 1, M.cols do
                near(var(M, {axis = 1})(1, j), down(1, j), 3e-7)
            end
        end
    end
end

-- Offsets at which elements are not read four at a time, and lengths of which
-- some are left.
function TestVariance:test_every_offset_and_length()
    for _, dtype in ipairs{"f32", "f64", "bool"} do
        local base = randint(0, 10, 9000, {seed = 3})
        local v = dtype == "bool" and base:gt(5) or base[dtype](base)
        local list = base:totable()
        for first = 1, 6 do
            for _, n in ipairs{1, 3, 4, 15, 16, 17, 63, 2047, 8191} do
                local part = {}
                for i = 1, n do
                    local x = list[first + i - 1]
                    part[i] = dtype == "bool" and (x > 5 and 1 or 0) or x
                end
                local w = v[first .. ":" .. first + n - 1]
                lu.assertEquals({sum(w), max(w), min(w), argmax(w), argmin(w)},
                    {plain.sum(part), plain.max(part), plain.min(part),
                    plain.argmax(part), plain.argmin(part)})
                near(norm(w), plain.norm(part), 1e-14)
                if n > 1 then near(var(w), plain.var(part), 1e-13) end
            end
        end
    end
end

function TestVariance:test_results_repeat()
    for _, dtype in ipairs{"f32", "f64"} do
        local A = randn(1001, 1003, {seed = 4, dtype = dtype})
        local s, n = std(A), norm(A)
        local down, along = var(A, {axis = 1}), var(A, {axis = 2})
        for _ = 1, 5 do
            lu.assertEquals({std(A), norm(A)}, {s, n})
            equals(var(A, {axis = 1}), down:totable())
            equals(var(A, {axis = 2}), along:totable())
        end
    end
end

-- Long lines of the places: the first of equals, in memory's order or not.
function TestVariance:test_places_of_many()
    local A = randint(0, 5, 700, 901, {seed = 9})
    local function first_of(M, x)
        for i = 1, M.rows do
            for j = 1, M.cols do if M(i, j) == x then return i, j end end
        end
    end
    for _, M in ipairs{A, A.T, A["2:, 2:"], A["::-1, ::-3"], A["3:, 5:"].T} do
        lu.assertEquals({argmax(M)}, {first_of(M, 5)})
        lu.assertEquals({argmin(M)}, {first_of(M, 0)})
    end
    A[{300, 17}], A[{301, 2}] = nan, nan
    lu.assertEquals({argmax(A)}, {300, 17})
    lu.assertEquals({argmin(A.T)}, {2, 301})
    lu.assertEquals({argmax(A, {axis = 2})(300, 1), argmin(A, {axis = 1})(1, 2)},
        {17, 301})
end

function TestAccuracy:test_products_keep_range()
    near(prod(vec{1e30, 1e30, 1e-30, 1e-30}), 1, 1e-6)
end

TestDevices = {}

function TestDevices:test_every_reduction_agrees_over_odd_shapes()
    if not t.on_gpu then lu.skip("needs a GPU") end
    for name in pairs(defined) do
        for _, shape in ipairs{{1, 1}, {3, 5}, {31, 127}, {1000, 65}, {3,
            4099}} do
            for _, dtype in ipairs{"f32", "f64"} do
                t.agrees(function()
                    local f = _G[name]
                    local A = sample(shape[1], shape[2], dtype, name)
                    if name == "var" or name == "std" then A = vcat(A,
                        A + 1) end
                    local one, two = {axis = 1}, {axis = 2}
                    if A.cols < 2 then return f(A, one) end
                    local down, along = f(A, one), f(A, two)
                    return down, along, f(A["::-1,::2"], one), f(A.T, one)
                end, name .. " " .. dtype, exact[name] and 0 or
                    dtype == "f32" and 2 or 1000)
            end
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
