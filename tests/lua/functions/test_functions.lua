-- Rows of functions: what a call is held against, and what else reads them.
local lu = require "luaunit"
local t = require "common"
local raises = t.raises
local registry = debug.getregistry()
local help, methods = registry["lumat.help"], registry["lumat.methods"]
local library = require "lumat"

TestCalls = {}

-- A table of options may be the last; nils at the end are as good as left out.
function TestCalls:test_too_many_arguments()
    local A = eye(2)
    raises(function() zeros(1, 2, {}, 4) end, "zeros: 4 arguments are too many",
        "zeros(m, n [, {dtype=, device=}])")
    raises(function() A:t(1) end, "t: 2 arguments are too many: write t(A)")
    raises(function() A:to("cpu", "f64") end,
        "to: 3 arguments are too many: write to(A, device)")
    raises(function() sparse(A):to("cpu", "f64") end, "3 arguments are too many")
    raises(function() kernel_list("cpu", "lu") end, "2 arguments are too many")
    lu.assertTrue(A:to(device()) == A)
    raises(function() clock(1) end, "clock: 1 argument is too many: write clock()")
    raises(function() kron(A, A, A) end, "kron: 3 arguments")
    raises(function() inv(A, 2) end, "inv: 2 arguments")
    raises(function() pow2(1, 2, 3) end, "pow2: 3 arguments")
    lu.assertEquals(det(A, nil, nil), 1)
    lu.assertEquals(A:sum(nil), 2)
end

-- Whatever a function takes, one more argument of no use is refused.
function TestCalls:test_every_function_refuses_what_it_does_not_use()
    local open = {hcat = true, vcat = true, min = true, max = true, load = true,
        maximum = true, minimum = true, experiment = true}
    local count = 0
    for name in pairs(help) do
        local f = library[name]
        if type(f) == "function" and not open[name] then
            local values = {}
            for i = 1, 12 do values[i] = 1 end
            local ok, message = pcall(f, table.unpack(values))
            lu.assertFalse(ok, name)
            lu.assertTrue(message:find("too many", 1, true) ~= nil or
                message:find("several numbers", 1, true) ~= nil or
                message:find("expected", 1, true) ~= nil, name .. ": " .. message)
            count = count + 1
        end
    end
    lu.assertTrue(count > 140)
end

function TestCalls:test_a_method_with_a_dot()
    local X = eye(2)
    raises(function() return X.mean(2) end,
        "mean: a method is called with a colon: write A:mean(2)")
    raises(function() return X.sum() end, "write A:sum()")
    raises(function() return X.dot(X[1]) end, "dot: a method is called with a colon")
    lu.assertEquals(X.trace(X), 2)
    lu.assertEquals(mean(2), 2)
end

function TestCalls:test_options()
    raises(function() zeros(2, {dtpye = "f64"}) end,
        "zeros: unknown option 'dtpye': did you mean 'dtype'?")
    raises(function() rand(2, {low = "a"}) end, 'rand: low is "a", expected a number')
    raises(function() zeros(2, 2, "f64") end,
        'zeros: the options are "f64", expected a table: write zeros(')
    raises(function() zeros(2, {"f64"}) end, "options are named")
    raises(function() sort(vec{1}, {places = 1}) end, "places is 1, expected true or false")
    raises(function() matmul(eye(2), eye(2), {precision = "half"}) end,
        'precision is "half", expected "f32", "f64", "tf32" or "bf16"')
    -- lists are data where data may stand
    lu.assertEquals(sparse({}, {}, {}, 2, 3).nnz, 0)
    lu.assertTrue(plot({1, 2}, {3, 4}).high >= 4)
end

-- Functions in Lua are held against their rows alone.
function TestCalls:test_kinds()
    raises(function() bench(3) end, "bench: f is 3, expected a function")
    raises(function() bench(eye(2)) end, "bench: f is a matrix, expected a function")
    raises(function() close(1) end, "close: B is missing, expected a matrix or a number")
    raises(function() race(eye(2), sparse(eye(2))) end, "race: B is a sparse matrix")
    raises(function() mem("all") end, 'mem: what is "all", expected "reset"')
    raises(function() kernels({}) end, "kernels: device is a table")
    lu.assertEquals(close(1, 1 + 1e-9), true)
end

-- An error in a function of the library has its caller's place.
function TestCalls:test_places()
    local function line() return debug.getinfo(2, "l").currentline end
    local here = line() + 1
    local ok, message = pcall(function() verify(1, eye(2), 3) end)
    lu.assertFalse(ok)
    lu.assertEquals(message:match(":(%d+): verify: B is 3"), tostring(here))
end

TestRows = {}

