-- The dot product of a[i] = i and b[i] = 2, for i = 1 … n. Its value is
-- known, 2 (1 + 2 + … + n) = n (n + 1), and every dot kernel must find it.
--   lumat lesson_dot.lua [n]            (1024)
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"

local n = lessons.sizes("n", 1024)
local exact = n * (n + 1)

-- The textbook's loop, in plain Lua (whose numbers are f64).
local function by_hand(a, b)
    local sum = 0.0
    for i = 1, #a do
        sum = sum + a[i] * b[i]
    end
    return sum
end

-- Rounding may move the result by at most gamma |a||b|, and |a||b| is the
-- closed form itself, as all elements are positive.
local function judge(result, kernel, dtype, where)
    local allowed = kernel_bound("dot", kernel, dtype, n, where) * exact
    local off = math.abs(result - exact)
    return lessons.verdict(off <= allowed,
        ("off by %g, allowed %g"):format(off, allowed))
end

local function row(where, name, result, seconds, verdict)
    print(("%-7s %-10s %20.15g %s   %s"):format(where, name, result,
        lessons.time(seconds), verdict))
end

local function run_kernels(where, dtype)
    local a = range(1, n, 1, {dtype = dtype, device = where})
    local b = full(n, 2, {dtype = dtype, device = where})
    for _, rung in ipairs(lessons.rungs("dot", where)) do
        local function run() return dot(a, b, rung.options) end
        local result = run()
        row(where, rung.label, result,
            bench(run, {seconds = 0.05, device = where}).median,
            judge(result, rung.kernel, dtype, where))
    end
end

-- f32 holds whole numbers up to 2^24; beyond, a[i] = i needs f64.
local dtype = n <= 2^24 and "f32" or "f64"
print(("a[i] = i, b[i] = 2, i = 1 … %d, in %s; n (n + 1) = %d")
    :format(n, dtype, exact))
print(("%-7s %-10s %20s %11s"):format("device", "kernel", "a · b", "time"))

local a = range(1, n, 1, {dtype = "f64", device = "cpu"}):totable()
local b = full(n, 2, {dtype = "f64", device = "cpu"}):totable()
local start = clock()
local result = by_hand(a, b)
row("Lua", "by hand", result, clock() - start,
    lessons.verdict(result == exact, "off by " .. result - exact))
for _, where in ipairs(lessons.devices()) do
    run_kernels(where, dtype)
end
lessons.finish()
