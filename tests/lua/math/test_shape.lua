-- Shape, order, type and place: reshape, joining, diagonals, triangles,
-- repetition, chosen places, running sums, sorting, conversion.
local lu = require "luaunit"
local t = require "common"
local equals, raises, inf, nan = t.equals, t.raises, t.inf, t.nan
local places = t.places

TestShape = {}

function TestShape:test_reshape_goes_row_by_row()
    local v = range(1, 6)
    equals(v:reshape(2, 3), {{1, 2, 3}, {4, 5, 6}})
    equals(v:reshape(3, 2):reshape(6), {1, 2, 3, 4, 5, 6})
    equals(reshape(places(2, 2).T, 4), {11, 21, 12, 22})
    equals(places(2, 3).T:reshape(2, 3), {{11, 21, 12}, {22, 13, 23}})
    equals(v["::-1"]:reshape(2, 3), {{6, 5, 4}, {3, 2, 1}})
    lu.assertEquals(zeros(0, 3):reshape(5, 0).shape, {5, 0})
    equals(vec{7}:reshape(1, 1), {{7}})
end

function TestShape:test_reshape_is_a_view_where_it_can_be()
    local v = range(1, 4)
    v:reshape(2, 2)[{2, 1}] = 0
    equals(v, {1, 2, 0, 4})
    local A = places(2, 2)
    A.T:reshape(4)[1] = 0
    equals(A, {{11, 12}, {21, 22}}, "a copy")
end

-- Operands that cross each other are worked on in tiles, wide or square.
function TestShape:test_what_is_turned_is_as_its_copy()
    for _, shape in ipairs{{1, 1}, {7, 3}, {9, 8}, {100, 100}, {33, 128},
        {40, 129}, {131, 130}, {3, 500}, {500, 3}} do
        local m, n = table.unpack(shape)
        for _, dtype in ipairs{"f32", "f64", "c64", "c128"} do
            local A = randn(m, n, {dtype = dtype, seed = m})
            local B = randn(n, m, {dtype = dtype, seed = n})
            local copy = zeros(m, n, {dtype = dtype})
            for i = 1, m do copy[i] = B[{{}, i}] end
            local what = dtype .. " " .. m .. "x" .. n
            lu.assertIsTrue(B.T:clone() == copy, what)
            lu.assertIsTrue(B.H:clone() == conj(copy), what)
            lu.assertIsTrue(A + B.T == A + copy, what)
            lu.assertIsTrue(B.T * 2 - A == copy * 2 - A, what)
        end
    end
end

function TestShape:test_reshape_refuses_other_sizes()
    raises(function() range(1, 6):reshape(4, 2) end, "4x2", "6")
    raises(function() range(1, 6):reshape(5) end, "5", "6")
    raises(function() range(1, 6):reshape(-1, 6) end, "-1")
    raises(function() range(1, 6):reshape(2 ^ 32, 2 ^ 32) end, "4294967296")
    raises(function() range(1, 6):reshape() end, "reshape: m is missing, expected a whole number")
end

function TestShape:test_rows_columns_flatten_transpose_flip()
    local v, A = vec{1, 2, 3}, places(2, 3)
    equals(v:row(), {{1, 2, 3}})
    equals(v:col(), {{1}, {2}, {3}})
    equals(A:flatten(), {11, 12, 13, 21, 22, 23})
    equals(A.T:flatten(), {11, 21, 12, 22, 13, 23})
    equals(A:t(), A.T:totable())
    equals(A:flip(), {{21, 22, 23}, {11, 12, 13}})
    equals(A:flip(2), {{13, 12, 11}, {23, 22, 21}})
    equals(v:flip(), {3, 2, 1})
    lu.assertEquals(v.T.ndim, v.ndim)
    lu.assertEquals(zeros(0, 2):flip().shape, {0, 2})
    raises(function() v:flip(2) end, "axis")
    raises(function() A:flip(3) end, "axis is 3")
    raises(function() A:flip(2 ^ 32 + 1) end, "axis is 4294967297")
    raises(function() A:cumsum(2 ^ 32 + 1) end, "axis is 4294967297")
    raises(function() A:sort(2 ^ 32 + 2) end, "axis is 4294967298")
