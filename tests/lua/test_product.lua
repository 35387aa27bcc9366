-- Products: every kernel over odd shapes, transposes, views, alpha and beta:
-- bit-exact on integers, within its error bound elsewhere; powers, systems,
-- verify and race.
local lu = require "luaunit"
local t = dofile((arg[0]:match("^.*/") or "") .. "common.lua")
local equals, raises, near, inf, nan = t.equals, t.raises, t.near, t.inf, t.nan
local places = t.places

-- The names of an operation's kernels on the device under test.
local function rungs(operation)
    local names = {}
    for _, k in ipairs(kernel_list()) do
        if k.operation == operation and k.available then
            names[#names + 1] = k.name
        end
    end
    return names
end

-- f(kernel, tile) for every kernel of matmul, and every tile it may have.
local function each_kernel(f)
    for _, name in ipairs(rungs("matmul")) do
        local tiles = name == "tiled" and {8, 16, 32} or {0}
        for _, tile in ipairs(tiles) do f(name, tile > 0 and tile or nil) end
    end
end

local function whole(m, n, dtype, seed)
    return randint(-4, 4, m, n, {seed = seed, dtype = dtype})
end

local function uniform(m, n, dtype, seed)
    return rand(m, n, {seed = seed, dtype = dtype, low = -1, high = 1})
end

-- The product by three loops in Lua, in double precision.
local function by_loops(A, B)
    local a, b, c = A:totable(), B:totable(), {}
    for i = 1, A.rows do
        c[i] = {}
        for j = 1, B.cols do
            local s = 0.0
            for l = 1, A.cols do s = s + a[i][l] * b[l][j] end
            c[i][j] = s
        end
    end
    return c
end

local sizes = {{1, 1, 1}, {2, 3, 5}, {1, 33, 2}, {5, 1, 31}, {31, 33, 3},
    {33, 31, 65}, {64, 5, 127}, {65, 127, 64}, {127, 65, 33}, {3, 64, 1},
    {127, 127, 127}, {64, 64, 64}}

TestLoops = {}

function TestLoops:test_the_default_product_is_the_three_loops()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs{{1, 1, 1}, {2, 3, 5}, {31, 33, 3}, {5, 64, 7}, {33, 2, 31}} do
            local A, B = whole(s[1], s[2], dtype, 1), whole(s[2], s[3], dtype, 2)
            equals(A * B, by_loops(A, B))
            equals(B.T * A.T, by_loops(B.T, A.T))
        end
    end
end

TestKernels = {}

-- The reference comes from the CPU's three-loop kernel in f64, where integers
-- are exact.
local function reference(A, B)
    return matmul(A:to("cpu"):f64(), B:to("cpu"):f64(), {kernel = "reference"})
end

local function exactly(got, expected, what)
    lu.assertEquals(got.shape, expected.shape, what)
    lu.assertIsTrue(got:to("cpu"):f64() == expected, what)
end

-- All four transpositions, by view and by option.
local function transpositions(make, m, k, n, dtype)
    local A, B = make(m, k, dtype, 1), make(k, n, dtype, 2)
    local At, Bt = A.T:clone(), B.T:clone()
    return A, B, {
        NN = {A, B, {}}, TN = {At.T, B, {}}, NT = {A, Bt.T, {}},
        TT = {At.T, Bt.T, {}}, optionTN = {At, B, {transA = true}},
        optionNT = {A, Bt, {transB = true}},
        optionTT = {At, Bt, {transA = true, transB = true}},
    }
end

function TestKernels:test_integers_are_exact_in_every_transposition()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs(sizes) do
            local A, B, cases = transpositions(whole, s[1], s[2], s[3], dtype)
            local expected = reference(A, B)
            each_kernel(function(kernel, tile)
                for name, case in pairs(cases) do
                    case[3].kernel, case[3].tile = kernel, tile
                    exactly(matmul(case[1], case[2], case[3]), expected,
                        table.concat({kernel, tile or "", name, dtype,
                            s[1], s[2], s[3]}, " "))
                end
            end)
        end
    end
end

-- Every element within gamma |A||B|, by the kernel's own bound.
local function within_bound(C, A, B, kernel, what)
    local exact = reference(A, B)
    local size = reference(A:abs(), B:abs())
    local gamma = kernel_bound("matmul", kernel, C.dtype, A.cols)
    -- the reference's own rounding
    gamma = gamma + kernel_bound("matmul", "reference", "f64", A.cols, "cpu")
    local error = (C:to("cpu"):f64() - exact):abs()
    lu.assertIsTrue((error:le(size * gamma)):all(), what)
end

function TestKernels:test_uniform_numbers_stay_within_the_bound()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs(sizes) do
            local A, B, cases = transpositions(uniform, s[1], s[2], s[3], dtype)
            each_kernel(function(kernel, tile)
                for name, case in pairs(cases) do
                    case[3].kernel, case[3].tile = kernel, tile
                    within_bound(matmul(case[1], case[2], case[3]), A, B, kernel,
                        table.concat({kernel, tile or "", name, dtype,
                            s[1], s[2], s[3]}, " "))
                end
            end)
        end
    end
end

function TestKernels:test_strided_and_offset_views()
    for _, dtype in ipairs{"f32", "f64"} do
        local P, Q = whole(140, 150, dtype, 3), whole(150, 140, dtype, 4)
        local views = {
            {P["3:35,2:66"], Q["2:66,5:35"]},
            {P["1:65:2,::3"], Q["1:99:2,2:64:2"]},
            {P["33:1:-1,10:74"], Q["10:74,end:100:-1"]},
            {P["::-4,::-5"].T, Q["2:70:2,::7"].T.T},
            {Q["1:99:3,1:33"].T, P["1:33,1:65:2"]},
            {P[":,1:1"], Q["1:1,:"]},
            {P["2:2,:"], Q[":,end:end"]},
        }
        for i, v in ipairs(views) do
            if v[1].cols == v[2].rows then
                local expected = reference(v[1], v[2])
                each_kernel(function(kernel, tile)
                    exactly(matmul(v[1], v[2], {kernel = kernel, tile = tile}),
                        expected, kernel .. " " .. (tile or "") .. " view " .. i)
                end)
            end
        end
    end
end

function TestKernels:test_alpha_and_beta()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs{{1, 1, 1}, {5, 3, 2}, {33, 31, 65}, {64, 127, 64}} do
            local A, B = whole(s[1], s[2], dtype, 1), whole(s[2], s[3], dtype, 2)
            local C = whole(s[1], s[3], dtype, 3)
            local product, before = reference(A, B), C:to("cpu"):f64()
            each_kernel(function(kernel, tile)
                for _, w in ipairs{{1, 1}, {2, 0}, {-0.5, 3}, {0, 2}, {1, -1}} do
                    local out = C:clone()
                    matmul(A, B, {kernel = kernel, tile = tile, alpha = w[1],
                        beta = w[2], out = out})
                    exactly(out, product * w[1] + before * w[2],
                        table.concat({kernel, dtype, w[1], w[2]}, " "))
                end
            end)
        end
    end
end

function TestKernels:test_with_beta_0_the_result_is_not_read()
    for _, s in ipairs{{3, 5, 2}, {65, 33, 31}, {4, 0, 3}} do
        local A, B = whole(s[1], s[2], "f32", 1), whole(s[2], s[3], "f32", 2)
        local expected = reference(A, B)
        each_kernel(function(kernel, tile)
            local out = full(s[1], s[3], nan)
            matmul(A, B, {kernel = kernel, tile = tile, out = out, beta = 0})
            exactly(out, expected, kernel)
        end)
    end
end

function TestKernels:test_results_into_views()
    for _, dtype in ipairs{"f32", "f64"} do
        local A, B = whole(33, 65, dtype, 1), whole(65, 31, dtype, 2)
        local expected = reference(A, B)
        each_kernel(function(kernel, tile)
            local how = {kernel = kernel, tile = tile}
            local big = zeros(70, 70, {dtype = dtype})
            how.out = big["3:35,4:34"]
            matmul(A, B, how)
            exactly(how.out, expected, kernel .. " block")
            lu.assertEquals(sum(big:ne(0)), sum(expected:ne(0)), kernel)
            how.out = zeros(31, 33, {dtype = dtype}).T
            matmul(A, B, how)
            exactly(how.out, expected, kernel .. " transposed")
            how.out = zeros(66, 62, {dtype = dtype})["::-2,::2"]
            matmul(A, B, how)
            exactly(how.out, expected, kernel .. " strided")
        end)
    end
end

function TestKernels:test_the_result_may_be_an_operand()
    each_kernel(function(kernel, tile)
        local A, B = whole(33, 33, "f32", 1), whole(33, 33, "f32", 2)
        local expected = reference(A, B)
        matmul(A, B, {kernel = kernel, tile = tile, out = A})
        exactly(A, expected, kernel)
    end)
    local A = whole(5, 5, "f64", 1)
    local expected = reference(A, A.T)
    matmul(A, A.T, {out = A})
    exactly(A, expected)
end

function TestKernels:test_nan_and_inf_go_where_they_must()
    each_kernel(function(kernel, tile)
        local A, B = ones(33, 40), ones(40, 34)
        A[{2, 3}], B[{7, 5}] = nan, inf
        local C = matmul(A, B, {kernel = kernel, tile = tile})
        lu.assertEquals(sum(C:isnan()), 34, kernel)
        lu.assertEquals(sum(C[":,5"]:isinf()), 32, kernel)
        lu.assertEquals(sum(C:eq(40)), 33 * 34 - 34 - 32, kernel)
    end)
end

function TestKernels:test_empty_products()
    each_kernel(function(kernel, tile)
        local how = {kernel = kernel, tile = tile}
        lu.assertEquals(matmul(zeros(0, 3), zeros(3, 4), how).shape, {0, 4})
        lu.assertEquals(matmul(zeros(3, 2), zeros(2, 0), how).shape, {3, 0})
        equals(matmul(zeros(2, 0), zeros(0, 2), how), {{0, 0}, {0, 0}})
    end)
    local C = mat{{1, 2}}
    matmul(zeros(1, 0), zeros(0, 2), {out = C, beta = 3})
    equals(C, {{3, 6}})
    lu.assertEquals(dot(zeros(0), zeros(0)), 0)
    lu.assertEquals((zeros(0, 2) * zeros(2)).shape, {0})
end

TestVectors = {}

function TestVectors:test_vectors_are_rows_on_the_left_columns_on_the_right()
    local A, v, w = mat{{1, 2, 3}, {4, 5, 6}}, vec{1, 0, -1}, vec{1, 10}
    equals(A * v, {-2, -2})
    equals(w * A, {41, 52, 63})
    lu.assertEquals(v * v, 2)
    equals(A.T * w, {41, 52, 63})
    equals(A * A[1], {14, 32})
    equals(A[":,2"] * A, {22, 29, 36})
    each_kernel(function(kernel, tile)
        for _, n in ipairs{1, 31, 65, 127} do
            local M, x = whole(33, n, "f64", 1), whole(n, 1, "f64", 2)
            local how = {kernel = kernel, tile = tile}
            local y = matmul(M, x:flatten(), how)
            exactly(y:col(), reference(M, x), kernel)
            y = matmul(x:flatten(), M.T, how)
            exactly(y:row(), reference(x.T, M.T), kernel)
        end
    end)
end

function TestVectors:test_dot_of_every_kernel()
    for _, kernel in ipairs(rungs("dot")) do
        for _, dtype in ipairs{"f32", "f64"} do
            for _, n in ipairs{1, 2, 3, 5, 31, 33, 64, 65, 127, 1000, 100003} do
                local what = kernel .. " " .. dtype .. " " .. n
                local x = whole(n, 2, dtype, 1)[":,2"]
                local y = whole(n, 1, dtype, 2)[":,1"]
                local how = {kernel = kernel}
                lu.assertEquals(dot(x, y, how), sum(x % y), what)
                lu.assertEquals(dot(x["::-1"], y["::-1"], how), sum(x % y), what)
                local u = uniform(n, 1, dtype, 3):flatten()
                local v = uniform(n, 1, dtype, 4):flatten()
                local wide, other = u:f64(), v:f64()
                local limit = kernel_bound("dot", kernel, dtype, n) +
                    n * 2.0 ^ -53
                lu.assertIsTrue(math.abs(dot(u, v, how) - sum(wide % other)) <=
                    limit * sum(abs(wide % other)), what)
            end
        end
    end
end

function TestVectors:test_the_lesson()
    local a, b = range(0, 1023), full(1024, 2)
    for _, kernel in ipairs(rungs("dot")) do
        lu.assertEquals(dot(a, b, {kernel = kernel}), 1023 * 1024)
    end
end

TestTypes = {}

function TestTypes:test_the_wider_type_wins()
    local s, d = mat{{1, 2}, {3, 4}}, mat({{0.1, 0}, {0, 1}}, {dtype = "f64"})
    lu.assertEquals((s * s).dtype, "f32")
    lu.assertEquals((s * d).dtype, "f64")
    equals(s * d, {{0.1, 2}, {3 * 0.1, 4}})
    local m = mat{{true, false}, {true, true}}
    equals(m * m, {{1, 0}, {2, 1}})
    lu.assertEquals((m * m).dtype, "f32")
    local out = zeros(2, 2)
    matmul(s, d, {out = out})
    equals(out, {{t.single(0.1), 2}, {t.single(3 * 0.1), 4}})
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
    raises(function() return ones(2, 2) ^ 0.5 end, "0.5", "whole", "A:pow")
    raises(function() return 2 ^ ones(2, 2) end, "pow")
    raises(function() return ones(2, 2) ^ ones(2, 2) end, "whole")
    raises(function() return vec{1, 2} ^ 2 end, "square", "vector 2")
    raises(function() return ones(2, 2) ^ -1 end, "singular")
end

TestSystems = {}

function TestSystems:test_solve_inv_det()
    for _, dtype in ipairs{"f32", "f64"} do
        local tolerance = dtype == "f32" and 1e-3 or 1e-10
        for _, n in ipairs{1, 2, 3, 31, 65} do
            local A = uniform(n, n, dtype, n) + n * eye(n, {dtype = dtype})
            local x = uniform(n, 3, dtype, 2)
            lu.assertIsTrue(close(solve(A, A * x), x, tolerance))
            lu.assertIsTrue(close(solve(A.T, A.T * x[":,2"]), x[":,2"], tolerance))
            lu.assertIsTrue(close(A * inv(A), eye(n, {dtype = dtype}), tolerance))
            near(det(A) * det(inv(A)), 1, tolerance)
            lu.assertEquals(solve(A, x).dtype, dtype)
        end
    end
    lu.assertEquals(det(mat{{0, 1}, {1, 0}}), -1)
    near(det(mat({{2, 1, 3}, {0, 3, 1}, {4, 1, 1}}, {dtype = "f64"})), -28, 1e-14)
    lu.assertEquals(det(zeros(0, 0)), 1)
    lu.assertEquals(det(ones(3, 3)), 0)
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
    raises(function() solve(ones(2, 2), vec{1, 2}) end, "singular")
    raises(function() inv(zeros(3, 3)) end, "singular")
    raises(function() inv(ones(2, 3)) end, "square", "2x3")
    raises(function() det(ones(2, 3)) end, "square", "2x3")
    raises(function() solve(ones(2, 3), ones(2)) end, "square", "2x3")
    raises(function() solve(eye(2), ones(3)) end, "2x2", "vector 3")
    raises(function() solve(eye(2), 3) end, "matrix expected", "number")
end

TestVerify = {}

function TestVerify:test_right_products_are_accepted()
    for _, dtype in ipairs{"f32", "f64"} do
        local A, B = uniform(65, 127, dtype, 1), uniform(127, 33, dtype, 2)
        each_kernel(function(kernel, tile)
            local v = verify(matmul(A, B, {kernel = kernel, tile = tile}), A, B)
            lu.assertIsTrue(v.accept, kernel)
            lu.assertIsTrue(v.ratio <= 1)
            lu.assertStrContains(tostring(v), "Accept")
        end)
    end
    lu.assertIsTrue(verify(vec{1, 2} * vec{3, 4}, vec{1, 2}, vec{3, 4}).accept)
end

function TestVerify:test_wrong_products_fail_with_the_place()
    local A, B = uniform(33, 65, "f32", 1), uniform(65, 31, "f32", 2)
    local C = A * B
    local spoil = {1e-3, -1, nan, inf}
    for _, by in ipairs(spoil) do
        local wrong = C:clone()
        wrong[{20, 7}] = C(20, 7) + by
        local v = verify(wrong, A, B)
        lu.assertIsFalse(v.accept, by)
        lu.assertStrContains(tostring(v), "FAILS")
        lu.assertStrContains(tostring(v), "[20, 7]")
    end
    lu.assertIsFalse(verify(C:flip():clone(), A, B).accept)
    lu.assertIsFalse(verify(zeros(33, 31), A, B).accept)
    lu.assertIsFalse(verify(C * 1.001, A, B).accept)
    lu.assertIsFalse(verify(12, vec{1, 2}, vec{3, 4}).accept)
end

function TestVerify:test_a_result_of_another_shape_is_an_error()
    raises(function() verify(ones(2, 2), ones(2, 3), ones(3, 4)) end, "2x2")
end

function TestVerify:test_race_ranks_every_kernel()
    local A, B = uniform(33, 31, "f32", 1), uniform(31, 65, "f32", 2)
    for _, operands in ipairs{{A, B}, {A[1], A[2]}} do
        local ranked = race(operands[1], operands[2], {seconds = 0.01})
        local expected = rungs(operands[1].ndim == 2 and "matmul" or "dot")
        lu.assertEquals(#ranked, #expected)
        for i, row in ipairs(ranked) do
            lu.assertIsTrue(row.accept, row.name)
            lu.assertIsTrue(row.time > 0 and row.gflops > 0)
            lu.assertIsTrue(i == 1 or ranked[i - 1].time <= row.time)
            lu.assertStrContains(tostring(ranked), row.name)
        end
    end
end

TestErrors = {}

function TestErrors:test_shapes_names_and_the_transposes_that_fit()
    local A, C = ones(1024, 768), ones(1024, 768)
    raises(function()
        local P, Q = A, C
        return P * Q
    end, "matmul: inner dimensions differ (768 and 1024)",
        "P is 1024x768, Q is 1024x768", "P.T * Q is 768x768",
        "P * Q.T is 1024x1024", "P % Q is element by element")
    -- as a script's functions see them
    raises(function() return A * C end, "A is 1024x768", "C is 1024x768",
        "A.T * C is 768x768", "A * C.T is 1024x1024")
    raises(function() local P, v = ones(2, 3), vec{1, 2} return P * v end,
        "P is 2x3", "v is vector 2", "P.T * v is")
    raises(function() local v, w = ones(2), ones(3) return v * w end,
        "dot", "v is vector 2", "w is vector 3")
    raises(function() return ones(2, 3) * ones(5, 7) end, "2x3", "5x7")
end

function TestErrors:test_wrong_arguments()
    local A = ones(2, 2)
    raises(function() return A * {} end, "matrix or number", "table")
    raises(function() return A * "2" end, "string")
    raises(function() return nil * A end, "nil")
    raises(function() matmul(A, 3) end, "matrix expected", "number")
    raises(function() matmul(A) end, "#2", "matrix expected")
    raises(function() dot(A, A) end, "two vectors", "2x2")
    raises(function() matmul(A, A, {kernel = "fast"}) end, "'fast'", "auto")
    raises(function() dot(A[1], A[1], {kernel = "fast"}) end, "'fast'", "auto")
    raises(function() matmul(A, A, {kernel = 3}) end, "kernel", "number")
    raises(function() matmul(A, A, {kernl = "auto"}) end, "'kernl'", "'kernel'")
    raises(function() matmul(A, A, {alpha = "1"}) end, "alpha", "string")
    raises(function() matmul(A, A, {beta = 1}) end, "beta", "out")
    raises(function() matmul(A, A, {out = ones(3, 2)}) end, "2x2", "3x2")
    raises(function() matmul(A, A, {out = ones(4)}) end, "2x2", "vector 4")
    raises(function() matmul(A, A, {out = 4}) end, "out", "number")
    raises(function() matmul(A, A, {precision = "f8"}) end, "f8")
    raises(function() kernel_bound("matmul", "x", "f32", 3) end, "'x'")
    raises(function() kernel_list("abacus") end, "abacus")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
