-- Starting the processes of a pool: which launcher of MPI starts them and where,
-- or that the prompt does so itself, and the links that they come by. Those of
-- this machine come to a socket that nobody else may open; from other hosts they
-- come by TCP, to a port that is open until all are there, and show a token,
-- which the launcher gave them in their environment.
local library = ...
local checks = require "lumat.checks"
local journal = require "lumat.journal"
local links = require "lumat.links"
local pool_text = require "lumat.pool_text"
local ranks = require "lumat.ranks"
local find_worker = require "lumat.worker_path"
local fail, brief = checks.fail, checks.brief
local ipairs, pcall, require = ipairs, pcall, require
local tonumber, tostring, type = tonumber, tostring, type
local concat, insert, remove = table.concat, table.insert, table.remove
local find, format, match = string.find, string.format, string.match
local larger, to_integer = math.max, math.tointeger
local getenv, unpack = os.getenv, table.unpack
local launching = {}

-- Seconds: for all to come, unless a process may be silent for longer or the
-- environment says how long; for one that came to say who it is.
local START, HELLO = 60, 10
local ENDING = 3 -- for a launcher one of whose processes has ended

local TOKEN = "LUMAT_POOL_TOKEN"
local MOST_HELLO = 1000 -- bytes

-- --- options -----------------------------------------------------------------

-- Of hosts = {"a", "b:4"} the names, and the processes of each where they are
-- given.
local function read_hosts(list)
    if list == nil then return nil end
    local hosts = {}
    for i, text in ipairs(type(list) == "table" and list or {}) do
        local name, slots = match(tostring(text), "^(%w[%w._-]*):?(%d*)$")
        if not name or slots == "0" then
            fail("pool", "hosts has %s, expected a name such as \"node1\", or " ..
                "\"node1:4\" for four processes", brief(text))
        end
        hosts[i] = {name = name, slots = to_integer(slots)}
    end
    if #hosts == 0 then
        fail("pool", "hosts is no list of names, such as {\"node1\", \"node2:4\"}")
    end
    return hosts
end

-- How many processes are given, and how many hosts have no number.
local function count_slots(hosts)
    local given, open = 0, 0
    for _, host in ipairs(hosts) do
        given = given + (host.slots or 0)
        if not host.slots then open = open + 1 end
    end
    return given, open
end

-- Hosts without a number share what is left of so many.
local function share(hosts, count)
    local given, open = count_slots(hosts)
    local left = count - given
    if open == 0 and left ~= 0 then
        fail("pool", "hosts have %d processes, and ranks is %d", given, count)
    elseif left < open then
        fail("pool", "%d processes are too few for these hosts: %d are needed",
            count, given + open)
    end
    for _, host in ipairs(hosts) do
        if not host.slots then
            host.slots = (left + open - 1) // open
            left, open = left - host.slots, open - 1
        end
    end
end

-- How many processes on GPUs, one each.
local function check_gpus(options, launcher)
    local there = require "lumat.workers".gpu_count()
    local count = to_integer(options.ranks or there)
    if launcher ~= "local" then
        fail("pool", "processes on GPUs are started by launcher = \"local\", " ..
            "not %s", brief(launcher))
    elseif there == 0 then
        fail("pool", "there is no GPU here: device = \"cpu\"")
    elseif count and count > there then
        fail("pool", "ranks is %d, and there %s: one process each", count,
            there == 1 and "is 1 GPU" or format("are %d GPUs", there))
    end
    return count
end

local starters = {}

-- Adds to `wanted` what options say of where and how processes are started, and
-- how many they are.
function launching.read_options(options, wanted)
    local has_gpus = options.device == "gpu"
    local launcher = options.launcher or has_gpus and "local" or
        (find_worker() or options.hosts) and "mpirun" or "local"
    if launcher ~= "local" and not starters[launcher] then
        fail("pool", "launcher is %s, expected \"mpirun\", \"srun\" or \"local\"",
            brief(launcher))
    elseif launcher == "local" and options.hosts then
        fail("pool", "launcher = \"local\" starts processes on this host alone")
    elseif launcher == "local" and options.arguments then
        fail("pool", "launcher = \"local\" takes no arguments")
    end
    local hosts, count = read_hosts(options.hosts), options.ranks
    if has_gpus then count = check_gpus(options, launcher) end
    if hosts and not count then
        local given, open = count_slots(hosts)
        count = given + open
    end
    count = to_integer(count or journal.cores())
    if not count or count < 1 or count > 1024 then
        fail("pool", "ranks is %s, expected 1 to 1024 processes",
            brief(options.ranks))
    elseif hosts and launcher == "mpirun" then
        share(hosts, count)
    elseif hosts and count_slots(hosts) > 0 then
        fail("pool", "srun shares processes out itself: hosts has names alone, " ..
            "and arguments = {\"--ntasks-per-node=4\"} says how many")
    end
    local timeout = options.timeout or 20
    if type(timeout) ~= "number" or not (timeout >= 1 and timeout <= 86400) then
        fail("pool", "timeout is %s, expected 1 to 86400 seconds",
            brief(options.timeout))
    end
    wanted.ranks, wanted.launcher = count, launcher
    wanted.hosts, wanted.places = options.hosts, hosts
    wanted.timeout, wanted.arguments = timeout, options.arguments
