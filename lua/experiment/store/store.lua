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
local codes, journals = require "lumat.store_codes", require "lumat.journals"
local fields = require "lumat.fields"
local copied, plural = fields.copied, fields.plural
local read_json = require("lumat.json_files").read
local error, ipairs, pairs, pcall = error, ipairs, pairs, pcall
local select, setmetatable = select, setmetatable
local tostring, type = tostring, type
local find, format, gsub, match = string.find, string.format, string.gsub,
    string.match
local larger = math.max
local remove, time = os.remove, os.time
local store = {}
store.__index = store
for _, part in ipairs{journals.methods, codes} do
    for name, method in pairs(part) do store[name] = method end
end
local FORMAT = 1

-- --- small files ----------------------------------------------------------

-- The value in a file of the run directory, or nil.
function store:read(name) return read_json(self.dir .. "/" .. name) end

-- Writes it unless somebody did; what is there now.
function store:found(name, value)
    local path = self.dir .. "/" .. name
    local mine, why = journal.found(path, journal.encode(value) .. "\n",
        journal.unique())
    if mine == nil then self:cannot_write(why) end
    return mine and value or read_json(path, value.name), mine
end

function store:cannot_write(why)
    local done, safe_in = 0, "%s in its journals %s safe, and running " ..
        "again goes on from there"
    local function is_gone(folder)
        return select(3, journal.list(self.dir .. folder))
    end
    if is_gone "" then
        why = "the folder was removed, or moved"
        safe_in = "%s in its journals %s safe if it was moved, and running " ..
            "again goes on from there once it is back"
    elseif is_gone "/claims" then
        why = "the folder claims in it was removed"
    end
    for _ in pairs(self.rows) do done = done + 1 end
    local safe = format(safe_in, plural(done, "point"),
        done == 1 and "is" or "are")
    fail("experiment", "cannot write in %s: %s; %s", self.dir, why,
        done == 0 and "nothing was measured yet" or safe)
end

-- --- opening --------------------------------------------------------------

local function check_plan(dir, plan, name)
    if type(plan.name) ~= "string" or plan.format == nil then
        fail("experiment", "%s is no run directory: its experiment.json is " ..
            "of another program", dir)
    elseif type(plan.format) ~= "number" or plan.format > FORMAT then
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
        generation = 0, round = 0, count = 0, titles = 0}, store)
end

-- The run directory that is there.
function store.open(dir, name)
    local plan = read_json(dir .. "/experiment.json", name)
    if not plan then
        fail("experiment.open", "%s is no run directory: there is no " ..
            "experiment.json in it", dir)
    end
    check_plan(dir, plan, name)
    local s = new_store(dir)
    s.plan = plan
    s:refresh(true, true)
    return s
end

function store.exists(dir)
    return journal.is_there(dir .. "/experiment.json")
end

-- A folder that has files, and is no run directory, is somebody else's. The
-- list comes first: experiment.json is there before the other files.
local function check_folder(dir)
    local files = journal.list(dir) or {}
    if store.exists(dir) then return end
    for file in pairs(files) do
        if not find(file, "%.tmp$") and file ~= "experiment.json" then
            fail("experiment", "%s has files, such as %s, and is no run " ..
                "directory: dir = names a new folder", dir, file)
        end
    end
end

-- The run directory, made unless it is there.
function store.create(dir, name)
    check_folder(dir)
    local ok, why = journal.make_folder(dir .. "/claims")
    if ok then ok, why = journal.is_writable(dir) end
    if ok then ok, why = journal.is_writable(dir .. "/claims") end
    if not ok then
        fail("experiment", "cannot write in %s: %s; dir = names another folder",
            dir, why)
    end
    local s = new_store(dir)
    s.plan = s:found("experiment.json", {format = FORMAT, name = name,
        lumat = journal.version, created = time()})
    check_plan(dir, s.plan, name)
    s:refresh(true, true)
    return s
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

-- The names of its files.
function store:names()
    return journal.list(self.dir) or {}
end

-- Joins those who measure: what claims are taken with. lease: seconds.
function store:join(name, lease)
    return journal.join(self.dir .. "/claims", name, store.introduce(name),
        lease)
end

-- The row that counts for a point, keys being its own for each code.
function store:row(keys)
    local best
    for _, key in ipairs(keys) do
        local row = self.rows[key]
        if row and not self:is_dropped(row) and journals.is_better(row, best) then
            best = row
        end
    end
    return best
end

-- --- writing --------------------------------------------------------------

-- A journal of one's own, made with the first record. start: its first note,
-- which gets the number of starts that were before it.
function store:begin(id, start)
    self.id, self.start = id, start
    start.number = 0
    for _, other in ipairs(self.starts) do
        start.number = larger(start.number, (other.number or 0) + 1)
    end
end

local function create_writer(self)
    local path = format("%s/j-%s.jsonl", self.dir, self.id)
    local list, why = journal.list(self.dir)
    local writer
    if list then writer, why = journal.create(path) end
    if not writer then self:cannot_write(why) end
    self.writer = writer
    local ok, problem = pcall(self.put, self, journal.encode(self.start))
    if ok then return end
    remove(path) -- there is nothing in it
    error(problem, 0)
end

function store:put(text)
    local ok, why, removed = self.writer:append(text)
    if not ok then
        self:cannot_write(removed and "the folder was removed" or why)
    end
end

-- true once the record is on the disk. may, if given, is asked when all that is
-- left is writing it; false where it says no.
function store:append(record, may)
    if not self.writer then create_writer(self) end
    local text = journal.encode(record)
    if may and not may() then return false end
    self:put(text)
    return true
end

function store:close()
    if self.writer then self.writer:close() end
    self.writer = nil
end
store.__close = store.close

-- --- a run that keeps nothing ---------------------------------------------

-- The same in memory, for one process: there is nobody to claim a point from,
-- and nothing to be written.
local passing = setmetatable({}, {__index = store})
passing.__index = passing

function store.passing()
    local s = new_store(nil)
    s.kept = {} -- what would be files
    return setmetatable(s, passing)
end

function passing:read(name) return self.kept[name] end

function passing:found(name, value)
    local is_new = self.kept[name] == nil
    if is_new then self.kept[name] = value end
    return self.kept[name], is_new
end

function passing:names() return self.kept end
function passing:workers() return {} end
function passing:join() return nil end
function passing:refresh() end
function passing:close() end
passing.__close = passing.close

-- A row has its own parameters, as one that was written and read has.
function passing:append(record)
    record.p = record.p and copied(record.p)
    self:take_in(record)
    return true
end

return store
