-- Pictures that are written to files, by gnuplot.
local lu = require "luaunit"
local here = arg[0]:match("^.*/") or ""
local t = dofile(here .. "common.lua")
local seeing = dofile(here .. "seeing.lua")
local shows, has = seeing.shows, seeing.has

TestFiles = {}

local has_gnuplot = os.execute("command -v gnuplot >/dev/null 2>&1")

-- A new folder, which is removed with what f makes in it.
local function in_folder(f)
    local name = os.tmpname()
    os.remove(name)
    os.execute("mkdir '" .. name .. "'")
    local ok, problem = pcall(f, name .. "/")
    os.execute("rm -r '" .. name .. "'")
    if not ok then error(problem, 0) end
end

local function read(name)
    local file <close> = assert(io.open(name, "rb"))
    return file:read "a"
end

function TestFiles:test_every_picture()
    lu.skipIf(not has_gnuplot, "no gnuplot")
    in_folder(function(folder)
        local x = linspace(0, 6, 100)
        local A = x:col() .. sin(x):col()
        for _, draw in ipairs {heat, hist, spy, plot} do
            shows(draw(A, {file = folder .. "p.png"}), "wrote " .. folder .. "p.png")
            lu.assertEquals(read(folder .. "p.png"):sub(1, 8), "\137PNG\r\n\26\n")
            draw(A, folder .. "p.svg")
            has(read(folder .. "p.svg"), "<svg", "</svg>")
        end
        lu.assertNil(io.open(folder .. "p.svg.part"))
    end)
end

function TestFiles:test_names_are_only_names()
    lu.skipIf(not has_gnuplot, "no gnuplot")
    in_folder(function(folder)
        for _, name in ipairs {"it's.svg", "a b.svg", "$(touch x).svg",
                "`touch y`.svg", "|touch z.svg", "~.svg", "-.svg",
                "\"q\".svg", "@A.svg", "back\\slash.svg"} do
            plot(vec{1, 2}, folder .. name)
            has(read(folder .. name), "<svg")
        end
        for _, made in ipairs {"x", "y", "z"} do
            lu.assertNil(io.open(folder .. made))
        end
    end)
end

function TestFiles:test_refusals()
    t.raises(function() plot(vec{1, 2}, "p.gif") end,
        "plot: \"p.gif\": a picture's name ends in .png, .svg or .pdf")
    t.raises(function() heat(ones(2, 2), "png") end, "ends in .png")
    t.raises(function() heat(ones(2, 2), "a\nb.png") end, "control characters")
    t.raises(function() heat(ones(2, 2), {file = 3}) end, "file: needs a name, not 3")
    t.raises(function() spy(ones(2, 2), "/no/such/place/p.png") end,
        "spy: cannot write", "No such file")
end

function TestFiles:test_a_failure_leaves_the_old_file()
    lu.skipIf(not has_gnuplot, "no gnuplot")
    in_folder(function(folder)
        local name = folder .. "old.svg"
        plot(vec{1, 2}, name)
        local before = read(name)
        local popen = io.popen
        io.popen = function(command, mode)
            return popen("echo 'line 3: no way'; exit 1 # " .. command, mode)
        end
        local ok, message = pcall(plot, vec{2, 1}, name)
        io.popen = popen
        lu.assertIsFalse(ok)
        lu.assertStrContains(message, "gnuplot could not draw " .. name .. ": no way")
        lu.assertEquals(read(name), before)
        lu.assertNil(io.open(name .. ".part"))
    end)
end

function TestFiles:test_no_gnuplot()
    local popen = io.popen
    in_folder(function(folder)
        io.popen = function(_, mode) return popen("exit 127", mode) end
        local _, message = pcall(plot, vec{1, 2}, folder .. "p.png")
        lu.assertStrContains(message, "plot: needs gnuplot for ")
        lu.assertStrContains(message, "apt install gnuplot")
        io.popen = popen
    end)
    io.popen = popen
end

os.exit(lu.LuaUnit.run("-o", "tap"))
