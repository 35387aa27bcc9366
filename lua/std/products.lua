-- Looking at products: the ladder shown, checked and raced.
local library, methods, help = ...
local error, getmetatable, ipairs, next, pcall = error, getmetatable, ipairs,
    next, pcall
local setmetatable, tostring, type = setmetatable, tostring, type
local concat, sort = table.concat, table.sort
local floor, huge, larger, smaller, sqrt = math.floor, math.huge, math.max,
    math.min, math.sqrt
local format, gsub, match = string.format, string.gsub, string.match

-- f as its callers see it: an error raised in this file, or by a function of
-- the library called from it, has the place of f's caller.
local function placed(f)
    local function finish(ok, ...)
        if ok then return ... end
        local message = ...
        local text = type(message) == "string" and
            match(message, "^products:%d+: (.*)$")
        if text then error(text, 2) end
        error(message, 0)
    end
    return function(...)
        return finish(pcall(f, ...))
    end
end

local function add(name, usage, text, example, result, f)
    f = placed(f)
    library[name] = f
    help[name] = {usage = usage, help = text, example = example,
                  result = result}
end

-- Raises "what: format" with the values.
local function fail(what, text, ...)
    error(what .. ": " .. format(text, ...))
end

-- How a message names a wrong value.
local function brief(x)
    if type(x) == "number" or x == nil then return tostring(x) end
    if type(x) == "string" and #x <= 40 then return format("%q", x) end
    return "a " .. (getmetatable(x) == "matrix" and "matrix" or type(x))
end

local function shape_of(A)
    if type(A) == "number" then return "a number" end
    return A.ndim == 1 and format("vector %d", A.rows) or
        format("%dx%d", A.rows, A.cols)
end

local function check_matrix(what, name, A)
    if type(A) ~= "userdata" or getmetatable(A) ~= "matrix" then
        fail(what, "%s is %s, expected a matrix", name, brief(A))
    end
    if A.device == "none" then fail(what, "%s has been freed", name) end
end

-- A and B are operands of a product; returns the shape of A * B.
local function check_product(what, A, B)
    check_matrix(what, "A", A)
    check_matrix(what, "B", B)
    local inner = A.ndim == 1 and A.rows or A.cols
    if inner ~= B.rows then
        fail(what, "inner dimensions differ (%d and %d): A is %s, B is %s",
            inner, B.rows, shape_of(A), shape_of(B))
    end
    if A.ndim == 1 then
        return B.ndim == 1 and "a number" or format("vector %d", B.cols)
    end
    return B.ndim == 1 and format("vector %d", A.rows) or
        format("%dx%d", A.rows, B.cols)
end

