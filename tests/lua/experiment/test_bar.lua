-- Progress: the cost model's guesses, the line of a terminal, lines of a log.
local lu = require "luaunit"
local bar = require "lumat.progress".bar

TestModel = {}

-- After a fifth of a sweep whose points cost 1 to 10^4, the time of the rest
-- is known within a quarter, whatever the order and the noise.
function TestModel:test_guesses_after_a_fifth()
    for seed = 1, 20 do
        local costs = experiment.logspace(1, 1e4, 200)
        for i, k in ipairs(randperm(200, {seed = seed}):totable()) do
            local j = math.tointeger(k)
            costs[i], costs[j] = costs[j], costs[i]
        end
        local noise = randn(200, {seed = seed}):totable()
        local model, cost, seconds = bar.model(), 0, 0
        for i, c in ipairs(costs) do
            local s = (0.02 + 1e-3 * c) * math.exp(0.05 * noise[i])
            if i <= 40 then
                model:add(c, s)
            else
                cost, seconds = cost + c, seconds + s
            end
        end
        local guess = model:predict(160, cost)
        lu.assertTrue(math.abs(guess / seconds - 1) < 0.25,
            seed .. ": " .. guess .. " of " .. seconds)
    end
end

function TestModel:test_without_costs_it_is_the_mean()
    local model = bar.model()
    lu.assertNil(model:predict(1, 1))
    for _ = 1, 10 do model:add(1, 0.5) end
    lu.assertAlmostEquals(model:predict(4, 4), 2, 1e-9)
end

function TestModel:test_a_machine_that_becomes_slow_is_followed()
    local model = bar.model()
    for _ = 1, 50 do model:add(1, 1) end
    for _ = 1, 10 do model:add(1, 3) end
    lu.assertTrue(model:predict(1, 1) > 2)
end

TestLine = {}

local state = {done = 37, failed = 1, total = 46, elapsed = 42.3, left = 78,
    last = "n=8192 tiled:\n 3.2 ms"}

function TestLine:test_fits_any_width()
    for width = 1, 200 do
        local line = bar.line("gemm", state, width)
        lu.assertTrue(#line <= math.max(width, 5), line)
        lu.assertNil(line:find("\n"))
    end
    lu.assertEquals(bar.line("gemm", state, 100),
        "gemm  [####################-----]  37/46  1 failed  0:42  " ..
        "ETA 1:18  n=8192 tiled: 3.2 ms")
    lu.assertEquals(bar.line("gemm", state, 20), "37/46  1 failed")
    lu.assertEquals(bar.line("gemm", state, 5), "37/46")
end

function TestLine:test_numbers()
    lu.assertEquals(bar.clock_text(3599.4), "59:59")
    lu.assertEquals(bar.clock_text(3600), "1:00:00")
    lu.assertEquals(bar.seconds_text(0.00123), "1.23 ms")
    lu.assertEquals(bar.seconds_text(12), "12 s")
end

function TestLine:test_where_it_goes()
    local out = {}
    local function new(columns, quiet)
        out = {}
        return bar.new("a", {quiet = quiet, columns = function()
            return columns
        end, put = function(text) out[#out + 1] = text end})
    end
    local b = new(80)
    lu.assertTrue(b:is_due())
    b:show{done = 1, failed = 0, total = 2, last = "x"}
    b:say("done")
    lu.assertStrMatches(out[1], "\r.*1/2.*\27%[K")
    lu.assertEquals(out[2], "\r\27[Kdone\n")
    b = new(nil)
    lu.assertFalse(b:is_due())
    b:show{done = 1, failed = 0, total = 2, last = "x"}
    lu.assertEquals(out[1], "a: 1/2  0:00  x\n")
    b = new(80, true)
    lu.assertFalse(b:is_due())
    b:show{done = 1, failed = 0, total = 2}
    b:say("done")
    lu.assertEquals(#out, 0)
end

TestTask = {}

function TestTask:test_fits_any_width()
    for width = 1, 200 do
        local line = bar.task_line("gemm", state, "n=8192\ntiled, sample 3",
            width)
        lu.assertTrue(utf8.len(line) <= width, line)
        lu.assertNil(line:find("\n"))
    end
end

function TestTask:test_what_is_measured_goes_before_the_picture()
    local function line(width)
        return bar.task_line("gemm", state, "n=8192 tiled, sample 3", width)
    end
    lu.assertEquals(line(100), "gemm  [####################-----]  37/46  " ..
        "1 failed  n=8192 tiled, sample 3")
    lu.assertEquals(line(80), "gemm  [############---]  37/46  1 failed  " ..
        "n=8192 tiled, sample 3")
    lu.assertEquals(line(59), "37/46  1 failed  n=8192 tiled, sample 3")
    lu.assertEquals(line(40), "37/46  n=8192 tiled, sample 3")
    lu.assertEquals(line(20), "37/46  n=8192 ")
end

-- Lines are shown now and then; what is done meanwhile is counted.
function TestTask:test_points_between_two_lines()
    local b = bar.new("a", {columns = function() return 80 end,
        put = function() end})
    b:count(true)
    b:show{done = 1, failed = 0, total = 5}
    b:count(false)
    b:count(true)
    lu.assertEquals({b.state.done, b.state.failed}, {3, 1})
end

function TestTask:test_only_a_terminal_is_told()
    local function measuring(columns, quiet)
        return bar.new("a", {quiet = quiet, columns = function()
            return columns
        end}):measuring("n=1")
    end
    lu.assertNil(measuring(nil))
    lu.assertNil(measuring(80, true))
    local task <close> = measuring(80)
    lu.assertIsFunction(task.tell)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
