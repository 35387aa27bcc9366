-- What can be set while lumat runs: lua/value/settings.def has the rows.
local own, checks = require "lumat.settings", require "lumat.checks"
local report = {options = {}}
local error, ipairs, next, pcall = error, ipairs, next, pcall
local tostring, type = tostring, type
local concat, format = table.concat, string.format
local gsub = string.gsub

-- --- rows -------------------------------------------------------------------

-- "3 to 17", "auto, cpu, cuda or cuda:N": what a kind stands for.
local function values_of(row)
    local text = gsub(row.kind, "integer", row.least .. " to " .. row.most)
    text = gsub(gsub(text, "device", "cuda:N"), '"', "")
    return (gsub(gsub(text, "|([^|]*)$", " or %1"), "|", ", "))
end

-- As an option of the function; of numbers what is wrong is told below.
local function option_of(row, name)
    local otherwise = tostring(row.otherwise)
    return {name, (gsub(row.kind, "integer", "value")),
        type(row.otherwise) == "string" and '"' .. otherwise .. '"' or
        otherwise, row.help .. ": " .. row.values}
end

local by_name, names = {}, {}
for i, row in ipairs(own.rows) do
    row.values = values_of(row)
    by_name[row.name], names[i] = row, row.name
    report.options[i] = option_of(row, row.name)
end
for name, other in next, own.also do
    by_name[name], names[#names + 1] = by_name[other], name
    report.options[#names] = option_of(by_name[other], name)
end
report.takes = "[{" .. concat(names, ", ") .. "}]"

-- --- settings ---------------------------------------------------------------

-- All of them or, with an error, those up to one that cannot be.
local function change(values)
    for name, value in next, values do
        if not own.set(name, value) then
            checks.fail("settings", "%s is %s, expected %s", name,
                checks.brief(value), by_name[name].values)
        end
    end
end

row{
    name = "settings",
    takes = require "lumat.settings_report".takes,
    gives = "table",
    usage = "settings([{name = value, …}])",
    group = "settings",
    help = "The settings as a table, after changing those given. Those for " ..
        "every session go into init.lua; also :set.",
    options = require "lumat.settings_report".options,
    example = "settings{digits = 5}.digits",
    result = "5",
}
function report.settings(changes)
    local before = {}
    for name in next, changes or {} do before[name] = own.get(name) end
    local all_set, message = pcall(change, changes or {})
    if not all_set then
        change(before)
        error(message, 0)
    end
    local found, lines = {}, {}
    for i, row in ipairs(own.rows) do
        local value = own.get(row.name)
        found[row.name] = value
        lines[i] = format("%-8s %-7s %s (%s)", row.name, tostring(value),
            row.help, row.values)
    end
    return checks.shown(found, concat(lines, "\n"))
end

-- "digits = 5", and behind it what it is where that is asked for; nil: there is
-- no such setting.
function report.one(name, is_asked)
    local row = by_name[name]
    return row and format("%s = %s", row.name, tostring(own.get(name))) ..
        (is_asked and format("   %s (%s)", row.help, row.values) or "")
end

return report
