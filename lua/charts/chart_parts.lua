-- What a chart comes to before it is drawn: each series as paths, marks,
-- rectangles, segments or an image, in the numbers of the axes; how far these
-- reach; what the legend says. The three drawers know nothing else.
--
-- A part has ink (its colour and mark), name, series, and of these what it
-- needs:
--   x, y       lists; joined: a line leads through them; marked: each has a mark
--   count      how many of them have a place
--   rects      {x1, y1, x2, y2, middle = x}; is_hollow: only their edges are drawn
--   segments   {x1, y1, x2, y2}
--   intervals  {x, low, high}
--   image      {rows, cols, values, low, high, log, is_two_sided, left, right,
--              bottom, top}
--   levels     {value, colour, segments}
local canvas = require "lumat.canvas"
local checks = require "lumat.checks"
local palette = require "lumat.palette"
local scales = require "lumat.scales"
local parts = {}
local ipairs, next, setmetatable, type = ipairs, next, setmetatable, type
local concat, sort = table.concat, table.sort
local abs, huge, larger, smaller = math.abs, math.huge, math.max,
    math.min

local function is_number(x)
    return type(x) == "number" and x == x and x > -huge and x < huge
end
parts.is_number = is_number

local function counted(n)
    local list = {}
    for i = 1, n do list[i] = i end
    return list
end

local function fail(text, ...) checks.fail("chart", text, ...) end

