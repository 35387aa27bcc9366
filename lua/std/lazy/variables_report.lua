-- The user's variables as a table: which there are, and whose bytes are whose.
local library = ...
local own, texts = require "lumat.variables", require "lumat.texts"
local amounts = require "lumat.unit_text"
local loaded = package.loaded
local report = {}
local ipairs, next, pcall, setmetatable = ipairs, next, pcall, setmetatable
local concat, sort = table.concat, table.sort
local larger, smaller = math.max, math.min
local format, rep, sub = string.format, string.rep, string.sub

local LONGEST_NAME, LONGEST_VALUE, MOST_LISTED = 100, 120, 20

local function bytes_text(bytes)
    return amounts.bytes(bytes, "%.1f")
end

-- So many blanks; kept, as lines of many variables take them.
local blanks = setmetatable({}, {__index = function(t, count)
    t[count] = rep(" ", count)
    return t[count]
end})

local function pad(text, width)
    return text .. blanks[width - #text]
end

-- --- frames -----------------------------------------------------------------

-- The vectors of a frame, or of a column of one; nil for other values.
local function vectors_of(value)
    local frames = loaded["lumat.frames"]
    return frames and frames.vectors_of(value)
end

-- As own.facts; of a frame its rows and columns, and where they are.
local function facts(value)
    local kind, shape, where, elements, entries = own.facts(value)
    if not shape and vectors_of(value) then
        shape, where = loaded["lumat.frames"].facts(value)
    end
    return kind, shape, where, elements, entries
end

-- --- who owns what ----------------------------------------------------------

-- What is known of the values by name, in tables by name: of what owns storages
-- `owned`, their bytes, and `kept`, those that products keep about them; of what
-- has another's, that variable's name as `sharing`. Every storage has one owner,
-- which its bytes are counted for; the others are views of it, or the same. It
-- is the one that shows it best, of several the first by name, and never ans
-- where there is another.
local function gather(values)
    local r = {values = values, owned = {}, kept = {}, sharing = {},
        bytes_texts = {}}
    local owners, ranks = {}, {}
    local function claim(name, storage, rank)
        local owner, best = owners[storage], ranks[storage]
        if name == "ans" then rank = 3 end
        if not owner or rank < best or rank == best and name < owner then
            owners[storage], ranks[storage] = name, rank
        end
    end
    local function settle(name, storage, bytes, kept)
        if owners[storage] ~= name then
            r.sharing[name] = owners[storage]
            return
        end
        r.owned[name] = (r.owned[name] or 0) + bytes
        if kept > 0 then r.kept[name] = (r.kept[name] or 0) + kept end
    end
    for name, value in next, values do
        local a, _, _, rank, b, _, _, rank_b, c, _, _, rank_c =
            own.storages(value)
        if a then claim(name, a, rank) end
        if b then claim(name, b, rank_b) claim(name, c, rank_c) end
        for _, v in ipairs(not a and vectors_of(value) or {}) do
            claim(name, own.storages(v), 2.5) -- a vector's own name is better
        end
    end
    for name, value in next, values do
        local a, bytes, kept, _, b, bytes_b, kept_b, _, c, bytes_c, kept_c =
            own.storages(value)
        if a then settle(name, a, bytes, kept) end
        if b then
            settle(name, b, bytes_b, kept_b)
            settle(name, c, bytes_c, kept_c)
        end
        for _, v in ipairs(not a and vectors_of(value) or {}) do
            a, bytes, kept = own.storages(v)
            settle(name, a, bytes, kept)
        end
    end
    return r
end

-- --- columns ----------------------------------------------------------------

-- The bytes of the owner of a storage; that of an empty matrix has one.
local function owned_text(r, name, elements)
    local bytes = r.owned[name]
    if bytes == 1 and elements == 0 then bytes = 0 end
    local text = r.bytes_texts[bytes] or bytes_text(bytes)
    r.bytes_texts[bytes] = text
    return text
end

-- The number of the entry that made a matrix, when the prompt has had one.
local function entry_of(r, name)
    return r.lineage and r.owned[name] and
        not vectors_of(r.values[name]) and r.lineage.entry_number(r.values[name])
end

-- How wide the columns of those variables are; entry: nil when there is no such
-- one.
local function measure(r, names)
    local w = {name = 4, type = 4, shape = 5, where = 5, bytes = 5}
    for _, name in ipairs(names) do
        local kind, shape, where, elements = facts(r.values[name])
        w.name, w.type = larger(w.name, #name), larger(w.type, #kind)
        if shape then
            w.shape, w.where = larger(w.shape, #shape), larger(w.where, #where)
            w.entry = w.entry or entry_of(r, name) and 5
        end
        if r.owned[name] then
            w.bytes = larger(w.bytes, #owned_text(r, name, elements))
        end
    end
    w.name = smaller(w.name, LONGEST_NAME)
    return w
end

-- Whose elements, in all or in part, a variable has.
local function relation(r, name, is_dense)
    local owner = r.sharing[name]
    if vectors_of(r.values[name]) then return "has elements of " .. owner end
    if vectors_of(r.values[owner]) then return "in " .. owner end
    local same = own.same(r.values[name], r.values[owner])
    if same == nil then same = not r.owned[name] end
    return (same and "same as " or is_dense and "view of " or
        "places are those of ") .. owner
end

-- What there is to say behind the columns; "" where there is nothing. A dense
-- matrix has elements, their bytes; a sparse one entries.
local function note_on(r, name, elements, entries)
    local kept, sharing = r.kept[name], r.sharing[name]
    local is_part = elements and elements > 0 and
        (r.owned[name] or 0) > elements
    if not (entries or sharing or is_part or kept) then return "" end
    local remarks = {}
    if entries then remarks[1] = "sparse, nnz " .. texts.count(entries) end
    if sharing then remarks[#remarks + 1] = relation(r, name, elements) end
    if is_part then
        remarks[#remarks + 1] = "view of a matrix without a name"
    end
    if kept then
        remarks[#remarks + 1] = format("products keep %s more",
            bytes_text(kept))
    end
    return "  " .. concat(remarks, ", ")
end

local function entry_column(number, w, colour)
    local text = number and format("%d", number) or ""
    local lead = blanks[2 + w.entry - #text]
    return lead .. (colour and number and "\27[2m" .. text .. "\27[0m" or text)
end

-- The columns of a matrix behind its type.
local function matrix_columns(r, name, w, shape, where, elements, entries)
    local note, entry = note_on(r, name, elements, entries), ""
    local bytes = r.owned[name] and owned_text(r, name, elements)
    local number = w.entry and entry_of(r, name)
    if number or w.entry and note ~= "" then
        entry = entry_column(number, w, r.colour)
    end
    return shape .. blanks[w.shape - #shape] .. "  " .. where ..
        blanks[w.where - #where] .. "  " ..
        blanks[w.bytes - (bytes and #bytes or 1)] .. (bytes or r.none) ..
        entry .. note
end

-- Adds the lines of those variables, in columns of those widths, to a heading.
local function add_lines(text, r, names, w)
    local _, ascii, colour = texts.style()
    r.none, r.colour = ascii and "-" or "–", colour
    for i, name in ipairs(names) do
        local value = r.values[name]
        local kind, shape, where, elements, entries = facts(value)
        local rest = where
        if not shape then
            rest = sub(own.headline(value), 1, LONGEST_VALUE)
        elseif where ~= "freed" then
            rest = matrix_columns(r, name, w, shape, where, elements, entries)
        end
        if #name > LONGEST_NAME then name = sub(name, 1, LONGEST_NAME) end
        text[i + 1] = name .. blanks[w.name - #name] .. "  " .. kind ..
            blanks[w.type - #kind] .. "  " .. rest
    end
end

-- --- devices ----------------------------------------------------------------

-- What there is on a device, and what of it no variable has.
local function add_device(text, r, device)
    local known, memory = pcall(library.memory, device)
    if not known then return end
    local bytes, count, besides = 0, 0, {}
    for name, owned in next, r.owned do
        local _, _, where = facts(r.values[name])
        if where == device then bytes, count = bytes + owned, count + 1 end
    end
    text[#text + 1] = format("%s: %d %s, %s; %s free of %s", device, count,
        count == 1 and "matrix" or "matrices", bytes_text(bytes),
        bytes_text(memory.free), bytes_text(memory.total))
    local function add(amount, what)
        if amount > 0 then besides[#besides + 1] = bytes_text(amount) .. what end
    end
    add(memory.live - bytes, " in matrices without a name")
    add(memory.kept, " kept by products")
    add(memory.unused, " unused in the pool")
    if besides[1] then
        text[#text + 1] = "  besides " .. concat(besides, ", ")
    end
end

-- --- all of it --------------------------------------------------------------

-- The first of the values by name, a line each below a heading.
function report.listing(values, heading)
    local names, r = {}, gather(values)
    for name in next, values do names[#names + 1] = name end
    sort(names)
    local count, text = #names, {heading}
    for i = MOST_LISTED + 1, count do names[i] = nil end
    add_lines(text, r, names, measure(r, names))
    if count > #names then
        local _, ascii = texts.style()
        text[#text + 1] = format("%s and %d more", ascii and "..." or "…",
            count - #names)
    end
    return concat(text, "\n")
end

local function heading(is_any, w, pattern)
    if not is_any then
        return pattern and
            format("no variable matches '%s'", sub(pattern, 1, 100)) or
            "no variables yet: A = mat{{1, 2}, {3, 4}} makes one"
    end
    return concat({pad("name", w.name), pad("type", w.type),
        pad("shape", w.shape), pad("where", w.where),
        blanks[w.bytes - 5] .. "bytes", w.entry and "entry"}, "  ")
end

local function sort_by_size(names, r)
    sort(names, function(a, b)
        local x, y = r.owned[a] or 0, r.owned[b] or 0
        if x ~= y then return x > y end
        return a < b
    end)
end

row{
    name = "who",
    takes = "[pattern: string {sort}]",
    gives = "nothing",
    usage = "who([pattern [, {sort=}]])",
    group = "asking",
    help = "Prints your variables, or those whose names match a pattern as " ..
        "of files (\"tmp*\"): type, shape, device, bytes there; a view and " ..
        "a second name have none of their own. {sort=\"size\"} puts the " ..
        "largest first. Also :who.",
    options = {
        {"sort", "\"size\"|\"name\"", "\"name\"",
            "\"size\": the largest first"},
    },
    example = "type(who)",
    result = "\"function\"",
}
function report.who(pattern, options)
    local values = own.variables()
    local r, names = gather(values), {}
    r.lineage = loaded["lumat.lineage_report"]
    for name in next, values do
        if not pattern or own.fits(name, pattern) then
            names[#names + 1] = name
        end
    end
    sort(names)
    if options and options.sort == "size" then sort_by_size(names, r) end
    local w = measure(r, names)
    local text = {heading(names[1], w, pattern)}
    add_lines(text, r, names, w)
    for _, device in ipairs(pattern and {} or own.devices()) do
        add_device(text, r, device)
    end
    texts.print(concat(text, "\n"))
end

return report