function TestRows:test_each_says_what_it_is()
    for name, entry in pairs(help) do
        lu.assertTrue(#entry.usage >= #name, name)
        lu.assertTrue(#entry.help > 3, name)
        lu.assertTrue(entry.example ~= nil and entry.result ~= nil, name)
        lu.assertNotNil(entry.group, name)
    end
end

function TestRows:test_usages()
    for name, usage in pairs{
        sum = "sum(A [, axis] [, {axis=, nan=, keepdims=, device=}])",
        norm = "norm(A [, p] [, {axis=, nan=, keepdims=, device=}])",
        max = "max(A [, axis] [, {axis=, nan=, keepdims=, device=}]) or max(x [, y, …])",
        zeros = "zeros(m, n [, {dtype=, device=}]) or zeros(n)",
        device = "device([name])",
        peak = "peak([device [, again]])",
        matmul = "matmul(A, B [, options])",
        where = "where(A, B, C [, {out=, device=}])",
        clock = "clock()",
        hcat = "hcat(A [, B, …])",
        sparse = "sparse(i, j, v [, m, n] [, {dtype=, device=}]), sparse(A) or sparse(m, n)",
    } do
        lu.assertEquals(help[name].usage, usage)
    end
end

-- Methods are the functions, but they know what they are called on.
function TestRows:test_methods()
    lu.assertNotNil(methods.sum)
    lu.assertNil(methods.zeros)
    lu.assertNotNil(methods.close)
end

-- A row in Lua is all that a new function needs.
function TestRows:test_a_new_one()
    registry["lumat.private"].row({name = "twice_of_it", method = true,
        takes = "A: matrix|number {often}", gives = "same", group = "arithmetic",
        help = "A and A once more.", example = "twice_of_it(2)", result = "4",
        options = {{"often", "count", "1", "how many times"}}},
        function(A, o) return A * 2 ^ (o and o.often or 1) end)
    local twice_of_it = library.twice_of_it
    lu.assertEquals(twice_of_it(2), 4)
    lu.assertEquals(twice_of_it(2, {often = 2}), 8)
    t.equals(eye(2):twice_of_it(), {{2, 0}, {0, 2}})
    raises(function() twice_of_it("a") end,
        'twice_of_it: A is "a", expected a matrix or a number')
    raises(function() twice_of_it(2, {oftn = 2}) end, "did you mean 'often'?")
    raises(function() twice_of_it(1, 2, 3) end,
        "write twice_of_it(A [, {often=}])")
    rawset(_G, "twice_of_it", twice_of_it)
    lu.assertEquals(completions("twice_of_it(2, {")[1], "often=")
    rawset(_G, "twice_of_it", nil)
    help.twice_of_it, library.twice_of_it, methods.twice_of_it = nil, nil, nil
end

-- Options that mean what those of another row do are told there alone.
function TestRows:test_options_of_another_one()
    local row = registry["lumat.private"].row
    local function add(extra)
        local t = {name = "relative_of_cg", takes = "x: number {tol, often, start}",
            gives = "number", group = "arithmetic", help = "A number.",
            options = {{"often", "count", "1", "how many times"}}}
        for k, v in pairs(extra) do t[k] = v end
        row(t, function(x, o) return o and (o.tol or o.often) or x end)
    end
    add{options_of = "cg"}
    local f = library.relative_of_cg
    lu.assertEquals({f(1), f(1, {tol = 0.5}), f(1, {often = 3})}, {1, 0.5, 3})
    raises(function() f(1, {tol = 0}) end, "tol is 0, expected a number above 0")
    raises(function() f(1, {often = 0.5}) end, "often")
    raises(function() f(1, {restart = 3}) end, "restart")
    raises(function() add{options_of = "no_such_row"} end, "no_such_row")
    rawset(_G, "relative_of_cg", f)
    lu.assertEquals(completions("relative_of_cg(2, {s")[1], "start=")
    rawset(_G, "relative_of_cg", nil)
    help.relative_of_cg, library.relative_of_cg = nil, nil
end

TestResults = {}

local function strict(text)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local pipe = io.popen(string.format("%s --strict --device cpu %s 2>&1",
        os.getenv "LUMAT", path))
    local said = pipe:read "a"
    pipe:close()
    os.remove(path)
    return (said:gsub("^.-(%d+: )", "%1"):gsub("\n$", ""))
end

function TestResults:test_more_names_than_results()
    lu.assertEquals(strict "local a, b = eye(2)",
        "1: 2 names are set, but eye gives one result")
    lu.assertEquals(strict "local v = vec{2, 1}\nlocal a, b = sort(v)",
        "2: 2 names are set, but sort gives one result; with {places=true} it gives 2")
    lu.assertEquals(strict "local a, b = sync()",
        "1: 2 names are set, but sync gives no result")
end

function TestResults:test_what_is_as_it_should_be()
    for _, text in ipairs{
        "local v, p = sort(vec{2, 1}, {places = true}) print(p ~= nil)",
        "local o = {places = true} local v, p = sort(vec{2, 1}, o) print(p ~= nil)",
        "local name, text = device() print(text ~= nil)",
        "local i, j = argmax(eye(2)) print(j ~= nil)",
        "local a, b = 1, eye(2) print(b ~= nil)",
        "local a, b = eye(2), 3 print(b ~= nil)",
        "local a; local t = {k = 1, a, b = eye(2)} print(t.b ~= nil)",
        "local eye = function() return 1, 2 end local a, b = eye(2) print(b ~= nil)",
        "local s, r = timed(function() return 7 end) print(r ~= nil)",
    } do
        lu.assertEquals(strict(text), "true", text)
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
