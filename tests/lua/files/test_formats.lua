-- The formats that others write: Matrix Market, raw bytes, images. What they give, and
-- what is said about bad files, with its place.
local lu = require "luaunit"
local common = require "common"
local file, _, remove_files = common.new_files()

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

function TestMarket:test_complex_entries()
    local H = market("coordinate complex hermitian", "2 2 2\n1 1 3 0\n2 1 1 2\n")
    lu.assertTrue(full(H) == complex(mat{{3, 1}, {1, 0}}, mat{{0, -2}, {2, 0}}))
    lu.assertEquals(H.dtype, "c64")
    local K = market("coordinate complex skew-symmetric", "2 2 1\n2 1 1 2\n")
    lu.assertTrue(full(K) == complex(mat{{0, -1}, {1, 0}}, mat{{0, -2}, {2, 0}}))
    lu.assertEquals(market("coordinate complex general",
        "100000 100000 1\n70000 1 1 -1\n")(70000, 1), 1 - im)
    fails("%%MatrixMarket matrix coordinate complex general\n"
        .. "1 1 1\n1 1 1 1\n", "complex numbers, which do not fit f32",
        {dtype = "f32"}, ".mtx")
end

-- The same entries, however they are written.
function TestMarket:test_ways_to_write_entries()
    local lines = {"%%MatrixMarket matrix coordinate real general", "2 3 3",
        "1 1 0.1", "2 1 -12345678.9", "2 3 1e-3"}
    local expected = mat{{0.1, 0, 0}, {-12345678.9, 0, 1e-3}}
    local ways = {table.concat(lines, "\n") .. "\n", table.concat(lines, "\n"),
        table.concat(lines, "\r\n") .. "\r\n",
        (table.concat(lines, "\n\n"):gsub("(%d) (%d)", "%1 \t %2")) .. " \n\n",
        (table.concat(lines, "\n"):gsub("0%.1\n", "+0.1000000000000000000001\n")
            :gsub("\n1 1", "\n 001 1"):gsub("1e%-3", "0.1E-02")),
        (table.concat(lines, "\n"):gsub("0%.1\n", ".1\n")
            :gsub("1e%-3", "0.000000000000000001e15"))}
    for i, text in ipairs(ways) do
        local S = load(file(".mtx", text))
        lu.assertEquals(S.nnz, 3)
        lu.assertTrue(full(S) == expected, i)
    end
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
        for _, X in ipairs{D, D:f64() / 3, complex(D, -D), S, S * (1 - im), D.T} do
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

TestImages = {}

local function image_gives(ending, content, expected, options)
    local A = load(file(ending, content), options)
    lu.assertEquals(A:totable(), expected)
end

function TestImages:test_netpbm()
    image_gives(".pgm", "P2\n# grey\n2 2\n4\n0 1\n2 4\n",
        {{0, 0.25}, {0.5, 1}})
    image_gives(".pgm", "P5 2 1 255\n\0\255", {{0, 1}})
    image_gives(".pgm", "P5 2 1 65535\n\0\0\255\255", {{0, 1}})
    image_gives(".pbm", "P1\n3 1\n1 01", {{0, 1, 0}})
    image_gives(".pbm", "P4 9 1\n\xA0\x80", {{0, 1, 0, 1, 1, 1, 1, 1, 0}})
    local T = load(file(".ppm", "P6 1 2 255\n\255\0\51\0\255\0"))
    lu.assertEquals({T.r:totable(), T.g:totable()}, {{{1}, {0}}, {{0}, {1}}})
    lu.assertAlmostEquals(T.b[1][1], 0.2, 1e-7)
    -- a text that begins so is one
    local A, names = load(file(".csv", "P5 x,b\n1,2\n"))
    lu.assertEquals(names, {"P5 x", "b"})
    fails("P5 2 2 255\nabc", "claims 2x2 pixels, too many for the 3 bytes", nil,
        ".pgm")
    fails("P5 2 1 255\nabc", "has 1 bytes behind its pixels", nil, ".pgm")
    fails("P2 2 1 5\n1 6\n", "has a sample 6 in row 1, above its largest, 5",
        nil, ".pgm")
    fails("P2 2 2 5\n1 1 1 \n", "is cut off or damaged at byte 16, in row 2",
        nil, ".pgm")
    fails("P2 2 2 5\n1 1 1 1 1\n", "something behind its pixels at byte 17",
        nil, ".pgm")
    fails("P2 2 2 99999\n1 1 1 1\n", "no width, height", nil, ".pgm")
    fails("P5 99999 99999 255\n1", "too many", nil, ".pgm")
end