end

-- --- launchers ---------------------------------------------------------------

local function names_of(hosts, form)
    local list = {}
    for i, host in ipairs(hosts) do list[i] = format(form, host.name, host.slots) end
    return concat(list, ",")
end

-- The words that start so many workers, before their program.

function starters.mpirun(o, is_far)
    local words = {"mpirun", "-n", tostring(o.ranks), "--oversubscribe",
        "--bind-to", "none"}
    if o.places then
        insert(words, "--host")
        insert(words, names_of(o.places, "%s:%d"))
    end
    if is_far then
        insert(words, "-x")
        insert(words, TOKEN)
    end
    return words
end

-- A step that ends when one of its processes does, and at once on Ctrl-C's
-- signal, of which srun asks for two else.
function starters.srun(o)
    local words = {"srun", "--ntasks=" .. o.ranks, "--mpi=pmix", "--export=ALL",
        "--kill-on-bad-exit=1", "--quit-on-interrupt"}
    if o.places then
        insert(words, "--nodelist=" .. names_of(o.places, "%s"))
    end
    return words
end

local function is_this_host(name)
    local own = journal.identity()
    return name == "localhost" or name == own or name == match(own, "^[^.]*")
end

-- Do processes come by TCP; is it from this machine alone? The setting asks for
-- it where it is not needed.
local function way_of(o)
    local is_here = o.launcher ~= "srun"
    for _, host in ipairs(o.places or {}) do
        is_here = is_here and is_this_host(host.name)
    end
    return o.launcher ~= "local" and
        (not is_here or getenv "LUMAT_POOL_LINKS" == "tcp"), is_here
end

-- Where workers come to: the door, its name, the log of the launcher, the token.
local function open_door(o)
    local is_far, is_here = way_of(o)
    if is_far then return links.listen_far(is_here) end
    return links.listen()
end

