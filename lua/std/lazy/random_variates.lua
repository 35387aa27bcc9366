-- Random numbers of more distributions than uniform and normal ones.
--
-- Each call takes one number of the generator, as rand does, and draws from
-- streams of it that are apart from all others; so no result depends on threads.
-- Those of whole numbers are the same on every device: they compare uniforms
-- with tables, or are worked out on the CPU.
local library = ...
local checks = require "lumat.checks"
local steps = require "lumat.statistics_steps"
local fail, shape_of = checks.fail, checks.shape_of
local variates = {}
local type = type
local ceil, floor, huge, larger, log, sqrt, tointeger = math.ceil, math.floor,
    math.huge, math.max, math.log, math.sqrt, math.tointeger
local pack = table.pack

-- --- what is asked for --------------------------------------------------------

local function is_matrix(x)
    return type(x) == "userdata"
end

-- What a call of `count` parameters asks for: {parameters, m, n (nil of a
-- vector), dtype, device, seed and call of the generator}.
local function request(what, count, ...)
    local given = pack(...)
    local options = {}
    if type(given[given.n]) == "table" then
        options, given[given.n] = given[given.n], nil
    end
    local r = {what = what, m = given[count + 1], n = given[count + 2]}
    for i = 1, count do
        local p = given[i]
        r[i] = p
        if is_matrix(p) then
            if p.dtype ~= "f32" and p.dtype ~= "f64" then
                fail(what, "parameters are f32 or f64, not %s", p.dtype)
            end
            r.device = r.device or p.device
            r.dtype = r.dtype == "f64" and "f64" or p.dtype
        end
    end
    if not r.m then
        for i = 1, count do
            local p = r[i]
            if is_matrix(p) then
                r.m = larger(r.m or 0, p.rows)
                r.n = p.ndim == 2 and larger(r.n or 0, p.cols) or r.n
            end
        end
    end
    if not r.m then
        fail(what, "the number of results is missing: write %s(…, n), or " ..
            "give a matrix of parameters", what)
    end
    for i = 1, count do
        local p = r[i]
        if is_matrix(p) and not (p.ndim == (r.n and 2 or 1) and
            (p.rows == r.m or p.ndim == 2 and p.rows == 1) and
            (p.ndim == 1 or p.cols == r.n or p.cols == 1)) then
            fail(what, "a parameter is %s, and the result %s", shape_of(p),
                r.n and r.m .. "x" .. r.n or "vector " .. r.m)
        end
    end
    local wanted = (options.device or not r.device) and
        library.zeros(1, {dtype = "f32", device = options.device}).device
    if r.device and wanted and wanted ~= r.device then
        fail(what, "the parameters are on %s, and {device=%q} is another",
            r.device, options.device)
    end
    r.dtype = options.dtype or r.dtype or library.default_dtype()
    if r.dtype ~= "f32" and r.dtype ~= "f64" then
        fail(what, "results are f32 or f64, not %s", r.dtype)
    end
    r.device = wanted or r.device
    r.seed, r.call = steps.next_draw(options)
    return r
end

local function size_of(r)
    return r.m * (r.n or 1)
end

-- Numbers of a stream, f64, of r's shape; "uniform" ones in [0, 1), or "normal".
local function drawn(r, kind, stream)
    return steps.draw(kind, r.seed, r.call, stream, "f64", r.device, r.m, r.n)
end

-- A vector of n numbers instead.
local function drawn_list(r, kind, stream, n)
    return steps.draw(kind, r.seed, r.call, stream, "f64", r.device, n)
end

-- The logarithms of 1 less uniforms, which is exact, and above 0.
local function log_of(u)
    return library.log(1 - u)
end

local function given_as(r, X)
    if X.dtype == r.dtype then return X end
    return r.dtype == "f64" and X:f64() or X:f32()
end

