-- Powers of matrices, linear systems, inverses and determinants.
local lu = require "luaunit"
local t = require "common"
local equals, raises, near = t.equals, t.raises, t.near
warn("@off")

local all_types = {"f32", "f64", "c64", "c128"}

local function is_single(dtype)
    return dtype == "f32" or dtype == "c64"
end

local function uniform(m, n, dtype, seed)
    return rand(m, n, {seed = seed, dtype = dtype, low = -1, high = 1})
end

TestPowers = {}

function TestPowers:test_whole_powers()
    local A = mat{{1, 1}, {1, 0}}
    equals(A ^ 0, {{1, 0}, {0, 1}})
    equals(A ^ 1, {{1, 1}, {1, 0}})
    equals(A ^ 10, {{89, 55}, {55, 34}})
    equals(A ^ 31, {{2178309, 1346269}, {1346269, 832040}})
    equals(A ^ -1, {{0, 1}, {1, -1}})
    equals(A ^ -3, {{-1, 2}, {2, -3}})
    equals(A ^ 2.0, {{2, 1}, {1, 1}})
    equals(A, {{1, 1}, {1, 0}})
    lu.assertEquals((zeros(0, 0) ^ 3).shape, {0, 0})
    local B = A ^ 1
    B[1] = 0
    equals(A, {{1, 1}, {1, 0}})
end

function TestPowers:test_what_is_no_power()
    raises(function() return ones(2, 3) ^ 2 end, "2x3", "square", "A:pow")
    raises(function() return ones(2, 3) ^ 0.5 end, "2x3", "square", "A:pow")
    raises(function() return 2 ^ ones(2, 2) end, "pow")
    raises(function() return ones(2, 2) ^ ones(2, 2) end, "a number", "A:pow")
    raises(function() return vec{1, 2} ^ 2 end, "square", "vector 2")
    raises(function() return ones(2, 2) ^ -1 end,
        "inv: the matrix is singular (pivot 2 is zero)")
end

TestSystems = {}

-- Of a matrix that is not square the nearest solution, as lstsq has it.
function TestSystems:test_least_squares()
    local A, b = uniform(5, 3, "f64", 1), uniform(5, 2, "f64", 2)
    lu.assertIsTrue(solve(A, b) == lstsq(A, b))
    lu.assertIsTrue(A.T:solve(A.T * b) == lstsq(A.T, A.T * b))
end

function TestSystems:test_solve_inv_det()
    for _, dtype in ipairs(all_types) do
        local tolerance = is_single(dtype) and 1e-3 or 1e-10
        for _, n in ipairs{1, 2, 3, 31, 65} do
            local A = uniform(n, n, dtype, n) + n * eye(n, {dtype = dtype})
            local x = uniform(n, 3, dtype, 2)
            lu.assertIsTrue(close(solve(A, A * x), x, tolerance))
            lu.assertIsTrue(close(solve(A.T, A.T * x[":,2"]), x[":,2"],
                tolerance))
            lu.assertIsTrue(close(A * inv(A), eye(n, {dtype = dtype}),
                tolerance))
            near(abs(det(A) * det(inv(A))), 1, tolerance)
            lu.assertIsTrue(close(solve(A.H, A.H * x), x, tolerance))
            lu.assertIsTrue(close(A ^ -2 * (A ^ 2), eye(n), 1e2 * tolerance))
            lu.assertEquals(solve(A, x).dtype, dtype)
        end
    end
    lu.assertEquals(det(mat{{0, 1}, {1, 0}}), -1)
    near(det(mat({{2, 1, 3}, {0, 3, 1}, {4, 1, 1}}, {dtype = "f64"})), -28,
        1e-14)
    lu.assertEquals(det(zeros(0, 0)), 1)
    lu.assertEquals(det(ones(3, 3)), 0)
    for _, singular in ipairs{mat{{-1, 2}, {-2, 4}}, mat{{1, 2}, {1, 2}},
        mat{{0, 1}, {0, 2}}, -zeros(2, 2), mat{{1, 1, 0}, {-1, 1, 0}, {1, 2, 0}}} do
        lu.assertEquals(1 / det(singular), math.huge) -- it is not -0.0
    end
