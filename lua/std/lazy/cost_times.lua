-- How long operations will take: from the device's measured peaks, and from what
-- a small one of the same kind is measured to take, once a session.
local library = ...
local trace = require "lumat.trace"
local pcall = pcall
local larger, smaller, log = math.max, math.min, math.log
local times = {}

local known = {} -- seconds, by what they are of

-- A good one of a few runs of f, which are in no trace or profile.
local function measured(key, f)
    if not known[key] then
        local ok, found = pcall(library.bench, f, {seconds = 0.004, least = 3})
        known[key] = ok and found.low or 0 / 0
    end
    return known[key] == known[key] and known[key] or nil
end

local function is_cpu(device) return device == "cpu" end

-- What an operation takes however small it is.
local function latency(device)
    local one = known["one " .. device] or library.ones(1, {device = device})
    known["one " .. device] = one
    return measured("latency " .. device, function()
        return library.neg(one)
    end) or 0
end

-- Seconds an element of f's work on vectors takes, beyond the latency.
local function per_element(key, device, dtype, f)
    local n = is_cpu(device) and 2 ^ 14 // 1 | 0 or 2 ^ 20 // 1 | 0
    key = key .. " " .. dtype .. " " .. device
    if not known[key] then
        local x = library.full(n, 0.5, {dtype = dtype, device = device})
        measured(key, function() return f(x, n) end)
    end
    local seconds = known[key]
    if not seconds or seconds ~= seconds then return 0 end
    return larger(0, seconds - latency(device)) / n
end

-- By the memory's pace, or the work on each element if that takes longer.
local function streamed(device, bytes, elements, each)
    return latency(device) + larger(bytes / library.peak(device).bytes,
        elements * each)
end

function times.elementwise(name, arity, device, dtype, elements, bytes)
    if dtype == "bool" then dtype = "f32" end
    return streamed(device, bytes, elements, per_element(name, device, dtype,
        function(x) return library[name](x, arity > 1 and x or nil,
            arity > 2 and x or nil) end))
end

function times.reduction(name, device, dtype, elements, bytes)
    if dtype == "bool" then dtype = "f32" end
    return streamed(device, bytes, elements, per_element(name, device, dtype,
        function(x) return library[name](x) end))
end

function times.random(name, device, elements, bytes)
    name = name == "randn" and name or "rand"
    return streamed(device, bytes, elements, per_element(name, device, "f32",
        function(_, n)
            return library[name](n, {device = device, seed = 1})
        end))
end

-- name: sort, or argsort, which carries places.
function times.sort(name, device, dtype, elements, length)
    local base = is_cpu(device) and 14 or 20
    return latency(device) + elements * per_element(name, device,
        dtype == "bool" and "f32" or dtype, function(x)
            return library[name](x)
        end) * larger(1, log(larger(2, length), 2) / base)
end

function times.moved(device, bytes)
    return streamed(device, bytes, 0, 0)
end

-- Sizes no larger than a probe may have, the shape kept where possible.
local function clipped(device, m, n, k)
    local most = is_cpu(device) and 2e8 or 5e10
    while 2.0 * m * n * k > most do
        if m >= n and m >= k then m = (m + 1) // 2
        elseif n >= k then n = (n + 1) // 2
        else k = (k + 1) // 2 end
    end
    return m, n, k
end

-- As measured; if that would take long, by the flops of a smaller one; where that cannot
-- be had, by the peak.
function times.product(kernel, device, dtype, m, n, k, bytes)
    local a, b, c = clipped(device, m, n, k)
    local how = {kernel = kernel}
    local options = {dtype = dtype, device = device, seed = 1}
    local A, B
    local seconds = measured(("%s %s %s %d %d %d"):format(kernel, device, dtype,
        a, b, c), function()
            A, B = A or library.rand(a, c, options),
                B or library.rand(c, b, options)
            return library.matmul(A, B, how)
        end)
    local peak = library.peak(device)
    local flops = 2.0 * m * n * k
    if not seconds then
        return flops / (dtype == "f64" and peak.f64_flops or peak.f32_flops)
    end
    if a == m and b == n and c == k then return seconds end
    local start = smaller(seconds, latency(device))
    return larger(start + (seconds - start) * (flops / (2.0 * a * b * c)),
        bytes / peak.bytes)
end

-- n equations with so many right sides.
function times.solve(device, dtype, n, columns)
    local side = smaller(n, is_cpu(device) and 512 or 2048)
    local A
    local seconds = measured(("solve %s %s %d"):format(device, dtype, side),
        function()
            A = A or library.rand(side, side, {dtype = dtype, device = device,
                seed = 1}) + library.eye(side, {dtype = dtype,
                device = device}) * side
            return library.solve(A, A)
        end) or 0
    local function flops(size, right)
        return size * size * (2.0 / 3 * size + 2.0 * right)
    end
    return seconds * flops(n, columns) / flops(larger(1, side), side)
end

return times
