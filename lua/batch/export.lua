-- Results in files, written whole or not at all: CSV for spreadsheets, JSON
-- lines with everything a row has; and both read back.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local peaks = require "lumat.peaks"
local sources = require "lumat.sources"
local journal = require "lumat.journal"
local texts = require "lumat.texts"
local export = {}
local error, ipairs, next, pcall, tonumber, tostring, type = error, ipairs,
    next, pcall, tonumber, tostring, type
local concat, sort = table.concat, table.sort
local find, format, gsub, match, sub = string.find, string.format, string.gsub,
    string.match, string.sub
local io, math_type = io, math.type

-- --- CSV --------------------------------------------------------------------

-- RFC 4180. Text that reads as a number is quoted, so that a name stays one.
local function field(value)
    if value == nil then return "" end
    if math_type(value) == "integer" then return format("%d", value) end
    if type(value) == "number" then
        local text = format("%.15g", value)
        return tonumber(text) == value and text or format("%.17g", value)
    end
    local text = tostring(value)
    if find(text, '[",\r\n]') or find(text, "^%s") or find(text, "%s$") or
        text == "" or tonumber(text) then
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
    {"check"}, {"env", function(row) return row.env end},
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

-- What a field stands for.
local function meaning(text, quoted)
    if quoted then return text end
    if text == "" then return nil end
    if text == "true" or text == "false" then return text == "true" end
    if text == "nan" or text == "-nan" then return 0 / 0 end
    if text == "inf" or text == "-inf" then return tonumber(text .. "") or
        (text == "inf" and 1 / 0 or -1 / 0) end
    return tonumber(text) or text
end

-- A row of the fields by name; `axes` stand before the column status.
local function row_of(record, axes, extra)
    local row = {p = {}, status = record.status, median = record.seconds,
        low = record.low, high = record.high, flops = record.flops,
        bytes = record.bytes, check = record.check, env = record.env,
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

-- The rows that csv_text made a text of; of their samples only the count is
-- there.
local function read_csv(text)
    local names, _, at = read_record(text, 1)
    local places, first = {}, nil
    for i, name in ipairs(names) do
        if name == "status" and names[i + 1] == "seconds" then first = i end
        places[name] = i
    end
    if not first then error("has no columns status and seconds", 0) end
    local axes, extra, rows = {}, {}, {}
    for i, name in ipairs(names) do
        if i < first then axes[#axes + 1] = name end
        if i >= first + #fixed then extra[#extra + 1] = name end
    end
    while at <= #text do
        local fields, quoted, stop = read_record(text, at)
        if #fields ~= #names then
            error(format("record %d has %d fields, not %d", #rows + 2,
                #fields, #names), 0)
        end
        local record = {}
        for i, name in ipairs(names) do
            local value = meaning(fields[i], quoted[i])
            if record[name] == nil then record[name] = value end
        end
        rows[#rows + 1] = row_of(record, axes, extra)
        at = stop
    end
    return rows
end

-- --- JSON lines -------------------------------------------------------------

function export.jsonl_text(e, where)
    local source = sources.source("jsonl", e)
    local rows, lines = sources.ordered(source,
        sources.filtered("jsonl", source, where)), {}
    for i, row in ipairs(rows) do lines[i] = journal.encode(row, true) end
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
            rows[#rows + 1] = row
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
        local o = sources.options(name, options, {where = "table|function"})
        texts.write(name, path, text_of(e, o.where))
        return e
    end)
end

-- e:csv(path [, {where=}]) and e:jsonl(path [, {where=}]) give e.
export.csv = writer("csv", export.csv_text)
export.jsonl = writer("jsonl", export.jsonl_text)

return export
