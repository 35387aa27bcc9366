-- What the language's tests share: the device they compute on, comparisons
-- that tell NaN, infinities and the sign of zero apart, and the same work
-- done on the GPU and on the CPU.
local lu = require "luaunit"
local common = {device = os.getenv("LUMAT_TEST_DEVICE") or "cpu"}
common.on_gpu = common.device ~= "cpu"
-- The folder of the sources, with a slash behind it.
common.root = select(2, ...):match "^(.*)tests/lua/common%.lua$"
device(common.device) -- a device that is not there is a failure

common.inf, common.nan = math.huge, 0 / 0
common.unit = {f32 = 2.0 ^ -23, f64 = 2.0 ^ -52, c64 = 2.0 ^ -23,
    c128 = 2.0 ^ -52}
common.smallest = {f32 = 2.0 ^ -149, f64 = 2.0 ^ -1074}

-- Are x and y the same number? NaN is one value, 0 and -0 are two.
function common.same(x, y)
    if x ~= x then return y ~= y end
    return x == y and (x ~= 0 or 1 / x == 1 / y)
end

-- Do x and y differ by at most so many units in y's last place?
function common.within(x, y, ulps, dtype)
    if ulps == 0 or x ~= x or y ~= y or type(y) ~= "number" or
        math.abs(x) == math.huge or math.abs(y) == math.huge then
        return common.same(x, y)
    end
    local spacing = math.max(math.abs(y) * common.unit[dtype],
        common.smallest[dtype])
    return math.abs(x - y) <= ulps * spacing
end

-- x as f32 holds it.
function common.single(x)
    return (string.unpack("f", string.pack("f", x)))
end

