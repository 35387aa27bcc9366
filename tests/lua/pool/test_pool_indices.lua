-- Rows, columns and elements of distributed matrices by lists and masks, read
-- and written; diagonals, places of the largest, running sums, matrices put
-- together: against the same of ordinary ones.
local lu = require "luaunit"
local pools = require "pool.pools"
local types, whole, same = pools.types, pools.whole, pools.same
local f64 = {dtype = "f64", device = "cpu"}

TestPoolIndices = {}

local function each_grid(name, f) pools.each_grid(TestPoolIndices, name, f) end

-- Of so many places some, in no order, and some twice.
local function list_of(n, seed)
    return randint(1, n, n + 2, {seed = seed, device = "cpu"}):f64()
end

local function keys_of(m, n)
    local is_odd = range(1, m, f64):mod(2):gt(0)
    return {
        {list_of(m, 1), {}}, {{}, list_of(n, 2)}, {list_of(m, 3), list_of(n, 4)},
        {{2, m}, list_of(n, 5)}, {{1, m, 3}, {n, 1, -2}}, {vec{m, 1, m}, {1, 2}},
        {is_odd, {}}, {vec({}, f64), {}}, {{m, 1, -1}, {2, 2}}, {{3, 2}, {}},
    }
end

each_grid("lists", function(what)
    for _, dtype in ipairs(types) do
        local A = whole(23, 17, dtype, 1)
        local D = spread(A)
        for k, key in ipairs(keys_of(23, 17)) do
            same(D[key], A[key]:clone(), what .. " key " .. k)
        end
        for k, key in ipairs(keys_of(17, 23)) do
            same(D.T[key], A.T[key]:clone(), what .. " turned, key " .. k)
            same(D.H[key], A.H[key]:clone(), what .. " turned, key " .. k)
        end
        local rows = vec{5, -1, 5}
        same(D[rows], A[rows], what)
        lu.assertTrue(D[-2] == A[-2])
    end
    local A = whole(200, 5, "f64", 1)
    local list = range(200, 1, -1, f64)
    same(spread(A)[list], A[list], what)
end)

each_grid("assignment", function(what)
    for _, dtype in ipairs(types) do
        local A = whole(23, 17, dtype, 1)
        for k, key in ipairs(keys_of(23, 17)) do
            local D, B, shape = spread(A), A:clone(), A[key].shape
            local C = whole(shape[1], shape[2], dtype, 7)
            B[key] = C
            D[key] = C
            same(D, B, what .. " key " .. k)
            D = spread(A)
            D[key] = spread(C, {block = 5})
            same(D, B, what .. " distributed, key " .. k)
            D = spread(A.T:clone())
            local E = D.T
            E[key] = C
            same(D.T, B, what .. " turned, key " .. k)
            B[key] = 3
            E[key] = 3
            same(D.T, B, what .. " number, key " .. k)
        end
    end
    local A = whole(23, 17, "f64", 1)
    local D = spread(A)
    D[{2, -1}], A[{2, -1}] = 77, 77
    D[4], A[4] = 9, 9
    D[D:gt(3)], A[A:gt(3)] = -1, -1
    local E = D.T
    E[E:lt(-5)], A[A:lt(-5)] = 5, 5
    same(D, A, what)
    local C, Z = whole(9, 9, "c64", 1), spread(whole(9, 9, "c64", 1))
    Z.H[{{1, 2}, {}}], C.H[{{1, 2}, {}}] = 2 + im, 2 + im
    same(Z, C, what)
end)

-- Masks are moved as well, which ScaLAPACK does not.
each_grid("masks", function(what)
    local A = whole(23, 17, "f64", 1)
    local D, M = spread(A):gt(0), A:gt(0)
    same(D, M, what)
    lu.assertTrue((D.T):any(1) == M.T:any(1), what)
    same(D[{{2, 9}, {3, 4}}], M[{{2, 9}, {3, 4}}]:clone(), what)
    same(D[vec{9, 1}], M[vec{9, 1}], what)
    same(D.T:land(spread(A, {block = 5}).T:lt(4)), (M.T):land(A.T:lt(4)), what)
    same(vcat(D, D), vcat(M, M):f32(), what)
    same(D.T * D, M.T:f32() * M:f32(), what)
    lu.assertEquals(deye(3):gt(0):inv():gather(), eye(3, {device = "cpu"}))
    local path = require "common".scratch ".npy"
    save(D, path)
    lu.assertTrue(load(path) == M)
    os.remove(path)
end)