-- The options table: its keys are those of `kinds`, their values of the kind
-- given there; numbers are positive.
local function check_options(what, options, kinds)
    if options == nil then return {} end
    if type(options) ~= "table" then
        fail(what, "the options are %s, expected a table", brief(options))
    end
    for key, value in next, options do
        local kind = kinds[key]
        if not kind then
            local names = {}
            for name in next, kinds do names[#names + 1] = name end
            sort(names)
            fail(what, "unknown option %s: there are %s", brief(key),
                concat(names, " "))
        elseif type(value) ~= kind then
            fail(what, "%s is %s, expected a %s", key, brief(value), kind)
        elseif kind == "number" and not (value > 0 and value < huge) then
            fail(what, "%s must be above 0 and finite, not %s", key,
                brief(value))
        end
    end
    return options
end

-- A table that shows itself as text.
local function shown(fields, text)
    return setmetatable(fields, {__tostring = function() return text end})
end

add("kernels", "kernels([device])",
    "The ladder: every kernel of dot and matmul, with its idea and needs.",
    'kernels("cpu").count > 2', "true",
    function(device)
        if device ~= nil and type(device) ~= "string" then
            fail("kernels", "the device is %s, expected a name", brief(device))
        end
        local list = library.kernel_list(device)
        local lines = {}
        for i, k in ipairs(list) do
            lines[i] = format("%-7s %-10s %-6s %s%s", k.operation,
                k.name, k.precision, k.idea,
                k.available and "" or "  (needs " .. k.needs .. ")")
        end
        list.count = #list
        return shown(list, concat(lines, "\n"))
    end)

-- How far a sum of k products may be off, relative to |A||B|: gamma_k of
-- Higham, Accuracy and Stability of Numerical Algorithms, 3.1, for k + 1
-- roundings; where that says little (from a thousandth on), roundings are
-- taken as random: Higham and Mary, A new approach to probabilistic rounding
-- error analysis, 2019, with lambda = 6.
local function gamma(dtype, k)
    local u = dtype == "f64" and 2.0 ^ -53 or 2.0 ^ -24
    local nu = (k + 1) * u
    if nu < 1e-3 then return nu / (1 - nu) end
    return 6 * sqrt(k + 1) * u
end

-- A B in double precision, by another way than the one being checked: three
-- loops on the CPU where that takes no minutes, else the device's best.
local function reference(A, B)
    A, B = A:f64(), B:f64()
    local flops = 2.0 * A.size * (B.ndim == 2 and B.cols or 1)
    local how
    if flops <= 2e9 then
        A, B, how = A:to("cpu"), B:to("cpu"), {kernel = "reference"}
    end
    if A.ndim == 1 and B.ndim == 1 then return library.dot(A, B, how) end
    return library.matmul(A, B, how)
end

local function inner_size(A)
    return A.ndim == 2 and A.cols or A.rows
end

-- The largest |C - AB| / (gamma |A||B|), with the place, and whether NaN and
-- Inf stand where the reference has them.
local function compare(C, A, B)
    local exact, size = reference(A, B), reference(A:abs(), B:abs())
    if type(exact) == "number" then
        exact, size = library.vec({exact}, {dtype = "f64"}),
            library.vec({size}, {dtype = "f64"})
        C = library.vec({C}, {dtype = "f64"})
    end
    local wide = C:f64():to(exact.device)
    local special = ~library.isfinite(exact)
    local alike = library.where(special,
        (library.isnan(wide) & library.isnan(exact)) |
        wide:eq(exact), true)
    local difference = library.where(special, 0, (wide - exact):abs())
    local limit = size * gamma(A.dtype == "f64" and B.dtype == "f64" and
        C.dtype == "f64" and "f64" or "f32", inner_size(A))
    local ratio = library.where(difference:eq(0), 0, difference / limit)
    local norm = library.norm(library.where(special, 0, exact))
    return ratio, alike, difference:norm() / (norm > 0 and norm or 1)
end

add("verify", "verify(C, A, B)",
    "Compares C with A * B in double precision and says Accept, or by how " ..
    "much it fails the bound gamma_k |A||B|. Fields: accept, ratio, error.",
    "verify(mat{{1, 2}} * mat{{3}, {4}}, mat{{1, 2}}, mat{{3}, {4}}).accept",
    "true",
    function(C, A, B)
        local shape = check_product("verify", A, B)
        if type(C) ~= "number" then check_matrix("verify", "C", C) end
        if shape_of(C) ~= shape then
            fail("verify", "C is %s, but A * B is %s (A is %s, B is %s)",
                shape_of(C), shape, shape_of(A), shape_of(B))
        end
        local ratio, alike, error = compare(C, A, B)
        local worst = ratio.size > 0 and ratio:max() or 0
        local accept = worst <= 1 and alike:all()
        local where = ""
        if not accept and ratio.ndim == 2 then
            local bad = alike:all() and ratio or (~alike):f32()
            where = format(" at [%d, %d]", bad:argmax())
        end
        local text
        if accept then
            text = format(
                "Accept: relative error %.2g, at most %.2g of the bound",
                error, worst)
        elseif not alike:all() then
            text = "FAILS: NaN or Inf where the reference has another value" ..
                where
        else
            text = format(
                "FAILS: %.3g times the bound%s, relative error %.2g", worst,
                where, error)
        end
        return shown({accept = accept, ratio = worst, error = error}, text)
    end)

local function median(list)
    sort(list)
    local n = #list
    return n % 2 == 1 and list[(n + 1) // 2] or
        (list[n // 2] + list[n // 2 + 1]) / 2
end

add("bench", "bench(f [, {seconds=, least=, device=}])",
    "Times f() until `seconds` (0.3) have passed and it ran `least` (5) " ..
    "times, after a warm-up. Fields: median, low, high (seconds), runs.",
    "bench(function() end, {seconds = 0.01}).runs >= 5", "true",
    function(f, options)
        if type(f) ~= "function" then
            fail("bench", "f is %s, expected a function", brief(f))
        end
        options = check_options("bench", options,
            {seconds = "number", least = "number", device = "string"})
        local seconds, least = options.seconds or 0.3, options.least or 5
        local clock, timed = library.clock, library.timed
        timed(f, options.device)
        -- short calls are timed many at once
        local one = larger(timed(f, options.device), 1e-9)
        local batch = larger(1, smaller(1000000, floor(2e-5 / one)))
        local function work()
            for _ = 1, batch do f() end
        end
        local times, stop = {}, clock() + seconds
        repeat
            times[#times + 1] = timed(work, options.device) / batch
        until #times >= least and clock() > stop
        local middle = median(times)
        local low, high = times[1 + #times // 4], times[#times - #times // 4]
        return shown({median = middle, low = low, high = high,
                      runs = #times * batch},
            format("%.4g us  (%.4g to %.4g, %d runs)", middle * 1e6,
                low * 1e6, high * 1e6, #times * batch))
    end)

-- Can this kernel do this product? The message if not.
local function attempt(f)
    local ok, message = pcall(f)
    return ok, ok and "" or (gsub(tostring(message), "^[^:]*:%d+: ", ""))
end

add("race", "race(A, B [, {seconds=}])",
    "Runs every kernel on A * B (or on the dot of two vectors), checks each " ..
    "and ranks them by time.",
    "race(ones(3, 3), ones(3, 3), {seconds = 0.01})[1].accept", "true",
    function(A, B, options)
        check_product("race", A, B)
        options = check_options("race", options, {seconds = "number"})
        local is_dot = A.ndim == 1 and B.ndim == 1
        local operation = is_dot and "dot" or "matmul"
        local run = library[operation]
        local flops = is_dot and 2 * A.size or
            2 * (A.size // larger(inner_size(A), 1)) * B.size
        local ranked, lines = {}, {}
        for _, k in ipairs(library.kernel_list(A.device)) do
            if k.operation == operation and k.available then
                local how = {kernel = k.name}
                local ok, why = attempt(function() run(A, B, how) end)
                local row = {name = k.name, why = why, time = huge}
                if ok then
                    local b = library.bench(function() run(A, B, how) end,
                        {seconds = options.seconds or 0.2,
                         least = 3, device = A.device})
                    local v = library.verify(run(A, B, how), A, B)
                    row.time, row.accept, row.verdict = b.median, v.accept,
                        tostring(v)
                    row.gflops = flops / b.median / 1e9
                end
                ranked[#ranked + 1] = row
            end
        end
        sort(ranked, function(a, b) return a.time < b.time end)
        for i, r in ipairs(ranked) do
            lines[i] = r.accept == nil and
                format("%-10s  %s", r.name, r.why) or
                format("%-10s %12.4g us %10.4g GFLOP/s   %6.2fx   %s",
                    r.name, r.time * 1e6, r.gflops, r.time / ranked[1].time,
                    r.verdict)
        end
        return shown(ranked, concat(lines, "\n"))
    end)

methods.verify = library.verify
