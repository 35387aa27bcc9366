-- The help: on a function, a command, a topic, or the first things to know.
--
-- `manual` is what the files of this folder share. They find in it: help (name
-- -> row) and methods of the library; commands and options of the terminal,
-- lists of {name, form, what it does}, headings without a form; version; and
-- options_of(name), a list of {name, text, is_common =} or nil. They add what
-- the others use of theirs, and what help.c calls: explain, instead and whole
-- give a text and whether it is an answer, search a text. A style is {width,
-- height, ascii}, in columns and rows.
local manual = ...
local lua = _ENV -- the globals as they were at the start
local ipairs, pairs, type = ipairs, pairs, type
local concat, sort = table.concat, table.sort
local find, match, gsub, sub = string.find, string.match, string.gsub, string.sub
local format, gmatch, lower = string.format, string.gmatch, string.lower

-- --- a function -----------------------------------------------------------

local function command_named(name)
    for _, row in ipairs(manual.commands) do
        if row[1] == name and row[2] then return row end
    end
end

local function command_form(row)
    return ":" .. row[1] .. (row[2] ~= "" and " " .. row[2] or "")
end
manual.command_form = command_form

-- "also A:sum(…)", or nothing.
local function other_form(name, usage)
    if manual.methods[name] and not find(usage, ":", 1, true) then
        return format("also A:%s(…)", name)
    end
end

function manual.see_also(name)
    local see = manual.see or manual.index_chapters()
    manual.see = see
    local names = {}
    if command_named(name) then names[1] = ":" .. name end
    for _, other in ipairs(see[name] or {}) do
        if manual.help[other] and #names < 8 then names[#names + 1] = other end
    end
    return names
end

