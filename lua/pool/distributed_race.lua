-- Products of distributed matrices raced: by each kernel that the processes have,
-- checked and timed; and their factorisations.
local library = ...
local checks = require "lumat.checks"
local freivalds = require "lumat.distributed_checks"
local ladder = require "lumat.kernel_table"
local parts = require "lumat.distributed_parts"
local pool = require "lumat.pool"
local products = require "lumat.distributed_products"
local fail, brief, methods = checks.fail, checks.brief, parts.methods
local ipairs, pairs, type = ipairs, pairs, type
local format, huge, larger, smaller = string.format, math.huge, math.max, math.min
local sort = table.sort

-- --- the kernels -------------------------------------------------------------

-- E as a distributed matrix that D can be multiplied by.
local function other_side(what, E)
    if checks.is_matrix(E) then return parts.spread(E) end
    if not parts.is(E) then
        fail(what, "B is %s, expected a matrix: write %s(D, E)", brief(E), what)
    end
    return E
end

-- Those for x * y, which are matched, and the one that "auto" takes.
local function kernels_of(what, x, y)
    local p = parts.state[x].where.p
    local a, op_a, b, op_b = products.factors_of(x, y)
    local found = pool.tell(p, what, "kernels", a, op_a, b, op_b, x.cols)[1]
    if found then return found.list, found.choice end
    local name = products.SCALAPACK
    return {{name = name, operation = "matmul", precision = "f32",
        available = true, needs = "MPI and ScaLAPACK", f32 = true, f64 = true,
        c64 = true, c128 = true, idea = "p?gemm: panels of A and B go along " ..
            "rows and columns of the grid, and each process adds their " ..
            "products by its BLAS"}}, name
end

local function title_of(operation, x, y)
    local p = parts.state[x].where.p
    return format("%s %dx%d%s, %s on a pool of %dx%d%s", operation, x.rows,
        x.cols, y and format(" by %dx%d", y.rows, y.cols) or "", x.dtype, p.rows,
        p.cols, p.options.device == "gpu" and " GPUs" or "")
end

-- kernels(D, E): as of matrices.
function methods.kernels(D, E)
    local x, y = products.matched("kernels", D, other_side("kernels", E))
    local found, choice = kernels_of("kernels", x, y)
    local list, lines = {}, {}
    ladder.list_operation(list, lines, title_of("matmul", x, y) ..
        "; auto takes " .. choice, found, choice, x.dtype)
    list.choice, list.count = choice, #list
    return checks.shown(list, table.concat(lines, "\n"))
end

-- --- what all can do ---------------------------------------------------------

-- Real operations a second, of products of all processes at once; nil: a device
-- does not know.
local function peak_of(p, dtype)
    local real = (dtype == "f64" or dtype == "c128") and "f64" or "f32"
    p.rates = p.rates or {}
    if p.rates[real] == nil then
        local slowest, fastest = huge, 0
        for _, rate in ipairs(pool.tell(p, "race", "product_rate", real)) do
            slowest, fastest = smaller(slowest, rate), larger(fastest, rate)
        end
        p.rates[real] = fastest < huge and slowest * p.count
    end
    return p.rates[real] or nil, real
end

-- A row's rate, of so many operations in its time, and share.
local function add_rate(row, p, dtype, flops)
    local peak, real = peak_of(p, dtype)
    local rate = flops / row.time
    local is_tera = (peak or rate) >= 1e12
    row.gflops = rate / 1e9
    row.rate, row.unit = rate / (is_tera and 1e12 or 1e9),
        is_tera and "TFLOP/s" or "GFLOP/s"
    row.share, row.peak = peak and rate / peak, peak and real
end

-- --- the race ----------------------------------------------------------------

