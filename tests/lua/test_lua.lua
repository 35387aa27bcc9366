-- Lua itself is as it was: chunks, metamethods of its own values, coroutines,
-- require; and the library is one table.
local lu = require "luaunit"
local t = require "common"
local raises = t.raises

TestChunks = {}

function TestChunks:test_load_compiles_strings_and_functions()
    lu.assertEquals(load("return 1 + 1")(), 2)
    lu.assertEquals(load("local x = ... return x * 2")(21), 42)
    local parts, i = {"return ", "4", "2", nil}, 0
    lu.assertEquals(load(function() i = i + 1 return parts[i] end)(), 42)
    lu.assertEquals(load("return x", "=name", "t", {x = 7})(), 7)
    local chunk = load("x = 5", "=name", "bt", {})
    lu.assertNil(chunk())
    lu.assertNil(rawget(_G, "x"))
    lu.assertEquals(load("")(), nil)
end

function TestChunks:test_load_reports_errors_as_values()
    local f, message = load("x =", "=chunk")
    lu.assertNil(f)
    lu.assertStrContains(message, "chunk:1:")
    local _, none, reason = pcall(load, function() error("mine", 0) end)
    lu.assertNil(none)
    lu.assertEquals(reason, "mine")
    f, message = load("A(1, 2) = 3")
    lu.assertNil(f)
    lu.assertStrContains(message, "syntax error")
    raises(function() load({}) end, "#1", "table")
    raises(function() load() end, "#1")
end

function TestChunks:test_precompiled_chunks_are_refused()
    local binary = string.dump(function() return 1 end)
    for _, mode in ipairs{"bt", "b", "t"} do
        local f, message = load(binary, "chunk", mode)
        lu.assertNil(f, mode)
        lu.assertStrContains(message, "binary chunk")
    end
    local f, message = load(binary)
    lu.assertNil(f)
    lu.assertStrContains(message, "attempt to load a binary chunk")
    local name = os.tmpname()
    local file = assert(io.open(name, "wb"))
    file:write(binary)
    file:close()
    f, message = loadfile(name)
    lu.assertNil(f)
    lu.assertStrContains(message, "binary chunk")
    f, message = pcall(dofile, name)
    lu.assertIsFalse(f)
    lu.assertStrContains(message, "binary chunk")
    os.remove(name)
end

function TestChunks:test_files_of_text_are_run()
    local name = os.tmpname()
    local file = assert(io.open(name, "w"))
    file:write("local a, b = ... return 'ran', a")
    file:close()
    lu.assertEquals({dofile(name)}, {"ran"})
    lu.assertEquals({loadfile(name)(5)}, {"ran", 5})
    lu.assertEquals({assert(loadfile(name, "t", {}))(6)}, {"ran", 6})
    os.remove(name)
    raises(function() dofile(name) end, name)
    lu.assertNil((loadfile(name)))
end

TestLibrary = {}

function TestLibrary:test_require_gives_the_functions_that_are_global()
    local lm = require "lumat"
    lu.assertIsTrue(rawequal(lm, require "lumat"))
    local count = 0
    for name, f in pairs(lm) do
        count = count + 1
        if name ~= "load" then
            lu.assertIsTrue(rawequal(_G[name], f), name)
        end
    end
    lu.assertIsTrue(count > 100)
    lu.assertEquals(lm.sum(lm.ones(3)), 3)
end

function TestLibrary:test_the_names_of_lua_keep_their_meaning()
    for _, name in ipairs{"assert", "collectgarbage", "error", "getmetatable",
        "ipairs", "next", "pairs", "pcall", "print", "rawequal", "rawget",
        "rawlen", "rawset", "require", "select", "setmetatable", "tonumber",
        "tostring", "type", "warn", "xpcall"} do
        lu.assertNil((require "lumat")[name], name)
        lu.assertEquals(type(_G[name]), "function", name)
    end
    lu.assertEquals(_VERSION, "Lua 5.4")
    lu.assertEquals(getmetatable(ones(1)), "matrix")
    lu.assertEquals(type(ones(1)), "userdata")
    for _, name in ipairs{"string", "table", "math", "io", "os", "coroutine",
        "utf8", "debug", "package"} do
        lu.assertIsTrue(rawequal(_G[name], package.loaded[name]), name)
    end
