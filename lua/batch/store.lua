-- The run directory of an experiment: who measured what, as its journals say.
--   experiment.json   which experiment this is
--   code-HASH.json    the code that measured, and since when
--   env-N.json        where
--   j-HOST-PID-….jsonl  journals: rows of points, and notes
--   claims/           who is at what, while somebody is
-- Numbers that only grow decide what counts, never clocks: a row of generation
-- g is gone once a note drops what came before g + 1; a failed one of round r
-- is done again once a note starts round r + 1.
local journal = require "lumat.journal"
local fail = require("lumat.checks").fail
local ipairs, os, pairs, require, setmetatable = ipairs, os, pairs, require,
    setmetatable
local tostring, type = tostring, type
local sort = table.sort
local find, format, gsub, match = string.find, string.format, string.gsub,
    string.match
local larger = math.max
local open_file, time = io.open, os.time
local store = require "lumat.store_codes"
store.__index = store
local FORMAT = 1

-- --- small files ----------------------------------------------------------

local function read_json(path)
    local file = open_file(path, "rb")
    if not file then return nil end
    local text = file:read("a")
    file:close()
    local value = journal.decode(text)
    if type(value) ~= "table" then
        fail("experiment", "%s is damaged: it is no JSON", path)
    end
    return value
end

store.read_json = read_json

-- Writes it unless somebody did; what is there now.
function store:found(name, value)
    local path = self.dir .. "/" .. name
    local mine, why = journal.found(path, journal.encode(value) .. "\n")
    if mine == nil then self:cannot_write(why) end
    return mine and value or read_json(path), mine
end

function store:cannot_write(why)
    local done = 0
    for _ in pairs(self.rows) do done = done + 1 end
    fail("experiment", "cannot write in %s: %s; the %d points in its " ..
        "journals are safe, and running again goes on from there", self.dir,
        why, done)
end

-- --- opening --------------------------------------------------------------

local function check_plan(dir, plan, name)
    if type(plan.format) ~= "number" or plan.format > FORMAT then
        fail("experiment", "%s is of another version of lumat (%s): its " ..
            "format is %s, this one reads up to %d", dir,
            tostring(plan.lumat), tostring(plan.format), FORMAT)
    elseif name and plan.name ~= name then
        fail("experiment", "%s has the runs of %q, not of %q: another dir = " ..
            "is needed", dir, tostring(plan.name), name)
    end
end

local function new_store(dir)
    return setmetatable({dir = dir, files = {}, rows = {}, codes = {},
        drops = {}, keeps = {}, died = {}, launches = {}, torn = {}, starts = {},
        generation = 0, round = 0, count = 0}, store)
end

-- The run directory that is there.
function store.open(dir, name)
    local plan = read_json(dir .. "/experiment.json")
    if not plan then
        fail("experiment.open", "%s is no run directory: there is no " ..
            "experiment.json in it", dir)
    end
    check_plan(dir, plan, name)
    local s = new_store(dir)
    s.plan = plan
    s:refresh(true)
    return s
end

-- The name of a folder for a run that keeps nothing.
function store.passing()
    local name = os.tmpname()
    os.remove(name)
    return name
end

-- Takes the run directory away, keeping what was read of it.
function store:remove()
    self.environments = require("lumat.environment").list(self)
    for _, folder in ipairs{self.dir .. "/claims", self.dir} do
        for name in pairs(journal.list(folder) or {}) do
            os.remove(folder .. "/" .. name)
        end
        os.remove(folder)
    end
end

function store.exists(dir)
    local file = open_file(dir .. "/experiment.json", "rb")
    if file then file:close() end
    return file ~= nil
end

-- The run directory, made unless it is there.
function store.create(dir, name)
    local ok, why = journal.make_folder(dir .. "/claims")
    if ok then ok, why = journal.is_writable(dir) end
    if ok then ok, why = journal.is_writable(dir .. "/claims") end
    if not ok then
        fail("experiment", "cannot write in %s: %s; dir = names another folder",
            dir, why)
    end
    if not store.exists(dir) then
        for file in pairs(journal.list(dir) or {}) do
            if not find(file, "%.tmp$") and file ~= "experiment.json" then
                fail("experiment", "%s has files, such as %s, and is no run " ..
                    "directory: dir = names a new folder", dir, file)
            end
        end
    end
    local s = new_store(dir)
    s.plan = s:found("experiment.json", {format = FORMAT, name = name,
        lumat = journal.version, created = time()})
    check_plan(dir, s.plan, name)
    s:refresh(true)
    return s
end

-- --- reading --------------------------------------------------------------

local function before(a, b)
    if a.time ~= b.time then return (a.time or 0) < (b.time or 0) end
    return (a.worker or "") < (b.worker or "")
end

-- Of two rows of a key: the later round; the one that is good; the first.
local function is_better(new, old)
    if not old then return true end
    if new.gen ~= old.gen then return (new.gen or 0) > (old.gen or 0) end
    if (new.status == "ok") ~= (old.status == "ok") then
        return new.status == "ok"
    end
    if new.round ~= old.round then return (new.round or 0) > (old.round or 0) end
    return before(new, old)
