-- ratio_to: how many times as fast as the base each point is, also where axes
-- are zipped or the base did not work.
local lu = require "luaunit"
local t = require "common"
local raises = t.raises
local _, new_dir = t.folders()

local function ran(axes, seconds, dir)
    local e = experiment{name = "a", dir = dir or false, axes = axes,
        repeats = 1, measure = seconds}
    e:run{quiet = true}
    return e
end

-- "1 0.5 -": the ratios of the points in order.
local function ratios(e, base, name)
    local words = {}
    for i, row in ipairs(e:table{ratio_to = base}) do
        local x = row.values[name]
        words[i] = x and ("%g"):format(x) or "-"
    end
    return table.concat(words, " ")
end

TestZips = {}

local function zipped(dir)
    return ran({experiment.zip{kernel = {"a", "b", "c"}, tile = {8, 16, 32}},
        n = {1, 2}}, function(p) return p.n * p.tile end, dir)
end

function TestZips:test_a_partner_goes_along()
    local e = zipped()
    lu.assertEquals(ratios(e, {kernel = "a"}, "x a"), "1 1 0.5 0.5 0.25 0.25")
    lu.assertEquals(ratios(e, {tile = 16}, "x 16"), "2 2 1 1 0.5 0.5")
    lu.assertEquals(ratios(e, {kernel = "c", tile = 32}, "x 32 c"),
        "4 4 2 2 1 1")
    lu.assertStrContains(tostring(e:table{ratio_to = {kernel = "b"}}),
        "  x b: beside kernel=b tile=16; together go tile and kernel")
    lu.assertStrContains(tostring(e:table{rows = "n", cols = "kernel",
        ratio_to = {kernel = "b"}}), "\n  1  2   1   0.5\n")
end

function TestZips:test_in_a_run_directory()
    local dir = new_dir()
    zipped(dir)
    lu.assertEquals(ratios(experiment.open(dir), {kernel = "a"}, "x a"),
        "1 1 0.5 0.5 0.25 0.25")
end

-- Axes that are independent are not compared across.
function TestZips:test_other_axes_are_equal()
    local e = ran({kernel = {"a", "b"}, n = {1, 2}}, function(p)
        if p.kernel == "a" and p.n == 2 then error "no" end
        return p.n
    end)
    lu.assertEquals(ratios(e, {kernel = "a"}, "x a"), "1 - 1 -")
end

local function listed(list)
    return ran(list, function(p) return p.tile end)
end

function TestZips:test_what_cannot_be_decided()
    local e = listed{{kernel = "a", tile = 8}, {kernel = "a", tile = 16},
        {kernel = "b", tile = 32}, {kernel = "b", tile = 64}}
    raises(function() e:table{ratio_to = {kernel = "a"}} end,
        "ratio_to: kernel and tile go together, and kernel=a has several " ..
        "values of tile", "name tile in ratio_to as well")
    lu.assertEquals(ratios(e, {kernel = "a", tile = 16}, "x 16 a"),
        "2 1 0.5 0.25")
    e = listed{{kernel = "a", tile = 8}, {kernel = "a", tile = 16},
        {kernel = "b", tile = 16}, {kernel = "b", tile = 64}}
    lu.assertEquals(ratios(e, {kernel = "a"}, "x a"), "1 1 1 -")
end

TestBases = {}

function TestBases:test_a_base_that_failed()
    local e = ran({kernel = {"a", "b"}}, function(p)
        if p.kernel == "a" then error "no" end
        return 1
    end)
    lu.assertEquals(ratios(e, {kernel = "a"}, "x a"), "- -")
    lu.assertStrContains(tostring(e:table{ratio_to = {kernel = "a"}}),
        "  x a: no point that worked has kernel=a")
    raises(function() e:table{ratio_to = {kernel = "c"}} end,
        "ratio_to: no point has kernel=c")
    raises(function() e:table{ratio_to = {kernal = "a"}} end,
        "did you mean kernel?")
    raises(function() e:table{ratio_to = {}} end, "ratio_to is a table")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
