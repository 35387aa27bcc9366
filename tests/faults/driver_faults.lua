-- LUMAT_FAULT=off lumat driver_faults.lua [word]: lets calls of the GPU's driver
-- fail, each of each name that the cases below make (those with the word in
-- their names), once and with all calls of that name behind it. Prints a line a
-- case, and BAD with why.
--
-- What comes is an error that says what failed, or the result as it always is.
-- Then what there was before is as it was, the same work gives what it should,
-- and no memory of the device is held that was not.
local faults = require "lumat.faults"
local library = require "lumat"
local steps = require "lumat.factor_steps"
local data = require "lumat.data_steps"
local only = arg[1] or ""
local ends_at = os.getenv "SECONDS" and clock() + tonumber(os.getenv "SECONDS")
local MOST = tonumber(os.getenv "POINTS") or 1e9 -- of a name and a case

-- What a call that usually ends the use of the device gives here in its place:
-- cudaErrorInvalidResourceHandle.
local OTHER = 400
local ENDS = {cudaStreamQuery = true, cudaStreamSynchronize = true,
    cudaEventQuery = true, cudaEventSynchronize = true}

-- --- what is done ------------------------------------------------------------

seed(7)
local A, B = rand(7, 9), rand(7, 9)
-- Brought there, as a CPU that solves looks at elements.
local function dominant(n, dtype)
    local there = {device = "cpu", dtype = dtype}
    return (rand(n, n, there) + n * eye(n, there)):to(A.device)
end
local D = dominant(9, "f64")
local large, large_32 = dominant(130, "f64"), dominant(130, "f32") -- no CPU's
local v, w = rand(500), rand(500)
local tall, wide = rand(300, 130), rand(130, 260)
local S = rand(40, 40, {device = "cpu"})
S = sparse(S:gt(0.8) % S):to(A.device)
local long = rand(1 << 18)
local near = rand(6, 6):to "cpu"

