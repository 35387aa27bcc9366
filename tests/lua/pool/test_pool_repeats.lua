-- One grid gives the same bits again: every kind of operation of distributed
-- matrices, time after time, on the same operands. LUMAT_REPEATS=n: so many times;
-- LUMAT_POOLS=all: 100.
local lu = require "luaunit"
local t = require "common"
local pools = require "pool.pools"
local times = tonumber(os.getenv "LUMAT_REPEATS" or "") or
    pools.are_all and 100 or 3

TestPoolRepeats = {}

local here = {device = "cpu"}

local function signs(A)
    if A.dtype == "bool" then return A end
    return A.dtype:find "^c" and signbit(real(A)) .. signbit(imag(A)) or signbit(A)
end

-- Have they the same bits? A NaN is one here.
local function is_same(x, y)
    if type(x) == "table" and not getmetatable(x) then
        for i = 1, #x do
            if not is_same(x[i], y[i]) then return false end
        end
        return #x == #y
    end
    if type(x) ~= "userdata" or getmetatable(x) ~= "matrix" then
        return x == y or x ~= x and y ~= y
    end
    return x.dtype == y.dtype and x == y and signs(x) == signs(y)
end

-- What an operation gives, here.
local function gathered(...)
    local list = {...}
    for i, x in ipairs(list) do
        if getmetatable(x) == "distributed matrix" then list[i] = x:gather() end
    end
    return list
end

local path = t.scratch "A.npy"

-- Of D, 90x70, E, 70x50, and S, 60x60, of a type.
local operations = {}
function operations.making(D)
    local o = {dtype = D.dtype, seed = 3}
    return drand(40, 30, o), drandn(40, 30, o), deye(9, 7, {dtype = D.dtype})
end
function operations.elements(D)
    return D + D:abs(), D % D, -D / 3, exp(D), D:conj(), D.T + 1, D:abs():sqrt()
end
function operations.masks(D) return D:abs():gt(0.5), (D:abs():gt(0.5)):any(1) end
function operations.products(D, E)
    return D * E, D.T * D, E * E.T, D * ones(70, 2, here), D.H * D
end
function operations.power(_, _, S) return S ^ 5 end
function operations.sums(D)
    return D:sum(), D:sum(1), D:sum(2), D.T:sum(1), D:norm(), mean(D), mean(D, 1)
end
function operations.moments(D)
    if D.dtype:find "^c" then return end
    return D:std(), D:var(1), D:max(), D:min(2), D:argmax(), D:argmin(1)
end
function operations.running(D) return cumsum(D) end
function operations.places(D)
    local C = D + 0
    C[{{2, 40}, {}}] = D[{{50, 88}, {}}]
    C[{3, 4}] = 5
    return D[{{3, 80}, {2, 60}}], D[vec{9, 80, 2}], D.T[{{1, 9}, {}}], C, D:diag(),
        vcat(D, D), D:row(3), D(5, 6)
end
function operations.files(D)
    if D.dtype:find "^c" then return end
    D:save(path)
    return dload(path)
end
function operations.lu(_, _, S)
    local F = S:lu()
    return F.L, F.U
end
function operations.solve(_, E, S) return S:solve(E[{{1, 60}, {}}]), S:inv() end
function operations.chol(_, _, S)
    local F = (S * S.H + 60 * deye(60, {dtype = S.dtype})):chol()
    return F.L, F:solve(S)
end
function operations.qr(D) return D:qr():unpack() end
function operations.eigh(_, _, S) return (S + S.H):eigh():unpack() end
function operations.svd(D)
    if D.dtype:find "^c" then return end
    return D:svd():unpack()
end

function TestPoolRepeats.test_comparison()
    local A = ones(2, 2, here)
    lu.assertTrue(is_same({A, 1, 0 / 0}, {A:clone(), 1, 0 / 0}))
    lu.assertFalse(is_same({A * 0}, {-A * 0}))
    lu.assertFalse(is_same({A}, {A + 2 ^ -23}))
    lu.assertFalse(is_same({A:c64() * 0}, {A:c64():conj() * 0}))
end

for name, f in pairs(operations) do
    TestPoolRepeats["test_" .. name] = function()
        pools.start(2, 2, 16)
        for _, dtype in ipairs(pools.types) do
            local D = drandn(90, 70, {seed = 1, dtype = dtype})
            local E = drandn(70, 50, {seed = 2, dtype = dtype})
            local S = drandn(60, 60, {seed = 3, dtype = dtype})
            local first = gathered(f(D, E, S))
            for i = 2, times do
                local again = gathered(f(D, E, S))
                for k = 1, #first do
                    lu.assertTrue(is_same(first[k], again[k]),
                        ("%s of %s, result %d, time %d"):format(name, dtype, k, i))
                end
            end
        end
    end
end

local code = lu.LuaUnit.run("-o", "tap")
os.remove(path)
os.exit(code)
