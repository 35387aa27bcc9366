-- Every rung of the ladder on the cases of scripts/cases.lua: results are
-- poisoned first, stay within the kernel's bound and the statistical one, are
-- exact on integers, keep NaN, Inf and the smallest numbers, and repeat.
local lu = require "luaunit"
local t = require "common"
package.path = t.root .. "scripts/?.lua;" .. package.path
local cases = require "cases"

local where = t.device

-- LUMAT_TEST_EVERY=5 takes every fifth case, for builds that are slow.
local every = tonumber(os.getenv("LUMAT_TEST_EVERY") or 1)

local function rungs(operation)
    local list = {}
    for _, k in ipairs(kernel_list()) do
        if k.operation == operation and k.available then list[#list + 1] = k end
    end
    return list
end

-- What is wrong with a rung's result on a case, or nil. A rung that refuses
-- must say that it is the one that cannot.
local function problem(case, operands, known, rung)
    local ok, C, spilled = pcall(cases.run, case, operands[1], operands[2],
        operands[3], rung.name)
    if ok then
        rung.ran = true
        return spilled or (cases.judge(case, C, known, rung, where))
    end
    if tostring(C):find("kernel " .. rung.name .. " ", 1, true) then return end
    return "raised " .. tostring(C)
end

-- Runs a case on each of the rungs; adds what is wrong to the list.
local function try(case, list, wrong)
    local operands = table.pack(cases.operands(case, where))
    local known = cases.reference(case, operands[1], operands[2], operands[3])
    for _, rung in ipairs(list) do
        local what = problem(case, operands, known, rung)
        if what and #wrong < 10 then
            wrong[#wrong + 1] = ("%s by %s: %s"):format(cases.name(case),
                rung.name, what)
        end
    end
end

-- Runs every case; each rung must have done at least one.
local function try_all(operation, list)
    local wrong, kernels = {}, rungs(operation)
    for i = 1, #list, every do try(list[i], kernels, wrong) end
    lu.assertEquals(table.concat(wrong, "\n"), "")
    for _, rung in ipairs(kernels) do lu.assertTrue(rung.ran, rung.name) end
end

-- Every shape, transposition and type; every other one in blocks.
local function shapes_of(data)
    local list, block = {}, false
    for _, s in ipairs(cases.shapes()) do
        for _, turned in ipairs(cases.turns) do
            for _, dtype in ipairs{"f32", "f64"} do
                list[#list + 1] = {m = s[1], n = s[2], k = s[3],
                    turned = turned, dtype = dtype, data = data, block = block}
            end
            block = not block
        end
        block = not block
    end
    return list
end

TestMatmul = {}

function TestMatmul:test_uniform_numbers_in_every_shape_and_transposition()
    try_all("matmul", shapes_of("uniform"))
end

function TestMatmul:test_integers_in_every_shape_and_transposition()
    try_all("matmul", shapes_of("integers"))
end

-- Also where a split of the inner dimension, whole tiles, edges of tiles and
-- shapes that kernels hand on begin.
local sizes = {{1, 1, 1}, {3, 2, 31}, {33, 65, 129}, {129, 127, 64},
    {128, 256, 512}, {64, 64, 4096}, {1, 130, 257}, {257, 1, 130}}

for _, data in ipairs(cases.data) do
    TestMatmul["test_data_" .. data.name] = function()
        local list = {}
        for i, s in ipairs(sizes) do
            for _, dtype in ipairs{"f32", "f64"} do
                for _, block in ipairs{false, true} do
                    list[#list + 1] = {m = s[1], n = s[2], k = s[3],
                        dtype = dtype, data = data.name, block = block,
                        turned = cases.turns[1 + (i + #list) % 4]}
                end
            end
        end
        try_all("matmul", list)
    end
end

-- beta = 0 stands for itself in every other test: the result is NaN before.
function TestMatmul:test_alpha_and_beta()
    local list = {}
    for _, w in ipairs{{1, 1}, {2, 0}, {-0.5, 3}, {0, 2}, {0, 0}, {1, -1}} do
        for _, s in ipairs(sizes) do
            for _, dtype in ipairs{"f32", "f64"} do
                for _, data in ipairs{"uniform", "integers"} do
                    list[#list + 1] = {m = s[1], n = s[2], k = s[3],
                        dtype = dtype, data = data, alpha = w[1], beta = w[2],
                        block = #list % 4 == 3}
                end
            end
        end
    end
    try_all("matmul", list)
end

TestDot = {}

for _, data in ipairs(cases.data) do
    TestDot["test_data_" .. data.name] = function()
        local list = {}
        for _, k in ipairs{1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 129, 1055,
            2137, 65537} do
            for _, dtype in ipairs{"f32", "f64"} do
                for _, block in ipairs{false, true} do
                    list[#list + 1] = {operation = "dot", k = k, dtype = dtype,
                        data = data.name, block = block}
                end
            end
        end
        try_all("dot", list)
    end
end

TestRepeats = {}

-- The first result and all others are the same.
local function repeats(times, run)
    local first = run()
    for i = 1, times - 1 do
        if run() ~= first then return i + 1 end
    end
end

local function repeat_products(case, times)
    for _, dtype in ipairs{"f32", "f64"} do
        case.dtype = dtype
        local A, B = cases.operands(case, where)
        for _, rung in ipairs(rungs("matmul")) do
            local how = {kernel = rung.name}
            local ok, C = pcall(matmul, A, B, how)
            if ok then
                how.out = zeros(case.m, case.n, {dtype = dtype})
                local differs = repeats(times, function()
                    matmul(A, B, how)
                    return how.out == C
                end)
                lu.assertNil(differs, rung.name .. " " .. dtype)
                lu.assertTrue(how.out == C, rung.name)
            end
        end
    end
end

function TestRepeats:test_a_thousand_products_are_the_same()
    repeat_products({m = 129, n = 127, k = 65, data = "wide"}, 1000)
end

function TestRepeats:test_products_with_a_long_inner_dimension_are_the_same()
    repeat_products({m = 64, n = 64, k = 8192, data = "wide"}, 30)
end

function TestRepeats:test_a_thousand_dots_are_the_same()
    for _, dtype in ipairs{"f32", "f64"} do
        local x, y = cases.operands({operation = "dot", k = 10007,
            dtype = dtype, data = "wide"}, where)
        for _, rung in ipairs(rungs("dot")) do
            local how = {kernel = rung.name}
            local differs = repeats(1000, function() return dot(x, y, how) end)
            lu.assertNil(differs, rung.name .. " " .. dtype)
        end
    end
end

TestJudges = {}

-- A judge that accepts everything proves nothing.
local function judged(change, data)
    local case = {m = 33, n = 31, k = 65, dtype = "f32", data = data}
    local A, B = cases.operands(case, where)
    local known = cases.reference(case, A, B)
    local rung = rungs("matmul")[1]
    local C = cases.run(case, A, B, nil, rung.name)
    change(C)
    return (cases.judge(case, C, known, rung, where))
end

function TestJudges:test_wrong_results_are_found()
    lu.assertNil(judged(function() end, "uniform"))
    lu.assertNil(judged(function() end, "nan"))
    lu.assertStrContains(judged(function(C) C[{5, 7}] = C(5, 7) + 0.01 end,
        "uniform"), "times its bound")
    lu.assertStrContains(judged(function(C) C[{33, 31}] = t.nan end,
        "uniform"), "NaN or Inf")
    lu.assertStrContains(judged(function(C) C[{17, 1}] = 1 end, "nan"),
        "NaN or Inf")
    lu.assertStrContains(judged(function(C) C[{17, 2}] = -C(17, 2) end, "inf"),
        "NaN or Inf")
    lu.assertNotNil(judged(function(C) C[{1, 1}] = C(1, 1) + 2.0 ^ -14 end,
        "integers"))
end

function TestJudges:test_what_lies_around_a_block_is_watched()
    local case = {m = 3, n = 4, k = 5, dtype = "f32", block = true}
    local C, big = cases.target(case, nil, where)
    lu.assertFalse(cases.is_spilled(C, big))
    C[{3, 4}] = 7
    lu.assertFalse(cases.is_spilled(C, big))
    big[{4, 3}] = 7 -- left of the block's first element
    lu.assertTrue(cases.is_spilled(C, big))
end

os.exit(lu.LuaUnit.run("-o", "tap"))
