-- Every kernel of matmul on the products of the ladder's tables: medians and
-- held rates, shares of the measured peak, errors against double precision,
-- ratios to the vendor's kernel; then every target with its verdict.
--   lumat bench_matmul.lua [--quick] [--device D] [--only PATTERN]
--                          [--seconds S] [--csv FILE] [--dir D]
--     --quick     small sizes and short times, to see that everything runs
--     --device    cpu, cuda, cuda:1; else the GPU if there is one
--     --only      figures whose "type size kernel" has the Lua pattern
--     --seconds   how long a held figure repeats its call (0.8)
--     --csv       also write the figures to FILE
--     --dir       keep the run in this folder: started again, only what is
--                 missing is measured
-- Sizes are n, or m x n x k; elements are uniform in -1 .. 1. A kernel's name
-- alone counts everything it does, splitting operands too; `ready` finds its
-- operands already split.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local cases, figures = require "cases", require "figures"

local options = figures.start("bench_matmul")
local where = options.device
local peer_name = options.on_gpu and "cublas" or "openblas"

-- A single call that would take longer is left out.
local patience = options.quick and 0.1 or options.on_gpu and 0.6 or 1

-- --- shapes --------------------------------------------------------------

local function square(n, block)
    return {m = n, n = n, k = n, block = block,
        label = ("%d%s"):format(n, block and " odd ld" or "")}
end

local function oblong(s)
    return {m = s[1], n = s[2], k = s[3],
        label = ("%dx%dx%d"):format(s[1], s[2], s[3])}
end

