-- What whole-matrix operations other than products cost: elementwise chains,
-- reductions, running sums, sorting, random fills, masks, copies. Beside each
-- the time that its bytes take at the measured bandwidth, and where python3
-- has them the same of torch on a GPU, of NumPy on the CPU.
--   lumat bench_operations.lua [--quick] [--device D] [--only PATTERN]
--                              [--seconds S] [--csv FILE] [--peer no]
--     --quick     small sizes and short times, to see that everything runs
--     --device    cpu, cuda, cuda:1; else the GPU if there is one
--     --only      operations whose name has the Lua pattern
--     --seconds   how long each is repeated (0.8)
--     --csv       also write the figures to FILE
--     --peer      no: without torch or NumPy
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figures = require "figures"

local peer_wanted = figures.peer_wanted()
local options = figures.start("bench_operations")
local device_name, on_gpu, choose = options.device, options.on_gpu, where

-- --- what is timed --------------------------------------------------------

-- Elements of a vector and sides of a matrix: of a GPU 1 GiB each.
local n = options.quick and 1 << 16 or on_gpu and 1 << 28 or 10000000
local part, side = n // 4, options.quick and 256 or on_gpu and 16384 or 3000
local all, some, square = 4 * n, 4 * part, 4 * side * side

-- name; bytes that have to be moved; the operation on s; the same in Python,
-- where np is torch or numpy and new(f) what a random fill of f is.
local rows = {
    {"chain", 3 * all, function(s)
        return sqrt(sin(s.x) % s.y + 2) - s.x / 3
    end, "np.sqrt(np.sin(x)*y+2)-x/3"},
    {"add", 3 * all, function(s) return add(s.x, s.y, s.out) end,
        "np.add(x,y,out=o)"},
    {"exp", 2 * all, function(s) return exp(s.x, s.out) end, "np.exp(x,out=o)"},
    {"difference", 2 * all, function(s)
        return ((s.x - s.y) % (s.x - s.y)):sum()
    end, "((x-y)*(x-y)).sum().item()"},
    {"sum", all, function(s) return s.x:sum() end, "x.sum().item()"},
    {"max", all, function(s) return s.x:max() end, "x.max().item()"},
    {"argmax", all, function(s) return s.x:argmax() end, "x.argmax().item()"},
    {"std", all, function(s) return s.x:std() end, "x.std().item()"},
    {"norm", all, function(s) return s.x:norm() end,
        "float(np.linalg.norm(x))"},
    {"sum axis 1", square, function(s) return s.A:sum(1) end, "A.sum(0)"},
    {"sum axis 2", square, function(s) return s.A:sum(2) end, "A.sum(1)"},
    {"cumsum", 2 * some, function(s) return cumsum(s.part) end,
        "np.cumsum(z,0)"},
    {"cumsum axis 2", 2 * square, function(s) return cumsum(s.A, 2) end,
        "np.cumsum(A,1)"},
    {"sort", 2 * some, function(s) return sort(s.part) end, "np.sort(z)"},
    {"sort rows", 3 * square, function(s)
        return sort(s.A, 2, {places = true})
    end, "sorted_rows()"},
    {"rand", all, function() return rand(n) end, "uniform()"},
    {"randn", all, function() return randn(n) end, "normal()"},
    {"mask", 2 * all, function(s) s.x[s.x:gt(2)] = 0 end, "mask()"},
    {"where", 3 * all, function(s) return choose(s.x:gt(0.5), s.x, s.y) end,
        "np.where(x>0.5,x,y)"},
    {"A + A.T", 2 * square, function(s) return s.A + s.A.T end, "A+A.T"},
    {"A.T copied", 2 * square, function(s) return s.A.T:clone() end, "turned()"},
    {"A + row", 2 * square, function(s) return s.A + s.row end, "A+row"},
    {"A.T odd sides", 2 * square, function(s) return s.odd.T:clone() end,
        "turned_odd()"},
    {"add off by one", 3 * all, function(s)
        return add(s.x_off, s.y_off, s.out_off)
    end, "np.add(x[1:],y[1:],out=o[1:])"},
    {"add every other", 5 * all // 2, function(s)
        return add(s.x_other, s.y_other, s.out_half)
    end, "np.add(x[::2],y[::2],out=o[:n//2])"},
    {"add f64", 2 * all, function(s) return add(s.wide, s.wide) end,
        "wide+wide"},
    {"A:row differences", 2 * square, function(s)
        return diff(s.A, {axis = 2})
    end, "np.diff(A)"},
    {"hcat", 4 * square, function(s) return s.A .. s.B end, "np.hstack((A,B))"},
    {"64x64 sum", 4 * 64 * 64, function(s) return s.small:sum() end,
        "small.sum().item()"},
    {"64x64 A + B", 12 * 64 * 64, function(s) return s.small + s.small end,
        "small+small"},
}

