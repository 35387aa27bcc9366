-- heat, spy, plot and watch, on the device under test.
local lu = require "luaunit"
local t = require "common"
local seeing = require "draw.seeing"
local inf, nan = t.inf, t.nan
local shows, has = seeing.shows, seeing.has

-- --- heat and spy ------------------------------------------------------------------

TestHeat = {}

function TestHeat:test_small()
    shows(heat(mat{{1, 2}, {nan, 4}}), "f32 2x2  @  16 B",
        "1     ░░░░",
        "      ░░░░",
        "2 !!!!████",
        "  !!!!████",
        "  1      2",
        "  1   ░░▒▒▓▓██ 4    ! NaN or Inf in 1 element")
    shows(heat(vec{1, 2, 3}), "f32 vector 3  @  12 B", "1     ▒▒▒▒████",
        "      ▒▒▒▒████", "  1          3", "  1   ░░▒▒▓▓██ 3")
end

function TestHeat:test_blocks()
    local A = fromfn(100, 100, function(i, j) return (i > 50) == (j > 50) and 1 or 0 end)
    has(heat(A, {width = 15, height = 5}), "means of 20x10 elements",
        "  1 █████     \n",
        "100      █████\n")
    lu.assertEquals(heat(A).low, 0)
    lu.assertEquals(heat(A).high, 1)
end

-- What the program prints with colours, for an expression on the CPU.
local function coloured(expression)
    local command = string.format("COLORTERM= '%s' --device cpu " ..
        "--color=always -p '%s'", os.getenv "LUMAT", expression)
    local pipe <close> = io.popen(command)
    return pipe:read "a"
end

function TestHeat:test_colours()
    -- blue below 0, red above it: the upper half, and what is behind it
    has(coloured "heat(mat{{-1}, {1}}, {width = 10})", "\27[38;5;61m\27[48;5;61m▀",
        "\27[38;5;124m\27[48;5;124m▀")
    -- from dark to light
    has(coloured "heat(mat{{1}, {2}}, {width = 10})", "\27[38;5;53m", "\27[38;5;220m")
    has(coloured "heat(vec{0/0})", "\27[1;37;41m!\27[0m")
    lu.assertNotStrContains(tostring(heat(mat{{-1}, {1}})), "\27")
end

function TestHeat:test_range()
    has(heat(vec{1, 2, 3}, {low = 0, high = 10}), "  0   ░░▒▒▓▓██ 10")
    t.raises(function() heat(vec{1}, {low = 2, high = 1}) end, "is no range")
end

function TestHeat:test_elongated()
    for _, shape in ipairs {{1, 100000}, {100000, 1}, {3, 5000}, {5000, 3}} do
        local text = tostring(heat(ones(shape[1], shape[2])))
        for line in text:gmatch "[^\n]+" do
            lu.assertIsTrue(utf8.len(line) <= 80, line)
        end
    end
end

function TestHeat:test_sparse_is_as_its_dense_matrix()
    local D = t.whole(90, 120, "f32", 1)
    D[D:lt(3)] = 0
    local dense = tostring(heat(D)):gsub("^[^\n]*", "")
    lu.assertEquals((tostring(heat(sparse(D))):gsub("^[^\n]*", "")), dense)
    lu.assertEquals(spy(sparse(D)).filled, spy(D).filled)
end

function TestHeat:test_spy()
    shows(spy(eye(4)), "f32 4x4  @  64 B",
        "  ┌────────┐",
        "1 │⣿⣿      │",
        "  │  ⣿⣿    │",
        "  │    ⣿⣿  │",
        "4 │      ⣿⣿│",
        "  └────────┘",
        "   1      4", "  4 not zero (25 %)")
    local A = zeros(3000, 3000)
    A[{2999, 1}], A[{1500, 1500}] = 5, nan
    lu.assertEquals(spy(A).filled, 2)
    lu.assertEquals(select(2, tostring(spy(A)):gsub("[⠁-⣿]", "")) > 0, true)
end

