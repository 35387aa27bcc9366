-- The shapes that a chart is told to draw, as outlines: marks, and what painters
-- that have lines alone make of crosses, intervals and levels.
local marks = {}
local ipairs = ipairs
local cos, pi, sin = math.cos, math.pi, math.sin
local nan <const> = 0 / 0

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

-- The corners {x, y, x, y …} of the mark of the i-th series; whether it is
-- hollow; and the radius of one that is a circle.
function marks.of(i, x, y)
    local shape = shapes[(i - 1) % #shapes + 1]
    return outline(x, y, shape), i > #shapes, shape == circle and R or nil
end

-- The lines {x, y, x, y …} of a cross, NaN between two of them.
function marks.cross(x, y)
    return {x - 4, y - 4, x + 4, y + 4, nan, nan, x + 4, y - 4, x - 4, y + 4}
end

-- Those of an interval: a bar with caps.
function marks.bar(x, low, high)
    return {x - 3, low, x + 3, low, nan, nan, x, low, x, high, nan, nan,
        x - 3, high, x + 3, high}
end

-- Those of segments {x1, y1, x2, y2}.
function marks.level(segments)
    local list = {}
    for _, s in ipairs(segments) do
        for k = 1, 4 do list[#list + 1] = s[k] end
        list[#list + 1], list[#list + 2] = nan, nan
    end
    return list
end

return marks
