-- load and save: CSV and NPY, and what they say about bad files.
local lu = require "luaunit"
local common = require "common"
local nan, inf = 0 / 0, math.huge
local file, folder, remove_files = common.new_files()

-- Tables compared by value, NaN equal to NaN, -0 unlike 0.
local function same(a, b)
    if type(a) == "boolean" then
        return a == b
    elseif type(a) ~= "table" then
        return a ~= a and b ~= b or a == b and 1 / a == 1 / b
    end
    if #a ~= #b then
        return false
    end
    for i = 1, #a do
        if not same(a[i], b[i]) then
            return false
        end
    end
    return true
end

local function loads(text, expected, options)
    local A = load(file(".csv", text), options)
    lu.assertTrue(same(A:totable(), expected), tostring(A))
    return A
end

local function fails(text, message, options, ending)
    local ok, said = pcall(load, file(ending or ".csv", text), options)
    lu.assertFalse(ok, message)
    lu.assertStrContains(said, message)
end

TestCsv = {}

function TestCsv:test_plain()
    local A = loads("1,2\n3,4\n", {{1, 2}, {3, 4}})
    lu.assertEquals(A.dtype, "f32")
    lu.assertEquals(A.shape, {2, 2})
end

function TestCsv:test_ends_of_lines()
    loads("1,2\r\n3,4\r\n", {{1, 2}, {3, 4}})
    loads("1,2\n3,4", {{1, 2}, {3, 4}})
    loads("\n1,2\n\n3,4\n\n\n", {{1, 2}, {3, 4}})
    loads("\xEF\xBB\xBF1,2\n", {{1, 2}})
    loads("1,2\r", {{1, 2}})
    local why = "lines end with a carriage return alone"
    fails("a,b\r1,2\r3,4\r", ":1: " .. why)
    fails("1,2\r3,4", why, {quote = false})
    fails("a,b\r" .. ("1,2\r"):rep(1000000), why)
    lu.assertEquals(load(file(".csv", '"a\rb",1')).column1:totable(), {"a\rb"})
end

function TestCsv:test_delimiters()
    loads("1;2\n3;4\n", {{1, 2}, {3, 4}})
    loads("1\t2\n3\t4\n", {{1, 2}, {3, 4}})
    loads("  1   2 \n3 4\n", {{1, 2}, {3, 4}})
    loads(" 1 , 2\n3,\t4 \n", {{1, 2}, {3, 4}})
    loads("1|2\n3|4\n", {{1, 2}, {3, 4}}, {delimiter = "|"})
    loads("a|b\n1|2\n", {{1, 2}})
    loads("1,5|3\n4,5|6\n", {{1.5, 3}, {4.5, 6}}, {decimal = ","})
    loads("a b|c\n1|2\n", {{1, 2}})
    loads("1 | 2\n3 | 4\n", {{1, 2}, {3, 4}})
    -- bars that are part of texts, and of drawn tables
    lu.assertEquals(load(file(".csv", "a|b 1.5 2\nc|d 2.5 3\n")).column2:totable(),
        {1.5, 2.5})
    lu.assertEquals(tostring(load(file(".csv", "|A|B|\n|1|2|\n"))):match "|A|B|",
        "|A|B|")
    -- quoted texts that end in what divides elsewhere
    lu.assertEquals(load(file(".csv", 'id name v\n1 "Smith," 2\n3 "a b;" 4\n')).v
        :totable(), {2, 4})
    loads("7\n8\n", {{7}, {8}})
end

function TestCsv:test_missing()
    loads("1,,3\n,nan,NA\n", {{1, nan, 3}, {nan, nan, nan}})
    loads("inf,-Inf\n+INFINITY,null\n", {{inf, -inf}, {inf, nan}})
    loads('"",1\n', {{nan, 1}})
end

function TestCsv:test_numbers()
    loads("1e309,-1e309,1e-400\n.5,5.,+3\n-0,1E2,0.1\n",
        {{inf, -inf, 0}, {0.5, 5, 3}, {-0.0, 100, 0.1}}, {dtype = "f64"})
    loads("4.9e-324,1.7976931348623157e308\n",
        {{4.9e-324, 1.7976931348623157e308}}, {dtype = "f64"})
    loads("0,2,0.5\n", {{false, true, true}}, {dtype = "bool"})
end

