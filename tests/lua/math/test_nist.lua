-- Least squares and moments by NIST's Statistical Reference Datasets, whose
-- answers are certified to 15 digits (linear regression, and NumAcc of the
-- univariate ones). Digits that agree are NIST's log relative error.
local lu = require "luaunit"
local t = require "common"
local f64 = {dtype = "f64"}
warn("@off")

local function pairs_of(list)
    local A = vec(list, f64):reshape(#list // 2, 2)
    return A[{{}, 2}]:clone(), A[{{}, 1}]:clone() -- x, y
end

-- The fewest digits in which one of the found agrees with the certified.
local function digits(found, certified)
    local fewest = 15
    for i, right in ipairs(certified) do
        local off = math.abs(found[i] - right) / math.abs(right)
        if off > 0 then fewest = math.min(fewest, -math.log(off, 10)) end
    end
    return fewest
end

-- 1, x, x^2, ... as columns.
local function powers(x, degree)
    return vander(x, degree + 1, f64):flip(2)
end

-- What is found by each way to solve X b = y, with the digits that it must
-- have: those that the condition of X leaves of f64.
local function fits(X, y, certified, wanted)
    for way, b in pairs{
        lstsq = lstsq(X, y), solve = solve(X, y), qr = qr(X):solve(y),
        pivots = qr(X, {pivots = true}):solve(y), svd = svd(X):solve(y)} do
        local found = digits(b, certified)
        lu.assertIsTrue(found >= wanted, ("%s: %.1f digits of %.1f"):format(way,
            found, wanted))
    end
end

-- As polyfit has them: the highest power first.
local function fits_polynomial(x, y, certified, wanted)
    local found = digits(polyfit(x, y, #certified - 1):flip(1), certified)
    lu.assertIsTrue(found >= wanted, ("polyfit: %.1f digits of %.1f"):format(
        found, wanted))
end

TestRegression = {}

function TestRegression:test_norris()
    local x, y = pairs_of{
        0.1, 0.2, 338.8, 337.4, 118.1, 118.2, 888.0, 884.6, 9.2, 10.1, 228.1,
        226.5, 668.5, 666.3, 998.5, 996.3, 449.1, 448.6, 778.9, 777.0, 559.2,
        558.2, 0.3, 0.4, 0.1, 0.6, 778.1, 775.5, 668.8, 666.9, 339.3, 338.0,
        448.9, 447.5, 10.8, 11.6, 557.7, 556.0, 228.3, 228.1, 998.0, 995.8,
        888.8, 887.6, 119.6, 120.2, 0.3, 0.3, 0.6, 0.3, 557.6, 556.8, 339.3,
        339.1, 888.0, 887.2, 998.5, 999.0, 778.9, 779.0, 10.2, 11.1, 117.6,
        118.3, 228.9, 229.2, 668.4, 669.1, 449.2, 448.9, 0.2, 0.5}
    local certified = {-0.262323073774029, 1.00211681802045}
    fits(powers(x, 1), y, certified, 12)
    fits_polynomial(x, y, certified, 12)
end

function TestRegression:test_pontius()
    local y = vec({
        0.11019, 0.21956, 0.32949, 0.43899, 0.54803, 0.65694, 0.76562, 0.87487,
        0.98292, 1.09146, 1.20001, 1.30822, 1.41599, 1.52399, 1.63194, 1.73947,
        1.84646, 1.95392, 2.06128, 2.16844, 0.11052, 0.22018, 0.32939, 0.43886,
        0.54798, 0.65739, 0.76596, 0.87474, 0.98300, 1.09150, 1.20004, 1.30818,
        1.41613, 1.52408, 1.63159, 1.73965, 1.84696, 1.95445, 2.06177, 2.16829},
        f64)
    local x = vcat(range(1, 20, 1, f64):row(), range(1, 20, 1, f64):row())
        :flatten() * 150000
    local certified = {0.673565789473684e-3, 0.732059160401003e-6,
        -0.316081871345029e-14}
    -- the squares are 1e13 times as large as the ones
    lu.assertIsTrue(digits(qr(powers(x, 2)):solve(y), certified) >= 11.5)
    fits_polynomial(x, y, certified, 11.5)
end

function TestRegression:test_without_a_constant()
    fits(range(60, 70, 1, f64):col(), range(130, 140, 1, f64),
        {2.07438016528926}, 14)
    fits(vec({4, 5, 6}, f64):col(), vec({3, 4, 4}, f64), {0.727272727272727}, 14)
end

-- All of degree 5, on 0 to 20, with ever more noise that changes no coefficient.
function TestRegression:test_wampler()
    local x = range(0, 20, 1, f64)
    local noise = vec({
        759, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 1838, -2048, 2048,
        -2048, 1838, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 759}, f64)
    local ones_, tenths = {1, 1, 1, 1, 1, 1}, {1, 0.1, 0.01, 1e-3, 1e-4, 1e-5}
    for _, case in ipairs{{0, 8.5}, {1, 8.5}, {100, 7}, {10000, 5}} do
        local y = polyval({1, 1, 1, 1, 1, 1}, x) + case[1] * noise
        fits(powers(x, 5), y, ones_, case[2])
        fits_polynomial(x, y, ones_, case[2])
    end
    local y = polyval({1e-5, 1e-4, 1e-3, 0.01, 0.1, 1}, x)
    fits(powers(x, 5), y, tenths, 10)
    fits_polynomial(x, y, tenths, 10)
end

-- Of degree 10, so badly conditioned that f64 has half of its digits left, and by
-- singular values raw powers look dependent.
function TestRegression:test_filip()
    local x, y = pairs_of{
        0.8116, -6.860120914, 0.9072, -4.324130045, 0.9052, -4.358625055,
        0.9039, -4.358426747, 0.8053, -6.955852379, 0.8377, -6.661145254,
        0.8667, -6.355462942, 0.8809, -6.118102026, 0.7975, -7.115148017,
        0.8162, -6.815308569, 0.8515, -6.519993057, 0.8766, -6.204119983,
        0.8885, -5.853871964, 0.8859, -6.109523091, 0.8959, -5.79832982,
        0.8913, -5.482672118, 0.8959, -5.171791386, 0.8971, -4.851705903,
        0.9021, -4.517126416, 0.909, -4.143573228, 0.9139, -3.709075441,
        0.9199, -3.499489089, 0.8692, -6.300769497, 0.8872, -5.953504836, 0.89,
        -5.642065153, 0.891, -5.031376979, 0.8977, -4.680685696, 0.9035,
        -4.329846955, 0.9078, -3.928486195, 0.7675, -8.56735134, 0.7705,
        -8.363211311, 0.7713, -8.107682739, 0.7736, -7.823908741, 0.7775,
        -7.522878745, 0.7841, -7.218819279, 0.7971, -6.920818754, 0.8329,
        -6.628932138, 0.8641, -6.323946875, 0.8804, -5.991399828, 0.7668,
        -8.781464495, 0.7633, -8.663140179, 0.7678, -8.473531488, 0.7697,
        -8.247337057, 0.77, -7.971428747, 0.7749, -7.676129393, 0.7796,
        -7.352812702, 0.7897, -7.072065318, 0.8131, -6.774174009, 0.8498,
        -6.478861916, 0.8741, -6.159517513, 0.8061, -6.835647144, 0.846,
        -6.53165267, 0.8751, -6.224098421, 0.8856, -5.910094889, 0.8919,
        -5.598599459, 0.8934, -5.290645224, 0.894, -4.974284616, 0.8957,
        -4.64454848, 0.9047, -4.290560426, 0.9129, -3.885055584, 0.9209,
        -3.408378962, 0.9219, -3.13200249, 0.7739, -8.726767166, 0.7681,
        -8.66695597, 0.7665, -8.511026475, 0.7703, -8.165388579, 0.7702,
        -7.886056648, 0.7761, -7.588043762, 0.7809, -7.283412422, 0.7961,
        -6.995678626, 0.8253, -6.691862621, 0.8602, -6.392544977, 0.8809,
        -6.067374056, 0.8301, -6.684029655, 0.8664, -6.378719832, 0.8834,
        -6.065855188, 0.8898, -5.752272167, 0.8964, -5.132414673, 0.8963,
        -4.811352704, 0.9074, -4.098269308, 0.9119, -3.66174277, 0.9228,
        -3.2644011}
    local certified = {-1467.48961422980, -2772.17959193342, -2316.37108160893,
        -1127.97394098372, -354.478233703349, -75.1242017393757,
        -10.8753180355343, -1.06221498588947, -0.670191154593408e-1,
        -0.246781078275479e-2, -0.402962525080404e-4}
    fits_polynomial(x, y, certified, 7)
    local X = powers(x, 10)
    local b, told = lstsq(X, y, {info = true})
    lu.assertEquals({told.method, told.rank, rank(X) < 11}, {"qr", 11, true})
    lu.assertIsTrue(digits(b, certified) >= 7)
    lu.assertIsTrue(digits(solve(X, y), certified) >= 7)
    lu.assertIsTrue(digits(qr(X):solve(y), certified) >= 7)
end

-- What a column is measured in changes no rank.
function TestRegression:test_units()
    local x = range(1, 20, 1, f64)
    local X = hcat(ones(20, 1, f64), x:col() * 1e-20, (x % x):col() * 1e18)
    local b, told = lstsq(X, 2 + 3 * x - x % x, {info = true})
    lu.assertEquals({told.method, told.rank}, {"qr", 3})
    lu.assertIsTrue(digits(b, {2, 3e20, -1e-18}) >= 13)
    _, told = lstsq(hcat(X, X[{{}, 2}]:col() * 7), x, {info = true})
    lu.assertEquals(told.method, "svd")
end

TestMoments = {}

-- Whole numbers, and tenths that f64 does not hold, on ever larger ones.
function TestMoments:test_mean_and_deviation()
    local whole = vec({10000001, 10000003, 10000002}, f64)
    lu.assertEquals({mean(whole), std(whole)}, {10000002.0, 1.0})
    for _, case in ipairs{{1.2, 14.5, 13.5}, {1000000.2, 15, 9},
        {10000000.2, 15, 8}} do
        local list = {case[1]}
        for i = 1, 1000 do
            list[i + 1] = case[1] + (i % 2 == 1 and -0.1 or 0.1)
        end
        local v = vec(list, f64)
        lu.assertIsTrue(digits({mean(v)}, {case[1]}) >= case[2], case[1])
        lu.assertIsTrue(digits({std(v)}, {0.1}) >= case[3], case[1])
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
