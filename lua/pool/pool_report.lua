-- What commands of a pool take, for :cost, :trace and :pool: by a model of what
-- each of its processes computes and receives, and as it was measured.
local library = ...
local checks = require "lumat.checks"
local unit_text = require "lumat.unit_text"
local fail = checks.fail
local io, ipairs, select, type = io, ipairs, select, type
local concat, sort = table.concat, table.sort
local format = string.format
local larger, smaller = math.max, math.min
local report = {}

local function bytes_text(x) return unit_text.bytes(x, "%.3g") end
local function seconds_text(x) return unit_text.seconds(x, "%.3g") end

-- --- the model ---------------------------------------------------------------

local sizes = require "lumat.ranks".sizes

-- Operations of a product of types, beside those of real ones.
local function weight(w)
    return (w.dtype == "c64" or w.dtype == "c128") and 4 or 1
end

-- Of what others have, the share that comes over links.
local function share(n) return (n - 1) / n end

-- Each gives operations of all processes, and bytes that one receives: of
-- products by SUMMA (van de Geijn and Watts, 1997), where a process gets its
-- rows of A and its columns of B; of factors, where panels go along rows and
-- columns of the grid; of what is moved, all that does not lie there already.
local models = {}

function models.multiply(p, id, a, _, _, _, m, n, k)
    local w = p.by_id[a]
    local s = sizes[w.dtype]
    return 2.0 * weight(w) * m * n * k,
        s * k * (m / p.rows * share(p.cols) + n / p.cols * share(p.rows))
end

local function moved(p, id)
    local w = p.by_id[id]
    return 0, sizes[w.dtype] * w.m * w.n / p.count * share(p.count)
end
models.transpose, models.block, models.take = moved, moved, moved
function models.place(p, _, _, _, from) return moved(p, from) end
function models.assign(p, _, _, _, from) return moved(p, from) end

-- Of factors: operations for n^3, and panels of n^2 / 2 along the lines.
local function factors_of(flops, panels)
    return function(p, id)
        local w = p.by_id[id]
        local m, n = larger(w.m, w.n), smaller(w.m, w.n)
        return weight(w) * flops(m, n), panels * sizes[w.dtype] * m * n / 2 *
            (share(p.cols) / p.rows + share(p.rows) / p.cols)
    end
end
models.lu = factors_of(function(_, n) return 2 / 3 * n ^ 3 end, 1)
models.chol = factors_of(function(_, n) return n ^ 3 / 3 end, 1)
models.qr = factors_of(function(m, n) return 2 * n * n * (m - n / 3) end, 2)
models.qr_q = models.qr
models.eigh = factors_of(function(_, n) return 9 * n ^ 3 end, 4)
models.svd = factors_of(function(m, n) return 22 * m * n * n end, 8)
function models.solve(p, id, from)
    local w, a = p.by_id[id], p.by_id[from]
    return 2.0 * weight(w) * a.n * a.n * w.n, sizes[w.dtype] * w.m *
        (w.n / p.cols * share(p.rows) + a.n / 2 / p.rows * share(p.cols))
end

local function each_element(p, id)
    local w = p.by_id[id]
    return w.m * w.n, 0
end
models.map, models.convert, models.reduce = each_element, each_element,
    each_element
models.reduce_axis = each_element

-- What is made without any of these.
local made = {zeros = true, full = true, eye = true, random = true, put = true,
    load = true, triangle = true, fill = true, set = true, fill_where = true,
    free = true, scan_blocks = true, scan_join = true, get = true,
    diagonal = true, factor_kernels = true, lu_order = true}
-- What makes no part: those that are there are read, or changed.
local keeps_none = {get = true, diagonal = true, reduce = true,
    reduce_axis = true, assign = true, place = true, set = true, fill = true,
    fill_where = true, scan_join = true, free = true, factor_kernels = true,
    lu_order = true}

-- Operations of all, and bytes that each receives; nil: it has no model.
local function estimate(p, name, ...)
    if models[name] then return models[name](p, ...) end
    if made[name] then return 0, 0 end
end

-- --- :cost -------------------------------------------------------------------

local dry -- what was noted of the pool that was told anything

local comparing = {eq = true, ne = true, lt = true, le = true, gt = true,
    ge = true, isnan = true, isinf = true, isfinite = true, land = true,
    lor = true, lnot = true, lxor = true}
local real_of = {c64 = "f32", c128 = "f64"}
local to_real = {abs = true, real = true, imag = true, angle = true}

-- The type of name(operands…), as processes would answer.
local function type_of(p, name, ...)
    if comparing[name] then return "bool" end
    local dtype = "f32"
    for i = 1, select("#", ...) do
        local x = select(i, ...)
        local w = type(x) == "table" and {dtype = x.part and p.by_id[x.part].dtype
            or x.row or x.col or "c64"}
        if w then dtype = checks.wider_type({dtype = dtype}, w) end
    end
    return to_real[name] and real_of[dtype] or dtype