end

TestValues = {}

function TestValues:test_strings()
    lu.assertEquals(("abc"):upper(), "ABC")
    lu.assertEquals(#"abc", 3)
    lu.assertEquals("10" + 5, 15)
    lu.assertEquals("10" * "2", 20)
    lu.assertEquals(("%d %s"):format(3, "x"), "3 x")
    lu.assertEquals(("x"):rep(3, ","), "x,x,x")
    lu.assertEquals("a" .. 1, "a1")
    lu.assertIsTrue("a" < "b")
    lu.assertEquals(("k=v"):match("(%w)=(%w)"), "k")
end

-- Long strings are gone through in parts, which must not be seen.
function TestValues:test_long_strings_of_utf8()
    local s = ("aé€😀"):rep(300000)
    local function at(i) return utf8.offset(s, i) end
    lu.assertEquals(utf8.len(s), 1200000)
    lu.assertEquals(utf8.len(s, 4, -1), 1199998)
    lu.assertEquals(utf8.len(s, -4, -1), 1)
    lu.assertEquals(utf8.len(s, #s + 1), 0)
    for i = 1, 8 do
        local part = ("a"):rep(2 ^ 20 - i) .. "😀" .. ("é"):rep(2 ^ 20)
        lu.assertEquals(utf8.len(part), 2 ^ 21 - i + 1)
        local wrong = ("a"):rep(2 ^ 20 - i) .. "\xC3" .. ("a"):rep(2 ^ 20)
        lu.assertEquals({utf8.len(wrong)}, {nil, 2 ^ 20 - i + 1})
        wrong = ("a"):rep(2 ^ 20 - i) .. "é" .. ("\xA9"):rep(7) .. s
        lu.assertEquals({utf8.len(wrong)}, {nil, 2 ^ 20 - i + 3})
        local lax = ("a"):rep(2 ^ 20 - i) .. "\u{7FFFFFFF}" .. ("a"):rep(9)
        lu.assertEquals(utf8.len(lax, 1, -1, true), 2 ^ 20 - i + 10)
        lu.assertNil((utf8.len(lax)))
    end
    lu.assertEquals({at(1), at(2), at(4), at(1200001)}, {1, 2, 7, #s + 1})
    lu.assertEquals({at(-1), at(-1200000)}, {#s - 3, 1})
    lu.assertNil(at(1200002))
    lu.assertNil(at(-1200001))
    lu.assertNil(at(math.maxinteger))
    lu.assertNil(at(math.mininteger))
    lu.assertEquals(utf8.offset(s, 1199999, 2), #s - 3)
    lu.assertEquals(utf8.offset(s, -1199999, #s - 3), 1)
    lu.assertEquals(utf8.offset(s, 0, 3), 2)
    raises(function() utf8.offset(s, 1100000, 3) end, "continuation byte")
    raises(function() utf8.offset(s, 2, 2 * #s) end, "#3", "'offset'")
    raises(function() utf8.len(s, -2 * #s) end, "#2", "'len'")
    raises(function() utf8.len(s, 1, 2 * #s) end, "#3", "'len'")
    raises(function() utf8.len() end, "#1", "'len'")
    raises(function() utf8.offset("a") end, "#2", "'offset'")
end

function TestValues:test_numbers()
    lu.assertEquals({7 // 2, 7 % -3, 7 / 2, 1 << 4, 7 & 5, ~0}, {3, -2, 3.5,
        16, 5, -1})
    lu.assertEquals(math.type(1), "integer")
    lu.assertEquals(math.max(1, 5), 5)
    lu.assertEquals(tostring(1e15), "1e+15")
    lu.assertEquals(string.format("%.2f", 0.5), "0.50") -- a point in any locale
    lu.assertIsTrue(0 / 0 ~= 0 / 0)
end

function TestValues:test_metatables()
    local V = {}
    V.__index, V.__add = V, function(a, b) return a.x + b.x end
    V.__call, V.__len = function(self, y) return self.x * y end,
        function() return 9 end
    local v = setmetatable({x = 2}, V)
    lu.assertEquals({v + v, v(4), #v}, {4, 8, 9})
    V.__add = function() return "mine" end
    lu.assertEquals(v + 1, "mine")
    V.__mul = function() return "also mine" end
    lu.assertEquals(v * 2, "also mine")
end

TestControl = {}

function TestControl:test_coroutines()
    local squares = coroutine.wrap(function()
        for i = 1, 3 do coroutine.yield(i * i) end
    end)
    lu.assertEquals({squares(), squares(), squares()}, {1, 4, 9})
    local thread = coroutine.create(function(x)
        local A = full(2, 2, x)
        local y = coroutine.yield(sum(A))
        return A * y
    end)
    lu.assertEquals({coroutine.resume(thread, 3)}, {true, 12})
    local _, product = coroutine.resume(thread, eye(2))
    t.equals(product, {{3, 3}, {3, 3}})
    lu.assertEquals(coroutine.status(thread), "dead")
    thread = coroutine.create(function() return ones(2, 2) * ones(3, 3) end)
    local ok, message = coroutine.resume(thread)
    lu.assertIsFalse(ok)
    lu.assertStrContains(message, "inner dimensions")
    lu.assertIsTrue(coroutine.isyieldable(coroutine.create(print)))
end

function TestControl:test_a_yield_across_a_function_called_from_c_is_an_error()
    local thread = coroutine.create(function()
        ones(2):map(function() coroutine.yield() return 1 end)
    end)
    local ok, message = coroutine.resume(thread)
    lu.assertIsFalse(ok)
    lu.assertStrContains(message, "yield")
end

function TestControl:test_close()
    local order = {}
    local function closing(name)
        return setmetatable({}, {__close = function() table.insert(order,
            name) end})
    end
    do
        local a <close> = closing("a")
        local b <close> = closing("b")
        local c <const> = 3
        table.insert(order, c)
    end
    lu.assertEquals(order, {3, "b", "a"})
end

function TestControl:test_errors_are_any_value()
    local mine = {}
    local ok, value = pcall(error, mine)
    lu.assertIsFalse(ok)
    lu.assertIsTrue(rawequal(value, mine))
    lu.assertEquals({pcall(error)}, {false})
    lu.assertEquals(select(2, xpcall(error, function(m) return m .. "!" end, "x")),
        "x!")
    lu.assertEquals(select("#", pcall(function() return nil, nil end)), 3)
end

function TestControl:test_goto_varargs_and_deep_recursion()
    local n = 0
    ::again::
    n = n + 1
    if n < 5 then goto again end
    lu.assertEquals(n, 5)
    local function depth(k) return k == 0 and 0 or 1 + depth(k - 1) end
    lu.assertEquals(depth(10000), 10000)
    raises(function() local function f() return 1 + f() end f() end,
        "stack overflow")
    lu.assertEquals(select("#", table.unpack({}, 1, 100)), 100)
end

function TestControl:test_weak_tables_and_finalizers()
    local weak, finalized = setmetatable({}, {__mode = "v"}), 0
    weak[1] = ones(2)
    setmetatable({}, {__gc = function() finalized = finalized + 1 end})
    collectgarbage()
    collectgarbage()
    lu.assertNil(weak[1])
    lu.assertEquals(finalized, 1)
end

function TestControl:test_the_script_has_its_arguments()
    lu.assertStrContains(arg[0], "test_lua.lua")
    lu.assertEquals(debug.getinfo(1, "S").short_src, arg[0])
end

os.exit(lu.LuaUnit.run("-o", "tap"))
