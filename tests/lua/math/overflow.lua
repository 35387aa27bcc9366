-- LUMAT_FAKE_MEMORY=bytes lumat overflow.lua: results that do not fit the GPU's
-- memory, about 4 MiB, lie on the CPU, and go on as operands beside matrices of
-- the GPU. Says "same", and before that what is not.
local function check(what, a, b)
    if type(a) == "userdata" then a = a:to "cpu" end
    if type(a) == "userdata" and not all(eq(a, b)) or
        type(a) ~= "userdata" and a ~= b then
        print("WRONG", what, a, b)
    end
end

local function refuses(text, f)
    local ok, why = pcall(f)
    if ok or not why:find(text, 1, true) then print("WRONG", text, why) end
end

local n = 500 -- 1 MiB each
local A = floor(8 * rand(n, n, {seed = 1, device = "cpu"}))
local B = floor(8 * rand(n, n, {seed = 2, device = "cpu"}))
local x, y = A:to "cuda", B:to "cuda"
local held = {}
for i = 1, 100 do
    pcall(function() held[i] = zeros(200, 200, {device = "cuda"}) end)
end
for _ = 1, 3 do table.remove(held):free() end

local s = x + y -- does not fit
print(s.device)
check("sum", s, A + B)
check("beside", s - x, B)
check("one alone", -s, -(A + B))
check("again", (-s) + y, -A)
check("compared", s:gt(x), B:gt(0))
check("converted", x:f64(), A:f64())
check("reduced", (s % x):sum(), ((A + B) % A):sum())
check("one way", (s + y):max(1), (A + B + B):max(1))
check("product", x * y, A * B)
check("of one", s * x, (A + B) * A)
check("of both", s * s, (A + B) * (A + B))
check("with a vector", s * x:row(1).T, (A + B) * A:row(1).T)
check("dot", dot(s[1], x[1]), dot((A + B)[1], A[1]))
local function f(a, b) return a * b + 1 end
check("map", map(s, x, f), map(A + B, A, f))
check("map, the other way", map(x, s, f), map(A, A + B, f))
refuses("map: operands are on different devices", function()
    map(x, ones(n, n, {device = "cpu"}), f)
end)
x:add_(s)
check("in place", x, A + A + B)
s:sub_(y)
check("in place, on the CPU", s, A)
check("into", add(y, s, {out = x}), A + B)

local plain = ones(n, n, {device = "cpu"})
refuses("operands are on different devices", function() return plain + x end)
refuses("operands are on different devices", function() return x * plain end)
refuses("out of memory", function() return zeros(n, n, {device = "cuda"}) end)
refuses("out of memory", function() return A:to "cuda" end)
print "same"
