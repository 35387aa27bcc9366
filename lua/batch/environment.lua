-- Where measurements are made: device, driver, clocks, threads, versions.
local library = ...
local journal = require "lumat.journal"
local fail = require("lumat.checks").fail
local ipairs, tonumber, tostring = ipairs, tonumber, tostring
local concat = table.concat
local format, match = string.format, string.match
local getenv, open, popen = os.getenv, io.open, io.popen
local environment = {}

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

local function threads()
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
        threads = given and given.threads or threads(),
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

-- The environments of a run directory, by number.
function environment.list(store)
    if store.environments then return store.environments end
    local list = {}
    while true do
        local here = store:read(format("env-%d.json", #list + 1))
        if not here then return list end
        list[#list + 1] = here
    end
end

local function find_same(list, here)
    local near
    for i, e in ipairs(list) do
        if #differences(e, here) == 0 then
            if e.git == here.git then return i end
            near = i
        end
    end
    return nil, near
end

-- The number of this environment in the run directory, recording it where it
-- is the first, or another commit of the same, or may be mixed with others.
-- Second result: what to say about it.
function environment.number(store, here, mix)
    local what = "run"
    while true do
        local list = environment.list(store)
        local same, near = find_same(list, here)
        if same then return same end
        if #list > 0 and not near and not mix then
            fail(what, "%s was measured elsewhere (%s): another dir = keeps " ..
                "the runs apart; run{mix = true} adds rows that say where " ..
                "they are from", store.dir,
                concat(differences(list[#list], here), "; "))
        end
        local _, mine = store:found(format("env-%d.json", #list + 1), here)
        if mine then
            return #list + 1, near and format("the working folder is at %s, " ..
                "earlier rows are of %s", tostring(here.git),
                tostring(list[near].git))
        end
    end
end

return environment
