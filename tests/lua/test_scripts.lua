-- The scripts a user runs: each with small arguments, as a program of its own,
-- from where `make install` puts script and program.
local lu = require "luaunit"

local here = arg[0]:match("^(.*)/[^/]*$") or "."
local source = here .. "/../.."
local where = os.getenv("LUMAT_TEST_DEVICE") or "cpu"

local function quoted(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- What a command prints, both streams together, and its exit code.
local function shell(command, ...)
    local pipe = assert(io.popen("{ " .. command:format(...) .. "; } 2>&1"))
    local text = pipe:read("a")
    local _, _, code = pipe:close()
    return text, code
end

-- The files in a folder, by name.
local function files_in(folder)
    local names = {}
    for name in shell("cd %s && find . -type f", quoted(folder)):gmatch
        "%./([^\n]+)" do names[name] = true end
    return names
end

-- make, for what is built already in the folder out; its variables are not
-- those that this test may have been started with.
local function make(target, out, root)
    local text, code = shell("cd %s && env -u MAKEFLAGS -u MAKELEVEL make -s " ..
        "-o all %s OUT=%s PLUGINS=\"$(echo $(ls %s/bin/*.so 2>/dev/null))\" " ..
        "DESTDIR=%s PREFIX=/usr", quoted(source), target, quoted(out),
        quoted(out), quoted(root))
    if code == 0 then return end
    os.execute("rm -rf " .. root)
    error(text)
end

-- The folder that the program is installed under, and the one to be removed
-- at the end. What `make dist` made is installed already.
local function install(program)
    local out = shell("cd $(dirname $(readlink -f %s))/.. && pwd",
        quoted(program)):match "[^\n]+"
    if files_in(out)["share/lumat/scripts/tour.lua"] then return out end
    local root = os.tmpname()
    os.remove(root)
    make("install", out, root)
    return root .. "/usr", root, out
end

local tree, root, out = install(assert(os.getenv("LUMAT"),
    "LUMAT must name the program"))
local scripts = tree .. "/share/lumat/scripts/"
local lumat = tree .. "/bin/lumat"
local was_run = {}

-- What takes long is left out in a build that is slow.
local is_slow = os.getenv "LUMAT_TEST_EVERY" ~= nil

-- What the program prints, both streams together, and its exit code.
local function run(...)
    local words = {quoted(lumat), "--device", where}
    for _, word in ipairs{...} do
        words[#words + 1] = quoted(tostring(word))
    end
    was_run[tostring((...)):match "[^/]*$"] = true
    return shell("%s", table.concat(words, " "))
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

-- Every available kernel of an operation stands in a line that says Accept, or
-- says that it is not made for the shape.
local function accepts_kernels(text, operation, device)
    for _, k in ipairs(kernel_list(device)) do
        if k.operation == operation and k.available then
            local name = k.name:gsub("%-", "%%-")
            local line = text:match("\n%s*" .. device .. " +" .. name ..
                "[^\n]*Accept") or
                text:find("kernel " .. k.name .. " cannot", 1, true)
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
    -- what waits is told of where it is done
    lu.assertNotNil(text:match("lumat> C = A %* A%.T;\n[^\n]*\n?  matmul  %S+  128x"))
end

-- A product's share is of the peak of its type or of the memory, whichever is
-- nearer; a dot's always of the memory.
function TestTour:test_the_trace_names_the_peak()
    local text = run("-e", [[
        local A = rand(600, 600)
        tracing(true)
        local C, s = A * A, A[1] * A[2]
        sync()]])
    lu.assertNotNil(text:match("  matmul  %S+  600x600x600  f32 %S+  "
        .. "[%d.e+-]+ us  [%d.e+-]+ [GT]FLOP/s  %d+ %% of f32 peak[^\n]*\n"), text)
    lu.assertNotNil(text:match("  dot  %S+  1x600x1  f32 %S+  [%d.e+-]+ us  "
        .. "[%d.e+-]+ GB/s  %d+ %% of memory peak[^\n]*\n"), text)
end

function TestTour:test_leaves_no_files()
    local name = run(scripts .. "tour.lua"):match('name = "([^"]*)"')
    lu.assertNotNil(name)
    for _, suffix in ipairs{"", ".csv", ".npy"} do
        lu.assertNil(io.open(name .. suffix))
    end
end

TestLessons = {}

function TestLessons:test_sparse()
    local text = succeeds("sparse.lua", 300, 4)
    lu.assertStrContains(text, "4·2 + 5·4 + 6·6 = 64\n")
    lu.assertStrContains(text, "cpu S * D: Accept\n")
    lu.assertStrContains(text, "A * B: Accept\n")
end

function TestLessons:test_graphs()
    for _, sizes in ipairs{{}, {7, 3}, {3000, 9000}} do
        local text = succeeds("lesson_graph.lua", table.unpack(sizes))
        lu.assertEquals(count(text, "Accept"), 5)
        lu.assertStrContains(text, "highest PageRank: members 34, 1 and 33\n")
        lu.assertStrContains(text, "15 members with member 1, 19 with " ..
            "member 34, 10 friendships")
    end
end

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

function TestLessons:test_solve_refines_step_by_step()
    for _, n in ipairs{20, 200} do
        local text = succeeds("lesson_solve.lua", n)
        lu.assertEquals(count(text, "Accept"), 7)
        lu.assertNotNil(text:find "condition 1e%+06: a step should gain a " ..
            "factor of 2e%+01")
        lu.assertNotNil(text:find "\n 12    1%.[5-8]e%+16") -- known to 1e-1
    end
end

function TestLessons:test_pca_finds_the_plane()
    for _, words in ipairs{{}, {50, 3}, {2000, 40}} do
        local text = succeeds("lesson_pca.lua", table.unpack(words))
        lu.assertEquals(count(text, ": Accept\n"), 3)
        for _, sign in ipairs{"o", "x", "%+"} do
            lu.assertNotNil(text:find("\n [ ox+]*" .. sign), text)
        end
    end
    -- four lines of mathematics
    local source_text = assert(io.open(scripts .. "lesson_pca.lua")):read "a"
    local four = source_text:match "four lines of mathematics %-+\n\n(.-)\n\n"
    lu.assertEquals(count(four, "\n") + 1, 4)
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

-- What a benchmark prints, and its CSV file as lists of fields by the names
-- in the first line.
local function bench(script, ...)
    local path = os.tmpname()
    local text = succeeds(script, "--quick", "--seconds", "0.002", "--csv",
        path, ...)
    local rows, names = {}
    for line in io.lines(path) do
        local fields = {}
        for field in (line .. ","):gmatch("([^,]*),") do
            fields[#fields + 1] = field:gsub('"', "")
        end
        if names then
            rows[#rows + 1] = {}
            for i, name in ipairs(names) do rows[#rows][name] = fields[i] end
        end
        names = names or fields
    end
    os.remove(path)
    return rows, text
end

function TestBench:test_every_figure_of_the_language()
    local rows, text = bench "bench.lua"
    lu.assertStrContains(text, "measured peaks f32")
    local found = {}
    for _, row in ipairs(rows) do
        found[row.what] = true
        local median, low = tonumber(row.seconds), tonumber(row.low)
        lu.assertTrue(low > 0 and low <= median, row.what)
        if row.rate ~= "" then lu.assertTrue(tonumber(row.rate) > 0) end
    end
    for _, what in ipairs{"A + B", "A * B", "add", "sin", "sqrt", "sum",
        "expression"} do
        lu.assertTrue(found[what], what)
    end
end

-- Beside a peer where there is one, of which the test needs none.
function TestBench:test_every_operation()
    local rows, text = bench("bench_operations.lua", "--peer", "no")
    lu.assertStrContains(text, "bound: the bytes at")
    lu.assertTrue(#rows > 20, #rows)
    for _, row in ipairs(rows) do
        local median, low = tonumber(row.seconds), tonumber(row.low)
        lu.assertTrue(low > 0 and low <= median, row.what)
        lu.assertTrue(tonumber(row.share) > 0, row.what)
    end
    rows = bench("bench_operations.lua", "--only", "^sum")
    lu.assertEquals({rows[1].what, rows[2].what, rows[3].what, rows[4]},
        {"sum", "sum axis 1", "sum axis 2"})
end

-- Every matrix with every product; of the first one all else as well.
function TestBench:test_sparse_ones()
    local rows, text = bench("bench_sparse.lua", "--peer", "no")
    lu.assertStrContains(text, "1000 rows, 10000 entries, f32\n")
    local found = {}
    for _, row in ipairs(rows) do
        found[row.kernel] = (found[row.kernel] or 0) + 1
        local median, low = tonumber(row.seconds), tonumber(row.low)
        lu.assertTrue(low > 0 and low <= median, row.what)
    end
    lu.assertEquals(found, {random = 24, ["rows of 3"] = 4, ["rows of 100"] = 4,
        ["1000 columns"] = 4, ["5 diagonals"] = 4, ["27 diagonals"] = 4,
        ["power law"] = 4, steeper = 4, hubs = 4, ["one long row"] = 4})
    rows = bench("bench_sparse.lua", "--peer", "no", "--only", "random sum")
    lu.assertEquals({rows[1].what, rows[2].what, rows[3].what, rows[4]},
        {"sum", "sum of columns", "sum of rows"})
end

-- Every kernel has a row with a rate, its share and its errors.
local function has_every_kernel(script, operation)
    local rows, text = bench(script)
    lu.assertStrContains(text, "measured peaks: f32")
    local found = {}
    for _, row in ipairs(rows) do
        if tonumber(row.error) then
            found[row.kernel] = true
            lu.assertTrue(tonumber(row.rate) > 0, row.kernel)
            lu.assertTrue(tonumber(row.share) > 0, row.kernel)
            lu.assertTableContains({"GB/s", "GFLOP/s", "TFLOP/s"}, row.unit)
        end
    end
    for _, k in ipairs(kernel_list()) do
        if k.available and k.operation == operation then
            lu.assertTrue(found[k.name] or
                text:find("kernel " .. k.name .. " cannot", 1, true) ~= nil,
                k.name .. "\n" .. text)
        end
    end
    lu.assertEquals(text:find("no GPU here", 1, true) ~= nil,
        device() == "cpu")
    for line in text:gmatch("[^\n]+") do lu.assertTrue(#line <= 100, line) end
end

function TestBench:test_every_kernel_of_matmul()
    has_every_kernel("bench_matmul.lua", "matmul")
end

function TestBench:test_every_kernel_of_dot()
    has_every_kernel("bench_dot.lua", "dot")
end

function TestBench:test_only_some()
    local rows = bench("bench_matmul.lua", "--only", "f64 64 auto")
    for _, row in ipairs(rows) do
        if not row.what:find("target") then
            lu.assertEquals(row.dtype .. row.size, "f6464")
        end
    end
    lu.assertTrue(#rows > 0)
end

-- A run that is kept is not measured again.
function TestBench:test_a_kept_run()
    local folder = os.tmpname()
    os.remove(folder)
    for script, name in pairs(is_slow and {["bench.lua"] = "language"} or
        {["bench.lua"] = "language", ["bench_matmul.lua"] = "products"}) do
        local first = bench(script, "--dir", folder)
        lu.assertNotNil(io.open(folder .. "/" .. name .. "/experiment.json"))
        local again = bench(script, "--dir", folder)
        lu.assertEquals(#again, #first)
        for i, row in ipairs(first) do
            lu.assertEquals(again[i].seconds, row.seconds)
        end
    end
    os.execute("rm -rf " .. folder)
end

function TestBench:test_wrong_arguments()
    for _, case in ipairs{{"bench", "--seconds"}, {"bench_dot", "--seconds"},
        {"bench_matmul", "--seconds"}, {"bench_pool", "--ranks"},
        {"bench_workers", "--several"}, {"study_pool", "--size"}} do
        local script, option = case[1], case[2]
        for _, words in ipairs{{"--fast"}, {option}, {option, "no"},
            {option, "0"}, {"some"}} do
            local text, code = run(scripts .. script .. ".lua",
                table.unpack(words))
            lu.assertEquals(code, 2, text)
            lu.assertStrContains(text, "usage: lumat " .. script .. ".lua")
        end
    end
end

-- A target says by how much it is missed, whichever way it counts.
function TestBench:test_verdicts_of_targets()
    local text = run("-e", ("package.path = %q\n"):format(scripts ..
        "?.lua") .. [[
        local figures = require "figures"
        figures.options = {on_gpu = true}
        figures.target{what = "a", value = 4.4, must = 4, goal = 4.3}
        figures.target{what = "b", value = 4.1, must = 4, goal = 4.3}
        figures.target{what = "c", value = 3, must = 4, goal = 4.3}
        figures.target{what = "d", value = 1.5, must = 1, most = true}
        figures.target{what = "e", value = 0.4, goal = 0.5, most = true}
        figures.target{what = "f", must = 1}
        figures.show_targets()]])
    for _, line in ipairs{"\na +4.4 +4 +4.3  met goal\n", "met must\n",
        "missed by 25.0 %%\n", "missed by 50.0 %%\n",
        "\ne +0.4 +%- +0.5  met goal\n", "not measured\n",
        "3 of 5 measured targets met"} do
        lu.assertNotNil(text:find(line), line .. text)
    end
end

TestStudies = {}

-- What a program prints that runs a script in a folder of its own, its exit
-- code, and what it left there.
local function run_in_folder(script, ...)
    local folder = os.tmpname()
    os.remove(folder)
    was_run[script:match "[^/]*$"] = true
    local text, code = shell("mkdir %s && cd %s && %s --device %s %s %s",
        folder, folder, quoted(lumat), where, quoted(script),
        table.concat({...}, " "))
    local files = {}
    for line in io.popen("ls " .. folder):lines() do
        local file = io.open(folder .. "/" .. line, "rb")
        files[line] = file:read("a") or true
        file:close()
    end
    os.execute("rm -rf " .. folder)
    return text, code, files
end

-- A study ends in a table, a chart and a report, in less than a minute.
local function study(name, ...)
    local start = clock()
    local text, code, files = run_in_folder(scripts .. "study_" .. name ..
        ".lua", "--quiet", ...)
    lu.assertEquals(code, 0, text)
    lu.assertTrue(is_slow or clock() - start < 60)
    lu.assertStrContains(text, name .. ".html has it all\n")
    lu.assertNotStrContains(text, "FAILED")
    lu.assertStrContains(files[name .. ".html"], "<svg ")
    lu.assertStrContains(files[name .. ".html"], "Script: study_" .. name)
    return text
end

function TestStudies:test_kernels()
    local text = study "kernels"
    lu.assertStrContains(text, "points; rate, ")
    lu.assertStrContains(text, "flops a byte")
end

function TestStudies:test_accuracy()
    was_run["study_accuracy.lua"] = true
    lu.skipIf(is_slow, "half a minute in a build that is slow")
    lu.assertStrContains(study "accuracy", "points; error")
end

-- Every rung has an error for every size and kind.
function TestStudies:test_factor()
    local text = study("factor", "--quick")
    lu.assertStrContains(text, "lu, FLOP/s of random matrices")
    for _, kind in ipairs{"random", "graded", "ill", "growing"} do
        lu.assertNotNil(text:find("\n%s*" .. kind .. " +128 +[%d.]+e"), text)
    end
    lu.assertEquals(text:find("as fast as cuSOLVER", 1, true) ~= nil,
        where ~= "cpu")
end

-- PageRank of the club as it is known: 34 and 1 lead, 33, 3 and 2 follow.
function TestStudies:test_graph()
    local text = study "graph"
    lu.assertStrContains(text, "pagerank    34 (0.1009)  1 (0.0970)  " ..
        "33 (0.0717)  3 (0.0571)  2 (0.0529)\n")
    lu.assertStrContains(text, "centrality  34 (0.0750)  1 (0.0714)")
end

-- The figures of a line of a table: of a product, then of LU factors.
local function scaling(count, ...)
    local lines = {}
    for line in succeeds("study_scaling.lua", ...):gmatch("\n +" .. count ..
        " +%d+x%d+ [^\n]*") do
        local f = {bound = line:match "%d %%  ([%a ]+)$"}
        for text in line:gsub("%d+x%d+", ""):gmatch "[%d.]+" do
            f[#f + 1] = tonumber(text)
        end
        lines[#lines + 1] = {n = f[2], work = f[4], exchange = f[5], plain = f[7],
            ahead = f[9], bound = f.bound}
    end
    lu.assertEquals(#lines, 2)
    return lines[1], lines[2]
end

-- What two H200 exchange was measured: 1.93 times one with plain panels.
function TestStudies:test_scaling()
    local two, factors = scaling(2)
    lu.assertEquals(two.plain, 1.93)
    lu.assertAlmostEquals(two.exchange, 32768 ^ 2 / 2 * 4 / 369e9 * 1e3, 0.2)
    lu.assertTrue(two.ahead > 1.95 and two.ahead <= 2)
    lu.assertTrue(factors.ahead > factors.plain and factors.ahead < 2)
    local slow = scaling(2, "--inside", 10, "--most", 2)
    lu.assertTrue(slow.plain < 1 and slow.bound == "links in a host")
    local f64 = scaling(2, "--dtype", "f64", "--most", 2)
    lu.assertAlmostEquals(f64.exchange, 2 * two.exchange, 0.2)
    lu.assertTrue(f64.plain > two.plain)
    local weak = scaling(16, "--weak", "--most", 16)
    lu.assertEquals(weak.n, 4 * 32768)
    lu.assertTrue(weak.plain > scaling(16, "--most", 16).plain)
    local far = scaling(4, "--grid", "2x2", "--hosted", 2)
    lu.assertTrue(far.plain < scaling(4, "--grid", "2x2").plain)
    lu.assertEquals(scaling(4, "--grid", "1x4", "--between", 1, "--hosted",
        2).bound, "links between hosts")
    for _, words in ipairs{{"--grid", "2"}, {"--n", "no"}, {"--n"}, {"--cards", 3},
        {"--dtype", "f16"}, {"many"}} do
        local text, code = run(scripts .. "study_scaling.lua",
            table.unpack(words))
        lu.assertEquals(code, 2, text)
        lu.assertStrContains(text, "usage: lumat study_scaling.lua")
    end
end

-- One process and several; results are looked at.
function TestStudies:test_pool()
    local text = succeeds("study_pool.lua", "--quick", "--ranks", 2)
    lu.assertEquals(select(2, text:gsub("accepted", "")), 4, text)
    lu.assertEquals(select(2, text:gsub("times as fast", "")), 3, text)
    lu.assertNotStrContains(text, "WRONG")
end

-- Points that wait need no core: two workers have twice as many of them.
function TestStudies:test_workers()
    local function bench(...)
        return run_in_folder(scripts .. "bench_workers.lua", "--quick",
            "--several", 2, ...)
    end
    local text, code, files = bench("--sleep", 0.1)
    lu.assertEquals(code, 0, text)
    local one, two = text:match "1 worker +([%d.]+) .-2  workers +([%d.]+) "
    lu.assertTrue(one + 0 > 1 and one + 0 < 10, text)
    lu.assertTrue(two + 0 > one + 0 and two + 0 < 20, text)
    lu.assertNotNil(text:find "\nefficiency +[%d.]+ %%\n", text)
    lu.assertNil(next(files))
    text, code = bench("--least", 5)
    lu.assertEquals(code, 1, text)
    lu.assertStrContains(text, "FAILS: below 500.0 %")
    text, code = bench("--cores", 5)
    lu.assertEquals(code, 2, text)
end

-- The sweep that the README shows runs as it is written there.
function TestStudies:test_the_sweep_of_the_readme()
    lu.skipIf(is_slow, "minutes in a build that is slow")
    local readme = assert(io.open(source .. "/README.md")):read "a"
    local sweep = readme:match("```lua\n(local e = experiment.-)```")
    lu.assertNotNil(sweep)
    lu.assertEquals(count(sweep, "\n"), 12)
    if where ~= "cpu" then
        sweep = sweep:gsub('"reference", "openblas"', '"naive", "cublas"')
    end
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(sweep)
    file:close()
    local text, code, files = run_in_folder(path)
    os.remove(path)
    lu.assertEquals(code, 0, text)
    lu.assertStrContains(text, "Products of matrices: 15 points; rate, ")
    lu.assertStrContains(text, "Products of matrices: rate by n and kernel\n")
    lu.assertStrContains(files["products.html"], "<h1>Products of matrices</h1>")
    lu.assertNotNil(files.runs)
end

-- The last class, by its name.
TestTree = {}

function TestTree:test_every_script_was_run()
    for name in pairs(files_in(scripts)) do
        if name:find "%.lua$" and not was_run[name] then
            succeeds(name)
        end
    end
end

function TestTree:test_it_has_every_file()
    lu.assertEquals(files_in(scripts), files_in(source .. "/scripts"))
end

function TestTree:test_uninstall_leaves_nothing()
    lu.skipIf(not root, "not by make install")
    local second = os.tmpname()
    os.remove(second)
    make("install", out, second)
    lu.assertNotNil(next(files_in(second)))
    make("uninstall", out, second)
    lu.assertEquals(files_in(second), {})
    os.execute("rm -rf " .. second)
end

local failures = lu.LuaUnit.run("-o", "tap")
if root then os.execute("rm -rf " .. root) end
os.exit(failures)