end

-- A row or column of a matrix shares its elements.
function TestShape:test_row_and_column_of_a_matrix()
    local A = places(3, 4)
    equals(A:row(2), {{21, 22, 23, 24}})
    equals(A:col(3), {{13}, {23}, {33}})
    equals(row(A, -1), {{31, 32, 33, 34}})
    equals(col(A, -4), {{11}, {21}, {31}})
    equals(A["::2, ::-1"]:row(2), {{34, 33, 32, 31}})
    equals(A.T:col(1), {{11}, {12}, {13}, {14}})
    equals(A - A:row(1), {{0, 0, 0, 0}, {10, 10, 10, 10}, {20, 20, 20, 20}})
    equals((A - A:col(1)):col(4), {{3}, {3}, {3}})
    local r, c = A:row(1), A:col(-1)
    r[{1, 2}] = 7
    c:mul_(0)
    A:row(3):add_(100)
    equals(A, {{11, 7, 13, 0}, {21, 22, 23, 0}, {131, 132, 133, 100}})
    equals(mat{{true, false}}:col(2), {{false}})
    lu.assertEquals(zeros(0, 3):col(2).shape, {0, 1})
    raises(function() A:row() end, "row: of a matrix", "A:row(1)",
        "A:flatten():row()")
    raises(function() A:col() end, "col: of a matrix", "A:col(1)")
    raises(function() A:row(4) end, "row 4 is outside 1..3", "A is 3x4")
    raises(function() A:col(0) end, "column 0", "start at 1")
    raises(function() A:col(-5) end, "column -5 is outside 1..4")
    raises(function() A:row(1.5) end, "1.5")
    raises(function() A:row(1, 2) end, "too many", "A[{i, j}]")
    local v = vec{1, 2}
    raises(function() v:row(1) end, "v is a vector", "v[i]", "v:row()")
    raises(function() v:col(1) end, "v is a vector", "v:col()")
end

TestJoin = {}

function TestJoin:test_side_by_side_and_stacked()
    local A, B = mat{{1, 2}, {3, 4}}, mat{{5}, {6}}
    equals(hcat(A, B), {{1, 2, 5}, {3, 4, 6}})
    equals(A .. B .. A, {{1, 2, 5, 1, 2}, {3, 4, 6, 3, 4}})
    equals(vcat(A, mat{{7, 8}}), {{1, 2}, {3, 4}, {7, 8}})
    equals(A:vcat(A.T), {{1, 2}, {3, 4}, {1, 3}, {2, 4}})
    equals(hcat(A), A:totable())
    equals(hcat(A["::-1,:"], B["::-1,:"]), {{3, 4, 6}, {1, 2, 5}})
    lu.assertEquals(vcat(zeros(0, 2), A).shape, {2, 2})
end

function TestJoin:test_vectors()
    equals(hcat(vec{1, 2}, vec{3}), {1, 2, 3})
    equals(vec{1} .. vec{2, 3}, {1, 2, 3})
    equals(vcat(vec{1, 2}, vec{3, 4}), {{1, 2}, {3, 4}})
    equals(hcat(mat{{1}, {2}}, vec{3, 4}), {{1, 3}, {2, 4}})
    equals(hcat(vec{3, 4}, mat{{1}, {2}}), {{3, 1}, {4, 2}})
    equals(vcat(mat{{1, 2}}, vec{3, 4}), {{1, 2}, {3, 4}})
    equals(vcat(range(1, 6)["1:6:2"], range(1, 6)["::-2"]), {{1, 3, 5}, {6, 4,
        2}})
end

function TestJoin:test_the_wider_type_wins()
    lu.assertEquals(hcat(vec{1}, vec({1}, {dtype = "f64"})).dtype, "f64")
    lu.assertEquals(hcat(vec{true}, vec{1}).dtype, "f32")
    equals(hcat(vec{true}, vec{false}), {true, false})
end

