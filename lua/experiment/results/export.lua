-- Results in files, written whole or not at all: CSV for spreadsheets, JSON
-- lines with everything a row has; and both read back.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local peaks = require "lumat.peaks"
local sources = require "lumat.sources"
local journal = require "lumat.journal"
local texts = require "lumat.texts"
local copied = checks.copied
local export = {}
local error, ipairs, next, pcall, tonumber, tostring, type = error, ipairs,
    next, pcall, tonumber, tostring, type
local concat, sort = table.concat, table.sort
local find, format, gsub, match, sub = string.find, string.format, string.gsub,
    string.match, string.sub
local huge, io, math_type = math.huge, io, math.type

-- --- CSV --------------------------------------------------------------------

-- What a field that is not quoted stands for.
local words = {["true"] = true, ["false"] = false, nan = 0 / 0,
    ["-nan"] = 0 / 0, inf = huge, ["-inf"] = -huge}
local function meaning(text)
    if text == "" then return nil end
    if words[text] ~= nil then return words[text] end
    return tonumber(text) or text
end

local function number_text(x)
    if x ~= x then return "nan" end
    if x == 0 and 1 / x < 0 then return "-0.0" end
    local text = format("%.15g", x)
    return tonumber(text) == x and text or format("%.17g", x)
end

-- RFC 4180. Text that would be read as something else is quoted, so that a name
-- stays one.
local function field(value)
    if value == nil then return "" end
    if math_type(value) == "integer" then return format("%d", value) end
    if type(value) == "number" then return number_text(value) end
    local text = tostring(value)
    if find(text, '[",\r\n]') or find(text, "^%s") or find(text, "%s$") or
        type(value) == "string" and meaning(text) ~= text then
        return '"' .. gsub(text, '"', '""') .. '"'
    end
    return text
end

-- name, what it is of a row: the columns behind the axes. Base units: seconds,
-- flops a second, bytes a second, shares of 1.
local fixed = {
    {"status", function(row) return row.status or "ok" end},
    {"seconds"}, {"low"}, {"high"}, {"samples"},
    {"flops", function(row) return row.flops end},
    {"bytes", function(row) return row.bytes end},
    {"rate"}, {"unit", function(row)
        if not columns.get(row, "rate") then return nil end
        local _, unit = columns.rate_unit(row)
        return unit
    end},
    {"share"}, {"peak", function(row) return row.peak and row.peak.name end},
    {"peak_value", peaks.value},
    {"check"}, {"held"}, {"env", function(row) return row.env end},
    {"key", function(row) return row.key end},
    {"message", function(row) return row.message end},
}

local function fixed_value(row, column)
    local name, of = column[1], column[2]
    if of then return of(row) end
    if name == "seconds" then return row.median end
    local value = columns.get(row, name)
    if name == "rate" and value then
        return value / columns.rate_unit(row)
    end
    return value
end