end

-- Of a real A and complex right sides, and the other way round.
function TestSystems:test_mixed_types()
    for _, pair in ipairs{{"f32", "c64"}, {"f32", "c128"}, {"f64", "c64"},
        {"c64", "f32"}, {"c64", "f64"}, {"c128", "f32"}} do
        for _, n in ipairs{1, 3, 70} do
            local A = uniform(n, n, pair[1], n) + n * eye(n, {dtype = pair[1]})
            local b = uniform(n, 2, pair[2], 2)
            for _, B in ipairs{b, conj(b), b[{{}, 2}], b:clone().T:clone().T} do
                local x = solve(A, B)
                lu.assertEquals({x.dtype, x.shape}, {(A * b).dtype, B.shape})
                lu.assertIsTrue(norm(A * x - B) <= 10 * n *
                    t.unit[x.dtype] * norm(A) * norm(x))
            end
        end
    end
    lu.assertIsTrue(solve(mat{{2, 0}, {0, 4}}, vec{im, 4}) == vec{im / 2, 1})
    lu.assertIsTrue(solve(mat{{2 * im, 0}, {0, 4}}, vec{im, 4}) == vec{0.5, 1})
end

function TestSystems:test_complex_words()
    raises(function() solve(mat{{1, im}, {-im, 1}}, vec{1, 2}) end,
        "solve: the matrix is singular (pivot 2 is zero)")
    raises(function() inv(zeros(3, 3, {dtype = "c64"})) end,
        "inv: the matrix is singular (pivot 1 is zero)")
    raises(function() local P = ones(2, 3) * im inv(P) end,
        "inv: needs a square", "P is 2x3")
    raises(function() solve(eye(2) * im, ones(3)) end, "2x2", "vector 3")
end

-- In f64 a GPU's f32 factors are refined, unless it is told otherwise.
function TestSystems:test_methods()
    local n = t.device == "cpu" and 200 or 3100
    local A, b = uniform(n, n, "f64", 1), uniform(n, 2, "f64", 2)
    local x, told = solve(A, b, {kind = "general", info = true})
    local y, other = solve(A, b, {kind = "general", info = true,
        method = "direct"})
    lu.assertEquals({other.method, other.steps}, {"direct", 0})
    lu.assertIsTrue(told.error < 1e-15)
    lu.assertEquals(told.method == "refinement", told.steps > 0)
    lu.assertIsTrue(norm(x - y) <= 1e-7 * norm(y))
    local column = solve(A, b[{{}, 1}], {kind = "general"})
    lu.assertIsTrue(norm(A * column - b[{{}, 1}]) <= 1e-12 * norm(A) *
        norm(column))
    -- what f32 cannot factor is factored in f64
    A[{{}, 2}] = A[{{}, 1}] * (1 + 2.0 ^ -30)
    A[{1, 2}] = A(1, 1) * (1 + 2.0 ^ -29)
    x, told = solve(A, b, {kind = "general", info = true})
    lu.assertIsTrue(told.error < 1e-15)
    raises(function() solve(A, b, {method = "any"}) end, "method", "direct")
end

-- What is told of a matrix comes from the factors that solve has.
function TestSystems:test_one_factorisation()
    local A, b = uniform(100, 100, "f32", 1), uniform(100, 2, "f32", 2)
    local told
    local operations = t.operations(function()
        _, told = solve(A, b, {kind = "general", info = true})
    end)
    lu.assertEquals(select(2, operations:gsub("solve", "")), 1, operations)
    lu.assertNotStrContains(operations, "rcond")
    near(told.rcond, rcond(A), 1e-6)
    lu.assertEquals(select(2, solve(A, zeros(100, 0), {info = true})).rcond,
        rcond(A))
end

function TestSystems:test_operands_are_not_changed()
    local A, b = mat{{2, 1}, {1, 3}}, vec{1, 2}
    solve(A, b)
    inv(A)
    det(A)
    equals(A, {{2, 1}, {1, 3}})
    equals(b, {1, 2})
end

