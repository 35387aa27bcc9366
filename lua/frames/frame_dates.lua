-- Dates: seconds since 1970 began, UTC, with the format they are shown in; and
-- texts as dates.
local library = ...
local checks = require "lumat.checks"
local calendar = require "lumat.calendar"
local columns = require "lumat.frame_columns"
local fail, brief, is_matrix = checks.fail, checks.brief, checks.is_matrix
local date_of, days_of = calendar.date_of, calendar.days_of
local state = columns.state
local dates = {}
local ipairs, tonumber, type = ipairs, tonumber, type
local concat = table.concat
local find, format, gsub, lower, match, sub = string.find, string.format,
    string.gsub, string.lower, string.match, string.sub
local floor = math.floor

local NAN = 0 / 0
local DAY, HOUR, MINUTE = 86400, 3600, 60

local months = {"January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December"}
local weekdays = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday",
    "Saturday", "Sunday"}

local function is_leap(year)
    return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
end

local lengths = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

local function length_of(year, month)
    return month == 2 and is_leap(year) and 29 or lengths[month]
end

-- --- from text ---------------------------------------------------------------

-- By letter of a format: the pattern of what stands for it, and what that is
-- to a date; its value, or nil where it is none.
local function number_within(low, high)
    return function(text)
        local x = tonumber(text)
        return x >= low and x <= high and x or nil
    end
end

local function place_in(names)
    return function(text)
        local small = lower(text)
        for i, name in ipairs(names) do
            if small == lower(name) or small == lower(sub(name, 1, 3)) then
                return i
            end
        end
    end
end

local parts = {
    Y = {"([+-]?%d%d%d%d+)", "year", tonumber},
    y = {"(%d%d)", "year", function(text)
        local x = tonumber(text)
        return x + (x < 69 and 2000 or 1900)
    end},
    m = {"(%d%d?)", "month", number_within(1, 12)},
    d = {"(%d%d?)", "day", number_within(1, 31)},
    H = {"(%d%d?)", "hour", number_within(0, 23)},
    I = {"(%d%d?)", "hour12", number_within(1, 12)},
    M = {"(%d%d?)", "minute", number_within(0, 59)},
    S = {"(%d%d?%.?%d*)", "second", number_within(0, 60)},
    p = {"([AaPp][Mm])", "half", function(text)
        return lower(text) == "pm" and 12 or 0
    end},
    b = {"(%a+)", "month", place_in(months)},
    B = {"(%a+)", "month", place_in(months)},
    a = {"(%a+)", "weekday", place_in(weekdays)},
    A = {"(%a+)", "weekday", place_in(weekdays)},
    z = {"([Zz+-][%d:]*)", "offset", function(text)
        if lower(text) == "z" then return 0 end
        local sign, hours, minutes = match(text, "^([+-])(%d%d):?(%d?%d?)$")
        if not sign then return nil end
        local s = tonumber(hours) * HOUR + (tonumber(minutes) or 0) * MINUTE
        return sign == "-" and -s or s
    end},
}
parts.e = parts.d

local known = "%Y %y %m %b %B %d %H %I %p %M %S %a %A %z"

