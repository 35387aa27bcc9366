-- A script that all ranks run (lua/worker/spmd.c): lumat.pool as it is there. A
-- distributed matrix is made and used by calls of all ranks in the same order,
-- so its number is the same on all of them; what the prompt would tell the
-- processes each does itself, and what they would answer all tell each other.
local library, _, _, private = ...
local checks = require "lumat.checks"
local exchange = require "lumat.exchange"
local grid = require "lumat.grid"
local is_dry = require "lumat.factor_steps".is_dry
local npy = require "lumat.npy_parts"
local pool = require "lumat.pool"
local pool_text = require "lumat.pool_text"
local ranks = require "lumat.ranks"
local fail = checks.fail
local collectgarbage, error, getmetatable, ipairs, next = collectgarbage, error,
    getmetatable, ipairs, next
local package, pairs, pcall, require = package, pairs, pcall, require
local setmetatable, table, type = setmetatable, table, type
local gsub, math, sort = string.gsub, math, table.sort
local spmd = {}

local rank, count
local told -- what each does of a call

-- --- calls of all ------------------------------------------------------------

-- In the place of a link to the prompt: what a process is sent it makes itself,
-- at the same place, so that an error there is one of the call.
local sent = {}
function sent.matrix()
    return sent.make(rank + 1)
end

-- And of one to a process: the matrix that its answer has.
local function answer_of(number, own)
    return {matrix = function(_, dtype, rows, cols)
        return exchange.matrix(number - 1, number == rank + 1 and own or nil,
            dtype, rows, cols)
    end}
end

-- One text tells how it went: "+" and what came of it, or "-" and why not.
local function outcome(ok, value)
    return ok and "+" .. pool_text.literal(value) or
        "-" .. checks.without_place(value)
end

local function do_here(name, ...)
    exchange.alone(true)
    local ok, value, matrix = pcall(told[name], ...)
    exchange.alone(false)
    return outcome(ok, value), ok and matrix or nil
end

-- Values by number, and an error if there is one: that of who has it, and not
-- of those who heard of it.
local function read_all(texts)
    local values, message = {}, nil
    for number, text in ipairs(texts) do
        local said = text:sub(2)
        if text:sub(1, 1) == "-" then
            if not message or message == ranks.ANOTHER then message = said end
        elseif said ~= "nil" then
            values[number] = pool_text.value(said)
        end
    end
    return values, message
end

local function free_dead(p) told.free(pool.dead(p)) end

function pool.collect(p)
    collectgarbage()
    free_dead(p)
    free_dead(p)
    told.collect()
end

local function compare(what, name, ...)
    if exchange.is_checked then
        exchange.compare(what .. ", " .. gsub(pool_text.call(name, ...),
            "^return ", ""))
    end
end

function pool.tell_with(p, what, matrix_for, take, name, ...)
    if p.lost then fail(what, "%s", p.lost) end
    if is_dry() then
        return require "lumat.pool_report".note(p, what, name, ...)
    end
    local function ask(told_name, ...)
        compare(what, told_name, ...)
        free_dead(p)
        sent.make = matrix_for
        local text, matrix = do_here(told_name, ...)
        local values, message = read_all(exchange.texts(text))
        if message then fail(what, "%s", message) end
        for number = 1, take and told_name == name and count or 0 do
            take(answer_of(number, matrix), values[number], number)
        end
        return values
    end
    if library.tracing() ~= true then return ask(name, ...) end
    return require "lumat.pool_report".traced(p, ask, name, ...)
end

function pool.tell(p, what, name, ...)
    return pool.tell_with(p, what, nil, nil, name, ...)
end

-- --- what the first rank does for all ------------------------------------------

-- What f(arguments…) gives there, which all are told, or its error.
local function done_by_first(f, ...)
    local text = ""
    if rank == 0 then
        exchange.alone(true)
        local list = table.pack(pcall(f, ...))
        exchange.alone(false)
        text = outcome(list[1], list[1] and {table.unpack(list, 2, list.n)} or
            list[2])
    end
    local values, message = read_all{exchange.texts(text)[1]}
    if message then error(message) end
    return table.unpack(values[1] or {})
