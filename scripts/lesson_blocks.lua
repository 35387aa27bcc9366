-- A product of any size, m x k by k x n, block by block. A is cut into blocks
-- of 80x48, B into blocks of 48x80; each product of two blocks is added to a
-- block of C. Blocks are views: nothing is copied, and writing to a block of C
-- writes to C. The blocks at the edges are smaller, and nobody need care.
--   lumat lesson_blocks.lua [m k n [rows depth]]    (2137 1055 108 80 48)
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"

local m, k, n, rows, depth =
    lessons.sizes("m k n [rows depth]", 2137, 1055, 108, 80, 48)

-- The pieces {first, last} of 1 … size, each `step` long but the last.
local function pieces(size, step)
    local list = {}
    for first = 1, size, step do
        list[#list + 1] = {first, math.min(first + step - 1, size)}
    end
    return list
end

-- C = A B, and how many block products that took.
local function product_by_blocks(A, B)
    local C = zeros(A.rows, B.cols, {dtype = A.dtype})
    local count = 0
    for _, i in ipairs(pieces(m, rows)) do
        for _, j in ipairs(pieces(n, rows)) do
            local block = C[{i, j}]
            for _, l in ipairs(pieces(k, depth)) do
                matmul(A[{i, l}], B[{l, j}], {out = block, beta = 1})
                count = count + 1
            end
        end
    end
    return C, count
end

local function seconds(f)
    return lessons.time(bench(f, {seconds = 0.1, least = 1}).median)
end

print(("%dx%d by %dx%d on %s; blocks %dx%d by %dx%d"):format(m, k, k, n,
    device(), rows, depth, depth, rows))

-- Whole numbers this small leave no rounding: equal to the last bit.
local A = randint(-8, 8, m, k, {seed = 1})
local B = randint(-8, 8, k, n, {seed = 2})
local C, count = product_by_blocks(A, B)
print(count .. " block products")
lessons.check("whole numbers, equal to A * B", C == A * B,
    "largest difference " .. (C - A * B):abs():max())

-- Real numbers add up in another order, so they round differently; both must
-- keep the bound that rounding allows.
A, B = rand(m, k, {low = -1, seed = 3}), rand(k, n, {low = -1, seed = 4})
C = product_by_blocks(A, B)
print("real numbers, by blocks: " .. lessons.verify(C, A, B))
print("real numbers, A * B:     " .. lessons.verify(A * B, A, B))
print(("largest difference of the two: %.2g"):format((C - A * B):abs():max()))
print("time by blocks " .. seconds(function() product_by_blocks(A, B) end))
print("time of A * B  " .. seconds(function() return A * B end))
lessons.finish()
