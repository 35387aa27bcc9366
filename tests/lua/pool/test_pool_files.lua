-- Distributed matrices in files: each process reads and writes its own blocks,
-- with the bits of save and load; what is refused leaves nothing behind.
local lu = require "luaunit"
local t = require "common"
local pools = require "pool.pools"
local same = pools.same

TestPoolFiles = {}

local content, write = t.content, t.write
local folder = t.scratch ""
os.execute("mkdir " .. folder)
local path = folder .. "/A.npy"

-- A file as NumPy writes it, of elements that string.pack takes.
local function array(kind, shape, is_fortran, form, elements)
    local head = ("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }"):format(
        kind, is_fortran and "True" or "False", shape)
    local parts = {"\x93NUMPY\1\0" .. ("<s2"):pack(head)}
    for i, x in ipairs(elements) do parts[i + 1] = form:pack(x) end
    return table.concat(parts)
end

local function counted(n)
    local list = {}
    for i = 1, n do list[i] = i % 100 end
    return list
end

local function names()
    local list = {}
    for name in io.popen("ls -A " .. folder):lines() do list[#list + 1] = name end
    return table.concat(list, " ")
end

local function each_grid(name, f) pools.each_grid(TestPoolFiles, name, f) end

each_grid("there_and_back", function(what)
    for _, dtype in ipairs(pools.types) do
        for _, shape in ipairs{{0, 5}, {1, 1}, {5, 37}, {200, 37}} do
            local A = pools.whole(shape[1], shape[2], dtype, 1)
            save(A, path)
            local wanted = content(path)
            local D = dload(path)
            same(D, A, what)
            same(dload(path, {block = 5}), A, what)
            save(D, path)
            lu.assertTrue(content(path) == wanted, what)
            D.T:save(path)
            lu.assertTrue(load(path) == A.T, what)
        end
    end
    lu.assertEquals(names(), "A.npy")
end)

-- Other types, the first index fastest, the other order of bytes.
each_grid("kinds", function(what)
    for _, kind in ipairs{{"<i4", "<i4"}, {">i4", ">i4"}, {">f8", ">d"},
        {"<u2", "<I2"}, {"|b1", "B"}, {"<i8", "<i8"}} do
        for _, is_fortran in ipairs{false, true} do
            local values = counted(11 * 7)
            if kind[1] == "|b1" then
                for i = 1, #values do values[i] = values[i] % 2 end
            end
            write(path, array(kind[1], "11, 7", is_fortran, kind[2], values))
            local A = load(path)
            if A.dtype == "bool" then A = A:f32() end
            same(dload(path), A:clone(), what .. kind[1])
            same(dload(path, {dtype = "c64"}), A:c64(), what .. kind[1])
        end
    end
    write(path, array("<f8", "9,", false, "<d", counted(9)))
    same(dload(path), load(path):col():clone(), what)
    os.remove(path)
end)

function TestPoolFiles.test_refused()
    pools.start(2, 2, 3)
    local good = array("<f8", "11, 7", false, "<d", counted(77))
    for text, bytes in pairs{
        ["is cut off"] = good:sub(1, -2),
        ["is not a NumPy file"] = "1,2,3\n",
        ["holds strings"] = array("|S1", "2, 1", false, "c1", {"a", "b"}),
        ["has 3 dimensions"] = array("<f8", "1, 1, 1", false, "<d", {1}),
        ["[2, 3] is 9007199254740993, beyond 2^53"] = array("<i8", "2, 3",
            false, "<i8", {1, 2, 3, 4, 5, 2 ^ 53 | 1}),
    } do
        write(path, bytes)
        lu.assertErrorMsgContains(text, dload, path)
    end
    lu.assertErrorMsgContains("there is no file", dload, folder .. "/none.npy")
    lu.assertErrorMsgMatches(".*expected.*", dload)
    -- a process has other eyes than the prompt
    write(path, good)
    local D = drand(5)
    lu.assertErrorMsgContains("No such file", D.save, D, folder .. "/no/A.npy")
    os.execute("mkdir " .. folder .. "/B.npy")
    lu.assertErrorMsgContains("it is a directory", D.save, D, folder .. "/B.npy")
    os.execute("rmdir " .. folder .. "/B.npy")
    lu.assertErrorMsgContains("endings", D.save, D, folder .. "/A.strange")
    lu.assertErrorMsgContains("a .npy file takes no options", D.save, D, path,
        {delimiter = ";"})
    -- the caller's line is told, where the prompt's save stands between, too
    lu.assertErrorMsgMatches(".*test_pool_files%.lua:%d+: save: .*No such file.*",
        function() save(D, folder .. "/no/A.npy") end)
    lu.assertTrue(content(path) == good)
    lu.assertEquals(names(), "A.npy")
    os.remove(path)
end

-- Other kinds of files have what is gathered.
function TestPoolFiles.test_other_files()
    pools.start(1, 2, 3)
    local A = pools.whole(9, 4, "f64", 1)
    save(spread(A), folder .. "/A.csv")
    lu.assertTrue(load(folder .. "/A.csv"):f64() == A)
    os.remove(folder .. "/A.csv")
end

-- A process that is stopped in the middle leaves the file as it was.
function TestPoolFiles.test_killed()
    os.execute("rm -f " .. folder .. "/*")
    pools.start(1, 2, 3)
    local D = drand(300)
    write(path, "before")
    os.execute("kill -9 " .. pools.pids()[1])
    lu.assertError(D.save, D, path)
    lu.assertEquals(content(path), "before")
    lu.assertEquals(names(), "A.npy")
end

local code = lu.LuaUnit.run("-o", "tap")
os.execute("rm -rf " .. folder)
os.exit(code)
