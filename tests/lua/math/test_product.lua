-- Matrix products: every kernel over odd shapes, transposes, views, alpha and
-- beta: bit-exact on integers, within its error bound elsewhere.
local lu = require "luaunit"
local t = require "common"
local equals, inf, nan = t.equals, t.inf, t.nan

local each_kernel, whole, uniform = t.each_kernel,
    t.whole, t.uniform
local reference, exactly = t.reference, t.exactly

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
        for _, s in ipairs{{1, 1, 1}, {2, 3, 5}, {31, 33, 3}, {5, 64, 7}, {33,
            2, 31}} do
            local A, B = whole(s[1], s[2], dtype, 1), whole(s[2], s[3], dtype,
                2)
            equals(A * B, by_loops(A, B))
            equals(B.T * A.T, by_loops(B.T, A.T))
        end
    end
end

TestKernels = {}

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

-- Of all sizes and types, each product C of A and B by each kernel, in each
-- transposition: look(A, B)(C, kernel, what).
local function each_product(make, look)
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs(sizes) do
            local A, B, cases = transpositions(make, s[1], s[2], s[3], dtype)
            local see = look(A, B)
            each_kernel(function(kernel, tile)
                for name, case in pairs(cases) do
                    case[3].kernel, case[3].tile = kernel, tile
                    see(matmul(case[1], case[2], case[3]), kernel,
                        table.concat({kernel, tile or "", name, dtype,
                            s[1], s[2], s[3]}, " "))
                end
            end)
        end
    end
end

function TestKernels:test_integers_are_exact_in_every_transposition()
    each_product(whole, function(A, B)
        local expected = reference(A, B)
        return function(C, _, what) exactly(C, expected, what) end
    end)
end

