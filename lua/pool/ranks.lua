-- The processes of a pool: what each does of what the prompt tells all. A matrix
-- lies in blocks of mb x nb that go round the grid (block_cyclic.c); a process
-- keeps its part by columns, as ScaLAPACK wants it, so data is a matrix whose
-- rows are the columns, and axes are exchanged.
--
-- What is told is a call of a function of `told`. Before processes exchange
-- anything each has what it needs, or all give up: see together.
local library = ...
local checks = require "lumat.checks"
local cyclic = require "lumat.block_cyclic"
local factor_steps = require "lumat.factor_steps"
local journal = require "lumat.journal"
local links = require "lumat.links"
local npy = require "lumat.npy_parts"
local pool_text = require "lumat.pool_text"
local serving = require "lumat.serving"
local ranks = {}
local collectgarbage, error, ipairs, load = collectgarbage, error, ipairs, load
local pcall, require = pcall, require
local next, type, unpack = next, type, table.unpack
local format = string.format
local larger, smaller = math.max, math.min

-- Bytes of an element.
ranks.sizes = {bool = 1, f32 = 4, f64 = 8, c64 = 8, c128 = 16}

-- Kinds of messages; the prompt has them, too.
ranks.HELLO, ranks.WATCH, ranks.TELL, ranks.DONE, ranks.FAILED = 1, 2, 3, 4, 5

-- What those say who wait for one that failed.
ranks.ANOTHER = "another process failed"

local grid -- lumat.grid or local_grid.lua, in a process of a pool alone
local link -- to the prompt
local rows, cols, row, col -- of the grid, and this process's place from 0
local parts = {} -- by number
local told = {}

-- --- parts -------------------------------------------------------------------

local function count_rows(m, mb) return cyclic.count(m, mb, row, rows) end
local function count_cols(n, nb) return cyclic.count(n, nb, col, cols) end

-- One of zeros.
local function blank(m, n, mb, nb, dtype)
    return {m = m, n = n, mb = mb, nb = nb, data = library.zeros(
        count_cols(n, nb), count_rows(m, mb), {dtype = dtype, device = grid.device})}
end

local function like(p, data)
    return {m = p.m, n = p.n, mb = p.mb, nb = p.nb, data = data}
end

-- Where parts lie.
local function here(data)
    return data:to(grid.device)
end

-- Without gaps, and no view.
local function plain(data)
    return data:clone()
end

-- f, which needs nobody else, in all processes, or an error in all of them;
-- gives what it gave here.
local function together(f)
    local ok, result = pcall(f)
    local all = grid.agree(ok)
    if not ok then error(result, 0) end
    if not all then error(ranks.ANOTHER, 0) end
    return result
end
ranks.together = together

function told.start(r, c)
    rows, cols = r, c
    row, col = grid.arrange(r, c)
    return {row, col}
end

local function bytes_of(p)
    return p.data.rows * p.data.cols * ranks.sizes[p.data.dtype]
end

-- Bytes out of use, and how many are given back at once: a share of the memory,
-- of which each process may have as much.
local out_of_use, much = 0, nil

function told.free(list)
    for _, id in ipairs(list) do
        out_of_use = out_of_use + (parts[id] and bytes_of(parts[id]) or 0)
        parts[id] = nil
    end
    if out_of_use == 0 then return end -- nor is there a grid before the first
    much = much or library.memory(grid.device).total // (8 * rows * cols)
    if out_of_use > much then told.collect() end
end

function told.collect()
    collectgarbage()
    out_of_use = 0
end

function told.forget() parts = {} end

-- This process's machine, or its GPU there, and the bytes free there.
function told.host()
    local held, name = library.memory(grid.device), journal.identity()
    if grid.device ~= "cpu" then name = grid.device .. " of " .. name end
    return {name = name, free = held.free, total = held.total}
end

-- The bytes of the parts, and how many there are.
function told.memory()
    local bytes, count = 0, 0
    for _, p in next, parts do
        bytes = bytes + bytes_of(p)
        count = count + 1
    end
    return {bytes = bytes, count = count}
