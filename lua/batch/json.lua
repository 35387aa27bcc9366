-- JSON as RFC 8259 has it, for lines of results: tables with the keys 1 .. n
-- are arrays, and numbers that JSON has none for are written as the strings
-- "nan", "inf" and "-inf" by whoever needs them.
local json = {}
local error, next, pairs, tostring = error, next, pairs, tostring
local tonumber, type = tonumber, type
local byte, char, find, format, gsub, sub = string.byte, utf8.char,
    string.find, string.format, string.gsub, string.sub
local concat, sort = table.concat, table.sort
local huge, math_type, to_integer = math.huge, math.type, math.tointeger
local len = utf8.len

-- --- writing ----------------------------------------------------------------

local short = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n",
    ["\r"] = "\\r", ["\t"] = "\\t"}

-- Bytes that are no UTF-8 stand as the characters of their numbers.
local function string_text(s)
    if not len(s) then
        s = gsub(s, "[\x80-\xff]", function(c) return char(byte(c)) end)
    end
    return '"' .. gsub(s, '[%c"\\\x7f]', function(c)
        return short[c] or format("\\u%04x", byte(c))
    end) .. '"'
end

-- The fewest digits that read back as x.
local function number_text(x)
    if math_type(x) == "integer" then return format("%d", x) end
    if x ~= x then return '"nan"' end
    if x == huge or x == -huge then return x > 0 and '"inf"' or '"-inf"' end
    for digits = 15, 17 do
        local text = format("%." .. digits .. "g", x)
        if tonumber(text) == x then
            return find(text, "[.e]") and text or text .. ".0"
        end
    end
end

local write

local function table_text(t)
    local parts, count = {}, 0
    for _ in next, t do count = count + 1 end
    if count == #t and count > 0 then
        for i = 1, #t do parts[i] = write(t[i]) end
        return "[" .. concat(parts, ",") .. "]"
    end
    local keys = {}
    for key in pairs(t) do keys[#keys + 1] = tostring(key) end
    sort(keys)
    for i, key in next, keys do
        local value = t[key]
        if value == nil then value = t[tonumber(key)] end
        parts[i] = string_text(key) .. ":" .. write(value)
    end
    return "{" .. concat(parts, ",") .. "}"
end

function write(value)
    local kind = type(value)
    if kind == "table" then return table_text(value) end
    if kind == "number" then return number_text(value) end
    if kind == "boolean" or value == nil then
        return value == nil and "null" or tostring(value)
    end
    return string_text(tostring(value))
end
json.write = write

-- --- reading ----------------------------------------------------------------

local DEEPEST = 100

local function wrong(text, at, what)
    error(format("column %d: %s", at, what ..
        (at > #text and ", but the text ends" or "")), 0)
end

local function skip(text, at)
    return find(text, "[^ \t\r\n]", at) or #text + 1
end

local plain = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t",
    ['"'] = '"', ["\\"] = "\\", ["/"] = "/"}

-- The character of \uXXXX at `at`, two of them where they make a pair, and
-- where what follows begins.
local function read_code(text, at)
    local code = tonumber(text:match("^%x%x%x%x", at + 2) or "", 16)
    if not code then wrong(text, at, "four digits must follow \\u") end
    if code >= 0xd800 and code < 0xdc00 then
        local low = tonumber(text:match("^\\u(%x%x%x%x)", at + 6) or "", 16)
        if low and low >= 0xdc00 and low < 0xe000 then
            return char(0x10000 + ((code - 0xd800) << 10) + low - 0xdc00),
                at + 12
        end
    end
    if code >= 0xd800 and code < 0xe000 then code = 0xfffd end
    return char(code), at + 6
end

local function read_string(text, at)
    local parts, from = {}, at + 1
    while true do
        local stop = find(text, '["\\%c]', from)
        if not stop then wrong(text, #text + 1, "a string must end") end
        parts[#parts + 1] = sub(text, from, stop - 1)
        local c = sub(text, stop, stop)
        if c == '"' then return concat(parts), stop + 1 end
        if c ~= "\\" then
            wrong(text, stop, "a control character in a string")
        end
        local escape = sub(text, stop + 1, stop + 1)
        if escape == "u" then
            parts[#parts + 1], from = read_code(text, stop)
        elseif plain[escape] then
            parts[#parts + 1], from = plain[escape], stop + 2
        else
            wrong(text, stop, "no such escape in a string")
        end
    end
end

local read

local function read_array(text, at, depth)
    local list = {}
    at = skip(text, at + 1)
    if sub(text, at, at) == "]" then return list, at + 1 end
    while true do
        list[#list + 1], at = read(text, at, depth)
        at = skip(text, at)
        local c = sub(text, at, at)
        if c == "]" then return list, at + 1 end
        if c ~= "," then wrong(text, at, "expected , or ]") end
        at = skip(text, at + 1)
    end
end

local function read_object(text, at, depth)
    local t, key = {}, nil
    at = skip(text, at + 1)
    if sub(text, at, at) == "}" then return t, at + 1 end
    while true do
        if sub(text, at, at) ~= '"' then wrong(text, at, "expected a name") end
        key, at = read_string(text, at)
        at = skip(text, at)
        if sub(text, at, at) ~= ":" then wrong(text, at, "expected :") end
        t[key], at = read(text, skip(text, at + 1), depth)
        at = skip(text, at)
        local c = sub(text, at, at)
        if c == "}" then return t, at + 1 end
        if c ~= "," then wrong(text, at, "expected , or }") end
        at = skip(text, at + 1)
    end
end

local words = {{"true", true}, {"false", false}, {"null", nil}}

local function read_other(text, at)
    for _, word in next, words do
        if sub(text, at, at + #word[1] - 1) == word[1] then
            return word[2], at + #word[1]
        end
    end
    local digits = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
    local number = digits and tonumber(digits)
    if not number then wrong(text, at, "expected a value") end
    return find(digits, "[.eE]") and number + 0.0 or to_integer(number) or
        number, at + #digits
end

-- The value that begins at `at`, and where what follows begins.
function read(text, at, depth)
    if depth > DEEPEST then wrong(text, at, "nested too deeply") end
    local c = sub(text, at, at)
    if c == "{" then return read_object(text, at, depth + 1) end
    if c == "[" then return read_array(text, at, depth + 1) end
    if c == '"' then return read_string(text, at) end
    return read_other(text, at)
end

-- The value a text stands for; raises with the column where it is no JSON.
function json.read(text)
    local value, at = read(text, skip(text, 1), 0)
    at = skip(text, at)
    if at <= #text then wrong(text, at, "something follows the value") end
    return value
end

return json
