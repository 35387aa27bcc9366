-- What belongs together: searchsorted, unique, bincount, histogram, groupby.
local lu = require "luaunit"
local t = require "common"
local equals, raises, nan = t.equals, t.raises, t.nan
local inf = 1 / 0
local there = {device = t.device}

local function f64(list) return vec(list, {dtype = "f64"}) end

TestSearch = {}

function TestSearch:test_places()
    local v = vec{1, 3, 3, 5}
    equals(searchsorted(v, vec{0, 1, 2, 3, 5, 6}), {1, 1, 2, 2, 4, 5})
    equals(searchsorted(v, vec{0, 1, 2, 3, 5, 6}, {side = "right"}),
        {1, 2, 2, 4, 5, 5})
    equals(v:searchsorted(mat{{3, 9}, {-inf, inf}}), {{2, 5}, {1, 5}})
    lu.assertEquals(searchsorted(v, 3), 2)
    lu.assertEquals(math.type(searchsorted(v, 3, {side = "right"})), "integer")
    lu.assertEquals(searchsorted(v, vec{3}).dtype, "f64")
end

function TestSearch:test_nan_is_the_largest()
    local v = vec{1, inf, nan, nan}
    equals(searchsorted(v, vec{inf, nan}), {2, 3})
    equals(searchsorted(v, vec{inf, nan}, {side = "right"}), {3, 5})
    equals(searchsorted(zeros(0), vec{1, nan}), {1, 1})
    lu.assertEquals(searchsorted(v, zeros(0)).shape, {0})
end

function TestSearch:test_a_step_of_it_by_hand()
    for _, dtype in ipairs{"f32", "f64"} do
        local v = sort(randint(1, 500, 3001, {seed = 1, dtype = dtype}))
        local x = randint(0, 501, 5003, {seed = 2, dtype = dtype})
        local place = searchsorted(v, x)
        local behind = searchsorted(v, x, {side = "right"})
        local padded = hcat(vec({-inf}, {dtype = dtype}), v,
            vec({inf}, {dtype = dtype}))
        lu.assertTrue(all(padded[place]:lt(x)) and all(padded[place + 1]:ge(x)))
        lu.assertTrue(all(padded[behind]:le(x)) and all(padded[behind + 1]:gt(x)))
        local counts = bincount(v, {length = 501})
        lu.assertTrue(behind - place == counts[maximum(x, 1)] % x:gt(0))
        lu.assertTrue(searchsorted(v["::-1"]["::-1"], x) == place)
    end
end

