-- The chapters of the reference: each is groups of functions. A function's row
-- names its group, or several; it is described in the first of them that the
-- reference comes to. Names of a group point at each other under "see also".
local manual = ...
local gmatch, ipairs, pairs = string.gmatch, ipairs, pairs
local concat, sort = table.concat, table.sort

local titles = {
    {"Making matrices", "making constants sequences random diagonals sparse"},
    {"Shape and place", "shape lines joining places iterating converting"},
    {"Products and linear algebra",
        "products outer systems iterative factors norms gallery kernels keeping"},
    {"Fourier transforms and signals", "fourier"},
    {"Element by element", "arithmetic powers signs limits rounding " ..
        "exponentials logarithms angles arcs hyperbolic area special complex " ..
        "mapping"},
    {"Comparing and masks", "comparing logic questions finite"},
    {"Over everything, columns or rows",
        "totals extremes running sampled statistics"},
    {"Counting and grouping", "sets windows"},
    {"Graphs", "graphs"},
    {"Frames", "frames"},
    {"Seeing matrices", "pictures watching"},
    {"Files", "files sessions folders"},
    {"Time and the machine",
        "timing costs devices rates tracing lineage"},
    {"Many processes", "pools"},
    {"Batch experiments", "experiments"},
    {"The session", "asking settings"},
}

-- group = its names, in the order of their rows.
local function groups()
    local list = {}
    for name, entry in pairs(manual.help) do
        for group in gmatch(entry.group or "", "%S+") do
            list[group] = list[group] or {}
            local names = list[group]
            names[#names + 1] = name
        end
    end
    for _, names in pairs(list) do
        sort(names, function(a, b)
            return manual.help[a].order < manual.help[b].order
        end)
    end
    return list
end

-- {{title, "name name …" of a group, …}, …}
local of = groups()
manual.chapters = {}
for i, chapter in ipairs(titles) do
    local list = {chapter[1]}
    for group in gmatch(chapter[2], "%S+") do
        list[#list + 1] = concat(of[group] or {}, " ")
    end
    manual.chapters[i] = list
end

-- see[name]: names of the groups it is in, in order, without itself.
function manual.index_chapters()
    local see = {}
    for _, chapter in ipairs(manual.chapters) do
        for i = 2, #chapter do
            for name in gmatch(chapter[i], "%S+") do
                see[name] = see[name] or {}
                for other in gmatch(chapter[i], "%S+") do
                    local list = see[name]
                    if other ~= name and not list[other] then
                        list[other] = true
                        list[#list + 1] = other
                    end
                end
            end
        end
    end
    return see
end
