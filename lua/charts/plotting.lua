-- plot, scatter, boxplot, imshow, contour and subplot: matrices become charts.
-- What would not be seen does not cross the bus: long series are reduced where
-- their elements lie.
local library = ...
local canvas = require "lumat.canvas"
local chart_values = require "lumat.chart_values"
local checks = require "lumat.checks"
local journal = require "lumat.journal"
local thinning = require "lumat.thinning"
local plotting = {}
local error, getmetatable, ipairs, next, pcall, tostring, type = error,
    getmetatable, ipairs, next, pcall, tostring, type
local concat, unpack = table.concat, table.unpack
local abs, huge, larger, smaller = math.abs, math.huge, math.max, math.min
local format, gsub = string.format, string.gsub
local fail, is_matrix = checks.fail, checks.is_matrix

local MOST_SERIES = 8
local ROOM = 0.04 -- of an axis, beside points at its ends
local MOST_DRAWN = 20000 -- bars, steps and intervals that are drawn each

-- --- arguments ----------------------------------------------------------------

-- A matrix, or that of a table of numbers; not empty, and real.
local function matrix_of(what, name, x)
    local why = canvas.why_undrawn(x)
    if why then fail(what, "%s %s", name, why) end
    if type(x) == "table" then
        local ok, m = pcall(type(x[1]) == "table" and library.mat or
            library.vec, x, {dtype = "f64", device = "cpu"})
        if not ok and checks.is_interrupt(m) then
            error(m, 0)
        elseif not ok then
            fail(what, "%s", (gsub(gsub(tostring(m), "^[%w_]+:%d+: ", ""),
                "^[%w_]+: ", "", 1)))
        end
        x = m
    end
    checks.matrix(what, name, x)
    if checks.is_complex(x) then
        fail(what, "%s is complex: draw real(%s), abs(%s) or angle(%s)", name,
            name, name, name)
    elseif x.size == 0 then
        fail(what, "%s has no elements", name)
    end
    return x
end

-- Its columns as vectors; of a vector or a row, itself.
local function columns_of(A)
    if A.ndim == 1 then return {A} end
    if A.rows == 1 then return {A[1]} end
    local list, turned = {}, A.T
    for j = 1, smaller(A.cols, MOST_SERIES) do list[j] = turned[j] end
    return list
end

