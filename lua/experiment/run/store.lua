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
local checks = require "lumat.checks"
local fail, copied, plural = checks.fail, checks.copied, checks.plural
local error, ipairs, pairs, pcall, select, setmetatable, tostring, type = error,
    ipairs, pairs, pcall, select, setmetatable, tostring, type
local sort = table.sort
local larger = math.max
local find, format, gsub, match, sub = string.find, string.format, string.gsub,
    string.match, string.sub
local remove, time = os.remove, os.time
local store = {}
store.__index = store
local FORMAT = 1

-- --- its small files -------------------------------------------------------
-- What they say, or what is wrong with one, where, and how to go on.

-- Pattern of the name, what to do about a damaged one of these.
local remedies = {
    {"^experiment%.json$", 'with {"format":1,"name":"NAME"} in it, NAME ' ..
        "being the experiment's, all is as it was"},
    {"^env%-%d+%.json$", "put a copy of it back, or remove it: where its rows " ..
        "were measured is not known then"},
    {"^code%-", "it can be removed: the rows are in the journals, and a run " ..
        "writes it anew"},
}

local function remedy(path, name)
    local file = match(path, "[^/]*$")
    for _, entry in ipairs(remedies) do
        if find(file, entry[1]) then
            return "; " .. (gsub(entry[2], "NAME", name or "NAME", 1):gsub(
                name and ", NAME being the experiment's" or "$^", ""))
        end
    end
    return ""
end

-- Raises that the file is damaged. name: the experiment's, if it is known.
local function json_refuse(path, why, name)
    fail("experiment", "%s is damaged: %s%s", path, why, remedy(path, name))
end

