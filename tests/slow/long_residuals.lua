-- lumat [--device cuda] long_residuals.lua: LAPACK's residuals of sizes that
-- take minutes, a line each; those of 30 or more end in BAD. Words: sizes in
-- place of 1000 and 4097.
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "../lua/?.lua;" .. package.path
local residuals = require "math.residuals"
warn("@off")

local sizes = {}
for i, word in ipairs(arg) do sizes[i] = math.tointeger(tonumber(word)) end
if #sizes == 0 then sizes = {1000, 4097} end

-- Of the largest sizes the kinds that differ most.
local kinds = {"random", "ill-conditioned", "graded", "gallery minij"}

local bad = 0
for _, n in ipairs(sizes) do
    for _, dtype in ipairs{"f32", "f64", "c64", "c128"} do
        for _, check in ipairs(residuals.checks) do
            local start, worst = clock(), "good"
            for _, kind in ipairs(kinds) do
                residuals.judge(check, kind, n, dtype, function(ratio)
                    bad = bad + 1
                    worst = ("%s: %.3g BAD"):format(kind, ratio)
                end)
            end
            print(("%5d  %s  %-14s %7.1f s  %s"):format(n, dtype, check,
                clock() - start, worst))
        end
    end
end
os.exit(bad == 0)
