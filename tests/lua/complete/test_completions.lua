-- What Tab offers: by what stands before the cursor, without running anything,
-- and in time. How it looks is in tests/repl/completion*.session.
local lu = require "luaunit"
local t = require "common"

local registry = debug.getregistry()
local help = registry["lumat.help"]

-- The names offered, as one string.
local function offered(line)
    return table.concat(completions(line), " ")
end

local function has(line, name)
    return (" " .. offered(line) .. " "):find(" " .. name .. " ", 1, true) ~= nil
end

TestOptions = {}

-- The arguments of an example that is one call of the function, without the
-- table of options, or the axis that stands for one: "A" of "f(A, {axis = 1})".
local function arguments_of(name, entry)
    local list = entry.example:match("^" .. name .. "%((.*)%)$")
    list = list and list:gsub(",%s*{[%w_]+ = [^{}]*}$", "")
    if list and entry.usage:find("[, axis])", 1, true) then list = list:gsub(", [12]$", "") end
    return list
end

-- What a function with options says of one that it does not have lists those
-- that it has; Tab has to know each, and no other.
local function accepted(name, call)
    local ok, message = pcall(call)
    lu.assertFalse(ok, name)
    local list = message:match("there are ([%w_ ]+)$")
    lu.assertNotNil(list, name .. ": " .. message)
    local names = {}
    for option in list:gmatch("%S+") do names[#names + 1] = option .. "=" end
    table.sort(names)
    return table.concat(names, " ")
end

local A, v = eye(2), vec{1, 2}
local wrong = {qqqqqqqqqq = 1}
local calls = {
    matmul = function() matmul(A, A, wrong) end,
    dot = function() dot(v, v, wrong) end,
    zeros = function() zeros(2, 2, wrong) end,
    mat = function() mat({{1}}, wrong) end,
    range = function() range(1, 2, 1, wrong) end,
    rand = function() rand(2, wrong) end,
    randn = function() randn(2, wrong) end,
    randint = function() randint(1, 2, 2, wrong) end,
    randperm = function() randperm(2, wrong) end,
    sort = function() sort(v, wrong) end,
    argsort = function() argsort(v, wrong) end,
    cumsum = function() cumsum(A, wrong) end,
    cumprod = function() cumprod(A, wrong) end,
    who = function() who("*", wrong) end,
    sparse = function() sparse(A, wrong) end,
    add = function() add(A, A, wrong) end,
    sin = function() sin(A, wrong) end,
    complex = function() complex(A, wrong) end,
    save = function() save(A, "/nowhere/f.csv", wrong) end,
    load = function()
        load("/nowhere/f.csv", wrong)
    end,
    verify = function() verify(A, A, A, wrong) end,
    race = function() race(A, A, wrong) end,
    bench = function() bench(print, wrong) end,
    hist = function() hist(A, wrong) end,
    histogram = function() histogram(A, wrong) end,
    heat = function() heat(A, wrong) end,
    spy = function() spy(A, wrong) end,
    svd = function() svd(A, wrong) end,
    lu = function() require "lumat".lu(A, wrong) end,
    chol = function() chol(A, wrong) end,
    eig = function() eig(A, wrong) end,
    rosser = function() rosser(wrong) end,
    qr = function() qr(A, wrong) end,
    laplacian = function() laplacian(A, wrong) end,
    spectral_embedding = function() spectral_embedding(A, 1, wrong) end,
    sprand = function() sprand(1, 1, 1, wrong) end,
    sprandn = function() sprandn(1, 1, 1, wrong) end,
    ichol = function() ichol(sparse(A), wrong) end,
    plot = function() plot(v, wrong) end,
    subplot = function() subplot({plot(v)}, wrong) end,
    experiment = function() experiment(wrong) end,
    pool = function() pool(wrong) end,
    dzeros = function() dzeros(1, 1, wrong) end,
    deye = function() deye(1, 1, wrong) end,
    dload = function() dload("/nowhere/f.npy", wrong) end,
    drand = function() drand(1, 1, wrong) end,
    drandn = function() drandn(1, 1, wrong) end,
    spread = function() spread(A, wrong) end,
}

for name, call in pairs(calls) do
    TestOptions["test_" .. name] = function()
        local start = (name == "experiment" or name == "pool") and "{" or
            name == "rosser" and "({" or name == "subplot" and
            "({plot(v)}, {" or "(A, {"
        lu.assertEquals(offered(name .. start), accepted(name, call))
    end
end

-- The others with options are called as their examples are.
local function check_example(name, entry)
    local list = arguments_of(name, entry)
    lu.assertNotNil(list, name .. ": its example is no call to be tried: add it to calls")
    local call = ("%s(%s, {qqqqqqqqqq = 1})"):format(name, list)
    lu.assertEquals(offered(("%s(%s, {"):format(name, list)),
        accepted(name, assert(load(call))), name)
end

function TestOptions:test_every_function_whose_help_has_options_is_tried()
    local alike = {"eye", "fromfn", "full", "ones", "vec", "linspace", "logspace"}
    for _, name in ipairs(alike) do
        lu.assertEquals(offered(name .. "(2, {"), "device= dtype=", name)
        calls[name] = true
    end
    local tried = 0
    for name, entry in pairs(help) do
        local options = entry.help:find("Options", 1, true) or
            (entry.usage:find("{%a+=") and not entry.usage:find("{out=", 1, true))
        if options and not calls[name] then
            check_example(name, entry)
            tried = tried + 1
        end
    end
    lu.assertTrue(tried >= 12)
end

function TestOptions:test_those_given_are_not_offered_again()
    lu.assertEquals(offered("zeros(2, {dtype='f64', "), "device=")
    lu.assertEquals(offered("zeros(2, {dtype='f64', device='cpu'; "), "")
end

function TestOptions:test_tables_of_data_have_none()
    lu.assertFalse(has("x = {", "dtype="))
    lu.assertFalse(has("mat{", "dtype="))
    lu.assertFalse(has("print(A, {", "dtype="))
    lu.assertFalse(has("take(A, {", "dtype="))
end

function TestOptions:test_values()
    lu.assertEquals(offered("zeros(2, {dtype='"), "bool c128 c64 f32 f64")
    lu.assertEquals(offered("rand(2, {dtype='"), "c128 c64 f32 f64")
    lu.assertEquals(offered("zeros(2, {dtype="), '"bool" "c128" "c64" "f32" "f64"')
    lu.assertEquals(offered("matmul(A, A, {transA="), "false true")
    lu.assertEquals(offered("matmul(A, A, {precision='"), "bf16 f32 f64 tf32")
    lu.assertTrue(has("zeros(2, {device='", "cpu"))
end

-- kernel= and :race know the ladder of the operation.
function TestOptions:test_kernels_are_those_of_the_operation()
    K = ones(2, 2)
    for _, operation in ipairs{"matmul", "dot", "lu", "chol", "qr"} do
        local expected = {"auto"}
        for _, k in ipairs(kernel_list()) do
            if k.operation == operation then expected[#expected + 1] = k.name end
        end
        table.sort(expected)
        local takes_two = operation == "matmul" or operation == "dot"
        local start = takes_two and "(K, K, " or "(K, "
        lu.assertEquals(offered(operation .. start .. "{kernel='"),
            table.concat(expected, " "))
    end
end

TestExperiments = {}

local swept = experiment{name = "a", dir = false, axes = {n = {1}},
    measure = function() return 1 end}

-- Methods with options, and how a call with them begins.
local methods = {run = "", table = "", plot = "", report = "'f.html', ",
    csv = "'f.csv', ", jsonl = "'f.jsonl', "}

function TestExperiments:setUp() swept_here = swept end
function TestExperiments:tearDown() swept_here = nil end

for name, first in pairs(methods) do
    TestExperiments["test_" .. name] = function()
        local expected = accepted(name, function()
            if first == "" then return swept[name](swept, wrong) end
            swept[name](swept, "/nowhere/f", wrong)
        end)
        lu.assertEquals(offered("swept_here:" .. name .. "(" .. first .. "{"),
            expected)
        if first == "" then
            lu.assertEquals(offered("swept_here:" .. name .. "{"), expected)
        end
    end
end

function TestExperiments:test_compare()
    lu.assertEquals(offered("experiment.compare(a, b, {"),
        accepted("compare", function() experiment.compare({}, {}, wrong) end))
end

function TestExperiments:test_every_member_is_known()
    local members = help.experiment.members
    for name, entry in pairs(members) do
        local owner = entry.usage:find("^e:") and swept or experiment
        lu.assertEquals(type(owner[name]), "function", name)
        lu.assertStrContains(entry.usage, name)
        if entry.help:find("Options", 1, true) and name ~= "compare" then
            lu.assertNotNil(methods[name], name)
        end
    end
    for name in pairs(experiment) do lu.assertNotNil(members[name], name) end
    lu.assertEquals(offered("swept_here:r"), "report results run")
    lu.assertFalse(has("experiment:", "run"))
end

function TestExperiments:test_values_and_hints()
    lu.assertEquals(offered("swept_here:run{order="),
        '"given" "interleaved" "longest"')
    lu.assertEquals(offered("swept_here:plot{kind='"), "heat lines roofline")
    lu.assertFalse(has("swept_here:run{order='given', ", "order="))
    lu.assertStrContains(offered("experiment.open("), "experiment.open(dir)")
end

TestStrings = {}

function TestStrings:test_files()
    local function files(line)
        local names, _, kinds = completions(line)
        lu.assertEquals(#names, 0)
        return kinds
    end
    local data = files("load('")
    lu.assertStrContains(data, ".csv .tsv .txt .npy .npz")
    lu.assertEquals(files("x, y = load [["), data)
    lu.assertEquals(files("save(A, 'd"), data)
    lu.assertEquals(files("A:save('d"), data)
    lu.assertEquals(files("dofile '"), ".lua")
    lu.assertEquals(files("io.open('"), "")
    lu.assertEquals(files("x = '"), "")
    lu.assertNil(files("load('f.csv', {delimiter='"))
    lu.assertNil(files("A['1:2, "))
end

function TestStrings:test_words()
    lu.assertTrue(has("A:to('", "cpu"))
    lu.assertTrue(has("device '", "cuda"))
    lu.assertEquals(offered("default_dtype('"), "f32 f64")
    local operations = offered("kernel_bound('") -- a GPU has more
    for _, name in ipairs{"%f[%a]chol ", "%f[%a]lu ", " qr%f[%A]", " spmm", " spmv"} do
        operations = operations:gsub(name, "")
    end
    lu.assertEquals(operations, "dot matmul")
    lu.assertEquals(offered("help('matmu"), "matmul")
    lu.assertEquals(offered("if A.dtype == '"), "bool c128 c64 f32 f64")
    lu.assertTrue(has("require 'lum", "lumat"))
end

function TestStrings:test_keys_of_a_table()
    keyed = {plain = 1, ["with blank"] = 2, ["with \" quote"] = 3, [4] = 4}
    lu.assertEquals(offered("keyed['"), "plain with blank")
    lu.assertEquals(offered("keyed.inner['"), "")
end

TestTypes = {}

-- Chains of which Tab knows that they are matrices, or that they are not.
function TestTypes:test_chains()
    M, S, x, n, nothing = ones(2, 3), sparse(eye(2)), vec{1, 2}, 5, nil
    for _, chain in ipairs{"M", "M.T", "M[1]", "M(1)", "(M)", "((M * M.T))", "(M + 1)",
        "(2 * M)", "(-M)", "(M .. M)", "(M * x).T", "M:clone()", "M:sum(1)", "sum(M, 1)",
        "zeros(2)", "rand(2, 2).T", "vec{1}", "M['1:2, :']", "M[{{1, 2}, {}}]", "S:full()",
        "(S * x)", "full(S)", "M:to('cpu'):t()"} do
        lu.assertEquals(offered(chain .. ".sha"), "shape", chain)
        lu.assertTrue(has(chain .. ":sq", "sqrt_"), chain)
    end
    for _, chain in ipairs{"n", "nothing", "x[1]", "M[1][2]", "M(1, 2)", "(x * x)",
        "M.rows", "M:sum()", "sum(M)", "(M == M)", "print(M)", "M[n]", "unknown.field",
        "M[{1, 2}]", "(not M)", "3", "f(M)", "M:rows()"} do
        lu.assertEquals(offered(chain .. ".sha"), "", chain)
    end
end

function TestTypes:test_names_that_the_line_declares_are_not_globals()
    M = ones(2, 2)
    lu.assertEquals(offered("local M = {}; M.sha"), "")
    lu.assertEquals(offered("for M = 1, 3 do M.sha"), "")
    lu.assertEquals(offered("function f(M, x) return M.sha"), "")
    lu.assertEquals(offered("local other = {}; M.sha"), "shape")
end

-- Each function whose example shows a matrix gives a matrix to Tab as well.
function TestTypes:test_results_follow_the_examples()
    local count = 0
    for name, entry in pairs(help) do
        local called = entry.example:match("^[%w_]+") == name and
            entry.example:match("^[%w_]+(%b())$")
        if called and entry.result:match("^{") then
            lu.assertEquals(offered(entry.example .. ".dty"), "dtype", entry.example)
            count = count + 1
        end
    end
    lu.assertTrue(count > 80)
end

TestFitting = {}

-- Random shapes: what is said to fit works, and what is not fails.
local function shape(a, b)
    return b and ones(a, b) or ones(a)
end

local operations = {
    ["L * "] = function(a, b) return a * b end,
    ["L.T * "] = function(a, b) return a.T * b end,
    ["L + "] = function(a, b) return a + b end,
    ["L - "] = function(a, b) return a - b end,
    ["L % "] = function(a, b) return a % b end,
    ["L / "] = function(a, b) return a / b end,
    ["L .. "] = function(a, b) return a .. b end,
    ["matmul(L, "] = matmul,
    ["L:matmul("] = matmul,
    ["dot(L, "] = dot,
    ["vcat(L, "] = vcat,
    ["hcat(L, "] = hcat,
    ["add(L, "] = add,
    ["(L * 2 + L) - "] = function(a, b) return a - b end,
}

function TestFitting:test_fits_if_and_only_if_it_works()
    local shapes = {{2, 3}, {3, 2}, {3, 3}, {1, 3}, {2, 1}, {1, 1}, {2}, {3}, {1}}
    for _, left in ipairs(shapes) do
        L = shape(table.unpack(left))
        for _, right in ipairs(shapes) do
            Right = shape(table.unpack(right))
            for line, operation in pairs(operations) do
                local works, result = pcall(operation, L, Right)
                local names, notes = completions(line .. "Right")
                local what = ("%s%s with %s"):format(line, table.concat(left, "x"),
                    table.concat(right, "x"))
                lu.assertEquals(names, {"Right"}, what)
                local fits = notes[1]:match("  fits$") or notes[1]:match("  gives (.*)$")
                lu.assertEquals(fits ~= nil, works, what .. ": " .. notes[1])
                if works and notes[1]:find("gives") then
                    local size = type(result) == "number" and "a number" or
                        result.ndim == 1 and "vector " .. result.rows or
                        result.rows .. "x" .. result.cols
                    lu.assertEquals(fits, size, what)
                end
            end
        end
    end
end

function TestFitting:test_what_fits_comes_first()
    L, Right, Zfits, Another = ones(2, 3), nil, ones(3, 2), ones(5, 5)
    lu.assertEquals(completions("L * ")[1], "Zfits")
    lu.assertTrue(has("L * ", "Another"))
    lu.assertFalse(has("L * ", "print")) -- before the first letter
    lu.assertTrue(has("L * p", "print"))
end

TestEffects = {}

local function poison(kind)
    return function() error("completion ran " .. kind) end
end

local poisoned = {__index = poison "__index", __newindex = poison "__newindex",
    __tostring = poison "__tostring", __pairs = poison "__pairs", __len = poison "__len",
    __name = "poisoned", __eq = poison "__eq", __call = poison "__call",
    __concat = poison "__concat", __mul = poison "__mul", __metatable = "no"}

-- Every kind of line, over values that fail when they are touched.
function TestEffects:test_no_metamethod_runs()
    bad = setmetatable({inner = setmetatable({deep = 1}, poisoned), f = print}, poisoned)
    local old = getmetatable(_G)
    local taken = {}
    for key, value in pairs(poisoned) do taken[key] = value end
    taken.__name = "experiment"
    false_one = setmetatable({}, taken)
    odd = setmetatable({}, {__name = poison "__name"})
    local before = stats()
    setmetatable(_G, poisoned)
    local ok, message = pcall(function()
        for _, line in ipairs{"", "b", "bad.", "bad:", "bad.inner.", "bad['", "bad * ",
            "bad.missing.", "bad[1].", "bad().", "missing.", "missing:", "x + ", "bad.f(",
            "matmul(bad, ", "bad:f(", "(bad * bad).", "#bad", "bad{", "f{bad, ", "bad'",
            "zeros(2, {dtype=", "require '", "bad.inner:deep(", "false_one:",
            "false_one:run{", "odd:", "odd:run{"} do
            completions(line)
        end
    end)
    debug.setmetatable(_G, old)
    lu.assertTrue(ok, message)
    lu.assertEquals(offered("bad.inn"), "inner")
    lu.assertEquals(offered("bad:"), "f")
    bad, false_one, odd = nil, nil, nil
    local after = stats()
    for key, value in pairs(before) do lu.assertEquals(after[key], value, key) end
end

function TestEffects:test_the_library_may_be_overwritten()
    local saved = {zeros = zeros, string = string, table = table, require = require}
    zeros, string, table, require = nil, nil, nil, nil
    local ok, message = pcall(completions, "('x'):re")
    local other = pcall(completions, "zeros(2, {")
    for name, value in next, saved do _G[name] = value end
    lu.assertTrue(ok, message)
    lu.assertTrue(other)
end

function TestEffects:test_metatables_that_lead_in_circles()
    ring = setmetatable({}, {})
    getmetatable(ring).__index = ring
    lu.assertEquals(offered("ring."), "")
    lu.assertEquals(offered("ring.missing.x."), "")
    ring = nil
end

-- Lines that are no Lua: nothing fails, nothing is read outside.
function TestEffects:test_any_text()
    local parts = {"A", "x", ".", ":", "(", ")", "[", "]", "{", "}", "'", '"', "[[", "]]",
        "--", "--[[", "=", ",", ";", "*", "+", "-", "..", "...", "1", "2.5e", "if", "end",
        "function", "local", "for", "matmul", "load", "sum", "T", "kernel", "dtype",
        " ", "\n", "\\", "é", "\0", "\255", "~", "#", "not", "<", "::", "require"}
    A = ones(2, 2)
    local state = 7
    local function random(n)
        state = (state * 1103515245 + 12345) % 2147483648
        return state // 65536 % n + 1
    end
    for _ = 1, 20000 do
        local line = {}
        for i = 1, random(14) do line[i] = parts[random(#parts)] end
        completions(table.concat(line))
    end
    for _, opener in ipairs{"(", "{", "[", "f(", "f{", "A[", "((A * ", "-", "A."} do
        completions(opener:rep(20000))
    end
    lu.assertEquals(offered("linsp"), "linspace")
end

-- All in the processor's time, which what else runs does not lengthen.
TestTime = {}

local function fastest(line)
    local best = math.huge
    for _ = 1, 20 do
        local start = os.clock()
        completions(line)
        best = math.min(best, os.clock() - start)
    end
    return best
end

function TestTime:test_ten_thousand_globals_in_twenty_milliseconds()
    A = ones(2, 2)
    for i = 1, 10000 do _G["many_" .. i] = A end
    for _, line in ipairs{"", "m", "many_", "A * ", "A * many_9", "matmul(A, ", "A.",
        "matmul(A, A, {ker", "x = many_1", "local y = A.T * "} do
        lu.assertTrue(fastest(line) < 0.020, line)
    end
    lu.assertEquals(#completions("many_"), 10000)
    for i = 1, 10000 do _G["many_" .. i] = nil end
end

-- Work grows with a line's length, not with its square.
function TestTime:test_a_megabyte()
    for _, part in ipairs{"a + ", "(", "f(", "f{", "x.", "[1]", "local a = 1; ", "'", "a, ",
        "a=1, "} do
        local line = "matmul(A, {" .. part:rep(1000000 // #part)
        local start = os.clock()
        completions(line)
        lu.assertTrue(os.clock() - start < 2, part)
    end
end

-- --- frames -------------------------------------------------------------------

TestFrames = {}

function TestFrames:setUp()
    _G.frames_T = frame{{"height", {1, 2}}, {"my name", {"x", "y"}},
        {"sort", {3, 4}}, {"kind", {"p", "q"}}}
    frames_T.planted = dates{"2020-01-01", "2021-01-01"}
end

function TestFrames:tearDown()
    _G.frames_T = nil
end

-- Columns and methods; in quotes all columns, and no method.
function TestFrames:test_names_of_columns()
    lu.assertTrue(has("frames_T.", "height"))
    lu.assertTrue(has("frames_T.", "groupby"))
    lu.assertFalse(has("frames_T:", "height"))
    lu.assertTrue(has("frames_T:gr", "groupby"))
    for _, line in ipairs{'frames_T["', 'frames_T:groupby "',
        'frames_T:groupby("', 'frames_T:select{"', 'frames_T:sort({"kind", "',
        'frames_T:sort("kind", {descending = "', 'x = frames_T:unique "'} do
        lu.assertEquals(offered(line), "height kind my name planted sort", line)
    end
    lu.assertEquals(offered('frames_T:sort "he'), "height")
    lu.assertEquals(offered('frames_T:sort("kind", {'), "descending=")
end

-- What the columns can do.
function TestFrames:test_columns()
    lu.assertTrue(has("frames_T.height:", "cumsum"))
    lu.assertTrue(has("frames_T.kind:", "match"))
    lu.assertTrue(has('frames_T["my name"]:', "match"))
    lu.assertTrue(has("frames_T.planted:", "weekday"))
    lu.assertTrue(has("frames_T.planted.", "seconds"))
end

os.exit(lu.LuaUnit.run("-o", "tap"))
