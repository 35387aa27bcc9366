-- How far a run is: which points are done, what the others will take, and the
-- line that tells it.
local library = ...
local journal = require "lumat.journal"
local amounts = require "lumat.unit_text"
local points_of = require "lumat.axes".points_of
local texts = require "lumat.texts"
local io, ipairs, setmetatable, tostring, utf8 = io, ipairs, setmetatable,
    tostring, utf8
local concat = table.concat
local floor, larger, smaller = math.floor, math.max, math.min
local format, gsub, rep, sub = string.format, string.gsub, string.rep,
    string.sub
local bar, progress = {}, {}
bar.__index = bar

-- --- the line --------------------------------------------------------------
-- Progress: how far an experiment is, how long it will take, in one line of a
-- terminal or in lines of a log.

local FADE = 0.3 -- weight of the newest in a moving average

-- --- what a point costs ---------------------------------------------------

-- Seconds of a point as a + b cost, fitted by least squares of the relative
-- errors; a moving average of what is off corrects it.
local model = {}
model.__index = model

function bar.model()
    return setmetatable({n = 0, w = 0, c = 0, cc = 0, s = 0, sc = 0, off = 1},
        model)
end

local function solve(m)
    local det = m.w * m.cc - m.c * m.c
    if m.n < 2 or det <= 1e-9 * m.w * m.cc then
        return m.w > 0 and m.s / m.w or 0, 0
    end
    local a, b = (m.s * m.cc - m.c * m.sc) / det, (m.w * m.sc - m.c * m.s) / det
    if a < 0 then a, b = 0, m.sc / m.cc end
    if b < 0 then a, b = m.s / m.w, 0 end
    return a, b
end

function model:add(cost, seconds)
    seconds = larger(seconds, 1e-6)
    if self.n > 0 then
        local guess = larger(self.a + self.b * cost, 1e-9)
        self.off = (1 - FADE) * self.off +
            FADE * larger(0.1, smaller(10, seconds / guess))
    end
    local w = 1 / (seconds * seconds)
    self.n, self.w, self.c = self.n + 1, self.w + w, self.c + w * cost
    self.cc, self.s = self.cc + w * cost * cost, self.s + w * seconds
    self.sc = self.sc + w * cost * seconds
    self.a, self.b = solve(self)
end

-- Seconds that so many points of this cost together should take, or nil.
function model:predict(count, cost)
    if self.n == 0 then return nil end
    return (self.a * count + self.b * cost) * self.off
end

-- --- words ----------------------------------------------------------------