function TestCsv:test_quotes()
    loads('"1","2"\n "3" ,4\n', {{1, 2}, {3, 4}})
    local A, names = load(file(".csv", '"a ""b""","c,d","e\nf"\n1,2,3\n'))
    lu.assertEquals(names, {'a "b"', "c,d", "e\nf"})
    lu.assertEquals(A.shape, {1, 3})
end

function TestCsv:test_header()
    local A, names = load(file(".csv", "x, y \n1,2\n"))
    lu.assertEquals(names, {"x", "y"})
    lu.assertEquals(A.shape, {1, 2})
    A, names = load(file(".csv", "1,2\n3,4\n"))
    lu.assertNil(names)
    A, names = load(file(".csv", "1,2\n3,4\n"), {header = true})
    lu.assertEquals(names, {"1", "2"})
    lu.assertEquals(A.rows, 1)
    A, names = load(file(".csv", "a,b\n"))
    lu.assertEquals(A.shape, {0, 2})
    lu.assertEquals(names, {"a", "b"})
    fails("a,b\n1,2\n", '1: column 1: "a" is not a number (a matrix has',
        {header = false, as = "matrix"})
    fails("1,2\n", "header", {header = 3})
end

function TestCsv:test_bad_files()
    fails("1,2\n3\n", ".csv:2: 1 column, but 2 expected")
    fails("1,2\n3,4,5\n", ".csv:2: 3 columns, but 2 expected")
    fails('1,2\n\n3,"4x"\n', '.csv:3: column 2: "4x" is not a number')
    fails("1;2\n1,5;2\n", "decimals take a point")
    fails("x,\"a\nb\"\n1,2\n3,y\n", ".csv:4: column 2")
    fails("", "is empty")
    fails(" \n\n", "is empty")
    fails("\xFF\xFE1\0", "UTF-16")
    fails("1,2\n0x10,1\n", '"0x10"')
    fails("1,2\n", "unknown option", {delimitre = ","})
    fails("1,2\n", "delimiter", {delimiter = "1"})
end

-- What is no text, and a quote that does not end, are told with their place.
function TestCsv:test_what_is_no_text()
    fails(("\0"):rep(100000), ".csv:1: column 1: a zero byte: this is no text")
    fails("1,2\n3,\0\n", ".csv:2: column 2: a zero byte")
    fails("a\0b\n1\n", ".csv:1: column 1: a zero byte")
    fails('"' .. ("a"):rep(100000), ".csv:1: column 1: a quote begins here")
    fails('x,"y\n1,2\n', ".csv:1: column 2: a quote begins here")
    fails('1,2\n3,"4\n5,6\n', ".csv:2: column 2: a quote begins here")
    fails('"x\ny","z\n1,2\n', ".csv:2: column 2: a quote begins here")
    fails('"1', ".csv:1: column 1: a quote", {header = false})
    loads('1,2\n"3",4\n', {{1, 2}, {3, 4}})
    lu.assertEquals(select(2, load(file(".csv", '5" wide,b\n1,2\n'))),
        {'5" wide', "b"})
    fails("a" .. (","):rep(1 << 21) .. "\n1\n",
        ".csv:1: it names 2097153 columns")
end

-- Tables are read in pieces: rows and cells across their ends.
function TestCsv:test_many_cells()
    local n = (1 << 19) + 7
    local A = load(file(".csv", (","):rep(n - 1) .. "\n"))
    lu.assertEquals(A.shape, {1, n})
    lu.assertEquals(A:ne(A):sum(), n)
    A = load(file(".csv", ("1,,3\n"):rep(n)), {dtype = "f64"})
    lu.assertEquals(A.shape, {n, 3})
    lu.assertEquals(A:col(1):sum() + A:col(3):sum(), 4 * n)
    lu.assertEquals(A:col(2):ne(A:col(2)):sum(), n)
    A = load(file(".csv", ("0\n\n1\n"):rep(n)), {dtype = "bool"})
    lu.assertEquals(A.shape, {2 * n, 1})
    lu.assertEquals(A:sum(), n)
    A = load(file(".csv", '"x\ny"\n' .. ('"1"\n\n 2\n'):rep(n)))
    lu.assertEquals(A.shape, {2 * n, 1})
    lu.assertEquals(A:sum(), 3 * n)
    fails(("1,2\n"):rep(n) .. "1,2,3,4\n",
        ".csv:" .. n + 1 .. ": 4 columns, but 2 expected")
    fails(("1,2\n"):rep(n) .. "1\n", ".csv:" .. n + 1 .. ": 1 column, but")
    fails(("1,2\n"):rep(n) .. "1,x\n", ".csv:" .. n + 1 .. ': column 2: "x"')