local function shape_list(squares, blocks, oblongs)
    local list = {}
    for _, n in ipairs(squares) do list[#list + 1] = square(n) end
    for _, n in ipairs(blocks) do list[#list + 1] = square(n, true) end
    for _, s in ipairs(oblongs) do list[#list + 1] = oblong(s) end
    return list
end

local function shapes(dtype)
    if options.quick then
        return shape_list({64, 256}, {129}, {{65, 33, 1055}})
    elseif not options.on_gpu then
        return shape_list({64, 256, 512, 1024}, {513}, {{2137, 108, 1055}})
    elseif dtype == "f64" then
        return shape_list({512, 1024, 2048, 4096, 8192, 4097}, {},
            {{2137, 108, 1055}, {64, 64, 131072}})
    end
    return shape_list({512, 1024, 2048, 4096, 4097, 8192, 8191, 16384},
        {8192}, cases.oblongs)
end

-- --- rungs ---------------------------------------------------------------

-- The rows of a shape: the kernels as the ladder lists them, twice those that
-- keep what they work out, and `auto`. The vendor's comes first, as all
-- others are compared with it.
local function rows_of_ladder()
    local rows = {}
    for _, k in ipairs(kernel_list(where)) do
        if k.operation == "matmul" and k.available then
            local row = {label = k.name, kernel = k.name, rung = k}
            if k.name == peer_name then
                table.insert(rows, 1, row)
            else
                rows[#rows + 1] = row
            end
            if k.name:find("^split") then
                rows[#rows + 1] = {label = k.name .. " ready", kernel = k.name,
                    rung = k, ready = true}
            end
        end
    end
    rows[#rows + 1] = {label = "auto", kernel = "auto",
        rung = {name = peer_name, precision = "f32"}}
    return rows
end

-- The figures that targets need are held, from the smallest size that they
-- name on; medians suffice for the others.
local held_everywhere = {cublas = true, split16 = true, auto = true,
    dmma = true}
local held_squares = {["split16 ready"] = 1, simt = 2048, tf32 = 1024,
    bf16 = 1024, ["cublas-tf32"] = 1024, ["cublas-bf16"] = 1024}

local function is_held(case, row)
    local smallest = held_squares[row.label]
    return options.on_gpu and (held_everywhere[row.label] or smallest and
        case.m == case.n and case.n == case.k and case.k >= smallest and
        not case.block)
end

-- --- one product ---------------------------------------------------------

local function runner(row, sets)
    local how = {}
    for i, set in ipairs(sets) do how[set] = {kernel = row.kernel,
        out = set.C} end
    return figures.rotating(sets, function(set)
        if not row.ready then
            forget(set.A)
            forget(set.B)
        end
        matmul(set.A, set.B, how[set])
    end)
end

-- The bound of `auto` is that of the rung it takes.
local function rung_of(row, set)
    if row.kernel ~= "auto" then return row.rung end
    local name = kernel_choice(set.A, set.B)
    for _, k in ipairs(kernel_list(where)) do
        if k.operation == "matmul" and k.name == name then return k end
    end
end

-- --- the experiment ------------------------------------------------------

-- cases_of[dtype][shape]: what is multiplied, with results[row], the seconds
-- a call, held where it was. rows[label]: the ladder.
local cases_of, rows = {f32 = {}, f64 = {}}, rows_of_ladder()
for _, row in ipairs(rows) do rows[row.label] = row end

local function flops_of(case)
    return 2.0 * case.m * case.n * case.k
end

-- The rows of a shape that are asked for, and the vendor's beside them.
local function points_of(case)
    local points, is_wanted = {}, false
    for _, row in ipairs(rows) do
        local own = figures.wanted(case.dtype, case.label, row.label)
        is_wanted = is_wanted or own
        if own or row.label == peer_name then
            points[#points + 1] = {dtype = case.dtype, size = case.label,
                kernel = row.label}
        end
    end
    return is_wanted and points or {}
end

local function all_points()
    local all = {}
    for _, dtype in ipairs{"f32", "f64"} do
        for _, case in ipairs(shapes(dtype)) do
            case.dtype, case.results = dtype, {}
            cases_of[dtype][case.label] = case
            table.move(points_of(case), 1, #rows, #all + 1, all)
        end
    end
    return all
end

-- pace[dtype .. label]: seconds a flop at the last shape.
local pace = {}

local function take_pace(row)
    if row.status == "ok" then
        pace[row.p.dtype .. row.p.kernel] = row.median / row.flops
    end
end

-- Operands of its own, and split: the other rows of the shape take turns with
-- it and forget what is kept of theirs. Fewer than theirs, as no more than 256
-- things are kept: still more than a cache holds.
local READY_SETS = 32

local function ready_sets(case, row)
    local sets = cases.sets(case, where)
    for i = #sets, READY_SETS + 1, -1 do sets[i] = nil end
    for _, set in ipairs(sets) do
        matmul(set.A, set.B, {kernel = row.kernel, out = set.C})
    end
    return sets
end

-- The result that is checked, and what is timed; false and why where the call
-- is too slow or the kernel not made for this.
local function begin(p, s, case, row)
    local promised = (pace[p.dtype .. row.label] or 0) * flops_of(case)
    if promised > patience then
        return false, ("left out: a call promises %.1f s"):format(promised)
    end
    local ok, C, spilled = pcall(cases.run, case, s.sets[1].A, s.sets[1].B,
        nil, row.kernel)
    if not ok then return figures.cannot(C) end
    s.C, s.spilled = C, spilled
    return runner(row, row.ready and ready_sets(case, row) or s.sets)
end

local function show_rows(list)
    local case = cases_of[list[1].p.dtype][list[1].p.size]
    figures.heading(("%s, %s"):format(case.label, case.dtype))
    local good = figures.good(list)
    local peer = good[1] and good[1].p.kernel == peer_name and good[1]
    for _, row in ipairs(good) do
        figures.show{what = "matmul", kernel = row.p.kernel, dtype = case.dtype,
            size = case.label, time = figures.time(row), held = row.held,
            peer = peer and (row.held and peer.held or peer.median),
            flops = row.flops, bytes = 0, error = row.check,
            worst = row.values.worst}
        case.results[row.p.kernel] = figures.seconds(row)
    end
end

local function case_of(p) return cases_of[p.dtype][p.size] end

local function measure_products()
    local points = all_points()
    if #points == 0 then return end
    figures.run({name = "products", axes = points, group = {"dtype", "size"},
        setup = function(p)
            local case = case_of(p)
            local sets = cases.sets(case, where)
            return {sets = sets,
                known = cases.reference(case, sets[1].A, sets[1].B)}
        end,
        measure = function(p, s)
            return begin(p, s, case_of(p), rows[p.kernel])
        end,
        check = function(p, s)
            local what, found = cases.judge(case_of(p), s.C, s.known,
                rung_of(rows[p.kernel], s.sets[1]), where)
            s.C = nil
            if s.spilled or what then return false, s.spilled or what end
            return found.error, {worst = found.worst}
        end,
        flops = function(p) return flops_of(case_of(p)) end,
        hold = function(p)
            return is_held(case_of(p), rows[p.kernel]) and options.seconds
        end}, options.seconds / 10, show_rows, take_pace)
end

-- --- rates at a glance ---------------------------------------------------

local ACROSS = 5 -- shapes beside each other

local function table_line(label, list, first, cell)
    local line = {("%-14s"):format(label)}
    for i = first, math.min(first + ACROSS - 1, #list) do
        line[#line + 1] = ("%16s"):format(cell(list[i]))
    end
    print((table.concat(line):gsub("%s+$", "")))
end

local function rate_table(dtype)
    local list = {}
    for _, case in ipairs(shapes(dtype)) do
        if next(cases_of[dtype][case.label].results) then
            list[#list + 1] = cases_of[dtype][case.label]
        end
    end
    local scale, unit = 1e9, " GFLOP/s"
    if options.on_gpu then scale, unit = 1e12, " TFLOP/s" end
    for first = 1, #list, ACROSS do
        print("")
        table_line(dtype .. unit, list, first, function(c) return c.label end)
        for _, row in ipairs(rows) do
            table_line(row.label, list, first, function(c)
                local seconds = c.results[row.label]
                return seconds and ("%.4g"):format(
                    flops_of(c) / seconds / scale) or ""
            end)
        end
    end
end

-- --- errors --------------------------------------------------------------

local function error_shapes()
    local list = {}
    for _, k in ipairs{1, 16, 32, 64, 256, 1024, 2048, 4096, 16384} do
        list[#list + 1] = {m = 1024, n = 1024, k = k}
    end
    list[#list + 1] = {m = 4096, n = 4096, k = 4096}
    list[#list + 1] = {m = 2048, n = 2048, k = 2048}
    for _, s in ipairs(cases.oblongs) do
        list[#list + 1] = {m = s[1], n = s[2], k = s[3]}
    end
    return list
end

-- a / b, where nothing is as good as nothing.
local function quotient(a, b)
    return a == 0 and 0 or a / b
end

-- The largest ratios of split16's errors to the vendor's, by group.
local groups = {
    {name = "K from 256", must = 1,
     has = function(c) return c.k >= 256 end},
    {name = "every K, shape", goal = 1,
     has = function() return true end},
    {name = "square from 1024", goal = 0.5,
     has = function(c) return c.m == c.n and c.n == c.k and c.k >= 1024 end},
}

local function note_errors(case, ours, theirs)
    for _, group in ipairs(groups) do
        for _, key in ipairs{"frobenius", "worst"} do
            local q = quotient(ours[key], theirs[key])
            if group.has(case) and q >= (group[key] or 0) then
                group[key], group[key .. "_at"] = q, ("%dx%dx%d %s"):format(
                    case.m, case.n, case.k, case.data)
            end
        end
    end
end

-- Where split16 refuses, the rung that auto takes instead counts.
local function errors_of(s, kernel)
    local ok, C = pcall(cases.run, s.case, s.A, s.B, nil, kernel)
    if not ok then C = cases.run(s.case, s.A, s.B, nil, "auto") end
    return cases.errors(s.case, C, s.known, 1)
end

-- The rows of split16 and of the vendor's kernel for the same operands.
local function show_errors(pair)
    if #figures.good(pair) < 2 then return end
    local p, ours, theirs = pair[1].p, pair[1].values, pair[2].values
    note_errors(p, ours, theirs)
    print(("  %-10s %6d %6d %6d %11.2e %9.2e %6.2f %11.2e %9.2e %6.2f"):format(
        p.data, p.m, p.n, p.k, ours.frobenius, theirs.frobenius,
        quotient(ours.frobenius, theirs.frobenius), ours.worst, theirs.worst,
        quotient(ours.worst, theirs.worst)))
    figures.record{what = "error", kernel = "split16", dtype = "f32",
        size = ("%dx%dx%d %s"):format(p.m, p.n, p.k, p.data),
        error = ours.frobenius, worst = ours.worst,
        ratio = quotient(ours.frobenius, theirs.frobenius)}
end

local function has_kernel(name)
    for _, k in ipairs(kernel_list(where)) do
        if k.operation == "matmul" and k.name == name and k.available then
            return true
        end
    end
    return false
end

local function error_points()
    local points = {}
    for _, data in ipairs(cases.data) do
        for _, shape in ipairs(error_shapes()) do
            local is_few = shape.k == 256 or shape.k == 4096
            if not data.special and (not data.exact or is_few) then
                for _, kernel in ipairs{"split16", "cublas"} do
                    points[#points + 1] = {m = shape.m, n = shape.n,
                        k = shape.k, data = data.name, kernel = kernel}
                end
            end
        end
    end
    return points
end

local function measure_errors()
    if options.quick or not (has_kernel "split16" and has_kernel "cublas") or
        not figures.wanted("f32", "errors", "split16") then
        return
    end
    print("\nerrors against double precision, by Frobenius norms and the "
        .. "largest |e| / (|A||B|)")
    print(("  %-10s %6s %6s %6s %11s %9s %6s %11s %9s %6s"):format("data", "m",
        "n", "k", "split16", "cublas", "ratio", "worst", "cublas", "ratio"))
    figures.run({name = "errors", axes = error_points(),
        group = {"data", "m", "n", "k"}, warmup = 0, repeats = 1,
        setup = function(p)
            local case = {m = p.m, n = p.n, k = p.k, dtype = "f32",
                data = p.data}
            local A, B = cases.operands(case, where)
            return {case = case, A = A, B = B,
                known = cases.reference(case, A, B)}
        end,
        measure = function(p, s)
            local start = clock()
            local found = errors_of(s, p.kernel)
            return clock() - start,
                {frobenius = found.error, worst = found.worst}
        end}, 0, show_errors)
end

-- --- targets -------------------------------------------------------------

-- How many times as fast as the other one; nil where one was not measured.
local function ratio(dtype, size, row, other)
    local case = cases_of[dtype][size]
    local r = case and case.results or {}
    return r[row] and r[other] and r[other] / r[row]
end

local function against(dtype, sizes, row, other, must, goal)
    for _, size in ipairs(sizes) do
        local name = dtype == "f64" and other .. " f64" or other
        figures.target{what = ("%s against %s, %s"):format(row, name, size),
            value = ratio(dtype, tostring(size), row, other), must = must,
            goal = goal}
    end
end

-- The rate at an odd size as a share of that at the even one beside it.
local function odd_size(odd, even)
    local a, b = cases_of.f32[odd], cases_of.f32[even]
    a, b = a and a.results, b and b.results
    local n = tonumber(odd:match("%d+"))
    local value = a and b and a.split16 and b.split16 and
        (n / tonumber(even)) ^ 3 * b.split16 / a.split16
    figures.target{what = ("split16, %s against %s"):format(odd, even),
        value = value, must = 0.90, goal = 0.97}
end

local function split16_targets()
    local musts = {[16384] = {4.0, 4.3}, [8192] = {4.0, 4.35},
        [4096] = {3.75, 4.2}, [2048] = {3.3, 3.8}, [1024] = {2.5, 3.3},
        [512] = {1.0, 1.6}}
    for _, n in ipairs{16384, 8192, 4096, 2048, 1024, 512} do
        against("f32", {n}, "split16", "cublas", musts[n][1], musts[n][2])
    end
    against("f32", {8192}, "split16 ready", "cublas", 4.35, 4.6)
    odd_size("4097", "4096")
    odd_size("8191", "8192")
    odd_size("8192 odd ld", "8192")
    for _, group in ipairs(groups) do
        for _, key in ipairs{"frobenius", "worst"} do
            figures.target{what = ("%s against cublas, %s %s"):format(
                key == "frobenius" and "error" or "largest |e|", group.name,
                group[key .. "_at"] or ""):sub(1, 58), value = group[key],
                must = group.must, goal = group.goal, most = true}
        end
    end
end

local function set_targets()
    split16_targets()
    against("f32", {"256x256x16384", "16384x64x16384", "32768x128x128",
        "2137x108x1055"}, "auto", "cublas", 1.0, 1.5)
    against("f32", {2048, 4096, 4097, 8192, 8191, 16384}, "simt", "cublas",
        0.90, 1.05)
    against("f32", {512, 1024, 2048, 4096, 8192, 16384, 4097, 8191,
        "64x64x131072"}, "auto", "cublas", 1.0, 1.5)
    for _, precision in ipairs{"tf32", "bf16"} do
        against("f32", {1024, 2048, 4096, 8192, 16384}, precision,
            "cublas-" .. precision, 0.85, 1.0)
    end
    against("f64", {1024, 2048, 4096, 8192}, "dmma", "cublas", 0.85, 1.0)
end

measure_products()
measure_errors()
rate_table "f32"
rate_table "f64"
set_targets()
figures.show_targets()
figures.finish()
