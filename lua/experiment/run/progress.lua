-- How far a run is: which points are done, what the others will take, and the
-- line that tells it.
local library = ...
local bar, points_of = require "lumat.bar", require "lumat.points"
local ipairs, tostring = ipairs, tostring
local format = string.format
local larger = math.max
local progress = {}

-- Of a failed point of an earlier round something is left to do.
function progress.is_done(run, point)
    local row = run.store:row(point.keys)
    if not row then return false end
    return row.status == "ok" or row.status == "skipped" or
        (row.round or 0) >= run.store.round, row
end

-- A point that its measure left out has not failed.
function progress.has_failed(row)
    return row.status ~= "ok" and row.status ~= "skipped"
end

-- How many points are done, how many of these failed; and what the others
-- cost together.
function progress.count(run)
    local done, failed, cost = 0, 0, 0
    for _, point in ipairs(run.points) do
        local is, row = progress.is_done(run, point)
        if is then
            done = done + 1
            if progress.has_failed(row) then failed = failed + 1 end
        else
            cost = cost + point.cost
        end
    end
    return done, failed, cost
end

-- --- the line -------------------------------------------------------------

-- What a row says in half a line.
local function told(row, names)
    local name = points_of.name(row.p, names)
    if row.status ~= "ok" then
        return format("%s %s: %s", name, row.status, tostring(row.message))
    end
    return row.median and name .. ": " .. bar.seconds_text(row.median) or name
end

-- Adds the rows that came since to the cost model.
local function learn(run)
    for _, point in ipairs(run.points) do
        local row = not point.learnt and run.store:row(point.keys)
        if row then
            point.learnt = true
            if row.seconds and row.seconds > 0 then
                run.model:add(point.cost, row.seconds)
            end
        end
    end
end

-- Shows the line where one is due; hands: how many workers there are.
function progress.show(run, hands)
    if not run.bar:is_due() then return end
    local start = library.clock()
    run.store:refresh()
    local done, failed, cost = progress.count(run)
    local total, last = #run.points, run.store.last
    learn(run)
    local left = run.model:predict(total - done, cost)
    run.bar:show{done = done, failed = failed, total = total,
        left = left and left / larger(1, hands),
        last = last and last ~= run.first_last and told(last, run.names) or nil}
    run.bar.took = library.clock() - start
end

-- Gives the rows that came since to `each`, whoever measured them.
function progress.tell(run)
    if not run.store.fresh then return end
    run.store:refresh()
    local fresh = run.store.fresh
    run.store.fresh = {}
    for _, row in ipairs(fresh) do
        if run.untold[row.key] then
            run.untold[row.key] = nil
            run.options.each(row)
        end
    end
end

-- From here on `each` gets the rows of points that are not done.
function progress.listen(run)
    if not run.options.each or run.is_spawned then return end
    run.untold, run.store.fresh = {}, {}
    for _, point in ipairs(run.points) do
        if not progress.is_done(run, point) then
            run.untold[point.keys[1]] = true
        end
    end
end

return progress
