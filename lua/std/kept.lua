-- Objects that sessions keep, though what they are is not in their entries: each
-- consists of a plain table, from which it is made again. frames.lua and
-- factors.lua tell it of theirs.
local checks = require "lumat.checks"
local kept = {}
local getmetatable, next, require = getmetatable, next, require
local setmetatable, tostring, type = setmetatable, tostring, type
local format = string.format

local kind_of = setmetatable({}, {__mode = "k"}) -- of each object
local kinds = {}

-- The file of the library that tells of a kind.
local files = {shown = "lumat.kept", chart = "lumat.chart_values",
    histogram = "lumat.groups", unique = "lumat.groups", groups = "lumat.groups",
    frame_groups = "lumat.frame_groups"}

-- Of each kind two functions. parts(value) gives the table of plain values that
-- sessions save, and what of it has to be saved, or the object cannot be;
-- parts(value, true), in a program that cannot go on, nil where they have yet to
-- be worked out. make(value, parts) makes the empty table `value` an object, and
-- raises where the parts are not right.
function kept.add_kind(kind, parts, make)
    kinds[kind] = {parts = parts, make = make}
end

-- value, which is of a kind from now on
function kept.note(value, kind)
    kind_of[value] = kind
    return value
end

-- The kind of a value that sessions keep so; nil of others. Pictures, made by
-- the part in C, are tables that show themselves.
function kept.kind(value)
    local meta = getmetatable(value)
    if type(meta) == "table" and meta.__name == "picture" then return "shown" end
    return kind_of[value]
end

-- What it consists of, or nil.
function kept.parts_of(value, rescues)
    return kinds[kept.kind(value)].parts(value, rescues)
end

-- Is there such a kind, from whatever file?
function kept.is_kind(kind)
    return files[kind] ~= nil
end

-- Makes `value`, an empty table, an object; raises where the parts are not right.
function kept.make(value, kind, parts)
    require(files[kind])
    kinds[kind].make(value, parts)
end

kept.add_kind("shown", function(value)
    local text = {text = tostring(value)}
    return {fields = checks.copied(value), text = text.text}, text
end, function(value, parts)
    for name, field in next, parts.fields do value[name] = field end
    checks.shown(value, format("%s", parts.text))
end)

package.loaded["lumat.kept"] = kept
