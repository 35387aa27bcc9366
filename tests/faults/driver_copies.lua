-- lumat driver_copies.lua: what goes to the GPU and back is what
-- it was, by whichever way: in one piece or in parts, with gaps, turned. Says
-- "same".
local function check(what, A, B)
    if not all(eq(A, B)) then print("WRONG", what, A) end
end

local function go(A, what)
    local G = A:to "cuda"
    check(what, G:to "cpu", A)
    check(what .. " turned there", A.T:to "cuda":to "cpu", A.T)
    check(what .. " turned back", G.T:to "cpu", A.T)
    if A.rows < 9 or A.cols < 9 then return end
    local part = {{2, A.rows - 1}, {3, A.cols - 2}}
    check(what .. " part", G[part]:to "cpu", A[part])
    check(what .. " part, turned", G[part].T:to "cpu", A[part].T)
    for _, gaps in ipairs{{{2, A.rows, 2}, {3, A.cols - 1}}, {{1, A.rows}, {1, A.cols, 3}}} do
        check(what .. " with gaps", A[gaps]:to "cuda":to "cpu", A[gaps])
    end
end

for _, s in ipairs{{1, 1}, {3, 5}, {900, 1100}, {1, 600001}, {2600001, 1}, {513, 5191}} do
    local A = rand(s[1], s[2], {device = "cpu"})
    go(A, "f32")
    go(A:f64(), "f64")
    go(A:gt(0.5), "bool")
end
print "same"
