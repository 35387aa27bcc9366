-- Lua's own messages are known by their words: each line of the list of them
-- comes with Lua that provokes it, from the library that runs here.
local lu = require "luaunit"
local t = require "common"

TestLuaMessages = {}

-- A string of C, which Lua's are like.
local function value_of(text)
    return assert(load("return " .. text))()
end

-- What another lumat says of the code: its error or warning.
local function told(option, code)
    local out <close> = io.popen(string.format("'%s' %s -q -e '%s' 2>&1",
        os.getenv("LUMAT"), option, (code:gsub("'", [['\'']]))))
    return (out:read("a"):gsub("^lumat: ", ""):gsub("^warning: ", ""))
end

local function message_of(code)
    local f = assert(load(code, "=code", "t",
        setmetatable({told = told}, {__index = _G})))
    local ok, first, second = pcall(f)
    return ok and second or first
end

function TestLuaMessages:test_each_is_said()
    local count = 0
    for line in io.lines(t.root .. "lua/parse/lua_messages.def") do
        if line:find("^SAYS") then
            local name, words, code =
                line:match('^SAYS%((%u[%u_]*), (".*"), (".*")%)$')
            lu.assertNotNil(name, line)
            words, code = value_of(words), value_of(code)
            local message = message_of(code)
            local bare = words:gsub("^%^", ""):gsub("%$$", "")
            local at, last = message:find(bare, 1, true)
            lu.assertNotNil(at, name .. ": " .. message)
            if words:find("^%^") then lu.assertEquals(at, 1, message) end
            if words:find("%$$") then
                lu.assertEquals(last, #message, message)
            end
            count = count + 1
        end
    end
    lu.assertTrue(count > 20)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