end

-- Bytes to each process since the last question, counted from the first on.
function told.traffic() return grid.traffic() end
function told.stop_traffic() grid.stop_traffic() end

-- Seconds for a small message and for 1 MiB to the neighbour: in phase 0 of
-- each pair from the first on, in phase 1 from the second on.
function told.link_times(phase)
    local own, count = grid.who()
    local other = (own - phase) % 2 == 0 and own + 1 or own - 1
    if other < 0 or other >= count then return {} end
    return {grid.ping(other, 8, 200), grid.ping(other, 1 << 20, 10)}
end

-- --- making ------------------------------------------------------------------

function told.zeros(id, ...)
    parts[id] = blank(...)
end

function told.full(id, m, n, mb, nb, dtype, value)
    parts[id] = {m = m, n = n, mb = mb, nb = nb, data = library.full(
        count_cols(n, nb), count_rows(m, mb), value,
        {dtype = dtype, device = grid.device})}
end

-- One with ones where row and column are the same.
local function unit(m, n, mb, nb, dtype)
    local p = blank(m, n, mb, nb, dtype)
    if p.data.rows > 0 and p.data.cols > 0 then
        local i = here(cyclic.places(m, mb, row, rows)):row()
        local j = here(cyclic.places(n, nb, col, cols)):col()
        p.data = library[dtype](j:eq(i):f32())
    end
    return p
end

function told.eye(id, ...)
    parts[id] = unit(...)
end

-- Bytes of whole rows that are drawn at once.
local DRAWN = 256 << 20

