-- What an expression would take: it is called in a dry run, in which nothing is
-- computed and nothing of the user's is touched; here is what is said of it.
local library, _, _, own = ...
local amounts, checks = require "lumat.unit_text", require "lumat.checks"
local error, ipairs, pcall, rawequal, type = error, ipairs, pcall, rawequal,
    type
local concat, sort = table.concat, table.sort
local format, gsub, match = string.format, string.gsub, string.match
local huge, smaller = math.huge, math.min
local report = {}

-- --- what a chain of products could cost ----------------------------------

-- Factors from left to right, as far as brackets may be moved: a vector that
-- is a row or a column stays at its end, and what is used again stays whole.
local function add_factors(s, list, is_root, is_left)
    local free = s.left and (is_root or s.used == 1) and
        (s.ndim == 2 or is_root or
            (is_left and s.left.ndim == 1) or
            (not is_left and s.right.ndim == 1))
    if not free then
        list[#list + 1] = s
        return
    end
    add_factors(s.left, list, false, true)
    add_factors(s.right, list, false, false)
end

local function name_of(s)
    return s.name or "(" .. checks.shape_of(s) .. ")"
end

-- The text of the products as they are, or in the best order.
local function text_of(s, list)
    for _, factor in ipairs(list) do
        if rawequal(factor, s) then return name_of(s) end
    end
    local a, b = text_of(s.left, list), text_of(s.right, list)
    if match(b, "^%(?.* %* ") and s.right.left then b = "(" .. b .. ")" end
    return a .. " * " .. b
end

-- Source: Cormen et al., Introduction to Algorithms, section 15.2.
local function best_order(sizes)
    local n = #sizes - 1
    local cost, split = {}, {}
    for i = 1, n do cost[i], split[i] = {[i] = 0}, {} end
    for length = 2, n do
        for i = 1, n - length + 1 do
            local j = i + length - 1
            cost[i][j] = huge
            for k = i, j - 1 do
                local c = cost[i][k] + cost[k + 1][j] +
                    2.0 * sizes[i] * sizes[k + 1] * sizes[j + 1]
                if c < cost[i][j] then cost[i][j], split[i][j] = c, k end
            end
        end
    end
    return cost[1][n], split
end

local function ordered_text(list, split, i, j)
    if i == j then return name_of(list[i]) end
    local k = split[i][j]
    local a, b = ordered_text(list, split, i, k),
        ordered_text(list, split, k + 1, j)
    return a .. " * " .. (k + 1 < j and "(" .. b .. ")" or b)
end

-- What the products take in that order: in a dry run as well.
local function ordered_seconds(s, sizes, split)
    local options = {dtype = s.dtype, device = s.device}
    local function product(i, j)
        if i == j then return library.zeros(sizes[i], sizes[i + 1], options) end
        local k = split[i][j]
        return library.matmul(product(i, k), product(k + 1, j))
    end
    local seconds = 0
    local run = own.dry_run(function() product(1, #sizes - 1) end)
    for _, p in ipairs(run.products) do seconds = seconds + p.seconds end
    return seconds
end

-- Flops and seconds of the products under s that are its own.
local function chain_cost(s, list)
    for _, factor in ipairs(list) do
        if rawequal(factor, s) then return 0, 0 end
    end
    local a, x = chain_cost(s.left, list)
    local b, y = chain_cost(s.right, list)
    return a + b + s.flops, x + y + s.seconds
end

-- A better order of the chain that ends in s, if there is one.
local function hint_for(s)
    local list, sizes = {}, {}
    add_factors(s, list, true, false)
    if #list < 3 then return nil end
    sizes[1] = list[1].ndim == 1 and 1 or list[1].rows
    for i, factor in ipairs(list) do
        local is_row = i == 1 and factor.ndim == 1
        sizes[i + 1] = is_row and factor.rows or
            factor.ndim == 1 and 1 or factor.cols
    end
    local flops, seconds = chain_cost(s, list)
    local best, split = best_order(sizes)
    if best > 0.9 * flops then return nil end
    return {better = ordered_text(list, split, 1, #list), flops = best,
        seconds = ordered_seconds(s, sizes, split),
        instead_of = text_of(s, list), their_flops = flops,
        their_seconds = seconds}
end

local function hints_of(products)
    local hints, inner = {}, {}
    for _, s in ipairs(products) do
        for _, side in ipairs{s.left, s.right} do
            if side.used == 1 then inner[side] = true end
        end
    end
    for _, s in ipairs(products) do
        if not inner[s] then hints[#hints + 1] = hint_for(s) end
    end
    return hints
end

-- --- the report -----------------------------------------------------------

local function flops_text(x)
    return amounts.flops(x, "%.3g")
end
local function bytes_text(x)
    return amounts.bytes(x, "%.3g")
end
local function seconds_text(x)
    return amounts.seconds(x, "%.3g")
end

local SHOWN = 8

-- Operations of one kind and shape in one row, with how many there are.
local function grouped(list)
    local rows, by_kind = {}, {}
    for _, o in ipairs(list) do
        local kind = o.operation .. " " .. o.kernel .. " " .. o.shape
        local r = by_kind[kind]
        if not r then
            r = {name = o.operation .. " " .. o.kernel, shape = o.shape,
                 count = 0, flops = 0, bytes = 0, seconds = 0}
            by_kind[kind], rows[#rows + 1] = r, r
        end
        r.count, r.flops = r.count + 1, r.flops + o.flops
        r.bytes, r.seconds = r.bytes + o.bytes, r.seconds + o.seconds
    end
    sort(rows, function(x, y) return x.seconds > y.seconds end)
    return rows
end

local function add_operations(lines, list)
    if #list < 2 then return end
    local rows = grouped(list)
    for i = 1, smaller(SHOWN, #rows) do
        local r = rows[i]
        lines[#lines + 1] = format("  %-20s %14s %6s %10s %10s  %s", r.name,
            r.shape, r.count > 1 and "x " .. r.count or "",
            flops_text(r.flops), bytes_text(r.bytes), seconds_text(r.seconds))
    end
    if #rows > SHOWN then
        lines[#lines + 1] = format("  %d more kinds", #rows - SHOWN)
    end
end

-- What will not fit is better known before.
local function add_shortage(lines, peak)
    local name = library.device()
    local memory = library.memory(name)
    if memory.total > 0 and peak > memory.free then
        lines[#lines + 1] = format("does not fit: %s free on %s",
            bytes_text(memory.free), name)
    end
end

local function hint_text(h)
    return format("hint: %s takes %s, about %s; %s takes %s, about %s",
        h.better, flops_text(h.flops), seconds_text(h.seconds), h.instead_of,
        flops_text(h.their_flops), seconds_text(h.their_seconds))
end

-- Where the bus is crossed counts for the time alone: it is no operation.
local function sum_up(run)
    local found = {flops = 0, bytes = 0, seconds = 0, operations = {},
        allocated = run.allocated, peak = run.peak}
    for _, o in ipairs(run.events) do
        found.seconds = found.seconds + o.seconds
        if not o.bus then
            found.flops = found.flops + o.flops
            found.bytes = found.bytes + o.bytes
            found.operations[#found.operations + 1] = o
        end
    end
    return found
end

-- Errors say that the work was only looked at, behind their place, if that is
-- not the entry at the prompt.
local function raise(why)
    if type(why) ~= "string" or checks.is_interrupt(why) then error(why, 0) end
    why = gsub(why, "^lumat:%d+: ", "")
    local place, text = match(why, "^([^\n:]*:%d+: )(.*)$")
    error((place or "") .. "cost: " .. gsub(text or why, "^cost: ", ""), 0)
end

row{
    name = "cost",
    takes = "f: function",
    gives = "table",
    group = "costs",
    help = "What f() would take: it is called with matrices that have no " ..
        "elements, so that nothing is computed, and variables, files and " ..
        "random numbers stay as they are. What depends on elements raises; a " ..
        "sparse matrix made of a dense one has as many entries as there can " ..
        "be. Fields: flops, bytes (moved), allocated, peak (bytes at once " ..
        "beyond what there is), seconds (from measured rates), operations, " ..
        "hints (products in a better order). What runs in one pass (?devices) is " ..
        "one operation. Also :cost.",
    example = "cost(function() return ones(4, 3) * ones(3, 2) end).flops",
    result = "48", usage = "cost(function() return A * B end)",
}
function report.cost(f)
    local ok, run = pcall(own.dry_run, f)
    if not ok then raise(run) end
    local found = sum_up(run)
    found.hints = hints_of(run.products)
    local n = #found.operations
    local lines = {format("%s, %s moved, %s allocated%s, about %s in %d " ..
        "operation%s", flops_text(found.flops), bytes_text(found.bytes),
        bytes_text(found.allocated), found.peak < found.allocated and
        format(" (%s at once)", bytes_text(found.peak)) or "",
        seconds_text(found.seconds), n, n == 1 and "" or "s")}
    -- what a pool's processes would do, where there is one
    local pools = package.loaded["lumat.pool_report"]
    if pools then
        local more
        more, found.pool = pools.taken()
        for _, line in ipairs(more) do lines[#lines + 1] = line end
    end
    add_operations(lines, found.operations)
    add_shortage(lines, found.peak)
    for _, h in ipairs(found.hints) do lines[#lines + 1] = hint_text(h) end
    return checks.shown(found, concat(lines, "\n"))
end

return report