end

local notes = {}

function notes.drop(s, note)
    s.generation = larger(s.generation, note.gen)
    s.drops[note.code] = larger(s.drops[note.code] or 0, note.gen)
end

function notes.keep(s, note) s.keeps[note.code] = note.as end

function notes.retry(s, note) s.round = larger(s.round, note.round) end

function notes.died(s, note)
    local list = s.died[note.key] or {}
    s.died[note.key] = list
    list[note.worker] = note
end

function notes.start(s, note) s.starts[#s.starts + 1] = note end

function store:take_in(record)
    if type(record) ~= "table" then return end
    if record.note then
        if record.launch then self.launches[record.launch] = true end
        local read = notes[record.note]
        if read then read(self, record) end
    elseif record.key and is_better(record, self.rows[record.key]) then
        if not self.rows[record.key] then self.count = self.count + 1 end
        self.rows[record.key] = record
        self.last = record
        if self.fresh then self.fresh[#self.fresh + 1] = record end
    end
end

function store:read_journal(name)
    local path = self.dir .. "/" .. name
    local file = self.files[name] or {offset = 0, lines = 0}
    self.files[name] = file
    local records, at, rest = journal.read(path, file.offset)
    if not records and at then
        fail("experiment", "%s:%d: this line is damaged; a copy of the file " ..
            "as it was is needed, or the file moved away: its points are " ..
            "measured again", path, file.lines + at)
    elseif not records then
        fail("experiment", "cannot read %s: %s", path, rest)
    end
    for _, record in ipairs(records) do self:take_in(record) end
    file.offset, file.lines = at, file.lines + #records
    file.rest = rest
end

-- Takes in what was written since. first: tells torn last lines, of writers
-- that are gone.
function store:refresh(first)
    local list, why = journal.list(self.dir)
    if not list then
        fail("experiment", "the run directory %s is gone: %s", self.dir, why)
    end
    local names = {}
    for name, size in pairs(list) do
        local file = self.files[name]
        if find(name, "^j%-.*%.jsonl$") and
            (not file or size > file.offset) then
            names[#names + 1] = name
        end
    end
    sort(names)
    for _, name in ipairs(names) do
        self:read_journal(name)
        if first and self.files[name].rest > 0 and not self:is_written(name) then
            self.torn[#self.torn + 1] = name
        end
    end
end

-- --- who is there ---------------------------------------------------------

-- What a worker's file says: host, pid and so on; nil when it is not whole.
function store.owner(text)
    local name, host, pid, start, machine, kills = match(text,
        "^(%S+) (%S+) (%d+) (%d+) (%S+) (%d+)\n")
    if not name then return nil end
    return {name = name, host = host, pid = pid + 0, start = start + 0,
        machine = machine, kills = kills + 0,
        cause = match(text, "\ndied (%C+)")}
end

-- The text of a worker's file.
function store.introduce(name)
    local host, pid, start, machine = journal.identity()
    return format("%s %s %d %d %s %d\n", name, gsub(host, "%s", "_"), pid,
        start, machine, journal.oom_kills())
end

-- Workers that are at it: a list of owners. Files of those that are gone are
-- taken away.
function store:workers()
    local folder, list = self.dir .. "/claims", {}
    for name in pairs(journal.list(folder) or {}) do
        if find(name, "^w%-") then
            local text = journal.look(folder .. "/" .. name)
            local owner = text and store.owner(text)
            local alive = owner and
                journal.is_alive(owner.machine, owner.pid, owner.start)
            if alive == false then
                journal.forget(folder, name)
            elseif owner then
                list[#list + 1] = owner
            end
        end
    end
    return list
end

-- Is the journal one of a worker that is alive?
function store:is_written(journal_name)
    local id = match(journal_name, "^j(%-.*)%.jsonl$")
    return journal.look(self.dir .. "/claims/w" .. id) ~= nil
end

-- The row that counts for a point, keys being its own for each code.
function store:row(keys)
    local best
    for _, key in ipairs(keys) do
        local row = self.rows[key]
        if row and not self:is_dropped(row) and is_better(row, best) then
            best = row
        end
    end
    return best
end

-- --- writing --------------------------------------------------------------

-- A journal of one's own, made with the first record. start: its first note.
function store:begin(id, start)
    self.id, self.start = id, start
end

local function create_writer(self)
    local path = format("%s/j-%s.jsonl", self.dir, self.id)
    local list = journal.list(self.dir)
    if not list then self:cannot_write("the folder was removed") end
    self.writer = journal.create(path)
end

function store:put(record)
    local ok, why, removed = self.writer:append(journal.encode(record))
    if not ok then
        self:cannot_write(removed and "the folder was removed" or why)
    end
end

-- true once the record is on the disk.
function store:append(record)
    if not self.writer then
        create_writer(self)
        self:put(self.start)
    end
    self:put(record)
end

function store:close()
    if self.writer then self.writer:close() end
    self.writer = nil
end
store.__close = store.close

return store
