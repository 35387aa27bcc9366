-- A[…] with lists: vectors of places and masks of rows, columns and elements,
-- read and assigned, of dense and of sparse matrices.
local lu = require "luaunit"
local t = require "common"
local equals, raises, places, nan = t.equals, t.raises, t.places, t.nan
local after = t.after

TestRead = {}

function TestRead:test_rows_by_their_places()
    local A = places(4, 3)
    local expected = {{31, 32, 33}, {11, 12, 13}, {41, 42, 43}, {31, 32, 33}}
    equals(A[vec{3, 1, -1, -2}], expected)
    equals(A[{vec{3, 1, -1, -2}}], expected)
    equals(A[{vec{3, 1, -1, -2}, {}}], expected)
    equals(A[vec({3, 1, -1, -2}, {dtype = "f64"})], expected)
    equals(A[vec{2}], {{21, 22, 23}})
    equals(A:take(vec{3, 1, -1, -2}), expected)
end

function TestRead:test_columns_and_both()
    local A = places(3, 4)
    equals(A[{{}, vec{4, 1}}], {{14, 11}, {24, 21}, {34, 31}})
    equals(A[{vec{3, 1}, vec{4, 1, 1}}], {{34, 31, 31}, {14, 11, 11}})
    equals(A[{{2, 3}, vec{4, 1}}], {{24, 21}, {34, 31}})
    equals(A[{vec{-1, 1}, {4, 2, -2}}], {{34, 32}, {14, 12}})
    equals(A.T[{vec{4, 1}, {}}], {{14, 24, 34}, {11, 21, 31}})
    equals(A["::-1, ::2"][{vec{1, 3}, vec{2}}], {{33}, {13}})
end

function TestRead:test_a_number_drops_its_side()
    local A = places(3, 4)
    equals(A[{2, vec{4, 1}}], {24, 21})
    equals(A[{vec{3, 1}, -1}], {34, 14})
    equals(A[{vec{true, false, true}, 2}], {12, 32})
end

function TestRead:test_elements_of_a_vector()
    local v = range(1, 6)
    equals(v[vec{6, -6, 2, 2}], {6, 1, 2, 2})
    equals(v[{vec{6, -6}}], {6, 1})
    equals(v[{v:gt(4)}], {5, 6})
    equals(v["::-1"][vec{1, 2}], {6, 5})
    equals(v[vec{3}], {3})
    equals(v[sort(randperm(6))], v:totable())
    equals(v[argsort(-v)], {6, 5, 4, 3, 2, 1})
    equals(vec{true, false, true}[vec{2, 3}], {false, true})
end

function TestRead:test_masks_of_a_side()
    local X = places(4, 3)
    equals(X[X[{{}, 1}]:gt(21)], {{31, 32, 33}, {41, 42, 43}})
    equals(X[{X[{{}, 1}]:gt(21), vec{true, false, true}}], {{31, 33}, {41, 43}})
    equals(X[{{}, X[1]:lt(13)}], {{11, 12}, {21, 22}, {31, 32}, {41, 42}})
    equals(X[vec{true, true, true, true}], X:totable())
    lu.assertEquals(X[X[{{}, 1}]:gt(99)].shape, {0, 3})
    equals(X:take(vec{true, false, false, true}, vec{3, 1}), {{13, 11}, {43, 41}})
    -- of the matrix's own shape it chooses elements
    equals(ones(1, 3)[vec{true}], {{1, 1, 1}})
    equals(ones(3, 1)[ones(3, 1):gt(0)], {1, 1, 1})
end

