-- load_session: variables from a file, see saved_words.lua.
local checks = require "lumat.checks"
local texts = require "lumat.texts"
local entries = require "lumat.entries"
local parts = require "lumat.parts"
local words = require "lumat.saved_words"
local listing = require "lumat.listing"
local fail, plural, read_word = checks.fail, checks.plural, words.read
local io = io
local ipairs, rawset, setmetatable, tonumber, type = ipairs, rawset,
    setmetatable, tonumber, type
local unpack = table.unpack
local format, gmatch, sub = string.format, string.gmatch, string.sub
local to_integer = math.tointeger

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

checks.add("load_session", "load_session(path)",
    "Brings back what save_session wrote: each variable under its name, on " ..
    "the device it was on where there is one. Variables of other names stay. " ..
    "Nothing is changed when the file cannot be read whole. What it gives " ..
    "shows them.",
    "type(load_session)", "'function'",
    function(path)
        path = words.path("load_session", path)
        local s, locals = read(path), (parts.variables())
        local values = {}
        for i, record in ipairs(s.names) do
            values[i] = read_word(record[3], s.values)
            if values[i] == nil or sub(record[2], 1, 1) ~= "s" then
                damaged(path, record.line)
            end
        end
        for i, record in ipairs(s.names) do
            local name = read_word(record[2], s.values)
            local is_local = record[1] == "l"
            rawset(is_local and locals or _G, name, values[i])
            if is_local or locals[name] == nil then
                entries.set_anew[name] = true
            end
        end
        if s.moved then
            io.stderr:write(texts.visible(format("note: a device of '%s' is " ..
                "not here; its matrices are on %s\n", path, s.moved)))
        end
        local set, count = by_name(s.names, s.values)
        return checks.shown({variables = count, path = path}, listing(set,
            format("loaded %s from %s", plural(count, "variable"), path)))
    end)
