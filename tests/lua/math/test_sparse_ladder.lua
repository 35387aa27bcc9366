-- Every rung of sparse products, and what a device makes of sparse matrices,
-- against the CPU: rows of all lengths, empty ones, one that is all there is.
local lu = require "luaunit"
local t = require "common"
local device = zeros(1, {device = t.device}).device

TestSparseLadder = {}

local function rungs(operation)
    local list = {"auto"}
    for _, k in ipairs(kernel_list()) do
        if k.operation == operation and k.available then list[#list + 1] = k end
    end
    return list
end

local function as(X, dtype) return X[dtype](X) end

-- Entries are small whole numbers, so that products are exact. Of `long` rows
-- each gets a share of all columns.
local function make(rows, cols, count, long)
    local i = floor(rand(count, {dtype = "f64", device = "cpu"}) * rows) + 1
    local j = floor(rand(count, {dtype = "f64", device = "cpu"}) * cols) + 1
    if long then i = minimum(i, 3) end
    local v = floor(rand(count, {dtype = "f64", device = "cpu"}) * 15) - 7
    return sparse(i, j, v, rows, cols)
end

local function whole(n, m, dtype)
    local D = floor(rand(n, m, {dtype = "f64", device = "cpu"}) * 15) - 7
    if dtype == "c64" or dtype == "c128" then
        D = D + im * (floor(rand(n, m, {dtype = "f64", device = "cpu"}) * 9) - 4)
    end
    return as(D, dtype)
end

local shapes = {{1, 1, 1}, {1, 5000, 4000}, {5000, 1, 3000}, {7, 9, 0},
    {100, 80, 700}, {3000, 50, 200}, {2000, 3000, 40000}, {500, 400, 90000},
    {60, 20000, 30000, true}}

local function same(found, expected, what)
    lu.assertEquals(found.device, device, what)
    lu.assertEquals(found.shape, expected.shape, what)
    lu.assertTrue(found:to("cpu") == expected, what)
end

local function try_shape(shape, dtype)
    local S = as(make(table.unpack(shape)), dtype)
    local T = S:to(device)
    for _, width in ipairs{0, 1, 2, 3, 8, 17, 32, 40, 130} do
        local D = width == 0 and whole(S.cols, 1, dtype):reshape(S.cols) or
            whole(S.cols, width, dtype)
        local expected, E = S * D, D:to(device)
        for _, k in ipairs(rungs(width < 2 and "spmv" or "spmm")) do
            local name = k == "auto" and k or k.name
            if k == "auto" or k[dtype] ~= false then
                local what = ("%dx%d %s by %d, %s"):format(S.rows, S.cols,
                    dtype, width, name)
                local ok, found = pcall(matmul, T, E, {kernel = name})
                if ok then
                    same(found, expected, what)
                    lu.assertTrue(matmul(T, E, {kernel = name}) == found, what)
                else
                    lu.assertStrContains(found, "kernel " .. name, what)
                end
            end
        end
    end
end

function TestSparseLadder.test_whole_numbers_are_exact()
    seed(11)
    for _, dtype in ipairs{"f32", "f64", "c64", "c128"} do
        for _, shape in ipairs(shapes) do try_shape(shape, dtype) end
    end
end

function TestSparseLadder.test_operands_of_any_strides()
    seed(12)
    local S = make(700, 600, 9000)
    for _, dtype in ipairs{"f32", "f64"} do
        local T = as(S, dtype):to(device)
        local D = whole(40, 600, dtype)
        for _, k in ipairs(rungs("spmm")) do
            local name = k == "auto" and k or k.name
            same(matmul(T, D:to(device).T, {kernel = name}), S * D.T, name)
        end
        for _, k in ipairs(rungs("spmv")) do
            local name = k == "auto" and k or k.name
            same(matmul(T, D:to(device).T:col(3), {kernel = name}),
                S * D.T:col(3), name)
        end
    end
end

-- What is no entry is not multiplied.
function TestSparseLadder.test_infinities_stay_in_their_rows()
    seed(13)
    local S = make(900, 500, 4000)
    local D = whole(500, 5, "f64")
    D[{4, 1}], D[{4, 5}], D[{77, 2}] = 1 / 0, -1 / 0, 0 / 0
    local dense = S:to("cpu") * D
    local T, E = S:to(device), D:to(device)
    for _, k in ipairs(rungs("spmm")) do
        local name = k == "auto" and k or k.name
        local found = matmul(T, E, {kernel = name}):to("cpu")
        lu.assertEquals(tostring(isnan(found):find()),
            tostring(isnan(dense):find()), name)
        lu.assertTrue(where(isnan(dense), 0, dense) ==
            where(isnan(found), 0, found), name)
    end
end

-- Where there is one way alone no name is right.
function TestSparseLadder.test_names_of_no_rung()
    local S, x = sparse(eye(3)):to(device), ones(3, {device = device})
    local names = #rungs "spmv" > 1 and "there are auto" or
        "where there is no choice; leave kernel out"
    for operation, right in pairs{spmv = x, spmm = ones(3, 2, {device = device})} do
        t.raises(function() matmul(S, right, {kernel = "none"}) end,
            operation .. ": no kernel is called 'none' on " .. device, names)
    end
end

-- Bits of sums that round, too.
function TestSparseLadder.test_bits_repeat()
    seed(14)
    local i = floor(rand(60000, {dtype = "f64"}):pow(3) * 900) + 1
    local j = floor(rand(60000, {dtype = "f64"}) * 800) + 1
    local S = sparse(i, j, rand(60000), 900, 800):to(device)
    local D = rand(800, 33, {device = device})
    local x = rand(800, {device = device})
    for _, k in ipairs(rungs("spmm")) do
        local name = k == "auto" and k or k.name
        local first = matmul(S, D, {kernel = name})
        for _ = 1, 5 do
            lu.assertTrue(matmul((1 * S), D, {kernel = name}) == first, name)
        end
        local off = (first:f64() - S:f64() * D:f64()):abs():max()
        lu.assertTrue(off < 1e-3, name)
    end
    for _, k in ipairs(rungs("spmv")) do
        local name = k == "auto" and k or k.name
        local first = matmul(S, x, {kernel = name})
        for _ = 1, 5 do
            lu.assertTrue(matmul((1 * S), x, {kernel = name}) == first, name)
        end
    end
end

-- The matrix that is written to gets another plan.
function TestSparseLadder.test_plans_go_with_what_they_are_of()
    seed(15)
    local S = make(4000, 4000, 60000):to(device)
    local x = floor(rand(4000, {device = device}) * 9)
    for _ = 1, 4 do
        lu.assertTrue((S * x):to("cpu") == S:to("cpu") * x:to("cpu"))
        S[{math.random(4000), math.random(4000)}] = 2
    end
end

function TestSparseLadder.test_raced_and_verified()
    seed(17)
    local S = sprand(300, 200, 0.05):to(device)
    local x, D = rand(200, {device = device}), rand(200, 9, {device = device})
    lu.assertTrue(verify(S * x, S, x).accept)
    lu.assertTrue(verify(S * D, S, D).accept)
    lu.assertFalse(verify(S * x + 1, S, x).accept)
    if #rungs("spmv") == 1 then
        lu.assertErrorMsgContains("no kernels to race", race, S, x)
        return
    end
    for _, B in ipairs{x, D} do
        local rows = race(S, B, {seconds = 0.01})
        lu.assertEquals(#rows, #rungs(B.ndim == 1 and "spmv" or "spmm") - 1)
        for _, row in ipairs(rows) do lu.assertTrue(row.accept, row.name) end
        lu.assertNotNil(kernels(S, B).choice)
    end
end

-- --- making, on the device ------------------------------------------------

local function same_sparse(found, expected, what)
    lu.assertEquals(found.device, device, what)
    lu.assertEquals(found.dtype, expected.dtype, what)
    lu.assertEquals(found.nnz, expected.nnz, what)
    lu.assertTrue(found:to("cpu") == expected, what)
end

function TestSparseLadder.test_made_as_on_the_cpu()
    seed(16)
    for _, shape in ipairs(shapes) do
        local rows, cols, count, long = table.unpack(shape)
        for _, dtype in ipairs{"f32", "f64", "c64", "c128"} do
            local i = floor(rand(count, {dtype = "f64"}) * rows) + 1
            local j = floor(rand(count, {dtype = "f64"}) * cols) + 1
            if long then i, j = minimum(i, 2), minimum(j, 5) end
            local v = as(rand(count, {dtype = "f64"}), dtype)
            local what = ("%dx%d %s"):format(rows, cols, dtype)
            local S = sparse(i:to("cpu"), j:to("cpu"), v:to("cpu"), rows, cols)
            local T = sparse(i:to(device), j:to(device), v:to(device), rows, cols)
            same_sparse(T, S, what)
            same_sparse(T.T, S.T, what)
            lu.assertTrue(full(T):to("cpu") == full(S), what)
            same_sparse(sparse(full(T)), sparse(full(S)), what)
            local i2, j2 = j:mod(rows) + 1, i:mod(cols) + 1
            local S2 = sparse(i2:to("cpu"), j2:to("cpu"), v:to("cpu"), rows, cols)
            local T2 = S2:to(device)
            same_sparse(T + T2, S + S2, what)
            same_sparse(T - T2, S - S2, what)
            same_sparse(T - T, S - S, what)
            same_sparse(T % T2, S % S2, what)
            local D = whole(rows, cols, dtype)
            same_sparse(T % D:to(device), S % D, what)
            same_sparse(T % D.T:clone():to(device).T, S % D, what)
        end
    end
end

function TestSparseLadder.test_places_that_do_not_fit_are_told()
    for _, case in ipairs{{{1, 0}, "indices start at 1"}, {{1, 2.5}, "whole"},
        {{1, 0 / 0}, "whole"}, {{1, 9}, "outside"}, {{1, -3}, "start at 1"}} do
        local i = vec(case[1], {dtype = "f64", device = device})
        local ok, why = pcall(sparse, i, ones(2, {device = device}),
            ones(2, {device = device}), 3, 3)
        lu.assertFalse(ok)
        lu.assertStrContains(why, case[2])
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
