-- Distributed matrices against ordinary ones, over grids, blocks, shapes and
-- types; processes that are killed; what is refused.
local lu = require "luaunit"
local t = require "common"
local pools = require "pool.pools"
local types, start, random, whole = pools.types, pools.start, pools.random,
    pools.whole
local same, near = pools.same, pools.near
local here = {device = "cpu"}

local format = string.format

TestPool = {}

local function each_grid(name, f, blocks)
    pools.each_grid(TestPool, name, f, blocks)
end

-- There and back, of every shape; elements, blocks, lines.
each_grid("places", function(what)
    for _, shape in ipairs{{0, 0}, {0, 5}, {1, 1}, {5, 7}, {37, 40},
        {70, 3}} do
        local m, n = shape[1], shape[2]
        local A = whole(m, n, "f64", 1)
        local D = spread(A)
        same(D, A, what)
        lu.assertEquals({D.rows, D.cols, D.dtype}, {m, n, "f64"})
        if m > 2 and n > 2 then
            lu.assertEquals(D[{3, -1}], A[{3, -1}])
            lu.assertEquals(D(2, 2), A(2, 2))
            same(D[{{2, m}, {1, 2}}], A[{{2, m}, {1, 2}}], what)
            same(D[{{}, 2}], A[{{}, {2, 2}}], what)
            lu.assertTrue(D:row(2) == A[{{2, 2}, {}}])
            lu.assertTrue(D:col(-1) == A[{{}, {n, n}}])
        end
        same(D.T, A.T:clone(), what)
        same(D.T.T, A, what)
    end
end)

-- What a single device gives to the bit: exp, and normal numbers, are each
-- device's own.
local ONE = POOL_DEVICE == "gpu" and "cuda:0" or "cpu"

-- The same numbers as on one device, for every type.
each_grid("making", function(what)
    for _, dtype in ipairs(types) do
        local o = {dtype = dtype, seed = 5, device = "cpu"}
        local d = {dtype = dtype, seed = 5}
        local zero = {dtype = dtype, device = "cpu"}
        same(drand(41, 37, d), rand(41, 37, o), what)
        same(drandn(41, 37, d), randn(41, 37, {dtype = dtype, seed = 5,
            device = ONE}):to "cpu", what)
        same(deye(9, 14, {dtype = dtype}), eye(9, 14, zero), what)
        same(dzeros(3, 2, {dtype = dtype}), zeros(3, 2, zero), what)
    end
    same(drandn(10, {mean = 5, std = 2, seed = 1, dtype = "f64"}),
        randn(10, 10, {mean = 5, std = 2, seed = 1, dtype = "f64",
            device = ONE}):to "cpu", what)
    lu.assertErrorMsgContains("unknown option 'low'", drandn, 4, {low = 1})
    same(drand(10, {low = -2, high = 3, seed = 1, dtype = "f64"}),
        rand(10, 10, {low = -2, high = 3, seed = 1, dtype = "f64",
            device = "cpu"}), what)
end)

each_grid("elements", function(what)
    for _, dtype in ipairs(types) do
        local A, B = whole(20, 13, dtype, 1), whole(20, 13, dtype, 2) + 10
        local D, E = spread(A), spread(B)
        same(D + E, A + B, what)
        same(D - 2, A - 2, what)
        same(3 * D % E, 3 * A % B, what)
        same(-(D / E), -(A / B), what)
        same(D:abs(), A:abs(), what)
        same(D:eq(E), A:eq(B), what)
        same(A + E, A + B, what)
        local row, col = B[{{1, 1}, {}}], B[{{}, {2, 2}}]
        same(D + row, A + row, what)
        same(D % col, A % col, what)
        same(col - D, col - A, what)
        same(D.T + E.T, A.T + B.T, what)
    end
    local A = random(11, 9, "f64", 3)
    local D = spread(A)
    -- a GPU's exp, to the bit, is not the CPU's
    local there = A:to(ONE)
    same(D:exp() + 1, (there:exp() + 1):to("cpu"), what)
    same(D:gt(0), A:gt(0), what)
    same(D:f32(), A:f32(), what)
    same(sqrt(abs(D)), sqrt(abs(A)), what)
    lu.assertTrue(D == spread(A))
    lu.assertFalse(D == D + 1)
end)

