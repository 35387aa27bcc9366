-- CPU against GPU against each rung of the ladder: the time of A * B, how many
-- times faster than three plain loops that is, and whether it is right.
--   lumat lesson_race.lua [m [k n]]     (400; 1024 on a GPU)
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"

local devices = lessons.devices()
local gpu = devices[2]
local usual = gpu and 1024 or 400
local m, k, n = lessons.sizes("m [k n]", usual, 0, 0)
if k == 0 then k, n = m, m end
if n == 0 then n = m end
local flops = 2 * m * k * n

-- One line of the table; base is the time that counts as 1.
local function row(where, name, seconds, base, verdict)
    print(("%-7s %-12s %s %10.4g GFLOP/s %9.1fx   %s"):format(where, name,
        lessons.time(seconds), flops / seconds / 1e9, base / seconds, verdict))
end

-- Runs every rung of a device; returns the first one's time.
local function race_on(where, A, B, base)
    for _, rung in ipairs(lessons.rungs("matmul", where)) do
        local function run() return matmul(A, B, rung.options) end
        local ok, C = pcall(run)
        if not ok then
            print(("%-7s %-12s %s"):format(where, rung.label,
                (C:gsub("^.-:%d+: ", ""))))
        else
            local b = bench(run, {seconds = 0.2, least = 1, device = where})
            base = base or b.median
            row(where, rung.label, b.median, base,
                lessons.verify(C, A, B, rung.kernel))
        end
    end
    return base
end

-- What a single product costs when its data starts and ends on the CPU.
local function there_and_back(A, B, base)
    local function run() return (A:to(gpu) * B:to(gpu)):to("cpu") end
    local b = bench(run, {seconds = 0.2, least = 1, device = gpu})
    row(gpu, "with copies", b.median, base, lessons.verify(run(), A, B))
end

print(("%dx%d by %dx%d, f32: %.4g GFLOP"):format(m, k, k, n, flops / 1e9))
print(("%-7s %-12s %11s %18s %10s"):format("device", "kernel", "time", "rate",
    "speed-up"))
local A = rand(m, k, {low = -1, seed = 1, device = "cpu"})
local B = rand(k, n, {low = -1, seed = 2, device = "cpu"})
local base = race_on("cpu", A, B)
if gpu then
    race_on(gpu, A:to(gpu), B:to(gpu), base)
    there_and_back(A, B, base)
else
    print("no GPU here (or another device was asked for): only the CPU's rungs")
end
lessons.finish()
