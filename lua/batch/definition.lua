-- An experiment as defined: its description checked, its points, what is done
-- of them.
local journal = require "lumat.journal"
local checks = require "lumat.checks"
local axes, bar = require "lumat.axes", require "lumat.bar"
local environment = require "lumat.environment"
local fields, identity = require "lumat.fields", require "lumat.identity"
local runner, workers = require "lumat.runner", require "lumat.workers"
local store_of = require "lumat.store"
local fail, brief = checks.fail, checks.brief
local copied, plural = fields.copied, fields.plural
local _G, ipairs, next, pairs, pcall = _G, ipairs, next, pairs, pcall
local package, rawget, require, setmetatable = package, rawget, require,
    setmetatable
local tostring, type, utf8 = tostring, type, utf8
local concat, sort = table.concat, table.sort
local find, format, gsub = string.find, string.format, string.gsub
local huge, open_file = math.huge, io.open
local definition, methods = {}, {}

-- --- the description ------------------------------------------------------

local known_fields = {name = "string", axes = "table", measure = "function",
    dir = "string", where = "function", fixed = "table", setup = "function",
    check = "function", flops = "function number", bytes = "function number",
    cost = "function number", repeats = "number", stop = "table function number",
    warmup = "number", cold = "boolean function", timeout = "number",
    order = "table", version = "number string", title = "string"}

local function check_name(name)
    if not name then
        fail("experiment", "has no name: experiment{name = \"sweep\", axes = " ..
            "{n = pow2(6, 9)}, measure = function(p) … end}")
    elseif not find(name, "^[%w_][%w_.-]*$") or #name > 80 then
        fail("experiment", "%q is no name: letters, digits, _ . and -", name)
    end
end

local function check_spec(spec)
    if type(spec) ~= "table" then
        fail("experiment", "takes a table: experiment{name = …}, not %s",
            brief(spec))
    end
    fields.check("experiment", spec, known_fields)
    check_name(spec.name)
    if not spec.measure then
        fail("experiment", "%s has no measure = function(p) … end", spec.name)
    elseif spec.dir == "" then
        fail("experiment", "dir is empty")
    elseif spec.timeout and not (spec.timeout > 0 and spec.timeout < huge) then
        fail("experiment", "timeout is %s, expected seconds above 0",
            brief(spec.timeout))
    end
end

local function script_text()
    local path = _G.arg and _G.arg[0]
    local file = type(path) == "string" and open_file(path, "rb")
    if not file then return nil end
    local text = file:read(1000000)
    file:close()
    return text and utf8.len(text) and {path = path, text = text} or nil
end

-- --- points ---------------------------------------------------------------

local function cost_of(spec, p)
    local names = {"cost", "flops", "bytes"}
    for _, name in ipairs(names) do
        local cost = spec[name]
        if type(cost) == "function" then
            local ok, value = pcall(cost, p)
            cost = ok and value or nil
        end
        if type(cost) == "number" and cost >= 0 and cost < huge then
            return cost
        end
    end
    return 1
end

-- {p, index, cost}; their keys come with a store.
local function list_points(spec, points)
    local list = {}
    for i, p in ipairs(points) do
        list[i] = {p = p, index = i, cost = cost_of(spec, p)}
    end
    return list
end

