-- Finding what is meant: a name, a word of the help, a misspelt one.
local manual = ...
local distance = manual.distance -- the edits between two words
local ipairs, pairs, type = ipairs, pairs, type
local concat, sort = table.concat, table.sort
local lower, find, gmatch, match = string.lower, string.find, string.gmatch, string.match
local sub, byte, gsub, format = string.sub, string.byte, string.gsub, string.format
local min, max = math.min, math.max

-- How far apart words may be and still be taken for each other.
local function reach(word)
    return #word < 3 and 0 or #word < 5 and 1 or 2
end

local function is_near(word, name)
    return math.abs(#word - #name) <= 2 and distance(word, name) <= reach(word)
end

-- --- everything that has help ---------------------------------------------

-- The first sentence.
local function summary_of(text)
    return match(text, "^(.-[^.]%.)%s+%u") or text
end
manual.summary_of = summary_of

local function add(list, name, summary, text)
    list[#list + 1] = {name = name, key = lower(gsub(name, "^[:?]", "")),
                       summary = summary, text = lower(text)}
end

-- {name, key: the name to compare with, summary, text: all there is}.
local function entries()
    local list = {}
    for name, entry in pairs(manual.help) do
        local options = manual.options_of(name) or {}
        local words = {entry.usage, entry.help, entry.example}
        for _, row in ipairs(options) do
            words[#words + 1] = row.is_common and row[1] or concat(row, " ")
        end
        add(list, name, summary_of(entry.help), concat(words, " "))
    end
    for _, row in ipairs(manual.commands) do
        if row[2] then
            add(list, ":" .. row[1], row[3], concat(row, " "))
        end
    end
    for name, topic in pairs(manual.topics) do
        if name ~= "first" then
            add(list, "?" .. name, topic.title, topic.title .. " " ..
                manual.topic_words(topic))
        end
    end
    sort(list, function(a, b) return a.name < b.name end)
    return list
end

-- The word of other languages nearest to one, or nil.
local function nearest_word(word)
    local best, nearest = reach(word) + 1, nil
    for other in pairs(manual.words) do
        local d = math.abs(#word - #other) <= 2 and distance(word, other) or 9
        if d < best or d == best and nearest and other < nearest then
            best, nearest = d, other
        end
    end
    return nearest
end

-- --- searching ------------------------------------------------------------

-- Without the plural's s, and long words without their last letter, so that
-- their other forms are found; or nil.
local function stem_of(word)
    return #word > 3 and match(word, "^(.+[^s])s$") or #word > 5 and sub(word, 1, -2)
end

-- Is the word among those of text? 2: as it is, 1: another form of it. Short
-- words begin one there: "nan" is no part of "determinant".
local function mentions(text, word)
    local start = #word < 5 and "%f[%w]" or ""
    local plain = gsub(word, "%p", "%%%0")
    if find(text, start .. plain) then return 2 end
    local stem = stem_of(word)
    return stem and find(text, "%f[%w]" .. gsub(stem, "%p", "%%%0")) and 1 or 0
end

-- Points for what other languages call it: the first page before the others.
local function points_of_word(entry, row)
    for i, page in ipairs(row and row.pages or {}) do
        if page == entry.name or "?" .. page == entry.name then return 96 - i end
    end
    return 0
end

-- Points for one word: the name before the summary before all the rest.
local function score(entry, word)
    local key, stem = entry.key, stem_of(word)
    if key == word then return 100 end
    local points = points_of_word(entry, manual.word(word))
    if points > 0 then return points end
    if sub(key, 1, #word) == word or key == stem then return 80 end
    if #word > 1 and find(key, word, 1, true) then return 60 end
    local said = mentions(lower(entry.summary), word)
    if said > 0 then return said == 2 and 50 or 45 end
    return mentions(entry.text, word) * 8
end

-- The same for a word that may be misspelt; row: of the word nearest to it.
local function score_near(entry, word, row)
    if is_near(word, entry.key) then return 97 end
    local points = max(score(entry, word), points_of_word(entry, row))
    if points > 0 then return points end
    for other in gmatch(entry.text, "%a+") do
        if #word > 4 and is_near(word, other) then
            return find(lower(entry.summary), other, 1, true) and 30 or 8
        end
    end
    return 0
end

-- Entries in which every word is found, by points, then by name; rows: what
-- score_of is told besides of each word, row: of all of them.
local function matches(words, score_of, rows, row)
    local found = {}
    for _, entry in ipairs(entries()) do
        local points = 0
        for _, word in ipairs(words) do
            local n = score_of(entry, word, rows[word])
            points = n > 0 and points and points + n
        end
        local of_row = points_of_word(entry, row)
        if of_row > 0 then points = max(points or 0, (of_row + 10) * max(#words, 1)) end
        if points and points > 0 then found[#found + 1] = {points, entry} end
    end
    sort(found, function(a, b)
        if a[1] ~= b[1] then return a[1] > b[1] end
        return a[2].name < b[2].name
    end)
    return found
end

local function near_matches(words)
    local rows = {}
    for _, word in ipairs(words) do rows[word] = manual.words[nearest_word(word)] end
    return matches(words, score_near, rows)
end

-- Words that say little: left out where there are others.
local asked = {}
for word in gmatch("how what where do does i can a an the of to in is are with for my it one " ..
    "get make matrix matrices array", "%S+") do
    asked[word] = true
end

local function words_of(text)
    local all, words = {}, {}
    for word in gmatch(lower(text), "%S+") do
        all[#all + 1] = word
        if not asked[word] then words[#words + 1] = word end
    end
    return #words > 0 and words or all
end

-- Cut so that it takes one line.
local function cut(text, width)
    if manual.columns(text) <= width then return text end
    local room, line = width - 2, ""
    for word in gmatch(text, "%S+") do
        if manual.columns(line) + manual.columns(word) + 1 > room then break end
        line = line .. (line == "" and "" or " ") .. word
    end
    return line .. " …"
end

-- The row of the whole text, or of its only word, as other languages have it.
local function row_of(text, words)
    return manual.word(match(text, "^%s*(.-)%s*$")) or manual.word(concat(words, " "))
end

-- What the help has about the words, as text: a name and its first sentence a
-- line, the likeliest first; or that nothing mentions them.
function manual.search(text, style)
    text = manual.name_in(gsub(text, "(%w)[?!.,]+$", "%1"))
    local words, lines = words_of(text), {}
    local row = row_of(text, words)
    -- of what is not there, the pages that come nearest
    local found = matches(row and row.says and {} or words, score, {}, row)
    if #found == 0 then found = near_matches(words) end
    if row and manual.said(row) then
        manual.paragraph(lines, concat(words, " ") .. ": " .. manual.said(row), style.width, 0)
    elseif #found == 0 then
        return format("nothing in the help mentions '%s'", text)
    end
    local most = max(style.height - 4, 8)
    local shown = #found > most and most - 1 or #found
    local widest = 0
    for i = 1, shown do widest = max(widest, #found[i][2].name) end
    for i = 1, shown do
        local entry = found[i][2]
        local left = "  " .. manual.padded(entry.name, min(widest, 16)) .. "  "
        lines[#lines + 1] = left .. cut(entry.summary, style.width - manual.columns(left))
    end
    if #found > shown then
        lines[#lines + 1] = format("  … %d more: add a word, as in ??%s file",
            #found - shown, text)
    end
    return manual.text(lines, style)
end

-- --- what was meant -------------------------------------------------------

-- The names nearest to a word, at most three; else what other languages call
-- so.
function manual.nearest(word)
    word = lower(word)
    local best, names = reach(word), {}
    local bare = gsub(word, "^[:?]", "")
    for _, entry in ipairs(entries()) do
        local d = math.abs(#bare - #entry.key) <= 2 and
            distance(bare, entry.key) or 9
        if d < best then best, names = d, {} end
        local name = gsub(entry.name, "^%?", "")
        if d <= best and #names < 3 and not names[name] then
            names[name] = true
            names[#names + 1] = name
        end
    end
    return #names > 0 and names or {nearest_word(bare)}
end
