-- What descriptions and options share: fields checked, tables copied, words.
local journal = require "lumat.journal"
local checks = require "lumat.checks"
local sorted_keys = require "lumat.axes".sorted_keys
local fail, brief = checks.fail, checks.brief
local ipairs, next, type = ipairs, next, type
local concat = table.concat
local find, gsub = string.find, string.gsub
local fields = {}

local function article(word)
    return (find(word, "^[aeiou]") and "an " or "a ") .. word
end

-- Every key of t is one of `kinds` and its value of a kind given there.
function fields.check(what, t, kinds)
    for _, key in ipairs(sorted_keys(t)) do
        local kind, value = kinds[key], t[key]
        if not kind then
            local names = sorted_keys(kinds)
            local near = type(key) == "string" and
                journal.nearest(key, concat(names, " "))
            fail(what, "unknown option %s: %s", brief(key), near and
                "did you mean " .. near .. "?" or
                "there are " .. concat(names, " "))
        elseif not find(" " .. kind .. " ", " " .. type(value) .. " ", 1, true) then
            fail(what, "%s is %s, expected %s", key, brief(value),
                article(gsub(kind, " ", " or a ")))
        end
    end
end

-- Copies, so that nobody changes them from outside.
function fields.copied(t)
    local c = {}
    for key, value in next, t do c[key] = value end
    return c
end

fields.plural = checks.plural

return fields
