-- Every kernel of dot from 2^10 elements to what the memory holds, and the
-- products of a matrix with a vector, beside a plain read of the same bytes
-- and the vendor's kernel; then every target with its verdict.
--   lumat bench_dot.lua [--quick] [--device D] [--only PATTERN]
--                       [--seconds S] [--csv FILE] [--dir D]
--     --quick     small sizes and short times, to see that everything runs
--     --device    cpu, cuda, cuda:1; else the GPU if there is one
--     --only      figures whose "type size kernel" has the Lua pattern
--     --seconds   how long a held figure repeats its call (0.8)
--     --csv       also write the figures to FILE
--     --dir       keep the run in this folder: started again, only what is
--                 missing is measured
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

-- --- what there is to measure --------------------------------------------

local function dot_case(dtype, power, largest)
    return {operation = "dot", k = 1 << power, dtype = dtype,
        label = "2^" .. power, what = "dot", title = "dot, 2^" .. power,
        bytes = 2 * element[dtype] * (1 << power), large = power >= largest,
        parts = {"A", "B"}}
end

local function vector_case(dtype, rows, cols, side)
    local is_left = side == "vector * matrix"
    return {operation = "matmul", dtype = dtype, large = true,
        m = is_left and 1 or rows, n = is_left and cols or 1,
        k = is_left and rows or cols,
        label = ("%s %dx%d"):format(side, rows, cols),
        what = side, title = ("%s, %dx%d"):format(side, rows, cols),
        bytes = element[dtype] * (rows * cols + rows + cols),
        parts = {is_left and "B" or "A"}}
end

-- All cases in order, also by dtype .. " " .. label.
local function list_cases(powers, vectors)
    local list = {}
    local function add(case)
        list[#list + 1] = case
        list[case.dtype .. " " .. case.label] = case
    end
    for i, dtype in ipairs{"f32", "f64"} do
        for j, power in ipairs(powers) do
            if i == 2 and j == #powers then power = power - 1 end -- the same bytes
            add(dot_case(dtype, power, powers[#powers] - i + 1))
        end
    end
    for i, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs(i == 1 and vectors or {vectors[1]}) do
            add(vector_case(dtype, s[1], s[2], "matrix * vector"))
            add(vector_case(dtype, s[1], s[2], "vector * matrix"))
        end
    end
    return list
end

-- Plain reads of the same bytes, by two reductions.
local reads = {["read (sum)"] = sum, ["read (max)"] = max}

-- The rungs of a case that are asked for, the vendor's and plain reads beside
-- them.
local function points_of(case)
    local points, is_wanted = {}, false
    local function add(kernel)
        points[#points + 1] = {dtype = case.dtype, size = case.label,
            kernel = kernel}
    end
    case.rungs = rungs(case.operation)
    for _, rung in ipairs(case.rungs) do
        local own = figures.wanted(case.dtype, case.label, rung.name)
        is_wanted = is_wanted or own
        if own or rung.name == peer_name then add(rung.name) end
        case.rungs[rung.name] = rung
    end
    if not is_wanted then return {} end
    if case.large then
        add "read (sum)"
        add "read (max)"
    end
    return points
end

-- --- the experiment ------------------------------------------------------

-- results[dtype .. size][kernel]: seconds, held where it was.
local results = {}

-- What targets compare is held; of dot, every rung.
local function is_held(case, kernel)
    return case.large and (case.operation == "dot" or reads[kernel] or
        kernel == "auto" or kernel == peer_name)
end

-- What is timed: a kernel, or a plain read.
local function work_of(case, kernel, sets)
    local read, how = reads[kernel], {kernel = kernel}
    if read then
        return figures.rotating(sets, function(set)
            for _, part in ipairs(case.parts) do read(set[part]) end
        end)
    elseif case.operation == "dot" then
        return figures.rotating(sets, function(set)
            return dot(set.A, set.B, how)
        end)
    end
    return figures.rotating(sets, function(set)
        matmul(set.A, set.B, {kernel = kernel, out = set.C})
    end)
end

local function show_case(case, list)
    figures.heading(("%s, %s"):format(case.title, case.dtype))
    local good = figures.good(list)
    local peer = good[1] and good[1].p.kernel == peer_name and good[1]
    local times = {bytes = case.bytes}
    results[case.dtype .. " " .. case.label] = times
    for _, row in ipairs(good) do
        times[row.p.kernel] = figures.seconds(row)
        figures.show{what = case.what, kernel = row.p.kernel,
            dtype = case.dtype, size = case.label, time = figures.time(row),
            held = row.held, flops = 0, bytes = case.bytes, error = row.check,
            worst = row.values and row.values.worst,
            peer = peer and (row.held and peer.held or peer.median)}
    end
end

local function measure_all(list)
    local points = {}
    for _, case in ipairs(list) do
        local own = points_of(case)
        table.move(own, 1, #own, #points + 1, points)
    end
    if #points == 0 then return end
    local function case_of(p) return list[p.dtype .. " " .. p.size] end
    figures.run({name = "dots", axes = points, group = {"dtype", "size"},
        setup = function(p)
            local sets = cases.sets(case_of(p), where)
            return {sets = sets,
                known = cases.reference(case_of(p), sets[1].A, sets[1].B)}
        end,
        measure = function(p, s)
            local case, set = case_of(p), s.sets[1]
            if not reads[p.kernel] then
                local ok, C = pcall(cases.run, case, set.A, set.B, nil,
                    p.kernel)
                if not ok then return figures.cannot(C) end
                s.C = C
            end
            return work_of(case, p.kernel, s.sets)
        end,
        check = function(p, s)
            local case = case_of(p)
            if reads[p.kernel] then return true end
            local what, found = cases.judge(case, s.C, s.known,
                bound_of(case, case.rungs[p.kernel], s.sets[1]), where)
            s.C = nil
            if what then return false, what end
            return found.error, {worst = found.worst}
        end,
        bytes = function(p) return case_of(p).bytes end,
        hold = function(p)
            return is_held(case_of(p), p.kernel) and options.seconds
        end}, options.seconds / 10,
        function(rows) show_case(case_of(rows[1].p), rows) end)
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
measure_all(list_cases(powers, vectors))
set_targets(vectors)
figures.show_targets()
figures.finish()
