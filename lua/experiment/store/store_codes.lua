-- The codes that measured what is in a store, and which of their rows count: a
-- store's methods.
local json_files = require "lumat.json_files"
local pairs, type, time = pairs, type, os.time
local format, sort = string.format, table.sort
local codes = {}

function codes:code(hash)
    local known = self.codes[hash]
    if known == nil then
        local name = format("code-%s.json", hash)
        known = self:read(name) or false
        if known and type(known.parts) ~= "table" then
            json_files.refuse(self.dir .. "/" .. name, "it names no parts")
        end
        self.codes[hash] = known
    end
    return known or {parts = {}}
end

function codes:add_code(code, script)
    self.codes[code.hash] = self:found("code-" .. code.hash .. ".json",
        {parts = code.parts, since = time(), script = script})
end

-- The code whose rows a row of this code counts with.
function codes:counts_as(code)
    local steps = 0
    while self.keeps[code] and steps < 100 do
        code, steps = self.keeps[code], steps + 1
    end
    return code
end

function codes:is_dropped(row)
    local gen = self.drops[row.code]
    return gen ~= nil and (row.gen or 0) < gen
end

-- The codes whose rows count for this one, itself first.
function codes:accepted(code)
    local list = {code}
    for old in pairs(self.keeps) do
        if old ~= code and self:counts_as(old) == code then
            list[#list + 1] = old
        end
    end
    sort(list, function(a, b)
        if (a == code) ~= (b == code) then return a == code end
        return a < b
    end)
    return list
end

-- {code = number of rows} of codes that neither count nor are dropped.
function codes:stale(code)
    local counts
    for _, row in pairs(self.rows) do
        if self:counts_as(row.code) ~= code and not self:is_dropped(row) then
            counts = counts or {}
            counts[row.code] = (counts[row.code] or 0) + 1
        end
    end
    return counts
end

return codes
