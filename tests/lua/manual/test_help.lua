-- The help: every operation and every function has one, and every example in
-- it runs and gives what it says.
local lu = require "luaunit"
local t = require "common"

local registry = debug.getregistry()
_G.help("settings") -- loads the manual
local help, library = registry["lumat.help"], require "lumat"

local function names(list)
    local sorted = {}
    for name in pairs(list) do sorted[#sorted + 1] = name end
    table.sort(sorted)
    return sorted
end

TestComplete = {}

function TestComplete:test_every_function_has_help()
    for _, name in ipairs(names(library)) do
        lu.assertNotNil(help[name], name .. " has no help")
    end
end

function TestComplete:test_every_help_is_of_a_function()
    for _, name in ipairs(names(help)) do
        lu.assertNotNil(library[name], "there is no " .. name)
    end
end

function TestComplete:test_every_entry_is_whole()
    for _, name in ipairs(names(help)) do
        for _, field in ipairs{"usage", "help", "example", "result"} do
            lu.assertEquals(type(help[name][field]), "string", name .. " " .. field)
            lu.assertIsTrue(#help[name][field] > 0, name .. " " .. field)
        end
        lu.assertStrContains(help[name].usage, name)
    end
end

function TestComplete:test_every_method_is_a_function_or_its_in_place_form()
    for _, name in ipairs(names(registry["lumat.methods"])) do
        lu.assertNotNil(library[name] or library[name:match("^(.*)_$")], name)
    end
end

-- Does a form of the usage have a matrix first? They are called A, B, C, v, x
-- and y; S is a sparse one, which has methods of its own.
local function takes_a_matrix(name, usage)
    if usage:find("A:" .. name .. "(", 1, true) then return true end
    for first in usage:gmatch("%f[%w_]" .. name .. "%(%[?(%a)[%s,%])]") do
        if first:find("[ABCvxy]") then return true end
    end
    return usage:find(name .. "(i, j, v", 1, true) ~= nil
end

function TestComplete:test_what_takes_a_matrix_first_is_a_method_and_nothing_else()
    for _, name in ipairs(names(help)) do
        lu.assertEquals(registry["lumat.methods"][name] ~= nil,
            takes_a_matrix(name, help[name].usage), name)
    end
    for _, method in ipairs{"full", "f32", "f64", "to", "free"} do
        lu.assertEquals(type(sparse(eye(2))[method]), "function")
    end
    local said = "Every function that takes a matrix first is also a method"
    local text = registry["lumat.manual"].whole("text",
        {width = 80, height = 24, ascii = false})
    local readme = t.content(t.root .. "README.md")
    for _, all in ipairs{text, readme} do
        lu.assertStrContains((all:gsub("%s+", " ")), said)
    end
end

-- A library function that hides another's name would leave one without help.
function TestComplete:test_every_method_is_the_function_of_its_name()
    local A = mat{{4, 1}, {1, 3}}
    for _, name in ipairs{"trace", "sum", "det", "norm", "clone", "sort"} do
        lu.assertEquals(tostring(A[name](A)), tostring(library[name](A)), name)
    end
end

TestExamples = {}

-- value is what the Lua expression `text` stands for: a table for a matrix.
local function gives(value, text)
    local expected = assert(load("return " .. text))()
    if type(expected) == "table" then
        expected = type(expected[1]) == "table" and mat(expected) or vec(expected)
        lu.assertEquals(type(value), "userdata")
        lu.assertEquals(value.shape, expected.shape)
        lu.assertEquals(value.dtype == "bool", expected.dtype == "bool")
        lu.assertIsTrue(close(value, expected), "gives " .. tostring(value))
    elseif type(expected) == "number" then
        lu.assertEquals(type(value), "number")
        lu.assertIsTrue(close(value, expected), "gives " .. tostring(value))
    else
        lu.assertEquals(value, expected)
    end
end

-- One test for each: TestExamples.test_matmul and so on.
for name, entry in pairs(help) do
    TestExamples["test_" .. name] = function()
        local example = assert(load("return " .. entry.example))
        local ok, problem = pcall(function() gives(example(), entry.result) end)
        device(t.device)
        if not ok then
            lu.fail(entry.example .. " should give " .. entry.result .. ": " ..
                (type(problem) == "table" and problem.msg or tostring(problem)))
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
