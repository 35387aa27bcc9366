-- What an experiment is seen by: its methods, read when the first of them is
-- called, as most sessions need none.
local require = require

local function method(file, name)
    return function(...) return require("lumat." .. file)[name](...) end
end

return {
    table = method("tables", "table"),
    csv = method("export", "csv"),
    jsonl = method("export", "jsonl"),
    plot = method("charts", "plot"),
    report = method("report", "report"),
    compare = method("comparing", "compare"),
}
