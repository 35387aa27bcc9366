-- A pool: processes that compute together on matrices too large for one, or for
-- one core. The prompt starts them by a launcher of MPI, hears from each over a
-- link of its own (links.c), and has no MPI itself: so it goes on when one of
-- them is gone. What each does is ranks.lua.
--
-- A command is told to all of them, and each answers once; between two commands
-- they sleep. One that fails says why and lives on; where one is gone all are
-- ended, and what lay on them is lost.
local library, _, _, private = ...
local checks = require "lumat.checks"
local journal = require "lumat.journal"
local heartbeats = require "lumat.heartbeats"
local launching = require "lumat.launching"
local links = require "lumat.links"
local pool_text = require "lumat.pool_text"
local ranks = require "lumat.ranks"
local is_dry = require "lumat.factor_steps".is_dry
local fail, brief, plural = checks.fail, checks.brief, checks.plural
local collectgarbage, error, ipairs, next = collectgarbage, error, ipairs, next
local pcall, require = pcall, require
local setmetatable, type = setmetatable, type
local concat, format = table.concat, string.format
local to_integer = math.tointeger
local pool = {}

-- Seconds: for what was stopped to end, where nobody waits for that; for them to
-- leave.
local STOP, LEAVE = 10, 2

local current -- the pool that runs, or ran last

-- --- starting ----------------------------------------------------------------

-- The squarest grid of so many.
local function squarest(count)
    local best = 1
    for rows = 1, count do
        if rows * rows > count then break end
        if count % rows == 0 then best = rows end
    end
    return best, count // best
end

local function check_grid(grid, count)
    if grid == nil then return squarest(count) end
    local rows, cols = to_integer(grid[1]), to_integer(grid[2])
    if not rows or not cols or rows < 1 or cols < 1 then
        fail("pool", "grid is {rows, columns} of the processes, as {2, 2}")
    elseif rows * cols ~= count then
        fail("pool", "a grid of %dx%d has %d processes, and ranks is %d", rows,
            cols, rows * cols, count)
    end
    return rows, cols
end

local function close_all(p)
    for _, link in next, p.links do link:close() end
    for _, link in next, p.watched do link:close() end
    p.crew:close()
    if p.bell then p.bell:hide() end
    p.door:close()
end

-- The pool; or nil, why there is none, and whether another try may have more luck.
local function try_to_start(options)
    local count = options.ranks
    local rows, cols = check_grid(options.grid, count)
    local p = {count = count, rows = rows, cols = cols, links = {},
        watched = {}, hosts = {}, silent = {},
        crew = journal.crew(), garbage = {}, dying = {}, block = options.block,
        options = options, next_id = 0}
    launching.start(p, options)
    local rest <close> = journal.when_stopped(function() close_all(p) end)
    local ok, message = pcall(launching.gather_links, p)
    if ok then return p end
    local may_try_again = launching.is_by_chance(p)
    close_all(p)
    return nil, message, may_try_again
end

local TRIES = 5

local function start(options)
    local p, message, may_try_again
    for _ = 1, TRIES do
        p, message, may_try_again = try_to_start(options)
        if p then return p end
        if not may_try_again then break end
    end
    error(message, 0)
end

-- --- telling -----------------------------------------------------------------

-- Nobody is there any longer.
local function lose(p, why)
    p.lost = why
    close_all(p)
    fail("pool", "%s; what lay on the processes is lost: pool.restart() " ..
        "starts them anew", why)
end

-- What a process answered, as it is told to who asked.
local function read_answer(p, number)
    local kind, text = p.links[number]:receive()
    if not kind then
        lose(p, launching.cause(p, number))
    end
    p.waiting[number] = nil
    if kind == ranks.FAILED then
        return text
    end
    return nil, pool_text.value(text)
end

-- The seconds after which the user hears why it takes longer; and those after
-- which a process that failed is taken for one that the others wait for.
local SOON, GRACE = 0.3, 1

-- Where somebody can press Ctrl-C again he is told that he can, and that svd,
-- say, which has no steps, goes on until then.
local function say_what_goes_on(p)
    if not journal.columns() then return end
    io.stderr:write(format("%s stops at its next step%s; Ctrl-C again ends the " ..
        "pool, and what lies on it is lost\n", p.running or "the pool",
        p.running == "svd" and ", or goes on to its end" or ""))
end

