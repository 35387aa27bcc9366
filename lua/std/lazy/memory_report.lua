-- What holds memory, as a person reads it.
local library = ...
local amounts, checks = require "lumat.unit_text", require "lumat.checks"
local report = {}
local own = require "lumat.variables"
local collectgarbage, ipairs, next, pcall = collectgarbage, ipairs, next, pcall
local concat, smaller, sort = table.concat, math.min, table.sort
local format = string.format

local SHOWN = 8 -- variables; the field has them all

local function bytes_text(bytes)
    return amounts.bytes(bytes, "%.1f")
end

local function device_line(d)
    local other = d.total - d.free - d.live - d.kept - d.factors
    return format("%-8s matrices %s, at most %s so far; kept by products %s",
        d.name, bytes_text(d.live), bytes_text(d.peak), bytes_text(d.kept)) ..
        (d.factors > 0 and format("\n%-8s about %s in factors of sparse matrices",
            "", bytes_text(d.factors)) or "") ..
        (d.total > 0 and format("\n%-8s %s free of %s%s", "",
            bytes_text(d.free), bytes_text(d.total), other > 0 and
            format(", others use %s", bytes_text(other)) or "") or "")
end

-- Bytes of all storages of a value, and the key of the first; or nothing.
local function sum_of(bytes, key, storage, more, _, _, ...)
    if not storage then return bytes, key end
    return sum_of(bytes + more, key or storage, ...)
end

-- Adds {name=, bytes=, device=} of each matrix among the values, and to `facts`
-- the key of its storage and what it is, "f32 4096x4096".
local function add_matrices(list, facts, values)
    for name, value in next, values do
        local bytes, key = sum_of(0, nil, own.storages(value))
        if key then
            local dtype, shape, device, dense = own.facts(value)
            local v = {name = name, bytes = bytes, device = device}
            list[#list + 1] = v
            facts[v] = {key = key, kind = dtype .. " " .. shape ..
                (dense and "" or " sparse")}
        end
    end
end

-- The matrices, largest first, and by device the bytes that they hold; of those
-- that share storage, the first by name counts.
local function matrices(facts)
    local list, first, held = {}, {}, {}
    local values, hidden = own.variables()
    add_matrices(list, facts, values)
    add_matrices(list, facts, hidden)
    sort(list, function(a, b)
        if a.bytes ~= b.bytes then return a.bytes > b.bytes end
        return (a.name == "ans" and "~" or a.name) <
            (b.name == "ans" and "~" or b.name)
    end)
    for _, v in ipairs(list) do
        local key = facts[v].key
        v.shares = first[key]
        if not v.shares then
            first[key] = v.name
            held[v.device] = (held[v.device] or 0) + v.bytes
        end
    end
    return list, held
end

local function add_variables(lines, list, facts)
    for i = 1, smaller(#list, SHOWN) do
        local v = list[i]
        lines[#lines + 1] = format("  %-12s %10s  %s  %s%s", v.name,
            bytes_text(v.bytes), facts[v].kind, v.device,
            v.shares and "  shares " .. v.shares or "")
    end
    if #list > SHOWN then
        lines[#lines + 1] = format("  %d more", #list - SHOWN)
    end
end

local function add_device(lines, d, held)
    lines[#lines + 1] = device_line(d)
    d.unnamed = d.live - held
    if d.unnamed > 0 then
        lines[#lines + 1] = format("%-8s %s in no variable: in " ..
            "tables, or garbage not collected yet", "",
            bytes_text(d.unnamed))
    end
end

row{
    name = "mem",
    takes = "[what: \"reset\"]",
    gives = "table",
    usage = "mem([\"reset\"])",
    group = "devices",
    help = "What holds memory: of each device that is open, bytes of matrices " ..
        "now and at most (from the last reset), kept by products, in factors " ..
        "of sparse matrices, free and in all; the largest variables; what Lua " ..
        "holds. Fields: devices, variables, lua. Also :mem.",
    example = "mem().devices[1].live >= 0",
    result = "true",
}
function report.mem(what)
    if what then own.reset() end
    library.device()
    local facts = {}
    local list, held = matrices(facts)
    local found = {devices = {}, variables = list,
        lua = collectgarbage("count") * 1024}
    local lines = {}
    for _, name in ipairs(own.devices()) do
        local is_there, d = pcall(library.memory, name)
        if is_there then
            d.name, found.devices[#found.devices + 1] = name, d
            add_device(lines, d, held[name] or 0)
        else
            lines[#lines + 1] = format("%-8s is lost", name)
        end
    end
    add_variables(lines, list, facts)
    lines[#lines + 1] = format("%-8s %s", "Lua", bytes_text(found.lua))
    return checks.shown(found, concat(lines, "\n"))
end

return report