-- {A, B, style = "points"} means as much as (A, B, {style = "points"}).
local function spread_table(name, list)
    local t = list[1]
    if #list > 1 or type(t) ~= "table" or getmetatable(t) then return list end
    local options, arguments = {}, {}
    for key, value in next, t do
        if type(key) == "string" then options[key] = value end
    end
    if next(options) == nil and not is_matrix(t[1]) and
        not canvas.why_undrawn(t[1]) then
        return list
    end
    for i = 1, #t do arguments[i] = t[i] end
    if type(arguments[1]) == "number" then arguments = {arguments} end
    checks.options(name, options)
    if next(options) ~= nil then arguments[#arguments + 1] = options end
    return arguments
end

-- Of so many arguments the last one is data, though it is an empty table.
local all_data = {scatter = 2, contour = 3}

-- The arguments before the options, and these.
local function taken(name, ...)
    local list = spread_table(name, {...})
    local last = list[#list]
    if #list > 1 and type(last) == "string" then
        list[#list] = nil
        return list, {file = last}
    elseif #list > 1 and type(last) == "table" and #last == 0 and
        not getmetatable(last) and
        (next(last) ~= nil or #list ~= all_data[name]) then
        list[#list] = nil
        return list, checks.copied(last)
    end
    return list, {}
end

-- Words such as the style, or a list of them for so many series, the last one
-- for all that are left.
local function word_of(what, name, words, value, i, count)
    if type(value) == "table" then
        if #value > count then
            fail(what, "%s has %d words for %d series", name, #value, count)
        end
        value = value[i] or value[#value]
    end
    for _, word in ipairs(words) do
        if value == word then return value end
    end
    local near = type(value) == "string" and #value <= 40 and
        journal.nearest(value, concat(words, " "))
    fail(what, '%s is %s, expected "%s"%s', name, checks.brief(value),
        concat(words, '", "'), near and
        format(": did you mean '%s'?", near) or "")
end

-- --- what all charts take -------------------------------------------------------

local function limits_of(what, name, pair, is_log)
    if pair == nil then return nil end
    local low, high = pair[1], pair[2]
    if #pair ~= 2 or type(low) ~= "number" or type(high) ~= "number" or
        not (low < high and low > -huge and high < huge) then
        fail(what, "%s is no range: write %s = {low, high}", name, name)
    elseif is_log and low <= 0 then
        fail(what, "%s begins at %s, and a logarithmic axis above 0", name,
            checks.brief(low))
    end
    return low, high
end

local function add_note(chart, text, ...)
    chart.notes = chart.notes or {}
    chart.notes[#chart.notes + 1] = format(text, ...)
end

-- How many elements are so, in words behind a number; adds a note.
local function note(chart, count, one, many)
    if count == 0 then return end
    add_note(chart, "%d %s", count, count == 1 and one or many)
end

-- The strings of an option that is a list of them, one for each of so many.
local function names_of(what, option, names, count, things)
    if names == nil then return nil end
    if #names ~= count then
        fail(what, "%s has %s for %d %s", option, checks.plural(#names, "name"),
            count, things)
    end
    for i, name in ipairs(names) do
        if type(name) ~= "string" then
            fail(what, "name %d of %s is %s, expected a string", i, option,
                checks.brief(name))
        end
    end
    return checks.copied(names)
end

local function legend_of(what, chart, legend)
    if type(legend) ~= "table" then
        chart.legend = legend
        return
    end
    for i, name in ipairs(names_of(what, "legend", legend, #chart.series,
        "series")) do
        chart.series[i].name = name
    end
    chart.legend = true
end

-- Titles, ends and kinds of the axes, from the options.
local function dress(what, chart, o)
    local x, y = chart.x or {}, chart.y or {}
    chart.x, chart.y = x, y
    chart.title = o.title or chart.title
    x.title, y.title = o.xlabel, o.ylabel
    x.scale = o.logx and "log" or x.scale
    y.scale = o.logy and "log" or y.scale
    x.dates = o.xdates
    if o.xdates and o.logx then
        fail(what, "an axis of dates has no logarithm")
    elseif x.labels and (o.xlim or o.logx or o.xdates) then
        fail(what, "an axis of names has no %s", o.xlim and "xlim" or
            o.logx and "logarithm" or "dates")
    end
    if o.ylim and (o.low or o.high) then
        fail(what, "ylim and low or high say the same: write one of them")
    end
    if o.xlim then x.low, x.high = limits_of(what, "xlim", o.xlim, o.logx) end
    if o.ylim then y.low, y.high = limits_of(what, "ylim", o.ylim, o.logy) end
    legend_of(what, chart, o.legend)
    return chart
end
plotting.dress = dress

-- --- lines, points, bars --------------------------------------------------------

local styles = {"line", "points", "bars", "steps", "errors"}

-- x (or nil) and a list of {values, name, column} of the arguments.
local function series_of(what, list)
    local named = {}
    local x, from = nil, 1
    if #list > 1 then
        local first = matrix_of(what, "x", list[1])
        local columns = columns_of(first)
        if #columns > 1 then
            fail(what, "x has %d columns: it is a vector, one value for each " ..
                "row of y", first.cols)
        end
        x, from = columns[1], 2
    end
    local all = 0
    for i = from, #list do
        local name = #list <= 2 and "y" or "y" .. i - from + 1
        local y = matrix_of(what, name, list[i])
        local columns = columns_of(y)
        if x and columns[1].rows ~= x.rows then
            fail(what, "x has %s, %s has %d", checks.plural(x.rows, "element"),
                name, columns[1].rows)
        elseif x and x.device ~= y.device then
            fail(what, "x is on %s and %s on %s: write x:to(\"%s\")", x.device,
                name, y.device, y.device)
        end
        all = all + (y.ndim == 2 and y.rows > 1 and y.cols or 1)
        for j, column in ipairs(columns) do
            named[#named + 1] = {y = column, name = #columns > 1 and
                (#list > from and name .. " " or "") .. "column " .. j or name}
        end
    end
    for i = #named, MOST_SERIES + 1, -1 do named[i] = nil end
    return x, named, all
end

-- The ends of the intervals around y; error: of one series.
local function interval_of(what, y, wanted)
    if type(wanted) == "number" then return y - wanted, y + wanted end
    local below, above = wanted, wanted
    if type(wanted) == "table" and #wanted == 2 and
        type(wanted[1]) ~= "number" then
        below, above = wanted[1], wanted[2]
    end
    local list = {below, above}
    for i = 1, 2 do
        list[i] = columns_of(matrix_of(what, "error", list[i]))[1]
        if list[i].rows ~= y.rows then
            fail(what, "error has %s, y has %d", checks.plural(list[i].rows,
                "element"), y.rows)
        end
    end
    return y - list[1], y + list[2]
end

-- By key those elements of the vector `v`, which is called `name`, that have
-- it: {name =, mask =}, at most so many, each of which would be a `thing`.
local function masks_by(what, keys, v, name, most, thing)
    local g = require "lumat.groups".by(keys)
    local group, counts, names = g.group, g.count:totable(), g.keys
    if not is_matrix(names) and type(names[1]) ~= "string" then
        fail(what, "by is a list of several keys: take one of them")
    elseif group.rows ~= v.rows then
        fail(what, "by has %s, %s has %d", checks.plural(group.rows, "element"),
            name, v.rows)
    end
    local parts = {}
    group = group:to(v.device)
    for k, key in ipairs(is_matrix(names) and names:totable() or names) do
        if counts[k] > 0 and #parts == most then
            fail(what, "by has more than %d different keys, each of which " ..
                "would be a %s", most, thing)
        elseif counts[k] > 0 then
            parts[#parts + 1] = {mask = group:eq(k), name = type(key) ==
                "string" and key or checks.figure("%.5g", key)}
        end
    end
    if #parts == 0 then fail(what, "by has no keys but NaN") end
    return parts
end

-- In place of one series one for each key, of the elements that have it.
local function split_by(what, keys, x, named)
    if #named > 1 then
        fail(what, "by tells the elements of one y apart, and there are %d " ..
            "series", #named)
    end
    local y = named[1].y
    x = x or thinning.places(y)
    local parts = masks_by(what, keys, y, "y", MOST_SERIES, "series")
    for _, s in ipairs(parts) do
        s.x, s.y, s.mask = x[s.mask], y[s.mask], nil
        s.x_survey, s.survey = thinning.survey(s.x), thinning.survey(s.y)
    end
    return parts
end

-- How many of v's elements an axis has no place for: infinite ones, and those
-- at or below 0 where it is logarithmic; and where it has one, nil if nowhere.
local function places_on(v, s, is_log)
    local below = is_log and s.min <= 0 and (v:le(0) & v:isfinite()):sum()
        or 0
    if s.min ~= s.min or is_log and s.max <= 0 then return s.inf, below, nil end
    if s.nan == 0 and s.inf == 0 and below == 0 then return 0, 0, true end
    local is_there = v:isfinite()
    return s.inf, below, is_log and is_there & v:gt(0) or is_there
end

-- Tells what has no place, and raises when nothing has one. Gives the series
-- their x and what is known of x and y.
local function check_places(what, chart, x, named, o)
    local infinite, below, on_x, x_survey = 0, 0, true, nil
    if x then
        x_survey = thinning.survey(x)
        infinite, below, on_x = places_on(x, x_survey, o.logx)
    end
    local any = false
    for _, s in ipairs(named) do
        s.x, s.x_survey = x, x_survey
        s.survey = thinning.survey(s.y)
        local inf, low, on_y = places_on(s.y, s.survey, o.logy)
        infinite, below = infinite + inf, below + low
        if on_x and on_y and not any then
            any = on_x == true and on_y == true or (on_x == true and on_y or
                on_y == true and on_x or on_x & on_y):any()
        end
    end
    if not any then
        fail(what, below > 0 and "there is no point above 0 to draw on " ..
            "logarithmic axes" or "there is no finite point to draw")
    end
    note(chart, infinite, "Inf left out", "Inf left out")
    note(chart, below, "point at or below 0 is not on the logarithmic axis",
        "points at or below 0 are not on the logarithmic axis")
end

-- The series as lists, reduced where it is long.
local function series_as(what, chart, style, s, o)
    local x, y, made = s.x, s.y, {kind = style, name = s.name}
    local n = y.rows
    local draws_each = style == "bars" or style == "errors"
    if draws_each and n > MOST_DRAWN then
        fail(what, "%d %s cannot be told apart: take at most %d, or " ..
            'style = "line"', n, style == "bars" and "bars" or "error bars",
            MOST_DRAWN)
    end
    if style == "points" and n > thinning.MOST_POINTS then
        local at = x or thinning.places(y)
        made.x, made.y = thinning.points(at, y, s.x_survey or
            thinning.survey(at), s.survey, o)
        made.small = true
    elseif not draws_each and style ~= "points" and n > thinning.MOST_LINE then
        local is_line
        made.kind = "line"
        made.x, made.y, is_line = thinning.line(x, y, s.x_survey, s.survey, o)
        if not is_line then
            made.kind, made.small = "points", true
            note(chart, n, "", "points in no order of x are drawn without " ..
                "a line")
        end
    else
        made.x, made.y = x and canvas.numbers(x), canvas.numbers(y)
    end
    chart.has_points = chart.has_points or made.kind == "points" or
        style == "errors"
    if style == "errors" then
        local wanted = o.error
        if wanted == nil then
            fail(what, 'style = "errors" takes error = e: a number, a vector ' ..
                "as long as y, or {below, above}")
        end
        local low, high = interval_of(what, y, wanted)
        made.low, made.high = canvas.numbers(low), canvas.numbers(high)
    end
    return made
end

local function check_function(f, a, b)
    if type(f) == "function" or getmetatable(f) and getmetatable(f).__call and
        not is_matrix(f) then
        return type(a) == "number" and type(b) == "number"
    end
    return false
end

local SAMPLES = 1000 -- of a function

local function sampled(what, f, a, b)
    if not (a < b and b - a < huge) then
        fail(what, "%s to %s is no range", checks.figure("%.5g", a),
            checks.figure("%.5g", b))
    end
    local x, y = {}, {}
    for i = 1, SAMPLES do
        local share = (i - 1) / (SAMPLES - 1)
        x[i] = a * (1 - share) + b * share
        y[i] = f(x[i])
        if type(y[i]) ~= "number" then
            fail(what, "f(%s) gave a %s, expected a number",
                checks.figure("%.5g", x[i]), checks.kind(y[i]))
        end
    end
    local options = {dtype = "f64", device = "cpu"}
    return library.vec(x, options), {{y = library.vec(y, options), name = "f"}},
        1
end

-- low and high set one end of the axis each.
local function set_range(what, chart, o)
    if not (o.low or o.high) then return end
    local low, high = huge, -huge
    for _, s in ipairs(chart.series) do
        local y1, y2 = canvas.spread(s.y)
        if y1 then low, high = smaller(low, y1), larger(high, y2) end
    end
    low, high = o.low or low, o.high or high
    if o.logy and low <= 0 then
        fail(what, "low is %s, and a logarithmic axis is above 0",
            checks.brief(low))
    end
    if not (low <= high and low > -huge and high < huge) then
        fail(what, "%s to %s is no range", checks.figure("%.5g", low),
            checks.figure("%.5g", high))
    end
    chart.y.low, chart.y.high = o.low, o.high
end

-- Adds the series, in the styles of the options, or the other one.
local function add_series(what, chart, named, otherwise, o)
    local has_errors = false
    for i, s in ipairs(named) do
        local style = word_of(what, "style", styles, o.style or otherwise, i,
            #named)
        local made = series_as(what, chart, style, s, o)
        if #named == 1 then made.name = nil end
        chart.series[i], has_errors = made, has_errors or style == "errors"
    end
    if o.error ~= nil and not has_errors then
        fail(what, 'error is not used: style = "errors" draws it')
    end
end

local function draw(what, otherwise, ...)
    local list, o = taken(what, ...)
    local chart = {series = {}, x = {}, y = {}}
    local x, named, all
    if otherwise == "points" and #list < 2 then
        fail(what, "y is missing, expected a matrix or a table: write " ..
            "scatter(x, y)")
    end
    if check_function(unpack(list, 1, 3)) and #list == 3 then
        x, named, all = sampled(what, unpack(list))
    else
        x, named, all = series_of(what, list)
    end
    if o.error ~= nil and not o.style then o.style = "errors" end
    if o.names and (x or o.by) then
        fail(what, "names stand at 1, 2, 3 …: leave %s out", x and "x" or "by")
    end
    check_places(what, chart, x, named, o)
    if o.by ~= nil then named = split_by(what, o.by, x, named) end
    add_series(what, chart, named, otherwise, o)
    chart.x.tight = true
    chart.x.whole = not x and not o.logx or nil
    -- points at the ends of an axis would be cut
    if chart.has_points then chart.x.room, chart.y.room = ROOM, ROOM end
    chart.has_points = nil
    if o.xdates and not x then
        fail(what, "xdates is of x, which is left out: write %s(x, y, …)", what)
    end
    chart.x.labels = names_of(what, "names", o.names, named[1].y.rows,
        "places")
    if all > #named then
        add_note(chart, "the first %d of %d columns", #named, all)
    end
    dress(what, chart, o)
    set_range(what, chart, o)
    return chart_values.shown(what, chart, o)
end

row{
    name = "plot", method = true,
    takes = "y: matrix|table {style, by, error, names, title, xlabel, ylabel, " ..
        "legend, xlim, ylim, logx, logy, xdates, low, high, width, height, " ..
        "size, dark, file} or x: matrix|table, y: matrix|table [, …] {style, " ..
        "by, error, names, title, xlabel, ylabel, legend, xlim, ylim, logx, " ..
        "logy, xdates, low, high, width, height, size, dark, file} or f: " ..
        "function, a: number, b: number {style, legend, title, xlabel, ylabel, xlim, ylim, " ..
        "logx, logy, low, high, width, height, size, dark, file}",
    gives = "chart",
    group = "pictures",
    help = "A line through a vector's elements, one for each column of a " ..
        "matrix, over their places or x; or that of a function. NaN breaks " ..
        "it. The chart shows itself at the prompt, print(plot(v)) in a " ..
        "script; with file = \"p.svg\", \"p.png\" or \"p.pdf\", or " ..
        "save(chart, file), it goes there. plot{x, y, style = \"points\"} is " ..
        "plot(x, y, {style = \"points\"}). Also :plot y and :help charts.",
    example = "plot(vec{1, 3, 2}).high >= 3",
    result = "true",
    options = {
        {"style", "\"line\"|\"points\"|\"bars\"|\"steps\"|\"errors\"|table",
            "\"line\"", "how each series is drawn; a list for one style each"},
        {"error", "number|matrix|table", false,
            "of style \"errors\", how far the bars reach: a number, a vector " ..
            "or {below, above}"},
    },
}
function plotting.plot(...) return draw("plot", "line", ...) end

row{
    name = "scatter", method = true,
    takes = "x: matrix|table [, y: matrix|table [, …]] {by, names, title, xlabel, " ..
        "ylabel, legend, xlim, ylim, logx, logy, xdates, low, high, width, " ..
        "height, size, dark, file}",
    gives = "chart",
    group = "pictures",
    help = "A point for each x and y; several ys have marks of their own. Of " ..
        "many points those that would lie on one another are one, so 1e7 of " ..
        "them take no longer to draw than 1e5.",
    example = "scatter(vec{1, 2, 3}, vec{2, 1, 2}).low <= 1",
    result = "true",
}
function plotting.scatter(...) return draw("scatter", "points", ...) end

-- --- boxes ----------------------------------------------------------------------

local MOST_OUTLIERS = 500 -- of a box that are drawn, the farthest first
local MOST_BOXES = 200
local REACH = 1.5 -- of the box's height: what lies farther is an outlier

-- Those of a sorted vector from place i to j, {x …}.
local function listed(sorted, i, j)
    local list = {}
    if i > j then return list end
    local values = canvas.numbers(sorted[{{i, j}}])
    for k = 1, #values do list[k] = values[k] end
    return list
end

-- Whiskers reach to the last element within 1.5 boxes of the box.
local function box_of(v)
    local sorted = library.sort(v)
    local n = v.rows - v:isnan():sum()
    if n == 0 then return nil end
    local lower, middle, upper = unpack(library.quantile(
        sorted[{{1, n}}]:f64(), {0.25, 0.5, 0.75}):totable())
    local far = REACH * (upper - lower)
    local below = v:lt(lower - far):sum()
    local above = v:gt(upper + far):sum()
    local half = MOST_OUTLIERS // 2
    local outliers = listed(sorted, 1, smaller(below, half))
    for _, x in ipairs(listed(sorted, larger(n - above + 1, n - half + 1), n)) do
        outliers[#outliers + 1] = x
    end
    return {low = sorted[below + 1], lower = lower,
        middle = middle, upper = upper, high = sorted[n - above],
        outliers = outliers},
        larger(0, below - half) + larger(0, above - half)
end

-- The vectors that have a box each: the arguments, and columns of matrices.
local function lines_of_boxes(list)
    local lines = {}
    for i, A in ipairs(list) do
        A = matrix_of("boxplot", #list == 1 and "A" or "argument " .. i, A)
        if A.ndim == 2 and A.rows > 1 and A.cols > MOST_BOXES then
            fail("boxplot", "%d boxes cannot be told apart: take at most %d " ..
                "columns", A.cols, MOST_BOXES)
        end
        local turned = A.T
        for j = 1, (A.ndim == 1 or A.rows == 1) and 1 or A.cols do
            lines[#lines + 1] = A.ndim == 1 and A or A.rows == 1 and A[1] or
                turned[j]
        end
    end
    return lines
end

-- In place of one vector one for each key, of the elements that have it, and
-- the keys as texts.
local function boxes_by(keys, lines)
    if #lines > 1 then
        fail("boxplot", "by tells the elements of one vector apart, and there " ..
            "are %d", #lines)
    end
    local parts, names = {}, {}
    for i, s in ipairs(masks_by("boxplot", keys, lines[1], "A", MOST_BOXES,
        "box")) do
        parts[i], names[i] = lines[1][s.mask], s.name
    end
    return parts, names
end

row{
    name = "boxplot", method = true,
    takes = "A: matrix|table [, …] {by, names, title, xlabel, ylabel, ylim, logy, " ..
        "width, height, size, dark, file}",
    gives = "chart",
    group = "pictures",
    help = "A box for each vector or column, from its lower to its upper " ..
        "quartile with the median inside; the whiskers reach to the last " ..
        "elements within 1.5 times its height, the others are points. NaN " ..
        "is left out. With {by=keys} a box for each key.",
    example = "boxplot(vec{1, 2, 3, 4, 20}).boxes[1].middle",
    result = "3",
    options = {
        {"by", "vector|table", false, "a key for each element of a vector, as " ..
            "groupby takes them: each different one has a box"},
    },
}
function plotting.boxplot(...)
    local list, o = taken("boxplot", ...)
    local chart, boxes, labels = {}, {}, {}
    local hidden, without, infinite = 0, 0, 0
    local lines, names = lines_of_boxes(list), nil
    if o.by ~= nil then lines, names = boxes_by(o.by, lines) end
    for i, v in ipairs(lines) do
        local finite = v:isfinite()
        infinite = infinite + v:isinf():sum()
        without = without + v:isnan():sum()
        local box, more = box_of(library.where(finite, v, 0 / 0))
        boxes[i], labels[i] = box or {}, names and names[i] or tostring(i)
        hidden = hidden + (more or 0)
    end
    local any = false
    for _, box in ipairs(boxes) do any = any or box.low end
    if not any then fail("boxplot", "there is no finite element to draw") end
    chart.series = {{kind = "box", boxes = boxes}}
    chart.x = {labels = names_of("boxplot", "names", o.names, #boxes,
        "places") or labels}
    note(chart, without, "NaN left out", "NaN left out")
    note(chart, infinite, "Inf left out", "Inf left out")
    note(chart, hidden, "outlier is not drawn", "outliers are not drawn")
    dress("boxplot", chart, o)
    return chart_values.shown("boxplot", chart, o, {boxes = boxes})
end

-- --- images and levels ------------------------------------------------------------

local MOST_CELLS = 400 -- each way that are drawn; larger ones are blocks' means

-- The matrix as an image's fields: values row by row, rows and cols.
local function cells_of(what, A)
    A = matrix_of(what, "A", A)
    if A.ndim == 1 then A = A:row() end
    local rows, cols = smaller(A.rows, MOST_CELLS), smaller(A.cols, MOST_CELLS)
    local cells = A
    if rows < A.rows or cols < A.cols then
        cells = library.blocks(A, rows, cols, "mean")
    end
    local values = canvas.numbers(cells)
    if not canvas.spread(values) then
        fail(what, "there is no finite element to draw")
    end
    return {rows = rows, cols = cols, values = values}, A
end

-- The middles of the first and the last of `shown` blocks of `count` places.
local function middles(shown, count)
    local size = count / shown
    return {(size + 1) / 2, count - (size - 1) / 2}
end

-- Of an image of m x n elements: the chart's axes, and where the middles of its
-- cells lie. Row 1 is at the top.
local function lay_image(chart, s, m, n)
    s.x, s.y = middles(s.cols, n), middles(s.rows, m)
    chart.x = {low = 0.5, high = n + 0.5, whole = true}
    chart.y = {low = 0.5, high = m + 0.5, whole = true, reversed = true}
end
plotting.lay_image = lay_image

local function color_range(what, o)
    if o.low and o.high and not (o.low < o.high) then
        fail(what, "%s to %s is no range", checks.figure("%.5g", o.low),
            checks.figure("%.5g", o.high))
    end
end

row{
    name = "imshow", method = true,
    takes = "A: matrix|table {log, title, xlabel, ylabel, low, high, width, " ..
        "height, size, dark, file}",
    gives = "chart",
    group = "pictures",
    help = "A as an image with axes and a scale of colours: row 1 is at the " ..
        "top. One side of 0 goes from dark to light; where values lie on " ..
        "both, blue is below 0 and red above it. heat(A) is the picture " ..
        "without axes.",
    example = "imshow(mat{{1, 2}, {3, 4}}).rows",
    result = "2",
    options = {
        {"log", "boolean", "false", "true: colours by the logarithm"},
    },
}
function plotting.imshow(...)
    local list, o = taken("imshow", ...)
    local s, A = cells_of("imshow", list[1])
    color_range("imshow", o)
    s.kind, s.low, s.high, s.log = "image", o.low, o.high, o.log
    if o.log then
        for _, name in ipairs{"low", "high"} do
            if o[name] and o[name] <= 0 then
                fail("imshow", "%s is %s, and a logarithm takes what is above 0",
                    name, checks.brief(o[name]))
            end
        end
        local above = A:gt(0):sum()
        if above == 0 then
            fail("imshow", "there is no element above 0, which a logarithm takes")
        end
    end
    local chart = {series = {s}, ratio = larger(0.25, smaller(4,
        A.rows / A.cols))}
    lay_image(chart, s, A.rows, A.cols)
    if o.log then
        local below = A:le(0):sum()
        note(chart, below, "element at or below 0 has no colour",
            "elements at or below 0 have no colour")
    end
    note(chart, A:isnan():sum(), "NaN", "NaN")
    dress("imshow", chart, o)
    return chart_values.shown("imshow", chart, o, {rows = A.rows, cols = A.cols})
end

-- The ends of evenly spaced places, one for each of `count` columns or rows.
local function even_ends(name, v, count)
    v = columns_of(matrix_of("contour", name, v))[1]
    if v.rows ~= count then
        fail("contour", "%s has %s, A has %d %s", name, checks.plural(v.rows,
            "element"), count, name == "x" and "columns" or "rows")
    end
    local first, last = v[1], v[count]
    local even = library.linspace(first, last, count, {dtype = v.dtype,
        device = v.device})
    local off = count > 1 and library.max((v - even):abs()) or 0
    if not (off <= 1e-4 * abs(last - first) / larger(1, count - 1)) then
        fail("contour", "%s is not evenly spaced: interpolate A, or leave x " ..
            "and y out", name)
    end
    return first, last
end

-- Tells where there is no line to draw, as no level lies between two heights.
local function note_flatness(chart, s)
    local low, high = canvas.spread(s.values)
    if low == high then
        add_note(chart, "there is no line to draw: all heights are %s",
            checks.figure("%.5g", low))
        return
    elseif type(s.levels) ~= "table" then
        return
    end
    for _, level in ipairs(s.levels) do
        if level >= low and level < high then return end
    end
    add_note(chart, "there is no line to draw: heights lie between %.5g and %.5g",
        low, high)
end

row{
    name = "contour", method = true,
    takes = "A: matrix|table {levels, title, xlabel, ylabel, width, height, " ..
        "size, dark, file} or x: matrix|table, y: matrix|table, A: " ..
        "matrix|table {levels, title, xlabel, ylabel, width, height, size, " ..
        "dark, file}",
    gives = "chart",
    group = "pictures",
    help = "Lines along which A, a height over columns x and rows y, has one " ..
        "value. x and y are evenly spaced, else columns and rows are counted; " ..
        "the first row is at the bottom.",
    example = "#contour(mat{{1, 2}, {2, 3}}, {levels = {2}}).levels",
    result = "1",
    options = {
        {"levels", "count|table", "about 8", "the values, or how many, about"},
    },
}
function plotting.contour(...)
    local list, o = taken("contour", ...)
    if #list == 2 then
        fail("contour", "A is missing, expected a matrix or a table: write " ..
            "contour(x, y, A)")
    end
    local s, A = cells_of("contour", list[#list])
    if A.rows < 2 or A.cols < 2 then
        fail("contour", "A is %s: heights need two rows and two columns",
            checks.shape_of(A))
    end
    s.kind = "contour"
    s.x, s.y = middles(s.cols, A.cols), middles(s.rows, A.rows)
    if #list == 3 then
        for name, count in next, {x = A.cols, y = A.rows} do
            local v = list[name == "x" and 1 or 2]
            local first, last = even_ends(name, v, count)
            local step = (last - first) / larger(1, count - 1)
            for k = 1, 2 do s[name][k] = first + (s[name][k] - 1) * step end
        end
    end
    local levels = o.levels
    if type(levels) == "table" then
        for i, level in ipairs(levels) do
            if type(level) ~= "number" or level ~= level or
                abs(level) == huge then
                fail("contour", "level %d is %s, expected a number", i,
                    checks.brief(level))
            end
        end
        if #levels == 0 then fail("contour", "levels is empty") end
        levels = checks.copied(levels)
    end
    s.levels = levels
    local chart = {series = {s}}
    note_flatness(chart, s)
    dress("contour", chart, o)
    return chart_values.shown("contour", chart, o, function(whole)
        local values = {}
        for i, level in ipairs(whole.list[1].levels) do
            values[i] = level.value
        end
        return {levels = values}
    end)
end

-- --- charts beside one another ------------------------------------------------------

row{
    name = "subplot",
    takes = "charts: table {title, width, height, size, dark, file}",
    gives = "chart",
    group = "pictures",
    help = "Charts in a grid: a list of rows, each a list of charts, or one " ..
        "row. They are charts as any other: subplot{{plot(x, y), hist(y)}, " ..
        "{imshow(A)}}.",
    example = "subplot{plot(vec{1, 2}), hist(vec{1, 2})}.cols",
    result = "2",
}
function plotting.subplot(list, o)
    local grid, cols = {}, 0
    if chart_values.chart_of(list[1]) then list = {list} end
    for i, line in ipairs(list) do
        if type(line) ~= "table" or getmetatable(line) or #line == 0 then
            fail("subplot", "row %d is %s, expected a list of charts", i,
                checks.brief(line))
        end
        grid[i] = {}
        cols = larger(cols, #line)
        for j, value in ipairs(line) do
            local chart = chart_values.chart_of(value)
            if not chart then
                fail("subplot", "place %d of row %d is %s, expected a chart%s",
                    j, i, checks.brief(value), getmetatable(value) and
                    " as plot, hist or imshow give it" or "")
            elseif chart.subplots then
                fail("subplot", "place %d of row %d is a grid itself", j, i)
            end
            grid[i][j] = chart
        end
    end
    if #grid == 0 then fail("subplot", "there is no chart in the list") end
    return chart_values.shown("subplot", {title = o and o.title,
        subplots = grid}, checks.copied(o or {}), {rows = #grid, cols = cols})
end

return plotting
