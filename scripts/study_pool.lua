-- A study to adapt: how much faster is a pool than one of its processes? The
-- product in f32 and f64, checked, and LU in f32, on one and on all; and what
-- cuBLASMp and cuSOLVERMp take on all, where they are found.
--   lumat study_pool.lua [--gpu] [--ranks N] [--size N] [--quick]
--     --gpu       a GPU each, in place of the CPU
--     --ranks N   processes; as many as there are GPUs, or cores
--     --size N    rows of the matrices (1024; with --gpu 32768)
--     --quick     small sizes, to see that everything runs
-- Ratios are of medians of three, in one run. An operation is warmed up once.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local options = require "options"("study_pool",
    "[--gpu] [--ranks N] [--size N] [--quick]",
    {gpu = "switch", quick = "switch", ranks = "count", size = "count"})
local has_gpus, ranks = options.gpu, options.ranks
local size = options.size or options.quick and 96 or has_gpus and 32768 or 1024

local function start(count)
    return pool{ranks = count, device = has_gpus and "gpu" or "cpu",
        launcher = has_gpus and "local" or nil}
end

-- Of f, before each of which `tidy` makes room.
local function median_seconds(tidy, f)
    f()
    local list = {}
    for i = 1, 3 do
        tidy()
        local began = clock()
        f()
        list[i] = clock() - began
    end
    table.sort(list)
    return list[2]
end

local tasks = {
    {name = "A * B f32", dtype = "f32", flops = 2, peer = "cublasmp"},
    {name = "A * B f64", dtype = "f64", flops = 2, peer = "cublasmp"},
    {name = "lu f32", dtype = "f32", flops = 2 / 3, peer = "cusolvermp"},
}

local function run(task, A, B, kernel)
    if task.flops == 2 then return A:matmul(B, {kernel = kernel}) end
    return A:lu{kernel = kernel}
end

-- |A x - b| of the solution by the factors, over n eps max|A| |x|.
local function residual(A, F)
    local b = ones(A.rows, {dtype = A.dtype, device = "cpu"})
    local x = F:solve(b)
    local off = (A * x - b):abs():max()
    return off / (A.rows * 2.0 ^ -24 * A:abs():max() * x:abs():sum())
end

-- The seconds of a task by a kernel, or the usual one, and what is found of its
-- result.
local function measure(task, kernel)
    local A = drandn(size, {dtype = task.dtype, seed = 1})
    local B = drandn(size, {dtype = task.dtype, seed = 2})
    local result
    local seconds = median_seconds(function()
        result = nil
        collectgarbage()
    end, function() result = run(task, A, B, kernel) end)
    if task.flops == 2 then
        return seconds, verify(result, A, B).accept and "accepted" or "WRONG"
    end
    return seconds, ("residual %.2g"):format(residual(A, result))
end

local function print_row(task, seconds, check)
    print(("  %-10s %10.2f ms  %8.1f GFLOP/s  %s"):format(task.name,
        seconds * 1e3, task.flops * size ^ 3 / seconds / 1e9, check))
end

local list = {}
print(("%d x %d, median of 3"):format(size, size))
for _, count in ipairs{1, ranks or 0} do
    print(start(count > 0 and count or nil))
    for i, task in ipairs(tasks) do
        local seconds, check = measure(task)
        list[i] = list[i] or {}
        table.insert(list[i], seconds)
        print_row(task, seconds, check)
    end
end
print(("%d processes, of the time of one:"):format(pool.count()))
for i, task in ipairs(tasks) do
    print(("  %-10s %.2f times as fast"):format(task.name,
        list[i][1] / list[i][2]))
end
for i, task in ipairs(has_gpus and tasks or {}) do
    local found, seconds, check = pcall(measure, task, task.peer)
    if found then
        print_row({name = task.peer, flops = task.flops}, seconds, check)
        print(("  %-10s %.2f times as fast as it"):format(task.name,
            seconds / list[i][2]))
    else
        print(("  %-10s not run: %s"):format(task.peer, seconds))
    end
end
pool.close()
