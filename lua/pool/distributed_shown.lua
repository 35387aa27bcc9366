-- How distributed matrices are shown: only what is shown comes to the prompt.
local library = ...
local checks = require "lumat.checks"
local cells = require "lumat.cells"
local parts = require "lumat.distributed_parts"
local state, shape, fetch = parts.state, parts.shape, parts.fetch
local meta = parts.meta
local ipairs, require, tostring, type = ipairs, require, tostring, type
local concat, format, rep = table.concat, string.format, string.rep
local larger = math.max

function meta.__headline(D)
    local s = state[D]
    local w = s.where
    local head = format("%s %s  ", w.dtype, parts.shape_text(s))
    if w.p.lost then return head .. "lost" end
    local size = w.m * w.n * parts.sizes[w.dtype]
    return head .. format("pool %dx%d  %s", w.p.rows, w.p.cols,
        require "lumat.unit_text".bytes(size, "%.1f"))
end

-- The first and last places of n, where more than `limit` are.
local function shown_places(n, limit, head, tail)
    local list = {}
    if n <= limit then
        for i = 1, n do list[i] = i end
        return list, n
    end
    for i = 1, head do list[i] = i end
    for i = n - tail + 1, n do list[#list + 1] = i end
    return list, head
end

-- The corners of which the shown elements are, in one matrix.
local function corners(s, rows, row_head, cols, col_head)
    local m, n = shape(s)
    local function parts(count, head, list)
        if #list == count then return {{1, count, 0}} end
        return {{1, head, 0}, {count - (#list - head) + 1, count, head}}
    end
    local out = library.zeros(#rows, #cols, {dtype = s.where.dtype == "bool" and
        "f32" or s.where.dtype, device = "cpu"})
    for _, r in ipairs(parts(m, row_head, rows)) do
        for _, c in ipairs(parts(n, col_head, cols)) do
            out[{{r[3] + 1, r[3] + r[2] - r[1] + 1},
                {c[3] + 1, c[3] + c[2] - c[1] + 1}}] =
                fetch("print", s, r[1], r[2], c[1], c[2])
        end
    end
    return out
end

function meta.__text(D, style)
    local s = state[D]
    local head = meta.__headline(D)
    local m, n = shape(s)
    if s.where.p.lost or m == 0 or n == 0 then return head end
    local rows, row_head = shown_places(m, 12, 4, 2)
    local most = larger(2, (style.width - 12) // 11)
    local cols, col_head = shown_places(n, most, most - 2, 1)
    local A = corners(s, rows, row_head, cols, col_head)
    local dots, down = style.ascii and "..." or "…", style.ascii and ":" or "⋮"
    local label = #tostring(m)
    local lines = {}
    for i = 0, #rows do
        lines[i] = i == 0 and rep(" ", label) or
            rep(" ", label - #tostring(rows[i])) .. rows[i]
    end
    for j, number in ipairs(cols) do
        local texts = cells.numbers(A:col(j):reshape(#rows))
        local width = #tostring(number)
        for _, text in ipairs(texts) do
            width = larger(width, cells.width(text))
        end
        for i = 0, #rows do
            local text = i == 0 and tostring(number) or texts[i]
            lines[i] = lines[i] .. "  " .. rep(" ", width - cells.width(text)) ..
                text
        end
        if j == col_head and #cols < n then
            for i = 0, #rows do
                lines[i] = lines[i] .. "  " .. (i == 0 and rep(" ", 1) or dots)
            end
        end
    end
    local out = {head, lines[0]}
    for i = 1, #rows do
        out[#out + 1] = lines[i]
        if i == row_head and #rows < m then
            out[#out + 1] = rep(" ", label - 1) .. down
        end
    end
    local hidden = m * n - #rows * #cols
    if hidden > 0 then
        out[#out + 1] = format("  hidden: %d of %d    D:gather() brings all here",
            hidden, m * n)
    end
    return concat(out, "\n")
end
meta.__tostring = cells.tostring

-- --- inspected ---------------------------------------------------------------

-- How many elements of D pass a test.
local function counted(D, test, ...)
    return D[test](D, ...):f64():sum()
end

-- What there is to know of D, by reductions on the processes: so only numbers
-- come here.
function parts.methods.inspect(D, name)
    local s = parts.state_of("inspect", D)
    local w = parts.check_alive("inspect", s)
    local p, m, n = w.p, shape(s)
    local most, height = parts.largest_part(p, w.m, w.n, w.mb, w.nb)
    local found = {rows = m, cols = n, dtype = w.dtype, grid = {p.rows, p.cols},
        block = {w.mb, w.nb}, largest_part = most}
    local lines = {(name and name .. " = " or "") .. meta.__headline(D),
        format("  in blocks of %dx%d on %dx%d processes, the largest part %dx%d",
            w.mb, w.nb, p.rows, p.cols, height, height > 0 and most // height or
            0)}
    local function add(label, value)
        found[label] = value
        lines[#lines + 1] = format("  %-6s %s", label, type(value) == "number" and
            format("%.8g", value) or tostring(value))
    end
    if m * n == 0 then return checks.shown(found, concat(lines, "\n")) end
    if w.dtype == "bool" then
        add("true", counted(D, "ne", 0))
        return checks.shown(found, concat(lines, "\n"))
    end
    if not checks.is_complex(w) then
        for _, kind in ipairs{"min", "max"} do
            local i, j = D["arg" .. kind](D)
            add(kind, D[{i, j}])
            lines[#lines] = format("%s at [%d, %d]", lines[#lines], i, j)
        end
    end
    add("mean", D:mean())
    if m * n > 1 then add("std", D:std()) end
    add("norm", D:norm())
    add("zeros", counted(D, "eq", 0))
    add("nan", counted(D, "ne", D))
    return checks.shown(found, concat(lines, "\n"))
end

-- Rows and columns of D from row, col on, for the viewer: a matrix here.
function parts.window(D, row, col, rows, cols)
    return fetch("view", state[D], row, row + rows - 1, col, col + cols - 1)
end