-- A list that the series must have, of the length of another one.
local function list_of(s, name, as)
    local list = s[name]
    if type(list) ~= "table" and type(list) ~= "userdata" then
        fail("%s of the %s is %s, expected a list of numbers", name, s.kind,
            checks.brief(list))
    elseif as and #list ~= #as then
        fail("the %s has %d numbers in %s, expected %d", s.kind, #list, name,
            #as)
    end
    return list
end

-- --- kinds of series --------------------------------------------------------

local SAMPLES = 201 -- of a function

-- The ends and corners of a bound, or places close together along the axis.
local function places_along(low, high, is_log, knots)
    local list = {}
    for _, x in ipairs(knots or {}) do
        if x > low and x < high then list[#list + 1] = x end
    end
    if knots then
        list[#list + 1], list[#list + 2] = low, high
        sort(list)
        return list
    end
    for i = 0, SAMPLES - 1 do
        local t = i / (SAMPLES - 1)
        list[#list + 1] = is_log and low * (high / low) ^ t or
            low * (1 - t) + high * t
    end
    return list
end

local function intervals_of(s, x, y)
    local list = {}
    if not (s.low and s.high) then return nil end
    for i = 1, #y do
        local low, high = s.low[i], s.high[i]
        if is_number(x[i]) and is_number(y[i]) and is_number(low) and
            is_number(high) then
            list[#list + 1] = {x[i], low, high}
        end
    end
    return list
end

local kinds = {}

function kinds.line(part, s)
    part.joined, part.marked = true, s.marks
    part.is_counted = true
    if type(s.y) == "function" then return end
    part.y = list_of(s, "y")
    part.x = s.x and list_of(s, "x", part.y) or counted(#part.y)
    part.intervals = intervals_of(s, part.x, part.y)
end

function kinds.points(part, s)
    kinds.line(part, s)
    part.joined, part.marked = false, true
end

function kinds.errors(part, s)
    list_of(s, "low", s.y)
    list_of(s, "high", s.y)
    kinds.points(part, s)
    part.are_errors = true
end

function kinds.steps(part, s)
    local y = list_of(s, "y")
    local x = s.x and list_of(s, "x", y) or counted(#y)
    part.joined, part.x, part.y = true, {}, {}
    for i = 1, #y do
        local n = #part.x
        if i > 1 then
            part.x[n + 1], part.y[n + 1] = x[i], y[i - 1]
            n = n + 1
        end
        part.x[n + 1], part.y[n + 1] = x[i], y[i]
    end
end

-- The least distance of two places.
local function apart(x)
    local sorted, least = {}, huge
    for i = 1, #x do sorted[i] = x[i] end
    sort(sorted)
    for i = 2, #sorted do
        local distance = sorted[i] - sorted[i - 1]
        if distance > 0 then least = smaller(least, distance) end
    end
    return least < huge and least or 1
end

-- A rectangle, if all its sides have a place; middle: the x that it stands for.
local function add_rect(part, x1, y1, x2, y2, middle)
    if not (is_number(x1) and is_number(y1) and is_number(x2) and
        is_number(y2)) then
        return false
    end
    part.rects[#part.rects + 1] = {x1, y1, x2, y2, middle = middle or
        (x1 + x2) / 2}
    return true
end

local FILLED = 0.8 -- of the distance of two bars or boxes

-- Bars of several series share the place that one would have.
function kinds.bars(part, s, chart)
    local y = list_of(s, "y")
    part.rects = {}
    if s.edges then
        if #s.edges ~= #y + 1 then
            fail("the bars have %d edges, expected %d", #s.edges, #y + 1)
        end
        for i = 1, #y do
            add_rect(part, s.edges[i], 0, s.edges[i + 1], y[i])
        end
        part.tight_x = true
        return
    end
    local x, group, place = s.x and list_of(s, "x", y) or counted(#y), 0, 0
    for _, other in ipairs(chart.series) do
        if other.kind == "bars" and not other.edges then
            group = group + 1
            place = other == s and group or place
        end
    end
    local whole = s.width or FILLED * apart(x)
    for i = 1, #y do
        local left = x[i] - whole / 2 + (place - 1) * whole / group
        add_rect(part, left, 0, left + whole / group, y[i], x[i])
    end
end

local function add_box(part, b, x, half)
    if not add_rect(part, x - half, b.lower, x + half, b.upper) then return end
    for _, segment in ipairs{{x - half, b.middle, x + half, b.middle},
        {x, b.low, x, b.lower}, {x, b.upper, x, b.high},
        {x - half / 2, b.low, x + half / 2, b.low},
        {x - half / 2, b.high, x + half / 2, b.high}} do
        if is_number(segment[2]) and is_number(segment[4]) then
            part.segments[#part.segments + 1] = segment
        end
    end
    for _, y in ipairs(b.outliers or {}) do
        part.x[#part.x + 1], part.y[#part.y + 1] = x, y
    end
end

function kinds.box(part, s)
    local boxes = list_of(s, "boxes")
    local x = s.x and list_of(s, "x", boxes) or counted(#boxes)
    local half = (s.width or FILLED / 2 * apart(x)) / 2
    part.rects, part.segments, part.is_hollow = {}, {}, true
    part.x, part.y, part.marked = {}, {}, true
    for i = 1, #boxes do add_box(part, boxes[i], x[i], half) end
end

-- First and last middle of so many cells, and half a cell.
local function cells_of(ends, count)
    local first, last = ends and ends[1] or 1, ends and ends[2] or count
    return first, last, count > 1 and abs(last - first) / (count - 1) / 2 or 0.5
end

local function grid_of(s)
    local values = list_of(s, "values")
    if not (s.rows and s.cols and s.rows > 0 and s.cols > 0) or
        #values ~= s.rows * s.cols then
        fail("the %s has %d values, expected rows x cols, %s x %s", s.kind,
            #values, checks.brief(s.rows), checks.brief(s.cols))
    end
    local low, high = canvas.spread(values)
    if s.log and low and low <= 0 then
        low = huge
        for i = 1, #values do
            if values[i] > 0 then low = smaller(low, values[i]) end
        end
    end
    return values, s.low or low or 0, s.high or high or 1
end

function kinds.image(part, s)
    local values, low, high = grid_of(s)
    local x1, x2, half_x = cells_of(s.x, s.cols)
    local y1, y2, half_y = cells_of(s.y, s.rows)
    part.tight_x, part.tight_y = true, true
    part.whole_x, part.whole_y = not s.x, not s.y
    part.image = {rows = s.rows, cols = s.cols, values = values, low = low,
        high = high, log = s.log, mask = s.mask,
        is_two_sided = palette.is_two_sided(low, high, s.log),
        texts = s.texts, notes = s.cell_notes,
        x1 = x1, x2 = x2, y1 = y1, y2 = y2, left = smaller(x1, x2) - half_x,
        right = larger(x1, x2) + half_x, bottom = smaller(y1, y2) - half_y,
        top = larger(y1, y2) + half_y, what = s.what, title = s.title}
end

-- --- contours ---------------------------------------------------------------

-- The edges that a line of a level crosses, by which corners lie above it:
-- edge 1 is between corners 1 and 2, 2 between 2 and 3, 3 between 3 and 4, 4
-- between 4 and 1. Where two corners face each other the middle decides.
-- Source: Lorensen and Cline, Marching cubes, 1987, in two dimensions.
local crossings = {[0] = {}, {4, 1}, {1, 2}, {4, 2}, {2, 3}, {4, 1, 2, 3},
    {1, 3}, {4, 3}, {3, 4}, {1, 3}, {1, 2, 3, 4}, {2, 3}, {2, 4}, {1, 2},
    {4, 1}, {}}
local crossings_above = {[5] = {1, 2, 3, 4}, [10] = {4, 1, 2, 3}}

-- Where a level lies between the corners of one cell; code: which of them are
-- above it; v: their values, p: their places.
local function add_crossings(segments, level, code, v, p)
    for k = 1, 4 do
        if not is_number(v[k]) then return end
    end
    local edges = crossings[code]
    if crossings_above[code] and (v[1] + v[2] + v[3] + v[4]) / 4 > level then
        edges = crossings_above[code]
    end
    local function place(edge)
        local a, b = edge, edge % 4 + 1
        local t = (level - v[a]) / (v[b] - v[a])
        return p[a][1] + t * (p[b][1] - p[a][1]),
            p[a][2] + t * (p[b][2] - p[a][2])
    end
    for k = 1, #edges, 2 do
        local x1, y1 = place(edges[k])
        local x2, y2 = place(edges[k + 1])
        segments[#segments + 1] = {x1, y1, x2, y2}
    end
end

local function segments_at(level, s, values, x, y)
    local segments, cols = {}, s.cols
    for i = 1, s.rows - 1 do
        local k = (i - 1) * cols + 1
        local before, below = values[k], values[k + cols]
        for j = 1, cols - 1 do
            local a, b = values[k + j], values[k + cols + j]
            local code = (before > level and 1 or 0) + (a > level and 2 or 0) +
                (b > level and 4 or 0) + (below > level and 8 or 0)
            if code > 0 and code < 15 then
                add_crossings(segments, level, code, {before, a, b, below},
                    {{x(j), y(i)}, {x(j + 1), y(i)}, {x(j + 1), y(i + 1)},
                        {x(j), y(i + 1)}})
            end
            before, below = a, b
        end
    end
    return segments
end

local LEVELS = 10

local function levels_of(s, low, high, count)
    if type(s.levels) == "table" then return s.levels end
    local list, scale = {}, scales.linear(low, high, s.levels or count)
    for _, tick in ipairs(scale.ticks) do
        local value = scale.low + tick.at * (scale.high - scale.low)
        if value > low and value < high then list[#list + 1] = value end
    end
    -- round numbers may all lie outside
    if #list == 0 and low < high then list[1] = low / 2 + high / 2 end
    return list
end

function kinds.contour(part, s, _, made)
    local values, low, high = grid_of(s)
    local x1, x2 = cells_of(s.x, s.cols)
    local y1, y2 = cells_of(s.y, s.rows)
    local two_sided = palette.is_two_sided(low, high)
    local function x(j) return x1 + (x2 - x1) * (j - 1) / larger(1, s.cols - 1) end
    local function y(i) return y1 + (y2 - y1) * (i - 1) / larger(1, s.rows - 1) end
    part.levels, part.tight_x, part.tight_y = {}, true, true
    part.extent = {x1, y1, x2, y2}
    for i, level in ipairs(levels_of(s, low, high, made.levels)) do
        part.levels[i] = {value = level, segments = segments_at(level, s,
            values, x, y), colour = palette.line_colour(palette.share(level,
            low, high), two_sided)}
    end
end

-- --- ranges -----------------------------------------------------------------

local sides = {x = {1, 3}, y = {2, 4}}

-- Widens range[1] .. range[2] so that it holds x, if that has a place.
local function include(range, x, is_log)
    if is_number(x) and (x > 0 or not is_log) then
        range[1], range[2] = smaller(range[1], x), larger(range[2], x)
    end
end

local function include_boxes(range, list, side, is_log)
    for _, box in ipairs(list or {}) do
        include(range, box[sides[side][1]], is_log)
        include(range, box[sides[side][2]], is_log)
    end
end

local function include_part(ranges, part, x_log, y_log)
    if part.x and not part.series.limit then
        local x1, x2, y1, y2 = canvas.spread(part.x, part.y, x_log, y_log)
        include(ranges.x, x1)
        include(ranges.x, x2)
        include(ranges.y, y1)
        include(ranges.y, y2)
    end
    for side, is_log in next, {x = x_log or false, y = y_log or false} do
        local range, image = ranges[side], part.image
        include_boxes(range, part.rects, side, is_log)
        include_boxes(range, part.segments, side, is_log)
        include_boxes(range, {part.extent}, side, is_log)
        if image then
            include(range, side == "x" and image.left or image.bottom, is_log)
            include(range, side == "x" and image.right or image.top, is_log)
        end
    end
    for _, interval in ipairs(part.intervals or {}) do
        include(ranges.y, interval[2], y_log)
        include(ranges.y, interval[3], y_log)
    end
end

-- Functions that are no bounds become lists.
local function sample_functions(list, ranges, chart)
    local low = chart.x and chart.x.low or ranges.x[1]
    local high = chart.x and chart.x.high or ranges.x[2]
    if low > high then low, high = 0, 1 end
    for _, part in ipairs(list) do
        local s = part.series
        if type(s.y) == "function" and not s.limit then
            part.x = places_along(low, high, chart.x and
                chart.x.scale == "log", s.knots)
            part.y = {}
            for i, x in ipairs(part.x) do part.y[i] = s.y(x) end
            part.is_sampled = true
        end
    end
end

-- --- the whole --------------------------------------------------------------

local names = {}
for name in next, kinds do names[#names + 1] = name end
sort(names)

local function part_of(s, ink, chart, made)
    local make = kinds[s.kind]
    if not make then
        fail("there is no kind %s of series, but %s", checks.brief(s.kind),
            concat(names, " "))
    end
    local part = {series = s, name = s.name, ink = ink}
    make(part, s, chart, made)
    return part
end

local function count_places(part)
    local n = 0
    for i = 1, part.x and part.y and #part.x or 0 do
        if is_number(part.x[i]) and is_number(part.y[i]) then n = n + 1 end
    end
    return n
end

local OVER = "#111111" -- the colour of levels over an image

-- Levels over an image have none of its colours, in which nobody sees them.
local function mark_levels(list)
    local has_image = false
    for _, part in ipairs(list) do has_image = has_image or part.image end
    for _, part in ipairs(has_image and list or {}) do
        for _, level in ipairs(part.levels or {}) do
            level.colour, level.is_over = OVER, true
        end
    end
end

local whole = {}
whole.__index = whole

-- The chart's parts; levels: how many lines of a height there are, about, where
-- its series does not say. With
--   list          of them, in the order of the series
--   legend        the parts that it names
--   scale(side, count)   the scale of an axis
function parts.of(chart, levels)
    local self = {chart = chart, list = {}, legend = {},
        levels = levels or LEVELS, x = chart.x or {}, y = chart.y or {},
        ranges = {x = {huge, -huge}, y = {huge, -huge}}}
    local ink = 0
    for i, s in ipairs(chart.series or {}) do
        if not s.limit then ink = ink + 1 end
        local part = part_of(s, s.limit and 0 or palette.ink(ink), chart, self)
        self.list[i] = part
        self.tight_x = self.tight_x or part.tight_x
        self.tight_y = self.tight_y or part.tight_y
        self.whole_x = self.whole_x or part.whole_x
        self.whole_y = self.whole_y or part.whole_y
        if s.name and not s.limit then
            self.legend[#self.legend + 1] = part
        end
    end
    if chart.legend == false or not chart.legend and #self.legend < 2 then
        self.legend = {}
    end
    mark_levels(self.list)
    local x_log, y_log = self.x.scale == "log", self.y.scale == "log"
    for _, side in ipairs{"x", "y"} do
        for _, x in ipairs(self[side].include or {}) do
            include(self.ranges[side], x, self[side].scale == "log")
        end
    end
    for _, part in ipairs(self.list) do
        include_part(self.ranges, part, x_log, y_log)
    end
    sample_functions(self.list, self.ranges, chart)
    for _, part in ipairs(self.list) do
        if part.is_sampled then include_part(self.ranges, part, x_log, y_log) end
        if part.marked or part.is_counted then part.count = count_places(part) end
    end
    return setmetatable(self, whole)
end

-- The places of all points along x, where an axis may be of powers of two.
local function values_of(self)
    local list = {}
    if self.x.scale ~= "log" or self.x.base == 10 then return nil end
    for _, part in ipairs(self.list) do
        for i = 1, part.x and #part.x or 0 do
            if is_number(part.x[i]) then list[#list + 1] = part.x[i] end
        end
    end
    return list
end

function whole:scale(side, count)
    local axis, range = {}, self.ranges[side]
    for name, value in next, self[side] do axis[name] = value end
    if axis.tight == nil then axis.tight = self["tight_" .. side] end
    if axis.whole == nil then axis.whole = self["whole_" .. side] end
    return scales.of(axis, range[1], range[2], count,
        side == "x" and values_of(self) or nil)
end

-- The path of a bound that is a function, through the whole of the scale.
function parts.along(part, scale)
    local s, y = part.series, {}
    if type(s.y) ~= "function" then return part.x, part.y end
    local x = places_along(smaller(scale.low, scale.high),
        larger(scale.low, scale.high), scale.is_log, s.knots)
    for i, at in ipairs(x) do y[i] = s.y(at) end
    return x, y
end

return parts
