-- What a matrix that lies in parts on the processes of a pool is: blocks that go
-- round their grid (block_cyclic.c), by number. What users call on one is in
-- distributed_*.lua, each a subject: they put their methods, operators and
-- properties into the tables here, and distributed.lua joins them.
local library = ...
local checks = require "lumat.checks"
local cyclic = require "lumat.block_cyclic"
local is_dry = require "lumat.factor_steps".is_dry
local pool = require "lumat.pool"
local sizes = require "lumat.ranks".sizes
local unit_text = require "lumat.unit_text"
local fail, brief = checks.fail, checks.brief
local collectgarbage, ipairs, next, pairs, select = collectgarbage, ipairs, next,
    pairs, select
local setmetatable, type = setmetatable, type
local concat = table.concat
local format, larger, smaller = string.format, math.max, math.min
local parts = {}

-- --- what one is -------------------------------------------------------------

-- Of each: where, m x n elements by number `id` on the processes of p; turned,
-- whether it is read as its transpose, "T", or conjugate transpose, "C".
local state = setmetatable({}, {__mode = "k"})
parts.methods, parts.meta, parts.properties = {}, {}, {}
local meta = parts.meta

local function is_distributed(x)
    return state[x] ~= nil
end

-- Of how many elements the largest part is, and by how many rows.
local function largest_part(p, m, n, mb, nb)
    local rows = cyclic.count(m, mb, 0, p.rows)
    return rows * cyclic.count(n, nb, 0, p.cols), rows
end

