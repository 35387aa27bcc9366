-- The axes of charts: what range they span, where their ticks stand and what
-- these say; and how a figure is written beside them. For every drawer.
--
-- A scale, as scales.of gives it, has
--   low, high   what is at its ends; high < low where it runs backwards
--   is_log
--   at(x)       the place of x, from 0 to 1
--   ticks       {at, text} each, in the order of their places
--   unit        of what the ticks say, or nil
--   kind        "linear", "log" or "categories"
local calendar = require "lumat.calendar"
local scales = {}
local date_of, days_of = calendar.date_of, calendar.days_of
local ipairs, type = ipairs, type
local abs, ceil, floor, huge, larger, log, smaller = math.abs, math.ceil,
    math.floor, math.huge, math.max, math.log, math.min
local format, gsub = string.format, string.gsub

-- --- numbers as text --------------------------------------------------------

-- x with so many significant digits, those that are 0 too: 1.20 of 1.2.
function scales.significant(x, digits)
    local size = abs(x)
    if x == 0 then return "0" end
    if size >= 1e6 or size < 1e-4 then
        return format("%." .. digits - 1 .. "e", x)
    end
    local places, edge = digits - 1, 10
    while size >= edge - 0.5 * 10.0 ^ -places and places > 0 do
        places, edge = places - 1, edge * 10
    end
    while size < 1 and size > 0 do places, size = places + 1, size * 10 end
    return format("%." .. places .. "f", x)
end

local time_units = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}

-- The unit in which a time reads best: its seconds and its name.
function scales.time_unit(seconds)
    for _, unit in ipairs(time_units) do
        if abs(seconds) >= 0.9995 * unit[1] then return unit[1], unit[2] end
    end
    return 1e-9, "ns"
end

-- "1e-8" and "1e9" of "1e-08" and "1e+09".
local function with_short_exponent(text)
    return (gsub(text, "e([+-])0*(%d)", function(s, d)
        return "e" .. (s == "-" and "-" or "") .. d
    end))
end

-- A number in few characters.
local function brief(x)
    if x == 0 then return "0" end
    if abs(x) >= 1e5 or abs(x) < 1e-3 then
        return with_short_exponent(format("%.3g", x))
    end
    return format("%.6g", x)
end

local function time_text(x)
    local scale, unit = scales.time_unit(x)
    return format("%.4g %s", x / scale, unit)
end

-- A figure of an axis by itself, with its unit unless `bare`. what: as
-- `axis.what` of a chart.
function scales.text(what, x, bare)
    local kind = what and what.kind
    if kind == "time" then
        local scale, unit = scales.time_unit(x)
        return scales.significant(x / scale, 4) .. " " .. unit
    elseif kind == "share" then
        return format("%.3g %%", 100 * x)
    elseif kind == "rate" then
        return scales.significant(x / what.scale, 4) ..
            (bare and "" or " " .. what.unit)
    end
    return format("%.5g", x)
end

local MOST_DECIMALS, MOST_DIGITS = 6, 7

-- A multiple of step, with no more digits than it takes.
local function multiple_text(x, step)
    if abs(x) < step * 1e-6 then x = 0.0 end
    local most = larger(abs(x), step)
    local above = floor(log(most, 10) + 1e-9) + 1 -- digits before the dot
    local decimals = -floor(log(step, 10) + 1e-9)
    if above <= MOST_DIGITS and decimals <= MOST_DECIMALS then
        return format("%." .. larger(decimals, 0) .. "f", x)
    end
    local digits = above + decimals > 16 and 17 or above + decimals + 1
    return with_short_exponent(format("%." .. larger(digits, 1) .. "g", x))
end

-- --- ticks ------------------------------------------------------------------

-- The smallest of 1, 2, 5, 10, 20 … that is not below x > 0.
local function nice_above(x)
    local power = 10.0 ^ floor(log(x, 10) + 1e-9)
    for _, factor in ipairs{1, 2, 5, 10} do
        if factor * power >= x * (1 - 1e-9) then return factor * power end
    end
end

