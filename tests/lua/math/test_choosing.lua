-- Elements and rows chosen by places, masks, values, functions and order,
-- against definitions in plain Lua.
local lu_ = require "luaunit"
local t = require "common"
local nan, inf = t.nan, t.inf

-- Elements with ties, some of them NaN or infinite.
local function random(m, n, dtype, seed)
    local A = randint(-3, 3, m, n or 1, {seed = seed, dtype = dtype})
    local odd = rand(m, n or 1, {seed = seed + 1})
    A[odd:lt(0.1)] = nan
    A[odd:gt(0.93)] = inf
    return n and A or A:flatten()
end

local function equals(A, B, what)
    lu_.assertEquals(A.dtype, B.dtype, what)
    t.equals(A, B:totable(), what)
end

-- The same elements as they stand, as a transpose's and as a part of more.
local function views(A)
    if A.ndim == 1 then
        return {A, flip(A):clone():flip(), hcat(A:col(), A:col())[{{}, 2}]}
    end
    return {A, A.T:clone().T, A:flip(2):clone():flip(2)}
end

-- Places that sort a list stably, NaN last.
local function sorting(list, descending)
    local places = {}
    for i = 1, #list do places[i] = i end
    table.sort(places, function(i, j)
        local x, y = list[i], list[j]
        if x ~= x or y ~= y then
            if (x ~= x) ~= (y ~= y) then return y ~= y end
            return i < j
        end
        if x == y then return i < j end
        if descending then return x > y end
        return x < y
    end)
    return places
end

TestDrop = {}

function TestDrop:test_forms()
    local A = reshape(range(1, 12), 3, 4)
    t.equals(drop(A, 2), {{1, 2, 3, 4}, {9, 10, 11, 12}})
    t.equals(drop(A, -1, {1, 2}), {{3, 4}, {7, 8}})
    t.equals(drop(A, nil, {1, 4, 2}), {{2, 4}, {6, 8}, {10, 12}})
    t.equals(drop(A, nil, {-1, 1, -3}), {{2, 3}, {6, 7}, {10, 11}})
    t.equals(drop(A, vec{1, -1}, vec{3}), {{5, 6, 8}})
    t.equals(drop(A, vec{1, 1, 1}), drop(A, 1):totable())
    t.equals(drop(A, A[{{}, 1}]:gt(4)), {{1, 2, 3, 4}})
    t.equals(drop(A, {1, 3}), {})
    t.equals(drop(A, {1, 0}), A:totable())
    t.equals(drop(A, zeros(0)), A:totable())
    t.equals(drop(A, nil), A:totable())
    t.equals(drop(vec{5, 6, 7}, -2), {5, 7})
    t.equals(drop(vec{5, 6, 7}:gt(5), 1), {true, true})
    local v = vec{1, 2}
    drop(v, {1, 0})[1] = 9
    t.equals(v, {1, 2}, "a copy")
end

function TestDrop:test_errors()
    local A = zeros(3, 4)
    t.raises(function() drop(A, 7) end, "drop: there is no row 7 in a 3x4 matrix")
    t.raises(function() drop(A, nil, {2, 5}) end,
        "there is no column 5 in a 3x4 matrix")
    t.raises(function() drop(A, vec{1, -4}) end, "there is no row -4 in")
    t.raises(function() drop(A, vec{0}) end, "there is no row 0 in")
    t.raises(function() drop(A, vec{1.5}) end, "row 1.5 is not a whole number")
    t.raises(function() drop(A, vec{nan}) end, "row NaN is not a whole number")
    t.raises(function() drop(vec{1, 2}, 3) end,
        "there is no element 3 in a vector 2")
    t.raises(function() drop(vec{1, 2}, 1, 1) end, "has no columns")
    t.raises(function() drop(A, vec{1, 2}:gt(0)) end,
        "the mask has length 2, there are 3 rows in 3x4")
    t.raises(function() drop(A, {}) end, "a list of places is a vector: vec{…}")
    t.raises(function() drop(A, {1, 2, 3, 4}) end, "are no range")
