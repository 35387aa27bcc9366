-- The options of functions that take a table of them: what each one does.
-- Which function takes which is said in its usage and text.
local manual = ...
local find, gmatch, gsub = string.find, string.gmatch, string.gsub
local match, sub = string.match, string.sub

local meaning = {
    dtype = 'element type: "f32" unless default_dtype says otherwise, "f64" or "bool"',
    device = 'where it lives: "cpu", "cuda" or "cuda:N"; else the default device',
    seed = "a whole number; the same one gives the same numbers on every device",
    out = "a matrix of the result's shape and type to write into",
    kernel = "one of kernels(A, B) by name; else the fastest that is accurate",
    width = "characters across; else what the screen has",
    height = "lines of the picture, about; else what the screen has",
    axis = "1: down each column, 2: along each row",
    descending = "true: the largest first",
    low = "the lower end of the range; else the least",
    high = "the upper end of the range; else the greatest",
    bins = "how many bars; else as many as make round edges",
    file = 'where gnuplot draws it instead: a name that ends in .png, .svg or .pdf',
    delimiter = 'the character between cells; "," and a tab by the file\'s name',
}

manual.common_options = meaning

-- Those that mean something else for one function.
local special = {
    load = {
        dtype = 'element type: "f32" unless default_dtype says otherwise; of a .npy file its own',
        header = 'is the first line one of names: true, false or "auto" (told by its cells)'},
    save = {
        header = "a table of column names for the first line",
        digits = "significant digits; else as many as give the same number again"},
    matmul = {
        tile = "side of the blocks of a GPU's tiled kernel: 8, 16 or 32",
        transA = "true: A transposed", transB = "true: B transposed",
        alpha = "factor of the product (1)",
        beta = "factor of what out holds before (0)",
        out = "C: gets alpha A B + beta C",
        precision = '"f32", "f64": the operands\' own; "tf32", "bf16": the ' ..
            "first kernel that has it"},
    rand = {low = "the least number (0)", high = "the bound above, not reached (1)"},
    randn = {mean = "the mean (0)", std = "the standard deviation (1)"},
    sort = {places = "true: a second result says where each element came from"},
    bench = {seconds = "how long to repeat f (0.3)", least = "at least so many runs (5)",
             runs = "so many runs, whatever time they take",
             device = "the one whose work is timed; else the default device"},
    race = {seconds = "how long to time each kernel (0.2)"},
    verify = {kernel = "the kernel whose bound is meant",
              bound = "a bound given as a number"},
}

-- Up to the bracket that closes the one text begins with.
local function in_brackets(text)
    return match(text, "^%b()")
end

-- Reads "name (note), name, name." from `at` on: calls each(name, note);
-- returns where the text goes on.
local function read_list(text, at, each)
    while true do
        local name, after = match(text, "^%s*([%a_][%w_]*)()", at)
        if not name then return at end
        at = after
        local note = in_brackets(match(text, "^ ?(.*)", at))
        if note then at = find(text, note, at, true) + #note end
        each(name, note and sub(note, 2, -2))
        if sub(text, at, at) ~= "," then
            return sub(text, at, at) == "." and at + 1 or at
        end
        at = at + 1
    end
end

-- {{name, what it does}, …} of a function, from the {name=} of its usage and
-- the "Options: …" of its text, or nil; and the text without these.
function manual.options_of(name)
    local entry, rows, seen = manual.help[name], {}, {}
    local function add(option, note)
        local row = seen[option] or {option, ""}
        if not seen[option] then rows[#rows + 1] = row end
        seen[option] = row
        if row[2] == "" then
            row[2] = special[name] and special[name][option] or
                meaning[option] or note or ""
        end
    end
    for group in gmatch(entry.usage, "%b{}") do
        for option in gmatch(group, "([%a_][%w_]*)=") do add(option) end
    end
    local text = entry.help
    local first, behind = find(text, "Options[^:.]*: ?")
    if first then
        local rest = read_list(text, behind + 1, add)
        text = gsub(sub(text, 1, first - 1), "%s+$", "") .. sub(text, rest)
    end
    return #rows > 0 and rows or nil, text
end
