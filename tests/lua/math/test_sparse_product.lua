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

-- A matrix whose rows have so many entries, in columns by chance.
local function rows_of(lengths, cols)
    local i, j = {}, {}
    for row, n in ipairs(lengths) do
        if n > 0 then
            i[#i + 1] = full(n, row, here)
            j[#j + 1] = argsort(rand(cols, here))[{{1, n}}]
        end
    end
    local rows = hcat(table.unpack(i))
    return sparse(rows, hcat(table.unpack(j)), randn(#rows, here), #lengths, cols)
end

-- Products of a row: up to 32, 64, 128, 256, 512, 1,024 are sorted in registers,
-- up to 4,096 in shared memory, others in memory. A row of S has so many entries, and
-- those of T one, or each of them many.
function TestSparseProduct.test_lengths_of_rows()
    seed(22)
    local T = sparse(range(1, 40000, 1, here), places(40000, 700),
        randn(40000, here), 40000, 700)
    local S = rows_of({3, 0, 31, 32, 33, 1, 63, 64, 65, 0, 2, 127, 128, 129, 255,
        256, 257, 511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097, 30000,
        0, 20000, 5}, 40000)
    for _, dtype in ipairs{"f32", "f64", "c64", "c128"} do
        compare(as(S, dtype), as(T, dtype), "lengths " .. dtype)
    end
    compare(as(S, "f64"), as(make(40000, 3000000, 300000), "f64"), "wide")
    local hubs = make(3000, 3000, 60000, 4, 4)
    compare(hubs, hubs, "hubs")
    compare(hubs.T, hubs, "hubs turned")
end

-- Entries of S that meet empty rows of T, between others and alone.
function TestSparseProduct.test_entries_without_products()
    seed(24)
    local T = rows_of({0, 0, 3, 0, 40, 0, 0, 1, 0, 0, 0, 9, 0}, 50)
    T = vcat(T, sparse(5000, 50, {dtype = "f64", device = "cpu"}), T)
    local S = rows_of({1, 7, 8, 9, 16, 17, 100, 1000, 4000, 2, 33, 5, 6}, T.rows)
    compare(S, T, "few products")
    S = vcat(S, sparse(full(4100, 1, here), range(14, 4113, 1, here),
        ones(4100, here), 3, T.rows))
    compare(S, T, "none")
end

-- Columns so many that a product's place takes more than 32 bits.
function TestSparseProduct.test_many_columns()
    seed(25)
    local cols = (1 << 30) + 5
    local i, j = places(2000, 300), places(2000, 60) * 17895697
    local T = sparse(i, j, randn(2000, here), 300, cols)
    local S = rows_of({1, 3, 10, 18, 40, 70, 150, 300}, 300)
    for _, dtype in ipairs{"f32", "c128"} do
        compare(as(S, dtype), as(T, dtype), "many columns " .. dtype)
    end
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
