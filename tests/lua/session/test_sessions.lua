-- save_session and load_session: what comes back, and what bad files do.
local lu = require "luaunit"
local common = require "common"
local parts = require "lumat.parts"
local inf, nan = math.huge, 0 / 0
local program = os.getenv("LUMAT")
local folder = os.tmpname()
os.remove(folder)
local names = {}

local function path(name)
    local p = folder .. "-" .. name .. ".lum"
    names[#names + 1] = p
    return p
end

local content, write = common.content, common.write

-- Saves the variables, forgets them, and brings them back as globals.
local function round_trip(variables, name)
    local list, p = {}, path(name or "round")
    for key, value in pairs(variables) do
        _G[key] = value
        list[#list + 1] = key
    end
    local report = save_session(p, list)
    for key in pairs(variables) do _G[key] = nil end
    local named = nil -- as variables called like a function have to be
    for _, key in ipairs(list) do
        if require "lumat"[key] ~= nil then named = list end
    end
    load_session(p, named)
    local back = {}
    for key in pairs(variables) do
        back[key] = _G[key]
        _G[key] = nil
    end
    return back, report
end

-- A session file with these records in place of what save_session writes.
local function forge(records, write_more)
    local p = path("forged")
    local archive <close> = parts.create(p)
    parts.write_matrix(archive, "A.npy", mat{{1, 2, 3}, {4, 5, 6}})
    parts.write_text(archive, "session.txt", records)
    if write_more then write_more(archive) end
    parts.commit(archive)
    return p
end

TestSessions = {}

function TestSessions:tearDown()
    for _, name in ipairs(names) do os.remove(name) end
    names = {}
end

function TestSessions:test_plain_values()
    local odd = {}
    for c = 0, 255 do odd[#odd + 1] = string.char(c) end
    local x = {a1 = 1, a2 = 1.0, a3 = -0.0, a4 = inf, a5 = -inf,
        a6 = math.mininteger, a7 = math.maxinteger, a8 = 2.0 ^ -1074,
        a9 = 0.1, b1 = true, b2 = false, b3 = "", b4 = table.concat(odd),
        b5 = "t1 \\032 \n"}
    local y = round_trip(x)
    for key, value in pairs(x) do
        lu.assertTrue(y[key] == value, key)
        lu.assertEquals(math.type(y[key]), math.type(value), key)
    end
    lu.assertEquals(1 / y.a3, -inf)
    y = round_trip({q = nan})
    lu.assertTrue(y.q ~= y.q)
end

function TestSessions:test_tables()
    local shared = {7}
    local t = {1, nil, 3, shared, again = shared, [2.5] = "x", [true] = false,
        [shared] = "by table", [-1] = "below"}
    t.self = t
    local y = round_trip({t = t, u = shared})
    lu.assertEquals(y.t[1], 1)
    lu.assertNil(y.t[2])
    lu.assertTrue(y.t[4] == y.t.again and y.t[4] == y.u)
    lu.assertTrue(y.t.self == y.t)
    lu.assertEquals(y.t[2.5], "x")
    lu.assertIsFalse(y.t[true])
    lu.assertEquals(y.t[y.u], "by table")
    lu.assertEquals(y.t[-1], "below")
    local deep, list = {}, {}
    deep.last = list
    for i = 1, 20000 do deep = {deep, i} end
    y = round_trip({deep = deep}).deep
    for i = 20000, 1, -1 do
        assert(y[2] == i)
        y = y[1]
    end
    lu.assertEquals(y.last, {})
end

function TestSessions:test_matrices()
    local special = mat({{nan, inf, -inf}, {-0.0, 2.0 ^ -149, 1}})
    local x = {A = special, B = rand(5, 7, {dtype = "f64"}), v = vec{1, 2, 3},
        m = special:isnan(), e = zeros(0, 3), w = zeros(0),
        large = rand(1500, 1111), wide = rand(2, 1200000)}
    local y = round_trip(x)
    for key, value in pairs(x) do
        lu.assertEquals(y[key].dtype, value.dtype, key)
        lu.assertEquals(y[key].shape, value.shape, key)
        lu.assertEquals(y[key].device, value.device, key)
    end
    lu.assertTrue(y.B == x.B and y.v == x.v and y.m == x.m and
        y.large == x.large and y.wide == x.wide)
    for i = 1, 2 do
        for j = 1, 3 do
            lu.assertTrue(common.same(y.A(i, j), special(i, j)))
        end
    end
end

function TestSessions:test_views_stay_views()
    local A = mat{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}
    local y = round_trip({A = A, At = A.T, row = A[2], block = A["2:3, ::2"],
        twice = {A, A[3]}, back = A["::-1, :"]})
    y.A[{2, 3}] = 70
    lu.assertEquals(y.At(3, 2), 70)
    lu.assertEquals(y.row(3), 70)
    lu.assertEquals(y.block(1, 2), 70)
    lu.assertEquals(y.back(2, 3), 70)
    lu.assertTrue(y.twice[1] == y.A)
    y.twice[2][1] = -9
    lu.assertEquals(y.A(3, 1), -9)
    -- without their owner, views are matrices of their own
    y = round_trip({At = A.T, row = A[1]})
    lu.assertTrue(y.At == A.T and y.row == A[1])
end

-- Four times as many take about four times as long, best of three.
function TestSessions:test_many()
    local p = path("many")
    local function seconds(count)
        local best, many = math.huge, {}
        for i = 1, count do many[i] = zeros(2, 2) end
        _G.many = many
        for _ = 1, 3 do
            local start = clock()
            save_session(p, {"many"})
            best = math.min(best, clock() - start)
        end
        _G.many = nil
        return best
    end
    lu.assertTrue(seconds(6000) / seconds(1500) < 9)
end

function TestSessions:test_sparse()
    local S = sparse(vec{1, 3, 3}, vec{2, 1, 4}, vec{5, -1, 0.1}, 3, 4)
    local D = sparse(vec{1, 2}, vec{1, 2}, vec({0.1, 0.2}, {dtype = "f64"}), 2,
        2)
    local n = 70000
    local many = sparse(range(1, n), range(1, n), rand(n), n, n)
    local y = round_trip({S = S, D = D, none = sparse(zeros(2, 2)), many = many,
        complex = S * (1 + 2 * im)})
    lu.assertTrue(y.complex == S * (1 + 2 * im))
    lu.assertEquals(y.complex.dtype, "c64")
    lu.assertTrue(y.S == S and y.D == D and y.many == many)
    lu.assertEquals(y.D.dtype, D.dtype)
    lu.assertEquals(y.none.nnz, 0)
    lu.assertEquals(y.none.shape, {2, 2})
end

function TestSessions:test_what_is_left_out()
    local freed = ones(2, 2)
    freed:free()
    local _, report = round_trip({f = print, co = coroutine.create(print),
        file = io.stdout, lib = string, freed = freed,
        kept = setmetatable({1, f = print}, {__index = {}})})
    lu.assertEquals(report.variables, 1)
    local text = tostring(report)
    for _, part in ipairs{"f (a function)", "co (a thread)",
        "file (a file)", "lib (a module)",
        "freed (a matrix that is gone)", "kept.f (a function)",
        "kept's metatable (the entries are saved)"} do
        lu.assertStrContains(text, part)
    end
end

-- What objects of the library's are is not in their entries.
function TestSessions:test_objects()
    local v, X = vec{3, 1, 3, 0 / 0}, vec{1, 2, 3, 4}
    local T = frame{k = {"a", "b", "a"}, v = vec{1, 2, 3}}
    local x = {h = histogram(vec{1, 2, 2}), u = unique(v, {counts = true}),
        placed = unique(v, {places = true}), none = groupby(zeros(0)),
        texts = groupby{"b", "a", "b", "c"}, many = groupby({v:le(2), {"x", "y", "x", "x"}}),
        framed = T:groupby "k", seen = inspect(mat{{1, 2}}),
        line = plot(vec{1, 2, 3}, {title = "p"}),
        grid = subplot{plot(vec{1, 2}), hist(vec{1, 2, 2})}, list = kernels()}
    local y, report = round_trip(x)
    lu.assertEquals(report.skipped, {})
    for name, value in pairs(x) do
        lu.assertEquals(tostring(y[name]), tostring(value), name)
    end
    lu.assertTrue(y.h.counts == x.h.counts and y.h.edges == x.h.edges)
    lu.assertTrue(y.u.counts == x.u.counts and y.placed.places == x.placed.places)
    lu.assertErrorMsgContains("places were not asked for", function()
        return y.u.places
    end)
    lu.assertEquals(y.texts.keys, {"a", "b", "c"})
    for _, name in ipairs{"texts", "many"} do
        lu.assertTrue(y[name]:sum(X) == x[name]:sum(X), name)
    end
    lu.assertTrue(y.framed:sum("v").v == x.framed:sum("v").v)
    lu.assertEquals({y.seen.max, y.line.high}, {2, x.line.high})
    local svg = common.scratch ".svg"
    save(y.grid, svg)
    lu.assertStrContains(common.taken(svg), "<svg")
    lu.assertTrue(round_trip{h = y.h}.h.counts == x.h.counts)
end

-- Keys in which somebody wrote since: the groups are what they were.
function TestSessions:test_groups_of_changed_keys()
    local k = vec({2, 5, 2, 0 / 0}, {dtype = "f64"})
    local g = groupby({k, {"x", "y", "y", "x"}})
    local sums = g:sum(vec{1, 2, 3, 4})
    k[{{}}] = 7
    local back = round_trip{g = g}.g
    lu.assertTrue(back:sum(vec{1, 2, 3, 4}) == sums)
    lu.assertTrue(back.keys[1] == vec{2, 2, 5})
end

-- What cannot be made again is told of as it is, in programs by a warning.
function TestSessions:test_objects_left_out()
    local function told(code, ...)
        local file = common.scratch ".lua"
        write(file, code:format(...))
        local pipe <close> = io.popen(("'%s' '%s' 2>&1"):format(program, file))
        local text = pipe:read "a"
        os.remove(file)
        return text
    end
    local err = told([[
        local e = setmetatable({}, {__metatable = "closed", __name = "thing"})
        x, f, t, list = e, print, setmetatable({1}, {}), {print}
        save_session(%q)]], path "left")
    lu.assertStrContains(err, "save_session: left out: x (an object: " ..
        "closed), t's metatable (the entries are saved)")
    lu.assertNotStrContains(err, "list")
    err = told("f = print save_session(%q, {'f'})", path "left")
    lu.assertStrContains(err, "f (a function)")
end

-- Made up by somebody: an error, and nothing is set.
function TestSessions:test_objects_of_damaged_files()
    for _, kind in ipairs{"histogram", "unique", "groups", "chart", "shown",
        "frame_groups"} do
        local p = forge("lumat session 1\nt 1\nd 2 1 " .. kind .. "\ng shist v2\n")
        lu.assertErrorMsgContains("that is none", load_session, p)
    end
end

function TestSessions:test_names_of_parts()
    local p = path("parts")
    _G.A, _G.net = ones(1), {w = ones(2), ["a/../b"] = ones(3), [1] = ones(4)}
    _G["odd name"] = ones(5)
    save_session(p, {"A", "net", "odd name"})
    local A, net = _G.A, _G.net
    _G.A, _G.net, _G["odd name"] = nil, nil, nil
    local archive <close> = parts.open(p)
    for _, name in ipairs{"A.npy", "net.w.npy", "odd_name.npy"} do
        lu.assertTrue(parts.read_matrix(archive, name, common.device).rows > 0)
    end
    load_session(p)
    lu.assertTrue(_G.net["a/../b"] == ones(3) and _G.net[1] == ones(4))
    lu.assertTrue(_G["odd name"] == ones(5))
    _G.A, _G.net, _G["odd name"] = nil, nil, nil
end

-- The archive as another program may write it: parts packed by deflate (in one
-- block that is stored), numbers of 64 bits where 32 would do, a comment.
local function rewritten(archive, changed)
    local last = #archive - 21
    local count = ("<I2"):unpack(archive, last + 10)
    local at = ("<I4"):unpack(archive, last + 16) + 1
    local out, list = "", ""
    for _ = 1, count do
        local crc, _, length, n, extra, _, _, _, _, place =
            ("<I4I4I4I2I2I2I2I2I4I4"):unpack(archive, at + 16)
        local name = archive:sub(at + 46, at + 45 + n)
        local more = ("<I2"):unpack(archive, place + 29)
        local begin = place + 31 + n + more
        local data = archive:sub(begin, begin + length - 1)
        if changed.packed then
            data = ("<BI2I2"):pack(1, length, length ~ 0xffff) .. data
        end
        local method = changed.packed and 8 or 0
        local fixed = ("<I2I2I2I4I4"):pack(45, 0, method, 0, crc)
        local sizes, wide = ("<I4I4"):pack(#data, length), ""
        local where = #out
        if changed.wide then
            wide = ("<I2I2I8I8I8"):pack(1, 24, length, #data, where)
            sizes, where = ("\xff"):rep(8), 0xffffffff
        end
        list = list .. "PK\1\2\45\0" .. fixed .. sizes ..
            ("<I2I2I2I2I2I4I4"):pack(n, #wide, 0, 0, 0, 0, where) .. name .. wide
        out = out .. "PK\3\4" .. fixed .. sizes .. ("<I2I2"):pack(n, 0) ..
            name .. data
        at = at + 46 + n + extra
    end
    local ending = ("<I4I2I2I4I4"):pack(0, count, count, #list, #out)
    if changed.wide then
        local size = #list
        list = list .. "PK\6\6" .. ("<I8I2I2I4I4I8I8I8I8"):pack(44, 45, 45, 0,
            0, count, count, size, #out) ..
            "PK\6\7" .. ("<I4I8I4"):pack(0, #out + size, 1)
        ending = "\0\0\0\0" .. ("\xff"):rep(12)
    end
    return out .. list .. "PK\5\6" .. ending .. "\7\0comment"
end

function TestSessions:test_archives_of_other_programs()
    local p, q = path "own", path "other"
    local A, words = rand(30, 20), ("words "):rep(999)
    kept_matrix, kept_words = A, words
    save_session(p, {"kept_matrix", "kept_words"})
    for _, changed in ipairs {{}, {packed = true}, {wide = true},
            {packed = true, wide = true}} do
        write(q, rewritten(content(p), changed))
        kept_matrix, kept_words = nil, nil
        load_session(q)
        lu.assertTrue(kept_matrix == A)
        lu.assertEquals(kept_words, words)
        local bytes = content(q)
        for cut = 1, #bytes - 1, 97 do
            write(q, bytes:sub(1, cut))
            lu.assertFalse((pcall(load_session, q)))
        end
    end
    kept_matrix, kept_words = nil, nil
end

function TestSessions:test_wrong_arguments()
    local function fails(text, f, ...)
        lu.assertErrorMsgContains(text, f, ...)
    end
    fails("path is missing, expected a file's name", save_session)
    fails("zero byte", save_session, "a\0b")
    fails("'x.csv' does not end in .lum; save(A", save_session, "x.csv")
    fails("load \"f.npy\" reads one", load_session, "x.npy")
    fails("no variable nothing_so_called", save_session, path("none"),
        {"nothing_so_called"})
    fails("a name is 3", save_session, path("none"), {3})
    fails("names is 3, expected a table", save_session, path("none"), 3)
    fails("No such file", load_session, folder .. "-none")
    fails("No such file", save_session, folder .. "/none/x")
    fails("test_sessions.lua:", function()
        load_session(folder .. "-none")
    end)
    write(path("text"), "no archive")
    fails("is no archive", load_session, folder .. "-text")
    write(path("empty"), "")
    fails("is no archive", load_session, folder .. "-empty")
end

-- Frames are what they were, and what they share is shared again.
function TestSessions:test_frames()
    local T = frame{{"a b", {1, nan, 3}}, {"s", {"x", false, "y z"}},
        {"mask", {true, false, true}}}
    T.d = dates({"1.2.2020", "29.2.2020", "1.1.1970"}, "%d.%m.%Y")
    T.d[3] = nil
    local U = T:select{"s", "a b"}
    local back, report = round_trip{sessions_T = T, sessions_U = U,
        sessions_s = T.s, sessions_list = {T, {T.d}}}
    lu.assertEquals(#report.skipped, 0)
    local new = back.sessions_T
    lu.assertTrue(new == T)
    lu.assertTrue(back.sessions_U == U)
    lu.assertTrue(rawequal(new.s, back.sessions_U.s))
    lu.assertTrue(rawequal(new.s, back.sessions_s))
    lu.assertTrue(rawequal(new, back.sessions_list[1]))
    lu.assertEquals(back.sessions_list[2][1]:totable(),
        {"01.02.2020", "29.02.2020", false})
    lu.assertEquals(new.mask.dtype, "bool")
    new["a b"][1] = 9
    lu.assertEquals(back.sessions_U["a b"][1], 9)
    lu.assertTrue(round_trip{sessions_T = frame{}}.sessions_T == frame{})
end

-- Records of frames that are none.
function TestSessions:test_forged_frames()
    local head = "lumat session 1\nm 1 A.npy " .. common.device .. "\n" ..
        "w 2 1 1 3 1 1 0 0\n"
    local function load(records)
        local ok, message = pcall(load_session, forge(head .. records .. "\n"))
        _G.forged = nil
        return ok, message
    end
    local frame_of = "d 3 4 frame\nt 4\nt 5\nt 6\ne 4 snames v5\n" ..
        "e 4 scolumns v6\n"
    lu.assertTrue((load(frame_of .. "e 5 i1 sx\ne 6 sx v2\ng sforged v3")))
    local text = "d 3 4 text\nt 4\nt 5\ne 4 slabels v5\ne 5 i1 sx\n"
    for _, records in ipairs{
        frame_of .. "e 5 i1 sx\ne 6 sy v2", frame_of .. "e 5 i1 i1\ne 6 i1 v2",
        frame_of .. "e 5 i1 sx\ne 5 i2 sx\ne 6 sx v2",
        frame_of .. "e 5 i1 sx\ne 6 sx v1", frame_of .. "e 5 i1 sx\ne 6 sx sv",
        frame_of .. "e 5 i1 sx\ne 6 sx v3",
        "d 3 4 frame\nt 4", "d 3 9 frame", "d 3 3 frame", "d 3 2 frame",
        "d 3 4 fame\nt 4", "d 3 4\nt 4", text, text .. "e 4 svector v1",
        text .. "e 4 svector v2", -- f32, where codes are f64
        "d 3 4 date\nt 4\ne 4 svector v2\ne 4 sformat s%Y",
    } do
        local ok, message = load(records)
        lu.assertFalse(ok, records)
        lu.assertStrContains(message, "is no session file of this version")
    end
end

-- Whatever the bytes are, loading gives an error or values, and an error
-- changes no variable.
function TestSessions:test_damaged_files()
    local p = path("damaged")
    _G.sessions_A, _G.sessions_t = mat{{1, 2}, {3, 4}}, {1, "x", {2}}
    _G.sessions_S = sparse(eye(3))
    save_session(p, {"sessions_A", "sessions_t", "sessions_S"})
    local good, failures = content(p), 0
    _G.sessions_A, _G.sessions_t, _G.sessions_S = nil, nil, nil
    for i = 1, #good do
        local byte = (good:byte(i) + 1 + i * 37 % 255) % 256
        write(p, good:sub(1, i - 1) .. string.char(byte) .. good:sub(i + 1))
        if not pcall(load_session, p) then
            failures = failures + 1
            lu.assertNil(_G.sessions_A)
        end
        _G.sessions_A, _G.sessions_t, _G.sessions_S = nil, nil, nil
    end
    lu.assertTrue(failures > #good / 2)
    for i = 0, #good - 1, 7 do
        write(p, good:sub(1, i))
        if pcall(load_session, p) then -- the archive's empty comment is cut
            lu.assertTrue(i >= #good - 3)
            lu.assertTrue(_G.sessions_A == mat{{1, 2}, {3, 4}})
        end
    end
    _G.sessions_A, _G.sessions_t, _G.sessions_S = nil, nil, nil
end

function TestSessions:test_forged_records()
    local head = "lumat session 1\nm 1 A.npy " .. common.device .. "\n"
    local function load(records)
        local ok, message = pcall(load_session, forge(head .. records))
        _G.forged = nil
        return ok, message
    end
    lu.assertTrue(load("w 2 1 2 3 2 1 3 0\ng sforged v2\n"))
    for _, records in ipairs{"w 2 1 2 3 2 1 3 1", "w 2 1 2 3 2 1 3 -1",
        "w 2 1 2 4 2 1 3 0", "w 2 1 3 2 2 1 1 0", "w 2 1 1 2 2 1 1 0",
        "w 2 1 2 9223372036854775807 9223372036854775807 1 1 0",
        "w 2 1 2 137438953472 137438953472 0 0 0",
        "w 2 1 2 137438953472 134217728 0 0 0",
        "w 2 1 2 4611686018427387904 2 4 1 0", "w 2 1 2 2 2 -1 1 0",
        "w 2 9 2 2 2 1 1 0", "w 2 1 2 2 2 x 1 0", "w 2 1 2 2 2", "w",
        "t 2\ne 2 dnan i1", "t 2\ne 2 v7 i1", "t 2\ne 2 i1 v7", "e 2 i1 i1",
        "t 2\ne 2 i1", "t 2\ne 2 ix i1", "g sforged v9", "g sforged",
        "g i3 i4", "z 1 2", "e", "g", "e ", "t 2\ne 2  i1", "t 2\ne 2 i1 i1 i1",
        "t 2\ne 2 i1.5 i1", "t 2\ne 2 i1 d", "t 2\ne 2 i1 dx", "t 2 3", "t x",
        "t 2\nt 2", "g sforged i1\ng sforged i2", "t 2\ne 2 i1 i" ..
        ("1"):rep(99), "m 2 A.npy cpu", "g sforged x", "gg sforged i1",
        "p 2 A.npy cpu f32 2 2", "p 2 none cpu f32 2 2",
        "m 2 none cpu", "m 2 session.txt cpu"} do
        local ok, message = load(records .. "\n")
        lu.assertFalse(ok, records)
        lu.assertStrContains(message, "load_session: ", records)
    end
    local ok, message = pcall(load_session, forge("lumat session 2\n"))
    lu.assertFalse(ok)
    lu.assertStrContains(message, "record 1: lumat session 2")
    -- entries of a sparse matrix that lie outside of it
    lu.assertFalse((pcall(load_session, forge(head ..
        "p 2 S cpu f32 2 2\ng sforged v2\n", function(archive)
            parts.write_text(archive, "S", string.pack("<i8i8d", 5, 0, 1))
        end))))
end

-- A view that repeats what it is a view of, as only strides of zero may, is
-- looked at as its copy is, and in no time.
local function repeated(values, dtype, view)
    local p = path("repeated")
    do
        local archive <close> = parts.create(p)
        local A = mat({values}, {dtype = dtype ~= "bool" and dtype or nil})
        parts.write_matrix(archive, "A.npy", dtype == "bool" and A:gt(0) or A)
        parts.write_text(archive, "session.txt", ("lumat session 1\nm 1 A.npy " ..
            "%s\nw 2 1 2 %s\ng sforged v2\n"):format(zeros(1).device, view))
        parts.commit(archive)
    end
    load_session(p)
    local B = _G.forged
    _G.forged = nil
    return B
end

local function same_facts(a, b, what)
    for key, value in pairs(b) do
        if type(value) == "table" then
            same_facts(a[key], value, what .. key)
        elseif type(value) == "number" then
            local near = common.same(a[key], value) or
                math.abs(a[key] - value) <= 1e-6 * math.abs(value)
            lu.assertTrue(near, what .. key)
        end
    end
end

local function bars(A)
    local ok, drawn = pcall(hist, A)
    return ok and tostring(drawn)
end

function TestSessions:test_views_that_repeat()
    for _, values in ipairs{{1, -2, 3, 0, 2.5}, {1, nan, 3, inf, 0},
        {inf, inf, inf, inf, inf}, {inf, -inf, inf, inf, inf},
        {nan, nan, nan, nan, nan}, {0, 0, 0, 0, 0}, {0, 0, 1, 0, 0},
        {1e300, -1e300, 2e300, 5, 6}} do
        for _, dtype in ipairs{"f32", "f64", "bool"} do
            for _, view in ipairs{"5 5 0 1 0", "5 5 1 0 0", "5 5 0 0 2",
                "7 5 0 1 0", "5 9 1 0 0", "3 5 0 1 0", "4 3 0 0 0"} do
                local B = repeated(values, dtype, view)
                local F, what = B:clone(), view .. dtype .. values[1]
                lu.assertEquals(tostring(B), tostring(F))
                lu.assertEquals(tostring(heat(B)), tostring(heat(F)))
                lu.assertEquals(bars(B), bars(F))
                same_facts(inspect(B), inspect(F), what)
            end
        end
    end
    local B, began = repeated({1, 2}, "f32", "1000000000 1000000000 0 0 1"),
        os.clock()
    lu.assertStrContains(tostring(B), "of 1 000 000 000 000 000 000, no NaN")
    local facts = inspect(B)
    lu.assertEquals({facts.max, facts.zeros, facts.norm}, {2, 0, 2e9})
    lu.assertStrContains(tostring(heat(B)), "means of up to")
    lu.assertStrContains(tostring(hist(B)), "2 ")
    lu.assertTrue(os.clock() - began < 1)
    B, began = repeated({1, nan}, "f32", "1000000000 2 0 1 0"), os.clock()
    lu.assertStrContains(tostring(B), "999 999 994 NaN (first at [5, 2])")
    lu.assertTrue(os.clock() - began < 1)
    -- more elements than there are, by strides that overlap; more than fit
    for _, view in ipairs{"2 2 1 1 0", "4 4 1 0 0", "3037000500 3037000500 0 0 0",
        "137438953472 137438953472 0 0 0"} do
        lu.assertErrorMsgContains("record 3", repeated, {1, 2, 3}, "f64", view)
    end
end

-- No file makes print, _G or sum another one; all is checked before anything
-- is set.
function TestSessions:test_names_that_no_file_sets()
    local head = "lumat session 1\nm 1 A.npy " .. common.device .. "\n"
    local own = {}
    for name in ("_G _VERSION print tostring string os require load sum " ..
        "matmul zeros save"):gmatch("%S+") do
        own[name] = _G[name]
    end
    own.t = _G.t
    local records = {}
    for name in pairs(own) do records[#records + 1] = "g s" .. name .. " v1" end
    local p = forge(head .. table.concat(records, "\n") ..
        "\ng s_hidden v1\ng s__index v1\ng sforged v1\n")
    local report = load_session(p)
    local same = _G.print == own.print and _G._G == own._G and _G.sum == own.sum
    for name, value in pairs(own) do rawset(_G, name, value) end
    lu.assertTrue(same)
    lu.assertNil(rawget(_G, "_hidden"))
    lu.assertNil(rawget(_G, "__index"))
    lu.assertEquals(report.variables, 1)
    lu.assertStrContains(tostring(report), "print (Lua's own)")
    lu.assertStrContains(tostring(report), "sum (a function of lumat's)")
    lu.assertStrContains(tostring(report), "_hidden (Lua's own)")
    lu.assertEquals(_G.forged(2, 3), 6)
    _G.forged = nil
    -- asked for by name, one called like a function comes, and alone
    p = forge(head .. "g st v1\ng sforged v1\ng sprint v1\n")
    report = load_session(p)
    lu.assertStrContains(tostring(report), 'load_session("' .. p .. '", {"t"}) brings t')
    lu.assertEquals(_G.t, own.t)
    _G.forged = nil
    report = load_session(p, {"t"})
    local got = _G.t
    _G.t = own.t
    lu.assertEquals(got(2, 3), 6)
    lu.assertNil(rawget(_G, "forged"))
    lu.assertEquals(report.variables, 1)
    local ok, message = pcall(load_session, p, {"nothing"})
    lu.assertFalse(ok)
    lu.assertStrContains(message, 'load_session: there is no "nothing" in')
    lu.assertFalse((pcall(load_session, p, "t")))
    -- a record that is wrong at the end
    p = forge(head .. "g sforged v1\ng sother v9\n")
    lu.assertFalse((pcall(load_session, p)))
    lu.assertNil(rawget(_G, "forged"))
end

-- A device that is not here: the default one, and a note.
function TestSessions:test_other_device()
    local p = forge("lumat session 1\nm 1 A.npy cuda:77\ng sforged v1\n")
    local old, said = io.stderr, ""
    io.stderr = {write = function(_, text) said = said .. text end}
    local ok, message = pcall(load_session, p)
    io.stderr = old
    lu.assertTrue(ok, message)
    lu.assertStrContains(said, "its matrices are on " .. common.device)
    lu.assertEquals(_G.forged(2, 3), 6)
    _G.forged = nil
end

-- A full disk, here a limit on a file's size, leaves the old file.
function TestSessions:test_full_disk()
    local root = folder .. "-full" -- where no other process writes
    os.execute("mkdir '" .. root .. "'")
    local p, log = root .. "/full.lum", root .. "/log"
    write(p, "old")
    os.execute(("(trap '' XFSZ; ulimit -f 64; exec '%s' --device cpu -e " ..
        "'A = rand(1000, 1000) save_session(\"%s\", {\"A\"})') 2>'%s'")
        :format(program, p, log))
    lu.assertEquals(content(p), "old")
    lu.assertStrContains(content(log), "File too large")
    local left <close> = io.popen("ls -A '" .. root .. "'; rm -r '" .. root .. "'")
    lu.assertEquals(left:read("a"), "full.lum\nlog\n")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
