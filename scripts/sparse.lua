-- A sparse matrix times a dense one: the classical 3x3 with six entries, 1 to
-- 6, times a 3x2 of 1 to 6. Compressed rows keep only the entries; the product
-- looks at nothing else. Whole numbers leave nothing to round: the results
-- must be equal.
--   lumat sparse.lua [n [entries a row]]         (2000 8)
-- The last part does the same with n x n numbers at random places.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"

local n, per_row = lessons.sizes("n [entries a row]", 2000, 8)
local i, j, v = {1, 1, 2, 3, 3, 3}, {1, 3, 3, 1, 2, 3}, {1, 2, 3, 4, 5, 6}
local S = sparse(i, j, v, 3, 3)
local D = mat{{1, 2}, {3, 4}, {5, 6}}

-- Row i of the product is the sum of v times row j of D, entry after entry.
local function by_hand(d, rows)
    local c = {}
    for row = 1, rows do
        c[row] = {}
        for col = 1, #d[1] do c[row][col] = 0 end
    end
    for k = 1, #v do
        for col = 1, #d[1] do
            c[i[k]][col] = c[i[k]][col] + v[k] * d[j[k]][col]
        end
    end
    return c
end

-- One element, with every product shown.
local function written_out(row, col)
    local terms = {}
    for k = 1, #v do
        if i[k] == row then
            terms[#terms + 1] = ("%d·%d"):format(v[k], D(j[k], col))
        end
    end
    return table.concat(terms, " + ")
end

local hand = mat(by_hand(D:totable(), 3))
print("S", S)
print("the same with its zeros", full(S))
print("D", D)
print("S * D", S * D)
print(("its element [3, 2]: %s = %d"):format(written_out(3, 2), hand(3, 2)))
print()
for _, where in ipairs(lessons.devices()) do
    local s, d = S:to(where), D:to(where)
    lessons.check(where .. " S * D", s * d == hand:to(where), tostring(s * d))
    lessons.check(where .. " S * x", s * d[":,1"] == hand[":,1"]:to(where),
        tostring(s * d[":,1"]))
    lessons.check(where .. " S.T * D", s.T * d == full(S).T:to(where) * d,
        tostring(s.T * d))
    lessons.check(where .. " sparse(full(S))", sparse(full(s)) == s,
        tostring(sparse(full(s))))
end

local function best_time(f, where)
    local best = math.huge
    for _ = 1, 7 do best = math.min(best, (timed(f, where))) end
    return lessons.time(best)
end

-- Few entries in a large matrix: time and memory against the dense product.
local count = n * per_row
local A = sparse(randint(1, n, count, {seed = 1}),
    randint(1, n, count, {seed = 2}), randint(1, 9, count, {seed = 3}), n, n)
local B = randint(-4, 4, n, 16, {seed = 4})
local dense = full(A)
print("\nA", A)
for _, where in ipairs(lessons.devices()) do
    local a, b, c = A:to(where), B:to(where), dense:to(where)
    lessons.check(where .. " A * B", a * b == c * b, "differs from full(A) * B")
    print(("  sparse %s   dense %s   bytes 1 : %.0f"):format(
        best_time(function() return a * b end, where),
        best_time(function() return c * b end, where), c.bytes / a.bytes))
end
lessons.finish()
