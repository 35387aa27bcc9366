-- Printing: every rule, against what the screen must show at 80 columns.
local lu = require "luaunit"
local inf, nan = math.huge, 0 / 0
local device = zeros(1).device

-- The text of A, and expected lines with the device's name put in for @.
local function shows(A, ...)
    local expected = table.concat({...}, "\n"):gsub("@", device)
    lu.assertEquals(tostring(A), expected)
end

local function f64(t)
    return mat(t, {dtype = "f64"})
end

TestMatrix = {}

function TestMatrix:test_integers_are_plain()
    shows(mat{{1, 2, 3}, {4, 5, 6}}, "f32 2x3  @  24 B",
        "  1  2  3",
        "  4  5  6")
end

function TestMatrix:test_each_column_for_itself()
    shows(mat{{0.2, 4, -0.5}, {2, 0, 1.1}}, "f32 2x3  @  24 B",
        "  0.2  4  -0.5",
        "  2.0  0   1.1")
end

function TestMatrix:test_mixed_magnitudes()
    shows(f64{{12345.678, 1.2e-4, 1}, {3.2, -2.5, 0}, {-1e-3, 1e-9, 1e7}},
        "f64 3x3  @  72 B",
        "    12345.7  1.20e-04         1",
        "        3.2   -2.5000         0",
        "  -1.00e-03  1.00e-09  10000000")
end

function TestMatrix:test_nan_and_inf()
    shows(mat{{1.5, nan, 2}, {inf, 0, -3.25}, {-inf, 1e-12, 4}},
        "f32 3x3  @  36 B   1 NaN, 2 Inf",
        "   1.5       NaN   2.00",
        "   Inf       0    -3.25",
        "  -Inf  1.00e-12   4.00")
    shows(full(2, 2, nan), "f32 2x2  @  16 B   4 NaN",
        "  NaN  NaN",
        "  NaN  NaN")
    shows(mat{{-inf}}, "f32 1x1  @  4 B   1 Inf", "  -Inf")
end

function TestMatrix:test_zeros()
    shows(f64{{-0.0, 0}}, "f64 1x2  @  16 B", "  -0  0")
    shows(f64{{-0.0}, {0}, {0.25}}, "f64 3x1  @  24 B",
        "  -0   ",
        "   0   ",
        "   0.25")
end

function TestMatrix:test_extremes()
    shows(f64{{5e-324}, {2.2250738585072014e-308}, {1.7976931348623157e308}},
        "f64 3x1  @  24 B",
        "  4.9407e-324",
        "  2.2251e-308",
        "  1.7977e+308")
    shows(mat{{1e-45, 3.4028235e38}}, "f32 1x2  @  8 B",
        "  1.4013e-45  3.4028e+38")
end

function TestMatrix:test_large_numbers()
    shows(f64{{999999.5}, {1e6 + 0.5}, {-3.5}}, "f64 3x1  @  24 B",
        "  999999.5",
        "  1.00e+06",
        "      -3.5")
    shows(f64{{1e15}, {999999999999999}, {-1}}, "f64 3x1  @  24 B",
        "         1.00e+15",
        "  999999999999999",
        "               -1")
end

function TestMatrix:test_digits()
    shows(f64{{0.5566}, {-0.2559}}, "f64 2x1  @  16 B",
        "   0.5566",
        "  -0.2559")
    shows(f64{{0.0123456}, {0.05}}, "f64 2x1  @  16 B",
        "  0.012346",
        "  0.050000")
    shows(f64{{1.00001}, {2}}, "f64 2x1  @  16 B", "  1.0", "  2.0")
    shows(f64{{99999.96}, {0.96}, {0.04}}, "f64 3x1  @  24 B",
        "  100000.0",
        "       1.0",
        "  4.00e-02")
end

function TestMatrix:test_empties()
    shows(zeros(3, 0), "f32 3x0  (empty)")
    shows(zeros(0, 4), "f32 0x4  (empty)")
    shows(zeros(0), "f32 vector 0  (empty)")
end

function TestMatrix:test_masks()
    shows(mat{{1, 2}, {3, 0}}:gt(1), "bool 2x2  @  4 B", "  0  1", "  1  0")
end

function TestMatrix:test_views_show_their_own_elements()
    local A = mat{{1, 2, 3}, {4, 5, 6}}
    shows(A.T, "f32 3x2  @  24 B", "  1  4", "  2  5", "  3  6")
    shows(A["2,:"], "f32 vector 3  @  12 B", "  4  5  6")
    shows(A["::-1, 1:2"], "f32 2x2  @  16 B", "  4  5", "  1  2")
end

