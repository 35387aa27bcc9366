-- LUMAT_FAKE_DEVICES=3 LUMAT_FAULT=off lumat together.lua: what several GPUs make
-- together of matrices in the host's memory has the bits of one, and what goes
-- wrong on one of them is one error. Says "same", and before that what is not.
local faults = require "lumat.faults"
local drawn = 0

local function draw(m, n, dtype)
    drawn = drawn + 1
    return rand(m, n, {seed = drawn, device = "cpu", dtype = dtype}) - 0.25
end

local function is_same(a, b)
    if type(a) ~= "userdata" then return a == b or a ~= a and b ~= b end
    return a.device == "cpu" and a.dtype == b.dtype and a.rows == b.rows and
        a.cols == b.cols and all(eq(a, b) | (isnan(a) & isnan(b)))
end

local function check(what, a, b)
    if not is_same(a, b) then print("WRONG", what, a, b) end
end

local teams = {{"cuda:0"}, {"cuda:2", "cuda"}, {"cuda:0", "cuda:1", "cuda:2"}}

-- f(device) by one GPU, and by one, two and three in a list.
local function compare(what, f)
    local expected = f "cuda:1"
    for _, team in ipairs(teams) do
        check(what .. " by " .. #team, f(team), expected)
    end
    return expected
end

local function near(what, a, b)
    if not close(a, b, 1e-4) then print("WRONG", what, "far from the CPU's") end
end

for _, dtype in ipairs{"f32", "f64"} do
    for _, s in ipairs{{1, 1, 1}, {7, 5, 9}, {129, 70, 257}, {1, 300, 33},
        {200, 1, 3}, {33, 1200, 20}} do
        local m, k, n = table.unpack(s)
        local A, B = draw(m, k, dtype), draw(k, n, dtype)
        local At, Bt = A.T:clone().T, B.T:clone().T
        local wide, tall = draw(2 * m, k + 3, dtype), draw(k, 3 * n, dtype)
        local every = wide["1:" .. 2 * m .. ":2, 2:" .. k + 1]
        local third = tall[{{}, {1, 3 * n, 3}}]
        local C = draw(m, n, dtype)
        near("product", compare("product", function(d)
            return matmul(A, B, {device = d})
        end), A * B)
        compare("transposed", function(d) return matmul(At, Bt, {device = d}) end)
        near("strided", compare("strided", function(d)
            return matmul(every, third, {device = d})
        end), every * third)
        compare("with a vector", function(d)
            return matmul(A, B[{{}, 1}], {device = d})
        end)
        near("added", compare("added", function(d)
            return matmul(A, B, {device = d, alpha = 2, beta = -1,
                out = C:clone()})
        end), 2 * (A * B) - C)
        compare("sum", function(d) return A:sum{device = d} end)
        compare("sum of columns", function(d)
            return A:sum{axis = 1, device = d}
        end)
        compare("place", function(d) return A:argmax{device = d} end)
        compare("places", function(d)
            return wide:argmin{axis = 2, device = d}
        end)
        compare("norm", function(d) return norm(A, {device = d}) end)
        compare("elements", function(d) return atan2(A, At, {device = d}) end)
        compare("map", function(d)
            return map(A, At, function(x, y) return x * y + 1 end, {device = d})
        end)
    end
end
for _, s in ipairs{{0, 3, 4}, {3, 0, 4}, {3, 4, 0}} do
    local A = zeros(s[1], s[2], {device = "cpu"})
    local B = zeros(s[2], s[3], {device = "cpu"})
    compare("empty", function(d) return matmul(A, B, {device = d}) end)
    compare("empty", function(d) return add(A, A, {device = d}) end)
end

-- --- what is told -------------------------------------------------------------

profile("on")
matmul(ones(90, 80), ones(80, 70), {device = teams[3]})
profile("off")
local seen = {}
for _, r in ipairs(profile().operations) do
    if r.operation == "matmul" then
        seen[#seen + 1] = r.devices .. " " .. r.device
    end
end
check("the profile", table.concat(seen, ", "), "3 cuda:0")

-- --- what is refused -----------------------------------------------------------

local function refuses(text, f)
    local ok, why = pcall(f)
    if ok or not tostring(why):find(text, 1, true) then
        print("WRONG", text, why)
    end
end
local A, B = draw(90, 80), draw(80, 70)
local function product(team) return matmul(A, B, {device = team}) end
refuses("device: the list names no GPU", function() product{} end)
refuses("device: a list is of GPUs, and cpu is none", function()
    product{"cuda:0", "cpu"}
end)
refuses("device: cuda:0 stands twice in the list", function()
    product{"cuda", "cuda:0"}
end)
refuses("no device cuda:3: there are 3 GPUs", function() product{"cuda:3"} end)
refuses("device: a list has names such as cuda:0, not 1", function()
    product{1, 2}
end)
refuses("lies on cuda:0, and cuda:0, cuda:1 compute what lies on the CPU",
    function() matmul(A:to "cuda", B, {device = {"cuda:0", "cuda:1"}}) end)
refuses("device is 3, expected a device such as", function() product(3) end)

-- --- what goes wrong on one of them ---------------------------------------------

local all_three = teams[3]
local expected = product "cuda:0"
local function held()
    collectgarbage()
    local bytes = 0
    for _, name in ipairs(all_three) do bytes = bytes + memory(name).live end
    return bytes
end
local before = held()
for _, call in ipairs{"cudaMemcpyAsync", "cudaLaunchKernel", "cudaEventRecord",
    "cudaMallocAsync", "cudaStreamWaitEvent"} do
    faults.arm "off"
    product(all_three)
    local calls = faults.calls()[call]
    if calls < 3 then print("WRONG", call, calls, "are few") end
    local errors = 0
    for n = 1, calls do
        faults.arm(call .. ":" .. n .. ":once")
        local ok, got = pcall(product, all_three)
        if ok then check(call .. " " .. n, got, expected) end
        errors = errors + (ok and 0 or 1)
        faults.arm "off"
        check("after " .. call .. " " .. n, product(all_three), expected)
    end
    if errors == 0 and call ~= "cudaMallocAsync" then
        print("WRONG", call, "never fails")
    end
end
if held() ~= before then print("WRONG", "held", before, held()) end

-- The second that works is lost: the others go on, and so does the CPU.
faults.arm "cudaLaunchKernel:2:once:719"
local ok, why = pcall(product, {"cuda:0", "cuda:1"})
faults.arm "off"
if ok or not why:find "cuda:1 failed: .*its matrices are lost" then
    print("WRONG", "lost", ok, why)
end
check("by the others", product{"cuda:0", "cuda:2"}, expected)
refuses("cuda:1 failed earlier and is lost", function() product(all_three) end)
near("by the CPU", A * B, expected)
print "same"