-- Of each host of the pool's processes, in the order of these: its name, how
-- many of them it has, and the bytes free there.
local function hosts_of(p, what)
    local list, by_name = {}, {}
    for _, found in ipairs(pool.tell(p, what, "host")) do
        local host = by_name[found.name]
        if not host then
            host = {name = found.name, count = 0, free = found.free,
                total = found.total}
            by_name[found.name], list[#list + 1] = host, host
        end
        host.count = host.count + 1
        host.free = smaller(host.free, found.free)
    end
    return list
end

-- Parts smaller than this are not asked for beforehand, bytes.
local SMALL = 32 * 2 ^ 20
-- As many elements of a part have places that ScaLAPACK can count.
local MOST = 2 ^ 31 - 1

local function host_without_room(p, what, bytes)
    for _, host in ipairs(hosts_of(p, what)) do
        if bytes * host.count > host.free then return host end
    end
end

-- Raises, before anything is made, where no process has room for its part.
local function check_room(what, p, m, n, dtype, mb, nb)
    local count = largest_part(p, m, n, mb, nb)
    local bytes = count * sizes[dtype]
    local amount = function(x) return unit_text.bytes(x, "%.1f") end
    if count > MOST and p.options.launcher ~= "local" then
        fail(what, "%dx%d on a grid of %dx%d: %d elements for a process, %s, " ..
            "more than ScaLAPACK counts (%d); a pool of more processes has " ..
            "fewer in each", m, n, p.rows, p.cols, count, amount(bytes), MOST)
    elseif bytes < SMALL or is_dry() then
        return
    end
    local full = host_without_room(p, what, bytes)
    if not full then return end
    pool.collect(p)
    full = host_without_room(p, what, bytes)
    if full then
        fail(what, "there is no room for %s %dx%d, %s: each of %d processes " ..
            "needs %s, and %s has %s free for its %d", dtype, m, n,
            amount(m * n * sizes[dtype]), p.count, amount(bytes), full.name,
            amount(full.free), full.count)
    end
end

-- So many bytes are made before the collector looks for what nothing names: it
-- sees small tables here, and not what lies on the processes.
local ENOUGH = 2 ^ 28

-- A full collection, as what was made in several steps is old by then, whenever
-- as much was made as there was after the last one.
local function account(p, bytes)
    p.made = (p.made or 0) + bytes
    if p.made < larger(ENOUGH, p.left or 0) or
        not collectgarbage "isrunning" then
        return
    end
    collectgarbage()
    p.made, p.left = 0, 0
    for _, w in next, p.by_id do
        p.left = p.left + w.m * w.n * sizes[w.dtype]
    end
end

local dying = {__gc = function(w) w.p.garbage[#w.p.garbage + 1] = w.id end}

-- What lies on the processes, in blocks of mb x nb, or of the pool's size: it
-- is freed with what names it last. Who makes one tells the processes.
local function new_parts(what, p, m, n, dtype, mb, nb)
    mb = mb or p.block
    nb = nb or mb
    check_room(what, p, m, n, dtype, mb, nb)
    p.next_id = p.next_id + 1
    p.by_id = p.by_id or setmetatable({}, {__mode = "v"})
    local w = setmetatable({p = p, id = p.next_id, m = m, n = n, dtype = dtype,
        mb = mb, nb = nb}, dying)
    p.by_id[w.id] = w
    account(p, m * n * sizes[dtype])
    return w
end

-- The same of m x n in w's blocks, of its type.
local function like(what, w, m, n)
    return new_parts(what, w.p, m or w.m, n or w.n, w.dtype, w.mb, w.nb)
end

local function new(where, turned)
    local D = setmetatable({}, meta)
    state[D] = {where = where, turned = turned or false}
    return D
end

local function shape(s)
    local w = s.where
    if s.turned then return w.n, w.m end
    return w.m, w.n
end

local function shape_text(s)
    return format("%dx%d", shape(s))
end

local function check_alive(what, s)
    local w = s.where
    if w.p.lost then
        fail(what, "the matrix is lost, as %s: pool.restart() starts the pool anew",
            w.p.lost)
    elseif pool.running(what) ~= w.p then
        fail(what, "the matrix lies on a pool that was closed")
    end
    return w
end

local function state_of(what, D)
    return state[D] or fail(what, "%s is no distributed matrix", brief(D))
end

-- Told to all, of new parts: made(where) or an error.
local function told(what, w, name, ...)
    pool.tell(w.p, what, name, w.id, ...)
    return new(w)
end

local function geometry(w)
    return w.m, w.n, w.mb, w.nb, w.dtype
end

-- The parts of s as it is read: turned ones are transposed for that.
local function settled(what, s)
    local w = check_alive(what, s)
    if not s.turned then return w end
    local t = new_parts(what, w.p, w.n, w.m, w.dtype, w.nb, w.mb)
    pool.tell(w.p, what, "transpose", t.id, w.id, s.turned == "C")
    return t
end

-- --- here and there ----------------------------------------------------------

local types = {f32 = true, f64 = true, c64 = true, c128 = true}

-- The rows and columns of process `number`, of those from first to last, as
-- places counted from first.
local function places(w, number, rows, cols)
    local p = w.p
    local r, c = (number - 1) // p.cols, (number - 1) % p.cols
    local i = cyclic.places(w.m, w.mb, r, p.rows, rows[1], rows[2])
    local j = cyclic.places(w.n, w.nb, c, p.cols, cols[1], cols[2])
    return i - (rows[1] - 1), j - (cols[1] - 1)
end

local function spread(A, options)
    if is_distributed(A) then return A end
    local p = pool.running("spread")
    if A.ndim ~= 2 then A = A:col() end
    if not types[A.dtype] then A = A:f32() end
    local w = new_parts("spread", p, A.rows, A.cols, A.dtype,
        options and pool.check_block("spread", options.block))
    local all = {{1, w.m}, {1, w.n}}
    local host = A:to "cpu"
    pool.tell_with(p, "spread", function(number)
        local i, j = places(w, number, all[1], all[2])
        return host[{i, j}].T:clone()
    end, nil, "put", w.id, geometry(w))
    return new(w)
end

-- Rows i1 to i2, columns j1 to j2 as a matrix here.
local function fetch(what, s, i1, i2, j1, j2)
    local w = check_alive(what, s)
    if s.turned then i1, i2, j1, j2 = j1, j2, i1, i2 end
    local rows, cols = {i1, i2}, {j1, j2}
    local out = library.zeros(larger(0, i2 - i1 + 1), larger(0, j2 - j1 + 1),
        {dtype = w.dtype, device = "cpu"})
    pool.tell_with(w.p, what, nil, function(link, size, number)
        if size[1] == 0 or size[2] == 0 then return end
        local block = link:matrix(w.dtype, size[1], size[2])
        local i, j = places(w, number, rows, cols)
        out[{i, j}] = block.T
    end, "get", w.id, i1, i2, j1, j2)
    if not s.turned then return out end
    return s.turned == "C" and out.H or out.T
end

-- Ones where row and column are the same, in blocks of block x block.
local function unit(what, n, dtype, block)
    local w = new_parts(what, pool.running(what), n, n, dtype, block)
    return told(what, w, "eye", geometry(w))
end

-- w, or the same in blocks of mb x nb.
local function laid_in(what, w, mb, nb)
    if w.mb == mb and w.nb == nb then return w end
    local t = new_parts(what, w.p, w.m, w.n, w.dtype, mb, nb)
    pool.tell(w.p, what, "block", t.id, w.id, 1, 1, w.m, w.n, mb, nb)
    return t
end

parts.state, parts.types = state, types
parts.is, parts.new, parts.new_parts = is_distributed, new, new_parts
parts.like, parts.sizes, parts.hosts_of = like, sizes, hosts_of
parts.largest_part = largest_part
parts.shape, parts.shape_text, parts.state_of = shape, shape_text, state_of
parts.check_alive, parts.told, parts.settled = check_alive, told, settled
parts.geometry, parts.places, parts.fetch = geometry, places, fetch
-- The options of a function of distributed matrices, which takes those of these
-- names.
local function options_of(what, options, ...)
    if options ~= nil and type(options) ~= "table" then
        fail(what, "options are %s, expected a table, as {%s = …}", brief(options),
            (...))
    end
    local known = {}
    for _, name in ipairs{...} do known[name] = true end
    for key in pairs(options or {}) do
        if not known[key] then
            fail(what, "of distributed matrices takes %s=%s, not %s",
                concat({...}, "= "), select("#", ...) == 1 and " alone" or "",
                brief(key))
        end
    end
    return options or {}
end

-- The only one of a function, or nil.
local function option(what, options, name)
    return options_of(what, options, name)[name]
end

parts.spread, parts.unit, parts.laid_in = spread, unit, laid_in
parts.option, parts.options = option, options_of

return parts
