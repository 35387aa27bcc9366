-- Principal components in four lines: along which directions do points spread
-- most? The data is made, so that the answer is known: points of three kinds
-- near a plane in a space of m dimensions, with noise all around.
--   lumat lesson_pca.lua [points [m]]     (300; 5)
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"
local count, m = lessons.sizes("points [m]", 300, 5)
m = math.max(m, 3)
local f64 = {dtype = "f64"}
local NOISE = 0.2

-- --- data --------------------------------------------------------------------

-- Two orthonormal directions, one a column, and three centres in their plane.
local plane = qr(randn(m, 2, {seed = 1, dtype = "f64"})).Q
local centres = mat({{4, 0}, {-3, 2}, {-1, -2}}, f64)
local kinds = randint(1, 3, count, {seed = 2})
local flat = centres[{kinds, {}}] + randn(count, 2, {seed = 3, dtype = "f64"}) / 2
local X = flat * plane.T + 10 + NOISE * randn(count, m, {seed = 4, dtype = "f64"})

-- --- four lines of mathematics -----------------------------------------------

local C = X - X:mean(1)                            -- points around their mean
local U, S, V = svd(C):unpack()                    -- C = U diag(S) V.T
local explained = S:square() / S:square():sum()    -- how much of the spread
local scores = C * V[{{}, {1, 2}}]                 -- the points in the plane

-- --- what they say -----------------------------------------------------------

print(("%d points in %d dimensions; of their spread each component has")
    :format(count, m))
for i, part in ipairs(explained:totable()) do
    print(("  %d  %5.1f %%  %s"):format(i, 100 * part,
        ("#"):rep(math.floor(60 * part + 0.5))))
end
-- A picture of points, each the sign of its kind.
local function draw(points, signs, rows, cols)
    local low, high = points:min(1), points:max(1)
    local places = floor((points - low) / (high - low) %
        vec{cols - 1, rows - 1}:row() + 1.5):totable()
    local grid = {}
    for i = 1, rows do grid[i] = {} end
    for i, place in ipairs(places) do
        grid[place[2] // 1 | 0][place[1] // 1 | 0] = signs[kinds[i] // 1 | 0]
    end
    for i = rows, 1, -1 do
        local line = {}
        for j = 1, cols do line[j] = grid[i][j] or " " end
        print("  " .. table.concat(line):match "^(.-)%s*$")
    end
end

print("\nthe points by the first two components, each kind a sign of its own:")
draw(scores, {"o", "x", "+"}, 16, 60)

-- The components span the plane that was made: how far is each of its
-- directions from their span?
local W = V[{{}, {1, 2}}]
local off = norm(plane - W * (W.T * plane), 2)
print(("the plane that was made is off by an angle of %.2f degrees")
    :format(math.deg(math.asin(off))))
-- noise turns the plane by about its own size over that of the points
local expected = NOISE * math.sqrt(m) / S[2]
lessons.check("the plane is found", off < 3 * expected,
    ("%.3g, expected about %.3g"):format(off, expected))

-- What is left outside the plane is noise in the other directions.
local rest = norm(C - scores * W.T) / math.sqrt(count * (m - 2))
print(("noise of %.3f was made, %.3f is left"):format(NOISE, rest))
lessons.check("what is left is the noise", math.abs(rest - NOISE) < NOISE / 5,
    ("%.3g"):format(rest))

-- The same by the covariance, as textbooks have it: its eigenvalues are those of
-- svd squared. Squares cost half of the digits of what is small.
local covariance = C.T * C / (count - 1)
local by_values = eigh(covariance).values:flip(1)
lessons.check("eigenvalues of the covariance agree",
    norm(by_values - S:square() / (count - 1)) <= 1e-12 * by_values[1],
    "they do not")
lessons.finish()
