-- Where rows come from: what differs between the machines and devices that two
-- of them were measured on.
local environment = require "lumat.environment"
local origins = {}
local ipairs, tostring = ipairs, tostring
local format = string.format

-- The environment of a row, where its run recorded one.
local function environment_of(source, row)
    return source.environments and source.environments[row.env]
end

-- What differs between the places of two rows, as lines of text.
function origins.differences(old, a, new, b)
    local before, after = environment_of(old, a), environment_of(new, b)
    local list = {}
    if before and after then
        list = environment.differences(before, after)
    elseif before or after then
        list[1] = format("where the rows %s were measured is not known",
            before and "after" or "before")
    end
    for _, name in ipairs{"device", "cold"} do
        if a[name] ~= b[name] and a.device and b.device then
            list[#list + 1] = format("%s was %s, is %s", name,
                tostring(a[name] or false), tostring(b[name] or false))
        end
    end
    return #list > 0 and list or nil
end

-- Which environments rows are of: their numbers in order, how many rows each
-- has, and what differs between the first and each of the others.
function origins.several(source, rows)
    local counts, numbers = {}, {}
    for _, row in ipairs(rows) do
        local n = row.env
        if n then
            if not counts[n] then numbers[#numbers + 1] = n end
            counts[n] = (counts[n] or 0) + 1
        end
    end
    table.sort(numbers)
    local list = {}
    for i, n in ipairs(numbers) do
        local first, here = source.environments and
            source.environments[numbers[1]], source.environments and
            source.environments[n]
        list[i] = {number = n, count = counts[n],
            differs = i > 1 and first and here and
                environment.differences(first, here) or {}}
    end
    return list
end

return origins