-- Every element within gamma |A||B|, by the kernel's own bound.
function TestKernels:test_uniform_numbers_stay_within_the_bound()
    each_product(uniform, function(A, B)
        local exact = reference(A, B)
        local size = reference(A:abs(), B:abs())
        -- the reference's own rounding
        local own = kernel_bound("matmul", "reference", "f64", A.cols, "cpu")
        return function(C, kernel, what)
            local gamma = own + kernel_bound("matmul", kernel, C.dtype, A.cols)
            local error = (C:to("cpu"):f64() - exact):abs()
            lu.assertIsTrue((error:le(size * gamma)):all(), what)
        end
    end)
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
            local A, B = whole(s[1], s[2], dtype, 1), whole(s[2], s[3], dtype,
                2)
            local C = whole(s[1], s[3], dtype, 3)
            local product, before = reference(A, B), C:to("cpu"):f64()
            each_kernel(function(kernel, tile)
                for _, w in ipairs{{1, 1}, {2, 0}, {-0.5, 3}, {0, 2}, {1,
                    -1}} do
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

function TestKernels:test_with_alpha_0_the_operands_are_not_read()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs{{2, 3, 2}, {65, 33, 31}, {128, 128, 128}} do
            local A = full(s[1], s[2], nan, {dtype = dtype})
            local B = full(s[2], s[3], inf, {dtype = dtype})
            each_kernel(function(kernel, tile)
                local out = ones(s[1], s[3], {dtype = dtype})
                local how = {kernel = kernel, tile = tile, alpha = 0,
                    beta = 3, out = out}
                matmul(A, B, how)
                lu.assertIsTrue(out:eq(3):all(), kernel)
                how.beta = 0
                matmul(A, B, how)
                lu.assertIsTrue(out:eq(0):all(), kernel)
            end)
        end
    end
    lu.assertIsTrue(matmul(full(2, 2, nan), ones(2, 2),
        {alpha = 0}):eq(0):all())
    lu.assertErrorMsgContains("inner dimensions", matmul, ones(2, 3),
        ones(2, 3), {alpha = 0})
end

function TestKernels:test_empty_products_know_their_kernels()
    local empty = {zeros(0, 3), zeros(3, 4)}
    lu.assertErrorMsgContains("'fast'", matmul, empty[1], empty[2],
        {kernel = "fast"})
    lu.assertErrorMsgContains("'fast'", dot, zeros(0), zeros(0),
        {kernel = "fast"})
    lu.assertErrorMsgContains('"f8"', matmul, empty[1], empty[2],
        {precision = "f8"})
end

function TestKernels:test_a_bound_is_that_of_a_named_kernel()
    local ok, message = pcall(kernel_bound, "matmul", "auto", "f32", 3)
    lu.assertIsFalse(ok)
    lu.assertStrContains(message, "there are ")
    lu.assertNotStrContains(message, "are auto")
end

TestPrecision = {}

local function rung_of(precision)
    for _, k in ipairs(kernel_list()) do
        if k.operation == "matmul" and k.available and
            k.precision == precision then
            return k.name
        end
    end
end

function TestPrecision:test_the_operands_own_is_what_auto_takes()
    for _, dtype in ipairs{"f32", "f64"} do
        local A, B = uniform(65, 33, dtype, 1), uniform(33, 31, dtype, 2)
        lu.assertIsTrue(matmul(A, B, {precision = dtype}) == A * B, dtype)
        lu.assertIsTrue(matmul(A, B, {precision = dtype, kernel = "auto"}) ==
            A * B, dtype)
        local other = dtype == "f32" and "f64" or "f32"
        lu.assertErrorMsgContains("multiplies " .. dtype ..
            ' in precision "' .. other .. '"', matmul, A, B,
            {precision = other})
    end
end

function TestPrecision:test_another_takes_the_first_kernel_that_has_it()
    local A, B = uniform(128, 64, "f32", 1), uniform(64, 96, "f32", 2)
    for _, precision in ipairs{"tf32", "bf16"} do
        local name, how = rung_of(precision), {precision = precision}
        if name then
            lu.assertIsTrue(matmul(A, B, how) ==
                matmul(A, B, {kernel = name}), precision)
        else
            lu.assertErrorMsgContains('no kernel on', matmul, A, B, how)
        end
        lu.assertErrorMsgContains('multiplies f64', matmul, A:f64(), B:f64(),
            how)
    end
    lu.assertErrorMsgContains('"f32", "f64", "tf32" or "bf16"', matmul, A, B,
        {precision = "half"})
end

-- Kernels may keep what they worked out about an operand, until any write.
-- Of which half is copied from the other.
TestOwnTranspose = {}

local function check_own_transpose(kernel, tile, dtype, s)
    local A = whole(s[1], s[2], dtype, s[2])
    local wide = whole(s[1] + 1, 2 * s[2] + 1, dtype, 3)
    local of = ("%s %s %d"):format(kernel, dtype, s[2])
    local function times(X, Y, how)
        how = how or {}
        how.kernel, how.tile = kernel, tile
        return matmul(X, Y, how)
    end
    for _, X in ipairs{A, wide["2:, 2::2"]} do
        local want = times(X.T:clone(), X)
        lu.assertIsTrue(times(X.T, X) == want, of)
        lu.assertIsTrue(times(X.T, X, {alpha = -0.5}) == want * -0.5, of)
        local C = want * 0 + 1
        times(X.T, X, {beta = 2, out = C})
        lu.assertIsTrue(C == want + 2, of)
        local Y = X.T:clone()
        lu.assertIsTrue(times(Y, Y.T) == want, of)
    end
end

function TestOwnTranspose:test_it_is_the_product_with_a_copy()
    each_kernel(function(kernel, tile)
        for _, dtype in ipairs{"f32", "f64"} do
            for _, s in ipairs{{70, 511}, {64, 512}, {7, 513}, {65, 600}} do
                check_own_transpose(kernel, tile, dtype, s)
            end
        end
    end)
end

function TestOwnTranspose:test_it_is_symmetric()
    local A = randn(77, 600, {seed = 1, dtype = "f64", device = t.device})
    if A.device == "cpu" then
        local C = A.T * A
        lu.assertIsTrue(C == C.T)
    end
end

TestKept = {}

local writes = {
    function(A) A[{1, 1}] = 7 end,
    function(A) A[2] = 3 end,
    function(A) A["3:9, 2:5"] = -2 end,
    function(A) A[A:gt(4)] = 0 end,
    function(A) A:add_(1) end,
    function(A) add(A, A, {out = A}) end,
    function(A) A.T[{2, 1}] = 9 end,
    function(A) matmul(A:clone(), eye(#A), {out = A, alpha = -1}) end}

function TestKept:test_a_write_is_seen_by_the_next_product()
    each_kernel(function(kernel)
        local A, B = whole(128, 128, "f32", 1), whole(128, 128, "f32", 2)
        local how = {kernel = kernel}
        for i, write in ipairs(writes) do
            for _, operand in ipairs{A, B} do
                matmul(A, B, how)
                matmul(A, B, how) -- from what is kept, if anything is
                write(operand)
                lu.assertIsTrue(matmul(A, B, how) ==
                    matmul(A:clone(), B:clone(), how), kernel .. " " .. i)
            end
        end
    end)
end

function TestKept:test_what_is_kept_stays_in_its_limit_and_can_be_dropped()
    local A, B = whole(512, 512, "f32", 1), whole(512, 512, "f32", 2)
    local C = A * B
    keep_limit(0)
    lu.assertEquals(memory().kept, 0)
    lu.assertIsTrue(A * B == C)
    lu.assertEquals(memory().kept, 0)
    keep_limit(2 ^ 30)
    for _ = 1, 3 do lu.assertIsTrue(A * B == C) end
    lu.assertIsTrue(memory().kept <= 2 ^ 30)
    forget(A)
    forget(B)
    lu.assertEquals(memory().kept, 0)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
