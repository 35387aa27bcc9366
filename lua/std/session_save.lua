-- save_session: variables to a file, a zip archive. Each matrix is a part
-- NAME.npy, and "session.txt" tells, one record a line, which parts, views and
-- tables there are and what names have them; its words are here for
-- session_load.lua, too.
local library, _, _, private = ...
local checks = require "lumat.checks"
local kept = require "lumat.kept"
local parts = require "lumat.parts"
local texts = require "lumat.texts"
local visible = texts.visible
local loaded = package.loaded
local plural = checks.plural
local fail = checks.fail
local getmetatable, ipairs, next, pairs = getmetatable, ipairs, next, pairs
local error, pcall = error, pcall
local setmetatable, tostring, type = setmetatable, tostring, type
local concat, sort, unpack = table.concat, table.sort, table.unpack
local byte, find, format, gsub, match, sub = string.byte, string.find,
    string.format, string.gsub, string.match, string.sub
local math_type, huge = math.type, math.huge
local LISTED = 8

-- --- the words of a record, and the file's name -------------------------------
-- session_archive.c reads the words.

local words = {header = "lumat session 1"}

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
        fail(who, "needs a file's name, such as \"work.lum\"")
    elseif find(path, "\0", 1, true) then
        fail(who, "the path has a zero byte in it")
    end
    path = texts.path(path)
    local ending = match(path, "%.(%w+)$")
    if ending and ending ~= "lum" then
        fail(who, "'%s' does not end in .lum; %s", path,
            who == "save_session" and
            "save(A, \"f.npy\") is for one matrix" or
            "load \"f.npy\" reads one matrix")
    end
    return ending and path or path .. ".lum"
end

-- --- what there is to save ----------------------------------------------------

-- A saver goes through values, numbering each matrix and table once.
local saver = {}
saver.__index = saver

local function new_saver()
    return setmetatable({ids = {}, tables = {}, owners = {}, others = {},
        factorisations = {}, frames = {},
        taken = {["session.txt"] = true}, records = {}, skipped = {}, lost = {}, count = 0,
        modules = {}}, saver)
end

