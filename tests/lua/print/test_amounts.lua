-- Amounts for people: the unit that suits what is shown, after rounding.
local lu = require "luaunit"
local amounts = require "lumat.unit_text"

TestAmounts = {}

function TestAmounts:test_bytes()
    lu.assertEquals(amounts.bytes(0, "%.3g"), "0 B")
    lu.assertEquals(amounts.bytes(1023, "%.3g"), "1023 B")
    lu.assertEquals(amounts.bytes(1024, "%.1f"), "1.0 KiB")
    lu.assertEquals(amounts.bytes(1012 * 1024, "%.3g"), "1012 KiB")
    lu.assertEquals(amounts.bytes(2 ^ 20 - 1, "%.1f"), "1.0 MiB")
    lu.assertEquals(amounts.bytes(5000 * 2 ^ 50, "%.3g"), "5000 PiB")
    lu.assertEquals(amounts.bytes(math.huge, "%.3g"), "inf PiB")
end

function TestAmounts:test_flops()
    lu.assertEquals(amounts.flops(2, "%.3g"), "2 FLOP")
    lu.assertEquals(amounts.flops(999, "%.3g"), "999 FLOP")
    lu.assertEquals(amounts.flops(999600, "%.3g"), "1 MFLOP")
    lu.assertEquals(amounts.flops(2 * 4096 ^ 3, "%.3g"), "137 GFLOP")
end

function TestAmounts:test_seconds()
    lu.assertEquals(amounts.seconds(2.5e-7, "%.4g"), "0.25 us")
    lu.assertEquals(amounts.short_seconds(2.5e-7, "%.4g"), "250 ns")
    lu.assertEquals(amounts.seconds(9.9996e-4, "%.4g"), "1 ms")
    lu.assertEquals(amounts.seconds(0.9996, "%.3g"), "1 s")
    lu.assertEquals(amounts.seconds(86400, "%.3g"), "86400 s")
    lu.assertEquals(amounts.seconds(0 / 0, "%.3g"):match("%S+$"), "us")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
