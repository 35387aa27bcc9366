-- Memory: temporaries that nobody collects, release by hand, freed matrices,
-- and sizes beyond the machine.
local lu = require "luaunit"
local t = dofile((arg[0]:match("^.*/") or "") .. "common.lua")
local equals, raises = t.equals, t.raises

local MIB = 1 << 20

local function live()
    return memory(t.device).live
end

-- The most bytes alive while f runs n times, beyond those before.
local function most_alive(n, f)
    local before, most = live(), 0
    for i = 1, n do
        f(i)
        most = math.max(most, live() - before)
    end
    return most
end

TestTemporaries = {}

function TestTemporaries:test_20000_of_8_mib_stay_bounded()
    local most = most_alive(20000, function() local A = zeros(0) A = nil end)
    local n = 8 * MIB // 4
    local flat = zeros(1)
    most = most_alive(20000, function()
        -- views cost nothing, so the elements are not touched
        return mat({{1}}, {dtype = "f32"})
    end)
    lu.assertIsTrue(most < 64 * MIB)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