function saver:record(...)
    self.records[#self.records + 1] = concat({...}, " ")
end

-- What has no state to lose, as functions, nobody has to be warned of.
function saver:skip(place, what, is_code)
    local text = format("%s (%s)", place, what)
    self.skipped[#self.skipped + 1] = text
    if not is_code then self.lost[#self.lost + 1] = text end
end

function saver:number(value)
    self.count = self.count + 1
    self.ids[value] = self.count
    return self.count
end

-- A part's name after the place of its value: "A.npy", "net.weights.npy".
function saver:part_name(place, ending)
    local base = gsub(sub(place, 1, 100), "[^%w_.-]", "_")
    local name, n = base .. ending, 1
    while self.taken[name] do
        n = n + 1
        name = format("%s-%d%s", base, n, ending)
    end
    self.taken[name] = true
    return name
end

-- Is what it is not in its entries?
local function is_closed(value)
    local meta = getmetatable(value)
    return meta ~= nil and type(meta) ~= "table" and next(value) == nil
end

-- Is value one that an entry or a name can have? Matrices are noted for
-- later: which of them are views is known when all are.
function saver:accepts(value, place)
    local kind = type(value)
    if kind == "boolean" or kind == "number" or kind == "string" or
        checks.kind(value) == "complex number" then
        return true
    elseif self.ids[value] then
        return true
    elseif kind == "table" and getmetatable(value) == "factorisation" then
        local recipe = require "lumat.factors".recipe(value)
        if not self:accepts(recipe.matrix, place) or
            recipe.second and not self:accepts(recipe.second, place) then
            return false
        end
        recipe.id = self:number(value)
        self.factorisations[#self.factorisations + 1] = recipe
        return true
    elseif kind == "table" and loaded["lumat.frames"] and
        loaded["lumat.frames"].parts_of(value) then
        return self:accepts_frame(value, place)
    elseif kind == "table" and kept.kind(value) then
        return self:accepts_object(value, place)
    elseif kind == "table" and getmetatable(value) == "distributed matrix" then
        self:skip(place, "a distributed matrix; D:save(\"D.npy\") keeps it")
        return false
    elseif kind == "table" and is_closed(value) then
        self:skip(place, "an object: " .. tostring(getmetatable(value)))
        return false
    elseif kind == "table" and not self.modules[value] then
        self.tables[#self.tables + 1] = {value, place}
        self:number(value)
        return true
    end
    local matrix, alive, complete, near, lost = parts.kind(value)
    if self.rescues and alive and not (complete and (near or self.whole)) then
        self.far = self.far or complete
        self:skip(place, complete and "on " .. value.device or
            "a matrix that is incomplete")
        return false
    elseif matrix and alive then
        local list = matrix == "matrix" and self.owners or self.others
        list[#list + 1] = {value, place}
        self:number(value)
        return true
    end
    self:skip(place, lost and "a matrix that was lost" or
        matrix and "a matrix that is gone" or
        kind == "table" and "a module" or
        "a " .. checks.kind(value), kind == "function" or kind == "table")
    return false
end

-- All that is in a table, and in tables in it?
function saver:accepts_all(t, place)
    for name, value in next, t do
        local where = place .. "." .. tostring(name)
        if type(value) == "table" and getmetatable(value) == nil then
            if not self:accepts_all(value, where) then return false end
        elseif not self:accepts(value, where) then
            return false
        end
    end
    return true
end

-- Of an object that is made again of a table.
function saver:accepts_object(value, place)
    local kind = kept.kind(value)
    local fields, needed = kept.parts_of(value, self.rescues)
    if not fields then
        self:skip(place, "a " .. kind .. ", which a program that goes on keeps")
        return false
    elseif not self:accepts_all(needed, place) then
        return false
    end
    local number = self:number(value) -- it may be in itself
    self:accepts(fields, place)
    self.frames[#self.frames + 1] = {number, self.ids[fields], kind}
    return true
end

-- Of a frame, or a column of text or dates: what it consists of is a table.
function saver:accepts_frame(value, place)
    local fields, values, kind = loaded["lumat.frames"].parts_of(value)
    for name, part in next, values do
        if not self:accepts(part, place .. "." .. name) then return false end
    end
    self:accepts(fields, place)
    self.frames[#self.frames + 1] = {self:number(value), self.ids[fields], kind}
    return true
end

function saver:word(value)
    local kind = type(value)
    if kind == "boolean" then return tostring(value) end
    if kind == "number" then return words.number(value) end
    if kind == "string" then return "s" .. words.escape(value) end
    if checks.kind(value) == "complex number" then
        return format("c%s,%s", sub(words.number(value.real), 2),
            sub(words.number(value.imag), 2))
    end
    return "v" .. self.ids[value]
end

-- What a table's entries add to the place of the table.
local function place_of(place, key)
    if type(key) == "string" and find(key, "^[%a_][%w_]*$") then
        return place .. "." .. key
    end
    return format("%s[%s]", place,
        type(key) == "string" and format("%q", key) or tostring(key))
end

-- Goes through the tables found; more may come to light on the way.
function saver:walk()
    local entries, i = {}, 1
    while self.tables[i] do
        local t, place = self.tables[i][1], self.tables[i][2]
        local id = self.ids[t]
        entries[#entries + 1] = {"t", id}
        if getmetatable(t) ~= nil then
            self:skip(place .. "'s metatable", "the entries are saved")
        end
        for key, value in next, t do
            local where = place_of(place, key)
            if self:accepts(key, where) and self:accepts(value, where) then
                entries[#entries + 1] = {"e", id, key, value}
            end
        end
        i = i + 1
    end
    for _, e in ipairs(entries) do
        if e[1] == "t" then
            self:record("t", e[2])
        else
            self:record("e", e[2], self:word(e[3]), self:word(e[4]))
        end
    end
end

-- --- writing -----------------------------------------------------------------

-- Matrices without gaps first, the largest before its parts, so that a view
-- finds its owner written.
local function by_size(a, b)
    local x, y = a[1], b[1]
    if x.rows * x.cols ~= y.rows * y.cols then
        return x.rows * x.cols > y.rows * y.cols
    end
    return a[2] < b[2]
end

-- Of owners that share A's storage.
function saver:write_view(A, owners)
    for _, owner in ipairs(owners) do
        local numbers = {parts.view_of(owner, A)}
        if #numbers > 0 then
            self:record("w", self.ids[A], self.ids[owner], unpack(numbers))
            return true
        end
    end
end

function saver:write_matrices(archive)
    local written = {}
    sort(self.owners, by_size)
    for _, item in ipairs(self.owners) do
        local A, place = item[1], item[2]
        local storage = parts.storage_of(A)
        local owners = written[storage] or {}
        written[storage] = owners
        if not self:write_view(A, owners) then
            local name = self:part_name(place, ".npy")
            parts.write_matrix(archive, name, A)
            self:record("m", self.ids[A], name, A.device)
            owners[#owners + 1] = A
        end
    end
    for _, item in ipairs(self.others) do
        local S = item[1]
        local name = self:part_name(item[2], ".entries")
        parts.write_sparse(archive, name, S)
        self:record("p", self.ids[S], name, S.device, S.dtype, S.rows, S.cols)
    end
    -- of a factorisation what it is of: it is worked out again when it is read
    for _, r in ipairs(self.factorisations) do
        self:record("f", r.id, r.kind, self.ids[r.matrix],
            tostring(r.full or false), tostring(r.pivots or false),
            r.second and self.ids[r.second])
    end
    for _, f in ipairs(self.frames) do self:record("d", unpack(f)) end
end

-- The user's variables: names and values, sorted, locals under "l". A name
-- that was asked for is the local of that name, if there is one; `ans` has to
-- be asked for.
local function gather(wanted)
    local list, found = {}, {}
    for _, variable in ipairs(parts.variables()) do
        local name = variable[2]
        if not wanted and name ~= "ans" or
            wanted and wanted[name] and not found[name] then
            list[#list + 1] = variable
            found[name] = true
        end
    end
    for name in pairs(wanted or {}) do
        if not found[name] then
            fail("save_session", "there is no variable %s", name)
        end
    end
    sort(list, function(a, b)
        if a[2] ~= b[2] then return a[2] < b[2] end
        return a[1] < b[1]
    end)
    return list
end

local function listed(names)
    local text = concat(names, ", ", 1, #names < LISTED and #names or LISTED)
    return #names <= LISTED and text or
        format("%s and %d more", text, #names - LISTED)
end

local function wanted_names(names)
    if names == nil then return nil end
    if type(names) == "string" then names = {names} end
    if type(names) ~= "table" then
        fail("save_session", "the names are %s, expected a table of strings",
            checks.brief(names))
    end
    local wanted = {}
    for _, name in ipairs(names) do
        if type(name) ~= "string" then
            fail("save_session", "a name is %s, expected a string",
                checks.brief(name))
        end
        wanted[name] = true
    end
    return wanted
end

-- Tables were walked before the matrices were written, since they hold some;
-- what was noted of them follows here.
function saver:walk_records(variables)
    for _, line in ipairs(self.late) do
        self.records[#self.records + 1] = line
    end
    for _, v in ipairs(variables) do
        self:record(v[1], self:word(v[2]), self:word(v[3]))
    end
end

local function write(path, s, variables)
    local archive <close> = parts.create(path)
    s:write_matrices(archive)
    s:walk_records(variables)
    parts.write_text(archive, "session.txt",
        words.header .. "\n" .. concat(s.records, "\n") .. "\n")
    parts.commit(archive)
end

-- Saves what the saver can of the variables; returns what there is to say.
local function save(s, path, names)
    local kept = {}
    for name, module in pairs(loaded) do
        s.modules[module] = true
    end
    s.modules[_G] = true
    for _, v in ipairs(gather(names)) do
        if s:accepts(v[3], v[2]) then kept[#kept + 1] = v end
    end
    s:walk()
    s.late, s.records = s.records, {}
    write(path, s, kept)
    local text = format("saved %s in %s", plural(#kept, "variable"), path)
    if #s.skipped > 0 then
        text = text .. "; left out: " .. listed(s.skipped)
    end
    return text, #kept
end

-- What a program that cannot go on leaves behind, in the first of the paths
-- that can be written: what is whole and, unless all is asked for, what is in
-- the host's memory. Returns what there is to say, for a terminal, and whether
-- that was all.
function private.rescue(whole, ...)
    local ok, text
    for _, path in ipairs{...} do
        local s = new_saver()
        s.rescues, s.whole = true, whole
        ok, text = pcall(save, s, path)
        text = visible(checks.without_place(text))
        if ok then return text, not s.far end
    end
    error(text, 0)
end

row{
    name = "save_session",
    takes = "path: session [, names: table]",
    gives = "table",
    group = "sessions",
    help = "Saves your variables (or those named in a table): matrices of " ..
        "every kind, numbers, strings, booleans, frames, factorisations, " ..
        "groups, charts and reports, and tables of these, also " ..
        "such as share or contain each other; views stay views. Functions " ..
        "and other objects are left out and named; a program is warned of " ..
        "objects. The file is replaced whole or, when " ..
        "stopped, stays as it was. At the prompt :save work.lum; numpy.load " ..
        "opens it too.",
    example = "type(save_session)",
    result = "'function'",
}
-- is_told: who calls shows what it says.
local function save_session(path, names, is_told)
    path = words.path("save_session", path)
    local s = new_saver()
    local text, count = save(s, path, wanted_names(names))
    local lost = names and s.skipped or s.lost
    if #lost > 0 and not is_told then
        private.warn_once("save_session", "left out: " .. listed(lost))
    end
    return checks.shown({variables = count, path = path, skipped = s.skipped},
        text)
end

return {save_session = save_session, words = words}
