-- What the language costs: its start, a small operation, the bandwidth of
-- elementwise work. Times are medians; shares are of the peaks measured on
-- this machine. Products have bench_dot.lua and bench_matmul.lua.
--   lumat bench.lua [--seconds S] [--quick] [--device D] [--csv FILE]
--     --seconds   time for each figure (0.15)
--     --quick     only small sizes, to see that everything runs
--     --device    only this one; else the CPU, and the GPU if there is one
--     --csv       also write the figures to FILE
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figures, lessons = require "figures", require "lessons"

local function usage(problem)
    io.stderr:write("bench: ", problem, "\nusage: lumat bench.lua ",
        "[--seconds S] [--quick] [--device D] [--csv FILE]\n")
    os.exit(2)
end

local takes_value = {seconds = true, device = true, csv = true}
local is_switch = {quick = true}

local function read_options()
    local options, i = {seconds = 0.15}, 1
    while arg[i] do
        local name = arg[i]:match("^%-%-(%a+)$")
        if is_switch[name] then
            options[name] = true
        elseif takes_value[name] then
            i = i + 1
            options[name] = arg[i] or usage("--" .. name .. " needs a value")
        else
            usage("what is " .. arg[i] .. "?")
        end
        i = i + 1
    end
    options.seconds = tonumber(options.seconds)
    if not options.seconds or options.seconds <= 0 then
        usage("--seconds needs a positive number")
    end
    return options
end

local options = read_options()

local least = 3 -- runs of a figure, besides those to warm up

-- --- figures -------------------------------------------------------------

if options.device then figures.use_device("bench", options.device) end
local csv = options.csv and figures.create("bench", options.csv)
if csv then
    csv:write("what,device,dtype,size,seconds,low,high,rate,unit,",
        "share_of_peak,verdict\n")
end

local function quoted(text)
    return '"' .. text:gsub('"', '""') .. '"'
end

local function write_csv(f)
    local fields = {quoted(f.what), f.device, f.dtype,
        quoted(f.size), f.time.median, f.time.low, f.time.high, f.rate or "",
        f.unit or "", f.share or "", quoted(f.verdict)}
    csv:write(table.concat(fields, ","), "\n")
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

local function measure(f, where)
    return bench(f, {seconds = options.seconds, least = least, device = where})
end

-- --- small operations ----------------------------------------------------

local REPEATS = 100 -- per call, so that the call itself does not count

-- The time of one operation, beside the one of t[1] (itself when it is that).
local function small(what, where, size, f, base)
    local b = measure(f, where)
    for _, key in ipairs{"median", "low", "high"} do
        b[key] = b[key] / REPEATS
    end
    base = base or b.median
    figure{what = what, device = where, size = size, time = b,
        verdict = ("%.1f times t[1]"):format(b.median / base)}
    return base
end

local function small_operations(where)
    local t, empty = {1}, function() end
    local A = rand(2, 2, {seed = 1, device = where})
    local B = rand(2, 2, {seed = 2, device = where})
    heading("small operations on " .. where
        .. ", beside Lua's own table access and call")
    local base = small("t[1]", where, "Lua", function()
        local x
        for _ = 1, REPEATS do x = t[1] end
        return x
    end)
    small("f()", where, "Lua", function()
        for _ = 1, REPEATS do empty() end
    end, base)
    small("A + B", where, "f32 2x2", function()
        for _ = 1, REPEATS do local _ = A + B end
    end, base)
    small("A * B", where, "f32 2x2", function()
        for _ = 1, REPEATS do local _ = A * B end
    end, base)
end

-- The program's own start and end, with the system's shell that starts it.
local function start_up()
    local first = 0
    while arg[first - 1] do first = first - 1 end
    local program = arg[first]:gsub("'", [['\'']])
    local command = "exec '" .. program .. "' -e 1 >/dev/null"
    heading("start to end of lumat -e 1, with the shell that starts it")
    local b = measure(function() os.execute(command) end, "cpu")
    figure{what = "lumat -e 1", device = "cpu", size = "", time = b,
        verdict = ""}
end

-- --- elementwise ---------------------------------------------------------

local function elementwise(where, dtype, n)
    local how = {dtype = dtype, device = where, seed = 1}
    local x, y = rand(n, how), rand(n, how)
    local out = {out = zeros(n, {dtype = dtype, device = where})}
    local limit = peak(where)
    local element = dtype == "f64" and 8 or 4
    local function timed_over(streams, what, f)
        figure{what = what, device = where, dtype = dtype,
            size = ("%.0e"):format(n), time = measure(f, where),
            work = streams * element * n, unit = "GB/s", peak = limit.bytes}
    end
    timed_over(3, "add", function() add(x, y, out) end)
    timed_over(2, "sin", function() sin(x, out) end)
    timed_over(2, "sqrt", function() sqrt(x, out) end)
    timed_over(1, "sum", function() return sum(x) end)
    -- of two matrices, % is the product element by element; at the least, x
    -- and y are read and the result is written
    timed_over(3, "expression", function()
        return sqrt(sin(x) % y + 2) - x / 3
    end)
end

-- --- everything ----------------------------------------------------------

local function everything_on(where)
    local n, limit = options.quick and 100000 or 10000000, peak(where)
    print(("\n%s: measured peaks f32 %.4g TFLOP/s, f64 %.4g TFLOP/s, memory "
        .. "%.4g GB/s"):format(where, limit.f32_flops / 1e12,
        limit.f64_flops / 1e12, limit.bytes / 1e9))
    small_operations(where)
    heading("elementwise on " .. where
        .. "; expression: sqrt(sin(x) % y + 2) - x / 3")
    elementwise(where, "f32", n)
    elementwise(where, "f64", n)
end

local start = clock()
start_up()
for _, where in ipairs(options.device and {(device())} or lessons.devices()) do
    everything_on(where)
end
print(("\n%.0f s in all, %g s a figure"):format(clock() - start,
    options.seconds))
if csv then assert(csv:close()) end
lessons.finish()
