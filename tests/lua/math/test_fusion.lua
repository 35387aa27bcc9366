-- What is recorded and run as one program gives the bits of one operation after
-- the other: random programs over all types, views, broadcasts, writes, masks
-- and products, both ways. And what waits is there when it is needed, whatever happens
-- to its operands meanwhile.
local lu = require "luaunit"
local t = require "common"
local raises = t.raises

local N = os.getenv("LUMAT_SLOW") and 300 or tonumber(os.getenv("LUMAT_PROGRAMS")) or 150
local MOST = 60 -- operations of a program

local choose = where

local function fuse(how) settings{fusion = how} end

-- Of a matrix: its type and its elements, row by row.
local function elements(A)
    return {dtype = A.dtype, rows = A.rows, cols = A.cols,
        totable(A.ndim == 1 and A or A:reshape(A.rows * A.cols))}
end

local function written(x)
    if x ~= x then return "nan" end
    return type(x) == "number" and ("%a"):format(x) or tostring(x)
end

-- The bits of a matrix, NaN being one value.
local function bits(A)
    local rows = {}
    for i, x in ipairs(elements(A)[1]) do rows[i] = written(x) end
    return A.dtype .. " " .. table.concat(rows, " ")
end

-- --- random programs --------------------------------------------------------

local unary = {"abs", "sqrt", "sin", "exp", "neg", "square", "floor", "round",
    "sign", "reciprocal", "tanh", "log", "cos", "expm1", "gamma", "ceil", "trunc",
    "isnan", "isfinite", "signbit", "lnot", "angle"}
local binary = {"add", "sub", "mul", "div", "maximum", "minimum", "pow", "atan2",
    "hypot", "mod", "logaddexp", "idiv", "copysign"}
-- Where types meet: what is exact or rounded once, and is written in both.
local plain = {"add", "sub", "mul", "div", "idiv", "mod", "maximum", "minimum"}
local hard = {0.1, 1 / 3, 1e-38, 3e38, -1e-45, 1e300, 16777217, 0.7}
local tests = {"lt", "le", "gt", "ge", "eq", "ne"}
local in_place = {"add_", "mul_", "sub_", "maximum_"}

-- A generator of its own, which gives both runs the same numbers.
local function generator(seed)
    local state = seed * 2654435761 % 4294967296
    return function(n)
        state = (state * 1664525 + 1013904223) % 4294967296
        return (state >> 8) % n + 1
    end
end

local shapes = {{7, 5}, {5, 7}, {1, 33}, {64, 3}, {6, 6}, {16, 16}, {29, 31},
    {1, 1}, {1, 2100}, {67, 41}} -- also of more than a block, on the CPU


