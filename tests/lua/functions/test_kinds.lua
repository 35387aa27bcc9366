-- Every function of the library, every argument of every form of its call: a
-- value of a kind that its row does not name is refused in one form of words,
-- a value of a kind that it names is not. There is no list of functions here:
-- they, and what they take, are read from their rows.
local lu = require "luaunit"
require "common"
local registry = debug.getregistry()
local help, methods = registry["lumat.help"], registry["lumat.methods"]
local private, library = registry["lumat.private"], require "lumat"

-- --- kinds -------------------------------------------------------------------

local function is(name)
    return function(x) return type(x) == name end
end

local function whole(x) return math.type(x) == "integer" or
    math.type(x) == "float" and x == math.floor(x) and math.abs(x) < 2 ^ 63 end

local function object(x) return type(x) == "userdata" and getmetatable(x) end
local function freed(x)
    return (object(x) == "matrix" and x.device == "none") or
        (object(x) == "sparse matrix" and x.device == "none")
end
local function matrix(x) return object(x) == "matrix" and not freed(x) end
local function vector(x) return matrix(x) and x.ndim == 1 end

-- What a value of each kind is, said here once more.
local is_kind = {
    value = function() return true end,
    nothing = is "nil", number = is "number", boolean = is "boolean",
    chart = function(x)
        local with = type(x) == "table" and getmetatable(x)
        return with and with.__name == "chart"
    end,
    table = is "table", string = is "string", matrix = matrix, square = matrix,
    vector = vector, freed = freed,
    sparse = function(x) return object(x) == "sparse matrix" and not freed(x) end,
    integer = whole,
    size = function(x) return whole(x) and x >= 0 end,
    count = function(x) return whole(x) and x > 0 end,
    axis = function(x) return x == 1 or x == 2 end,
    positive = function(x)
        return type(x) == "number" and x > 0 and x < math.huge
    end,
    dtype = function(x)
        return x == "f32" or x == "f64" or x == "bool" or x == "c64" or
            x == "c128"
    end,
    scalar = function(x)
        return type(x) == "number" or object(x) == "complex number"
    end,
    complex = function(x) return object(x) == "complex number" end,
    list = function(x) return type(x) == "table" or vector(x) end,
    ["function"] = function(x)
        local with = type(x) == "table" and getmetatable(x)
        return type(x) == "function" or (with and with.__call ~= nil)
    end,
    ["false"] = function(x) return x == false end,
    device = is "string", kernel = is "string", operation = is "string",
    topic = is "string", variable = is "string", path = is "string",
    folder = is "string", data = is "string", session = is "string",
    picture = is "string",
}

is_kind.factors = is "table"
is_kind.frame = function(x) return getmetatable(x) == "frame" end
is_kind.distributed = function(x)
    return getmetatable(x) == "distributed matrix"
end

local nowhere = os.tmpname()
os.remove(nowhere)

-- A value of each, for the arguments that are not looked at.
local some = {
    value = function() return 1 end,
    number = function() return 1 end, boolean = function() return true end,
    scalar = function() return 1 end, complex = function() return 3 * im end,
    chart = function() return plot(vec{1, 2}) end,
    table = function() return {1} end, string = function() return "x" end,
    matrix = function() return rand(2, 2) end,
    square = function() return rand(2, 2) end,
    vector = function() return rand(2) end,
    sparse = function() return sparse(eye(2)) end,
    freed = function() local A = eye(2) free(A) return A end,
    integer = function() return 1 end, size = function() return 1 end,
    count = function() return 1 end, axis = function() return 1 end,
    positive = function() return 1 end, dtype = function() return "f32" end,
    list = function() return {1} end,
    ["function"] = function() return function() return 1 end end,
    ["false"] = function() return false end,
    frame = function() return frame{a = {1, 2}} end,
    factors = function() return qr(eye(2)) end,
    device = function() return "cpu" end,
    kernel = function() return "reference" end,
    operation = function() return "dot" end, topic = function() return "sum" end,
    variable = function() return "x" end,
    path = function() return nowhere .. "/x" end,
    folder = function() return nowhere end,
    data = function() return nowhere .. "/x.npy" end,
    session = function() return nowhere .. "/x.lum" end,
    picture = function() return nowhere .. "/x.svg" end,
}

local samples = {
    {"nil", function() return nil end},
    {"true", function() return true end},
    {"1", function() return 1 end},
    {"-3", function() return -3 end},
    {"1.5", function() return 1.5 end},
    {"1e300", function() return 1e300 end},
    {"a string", function() return "some words" end},
    {"a list", function() return {1, 2} end},
    {"a table", function() return {} end},
    {"a matrix", some.matrix}, {"a vector", some.vector}, {"a frame", some.frame},
    {"a sparse matrix", some.sparse}, {"a freed matrix", some.freed},
    {"a complex number", some.complex},
    {"a function", some["function"]},
    {"a table to call", function()
        return setmetatable({}, {__call = function() return 1 end})
    end},
    {"a file", function() return io.stdout end},
}

