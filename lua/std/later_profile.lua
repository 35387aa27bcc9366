-- The profile as a person reads it.
local library = ...
local amounts, checks = require "lumat.later_amounts", require "lumat.checks"
local later = {}
local own = require "lumat.profile"
local fail, brief = checks.fail, checks.brief
local ipairs, pcall, type = ipairs, pcall, type
local concat, sort = table.concat, table.sort
local format, gsub, rep = string.format, string.gsub, string.rep
local larger, smaller, len = math.max, math.min, utf8.len

local SHOWN = 12 -- rows of each list; the fields have them all

local function by_time(a, b)
    return a.seconds > b.seconds
end

-- Sorts, and adds each row's share of the whole.
local function rank(rows)
    local whole = 0
    for _, r in ipairs(rows) do whole = whole + r.seconds end
    for _, r in ipairs(rows) do
        r.share = whole > 0 and r.seconds / whole or 0
    end
    sort(rows, by_time)
    return whole
end

local function rate_text(r)
    if not (r.seconds > 0) then return "" end
    if r.kernel == "bus" then
        return format("%.4g GB/s", r.bytes / r.seconds / 1e9)
    end
    local is_product = r.operation == "matmul" or r.operation == "solve" or
        r.operation == "det" or r.operation == "rcond"
    local value, unit, share = library.rate(is_product and r.flops or 0,
        r.bytes, r.seconds, r.dtype == "f64" and "f64" or "f32", r.device)
    return format("%.4g %s, %.0f %% of peak", value, unit, 100 * share)
end

local function bytes_text(bytes)
    return amounts.bytes(bytes, "%.4g")
end

local function seconds_text(seconds)
    return amounts.seconds(seconds, "%.4g")
end

-- The rows that are shown, each by `text`, and how many are not.
local function add_rows(lines, rows, text)
    for i, r in ipairs(rows) do
        if i > SHOWN then
            lines[#lines + 1] = format("  %d more", #rows - SHOWN)
            break
        end
        lines[#lines + 1] = text(r)
    end
end

-- "name   calls  time  share", the name in so many columns.
local function row_text(name, wide, r)
    return format("  %s%s %8d %10s %4.0f %%", name, rep(" ", wide -
        (len(name) or #name)), r.calls, seconds_text(r.seconds), 100 * r.share)
end

local function name_of(r)
    return r.line or r.operation .. " " .. r.kernel .. " " .. r.dtype
end

-- Columns of the longest name that is shown.
local function width_of(rows, least)
    for i = 1, smaller(SHOWN, #rows) do
        local name = name_of(rows[i])
        least = larger(least, len(name) or #name)
    end
    return least
end

local function report()
    local operations, lines, seconds, on = own.read()
    local found = {operations = operations, lines = lines, seconds = seconds,
        on = on, busy = rank(operations)}
    rank(lines)
    if #operations == 0 then
        return checks.shown(found, on and "on; no operation yet" or
            "no operation: profile(\"on\") begins, and work follows")
    end
    local text = {format("%s of operations in %s%s", seconds_text(found.busy),
        seconds_text(seconds), on and "; still on" or "")}
    local wide = width_of(operations, width_of(lines, 16))
    text[2] = format("  operation%s    calls       time  share      bytes  rate",
        rep(" ", wide - 9))
    add_rows(text, operations, function(r)
        return format("%s %10s  %s", row_text(name_of(r), wide, r),
            bytes_text(r.bytes), rate_text(r))
    end)
    text[#text + 1] = "  line"
    add_rows(text, lines, function(r)
        return row_text(name_of(r), wide, r)
    end)
    return checks.shown(found, concat(text, "\n"))
end

local function write(file)
    if type(file) ~= "string" then
        fail("profile", "the file is %s, expected a name: profile(\"json\", " ..
            "\"trace.json\")", brief(file))
    end
    local ok, count, dropped = pcall(own.write, file)
    if not ok then fail("profile", "%s: %s", file, (gsub(count, "%%", "%%%%"))) end
    return checks.shown({count = count, dropped = dropped}, format(
        "%d operations in %s%s: ui.perfetto.dev shows them", count, file,
        dropped > 0 and format(" (%d more not kept)", dropped) or ""))
end

function later.profile(what, file)
    if what == "json" then return write(file) end
    if what == "on" or what == "off" or what == "reset" then
        own.switch(what)
    elseif what ~= nil and what ~= "top" then
        fail("profile", "%s is none of on, off, top, reset, json",
            brief(what))
    end
    return report()
end

return later
