-- MATLAB's files: what version 5 keeps of values, what 7.3 gives, and damage.
local lu = require "luaunit"
local common = require "common"
local file, _, remove_files = common.new_files()

TestMat = {}

function TestMat:test_round_trip()
    seed(4)
    local name = file(".mat")
    local T = {A = randn(5, 3, {dtype = "f64"}), B = randn(4, 6), x = 2.5,
        yes = true, no = false, mask = mat{{1, 0, 2}}:gt(0), text = "h\u{E9}",
        wide = "\u{1F600}!", empty = zeros(0, 3), nothing = "", z = 1 - 2 * im,
        C = complex(randn(3, 2), randn(3, 2)), S = sparse(mat{{0, 2}, {3, 0}}),
        N = sparse(zeros(4, 2)), Z = sparse(mat{{0, 2 - im}, {3, 0}})}
    T.V, T.H = T.A.T, T.C.H
    T.inner = {a = T.A, deep = {b = "x", list = {1, "two", T.B}}}
    save(T, name)
    local R = load(name)
    for key, value in pairs(T) do
        if key ~= "inner" then
            lu.assertTrue(R[key] == value, key)
        end
    end
    lu.assertTrue(R.inner.a == T.A)
    lu.assertEquals(R.inner.deep.list[2], "two")
    lu.assertTrue(R.inner.deep.list[3] == T.B)
    lu.assertEquals({R.A.dtype, R.B.dtype, R.mask.dtype, R.C.dtype, R.S.dtype,
        R.Z.dtype}, {"f64", "f32", "bool", "c64", "f64", "c128"})
    lu.assertEquals(load(name, {dtype = "f32"}).A.dtype, "f32")
    save({v = vec{1, 2}}, name)
    lu.assertEquals(load(name).v.shape, {2, 1})
    save({t = {}}, name)
    lu.assertEquals(load(name).t, {})
    save({A = ones(2, 2), b = 1}, name .. ".gz")
    lu.assertNil(load(name .. ".gz", {names = {"A"}}).b)
    lu.assertErrorMsgContains("nothing called 'q'", load, name .. ".gz",
        {names = {"q"}})
end

function TestMat:test_what_cannot_be_written()
    local name = file(".mat", "kept")
    local function bad(message, value)
        lu.assertErrorMsgContains(message, save, value, name)
    end
    local round = {}
    round.round = round
    bad("by their names", ones(2, 2))
    bad("by their names", {ones(2, 2)})
    bad('"1a" is no name', {["1a"] = 1})
    bad("is no name", {["a b"] = 1})
    bad("nothing for a function", {f = print})
    bad("without end", {r = round})
    bad("is a list or has names, and not 3", {t = {x = 1, [3] = 2}})
    bad("has more than 63 bytes", {t = {[("x"):rep(64)] = 1}})
    lu.assertEquals(common.content(name), "kept")
end

