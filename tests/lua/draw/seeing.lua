-- What the tests of looking at matrices share: the text of what is seen, and
-- the elements it is compared with.
local lu = require "luaunit"
local seeing = {}
local where = zeros(1).device

-- The text of x, with the device's name put in for @ in the lines expected.
function seeing.shows(x, ...)
    local expected = table.concat({...}, "\n"):gsub("@", where)
    lu.assertEquals(tostring(x), expected)
end

function seeing.has(x, ...)
    for _, text in ipairs {...} do lu.assertStrContains(tostring(x), text) end
end

-- A function that gives element (i, j) of A, whatever its layout.
function seeing.reader(A)
    local list = A:totable()
    if A.ndim == 1 then return function(i) return list[i] end, A.rows, 1 end
    return function(i, j) return list[i][j] end, A.rows, A.cols
end

-- Of matrices, around the sizes at which the work is shared out.
seeing.shapes = {{1, 1}, {2, 2}, {3, 5}, {31, 33}, {32, 32}, {65, 65}, {1, 70},
    {70, 1}, {200, 3}, {3, 2000}, {130, 130}, {1025, 4}}

return seeing