-- {{1, 2}, {3, 4}} and {1, 2} as lists of (value, name) with their shape.
local function flattened(t)
    local list, names = {}, {}
    for i, row in ipairs(t) do
        if type(row) == "table" then
            for j, x in ipairs(row) do
                list[#list + 1] = x
                names[#list] = string.format("[%d, %d]", i, j)
            end
        else
            list[#list + 1] = row
            names[#list] = string.format("[%d]", i)
        end
    end
    return list, names
end

local function show(x)
    return type(x) == "number" and string.format("%.17g", x) or tostring(x)
end

-- A's elements are those of the (nested) table, within so many ulps (0).
function common.equals(A, expected, what, ulps)
    what = (what or "result") .. ": "
    if type(A) ~= "userdata" then
        lu.fail(what .. "a matrix expected, got " .. show(A))
    end
    local rows = #expected
    local cols = rows > 0 and type(expected[1]) == "table" and #expected[1]
    lu.assertEquals(A.rows, rows, what .. "rows")
    if cols then lu.assertEquals(A.cols, cols, what .. "columns") end
    if rows > 0 then lu.assertEquals(A.ndim, cols and 2 or 1, what .. "ndim") end
    local got = flattened(A:totable())
    local want, names = flattened(expected)
    for i = 1, #want do
        if not common.within(got[i], want[i], ulps or 0, A.dtype) then
            lu.fail(what .. names[i] .. " is " .. show(got[i]) ..
                ", expected " .. show(want[i]))
        end
    end
end

-- All of a file, or nil when there is none.
function common.content(path)
    local file <close> = io.open(path, "rb")
    return file and file:read("a")
end

-- All of a file, which is removed.
function common.taken(path)
    local text = assert(common.content(path))
    os.remove(path)
    return text
end

-- A name that no file has, with this ending.
function common.scratch(ending)
    local name = os.tmpname()
    os.remove(name)
    return name .. ending
end

-- Gives three things: file(ending, content), which gives the name of a new file
-- and writes that content if there is some; what all those names begin with;
-- and a function that removes all files whose names begin so.
function common.new_files()
    local start, count = common.scratch(""), 0
    local function file(ending, content)
        count = count + 1
        local name = start .. "-" .. count .. ending
        if content then common.write(name, content) end
        return name
    end
    return file, start, function() os.execute("rm -f '" .. start .. "'-*") end
end

-- A folder that is not there yet, and a function that gives others in it.
function common.folders()
    local root, count = common.scratch(""), 0
    return root, function()
        count = count + 1
        return root .. "/" .. count
    end
end

-- A row of an experiment as the runner keeps it, whose interval is so much of
-- the median below and above it.
function common.row(p, seconds, below, above, more)
    local r = {p = p, status = "ok", samples = {seconds, seconds, seconds},
        median = seconds, low = (1 - below) * seconds,
        high = (1 + above) * seconds}
    for key, value in pairs(more or {}) do r[key] = value end
    return r
end

function common.write(path, text, mode)
    local file <close> = assert(io.open(path, mode or "wb"))
    file:write(text)
end

-- x and y are numbers that differ by at most tolerance, relative to y.
function common.near(x, y, tolerance, what)
    if not (math.abs(x - y) <= tolerance * math.max(math.abs(y), 1e-300)) and
        not common.same(x, y) then
        lu.fail((what or "result") .. " is " .. show(x) .. ", expected " ..
            show(y))
    end
end

-- f raises a message that holds each of the texts; gives it back.
function common.raises(f, ...)
    local ok, message = pcall(f)
    if ok then lu.fail("no error, expected one with " .. table.concat({...}, ", ")) end
    lu.assertEquals(type(message), "string")
    for _, text in ipairs {...} do
        lu.assertStrContains(message, text)
    end
    return message
end

local function compare(got, expected, ulps, what)
    if type(expected) ~= "userdata" then
        if not common.within(got, expected, ulps, "f32") then
            lu.fail(what .. ": " .. show(got) .. " on the GPU, " ..
                show(expected) .. " on the CPU")
        end
        return
    end
    lu.assertEquals(got.dtype, expected.dtype, what)
    lu.assertEquals(got.shape, expected.shape, what)
    lu.assertNotEquals(got.device, "cpu", what)
    common.equals(got, expected:totable(), what, ulps)
end

-- What f gives on the GPU it gives on the CPU: bit for bit, or within so many
-- units in the last place. Nothing to compare when the tests run on the CPU.
function common.agrees(f, what, ulps)
    if not common.on_gpu then return f() end
    device("cpu")
    local expected = table.pack(pcall(f))
    device(common.device)
    assert(expected[1], expected[2])
    local got = table.pack(f())
    lu.assertEquals(got.n, expected.n - 1, what)
    for i = 1, got.n do compare(got[i], expected[i + 1], ulps or 0, what) end
    return table.unpack(got, 1, got.n)
end

-- A matrix whose elements say where they are: 21 is row 2, column 1.
function common.places(m, n, dtype)
    return fromfn(m, n, function(i, j) return 10 * i + j end, {dtype = dtype})
end

-- The names of an operation's kernels on the device under test.
function common.rungs(operation)
    local names = {}
    for _, k in ipairs(kernel_list()) do
        if k.operation == operation and k.available then
            names[#names + 1] = k.name
        end
    end
    return names
end

-- f(kernel, tile) for every kernel of matmul, and every tile it may have.
function common.each_kernel(f)
    for _, name in ipairs(common.rungs("matmul")) do
        local tiles = name == "tiled" and {8, 16, 32} or {0}
        for _, tile in ipairs(tiles) do
            local ok, problem = pcall(f, name, tile > 0 and tile or nil)
            -- a kernel may refuse a type, saying so
            if not ok and not tostring(problem):find("kernel " .. name ..
                " cannot", 1, true) then
                error(problem, 0)
            end
        end
    end
end

-- A product by the CPU's three-loop kernel in f64, where integers are exact.
function common.reference(A, B)
    return matmul(A:to("cpu"):f64(), B:to("cpu"):f64(), {kernel = "reference"})
end

function common.exactly(got, expected, what)
    lu.assertEquals(got.shape, expected.shape, what)
    lu.assertIsTrue(got:to("cpu"):f64() == expected, what)
end

-- What write leaves in a 3x3 matrix of places, and what it should leave there.
function common.after(write, expected)
    local A = common.places(3, 3)
    write(A)
    common.equals(A, expected)
end

-- Raises what the library takes for the end of a call that the user stopped:
-- a true one would end the tests.
function common.interrupt()
    local checks = require "lumat.checks"
    checks.is_interrupt = function(message) return message == "stopped" end
    error("stopped", 0)
end

function common.whole(m, n, dtype, seed)
    return randint(-4, 4, m, n, {seed = seed, dtype = dtype})
end

function common.uniform(m, n, dtype, seed)
    return rand(m, n, {seed = seed, dtype = dtype, low = -1, high = 1})
end

common.sparse_types = {"f32", "f64", "c64", "c128"}

-- A random m x n matrix of whole numbers, most of them 0 but for some seeds:
-- shares are those that are not, one after the other.
function common.pattern(m, n, dtype, seed, shares)
    local share = shares[seed % #shares + 1]
    local part = ({c64 = "f32", c128 = "f64"})[dtype] or dtype
    local function some(k)
        return common.whole(m, n, part, seed + k) %
            rand(m, n, {seed = seed + k + 1, dtype = part}):lt(share)
    end
    return part == dtype and some(0) or complex(some(0), some(7))
end

-- Calls f(A, seed) for patterns of each shape and of each of these types.
function common.each_pattern(shapes, types, shares, f)
    local seed = 0
    for _, s in ipairs(shapes) do
        for _, dtype in ipairs(types) do
            seed = seed + 1
            f(common.pattern(s[1], s[2], dtype, 100 * seed, shares), seed)
        end
    end
end

-- Is the sparse S the dense A, of its type? Columns are in order.
function common.is_sparse_of(S, A)
    lu.assertStrContains(tostring(S), "sparse")
    lu.assertEquals(S.dtype, A.dtype)
    lu.assertTrue(full(S) == A)
    lu.assertTrue(S.T.T == S)
end

-- The operations that f runs, by their names, sorted; what is looked at on a GPU
-- is none.
function common.operations(f)
    sync()
    profile("reset")
    profile("on")
    f()
    profile("off")
    local names = {}
    for _, r in ipairs(profile().operations) do
        if r.operation ~= "download" then
            for _ = 1, r.calls do names[#names + 1] = r.operation end
        end
    end
    table.sort(names)
    return table.concat(names, "; ")
end

return common
