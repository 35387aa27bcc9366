-- The :commands of the prompt that are of the library; those of the terminal
-- are in repl/commands. Their rows, of both, are in repl/entry/commands.def.
--
-- What reads words is called with a table of them, as the form in its row has
-- them, and the options by their letters: of ":who -s tmp*" {"tmp*", s = true}.
-- What it gives is shown. What is followed by Lua is called with that text, and
-- gives the entry that it stands for.
local library = ...
local checks, own = require "lumat.checks", require "lumat.variables"
local amounts = require "lumat.unit_text"
local settings = require "lumat.settings_report"
local commands = {}
local error, ipairs, load, next, pcall, tonumber =
    error, ipairs, load, next, pcall, tonumber
local rawget, globals, remove = rawget, _G, table.remove
local find, format, gsub, match = string.find, string.format, string.gsub,
    string.match
local rep, sub = string.rep, string.sub
local concat = table.concat

-- Shown by the command, it needs no warning.
local save_session = require "lumat.session_save".save_session

-- A text that is shown as it is.
local function plain(text)
    return checks.shown({}, text)
end

-- --- leaving and coming back --------------------------------------------------
-- For :restart: the program goes, and starts anew with the variables.

-- Saves them in the file.
function commands.restart(path)
    return save_session(path, nil, true)
end

