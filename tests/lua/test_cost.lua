-- Costs without running: what is counted is what the same work counts when it
-- is done, and nothing of the caller's changes.
local lu = require "luaunit"
local here = arg[0]:match("^.*/") or "./"
local t = dofile(here .. "common.lua")
local raises = t.raises

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

function TestCost:test_is_what_is_done()
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
    lu.assertEquals(#c.operations, 3)
    raises(function()
        cost(function() if A:sum() > 0 then return A end end)
    end, "cost: what is done depends on elements (sum)")
    raises(function() cost(function() return A == A:clone() end) end, "depends on")
    raises(function() cost(function() return zeros(A:sum()) end) end,
        "a size depends on elements (sum)")
end

function TestCost:test_what_is_not_known()
    raises(function() cost(function() return save(A, "x.npy") end) end,
        "cost: nothing is known of what save costs")
    raises(function() cost(function() return A:map(math.sin) end) end,
        "map costs")
    raises(function() cost(function() return io.open("x") end) end,
        "nothing is known of what open costs")
    raises(function() cost(function() return sparse(A) end) end,
        "nothing is known of what sparse costs")
    raises(function() cost(function() return A[A:gt(0)] end) end,
        "depends on the mask")
    raises(function() cost(A) end, "cost: f is a matrix, expected a function")
    raises(function() cost(function() return nowhere(A) end) end, "nowhere")
    lu.assertNil(io.open("x"))
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
