-- Groups of frames, counts and descriptions: against lists that are gone
-- through one by one, and against what pandas gives.
local lu = require "luaunit"
local t = require "common"
local raises = t.raises
local NAN = 0 / 0

local function values(c)
    local list = c:totable()
    for i, x in ipairs(list) do if x ~= x then list[i] = "NaN" end end
    return list
end

local function sales()
    return frame{{"shop", {"b", "a", "b", "a", "c", false}},
        {"kind", {"x", "x", "y", "x", "y", "y"}},
        {"price", vec({1, 2, 3, 4, NAN, 9}, {dtype = "f64"})},
        {"count", {1, 1, 2, 5, 1, 1}}}
end


TestGroups = {}

function TestGroups:setUp() warn("@off") end
function TestGroups:tearDown() warn("@on") end

function TestGroups:test_statistics()
    local g = sales():groupby "shop"
    local want = {sum = {6, 4, 0}, mean = {3, 2, "NaN"}, median = {3, 2, "NaN"},
        min = {2, 1, "NaN"}, max = {4, 3, "NaN"}, var = {2, 2, "NaN"},
        first = {2, 1, "NaN"}, last = {4, 3, "NaN"}, count = {2, 2, 0}}
    for name, list in pairs(want) do
        local got = g[name](g, "price")
        lu.assertEquals(got:names(), {"shop", "price"})
        lu.assertEquals(values(got.shop), {"a", "b", "c"})
        lu.assertEquals(values(got.price), list, name)
    end
    lu.assertEquals(g:std "price".price[1], math.sqrt(2))
    lu.assertEquals(values(g:count():col "count"), {2, 2, 1})
    lu.assertEquals(#g, 3)
    lu.assertEquals(tostring(g), "3 groups of 6 rows by shop, 1 to 2 each")
    lu.assertEquals(values(g.keys.shop), {"a", "b", "c"})
end

function TestGroups:test_which_columns()
    local g = sales():groupby "shop"
    lu.assertEquals(g:mean():names(), {"shop", "price", "count"})
    lu.assertEquals(g:first():names(), {"shop", "kind", "price", "count"})
    lu.assertEquals(values(g:last().kind), {"x", "y", "y"})
    raises(function() g:mean "kind" end,
        'mean: mean of the column "kind", which is text')
    raises(function() g:mean "prize" end, 'did you mean "price"?')
    raises(function() g:mode() end,
        'there is no "mode" of groups: there are count sum')
    raises(function() sales():groupby "shp" end,
        'groupby: there is no column "shp"')
end

function TestGroups:test_several_keys()
    local r = sales():groupby{"shop", "kind"}:sum "price"
    lu.assertEquals(values(r.shop), {"a", "b", "b", "c"})
    lu.assertEquals(values(r.kind), {"x", "x", "y", "y"})
    lu.assertEquals(values(r.price), {6, 1, 3, 0})
end

function TestGroups:test_agg()
    local r = sales():groupby "kind":agg{price = {"min", "max"}, count = "sum"}
    lu.assertEquals(r:names(), {"kind", "price_min", "price_max", "count"})
    lu.assertEquals(values(r.price_max), {4, 9})
    lu.assertEquals(values(r:col "count"), {7, 4})
    local g = sales():groupby "kind"
    raises(function() g:agg{price = "mode"} end, '"mode" is no statistic')
    raises(function() g:agg{price = function(v) return v:max() end} end,
        "agg: statistics are named: there are count", "g:apply(f) calls f(rows)")
    raises(function() g:agg{prize = "mean"} end, 'no column "prize"')
    raises(function() g:agg "mean" end, "agg: takes {column = ")
end

function TestGroups:test_options_are_those_of_groups_of_vectors()
    local g = frame{g = {1, 1, 2, 2}, a = {1, 2, 3, 5}, b = {1, NAN, 2, 2},
        s = {"x", "y", "z", "z"}}:groupby "g"
    lu.assertEquals(values(g:std("a", {ddof = 0}).a), {0.5, 1})
    lu.assertEquals(values(g:var{ddof = 0}.a), {0.25, 1})
    lu.assertEquals(values(g:mean("b", {nan = "keep"}).b), {"NaN", 2})
    raises(function() g:mean("a", "b") end, 'second name, "b": several are a list')
    raises(function() g:mean("a", {ddof = 0}) end, "no option 'ddof'")
    raises(function() g:mean("a", 1) end, "mean: the options are 1")
    raises(function() g:count(nil, {nan = "keep"}) end, "count: has no options")
    raises(function() g:sum("a", {}, 1) end, "sum: takes names and options")
    raises(function() groupby(vec{1, 2}):sum(vec{1, 2}, 2) end,
        "sum: the options are 2")
    raises(function() groupby(vec{1, 2}):count() end,
        "count: is no method here, but a matrix: write g.count, without ()")
end

-- As pandas has it.
function TestGroups:test_first_and_last_leave_out_what_is_missing()
    local T = frame{k = {"a", "a", "b"}, v = {NAN, 2, NAN}, w = {2, NAN, 3},
        s = {false, "x", false}, d = dates{false, "2020-01-02", "2020-01-03"},
        m = {true, false, true}}
    local first, last = T:groupby "k":first(), T:groupby "k":last()
    lu.assertEquals(values(first.v), {2, "NaN"})
    lu.assertEquals(values(last.w), {2, 3})
    lu.assertEquals(values(first.s), {"x", false})
    lu.assertEquals(values(first.d), {"2020-01-02", "2020-01-03"})
    lu.assertEquals(first.m[1], true)
    lu.assertEquals(last.m[1], false)
    lu.assertEquals(values(T:groupby "k":agg{v = "first"}.v), {2, "NaN"})
    lu.assertEquals(values(T:groupby "k":first("v", {nan = "keep"}).v),
        {"NaN", "NaN"})
end

function TestGroups:test_agg_takes_lists_of_names_only()
    raises(function()
        sales():groupby "shop":agg{price = {"mean", foo = "max"}}
    end, 'agg: a list of names has no ["foo"]')
end

function TestGroups:test_apply_and_each()
    local g = sales():groupby "kind"
    local r = g:apply(function(part)
        return {rows = #part, top = part:sort "price".shop[-1] or "none"}
    end)
    lu.assertEquals(r:names(), {"kind", "rows", "top"})
    lu.assertEquals(values(r:col "rows"), {3, 3})
    lu.assertEquals(values(g:apply(function(part)
        return part:col "count":sum() end).value), {7, 4})
    local big = frame{k = {"a", "b", "a"},
        v = vec({16777217, 1, 50331651}, {dtype = "f64"})}
    lu.assertEquals(big:groupby "k":apply(function(part)
        return part.v:sum() end).value[1], 67108868)
    local seen = {}
    for key, part in g:each() do seen[key.kind] = #part end
    lu.assertEquals(seen, {x = 3, y = 3})
    raises(function() g:apply(3) end, "apply: takes a function, not 3")
    raises(function() g:apply(function() return print end) end,
        "the function gives a function of group 1")
    raises(function() g:apply(function() end) end,
        "the function gave nothing for group 1")
    raises(function() g:apply(function() return {} end) end,
        "the function gave an empty table for group 1")
    raises(function() g:apply(function() return dates{"2020-01-01"} end) end,
        "gives a date column of group 1, expected one value: c[1]")
    raises(function() g:apply(function(part) return part end) end, "gives a frame")
end

function TestGroups:test_dates_and_numbers_as_keys()
    local T = frame{d = dates{"2020-01-03", "2020-01-20", "2020-02-01"},
        x = {2, 1, 2}, n = {1, 2, 3}}
    T.month = T.d:floor "month"
    local r = T:groupby "month":sum "n"
    lu.assertEquals(values(r.month), {"2020-01", "2020-02"})
    lu.assertEquals(values(r.n), {3, 3})
    lu.assertEquals(values(T:groupby "x":count().x), {1, 2})
    lu.assertEquals(values(T:groupby "x":max "d".d),
        {"2020-01-20", "2020-02-01"})
end

-- A warning tells of rows without a key; groups of none are none.
function TestGroups:test_missing_keys()
    local r = sales():groupby "shop":count()
    lu.assertEquals(r:col "count":sum(), 5)
    local none = frame{k = {NAN, NAN}, x = {1, 2}}
    lu.assertEquals(#none:groupby "k":mean(), 0)
    lu.assertEquals(none:groupby "k":mean():names(), {"k", "x"})
    lu.assertEquals(#sales():head(0):groupby "shop":median "price", 0)
end

-- The columns are those that the frame had then.
function TestGroups:test_later_changes_of_the_frame()
    local T = sales()
    local g = T:groupby "kind"
    T.price = nil
    lu.assertEquals(values(g:sum "price".price), {7, 12})
end

-- Many groups of random rows, one by one.
function TestGroups:test_methods_refuse_what_they_do_not_use()
    local g = sales():groupby "shop"
    raises(function() g:agg({price = "sum"}, 3) end,
        "agg: g:agg takes 1 argument, not 3")
    raises(function() g:each(3) end, "each: g:each takes no arguments, not 3")
end

function TestGroups:test_against_lists()
    local n = 3000
    local key, x = randint(1, 40, n), randn(n, {dtype = "f64"})
    x[x:gt(2)] = NAN
    local T = frame{key = key, x = x}
    local lists = {}
    for _, row in T:eachrow() do
        lists[row.key] = lists[row.key] or {}
        if row.x == row.x then table.insert(lists[row.key], row.x) end
    end
    local g = T:groupby "key"
    local sum, middle, top = g:sum(), g:median(), g:max()
    for i, row in g:mean():eachrow() do
        local list, total = lists[row.key], 0
        table.sort(list)
        for _, y in ipairs(list) do total = total + y end
        local m = #list
        lu.assertAlmostEquals(sum.x[i], total, 1e-12)
        lu.assertAlmostEquals(row.x, total / m, 1e-12)
        lu.assertAlmostEquals(middle.x[i],
            (list[(m + 1) // 2] + list[m // 2 + 1]) / 2, 1e-15)
        lu.assertEquals(top.x[i], list[m])
    end
end

TestCounts = {}

function TestCounts:test_value_counts()
    local r = sales():value_counts "kind"
    lu.assertEquals(r:names(), {"kind", "count"})
    lu.assertEquals(values(sales():value_counts "shop".shop), {"a", "b", "c"})
    lu.assertEquals(values(sales():value_counts{"shop", "kind"}:col "count"),
        {2, 1, 1, 1})
    raises(function() sales():value_counts "count" end, "would be there twice")
end

function TestCounts:test_unique()
    lu.assertEquals(values(sales():unique "shop"), {"a", "b", "c"})
    lu.assertEquals(values(sales():unique "price"), {1, 2, 3, 4, 9})
    lu.assertEquals(values(frame{d = dates{"2020-02-01", "2020-01-01",
        "2020-02-01"}}:unique "d"), {"2020-01-01", "2020-02-01"})
end

TestDescribe = {}

-- pandas.DataFrame({"x": [1, 2, 4, 8, nan]}).describe()
function TestDescribe:test_numbers()
    local d = frame{x = vec({1, 2, 4, 8, NAN}, {dtype = "f64"})}:describe()
    lu.assertEquals(d:names(), {"column", "count", "mean", "std", "min", "25%",
        "50%", "75%", "max"})
    lu.assertEquals(d[1].column, "x")
    lu.assertEquals({d.count[1], d.mean[1], d.min[1], d["25%"][1], d["50%"][1],
        d["75%"][1], d.max[1]}, {4, 3.75, 1, 1.75, 3, 5, 8})
    lu.assertAlmostEquals(d.std[1], 3.095695936834452, 1e-15)
end

function TestDescribe:test_text_and_dates()
    local T = sales()
    T.d = dates{"2020-01-01", "2020-01-01", "2020-01-02", false, false, false}
    local d = T:describe{"shop", "d"}
    lu.assertEquals(d:names(), {"column", "count", "distinct", "top", "freq"})
    lu.assertEquals(values(d.distinct), {3, 2})
    lu.assertEquals(values(d.top), {"a", "2020-01-01"})
    lu.assertEquals(values(d.freq), {2, 2})
    lu.assertEquals(T:describe().cols, 12)
end

function TestDescribe:test_nothing_there()
    local d = frame{a = {NAN, NAN}, b = {"x", false}}[vec{1}]:describe()
    lu.assertEquals({d.count[1], d.count[2]}, {0, 1})
    lu.assertEquals(d.mean[1] ~= d.mean[1], true)
    lu.assertEquals(#frame{a = {1}}:head(0):describe(), 1)
end

-- groupby takes columns of frames, too.
function TestDescribe:test_columns_are_keys_of_vectors()
    local T = frame{{"shop", {"b", "a", false, "b"}}, {"n", vec{1, 1, 2, 2}}}
    T.d = dates{"2020-01-02", "2020-01-01", "2020-01-01", "2020-01-02"}
    local x = vec{1, 2, 4, 8}
    local g = groupby(T.n)
    lu.assertEquals(g:sum(x):totable(), {3, 12})
    lu.assertEquals(groupby(T.d):sum(x):totable(), {6, 9})
    warn "@off"
    g = groupby(T.shop)
    lu.assertEquals(g.keys, {"a", "b"})
    lu.assertEquals(g:sum(x):totable(), {2, 9})
    g = groupby{T.shop, T.n}
    lu.assertEquals(g.keys[1], {"a", "b", "b"})
    lu.assertEquals(g.keys[2]:totable(), {1, 1, 2})
    lu.assertEquals(g:sum(x):totable(), {2, 1, 8})
    warn "@on"
end

os.exit(lu.LuaUnit.run("-o", "tap"))
