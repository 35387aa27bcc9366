-- Factors of matrices that lie on processes which their prompt started itself.
--
-- They lie, or are laid, in a row, where each process has whole columns, so that a
-- panel of columns is one process's: it factors that, all get it, and each brings its
-- columns behind the panel up to date. Who has the next panel does that to it
-- first, and factors it, while the others are still at theirs (look-ahead, as
-- Strazdins, ANU TR-CS-98-07, 1998, has it).
local library = ...
local checks = require "lumat.checks"
local cyclic = require "lumat.block_cyclic"
local factor_steps = require "lumat.factor_steps"
local layout = require "lumat.local_layout"
local together = require "lumat.ranks".together
local error, ipairs, pcall, require = error, ipairs, pcall, require
local larger, smaller = math.max, math.min
local here = {dtype = "f64", device = "cpu"}
local factors = {}

-- --- panels ------------------------------------------------------------------

-- Columns of a panel of n, so that each process has some.
local function width_of(n)
    return larger(1, smaller(layout.panel or layout.device == "cpu" and 256 or 1024,
        n // (2 * layout.count)))
end

-- Blocks of a process from which on all have about as much to do to the end: with
-- fewer, laying it out anew takes less than waiting.
local LEAST_BLOCKS = 4

-- Where each process has whole columns, in several blocks of one or more panels.
local function lies_well(p, width)
    local count = layout.count
    return layout.place.rows == 1 and p.nb % width == 0 and
        (count == 1 or p.n >= LEAST_BLOCKS * count * p.nb)
end

-- p where each process has whole columns, in panels of `width`: itself where it
-- lies well.
local function columns_of(p)
    local width, d = width_of(p.n), nil
    if lies_well(p, width) then
        d = {m = p.m, n = p.n, mb = p.mb, nb = p.nb, data = p.data, lies_there = true}
    else
        d = layout.laid(p, layout.place, layout.in_a_row, larger(1, p.m), width)
    end
    d.width = width
    return d
end

-- Back into p, which columns_of gave d of.
local function bring_back(p, d)
    if not d.lies_there then layout.lay_back(p, d, layout.in_a_row) end
end

-- How many of the first j columns this process has.
local function own_before(d, j)
    return cyclic.count(j, d.nb, layout.rank, layout.count)
end

-- Panel t, from 0, of the first `last` columns: j to stop, `before` and `upto`
-- this process's own columns that lie before its first and up to its last.
local function panel_at(d, t, last)
    local j = t * d.width + 1
    local stop = smaller(j + d.width - 1, last)
    return {j = j, stop = stop, width = stop - j + 1,
        owner = (j - 1) // d.nb % layout.count, before = own_before(d, j - 1),
        upto = own_before(d, stop)}
end

local function panel_count(d, last)
    return (last + d.width - 1) // d.width
end

-- This process's columns from number `from` to `to`, rows `top` on.
local function own_columns(d, from, to, top, bottom)
    return d.data[{{from, to}, {top, bottom or d.m}}]
end

-- Of a panel's columns from row `top` to `bottom` a copy in all processes.
local function shared_panel(d, panel, top, bottom)
    local matrix = together(function()
        if layout.rank ~= panel.owner then
            return layout.zeros(panel.width, bottom - top + 1, d.data.dtype)
        end
        return layout.plain(own_columns(d, panel.before + 1, panel.upto, top,
            bottom))
    end)
    layout.spread(panel.owner, matrix)
    return matrix
end

-- Whose largest element lies so may be updated in place: that loses what lies 2^66
-- below, and knows no infinity (see gpu_product).
local LEAST, MOST = 2.0 ^ -60, 2.0 ^ 60

-- What does C -= A B in all processes, of factors of d.
local function updater(d)
    local is_tame = together(function()
        local _, _, _, largest = factor_steps.look(d.data)
        return not largest or largest == 0 or
            largest >= LEAST and largest <= MOST
    end)
    if layout.agree(is_tame) then return factor_steps.subtract end
    return function(C, A, B)
        library.matmul(A, B, {out = C, alpha = -1, beta = 1})
    end
end

-- Factors d panel by panel up to column `last`. Of the method:
--   factor(own)   in the owner: factors the panel in place, from its diagonal
--                 down, and gives numbers about it, in the host's memory, for
--                 which room(rows, width) is made in all
--   update(panel, from, to)   this process's columns behind the panel, which has
--                 the factored matrix and the numbers
--   left(panel)   those before it, or nil
--   noted(panel)  what all do with its numbers; true ends it
local function by_panels(d, last, method)
    local count = panel_count(d, last)
    local failed
    local function attempt(f, ...)
        if failed then return end
        local ok, message = pcall(f, ...)
        if not ok then failed = message end
    end
    -- Room for two panels, made before anything can fail.
    local flat = together(function()
        local size = smaller(d.width, last) * d.m
        return {layout.zeros(1, size, d.data.dtype),
            layout.zeros(1, size, d.data.dtype)}
    end)
    local function factor(panel)
        local own = own_columns(d, panel.before + 1, panel.upto, panel.j)
        panel.numbers = layout.plain(method.factor(own):to "cpu")
        panel.matrix[{{}, {}}] = own
    end
    local function open_panel(t)
        local panel = panel_at(d, t, last)
        local rows = d.m - panel.j + 1
        panel.matrix = flat[t % 2 + 1][{{}, {1, panel.width * rows}}]:reshape(
            panel.width, rows)
        panel.room = method.room(rows, panel.width)
        return panel
    end
    local function share(panel)
        return layout.begin_spread(panel.owner, panel.matrix)
    end
    local function share_numbers(panel)
        panel.numbers = panel.numbers or panel.room
        layout.spread(panel.owner, panel.numbers)
    end

    local panel = count > 0 and together(function() return open_panel(0) end)
    if panel then
        if panel.owner == layout.rank then attempt(factor, panel) end
        layout.finish(share(panel))
        share_numbers(panel)
    end
    for t = 0, count - 1 do
        together(function() if failed then error(failed, 0) end end)
        local next_panel
        local is_last = together(function()
            if method.noted(panel) then return true end
            next_panel = t + 1 < count and open_panel(t + 1)
        end)
        if is_last then return end
        local from, begun = panel.upto + 1, nil
        if next_panel and next_panel.owner == layout.rank then
            attempt(method.update, panel, from, next_panel.upto)
            attempt(factor, next_panel)
            from = next_panel.upto + 1
        end
        -- Only GPUs go on computing while they exchange.
        if next_panel and layout.device ~= "cpu" then begun = share(next_panel) end
        if from <= d.data.rows then attempt(method.update, panel, from, d.data.rows) end
        if method.left then attempt(method.left, panel) end
        if next_panel then
            share_numbers(next_panel)
            if begun == nil then begun = share(next_panel) end
            layout.finish(begun)
        end
        panel = next_panel
    end
    together(function() if failed then error(failed, 0) end end)
end

-- --- by NVIDIA's library -----------------------------------------------------

-- For several GPUs: see layout.work. Right sides may be few, which it does not take:
-- systems are solved as with factors of our own.

-- The kernels of a factorisation, the usual one first, as kernel_list has them;
-- is_of_library: what it does is to be looked at.
function factors.factor_kernels(operation)
    local list = {{name = operation == "eigh" and "first" or "panels",
        operation = operation, available = true, needs = "nothing"}}
    if layout.device ~= "cpu" then
        list[2] = layout.vendor_kernel(operation)
        list[2].operation, list[2].is_of_library = operation, true
    end
    return list
end

-- A row of numbers, so many or one.
local function numbers_for(count, dtype)
    return together(function() return layout.zeros(1, larger(1, count), dtype) end)
end

-- In place of p; what trouble there was. The numbers are p.numbers then.
local function factor_by_library(operation, p, dtype)
    p.numbers = dtype and numbers_for(p.data.rows, dtype)
    p.is_of_library = true
    return layout.work(operation, p, nil, nil, p.numbers)
end

-- By the library, unless there is nothing to do.
local function is_by_library(kernel, p)
    return kernel == layout.FACTORS and p.m > 0 and p.n > 0
end

-- With which row each row was exchanged, one after the other, by the columns of
-- the grid: its first row has them all.
local function exchanges_of(p)
    local place, all = layout.place, library.zeros(p.n, 1, here)
    for col = 0, place.cols - 1 do
        local list = together(function()
            local own = library.zeros(p.n, 1, here)
            local places = cyclic.places(p.n, p.nb, col, place.cols)
            if place.row == 0 and place.col == col and places.rows > 0 then
                own[{places, 1}] = p.numbers[{1, {1, places.rows}}]:to "cpu":flatten()
            end
            return own
        end)
        layout.spread(col, list)
        all = all + list
    end
    return all:flatten():totable()
end

-- The order of the rows that such exchanges lead to; 0: it stopped before.
local function order_after(exchanges)
    local order = {}
    for i = 1, #exchanges do order[i] = i end
    for i, other in ipairs(exchanges) do
        if other == 0 then other = i end
        if not (other >= i and other <= #exchanges) then
            error(("cuSOLVERMp exchanged row %d with %s"):format(i, other), 0)
        end
        order[i], order[other] = order[other], order[i]
    end
    return library.vec(order, here)
end

-- --- LU ----------------------------------------------------------------------

-- Rows of some columns exchanged: row moved[i] becomes what row from[i] was.
local function exchange_rows(data, panel)
    if panel.moved.rows > 0 and data.rows > 0 then
        data[{{}, panel.moved}] = data[{{}, panel.from}]
    end
end

-- A = P L U in place; the order of the rows, and the first column, from 1, whose
-- pivot is 0, or 0.
function factors.lu(p, kernel)
    local n = p.n
    if is_by_library(kernel, p) then
        local zero = factor_by_library("lu", p, "f64")
        return order_after(exchanges_of(p)), zero
    end
    local d = columns_of(p)
    local subtract = updater(d)
    local order, first = library.range(1, n, here), 0
    by_panels(d, n, {
        factor = function(own)
            local packed, places, _, zero = factor_steps.lu(own.T)
            own[{{}, {}}] = packed.T
            return library.vcat(places:col(), library.full(1, 1, zero, here))
        end,
        room = function(rows) return library.zeros(rows + 1, 1, here) end,
        noted = function(panel)
            local rows = n - panel.j + 1
            local places = panel.numbers[{{1, rows}, 1}]:reshape(rows)
            local zero = panel.numbers(rows + 1, 1)
            if zero > 0 and first == 0 then first = zero + panel.j - 1 end
            local moved = library.find(places:ne(library.range(1, rows, here)))
            local shift = panel.j - 1
            panel.from = moved.rows > 0 and places[moved] + shift or moved
            panel.moved = moved.rows > 0 and moved:f64() + shift or moved
            if moved.rows > 0 then
                order[panel.moved] = order[panel.from]:clone()
            end
        end,
        update = function(panel, from, to)
            local right = d.data[{{from, to}, {}}]
            exchange_rows(right, panel)
            local j, stop, width = panel.j, panel.stop, panel.width
            local x = factor_steps.triangle(panel.matrix[{{}, {1, width}}].T,
                right[{{}, {j, stop}}].T, {lower = true, unit = true}).T
            right[{{}, {j, stop}}] = x
            if stop < n then
                subtract(right[{{}, {stop + 1, n}}], x,
                    panel.matrix[{{}, {width + 1, n - j + 1}}])
            end
        end,
        left = function(panel)
            if panel.before > 0 then
                exchange_rows(d.data[{{1, panel.before}, {}}], panel)
            end
        end,
    })
    bring_back(p, d)
    return order, first
end

-- --- Cholesky ----------------------------------------------------------------

-- The lower triangle of a block by columns, as a whole Hermitian one.
local function whole(lower_by_columns)
    local a = lower_by_columns.T
    return library.tril(a) + library.tril(a, -1).H
end

-- Columns of which the update goes from the first one's row on.
local TALL = 4

-- A = L L^H in place of the lower triangle; the order of the first minor that is
-- not positive, or 0.
function factors.chol(p, kernel)
    local n, minor = p.n, 0
    if is_by_library(kernel, p) then return factor_by_library("chol", p) end
    local d = columns_of(p)
    local subtract = updater(d)
    local own_places = cyclic.places(n, d.nb, layout.rank, layout.count)
    by_panels(d, n, {
        factor = function(own)
            local width, height = own.rows, own.cols
            local l, bad = factor_steps.chol(whole(own[{{}, {1, width}}]))
            if not l then return library.full(1, 1, bad, here) end
            own[{{}, {1, width}}] = l.T
            if height > width then
                local below = {width + 1, height}
                own[{{}, below}] = factor_steps.triangle(l, own[{{}, below}]:conj(),
                    {lower = true}):conj()
            end
            return library.zeros(1, 1, here)
        end,
        room = function() return library.zeros(1, 1, here) end,
        noted = function(panel)
            local bad = panel.numbers(1, 1)
            if bad > 0 then minor = bad + panel.j - 1 end
            return bad > 0
        end,
        update = function(panel, from, to)
            for c = from, to, TALL * d.width do
                local last = smaller(c + TALL * d.width - 1, to)
                local columns = own_places[{{c, last}}]
                local top = columns(1)
                subtract(own_columns(d, c, last, top),
                    panel.matrix[{{}, columns - (panel.j - 1)}].H,
                    panel.matrix[{{}, {top - panel.j + 1, n - panel.j + 1}}])
            end
        end,
    })
    if minor == 0 then bring_back(p, d) end
    return minor
end

-- --- systems -----------------------------------------------------------------

-- b's columns in a row of processes, as evenly as they go.
local function sides_of(b)
    return layout.laid(b, layout.place, layout.in_a_row, larger(1, b.m),
        larger(1, (b.n + layout.count - 1) // layout.count))
end

-- Of a panel that has rows of the triangle: the block on its diagonal, that
-- beside it and the rows which belong to that, or nil.
local function blocks_of(d, panel, matrix, is_lower)
    local j, stop, width = panel.j, panel.stop, panel.width
    local rest
    if is_lower then
        if stop < d.n then rest = matrix[{{}, {width + 1, d.n - j + 1}}] end
        return matrix[{{}, {1, width}}], rest, {stop + 1, d.n}
    end
    if j > 1 then rest = matrix[{{}, {1, j - 1}}] end
    return matrix[{{}, {j, stop}}], rest, {1, j - 1}
end

-- x = T^-1 x for a triangle T of the factors in d: {lower=, unit=}, or of the
-- conjugate transpose of that, turned.
local function substitute(d, x, how)
    local count = panel_count(d, d.n)
    local goes_down = not not how.lower ~= not not how.turned
    for step = 0, count - 1 do
        local panel = panel_at(d, goes_down and step or count - 1 - step, d.n)
        local j, stop = panel.j, panel.stop
        local matrix = shared_panel(d, panel, how.lower and j or 1,
            how.lower and d.n or stop)
        together(function()
            local data = x.data
            if data.rows == 0 then return end
            local diagonal, rest, others = blocks_of(d, panel, matrix, how.lower)
            local side = data[{{}, {j, stop}}]
            if how.turned then
                if rest then side = side - data[{{}, others}] * rest:conj().T end
                data[{{}, {j, stop}}] = factor_steps.triangle(diagonal:conj(),
                    side.T, {lower = not how.lower}).T
                return
            end
            local solved = factor_steps.triangle(diagonal.T, side.T,
                {lower = how.lower, unit = how.unit}).T
            data[{{}, {j, stop}}] = solved
            if rest then
                library.matmul(solved, rest, {out = data[{{}, others}],
                    alpha = -1, beta = 1})
            end
        end)
    end
end

-- Into `into`, a column, the order that lu gave.
function factors.lu_order(_, order, _, into)
    into[{{}, {}}] = order:col()
end

-- B = A^-1 B, of what lu gave.
function factors.lu_solve(p, order, b)
    local d, x = columns_of(p), sides_of(b)
    together(function()
        if x.data.rows > 0 then x.data = x.data[{{}, order}]:clone() end
    end)
    substitute(d, x, {lower = true, unit = true})
    substitute(d, x, {})
    layout.lay_back(b, x, layout.in_a_row)
end

function factors.chol_solve(p, b)
    local d, x = columns_of(p), sides_of(b)
    substitute(d, x, {lower = true})
    substitute(d, x, {lower = true, turned = true})
    layout.lay_back(b, x, layout.in_a_row)
end

-- --- QR ----------------------------------------------------------------------

-- Reflections in place of A below R. What qr_q wants of them.
function factors.qr(p, kernel)
    if is_by_library(kernel, p) then
        factor_by_library("qr", p, p.data.dtype)
        return p.numbers
    end
    local d, taus = columns_of(p), {}
    by_panels(d, smaller(p.m, p.n), {
        factor = function(own)
            local packed, tau = factor_steps.qr(own.T)
            own[{{}, {}}] = packed.T
            return tau:col()
        end,
        room = function(_, width)
            return library.zeros(width, 1, {dtype = d.data.dtype, device = "cpu"})
        end,
        noted = function(panel)
            taus[panel.j] = panel.numbers:reshape(panel.width):to(layout.device)
        end,
        update = function(panel, from, to)
            local right = own_columns(d, from, to, panel.j)
            right[{{}, {}}] = factor_steps.qr_apply(panel.matrix.T, taus[panel.j],
                true, right.T).T
        end,
    })
    bring_back(p, d)
    return taus
end

-- A part of the unit matrix, in a row of processes as d is.
local function unit_like(d)
    local q = layout.part_of(layout.in_a_row, d.m, d.n, d.mb, d.nb, d.data.dtype)
    local places = cyclic.places(d.n, d.nb, layout.rank, layout.count)
    if places.rows > 0 and d.m > 0 then
        local i = library.range(1, d.m, {dtype = "f64", device = layout.device})
        local same = places:to(layout.device):col():eq(i:row())
        q.data = library[d.data.dtype](same:f32())
    end
    return q
end

-- The first columns of Q, as many as there are reflections, in the part `into`.
function factors.qr_q(p, taus, into)
    if p.is_of_library then
        layout.work("apply_q", p, into, nil, p.numbers)
        return
    end
    local d = columns_of(p)
    local least = smaller(p.m, p.n)
    local q = together(function() return unit_like(d) end)
    for t = panel_count(d, least) - 1, 0, -1 do
        local panel = panel_at(d, t, least)
        local matrix = shared_panel(d, panel, panel.j, d.m)
        together(function()
            if q.data.rows == 0 then return end
            local rows = q.data[{{}, {panel.j, d.m}}]
            rows[{{}, {}}] = factor_steps.qr_apply(matrix.T, taus[panel.j], false,
                rows.T).T
        end)
    end
    layout.move(into, layout.place, 1, 1, q, layout.in_a_row, 1, 1, into.m, into.n)
end

-- --- values ------------------------------------------------------------------
--
-- By the first process, of the whole matrix, which has to fit there, but for
-- eigenvalues by NVIDIA's library.

-- What the first process finds: f(A) gives n real values, which all get, and
-- matrices that go into the parts, in their order, by columns.
local function by_the_first(a, n, f, ...)
    local whole_of = layout.laid(a, layout.place, layout.alone, larger(1, a.m),
        larger(1, a.n))
    local found = {}
    local values = together(function()
        if layout.rank > 0 then return library.zeros(n, 1, here) end
        found = {f(whole_of.data.T)}
        return layout.plain(found[1]:to "cpu":f64():col())
    end)
    layout.spread(0, values)
    for i, part in ipairs{...} do
        local from = together(function()
            return {m = part.m, n = part.n, mb = larger(1, part.m),
                nb = larger(1, part.n), data = found[i + 1] and
                    layout.plain(found[i + 1]) or
                    layout.zeros(0, 0, part.data.dtype)}
        end)
        layout.lay_back(part, from, layout.alone)
    end
    values = values:reshape(n)
    return checks.is_wide(a.data) and values or values:f32(), 0
end

local function converged(values, ...)
    if not values then error("the iteration did not converge", 0) end
    return values, ...
end

-- Values in rising order and info; the vectors go into z. a is lost.
function factors.eigh(a, z, kernel)
    if is_by_library(kernel, a) then
        local real = checks.is_wide(a.data) and "f64" or "f32"
        local values = numbers_for(a.n, real)
        local info = layout.work("eigh", a, z, nil, values)
        return values:flatten():to "cpu", info
    end
    return by_the_first(a, a.n, function(A)
        local values, vectors = converged(factor_steps.eigh(A, true))
        return values, vectors.T
    end, z)
end

-- Singular values of a real A and info; U, and the transpose of V.
function factors.svd(a, u, v)
    return by_the_first(a, smaller(a.m, a.n), function(A)
        local values, left, right = converged(factor_steps.svd(A, "thin"))
        return values, left.T, right
    end, u, v)
end

return factors
