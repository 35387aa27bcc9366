-- What an expression would take: it is computed with shapes in place of
-- matrices, by functions that add up, and nothing of the user's is touched.
local library, _, _, own = ...
local amounts, checks = require "lumat.unit_text", require "lumat.checks"
local shapes = require "lumat.cost_shapes"
local functions = require "lumat.cost_functions"
local base = _G
local error, getmetatable, ipairs, next, pairs, pcall, rawget, rawequal,
    select, setmetatable, tostring, type = error, getmetatable, ipairs, next,
    pairs, pcall, rawget, rawequal, select, setmetatable, tostring, type
local math, string, table, utf8 = math, string, table, utf8
local concat, sort, unpack = table.concat, table.sort, table.unpack
local format, gsub, match = string.format, string.gsub, string.match
local huge = math.huge
local fail = shapes.fail
local later = {}

-- --- what a chain of products could cost ----------------------------------

-- Factors from left to right, as far as brackets may be moved: a vector that
-- is a row or a column stays at its end, and what is used again stays whole.
local function add_factors(s, list, is_root, is_left)
    local info = s.info
    local free = info.left and (is_root or info.used == 1) and
        (s.ndim == 2 or is_root or
            (is_left and info.left.ndim == 1) or
            (not is_left and info.right.ndim == 1))
    if not free then
        list[#list + 1] = s
        return
    end
    add_factors(info.left, list, false, true)
    add_factors(info.right, list, false, false)
end

local function name_of(s)
    return s.info.name or "(" .. shapes.text_of(s) .. ")"
end

-- The text of the products as they are, or in the best order.
local function text_of(s, list)
    for _, factor in ipairs(list) do
        if rawequal(factor, s) then return name_of(s) end
    end
    local left, right = s.info.left, s.info.right
    local a, b = text_of(left, list), text_of(right, list)
    if match(b, "^%(?.* %* ") and right.info.left then b = "(" .. b .. ")" end
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

local function ordered_seconds(s, sizes, split, i, j)
    if i == j then return 0 end
    local k = split[i][j]
    local _, _, _, seconds = shapes.product_cost(s.device, s.dtype, sizes[i],
        sizes[j + 1], sizes[k + 1])
    return seconds + ordered_seconds(s, sizes, split, i, k) +
        ordered_seconds(s, sizes, split, k + 1, j)
end

-- Flops and seconds of the products under s that are its own.
local function chain_cost(s, list)
    for _, factor in ipairs(list) do
        if rawequal(factor, s) then return 0, 0 end
    end
    local a, x = chain_cost(s.info.left, list)
    local b, y = chain_cost(s.info.right, list)
    return a + b + s.info.flops, x + y + s.info.seconds
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
        seconds = ordered_seconds(s, sizes, split, 1, #list),
        instead_of = text_of(s, list), their_flops = flops,
        their_seconds = seconds}
end

local function hints_of(run)
    local hints, inner = {}, {}
    for _, s in ipairs(run.products) do
        for _, side in ipairs{s.info.left, s.info.right} do
            if side.info.used == 1 then inner[side] = true end
        end
    end
    for _, s in ipairs(run.products) do
        if not inner[s] then hints[#hints + 1] = hint_for(s) end
    end
    return hints
end

-- --- values as the expression sees them -----------------------------------

local run -- the one that goes on: its memory of values

local symbolic -- below: adapt and it call each other

-- A function of the user's: whatever it has of matrices is replaced in its
-- upvalues, and put back when all is done.
local function adapt(f)
    if run.adapted[f] then return f end
    run.adapted[f] = true
    for i = 1, huge do
        local name, value, cell = own.upvalue(f, i)
        if not name then return f end
        if not run.cells[cell] then
            run.cells[cell] = {f, i, value}
            local new = name == "_ENV" and run.environment(value) or
                symbolic(value, name)
            if not rawequal(new, value) then own.set_upvalue(f, i, new) end
        end
    end
end

local function restore()
    for _, c in next, run.cells do own.set_upvalue(c[1], c[2], c[3]) end
end

-- A table of the user's, read through; what is written stays in the view.
local function view_of(t)
    local view = run.views[t]
    if view then return view end
    view = setmetatable({}, {
        __index = function(_, key)
            return symbolic(t[key], type(key) == "string" and key or nil)
        end,
        __len = function() return #t end,
        __pairs = function(v)
            return function(_, key)
                key = next(t, key)
                if key ~= nil then return key, v[key] end
            end, v, nil
        end})
    run.views[t] = view
    return view
end

-- Which of the library's or of Lua's own a function is.
local library_names, allowed = {}, {}
for name, f in pairs(library) do library_names[f] = name end
for _, name in ipairs{"assert", "error", "ipairs", "next", "pairs", "pcall",
    "rawequal", "rawget", "rawlen", "rawset", "select", "setmetatable",
    "tonumber", "tostring", "xpcall"} do
    allowed[base[name]] = true
end
for _, list in ipairs{string, table, utf8} do
    for _, f in pairs(list) do
        if type(f) == "function" then allowed[f] = true end
    end
end

-- A function of math on a number that is not known gives one.
local numeric = {}
for name, f in pairs(math) do
    if type(f) == "function" then
        numeric[f] = function(...)
            for i = 1, select("#", ...) do
                local x = select(i, ...)
                if shapes.is_unknown(x) then return x end
            end
            return f(...)
        end
    end
end

local replaced = {
    [base.print] = function() end,
    [base.collectgarbage] = function() return 0 end,
    [base.getmetatable] = getmetatable,
    [base.type] = function(x)
        return shapes.is(x) and "userdata" or shapes.is_unknown(x) and
            "number" or type(x)
    end,
    [base.require] = function(name)
        if name == "lumat" then return run.names end
        fail("nothing is known of what the module %s costs",
            checks.brief(name))
    end,
}

local function of_function(f, name)
    local library_name = library_names[f]
    if library_name then
        return functions[library_name] or function()
            fail("nothing is known of what %s costs", library_name)
        end
    elseif replaced[f] or numeric[f] or allowed[f] then
        return replaced[f] or numeric[f] or f
    elseif own.is_c(f) then
        return function()
            fail("nothing is known of what %s costs", name or "a C function")
        end
    end
    return adapt(f)
end

function symbolic(x, name)
    local kind = type(x)
    if kind == "function" then return of_function(x, name) end
    if kind == "userdata" and getmetatable(x) == "matrix" then
        if x.device == "none" then
            fail("%s has been freed", name or "a matrix")
        end
        run.shapes[x] = run.shapes[x] or shapes.of(x, name)
        return run.shapes[x]
    elseif kind == "userdata" then
        fail("%s is a %s: nothing is known of what it costs", name or "a value",
            checks.kind(x))
    elseif kind == "table" and not shapes.is(x) and
        not shapes.is_unknown(x) and getmetatable(x) == nil then
        return view_of(x)
    end
    return x
end

-- Globals as the expression sees them; what it sets stays in there.
local function environment_of(real)
    local env = run.views[real]
    if env then return env end
    env = setmetatable({}, {__index = function(_, name)
        if name == "_G" then return env end
        return symbolic(real[name], type(name) == "string" and name or nil)
    end})
    run.views[real] = env
    return env
end

-- Calls f with everything replaced, and puts all back, whatever comes.
local function evaluate(f)
    run = shapes.start()
    run.adapted, run.cells, run.views, run.shapes = {}, {}, {}, {}
    run.environment = environment_of
    run.names = setmetatable({}, {__index = function(_, name)
        return symbolic(library[name], name)
    end})
    local ok, why = pcall(function()
        adapt(f)
        return f()
    end)
    restore()
    if ok then return why end
    error(type(why) == "string" and gsub(why, "^lumat:%d+: ", "") or why, 0)
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
    for i = 1, math.min(SHOWN, #rows) do
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

row{
    name = "cost",
    takes = "f: function",
    gives = "table",
    group = "costs",
    help = "What f() would take, without running it: it is called with shapes " ..
        "in place of matrices. Fields: flops, bytes (moved), allocated, " ..
        "peak (bytes at once beyond what there is), seconds (from measured " ..
        "rates), operations, hints (products in a better order). Also " ..
        ":cost.",
    example = "cost(function() return ones(4, 3) * ones(3, 2) end).flops",
    result = "48",
}
-- f is a function without arguments, or the text of one's body.
function later.cost(f)
    if type(f) ~= "function" then
        checks.fail("cost", "f is %s, expected a function: " ..
            "cost(function() return A * B end)", checks.brief(f))
    end
    evaluate(f)
    local found = {flops = run.flops, bytes = run.bytes,
        seconds = run.seconds, allocated = run.allocated, peak = run.peak,
        operations = run.operations, hints = hints_of(run)}
    run = nil
    local n = #found.operations
    local lines = {format("%s, %s moved, %s allocated%s, about %s in %d " ..
        "operation%s", flops_text(found.flops), bytes_text(found.bytes),
        bytes_text(found.allocated), found.peak < found.allocated and
        format(" (%s at once)", bytes_text(found.peak)) or "",
        seconds_text(found.seconds), n, n == 1 and "" or "s")}
    add_operations(lines, found.operations)
    add_shortage(lines, found.peak)
    for _, h in ipairs(found.hints) do lines[#lines + 1] = hint_text(h) end
    return checks.shown(found, concat(lines, "\n"))
end

return later