-- An array of version 5: its flags, sizes, name and parts.
local function part(kind, data)
    return string.pack("<I4I4", kind, #data) .. data .. ("\0"):rep(-#data % 8)
end

local function array(class, rows, cols, name, ...)
    return part(14, part(6, string.pack("<I4I4", class, 0)) ..
        part(5, string.pack("<i4i4", rows, cols)) .. part(1, name) ..
        table.concat{...})
end

local function mat5(...)
    return ("MATLAB 5.0"):rep(12):sub(1, 116) .. ("\0"):rep(8) .. "\0\1IM" ..
        table.concat{...}
end

function TestMat:test_classes()
    local function gives(expected, ...)
        local A = load(file(".mat", mat5(...))).a
        lu.assertEquals(type(A) == "userdata" and A:totable() or A, expected)
        return A
    end
    -- numbers may be kept in fewer bytes
    gives({{1, 3}, {2, 4}}, array(6, 2, 2, "a", part(2, "\1\2\3\4")))
    lu.assertEquals(gives({{1, 2}}, array(8, 1, 2, "a", part(1, "\1\2"))).dtype,
        "f32")
    lu.assertEquals(gives({{1, 2}}, array(12, 1, 2, "a", part(5,
        string.pack("<i4i4", 1, 2)))).dtype, "f64")
    gives(5, array(6, 1, 1, "a", part(9, string.pack("<d", 5))))
    gives(true, array(9 | 0x200, 1, 1, "a", part(2, "\1")))
    gives("hi", array(4, 1, 2, "a", part(4, "h\0i\0")))
    gives({"ab", "cd"}, array(4, 2, 2, "a", part(2, "acbd")))
    gives({"x", 2}, array(1, 2, 1, "a", array(4, 1, 1, "", part(2, "x")),
        array(6, 1, 1, "", part(2, "\2"))))
    gives({{p = 1}, {p = 2}}, array(2, 1, 2, "a", part(5, "\2\0\0\0"),
        part(1, "p\0"), array(6, 1, 1, "", part(2, "\1")),
        array(6, 1, 1, "", part(2, "\2"))))
    local ok, said = pcall(load, file(".mat", mat5(array(14, 1, 1, "a",
        part(12, string.pack("<i8", (1 << 53) + 1))))))
    lu.assertFalse(ok)
    lu.assertStrContains(said, "beyond 2^53")
end

function TestMat:test_version_4()
    local function four(kind, rows, cols, name, data)
        return string.pack("<i4i4i4i4i4", kind, rows, cols, 0, #name + 1) ..
            name .. "\0" .. data
    end
    local T = load(file(".mat", four(0, 2, 1, "a", string.pack("<dd", 1, 2)) ..
        four(51, 1, 2, "t", "hi") .. four(2, 2, 3, "s",
            string.pack("<dddddd", 2, 3, 1, 4, 7, 0))))
    lu.assertEquals(T.a:totable(), {{1}, {2}})
    lu.assertEquals(T.t, "hi")
    lu.assertTrue(full(T.s) == mat{{0, 0, 0, 0}, {7, 0, 0, 0}, {0, 0, 0, 0}})
end

function TestMat:test_damage()
    local function bad(bytes, message)
        local ok, said = pcall(load, file(".mat", bytes))
        lu.assertFalse(ok, message)
        lu.assertStrContains(said, message)
    end
    local whole = array(6, 2, 2, "a", part(2, "\1\2\3\4"))
    bad(mat5(whole):sub(1, -20), "is cut off or damaged at byte 128")
    bad(mat5(array(6, 2, 3, "a", part(2, "1234"))),
        "6 elements, of which 4 are there")
    bad(mat5(array(6, 2, -3, "a", part(2, "1234"))), "sizes that are no sizes")
    bad(mat5(array(99, 1, 1, "a", part(2, "1"))), "unknown class 99")
    bad(mat5(array(1, 1000000, 1000, "a")), "cells or structures in 0 bytes")
    bad(mat5(array(5, 3, 2, "a", part(5, string.pack("<i4", 7)),
        part(5, string.pack("<i4i4i4", 0, 1, 1)), part(9,
            string.pack("<d", 1)))), "in row or column 8 of 3")
    bad(mat5(array(5, 3, 2, "a", part(5, string.pack("<i4", 1)),
        part(5, string.pack("<i4i4i4", 0, 5, 1)), part(9,
            string.pack("<d", 1)))), "is damaged: a sparse matrix")
    bad(mat5(array(5, 2000000000, 1, "a", part(5, ""),
        part(5, string.pack("<i4i4", 0, 0)), part(9, ""))),
        "claims a sparse matrix of 2000000000 rows")
    bad(mat5(part(15, "abcdefgh")), "is cut off or damaged at byte 128")
    bad("MATLAB 5.0", "is cut off in its header")
    bad("\0\0\0\0\255\255\255\127\255\255\255\127\0\0\0\0\2\0\0\0a\0",
        "is cut off, damaged or no MAT file, at byte 0")
    lu.assertEquals(load(file(".mat", mat5(array(4, 2000000000, 0, "a",
        part(2, ""))))).a, "")
    bad(mat5(part(14, part(6, string.pack("<I4I4", 6, 0)) .. part(5,
        string.pack("<i4i4i4", 0, 1, 2000000000)) .. part(1, "a") ..
        part(9, ""))), "2000000000 matrices of hardly an element")
    local deep = array(6, 1, 1, "", part(2, "1"))
    for _ = 1, 200 do
        deep = array(1, 1, 1, "a", deep)
    end
    bad(mat5(deep), "without end")
    -- whatever is wrong with it is told, or it can be read
    local name = file(".mat")
    save({A = ones(3, 3), s = {x = "text", l = {1, 2}}, S = sparse(eye(3))}, name)
    local bytes = common.content(name)
    seed(1)
    warn("@off")
    for _ = 1, 300 do
        local at = math.random(129, #bytes)
        common.write(name, bytes:sub(1, at - 1) .. string.char(
            math.random(0, 255)) .. bytes:sub(at + 1))
        local ok, said = pcall(load, name)
        lu.assertTrue(ok or said:find("load: '", 1, true) ~= nil, said)
    end
    warn("@on")
end

-- A file of version 7.3, packed by gzip: a matrix, one in chunks, a truth
-- value, complex numbers, text, a structure, cells, an array of structures, a
-- sparse matrix and an empty one.
local hdf = ("1f8b0800000000000203ed5b4d6c1347149ed975c88824b0a8082c8ae816681b547e" ..
    "829282a51eb02b520589405472a8548966e3ac63832191ed5486536ea4ea2552a536" ..
    "b72271e188c405f584d44befbd70440255edad47a41ed2d99df7ec9dc9fed88e531c" ..
    "3c5f0e6fe76767665fbef7dece9bf5746ef66aee0bfbe2d9717b3a377ba6502abbf6" ..
    "ff05625c99261a6f15df4f5dfe7264ef91bd7e8131922296683084d8046c7c2e97f1" ..
    "fe399014e41ac8c706d653bf2d0df507607cb5dfec579393dea49b0a709eb1949053" ..
    "50b6cf80d4ffc2bec0d4646ec6934f14de2d9f9679f5e29428bff954c86132063c1c" ..
    "218cff4dfbfeeedb7cd9a956bdfaf73839f704f85bad5556f2b5e6bc94b7d200c129" ..
    "1915d210152691cc25a49cf66f3d605fe2b37bc892892132b1091d0778add76e1862" ..
    "4006966252e80eeb47b4fb3c0b4b2bf36557ccdb0ddcb876fd3225832403e5fa71d9" ..
    "fe1f42f9f9492119daab193fee0cc8e763f2787f41998d13127c8a87a3f1e37d8dfe" ..
    "2813dfcfc2e71848e01fc827a7e4f5a97c6b159e0ee3789552f8a4964dbe72afa7c5" ..
    "906b96cc27530c34c4ff53d41f1779c97c8f5c2dae140a9c1846633da27ec12d949d" ..
    "9adb98afc147c3445d99406fa3553e0e04f455ba5b3b7f4162466b76469538a3ca86" ..
    "3e1a752cc1be0a4c1ea175fb1a0cdc555e5a2ce59d728021dd01e5eaa501bb40ff56" ..
    "3f2aca1bc7bae3df04feb904d680e605f2204806329daddfcccf2d149cfca247835f" ..
    "c9215e9e9f735fceadf2d69f8855bff9eaf5fc2a6ffa931ce4d705efbe75324ce569" ..
    "8832ac952d92bfa1e928bf2e119c7e89dc26998f4469fd135962bdbcd474d68854a9" ..
    "ec9a8962521a1a1a1a1a1a7d036fdf4df9db9ebaefb612ee1b83b7a7fd4abd1a5cb3" ..
    "0cdf53e283ed75e83714b18f427cc3c283b711d15f4343434343434343a33ba064c0" ..
    "4fa8d811f9ba665e9184964db2ea5f1f3244ceaee2fa49b44484e5d14b779c45af86" ..
    "75706f747e701186b3a5313acdbf27e53793f5d5cc6f86e67bb7acff01ac3fd5f6fa" ..
    "538179f345a722aeba9bdf14e77d34f2bccf06b5336d6a7d093cefc3731c3c3f7e76" ..
    "4cee57075953ec25dbb15fdbee3944a7e77d3fb030c6f7c6799fd138272b7e18df1f" ..
    "576f7da039dc0eafbaefff7fec69ff1ff55d887a7e9c1427a63e26016d68e83821f0" ..
    "f2a4dccf0139bfebe3c4cf3d1d277055f2e1ec56a0bde261aec6db8a13bff4789cd8" ..
    "ae3ec4731f068b89d6c323161649dad6835b867deccc0ef1c394e2a605ebfddd9067" ..
    "4d8a9bf5737a7fa5e366336e22ebd3a7e57edf29f6d42debce81bc0df29eeb9b13b9" ..
    "0fe52a4ad8d89da8b885ea096e5f505f2e89961b5076957576cbfa445c4b11fcdcb0" ..
    "f87e7c7ffc5a7363505e8ffadd16daefda9ef8f130fb9439f26ee40b77de8f3f65e1" ..
    "3b82b59ed287e055e3235f523cab7d5267bc4a85c6c355f85e78bdc578687f26dba5" ..
    "467fc743f4bba3e372bf05a7e66f254bf0b67b2b2ffba94c9bf362de43fdce7d1846" ..
    "a2641fbf6ebc7756979d4ad505efc6023bd8a69fdcde7e70ab9f161641a9eca7b7ff" ..
    "fb86df76919f369b79cd89d6f6b5c50bf1fdd0cfd42ff68b9f6e9757cd7d6c90e7d1" ..
    "7cfa23824febbb521fa662cfedebe3150b8f68bdaa8fc11de6c7bf1defefc3fc64d3" ..
    "3f8f04fdb37b67b9760f6709fe0e45cdff25bd69fc07085f1fb9983b0000")
    :gsub("..", function(byte)
        return string.char(tonumber(byte, 16))
    end)

function TestMat:test_version_73()
    local name = file(".mat.gz", hdf)
    local T = load(name)
    lu.assertEquals(T.A:totable(), {{1, 2, 3}, {4, 5, 6}})
    lu.assertEquals(T.k:totable(), {{0, 3, 6, 9}, {1, 4, 7, 10}, {2, 5, 8, 11}})
    lu.assertEquals({T.A.dtype, T.k.dtype}, {"f64", "f32"})
    lu.assertIs(T.yes, true)
    lu.assertTrue(T.z == complex(mat({{1, 3}}, {dtype = "f64"}),
        mat({{2, 4}}, {dtype = "f64"})))
    lu.assertEquals(T.s, "h\u{E9}")
    lu.assertEquals(T.st, {x = 7.0, t = "hi"})
    lu.assertEquals(T.c, {5.0, "ok"})
    lu.assertEquals(T.list, {{v = "ok"}, {v = 5.0}})
    lu.assertTrue(full(T.S) == mat{{0, 6}, {0, 0}, {5, 0}})
    lu.assertEquals(T.e.shape, {0, 3})
    lu.assertNil(T["#refs#"])
    lu.assertEquals(load(name, {names = {"s"}}), {s = T.s})
end

local failures = lu.LuaUnit.run("-o", "tap")
remove_files()
os.exit(failures)
