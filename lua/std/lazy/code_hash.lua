-- What makes two measurements the same: the parameters of a point, and the
-- code that measures it.
local journal = require "lumat.journal"
local fail = require("lumat.checks").fail
local getinfo, getupvalue = debug.getinfo, debug.getupvalue
local dump = string.dump
local ipairs, next, pairs, pcall, tostring, type = ipairs, next, pairs, pcall,
    tostring, type
local concat, sort = table.concat, table.sort
local find, format, gmatch, match, sub = string.find, string.format,
    string.gmatch, string.match, string.sub
local huge = math.huge
local math_type, to_integer = math.type, math.tointeger
local identity = {}
local DEEPEST = 4

-- --- parameters -----------------------------------------------------------

local function word(value)
    if type(value) == "string" then return format("%q", value) end
    if type(value) == "boolean" then return tostring(value) end
    local whole = to_integer(value)
    return whole and format("%d", whole) or format("%a", value)
end

-- The same text for the same parameters, in whatever order they were given
-- and whether 512 or 512.0.
function identity.canonical(p)
    local names, parts = {}, {}
    for name in pairs(p) do names[#names + 1] = name end
    sort(names)
    for i, name in ipairs(names) do
        parts[i] = name .. "=" .. word(p[name])
    end
    return concat(parts, ";")
end

function identity.key(p, code)
    return journal.hash(identity.canonical(p) .. "\n" .. code)
end

-- --- source text ----------------------------------------------------------

-- Behind a long bracket that begins at `at`, or nil.
local function skip_long(text, at)
    local level = match(text, "^%[(=*)%[", at)
    if not level then return nil end
    local _, last = find(text, "]" .. level .. "]", at, true)
    return (last or #text) + 1
end

local function skip_quoted(text, at)
    local quote = sub(text, at, at)
    local i = at + 1
    while i <= #text do
        local c = sub(text, i, i)
        if c == quote then return i + 1 end
        i = i + (c == "\\" and 2 or 1)
    end
    return i
end

-- Where a token ends that begins at `at`, and whether it says anything.
local function token_end(text, at)
    if find(text, "^%s", at) then return match(text, "^%s+()", at), false end
    if find(text, "^%-%-", at) then
        return skip_long(text, at + 2) or match(text, "^[^\n]*()", at), false
    end
    if find(text, "^[\"']", at) then return skip_quoted(text, at), true end
    local long = skip_long(text, at)
    if long then return long, true end
    return match(text, "^[%a_][%w_]*()", at) or
        match(text, "^%.?%d[%w_.]*()", at) or at + 1, true
end

-- The tokens of Lua text: {text, where it starts}. Comments and blanks are
-- none.
local function tokens_of(text)
    local list, at = {}, 1
    while at <= #text do
        local behind, counts = token_end(text, at)
        if counts then list[#list + 1] = {sub(text, at, behind - 1), at} end
        at = behind
    end
    return list
end

local opens = {["function"] = true, ["do"] = true, ["then"] = true,
    ["repeat"] = true}

-- The tokens from `function` on up to its `end`, or nil.
local function body_of(tokens, first)
    local depth, words = 0, {}
    for i = first, #tokens do
        local t = tokens[i][1]
        words[#words + 1] = t
        if opens[t] then
            depth = depth + 1
        elseif t == "elseif" or t == "end" or t == "until" then
            depth = depth - 1
        end
        if depth == 0 and i > first then
            return concat(words, " "), i
        end
    end
end

-- The functions that begin in the first line of the text and end in its last:
-- those given as `name = function` or `function name` first of all.
local function candidates(text, name)
    local tokens, named, all = tokens_of(text), {}, {}
    local line_end = find(text, "\n", 1, true) or #text + 1
    local last_line = #text - #match(text, "[^\n]*$")
    for i, token in ipairs(tokens) do
        if token[1] == "function" and token[2] < line_end then
            local body, last = body_of(tokens, i)
            if body and tokens[last][2] > last_line then
                all[#all + 1] = body
                local before = tokens[i - 2] and tokens[i - 2][1]
                local behind = tokens[i + 1] and tokens[i + 1][1]
                if before == name or behind == name then
                    named[#named + 1] = body
                end
            end
        end
    end
    return #named > 0 and named or all
end

local function lines_of(text, first, last)
    local lines, number = {}, 0
    for line in gmatch(text .. "\n", "(.-)\r?\n") do
        number = number + 1
        if number >= first and number <= last then lines[#lines + 1] = line end
        if number == last then break end
    end
    return concat(lines, "\n")
end

-- Files that are gone, that may not be read, or that can be read only once.
local unknown = {[2] = true, [13] = true, [20] = true}

-- The text of a script, or nil where it is not to be had. One that is there and
-- cannot be read is an error: the code would look like another one.
function identity.script(path)
    local text, why, code = journal.read_file(path)
    if text or unknown[code] or code == journal.irregular then return text end
    fail("experiment", "cannot read %s: %s", path, why)
end

local function text_of_chunk(source)
    if sub(source, 1, 1) == "@" then return identity.script(sub(source, 2)) end
    return sub(source, 1, 1) ~= "=" and source or nil
end

-- The function's text without comments and layout; where it is not known
-- (typed at the prompt) its compiled form.
local function source_of(f, name)
    local info = getinfo(f, "S")
    if info.what == "C" then return "C" end
    local text = text_of_chunk(info.source)
    if text then
        local lines = lines_of(text, info.linedefined, info.lastlinedefined)
        local found = candidates(lines, name)
        if #found > 0 then return concat(found, "\n") end
    end
    local ok, code = pcall(dump, f, true)
    return ok and "compiled " .. journal.hash(code) or "unknown"
end

-- The name of the first parameter of the function whose tokens these are, or
-- ")", and the number of the token behind it; nil where it has none.
local function first_parameter(words)
    for i = 2, #words do
        local name = words[i + 1] or ""
        if words[i] == ":" then return nil end -- it is self
        if words[i] == "(" then
            return find(name, "^[%a_)]") and name or nil, i + 2
        end
    end
end

-- The parameters that f reads of its first argument p, as a set: those that
-- stand in its text as p.name. nil where p is used in any other way, or where
-- the text is not known. More than f reads does no harm.
function identity.reads(f, name)
    local reads, words = {}, {}
    local text = source_of(f, name)
    if not find(text, "^function ") or find(text, "\n", 1, true) then return end
    for word in gmatch(text, "%S+") do words[#words + 1] = word end
    local p, behind_p = first_parameter(words)
    if not p then return nil end
    for k = p ~= ")" and behind_p or huge, #words do
        local is_field = words[k - 1] == "." and words[k - 2] ~= "."
        if words[k] == p and not is_field then
            local field, behind = words[k + 2], words[k + 3]
            if words[k + 1] ~= "." or not find(field, "^[%a_]") or
                behind == "=" and words[k + 4] ~= "=" then
                return nil
            end
            reads[field] = true
        end
    end
    return reads
end

-- Plain values a function refers to, with their names; functions written in
-- Lua with what they refer to.
local function add_function(parts, f, name, depth, seen)
    if seen[f] then return end
    seen[f] = true
    parts[#parts + 1] = {name, source_of(f, match(name, "[%a_][%w_]*$"))}
    local upvalues = {}
    for i = 1, 255 do
        local own, value = getupvalue(f, i)
        if own == nil then break end
        if own ~= "_ENV" and own ~= "" then
            upvalues[#upvalues + 1] = {own, value}
        end
    end
    sort(upvalues, function(a, b) return a[1] < b[1] end)
    for _, u in ipairs(upvalues) do
        local kind = type(u[2])
        if kind == "number" or kind == "string" or kind == "boolean" then
            parts[#parts + 1] = {name .. "'s " .. u[1], word(u[2])}
        elseif kind == "function" and depth < DEEPEST and
            getinfo(u[2], "S").what ~= "C" then
            add_function(parts, u[2], name .. "'s " .. u[1], depth + 1, seen)
        end
    end
end

-- {hash, parts = {{what, text}, …}} of what measures a spec's points.
function identity.code(spec, version)
    local parts, seen, lines = {{"lumat", version},
        {"version", tostring(spec.version or 1)}}, {}, {}
    for _, name in ipairs{"measure", "setup", "check"} do
        if type(spec[name]) == "function" then
            add_function(parts, spec[name], name, 1, seen)
        end
    end
    for i, part in ipairs(parts) do
        lines[i] = part[1] .. "\n" .. part[2]
    end
    return {hash = journal.hash(concat(lines, "\n")), parts = parts}
end

-- "measure and lumat": what differs between two codes.
function identity.difference(old, new)
    local before, names = {}, {}
    for _, part in ipairs(old) do before[part[1]] = part[2] end
    for _, part in ipairs(new) do
        if before[part[1]] ~= part[2] then
            names[#names + 1] = part[1] == "lumat" and
                (before.lumat and "lumat (" .. before.lumat .. ", now " ..
                    part[2] .. ")" or "lumat") or part[1]
        end
        before[part[1]] = nil
    end
    local gone = {}
    for name in next, before do gone[#gone + 1] = name end
    sort(gone)
    for _, name in ipairs(gone) do names[#names + 1] = name .. " (gone)" end
    return #names > 0 and concat(names, ", ") or "the code"
end

return identity
