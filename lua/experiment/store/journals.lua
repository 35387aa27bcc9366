-- Reading the journals of a run directory into its store: which rows count,
-- what notes say, what has grown since.
local journal = require "lumat.journal"
local fail = require("lumat.checks").fail
local ipairs, pairs, type = ipairs, pairs, type
local sort = table.sort
local find, match = string.find, string.match
local larger = math.max
local journals = {}
local methods = {}
journals.methods = methods -- of a store

local function before(a, b)
    if a.time ~= b.time then return (a.time or 0) < (b.time or 0) end
    return (a.worker or "") < (b.worker or "")
end

-- Of two rows of a key: the later round; the one that is good; the first.
function journals.is_better(new, old)
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

function notes.start(s, note) s.starts[#s.starts + 1] = note end

function methods:take_in(record)
    if type(record) ~= "table" then return end
    if record.note then
        if record.launch then self.launches[record.launch] = true end
        local read = notes[record.note]
        if read then read(self, record) end
    elseif record.key and journals.is_better(record, self.rows[record.key]) then
        if not self.rows[record.key] then self.count = self.count + 1 end
        self.rows[record.key] = record
        self.last = record
        if self.fresh then self.fresh[#self.fresh + 1] = record end
    end
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
    if not list then
        fail("experiment", is_gone and "the run directory %s is gone: %s" or
            "cannot read the run directory %s: %s", self.dir, why)
    end
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
function methods:refresh(is_due, first)
    for _, name in ipairs(grown(self, is_due)) do
        read_journal(self, name)
        local file = self.files[name]
        if first and file.rest > 0 and file.has_ended then
            self.torn[#self.torn + 1] = name
        end
    end
end

return journals