-- The rows of the help on what name has: {usage, what it does}, in order.
function manual.member_rows(name)
    local list, rows = {}, {}
    for _, entry in pairs(manual.help[name].members or {}) do
        list[#list + 1] = entry
    end
    sort(list, function(a, b) return a.order < b.order end)
    for i, entry in ipairs(list) do rows[i] = {entry.usage, entry.help} end
    return rows
end

local function add_heading(lines, usage, also, width)
    local line = usage .. (also and "      " .. also or "")
    if manual.columns(line) <= width then
        lines[#lines + 1] = line
    else
        manual.paragraph(lines, usage, width, 0)
        if also then manual.paragraph(lines, also, width, 2) end
    end
end

local function add_function(lines, name, style)
    local entry = manual.help[name]
    local options, text = manual.options_of(name), entry.help
    local rows = {}
    if #lines > 0 then lines[#lines + 1] = "" end
    add_heading(lines, entry.usage, other_form(name, entry.usage), style.width)
    manual.paragraph(lines, text, style.width, 2)
    if options then
        lines[#lines + 1] = "  options, in a table such as {" .. options[1][1] .. " = …}"
        manual.rows(lines, options, style.width, 4)
    end
    if #entry.example > 0 then
        rows = {{"example", entry.example}, {"gives", entry.result}}
    end
    local see = manual.see_also(name)
    if #see > 0 then rows[#rows + 1] = {"see also", concat(see, " ")} end
    manual.rows(lines, rows, style.width, 2, 8)
end

-- frame.sort: of a member that is a method.
local function add_method(lines, name, style)
    local owner, member = match(name, "^(%a+)%.([%a_][%w_]*)$")
    local members = owner and manual.help[owner] and manual.help[owner].members
    local entry = members and members[member]
    if not entry or not find(entry.usage, ":", 1, true) then return end
    add_heading(lines, entry.usage, nil, style.width)
    manual.paragraph(lines, entry.help, style.width, 2)
    local options = manual.options_of(name)
    if options then
        lines[#lines + 1] = "  options, in a table such as {" .. options[1][1] .. " = …}"
        manual.rows(lines, options, style.width, 4)
    end
end

-- --- a command ------------------------------------------------------------

-- The command of that name, or the only one whose name begins so.
local function find_command(name)
    local found, count = command_named(name), 0
    if found then return found end
    for _, row in ipairs(manual.commands) do
        if row[2] and sub(row[1], 1, #name) == name then
            found, count = row, count + 1
        end
    end
    return count == 1 and found or nil
end

-- The function that does the same: the one whose text says "Also :name".
local function twin_of(command)
    local twin
    for name, entry in pairs(manual.help) do
        if find(entry.help, ":" .. command .. "%f[%W]") and
            (not twin or name == command or
                twin ~= command and name < twin) then
            twin = name
        end
    end
    return twin
end

local function add_command(lines, row, style)
    manual.rows(lines, {{command_form(row), row[3]}}, style.width, 0)
    local twin = twin_of(row[1])
    if twin then add_function(lines, twin, style) end
end

-- Titles and the commands under them: {title = , row…}.
function manual.command_groups()
    local groups = {}
    for _, row in ipairs(manual.commands) do
        if not row[2] then
            groups[#groups + 1] = {title = row[1]}
        else
            if #groups == 0 then groups[1] = {title = "commands"} end
            local group = groups[#groups]
            group[#group + 1] = row
        end
    end
    return groups
end

local first_rows = {{"?name", "help on it; ? alone: the first things"},
                    {"??word", "names whose help has the word"},
                    {"!command", "runs it in a shell"}}

-- Every command with what it does.
local function add_all_commands(lines, style)
    manual.rows(lines, first_rows, style.width, 2, 20)
    for _, group in ipairs(manual.command_groups()) do
        local rows = {}
        for i, row in ipairs(group) do rows[i] = {command_form(row), row[3]} end
        if #rows > 0 then
            lines[#lines + 1] = group.title
            manual.rows(lines, rows, style.width, 2, 20)
        end
    end
end

-- The names alone, a line or two a group: for a screen on which they would
-- not fit with what they do.
local function add_command_names(lines, style)
    local rows = {{"?name  ??word", "help, search; ? alone: the first things"},
                  {"!command", "runs it in a shell"}}
    for _, group in ipairs(manual.command_groups()) do
        local names = {}
        for i, row in ipairs(group) do names[i] = ":" .. row[1] end
        if #names > 0 then
            rows[#rows + 1] = {group.title, concat(names, "  ")}
        end
    end
    manual.rows(lines, rows, style.width, 2)
    manual.paragraph(lines, ":help :name says what one does, ?commands what " ..
        "all of them do.", style.width, 2)
end

local last_line = "A command's name may be cut short while it is the only such one."

local function add_commands(lines, style)
    add_all_commands(lines, style)
    if #lines + 3 > style.height then
        for i = #lines, 1, -1 do lines[i] = nil end
        add_command_names(lines, style)
    end
    manual.paragraph(lines, last_line, style.width, 2)
end

-- --- a topic --------------------------------------------------------------

local function add_parts(lines, parts, style, indent)
    for _, part in ipairs(parts) do
        if type(part) == "string" then
            manual.paragraph(lines, part, style.width, indent)
        elseif part.names then
            add_all_commands(lines, style)
        else
            manual.rows(lines, part, style.width, indent + 2)
        end
    end
end

local function add_topic(lines, name, style)
    local topic = manual.topics[name]
    if #lines > 0 then lines[#lines + 1] = "" end
    lines[#lines + 1] = topic.title
    add_parts(lines, topic, style, 2)
    if topic.see then
        manual.rows(lines, {{"see also", topic.see}}, style.width, 2)
    end
end

-- All the words of a topic, for the search.
function manual.topic_words(topic)
    local words = {}
    for _, part in ipairs(topic) do
        if type(part) == "string" then
            words[#words + 1] = part
        else
            for _, row in ipairs(part) do words[#words + 1] = concat(row, " ") end
        end
    end
    return concat(words, " ")
end

local function topic_list()
    local names = {}
    for name in pairs(manual.topics) do
        if name ~= "first" then names[#names + 1] = "?" .. name end
    end
    sort(names)
    return concat(names, " ")
end

-- What one needs first, on one screen.
local function first_page(style)
    local lines = {}
    manual.rows(lines, manual.topics.first[1], style.width, 0)
    manual.rows(lines, {{"topics", topic_list()}}, style.width, 0,
        manual.columns("?matmul   ??inverse"))
    return manual.text(lines, style)
end

-- --- whatever is asked for ------------------------------------------------

local function explain(topic, style)
    local lines = {}
    if manual.help[topic] then add_function(lines, topic, style) end
    add_method(lines, topic, style)
    if manual.topics[topic] and topic ~= "first" then
        add_topic(lines, topic, style)
    end
    local command = sub(topic, 1, 1) == ":" and find_command(sub(topic, 2)) or
        #lines == 0 and command_named(topic)
    if command then add_command(lines, command, style) end
    return #lines > 0 and manual.text(lines, style)
end

-- "string.rep", "print": names that Lua brings.
local function is_of_lua(topic)
    local root, field = match(topic, "^(%a+)%.(%w+)$")
    local value = lua[root or topic]
    if root then return type(value) == "table" and value[field] ~= nil end
    return value ~= nil and type(value) ~= "userdata" -- im is ours
end

local function unknown(topic)
    local near = manual.nearest(topic)
    if #near == 0 then
        return format("no '%s' here: ??%s searches the help", topic,
            (gsub(topic, "^[:?]", "")))
    end
    return format("no '%s' here: did you mean %s?", topic, concat(near, " or "))
end

local function told(text, style)
    local lines = {}
    manual.paragraph(lines, text, style.width, 0)
    return manual.text(lines, style)
end

-- "matmul ?indexing :who", as they are asked for.
local function as_asked(pages)
    local names = {}
    for i, page in ipairs(pages) do
        names[i] = (manual.help[page] or sub(page, 1, 1) == ":") and page or "?" .. page
    end
    return concat(names, " ")
end

-- On a word of other languages: what to write and the page it leads to; or
-- the sentence it has, and what there is.
local function explain_word(word, style)
    local row = manual.word(word)
    if not row then return nil end
    local page, said, lines = row.pages[1], manual.said(row), {}
    if page == "first" then return first_page(style) end
    if said then manual.paragraph(lines, word .. ": " .. said, style.width, 0) end
    if row.says and page then
        manual.rows(lines, {{"see also", as_asked(row.pages)}}, style.width, 2)
    end
    local text = not row.says and explain(page, style)
    return (said and manual.text(lines, style) or "") ..
        (said and text and "\n" or "") .. (text or "")
end

-- The name in "A:sum(1)", "sum(A)" and "A.T".
function manual.name_in(topic)
    return match(topic, "^A?[.:]?([%a_][%w_]*)%(.*%)$") or
        match(topic, "^A[.:]([%a_][%w_]*)$") or topic
end

-- The help on a topic, and whether there is any. value: one line on the
-- user's variable of that name.
function manual.explain(topic, style, value)
    style = manual.screen(style)
    topic = match(topic or "", "^%s*(.-)%s*$")
    if topic == "" then return first_page(style), true end
    if topic == ":" then
        local lines = {}
        add_commands(lines, style)
        return manual.text(lines, style), true
    end
    local name = manual.name_in(topic)
    local text = explain(name, style)
    if text then return text, true end
    if value then
        return format("%s = %s\n  a variable of yours: it is looked at with " ..
            "its name alone, :who lists all", topic, value), true
    end
    local root = match(topic, "^(%a+)%.%a[%w_]*$") -- experiment.zip
    text = root and manual.help[root] and explain(root, style)
    if text then return text, true end
    if is_of_lua(topic) then
        return told(topic .. " is of Lua's own library: " ..
            "www.lua.org/manual/5.4 describes it, ?lua has the gist", style), true
    end
    local last = match(name, "%.([%a_][%w_]*)$") -- np.where
    text = explain_word(name, style) or explain(lower(last or name), style)
    return text or told(unknown(topic), style), text and true or false
end
