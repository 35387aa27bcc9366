-- load_session: variables from a file, whose form session_save.lua tells.
local library = ...
local checks = require "lumat.checks"
local texts = require "lumat.texts"
local entries = require "lumat.entries"
local kept = require "lumat.kept"
local parts = require "lumat.parts"
local words = require "lumat.session_save".words
local listing = require "lumat.variables_report".listing
local fail, plural = checks.fail, checks.plural
local io = io
local error, ipairs, next, pairs, pcall = error, ipairs, next, pairs, pcall
local rawset, setmetatable, tonumber, type = rawset, setmetatable, tonumber,
    type
local concat, sort, unpack = table.concat, table.sort, table.unpack
local byte, find, format, gmatch, match, sub = string.byte, string.find,
    string.format, string.gmatch, string.match, string.sub
local to_integer = math.tointeger
local ENTRY, GLOBAL, LOCAL, NEWLINE = byte("egl\n", 1, 4)
local MOST_WORDS = 8

local luas_own = checks.luas_own -- names that no file sets

-- line 0: of no record alone.
local function damaged(path, line, what)
    fail("load_session", "'%s' is no session file of this version: %s%s", path,
        line > 0 and format("record %d", line) or "", what and
        (line > 0 and ": " or "") .. what or "")
end

-- Readers of what has a number, by the first letter of their records: each
-- takes the words behind it and gives the value.
local readers = {}

