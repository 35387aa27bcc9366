-- Costs without running: what is counted is what the same work counts when it
-- is done, and nothing of the caller's changes.
local lu = require "luaunit"
local t = require "common"
local raises = t.raises

settings{fusion = "off"} -- it is single operations that are counted

-- Flops and bytes of f as the profile has them, and what it allocated.
local function done(f)
    profile("reset")
    profile("on")
    local allocated = timing(f).allocated
    profile("off")
    local flops, bytes = 0, 0
    for _, r in ipairs(profile().operations) do
        if r.kernel ~= "bus" then
            flops, bytes = flops + r.flops, bytes + r.bytes
        end
    end
    profile("reset")
    return flops, bytes, allocated
end

TestCost = {}

function TestCost:tearDown() settings{fusion = "off"} end

local A, B = t.uniform(30, 20, "f32", 1), t.uniform(20, 40, "f32", 2)
local v, w = rand(20, {seed = 3}), rand(30, {seed = 4})
local D, p = t.uniform(20, 20, "f64", 5), vec{2, 3}
local q = vec{3, 1, 3}

-- name, work; flops and bytes agree exactly
local works = {
    {"product", function() return A * B end},
    {"matrix and vector", function() return A * v end},
    {"vector and matrix", function() return w * A end},
    {"dot", function() return v * v end},
    {"transposed", function() return A.T * A end},
    {"options", function() return matmul(A, B, {transA = false}) end},
    {"a number", function() return 2 * A end},
    {"element by element", function() return sqrt(A:abs()) % A - A / 3 end},
    {"broadcast", function() return A + A[{1, {}}]:row() end},
    {"tests", function() return A:gt(0) & A:lt(1) end},
    {"where", function() return where(A:gt(0), A, 0) end},
    {"f64", function() return D * D + 1 end},
    {"power", function() return D ^ 5 end},
    {"views", function() return A["1:10, :"] * B[{{}, {1, 5}}] end},
    {"rows", function() return A[2] + A[3] end},
    {"lists", function()
        local M = A[q]
        M[{p, {1, 2}}] = A[{p, p}]
        M[p] = 1
        local s = A[{5, p}] + A[{{1, 3}, 2}]:take(p)
        return M + A[{p, {}}]["1:1, :"]
    end},
    {"a row and a column", function() return A - A:row(2) + A:col(-1) end},
    {"digits", function() return round(A, 2) + round(A, -2) end},
    {"a base", function() return log(A, 3) + log(A, 10) + log(A, A) end},
    {"of two", function() return atan(A, 2) + atan(1, A) end},
    {"sort", function() return sort(A) + sort(A, 2) end},
    {"argsort", function() return argsort(A, {axis = 2}) end},
    {"sort and places", function() return sort(A, {places = true}) end},
    {"options", function() return A - max(A, {axis = 1}) end},
    {"into", function() return add(A, A, {out = A:clone()}) end},
}

-- Of complex matrices four times as much is computed.
function TestCost:test_factors_of_complex_matrices()
    local C, D = A:c128(), A:f64()
    local real = cost(function() return svd(D).S end)
    local other = cost(function() return svd(C).S end)
    lu.assertEquals(other.flops, 4 * real.flops)
    lu.assertTrue(other.seconds > real.seconds)
    local S = C * C.H
    local c = cost(function() return solve(S, C), det(S), inv(S), rcond(S) end)
    lu.assertTrue(c.flops > 0)
end

-- Also where what is done next looks at numbers that nobody has then.
function TestCost:test_methods_of_factors()
    local M = A[{{1, 20}, {}}]:f64()
    local C, S, b = M:c128(), M * M.T + eye(20), M[{{}, {1, 2}}]
    for name, F in pairs{lu = _G.lu, qr = qr, chol = chol, ldl = ldl, eigh = eigh} do
        for _, method in ipairs{"solve", "det", "logdet", "rcond"} do
            local f = function()
                local F = F(S)
                return F[method](F, method == "solve" and b or nil)
            end
            lu.assertTrue(cost(f).flops > 0, name .. ":" .. method)
        end
    end
    for name, f in pairs{
        vectors = function() return eig(M).vectors end,
        pair = function() return eig(M, S).vectors end,
        det = function() return eig(M):det(), eig(C):det() end,
        logdet = function() return logdet(M) end,
        complex = function() return _G.lu(C):det() end,
        qr = function() return qr(M):solve(b), lstsq(M, b) end,
        svd = function() return svd(M):solve(b), svd(M):rank() end} do
        lu.assertTrue(cost(f).flops > 0, name)
    end
end