function TestMatrix:test_released()
    local A = ones(2, 2)
    A:free()
    lu.assertEquals(tostring(A), "freed matrix")
end

function TestMatrix:test_bytes()
    lu.assertStrContains(tostring(zeros(256)), "  1.0 KiB\n")
    lu.assertStrContains(tostring(zeros(255)), "  1020 B\n")
    lu.assertStrContains(tostring(zeros(512, 1024)), "  2.0 MiB\n")
end

TestCut = {}

local function lines(A)
    local list = {}
    for line in (tostring(A) .. "\n"):gmatch("(.-)\n") do
        list[#list + 1] = line
    end
    return list
end

function TestCut:test_all_rows_when_they_fit()
    lu.assertEquals(#lines(ones(18, 2)), 19)
    lu.assertEquals(#lines(ones(19, 2)), 1 + 1 + 4 + 1 + 2 + 1)
end

function TestCut:test_rows()
    local A = fromfn(100, 2, function(i, j) return i * j end)
    shows(A, "f32 100x2  @  800 B",
        "         1    2",
        "    1    1    2",
        "    2    2    4",
        "    3    3    6",
        "    4    4    8",
        "    ⋮    ⋮    ⋮",
        "   99   99  198",
        "  100  100  200",
        "  hidden: 188 of 200, no NaN or Inf")
end

function TestCut:test_columns()
    local A = fromfn(2, 50, function(i, j) return i * 100000 + j end)
    shows(A, "f32 2x50  @  400 B",
        "          1       2       3       4       5       6       7" ..
        "         49      50",
        "  1  100001  100002  100003  100004  100005  100006  100007" ..
        "  …  100049  100050",
        "  2  200001  200002  200003  200004  200005  200006  200007" ..
        "  …  200049  200050",
        "  hidden: 82 of 100, no NaN or Inf")
end

function TestCut:test_corners()
    local A = fromfn(40, 40, function(i, j) return (i - j) / 4 end)
    local l = lines(A)
    lu.assertEquals(#l, 10)
    lu.assertStrContains(l[2], "1      2 ")
    lu.assertStrContains(l[7], "⋱")
    lu.assertStrMatches(l[9], "  40 .*  0   ")
    for i = 1, #l do
        lu.assertTrue(utf8.len(l[i]) <= 80)
    end
end

function TestCut:test_what_is_hidden()
    local A = zeros(1000, 3)
    A[{500, 2}] = nan
    A[{600, 1}] = -inf
    A[{601, 3}] = inf
    local l = lines(A)
    lu.assertEquals(l[#l],
        "  hidden: 2 982 of 3 000, 1 NaN, 2 Inf (first at [500, 2])")
    A[{1, 1}] = nan -- shown, so not counted
    l = lines(A)
    lu.assertEquals(l[#l],
        "  hidden: 2 982 of 3 000, 1 NaN, 2 Inf (first at [500, 2])")
    l = lines(A.T)
    lu.assertStrContains(l[#l], "(first at [1, 600])")
end

function TestCut:test_hidden_beside_the_corners()
    local A = zeros(100, 100)
    A[{2, 50}], A[{99, 50}] = inf, nan
    local l = lines(A)
    lu.assertStrContains(l[#l], "1 NaN, 1 Inf (first at [2, 50])")
    A[{2, 50}] = 0
    l = lines(A)
    lu.assertStrContains(l[#l], "1 NaN (first at [99, 50])")
end

function TestCut:test_masks()
    local l = lines(zeros(100, 2):eq(0))
    lu.assertEquals(l[#l], "  hidden: 188 of 200")
end

function TestCut:test_little_is_downloaded()
    if not stats then
        return
    end
    for _, A in ipairs{zeros(3000, 3000), zeros(3000, 3000).T, zeros(1e6)} do
        local before = stats().downloaded
        tostring(A)
        lu.assertTrue(stats().downloaded - before <= 65536)
    end
end

TestVector = {}

function TestVector:test_one_line()
    shows(vec{0.1, 0.2, 1}, "f32 vector 3  @  12 B", "  0.1  0.2  1.0")
end

function TestVector:test_lines_begin_with_an_index()
    shows(range(1, 30), "f32 vector 30  @  120 B",
        "   1   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15" ..
        "  16  17  18  19",
        "  20  20  21  22  23  24  25  26  27  28  29  30")
end

function TestVector:test_long()
    local v = range(1, 1000)
    v[500] = nan
    shows(v, "f32 vector 1000  @  3.9 KiB",
        "     1     1     2     3     4     5     6     7     8     9    10" ..
        "    11    12",
        "    13    13    14    15    16    17    18    19    20    21    22" ..
        "    23    24",
        "    25    25    26    27    28    29    30    31    32    33    34" ..
        "    35    36",
        "    37    37    38    39    40    41    42    43    44    45    46" ..
        "    47    48",
        "     ⋮",
        "   985   985   986   987   988   989   990   991   992   993   994" ..
        "   995   996",
        "   997   997   998   999  1000",
        "  hidden: 936 of 1 000, 1 NaN (first at [500])")
end

function TestVector:test_cells_alone()
    shows(vec({1.5, 1e-9, nan, 0, 2e7}, {dtype = "f64"}),
        "f64 vector 5  @  40 B   1 NaN",
        "       1.5  1.00e-09       NaN       0    2.00e+07")
end

TestLocales = {}

-- What the program prints for an expression, with these variables set. Those
-- that name a locale are empty otherwise, which is as if they were not there.
local function printed(variables, expression)
    local pipe <close> = io.popen(("LC_ALL= LC_CTYPE= LANG= %s '%s' " ..
        "--device %s -p '%s' 2>&1"):format(variables, os.getenv "LUMAT",
        os.getenv "LUMAT_TEST_DEVICE" or "cpu", expression))
    return pipe:read "a"
end

-- A machine of which nobody said what it shows is given ASCII.
function TestLocales:test_ascii()
    local function gives(expression, ...)
        lu.assertEquals(printed("", expression),
            table.concat({...}, "\n"):gsub("@", device) .. "\n")
    end
    gives("fromfn(100, 2, function(i, j) return i * j end)",
        "f32 100x2  @  800 B",
        "         1    2",
        "    1    1    2",
        "    2    2    4",
        "    3    3    6",
        "    4    4    8",
        "    :    :    :",
        "   99   99  198",
        "  100  100  200",
        "  hidden: 188 of 200, no NaN or Inf")
    gives("sparse(mat{{0, 7}, {0, 0}})", "f32 2x2 sparse csr  @  nnz 1 (25 %)  20 B",
        "  .  7", "  .  .")
    gives("hist(vec{1, 2, 2}, 2)", "f32 vector 3  @  12 B",
        "    1 .. 1.5 |" .. ("#"):rep(32) .. " 1",
        "  1.5 ..   2 |" .. ("#"):rep(63) .. " 2")
end

-- None of what draws or cuts forgets it.
function TestLocales:test_all_is_ascii()
    for _, expression in ipairs{"range(1, 1000)", "sparse(eye(1000))",
        "inspect(rand(50, 50))", "heat(rand(50, 50))", "spy(eye(50))",
        "hist(rand(50))", "plot(math.sin, 0, 6)", "plot(rand(50))",
        "race(rand(50, 50), rand(50, 50))", "mem()"} do
        local text = printed("LC_ALL=C", expression)
        lu.assertNil(text:find "[\128-\255]", text)
        lu.assertNotStrContains(text, "error:")
    end
end

-- The first of three variables decides, and what it says of the characters
-- also where the machine has no such locale.
function TestLocales:test_which()
    for variables, is_utf8 in pairs{[""] = false, ["LANG=C"] = false,
        ["LANG=C.UTF-8"] = true, ["LANG=xx_XX.UTF-8"] = true,
        ["LANG=xx_XX.utf8@euro"] = true, ["LANG=xx_XX.ISO-8859-1"] = false,
        ["LANG=xx_XX"] = false, ["LC_CTYPE=xx_XX.UTF-8 LANG=C"] = true,
        ["LC_CTYPE=C LANG=xx_XX.UTF-8"] = false,
        ["LC_ALL=C LC_CTYPE=xx_XX.UTF-8 LANG=C.UTF-8"] = false} do
        local text = printed(variables, "range(1, 1000)")
        lu.assertEquals(text:find("⋮", 1, true) ~= nil, is_utf8, variables)
    end
end

TestProperty = {}

-- A printed 0 is an exact zero, and every other cell is within 5 % of its
-- value.
function TestProperty:test_no_value_is_lost()
    seed(7)
    for round = 1, 200 do
        local values = {}
        for i = 1, 8 do
            local size = 10.0 ^ math.random(-12, 12)
            values[i] = {math.random(4) == 1 and 0.0
                or (math.random() - 0.5) * size}
        end
        local l = lines(f64(values))
        for i = 1, 8 do
            local text, x = l[i + 1]:match("%S+"), values[i][1]
            lu.assertEquals(text == "0" or text == "-0", x == 0)
            lu.assertTrue(math.abs(tonumber(text) - x)
                <= 0.05 * math.abs(x), text)
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
