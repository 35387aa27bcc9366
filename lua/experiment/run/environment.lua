-- Where measurements are made: device, driver, clocks, threads, versions; and
-- what differs between the places of two rows.
local library = ...
local checks = require "lumat.checks"
local journal = require "lumat.journal"
local fail, plural = checks.fail, checks.plural
local ipairs, next, pairs, tonumber, tostring = ipairs, next, pairs, tonumber,
    tostring
local concat, insert = table.concat, table.insert
local larger, to_integer = math.max, math.tointeger
local format, match = string.format, string.match
local getenv = os.getenv
local open, popen = io.open, io.popen
local environment, origins = {}, {}

local function first_line(path)
    local file = open(path, "rb")
    if not file then return nil end
    local line = file:read("l")
    file:close()
    return line
end

-- The first line another program prints; nothing with --safe.
local function ask(command)
    if journal.is_safe() then return nil end
    local pipe = popen("timeout 5 " .. command .. " 2>/dev/null </dev/null")
    local line = pipe and pipe:read("l")
    if pipe then pipe:close() end
    return line ~= "" and line or nil
end

local function cpu_name()
    local file = open("/proc/cpuinfo", "rb")
    local text = file and file:read(8192) or ""
    if file then file:close() end
    return match(text, "model name%s*:%s*(%C+)") or
        match(text, "Model%s*:%s*(%C+)") or "unknown"
end

-- Those of this process, of which the CPU's kernels take as many as they can.
function environment.threads()
    return tonumber(getenv("OMP_NUM_THREADS") or "") or journal.cores()
end

-- Driver and clocks of a GPU, as nvidia-smi tells them.
local function gpu_facts(device)
    local line = ask("nvidia-smi -i " .. (match(device, "%d+") or "0") ..
        " --query-gpu=driver_version,clocks.max.sm,clocks.max.mem " ..
        "--format=csv,noheader,nounits")
    local driver, sm, memory = match(line or "", "^([^,]+), ([^,]+), ([^,]+)$")
    return driver, sm and format("%s MHz, memory %s MHz", sm, memory)
end

local function cpu_clock()
    local khz = tonumber(first_line(
        "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq") or "")
    return khz and format("%.0f MHz", khz / 1000)
end

-- device: else the default one. threads: else those of this process.
function environment.gather(given)
    local name, description = library.device()
    if given and given.device then name = given.device end
    local is_cpu = name == "cpu"
    local e = {host = journal.identity(), lumat = journal.version,
        lua = match(_VERSION, "%S+$"), cpu = cpu_name(),
        threads = given and given.threads or environment.threads(),
        device = is_cpu and "cpu" or match(name, "^%a+"),
        description = is_cpu and cpu_name() or description,
        os = first_line("/proc/sys/kernel/osrelease"),
        git = ask("git describe --always --dirty --abbrev=12")}
    if is_cpu then
        e.clocks = cpu_clock()
    else
        e.driver, e.clocks = gpu_facts(name)
    end
    return e
end

-- What must be the same for times to be compared.
local binding = {"device", "description", "driver", "clocks", "cpu", "threads",
    "lumat"}

local function differences(old, new)
    local list = {}
    for _, name in ipairs(binding) do
        if old[name] ~= new[name] then
            list[#list + 1] = format("%s was %s, is %s", name,
                tostring(old[name] or "unknown"),
                tostring(new[name] or "unknown"))
        end
    end
    return list
end
environment.differences = differences

-- --- those of a run directory -----------------------------------------------

local function name_of(number) return format("env-%d.json", number) end

