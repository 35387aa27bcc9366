-- Charts as values: what plot, hist, imshow and the others give. One shows
-- itself, drawn for the screen as that is when it is shown; save writes it, and
-- subplot puts several into one.
local library = ...
local canvas = require "lumat.canvas"
local checks = require "lumat.checks"
local kept_objects = require "lumat.kept"
local parts_of = require "lumat.chart_parts"
local values = {}
local getmetatable, next = getmetatable, next
local setmetatable, type = setmetatable, type
local require = require
local fail = checks.fail

-- value -> {chart, o}: beside it, as it is nobody else's.
local kept_of = setmetatable({}, {__mode = "k"})

local meta = {__name = "chart", __tostring = canvas.tostring}
local methods = {}
meta.__index = methods

-- The chart's description and its options, or nil of what is no chart.
function values.chart_of(value)
    local kept = value ~= nil and kept_of[value]
    if not kept then return nil end
    return kept.chart, kept.o
end

-- What C's tostring asks for; style: width, height, ascii and colour of the
-- screen. What goes anywhere but to it has no colours.
function meta.__draw(value, is_for_later, style)
    local kept = kept_of[value]
    if not kept then return "chart" end
    local text_charts = require "lumat.text_charts"
    local o = {width = kept.o.width or style.width, height = kept.o.height or
        style.height, ascii = style.ascii, colour = style.colour}
    if is_for_later and o.colour then
        -- without colours marks tell series apart, with one they need none
        local series = kept.chart.series
        if not series or #series > 1 then o.colour = false end
    end
    local text = text_charts.draw(kept.chart, o)
    return is_for_later and text_charts.without_colours(text) or text
end

local MOST = 10000 -- characters or pixels

local function check_side(what, name, x, least, unit)
    if not (type(x) == "number" and x >= least and x <= MOST and x == x // 1)
    then
        fail(what, "%s: needs %d to %d %s, not %s", name, least, MOST, unit,
            checks.brief(x))
    end
end

-- Raises what is wrong with the sizes in the options.
function values.check_sizes(what, o)
    if o.width then check_side(what, "width", o.width, 10, "characters") end
    if o.height then check_side(what, "height", o.height, 4, "characters") end
    if o.file and (o.width or o.height) then
        fail(what, "width and height are of text: write size = {680, 420}, a " ..
            "file's pixels")
    end
    if o.size == nil then return end
    check_side(what, "size[1]", o.size[1], 100, "pixels")
    check_side(what, "size[2]", o.size[2], 100, "pixels")
end

-- Writes the chart into the file; what is wrong is told as what `what` says.
local function write(what, kept, file)
    local size = kept.o.size or {}
    return require "lumat.chart_files".write(what, kept.chart, file,
        {width = size[1], height = size[2], dark = kept.o.dark})
end

local function save(value, file)
    local kept = kept_of[value or ""]
    if not kept or type(file) ~= "string" then
        fail("save", 'a chart is saved as save(chart, "p.svg")')
    end
    write("save", kept, file)
end
methods.save = checks.method("save", "chart", save)

-- save(chart, file)
meta.__save = checks.placed(function(value, file, options)
    local name = next(options or {})
    if name then
        fail("save", "a chart takes no %s: size and dark are options of what " ..
            "makes it, as plot(v, {dark = true})", name)
    end
    save(value, file)
end)

-- The value of a chart, or what shows that it went into the file o.file.
-- fields: what else it has by name, or a function that gives them of its
-- chart_parts. Raises where it cannot be drawn.
function values.shown(what, chart, o, fields)
    values.check_sizes(what, o)
    local kept = {chart = chart, o = o}
    if o.file then
        write(what, kept, o.file)
        return checks.shown({file = o.file}, "wrote " .. o.file)
    end
    local value = {}
    kept_of[value] = kept
    if not chart.subplots then
        local whole = parts_of.of(chart)
        local y = whole:scale("y", 4)
        value.low, value.high = y.low, y.high
        if type(fields) == "function" then fields = fields(whole) end
    end
    for name, field in next, fields or {} do value[name] = field end
    kept_objects.note(value, "chart")
    return setmetatable(value, meta)
end

-- A copy of what tables hold, where `replace` gives something else for what is no
-- table.
local function replaced(x, replace)
    if type(x) ~= "table" then return replace(x) end
    local copy = {}
    for name, part in next, x do copy[name] = replaced(part, replace) end
    return copy
end

-- Numbers that C hands to charts, as a vector, and such a vector as numbers.
local function as_vector(x)
    if type(x) ~= "userdata" or getmetatable(x) ~= false then return x end
    local list = {}
    for i = 1, #x do list[i] = x[i] end
    return library.vec(list, {dtype = "f64", device = "cpu"})
end

local function as_numbers(x)
    return checks.is_matrix(x) and canvas.numbers(x) or x
end

-- For sessions: options that are of the drawing alone; the others are in the
-- chart by now.
kept_objects.add_kind("chart", function(value, rescues)
    if rescues then return nil end
    local chart, o = values.chart_of(value)
    local fields = {chart = replaced(chart, as_vector), fields = checks.copied(value), o = {
        width = o.width, height = o.height, size = o.size, dark = o.dark}}
    return fields, fields
end, function(value, parts)
    local o, fields = parts.o, parts.fields
    local chart = replaced(parts.chart, as_numbers)
    values.check_sizes("chart", o)
    if not chart.subplots then parts_of.of(chart) end -- raises what is wrong
    kept_of[value] = {chart = chart, o = o}
    for name, field in next, fields do value[name] = field end
    kept_objects.note(setmetatable(value, meta), "chart")
end)

return values
