-- Every kernel of dot from 2^10 elements to what the memory holds, and the
-- products of a matrix with a vector, beside a plain read of the same bytes
-- and the vendor's kernel; then every target with its verdict.
--   lumat bench_dot.lua [--quick] [--device D] [--only PATTERN]
--                       [--seconds S] [--csv FILE]
--     --quick     small sizes and short times, to see that everything runs
--     --device    cpu, cuda, cuda:1; else the GPU if there is one
--     --only      figures whose "type size kernel" has the Lua pattern
--     --seconds   how long a held figure repeats its call (0.8)
--     --csv       also write the figures to FILE
-- A dot waits for its answer: at small sizes that is most of the time.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local cases, figures = require "cases", require "figures"

local options = figures.start("bench_dot")
local where = options.device
local peer_name = options.on_gpu and "cublas" or "openblas"
local element = {f32 = 4.0, f64 = 8.0}

-- --- what is timed -------------------------------------------------------

-- The vendor's kernel first, as all others are compared with it.
local function rungs(operation)
    local list = {}
    for _, k in ipairs(kernel_list(where)) do
        if k.operation == operation and k.available and
            k.precision == "f32" then
            table.insert(list, k.name == peer_name and 1 or #list + 1, k)
        end
    end
    list[#list + 1] = {name = "auto", precision = "f32", is_auto = true}
    return list
end

-- What a kernel promises; `auto` takes one of the others.
local function bound_of(case, rung, set)
    local name = rung.name
    if rung.is_auto then
        name = kernel_choice(set.A, set.B)
    end
    return {name = name, precision = rung.precision}
end

-- results[dtype .. size][kernel]: seconds, held where it was.
local results = {}

-- --- one shape -----------------------------------------------------------

-- The rungs that ran and were right, with run, time and errors.
local function measure_rungs(case, sets, run_with)
    local known = cases.reference(case, sets[1].A, sets[1].B)
    local good = {}
    for _, rung in ipairs(rungs(case.operation)) do
        if rung.name == peer_name or
            figures.wanted(case.dtype, case.label, rung.name) then
            local ok, C = pcall(cases.run, case, sets[1].A, sets[1].B, nil,
                rung.name)
            if not ok then
                figures.left_out(rung.name, C)
            else
                local what, found = cases.judge(case, C, known,
                    bound_of(case, rung, sets[1]), where)
                if what then
                    figures.fails(rung.name, what)
                else
                    local run = run_with(rung.name)
                    good[#good + 1] = {name = rung.name, run = run,
                        found = found, time = figures.median(run)}
                end
            end
        end
    end
    return good
end

local function show_rungs(case, good)
    local peer = good[1] and good[1].name == peer_name and good[1]
    local times = {bytes = case.bytes}
    results[case.dtype .. " " .. case.label] = times
    for _, g in ipairs(good) do
        times[g.name] = g.held or g.time.median
        figures.show{what = case.what, kernel = g.name, dtype = case.dtype,
            size = case.label, time = g.time, held = g.held, flops = 0,
            bytes = case.bytes, error = g.found.error, worst = g.found.worst,
            peer = peer and (g.held and peer.held or peer.time.median)}
    end
end

local reads = {{name = "read (sum)", read = sum},
    {name = "read (max)", read = max}}

-- A plain read of the parts of the sets, by two reductions.
local function add_reads(good, sets, parts)
    for _, r in ipairs(reads) do
        local run = figures.rotating(sets, function(set)
            for _, part in ipairs(parts) do r.read(set[part]) end
        end)
        good[#good + 1] = {name = r.name, run = run, found = {},
            time = figures.median(run), is_read = true}
    end
end

-- What targets compare is held; of dot, every rung.
local function hold(case, good)
    local runs, held = {}, {}
    for _, g in ipairs(good) do
        if case.operation == "dot" or g.is_read or g.name == "auto" or
            g.name == peer_name then
            runs[#runs + 1], held[#held + 1] = g.run, g
        end
    end
    for i, seconds in ipairs(figures.held(runs)) do held[i].held = seconds end
end

local function is_wanted_at_all(case)
    for _, rung in ipairs(rungs(case.operation)) do
        if figures.wanted(case.dtype, case.label, rung.name) then
            return true
        end
    end
end

local function measure(case, sets, run_with, parts)
    figures.heading(("%s, %s"):format(case.title, case.dtype))
    local good = measure_rungs(case, sets, run_with)
    if case.large then
        add_reads(good, sets, parts)
        hold(case, good)
    end
    show_rungs(case, good)
end

-- --- dot -----------------------------------------------------------------

local function dot_case(dtype, power, largest)
    return {operation = "dot", k = 1 << power, dtype = dtype,
        label = "2^" .. power, what = "dot", title = "dot, 2^" .. power,
        bytes = 2 * element[dtype] * (1 << power), large = power >= largest}
end

local function measure_dots(dtype, powers)
    local largest = powers[#powers]
    for _, power in ipairs(powers) do
        local case = dot_case(dtype, power, largest)
        if is_wanted_at_all(case) then
            local sets = cases.sets(case, where)
            measure(case, sets, function(kernel)
                local how = {kernel = kernel}
                return figures.rotating(sets, function(set)
                    return dot(set.A, set.B, how)
                end)
            end, {"A", "B"})
        end
        collectgarbage() -- the operands' memory, before the next ones'
    end
end

-- --- matrix and vector ---------------------------------------------------

local function vector_case(dtype, rows, cols, side)
    local is_left = side == "vector * matrix"
    return {operation = "matmul", dtype = dtype, large = true,
        m = is_left and 1 or rows, n = is_left and cols or 1,
        k = is_left and rows or cols,
        label = ("%s %dx%d"):format(side, rows, cols),
        what = side, title = ("%s, %dx%d"):format(side, rows, cols),
        bytes = element[dtype] * (rows * cols + rows + cols)}
end

local function measure_vectors(dtype, shapes)
    for _, s in ipairs(shapes) do
        for _, side in ipairs{"matrix * vector", "vector * matrix"} do
            local case = vector_case(dtype, s[1], s[2], side)
            if is_wanted_at_all(case) then
                local sets = cases.sets(case, where)
                measure(case, sets, function(kernel)
                    return figures.rotating(sets, function(set)
                        matmul(set.A, set.B, {kernel = kernel, out = set.C})
                    end)
                end, {side == "matrix * vector" and "A" or "B"})
            end
            collectgarbage()
        end
    end
end

-- --- targets -------------------------------------------------------------

local function ratio(label, row, other)
    local r = results[label]
    return r and r[row] and r[other] and r[other] / r[row]
end

-- Beside the faster of the two reads.
local function against_read(label, must, goal)
    local r = results[label] or {}
    local by_sum, by_max = r["read (sum)"], r["read (max)"]
    local name = by_sum and by_max and by_max < by_sum and "read (max)" or
        "read (sum)"
    figures.target{what = ("auto against the %s, %s"):format(name, label),
        value = ratio(label, "auto", name), must = must, goal = goal}
    if r.auto and by_sum then
        print(("%s: auto %.4g GB/s, sum %.4g, max %.4g, peak() %.4g"):format(
            label, r.bytes / r.auto / 1e9, r.bytes / by_sum / 1e9,
            r.bytes / by_max / 1e9, peak(where).bytes / 1e9))
    end
end

local function against_peer(label, must, goal)
    figures.target{what = ("auto against cublas, dot %s"):format(label),
        value = ratio(label, "auto", "cublas"), must = must, goal = goal}
end

local function set_targets(shapes)
    print("")
    against_read("f32 2^29", 0.97, 0.99)
    against_peer("f32 2^29", 1.02, 1.05)
    for _, power in ipairs{10, 12, 14, 16, 18, 20} do
        against_peer("f32 2^" .. power, 1.5, 3)
    end
    for _, s in ipairs(shapes) do
        for _, side in ipairs{"matrix * vector", "vector * matrix"} do
            against_read(("f32 %s %dx%d"):format(side, s[1], s[2]), 0.90, 0.97)
        end
    end
end

-- --- everything ----------------------------------------------------------

local powers, vectors = {10, 12, 14, 16, 18, 20, 24, 27, 29},
    {{8192, 8192}, {32768, 8192}}
if options.quick then
    powers, vectors = {10, 16}, {{129, 257}}
elseif not options.on_gpu then
    powers, vectors = {10, 12, 14, 16, 18, 20, 22}, {{1024, 1024}}
end
measure_dots("f32", powers)
powers[#powers] = powers[#powers] - 1 -- the same bytes
measure_dots("f64", powers)
measure_vectors("f32", vectors)
measure_vectors("f64", {vectors[1]})
set_targets(vectors)
figures.show_targets()
figures.finish()
