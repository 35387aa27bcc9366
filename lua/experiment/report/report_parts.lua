-- What a report says of a run beside its points: where it was measured, what
-- failed, the script.
local library = ...
local columns = require "lumat.columns"
local identity = require "lumat.code_hash"
local sources = require "lumat.sources"
local style = require "lumat.report_style"
local escape = require("lumat.svg").escape
local section, sorted_names = style.section, style.sorted_names
local told = {}
local debug, ipairs, os, type = debug, ipairs, os, type
local concat, insert = table.concat, table.insert
local format, gmatch, gsub, match = string.format, string.gmatch, string.gsub,
    string.match

local MOST_FAILED = 200 -- that are told one by one

-- --- what there is to tell --------------------------------------------------

-- The environments of the run, by number.
local function environments_of(e)
    return e.environments and e:environments() or {}
end

-- The script that defines the experiment, and its name.
local function script_of(e)
    if type(e.script) == "table" then return e.script.text, e.script.path end
    local measure = type(e.spec) == "table" and e.spec.measure
    if not (debug and type(measure) == "function") then return nil end
    local path = match(debug.getinfo(measure, "S").source, "^@(.*)")
    local text = path and identity.script(path)
    return text, path
end

local function count(rows)
    local good, failed, seconds = 0, 0, 0
    for _, row in ipairs(rows) do
        if columns.is_good(row) then good = good + 1
        else failed = failed + 1 end
        seconds = seconds + (row.seconds or 0)
    end
    return good, failed, seconds
end

local function duration(seconds)
    if seconds < 60 then return format("%.3g s", seconds) end
    if seconds < 3600 then
        return format("%d min %02d s", seconds // 60, seconds // 1 % 60)
    end
    return format("%d h %02d min", seconds // 3600, seconds // 60 % 60)
end

-- --- parts of the page ------------------------------------------------------

-- Which run it is, where the title does not say so; how its points are.
function told.header(title, source, rows)
    local good, failed, seconds = count(rows)
    local e = source.e or {}
    local parts = {format("%d points", #rows), format("%d good", good)}
    if e.name and e.name ~= title then insert(parts, 1, escape(e.name)) end
    if (e.found or 0) > 0 and rows == source.rows then
        parts[#parts + 1] = format("%s done before this run",
            e.found == #rows and "all" or format("%d of them", e.found))
    end
    if failed > 0 then
        parts[#parts + 1] = format('<span class="f">%d failed</span>', failed)
    end
    if seconds > 0 then
        parts[#parts + 1] = "measured in " .. duration(seconds)
    end
    parts[#parts + 1] = os.date("%Y-%m-%d %H:%M")
    return format('<h1>%s</h1>\n<p class="soft">%s</p>\n', escape(title),
        concat(parts, " · "))
end

local function facts(t)
    local lines = {}
    for _, name in ipairs(sorted_names(t)) do
        local value = t[name]
        if type(value) ~= "table" then
            lines[#lines + 1] = format("<div><dt>%s</dt><dd>%s</dd></div>",
                escape(name), escape(sources.plain(value)))
        end
    end
    return '<dl class="facts">' .. concat(lines, "\n") .. "</dl>"
end

-- The environments, and which rows are of which where there are several.
function told.environment(e, rows)
    local list, used, parts = environments_of(e), {}, {}
    for _, row in ipairs(rows) do
        if row.env then used[row.env] = (used[row.env] or 0) + 1 end
    end
    for i, environment in ipairs(list) do
        if #list > 1 and used[i] then
            parts[#parts + 1] = format("<h3>Environment %d, of %d points</h3>",
                i, used[i])
        end
        parts[#parts + 1] = (used[i] or #list == 1) and facts(environment) or nil
    end
    if #parts == 0 then
        local name, description = library.device()
        parts[1] = "<p class=\"soft\">Recorded with none of the points; this " ..
            "report was written here:</p>" ..
            facts{device = name, description = description}
    end
    return section("Environment", concat(parts, "\n"))
end

-- --- failures and the script ------------------------------------------------

function told.failed(source, rows)
    local items, without = {}, 0
    for _, row in ipairs(sources.ordered(source, rows)) do
        if not columns.is_good(row) and #items < MOST_FAILED then
            items[#items + 1] = format("<li>%s, %s<br><code>%s</code></li>",
                escape(sources.describe(source.axes, row.p)),
                escape(row.status), escape(row.message or "no message"))
        elseif not columns.is_good(row) then
            without = without + 1
        end
    end
    if #items == 0 then return "" end
    if without > 0 then
        items[#items + 1] = format("<li>and %d more</li>", without)
    end
    return section("What failed", "<ul>" .. concat(items, "\n") .. "</ul>",
        "failed")
end

function told.script(e)
    local text, name = script_of(e)
    if not text or text == "" then return "" end
    local lines = {}
    for line in gmatch(gsub(text, "\n$", ""), "([^\n]*)\n?") do
        lines[#lines + 1] = "<span>" .. escape(line) .. "</span>"
    end
    if lines[#lines] == "<span></span>" then lines[#lines] = nil end
    return section("Script: " .. match(name or "script", "[^/]*$"),
        "<pre>" .. concat(lines) .. "</pre>")
end

return told