-- What is searched very often is looked up by cells of one width, unless they
-- are filled too unevenly: the place is the one that a count of what comes
-- before gives.
function TestSearch:test_many_searches()
    local lists = {range(1, 100), randn(300, {seed = 1}),
        floor(randn(500, {seed = 2}) * 3), exp(randn(200, {seed = 3}) * 20),
        hcat(range(1, 99), vec{1e30}), hcat(vec{-inf}, range(1, 99), vec{inf}),
        full(70, 2), hcat(range(1, 80) * 1e-3, full(20, nan)),
        hcat(vec{-1.5e308}, range(1, 70), vec{1.5e308})}
    for _, list in ipairs(lists) do
        for _, dtype in ipairs{"f32", "f64"} do
            local v = sort(list:to(t.device)[dtype](list:to(t.device)))
            local x = hcat(v, v + 0.5, v - 1e-3, v * 3, vec({nan, inf, -inf, 0}, there),
                randn(400, there))
            for _, side in ipairs{"left", "right"} do
                local before = side == "left" and v:row():lt(x:col()) or
                    v:row():le(x:col())
                local nans = v:isnan():sum()
                local want = before:sum(2):flatten() + 1
                want = where(x:isnan(), side == "left" and #v - nans + 1 or #v + 1, want)
                lu.assertTrue(searchsorted(v, x, {side = side}):eq(want):all())
                lu.assertTrue(searchsorted(v, x:col(), {side = side}):eq(want:col()):all())
            end
        end
    end
end

-- What lies too unevenly for cells, and is mostly there, is looked up: beside
-- it NaN, zeros of both signs and what is not there.
function TestSearch:test_most_of_it_is_there()
    for _, dtype in ipairs{"f32", "f64"} do
        local v = sort(exp(randn(1000, {seed = 3, dtype = dtype}) * 12))
        v = sort(hcat(v, v["200:300"], -v["1:50"], v["1:3"] * 0))
        local x = v:take(randint(1, #v, 5000, {seed = 4, dtype = "f64"}))
        local zeros = v["1:50"] * 0
        x = hcat(x, -zeros, zeros, v["1:200"] * 1.5, zeros + nan, zeros + inf)
        local place = searchsorted(v, x)
        local padded = hcat(vec({-inf}, {dtype = dtype}), v,
            vec({inf}, {dtype = dtype}))
        local is_number = ~x:isnan()
        lu.assertTrue(place[x:isnan()]:eq(#v + 1):all())
        place, x = place[is_number], x[is_number]
        lu.assertTrue(padded[place + 1]:ge(x):all())
        lu.assertTrue((padded[place]:lt(x) | place:eq(1)):all())
        lu.assertTrue(searchsorted(hcat(v, v["1:9"] * nan), x) == place)
    end
end

-- Numbers whose bits a table would put into one slot are found without it.
function TestSearch:test_numbers_of_one_slot()
    local factor, inverse, list = 0x9e3779b97f4a7c15, 1, {}
    for _ = 1, 6 do inverse = inverse * (2 - factor * inverse) end
    lu.assertEquals(factor * inverse, 1)
    for i = 1, 300 do
        local bits = i * inverse
        local x = string.unpack("d", string.pack("i8", bits ~ (bits >> 32)))
        if x == x then list[#list + 1] = x end
    end
    local v = sort(f64(list))
    lu.assertTrue(searchsorted(v, tile(v, 3)) ==
        tile(range(1, #v, 1, {dtype = "f64"}), 3))
end

-- Few values, of which a look misses some.
function TestSearch:test_values_that_a_look_misses()
    local n = 200000
    local v = floor(rand(n, {seed = 5, device = t.device}) * 50) + 0.25
    v[{{1001, 1300}}] = range(1, 300, 1, there) * 1.1e-3
    v[77], v[78] = nan, 1e9
    local u = unique(v)
    lu.assertEquals(#u, 50 + 300 + 2)
    lu.assertTrue(u[-1] ~= u[-1] and u[-2] == 1e9)
    local g = groupby(v)
    lu.assertTrue(g.keys:eq(u["1:end-1"]):all())
    lu.assertTrue(g.keys[g.group[{{1001, 1300}}]]:eq(v[{{1001, 1300}}]):all())
    lu.assertEquals(g.count:sum(), n - 1)
    lu.assertTrue((g:mean(v) - g.keys):abs():max() < 100) -- of 1e9 in f32
end

-- Many values, each some times, wherever they lie: as it was put together.
function TestSearch:test_groups_of_many_values()
    local n, count = 100000, 9000
    for _, dtype in ipairs{"f32", "f64"} do
        for _, values in ipairs{rand(count, {seed = 1, dtype = dtype}),
            exp(randn(count, {seed = 2, dtype = dtype}) * 9)} do
            values = unique(values)
            local number = randint(1, #values, n, {seed = 3, dtype = "f64"})
            local v = values:take(number):to(t.device)
            number[7], v[7] = nan, nan
            local x = rand(n, {seed = 4, dtype = "f64", device = t.device})
            local g, want = groupby(v), groupby(number:to(t.device))
            local there = values:to(t.device):take(want.keys)
            lu.assertTrue(g.keys == there)
            lu.assertTrue(g.count == want.count)
            lu.assertTrue((g:sum(x) - want:sum(x)):abs():max() < 1e-9)
            lu.assertTrue(g:median(x) == want:median(x))
            lu.assertTrue(g:first(x) == want:first(x))
            local u = unique(v, {places = true, counts = true})
            lu.assertTrue(u.values["1:end-1"] == there and u.counts[-1] == 1)
            lu.assertTrue(v:take(u.places["1:end-1"]) == there)
            lu.assertTrue(u.places["1:end-1"] == want:first(range(1, n, 1,
                {dtype = "f64", device = t.device})))
        end
    end
end

function TestSearch:test_errors()
    raises(function() searchsorted(vec{2, 1}, 1) end, "v is not sorted")
    raises(function() searchsorted(vec{nan, 1}, 1) end, "v is not sorted")
    raises(function() searchsorted(vec{1, 2}, 1, {side = "middle"}) end, "side")
    raises(function() searchsorted(ones(2, 2), 1) end, "vector")
    raises(function() searchsorted(vec{im}, vec{1}) end, "complex numbers have no order")
end

-- Beyond 2^53 a number less 1 may be the number, or another.
function TestSearch:test_whole_numbers_without_a_next()
    for _, low in ipairs{1e20, -1e20, 2.0 ^ 53 + 2, 2.0 ^ 53} do
        local v = f64{low, low, low}:to(t.device)
        local g = groupby(v)
        equals(g.group, {1, 1, 1})
        equals(g.keys, {low})
        equals(unique(v, {counts = true}).values, {low})
    end
    local v = f64{2.0 ^ 53 + 6, 2.0 ^ 53 + 2}:to(t.device)
    equals(groupby(v).keys, {2.0 ^ 53 + 2, 2.0 ^ 53 + 6})
    equals(groupby(v).group, {2, 1})
end

TestUnique = {}

function TestUnique:test_values()
    equals(unique(vec{3, 1, 3, 2, 1}), {1, 2, 3})
    equals(unique(vec{0.5, -1.5, 0.5}), {-1.5, 0.5})
    equals(unique(mat{{2, 1}, {1, 7}}), {1, 2, 7})
    equals(unique(vec{nan, 1, nan}), {1, nan})
    equals(unique(vec{nan, nan}), {nan})
    equals(unique(vec{inf, 1.5, -inf}), {-inf, 1.5, inf})
    equals(unique(vec{true, false, true}), {false, true})
    equals(unique(vec{1e9, 1, 1e9}), {1, 1e9})
    lu.assertEquals(unique(zeros(0)).shape, {0})
    lu.assertEquals(unique(f64{2, 1}).dtype, "f64")
    lu.assertEquals(unique(vec{true, true}).dtype, "bool")
end

function TestUnique:test_places_and_counts()
    for _, more in ipairs{0, 0.25} do
        local u = unique(vec{3, 1, nan, 3, 2, nan} + more,
            {places = true, counts = true})
        equals(u.values, {1 + more, 2 + more, 3 + more, nan})
        equals(u.places, {2, 5, 1, 3})
        equals(u.counts, {1, 1, 2, 2})
        local values, places, counts = u:unpack()
        lu.assertTrue(places == u.places and counts == u.counts and #values == 4)
    end
    local u = unique(vec{3, 1, 3}, {counts = true})
    lu.assertEquals(tostring(u), "2 different values of 3 elements")
    equals(u.counts, {1, 2})
    local values, places, counts = u:unpack()
    lu.assertNil(places)
    lu.assertTrue(values == u.values and counts == u.counts)
    raises(function() return u.places end, "places were not asked for",
        "unique(A, {places = true})")
    equals(unique(vec{3, 1, 3}, {places = true}).counts, {1, 2})
    raises(function() return u.count end, "there is no 'count' of it: it has counts")
    raises(function() u.values = 1 end, "cannot be assigned")
    raises(function() unique(vec{im}) end, "complex numbers have no order")
end

-- By codes, by a look at few values, and by sorting alike.
function TestUnique:test_long_ones()
    local n = 200000
    for _, dtype in ipairs{"f32", "f64"} do
        local whole = randint(1, 1000, n, {seed = 5, dtype = dtype})
        local want = unique(whole, {counts = true, places = true})
        equals(want.values, range(1, 1000):totable())
        lu.assertEquals(want.counts:sum(), n)
        lu.assertTrue(whole[want.places] == want.values)
        lu.assertEquals(want.places:max() < n, true)
        for _, scale in ipairs{0.5, 1e6} do
            local v = whole * scale
            local got = unique(v, {counts = true, places = true})
            lu.assertTrue(got.values == want.values * scale)
            lu.assertTrue(got.counts == want.counts and got.places == want.places)
            lu.assertTrue(unique(v) == want.values * scale)
            v[7] = nan
            lu.assertEquals(#unique(v), 1001)
        end
        local rare = full(n, 0.5, {dtype = dtype}) -- a look does not meet it
        rare[n - 1] = 7.5
        equals(unique(rare), {0.5, 7.5})
        local many = rand(n, {seed = 1, dtype = dtype})
        lu.assertTrue(#unique(many) <= n and #unique(many) > n / 2)
        lu.assertTrue(unique(hcat(many, many)) == unique(many))
    end
end

-- Runs that are longer than what a block, or many of them, looks at, and lie
-- between short ones.
function TestUnique:test_counts_of_long_runs()
    for _, dtype in ipairs{"f32", "f64"} do
        local on = {dtype = dtype, device = t.device}
        local short = rand(100000, {seed = 3, dtype = dtype, device = "cpu"})
        local n, m = 1200000, 1300001
        local v = hcat(full(n, 0.3, on), short:to(t.device), full(m, 0.7, on),
            full(1, 1.5, on))
        local u = unique(v, {counts = true})
        local want = {}
        for _, x in ipairs(short:totable()) do want[x] = (want[x] or 0) + 1 end
        local low = v[1]
        local high = v[n + 100001]
        want[low] = (want[low] or 0) + n
        want[high] = (want[high] or 0) + m
        want[1.5] = 1
        local counts = u.counts:totable()
        for i, x in ipairs(u.values:totable()) do
            lu.assertEquals(counts[i], want[x])
        end
        lu.assertEquals(u.counts:sum(), #v)
        local asked = unique(v, {counts = true, places = true})
        v[{{1, 10}}] = 9 -- is not seen by either
        lu.assertTrue(u.counts == asked.counts)
    end
end

TestCounts = {}

function TestCounts:test_bincount()
    equals(bincount(vec{1, 3, 1, 4}), {2, 0, 1, 1})
    equals(bincount(vec{1, 3}, {length = 4}), {1, 0, 1, 0})
    equals(bincount(vec{2, 1, 2}, {weights = vec{0.5, 1, 2}}), {1, 2.5})
    lu.assertEquals(bincount(zeros(0)).shape, {0})
    equals(bincount(zeros(0), {length = 2}), {0, 0})
    equals(bincount(vec{true, true}), {2})
    raises(function() bincount(vec{1, 0}) end, "counts begin with 1")
    raises(function() bincount(vec{1, 1.5}) end, "element 2 is 1.5: counts are of whole")
    raises(function() bincount(vec{1, nan}) end, "element 2 is NaN")
    raises(function() bincount(vec{1, 9}, {length = 8}) end, "9, above length=8")
    raises(function() bincount(vec{1e15}) end, "too many")
    raises(function() bincount(vec{1, 2}, {weights = vec{1}}) end, "weights are vector 1")
end

function TestCounts:test_histogram()
    local h = histogram(vec{1, 2, 2, 5, nan}, {bins = 2})
    equals(h.counts, {3, 1})
    equals(h.edges, {1, 3, 5})
    local counts, edges = h:unpack()
    lu.assertTrue(counts == h.counts and edges == h.edges)
    lu.assertEquals(tostring(h), "histogram of 5 elements in 2 bins from 1 to 5")
    equals(histogram(vec{0, 1, 2, 3}, {edges = f64{0, 1, 3}}).counts, {1, 3})
    equals(histogram(vec{0, 1, 2, 3}, {edges = {0, 1, 3}}).counts, {1, 3})
    equals(histogram(vec{0, 1, 2, 3}, {edges = vec{-inf, 1, inf}}).counts, {1, 3})
    equals(histogram(vec{-1, 0, 4, 9}, {range = {0, 4}, bins = 4}).counts,
        {1, 0, 0, 1})
    equals(histogram(vec{1, 2, 2, 5, nan}, 2).counts, {3, 1})
    equals(histogram(vec{-1, 0, 4, 9}, 4, {range = {0, 4}}).counts, {1, 0, 0, 1})
    raises(function() histogram(vec{1}, 2, {bins = 3}) end,
        "bins stand twice: 2 and {bins=3}")
    raises(function() histogram(vec{1}, 2, {edges = {0, 1}}) end,
        "edges say all: leave out bins")
    equals(histogram(vec{7, 7}, {bins = 1}).edges, {6.5, 7.5})
    equals(histogram(zeros(0), {bins = 2}).edges, {0, 0.5, 1})
    equals(histogram(vec{0, 3, 4}, {bins = 2, weights = vec{1, 2, 4}}).counts, {1, 6})
    equals(histogram(vec{0, 3, 4}, {bins = 2, density = true}).counts,
        {1 / 3 / 2, 2 / 3 / 2})
    equals(histogram(mat{{1, 2}, {2, 2}}, {bins = 1}).counts, {4})
    lu.assertEquals(#histogram(rand(9)).counts, 10)
    raises(function() histogram(vec{1, inf}) end, "range={low, high}")
    raises(function() histogram(vec{1}, {range = {2, 1}}) end, "low < high")
    raises(function() histogram(vec{1}, {edges = vec{2, 1}}) end, "in order")
    raises(function() histogram(vec{1}, {edges = vec{1, 2}, bins = 3}) end, "leave out bins")
end

-- Every edge in its bin, also where steps are rounded.
function TestCounts:test_edges_of_bins()
    for _, bins in ipairs{3, 7, 10, 100, 1000} do
        local edges = histogram(f64{-0.3, 1.1}, {bins = bins}).edges
        local counts = histogram(edges, {range = {-0.3, 1.1}, bins = bins}).counts
        equals(counts[{{1, bins - 1}}], ones(bins - 1):totable())
        lu.assertEquals(counts[bins], 2)
    end
end

-- Methods of the objects refuse what they do not use.
TestObjects = {}

function TestObjects:test_surplus_arguments()
    local v = vec{1, 2, 1}
    raises(function() groupby(v):mean(v, {}, 5) end,
        "mean: g:mean takes 2 arguments, not 5")
    raises(function() unique(v, {counts = true}):unpack(3) end,
        "unpack: u:unpack takes no arguments, not 3")
    raises(function() histogram(v, 2):unpack(3) end,
        "unpack: h:unpack takes no arguments, not 3")
end

TestGroups = {}

local folds = {"sum", "mean", "median", "min", "max", "prod", "std", "var"}

-- The same by a loop over the rows.
local function by_hand(keys, x, name)
    local lists, order, results = {}, {}, {}
    for i, key in ipairs(keys) do
        if key == key then
            if not lists[key] then
                lists[key], order[#order + 1] = {}, key
            end
            table.insert(lists[key], x[i])
        end
    end
    table.sort(order)
    for i, key in ipairs(order) do
        local v = f64(lists[key])
        results[i] = name == "median" and
            (sort(v)[(#v + 1) // 2] + sort(v)[#v // 2 + 1]) / 2 or v[name](v)
    end
    return order, results
end

function TestGroups:test_folds()
    for _, dtype in ipairs{"f32", "f64"} do
        for _, shift in ipairs{0, 0.25, 1e7} do
            local keys = vec({3, 1, 2, 3, 1, 3, 1, 3}, {dtype = dtype}) + shift
            local x = vec({1, 2, 4, 8, 16, 32, 64, 1}, {dtype = dtype})
            local g = groupby(keys)
            for _, name in ipairs(folds) do
                local order, want = by_hand(keys:totable(), x:totable(), name)
                local got = g[name](g, x)
                lu.assertEquals(got.dtype, dtype)
                equals(g.keys, order)
                for i, value in ipairs(want) do
                    lu.assertTrue(value ~= value and got[i] ~= got[i] or
                        math.abs(got[i] - value) <= 1e-5 * math.abs(value), name)
                end
            end
            equals(g.count, {3, 1, 4})
            equals(g.group, {3, 1, 2, 3, 1, 3, 1, 3})
            equals(g:first(x), {2, 4, 1})
            equals(g:last(x), {64, 4, 1})
            equals(g:places(3), {1, 4, 6, 8})
            equals(g:places()[1], {2, 5, 7})
        end
    end
end

function TestGroups:test_first_and_last_that_are_there()
    local g = groupby(vec{2, 1, 2, 1, 2, 3})
    local x = vec{nan, 10, 3, nan, nan, nan}
    equals(g:first(x), {10, nan, nan})
    equals(g:first(x, {nan = "skip"}), {10, 3, nan})
    equals(g:last(x, {nan = "skip"}), {10, 3, nan})
    local X = hcat(x:col(), vec{1, nan, 3, 4, 5, 6}:col())
    equals(g:first(X, {nan = "skip"}), {{10, 4}, {3, 1}, {nan, 6}})
    equals(g:last(X.T:clone().T, {nan = "skip"}), {{10, 4}, {3, 5}, {nan, 6}})
    lu.assertEquals(g:last(X, {nan = "skip"}).dtype, X.dtype)
    raises(function() g:first(x, {nan = "skp"}) end, "nan is \"skp\"")
    raises(function() g:last(x, {skip = true}) end, "there is no option 'skip'")
end

function TestGroups:test_matrices()
    local keys, X = vec{2, 1, 2}, mat{{1, 10}, {2, 20}, {3, 31}}
    local g = groupby(keys)
    equals(g:sum(X), {{2, 20}, {4, 41}})
    equals(g:mean(X), {{2, 20}, {2, 20.5}})
    equals(g:median(X), {{2, 20}, {2, 20.5}})
    equals(g:first(X), {{2, 20}, {1, 10}})
    equals(g:max(X.T.T), {{2, 20}, {3, 31}})
    equals(g:sum(X.T:clone().T), {{2, 20}, {4, 41}})
    equals(g:var(X), {{nan, nan}, {2, 220.5}})
    equals(g:sum(X:gt(2)), {{0, 1}, {1, 2}})
    for _, name in ipairs{"sum", "mean", "median", "first"} do
        local g = groupby(zeros(0))
        lu.assertEquals(g[name](g, zeros(0, 3)).shape, {0, 3})
        lu.assertEquals(g[name](g, zeros(0, 3)).dtype, "f32")
    end
end

-- Neither the keys that were given, nor what was handed out, is the groups' own.
function TestGroups:test_nobody_else_changes_them()
    for _, list in ipairs{{2, 1, 2}, {2.5, 1.5, 2.5}} do
        local keys, X = vec(list), vec{1, 10, 100}
        local g = groupby(keys)
        keys[1] = list[2]
        for _, name in ipairs{"keys", "count", "group"} do g[name][1] = 100 end
        equals(g.keys, {list[2], list[1]})
        equals(g:mean(X), {10, 50.5})
        equals(g.count, {1, 2})
        equals(g.group, {2, 1, 2})
        local u = unique(vec(list), {counts = true, places = true})
        for _, part in ipairs{u:unpack()} do part[1] = 100 end
        equals(u.values, {list[2], list[1]})
        equals(u.places, {2, 1})
        equals(u.counts, {1, 2})
    end
    local g = groupby{"b", "a", "b"}
    g.keys[1] = "z"
    lu.assertEquals(g.keys, {"a", "b"})
    local several = groupby{vec{1, 1, 2}, vec{3, 4, 3}}
    several.keys[1][1] = 7
    several.keys[2] = nil
    equals(several.keys[1], {1, 1, 2})
    equals(several.keys[2], {3, 4, 3})
    local h = histogram(vec{1, 2, 2}, {bins = 2})
    h.counts[1], h.edges[1] = 100, 100
    equals(h.counts, {1, 2})
    equals(h.edges, {1, 1.5, 2})
    local counts = frame{k = {1, 2, 1}}:groupby "k"
    counts:count().count[1] = 100
    equals(counts:count().count, {2, 1})
end

-- Groups of nothing but NaN are told of, where that is left out.
function TestGroups:test_empty_groups_are_told_of()
    local function said(expression)
        local pipe = assert(io.popen(("'%s' --device %s -e '%s' 2>&1"):format(
            os.getenv("LUMAT"), t.device, "local v = vec{0/0, 2, 0/0, 1/0} " ..
            "local g = groupby(vec{1, 2, 1, 3}) local _ = " .. expression)))
        local text = pipe:read("a")
        lu.assertTrue(pipe:close(), text)
        return text
    end
    for _, name in ipairs{"mean", "median", "min", "max", "std", "var"} do
        lu.assertStrContains(said("g:" .. name .. "(v, {nan = \"skip\"})"),
            name .. ": of 1 group there is nothing but NaN: the result is NaN")
    end
    lu.assertStrContains(said("g:max(v:col() .. v:col(), {nan = \"skip\"})"),
        "max: of 2 groups or its columns there is nothing but NaN")
    for _, quiet in ipairs{"g:mean(v)", "g:sum(v, {nan = \"skip\"})",
        "groupby(vec{1, 2}):std(vec{1, 2}, {nan = \"skip\"})"} do
        lu.assertEquals(said(quiet), "", quiet)
    end
end

function TestGroups:test_nan()
    local g = groupby(vec{1, nan, 2, 1})
    equals(g.keys, {1, 2})
    equals(g.group, {1, nan, 2, 1})
    local x = vec{1, 5, nan, 3}
    equals(g:sum(x), {4, nan})
    equals(g:sum(x, {nan = "skip"}), {4, 0})
    equals(g:mean(x, {nan = "skip"}), {2, nan})
    equals(g:max(x), {3, nan})
    equals(g:median(x), {2, nan})
    equals(g:median(vec{1, 5, nan, nan}, {nan = "skip"}), {1, nan})
    equals(g:std(x, {ddof = 0}), {1, nan})
    raises(function() g:sum(x, {nan = "drop"}) end, "expected \"skip\"")
    raises(function() g:sum(x, {ddof = 0}) end, "no option 'ddof'")
    raises(function() g:sum(vec{1, 2}) end, "keys for 4 rows")
    raises(function() g:sum(3) end, "expected a matrix")
    raises(function() g:sum(x, nil, 5) end, "sum: g:sum takes 2 arguments, not 5")
    raises(function() g:apply(x, sum, 5) end, "g:apply takes 2 arguments")
    raises(function() g:places(1, 2) end, "places: g:places takes 1 argument, not 2")
    raises(function() g:mean(x * im) end, "mean: X is complex: take real(X)")
    raises(function() histogram(x):unpack(1) end, "h:unpack takes no arguments")
    raises(function() unique(x, {counts = true}):unpack(1) end,
        "u:unpack takes no arguments")
    raises(function() return g.sums end, "there is no 'sums' of it")
end

function TestGroups:test_texts_and_several_keys()
    local g = groupby{"b", "a", "b", "c"}
    lu.assertEquals(g.keys, {"a", "b", "c"})
    equals(g:sum(vec{1, 2, 3, 4}), {2, 4, 4})
    local column = {name = "kind", codes = f64{1, 3, 3, nan},
        labels = {"x", "empty", "y"}}
    g = require "lumat.groups".by(column)
    lu.assertEquals(g.keys, {"x", "empty", "y"})
    equals(g.count, {1, 0, 2})
    equals(g:mean(vec{1, 2, 3, 4}), {1, nan, 2.5})
    equals(g:sum(vec{1, 2, 3, 4}), {1, 0, 5})
    equals(g:first(vec{1, 2, 3, 4}), {1, nan, 2})
    equals(g:median(vec{1, 2, 3, 4}), {1, nan, 2.5})
    g = groupby{vec{1, 1, 2, 2, 1}, {"x", "y", "x", "x", "x"}}
    equals(g.keys[1], {1, 1, 2})
    lu.assertEquals(g.keys[2], {"x", "y", "x"})
    equals(g:sum(vec{1, 2, 4, 8, 16}), {17, 2, 12})
    equals(groupby{vec{1, 2}}.keys[1], {1, 2})
    raises(function() groupby{vec{1, 2}, vec{1}} end, "key 2 has 1 row, the first has 2")
    raises(function() groupby{} end, "there are no keys")
    raises(function() groupby{"a", 1} end, "key 2 is 1")
    raises(function() groupby{3} end, "a vector or a list of texts")
    raises(function() groupby(ones(2, 2)) end, "vector")
end

function TestGroups:test_apply()
    local g, X = groupby(vec{2, 1, 2}), mat{{1, 10}, {2, 20}, {3, 30}}
    equals(g:apply(X, function(rows, key) return rows:sum() + key end), {23, 46})
    equals(g:apply(X, function(rows) return rows:sum(1):flatten() end),
        {{2, 20}, {4, 40}})
    lu.assertEquals(g:apply(function(places, key) return key .. ":" .. #places end),
        {"1.0:1", "2.0:2"})
    raises(function() g:apply(X, function() end) end, "gave nothing for group 1")
    raises(function() g:apply(X) end, "g:apply(X, f)")
end

function TestGroups:test_text_of_it()
    lu.assertEquals(tostring(groupby(vec{2, 1, 2})),
        "2 groups of 3 rows\n  key  count\n    1      1\n    2      2")
    local many = tostring(groupby(range(1, 20)))
    lu.assertStrContains(many, "20 groups of 20 rows")
    lu.assertStrContains(many, "and 12 groups more")
end

-- Codes, looked-up values and sorted ones; one group with nearly all rows.
function TestGroups:test_long_ones()
    local n = 150001
    for _, scale in ipairs{1, 0.5, 1e7} do
        local whole = floor(rand(n, {seed = 3, dtype = "f64"}):pow(4) * 3000)
        local x = randint(-9, 9, n, {seed = 4, dtype = "f64"})
        local g = groupby(whole * scale)
        local sums = zeros(3001, {dtype = "f64"})
        sums[g.keys / scale + 1] = g:sum(x)
        local want = bincount(whole + 1, {weights = x, length = 3001})
        lu.assertTrue(sums == want)
        lu.assertEquals(g.count:sum(), n)
        lu.assertTrue(g.keys[g.group] == whole * scale)
        local middle = g:median(x)
        for i = 1, #g.keys, 500 do
            local own = sort(x[g:places(i)])
            lu.assertEquals(middle[i], (own[(#own + 1) // 2] + own[#own // 2 + 1]) / 2)
        end
        lu.assertTrue(g:max(x) == g:max(hcat(x:col(), x:col()))[{{}, 2}])
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
