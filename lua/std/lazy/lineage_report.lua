-- The entries that made a value: how(name) and made_by(A). What an entry read
-- is taken from its text; what it changed is known.
local library = ...
local checks = require "lumat.checks"
local functions = {}
local own = require "lumat.entries"
local amounts = require "lumat.unit_text"
local texts = require "lumat.texts"
local fail, brief = checks.fail, checks.brief
local ipairs, load, next, pairs, type =
    ipairs, load, next, pairs, type
local concat, remove = table.concat, table.remove
local byte, find, format, gsub, match, sub = string.byte, string.find,
    string.format, string.gsub, string.match, string.sub
local date, time = os.date, own.now

local MOST, MOST_TEXT = 5000, 2 ^ 21 -- entries kept, and bytes of their text

local entries, kept_text = {}, 0
local dropped = 0         -- the number of the last entry that is not kept
local identity, content   -- of every variable after the last entry
local initial = {}        -- names there were before the first
local bodies = {}         -- by name: what the functions in it may read

-- --- what a text reads ----------------------------------------------------

-- Is the name at i only written: a, b = …; local a; function a()?
local function is_target(list, is_name, i, in_braces)
    if list[i + 1] == "=" then return true end
    if in_braces > 0 then return false end
    local before = list[i - 1]
    if before == "function" then return list[i + 1] == "(" end
    if before == "local" then return true end
    while list[i + 1] == "," and is_name[i + 2] do
        i = i + 2
        if list[i + 1] == "=" then return true end
    end
    return false
end

-- The names that the text may read, as the keys of a table. What follows a
-- :command here is no Lua.
local function names_in(text)
    if find(text, "^%s*:%a") then return {} end
    local names, braces = {}, 0
    local list, is_name = own.words(text)
    for i, word in ipairs(list) do
        braces = braces + (word == "{" and 1 or word == "}" and -1 or 0)
        if is_name[i] and list[i - 1] ~= "." and list[i - 1] ~= ":" and
            not is_target(list, is_name, i, braces) then
            names[word] = true
        end
    end
    return names
end

