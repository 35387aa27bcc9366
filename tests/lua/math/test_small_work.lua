-- Small operations that wait on a GPU to be started together: whatever comes
-- between them, results are those of one after the other, on the CPU. Whole
-- numbers, so that all bits are equal.
local lu = require "luaunit"
local t = require "common"

local function pick(list) return list[math.random(#list)] end

-- What is done to four matrices of one shape, i, j and k of them, and a row.
local steps = {
    function(A, i, j, k) A[k] = A[i] + A[j] end,
    function(A, i, j, k) A[k] = clip(A[i] % A[j], -50, 50) end,
    function(A, i, j) A[i]:add_(A[j]); A[i]:clip_(-99, 99) end,
    function(A, i, _, k, row) A[k] = A[i] - row end,
    function(A, i, j, k) A[k] = where(A[i]:gt(A[j]), A[i], 2) end,
    function(A, i, _, k) A[k] = A[i]:clone() end,
    function(A, i, j) A[i]["1, :"] = A[j]["-1, :"] end,
    function(A, i, j) A[i][A[j]:lt(0)] = 7 end,
    function(A, i, j, k)
        A[k] = clip(A[i] * A[j].T * A[j], -1000, 1000)
    end,
    function(A, i, _, k) A[k] = (A[i] + 1).T:clone().T end,
    function(A, i, j)
        if i == j then return end
        A[i]:free() -- its memory is the next one's
        A[i] = A[j] % 3 + 1
    end,
    function(A, i, j, k) A[k] = A[i]:sum(1) + A[j] end,
    function(A, i, j, k)
        A[k] = maximum(A[i], A[j]) - minimum(A[i], 1)
    end,
    function(A, i) return A[i]:sum() end,
    function(A, i) return A[i]:max() end,
    function(A, i) return A[i]:mean() end,
    function(A, i) return A[i](-1, -1) end,
}

-- rows and cols of which 70 by 70 is too much to wait
local function play(seed)
    local shape = pick{{1, 1}, {2, 2}, {3, 5}, {8, 64}, {64, 64}, {70, 70}}
    local m, n, dtype = shape[1], shape[2], pick{"f32", "f64"}
    local far, near, told = {}, {}, {}
    local how = {dtype = dtype, device = "cpu"}
    for i = 1, 4 do
        how.seed = 5 * seed + i
        near[i] = randint(-3, 3, m, n, how)
        far[i] = near[i]:to(t.device)
    end
    local row = randint(-2, 2, 1, n, how)
    local there = row:to(t.device)
    for _ = 1, 40 do
        local s, i, j, k = math.random(#steps), math.random(4), math.random(4),
            math.random(4)
        told[#told + 1] = ("%d(%d %d %d)"):format(s, i, j, k)
        local x, y = steps[s](near, i, j, k, row), steps[s](far, i, j, k, there)
        lu.assertEquals(y, x, table.concat(told, " "))
    end
    for i = 1, 4 do
        lu.assertTrue(far[i]:to "cpu" == near[i], table.concat(told, " "))
    end
end

TestSmallWork = {}

function TestSmallWork:tearDown() settings{fusion = "on"} end

function TestSmallWork:test_order()
    for _, fusion in ipairs{"off", "on"} do
        settings{fusion = fusion}
        for seed = 1, t.on_gpu and 150 or 20 do
            math.randomseed(seed)
            play(seed)
        end
    end
end

-- Numbers that the host works out of one of the device's.
function TestSmallWork:test_numbers_are_those_of_lines()
    for _, dtype in ipairs{"f32", "f64"} do
        local A = rand(37, 11, {seed = 3, dtype = dtype})
        local line = A:flatten():row()
        for _, name in ipairs{"mean", "var", "std", "norm"} do
            local f = _G[name]
            local of_line = name == "norm" and norm(line, {axis = 2}) or
                f(line, 2)
            lu.assertEquals(full(1, 1, f(A), {dtype = dtype})(1, 1),
                of_line(1, 1), name .. " " .. dtype)
        end
    end
    lu.assertTrue(isnan(vec{3}:std()))
    t.raises(function() return zeros(0, 3):mean() end, "of no elements")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
