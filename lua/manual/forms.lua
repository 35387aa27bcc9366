-- The whole manual: as text, as Markdown, and as a manual page (roff with
-- the macros of man(7)).
local manual = ...
local ipairs, pairs, type, error = ipairs, pairs, type, error
local concat, sort = table.concat, table.sort
local gsub, sub, gmatch, upper, format = string.gsub, string.sub, string.gmatch,
    string.upper, string.format

-- --- what is in it --------------------------------------------------------

local about = "lumat is a matrix calculator one talks to in Lua: a shell with " ..
    "an embedded Lua 5.4 in which matrices and vectors are created, looked " ..
    "at, computed with and saved, on a GPU or on the CPU. Without a file or " ..
    "code it prompts; with a file it runs that as a script."

local exit_codes = {
    {"0", "done"}, {"1", "an error in a script"}, {"2", "a wrong command line"},
    {"3", "no usable GPU though asked for"}, {"4", "out of memory"},
    {"130", "interrupted"}}

local order = {"scripts", "experiments", "results", "charts", "startup", "safe",
               "keys", "operators", "indexing", "frames", "formats", "random", "properties",
               "printing", "devices", "memory", "errors",
               "lua"}

-- Functions that are in no chapter.
local function others(seen)
    local names = {}
    for name in pairs(manual.help) do
        if not seen[name] then names[#names + 1] = name end
    end
    sort(names)
    return names
end

-- {{title, name, …}, …}: every function once.
function manual.chapters_of_functions()
    local list, seen = {}, {}
    for _, chapter in ipairs(manual.chapters) do
        local names = {chapter[1]}
        for i = 2, #chapter do
            for name in gmatch(chapter[i], "%S+") do
                if manual.help[name] and not seen[name] then
                    seen[name] = true
                    names[#names + 1] = name
                end
            end
        end
        list[#list + 1] = names
    end
    local rest = others(seen)
    if #rest > 0 then list[#list + 1] = {"Other functions", table.unpack(rest)} end
    return list
end

-- Everything in order, told to a form: section(title), heading(title),
-- paragraph(text), rows(list), entry(usage, text, rows).
local function tell_topic(form, topic)
    for _, part in ipairs(topic) do
        if type(part) == "string" then
            form.paragraph(part)
        elseif not part.names then
            form.rows(part)
        end
    end
end

local function tell_commands(form)
    tell_topic(form, manual.topics.commands)
    form.rows{{"?name", "help on a function, a :command or a topic; ? alone: the first things; " ..
                  "also name?"},
              {"??word", "names whose help has the word"},
              {"!command", "runs a command of the shell, which has the terminal meanwhile; " ..
                  "its exit status is told unless it is 0. In Lua: os.execute"}}
    for _, group in ipairs(manual.command_groups()) do
        local rows = {}
        for i, row in ipairs(group) do
            rows[i] = {manual.command_form(row), row[3]}
        end
        if #rows > 0 then
            form.heading(upper(sub(group.title, 1, 1)) .. sub(group.title, 2))
            form.rows(rows)
        end
    end
end

local function tell_function(form, name)
    local entry, rows = manual.help[name], {}
    local options, text = manual.options_of(name), entry.help
    for _, row in ipairs(options or {}) do
        rows[#rows + 1] = {row[1] .. " =", row[2]}
    end
    form.entry(entry.usage, text, rows,
        #entry.example > 0 and entry.example, entry.result)
end

local function tell(form)
    form.section("Description")
    form.paragraph(about)
    form.section("Options")
    form.rows(manual.option_rows())
    for _, name in ipairs(order) do
        form.section(manual.topics[name].title)
        tell_topic(form, manual.topics[name])
    end
    form.section("Commands")
    tell_commands(form)
    form.section("Functions")
    form.paragraph("Every function that takes a matrix first is also a " ..
        "method: sum(A) is A:sum(). Options are given in a table behind the " ..
        "arguments.")
    for _, chapter in ipairs(manual.chapters_of_functions()) do
        form.heading(chapter[1])
        for i = 2, #chapter do tell_function(form, chapter[i]) end
    end
    form.section("Exit status")
    form.rows(exit_codes)
end

-- Of the command line: {option, what it does}.
function manual.option_rows()
    local rows = {}
    for i, row in ipairs(manual.options) do rows[i] = {row[1], row[3]} end
    return rows
end

-- --- as text --------------------------------------------------------------

local function text_form(lines, style)
    local width = style.width
    local form = {}
    function form.section(title)
        if #lines > 0 then lines[#lines + 1] = "" end
        lines[#lines + 1] = upper(title)
    end
    function form.heading(title)
        lines[#lines + 1] = ""
        lines[#lines + 1] = "  " .. title
    end
    function form.paragraph(text) manual.paragraph(lines, text, width, 2) end
    function form.rows(rows) manual.rows(lines, rows, width, 4) end
    function form.entry(usage, text, rows, example, result)
        manual.paragraph(lines, usage, width, 4)
        manual.paragraph(lines, text, width, 8)
        manual.rows(lines, rows, width, 8)
        if example then
            manual.rows(lines, {{"example", example}, {"gives", result}}, width, 8)
        end
    end
    return form
end

-- --- as Markdown ----------------------------------------------------------

local function code(text)
    return "`" .. text .. "`"
end

local function markdown_form(lines)
    local form = {}
    local function add(text)
        lines[#lines + 1] = text
    end
    function form.section(title) add("\n## " .. title .. "\n") end
    function form.heading(title) add("\n### " .. title .. "\n") end
    function form.paragraph(text) add((gsub(text, "([<*_])", "\\%1")) .. "\n") end
    function form.rows(rows)
        for _, row in ipairs(rows) do
            add("- " .. code(row[1]) .. " " .. (gsub(row[2], "([<*_])", "\\%1")))
        end
        add("")
    end
    function form.entry(usage, text, rows, example, result)
        add("**" .. code(usage) .. "**  \n" .. gsub(text, "([<*_])", "\\%1"))
        for _, row in ipairs(rows) do
            add("- " .. code(row[1]) .. " " .. gsub(row[2], "([<*_])", "\\%1"))
        end
        if example then
            add("\nExample: " .. code(example) .. " gives " .. code(result))
        end
        add("")
    end
    return form
end

-- --- as a manual page -----------------------------------------------------

local marks = {["…"] = "\\&...", ["·"] = "\\[pc]", ["→"] = "\\[->]",
               ["↑"] = "\\[ua]", ["↓"] = "\\[da]"}

-- Text with nothing in it that roff takes for its own. Quotes, dashes and
-- carets stay the characters one types.
local function plain(text)
    text = gsub(text, "\\", "\\e")
    text = gsub(text, "[-'`^~]", {["-"] = "\\-", ["'"] = "\\(aq", ["`"] = "\\(ga",
                                  ["^"] = "\\(ha", ["~"] = "\\(ti"})
    text = gsub(text, "[\xC2-\xF4][\x80-\xBF]*", marks) -- last: names of marks have dashes
    return (gsub(text, "^([.])", "\\&%1"))
end

local function bold(text)
    return "\\fB" .. plain(text) .. "\\fP"
end

local function roff_form(lines)
    local form = {}
    local function add(...)
        for _, line in ipairs{...} do lines[#lines + 1] = line end
    end
    function form.section(title) add('.SH "' .. upper(title) .. '"') end
    function form.heading(title) add('.SS "' .. title .. '"') end
    function form.paragraph(text) add(".PP", plain(text)) end
    function form.rows(rows)
        for _, row in ipairs(rows) do add(".TP", bold(row[1]), plain(row[2])) end
    end
    function form.entry(usage, text, rows, example, result)
        add(".TP", bold(usage), plain(text))
        for _, row in ipairs(rows) do
            add(".RS", ".TP", bold(row[1]), plain(row[2]), ".RE")
        end
        if example then
            add(".RS", ".PP", bold(example), ".br", "gives " .. bold(result), ".RE")
        end
    end
    return form
end

local function start_page(lines)
    lines[1] = format('.TH LUMAT 1 "" "lumat %s" "User Commands"', manual.version)
    for _, line in ipairs{".nh", ".ad l", ".SH NAME", "lumat \\- a GPU matrix calculator in Lua",
        ".SH SYNOPSIS", ".B lumat", "[\\fIoptions\\fP] [\\fIfile.lua\\fP [\\fIarguments\\fP]]"} do
        lines[#lines + 1] = line
    end
end

local function end_page(lines)
    for _, line in ipairs{".SH SEE ALSO", ".BR lua (1),", ".BR readline (3)",
        ".PP", plain("In lumat: ? and ?name.")} do
        lines[#lines + 1] = line
    end
end

-- --- all forms ------------------------------------------------------------

-- The whole manual as "text", "markdown" or "roff", and true; for another form
-- what is wrong, and false.
function manual.whole(form, style)
    local lines = {}
    if form == "text" then
        tell(text_form(lines, manual.screen(style)))
        return manual.text(lines, style) .. "\n", true
    elseif form == "markdown" then
        lines[1] = "# lumat " .. manual.version .. ": reference"
        tell(markdown_form(lines))
        return concat(lines, "\n") .. "\n", true
    elseif form == "roff" then
        start_page(lines)
        tell(roff_form(lines))
        end_page(lines)
        return concat(lines, "\n") .. "\n", true
    end
    return "the manual is text, markdown or roff, not '" .. form .. "'", false
end
