-- The profile as a person reads it.
local library, _, _, private = ...
local amounts, checks = require "lumat.unit_text", require "lumat.checks"
local functions = {}
local own = require "lumat.profile"
local fail, brief = checks.fail, checks.brief
local ipairs, pcall, type = ipairs, pcall, type
local concat, sort = table.concat, table.sort
local format, gsub = string.format, string.gsub
local larger, smaller, require = math.max, math.min, require

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

-- The rate, and its share of the peak, or of the peaks of several devices.
local function rate_of(r)
    if not (r.seconds > 0) then return "", "" end
    if r.kernel == "bus" then
        return format("%.4g GB/s", r.bytes / r.seconds / 1e9), ""
    end
    local is_product = r.operation == "matmul" or r.operation == "solve" or
        r.operation == "det" or r.operation == "rcond"
    local value, unit, share = library.rate(is_product and r.flops or 0,
        r.bytes, r.seconds, r.dtype ~= "bool" and r.dtype or "f32", r.device,
        r.devices)
    return format("%.4g %s", value, unit), format("%.0f %%", 100 * share),
        share
end

local function bytes_text(bytes)
    return amounts.bytes(bytes, "%.4g")
end

local function seconds_text(seconds)
    return amounts.seconds(seconds, "%.4g")
end

local function calls_of(r)
    return format("%d", r.calls), seconds_text(r.seconds),
        format("%.0f %%", 100 * r.share)
end

-- Adds a table of the rows that are shown, each with the cells that `cells`
-- gives, and how many are not.
local function add_table(lines, columns, rows, cells)
    local layout, list = require "lumat.text_layout", {}
    for i = 1, smaller(SHOWN, #rows) do list[i] = cells(rows[i]) end
    local text, gone = layout.table(columns, list, 2)
    for _, line in ipairs(text) do lines[#lines + 1] = line end
    if #rows > SHOWN then
        lines[#lines + 1] = format("  %d more", #rows - SHOWN)
    end
    return gone
end

local function add_operations(lines, operations)
    local layout, highest = require "lumat.text_layout", 0
    local gone = add_table(lines, {{title = "operation", left = true, least = 12},
        {title = "calls", drop = 3}, {title = "time"}, {title = "share"},
        {title = "bytes", drop = 1}, {title = "rate", drop = 2},
        {title = "of peak", drop = 4}}, operations, function(r)
            local rate, part, share = rate_of(r)
            highest = larger(highest, share or 0)
            local calls, time, of_all = calls_of(r)
            return {r.operation .. " " .. r.kernel .. " " .. r.dtype, calls,
                time, of_all, bytes_text(r.bytes), rate, part}
        end)
    if private.above_peak(highest) ~= "" then
        lines[#lines + 1] = layout.wrap("  ", "above 100 %: " ..
            private.above_peak(highest))
    end
    if #gone > 0 then lines[#lines + 1] = layout.gone(gone) end
end

local function add_lines(text, lines)
    add_table(text, {{title = "line", left = true, least = 12},
        {title = "calls", drop = 1}, {title = "time"}, {title = "share"}},
        lines, function(r) return {r.line, calls_of(r)} end)
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
    local text = {require "lumat.text_layout".wrap("", format(
        "%s of operations in %s%s", seconds_text(found.busy),
        seconds_text(seconds), on and "; still on" or ""), 2)}
    add_operations(text, operations)
    add_lines(text, lines)
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

row{
    name = "profile",
    takes = "[what: \"on\"|\"off\"|\"top\"|\"reset\"|\"json\" [, file: path]]",
    gives = "table",
    usage = "profile([\"on\"|\"off\"|\"top\"|\"reset\"|\"json\", file])",
    group = "costs tracing",
    help = "What operations took while it is on: by kind (calls, time, share, " ..
        "bytes, rate) and by line of the script. Every operation is waited " ..
        "for meanwhile. Fields: operations, lines, seconds, busy, on. " ..
        "\"json\" writes a timeline for Perfetto or chrome://tracing. Also " ..
        ":prof.",
    example = "profile(\"reset\").busy",
    result = "0",
}
function functions.profile(what, file)
    if what == "json" then return write(file) end
    if what and what ~= "top" then own.switch(what) end
    return report()
end

return functions