-- The median of the seconds that all need for what is told: three times, and
-- longer up to `wanted`. Decided by what processes measured, which those that
-- run one script have in common.
local function time_of(p, wanted, ...)
    local list, sum = {}, 0
    while #list < 3 or sum < wanted do
        local slowest = 0
        for _, seconds in ipairs(pool.tell(p, "race", "timed", ...)) do
            slowest = larger(slowest, seconds)
        end
        list[#list + 1], sum = slowest, sum + slowest
    end
    sort(list)
    return (list[(#list + 1) // 2] + list[#list // 2 + 1]) / 2
end

local function seconds_in(options)
    local seconds = parts.option("race", options, "seconds") or 0.2
    if type(seconds) ~= "number" or not (seconds > 0) then
        fail("race", "seconds is %s, expected a number above 0", brief(seconds))
    end
    return seconds
end

-- A kernel's row: its product in C's place w, checked, and timed; or why not.
local function race_one(row, kernel, x, y, w, known, seconds)
    local p, name = w.p, kernel.name
    if name == products.SCALAPACK or name == "auto" then name = nil end
    local C, why = ladder.attempt(function()
        pool.tell(p, "race", "multiply", products.product_of(x, y, w, name))
        return parts.new(w)
    end)
    if not C then
        row.why = why
        return
    end
    local v = freivalds.judge(C, known, freivalds.gamma_of(x, x.cols,
        kernel.bound))
    row.accept, row.error, row.verdict = v.accept, v.error, tostring(v)
    row.time = time_of(p, seconds, "multiply", products.product_of(x, y, w, name))
    add_rate(row, p, x.dtype, (checks.is_complex(x) and 8.0 or 2.0) *
        x.rows * x.cols * y.cols)
end

local function race_products(D, E, seconds)
    local x, y, w = products.matched("race", D, other_side("race", E))
    local list, choice = kernels_of("race", x, y)
    local known, rows = freivalds.reference(x, y), {}
    for _, kernel in ipairs(list) do
        if kernel.available and kernel[x.dtype] then
            local row = {operation = "matmul", name = kernel.name,
                precision = kernel.precision, time = huge}
            race_one(row, kernel, x, y, w, known, seconds)
            rows[#rows + 1] = row
        end
    end
    return ladder.ranked(title_of("matmul", x, y) .. "; auto takes " .. choice,
        rows)
end

-- --- factorisations ----------------------------------------------------------

-- |A x - b| over n eps |A| |x|, in double precision, of what the factors give
-- for a vector of random signs: b, or of QR x.
local residuals = {}

local function signs(n)
    return library.randint(0, 1, n, 1, {dtype = "f64", device = "cpu"}) * 2 - 1
end

local function relative(D, x, off)
    local unit = checks.unit[D.dtype] / 2
    local scale = larger(D.rows, D.cols) * unit * D:norm() * x:norm()
    return off:norm() / larger(scale, 2.0 ^ -1022)
end

local function residual_of_system(D, F)
    local b = signs(D.rows)
    local x = checks.as_wide(F:solve(b))
    return relative(D, x, checks.as_wide(D) * x - b)
end
residuals.lu, residuals.chol = residual_of_system, residual_of_system

function residuals.qr(D, F)
    local x = signs(D.cols)
    return relative(D, x, checks.as_wide(F.Q) * (checks.as_wide(F.R) * x) -
        checks.as_wide(D) * x)
end

-- A kernel's row.
local function race_factor(numbers, w, name, operation, seconds)
    local row = {operation = operation, name = name, time = huge}
    local ratio, why = ladder.attempt(function()
        return residuals[operation](numbers,
            methods[operation](numbers, {kernel = name}))
    end)
    if not ratio then
        row.why = why
        return row
    end
    row.accept, row.error = ratio < 30, ratio
    row.verdict = row.accept and "Accept" or "FAILS: 30 or more"
    local t = parts.like("race", w)
    row.time = time_of(w.p, seconds, operation, t.id, w.id, name)
    add_rate(row, w.p, w.dtype, (ladder.work_of_factors(operation, numbers)))
    return row
end

local function race_factors(D, operation, seconds)
    if not residuals[operation] then
        fail("race", "%s is no operation that is raced: write \"lu\", \"chol\" or " ..
            "\"qr\", or race(D, E)", brief(operation))
    end
    local s = products.numbers_of("race", D)
    local w, numbers = parts.settled("race", s), parts.new(s.where, s.turned)
    local rows = {}
    for _, kernel in ipairs(products.kernels_of_factor(w.p, operation)) do
        if kernel.available then
            rows[#rows + 1] = race_factor(numbers, w, kernel.name, operation, seconds)
        end
    end
    return ladder.ranked(title_of(operation, numbers), rows)
end

-- race(D, E [, {seconds=}]), race(D, "lu"): as of matrices.
function methods.race(D, E, options)
    local seconds = seconds_in(options)
    if type(E) == "string" then return race_factors(D, E, seconds) end
    return race_products(D, E, seconds)
end
