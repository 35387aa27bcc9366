-- The small files of a run directory: what they say, or what is wrong with one,
-- where, and how to go on.
local journal = require "lumat.journal"
local fail = require("lumat.checks").fail
local plural = require("lumat.fields").plural
local find, format, gsub, match, sub = string.find, string.format, string.gsub,
    string.match, string.sub
local ipairs, type = ipairs, type
local json_files = {}

-- Pattern of the name, what to do about a damaged one of these.
local remedies = {
    {"^experiment%.json$", 'with {"format":1,"name":"NAME"} in it, NAME ' ..
        "being the experiment's, all is as it was"},
    {"^env%-%d+%.json$", "put a copy of it back, or remove it: where its rows " ..
        "were measured is not known then"},
    {"^code%-", "it can be removed: the rows are in the journals, and a run " ..
        "writes it anew"},
}

local function remedy(path, name)
    local file = match(path, "[^/]*$")
    for _, entry in ipairs(remedies) do
        if find(file, entry[1]) then
            return "; " .. (gsub(entry[2], "NAME", name or "NAME", 1):gsub(
                name and ", NAME being the experiment's" or "$^", ""))
        end
    end
    return ""
end

-- Raises that the file is damaged. name: the experiment's, if it is known.
function json_files.refuse(path, why, name)
    fail("experiment", "%s is damaged: %s%s", path, why, remedy(path, name))
end

-- "line 1, byte 17: a string without an end"
local function place_of(text, wrong, at)
    local before = sub(text, 1, at)
    local _, lines = gsub(before, "\n", "")
    if not find(text, "%S") then return "it is empty" end
    if at >= #text then
        return format("it ends in the midst, after %s", plural(#text, "byte"))
    end
    return format("line %d, byte %d: %s", lines + 1,
        #match(before, "[^\n]*$") + 1, wrong)
end

local NOT_THERE, MOST = 2, 1 << 26 -- bytes

-- The table in the file, or nil where there is no such file.
function json_files.read(path, name)
    local text, why, code = journal.read_file(path, MOST)
    if not text and code == NOT_THERE then return nil end
    if not text then fail("experiment", "cannot read %s: %s", path, why) end
    local value, wrong, at = journal.decode(text)
    if wrong then
        json_files.refuse(path, place_of(text, wrong, at), name)
    elseif type(value) ~= "table" then
        json_files.refuse(path, "it has one value alone", name)
    end
    return value
end

return json_files