function TestHeat:test_refusals()
    t.raises(function() heat(ones(2, 2), {widht = 3}) end, "did you mean 'width'?")
    t.raises(function() heat(ones(2, 2), {width = 3}) end, "width: needs 10 to")
    t.raises(function() heat(zeros(0, 2)) end, "has no elements")
    local T = frame{v = {1, 2}, d = {"a", "b"}}
    t.raises(function() heat(T) end, "heat: A is a frame: draw one of its columns")
    t.raises(function() hist(T) end, "T:matrix()")
    t.raises(function() spy("x") end, 'spy: A is "x", expected a matrix')
    local advice = ": A is complex: draw real(A), abs(A) or angle(A)"
    for name, draw in pairs{hist = hist, heat = heat, spy = spy} do
        t.raises(function() draw(vec{im, 1}) end, name .. advice)
    end
    local S = sparse(eye(2)) * im
    t.raises(function() heat(S) end, "heat" .. advice)
    t.raises(function() hist(S) end, "hist" .. advice)
    lu.assertEquals(spy(S).filled, 2)
end

-- --- plot ---------------------------------------------------------------------------

TestPlot = {}

function TestPlot:test_lines()
    shows(plot(vec{1, 2, 3}, {width = 20, height = 5}),
        " 3 ┤             ⡠⠔⠊",
        "   │         ⢀⡠⠒⠉",
        " 2 ┤      ⢀⡠⠎⠁",
        "   │   ⣀⠤⠊⠁",
        " 1 ┤⡠⠔⠊",
        "   └┬───────┬──────┬",
        "    1       2      3")
end

function TestPlot:test_many_points_keep_their_extremes()
    local v = zeros(1000000)
    v[777777] = 50
    v[123456] = -50
    local p = plot(v)
    lu.assertEquals({p.low, p.high}, {-50, 50})
    has(p, " 50 ┤", "-50 ┤")
end

function TestPlot:test_forms()
    local x = linspace(0, 1, 50)
    has(plot(x, sin(x)), "┤")
    has(plot(x, x:col() .. sin(x):col()), "* column 1   + column 2")
    has(plot(ones(20, 12)), "the first 8 of 12 columns")
    has(plot(math.sin, 0, 6), "┤")
    has(plot{1, 4, 9}, "┤")
    has(plot({1, 2}, {3, 4}), "┤")
    has(plot(vec{1, nan, 3, inf, 2}), "┤")
    has(plot(ones(5)), "┤")
    has(plot(vec{1e300 * 1e10, 3}), "┤")
    has(plot(vec({-1.7e308, 1.7e308}, {dtype = "f64"})), "┤")
    has(plot(vec{1, 2, 3}:gt(1)), "┤")
    has(plot(ones(3, 3).T["1, :"]), "┤")
    has(plot(vec{0, 100}, {low = 40, high = 60}), "60 ┤", "40 ┤")
end

function TestPlot:test_refusals()
    t.raises(function() plot() end,
        "plot: y is missing, expected a matrix or a table: write plot(y")
    t.raises(function() plot(vec{1, 2}, vec{1, 2, 3}) end,
        "plot: x has 2 elements, y has 3")
    t.raises(function() plot(ones(2, 2), ones(2, 2)) end,
        "plot: x has 2 columns: it is a vector")
    t.raises(function() plot(full(3, nan)) end, "no finite point")
    t.raises(function() plot(math.sin, 1) end, "plot(f, a, b [")
    t.raises(function() plot(math.sin, 1, 0) end, "no range")
    t.raises(function() plot(function() end, 0, 1) end, "gave a nil, expected a number")
    t.raises(function() plot(sparse(eye(2))) end, "full(y)")
    t.raises(function() plot(zeros(0)) end, "has no elements")
end

-- --- watch ----------------------------------------------------------------------

TestWatch = {}

function TestWatch:test_names()
    lu.assertNil(watch())
    lu.assertEquals(watch("later"), "later")
    lu.assertEquals(watch(), "later")
    watched = ones(2, 2)
    lu.assertEquals(watch(watched), "watched")
    lu.assertEquals(watch(ones(3)), "a matrix")
    lu.assertNil(watch(false))
    lu.assertNil(watch())
    watched = nil
    t.raises(function() watch(5) end, "watch: A is 5, expected a matrix", "name or false")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