-- The distance of about `count` ticks; nil where the range has no room for
-- round numbers.
local function step_of(low, high, count)
    local span = high - low
    if not (span < huge) or span / count < 1e-300 then return nil end
    local step = nice_above(span / count)
    return step > larger(abs(low), abs(high)) * 1e-14 and step or nil
end

-- Every value has its place, one as far from the next as any other.
function scales.categories(labels)
    local n = #labels
    local scale = {ticks = {}, kind = "categories", low = 0.5, high = n + 0.5}
    function scale.at(i) return (i - 0.5) / n end
    for i, label in ipairs(labels) do
        scale.ticks[i] = {at = scale.at(i), text = label}
    end
    return scale
end

-- What the numbers along an axis are multiplied with, and the unit's name.
local function linear_unit(most, what)
    local kind = what and what.kind
    if kind == "time" then
        local scale, name = scales.time_unit(most)
        return 1 / scale, name
    elseif kind == "share" then
        return 100, "%"
    elseif kind == "rate" then
        return 1 / what.scale, what.unit
    end
    return 1, what and what.unit
end

-- A range of some width around one that has none.
local function widened(low, high)
    if low < high then return low, high end
    local apart = abs(low) * 0.5
    if not (apart > 0 and apart < huge) then apart = 1 end
    return low - apart, high + apart
end

-- Figures are seen beside nothing, if that is not far away.
local function with_zero(low, high, what)
    local kind = what and what.kind
    if kind and kind ~= "number" and kind ~= "axis" or
        low > 0 and low < 0.4 * high then
        low = smaller(low, 0)
    end
    return low, high
end

-- From low to high, or to the next round numbers, with about `count` ticks.
-- axis: what, zero, whole and tight of a chart's axis.
function scales.linear(low, high, count, axis)
    axis = axis or {}
    local what = axis.what
    if axis.zero then low, high = with_zero(low, high, what) end
    low, high = widened(low, high)
    local by, unit = linear_unit(larger(abs(low), abs(high)), what)
    low, high = low * by, high * by
    local step = step_of(low, high, larger(count, 1))
    if step and axis.tight then
        -- one tick alone is no scale
        for k = 2, 4 do
            if floor(high / step + 1e-9) - ceil(low / step - 1e-9) >= 1 then
                break
            end
            step = step_of(low, high, k * larger(count, 1)) or step
        end
    end
    if step and axis.whole then step = larger(step, 1) end
    if step and not axis.tight then
        local below = floor(low / step + 1e-9) * step
        local above = ceil(high / step - 1e-9) * step
        if above - below < huge then low, high = below, above end
    end
    local span, scale = high - low, {ticks = {}, unit = unit, kind = "linear",
        low = low / by, high = high / by}
    function scale.at(x)
        if span < huge then return (x * by - low) / span end
        return (x * by / 2 - low / 2) / (high / 2 - low / 2)
    end
    if not step then
        scale.ticks = {{at = 0, text = format("%.4g", low)},
            {at = 1, text = format("%.4g", high)}}
        return scale
    end
    for i = ceil(low / step - 1e-9), floor(high / step + 1e-9) do
        scale.ticks[#scale.ticks + 1] = {at = (i * step - low) / span,
            text = multiple_text(i * step, step)}
    end
    return scale
end

-- --- logarithms -------------------------------------------------------------

local function is_power_of_two(x)
    local power = log(x, 2)
    return abs(power - floor(power + 0.5)) < 1e-9
end

-- Is every value one?
function scales.powers_of_two(values)
    for i = 1, values and #values or 0 do
        local x = values[i]
        if x <= 0 or not is_power_of_two(x) then return false end
    end
    return values ~= nil and #values > 1
end

local function log_text(x, what)
    if what and what.kind == "time" then return time_text(x) end
    if what and what.kind == "share" then return brief(100 * x) end
    if what and what.kind == "rate" then return brief(x / what.scale) end
    return brief(x)
end

-- Ends a share of the axis farther away, where there are any.
local function with_room(low, high, axis)
    if axis.scale == "log" then
        local by = (high / low) ^ axis.room
        if not (low / by > 0 and high * by < huge) then return low, high end
        return low / by, high * by
    end
    local by = (high / 2 - low / 2) * 2 * axis.room
    if not (by < huge) then return low, high end
    return low - by, high + by
