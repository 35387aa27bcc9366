-- The performance figures, by one command: what a small operation costs, the
-- bandwidth of elementwise work, and every kernel of dot and matmul, right or
-- wrong. Times are medians; shares are of the peaks measured on this machine.
--   lumat bench.lua [--seconds S] [--full | --quick] [--device D] [--csv FILE]
--     --seconds   time for each figure (0.15)
--     --full      also the largest sizes, and the slow kernels
--     --quick     only small sizes, to see that everything runs
--     --device    only this one; else the CPU, and the GPU if there is one
--     --csv       also write the figures to FILE
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"

local function usage(problem)
    io.stderr:write("bench: ", problem, "\nusage: lumat bench.lua ",
        "[--seconds S] [--full | --quick] [--device D] [--csv FILE]\n")
    os.exit(2)
end

local takes_value = {seconds = true, device = true, csv = true}
local is_switch = {full = true, quick = true}

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

-- A kernel that would need longer than this for a figure is left out.
local patience = options.full and 60 or 3
local least = 3 -- runs of a figure, besides bench's two to warm up

-- --- figures -------------------------------------------------------------

local csv = options.csv and assert(io.open(options.csv, "w"))
if csv then
    csv:write("what,device,kernel,dtype,size,seconds,low,high,rate,unit,",
        "share_of_peak,verdict\n")
end

local function quoted(text)
    return '"' .. text:gsub('"', '""') .. '"'
end

local function write_csv(f)
    local fields = {quoted(f.what), f.device, quoted(f.kernel), f.dtype,
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

local scales = {["TFLOP/s"] = 1e12, ["GFLOP/s"] = 1e9, ["GB/s"] = 1e9}

-- A line of the table. f: what, device, kernel, dtype, size, time (a bench),
-- work (flops or bytes), unit, peak (work a second), verdict.
local function figure(f)
    f.kernel, f.verdict, f.dtype = f.kernel or "", f.verdict or "",
        f.dtype or ""
    local rate, share = "", ""
    if f.work then
        f.share = f.work / f.time.median / f.peak
        f.rate = f.work / f.time.median / scales[f.unit]
        rate = ("%9.4g %-7s"):format(f.rate, f.unit)
        share = ("%5.0f %%"):format(100 * f.share)
    end
    row(f.kernel ~= "" and f.kernel or f.what, f.dtype, f.size,
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

-- --- dot -----------------------------------------------------------------

-- verify's verdict, without its numbers when it is Accept.
local function judge(C, A, B)
    return (lessons.verify(C, A, B):gsub("^Accept.*", "Accept"))
end

-- Runs f by a kernel unless that promises to take too long: pace[label] is
-- the seconds a unit of work took at the size before. Returns the time, or nil
-- after saying why there is none, and f's result.
local function timed_rung(rung, where, dtype, size, work, pace, f)
    local promised = (pace[rung.label] or 0) * work * (least + 2)
    if promised > patience then
        row(rung.label, dtype, size, ("   left out: %d runs promise %.1f s")
            :format(least + 2, promised))
        return nil
    end
    local ok, result = pcall(f)
    if not ok then
        row(rung.label, dtype, size, "   left out: " .. tostring(result))
        return nil
    end
    local time = measure(f, where)
    pace[rung.label] = time.low / work
    return time, result
end

local function dots(where, powers)
    local pace, limit = {}, peak(where)
    for _, power in ipairs(powers) do
        local n, size = 1 << power, "2^" .. power
        local x = rand(n, {low = -1, seed = 1, device = where})
        local y = rand(n, {low = -1, seed = 2, device = where})
        for _, rung in ipairs(lessons.rungs("dot", where)) do
            local time, result = timed_rung(rung, where, "f32", size, n, pace,
                function() return dot(x, y, rung.options) end)
            if time then
                figure{what = "dot", device = where, kernel = rung.label,
                    dtype = "f32", size = size, time = time, work = 8 * n,
                    unit = "GB/s", peak = limit.bytes,
                    verdict = judge(result, x, y)}
            end
        end
        x:free()
        y:free()
    end
end

-- --- matmul --------------------------------------------------------------

-- Multiplications of the largest product that is checked: a few seconds of
-- the CPU's time, or of a GPU's.
local function most_checked(where)
    return where == "cpu" and 2048.0 ^ 3 or 8192.0 ^ 3
end

local function product(where, rung, A, B, pace)
    local m, k, n, dtype = A.rows, A.cols, B.cols, A.dtype
    local size = m == n and m == k and ("%d"):format(m) or
        ("%dx%dx%d"):format(m, k, n)
    local time, C = timed_rung(rung, where, dtype, size, 2 * m * k * n, pace,
        function() return matmul(A, B, rung.options) end)
    if not time then return end
    figure{what = "matmul", device = where, kernel = rung.label,
        dtype = dtype, size = size, time = time, work = 2 * m * k * n,
        unit = where == "cpu" and "GFLOP/s" or "TFLOP/s",
        peak = peak(where)[dtype .. "_flops"],
        verdict = m * k * n <= most_checked(where) and judge(C, A, B)
            or "not checked"}
end

local function products(where, dtype, shapes)
    local pace = {}
    for _, shape in ipairs(shapes) do
        local m, k, n = table.unpack(shape)
        local A = rand(m, k, {low = -1, seed = 1, dtype = dtype,
            device = where})
        local B = rand(k, n, {low = -1, seed = 2, dtype = dtype,
            device = where})
        for _, rung in ipairs(lessons.rungs("matmul", where)) do
            product(where, rung, A, B, pace)
        end
    end
end

local function cubes(...)
    local list = {}
    for i, n in ipairs{...} do
        list[i] = {n, n, n}
    end
    return list
end

-- --- everything ----------------------------------------------------------

-- The sizes for a device: elementwise, powers of 2 for dot, matmul shapes.
local function sizes(where)
    if options.quick then
        return 100000, {10, 16}, {{64, 64, 64}, {65, 33, 17}}
    end
    local powers = {10, 20, 24, options.full and 27, options.full and 29}
    local shapes = where == "cpu" and cubes(64, 256, 1024)
        or cubes(64, 256, 1024, 2048, 4096, 4097)
    table.insert(shapes, {2137, 108, 1055})
    return 10000000, powers, shapes
end

local function everything_on(where)
    local n, powers, shapes = sizes(where)
    local limit = peak(where)
    print(("\n%s: measured peaks f32 %.4g TFLOP/s, f64 %.4g TFLOP/s, memory "
        .. "%.4g GB/s"):format(where, limit.f32_flops / 1e12,
        limit.f64_flops / 1e12, limit.bytes / 1e9))
    small_operations(where)
    heading("elementwise on " .. where
        .. "; expression: sqrt(sin(x) % y + 2) - x / 3")
    elementwise(where, "f32", n)
    elementwise(where, "f64", n)
    heading("dot on " .. where .. "; short vectors stay in the cache")
    dots(where, powers)
    heading("matmul on " .. where)
    products(where, "f32", shapes)
    products(where, "f64", shapes)
end

if options.device then device(options.device) end
local start = clock()
start_up()
for _, where in ipairs(options.device and {(device())} or lessons.devices()) do
    everything_on(where)
end
print(("\n%.0f s in all, %g s a figure"):format(clock() - start,
    options.seconds))
if csv then assert(csv:close()) end
lessons.finish()
