-- What is in a folder, as a person reads it.
local checks = require "lumat.checks"
local layout = require "lumat.text_layout"
local later = {}
local list = require "lumat.list"
local fail, shown = checks.fail, checks.shown
local type = type

function later.ls(pattern)
    if pattern ~= nil and type(pattern) ~= "string" then
        fail("ls", "the pattern is %s, expected a name such as \"*.csv\"",
            checks.brief(pattern))
    end
    local names = list(pattern)
    return shown(names, #names > 0 and layout.list(names) or
        "no file" .. (pattern and " fits " .. pattern or ""))
end

return later
