-- Times as fast as another point: that of the same parameters but for some,
-- which name the base. What is zipped with these goes along with them.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local fields = require "lumat.fields"
local sources = require "lumat.sources"
local ratios = {}
local ipairs, next, type = ipairs, next, type
local concat, sort = table.concat, table.sort
local format = string.format

local function check_base(what, source, base)
    if type(base) ~= "table" or next(base) == nil then
        checks.fail(what, "ratio_to is %s, expected the base's parameters: " ..
            "ratio_to = {kernel = \"cublas\"}", checks.brief(base))
    end
    for name in next, base do
        sources.check_axis(what, "ratio_to", source, name)
    end
end

-- "x cublas"
local function name_of(base)
    local words = {}
    for _, value in next, base do words[#words + 1] = sources.plain(value) end
    sort(words)
    return "x " .. concat(words, " ")
end

-- Seconds that count: under a load that lasts where both have them.
local function ratio_of(row, base)
    if row.held and base.held then return base.held / row.held end
    return row.median and row.median > 0 and base.median and
        base.median / row.median or nil
end

-- --- zipped axes ------------------------------------------------------------

-- Has the axis one value for each of the leading ones' values?
local function follows(source, axis, leading)
    local values = {}
    for _, p in ipairs(source.points or {}) do
        local key = sources.part(p, leading)
        if values[key] == nil then values[key] = p[axis] end
        if values[key] ~= p[axis] then return false end
    end
    return true
end

-- Of the axes that are zipped with some of the base: those that these decide,
-- and those that they do not, each with its leading ones.
local function partners(source, base)
    local along, apart = {}, {}
    for _, names in ipairs(source.joint or {}) do
        local leading, others = {}, {}
        for _, name in ipairs(names) do
            local list = base[name] == nil and others or leading
            list[#list + 1] = name
        end
        for _, name in ipairs(#leading > 0 and others or {}) do
            local list = follows(source, name, leading) and along or apart
            list[#list + 1] = {name = name, leading = leading}
        end
    end
    return along, apart
end

local function refuse(what, base, partner)
    local leading = concat(partner.leading, ", ")
    checks.fail(what, "ratio_to: %s and %s go together, and %s has several " ..
        "values of %s, none of which another point has: name %s in ratio_to " ..
        "as well", leading, partner.name,
        sources.describe(partner.leading, base), partner.name, partner.name)
end

-- --- bases ------------------------------------------------------------------

local function is_of(row, base)
    for name, value in next, base do
        if row.p[name] ~= value then return false end
    end
    return true
end

-- The rows that have the base's parameters and worked, by what `key` says of
-- them; one of them, and whether others are there.
local function find_bases(source, base, key)
    local bases, one, failed = {}, nil, false
    for _, row in ipairs(source.rows) do
        local is = is_of(row, base)
        if is and columns.is_good(row) then
            bases[key(row)], one = row, row
        end
        failed = failed or is
    end
    return bases, one, failed
end

-- What is to be said of the base: that it has other values of what is zipped,
-- or that it did not work.
local function note_of(source, name, base, along, one)
    if not one then
        return format("%s: no point that worked has %s", name,
            sources.describe(source.axes, base))
    elseif #along == 0 then
        return nil
    end
    local named, words = fields.copied(base), {}
    for i, partner in ipairs(along) do
        named[partner.name] = one.p[partner.name]
        words[i] = partner.name .. " and " .. concat(partner.leading, ", ")
    end
    return format("%s: beside %s; together go %s", name,
        sources.describe(source.axes, named), concat(words, ", "))
end

-- Copies of the rows with the figure, its name, and what is to be said of it.
function ratios.add(what, source, rows, base)
    check_base(what, source, base)
    local along, apart = partners(source, base)
    local left_out = fields.copied(base)
    for _, partner in ipairs(along) do left_out[partner.name] = true end
    local function key(row)
        local p = {}
        for name, value in next, row.p do
            if left_out[name] == nil then p[name] = value end
        end
        return sources.signature(p)
    end
    local bases, one, failed = find_bases(source, base, key)
    if not one and not failed then
        checks.fail(what, "ratio_to: no point has %s",
            sources.describe(source.axes, base))
    end
    local name, list, beside = name_of(base), {}, false
    for i, row in ipairs(rows) do
        local other = columns.is_good(row) and bases[key(row)]
        local values = fields.copied(row.values or {})
        values[name] = other and ratio_of(row, other) or nil
        list[i] = fields.copied(row)
        list[i].values = values
        beside = beside or other and other ~= row
    end
    if one and not beside and apart[1] then refuse(what, base, apart[1]) end
    return list, name, note_of(source, name, base, along, one)
end

return ratios