each_grid("reductions", function(what)
    for _, dtype in ipairs(types) do
        local A = whole(23, 17, dtype, 1)
        local D = spread(A)
        lu.assertTrue(D:sum() == A:sum(), what)
        lu.assertTrue(D:sum(1) == A:sum(1), what)
        lu.assertTrue(D:sum(2) == A:sum(2), what)
        lu.assertTrue(D.T:sum(1) == A.T:sum(1), what)
        lu.assertAlmostEquals(D:norm(), A:norm(), 1e-4)
        lu.assertTrue(mean(D) == mean(A), what)
    end
    local A = random(23, 17, "f64", 1)
    local D = spread(A)
    for _, name in ipairs{"max", "min"} do
        lu.assertEquals(D[name](D), A[name](A), what)
        lu.assertTrue(D[name](D, 1) == A[name](A, 1), what)
        lu.assertTrue(D[name](D, 2) == A[name](A, 2), what)
    end
    lu.assertTrue(any(D:gt(0.4)) and not all(D:gt(0.4)))
    lu.assertTrue(D:gt(0):any(1) == A:gt(0):any(1))
    lu.assertAlmostEquals(D:std(), A:std(), 1e-14)
    lu.assertAlmostEquals(norm(D:var(1) - A:var(1)), 0, 1e-14)
    A[{2, 3}] = 0 / 0
    local largest = spread(A):max()
    lu.assertTrue(largest ~= largest)
    lu.assertEquals(dzeros(0, 3):sum(), 0.0)
    lu.assertErrorMsgContains("no elements", max, dzeros(0, 3))
end, {3})

-- Is x what one device gives, a number, a truth or a matrix of the same shape and
-- type, up to rounding?
local function is_near(x, y)
    if type(x) ~= "userdata" or type(y) ~= "userdata" then
        return x == y or x ~= x and y ~= y or type(x) == "number" and
            type(y) == "number" and math.abs(x - y) <= 1e-5 * (1 + math.abs(y))
    end
    if x.dtype ~= y.dtype or x.ndim ~= y.ndim or x.rows ~= y.rows or
        x.cols ~= y.cols then
        return false
    end
    x, y = x:f64(), y:f64()
    return all(lor(lor(x:eq(y), abs(x - y):le(1e-5 * (1 + abs(y)))),
        land(x:ne(x), y:ne(y))))
end

-- Every option of a reduction: what nobody uses would be a wrong number.
local function check_options(A, D, name, options, what)
    local x, y = D[name](D, options), _G[name](A, options)
    lu.assertTrue(is_near(x, y), format("%s %s %s: %s, %s", what, name,
        lu.prettystr(options), x, y))
end

each_grid("options of reductions", function(what)
    local kinds = {"sum", "prod", "max", "min", "any", "all", "mean", "var", "std"}
    for _, shape in ipairs{{7, 5}, {1, 6}, {6, 1}, {1, 1}} do
        local A = random(shape[1], shape[2], "f64", 1)
        A[A:gt(0.5)] = 0 / 0
        A[{{}, 1}] = 0 / 0
        local D = spread(A)
        for _, name in ipairs(kinds) do
            local spreads = (name == "var" or name == "std") and {0, 1, 2.5} or {false}
            for _, ddof in ipairs(spreads) do
                for axis = 0, 2 do
                    local o = {nan = "skip", axis = axis > 0 and axis or nil,
                        ddof = ddof or nil}
                    check_options(A, D, name, o, what)
                    if axis > 0 then
                        o.keepdims = false
                        check_options(A, D, name, o, what)
                        check_options(A.T, D.T, name, o, what)
                    end
                end
            end
        end
        local masks = {A:gt(0), D:gt(0)}
        for axis = 1, 2 do
            check_options(masks[1], masks[2], "sum", {axis = axis}, what)
            check_options(A, D, "argmax", {axis = axis, keepdims = false}, what)
        end
    end
    local A = random(9, 7, "f64", 2)
    local D = spread(A)
    for _, p in ipairs{1, 2, "inf", "fro", "nuc", math.huge} do
        lu.assertTrue(is_near(norm(D, p), norm(A, p)), what .. " " .. p)
    end
    for _, p in ipairs{1, 2, 3, 0.5, "inf"} do
        for axis = 1, 2 do
            lu.assertTrue(is_near(D:norm(p, {axis = axis}), A:norm(p, {axis = axis})),
                what .. " " .. p)
        end
    end
    local far = mat({{1e200, 1e200}}, {dtype = "f64", device = "cpu"})
    lu.assertTrue(is_near(spread(far):norm{axis = 2}, far:norm{axis = 2}))
    lu.assertEquals(spread(far):norm{axis = 2, keepdims = false}.ndim, 1)
end, {2})