-- Whole numbers have to fit their type.
local function given_whole(r, X, largest)
    if r.dtype == "f32" and largest > 2 ^ 24 then
        fail(r.what, "%.0f is more than f32 holds exactly; add {dtype=\"f64\"}",
            largest)
    end
    return given_as(r, X)
end

-- Parameter i is a number from low to high, or all of its elements are; else an
-- error that says what is wanted.
local function check(r, i, name, low, high, wanted, is_whole)
    local p = r[i]
    if is_matrix(p) then
        local is_fine = p:ge(low) & p:le(high)
        if is_whole then is_fine = is_fine & library.floor(p):eq(p) end
        if p.size > 0 and library.all(is_fine) == false then
            fail(r.what, "elements of %s are not %s", name, wanted)
        end
        r[i] = p:f64()
    elseif not (p >= low and p <= high) or is_whole and floor(p) ~= p then
        fail(r.what, "%s is %s, expected %s", name, checks.brief(p), wanted)
    end
end

local LARGEST, LEAST = 0x1.fffffffffffffp1023, 1e-300

local function check_above(r, i, name)
    check(r, i, name, LEAST, LARGEST, "a finite number above 0")
end

local function check_from_zero(r, i, name)
    check(r, i, name, 0, LARGEST, "a finite number from 0 on")
end

-- --- by formulas --------------------------------------------------------------

row{
    name = "exponential",
    takes = "scale: number|matrix [, m: size [, n: size]] {seed, dtype, device}",
    gives = "matrix",
    group = "random",
    help = "Exponential random numbers with that mean (1 / rate): one for each " ..
        "element of a matrix of means, or so many.",
    example = "exponential(3, 4, {seed = 1})",
    result = "{6.75239, 3.72677, 6.21709, 3.20224}",
}
function variates.exponential(...)
    local r = request("exponential", 1, ...)
    check_from_zero(r, 1, "scale")
    return given_as(r, library.mul(-log_of(drawn(r, "uniform", 0)), r[1]))
end

row{
    name = "lognormal",
    takes = "mu: number|matrix, sigma: number|matrix [, m: size [, n: size]] " ..
        "{seed, dtype, device}",
    gives = "matrix",
    group = "random",
    help = "Random numbers whose logarithms are normal, with mean mu and " ..
        "standard deviation sigma.",
    example = "lognormal(0, 1, 4, {seed = 1})",
    result = "{0.892543, 0.63263, 0.749315, 0.649825}",
}
function variates.lognormal(...)
    local r = request("lognormal", 2, ...)
    check(r, 1, "mu", -LARGEST, LARGEST, "a finite number")
    check_from_zero(r, 2, "sigma")
    local z = drawn(r, "normal", 0)
    return given_as(r, library.exp(library.add(library.mul(z, r[2]), r[1])))
end

-- Source: Bailey, Polar generation of random variates with the t-distribution,
-- 1994: what Box and Muller do for the normal one.
row{
    name = "student",
    takes = "nu: number|matrix [, m: size [, n: size]] {seed, dtype, device}",
    gives = "matrix",
    group = "random",
    help = "Random numbers of Student's t distribution with nu degrees of " ..
        "freedom; nu may be infinite.",
    example = "student(3, 4, {seed = 1})",
    result = "{-2.8537, -1.76281, -2.95695, -0.598809}",
}
function variates.student(...)
    local r = request("student", 1, ...)
    check(r, 1, "nu", LEAST, huge, "a number above 0")
    local nu = is_matrix(r[1]) and library.minimum(r[1], 1e30) or
        math.min(r[1], 1e30)
    local size = -2 * log_of(drawn(r, "uniform", 0))
    local angle = 2 * math.pi * drawn(r, "uniform", 1)
    local square = library.mul(library.expm1(library.div(size, nu)), nu)
    return given_as(r, library.sqrt(square) % library.cos(angle))
end

-- --- gamma and what is made of it ---------------------------------------------

