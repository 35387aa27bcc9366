-- Elements by rank, and sorts, of lines of every length that some kernel is
-- for: as a sort on the CPU has them.
local lu = require "luaunit"
local t = require "common"
local on = {device = t.device}

local inf, nan = t.inf, t.nan

-- Elements of every kind: spread out, equal, few, clustered, and the special.
local kinds = {}
function kinds.uniform(m, n, o) return rand(m, n, o) end
function kinds.normal(m, n, o) return randn(m, n, o) * 1e6 end
function kinds.equal(m, n, o) return rand(m, n, o) * 0 + 7 end
function kinds.few(m, n, o) return floor(rand(m, n, o) * 3) - 1 end
function kinds.clusters(m, n, o)
    local A = rand(m, n, o)
    return where(A:lt(0.3), A / 1e8 + 1, -A / 1e8 - 1)
end
function kinds.rising(m, n, o)
    return range(1, m * n, 1, {dtype = o.dtype, device = o.device}):reshape(
        m, n) / 3
end
function kinds.infinite(m, n, o)
    local A = rand(m, n, o)
    return where(A:lt(0.2), -inf, where(A:gt(0.8), inf, A))
end
function kinds.zeros(m, n, o)
    local A = rand(m, n, o) - 0.5
    return where(abs(A):lt(0.3), A * 0, A)
end
function kinds.nans(m, n, o)
    local A = rand(m, n, o)
    return where(A:lt(0.001), nan, A)
