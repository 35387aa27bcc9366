-- Frames: columns, indices, rows in order, what is missing, and their errors.
local lu = require "luaunit"
local t = require "common"
local raises, equals = t.raises, t.equals
local frames = require "lumat.frames"

local function trees()
    return frame{{"height", {12, 7, 0 / 0, 20}}, {"age", {40, 30, 20, 10}},
        {"species", {"oak", "elm", "oak", false}},
        {"Planted On", dates{"1980-03-01", "1990-12-31", "2000-02-29",
            "2010-07-15"}}}
end

-- What a column has, as Lua values; NaN is "NaN", what is missing false.
local function values(c)
    local list = type(c) == "userdata" and c:totable() or c:totable()
    for i, x in ipairs(list) do
        if x ~= x then list[i] = "NaN" end
    end
    return list
end

TestMaking = {}

function TestMaking:test_kinds_and_order()
    local T = trees()
    lu.assertEquals(T:names(), {"height", "age", "species", "Planted On"})
    lu.assertEquals({#T, T.rows, T.cols}, {4, 4, 4})
    lu.assertEquals(values(T.height), {12, 7, "NaN", 20})
    lu.assertEquals(values(T.species), {"oak", "elm", "oak", false})
    lu.assertEquals(values(T["Planted On"]), {"1980-03-01", "1990-12-31",
        "2000-02-29", "2010-07-15"})
    lu.assertEquals(frame{b = {1}, a = {2}, c = {3}}:names(), {"a", "b", "c"})
    lu.assertEquals(frame{flag = {true, false}}.flag.dtype, "bool")
    lu.assertEquals(frame{flag = {false, false}}.flag.dtype, "bool")
    lu.assertEquals(values(frame{a = {1, false}}.a), {1, "NaN"})
end

function TestMaking:test_of_a_matrix()
    local T = frame(mat{{1, 2}, {3, 4}}, {"x", "y"})
    equals(T.y, {2, 4})
    lu.assertEquals(mat{{1, 2}, {3, 4}}:frame{"x", "y"} == T, true)
    raises(function() frame(eye(2), {"x"}) end,
        "frame: A is 2x2, and there are 1 name")
    raises(function() frame(eye(2), {"x", "x"}) end,
        'there are two columns "x"')
end

function TestMaking:test_what_is_refused()
    raises(function() frame{a = {1, 2}, b = {1}} end,
        'frame: column "b": has 1 element, the frame 2 rows')
    raises(function() frame{a = {1, "x"}} end,
        'column "a": element 2 is "x", and those before it are numbers')
    raises(function() frame{a = {"x", 1}} end,
        'column "a": element 2 is 1, and those before it are text')
    raises(function() frame{a = 3} end,
        "the first column is a vector or a list")
    raises(function() frame{a = eye(2)} end, "is a matrix of 2x2")
    raises(function() frame{a = vec{3 * im, 1}} end, "columns are real")
    raises(function() frame{{"a", {1}}, {"a", {2}}} end, 'two columns "a"')
    raises(function() frame{{"a"}} end,
        'part 1 is a table, expected {"name", values}')
    raises(function() frame{[true] = {1}} end, "a column is named by text")
    raises(function() frame(1) end, "frame: columns is 1, expected a table")
end

-- What load makes, and what save reads.
function TestMaking:test_descriptions()
    local T = frames.make{
        {name = "n", kind = "number", values = vec{1, 2, 3}},
        {name = "s", kind = "text", codes = vec({2, 0 / 0, 1}, {dtype = "f64"}),
            labels = {"x", "y"}},
        {name = "d", kind = "date", values = vec({0, 86400, 0 / 0},
            {dtype = "f64"}), format = "%Y-%m-%d"},
        {name = "n", kind = "number", values = vec{4, 5, 6}},
        {name = "", kind = "number", values = vec{7, 8, 9}}}
    lu.assertEquals(T:names(), {"n", "s", "d", "n_2", "column5"})
    lu.assertEquals(values(T.s), {"y", false, "x"})
    lu.assertEquals(values(T.d), {"1970-01-01", "1970-01-02", false})
    local list = frames.columns(T)
    lu.assertEquals({list[2].name, list[2].kind, list[2].labels},
        {"s", "text", {"x", "y"}})
    lu.assertEquals(list[3].format, "%Y-%m-%d")
    lu.assertEquals(frames.make(list) == T, true)
end

TestColumns = {}

function TestColumns:test_setting()
    local T = trees()
    T.ratio = T.height / T.age
    lu.assertEquals(T.cols, 5)
    t.equals(T.ratio[{{1, 2}}], {12 / 40, 7 / 30})
    T.ratio = nil
    T.one = 1
    T.word = "w"
    T.yes = true
    lu.assertEquals(values(T.one), {1, 1, 1, 1})
    lu.assertEquals(values(T.word), {"w", "w", "w", "w"})
    lu.assertEquals(T.yes.dtype, "bool")
    T.age = {1, 2, 3, 4}
    lu.assertEquals(T:names(), {"height", "age", "species", "Planted On", "one",
        "word", "yes"})
    local only = frame{a = {1, 2}}
    only.a = 5
    lu.assertEquals(values(only.a), {5, 5})
    only:set("a", "x")
    lu.assertEquals(values(only.a), {"x", "x"})
    only.a = {1, 2, 3}
    lu.assertEquals(only.rows, 3)
    T.one = 123456789
    lu.assertEquals(T.one[4], 123456789)
    lu.assertEquals(frame{id = {123456789}}.id[1], 123456789)
    lu.assertEquals(T.word:map{w = 16777217}[1], 16777217)
    T["my name"] = T.species
    lu.assertEquals(values(T["my name"]), {"oak", "elm", "oak", false})
    raises(function() T.age = {1} end, 'column "age": has 1 element')
    raises(function() T.age = print end,
        "expected a vector, a list or a column")
    raises(function() T[1] = 2 end, "T[1] cannot be assigned")
    raises(function() return T[{"age", "height"}] end,
        'has rows first, not "age": columns are T:select{"age", …}')
    raises(function() T:join(T) end, 'no column or method "join": map brings')
    raises(function() T:pivot() end, "vcat puts them one below the other")
    raises(function() T:mean() end, 'method "mean": T.a:mean() is of a column')
    raises(function() T:quantile(0.5) end, "T.a:quantile() is of a column")
    raises(function() T:append(T) end, "vcat(T, U) puts frames one below")
    raises(function() return T.shape end, "#T says how many rows")
    raises(function() T:query "age > 3" end, "T[T.a:gt(1)] are rows by a mask")
    raises(function() T.species:unique() end, 'T:unique "a" is of a frame')
    raises(function() unique(T.species) end, "A is a text column, expected a " ..
        'matrix: it has T.s:eq, isin, match and map; T:unique "s"')
    raises(function() bincount(dates{"2020-01-01"}) end, "write T.date.seconds")
    raises(function() svd(T) end, "A is a frame, expected a matrix: write T.v, " ..
        "one of its columns, or T:matrix()")
    raises(function() T.nothing = nil end, 'no column "nothing"')
end

-- The only column may be replaced by one of another length.
-- A column that one gets or loses is none of another's, of which it was made.
function TestColumns:test_frames_have_names_of_their_own()
    local T = trees()
    local names = T:names()
    for _, U in ipairs{T[T.age:gt(0)], T["1:2"], T:sort "age", T:to(T.age.device),
        T:dropna(), T:fillna(0)} do
        U.one = 1
        U.age = nil
        lu.assertEquals(T:names(), names)
        lu.assertEquals(U:names(), {"height", "species", "Planted On", "one"})
    end
    lu.assertStrContains(tostring(T), "age")
end

function TestColumns:test_the_only_one()
    local T = frame{a = {1, 2}}
    T.a = {1, 2, 3}
    lu.assertEquals(T.rows, 3)
    lu.assertEquals(#frame{}, 0)
end

function TestColumns:test_unknown_names_tell_near_ones()
    local T = trees()
    raises(function() return T.hieght end,
        'no column "hieght": did you mean "height"?')
    raises(function() return T.spec end, 'did you mean "species"?')
    raises(function() return T.Age end, 'did you mean "age"?')
    raises(function() return T.xyzzy end,
        'there are height age species "Planted On"')
    raises(function() T:sort "aeg" end, 'sort: there is no column "aeg"')
    raises(function() T:select{"age", "age"} end,
        'the column "age" is named twice')
end

-- A method hides a column of its name.
function TestColumns:test_names_of_methods()
    local T = frame{a = {1, 2}}
    raises(function() T.sort = {1, 2} end,
        'sort\' is a method of frames: T:set("sort", v)')
    T:set("sort", {5, 6})
    lu.assertEquals(values(T:col "sort"), {5, 6})
    lu.assertEquals(values(T:sort("sort", {descending = true}).a), {2, 1})
    raises(function() T.sort = {7, 8} end, 'T:set("sort", v) sets the column')
    raises(function() T.sort("a") end,
        'sort: T is "a", expected a frame: write T:sort(')
    raises(function() T:sort("a", {down = true}) end, "unknown option 'down'")
end

function TestColumns:test_writes_go_to_the_vectors()
    local v = vec{1, 2, 3}
    local T = frame{a = v, s = {"x", "y", "x"}, d = dates{"2020-01-01",
        "2020-01-02", "2020-01-03"}}
    T.a[2] = 9
    lu.assertEquals(v[2], 9)
    T.s[T.a:eq(9)] = "new"
    T.s[3] = nil
    lu.assertEquals(values(T.s), {"x", "new", false})
    T.d[1] = "1999-12-31"
    lu.assertEquals(T.d[1], "1999-12-31")
    raises(function() T.s[1] = 3 end, "holds text, not 3")
end

TestIndices = {}

function TestIndices:test_rows()
    local T = trees()
    lu.assertEquals(T[2], {height = 7, age = 30, species = "elm",
        ["Planted On"] = "1990-12-31"})
    lu.assertEquals(T[-1].age, 10)
    lu.assertNil(T[4].species)
    raises(function() return T[5] end,
        "row: 5 is outside 1..4; to visit all, use")
    raises(function() return T[1.5] end, "1.5 is not a whole number")
    lu.assertEquals(values(T[T.age:gt(15)].age), {40, 30, 20})
    lu.assertEquals(values(T[vec{3, 1}].species), {"oak", "oak"})
    lu.assertEquals(values(T[vec{-1}].age), {10})
    lu.assertEquals(values(T[{{2, 3}}].age), {30, 20})
    lu.assertEquals(values(T["2:3"].age), {30, 20})
    lu.assertEquals(values(T["end"] and T["3:end"].age), {20, 10})
    lu.assertEquals(T["2"].age, 30)
    lu.assertEquals(#T[T.age:gt(100)], 0)
    raises(function() return T[vec{7}] end, "7 is outside 1..4")
    raises(function() return T[vec{1, 2}:gt(0)] end, "mask vector 2")
    raises(function() return T[T.species == "oak"] end, 'write T.a:eq("x")')
    raises(function() return T[print] end, "an index is a name, a mask")
end

function TestIndices:test_rows_and_columns()
    local T = trees()
    lu.assertEquals(T[{2, "species"}], "elm")
    lu.assertEquals(T[{2, 2}], 30)
    lu.assertEquals(T[{1, {"age", "species"}}], {age = 40, species = "oak"})
    lu.assertEquals(values(T[{{1, 2}, "age"}]), {40, 30})
    lu.assertEquals(values(T[{{}, "age"}]), {40, 30, 20, 10})
    lu.assertEquals(T[{{}, {"age", "height"}}]:names(), {"age", "height"})
    lu.assertEquals(T[{T.age:lt(25), {2, 3}}]:names(), {"age", "species"})
    lu.assertEquals(T["1:2, 2:3"]:names(), {"age", "species"})
    lu.assertEquals(T["1:2, 2:3"].rows, 2)
    lu.assertEquals(T[", 1"], T.height)
    raises(function() return T[{1, 2, 3}] end, "has two sides, not 3")
end

-- Rows by a range are the frame's own, others are copies.
function TestIndices:test_ranges_are_views()
    local T = trees()
    T[{{1, 2}}].age[1] = 99
    lu.assertEquals(T.age[1], 99)
    T[vec{2}].age[1] = 5
    lu.assertEquals(T.age[2], 30)
end

function TestIndices:test_iteration()
    local T, sum, names = trees(), 0, {}
    for i, row in T:eachrow() do
        sum = sum + i * row.age
        if i == 4 then lu.assertNil(row.species) end
    end
    lu.assertEquals(sum, 40 + 60 + 60 + 40)
    for name, c in pairs(T) do names[#names + 1] = name .. #c end
    lu.assertEquals(names, {"height4", "age4", "species4", "Planted On4"})
    local long = frame{i = range(1, 10000)}
    sum = 0
    for _, row in long:eachrow() do sum = sum + row.i end
    lu.assertEquals(sum, 50005000)
end

TestRows = {}

function TestRows:test_sort()
    local T = trees()
    lu.assertEquals(values(T:sort "age".age), {10, 20, 30, 40})
    lu.assertEquals(values(T:sort "height".height), {7, 12, 20, "NaN"})
    lu.assertEquals(values(T:sort("height", {descending = true}).height),
        {20, 12, 7, "NaN"})
    lu.assertEquals(values(T:sort "species".age), {30, 40, 20, 10})
    lu.assertEquals(values(T:sort{"species", "age"}.age), {30, 20, 40, 10})
    lu.assertEquals(values(T:sort({"species", "age"},
        {descending = {"age"}}).age), {30, 40, 20, 10})
    lu.assertEquals(values(T:sort("Planted On",
        {descending = true}).age), {10, 20, 30, 40})
    raises(function() T:sort("age", {descending = "height"}) end,
        'descending names "height", which is not sorted by')
    raises(function() T:sort{"age", descending = true} end,
        'sort: a list of names has no ["descending"]: options, where there')
    raises(function() T:select{"age", foo = 1} end, 'select: a list of names')
    raises(function() T:drop{"age", [3] = "height"} end, 'has no [3]')
    raises(function() T:value_counts{"age", descending = true} end,
        'value_counts: a list of names has no ["descending"]')
end

function TestRows:test_head_and_tail()
    local T = frame{i = range(1, 20)}
    lu.assertEquals(values(T:head().i), {1, 2, 3, 4, 5})
    lu.assertEquals(values(T:tail(2).i), {19, 20})
    lu.assertEquals(#T:head(0), 0)
    lu.assertEquals(#T:head(100), 20)
    lu.assertEquals(T:head(0):names(), {"i"})
end

-- The frame itself is none of the arguments that are told of.
function TestRows:test_methods_refuse_what_they_do_not_use()
    local T = frame{s = {"x", "y"}, d = dates{"2020-01-01", "2020-01-02"}}
    raises(function() T:head(5, 6) end,
        "head: 2 arguments are too many: write T:head([n])")
    raises(function() T:names(1) end,
        "names: 1 argument is too many: write T:names()")
    raises(function() return T.s:eq("x", "y") end,
        'eq: c:eq takes 1 argument, not "y"')
    raises(function() return T.s:isnan(1) end, "isnan: c:isnan takes no arguments")
    raises(function() return T.d:year(3) end, "year: c:year takes no arguments")
    raises(function() return T.d:lt("2020-01-02", 3) end,
        "lt: c:lt takes 1 argument, not 3")
end

function TestRows:test_columns_of_another_frame()
    local T = trees()
    lu.assertEquals(T:select{"age", "height"}:names(), {"age", "height"})
    lu.assertEquals(T:select "age":names(), {"age"})
    lu.assertEquals(T:drop{"age", "height"}:names(), {"species", "Planted On"})
    lu.assertEquals(T:rename{age = "years"}:names(),
        {"height", "years", "species", "Planted On"})
    raises(function() T:rename{age = "height"} end, 'two columns "height"')
    lu.assertEquals(#T:drop(T:names()), 0)
end

function TestRows:test_matrix()
    local T = trees()
    equals(T:matrix{"age", "height"}[{{1, 2}}], {{40, 12}, {30, 7}})
    lu.assertEquals(T:matrix().shape, {4, 2})
    T.wide = T.age:f64()
    lu.assertEquals(T:matrix().dtype, "f64")
    raises(function() T:matrix{"species"} end,
        'matrix: the column "species" is text')
end

function TestRows:test_missing()
    local T = trees()
    lu.assertEquals(values(T:dropna().age), {40, 30})
    lu.assertEquals(values(T:dropna "species".age), {40, 30, 20})
    lu.assertEquals(values(T:fillna(0).height), {12, 7, 0, 20})
    lu.assertEquals(values(T:fillna "none".species),
        {"oak", "elm", "oak", "none"})
    lu.assertEquals(values(T.species), {"oak", "elm", "oak", false})
    local filled = T:fillna{height = 1, species = "ash"}
    lu.assertEquals({filled.height[3], filled.species[4]}, {1, "ash"})
    raises(function() T:fillna{height = "x"} end, 'holds numbers, not "x"')
end

function TestRows:test_vcat()
    local T = trees()
    local U = T:select{"Planted On", "species", "age", "height"}
    U.species[1] = "ash"
    local both = vcat(T, U[vec{1}])
    lu.assertEquals(#both, 5)
    lu.assertEquals(values(both.species), {"ash", "elm", "oak", false, "ash"})
    lu.assertEquals(vcat(T) == T, true)
    raises(function() vcat(T, T:drop "age") end,
        'vcat: frame 2 has no column "age"')
    raises(function() vcat(T, eye(2)) end, "vcat")
    raises(function() vcat(frame{a = {1}}, frame{a = {"x"}}) end,
        'the column "a" is number in the first frame and text in frame 2')
end

function TestRows:test_equality()
    lu.assertTrue(trees() == trees())
    local T = trees()
    T.age[1] = 1
    lu.assertFalse(trees() == T)
    lu.assertFalse(trees() == T:drop "age")
    raises(function() return T + 1 end, "operators are for columns")
end

function TestRows:test_tables()
    local T = trees()
    local back = T:totable()
    lu.assertEquals(back.species, {"oak", "elm", "oak", false})
    lu.assertEquals(back.age, {40, 30, 20, 10})
end

TestText = {}

function TestText:test_masks()
    local s = trees().species
    equals(s:eq "oak", {true, false, true, false})
    equals(s:ne "oak", {false, true, false, true})
    equals(s:eq "nothing", {false, false, false, false})
    equals(s:isin{"elm", "ash"}, {false, true, false, false})
    equals(s:match "^o", {true, false, true, false})
    equals(s:isnan(), {false, false, false, true})
    equals(s:eq(frame{x = {"oak", "oak", "ash", "elm"}}.x),
        {true, false, false, false})
    lu.assertEquals({s[1], s[-2], s[4]}, {"oak", "oak"})
    lu.assertEquals(values(s["2:3"]), {"elm", "oak"})
    raises(function() s:eq(3) end, "compares text with text, not with 3")
    raises(function() return s:upper() end, "there is no 'upper' of it")
end

function TestText:test_map()
    local s = trees().species
    lu.assertEquals(values(s:map(string.upper)), {"OAK", "ELM", "OAK", false})
    lu.assertEquals(values(s:map{oak = 3, elm = 2}), {3, 2, 3, "NaN"})
    equals(s:map(function(x) return x == "oak" end), {true, false, true, false})
    local one = s:map(function() return "tree" end)
    lu.assertEquals(one.labels, {"tree"})
    lu.assertEquals(values(one), {"tree", "tree", "tree", false})
    lu.assertEquals(values(s:map(function(x)
        if x ~= "oak" then return x end end)), {false, "elm", false, false})
    raises(function() s:map{oak = 1} end, 'the table has nothing for "elm"')
    raises(function() s:map(function(x) return x == "oak" and 1 or "a" end) end,
        "and others became a number")
end

function TestText:test_labels()
    local s = trees().species
    lu.assertEquals(s.labels, {"oak", "elm"})
    equals(s.codes[{{1, 3}}], {1, 2, 1})
    raises(function() s.labels = {} end, "cannot be assigned")
end

TestDates = {}

function TestDates:test_reading()
    local d = dates{"2020-01-31", "2020-01-31T12:30:15.5Z",
        "1969-12-31 23:59:59", "2020-01-31 12:30+02:00", false}
    lu.assertEquals(values(d.seconds), {1580428800, 1580473815.5, -1,
        1580466600, "NaN"})
    lu.assertEquals(dates({"31.1.2020"}, "%d.%m.%Y").seconds[1], 1580428800)
    lu.assertEquals(dates({"1/31/20 1:05 PM"}, "%m/%d/%y %I:%M %p").seconds[1],
        1580428800 + 13 * 3600 + 300)
    lu.assertEquals(dates({"3 Mar 2021"}, "%d %b %Y")[1], "03 Mar 2021")
    lu.assertEquals(dates(vec{0, 3600})[2], "1970-01-01 01:00:00")
    raises(function() dates{"2021-02-29"} end,
        'dates: "2021-02-29" is no date of the form 2020-01-31')
    raises(function() dates({"x"}, "%d.%m.%Y") end,
        'is no date of the form %d.%m.%Y')
    raises(function() dates({"x"}, "%q") end, "'%q' of the format")
    raises(function() dates{1, 2} end, "element 1 is 1")
end

-- Against the C library's, day by day over centuries.
function TestDates:test_parts()
    local seconds = {}
    for i = 1, 4000 do
        seconds[i] = (i * 7919 - 16000000) * 3607 % 6e10 - 4e10
    end
    local d = dates(vec(seconds, {dtype = "f64"}))
    local parts = {year = d:year(), month = d:month(), day = d:day(),
        hour = d:hour(), min = d:minute(), sec = d:second(),
        weekday = d:weekday()}
    for name, v in pairs(parts) do parts[name] = v:totable() end
    local text = d:totable()
    for i, s in ipairs(seconds) do
        local want = os.date("!*t", math.floor(s))
        want.weekday = (want.wday + 5) % 7 + 1
        for name, list in pairs(parts) do
            lu.assertEquals(list[i], want[name], name .. " of " .. s)
        end
        lu.assertEquals(text[i]:sub(-19), string.format(
            "%04d-%02d-%02d %02d:%02d:%02d", want.year, want.month, want.day,
            want.hour, want.min, want.sec))
    end
end

function TestDates:test_floor()
    local d = dates{"2021-08-19 13:45:59", "2020-02-29 00:00:00", false}
    local function floored(unit) return values(d:floor(unit)) end
    lu.assertEquals(floored "year", {"2021", "2020", false})
    lu.assertEquals(floored "quarter", {"2021-07", "2020-01", false})
    lu.assertEquals(floored "month", {"2021-08", "2020-02", false})
    lu.assertEquals(floored "week", {"2021-08-16", "2020-02-24", false})
    lu.assertEquals(floored "day", {"2021-08-19", "2020-02-29", false})
    lu.assertEquals(floored "hour",
        {"2021-08-19 13:00", "2020-02-29 00:00", false})
    lu.assertEquals(floored "minute",
        {"2021-08-19 13:45", "2020-02-29 00:00", false})
    raises(function() d:floor "moon" end, '"moon" is no unit: there are year')
end

function TestDates:test_comparing_and_counting()
    local d = dates{"2021-08-19", "2020-02-29", false}
    equals(d:ge "2021-01-01", {true, false, false})
    equals(d:lt "2021", {false, true, false})
    equals(d:eq(d), {true, true, false})
    lu.assertEquals({d:min(), d:max()}, {"2020-02-29", "2021-08-19"})
    lu.assertEquals(values(d + 86400), {"2021-08-20", "2020-03-01", false})
    lu.assertEquals(values((d - d)[{{1, 2}}]), {0, 0})
    lu.assertEquals(values(d:text "%d %b"), {"19 Aug", "29 Feb", false})
    for _, one in ipairs{"2020-02-28", dates{"2020-02-28"}} do
        lu.assertEquals(values((d - one)[{{1, 2}}]), {538 * 86400, 86400})
        lu.assertEquals(values((one - d)[{{1, 2}}]), {-538 * 86400, -86400})
        equals(d:gt(one), {true, true, false})
    end
    lu.assertEquals((d - d[2])[1], 537 * 86400)
    lu.assertEquals(values(d - 86400), {"2021-08-18", "2020-02-28", false})
    raises(function() return d - "soon" end, '"soon" is no date of the form')
    raises(function() return d - dates{"2020-01-01", "2020-01-02"} end,
        "of 3 elements and 2: there are as many")
    raises(function() return dates{"2020-01-01"} + vec{1, 2} end,
        "A + B is of 1 date and vector 2: there are as many seconds as dates")
    raises(function() return d + d end, "is of dates and seconds")
    raises(function() d:ge(true) end, "compares dates with dates")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