-- The values of each parameter in the order in which they come.
local function values_of(names, points)
    local values, seen = {}, {}
    for _, name in ipairs(names) do values[name], seen[name] = {}, {} end
    for _, p in ipairs(points) do
        for _, name in ipairs(names) do
            local value = p[name]
            if value ~= nil and not seen[name][value] then
                seen[name][value] = true
                values[name][#values[name] + 1] = value
            end
        end
    end
    return values
end

-- --- an experiment --------------------------------------------------------

local experiment = {__name = "experiment"}

-- What shows results is in files of its own; where nothing is to be seen,
-- since another process shows it, it does nothing.
local views = {table = true, csv = true, jsonl = true, plot = true,
    report = true}

function experiment.__index(e, name)
    if methods[name] then return methods[name] end
    local seen = package.loaded["lumat.experiment_views"]
    local view = seen and seen[name]
    if view and rawget(e, "silent") and views[name] then
        return function() return e end
    end
    return view
end

function definition.define(spec)
    check_spec(spec)
    local points, names, left_out = axes.points(spec)
    local e = {name = spec.name, dir = spec.dir or "runs/" .. spec.name,
        axes = names, spec = spec, list = list_points(spec, points),
        values = values_of(names, points), left_out = left_out,
        code = identity.code(spec, journal.version), script = script_text()}
    e.rank = workers.rank()
    e.silent = e.rank ~= nil and e.rank.rank > 0
    if e.silent then journal.mute() end
    return setmetatable(e, experiment)
end

-- The experiment's store, if it ever ran, with what was written since, and its
-- points with their keys.
local function refresh(e)
    local store = rawget(e, "store")
    if store then
        store:refresh(true)
    elseif store_of.exists(e.dir) then
        store = store_of.open(e.dir, e.name)
        e.store = store
    end
    runner.set_keys(e.list, store and store:accepted(e.code.hash) or {e.code.hash})
    return store
end

function methods.points(e)
    local list = {}
    for i, point in ipairs(e.list) do list[i] = copied(point.p) end
    return list
end

function methods.results(e)
    local store, rows = refresh(e), {}
    for _, point in ipairs(store and e.list or {}) do
        local row = point.row or store:row(point.keys)
        if row then rows[#rows + 1] = row end
    end
    return rows
end

-- The environments that rows name by number.
function methods.environments(e)
    local store = refresh(e)
    return store and environment.list(store) or {}
end

-- --- a run directory alone ------------------------------------------------

-- By how many starts had been before; clocks decide between such as did not
-- know of each other.
local function is_later(a, b)
    local m, n = a.number or 0, b.number or 0
    if m ~= n then return m > n end
    return (a.time or 0) >= (b.time or 0)
end

-- Rows of the code that ran last, and of those that count as it.
local function latest(store)
    local last
    for _, start in ipairs(store.starts) do
        if not last or is_later(start, last) then last = start end
    end
    return last
end

-- The place of a row's point among the values of the axes.
local function places(names, values)
    local place = {}
    for _, name in ipairs(names) do
        place[name] = {}
        for i, value in ipairs(values[name] or {}) do place[name][value] = i end
    end
    return function(a, b)
        for _, name in ipairs(names) do
            local x, y = place[name][a.p[name]] or huge,
                place[name][b.p[name]] or huge
            if x ~= y then return x < y end
        end
        return a.key < b.key
    end
end

-- One row a point: of two codes that count alike the later one.
local function rows_of(store, code)
    local by_point = {}
    local accepted = {}
    for _, c in ipairs(store:accepted(code)) do accepted[c] = true end
    for _, row in pairs(store.rows) do
        if accepted[row.code] and not store:is_dropped(row) then
            local name = identity.canonical(row.p)
            local other = by_point[name]
            if not other or row.code == code then by_point[name] = row end
        end
    end
    local rows = {}
    for _, row in pairs(by_point) do rows[#rows + 1] = row end
    return rows
end

function definition.open(dir)
    if type(dir) ~= "string" then
        fail("experiment.open", "takes the name of a run directory, not %s",
            brief(dir))
    end
    dir = #dir > 1 and gsub(dir, "/+$", "") or dir
    local store = store_of.open(dir)
    local start = latest(store) or {axes = {}, values = {}, code = ""}
    local rows = rows_of(store, start.code)
    sort(rows, places(start.axes, start.values))
    local list = {}
    for i, row in ipairs(rows) do
        list[i] = {p = row.p, index = i, cost = 1, row = row}
    end
    local known = store:code(start.code)
    return setmetatable({name = store.plan.name, dir = dir, axes = start.axes,
        spec = {}, list = list, values = start.values, left_out = 0,
        store = store, script = known.script, is_opened = true,
        code = {hash = start.code, parts = known.parts}}, experiment)
end

-- --- the plan -------------------------------------------------------------

-- How many stale rows are of points that there are now.
local function stale_points(e, store)
    local by_point, count = {}, 0
    local codes = store and store:stale(e.code.hash)
    if not codes then return {}, 0 end
    for _, row in pairs(store.rows) do
        if codes[row.code] and not store:is_dropped(row) then
            by_point[identity.canonical(row.p)] = row
        end
    end
    for _, point in ipairs(e.list) do
        if by_point[identity.canonical(point.p)] then count = count + 1 end
    end
    return by_point, count
end

local function status_of(point, store, stale)
    local row = point.row or store and store:row(point.keys)
    if row then return row.status, row end
    return stale[identity.canonical(point.p)] and "stale" or "to do"
end

local function predicted(e, store)
    local model, left, count = bar.model(), 0, 0
    for _, point in ipairs(e.list) do
        local row = point.row or store and store:row(point.keys)
        if row and row.seconds and row.seconds > 0 then
            model:add(point.cost, row.seconds)
        elseif not row then
            left, count = left + point.cost, count + 1
        end
    end
    return count > 0 and model:predict(count, left) or nil
end

local function headline(e, counts, seconds)
    local parts = {}
    for _, status in ipairs{"ok", "failed", "crashed", "timeout", "stale",
        "to do"} do
        if counts[status] then
            parts[#parts + 1] = format("%d %s", counts[status],
                status == "ok" and "done" or status)
        end
    end
    return format("%s: %s%s in %s: %s%s", e.name, plural(#e.list, "point"),
        e.left_out > 0 and format(" (%d left out)", e.left_out) or "", e.dir,
        concat(parts, ", "), seconds and ", about " .. bar.clock_text(seconds) ..
        " to go" or "")
end

local PLANNED = 40 -- lines of a plan that are shown

local function plan_text(e, plan, counts, seconds)
    local lines = {headline(e, counts, seconds)}
    for i, item in ipairs(plan) do
        if i > PLANNED then
            lines[#lines + 1] = format("  … %d more", #plan - PLANNED)
            break
        end
        lines[#lines + 1] = format("  %-8s %s%s", item.status,
            axes.name_point(item.p, e.axes),
            item.message and "  " .. gsub(item.message, "%s+", " ") or "")
    end
    return concat(lines, "\n")
end

-- A list of {p, status, cost, message}, which shows itself.
function methods.plan(e)
    local store = refresh(e)
    local stale, plan, counts = stale_points(e, store), {}, {}
    for i, point in ipairs(e.list) do
        local status, row = status_of(point, store, stale)
        counts[status] = (counts[status] or 0) + 1
        plan[i] = {p = copied(point.p), status = status, cost = point.cost,
            message = row and row.message}
    end
    local seconds = predicted(e, store)
    return checks.shown(plan, plan_text(e, plan, counts, seconds))
end

function experiment.__tostring(e)
    local ok, store = pcall(refresh, e)
    local counts = {}
    if not ok then return format("%s: %s", e.name, tostring(store)) end
    local stale = stale_points(e, store)
    for _, point in ipairs(e.list) do
        local status = status_of(point, store, stale)
        counts[status] = (counts[status] or 0) + 1
    end
    return headline(e, counts)
end

function methods.run(e, options)
    return require("lumat.running").run(e, options)
end

for name, method in pairs(methods) do methods[name] = checks.placed(method) end

return definition