-- Runs the program of a seed, or its first `last` steps, and returns its values
-- and the sum of the first. names: gets what each step is, if it is given.
local function run(seed, last, names)
    local any = generator(seed)
    local m, n = table.unpack(shapes[any(#shapes)])
    local values = {}
    local function fresh(rows, cols)
        local dtype = any(3) == 1 and "f64" or "f32"
        local A = rand(rows, cols, {seed = any(1000), dtype = dtype}) * 8 - 3
        if any(4) == 1 then A = A:gt(0) end
        return A
    end
    local function say(step, ...)
        if names then names[step] = table.concat({step, ...}, " ") end
    end
    for i = 1, 3 do values[i] = fresh(m, n) end
    local function pick()
        local k = any(8)
        if k == 1 then
            local x = any(3) == 1 and hard[any(#hard)] or any(9) - 4
            return x == 3 and full(1, 1, 3) or x -- a matrix of one number, too
        end
        if k == 2 then return fresh(1, n) end
        if k == 3 then return fresh(m, 1) end
        return values[any(#values)]
    end
    local function matrix() return values[any(#values)] end
    local function factor() return fresh(n, n < 100 and n or 1) end -- n n are many
    local function product(A, B) return n < 100 and A * B or A * B + A end
    local length = any(MOST)
    for step = 1, math.min(length, last or length) do
        local kind, at = any(29), any(6)
        local function keep(v) values[at <= #values and at or #values + 1] = v end
        if kind <= 6 then
            local f = unary[any(#unary)]
            say(step, f)
            keep(_G[f](matrix()))
        elseif kind <= 11 then
            local f = binary[any(#binary)]
            say(step, f)
            keep(_G[f](matrix(), pick()))
        elseif kind <= 13 then
            say(step, "test")
            keep(matrix()[tests[any(#tests)]](matrix(), pick()))
        elseif kind == 14 then
            say(step, "where")
            keep(where(matrix(), matrix(), pick()))
        elseif kind == 15 then
            local f, A = in_place[any(#in_place)], matrix()
            say(step, f)
            A[f](A, pick())
        elseif kind == 16 then
            local A, mask = matrix(), matrix():gt(0)
            say(step, "mask")
            A[mask] = any(5)
        elseif kind == 21 then
            local A, how = matrix(), any(4)
            say(step, "mask of itself", how)
            if how == 1 then
                A[A:gt(any(3) - 2)] = any(5)
            elseif how == 2 then
                A[(A * 2 - pick()):lt(matrix())] = 0
            elseif how == 3 then
                A[isnan(A)] = any(2) == 1
            else
                local mask = A:gt(matrix())
                A[mask] = -1
                keep(mask)
            end
        elseif kind == 22 then
            local f, A, how = in_place[any(#in_place)], matrix(), any(4)
            say(step, f, "of itself", how)
            if how == 1 then
                A[f](A, mul(A, matrix() + 1) - 1)
            elseif how == 2 then
                local B = exp(A) + pick()
                A[f](A, B)
                keep(B)
            elseif how == 3 then
                _G[f:sub(1, -2)](sqrt(A), A - 1, {out = A})
            else
                A[":, :"] = A + (matrix() - pick())
            end
        elseif kind == 17 then
            local A = matrix()
            say(step, "row")
            A[any(m)] = any(7)
        elseif kind == 18 then
            say(step, "view")
            local A = matrix()
            keep(m == n and A.T or A["1:" .. m .. ", 1:" .. n] + A["-1:1:-1, :"])
        elseif kind == 19 then
            say(step, "sum")
            local A = matrix()
            values[#values > 5 and 6 or #values + 1] = A + A:sum(1)
        elseif kind == 23 then
            local how, dtype = any(4), any(3) == 1 and "f64" or "f32"
            say(step, "drawn", how, dtype)
            if how == 1 then
                keep(rand(m, n, {seed = any(99), dtype = dtype}) * 2 - pick())
            elseif how == 2 then
                keep(mul(randn(m, n, {seed = any(99), dtype = dtype, std = 2}), matrix()) + 1)
            elseif how == 3 then
                local D = randint(1, 6, m, n, {seed = any(99), dtype = dtype})
                keep(D)
                keep(maximum(D, matrix()))
            else
                matrix():add_(rand(m, n, {low = -1, dtype = dtype, seed = any(99)}))
            end
        elseif kind == 24 then
            local f = ({f32, f64, bool})[any(3)]
            say(step, "cast")
            keep(f(any(2) == 1 and matrix() or matrix() * 3 - pick()))
            if any(2) == 1 then keep(f(matrix()) + pick()) end
        elseif kind == 25 then
            say(step, "matmul")
            local A = matrix()
            keep(product(A, factor()))
        elseif kind == 26 then
            local f = binary[any(#binary)]
            say(step, "matmul", f)
            local B = factor()
            keep(_G[f](product(matrix(), B), pick()))
        elseif kind == 27 or kind == 28 then
            local f, g = plain[any(#plain)], plain[any(#plain)]
            local how, cast = any(5), ({f32, f64})[any(2)]
            say(step, "types meet", f, g, how)
            local A = _G[f](matrix(), pick())
            if how == 1 then
                A = _G[g](cast(A), matrix())
            elseif how == 2 then
                A = _G[g](sqrt(A), fresh(m, n))
            elseif how == 3 then
                A = _G[g](matrix(), cast(A:gt(matrix())))
            elseif how == 4 then
                A = where(A:le(matrix()), fresh(m, n), _G[g](matrix(), pick()))
            else
                A = cast(_G[g](clip(cast(A), -2, 5), hard[any(#hard)]))
            end
            keep(A)
        elseif kind == 29 then
            local A, how, axis = matrix(), any(6), any(3)
            say(step, "reduced", how)
            local f = _G[({"sum", "any", "all", "max", "mean", "argmin"})[how]]
            local M = any(2) == 1 and A:gt(matrix()) or A * 3 + fresh(m, n)
            if axis < 3 then
                values[#values > 6 and 7 or #values + 1] = A + f(M, axis)
            else
                local r = f(M)
                keep(A + (r == true and 1 or r or 0))
            end
        elseif kind == 20 then
            say(step, "gc")
            if any(2) == 1 then collectgarbage() else sync() end
        end
    end
    local told = {}
    for i, v in ipairs(values) do told[i] = elements(v) end
    told[#told + 1] = {dtype = "sum of value 1", rows = 1, cols = 1,
        {values[1]:sum()}}
    return told, length
end

-- The places where elements have other bits, NaN being one value.
local function places_that_differ(x, y)
    local places = {}
    if x.dtype ~= y.dtype or x.rows ~= y.rows or x.cols ~= y.cols then return {0} end
    local a, b = x[1], y[1]
    for i = 1, #a do
        local p, q = a[i], b[i]
        if p ~= q and (p == p or q == q) or p == 0 and 1 / p ~= 1 / q then
            places[#places + 1] = i
        end
    end
    return places
end

-- A line for each value that differs: "value 2, f64 7x5, element 12: 0x1p+0,
-- fused 0x0p+0; element 22: …". None: there is no difference.
local function differences(expected, actual)
    local lines = {}
    for i = 1, math.max(#expected, #actual) do
        local x, y = expected[i], actual[i]
        local places = x and y and places_that_differ(x, y) or {0}
        local told = {}
        for k = 1, math.min(#places, 4) do
            local at = places[k]
            told[k] = at == 0 and "another type, shape or count" or
                ("element %d: %s, fused %s"):format(at, written(x[1][at]), written(y[1][at]))
        end
        if #places > 0 then
            lines[#lines + 1] = ("value %d, %s %dx%d, %d of its elements; %s"):format(i,
                x and x.dtype or y.dtype, x and x.rows or 0, x and x.cols or 0,
                #places, table.concat(told, "; "))
        end
    end
    return lines
end

local function one_by_one(seed, last, names)
    fuse "off"
    return run(seed, last, names)
end

local function fused(seed, last)
    fuse "always"
    return run(seed, last)
end

-- The first step after which values differ, where the program ends with it, and
-- which they are; nil: in no beginning of the program do they.
local function first_difference(seed, length, another)
    for last = 1, length do
        local lines = differences(one_by_one(seed, last), another(seed, last))
        if #lines > 0 then return last, lines end
    end
end

-- All there is to know of a program that has other values in another way of
-- running it: which, since which step, and whether each way repeats itself.
local function told_of(seed, lines, another)
    local names = {}
    local expected, length = one_by_one(seed, nil, names)
    local function repeats(way, before)
        return #differences(before, way(seed)) == 0 and "repeats" or "does not repeat"
    end
    table.insert(lines, 1, ("program %d of %d steps:"):format(seed, length))
    lines[#lines + 1] = "one operation after the other it " .. repeats(one_by_one, expected)
    lines[#lines + 1] = "fused it " .. repeats(another, (another(seed)))
    local step, of_step = first_difference(seed, length, another)
    if step then
        lines[#lines + 1] = "first after step " .. table.concat(names, " | ", 1, step)
        table.move(of_step, 1, #of_step, #lines + 1, lines)
    else
        lines[#lines + 1] = "in no beginning of it; its steps: " .. table.concat(names, " | ")
    end
    return table.concat(lines, "\n")
end

-- Programs seed + 1 to seed + count have the same values in another way of running
-- them as one operation after the other.
local function check_programs(count, another)
    local first = tonumber(os.getenv("LUMAT_TEST_SEED")) or 0
    for seed = first + 1, first + count do
        local lines = differences(one_by_one(seed), another(seed))
        if #lines > 0 then lu.fail(told_of(seed, lines, another)) end
    end
end

TestWholePrograms = {}

function TestWholePrograms:tearDown() fuse "on" end

function TestWholePrograms:test_bits_are_those_of_single_operations()
    check_programs(N, fused)
end

-- And of kernels compiled for them, each of which takes a tenth of a second.
function TestWholePrograms:test_bits_of_compiled_kernels()
    local count = tonumber(os.getenv("LUMAT_PROGRAMS")) or t.on_gpu and 10 or 2
    check_programs(count, function(seed, last)
        settings{compile = "always"}
        local told, length = fused(seed, last)
        settings{compile = "on"}
        return told, length
    end)
end

-- Over layouts that have kernels of their own: without gaps and with, odd
-- lengths, offsets, broadcasts, masks, both types.
function TestWholePrograms:test_layouts_of_compiled_kernels()
    local nvrtc = io.open "/usr/local/cuda/lib64/libnvrtc.so.13"
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs{{1, 5001}, {1, 8192}, {70, 256}, {67, 257}, {9, 2052},
            {500, 12}, {12, 1001}} do
            local m, n = s[1], s[2]
            local A = rand(m + 1, n + 5, {seed = 1, dtype = dtype}) * 8 - 4
            local B = rand(m, n, {seed = 2, dtype = dtype}) + 0.5
            local row = rand(1, n, {seed = 3, dtype = dtype})
            local col = rand(m, 1, {seed = 4, dtype = dtype})
            local mask = B:gt(1)
            local part = A[("1:%d, 2:%d"):format(m, n + 1)]
            local works = {
                function() return sqrt(sin(B) % B + 2) - B / 3 end,
                function() return part * 2 + B end,
                function() return A[("2:%d, 5:%d"):format(m + 1, n + 4)] - B / 2 end,
                function() return mul(B - row, col) end,
                function() return choose(mask, B, row) + 1 end,
                function() return (B * 2):gt(part) end,
                function() return exp(B) + tanh(part) % log(B) - pow(B, row) + cos(col) end,
                function() return B["-1:1:-1, :"] + part * 3 end,
                function() return mul(B + 1, mask) end,
                function() return floor(B * 7) // 2 + part[":, -1:1:-1"] end,
            }
            for i, f in ipairs(works) do
                local where = ("%s %dx%d, %d"):format(dtype, m, n, i)
                local expected = f()
                sync() -- so that it is worked out now
                settings{compile = "always"}
                local before = stats().compiled
                local actual = f()
                sync()
                settings{compile = "on"}
                lu.assertEquals(bits(actual), bits(expected), where)
                if t.on_gpu and nvrtc and i < 5 then
                    lu.assertTrue(stats().compiled > before, where)
                end
            end
        end
    end
end

-- Values of the same operands that are needed at once, which a GPU works out
-- together: held and dropped parts, masks that do not join, both types.
function TestWholePrograms:test_several_results()
    local nvrtc = io.open "/usr/local/cuda/lib64/libnvrtc.so.13"
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs{{300, 300}, {1, 70001}, {257, 400}} do
            local A = rand(s[1], s[2], {seed = 1, dtype = dtype}) - 0.5
            local B = rand(s[1], s[2], {seed = 2, dtype = dtype}) + 0.5
            sync()
            local function values()
                local dropped, held = A - B, exp(A)
                local all = {dropped + 1, mul(dropped, 2), held, held / B,
                    A:gt(B), mul(A, B) - held, sqrt(B)}
                dropped = nil
                sync()
                return all
            end
            fuse "off"
            local expected = values()
            fuse "on"
            settings{compile = "always"}
            local before = stats().compiled
            local actual = values()
            settings{compile = "on"}
            for i = 1, #expected do
                lu.assertEquals(bits(actual[i]), bits(expected[i]),
                    ("%s %dx%d, %d"):format(dtype, s[1], s[2], i))
            end
            if t.on_gpu and nvrtc then
                lu.assertTrue(stats().compiled > before)
            end
        end
    end
end

-- Sums are cut by shape and layout: as for the values that were written.
function TestWholePrograms:test_reductions()
    local kinds = {"sum", "prod", "mean", "std", "norm", "max", "min", "argmin", "any"}
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs{{67, 41}, {3, 2050}, {2050, 3}, {300, 300}} do
            local m, n = s[1], s[2]
            local function two(rows, cols)
                return rand(rows, cols, {seed = 3, dtype = dtype}),
                    rand(rows, cols, {seed = 4, dtype = dtype})
            end
            local A, B = two(m, n)
            local C, D = two(n, m)
            local one = B["2:2, 2:2"]
            local E, inner = two(m + 1, n + 3), ("1:%d, 2:%d"):format(m, n + 1)
            local works = {
                plain = function() return A * 3 - B end,
                mask = function() return (A * 3):gt(B + 1) end,
                turned = function() return C.T * 3 - D.T end,
                mixed = function() return A * 3 - D.T end,
                also_mixed = function() return C.T * 3 - B end,
                stretched = function() return A * 3 - B:row(1) end,
                widened = function() return mul(A - B[":, 1:1"], A) - B:row(2) end,
                turned_and_stretched = function() return exp(C.T - B[":, 2:2"]) end,
                reversed = function() return A["-1:1:-1, :"] * 3 - B end,
                zeros_of_both_signs = function() return mul(A - D.T, 0) end,
                with_a_number = function() return A * 3 - one end,
                turned_with_a_number = function() return C.T * 3 - one end,
                part_with_a_number = function() return E[inner] * 3 - one end,
                all_stretched = function() return B:row(1) - B[":, 2:2"] end,
                stretched_with_a_number = function()
                    return mul(B:row(1) - B[":, 2:2"], one)
                end}
            for name, work in pairs(works) do
                for _, kind in ipairs(kinds) do
                    for axis = 0, 2 do
                        local function reduced(how)
                            fuse(how)
                            local options = axis > 0 and {axis = axis} or nil
                            local r = _G[kind](work(), options)
                            if axis > 0 then return bits(r) end
                            return written(r)
                        end
                        lu.assertEquals(reduced "always", reduced "off",
                            table.concat({kind, dtype, m, n, name, axis}, " "))
                    end
                end
            end
        end
    end
end

-- By kernels compiled for the program as by the interpreter and without fusion:
-- all kinds over all layouts take turns, NaN and infinities among the elements.
function TestWholePrograms:test_compiled_reductions()
    local nvrtc = io.open "/usr/local/cuda/lib64/libnvrtc.so.13"
    local kinds = {"sum", "prod", "mean", "std", "norm", "max", "min", "argmin",
        "argmax", "any", "all"}
    local turn = 0
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs{{1, 5001}, {70, 256}, {67, 257}, {1030, 12}, {3, 1}, {1, 1}} do
            local m, n = s[1], s[2]
            local big = rand(m + 1, n + 5, {seed = 1, dtype = dtype}) * 4 - 2
            local A = big[("1:%d, 1:%d"):format(m, n)] * 1
            local B = rand(n, m, {seed = 2, dtype = dtype}) + 0.5
            local row = rand(1, n, {seed = 3})
            local col = rand(m, 1, {seed = 4, dtype = "f64"})
            local mask = A:gt(0.5)
            local hard = A * 1
            hard[m] = 1 / 0
            if m > 2 then hard[{2, 1}] = 0 / 0 end
            local works = {
                function() return exp(A) end,
                function() return mul(A - row, A - row) end,
                function() return A - big[("2:%d, 5:%d"):format(m + 1, n + 4)] end,
                function() return A * 2 - B.T end,
                function() return B.T + 1 end,
                function() return mul(A, mask) + col end,
                function() return (A * 3):gt(row) end,
                function() return abs(hard) - 1 end,
                function() return choose(mask, hard, A) * -2 end,
                function() return sin(A) + tanh(row) % log(abs(A) + 1) - pow(abs(A), col) end,
                function() return A[":, -1:1:-1"] / 3 end,
            }
            for i, work in ipairs(works) do
                turn = turn + 3
                for axis = 0, 2 do
                    turn = turn + 1
                    local kind = kinds[turn % #kinds + 1]
                    local function reduced()
                        local r = _G[kind](work(), axis > 0 and {axis = axis} or nil)
                        if axis > 0 then return bits(r) end
                        return type(r) ~= "number" and tostring(r) or
                            r == r and ("%a"):format(r) or "nan"
                    end
                    local where = ("%s %s %dx%d, %d, axis %d"):format(kind, dtype, m, n, i, axis)
                    fuse "off"
                    local expected = reduced()
                    fuse "always"
                    settings{compile = "off"}
                    local interpreted = reduced()
                    settings{compile = "always"}
                    local before = stats().compiled
                    lu.assertEquals(reduced(), interpreted, where)
                    settings{compile = "on"}
                    lu.assertEquals(interpreted, expected, where)
                    if t.on_gpu and nvrtc and i < 3 then
                        lu.assertTrue(stats().compiled > before, where)
                    end
                end
            end
        end
    end
    -- a view that begins between two fours gives the sum of its copy
    local x = rand(70001, {seed = 5, dtype = "f64"})
    local view, copy = x["2:70001"], x["2:70001"] * 1
    sync()
    for _, how in ipairs{"off", "always"} do
        settings{compile = how}
        lu.assertEquals(("%a"):format((view - 0.5):sum()), ("%a"):format((copy - 0.5):sum()))
        lu.assertEquals(("%a"):format(view:sum()), ("%a"):format(copy:sum()))
    end
    settings{compile = "always"}
    lu.assertEquals((zeros(0, 5) + 1):sum(), 0)
    lu.assertEquals(bits(prod(zeros(0, 2) * 3, {axis = 1})), bits(ones(1, 2)))
    settings{compile = "on"}
end

-- --- what waits -------------------------------------------------------------

TestWaiting = {}

function TestWaiting:setUp()
    fuse "always"
    profile("reset")
end

function TestWaiting:tearDown()
    profile("off")
    fuse "on"
end

local operations = t.operations

local x, y = vec{1, 4, 9}, vec{2, 2, 2}

function TestWaiting:test_a_chain_is_one_operation()
    lu.assertEquals(operations(function()
        t.equals(sqrt(x) * 2 % y - 1, {3, 7, 11})
    end):gsub("^.*; ?", ""), "sqrt, mul, mul, sub")
end

function TestWaiting:test_nothing_is_done_for_what_is_dropped()
    lu.assertEquals(operations(function()
        for _ = 1, 3 do
            local a = x + 1
            a = nil
        end
        collectgarbage()
    end), "")
end

function TestWaiting:test_writes_come_after_what_reads()
    local a = vec{1, 2, 3}
    local b = a + 1
    a[1] = 100
    t.equals(b, {2, 3, 4})
    local c = a * 2
    a:add_(1)
    t.equals(c, {200, 4, 6})
    local row = mat{{1, 2}, {3, 4}}
    local d = row[1] + 10
    row[{1, 2}] = 50
    t.equals(d, {11, 12})
    local e = row.T + 0
    row[{{}, 1}] = 7
    t.equals(e, {{1, 3}, {50, 4}})
    local f = x + a
    a:mul_(0)
    t.equals(f, {102, 7, 13})
    local g = a + x
    a[a:lt(1)] = vec{1, 2, 3}
    t.equals(g, {1, 4, 9})
    t.equals(a, {1, 2, 3})
end

function TestWaiting:test_masked_writes_are_one_operation()
    local a = vec{1, 2, 3, 4}
    lu.assertEquals(operations(function() a[a:gt(2)] = 0 end), "gt, mask")
    t.equals(a, {1, 2, 0, 0})
    lu.assertEquals(operations(function()
        a[land(a:gt(0), a:lt(2))] = 7
    end), "gt, lt, land, mask")
    lu.assertEquals(operations(function()
        a[a:gt(8) | (a * 2):gt(a % a + 50)] = 7
    end), "gt, mul, mul, add, gt, lor, mask")
    lu.assertEquals(operations(function() for i = 8, 9 do a[a:gt(i) & a:lt(1)] = i end end),
        "gt, lt, land, mask; gt, lt, land, mask")
    t.equals(a, {7, 2, 0, 0})
    local b = vec{1, 1, 1, 1}
    lu.assertEquals(operations(function() b[a:gt(b)] = 5 end), "gt, mask")
    t.equals(b, {5, 5, 1, 1})
    lu.assertEquals(operations(function() a:add_(exp(a) * 0) end), "exp, mul, add")
    lu.assertEquals(operations(function() sub(a % b, a, {out = a}) end), "mul, sub")
    t.equals(a, {28, 8, 0, 0})
    lu.assertEquals(operations(function() a["1:4"] = a / 4 end), "div, copy")
    t.equals(a, {7, 2, 0, 0})
end

-- Random numbers are drawn where they are used; the draws keep their order.
function TestWaiting:test_random_numbers_wait()
    local A = mat{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}
    for _, dtype in ipairs{"f32", "f64"} do
        local o = {dtype = dtype}
        local B = A:clone()
        local works = {
            function() return rand(3, 3, o) * 2 - 1 end,
            function() return mul(randn(3, 3, o), rand(3, 3, o)) + randn(9, o):reshape(3, 3) end,
            function() return randint(-3, 3, 3, 3, o) + 0.5 end,
            function() return A.T + rand(3, 3, o) end,
            function() B.T:add_(rand(3, 3, o)) return B end,
            function() B:mul_(rand(3, 3, o) + 1) return B end,
            function() return rand(3, 3, {dtype = dtype, low = 1, high = 2}):sum(1) end,
            function() return (rand(3000, o) - 0.5):sum(), rand(1, 1, o) * 2 end,
            function() local r = rand(3, 3, o) return (r - 1) % (r + 1) end,
            function() return norm(rand(9, o), 3), rand(9, o) end,
            function() return norm(rand(9, o) - 1), rand(9, o) end,
            function() return std(rand(9, o) * 2), rand(9, o) end,
        }
        for i, work in ipairs(works) do
            local function drawn(how)
                fuse(how)
                seed(7)
                B[":, :"] = A
                local _ = rand(3, 3) -- is dropped, and counts
                local r, more = work()
                return type(r) == "number" and ("%a "):format(r) .. bits(more) or bits(r)
            end
            lu.assertEquals(drawn "always", drawn "off", dtype .. " " .. i)
        end
    end
    fuse "always"
    lu.assertEquals(operations(function()
        local r = rand(3) * 2 - 1
        sync()
        local s = (randn(3) % x):sum()
    end), "rand, mul; rand, mul, sub; sum")
    raises(function() return rand(3, {low = 2, high = 1}) end, "upper limit")
end

-- A conversion is a part of what is converted, and of what follows if it is to
-- a wider type.
function TestWaiting:test_conversions_wait()
    local single = vec({0.1, 0.2, 0.3}, {dtype = "f32"})
    lu.assertEquals(operations(function()
        local _ = (f64(single) - 1):sum()
        local wide = f64(x)
        t.equals(f32(wide * 2 - 1), {1, 7, 17})
        t.equals(bool(wide - 4), {true, false, true})
        t.equals(f32(x:gt(1)) - 1, {-1, 0, 0})
    end), "f64; f64, mul, sub, f32; f64, sub, sum; gt, f32, sub; sub, bool")
    local a = mul(f32(f64(x) / 3), f64(x))
    local b = f32(rand(3, {dtype = "f64", seed = 1}))
    local c = bool(rand(3, {seed = 1}))
    c[":"] = rand(3, {seed = 2})
    fuse "off"
    lu.assertEquals(bits(a), bits(mul(f32(f64(x) / 3), f64(x))))
    lu.assertEquals(bits(b), bits(f32(rand(3, {dtype = "f64", seed = 1}))))
    lu.assertEquals(bits(c), bits(bool(rand(3, {seed = 2}))))
    lu.assertEquals(bits(f64(f32(x / 3)) + 1), bits(f64(f32(x / 3) + 0) + 1))
end

-- A mask that something still has is that of the elements as they were.
function TestWaiting:test_masks_that_are_held()
    local holder, mask = {}, nil
    local function fresh() return vec{1, 2, 3, 4} end
    local function held_by_function(a)
        local own = a:gt(2)
        return function() return own end
    end
    local works = {
        function(a) local m = a:gt(2) a[m] = 0 return m end,
        function(a) holder.m = a:gt(2) a[holder.m] = 0 return holder.m end,
        function(a) mask = a:gt(2) a[mask] = 0 return mask end,
        function(a) every = a:gt(2) a[every] = 0 return every end,
        function(a) local f = held_by_function(a) a[f()] = 0 return f() end,
        function(a, m) m = a:gt(2) pcall(function() a[m] = 0 end) return m end,
        function(a)
            local m = a:gt(2)
            local more = m + 1
            m = nil
            a[a:gt(2)] = 0
            return more:gt(1)
        end,
        function(a) -- both keys are on their way at once
            local other, m = vec{1, 1, 1, 1}, {a:gt(2)}
            a[m[1]], other[m[1]] = 0, 9
            t.equals(other, {1, 1, 9, 9})
            return m[1]
        end,
        function(a)
            local m, other = a:gt(2), vec{1, 1, 1, 1}
            other[m], a[m], m = 9, 0, nil
            t.equals(other, {1, 1, 9, 9})
            return vec{0, 0, 1, 1}:gt(0)
        end,
        function(a)
            local m = coroutine.wrap(function(m)
                a[m] = 0
                coroutine.yield(m)
            end)(a:gt(2))
            return m
        end,
    }
    for i, work in ipairs(works) do
        local a = fresh()
        local m = work(a)
        lu.assertEquals(totable(a), {1, 2, 0, 0}, tostring(i))
        lu.assertEquals(totable(m), {false, false, true, true}, tostring(i))
    end
    every = nil
    local a = fresh()
    local b = a + 1
    a:mul_(b)
    t.equals(a, {2, 6, 12, 20})
    t.equals(b, {2, 3, 4, 5})
    collectgarbage("stop")
    a[a:gt(6)] = 0
    collectgarbage("restart")
    t.equals(a, {2, 6, 0, 0})
    local stripped = load(string.dump(load [[local a = ...
        local m = a:gt(2) a[m] = 0 return m]], true))
    if stripped then
        a = fresh()
        t.equals(stripped(a), {false, false, true, true})
        t.equals(a, {1, 2, 0, 0})
    end
end

-- What reads another view's elements than it writes is worked out before.
function TestWaiting:test_writes_over_other_views()
    local a = mat{{1, 2}, {3, 4}}
    a[a.T:gt(2)] = 0
    t.equals(a, {{1, 0}, {3, 0}})
    a:add_(a.T + 1)
    t.equals(a, {{3, 4}, {4, 1}})
    a["1, :"] = a[2] * 2
    t.equals(a, {{8, 2}, {4, 1}})
    a:add_(a["2:1:-1, :"] % a)
    t.equals(a, {{40, 4}, {36, 3}})
end

function TestWaiting:test_writes_while_all_is_executed()
    local a = vec{1, 2, 3, 4}
    local function often()
        for i = 1, 3 do a[a:gt(3 - i / 2)] = i / 4 end
    end
    lu.assertEquals(operations(function() timed(often) end), ("gt, mask; "):rep(3):sub(1, -3))
    local function more()
        for i = 1, 2 do a[(a * 2 + 1):gt(i) & a:lt(0)] = i end
    end
    lu.assertEquals(operations(function() timed(more) end),
        "mul, add, gt, lt, land, mask; mul, add, gt, lt, land, mask")
end

function TestWaiting:test_freed_operands()
    local a = vec{1, 2, 3}
    local b = a * 3
    a:free()
    t.equals(b, {3, 6, 9})
    local c
    do
        local d <close> = vec{4, 5}
        c = d + 1
    end
    t.equals(c, {5, 6})
end

function TestWaiting:test_a_result_that_waits_is_written_to()
    local a = x + y
    a[2] = 0
    t.equals(a, {3, 0, 11})
    local b = x + y
    b:mul_(b)
    t.equals(b, {9, 36, 121})
    local c = x + y
    add(c, 1, {out = c})
    t.equals(c, {4, 7, 12})
end

function TestWaiting:test_views_of_what_waits()
    local a = mat{{1, 2}, {3, 4}} + 1
    local v, w = a.T, a[2]
    t.equals(v + 0, {{2, 4}, {3, 5}})
    t.equals(w * 2, {8, 10})
    v[{1, 2}] = 0
    t.equals(a, {{2, 3}, {0, 5}})
end

function TestWaiting:test_errors_stand_where_they_are_written()
    raises(function()
        local a = x + 1
        local b = a + vec{1, 2}
        error("not reached")
    end, "vec")
    raises(function() return (x + 1):lt("a") end, "lt")
end

function TestWaiting:test_values_that_several_need()
    local names = operations(function()
        local a = sin(x)
        local b, c = a + 1, a * 2
        b:sum() c:sum()
    end)
    local _, times = names:gsub("sin", "")
    lu.assertTrue(times <= 2, names)
end

function TestWaiting:test_operands_that_come_again()
    local names = operations(function()
        local a, b = exp(x), vec{0, 0, 0}
        for _ = 1, 10 do
            a:sum()
            b:add_(a)
        end
    end)
    local _, times = names:gsub("exp", "")
    lu.assertTrue(times <= 2, names)
end

function TestWaiting:test_programs_that_are_too_long()
    local a = vec{1, 2}
    for _ = 1, 100 do a = a + 1 end
    t.equals(a, {101, 102})
    local list, s = {}, vec{0, 0}
    for i = 1, 20 do list[i] = vec{i, i} end
    for i = 1, 20 do s = s + list[i] % list[i] end
    t.equals(s, {2870, 2870})
    local held = {}
    for i = 1, 20 do held[i] = sin(x) * i end
    local all = held[1]
    for i = 2, 20 do all = all + held[i] end
    fuse "off"
    local expected = sin(x) * 1
    for i = 2, 20 do expected = expected + sin(x) * i end
    lu.assertEquals(bits(all), bits(expected))
end

function TestWaiting:test_deep_loops()
    local a = vec{0, 1}
    for i = 1, 2000 do
        a = a + 1
        if i % 3 == 0 then a = a[{{1, 2}}] * 1 end
    end
    t.equals(a, {2000, 2001})
end

function TestWaiting:test_times_are_of_work_done()
    local found = bench(function() local _ = x * 3 end, {seconds = 0.02})
    lu.assertEquals(found.operation, "mul")
    local function often()
        for _ = 1, 10 do local _ = exp(x) + 1 end
    end
    lu.assertEquals(timing(often).operations, 10)
    lu.assertEquals(operations(function() timed(often) end),
        ("exp, add; "):rep(10):sub(1, -3))
    lu.assertEquals(operations(often), "")
end

function TestWaiting:test_timed_functions_that_fail()
    lu.assertFalse(pcall(timed, function() error("no") end))
    lu.assertEquals(operations(function() local _ = x * 3 end), "")
end

function TestWaiting:test_finalisers_may_compute()
    local seen = 0
    for i = 1, 50 do
        setmetatable({a = x + i}, {__gc = function(o)
            seen = seen + (o.a:sum() + (o.a % y):sum() > 0 and 1 or 0)
        end})
        local b = x * i
        local c = b + y
        b = nil
        t.equals(c - y, totable(x * i))
    end
    collectgarbage()
    collectgarbage()
    lu.assertEquals(seen, 50)
end

-- They run where an operation collects garbage, which then reads its operands.
function TestWaiting:test_finalisers_may_free_operands()
    local a, b
    local works = {
        function() return a * b:gt(1) end,
        function() return (a + b):sum() end,
        function() return add(a + 1, b, {out = b}) end,
        function() b[b:gt(1)] = 0 return b end,
        function() return sort(a + b) end}
    for _, work in ipairs(works) do
        for _, victim in ipairs{"a", "b"} do
            a, b = x + 0, y * 1
            local held = {a + 3, b * 5}
            setmetatable({}, {__gc = function()
                local m = victim == "a" and a or b
                m:free()
                t.equals(x + 1, {2, 5, 10})
            end})
            local _, message = pcall(work)
            if type(message) == "string" then
                lu.assertStrContains(message, "freed")
            end
            lu.assertEquals(#held, 2)
            collectgarbage()
            local _ = vec{1} -- the next result: now it is freed
            raises(function() return (victim == "a" and a or b) + 1 end, "freed")
        end
    end
end

function TestWaiting:test_collector_that_is_stopped()
    collectgarbage("stop")
    local a = sqrt(x) + y
    t.equals(a * 2, {6, 8, 10})
    collectgarbage("restart")
    collectgarbage("incremental")
    t.equals((sqrt(x) + y) * 2, {6, 8, 10})
    collectgarbage("generational")
end

-- What waits holds more than it will, but no more than there is.
function TestWaiting:test_memory_that_is_short()
    if t.on_gpu then return end
    local code = [[local list = {} for i = 1, 8 do
        list[i] = rand(500, 500, {dtype = "f64"}) + rand(500, 500, {dtype = "f64"})
        end local sum = 0 for i = 1, 8 do sum = sum + list[i]:sum() end print(sum > 0)]]
    for _, memory in ipairs{20, 21, 22, 23, 25, 28, 30} do
        local command = "LUMAT_FUSION=always '%s' -q --memory=%dM -e '%s' 2>&1"
        local out <close> = io.popen(command:format(os.getenv "LUMAT", memory, code))
        lu.assertEquals(out:read "a", "true\n", memory .. " MiB")
    end
end

-- Nor is there a collection in the midst of a chain that makes its operands
-- old, however much they take.
function TestWaiting:test_large_operands_are_not_worked_out()
    if t.on_gpu then return end
    local code = [[for i = 1, 4 do
        local timed = timing(function() return rand(3000, 3000) * 2 - 1 end)
        print(i == 1 or timed.operations) end]] -- the first one loads what it needs
    local command = "LUMAT_FUSION=on '%s' -q --no-init --device=cpu -e '%s' 2>&1"
    local out <close> = io.popen(command:format(os.getenv "LUMAT", code))
    lu.assertEquals(out:read "a", "true\n1\n1\n1\n")
end

-- The lines are told of that wrote what there is no memory for.
function TestWaiting:test_memory_that_is_short_when_it_is_needed()
    if t.on_gpu then return end
    local code = [[
x = rand(1000, 1000, {dtype = "f64"}) sync()
y = sqrt(x) +
    1
list = {}
while pcall(function() list[#list + 1] = zeros(100000, {dtype = "f64"}) end) do end
z = y[{1, 1}]
]]
    local name = os.tmpname()
    local f = io.open(name, "w") f:write(code) f:close()
    local command = "LUMAT_FUSION=on '%s' -q --device=cpu --memory=40M '%s' 2>&1"
    local out <close> = io.popen(command:format(os.getenv "LUMAT", name))
    local text = out:read "a"
    os.remove(name)
    lu.assertStrMatches(text, ".*:6: out of memory.*; it is for the add of .*:2.*")
end

-- A finaliser that an operation's collection runs, or that of the end, stops
-- what is being worked out for it. (A GPU may have done it before it is waited
-- for.)
function TestWaiting:test_ctrl_c_while_something_is_settled()
    local code = [[x = rand(30, 30) a = sin(x) y = a + 1
        local function drop() setmetatable({}, {__gc = function()
            local kill <close> = io.popen "kill -INT $PPID"
            kill:read "a"
        end}) end
        drop()
        select("#", 1, 2, 3, 4, 5, 6, 7, 8, 9) -- nor does the stack hold it
        ]]
    for _, last in ipairs{"", "z = y[1] + 1", "y:sum()", "x[1] = 0", "y:add_(1)"} do
        -- a job in the background inherits the signal ignored
        local command = "LUMAT_FUSION=always env --default-signal=INT '%s' " ..
            "-q --device cpu -e '%s' 2>&1"
        local pipe = io.popen(command:format(os.getenv "LUMAT", code .. last))
        local text = pipe:read "a"
        local _, _, exit = pipe:close()
        lu.assertStrContains(text, "lumat: interrupted", last)
        lu.assertEquals(exit, 130, last)
    end
end

function TestWaiting:test_settings()
    lu.assertEquals(settings().fusion, "always")
    raises(function() settings{fusion = "no"} end, '"on", "off" or "always"')
    lu.assertEquals(settings().compile, "on")
    raises(function() settings{compile = "no"} end, '"off", "on" or "always"')
    local a = x + 1
    fuse "off"
    lu.assertEquals(operations(function() return a * 2 - 1 end), "mul; sub")
    t.equals(a, {2, 5, 10})
end

-- A NaN that f32's arithmetic gives has another sign than f64's on a GPU, which is
-- written where a program has parts of both types, and not seen by what reads it.
function TestWaiting:test_signs_of_nan_are_not_seen()
    local a = vec({-1, -2.5, 4, 0, 1 / 0}, {dtype = "f32"})
    local wide = vec({3, -2, 0.0, 7, -1}, {dtype = "f64"})
    local odd = {
        function() return mod(sqrt(a), wide) end,
        function() return sqrt(a) % wide end,
        function() return a * (1 / 0) - a * (1 / 0) + wide end,
        function() return wide % reciprocal(a * 0) * 0 end,
        function() return -mod(a, wide * 0) end,
    }
    local seen = {
        function(x) return copysign(a, x) end,
        function(x) return copysign(wide, x) * 2 end,
        function(x) return signbit(x) end,
        function(x) return choose(signbit(-x), a, wide) end,
        function(x) return abs(copysign(x, -1)) + angle(x) end,
    }
    for i, f in ipairs(odd) do
        for k, g in ipairs(seen) do
            local function result(how, has_waited)
                fuse(how)
                local x = f()
                if has_waited then sync() end
                return bits(g(x))
            end
            local where = i .. ", " .. k
            local expected = result("off")
            lu.assertEquals(result("always", true), expected, where)
            lu.assertEquals(result("always", false), expected, where)
        end
        -- Nor does any other device or compiler.
        local x = f()
        t.equals(signbit(choose(isnan(x), x, 1)), {false, false, false, false, false})
    end
end

-- Parts of both types are one program, and have the bits of their own types:
-- sums that f64 does not round, a quotient that f32 rounds to 7 (0.7 / 0.1),
-- the ends of f32, -0 and constants that are none of f32's.
function TestWaiting:test_types_meet()
    local f32s = {0.1, 0.7, -0.0, 3e38, 1e-45, 16777216, -2.5, 0 / 0, 1 / 0, 0.3}
    local a, b = vec(f32s, {dtype = "f32"}), vec(f32s, {dtype = "f32"})
    local wide = vec({0.1, -3, 1e-300, 1e300, 1 / 3, 0.0, 7, 1, 0 / 0, 0.3}, {dtype = "f64"})
    local choose = choose
    b["-1:1:-1"] = vec(f32s, {dtype = "f32"})
    local works = {
        {"mul, add", function() return a * 3 + wide end},
        {"mul, sub, f64, add", function() return (a * 0.1 - b):f64() + wide end},
        {"idiv, mul", function() return (a // 0.1) % wide end},
        {"div, floor, mul", function() return floor(a / b) % wide end},
        {"mod, add", function() return mod(a, b) + wide end},
        {"sqrt, reciprocal, sub", function() return reciprocal(sqrt(a)) - wide end},
        {"square, neg, clip, add", function()
            return clip(-square(a), -1e30, 0.7) + wide
        end},
        {"gt, f32, mul", function() return a:gt(b):f32() % wide end},
        {"gt, f32, mul", function() return wide:gt(0.1):f32() % a end},
        {"f32, add", function() return wide:f32() + a end},
        {"f32, exp, mul", function() return exp(wide:f32()) * 0.1 end},
        {"exp, f64", function() return exp(a):f64() end},
        {"f32, f64", function() return (wide:f32()):f64() end},
        {"f32, f64, sub", function() return (wide:f32()):f64() - wide end},
        {"mul, f32, mul, f32, sub, add", function()
            return f32(wide * 3) - f32(wide * 0.7) + a
        end},
        {"gt, mul, where", function() return choose(wide:gt(0.1), a * 0.1, b) end},
        {"gt, gt, land", function() return a:gt(b) & wide:gt(0.1) end},
        {"add; exp, mul", function() return exp(a) * 2 + wide end},
        {"exp, where; gt", function() return choose(wide:gt(0.1), exp(a), b) end},
        {"angle, add", function() return angle(a) + wide end},
        {"sub, copysign", function() return copysign(wide, a - b) end},
        {"sqrt, mod, copysign", function() return copysign(b, mod(sqrt(a), wide)) end},
        -- truths are no f32: what f32 rounds to 0 is false
        {"gt; mul, f32, mul", function()
            local m = wide:gt(9)
            return mul(a, f32(wide * 1), {out = m})
        end},
        {"ne, any", function() return vec{any(wide:ne(0.3))} end},
        {"gt, sum", function() return vec{wide:gt(0.1):sum()} end},
        {"mul, f32, add, gt, f32; sum", function()
            return vec{(f32(wide * 0) + a):gt(-1):f32():sum()}
        end},
        {"copy; gt, mask", function() local c = a:clone() c[wide:gt(0.1)] = 0.1 return c end},
        {"copy; gt, mask", function() local c = wide:clone() c[a:gt(0.2)] = 0.1 return c end},
        {"copy; f32, copy", function() local c = wide:clone() c[":"] = f32(wide) return c end},
        {"copy; f32; gt", function()
            local c = wide:gt(9)
            c[":"] = f32(wide)
            return c
        end},
    }
    for i, work in ipairs(works) do
        local where = i .. ": " .. work[1]
        fuse "off"
        local expected = bits(work[2]())
        fuse "always"
        local actual
        local told = operations(function() actual = work[2]() sync() end)
        lu.assertEquals(bits(actual), expected, where)
        -- The number of a reduction goes there as a vector.
        lu.assertEquals((told:gsub("; upload$", "")), work[1], where)
    end
end

os.exit(lu.LuaUnit.run("-o", "tap", table.unpack(arg)))
