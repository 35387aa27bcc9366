-- Experiments: axes and the points they make, keys, what is refused at once.
local lu = require "luaunit"
local t = require "common"
local raises = t.raises
local identity = require "lumat.code_hash"

local function measure(p) return 1 end

local function points(axes, more)
    local spec = {name = "a", axes = axes, measure = measure}
    for key, value in pairs(more or {}) do spec[key] = value end
    return experiment(spec):points()
end

-- "1x 1y 2x" of points with the parameters named.
local function brief(list, ...)
    local words = {}
    for i, p in ipairs(list) do
        words[i] = ""
        for _, name in ipairs{...} do
            words[i] = words[i] .. tostring(p[name])
        end
    end
    return table.concat(words, " ")
end

TestAxes = {}

function TestAxes:test_lists_and_their_order()
    local axes = {n = {3, 1, 2}, kind = {"x", "y"}}
    lu.assertEquals(brief(points(axes), "kind", "n"), "x3 x1 x2 y3 y1 y2")
    lu.assertEquals(brief(points(axes, {order = {"n", "kind"}}), "n", "kind"),
        "3x 3y 1x 1y 2x 2y")
    lu.assertEquals(brief(points(axes, {order = {"n"}}), "n", "kind"),
        "3x 3y 1x 1y 2x 2y")
    local e = experiment{name = "a", axes = axes, measure = measure}
    lu.assertEquals(e.axes, {"kind", "n"})
end

