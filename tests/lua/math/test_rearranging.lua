-- Elements in other places against definitions in plain Lua: what stands at
-- each place of the result.
local lu_ = require "luaunit"
local t = require "common"
local nan = t.nan

local dtypes = {"f32", "f64", "bool", "c128"}

-- m x n distinct elements; without n a vector.
local function numbered(m, n, dtype)
    local A = range(1, m * (n or 1), 1, {dtype = "f64"})
    if dtype == "bool" then A = mod(A * 7, 3):gt(0) end
    if dtype == "c128" then A = complex(A, -A) end
    if dtype == "f32" then A = A:f32() end
    return n and A:reshape(m, n) or A
end

-- Of the same elements: as they are, a transpose's, in reverse.
local function views(A)
    if A.ndim == 1 then return {A, flip(A):clone():flip()} end
    return {A, A.T:clone().T, A:flip(1):clone():flip(1)}
end

-- What the result is, of rows × cols elements at(i, j): a function of A's
-- elements, or of what stands outside.
local function by_places(A, rows, cols, at)
    local list = A:totable()
    local function element(i, j)
        if A.ndim == 1 then return list[i] end
        return list[i] and list[i][j]
    end
    local out = {}
    for i = 1, rows do
        if A.ndim == 1 then
            out[i] = at(element, i, 1)
        else
            out[i] = {}
            for j = 1, cols do out[i][j] = at(element, i, j) end
        end
    end
    return out
end

