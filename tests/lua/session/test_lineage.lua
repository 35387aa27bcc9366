-- how and made_by: sessions typed at a prompt that is no terminal.
local lu = require "luaunit"
local lumat = assert(os.getenv("LUMAT"), "LUMAT must name the program")
local device = os.getenv("LUMAT_TEST_DEVICE") or "cpu"

-- What lumat prints when the lines are typed; prompts are taken away.
local function session(...)
    local name = os.tmpname()
    local file = assert(io.open(name, "w"))
    file:write(table.concat({...}, "\n"), "\n")
    file:close()
    local pipe = assert(io.popen(("'%s' --device %s --no-init -q -i <'%s' 2>&1")
        :format(lumat, device, name)))
    local text = pipe:read("a"):gsub("lumat[^ ]*> ", "")
    pipe:close()
    os.remove(name)
    return text
end

-- The entries of :how, without their remarks.
local function entries(text)
    local list = {}
    for line in text:gmatch("[^\n]+") do
        local entry = line:match("^(.-) *%-%- entry %d+, ") or
            line:match("^(.-) *%-%- :%a.-, entry %d+, ") -- by a command
        if entry then list[#list + 1] = entry end
    end
    return list
end

local function behind(name, ...)
    local lines = {...}
    lines[#lines + 1] = ":how " .. name
    return entries(session(table.unpack(lines)))
end

TestHow = {}

function TestHow:test_only_what_it_takes()
    lu.assertEquals(behind("C", "A = ones(2, 2)", "B = ones(2, 2)", "x = 5",
        "C = A * 2", "D = B * C"), {"A = ones(2, 2)", "C = A * 2"})
end

function TestHow:test_the_last_value_counts()
    lu.assertEquals(behind("C", "A = 1", "C = A", "A = 2", "C = A + 3"),
        {"A = 2", "C = A + 3"})
    lu.assertEquals(behind("C", "C = 1", "C = C + 1", "C = C * 2"),
        {"C = 1", "C = C + 1", "C = C * 2"})
end

function TestHow:test_changes_in_place()
    local made = "A = zeros(3, 3);"
    for _, change in ipairs{"A[{1, 1}] = 5", "A[2] = 1", "A:add_(1);",
        "add(A, 1, {out = A});", "A['1, :'] = 2", "A.T[1] = 3",
        "A[A:lt(1)] = 4"} do
        lu.assertEquals(behind("A", made, "B = A + 1;", change),
            {made, change}, change)
        lu.assertEquals(behind("B", made, "B = A + 1;", change),
            {made, "B = A + 1;"}, change)
    end
end

function TestHow:test_views_change_with_what_they_show()
    lu.assertEquals(behind("row", "A = zeros(3, 3);", "row = A[2];",
        "A[{2, 1}] = 5", "other = 1"),
        {"A = zeros(3, 3);", "row = A[2];", "A[{2, 1}] = 5"})
end

function TestHow:test_functions_and_what_they_read()
    lu.assertEquals(behind("y", "k = 3", "function f(x) return g(x) * k end",
        "function g(x) return x + 1 end", "unused = 1", "y = f(2)"),
        {"k = 3", "function f(x) return g(x) * k end",
            "function g(x) return x + 1 end", "y = f(2)"})
end

function TestHow:test_a_function_that_changes_its_argument()
    lu.assertEquals(behind("A", "A = zeros(2, 2);",
        "function fill(M) M:add_(7) end", "fill(A)"),
        {"A = zeros(2, 2);", "function fill(M) M:add_(7) end", "fill(A)"})
end

function TestHow:test_tables()
    lu.assertEquals(behind("t", "t = {a = {}}", "x = 2", "t.a.b = x", "y = 3",
        "table.insert(t, 1)"),
        {"t = {a = {}}", "x = 2", "t.a.b = x", "table.insert(t, 1)"})
end

-- Names in strings, comments, fields and keys are no reads.
function TestHow:test_names_that_only_look_like_it()
    lu.assertEquals(behind("C", "a = 1", "b = 2", "c = 3", "d = 4", "e = 5",
        "t = {c = 9}", "C = 'a' .. [[ b ]] .. t.c .. #{d = 1} -- e"),
        {"t = {c = 9}", "C = 'a' .. [[ b ]] .. t.c .. #{d = 1} -- e"})
end

function TestHow:test_locals_and_several_targets()
    lu.assertEquals(behind("b", "local s = 2", "a, b = s, s * 2"),
        {"local s = 2", "a, b = s, s * 2"})
end

function TestHow:test_ans()
    lu.assertEquals(behind("x", "2 + 3", "4 + 5", "x = ans"),
        {"ans = 4 + 5", "x = ans"})
end

function TestHow:test_an_entry_that_failed_half_way()
    local text = session("A = 1; error('no')", "B = A", ":how B")
    lu.assertStrContains(text, "ended in an error")
    lu.assertStrContains(text, "pcall(function()\nA = 1; error('no')\nend)")
end

function TestHow:test_what_no_entry_made()
    lu.assertStrContains(session(":how nobody"), "no entry made nobody")
    lu.assertStrContains(session("C = arg", ":how C"),
        "-- there before the first entry: arg\nC = arg")
end

function TestHow:test_commands()
    lu.assertEquals(behind("A", ":time A = 3", ":device cpu", "B = ones(1)"),
        {"A = 3"})
    lu.assertEquals(behind("B", "B = 1", ":device cpu", "B = ones(1)")[1],
        device == "cpu" and "B = ones(1)" or "device(\"cpu\")")
end

-- The script makes the same values, random ones too.
function TestHow:test_the_file_runs()
    local name = os.tmpname()
    session("junk = rand(3)", "A = rand(4, 4)", "junk = rand(5)",
        "B = randn(4, 4)", "local s = 3", "for i = 1, 3 do", "  A[i] = i * s",
        "end", "A:sum()", "C = A * B + ans", ":how C > " .. name,
        "save(C, '" .. name .. ".npy')")
    local pipe = assert(io.popen(("'%s' --device %s --no-init -e 'dofile(\"%s\")"
        .. " print(C == load \"%s.npy\", junk)' 2>&1"):format(lumat, device,
        name, name)))
    lu.assertEquals(pipe:read("a"), "true\tnil\n")
    pipe:close()
    os.remove(name)
    os.remove(name .. ".npy")
end

function TestHow:test_old_entries_are_forgotten()
    local lines = {"first = 1"}
    for i = 1, 5100 do lines[#lines + 1] = "x = " .. i .. ";" end
    lines[#lines + 1] = ":how first"
    lu.assertStrContains(session(table.unpack(lines)),
        "no entry made first; those up to 101 are no longer known")
end

-- Nothing that was noted keeps a matrix alive.
function TestHow:test_nothing_is_kept_alive()
    local text = session("A = zeros(1000, 1000);", "A = nil", "ans = nil",
        "collectgarbage(); collectgarbage()", "memory().live < 1e6")
    lu.assertStrContains(text, "true\n")
end

TestMadeBy = {}

function TestMadeBy:test_who_made_it()
    local text = session("A = ones(2, 2)", "made_by(A)", "B = A.T",
        "(made_by(B))", "A[{1, 1}] = 3", "select(2, made_by(B))")
    lu.assertStrContains(text, '"A = ones(2, 2)  entry 1, 0 s ago, ')
    lu.assertStrContains(text, '"A[{1, 1}] = 3  entry 5, 0 s ago, ')
end

function TestMadeBy:test_long_entries_are_cut()
    local text = session("A = ones(2, 2); x = '" .. ("é"):rep(60) .. "'",
        "made_by(A)")
    lu.assertStrContains(text, "é …  entry 1")
end

function TestMadeBy:test_what_it_refuses()
    lu.assertNil(made_by(ones(2)))
    lu.assertErrorMsgContains("made_by: A is 3, expected a matrix", made_by, 3)
    lu.assertErrorMsgContains("how: file is 2, expected a file's name", how, "x", 2)
    lu.assertErrorMsgContains("no variable holds a matrix", how, ones(2))
end

os.exit(lu.LuaUnit.run("-o", "tap"))
