-- A study to adapt: how fast, and how exact, are the ways to factor a matrix?
-- lu and chol of f32 by every rung that a GPU has (`kernels "lu"`), cuSOLVER's
-- among them, over sizes and kinds of matrices; on the CPU by LAPACK alone.
--   lumat study_factor.lua [--quick] [--workers N] [--quiet] …
--     --quick     small sizes and short times, to see that everything runs
-- Errors are LAPACK's own: |L U - A| over n eps |A| in the 1-norm, where below
-- 30 is well. Kept in runs/factor, or runs/factor-quick; ends in tables, charts
-- and factor.html.
local where = device()
local on_gpu = where ~= "cpu"
local is_quick = false
for _, word in ipairs(arg) do is_quick = is_quick or word == "--quick" end

-- --- what there is -----------------------------------------------------------

-- By operation, the rungs of this device; "lapack" where there are none.
local rungs, names, is_known = {lu = {}, chol = {}}, {}, {}
local function add(operation, name)
    rungs[operation][name] = true
    if not is_known[name] then names[#names + 1] = name end
    is_known[name] = true
end
for _, k in ipairs(kernel_list(where)) do
    if rungs[k.operation] and k.available and k.f32 then
        add(k.operation, k.name)
    end
end
if #names == 0 then
    add("lu", "lapack")
    add("chol", "lapack")
end

-- Kinds of matrices, n x n, in f32. growing: orthogonal, yet its factors have
-- elements about n / 2 times as large.
local kinds = {
    random = function(n) return randn(n, n, {seed = 1}) end,
    graded = function(n)
        return randn(n, n, {seed = 1}) % exp2(linspace(0, -20, n)):col()
    end,
    ill = function(n) -- columns that nearly depend on each other
        return randn(n, n, {seed = 1}) + 1e4 * randn(n, 1, {seed = 2})
    end,
    growing = function(n)
        local i = range(1, n, 1, {dtype = "f64"})
        return (sin(outer(i, i) * math.pi / (n + 1)) * math.sqrt(2 / (n + 1)))
            :f32()
    end,
}

-- A symmetric positive definite one of the same kind.
local function positive(A)
    local S = A * A.T / A.rows
    S = (S + S.T) / 2
    return S + 1e-3 * trace(S) / A.rows * eye(A.rows)
end

local function ratio(X, A)
    return norm(X, 1) / (A.rows * 2.0 ^ -23 * norm(A, 1))
end

-- --- the study ---------------------------------------------------------------

local sizes = is_quick and {64, 128} or on_gpu and {1024, 2048, 4096, 8192,
    16384} or {128, 256, 512, 1024}

-- Nothing grows in Cholesky's factors.
local function is_sensible(p)
    return rungs[p.operation][p.kernel] and
        (p.kind ~= "growing" or p.operation == "lu")
end

local e = experiment{
    name = is_quick and "factor-quick" or "factor",
    order = {"operation", "kind", "n", "kernel"},
    axes = {operation = {"lu", "chol"}, n = sizes, kernel = names,
        kind = {"random", "graded", "ill", "growing"}},
    where = is_sensible,
    setup = function(p)
        local A = kinds[p.kind](p.n)
        if p.operation == "chol" then A = positive(A) end
        return {A = A, how = p.kernel ~= "lapack" and {kernel = p.kernel} or {}}
    end,
    measure = function(p, s)
        if p.operation == "chol" then
            return function() return chol(s.A, s.how).L end
        end
        return function()
            local F = lu(s.A, s.how)
            return F.p and F -- p asks for the factors
        end
    end,
    check = function(p, s, F)
        local A = s.A:f64()
        local found
        if p.operation == "lu" then
            found = ratio(F.L:f64() * F.U:f64() - A[F.p], A)
        else
            found = ratio(F:f64() * F.T:f64() - A, A)
        end
        if not (found < 30) then return ("|L U - A| is %.2g"):format(found) end
        return found
    end,
    flops = function(p) return (p.operation == "lu" and 2 or 1) / 3 * p.n ^ 3 end,
    stop = {seconds = is_quick and 0.02 or 0.5},
}
e:run()
for _, operation in ipairs{"lu", "chol"} do
    local only = {operation = operation, kind = "random"}
    print(operation .. ", FLOP/s of random matrices")
    print(e:table{rows = "n", cols = "kernel", value = "rate", where = only})
    print(operation .. ", error by kind")
    print(e:table{rows = {"kind", "n"}, cols = "kernel", value = "error",
        where = {operation = operation}, best = false})
end
if is_known.cusolver then
    print("how many times as fast as cuSOLVER, random matrices")
    print(e:table{rows = {"operation", "n"}, cols = "kernel",
        ratio_to = {kernel = "cusolver"}, where = {kind = "random"}})
end
print(e:plot{x = "n", y = "rate", by = {"operation", "kernel"}, log = "xy",
    where = {kind = "random"}})
e:report("factor.html", {title = "Factorisations on " .. where,
    plots = {{x = "n", y = "rate", by = {"operation", "kernel"}, log = "xy",
        where = {kind = "random"}, title = "rate, random matrices"},
        {x = "n", y = "error", by = {"kind", "kernel"}, log = "xy",
            where = {operation = "lu"}, title = "error of lu"},
        {x = "n", y = "error", by = {"kind", "kernel"}, log = "xy",
            where = {operation = "chol"}, title = "error of chol"}}})
print("factor.html has it all")
