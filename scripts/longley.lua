-- Longley's regression, a classic test of least squares (J. W. Longley, JASA
-- 62, 1967): American employment explained by six columns that nearly depend on
-- each other. NIST certifies 15 digits of the coefficients (Statistical
-- Reference Datasets, "Longley"). Here it is solved by normal equations,
-- X'X b = X'y, in f64, four ways: as they stand and with centred and scaled
-- columns, each by solve (LU) and by a Cholesky factorisation written in Lua.
--   lumat longley.lua
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"
lessons.sizes("")

local f64 = {dtype = "f64"}

-- Employed; deflator, GNP, unemployed, armed forces, population, year.
local data = mat({
    {60323,  83.0, 234289, 2356, 1590, 107608, 1947},
    {61122,  88.5, 259426, 2325, 1456, 108632, 1948},
    {60171,  88.2, 258054, 3682, 1616, 109773, 1949},
    {61187,  89.5, 284599, 3351, 1650, 110929, 1950},
    {63221,  96.2, 328975, 2099, 3099, 112075, 1951},
    {63639,  98.1, 346999, 1932, 3594, 113270, 1952},
    {64989,  99.0, 365385, 1870, 3547, 115094, 1953},
    {63761, 100.0, 363112, 3578, 3350, 116219, 1954},
    {66019, 101.2, 397469, 2904, 3048, 117388, 1955},
    {67857, 104.6, 419180, 2822, 2857, 118734, 1956},
    {68169, 108.4, 442769, 2936, 2798, 120445, 1957},
    {66513, 110.8, 444546, 4681, 2637, 121950, 1958},
    {68655, 112.6, 482704, 3813, 2552, 123366, 1959},
    {69564, 114.2, 502601, 3931, 2514, 125368, 1960},
    {69331, 115.7, 518173, 4806, 2572, 127852, 1961},
    {70551, 116.9, 554894, 4007, 2827, 130081, 1962}}, f64)

local certified = {-3482258.63459582, 15.0618722713733, -0.0358191792925910,
    -2.02022980381683, -1.03322686717359, -0.0511041056535807,
    1829.15146461355}

-- How many digits agree: NIST's log relative error, at most the certified 15.
local function digits(found, right)
    local off = math.abs(found - right) / math.abs(right)
    return off == 0 and 15 or math.min(15, math.max(0, -math.log(off, 10)))
end

-- N x = r for a symmetric positive definite N: N = L L', then L z = r, then
-- L' x = z. Plain tables of numbers, which in Lua are f64.
local function cholesky(N)
    local n, L = #N, {}
    for i = 1, n do
        L[i] = {}
        for j = 1, i do
            local sum = N[i][j]
            for k = 1, j - 1 do
                sum = sum - L[i][k] * L[j][k]
            end
            if i == j and sum <= 0 then
                error(("cholesky: not positive definite (pivot %d is %g)")
                    :format(i, sum))
            end
            L[i][j] = i == j and math.sqrt(sum) or sum / L[j][j]
        end
    end
    return L
end

local function solve_cholesky(N, r)
    local L, x = cholesky(N:totable()), r:totable()
    local n = #L
    for i = 1, n do
        for k = 1, i - 1 do
            x[i] = x[i] - L[i][k] * x[k]
        end
        x[i] = x[i] / L[i][i]
    end
    for i = n, 1, -1 do
        for k = i + 1, n do
            x[i] = x[i] - L[k][i] * x[k]
        end
        x[i] = x[i] / L[i][i]
    end
    return vec(x, f64)
end

local y, columns = data[":, 1"], data[":, 2:end"]

-- The normal equations of the columns as they stand, with a column of ones.
local function plain()
    local X = ones(data.rows, 1, f64) .. columns
    return X.T * X, X.T * y, function(b) return b:totable() end
end

-- With each column less its mean, over its norm; and y less its mean. The
-- constant then falls out of the equations, and is found from the means.
local function centred()
    local means = columns:mean(1)
    local X = columns - means
    local norms = sqrt(sum(X % X, 1))
    X = X / norms
    local function coefficients(b)
        b = b / norms[1]
        local list = b:totable()
        table.insert(list, 1, mean(y) - means[1] * b)
        return list
    end
    return X.T * X, X.T * (y - mean(y)), coefficients
end

-- Prints the coefficients beside the certified ones; returns the fewest digits.
local function report(name, list)
    local fewest = 15
    print("\n" .. name)
    for i, right in ipairs(certified) do
        local same = digits(list[i], right)
        fewest = math.min(fewest, same)
        print(("  B%d  %22.15g   certified %22.15g   %4.1f digits")
            :format(i - 1, list[i], right, same))
    end
    return fewest
end

local function condition(N)
    return norm(N) * norm(inv(N))
end

-- Elimination does not mind how columns are scaled: what it loses shows in the
-- condition with all columns of X scaled to length 1.
local function both_ways(name, equations)
    local N, r, coefficients = equations()
    local lengths = sqrt(diag(N))
    print(("\n%s: condition of X'X %.1e, %.1e with columns of length 1")
        :format(name, condition(N),
            condition(N / outer(lengths, lengths))))
    return report(name .. ", solve", coefficients(solve(N, r))),
        report(name .. ", Cholesky", coefficients(solve_cholesky(N, r)))
end

local plain_lu, plain_cholesky = both_ways("as they stand", plain)
local centred_lu, centred_cholesky = both_ways("centred and scaled", centred)

print("\nf64 has 16 digits; a condition of 10^d (columns of length 1) costs "
    .. "up to d:\nnormal equations square the condition, and centring mends "
    .. "most of it")
print("\nfewest correct digits     solve   Cholesky")
print(("  as they stand        %7.1f %10.1f"):format(plain_lu, plain_cholesky))
print(("  centred and scaled   %7.1f %10.1f"):format(centred_lu,
    centred_cholesky))
print(("  gained               %7.1f %10.1f"):format(centred_lu - plain_lu,
    centred_cholesky - plain_cholesky))
print()
local wanted = 6
lessons.check("centred, solve", centred_lu >= wanted,
    ("fewer than %d digits"):format(wanted))
lessons.check("centred, Cholesky", centred_cholesky >= wanted,
    ("fewer than %d digits"):format(wanted))
lessons.finish()