-- On a GPU, where numbers are made faster than they are written: whole rows, of
-- which the columns are kept that lie here.
local function draw_rows(p, ...)
    local data, own = p.data, here(cyclic.places(p.n, p.nb, col, cols))
    local places = cyclic.places(p.m, p.mb, row, rows)
    local most = larger(1, DRAWN // (p.n * ranks.sizes[data.dtype]))
    local first = 1
    while first <= data.cols do
        local last = smaller(data.cols, first + most - 1)
        if rows > 1 then last = smaller(last, (first + p.mb - 1) // p.mb * p.mb) end
        local whole = cyclic.drawn(data, places[first] - 1, last - first + 1, p.n, ...)
        if cols > 1 then whole = whole[{{}, own}] end
        data[{{}, {first, last}}] = whole.T
        first = last + 1
    end
end

function told.random(id, m, n, mb, nb, dtype, ...)
    local p = blank(m, n, mb, nb, dtype)
    if grid.device == "cpu" then
        cyclic.draw(p.data, n, mb, nb, row, rows, col, cols, ...)
    elseif p.data.rows > 0 then
        draw_rows(p, ...)
    end
    parts[id] = p
end

-- This process's part comes with the message.
function told.put(id, m, n, mb, nb, dtype)
    local data = here(link:matrix(dtype, count_cols(n, nb), count_rows(m, mb)))
    parts[id] = {m = m, n = n, mb = mb, nb = nb, data = data}
end

-- Of rows i1 to i2 and columns j1 to j2 what lies here, by columns.
function told.get(id, i1, i2, j1, j2)
    local p = parts[id]
    local r1, r2 = count_rows(i1 - 1, p.mb) + 1, count_rows(i2, p.mb)
    local c1, c2 = count_cols(j1 - 1, p.nb) + 1, count_cols(j2, p.nb)
    if r2 < r1 or c2 < c1 then return {0, 0} end
    local block = p.data[{{c1, c2}, {r1, r2}}]
    return {block.rows, block.cols}, block
end

-- --- moving -------------------------------------------------------------------

-- ScaLAPACK moves numbers: f, which makes what it is given into another part,
-- of a mask as numbers, of which it makes one again.
local function as_numbers(p, f)
    if p.data.dtype ~= "bool" then return f(p) end
    local c = f(together(function() return like(p, plain(p.data:f32())) end))
    return together(function() return like(c, plain(c.data:ne(0))) end)
end

function told.transpose(id, from, conjugated)
    parts[id] = as_numbers(parts[from], function(p)
        local c = together(function()
            return blank(p.n, p.m, p.nb, p.mb, p.data.dtype)
        end)
        grid.transpose(c, p, conjugated)
        return c
    end)
end

-- What is told as {first, last} or {list = {…}}, as a vector.
function ranks.expand(side)
    local o = {dtype = "f64", device = "cpu"}
    if side.list then return library.vec(side.list, o) end
    if side[2] < side[1] then return library.zeros(0, o) end
    return library.range(side[1], side[2], o)
end

local expand = ranks.expand

-- Of a list of rows, or of columns: which of the list lie here, and where.
local function own_rows(p, list) return cyclic.owned(list, p.mb, row, rows) end
local function own_cols(p, list) return cyclic.owned(list, p.nb, col, cols) end

-- Of places that lie here, which the other list has on each process of a line:
-- by process, those of `own`.
local function meeting(which, own, others, block, count)
    local list, there = {}, others[which]
    for process = 0, count - 1 do
        list[process] = own[(cyclic.owned(there, block, process, count))]
    end
    return list
end

-- c's rows and columns ci and cj become a's ai and aj; lists as long as these.
local function exchange(c, ci, cj, a, ai, aj)
    local sent, wanted, at = {}, {}, {}
    local dtype, own_number, stays = a.data.dtype, row * cols + col, nil
    local ready = together(function()
        local which, own = own_rows(a, ai)
        local from_rows = meeting(which, own, ci, c.mb, rows)
        which, own = own_cols(a, aj)
        local from_cols = meeting(which, own, cj, c.nb, cols)
        which, own = own_rows(c, ci)
        local to_rows = meeting(which, own, ai, a.mb, rows)
        which, own = own_cols(c, cj)
        local to_cols = meeting(which, own, aj, a.nb, cols)
        for number = 0, rows * cols - 1 do
            local r, s = number // cols, number % cols
            local i, j = to_cols[s], to_rows[r]
            if #from_cols[s] > 0 and #from_rows[r] > 0 then
                sent[number + 1] = plain(a.data[{from_cols[s], from_rows[r]}])
            end
            at[number + 1] = {i, j}
            if number ~= own_number and #i > 0 and #j > 0 then
                wanted[number + 1] = library.zeros(#i, #j,
                    {dtype = dtype, device = grid.device})
            end
        end
        stays, sent[own_number + 1] = sent[own_number + 1], nil
        return grid.prepare_swap(sent, wanted)
    end)
    grid.swap(ready)
    together(function()
        wanted[own_number + 1] = stays
        for number, block in next, wanted do c.data[at[number]] = block end
    end)
end

-- m x n elements of a from ia, ja on into c from ic, jc on, whatever blocks these
-- are laid out in. Not by p?gemr2d: that makes a communicator each time, in
-- which Open MPI waits for ever where a process has no memory.
local function move(c, ic, jc, a, ia, ja, m, n)
    if grid.move then return grid.move(c, ic, jc, a, ia, ja, m, n) end
    local ci, cj, ai, aj
    together(function()
        ci, cj = expand{ic, ic + m - 1}, expand{jc, jc + n - 1}
        ai, aj = expand{ia, ia + m - 1}, expand{ja, ja + n - 1}
    end)
    exchange(c, ci, cj, a, ai, aj)
end

-- Rows i1 … and columns j1 … of m x n, in blocks of their own.
local function block_of(from, i1, j1, m, n, mb, nb)
    return as_numbers(from, function(p)
        local c = together(function()
            return blank(m, n, mb, nb, p.data.dtype)
        end)
        move(c, 1, 1, p, i1, j1, m, n)
        return c
    end)
end

function told.block(id, from, ...)
    parts[id] = block_of(parts[from], ...)
end

-- --- files -------------------------------------------------------------------

local function layout(p)
    return {m = p.m, n = p.n, mb = p.mb, nb = p.nb, row = row, col = col,
        rows = rows, cols = cols}
end

-- f, in whose errors it is said which process on which machine had them.
local function placed(f)
    return function()
        local ok, result = pcall(f)
        if ok then return result end
        local number, count = grid.who()
        error(format("process %d of %d on %s: %s", number + 1, count,
            journal.identity(), checks.without_place(result)), 0)
    end
end

-- What this process has of the array in a file of so many bytes.
function told.load(id, path, bytes, dtype, m, n, mb, nb)
    local p = {m = m, n = n, mb = mb, nb = nb}
    parts[id] = together(placed(function()
        p.data = here(npy.read(path, bytes, dtype, layout(p)))
        return p
    end))
end

-- Blocks of fewer columns are written by too many calls.
local LEAST_RUN = 64

-- This process's elements into a file that the prompt has made.
function told.save(id, path, head, bytes)
    local p = parts[id]
    if p.nb < LEAST_RUN and cols > 1 then
        p = block_of(p, 1, 1, p.m, p.n, p.mb, LEAST_RUN)
    end
    together(placed(function()
        npy.write(path, head, bytes, p.data:to "cpu", layout(p))
    end))
end

-- --- element by element ------------------------------------------------------

-- A number as it is told: a complex one as a table of two.
local function number_of(x)
    return type(x) == "table" and library.complex(x.re, x.im) or x
end
ranks.number_of = number_of

-- An operand: a part, what came with the message as one row or column, a number.
local function operand(x, p)
    if type(x) ~= "table" then return x end
    if x.part then
        local q = parts[x.part]
        if q.mb ~= p.mb or q.nb ~= p.nb then
            error(("blocks differ: %dx%d and %dx%d"):format(p.mb, p.nb, q.mb,
                q.nb), 0)
        end
        return q.data
    end
    if x.row then -- 1 x n, the same for all rows
        local all = here(link:matrix(x.row, p.n, 1))
        return all[{cyclic.places(p.n, p.nb, col, cols), {}}]
    elseif x.col then
        local all = here(link:matrix(x.col, 1, p.m))
        return all[{{}, (cyclic.places(p.m, p.mb, row, rows))}]
    end
    return number_of(x)
end

-- parts[id] = name(operands…); of `shape`, one of the operands' numbers.
function told.map(id, name, shape, ...)
    local list, p = {...}, parts[shape]
    for i, x in ipairs(list) do list[i] = operand(x, p) end
    local data = library[name](unpack(list))
    parts[id] = like(p, cyclic.is_plain(data) and data or plain(data))
    return parts[id].data.dtype
end

function told.convert(id, from, dtype)
    parts[id] = like(parts[from], plain(library[dtype](parts[from].data)))
end

-- Zero outside of a triangle: "lower" or "upper"; with ones on the diagonal.
function told.triangle(id, from, which, with_ones)
    local p = parts[from]
    local i = here(cyclic.places(p.m, p.mb, row, rows)):row()
    local j = here(cyclic.places(p.n, p.nb, col, cols)):col()
    local data = p.data
    if data.rows > 0 and data.cols > 0 then
        local kept = which == "lower" and j:le(i) or j:ge(i)
        data = library.where(kept, data, 0)
        if with_ones then data = library.where(j:eq(i), 1, data) end
    end
    parts[id] = like(p, plain(data))
end

-- The first element here that is NaN or infinite, in the order of rows: its row
-- and column, and how it is shown; or row 0.
function told.look(id)
    local p = parts[id]
    local i, j = factor_steps.look(p.data.T)
    if not i then return {0} end
    return {cyclic.places(p.m, p.mb, row, rows)[i],
        cyclic.places(p.n, p.nb, col, cols)[j],
        checks.figure("%s", p.data(j, i))}
end

-- How far elements here are at most from those of a part laid as this one, and how
-- large they are at most.
function told.farthest(id, other)
    local data = parts[id].data
    if data.rows == 0 or data.cols == 0 then return {0, 0} end
    return {(data - parts[other].data):abs():max(), data:abs():max()}
end

-- --- reductions --------------------------------------------------------------

local function wide(data)
    local t = data.dtype
    return (t == "f32" or t == "bool") and data:f64() or
        t == "c64" and data:c128() or data
end

-- Of all elements here: a number, or nothing where there are none.
function told.reduce(id, name)
    local data = parts[id].data
    if data.rows == 0 or data.cols == 0 then return nil end
    local is_wide = name == "sum" or name == "norm"
    local value = library[name](is_wide and wide(data) or data)
    if type(value) == "userdata" then
        return {re = value.real, im = value.imag}
    end
    return value
end

-- Along an axis: as many values, by columns; sums in f64.
function told.reduce_axis(id, name, axis)
    local data = parts[id].data
    if data.rows == 0 or data.cols == 0 then return {0, 0} end
    local values = library[name](name == "sum" and wide(data) or data, 3 - axis)
    values = plain(values)
    return {values.rows, values.cols, values.dtype}, values
end

-- Bytes of a part that are made wide at once.
local WIDE = 64 << 20

-- What there may be summed of elements.
local weighed = {
    same = function(x) return x end,
    abs = function(x) return x:abs() end,
    squares = function(x)
        x = x:abs()
        return x % x
    end,
}

-- Along an axis as in reduce_axis: sums of elements times weights, in double
-- precision, of which no more is made than WIDE.
function told.weighted_sums(id, name, axis, dtype)
    local data, f, sums = parts[id].data, weighed[name], nil
    local count = axis == 1 and data.cols or data.rows
    local weights = here(link:matrix(dtype, count, 1))
    if data.rows == 0 or data.cols == 0 then return {0, 0} end
    local other = axis == 1 and data.rows or data.cols
    local some = larger(1, WIDE // (ranks.sizes.c128 * other))
    for from = 1, count, some do
        local range = {from, smaller(from + some - 1, count)}
        local w = weights[{range, {}}]
        local part
        if axis == 1 then
            part = library.sum(f(wide(data[{{}, range}])) % w.T, 2)
        else
            part = library.sum(f(wide(data[{range, {}}])) % w, 1)
        end
        sums = sums and sums + part or part
    end
    sums = plain(sums)
    return {sums.rows, sums.cols, sums.dtype}, sums
end

-- The largest or smallest element here, "argmax" or "argmin", the first in the
-- order of rows, or of columns: its value, row and column.
function told.reduce_place(id, name, by_columns)
    local p = parts[id]
    if p.data.rows == 0 or p.data.cols == 0 then return nil end
    local i, j
    if by_columns then
        j, i = library[name](p.data)
    else
        i, j = library[name](p.data.T)
    end
    return {p.data(j, i), cyclic.places(p.m, p.mb, row, rows)[i],
        cyclic.places(p.n, p.nb, col, cols)[j]}
end

-- The same along an axis: two rows, of values and places.
function told.reduce_place_axis(id, name, axis)
    local p = parts[id]
    local data = p.data
    if data.rows == 0 or data.cols == 0 then return {0} end
    local at = library[name](data, 3 - axis):f64()
    local best = name == "argmax" and data:max(3 - axis) or data:min(3 - axis)
    local places = axis == 1 and cyclic.places(p.m, p.mb, row, rows) or
        cyclic.places(p.n, p.nb, col, cols)
    local count = at.rows * at.cols
    return {count}, library.vcat(best:f64():reshape(1, count),
        places[at:reshape(count)]:row())
end

-- Sums, or products, within each block of rows, and of each block its last row:
-- a matrix of one row a block.
function told.scan_blocks(id, ends, from, name)
    local p = parts[from]
    parts[id] = together(function()
        local c = like(p, plain(p.data))
        local height = c.data.cols
        for first = 1, height, p.mb do
            local side = {{}, {first, smaller(first + p.mb - 1, height)}}
            if c.data.rows > 0 then
                c.data[side] = library[name](p.data[side], 2)
            end
        end
        return c
    end)
    parts[ends] = together(function()
        local count = (p.m + p.mb - 1) // p.mb
        local c = blank(count, p.n, 1, p.nb, p.data.dtype)
        local height = p.data.cols
        for k = 1, c.data.cols do
            if c.data.rows > 0 then
                c.data[{{}, {k, k}}] = parts[id].data[{{},
                    {smaller(k * p.mb, height), smaller(k * p.mb, height)}}]
            end
        end
        return c
    end)
end

-- To each block but the first what those above it come to: `ends` has that of
-- each block with those above it, from the second block on.
function told.scan_join(id, ends, name)
    local p, above = parts[id], parts[ends].data
    together(function()
        local height = p.data.cols
        for k = 1, above.cols do
            local side = {{}, {(k - 1) * p.mb + 1, smaller(k * p.mb, height)}}
            if p.data.rows > 0 then
                local block, first = p.data[side], above[{{}, {k, k}}]
                p.data[side] = name == "cumsum" and block + first or
                    block % first
            end
        end
    end)
end

-- --- together ----------------------------------------------------------------

function told.multiply(id, a, ta, b, tb, m, n, k, mb, nb, kernel)
    local operand = parts[a].data
    local c = together(function()
        if k == 0 or not grid.sets_products then
            return blank(m, n, mb, nb, operand.dtype)
        end
        return {m = m, n = n, mb = mb, nb = nb,
            data = cyclic.unset(operand, count_cols(n, nb), count_rows(m, mb))}
    end)
    grid.multiply(c, parts[a], parts[b], ta, tb, k, kernel)
    parts[id] = c
end

-- --- races -------------------------------------------------------------------

-- Seconds from when all have begun to when f is done here.
local function seconds_of(f, ...)
    grid.agree(true)
    local began = library.clock()
    f(...)
    library.sync()
    return library.clock() - began
end

-- Those that what is told by that name takes.
function told.timed(name, ...)
    library.sync()
    return seconds_of(told[name], ...)
end

-- Rows of what measures how fast a core multiplies.
local SIDE = 512

-- Real multiplications and additions a second, in products of that type that
-- are in nobody's way: those of all processes, which share cores, at once.
function told.product_rate(dtype)
    if grid.device ~= "cpu" then
        return library.peak(grid.device)[dtype .. "_flops"]
    end
    local A = together(function()
        return library.rand(SIDE, SIDE, {dtype = dtype, device = "cpu", seed = 1})
    end)
    local best = math.huge
    for _ = 1, 3 do
        best = smaller(best, seconds_of(function() return A * A end))
    end
    return 2 * SIDE ^ 3 / best
end

-- The kernels for a product of these, where there is a choice.
function told.kernels(a, op_a, b, op_b, k)
    if not grid.kernels then return nil end
    return together(function()
        return grid.kernels(parts[a], parts[b], op_a, op_b, k)
    end)
end

-- Those of a factorisation.
function told.factor_kernels(operation)
    return grid.factor_kernels and grid.factor_kernels(operation)
end

-- --- lists of places ---------------------------------------------------------

-- Rows and columns of a matrix, as one of their own.
function told.take(id, from, i, j, mb, nb)
    local p = parts[from]
    local ai, aj, c
    together(function()
        ai, aj = expand(i), expand(j)
        c = blank(#ai, #aj, mb, nb, p.data.dtype)
    end)
    exchange(c, expand{1, c.m}, expand{1, c.n}, p, ai, aj)
    parts[id] = c
end

-- Rows and columns of `id` become those of `from`: its i2 and j2.
function told.assign(id, i, j, from, i2, j2)
    exchange(parts[id], expand(i), expand(j), parts[from], expand(i2),
        expand(j2))
end

-- They become what comes with the message: by columns, what lies here.
function told.set(id, i, j, dtype)
    local p = parts[id]
    together(function()
        local _, r = own_rows(p, expand(i))
        local _, c = own_cols(p, expand(j))
        local block = here(link:matrix(dtype, #c, #r))
        if #r > 0 and #c > 0 then p.data[{c, r}] = block end
    end)
end

function told.fill(id, i, j, value)
    local p = parts[id]
    together(function()
        local _, r = own_rows(p, expand(i))
        local _, c = own_cols(p, expand(j))
        if #r > 0 and #c > 0 then p.data[{c, r}] = number_of(value) end
    end)
end

-- Where a mask of the same blocks is true.
function told.fill_where(id, mask, value)
    local p = parts[id]
    together(function()
        if p.data.rows > 0 and p.data.cols > 0 then
            p.data[parts[mask].data] = number_of(value)
        end
    end)
end

-- `from` becomes the rows from i and columns from j on.
function told.place(id, i, j, from)
    local p = parts[from]
    move(parts[id], i, j, p, 1, 1, p.m, p.n)
end

-- What lies here of a diagonal, `above` the main one: its elements, and which
-- they are, from 1 on.
function told.diagonal(id, first_row, first_col, count)
    local p = parts[id]
    local which, r = own_rows(p, expand{first_row, first_row + count - 1})
    local places, c = own_cols(p, expand{first_col, first_col + count - 1}[which])
    local height = p.data.cols
    if #places == 0 then return {0, p.data.dtype} end
    local at = (c - 1) * height + r[places]
    local list = plain(p.data:reshape(p.data.rows * height)[at])
    return {#list, p.data.dtype, which[places]:totable()}, list:col()
end

-- --- factors -----------------------------------------------------------------

-- Values that all processes have, from the first alone.
local function values_from(info, values)
    local is_first = row == 0 and col == 0 and values.rows > 0
    return {info, values.rows, values.dtype}, is_first and values or nil
end

local function copied(from)
    return together(function()
        return like(parts[from], plain(parts[from].data))
    end)
end

-- Factors, of a copy, by the kernel of that name or the usual one: what the
-- routine says.
function told.lu(id, from, kernel)
    local p = copied(from)
    local pivots, zero = grid.lu(p, kernel)
    p.pivots, parts[id] = pivots, p
    return zero
end

-- The order of the rows that lu found.
function told.lu_order(from)
    local p = parts[from]
    local exchanged, order = unpack(together(function()
        local host = {dtype = "f64", device = "cpu"}
        return {library.zeros(p.n, 1, host), library.range(1, p.n, host):col():clone()}
    end))
    grid.lu_order(p, p.pivots, exchanged, order)
    return values_from(0, order)
end

function told.chol(id, from, kernel)
    local p = copied(from)
    local minor = grid.chol(p, kernel)
    parts[id] = p
    return minor
end

function told.qr(id, from, kernel)
    local p = copied(from)
    p.tau, parts[id] = grid.qr(p, kernel), p
end

-- Of them the first k columns of Q, in parts[id], which is a unit matrix.
function told.qr_q(id, from)
    grid.qr_q(parts[from], parts[from].tau, parts[id])
end

-- Of the factors in `from`, what solves for the columns of b.
function told.solve(id, from, b)
    local p, x = parts[from], copied(b)
    if p.pivots then grid.lu_solve(p, p.pivots, x) else grid.chol_solve(p, x) end
    parts[id] = x
end

-- The spectral routines go astray over small blocks: theirs are not.
local LEAST_BLOCK = 32

-- A copy of a part in other blocks.
local function laid_as(p, mb, nb)
    return block_of(p, 1, 1, p.m, p.n, mb, nb)
end

-- The same in blocks that they take.
local function relaid(from)
    local p = parts[from]
    local block = larger(LEAST_BLOCK, p.mb, p.nb)
    return laid_as(p, block, block)
end

-- Where it is done in one go.
local function eigh_at_once(a, kernel)
    local z = together(function()
        return blank(a.m, a.n, a.mb, a.nb, a.data.dtype)
    end)
    local values, info = grid.eigh(a, z, kernel)
    return z, values, info
end

-- By way of a tridiagonal matrix, whose vectors are real.
local function eigh_by_steps(a)
    local t = grid.reduce_symmetric(a)
    local z = together(function()
        return unit(a.m, a.n, a.mb, a.nb, checks.is_wide(a.data) and "f64" or "f32")
    end)
    local values, info, scale = grid.solve_tridiagonal(t, z)
    if checks.is_complex(a.data) then
        z = together(function()
            return like(z, plain(library[a.data.dtype](z.data)))
        end)
    end
    grid.back_to_symmetric(a, t, z)
    return z, together(function()
        return scale == 1 and values or values / scale
    end), info
end

function told.eigh(id, from, kernel)
    local p = parts[from]
    local z, values, info = (grid.eigh and eigh_at_once or eigh_by_steps)(
        relaid(from), kernel)
    parts[id] = laid_as(z, p.mb, p.nb)
    return values_from(info, values)
end

-- Rows or columns up to which the first process finds singular values by itself:
-- of fewer than three p?gesvd waits for ever on some grids, or says that it did
-- not converge.
local FEW = 8

-- Of the whole matrix, which is one block.
local function svd_by_the_first(a, left, right)
    return together(function()
        local k = smaller(a.m, a.n)
        if row > 0 or col > 0 or k == 0 then
            return library.zeros(k, 1, {dtype = a.data.dtype, device = "cpu"})
        end
        local U, values, V = library.svd(a.data.T):unpack()
        left.data[{{}, {}}], right.data[{{}, {}}] = U.T, V
        return plain(values:col())
    end), 0
end

function told.svd(u, v, from)
    local p = parts[from]
    local k = smaller(p.m, p.n)
    local is_few = k <= FEW
    local whole = larger(1, p.m, p.n)
    local a = is_few and laid_as(p, whole, whole) or relaid(from)
    local left, right
    together(function()
        left = blank(a.m, k, a.mb, a.nb, a.data.dtype)
        right = blank(k, a.n, a.mb, a.nb, a.data.dtype)
    end)
    local values, info = (is_few and svd_by_the_first or grid.svd)(a, left, right)
    parts[u], parts[v] = laid_as(left, p.mb, p.nb), laid_as(right, p.mb, p.nb)
    return values_from(info, values)
end

-- --- the loop ----------------------------------------------------------------

-- Nothing, for the time that a message takes.
function told.ping() end

-- Times are those of what was told, on GPUs, too.
local function done(...)
    if grid.device ~= "cpu" then library.sync() end
    return ...
end

local function answer(text)
    local f = load(text, "=told", "t", told)
    local ok, value, matrix = pcall(function() return done(f()) end)
    local gone
    if ok then
        gone = not link:send(ranks.DONE, pool_text.literal(value), matrix)
    else
        gone = not link:send(ranks.FAILED, checks.without_place(value))
    end
    return not gone
end

-- A stop that came too late for what it was to stop is none of the next one. It
-- is told again as long as nothing ends. nil: the link is at its end, and so it is
-- after a message for which there was no memory, of which a part is read: who
-- went on would never answer it, and the others would wait.
local function next_message()
    while true do
        local ok, kind, text = pcall(link.receive, link)
        local was_stopped = serving.go_on()
        if ok then return kind, text end
        if not was_stopped or kind == "not enough memory" then return nil end
    end
end

-- What a process without a prompt does of calls: those of `told`. Matrices that
-- come with one are those that from:matrix gives.
function ranks.join(own_grid, from)
    grid, link = own_grid, from
    return told
end

-- Where the bell of who listens at that socket is.
function ranks.bell_of(path) return path .. ".bell" end

-- To the end of the prompt at that socket, with what processes do together.
function ranks.serve(path, those)
    grid = those
    local number, count = grid.who()
    local function join(kind)
        local made, why = links.connect(path, os.getenv "LUMAT_POOL_TOKEN")
        if not made then error("there is no prompt at " .. path .. ": " .. why, 0) end
        made:send(kind, pool_text.literal{number, count, links.version,
            (journal.identity())})
        return made
    end
    local bell = links.bell(ranks.bell_of(path))
    link = join(ranks.HELLO)
    if bell then link:hears(bell) end
    local watched = join(ranks.WATCH)
    serving.watch(watched:descriptor())
    while true do
        local kind, text = next_message()
        if not kind or kind ~= ranks.TELL or not answer(text) then return end
    end
end

return ranks