function TestImages:test_png_round_trips()
    seed(5)
    local A = rand(37, 23)
    for _, bits in ipairs{8, 16} do
        local most = (1 << bits) - 1
        local G = (A * most):round() / most
        for _, ending in ipairs{".png", ".pgm"} do
            local name = file(ending)
            save(A, name, {bits = bits})
            lu.assertTrue((load(name) - G):abs():max() < 1e-7)
        end
        for _, T in ipairs{{r = G, g = G.T:clone().T, b = G * 0},
            {r = G, g = G, b = G, a = G}, {grey = G, a = G * 0}} do
            local name = file(".png")
            save(T, name, {bits = bits})
            local R = load(name)
            for key, channel in pairs(T) do
                lu.assertTrue((R[key] - channel):abs():max() < 1e-7, key)
            end
        end
    end
    local name = file(".png")
    save(A:gt(0.5), name)
    lu.assertTrue(load(name, {dtype = "bool"}) == A:gt(0.5))
    save(A * 20 - 10, name, {low = -10, high = 10})
    lu.assertTrue((load(name) - A):abs():max() < 0.003)
    save(mat{{-1, 0, 1}}, name, {low = -1, palette = "diverging"})
    local T = load(name)
    lu.assertTrue(T.b[1][1] > T.r[1][1] and T.r[1][3] > T.b[1][3])
    save(mat{{0, 1}}, name, {palette = "heat"})
    lu.assertTrue(load(name).b[1][2] < load(name).r[1][2])
end

function TestImages:test_what_cannot_be_written()
    local name = file(".png", "kept")
    local function bad(message, value, options, ending)
        lu.assertErrorMsgContains(message, save, value,
            ending and file(ending) or name, options)
    end
    bad("an empty matrix is no image", zeros(0, 3))
    bad("there is no g", {r = ones(2, 2)})
    bad("differ in shape: 2x2, 2x3",
        {r = ones(2, 2), g = ones(2, 3), b = ones(2, 2)})
    bad("takes no palette", {r = ones(2, 2), g = ones(2, 2), b = ones(2, 2)},
        {palette = "heat"})
    bad("has to be below", ones(2, 2), {low = 1, high = 1})
    bad("bits: 12", ones(2, 2), {bits = 12})
    bad("palette", ones(2, 2), {palette = "jet"})
    bad("of real matrices", complex(ones(2, 2), ones(2, 2)))
    bad("has no alpha", {grey = ones(2, 2), a = ones(2, 2)}, nil, ".pgm")
    bad("is read, and not written", ones(2, 2), nil, ".jpg")
    bad("holds no sparse", sparse(eye(2)))
    lu.assertEquals(common.content(name), "kept")
end