end

-- Candidates for ticks from low to high: powers of the base, and between them
-- where these are few.
local function log_ticks(low, high, base, count)
    local first, last = ceil(log(low, base) - 1e-9),
        floor(log(high, base) + 1e-9)
    local list, every = {}, larger(1, ceil((last - first + 1) / count))
    local factors = base == 10 and last - first < 2 and {1, 2, 5} or {1}
    for power = first - 1, last do
        if (power - first) % every == 0 or #factors > 1 then
            for _, factor in ipairs(factors) do
                local x = factor * (base + 0.0) ^ power
                if x >= low * (1 - 1e-9) and x <= high * (1 + 1e-9) then
                    list[#list + 1] = x
                end
            end
        end
    end
    return list
end

-- Multiples of a step, where the range has less than two powers.
local function even_ticks(low, high, count)
    local step, list = step_of(low, high, count), {}
    if not step then return {low, high} end
    for i = ceil(low / step), floor(high / step) do list[#list + 1] = i * step end
    return #list > 1 and list or {low, high}
end

-- low > 0; values: those that points have, whose ticks are powers of two where
-- all of them are. Some room stays at the ends of an axis with `what`, unless
-- it is tight.
function scales.log(low, high, count, axis, values)
    axis = axis or {}
    local what, by_two = axis.what, scales.powers_of_two(values)
    if high < low * 1.5 then
        local below, above = low / 1.5, high * 1.5
        if below > 0 then low = below end
        high = above < huge and above or high
    end
    if what and not by_two and not axis.tight then
        low, high = with_room(low, high, {scale = "log", room = 0.04})
    end
    local bottom, span = log(low), log(high) - log(low)
    local scale = {ticks = {}, kind = "log", is_log = true, low = low,
        high = high, unit = what and (what.kind == "share" and "%" or
        what.kind ~= "time" and what.unit) or nil}
    function scale.at(x) return x > 0 and (log(x) - bottom) / span or -huge end
    local list = log_ticks(low, high, by_two and 2 or 10, count)
    if #list < 2 then list = even_ticks(low, high, count) end
    for i, x in ipairs(list) do
        scale.ticks[i] = {at = scale.at(x), text = log_text(x, what)}
    end
    return scale
end

-- --- dates -------------------------------------------------------------------

local DAY <const> = 86400

-- Steps of ticks: seconds, or months, and how a tick is written.
local clock, minute, date, month, year = 1, 2, 3, 4, 5
local steps = {{1, clock}, {2, clock}, {5, clock}, {10, clock}, {15, clock},
    {30, clock}, {60, minute}, {120, minute}, {300, minute}, {600, minute},
    {900, minute}, {1800, minute}, {3600, minute}, {7200, minute},
    {10800, minute}, {21600, minute}, {43200, minute}, {DAY, date},
    {2 * DAY, date}, {7 * DAY, date}, {14 * DAY, date}, {1, month}, {2, month},
    {3, month}, {6, month}, {12, year}, {24, year}, {60, year}, {120, year},
    {240, year}, {600, year}, {1200, year}, {2400, year}, {6000, year},
    {12000, year}}
local MONTH <const> = 30.436875 * DAY

local function date_text(seconds, kind)
    local days, rest = seconds // DAY, seconds % DAY
    local y, m, d = date_of(days)
    if kind == year then return format("%d", y) end
    if kind == month then return format("%d-%02d", y, m) end
    if kind == date then return format("%d-%02d-%02d", y, m, d) end
    if rest == 0 then return format("%02d-%02d", m, d) end
    if kind == minute then
        return format("%02d:%02d", rest // 3600, rest // 60 % 60)
    end
    return format("%02d:%02d:%02d", rest // 3600, rest // 60 % 60, rest % 60)
end

local FARTHEST <const> = 2.5e11 -- seconds: years of four digits and some

-- low and high are seconds since 1970, UTC; ticks are at the beginnings of
-- minutes, days, months or years.
function scales.dates(low, high, count)
    if not (low < high) then low, high = low - DAY / 2, high + DAY / 2 end
    local span = high - low
    if low < -FARTHEST or high > FARTHEST or span < 5 then
        return scales.linear(low, high, count, {tight = true})
    end
    local step, kind
    for _, one in ipairs(steps) do
        step, kind = one[1] * (one[2] >= month and MONTH or 1), one[2]
        if step >= span / larger(count, 1) then break end
    end
    local scale = {ticks = {}, kind = "linear", low = low, high = high}
    function scale.at(x) return (x - low) / span end
    local function add(at)
        if at < low or at > high then return end
        scale.ticks[#scale.ticks + 1] = {at = scale.at(at),
            text = date_text(at, kind)}
    end
    if kind >= month then
        local months = floor(step / MONTH + 0.5)
        local y, m = date_of(floor(low / DAY))
        local first = (12 * y + m - 1) // months * months
        for k = first, first + months * (2 * count + 8), months do
            add(days_of(k // 12, k % 12 + 1, 1) * DAY)
        end
    else
        for k = ceil(low / step), floor(high / step) do add(floor(k * step)) end
    end
    -- of what lies within a day the ticks do not say which
    if kind <= minute then
        local a, b = date_text(low // DAY * DAY, date), date_text(high // DAY *
            DAY, date)
        scale.unit = (a == b and a or a .. " to " .. b) .. " UTC"
    end
    return scale
end

-- --- an axis of a chart -----------------------------------------------------

-- The ticks somebody asked for: numbers, or {value, text}.
local function own_ticks(scale, list, what)
    scale.ticks = {}
    for i, tick in ipairs(list) do
        local value = type(tick) == "table" and tick[1] or tick
        scale.ticks[i] = {at = scale.at(value), text = type(tick) == "table" and
            tick[2] or log_text(value, what)}
    end
end

local function turned(scale)
    local at, back, ticks = scale.at, {}, scale.ticks
    function scale.at(x) return 1 - at(x) end
    for i, tick in ipairs(ticks) do
        back[#ticks + 1 - i] = {at = 1 - tick.at, text = tick.text}
    end
    scale.ticks, scale.low, scale.high = back, scale.high, scale.low
end

-- The scale of a chart's axis whose data span low .. high, with about `count`
-- ticks; values: of the points along it, or nil.
function scales.of(axis, low, high, count, values)
    if low > high then low, high = axis.scale == "log" and 1 or 0, 1 end
    local is_fixed = axis.low or axis.high
    low, high = axis.low or low, axis.high or high
    if axis.room and not is_fixed and not axis.labels then
        low, high = with_room(low, high, axis)
    end
    local given = {what = axis.what, zero = axis.zero and not is_fixed,
        whole = axis.whole, tight = axis.tight or is_fixed or axis.room}
    local scale = axis.labels and scales.categories(axis.labels) or
        axis.dates and scales.dates(low, high, count) or
        axis.scale == "log" and scales.log(low, high, count, given, values) or
        scales.linear(low, high, count, given)
    if axis.ticks then own_ticks(scale, axis.ticks, axis.what) end
    if axis.reversed then turned(scale) end
    return scale
end

-- What is at a place from 0 to 1: the inverse of at(x).
function scales.value_at(scale, t)
    local low, high = scale.low, scale.high
    if scale.is_log then return low * (high / low) ^ t end
    return low * (1 - t) + high * t
end

-- Ticks that leave room for one another: width(text) and length in the same
-- unit, and the least room between two. The first ones stay.
function scales.thinned(scale, length, width, room)
    local ticks, every = scale.ticks, 1
    local function fits()
        local free = -huge
        for i = 1, #ticks, every do
            local half = width(ticks[i].text) / 2
            local at = ticks[i].at * length
            if at - half < free then return false end
            free = at + half + room
        end
        return true
    end
    while every < #ticks and not fits() do every = every + 1 end
    local kept = {}
    for i = 1, #ticks, every do kept[#kept + 1] = ticks[i] end
    return kept
end

return scales