end

function TestCsv:test_where_files_are_not()
    lu.assertErrorMsgContains("there is no file", load,
        folder .. "-none.csv")
    lu.assertErrorMsgContains(".csv .tsv .txt .npy", save, ones(1), "a.xls")
    local name = folder .. "-folder.csv"
    os.execute("mkdir '" .. name .. "'")
    lu.assertErrorMsgContains("it is a directory", load, name)
    lu.assertErrorMsgContains("it is a directory", save, ones(2, 2), name)
    os.execute("rmdir '" .. name .. "'")
    lu.assertErrorMsgContains("No such file", save, ones(2, 2),
        folder .. "/none/a.csv")
    lu.assertErrorMsgContains("zero byte", save, ones(2, 2), "a\0.csv")
end

-- One word that is no Lua is a file's name; the rest is Lua's own load.
function TestCsv:test_what_is_no_data()
    local dir = folder .. "-words"
    os.execute("mkdir -p '" .. dir .. "/inner'")
    for _, name in ipairs{"iris.csv", "two.npz", "a.mat", "b.MTX", "w.lum",
        "plain", "c.dat"} do
        local f <close> = assert(io.open(dir .. "/" .. name, "w"))
        f:write("1,2\n")
    end
    local function says(text, name, ...)
        lu.assertErrorMsgContains(text, load, dir .. "/" .. name, ...)
    end
    says("iris': did you mean iris.csv?", "iris")
    says("iriss.csv': did you mean iris.csv?", "iriss.csv")
    says("iris.npy': did you mean iris.csv?", "iris.npy")
    says("did you mean iris.csv?", "iris", {dtype = "f64"})
    says("there is no file", "nothing")
    says("there is no folder '" .. dir .. "/none'", "none/iris")
    says("two.npz' is no archive, or is cut off", "two.npz")
    says("is cut off in its header", "a.mat")
    says("does not begin with %%MatrixMarket", "b.MTX")
    says("load_session(", "w.lum")
    says("it knows: .csv .tsv .txt .npy .npz .mtx", "plain")
    says("it knows: .csv .tsv .txt .npy .npz .mtx", "c.dat")
    says("is a directory", "inner")
    lu.assertErrorMsgContains("there is no file 'nofile' in ", load, "nofile")
    os.execute("rm -r '" .. dir .. "'")
    for _, text in ipairs{"x =", "a b", "1.000", "x()y", "nofile\n"} do
        local f, message = load(text)
        lu.assertNil(f)
        lu.assertStrContains(message, "[string ")
    end
    lu.assertNil((load("nofile", "chunk")))
    lu.assertNil((load("nofile", nil, "t")))
    lu.assertIsFunction(load("return"))
    lu.assertIsFunction(load(""))
end

function TestCsv:test_save()
    local A = mat({{1, 0.1}, {-0.0, nan}, {inf, 1e300}}, {dtype = "f64"})
    local name = file(".csv")
    save(A, name)
    lu.assertEquals(common.content(name), "1,0.1\n-0,nan\ninf,1e+300\n")
    loads(common.content(name), A:totable(), {dtype = "f64"})
    A:save(name, {header = {"a", 'b "c", d'}, delimiter = ";", digits = 1})
    lu.assertEquals(common.content(name),
        'a;"b ""c"", d"\n1;0.1\n-0;nan\ninf;1e+300\n')
    save(vec{0.1, 3}, name)
    lu.assertEquals(common.content(name), "0.1\n3\n")
    save(vec{1, 3}:gt(2), name)
    lu.assertEquals(common.content(name), "0\n1\n")
    name = file(".tsv")
    save(A.T, name)
    lu.assertEquals(common.content(name), "1\t-0\tinf\n0.1\tnan\t1e+300\n")
    name = file(".txt")
    save(ones(2, 2), name)
    lu.assertEquals(common.content(name), "1 1\n1 1\n")
end

