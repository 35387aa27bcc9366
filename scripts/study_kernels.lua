-- A study to adapt: which kernel of matmul is the fastest at which size, and
-- how near does it come to what the machine can do?
--   lumat study_kernels.lua [--workers N] [--quiet] …
-- Everything is kept in runs/kernels: started again, it measures only what is
-- missing. Ends in a table, charts and kernels.html.
local where = device()
local on_gpu = where ~= "cpu"

local names = {}
for _, k in ipairs(kernel_list(where)) do
    if k.operation == "matmul" and k.available and k.f32 and
        k.name ~= "vector" then -- does at most four rows or columns
        names[#names + 1] = k.name
    end
end
names[#names + 1] = "auto"

-- A kernel of three plain loops takes minutes where others take moments.
local slow = {reference = 256, naive = 2048, tiled = 4096, padded = 4096}

local e = experiment{
    name = "kernels",
    order = {"n", "kernel"},
    axes = {n = on_gpu and pow2(9, 13) or pow2(5, 9), kernel = names},
    where = function(p) return p.n <= (slow[p.kernel] or p.n) end,
    setup = function(p)
        return {A = rand(p.n, p.n, {low = -1, seed = 1}),
            B = rand(p.n, p.n, {low = -1, seed = 2}), C = zeros(p.n, p.n)}
    end,
    measure = function(p, s)
        local how = {kernel = p.kernel, out = s.C}
        return function()
            forget(s.A) -- what is kept of operands would be timed only once
            forget(s.B)
            return matmul(s.A, s.B, how)
        end
    end,
    check = function(p, s, C)
        return verify(C, s.A, s.B, {kernel = p.kernel})
    end,
    flops = function(p) return 2 * p.n ^ 3 end,
    bytes = function(p) return 3 * 4 * p.n ^ 2 end,
    stop = {seconds = 0.5},
}
e:run()
print(e:table{rows = "n", cols = "kernel", value = "rate"})
print(e:plot{x = "n", y = "rate", by = "kernel", log = "xy"})
print(e:plot{kind = "roofline", by = "kernel"})
e:report("kernels.html", {title = "Kernels of matmul on " .. where})
print("kernels.html has it all")