function TestSystems:test_what_has_no_solution()
    raises(function() solve(ones(2, 2), vec{1, 2}) end,
        "solve: the matrix is singular (pivot 2 is zero)", "lstsq(A, b)")
    raises(function() inv(zeros(3, 3)) end,
        "inv: the matrix is singular (pivot 1 is zero)", "pinv(A)")
    raises(function() local P = ones(2, 3) inv(P) end, "inv: needs a square",
        "P is 2x3")
    raises(function() det(ones(2, 3)) end, "square", "2x3")
    raises(function() solve(ones(2, 3), ones(3)) end,
        "solve: 2x3 has 2 rows, the right side vector 3")
    raises(function() solve(eye(2), ones(3)) end, "2x2", "vector 3")
    raises(function() local P = ones(1, 2) solve(eye(2), P) end,
        "P.T would fit")
    raises(function() solve(eye(2), 3) end, "solve: B is 3, expected a matrix")
end

-- --- pivots that have no reciprocal ----------------------------------------

TestPivots = {}

local function wide(rows)
    return mat(rows, {dtype = "f64"})
end

function TestPivots:test_small_pivots()
    near(det(mat{{1e-40, 0}, {0, 1}}), 1e-40, 1e-5)
    near(det(mat{{1e-40, 1e-40}, {1e-41, 1}}), 1e-40, 1e-4)
    near(det(wide{{1e-310, 0}, {0, 1}}), 1e-310, 1e-13)
    equals(solve(wide{{1e-310, 0}, {0, 1}}, vec({1e-310, 3},
        {dtype = "f64"})), {1, 3})
    equals(solve(mat{{0, 1e-40}, {1, 1}}, vec{1e-40, 3}), {2, 1})
    equals(inv(mat{{1e-40, 0}, {0, 4}}), {{t.inf, 0}, {0, 0.25}})
    local largest = wide{{1.5e308, 0}, {0, 1}}
    equals(solve(largest, vec({1.5e308, 2}, {dtype = "f64"})), {1, 2})
end

-- Small systems, one panel, several; a row in five is almost out of range.
function TestPivots:test_small_pivots_in_any_panel()
    for _, dtype in ipairs{"f32", "f64"} do
        local tiny = dtype == "f32" and 2e-39 or 5e-309
        for _, n in ipairs{2, 5, 16, 17, 64, 192, 193, 400} do
            local A = uniform(n, n, dtype, n) + n * eye(n, {dtype = dtype})
            for i = 1, n, 5 do A[i] = A[i] * (tiny / n) end
            local x = uniform(n, 2, dtype, 2)
            local b = (A:f64() * x:f64()):to(A.device)
            if dtype == "f32" then b = b:f32() end
            lu.assertIsTrue(close(solve(A, b), x,
                dtype == "f32" and 1e-3 or 1e-9), dtype .. " " .. n)
        end
    end
end

function TestPivots:test_determinants_stay_in_range()
    near(det(diag(vec{1e30, 1e30, 1e-30, 1e-30})), 1, 1e-6)
    local function product(...)
        return det(diag(vec({...}, {dtype = "f64"})))
    end
    near(product(1e200, 1e200, 1e-200, 1e-200), 1, 1e-14)
    near(product(1e-200, 1e-200, 1e200, 1e200), 1, 1e-14)
    near(product(1e300, 5e-324, 1e300, 5e-324), 1e300 * 5e-324 *
        (1e300 * 5e-324), 1e-14)
    lu.assertEquals(product(1e200, 1e200), t.inf)
    near(prod(vec({1e300, 5e-324, 1e300, 5e-324}, {dtype = "f64"})),
        1e300 * 5e-324 * (1e300 * 5e-324), 1e-14)
end

-- --- condition ------------------------------------------------------------

TestCondition = {}

local function hilbert(n, dtype)
    return fromfn(n, n, function(i, j) return 1 / (i + j - 1) end,
        {dtype = dtype})
end

