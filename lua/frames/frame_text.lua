-- Frames as text: a table that fits the screen, names and types above it, and
-- columns of text and dates as a list.
local library = ...
local cells = require "lumat.cells"
local texts = require "lumat.texts"
local columns = require "lumat.frame_columns"
local frames = require "lumat.frames"
local kind_of = columns.kind_of
local frame_text = {}
local ipairs = ipairs
local concat = table.concat
local find, format, gsub, match, rep = string.find, string.format,
    string.gsub, string.match, string.rep
local larger, smaller = math.max, math.min

local GAP = 2
local LEAST, MOST = 6, 32 -- columns that a text takes at most

local dim, red, plain = "\27[2m", "\27[1;31m", "\27[0m"

-- --- cells -------------------------------------------------------------------

local escapes = {["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r"}

-- As it stands in one line.
local function in_a_line(text)
    return texts.visible((gsub(text, "[\n\t\r]", escapes)))
end

local function cut(text, most, style)
    if cells.width(text) <= most then return text end
    local mark = style.ascii and "~" or "…"
    return cells.beginning(text, most - 1) .. mark
end

-- A column's elements at a vector of places (nil: all), so many, as texts;
-- false where one is missing, of numbers "NaN".
local function cells_of(c, places, count)
    if columns.is_freed(c) then
        local list = {}
        for i = 1, count do list[i] = "freed" end
        return list
    end
    if places then c = columns.pick(c, places) end
    if columns.length(c) == 0 then return {} end
    if kind_of(c) == "number" then return cells.numbers(c) end
    local list = c:totable()
    for i, text in ipairs(list) do list[i] = text and in_a_line(text) end
    return list
end

local function type_of(c)
    local kind = kind_of(c)
    return kind == "number" and not columns.is_freed(c) and c.dtype or kind
end

-- What a column looks like: title, type, texts, width, left.
local function lay_out(name, c, places, style, count)
    local most = larger(LEAST, smaller(MOST, style.width // 3))
    local none = style.ascii and "-" or "–"
    local col = {name = name, kind = type_of(c), left = kind_of(c) == "text",
        title = cut(in_a_line(name), most, style),
        texts = cells_of(c, places, count)}
    local width = larger(cells.width(col.title), #col.kind)
    for i, text in ipairs(col.texts) do
        text = text and (style.full and text or cut(text, most, style)) or none
        col.texts[i] = text
        width = larger(width, cells.width(text))
    end
    col.width = width
    return col
end

-- --- what fits ---------------------------------------------------------------

-- The places of the rows shown, nil for all of them, and how many are at the
-- beginning.
local function shown_rows(rows, style)
    if rows <= style.limit then return nil, rows end
    local list = {}
    for i = 1, style.head do list[i] = i end
    for i = rows - style.tail + 1, rows do list[#list + 1] = i end
    return library.vec(list, {dtype = "f64", device = "cpu"}), style.head
end

-- Columns are laid out as long as there may be room for them: the first ones,
-- and the last where some are left out.
local function shown_columns(s, places, style, label)
    local shown, used, count = {}, label, #s.names
    local function column(i)
        return lay_out(s.names[i], s.by[s.names[i]], places, style,
            places and places.rows or s.rows)
    end
    for i = 1, count do
        shown[i] = column(i)
        used = used + GAP + shown[i].width
        if used > style.width and not style.full then break end
    end
    if #shown == count and used <= style.width or style.full then
        return shown, count
    end
    local last = column(count)
    local dots = GAP + 1
    while #shown > 1 and (used + dots + GAP + last.width > style.width or
        #shown == count) do
        used = used - GAP - shown[#shown].width
        shown[#shown] = nil
    end
    local first = #shown
    if first < count then used = used + dots end
    if first < count and used + GAP + last.width <= style.width then
        shown[first + 1] = last
    elseif used > style.width then -- not even one: it is cut
        local over = used - style.width
        shown[first].width = larger(1, shown[first].width - over)
    end
    return shown, first
end

-- --- lines -------------------------------------------------------------------

local function padded(text, col, style)
    text = cut(text, col.width, style)
    local blanks = rep(" ", col.width - cells.width(text))
    return col.left and text .. blanks or blanks .. text
end

local function painted(text, style, colour)
    if not style.colour or not colour or text == "" then return text end
    return colour .. text .. plain
end

local function colour_of(col, text)
    if col.left then return text == "–" and dim end
    if find(text, "NaN", 1, true) then return red end
    return (match(text, "^%-?0 *$") or text == "–") and dim
end

-- A line of label and cells; `of` gives the text of a column and its colour.
local function line_of(t, label, of)
    local style, parts = t.style, {}
    parts[1] = painted(rep(" ", t.label - cells.width(label)) .. label, style,
        dim)
    for i, col in ipairs(t.columns) do
        if t.is_cut and i == t.first + 1 then parts[#parts + 1] = t.dots end
        local text, colour = of(col)
        parts[#parts + 1] = painted(padded(text, col, style), style, colour)
    end
    if t.is_cut and t.first == #t.columns then parts[#parts + 1] = t.dots end
    return (gsub(concat(parts, rep(" ", GAP)), " +$", ""))
end

-- "  hidden: 141 of 150 rows, columns c d"
local function hidden_line(t, s, shown)
    local parts = {}
    if shown < s.rows then
        parts[1] = format("%s of %s rows", texts.count(s.rows - shown),
            texts.count(s.rows))
    end
    if t.is_cut then
        local last = #t.columns > t.first and 1 or 0
        local names = {}
        for i = t.first + 1, #s.names - last do
            names[#names + 1] = in_a_line(s.names[i])
        end
        parts[#parts + 1] = (#names == 1 and "column " or "columns ") ..
            concat(names, " ")
    end
    return cut("  hidden: " .. concat(parts, ", "), t.style.width, t.style)
end

-- ", 3 NaN, 1 missing": of numbers, and of text and dates.
local function missing_text(s)
    local nan, others = 0, 0
    for _, name in ipairs(s.names) do
        local c = s.by[name]
        local count = s.rows > 0 and not columns.is_freed(c) and
            columns.missing(c):sum() or 0
        if kind_of(c) == "number" then
            nan = nan + count
        else
            others = others + count
        end
    end
    local text = nan > 0 and texts.count(nan // 1 | 0) .. " NaN" or ""
    if others > 0 then
        text = text .. (nan > 0 and ", " or "") ..
            texts.count(others // 1 | 0) .. " missing"
    end
    return text ~= "" and "   " .. text or ""
end

function frame_text.frame_text(T, style)
    local s = frames.state_of(T)
    local head = frames.headline(T)
    if #s.names == 0 then return head end
    local remark = missing_text(s)
    if #head + #remark <= style.width then head = head .. remark end
    local places, first_rows = shown_rows(s.rows, style)
    local t = {style = style, label = #format("%d", s.rows),
        dots = style.ascii and "~" or "…"}
    if s.rows == 0 then t.label = 0 end
    t.columns, t.first = shown_columns(s, places, style, t.label)
    t.is_cut = t.first < #s.names
    local lines = {head,
        line_of(t, "", function(col) return col.title end),
        line_of(t, "", function(col) return col.kind, dim end)}
    local shown = places and places.rows or s.rows
    for i = 1, shown do
        if places and i == first_rows + 1 then
            local mark = style.ascii and ":" or "⋮"
            lines[#lines + 1] = line_of(t, mark, function()
                return mark, dim
            end)
        end
        local row = i <= first_rows and i or s.rows - shown + i
        lines[#lines + 1] = line_of(t, format("%d", row), function(col)
            return col.texts[i], colour_of(col, col.texts[i])
        end)
    end
    if places or t.is_cut then lines[#lines + 1] = hidden_line(t, s, shown) end
    return concat(lines, "\n")
end

-- --- for the viewer ----------------------------------------------------------

-- Of so many rows and columns from places on, each column: its title, whether
-- it stands at the left, and values, a vector, or texts (false where one is
-- missing), cut and as they are.
function frame_text.window(T, row, col, rows, cols)
    local s, list = frames.state_of(T), {}
    local _, ascii = texts.style()
    for j = 1, cols do
        local name = s.names[col + j - 1]
        local c = columns.pick(s.by[name], {{row, row + rows - 1}})
        local shown = {title = cut(in_a_line(name), MOST, {ascii = ascii}),
            left = kind_of(c) == "text"}
        if kind_of(c) == "number" then
            shown.values = c
        else
            shown.exact, shown.texts = cells_of(c), {}
            for i, text in ipairs(shown.exact) do
                shown.texts[i] = text and cut(text, MOST, {ascii = ascii})
            end
        end
        list[j] = shown
    end
    return list
end

-- --- a column alone ----------------------------------------------------------

-- Texts one behind the other, in as many lines as there is room for.
function frame_text.column_text(c, head, style)
    local rows = columns.length(c)
    if rows == 0 or columns.is_freed(c) then return head end
    local room_of_one = larger(1, style.width - GAP)
    local most = style.full and room_of_one or smaller(MOST, room_of_one)
    local none = style.ascii and "-" or "–"
    local room = style.limit * (style.width // (GAP + 1) + 1)
    local shown = style.full and rows or smaller(rows, room)
    local list = cells_of(columns.pick(c, {{1, shown}}))
    local lines, line, used, count = {head}, "", 0, 0
    for i, text in ipairs(list) do
        text = cut(text or none, most, style)
        local width = GAP + cells.width(text)
        if used > 0 and used + width > style.width then
            if #lines >= style.limit then break end
            lines[#lines + 1], line, used = line, "", 0
        end
        line, used, count = line .. rep(" ", GAP) .. text, used + width, i
    end
    lines[#lines + 1] = line
    if count < rows then
        lines[#lines + 1] = cut(format("  hidden: %s of %s",
            texts.count(rows - count), texts.count(rows)), style.width, style)
    end
    return concat(lines, "\n")
end

return frame_text