-- Is x of one of the kinds that | divides?
local function fits(x, kinds)
    for kind in kinds:gmatch "[^|]+" do
        local word = kind:match '^"(.*)"$'
        if word and x == word then return true end
        if not word then
            lu.assertNotNil(is_kind[kind], "the kind " .. kind)
            if is_kind[kind](x) then return true end
        end
    end
    return false
end

local function some_of(kinds)
    local first = kinds:match "^[^|]+"
    return first:match '^"(.*)"$' or some[first]()
end

-- --- rows --------------------------------------------------------------------

-- The forms of a call, lists of {name, kind, may_lack}, each with has_more,
-- has_options, and has_file where a picture's name may stand for them.
local function forms_of(takes)
    local forms = {}
    for text in (takes .. " or "):gmatch "(.-) or " do
        local form, depth, at = {}, 0, 1
        form.has_options = text:find("{", 1, true) ~= nil
        form.has_file = text:find("{[^}]*file[^}]*}") ~= nil
        form.needs_options = text:find(", {", 1, true) ~= nil
        form.has_more = text:find("…", 1, true) ~= nil
        text = text:gsub("{.-}", "")
        while true do
            local from, to, before, name, kind =
                text:find('([^%w_]*)([%a_][%w_]*): ([^ ,%]]+)', at)
            if not from then break end
            depth = depth + select(2, before:gsub("%[", ""))
            form[#form + 1] = {name = name, kind = kind, may_lack = depth > 0}
            local behind = text:match("^ %l+ %w+", to + 1)
            at = to + 1 + (behind and not behind:find "^ or " and #behind or 0)
        end
        forms[#forms + 1] = form
    end
    return forms
end

-- May x be at this place in a call of any form?
local function may_be(forms, place, x)
    local is_needed = false
    for _, form in ipairs(forms) do
        local a = form[place] or form.has_more and form[#form]
        is_needed = is_needed or a and not a.may_lack
        if a and (fits(x, a.kind) or a.may_lack and x == nil) then
            return true
        end
        local least = 0
        for _, b in ipairs(form) do
            least = least + (b.may_lack and 0 or 1)
        end
        if place > least and place <= #form + 1 and
            (form.has_options and type(x) == "table" or
            form.has_file and type(x) == "string") then
            return true
        end
    end
    return x == nil and not is_needed
end

-- A call of a form with x at that place, up to there or to what is needed.
local function arguments(form, place, x)
    local args = {n = 0}
    for i = 1, math.max(#form, place) do
        local a = form[i] or form[#form]
        if i <= place or not a.may_lack then
            args[i], args.n = some_of(a.kind), i
        end
    end
    if form.needs_options then
        args.n = args.n + 1
        args[args.n] = {}
    end
    args[place] = x
    return args
end

local function sorted(t)
    local names = {}
    for name in pairs(t) do names[#names + 1] = name end
    table.sort(names)
    return names
end

-- Files that calls make are made here.
local folder = os.tmpname()
os.remove(folder)
os.execute("mkdir " .. folder)

-- What f raises, without its place; nil: nothing.
local function called(f, args)
    library.cd(folder)
    local ok, message = pcall(f, table.unpack(args, 1, args.n))
    library.cd(folder)
    if ok then return nil end
    return (tostring(message):gsub("^[^\n]-%.lua:%d+: ", ""))
end

local function reset()
    transcript(false)
    profile("off")
    tracing(false)
    checking(false)
    watch(false)
    default_dtype("f32")
end

-- f(name, function, forms, has_hints) of every function.
local function each(f)
    for _, name in ipairs(sorted(help)) do
        if type(library[name]) == "function" then
            local takes, has_hints = private.takes(name)
            f(name, library[name], forms_of(takes), has_hints)
            reset()
        end
    end
end

-- "sum: A is 3, expected a matrix: write sum(A [, axis])", where A may be any
-- of the names at that place; or that of the options.
local function is_refusal(message, name, forms, place)
    local said = message:match "^([%w_]+): "
    local what = message:match "^[%w_]+: ([%w_ ]-) is .-, expected .-: write %g+"
    if said ~= name then return false end
    if what == "argument " .. place or
        message:find("^[%w_]+: the options are .-, expected a table: write ") or
        message:find("^[%w_]+: %d+ arguments? .- too many: write ") then
        return true
    end
    for _, form in ipairs(forms) do
        if form[place] and form[place].name == what then return true end
    end
    return false
end

-- f refuses all samples that may not be at a place of its forms. Returns how
-- many that were; of those that it tells what was meant, where the row has
-- hints, how many.
local function refuses(name, f, forms, has_hints)
    local count, hints = 0, 0
    for _, form in ipairs(forms) do
        for place = 1, #form + (form.has_more and 1 or 0) do
            for _, sample in ipairs(samples) do
                local x = sample[2]()
                if not may_be(forms, place, x) then
                    local message = called(f, arguments(form, place, x))
                    local what = ("%s, argument %d, %s: %s"):format(name,
                        place, sample[1], message)
                    lu.assertNotNil(message, what)
                    count = count + 1
                    if not is_refusal(message, name, forms, place) then
                        lu.assertTrue(has_hints, what)
                        lu.assertEquals(message:match "^([%w_]+): ", name, what)
                        hints = hints + 1
                    end
                end
            end
        end
    end
    return count, hints
end

TestKinds = {}

-- Nothing is left out: a call that is refused has no effect.
function TestKinds:test_what_does_not_fit_is_refused()
    local count, hints = 0, 0
    each(function(name, f, forms, has_hints)
        local n, m = refuses(name, f, forms, has_hints)
        count, hints = count + n, hints + m
    end)
    lu.assertTrue(count > 3000, count)
    lu.assertTrue(hints < count / 20, hints)
end

-- Of two arguments that do not fit one is told.
function TestKinds:test_two_that_do_not_fit()
    local count = 0
    local function refuses_both(name, f, forms, args, place, has_hints)
        local message = called(f, args)
        local what = ("%s, arguments before %d: %s"):format(name, place, message)
        lu.assertNotNil(message, what)
        for i = 1, place do
            if is_refusal(message, name, forms, i) then return end
        end
        lu.assertTrue(has_hints, what)
        lu.assertEquals(message:match "^([%w_]+): ", name, what)
    end
    each(function(name, f, forms, has_hints)
        for _, form in ipairs(forms) do
            for place = 2, #form do
                for before = 1, place - 1 do
                    for _, sample in ipairs{some.freed, some.sparse,
                        function() return io.stdout end} do
                        local args = arguments(form, place, sample())
                        args[before] = some.freed()
                        if not may_be(forms, before, args[before]) and
                            not may_be(forms, place, args[place]) then
                            refuses_both(name, f, forms, args, place, has_hints)
                            count = count + 1
                        end
                    end
                end
            end
        end
    end)
    lu.assertTrue(count > 300, count)
end

-- Nor here: the paths are in folders that are not there.
function TestKinds:test_what_fits_is_not_refused()
    local count = 0
    each(function(name, f, forms)
        for _, form in ipairs(forms) do
            for place, a in ipairs(form) do
                for _, sample in ipairs(samples) do
                    local x = sample[2]()
                    if fits(x, a.kind) then
                        local message = called(f, arguments(form, place, x)) or ""
                        local what = ("%s, argument %d, %s: %s"):format(name,
                            place, sample[1], message)
                        lu.assertNil(message:find("^[%w_]+: " .. a.name ..
                            " is .-, expected .-: write "), what)
                        lu.assertNil(message:find "bad argument.* expected", what)
                        count = count + 1
                    end
                end
            end
        end
    end)
    lu.assertTrue(count > 1000, count)
end

-- A.f(x) without an A says how a method is called; another object is refused as
-- any argument is.
function TestKinds:test_methods_without_their_matrix()
    local count = 0
    for _, name in ipairs(sorted(methods)) do
        for _, x in ipairs{1, "x", true, {}} do
            local message = called(methods[name], {x, n = 1})
            lu.assertStrContains(message, name .. ": a method is called with a colon")
            count = count + 1
        end
        local message = called(methods[name], {io.stdout, n = 1})
        lu.assertStrMatches(message, name:gsub("%W", "%%%0") ..
            ": [%w_]+ is a file, expected .*: write .*")
    end
    lu.assertTrue(count > 400, count)
end

-- A:add_(B) takes what add does, but for A, which is written to.
function TestKinds:test_methods_that_write()
    local count = 0
    for _, name in ipairs(sorted(methods)) do
        local takes = private.takes(name:match "^(.*)_$" or "")
        if takes then
            local forms = forms_of((takes:gsub("{.-}", "")))
            forms[1][1].kind = "matrix"
            for i = 2, #samples do -- without self there is no method
                local x = samples[i][2]()
                if type(x) == "userdata" and not matrix(x) then
                    lu.assertTrue(is_refusal(called(methods[name], {x, n = 1}),
                        name, forms, 1), name)
                end
            end
            for place = 2, #forms[1] do
                for _, sample in ipairs(samples) do
                    local x = sample[2]()
                    if not may_be(forms, place, x) then
                        local message = called(methods[name],
                            arguments(forms[1], place, x))
                        lu.assertTrue(is_refusal(message or "", name, forms,
                            place), ("%s %s: %s"):format(name, sample[1], message))
                        count = count + 1
                    end
                end
            end
        end
    end
    lu.assertTrue(count > 100, count)
end

-- S:full() and the others that only sparse matrices have, by their names.
function TestKinds:test_methods_of_sparse_matrices()
    local S, count = sparse(eye(2)), 0
    for _, name in ipairs(sorted(methods)) do
        local is_there, f = pcall(function() return S[name] end)
        if is_there and type(f) == "function" and f ~= methods[name] then
            for _, sample in ipairs(samples) do
                local x = sample[2]()
                if object(x) ~= "sparse matrix" and not freed(x) then
                    local message = called(f, {x, n = 1})
                    lu.assertStrContains(message, name .. ": ")
                    lu.assertNil(message:find "bad argument", message)
                    count = count + 1
                end
            end
        end
    end
    lu.assertTrue(count > 40, count)
end

local failed = lu.LuaUnit.run("-o", "tap")
library.cd("/")
os.execute("rm -r " .. folder)
os.exit(failed)