local function value_names(rows)
    local seen, names = {}, {}
    for _, row in ipairs(rows) do
        for name in next, row.values or {} do
            if not seen[name] then names[#names + 1] = name end
            seen[name] = true
        end
    end
    sort(names)
    return names
end

-- The text of a CSV file.
function export.csv_text(e, where)
    local source = sources.source("csv", e)
    local rows = sources.ordered(source, sources.filtered("csv", source, where))
    local extra, lines, head = value_names(rows), {}, {}
    for _, name in ipairs(source.axes) do head[#head + 1] = field(name) end
    for _, column in ipairs(fixed) do head[#head + 1] = column[1] end
    for _, name in ipairs(extra) do head[#head + 1] = field(name) end
    lines[1] = concat(head, ",")
    for _, row in ipairs(rows) do
        local line = {}
        for _, name in ipairs(source.axes) do
            line[#line + 1] = field(row.p[name])
        end
        for _, column in ipairs(fixed) do
            line[#line + 1] = field(fixed_value(row, column))
        end
        for _, name in ipairs(extra) do
            line[#line + 1] = field(row.values and row.values[name])
        end
        lines[#lines + 1] = concat(line, ",")
    end
    return concat(lines, "\n") .. "\n"
end

-- The fields of the record that begins at `at`, which of them are quoted, and
-- where the next one begins.
local function read_record(text, at)
    local fields, quoted = {}, {}
    while true do
        local value, stop
        if sub(text, at, at) == '"' then
            local close = at
            repeat
                close = find(text, '"', close + 1, true)
                if not close then error("a quoted field does not end", 0) end
                local doubled = sub(text, close + 1, close + 1) == '"'
                if doubled then close = close + 1 end
            until not doubled
            value, stop = gsub(sub(text, at + 1, close - 1), '""', '"'),
                close + 1
            quoted[#fields + 1] = true
        else
            stop = find(text, "[,\r\n]", at) or #text + 1
            value = sub(text, at, stop - 1)
        end
        fields[#fields + 1] = value
        if sub(text, stop, stop) ~= "," then
            return fields, quoted, match(text, "^\r?\n?()", stop)
        end
        at = stop + 1
    end
end

-- A row of the fields by name; `axes` stand before the column status.
local function row_of(record, axes, extra)
    local row = {p = {}, status = record.status, median = record.seconds,
        low = record.low, high = record.high, flops = record.flops,
        bytes = record.bytes, check = record.check, held = record.held,
        env = record.env,
        key = record.key, message = record.message,
        count = record.samples}
    for _, name in ipairs(axes) do row.p[name] = record[name] end
    for _, name in ipairs(extra) do
        row.values = row.values or {}
        row.values[name] = record[name]
    end
    if record.peak then
        row.peak = {name = record.peak, value = record.peak_value}
    end
    return row
end

-- The names of a file's columns parted in those of axes and, behind the fixed
-- ones, of which older files have fewer, those of more figures.
local function parted(names)
    local axes, extra, k = {}, {}, nil
    for i, name in ipairs(names) do
        if name == "status" and names[i + 1] == "seconds" then k = 0 end
        local place = k
        repeat place = place and place + 1
        until not fixed[place] or fixed[place][1] == name
        if not k then axes[#axes + 1] = name
        elseif fixed[place] then k = place
        else extra[#extra + 1] = name end
    end
    if not k then error("has no columns status and seconds", 0) end
    return axes, extra
end

-- The rows that csv_text made a text of; of their samples only the count is
-- there.
local function read_csv(text)
    local names, _, at = read_record(text, 1)
    local axes, extra = parted(names)
    local rows = {}
    while at <= #text do
        local fields, quoted, stop = read_record(text, at)
        if #fields ~= #names then
            error(format("record %d has %d fields, not %d", #rows + 2,
                #fields, #names), 0)
        end
        local record = {}
        for i, name in ipairs(names) do
            local value = quoted[i] and fields[i] or nil
            if not quoted[i] then value = meaning(fields[i]) end
            if record[name] == nil then record[name] = value end
        end
        rows[#rows + 1] = row_of(record, axes, extra)
        at = stop
    end
    return rows
end

-- --- JSON lines -------------------------------------------------------------

-- JSON has no NaN and no infinities: they are null there, and what they were
-- stands in a table of their own.
local not_finite = {nan = 0 / 0, inf = huge, ["-inf"] = -huge}

local function add_specials(list, t, part)
    for name, value in next, t do
        if type(value) == "number" and value - value ~= 0 then
            list = list or {}
            list[part] = list[part] or {}
            list[part][tostring(name)] = number_text(value)
        end
    end
    return list
end

local function restore_specials(row)
    for part, t in next, row.special or {} do
        local target = part == "row" and row or row[part]
        for name, text in next, type(target) == "table" and t or {} do
            target[name] = not_finite[text]
        end
    end
    row.special = nil
end

-- The row as it stands in a file: the first one of an environment tells what
-- that is; the others name its number.
local function to_write(source, row, told)
    local environment = source.environments and source.environments[row.env]
    local special = add_specials(nil, row, "row")
    special = add_specials(special, row.p, "p")
    special = add_specials(special, row.values or {}, "values")
    if told[row.env] then environment = nil end
    local share_of = peaks.value(row)
    local differs = row.peak and share_of ~= row.peak.value
    if not environment and not special and not differs then return row end
    if environment then told[row.env] = true end
    local more = {environment = environment, special = special}
    for name, value in next, row do more[name] = value end
    if differs then -- what its share is of, and what was measured beside it
        more.peak = copied(row.peak)
        more.peak.value, more.peak.measured = share_of, row.peak.value
    end
    return more
end

-- The row as it was; its environment goes to those of all rows.
local function as_it_was(row, rows)
    if type(row.special) == "table" then restore_specials(row) end
    if type(row.environment) == "table" and row.env then
        rows.environments = rows.environments or {}
        rows.environments[row.env], row.environment = row.environment, nil
    end
    return row
end

function export.jsonl_text(e, where)
    local source = sources.source("jsonl", e)
    local rows, lines = sources.ordered(source,
        sources.filtered("jsonl", source, where)), {}
    local told = {}
    for i, row in ipairs(rows) do
        lines[i] = journal.encode(to_write(source, row, told), true)
    end
    lines[#lines + 1] = ""
    return concat(lines, "\n")
end

local function read_jsonl(text)
    local rows, number = {}, 0
    for line in text:gmatch("([^\n]*)\n?") do
        number = number + 1
        if find(line, "%S") then
            local row, wrong = journal.decode(line)
            if wrong then error(format("line %d: %s", number, wrong), 0) end
            if type(row) ~= "table" or type(row.p) ~= "table" then
                error(format("line %d is no row of results", number), 0)
            end
            rows[#rows + 1] = as_it_was(row, rows)
        end
    end
    return rows
end

-- --- files ------------------------------------------------------------------

-- The rows of a file that csv or jsonl wrote.
function export.read(what, path)
    local file, problem = io.open(path, "rb")
    if not file then checks.fail(what, "%s", problem) end
    local text = file:read("a")
    file:close()
    local read = match(path, "%.csv$") and read_csv or read_jsonl
    local ok, rows = pcall(read, text or "")
    if not ok then checks.fail(what, "'%s' %s", path, tostring(rows)) end
    return rows
end

local function writer(name, text_of)
    return checks.placed(function(e, path, options)
        if type(path) ~= "string" then
            checks.fail(name, "needs a file's name, such as \"results.%s\"",
                name)
        end
        local o = checks.options("experiment." .. name, options)
        texts.write(name, path, text_of(e, o.where))
        return e
    end)
end

-- e:csv(path [, {where=}]) and e:jsonl(path [, {where=}]) give e.
export.csv = writer("csv", export.csv_text)
export.jsonl = writer("jsonl", export.jsonl_text)

return export
