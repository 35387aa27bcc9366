-- split16's ways through an operand and a product: each gives the same bits as
-- the others, within the kernel's bound; and what is kept of operands.
local lu = require "luaunit"
local t = require "common"
package.path = t.root .. "scripts/?.lua;" .. package.path
local cases = require "cases"

local where = t.device

local function find_rung(name)
    for _, k in ipairs(kernel_list()) do
        if k.operation == "matmul" and k.name == name and k.available then
            return k
        end
    end
end

local rung = find_rung "split16"

local function needs_split16()
    if not rung then lu.skip("needs split16") end
end

local function product(A, B)
    return matmul(A, B, {kernel = "split16",
        out = full(A.rows, B.cols, t.nan)})
end

-- C is A B within the kernel's bound.
local function check_product(A, B, C, what)
    local case = {m = A.rows, n = B.cols, k = A.cols}
    lu.assertNil((cases.judge(case, C, cases.reference(case, A, B), rung,
        where)), what)
end

-- The case's product by split16: within the bound, nothing written outside.
local function check_case(case)
    local A, B, C0 = cases.operands(case, where)
    local known = cases.reference(case, A, B, C0)
    for _, state in ipairs{"split", "kept"} do
        local C, spilled = cases.run(case, A, B, C0, "split16")
        local what = cases.name(case) .. " " .. state
        lu.assertNil(spilled, what)
        lu.assertNil((cases.judge(case, C, known, rung, where)), what)
    end
end

-- --- splitting the operands ----------------------------------------------

-- The same numbers where 16 bytes at a time cannot be read.
local function odd_block(X)
    local width = X.cols + 6 + X.cols % 2
    local big = full(X.rows + 5, width + 1 - width % 2, t.nan)
    local block = big[{{4, 3 + X.rows}, {4, 3 + X.cols}}]
    block[":,:"] = X
    return block
end

local function turned(X)
    return X.T:clone().T
end

-- A product of either operand as it is, kept, and both, has the bits of C.
local function check_kept(A, B, C, what)
    lu.assertTrue(product(A, B) == C, what .. ": first")
    lu.assertTrue(product(A, B) == C, what .. ": both kept")
    forget(A)
    lu.assertTrue(product(A, B) == C, what .. ": b kept")
    forget(B)
    lu.assertTrue(product(A, B) == C, what .. ": a kept")
    forget(A)
    forget(B)
end

-- Rows and columns of other magnitudes than their neighbours.
local function spread(A, B, k)
    local function scales(seed)
        return exp2(rand(k, {low = -30, high = 0, seed = seed}))
    end
    A[2] = A[2] % scales(k)
    B[":,3"] = B[":,3"] % scales(k + 1)
end

local function check_splits(m, n, k)
    local A, B = t.uniform(m, k, "f32", m), t.uniform(k, n, "f32", n)
    spread(A, B, k)
    local what = ("%dx%dx%d"):format(m, n, k)
    local C = product(A, B)
    check_product(A, B, C, what)
    check_kept(A, B, C, what)
    check_kept(odd_block(A), odd_block(B), C, what .. " in blocks")
    check_kept(turned(A), B, C, what .. ", a turned")
    check_kept(A, turned(B), C, what .. ", b turned")
    collectgarbage()
end

TestSplits = {}

-- Planes' rows are as long as the inner dimension, rounded up: each power of
-- two from 128 to 8192 ends a way of splitting a, longer rows are read twice.
function TestSplits:test_every_pitch()
    needs_split16()
    for i, k in ipairs{65, 128, 129, 256, 257, 512, 513, 1024, 1025, 2048,
        2049, 4096, 4097, 8192, 8193, 16385} do
        check_splits(({133, 40, 300})[i % 3 + 1], ({200, 67, 129})[i % 3 + 1],
            k)
    end
end

function TestSplits:test_more_rows_than_one_pass_takes()
    needs_split16()
    for _, s in ipairs{{9001, 40, 100}, {5003, 41, 300}, {2500, 40, 1000},
        {1200, 41, 2000}, {600, 40, 4000}, {300, 41, 9000}} do
        check_splits(s[1], s[2], s[3])
    end
end

function TestSplits:test_several_groups_of_strips()
    needs_split16()
    for _, s in ipairs{{70, 6000, 1000}, {70, 6001, 1001}, {9, 20003, 3000},
        {33, 1500, 16000}} do
        check_splits(s[1], s[2], s[3])
    end
end

-- On an H200 56760 rows of a strip fit all blocks' shared memory.
function TestSplits:test_strips_deeper_than_all_blocks_can_hold()
    needs_split16()
    for _, s in ipairs{{40, 300, 56759}, {40, 300, 56760}, {41, 300, 56761},
        {5, 130, 60001}} do
        check_splits(s[1], s[2], s[3])
    end
end

-- --- results -------------------------------------------------------------

TestEdges = {}

-- From 2048 on, up to 4 rows or columns beyond whole tiles are done apart.
local edges = {{2049, 2049, 100}, {2052, 2179, 65}, {4097, 64, 300},
    {64, 4097, 300}, {2053, 2050, 64}, {2177, 2305, 1055},
    {2049, 2049, 10300}}

function TestEdges:test_every_kind_of_data_and_result()
    needs_split16()
    for i, s in ipairs(edges) do
        for j, data in ipairs{"uniform", "wide", "nan", "inf"} do
            check_case{m = s[1], n = s[2], k = s[3], data = data,
                block = j % 2 == 0, turned = cases.turns[1 + (i + j) % 4]}
        end
        check_case{m = s[1], n = s[2], k = s[3], alpha = 2, beta = -3,
            block = i % 2 == 0}
        collectgarbage()
    end