-- n numbers of the gamma distribution of shape d + 1/3 >= 1; d is a number, or a
-- vector of n. What is not accepted, at most 5 of 100, is drawn again from the
-- next streams. Source: Marsaglia and Tsang, A simple method for generating
-- gamma variables, 2000.
local function gammas(r, d, n, stream)
    local z = drawn_list(r, "normal", stream, n)
    local u = drawn_list(r, "uniform", stream + 1, n)
    local v = 1 + library.div(z, library.sqrt(9 * d))
    v = v % v % v
    local bound = 0.5 * z % z + library.mul(1 - v + library.log(v), d)
    local again = ~log_of(u):lt(bound)
    local X = library.mul(v, d)
    local count = again:sum()
    if type(count) ~= "number" or count == 0 then return X end
    X[again] = gammas(r, is_matrix(d) and d[again] or d, tointeger(count),
        stream + 2)
    return X
end

-- Parameter i for each result: a number, or a vector of them.
local function spread(r, i)
    local p = r[i]
    if not is_matrix(p) then return p end
    if r.n then
        p = library.add(p, library.zeros(r.m, r.n, {dtype = "f64",
            device = r.device}))
    end
    return p:flatten()
end

local AGAIN = 64 -- streams of one gamma variate

-- Logarithms of gamma variates, a vector: those of small shapes are too small
-- for their own.
local function log_gammas(r, shape, stream)
    local n = size_of(r)
    local is_small = library.lt(shape, 1)
    local X = library.log(gammas(r, library.where(is_small, shape + 1, shape) -
        1 / 3, n, stream))
    if not is_matrix(shape) and shape >= 1 then return X end
    local lift = log_of(drawn_list(r, "uniform", stream + AGAIN, n))
    return X + library.where(is_small, library.div(lift, shape), 0)
end

local function shaped(r, v)
    if not r.n then return v end
    return v:reshape(r.m, r.n)
end

local function gamma_variates(r, shape, scale)
    local n, X = size_of(r), nil
    if is_matrix(shape) or shape < 1 then
        X = library.exp(log_gammas(r, shape, 0))
    else
        X = gammas(r, shape - 1 / 3, n, 0)
    end
    return given_as(r, shaped(r, library.mul(X, scale)))
end

row{
    name = "randgamma",
    takes = "shape: number|matrix, scale: number|matrix [, m: size [, n: size]] " ..
        "{seed, dtype, device}",
    gives = "matrix",
    group = "random",
    help = "Random numbers of the gamma distribution with mean shape * scale. " ..
        "(gamma(x) is the gamma function.)",
    example = "randgamma(2, 3, 4, {seed = 1})",
    result = "{4.57252, 3.42806, 3.96349, 3.50945}",
}
function variates.randgamma(...)
    local r = request("randgamma", 2, ...)
    check_above(r, 1, "shape")
    check_from_zero(r, 2, "scale")
    return gamma_variates(r, spread(r, 1), spread(r, 2))
end

row{
    name = "chi2",
    takes = "k: number|matrix [, m: size [, n: size]] {seed, dtype, device}",
    gives = "matrix",
    group = "random",
    help = "Random numbers of the chi-squared distribution with k degrees of " ..
        "freedom.",
    example = "chi2(4, 4, {seed = 1})",
    result = "{3.04834, 2.28537, 2.64233, 2.33964}",
}
function variates.chi2(...)
    local r = request("chi2", 1, ...)
    check_above(r, 1, "k")
    return gamma_variates(r, spread(r, 1) / 2, 2)
end