-- f(view, …) is `want`, whatever A's layout, in A's type.
local function each_view(A, want, f)
    for _, view in ipairs(views(A)) do
        local out = f(view)
        lu_.assertEquals(out.dtype, A.dtype)
        lu_.assertEquals(out:totable(), want)
        lu_.assertEquals(out.ndim, A.ndim)
        lu_.assertEquals(out.rows, #want)
    end
end

TestDiff = {}

function TestDiff:test_orders()
    t.equals(diff(vec{1, 4, 9, 16}), {3, 5, 7})
    t.equals(diff(vec{1, 4, 9, 16}, 2), {2, 2})
    t.equals(diff(vec{1, 4, 9, 16}, 3), {0})
    lu_.assertEquals(diff(vec{1, 4}, 2).shape, {0})
    lu_.assertEquals(diff(vec{1, 4}, 9).shape, {0})
    lu_.assertEquals(diff(zeros(3, 0)).shape, {2, 0})
    lu_.assertEquals(diff(zeros(3, 0), {axis = 2}).shape, {3, 0})
    lu_.assertEquals(diff(zeros(2, 3), 5, {axis = 2}).shape, {2, 0})
    t.equals(diff(mat{{1, 2}, {4, 8}, {9, 5}}), {{3, 6}, {5, -3}})
    t.equals(diff(mat{{1, 2}, {4, 8}}.T, {axis = 2}), {{3}, {6}})
    t.equals(diff(mat{{1, 2, 4}, {4, 8, 9}}, 2, {axis = 2}), {{1}, {-3}})
    t.equals(diff(vec{true, false, true}), {-1, 1})
    t.equals(diff(vec{1, nan, 2, 3}), {nan, nan, 1})
    t.equals(imag(diff(complex(vec{1, 2}, vec{1, 5}))), {4})
    local v = vec{1, 2}
    diff(v, 0)[1] = 7
    t.equals(v, {1, 2}, "a copy")
    t.raises(function() diff(vec{1}, {axis = 2}) end, "a vector has no axis 2")
end

TestRoll = {}

function TestRoll:test_places()
    for _, dtype in ipairs(dtypes) do
        for _, k in ipairs{0, 1, -1, 2, 5, -7, 12} do
            local A = numbered(3, 4, dtype)
            each_view(A, by_places(A, 3, 4, function(x, i, j)
                return x((i - 1 - k) % 3 + 1, j)
            end), function(view) return roll(view, k) end)
            each_view(A, by_places(A, 3, 4, function(x, i, j)
                return x(i, (j - 1 - k) % 4 + 1)
            end), function(view) return roll(view, k, {axis = 2}) end)
            local v = numbered(5, nil, dtype)
            each_view(v, by_places(v, 5, 1, function(x, i)
                return x((i - 1 - k) % 5 + 1)
            end), function(view) return roll(view, k) end)
        end
    end
    lu_.assertEquals(roll(zeros(0), 3).shape, {0})
    lu_.assertEquals(roll(zeros(0, 3), 3).shape, {0, 3})
    lu_.assertEquals(roll(zeros(0, 3), 1, {axis = 2}).shape, {0, 3})
    local v = vec{1, 2}
    roll(v, 0)[1] = 7
    t.equals(v, {1, 2}, "a copy")
end

TestRot90 = {}

function TestRot90:test_turns()
    local A = mat{{1, 2, 3}, {4, 5, 6}}
    t.equals(rot90(A), {{3, 6}, {2, 5}, {1, 4}})
    t.equals(rot90(A, 2), {{6, 5, 4}, {3, 2, 1}})
    t.equals(rot90(A, -1), {{4, 1}, {5, 2}, {6, 3}})
    for k = -9, 9 do
        lu_.assertTrue(rot90(rot90(A, k), -k) == A)
        lu_.assertTrue(rot90(A, k) == rot90(A, k + 4))
    end
    rot90(A)[{1, 1}] = 9
    t.equals(A, {{1, 2, 9}, {4, 5, 6}}, "a view")
    t.raises(function() rot90(vec{1, 2}) end, "A is a vector (vector 2)",
        "A:row() is 1x2")
end

TestPad = {}

-- Which of n elements stands at place k, 1 … n inside.
local places = {}
function places.edge(k, n) return math.max(1, math.min(k, n)) end
function places.wrap(k, n) return (k - 1) % n + 1 end
function places.symmetric(k, n) -- 1 … n n … 1 1 …
    local i = (k - 1) % (2 * n)
    return i < n and i + 1 or 2 * n - i
end
function places.reflect(k, n)   -- 1 … n … 1 …
    if n == 1 then return 1 end
    local i = (k - 1) % (2 * n - 2)
    return i < n and i + 1 or 2 * n - 1 - i
end

function TestPad:test_modes()
    for mode, place in pairs(places) do
        for _, dtype in ipairs(dtypes) do
            for rows = 1, 3 do
                local A = numbered(rows, 2, dtype)
                each_view(A, by_places(A, rows + 6, 7, function(x, i, j)
                    return x(place(i - 1, rows), place(j - 3, 2))
                end), function(view)
                    return pad(view, {mode = mode, top = 1, bottom = 5, left = 3,
                        right = 2})
                end)
                local v = numbered(rows, nil, dtype)
                each_view(v, by_places(v, rows + 8, 1, function(x, i)
                    return x(place(i - 4, rows))
                end), function(view) return pad(view, 4, {mode = mode}) end)
            end
        end
    end
end

function TestPad:test_constant()
    for _, dtype in ipairs(dtypes) do
        for _, value in ipairs{0, 1} do
            local A = numbered(2, 3, dtype)
            local outside = (A:clone() * 0 + value)[{1, 1}]
            if dtype == "bool" then outside = value ~= 0 end
            each_view(A, by_places(A, 3, 6, function(x, i, j)
                local inside = i <= 2 and j > 1 and j <= 4
                if not inside then return outside end
                return x(i, j - 1)
            end), function(view)
                return pad(view, {bottom = 1, left = 1, right = 2, value = value})
            end)
        end
    end
    t.equals(pad(vec{1}, 1, {value = nan}), {nan, 1, nan})
    t.equals(pad(vec{1}, 1, {after = 0}), {0, 1})
    t.equals(pad(zeros(0), 1), {0, 0})
    t.equals(pad(zeros(0, 2), {left = 1, top = 1, value = 3}), {{3, 3, 3}})
    t.equals(imag(pad(complex(vec{1}, 2), 1, {value = 3 * im})), {3, 2, 3})
end

function TestPad:test_errors()
    t.raises(function() pad(vec{1}, {}) end, "no width is given",
        "pad(A, {before = 1})")
    t.raises(function() pad(vec{1}, {top = 1}) end,
        "vector 1 has no top: write before and after")
    t.raises(function() pad(mat{{1}}, 1, {after = 1}) end,
        "1x1 has no after: write top, bottom, left and right")
    t.raises(function() pad(zeros(0), 1, {mode = "edge"}) end,
        "A is empty (vector 0)")
    t.raises(function() pad(zeros(2, 0), {left = 1, mode = "wrap"}) end,
        "A is empty (2x0)")
    t.equals(pad(zeros(2, 0), {top = 1, mode = "wrap"}), {{}, {}, {}})
    t.raises(function() pad(vec{1}, 1, {mode = "edge", value = 2}) end,
        'value goes with mode "constant" alone')
    t.raises(function() pad(vec{1}, -1) end, "from 0 on")
    t.raises(function() pad(vec{1}, 1, {mode = "mirror"}) end, "mirror")
end

TestRepelem = {}

-- Places 1 … n, each so often.
local function repeated(counts, n)
    local list = {}
    for i = 1, n do
        for _ = 1, type(counts) == "number" and counts or counts[i] do
            list[#list + 1] = i
        end
    end
    return list
end

function TestRepelem:test_counts()
    local some = {2, 3, {0, 2, 1}, {7, 0, 0}, 20, 0, {0, 0, 0}}
    for _, dtype in ipairs(dtypes) do
        for _, rows in ipairs(some) do
            local v, list = numbered(3, nil, dtype), repeated(rows, 3)
            each_view(v, by_places(v, #list, 1, function(x, i)
                return x(list[i])
            end), function(view) return repelem(view, rows) end)
            for _, cols in ipairs(some) do
                local A, across = numbered(3, 3, dtype), repeated(cols, 3)
                each_view(A, by_places(A, #list, #across, function(x, i, j)
                    return x(list[i], across[j])
                end), function(view) return repelem(view, rows, cols) end)
            end
        end
    end
    t.equals(repelem(vec{5, 6}, vec{2, 1}), {5, 5, 6})
    lu_.assertEquals(repelem(zeros(0), 3).shape, {0})
    lu_.assertEquals(repelem(zeros(0), {}).shape, {0})
    lu_.assertEquals(repelem(zeros(2, 0), 3, 2).shape, {6, 0})
    lu_.assertEquals(repelem(zeros(0, 2), 3, 2).shape, {0, 4})
end

-- Of several parts of a list, cut anywhere.
function TestRepelem:test_long()
    local n = 50000
    local v = range(1, n, 1, {dtype = "f64"})
    local counts = randint(0, 5, n, {seed = 1, dtype = "f64"})
    counts[777], counts[778] = 100000, 0
    local sum, at = cumsum(counts), repelem(v, counts)
    lu_.assertEquals(#at, counts:sum())
    lu_.assertTrue((diff(at):ge(0)):all())
    -- The last of each stands where the running sum says.
    local there = counts:gt(0)
    lu_.assertTrue(at[sum[there]] == v[there])
    lu_.assertTrue(repelem(v, 3) == repelem(v, full(n, 3)))
    lu_.assertTrue(repelem(v:col(), counts, 1) == at:col())
    for _, cols in ipairs{31, 32, 33, 300} do -- short rows and long ones
        local A = randn(7, 2 * cols, {seed = 3, device = t.device})["::-1, ::2"]
        local rows = vec{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6,
            7, 7, 7}
        lu_.assertTrue(repelem(A, 3, 1) == A[rows])
        lu_.assertTrue(repelem(A, 3, 2) == A[rows]:repelem(1, 2))
        local I = A + im * A
        lu_.assertTrue(repelem(I, 3, 1) == I[rows])
    end
    lu_.assertEquals(repelem(zeros(3, 40), 0, 1).shape, {0, 40})
    lu_.assertTrue(repelem(v:row(), 1, counts) == at:row())
end

function TestRepelem:test_errors()
    t.raises(function() repelem(vec{1, 2}, {1, -1}) end,
        "repelem: count 2 of counts is -1, expected a whole number from 0 on")
    t.raises(function() repelem(vec{1, 2}, vec{1.5, 1}) end,
        "count 1 of counts is 1.5")
    t.raises(function() repelem(vec{1, 2}, {nan, 1}) end, "count 1 of counts is NaN")
    t.raises(function() repelem(vec{1, 2}, {1, t.inf}) end,
        "count 2 of counts is Inf")
    t.raises(function() repelem(mat{{1, 2}}, 1, {1e300, 1}) end,
        "count 1 of columns is 1e+300")
    t.raises(function() repelem(vec{1, 2}, {1}) end,
        "counts has 1 count, expected one for each of 2")
    t.raises(function() repelem(mat{{1, 2}}, {1, 2}, 1) end,
        "rows has 2 counts, expected one for each of 1")
    t.raises(function() repelem(mat{{1, 2}}, 2) end,
        "columns is missing", "repelem(A, rows, columns)")
    t.raises(function() repelem(vec{1}, 2, 2) end, "which has no columns")
    t.raises(function() repelem(vec{1}, complex(vec{1}, 1)) end,
        "counts holds complex numbers")
end

TestMeshgrid = {}

function TestMeshgrid:test_grid()
    local X, Y = meshgrid(vec{1, 2, 3}, vec({5, 6}, {dtype = "f64"}))
    t.equals(X, {{1, 2, 3}, {1, 2, 3}})
    t.equals(Y, {{5, 5, 5}, {6, 6, 6}})
    lu_.assertEquals({X.dtype, Y.dtype}, {"f32", "f64"})
    X, Y = meshgrid(vec{1, 2}:flip())
    t.equals(X, {{2, 1}, {2, 1}})
    t.equals(Y, {{2, 2}, {1, 1}})
    X[{1, 1}] = 9
    t.equals(X, {{9, 1}, {2, 1}}, "elements of its own")
    lu_.assertEquals(meshgrid(zeros(0), vec{1, 2}).shape, {2, 0})
    t.raises(function() meshgrid(mat{{1}}) end, "expected a vector")
end

TestBand = {}

function TestBand:test_diagonals()
    for _, dtype in ipairs(dtypes) do
        for below = -3, 4 do
            for above = -3, 5 do
                local A = numbered(3, 4, dtype)
                local zero = (A * 0)[{1, 1}]
                if dtype == "bool" then zero = false end
                each_view(A, by_places(A, 3, 4, function(x, i, j)
                    if j - i < -below or j - i > above then return zero end
                    return x(i, j)
                end), function(view) return band(view, below, above) end)
            end
        end
    end
    t.equals(band(ones(4, 4), 1), {{1, 1, 0, 0}, {1, 1, 1, 0}, {0, 1, 1, 1},
        {0, 0, 1, 1}})
    t.equals(band(mat{{nan, nan}, {1, 2}}, 1, -1), {{0, 0}, {1, 0}})
    lu_.assertEquals(band(zeros(0, 3), 1).shape, {0, 3})
end

os.exit(lu_.LuaUnit.run("-o", "tap"))
