-- What the language costs: its start, a small operation, the bandwidth of
-- elementwise work. Times are medians; shares are of the peaks measured on
-- this machine. Other operations on whole matrices have bench_operations.lua,
-- products bench_dot.lua and bench_matmul.lua.
--   lumat bench.lua [--seconds S] [--quick] [--device D] [--csv FILE] [--dir D]
--     --seconds   time for each figure (0.15)
--     --quick     only small sizes, to see that everything runs
--     --device    only this one; else the CPU, and the GPU if there is one
--     --csv       also write the figures to FILE
--     --dir       keep the run in this folder: started again, only what is
--                 missing is measured
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figures, lessons = require "figures", require "lessons"

local options = require "options"("bench",
    "[--seconds S] [--quick] [--device D] [--csv FILE] [--dir D]",
    {seconds = "number", quick = "switch", device = "text", csv = "text",
        dir = "text"})
options.seconds = options.seconds or 0.15
figures.options = options

-- --- figures -------------------------------------------------------------

if options.device then figures.use_device("bench", options.device) end
local csv = options.csv and figures.create("bench", options.csv)
if csv then
    assert(csv:write("what,device,dtype,size,seconds,low,high,rate,unit,",
        "share_of_peak,verdict\n"))
end

local function quoted(text)
    return '"' .. text:gsub('"', '""') .. '"'
end

local function write_csv(f)
    local fields = {quoted(f.what), f.device, f.dtype,
        quoted(f.size), f.time.median, f.time.low, f.time.high, f.rate or "",
        f.unit or "", f.share or "", quoted(f.verdict)}
    assert(csv:write(table.concat(fields, ","), "\n"))
end

local function heading(text)
    print(("\n%s\n  %-11s %-3s %-13s %11s  %-17s  %7s"):format(text, "what",
        "", "size", "median", "rate", "of peak"))
end

local function row(name, dtype, size, rest)
    print(("  %-11s %-3s %-13s %s"):format(name, dtype, size, rest))
end

-- A line of the table. f: what, device, dtype, size, time (a bench), work
-- (bytes), unit, peak (bytes a second), verdict.
local function figure(f)
    f.verdict, f.dtype = f.verdict or "", f.dtype or ""
    local rate, share = "", ""
    if f.work then
        f.share = f.work / f.time.median / f.peak
        f.rate = f.work / f.time.median / 1e9
        rate = ("%9.4g %-7s"):format(f.rate, f.unit)
        share = ("%5.0f %%"):format(100 * f.share)
    end
    row(f.what, f.dtype, f.size,
        ("%s  %-17s  %7s  %s"):format(lessons.time(f.time.median), rate,
            share, f.verdict))
    if csv then write_csv(f) end
end

-- --- what is timed -------------------------------------------------------

local REPEATS = 100 -- per call, so that the call itself does not count
local size_of = {f32 = 4, f64 = 8}

-- The program's own start and end, with the system's shell that starts it.
local function start_command()
    local first = 0
    while arg[first - 1] do first = first - 1 end
    local program = arg[first]:gsub("'", [['\'']])
    return "exec '" .. program .. "' -e 1 >/dev/null"
end

-- kinds[kind]: in order, {what, size, f(s)} and what else its figures have.
local kinds = {start = {{what = "lumat -e 1", size = "", work = function()
    local command = start_command()
    return function() os.execute(command) end
end}}}

kinds.small = {
    {what = "t[1]", size = "Lua", work = function()
        local t = {1}
        return function()
            local x
            for _ = 1, REPEATS do x = t[1] end
            return x
        end
    end},
    {what = "f()", size = "Lua", work = function()
        local function empty() end
        return function() for _ = 1, REPEATS do empty() end end
    end},
    {what = "A + B", size = "f32 2x2", work = function(s)
        local A, B = s.A, s.B
        return function() for _ = 1, REPEATS do local _ = A + B end end
    end},
    {what = "A * B", size = "f32 2x2", work = function(s)
        local A, B = s.A, s.B
        return function() for _ = 1, REPEATS do local _ = A * B end end
    end}}

