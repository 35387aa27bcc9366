-- What messages say: what to write in place of what other languages write, and
-- never that a matrix is a userdata.
local lu = require "luaunit"
require "common"

TestWords = {}

local A, S = mat{{1, 2}, {3, 4}}, sparse(mat{{1, 2}, {0, 4}})
local file = io.stdout

-- What lumat prints where the code ends by an error.
local function said(code)
    local name = os.tmpname()
    do
        local f <close> = assert(io.open(name, "w"))
        f:write("A = mat{{1, 2}, {3, 4}} v = vec{1, 2} S = sparse(A)\n", code)
    end
    local out <close> = io.popen(string.format("'%s' -q '%s' 2>&1",
        os.getenv("LUMAT"), name))
    local text = out:read("a")
    os.remove(name)
    return text
end

function TestWords:test_properties_that_are_called()
    for _, name in ipairs{"A", "v", "S"} do
        for _, property in ipairs{"T", "rows", "cols", "shape", "dtype",
            "device", "ndim", "bytes", name == "S" and "nnz" or "rows"} do
            for _, sign in ipairs{".", ":"} do
                local code = name .. sign .. property .. "()"
                lu.assertStrContains(said("print(" .. code .. ")"),
                    "write A." .. property .. ", without ()", code)
            end
        end
    end
    lu.assertStrContains(said("print(A:size())"),
        "write A.size for the elements, A.shape or #A, without ()")
    lu.assertStrContains(said("print(A.size())"), "A.shape or #A, without ()")
    lu.assertStrContains(said("local t = {rows = f} t.rows()"), "nil value")
    lu.assertNotStrContains(said("local t = {rows = f} t.rows()"), "matrix")
    lu.assertNotStrContains(said("local t = {row = 3} t.row()"), "matrix")
    lu.assertEquals(A.T(1, 2), 3)
    lu.assertEquals(A.T(2):totable(), {2, 4})
end

function TestWords:test_a_property_of_an_expression()
    local function f() return A.T() end
    lu.assertErrorMsgContains("write A.T, without ()", f)
    lu.assertErrorMsgContains("write A.T, without ()",
        function() return A:f64():T() end)
    lu.assertErrorMsgContains("write A.T, without ()",
        function() return (S).T() end)
    lu.assertErrorMsgContains("3 indices given", function() return A.T(1, 2, 3) end)
end

function TestWords:test_members_of_other_languages()
    local expected = {length = "#A", numel = "A.size", len = "#A",
        transpose = "A.T", nrow = "A.rows", ncols = "A.cols", height = "A.rows",
        copy = "A:clone()", astype = "A:f64()", tolist = "A:totable()",
        apply = "A:map(f)", inverse = "inv(A)", append = "hcat"}
    for name, text in pairs(expected) do
        lu.assertErrorMsgContains("a matrix has no '" .. name ..
            "': did you mean ", function() return A[name] end)
        lu.assertErrorMsgContains(text, function() return A[name](A) end)
    end
    lu.assertErrorMsgContains("a sparse matrix has no 'size': did you mean " ..
        "A.shape?", function() return S:size() end)
    lu.assertErrorMsgContains("did you mean A.T?",
        function() return S:transpose() end)
end

-- Of these a wrong argument may be a right one, with effects that last.
local changes_state = {}
for name in ("view last free watch tracing checking profile settings seed " ..
    "transcript"):gmatch("%a+") do
    changes_state[name] = true
end

-- Every function and operator with a value that it cannot use.
function TestWords:test_no_message_says_userdata()
    local operators = {"+", "-", "*", "/", "//", "%", "^", "..", "<", "<=",
        "&", "|", "~", "<<", ">>"}
    local values = {A = A, S = S, f = file, s = "x", n = 2, d = 1.5, t = {},
        no = print, yes = true, nothing = nil}
    local function check(code)
        local f = assert(load("local A, S, f, s, n, d, t, no, yes = ... " ..
            code, code))
        local ok, message = pcall(f, A:clone(), S, file, "x", 2, 1.5, {}, print,
            true)
        if not ok then
            lu.assertNotStrContains(tostring(message), "userdata", code)
        end
    end
    for _, name in ipairs{"A", "S", "f"} do
        for _, sign in ipairs(operators) do
            for other in pairs(values) do
                check(("return %s %s %s"):format(name, sign, other))
                check(("return %s %s %s"):format(other, sign, name))
            end
        end
        for _, code in ipairs{"return -%s", "return #%s", "return ~%s",
            "return %s()", "return %s.x.y", "return %s[A]", "return %s[f]",
            "%s[1] = f", "%s[{1, 1}] = S", "%s[{1, 1}] = A", "%s.x = 1",
            "return A[{%s, 1}]", "return A[{{%s, 1}}]", "return A(%s)",
            "return table.concat{1, %s}", "return mat{%s}", "return mat{{%s}}",
            "return vec{%s}", "return A:map(function() return %s end)",
            "return fromfn(1, 1, function() return %s end)",
            "return plot(function() return %s end, 0, 1)",
            "for i = 1, %s do end", "for i in %s do end",
            "return string.rep('x', %s)", "return math.floor(%s)",
            "return tostring(setmetatable({}, {__tostring = " ..
            "function() return %s end}))", "table.sort{1, %s}",
            "return rand(2, {dtype = %s})", "return close(1, 2, %s)",
            "return matmul(A, A, {kernel = %s})", "return kernels(A, %s)",
            "return matmul(A, A, {out = %s})", "return cost(%s)",
            "return experiment{name = %s}", "return how(%s)"} do
            check((code:gsub("%%s", name)))
        end
    end
    for name, f in pairs(require "lumat") do
        for _, value in ipairs{A, S, file} do
            for place = 1, 3 do
                local arguments = {A:clone(), 1, 1}
                arguments[place] = value
                if not changes_state[name] then
                    local ok, message = pcall(f, table.unpack(arguments, 1,
                        place))
                    lu.assertNotStrContains(ok and "" or tostring(message),
                        "userdata", name)
                end
            end
        end
    end
    lu.assertStrContains(said("print(('x'):gsub('x', function() return A end))"),
        "a matrix")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