row{
    name = "beta",
    takes = "a: number|matrix, b: number|matrix [, m: size [, n: size]] " ..
        "{seed, dtype, device}",
    gives = "matrix",
    group = "random",
    help = "Random numbers of the beta distribution, in 0 … 1 with mean " ..
        "a / (a + b).",
    example = "beta(1, 3, 4, {seed = 1})",
    result = "{0.34778, 0.0709182, 0.176884, 0.0874261}",
}
function variates.beta(...)
    local r = request("beta", 2, ...)
    check_above(r, 1, "a")
    check_above(r, 2, "b")
    local x = log_gammas(r, spread(r, 1), 0)
    local y = log_gammas(r, spread(r, 2), 2 * AGAIN)
    return given_as(r, shaped(r, 1 / (1 + library.exp(y - x))))
end

-- --- whole numbers by tables ---------------------------------------------------

-- For each uniform the first place, from 0, whose part of the weights' sum is
-- above it; weights is a vector of f64 on the CPU. Sums are of the CPU, too, so
-- that places are the same everywhere.
local function inverted(weights, u)
    local sums = library.cumsum(weights)
    local last = (weights:gt(0):f64() % library.range(1, weights.size, 1,
        {dtype = "f64", device = "cpu"})):max()
    local places = library.searchsorted(sums:to(u.device), u * sums[-1],
        {side = "right"}):f64()
    return library.minimum(places, last) - 1
end

local function counted(first, last)
    return library.range(first, last, 1, {dtype = "f64", device = "cpu"})
end

-- How likely first … last are, over how likely `mode` is, when up(k) is how much
-- likelier k + 1 is than k: products of neighbours on both sides of the mode.
local function table_of(first, mode, last, up)
    local one = library.ones(1, {dtype = "f64", device = "cpu"})
    local below = mode > first and library.flip(library.cumprod(
        library.flip(1 / up(counted(first, mode - 1))))) or one["1:0"]
    local above = last > mode and
        library.cumprod(up(counted(mode, last - 1))) or one["1:0"]
    return library.hcat(below, one, above)
end

-- From where to where whole numbers with that mean and deviation are likelier
-- than 1e-17 or so all together.
local function support(mean, deviation, least, most)
    local first = floor(mean - 9 * deviation - 40)
    local last = ceil(mean + 10 * deviation + 60)
    return larger(first, least), math.min(last, most)
end

-- Tables are made up to this deviation: of 40,000 numbers.
local WIDEST = 2000

local function from_table(r, first, mode, last, up)
    local weights = table_of(first, mode, last, up)
    local places = inverted(weights, drawn(r, "uniform", 0))
    return given_whole(r, places + first, last)
end

-- The same of parameters that differ, or are large, is worked out on the CPU.
local function spread_on_cpu(r, i)
    local p = r[i]
    if is_matrix(p) then
        r[i] = p:to "cpu"
        local device = r.device
        r.device = "cpu"
        p = spread(r, i)
        r.device = device
        return p
    end
    return library.full(size_of(r), p, {dtype = "f64", device = "cpu"})
end

local function finished(r, v)
    local largest = v.size > 0 and v:max() or 0
    return given_whole(r, shaped(r, v):to(r.device), largest)
end

row{
    name = "poisson",
    takes = "lambda: number|matrix [, m: size [, n: size]] {seed, dtype, device}",
    gives = "matrix",
    group = "random",
    help = "Random whole numbers of the Poisson distribution with mean lambda " ..
        "(up to 1e15), the same on every device. A matrix of means is worked " ..
        "through on the CPU.",
    example = "poisson(4, 6, {seed = 1})",
    result = "{7, 5, 6, 5, 4, 7}",
}
function variates.poisson(...)
    local r = request("poisson", 1, ...)
    check(r, 1, "lambda", 0, 1e15, "a number from 0 to 1e15")
    local mean = r[1]
    if not is_matrix(mean) and mean == 0 then
        return given_as(r, 0 * drawn(r, "uniform", 0))
    elseif not is_matrix(mean) and sqrt(mean) <= WIDEST then
        local first, last = support(mean, sqrt(mean), 0, huge)
        return from_table(r, first, floor(mean), last,
            function(k) return mean / (k + 1) end)
    end
    return finished(r, steps.variates("poisson", r.seed, r.call,
        spread_on_cpu(r, 1)))
