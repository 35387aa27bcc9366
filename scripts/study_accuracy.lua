-- A study to adapt: how does the error of a product grow with the length of
-- its sums, for data of several kinds?
--   lumat study_accuracy.lua [--workers N] [--quiet] …
-- Errors are against double precision: the largest |e| / (|A||B|), and by
-- Frobenius norms. Kept in runs/accuracy; ends in tables, a chart and
-- accuracy.html.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local cases = require "cases" -- the kinds of data, as the benchmarks have them
local where = device()

local names = {}
for _, k in ipairs(kernel_list(where)) do
    if k.operation == "matmul" and k.available and k.f32 and
        k.name ~= "vector" then -- does at most four rows or columns
        names[#names + 1] = k.name
    end
end

local SIZE = 64 -- rows of A, columns of B

local e = experiment{
    name = "accuracy",
    order = {"kernel", "data", "k"},
    axes = {kernel = names, data = {"uniform", "positive", "wide", "lognormal"},
        k = pow2(4, 12)},
    setup = function(p)
        local A, B = cases.operands({m = SIZE, n = SIZE, k = p.k,
            data = p.data}, where)
        return {A = A, B = B}
    end,
    measure = function(p, s)
        return function() return matmul(s.A, s.B, {kernel = p.kernel}) end
    end,
    check = function(p, s, C)
        local found = verify(C, s.A, s.B, {kernel = p.kernel})
        if not found.accept then return found end
        return found.worst, {frobenius = found.error,
            ["of the bound"] = found.ratio}
    end,
    flops = function(p) return 2 * SIZE ^ 2 * p.k end,
    stop = {seconds = 0.1},
}
e:run()
for _, name in ipairs(names) do
    print(name .. ", largest |e| / (|A||B|)")
    print(e:table{rows = "k", cols = "data", value = "error",
        where = {kernel = name}, best = false})
end
print(e:plot{x = "k", y = "error", by = {"kernel", "data"}, log = "xy"})

local plots = {}
for i, name in ipairs(names) do
    plots[i] = {x = "k", y = "error", by = "data", log = "xy",
        where = {kernel = name}, title = "largest |e| / (|A||B|), " .. name}
end
plots[#plots + 1] = {x = "k", y = "rate", by = "kernel",
    where = {data = "uniform"}}
e:report("accuracy.html", {title = "Accuracy of products on " .. where,
    plots = plots})
print("accuracy.html has it all")