-- Long lists are read where they lie.
function TestRead:test_long_lists()
    local n = 5003
    for _, dtype in ipairs{"f32", "f64"} do
        local v = range(1, n, 1, {dtype = dtype})
        local A = v:reshape(n, 1) + vec{0, 0.25, 0.5}:row()
        local p = randint(1, n, 7001, {dtype = dtype, seed = 3})
        local back = p - n - 1
        lu.assertTrue(v[p] == p and v[back] == p and v:take(back) == p)
        lu.assertTrue(A[p] == p:reshape(7001, 1) + vec{0, 0.25, 0.5}:row())
        lu.assertTrue(A.T[{{}, p}] == A[p].T and A.T[{vec{3, 1}, p}] ==
            A[{p, vec{3, 1}}].T)
        lu.assertTrue(A:take(p, {2}) == A[{p, {2, 2}}])
        lu.assertTrue(A[{p, 2}] == p + 0.25)
        lu.assertTrue(A["::-1, :"][p] == A[n + 1 - p])
        lu.assertTrue(A[A[{{}, 1}]:gt(n - 2)] == A["-2:, :"])
        lu.assertTrue(bool(v)[p]:all())
        lu.assertTrue(complex(v, -v)[p] == complex(p, -p))
        lu.assertTrue(complex(v, v):c128().H[p] == complex(p, -p):c128())
    end
end

function TestRead:test_long_lists_are_checked()
    local n = 5000
    local v, p = range(1, n), range(1, n, 1, {dtype = "f64"})
    local A = zeros(n, 2)
    for _, bad in ipairs{0, n + 1, -n - 1, 1.5, nan, 1 / 0} do
        local q = p:clone()
        q[4711] = bad
        local why = bad == 1.5 and "1.5 is not a whole number" or
            bad ~= bad and "NaN is not a whole number" or "outside 1..5000"
        raises(function() return v[q] end, why)
        raises(function() return A[{q, 1}] end, "index: row ")
        raises(function() return A.T[{{}, q}] end, "index: column ")
        raises(function() return take(v, q) end, "take: place ")
        raises(function() v[q] = 7 end, why)
        raises(function() put(v, zeros(n), q) end, "put: place ")
        lu.assertEquals(v:max(), n)
    end
    raises(function() return A[range(1, n):gt(2)["2:"]] end, "mask has length")
    local wide = zeros(20000000)
    raises(function() return wide[full(5000, 1, 2 ^ 24):flatten()] end, "f32 list")
end

function TestRead:test_empty_lists()
    local A, none = places(3, 4), zeros(0)
    lu.assertEquals(A[none].shape, {0, 4})
    lu.assertEquals(A[{{}, none}].shape, {3, 0})
    lu.assertEquals(A[{none, none}].shape, {0, 0})
    lu.assertEquals(A[{2, none}].shape, {0})
    lu.assertEquals(vec{1, 2}[none].shape, {0})
    lu.assertEquals(zeros(0, 4)[none].shape, {0, 4})
    lu.assertEquals(zeros(0, 4)[none:gt(0)].shape, {0, 4})
    A[none], A[{{}, none}] = 7, ones(3, 0)
    equals(A, places(3, 4):totable())
end

function TestRead:test_types_stay_and_it_is_a_copy()
    for _, dtype in ipairs{"f32", "f64", "bool"} do
        local A = ones(3, 3, {dtype = dtype})
        local B = A[{vec{1, 2}, {}}]
        lu.assertEquals(B.dtype, dtype)
        B[{1, 1}] = 0
        lu.assertEquals(A(1, 1) ~= 0 and A(1, 1) ~= false, true)
    end
end

-- Lists are read on the host, wherever they are.
function TestRead:test_lists_of_another_device()
    local A, p, q = places(3, 4), vec{3, 1}:to("cpu"), vec{2, 4}
    equals(A[p], {{31, 32, 33, 34}, {11, 12, 13, 14}})
    equals(A[{p, q}], {{32, 34}, {12, 14}})
    equals(A:to("cpu")[{p, q}], {{32, 34}, {12, 14}})
    lu.assertEquals(A[{p, q}].device, A.device)
    A[{p, q}] = mat{{1, 2}, {3, 4}}:to("cpu")
    equals(A, {{11, 3, 13, 4}, {21, 22, 23, 24}, {31, 1, 33, 2}})
