-- What the benchmarks share: options, their experiments, the table and the CSV
-- file, targets and their verdicts.
local figures = {failures = 0, targets = {}}

-- --- options -------------------------------------------------------------

local words = "[--quick] [--device D] [--only PATTERN] [--seconds S] " ..
    "[--csv FILE] [--dir D]"
local kinds = {quick = "switch", seconds = "number", device = "text",
    csv = "text", only = "text", dir = "text"}

-- What was asked for cannot be had.
local function refuse(name, problem)
    io.stderr:write(name, ": ", problem, "\n")
    os.exit(2)
end

-- Makes the device the default one, or says why not.
function figures.use_device(name, where)
    local ok, why = pcall(device, where)
    if not ok then refuse(name, why:gsub("^[^:]*:%d+: ", "")) end
end

-- The file, open for writing.
function figures.create(name, path)
    local file, why = io.open(path, "w")
    return file or refuse(name, why)
end

-- The options of a benchmark, with `seconds` for each held figure and a tenth
-- of it for each median; opens the CSV file.
function figures.start(name)
    local options, usage = require "options"(name, words, kinds)
    local seconds = options.seconds or (options.quick and 0.05 or 0.8)
    if options.only and not pcall(string.find, "", options.only) then
        usage("--only needs a Lua pattern, not " .. options.only)
    end
    if options.device then figures.use_device(name, options.device) end
    options.seconds, options.device = seconds, device()
    options.on_gpu = options.device ~= "cpu"
    figures.options, figures.started = options, clock()
    if options.csv then figures.csv = figures.create(name, options.csv) end
    local limit, _, what = peak(options.device), device()
    print(("%s: %s"):format(options.device, what))
    print(("measured peaks: f32 %.4g TFLOP/s, f64 %.4g TFLOP/s, memory %.4g "
        .. "GB/s"):format(limit.f32_flops / 1e12, limit.f64_flops / 1e12,
        limit.bytes / 1e9))
    return options
end

-- Is this one asked for?
function figures.wanted(...)
    local only = figures.options.only
    local is_wanted = not only or table.concat({...}, " "):find(only) ~= nil
    figures.matched = figures.matched or is_wanted
    return is_wanted
end

-- --- a peer in Python ----------------------------------------------------

-- Is one wanted? --peer no, which only some take, is cut out of the arguments:
-- to be called before start.
function figures.peer_wanted()
    local is_wanted = true
    for i = #arg - 1, 1, -1 do
        if arg[i] == "--peer" then
            is_wanted = arg[i + 1] ~= "no"
            table.remove(arg, i)
            table.remove(arg, i)
        end
    end
    return is_wanted
end

-- What a program for python3 prints, lines "name<tab>number", by their names,
-- and what it prints as its version; nil: it does not come so far.
function figures.ask_python(program)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(program)
    file:close()
    local found, version = {}, nil
    local output = io.popen("python3 " .. path .. " 2>/dev/null")
    for line in output:lines() do
        local name, value = line:match "^(.-)\t(.*)$"
        if name == "version" then version = value end
        if name then found[name] = tonumber(value) end
    end
    output:close()
    os.remove(path)
    return version and found, version
end

-- In such a program: measure(f), the median seconds of a call, for which wait()
-- is to be there, and tell(name, f), which prints it.
figures.python = [[
import time
def measure(f, seconds):
    f(); f(); wait()
    def run(calls):
        start = time.perf_counter()
        for _ in range(calls): f()
        wait()
        return (time.perf_counter() - start) / calls
    calls = max(1, min(1000, int(seconds / 5 / max(run(1), 1e-9))))
    return sorted(run(calls) for _ in range(5))[2]
def tell(name, f, seconds):
    try: print("%s\t%.9g" % (name, measure(f, seconds)), flush=True)
    except Exception: print("%s\tnone" % name, flush=True)
]]

-- --- experiments ---------------------------------------------------------

