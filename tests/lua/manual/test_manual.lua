-- The manual: what it says of functions and their options is so, its topics'
-- code runs, every form of it has everything, no line is wider than asked.
local lu = require "luaunit"
local t = require "common"

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
local name = os.tmpname()
local file = name .. ".csv"
local calls = {
    mat = {{{1, 2}}}, vec = {{1, 2}}, zeros = {2, 2}, ones = {2, 2},
    full = {2, 2, 1}, eye = {2}, fromfn = {1, 1, function() return 1 end},
    range = {1, 2, 1}, linspace = {0, 1, 3}, logspace = {0, 1, 3},
    rand = {2, 2}, randn = {2, 2}, randint = {1, 6, 2, 2}, randperm = {3},
    sparse = {A}, matmul = {A, A}, dot = {v, v}, sort = {A, 1},
    load = {file}, save = {A, file},
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
    save(A, file)
end

function TestOptions:tearDown()
    os.remove(file)
    os.remove(name)
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

-- From what calls are checked against, where the text does not name them.
function TestOptions:test_values_are_named()
    local function text_of(name, option)
        for _, row in ipairs(manual.options_of(name)) do
            if row[1] == option then return row[2] end
        end
    end
    lu.assertStrContains(text_of("degree", "direction"),
        'their sum; one of "out", "in", "both" ("out")')
    lu.assertStrContains(text_of("quantile", "method"), '"midpoint", "nearest" (')
    lu.assertNotStrContains(text_of("movmean", "ends"), "one of")
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
    local T = frame{a = {1, 2, 3}, b = {3, 2, 1}, species = {"oak", "elm", "oak"},
        when = dates{"2020-01-31", "2020-02-29", "2021-12-31"}}
    local names = setmetatable({T = T, A = A, B = A:clone(), v = v, w = v:clone(), C = A * A,
        b = v, x = 1, t = {}}, {__index = _G})
    code = code:gsub("…", "x = nil")
    local chunk = load("return " .. code, "=topic", "t", names) or
        assert(load(code, "=topic", "t", names))
    return chunk()
end

TestTopics = {}

-- Rows with Lua among what is none: what compiles runs.
function TestTopics:test_code_of_the_others_runs()
    local count = 0
    for _, name in ipairs{"first", "memory", "devices", "errors"} do
        for _, part in ipairs(manual.topics[name]) do
            for _, row in ipairs(type(part) == "table" and part or {}) do
                for piece in (row[1] .. "  "):gmatch("(.-)  +") do
                    if (load("return " .. piece) or load(piece)) and
                        not piece:find('"cuda"', 1, true) and not piece:find("^load ") and
                        not piece:find("^error") and piece:find("[%(%[=*]") then
                        local ok, problem = pcall(run, piece)
                        lu.assertIsTrue(ok, name .. ": " .. piece .. ": " .. tostring(problem))
                        count = count + 1
                    end
                end
            end
        end
    end
    lu.assertIsTrue(count > 12, count)
end

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

-- --- words of other languages ----------------------------------------------

TestWords = {}

local function is_command(name)
    for _, row in ipairs(manual.commands) do
        if row[2] and ":" .. row[1] == name then return true end
    end
end

-- A word that is a function's name by now would never be met.
function TestWords:test_each_stands_once_and_is_no_name_of_ours()
    local seen = {}
    for _, row in ipairs(manual.word_rows) do
        for word in row[1]:gmatch("[^,%s][^,]*") do
            lu.assertNil(seen[word], word .. " stands twice")
            seen[word] = true
            lu.assertEquals(word, word:lower())
            lu.assertNil(manual.help[word], word .. " is a function")
            lu.assertNil(is_command(":" .. word), word .. " is a command")
            lu.assertIsTrue(word == "first" or manual.topics[word] == nil, word)
        end
    end
end

function TestWords:test_they_lead_to_pages_that_are_there()
    for word, row in pairs(manual.words) do
        for _, page in ipairs(row.pages) do
            lu.assertIsTrue(manual.help[page] ~= nil or manual.topics[page] ~= nil or
                is_command(page), word .. " leads to " .. page)
        end
        lu.assertIsTrue(#row.pages > 0 or row.says ~= nil, word)
    end
end

function TestWords:test_what_is_to_be_written_runs()
    local A = mat({{4, 1}, {1, 3}}, {dtype = "f64"})
    local count = 0
    for _, row in ipairs(manual.word_rows) do
        if row.write and not row.write:find("^:") then
            local names = setmetatable({A = A:clone(), B = A + 1, n = 2,
                f = function(x) return x end, v = vec({1, 2, 3}, {dtype = "f64"}), w = vec{4, 5, 6},
                b = vec({1, 2}, {dtype = "f64"}), print = function() end,
                view = function() end}, {__index = _G})
            if row.write:find("bf16") then names.matmul = function() end end -- of GPUs
            if row[1]:find("broadcast") then names.v = vec{1, 2} end
            local run = assert(load("return " .. row.write, "=word", "t", names),
                row.write)
            local ok, problem = pcall(run)
            lu.assertIsTrue(ok, row.write .. ": " .. tostring(problem))
            count = count + 1
        end
    end
    lu.assertIsTrue(count > 80)
end

-- What is written instead gives what the word gives.
function TestWords:test_what_is_written_is_meant()
    local A, v = mat{{1, 2}, {0, -3}}, vec{1, 2, 3}
    for word, meant in pairs{istriu = true, istril = false, nanmean = 0, nanmax = 2,
        nanmin = -3, nansum = 0, rem = mat{{1, 2}, {0, 0}}, fmod = mat{{1, 2}, {0, 0}},
        remainder = mat{{1, 2}, {0, 0}}, prctile = vec{1.5, 2, 2.5},
        cumulative_trapezoid = vec{0, 1.5, 4}, permute = A.T,
        kurtosis = 1.5, skew = 0, invhilbert = invhilb(2), rotr90 = mat{{0, 1}, {-3, 2}},
        mink = vec{1, 2}, maxk = vec{3, 2}, bisect = vec{2, 3, 4}, lower_bound = vec{1, 2, 3},
        condest = cond(A, 1), hfft = vec{8, -2, 0, -2},
        ihfft = vec{2, -0.5 + math.sqrt(3) / 6 * -im}} do
        local env = setmetatable({A = A, v = v, w = v, n = 2}, {__index = _G})
        local got = load("return " .. manual.words[word].write, "=word", "t", env)()
        lu.assertTrue(got == meant or close(got, meant, 1e-5), word)
    end
    local minus = load("return " .. manual.words.rem.write, "=word", "t",
        setmetatable({A = mat{{-7, 7}}}, {__index = _G}))()
    lu.assertTrue(minus == mat{{-1, 1}})
    for _, word in ipairs{"ctranspose", "adjoint"} do
        lu.assertEquals(manual.words[word].write, "A.H")
    end
    for word, write in pairs{pcg = "cg(A, b)", conjugate = "conj(A)", ifftn = "ifft2(A)"} do
        lu.assertEquals(manual.words[word].write, write)
    end
end

-- The first name in an answer of the search.
local function first_of(text)
    return text:match("^%s+(%S+)") or text:match("\n  (%S+)")
end

function TestWords:test_help_and_search_know_each()
    for word, row in pairs(manual.words) do
        local page, found = manual.explain(word, style(200))
        lu.assertIsTrue(found, word)
        if row.says then lu.assertStrContains((page:gsub("%s+", " ")), row.says) end
        if word:find("^%a") and #row.pages > 0 and word ~= "first" then
            local first = first_of(manual.search(word, style(200)))
            lu.assertEquals(first:gsub("^%?", ""), row.pages[1], word)
        end
    end
end

function TestWords:test_forms_of_a_word()
    for text, name in pairs{masks = "indexing", Views = "indexing", ["np.linalg.inverse"] = "inv",
        transposes = "t", ["Nonzero"] = "find"} do
        lu.assertEquals(manual.word(text).pages[1], name, text)
    end
    lu.assertStrContains((manual.explain("np.linalg.det", style(80))), "Determinant")
    lu.assertStrContains((manual.explain("A.T", style(80))), "The transposed view")
    lu.assertStrContains((manual.search("A:sum(1)", style(80))), "sum of the elements")
    lu.assertStrContains((manual.explain("invrese", style(80))), "did you mean inverse?")
    lu.assertNil(manual.word("qqqqqq"))
end

-- What a message says of a name that is not there.
function TestWords:test_messages_use_the_same_table()
    for word, said in pairs{transpose = "did you mean A.T?", stddev = "did you mean std?",
        eigenvalues = "did you mean eig(A).values?",
        argwhere = "did you mean find(v:gt(1))?",
        einsum = "there is no einsum; products are: A * B"} do
        local run = assert(load("return " .. word .. "(1)", "=(load)"))
        local ok, message = pcall(run)
        lu.assertFalse(ok)
        lu.assertStrContains(manual.instead(word), said)
        t.raises(function() return A[word] end, "a matrix has no '" .. word .. "': " .. said)
    end
    lu.assertNil((manual.instead("views")))
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
    for words, name in pairs{sum = "sum", cums = "cumsum", ["random normal"] = "randn",
        matmull = "matmul", SOLVE = "solve", reshape = "reshape", nan = "nan:",
        ["tic toc"] = "timing"} do
        lu.assertEquals(first_found(words), name, words)
    end
end

function TestSearch:test_every_word_has_to_be_found()
    lu.assertStrContains(manual.search("sum qqqqqq", style(80)), "nothing")
    lu.assertStrContains(manual.search("%b [ (", style(80)), "nothing")
end

-- "nan" is no part of "determinant", nor near to "tan"; a result's shape,
-- which every function's out has, is no answer to shapes.
function TestSearch:test_what_is_not_meant_is_not_found()
    for words, name in pairs{nan = "det", ["nan "] = "tan", reshape = "sqrt"} do
        local text = manual.search(words, style(80)) .. "\n"
        lu.assertNil(text:find("\n  " .. name .. " "), words)
    end
end

function TestSearch:test_words_that_say_little_are_left_out()
    local text = manual.search("how do I transpose a matrix?", style(80))
    lu.assertStrContains(text, "transpose: A.T\n  t ")
    lu.assertStrContains(manual.search("how", style(80)), "made_by")
end

os.exit(lu.LuaUnit.run("-o", "tap"))
