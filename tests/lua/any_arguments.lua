-- Calls the library's functions, methods and operators with random arguments
-- of all kinds: any_arguments.lua SEED CALLS. Each call is a line of the file
-- "report" before it is made, and so is what it raises.
local seed, calls = tonumber(arg[1]), tonumber(arg[2])
local registry, library = debug.getregistry(), require "lumat"
local help, methods = registry["lumat.help"], registry["lumat.methods"]
local report = assert(io.open("report", "w"))
report:setvbuf("line")
math.randomseed(seed)

local function sorted(t)
    local names = {}
    for name in pairs(t) do names[#names + 1] = name end
    table.sort(names)
    return names
end

local function pick(t) return t[math.random(#t)] end

-- --- what is called ----------------------------------------------------------

-- Some take a second or two whatever they are given.
local slow = {bench = 1, timing = 1, race = 1, peak = 1, rate = 1, timed = 1}
local functions, own = sorted(help), sorted(methods)

local function new_experiment(name)
    local e = library.experiment{name = name, dir = "runs-" .. name,
        axes = {n = {1, 2}, k = {"a", "b"}}, repeats = 2,
        measure = function(p) return function() return p.n end end}
    e:run()
    return e
end
local experiments = {new_experiment("one"), new_experiment("two")}
local views = {"plan", "points", "results", "environments", "table", "csv",
    "jsonl", "plot", "report", "compare"}

-- No functions of the library's, but what they give is met by these.
local operators = {
    ["+"] = function(a, b) return a + b end,
    ["-"] = function(a, b) return a - b end,
    ["*"] = function(a, b) return a * b end,
    ["/"] = function(a, b) return a / b end,
    ["%"] = function(a, b) return a % b end,
    ["^"] = function(a, b) return a ^ b end,
    ["//"] = function(a, b) return a // b end,
    ["&"] = function(a, b) return a & b end,
    ["|"] = function(a, b) return a | b end,
    ["~"] = function(a, b) return a ~ b end,
    ["<<"] = function(a, b) return a << b end,
    [".."] = function(a, b) return a .. b end,
    ["=="] = function(a, b) return a == b end,
    ["<"] = function(a, b) return a < b end,
    ["<="] = function(a, b) return a <= b end,
    ["unary -"] = function(a) return -a end,
    ["unary ~"] = function(a) return ~a end,
    ["#"] = function(a) return #a end,
    ["[]"] = function(a, b) return a[b] end,
    ["[]="] = function(a, b, c) a[b] = c end,
    ["[{}]"] = function(a, b, c) return a[{b, c}] end,
    ["[{}]="] = function(a, b, c, d) a[{b, c}] = d end,
    ["()"] = function(a, ...) return a(...) end,
    ["tostring"] = tostring,
    ["ipairs"] = function(a) for _ in ipairs(a) do end end,
    ["pairs"] = function(a) for _ in pairs(a) do end end,
    ["format"] = function(a, b) return ("%s %d %g"):format(a, b, b) end,
    ["e:run"] = function(a) return experiments[1]:run(a) end,
}
local signs = sorted(operators)

-- --- arguments ---------------------------------------------------------------

local words = {"", "a", "b", "text", "d", "mask", "mean", "month", "x", "f32",
    "f64", "i32", "bool", "cpu", "cuda:9", "tiled",
    "reference", "auto", "on", "off", "reset", "top", "json", "rows", "1:2",
    "end", "a\0b", "\xff\xfe", "caf\xc3\xa9", "%s%n", "x.npy", "x.csv",
    "x.lum", "x.png", "nosuch/x.npy", ("x"):rep(300), "A", "sum", "f32 2x2",
    "1e5", "0x10", "nan", "~/y.csv", "."}
local numbers = {0, 1, 2, 3, 4, 5, 7, 100, -1, -2, -7, 0.5, -1.5, 1e300,
    1e-300, 1 / 0, -1 / 0, 0 / 0, 2 ^ 31, 2 ^ 53, 2 ^ 62, 2 ^ 63,
    math.maxinteger, math.mininteger, 1 << 31, (1 << 32) + 1, 3.0}
local keys = {"out", "dtype", "kernel", "tile", "transA", "transB", "alpha",
    "beta", "device", "precision", "axis", "name", "n", "rows", "cols", "bins",
    "width", "height", "descending", "low", "high", "file", "axes", "measure",
    "setup", "check", "min", "max", "seed", "warmup", "x", "y", "by", "value",
    "where", "stat", "title", "to", "k", 1, 2, 3}

local of_frames = sorted(help.frame.members)
local of_groups = {"count", "sum", "mean", "median", "min", "std", "first",
    "agg", "apply", "each"}
local of_columns = {text = {"eq", "ne", "isin", "match", "map", "totable"},
    date = {"year", "weekday", "floor", "text", "ge", "eq", "min", "totable"}}

local pool = {}    -- what calls gave
local function old() return pool[math.random(40)] end

local function some_matrix()
    local m, n = math.random(0, 5), math.random(0, 5)
    local A = library.rand(3, 3)
    library.free(A)
    return pick{
        A,
        library.zeros(m, n),
        library.rand(m, n, {dtype = "f64"}),
        library.randint(-3, 3, m, n),
        library.rand(m, n):gt(0.5),
        library.full(m, n, 0 / 0),
        library.full(2, 2, math.huge),
        library.rand(m + 1, n + 1).T,
        library.rand(5, 5)[{{2, 4}, {1, 3}}],
        library.rand(5, 5)[math.random(5)],
        library.sparse(library.randint(0, 1, m, n):f32()),
        library.sparse({1, 3}, {2, 4}, {1.5, -2}, 5, 5),
        library.rand(m),
        library.eye(3),
    }
end

local function some_frame()
    local n = math.random(0, 4)
    local T = library.frame{{"a", library.randint(-3, 3, n):f32()}, {"b",
        library.rand(n, {dtype = "f64"})}, {"mask", library.rand(n):gt(0.5)}}
    local text, days = {}, {}
    for i = 1, n do
        text[i] = pick{"x", "y", "a longer one", "caf\xc3\xa9", "", false}
        days[i] = pick{"2020-02-29", "1999-12-31 23:59:59", false}
    end
    T.d, T.text = library.dates(days), "x"
    for i = 1, n do T.text[i] = text[i] end
    T.text[T.a:gt(2)] = "z"
    return T
end

local any

local function some_table(depth)
    local t = {}
    for _ = 1, depth < 3 and math.random(0, 4) or 0 do
        t[math.random(3) == 1 and pick(keys) or #t + 1] = any(depth + 1)
    end
    return t
end

local cyclic = {1, 2}
cyclic[3], cyclic.out = cyclic, cyclic
local function raise() error("raised", 0) end
local hostile = setmetatable({}, {__index = raise, __len = raise, __pairs = raise})
local lying = setmetatable({}, {__len = function() return 1e9 end,
    __tostring = function() return 1 end})

local callbacks = {
    function(...) return ... end, function() return old() end,
    raise, function() error({}) end, function() error(nil) end, coroutine.yield,
    function() return table.unpack({}, 1, 200) end,
}

local kinds = {
    function() return nil end,
    function() return pick(numbers) end,
    function() return math.random(5) end,
    function() return math.random() < 0.5 end,
    function() return pick(words) end,
    some_matrix, some_matrix, some_frame, old, some_table, some_table,
    function() return pick{{{1, 2}, {3, 4}}, {1, 2, 3}, {{1, 2}, {3}}, cyclic} end,
    function() return pick{hostile, lying} end,
    function() return pick(callbacks) end,
    function() return coroutine.create(print) end,
    function() return coroutine.wrap(function() coroutine.yield(1) end) end,
    function() return io.stdout end,
    function() return library[pick(functions)] end,
}

function any(depth) return pick(kinds)(depth or 0) end

-- What an argument is like, without calling anything of its own.
local function describe(x, depth)
    if type(x) == "string" then
        return ("%q"):format(#x > 20 and x:sub(1, 20) .. "…" or x)
    elseif math.type(x) then
        return tostring(x)
    elseif type(x) == "table" and not getmetatable(x) and depth < 3 and
        x ~= cyclic then
        local parts = {}
        for k, v in pairs(x) do
            parts[#parts + 1] = tostring(k) .. "=" .. describe(v, depth + 1)
        end
        return "{" .. table.concat(parts, ", ") .. "}"
    end
    local ok, text = pcall(function()
        return ("%s %dx%d"):format(x.dtype, x.rows, x.cols)
    end)
    return ok and text or type(x)
end

-- --- calls -------------------------------------------------------------------

-- The name, the function, its arguments.
local function next_call()
    local args = {n = math.random(0, 4)}
    for i = 1, args.n do args[i] = any() end
    if math.random(3) > 1 then
        args[1], args.n = some_matrix(), math.max(args.n, 1)
    end
    local kind = math.random(10)
    local name = pick(kind < 7 and functions or own)
    if kind == 1 then
        name = pick(signs)
        return name, operators[name], args
    elseif kind == 2 then
        name, args[1], args.n = pick(views), pick(experiments), math.max(args.n, 1)
        if args[1][name] then return "e:" .. name, args[1][name], args end
    elseif kind == 3 then
        name, args[1], args.n = pick(of_frames), some_frame(), math.max(args.n, 1)
        return "T:" .. name, args[1][name], args
    elseif kind == 4 then
        local T = some_frame()
        local of = pick{"text", "d", "groups"}
        local x = T[of == "groups" and "text" or of]
        if of == "groups" then x = T:groupby(pick{"a", "text", "d", {"a", "text"}}) end
        name = pick(of == "groups" and of_groups or of_columns[x.kind])
        args[1], args.n = x, math.max(args.n, 1)
        return of .. ":" .. name, x[name], args
    elseif slow[name] and math.random(20) > 1 then
        return next_call()
    end
    return name, library[name] or methods[name], args
end

-- Keeps what a call gave for others; returns what it raised.
local function take(ok, ...)
    if not ok then return (...) end
    for i = 1, math.min(select("#", ...), 3) do
        pool[math.random(40)] = (select(i, ...))
    end
    pcall(tostring, (...))
end

local function call_in_coroutine(f, ...)
    local thread = coroutine.create(function(...) return f(...) end)
    local message = take(coroutine.resume(thread, ...))
    if coroutine.status(thread) == "suspended" then coroutine.close(thread) end
    return message
end

local function call(f, args)
    if math.random(10) == 1 then
        return call_in_coroutine(f, table.unpack(args, 1, args.n))
    end
    return take(pcall(f, table.unpack(args, 1, args.n)))
end

local function reset()
    for name, value in pairs{default_dtype = "f32", tracing = false,
        checking = false, transcript = false, device = "cpu", profile = "off"} do
        library[name](value)
    end
    collectgarbage()
end

for i = 1, calls do
    local name, f, args = next_call()
    local parts = {}
    for k = 1, args.n do parts[k] = describe(args[k], 0) end
    report:write(("%d %s(%s)\n"):format(i, name, table.concat(parts, ", ")))
    local message = call(f, args)
    if message ~= nil then
        report:write("  ! ", tostring(message):gsub("\n", "\n  | "), "\n")
    end
    if i % 100 == 0 then reset() end
end
report:write("done\n")