end

row{
    name = "binomial",
    takes = "trials: number|matrix, p: number|matrix [, m: size [, n: size]] " ..
        "{seed, dtype, device}",
    gives = "matrix",
    group = "random",
    help = "How many of so many trials (up to 1e15) succeed, each with " ..
        "probability p: random whole numbers, the same on every device. " ..
        "Matrices of parameters are worked through on the CPU.",
    example = "binomial(10, 0.3, 6, {seed = 1})",
    result = "{5, 4, 5, 4, 3, 5}",
}
function variates.binomial(...)
    local r = request("binomial", 2, ...)
    check(r, 1, "trials", 0, 1e15, "a whole number from 0 to 1e15", true)
    check(r, 2, "p", 0, 1, "a number from 0 to 1")
    local trials, p = r[1], r[2]
    if not is_matrix(trials) and not is_matrix(p) then
        local q = math.min(p, 1 - p)
        local deviation = sqrt(trials * q * (1 - q))
        if q == 0 then
            local all = p > 0.5 and trials or 0
            return given_whole(r, 0 * drawn(r, "uniform", 0) + all, all)
        elseif deviation <= WIDEST then
            local first, last = support(trials * q, deviation, 0, trials)
            local mode = math.min(floor((trials + 1) * q), last)
            local k = from_table(r, first, larger(mode, first), last,
                function(j) return (trials - j) / (j + 1) * (q / (1 - q)) end)
            return p > 0.5 and given_whole(r, trials - k, trials) or k
        end
    end
    return finished(r, steps.variates("binomial", r.seed, r.call,
        spread_on_cpu(r, 1), spread_on_cpu(r, 2)))
end

-- --- choosing -------------------------------------------------------------------

local function check_chances(what, name, w)
    if not library.all(w:ge(0) & library.isfinite(w)) then
        fail(what, "%s are numbers from 0 on, neither NaN nor infinite", name)
    end
end

row{
    name = "categorical",
    takes = "p: matrix [, m: size [, n: size]] {seed, dtype, device}",
    gives = "matrix",
    group = "random",
    help = "Random places 1 … #p, each as likely as its element of p, which " ..
        "need not add up to 1; the same on every device. Each row of a matrix " ..
        "is such a p, and gives one place, or m.",
    example = "categorical(vec{1, 1, 0}, 6, {seed = 3})",
    result = "{1, 2, 2, 2, 2, 1}",
}
function variates.categorical(P, m, n, options)
    if type(m) == "table" then m, options = nil, m end
    if type(n) == "table" then n, options = nil, n end
    options = options or {}
    local W = P:to("cpu"):f64()
    if P.size == 0 then fail("categorical", "p is empty") end
    check_chances("categorical", "chances", W)
    local rows = P.ndim == 2
    local total = rows and W:sum(2) or W:sum()
    if rows and total:eq(0):any() or not rows and total == 0 then
        fail("categorical", "the chances %sare all 0", rows and
            "in row " .. tointeger(total:argmin()) .. " " or "")
    end
    if rows and n then
        fail("categorical", "of a matrix one number says how many there are " ..
            "for each row")
    end
    local how = {seed = options.seed, dtype = options.dtype,
        device = options.device or P.device}
    if not rows then
        if not m then
            fail("categorical", "the number of results is missing: write " ..
                "categorical(p, n)")
        end
        local r = request("categorical", 0, m, n, how)
        return given_whole(r, inverted(W, drawn(r, "uniform", 0)) + 1, W.size)
    end
    local r = request("categorical", 0, P.rows, m or 1, how)
    local sums = library.cumsum(W, 2)
    local device = r.device
    local limits = (sums / sums[{{}, {-1, -1}}]):to(device)
    -- the last place that can be
    local place = library.range(1, W.cols, 1, {dtype = "f64",
        device = "cpu"}):row()
    local last = library.where(W:gt(0), place, 0):max(2):to(device)
    local u = drawn(r, "uniform", 0)
    local out = library.zeros(r.m, r.n, {dtype = "f64", device = device})
    for j = 1, r.n do
        local column = {{}, {j, j}}
        local before = limits:le(u[column]):f64():sum(2)
        out[column] = library.minimum(before + 1, last)
    end
    return given_whole(r, m and out or out:flatten(), W.cols)
