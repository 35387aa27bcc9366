-- Products with vectors, dot, mixed types; verify, race, and what products say
-- of operands that do not fit.
local lu = require "luaunit"
local t = require "common"
local equals, raises, inf, nan = t.equals, t.raises, t.inf, t.nan

local rungs, each_kernel, whole, uniform = t.rungs, t.each_kernel,
    t.whole, t.uniform
local reference, exactly = t.reference, t.exactly

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
                lu.assertEquals(dot(x["::-1"], y["::-1"], how), sum(x % y),
                    what)
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

TestVerify = {}

function TestVerify:test_right_products_are_accepted()
    for _, dtype in ipairs{"f32", "f64"} do
        local A, B = uniform(65, 127, dtype, 1), uniform(127, 33, dtype, 2)
        each_kernel(function(kernel, tile)
            local v = verify(matmul(A, B, {kernel = kernel, tile = tile}), A,
                B, {kernel = kernel})
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

function TestVerify:test_the_bound_may_be_a_kernels_or_given()
    local A, B = uniform(33, 65, "f32", 1), uniform(65, 31, "f32", 2)
    local C = A * B + 1e-3 * (abs(A) * abs(B))
    lu.assertIsFalse(verify(C, A, B).accept)
    lu.assertIsFalse(verify(C, A, B, {kernel = rungs("matmul")[1]}).accept)
    local v = verify(C, A, B, {bound = 2e-3})
    lu.assertIsTrue(v.accept)
    t.near(v.ratio, 0.5, 1e-2)
    t.near(v.worst, 1e-3, 1e-2)
    raises(function() verify(C, A, B, {kernel = "fast"}) end, "'fast'")
    raises(function() verify(C, A, B, {bound = -1}) end, "bound", "-1")
    raises(function() verify(C, A, B, {bond = 1}) end, "'bond'", "'bound'")
end

function TestVerify:test_a_result_of_another_shape_is_an_error()
    raises(function() verify(ones(2, 2), ones(2, 3), ones(3, 4)) end,
        "verify: C is 2x2, but A * B is 2x4 (A is 2x3, B is 3x4)")
    raises(function() verify(ones(3, 3), ones(2, 2), ones(2, 2)) end,
        "C is 3x3, but A * B is 2x2")
    raises(function() verify(1, ones(2, 2), ones(2)) end, "C is a number",
        "vector 2")
    raises(function() verify(ones(2), ones(2), ones(2)) end, "C is vector 2",
        "A * B is a number")
end

-- Every message opens with the place of the caller, here this file.
local function raises_here(f, ...)
    local message = raises(f, ...)
    lu.assertStrMatches(message, "^[^:]*test_vectors%.lua:%d+: .*")
end

function TestVerify:test_wrong_arguments_are_named_with_the_callers_place()
    local A, freed = ones(2, 2), ones(2, 2)
    freed:free()
    raises_here(function() verify(A, 2, 3) end, "verify: A is 2",
        "expected a matrix")
    raises_here(function() verify(A) end, "verify: A is missing")
    raises_here(function() verify("x", A, A) end, 'C is "x"')
    raises_here(function() verify(A, A, ones(3, 2)) end, "2 and 3", "3x2")
    raises_here(function() verify(A, freed, A) end, "A is a freed matrix")
    raises_here(function() race(A) end, "race: operation is missing",
        "or race(A, B)")
    raises_here(function() race(A, ones(3, 3)) end, "2x2", "3x3")
    raises_here(function() race(A, A, {second = 1}) end, "second", "seconds")
    raises_here(function() bench(1) end, "bench: f is 1")
    raises_here(function() bench(print, 3) end, "options are 3")
    raises_here(function() bench(print, {seconds = -1}) end, "seconds", "-1")
    raises_here(function() bench(print, {device = "abacus"}) end, "abacus")
    raises_here(function() bench(function() error("mine") end) end, "mine")
    raises_here(function() kernels("abacus") end, "abacus")
    raises_here(function() kernels({}) end, "device is a table")
    raises_here(function() close(A) end, "close: B is missing")
    raises_here(function() close(freed, A) end, "A is a freed matrix")
    raises_here(function() close(A, A, "x") end, 'tolerance is "x"')
    raises_here(function() close(A, A, -1) end, "tolerance", "-1")
end

function TestVerify:test_what_the_user_makes_of_globals_is_no_matter()
    local code = [[
        local A = ones(2, 2)
        math, table, string, setmetatable, ipairs, pcall, type = nil
        error, tostring, getmetatable, next = nil
        return verify(A * A, A, A).accept and close(A, A) and
            race(A, A, {seconds = 1e-3})[1].accept and
            bench(function() end, {seconds = 1e-3}).runs > 0 and
            kernels().count > 0]]
    local names = {"math", "table", "string", "setmetatable", "ipairs",
        "pcall", "type", "error", "tostring", "getmetatable", "next"}
    local kept = {}
    for _, name in ipairs(names) do kept[name] = _G[name] end
    local ok, result = pcall(load(code))
    for name, value in kept.next, kept do _G[name] = value end
    lu.assertIsTrue(result)
    lu.assertIsTrue(ok)
end

function TestVerify:test_race_ranks_every_kernel()
    local A, B = uniform(33, 31, "f32", 1), uniform(31, 65, "f32", 2)
    for _, operands in ipairs{{A, B}, {A[1], A[2]}} do
        local ranked = race(operands[1], operands[2], {seconds = 0.01})
        local expected = rungs(operands[1].ndim == 2 and "matmul" or "dot")
        lu.assertEquals(#ranked, #expected)
        for i, row in ipairs(ranked) do
            if row.accept == nil then -- it says that it is not made for this
                lu.assertStrContains(row.why,
                    "kernel " .. row.name .. " cannot")
            else
                lu.assertIsTrue(row.accept, row.name)
                lu.assertIsTrue(row.time > 0 and row.gflops > 0)
                lu.assertIsTrue(row.rate > 0 and row.share > 0)
                lu.assertIsTrue(row.error >= 0 and row.worst >= 0)
            end
            lu.assertIsTrue(i == 1 or ranked[i - 1].time <= row.time)
            lu.assertStrContains(tostring(ranked), row.name)
        end
    end
end

-- "cannot" and which limit, in place of a time.
function TestVerify:test_race_says_which_kernels_cannot()
    local ranked = race(uniform(5, 4, "f64", 1), uniform(4, 3, "f64", 2),
        {seconds = 0.001})
    for _, row in ipairs(ranked) do
        lu.assertIsTrue(row.accept or row.why:find(row.name, 1, true) ~= nil)
    end
end

-- The device's peak is that of multiply-adds: 3.4 of it is 340 %.
function TestVerify:test_rates_and_shares()
    local limit = peak()
    local value, unit, share, whose = rate(3.4 * limit.f32_flops, 0, 1)
    -- what is above the peak has it measured again: it may be higher now
    t.near(share, 3.4 * limit.f32_flops / peak().f32_flops, 1e-12)
    lu.assertEquals(whose, "f32")
    t.near(value * (unit == "TFLOP/s" and 1e12 or 1e9), 3.4 * limit.f32_flops,
        1e-12)
    limit = peak()
    value, unit, share, whose = rate(1, limit.bytes, 2, "f64")
    lu.assertEquals({unit, share, whose}, {"GB/s", 0.5, "memory"})
    t.near(value, limit.bytes / 2e9, 1e-12)
    local all, _, part = rate(1, limit.bytes, 2, "f64", nil, 4)
    lu.assertEquals(part, 0.125)
    t.near(all, value, 1e-12)
    raises(function() rate(1, 1, 1, "f32", nil, 0) end, "devices is 0")
    raises(function() rate(1, 1, 0) end, "above 0")
    raises(function() rate(1, 1, 1, "f8") end, 'dtype is "f8", expected "f32", "f64",' ..
        ' "c64" or "c128"')
end

function TestVerify:test_the_ladder_for_a_product()
    local A, v = uniform(5, 4, "f32", 1), uniform(4, 1, "f32", 2)[":,1"]
    for _, list in ipairs{kernels(A, A.T), kernels(A, v), kernels(v, v)} do
        lu.assertEquals(list.count, #list)
        lu.assertStrContains(tostring(list), "auto takes " .. list.choice)
        lu.assertStrContains(tostring(list), "* " .. list.choice)
    end
    lu.assertEquals(kernels(A, v)[1].operation, "matmul")
    lu.assertEquals(kernels(v, v)[1].operation, "dot")
    raises(function() kernels(A, A) end, "5x4")
    raises(function() kernels(A) end, "B is missing")
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
    raises(function() local P, v = ones(2, 3), vec{1, 2} return P * v end,
        "P.T * v is vector 3")
    raises(function() local P, v = ones(2, 3), vec{1, 2, 3} return v * P end,
        "v * P.T is vector 2")
    raises(function() return ones(2, 3) * ones(5, 7) end, "2x3", "5x7")
end

-- The message without its second line, which only blames the operands.
local function blames_nobody(f, ...)
    lu.assertNil(raises(f, ...):find("\n"))
end

function TestErrors:test_hints_are_given_only_where_they_help()
    local message = raises(function() return vec{1, 2} * vec{1, 2, 3} end,
        "2 and 3")
    lu.assertNil(message:find("would fit"))
    local A, B = ones(2, 2), ones(3, 3)
    blames_nobody(function() matmul(A, A, {out = B}) end, "2x2", "out is 3x3")
    blames_nobody(function() add(A, A, {out = B}) end, "2x2", "out is 3x3")
    message = raises(function() return ones(2, 3) + ones(4, 2) end, "2x3")
    lu.assertNil(message:find("would fit"))
    raises(function() local P, Q = ones(2, 3), ones(3, 2) return P + Q end,
        "Q.T would fit")
    raises(function() local P, v = ones(2, 3), ones(3) return P + v end,
        "v:row() would fit")
    raises(function() local P, v = ones(2, 3), ones(2) return P + v end,
        "v:col() would fit")
end

function TestErrors:test_wrong_arguments()
    local A = ones(2, 2)
    raises(function() return A * {} end, "a matrix or a number", "table")
    raises(function() return A * "2" end, "A * B: B is \"2\", expected")
    raises(function() return nil * A end, "nil")
    raises(function() matmul(A, 3) end, "matmul: B is 3, expected a matrix")
    raises(function() matmul(A) end, "matmul: B is missing, expected a matrix")
    raises(function() dot(A, A) end, "dot: takes vectors", "A * B", "sum(A % B)")
    raises(function() matmul(A, A, {kernel = "fast"}) end, "'fast'", "auto")
    raises(function() dot(A[1], A[1], {kernel = "fast"}) end, "'fast'", "auto")
    raises(function() matmul(A, A, {kernel = 3}) end, "kernel is 3", "kernel's name")
    raises(function() matmul(A, A, {kernl = "auto"}) end, "'kernl'", "'kernel'")
    raises(function() matmul(A, A, {alpha = "1"}) end, 'alpha is "1", expected a number')
    raises(function() matmul(A, A, {beta = 1}) end, "beta", "out")
    raises(function() matmul(A, A, {out = ones(3, 2)}) end, "2x2", "3x2")
    raises(function() matmul(A, A, {out = ones(4)}) end, "2x2", "vector 4")
    raises(function() matmul(A, A, {out = 4}) end, "out is 4, expected a matrix")
    local wrong = "the result is vector 2, out is vector 3"
    raises(function() exp(vec{1, 2}, {out = zeros(3)}) end, wrong)
    raises(function() exp(vec{1, im}, {out = c64(zeros(3))}) end, wrong)
    raises(function() matmul(eye(2), ones(2), {out = zeros(3)}) end, wrong)
    raises(function() put(zeros(3), vec{1, 2}, {1, 2, 3}) end,
        "put: vector 2 does not fit into vector 3")
    raises(function() matmul(A, A, {precision = "f8"}) end, "f8")
    for tile, shown in pairs{[-5] = "-5", [0] = "0", [1.5] = "1.5",
        [1e300] = "1e+300", ["8"] = '"8"', [inf] = "Inf"} do
        raises(function() matmul(A, A, {tile = tile}) end,
            "matmul: tile is " .. shown)
    end
    raises(function() matmul(A, A, {tile = nan}) end, "tile is NaN")
    raises(function() kernel_bound("matmul", "x", "f32", 3) end, "'x'")
    raises(function() kernel_list("abacus") end, "abacus")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