function TestCondition:test_rcond()
    lu.assertEquals(rcond(eye(3)), 1)
    lu.assertEquals(rcond(mat{{1, 0}, {0, 4}}), 0.25)
    lu.assertEquals(rcond(mat{{1, 2}, {2, 4}}), 0)
    lu.assertEquals(rcond(zeros(2, 2)), 0)
    lu.assertEquals(rcond(mat{{5}}), 1)
    lu.assertEquals(rcond(zeros(0, 0)), 1)
    near(rcond(hilbert(4, "f64")), 1 / 28375, 1e-9)
    near(hilbert(4, "f32"):rcond(), 1 / 28375, 1e-3)
    near(rcond(wide{{1e-310, 0}, {0, 1}}), 1e-310, 1e-6)
    near(rcond(mat{{1e-40, 0}, {0, 1}}), 1e-40, 1e-3)
    near(rcond(wide{{1.6e308, 0}, {0, 4e307}}), 0.25, 1e-12)
    near(rcond(wide{{1.6e-300, 0}, {0, 4e-301}}), 0.25, 1e-12)
    lu.assertIsNaN(rcond(mat{{1, t.nan}, {1, 2}}))
    lu.assertIsNaN(rcond(mat{{1, t.inf}, {1, 2}}))
    lu.assertEquals(rcond(eye(3):gt(0)), 1)
    lu.assertEquals({rcond(eye(3) * im), rcond(mat{{im, 0}, {0, 4}}),
        rcond(zeros(2, 2) * im), rcond(mat{{1, im}, {-im, 1}})},
        {1.0, 0.25, 0.0, 0.0})
    near(rcond(hilbert(4, "f64") * im), 1 / 28375, 1e-9)
    lu.assertIsNaN(rcond(mat{{im, t.nan}, {1, 2}}))
    raises(function() rcond(ones(2, 3)) end, "rcond: needs a square", "2x3")
end

-- |A^-1| is estimated: never too large, seldom more than three times too small.
function TestCondition:test_rcond_against_the_inverse()
    local function norm1(A) return max(sum(abs(A), 1)) end
    for k, n in ipairs{2, 3, 8, 16, 17, 40, 130, 200, 1, 2, 8, 17, 130} do
        for seed = 1, 4 do
            local A = uniform(n, n, k > 8 and "c128" or "f64", 100 * n + seed)
            local B = A % logspace(0, -6, n, {dtype = "f64"}):reshape(n, 1)
            for _, M in ipairs{A, B, B.T} do
                local exact = 1 / (norm1(M) * norm1(inv(M)))
                local ratio = rcond(M) / exact
                lu.assertIsTrue(ratio > 1 - 1e-6 and ratio < 4,
                    n .. " " .. ratio)
            end
        end
    end
end

-- What code writes to standard error, run by another lumat.
local function complaints(code)
    local path = t.scratch(".lua")
    t.write(path, code)
    local pipe = assert(io.popen(("'%s' --no-init --device=%s '%s' 2>&1")
        :format(os.getenv("LUMAT"), t.device, path)))
    local text = pipe:read("a")
    pipe:close()
    os.remove(path)
    return text
end

local made = [[
local function H(n, dtype)
    return fromfn(n, n, function(i, j) return 1 / (i + j - 1) end,
        {dtype = dtype})
end
]]

function TestCondition:test_warnings()
    local function says(code, ...)
        local text = complaints(made .. code)
        for _, part in ipairs{...} do lu.assertStrContains(text, part) end
    end
    says("solve(H(12), ones(12))", ":5: solve: the matrix is nearly " ..
        "singular or badly scaled (rcond ", "all of f32's 7 digits",
        "A:f64() has 16")
    says("inv(H(12, 'f64'))", "inv: ", "all of f64's 16 digits",
        "A + s * eye(n)")
    says("local x = H(7) ^ -1", "inv: ")
    says("local x = H(7) ^ -2", "inv: ")
    says("solve(mat{{1, 1}, {1, 1 + 2^-19}}, vec{1, 2})",
        "about 6 of f32's 7 digits")
    says("solve(mat{{1e-40, 0}, {0, 1}}, vec{0, 2})", "(rcond 1.0e-40)")
    says("solve(H(12) * im, ones(12))", ":5: solve: the matrix is nearly " ..
        "singular or badly scaled (rcond ", "A:c128() has 16")
    says("inv(H(12, 'f64') * im)", "inv: ", "all of f64's 16 digits")
    says("solve(H(12):f32(), ones(12, {dtype = 'f64'})) print 'end'", "end")
    -- the first of what is no finite number
    says("solve(mat{{1, 2}, {0/0, 1/0}}, vec{1, 2})", "solve: A[{2, 1}] is NaN")
    says("inv(mat{{1, -1/0}, {3, 4}})", "inv: A[{1, 2}] is Inf")
    says("solve(mat{{1, im}, {complex(1, 1/0), 4}}, vec{1, 2})",
        "solve: A[{2, 1}] is Inf")
    says("local A = eye(80) A[{80, 79}] = 0/0 solve(A, ones(80))",
        "solve: A[{80, 79}] is NaN")
