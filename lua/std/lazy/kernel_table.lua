-- The ladder: its rungs listed, and raced on a product.
local library, _, _, private = ...
local ladder = {}
local checks, products = require "lumat.checks", require "lumat.products"
local fail, brief = checks.fail, checks.brief
local ipairs, pcall, require, tostring, type = ipairs, pcall, require, tostring,
    type
local concat, sort = table.concat, table.sort
local format, gsub, match = string.format, string.gsub, string.match
local huge = math.huge

-- --- the list ------------------------------------------------------------

-- Those an operand's type rules out are found by trying, in a race.
local function rungs_of(operation, device)
    local rungs = {}
    for _, k in ipairs(library.kernel_list(device)) do
        if k.operation == operation then rungs[#rungs + 1] = k end
    end
    return rungs
end

-- What the kernel keeps of its operands' own precision.
local function precision_of(k)
    return k.precision == "f32" and "full" or k.precision
end

-- dtype: of the product at hand, if there is one.
local function rung_line(k, chosen, dtype)
    local but = not k.available and format(" (not here: needs %s)", k.needs) or
        dtype and not k[dtype] and format(" (not %s)", dtype) or ""
    return require "lumat.text_layout".wrap(format("%s %-11s %-5s ",
        k.name == chosen and "*" or " ", k.name, precision_of(k)),
        k.idea .. but)
end

-- "matmul 4x5 by 5x6, f32 on cpu; auto takes openblas", and that name.
local function product_title(operation, A, B)
    local chosen = library.kernel_choice(A, B)
    local dtype = (A.dtype == "f64" or B.dtype == "f64") and "f64" or "f32"
    return format("%s %s by %s, %s on %s%s", operation, checks.shape_of(A),
        checks.shape_of(B), dtype, A.device,
        chosen and "; auto takes " .. chosen or ""), chosen, dtype
end

-- Adds an operation's rungs to the list and to the lines that show it.
local function list_operation(list, lines, title, rungs, chosen, dtype)
    lines[#lines + 1] = require "lumat.text_layout".wrap("", title, 2)
    for _, k in ipairs(rungs) do
        list[#list + 1] = k
        lines[#lines + 1] = rung_line(k, chosen, dtype)
    end
end

local function list_ladder(device)
    local list, lines = {}, {}
    for _, operation in ipairs{"dot", "matmul", "spmv", "spmm", "lu",
        "chol", "qr"} do
        local rungs = rungs_of(operation, device)
        if #rungs > 0 then
            list_operation(list, lines, operation .. " on " ..
                (device or library.device()), rungs)
        end
    end
    return list, lines
end

-- The rungs of an operation; nothing if it has none.
local function list_operation_called(name)
    local list, lines, rungs = {}, {}, rungs_of(name)
    if #rungs > 0 then
        list_operation(list, lines, name .. " on " .. library.device(), rungs)
    end
    return list, lines
end

-- The rungs of that name, with what they need; nothing if there is none.
local function list_named(name)
    local list, lines, device = {}, {}, library.device()
    for _, k in ipairs(library.kernel_list()) do
        if k.name == name then
            list_operation(list, lines, k.operation .. " on " .. device, {k})
            lines[#lines + 1] = require "lumat.text_layout".wrap("  needs: ",
                k.needs)
        end
    end
    return list, lines
end

-- Operations that have none on a CPU.
local has_rungs_somewhere = {lu = true, chol = true, qr = true, spmv = true,
    spmm = true}

-- The ladder of a device, or of the default one an operation or a rung,
-- whichever is called so.
local function list_called(name)
    local list, lines = list_operation_called(name)
    if #list > 0 then return list, lines end
    list, lines = list_named(name)
    if #list > 0 then return list, lines end
    if name == "cpu" or match(name, "^cuda") then return list_ladder(name) end
    if has_rungs_somewhere[name] then
        fail("kernels", "%s has no choice of kernels on %s", name,
            (library.device()))
    end
    fail("kernels", "no kernel or device %s on %s: see kernels(), " ..
        'kernels("cpu") or kernels(A, B)', brief(name), (library.device()))
end

local function list_for(A, B)
    checks.product("kernels", A, B)
    local operation, list, lines = products.operation_on(A, B), {}, {}
    local title, chosen, dtype = product_title(operation, A, B)
    list_operation(list, lines, title, rungs_of(operation, A.device), chosen,
        dtype)
    list.choice = chosen
    return list, lines
end

row{
    name = "kernels", method = true,
    takes = "[device: device] or name: kernel or A: matrix|sparse, B: matrix " ..
        "product A",
    gives = "table",
    group = "products",
    help = "The ladder: every kernel of dot and matmul, and on a GPU of sparse " ..
        "products, lu, chol and qr, with its precision, idea and needs; of a kernel's or an " ..
        "operation's name, that; or those for A * B, with the one that auto " ..
        "takes, of distributed matrices those that the pool's processes have. " ..
        "Also :kernel.",
    example = "kernels(\"cpu\").count > 2",
    result = "true",
}
function ladder.kernels(A, B)
    local list, lines
    if B ~= nil then
        list, lines = list_for(A, B)
    elseif A == nil then
        list, lines = list_ladder()
    else
        list, lines = list_called(A)
    end
    list.count = #list
    return checks.shown(list, concat(lines, "\n"))
end

-- --- the race ------------------------------------------------------------

-- Does f run? The message if not, without its place and operation.
local function attempt(f)
    local ok, result = pcall(f)
    if ok then return result end
    local text = gsub(tostring(result), "^[^:]*:%d+: ", "")
    return nil, (gsub(text, "^%l+: ", ""))
end

-- One call of a kernel, writing to the same result each time.
local function runner(operation, A, B, name)
    local how = {kernel = name}
    if operation == "dot" then
        return function() return library.dot(A, B, how) end
    elseif checks.is_sparse(A) then
        return function() return library.matmul(A, B, how) end
    end
    local C, why = attempt(function() return library.matmul(A, B, how) end)
    if not C then return nil, why end
    how.out = library.mul(C, 0 / 0, {out = C}) -- what is not written shows
    return function() return library.matmul(A, B, how) end
end

-- The flops and bytes that A * B cannot do without.
local function work_of(A, B, dtype)
    local rows, cols, inner = checks.sizes(A, B)
    if checks.is_sparse(A) then
        local size = dtype == "f64" and 8.0 or 4.0
        return 2.0 * A.nnz * cols, A.nnz * (size + 4) + 4.0 * rows +
            size * cols * (rows + inner)
    end
    local is_dot = products.operation_on(A, B) == "dot"
    local elements = rows * inner + inner * cols +
        (is_dot and 0 or rows * cols)
    return is_dot and 0 or 2.0 * rows * cols * inner,
        elements * (dtype == "f64" and 8.0 or 4.0)
end

-- A kernel's row: time, rate and errors, or `why` there are none.
local function race_one(row, A, B, known, options)
    local run, why = runner(row.operation, A, B, row.name)
    local result
    if run then result, why = attempt(run) end
    if not result then
        row.why = why
        return
    end
    local v = products.judge(result, A, B, known, {kernel = row.name})
    row.accept, row.error, row.worst, row.verdict = v.accept, v.error,
        v.worst, tostring(v)
    row.time = library.bench(run, {seconds = options.seconds or 0.2,
        least = 3, device = A.device}).median
    local rows, cols, inner = checks.sizes(A, B)
    row.gflops = 2.0 * cols / row.time / 1e9 *
        (checks.is_sparse(A) and A.nnz or rows * inner)
end

local function add_rate(row, A, B, dtype)
    local flops, bytes = work_of(A, B, dtype)
    row.rate, row.unit, row.share, row.peak =
        library.rate(flops, bytes, row.time, dtype, A.device)
end

local peers = {cublas = true, openblas = true, cusparse = true, cusolver = true,
    scalapack = true}

-- Multiplications and additions of real numbers, those that LAPACK counts.
local flops_of = {
    lu = function(longer, k) return k * k * (longer - k / 3) end,
    qr = function(longer, k) return 2 * k * k * (longer - k / 3) end,
    chol = function(n) return n ^ 3 / 3 end,
}

-- What a row shows, in the order of the columns: of a factorisation its residual
-- in place of errors. The share is left out where no peak is known.
local function cells_of(r)
    local time = r.time * 1e6
    return {r.name, format(time < 1e4 and "%.4g us" or "%.0f us", time),
        format("%.4g %s", r.rate, r.unit),
        r.share and format("%.0f %%", 100 * r.share) or "",
        format(flops_of[r.operation] and "%.2g" or "%.1e", r.error),
        r.worst and format("%.1e", r.worst) or "",
        r.ratio and format("%.2f", r.ratio) or "-",
        (gsub(gsub(r.verdict, "^Accept.*", "Accept"), ", relative.*", ""))}
end

-- The time of the vendor's kernel, and its name.
local function find_peer(rows)
    for _, r in ipairs(rows) do
        if peers[r.name] and r.accept ~= nil then return r end
    end
    return {name = "peer"}
end

local function columns_for(rows, peer)
    local peak, has_worst = rows[1] and rows[1].peak, false
    for _, r in ipairs(rows) do has_worst = has_worst or r.worst end
    local is_product = rows[1] and not flops_of[rows[1].operation]
    return {{title = "kernel", left = true}, {title = "time"},
        {title = "rate", drop = 4}, {title = peak == "memory" and "of memory" or
            peak and peak .. " peak" or ""},
        {title = is_product and "error" or "residual", drop = 3},
        {title = has_worst and "worst" or "", drop = 1}, {title = "x " .. peer.name, drop = 2},
        {title = "", left = true}}
end

-- The table of those that ran, and below it those that cannot, and what is to
-- be said.
local function race_text(title, rows, peer)
    local layout = require "lumat.text_layout"
    local cells, below, highest = {}, {}, 0
    for _, r in ipairs(rows) do
        if r.accept == nil then
            below[#below + 1] = layout.wrap(format("%-11s ", r.name),
                "cannot: " .. r.why)
        else
            cells[#cells + 1] = cells_of(r)
            if (r.share or 0) > highest then highest = r.share end
        end
    end
    local lines, gone = layout.table(columns_for(rows, peer), cells, 0)
    if highest > 1 and private.above_peak(highest) ~= "" then
        below[#below + 1] = layout.wrap("  ", "above 100 %: " ..
            private.above_peak(highest))
    end
    if #gone > 0 then below[#below + 1] = layout.gone(gone) end
    return layout.wrap("", title, 2) .. "\n" .. concat(lines, "\n") ..
        (#below > 0 and "\n" .. concat(below, "\n") or "")
end

-- Of A, dense or distributed: operations, bytes, and the type of its parts.
local function work_of_factors(operation, A)
    local is_complex, k = checks.is_complex(A), math.min(A.rows, A.cols)
    local flops = flops_of[operation](1.0 * math.max(A.rows, A.cols), 1.0 * k)
    local type_of_parts = checks.is_wide(A) and "f64" or "f32"
    local size = (type_of_parts == "f64" and 8.0 or 4.0) * (is_complex and 2 or 1)
    return flops * (is_complex and 4 or 1), 2 * size * A.rows * A.cols,
        type_of_parts
end

-- A factorisation's row, by a kernel or, where there is no choice, without.
local function race_factors_by(row, A, kernel, options)
    local factors = require "lumat.factors"
    local how = kernel and {kernel = kernel} or nil
    local function run()
        return factors.factored(library[row.operation](A, how))
    end
    local F, why = attempt(run)
    if not F then
        row.why = why
        return
    end
    local v = library.verify(F)
    row.accept, row.error, row.verdict = v.accept, v.ratio,
        v.accept and "Accept" or "FAILS: 30 or more"
    row.time = library.bench(run, {seconds = options.seconds or 0.2, least = 3,
        device = A.device}).median
    local flops, bytes, dtype = work_of_factors(row.operation, A)
    row.gflops = flops / row.time / 1e9
    row.rate, row.unit, row.share, row.peak = library.rate(flops, bytes,
        row.time, dtype, A.device)
end

local function ranked(title, rows)
    sort(rows, function(a, b) return a.time < b.time end)
    local peer = find_peer(rows)
    for _, row in ipairs(rows) do
        if row.accept ~= nil and peer.time then
            row.ratio = peer.time / row.time
        end
    end
    return checks.shown(rows, race_text(title, rows, peer))
end

-- For races of what lies on a pool's processes.
ladder.attempt, ladder.list_operation, ladder.ranked = attempt, list_operation,
    ranked
ladder.work_of_factors = work_of_factors

local function race_factors(A, operation, options)
    local rows, rungs = {}, rungs_of(operation, A.device)
    for _, k in ipairs(rungs) do
        if k.available and k[A.dtype] then
            local row = {operation = operation, name = k.name,
                precision = k.precision, time = huge}
            race_factors_by(row, A, k.name, options)
            rows[#rows + 1] = row
        end
    end
    if #rows == 0 then -- the only way there is
        rows[1] = {operation = operation, name = A.device, time = huge}
        race_factors_by(rows[1], A, nil, options)
    end
    return ranked(format("%s %s, %s on %s", operation, checks.shape_of(A),
        A.dtype, A.device), rows)
end

row{
    name = "race", method = true,
    takes = "A: matrix, operation: \"lu\"|\"chol\"|\"qr\" {seconds} or A: " ..
        "matrix|sparse, B: matrix product A {seconds}",
    gives = "table",
    group = "products",
    help = "Factors A by every kernel that does, or runs every one on A * B (or " ..
        "on the dot of two vectors), checks each against the bound it promises " ..
        "and ranks them by time: rate, share of the measured peak, error " ..
        "(Frobenius), worst (largest |e| / |A||B|), of factors the residual, as " ..
        "verify(F) has it, and how many times as fast as the vendor's. Of " ..
        "distributed matrices, race(D, E) or race(D, \"lu\"), the share is of " ..
        "what all processes multiply at once, and errors are those of a " ..
        "product with random signs. Also :race.",
    example = "race(ones(3, 3), ones(3, 3), {seconds = 0.01})[1].accept",
    result = "true",
    options = {
        {"seconds", "positive", "0.2", "how long to time each kernel"}},
}
function ladder.race(A, B, options)
    options = options or {}
    if type(B) == "string" then return race_factors(A, B, options) end
    checks.product("race", A, B)
    local operation, rows = products.operation_on(A, B), {}
    local title, _, dtype = product_title(operation, A, B)
    if #rungs_of(operation, A.device) == 0 then
        fail("race", "products of sparse matrices have one way on %s, and no " ..
            "kernels to race", A.device)
    end
    local known = products.reference(A, B)
    for _, k in ipairs(rungs_of(operation, A.device)) do
        if k.available then
            local row = {operation = operation, name = k.name,
                         precision = k.precision, time = huge}
            race_one(row, A, B, known, options)
            if row.accept ~= nil then add_rate(row, A, B, dtype) end
            rows[#rows + 1] = row
        end
    end
    return ranked(title, rows)
end

return ladder