-- streams: how many vectors are read and written. Of two matrices, % is the
-- product element by element; at the least, x and y are read and the result is
-- written.
kinds.elements = {
    {what = "add", streams = 3, work = function(s)
        return function() add(s.x, s.y, s.out) end
    end},
    {what = "sin", streams = 2, work = function(s)
        return function() sin(s.x, s.out) end
    end},
    {what = "sqrt", streams = 2, work = function(s)
        return function() sqrt(s.x, s.out) end
    end},
    {what = "sum", streams = 1, work = function(s)
        return function() return sum(s.x) end
    end},
    {what = "expression", streams = 3, work = function(s)
        local x, y = s.x, s.y
        return function() return sqrt(sin(x) % y + 2) - x / 3 end
    end}}

local function operands(kind, dtype, where, n)
    if kind == "small" then
        return {A = rand(2, 2, {seed = 1, device = where}),
            B = rand(2, 2, {seed = 2, device = where})}
    elseif kind == "elements" then
        local how = {dtype = dtype, device = where, seed = 1}
        return {x = rand(n, how), y = rand(n, how),
            out = {out = zeros(n, {dtype = dtype, device = where})}}
    end
    return {}
end

-- --- the figures ---------------------------------------------------------

local COUNT = options.quick and 100000 or 10000000 -- elements

local show = {}

function show.start(rows)
    heading("start to end of lumat -e 1, with the shell that starts it")
    for _, r in ipairs(rows) do
        figure{what = r.p.what, device = "cpu", size = "",
            time = figures.time(r)}
    end
end

-- The time of one operation, beside that of t[1].
function show.small(rows)
    heading("small operations on " .. rows[1].p.device
        .. ", beside Lua's own table access and call")
    for i, r in ipairs(rows) do
        local time = figures.time(r)
        for key, seconds in pairs(time) do time[key] = seconds / REPEATS end
        figure{what = r.p.what, device = r.p.device, size = kinds.small[i].size,
            time = time, verdict = ("%.1f times t[1]"):format(
                r.median / rows[1].median)}
    end
end

function show.elements(rows)
    local where, dtype = rows[1].p.device, rows[1].p.dtype
    if dtype == "f32" then
        heading("elementwise on " .. where
            .. "; expression: sqrt(sin(x) % y + 2) - x / 3")
    end
    for _, r in ipairs(rows) do
        figure{what = r.p.what, device = where, dtype = dtype,
            size = ("%.0e"):format(COUNT), time = figures.time(r),
            work = r.bytes, unit = "GB/s", peak = peak(where).bytes}
    end
end

local function show_group(rows)
    local p = rows[1].p
    for _, r in ipairs(rows) do
        if r.status ~= "ok" then
            error(("%s on %s: %s"):format(r.p.what, p.device, r.message), 0)
        end
    end
    if p.kind == "small" then
        local limit = peak(p.device)
        print(("\n%s: measured peaks f32 %.4g TFLOP/s, f64 %.4g TFLOP/s, memory "
            .. "%.4g GB/s"):format(p.device, limit.f32_flops / 1e12,
            limit.f64_flops / 1e12, limit.bytes / 1e9))
    end
    show[p.kind](rows)
end

-- --- everything ----------------------------------------------------------

local function list_points(devices)
    local points, entries = {}, {}
    local function add_kind(kind, where, dtype)
        for _, entry in ipairs(kinds[kind]) do
            points[#points + 1] = {kind = kind, device = where, dtype = dtype,
                what = entry.what}
            entries[kind .. entry.what] = entry
        end
    end
    add_kind("start", "cpu", "")
    for _, where in ipairs(devices) do
        add_kind("small", where, "f32")
        add_kind("elements", where, "f32")
        add_kind("elements", where, "f64")
    end
    return points, entries
end

local start = clock()
local points, entries = list_points(options.device and {(device())} or
    lessons.devices())
figures.run({name = "language", axes = points,
    group = {"kind", "device", "dtype"},
    setup = function(p) return operands(p.kind, p.dtype, p.device, COUNT) end,
    measure = function(p, s) return entries[p.kind .. p.what].work(s) end,
    bytes = function(p)
        local streams = entries[p.kind .. p.what].streams
        return streams and streams * size_of[p.dtype] * COUNT
    end}, options.seconds, show_group)
print(("\n%.0f s in all, %g s a figure"):format(clock() - start,
    options.seconds))
if csv then assert(csv:close()) end
lessons.finish()
