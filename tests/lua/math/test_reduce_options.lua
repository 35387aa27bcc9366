-- Options of reductions: NaN left out, weights, another divisor, axes dropped;
-- against the definitions in plain Lua.
local lu = require "luaunit"
local t = require "common"
local equals, raises, near, inf, nan = t.equals, t.raises, t.near, t.inf, t.nan
local device = {device = t.device}

-- The warnings of a script that this is.
local function warnings(code)
    local list, path = {}, t.scratch ".lua"
    t.write(path, "local nan = 0 / 0\n" .. code)
    local pipe <close> = assert(io.popen(("'%s' --no-init --device %s '%s' 2>&1")
        :format(os.getenv "LUMAT", t.device, path)))
    for line in pipe:lines() do list[#list + 1] = line end
    os.remove(path)
    return list
end

-- What counts of a list of numbers, with the weights of these.
local function counted(list, weights, skips)
    local xs, ws = {}, {}
    for i, x in ipairs(list) do
        if x == x or not skips then
            xs[#xs + 1], ws[#ws + 1] = x, weights and weights[i] or 1
        end
    end
    return xs, ws
end

local function mean_of(xs, ws)
    local sum, total = 0, 0
    for i, x in ipairs(xs) do sum, total = sum + ws[i] * x, total + ws[i] end
    return sum / total, total
end

local function var_of(xs, ws, ddof)
    local mean, total = mean_of(xs, ws)
    local sum, squares = 0, 0
    for i, x in ipairs(xs) do
        sum, squares = sum + ws[i] * (x - mean) ^ 2, squares + ws[i] * ws[i]
    end
    local divisor = total - ddof * squares / total
    return divisor > 0 and sum / divisor or nan
end

-- The columns (axis 1) or rows of nested tables, as lists.
local function lines_of(rows, axis)
    if axis == 2 then return rows end
    local columns = {}
    for j = 1, #rows[1] do
        columns[j] = {}
        for i = 1, #rows do columns[j][i] = rows[i][j] end
    end
    return columns
end

local function random_rows(m, n, with_nan)
    local rows = {}
    for i = 1, m do
        rows[i] = {}
        for j = 1, n do
            local x = t.single(math.random() * 20 - 10)
            rows[i][j] = with_nan and math.random() < 0.3 and nan or x
        end
    end
    return rows
end

local function compare(got, want, tolerance, what)
    local list = got:flatten():totable()
    lu.assertEquals(#list, #want, what)
    for i, x in ipairs(want) do near(list[i], x, tolerance, what) end
end

TestSkip = {}

function TestSkip:test_sums_products_means()
    math.randomseed(1)
    for _, dtype in ipairs{"f32", "f64"} do
        for axis = 1, 2 do
            local rows = random_rows(7, 5, true)
            local A = mat(rows, {dtype = dtype, device = t.device})
            local sums, prods, means, counts = {}, {}, {}, {}
            for i, line in ipairs(lines_of(rows, axis)) do
                local xs, ws = counted(line, nil, true)
                means[i], counts[i] = mean_of(xs, ws)
                sums[i], prods[i] = means[i] * counts[i], 1
                for _, x in ipairs(xs) do prods[i] = prods[i] * x end
            end
            local near_enough = dtype == "f32" and 1e-6 or 1e-13
            local options = {axis = axis, nan = "skip"}
            compare(A:sum(options), sums, 10 * near_enough, "sum")
            compare(A:prod(options), prods, near_enough, "prod")
            compare(A:mean(options), means, 10 * near_enough, "mean")
            lu.assertEquals(A:sum(options).dtype, dtype)
        end
    end
end

function TestSkip:test_without_nan_it_is_as_ever()
    local A = randn(40, 30, {seed = 3, device = t.device})
    for _, name in ipairs{"sum", "prod", "min", "max", "argmin", "argmax", "any",
        "all", "norm"} do
        local f = _G[name]
        for axis = 1, 2 do
            lu.assertTrue(f(A, {axis = axis, nan = "skip"}) == f(A, {axis = axis}),
                name)
        end
        lu.assertEquals({f(A, {nan = "skip"})}, {f(A)}, name)
        lu.assertEquals({f(A, {nan = "keep"})}, {f(A)}, name)
    end
    for _, name in ipairs{"mean", "var", "std"} do
        near(_G[name](A, {nan = "skip"}), _G[name](A), 1e-12, name)
    end
end

function TestSkip:test_views_masks_and_what_waits()
    local A = mat({{1, nan, 3}, {nan, 5, 6}, {7, 8, nan}}, device)
    equals(A.T:sum(2, {nan = "skip"}), {{8}, {13}, {9}})
    equals(A["1:2, 2:3"]:sum(1, {nan = "skip"}), {{5, 9}})
    equals(A[{{3, 1, -2}, {}}]:max(1, {nan = "skip"}), {{7, 8, 3}})
    equals((A * 2 + 1):min(2, {nan = "skip"}), {{3}, {11}, {15}})
    lu.assertEquals(A:gt(4):sum{nan = "skip"}, 4)
    lu.assertEquals(sqrt(A):square():sum{nan = "skip"} > 29.99, true)
end

function TestSkip:test_extremes_know_infinities_from_nan()
    local v = vec({nan, inf, nan}, device)
    lu.assertEquals(min(v, {nan = "skip"}), inf)
    lu.assertEquals(argmin(v, {nan = "skip"}), 2)
    lu.assertEquals(max(-v, {nan = "skip"}), -inf)
    lu.assertEquals(argmax(-v, {nan = "skip"}), 2)
    local A = mat({{nan, 1, inf}, {inf, nan, nan}, {nan, nan, nan}}, device)
    warn "@off"
    equals(A:min(2, {nan = "skip"}), {{1}, {inf}, {nan}})
    equals(A:argmin(2, {nan = "skip"}), {{2}, {1}, {nan}})
    equals(A:argmax(1, {nan = "skip"}), {{2, 1, 1}})
    lu.assertEquals({argmax(A, {nan = "skip"})}, {1, 3})
    warn "@on"
end

-- Of all lengths, layouts and types; what takes the place of NaN is composed.
function TestSkip:test_extremes_of_many_shapes()
    for _, dtype in ipairs{"f32", "f64"} do
        local options = {dtype = dtype, device = t.device, seed = 7}
        for _, size in ipairs{{1, 1}, {1, 70}, {70, 1}, {5, 33}, {33, 64}, {300, 129},
            {2, 5000}} do
            local A = randn(size[1], size[2], options)
            A[rand(size[1], size[2], options):lt(0.4)] = nan
            if size[1] > 2 then A[2] = nan end
            for _, X in ipairs{A, A.T, A["1:end:2, end:1:-1"], A:flip(1)} do
                for _, name in ipairs{"max", "min"} do
                    local worst = name == "max" and -inf or inf
                    local filled = where(X:isnan(), worst, X)
                    for axis = 1, 2 do
                        local want = filled[name](filled, axis)
                        want = where(want:eq(worst), nan, want)
                        local got = X[name](X, {axis = axis, nan = "skip"})
                        lu.assertTrue((got:eq(want) | got:isnan() & want:isnan()):all())
                    end
                    local want, got = filled[name](filled), X[name](X, {nan = "skip"})
                    lu.assertTrue(got == want or want == worst and got ~= got)
                end
            end
        end
    end
end

function TestSkip:test_nothing_but_nan()
    local A = mat({{nan, 1}, {nan, nan}}, device)
    equals(A:sum(1, {nan = "skip"}), {{0, 1}})
    equals(A:prod(2, {nan = "skip"}), {{1}, {1}})
    lu.assertEquals(A[{{2, 2}, {}}]:any{nan = "skip"}, false)
    lu.assertEquals(A[{{2, 2}, {}}]:all{nan = "skip"}, true)
    lu.assertEquals(norm(A, {nan = "skip"}), 1)
    equals(norm(A, {nan = "skip", axis = 1}), {{0, 1}})
    warn "@off"
    equals(A:mean(1, {nan = "skip"}), {{nan, 1}})
    equals(A:var(1, {nan = "skip"}), {{nan, nan}})
    equals(A:max(2, {nan = "skip"}), {{1}, {nan}})
    local i = argmax(A[2], {nan = "skip"})
    lu.assertTrue(i ~= i)
    warn "@on"
end

function TestSkip:test_infinities_stay()
    local v = vec({nan, inf, 1}, device)
    lu.assertEquals(sum(v, {nan = "skip"}), inf)
    lu.assertEquals(mean(v, {nan = "skip"}), inf)
    near(var(v, {nan = "skip"}), nan, 0)
end

TestDdof = {}

function TestDdof:test_divisors()
    local v = vec({1, 2, 4, 9}, device)
    for _, ddof in ipairs{0, 1, 2, 0.5, 3} do
        near(var(v, {ddof = ddof}), 38 / (4 - ddof), 1e-15)
        near(std(v, {ddof = ddof}), math.sqrt(38 / (4 - ddof)), 1e-15)
    end
    equals(mat({{1, 2}, {3, 6}}, device):var{axis = 1, ddof = 0}, {{1, 4}})
end

-- Nothing is left to divide by.
function TestDdof:test_too_large()
    near(var(vec({1, 2}, device), {ddof = 2}), nan, 0)
    near(var(vec({1, 2}, device), {ddof = 3}), nan, 0)
    near(var(vec({1, nan}, device), {nan = "skip"}), nan, 0)
    lu.assertEquals(var(vec({5}, device), {ddof = 0}), 0)
end

function TestDdof:test_far_from_zero()
    local v = vec({1e9 + 1, 1e9 + 2, 1e9 + 4, nan}, {dtype = "f64",
        device = t.device})
    near(var(v, {nan = "skip", ddof = 0}), 14 / 9, 1e-12)
end

TestWeights = {}

function TestWeights:test_definitions()
    math.randomseed(2)
    for _, skips in ipairs{false, true} do
        for axis = 1, 2 do
            local rows = random_rows(6, 4, skips)
            local n = axis == 1 and 6 or 4
            local w = {}
            for i = 1, n do w[i] = math.random(0, 5) / 2 end
            w[1] = 1
            local means, vars = {}, {}
            for i, line in ipairs(lines_of(rows, axis)) do
                local xs, ws = counted(line, w, skips)
                means[i], vars[i] = mean_of(xs, ws), var_of(xs, ws, 1)
            end
            local A = mat(rows, {dtype = "f64", device = t.device})
            local options = {axis = axis, weights = vec(w, device),
                nan = skips and "skip" or nil}
            compare(A:mean(options), means, 1e-13, "mean")
            compare(A:var(options), vars, 1e-12, "var")
            for i = 1, #vars do vars[i] = math.sqrt(vars[i]) end
            compare(A:std(options), vars, 1e-12, "std")
        end
    end
end

-- Weights of the matrix's own shape, and of a vector.
function TestWeights:test_shapes()
    local A = mat({{1, 2}, {3, 4}}, device)
    local W = mat({{1, 0}, {3, 1}}, device)
    equals(A:mean(1, {weights = W}), {{2.5, 4}})
    equals(A:mean(2, {weights = W}), {{1}, {3.25}})
    lu.assertEquals(mean(A, {weights = W}), 2.8)
    lu.assertEquals(mean(A.T, {weights = W.T}), 2.8)
    lu.assertEquals(mean(vec({1, 2}, device), {weights = vec({3, 1}, device)}),
        1.25)
    -- equal weights, whatever they are, are as none
    near(var(A, {weights = 7 * ones(2, 2, device)}), var(A), 1e-14)
    raises(function() mean(A, {weights = vec({1, 2}, device)}) end,
        "the weights are vector 2, and A is 2x2")
    raises(function() mean(A, 1, {weights = vec({1, 2, 3}, device)}) end,
        "one for each row")
    raises(function() mean(A, 2, {weights = vec({1, 2, 3}, device)}) end,
        "one for each column")
end

function TestWeights:test_values()
    local v = vec({1, 2}, device)
    for _, w in ipairs{-1, nan, inf} do
        raises(function() mean(v, {weights = vec({1, w}, device)}) end,
            "weights are numbers from 0 on")
    end
    warn "@off"
    near(mean(v, {weights = vec({0, 0}, device)}), nan, 0)
    warn "@on"
    near(mean(vec({1, nan}, device), {weights = vec({1, 0}, device)}), nan, 0)
end

TestKeepdims = {}

function TestKeepdims:test_vectors_come()
    local A = mat({{1, 2, 3}, {4, 5, 9}}, device)
    equals(A:sum{axis = 1, keepdims = false}, {5, 7, 12})
    equals(A:sum{axis = 2, keepdims = false}, {6, 18})
    equals(A:argmax{axis = 1, keepdims = false}, {2, 2, 2})
    equals(A:any{axis = 1, keepdims = false}, {true, true, true})
    equals(A:mean{axis = 1, keepdims = true}, {{2.5, 3.5, 6}})
    equals(A:mean{axis = 2, keepdims = false, nan = "skip"}, {2, 6})
    equals(A.T:max{axis = 1, keepdims = false}, {3, 9})
    equals(norm(A.T * 4, 1, {axis = 1, keepdims = false}), {24, 72})
    equals(norm(mat({{3, nan}, {4, 2}}, device), {axis = 1, keepdims = false,
        nan = "skip"}), {5, 2})
    equals(norm(mat({{3, 4}}, device), {axis = 2, keepdims = true}), {{5}})
    equals(norm(sparse(mat({{3, 0}, {4, 2}}, device)), {axis = 1,
        keepdims = false}), {5, 2})
    equals(trapz(A, {axis = 2, keepdims = false}), {4, 11.5})
    equals(trapz(A, {axis = 1, keepdims = true}), {{2.5, 3.5, 6}})
end

function TestKeepdims:test_numbers_come_of_vectors()
    local v = vec({4, 9, 2}, device)
    lu.assertEquals(sum(v, {axis = 1, keepdims = false}), 15)
    lu.assertEquals(argmax(v, {axis = 1, keepdims = false}), 2)
    lu.assertEquals(any(v, {axis = 1, keepdims = false}), true)
    lu.assertEquals(sum(complex(v, 1), {axis = 1, keepdims = false}),
        complex(15, 3))
    lu.assertEquals(norm(vec({3, 4}, device), {axis = 1, keepdims = false}), 5.0)
end

TestMistakes = {}

function TestMistakes:test_what_does_not_go_together()
    local A = ones(2, 2, device)
    raises(function() sum(A, {keepdims = false}) end, "keepdims", "along an axis")
    raises(function() norm(A, {keepdims = false}) end, "norm: keepdims is of a " ..
        "reduction along an axis: norm(A) is of all elements")
    raises(function() norm(sparse(A), {keepdims = true}) end, "along an axis")
    raises(function() trapz(A[1], {keepdims = false}) end, "of a vector a number")
    raises(function() sum(A, 1, {axis = 2}) end, "the axis is given twice")
    raises(function() sum(A, {weights = A}) end, "unknown option 'weights'")
    raises(function() mean(A, {ddof = 0}) end, "unknown option 'ddof'")
    raises(function() var(A, {ddof = -1}) end, "ddof is -1")
    raises(function() var(A, {ddof = nan}) end, "ddof is")
    raises(function() sum(A, {nan = "omit"}) end, '"omit"', '"skip"')
    raises(function() sum(complex(A, 1), {nan = "skip"}) end, "sum:", "real(A)")
    raises(function() mean(zeros(0, 3, device), 1, {nan = "skip"}) end,
        "of no elements")
    raises(function() var(vec({1}, device), 2, {ddof = 0}) end, "no axis 2")
end

function TestMistakes:test_notes_of_empty_lines()
    local list = warnings [[
        local A = mat{{nan, 1, nan}, {nan, 2, nan}}
        local a = A:mean(1, {nan = "skip"})
        local b = max(vec{nan}, {nan = "skip"})
        local c = A:sum(1, {nan = "skip"})
    ]]
    lu.assertEquals(#list, 2)
    lu.assertStrContains(list[1], "mean: of 2 columns")
    lu.assertStrContains(list[2], "max: there is nothing but NaN")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
