-- A[…]: every form of reading and writing, views that write through, masks,
-- and what a wrong index is told.
local lu = require "luaunit"
local t = require "common"
local equals, raises, places, nan = t.equals, t.raises, t.places, t.nan
local after = t.after

TestRead = {}

function TestRead:test_rows_are_views_and_elements_numbers()
    local A, v = places(3, 4), vec{5, 6, 7}
    equals(A[2], {21, 22, 23, 24})
    equals(A[-1], {31, 32, 33, 34})
    lu.assertEquals(v[1], 5)
    lu.assertEquals(v[-1], 7)
    lu.assertEquals(A[2][3], 23)
    lu.assertEquals(A(2, 3), 23)
    lu.assertEquals(A(-1, -4), 31)
    lu.assertEquals(v(2), 6)
    equals(A(3), {31, 32, 33, 34})
    lu.assertEquals({#A, #v}, {3, 3})
end

function TestRead:test_tables_as_keys()
    local A, v = places(3, 4), range(1, 6)
    lu.assertEquals(A[{2, 3}], 23)
    lu.assertEquals(A[{-1, -1}], 34)
    equals(A[{2}], {21, 22, 23, 24})
    equals(A[{2, {}}], {21, 22, 23, 24})
    equals(A[{{}, 2}], {12, 22, 32})
    equals(A[{{1, 2}, {2, 3}}], {{12, 13}, {22, 23}})
    equals(A[{{1, 3, 2}, {}}], {{11, 12, 13, 14}, {31, 32, 33, 34}})
    equals(A[{{3, 1, -1}, {4, 4}}], {{34}, {24}, {14}})
    equals(A[{{-2, -1}}], {{21, 22, 23, 24}, {31, 32, 33, 34}})
    equals(v[{{2, 3}}], {2, 3})
    lu.assertEquals(v[{4}], 4)
end

function TestRead:test_slice_strings()
    local A, v = places(3, 4), range(1, 6)
    equals(A["1:2, 2:3"], {{12, 13}, {22, 23}})
    equals(A["1:3, end"], {14, 24, 34})
    equals(A["2, :"], {21, 22, 23, 24})
    equals(A["2"], {21, 22, 23, 24})
    equals(A[":, 1"], {11, 21, 31})
    equals(A[", 1"], {11, 21, 31})
    equals(A[":"], A:totable())
    equals(A[""], A:totable())
    equals(A["end-1:end, 1:end:2"], {{21, 23}, {31, 33}})
    equals(A["end:1:-1, 1"], {31, 21, 11})
    equals(A["::2, ::-3"], {{14, 11}, {34, 31}})
    equals(A["-2:-1,-1"], {24, 34})
    lu.assertEquals(A["2,3"], 23)
    lu.assertEquals(A[" end , end - 1 "], 33)
    equals(v["2:4"], {2, 3, 4})
    lu.assertEquals(v["end"], 6)
    equals(v["::-1"], {6, 5, 4, 3, 2, 1})
end

function TestRead:test_empty_ranges()
    local A = places(3, 4)
    lu.assertEquals(A["2:1, :"].shape, {0, 4})
    lu.assertEquals(A["1:0, 1:0"].shape, {0, 0})
    lu.assertEquals(A["end+1:end, 1"].shape, {0})
    lu.assertEquals(A[{{1, 0}, {}}].shape, {0, 4})
    lu.assertEquals(zeros(0, 3)[":, 2"].shape, {0})
end

function TestRead:test_properties()
    local A = places(2, 3, "f64")
    lu.assertEquals({A.rows, A.cols, A.size, A.ndim, A.bytes}, {2, 3, 6, 2, 48})
    lu.assertEquals(A.dtype, "f64")
    lu.assertStrContains(A.device, t.device)
    equals(A.T, {{11, 21}, {12, 22}, {13, 23}})
    equals(A.T.T, A:totable())
    lu.assertEquals(A.T.shape, {3, 2})
end

function TestRead:test_masks_read_in_row_order()
    local A = places(3, 3)
    equals(A[A:gt(21)], {22, 23, 31, 32, 33})
    equals(A.T[A.T:gt(21)], {31, 22, 32, 23, 33})
    equals(A["::-1, :"][A["::-1, :"]:lt(13)], {11, 12})
    lu.assertEquals(A[A:gt(99)].shape, {0})
    equals(A[A:gt(0)], A:flatten():totable())
    equals(range(1, 4)[vec{true, false, false, true}], {1, 4})
end

function TestRead:test_iteration()
    local A, seen = places(3, 2), {}
    for i, row in A:eachrow() do seen[i] = row:totable() end
    lu.assertEquals(seen, A:totable())
    seen = {}
    for j, column in A:eachcol() do seen[j] = column:totable() end
    lu.assertEquals(seen, A.T:totable())
    seen = {}
    for i, x in vec{5, 6}:eachrow() do seen[i] = x end
    lu.assertEquals(seen, {5, 6})
    for i, row in pairs(A) do equals(row, A[i]:totable()) end
end

TestWrite = {}

function TestWrite:test_elements()
    after(function(A) A[{2, 3}] = 0 end, {{11, 12, 13}, {21, 22, 0}, {31, 32,
        33}})
    after(function(A) A["end,1"] = nan end,
        {{11, 12, 13}, {21, 22, 23}, {nan, 32, 33}})
    after(function(A) A[1][2] = 7 end, {{11, 7, 13}, {21, 22, 23}, {31, 32,
        33}})
    local v = vec{1, 2, 3}
    v[2], v[-1], v["1"] = 8, 9, 7
    equals(v, {7, 8, 9})
end

function TestWrite:test_rows_and_columns()
    after(function(A) A[2] = 0 end, {{11, 12, 13}, {0, 0, 0}, {31, 32, 33}})
    after(function(A) A[-1] = vec{1, 2, 3} end,
        {{11, 12, 13}, {21, 22, 23}, {1, 2, 3}})
    after(function(A) A[1] = {4, 5, 6} end,
        {{4, 5, 6}, {21, 22, 23}, {31, 32, 33}})
    after(function(A) A["2,:"] = 0 end, {{11, 12, 13}, {0, 0, 0}, {31, 32, 33}})
    after(function(A) A[":,2"] = vec{1, 2, 3} end,
        {{11, 1, 13}, {21, 2, 23}, {31, 3, 33}})
    after(function(A) A[{{}, 3}] = 5 end, {{11, 12, 5}, {21, 22, 5}, {31, 32,
        5}})
end

function TestWrite:test_blocks_broadcast_rows_and_columns()
    after(function(A) A["1:2,1:2"] = mat{{1, 2}, {3, 4}} end,
        {{1, 2, 13}, {3, 4, 23}, {31, 32, 33}})
    after(function(A) A["1:2,1:2"] = {{1, 2}, {3, 4}} end,
        {{1, 2, 13}, {3, 4, 23}, {31, 32, 33}})
    after(function(A) A[":,:"] = mat{{1, 2, 3}} end,
        {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}})
    after(function(A) A[":,1:2"] = mat{{1}, {2}, {3}} end,
        {{1, 1, 13}, {2, 2, 23}, {3, 3, 33}})
    after(function(A) A["::2,::2"] = 0 end,
        {{0, 12, 0}, {21, 22, 23}, {0, 32, 0}})
    after(function(A) A["2:1,:"] = 0 end, places(3, 3):totable())
end

function TestWrite:test_masks()
    after(function(A) A[A:gt(22)] = 0 end, {{11, 12, 13}, {21, 22, 0}, {0, 0,
        0}})
    after(function(A) A[A:lt(13)] = vec{1, 2} end,
        {{1, 2, 13}, {21, 22, 23}, {31, 32, 33}})
    after(function(A) A[A:lt(13)] = {8, 9} end,
        {{8, 9, 13}, {21, 22, 23}, {31, 32, 33}})
    after(function(A) A.T[A.T:lt(22)] = vec{1, 2, 3, 4} end,
        {{1, 3, 4}, {2, 22, 23}, {31, 32, 33}})
    after(function(A) A[A:gt(99)] = 1 end, places(3, 3):totable())
    after(function(A) A["::-1,:"][A:lt(12)] = 0 end,
        {{11, 12, 13}, {21, 22, 23}, {0, 32, 33}})
    local mask = vec{true, false, true}
    mask[mask] = false
    equals(mask, {false, false, false})
end

-- Every element by its own value, of masks of all lengths and layouts.
function TestWrite:test_masks_of_any_length()
    for _, dtype in ipairs{"f32", "f64", "bool"} do
        for _, n in ipairs{1, 3, 4, 5, 127, 130, 511, 513, 4099, 70001} do
            local x = randint(0, 9, n + 1, {seed = n})
            x = x[dtype](x)
            for _, v in ipairs{x, x["2:"], x["::2"], x["::-1"]} do
                local m = rand(#v, {seed = 2}):lt(0.5)
                local list, mask, kept = v:totable(), m:totable(), {}
                for i, is in ipairs(mask) do
                    if is then kept[#kept + 1] = list[i] end
                end
                equals(v[m], kept, n)
                local copy = v:clone()
                copy[m] = v["::-1"][m]
                local back = v["::-1"]:totable()
                for i, is in ipairs(mask) do
                    if is then list[i] = back[i] end
                end
                equals(copy, list, n)
            end
        end
    end
    local A = places(70, 41)
    local M = rand(41, 70, {seed = 1}):lt(0.3).T
    local B, C = A:clone(), A.T:clone()
    equals(A[M], A.T:clone().T[M:clone()]:totable())
    B[M] = A[M] + 1
    C.T[M] = A[M] + 1
    lu.assertIsTrue(B == C.T and B == A + M:f32())
end

function TestWrite:test_values_take_the_type_of_the_matrix()
    local A = zeros(2, 2)
    A[1] = vec({0.1, 1e300}, {dtype = "f64"})
    equals(A[1], {t.single(0.1), t.inf})
    A[{2, 2}] = true
    lu.assertEquals(A(2, 2), 1)
    local m = vec{true, true}
    m[1] = 0
    equals(m, {false, true})
end

TestViews = {}

function TestViews:test_views_write_through()
    after(function(A) local r = A[2] r[1] = 0 end,
        {{11, 12, 13}, {0, 22, 23}, {31, 32, 33}})
    after(function(A) A.T[{1, 3}] = 0 end,
        {{11, 12, 13}, {21, 22, 23}, {0, 32, 33}})
    after(function(A) A.T["1,:"] = {1, 2, 3} end,
        {{1, 12, 13}, {2, 22, 23}, {3, 32, 33}})
    after(function(A) A["::2,::-2"][1] = {1, 2} end,
        {{2, 12, 1}, {21, 22, 23}, {31, 32, 33}})
    after(function(A) A["2:3,2:3"].T[1] = {1, 2} end,
        {{11, 12, 13}, {21, 1, 23}, {31, 2, 33}})
    after(function(A) A["2:3,:"]["::-1,:"][1]["2:3"] = 0 end,
        {{11, 12, 13}, {21, 22, 23}, {31, 0, 0}})
    after(function(A) A[":,2"]:add_(100) end,
        {{11, 112, 13}, {21, 122, 23}, {31, 132, 33}})
    after(function(A) A:diag():mul_(0) end,
        {{0, 12, 13}, {21, 0, 23}, {31, 32, 0}})
    after(function(A) A:flip()[1] = 0 end,
        {{11, 12, 13}, {21, 22, 23}, {0, 0, 0}})
end

function TestViews:test_a_view_outlives_its_matrix()
    local row = (function() return places(300, 300)[299] end)()
    collectgarbage()
    collectgarbage()
    lu.assertEquals(row[2], 2992)
end

function TestViews:test_a_copy_does_not_write_through()
    local A = places(2, 2)
    A:clone()[1] = 0
    A.T:clone()[1] = 0
    A:take({1})[1] = 0
    equals(A, {{11, 12}, {21, 22}})
end

TestOverlap = {}

-- Copies the source first: what every overlapping assignment must equal.
local function like_a_copy(target, source, m, n)
    for _, dtype in ipairs{"f32", "f64"} do
        local A, B = places(m, n, dtype), places(m, n, dtype)
        local value = source(B):clone()
        A[target] = source(A)
        B[target] = value
        equals(A, B:totable(), target)
    end
end

function TestOverlap:test_moving_rows_and_columns()
    like_a_copy("1:3,:", function(A) return A["2:4,:"] end, 4, 5)
    like_a_copy("2:4,:", function(A) return A["1:3,:"] end, 4, 5)
    like_a_copy(":,1:4", function(A) return A[":,2:5"] end, 4, 5)
    like_a_copy(":,2:5", function(A) return A[":,1:4"] end, 4, 5)
    like_a_copy("2:100,2:60", function(A) return A["1:99,1:59"] end, 100, 60)
end

function TestOverlap:test_turning()
    like_a_copy("1:3,:", function(A) return A["1:3,:"]:flip() end, 4, 5)
    like_a_copy(":,:", function(A) return A:flip(2) end, 33, 65)
    like_a_copy(":,:", function(A) return A["end:1:-1,end:1:-1"] end, 7, 9)
    like_a_copy("1:3,:", function(A) return A["4:2:-1,:"] end, 4, 5)
    like_a_copy(":,:", function(A) return A.T end, 65, 65)
    like_a_copy("1:3,1:3", function(A) return A["2:4,2:4"].T end, 4, 5)
end

function TestOverlap:test_strides_and_broadcasts()
    like_a_copy("1:7:2,:", function(A) return A["2:5,:"] end, 8, 5)
    like_a_copy("1:4,:", function(A) return A["1:7:2,:"] end, 8, 5)
    like_a_copy(":,:", function(A) return A["2:2,:"] end, 4, 5)
    like_a_copy(":,:", function(A) return A[":,3:3"] end, 4, 5)
end

function TestOverlap:test_through_masks_and_places()
    local A = range(1, 6)
    A[A:gt(2)] = A["1:4"]
    equals(A, {1, 2, 1, 2, 3, 4})
    local B = range(1, 4)
    B:put(B["::-1"], {1, 2, 3, 4})
    equals(B, {4, 3, 2, 1})
end

TestErrors = {}

function TestErrors:test_an_index_outside_is_named_with_the_range()
    local A, v = places(3, 4), vec{1, 2}
    raises(function() local B = A return B[7] end, "row 7", "1..3", "B is 3x4")
    raises(function() return A[-4] end, "-4", "1..3")
    raises(function() return A[0] end, "row 0", "start at 1")
    raises(function() return A[{1, 5}] end, "column 5", "1..4")
    raises(function() return A(4, 1) end, "row 4", "1..3")
    raises(function() return v[3] end, "index 3", "1..2", "vector 2")
    raises(function() return v[0] end, "index 0", "start at 1")
    raises(function() A[5] = 0 end, "row 5", "1..3")
    raises(function() A[{0, 1}] = 0 end, "row 0")
    raises(function() return A["4,1"] end, "4", "1..3", "4,1")
    raises(function() return A["1:9,1"] end, "9", "1..3")
    raises(function() return A[{{1, 9}}] end, "9", "1..3")
    raises(function() return A["end-3,1"] end, "end-3")
    raises(function() return A[math.mininteger] end, "1..3")
    raises(function() return A[{{1, 3, math.mininteger}}] end, "step")
    raises(function() return zeros(0, 2)[1] end, "row 1")
end

function TestErrors:test_one_past_the_end_mentions_eachrow()
    local A = places(3, 2)
    raises(function() for _, row in ipairs(A) do lu.assertEquals(#row,
        2) end end,
        "row 4", "1..3", "eachrow")
    raises(function() for _ in ipairs(vec{1, 2}) do end end, "index 3", "eachrow")
end

function TestErrors:test_keys_that_are_none()
    local A, v = places(3, 4), vec{1, 2}
    raises(function() return A[1.5] end, "1.5", "whole number")
    raises(function() return A[nan] end, "NaN", "whole number")
    raises(function() return A[1e30] end, "1e+30")
    raises(function() return A[true] end, "boolean", "mask")
    raises(function() return A[print] end, "function")
    raises(function() return A[{1, 2, 3}] end, "index: 3 indices", "2",
        "the rows of a list are A[vec{1, 2, 3}]")
    raises(function() return v[{1, 2}] end, "2 indices", "1",
        "the elements of a list are v[vec{1, 2}]")
    lu.assertNil(raises(function() return A[{1, 2, "x"}] end,
        "3 indices"):find("list"))
    raises(function() return A[{}] end, "0 indices")
    raises(function() return A(1, 2, 3) end, "3 indices")
    raises(function() return A() end, "0 indices")
    raises(function() return A[{{1}, 2}] end, "{first, last}", "vec{1}")
    raises(function() return A[{{1, 2, 3, 4}, 2}] end, "{first, last}",
        "a list of places is a vector: vec{1, 2, 3, 4}")
    raises(function() return A[{{1, 2, 3, 4, 5, 6, 7, 8}, 2}] end,
        "vec{1, 2, 3, 4, 5, 6, …}")
    raises(function() return A[{{true, false, true}, 2}] end, "boolean",
        "vec{true, false, …}")
    raises(function() return A[{{1, 2.5}, 2}] end, "2.5")
    raises(function() return A[{"x", 1}] end, "x")
    raises(function() return A[{{1, 3, 0}}] end, "step", "0")
    raises(function() return A("1") end, 'whole number, not "1"')
    raises(function() return A[{{"1", 2}}] end, 'whole numbers, not "1"')
end

-- What is printed of a wrong value is short, whatever it is.
function TestErrors:test_large_values_are_named_by_their_kind()
    local A, long = places(3, 3), ("1"):rep(100000)
    local function short(f, ...)
        lu.assertIsTrue(#raises(f, ...) < 200)
    end
    short(function() return A[{1, A}] end, "not a matrix")
    short(function() return A[{{1, A}}] end, "not a matrix")
    short(function() return A ^ A end, "not a matrix")
    short(function() return A ^ long end, "not a string of 100000 characters")
    short(function() return A(long) end, "a string of 100000 characters")
    short(function() return A[long] end, "a string of 100000 characters")
    short(function() return A[("x"):rep(100000)] end, "100000 characters")
    short(function() rand(2, {seed = A}) end, "seed", "a matrix")
end

function TestErrors:test_a_freed_matrix_is_named_by_the_operation()
    local A, v = places(3, 4), vec{1, 2}
    A:free()
    for _, key in ipairs{1, {1, 1}, "1, 1", {{1, 2}, 1}} do
        raises(function() return A[key] end, "index: the matrix has been freed")
        raises(function() A[key] = 1 end,
            "assignment: the matrix has been freed")
    end
    raises(function() return A(1, 1) end, "index: the matrix has been freed")
    raises(function() for _ in v:eachrow() do v:free() end end,
        "eachrow: the matrix has been freed")
end

function TestErrors:test_slice_strings_that_are_none()
    local A, v = places(3, 4), vec{1, 2}
    raises(function() return A["1:x"] end, "x")
    raises(function() return A["1:2:0,1"] end, "step")
    raises(function() return A["1,2,3"] end, "1,2,3")
    raises(function() return v["1,2"] end, "vector")
    raises(function() return A["1 2"] end, "1 2")
    raises(function() return A["1:2:end"] end, "step")
    raises(function() return A["99999999999999999999"] end, "large")
    raises(function() return A["1:2:3:4"] end, ":4")
    raises(function() return A["0,1"] end, "index 0", "start at 1")
    raises(function() return A["-"] end, "-")
end

function TestErrors:test_unknown_names_get_a_suggestion()
    local A = places(2, 2)
    raises(function() return A.row_count end, "row_count")
    raises(function() return A.colls end, "colls", "cols")
    raises(function() A:summ() end, "summ", "sum")
    lu.assertNil(raises(function() return A.a end, "'a'"):find("did you mean"))
    lu.assertNil(raises(function() return A.qz end, "'qz'"):find("did you"))
    raises(function() A.rows = 3 end, "rows", "assigned")
    raises(function() A.sum = 3 end, "sum")
    raises(function() A.colour = 3 end, "colour")
end

function TestErrors:test_masks_that_do_not_fit()
    local A = places(3, 3)
    raises(function() return A[ones(3, 3)] end, "f32", "bool")
    raises(function() A[ones(3, 3)] = 0 end, "f32", "bool")
    raises(function() return A[ones(2, 3):gt(0)] end, "3x3", "2x3")
    raises(function() A[ones(2, 3):gt(0)] = 1 end, "3x3", "2x3")
    raises(function() A[ones(1, 3):gt(0)] = 1 end, "3x3", "1x3")
    raises(function() A[A:gt(30)] = vec{1, 2} end, "3 elements", "2 values")
    raises(function() A[A:gt(30)] = "x" end, "string")
    equals(A, places(3, 3):totable())
end

function TestErrors:test_values_that_do_not_fit()
    local A = places(3, 4)
    raises(function() A[1] = vec{1, 2} end, "vector 2", "vector 4")
    raises(function() A["1:2,1:2"] = ones(3, 3) end, "3x3", "2x2")
    raises(function() A["1:2,:"] = vec{1, 2, 3, 4} end, "vector 4", "2x4")
    raises(function() A[1] = mat{{1, 2, 3, 4}} end, "1x4", "vector 4")
    raises(function() A[{1, 1}] = vec{1} end, "number")
    raises(function() A[{1, 1}] = "x" end, "string")
    raises(function() A[{1, 1}] = nil end, "assignment: ", "nil")
    raises(function() A[1] = nil end, "assignment: cannot put a nil")
    raises(function() A[1] = print end, "function")
    raises(function() A[1] = {1, 2, 3, "x"} end, "assignment: element 4",
        "string")
    raises(function() A["1:2,1:2"] = {{1, 2}, {3}} end, "assignment: ragged")
    equals(A, places(3, 4):totable())
end

-- The habits of other languages are told what to write.
function TestErrors:test_order_gives_one_boolean_in_lua()
    local A, B = ones(2, 2), zeros(2, 2)
    raises(function() return A < 1 end, "write A:lt(")
    raises(function() return A < B end, "write A:lt(B)")
    raises(function() return A <= B end, "write A:le(B)")
    raises(function() return A > 1 end, "write A:gt(")
    raises(function() return A >= 1 end, "write A:ge(")
    raises(function() return A > B end, "A:gt(B) for >")
    raises(function() return 2 >= A end, "write A:le(")
    raises(function() return 1 < A end, "write A:gt(")
end

function TestErrors:test_a_call_is_no_place_to_assign()
    local f, message = load("local A = zeros(2, 2) A(1, 2) = 3")
    lu.assertNil(f)
    lu.assertStrContains(message, "syntax error")
end

-- --- the order of a slice ---------------------------------------------------

TestOrder = {}

-- How many places first, last, step takes of n, by Lua's own for.
local function taken(first, last, step, n)
    local count = 0
    first = first == "end" and n or first < 0 and n + 1 + first or first
    last = last < 0 and n + 1 + last or last
    for _ = first, last, step do count = count + 1 end
    return count
end

-- Slices of n places that are written first:step:last by habit: they take one
-- or none, the habit's at least two more, and nothing in them is outside.
local function is_habit(first, middle, third, n)
    local from = first == "end" and n or first
    if middle == 0 or from < 1 or from > n or third < 1 or third > n then
        return false
    end
    if middle < 0 and third ~= 1 and first ~= "end" then return false end
    local count = taken(first, middle, third, n)
    return count <= 1 and taken(first, third, middle, n) >= count + 2
end

-- Three numbers in braces that take the first place alone, where a list of
-- three places may be meant.
local function is_list(first, middle, third, n)
    return 0 < first and first < middle and middle < third and third <= n
end

-- The lines of the script that a warning names, and all that was warned.
local function warned_lines(script)
    local path, lines = t.scratch(".lua"), {}
    t.write(path, script)
    local pipe = assert(io.popen(("'%s' --device %s '%s' 2>&1"):format(
        os.getenv("LUMAT"), t.device, path)))
    local text = pipe:read("a")
    lu.assertTrue(pipe:close(), text)
    os.remove(path)
    for line in text:gmatch("warning: [^\n]-%.lua:(%d+): index: ") do
        lines[#lines + 1] = tonumber(line)
    end
    return lines, text
end

function TestOrder:test_exactly_what_the_other_order_would_take_more_of_is_told()
    local n = 7
    local script = {"local v = zeros(" .. n .. ") local ok"}
    local expected = {text = {}, table = {}}
    local function add(kind, form, ...)
        script[#script + 1] = ("ok = pcall(function() return %s end)"):format(
            form:format(...))
        if is_habit(...) or kind == "table" and is_list(...) then
            table.insert(expected[kind], #script)
        end
    end
    for first = -n, n + 1 do
        for middle = -n, n do
            for third = -n, n + 2 do
                add("text", "v['%s:%d:%d']", first, middle, third, n)
                add("table", "v[{{%s, %d, %d}}]", first, middle, third, n)
            end
        end
    end
    for middle = -n, n do
        for third = 1, n do add("text", "v['%s:%d:%d']", "end", middle, third, n) end
    end
    local lines = warned_lines(table.concat(script, "\n"))
    local all = table.move(expected.table, 1, #expected.table,
        #expected.text + 1, expected.text)
    table.sort(all)
    lu.assertIsTrue(#all > 50)
    lu.assertEquals(lines, all)
end

function TestOrder:test_what_is_told()
    local lines, text = warned_lines([[
local v, A = range(1, 10), zeros(10, 10)
local x = v["1:2:9"]
A["end:-1:1, 3"] = 1
x = A["1:2,  5:1:9"]
x = A[{{1, 3, 10}, {}}]
x = A[{{}, {1, 3, 5}}]
for i = 1, 3 do x = v["2:2:10"] end
for i = 1, 10 do x = v[("%d:%d:1"):format(i, i)] end
for i = 1, 10 do x = v[("%d:-1:2"):format(i)] end
for i = 1, 10 do x = v[("%d:10:%d"):format(i, i)] end
for n = 1, 5 do x = v["1:" .. n][("1:%d:7"):format(n)] end
x = v["::9"] x = v["1:0"] x = v["3:2:-9"] x = v[":1:9"]
warn("@off")
x = v["1:2:9"]
]])
    lu.assertEquals(lines, {2, 3, 4, 5, 6, 7})
    for _, said in ipairs{
        'first:last:step: "1:2:9" takes 1, "1:9:2" takes 5\n',
        '"end:-1:1" takes 1, "end:1:-1" takes 10\n',
        '"5:1:9" takes none, "5:9:1" takes 5\n',
        "{first, last, step}: {1, 3, 10} takes 1, {1, 10, 3} takes 4\n",
        "{1, 3, 5} is a range {first, last, step}, which takes 1 alone; " ..
            "a list of places is vec{1, 3, 5}\n"} do
        lu.assertStrContains(text, said)
    end
end

function TestOrder:test_a_step_that_is_end_names_the_order()
    local v = range(1, 9)
    raises(function() return v["1:2:end"] end, "'end'", "first:last:step")
    raises(function() v["1:2: end-1"] = 0 end, "'end'", "first:last:step")
end

-- The same indexing on both devices, over shapes with odd sizes.
TestDevices = {}

function TestDevices:test_views_and_masks_agree()
    for _, n in ipairs{1, 3, 31, 65} do
        t.agrees(function()
            local A = rand(n, 127, {seed = 3})
            local B = A:clone()
            B["::-1, 1:end:2"] = A[":, end:1:-2"]
            B[A:gt(0.5)] = A[A:gt(0.5)]["::-1"]
            B.T[A.T:lt(0.1)] = -1
            return B, A[A:gt(0.7)], A.T["::3, :"]:clone(), A:take({n, 1}, {127,
                2})
        end, "rows " .. n)
    end
end

TestFittingAdvice = {}

function TestFittingAdvice:test_a_column_for_a_vector()
    local A = zeros(2, 2)
    lu.assertErrorMsgContains("2x1 does not fit into vector 2; its :flatten() does",
        function() A[{{}, 1}] = ones(2, 1) end)
    A[{{}, 1}] = ones(2, 1):flatten()
    lu.assertEquals(A:sum(), 2)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