end

-- The places of the k smallest of n keys.
local function first_places(keys, k)
    return library.argsort(keys)[{{1, k}}]
end

-- k different ones of 1 … n in random order, k being less than n: so many
-- are drawn that k of them are different, all but surely, and those go that were
-- drawn before.
local MARKS_A_DRAW = 256 -- bits that are looked after, of those drawn, at most
local function few_of_many(r, n, k, stream)
    local count = ceil(-1.05 * n * library.log1p(-k / n) + 8 * sqrt(k) + 16)
    local drawn_ones = library.floor(drawn_list(r, "uniform", stream, count) * n) + 1
    local first = n <= MARKS_A_DRAW * count and
        steps.first_drawn(drawn_ones, n, k)
    if first then
        return first.size == k and first or few_of_many(r, n, k, stream + 1)
    end
    local values, order = library.sort(drawn_ones, {places = true})
    local again = values["2:end"]:eq(values["1:end-1"])
    local is_new = library.ones(count, {dtype = "f64", device = r.device})
    library.put(is_new, library.where(again, 0, is_new["2:end"]), order["2:end"])
    local different = drawn_ones[is_new:gt(0)]
    if different.size >= k then return different[{{1, k}}] end
    return few_of_many(r, n, k, stream + 1)
end

local DRAWN = 0.7 -- of n, up to which drawing is faster than sorting n keys

-- k places of n, all different, as likely as their weights say, one after the
-- other. Source: Efraimidis and Spirakis, Weighted random sampling with a
-- reservoir, 2006.
local function different_places(r, n, k, weights)
    if not weights and k <= DRAWN * n then return few_of_many(r, n, k, 0) end
    local u = drawn_list(r, "uniform", 0, n)
    if not weights then return first_places(u, k) end
    return first_places(library.where(weights:gt(0),
        -log_of(u) / weights, huge), k)
end

row{
    name = "choice", method = true,
    takes = "A: matrix|count [, k: size] {replace, weights, seed, dtype, device}",
    gives = "value or matrix with k",
    group = "random",
    help = "k random elements of a vector, rows of a matrix, or numbers 1 … n; " ..
        "without k one. The same places on every device.",
    example = "choice(vec{10, 20, 30}, 4, {seed = 1})",
    result = "{30, 30, 30, 20}",
    options = {
        {"replace", "boolean", "true", "false: none comes twice"},
        {"weights", "vector", "all alike", "how likely each is: from 0 on"},
    },
}
function variates.choice(A, k, options)
    if type(k) == "table" then k, options = nil, k end
    options = options or {}
    local is_count = not is_matrix(A)
    local n = is_count and A or A.rows
    local w, count = options.weights, k or 1
    if not is_count and (options.dtype or options.device) then
        fail("choice", "dtype and device are of places 1 … n: elements keep theirs")
    end
    if n == 0 and count > 0 then fail("choice", "of no elements") end
    if w then
        if w.rows ~= n then
            fail("choice", "the weights are %s, and there are %d elements",
                shape_of(w), n)
        end
        check_chances("choice", "weights", w)
    end
    local places
    local how = {seed = options.seed, device = options.device or
        (is_matrix(A) and A.device) or (w and w.device), dtype = "f64"}
    local r = request("choice", 0, count, how)
    local possible = w and tointeger(w:gt(0):sum()) or n
    if possible == 0 and count > 0 then fail("choice", "all weights are 0") end
    if options.replace == false then
        if count > possible then
            fail("choice", "%d of %d%s, none of them twice: there are not so many",
                count, possible, w and " with a weight above 0" or "")
        end
        places = different_places(r, n, count, w and w:f64():to(r.device))
    elseif w then
        places = inverted(w:to("cpu"):f64(), drawn(r, "uniform", 0)) + 1
    else
        places = library.floor(drawn(r, "uniform", 0) * n) + 1
    end
    if is_count then
        if not k then return tointeger(places[1]) end
        r.dtype = options.dtype or n > 2 ^ 24 and "f64" or library.default_dtype()
        return given_whole(r, places, n)
    end
    if not k then return A[tointeger(places[1])] end
    return library.take(A, places)