function TestJoin:test_what_does_not_fit()
    raises(function() local P, Q = ones(2, 3), ones(3, 3) hcat(P, Q) end,
        "hcat: numbers of rows differ (2 and 3)", "P is 2x3", "Q is 3x3",
        "P.T would fit")
    raises(function() vcat(ones(2, 3), ones(3, 2)) end,
        "vcat: numbers of columns differ (3 and 2)", "2x3", "right.T would fit")
    raises(function() return ones(2, 2) .. nil end, "..: cannot join", "nil")
    lu.assertEquals("x = " .. (1 + im), "x = " .. tostring(1 + im))
    lu.assertEquals((1 + im) .. "; " .. 2 * im, tostring(1 + im) .. "; " .. tostring(2 * im))
    lu.assertEquals(1 .. (1 + im), "1" .. tostring(1 + im))
    raises(function() return im .. nil end, "..: cannot join a complex number and a nil")
    raises(function() return im .. ones(2) end, "..: cannot join")
    local A, v = ones(2, 2), vec{1, 2}
    raises(function() return A .. 1 end, "..: cannot join a matrix and the number 1",
        "hcat(A, 1 * ones(2, 1))")
    raises(function() return 2.5 .. A end, "hcat(2.5 * ones(2, 1), A)")
    raises(function() return v .. 3 end, "hcat(v, 3 * ones(1))")
    lu.assertEquals("A is " .. A .. "1", "A is f32 2x21")
    raises(function() vcat(vec{1, 2}, vec{1}) end, "vcat", "vector 2")
    raises(function() hcat() end, "hcat: A is missing, expected a matrix")
    raises(function() hcat(ones(2), 3) end, "hcat: B is 3, expected a matrix")
end

TestDiagonals = {}

function TestDiagonals:test_diag_makes_and_reads()
    equals(diag(vec{1, 2}), {{1, 0}, {0, 2}})
    equals(diag(vec{1, 2}, 1), {{0, 1, 0}, {0, 0, 2}, {0, 0, 0}})
    equals(diag(vec{5}, -2), {{0, 0, 0}, {0, 0, 0}, {5, 0, 0}})
    local A = places(3, 4)
    equals(A:diag(), {11, 22, 33})
    equals(A:diag(2), {13, 24})
    equals(A:diag(-1), {21, 32})
    lu.assertEquals(A:diag(4).shape, {0})
    lu.assertEquals(A:diag(-3).shape, {0})
    A:diag():mul_(0)
    equals(A:diag(), {0, 0, 0})
    lu.assertEquals(diag(zeros(0)).shape, {0, 0})
    raises(function() A:diag(1e10) end, "diagonal")
end

function TestDiagonals:test_triangles_and_trace()
    for _, s in ipairs{{1, 1}, {3, 5}, {33, 31}} do
        local A = places(s[1], s[2])
        for k = -3, 3 do
            equals(A:tril(k), fromfn(s[1], s[2], function(i, j)
                return j - i <= k and A(i, j) or 0
            end):totable(), "tril " .. k)
            equals(A.T:triu(k), fromfn(s[2], s[1], function(i, j)
                return j - i >= k and A(j, i) or 0
            end):totable(), "triu " .. k)
        end
    end
    equals(tril(full(2, 2, nan)), {{nan, 0}, {nan, nan}})
    lu.assertEquals(trace(places(3, 4)), 66)
    lu.assertEquals(trace(zeros(0, 3)), 0)
    raises(function() tril(vec{1}) end, "vector")
    raises(function() trace(vec{1}) end, "vector")
end

TestRepeats = {}

