-- Many processes at one experiment: copies of the running script that `run`
-- starts, or those that mpirun, srun and the like started.
local library = ...
local journal = require "lumat.journal"
local checks = require "lumat.checks"
local progress = require "lumat.progress"
local store_of = require "lumat.store"
local fail = checks.fail
local getenv, remove = os.getenv, os.remove
local _G, ipairs, pairs, tonumber = _G, ipairs, pairs, tonumber
local find, format, gmatch, match = string.find, string.format, string.gmatch,
    string.match
local larger = math.max
local insert = table.insert
local workers = {}

-- --- who started this one -------------------------------------------------

-- Rank, size, rank on this host, and the launch's name, as launchers tell.
local launchers = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK", {"PMIX_NAMESPACE",
        "OMPI_MCA_ess_base_jobid"}},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", {"PMI_ID", "HYDI_CONTROL_FD"}},
    {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", {"PMIX_NAMESPACE"}},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
        {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID",
        {"FLUX_JOB_ID"}},
}

local function number(name)
    local value = getenv(name)
    return value and tonumber(match(value, "^%d+$"))
end

-- nil for a process that was started alone.
function workers.rank()
    for _, names in ipairs(launchers) do
        local rank, size = number(names[1]), number(names[2])
        if rank and size and size > 1 then
            local launch = ""
            for _, name in ipairs(names[4]) do
                launch = launch .. (getenv(name) or "")
            end
            return {rank = rank, size = size, here = number(names[3]) or rank,
                launch = launch ~= "" and launch or nil}
        end
    end
end

-- The run directory this process was started for, by a `run{workers=}`.
function workers.spawned_for()
    local dir = getenv("LUMAT_WORKER")
    return dir ~= "" and dir or nil
end

function workers.seconds_left()
    return tonumber(getenv("LUMAT_WORKER_LEFT") or "")
end

-- --- devices --------------------------------------------------------------

-- The number of this process among those of its machine that a launcher
-- started together, from 0; nil for one that was started alone.
function workers.place(rank)
    local slot = number("PARALLEL_JOBSLOT") -- GNU parallel's, from 1
    return rank and rank.here or slot and slot - 1
end

-- Those that CUDA_VISIBLE_DEVICES names, up to the first that is none.
local function count_visible(visible)
    local count = 0
    for name in gmatch(visible .. ",", "%s*([^,]*),") do
        if not find(name, "^%w") then break end
        count = count + 1
    end
    return count
end

-- How many GPUs this process may use.
function workers.gpu_count()
    local visible = getenv("CUDA_VISIBLE_DEVICES")
    if visible then return count_visible(visible) end
    if journal.is_safe() then return 1 end
    local pipe, count = io.popen("nvidia-smi -L 2>/dev/null"), 0
    for line in pipe:lines() do
        if find(line, "^GPU %d+:") then count = count + 1 end
    end
    pipe:close()
    return count
end

-- cuda:0, cuda:1, … when the device is a GPU that nobody chose.
local function gpus(device)
    local list = {}
    if device ~= "cuda:0" then return list end
    for i = 1, workers.gpu_count() do list[i] = format("cuda:%d", i - 1) end
    return list
end

-- The device for number i, counted from 0, or nil: the one in use.
function workers.device(devices, i, device)
    devices = devices or gpus(device or library.device())
    return #devices > 0 and devices[i % #devices + 1] or nil
end

