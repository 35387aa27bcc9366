-- lumat [--device cuda] long_residuals.lua: LAPACK's residuals of sizes that
-- take minutes, a line each with the largest ratio; those of 30 or more end in
-- BAD. Words: sizes in place of 1000 and 4097, types, and names of checks.
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "../lua/?.lua;" .. package.path
local residuals = require "math.residuals"
warn("@off")

-- Of the largest sizes the kinds that differ most.
local kinds = {"random", "ill-conditioned", "graded", "gallery minij"}

local function is_in(list, word)
    for _, one in ipairs(list) do
        if one == word then return true end
    end
end

-- The words that are in a list, or all of it.
local function chosen(list)
    local some = {}
    for _, word in ipairs(arg) do
        if is_in(list, word) then some[#some + 1] = word end
    end
    return #some > 0 and some or list
end

local all_dtypes = {"f32", "f64", "c64", "c128"}
local sizes = {}
for _, word in ipairs(arg) do
    local n = math.tointeger(tonumber(word))
    sizes[#sizes + 1] = n
    if not n and not is_in(all_dtypes, word) and
        not is_in(residuals.checks, word) then
        error(("there is no check '%s': there are %s"):format(word,
            table.concat(residuals.checks, " ")), 0)
    end
end
if #sizes == 0 then sizes = {1000, 4097} end

local bad = 0
for _, n in ipairs(sizes) do
    for _, dtype in ipairs(chosen(all_dtypes)) do
        for _, check in ipairs(chosen(residuals.checks)) do
            local start, largest, worst = clock(), 0, "good"
            for _, kind in ipairs(kinds) do
                largest = math.max(largest, residuals.judge(check, kind, n,
                    dtype, function(ratio)
                        bad = bad + 1
                        worst = ("%s: %.3g BAD"):format(kind, ratio)
                    end))
            end
            print(("%5d  %-4s  %-14s %7.1f s  %8.3g  %s"):format(n, dtype,
                check, clock() - start, largest, worst))
        end
    end
end
os.exit(bad == 0)