local function check_works(works)
    for _, work in ipairs(works) do
        local name, f = work[1], work[2]
        local flops, bytes, allocated = done(f)
        local c = cost(f)
        lu.assertEquals(c.flops, flops, name .. ": flops")
        lu.assertEquals(c.bytes, bytes, name .. ": bytes")
        lu.assertEquals(c.allocated, allocated, name .. ": allocated")
        lu.assertTrue(c.seconds > 0, name)
    end
end

function TestCost:test_is_what_is_done() check_works(works) end

-- Of what runs in one pass, too.
function TestCost:test_is_what_is_done_in_passes()
    settings{fusion = "always"}
    check_works(works)
    check_works{
        {"a chain", function() return sqrt(sin(A) % A + 2) - A / 3 end},
        {"a sum", function() return ((A - 1) % (A - 1)):sum() end},
        {"sums of rows", function() return (A % A):sum(2) end},
        {"two results", function()
            local s = A + 1
            return s + 1, s % 2
        end},
        {"a step often", function()
            local x = A
            for _ = 1, 100 do x = x % A + 1 end
            return x
        end},
        {"what goes unseen", function() for _ = 1, 7 do local _ = A + 1 end end},
        {"in place", function()
            local x = A:clone()
            x[x:gt(0.5)] = 0
            x:add_(A)
        end},
        {"random numbers", function() return rand(30, 20) % A - 1 end},
        {"several types", function() return (A:f64() + 1):f32() % A end},
        {"into a product", function() return (A + 1) * (B - 1) + 1 end},
    }
    local c = cost(function() return sqrt(sin(A) % A + 2) - A / 3 end)
    lu.assertEquals(#c.operations, 1)
    lu.assertEquals(c.bytes, 2 * 30 * 20 * 4)
end

-- The work is the same in one pass and in several: nobody wrote the roundings
-- between two types, and what is reduced has been computed.
function TestCost:test_passes_do_the_same_work()
    local wide = A:f64()
    for name, f in pairs{
        ["two types"] = function() return A * 2 - A + wide end,
        ["a sum"] = function() return ((A - 1) % (A - 1)):sum() end,
        ["sums of rows"] = function() return sqrt(abs(A - wide)):sum(2) end,
        ["is there any"] = function() return any((A * 2):gt(1)) end,
        ["a deviation"] = function() return std(A * 2) end,
    } do
        settings{fusion = "off"}
        local flops, passes = done(f), #cost(f).operations
        settings{fusion = "always"}
        lu.assertEquals(done(f), flops, name)
        lu.assertEquals(cost(f).flops, flops, name)
        lu.assertTrue(#cost(f).operations < passes, name)
    end
end

-- What waits before is there when it is looked at, and what waits within never
-- is, whether the function ends or fails.
function TestCost:test_what_waits()
    settings{fusion = "always"}
    local before = A + 1
    lu.assertEquals(#cost(function() return before % 2 end).operations, 1)
    lu.assertEquals(before, A + 1)
    local kept = {}
    raises(function()
        cost(function()
            rawset(kept, 1, A + 2)
            error "it failed"
        end)
    end, "it failed")
    sync()
    lu.assertEquals(A + 3, A + 1 + 2)
end

function TestCost:test_names_the_kernel_auto_takes()
    local c = cost(function() return A * B end)
    lu.assertEquals(c.operations[1].kernel, kernel_choice(A, B))
    c = cost(function() return v * v end)
    lu.assertEquals(c.operations[1].kernel, kernel_choice(v, v))
end

function TestCost:test_matrices_that_do_not_fit_anywhere()
    local c = cost(function()
        local X = zeros(1000000, 1000000)
        return X * X
    end)
    lu.assertEquals(c.flops, 2e18)
    lu.assertStrContains(tostring(c), "does not fit")
end

-- What nothing refers to any more is not held at once.
function TestCost:test_peak()
    local c = cost(function()
        local x = zeros(1000)
        for _ = 1, 50 do x = x + 1 end
        return x
    end)
    lu.assertEquals(c.allocated, 51 * 4000)
    lu.assertTrue(c.peak >= 8000 and c.peak <= 16000, c.peak)
end

function TestCost:test_nothing_is_touched()
    local n, list, M = 0, {1}, A:clone()
    counter, store = 0, {A}
    local function helper(x)
        n = n + 1
        counter = counter + 1
        list[2] = n
        store.new = x
        M[{1, 1}] = 77
        M:add_(1)
        return x * 2
    end
    lu.assertTrue(cost(function() return helper(A) + store[1] end).flops > 0)
    lu.assertEquals({n, counter, #list, store.new}, {0, 0, 1, nil})
    lu.assertTrue(M == A)
    lu.assertEquals(helper(A):sum(), 2 * A:sum()) -- and all is as before
    lu.assertEquals({n, counter}, {1, 1})
    counter, store = nil, nil
end

function TestCost:test_all_is_put_back_after_an_error()
    local M = A
    local f = function() return M * M end
    raises(function() cost(f) end, "cost: matmul: inner dimensions differ")
    lu.assertTrue(rawequal(M, A))
    raises(f, "inner dimensions differ (20 and 30)")
end

function TestCost:test_functions_of_functions()
    local function square(X) return X * X end
    local function twice(f, X) return f(f(X)) end
    lu.assertEquals(cost(function() return twice(square, D) end).flops,
        2 * 2 * 20 ^ 3)
    local lm = require "lumat"
    lu.assertEquals(cost(function() return lm.matmul(D, D) end).flops, 16000)
end

function TestCost:test_numbers_that_are_not_known()
    local c = cost(function()
        local n = A:norm()
        local s = math.sqrt(n * 2 + 1)
        return A / s, A * n, -n
    end)
    -- what a norm takes, and the quotient and the product
    local names = {}
    for _, o in ipairs(c.operations) do names[o.operation] = true end
    lu.assertEquals(names, {norm = true, div = true, mul = true})
    c = cost(function()
        local i, j = A:argmax()
        local x = max(A(1, 2), A:totable()[1][2], 3)
        return A[i], A[{i, j}] * B, x .. "", type(x), vec{x, 1}, full(2, x)
    end)
    lu.assertEquals(c.operations[1].operation, "argmax")
    raises(function()
        cost(function() return A:totable()[1][1] < 1 end)
    end, "depends on elements (an element)")
    raises(function() cost(function() return string.rep("x", A:sum()) end) end,
        "number that depends on elements")
    raises(function()
        cost(function() if A:sum() > 0 then return A end end)
    end, "cost: what is done depends on elements (sum)")
    raises(function() cost(function() return A == A:clone() end) end, "depends on")
    raises(function() cost(function() return zeros(A:sum()) end) end,
        "a size depends on elements (sum)")
end

function TestCost:test_what_is_not_known()
    raises(function() cost(function() return io.open("x", "w") end) end,
        "nothing is known of what open costs")
    raises(function() cost(function() return os.remove("x") end) end,
        "nothing is known of what remove costs")
    raises(function() cost(function() return cd("/") end) end,
        "nothing is known of what cd costs")
    raises(function() cost(function() return cost(function() end) end) end,
        "nothing is known of what cost costs")
    raises(function() cost(function() return A[A:gt(0)] end) end,
        "depends on the mask")
    raises(function() cost(function() return inspect(A) end) end,
        "depends on elements")
    raises(function() cost(A) end, "cost: f is a matrix, expected a function")
    raises(function() cost(function() return nowhere(A) end) end, "nowhere")
    lu.assertNil(io.open("x"))
end

-- What was not known to a list of functions: sparse matrices, functions of
-- elements, files.
function TestCost:test_what_is_known_without_a_list()
    local c = cost(function() return sparse(A) end)
    lu.assertEquals(c.allocated, 31 * 4 + 2 * 600 * 4) -- the most there can be
    local S = sparse(A:gt(0.5) % A)
    c = cost(function() return S * v, S.T, full(S) end)
    local flops, bytes, allocated = done(function()
        return S * v, S.T, full(S)
    end)
    lu.assertEquals({c.flops, c.bytes, c.allocated}, {flops, bytes, allocated})
    lu.assertEquals(cost(function() return A:map(math.sin) end).allocated,
        A.bytes)
    lu.assertEquals(cost(function() return fromfn(5, 5, nil or math.max) end)
        .allocated, 100)
    lu.assertEquals(cost(function() return save(A, "x.npy") end).allocated, 0)
    lu.assertEquals(cost(function() return save(A + 1, "x.csv") end).flops, 600)
    lu.assertNil(io.open("x.npy"))
    lu.assertNil(io.open("x.csv"))
end

-- A function that was not there when cost was written, in a module's way.
function TestCost:test_a_function_added_later()
    local lm = require "lumat"
    lm.gram = function(X, weight)
        local G = X.T * X
        G:mul_(weight)
        return G + lm.eye(G.rows), G:max()
    end
    local f = function() return lm.gram(A, 2) end
    local flops, bytes, allocated = done(f)
    local c = cost(f)
    lm.gram = nil
    lu.assertEquals({c.flops, c.bytes, c.allocated}, {flops, bytes, allocated})
    lu.assertTrue(c.flops > 2 * 20 * 20 * 30)
end

-- In place, by index, by mask, through views and by name: nothing is written.
function TestCost:test_matrices_stay_as_they_are()
    local M = A:clone()
    local before, S = M:clone(), sparse(M)
    cost(function()
        M:add_(1)
        M[1] = 5
        M[{2, 2}] = M:sum()
        M[M:gt(0.5)] = 0
        M["1:3, :"] = B[{{1, 3}, {1, 20}}]
        M.T:mul_(3)
        add(M, M, {out = M})
        M:free()
        local closed <close> = M
        S:free()
    end)
    lu.assertEquals(full(S * 2), M * 2)
    lu.assertTrue(M == before)
    lu.assertEquals(M.device, A.device)
end

function TestCost:test_random_numbers_go_on_as_they_were()
    seed(7)
    local wanted = rand(3)
    seed(7)
    lu.assertTrue(cost(function()
        seed(1)
        return rand(5), randn(5), randperm(5)
    end).bytes > 0)
    lu.assertTrue(rand(3) == wanted)
end

function TestCost:test_settings_tables_and_metatables_stay()
    local list = setmetatable({3, 1, 2, deep = {x = 1}}, {__len = nil})
    local meta = getmetatable(list)
    cost(function()
        default_dtype("f64")
        table.sort(list)
        table.insert(list, 4)
        list.deep.x, list.deep.y = 2, 3
        setmetatable(list, nil)
        meta.__index = A
        math.pi, string.extra = 3, 1
        io.write("nothing")
        print("of", A:sum(), A)
    end)
    lu.assertEquals(default_dtype(), "f32")
    lu.assertEquals({list[1], list[2], list[3], list[4]}, {3, 1, 2})
    lu.assertEquals(list.deep, {x = 1})
    lu.assertTrue(rawequal(getmetatable(list), meta))
    lu.assertNil(meta.__index)
    lu.assertNil(string.extra)
    lu.assertTrue(math.pi > 3.14)
    lu.assertEquals(math.type(math.floor(2.5)), "integer")
    lu.assertEquals(type(A), "userdata")
end

-- What was made in there is of no use outside, and says so.
function TestCost:test_what_is_made_does_not_last()
    local thread = coroutine.create(function(x) coroutine.yield(x + 1) end)
    local kept = {}
    local proxy = newproxy and newproxy() or thread
    cost(function() coroutine.resume(thread, A) end)
    cost(function() kept[1] = A + 1 end)
    lu.assertNil(kept[1])
    lu.assertEquals(coroutine.status(proxy), "suspended")
    local ok, why = pcall(cost, function() error(A + 1) end)
    lu.assertFalse(ok)
    raises(function() return why + 1 end, "one of cost, and has no elements")
    raises(function() return why:sum() end, "has no elements")
    lu.assertEquals(why.shape, {30, 20})
    lu.assertTrue((A + 1):sum() > A:sum()) -- and all goes on
end

TestHints = {}

local function hint(f)
    local h = cost(f).hints
    lu.assertTrue(#h <= 1)
    return h[1]
end

function TestHints:test_a_vector_comes_first()
    M, N, x = zeros(50, 60), zeros(60, 70), zeros(70)
    local h = hint(function() return M * N * x end)
    lu.assertEquals(h.better, "M * (N * x)")
    lu.assertEquals(h.instead_of, "M * N * x")
    lu.assertEquals(h.flops, 2 * 60 * 70 + 2 * 50 * 60)
    lu.assertEquals(h.their_flops, 2 * 50 * 60 * 70 + 2 * 50 * 70)
    lu.assertNil(hint(function() return M * (N * x) end))
    h = hint(function() local y = zeros(50) return y * (M * N) end)
    lu.assertEquals(h.flops, 2 * 50 * 60 + 2 * 60 * 70)
    M, N, x = nil, nil, nil
end

-- Source: Cormen et al., Introduction to Algorithms, section 15.2: the best
-- order of six matrices takes 15,125 multiplications.
function TestHints:test_the_chain_of_the_textbook()
    local sizes, m = {30, 35, 15, 5, 10, 20, 25}, {}
    for i = 1, 6 do m[i] = zeros(sizes[i], sizes[i + 1]) end
    local h = hint(function()
        return m[1] * (m[2] * (m[3] * (m[4] * (m[5] * m[6]))))
    end)
    lu.assertEquals(h.flops, 2 * 15125)
end

function TestHints:test_what_is_used_again_stays()
    local function both()
        local P = A * B
        return P * zeros(40), P * zeros(40)
    end
    lu.assertNil(hint(both))
end

-- (u M) is a row here and no column: the brackets cannot be moved.
function TestHints:test_a_vector_in_the_middle()
    local c = cost(function() return (D * v) * D end)
    lu.assertEquals(#c.hints, 0)
end

function TestHints:test_transposed_factors_have_names()
    M, x = zeros(90, 30), zeros(30)
    lu.assertEquals(hint(function() return M.T * M * x end).better,
        "M.T * (M * x)")
    M, x = nil, nil
end

os.exit(lu.LuaUnit.run("-o", "tap"))
