-- LUMAT_TILE=bytes lumat tiled.lua [count]: what a GPU, or so many together,
-- computes of matrices in the host's memory, in tiles of so many bytes, is what
-- it computes of them when they lie on it. Says "same", and before that what is
-- not.
local GPU = "cuda"
if arg[1] then
    GPU = {}
    for i = 1, tonumber(arg[1]) do GPU[i] = "cuda:" .. i - 1 end
end
local D = {device = GPU}
local drawn = 0

local function draw(m, n, dtype)
    drawn = drawn + 1
    return rand(m, n, {seed = drawn, device = "cpu", dtype = dtype}) - 0.25
end

local function there(A) return type(A) == "userdata" and A:to "cuda" or A end

local function is_same(a, b)
    if type(a) ~= "userdata" then return a == b or a ~= a and b ~= b end
    if a.rows ~= b.rows or a.cols ~= b.cols or a.dtype ~= b.dtype then
        return false
    end
    b = b:to "cpu"
    return a.device == "cpu" and all(eq(a, b) | (isnan(a) & isnan(b)))
end

local function check(what, a, b)
    if not is_same(a, b) then print("WRONG", what, a, b) end
end

-- f(A, B, …, options) of the host's matrices and f(A, B, …) of the GPU's.
local function compare(name, ...)
    local operands, on_gpu = {...}, {}
    for i, A in ipairs(operands) do on_gpu[i] = there(A) end
    local x, y = _G[name](table.unpack(on_gpu))
    operands[#operands + 1] = D
    local a, b = _G[name](table.unpack(operands))
    check(name, a, x)
    check(name, b, y)
end

local function elementwise(A, B, row, col)
    for _, name in ipairs{"add", "maximum", "lt", "atan2"} do
        compare(name, A, B)
        compare(name, A, row)
        compare(name, col, A)
        compare(name, col, row)
        compare(name, A.T, B.T)
        compare(name, A.T, A.T:clone())
        compare(name, A, 2)
        compare(name, A["1, :"], B["1, :"])
    end
    local f = function(x, y, z) return x * y + (x > z and 1 or z) end
    check("map", map(A, B, row, f, D), map(there(A), there(B), there(row), f))
    local out = zeros(A.rows, A.cols, {device = "cpu", dtype = A.dtype})
    if not rawequal(add(A, B, {out = out, device = GPU}), out) then
        print("WRONG", "out")
    end
    check("out", out, there(A) + there(B))
    check("waiting", add(A + B, 1, D), there(A) + there(B) + 1)
end

local function reductions(A)
    for _, M in ipairs{A, A.T, A:gt(0), A[1]} do
        for _, name in ipairs{"sum", "mean", "max", "min", "argmax", "argmin",
            "any", "all", "norm", "prod", "var", "std"} do
            compare(name, M)
            for axis = 1, #M.shape do
                check(name .. " axis " .. axis,
                    _G[name](M, {axis = axis, device = GPU}),
                    _G[name](there(M), {axis = axis}))
            end
        end
    end
    check("norm 1", norm(A, 1, D), norm(there(A), 1))
    check("norm inf", norm(A, "inf", D), norm(there(A), "inf"))
    check("norm 3", norm(A, 3, {axis = 1, device = GPU}),
        norm(there(A), 3, {axis = 1}))
end

-- Of small whole numbers, whose sums are exact in whatever order.
local function products(m, n, dtype)
    for _, k in ipairs{1, 5, 70, 300} do
        local A, B = floor(draw(m, k, dtype) * 8), floor(draw(k, n, dtype) * 8)
        local C = floor(draw(m, n, dtype) * 8)
        compare("matmul", A, B)
        compare("matmul", A.T:clone().T, B.T:clone().T)
        compare("matmul", A, B["1:" .. k .. ", 1"])
        local how = {alpha = 2, beta = -1, out = C:clone()}
        local on_gpu = {alpha = 2, beta = -1, out = there(C)}
        how.device = GPU
        check("beta", matmul(A, B, how), matmul(there(A), there(B), on_gpu))
    end
end

for _, dtype in ipairs{"f32", "f64"} do
    for _, s in ipairs{{1, 1}, {7, 5}, {300, 1}, {1, 300}, {129, 257}, {1000, 33}} do
        local m, n = s[1], s[2]
        local A = draw(m, n, dtype)
        elementwise(A, draw(m, n, dtype), draw(1, n, dtype), draw(m, 1, dtype))
        reductions(A)
        products(m, n, dtype)
    end
end

local function refuses(text, f)
    local ok, why = pcall(f)
    if ok or not why:find(text, 1, true) then print("WRONG", text, why) end
end
local A = draw(5, 5)
refuses("the matrix lies on cuda:0, and cpu computes what lies on the CPU: " ..
    'move it, as in A:to("cpu")', function() add(there(A), 1, {device = "cpu"}) end)
refuses("operands are on different devices", function() add(A, there(A), D) end)
refuses("asks for the places of elements", function()
    map(A, function(x, i) return x + i end, D)
end)
refuses("called for each element, on the CPU: leave {device=} away", function()
    map(A, function(x) return tonumber(tostring(x)) end, D)
end)
refuses("singular values are computed where the matrix lies", function()
    norm(A, 2, D)
end)
refuses("no device is called", function() sum(A, {device = "gpu"}) end)
print "same"
