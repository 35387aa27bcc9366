-- Pictures that are written to files.
local lu = require "luaunit"
local t = require "common"
local seeing = require "draw.seeing"
local shows, has = seeing.shows, seeing.has

TestFiles = {}

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

function TestFiles:test_every_picture()
    in_folder(function(folder)
        local x = linspace(0, 6, 100)
        local A = x:col() .. sin(x):col()
        for _, draw in ipairs {heat, hist, spy, plot} do
            shows(draw(A, {file = folder .. "p.png"}), "wrote " .. folder .. "p.png")
            lu.assertEquals(read(folder .. "p.png"):sub(1, 8), "\137PNG\r\n\26\n")
            draw(A, folder .. "p.svg")
            has(read(folder .. "p.svg"), "<svg", "</svg>")
            draw(A, folder .. "p.pdf")
            has(read(folder .. "p.pdf"), "%PDF-1.5", "%%EOF")
        end
        lu.assertEquals(names_in(folder), "p.pdf p.png p.svg ")
    end)
end

function TestFiles:test_names_are_only_names()
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
        "plot: \"p.gif\": a picture's name ends in .svg, .png or .pdf")
    t.raises(function() heat(ones(2, 2), "png") end, "ends in .svg, .png")
    t.raises(function() heat(ones(2, 2), "a\nb.png") end, "control characters")
    t.raises(function() heat(ones(2, 2), {file = 3}) end, "heat: file is 3, expected a file's name")
    t.raises(function() spy(ones(2, 2), "/no/such/place/p.png") end,
        "spy: cannot write", "No such file")
end

-- Errors have the line of the script, whatever writes the file.
function TestFiles:test_lines_of_refusals()
    local chart = plot(vec{1, 2})
    local function tells(text, f)
        lu.assertErrorMsgMatches(".*test_picture_files%.lua:%d+: " .. text, f)
    end
    local ends = "a picture's name ends in .svg, .png or .pdf"
    tells('save: "a.csv": ' .. ends, function() save(chart, "a.csv") end)
    tells('save: "a.csv": ' .. ends, function() chart:save "a.csv" end)
    tells('plot: "a.csv": ' .. ends, function()
        plot(vec{1, 2}, {file = "a.csv"})
    end)
    tells("save: cannot write '/no/p.svg': No such file.*", function()
        save(chart, "/no/p.svg")
    end)
    tells("save: a chart takes no delimiter: .*", function()
        save(chart, "p.svg", {delimiter = ";"})
    end)
    local charts = require "lumat.charts"
    tells('me: "a.csv": ' .. ends, function()
        charts.file("me", {series = {{kind = "line", y = {3}}}}, "a.csv")
    end)
end

-- A failure leaves the file that was there, and nothing beside it.
function TestFiles:test_a_failure_leaves_the_old_file()
    in_folder(function(folder)
        local name = folder .. "old.svg"
        write(name, "old")
        t.raises(function() plot(vec{2, 1}, {xlim = {2, 1}, file = name}) end,
            "xlim is no range")
        t.raises(function() plot(vec{2, 1}, {title = 3, file = name}) end,
            "title is 3, expected a string")
        lu.assertEquals(read(name), "old")
        lu.assertEquals(names_in(folder), "old.svg ")
    end)
end

-- No place for the file is said before anything is drawn.
function TestFiles:test_nothing_is_drawn_for_no_file()
    in_folder(function(folder)
        t.raises(function() plot(vec{1, 2}, folder .. "no/p.svg") end,
            "plot: cannot write '" .. folder .. "no/p.svg': No such file")
        lu.assertEquals(names_in(folder), "")
    end)
end

-- Behind --safe, too: no other program draws.
function TestFiles:test_safe()
    in_folder(function(folder)
        local command = ("'%s' --safe='%s' --device cpu -e 'save(plot(vec{1, " ..
            "2}), \"%sp.png\")' 2>&1"):format(os.getenv "LUMAT", folder, folder)
        local pipe <close> = io.popen(command)
        lu.assertEquals(pipe:read "a", "")
        lu.assertEquals(read(folder .. "p.png"):sub(2, 4), "PNG")
    end)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