end

TestWrite = {}

function TestWrite:test_numbers()
    after(function(A) A[vec{3, 1}] = 0 end, {{0, 0, 0}, {21, 22, 23}, {0, 0, 0}})
    after(function(A) A[{{}, vec{2}}] = nan end,
        {{11, nan, 13}, {21, nan, 23}, {31, nan, 33}})
    after(function(A) A[{vec{1, 3}, vec{1, 3}}] = true end,
        {{1, 12, 1}, {21, 22, 23}, {1, 32, 1}})
    after(function(A) A[{2, vec{1, 3}}] = 5 end,
        {{11, 12, 13}, {5, 22, 5}, {31, 32, 33}})
    after(function(A) A[A[{{}, 1}]:gt(11)] = -1 end,
        {{11, 12, 13}, {-1, -1, -1}, {-1, -1, -1}})
    local v = range(1, 4)
    v[vec{-1, 2}] = 9
    v[{v:eq(3)}] = 8
    equals(v, {1, 9, 8, 9})
end

function TestWrite:test_matrices()
    after(function(A) A[vec{3, 1}] = mat{{1, 2, 3}, {4, 5, 6}} end,
        {{4, 5, 6}, {21, 22, 23}, {1, 2, 3}})
    after(function(A) A[{vec{3, 1}, {2, 3}}] = {{1, 2}, {3, 4}} end,
        {{11, 3, 4}, {21, 22, 23}, {31, 1, 2}})
    after(function(A) A[{1, vec{3, 1}}] = {1, 2} end,
        {{2, 12, 1}, {21, 22, 23}, {31, 32, 33}})
    after(function(A) A[{vec{3, 1}, 2}] = vec{1, 2} end,
        {{11, 2, 13}, {21, 22, 23}, {31, 1, 33}})
    after(function(A) A.T[vec{1}] = mat{{7, 8, 9}} end,
        {{7, 12, 13}, {8, 22, 23}, {9, 32, 33}})
    local v = range(1, 4)
    v[vec{4, 1}] = {5, 6}
    equals(v, {6, 2, 3, 5})
end

function TestWrite:test_rows_and_columns_are_broadcast()
    after(function(A) A[vec{3, 1}] = mat{{1, 2, 3}} end,
        {{1, 2, 3}, {21, 22, 23}, {1, 2, 3}})
    after(function(A) A[{vec{1, 2}, vec{3, 1}}] = mat{{1}, {2}} end,
        {{1, 12, 1}, {2, 22, 2}, {31, 32, 33}})
    after(function(A) A[{{}, vec{3, 1}}] = mat{{4}} end,
        {{4, 12, 4}, {4, 22, 4}, {4, 32, 4}})
    after(function(A) A[vec{2, 3}] = A:row(1) end,
        {{11, 12, 13}, {11, 12, 13}, {11, 12, 13}})
end

function TestWrite:test_types_are_converted()
    local A, B = zeros(2, 2, {dtype = "f64"}), zeros(2, 2, {dtype = "bool"})
    A[vec{2}] = mat{{0.5, 0.25}}
    A[{vec{1}, 1}] = 0.1
    equals(A, {{0.1, 0}, {0.5, 0.25}})
    B[vec{2}] = mat{{3, 0}}
    equals(B, {{false, false}, {true, false}})
end

function TestWrite:test_the_source_is_the_matrix_itself()
    after(function(A) A[vec{1, 2, 3}] = A["::-1, :"] end,
        {{31, 32, 33}, {21, 22, 23}, {11, 12, 13}})
    after(function(A) A[{{}, vec{3, 1, 2}}] = A end,
        {{12, 13, 11}, {22, 23, 21}, {32, 33, 31}})
    after(function(A) A[vec{2, 3}] = A["1:2, :"] end,
        {{11, 12, 13}, {11, 12, 13}, {21, 22, 23}})
    local v = vec{2, 3, 1}
    v[v] = v
    equals(v, {1, 2, 3})
