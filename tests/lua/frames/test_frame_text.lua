-- Frames as text: whatever is in them, no line is wider than the screen.
local lu = require "luaunit"
require "common"
local cells = require "lumat.cells"

local texts = {"a", "日本語", "é", "a longer text that is cut somewhere", "x\ny",
    "", "\27[31mred", "ß", ("w"):rep(50)}
local names = {"a", "b", "a rather long name for a column", "日本", "x"}

local function style(width, full, ascii)
    return {width = width, limit = 18, head = 6, tail = 3, ascii = ascii,
        colour = false, full = full}
end

local function shown(x, s)
    return debug.getmetatable(x).__text(x, s)
end

local function pick(list) return list[math.random(#list)] end

local function some_column(n)
    local kind = math.random(4)
    if n == 0 then return {} end
    if kind == 1 then
        local list = {}
        for i = 1, n do list[i] = pick(texts) end
        local c = frame{x = list}.x
        c[math.random(n)] = nil
        return c
    elseif kind == 2 then
        return randn(n) * 10.0 ^ math.random(-8, 12)
    elseif kind == 3 then
        return randint(0, 1, n):f32()
    end
    return dates(rand(n, {dtype = "f64"}) * 1e9)
end

local function some_frame()
    local T, n = frame{}, pick{0, 1, 2, 17, 18, 19, 300}
    for k = 1, math.random(12) do T:set(pick(names) .. k, some_column(n)) end
    return T
end

TestWidth = {}

function TestWidth:test_no_line_is_wider_than_the_screen()
    math.randomseed(3)
    for i = 1, 150 do
        local T, width = some_frame(), math.random(10, 120)
        local lines = 0
        local text = shown(T, style(width, false, i % 3 == 0)):match "\n(.*)"
        for line in (text .. "\n"):gmatch "(.-)\n" do
            lu.assertTrue(cells.width(line) <= width,
                width .. ":" .. cells.width(line) .. ": " .. line)
            lu.assertNil(line:find "[%c\127]")
            lines = lines + 1
        end
        lu.assertTrue(lines <= 18 + 3)
    end
end

function TestWidth:test_columns_alone()
    math.randomseed(4)
    for _ = 1, 100 do
        local c, width = some_column(pick{1, 3, 40, 300}), math.random(10, 120)
        if type(c) == "table" then
            local text = shown(c, style(width)):match "\n(.*)"
            for line in (text .. "\n"):gmatch "(.-)\n" do
                lu.assertTrue(cells.width(line) <= width, line)
            end
        end
    end
end

-- In full nothing is left out, and all is there to be read.
function TestWidth:test_in_full()
    local T = frame{{"name", {("w"):rep(50), "x"}}, {"n", {1, 2}}}
    for k = 1, 30 do T["column " .. k] = k end
    local text = shown(T, style(40, true))
    lu.assertStrContains(text, ("w"):rep(50))
    lu.assertStrContains(text, "column 30")
    lu.assertNotStrContains(text, "hidden")
end

-- A column whose elements were given up is seen to be so.
function TestWidth:test_freed_columns()
    local T = frame{{"a", {1, 2}}, {"b", {3, 4}}, {"s", {"x", "y"}}}
    T.a:free()
    T.s.codes:free()
    local text = tostring(T)
    lu.assertStrContains(text, "freed    3  freed")
    lu.assertErrorMsgContains("freed", function() return T:sort "b" end)
    lu.assertErrorMsgContains("freed", function() return T[1] end)
end

-- Only a frame's headline stands where there is no room for more.
function TestWidth:test_headlines()
    lu.assertEquals(tostring(frame{}), "frame 0x0  (empty)")
    local T = frame{a = vec({1, 2}, {device = "cpu"})}
    lu.assertEquals(debug.getmetatable(T).__headline(T), "frame 2x1  cpu  8 B")
    lu.assertStrContains(tostring(frame{a = {0 / 0, 1}, b = {"x", false}}),
        "1 NaN, 1 missing")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
