-- The shapes that mark points, as outlines, for painters that have no shapes of
-- their own: as large as those of svg.lua.
local marks = {}
local cos, pi, sin = math.cos, math.pi, math.sin

local R = 4 -- half the width of a mark
local CORNERS = 24 -- of a circle

local function outline(x, y, list)
    local points = {}
    for i = 1, #list, 2 do
        points[i], points[i + 1] = x + R * list[i], y + R * list[i + 1]
    end
    return points
end

local circle = {}
for i = 1, CORNERS do
    local angle = 2 * pi * i / CORNERS
    circle[2 * i - 1], circle[2 * i] = cos(angle), sin(angle)
end

local shapes = {circle, {-0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9},
    {0, -1.2, 1.14, 0.84, -1.14, 0.84}, {0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0}}

-- The corners {x, y, x, y …} of the mark of the i-th series, and whether it is
-- hollow.
function marks.of(i, x, y)
    return outline(x, y, shapes[(i - 1) % #shapes + 1]), i > #shapes
end

return marks
