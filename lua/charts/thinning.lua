-- Long series made short, on the device where they lie: what no picture could
-- show never crosses the bus. A line keeps the least and the greatest of each
-- of many columns, points keep one of those that would lie on one another.
local library = ...
local canvas = require "lumat.canvas"
local thinning = {}
local exp, log = math.exp, math.log

-- From how many elements on a series is made shorter.
thinning.MOST_LINE, thinning.MOST_POINTS = 20000, 20000

-- Cells of the grids that series are laid into: more than a page has pixels.
local PARTS = 4000
local LINE_COLS, LINE_ROWS = 1600, 1000
local POINT_COLS, POINT_ROWS = 640, 400

local nan <const> = 0 / 0

-- 1, 2, 3 … on the device of y.
function thinning.places(y)
    return library.range(1, y.rows, 1, {dtype = "f64", device = y.device})
end

-- What a picture has to know of a vector: {nan, inf, min, max}, min and max of
-- its finite elements, NaN where it has none.
function thinning.survey(v)
    local s = {}
    s.nan, s.inf, s.min, s.max = canvas.survey(v)
    return s
end

-- v, or its logarithm, NaN where it has no place; s: its survey.
local function along(v, s, is_log)
    if s.inf > 0 or is_log and s.min <= 0 then
        local has_place = v:isfinite()
        if is_log then has_place = has_place & v:gt(0) end
        v = library.where(has_place, v, nan)
    end
    return is_log and v:log() or v
end

-- The ends of v along an axis: its own, or the limits.
local function ends_of(v, s, limits, is_log)
    local low, high = s.min, s.max
    if limits then
        low, high = limits[1], limits[2]
        if is_log then low, high = log(low), log(high) end
    elseif is_log then
        -- the least that has a place, as it is after the logarithm
        low = library.blocks(v, 1, nil, "min")[1]
        high = library.blocks(v, 1, nil, "max")[1]
    end
    if low ~= low then return 0, 1 end
    if not (low < high) then low, high = low - 0.5, high + 0.5 end
    return low, high
end

-- The numbers 0 to count - 1 of the cells that v's elements lie in; NaN where
-- they lie beside low .. high.
local function cells(v, low, high, count)
    local at = ((v - low) * (count / (high - low))):floor()
    at = library.where(v:eq(high), count - 1, at)
    return library.where(at:ge(0) & at:lt(count), at, nan)
end

-- A vector of `count` cells that is 1 where one of the places, from 0 on, is.
local function filled(places, count)
    local grid = library.zeros(count + 1, {dtype = "f32",
        device = places.device})
    grid[library.where(places:isnan(), count + 1, places + 1)] = 1
    return grid[{{1, count}}]
end

-- The values in the middles of cells.
local function value_of(low, high, count, is_log)
    return function(cell)
        local x = low + (cell - 0.5) / count * (high - low)
        return is_log and exp(x) or x
    end
end

-- Both ends of as many parts of y as can be told apart.
local function ends_of_parts(y, s)
    y = along(y, s)
    local least = canvas.numbers(library.blocks(y, PARTS, nil, "min"))
    local most = canvas.numbers(library.blocks(y, PARTS, nil, "max"))
    local width, xs, ys = y.rows / PARTS, {}, {}
    for k = 1, PARTS do
        local x = (k - 1) * width + (width + 1) / 2
        xs[2 * k - 1], xs[2 * k] = x, x
        ys[2 * k - 1], ys[2 * k] = least[k], most[k]
    end
    return xs, ys
end

local function ascends(x)
    local n = x.rows
    local before, behind = x[{{1, n - 1}}], x[{{2, n}}]
    return behind:ge(before):all() or behind:le(before):all()
end

-- The lowest and the highest filled cell of each column, 0 in empty ones.
local function columns_filled(grid, cols, rows)
    local device = grid.device
    local up = library.range(1, rows, 1, {dtype = "f32", device = device}):row()
    local all = grid:reshape(cols, rows)
    local high = library.max(all % up, 2)
    local low = library.max(all % (rows + 1 - up), 2)
    return canvas.numbers(low:reshape(cols)), canvas.numbers(high:reshape(cols))
end

-- A line through y over x, or over its places: lists xs, ys; and whether they
-- are a line, or points since x does not ascend. sx, sy: their surveys; o: xlim,
-- ylim, logx, logy.
function thinning.line(x, y, sx, sy, o)
    if not x then
        if not o.logx then
            local xs, ys = ends_of_parts(y, sy)
            return xs, ys, true
        end
        x = thinning.places(y)
        sx = thinning.survey(x)
    elseif not ascends(x) then
        local xs, ys = thinning.points(x, y, sx, sy, o)
        return xs, ys, false
    end
    x, y = along(x, sx, o.logx), along(y, sy, o.logy)
    local x1, x2 = ends_of(x, sx, o.xlim, o.logx)
    local y1, y2 = ends_of(y, sy, o.ylim, o.logy)
    local across = cells(x, x1, x2, LINE_COLS)
    -- of lines that leave the picture the ends stay at its edges
    local up = cells(o.ylim and y:maximum(y1):minimum(y2) or y, y1, y2,
        LINE_ROWS)
    local low, high = columns_filled(filled(across * LINE_ROWS + up,
        LINE_COLS * LINE_ROWS), LINE_COLS, LINE_ROWS)
    local broken = (sy.nan > 0 or sy.inf > 0 or o.logy) and canvas.numbers(
        filled(library.where(y:isnan(), across, nan), LINE_COLS))
    local x_at = value_of(x1, x2, LINE_COLS, o.logx)
    local y_at = value_of(y1, y2, LINE_ROWS, o.logy)
    local xs, ys, n = {}, {}, 0
    for i = 1, LINE_COLS do
        local at = x_at(i)
        if high[i] > 0 then
            local bottom, top = LINE_ROWS + 1 - low[i], high[i]
            n = n + 1
            xs[n], ys[n] = at, y_at(bottom)
            if top > bottom then
                n = n + 1
                xs[n], ys[n] = at, y_at(top)
            end
        elseif broken and broken[i] > 0 then
            n = n + 1
            xs[n], ys[n] = at, nan
        end
    end
    return xs, ys, true
end

-- One of those points that lie in the same cell.
function thinning.points(x, y, sx, sy, o)
    x, y = along(x, sx, o.logx), along(y, sy, o.logy)
    local x1, x2 = ends_of(x, sx, o.xlim, o.logx)
    local y1, y2 = ends_of(y, sy, o.ylim, o.logy)
    local places = cells(x, x1, x2, POINT_COLS) * POINT_ROWS +
        cells(y, y1, y2, POINT_ROWS)
    local grid = canvas.numbers(filled(places, POINT_COLS * POINT_ROWS))
    local x_at = value_of(x1, x2, POINT_COLS, o.logx)
    local y_at = value_of(y1, y2, POINT_ROWS, o.logy)
    local xs, ys, n = {}, {}, 0
    for i = 1, POINT_COLS do
        for j = 1, POINT_ROWS do
            if grid[(i - 1) * POINT_ROWS + j] > 0 then
                n = n + 1
                xs[n], ys[n] = x_at(i), y_at(j)
            end
        end
    end
    return xs, ys
end

return thinning