local function operands()
    local x, y, out = rand(n, {seed = 1}), rand(n, {seed = 2}), zeros(n)
    return {x = x, y = y, out = {out = out}, x_off = x["2:end"],
        y_off = y["2:end"], out_off = {out = out["2:end"]},
        x_other = x["1:end:2"], y_other = y["1:end:2"],
        out_half = {out = out[{{1, n // 2}}]},
        wide = rand(n // 2, {seed = 8, dtype = "f64"}),
        odd = rand(side - 1, side - 1, {seed = 9}),
        part = rand(part, {seed = 3}),
        A = rand(side, side, {seed = 4}), B = rand(side, side, {seed = 5}),
        row = rand(1, side, {seed = 6}), small = rand(64, 64, {seed = 7})}
end

-- --- the peer -------------------------------------------------------------

-- Prints a line "name<tab>seconds" for each operation that runs.
local script = [[
GPU, n, part, side, seconds = %s, %d, %d, %d, %g
if GPU:
    import torch as np
    def fill(*shape): return np.rand(*shape, device="cuda")
    def uniform(): return np.rand(n, device="cuda")
    def normal(): return np.randn(n, device="cuda")
    def turned(): return A.T.contiguous()
    def turned_odd(): return odd.T.contiguous()
    def sorted_rows(): return np.sort(A, 1)
    wait = np.cuda.synchronize
    wide = np.rand(n // 2, device="cuda", dtype=np.float64)
else:
    import numpy as np
    source = np.random.default_rng(1)
    def fill(*shape): return source.random(shape, dtype=np.float32)
    def uniform(): return source.random(n, dtype=np.float32)
    def normal(): return source.standard_normal(n, dtype=np.float32)
    def turned(): return np.ascontiguousarray(A.T)
    def turned_odd(): return np.ascontiguousarray(odd.T)
    def sorted_rows(): return np.argsort(A, 1)
    wide = source.random(n // 2)
    def wait(): pass
x, y, z = fill(n), fill(n), fill(part)
o, A, B = fill(n), fill(side, side), fill(side, side)
row, small, odd = fill(1, side), fill(64, 64), fill(side - 1, side - 1)
def mask(): x[x > 2] = 0
print("version\t" + np.__version__, flush=True)
for name, f in [%s]: tell(name, f, seconds)
]]

-- Its seconds by name, and what it is called; nil: python3 does not have it.
local function measure_peer()
    local list = {}
    for i, row in ipairs(rows) do
        if figures.wanted(row[1]) then
            list[#list + 1] = ('("%s", lambda: %s)'):format(row[1], row[4])
        end
    end
    local found, version = figures.ask_python(figures.python ..
        script:format(on_gpu and "True" or "False", n, part, side,
            options.seconds, table.concat(list, ", ")))
    return found, on_gpu and "torch" or "NumPy", version
end

-- --- the table ------------------------------------------------------------


local bandwidth = peak(device_name).bytes
local peers, peer, version
if peer_wanted then peers, peer, version = measure_peer() end
print(("\n%d elements, %dx%d, f32; bound: the bytes at %.4g GB/s%s"):format(n,
    side, side, bandwidth / 1e9, peers and ("; %s %s, in a process of its own"):
    format(peer, version) or ""))
print(("  %-17s %12s %9s %7s %12s %7s"):format("operation", "median", "bound",
    "share", peers and peer or "", peers and "ratio" or ""))
local s = operands()
for _, row in ipairs(rows) do
    local name, bytes, f = row[1], row[2], row[3]
    if figures.wanted(name) then
        local time = bench(function() return f(s) end,
            {seconds = options.seconds, device = device_name})
        local bound, other = bytes / bandwidth, peers and peers[name]
        print(("  %-17s %9.4f ms %6.3f ms %5.0f %% %12s %7s"):format(name,
            time.median * 1e3, bound * 1e3, 100 * bound / time.median,
            other and ("%9.4f ms"):format(other * 1e3) or "",
            other and ("%.2f"):format(time.median / other) or ""))
        figures.record{what = name, dtype = "f32", size = tostring(n),
            seconds = time.median, low = time.low, high = time.high,
            rate = bytes / time.median / 1e9, unit = "GB/s",
            share = bound / time.median, peak = "memory",
            ratio = other and other / time.median}
    end
end
figures.finish()