-- What launchers of MPI need; processes share the cores, unless the user says
-- otherwise, which BLAS reads when it is loaded.
local function environment(token)
    local list = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "OMPI_MCA_btl_vader_single_copy_mechanism=none",
        "OMPI_MCA_mpi_yield_when_idle=1", TOKEN .. "=" .. (token or "")}
    for _, name in ipairs{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"} do
        if not getenv(name) then insert(list, name .. "=1") end
    end
    return list
end

-- By a launcher of MPI: lumat-worker, so many times.
local function start_workers(p, o, where, token)
    local worker = find_worker()
    if not worker then
        fail("pool", "there is no lumat-worker beside this program: it was " ..
            "built without MPI and ScaLAPACK (libscalapack-openmpi-dev, then " ..
            "make); launcher = \"local\" does without")
    end
    local words = starters[o.launcher](o, p.is_far)
    for _, word in ipairs(o.arguments or {}) do insert(words, tostring(word)) end
    insert(words, worker)
    insert(words, where)
    p.crew:start("/usr/bin/env", {"env", unpack(words)}, environment(token), p.log)
end

-- This program itself, once for each process. NVLink multicast, which takes from
-- other users of the machine, is left alone, by NCCL and by what cuBLASMp uses.
local function start_copies(p, o, where)
    p.pids = {}
    for rank = 0, o.ranks - 1 do
        p.pids[rank + 1] = p.crew:start("/proc/self/exe", {"lumat",
            "--pool-process", where, tostring(rank), tostring(o.ranks),
            o.device == "gpu" and "cuda:" .. rank or "cpu"},
            {"NCCL_NVLS_ENABLE=0", "NVSHMEM_DISABLE_NVLS=1"}, p.log)
    end
end

-- Starts them: the door that they come to, and what they say is in the log.
function launching.start(p, o)
    local door, where, log, token = open_door(o)
    p.door, p.log, p.timeout, p.is_far = door, log, o.timeout, token ~= nil
    p.bell = not p.is_far and links.bell(ranks.bell_of(where), true)
    if o.launcher == "local" then
        start_copies(p, o, where)
    else
        start_workers(p, o, where, token)
    end
end

-- --- who comes ---------------------------------------------------------------

function launching.last_words(log)
    local text = journal.read_file(log) or ""
    local said = {}
    for line in text:gmatch "[^\n]+" do
        if find(line, "%S") and not find(line, "^%-%-%-") then
            said[#said + 1] = line
        end
    end
    return said[#said - 1] and said[1] or said[#said] or "it left no word"
end

-- Did the launcher fail by chance? Those of Open MPI share a folder, which one that
-- ends removes where it sees nothing in it, while another makes its own within:
-- that one ends then, before it has started anything.
function launching.is_by_chance(p)
    local said = p.has_ended and journal.read_file(p.log) or ""
    return find(said, "A call to mkdir was unable to create", 1, true) ~= nil
end

-- Why the launcher ended, if it has.
local function end_of_launcher(p)
    local pid, code = p.crew:ended()
    if not pid then return nil end
    p.has_ended = true
    local launcher = p.options.launcher
    if code == 127 then
        return format("there is no %s here%s", launcher, launcher == "mpirun" and
            " (openmpi-bin has it)" or "")
    end
    return format("%s ended: %s", launcher == "local" and "a process" or
        "the launcher", launching.last_words(p.log))
end
launching.end_of_launcher = end_of_launcher

local function fate(p, number, signal)
    return format("process %d of %d on %s %s", number, p.count,
        p.hosts[number] or "an unknown host",
        signal and "ended by signal " .. signal or "is gone")
end

-- Of processes that the prompt started itself: the first that ended.
local function cause_here(p, number)
    local deadline = library.clock() + 1
    repeat
        local pid, _, signal, name = p.crew:ended()
        for i, own in ipairs(p.pids) do
            if own == pid and signal > 0 then
                return fate(p, i, format("%d (%s)", signal, name))
            elseif own == pid then
                return format("%s (%s)", fate(p, i), launching.last_words(p.log))
            end
        end
        journal.sleep(0.01)
    until library.clock() > deadline
    return fate(p, number)
end

-- A process is gone: what its launcher says of it, which waits for others to end
-- before it does; number: that of the one whose link ended first.
function launching.cause(p, number)
    if p.options.launcher == "local" then return cause_here(p, number) end
    local deadline = library.clock() + ENDING
    while p.crew:count() > 0 and library.clock() < deadline do
        if not p.crew:ended() then journal.sleep(0.01) end
    end
    local said = journal.read_file(p.log) or ""
    -- PBLAS has buffers of its own, and ends all where it has no memory for them.
    local starved = match(said, "Not enough memory on line.-pnum=(%d+)")
    if starved then
        return fate(p, to_integer(starved) + 1) .. ", as ScaLAPACK had no memory there"
    end
    local rank, signal = match(said,
        "process rank (%d+).-exited on signal (%d+ %b())")
    return fate(p, rank and to_integer(rank) + 1 or number, signal)
end

-- The link of one that said who it is: by it commands go, or what stops them. How
-- many that is; one that went, or says what no worker says, is none.
local function take_hello(p, link, kind, text)
    local ok, hello = pcall(pool_text.value, text)
    if not ok or type(hello) ~= "table" or
        kind ~= ranks.HELLO and kind ~= ranks.WATCH then
        link:close()
        return 0
    elseif hello[2] ~= p.count then
        fail("pool", "a worker came as one of %s, not of %d: is %s that of the " ..
            "MPI it was built with?", tostring(hello[2]), p.count,
            p.options.launcher)
    elseif hello[3] ~= links.version then
        fail("pool", "lumat-worker is of version %s, this is %s: is it of " ..
            "another installation?", tostring(hello[3]), links.version)
    end
    local number = hello[1] + 1
    local list = kind == ranks.HELLO and p.links or p.watched
    list[number] = link
    p.hosts[number] = hello[4]
    if p.bell then link:rings(p.bell) end
    link:patience(p.timeout)
    return 1
end

-- Takes those of the list that say who they are: how many did.
local function hear(p, coming)
    local ready, count = links.wait(coming, #coming > 0 and 0.02 or 0), 0
    for i = #ready, 1, -1 do
        local link = remove(coming, ready[i])
        link:patience(HELLO)
        local kind, text = link:receive(0, MOST_HELLO)
        count = count + take_hello(p, link, kind, text)
    end
    return count
end

-- All that come, within the time that there is for it.
local function gather_links(p)
    local seconds = tonumber(getenv "LUMAT_POOL_START" or "") or
        larger(START, p.timeout)
    local deadline, missing, coming = library.clock() + seconds, 2 * p.count, {}
    while missing > 0 do
        local link = p.door:accept(#coming > 0 and 0 or 0.1)
        if link then coming[#coming + 1] = link end
        missing = missing - hear(p, coming)
        local ended = missing > 0 and end_of_launcher(p)
        if ended then
            fail("pool", "%s", ended)
        elseif missing > 0 and library.clock() > deadline then
            local refused = p.door:refused()
            fail("pool", "%d of %d processes did not come within %g s%s: %s",
                (missing + 1) // 2, p.count, seconds, refused > 0 and
                format(", and %d who came did not show the token", refused) or
                "", launching.last_words(p.log))
        end
    end
    p.door:shut()
    if p.bell then p.bell:hide() end
end
launching.gather_links = gather_links

return launching
