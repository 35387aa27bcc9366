-- The manual: what it says of functions and their options is so, its topics'
-- code runs, every form of it has everything, no line is wider than asked.
local lu = require "luaunit"
local t = dofile((arg[0]:match("^.*/") or "") .. "common.lua")

local registry = debug.getregistry()
help("settings") -- loads the manual
local manual, library = registry["lumat.manual"], require "lumat"

local function style(width)
    return {width = width, height = 24, ascii = false}
end

local function lines_of(text)
    local lines = {}
    for line in (text .. "\n"):gmatch("(.-)\n") do lines[#lines + 1] = line end
    return lines
end

-- --- options --------------------------------------------------------------

-- A call of each function that takes options, but for the options.
local A, v = mat{{1, 2}, {3, 4}}, vec{1, 2}
local calls = {
    mat = {{{1, 2}}}, vec = {{1, 2}}, zeros = {2, 2}, ones = {2, 2},
    full = {2, 2, 1}, eye = {2}, fromfn = {1, 1, function() return 1 end},
    range = {1, 2, 1}, linspace = {0, 1, 3}, logspace = {0, 1, 3},
    rand = {2, 2}, randn = {2, 2}, randint = {1, 6, 2, 2}, randperm = {3},
    sparse = {A}, matmul = {A, A}, dot = {v, v}, sort = {A, 1},
    load = {"/tmp/lumat-manual.csv"}, save = {A, "/tmp/lumat-manual.csv"},
    bench = {function() end}, race = {A, A}, verify = {A, A, A},
    heat = {A}, hist = {A}, spy = {A}, plot = {A},
}

-- What the function says of an option it does not know: "there are a b c".
local function real_options(name, arguments)
    local given = table.pack(table.unpack(arguments))
    given[#given + 1] = {qqqqqqqq = 1}
    local ok, message = pcall(library[name], table.unpack(given))
    lu.assertFalse(ok, name .. " took an unknown option")
    return message:match("there are (.*)$") or message
end

local function sorted(text)
    local words = {}
    for word in text:gmatch("%S+") do words[#words + 1] = word end
    table.sort(words)
    return table.concat(words, " ")
end

TestOptions = {}

function TestOptions:setUp()
    save(A, "/tmp/lumat-manual.csv")
end

function TestOptions:tearDown()
    os.remove("/tmp/lumat-manual.csv")
end

function TestOptions:test_those_described_are_those_taken()
    for name, arguments in pairs(calls) do
        local names = {}
        for i, row in ipairs(manual.options_of(name) or {}) do names[i] = row[1] end
        lu.assertEquals(sorted(table.concat(names, " ")),
            sorted(real_options(name, arguments)), name)
    end
end

function TestOptions:test_each_is_described()
    for name in pairs(manual.help) do
        for _, row in ipairs(manual.options_of(name) or {}) do
            lu.assertIsTrue(#row[2] > 3, name .. " does not describe " .. row[1])
        end
    end
end

-- Once, where the usage names them and the text says more.
function TestOptions:test_all_that_is_said_of_them_is_shown()
    local page = manual.explain("experiment", style(80))
    lu.assertStrContains(page:gsub("%s+", " "), "or false and why the point is left out")
    lu.assertEquals(select(2, page:gsub("\n    measure ", "")), 1)
    lu.assertEquals((manual.explain("experiment.zip", style(80))), page)
end

function TestOptions:test_what_takes_out_takes_it()
    for _, name in ipairs{"add", "sqrt", "clip", "lt"} do
        lu.assertEquals(manual.options_of(name)[1][1], "out", name)
    end
    local C = zeros(2, 2)
    add(A, A, {out = C})
    t.equals(C, {{2, 4}, {6, 8}})
end

-- --- topics ---------------------------------------------------------------

-- Runs a piece of Lua with the names that topics use.
local function run(code)
    local A, v = mat{{1, 2}, {3, 4}}, vec{1, 2}
    local names = setmetatable({A = A, B = A:clone(), v = v, w = v:clone()},
        {__index = _G})
    local chunk = load("return " .. code, "=topic", "t", names) or
        assert(load(code, "=topic", "t", names))
    return chunk()
end

TestTopics = {}

function TestTopics:test_their_code_runs()
    local count = 0
    for name, topic in pairs(manual.topics) do
        for _, part in ipairs(topic) do
            for _, row in ipairs(type(part) == "table" and part.code and part or {}) do
                for piece in (row[1] .. "  "):gmatch("(.-)  +") do
                    local ok, problem = pcall(run, piece)
                    lu.assertIsTrue(ok, name .. ": " .. piece .. ": " .. tostring(problem))
                    count = count + 1
                end
            end
        end
    end
    lu.assertIsTrue(count > 40)
end

-- "?operators", ":race" and "matmul", in topics and chapters.
local function is_there(name)
    local topic = name:match("^%?(.*)")
    if topic then return manual.topics[topic] ~= nil end
    return manual.help[name] ~= nil
end

function TestTopics:test_what_they_point_at_is_there()
    for name, topic in pairs(manual.topics) do
        for other in (topic.see or ""):gmatch("%S+") do
            lu.assertIsTrue(is_there(other), name .. " points at " .. other)
        end
    end
    for _, chapter in ipairs(manual.chapters) do
        for i = 2, #chapter do
            for name in chapter[i]:gmatch("%S+") do
                lu.assertIsTrue(is_there(name), chapter[1] .. " has " .. name)
            end
        end
    end
end

function TestTopics:test_names_other_languages_have_lead_somewhere()
    for name, here in pairs(manual.habits) do
        lu.assertIsTrue(manual.help[here] ~= nil or manual.topics[here] ~= nil,
            name .. " leads to " .. here)
    end
end

-- --- the whole ------------------------------------------------------------

TestWhole = {}

function TestWhole:test_every_function_is_in_every_form_once()
    for _, form in ipairs{"text", "markdown", "roff"} do
        local text = manual.whole(form, style(80))
        text = text:gsub("\\f[BP]", ""):gsub("\\%-", "-"):gsub("\\%((%a%a)",
            {aq = "'", ga = "`", ha = "^", ti = "~"}):gsub("%s+", " ")
        for name, entry in pairs(manual.help) do
            local usage = entry.usage:gsub("…", form == "roff" and "\\&..." or "…")
            local found = text:find(usage:gsub("%s+", " "), 1, true)
            lu.assertNotNil(found, form .. " lacks " .. usage)
        end
        for name, topic in pairs(manual.topics) do
            if name ~= "first" then
                lu.assertNotNil(text:lower():find(topic.title:lower(), 1, true), name)
            end
        end
    end
end

function TestWhole:test_roff_has_no_line_that_is_a_request_by_mistake()
    for _, line in ipairs(lines_of((manual.whole("roff", style(80))))) do
        if line:match("^[.']") then
            lu.assertNotNil(line:match("^%.%u%u?%f[^%u]") or line:match("^%.[bnra][rhdes]"),
                line)
        end
    end
end

function TestWhole:test_another_form_is_refused()
    local text, found = manual.whole("pdf", style(80))
    lu.assertFalse(found)
    lu.assertStrContains(text, "'pdf'")
end

-- --- the layout -----------------------------------------------------------

TestLayout = {}

-- Lines are longer only where one word, or what stands on the left, is.
function TestLayout:test_no_line_is_wider_than_the_screen()
    local topics = {"", ":"}
    for name in pairs(manual.help) do topics[#topics + 1] = name end
    for name in pairs(manual.topics) do topics[#topics + 1] = name end
    for _, width in ipairs{40, 60, 80, 200} do
        for _, topic in ipairs(topics) do
            for _, line in ipairs(lines_of((manual.explain(topic, style(width))))) do
                local text = line:match("^%s*(.-)$")
                lu.assertIsTrue(utf8.len(line) <= width or
                    not text:find("%s") or width < 60, width .. " " .. line)
            end
        end
    end
end

function TestLayout:test_ascii_where_the_terminal_has_no_more()
    local plain = {width = 80, height = 24, ascii = true}
    for name in pairs(manual.topics) do
        lu.assertNil((manual.explain(name, plain)):find("[\x80-\xFF]"), name)
    end
end

function TestLayout:test_the_first_page_fits_a_screen()
    lu.assertIsTrue(#lines_of((manual.explain("", style(80)))) <= 22)
end

-- --- searching ------------------------------------------------------------

TestSearch = {}

local function first_found(words)
    return manual.search(words, style(80)):match("^%s*(%S+)")
end

function TestSearch:test_names_come_before_their_mentions()
    for words, name in pairs{sum = "sum", cums = "cumsum", determinant = "det",
        identity = "eye", matmull = "matmul", ["random normal"] = "randn",
        SOLVE = "solve"} do
        lu.assertEquals(first_found(words), name, words)
    end
end

function TestSearch:test_every_word_has_to_be_found()
    lu.assertStrContains(manual.search("sum qqqqqq", style(80)), "nothing")
    lu.assertStrContains(manual.search("%b [ (", style(80)), "nothing")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