end
local names = {}
for name in pairs(kinds) do names[#names + 1] = name end
table.sort(names)

local function made(kind, m, n, dtype, seed)
    return kinds[kind](m, n, {dtype = dtype, seed = seed, device = "cpu"})
end

-- Are two matrices equal where numbers are compared, NaN with NaN?
local function same(A, B)
    A, B = A:to "cpu", B:to "cpu"
    return (A:eq(B) | (A:isnan() & B:isnan())):all()
end

local shares = {0, 0.1, 0.25, 0.5, 0.5001, 0.9, 1}

-- The elements of each column that quantile finds there.
local function lower(sorted, n, axis)
    local list = {}
    for i, q in ipairs(shares) do list[i] = math.floor(q * (n - 1)) + 1 end
    local places = vec(list, {dtype = "f64", device = "cpu"})
    return axis == 1 and sorted[{places, {}}] or sorted[{{}, places}]
end

-- With a NaN in it a line gives NaN.
local function spread(A, B, axis)
    local has_nan = A:isnan():any(axis)
    return where(has_nan, nan, B)
end

local function compare(A, axis, what)
    local n = axis == 1 and A.rows or A.cols
    local there = A:to(t.device)
    local want = spread(A, lower(sort(A, axis), n, axis), axis)
    local got = quantile(there, shares, {axis = axis, method = "lower"})
    lu.assertTrue(same(got, want), what .. ": quantile")
    local middle = median(there, axis)
    local sorted = sort(A, axis)
    local i, j = (n + 1) // 2, n // 2 + 1
    local low = axis == 1 and sorted:row(i) or sorted:col(i)
    local high = axis == 1 and sorted:row(j) or sorted:col(j)
    local mean = spread(A, low / 2 + high / 2, axis):flatten()
    middle = middle:to "cpu":flatten()
    lu.assertTrue(close(middle, mean, 1e-6) or same(middle, mean),
        what .. ": median")
end

TestRanks = {}

function TestRanks:test_lines_of_every_length()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, s in ipairs{{3, 1}, {5, 2}, {40, 31}, {70, 32}, {9, 1000},
            {17, 1024}, {3, 1025}, {2, 5000}, {1, 12288}, {2, 12289},
            {2, 60000}} do
            for k, kind in ipairs(names) do
                local A = made(kind, s[1], s[2], dtype, k)
                local what = ("%s %s %dx%d"):format(kind, dtype, s[1], s[2])
                compare(A, 2, what .. " along rows")
                compare(A.T, 1, what .. " along columns")
                if s[1] > 3 then compare(A, 1, what .. " across") end
            end
        end
    end
end

function TestRanks:test_long_lines()
    for _, dtype in ipairs{"f32", "f64"} do
        for k, kind in ipairs(names) do
            for _, n in ipairs{131072, 300001} do
                compare(made(kind, 1, n, dtype, k), 2,
                    ("%s %s %d"):format(kind, dtype, n))
            end
            compare(made(kind, 2, 140000, dtype, k), 2, kind .. " two lines")
        end
    end
end

function TestRanks:test_views()
    local A = made("normal", 401, 701, "f32", 5)
    local there = A:to(t.device)
    for _, part in ipairs{"3:400:2, 5:700:3", "-1:1:-1, -1:1:-2", ":, 7:7",
        "9:9, :", "2:301, 2:701"} do
        for axis = 1, 2 do
            compare(A[part], axis, part .. " by " .. axis)
            local got = median(there[part], axis)
            lu.assertTrue(same(got, median(A[part]:clone(), axis)), part)
        end
        local all = quantile(there[part], 0.3, {method = "lower"})
        local flat = sort(A[part]:flatten())
        lu.assertEquals(all, flat[math.floor(0.3 * (#flat - 1)) + 1], part)
    end
    -- A vector with gaps, longer than what one block takes.
    local v = made("uniform", 1, 600000, "f64", 3)[1]
    local odd = v["1:600000:2"]
    lu.assertEquals(quantile(v:to(t.device)["1:600000:2"], 0.7,
        {method = "lower"}), sort(odd:clone())[math.floor(0.7 * (#odd - 1)) + 1])
end

-- NaN that are left out, and more places than are found together.
function TestRanks:test_nan_and_many_places()
    local A = made("nans", 3, 200000, "f32", 9)
    local there = A:to(t.device)
    local got = quantile(there, 0.5, {axis = 2, nan = "skip", method = "lower"})
    for i = 1, 3 do
        local row = A[i]
        row = sort(row[~row:isnan()])
        lu.assertEquals(got:flatten()[i], row[math.floor(0.5 * (#row - 1)) + 1])
    end
    local v = made("uniform", 1, 200000, "f32", 2)[1]
    local many = {}
    for i = 1, 40 do many[i] = i / 41 end
    local sorted = sort(v)
    local list = quantile(v:to(t.device), many, {method = "lower"})
    for i, q in ipairs(many) do
        lu.assertEquals(list[i], sorted[math.floor(q * (#v - 1)) + 1])
    end
    local places = {} -- near each other: in one interval, of another pair
    for i = 1, 11 do places[i] = 0.5 + i / 200000 end
    list = quantile(v:to(t.device), places, {method = "lower"})
    for i, q in ipairs(places) do
        lu.assertEquals(list[i], sorted[math.floor(q * (#v - 1)) + 1])
    end
end

function TestRanks:test_first_elements()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, kind in ipairs(names) do
            local v = made(kind, 1, 150000, dtype, 4)[1]
            for _, k in ipairs{1, 1000, 60000} do
                for _, smallest in ipairs{true, false} do
                    local got, places = topk(v:to(t.device), k,
                        {smallest = smallest, places = true})
                    local want, order = sort(v,
                        {descending = not smallest, places = true})
                    local what = table.concat({kind, dtype, k}, " ")
                    lu.assertTrue(same(got, want[{{1, k}}]), what)
                    lu.assertTrue(same(places, order[{{1, k}}]), what)
                end
            end
            local A = made(kind, 20, 9000, dtype, 4)
            for axis = 1, 2 do
                local B = axis == 2 and A or A.T
                local got = topk(B:to(t.device), 40, {axis = axis})
                local want = sort(B, axis, {descending = true})
                want = axis == 1 and want["1:40, :"] or want[":, 1:40"]
                lu.assertTrue(same(got, want), kind .. " lines")
            end
        end
    end
end

-- Lines for every kernel, in rows of even and odd lengths, with as many first
-- elements as one takes and more; ties and NaN in the order of the source.
function TestRanks:test_first_elements_of_lines()
    local shapes = {{300, 5}, {40, 33}, {33, 128}, {10, 1000}, {9, 1026},
        {6, 12288}, {5, 12290}, {3, 60000}}
    for i, shape in ipairs(shapes) do
        local m, n = shape[1], shape[2]
        for j, kind in ipairs(names) do
            local dtype = (i + j) % 2 == 0 and "f32" or "f64"
            local A = made(kind, m, n, dtype, i)
            for _, k in ipairs{1, 3, 10, 16, 33, 128, 129, 600, 1024} do
                local k = math.min(k, n)
                local options = {axis = 2, smallest = (i + j + k) % 2 == 0,
                    places = true}
                local want, order = sort(A, 2,
                    {descending = not options.smallest, places = true})
                local first = {{}, {1, k}}
                local got, places = topk(A:to(t.device), k, options)
                local what = table.concat({kind, dtype, m, n, k}, " ")
                lu.assertTrue(same(got, want[first]), what)
                lu.assertTrue(same(places, order[first]), what)
                options.axis, options.places = 1, false
                got = topk(A:to(t.device).T, k, options)
                lu.assertTrue(same(got, want[first].T), what .. " turned")
            end
        end
    end
end

-- The bits of a vector's numbers.
local function bits(v)
    local list = {}
    for i, x in ipairs(v:to "cpu":totable()) do
        list[i] = string.pack(v.dtype == "f64" and "d" or "f", x)
    end
    return table.concat(list)
end

-- Zeros and NaN of both signs stay in their order, wherever a line lies.
function TestRanks:test_sorts_of_lines()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, n in ipairs{1, 2, 300, 5000, 70000} do
            local minus = made("uniform", 1, n, dtype, n)[1]
            local odd = {
                zeros = where(minus:lt(0.3), -0.0, where(minus:lt(0.6), 0.0,
                    minus - 0.8)),
                nans = where(minus:lt(0.3), nan, where(minus:lt(0.6),
                    neg(zeros(n, {dtype = dtype, device = "cpu"}) + nan), minus)),
                all = where(minus:lt(0.5), minus * -nan, minus * nan),
                plain = minus - 0.5}
            for name, v in pairs(odd) do
                local there = v:to(t.device)
                local what = name .. " " .. dtype .. " " .. n
                for _, descending in ipairs{false, true} do
                    local how = {descending = descending}
                    local places = argsort(v, how)
                    local want = v[places]
                    lu.assertEquals(bits(sort(there, how)), bits(want), what)
                    -- As a column, and with gaps.
                    local wide = zeros(n, 3, {dtype = dtype, device = t.device})
                    wide[{{}, 2}] = there
                    lu.assertEquals(bits(sort(wide[{{}, 2}], how)), bits(want),
                        what)
                end
            end
        end
    end
end

-- By lists of both types that hold places, of vectors of every type.
function TestRanks:test_elements_by_lists()
    for _, dtype in ipairs{"f32", "f64", "bool"} do
        local v = rand(70001, {seed = 1, device = "cpu"}):gt(0.4)
        if dtype ~= "bool" then
            v = rand(70001, {seed = 2, dtype = dtype, device = "cpu"})
        end
        for _, n in ipairs{1, 5, 1023, 1024, 1025, 90000} do
            for _, of in ipairs{"f32", "f64"} do
                local list = randint(1, 70001, n, {seed = n, dtype = of,
                    device = "cpu"})
                list = where(list:lt(100), -list, list)
                local want = v[list]
                local there = v:to(t.device)[list:to(t.device)]
                lu.assertTrue(there:to "cpu":eq(want):all(), dtype .. of .. n)
                local gaps = vcat(v:row(), v:row()).T:flatten()
                local even = gaps:to(t.device)["1:140002:2"]
                lu.assertTrue(even[list:to(t.device)]:to "cpu":eq(want):all())
            end
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
