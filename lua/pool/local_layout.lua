-- Where processes that their prompt started itself, without MPI, keep what they
-- have, and how it comes from one to the other: by exchanges (mesh.c) that all
-- do at once, in the same order.
--
-- Who fails does so before anything is exchanged, or after: each says whether it
-- went on, and all go on or none (together).
local library = ...
local cyclic = require "lumat.block_cyclic"
local mesh = require "lumat.mesh"
local together = require "lumat.ranks".together
local error, getenv, ipairs = error, os.getenv, ipairs
local require, tonumber = require, tonumber
-- panel: columns of one of products and factors, where a test told it.
local layout = {panel = tonumber(getenv "LUMAT_PANEL" or "")}

-- This process, from 0, how many there are, and the device its parts lie on.
local rank, count, device
local links -- between them

-- Ways in which a matrix lies on the processes: on so many rows and columns of
-- them. The grid's own is layout.place, with row and col of this process; in
-- layout.in_a_row each has whole columns, and layout.alone is the first.
local function arrangement(rows, cols)
    return {rows = rows, cols = cols}
end

-- Process `own` of `all`, whose links are made in that folder.
function layout.open(folder, own, all, on)
    rank, count, device = own, all, on
    layout.rank, layout.count, layout.device = rank, count, device
    links = mesh.open(folder, own, all)
end

-- Bytes that what comes from others may take at a time, the same in all: a
-- power of two, an eighth of the memory of the GPU with least at most.
local function room_of_all()
    local bytes, own = 1 << 20, library.memory(device).total // 8
    while links:agree(2 * bytes <= own) do bytes = 2 * bytes end
    return bytes
end

function layout.arrange(rows, cols)
    local place = arrangement(rows, cols)
    place.row, place.col = rank // cols, rank % cols
    layout.place = place
    layout.in_a_row, layout.alone = arrangement(1, count), arrangement(1, 1)
    links:join()
    if device ~= "cpu" and count > 1 then
        together(function() links:prepare(device) end)
        links:open_exchange()
    end
    layout.room = device ~= "cpu" and room_of_all() or nil
    return place.row, place.col
end

function layout.agree(truth) return links:agree(truth) end

-- Elements exchanged, all at once: begun, and later finished with what begin
-- gave; or done.
function layout.begin(outgoing, incoming)
    return links:begin(outgoing, incoming)
end
function layout.finish(begun) links:finish(begun) end
local function swap(outgoing, incoming)
    links:finish(links:begin(outgoing, incoming))
end
layout.swap = swap

-- --- parts -------------------------------------------------------------------

local function zeros(rows, cols, dtype)
    return library.zeros(rows, cols, {dtype = dtype, device = device})
end

