-- What checks say: verify, race and kernels of unusual operands, options of
-- products, and the benchmarks' own arguments.
local lu = require "luaunit"
local t = require "common"
local raises, inf, nan = t.raises, t.inf, t.nan

TestOverflow = {}

function TestOverflow:test_inf_is_right_beyond_the_type()
    local A, B = full(4, 4, 1e25), full(4, 4, -1e25)
    lu.assertTrue(verify(full(4, 4, -inf), A, B).accept)
    lu.assertFalse(verify(full(4, 4, inf), A, B).accept)
    lu.assertFalse(verify(full(4, 4, nan), A, B).accept)
    lu.assertFalse(verify(zeros(4, 4), A, B).accept)
    lu.assertFalse(verify(full(4, 4, inf), A * 1e-20, A).accept)
    lu.assertFalse(verify(full(4, 4, -inf, {dtype = "f64"}), A:f64(),
        B:f64()).accept)
    lu.assertTrue(verify(inf, A[1], A[2]).accept)
end

-- Where rounding decides, both are right.
function TestOverflow:test_at_the_edge_of_the_type()
    local largest = (2 - 2.0 ^ -23) * 2.0 ^ 127
    local A, B = mat{{largest}}, mat{{1}}
    lu.assertTrue(verify(mat{{largest}}, A, B).accept)
    lu.assertTrue(verify(mat{{inf}}, A, B).accept)
    lu.assertFalse(verify(mat{{inf}}, A * 0.999, B).accept)
end

function TestOverflow:test_kernels_that_overflow_are_accepted()
    for _, operands in ipairs{{full(5, 4, 1e25), full(4, 3, 1e25)},
        {full(9, 1e25), full(9, 1e25)}} do
        local ranked = race(operands[1], operands[2], {seconds = 1e-3})
        for _, row in ipairs(ranked) do
            if row.name == "reference" or row.name == "openblas" then
                lu.assertTrue(row.accept, row.verdict)
            end
        end
    end
end

TestEmpty = {}

-- Every kernel there is, of what is empty or of one element, checked as it is
-- made.
function TestEmpty:test_checked_products_of_nothing()
    checking(true)
    local function try(k, f, ...)
        local ok, message = pcall(f, ...)
        if not ok and message:find("wrong result", 1, true) then
            checking(false)
            lu.fail(k.name .. ": " .. message)
        end
        return ok and message
    end
    for _, k in ipairs(kernel_list(t.device)) do
        for _, dtype in ipairs{"f32", "f64"} do
            local how = {dtype = dtype}
            for n = 0, 2 do
                local v, o = zeros(n, how), ones(n, how)
                if k.operation == "dot" then
                    lu.assertEquals(try(k, dot, v, v, {kernel = k.name}) or 0, 0)
                    lu.assertEquals(try(k, dot, o, o, {kernel = k.name}) or n, n)
                else
                    for _, s in ipairs{{0, n, 2}, {2, n, 0}, {2, n, 3},
                        {1, n, 1}, {n, 1, n}} do
                        local A, B = ones(s[1], s[2], how), ones(s[2], s[3], how)
                        try(k, matmul, A, B, {kernel = k.name})
                        try(k, matmul, A, B, {kernel = k.name, alpha = 2,
                            beta = 1, out = ones(s[1], s[3], how)})
                    end
                end
            end
        end
    end
    checking(false)
end

TestRefusals = {}

function TestRefusals:test_sparse_matrices()
    local S, D = sparse(eye(2)), eye(2)
    for _, f in ipairs{race, kernels} do
        raises(function() f(S, S) end, "B is a sparse matrix, expected a matrix: write full(B)")
        raises(function() f(D, S) end, "B is a sparse matrix, expected a matrix: write full(B)")
    end
    raises(function() verify(S, D, D) end,
        "verify: C is a sparse matrix", "write full(C)")
end

function TestRefusals:test_names_of_kernels()
    local name = kernel_list()[1].name
    local list = kernels(name)
    lu.assertEquals(list[1].name, name)
    lu.assertStrContains(tostring(list), "needs: ")
    raises(function() kernels("abacus") end, 'no kernel or device "abacus"',
        "kernels(A, B)")
    raises(function() kernels(nil, eye(2)) end, "A is nil")
end

