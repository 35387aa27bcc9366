-- The profile by operation and by line, what bench and timing say, memory by
-- variables, and that the trace's listeners get on with each other.
local lu = require "luaunit"
local t = require "common"
local raises = t.raises

settings{fusion = "off"} -- it is single operations that are counted

TestProfile = {}

function TestProfile:setUp() profile("reset") end

function TestProfile:tearDown()
    profile("off")
    profile("reset")
end

local function find(rows, key, name)
    for _, r in ipairs(rows) do
        if r[key] == name then return r end
    end
end

function TestProfile:test_operations()
    local A = ones(8, 8)
    profile("on")
    for _ = 1, 3 do local _ = A * A end
    local _ = A + A
    profile("off")
    local _ = A + A
    local p = profile()
    local product, sum = find(p.operations, "operation", "matmul"),
        find(p.operations, "operation", "add")
    lu.assertEquals(product.calls, 3)
    lu.assertEquals(product.flops, 3 * 2 * 8 ^ 3)
    lu.assertEquals(product.bytes, 3 * 3 * 64 * 4)
    lu.assertEquals(product.device, A.device)
    lu.assertEquals(sum.calls, 1)
    lu.assertFalse(p.on)
    t.near(product.share + sum.share, 1, 1e-9)
    t.near(product.seconds + sum.seconds, p.busy, 1e-9)
    lu.assertTrue(p.busy > 0 and p.busy <= p.seconds)
    lu.assertStrContains(tostring(p), "matmul " .. product.kernel .. " f32")
end

local function line_of(level)
    return debug.getinfo(2, "S").short_src .. ":" ..
        debug.getinfo(2, "l").currentline
end