-- A reader of a format: a pattern, and what its captures are.
local readers = {}
local function reader_of(shape)
    if readers[shape] then return readers[shape] end
    local pattern, fields, i = {"^"}, {}, 1
    local full = gsub(gsub(gsub(shape, "%%F", "%%Y-%%m-%%d"), "%%T",
        "%%H:%%M:%%S"), "%%R", "%%H:%%M")
    while i <= #full do
        local c = sub(full, i, i)
        local part = c == "%" and parts[sub(full, i + 1, i + 1)]
        if part then
            pattern[#pattern + 1], fields[#fields + 1] = part[1], part
            i = i + 2
        elseif c == "%" and sub(full, i + 1, i + 1) ~= "%" then
            fail("dates", "'%s' of the format %q is unknown: there are %s",
                sub(full, i, i + 1), shape, known)
        else
            if c == "%" then i = i + 1 end
            pattern[#pattern + 1] = find(c, "%w") and c or "%" .. c
            i = i + 1
        end
    end
    pattern[#pattern + 1] = "$"
    readers[shape] = {concat(pattern), fields}
    return readers[shape]
end

-- The seconds of a date's parts, or nil where there is no such date.
local function seconds_of(p)
    local year, month, day = p.year or 1970, p.month or 1, p.day or 1
    if day > length_of(year, month) then return nil end
    local hour = p.hour or (p.hour12 or 0) % 12 + (p.half or 0)
    return days_of(year, month, day) * DAY + hour * HOUR +
        (p.minute or 0) * MINUTE + (p.second or 0) - (p.offset or 0)
end

local function read_as(text, shape)
    local reader = reader_of(shape)
    local captures = {match(text, reader[1])}
    if captures[1] == nil then return nil end
    local p = {}
    for i, field in ipairs(reader[2]) do
        local x = field[3](captures[i])
        if x == nil then return nil end
        p[field[2]] = x
    end
    return seconds_of(p)
end

-- ISO 8601, as far as calendars go: 2020-01-31, 2020-01-31 12:30, with seconds
-- and a zone, with T between; 2020-01 is its first day. Returns seconds and
-- how much of a time is there.
local function read_iso(text)
    local year, month, rest = match(text, "^(%d%d%d%d)%-(%d%d)(.*)$")
    if not year then return nil end
    local p = {year = tonumber(year), month = tonumber(month)}
    if p.month < 1 or p.month > 12 then return nil end
    if rest == "" then return seconds_of(p), "%Y-%m" end
    local day, behind = match(rest, "^%-(%d%d)(.*)$")
    p.day = tonumber(day)
    if not day or p.day < 1 then return nil end
    if behind == "" then return seconds_of(p), "%Y-%m-%d" end
    local hour, minute, after = match(behind, "^[T ](%d%d):(%d%d)(.*)$")
    if not hour then return nil end
    p.hour, p.minute = tonumber(hour), tonumber(minute)
    local second, zone = match(after, "^:(%d%d%.?%d*)(.*)$")
    p.second = tonumber(second)
    zone = match(zone or after, "^ ?(.*)$")
    if zone ~= "" then p.offset = parts.z[3](zone) end
    if p.hour > 23 or p.minute > 59 or (p.second or 0) >= 61 or
        zone ~= "" and not p.offset then return nil end
    return seconds_of(p), second and "%Y-%m-%d %H:%M:%S" or "%Y-%m-%d %H:%M"
end

-- Seconds of a text and the format it has; nil: it is no date.
function dates.read(text, shape)
    if shape then return read_as(text, shape), shape end
    return read_iso(text)
end

-- The same; raises for what is none.
local function read(what, text, shape)
    local seconds, found = dates.read(text, shape)
    if not seconds then
        fail(what, "%s is no date of the form %s", brief(text),
            shape or "2020-01-31 or 2020-01-31 12:30:00")
    end
    return seconds, found
end

-- --- as text -----------------------------------------------------------------

-- By letter, of a date's parts.
local written = {
    Y = function(t) return format("%04d", t.year) end,
    y = function(t) return format("%02d", t.year % 100) end,
    m = function(t) return format("%02d", t.month) end,
    d = function(t) return format("%02d", t.day) end,
    e = function(t) return format("%2d", t.day) end,
    H = function(t) return format("%02d", t.hour) end,
    I = function(t) return format("%02d", (t.hour + 11) % 12 + 1) end,
    p = function(t) return t.hour < 12 and "AM" or "PM" end,
    M = function(t) return format("%02d", t.minute) end,
    S = function(t)
        if t.second == floor(t.second) then return format("%02d", t.second) end
        return (gsub(format("%09.6f", t.second), "0+$", ""))
    end,
    b = function(t) return sub(months[t.month], 1, 3) end,
    B = function(t) return months[t.month] end,
    a = function(t) return sub(weekdays[t.weekday], 1, 3) end,
    A = function(t) return weekdays[t.weekday] end,
    j = function(t) return format("%03d", t.of_year) end,
    z = function() return "+0000" end,
    F = function(t) return format("%04d-%02d-%02d", t.year, t.month, t.day) end,
    T = function(t)
        return format("%02d:%02d:%02d", t.hour, t.minute, floor(t.second))
    end,
    R = function(t) return format("%02d:%02d", t.hour, t.minute) end,
    ["%"] = function() return "%" end,
}

local function split(seconds)
    local days = floor(seconds / DAY)
    local rest = seconds - days * DAY
    local year, month, day = date_of(days)
    local minutes = floor(rest / MINUTE)
    return {year = floor(year), month = floor(month), day = floor(day),
        hour = minutes // 60, minute = minutes % 60,
        second = rest - minutes * MINUTE,
        weekday = floor((days + 3) % 7) + 1,
        of_year = floor(days - days_of(year, 1, 1)) + 1}
end

-- A date as text: by the format, whose letters are those of C's strftime.
function dates.write(seconds, shape)
    local t = split(seconds)
    return (gsub(shape, "%%(.)", function(letter)
        local f = written[letter]
        if not f then
            fail("dates", "'%%%s' of the format %q is unknown: there are %s " ..
                "%%j", letter, shape, known)
        end
        return f(t)
    end))
end

-- --- columns of dates --------------------------------------------------------

-- Of a vector of seconds.
local function make(seconds, shape)
    return columns.object("date", {vector = seconds, format = shape})
end
dates.make = make

local usual = {"%Y-%m", "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"}

-- Of the formats of ISO 8601 the one that shows more.
local function finer(a, b)
    for _, shape in ipairs(usual) do
        if shape == a then a = nil end
        if shape == b then b = nil end
        if not a and b then return b end
        if a and not b then return a end
        if not a and not b then return shape end
    end
    return a
end

-- Of a text column, each label read once.
local function of_text(c, shape)
    local s = state[c]
    local seconds, found = {}, nil
    for i, label in ipairs(s.labels) do
        local x, as = read("dates", label, shape)
        seconds[i] = x
        found = shape or (found and finer(found, as) or as)
    end
    return make(columns.spread(s.vector,
        columns.vector_of(seconds, s.vector), NAN), found or usual[2])
end

row{
    name = "dates", method = true,
    takes = "x: table|vector [, format: string]",
    gives = "table",
    usage = "dates(x [, format])",
    group = "frames",
    help = "Dates of a list of texts, of a text column of a frame, or of a " ..
        "vector of seconds since 1970 began (UTC). Texts are read by ISO " ..
        "8601, as 2020-01-31 or 2020-01-31 12:30, or by a format with the " ..
        "letters of strftime: %Y %m %d %H %M %S %y %b %B %p %z. Dates d " ..
        "have d.seconds, vectors d:year() d:month() d:day() d:hour() " ..
        "d:minute() d:second() d:weekday() (Monday is 1), d:floor\"month\", " ..
        "d:ge\"2020-01-01\" and the like, texts by d:text\"%Y-%m\"; d - d " ..
        "and d - \"2020-01-01\" are seconds, d + 3600 an hour later.",
    example = "dates{\"2020-02-29\", \"2021-12-31\"}:month()",
    result = "{2, 12}",
}
function dates.dates(x, shape)
    if is_matrix(x) then
        return make(x:f64(), shape or usual[4])
    end
    local s = state[x]
    if s and s.kind == "date" then
        return make(s.vector, shape or s.format)
    end
    if not s then
        x = columns.text_of_list(x, #x, "dates")
    end
    return of_text(x, shape)
end

-- --- what dates do -----------------------------------------------------------

local methods, operators = {}, {}

local function days(s)
    return (s.vector / DAY):floor()
end

-- Seconds since midnight.
local function of_day(s)
    return s.vector - days(s) * DAY
end

function methods.year(c) return (date_of(days(state[c]))) end

function methods.month(c)
    local _, month = date_of(days(state[c]))
    return month
end

function methods.day(c)
    local _, _, day = date_of(days(state[c]))
    return day
end

function methods.weekday(c)
    local from = days(state[c]) + 3
    return from - (from / 7):floor() * 7 + 1
end

function methods.hour(c) return (of_day(state[c]) / HOUR):floor() end

function methods.minute(c)
    local minutes = (of_day(state[c]) / MINUTE):floor()
    return minutes - (minutes / 60):floor() * 60
end

function methods.second(c)
    local s = of_day(state[c])
    return s - (s / MINUTE):floor() * MINUTE
end

-- By unit: the beginning of it, and the format that shows it.
local function floor_months(s, count)
    local year, month = date_of(days(s))
    return days_of(year, ((month - 1) / count):floor() * count + 1, 1) * DAY
end

local function floor_to(s, length)
    return (s.vector / length):floor() * length
end

local units = {
    year = {function(s) return floor_months(s, 12) end, "%Y"},
    quarter = {function(s) return floor_months(s, 3) end, "%Y-%m"},
    month = {function(s) return floor_months(s, 1) end, "%Y-%m"},
    week = {function(s)
        return (((days(s) + 3) / 7):floor() * 7 - 3) * DAY
    end, "%Y-%m-%d"},
    day = {function(s) return floor_to(s, DAY) end, "%Y-%m-%d"},
    hour = {function(s) return floor_to(s, HOUR) end, "%Y-%m-%d %H:%M"},
    minute = {function(s) return floor_to(s, MINUTE) end, "%Y-%m-%d %H:%M"},
    second = {function(s) return floor_to(s, 1) end, "%Y-%m-%d %H:%M:%S"},
}

function methods.floor(c, unit)
    local u = units[unit]
    if not u then
        fail("floor", "%s is no unit: there are year quarter month week day " ..
            "hour minute second", brief(unit))
    end
    return make(u[1](state[c]), u[2])
end

local function texts_of(s, shape)
    local list = {}
    for i, x in ipairs(columns.listed(s.vector)) do
        list[i] = x == x and dates.write(x, shape)
    end
    return list
end

function methods.text(c, shape)
    local s = state[c]
    local list = texts_of(s, shape or s.format)
    return columns.text_of_list(list, #list, "text", s.vector.device)
end

function methods.totable(c) return texts_of(state[c], state[c].format) end

function methods.isnan(c) return state[c].vector:isnan() end

-- Seconds of what a date is compared with: a text, seconds, or other dates.
local function compared(what, other, s)
    if type(other) == "number" then return other end
    if type(other) == "string" then
        if match(other, "^%d%d%d%d$") then other = other .. "-01" end
        local ok = dates.read(other)
        if not ok and s then ok = dates.read(other, s.format) end
        return ok or read(what, other)
    end
    local t = state[other]
    if t and t.kind == "date" then return t.vector end
    if is_matrix(other) then return other end
    fail(what, "compares dates with dates, texts as \"2020-01-31\" or " ..
        "seconds, not with %s", brief(other))
end

local function is_dates(x)
    return state[x] ~= nil and state[x].kind == "date"
end

-- The seconds of both sides. One date beside many is a number.
local function both_sides(what, a, b)
    local s = is_dates(a) and state[a] or state[b]
    local x, y = compared(what, a, s), compared(what, b, s)
    if is_matrix(x) and is_matrix(y) and x.rows ~= y.rows then
        if is_dates(a) and x.rows == 1 then
            x = x[1]
        elseif is_dates(b) and y.rows == 1 then
            y = y[1]
        else
            fail(what, "of %s and %s: there are as many, or one of them is one " ..
                "date", checks.plural(x.rows, "element"), y.rows)
        end
    end
    return x, y
end

for _, name in ipairs{"eq", "ne", "lt", "le", "gt", "ge"} do
    local compare = library[name]
    methods[name] = function(c, other)
        local x, y = both_sides(name, c, other)
        return compare(x, y)
    end
end

-- The dates of c moved by seconds, as many as they are or one number.
local function moved(what, c, seconds, sign)
    local s = state[c]
    if is_matrix(seconds) and seconds.rows ~= s.vector.rows then
        fail("dates", "%s is of %s and %s: there are as many seconds as dates, " ..
            "or one number", what, checks.plural(s.vector.rows, "date"),
            checks.shape_of(seconds))
    end
    return make(s.vector + sign * seconds, s.format)
end

-- The first and the last, as text; nil where all are missing.
local function extreme(name)
    return function(c)
        local s = state[c]
        local there = s.vector[library.lnot(s.vector:isnan())]
        if there.rows == 0 then return nil end
        return dates.write(there[name](there), s.format)
    end
end
methods.min, methods.max = extreme "min", extreme "max"

function operators.__sub(a, b)
    if is_dates(a) and (type(b) == "number" or is_matrix(b)) then
        return moved("A - B", a, b, -1)
    elseif (is_dates(a) or type(a) == "string") and
        (is_dates(b) or type(b) == "string") then
        local x, y = both_sides("dates", a, b)
        return x - y
    end
    fail("dates", "A - B is of two dates, or of dates and seconds, not of " ..
        "%s and %s", brief(a), brief(b))
end

function operators.__add(a, b)
    if not is_dates(a) then a, b = b, a end
    if type(b) == "number" or is_matrix(b) then
        return moved("A + B", a, b, 1)
    end
    fail("dates", "A + B is of dates and seconds, not of %s and %s", brief(a),
        brief(b))
end

columns.add_kind("date", {
    methods = methods, operators = operators,
    part = function(s, v) return make(v, s.format) end,
    fields = {
        kind = function() return "date" end,
        seconds = function(s) return s.vector end,
        format = function(s) return s.format end,
        rows = function(s) return s.vector.rows end,
        device = function(s) return s.vector.device end},
    say = function(s) return "  " .. s.format end,
    value = function(s, x)
        return x == x and dates.write(x, s.format) or nil
    end,
    code = function(s, value)
        if value == nil or value == false then return NAN end
        return compared("date column", value, s)
    end})

return dates
