-- Axes of random samples, the same ones for the same seed.
local checks = require "lumat.checks"
local axes, parts = require "lumat.axes", require "lumat.axis_parts"
local fail, brief = checks.fail, checks.brief
local check_count, joint_of = axes.check_count, parts.joint_of
local list_of, tidy = parts.list_of, parts.tidy
local ipairs, type = ipairs, type
local floor, math_type = math.floor, math.type
local sampled = {}

-- SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number
-- generators, 2014): numbers from 0 up to 1, the same on every machine.
local function generator(seed)
    local state = seed
    return function()
        state = state + 0x9E3779B97F4A7C15
        local z = state
        z = (z ~ z >> 30) * 0xBF58476D1CE4E5B9
        z = (z ~ z >> 27) * 0x94D049BB133111EB
        return ((z ~ z >> 31) >> 11) * 2.0 ^ -53
    end
end

-- `count` different ones of a list.
local function choose(what, count, list, u)
    local rest, chosen = {}, {}
    for i, value in ipairs(list_of(what, "list", list)) do rest[i] = value end
    if count > #rest then
        fail(what, "%d of %d values cannot all be different", count, #rest)
    end
    for i = 1, count do
        local k = i + floor(u() * (#rest - i + 1))
        rest[i], rest[k] = rest[k], rest[i]
        chosen[i] = rest[i]
    end
    return chosen
end

-- random(count, list or function [, seed]): samples of a list, or what the
-- function makes of u, which gives numbers from 0 up to 1.
function sampled.random(count, source, seed)
    local what = "experiment.random"
    count, seed = check_count(what, count), seed or 1
    if math_type(tidy(seed)) ~= "integer" then
        fail(what, "the seed is %s, expected a whole number", brief(seed))
    end
    local u = generator(tidy(seed))
    if type(source) ~= "function" then return choose(what, count, source, u) end
    local list = {}
    for i = 1, count do list[i] = source(u) end
    if type(list[1]) == "table" then return joint_of(what, "sample", list) end
    return list
end

return sampled
