-- Products of two sparse matrices where the tests compute, against the CPU:
-- with rows of few products, of thousands and of tens of thousands, columns
-- that take more than 20 bits, all types, to the last bit.
local lu = require "luaunit"
local t = require "common"
local device = zeros(1, {device = t.device}).device

TestSparseProduct = {}

local here = {dtype = "f64", device = "cpu"}

local function places(count, size, power)
    return floor(rand(count, here):pow(power or 1) * size) + 1
end

-- power: above 1 the first rows, or columns, have more entries than others.
local function make(rows, cols, count, by_rows, by_columns)
    return sparse(places(count, rows, by_rows), places(count, cols, by_columns),
        randn(count, here), rows, cols)
end

local function as(S, dtype)
    if dtype == "c64" or dtype == "c128" then
        S = S + im * S:gt(0):f64() * 0.7
    end
    return S[dtype](S)
end

local function entries(S)
    local i, j, v = S:to("cpu"):triplets()
    return {i, j, v}
end

local function compare(S, T, what)
    local want, got = S * T, S:to(device) * T:to(device)
    lu.assertEquals(got.device, device, what)
    lu.assertEquals(got.shape, want.shape, what)
    lu.assertEquals(got.nnz, want.nnz, what)
    local a, b = entries(got), entries(want)
    for k = 1, 3 do lu.assertTrue(a[k] == b[k], what .. ", list " .. k) end
end

function TestSparseProduct.test_shapes_and_types()
    seed(21)
    local cases = {
        {1, 1, 1, 1, 1}, {5, 7, 3, 0, 4}, {5, 0, 3, 0, 0}, {40, 30, 20, 200, 150},
        {1, 5000, 300, 2500, 20000}, {3000, 2, 5, 900, 7},
        {2000, 1500, 1800, 30000, 20000}, {6, 900, 40000, 3000, 90000}}
    for _, dtype in ipairs{"f32", "f64", "c64", "c128"} do
        for _, c in ipairs(cases) do
            compare(as(make(c[1], c[2], c[4]), dtype),
                as(make(c[2], c[3], c[5]), dtype),
                table.concat(c, " ") .. " " .. dtype)
        end
    end
end

-- Products of a row: 1,024 share a tile, 4,096 fill one, others are sorted in
-- memory. A row of S has so many entries, and those of T one, or each of them
-- many.
function TestSparseProduct.test_long_rows()
    seed(22)
    local T = sparse(range(1, 40000, 1, here), places(40000, 700),
        randn(40000, here), 40000, 700)
    local i, j = {}, {}
    for row, n in ipairs{3, 0, 1023, 1024, 1025, 1, 4095, 4096, 4097, 0, 2, 30000,
        3072, 3073, 0, 20000, 5} do
        if n > 0 then
            i[#i + 1] = full(n, row, here)
            j[#j + 1] = argsort(rand(40000, here))[{{1, n}}]
        end
    end
    local S = sparse(hcat(table.unpack(i)), hcat(table.unpack(j)),
        randn(#hcat(table.unpack(i)), here), 18, 40000)
    for _, dtype in ipairs{"f32", "c128"} do
        compare(as(S, dtype), as(T, dtype), "long rows " .. dtype)
    end
    compare(as(S, "f64"), as(make(40000, 3000000, 300000), "f64"), "wide")
    local hubs = make(3000, 3000, 60000, 4, 4)
    compare(hubs, hubs, "hubs")
    compare(hubs.T, hubs, "hubs turned")
end

function TestSparseProduct.test_powers_and_numbers_that_are_none()
    seed(23)
    local S = make(300, 300, 2000)
    local there = S:to(device) ^ 3
    lu.assertTrue(there:to("cpu") == S ^ 3)
    S[{3, 4}], S[{5, 6}] = 1 / 0, 0 / 0
    local want, got = full(S * S), full(S:to(device) * S:to(device)):to("cpu")
    lu.assertTrue(isnan(want) == isnan(got))
    lu.assertTrue(where(isnan(want), 0, want) == where(isnan(got), 0, got))
end

os.exit(lu.LuaUnit.run("-o", "tap"))