-- With what is read by functions that are called by these names.
local function with_bodies(names)
    local all, left = {}, {}
    for name in pairs(names) do left[#left + 1] = name end
    while #left > 0 do
        local name = remove(left)
        if not all[name] then
            all[name] = true
            for other in pairs(bodies[name] or {}) do left[#left + 1] = other end
        end
    end
    return all
end

-- --- noting ---------------------------------------------------------------

-- "whole": it is another value; "part": the same one, changed.
local function changes(identities, contents)
    local writes = {}
    for name, x in pairs(contents) do
        if identity[name] ~= identities[name] then
            writes[name] = "whole"
        elseif content[name] ~= x then
            writes[name] = "part"
        end
    end
    for name in pairs(content) do
        if contents[name] == nil then writes[name] = "whole" end
    end
    return writes
end

local function forget_oldest()
    while #entries > MOST or kept_text > MOST_TEXT and #entries > 1 do
        local e = remove(entries, 1)
        kept_text, dropped = kept_text - #e.text, e.number
    end
end

local function note(e, identities, contents)
    if not identity then
        identity, content = identities, contents
        for name in pairs(contents) do initial[name] = true end
        return
    end
    e.writes = changes(identities, contents)
    for name in pairs(own.set_anew) do e.writes[name] = "whole" end
    own.set_anew = {}
    identity, content = identities, contents
    if next(e.writes) == nil and not e.seed then return end
    e.time, e.text = time(), e.text or ""
    local names = names_in(e.text)
    e.reads = with_bodies(names)
    if find(e.text, "function", 1, true) then
        for name in pairs(e.writes) do bodies[name] = names end
    end
    entries[#entries + 1] = e
    kept_text = kept_text + #e.text
    forget_oldest()
end
own.set(note)

-- --- the entries behind a value -------------------------------------------

-- Adds the names e reads, and what new matrices are made as.
local function need_reads(e, needed)
    for name in pairs(e.reads) do needed[name] = true end
    needed["(device)"], needed["(dtype)"] = true, true
end

-- The fewest entries, in order, that give `name` its value, and whether the
-- value of an expression is used further on.
local function slice(name)
    local needed, chosen = {[name] = true}, {}
    for i = #entries, 1, -1 do
        local e, useful = entries[i], false
        for written in pairs(e.writes) do
            useful = useful or needed[written] or false
        end
        if useful then
            local needs_ans = needed.ans and e.writes.ans
            for written, how in pairs(e.writes) do
                if how == "whole" then needed[written] = nil end
            end
            need_reads(e, needed)
            chosen[#chosen + 1] = {entry = e, gives_ans = needs_ans}
        end
    end
    for i = 1, #chosen // 2 do
        chosen[i], chosen[#chosen + 1 - i] = chosen[#chosen + 1 - i], chosen[i]
    end
    return chosen, needed
end

-- --- as Lua ---------------------------------------------------------------

local function compiles(text)
    return load(text, "=how", "t") ~= nil
end

-- The first word, as commands take it, of what follows one.
local function first_word(rest)
    return match(rest, '^"([^"]*)') or match(rest, "^'([^']*)") or
        match(rest, "^%S*")
end

-- What a :command did, where Lua can say it.
local command_statements = {run = "dofile(%q)", device = "device(%q)",
    load = "load_session(%q)"}

local function command_of(e)
    local command, rest = match(e.text, "^%s*:(%a+)%s*(.-)%s*$")
    for name, statement in pairs(command_statements) do
        if command and sub(name, 1, #command) == command then
            return format(statement, texts.path(first_word(rest)))
        end
    end
    return command and "-- " .. gsub(e.text, "\n", "\n-- ")
end

local MOST_ROWS = 16 -- as where entries are read

-- What stands in front of the expression that an entry is, or that its last
-- rows are, and the expression.
local function split(text)
    text = gsub(text, "[;%s]+$", "")
    local after = match(text, "^%s*=(.*)") or match(text, "^%s*return%s+(.*)")
    if after or compiles("_ = " .. text) then return "", after or text end
    local is_lua, rows = compiles(text), 0
    for i = #text, 1, -1 do
        local value = byte(text, i) == 10 and sub(text, i + 1)
        if value and (not is_lua or find(value, "^%s*[%a_]")) and
            compiles("_ = " .. value) then
            return sub(text, 1, i), value
        end
        rows = rows + (value and 1 or 0)
        if rows == MOST_ROWS then return end
    end
end

-- An entry as statements.
local function statement_of(e, gives_ans)
    local command = command_of(e)
    if command then return command end
    local text = e.text
    if not gives_ans and compiles(text .. "\nlocal _") then return text end
    local before, value = split(text)
    if value and compiles(before .. "_ = " .. value) then
        return before .. (gives_ans and "ans = " or "local _ = ") .. value
    end
    return text
end

local function ago(e)
    local s = time() - e.time
    if s < 100 then return format("%.0f s ago", s) end
    return s < 6000 and format("%.0f min ago", s / 60) or
        format("%.0f h ago", s / 3600)
end

local function took(e)
    local s = e.seconds
    if s <= 0 then return "" end
    return ", " .. amounts.seconds(s, "%.3g")
end

local function remark(e)
    local command = match(e.text, "^%s*(:%a[^\n]-)%s*$")
    return format("-- %sentry %d, %s%s%s", command and command .. ", " or "",
        e.number, ago(e), took(e), e.ok and "" or ", ended in an error")
end

-- Where the random numbers stand, unless they stand there already.
local function seed_line(e, state)
    if not e.seed then return nil end
    local stands = state.seed == e.seed and state.drawn == e.drawn
    state.seed, state.drawn = e.new_seed, e.new_drawn
    return not stands and format(e.drawn > 0 and "seed(%d, %d)" or "seed(%d)",
        e.seed, e.drawn) or nil
end

-- One that ended in an error goes as far again.
local function add_entry(lines, e, gives_ans)
    local text = statement_of(e, gives_ans)
    if not e.ok then
        text = "pcall(function()\n" .. text .. "\nend)"
    end
    if find(text, "\n", 1, true) then
        lines[#lines + 1] = remark(e)
        lines[#lines + 1] = text
    else
        lines[#lines + 1] = format("%-39s %s", text, remark(e))
    end
end

-- Names that no entry set although the ones before the first did.
local function missing_names(needed)
    local names = {}
    for name in pairs(needed) do
        if initial[name] and sub(name, 1, 1) ~= "(" then
            names[#names + 1] = name
        end
    end
    table.sort(names)
    return names
end

local function script_of(name)
    local chosen, needed = slice(name)
    local lines, state = {}, {seed = 0, drawn = 0}
    if #chosen == 0 and not initial[name] then return lines, chosen end
    local before = missing_names(needed)
    if #before > 0 then
        lines[1] = "-- there before the first entry: " .. concat(before, ", ")
    end
    if dropped > 0 then
        lines[#lines + 1] = format("-- entries up to %d are no longer known",
            dropped)
    end
    for _, c in ipairs(chosen) do
        lines[#lines + 1] = seed_line(c.entry, state)
        add_entry(lines, c.entry, c.gives_ans)
    end
    return lines, chosen
end

local function write(file, name, lines)
    texts.write("how", file, concat {"-- ", name,
        ", as a lumat session made it on ", date("%Y-%m-%d %H:%M"), "\n",
        concat(lines, "\n"), "\n"})
end

-- The name of a variable, or of the one that holds the value.
local function name_of(what)
    if type(what) == "string" then
        if not find(what, "^[%a_][%w_]*$") then
            fail("how", "%s is no variable's name", brief(what))
        end
        return what
    end
    local name = what ~= nil and own.find(what)
    return name or fail("how", "no variable holds %s: how(\"C\") takes a name",
        brief(what))
end

row{
    name = "how",
    takes = "name: value [, file: path]",
    gives = "table",
    group = "lineage",
    help = "The entries of this session that made the variable what it is, the " ..
        "fewest, as Lua that makes it again; with a file, written there. A " ..
        "list of {number, text, seconds}. Also :how.",
    example = "#how(\"C\")",
    result = "0",
}
function functions.how(what, file)
    local name = name_of(what)
    file = texts.path(file)
    local lines, chosen = script_of(name)
    local list = {}
    for i, c in ipairs(chosen) do
        local e = c.entry
        list[i] = {number = e.number, text = e.text, seconds = e.seconds}
    end
    if #lines == 0 then
        return checks.shown(list, "no entry made " .. name ..
            (dropped > 0 and format("; those up to %d are no longer known",
                dropped) or ""))
    elseif file == nil then
        return checks.shown(list, concat(lines, "\n"))
    end
    write(file, name, lines)
    return checks.shown(list, format("%s in %s",
        checks.plural(#lines, "line"), file))
end

-- The entry of that epoch.
local function entry_of(epoch)
    for i = #entries, 1, -1 do
        if entries[i].epoch == epoch then return entries[i] end
    end
end

local function described(e)
    local text = match(e.text, "^[^\n]*")
    if #text < #e.text or #text > 60 then
        text = gsub(sub(text, 1, 60), "[\xc0-\xff]?[\x80-\xbf]*$", "") .. " …"
    end
    return format("%s  entry %d, %s%s", text, e.number, ago(e), took(e))
end

row{
    name = "made_by", method = true,
    takes = "A: matrix|sparse",
    gives = "string, string",
    group = "lineage",
    help = "The entry at the prompt that made A, its number, when and how long " ..
        "it took; then the entry that changed A last, if another one did. " ..
        "nil where none is known.",
    example = "made_by(eye(2))",
    result = "nil",
}
function functions.made_by(A)
    local made, changed = own.epochs(A)
    made, changed = entry_of(made), entry_of(changed)
    if changed and made and changed ~= made then
        return described(made), described(changed)
    end
    return made and described(made)
end

-- Which entry that was, for :who.
function functions.entry_number(A)
    local made = entry_of((own.epochs(A)))
    return made and made.number
end

return functions
