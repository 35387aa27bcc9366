-- load_session: variables from a file, see saved_words.lua.
local library = ...
local checks = require "lumat.checks"
local texts = require "lumat.texts"
local entries = require "lumat.entries"
local parts = require "lumat.parts"
local words = require "lumat.saved_words"
local listing = require "lumat.listing"
local fail, plural, read_word = checks.fail, checks.plural, words.read
local io = io
local ipairs, pairs, rawset, setmetatable, tonumber, type = ipairs, pairs,
    rawset, setmetatable, tonumber, type
local concat, sort, unpack = table.concat, table.sort, table.unpack
local format, gmatch, sub = string.format, string.gmatch, string.sub
local to_integer = math.tointeger

-- Names of Lua's own, which no file sets.
local luas_own = {}
for name in pairs(_G) do luas_own[name] = true end

local readers = {}

local function damaged(path, line, what)
    fail("load_session", "'%s' is no session file of this version: record %d%s",
        path, line, what and ": " .. what or "")
end

local function integers(record, first)
    local list = {}
    for i = first, #record do
        list[#list + 1] = to_integer(tonumber(record[i]))
    end
    return list
end

-- m number part device
function readers.m(s, record)
    if #record ~= 4 then return false end
    local device = s:device(record[4])
    s.values[tonumber(record[2])] = parts.read_matrix(s.archive, record[3],
        device)
end

-- w number owner ndim rows cols row_stride col_stride offset
function readers.w(s, record)
    local numbers = integers(record, 2)
    local owner = s.values[numbers[2]]
    if #numbers ~= 8 or type(owner) ~= "userdata" then return false end
    local view = parts.view(owner, unpack(numbers, 3))
    s.values[numbers[1]] = view
    return view ~= nil
end

-- p number part device dtype rows cols
function readers.p(s, record)
    local sizes = integers(record, 6)
    if #record ~= 7 or #sizes ~= 2 then return false end
    s.values[tonumber(record[2])] = parts.read_sparse(s.archive, record[3],
        s:device(record[4]), record[5], sizes[1], sizes[2])
end

-- t number
function readers.t(s, record)
    s.values[tonumber(record[2])] = s:table(tonumber(record[2]))
end

-- e table key value: a key or value may be a table that comes later.
function readers.e(s, record)
    s.entries[#s.entries + 1] = record
end

function readers.g(s, record) s.names[#s.names + 1] = record end
readers.l = readers.g

local session = {}
session.__index = session

function session:table(id)
    local t = self.values[id] or {}
    self.values[id] = t
    return t
end

function session:device(name)
    local there = parts.usable_device(name)
    if there ~= name then self.moved = there end
    return there
end

function session:fill_tables(path)
    for _, record in ipairs(self.entries) do
        local t = self.values[tonumber(record[2])]
        local key = read_word(record[3], self.values)
        local value = read_word(record[4], self.values)
        if type(t) ~= "table" or key == nil or key ~= key or value == nil then
            damaged(path, record.line)
        end
        t[key] = value
    end
end

local function read(path)
    local archive <close> = parts.open(path)
    local s = setmetatable({archive = archive, values = {}, entries = {},
        names = {}}, session)
    local text, line = parts.read_text(archive, "session.txt"), 0
    for text_line in gmatch(text, "[^\n]+") do
        line = line + 1
        local record = {line = line}
        for word in gmatch(text_line, "[^ ]+") do record[#record + 1] = word end
        if line == 1 then
            if text_line ~= words.header then damaged(path, 1, text_line) end
        else
            local reader = readers[record[1]]
            if not reader or #record < 2 or reader(s, record) == false then
                damaged(path, line)
            end
        end
    end
    s:fill_tables(path)
    return s
end

-- The values by name, and how many names there are.
local function by_name(records, values)
    local set, count = {}, 0
    for _, record in ipairs(records) do
        local name = read_word(record[2], values)
        count = count + (set[name] == nil and 1 or 0)
        set[name] = read_word(record[3], values)
    end
    return set, count
end

-- {"a", "b"} as a set, or nil.
local function wanted_of(names)
    if names == nil then return nil end
    if type(names) ~= "table" then
        fail("load_session", "expected a table of names, not %s",
            checks.brief(names))
    end
    local wanted = {}
    for _, name in ipairs(names) do wanted[name] = true end
    return wanted
end

-- Why the name is not to be set: no file makes Lua or lumat another one.
local function refusal(name, wanted)
    if luas_own[name] or sub(name, 1, 1) == "_" then return "Lua's own" end
    if library[name] ~= nil and not wanted then return "a function of lumat's" end
end

-- All of the file is checked before the first variable is set.
local function chosen(path, s, wanted)
    local list, found, left = {}, {}, {}
    for _, record in ipairs(s.names) do
        local name = read_word(record[2], s.values)
        local value = read_word(record[3], s.values)
        if value == nil or type(name) ~= "string" then
            damaged(path, record.line)
        end
        found[name] = true
        local why = refusal(name, wanted)
        if wanted and not wanted[name] then
            why = nil
        elseif why then
            left[#left + 1] = format("%s (%s)", name, why)
            if not luas_own[name] and library[name] ~= nil then
                left.shadowing = left.shadowing or name
            end
        else
            list[#list + 1] = {record = record, name = name, value = value}
        end
    end
    for name in pairs(wanted or {}) do
        if not found[name] then
            fail("load_session", "there is no %s in '%s'", checks.brief(name),
                path)
        end
    end
    sort(left)
    return list, left
end

checks.add("load_session", "load_session(path [, names])",
    "Brings back what save_session wrote: each variable (or those named in a " ..
    "table) under its name, on the device it was on where there is one. " ..
    "Variables of other names stay, and nothing is changed when the file " ..
    "cannot be read whole. A variable called like a function of lumat's is " ..
    "left out and told of, unless it is named; Lua's own names and such as " ..
    "begin with _ are never set. What it gives shows them.",
    "type(load_session)", "'function'",
    function(path, names)
        path = words.path("load_session", path)
        local wanted = wanted_of(names)
        local s, locals = read(path), (parts.variables())
        local list, left = chosen(path, s, wanted)
        local records = {}
        for i, v in ipairs(list) do
            local is_local = v.record[1] == "l"
            rawset(is_local and locals or _G, v.name, v.value)
            if is_local or locals[v.name] == nil then
                entries.set_anew[v.name] = true
            end
            records[i] = v.record
        end
        if s.moved then
            io.stderr:write(texts.visible(format("note: a device of '%s' is " ..
                "not here; its matrices are on %s\n", path, s.moved)))
        end
        local set, count = by_name(records, s.values)
        local text = format("loaded %s from %s", plural(count, "variable"), path)
        if #left > 0 then
            text = text .. "; left out: " .. concat(left, ", ")
        end
        if left.shadowing then
            text = format("%s; load_session(%q, {%q}) brings %s", text, path,
                left.shadowing, left.shadowing)
        end
        return checks.shown({variables = count, path = path, skipped = left},
            listing(set, text))
    end)