end

function TestCondition:test_what_does_not_warn()
    lu.assertEquals(complaints(made .. [[
warn("@off") solve(H(12), ones(12)) warn("@on")
solve(H(4), ones(4)) solve(H(9, "f64"), ones(9)) det(H(12)) rcond(H(12))
for n = 1, 300, 23 do
    solve(randn(n, n), ones(n)) inv(rand(n, n)) solve(eye(n), eye(n))
    solve(randn(n, n, {dtype = "c64"}), ones(n))
end
solve(randn(1500, 1500), ones(1500))
solve(1e-30 * randn(20, 20), ones(20)) solve(1e30 * randn(20, 20), ones(20))
solve(zeros(0, 0), zeros(0)) solve(eye(2), vec{0/0, 1})
norm(mat({{1, 1/0}, {2, 3}}, {dtype = "f64"}), 2) norm(mat{{1, 0/0}, {2, 3}}, "nuc")
solve(H(12), zeros(12, 0))]]), "")
end

function TestCondition:test_told_once_a_line()
    local text = complaints(made .. [[
for i = 1, 3 do solve(H(12), ones(12)) end
solve(H(12), ones(12))]])
    lu.assertEquals(select(2, text:gsub("solve: ", "")), 2)
end

-- --- by what the matrix is --------------------------------------------------

TestKinds = {}

-- Of each kind a matrix, well conditioned.
local function of_kinds(n, dtype)
    local A = uniform(n, n, dtype, 3)
    local one = eye(n, {dtype = dtype})
    local P = A * A.H
    return {general = A + n * one, diagonal = diag(diag(A) + 1),
        lower = tril(A) + n * one, upper = triu(A) + n * one,
        banded = triu(tril(A, 2), -3) + 9 * one,
        positive = (P + P.H) / 2 + n * one, symmetric = A + A.H + n * one}
end

function TestKinds:test_all()
    for _, dtype in ipairs(all_types) do
        for _, n in ipairs{1, 2, 5, 64, 130,
            (dtype == "f32" or dtype == "f64") and 600 or 300} do
            local b = uniform(n, 3, dtype, 4)
            for kind, A in pairs(of_kinds(n, dtype)) do
                local x = solve(A, b, {kind = "general"})
                for _, M in ipairs{A, A.T:clone().T, A.H:clone().H} do
                    local y, told = solve(M, b, {info = true})
                    -- a matrix of few elements is of other kinds, too
                    if n > 60 and kind ~= "symmetric" then
                        lu.assertEquals(told.kind, kind)
                    end
                    lu.assertTrue(told.error < n * t.unit[dtype], kind)
                    local ratio = told.rcond / rcond(M)
                    lu.assertTrue(ratio > 0.3 and ratio < 4, kind .. ratio)
                    lu.assertTrue(close(x, y, 1e3 * t.unit[dtype]), kind)
                    lu.assertTrue(close(solve(M, b[{{}, 1}]), y[{{}, 1}],
                        1e3 * t.unit[dtype]), kind)
                    lu.assertEquals(solve(M, b[{{}, 1}], {kind = kind}).ndim, 1)
                end
            end
        end
    end
end