end

function TestEdges:test_a_transposed_result()
    needs_split16()
    for _, s in ipairs(edges) do
        local A = t.uniform(s[1], s[3], "f32", 1)
        local B = t.uniform(s[3], s[2], "f32", 2)
        local C = full(s[2], s[1], t.nan).T
        matmul(A, B, {kernel = "split16", out = C})
        check_product(A, B, C, ("%dx%dx%d"):format(s[1], s[2], s[3]))
    end
end

-- --- many in flight ------------------------------------------------------

TestMixed = {}

-- Each product that a kernel can do, with its result.
local function mixed_products()
    local jobs = {}
    for _, s in ipairs{{64, 64, 4096}, {65, 33, 2000}, {129, 257, 513},
        {1, 4000, 3000}, {4, 70, 20000}, {500, 5, 64}, {31, 17, 70}} do
        for _, name in ipairs(t.rungs("matmul")) do
            for _, dtype in ipairs{"f32", "f64"} do
                local A, B = t.uniform(s[1], s[3], dtype, 1),
                    t.uniform(s[3], s[2], dtype, 2)
                local ok, C = pcall(matmul, A, B, {kernel = name})
                if ok then
                    jobs[#jobs + 1] = {A = A, B = B, C = C, kernel = name,
                        out = full(s[1], s[2], t.nan, {dtype = dtype})}
                end
            end
        end
    end
    return jobs
end

local function issue(job)
    if math.random(3) == 1 then forget(job.A) end
    if math.random(3) == 1 then forget(job.B) end
    mul(job.out, t.nan, {out = job.out})
    matmul(job.A, job.B, {kernel = job.kernel, out = job.out})
end

-- What kernels leave in the memory they share does not show in the next.
function TestMixed:test_kernels_after_each_other_change_no_bits()
    needs_split16()
    local jobs = mixed_products()
    math.randomseed(7)
    for round = 1, 60 do
        local issued = {}
        for _ = 1, 12 do
            local job = jobs[math.random(#jobs)]
            if not issued[job] then issue(job) end
            issued[job] = true
        end
        for job in pairs(issued) do
            lu.assertTrue(job.out == job.C, job.kernel .. " in round " ..
                round)
        end
    end
end

function TestMixed:test_a_matrix_with_itself()
    needs_split16()
    for _, n in ipairs{65, 300, 1000, 2051} do
        local A = t.uniform(n, n, "f32", n)
        for _, X in ipairs{A, A.T} do
            local C = product(A, X)
            check_product(A, X, C, n)
            lu.assertTrue(product(A, X) == C, n)
        end
        local D, C = A:clone(), product(A, A)
        matmul(D, D, {kernel = "split16", out = D})
        lu.assertTrue(D == C, n)
    end
end

-- --- what is kept --------------------------------------------------------

TestKept = {}

-- Nothing is kept, not even of what other tests have left.
function TestKept:setUp()
    if not rung then return end
    keep_limit(0)
    lu.assertEquals(memory().kept, 0)
    keep_limit(2 ^ 33)
end

function TestKept:test_what_is_kept_stays_in_its_limit_and_can_be_dropped()
    needs_split16()
    local A, B = t.whole(512, 512, "f32", 1), t.whole(512, 512, "f32", 2)
    local C = product(A, B)
    lu.assertTrue(memory().kept > 0)
    for _, limit in ipairs{0, 1, 2 ^ 20, 2 ^ 21, 2 ^ 30} do
        keep_limit(limit)
        lu.assertTrue(memory().kept <= limit, limit)
        for _ = 1, 3 do
            lu.assertTrue(product(A, B) == C, limit)
            lu.assertTrue(memory().kept <= limit, limit)
        end
    end
    lu.assertTrue(memory().kept > 0)
    forget(A)
    forget(B)
    lu.assertEquals(memory().kept, 0)
end

function TestKept:test_more_operands_than_there_are_places_for()
    needs_split16()
    local many = {}
    for i = 1, 200 do
        many[i] = t.uniform(70, 70, "f32", i)
        local C = product(many[i], many[1])
        if i % 50 == 0 then check_product(many[i], many[1], C, i) end
    end
    for i = 1, #many do forget(many[i]) end
    lu.assertEquals(memory().kept, 0)
end

-- --- beyond what 32 bits count -------------------------------------------

TestLarge = {}

function TestLarge:test_a_dot_of_more_than_2_to_the_31_elements()
    local n = 2 ^ 31 + 7 | 0
    if not t.on_gpu or memory().free < 2.5 * 4 * n then
        lu.skip("needs a GPU with 22 GB free")
    end
    local x, y = ones(n), full(n, 2)
    x[n], x[2 ^ 31 | 0], x[2 ^ 31 + 1 | 0] = 5, 7, 11
    local expected = 2.0 * n + 2 * (4 + 6 + 10)
    for _, kernel in ipairs{"shuffle", "stream", "auto"} do
        local how = {kernel = kernel}
        lu.assertEquals(dot(x, y, how), expected, kernel)
        lu.assertEquals(dot(x[("2:%d"):format(n)], y[("1:%d"):format(n - 1)],
            how), expected - 2, kernel .. ", one apart")
        lu.assertEquals(dot(x["end:1:-1"], y["end:1:-1"], how), expected,
            kernel .. ", backwards")
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
