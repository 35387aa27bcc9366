-- What sparse matrices cost: products with a vector and with 8, 32 and 128
-- columns for matrices of many kinds, and everything else for one of them.
-- Beside each, where python3 has them, the same of torch on a GPU, of SciPy on
-- the CPU, on a matrix made by the same rule.
--   lumat bench_sparse.lua [--quick] [--device D] [--only PATTERN]
--                          [--seconds S] [--csv FILE] [--peer no]
--     --quick     small sizes and short times, to see that everything runs
--     --device    cpu, cuda, cuda:1; else the GPU if there is one
--     --only      lines whose "matrix operation" has the Lua pattern
--     --seconds   how long each is repeated (0.8)
--     --csv       also write the figures to FILE
--     --peer      no: without torch or SciPy
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figures = require "figures"

local peer_wanted = figures.peer_wanted()
local options = figures.start("bench_sparse")
local device_name, on_gpu = options.device, options.on_gpu

-- --- matrices -------------------------------------------------------------
-- Rows and entries: of a GPU 1e6 and 1e7.

local rows = options.quick and 1000 or on_gpu and 1000000 or 100000
local count = 10 * rows
local how = {dtype = "f32", device = device_name}
local wide = {dtype = "f64", device = device_name}

-- Whole numbers from 1 to n, small ones the more often the larger p is.
local function places(n, p, k)
    return floor(rand(k or count, wide):pow(p) * (n * (1 - 1e-12))) + 1
end

local function triplets(m, n, p, q)
    return sparse(places(m, p), places(n, q), rand(count, how), m, n, how)
end