each_grid("products", function(what)
    for _, dtype in ipairs(types) do
        local A, B = whole(31, 20, dtype, 1), whole(20, 27, dtype, 2)
        same(spread(A) * spread(B), A * B, what)
        same(spread(A).T * spread(A), A.T * A, what)
        same(spread(B).H.H * B.T, B * B.T, what)
        same(A * spread(B), A * B, what)
        local x = whole(20, 1, dtype, 3):reshape(20)
        lu.assertTrue(spread(A) * x == A * x, what)
        lu.assertTrue(x * spread(B) == x * B, what)
        local C, D = random(31, 20, dtype, 4), random(20, 27, dtype, 5)
        near((spread(C) * spread(D)):gather(), C * D, 20, what)
    end
    same(dzeros(3, 0) * dzeros(0, 2), zeros(3, 2, here), what)
    local S = whole(6, 6, "f64", 1)
    same(spread(S) ^ 3, S ^ 3, what)
    lu.assertErrorMsgContains("inner dimensions differ (3 and 4)",
        function() return dzeros(2, 3) * dzeros(4, 2) end)
end)

-- As those of the matrix here, by logarithms.
local function check_determinants(D, F, A, allowed, what)
    for _, found in ipairs{{{F:logdet()}, A}, {{logdet(D)}, A},
        {{chol(D * D.H + D.rows * deye(D.rows, {dtype = D.dtype})):logdet()},
            A * A.H + D.rows * eye(D.rows, {dtype = D.dtype, device = "cpu"})}} do
        local got, size, sign = found[1], logdet(found[2])
        lu.assertTrue(abs(got[1] - size) <= allowed * (1 + abs(size)) *
            cond(found[2]), what)
        lu.assertTrue(abs(got[2] - sign) <= allowed * cond(found[2]), what)
        local whole = det(found[2])
        if abs(whole) > 0 and abs(whole) < math.huge then
            lu.assertTrue(abs(det(found[2] == A and D or spread(found[2])) - whole) <=
                allowed * abs(whole) * cond(found[2]), what)
        end
    end
end

-- LAPACK's ratios of residuals, of n x n.
local function check_square(n, dtype, what)
    local A = random(n, n, dtype, 1)
    local D, size = spread(A), A:norm()
    local b = random(n, 3, dtype, 2)
    local allowed = 16 * n * t.unit[dtype]
    local x = solve(D, b)
    lu.assertTrue(norm(A * x - b) <= allowed * (size * norm(x)), what)
    local F = D:lu()
    lu.assertTrue(norm((F.L * F.U):gather() - A[{F.p, {}}]) <= allowed * size, what)
    check_determinants(D, F, A, allowed, what)
    local y = F:solve(b[{{}, 1}]:reshape(n))
    lu.assertEquals(y.ndim, 1)
    local S = D * D.H + n * deye(n, {dtype = dtype})
    local L = chol(S).L
    lu.assertTrue((L * L.H - S):norm() <= allowed * S:norm(), what)
    local w, V = (D + D.H):eigh():unpack()
    lu.assertTrue(((D + D.H) * V - V % w:row()):norm() <= allowed * size, what)
    lu.assertTrue((V.H * V - deye(n, {dtype = dtype})):norm() <= allowed, what)
end

local function check_qr(m, n, dtype, what)
    local D, k = spread(random(m, n, dtype, 4)), math.min(m, n)
    local Q, R = D:qr():unpack()
    local allowed = 16 * math.max(m, n) * t.unit[dtype]
    lu.assertEquals({Q.shape, R.shape}, {{m, k}, {k, n}})
    lu.assertTrue((Q * R - D):norm() <= allowed * D:norm(), what)
    lu.assertTrue((Q.H * Q - deye(k, {dtype = dtype})):norm() <= allowed, what)