-- "line 1, byte 17: a string without an end"
local function place_of(text, wrong, at)
    local before = sub(text, 1, at)
    local _, lines = gsub(before, "\n", "")
    if not find(text, "%S") then return "it is empty" end
    if at >= #text then
        return format("it ends in the midst, after %s", plural(#text, "byte"))
    end
    return format("line %d, byte %d: %s", lines + 1,
        #match(before, "[^\n]*$") + 1, wrong)
end

local NOT_THERE, MOST = 2, 1 << 26 -- bytes

-- The table in the file, or nil where there is no such file.
local function json_read(path, name)
    local text, why, code = journal.read_file(path, MOST)
    if not text and code == NOT_THERE then return nil end
    if not text then fail("experiment", "cannot read %s: %s", path, why) end
    local value, wrong, at = journal.decode(text)
    if wrong then
        json_refuse(path, place_of(text, wrong, at), name)
    elseif type(value) ~= "table" then
        json_refuse(path, "it has one value alone", name)
    end
    return value
end

-- --- codes -----------------------------------------------------------------
-- What measured what is in a store, and which of their rows count.

function store:code(hash)
    local known = self.codes[hash]
    if known == nil then
        local name = format("code-%s.json", hash)
        known = self:read(name) or false
        if known and type(known.parts) ~= "table" then
            json_refuse(self.dir .. "/" .. name, "it names no parts")
        end
        self.codes[hash] = known
    end
    return known or {parts = {}}
end

function store:add_code(code, script)
    self.codes[code.hash] = self:found("code-" .. code.hash .. ".json",
        {parts = code.parts, since = time(), script = script})
end

-- The code whose rows a row of this code counts with.
function store:counts_as(code)
    local steps = 0
    while self.keeps[code] and steps < 100 do
        code, steps = self.keeps[code], steps + 1
    end
    return code
end

function store:is_dropped(row)
    local gen = self.drops[row.code]
    return gen ~= nil and (row.gen or 0) < gen
end

-- The codes whose rows count for this one, itself first.
function store:accepted(code)
    local list = {code}
    for old in pairs(self.keeps) do
        if old ~= code and self:counts_as(old) == code then
            list[#list + 1] = old
        end
    end
    sort(list, function(a, b)
        if (a == code) ~= (b == code) then return a == code end
        return a < b
    end)
    return list
end

-- {code = number of rows} of codes that neither count nor are dropped.
function store:stale(code)
    local counts
    for _, row in pairs(self.rows) do
        if self:counts_as(row.code) ~= code and not self:is_dropped(row) then
            counts = counts or {}
            counts[row.code] = (counts[row.code] or 0) + 1
        end
    end
    return counts
end

-- --- journals --------------------------------------------------------------
-- Which rows count, what notes say, what has grown since.

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

-- Titles are numbered: the last one counts, also one that was taken away.
function notes.title(s, note)
    if note.number > s.titles then s.titles, s.title = note.number, note.title end
end

-- Jobs of Slurm are numbered: the last one may be at it.
function notes.slurm(s, note)
    if not s.job or note.number > s.job.number then s.job = note end
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

local function refuse_folder(self, why, is_gone)
    fail("experiment", is_gone and "the run directory %s is gone: %s" or
        "cannot read the run directory %s: %s", self.dir, why)
end

local function read_journal(self, name)
    local path = self.dir .. "/" .. name
    local file = self.files[name]
    local records, at, rest = journal.read(path, file.offset)
    if not records and at then
        fail("experiment", "%s:%d: this line is damaged; a copy of the file " ..
            "as it was is needed, or the file moved away: its points are " ..
            "measured again", path, file.lines + at)
    elseif not records then
        local _, why, is_gone = journal.list(self.dir)
        if is_gone then refuse_folder(self, why, true) end
        fail("experiment", "cannot read %s: %s", path, rest)
    end
    for _, record in ipairs(records) do self:take_in(record) end
    file.offset, file.lines = at, file.lines + #records
    file.rest = rest
end

-- Which of the journals can still grow: those of workers that are there, and
-- notes, whose writers are in no list. The list of the claims is the later one:
-- a worker is in it before it has a journal.
local function end_files(self, names)
    local claims, why, is_gone = journal.list(self.dir .. "/claims")
    if not claims and not is_gone then
        fail("experiment", "cannot read %s/claims: %s", self.dir, why)
    end
    for _, name in ipairs(names) do
        local file = self.files[name] or {offset = 0, lines = 0}
        self.files[name] = file
        local id = match(name, "^j(%-.*)%.jsonl$")
        file.has_ended = not (claims and claims["w" .. id]) and not find(id, "%-notes$")
    end
end

-- Journals that may have more than was read. is_due: every one that can still
-- grow is opened, as its size may be an old one over NFS.
local function grown(self, is_due)
    local list, why, is_gone = journal.list(self.dir)
    if not list then refuse_folder(self, why, is_gone) end
    local names = {}
    for name, size in pairs(list) do
        local file = self.files[name]
        if find(name, "^j%-.*%.jsonl$") and (not file or
            size > file.offset or is_due and not file.has_ended) then
            names[#names + 1] = name
        end
    end
    sort(names)
    end_files(self, names)
    return names
end

-- Takes in what was written since, to the last record where it is due. first:
-- tells torn last lines, of writers that are gone.
function store:refresh(is_due, first)
    for _, name in ipairs(grown(self, is_due)) do
        read_journal(self, name)
        local file = self.files[name]
        if first and file.rest > 0 and file.has_ended then
            self.torn[#self.torn + 1] = name
        end
    end
end

-- --- small files ----------------------------------------------------------

-- The value in a file of the run directory, or nil.
function store:read(name) return json_read(self.dir .. "/" .. name) end

-- Writes it unless somebody did; what is there now.
function store:found(name, value)
    local path = self.dir .. "/" .. name
    local mine, why = journal.found(path, journal.encode(value) .. "\n",
        journal.unique())
    if mine == nil then self:cannot_write(why) end
    return mine and value or json_read(path, value.name), mine
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
    local plan = json_read(dir .. "/experiment.json", name)
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

-- Was a worker's file that does not say whose it is left by a process that was
-- killed before it could? The file's name has it, if it was of this host.
local function is_abandoned(folder, name)
    local host, pid = match(name, "^w%-(.+)%-(%d+)%-%x+$")
    local _, _, _, machine = journal.identity()
    if host ~= match(journal.unique(), "^(.+)%-%d+%-%x+$") or
        journal.is_alive(machine, pid + 0, 0) ~= false then
        return false
    end
    journal.sleep(0.05) -- as another machine of the same name would need
    local text = journal.look(folder .. "/" .. name)
    return text ~= nil and not store.owner(text)
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
            if alive == false or
                text and not owner and is_abandoned(folder, name) then
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
        if row and not self:is_dropped(row) and is_better(row, best) then
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