end

-- In a dry run, in place of what processes would answer.
function report.note(p, what, name, ...)
    local flops, bytes = estimate(p, name, ...)
    if not flops then
        fail(what, "this depends on elements, which lie on the processes")
    end
    if not dry or dry.p ~= p then
        dry = {p = p, flops = 0, bytes = 0, count = 0, kept = 0}
    end
    dry.flops, dry.bytes = dry.flops + flops, dry.bytes + bytes
    dry.count = dry.count + 1
    local w = p.by_id[(...)]
    if w and not keeps_none[name] then
        dry.kept = dry.kept + sizes[w.dtype] * w.m * w.n / p.count
    end
    local answer = 0
    if name == "map" then
        answer = type_of(p, (select(2, ...)), select(4, ...))
    elseif name == "eigh" or name == "svd" or name == "lu_order" then
        answer = {0, 0}
    end
    local values = {}
    for number = 1, p.count do values[number] = answer end
    return values
end

-- The lines of what was noted, and the figures; nothing where no pool was told
-- anything.
function report.taken()
    local found = dry
    dry = nil
    if not found then return {} end
    local p = found.p
    return {format("on the pool: %s for each of %d processes, %s over links to " ..
        "each (SUMMA's model), %s of parts in each, %s",
        unit_text.flops(found.flops / p.count, "%.3g"), p.count,
        bytes_text(found.bytes), bytes_text(found.kept), checks.plural(found.count, "command"))},
        {flops = found.flops, link_bytes = found.bytes, kept = found.kept,
            commands = found.count}
end

-- --- :trace ------------------------------------------------------------------

local quiet = {traffic = true, stop_traffic = true, free = true, memory = true,
    host = true, ping = true, link_times = true, factor_kernels = true}

-- Each pair with what went from one to the other, the most first.
local function links_text(answers)
    local list, total = {}, 0
    for from, counted in ipairs(answers) do
        for to, bytes in ipairs(counted) do
            if bytes > 0 then
                list[#list + 1] = {from, to, bytes}
                total = total + bytes
            end
        end
    end
    sort(list, function(x, y)
        if x[3] ~= y[3] then return x[3] > y[3] end
        return x[1] < y[1] or x[1] == y[1] and x[2] < y[2]
    end)
    local texts = {}
    for i = 1, smaller(#list, 6) do
        texts[i] = format("%d to %d %s", list[i][1], list[i][2],
            bytes_text(list[i][3]))
    end
    if #list > 6 then texts[7] = format("%d more links", #list - 6) end
    return format("%s over links%s", bytes_text(total),
        #list > 0 and ": " .. concat(texts, ", ") or "")
end

-- ask(name, …), with a line of what it took. What goes to other processes is
-- counted.
function report.traced(p, ask, name, ...)
    if quiet[name] then return ask(name, ...) end
    ask "traffic"
    local began = library.clock()
    local values = ask(name, ...)
    local seconds = library.clock() - began
    local flops = estimate(p, name, ...)
    local moved_text = links_text(ask "traffic")
    ask "stop_traffic"
    local rate = flops and flops > 0 and format("  %.4g GFLOP/s",
        flops / seconds / 1e9) or ""
    io.stderr:write(format("  pool %dx%d  %s  %s%s  %s\n", p.rows, p.cols, name,
        seconds_text(seconds), rate, moved_text))
    return values
end

-- --- :pool -------------------------------------------------------------------

-- Between neighbours, measured once: lines of text.
local function measured_links(p, ask)
    if p.count == 1 then return {} end
    local slowest, fastest, first, last = 0, 1e9, 1e9, 0
    for phase = 0, 1 do
        for _, found in ipairs(ask("link_times", phase)) do
            if found[1] then
                first, last = smaller(first, found[1]), larger(last, found[1])
                slowest = larger(slowest, found[2])
                fastest = smaller(fastest, found[2])
            end
        end
    end
    local function rate(x) return 2 ^ 20 / x / 1e9 end
    return {format("  between neighbours: %.3g to %.3g GB/s at 1 MiB, %s to %s " ..
        "for a small message", rate(slowest), rate(fastest), seconds_text(first),
        seconds_text(last))}
end

-- hosts: {name, count, free, total} of each.
function report.lines(p, ask, hosts)
    local lines = {}
    for _, h in ipairs(hosts) do
        lines[#lines + 1] = format("  %s: %s, %s free of %s", h.name,
            checks.plural(h.count, "process", "processes"),
            bytes_text(h.free), bytes_text(h.total))
    end
    if not p.link_lines then p.link_lines = measured_links(p, ask) end
    for _, line in ipairs(p.link_lines) do lines[#lines + 1] = line end
    return lines
end

return report
