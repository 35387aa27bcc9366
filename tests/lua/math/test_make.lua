-- Constructors: values, shapes, element types, and what each refuses.
local lu = require "luaunit"
local t = require "common"
local equals, raises, inf, nan = t.equals, t.raises, t.inf, t.nan

TestTables = {}

function TestTables:test_mat_has_the_rows_of_its_table()
    local A = mat{{1, 2, 3}, {4, 5, 6}}
    lu.assertEquals({A.rows, A.cols, A.ndim, A.size, A.bytes}, {2, 3, 2, 6, 24})
    lu.assertEquals(A.shape, {2, 3})
    lu.assertEquals(A.dtype, "f32")
    equals(A, {{1, 2, 3}, {4, 5, 6}})
end

function TestTables:test_vec_has_one_dimension()
    local v = vec{1, 2, 3}
    lu.assertEquals({v.rows, v.cols, v.ndim}, {3, 1, 1})
    lu.assertEquals(v.shape, {3})
    equals(v, {1, 2, 3})
end

function TestTables:test_special_numbers_survive()
    for _, dtype in ipairs{"f32", "f64"} do
        local list = {nan, inf, -inf, -0.0, 0, t.smallest[dtype]}
        equals(vec(list, {dtype = dtype}), list, dtype)
        equals(mat({list}, {dtype = dtype}), {list}, dtype)
    end
    equals(vec({0.1}, {dtype = "f64"}), {0.1})
    equals(vec{0.1}, {t.single(0.1)})
    equals(vec{1e300}, {inf})
end

-- Few elements take another way than many; both tell which one is wrong.
function TestTables:test_tables_of_any_length()
    for _, n in ipairs{1, 63, 64, 65, 1000} do
        local list = {}
        for i = 1, n do
            list[i] = i % 97 - 40
        end
        equals(vec(list), list)
        equals(mat{list, list}, {list, list})
        equals(real(vec(list, {dtype = "c128"})), list)
        local good = table.move(list, 1, n, 1, {})
        list[n] = "x"
        raises(function() vec(list) end, "element " .. n .. " is a string")
        raises(function() mat{good, list} end,
            "element {2, " .. n .. "} is a string")
    end
end

function TestTables:test_booleans_make_masks()
    lu.assertEquals(vec{true, false}.dtype, "bool")
    lu.assertEquals(mat{{true}, {false}}.dtype, "bool")
    equals(mat{{true}, {false}}, {{true}, {false}})
    for _, mixed in ipairs{{true, 5}, {5, true}} do -- numbers, whatever is first
        lu.assertEquals(vec(mixed).dtype, "f32")
        lu.assertEquals(mat{mixed}.dtype, "f32")
    end
    equals(vec{true, 5, false}, {1, 5, 0})
    equals(mat{{true, 2}, {3, 4}}, {{1, 2}, {3, 4}})
    equals(mat{{true, false}, {3, 4}}, {{1, 0}, {3, 4}})
    lu.assertEquals(vec{true, 2, im}.dtype, "c64")
    lu.assertEquals(vec{true, im}(1), 1 + 0 * im)
    equals(vec({true, 5}, {dtype = "bool"}), {true, true})
    raises(function() vec{true, "x"} end, "element 2 is a string, not a number")
    equals(vec({true, false}, {dtype = "f64"}), {1, 0})
    equals(vec({0, 2, nan}, {dtype = "bool"}), {false, true, true})
end

function TestTables:test_what_is_no_element_is_refused()
    raises(function() vec{1, 1 / 3, dtype = "f64"} end, "vec: dtype stands among",
        '({…}, {dtype = "f64"})')
    raises(function() mat{{1, 2}, dtype = "f64"} end, "mat: dtype stands among")
    raises(function() mat{{1, 2}, {3, 4, device = "cpu"}} end, "mat: device stands")
    raises(function() vec{dtype = "f64"} end, "vec: dtype stands among")
    raises(function() vec{[0] = 1, 2} end, "vec: the table has [0] besides",
        "its elements 1 … 1")
    local A = zeros(2)
    raises(function() A[A:eq(0)] = {1, 2, step = {}} end, "step = …")
end

