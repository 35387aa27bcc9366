-- Finding what is meant: a name, a word of the help, a misspelt one.
local manual = ...
local ipairs, pairs, type = ipairs, pairs, type
local concat, sort = table.concat, table.sort
local lower, find, gmatch, match = string.lower, string.find, string.gmatch, string.match
local sub, byte, gsub, format = string.sub, string.byte, string.gsub, string.format
local min, max = math.min, math.max

-- Insertions, deletions, replacements and swaps of neighbours between two
-- words: Damerau's distance in its restricted form.
local function distance(a, b)
    local before, last, row = {}, {}, {}
    for j = 0, #b do last[j] = j end
    for i = 1, #a do
        row = {[0] = i}
        for j = 1, #b do
            local differs = byte(a, i) ~= byte(b, j) and 1 or 0
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + differs)
            if i > 1 and j > 1 and byte(a, i) == byte(b, j - 1) and
                byte(a, i - 1) == byte(b, j) then
                row[j] = min(row[j], before[j - 2] + 1)
            end
        end
        before, last = last, row
    end
    return last[#b]
end

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
        for _, row in ipairs(options) do words[#words + 1] = concat(row, " ") end
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

-- --- searching ------------------------------------------------------------

-- Is the word, or one nearly like it, among those of text? 2: as it is.
local function mentions(text, word)
    if find(text, word, 1, true) then return 2 end
    local stem = #word > 5 and sub(word, 1, -2)
    for other in gmatch(text, "%a+") do
        if stem and sub(other, 1, #stem) == stem then return 1 end
        if #word > 4 and is_near(word, other) then return 1 end
    end
    return 0
end

-- Points for one word: the name before the summary before all the rest.
local function score(entry, word)
    local key = entry.key
    if key == word then return 100 end
    if manual.habits[word] == key then return 90 end
    if sub(key, 1, #word) == word then return 80 end
    if #word > 1 and find(key, word, 1, true) then return 60 end
    local said = mentions(lower(entry.summary), word)
    if said == 2 then return 50 end
    if is_near(word, key) then return 40 end
    if said == 1 then return 30 end
    return mentions(entry.text, word) * 8
end

-- Every word has to be found; entries by points, then by name.
local function matches(words)
    local found = {}
    for _, entry in ipairs(entries()) do
        local points = 0
        for _, word in ipairs(words) do
            local n = score(entry, word)
            points = n > 0 and points and points + n
        end
        if points and points > 0 then
            found[#found + 1] = {points, entry}
        end
    end
    sort(found, function(a, b)
        if a[1] ~= b[1] then return a[1] > b[1] end
        return a[2].name < b[2].name
    end)
    return found
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

function manual.search(text, style)
    local words, lines = {}, {}
    for word in gmatch(lower(text), "%S+") do words[#words + 1] = word end
    local found = matches(words)
    if #found == 0 then
        return format("nothing in the help mentions '%s'", text)
    end
    local most = max(style.height - 4, 8)
    local shown = #found > most and most - 1 or #found
    local widest = 0
    for i = 1, shown do widest = max(widest, #found[i][2].name) end
    for i = 1, shown do
        local entry = found[i][2]
        local left = "  " .. manual.padded(entry.name, min(widest, 16)) .. "  "
        lines[i] = left .. cut(entry.summary, style.width - manual.columns(left))
    end
    if #found > shown then
        lines[#lines + 1] = format("  … %d more: add a word, as in ??%s matrix",
            #found - shown, text)
    end
    return manual.text(lines, style)
end

-- --- what was meant -------------------------------------------------------

-- The names nearest to a word, at most three.
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
    return names
end