-- The quartiles and the median of a row's samples.
function figures.time(row)
    local sorted = table.move(row.samples, 1, #row.samples, 1, {})
    table.sort(sorted)
    return {median = row.median, low = sorted[1 + #sorted // 4],
        high = sorted[#sorted - #sorted // 4]}
end

-- Seconds of a row that count: held ones where there are any.
function figures.seconds(row)
    return row.held or row.median
end

-- Runs the experiment and calls show(rows) for the points of each group, as
-- soon as all of them have their rows. Those that a run directory has already
-- are shown again. each(row), if any, is called for each row before.
function figures.run(spec, seconds, show, each)
    local dir, groups, place = figures.options.dir, {}, {}
    spec.dir = dir and dir .. "/" .. spec.name or false
    spec.stop = function(samples, spent)
        return #samples >= 3 and spent > seconds
    end
    local function names_of(p)
        local words = {}
        for i, name in ipairs(spec.group) do words[i] = tostring(p[name]) end
        return table.concat(words, " "), p.kernel or p.what
    end
    for _, p in ipairs(spec.axes) do
        local group, own = names_of(p)
        groups[group] = groups[group] or {left = 0}
        groups[group].left = groups[group].left + 1
        place[group .. "\n" .. own] = groups[group].left
    end
    local function take(row)
        local name, own = names_of(row.p)
        local group = groups[name]
        group[place[name .. "\n" .. own]] = row
        group.left = group.left - 1
        if each then each(row) end
        if group.left == 0 then show(group) end
    end
    local e = experiment(spec)
    for _, row in ipairs(e:results()) do take(row) end
    e:run{quiet = true, order = "given", each = take}
    return e
end

-- What a measure returns of a kernel that an error says is not made for this.
function figures.cannot(problem)
    problem = tostring(problem)
    if problem:find("interrupted", 1, true) then error(problem, 0) end
    return false, problem
end

-- Says what of the rows was left out or was wrong; the others.
function figures.good(rows)
    local good = {}
    for _, row in ipairs(rows) do
        if row.status == "ok" then
            good[#good + 1] = row
        elseif row.status == "skipped" then
            figures.left_out(row.p.kernel, row.message)
        else
            figures.fails(row.p.kernel, (row.message:gsub("^check: ", "")))
        end
    end
    return good
end

-- Takes the next of the sets at each call, so that no cache holds them all.
function figures.rotating(sets, f)
    local i = 0
    return function()
        i = i % #sets + 1
        return f(sets[i])
    end
end

-- --- the table -----------------------------------------------------------

local columns = {"what", "kernel", "dtype", "size", "seconds", "low", "high",
    "held", "rate", "unit", "share", "peak", "error", "worst", "ratio",
    "must", "goal", "verdict"}

local function quoted(value)
    if type(value) ~= "string" then return tostring(value or "") end
    return '"' .. value:gsub('"', '""') .. '"'
end

-- A line of the CSV file, its first one being the names of the columns.
function figures.record(row)
    if not figures.csv then return end
    if not figures.headed then
        assert(figures.csv:write(table.concat(columns, ","), "\n"))
        figures.headed = true
    end
    local fields = {}
    for i, name in ipairs(columns) do fields[i] = quoted(row[name]) end
    assert(figures.csv:write(table.concat(fields, ","), "\n"))
end

function figures.heading(title)
    print(("\n%s\n  %-14s %11s %11s %16s %9s %8s %8s %6s"):format(title,
        "kernel", "median", "held", "rate", "of peak", "error", "worst",
        "x peer"))
end

local function time_text(seconds)
    if not seconds then return ("%11s"):format("") end
    if seconds < 1e-3 then return ("%8.4g us"):format(seconds * 1e6) end
    if seconds < 1 then return ("%8.4g ms"):format(seconds * 1e3) end
    return ("%8.4g s "):format(seconds)
end

-- A figure: kernel, dtype, size, time (median, low, high), held, flops, bytes, error,
-- worst, peer (seconds of the vendor's). Held times count where there are
-- any. The share of a kernel of tensor cores may exceed 100 %: the peak is
-- that of plain multiply-adds.
function figures.show(f)
    local seconds = f.held or f.time.median
    f.seconds, f.low, f.high = f.time.median, f.time.low, f.time.high
    f.rate, f.unit, f.share, f.peak = rate(f.flops, f.bytes, seconds,
        f.dtype, figures.options.device)
    f.ratio = f.peer and f.peer / seconds
    print(("  %-14s %s %s %8.4g %-7s %5s %% %s %8s %8s %6s"):format(f.kernel,
        time_text(f.seconds), time_text(f.held), f.rate or 0, f.unit or "",
        ("%.0f"):format(100 * (f.share or 0)), (f.peak or ""):sub(1, 3),
        f.error and ("%.1e"):format(f.error) or "",
        f.worst and ("%.1e"):format(f.worst) or "",
        f.ratio and ("%.2f"):format(f.ratio) or ""))
    figures.record(f)
end

-- why is a reason, or an error's message with its place and operation.
function figures.left_out(kernel, why)
    why = why:gsub("^[^:]*:%d+: ", ""):gsub("^%l+: ", "")
    print(("  %-14s %s"):format(kernel, why:sub(1, 82)))
end

-- A result that is wrong is never timed.
function figures.fails(kernel, what)
    figures.failures = figures.failures + 1
    print(("  %-14s FAILS: %s"):format(kernel, what))
end

-- --- targets -------------------------------------------------------------

-- value against `must` and `goal`, either of which may be absent; `most`: they
-- are not to be exceeded. A missing value says what is missing.
local function verdict(t)
    local function reaches(limit)
        if t.most then return t.value <= limit end
        return t.value >= limit
    end
    if not t.value then return "not measured" end
    if t.goal and reaches(t.goal) then return "met goal" end
    if t.must and reaches(t.must) then return "met must" end
    local limit = t.must or t.goal
    local off = t.most and t.value / limit - 1 or 1 - t.value / limit
    return ("missed by %.1f %%"):format(100 * off)
end

function figures.target(t)
    figures.targets[#figures.targets + 1] = t
end

local function number(x)
    return x and ("%.4g"):format(x) or "-"
end

function figures.show_targets()
    if not figures.options.on_gpu then
        print("\nno GPU here: the targets of the ladder are for one")
        return
    end
    print(("\n%-58s %8s %6s %6s  %s"):format("target", "is", "must", "goal",
        "verdict"))
    local met, count = 0, 0
    for _, t in ipairs(figures.targets) do
        local v = verdict(t)
        if t.value then
            count = count + 1
            met = met + (v:find("met ", 1, true) == 1 and 1 or 0)
        end
        print(("%-58s %8s %6s %6s  %s"):format(t.what, number(t.value),
            number(t.must), number(t.goal), v))
        figures.record{what = "target: " .. t.what, ratio = t.value,
            must = t.must, goal = t.goal, verdict = v}
    end
    print(("%d of %d measured targets met"):format(met, count))
end

-- Ends the benchmark: exit code 1 when a result was wrong, or nothing is
-- what was asked for.
function figures.finish()
    print(("\n%.0f s in all, %g s a held figure"):format(
        clock() - figures.started, figures.options.seconds))
    if figures.csv then assert(figures.csv:close()) end
    if not figures.matched then
        io.stderr:write("nothing matches --only ", figures.options.only, "\n")
        os.exit(1)
    end
    if figures.failures > 0 then
        print(("%d results were wrong"):format(figures.failures))
        os.exit(1)
    end
end

return figures
