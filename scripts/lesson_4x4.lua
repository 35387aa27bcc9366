-- The product of two 4x4 matrices of small whole numbers: written out by hand,
-- and by matmul. Whole numbers leave nothing to round: they must be equal.
--   lumat lesson_4x4.lua [seed]         (1)
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"

local seed = lessons.sizes("seed", 1)
local A = randint(-9, 9, 4, 4, {seed = seed})
local B = randint(-9, 9, 4, 4, {seed = seed + 1})

-- C[i][j] is row i of A times column j of B.
local function by_hand(a, b)
    local c = {}
    for i = 1, 4 do
        c[i] = {}
        for j = 1, 4 do
            c[i][j] = 0
            for k = 1, 4 do
                c[i][j] = c[i][j] + a[i][k] * b[k][j]
            end
        end
    end
    return c
end

-- One element, with every product shown.
local function written_out(i, j)
    local terms = {}
    for k = 1, 4 do
        terms[k] = ("%d·%d"):format(A(i, k), B(k, j)):gsub("·(%-%d)", "·(%1)")
    end
    return table.concat(terms, " + "):gsub("%+ %-", "- ")
end

local hand = mat(by_hand(A:totable(), B:totable()))
print("A", A)
print("B", B)
print("A * B by hand", hand)
print(("its element [2, 3]: %s = %d"):format(written_out(2, 3), hand(2, 3)))
print()
lessons.check("A * B", A * B == hand, tostring(A * B))
for _, where in ipairs(lessons.devices()) do
    local a, b = A:to(where), B:to(where)
    for _, rung in ipairs(lessons.rungs("matmul", where)) do
        local ok, C = pcall(matmul, a, b, rung.options)
        if ok then
            lessons.check(("%s %s"):format(where, rung.label),
                C == hand:to(where), tostring(C))
        else -- a rung for other shapes or types says so
            print(("%s %s: %s"):format(where, rung.label,
                (C:gsub("^.-:%d+: ", ""))))
        end
    end
end
lessons.finish()