-- Damage is told with its place, and nothing is made of what claims too much.
function TestImages:test_damaged_png()
    local name = file(".png")
    save(rand(40, 30), name)
    local bytes = common.content(name)
    fails(bytes:sub(1, -5), "is cut off at byte " .. #bytes - 12, nil, ".png")
    fails(bytes:sub(1, 20), "is cut off at byte 8", nil, ".png")
    local bad = bytes:sub(1, 99) .. string.char(bytes:byte(100) ~ 1) ..
        bytes:sub(101)
    fails(bad, "the checksum of 'IDAT' at byte 33 is wrong", nil, ".png")
    local function chunk(kind, data)
        local crc = 0xFFFFFFFF
        for i = 1, #kind + #data do
            crc = crc ~ (kind .. data):byte(i)
            for _ = 1, 8 do
                crc = crc >> 1 ~ (crc & 1) * 0xEDB88320
            end
        end
        return string.pack(">I4", #data) .. kind .. data ..
            string.pack(">I4", crc ~ 0xFFFFFFFF)
    end
    local function png(rows, cols, depth, colour, ...)
        return "\x89PNG\r\n\x1a\n" .. chunk("IHDR", string.pack(">I4I4BBBBB",
            cols, rows, depth, colour, 0, 0, 0)) .. table.concat{...} ..
            chunk("IEND", "")
    end
    local function stored(data) -- zlib's, not packed
        local a, b = 1, 0
        for i = 1, #data do
            a = (a + data:byte(i)) % 65521
            b = (b + a) % 65521
        end
        return chunk("IDAT", "\x78\x01\1" .. string.pack("<I2I2", #data,
            ~#data & 0xFFFF) .. data .. string.pack(">I4", b << 16 | a))
    end
    image_gives(".png", png(2, 1, 8, 0, stored "\0\0\0\255"), {{0}, {1}})
    image_gives(".png", png(2, 1, 8, 0, stored "\0\51\2\204"),
        {{load(file(".png", png(1, 1, 8, 0, stored "\0\51")))(1, 1)}, {1}})
    fails(png(2, 1, 8, 0, stored "\0\0"), "cut off in row 2 of 2", nil, ".png")
    fails(png(1, 1, 8, 0, stored "\9\0"), "row 1 has filter 9", nil, ".png")
    fails(png(1, 1, 8, 3, chunk("PLTE", "abc"), stored "\0\1"),
        "pixel [1, 1] is of no colour", nil, ".png")
    fails(png(1, 1, 8, 3, stored "\0\1"), "has no palette", nil, ".png")
    fails(png(1, 1, 7, 0), "colour type 0 of 7 bits", nil, ".png")
    fails(png(1, 1, 8, 0, chunk("ABCD", "")), "chunk 'ABCD'", nil, ".png")
    fails(png(0, 1, 8, 0), "claims 0x1 pixels", nil, ".png")
    fails(png(100000, 100000, 8, 0, stored "\0"), "too many", nil, ".png")
end

-- Two rows of four black and four white pixels.
local jpeg = ("ffd8ffe000104a46494600010100000100010000ffdb004300010101010101010101"
    .. "01010101010101010101010101010101010101010101010101010101010101010101"
    .. "010101010101010101010101010101010101010101ffc0000b080002000801011100"
    .. "ffc40014000100000000000000000000000000000003ffc400181000020300000000"
    .. "000000000000000000000a4988c8ffda0008010100003f003463945a4dae0fffd9")
    :gsub("..", function(byte)
        return string.char(tonumber(byte, 16))
    end)

function TestImages:test_jpeg()
    local ok, A = pcall(load, file(".jpg", jpeg))
    if not ok and tostring(A):find "built without JPEG" then
        return
    end
    lu.assertTrue((A - mat{{0, 0, 0, 0, 1, 1, 1, 1}} * 1):abs():max() < 0.02)
    lu.assertEquals(A.shape, {2, 8})
    fails(jpeg:sub(1, -12), "is damaged, in row 1 of 2: Premature end", nil,
        ".jpg")
    fails(jpeg:sub(1, 60), "is damaged, in row", nil, ".jpg")
    fails("\xff\xd8\xff" .. ("x"):rep(99), "is damaged", nil, ".jpg")
end

-- The endings that save tells of are those that it writes, and load reads again.
TestEndings = {}

-- Those of data, and those of charts, as the error lists them.
local function told_endings()
    local _, said = pcall(save, eye(2), file(".strange"))
    local data, charts = said:match "it knows: ([^;]*); a chart is saved as (.*)"
    return data, charts
end

function TestEndings:test_each_is_written_and_read()
    local A, count = mat{{0, 1}, {1, 0}}, 0
    for ending in told_endings():gmatch "%S+" do
        for _, packed in ipairs{"", ".gz"} do
            local name = file(ending .. packed)
            local is_table = ending == ".npz" or ending == ".mat"
            save(is_table and {A = A} or A, name)
            local back = load(name, (ending == ".bin" or ending == ".raw") and
                {shape = {2, 2}, dtype = "f32"} or nil)
            lu.assertTrue((is_table and back.A or back) == A, ending .. packed)
            count = count + 1
        end
    end
    lu.assertTrue(count >= 2 * 14, count)
end

-- The same in the error, in the rows that ?formats shows, and in save's help,
-- which leaves out only other names of one format.
function TestEndings:test_texts_agree()
    local data, charts = told_endings()
    local written, read = {}, {}
    for _, f in ipairs(require "lumat.formats") do
        table.insert(f.writes and written or read, f.endings)
    end
    lu.assertEquals(table.concat(written, " "), data)
    for ending in table.concat(read, " "):gmatch "%S+" do
        lu.assertErrorMsgContains("is read, and not written", save, eye(2),
            file(ending))
    end
    local help = debug.getregistry()["lumat.help"].save.help
    local all = " " .. data .. " " .. charts:gsub("[,or]+ ", " ") .. " "
    for ending in help:gmatch "%.%l+" do
        lu.assertTrue(ending == ".gz" or all:find(ending .. " ", 1, true) ~= nil,
            ending)
    end
    for ending in all:gmatch "%.%S+" do
        lu.assertTrue(help:find(ending, 1, true) ~= nil or ending == ".pbm" or
            ending == ".pnm", ending)
    end
end

function TestEndings:test_each_of_charts_is_written()
    local _, charts = told_endings()
    local chart, count = plot(vec{1, 2}), 0
    for ending in charts:gmatch "%.%l+" do
        local name = file(ending)
        save(chart, name)
        lu.assertTrue(#common.content(name) > 0, ending)
        count = count + 1
    end
    lu.assertEquals(count, 3)
    for _, ending in ipairs{".csv", ".jpg", ".svg.gz"} do
        lu.assertErrorMsgContains("a picture's name ends in .svg, .png or .pdf",
            save, chart, file(ending))
    end
end

TestDamage = {}

-- Whatever byte of a file is another one: it is told, or the file can be read.
function TestDamage:test_other_bytes()
    local A = rand(9, 7)
    local files = {[".npz"] = {a = A, t = "text", l = {A, A}}, [".npy"] = {A, A},
        [".mtx"] = sparse(A), [".png"] = A, [".ppm"] = {r = A, g = A, b = A},
        [".csv"] = A, [".npy.gz"] = A}
    seed(6)
    warn("@off")
    for ending, value in pairs(files) do
        local name = file(ending)
        save(value, name, ending == ".npz" and {compress = true} or nil)
        local bytes = common.content(name)
        for _ = 1, 150 do
            local at = math.random(#bytes)
            common.write(name, bytes:sub(1, at - 1) ..
                string.char(math.random(0, 255)) .. bytes:sub(at + 1,
                    math.random(4) == 1 and math.random(at, #bytes) or nil))
            local ok, said = pcall(load, name)
            lu.assertTrue(ok or said:find("load: ", 1, true) ~= nil, said)
        end
    end
    warn("@on")
end

TestRows = {}

-- Rows of arrays in either order, blocks of them, and what is no row.
function TestRows:test_arrays()
    local A = reshape(range(1, 30), 6, 5)
    local name = file(".npy")
    save(A, name)
    lu.assertTrue(load(name, {rows = {2, 4}}) == A[{{2, 4}, {}}])
    lu.assertTrue(load(name, {rows = {5}}) == A[{{5, 6}, {}}])
    lu.assertTrue(load(name, {rows = {6, 100}}) == A[{{6, 6}, {}}])
    lu.assertErrorMsgContains("has 6 rows, none of them is row 7", load, name,
        {rows = {7}})
    lu.assertErrorMsgContains("rows: 0 is no place", load, name, {rows = {0}})
    local rows = {}
    for B in load_blocks(name, 4) do rows[#rows + 1] = B end
    lu.assertEquals(#rows, 2)
    lu.assertTrue(rows[1] == A[{{1, 4}, {}}] and rows[2] == A[{{5, 6}, {}}])
    save(range(1, 9), name)
    lu.assertTrue(load(name, {rows = {8, 9}}) == vec{8, 9})
    save({A, A + 1, A + 2}, name)
    local list = load(name, {rows = {2, 3}})
    lu.assertEquals(#list, 2)
    lu.assertTrue(list[1] == A + 1 and list[2] == A + 2)
end

function TestRows:test_columns_first()
    local header = "{'descr': '|u1', 'fortran_order': True, 'shape': (3, 4), }\n"
    local name = file(".npy", "\x93NUMPY\1\0" .. string.pack("<s2", header) ..
        "abcdefghijkl")
    local expected = mat{{98, 101, 104, 107}, {99, 102, 105, 108}}
    lu.assertTrue(load(name, {rows = {2, 3}}) == expected)
    local blocks = {}
    for B in load_blocks(name, 1) do blocks[#blocks + 1] = B end
    lu.assertTrue(vcat(blocks[2], blocks[3]) == expected)
end

-- An element that cannot be kept is named by its place in the file.
function TestRows:test_place_of_what_is_rounded()
    local header = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }\n"
    local name = file(".npy", "\x93NUMPY\1\0" .. string.pack("<s2", header) ..
        string.pack("<i8i8i8", 1, 2, (1 << 53) + 1))
    lu.assertErrorMsgContains("element [3, 1] is 9007199254740993", load, name,
        {rows = {2, 3}})
    lu.assertTrue(load(name, {rows = {2, 2}}) == vec{2})
end

function TestRows:test_raw_bytes()
    local name = file(".bin", string.pack("<i2i2i2i2i2i2", 1, 2, 3, 4, 5, 6))
    local form = {shape = {3, 2}, dtype = "i16", rows = {2, 3}}
    lu.assertTrue(load(name, form) == mat{{3, 4}, {5, 6}})
end

function TestRows:test_files_that_have_no_blocks()
    local name = file(".npz")
    save({a = vec{1}}, name)
    lu.assertErrorMsgContains("is a .npz file, which load reads whole",
        load_blocks, name, 1)
    name = file(".npy.gz")
    save(vec{1, 2}, name)
    lu.assertErrorMsgContains("is packed: unpack it first", load_blocks, name, 1)
    lu.assertTrue(load(name, {rows = {2}}) == vec{2})
    name = file(".npy")
    save(vec{1, 2}, name)
    lu.assertErrorMsgContains("a .npy file takes no header, but dtype and device",
        load_blocks, name, 1, {header = true})
end

local failures = lu.LuaUnit.run("-o", "tap")
remove_files()
os.exit(failures)
