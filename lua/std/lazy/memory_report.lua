-- What holds memory, as a person reads it.
local library = ...
local amounts, checks = require "lumat.unit_text", require "lumat.checks"
local report = {}
local own = require "lumat.held"
local collectgarbage, getmetatable, ipairs, tostring =
    collectgarbage, getmetatable, ipairs, tostring
local concat, sort = table.concat, table.sort
local format = string.format

local SHOWN = 8 -- variables; the field has them all

local function bytes_text(bytes)
    return amounts.bytes(bytes, "%.1f")
end

local function device_line(d)
    local other = d.total - d.free - d.live - d.kept
    return format("%-8s matrices %s, at most %s so far; kept by products %s",
        d.name, bytes_text(d.live), bytes_text(d.peak), bytes_text(d.kept)) ..
        (d.total > 0 and format("\n%-8s %s free of %s%s", "",
            bytes_text(d.free), bytes_text(d.total), other > 0 and
            format(", others use %s", bytes_text(other)) or "") or "")
end

-- The variables, largest first; of those that share storage, the first by
-- name counts.
local function variables()
    local list, first, held = own.variables(), {}, {}
    sort(list, function(a, b)
        if a.bytes ~= b.bytes then return a.bytes > b.bytes end
        return (a.name == "ans" and "~" or a.name) <
            (b.name == "ans" and "~" or b.name)
    end)
    for _, v in ipairs(list) do
        local key = tostring(v.storage)
        v.shares = first[key]
        if not v.shares then
            first[key] = v.name
            held[v.device] = (held[v.device] or 0) + v.bytes
        end
        v.storage = nil
    end
    return list, held
end

-- "A  64.0 MiB  f32 4096x4096  cpu"
local function variable_line(v)
    local m = v.matrix
    local kind = getmetatable(m) == "matrix" and
        m.dtype .. " " .. checks.shape_of(m) or
        format("%s %dx%d sparse", m.dtype, m.rows, m.cols)
    v.matrix = nil
    return format("  %-12s %10s  %s  %s%s", v.name, bytes_text(v.bytes), kind,
        v.device, v.shares and "  shares " .. v.shares or "")
end

local function add_variables(lines, list)
    for i, v in ipairs(list) do
        local line = variable_line(v)
        if i <= SHOWN then lines[#lines + 1] = line end
    end
    if #list > SHOWN then
        lines[#lines + 1] = format("  %d more", #list - SHOWN)
    end
end

row{
    name = "mem",
    takes = "[what: \"reset\"]",
    gives = "table",
    usage = "mem([\"reset\"])",
    group = "devices",
    help = "What holds memory: of each device that is open, bytes of matrices " ..
        "now and at most (from the last reset), kept by products, free and " ..
        "in all; the largest variables; what Lua holds. Fields: devices, " ..
        "variables, lua. Also :mem.",
    example = "mem().devices[1].live >= 0",
    result = "true",
}
function report.mem(what)
    if what then own.reset() end
    library.device()
    local list, held = variables()
    local found = {devices = {}, variables = list,
        lua = collectgarbage("count") * 1024}
    local lines = {}
    for i, name in ipairs(own.devices()) do
        local d = library.memory(name)
        d.name, found.devices[i] = name, d
        lines[#lines + 1] = device_line(d)
        d.unnamed = d.live - (held[name] or 0)
        if d.unnamed > 0 then
            lines[#lines + 1] = format("%-8s %s in no variable: in " ..
                "tables, or garbage not collected yet", "",
                bytes_text(d.unnamed))
        end
    end
    add_variables(lines, list)
    lines[#lines + 1] = format("%-8s %s", "Lua", bytes_text(found.lua))
    return checks.shown(found, concat(lines, "\n"))
end

return report
