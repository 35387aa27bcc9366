-- map(A, B, …, f): f read as a formula and run as one program gives what
-- calling it for every element gives, and what cannot be read so is called.
local lu = require "luaunit"
local t = require "common"
local trace = require "lumat.trace"
local equals, raises = t.equals, t.raises
local inf, nan = t.inf, t.nan

local N = tonumber(os.getenv("LUMAT_PROGRAMS")) or 400

-- f as nothing reads it: it takes any number of arguments.
local function called(f) return function(...) return f(...) end end

-- What f gives for each element, with its name in the trace; nil where it was
-- called for each.
local function run(f, ...)
    local operands, result = table.pack(...), nil
    operands[operands.n + 1] = f
    local e = trace.captured(function()
        result = map(table.unpack(operands, 1, operands.n + 1))
    end)
    local names = e and e.operation:match "^map%((.*)%)$"
    return result, names or e and e.operation == "several" and "several" or nil
end

local function flat(A)
    return totable(A.ndim == 1 and A or A:reshape(A.rows * A.cols))
end

local function same_elements(A, B, what, ulps)
    lu.assertEquals(A.shape, B.shape, what)
    lu.assertEquals(A.dtype, B.dtype, what)
    local a, b = flat(A), flat(B)
    for i = 1, #a do
        local is_same = a[i] == b[i]
        if type(a[i]) == "number" then
            is_same = t.within(a[i], b[i], ulps or 0, A.dtype)
        end
        if not is_same then
            lu.fail(string.format("%s: element %d is %s, called %s", what, i,
                tostring(a[i]), tostring(b[i])))
        end
    end
end

-- --- random functions --------------------------------------------------------

local function generator(seed)
    local state = seed * 2654435761 % 4294967296
    return function(n)
        state = (state * 1664525 + 1013904223) % 4294967296
        return (state >> 8) % n + 1
    end
end

local numbers = {"0", "1", "-1", "2", "3", "-3", "7", "0.5", "-0.0", "1e300",
    "9007199254740993", "1/0", "0/0", "-7", "1e-320", "0.1", "p", "q", "c[2]"}
local operators = {"+", "-", "*", "/", "//", "%"}
local comparisons = {"<", "<=", ">", ">=", "==", "~="}
local functions = {"math.floor(%s)", "math.ceil(%s)", "math.abs(%s)", "abs(%s)",
    "floor(%s)", "ceil(%s)", "math.sqrt(%s)", "-(%s)", "sign(%s)", "square(%s)",
    "trunc(%s)", "round(%s)", "reciprocal(%s)", "g(%s)", "math.rad(%s)"}
local pairs_of = {"math.max(%s, %s)", "math.min(%s, %s)", "maximum(%s, %s)",
    "minimum(%s, %s)", "mod(%s, %s)", "h(%s, %s)", "copysign(%s, %s)"}