-- Brings them back from there, those with a name of the library's, too.
function commands.restore(path)
    local loaded = library.load_session(path)
    local count, names, left = loaded.variables, {}, {}
    for _, text in ipairs(loaded.skipped) do
        local name = match(text, "^(%S+) %(a function of lumat's%)$")
        local list = name and names or left
        list[#list + 1] = name or text
    end
    if #names > 0 then
        count = count + library.load_session(path, names).variables
    end
    local text = "restored " .. checks.plural(count, "variable")
    if #left > 0 then text = text .. "; left out: " .. concat(left, ", ") end
    return plain(text)
end

-- --- what is there ----------------------------------------------------------

function commands.who(given)
    return library.who(given[1], given.s and {sort = "size"} or nil)
end

function commands.pool()
    return plain(library.pool.info())
end

local function bytes_text(bytes)
    return amounts.bytes(bytes, "%.1f")
end

function commands.device(given)
    local name, description = library.device(given[1])
    local text = name .. "  " .. description
    if given[1] then return plain(text) end
    local known, peak = pcall(library.peak)
    if known then
        text = text .. format("\nmeasured peaks: f32 %.4g TFLOP/s, f64 %.4g " ..
            "TFLOP/s, memory %.4g GB/s", peak.f32_flops / 1e12,
            peak.f64_flops / 1e12, peak.bytes / 1e9)
    end
    for _, device in ipairs(own.devices()) do
        local is_there, memory = pcall(library.memory, device)
        if is_there then
            text = text .. format("\n%s: matrices hold %s, %s free of %s",
                device, bytes_text(memory.live), bytes_text(memory.free),
                bytes_text(memory.total))
        end
    end
    return plain(text)
end

function commands.mem(given)
    return library.mem(given[1])
end

function commands.how(given)
    return library.how(given[1], given[2])
end

-- --- what it takes ----------------------------------------------------------

function commands.trace(given)
    local word = given[1]
    if not word then return library.tracing() end
    library.tracing(word == "errors" and word or word == "on")
end

function commands.check(given)
    if not given[1] then return library.checking() end
    library.checking(given[1] == "on")
end

function commands.prof(given)
    local word, file = given[1], given[2]
    if word == "json" and not file then
        error(":prof json needs a file's name: :prof json trace.json", 0)
    elseif file and word ~= "json" or given[3] then
        error(":prof takes a file's name behind json only", 0)
    end
    return library.profile(word, file)
end

-- --- folders and files ------------------------------------------------------

function commands.cd(given)
    return plain(library.cd(given[1]))
end

function commands.pwd()
    return plain(library.pwd())
end

function commands.ls(given)
    return library.ls(given[1])
end

function commands.save(given)
    local file = remove(given, 1)
    return save_session(file, given[1] and given or nil, true)
end

function commands.load(given)
    return library.load_session(given[1])
end

function commands.log(given)
    local before = library.transcript()
    if given[1] == "off" then
        library.transcript(false)
        return plain(before and format("the log in %s has ended", before) or
            "there was no log")
    end
    local name = before
    if given[1] then
        library.transcript(given[1])
        name = library.transcript()
    end
    return plain(name and format("logging to %s until :log off", name) or
        "there is no log; :log FILE begins one")
end

function commands.set(given)
    local name, value = given[1], given[2]
    if not name then return library.settings() end
    local function one() return settings.one(name, not value) end
    if value or not one() then -- which says what there is
        library.settings{[name] = tonumber(value) or value or true}
    end
    return plain(one())
end

-- --- Lua --------------------------------------------------------------------

-- The entry that calls the library's function, whatever the user's own variable
-- of the name may be.
local function call(name, arguments)
    return format("require 'lumat'.%s(%s)", name, arguments)
end

-- The text of an expression, or of statements, as a function.
local function as_function(text)
    local form = load("return " .. text .. "\n", "=text") and
        "function() return %s\nend" or "function() %s\nend"
    return format(form, text)
end

function commands.cost(text)
    return call("cost", as_function(text))
end

-- "expr 100": a number behind what is an expression without it is of runs.
function commands.bench(text)
    local body, runs = match(text, "^(.*)[ \t](%d+)$")
    if body and load("return " .. body, "=text") then
        return call("bench", format("%s, {runs = %s}", as_function(body), runs))
    end
    return call("bench", as_function(text))
end

-- What several commands look at: without text the last result.
local function look(name, text)
    if text == "" and rawget(globals, "ans") == nil then
        error(format(":%s: there is no result yet: :%s A", name, name), 0)
    end
    return call(name, text == "" and "ans" or text)
end

for _, name in ipairs{"heat", "spy", "plot"} do
    commands[name] = function(text) return look(name, text) end
end

local function is_name(text)
    return find(text, "^[%a_][%w_]*$")
end

-- The variable's own name, whatever other names the matrix has.
function commands.inspect(text)
    return look("inspect",
        is_name(text) and format("%s, '%s'", text, text) or text)
end

-- "A 20": no expression ends so, and 20 is the number of bins.
function commands.hist(text)
    return look("hist", gsub(text, "^(.*[%w_%)%]}])[ \t]+(%d+)$", "%1, %2"))
end

-- A name stands for the variable, whatever it holds.
function commands.watch(text)
    if text == "off" then text = "false" end
    return format("require 'lumat.prompt_commands'.watched(%s)", call("watch",
        text ~= "false" and is_name(text) and format("'%s'", text) or text))
end

function commands.watched(name)
    return plain(name and format("%s is watched: a picture of it is drawn " ..
        "while an entry runs", name) or "nothing is watched")
end

-- The operands of "A * B" or "A * B, {options}" as arguments, or nil for any
-- other text: of an expression with more in it, what are the operands?
local function operands_of(text)
    local hidden = text
    for _, quoted in ipairs{'"[^"]*"', "'[^']*'", "%b()", "%b[]", "%b{}"} do
        hidden = gsub(hidden, quoted, function(part)
            return rep("_", #part)
        end)
    end
    local star, behind = match(hidden, "^[%w_.: \t]*()%*[%w_.: \t]*,?[ \t]*()")
    if star and find(text, "^[{]", behind) or behind == #text + 1 then
        return sub(text, 1, star - 1) .. "," .. sub(text, star + 1)
    end
end

-- A word is a kernel or a device, unless a variable is called so.
function commands.kernel(text)
    if find(text, "^%a[%w_-]*$") then
        return call("kernels", format(find(text, "-", 1, true) and "'%s'" or
            "%s or '%s'", text, text))
    end
    return call("kernels", operands_of(text) or text)
end

function commands.race(text)
    if not operands_of(text) and not find(text, ",", 1, true) then
        error(":race needs two matrices or vectors: :race A, B", 0)
    end
    return call("race", operands_of(text) or text)
end

for name, f in next, commands do commands[name] = checks.placed(f) end

return commands