function TestRepeats:test_outer_kron_tile()
    equals(outer(vec{1, 2}, vec{3, 4, 5}), {{3, 4, 5}, {6, 8, 10}})
    local A, B = mat{{1, 2}, {3, 4}}, mat{{0, 5}, {6, 7}, {8, 9}}
    local expected = fromfn(6, 4, function(i, j)
        return A((i - 1) // 3 + 1, (j - 1) // 2 + 1) *
            B((i - 1) % 3 + 1, (j - 1) % 2 + 1)
    end)
    equals(kron(A, B), expected:totable())
    equals(tile(vec{1, 2}, 3), {1, 2, 1, 2, 1, 2})
    equals(tile(A, 2, 3), fromfn(4, 6, function(i, j)
        return A((i - 1) % 2 + 1, (j - 1) % 2 + 1)
    end):totable())
    equals(kron(A.T, B["::-1, :"]), fromfn(6, 4, function(i, j)
        return A((j - 1) // 2 + 1, (i - 1) // 3 + 1) *
            B(3 - (i - 1) % 3, (j - 1) % 2 + 1)
    end):totable())
    equals(kron(B, A), fromfn(6, 4, function(i, j)
        return B((i - 1) // 2 + 1, (j - 1) // 2 + 1) *
            A((i - 1) % 2 + 1, (j - 1) % 2 + 1)
    end):totable())
    lu.assertEquals(kron(A, A:f64()).dtype, "f64")
    lu.assertEquals(kron(zeros(0, 2), A).shape, {0, 4})
    equals(kron(mat{{true, false}}, mat{{true}}), {{1, 0}})
    equals(kron(vec{1, 2}, vec{3, 4, 5}), {3, 4, 5, 6, 8, 10})
    lu.assertEquals(kron(vec{1}, zeros(0)).shape, {0})
    equals(tile(vec{true, false}, 2), {true, false, true, false})
    for n = 1, 9 do
        equals(tile(A["::-1, :"], n, 10 - n), fromfn(2 * n, 20 - 2 * n,
            function(i, j) return A(2 - (i - 1) % 2, (j - 1) % 2 + 1) end)
            :totable())
    end
    lu.assertEquals(tile(A, 0, 2).shape, {0, 4})
    raises(function() kron(vec{1}, A) end, "matrix")
    raises(function() tile(A, -1, 2) end, "-1")
    raises(function() tile(vec{1, 2}, 2, 3) end, "tile: n is of a matrix",
        "v:row()")
    raises(function() tile(A, 2 ^ 40, 2 ^ 40) end, "2199023255552x")
    raises(function() tile(A, 2 ^ 62, 1) end, "memory", "4611686018427387904")
    local tall = zeros(1, 0):reshape(0, 1)["1:0, :"]
    lu.assertEquals(kron(tall, A).shape, {0, 2})
end

-- Made by rows where one of both is small enough, else by blocks.
function TestRepeats:test_kron_of_all_sizes()
    for _, s in ipairs{{1, 1, 5, 7}, {3, 40, 50, 2}, {300, 250, 1, 2},
                       {2, 3, 260, 270}, {64, 9, 9, 64}} do
        local A, B = rand(s[1], s[2]), rand(s[3], s[4], {dtype = "f64"})
        local places = repelem(A:f64(), s[3], s[4]) % tile(B, s[1], s[2])
        lu.assertTrue(kron(A, B) == places)
        lu.assertTrue(kron(B.T, A.T) ==
            repelem(B.T, s[2], s[1]) % tile(A.T:f64(), s[4], s[3]))
    end
end

TestPlaces = {}

function TestPlaces:test_take()
    local A = places(3, 4)
    equals(A:take({3, 1}), {{31, 32, 33, 34}, {11, 12, 13, 14}})
    equals(A:take({3, 1}, {4, 4, 2}), {{34, 34, 32}, {14, 14, 12}})
    equals(A:take(nil, {1}), {{11}, {21}, {31}})
    equals(A:take(vec{2}, vec{-1}), {{24}})
    equals(range(1, 5):take({5, 5, 1}), {5, 5, 1})
    equals(A.T:take({2}), {{12, 22, 32}})
    lu.assertEquals(A:take({}).shape, {0, 4})
end

function TestPlaces:test_put()
    local A = zeros(3, 3)
    lu.assertIsTrue(rawequal(A:put(mat{{1, 2}, {3, 4}}, {3, 1}, {1, 3}), A))
    equals(A, {{3, 0, 4}, {0, 0, 0}, {1, 0, 2}})
    A:put(mat{{7, 8, 9}}, {2})
    equals(A[2], {7, 8, 9})
    equals(zeros(3):put(vec{7, 8}, {1, 3}), {7, 0, 8})
    equals(zeros(2):put(vec{1, 2, 3}, {1, 1, 1}), {3, 0}, "the last wins")
end

function TestPlaces:test_places_outside_are_named()
    local A = places(3, 4)
    raises(function() A:take({4}) end, "take: place 4 is outside 1..3")
    raises(function() A:take({0}) end, "0", "1..3")
    raises(function() A:take({1.5}) end, "1.5")
    raises(function() A:take({nan}) end, "NaN")
    raises(function() A:take({1}, {5}) end, "5", "1..4")
    raises(function() A:take({"x"}) end, "string")
    raises(function() A:take(3) end, "take: rows is 3, expected a vector or a table")
    raises(function() A:put(ones(2, 2), {1}, {1}) end, "1x1", "2x2")
    raises(function() A:put(ones(1, 1), {9}, {1}) end,
        "put: place 9 is outside 1..3")
    equals(A, places(3, 4):totable())
end

TestOrder = {}

local function running(list, f)
    local result, x = {}, nil
    for i, y in ipairs(list) do
        x = x and f(x, y) or y
        result[i] = x
    end
    return result
end

function TestOrder:test_running_sums_and_products()
    local plus = function(x, y) return x + y end
    local times = function(x, y) return x * y end
    for _, dtype in ipairs{"f32", "f64"} do
        for _, n in ipairs{1, 2, 31, 65, 1025} do
            local A = randint(-3, 3, n, 5, {seed = 1, dtype = dtype})
            local S = A:cumsum()
            for j = 1, 5 do
                equals(S[{{}, j}], running(A[{{}, j}]:totable(), plus))
                equals(A[{{}, j}]:cumsum(), running(A[{{}, j}]:totable(), plus))
            end
            S = A.T:cumsum(2)
            for j = 1, 5 do equals(S[j], running(A.T[j]:totable(), plus)) end
            local B = randint(0, 1, n, 3, {seed = 2, dtype = dtype}) * 2 - 1
            equals(B:cumprod()[":,2"], running(B[":,2"]:totable(), times))
        end
    end
    for _, n in ipairs{33, 257, 2050, 8193, 16385, 40001} do
        local A = randint(-3, 3, 3, n + 1, {seed = 3})
        local S, whole = A:cumsum(2), A[{{}, {2, n + 1}}]:cumsum(2)
        local flipped = A[{{}, {-1, 1, -1}}]:cumsum(2)
        for i = 1, 3 do
            local list = A[i]:totable()
            equals(S[i], running(list, plus), n)
            equals(A[i]["2:"]:cumsum(), running({table.unpack(list, 2)}, plus))
            equals(whole[i], running({table.unpack(list, 2)}, plus))
            lu.assertEquals(flipped(i, n + 1), S(i, n + 1))
        end
    end
    equals(cumsum(vec{1, nan, 2}), {1, nan, nan})
    equals(cumsum(vec{true, true, false}), {1, 2, 2})
    lu.assertEquals(cumsum(zeros(0)).shape, {0})
    lu.assertEquals(cumsum(ones(20000000))[-1], 20000000)
    raises(function() cumsum(vec{1}, 2) end, "axis 2")
    raises(function() cumsum(ones(2, 2), 3) end, "axis is 3")
end

function TestOrder:test_running_extremes()
    local function larger(x, y) return (x ~= x or x > y) and x or y end
    local function smaller(x, y) return (x ~= x or x < y) and x or y end
    for _, dtype in ipairs{"f32", "f64"} do
        for _, n in ipairs{1, 2, 31, 65, 257, 2050, 16385, 40001} do
            local A = randn(n, 3, {seed = n, dtype = dtype}) +
                range(1, n, 1, {dtype = dtype}):reshape(n, 1) / n
            if n > 30 then A[{n - 7, 2}] = nan end
            for j = 1, 3 do
                local list = A[{{}, j}]:totable()
                equals(A:cummax()[{{}, j}], running(list, larger))
                equals(A[{{}, j}]:cummin(), running(list, smaller))
                equals(A.T:cummax(2)[j], running(list, larger))
                equals(A.T:clone():cummin(2)[j], running(list, smaller))
            end
        end
    end
    equals(cummax(vec{true, false, true}), {1, 1, 1})
    equals(cummax(vec{-1 / 0, -1 / 0}), {-1 / 0, -1 / 0})
    equals(cummin(vec{2, nan, 1}), {2, nan, nan})
    lu.assertEquals(cummin(zeros(0, 3), 2).shape, {0, 3})
    raises(function() cummax(vec{1}, 2) end, "axis 2")
    raises(function() cummax(vec{im}) end, "cummax: complex numbers have no order")
end

function TestOrder:test_running_truth()
    equals(cumany(vec{0, 0, nan, 0}), {false, false, true, true})
    equals(cumall(vec{1, nan, 0, 1}), {true, true, false, false})
    equals(cumany(zeros(3)), {false, false, false})
    equals(cumall(ones(3):gt(0)), {true, true, true})
    local A = mat{{0, 1}, {1, 0}, {0, 0}}
    equals(cumany(A), {{false, true}, {true, true}, {true, true}})
    equals(cumany(A, 2), {{false, true}, {true, true}, {false, false}})
    equals(cumall(A.T, {axis = 1}), {{false, true, false}, {false, false, false}})
    lu.assertEquals(cumall(zeros(2, 0), 1).shape, {2, 0})
    local long = zeros(20000000)
    long[17000001] = 1
    lu.assertEquals(cumany(long):sum(), 3000000)
    equals(cumall(vec{im, 1, 0}), {true, true, false})
    raises(function() cumany(vec{1}, 2) end, "axis 2")
end

-- What lies far apart is added by others, in an order that does not change.
function TestOrder:test_long_running_sums()
    for _, dtype in ipairs{"f32", "f64"} do
        local n = 4500001
        lu.assertIsTrue(cumsum(ones(n, {dtype = dtype})) ==
            range(1, n, {dtype = dtype}))
        local A = ones(n // 40, 40, {dtype = dtype})
        lu.assertIsTrue(A:cumsum(1)[{{}, 39}] ==
            range(1, n // 40, {dtype = dtype}))
        local signs = randint(0, 1, n, {seed = 5, dtype = dtype}) * 2 - 1
        local product = signs:cumprod()
        lu.assertEquals(product(1), signs(1))
        lu.assertIsTrue(product["2:"] == product["1:4500000"] % signs["2:"])
        local x = randn(n, {seed = 5, dtype = dtype})
        local first, tall = x:cumsum(), x["1:4500000"]:reshape(112500, 40)
        local down = tall:cumsum(1)
        for _ = 1, 5 do
            lu.assertIsTrue(x:cumsum() == first)
            lu.assertIsTrue(tall:cumsum(1) == down)
        end
    end
end

-- Lua's own sort, made stable and with NaN last.
local function sorted(list, descending)
    local order = {}
    for i = 1, #list do order[i] = i end
    table.sort(order, function(i, j)
        local x, y = list[i], list[j]
        if x ~= x or y ~= y then
            if x ~= x and y ~= y then return i < j end
            return x == x
        end
        if x == y then return i < j end
        if descending then return x > y end
        return x < y
    end)
    local result = {}
    for i, place in ipairs(order) do result[i] = list[place] end
    return result, order
end

-- Lines that are cut into buckets, columns that are turned by bands, keys that
-- differ in their lower halves alone, and equal ones of every kind.
function TestOrder:test_sort_of_long_lines()
    local inf, count = math.huge, 140007
    local function hard(dtype)
        local x = randn(count, {dtype = dtype})
        for _, y in ipairs{0 / 0, inf, -inf, 0.0, -0.0, 0 / 0, -0.0, 0.0} do
            for k = 1, 9 do x[k * 15013 % count + 1 + #tostring(y)] = y end
        end
        return x
    end
    local function check(x, descending)
        local values = sort(x, {descending = descending})
        local again, order = sort(x, {descending = descending, places = true})
        local a, b, places = values:totable(), again:totable(), order:totable()
        local all, seen = x:totable(), {}
        local function bits(y) return string.pack("n", y) end
        for i = 1, #a do
            local before, here = b[i - 1], b[i]
            local same = bits(a[i]) == bits(here) and
                bits(all[places[i]]) == bits(here) and not seen[places[i]]
            seen[places[i]] = true
            if same and before then
                local equal = before == here or before ~= before and here ~= here
                same = equal and places[i - 1] < places[i] or
                    not equal and (here ~= here or before == before and
                        (before > here) == (descending or false))
            end
            if not same then
                lu.fail(("%s at %d: %s after %s"):format(x.dtype, i, here, before))
            end
        end
    end
    for _, dtype in ipairs{"f32", "f64"} do
        local mask = rand(count, {dtype = dtype}):gt(0.5)
        local zeros_of_both = where(mask, full(count, 0.0, {dtype = dtype}),
            full(count, -0.0, {dtype = dtype}))
        for _, x in ipairs{hard(dtype), randint(-2, 2, count, {dtype = dtype}),
            1 + rand(count, {dtype = dtype}) * 1e-12, zeros_of_both,
            full(count, 7, {dtype = dtype})} do
            check(x, false)
            check(x, true)
        end
        local A = randn(70001, 3, {dtype = dtype})
        for axis = 1, 2 do
            local S, order = A:sort(axis, {places = true})
            local T, turned = A.T:clone():sort(3 - axis, {places = true})
            lu.assertTrue(T.T == S and turned.T == order and A:sort(axis) == S)
        end
    end
end

function TestOrder:test_sort()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, n in ipairs{1, 2, 3, 31, 65, 1000} do
            for _, descending in ipairs{false, true} do
                local A = randint(-20, 20, n, 4, {seed = n, dtype = dtype}) / 4
                if n > 2 then A[{2, 3}] = nan A[{3, 3}] = -inf A[{1,
                    3}] = inf end
                local how = {descending = descending}
                local alone, alone_too = sort(A, how)
                lu.assertNil(alone_too)
                equals(alone, sort(A, 1, how):totable())
                how.places = true
                local S, order = sort(A, how)
                equals(alone, S:totable())
                equals(argsort(A, {descending = descending}), order:totable())
                for j = 1, 4 do
                    local list, from = sorted(A[{{}, j}]:totable(), descending)
                    equals(S[{{}, j}], list)
                    equals(order[{{}, j}], from)
                end
                how.axis = 2
                S, order = sort(A.T, how)
                equals(argsort(A.T, 2, {descending = descending}), order:totable())
                for j = 1, 4 do
                    local list, from = sorted(A[{{}, j}]:totable(), descending)
                    equals(S[j], list)
                    equals(order[j], from)
                end
            end
        end
    end
    equals(sort(vec{3, 1, 2}), {1, 2, 3})
    local v = rand(100000, {seed = 5})
    local s, order = sort(v, {places = true})
    lu.assertIsTrue(s == v:take(order))
    lu.assertIsTrue((s["2:end"]:ge(s["1:end-1"])):all())
    raises(function() sort(vec{1}, 2) end, "axis 2")
    raises(function() sort(vec{1}, {descnding = true}) end, "'descending'")
    raises(function() sort(ones(2, 2), 1, {axis = 2}) end, "axis is given twice")
    raises(function() sort(vec{1}, {}, 3) end, "sort: 3 arguments are too many")
    raises(function() argsort(vec{1}, {places = true}) end, "'places'")
end

-- Zeros of both signs are equal, and stay in their order with or without
-- places.
function TestOrder:test_zeros_keep_their_signs_and_order()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, n in ipairs{10, 5000} do
            local list = {}
            for i = 1, n do
                list[i] = ({0, -0.0, nan, -1, 2, -0.0, 0, 0, inf, -inf})[i * i % 10 + 1]
            end
            local v = vec(list, {dtype = dtype})
            for _, descending in ipairs{false, true} do
                local expected = sorted(list, descending)
                equals(sort(v, {descending = descending}), expected)
                equals(sort(v:row(), {axis = 2, descending = descending}):flatten(),
                    expected)
            end
        end
    end
    equals(sort(vec{true, false, true}), {0, 1, 1})
    equals(sort(zeros(0)), {})
    equals(argsort(zeros(0)), {})
end

-- What is not asked for is not made.
function TestOrder:test_places_are_paid_for_when_wanted()
    local v = rand(1000, {seed = 1})
    local function allocated(f) return timing(f).allocated end
    lu.assertEquals(allocated(function() return sort(v) end), 4000)
    lu.assertEquals(allocated(function() return argsort(v) end), 8000)
    lu.assertEquals(allocated(function() return sort(v, {places = true}) end), 12000)
end

TestValues = {}

function TestValues:test_conversion()
    local A = mat{{0.1, 2}, {nan, inf}}
    lu.assertIsTrue(rawequal(A:f32(), A))
    lu.assertIsTrue(rawequal(A:to(A.device), A))
    local D = A:f64()
    lu.assertEquals(D.dtype, "f64")
    equals(D, {{t.single(0.1), 2}, {nan, inf}})
    equals(D:f32(), A:totable())
    equals(vec({1e300, 1e-300, 16777217}, {dtype = "f64"}):f32(), {inf, 0,
        16777216})
    equals(vec{0, -0.0, 2, nan}:bool(), {false, false, true, true})
    equals(vec{true, false}:f64(), {1, 0})
    equals(A.T:f64(), {{t.single(0.1), nan}, {2, inf}})
    raises(function() A:to("abacus") end, "abacus")
    raises(function() A:to() end, "to: device is missing, expected a device")
    lu.assertEquals(A:to("cpu").device, "cpu")
end

function TestValues:test_totable()
    lu.assertEquals(places(2, 2):totable(), {{11, 12}, {21, 22}})
    lu.assertEquals(places(2, 2).T:totable(), {{11, 21}, {12, 22}})
    lu.assertEquals(vec{true, false}:totable(), {true, false})
    lu.assertEquals(zeros(0, 2):totable(), {})
    lu.assertEquals(zeros(2, 0):totable(), {{}, {}})
end

function TestValues:test_map_calls_a_function_with_the_places()
    equals(map(places(2, 3).T, function(x, i,
        j) return x + 100 * i + 1000 * j end),
        {{1111, 2121}, {1212, 2222}, {1313, 2323}})
    equals(vec{1, 2}:map(function(x, i) return x * i end), {1, 4})
    equals(vec{true}:map(function(x) return not x end), {false})
    lu.assertEquals(zeros(0, 2):map(print).shape, {0, 2})
    raises(function() vec{1}:map(function() end) end, "nil")
    raises(function() vec{1}:map(function() error("mine", 0) end) end, "mine")
    raises(function() vec{1}:map(3) end, "map: f is 3, expected a function")
end

function TestValues:test_every_function_is_a_method()
    local A = mat{{4, 3}, {2, 1}}
    for _, name in ipairs{"sum", "sqrt", "transpose", "sort", "clone", "inv",
        "trace", "cumsum", "flatten", "tril", "exp", "all"} do
        if _G[name] then
            lu.assertEquals(tostring(A[name](A)), tostring(_G[name](A)), name)
        end
    end
    local library, methods = require "lumat", debug.getregistry()["lumat.methods"]
    for name, f in pairs(library) do
        if methods[name] then lu.assertIsTrue(rawequal(f, methods[name]) or
            type(f) == type(methods[name]), name) end
    end
end

TestDevices = {}

function TestDevices:test_rearrangements_agree_over_odd_shapes()
    for _, s in ipairs{{1, 1}, {3, 5}, {31, 127}, {65, 33}, {1030, 7}} do
        for _, dtype in ipairs{"f32", "f64"} do
            t.agrees(function()
                local A = rand(s[1], s[2], {seed = 1, dtype = dtype})
                local W = randint(-3, 3, s[1], s[2], {seed = 2, dtype = dtype})
                local S, order = sort(A, {places = true})
                local R, across = sort(W, 2, {descending = true, places = true})
                return sort(A), sort(W, 2, {descending = true}), argsort(W),
                    sort(W * -0.0), W:row(-1), W:col(1), S, order, R, across,
                    W:cumsum(), W.T:cumsum(1),
                    W:cumsum(2), A:tril(), A:triu(1), A:flip(2) + A, A .. W,
                    vcat(A, W:flip()), A:flatten(), A.T:reshape(s[1], s[2]),
                    A:take({s[1], 1}), tile(A, 2, 3), kron(A["1:1,:"], W[":,1:1"]),
                    outer(A[1], W[-1]), A:f32(), A:f64(), W:bool()
            end, s[1] .. "x" .. s[2])
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
