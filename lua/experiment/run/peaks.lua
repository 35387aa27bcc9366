-- The peaks that work is a share of. They are measured once, and again when a
-- point goes beyond: what else ran may have slowed the first measurement. All
-- rows of one device count by the best.
local library = ...
local peaks = {}
local ipairs, pairs, setmetatable, tostring = ipairs, pairs, setmetatable,
    tostring
local concat, sort = table.concat, table.sort
local format = string.format
local huge, larger = math.huge, math.max

local SLACK = 1.005 -- the share from which a peak is doubted
local TRIES = 2 -- in vain, of a device: then it is the work that is special
local AFTER = 60 -- seconds after which it may be tried again

-- --- measuring --------------------------------------------------------------

-- The peak that the work comes nearest to, the one the trace and races name,
-- and the share of it.
local function nearest(row, dtype, device)
    local _, _, share, name = library.rate(row.flops or 0, row.bytes or 0,
        row.median, dtype, device)
    local all = library.peak(device)
    local flops = all[dtype .. "_flops"]
    return {name = name, value = name == "memory" and all.bytes or flops,
        flops = flops, bytes = all.bytes}, share
end

local vain = {} -- device and peak: how often in vain, and when last

local function is_worth_trying(key)
    local v = vain[key]
    return not v or v.count < TRIES or library.clock() - v.time > AFTER
end

-- Measures the peaks again; was the one of the row too low?
local function try_again(key, device, peak)
    library.peak(device, true)
    local all = library.peak(device)
    local value = peak.name == "memory" and all.bytes or
        all[peak.name .. "_flops"]
    if value > peak.value then
        vain[key] = nil
        return true
    end
    vain[key] = {count = (vain[key] and vain[key].count or 0) + 1,
        time = library.clock()}
    return false
end

-- Twice before anything counts by it: each time takes the best of a few tries,
-- but something else may run through all of them.
local seen = {}
local function begin(device)
    if seen[device] then return end
    library.peak(device)
    library.peak(device, true)
    seen[device] = true
end

-- What a row keeps of its peak: name ("memory", "f32", "f64"), value, flops,
-- bytes, and in `was` what it was before it was measured again.
function peaks.of(row, dtype, device)
    if dtype ~= "f64" and dtype ~= "f32" then dtype = library.default_dtype() end
    begin(device)
    local before = library.peak(device) -- rate may have it measured again
    local peak, share = nearest(row, dtype, device)
    local key = tostring(device) .. " " .. peak.name
    local was = peak.name == "memory" and before.bytes or
        before[peak.name .. "_flops"]
    if peak.value > was then peak.was = was end
    if share > SLACK and is_worth_trying(key) and
        try_again(key, device, peak) then
        local name = peak.name
        peak = nearest(row, dtype, device)
        peak.was = peak.name == name and was or nil
    end
    return peak
end

-- --- rows beside one another ------------------------------------------------

local function key_of(row)
    return format("%s %s %s", tostring(row.env), tostring(row.device),
        row.peak.name)
end

-- The best peak of each environment and device, for shares: those that
-- several processes, or a run and the one that went on, measured differ by what
-- else they had to do. It is decided over all rows there are; copies of a row
-- have its peak, and of fewer rows it never becomes less.
local best_of = setmetatable({}, {__mode = "k"}) -- by a row's peak
function peaks.settle(rows)
    local best = {}
    for _, row in ipairs(rows) do
        if row.peak and row.peak.value then
            local key = key_of(row)
            best[key] = larger(best[key] or -huge, peaks.value(row))
        end
    end
    for _, row in ipairs(rows) do
        if row.peak and row.peak.value then
            best_of[row.peak] = best[key_of(row)]
        end
    end
end

function peaks.value(row)
    return row.peak and (best_of[row.peak] or row.peak.value)
end

-- --- what is to be said -----------------------------------------------------

local function rate_text(name, value)
    if name == "memory" then return format("%.4g GB/s", value / 1e9) end
    return value >= 1e12 and format("%.4g TFLOP/s", value / 1e12) or
        format("%.4g GFLOP/s", value / 1e9)
end

-- "shares are of the f32 peak 98.2 GFLOP/s, the best that was measured"; nil
-- where no row has a peak.
function peaks.said(rows)
    local seen, words, several = {}, {}, false
    for _, row in ipairs(rows) do
        local value = peaks.value(row)
        local text = value and format("the %s peak %s", row.peak.name,
            rate_text(row.peak.name, value))
        if text and not seen[text] then words[#words + 1] = text end
        seen[text or 0] = true
        several = several or value and value ~= row.peak.value
    end
    if #words == 0 then return nil end
    sort(words)
    return "shares are of " .. concat(words, ", ") ..
        (several and ", the best that was measured" or "")
end

-- Lines on peaks that were measured again, and on shares that stay above 1;
-- share(row) gives them, describe(row) names a point.
function peaks.notes(rows, share, describe)
    local again, list, above = {}, {}, 0
    for _, row in ipairs(rows) do
        if row.peak and row.peak.was then again[row.peak.name] = row end
        if (share(row) or 0) > SLACK then above = above + 1 end
    end
    for name, row in pairs(again) do
        list[#list + 1] = format("the %s peak was measured again beside %s: " ..
            "%s, before %s; shares are of the best", name, describe(row),
            rate_text(name, row.peak.value), rate_text(name, row.peak.was))
    end
    sort(list)
    if above > 0 then
        list[#list + 1] = format("%d point%s beyond the peak, which was " ..
            "measured again: data in caches, or other units than plain loops " ..
            "use", above, above == 1 and " is" or "s are")
    end
    return list
end

return peaks