function TestCsv:test_bad_saves()
    local name = file(".csv", "kept")
    lu.assertErrorMsgContains("2 names for 1 columns", save, ones(2, 1), name,
        {header = {"a", "b"}})
    lu.assertErrorMsgContains("empty", save, zeros(0, 3), name)
    lu.assertErrorMsgContains("1 to 17", save, ones(1, 1), name, {digits = 18})
    lu.assertErrorMsgContains("matrix", save, 3, name)
    lu.assertEquals(common.content(name), "kept")
end

function TestCsv:test_round_trip()
    seed(11)
    for _, dtype in ipairs{"f32", "f64"} do
        local A = randn(300, 7, {dtype = dtype}):exp()
        local name = file(".csv")
        save(A, name)
        lu.assertTrue(load(name, {dtype = dtype}) == A)
    end
end

TestNpy = {}

-- A file as numpy.save writes it.
local function npy(descr, order, shape, elements, version)
    local head = ("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }")
        :format(descr, order and "True" or "False", shape)
    local prefix = version and version > 1 and 12 or 10
    head = head .. (" "):rep(-(#head + prefix + 1) % 64) .. "\n"
    return "\x93NUMPY" .. string.char(version or 1, 0)
        .. string.pack(prefix == 12 and "<I4" or "<I2", #head) .. head
        .. elements
end

local function npy_gives(bytes, expected, dtype, options)
    local A = load(file(".npy", bytes), options)
    lu.assertEquals(A.dtype, dtype)
    lu.assertTrue(same(A:totable(), expected), tostring(A))
end

function TestNpy:test_every_type()
    local types = {
        b1 = {"B", "bool", {true, false}, 1, 0},
        i1 = {"b", "f32", {-128, 127}}, u1 = {"B", "f32", {0, 255}},
        i2 = {"h", "f32", {-32768, 5}}, u2 = {"H", "f32", {1, 65535}},
        i4 = {"i4", "f64", {-2147483648, 7}},
        u4 = {"I4", "f64", {4294967295, 1}},
        i8 = {"i8", "f64", {-9007199254740992, 1}},
        u8 = {"I8", "f64", {9007199254740992, 2}},
        f4 = {"f", "f32", {0.5, -inf}}, f8 = {"d", "f64", {0.1, nan}}}
    for name, t in pairs(types) do
        for _, order in ipairs{"<", ">"} do
            local bytes = ""
            for i, x in ipairs(t[3]) do
                bytes = bytes .. string.pack(order .. t[1], t[3 + i] or x)
            end
            npy_gives(npy(order .. name, false, "(2,)", bytes), t[3], t[2])
        end
    end
end

function TestNpy:test_half()
    local bits = {0x0000, 0x8000, 0x3C00, 0xC000, 0x7BFF, 0x0001, 0x0400,
        0x7C00, 0xFC00, 0x7E00}
    local values = {0, -0.0, 1, -2, 65504, 2.0 ^ -24, 2.0 ^ -14, inf, -inf,
        nan}
    local bytes = ""
    for _, b in ipairs(bits) do
        bytes = bytes .. string.pack("<I2", b)
    end
    npy_gives(npy("<f2", false, "(10,)", bytes), values, "f32")
end

function TestNpy:test_orders_and_versions()
    local bytes = string.pack("<dddddd", 1, 2, 3, 4, 5, 6)
    local rows, cols = {{1, 2, 3}, {4, 5, 6}}, {{1, 3, 5}, {2, 4, 6}}
    for version = 1, 3 do
        npy_gives(npy("<f8", false, "(2, 3)", bytes, version), rows, "f64")
        npy_gives(npy("<f8", true, "(2, 3)", bytes, version), cols, "f64")
    end
    npy_gives(npy("<f8", false, "(2, 3)", bytes), rows, "f32",
        {dtype = "f32"})
    npy_gives(npy("<f8", true, "(3L, 2L)", bytes), {{1, 4}, {2, 5}, {3, 6}},
        "f64")
    npy_gives(npy("<f8", false, "()", string.pack("<d", 9)), {9}, "f64")
    lu.assertEquals(load(file(".npy", npy("<f4", false, "(0, 5)", ""))).shape,
        {0, 5})
end

function TestNpy:test_save()
    local name = file(".npy")
    save(mat{{1, 2}, {3, 4}}, name)
    lu.assertEquals(common.content(name), npy("<f4", false, "(2, 2)",
        string.pack("<ffff", 1, 2, 3, 4)))
    save(mat({{1, 2}, {3, 4}}, {dtype = "f64"}).T, name)
    lu.assertEquals(common.content(name), npy("<f8", false, "(2, 2)",
        string.pack("<dddd", 1, 3, 2, 4)))
    save(vec{1, 0, 5}:gt(0), name)
    lu.assertEquals(common.content(name), npy("|b1", false, "(3,)", "\1\0\1"))
    save(zeros(0, 3), name)
    lu.assertEquals(load(name).shape, {0, 3})
    lu.assertErrorMsgContains("no options", save, ones(2), name, {digits = 3})
end

function TestNpy:test_large_round_trip()
    local A, name = randn(1500, 1100), file(".npy")
    save(A.T, name)
    lu.assertTrue(load(name) == A.T)
end

-- One matrix for each first index, in both orders.
function TestNpy:test_three_dimensions()
    local bytes = ""
    for i = 1, 24 do
        bytes = bytes .. string.pack("<i2", i)
    end
    local pages = load(file(".npy", npy("<i2", false, "(2, 3, 4)", bytes)))
    lu.assertEquals(#pages, 2)
    lu.assertEquals(pages[2]:totable(),
        {{13, 14, 15, 16}, {17, 18, 19, 20}, {21, 22, 23, 24}})
    pages = load(file(".npy", npy("<i2", true, "(2, 3, 4)", bytes)))
    lu.assertEquals(pages[1]:totable(),
        {{1, 7, 13, 19}, {3, 9, 15, 21}, {5, 11, 17, 23}})
    lu.assertEquals(pages[2]:totable(),
        {{2, 8, 14, 20}, {4, 10, 16, 22}, {6, 12, 18, 24}})
    local name = file(".npy")
    save(pages, name)
    lu.assertTrue(load(name)[2] == pages[2])
    lu.assertEquals(load(file(".npy", npy("<i2", false, "(0, 3, 4)", ""))), {})
    local function refuses(value, message)
        lu.assertErrorMsgContains(message, save, value, name)
    end
    refuses({}, "the list is empty")
    refuses(frame{a = {1}}, 'not a frame: save(T, "f.csv") writes it')
    refuses(qr(eye(2)), "not an object of several: write its parts")
    lu.assertErrorMsgContains("not a frame: save(T", save, frame{a = {1}},
        file(".npz"))
    refuses({ones(2, 2), 3}, "element 2 of the list is 3")
    refuses({ones(2, 2), ones(2, 3)}, "element 2 of the list is 2x3")
    refuses({ones(2, 2), ones(2, 2):gt(0)}, "element 2 of the list is bool")
    refuses(sparse(eye(2)), "holds no sparse matrix")
    lu.assertTrue(load(name)[2] == pages[2])
end

function TestNpy:test_texts()
    lu.assertEquals(load(file(".npy",
        npy("|S3", false, "(3,)", "abcd\0\0\0\0\0"))), {"abc", "d", ""})
    local letters = string.pack("<I4I4I4I4", 0xE4, 0, 0x20AC, 0x1F600)
    lu.assertEquals(load(file(".npy", npy("<U2", false, "(2, 1)", letters))),
        {{"\u{E4}"}, {"\u{20AC}\u{1F600}"}})
    lu.assertEquals(load(file(".npy",
        npy("<U1", false, "(1,)", string.pack("<I4", 0xD800)))), {"\u{FFFD}"})
    lu.assertEquals(load(file(".npy",
        npy("|S1", true, "(2, 2)", "abcd"))), {{"a", "c"}, {"b", "d"}})
end

-- In pieces, of every kind: what is wrong is where it is in the whole.
function TestNpy:test_many_elements()
    local n = (1 << 19) + 7
    local A = load(file(".npy", npy("|u1", false, ("(%d,)"):format(2 * n),
        ("\1\3"):rep(n))))
    lu.assertEquals(A:sum(), 4 * n)
    A = load(file(".npy", npy("<f4", true, ("(%d, 2)"):format(n),
        string.pack("<f", 1):rep(n) .. string.pack("<f", 2):rep(n))))
    lu.assertEquals(A.shape, {n, 2})
    lu.assertEquals({A:col(1):sum(), A(n, 1), A(1, 2)}, {n, 1, 2})
    local one = string.pack("<i8", 1)
    fails(npy("<i8", false, ("(%d, 3)"):format(n), one:rep(3 * n - 1) ..
        string.pack("<i8", (1 << 53) + 1)), ("[%d, 3] is"):format(n), nil,
        ".npy")
end

function TestNpy:test_bad_files()
    local function bad(bytes, message, options)
        fails(bytes, message, options, ".npy")
    end
    local four = string.pack("<f", 1)
    bad("\x93NUMPX\1", "is not a NumPy file")
    bad("\x93NUMPY\4\0\0\0", "version 4.0")
    bad("\x93NUMPY\1\0\xFF\0{", "cut off in its header")
    bad("\x93NUMPY\2\0\xFF\xFF\xFF\x7F{", "header of 2147483647 bytes")
    bad(npy("<f4", false, "(2,)", four), "claims 8 bytes of elements, 4 follow")
    bad(npy("<f4", false, "(1,)", four .. four), "is too long")
    bad(npy("<f4", false, "(1000000000000,)", ""), "cut off")
    bad(npy("<f8", false, "(9223372036854775807, 9223372036854775807)", ""),
        "too many")
    bad(npy("<f4", false, "(99999999999999999999,)", ""), "malformed")
    bad(npy("<f4", false, "(-1,)", ""), "malformed")
    bad(npy("<f4", false, "(1, 1, 1, 1)", four), "4 dimensions")
    bad(npy("<f4", false, "(0, 2, 9223372036854775807)", ""), "too many")
    bad(npy("<f4", false, "(99999999, 0, 1)", ""), "99999999 matrices")
    bad(npy("<f4", false, "(16000000, 0, 1)", ""),
        "16000000 matrices of hardly an element")
    bad(npy("|S0", false, "(99999999,)", ""), "'|S0'")
    bad(npy("<U2", false, "(1, 1, 1)", ("\0"):rep(8)), "strings in 3")
    bad(npy("|O", false, "(1,)", "x"), "Python objects")
    bad(npy("<c4", false, "(1,)", "1234"), "'<c4'")
    bad(npy("<c32", false, "(1,)", ("x"):rep(32)), "'<c32'")
    bad(npy("<f16", false, "(1,)", ("x"):rep(16)), "'<f16'")
    bad(npy("<M8[ns]", false, "(1,)", ("x"):rep(8)), "dates")
    bad((npy("<f4", false, "(1,)", four):gsub("'<f4'", "[('a', '<f4')]")),
        "structures")
    bad((npy("<f4", false, "(1,)", four):gsub("'shape'", "'shave'")),
        "malformed")
    bad((npy("<f4", false, "(1,)", four):gsub("False", "Maybe")), "neither")
end

function TestNpy:test_integers_that_round()
    local big = npy("<i8", false, "(1, 2)",
        string.pack("<i8i8", 1, 9007199254740994))
    fails(big, "[1, 2] is 9007199254740994", nil, ".npy")
    npy_gives(big, {{1, 9007199254740994}}, "f64", {dtype = "f64"})
end

TestNpz = {}

function TestNpz:test_a_table_of_names()
    local name = file(".npz")
    local T = {A = randn(40, 30), v = vec({1, 2}, {dtype = "f64"}), n = 7,
        x = 2.5, yes = true, text = "h\u{E9}llo", z = 1 + 2 * im,
        mask = vec{1, 2}:gt(1), pages = {ones(2, 3), zeros(2, 3)},
        empty = zeros(0, 3), C = complex(ones(2, 2), eye(2))}
    for _, compress in ipairs{false, true} do
        save(T, name, {compress = compress})
        local R = load(name)
        for key, value in pairs(T) do
            if key == "pages" then
                lu.assertTrue(R.pages[1] == value[1] and
                    R.pages[2] == value[2])
            else
                lu.assertTrue(R[key] == value, key)
            end
        end
        lu.assertEquals(math.type(R.n), "integer")
        lu.assertEquals(math.type(R.x), "float")
        lu.assertEquals({R.v.dtype, R.mask.dtype, R.C.dtype},
            {"f64", "bool", "c64"})
    end
    save(zeros(500, 500), name, {compress = true})
    lu.assertTrue(#common.content(name) < 5000)
    lu.assertTrue(load(name).arr_0 == zeros(500, 500))
end

function TestNpz:test_what_is_chosen()
    local name = file(".npz")
    save({a = ones(2, 2), b = zeros(3, 3)}, name)
    lu.assertNil(load(name, {names = {"a"}}).b)
    lu.assertEquals(load(name, {names = {"b"}, dtype = "f64"}).b.dtype, "f64")
    lu.assertErrorMsgContains("nothing called 'c'", load, name,
        {names = {"c"}})
    lu.assertErrorMsgContains("element 1 is 3", load, name, {names = {3}})
    lu.assertErrorMsgContains("takes no header, but names, dtype and device",
        load, name, {header = true})
    -- by its first bytes, whatever its name
    local other = file(".csv", common.content(name))
    lu.assertTrue(load(other).a == ones(2, 2))
end

function TestNpz:test_sparse()
    local S = sparse(vec{1, 3, 3}, vec{2, 1, 4}, vec{5, 6, 7}, 3, 4)
    local name = file(".npz")
    for _, T in ipairs{S, S.T, sparse(zeros(2, 3)), S * (2 - im)} do
        save(T, name)
        lu.assertTrue(load(name) == T)
        lu.assertEquals(load(name).dtype, T.dtype)
        save(T, name, {compress = true})
        lu.assertTrue(load(name) == T)
    end
    lu.assertErrorMsgContains("'S' is sparse", save, {S = S}, name)
    local function bad(message, parts)
        local T = {format = "csr", shape = vec{3, 4}, data = vec{5, 6, 7},
            indices = vec{1, 0, 3}, indptr = vec{0, 1, 1, 3}}
        for key, value in pairs(parts) do
            T[key] = value
        end
        save(T, name)
        local ok, said = pcall(load, name)
        lu.assertFalse(ok)
        lu.assertStrContains(said, message)
    end
    bad("holds a sparse matrix as 'bsr'", {format = "bsr"})
    bad("'indices.npy' whose element 2 is no place from 0 to 3",
        {indices = vec{1, 4, 3}})
    bad("'indices.npy' whose element 3 is no place", {indices = vec{1, 0, -1}})
    bad("complex", {indices = vec{1, 0, im}})
    bad("starts that fall, in 'indptr.npy' at 2", {indptr = vec{0, 2, 1, 3}})
    bad("4 starts of 4 lines", {shape = vec{4, 4}})
    bad("3 entries and starts of 2", {indptr = vec{0, 1, 1, 2}})
    bad("3 values at 2 places", {indices = vec{1, 2}})
    bad("claims a sparse matrix of 2000000000 rows",
        {shape = vec({2e9, 4}, {dtype = "f64"})})
    bad("is no place from 0 to 2147483646", {shape = vec{-1, 4}})
    bad("dimensions", {shape = vec{3, 4, 1}})
    bad("is no vector of numbers", {data = "text"})
end

-- Objects are, with a warning; the rest is there.
function TestNpz:test_what_is_left_out()
    local name = file(".npz")
    save({a = ones(2), b = "xyz"}, name)
    local bytes = common.content(name)
    warn("@off")
    local T = load(file(".npz", (bytes:gsub("<U3", "|O ", 1))))
    warn("@on")
    lu.assertTrue(T.a == ones(2) and T.b == nil)
    fails(bytes:sub(1, -10), "is no archive, or is cut off", nil, ".npz")
    fails((bytes:gsub("\128%?\0\0\128%?", "\128>\0\0\128>", 1)),
        "is damaged in its part 'a.npy': a checksum is wrong", nil, ".npz")
    save({a = ones(2), b = range(1, 999)}, name, {compress = true})
    local packed = common.content(name)
    local at = packed:find("b.npy", 1, true) + 100
    local damaged = file(".npz", packed:sub(1, at) .. ("\255"):rep(9) ..
        packed:sub(at + 10))
    lu.assertErrorMsgContains("in its part 'b.npy'", load, damaged)
    lu.assertTrue(load(damaged, {names = {"a"}}).a == ones(2))
    common.write(name, bytes)
    lu.assertErrorMsgContains("empty", save, {}, name)
    lu.assertErrorMsgContains("'f' is a function", save, {f = print}, name)
    lu.assertErrorMsgContains("has 1.5 for a name", save, {[1.5] = 1}, name)
    lu.assertErrorMsgContains("holds one matrix", save, {a = 1}, file(".csv"))
    lu.assertEquals(common.content(name), bytes)
end

TestPacked = {}

function TestPacked:test_gzip()
    local A, name = randn(300, 200), file(".npy.gz")
    save(A, name)
    lu.assertEquals(common.content(name):sub(1, 3), "\x1f\x8b\8")
    lu.assertTrue(load(name) == A)
    name = file(".csv.gz")
    save(A, name)
    lu.assertTrue(load(name) == A)
    local bytes = common.content(name)
    local twice = load(file(".csv", bytes .. bytes)) -- two members
    lu.assertEquals(twice.shape, {600, 200})
    lu.assertTrue(load(file(".csv", bytes .. ("\0"):rep(512))) == A)
    fails(bytes:sub(1, 5000), "is cut off: {rows={1, ", nil, ".csv")
    fails(bytes:sub(1, -9) .. ("x"):rep(8), "is damaged: {rows={1, 300}} reads",
        nil, ".csv")
    fails("\x1f\x8b\8\0", "is cut off: none of its rows", nil, ".csv.gz")
end

TestAtomic = {}

function TestAtomic:test_permissions_and_links()
    local name, link = file(".csv", "old"), file(".csv")
    os.execute(("chmod 640 '%s'; ln -s '%s' '%s'"):format(name, name, link))
    save(ones(1, 1), link)
    lu.assertEquals(common.content(name), "1\n")
    local p = io.popen(("stat -c %%a '%s'; readlink '%s'"):format(name, link))
    lu.assertEquals(p:read("a"), "640\n" .. name .. "\n")
    p:close()
end

function TestAtomic:test_nothing_is_left_behind()
    local place = folder .. "-place"
    os.execute("mkdir '" .. place .. "'")
    save(ones(2, 2), place .. "/a.csv")
    pcall(save, ones(2, 2), place .. "/a.csv", {header = {"x"}})
    local p = io.popen("ls -A '" .. place .. "'")
    lu.assertEquals(p:read("a"), "a.csv\n")
    p:close()
    os.execute("rm -r '" .. place .. "'")
end

TestFolders = {}

-- Names without a slash in front are looked for where cd went.
function TestFolders:test_cd_pwd_and_ls()
    local dir, start = folder .. "-cd", pwd()
    os.execute(("mkdir -p '%s/in [x]' && cd '%s' && touch a.csv b.csv .hid")
        :format(dir, dir))
    dir = cd(dir)
    lu.assertEquals(pwd(), dir)
    lu.assertEquals({table.unpack(ls())}, {"a.csv", "b.csv", "in [x]/"})
    lu.assertEquals({table.unpack(ls "*.csv")}, {"a.csv", "b.csv"})
    lu.assertEquals({table.unpack(ls ".h*")}, {".hid"})
    lu.assertEquals(#ls "in [x]", 0)
    lu.assertEquals(tostring(ls "*.x"), "no file fits *.x")
    lu.assertEquals(cd "in [x]", dir .. "/in [x]")
    save(vec{1, 2}, "v.npy")
    lu.assertEquals(tostring(ls()), "v.npy")
    lu.assertEquals(cd "-", dir)
    lu.assertEquals(load "in [x]/v.npy":totable(), {1, 2})
    lu.assertErrorMsgContains("there is no folder 'none'", cd, "none")
    lu.assertErrorMsgContains("'a.csv' is a file", cd, "a.csv")
    lu.assertErrorMsgContains("no file or folder 'none'", ls, "none")
    lu.assertErrorMsgContains("pattern is a table", ls, {})
    lu.assertEquals(pwd(), dir)
    lu.assertEquals(cd(), cd "~")
    os.execute(("rm -r '%s'"):format(dir))
    cd(start)
end

-- A folder that is removed while one is in it.
function TestFolders:test_a_folder_that_is_gone()
    local dir, start = folder .. "-gone", pwd()
    os.execute("mkdir '" .. dir .. "'")
    cd(dir)
    os.execute("rmdir '" .. dir .. "'")
    lu.assertErrorMsgContains("the folder is gone", pwd)
    lu.assertEquals(cd(start), start)
    lu.assertErrorMsgContains("no folder before", cd, "-")
end

local failures = lu.LuaUnit.run("-o", "tap")
remove_files()
os.exit(failures)
