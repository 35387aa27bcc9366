-- An experiment as defined: its description checked, its points, what is done
-- of them and what is to do.
local checks = require "lumat.checks"
local journal = require "lumat.journal"
local bar = require "lumat.progress".bar
local environment = require "lumat.environment"
local identity = require "lumat.code_hash"
local peaks = require "lumat.peaks"
local points_of = require "lumat.axes".points_of
local runner = require "lumat.runner"
local sampling = require "lumat.sampling"
local sources = require "lumat.sources"
local store_of = require "lumat.store"
local text_lines = require "lumat.labels".lines
local units = require "lumat.units"
local workers = require "lumat.workers"
local path_of = require "lumat.texts".path
local require = require
local fail, brief, copied, plural = checks.fail, checks.brief, checks.copied,
    checks.plural
local _G, debug, getmetatable, ipairs, package, pairs, pcall, rawget, select,
    setmetatable, tostring, type, utf8 = _G, debug, getmetatable, ipairs,
    package, pairs, pcall, rawget, select, setmetatable, tostring, type, utf8
local concat, sort = table.concat, table.sort
local huge = math.huge
local find, format, gsub, sub = string.find, string.format, string.gsub,
    string.sub
local definition, methods, plan_of = {}, {}, {}

-- --- the description -------------------------------------------------------
-- Which fields it has, and of what kind.

local function check_name(name)
    if not name then
        fail("experiment", "has no name: experiment{name = \"sweep\", axes = " ..
            "{n = pow2(6, 9)}, measure = function(p) … end}")
    elseif not find(name, "^[%w_][%w_.-]*$") or #name > 80 then
        fail("experiment", "%q is no name: letters, digits, _ . and -", name)
    end
end

-- Numbers that the description has in the place of functions.
local function check_numbers(spec)
    for _, name in ipairs{"flops", "bytes", "cost", "hold"} do
        local x = spec[name]
        if type(x) == "number" and not (x >= 0 and x < huge) then
            fail("experiment", "%s is %s, expected a number from 0 on", name,
                brief(x))
        end
    end
    if spec.timeout and not (spec.timeout > 0 and spec.timeout < huge) then
        fail("experiment", "timeout is %s, expected seconds above 0",
            brief(spec.timeout))
    end
end

-- Raises unless the description is one.
local function check_spec(spec)
    if type(spec) ~= "table" then
        fail("experiment", "takes a table: experiment{name = …}, not %s",
            brief(spec))
    end
    checks.options("experiment", spec)
    check_name(spec.name)
    if not spec.measure then
        fail("experiment", "%s has no measure = function(p) … end", spec.name)
    elseif spec.dir == "" or spec.dir == true then
        fail("experiment", "dir is %s, expected the name of a folder, or " ..
            "false to keep nothing", brief(spec.dir))
    elseif spec.title and not find(spec.title, "%S") then
        fail("experiment", "title is empty: without it the name stands over " ..
            "tables and pictures")
    elseif spec.group == true then
        fail("experiment", "group is true: the names of axes are expected, " ..
            "or false")
    end
    check_numbers(spec)
    sampling.rule_of(spec) -- says what is wrong with `stop`
end

-- --- the plan --------------------------------------------------------------
-- What is done, what is to do, and how long that may take.

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

local function headline_of(e, counts, seconds)
    local parts = {}
    for _, status in ipairs{"ok", "skipped", "failed", "crashed", "timeout",
        "stale", "to do"} do
        if counts[status] then
            parts[#parts + 1] = format("%d %s", counts[status],
                status == "ok" and "done" or status)
        end
    end
    return format("%s: %s%s%s: %s%s", e.title and
        format("%s (%s)", text_lines.harmless(e.title), e.name) or e.name,
        plural(#e.list, "point"),
        e.left_out > 0 and format(" (%d left out)", e.left_out) or "",
        e.dir and " in " .. e.dir or "",
        concat(parts, ", "), seconds and ", about " .. bar.clock_text(seconds) ..
        " to go" or "")
end

local PLANNED = 40 -- lines of a plan that are shown

local function plan_text(e, plan, counts, seconds)
    local lines = {headline_of(e, counts, seconds)}
    for i, item in ipairs(plan) do
        if i > PLANNED then
            lines[#lines + 1] = format("  … %d more", #plan - PLANNED)
            break
        end
        lines[#lines + 1] = format("  %-8s %s%s", item.status,
            points_of.name(item.p, e.axes),
            item.message and "  " .. gsub(item.message, "%s+", " ") or "")
    end
    return concat(lines, "\n")
end

-- The plan's items, and how many there are of each status.
local function items_of(e, store)
    local stale, items, counts = stale_points(e, store), {}, {}
    for i, point in ipairs(e.list) do
        local status, row = status_of(point, store, stale)
        counts[status] = (counts[status] or 0) + 1
        items[i] = {p = copied(point.p), status = status, cost = point.cost,
            message = row and row.message}
    end
    return items, counts
end

-- A list of {p, status, cost, message}, which shows itself.
function plan_of.of(e, store)
    local items, counts = items_of(e, store)
    return checks.shown(items, plan_text(e, items, counts, predicted(e, store)))
end

-- How many points are done, failed, to do, in a line.
function plan_of.headline(e, store)
    local _, counts = items_of(e, store)
    return headline_of(e, counts)
end

-- --- the experiment --------------------------------------------------------

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
    local view = require("lumat.experiment").views[name]
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