function TestTables:test_empty_tables()
    lu.assertEquals(mat{}.shape, {0, 0})
    lu.assertEquals(mat{{}, {}}.shape, {2, 0})
    lu.assertEquals(vec{}.shape, {0})
    equals(mat{{}, {}}, {{}, {}})
end

function TestTables:test_matrices_are_no_rows()
    raises(function() mat{vec{1, 2}, vec{3, 4}} end, "mat: row 1 is a matrix", "vcat(A, B)")
end

function TestTables:test_ragged_rows_are_refused_with_both_lengths()
    raises(function() mat{{1, 2}, {3}} end, "mat: ragged rows", "row 1 has 2", "row 2 has 1")
    raises(function() mat{{1}, {2, 3}} end, "row 1 has 1", "row 2 has 2")
    raises(function() mat{{}, {1}} end, "row 1 has 0", "row 2 has 1")
end

function TestTables:test_wrong_elements_are_named()
    raises(function() mat{{1, 2}, {3, "x"}} end, "mat: element {2, 2}", "string")
    raises(function() mat{{1, 2}, 3} end, "mat: row 2", "number")
    raises(function() vec{1, {}, 3} end, "vec: element 2", "table")
    raises(function() vec{1, print} end, "2", "function")
    raises(function() mat{1, 2} end, "row 1", "number", "vec{1, 2}")
    raises(function() vec{{1}, {2}} end, "mat{{1, 2}")
    raises(function() mat(3) end, "mat: elements is 3, expected a table")
    raises(function() vec("1") end, 'vec: elements is "1", expected a table')
end

TestFilled = {}

function TestFilled:test_zeros_ones_full()
    equals(zeros(2, 3), {{0, 0, 0}, {0, 0, 0}})
    equals(ones(2), {1, 1})
    equals(full(2, 2, 7.5), {{7.5, 7.5}, {7.5, 7.5}})
    equals(full(3, -inf), {-inf, -inf, -inf})
    equals(full(1, 2, true, {dtype = "bool"}), {{true, true}})
    equals(full(2, nan, {dtype = "f64"}), {nan, nan})
end

function TestFilled:test_eye()
    equals(eye(2), {{1, 0}, {0, 1}})
    equals(eye(2, 3), {{1, 0, 0}, {0, 1, 0}})
    equals(eye(3, 2), {{1, 0}, {0, 1}, {0, 0}})
    equals(eye(1, {dtype = "bool"}), {{true}})
end

function TestFilled:test_empty_shapes_are_legal()
    for _, make in ipairs{zeros, ones, rand, randn} do
        lu.assertEquals(make(0, 3).shape, {0, 3})
        lu.assertEquals(make(3, 0).shape, {3, 0})
        lu.assertEquals(make(0).shape, {0})
    end
    lu.assertEquals(eye(0).shape, {0, 0})
    lu.assertEquals(randint(1, 6, 0, 4).shape, {0, 4})
    lu.assertEquals(randperm(0).shape, {0})
end

function TestFilled:test_whole_floats_are_sizes()
    lu.assertEquals(zeros(2.0, 3.0).shape, {2, 3})
end

function TestFilled:test_fromfn_is_called_with_places()
    equals(fromfn(2, 3, function(i, j) return 10 * i + j end),
        {{11, 12, 13}, {21, 22, 23}})
    equals(fromfn(3, function(i) return i * i end), {1, 4, 9})
    equals(fromfn(2, function(i) return i == 1 end, {dtype = "bool"}),
        {true, false})
end

function TestFilled:test_fromfn_passes_errors_on_and_names_wrong_values()
    raises(function() fromfn(2, 2, function() error("mine", 0) end) end, "mine")
    raises(function() fromfn(2, 2, function(i, j)
        if i + j < 4 then return 0 end
    end) end, "fromfn: element {2, 2}", "nil")
    raises(function() fromfn(2, 2) end, "f is missing, expected a function")
end