function TestAxes:test_ranges_and_powers()
    lu.assertEquals(experiment.range(1, 4), {1, 2, 3, 4})
    lu.assertEquals(experiment.range(1, 2, 0.25), {1, 1.25, 1.5, 1.75, 2})
    lu.assertEquals(experiment.range(5, 1, -2), {5, 3, 1})
    lu.assertEquals(#experiment.range(0, 1, 0.1), 11)
    lu.assertEquals(pow2(6, 9), {64, 128, 256, 512})
    lu.assertEquals(math.type(pow2(6, 9)[1]), "integer")
    lu.assertEquals(pow2(-1, 0), {0.5, 1})
    lu.assertEquals(experiment.logspace(1, 1000, 4), {1, 10, 100, 1000})
    t.near(experiment.logspace(0.5, 2, 3)[2], 1, 1e-12)
end

function TestAxes:test_a_vector_is_a_list()
    local list = points{n = range(1, 3)}
    lu.assertEquals(brief(list, "n"), "1 2 3")
    lu.assertEquals(math.type(list[1].n), "integer")
    lu.assertEquals(brief(points{n = 7}, "n"), "7")
end

function TestAxes:test_zips_and_products()
    local zip = experiment.zip{m = {1, 2}, n = {3, 4}}
    lu.assertEquals(brief(points{size = zip, k = {5, 6}}, "k", "m", "n"),
        "513 524 613 624")
    local product = experiment.product{m = {1, 2}, n = {3, 4}}
    lu.assertEquals(brief(points{s = product}, "m", "n"), "13 14 23 24")
    lu.assertEquals(brief(points{product, k = {9}}, "m", "n", "k"),
        "139 149 239 249")
    lu.assertEquals(brief(points(zip), "m", "n"), "13 24")
    local both = experiment.zip{s = experiment.product{m = {1, 2}, n = {3, 4}},
        k = {5, 6, 7, 8}}
    lu.assertEquals(brief(points(both), "m", "n", "k"), "135 146 237 248")
end

function TestAxes:test_random_samples()
    local a = experiment.random(5, experiment.range(1, 100))
    lu.assertEquals(a, experiment.random(5, experiment.range(1, 100)))
    lu.assertNotEquals(a, experiment.random(5, experiment.range(1, 100), 2))
    local longer = experiment.random(8, experiment.range(1, 100))
    for i = 1, 5 do lu.assertEquals(longer[i], a[i]) end
    local all = experiment.random(100, experiment.range(1, 100))
    table.sort(all)
    lu.assertEquals(all, experiment.range(1, 100))
    local axis = experiment.random(4, function(u)
        return {m = math.floor(u() * 1e6), n = math.floor(u() * 1e6)}
    end)
    lu.assertEquals(#points{axis}, 4)
    raises(function() experiment.random(5, {1, 2}) end,
        "5 of 2 values cannot all be different")
end

function TestAxes:test_where_and_fixed()
    local e = experiment{name = "a", axes = {n = {1, 2, 3}}, measure = measure,
        fixed = {seed = 42}, where = function(p) return p.n + p.seed ~= 44 end}
    lu.assertEquals(brief(e:points(), "n", "seed"), "142 342")
    lu.assertStrContains(tostring(e), "2 points (1 left out)")
end

function TestAxes:test_points_are_copies()
    local e = experiment{name = "a", axes = {n = {1, 2}}, measure = measure}
    e:points()[1].n = 9
    lu.assertEquals(e:points()[1].n, 1)
end

TestRefusals = {}

-- Before any point is measured.
function TestRefusals:test_how_it_is_measured()
    for _, case in ipairs{
        {"repeats", 0, "repeats is 0, expected a whole number from 1 on"},
        {"warmup", -1, "warmup is -1, expected a whole number from 0 on"},
        {"stop", 5, "stop is 5, expected a table or a function"},
        {"hold", -1, "hold is -1, expected a number from 0 on"},
        {"flops", 0 / 0, "flops is NaN, expected a number from 0 on"},
        {"stop", {least = 9, most = 3}, "stop: least is 9, more than most, 3"}} do
        raises(function()
            experiment{name = "a", axes = {n = {1}}, measure = print,
                [case[1]] = case[2]}
        end, "experiment: " .. case[3])
    end
    raises(function()
        experiment{name = "a", axes = {n = {1}}, measure = print, stop = {intervall = 1}}
    end, "stop: unknown option 'intervall': did you mean 'interval'?")
end

function TestRefusals:test_axes()
    for _, case in ipairs{
        {{}, "has no axes"},
        {{n = {}}, "axis n has no values"},
        {{n = {1, 1.0}}, "axis n has 1 twice"},
        {{n = {1, 0 / 0}}, "axis n has NaN: values are finite"},
        {{n = {1, {2}}}, "axis n has a table", "experiment.zip"},
        {{n = {1, x = 2}}, 'has an entry "x"'},
        {{n = {1, nil, 3}}, "axis n has an entry 3, and none before it"},
        {{["a b"] = {1}}, '"a b" is no name of a parameter'},
        {{n = {1}, s = experiment.zip{n = {1}, m = {2}}},
            "parameter n stands on two axes"},
        {{n = experiment.range(1, 1e5), m = experiment.range(1, 1e5)},
            "1e+10 points"},
        {{n = ones(2, 2)}, "axis n is a matrix"},
        {{n = print}, "axis n has a function"}} do
        raises(function() points(case[1]) end, table.unpack(case, 2))
    end
    raises(function() experiment.zip{m = {1, 2}, n = {1}} end,
        "axis n has 1 value, m has 2")
    raises(function() points({n = {1}}, {fixed = {n = 2}}) end,
        "parameter n stands on two axes")
    raises(function() points({n = {1}}, {order = {"m"}}) end,
        'order names "m", which is no axis')
    raises(function()
        points({n = {1, 2}}, {where = function() return false end})
    end, "where leaves none of the 2 points")
    raises(function()
        points({n = {1, 2}}, {where = function(p) return p.n > p.m end})
    end, "where fails for n=1: ", "test_axes.lua")
end

function TestRefusals:test_specifications()
    local axes = {n = {1}}
    for _, case in ipairs{
        {{axes = axes, measure = measure}, "has no name"},
        {{name = "a/b", axes = axes, measure = measure}, '"a/b" is no name'},
        {{name = "..", axes = axes, measure = measure}, "is no name"},
        {{name = "a", axes = axes}, "a has no measure"},
        {{name = "a", axes = axes, mesure = measure},
            "unknown option 'mesure': did you mean 'measure'?"},
        {{name = "a", axes = axes, measure = 1},
            "measure is 1, expected a function"},
        {{name = "a", axes = axes, measure = measure, timeout = -1},
            "timeout is -1"}} do
        raises(function() experiment(case[1]) end, table.unpack(case, 2))
    end
    raises(function() experiment("a") end, 'takes a table')
    raises(function() pow2(3, 1) end, "goes up")
    raises(function() pow2(0.5, 1) end, "first is 0.5, expected a whole number")
    raises(function() experiment.range(1, 5, -1) end, "does not lead from 1 to 5")
    raises(function() experiment.logspace(0, 3, 4) end,
        "experiment.logspace(1, 1000, 4) has 1, 10, 100, 1000")
end

TestKeys = {}

local function code_of(text, name)
    local spec = assert(load("return " .. text, text .. (name or "")))()
    return identity.code(spec, "1").hash
end

function TestKeys:test_parameters()
    local one = identity.key({n = 512, k = "a"}, "c")
    lu.assertEquals(identity.key({k = "a", n = 512.0}, "c"), one)
    lu.assertNotEquals(identity.key({k = "a", n = 513}, "c"), one)
    lu.assertNotEquals(identity.key({k = "a", n = "512"}, "c"), one)
    lu.assertNotEquals(identity.key({k = "a", n = 512, b = false}, "c"), one)
    lu.assertNotEquals(identity.key({k = "a", n = 512}, "d"), one)
end

-- Neither layout nor comments nor what stands beside a function are its code.
function TestKeys:test_layout_does_not_count()
    local one = code_of("{measure = function(p) return p.n end}")
    local text = "{axes = {n = {1, 2}}, flops = function(p) return 1 end,\n" ..
        "  measure = function(p) -- how long\n    return --[[ it ]] p.n\n  end}"
    lu.assertEquals(code_of(text), one)
    lu.assertNotEquals(code_of("{measure = function(p) return p.m end}"), one)
    lu.assertNotEquals(code_of("{measure = function(p) return 'p.n' end}"), one)
    lu.assertNotEquals(code_of("{measure = function(p) return p.n end, " ..
        "check = function() return 0 end}"), one)
    lu.assertEquals(code_of("{measure = function(p) if p.n then for i = 1, 2 " ..
        "do end end return p.n end, flops = function() return 2 end}"),
        code_of("{measure = function(p) if p.n then for i = 1, 2 " ..
        "do end end return p.n end, flops = function() return 3 end}"))
end

function TestKeys:test_upvalues()
    local function with(x, helper)
        return "(function() local x = " .. x .. " local function help() " ..
            "return " .. helper .. " end return {measure = function() " ..
            "return x + help() end} end)()"
    end
    local one = code_of(with(1, 1))
    lu.assertEquals(code_of(with(1, 1)), one)
    lu.assertNotEquals(code_of(with(2, 1)), one)
    lu.assertNotEquals(code_of(with(1, 2)), one)
end

function TestKeys:test_versions()
    local function f() return 1 end
    local one = identity.code({measure = f}, "1").hash
    lu.assertNotEquals(identity.code({measure = f, version = 2}, "1").hash, one)
    lu.assertNotEquals(identity.code({measure = f}, "2").hash, one)
    lu.assertEquals(identity.code({measure = f, version = 1}, "1").hash, one)
end

function TestKeys:test_what_changed_is_named()
    local function parts(...) return identity.code(...).parts end
    local function f() return 1 end
    local function g() return 2 end
    lu.assertEquals(identity.difference(parts({measure = f}, "1"),
        parts({measure = g}, "1")), "measure")
    lu.assertEquals(identity.difference(parts({measure = f, check = g}, "1"),
        parts({measure = f}, "2")), "lumat (1, now 2), check (gone)")
end

-- Keys of points stay while axes are reordered and values added.
function TestKeys:test_old_points_keep_their_keys()
    local function keys(axes, order)
        local e = experiment{name = "a", axes = axes, order = order,
            measure = measure}
        local list = {}
        for _, p in ipairs(e:points()) do
            list[#list + 1] = identity.key(p, e.code.hash)
        end
        table.sort(list)
        return list
    end
    local one = keys{n = {1, 2, 3}, k = {"a", "b"}}
    lu.assertEquals(keys({k = {"b", "a"}, n = {3, 1, 2}}, {"n", "k"}), one)
    local more, found = {}, 0
    for _, key in ipairs(keys{n = {0, 1, 2, 3, 4}, k = {"a", "b", "c"}}) do
        more[key] = true
    end
    for _, key in ipairs(one) do found = found + (more[key] and 1 or 0) end
    lu.assertEquals(found, 6)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
