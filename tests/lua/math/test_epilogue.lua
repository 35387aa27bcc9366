-- A product whose result waits goes through what follows it on its way to
-- memory: with the bits of one operation after the other, in every rung, over
-- all layouts, and where results are computed a second time.
local lu = require "luaunit"
local t = require "common"
local raises = t.raises

local function fuse(how) settings{fusion = how} end

-- Equal in every bit, NaN being one value.
local function is_same(X, Y)
    return X.dtype == Y.dtype and
        all((X:eq(Y) & signbit(X):eq(signbit(Y))) | (isnan(X) & isnan(Y)))
end

-- The operations that f runs, what waits included.
local function operations(f)
    return t.operations(function()
        f()
        sync()
    end)
end

local function rungs()
    local names = {}
    for _, k in ipairs(kernel_list()) do
        if k.operation == "matmul" and k.available and k.f32 and k.name ~= "vector" then
            names[#names + 1] = k.name
        end
    end
    return names
end

-- --- bits -------------------------------------------------------------------

TestBits = {}

function TestBits:tearDown() fuse "on" end

-- What may follow a product p() of c's size.
local forms = {
    function(p, e) return p() + e.c end,
    function(p, e) return e.c - p() end,
    function(p, e) return p() - e.row end,
    function(p, e) return 2 * p() + 0.3 * e.c end,
    function(p, e) return e.c - 0.1 * p() end,
    function(p, e) return maximum(p() + e.row, 0) end,
    function(p, e) return clip(-p(), -0.25, 0.5) end,
    function(p, e) return minimum(p() * 3 - 1, e.number) end,
    function(p, e) return p() % e.c end,
    function(p, e) return 1 - p() % e.col end,
    function(p, e) return 3 - p() end,
    function(p, e) return p() + e.turned.T end,
    function(p, e) return p() + e.part end,
    function(p, e) return p() + e.column end,
    function(p, e) return p() + e.single end,
    -- and what no kernel does on the way
    function(p, e) return p() / 3 end,
    function(p, e) return tanh(p() + e.row) end,
    function(p, e) return p() + e.c + e.row end,
    function(p, e) return maximum(0, p()) end,
    function(p, e) return -(p() + e.c) end,
    function(p, e) return (p() * 2):gt(e.c) end,
    function(p, e) return mul(p(), e.c:gt(0)) end,
    function(p, e) return p() + e.double end,
    function(p, e) local x = p() return x % x + x end,
    function(p, e) return square(p()):sum(1) end,
    function(p, e) return p().T + 1 end,
}

local function operands(m, n)
    local big = rand(m + 2, n + 3, {seed = 11, dtype = "f32"}) - 0.5
    return {
        c = rand(m, n, {seed = 12, dtype = "f32"}) - 0.5,
        row = rand(1, n, {seed = 13, dtype = "f32"}) - 0.5,
        col = rand(m, 1, {seed = 14, dtype = "f32"}) - 0.5,
        turned = rand(n, m, {seed = 15, dtype = "f32"}),
        part = big[("2:%d, 3:%d"):format(m + 1, n + 2)],
        column = big[("1:%d, 2:2"):format(m)],
        single = big["1:1, 1:1"],
        double = rand(m, n, {seed = 16, dtype = "f64"}),
        number = 0.75}
end

-- Numbers of one size; of many sizes, so that split16 computes results again;
-- with NaN and Inf, so that it computes all again.
local kinds = {
    plain = function(A) return A - 0.5 end,
    wide = function(A) return mul(A - 0.5, exp(60 * (square(A) - 0.5))) end,
    broken = function(A)
        A = A - 0.5
        A[{1, 2}] = 0 / 0
        A[{2, 1}] = math.huge
        return A
    end}

local function check(kernel, kind, m, k, n, which)
    local A = kinds[kind](rand(m, k, {seed = 1, dtype = "f32"}))
    local B = rand(k, n, {seed = 2, dtype = "f32"}) - 0.4
    local e = operands(m, n)
    local function p() return matmul(A, B, {kernel = kernel}) end
    for _, i in ipairs(which) do
        fuse "off"
        local expected = forms[i](p, e)
        for _, how in ipairs{"always", "on"} do
            fuse(how)
            local actual = forms[i](p, e)
            lu.assertTrue(is_same(actual, expected),
                table.concat({kernel or "auto", kind, m, k, n, "form", i, how}, " "))
        end
    end
end

local all_forms = {}
for i = 1, #forms do all_forms[i] = i end

function TestBits:test_every_form_of_every_rung()
    for _, kernel in ipairs(rungs()) do
        check(kernel, "plain", 67, 70, 45, all_forms)
        check(kernel, "plain", 64, 128, 192, all_forms)
    end
    check(nil, "plain", 130, 200, 128, all_forms)
    check(nil, "plain", 7, 9, 5, all_forms)
end

function TestBits:test_what_is_computed_again()
    local some = {1, 4, 6, 10, 12, 13}
    for _, kind in ipairs{"wide", "broken"} do
        for _, s in ipairs{{67, 70, 45}, {64, 128, 192}, {130, 600, 260}} do
            check(nil, kind, s[1], s[2], s[3], some)
        end
        for _, kernel in ipairs(rungs()) do
            check(kernel, kind, 129, 130, 132, some)
        end
    end
end

-- Of a GPU's kernels, each way that a product is cut: small tiles and large,
-- k in slices, edges, k too short for planes.
function TestBits:test_every_way_of_a_product()
    if not t.on_gpu then return end
    local some = {1, 2, 4, 6, 10, 12, 13, 14, 15}
    for _, kernel in ipairs{"split16", "simt", "bf16", "tf32"} do
        for _, s in ipairs{{512, 512, 512}, {500, 8192, 130}, {1024, 1024, 1024},
            {1022, 300, 1026}, {1023, 96, 1025}, {2048, 2048, 2048}, {2049, 700, 2050},
            {3072, 256, 3072}, {4096, 600, 4096}, {4097, 128, 4099}, {700, 32, 900},
            {701, 33, 901}, {8192, 512, 1000}, {1536, 1536, 1536}, {2560, 512, 2560},
            {256, 4096, 256}, {128, 16384, 128}, {6000, 64, 6001}} do
            check(kernel, "plain", s[1], s[2], s[3], some)
        end
    end
    for _, s in ipairs{{512, 512, 512}, {1024, 1024, 1024}, {2049, 700, 2050},
        {4096, 600, 4096}, {500, 8192, 130}} do
        check("split16", "wide", s[1], s[2], s[3], some)
        check("split16", "broken", s[1], s[2], s[3], some)
    end
end

function TestBits:test_f64()
    local A = rand(70, 80, {seed = 1, dtype = "f64"}) - 0.5
    local B = rand(80, 90, {seed = 2, dtype = "f64"}) - 0.5
    local c = rand(70, 90, {seed = 3, dtype = "f64"})
    fuse "off"
    local expected = maximum(2 * (A * B) + c, 0.25)
    fuse "always"
    lu.assertTrue(is_same(maximum(2 * (A * B) + c, 0.25), expected))
end

-- --- what waits -------------------------------------------------------------

TestWaitingProducts = {}

function TestWaitingProducts:setUp() fuse "always" end
function TestWaitingProducts:tearDown() fuse "on" end

local function pair()
    local A = mat({{1, 2, 3}, {4, 5, 6}, {7, 8, 10}}, {dtype = "f32"})
    local B = mat({{1, 0, 2}, {0, 1, 1}, {3, 1, 0}}, {dtype = "f32"})
    return A, B, {{10, 5, 4}, {22, 11, 13}, {37, 18, 22}}
end

function TestWaitingProducts:test_one_operation()
    local A, B = pair()
    lu.assertEquals(operations(function()
        t.equals(maximum(A * B + 1, 20), {{20, 20, 20}, {23, 20, 20}, {38, 20, 23}})
    end), "matmul, add, maximum")
    lu.assertEquals(operations(function()
        local s = 2 * (A * B)
        sync()
        t.equals(s, {{20, 10, 8}, {44, 22, 26}, {74, 36, 44}})
    end), "matmul, mul")
    lu.assertEquals(operations(function()
        local _ = (A * B + 1):sum()
    end), "matmul, add; sum")
end

function TestWaitingProducts:test_nothing_is_done_for_what_is_dropped()
    local A, B = pair()
    lu.assertEquals(operations(function()
        local p = A * B
        p = nil
        collectgarbage()
    end), "")
end

function TestWaitingProducts:test_a_product_is_done_once()
    local A, B, AB = pair()
    local p, s, u
    lu.assertEquals(operations(function()
        p = A * B
        s, u = p + 1, p * 2
    end), "add; matmul; mul")
    t.equals(p, AB)
    t.equals(s - 1, AB)
    t.equals(u / 2, AB)
    lu.assertEquals(operations(function()
        s = A * B + 1
        u = s * 2
    end), "matmul, add; mul")
    t.equals(s - 1, AB)
    t.equals(u / 2 - 1, AB)
    lu.assertEquals(operations(function()
        local q = A * B
        s, u = q + 1, q * 2
        q = nil
    end), "add; matmul; mul")
    t.equals(s - 1, AB)
    t.equals(u / 2, AB)
end

function TestWaitingProducts:test_products_run_in_their_order()
    local A, B, AB = pair()
    lu.assertEquals(operations(function()
        local s = A * B
        s = B * A + s
        sync()
        t.equals(s, {{25, 23, 27}, {33, 24, 29}, {44, 29, 37}})
    end), "matmul; matmul, add")
    lu.assertEquals(operations(function()
        local s = (A * B + 1) * eye(3, {dtype = "f32"}) - 1
        t.equals(s, AB)
    end):gsub("eye; ?", ""), "matmul, add; matmul, sub")
end

function TestWaitingProducts:test_writes_come_after_what_reads()
    for _, write in ipairs{
        function(A) A[{1, 1}] = 100 end, function(A) A:add_(1) end,
        function(A) A[1]:mul_(0) end, function(A) A.T[{2, 1}] = 5 end,
        function(A) A:free() end} do
        local A, B, AB = pair()
        local p, s = A * B, nil
        write(A)
        t.equals(p, AB)
        A, B = pair()
        lu.assertEquals(operations(function()
            s = A * B + 1
            write(B)
        end):match("matmul, add") or "none", "matmul, add")
        t.equals(s - 1, AB)
        local c
        A, B = pair()
        c = mat({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, {dtype = "f32"})
        s = A * B - c
        write(c)
        t.equals(s, {{9, 3, 1}, {18, 6, 7}, {30, 10, 13}})
    end
end

function TestWaitingProducts:test_results_that_are_written_to_or_viewed()
    local A, B, AB = pair()
    local p = A * B
    p[{1, 1}] = 0
    t.equals(p, {{0, 5, 4}, AB[2], AB[3]})
    p = A * B
    t.equals(p.T + 0, {{10, 22, 37}, {5, 11, 18}, {4, 13, 22}})
    p = A * B
    t.equals(p[2], AB[2])
    p = A * B
    p:add_(p)
    t.equals(p / 2, AB)
    local c = ones(3, 3, {dtype = "f32"})
    c:add_(A * B)
    t.equals(c - 1, AB)
    matmul(A, B, {out = c, beta = 1})
    t.equals(c - 1, {{20, 10, 8}, {44, 22, 26}, {74, 36, 44}})
    A = A * B
    A = A * B
    t.equals(A, {{22, 9, 25}, {61, 24, 55}, {103, 40, 92}})
end

function TestWaitingProducts:test_errors_stand_where_they_are_written()
    local A = pair()
    raises(function()
        local p = A * ones(2, 2)
        error("not reached")
    end, "3")
    raises(function()
        local p = matmul(A, A, {kernel = "none"})
        error("not reached")
    end, "no kernel is called 'none'")
    raises(function()
        local p = A * A + ones(2, 2)
        error("not reached")
    end, "shapes differ")
end

function TestWaitingProducts:test_checks()
    local A, B, AB = pair()
    checking(true)
    lu.assertEquals(operations(function()
        local s = A * B + 1
        t.equals(s - 1, AB)
    end):match "^add, sub; matmul" , "add, sub; matmul")
    local p = A * B
    local s = p + 1
    checking(false)
    t.equals(s - 1, AB)
end

function TestWaitingProducts:test_times_are_of_work_done()
    local A, B = pair()
    local function often()
        for _ = 1, 10 do local _ = A * B + 1 end
    end
    lu.assertEquals(timing(often).operations, 10)
    lu.assertEquals(operations(function() timed(often) end),
        ("matmul, add; "):rep(10):sub(1, -3))
end

function TestWaitingProducts:test_finalisers_may_multiply()
    local A, B, AB = pair()
    local seen = 0
    for i = 1, 30 do
        setmetatable({}, {__gc = function()
            seen = seen + ((A * B):sum() == 142 and 1 or 0)
        end})
        local s = A * B + i
        t.equals(s - i, AB)
    end
    collectgarbage()
    collectgarbage()
    lu.assertEquals(seen, 30)
end

function TestWaitingProducts:test_collector_that_is_stopped()
    local A, B, AB = pair()
    collectgarbage("stop")
    t.equals(A * B + 1 - 1, AB)
    collectgarbage("restart")
    collectgarbage("incremental")
    t.equals((A * B + 1) * 2 / 2 - 1, AB)
    collectgarbage("generational")
end

-- Without a wish only a GPU's products wait, and none that are small.
function TestWaitingProducts:test_settings()
    local A, B, AB = pair()
    local function work() t.equals(A * B + 1 - 1, AB) end
    fuse "on"
    lu.assertEquals(operations(work), t.on_gpu and "add, sub; matmul" or "add; matmul; sub")
    fuse "off"
    lu.assertEquals(operations(work), "add; matmul; sub")
    fuse "always"
    local p = A * B
    fuse "off"
    t.equals(p, AB)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
