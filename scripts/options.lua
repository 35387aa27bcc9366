-- The options behind a script's name, for the scripts that share this:
--   local options, usage = require "options"("bench", "[--quick] [--size N]",
--       {quick = "switch", size = "count"})
-- A kind is "switch", which takes no value, "text", "number", above 0, or
-- "count", a whole number from 1 on. usage(problem) says what is wrong and how
-- the script is called, and ends it; so does a word that is none of them.
local function above_zero(text)
    local x = tonumber(text)
    return x and x > 0 and x < math.huge and x or nil
end

local read = {
    text = function(text) return text end,
    number = above_zero,
    count = function(text)
        local x = above_zero(text)
        return x and math.tointeger(x)
    end,
}
local expected = {number = "a number above 0", count = "a whole number from 1 on"}

return function(name, words, kinds)
    local function usage(problem)
        io.stderr:write(name, ": ", problem, "\nusage: lumat ", name, ".lua ",
            words, "\n")
        os.exit(2)
    end
    local options, i = {}, 1
    while arg[i] do
        local key = arg[i]:match "^%-%-([%a_]+)$"
        local kind = kinds[key]
        if not kind then
            usage("what is " .. arg[i] .. "?")
        elseif kind == "switch" then
            options[key] = true
        else
            i = i + 1
            if not arg[i] then usage("--" .. key .. " needs a value") end
            options[key] = read[kind](arg[i])
            if options[key] == nil then
                usage(("--%s is %s, expected %s"):format(key, arg[i],
                    expected[kind]))
            end
        end
        i = i + 1
    end
    return options, usage
end
