-- Pictures that are written to files, by gnuplot.
local lu = require "luaunit"
local t = require "common"
local seeing = require "draw.seeing"
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

local function names_in(folder)
    local pipe <close> = io.popen("ls -A '" .. folder .. "' | tr '\\n' ' '")
    return pipe:read "a"
end

local function write(name, text)
    local file <close> = assert(io.open(name, "wb"))
    file:write(text)
end

-- Calls f while a script for sh stands in the place of gnuplot.
local function with_gnuplot(folder, script, f)
    local popen = io.popen
    write(folder .. "gnuplot", script)
    io.popen = function(command, mode)
        return popen("sh " .. command:gsub("^gnuplot", folder .. "gnuplot"), mode)
    end
    local ok, problem = pcall(f)
    io.popen = popen
    os.remove(folder .. "gnuplot")
    if not ok then error(problem, 0) end
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
        lu.assertEquals(names_in(folder), "p.png p.svg ")
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
    t.raises(function() heat(ones(2, 2), {file = 3}) end, "heat: file is 3, expected a file's name")
    t.raises(function() spy(ones(2, 2), "/no/such/place/p.png") end,
        "spy: cannot write", "No such file")
end

-- What gnuplot gives is written by lumat, whole or not at all.
function TestFiles:test_what_gnuplot_gives_is_the_file()
    in_folder(function(folder)
        local name = folder .. "p.svg"
        with_gnuplot(folder, "echo warned >&2; cat $1; echo '</svg>'", function()
            shows(plot(vec{1, 2}, name), "wrote " .. name)
        end)
        has(read(name), "set terminal svg", "1 1\n2 2\n")
        lu.assertEquals(names_in(folder), "p.svg ")
    end)
end

function TestFiles:test_a_failure_leaves_the_old_file()
    in_folder(function(folder)
        local name = folder .. "old.svg"
        write(name, "old")
        for script, why in pairs {
            ["echo half; echo line 3: no way >&2; exit 1"] = "no way",
            ["echo half; kill -9 $$"] = "",
            ["exit 0"] = "it gave no picture",
            ["echo '<svg>'"] = "it gave half of it",
            ["echo what >&2"] = "what"} do
            with_gnuplot(folder, script, function()
                local ok, message = pcall(plot, vec{2, 1}, name)
                lu.assertIsFalse(ok)
                lu.assertStrContains(message,
                    "plot: gnuplot could not draw " .. name .. ": " .. why)
            end)
            lu.assertEquals(read(name), "old")
            lu.assertEquals(names_in(folder), "old.svg ")
        end
    end)
end

-- No place for the file is said before anything is drawn.
function TestFiles:test_nothing_is_drawn_for_no_file()
    in_folder(function(folder)
        with_gnuplot(folder, "touch " .. folder .. "ran; echo p", function()
            t.raises(function() plot(vec{1, 2}, folder .. "no/p.svg") end,
                "plot: cannot write '" .. folder .. "no/p.svg': No such file")
        end)
        lu.assertEquals(names_in(folder), "")
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