end

-- The file that D:save makes is one, and all write to it.
local function create_one(path, dtype, m, n)
    local file
    local temporary, head, bytes = done_by_first(function()
        local made, name, from, size = npy.create(path, dtype, m, n)
        file = made
        return name, from, size
    end)
    local one = {commit = function()
        done_by_first(function() file:commit() end)
    end}
    return setmetatable(one, {__close = function()
        local made <close> = file
    end}), temporary, head, bytes
end

-- --- the pool ----------------------------------------------------------------

-- Numbers of matrices go on, as what lies on an earlier grid may be freed later.
local last_id = 0

local function lose(p, why)
    p.lost, last_id = why, p.next_id
    told.forget()
end

local current

local function arrange(rows, cols, block)
    if current and not current.lost then
        lose(current, "another pool was started")
    end
    local p = {count = count, rows = rows, cols = cols, block = block,
        garbage = {}, dying = {}, next_id = last_id, options = {device = "cpu"}}
    pool.tell(p, "pool", "start", rows, cols)
    current = p
    return pool.adopt(p)
end

local function open(options)
    options = options or {}
    if options.ranks and options.ranks ~= count then
        fail("pool", "the script runs on %s, and ranks is %s: leave it out, " ..
            "or mpirun -n %s", checks.plural(count, "rank"),
            checks.brief(options.ranks), checks.brief(options.ranks))
    end
    local wanted = pool.check_options{ranks = count, grid = options.grid,
        block = options.block, device = options.device}
    local rows, cols = pool.check_grid(wanted.grid, count)
    return arrange(rows, cols, wanted.block)
end

-- Nothing ends: the ranks go on. What lies on them is freed.
local function close()
    if current and not current.lost then lose(current, "the pool was closed") end
    pool.adopt(nil)
end

local function restart()
    local p = current
    return arrange(p.rows, p.cols, p.block)
end

-- --- what would differ from rank to rank -------------------------------------

local kinds = {number = 1, string = 2, boolean = 3}

local function comes_first(x, y)
    local i, k = kinds[type(x)] or 4, kinds[type(y)] or 4
    if i ~= k then return i < k end
    if i > 2 then return i == 3 and x == false and y == true end
    return x < y
end

-- pairs(t): Lua's own order of names is another one in each process, and what a
-- script does by it would be, too. Numbers, then names in order; what is neither
-- comes last, as it lies.
local function sorted_pairs(t)
    local own = getmetatable(t)
    if type(t) ~= "table" or type(own) == "table" and own.__pairs then
        return pairs(t)
    end
    local keys, i = {}, 0
    for key in next, t do
        if kinds[type(key)] then keys[#keys + 1] = key end
    end
    sort(keys, comes_first)
    for key in next, t do
        if not kinds[type(key)] then keys[#keys + 1] = key end
    end
    return function()
        while true do
            i = i + 1
            local key = keys[i]
            if key == nil then return nil end
            local value = t[key]
            if value ~= nil then return key, value end
        end
    end, t, nil
end

local function refuse_experiment()
    fail("experiment", "--spmd has none, as each starts processes of its own: " ..
        "run the script without it, and e:run{workers = %d}", count)
end

-- Before the script; gives its `pairs`.
function spmd.begin(own_rank, how_many)
    rank, count = own_rank, how_many
    told = ranks.join(grid, sent)
    pool.open = private.checked("pool", open)
    pool.close, pool.restart = close, restart
    function pool.count() return count end
    function pool.rank() return rank end
    math.randomseed(pool_text.value(exchange.texts(
        pool_text.literal(math.random(0)))[1]))
    local refused = {define = refuse_experiment, open = refuse_experiment}
    package.loaded["lumat.definition"] = refused
    package.loaded["lumat.npy_parts"] = checks.copied(npy)
    package.loaded["lumat.npy_parts"].create = create_one
    open{}
    return sorted_pairs
end

return spmd