-- The part that a process has of m x n in blocks of mb x nb, where it lies so.
local function part_of(a, m, n, mb, nb, dtype)
    local rows = rank < a.rows * a.cols and
        cyclic.count(m, mb, rank // a.cols, a.rows) or 0
    local cols = rank < a.rows * a.cols and
        cyclic.count(n, nb, rank % a.cols, a.cols) or 0
    return {m = m, n = n, mb = mb, nb = nb, data = zeros(cols, rows, dtype)}
end

-- Elements that all can read and write at once: without gaps.
local function plain(data)
    return cyclic.is_plain(data) and data or data:clone()
end

-- --- moving ------------------------------------------------------------------

-- Where rows and columns of A that begin at ia, ja, and of C that begin at ic,
-- jc, meet in process `sender` of A's arrangement and `receiver` of C's: of each
-- their numbers. Turned: rows of A are columns of C.
local function meeting(c, cg, ic, jc, a, ag, ia, ja, m, n, sender, receiver,
    turned)
    if sender >= ag.rows * ag.cols or receiver >= cg.rows * cg.cols then return end
    local down = {c.m, c.mb, receiver // cg.cols, cg.rows, ic}
    local along = {c.n, c.nb, receiver % cg.cols, cg.cols, jc}
    local own_rows, its_rows = cyclic.shared(m,
        {a.m, a.mb, sender // ag.cols, ag.rows, ia}, turned and along or down)
    local own_cols, its_cols = cyclic.shared(n,
        {a.n, a.nb, sender % ag.cols, ag.cols, ja}, turned and down or along)
    if own_rows.rows == 0 or own_cols.rows == 0 then return end
    return own_rows, own_cols, its_rows, its_cols
end

local function put(c, rows, cols, block, turned)
    if turned then
        block = turned == "C" and block:conj().T or block.T
        rows, cols = cols, rows
    end
    c.data[{cols, rows}] = block
end

-- m x n elements of A from ia, ja on into C from ic, jc on, as their transpose
-- where turned is "T" or "C": those that lie so on ag into those on cg.
local function move(c, cg, ic, jc, a, ag, ia, ja, m, n, turned)
    local outgoing, incoming, coming = {}, {}, {}
    together(function()
        for other = 0, count - 1 do
            local i, j = meeting(c, cg, ic, jc, a, ag, ia, ja, m, n, rank, other,
                turned)
            if i then outgoing[other + 1] = plain(a.data[{j, i}]) end
            local from_i, from_j, to_i, to_j = meeting(c, cg, ic, jc, a, ag, ia,
                ja, m, n, other, rank, turned)
            if from_i then
                coming[other + 1] = {to_i, to_j}
                incoming[other + 1] = other ~= rank and
                    zeros(from_j.rows, from_i.rows, a.data.dtype) or nil
            end
        end
    end)
    local own = outgoing[rank + 1]
    outgoing[rank + 1] = nil
    swap(outgoing, incoming)
    together(function()
        for other = 0, count - 1 do
            local places = coming[other + 1]
            if places then
                put(c, places[1], places[2],
                    other == rank and own or incoming[other + 1], turned)
            end
        end
    end)
end

-- All of a part where it lies on one arrangement, on another, in blocks of
-- mb x nb.
local function laid(a, from, to, mb, nb)
    local c = together(function()
        return part_of(to, a.m, a.n, mb, nb, a.data.dtype)
    end)
    move(c, to, 1, 1, a, from, 1, 1, a.m, a.n)
    return c
end

-- And back into a part that there is.
local function lay_back(a, c, from)
    move(a, layout.place, 1, 1, c, from, 1, 1, c.m, c.n)
end

-- From process `owner` to all others the matrix that it has there, into those
-- like it that they have: begun, or done.
local function begin_spread(owner, matrix)
    local outgoing, incoming = {}, {}
    if owner == rank then
        for other = 0, count - 1 do
            if other ~= rank then outgoing[other + 1] = matrix end
        end
    else
        incoming[owner + 1] = matrix
    end
    return links:begin(outgoing, incoming)
end

local function spread(owner, matrix)
    links:finish(begin_spread(owner, matrix))
end

-- --- libraries ---------------------------------------------------------------

-- Those of the vendor for several GPUs, by the name of the kernel they are.
layout.PRODUCTS, layout.FACTORS = "cublasmp", "cusolvermp"
local called = {[layout.PRODUCTS] = "cuBLASMp", [layout.FACTORS] = "cuSOLVERMp"}

-- The one for a task of links:work, as a row of kernel_list.
function layout.vendor_kernel(task)
    local name = task == "product" and layout.PRODUCTS or layout.FACTORS
    local lacks = links:lacks(task)
    return {name = name, available = not lacks,
        needs = called[name] .. (lacks and ": " .. lacks or "")}
end

-- Does a matrix lie as both have been found to take it? With parts of blocks, or
-- where a process has nothing, some of their calls fail, in one process alone,
-- and cuSOLVERMp's for blocks that are no multiple of 16.
local function lies_for(name, a)
    local place = layout.place
    return (name == layout.PRODUCTS or a.mb % 16 == 0 and a.nb % 16 == 0) and
        a.m % a.mb == 0 and a.n % a.nb == 0 and
        a.m >= place.rows * a.mb and a.n >= place.cols * a.nb
end

local function check_parts(name, ...)
    for _, a in ipairs{...} do
        if not lies_for(name, a) then
            error(("kernel %s takes whole blocks%s, of which each process has " ..
                "some: these are of %dx%d in blocks of %dx%d"):format(name,
                name == layout.PRODUCTS and "" or " of a multiple of 16",
                a.m, a.n, a.mb, a.nb), 0)
        end
    end
end

-- Runs a task of links:work, of parts that lie on the grid: what trouble there was,
-- as a number. All go into it or none.
function layout.work(task, a, b, c, numbers)
    together(function()
        local kernel = layout.vendor_kernel(task)
        if not kernel.available then
            error(("kernel %s needs %s"):format(kernel.name, kernel.needs), 0)
        end
        check_parts(kernel.name, a, b, c)
    end)
    return links:work(task, layout.place, a, b, c, numbers)
end

-- --- links -------------------------------------------------------------------

-- Bytes to each process since the last question.
function layout.traffic() return links:traffic() end

-- Seconds in which a message of so many bytes goes to the other and one comes
-- from it: of so many.
function layout.ping(other, bytes, times)
    local sent, wanted = zeros(1, bytes // 4, "f32"), zeros(1, bytes // 4, "f32")
    local function exchange(n)
        for _ = 1, n do swap({[other + 1] = sent}, {[other + 1] = wanted}) end
        library.sync()
    end
    exchange(1)
    local began = library.clock()
    exchange(times)
    return (library.clock() - began) / times
end

layout.zeros, layout.part_of, layout.plain = zeros, part_of, plain
layout.move, layout.laid, layout.lay_back = move, laid, lay_back
layout.begin_spread, layout.spread = begin_spread, spread
return layout