function TestKinds:test_bad_input()
    local A = uniform(70, 70, "f32", 1)
    raises(function() solve(tril(A) * 0, ones(70), {info = true}) end,
        "singular", "element 1")
    local L = tril(A)
    L[{9, 9}] = 0
    raises(function() solve(L, ones(70)) end, "singular", "pivot 9")
    raises(function() solve(A, ones(70), {kind = "lower"}) end,
        "above the diagonal", "tril(A)")
    raises(function() solve(A, ones(70), {kind = "symmetric"}) end,
        "not symmetric", "(A + A.T) / 2")
    raises(function() solve(A * im, ones(70), {kind = "symmetric"}) end,
        "not Hermitian", "(A + A.H) / 2")
    raises(function() solve(A * im, ones(70), {kind = "upper"}) end,
        "below the diagonal", "triu(A)")
    raises(function() solve(tril(A) * 0 * im, ones(70), {info = true}) end,
        "singular", "element 1")
    raises(function() solve(L * im, ones(70)) end, "singular", "pivot 9")
    raises(function() solve(A + A.T, ones(70), {kind = "positive"}) end,
        "not positive definite", "order")
    raises(function() solve(ones(3, 2), ones(3), {kind = "banded"}) end,
        "square", "3x2")
    raises(function() solve(A, ones(70), {kind = "nice"}) end, "kind", "nice")
    local _, told = solve(ones(3, 1), vec{1, 2, 3}, {info = true})
    lu.assertEquals({told.kind, told.rank}, {"rectangular", 1})
    -- which only looks positive
    local S = A + A.T
    lu.assertTrue(close(solve(S, ones(70)), solve(S, ones(70),
        {kind = "general"}), 1e-6))
end

function TestKinds:test_warnings_of_batches()
    local solves = 'device "cpu" solve(vcat(eye(2), %s), %s, {batch = 2})'
    local function told(second, b)
        return complaints(solves:format(second, b or "ones(4, 1)"))
    end
    lu.assertStrContains(told "mat{{1, 1/0}, {0, 1}}", "solve: A[{3, 2}] is Inf")
    lu.assertStrContains(told "mat{{0, 1}, {0/0, 1}}",
        "solve: A[{4, 1}] is NaN, in system 2 of the batch")
    lu.assertStrContains(told("eye(2) * 1e-30", "ones(4, 1) * 1e20"),
        "solve: the solution of system 2 of the batch is not finite: its " ..
        "matrix is nearly singular (rows 3 to 4 of A)")
    lu.assertEquals(told "mat{{2, 1}, {1, 2}}", "")
    lu.assertEquals(told("eye(2)", "mat{{1}, {1}, {0/0}, {1}}"), "")
end

function TestKinds:test_warnings()
    lu.assertStrContains(complaints(
        "solve(eye(80) - 2 * diag(ones(79), 1), ones(80))"),
        ":1: solve: the matrix is nearly singular")
    lu.assertEquals(complaints("local A = rand(80, 80) " ..
        "solve(A * A.T + 80 * eye(80), ones(80)) solve(eye(80), ones(80))"), "")
    lu.assertStrContains(complaints("\nsolve(zeros(80, 80), ones(80))"),
        ":2: solve: the matrix is singular")
end

-- By which solve knows that it need not estimate the condition: of what lies on
-- the CPU.
function TestKinds:test_bounds_of_inverses()
    local steps = require "lumat.factor_steps"
    for _, dtype in ipairs{"f32", "f64"} do
        for _, n in ipairs{1, 2, 5, 70, 200} do
            local A = uniform(n, n, dtype, n)
            local scale = logspace(0, -1, n, {dtype = dtype}):col()
            local S = (A * A.T + n * eye(n, {dtype = dtype})) % (scale * scale.T)
            if S.device ~= "cpu" then
                lu.assertNil(steps.inverse_bound(steps.chol(S)))
                S = S:to("cpu")
            end
            local most = steps.inverse_bound(steps.chol((S + S.T) / 2))
            local size = norm(inv(S), 1)
            lu.assertTrue(most > size * 0.999 and most < size * 100, n)
        end
        -- of what is diagonal it is what it bounds
        local D = diag(vec({4, 0.25, 2}, {dtype = dtype, device = "cpu"}))
        lu.assertEquals(steps.inverse_bound(steps.chol(D)), 4.0)
    end
    lu.assertEquals(steps.inverse_bound(mat({{1e-200, 0}, {1, 1e-200}},
        {dtype = "f64", device = "cpu"}).T:clone().T), math.huge)
    -- it is not known of others
    lu.assertNil(steps.inverse_bound(steps.chol(eye(3, {dtype = "c64"}))))
    lu.assertNil(steps.inverse_bound(mat{{1, 0}, {1, 1}}))
    -- and no reason not to warn
    lu.assertStrContains(complaints("local Q = qr(randn(80, 80, {seed = 1})).Q " ..
        "local d = ones(80) d[80] = 6e-7 local A = Q * diag(d) * Q.T " ..
        "solve((A + A.T) / 2, ones(80))"), "nearly singular")
