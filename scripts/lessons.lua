-- What the lessons share: sizes from the command line, the devices and
-- kernels there are, times with their unit, and checks that decide the exit.
local lessons = {failures = 0}

-- Whole numbers from the command line, with a default for each name.
function lessons.sizes(names, ...)
    local sizes, count = {...}, select("#", ...)
    for i, word in ipairs(arg) do
        local size = math.tointeger(tonumber(word))
        if i > count or not size or size < 1 then
            io.stderr:write("usage: lumat ", arg[0], " [", names,
                "]   (whole numbers, at least 1; not ", word, ")\n")
            os.exit(2)
        end
        sizes[i] = size
    end
    return table.unpack(sizes)
end

-- The CPU, and the GPU when it is the default device.
function lessons.devices()
    local chosen = device()
    return chosen == "cpu" and {"cpu"} or {"cpu", chosen}
end

-- The tile sizes that kernels let the caller choose.
local tiles = {tiled = {8, 16, 32}, padded = {8, 16, 32}}

-- The ways to run an operation on a device: {label, options} for each
-- available kernel, and for each tile of those that have several.
function lessons.rungs(operation, where)
    local rungs = {}
    for _, k in ipairs(kernel_list(where)) do
        if k.operation == operation and k.available then
            for _, tile in ipairs(tiles[k.name] or {0}) do
                local chosen = tile > 0 and tile or nil
                rungs[#rungs + 1] = {
                    kernel = k.name,
                    label = k.name .. (chosen and " " .. tile or ""),
                    options = {kernel = k.name, tile = chosen}}
            end
        end
    end
    return rungs
end

-- A time for people, always eleven characters wide.
function lessons.time(seconds)
    if seconds < 1e-3 then return ("%8.4g us"):format(seconds * 1e6) end
    if seconds < 1 then return ("%8.4g ms"):format(seconds * 1e3) end
    return ("%8.4g s "):format(seconds)
end

-- "Accept" or what is wrong, counted for finish().
function lessons.verdict(passed, problem)
    if passed then return "Accept" end
    lessons.failures = lessons.failures + 1
    return "FAILS: " .. problem
end

function lessons.check(what, passed, problem)
    print(("%s: %s"):format(what, lessons.verdict(passed, problem)))
end

-- The text of verify(C, A, B), counted for finish(); with a kernel, against
-- what that one promises.
function lessons.verify(C, A, B, kernel)
    local found = verify(C, A, B, kernel and {kernel = kernel})
    if not found.accept then lessons.failures = lessons.failures + 1 end
    return tostring(found)
end

-- Ends the script: exit code 1 when any check failed.
function lessons.finish()
    if lessons.failures > 0 then
        print(("%d checks failed"):format(lessons.failures))
        os.exit(1)
    end
end

return lessons