-- "0:42", "1:02:03"
function bar.clock_text(seconds)
    local s = floor(seconds + 0.5)
    if s < 3600 then return format("%d:%02d", s // 60, s % 60) end
    return format("%d:%02d:%02d", s // 3600, s // 60 % 60, s % 60)
end

function bar.seconds_text(s)
    return amounts.short_seconds(s, "%.3g")
end

local function one_line(text)
    return texts.visible((gsub(tostring(text), "%s+", " ")))
end

-- The pieces in order of importance, as many as fit.
local function fitted(pieces, width)
    local line = pieces[1]
    for i = 2, #pieces do
        local more = line .. "  " .. pieces[i]
        if utf8.len(more) and utf8.len(more) > width then break end
        line = more
    end
    return line
end

local function bar_text(share, width)
    local full = floor(share * width + 1e-9)
    return "[" .. rep("#", full) .. rep("-", width - full) .. "]"
end

local function width_of(text)
    return utf8.len(text) or #text
end

-- The first so many characters.
local function cut(text, width)
    if width_of(text) <= width then return text end
    return sub(text, 1, (utf8.offset(text, width + 1) or width + 1) - 1)
end

-- How many are done, of a picture of that where there is room, and failed.
local function counts(name, state, width)
    local text = format("%d/%d", state.done, state.total)
    if width >= 60 then
        local share = state.total > 0 and state.done / state.total or 1
        text = format("%s  %s  %s", sub(name, 1, 20),
            bar_text(share, smaller(30, width // 4)), text)
    end
    return {text, state.failed > 0 and state.failed .. " failed" or nil}
end

-- state: done, failed, total, elapsed, left (seconds or nil), last (text).
function bar.line(name, state, width)
    local pieces = counts(name, state, width)
    pieces[#pieces + 1] = bar.clock_text(state.elapsed)
    if state.left then
        pieces[#pieces + 1] = "ETA " .. bar.clock_text(state.left)
    end
    if state.last then
        local used = width_of(concat(pieces, "  "))
        local last = one_line(state.last)
        if utf8.len(last) and used + 6 < width then
            pieces[#pieces + 1] = cut(last, width - used - 2)
        end
    end
    return fitted(pieces, width)
end

-- The line while a point is being measured that takes long: what says which it
-- is, before anything but how many are done. Behind it comes for how long, in
-- minutes before too much of a narrow screen is kept for them.
function bar.task_line(name, state, what, width)
    local time = width >= 60 and "  59 min 59 s" or "  59 s"
    local room = larger(0, width - width_of(time))
    what = one_line(what)
    for _, wide in ipairs{width, smaller(width, 60), 0} do
        local line = concat(counts(name, state, wide), "  ") .. "  " .. what
        if width_of(line) <= room then return line end
    end
    return cut(format("%d/%d  %s", state.done, state.total, what), room)
end

-- --- showing --------------------------------------------------------------

-- put: writes text; columns: the terminal's, or nil for a log.
function bar.new(name, options)
    return setmetatable({name = name, quiet = options.quiet,
        put = options.put or function(text)
            io.stderr:write(text)
            io.stderr:flush()
        end,
        columns = options.columns or journal.columns,
        started = library.clock(), shown = -math.huge, pause = 5}, bar)
end

-- Is it time for another line?
function bar:is_due()
    if self.quiet then return false end
    local now = library.clock()
    if self.columns() then -- often, unless that takes long itself
        return now - self.shown >= smaller(0.1, 10 * (self.took or 0))
    end
    if self.shown < 0 then self.shown = now end -- a log waits first
    return now - self.shown >= self.pause
end

-- Lines of a log come more and more rarely, up to two a minute.
function bar:show(state)
    if self.quiet then return end
    local columns = self.columns()
    state.elapsed = library.clock() - self.started
    self.shown = library.clock()
    if columns then
        self.put("\r" .. bar.line(self.name, state, columns - 1) .. "\27[K")
        self.open, self.state = true, state
        return
    end
    local last = state.last
    self.pause, state.last = smaller(30, self.pause * 1.2), nil
    self.put(self.name .. ": " .. bar.line(self.name, state, 59) ..
        (last and "  " .. one_line(last) or "") .. "\n")
end

-- A point was done since the line was shown.
function bar:count(failed)
    local state = self.state
    if not state then return end
    state.done = state.done + 1
    state.failed = state.failed + (failed and 1 or 0)
end

-- For the time in which points are measured: a value to be closed then, whose
-- `tell` takes the name of the one that is, and what is added to it, or
-- nothing. After a second the terminal shows that, and for how long.
function bar:measuring(first)
    if self.quiet or not self.columns() then return end
    local started = library.clock()
    local function tell(what, more)
        local state = self.state or {done = 0, failed = 0, total = 0}
        self.open = journal.task(bar.task_line(self.name, state,
            what .. (more and ", " .. more or ""),
            (self.columns() or 80) - 1), library.clock() - started) or self.open
    end
    tell(first)
    return setmetatable({tell = tell}, {__close = journal.end_task})
end

-- A line of its own, above the bar.
function bar:say(text, ending)
    if self.quiet then return end
    self.put((self.open and "\r\27[K" or "") .. texts.visible(text) ..
        (ending or "\n"))
    self.open = false
end

-- The same after Ctrl-C, whose ^C opened a row of the terminal: what reports
-- the interrupt ends that.
function bar:say_stopped(text)
    self:say(text, self.columns() and "" or "\n")
end

-- --- progress --------------------------------------------------------------

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

progress.bar = bar

return progress
