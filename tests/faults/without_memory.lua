-- lumat without_memory.lua NAME: does something while an allocation fails (see
-- fail_alloc.c), then again with memory. Prints GOOD, what came of it and how
-- many allocations there were, or BAD and why. Without a name: the names.
--
-- What came is an error that speaks of memory, or the result as it always is.
-- What there was before is as it was, and the session goes on.
local name = arg[1]
seed(7)
local A, B = rand(7, 7), rand(7, 7)
local D = (A + 7 * eye(7)):f64()
local v, image = rand(50), rand(300, 300)
local S = sparse(rand(20, 20):gt(0.8) % rand(20, 20))
local number = os.getenv "FAULT" or ""
local function file(ending) return "f" .. number .. ending end

local function read(path)
    local f <close> = assert(io.open(path, "rb"))
    return f:read "a"
end

-- Any value as text in which equal values are equal.
local function text(x)
    local is_matrix, values = pcall(function() return x:totable() end)
    if is_matrix then x = values end
    if type(x) == "table" and not getmetatable(x) then
        local out = {}
        for key, value in pairs(x) do
            out[#out + 1] = tostring(key) .. "=" .. text(value)
        end
        table.sort(out)
        return "{" .. table.concat(out, ",") .. "}"
    end
    if math.type(x) == "float" then return ("%.9g"):format(x) end
    return (tostring(x):gsub("0x%x+", ""))
end

local function experiment_of(folder)
    local e = experiment{name = "x", dir = file(folder), axes = {n = {1, 2, 3}},
        measure = function(p) return p.n * 1e-3 end, repeats = 1, warmup = 0}
    e:run{quiet = true}
    return e
end

local does = {}
function does.elementwise() return sqrt(sin(A) % B + 2) - A / 3 end
function does.reduce()
    return {A:sum(), A:mean(1), A:var(2), A:argmax(), A:prod(1), A:cumsum(1)}
end
function does.solve()
    return {solve(D, ones(7, {dtype = "f64"})), inv(D), det(D), norm(D)}
end
function does.factor()
    local P = D.T * D
    local _, R = qr(A):unpack()
    return {lu(D):solve(ones(7)), chol((P + P.T) / 2).L, R:abs(), svd(A).S,
        eigh(A + A.T).values, lstsq(A, ones(7)), rank(ones(3, 2)), expm(A)}
end
function does.index()
    local C = A:clone()
    C[{{1, 2}, {}}] = 0
    C["3, :"] = 5
    C[C:gt(0.5)] = 1
    return {C, C[C:gt(0)], A[2], A["1:3, end"]}
end
function does.shape()
    return {vcat(A, B), A .. B, tile(A, 2, 2), reshape(A, 49), flip(A),
        take(v, vec{3, 1}), outer(v, v)}
end
function does.sort()
    return {sort(A, 1), sort(v), argsort(v), sort(rand(3000)):row().cols}
end
function does.make()
    return {zeros(3, 3), eye(3), range(1, 9), linspace(0, 1, 5),
        mat{{1, 2}, {3, 4}}, diag(v), tril(A), fromfn(3, 3, function(i, j) return i * j end)}
end
function does.map()
    local function less(x, y) if x < y then return x * 2 end return y end
    return {A:map(function(x) return x * 2 end),
        map(tile(A, 2, 2), tile(B, 2, 2), function(x, y)
            return less(x, y) + less(sin(y), math.sqrt(3))
        end)}
end
function does.text()
    return tostring(A) .. tostring(image) .. tostring(S) .. tostring(v)
end
function does.look()
    return tostring(inspect(A)) .. tostring(hist(A)) .. tostring(heat(A)) ..
        tostring(spy(A))
end
function does.plot() return tostring(plot(v)) end
function does.picture()
    local chart, all = plot(v), ""
    for _, ending in ipairs{".svg", ".png", ".pdf"} do
        save(chart, file(ending))
        all = all .. read(file(ending))
    end
    return all
end
function does.sparse() return {full(S), full(S.T), S.nnz, (S * ones(20))} end
function does.load_csv() return load "in.csv" end
function does.load_npy() return load "in.npy" end
function does.save_npy() save(A, file ".npy") return read(file ".npy") end
function does.save_csv() save(A, file ".csv") return read(file ".csv") end
function does.save_session()
    kept, part, word = A, A[2], "text"
    save_session(file ".lum")
    return read(file ".lum")
end
function does.load_session() load_session "in.lum" return {kept, part, word} end
function does.help() help "matmul" return true end
function does.who() return tostring(mem()) ~= "" and who() == nil end
function does.how() return tostring(how "kept") end
function does.settings()
    settings{digits = 6}
    local t = tostring(settings())
    settings{digits = 5}
    return t
end
function does.transcript()
    transcript(file ".log")
    print "hello"
    transcript(false)
    return true
end
function does.experiment()
    local t = tostring(experiment_of "run":table{rows = "n"})
    return (t:gsub("%d+ s", ""))
end
function does.report()
    local e = experiment_of "report"
    e:report(file ".html")
    e:csv(file "t.csv")
    e:jsonl(file ".jsonl")
    e:plot{x = "n", y = "time", file = file "t.svg"}
    return #read(file ".html") > 999
end
function does.error() return select(2, pcall(function() return A + rand(3, 4) end)) end
function does.coroutine()
    local next = coroutine.wrap(function()
        for i = 1, 3 do coroutine.yield((A * i):sum()) end
    end)
    return {next(), next(), next()}
end
function does.rows()
    local t = 0
    for _, row in A:eachrow() do t = t + row:sum() end
    return t
end
function does.load_text() return load "return 1 + 1"() end

-- What enters the BLAS library (peaks are measured by it), which itself ends the
-- process where it gets no memory: with LIBRARY=1.
if os.getenv "LIBRARY" then
    function does.product() return A * B end
    function does.large_product() return norm(image * image) end
    function does.large_solve() return norm(solve(image + 300 * eye(300), ones(300))) end
    function does.trace() tracing(true) local C = A + B tracing(false) return C end
    function does.profile()
        profile "on"
        local _ = A + B
        profile "off"
        profile("json", file ".json")
        return #read(file ".json") > 99
    end
end

if not name then
    save(rand(5, 4), "in.csv") save(rand(5, 4), "in.npy")
    kept, part, word = A, A[2], "text"
    save_session "in.lum"
    for key in pairs(does) do print(key) end
    return
end

local function bad(...)
    print("BAD", ...)
    os.exit(9)
end
local before = text(A) .. text(B)
local act = does[name]
-- Libraries below LAPACK leave the program where they get no memory to begin
-- with: that is tried by a process of its own, which no fault of one reaches.
if name == "factor" then local _ = svd(A).S end
os.getenv "FAIL_BEGIN"
local ok, got = pcall(act)
os.getenv "FAIL_END"
local count, failed = os.getenv "FAIL_COUNT", os.getenv "FAIL_DONE"
local says_memory = not ok and tostring(got):lower():find("memory", 1, true)
if not ok and not says_memory then bad("names another cause: ", tostring(got)) end
if text(A) .. text(B) ~= before then bad "the operands have changed" end
tracing(false) pcall(transcript, false) profile "off" settings{digits = 5}
local works, again = pcall(act)
if not works then bad("it does not work afterwards: ", tostring(again)) end
if ok then
    got, again = text(got), text(again)
    if got ~= again and not got:lower():find("memory", 1, true) and got ~= text(act()) then
        bad("it differs:\n", got, "\n", again)
    end
end
collectgarbage()
print("GOOD", not failed and "nothing failed" or ok and "no harm" or "error", count)
