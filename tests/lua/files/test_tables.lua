-- Tables as text that are more than numbers: types, frames, forms, parts.
local lu = require "luaunit"
local common = require "common"
local nan = 0 / 0
local new_file, _, remove_files = common.new_files()

-- A new file with this content (or none).
local function file(content, ending)
    return new_file(ending or ".csv", content)
end

local function read(text, options)
    return load(file(text), options)
end

local function fails(text, message, options)
    local ok, said = pcall(load, file(text), options)
    lu.assertFalse(ok)
    lu.assertStrContains(said, message)
end

-- A frame as lists, "-" where something is missing; dates are seconds.
local function lists(T)
    local all = {}
    for i, c in ipairs(require "lumat.frames".columns(T)) do
        local list = (c.values or c.codes):totable()
        for k, x in ipairs(list) do
            list[k] = x ~= x and "-" or c.labels and c.labels[x // 1] or x
        end
        all[i] = list
    end
    return all
end

local function gives(text, expected, options)
    local T = read(text, options)
    lu.assertEquals(lists(T), expected)
    return T
end

local function equal(A, rows)
    lu.assertEquals(A.shape, {#rows, #rows[1]})
    for i, row in ipairs(rows) do
        for j, x in ipairs(row) do
            local y = A(i, j)
            lu.assertTrue(x == y or x ~= x and y ~= y, i .. ", " .. j)
        end
    end
end

TestTypes = {}

function TestTypes:test_frames()
    local T = gives("a,b,c\n1,x,2020-01-01\n,y,\n3,x,2020-01-03\n",
        {{1, "-", 3}, {"x", "y", "x"}, {1577836800, "-", 1578009600}})
    lu.assertEquals(T:names(), {"a", "b", "c"})
    local columns = require "lumat.frames".columns(T)
    lu.assertEquals(columns[1].values.dtype, "f64")
    lu.assertEquals(columns[2].labels, {"x", "y"})
    lu.assertEquals(columns[3].format, "%Y-%m-%d")
    gives("a,b\n1,x\n", {{1}, {"x"}}, {dtype = "f32"})
    fails("a,b\n1,x\n", "f32 or f64, not bool", {dtype = "bool"})
end

function TestTypes:test_matrix_or_frame()
    local A, names = read("a,b\ntrue,1\nFALSE,2\n,3\n")
    equal(A, {{1, 1}, {0, 2}, {nan, 3}})
    lu.assertEquals(names, {"a", "b"})
    gives("a,b\n1,2\n", {{1}, {2}}, {as = "frame"})
    fails("a,b\n1,2\n3,x\n", ':3: column 2: "x" is not a number (a matrix has ' ..
        "numbers alone", {as = "matrix"})
    fails("a,b\n1,2020-01-01\n", ':2: column 2: "2020-01-01" is not a number',
        {as = "matrix"})
    fails("a,b\n1,2\n", "numbers alone", {as = "matrix", types = "text"})
    lu.assertErrorMsgContains("as", load, file "1\n", {as = "list"})
end

-- A column's first cell says what it has; another one is told with what to do.
function TestTypes:test_mixed_types()
    fails("a,b c\n1,2\n3,4x\n", ':3: column 2: "4x" is not a number (the cells ' ..
        'above it are numbers: leave it empty, name it in {na=}, or give ' ..
        '{types={["b c"]="text"}})')
    fails("1,2\n3,x\n", '{types={[2]="text"}}')
    fails("t\ntrue\n1\n", ':3: column 1: "1" is not true or false')
    fails("d\n2020-01-01\n2020-02-30\n", '"2020-02-30" is not a date')
    fails("n\n1\n\xc3\xa9\n", '"\xc3\xa9" is not a number')
    gives("a,b\nx,2\n3,4\n", {{"x", "3"}, {2, 4}})
    gives("a,b\n1,2\nx,4\n", {{"1", "x"}, {2, 4}}, {types = {a = "text"}})
end

-- Whole numbers that f32 rounds make a matrix f64, wherever they stand.
function TestTypes:test_integers_are_exact()
    local A = read "x\n123456789\n16777217\n"
    lu.assertEquals(A.dtype, "f64")
    equal(A, {{123456789}, {16777217}})
    local long = {"a,b"}
    for i = 1, 200000 do long[#long + 1] = i .. ",-" .. 2 * i end
    lu.assertEquals(read(table.concat(long, "\n")).dtype, "f32")
    long[150000] = "1,-16777219"
    A = read(table.concat(long, "\n"))
    lu.assertEquals(A.dtype, "f64")
    lu.assertEquals({A(149999, 2), A(200000, 2)}, {-16777219, -400000})
    equal(read("a;b\n1;16.777.217\n", {thousands = ".", decimal = ","}),
        {{1, 16777217}})
    equal(read("a,b\n\"16777217\",2\n", {}), {{16777217, 2}})
    for _, exact in ipairs{"16777216", "-33554432", "16777217.5", "1e30", "0016777216",
        "1.0e9", "inf"} do
        lu.assertEquals(read("x\n" .. exact .. "\n").dtype, "f32", exact)
    end
    lu.assertEquals(read("x\n16777217\n", {dtype = "f32"}).dtype, "f32")
    lu.assertEquals(#read("x\n1\n2\n16777217\n", {rows = {1, 2}}), 2)
    lu.assertErrorMsgContains(":3: column 1: the integer 16777217", function()
        for _ in load_blocks(file "x\n1\n16777217\n", 1) do end
    end)
    for block in load_blocks(file "x\n16777217\n", 1, {dtype = "f64"}) do
        equal(block, {{16777217}})
    end
end

function TestTypes:test_integers_beyond_f64()
    for _, options in ipairs{{}, {as = "frame"}} do
        fails("x\n1\n9007199254740993\n", ":3: column 1: the integer " ..
            "9007199254740993 is beyond 2^53", options)
        fails("x\n-100000000000000000001\n", "beyond 2^53", options)
        options.dtype = "f64"
        lu.assertEquals(#read("x\n1\n9007199254740993\n", options), 2)
    end
    fails("x,y\n1,a\n9007199254740993,b\n", '{dtype="f64"} to accept that')
    equal(read "x\n9007199254740994\n100000000000000000000\n",
        {{9007199254740994}, {1e20}})
    lu.assertEquals(lists(read("x\n9223372036854775807\n1\n",
        {as = "frame", na = {9223372036854775807}})), {{"-", 1}})
end

function TestTypes:test_given_types()
    local text = "a,b,c\n007,1,5\n08,yes,6\n"
    gives(text, {{"007", "08"}, {1, 1}, {5, 6}},
        {types = {a = "text", b = "truth"}})
    gives(text, {{"007", "08"}, {"1", "yes"}, {"5", "6"}}, {types = "text"})
    gives(text, {{"007", "08"}, {"1", "yes"}, {5, 6}},
        {types = {"text", "text"}})
    fails(text, 'has no column "d"', {types = {d = "text"}})
    fails(text, "there is no column 4 of the 3", {types = {[4] = "text"}})
    fails(text, '"word" is none of', {types = {a = "word"}})
    fails(text, '"%Q" is none of', {types = {a = "%Q"}})
    fails("1,2\n", "has no names", {types = {a = "text"}})
end

function TestTypes:test_dates()
    local T = gives("d\n2020-01-01\n2020-01-01T12:30:15.25Z\n" ..
        "2020-01-01 00:00+02:00\n1969-12-31 23:59:59\n0000-03-01\n",
        {{1577836800, 1577881815.25, 1577829600, -1, -62162035200}})
    lu.assertEquals(require "lumat.frames".columns(T)[1].format,
        "%Y-%m-%dT%H:%M:%S")
    gives("d,e\n1.2.2020,3/14/99\n31.12.1999,12/31/68\n",
        {{1580515200, 946598400}, {921369600, 3124137600}},
        {types = {d = "%d.%m.%Y", e = "%m/%d/%y"}})
    gives("d\n5 Mar 2021 7:05\n", {{1614927900}},
        {types = {d = "%d %b %Y %H:%M"}})
    fails("d\n01.13.2020\n", '"01.13.2020" is not %d.%m.%Y',
        {types = {d = "%d.%m.%Y"}})
    gives("d\n01.02.2020\n", {{"01.02.2020"}})
    for _, bad in ipairs{"2021-02-29", "2020-1-1", "2020-13-01",
        "2020-01-01 24:00", "2020-01-01T", "2020-01-01x"} do
        lu.assertEquals(lists(read("d\n" .. bad .. "\n")), {{bad}})
    end
end

function TestTypes:test_missing()
    gives("a,b\n1,x\nNA,NA\nnone,none\n,\n",
        {{1, "-", "-", "-"}, {"x", "-", "none", "-"}})
    gives("a,b\n-999,Na\n2,-\n", {{"-", 2}, {"Na", "-"}},
        {na = {-999, "-"}})
    gives("a,b\n-999.0,q\n,\n", {{"-", "-"}, {"q", ""}}, {na = -999})
    equal(read("a,b\n-999,1\n", {na = "-999"}), {{nan, 1}})
    fails("a\n1\nNA\n", '"NA" is not a number', {na = "-"})
    fails("1\n", "na: element 2 is a boolean", {na = {1, true}})
    equal(read("a,Na\n1,2\n"), {{1, 2}})
end

TestForm = {}

function TestForm:test_header()
    local A, names = read("1,2\n", {header = {"x", "y"}})
    equal(A, {{1, 2}})
    lu.assertEquals(names, {"x", "y"})
    fails("1,2\n", "header: has 1 names for the 2 columns", {header = {"x"}})
    fails("1,2\n", "header: name 2 is 3", {header = {"x", 3}})
    local T = gives("x,1\ny,2\n", {{"x", "y"}, {1, 2}})
    lu.assertEquals(T:names(), {"column1", "column2"})
end

function TestForm:test_columns()
    local text = "a,b,c\n1,x,3\n4,y,6\n"
    local A, names = read(text, {columns = {"c", "a"}})
    equal(A, {{3, 1}, {6, 4}})
    lu.assertEquals(names, {"c", "a"})
    equal(read(text, {columns = {3, "a"}}), {{3, 1}, {6, 4}})
    gives(text, {{"x", "y"}}, {columns = {"b"}})
    fails(text, 'has no column "aa": did you mean "a"', {columns = {"aa"}})
    fails(text, 'columns: "a" is named twice', {columns = {1, "a"}})
    fails(text, "columns: is an empty list", {columns = {}})
    fails(text, "there is no column 0", {columns = {0}})
end

function TestForm:test_european()
    equal(read("a;b\n1,5;-2\n1.234,25;3e2\n", {decimal = ",", thousands = "."}),
        {{1.5, -2}, {1234.25, 300}})
    equal(read("1,5\n2,5\n", {decimal = ","}), {{1.5}, {2.5}})
    equal(read("1'234'567;1\n", {thousands = "'"}), {{1234567, 1}})
    for _, bad in ipairs{"1.5", "12.34.567", "1.2345", "1,234.5", ".123"} do
        fails("a;b\n1;2\n" .. bad .. ";1\n", '"' .. bad .. '" is not a number',
            {decimal = ",", thousands = "."})
    end
    local marks = {thousands = ","}
    equal(read('a,b\n"1,234",5\n"-1,345,678.5",6\n', marks),
        {{1234, 5}, {-1345678.5, 6}})
    equal(read('"1,234",5\n7,8\n', marks), {{1234, 5}, {7, 8}})
    equal(read("1,234\n5,678,901\n", marks), {{1234}, {5678901}})
    equal(read("a;b\n1,234;5\n", marks), {{1234, 5}})
    equal(read("a,b\n1,234\n", {thousands = ",", delimiter = ","}), {{1, 234}})
    fails('a,b\n"12,34",1\n1,2\n', '"12,34" is not a number',
        {thousands = ",", types = "number"})
    fails("1\n", "is the delimiter",
        {thousands = ",", delimiter = ",", quote = false})
    fails("1;2\n1,5;2\n", 'decimals take a point, not a comma, unless ' ..
        '{decimal=","}')
    fails("1\n", "is the delimiter", {decimal = ",", delimiter = ","})
    fails("1\n", 'thousands: is "."', {thousands = "."})
    fails("1\n", 'decimal: needs', {decimal = "x"})
end

-- Another delimiter in quotes is none, whatever each line has of it.
function TestForm:test_delimiters_in_quotes()
    gives('"a;b","c;d"\n"1;2","3;4"\n', {{"1;2"}, {"3;4"}})
    gives('"a;b",c\n"1;2",x\n', {{"1;2"}, {"x"}})
    gives('"a,b"|"c,d"\n"1,2"|"3,4"\n', {{"1,2"}, {"3,4"}})
    gives('a,"b;c"\nx,"1;2"\n', {{"x"}, {"1;2"}})
    gives('a,"b\t""c"\nx,"1\t2"\n', {{"x"}, {"1\t2"}})
    equal(read('"a;""b""";"c"\n1;2\n'), {{1, 2}})
    equal(read('"a, b" ; "c, d"\n1;2\n'), {{1, 2}})
    equal(read('"a" "b"\n1 2\n'), {{1, 2}})
    for _, mark in ipairs{";", "|", "\t", ","} do
        for _, names in ipairs{{"x%sy"}, {"a%sb", "c%sd"}} do
            local T = {}
            for i, name in ipairs(names) do
                local cell = name:format(mark)
                T[i] = {cell, {cell .. "1", cell .. "2"}}
            end
            T = frame(T)
            local path = file ""
            save(T, path)
            lu.assertTrue(load(path) == T, mark)
            save(T, path, {header = false})
            lu.assertEquals(load(path, {header = false}).cols, #names, mark)
        end
    end
end

function TestForm:test_comments_and_lines_before()
    equal(read("# c\n\n1,2 # x, y\n#z\n3,4#\n#", {comment = "#"}),
        {{1, 2}, {3, 4}})
    fails("# by hand\na,b\n1,2\n", ':2: 2 columns, but 1 expected ' ..
        '({comment="#"} passes lines that begin so)')
    fails("% a,b\n1\n", '({comment="%"} passes')
    equal(read("by hand\n\"of May\n1,2\n", {skip = 2}), {{1, 2}})
    fails("1\n", "has not 2 lines to skip", {skip = 2})
    fails("x\n1,2\n3,x\n", ":3: column 2", {skip = 1})
end

function TestForm:test_quotes()
    local T = gives('name,"a ""b"""\r\n"x, y","line\nbreak"\r\n' ..
        "\"say \"\"hi\"\"\",' '\r\n", {{"x, y", 'say "hi"'},
        {"line\nbreak", "' '"}})
    lu.assertEquals(T:names(), {"name", 'a "b"'})
    gives("a,b\n'x,y','it''s'\n", {{"x,y"}, {"it's"}}, {quote = "'"})
    gives('a,b\n"x,5" wide\n', {{'"x'}, {'5" wide'}}, {quote = false})
    gives("a\tb\n\"x\ty\"\tz\n", {{"x\ty"}, {"z"}})
    fails("1\n", "cannot be two of", {quote = "#", comment = "#"})
end

function TestForm:test_ragged()
    fails("a,b,c\n1,2,3\n4\n", ":3: 1 column, but 3 expected ({fill=true}")
    fails("a,b\n1,2\n3,4,5\n", ":3: 3 columns, but 2 expected", {fill = true})
    equal(read("a,b,c\n1,2,3\n4\n5,6\n", {fill = true}),
        {{1, 2, 3}, {4, nan, nan}, {5, 6, nan}})
    gives("a,b\nx,y\nz\n", {{"x", "z"}, {"y", "-"}}, {fill = true})
end

function TestForm:test_bytes()
    gives("\xEF\xBB\xBFa\n\xc3\xa9\n", {{"\xc3\xa9"}})
    fails("a,b\n1,x\n2,caf\xe9\n", ":3: column 2: a byte 0xE9 that is no UTF-8")
    fails("a,b\n1,x\n2,c\0d\n", ":3: column 2: a zero byte")
    gives("a,b\n1,x\n2,\xe9\n", {{1, 2}}, {columns = {"a"}, as = "frame"})
end

function TestForm:test_blanks()
    gives("name   x\n ann  1.5\nbob    2  \n", {{"ann", "bob"}, {1.5, 2}})
    gives("city\nNew York\nSan Jose\n", {{"New York", "San Jose"}})
end

TestRows = {}

local function numbered(n)
    local lines = {"i,word"}
    for i = 1, n do lines[i + 1] = i .. ",w" .. i % 7 end
    return table.concat(lines, "\n") .. "\n"
end

function TestRows:test_ranges()
    local name = file(numbered(30))
    for _, r in ipairs{{1, 1}, {1, 30}, {7, 19}, {30, 30}, {28}, {29, 99}} do
        local T = load(name, {rows = r})
        local first, last = r[1], math.min(r[2] or 30, 30)
        lu.assertEquals(#T, last - first + 1)
        lu.assertEquals(T.i(1), first)
        lu.assertEquals(T.i(#T), last)
    end
    lu.assertEquals(require "lumat.frames".columns(load(name,
        {rows = {3, 4}}))[2].labels, {"w3", "w4"})
    fails("1\n2\n", "has 2 rows, none of them is row 3", {rows = {3, 4}})
    fails("1\n2\n", "has 2 rows, none of them is row 9", {rows = {9}})
    fails("1\n", "rows: 0 is no place", {rows = {0, 1}})
    fails("1\n", "rows: needs a first row", {rows = {3, 1}})
end

function TestRows:test_blocks()
    local name, seen, words = file(numbered(30)), {}, {}
    for T in load_blocks(name, 7) do
        seen[#seen + 1] = #T
        for _, w in ipairs(lists(T)[2]) do words[#words + 1] = w end
    end
    lu.assertEquals(seen, {7, 7, 7, 7, 2})
    lu.assertEquals(words[30], "w2")
    lu.assertEquals(#words, 30)
    local total = 0
    for A, names in load_blocks(file("a,b\n1,2\n3,4\n"), 1) do
        lu.assertEquals(names, {"a", "b"})
        total = total + A:sum()
    end
    lu.assertEquals(total, 10)
    for A in load_blocks(file("a,b\n"), 5) do
        lu.assertEquals(A.shape, {0, 2})
    end
    lu.assertErrorMsgContains(":3: column 1", function()
        for _ in load_blocks(file("a\n1\nx\n"), 1) do end
    end)
    lu.assertErrorMsgContains("is not a NumPy file", load_blocks,
        file("x", ".npy"), 1)
    lu.assertErrorMsgContains("load_blocks", load_blocks, name, 0)
end

-- Windows and chunks, and rows across their ends; quotes with line ends in them
-- mislead the guess at where a chunk begins.
function TestRows:test_many_chunks()
    local n, lines = 120000, {"i,text,x"}
    for i = 1, n do
        lines[i + 1] = ('%d,"a\n%d,""b"", %s",%d.5'):format(i, i % 1000,
            ("y"):rep(i % 90), i)
    end
    local text = table.concat(lines, "\n")
    for _, ending in ipairs{".csv", ".csv.gz"} do
        local name = file(nil, ending)
        if ending == ".csv" then
            common.write(name, text)
        else
            common.write(name:sub(1, -4), text)
            os.execute("gzip -c '" .. name:sub(1, -4) .. "' > '" .. name .. "'")
        end
        local T = load(name)
        lu.assertEquals(#T, n)
        lu.assertTrue(T.i == range(1, n, 1, {dtype = "f64"}))
        lu.assertTrue(T.x - T.i == full(n, 0.5, {dtype = "f64"}))
        local c = require "lumat.frames".columns(T)[2]
        lu.assertEquals(c.labels[c.codes(n)],
            ('a\n%d,"b", %s'):format(n % 1000, ("y"):rep(n % 90)))
        T = load(name, {rows = {90001, 90010}})
        lu.assertEquals(T.i:totable()[1], 90001)
        local sum = 0
        for B in load_blocks(name, 50000) do sum = sum + B.i:sum() end
        lu.assertEquals(sum, n * (n + 1) // 2)
    end
    local bad = text:gsub("\n100000,", "\n1e,", 1)
    local _, line = text:sub(1, (text:find("\n100000,", 1, true)))
        :gsub("\n", "")
    fails(bad, (':%d: column 1: "1e" is not a number'):format(line + 1))
end

-- A row that is longer than any window.
function TestRows:test_wide_rows()
    local n = 300000
    local row = {}
    for j = 1, n do row[j] = j end
    local one = table.concat(row, ",")
    local A = read(one .. "\n\n" .. one .. "\n", {dtype = "f64"})
    lu.assertEquals(A.shape, {2, n})
    lu.assertEquals(A:sum(), n * (n + 1))
    A = read(one .. "\n" .. one, {columns = {n, 1}, dtype = "f64"})
    equal(A, {{n, 1}, {n, 1}})
    fails(one .. "\n\n" .. one .. ",1\n", ":3: 300001 columns, but 300000")
    fails(one .. "\n1,x\n", ':2: column 2: "x" is not a number')
end

TestSave = {}

local function saved(value, options, ending)
    local name = file(nil, ending)
    save(value, name, options)
    return common.content(name), name
end

function TestSave:test_matrices()
    local A = mat({{1.5, nan}, {-2, 1e300}}, {dtype = "f64"})
    lu.assertEquals(saved(A), "1.5,nan\n-2,1e+300\n")
    lu.assertEquals(saved(A, {decimal = ",", na = ""}), "1,5;\n-2;1e+300\n")
    lu.assertEquals(saved(A, {header = {"a b", 'c"'}, delimiter = ";"}),
        'a b;"c"""\n1.5;nan\n-2;1e+300\n')
    lu.assertEquals(saved(vec{1, nan}, {na = ""}), '1\n""\n')
    lu.assertErrorMsgContains("cannot be the delimiter and the decimal", save,
        A, file(), {decimal = ",", delimiter = ","})
    lu.assertErrorMsgContains("a matrix has no names", save, A, file(),
        {header = true})
end

function TestSave:test_frames()
    local text = "n,word,when\n1.5,\"x, y\",2020-01-01 10:00:00\n" ..
        ",,1969-12-31 23:59:59.5\n-3,\"say \"\"hi\"\"\",\n"
    local T = read(text)
    local again, name = saved(T)
    lu.assertEquals(again, text)
    lu.assertEquals(lists(load(name)), lists(T))
    lu.assertEquals(saved(T, {header = false, na = "NA", delimiter = "\t"}),
        "1.5\tx, y\t2020-01-01 10:00:00\nNA\tNA\t1969-12-31 23:59:59.5\n" ..
        '-3\t"say ""hi"""\tNA\n')
    lu.assertEquals(saved(T, {decimal = ",", header = {"a", "b", "c"}}),
        "a;b;c\n1,5;x, y;2020-01-01 10:00:00\n;;1969-12-31 23:59:59.5\n" ..
        '-3;"say ""hi""";\n')
    local _, packed = saved(T, nil, ".csv.gz")
    lu.assertEquals(lists(load(packed)), lists(T))
    lu.assertErrorMsgContains("1 names for 3 columns", save, T, file(),
        {header = {"a"}})
    gives(saved(read("d\n05.03.2021\n", {types = "%d.%m.%Y"})),
        {{"05.03.2021"}})
end

local failures = lu.LuaUnit.run("-o", "tap")
remove_files()
os.exit(failures)
