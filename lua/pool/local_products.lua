-- Products of matrices that lie on processes which their prompt started itself.
--
-- C = A B by panels of k, each of blocks that one column of the grid has of A
-- and one row of B: of every period-th. As in SUMMA (van de Geijn and Watts,
-- Concurrency 9, 1997) who has A's columns of a panel gives them to its row of
-- the grid, and who has B's rows to its column, while the panel before is
-- multiplied; but each process begins with another panel, as Cannon's do (1969),
-- one that it has in a row of processes: so no link waits while another carries
-- what all want, and nobody waits for the first one.
local library = ...
local checks = require "lumat.checks"
local cyclic = require "lumat.block_cyclic"
local layout = require "lumat.local_layout"
local rounding = require "lumat.products"
local ranks = require "lumat.ranks"
local error, ipairs, pcall, require = error, ipairs, pcall, require
local sizes, together = ranks.sizes, ranks.together
local larger, smaller = math.max, math.min
local products = {}

-- Columns of a panel on the CPU. On GPUs a panel is as wide as layout.room has
-- bytes for: with each, all of C is read and written.
local NARROW = 1024
-- Columns of a panel of which it is asked which kernel it has.
local ENOUGH = 4096

local function greatest_divisor(x, y)
    while y > 0 do x, y = y, x % y end
    return x
end