-- Operations whose results are exact, so that no rounding of theirs can turn a
-- comparison.
local function expression(any, depth)
    local k = any(depth > 0 and 11 or 4)
    local function deeper() return expression(any, depth - 1) end
    if k == 1 then return numbers[any(#numbers)] end
    if k == 2 then return ({"i", "j"})[any(2)] end
    if k <= 4 then return ({"x", "y", "z"})[any(3)] end
    if k <= 7 then
        return string.format("(%s %s %s)", deeper(), operators[any(6)], deeper())
    end
    if k == 8 then
        return string.format(functions[any(#functions)], deeper())
    end
    if k == 9 then
        return string.format(pairs_of[any(#pairs_of)], deeper(), deeper())
    end
    local comparison = string.format("%s %s %s", deeper(), comparisons[any(6)],
        deeper())
    if k == 10 and any(2) == 1 then comparison = "not (" .. comparison .. ")" end
    return string.format("(%s and %s or %s)", comparison, deeper(), deeper())
end

local function condition(any)
    return string.format("%s %s %s", expression(any, 1), comparisons[any(6)],
        expression(any, 1))
end

local statement

local function block(any, depth)
    local lines = {}
    for i = 1, any(2) do lines[i] = statement(any, depth - 1) end
    return table.concat(lines, " ")
end

function statement(any, depth)
    local name = ({"x", "y", "w"})[any(3)]
    local k = depth > 0 and any(8) or 8
    if k == 1 then
        return string.format("if %s then %s end", condition(any),
            block(any, depth))
    elseif k == 2 then
        return string.format("if %s then %s else %s end", condition(any),
            block(any, depth), block(any, depth))
    elseif k == 3 then
        return string.format("for k = 1, %d do %s = %s + k * %s %s end", any(3),
            name, name, expression(any, 0), block(any, depth))
    elseif k == 4 then
        return string.format([[do local s = %s and "a" or "b"
            if s == "a" then %s end end]], condition(any), block(any, depth))
    elseif k == 5 then
        return string.format("if %s then return %s end", condition(any),
            expression(any, 1))
    elseif k == 6 then
        return string.format(
            "do local n = 0 while %s and n < 3 do n = n + 1 %s end end",
            condition(any), block(any, 1))
    end
    return name .. " = " .. expression(any, 2)
end

local function body(any)
    local lines = {}
    for i = 1, any(3) do lines[i] = statement(any, 2) end
    local last = expression(any, 2)
    if any(5) == 1 then
        last = last .. " " .. comparisons[any(6)] .. " " .. expression(any, 1)
    end
    return table.concat(lines, "\n") .. "\nreturn " .. last
end

local text = [[
local p, q, c = 2.5, 3, {1, -2, 0.25}
local function g(a) if a > 0 then return a end return 0 end
local function h(a, b) return a * b, 3 end
return function(x, y, z, i, j)
local w = 1
%s
end]]

local special = {0.0, -0.0, 1, -1, 2, 3, -3, 0.5, -2.5, 7, inf, -inf, nan, 1e300,
    -1e300, 4503599627370497.5, 1e-310, 0.1, 9007199254740992, -4, 6, 1e19}

local function operand(any, rows, cols)
    local dtype = any(2) == 1 and "f64" or "f32"
    if any(3) == 1 then rows = 1 end
    if any(3) == 1 then cols = 1 end
    return fromfn(rows, cols, function() return special[any(#special)] end,
        {dtype = dtype})
end

TestVariousFunctions = {}

-- Where calling raises, as integers divided by 0 do, map does as well.
function TestVariousFunctions:test_they_give_what_calling_them_gives()
    local read = 0
    local first = tonumber(os.getenv("LUMAT_SEED")) or 1
    for seed = first, first + N - 1 do
        local any = generator(seed)
        local source = string.format(text, body(any))
        local f = assert(load(source))()
        local rows, cols = any(12) + 3, any(12) + 16
        local A = operand(any, rows, cols)
        local B = any(6) == 1 and special[any(6)] or operand(any, rows, cols)
        local C = fromfn(rows, cols, function() return special[any(8)] end)
        local is_right, expected = pcall(map, A, B, C, called(f))
        local has_run, got, how = pcall(run, f, A, B, C)
        local what = "seed " .. seed .. "\n" .. source
        lu.assertEquals(has_run, is_right, what)
        if is_right then same_elements(got, expected, what) end
        if how then read = read + 1 end
    end
    lu.assertTrue(read > N / 3, read)
end

-- --- what is read ------------------------------------------------------------

TestReading = {}

local A = fromfn(9, 11, function(i, j) return (i - 4) * (j - 5) / 4 end)
local B = fromfn(1, 11, function(_, j) return j / 4 - 1 end, {dtype = "f64"})

local function check(f, names, ...)
    local got, how = run(f, ...)
    local operands = {...}
    operands[#operands + 1] = called(f)
    lu.assertEquals(how, names)
    same_elements(got, map(table.unpack(operands)), names, 0)
end

function TestReading:test_operations_by_their_names()
    local got, how = run(function(x) return x * 2 + 1 end, A)
    lu.assertEquals(how, "mul, add")
    equals(got, totable(A * 2 + 1))
    lu.assertEquals(got.dtype, "f32")
    check(function(x) return x > 1 end, "lt", A)
    check(function(x) return -x % 3 // 2 end, "neg, mod, idiv", A)
    check(function(x) if x == 0 then return 1 end return 1 / x end,
        "eq, div, where", A)
    check(function(x) return x < 0 and -x or x end, "lt, neg, where", A)
    check(function(x) return not (x < 0 or x >= 2) end, "lt, le, lnot, where", A)
    check(function(x) return where(gt(x, 0), x, 0) end, "gt, where", A)
    check(function(_, i, j) return i == j and 1 or 0 end,
        "row, add, col, add, eq, where", A)
end

-- x == 0 asks no object, nor does `if x`: one way for all would be wrong.
function TestReading:test_conditions_hold_for_each_element()
    local f = function(x) return x == 0 and 1 or math.sin(x) / x end
    local x = range(-50, 50, {dtype = "f64"}):reshape(1, 101)
    local got, how = run(f, x)
    lu.assertEquals(how, "eq, sin, div, where")
    same_elements(got, x:map(called(f)), "sinc", 2)
    lu.assertEquals(got(1, 51), 1.0)
    local mask = A:gt(0)
    for _, f in ipairs{function(m) if m then return true end return false end,
        function(m) return not m end, function(m) return m == true end,
        function(m) return m == 1 end, function(m) return m ~= nil end,
        function(m) return m and 0 or 5 end} do
        local result = run(f, mask)
        lu.assertEquals(result.dtype, "bool")
        same_elements(result, mask:map(called(f)), "mask")
    end
    check(function(m, y) return m and y or -y end, "neg, where", mask, A)
end

function TestReading:test_what_comes_from_outside()
    local c, scale, mode = {3, -2, 0.5}, 2, "square"
    local function polynomial(x)
        local y = 0
        for k = #c, 1, -1 do y = y * x + c[k] end
        return y
    end
    local function power(x)
        if mode == "square" then return scale * x * x end
        return x / 0
    end
    check(polynomial, "mul, add, mul, add, mul, add", A)
    check(function(x) return power(x) + polynomial(1) end, "mul, mul, add", A)
    mode = "none"
    check(power, "div", A)
    check(function(x) return math.sqrt(2 * math.pi) * x end, "mul", A)
    c[4] = 7
    lu.assertEquals(map(A, polynomial)(1, 1), map(A, called(polynomial))(1, 1))
end

-- Ways that part go on as one: what follows is not computed for each of them.
function TestReading:test_ways_that_meet()
    local function relu(x) if x > 0 then return x end return 0 end
    check(function(x, y) return relu(x) * 0.5 + relu(y) end,
        "lt, where, mul, lt, where, add", A, A * 2)
    check(function(x) if x < 0 then x = 0 elseif x > 1 then x = 1 end
        return x * x - x end, "lt, lt, where, where, mul, sub", A)
    check(function(x, y) return math.max(x, 0) / y end, "lt, where, div", A, A)
    check(function(x, y) -- no number tells a text from another
        local s = x < y and "less" or "more"
        if s == "less" then return x end
        return y
    end, "lt, where", A, A.T:clone().T * -1)
    check(function(x) return -math.max(x, 0) end, "lt, neg, where", A) -- 0 or -0
end

function TestReading:test_functions_themselves()
    local X = A:f64()
    local got, how = run(math.sin, X)
    lu.assertEquals(how, "sin")
    same_elements(got, X:map(called(math.sin)), "math.sin", 2)
    same_elements(A:map(math.floor), floor(A), "math.floor")
    raises(function() A:map(sin) end, "sin: 3 arguments are too many")
end

-- Each operation, of numbers as of elements.
function TestReading:test_all_operations()
    local formulas = require "math.formulas"
    local values = {0.5, -0.5, 2, 3, -3, 0.0, -0.0, 1, 7.25, inf, -inf, nan, 30}
    local n = #values
    local X = fromfn(n, n, function(i) return values[i] end, {dtype = "f64"})
    local Y = X.T
    for arity, list in ipairs{formulas.unary, formulas.binary, formulas.ternary} do
        for name, line in pairs(list) do
            local f = load(string.format("return function(x, y) return %s(%s) end",
                name, ({"x", "x, y", "x, y, 2"})[arity]))()
            local got, how = run(f, X, Y)
            lu.assertEquals(how, name)
            same_elements(got, map(X, Y, called(f)), name,
                line[2] == 0 and 0 or 16)
        end
    end
end

function TestReading:test_second_operands()
    for _, f in ipairs{function(x) return round(x, 1) end,
        function(x) return round(x, -1) end, function(x) return log(x, 3) end,
        function(x) return log(x, 2) end, function(x, y) return log(x, y) end,
        function(x, y) return atan(x, y) end, function(x) return math.log(x, 3) end,
        function(x) return math.log(x, 10) end,
        function(x, y) return math.atan(x, y) end,
        function(x) return math.deg(x) + math.rad(x) end,
        function(x, y) return math.max(x, y, 1.5) + math.min(x, y) end} do
        local got, how = run(f, A, B)
        lu.assertNotNil(how)
        same_elements(got, map(A, B, called(f)), how, 4)
    end
end

-- Beyond 32 operations, 8 operands or 8 constants: parts, one after the other.
function TestReading:test_more_than_a_program_takes()
    local lines, names, operands = {}, {}, {}
    for i = 1, 120 do
        lines[i] = string.format("y = y * %d - x / %d + i", i % 3 - 1, i)
    end
    local f = load("return function(x, i) local y = x\n" ..
        table.concat(lines, "\n") .. "\nreturn y end")()
    same_elements(A:map(f), A:map(called(f)), "long")
    lu.assertTrue(cost(function() return A:map(f) end).flops > 100 * 99)
    for i = 1, 40 do
        names[i] = "a" .. i
        operands[i] = i % 4 == 0 and i or i % 3 == 0 and A + i or B + i
    end
    f = load(string.format("return function(%s) return %s end",
        table.concat(names, ", "), table.concat(names, " + ")))()
    operands[41] = f
    local got = map(table.unpack(operands))
    lu.assertTrue(cost(function()
        return map(table.unpack(operands))
    end).flops > 0)
    operands[41] = called(f)
    same_elements(got, map(table.unpack(operands)), "many")
end

function TestReading:test_a_result_that_waits()
    settings{fusion = "always"}
    local X = B:map(function(x) return x * x end)
    local Y = X + 1
    B:clone():add_(1)
    equals(Y, totable(square(B) + 1))
    settings{fusion = "on"}
end

-- --- what is called for every element -----------------------------------------

TestCalling = {}

local function is_called(f, ...)
    local operands = table.pack(...)
    if operands.n == 0 then operands = {A, n = 1} end
    operands[operands.n + 1] = f
    lu.assertEquals(cost(function()
        return map(table.unpack(operands, 1, operands.n + 1))
    end).flops, 0)
    return map(table.unpack(operands, 1, operands.n + 1))
end

function TestCalling:test_what_does_more_than_compute()
    local count, list, text = 0, {}, ""
    local numbers = setmetatable({}, {__index = function() count = count + 1
        return count end})
    is_called(function(x) count = count + 1 return x end)
    lu.assertEquals(count, 99)
    is_called(function(x) list[#list + 1] = x return x end)
    lu.assertEquals(#list, 99)
    is_called(function(x) table.insert(list, x) return x end)
    lu.assertEquals(#list, 198)
    is_called(function(x, i, j) text = text .. i .. j return x end)
    lu.assertEquals(text:sub(1, 6), "111213")
    is_called(function() return numbers.any end)
    lu.assertEquals(count, 198)
    is_called(function(x) global_of_test = x return x end)
    lu.assertEquals(global_of_test, A(9, 11))
    global_of_test = nil
end

function TestCalling:test_random_numbers_are_drawn_for_each()
    local R = is_called(function() return math.random() end)
    lu.assertTrue(R:max() > R:min())
    R = is_called(function(x) local y = math.random() return x * 0 + y end)
    lu.assertTrue(R:max() > R:min())
    R = is_called(function() return rand(1)[1] end)
    lu.assertTrue(R:max() > R:min())
    local t0 = os.clock()
    R = is_called(function() return os.clock() - t0 end)
    lu.assertTrue(R:min() >= 0)
end

function TestCalling:test_errors_are_those_of_the_elements()
    local f = function(x) if x > 3 then error("too large", 0) end return x end
    raises(function() A:map(f) end, "too large")
    equals((A * 0):map(f), totable(A * 0))
    f = function(x) if x > 3 then return nil end return x end
    raises(function() A:map(f) end, "gave a nil, not a number")
    raises(function() A:map(function(x) return x < 3 and x or "big" end) end,
        "gave a string, not a number")
    raises(function() A:map(function(x) return x:sin() end) end, "index a number")
    raises(function() A:map(function(x) return x + nothing end) end, "nothing")
    raises(function() A:gt(0):map(function(m) return m + 1 end) end, "boolean")
    raises(function() A:map(function(_, i) return i // (i - 1) end) end, "by zero")
    raises(function() ones(20, 20):map(function()
        coroutine.yield() return 1
    end) end, "yield")
end

function TestCalling:test_other_kinds_of_functions()
    local object = setmetatable({}, {__call = function(_, x) return x + 1 end})
    equals(is_called(object), totable(A + 1))
    is_called(function(x) return coroutine.wrap(function() return x end)() end)
    is_called(function(x) return select(2, pcall(math.sqrt, x)) end)
    is_called(called(function(x) return x end))
    local function endless(x) if x > 1e9 then return x end return endless(x + 1e9) end
    is_called(endless)
end

-- Lua's integers are no doubles.
function TestCalling:test_integers_that_no_double_holds()
    local big = 9007199254740993
    local X = fromfn(8, 8, function(i) return 2.0 ^ (45 + i) end, {dtype = "f64"})
    for _, f in ipairs{function(x) return x < big end,
        function(_, i) return (i + big) % 10 end,
        function(x) return math.floor(x) * 3 - 1 end,
        function(x) return math.floor(x) & 1 end,
        function(_, i) return i << 2 end} do
        same_elements(is_called(f, X), X:map(called(f)), "integers")
    end
end

function TestCalling:test_a_matrix_from_outside()
    local M = ones(2)
    raises(function() A:map(function(x) return x + M end) end, "gave a matrix")
    local v = range(1, 9)
    equals(is_called(function(_, i) return v[i] end),
        totable(zeros(9, 11) + v:col()))
end

-- --- operands and results ------------------------------------------------------

TestOperands = {}

function TestOperands:test_broadcasting_types_and_places()
    local f = function(x, y, i, j) return x * y + 10 * i + j end
    local columns = {rand(9, 1), rand(1, 11), rand(1, 1), rand(9, 11),
        A:gt(0):f32(), rand(11, 9).T, 3, 2.5}
    for _, X in ipairs(columns) do
        for _, Y in ipairs(columns) do
            if type(X) ~= "number" or type(Y) ~= "number" then
                local expected = map(X, Y, called(f))
                same_elements(map(X, Y, f), expected, "places")
            end
        end
    end
    local v = range(1, 100)
    same_elements(map(v, v + 1, f), map(v, v + 1, called(f)), "vectors")
    equals(map(vec{1, 2}, vec{10, 20}, function(x, y) return x + y end), {11, 22})
    equals(map(mat{{1, 2}}, 3, true, function(x, y, z)
        return z and x * y or 0
    end), {{3, 6}})
end

function TestOperands:test_the_type_of_the_result()
    local f = function(x, y) return x == y and 1 or 0 end
    local single, mask, double = rand(9, 9), rand(9, 9):gt(0.5), rand(9, 9):f64()
    for expected, both in pairs{f32 = {single, mask}, f64 = {mask, double},
        bool = {mask, mask}} do
        local got = map(both[1], both[2], f)
        lu.assertEquals(got.dtype, expected)
        same_elements(got, map(both[1], both[2], called(f)), expected)
    end
    lu.assertEquals(map(single, double, f).dtype, "f64")
    lu.assertEquals(mask:map(function() return 0.5 end).dtype, "bool")
    equals(ones(9, 9):map(function() return 0.1 end) - 0.1, totable(zeros(9, 9)))
    equals(single:map(function(x) return x end), totable(single))
    same_elements(mask:map(function(m) return m end), mask, "itself")
end

-- Read or called, of few elements or many.
function TestOperands:test_true_or_false_for_each_makes_a_mask()
    local v = vec{5, 6, 7}
    equals(v[map(v, function(x) return x > 1 end)], {5, 6, 7})
    for _, A in ipairs{v, rand(9, 9), rand(9, 9):f64()} do
        local function both(f, dtype, ...)
            local got = map(A, ..., f)
            lu.assertEquals(got.dtype, dtype)
            same_elements(got, map(A, ..., called(f)), dtype)
        end
        both(function(x) return x > 0.5 end, "bool", 1)
        both(function(x, y) return not (x > y) end, "bool", A)
        both(function(x, m) return m end, "bool", A:gt(0.5))
        both(function() return true end, "bool", 1)
        both(function(x) if x > 5.5 then return true end return x end, A.dtype, 1)
        both(function(x) return x > 0.5 and 1 or 0 end, A.dtype, 1)
    end
    lu.assertEquals(zeros(0):map(function(x) return x > 1 end).dtype, "f32")
end

-- Steps are rounded as numbers are, once in the end.
function TestOperands:test_f32_is_rounded_once()
    local X = fromfn(9, 9, function(i, j) return 1 + i * 2 ^ -20 + j * 2 ^ -23 end)
    local f = function(x) return (x * x - 1) * 3 + x end
    same_elements(X:map(f), X:map(called(f)), "once")
    local Y = X:f64()
    same_elements(X:map(f), ((Y % Y - 1) * 3 + Y):f32(), "in f64")
end

function TestOperands:test_wrong_operands()
    local f = function(x, y) return x + y end
    local M, C = rand(9, 11), rand(3, 1)
    raises(function() map(M, C, f) end,
        "map: shapes differ (9x11 and 3x1)\n  M is 9x11, C is 3x1")
    raises(function() map(M, vec{1, 2}, f) end, "a vector goes only with vectors")
    raises(function() map(M, 3) end, "map: f is 3, expected a function")
    raises(function() map(M, C, 3) end, "map: f is 3, expected a function")
    raises(function() map(M) end, "map: f is missing, expected a function")
    raises(function() map(2, 3, f) end, "no matrix among the operands")
    raises(function() map(M, "x", f) end, 'B is "x"')
    raises(function() map(M, nil, f) end, "B is nil")
    raises(function() map(M, f, f) end, "argument 2 is a function")
    local freed = ones(2)
    freed:free()
    raises(function() map(M, freed, f) end, "freed")
    raises(function() map(M, sparse(C), f) end, "full")
end

function TestOperands:test_larger_ones_are_told_of()
    local function warnings_of(code)
        local path = os.tmpname()
        os.execute(string.format("%s --device cpu -e '%s' 2>%s",
            os.getenv "LUMAT", code, path))
        local text = t.content(path)
        os.remove(path)
        return text
    end
    local text = warnings_of [[A = rand(1000, 1000)
        for i = 1, 2 do
        A:map(function(x)
            return x + math.random() end)
        end
        A:map(function(x) if x > 1/2 then return x end return 0 end)
        rand(100, 100):map(function(x) return x + math.random() end)]]
    lu.assertStrContains(text,
        "3: map: f calls random (line 4), so it is called for each of 1000000 " ..
        "elements")
    lu.assertEquals(select(2, text:gsub("map: f", "")), 1)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