local is_fake = ones(3):sum() ~= 3 -- a GPU whose kernels do nothing
local cases = {}
local function case(name, act) cases[#cases + 1] = {name = name, act = act} end

-- Of cases that look at elements.
local function computing(name, act)
    if not is_fake then case(name, act) end
end

case("make", function()
    return {zeros(3, 3), ones(4), eye(3), range(1, 9), linspace(0, 1, 5),
        mat{{1, 2}, {3, 4}}, vec{1, 2}, diag(v), full(3, 4, 7),
        fromfn(3, 3, function(i, j) return i * j end), zeros(0, 3)}
end)
case("random", function()
    seed(3)
    return {rand(9, 9), randn(9, 9), randint(1, 6, 20), randperm(20),
        rand(3, 3, {dtype = "f64"})}
end)
case("elementwise", function()
    return {sqrt(sin(A) % B + 2) - A / 3, A:f64() + B:f64(), A.T + B.T,
        A["1:3, :"] * 2, exp(A) + v:sum(), maximum(A, B), atan2(A, B)}
end)
case("broadcast", function()
    return {A + A:row(1), A % A:col(1), A[2] + 1, A + 1 - 2 * B}
end)
case("masks", function()
    local C = A:clone()
    C[C:gt(0.5)] = 1
    C[C:lt(0.1)] = C[C:lt(0.1)] + 1
    return {C, C[C:gt(0)], where(A:gt(B), A, B), A:gt(0.5):sum(), all(A:gt(0)),
        any(A:gt(2))}
end)
case("reductions", function()
    return {A:sum(), A:mean(1), A:var(2), A:argmax(), A:prod(1), std(A), norm(A),
        A:max(1), A:min(2), argmin(A, 1), A.T:sum(1), long:sum(), long:max(),
        norm(long), std(long)}
end)
case("fused", function() return {((A - B) % (A - B)):sum(), (v + w):max()} end)
case("scans", function()
    return {A:cumsum(1), A:cumsum(2), cumprod(A, 1), v:cumsum(), cummax(v),
        cummin(A, 2), cumany(A), long:cumsum():sum(), v:f64():cumsum()}
end)
case("groups", function()
    local codes = (v * 40):f64()
    local counts, order = data.group(codes, 0, 40, true)
    local starts = hcat(ones(1, {dtype = "f64"}), cumsum(counts) + 1)
    return {counts, order, data.fold("sum", v, false, codes, 0, 40),
        data.fold_ordered("max", w, true, starts, order),
        data.fold("spread", long, false, long, 0, 1, ones(1, {dtype = "f64"})),
        data.search(v, w, true), data.window("mean", v, 1, 5, -2, 500),
        data.window("median", v, 1, 2000, -500, 500), A[randperm(7, {seed = 5})]}
end)
case("sorts", function()
    return {sort(A, 1), sort(A, 2), sort(v), argsort(v), sort(v:f64()),
        sort(long):sum(), argsort(A, 2)}
end)
case("moves", function()
    local C = A:clone()
    C[{{1, 2}, {}}] = 0
    C["3, :"] = 5
    C[vec{1, 4}] = 2
    return {C, vcat(A, B), hcat(A, B), tile(A, 2, 2), reshape(A, 63), flip(A),
        take(v, vec{3, 1}), outer(A[1], A[2]), tril(D), kron(near, near),
        A.T:clone(), put(v:clone(), vec{9, 8}, vec{2, 5}), diag(D), repelem(v, 2)}
end)
for _, k in ipairs(library.kernel_list(A.device)) do
    local how = {kernel = k.name}
    for _, dtype in ipairs{"f32", "f64"} do
        local name = k.operation .. " " .. k.name .. " " .. dtype
        local a, b = tall[dtype](tall), wide[dtype](wide)
        local x, y = v[dtype](v), w[dtype](w)
        local square = rand(70, 70, {dtype = dtype})
        if k.name == "vector" then b = b[{{}, {1, 3}}] end
        if not k.available or not k[dtype] then
            goto other
        elseif k.operation == "matmul" then
            case(name, function()
                return {norm(matmul(a, b, how)), norm(matmul(b.T, a.T, how))}
            end)
        elseif k.operation == "dot" then
            case(name, function() return dot(x, y, how) end)
        elseif k.operation == "lu" then
            case(name, function() return {(steps.lu(square, k.name))} end)
        elseif k.operation == "chol" then
            local S = square + 70 * eye(70, {dtype = dtype})
            case(name, function() return {(steps.chol(S + S.T, k.name))} end)
        elseif k.operation == "qr" then
            case(name, function()
                return {(steps.qr(square, false, k.name))}
            end)
        end
        ::other::
    end
    if k.operation == "lu" and k.available and k.c64 then
        local Z = complex(rand(70, 70), rand(70, 70))
        case("lu " .. k.name .. " c64", function()
            return {(steps.lu(Z, k.name))}
        end)
    end
end
case("products", function()
    local C = zeros(300, 260)
    matmul(tall, wide, {out = C})
    return {norm(C), norm(A * B.T), tall * wide[{{}, 1}], dot(v, w),
        norm(tall * wide[{{}, {1, 3}}]), norm(wide.T * tall.T + 1)}
end)
case("odd products", function()
    local N = tall:clone()
    N[5] = 0 / 0
    N[{7, 7}] = 1e30
    return {(N * wide)[{7, 1}], norm((tall * 1e-30) * wide)}
end)
computing("checked", function()
    checking(true)
    local ok, got = pcall(function()
        return {norm(tall * wide), dot(v, w)}
    end)
    checking(false)
    return ok and got or error(got, 0)
end)
case("systems", function()
    return {solve(D, ones(9, {dtype = "f64"})), inv(D), det(D), rcond(D)}
end)
case("larger systems", function()
    return {solve(large, ones(130, {dtype = "f64"})), inv(large), det(large),
        rcond(large), solve(large_32, ones(130, 2)), (steps.lu(large)),
        (steps.lu(large:c64()))}
end)
case("complex products", function()
    local Z = complex(A, B)
    local both = complex(large:f32(), large.T:f32())
    return {Z * Z.H, Z.H * Z[{{}, {1, 1}}], A.T * Z:c128(), both * both.H,
        large * both}
end)
-- By a kernel of our own, and beyond its sides one by one.
local small, pair = tile(D, 5, 1), tile(rand(140, 140) + 140 * eye(140), 2, 1)
case("batches", function()
    return {(steps.batch(small, ones(45, 2), 5)),
        (steps.batch(small:c64(), ones(45, 1), 5)),
        (steps.batch(pair, ones(280, 1), 2))}
end)
computing("factors", function()
    return {lu(D).L, chol(D.T * D):det(), qr(D).R, svd(D).S, svdvals(A)}
end)
-- Their steps, which look at no elements before.
local function factor_cases(kind, D, M, wide, tall)
    case("LU, Cholesky" .. kind, function()
        local S = D + D.H
        return {(steps.lu(D)), (steps.lu(M)), (steps.chol(S)),
            (steps.triangle(S, D, {lower = true})),
            (steps.triangle(S, D["1:9, 1"], {unit = true, turned = true}))}
    end)
    case("QR" .. kind, function()
        local packed, tau = steps.qr(D)
        return {packed, tau, steps.qr_q(packed, tau, 9),
            steps.qr_apply(packed, tau, true, D), (steps.qr(D, true))}
    end)
    case("values" .. kind, function()
        local list = {steps.svd(D, "full")}
        for _, part in ipairs{wide, tall} do
            list[#list + 1] = steps.svd(part, "values")
            list[#list + 1] = select(2, steps.svd(part, "thin"))
        end
        list[#list + 1] = steps.eigh(D, false)
        list[#list + 1] = select(2, steps.eigh(D, true))
        return list
    end)
end
local wide_32, tall_32 = rand(70, 80), rand(80, 70)
factor_cases("", D, A, wide_32, tall_32)
local Z = complex(A, B)
factor_cases(", complex", D:c128(), Z, wide_32:c64(), tall_32:c64())
case("complex elements", function()
    local C = Z:clone()
    C:mul_(im)
    return {Z % C, Z / 2, sqrt(Z), abs(Z.H), Z:c128() % A, where(Z, im, Z)}
end)
case("transforms", function()
    return {fft(A), ifft(complex(A, B), {axis = 2}), rfft(v), irfft(rfft(v)),
        fft2(A), fft2(A.T), conv(v, w), conv(A, B), fft(v:f64(), 700)}
end)
-- The transpose of S is made and kept once it was multiplied often.
for _ = 1, 40 do local _ = S.T * v["1:40"] end
case("sparse", function()
    local x, X = v["1:40"], tall["1:40, 1:9"]
    return {full(S), S * x, S.T * x, (S * 2).T * x, S * X, S.nnz, full(S * 2), S["2:5, :"].nnz,
        S:f64() * x:f64()}
end)
case("transfers", function()
    local there = near:to(A.device)
    local C = A:clone()
    C[{1, 1}] = 5
    return {there, A:to "cpu", C[{1, 1}], A[{2, 3}], #A:totable()}
end)
case("large transfers", function()
    local x = zeros(17 << 20, 1, {device = "cpu"}):to(A.device)
    return {x:sum(), x:to "cpu":sum()}
end)
local here, beside = A:to "cpu", B:to "cpu"
case("views that cross", function()
    local x = here["1:3, 2:8"]:to(A.device)
    return {x, here.T:to(A.device), A.T:to "cpu", x["2:3, :"]:to "cpu"}
end)
local table_of_500 = v:to "cpu":reshape(20, 25)
case("tiles", function() -- LUMAT_TILE makes them small
    local by = {device = A.device}
    local C = here:clone()
    matmul(here, beside.T, {device = A.device, beta = 2, out = C[{{}, {1, 7}}]})
    return {add(here, beside, by), sqrt(table_of_500, by), here:sum(by),
        argmax(table_of_500, by), table_of_500:max{axis = 1, device = A.device},
        norm(here, by), C, map(here, beside, function(x, y) return x + y end, by)}
end)
local folder = os.tmpname()
os.remove(folder)
local two = {A.device, "cuda:1"}
local has_two = pcall(library.kernel_list, two[2])
if has_two then
    case("tiles of two", function()
        local by = {device = two}
        local C = here:clone()
        matmul(here, beside.T, {device = two, beta = 2, out = C[{{}, {1, 7}}]})
        return {matmul(here, beside.T, by), add(here, beside, by), here:max(by),
            argmax(table_of_500, by), table_of_500:max{axis = 1, device = two},
            C}
    end)
end
case("files", function()
    save(A, folder .. ".npy")
    save(A, folder .. ".csv")
    local got = {load(folder .. ".npy"), load(folder .. ".csv")}
    kept = A
    save_session(folder .. ".lum", {"kept"})
    load_session(folder .. ".lum", {"kept"})
    got[3] = kept
    kept = nil
    return got
end)
computing("looking", function()
    return {tostring(tall), tostring(S), tostring(heat(tall)), tostring(hist(v)),
        (tostring(inspect(A)):gsub("%d+ [mun]s", ""))}
end)
case("time", function()
    sync()
    timed(function() return A + B end)
    timing(function() return A + B end)
    memory()
    return {}
end)
case("map", function() return {A:map(function(x) return x * 2 + 1 end)} end)
case("rows", function()
    local t = 0
    for _, row in A:eachrow() do t = t + row:sum() end
    return t
end)
case("closing", function()
    local C <close> = A + 1
    local E = C * 2
    E:free()
    return {C:sum()}
end)
local has_naive = false
for _, k in ipairs(library.kernel_list(A.device)) do
    has_naive = has_naive or k.name == "naive"
end
if has_naive then
    local n <const> = 2048
    local large = rand(n, n)
    case("waiting", function() -- for what takes so long that events mark it
        local C = zeros(n, n)
        for _ = 1, 2 do matmul(large, large, {kernel = "naive", out = C}) end
        return {norm(C)}
    end)
    case("large product", function() return {norm(large * large)} end)
end
case("much", function()
    local x = long:clone()
    for _ = 1, 30 do x:add_(1) end
    return {x:sum() > 0}
end)

-- --- what comes of it ----------------------------------------------------------

-- The value with its matrices in the host's memory.
local function fetch(x)
    if type(x) == "userdata" then return x:to "cpu" end
    if type(x) ~= "table" or getmetatable(x) then return x end
    local out = {}
    for key, value in pairs(x) do out[key] = fetch(value) end
    return out
end

local function same(x, y)
    if is_fake then return true end
    if type(x) ~= "table" or getmetatable(x) then
        return x == y or x ~= x and y ~= y
    end
    for key, value in pairs(x) do
        if not same(value, y[key]) then return false end
    end
    return true
end

-- Garbage goes, and all that is kept or cached on the device.
local function make_cold()
    pcall(function() return zeros(1 << 21, 1 << 21):cumsum(1) end)
end

local function live()
    make_cold()
    collectgarbage()
    return memory(A.device).live + (has_two and memory(two[2]).live or 0)
end

-- What the errors say.
local documented = {"out of memory", "no memory for", "%(cudaError[%w]+%)",
    "cuBLAS failed", "cuFFT failed", "cuSOLVER failed", "cuSPARSE failed",
    "the driver makes no map", "^no room to", "cannot run: it needs"}
local function is_documented(message)
    for _, pattern in ipairs(documented) do
        if tostring(message):find(pattern) then return true end
    end
end

local tried, errors, bad = 0, 0, 0
local met = {} -- names of calls

local function complain(point, ...)
    bad = bad + 1
    print("BAD", point, ...)
end

local function operands() return fetch{A, B, D, v, w, full(S), near} end
local before = operands()
local base

-- Begins and ends cold.
local function try(c, point)
    tried = tried + 1
    faults.arm(point)
    local ok, got = pcall(function() return fetch(c.act()) end)
    local hit = faults.injected()
    faults.arm "off"
    -- (how often a stream or an event is asked depends on how long it takes)
    local by_time = c.varies or point:find "^cuda%a+Query"
    if hit == 0 and not by_time then
        return complain(c.name .. " " .. point, "the call was not made")
    end
    if not ok then
        errors = errors + 1
        if not is_documented(got) then
            complain(c.name .. " " .. point, "says", tostring(got))
        end
    elseif not same(got, c.expected) then
        complain(c.name .. " " .. point, "gives something else")
    end
    local works, again = pcall(function() return fetch(c.act()) end)
    if not works or not same(again, c.expected) then
        complain(c.name .. " " .. point, "and then",
            works and "gives something else" or again)
    end
    if not same(before, operands()) then
        complain(c.name .. " " .. point, "the operands have changed")
        os.exit(1)
    end
    got, again = nil, nil
    local now = live()
    if now > base then
        complain(c.name .. " " .. point, "held", base, "and now", now)
    end
    base = now
end

-- How many calls of each name it makes when nothing is kept from before.
local function count(c)
    make_cold()
    faults.arm "off"
    local ok, got = pcall(function() return fetch(c.act()) end)
    local calls = faults.calls()
    if not ok then complain(c.name, "without a fault:", tostring(got)) end
    return calls, got
end

-- The first call fails, then the second, until there are no more: those among
-- them that are made once, for all that follows, before they were.
local EVERY = 1 -- an error that all of CUDA's libraries know
local function begin(c)
    for n = 1, MOST do
        faults.arm("any:" .. n .. ":once:" .. EVERY)
        local ok, got = pcall(function() return fetch(c.act()) end)
        for name, calls in pairs(faults.calls()) do
            if calls > 0 then met[name] = true end
        end
        if faults.injected() == 0 then return faults.arm "off" end
        tried, errors = tried + 1, errors + (ok and 0 or 1)
        if not ok and not is_documented(got) then
            complain(c.name .. " any:" .. n, "says", tostring(got))
        end
    end
end

local function is_time_left() return not ends_at or clock() < ends_at end

local function go_through(c)
    local calls, names, before, failed = nil, {}, tried, errors
    make_cold()
    begin(c)
    count(c) -- what is made once is there
    calls, c.expected = count(c)
    local other, got = count(c)
    if not same(got, c.expected) then
        return complain(c.name, "does not repeat")
    end
    for name, n in pairs(calls) do
        names[#names + 1] = name
        if other[name] ~= n then c.varies = true end
    end
    table.sort(names)
    base = live()
    for _, name in ipairs(names) do
        local step = math.max(1, calls[name] // MOST)
        for n = 1, calls[name], step do
            for _, how in ipairs{"once", "forever"} do
                if is_time_left() then
                    try(c, name .. ":" .. n .. ":" .. how ..
                        (ENDS[name] and ":" .. OTHER or ""))
                end
            end
        end
    end
    print(("%-24s %5d points, %5d errors%s"):format(c.name, tried - before,
        errors - failed, c.varies and "  (its calls vary)" or ""))
end

for _, c in ipairs(cases) do
    if c.name:find(only, 1, true) and is_time_left() then go_through(c) end
end
for _, ending in ipairs{".npy", ".csv", ".lum"} do os.remove(folder .. ending) end
local names = {}
for name in pairs(met) do names[#names + 1] = name end
table.sort(names)
print("calls of " .. table.concat(names, " "))
print(("%d points, %d errors, %d bad"):format(tried, errors, bad))
if bad > 0 or tried == 0 then os.exit(1) end