-- How op(A) op(B), m x n of inner size k, is cut: `steps` panels for each
-- process, of at most so many blocks.
local function cut(m, n, k, block, dtype)
    local place, total = layout.place, (k + block - 1) // block
    local period = place.rows * place.cols //
        greatest_divisor(place.rows, place.cols)
    local lines = cyclic.count(m, block, 0, place.rows) +
        cyclic.count(n, block, 0, place.cols)
    local each = (total + period - 1) // period -- blocks in a line
    local width = layout.panel or layout.device == "cpu" and NARROW or
        layout.room // (sizes[dtype] * larger(1, lines))
    local most = larger(1, layout.count == 1 and each or width // block)
    local rounds = (each + most - 1) // most
    return {k = k, block = block, total = total, period = period,
        shares = smaller(period, total), steps = rounds * smaller(period, total),
        most = rounds > 0 and (each + rounds - 1) // rounds or most}
end

-- The panel of the process in that place at a step, from 0; nil: none is left.
local function panel_at(w, step, row, col)
    local place = layout.place
    local s = (step + row + col) % w.shares
    local first = s + w.period * w.most * (step // w.shares)
    if first >= w.total then return end
    return {first = first, row = s % place.rows, col = s % place.cols,
        blocks = smaller(w.most, (w.total - 1 - first) // w.period + 1)}
end

-- Where its columns of A, or rows of B, lie in the parts of those who have them,
-- which are every so many-th: a range where they lie one behind the other, else
-- a list.
local function numbers_of(w, panel, processes)
    local block, first = w.block, panel.first
    local apart = w.period // processes
    local own = cyclic.count(w.k, block, first % processes, processes)
    local from = first // processes * block + 1
    local upto = smaller(own, from - 1 + ((panel.blocks - 1) * apart + 1) * block)
    if apart == 1 then return {from, upto} end
    return (cyclic.places(own, block, first // processes % apart, apart, from, upto))
end

local function width_of(w, panel)
    local last = panel.first + (panel.blocks - 1) * w.period
    return (panel.blocks - 1) * w.block + smaller(w.block, w.k - last * w.block)
end

-- At a step of process (row, col) what it multiplies; and what it gives and gets
-- then, by processes. What goes to nobody stays where it lies.
local function prepare(a, b, w, step)
    local place = layout.place
    local own = panel_at(w, step, place.row, place.col) or {}
    own.outgoing, own.incoming = {}, {}
    local has, given = {}, {}
    for col = 0, place.cols - 1 do
        local panel = panel_at(w, step, place.row, col)
        if panel and panel.col == place.col then
            local at = numbers_of(w, panel, place.cols)
            has[panel.first] = has[panel.first] or layout.plain(a.data[{at, {}}])
            if col ~= place.col then
                own.outgoing[place.row * place.cols + col + 1] = has[panel.first]
            end
        end
    end
    local function rows_of_b(panel)
        return b.data[{{}, numbers_of(w, panel, place.rows)}]
    end
    for row = 0, place.rows - 1 do
        local panel = row ~= place.row and panel_at(w, step, row, place.col)
        if panel and panel.row == place.row then
            given[panel.first] = given[panel.first] or layout.plain(rows_of_b(panel))
            own.outgoing[row * place.cols + place.col + 1] = given[panel.first]
        end
    end
    if not own.first then return own end
    local width = width_of(w, own)
    own.a, own.b = has[own.first], given[own.first]
    if own.col ~= place.col then
        own.a = cyclic.unset(a.data, width, a.data.cols)
        own.incoming[place.row * place.cols + own.col + 1] = own.a
    end
    if own.row ~= place.row then
        own.b = cyclic.unset(b.data, b.data.rows, width)
        own.incoming[own.row * place.cols + place.col + 1] = own.b
    end
    own.rows_of_b = rows_of_b -- when they are needed: then the GPU has work
    return own
end

-- What comes first takes the place of C, so that C is not read for it.
local function add_product(c, panel, kernel, is_first)
    if not panel.first or c.data.rows == 0 or c.data.cols == 0 then return end
    library.matmul(panel.b or panel.rows_of_b(panel), panel.a,
        {out = c.data, beta = is_first and 0 or 1, kernel = kernel})
end

function products.transpose(c, a, conjugated)
    layout.move(c, layout.place, 1, 1, a, layout.place, 1, 1, a.m, a.n,
        conjugated and "C" or "T")
end

-- op(A), as a matrix of its own where that is not A, with blocks that go with
-- it.
local function turned(a, op)
    if op == "N" then return a end
    local t = together(function()
        return layout.part_of(layout.place, a.n, a.m, a.nb, a.mb, a.data.dtype)
    end)
    products.transpose(t, a, op == "C")
    return t
end

-- Unless k is 0 it writes all of C.
products.sets_products = true

-- C = op(A) op(B), of inner size k, by the kernel of that name or the fastest;
-- where k is 0 C is 0 before. While a panel is multiplied the next is on its way.
function products.multiply(c, a, b, op_a, op_b, k, kernel)
    a, b = turned(a, op_a), turned(b, op_b)
    if kernel == layout.PRODUCTS and c.m > 0 and c.n > 0 and k > 0 then
        together(function() c.data[{{}, {}}] = 0 end) -- it may read what it scales
        layout.work("product", a, b, c)
        return
    end
    local w, failed = cut(c.m, c.n, k, a.nb, c.data.dtype), nil
    local panel, begun
    local function begin_panel(step)
        local prepared = together(function()
            if failed then error(failed, 0) end
            return step < w.steps and prepare(a, b, w, step) or nil
        end)
        if not prepared then return end
        return prepared, layout.begin(prepared.outgoing, prepared.incoming)
    end
    panel, begun = begin_panel(0)
    for step = 1, w.steps do
        layout.finish(begun)
        local before = panel
        panel, begun = begin_panel(step)
        local ok, message = pcall(add_product, c, before, kernel, step == 1)
        if not ok then failed = message end
    end
    if w.steps > 0 then begin_panel(w.steps) end
end

-- Products of complex numbers have no kernels to choose from in a process.
local of_complex = {name = "auto", operation = "matmul", precision = "f32",
    available = true, needs = "nothing", c64 = true, c128 = true,
    idea = "products of complex numbers have one way in each process"}

-- Behind the list of a process's own kernels that of all GPUs.
local function with_library(list, bound)
    if layout.device == "cpu" then return list end
    local row = layout.vendor_kernel "product"
    row.operation, row.precision, row.bound = "matmul", "f32", bound
    row.f32, row.f64, row.c64, row.c128 = true, true, true, true
    row.idea = "NVIDIA's product of matrices on several GPUs, where its library " ..
        "is found"
    list[#list + 1] = row
    return list
end

-- The kernels that multiply may be told to take for op(A) op(B), as kernel_list
-- has them, each with the gamma that it promises of the sum of all panels; and
-- the one that "auto" takes for the first panel of this process.
function products.kernels(a, b, op_a, op_b, k)
    if checks.is_complex(a.data) then
        return {list = with_library{of_complex}, choice = "auto"}
    end
    local rows, cols = a.data.cols, b.data.rows
    local block, dtype = a.nb, a.data.dtype
    if op_a ~= "N" then rows, block = a.data.rows, a.mb end
    if op_b ~= "N" then cols = b.data.cols end
    local real = checks.is_wide(a.data) and "f64" or "f32"
    local w, list = cut(op_a == "N" and a.m or a.n, op_b == "N" and b.n or b.m, k,
        block, dtype), {}
    for _, kernel in ipairs(library.kernel_list(layout.device)) do
        if kernel.operation == "matmul" then
            kernel.bound = library.kernel_bound("matmul", kernel.name, real, k,
                layout.device) + rounding.gamma(real, w.steps)
            list[#list + 1] = kernel
        end
    end
    local first = w.steps > 0 and panel_at(w, 0, layout.place.row, layout.place.col)
    local width = first and smaller(first.blocks * block, k, ENOUGH) or 0
    with_library(list, rounding.gamma(real, k))
    return {list = list, choice = library.kernel_choice(
        layout.zeros(rows, width, dtype), layout.zeros(width, cols, dtype))}
end

return products
