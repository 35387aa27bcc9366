-- What files of saved sessions are made of: a file is a zip archive; each
-- matrix is a part NAME.npy, and "session.txt" tells, one record a line, which
-- parts, views and tables there are and what names have them. Here: values as
-- words of a record, which session_records.c reads, and file names.
local checks = require "lumat.checks"
local texts = require "lumat.texts"
local words = {header = "lumat session 1"}
local type, math_type, huge = type, math.type, math.huge
local byte, find, format, gsub, match = string.byte, string.find,
    string.format, string.gsub, string.match

-- A string without blanks or control characters in it.
function words.escape(text)
    return (gsub(text, "[%c \\\x7f]", function(c)
        return format("\\%03d", byte(c))
    end))
end

function words.number(x)
    if math_type(x) == "integer" then return format("i%d", x) end
    if x ~= x then return "dnan" end
    if x == huge or x == -huge then return x > 0 and "dinf" or "d-inf" end
    return format("d%a", x)
end

-- The file's path, with the ending of sessions when it has none.
function words.path(who, path)
    if type(path) ~= "string" or path == "" then
        checks.fail(who, "needs a file's name, such as \"work.lum\"")
    elseif find(path, "\0", 1, true) then
        checks.fail(who, "the path has a zero byte in it")
    end
    path = texts.path(path)
    local ending = match(path, "%.(%w+)$")
    if ending and ending ~= "lum" then
        checks.fail(who, "'%s' does not end in .lum; %s", path,
            who == "save_session" and
            "save(A, \"f.npy\") is for one matrix" or
            "load \"f.npy\" reads one matrix")
    end
    return ending and path or path .. ".lum"
end

return words
