-- The LuaUnit that this machine has, whose failures are told on standard error as
-- well: prove shows that alone of a test.
local name, own = ...
local others = {}
for template in package.path:gmatch "[^;]+" do
    if template:gsub("?", name) ~= own then others[#others + 1] = template end
end
local luaunit = dofile(assert(package.searchpath(name, table.concat(others, ";"))))

local runner = setmetatable({}, {__index = luaunit.LuaUnit})
runner:setOutputType "tap"
local tap = runner.outputType
local told = tap.updateStatus
function tap:updateStatus(node)
    told(self, node)
    if not node:isSkipped() then
        io.stderr:write("#   ", node.testName, ": ", node.msg, "\n")
    end
end
return luaunit
