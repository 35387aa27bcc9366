-- The scripts a user runs: each with small arguments, as a program of its own.
local lu = require "luaunit"

local here = arg[0]:match("^(.*)/[^/]*$") or "."
local scripts = here .. "/../../scripts/"
local lumat = assert(os.getenv("LUMAT"), "LUMAT must name the program")
local where = os.getenv("LUMAT_TEST_DEVICE") or "cpu"

local function quoted(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- What the program prints, both streams together, and its exit code.
local function run(...)
    local words = {quoted(lumat), "--device", where}
    for _, word in ipairs{...} do
        words[#words + 1] = quoted(tostring(word))
    end
    local pipe = assert(io.popen(table.concat(words, " ") .. " 2>&1"))
    local text = pipe:read("a")
    local _, _, code = pipe:close()
    return text, code
end

local function succeeds(script, ...)
    local text, code = run(scripts .. script, ...)
    lu.assertEquals(code, 0, text)
    lu.assertNotStrContains(text, "FAILS")
    return text
end

local function count(text, word)
    local _, n = text:gsub(word, "")
    return n
end

-- Every available kernel of an operation stands in a line that says Accept.
local function accepts_kernels(text, operation, device)
    for _, k in ipairs(kernel_list(device)) do
        if k.operation == operation and k.available then
            local line = text:match("\n%s*" .. device .. " +" .. k.name ..
                "[^\n]*Accept")
            lu.assertNotNil(line, k.name .. " on " .. device .. "\n" .. text)
        end
    end
end

TestTour = {}

function TestTour:test_runs_as_it_says()
    local text, code = run(scripts .. "tour.lua")
    lu.assertEquals(code, 0, text)
    lu.assertNotStrContains(text, "***")
    lu.assertStrContains(text, "lumat> A * B\nerror: matmul: inner dimensions "
        .. "differ (4 and 3)\n  A is 3x4, B is 3x4")
    lu.assertStrContains(text, "lumat> vec{1, 2, 3} * vec{4, 5, 6}\n32.0\n")
    lu.assertStrContains(text, "\nAccept: relative error")
    lu.assertEquals(count(text, "\n%-%-%- "), 13)
end

function TestTour:test_shows_errors_and_the_trace()
    local text = run(scripts .. "tour.lua")
    lu.assertStrContains(text, "FAILS: ")
    lu.assertNotNil(text:match("lumat> C = A %* A%.T;\n  matmul  %S+  128x"))
end

function TestTour:test_leaves_no_files()
    local name = run(scripts .. "tour.lua"):match('name = "([^"]*)"')
    lu.assertNotNil(name)
    for _, suffix in ipairs{"", ".csv", ".npy"} do
        lu.assertNil(io.open(name .. suffix))
    end
end

TestLessons = {}

function TestLessons:test_dot_meets_the_closed_form()
    local text = succeeds "lesson_dot.lua"
    lu.assertStrContains(text, "n (n + 1) = 1049600\n")
    accepts_kernels(text, "dot", "cpu")
    accepts_kernels(text, "dot", (device()))
    lu.assertStrContains(succeeds("lesson_dot.lua", 7), "n (n + 1) = 56\n")
end

function TestLessons:test_dot_of_one_element()
    lu.assertStrContains(succeeds("lesson_dot.lua", 1), "n (n + 1) = 2\n")
end

function TestLessons:test_4x4()
    local text = succeeds "lesson_4x4.lua"
    lu.assertStrContains(text, "A * B: Accept\ncpu reference: Accept\n")
    lu.assertStrContains(succeeds("lesson_4x4.lua", 12), "Accept")
end

function TestLessons:test_blocks_of_any_size()
    for _, sizes in ipairs{{137, 55, 28, 80, 48}, {100, 33, 7, 13, 5},
        {1, 1, 1}, {80, 48, 80}} do
        local text = succeeds("lesson_blocks.lua", table.unpack(sizes))
        lu.assertStrContains(text, "whole numbers, equal to A * B: Accept")
        lu.assertStrContains(text, "by blocks: Accept")
    end
end

function TestLessons:test_race_of_every_kernel()
    local text = succeeds("lesson_race.lua", 48, 40, 56)
    accepts_kernels(text, "matmul", "cpu")
    accepts_kernels(text, "matmul", (device()))
    lu.assertEquals(text:find("no GPU here", 1, true) ~= nil,
        device() == "cpu")
end

function TestLessons:test_padding_gives_an_answer()
    local text = succeeds("lesson_padding.lua", 8, 64)
    lu.assertEquals(count(text, "Accept"), 6)
    lu.assertNotNil(text:match("padd[^\n]*: faster than [^\n]* of 6 sizes"))
end

function TestLessons:test_longley()
    local text = succeeds "longley.lua"
    lu.assertStrContains(text, "centred, solve: Accept\n")
    lu.assertStrContains(text, "centred, Cholesky: Accept\n")
    lu.assertEquals(count(text, "certified"), 28)
end

function TestLessons:test_wrong_arguments()
    for _, word in ipairs{"x", "0", "-3", "1.5", "1e400"} do
        local text, code = run(scripts .. "lesson_dot.lua", word)
        lu.assertEquals(code, 2, text)
        lu.assertStrContains(text, "usage: lumat ")
    end
    lu.assertEquals(select(2, run(scripts .. "longley.lua", 1)), 2)
end

function TestLessons:test_a_failed_check_decides_the_exit_code()
    local text, code = run("-e", ("package.path = %q\n"):format(scripts ..
        "?.lua") .. [[
        local lessons = require "lessons"
        lessons.check("one", true, "never seen")
        lessons.check("two", 1 == 2, "1 is not 2")
        lessons.verify(ones(2, 2), eye(2), eye(2))
        lessons.finish()]])
    lu.assertEquals(text,
        "one: Accept\ntwo: FAILS: 1 is not 2\n2 checks failed\n")
    lu.assertEquals(code, 1)
end

TestBench = {}

local function bench_csv()
    local path = os.tmpname()
    local text = succeeds("bench.lua", "--quick", "--seconds", "0.002",
        "--csv", path)
    local file = assert(io.open(path))
    local csv = file:read("a")
    file:close()
    os.remove(path)
    return csv, text
end

function TestBench:test_every_kernel_and_figure()
    local csv, text = bench_csv()
    lu.assertStrContains(text, "measured peaks f32")
    lu.assertStrContains(csv, "what,device,kernel,dtype,size,seconds,")
    for _, what in ipairs{"A + B", "A * B", "add", "sin", "sqrt", "sum",
        "expression", "dot", "matmul"} do
        lu.assertStrContains(csv, '\n"' .. what .. '",' .. device())
    end
    for _, k in ipairs(kernel_list()) do
        if k.available then
            lu.assertStrContains(csv, ('"%s",%s,"%s'):format(k.operation,
                device(), k.name))
        end
    end
end

-- what,device,kernel,dtype,size,seconds,low,high,rate,unit,share,verdict
function TestBench:test_rates_have_units()
    local rows = 0
    for line in bench_csv():gmatch("\n([^\n]+)") do
        local fields = {}
        for field in (line .. ","):gmatch("([^,]*),") do
            fields[#fields + 1] = field
        end
        local median, low = tonumber(fields[6]), tonumber(fields[7])
        lu.assertTrue(low > 0 and low <= median, line)
        if fields[9] ~= "" then
            rows = rows + 1
            lu.assertTrue(tonumber(fields[9]) > 0, line)
            lu.assertTableContains({"GB/s", "GFLOP/s", "TFLOP/s"}, fields[10])
        end
    end
    lu.assertTrue(rows >= 20, rows)
end

function TestBench:test_wrong_arguments()
    for _, words in ipairs{{"--fast"}, {"--seconds"}, {"--seconds", "no"},
        {"--seconds", "0"}} do
        local text, code = run(scripts .. "bench.lua", table.unpack(words))
        lu.assertEquals(code, 2, text)
        lu.assertStrContains(text, "usage: lumat bench.lua")
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