end

each_grid("factors", function(what)
    for _, dtype in ipairs(types) do
        for _, n in ipairs(pools.are_all and {1, 5, 37, 200} or {45}) do
            check_square(n, dtype, what .. " " .. n)
        end
        for _, shape in ipairs(pools.are_all and
            {{45, 45}, {200, 37}, {37, 200}, {5, 1}, {1, 5}} or
            {{70, 45}, {30, 47}}) do
            check_qr(shape[1], shape[2], dtype, what)
        end
    end
    -- values whose squares are none
    local w = spread(1e300 * eye(3, {dtype = "f64", device = "cpu"})):eigh().values
    lu.assertTrue(abs(w / 1e300 - 1):max() <= 1e-14)
    lu.assertEquals(#dzeros(0):eigh().values, 0)
    local A = random(40, 25, "f64", 3)
    local U, s, V = spread(A):svd():unpack()
    lu.assertTrue(((U % s:row()) * V.T - spread(A)):norm() <= 1e-12, what)
    lu.assertAlmostEquals(norm(s - svdvals(A)), 0, 1e-12)
    for _, shape in ipairs{{1, 2}, {2, 1}, {2, 2}, {1, 1}, {9, 1}, {2, 11}, {0, 3}} do
        for _, dtype in ipairs{"f32", "f64"} do
            A = random(shape[1], shape[2], dtype, 3)
            U, s, V = spread(A):svd():unpack()
            lu.assertTrue(((U % s:row()) * V.T - spread(A)):norm() <=
                16 * t.unit[dtype] * A:norm(), what)
            lu.assertEquals(#s, math.min(shape[1], shape[2]))
        end
    end
    lu.assertErrorMsgContains("pivot 1 is 0", solve, dzeros(4),
        ones(4, here))
    lu.assertErrorMsgContains("order 3", chol, spread(diag(vec{1, 1, -1})))
end, {3, 37})

-- What one device refuses to factor, in the same words.
each_grid("odd_matrices", function(what)
    local A = random(11, 11, "f64", 1)
    local S = A + A.T
    local wrong = S:clone()
    wrong[{9, 2}] = wrong(9, 2) + 1e-9
    for _, value in ipairs{0 / 0, 1 / 0} do
        A[{8, 3}], A[{8, 5}], A[{10, 1}] = value, value, value
        for _, f in ipairs{_G.lu, qr, svd} do
            local _, own = pcall(f, A)
            local ok, message = pcall(f, spread(A))
            lu.assertFalse(ok, what)
            lu.assertStrContains(message, own:match "A%[.*$")
        end
        lu.assertNaN(det(A), what)
        lu.assertNaN(det(spread(A)), what)
        lu.assertErrorMsgContains("logdet: A[{8, 3}] is", logdet, spread(A))
        lu.assertErrorMsgContains("solve: A[{8, 3}] is", solve, spread(A), A)
    end
    for _, f in ipairs{chol, eigh} do
        local _, own = pcall(f, wrong)
        lu.assertErrorMsgContains(own:match "the matrix is not symmetric.*differ",
            f, spread(wrong))
    end
    lu.assertErrorMsgContains("not Hermitian", eigh, spread(complex(S, S)))
end, {3, 37})

-- Where each process has whole columns, in blocks of one or several panels (with
-- LUMAT_PANEL=5 of as many, see gpu_pools.t; in one process of 30), factors lie
-- where the matrix does.
function TestPool.test_panels_that_lie_there()
    for _, case in ipairs{{3, 5}, {2, 10}, {1, 30}, {1, 60}} do
        local what, n = start(1, case[1], case[2]), case[1] == 2 and 80 or 60
        for _, dtype in ipairs(types) do
            check_square(n, dtype, what)
            check_qr(n + 12, n, dtype, what)
            check_qr(30, n, dtype, what)
        end
        lu.assertErrorMsgContains("order 3", chol, spread(diag(vec{1, 1, -1})))
    end
end

-- Beside a matrix that is not distributed, whatever blocks they have.
each_grid("beside_matrices", function(what)
    local A, B = random(23, 17, "f64", 1), random(23, 17, "f64", 2)
    for _, block in ipairs{1, 2, 5, 23} do
        local D = spread(A, {block = block})
        same(D - B, A - B, what .. block)
        same(B % D, B % A, what .. block)
        same(D:lt(B), A:lt(B), what .. block)
        -- of blocks that are not square
        local E = spread(eye(23, here), {block = block}) * spread(A, {block = 3})
        near((E - B):gather(), A - B, 23, what .. block)
        E[E:lt(0)] = 0
        near(E:gather(), where(A:lt(0), 0, A), 23, what .. block)
        near(vcat(E, B):gather(), vcat(where(A:lt(0), 0, A), B), 23, what .. block)
    end
end)

-- Blocks that are not square, as products of matrices in different ones have them.
function TestPool.test_factors_of_wide_blocks()
    for _, grid in ipairs{{1, 1}, {2, 1}, {1, 2}} do
        local what = start(grid[1], grid[2], 4)
        local A = random(9, 9, "f64", 1)
        local S = A * A.T + 9 * eye(9, here)
        local function wide(B)
            return spread(eye(9, {dtype = "f64", device = "cpu"}), {block = 2}) *
                spread(B, {block = 4})
        end
        local b = random(9, 2, "f64", 2)
        lu.assertTrue((chol(wide(S)).L * chol(wide(S)).L.T - S):norm() < 1e-12, what)
        lu.assertTrue(norm(S * chol(wide(S)):solve(b) - b) < 1e-12, what)
        lu.assertTrue(norm(A * solve(wide(A), wide(A) * b) - A * b) < 1e-10, what)
        lu.assertAlmostEquals(det(wide(A)), det(A), 1e-10)
        local Q, R = wide(A):qr():unpack()
        lu.assertTrue((Q * R - A):norm() < 1e-12, what)
    end
end

-- The same bits every time.
function TestPool.test_repeats()
    start(2, 2, 16)
    local D, E = drandn(70, 50, {seed = 1}), drandn(50, 60, {seed = 2})
    local first, total = (D * E):gather(), (D * E):sum()
    local places = vec{9, 70, 2}
    local running, x = cumsum(D):gather(), D[places]:gather()
    for _ = 1, pools.are_all and 100 or 20 do
        lu.assertTrue((D * E):gather() == first)
        lu.assertEquals((D * E):sum(), total)
        lu.assertTrue(cumsum(D):gather() == running)
        lu.assertTrue(D[places]:gather() == x)
    end
end

-- Parts of 2 MiB, there and back at once, though who receives them sleeps when
-- they are sent.
function TestPool.test_long_messages()
    start(2, 2, 16)
    local A = randn(1000, 1000, {dtype = "f64", seed = 1, device = "cpu"})
    local least = math.huge
    for _ = 1, 4 do
        os.execute("sleep 0.01")
        local began = clock()
        local D = spread(A)
        lu.assertTrue(D:gather() == A)
        least = math.min(least, clock() - began)
    end
    lu.assertTrue(least < 0.7, least) -- one that is not woken sleeps a second
end

-- What is no longer named does not stay.
function TestPool.test_garbage()
    start(1, 2, 16)
    local D = dzeros(100)
    for _ = 1, 200 do D = D + 1 end
    collectgarbage()
    collectgarbage()
    local _ = D:sum()
    lu.assertStrContains(pool.info(), "in 1 part")
end

-- Nor does it stay until somebody collects: 80 of 8 MiB.
function TestPool.test_garbage_is_found_while_work_goes_on()
    start(1, 2, 16)
    local A, p = zeros(1024, 1024, {dtype = "f64"}), require "lumat.pool".running "test"
    for _, make in ipairs{function() return spread(A) end,
        function() return drand(1024, {dtype = "f64"}) end} do
        for _ = 1, 80 do make() end
        local there = 0
        for _ in pairs(p.by_id) do there = there + 1 end
        lu.assertTrue(there < 60, there)
    end
end

-- A matrix of which the last name goes while a command is put together, here its
-- transpose, serves that command.
function TestPool.test_dying()
    start(1, 2, 16)
    local A = whole(9, 7, "f64", 1)
    local D = spread(A)
    local module = require "lumat.pool"
    local tell = module.tell
    module.tell = function(...)
        collectgarbage()
        return tell(...)
    end
    local ok, E = pcall(function() return D.T[{{1, 5}, {}}] end)
    module.tell = tell
    lu.assertTrue(ok, tostring(E))
    lu.assertTrue(E:gather() == A.T[{{1, 5}, {}}])
end

-- A command that ends before all have answered leaves no answers behind, which
-- the next one would take for its own.
function TestPool.test_no_stale_answers()
    start(2, 2, 16)
    local module = require "lumat.pool"
    local p = module.running "test"
    local function refuse() error "not now" end
    for _ = 1, 3 do
        lu.assertErrorMsgContains("not now", module.tell_with, p, "test", nil,
            refuse, "memory")
        for _, found in ipairs(module.tell(p, "test", "host")) do
            lu.assertIsString(found.name)
        end
        lu.assertErrorMsgContains("not now", module.tell_with, p, "test",
            function(number) return number == 2 and refuse() or nil end, nil,
            "memory")
        for _, found in ipairs(module.tell(p, "test", "host")) do
            lu.assertIsString(found.name)
        end
    end
    lu.assertEquals(drand(40, {seed = 1}):sum() > 0, true)
end

-- A right product is accepted, one that is off in one element is not.
function TestPool.test_verify()
    pools.start(2, 2, 16)
    for _, dtype in ipairs(types) do
        local D, E = drandn(50, 40, {dtype = dtype}), drandn(40, 30, {dtype = dtype})
        local C = D * E
        lu.assertTrue(verify(C, D, E).accept, dtype)
        local A = C:gather()
        A[{7, 9}] = 1e4
        lu.assertFalse(verify(spread(A), D, E).accept, dtype)
        local G = drandn(50, 30, {dtype = dtype})
        lu.assertTrue(verify(D.H * G, D.H, G).accept, dtype)
        lu.assertTrue(verify((E.T * D.T).T, D, E).accept, dtype)
        lu.assertTrue(verify(spread((D * E):gather(), {block = 2}), D, E).accept, dtype)
        lu.assertFalse(verify(D.H * G, D.T + 1, G).accept, dtype)
    end
    lu.assertErrorMsgContains("C is 4x4, A 4x3 and B 4x4", verify, drand(4),
        drand(4, 3), drand(4))
    lu.assertErrorMsgContains("bound= alone", verify, drand(4), drand(4), drand(4),
        {kernel = "auto"})
end

-- The kernels of this program, where it computes.
function TestPool.test_kernel()
    pools.start(2, 2, 16)
    local D = spread(whole(20, 20, "f32", 1))
    if POOL_LAUNCHER == "local" then
        lu.assertTrue(matmul(D, D, {kernel = "auto"}) == D * D)
        lu.assertErrorMsgContains("nonesuch", matmul, D, D, {kernel = "nonesuch"})
    else
        lu.assertTrue(matmul(D, D, {kernel = "auto"}) == D * D)
        lu.assertTrue(matmul(D, D, {kernel = "scalapack"}) == D * D)
        lu.assertErrorMsgContains("p?gemm", matmul, D, D, {kernel = "packed"})
    end
    lu.assertErrorMsgContains("kernel= alone", matmul, D, D, {alpha = 2})
end

-- Each kernel that can be taken is, and is right; those that are listed are those
-- that race.
function TestPool.test_race()
    local grid = pools.start(2, 2, 16):match "%d+x%d+"
    for _, dtype in ipairs(types) do
        local D, E = drandn(50, 40, {dtype = dtype}), drandn(30, 40, {dtype = dtype})
        local list = kernels(D, E.T)
        lu.assertStrContains(tostring(list), "matmul 50x40 by 40x30, " .. dtype ..
            " on a pool of " .. grid)
        lu.assertStrContains(tostring(list), "\n* " .. list.choice)
        local rows = race(D, E.T, {seconds = 1e-3})
        local names, seen = {}, {}
        for _, k in ipairs(list) do
            if k.available and k[dtype] then names[#names + 1] = k.name end
        end
        lu.assertEquals(#rows, #names)
        for i, row in ipairs(rows) do
            if POOL_DEVICE == "gpu" and row.why then -- some of a GPU's are for few shapes
                local why = "kernel " .. row.name .. " "
                lu.assertNotNil(row.why:find(why .. "cannot do ", 1, true) or
                    row.why:find(why .. "takes whole blocks", 1, true), row.why)
                lu.assertNotEquals(row.name, list.choice)
            else
                lu.assertTrue(row.accept, row.name .. ": " .. tostring(row.why or
                    row.verdict))
                lu.assertTrue(row.time > 0 and row.share > 0 and row.gflops > 0)
                lu.assertEquals(row.peak, t.unit[dtype] < 1e-10 and "f64" or "f32")
            end
            lu.assertTrue(i == 1 or row.time >= rows[i - 1].time)
            seen[row.name] = true
        end
        for _, name in ipairs(names) do lu.assertTrue(seen[name], name) end
        if POOL_LAUNCHER ~= "local" then
            lu.assertEquals(names, {"scalapack"})
        elseif dtype == "f32" then
            lu.assertTrue(#names >= (POOL_DEVICE == "gpu" and 1 or 3), #names)
        end
    end
    local X = drand(40)
    for _, operation in ipairs{"lu", "chol", "qr"} do
        local row = race(X * X.T + deye(40), operation, {seconds = 1e-3})[1]
        lu.assertTrue(row.accept, operation)
        lu.assertTrue(row.error < 30 and row.time > 0)
    end
    lu.assertStrContains(tostring(race(dzeros(3), "chol", {seconds = 1e-3})),
        "cannot: the matrix is not positive definite")
    lu.assertErrorMsgContains("inner dimensions differ (3 and 4)", race, dzeros(3),
        dzeros(4))
    lu.assertErrorMsgContains("\"svd\" is no operation", race, dzeros(3), "svd")
    local D = dzeros(3)
    lu.assertErrorMsgContains("seconds= alone", D.race, D, D, {kernel = "auto"})
    lu.assertErrorMsgContains("seconds is 0", D.race, D, D, {seconds = 0})
    lu.assertErrorMsgContains("B is nil", kernels, dzeros(3))
end

-- A product by a kernel that is wrong does not pass: the processes' multiply, of
-- which the race is told, is that of another matrix.
function TestPool.test_race_finds_errors()
    pools.start(1, 2, 16)
    local module = require "lumat.pool"
    local tell = module.tell
    local D, wrong = drandn(40), drandn(40)
    module.tell = function(p, what, name, id, a, ...)
        if name == "multiply" and what == "race" then
            wrong:sum() -- it lives until then
            a = a + 1
        end
        return tell(p, what, name, id, a, ...)
    end
    local ok, rows = pcall(race, D, D, {seconds = 1e-3})
    module.tell = tell
    lu.assertTrue(ok, tostring(rows))
    lu.assertFalse(rows[1].accept)
    lu.assertStrContains(tostring(rows), "FAILS")
end

-- One is killed: an error, the prompt's own matrices, another pool.
function TestPool.test_killed()
    local _, count = start(2, 2, 16)
    local D, A = drand(40), rand(5)
    local pids = pools.pids()
    lu.assertEquals(#pids, count)
    os.execute("kill -9 " .. pids[#pids])
    lu.assertErrorMsgMatches(".*process %d of " .. count .. " on %g+ ended by " ..
        "signal 9 %(Killed%).*pool%.restart%(%).*", function()
        for _ = 1, 1000 do D:sum() end
    end)
    lu.assertErrorMsgContains("pool.restart()", D.sum, D)
    lu.assertStrContains(tostring(D), "lost")
    lu.assertTrue(A:sum() > 0)
    pool.restart()
    lu.assertTrue(drand(40):sum() > 0)
end

-- One fails where the others do not hear of it, and they wait for it: that is one
-- error, within seconds, and a pool like it goes on.
function TestPool.test_failed_alone()
    if POOL_LAUNCHER == "local" then return end -- it takes the seconds of a stop
    start(2, 2, 16)
    local D = drand(40)
    local text = require "lumat.pool_text"
    local call, began = text.call, clock()
    text.call = function(...)
        local said = call(...)
        return function(number) return number == 3 and "nonesuch()" or said end
    end
    local ok, message = pcall(function() return D * D end)
    text.call = call
    lu.assertFalse(ok)
    lu.assertStrMatches(message, ".*nonesuch.*waited for the one that failed.*" ..
        "pool%.restart%(%).*")
    lu.assertTrue(clock() - began < 20)
    pool.restart()
    lu.assertTrue(drand(40):sum() > 0)
end

-- Their parts by name, and all of them.
function TestPool.test_fields_of_factors()
    start(2, 1, 2)
    local A = random(6, 4, "f64", 1)
    local F = spread(A):svd()
    lu.assertEquals(tostring(F), "svd of a distributed 6x4 matrix")
    local U, s, V = F:unpack()
    near(((U % s:row()) * V.T):gather(), A, 4, "svd")
    F.S[1] = 7
    lu.assertNotEquals(F.S[1], 7)
    near((qr(spread(A)).Q * qr(spread(A)).R):gather(), A, 4, "qr")
    local S = A.T * A
    local L = chol(spread(S)):unpack()
    near((L * L.T):gather(), S, 4, "chol")
    local lower, upper, p = spread(S):lu():unpack()
    near((lower * upper):gather(), S[p], 4, "lu")
    lu.assertTrue(is_near(eigh(spread(S)).values, eigh(S).values))
    same(spread(A):clone(), A, "clone")
    same(spread(A) // 0.3, A // 0.3, "//")
end

function TestPool.test_refused()
    pool.close()
    for text, code in pairs{
        ["there is no pool"] = "drand(3)",
        ["ranks is 0"] = "pool{ranks = 0}",
        ["a grid of 3x1 has 3 processes, and ranks is 4"] =
            "pool{ranks = 4, grid = {3, 1}}",
        ["block is 0"] = "pool{block = 0}",
    } do
        lu.assertErrorMsgContains(text, load(code))
    end
    start(1, 2, 8)
    local D = drand(4, 3)
    for text, f in pairs{
        ["shapes differ: 4x3 and 3x4"] = function() return D + drand(3, 4) end,
        ["v:row() or v:col()"] = function() return D + vec{1, 2, 3} end,
        ["4x3 is not square"] = function() return solve(D, vec{1, 2, 3, 4}) end,
        ["row 5 is outside 1..4"] = function() return D[{5, 1}] end,
        ["dzeros: block is 5000, expected 1 to 4096"] = function()
            return dzeros(3, {block = 5000})
        end,
        ["spread: block is 1073741824, expected"] = function()
            return spread(ones(3), {block = 1 << 30})
        end,
        ["there is no \"median\""] = function() return D:median() end,
        ["sum: of distributed matrices takes axis= nan= keepdims=, not \"foo\""] =
            function() return D:sum{foo = 1} end,
        ["the axis is given twice: write D:sum{axis = 2}"] = function()
            return D:sum(1, {axis = 2})
        end,
        ["keepdims is of a reduction along an axis"] = function()
            return D:mean{keepdims = false}
        end,
        ["nan is \"drop\", expected \"skip\" or \"keep\""] = function()
            return D:max{nan = "drop"}
        end,
        ["ddof is -1, expected a number from 0 on"] = function()
            return D:var{ddof = -1}
        end,
        ["cumsum: of distributed matrices takes axis= alone"] = function()
            return D:cumsum{nan = "skip"}
        end,
        ["of a matrix p is 1, 2, \"inf\", \"fro\" or \"nuc\", not 3"] = function()
            return norm(D, 3)
        end,
        ["svd: D:svd takes no arguments, not a table"] = function()
            return D:svd{full = true}
        end,
        ["solve: F:solve takes 1 argument, not 2"] = function()
            return D[{{1, 3}, {}}]:lu():solve(ones(3), 2)
        end,
        ["D[mask] of a distributed matrix is not there"] = function()
            return D[D:lt(0.5)]
        end,
        ["there is no \"S\": this distributed factorisation has Q, R and"] = function()
            return D:qr().S
        end,
    } do
        lu.assertErrorMsgContains(text, f)
    end
    pool.close()
    lu.assertErrorMsgContains("closed", D.sum, D)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