-- By number; {} for one whose file is gone, of which nothing is known. Files
-- that a list of the folder does not have yet, over NFS, come at its end.
local function read_all(store)
    local list, last = {}, 0
    for name in pairs(store:names()) do
        local number = match(name, "^env%-(%d+)%.json$")
        last = larger(last, to_integer(tonumber(number)) or 0)
    end
    for i = 1, last do list[i] = store:read(name_of(i)) or {} end
    local more
    repeat
        more = store:read(name_of(#list + 1))
        list[#list + 1] = more
    until not more
    return list
end

-- The environments that rows name by number.
function environment.list(store)
    if store.environments then return store.environments end
    local list = read_all(store)
    for _, e in ipairs(list) do e.generation = nil end
    return list
end

-- A set of the numbers that a row has to be measured like, and how many rows
-- say so. Where none is there yet, who began the run decides.
local function binding_ones(store, list)
    local set, rows, last = {}, 0, list[#list]
    for _, row in pairs(store.rows) do
        if row.env and not store:is_dropped(row) then
            set[row.env], rows = true, rows + 1
            for i = #list + 1, row.env do list[i] = {} end -- its file is gone
        end
    end
    if rows == 0 and last and (last.generation or 0) == store.generation then
        set[#list] = true
    end
    return set, rows
end

-- The one of the set that differs least, and in what.
local function nearest(list, set, here)
    local near, least
    for i = 1, #list do
        local found = set[i] and differences(list[i], here)
        if found and (not near or #found < #least) then near, least = i, found end
    end
    return near, least
end

-- The number of the very same, of the same commit, too.
local function find_same(list, here)
    for i, e in ipairs(list) do
        if #differences(e, here) == 0 and e.git == here.git then return i end
    end
end

-- --- the one of a run -------------------------------------------------------

-- "4 points in runs/a were measured with 2 threads, this run has 1"
local function said(store, rows, old, here, workers, found)
    local where = rows > 0 and format("%s in %s %s measured", plural(rows,
        "point"), store.dir, rows == 1 and "was" or "were") or
        format("the run in %s began", store.dir)
    if #found == 1 and old.threads and old.threads ~= here.threads then
        return format("%s with %s, this run has %d%s", where,
            plural(old.threads, "thread"), here.threads, workers and
            format(" in each of %s", plural(workers, "worker")) or "")
    end
    return format("%s elsewhere (%s)", where, next(old) and
        concat(found, "; ") or "its env-N.json, which said where, is gone")
end

local function refuse(store, rows, old, here, workers, found)
    local ways = {"run{mix = true} adds rows that say where they are from",
        rows > 0 and "run{resume = false} measures all anew" or
            "run{resume = false} begins anew, and nothing is lost",
        "another dir = keeps the runs apart"}
    if old.threads and old.threads ~= here.threads then
        insert(ways, 1, format("run{threads = %d} takes as many", old.threads))
        if workers and old.threads == environment.threads() then
            insert(ways, 1, "without workers it goes on")
        end
    end
    fail("run", "%s: such times cannot be compared. %s",
        said(store, rows, old, here, workers, found), concat(ways, "; "))
end

-- The number of this environment in the run directory, recording it where it
-- is the first, or another commit of the same, or may be mixed with others.
-- workers: how many share the machine, if not this process alone measures.
-- Second result: what to say about it.
function environment.number(store, here, mix, workers)
    here.generation = store.generation > 0 and store.generation or nil
    while true do
        local list = read_all(store)
        local set, rows = binding_ones(store, list)
        local near, found = nearest(list, set, here)
        if near and #found > 0 and not mix then
            refuse(store, rows, list[near], here, workers, found)
        end
        local same = near and find_same(list, here)
        if same then return same end
        local _, mine = store:found(name_of(#list + 1), here)
        if mine then
            return #list + 1, near and #found == 0 and format("the working " ..
                "folder is at %s, earlier rows are of %s", tostring(here.git),
                tostring(list[near].git))
        end
    end
end

-- --- where rows come from --------------------------------------------------

-- The environment of a row, where its run recorded one.
local function environment_of(source, row)
    return source.environments and source.environments[row.env]
end

-- What differs between the places of two rows, as lines of text.
function origins.differences(old, a, new, b)
    local before, after = environment_of(old, a), environment_of(new, b)
    local list = {}
    if before and after then
        list = environment.differences(before, after)
    elseif before or after then
        list[1] = format("where the rows %s were measured is not known",
            before and "after" or "before")
    end
    for _, name in ipairs{"device", "cold"} do
        if a[name] ~= b[name] and a.device and b.device then
            list[#list + 1] = format("%s was %s, is %s", name,
                tostring(a[name] or false), tostring(b[name] or false))
        end
    end
    return #list > 0 and list or nil
end

-- Which environments rows are of: their numbers in order, how many rows each
-- has, and what differs between the first and each of the others.
function origins.several(source, rows)
    local counts, numbers = {}, {}
    for _, row in ipairs(rows) do
        local n = row.env
        if n then
            if not counts[n] then numbers[#numbers + 1] = n end
            counts[n] = (counts[n] or 0) + 1
        end
    end
    table.sort(numbers)
    local list = {}
    for i, n in ipairs(numbers) do
        local first, here = source.environments and
            source.environments[numbers[1]], source.environments and
            source.environments[n]
        list[i] = {number = n, count = counts[n],
            differs = i > 1 and first and here and
                environment.differences(first, here) or {}}
    end
    return list
end

environment.origins = origins

return environment
