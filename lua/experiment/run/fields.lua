-- What descriptions and runs share: tables copied, words.
local checks = require "lumat.checks"
local next = next
local fields = {}

-- Copies, so that nobody changes them from outside.
function fields.copied(t)
    local c = {}
    for key, value in next, t do c[key] = value end
    return c
end

fields.plural = checks.plural

return fields
