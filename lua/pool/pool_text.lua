-- Values as Lua that gives them again: what the prompt and the processes of a
-- pool tell each other beside elements.
local pool_text = {}
local error, ipairs, load, next, type = error, ipairs, load, next, type
local concat, format, huge, math_type, select = table.concat, string.format,
    math.huge, math.type, select

local literal

local function number_text(x)
    if x ~= x then return "(0/0)" end
    if x == huge then return "(1/0)" end
    if x == -huge then return "(-1/0)" end
    return math_type(x) == "integer" and format("%d", x) or format("%a", x)
end

local function table_text(t)
    local list = {}
    for i, value in ipairs(t) do list[i] = literal(value) end
    local count = #list
    for key, value in next, t do
        if not (math_type(key) == "integer" and key >= 1 and key <= count) then
            list[#list + 1] = format("[%s]=%s", literal(key), literal(value))
        end
    end
    return "{" .. concat(list, ",") .. "}"
end

-- Of nil, truths, numbers, strings and tables of these.
function literal(value)
    local kind = type(value)
    if kind == "number" then return number_text(value) end
    if kind == "string" then return format("%q", value) end
    if kind == "table" then return table_text(value) end
    if kind ~= "nil" and kind ~= "boolean" then
        error("a " .. kind .. " cannot be told")
    end
    return value == nil and "nil" or value and "true" or "false"
end
pool_text.literal = literal

-- name(arguments…), as text.
function pool_text.call(name, ...)
    local list = {n = select("#", ...), ...}
    for i = 1, list.n do list[i] = literal(list[i]) end
    return "return " .. name .. "(" .. concat(list, ",", 1, list.n) .. ")"
end

-- What a literal stands for.
function pool_text.value(text)
    if text == "nil" then return nil end
    return load("return " .. text, "=reply", "t", {})()
end

return pool_text
