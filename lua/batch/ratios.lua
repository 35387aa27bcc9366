-- Times as fast as another point: that of the same parameters but for some,
-- which name the base.
local checks = require "lumat.checks"
local columns = require "lumat.columns"
local fields = require "lumat.fields"
local sources = require "lumat.sources"
local ratios = {}
local ipairs, next, type = ipairs, next, type
local concat, sort = table.concat, table.sort

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

-- Copies of the rows with the figure, and its name.
function ratios.add(what, source, rows, base)
    check_base(what, source, base)
    local name, bases, list = name_of(base), {}, {}
    local function signature(row)
        local p = {}
        for key, value in next, row.p do
            if base[key] == nil then p[key] = value end
        end
        return sources.signature(p)
    end
    for _, row in ipairs(source.rows) do
        local is_base = columns.is_good(row)
        for key, value in next, base do
            is_base = is_base and row.p[key] == value
        end
        if is_base then bases[signature(row)] = row end
    end
    if not next(bases) then
        checks.fail(what, "ratio_to: no point that worked has %s",
            sources.describe(source.axes, base))
    end
    for i, row in ipairs(rows) do
        local other = columns.is_good(row) and bases[signature(row)]
        local values = fields.copied(row.values or {})
        values[name] = other and ratio_of(row, other) or nil
        list[i] = fields.copied(row)
        list[i].values = values
    end
    return list, name
end

return ratios