end

function TestKinds:test_batches()
    for _, dtype in ipairs(all_types) do
        for _, s in ipairs{{1, 1, 1}, {7, 3, 2}, {500, 8, 1}, {3, 40, 5}} do
            local k, n, m = s[1], s[2], s[3]
            local A = uniform(k * n, n, dtype, 1) +
                tile(2 * eye(n, {dtype = dtype}), k, 1)
            local b = uniform(k * n, m, dtype, 2)
            local x = solve(A, b, {batch = k})
            lu.assertEquals({x.rows, x.cols, x.dtype}, {k * n, m, dtype})
            for i = 1, k, math.max(1, k // 5) do
                local rows = {(i - 1) * n + 1, i * n}
                lu.assertTrue(close(x[{rows, {}}],
                    solve(A[{rows, {}}], b[{rows, {}}]), 1e4 * t.unit[dtype]))
            end
        end
    end
    -- systems that need pivots, of all the sides at which what solves changes
    for _, dtype in ipairs(all_types) do
        for _, n in ipairs{1, 2, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129} do
            for _, m in ipairs{1, 7} do
                local k = n < 33 and 37 or 3
                local A = uniform(k * n, n, dtype, n) - 0.5
                local b = uniform(k * n, m, dtype, m)
                local x = solve(A, b, {batch = k})
                for i = 1, k, 9 do
                    local rows = {(i - 1) * n + 1, i * n}
                    local a, z = A[{rows, {}}], x[{rows, {}}]
                    lu.assertIsTrue(norm(a * z - b[{rows, {}}]) <=
                        30 * n * t.unit[dtype] * norm(a) * norm(z))
                end
            end
        end
    end
    local v = vec{2, 4, 3, 9}
    equals(solve(mat{{2, 0}, {0, 4}, {3, 0}, {0, 3}}, v, {batch = 2}),
        {1, 1, 1, 3})
    -- neither is changed, and views are read as they are
    local B, c = uniform(24, 16, "f64", 1), uniform(24, 2, "f64", 2)
    local before, beside = B:clone(), c:clone()
    local y = solve(B[{{}, {1, 8}}], c, {batch = 3})
    lu.assertTrue(B == before and c == beside)
    lu.assertTrue(y == solve(B[{{}, {1, 8}}]:clone(), c, {batch = 3}))
    lu.assertTrue(close(solve(B[{{}, {1, 8}}]:f32(), c, {batch = 3}), y, 1e-2))
    for _, n in ipairs{20, 70, 140} do
        local A = tile(eye(n), 4, 1)
        A[{{2 * n + 1, 4 * n}, 5}] = 0
        raises(function() solve(A, ones(4 * n, 1), {batch = 4}) end,
            "system 3", "rows " .. 2 * n + 1)
    end
    local A = tile(eye(2), 5, 1)
    A[{5, 1}] = 0
    raises(function() solve(A, ones(10, 1), {batch = 5}) end, "system 3",
        "rows 5 to 6")
    raises(function() solve(A, ones(10, 1), {batch = 4}) end, "10x2", "4 ")
    raises(function() solve(A, ones(10, 1), {batch = 5, info = true}) end,
        "without info")
end

TestDevices = {}

function TestDevices:test_systems_agree()
    for _, n in ipairs{1, 3, 31, 65} do
        t.agrees(function()
            local A = uniform(n, n, "f64", 1) + n * eye(n, {dtype = "f64"})
            return solve(A, uniform(n, 5, "f64", 2)), inv(A)
        end, "systems", 1e4)
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
