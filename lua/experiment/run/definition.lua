-- An experiment as defined: its description checked, its points, what is done
-- of them.
local journal = require "lumat.journal"
local checks = require "lumat.checks"
local points_of = require "lumat.points"
local environment = require "lumat.environment"
local check_spec = require "lumat.description"
local identity = require "lumat.code_hash"
local peaks = require "lumat.peaks"
local sources = require "lumat.sources"
local plan_of, units = require "lumat.plan", require "lumat.units"
local runner, workers = require "lumat.runner", require "lumat.workers"
local store_of = require "lumat.store"
local path_of = require "lumat.texts".path
local fail, brief = checks.fail, checks.brief
local copied = require("lumat.fields").copied
local _G, getmetatable, ipairs, pairs, pcall = _G, getmetatable, ipairs, pairs,
    pcall
local debug, package, rawget, require, select, setmetatable = debug, package,
    rawget, require, select, setmetatable
local tostring, type, utf8 = tostring, type, utf8
local sort = table.sort
local format, gsub, sub = string.format, string.gsub, string.sub
local huge = math.huge
local definition, methods = {}, {}

local function script_text()
    local path = _G.arg and _G.arg[0]
    local text = type(path) == "string" and identity.script(path)
    text = text and sub(text, 1, 1000000)
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
    local points, names, left_out, joint = points_of.all(spec)
    local e = {name = spec.name, title = spec.title, axes = names, joint = joint,
        dir = spec.dir ~= false and path_of(spec.dir or "runs/" .. spec.name),
        spec = spec, list = list_points(spec, points),
        values = values_of(names, points), left_out = left_out,
        code = identity.code(spec, journal.version), script = script_text()}
    units.shared(spec, names) -- says what is wrong with `group`
    e.rank = workers.rank()
    e.silent = e.rank ~= nil and e.rank.rank > 0
    if e.silent then journal.mute() end
    return setmetatable(e, experiment)
end

-- The experiment's store, if it ever ran, with what was written since, and its
-- points with their keys.
local function refresh(e)
    local store = rawget(e, "store")
    if store and e.dir then
        store:refresh(true)
    elseif e.dir and store_of.exists(e.dir) then
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

-- Is it a function of the point alone?
local function is_of_point(f)
    local info = type(f) == "function" and debug and debug.getinfo(f, "u")
    return info and info.nparams <= 1 and not info.isvararg
end

-- Rates are of the work as it is described now: that may have been added, or
-- mended, since the row was measured.
local function count_work(spec, row)
    for _, name in ipairs{"flops", "bytes"} do
        local work = spec[name]
        if is_of_point(work) then
            local ok, found = pcall(work, copied(row.p))
            work = ok and found
        end
        if type(work) == "number" and work >= 0 and work < huge then
            row[name] = work
        end
    end
end

function methods.results(e)
    local store, rows = refresh(e), {}
    for _, point in ipairs(store and e.list or {}) do
        local row = point.row or store:row(point.keys)
        if row then
            count_work(e.spec, row)
            rows[#rows + 1] = row
        end
    end
    peaks.settle(rows)
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
    dir = path_of(#dir > 1 and gsub(dir, "/+$", "") or dir)
    local store = store_of.open(dir)
    local start = latest(store) or {axes = {}, values = {}, code = ""}
    local rows = rows_of(store, start.code)
    sort(rows, places(start.axes, start.values))
    local list = {}
    for i, row in ipairs(rows) do
        list[i] = {p = row.p, index = i, cost = 1, row = row}
    end
    local known = store:code(start.code)
    return setmetatable({name = store.plan.name, title = store.title, dir = dir,
        axes = start.axes,
        joint = start.joint, spec = {}, list = list, values = start.values, left_out = 0,
        store = store, script = known.script, is_opened = true,
        code = {hash = start.code, parts = known.parts}}, experiment)
end

function experiment.__tostring(e)
    local ok, store = pcall(refresh, e)
    return ok and plan_of.headline(e, store) or
        format("%s: %s", e.name, tostring(store))
end

function methods.plan(e)
    return plan_of.of(e, refresh(e))
end

function methods.run(e, options)
    return require("lumat.running").run(e, options)
end

local function method_of(name, f)
    return checks.placed(function(e, ...)
        e = sources.origin(e)
        if getmetatable(e) ~= experiment then
            fail(name, "is called with a colon, as in e:%s()", name)
        elseif name ~= "run" and select("#", ...) > 0 then
            fail(name, "takes no arguments; e:table{where = …} chooses rows")
        end
        return f(e, ...)
    end)
end
for name, f in pairs(methods) do methods[name] = method_of(name, f) end

return definition