end

TestFind = {}

function TestFind:test_places()
    for n = 0, 70, 7 do
        local v = random(n, nil, "f64", n)
        for _, x in ipairs(views(v)) do
            local want = {}
            for i, e in ipairs(v:totable()) do
                if e ~= 0 then want[#want + 1] = i end
            end
            t.equals(find(x), want)
            t.equals(find(x, 3), {want[1], want[2], want[3]})
            t.equals(find(x:ne(0), -2), {table.unpack(want,
                math.max(#want - 1, 1))})
        end
    end
    t.equals(find(mat{{0, 2, 0}, {nan, 0, 1}}), {{1, 2}, {2, 1}, {2, 3}})
    t.equals(find(mat{{0, 2, 0}, {nan, 0, 1}}.T), {{1, 2}, {2, 1}, {3, 2}})
    t.equals(find(complex(vec{0, 0, 1}, vec{0, 2, 0})), {2, 3})
    lu_.assertEquals(find(zeros(3, 4)).shape, {0, 2})
    lu_.assertEquals(find(zeros(0, 4)).shape, {0, 2})
    lu_.assertEquals(find(zeros(3, 0)).shape, {0, 2})
    lu_.assertEquals(find(vec{1}, 0).shape, {0})
end

-- Long enough for several runs, dense and sparse.
function TestFind:test_long()
    local n = 300007
    for _, share in ipairs{0, 1e-4, 0.3, 1} do
        local mask = rand(n, {seed = 5}):lt(share)
        local want = range(1, n, 1, {dtype = "f64"})[mask]
        lu_.assertTrue(find(mask) == want)
    end
end

TestFilter = {}

function TestFilter:test_rows()
    local A = mat{{1, 5}, {2, 3}, {4, 6}, {nan, 1}}
    t.equals(filter(A, function(x, y) return x + y > 5 end), {{1, 5}, {4, 6}})
    t.equals(filter(A, function(x) return x > 1 end), {{2, 3}, {4, 6}})
    t.equals(filter(A, function(x, y, i) return i > 3 end), {{nan, 1}})
    t.equals(filter(A.T, function(a, b, c, d) return d == 1 end), {{5, 3, 6, 1}})
    t.equals(filter(vec{3, 1, 2}, function(x) return x > 1 end), {3, 2})
    t.equals(filter(vec{3, 1, 2}, function(x, i) return i > 1 end), {1, 2})
    t.equals(filter(A, function() return false end), {})
    local seen = {}
    t.equals(filter(vec{3, 1}, function(x) -- called for each
        seen[#seen + 1] = x
        return #seen == 2
    end), {1})
    lu_.assertEquals(filter(zeros(0, 2), function(x) return x > 1 end).shape,
        {0, 2})
    local B = randn(1000, 3, {seed = 1})
    equals(filter(B, function(x, y, z) return x > y and z < 0 end),
        B[B[{{}, 1}]:gt(B[{{}, 2}]) & B[{{}, 3}]:lt(0)])
end

function TestFilter:test_errors()
    t.raises(function() filter(mat{{1, 2}}, function(x) return 7 * x end) end,
        "filter: f gave 7.0 for row 1, expected true or false")
    t.raises(function()
        filter(vec{1, 0, nan}, function(x) return x end)
    end, "f gave NaN for element 3, expected true or false")
    t.raises(function() filter(mat{{1, 2}}, function(x, y, i, j) end) end,
        "f takes 4 numbers, a row of A has 2")
    t.raises(function() filter(zeros(2, 0), function() return true end) end,
        "A has no columns (2x0)")
end

TestIsin = {}

function TestIsin:test_members()
    for seed = 1, 40 do
        local A = random(seed % 7 + 1, seed % 5, "f32", seed)
        local values = random(seed * seed % 50, nil, "f64", seed + 1)
        local set = {}
        for _, x in ipairs(values:totable()) do
            if x == x then set[x] = true end
        end
        local want = A:totable()
        for _, row in ipairs(want) do
            for j, x in ipairs(row) do row[j] = x == x and set[x] or false end
        end
        for _, view in ipairs(views(A)) do t.equals(isin(view, values), want) end
    end
    t.equals(isin(vec{1, 2, nan}, {2, nan}), {false, true, false})
    t.equals(isin(vec{1, 2}, {}), {false, false})
    t.equals(isin(vec{true, false}, {0}), {false, true})
    t.equals(isin(complex(vec{1, 2}, 1), vec{1, 2}), {false, false})
    t.equals(isin(complex(vec{1, 2}, 1), complex(vec{2}, 1)), {false, true})
    -- 0.1 of f32 is not 0.1 of f64, whether there are few values or many.
    local tenth = vec({0.1}, {dtype = "f32"})
    t.equals(isin(tenth, {0.1}), {true})
    for _, n in ipairs{1, 100} do
        t.equals(isin(tenth, full(n, 0.1, {dtype = "f64"})), {false})
        t.equals(isin(tenth, full(n, 0.1, {dtype = "f32"})), {true})
        t.equals(isin(tenth:f64(), full(n, 0.1, {dtype = "f32"})), {true})
    end
    t.equals(isin(complex(tenth), complex(vec({0.1}, {dtype = "f64"}))), {false})
    local many = randint(1, 1000, 500, {seed = 3, dtype = "f64"})
    t.equals(isin(many, many + 0.5), (zeros(500):gt(1)):totable())
    lu_.assertTrue(isin(many, many):all())
end

TestSortrows = {}

function TestSortrows:test_order()
    for seed = 1, 60 do
        local A = random(seed % 9, seed % 4 + 1, seed % 2 == 0 and "f32" or "f64",
            seed)
        local n, keys = A.cols, {}
        for i = 1, seed % 3 + 1 do
            keys[i] = (seed * i) % n + 1
            if seed % 5 > 2 then keys[i] = -keys[i] end
        end
        local want = range(1, A.rows, 1, {dtype = "f64"})
        for i = #keys, 1, -1 do
            local list = A[{{}, math.abs(keys[i])}][want]:totable()
            want = want[vec(sorting(list, keys[i] < 0), {dtype = "f64"})]
        end
        for _, view in ipairs(views(A)) do
            local sorted, places = sortrows(view, keys, {places = true})
            equals(places, want)
            equals(sorted, A[want])
        end
    end
end

function TestSortrows:test_all_columns()
    local A = random(200, 3, "f64", 9)
    equals(sortrows(A), sortrows(A, {1, 2, 3}))
    equals(sortrows(A, {descending = true}), sortrows(A, {-1, -2, -3}))
    equals(sortrows(A, vec{-2}), sortrows(A, 2, {descending = true}))
    equals(sortrows(A, -2, {descending = true}), sortrows(A, {2}))
    equals(sortrows(A, {-2, 1}, {descending = true}), sortrows(A, {2, -1}))
    lu_.assertEquals(sortrows(zeros(0, 3)).shape, {0, 3})
    lu_.assertEquals(sortrows(zeros(3, 0)).shape, {3, 0})
end

function TestSortrows:test_errors()
    t.raises(function() sortrows(vec{1}) end, "sortrows: A is a vector (vector 1)",
        "sort(v)")
    t.raises(function() sortrows(zeros(2, 3), 4) end,
        "there is no column 4 in a 2x3 matrix")
    t.raises(function() sortrows(zeros(2, 3), {1, -4}) end,
        "there is no column 4 in a 2x3 matrix")
    t.raises(function() sortrows(zeros(2, 3), {0}) end, "there is no column 0")
    t.raises(function() sortrows(zeros(2, 3), {1.5}) end,
        "column 1.5 is not a whole number")
end

TestTopk = {}

-- What sort gives, cut.
local function check_topk(A, k, axis, smallest)
    local values, places = sort(A, axis, {descending = not smallest,
        places = true})
    local part = A.ndim == 1 and {{1, k}} or
        axis == 1 and {{1, k}, {}} or {{}, {1, k}}
    if k == 0 then part[axis] = {1, 0} end
    local got, at = topk(A, k, {axis = axis, smallest = smallest, places = true})
    equals(got, values[part])
    equals(at, places[part])
    equals(topk(A, k, {axis = axis, smallest = smallest}), got)
end

function TestTopk:test_small()
    for seed = 1, 40 do
        local dtype = seed % 2 == 0 and "f32" or "f64"
        local v = random(seed, nil, dtype, seed)
        local A = random(seed % 7 + 1, seed % 5 + 1, dtype, seed)
        for _, smallest in ipairs{false, true} do
            for _, x in ipairs(views(v)) do
                check_topk(x, seed % (#v + 1), 1, smallest)
            end
            for _, x in ipairs(views(A)) do
                check_topk(x, seed % (A.rows + 1), 1, smallest)
                check_topk(x, seed % (A.cols + 1), 2, smallest)
            end
        end
    end
    t.equals(topk(vec{true, false, true}, 2), {1, 1})
end

function TestTopk:test_long()
    local n = 70003
    local lines = {randn(n, {seed = 1}), range(1, n), flip(range(1, n)),
        zeros(n), randint(0, 3, n, {seed = 2, dtype = "f64"})}
    local odd = randn(n, {seed = 3})
    odd["10:69990"] = nan
    lines[#lines + 1] = odd
    lines[#lines + 1] = where(rand(n, {seed = 4}):gt(0.99), -inf, inf)
    for _, v in ipairs(lines) do
        for _, k in ipairs{1, 100, 1000, 50000} do
            check_topk(v, k, 1, false)
            check_topk(v, k, 1, true)
        end
    end
    local A = randn(70000, 3, {seed = 6})
    check_topk(A, 20, 1, false)
    check_topk(A.T, 20, 2, true)
end

-- Lines in which so many reach the k-th, and lines in which more do, or NaN.
function TestTopk:test_lines()
    local A = randn(50, 60, {seed = 7})
    local odd = A:clone()
    odd[{3, 5}] = nan
    for _, x in ipairs{A, A.T, odd, floor(A), A:f64()} do
        for axis = 1, 2 do
            for _, k in ipairs{1, 7, 40} do
                check_topk(x, k, axis, false)
                check_topk(x, k, axis, true)
            end
        end
    end
end

function TestTopk:test_errors()
    t.raises(function() topk(vec{1, 2}, 3) end,
        "topk: k is 3, there are 2 elements in vector 2")
    t.raises(function() topk(zeros(2, 3), 3) end, "there are 2 rows in 2x3")
    t.raises(function() topk(zeros(2, 3), 4, {axis = 2}) end,
        "there are 3 columns in 2x3")
    t.raises(function() topk(vec{1, 2}, 1, {axis = 2}) end,
        "a vector has no axis 2")
end

TestTiedrank = {}

local function ranks(list)
    local out = {}
    for i, x in ipairs(list) do
        local below, equal = 0, 0
        for _, y in ipairs(list) do
            if y < x then below = below + 1 end
            if y == x then equal = equal + 1 end
        end
        out[i] = x == x and below + (equal + 1) / 2 or nan
    end
    return out
end

function TestTiedrank:test_ranks()
    for seed = 1, 40 do
        local v = random(seed, nil, "f32", seed)
        for _, x in ipairs(views(v)) do
            t.equals(tiedrank(x), ranks(v:totable()))
        end
        local A = random(seed % 7 + 1, seed % 9 + 1, "f64", seed)
        local want = {}
        for i, row in ipairs(A:totable()) do want[i] = ranks(row) end
        for _, x in ipairs(views(A)) do
            t.equals(tiedrank(x, {axis = 2}), want)
            t.equals(tiedrank(x.T).T, want)
        end
    end
    lu_.assertEquals(tiedrank(zeros(0, 3)).shape, {0, 3})
    lu_.assertEquals(tiedrank(zeros(0)).shape, {0})
end

os.exit(lu_.LuaUnit.run("-o", "tap"))
