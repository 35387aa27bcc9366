-- A model to try with figures of your own: how much faster are products and LU
-- factors of matrices that lie on 2 to 1024 GPUs, and what bounds them?
--   lumat study_scaling.lua [--name value …]
--     --n 32768          rows and columns; of one GPU's share with --weak
--     --weak             n grows with the square root of the number of GPUs, so
--                        that each holds as much
--     --dtype f32        f32, as two planes of 16 bits, or f64
--     --most 1024        GPUs, from 1 on by powers of two
--     --grid 2x4         one grid alone, of rows and columns of GPUs; else that
--                        which is fastest ahead
--     --tflops 210       of a product of 32768 on one GPU; f64 55.5
--     --half 200         a product whose sides are so long reaches half of what a
--                        very large one does
--     --block 4096       columns of a panel of a product, --lu_block 1024 of LU
--     --panel_tflops 8   of the factors of a panel of LU on one GPU
--     --pivot 5          us for each halving of a column's search for its pivot
--     --hosted 8         GPUs in a host
--     --inside 369       GB/s that a GPU receives from others of its host
--     --between 45       GB/s that it receives from another host
--     --latency 15       us of a message in a host, --far_latency 25 between two
-- Given figures are those of H200 GPUs: tflops (f32 split into planes, f64 by
-- dmma) and half are those of the kernels; inside and latency are two GPUs' with
-- 18 links, where a broadcast had 369 GB/s at 2 GiB, 360 at 256 MiB and 279 at
-- 16 MiB. What was not measured, but guessed: more than two GPUs, other hosts (a
-- card of 400 Gb/s for each GPU is thought of), panel_tflops, pivot. Try others.
--
-- A product is SUMMA's (van de Geijn and Watts, 1997): of every panel of columns
-- of A a GPU receives what its row of the grid has, of every panel of rows of B
-- what its column has, then multiplies. LU takes panels from the left to the
-- right, pivots rows across a column of the grid and updates the rest. `plain`
-- does one after the other; `ahead` receives, and factors, the next panel while
-- it multiplies, with two buffers. Both are told as many times as fast as `ahead`
-- is on one GPU, and as a share of the number of GPUs. Elements are bytes that are sent once: two
-- planes have as many as the f32 that they are made of.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local o = {n = 32768, most = 1024, half = 200, block = 4096, lu_block = 1024,
    panel_tflops = 8, pivot = 5, hosted = 8, inside = 369, between = 45, latency = 15,
    far_latency = 25, dtype = "f32"}

local kinds = {weak = "switch", dtype = "text", grid = "text", tflops = "number"}
for name in pairs(o) do kinds[name] = kinds[name] or "number" end
local given, usage = require "options"("study_scaling", "[--n N] [--weak] " ..
    "[--dtype f32|f64] [--most GPUS] [--grid RxC] [--tflops T] …, see its " ..
    "first lines", kinds)
for name, value in pairs(given) do o[name] = value end
if o.grid then
    local rows, cols = o.grid:match "^([1-9]%d*)x([1-9]%d*)$"
    if not rows then usage("--grid is " .. o.grid .. ", expected as 2x4") end
    o.grid = {tonumber(rows), tonumber(cols)}
end
local bytes = ({f32 = 4, f64 = 8})[o.dtype] or usage("--dtype is f32 or f64")
o.tflops = o.tflops or o.dtype == "f32" and 210 or 55.5

-- --- one device, one link ------------------------------------------------------

local AT = 32768 -- where tflops was measured

-- Seconds of a product of m x k and k x n, whose shorter sides slow it down.
local function product_seconds(m, n, k)
    local function share(s) return s / (s + o.half) end
    local rate = o.tflops * 1e12 * share(math.sqrt(m * n)) / share(AT)
    return 2 * m * n * k / rate
end

local function steps_of(count) return math.ceil(math.log(count, 2) - 1e-9) end

-- A line of `count` GPUs whose neighbours in it are `stride` apart: do all of it
-- lie in one host?
local function is_inside(count, stride)
    return (count - 1) * stride + 1 <= o.hosted
end

-- What costs time, in seconds: of products, of panels, of bytes in a host and
-- between hosts, of messages' starts.
local function nothing()
    return {products = 0, panels = 0, inside = 0, between = 0, latency = 0}
end

-- Adds `size` bytes that each GPU of a line receives in `messages` rounds.
local function receive(t, size, count, stride, messages)
    if count == 1 then return end
    local inside = is_inside(count, stride)
    local kind = inside and "inside" or "between"
    t[kind] = t[kind] + size / (o[kind] * 1e9)
    t.latency = t.latency + (messages or 1) * steps_of(count) *
        (inside and o.latency or o.far_latency) * 1e-6
