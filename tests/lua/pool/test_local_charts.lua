-- Charts of distributed matrices: none is drawn as it is, and what to draw in its
-- place is said; what is gathered, and lines and sums of it, are drawn as those of
-- the whole matrix. Of processes that the prompt started itself.
POOL_LAUNCHER = "local"
local lu = require "luaunit"
local t = require "common"
local pools = require "pool.pools"

TestRefusals = {}

-- Each where it may stand, and in a table of arguments.
function TestRefusals:test_each_names_what_is_drawn_instead()
    pools.start(1, 2, 3)
    local D, v = spread(pools.whole(6, 4, "f64", 1)), vec{1, 2, 3, 4}
    local cases = {
        {"plot", "y", function() plot(D) end},
        {"plot", "x", function() plot(D, v) end},
        {"plot", "y", function() plot(v, D) end},
        {"plot", "y", function() plot{D, style = "points"} end},
        {"plot", "error", function() plot(v, {error = D}) end},
        {"scatter", "x", function() scatter(D, D) end},
        {"boxplot", "A", function() boxplot(D) end},
        {"boxplot", "argument 2", function() boxplot(v, D) end},
        {"hist", "A", function() hist(D) end},
        {"heat", "A", function() heat(D) end},
        {"heat", "A", function() heat(D, {file = "D.svg"}) end},
        {"spy", "A", function() spy(D) end},
        {"imshow", "A", function() imshow(D) end},
        {"contour", "A", function() contour(D) end},
        {"contour", "A", function() contour(v, range(1, 6), D) end}}
    for _, case in ipairs(cases) do
        t.raises(case[3], ("%s: %s is a distributed matrix, which is drawn as " ..
            "D:gather()"):format(case[1], case[2]))
    end
    lu.assertNil(io.open "D.svg")
end

-- A function that no distributed matrix has is told of with the caller's line.
function TestRefusals:test_functions_that_are_not_there()
    pools.start(1, 2, 3)
    local D = spread(eye(4))
    for name, f in pairs{blocks = blocks, kron = kron} do
        lu.assertErrorMsgMatches(".*test_local_charts%.lua:%d+: distributed " ..
            'matrix: there is no "' .. name .. '": D:gather%(%) .*', function()
            local _ = f(D, D)
        end)
    end
end

TestDrawn = {}

local function same(chart, wanted) lu.assertEquals(tostring(chart), tostring(wanted)) end

-- D:gather() is drawn with the bits of the matrix that was spread.
function TestDrawn:test_what_is_gathered()
    for _, grid in ipairs{{1, 2}, {2, 2}} do
        pools.start(grid[1], grid[2], 3)
        for _, dtype in ipairs{"f32", "f64"} do
            local A = pools.whole(11, 7, dtype, 2)
            local D = spread(A)
            for _, draw in ipairs{plot, boxplot, hist, heat, spy, imshow,
                contour} do
                same(draw(D:gather()), draw(A))
            end
            same(scatter(A:col(1), D:gather()), scatter(A:col(1), A))
            same(plot(D.T:gather()), plot(A.T))
        end
    end
end

-- A row and sums of one are matrices here, and drawn at once; a part is gathered.
function TestDrawn:test_rows_parts_and_sums()
    pools.start(2, 2, 3)
    local A = pools.whole(11, 7, "f64", 3)
    local D = spread(A)
    same(plot(D[2]), plot(A[2]))
    same(imshow(D[{{2, 5}, {}}]:gather()), imshow(A[{{2, 5}, {}}]))
    same(plot(D:sum(1)), plot(A:sum(1)))
    same(hist(D:max(2)), hist(A:max(2)))
end

os.exit(lu.LuaUnit.run("-o", "tap"))
