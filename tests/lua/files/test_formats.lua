-- The formats that others write: Matrix Market, raw bytes. What they give, and
-- what is said about bad files, with its place.
local lu = require "luaunit"
local common = require "common"
local folder = os.tmpname()
os.remove(folder)
local count = 0

local function file(ending, content)
    count = count + 1
    local name = folder .. "-" .. count .. ending
    if content then
        common.write(name, content)
    end
    return name
end

local function fails(content, message, options, ending)
    local ok, said = pcall(load, file(ending, content), options)
    lu.assertFalse(ok, message)
    lu.assertStrContains(said, message)
end

TestMarket = {}

local function market(words, rest)
    return load(file(".mtx", "%%MatrixMarket matrix " .. words .. "\n" .. rest))
end

function TestMarket:test_entries()
    local S = market("coordinate real general",
        "% a comment\n\n 3 4  3\n1 2 5\n3 1 -6e-1\r\n\n 3 4 nan\n")
    lu.assertEquals({S.rows, S.cols, S.nnz}, {3, 4, 3})
    lu.assertEquals({S(1, 2), S(3, 1) + 0.6 < 1e-7}, {5, true})
    lu.assertTrue(S(3, 4) ~= S(3, 4))
    S = market("coordinate pattern symmetric", "3 3 2\n2 1\n3 3")
    lu.assertTrue(full(S) == mat{{0, 1, 0}, {1, 0, 0}, {0, 0, 1}})
    S = market("Coordinate Real Skew-Symmetric", "2 2 1\n2 1 4\n")
    lu.assertTrue(full(S) == mat{{0, -4}, {4, 0}})
    lu.assertTrue(full(market("coordinate real general",
        "2 2 2\n1 1 2\n1 1 3\n")) == mat{{5, 0}, {0, 0}})
    S = market("coordinate integer general", "2 2 1\n2 2 16777217\n")
    lu.assertEquals({S.dtype, S(2, 2)}, {"f64", 16777217})
    lu.assertEquals(load(file(".mtx", "%MatrixMarket vector coordinate real "
        .. "general\n3 1\n2 7\n")):totable(), {0, 7, 0})
end

function TestMarket:test_complex_ones_are_dense()
    local H = market("coordinate complex hermitian", "2 2 2\n1 1 3 0\n2 1 1 2\n")
    lu.assertTrue(H == complex(mat{{3, 1}, {1, 0}}, mat{{0, -2}, {2, 0}}))
    lu.assertEquals(H.dtype, "c64")
    fails("%%MatrixMarket matrix coordinate complex general\n"
        .. "100000 100000 1\n1 1 1 1\n", "would be too large", nil, ".mtx")
end

function TestMarket:test_arrays()
    local A = market("array real general", "2 3\n1\n2\n3\n4\n5\n6\n")
    lu.assertTrue(A == mat{{1, 3, 5}, {2, 4, 6}})
    A = market("array real symmetric", "2 2\n1\n2\n3\n")
    lu.assertTrue(A == mat{{1, 2}, {2, 3}})
    A = market("array real skew-symmetric", "3 3\n1\n2\n3\n")
    lu.assertTrue(A == mat{{0, -1, -2}, {1, 0, -3}, {2, 3, 0}})
    lu.assertTrue(market("array integer general", "2 1\n1\n-2\n")
        == mat{{1}, {-2}})
    A = market("array complex hermitian", "2 2\n1 0\n0 5\n2 0")
    lu.assertTrue(A == complex(mat{{1, 0}, {0, 2}}, mat{{0, -5}, {5, 0}}))
    lu.assertEquals(market("array real general", "0 3\n").shape, {0, 3})
end

function TestMarket:test_round_trips()
    seed(3)
    local D = randn(17, 9)
    local S = sparse(where(D:gt(1), D, zeros(17, 9)))
    for _, ending in ipairs{".mtx", ".mtx.gz"} do
        local name = file(ending)
        for _, X in ipairs{D, D:f64() / 3, complex(D, -D), S, D.T} do
            save(X, name)
            local R = load(name, {dtype = X.dtype})
            lu.assertTrue(R == X, tostring(X))
            lu.assertEquals(R.dtype, X.dtype)
        end
    end
    local name = file(".mtx")
    save(vec{1, 2}:gt(1), name)
    lu.assertEquals(common.content(name),
        "%%MatrixMarket matrix array integer general\n2 1\n0\n1\n")
    save(mat{{1, 1 / 3}}, name, {digits = 3})
    lu.assertEquals(common.content(name),
        "%%MatrixMarket matrix array real general\n1 2\n1\n0.333\n")
    save(sparse(vec{2}, vec{1}, vec{0.5}, 2, 3), name)
    lu.assertEquals(common.content(name),
        "%%MatrixMarket matrix coordinate real general\n2 3 1\n2 1 0.5\n")
end