end

local function exchange_of(t) return t.inside + t.between + t.latency end
local function work_of(t) return t.products + t.panels end

-- --- SUMMA ---------------------------------------------------------------------

-- Seconds of a product on a grid, one after the other and ahead, and what they
-- consist of.
local function product(n, rows, cols)
    local m, k = math.ceil(n / rows), math.ceil(n / cols)
    local t, steps = nothing(), math.ceil(n / o.block)
    t.products = product_seconds(m, k, n)
    for _ = 1, steps do
        local width = n / steps
        receive(t, bytes * m * width * (cols - 1) / cols, cols, 1)
        receive(t, bytes * k * width * (rows - 1) / rows, rows, cols)
    end
    local exchange = exchange_of(t)
    local ahead = exchange / steps + math.max(t.products, exchange) *
        (steps - 1) / steps + t.products / steps
    return t.products + exchange, ahead, t
end

-- --- LU ------------------------------------------------------------------------

-- A step with so many rows left: its panel, with what that takes to send, and
-- its update, each with what it consists of.
local function lu_step(left, b, rows, cols)
    local panel, update = nothing(), nothing()
    local m, k = math.ceil(left / rows), math.ceil(math.max(left - b, 0) / cols)
    panel.panels = m * b * b / (o.panel_tflops * 1e12)
    panel.latency = 2 * b * steps_of(rows) * o.pivot * 1e-6 -- its place, its row
    receive(panel, bytes * m * b, cols, 1)
    receive(update, 2 * bytes * b * k, rows, cols) -- rows that change places
    receive(update, bytes * b * k, rows, cols)
    update.products = product_seconds(math.max(m - b / rows, 1), math.max(k, 1), b)
    return panel, update
end

local function add(t, more)
    for name, seconds in pairs(more) do t[name] = t[name] + seconds end
end

local function lu(n, rows, cols)
    local t, plain, ahead = nothing(), 0, 0
    local b, before = math.min(o.lu_block, n), 0
    for left = n, 1, -b do
        local panel, update = lu_step(left, math.min(b, left), rows, cols)
        local own, rest = work_of(panel) + exchange_of(panel), work_of(update) +
            exchange_of(update)
        add(t, panel)
        add(t, update)
        plain, ahead = plain + own + rest, ahead + math.max(own, before)
        before = rest
    end
    return plain, ahead + before, t
end

-- --- the table -------------------------------------------------------------------

-- The grid of so many that is fastest ahead.
local function best_grid(f, n, count)
    local best, rows
    for r = 1, count do
        if count % r == 0 then
            local _, seconds = f(n, r, count // r)
            if not best or seconds < best then best, rows = seconds, r end
        end
    end
    return rows, count // rows
end

local names = {products = "products", panels = "panels", inside =
    "links in a host", between = "links between hosts", latency = "latency"}

-- What takes longest; where it is hidden behind products, these are.
local function bound_of(t)
    local most = "products"
    if exchange_of(t) + t.panels > t.products then
        for name, seconds in pairs(t) do
            if name ~= "products" and (most == "products" or seconds > t[most]) then
                most = name
            end
        end
    end
    return names[most]
end

-- A line of the table, of so many GPUs.
local function line(f, count)
    local n = o.weak and math.floor(o.n * math.sqrt(count)) or o.n
    local rows, cols = 1, count
    if o.grid then rows, cols = o.grid[1], o.grid[2] else
        rows, cols = best_grid(f, n, count)
    end
    local plain, ahead, t = f(n, rows, cols)
    local _, alone = f(o.n, 1, 1)
    local times = (n / o.n) ^ 3 * alone -- on one GPU
    print(("%5d  %7s  %8d  %8.2f  %9.1f  %8.1f  %8.1f  %7.2f  %5.1f %%  %7.2f  %5.1f %%  %s")
        :format(count, rows .. "x" .. cols, n, 3 * bytes * n * n / count / 2 ^ 30,
        1e3 * work_of(t), 1e3 * exchange_of(t), 1e3 * ahead, times / plain,
        100 * times / plain / count, times / ahead, 100 * times / ahead / count,
        bound_of(t)))
end

local function show(title, f)
    print(("%s, %s, %s"):format(title, o.dtype, o.weak and
        o.n .. " for each GPU" or "n = " .. o.n))
    print(" GPUs     grid         n  GiB each    work ms   exch ms  ahead ms  " ..
        " plain             ahead            bound by")
    if o.grid then
        line(f, o.grid[1] * o.grid[2])
    else
        local count = 1
        while count <= o.most do
            line(f, count)
            count = 2 * count
        end
    end
    print()
end

show("Products", product)
show("LU factors", lu)
