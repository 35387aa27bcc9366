-- Measuring a point: the least that will do.
local library = ...
local measuring = {}

function measuring.measure_point(spec, p, state, options)
    local start, samples = library.clock(), {}
    local ok, message = pcall(function()
        if spec.setup and state == nil then state = spec.setup(p) end
        for i = 1, spec.repeats or 3 do
            local seconds = spec.measure(p, state)
            if type(seconds) == "function" then
                seconds = library.timed(seconds)
            end
            if type(seconds) ~= "number" then
                error("measure: returned nothing", 0)
            elseif seconds ~= seconds then
                error("measure: returned NaN", 0)
            end
            samples[i] = seconds
        end
    end)
    if not ok and tostring(message):find("interrupted", 1, true) then
        error(message, 0)
    end
    table.sort(samples)
    return {status = ok and "ok" or "failed", samples = samples,
        message = not ok and tostring(message) or nil,
        median = samples[(#samples + 1) // 2], low = samples[1],
        high = samples[#samples], seconds = library.clock() - start}
end

return measuring