function TestMarket:test_bad_files()
    local function bad(text, message)
        fails("%%MatrixMarket " .. text, message, nil, ".mtx")
    end
    local real = "matrix coordinate real general\n"
    fails("1 2\n", ".mtx:1: does not begin with %%MatrixMarket", nil, ".mtx")
    bad("graph coordinate real general\n", ':1: object "graph" is none of')
    bad("matrix dense real general\n", 'format "dense" is none of')
    bad("matrix array pattern general\n1 1\n1\n", "an array has no pattern")
    bad("matrix coordinate whole general\n", 'field "whole" is none of')
    bad("matrix coordinate real upper\n", 'symmetry "upper" is none of')
    bad("matrix array real symmetric\n2 3\n", ":2: a symmetric matrix of 2x3")
    bad(real, ":1: the file ends before the sizes")
    bad(real .. "2 2\n", ":2: the sizes are not three whole numbers")
    bad(real .. "2 2 99999999999999999999\n", "not three whole numbers")
    bad(real .. "2 2 9\n1 1 1\n", ":2: claims 9 entries, too many for the 6")
    bad(real .. "2 2 1\n1 3 1\n", ":3: column 3 is not in 1 to 2")
    bad(real .. "2 2 1\n0 1 1\n", ":3: row 0 is not in 1 to 2")
    bad(real .. "2 2 1\n1 1 x1\n", ':3: value "x1" is no number')
    bad(real .. "2 2 1\n1 1 1x\n", ':3: value "1x" is no number')
    bad(real .. "2 2 1\n1 1   \n", ":3: the value is missing")
    bad(real .. "2 2 1\n1 1 1 1\n", ":3: something follows the entry")
    bad(real .. "2 2 1\n1 1 1\n1 2 1\n", ":4: something follows the 1 entries")
    bad(real .. "2 2 2\n1 1 1.0000000\n", ":3: the file ends behind 1 of 2")
    bad("matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", ":3: a skew")
    bad(real .. "2000000000 2 1\n1 1 1\n", "claims a sparse matrix of 2000000000")
    bad("matrix array real general\n9999999999 9999999999\n", "be counted")
    bad("matrix coordinate integer general\n1 1 1\n1 1 9007199254740993\n",
        "beyond 2^53")
end

TestRaw = {}

function TestRaw:test_types_and_orders()
    local types = {f16 = {"I2", 0x3C00, 1}, f32 = {"f", 0.5}, f64 = {"d", 0.1},
        i8 = {"b", -128}, i16 = {"h", -2}, i32 = {"i4", -70000},
        i64 = {"i8", -9007199254740992}, u8 = {"B", 255}, u16 = {"H", 65535},
        u32 = {"I4", 4294967295}, u64 = {"I8", 5}}
    for dtype, t in pairs(types) do
        for order, byteorder in pairs{["<"] = "little", [">"] = "big"} do
            local name = file(".bin", string.pack(order .. t[1]:rep(2), t[2],
                t[2]))
            local v = load(name, {shape = {2}, dtype = dtype,
                byteorder = byteorder})
            lu.assertEquals(v:totable(), {t[3] or t[2], t[3] or t[2]}, dtype)
        end
    end
    local bytes = string.pack("<ffffff", 1, 2, 3, 4, 5, 6)
    local name = file(".bin", "head" .. bytes)
    local with = {shape = {2, 3}, dtype = "f32", offset = 4}
    lu.assertEquals(load(name, with):totable(), {{1, 2, 3}, {4, 5, 6}})
    with.order = "F"
    lu.assertEquals(load(name, with):totable(), {{1, 3, 5}, {2, 4, 6}})
    local pages = load(file(".any", bytes), {shape = {2, 1, 3}, dtype = "f32"})
    lu.assertEquals(pages[2]:totable(), {{4, 5, 6}})
    lu.assertEquals(load(file(".bin", "\0\1\2"), {shape = {3}, dtype = "bool"})
        :totable(), {false, true, true})
    local z = load(file(".bin", bytes), {shape = {3}, dtype = "c64"})
    lu.assertTrue(z[2] == complex(3, 4))
end

function TestRaw:test_save()
    local name, A = file(".bin"), mat({{1, 2}, {3, 4}}, {dtype = "f64"})
    save(A, name)
    lu.assertEquals(common.content(name), string.pack("<dddd", 1, 2, 3, 4))
    save(A, name, {order = "F"})
    lu.assertEquals(common.content(name), string.pack("<dddd", 1, 3, 2, 4))
    save(A, name .. ".gz")
    lu.assertTrue(load(name .. ".gz", {shape = {2, 2}, dtype = "f64"}) == A)
end

function TestRaw:test_what_does_not_fit()
    local function bad(message, options)
        fails("12345678", message, options, ".bin")
    end
    bad("need their shape and type")
    bad("need their type", {shape = {2}})
    bad("has 8 bytes, too few", {shape = {3}, dtype = "f32"})
    bad("has 8 bytes, too few", {shape = {2}, dtype = "f32", offset = 1})
    bad("has 8 bytes, too few", {shape = {2}, dtype = "f32", offset = 1e15})
    bad("too few", {shape = {1 << 62, 1 << 62}, dtype = "f32"})
    bad("has 8 bytes from byte 0 on, and that shape and type take 4",
        {shape = {1}, dtype = "f32"})
    bad("shape: -1 is no size", {shape = {-1}, dtype = "f32"})
    bad("shape has 4 sizes", {shape = {1, 1, 1, 1}, dtype = "f32"})
    bad("takes no header, but shape, dtype,",
        {shape = {2}, dtype = "f32", header = true})
    lu.assertErrorMsgContains("i16", load, file(".csv", "1\n"),
        {dtype = "i16"})
    lu.assertErrorMsgContains("byteorder", load, file(".bin", "1"),
        {shape = {1}, dtype = "u8", byteorder = "middle"})
end

local failures = lu.LuaUnit.run("-o", "tap")
os.execute("rm -f '" .. folder .. "'-*")
os.exit(failures)