-- Threads for each of so many processes on this machine.
function workers.threads(count)
    return number("OMP_NUM_THREADS") or larger(1, journal.cores() // count)
end

-- --- starting copies ------------------------------------------------------

-- The words to start the script with; those of `device` come before the
-- script's name.
function workers.command(device)
    local path, words = journal.command_line()
    local arg = _G.arg
    local named = arg and arg[0]
    if not path or not named then
        fail("run", "workers run the same script again, and there is none")
    end
    local before = 0
    while arg[-before - 1] do before = before + 1 end
    if before == 0 then before = #words end -- no file: -e and -p alone
    if device then
        insert(words, before + 1, "--device=" .. device)
    end
    return path, words
end

-- What a worker may be needed for.
workers.reasons = {
    timeout = "a timeout ends the worker a point is in",
    threads = "another number of threads takes a worker"}

-- A script that can be run again: a file, or code of the command line. option:
-- which one takes workers.
function workers.check_script(option)
    local reason = workers.reasons[option]
    if journal.is_safe() then
        fail("run", "%s--safe starts no processes: run{} without %s, or " ..
            "lumat without --safe", reason and reason .. ", and " or "", option)
    end
    local what = reason and reason .. ", and workers" or "workers"
    local arg = _G.arg
    local script = arg and arg[0]
    local _, words = journal.command_line()
    local has_code = false
    for _, word in ipairs(words or {}) do
        has_code = has_code or find(word, "^%-[ep]") ~= nil
    end
    local before = arg and arg[-1] ~= nil
    if not words or script == "-" or not (before or has_code) then
        fail("run", "%s run the same script again, which has to be a " ..
            "file: lumat sweep.lua; without %s it runs here", what, option)
    end
    for _, word in ipairs(words) do
        if word == "-i" then
            fail("run", "%s cannot run a script that asks for a prompt (-i)",
                what)
        end
    end
end

local function log_path(run, i)
    return format("%s/worker-%d.log", run.store.dir, i)
end

-- The last line of a worker's log.
function workers.last_words(run, i)
    local text = journal.read_file(log_path(run, i)) or ""
    local line = match(text, "lumat: ([^\n]*)") or
        match(text, "([^\n]+)\n*$") or "it left no word"
    return line
end

local function start_one(run, crew, i)
    local first = workers.place(run.e.rank) or 0
    local path, words = workers.command(workers.device(run.devices, first + i - 1))
    local threads = run.threads
    local settings = {"LUMAT_WORKER=" .. journal.real_path(run.store.dir),
        format("OMP_NUM_THREADS=%d", threads),
        format("OPENBLAS_NUM_THREADS=%d", threads),
        "LUMAT_WORKER_LEFT=" .. (run.deadline and
            format("%.3f", larger(0, run.deadline - library.clock())) or "")}
    run.numbers[crew:start(path, words, settings, log_path(run, i))] = i
end

-- --- watching them --------------------------------------------------------

-- Did the process call exit in the midst of a point?
local function left_a_point(run, pid)
    local _, _, _, machine = journal.identity()
    for name in pairs(journal.list(run.claims) or {}) do
        local text = find(name, "^w%-") and
            journal.look(run.claims .. "/" .. name)
        local owner = text and store_of.owner(text)
        if owner and owner.pid == pid and owner.machine == machine and
            owner.cause == "exit" then
            return true
        end
    end
    return false
end

-- What an ended worker leads to: another one in its place, or the end.
local function replace(run, crew, pid, code, signal)
    local i = run.numbers[pid]
    run.numbers[pid] = nil
    if signal ~= 0 or left_a_point(run, pid) then
        run.deaths = run.deaths + 1
        if run.deaths > 5 * run.count + 5 then
            fail("run", "workers keep dying without doing a point; the last " ..
                "one said: %s", workers.last_words(run, i))
        end
        start_one(run, crew, i)
    elseif code == 0 then
        remove(log_path(run, i))
    else
        run.problem = run.problem or format("worker %d ended with code %d: %s",
            i, code, workers.last_words(run, i))
    end
end

local function watch(run, crew)
    local count = run.store.count
    run.store:refresh()
    if run.store.count > count then run.deaths = 0 end
    local pid, code, signal = crew:ended()
    while pid do
        replace(run, crew, pid, code, signal)
        pid, code, signal = crew:ended()
    end
    progress.show(run, larger(1, crew:count()))
    progress.tell(run)
end

-- Starts so many and waits until they have done what is to do. The problem of
-- one that ended by an error is told, and fails the run where no other is
-- left to do its work.
function workers.supervise(run, count)
    local crew <close> = journal.crew()
    run.count, run.numbers, run.deaths = count, {}, 0
    for i = 1, count do start_one(run, crew, i) end
    while crew:count() > 0 do
        watch(run, crew)
        if crew:count() > 0 then journal.sleep(0.05) end
    end
    run.store:refresh(true)
    progress.tell(run)
    local done = progress.count(run)
    local over = run.deadline and library.clock() >= run.deadline
    if done < #run.points and not over then
        local ok, why = journal.probe(run.store.dir,
            journal.unique())
        if not ok then run.store:cannot_write(why) end
        fail("run", "%d of %d points are not done: %s", #run.points - done,
            #run.points, run.problem or "the workers stopped early")
    end
    if run.problem then run.bar:say(run.name .. ": " .. run.problem) end
    return over and done < #run.points
end

return workers