function TestProfile:test_lines_of_scripts()
    local A = ones(4, 4)
    profile("on")
    local _, here_1 = A + A, line_of()
    local _, here_2 = close(A, A), line_of() -- the library's own code
    profile("off")
    local lines = profile().lines
    lu.assertEquals(find(lines, "line", here_1).calls, 1)
    lu.assertTrue(find(lines, "line", here_2).calls > 3)
    lu.assertEquals(#lines, 2)
end

function TestProfile:test_lines_in_coroutines()
    local A = ones(4, 4)
    local where
    profile("on")
    coroutine.wrap(function()
        local _ = A * A
        where = line_of():gsub("%d+$", function(n) return n - 1 end)
    end)()
    profile("off")
    lu.assertEquals(profile().lines[1].line, where)
end

-- As much JSON as it takes to read a timeline.
local function events_of(text)
    local list = {}
    for line in text:gmatch("{[^\n]*}") do
        if line:find('"ph":"X"', 1, true) then
            list[#list + 1] = {name = line:match('"name":"([^"]*)"'),
                start = tonumber(line:match('"ts":([%d.]+)')),
                took = tonumber(line:match('"dur":([%d.]+)')),
                line = line:match('"line":"(.-)","dtype"')}
        end
    end
    return list
end

function TestProfile:test_a_timeline()
    local A, name = ones(30, 30), os.tmpname()
    profile("on")
    local _ = A * A
    assert(load("local A = ... local _ = A + 1", '=a "b"\\'))(A)
    profile("off")
    lu.assertEquals(profile("json", name).count, 2)
    local text = t.content(name)
    os.remove(name)
    local list = events_of(text)
    lu.assertEquals(#list, 2)
    lu.assertStrContains(list[1].name, "matmul ")
    lu.assertTrue(list[2].start >= list[1].start + list[1].took)
    lu.assertEquals(list[2].line, 'a \\"b\\"\\\\:1')
    lu.assertEquals(text:sub(1, 1) .. text:sub(-3), "{]}\n")
end

function TestProfile:test_what_it_refuses()
    raises(function() profile("sideways") end, "profile: what is \"sideways\", expected \"on\"")
    raises(function() profile("json") end, "profile: the file is nil")
    raises(function() profile("json", "/no/where") end,
        "profile: /no/where: No such file")
end

-- More lines than there is room for share the last row.
function TestProfile:test_many_lines()
    local A = ones(1)
    profile("on")
    for i = 1, 2500 do
        assert(load("local A = ... return -A", "=chunk" .. i))(A)
    end
    profile("off")
    local p, calls = profile(), 0
    for _, r in ipairs(p.lines) do calls = calls + r.calls end
    lu.assertEquals(calls, 2500)
    lu.assertTrue(#p.lines < 2500)
    lu.assertStrContains(tostring(p), " more")
end

TestTiming = {}

function TestTiming:test_bench_knows_a_single_operation()
    local A = ones(20, 20)
    local b = bench(function() return A * A end, {runs = 3})
    lu.assertEquals(b.operation, "matmul")
    lu.assertEquals(b.kernel, kernel_choice(A, A))
    lu.assertEquals(b.runs, 3)
    lu.assertTrue(b.rate > 0 and b.share > 0)
    lu.assertTrue(b.low <= b.median and b.median <= b.high)
    local C = complex(A, A)
    for _, X in ipairs{C, C:c128(), A:gt(0)} do
        local one = bench(X.dtype == "bool" and function() return ~X end or
            function() return exp(X) end, {runs = 3})
        lu.assertEquals(one.unit, "GB/s")
        lu.assertTrue(one.share > 0)
    end
    lu.assertEquals(select(4, rate(1e15, 1, 1, "c128", "cpu")), "f64")
    lu.assertNil(bench(function() return A * A + A end, {runs = 1}).operation)
    lu.assertNil(bench(function() end, {runs = 1}).rate)
end

-- What it times is in no profile, but for the first call.
function TestTiming:test_bench_is_quiet()
    local A = ones(4, 4)
    profile("reset")
    profile("on")
    bench(function() return A + A end, {runs = 50})
    profile("off")
    lu.assertEquals(profile().operations[1].calls, 1)
    profile("reset")
    raises(function() bench(function() error("no") end) end, "no")
    local before = checking().products
    checking(true)
    local _ = A * A
    checking(false)
    lu.assertEquals(checking().products, before + 1)
end

function TestTiming:test_timing()
    local w = timing(function() return ones(16, 16) + 1 end)
    lu.assertEquals(w.allocated, 2 * 16 * 16 * 4)
    lu.assertEquals(w.operations, 2)
    lu.assertEquals(w.gpu ~= nil, t.on_gpu)
    lu.assertTrue(w.seconds > 0)
    raises(function() timing(7) end, "timing: f is 7, expected a function")
end

function TestTiming:test_timed_within_timed()
    local inner
    local outer = timed(function()
        local stop = clock() + 0.02
        while clock() < stop do end
        inner = timed(function() return ones(4, 4) * 2 end)
    end)
    lu.assertTrue(outer >= 0.02 and inner < outer)
end

TestMemory = {}

local function variable(name)
    for _, v in ipairs(mem().variables) do
        if v.name == name then return v end
    end
end

function TestMemory:test_variables()
    held_a = zeros(100, 100)
    held_t = held_a.T
    held_s = sparse(eye(5))
    local a = variable("held_a")
    lu.assertEquals(a.bytes, 40000)
    lu.assertEquals(a.device, held_a.device)
    lu.assertEquals(variable("held_t").shares or a.shares,
        a.shares and "held_t" or "held_a")
    lu.assertTrue(variable("held_s").bytes > 40)
    held_a, held_t, held_s = nil, nil, nil
    lu.assertNil(variable("held_a"))
end

function TestMemory:test_the_peak_starts_anew()
    zeros(500, 500):free()
    local high = memory().peak
    mem("reset")
    lu.assertTrue(memory().peak < high)
    lu.assertEquals(memory().peak, memory().live)
    raises(function() mem("all") end, 'mem: what is "all", expected "reset"')
end

os.exit(lu.LuaUnit.run("-o", "tap"))
