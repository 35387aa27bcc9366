-- Looking at products: the ladder shown, checked and raced.
local library, methods, help = ...

local function add(name, usage, text, example, result, f)
    library[name] = f
    help[name] = {usage = usage, help = text, example = example,
                  result = result}
end

-- A table that shows itself as text.
local function shown(fields, text)
    return setmetatable(fields, {__tostring = function() return text end})
end

add("kernels", "kernels([device])",
    "The ladder: every kernel of dot and matmul, with its idea and needs.",
    'kernels("cpu").count > 2', "true",
    function(device)
        local list = library.kernel_list(device)
        local lines = {}
        for i, k in ipairs(list) do
            lines[i] = string.format("%-7s %-10s %-6s %s%s", k.operation,
                k.name, k.precision, k.idea,
                k.available and "" or "  (needs " .. k.needs .. ")")
        end
        list.count = #list
        return shown(list, table.concat(lines, "\n"))
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
    return 6 * math.sqrt(k + 1) * u
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
        local ratio, alike, error = compare(C, A, B)
        local worst = ratio.size > 0 and ratio:max() or 0
        local accept = worst <= 1 and alike:all()
        local where = ""
        if not accept and ratio.ndim == 2 then
            local bad = alike:all() and ratio or (~alike):f32()
            where = string.format(" at [%d, %d]", bad:argmax())
        end
        local text
        if accept then
            text = string.format(
                "Accept: relative error %.2g, at most %.2g of the bound",
                error, worst)
        elseif not alike:all() then
            text = "FAILS: NaN or Inf where the reference has another value" ..
                where
        else
            text = string.format(
                "FAILS: %.3g times the bound%s, relative error %.2g", worst,
                where, error)
        end
        return shown({accept = accept, ratio = worst, error = error}, text)
    end)

local function median(list)
    table.sort(list)
    local n = #list
    return n % 2 == 1 and list[(n + 1) // 2] or
        (list[n // 2] + list[n // 2 + 1]) / 2
end

add("bench", "bench(f [, {seconds=, least=, device=}])",
    "Times f() until `seconds` (0.3) have passed and it ran `least` (5) " ..
    "times, after a warm-up. Fields: median, low, high (seconds), runs.",
    "bench(function() end, {seconds = 0.01}).runs >= 5", "true",
    function(f, options)
        options = options or {}
        local seconds, least = options.seconds or 0.3, options.least or 5
        local clock, timed = library.clock, library.timed
        timed(f, options.device)
        -- short calls are timed many at once
        local one = math.max(timed(f, options.device), 1e-9)
        local batch = math.max(1, math.min(1000000, math.floor(2e-5 / one)))
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
            string.format("%.4g us  (%.4g to %.4g, %d runs)", middle * 1e6,
                low * 1e6, high * 1e6, #times * batch))
    end)

-- Can this kernel do this product? The message if not.
local function attempt(f)
    local ok, message = pcall(f)
    return ok, ok and "" or tostring(message):gsub("^[^:]*:%d+: ", "")
end

add("race", "race(A, B [, {seconds=}])",
    "Runs every kernel on A * B (or on the dot of two vectors), checks each " ..
    "and ranks them by time.",
    "race(ones(3, 3), ones(3, 3), {seconds = 0.01})[1].accept", "true",
    function(A, B, options)
        local is_dot = A.ndim == 1 and B.ndim == 1
        local operation = is_dot and "dot" or "matmul"
        local run = library[operation]
        local flops = is_dot and 2 * A.size or
            2 * (A.size // math.max(inner_size(A), 1)) * B.size
        local ranked, lines = {}, {}
        for _, k in ipairs(library.kernel_list(A.device)) do
            if k.operation == operation and k.available then
                local how = {kernel = k.name}
                local ok, why = attempt(function() run(A, B, how) end)
                local row = {name = k.name, why = why, time = math.huge}
                if ok then
                    local b = library.bench(function() run(A, B, how) end,
                        {seconds = options and options.seconds or 0.2,
                         least = 3, device = A.device})
                    local v = library.verify(run(A, B, how), A, B)
                    row.time, row.accept, row.verdict = b.median, v.accept,
                        tostring(v)
                    row.gflops = flops / b.median / 1e9
                end
                ranked[#ranked + 1] = row
            end
        end
        table.sort(ranked, function(a, b) return a.time < b.time end)
        for i, r in ipairs(ranked) do
            lines[i] = r.accept == nil and
                string.format("%-10s  %s", r.name, r.why) or
                string.format("%-10s %12.4g us %10.4g GFLOP/s   %6.2fx   %s",
                    r.name, r.time * 1e6, r.gflops, r.time / ranked[1].time,
                    r.verdict)
        end
        return shown(ranked, table.concat(lines, "\n"))
    end)

methods.verify = library.verify
