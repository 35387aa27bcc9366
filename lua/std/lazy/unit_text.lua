-- Bytes, seconds and operations in the unit that suits them, for people.
local amounts = {}
local tonumber = tonumber
local find, format = string.find, string.format

-- All digits of what has more than the form shows.
local function written(x, form)
    local text = format(form, x)
    return find(text, "e+", 1, true) and format("%.0f", x) or text
end

-- In the first unit in which fewer than `step` are shown, after rounding.
local function scaled(x, units, step, form)
    local i = 1
    while units[i + 1] and (tonumber(written(x, form)) or x) >= step do
        x, i = x / step, i + 1
    end
    return written(x, i == 1 and x == x // 1 and "%.0f" or form) .. " " ..
        units[i]
end

-- Each takes how a number is written: "%.3g".
function amounts.bytes(x, form)
    return scaled(x, {"B", "KiB", "MiB", "GiB", "TiB"}, 1024, form)
end

function amounts.flops(x, form)
    return scaled(x, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"},
        1000, form)
end

function amounts.seconds(x, form)
    return scaled(x * 1e6, {"us", "ms", "s"}, 1000, form)
end

-- The same of times that may be shorter than a microsecond.
function amounts.short_seconds(x, form)
    return scaled(x * 1e9, {"ns", "us", "ms", "s"}, 1000, form)
end

return amounts