end

function TestWrite:test_the_last_of_repeated_places_wins()
    after(function(A) A[vec{1, 3, 1, -3}] = mat{{1, 1, 1}, {2, 2, 2}, {3, 3, 3},
        {4, 4, 4}} end, {{4, 4, 4}, {21, 22, 23}, {2, 2, 2}})
    after(function(A) A[{{}, vec{2, 2}}] = mat{{1, 5}, {2, 6}, {3, 7}} end,
        {{11, 5, 13}, {21, 6, 23}, {31, 7, 33}})
    for _, shape in ipairs{{5000, 3}, {400, 1500}, {1, 20000}} do
        local n, width = shape[1], shape[2]
        local rows = randint(1, 3, n, {seed = n})
        local A, values = zeros(3, width), range(1, n):col() * ones(1, width)
        A[rows] = values
        local last = {0, 0, 0}
        for i, row in ipairs(rows:totable()) do
            last[math.tointeger(row)] = i
        end
        equals(A, (vec(last):col() * ones(1, width)):totable())
        A = zeros(width, 3)
        A[{{}, rows}] = values.T
        equals(A, (ones(width, 1) * vec(last):row()):totable())
    end
end

-- --- against loops ----------------------------------------------------------

-- Of repeated places the last wins, in long lists as in short ones.
function TestWrite:test_long_lists()
    local n, count = 5003, 20011
    for _, dtype in ipairs{"f32", "f64"} do
        local p = randint(1, n, count, {dtype = dtype, seed = 4})
        local order, expected = range(1, count, 1, {dtype = dtype}), {}
        for i = 1, n do expected[i] = 0 end
        for i, place in ipairs(p:totable()) do expected[place // 1] = i end
        local v, A = zeros(n, {dtype = dtype}), zeros(n, 3, {dtype = dtype})
        v[p - n - 1] = order
        equals(v, expected)
        equals(put(zeros(n), order, p), expected)
        A[{p, 2}] = order
        equals(A[{{}, 2}], expected)
        lu.assertEquals(A:sum(), v:sum())
        A[{p, vec{3, 1}}] = order:reshape(count, 1)
        lu.assertTrue(A[{{}, 1}] == v and A[{{}, 3}] == v)
        local B = zeros(3, n, {dtype = dtype})
        B.T[p] = hcat(order:reshape(count, 1), -order:reshape(count, 1),
            order:reshape(count, 1))
        lu.assertTrue(B[1] == v and B[2] == -v and B[3] == v)
        v[p] = 7
        lu.assertTrue(all(v:eq(7) | vec(expected):eq(0)))
        p[p] = p -- from and to overlap
        raises(function() v[p] = order["2:"] end, "does not fit")
        local z = zeros(n):c64()
        z[range(1, n)] = complex(range(1, n), 1)
        lu.assertTrue(z == complex(range(1, n), 1))
    end
end

TestRandom = {}

-- A side of n places: as a key, its places in order, whether it is one number.
local function any_side(n)
    local kind, list = math.random(6), {}
    if kind == 1 then
        local i = math.random(n)
        return math.random(2) == 1 and i or i - n - 1, {i}, true
    elseif kind == 2 then
        for i = 1, n do list[i] = i end
        return {}, list
    elseif kind == 3 then
        local first, step = math.random(n), math.random(3)
        for i = first, n, step do list[#list + 1] = i end
        return {first, -1, n > 1 and step or 1}, list
    elseif kind == 4 then
        local mask = {}
        for i = 1, n do
            mask[i] = math.random(3) == 1
            if mask[i] then list[#list + 1] = i end
        end
        return vec(mask), list
    end
    local key = {}
    for k = 1, math.random(2 * n) do
        list[k] = math.random(n)
        key[k] = math.random(2) == 1 and list[k] or list[k] - n - 1
    end
    return vec(key, {dtype = kind == 5 and "f32" or "f64"}), list
end

-- The elements of A at the places, as a matrix.
local function chosen(A, rows, cols)
    local from = A:totable()
    return fromfn(#rows, #cols, function(i, j) return from[rows[i]][cols[j]] end,
        {dtype = A.dtype})
end

local function flat(A) return A:to("cpu"):flatten():totable() end

function TestRandom:test_reading_and_writing()
    math.randomseed(7)
    warn("@off") -- of ranges that take one place
    for round = 1, 300 do
        local A = t.whole(math.random(9), math.random(9),
            round % 2 == 0 and "f64" or "f32", round)
        if round % 3 == 0 then A = A.T end
        local r, rows, is_row = any_side(A.rows)
        local c, cols, is_col = any_side(A.cols)
        local expected, what = chosen(A, rows, cols), "round " .. round
        if not (is_row and is_col) then
            lu.assertEquals(flat(A[{r, c}]), flat(expected), what)
            lu.assertEquals(A[{r, c}].ndim, (is_row or is_col) and 1 or 2, what)
        end
        if not is_row and not is_col then
            local S = sparse(A)[{r, c}]
            lu.assertEquals({S.rows, S.cols}, {#rows, #cols}, what)
            lu.assertEquals(flat(S:full()), flat(expected), what)
        end
        local value = t.whole(#rows, #cols, "f32", round + 1000)
        local after, put = A:totable(), value:totable()
        for i, row in ipairs(rows) do
            for j, column in ipairs(cols) do after[row][column] = put[i][j] end
        end
        if is_row and is_col then value = value(1, 1)
        elseif is_row then value = value[1]
        elseif is_col then value = value[":, 1"] end
        A[{r, c}] = value
        equals(A, after, what)
    end
    warn("@on")
end

function TestRandom:test_devices_agree()
    for _, n in ipairs{1, 3, 31, 65} do
        t.agrees(function()
            local A = rand(n, 127, {seed = 3})
            local p = randint(1, n, 90, {seed = 4})
            local q = randint(1, 127, 300, {seed = 5})
            local B = A:clone()
            B[p] = A[{p, {127, 1, -1}}]
            B.T[q] = A.T[q] + 1
            B[{A[{{}, 1}]:gt(0.5), q}] = -1
            return B, A[{p, q}], A[p], A[{{}, A[1]:gt(0.3)}], A[1][q]
        end, "rows " .. n)
    end
end

-- --- sparse -----------------------------------------------------------------

TestSparse = {}

function TestSparse:test_every_pair_of_sides()
    local D = fromfn(4, 5, function(i, j)
        return (i * j) % 3 == 0 and 10 * i + j or 0
    end)
    for _, dtype in ipairs{"f32", "f64"} do
        local S = sparse(D, {dtype = dtype})
        for _, r in ipairs{{}, {2, 3}, vec{3, 1, 1}, vec{-1}, zeros(0),
            vec{true, false, true, true}, {4, 1, -1}, {1, 0}} do
            for _, c in ipairs{{}, {2, 3}, vec{3, 1, 1}, vec{-1, 3}, zeros(0),
                vec{true, false, true, true, false}, {5, 1, -2}, {1, 0}} do
                local T, E = S[{r, c}], D[{r, c}]
                lu.assertEquals({T.rows, T.cols, T.dtype, T.device},
                    {E.rows, E.cols, dtype, S.device})
                equals(T:full(), E:totable())
            end
        end
        equals(S[vec{3, 3}]:full(), D[vec{3, 3}]:totable())
        equals(S[D[{{}, 3}]:gt(20)]:full(), D["2:4, :"]:totable())
        equals(S["2:3, ::-1"]:full(), D["2:3, ::-1"]:totable())
        equals(S[""]:full(), D:totable())
        equals(S[{vec{3}, {}}] * ones(5), {165})
        lu.assertEquals({S[{3, 1}], S["3, 1"], S[{1, 1}]}, {31, 31, 0})
    end
end

function TestSparse:test_what_is_stored_is_taken_along()
    local S = sparse({1, 1, 2}, {1, 3, 2}, {0, nan, 5})
    lu.assertEquals(S[vec{1}].nnz, 2)
    lu.assertEquals(S[{{}, vec{3, 1, 1}}].nnz, 3)
    equals(S[{{}, vec{3, 1, 1}}]:full(), {{nan, 0, 0}, {0, 0, 0}})
    lu.assertEquals(S[{vec{2, 2}, vec{1}}].nnz, 0)
end

function TestSparse:test_random_ones()
    for round = 1, 20 do
        local n = 30 * round
        local S = sparse(randint(1, n, 5 * n, {seed = round}),
            randint(1, n, 5 * n, {seed = -round}), 1, n, n)
        local p, q = randperm(n), randint(1, n, n, {seed = round})
        lu.assertIsTrue(S[{p, q}]:full() == S:full()[{p, q}])
        lu.assertIsTrue(S[p].T[q]:full() == S:full()[{p, q}].T)
    end
end

-- --- errors -----------------------------------------------------------------

TestErrors = {}

function TestErrors:test_places_outside_are_named_and_nothing_is_written()
    local A, v = places(3, 4), vec{1, 2}
    raises(function() return A[vec{1, 4}] end,
        "index: row 4 is outside 1..3 (A is 3x4)")
    raises(function() return A[{vec{1, -4}}] end, "row -4 is outside 1..3")
    raises(function() return A[{{}, vec{5}}] end,
        "index: column 5 is outside 1..4 (A is 3x4)")
    raises(function() return v[vec{0}] end,
        "index: element 0 is outside 1..2 (v is vector 2)")
    raises(function() return A[vec{1, 1.5}] end, "row 1.5 is not a whole number")
    raises(function() return A[vec{nan}] end, "NaN is not a whole number")
    raises(function() return A[vec{t.inf}] end, "row Inf is outside 1..3")
    raises(function() A[vec{1, 4}] = 0 end, "row 4 is outside")
    raises(function() A[{vec{1, 2}, vec{1, 9}}] = 0 end, "column 9 is outside")
    raises(function() A[{{1, 2}, vec{1, 9}}] = ones(2, 2) end, "column 9")
    raises(function() return zeros(0, 2)[vec{1}] end, "row 1 is outside 1..0")
    equals(A, places(3, 4):totable())
end

function TestErrors:test_the_lengths_of_masks()
    local A, v = places(3, 4), vec{1, 2}
    raises(function() return A[vec{true, false}] end,
        "index: the mask has length 2, there are 3 rows (A is 3x4)")
    raises(function() return A[{{}, vec{true, false}}] end,
        "index: the mask has length 2, there are 4 columns (A is 3x4)")
    raises(function() A[vec{true, false}] = 0 end, "length 2, there are 3 rows")
    raises(function() return v[vec{true}] end, "vector 2", "mask vector 1")
    raises(function() return v[{vec{true}}] end, "length 1, there are 2 elements")
    raises(function() return A:take(vec{true}) end,
        "take: the mask has length 1, there are 3 places")
    raises(function() return A[A[{{}, {1, 1}}]:gt(0)] end, "a list of rows",
        "bool 3x1", "flatten()")
    raises(function() return A[ones(3, 1)] end, "f32 3x1", "flatten()")
    raises(function() return A[{{}, ones(2, 2)}] end, "a list of columns",
        "f32 2x2", "A:gt(0)")
    equals(A, places(3, 4):totable())
end

function TestErrors:test_values_that_do_not_fit()
    local A = places(3, 4)
    raises(function() A[vec{1, 3}] = ones(3, 4) end,
        "assignment: 3x4 does not fit into 2x4")
    raises(function() A[vec{1, 3}] = vec{1, 2, 3, 4} end, "vector 4", "2x4")
    raises(function() A[{vec{1, 3}, 2}] = ones(2, 1) end, "2x1", "vector 2")
    raises(function() A[vec{1, 3}] = "x" end, "string")
    raises(function() A[vec{1, 3}] = nil end, "nil")
    raises(function() A[vec{1, 3}] = {{1, 2}, {3}} end, "ragged")
    raises(function() vec{1, 2, 3}[vec{1, 2}] = vec{1} end, "vector 1",
        "vector 2")
    equals(A, places(3, 4):totable())
end

-- put is named as it was written, by lists that stay on the device, too.
function TestErrors:test_values_that_do_not_fit_for_put()
    local v, two = zeros(3), vec{1, 2}
    raises(function() put(v, two) end, "put: vector 2 does not fit into vector 3")
    raises(function() put(v, two, {1, 2, 3}) end, "put: vector 2 does not fit")
    raises(function() put(v:to("cpu"), two:to("cpu"), range(1, 3)) end,
        "put: vector 2 does not fit into vector 3")
    raises(function() put(zeros(4, 4), eye(2), {1, 2, 3}, {1, 2}) end,
        "put: 2x2 does not fit into 3x2")
    raises(function() put(zeros(2), vec{1, im}) end,
        "put: the values are complex, and the matrix is f32")
    raises(function() put(zeros(2):c64(), vec{1, im, 3}) end,
        "put: vector 3 does not fit into vector 2")
end

function TestErrors:test_freed_matrices()
    local A, p, B = places(3, 4), vec{1}, ones(1, 4)
    p:free()
    B:free()
    raises(function() return A[p] end, "the list of rows has been freed")
    raises(function() return A[{{}, p}] end, "the list of columns has been freed")
    raises(function() A[vec{1}] = B end, "freed")
    A:free()
    raises(function() return A[vec{1}] end, "index: the matrix has been freed")
    raises(function() A[vec{1}] = 0 end, "assignment: the matrix has been freed")
end

-- Above 2^24 an f32 may have been another number before it was rounded.
function TestErrors:test_places_that_f32_cannot_hold()
    local v = zeros(2 ^ 24 + 2, {dtype = "bool"})
    v[-1] = true
    local near = {dtype = "f64"}
    equals(v[vec({2 ^ 24 + 1, 2 ^ 24 + 2}, near)], {false, true})
    equals(v[vec{-1, 2 ^ 24 - 1}], {true, false})
    raises(function() return v[vec{2 ^ 24 + 1}] end, "element 16777216",
        "f32 list", "f64")
    raises(function() v[vec{-2 ^ 24}] = true end, "f32 list")
end

TestWholeRows = {}

-- Rows that move as they are, of every width, type and distance.
function TestWholeRows:test_rows_of_any_width()
    for _, dtype in ipairs{"f32", "f64", "bool"} do
        for _, n in ipairs{1, 2, 4, 5, 16, 48, 100, 1040} do
            local A = randint(0, 1, 40, n + 16, {seed = n, dtype = dtype})
            local rows = randint(1, 40, 25, {seed = n})
            for _, columns in ipairs{{1, n}, {2, n + 1}, {5, n + 4}, {17, n + 16}} do
                local B = A[{{}, columns}]
                local C, D = B[{rows, {}}], B:clone()
                local whole = A:clone()
                local E = whole[{{}, columns}]
                D[{rows, {}}] = C
                E[{rows, {}}] = C[1]:row()
                lu.assertIsTrue(D == B, n)
                for i = 1, 25 do
                    lu.assertIsTrue(C[i] == B[rows(i) // 1 | 0], n)
                    lu.assertIsTrue(E[rows(i) // 1 | 0] == C[1], n)
                end
                lu.assertEquals(sum(whole:f64()) - sum(E:f64()),
                    sum(A:f64()) - sum(B:f64()))
            end
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