function TestFilled:test_sequences()
    equals(range(1, 4), {1, 2, 3, 4})
    equals(range(1, 8, 3), {1, 4, 7})
    equals(range(3, 1, -1), {3, 2, 1})
    equals(range(1, 0), {})
    lu.assertEquals(range(0, 1, 0.1).rows, 11)
    equals(range(0, 1, 0.5, {dtype = "f64"}), {0, 0.5, 1})
    equals(range(1, 3, {dtype = "f64"}), {1, 2, 3})
    equals(linspace(0, 1, 5), {0, 0.25, 0.5, 0.75, 1})
    equals(linspace(2, 9, 1), {2})
    lu.assertEquals(linspace(0, 1, 0).rows, 0)
    equals(logspace(-1, 2, 4, {dtype = "f64"}), {0.1, 1, 10, 100}, "logspace", 4)
end

function TestFilled:test_linspace_ends_exactly()
    for _, n in ipairs{2, 3, 7, 10, 1001} do
        local v = linspace(0.1, 0.7, n, {dtype = "f64"})
        lu.assertEquals(v[1], 0.1)
        lu.assertEquals(v[n], 0.7)
    end
end

TestOptions = {}

function TestOptions:test_dtype()
    local two = {dtype = "f64"}
    local made = {zeros(1, 1, two), ones(1, two), full(1, 1, two), eye(1, two),
        range(1, 2, 1, two), linspace(0, 1, 2, two), logspace(0, 1, 2, two),
        rand(1, two), randn(1, 1, two), randint(1, 2, 3, two), randperm(3, two),
        fromfn(1, math.abs, two), mat({{1}}, two), vec({1}, two)}
    for i, A in ipairs(made) do lu.assertEquals(A.dtype, "f64", i) end
end

function TestOptions:test_default_dtype_is_for_everything_made()
    default_dtype("f64")
    local made = {zeros(1), vec{1}, mat{{1}}, rand(1), range(1, 2), eye(1)}
    default_dtype("f32")
    for i, A in ipairs(made) do lu.assertEquals(A.dtype, "f64", i) end
    lu.assertEquals(zeros(1).dtype, "f32")
    raises(function() default_dtype("f16") end, "f32", "f64")
end

function TestOptions:test_device()
    lu.assertEquals(zeros(1, {device = "cpu"}).device, "cpu")
    lu.assertEquals(zeros(1, {device = t.device}).device, zeros(1).device)
    raises(function() zeros(1, {device = "abacus"}) end, "abacus")
    raises(function() zeros(1, {device = {}}) end, "device")
end

function TestOptions:test_unknown_options_get_a_suggestion()
    raises(function() zeros(2, {dtyp = "f64"}) end, "'dtyp'", "'dtype'")
    raises(function() rand(2, {sead = 1}) end, "'sead'", "'seed'")
    raises(function() zeros(2, {colour = 1}) end, "'colour'", "dtype device")
    raises(function() zeros(2, {"f64"}) end, "named")
    raises(function() zeros(2, {dtype = "f16"}) end, '"f16"',
        '"f32", "f64", "bool", "c64" or "c128"')
    raises(function() zeros(2, {dtype = 64}) end, "64",
        '"f32", "f64", "bool", "c64" or "c128"')
    raises(function() zeros(2, "f64") end, 'zeros: n is "f64"', "{dtype=")
end

TestRefused = {}

-- A variable that was never set is no argument left out.
function TestRefused:test_nil_is_no_size()
    raises(function() zeros(2, nil) end, "zeros: n is nil, expected a whole number")
    raises(function() rand(nil, 2) end, "rand: m is nil")
    raises(function() randint(1, 6, 2, nil) end, "randint: n is nil")
    raises(function() full(2, 2, nil) end, "full: x is nil, expected a number")
    raises(function() full(2, nil, 3) end, "full: n is nil")
    raises(function() range(1, 4):reshape(4, nil) end, "reshape: n is nil")
    lu.assertEquals(fromfn(2, math.abs, nil).shape, {2})
    lu.assertEquals(zeros(2, 2, nil).shape, {2, 2})
    local v = range(1, 3, nil, {dtype = "f64"})
    lu.assertEquals(v.dtype, "f64")
    equals(v, {1, 2, 3})
end

local makers = {zeros = zeros, ones = ones, rand = rand, randn = randn,
    eye = eye}