-- The links of those whose answers are waited for, and their numbers.
local function links_waited_for(p)
    local list, numbers = {}, {}
    for number = 1, p.count do
        if p.waiting[number] then
            list[#list + 1], numbers[#numbers + 1] = p.links[number], number
        end
    end
    return list, numbers
end

-- They are told to stop, and their answers waited for, for some seconds unless
-- the user can end it; until all have answered or the pool is lost. What they
-- answer is of no use.
local function stop(p, seconds)
    local told_at, has_said = library.clock(), false
    while next(p.waiting) do
        local list, numbers = links_waited_for(p)
        for _, number in ipairs(numbers) do
            p.watched[number]:signal(heartbeats.STOP)
        end
        for _, i in ipairs(links.wait(list, 0.1)) do
            local kind = p.links[numbers[i]]:receive()
            p.waiting[numbers[i]] = nil
            if not kind then
                p.lost = "a process went while it was being stopped"
            end
        end
        local passed = library.clock() - told_at
        if seconds and passed > seconds then
            p.lost = "the processes did not stop within " .. seconds .. " s"
        elseif passed > 1 then
            p.lost = p.lost or heartbeats.trouble(p)
        end
        if p.lost then
            close_all(p)
            return
        end
        if not seconds and not has_said and passed > SOON then
            has_said = true
            say_what_goes_on(p)
        end
    end
end

-- The user stopped the call; if he does so again, the pool is ended.
local function stop_for_user(p)
    local rest <close> = journal.when_stopped(function()
        p.lost = "the pool was ended by Ctrl-C"
        close_all(p)
    end)
    stop(p, not journal.columns() and STOP or nil)
end

-- A process failed with that message a while ago, and others have not answered:
-- they are stopped, and where they wait for the one that failed, all are ended.
local function stop_others(p, message)
    stop(p, STOP)
    if p.lost then
        fail("pool", "%s; the other processes waited for the one that failed, " ..
            "and what lay on them is lost: pool.restart() starts them anew",
            message)
    end
end

-- Some that have answered, by their place in the list; none after about a second
-- without one, unless they are to be given up, and the pool is lost.
local function await_some(p, list)
    local ready = links.answers(list)
    -- Of those before one that is late some may have answered, or failed.
    if #ready == 0 then ready = links.wait(list, 0) end
    local trouble = #ready == 0 and heartbeats.trouble(p)
    if trouble then lose(p, trouble) end
    return ready
end

-- Their values by number, each told to taken(link, value, number); or nothing and
-- what one of them failed of, and not of that another one did, if there is such.
local function gather_answers(p, taken)
    local values, message, failed_at = {}, nil, nil
    while next(p.waiting) do
        local list, numbers = links_waited_for(p)
        local ready = await_some(p, list)
        if #ready == 0 and message and library.clock() - failed_at > GRACE then
            stop_others(p, message)
        end
        for _, i in ipairs(ready) do
            local number = numbers[i]
            local failed, value = read_answer(p, number)
            if failed then
                failed_at = failed_at or library.clock()
                if not message or message == ranks.ANOTHER then message = failed end
            else
                taken(list[i], value, number)
            end
            values[number] = value
        end
    end
    if message then return nil, message end
    return values
end

-- All are told `text`, or what it gives for their number, with the matrix that
-- goes with it; their values, by number. take(link, value, number) is called for
-- each answer, and takes the matrix that comes with it.
local function tell(p, text, matrix_for, take)
    if p.lost then
        fail("pool", "%s: pool.restart() starts them anew", p.lost)
    end
    local rest <close> = journal.when_stopped(function() stop_for_user(p) end)
    -- What fails here is raised once all have answered: an answer that nobody
    -- took would be the next command's. Who lacks its matrix fails by itself.
    local failure
    local function attempt(f, ...)
        if not f or failure then return end
        local ok, result = pcall(f, ...)
        if ok then return result end
        if checks.is_interrupt(result) then error(result, 0) end
        failure = result
    end
    p.waiting = {}
    for number = 1, p.count do
        local told = type(text) == "string" and text or text(number)
        local matrix = attempt(matrix_for, number)
        p.waiting[number] = true
        if not p.links[number]:send(ranks.TELL, told, matrix) then
            lose(p, launching.cause(p, number))
        end
    end
    if p.bell then p.bell:ring() end
    local values, message = gather_answers(p, function(...) attempt(take, ...) end)
    if failure then error(failure, 0) end
    return values, message
end

-- Numbers of parts that nothing names any longer. What dies while a command is
-- put together may be what the command is about: it goes two commands later.
function pool.dead(p)
    local list = p.dying
    p.dying, p.garbage = p.garbage, {}
    return list
end

local function free_dead(p)
    local list = pool.dead(p)
    if #list > 0 then tell(p, pool_text.call("free", list)) end
end

-- All of them, now that no command is being put together, and what the processes
-- have out of use.
function pool.collect(p)
    collectgarbage()
    free_dead(p)
    free_dead(p)
    tell(p, pool_text.call "collect")
end

local function ask(p, what, matrix_for, take, name, ...)
    free_dead(p)
    p.running = name
    local values, message = tell(p, pool_text.call(name, ...), matrix_for, take)
    if not values then fail(what, "%s", message) end
    return values
end

-- pool.tell_with(p, what, matrix_for, take, name, arguments…): their values; an
-- error of one of them is raised as `what`'s. With a matrix for each process,
-- and one from each, where matrix_for and take are given. In a dry run nobody is
-- told anything.
function pool.tell_with(p, what, matrix_for, take, name, ...)
    if is_dry() then
        return require "lumat.pool_report".note(p, what, name, ...)
    elseif library.tracing() ~= true then
        return ask(p, what, matrix_for, take, name, ...)
    end
    return require "lumat.pool_report".traced(p, function(told_name, ...)
        local is_it = told_name == name
        return ask(p, what, is_it and matrix_for or nil, is_it and take or nil,
            told_name, ...)
    end, name, ...)
end

function pool.tell(p, what, name, ...)
    return pool.tell_with(p, what, nil, nil, name, ...)
end

-- --- what users call ---------------------------------------------------------

-- The one that runs; it is started where there is none.
function pool.running(what)
    if not current then
        fail(what, "there is no pool: pool{ranks = 4} starts one")
    elseif current.lost then
        fail(what, "%s: pool.restart() starts the pool anew", current.lost)
    end
    return current
end

local function leave(p)
    if p.lost then return end
    for _, link in ipairs(p.links) do link:send(0, "") end
    if p.bell then p.bell:ring() end
    local deadline = library.clock() + LEAVE
    while p.crew:count() > 0 and library.clock() < deadline do
        if not p.crew:ended() then journal.sleep(0.01) end
    end
    p.lost = "the pool was closed"
    close_all(p)
end

-- Rows and columns of a block, or nil: those of the pool, or its usual ones.
function pool.check_block(what, block)
    if block == nil then return nil end
    local whole = to_integer(block)
    if not whole or whole < 1 or whole > 4096 then
        fail(what, "block is %s, expected 1 to 4096", brief(block))
    end
    return whole
end

local function check_options(options)
    local device = options.device or "cpu"
    if device ~= "cpu" and device ~= "gpu" then
        fail("pool", "device is %s, expected \"cpu\" or \"gpu\"", brief(device))
    end
    local wanted = {grid = options.grid, device = device, block =
        pool.check_block("pool", options.block) or device == "gpu" and 1024 or 64}
    launching.read_options(options, wanted)
    return wanted
end

pool.check_options, pool.check_grid = check_options, check_grid

local meta = {__name = "pool", __metatable = "pool"}

function meta.__headline(handle)
    local p = handle.is
    if p.lost then return "pool  " .. p.lost end
    return format("pool of %s%s on a grid of %dx%d, blocks of %d",
        plural(p.count, "process", "processes"),
        p.options.device == "gpu" and " on GPUs" or "", p.rows, p.cols, p.block)
end
meta.__tostring = meta.__headline
meta.__text = meta.__headline

local function handle_of(p)
    return setmetatable({is = p}, meta)
end

-- p is the one that runs from now on, or none; its handle.
function pool.adopt(p)
    current = p
    return p and handle_of(p)
end

local function open(options)
    if journal.is_safe() then fail("pool", "--safe starts no processes") end
    local wanted = check_options(options or {})
    if current then leave(current) end
    current = nil
    local p = start(wanted)
    current = p
    pool.tell(p, "pool", "start", p.rows, p.cols)
    return handle_of(p)
end
pool.open = private.checked("pool", open)

function pool.restart()
    if not current then
        fail("pool.restart", "there was no pool: pool{ranks = 4} starts one")
    end
    return open(current.options)
end

function pool.close()
    if current then leave(current) end
    current = nil
end

-- Of this process among those that run a script; the prompt's is 0.
function pool.rank() return 0 end

function pool.count()
    return current and not current.lost and current.count or 0
end

-- The seconds that an empty command takes.
function pool.ping()
    local p = pool.running("pool.ping")
    local began = library.clock()
    pool.tell(p, "pool.ping", "ping")
    return library.clock() - began
end

-- What :pool shows.
function pool.info()
    local p = current
    if not p then return "no pool: pool{ranks = 4} starts one" end
    if p.lost then return meta.__headline{is = p} end
    local lines = {meta.__headline{is = p}}
    local answers, seconds = pool.tell(p, "pool", "memory"), pool.ping()
    local amounts = require "lumat.unit_text"
    for number, m in ipairs(answers) do
        lines[#lines + 1] = format("  process %d at (%d, %d)%s: %s in %s",
            number, (number - 1) // p.cols + 1, (number - 1) % p.cols + 1,
            p.is_far and " on " .. p.hosts[number] or "",
            amounts.bytes(m.bytes, "%.1f"), plural(m.count, "part"))
    end
    lines[#lines + 1] = format("  a command takes %.0f us", seconds * 1e6)
    local function ask(...) return pool.tell(p, "pool", ...) end
    for _, line in ipairs(require "lumat.pool_report".lines(p, ask,
        require "lumat.distributed_parts".hosts_of(p, "pool"))) do
        lines[#lines + 1] = line
    end
    return concat(lines, "\n")
end

return pool