function TestRefusals:test_transpositions()
    local A = eye(2)
    for _, key in ipairs{"transA", "transB"} do
        raises(function() matmul(A, A, {[key] = "no"}) end,
            "matmul: " .. key .. ' is "no", expected true or false')
        raises(function() matmul(A, A, {[key] = 1}) end, " is 1, expected")
        matmul(A, A, {[key] = false})
    end
end

-- A rung that cannot do the type says so, where there is one.
function TestRefusals:test_types_of_kernels()
    local A = eye(3, {dtype = "f64"})
    local text = tostring(kernels(A, A)):gsub("%s+", " ")
    for _, k in ipairs(kernel_list()) do
        lu.assertTrue(k.f32 or k.f64 or k.c64, k.name)
        if k.operation == "matmul" and k.available and not k.f64 then
            lu.assertStrContains(text, k.idea .. " (not f64)")
        end
    end
    lu.assertNotStrContains(tostring(kernels()), "(not f64)")
end

function TestRefusals:test_bounds()
    local first = t.rungs("matmul")[1]
    raises(function() kernel_bound("matmul", first, "f32", -5) end,
        "kernel_bound: k is -5, expected a whole number from 0 on")
    raises(function() kernel_bound("matmul", first, "bool", 5) end,
        'kernel_bound: dtype is "bool", expected "f32" or "f64"')
    raises(function() kernel_bound("matmul", first, "f16", 5) end,
        'kernel_bound: dtype is "f16", expected "f32" or "f64"')
    lu.assertTrue(kernel_bound("matmul", first, "f32", 0) >= 0)
end

function TestRefusals:test_the_bound_of_what_auto_takes()
    local A = rand(5, 5)
    lu.assertTrue(verify(A * A, A, A, {kernel = "auto"}).accept)
    local x = rand(7)
    lu.assertTrue(verify(dot(x, x), x, x, {kernel = "auto"}).accept)
end

TestBench = {}

local lumat = assert(os.getenv("LUMAT"), "LUMAT must name the program")

-- What the benchmark prints to its streams, and its exit code.
local function bench(script, words)
    local pipe = assert(io.popen(("'%s' --device %s '%s' --quick --seconds " ..
        "0.001 %s 2>&1"):format(lumat, t.device, t.root .. "scripts/" ..
        script .. ".lua", words)))
    local text = pipe:read("a")
    return text, select(3, pipe:close())
end

function TestBench:test_what_cannot_be_had_takes_one_line()
    for _, script in ipairs{"bench", "bench_dot", "bench_matmul"} do
        local text, code = bench(script, "--device gpu")
        lu.assertEquals(text, script .. ": no device is called 'gpu': use " ..
            "cpu, cuda or cuda:N\n")
        lu.assertEquals(code, 2)
        text, code = bench(script, "--csv /no/where")
        lu.assertEquals(text, script .. ": /no/where: No such file or " ..
            "directory\n")
        lu.assertEquals(code, 2)
    end
end

function TestBench:test_a_pattern_that_matches_nothing()
    for _, script in ipairs{"bench_dot", "bench_matmul"} do
        local text, code = bench(script, "--only abacus")
        lu.assertStrContains(text, "nothing matches --only abacus\n")
        lu.assertEquals(code, 1)
    end
end

-- --- memory -------------------------------------------------------------------

TestMemory = {}

-- How many bytes on the CPU f takes at its most, and leaves behind. As the peak is
-- that of all there was before, so much is held meanwhile.
local function taken(f)
    collectgarbage()
    local before = memory "cpu"
    local held = zeros((before.peak - before.live) // 8 + 1, {dtype = "f64",
        device = "cpu"})
    local live = memory "cpu".live
    f()
    local most = memory "cpu".peak - live
    collectgarbage()
    collectgarbage()
    local left = memory "cpu".live - live
    held:free()
    return most, left
end

-- Of f64 operands |A| and |B| are there meanwhile, and no copies of A and B.
function TestMemory:test_verify_makes_no_copies_of_its_operands()
    local n, wide = 100000, {dtype = "f64", device = "cpu"}
    local A, B = rand(3, n, wide), rand(n, 3, wide)
    local a, b, C = A:clone(), B:clone(), A * B
    lu.assertTrue(C:isfinite():all()) -- it waits no more
    local most, left = taken(function()
        lu.assertTrue(verify(C, A, B).accept)
    end)
    lu.assertTrue(most <= 8 * (A.size + B.size) + 4096, most)
    lu.assertEquals(left, 0)
    lu.assertTrue(A == a and B == b)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
