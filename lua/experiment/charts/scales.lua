-- Axes of charts: the range they span, where their ticks stand and what these
-- say. at(x) is a place from 0 to 1.
local columns = require "lumat.columns"
local scales = {}
local ipairs = ipairs
local abs, ceil, floor, huge, log = math.abs, math.ceil, math.floor, math.huge,
    math.log
local larger, smaller = math.max, math.min
local format, gsub = string.format, string.gsub

-- --- ticks ------------------------------------------------------------------

-- The smallest of 1, 2, 5, 10, 20 … that is not below x > 0.
local function nice_above(x)
    local power = 10.0 ^ floor(log(x, 10) + 1e-9)
    for _, factor in ipairs{1, 2, 5, 10} do
        if factor * power >= x * (1 - 1e-9) then return factor * power end
    end
end

-- A number in few characters.
local function brief(x)
    if x == 0 then return "0" end
    if abs(x) >= 1e5 or abs(x) < 1e-3 then
        local text = gsub(format("%.3g", x), "e([+-])0*(%d)", function(s, d)
            return "e" .. (s == "-" and "-" or "") .. d
        end)
        return text
    end
    return format("%.6g", x)
end

local function time_text(x)
    local scale, unit = columns.time_unit(x)
    return format("%.4g %s", x / scale, unit)
end

-- --- kinds of axes ----------------------------------------------------------

-- Every value has its place, one as far from the next as any other.
function scales.categories(labels)
    local axis, n = {ticks = {}, kind = "categories"}, #labels
    function axis.at(i) return (i - 0.5) / n end
    for i, label in ipairs(labels) do
        axis.ticks[i] = {at = axis.at(i), text = label}
    end
    return axis
end

-- What the numbers along an axis are multiplied with, and the unit's name.
local function linear_unit(most, kind, unit_scale, unit)
    if kind == "time" then
        local scale, name = columns.time_unit(most)
        return 1 / scale, name
    elseif kind == "share" then
        return 100, "%"
    elseif kind == "rate" then
        return 1 / unit_scale, unit
    end
    return 1, nil
end

-- From low to high or a little farther, about `count` ticks. what: kind of the
-- figure, and for rates the scale and the name of the unit.
function scales.linear(low, high, count, what)
    local kind = what and what.kind
    if kind and kind ~= "number" and kind ~= "axis" or
        low > 0 and low < 0.4 * high then
        low = smaller(low, 0) -- figures are seen beside nothing
    end
    if high - low <= 1e-6 * larger(abs(low), abs(high)) then
        local about = larger(abs(low), 1e-300)
        low, high = low - 0.5 * about, high + 0.5 * about
    end
    local scale, unit = linear_unit(larger(abs(low), abs(high)), kind,
        what and what.scale, what and what.unit)
    low, high = low * scale, high * scale
    local step = nice_above((high - low) / count)
    local first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    local bottom, span = first * step, (last - first) * step
    local axis = {ticks = {}, unit = unit, kind = "linear"}
    function axis.at(x) return (x * scale - bottom) / span end
    local places = larger(0, ceil(-log(step, 10) - 1e-9))
    for i = first, last do
        local value = i * step
        axis.ticks[#axis.ticks + 1] = {at = (value - bottom) / span,
            text = (abs(value) >= 1e6 or places > 6) and brief(value) or
                format("%." .. places .. "f", value)}
    end
    return axis
end

local function is_power_of_two(x)
    local power = log(x, 2)
    return abs(power - floor(power + 0.5)) < 1e-9
end

-- Is every value one?
function scales.powers_of_two(values)
    for _, x in ipairs(values or {}) do
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
    local step, list = nice_above((high - low) / count), {}
    for i = ceil(low / step), floor(high / step) do list[#list + 1] = i * step end
    return #list > 1 and list or {low, high}
end

-- low > 0; values: those that points have, whose ticks are powers of two where
-- all of them are.
function scales.log(low, high, count, what, values)
    local by_two = scales.powers_of_two(values)
    if high < low * 1.5 then low, high = low / 1.5, high * 1.5 end
    if what and not by_two then -- some room at the ends
        local room = (high / low) ^ 0.04
        low, high = low / room, high * room
    end
    local bottom, span = log(low), log(high) - log(low)
    local axis = {ticks = {}, kind = "log", unit = what and
        (what.kind == "share" and "%" or what.kind == "rate" and what.unit)
        or nil}
    function axis.at(x) return x > 0 and (log(x) - bottom) / span or -huge end
    local list = log_ticks(low, high, by_two and 2 or 10, count)
    if #list < 2 then list = even_ticks(low, high, count) end
    for i, x in ipairs(list) do
        axis.ticks[i] = {at = axis.at(x), text = log_text(x, what)}
    end
    return axis
end

-- Ticks that leave room for one another: width(text) and length in the same
-- unit, and the least room between two. The first ones stay.
function scales.thinned(axis, length, width, room)
    local ticks, every = axis.ticks, 1
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
