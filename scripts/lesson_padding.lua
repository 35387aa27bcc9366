-- Tiles that do not fit at the edges: is it faster to pad the operands with
-- zeros to whole tiles, or to test every element at the edge? Measured, on a
-- GPU, with the kernels `padded` and `tiled`; on a CPU, where no kernel has
-- such tiles, the same question is put to the BLAS: does it gain from operands
-- padded to a multiple of the tile?
--   lumat lesson_padding.lua [tile [largest]]       (16; 2048 or 512)
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"

local gpu = lessons.devices()[2]
local tile, largest = lessons.sizes("tile [largest]", 16, gpu and 2048 or 512)

-- Just below, at and just above whole tiles, up to `largest`.
local function sizes()
    local list, size = {}, 4 * tile
    repeat
        for _, off in ipairs{-1, 0, 1} do
            list[#list + 1] = size + off
        end
        size = 2 * size
    until size > largest
    return list
end

local function padded_copy(A)
    local size = (A.rows + tile - 1) // tile * tile
    local P = zeros(size, size)
    P[{{1, A.rows}, {1, A.cols}}] = A
    return P
end

-- Each way is a function of the operands that returns a function to time.
local function kernel(name)
    return function(A, B)
        local options = {kernel = name, tile = tile}
        return function() return matmul(A, B, options) end
    end
end

local function plain(A, B)
    return function() return A * B end
end

local function padding_counted(A, B)
    return function()
        local C = padded_copy(A) * padded_copy(B)
        return C[{{1, A.rows}, {1, B.cols}}]
    end
end

local function padding_free(A, B)
    local P, Q = padded_copy(A), padded_copy(B)
    return function() return (P * Q)[{{1, A.rows}, {1, B.cols}}] end
end

-- Times every way at every size, first against the others; returns for each
-- of the others how often it won, and the ratios' product.
local function compare(names, ways)
    print(("%-6s %s"):format("size", table.concat(names)))
    local wins, ratio, count = {}, {}, 0
    for _, size in ipairs(sizes()) do
        local A = rand(size, size, {low = -1, seed = size})
        local B = rand(size, size, {low = -1, seed = size + 1})
        local line, first = ("%-6d"):format(size), nil
        local verdict = "Accept"
        for i, way in ipairs(ways) do
            local run = way(A, B)
            local seconds = bench(run, {seconds = 0.05, least = 3}).median
            first = first or seconds
            line = line .. lessons.time(seconds) .. (i > 1 and
                (" %6.2fx "):format(first / seconds) or " ")
            wins[i] = (wins[i] or 0) + (first > seconds and 1 or 0)
            ratio[i] = (ratio[i] or 1) * first / seconds
            local found = lessons.verify(run(), A, B)
            if not found:find("^Accept") then verdict = found end
        end
        count = count + 1
        print(line .. "  " .. verdict)
    end
    return wins, ratio, count
end

local function answer(name, against, wins, ratio, count)
    print(("%s: faster than %s at %d of %d sizes, %.2f times its speed in the "
        .. "geometric mean"):format(name, against, wins, count,
        ratio ^ (1 / count)))
end

local function on_gpu()
    print(("edge tests (tiled) against padding (padded), tile %d, on %s")
        :format(tile, gpu))
    local wins, ratio, count = compare(
        {"      tiled ", "     padded    gain"},
        {kernel "tiled", kernel "padded"})
    answer("padding", "edge tests", wins[2], ratio[2], count)
end

local function on_cpu()
    print(("A * B against operands padded to a multiple of %d, on the CPU's "
        .. "BLAS"):format(tile))
    local wins, ratio, count = compare(
        {"      A * B ", "  padded before    gain", "  padding counted gain"},
        {plain, padding_free, padding_counted})
    answer("padded beforehand", "A * B", wins[2], ratio[2], count)
    answer("padding counted", "A * B", wins[3], ratio[3], count)
    print("measured: the BLAS, which packs its operands itself; the question "
        .. "about kernels needs a GPU")
end

if gpu then on_gpu() else on_cpu() end
lessons.finish()