each_grid("diagonals", function(what)
    for _, dtype in ipairs(types) do
        for _, shape in ipairs{{23, 17}, {17, 23}, {1, 1}} do
            local A = whole(shape[1], shape[2], dtype, 1)
            local D = spread(A)
            for _, k in ipairs{0, 1, -2, 30} do
                lu.assertTrue(D:diag(k) == A:diag(k), what)
                lu.assertTrue(D.T:diag(k) == A.T:diag(k), what)
            end
        end
        local S = whole(19, 19, dtype, 2)
        lu.assertTrue(trace(spread(S)) == trace(S), what)
        lu.assertTrue(trace(spread(S).H) == trace(S.H), what)
    end
end)

each_grid("places", function(what)
    for seed = 1, 3 do
        local A = whole(23, 17, "f64", seed)
        if seed == 2 then A[{9, 4}], A[{3, 8}] = 0 / 0, 0 / 0 end
        if seed == 3 then A[{5, {}}] = 0 / 0 end
        local D = spread(A)
        for _, name in ipairs{"argmax", "argmin"} do
            lu.assertEquals({D[name](D)}, {A[name](A)}, what)
            lu.assertEquals({D.T[name](D.T)}, {A.T[name](A.T)}, what)
            for axis = 1, 2 do
                lu.assertTrue(D[name](D, axis) == A[name](A, axis), what)
                lu.assertTrue(D.T[name](D.T, axis) == A.T[name](A.T, axis), what)
            end
        end
    end
    lu.assertErrorMsgContains("no elements", argmax, dzeros(0, 3))
end)

each_grid("running", function(what)
    for _, dtype in ipairs(types) do
        for _, shape in ipairs{{0, 3}, {1, 1}, {37, 5}, {200, 7}} do
            local A = whole(shape[1], shape[2], dtype, 1)
            for axis = 1, 2 do
                same(cumsum(spread(A), axis), A:cumsum(axis):clone(), what)
            end
        end
    end
    local A = whole(30, 5, "f64", 1):eq(3):f64() + 1
    same(spread(A):cumprod(1), A:cumprod(1), what)
end)

each_grid("joined", function(what)
    for _, dtype in ipairs(types) do
        local A, B = whole(23, 17, dtype, 1), whole(9, 17, "f32", 2)
        local wide = B[dtype](B)
        same(vcat(spread(A), spread(B, {block = 4}), A), vcat(A, wide, A), what)
        same(vcat(spread(B), A), vcat(wide, A), what)
        same(spread(A).T .. spread(B).T, (A.T .. wide.T):clone(), what)
        same(hcat(spread(A), A), hcat(A, A), what)
    end
end)

function TestPoolIndices.test_refused()
    pools.start(2, 2, 3)
    local D = drand(4, 3)
    for text, f in pairs{
        ["row 5 is outside 1..4"] = function() return D[{vec{1, 5}, {}}] end,
        ["row 1.5 is outside"] = function() return D[{vec{1.5}, {}}] end,
        ["the mask has length 2, there are 4 rows"] = function()
            return D[vec{1, 0}:gt(0)]
        end,
        ["2x2 does not fit into 4x3"] = function() D[{{}, {}}] = ones(2, 2) end,
        ["complex"] = function() D[{1, 1}] = im end,
        ["a mask of D's shape"] = function() D[drand(3, 3):gt(0)] = 1 end,
        ["is no number or matrix"] = function() D[{1, 1}] = "x" end,
        ["argument 2 is 2x2, those before it have 3 columns"] = function()
            return vcat(D, ones(2, 2))
        end,
    } do
        lu.assertErrorMsgContains(text, f)
    end
    pool.close()
end

os.exit(lu.LuaUnit.run("-o", "tap"))
