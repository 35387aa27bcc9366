-- Sparse matrices: made from triplets and dense matrices, multiplied with
-- dense ones over random patterns, printed, and what they refuse.
local lu = require "luaunit"
local t = require "common"
local equals, raises, inf, nan = t.equals, t.raises, t.inf, t.nan
local whole, uniform = t.whole, t.uniform
local here = zeros(1).device

-- A random m x n matrix of whole numbers with about that share of entries.
local function pattern(m, n, share, dtype, seed)
    return t.pattern(m, n, dtype, seed, {share})
end

local shapes = {{1, 1}, {1, 7}, {7, 1}, {3, 3}, {31, 33}, {64, 65}, {5, 200},
    {200, 5}, {127, 127}}

TestMaking = {}

function TestMaking:test_triplets_in_any_order()
    local S = sparse({3, 1, 2, 1, 3, 3}, {3, 3, 3, 1, 1, 2},
        {6, 2, 3, 1, 4, 5}, 3, 3)
    equals(full(S), {{1, 0, 2}, {0, 0, 3}, {4, 5, 6}})
    lu.assertEquals({S.rows, S.cols, S.nnz, S.dtype, S.device, #S, S.ndim},
        {3, 3, 6, "f32", here, 3, 2})
    lu.assertEquals(S.shape, {3, 3})
    lu.assertEquals(S.bytes, 4 * 4 + 6 * 8)
end

function TestMaking:test_one_place_is_added_up_in_the_order_given()
    local S = sparse({2, 1, 2, 2}, {1, 1, 1, 1}, {1e17, 5, 1, -1e17}, 2, 2,
        {dtype = "f64"})
    equals(full(S), {{5, 0}, {0, 0}}) -- 1e17 + 1 is 1e17
    lu.assertEquals(S.nnz, 2)
    equals(full(sparse({1, 1, 1}, {2, 2, 2}, 1)), {{0, 3}})
end

function TestMaking:test_lists_of_every_kind()
    local expected = {{0, 5, 0}, {0, 0, 5}}
    equals(full(sparse({1, 2}, {2, 3}, 5)), expected)
    equals(full(sparse(vec{1, 2}, vec{2, 3}, vec{5, 5})), expected)
    equals(full(sparse(range(1, 2), {2, 3}, 5, 2, 3)), expected)
    equals(full(sparse(2, {1, 3}, {7, 8})), {{0, 0, 0}, {7, 0, 8}})
    equals(full(sparse(2, 1, 3)), {{0}, {3}})
    equals(full(sparse(2, 1, 3, nil, nil)), {{0}, {3}})
    local ok, message = pcall(sparse, 2, 1, 3, nil, 4)
    lu.assertFalse(ok)
    lu.assertStrContains(message, "sparse: m is missing: n does not go without it")
    equals(full(sparse(vec{9, 1, 9, 2}["2:4:2"], vec{3, 2}["::-1"],
        mat{{5}, {5}}[":,1"])), expected)
end

function TestMaking:test_empty_ones()
    for _, S in ipairs{sparse({}, {}, {}, 3, 2), sparse({}, {}, 1, 3, 2),
        sparse(zeros(3, 2))} do
        lu.assertEquals(S.nnz, 0)
        lu.assertEquals(S.shape, {3, 2})
        equals(full(S), {{0, 0}, {0, 0}, {0, 0}})
        equals(S * ones(2, 2), {{0, 0}, {0, 0}, {0, 0}})
        equals(S * vec{nan, 1}, {0, 0, 0})
    end
    lu.assertEquals(sparse({}, {}, {}).shape, {0, 0})
    lu.assertEquals(full(sparse(zeros(0, 3))).shape, {0, 3})
    lu.assertEquals((sparse(zeros(0, 3)) * ones(3, 2)).shape, {0, 2})
    equals(sparse(zeros(2, 0)) * ones(0, 2), {{0, 0}, {0, 0}})
    lu.assertEquals((sparse(eye(3)) * ones(3, 0)).shape, {3, 0})
end

function TestMaking:test_types()
    local i, j = {1, 2}, {1, 2}
    lu.assertEquals(sparse(i, j, {1, 2}).dtype, "f32")
    lu.assertEquals(sparse(i, j, {1, 2}, {dtype = "f64"}).dtype, "f64")
    lu.assertEquals(sparse(i, j, vec({1, 2}, {dtype = "f64"})).dtype, "f64")
    lu.assertEquals(sparse(i, j, 1, 2, 2, {dtype = "f64"}).dtype, "f64")
    lu.assertEquals(sparse(eye(2, {dtype = "f64"})).dtype, "f64")
    lu.assertEquals(sparse(eye(2), {dtype = "f64"}).dtype, "f64")
    local S = sparse(eye(2):gt(0))
    lu.assertEquals(S.dtype, "f32")
    equals(full(S), {{1, 0}, {0, 1}})
    local third = sparse(1, 1, 1 / 3, {dtype = "f64"})
    lu.assertEquals(third:f32()(1, 1), t.single(1 / 3))
    lu.assertEquals(third:f32():f64().dtype, "f64")
    lu.assertIsTrue(rawequal(third:f64(), third))
    lu.assertEquals(third(1, 1), 1 / 3)
end

function TestMaking:test_of_a_dense_matrix_and_back()
    for _, dtype in ipairs{"f32", "f64"} do
        for k, s in ipairs(shapes) do
            local A = pattern(s[1], s[2], 0.2, dtype, k)
            lu.assertIsTrue(full(sparse(A)) == A)
            lu.assertIsTrue(sparse(A):full() == A)
            lu.assertEquals(sparse(A).nnz, sum(A:ne(0)))
            lu.assertIsTrue(full(sparse(A.T)) == A.T)
            lu.assertIsTrue(full(sparse(A).T) == A.T)
            lu.assertIsTrue(full(sparse(A["::-1, ::2"])) == A["::-1, ::2"])
        end
    end
end

function TestMaking:test_random_triplets_are_sums()
    for k, s in ipairs(shapes) do
        local count = s[1] + 3 * s[2]
        local i = randint(1, s[1], count, {seed = k})
        local j = randint(1, s[2], count, {seed = k + 1})
        local v = randint(-9, 9, count, {seed = k + 2})
        local a = zeros(s[1], s[2]):totable()
        local rows, cols, values = i:totable(), j:totable(), v:totable()
        for e = 1, count do
            local row = a[rows[e] // 1 | 0]
            row[cols[e] // 1 | 0] = row[cols[e] // 1 | 0] + values[e]
        end
        equals(full(sparse(i, j, v, s[1], s[2])), a)
    end
end

function TestMaking:test_sizes_beyond_a_digit_of_the_sort()
    local S = sparse({5000000, 1, 5000000, 70000}, {3, 4000000, 2, 2049},
        {1, 2, 3, 4})
    lu.assertEquals(S.shape, {5000000, 4000000})
    lu.assertEquals({S(1, 4000000), S(70000, 2049), S(-1, 2), S(-1, 3),
        S(70000, 2048), S(70000, 2050), S(4999999, 1)}, {2, 4, 3, 1, 0, 0, 0})
    local x = zeros(4000000)
    x[2], x[3], x[2049], x[4000000] = 1, 10, 100, 1000
    local y = S * x
    lu.assertEquals({y(1), y(70000), y(5000000), sum(y)},
        {2000, 400, 13, 2413})
end

TestComplex = {}

function TestComplex:test_making()
    lu.assertTrue(full(sparse({1, 2, 2}, {1, 1, 2}, {1, im, 2 - im})) ==
        mat{{1, 0}, {im, 2 - im}})
    lu.assertEquals(sparse(1, 1, im).dtype, "c64")
    lu.assertEquals(sparse({1, 2}, 1, im, 2, 2, {dtype = "c128"}).dtype, "c128")
    lu.assertEquals(sparse({1, 2}, 1, {1, 2}, {dtype = "c64"})(2, 1), 2 + 0 * im)
    lu.assertEquals(sparse({1, 1}, {1, 1}, vec{1 + im, 3 * im})(1, 1), 1 + 4 * im)
    raises(function() sparse({1}, {1}, im, {dtype = "f64"}) end,
        "sparse: complex values do not fit f64")
    raises(function() sparse(mat{{im}}, {dtype = "f32"}) end,
        "sparse: complex values do not fit f32")
    raises(function() sparse(vec{im}, 1, 1) end,
        "sparse: i must be whole numbers, not complex ones")
end

function TestComplex:test_as_the_dense_form()
    for k, s in ipairs(shapes) do
        for _, dtype in ipairs{"c64", "c128"} do
            local A = pattern(s[1], s[2], 0.2, dtype, 7 * k)
            local S = sparse(A)
            lu.assertEquals({S.dtype, S.nnz}, {dtype, sum(A:ne(0))})
            lu.assertTrue(full(S) == A)
            lu.assertTrue(full(S.T) == A.T)
            lu.assertTrue(full(S.H) == A.H)
            lu.assertTrue(full(sparse(A.H)) == A.H)
            lu.assertTrue(full(S * (1 - 2 * im)) == A * (1 - 2 * im))
            lu.assertTrue(full(-S) == -A)
            lu.assertTrue(full(3 * S) == 3 * A)
            lu.assertTrue(S:c128():c64():full() == A)
            lu.assertTrue(S == S:c128())
            lu.assertEquals(S(1, -1), A(1, -1))
            lu.assertTrue(S ~= S * (2 * im) or S.nnz == 0)
            local rows = vec{1, s[1], 1}
            lu.assertTrue(full(S[{rows, {}}]) == A[{rows, {}}])
            lu.assertTrue(full(S[{{}, {s[2], 1, -1}}]) == A[{{}, {s[2], 1, -1}}])
        end
    end
end

-- Whole numbers, so that products are exact: of complex and of real operands.
function TestComplex:test_products()
    for k, s in ipairs(shapes) do
        local A = pattern(s[1], s[2], 0.3, "c64", 5 * k)
        local D = pattern(s[2], 67, 0.9, "c64", 5 * k + 1)
        local S, R = sparse(A), sparse(real(A))
        for _, B in ipairs{D, D[{{}, {1, 1}}], D:col(2), D["::-1, ::3"],
            D:c128(), conj(D), D[{{}, 1}]} do
            lu.assertTrue(S * B == A * B)
            lu.assertEquals((S * B).dtype, (A * B).dtype)
            lu.assertTrue(S * real(B) == A * real(B))
            lu.assertTrue(R * B == real(A) * B)
            lu.assertEquals((R * B).shape, (A * B).shape)
        end
    end
end

function TestComplex:test_a_real_operand_has_no_imaginary_part()
    local S = sparse(mat{{2, 0}, {0, 3}})
    local y = S * vec{inf * (1 + 0 * im), im}
    lu.assertEquals(real(y)(1), inf)
    y = (S * im) * vec{inf, 1}
    lu.assertEquals({imag(y)(1), imag(y)(2)}, {inf, 3})
end

function TestComplex:test_printing()
    local S = sparse({1, 2}, {1, 2}, {1 + 2 * im, -im})
    lu.assertStrContains(tostring(S), "  1 + 2i")
    lu.assertStrContains(tostring(S), "·")
    lu.assertStrContains(tostring(sparse({40}, {2}, {1.5 - 2 * im})),
        "[40, 2] 1.5 - 2i")
end

-- Sorted, falling, in one row, in one column and spread over many rows: those
-- that have buckets of their own, and long rows, of all types.
function TestMaking:test_many_entries_in_any_order()
    local n = 70000
    local anywhere = randint(1, 900, n, {seed = 1, dtype = "f64"})
    local across = randint(1, 700, n, {seed = 2})
    local orders = {{anywhere, across}, {sort(anywhere), across},
        {sort(anywhere)["::-1"], sort(across)["::-1"]},
        {anywhere, ones(n)}, {ones(n), anywhere}, {ones(n), sort(anywhere)},
        {range(1, n), across}, {across, range(1, n)["::-1"]}}
    for k, order in ipairs(orders) do
        local i, j = order[1], order[2]
        local v = randint(-9, 9, n, {seed = k})
        for _, values in ipairs{v, v:f64(), v * (1 + im), (v * im):c128()} do
            local S = sparse(i, j, values)
            local x = randint(-3, 3, S.cols, {seed = 3, dtype = "f64"})
            local rows, part = i:totable(), real(values)
            local y, product = {}, (part:f64() % x[j]):totable()
            for r = 1, S.rows do y[r] = 0 end
            for e = 1, n do
                local r = rows[e] // 1 | 0
                y[r] = y[r] + product[e]
            end
            equals(real(S:c128() * x), y)
            lu.assertTrue(S == sparse(j, i, values).T, k)
            lu.assertTrue(S.T.T == S)
        end
    end
end

function TestMaking:test_sums_are_rounded_once()
    local S = sparse({1, 1, 1}, 1, vec{2 ^ 24, 1, 1}, 1, 1)
    lu.assertEquals({S.dtype, S(1, 1)}, {"f32", 2 ^ 24 + 2})
    S = sparse({1, 1, 1}, 1, vec{2 ^ 24, 1, 1} * im, 1, 1)
    lu.assertEquals({S.dtype, S(1, 1)}, {"c64", (2 ^ 24 + 2) * im})
end

function TestMaking:test_places_of_any_type()
    local S = sparse(ones(3):gt(0), vec({1, 2, 3}, {dtype = "f64"}), 1)
    equals(full(S), {{1, 1, 1}})
    raises(function() sparse(vec{1, 0}:gt(0), 1, 1) end,
        "sparse: i of entry 2 is 0: indices start at 1")
    local i = ones(100000)
    i[70001], i[90001] = 2.5, -1
    raises(function() sparse(i, 1, 1) end,
        "sparse: i of entry 70001 must be a whole number, not 2.5")
    i[70001] = 17
    raises(function() sparse(1, i["1:80000"], 1, 3, 9) end,
        "sparse: entry 70001 is at (1, 17), outside 3x9")
end

function TestMaking:test_the_transpose_is_kept()
    local S = sparse({1, 2}, {3, 1}, {5, 7})
    lu.assertIsTrue(rawequal(S.T, S.T))
    lu.assertIsTrue(rawequal(S.T.T, S))
    local turned = S.T
    turned:free()
    equals(full(S.T), {{0, 7}, {0, 0}, {5, 0}})
    turned = S.T
    S:free()
    equals(full(turned.T), {{0, 0, 5}, {7, 0, 0}})
    local alone = sparse({1, 2}, {3, 1}, {5, 7}).T
    collectgarbage()
    collectgarbage()
    equals(full(alone.T), {{0, 0, 5}, {7, 0, 0}})
end

TestElements = {}

function TestElements:test_every_element()
    local A = pattern(20, 30, 0.2, "f64", 3)
    local S = sparse(A)
    for i = 1, 20 do
        for j = 1, 30 do lu.assertEquals(S(i, j), A(i, j)) end
    end
    lu.assertEquals(S(-1, -30), A(20, 1))
end

function TestElements:test_nan_and_inf_are_entries()
    local S = sparse(mat{{nan, 0}, {inf, -inf}})
    lu.assertEquals(S.nnz, 3)
    lu.assertIsTrue(S(1, 1) ~= S(1, 1))
    lu.assertEquals({S(2, 1), S(2, 2), S(1, 2)}, {inf, -inf, 0})
end

function TestElements:test_equality()
    local S = sparse({1, 2}, {1, 2}, {3, 4}, 2, 2)
    lu.assertIsTrue(S == sparse(mat{{3, 0}, {0, 4}}))
    lu.assertIsTrue(S == S:f64())
    lu.assertIsTrue(S == S.T)
    lu.assertIsTrue(S == sparse({1, 2, 1}, {1, 2, 2}, {3, 4, 0}))
    lu.assertIsTrue(sparse({1, 2, 1}, {1, 2, 2}, {3, 4, 0}) == S)
    lu.assertIsFalse(S == 2 * S)
    lu.assertIsFalse(S == sparse({1, 2}, {1, 2}, {3, 4}, 2, 3))
    lu.assertIsFalse(S == sparse({1, 2}, {2, 1}, {3, 4}))
    lu.assertIsFalse(S == sparse({1, 2, 2}, {1, 2, 1}, {3, 4, 1}))
    lu.assertIsFalse(sparse({1, 2, 2}, {1, 2, 1}, {3, 4, 1}) == S)
    lu.assertIsFalse(S == full(S))
    lu.assertIsFalse(sparse(1, 1, nan) == sparse(1, 1, nan))
end

TestProducts = {}

-- S * D against the dense product in f64 on the CPU, where whole numbers are
-- exact.
local function exactly(S, A, D, what)
    local expected = A:to("cpu"):f64() * D:to("cpu"):f64()
    local got = S * D
    lu.assertEquals(got.shape, expected.shape, what)
    lu.assertEquals(got.device, here, what)
    lu.assertIsTrue(got:to("cpu"):f64() == expected, what)
    return got
end

function TestProducts:test_the_classical_example()
    local S = sparse({1, 1, 2, 3, 3, 3}, {1, 3, 3, 1, 2, 3},
        {1, 2, 3, 4, 5, 6}, 3, 3)
    local D = mat{{1, 2}, {3, 4}, {5, 6}}
    equals(S * D, {{11, 14}, {15, 18}, {49, 64}})
    equals(S * D[":,2"], {14, 18, 64})
    equals(S.T * D, {{21, 26}, {25, 30}, {41, 52}})
end

function TestProducts:test_whole_numbers_over_random_patterns()
    for _, dtype in ipairs{"f32", "f64"} do
        for k, s in ipairs(shapes) do
            for _, share in ipairs{0.05, 0.5, 1} do
                local A = pattern(s[1], s[2], share, dtype, k)
                local S = sparse(A)
                for _, n in ipairs{1, 2, 3, 16, 63, 64, 65, 130} do
                    local what = table.concat({dtype, s[1], s[2], n}, " ")
                    local D = whole(s[2], n, dtype, n)
                    exactly(S, A, D, what)
                    exactly(S, A, whole(n, s[2], dtype, n).T, what .. " T")
                end
                exactly(S, A, whole(s[2], 1, dtype, 9):flatten(), "vector")
                exactly(S.T, A.T, whole(s[1], 3, dtype, 9), "S.T")
            end
        end
    end
end

-- What f did: the kernel of each operation by its name.
local function done(f)
    local kernels = {}
    profile("reset")
    profile("on")
    f()
    profile("off")
    for _, r in ipairs(profile().operations) do
        kernels[r.operation] = r.kernel
    end
    profile("reset")
    return kernels
end

-- Random entries, so that sums round.
local function random_entries(m, n, dtype)
    local A = pattern(m, n, 0.3, "f64", m + n) % uniform(m, n, "f64", 5)
    if dtype == "c64" or dtype == "c128" then A = A + im * A:gt(0):f64() * 0.3 end
    return sparse(A[dtype](A))
end

function TestProducts:test_the_transpose_is_not_made_for_few_products()
    local S, x = random_entries(40, 30, "f64"), uniform(40, 1, "f64", 3):flatten()
    local X = uniform(40, 17, "f64", 3)
    local short = here == "cpu" and "scatter" or nil
    local T = S.T
    for _, f in ipairs{function() return S.T * x end,
        function() return x * S end, function() return X[":,1:16"].T * S end,
        function() return T * X[":,1:16"] end} do
        local kernels = done(f)
        if short then lu.assertEquals(kernels, {matmul = "scatter"}) end
    end
    lu.assertEquals({T.rows, T.cols, T.nnz, T.dtype, T.device, T.bytes, #T.T},
        {30, 40, S.nnz, "f64", here, 4 * 31 + 12 * S.nnz, 40})
    local first = T * x
    for k = 1, 20 do lu.assertTrue(T * x == first, k) end
    lu.assertNotEquals(done(function() return T * x end).matmul, "scatter")
    local wide = S:clone()
    lu.assertNotEquals(done(function() return wide.T * X end).matmul, "scatter")
end

function TestProducts:test_bits_of_the_transpose()
    if here ~= "cpu" then return end
    for _, dtype in ipairs{"f32", "f64", "c64", "c128"} do
        for _, s in ipairs{{1, 5}, {40, 30}, {30, 400}, {400, 3}, {300, 900}} do
            local S = random_entries(s[1], s[2], dtype)
            local x = uniform(s[1], 1, "f64", 4)[dtype](uniform(s[1], 1, "f64", 4))
            local T = S:clone().T
            T:triplets()
            local few = hcat(x, x * 3, x + 1)
            local many = hcat(few, few * 5, few + 2)
            for _, d in ipairs{x:flatten(), x, few, many[":,1:8"], many,
                vcat(x.T, x.T * 3, x.T + 1).T} do
                local what = table.concat({dtype, s[1], s[2], d.cols}, " ")
                lu.assertEquals(done(function() return T * d end).matmul, "csr")
                lu.assertTrue(S.T * d == T * d, what)
                if d.ndim == 1 then
                    lu.assertTrue(d * S == T * d, what)
                else
                    lu.assertTrue(d.T * S == (T * d).T, what)
                end
            end
        end
    end
end

function TestProducts:test_an_unread_transpose_of_what_has_gone()
    local S = sparse({1, 2}, {3, 1}, {5, 7})
    local T, x = S.T, vec{1, 2}
    S[{1, 1}] = 9
    equals(T * x, {14, 0, 5})
    equals(S.T * x, {23, 0, 5})
    T = S.T
    S:free()
    equals(T * x, {23, 0, 5})
    equals(full(T.T), {{9, 0, 5}, {7, 0, 0}})
    T = sparse({1, 2}, {3, 1}, {5, 7}).T
    collectgarbage()
    equals(T * x, {14, 0, 5})
    cost(function() return T:sum(1), T + T end)
    equals(T * x, {14, 0, 5})
    equals(full(T), {{0, 7}, {0, 0}, {5, 0}})
    T = sparse({1, 2}, {3, 1}, {5, 7}).T
    T:free()
    lu.assertEquals(T.device, "none")
    raises(function() return T * x end, "freed")
    raises(function() return sparse({1, 2}, {3, 1}, {5, 7}).T * vec{1, 2, 3} end,
        "inner dimensions differ (2 and 3)")
end

-- In pairs, of which one may be longer, and one left over.
function TestProducts:test_long_rows()
    local A = whole(5, 700, "f64", 2)
    A["2,100:700"], A["4,:"] = 0, 0
    for _, x in ipairs{whole(700, 1, "f64", 3), whole(700, 1, "f64", 3):flatten()} do
        for rows = 1, 5 do
            local some = A[{{1, rows}, {}}]
            lu.assertTrue(sparse(some) * x == some * x, rows)
        end
    end
end

function TestProducts:test_views()
    for _, dtype in ipairs{"f32", "f64"} do
        local A = pattern(40, 50, 0.2, dtype, 5)
        local S, P = sparse(A), whole(120, 150, dtype, 6)
        for i, D in ipairs{P["3:52,2:66"], P["1:99:2,::3"], P["50:1:-1,9:20"],
            P["::-1,::-1"]["11:60,5:9"], P[":,1:50"].T, P["::2,1:100:2"].T,
            P["1:1,1:50"].T, P["7:56,3:3"], P[":,7"]["2:51"], P["5,:"]["::3"],
            P["5,:"]["150:101:-1"], P["::-2,::-3"].T} do
            exactly(S, A, D, dtype .. " view " .. i)
        end
    end
end

function TestProducts:test_types_of_operands()
    local S, x = sparse(mat{{1, 2}, {0, 3}}), vec{1, 2}
    lu.assertEquals((S * x).dtype, "f32")
    lu.assertEquals((S:f64() * x).dtype, "f64")
    lu.assertEquals((S * x:f64()).dtype, "f64")
    equals(S:f64() * x, {5, 6})
    equals(S * x:f64(), {5, 6})
    equals(S * vec{true, false}, {1, 0})
    lu.assertEquals((S * vec{true, false}).dtype, "f32")
    equals(S * mat{{true, false}, {true, true}}, {{3, 2}, {3, 3}})
end

-- Sums are kept in f64: on the CPU the result is within an ulp of the exact.
function TestProducts:test_uniform_numbers_are_near()
    for k, s in ipairs{{31, 500}, {3, 4000}, {200, 65}} do
        local A = uniform(s[1], s[2], "f32", k)
        for _, n in ipairs{1, 5, 70} do
            local D = uniform(s[2], n, "f32", k + 9)
            local exact = A:to("cpu"):f64() * D:to("cpu"):f64()
            local size = A:to("cpu"):f64():abs() * D:to("cpu"):f64():abs()
            local error = ((sparse(A) * D):to("cpu"):f64() - exact):abs()
            local gamma = here == "cpu" and 2 ^ -23 or
                (s[2] + 2) * 2 ^ -24
            local bound = here == "cpu" and exact:abs() * gamma + size * 1e-12
                or size * gamma
            lu.assertIsTrue((error:le(bound)):all())
        end
    end
end

function TestProducts:test_what_is_no_entry_is_not_multiplied()
    local S = sparse(mat{{1, 0}, {0, 2}})
    equals(S * mat{{nan, 1}, {2, inf}}, {{nan, 1}, {4, inf}})
    equals(sparse(mat{{nan, 0}, {inf, 1}}) * vec{0, 1}, {nan, nan})
end

function TestProducts:test_repeats_bit_for_bit()
    local A = uniform(300, 400, "f32", 1) % rand(300, 400, {seed = 2}):lt(0.1)
    local S, D = sparse(A), uniform(400, 70, "f32", 3)
    local first = S * D
    for _ = 1, 20 do lu.assertIsTrue(S * D == first) end
end

function TestProducts:test_numbers()
    local S = sparse(mat{{1, 0}, {0.5, -2}})
    equals(full(2 * S), {{2, 0}, {1, -4}})
    equals(full(S * 2), {{2, 0}, {1, -4}})
    equals(full(-S), {{-1, 0}, {-0.5, 2}})
    equals(full(S), {{1, 0}, {0.5, -2}})
    lu.assertEquals((0 * S).nnz, 3)
    lu.assertEquals((3 * S:f64()).dtype, "f64")
end

function TestProducts:test_both_devices_agree()
    local A = pattern(60, 70, 0.2, "f32", 4)
    t.agrees(function()
        return sparse(A:to(device())) * whole(70, 33, "f32", 5)
    end)
end

TestPlaces = {}

function TestPlaces:test_there_and_back()
    local S = sparse({1, 2, 2}, {2, 1, 3}, {0.5, -1, nan}, 3, 4)
    local C = S:to("cpu")
    lu.assertEquals(C.device, "cpu")
    lu.assertEquals(rawequal(C, S), here == "cpu")
    lu.assertEquals({C(1, 2), C(2, 1), C(3, 4)}, {0.5, -1, 0})
    local back = C:to(here)
    lu.assertEquals(back.device, here)
    equals(full(back), {{0, 0.5, 0, 0}, {-1, 0, nan, 0}, {0, 0, 0, 0}})
    lu.assertEquals(sparse({1}, {1}, {1}, {device = "cpu"}).device, "cpu")
    lu.assertEquals(sparse(vec({1}, {device = "cpu"}), {1},
        vec({1}, {device = "cpu"})).device, "cpu")
    lu.assertEquals(sparse(eye(2), {device = "cpu"}).device, "cpu")
end

function TestPlaces:test_operands_on_two_devices()
    if not t.on_gpu then return end
    local S = sparse(eye(2))
    raises(function() return S:to("cpu") * ones(2, 2) end,
        "matmul: operands are on different devices (cpu and " .. here)
end

function TestPlaces:test_memory_is_given_back()
    local places = range(1, 1000)
    collectgarbage()
    collectgarbage()
    local before = memory(t.device).live
    local S <close> = sparse(places, places, 1)
    lu.assertEquals(memory(t.device).live - before, 4004 + 4000 + 4000)
    local twice = 2 * S -- shares the places
    lu.assertEquals(memory(t.device).live - before, 16004)
    twice:free()
    lu.assertEquals(memory(t.device).live - before, 12004)
    S:free()
    lu.assertEquals(memory(t.device).live, before)
    raises(function() return S * ones(1000) end, "freed")
    raises(function() return S.T end, "freed")
    raises(function() return full(S) end, "freed")
    raises(function() return S(1, 1) end, "freed")
    raises(function() return S:f64() end, "freed")
    lu.assertEquals({S.device, tostring(S), S == S},
        {"none", "freed sparse matrix", true})
    S:free()
end

function TestPlaces:test_temporaries_stay_bounded()
    collectgarbage()
    local S, most = sparse(range(1, 100000), range(1, 100000), 1), 0
    local before = memory(t.device).live
    for _ = 1, 2000 do
        local _ = 2 * S
        most = math.max(most, memory(t.device).live - before)
    end
    lu.assertIsTrue(most <= 256 << 20, most)
end

TestPrinting = {}

local function shows(S, ...)
    local expected = table.concat({...}, "\n"):gsub("@", here)
    lu.assertEquals(tostring(S), expected)
end

function TestPrinting:test_small_ones_are_dots()
    shows(sparse({1, 2, 4, 5}, {1, 3, 2, 5}, {2, 1, 3, 7}, 5, 5),
        "f32 5x5 sparse csr  @  nnz 4 (16 %)  56 B",
        "  2  ·  ·  ·  ·",
        "  ·  ·  1  ·  ·",
        "  ·  ·  ·  ·  ·",
        "  ·  3  ·  ·  ·",
        "  ·  ·  ·  ·  7")
    shows(sparse({1, 2, 3}, {1, 1, 3}, {0.5, -12, 0}, 3, 3, {dtype = "f64"}),
        "f64 3x3 sparse csr  @  nnz 3 (33.3 %)  52 B",
        "    0.5  ·  ·",
        "  -12.0  ·  ·",
        "    ·    ·  0")
    shows(sparse(mat{{nan, 0}, {1, inf}}),
        "f32 2x2 sparse csr  @  nnz 3 (75 %)  36 B   1 NaN, 1 Inf",
        "  NaN    ·",
        "    1  Inf")
    shows(sparse(zeros(2, 2)),
        "f32 2x2 sparse csr  @  nnz 0 (0 %)  12 B",
        "  ·  ·",
        "  ·  ·")
end

function TestPrinting:test_few_are_triplets()
    shows(sparse({1, 1, 2}, {17, 90211, 3}, {0.5214, -1.2, 4}, 1e6, 1e6),
        "f32 1000000x1000000 sparse csr  @  nnz 3 (3e-10 %)  3.8 MiB",
        "  [1, 17] 0.5214   [1, 90211] -1.2000   [2, 3] 4.0000")
    shows(sparse({40}, {2}, {nan}),
        "f32 40x2 sparse csr  @  nnz 1 (1.25 %)  172 B   1 NaN",
        "  [40, 2] NaN")
    shows(sparse({}, {}, {}, 100, 100),
        "f32 100x100 sparse csr  @  nnz 0 (0 %)  404 B")
end

function TestPrinting:test_many_are_cut()
    local S = sparse(range(1, 1000), range(1000, 1, -1), range(1, 1000))
    local text = table.concat({
        "f32 1000x1000 sparse csr  @  nnz 1 000 (0.1 %)  11.7 KiB",
        "  [1, 1000] 1   [2, 999] 2   [3, 998] 3   [4, 997] 4   [5, 996] 5" ..
        "   [6, 995] 6",
        "  [7, 994] 7   [8, 993] 8   [9, 992] 9   [10, 991] 10" ..
        "   [11, 990] 11",
        "  [12, 989] 12   [13, 988] 13   [14, 987] 14   [15, 986] 15" ..
        "   [16, 985] 16",
        "  [17, 984] 17   [18, 983] 18   [19, 982] 19   [20, 981] 20" ..
        "   [21, 980] 21"}, "\n")
    shows(S, text, "  … 979 more")
    local v = range(1, 1000)
    v[22], v[1000], v[500], v[900] = nan, inf, nan, -inf
    shows(sparse(range(1, 1000), range(1000, 1, -1), v), text,
        "  … 979 more, 2 NaN, 2 Inf")
end

function TestPrinting:test_wide_ones_are_triplets()
    local S = sparse(eye(5, 40))
    shows(S, "f32 5x40 sparse csr  @  nnz 5 (2.5 %)  64 B",
        "  [1, 1] 1   [2, 2] 1   [3, 3] 1   [4, 4] 1   [5, 5] 1")
end

function TestPrinting:test_empties()
    shows(sparse(zeros(0, 3)), "f32 0x3 sparse csr  @  nnz 0  4 B")
end

function TestPrinting:test_little_crosses_the_bus()
    local S = sparse(range(1, 1e6), range(1, 1e6), 1)
    local before = stats().downloaded
    tostring(S)
    lu.assertIsTrue(stats().downloaded - before <= 8192)
end

TestErrors = {}

function TestErrors:test_entries()
    local function says(text, ...)
        local arguments = table.pack(...)
        local message = raises(function()
            sparse(table.unpack(arguments, 1, arguments.n))
        end)
        lu.assertEquals(message:gsub("^[^ ]*:%d+: ", ""), text)
    end
    says("sparse: entry 3 is at (4, 1), outside 3x3", {1, 2, 4}, {1, 2, 1},
        1, 3, 3)
    says("sparse: entry 2 is at (2, 3), outside 2x2", {1, 2}, {1, 3}, 1, 2, 2)
    says("sparse: i of entry 1 is 0: indices start at 1", {0}, {1}, {5})
    says("sparse: i of entry 1 is 0: indices start at 1", {0}, {1}, 1, 3, 3)
    says("sparse: j of entry 2 is -1: indices start at 1", {1, 2}, {2, -1}, 1)
    says("sparse: i of entry 2 must be a whole number, not 1.5", {1, 1.5},
        {1, 1}, 1)
    says("sparse: j of entry 1 must be a whole number, not NaN", {1, 1},
        {nan, 1}, 1)
    says("sparse: j of entry 1 must be a whole number, not 1e+300", 1, 1e300,
        1)
    says("sparse: lengths differ (i has 2 elements, v has 3)", {1, 2}, 1,
        {1, 2, 3})
    says("sparse: lengths differ (i has 2 elements, j has 1)", {1, 2}, {1}, 1)
    says("sparse: element 2 is a string, not a number", {1, "x"}, {1, 2}, 1)
    says("sparse: i of entry 1 is 3000000000: a size must be below 2147483648", 3e9, 1, 1)
    says("dtype: a sparse matrix is f32, f64, c64 or c128, not bool", 1, 1, 1,
        {dtype = "bool"})
    says("sparse: unknown option 'dtyp': did you mean 'dtype'?", 1, 1, 1, {dtyp = 1})
end

function TestErrors:test_arguments()
    raises(function() sparse(1, 1, 1, -2, 3) end, 
        "sparse: m is -2, expected a whole number from 0 on")
    raises(function() sparse(1, 1, 1, 1.5, 3) end, "m is 1.5", "whole number")
    raises(function() sparse(1, 1, 1, 3) end, "sparse: n is missing")
    raises(function() sparse({1}, 1) end, 
        "sparse: v is missing, expected a vector or a table, or a number")
    raises(function() sparse(1, "x", 1) end, 
        'sparse: j is "x", expected a vector or a table, or a number')
    raises(function() sparse(eye(2), eye(2), 1) end, 
        "sparse: i is a matrix, expected a vector")
    raises(function() sparse(vec{1, 2}) end, "sparse: A is a vector", "v:col()")
    raises(function() sparse(sparse(eye(2))) end, "sparse already")
    raises(function() sparse() end, "sparse: i is missing")
    raises(function() sparse(eye(2), {dtype = "f16"}) end, "f16")
end

function TestErrors:test_products()
    local S, D, x = sparse(ones(3, 4)), ones(3, 2), ones(3)
    local E = ones(2, 4)
    raises(function() return S * D end,
        "matmul: inner dimensions differ (4 and 3)\n  S is 3x4, D is 3x2" ..
        "      S.T * D would fit")
    raises(function() return S * x end,
        "matmul: inner dimensions differ (4 and 3)\n  S is 3x4, x is vector 3"
        .. "      S.T * x would fit")
    raises(function() return S * E end, "  S is 3x4, E is 2x4" ..
        "      S * E.T would fit")
    raises(function() return D * S end,
        "matmul: inner dimensions differ (2 and 3): D is 3x2, S is 3x4")
    raises(function() return ones(4) * S end, "(4 and 3)", "vector 4")
    raises(function() return S * S end,
        "matmul: inner dimensions differ (4 and 3)")
    raises(function() return S * "a" end, "number")
    raises(function() return {} * S end, "number")
    raises(function() return S * nil end, "S * B: B is nil, expected a matrix or a number")
end

function TestErrors:test_what_has_no_meaning()
    local S, D = sparse(eye(3)), eye(3)
    local rest = " has no meaning: comparisons are S:gt(x), S:ne(x) and the like"
    raises(function() return S < D end, "sparse: S < D" .. rest)
    raises(function() return S .. "x" end,
        "..: cannot join a sparse matrix and a string; for text write tostring(S)")
    raises(function() return argmax(S) end,
        "argmax: A is a sparse matrix, expected a matrix", "write full(A)")
    for _, f in ipairs{inv, det, eig, eigh, expm, logdet, rcond, eigvals} do
        raises(function() return f(S) end,
            "A is a sparse matrix, expected a square matrix: write full(A)")
    end
end

function TestErrors:test_indices()
    local S = sparse(ones(2, 3))
    raises(function() return S(3, 1) end, "row 3 is outside 1..2")
    raises(function() return S(1, 0) end, "column 0 is outside 1..3")
    raises(function() return S(1, -4) end, "column -4 is outside 1..3")
    raises(function() return S(1.5, 1) end,
        "index: must be a whole number, not 1.5")
    raises(function() return S(1) end,
        "index: 1 index given, a sparse matrix has 2")
    raises(function() return S[3] end, "row 3 is outside 1..2")
    raises(function() return S[{1, 2, 3}] end, "3 indices", "has 2")
    raises(function() return S["1:3,:"] end, "3", "1..2", "S is 2x3")
    raises(function() return S[{{}, vec{1, 4}}] end,
        "index: column 4 is outside 1..3 (S is 2x3)")
    raises(function() return S[vec{true}] end,
        "index: the mask has length 1, there are 2 rows (S is 2x3)")
    raises(function() return S[ones(3, 2):gt(0)] end, "shapes differ (2x3, ",
        "mask 3x2")
    raises(function() return S[true] end, "boolean")
    lu.assertNil(raises(function() return S[{3, {}}] end,
        "row 3 is outside 1..2"):find("eachrow"))
    raises(function() return S.nzz end,
        "a sparse matrix has no 'nzz': did you mean 'nnz'?")
    raises(function() return S:unheard_of() end,
        "a sparse matrix has no \"unheard_of\": there are T H rows")
    raises(function() return S:cumsum() end, "a sparse matrix has no 'cumsum', " ..
        "which dense ones have: write S:full():cumsum(…)")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