function TestRefused:test_sizes_that_are_none()
    for name, make in pairs(makers) do
        raises(function() make(nan) end, "whole number", "NaN")
        raises(function() make(2, nan) end, "whole number", "NaN")
        raises(function() make(-1) end, "is -1, expected a whole number from 0 on")
        raises(function() make(3, -7) end, "is -7, expected a whole number from 0 on")
        raises(function() make(2.5) end, "whole number", "2.5")
        raises(function() make(inf) end, "whole number", "Inf")
        raises(function() make(1e30) end, "1e+30")
        raises(function() make("3") end, 'is "3", expected a whole number')
        raises(function() make() end, "is missing, expected a whole number")
        raises(function() make(true) end, "a boolean, expected a whole number")
        lu.assertEquals(make(1).rows, 1, name)
    end
end

function TestRefused:test_sizes_that_overflow()
    local big = math.maxinteger
    raises(function() zeros(big) end, "memory")
    raises(function() zeros(big, big) end, tostring(big))
    raises(function() zeros(2 ^ 32, 2 ^ 32) end, "4294967296")
    raises(function() zeros(2 ^ 61, 8) end, "2305843009213693952")
    raises(function() ones(2 ^ 62, 4, {dtype = "f64"}) end, "memory")
    raises(function() randint(1, 6, big, 2) end, "memory")
    raises(function() randperm(big) end, "memory")
    raises(function() linspace(0, 1, big) end, "memory")
    raises(function() fromfn(big, 2, math.max) end, "memory")
    raises(function() range(0, 1, 1e-300) end, "step")
    raises(function() range(0, 1e15, {dtype = "f64"}) end, "memory")
    -- one is empty, so nothing is needed
    lu.assertEquals(zeros(0, 1000000).size, 0)
end

-- f32 holds whole numbers up to 2^24, and some above.
function TestRefused:test_whole_numbers_that_f32_does_not_hold()
    local more = {"more than f32 holds exactly", '{dtype="f64"}'}
    raises(function() range(16777214, 16777222) end,
        "range: 16777214..16777222", table.unpack(more))
    raises(function() range(5, -16777217, -1) end, "range", table.unpack(more))
    raises(function() range(16777217, 16777257, 4) end, table.unpack(more))
    raises(function() range(16777217, 16777217) end, table.unpack(more))
    raises(function() linspace(16777214, 16777222, 9) end,
        "linspace: 16777214..16777222", table.unpack(more))
    raises(function() fromfn(2, function(i) return 16777215 + i end) end,
        "fromfn: 16777217 is", table.unpack(more))
    local wide = {dtype = "f64"}
    equals(range(16777216, 16777218, wide), {16777216, 16777217, 16777218})
    equals(linspace(16777216, 16777218, 3, wide), {16777216, 16777217, 16777218})
    equals(fromfn(1, function() return 16777217 end, wide), {16777217})
    equals(range(16777214, 16777216), {16777214, 16777215, 16777216})
    equals(range(16777214, 16777220, 2), {16777214, 16777216, 16777218, 16777220})
    lu.assertEquals(range(-2 ^ 25, 2 ^ 25, 2 ^ 20).rows, 65)
    lu.assertEquals(linspace(0, 123456789, 2).rows, 2)
    lu.assertEquals(linspace(0, 1, 100).rows, 100)
    lu.assertEquals(fromfn(1, function() return 16777217.0 end)[1], 16777216)
end

function TestRefused:test_sequences_without_an_end()
    raises(function() range(0, 1, 0) end, "0")
    raises(function() range(nan, 1) end, "finite")
    raises(function() range(0, inf) end, "finite")
    raises(function() linspace(0, 1, -1) end, "-1")
    raises(function() linspace(0, 1, 2.5) end, "2.5")
    raises(function() linspace(0, inf, 2) end, "finite")
    raises(function() linspace(0, 1) end, "count is missing, expected a whole number")
    raises(function() range("a", 2) end, 'first is "a", expected a number')
end

function TestRefused:test_values_that_are_none()
    raises(function() randint(0, 2, 3, {dtype = "bool"}) end, "randint", "0..2")
    raises(function() randint(-1, 1, 3, {dtype = "bool"}) end, "-1..1")
    lu.assertEquals(randint(0, 1, 9, {dtype = "bool"}).dtype, "bool")
    raises(function() full(2) end, "number")
    raises(function() full(2, 2, "x") end, "full")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
