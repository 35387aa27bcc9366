-- LAPACK's residuals over sizes, types, conditions, the gallery and layouts.
-- tests/slow/long_residuals.lua has the sizes that take minutes.
local lu = require "luaunit"
local residuals = require "math.residuals"
require "common" -- the device
warn("@off")

-- Of complex matrices the gallery has none.
local kinds = {f32 = residuals.kinds, f64 = residuals.kinds, c64 = {}}
for _, kind in ipairs(residuals.kinds) do
    if not kind:find "^gallery" then table.insert(kinds.c64, kind) end
end
kinds.c128 = kinds.c64

TestResiduals = {}

-- A test each, so that what fails is named.
for _, check in ipairs(residuals.checks) do
    TestResiduals["test_" .. check] = function()
        for _, dtype in ipairs{"f32", "f64", "c64", "c128"} do
            for _, n in ipairs{0, 1, 2, 3, 5, 10, 50, 129} do
                for _, kind in ipairs(kinds[dtype]) do
                    residuals.judge(check, kind, n, dtype, function(ratio)
                        lu.fail(("%s of %s %s, n = %d: residual %.3g"):format(
                            check, kind, dtype, n, ratio))
                    end)
                end
            end
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