local function diagonals(width)
    local list = {}
    for k = -(width // 2), width // 2 do list[#list + 1] = k end
    local n = count // width
    return spdiags(rand(n, width, how), list, n, n, how)
end

local function one_row()
    local k = count - rows
    local function joined(a, b) return vcat(a:col(), b:col()):flatten() end
    return sparse(joined(places(rows, 1, k), ones(rows, wide)),
        joined(places(rows, 1, k), range(1, rows, 1, wide)), rand(count, how),
        rows, rows, how)
end

-- name; made here; made by Python, where random(m, n, p, q) is triplets.
local matrices = {
    {"random", function() return triplets(rows, rows, 1, 1) end,
        "random(n, n, 1, 1)"},
    {"rows of 3", function() return triplets(count // 3, count // 3, 1, 1) end,
        "random(k // 3, k // 3, 1, 1)"},
    {"rows of 100", function()
        return triplets(count // 100, count // 100, 1, 1)
    end, "random(k // 100, k // 100, 1, 1)"},
    {"1000 columns", function() return triplets(rows, 1000, 1, 1) end,
        "random(n, 1000, 1, 1)"},
    {"5 diagonals", function() return diagonals(5) end, "diagonals(5)"},
    {"27 diagonals", function() return diagonals(27) end, "diagonals(27)"},
    {"power law", function() return triplets(rows, rows, 3, 1) end,
        "random(n, n, 3, 1)"},
    {"steeper", function() return triplets(rows, rows, 6, 1) end,
        "random(n, n, 6, 1)"},
    {"hubs", function() return triplets(rows, rows, 3, 3) end,
        "random(n, n, 3, 3)"},
    {"one long row", one_row, "one_row()"},
}

-- --- what is timed --------------------------------------------------------

-- Of every matrix: name; the operation; the same of torch and of SciPy.
local products = {
    {"S * x", function(s) return s.S * s.x end, "S @ x", "S @ x"},
    {"S * 8 columns", function(s) return s.S * s.D8 end, "S @ D8", "S @ D8"},
    {"S * 32 columns", function(s) return s.S * s.D32 end, "S @ D32", "S @ D32"},
    {"S * 128 columns", function(s) return s.S * s.D128 end, "S @ D128",
        "S @ D128"},
}

-- Of the random one. T is another, L a Laplacian, b its right side, P few rows.
local others = {
    {"from triplets", function(s)
        return sparse(s.i, s.j, s.v, rows, rows, how)
    end, "coo().coalesce()", "coo().tocsr()"},
    {"S + T", function(s) return s.S + s.T end, "S + T", "S + T"},
    {"S % T", function(s) return s.S % s.T end, nil, "S * T"},
    {"S * S", function(s) return s.S * s.T end, "S @ T", "S @ T"},
    {"2 * S", function(s) return 2 * s.S end, "2 * S", "2 * S"},
    {"S:gt(0.5)", function(s) return s.S:gt(0.5) end, nil, "S > 0.5"},
    {"sum", function(s) return sum(s.S) end, "S.values().sum()", "S.sum()"},
    {"sum of columns", function(s) return sum(s.S, 1) end, nil, "S.sum(axis=0)"},
    {"sum of rows", function(s) return sum(s.S, 2) end, nil, "S.sum(axis=1)"},
    {"max of columns", function(s) return max(s.S, 1) end, nil, "S.max(axis=0)"},
    {"S.T * x", function(s) return s.S.T * s.x end, nil, "S.T @ x"},
    {"D * S", function(s) return s.D8.T * s.S end, nil, "D8.T @ S"},
    {"rows by list", function(s) return s.S[{s.list, {}}] end, nil, "S[list]"},
    {"columns by list", function(s) return s.S[{{}, s.list}] end, nil,
        "S[:, list]"},
    {"block", function(s)
        return s.S[{{rows // 9, rows // 2}, {rows // 8, rows // 3}}]
    end, nil, "S[n // 9:n // 2, n // 8:n // 3]"},
    {"hcat", function(s) return hcat(s.S, s.T) end, nil,
        "sparse.hstack([S, T], format='csr')"},
    {"vcat", function(s) return vcat(s.S, s.T) end, nil,
        "sparse.vstack([S, T], format='csr')"},
    {"tril", function(s) return tril(s.S) end, nil,
        "sparse.tril(S, format='csr')"},
    {"solve", function(s) return solve(s.L, s.b) end, nil,
        "linalg.spsolve(L, b)"},
    {"cg", function(s) return cg(s.L, s.b, {tol = 1e-6}) end, nil,
        "linalg.cg(L, b, rtol=1e-6)"},
}

-- That of a grid of side x side nodes.
local function laplacian_of_grid(side)
    local line = spdiags(mat({{-1, 2, -1}}, wide), {-1, 0, 1}, side, side, wide)
    local unit = speye(side, wide)
    return kron(line, unit) + kron(unit, line)
end
local side = options.quick and 20 or 200

local function operands(S)
    local n = S.cols
    return {S = S, x = rand(n, how), D8 = rand(n, 8, how),
        D32 = rand(n, 32, how), D128 = rand(n, 128, how)}
end

local function more_operands(s)
    s.T = triplets(rows, rows, 1, 1)
    s.i, s.j, s.v = places(rows, 1), places(rows, 1), rand(count, how)
    s.list = randperm(rows, {seed = 3}):to "cpu"[{{1, rows // 2}}]
    s.L, s.b = laplacian_of_grid(side), rand(side * side, wide)
    return s
end

-- --- the peer -------------------------------------------------------------

local script = [=[
import numpy as np
n, k, side, seconds = %d, %d, %d, %g
draw = np.random.default_rng(1)
def places(n, p, k=k): return (draw.random(k) ** p * n).astype(np.int64)
def values(*shape): return draw.random(shape, dtype=np.float32)
def random(m, n, p, q): return made(places(m, p), places(n, q), m, n)
def diagonals(w):
    n = k // w
    i, d = np.meshgrid(np.arange(n), np.arange(w) - w // 2, indexing="ij")
    j = i + d
    fits = (j >= 0) & (j < n)
    return made(i[fits], j[fits], n, n)
def one_row():
    some = k - n
    return made(np.append(places(n, 1, some), np.zeros(n, np.int64)),
                np.append(places(n, 1, some), np.arange(n)), n, n)
%s
def operands(S):
    m = S.shape[1]
    return [dense(values(*s)) for s in [(m,), (m, 8), (m, 32), (m, 128)]]
]=]

local on_torch = [[
import torch
print("version\t" + torch.__version__, flush=True)
wait = torch.cuda.synchronize
def dense(a): return torch.from_numpy(a).cuda()
def made(i, j, m, n):
    places = torch.from_numpy(np.stack([i, j])).cuda()
    return torch.sparse_coo_tensor(places, dense(values(len(i))),
                                   (m, n)).coalesce().to_sparse_csr()
def more():
    global T, coo
    T = random(n, n, 1, 1)
    i = torch.from_numpy(np.stack([places(n, 1), places(n, 1)])).cuda()
    v = dense(values(k))
    coo = lambda: torch.sparse_coo_tensor(i, v, (n, n))
]]

local on_scipy = [[
import scipy
from scipy import sparse
from scipy.sparse import linalg
print("version\t" + scipy.__version__, flush=True)
def wait(): pass
def dense(a): return a
def made(i, j, m, n):
    return sparse.coo_array((values(len(i)), (i, j)), shape=(m, n)).tocsr()
def more():
    global T, coo, list, L, b
    T = random(n, n, 1, 1)
    i, j, v = places(n, 1), places(n, 1), values(k)
    coo = lambda: sparse.coo_array((v, (i, j)), shape=(n, n))
    list = draw.permutation(n)[:n // 2]
    line = sparse.diags_array([-np.ones(side - 1), 2 * np.ones(side),
                               -np.ones(side - 1)], offsets=[-1, 0, 1])
    unit = sparse.eye_array(side)
    L = (sparse.kron(line, unit) + sparse.kron(unit, line)).tocsc()
    b = draw.random(side * side)
]]

local function title(matrix, operation)
    return matrix[1] .. " " .. operation[1]
end

-- Its seconds by title; nil: python3 does not have it.
local function measure_peer()
    local lines = {figures.python, script:format(rows, count, side,
        options.seconds, on_gpu and on_torch or on_scipy)}
    local function add(matrix, operation)
        local call = on_gpu and operation[3] or not on_gpu and operation[4]
        if call and figures.wanted(title(matrix, operation)) then
            lines[#lines + 1] = ("tell(%q, lambda: %s, seconds)"):format(
                title(matrix, operation), call)
        end
    end
    for i, matrix in ipairs(matrices) do
        lines[#lines + 1] = "S = " .. matrix[3]
        lines[#lines + 1] = "x, D8, D32, D128 = operands(S)"
        for _, operation in ipairs(products) do add(matrix, operation) end
        if i == 1 then
            lines[#lines + 1] = "more()"
            for _, operation in ipairs(others) do add(matrix, operation) end
        end
    end
    return figures.ask_python(table.concat(lines, "\n") .. "\n")
end

-- --- the table ------------------------------------------------------------

local peer = on_gpu and "torch" or "SciPy"
local peers, version
if peer_wanted then peers, version = measure_peer() end
print(("\n%d rows, %d entries, f32%s"):format(rows, count, peers and
    ("; %s %s, in a process of its own"):format(peer, version) or ""))
print(("  %-14s %-16s %12s %12s %7s"):format("matrix", "operation", "median",
    peers and peer or "", peers and "ratio" or ""))

local function show(matrix, operation, s)
    local name = title(matrix, operation)
    if not figures.wanted(name) then return end
    local time = bench(function() return operation[2](s) end,
        {seconds = options.seconds, device = device_name})
    local other = peers and peers[name]
    print(("  %-14s %-16s %9.4f ms %12s %7s"):format(matrix[1], operation[1],
        time.median * 1e3, other and ("%9.4f ms"):format(other * 1e3) or "",
        other and ("%.2f"):format(time.median / other) or ""))
    figures.record{what = operation[1], kernel = matrix[1], dtype = "f32",
        size = tostring(rows), seconds = time.median, low = time.low,
        high = time.high, ratio = other and other / time.median}
end

for i, matrix in ipairs(matrices) do
    local s = operands(matrix[2]())
    for _, operation in ipairs(products) do show(matrix, operation, s) end
    if i == 1 then
        more_operands(s)
        for _, operation in ipairs(others) do show(matrix, operation, s) end
    end
end
figures.finish()