local function integers(record, first)
    local list = {}
    for i = first, #record do
        list[#list + 1] = to_integer(tonumber(record[i]))
    end
    return list
end

-- m number part device
function readers.m(s, record)
    return #record == 3 and s:takes(record[2]) and
        parts.read_matrix(s.archive, record[2], s:device(record[3]))
end

-- w number owner ndim rows cols row_stride col_stride offset
function readers.w(s, record)
    local numbers = integers(record, 1)
    local owner = s.values[numbers[2]]
    return #numbers == 8 and type(owner) == "userdata" and
        parts.view(owner, unpack(numbers, 3))
end

-- p number part device dtype rows cols
function readers.p(s, record)
    local sizes = integers(record, 5)
    return #record == 6 and #sizes == 2 and s:takes(record[2]) and
        parts.read_sparse(s.archive, record[2], s:device(record[3]), record[4],
            sizes[1], sizes[2], s.trusted)
end

-- f number kind matrix full pivots [second matrix]
function readers.f(s, record)
    local make = require "lumat.factors".maker(record[2])
    local A = s.values[to_integer(tonumber(record[3]))]
    local B = record[6] and s.values[to_integer(tonumber(record[6]))]
    local ok, F = false, nil
    if (#record == 5 or #record == 6 and type(B) == "userdata") and make and
        type(A) == "userdata" then
        ok, F = pcall(make, A, {full = record[4] == "true",
            pivots = record[5] == "true"}, B)
        if not ok and checks.is_interrupt(F) then error(F, 0) end
    end
    return ok and F
end

-- d number table kind: a frame, a column of one or another object, which is
-- made of the table's entries when these are read.
function readers.d(s, record)
    local parts_at = to_integer(tonumber(record[2]))
    if #record ~= 3 or not parts_at then return false end
    local kind, list = record[3], s.frames
    local value
    if kept.is_kind(kind) then
        value, list = {}, s.objects
    else
        value = require "lumat.frames".blank(kind)
    end
    list[#list + 1] = {value, parts_at, kind}
    return value
end

-- t number
function readers.t(_, record) return #record == 1 and {} end

local session = {}
session.__index = session

-- A part is one value's: no part is read twice.
function session:takes(part)
    local is_first = not self.taken[part]
    self.taken[part] = true
    return is_first
end

function session:device(name)
    local there = parts.usable_device(name)
    if there ~= name then self.moved = there end
    return there
end

-- The record at a place of the text defines a value; where the next one is.
function session:define(path, line, from)
    local kind, words_of, last = match(self.text, "^(%a) ([^\n]+)\n?()", from)
    local record, reader = {}, readers[kind]
    for word in gmatch(words_of or "", "[^ ]+") do
        record[#record + 1] = word
        if #record > MOST_WORDS then break end
    end
    local number = to_integer(tonumber(record[1]))
    if not reader or not number or self.values[number] ~= nil then
        damaged(path, line)
    end
    local value = reader(self, record)
    if not value then damaged(path, line) end
    self.values[number] = value
    return last
end

-- e table key value: a key or value may be a table that comes later.
function session:fill(path, line, from)
    return parts.fill(self.text, from, self.values) or damaged(path, line)
end

-- g name value, and l, a local of the prompt's
function session:name(path, line, from, is_local)
    local set = is_local and self.locals or self.globals
    local last, name, value = parts.name(self.text, from, self.values)
    if not last or set[name] ~= nil then damaged(path, line) end
    set[name] = value
    return last
end

-- Goes through the records: first those that define values, of which the
-- others speak. None becomes a table of its own: there may be millions.
function session:go_through(path, defines)
    local text, line = self.text, 1
    local from = find(text, "\n[^\n]")
    from = from and from + 1
    while from do
        local kind, last = byte(text, from)
        local defined = kind ~= ENTRY and kind ~= GLOBAL and kind ~= LOCAL
        line = line + 1
        if defined ~= defines then
            last = (find(text, "\n", from, true) or #text) + 1
        elseif defined then
            last = self:define(path, line, from)
        elseif kind == ENTRY then
            last = self:fill(path, line, from)
        else
            last = self:name(path, line, from, kind == LOCAL)
        end
        if last <= #text and byte(text, last - 1) ~= NEWLINE then
            damaged(path, line)
        end
        from = find(text, "[^\n]", last)
    end
end

-- Columns first, as frames look at them.
function session:fill_frames(path)
    for pass = 1, 2 do
        for _, f in ipairs(self.frames) do
            local value, parts_at, kind = unpack(f)
            local is_frame = kind == "frame"
            if is_frame == (pass == 2) and not require "lumat.frames".fill(
                value, self.values[parts_at]) then
                damaged(path, 0, "a " .. kind .. " that is none")
            end
        end
    end
end

-- When frames are what they are, as some objects look at them.
function session:make_objects(path)
    for _, o in ipairs(self.objects) do
        local value, parts_at, kind = unpack(o)
        local fields = self.values[parts_at]
        local ok, message = pcall(kept.make, value, kind, fields)
        if not ok and checks.is_interrupt(message) then error(message, 0) end
        if not ok then damaged(path, 0, "a " .. kind .. " that is none") end
    end
end

local function read(path, trusted)
    local archive <close> = parts.open(path)
    local s = setmetatable({archive = archive, values = {}, globals = {},
        locals = {}, frames = {}, objects = {}, taken = {["session.txt"] = true},
        trusted = trusted}, session)
    s.text = parts.read_text(archive, "session.txt")
    local first = match(s.text, "^[^\n]*")
    if first ~= words.header then damaged(path, 1, sub(first, 1, 100)) end
    s:go_through(path, true)
    s:go_through(path, false)
    s:fill_frames(path)
    s:make_objects(path)
    return s
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

-- Takes what is not to be set out of the names; which they are.
local function leave_out(set, wanted, left)
    for name in next, set do
        local why = refusal(name, wanted)
        if wanted and not wanted[name] then
            set[name] = nil
        elseif why then
            set[name] = nil
            left[#left + 1] = format("%s (%s)", name, why)
            if not luas_own[name] and library[name] ~= nil then
                local other = left.shadowing
                left.shadowing = other and other < name and other or name
            end
        end
    end
end

-- All of the file is checked before the first variable is set.
local function choose(path, s, wanted)
    local left = {}
    for name in pairs(wanted or {}) do
        if s.globals[name] == nil and s.locals[name] == nil then
            fail("load_session", "there is no %s in '%s'", checks.brief(name),
                path)
        end
    end
    leave_out(s.globals, wanted, left)
    leave_out(s.locals, wanted, left)
    sort(left)
    return left
end

row{
    name = "load_session",
    takes = "path: session [, names: table]",
    gives = "table",
    group = "sessions",
    help = "Brings back what save_session wrote: each variable (or those named " ..
        "in a table) under its name, on the device it was on where there is " ..
        "one. Variables of other names stay, and nothing is changed when " ..
        "the file cannot be read whole. A variable called like a function " ..
        "of lumat's is left out and told of, unless it is named; Lua's own " ..
        "names and such as begin with _ are never set. What it gives shows " ..
        "them.",
    example = "type(load_session)",
    result = "'function'",
}
local function load_session(path, names)
    path = words.path("load_session", path)
    local wanted = wanted_of(names)
    local s, locals = read(path, wanted ~= nil), parts.locals()
    local left, set, count = choose(path, s, wanted), s.locals, 0
    for name, value in next, s.locals do
        rawset(locals, name, value)
        entries.set_anew[name] = true
    end
    for name, value in next, s.globals do
        rawset(_G, name, value)
        if locals[name] == nil then entries.set_anew[name] = true end
        if set[name] == nil then set[name] = value end
    end
    for _ in next, set do count = count + 1 end
    if s.moved then
        io.stderr:write(texts.visible(format("note: a device of '%s' is " ..
            "not here; its matrices are on %s\n", path, s.moved)))
    end
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
end

return {load_session = load_session}