end

row{
    name = "shuffle", method = true,
    takes = "A: matrix [, axis: axis] {axis, seed}",
    gives = "matrix",
    group = "random",
    help = "The elements of a vector, or the rows of a matrix (axis 2: its " ..
        "columns), in random order, the same on every device.",
    example = "shuffle(vec{1, 2, 3, 4}, {seed = 1})",
    result = "{4, 2, 3, 1}",
}
function variates.shuffle(A, axis, options)
    if type(axis) == "table" then axis, options = nil, axis end
    options = options or {}
    if axis and options.axis then fail("shuffle", "the axis is given twice") end
    axis = axis or options.axis or 1
    if axis == 2 and A.ndim == 1 then fail("shuffle", "a vector has no axis 2") end
    local n = axis == 1 and A.rows or A.cols
    local r = request("shuffle", 0, n, {seed = options.seed, device = A.device})
    local order = library.argsort(drawn(r, "uniform", 0))
    return axis == 1 and library.take(A, order) or library.take(A, nil, order)
end

-- --- normal vectors -------------------------------------------------------------

-- A root of S: R R' = S, of its eigenvalues, some of which may be 0.
local function root_of(S)
    if S.rows == 0 then return S end
    local wide = S:f64()
    local size = wide:abs():max()
    if not (size < huge) then
        fail("mvnrnd", "the covariances are not finite")
    end
    if not ((wide - wide.T):abs():max() <= 1e-5 * size) then
        fail("mvnrnd", "the covariances are not symmetric")
    end
    local values, V = library.eigh(wide):unpack()
    local negative = values:min()
    if negative < -1e-6 * larger(values:max(), 0) then
        fail("mvnrnd", "the covariances are not positive semidefinite: an " ..
            "eigenvalue is %s", checks.brief(negative))
    end
    return V % library.maximum(values, 0):sqrt():row()
end

row{
    name = "mvnrnd",
    takes = "mu: vector, Sigma: square, n: size {seed, dtype, device}",
    gives = "matrix",
    group = "random",
    help = "n normal random vectors, a row each, with means mu and the " ..
        "covariances Sigma, which may be singular.",
    example = "mvnrnd(vec{5, 7}, zeros(2, 2), 2)",
    result = "{{5, 7}, {5, 7}}",
}
function variates.mvnrnd(mu, Sigma, n, options)
    options = options or {}
    if mu.rows ~= Sigma.rows or Sigma.rows ~= Sigma.cols then
        fail("mvnrnd", "mu is %s, and Sigma is %s: it has to be %dx%d",
            shape_of(mu), shape_of(Sigma), mu.rows, mu.rows)
    end
    local dtype = options.dtype or
        (mu.dtype == "f64" or Sigma.dtype == "f64") and "f64" or mu.dtype
    local r = request("mvnrnd", 0, n, mu.rows, {seed = options.seed,
        dtype = dtype, device = options.device or Sigma.device})
    local R = root_of(Sigma)
    local Z = drawn(r, "normal", 0)
    return given_as(r, Z * R:to(r.device).T + mu:to(r.device):f64():row())
end

return variates
