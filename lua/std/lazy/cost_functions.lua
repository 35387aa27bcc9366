-- The library's functions over shapes. A name that is not here is unknown.
local library, _, _, own = ...
local checks = require "lumat.checks"
local shapes, times = require "lumat.cost_shapes", require "lumat.cost_times"
local ipairs, pairs, type = ipairs, pairs, type
local floor, smaller = math.floor, math.min
local select = select
local new, is, unknown, fail, copied = shapes.new, shapes.is, shapes.unknown,
    shapes.fail, shapes.copied
local bytes_of = shapes.bytes_of
local f = {}

local function need(name, A)
    if not is(A) then
        fail("%s: %s is no matrix", name, checks.brief(A))
    end
    return A
end

local function check_size(name, n)
    if shapes.is_unknown(n) then
        fail("%s: a size depends on elements (%s): it has to be run", name,
            n.from)
    elseif type(n) ~= "number" or n < 0 or n ~= floor(n) then
        fail("%s: %s is no size", name, checks.brief(n))
    end
    return n // 1 | 0
end

local function option(options, key, otherwise)
    return type(options) == "table" and options[key] or otherwise
end

-- A new matrix as options say, written once.
local function made(name, ndim, rows, cols, options)
    local s = new(ndim, rows, cols,
        option(options, "dtype", library.default_dtype()),
        option(options, "device", (library.device())))
    return copied(name, s, 0)
end

-- (m, n [, options]) or (n [, options])
local function constructor(name, rest)
    return function(m, n, a, b)
        m = check_size(name, m)
        if type(n) == "number" and not (rest and a == nil) then
            return made(name, 2, m, check_size(name, n), rest and b or a)
        end
        return made(name, 1, m, 1, rest and a or n)
    end
end
f.zeros, f.ones = constructor("zeros"), constructor("ones")
f.full = constructor("full", true)

function f.fromfn(m, n, g, options)
    if type(n) == "function" then return made("fromfn", 1, m, 1, g) end
    return made("fromfn", 2, check_size("fromfn", m), check_size("fromfn", n),
        options)
end

function f.eye(m, n, options)
    m = check_size("eye", m)
    if type(n) ~= "number" then n, options = m, n end
    return made("eye", 2, m, check_size("eye", n), options)
end

local function random(name, ndim, rows, cols, options)
    local s = new(ndim, rows, cols,
        option(options, "dtype", library.default_dtype()),
        option(options, "device", (library.device())))
    return shapes.add(name, "philox", s, 0, bytes_of(s),
        times.random(name, s.device, rows * cols, bytes_of(s)))
end

local function drawn(name)
    return function(m, n, options)
        m = check_size(name, m)
        if type(n) ~= "number" then return random(name, 1, m, 1, n) end
        return random(name, 2, m, check_size(name, n), options)
    end
end
f.rand, f.randn = drawn("rand"), drawn("randn")
function f.randint(_, _, ...) return drawn("randint")(...) end
function f.randperm(n, options)
    return random("randperm", 1, check_size("randperm", n), 1, options)
end

function f.range(first, last, step, options)
    if type(step) == "table" then step, options = nil, step end
    step = step or 1
    local n = floor((last - first) / step * (1 + 1e-15) + 1e-10) + 1
    return made("range", 1, n > 0 and n // 1 | 0 or 0, 1, options)
end
function f.linspace(_, _, n, options)
    return made("linspace", 1, check_size("linspace", n), 1, options)
end
f.logspace = f.linspace

function f.mat(rows, options)
    return made("mat", 2, #rows, rows[1] and #rows[1] or 0, options)
end
function f.vec(list, options) return made("vec", 1, #list, 1, options) end

-- --- element by element, reductions ---------------------------------------

local function is_options(x) return type(x) == "table" and not is(x) and
    not shapes.is_unknown(x) end

-- round, log and atan with a second operand: how many operands are elements,
-- and how long the program is.
local function of_two(name, second)
    if name == "atan" then return {arity = 2, length = 1} end
    if name == "log" then
        return {arity = 2, length = (second == 2 or second == 10) and 8 or 10}
    end
    return {arity = 1, length = second == 0 and 1 or second > 0 and 27 or 30}
end

local function applied(name, op, out, ...)
    local second = select(2, ...)
    local is_of_two = (name == "round" or name == "log" or name == "atan") and
        second ~= nil and not is_options(second)
    out = out or shapes.out_of((select(is_of_two and 3 or op.arity + 1, ...)))
    return shapes.map(name, is_of_two and of_two(name, second) or op, out, ...)
end
for name, op in pairs(own.ops) do
    f[name] = function(...) return applied(name, op, nil, ...) end
    shapes.methods[name .. "_"] = function(A, ...)
        applied(name, op, need(name, A), A, ...)
        return A
    end
end

-- Of numbers a reduction costs nothing, and is known.
local function has_shapes(...)
    for i = 1, select("#", ...) do
        local x = select(i, ...)
        if is(x) or shapes.is_unknown(x) then return true end
    end
end
for _, name in ipairs(own.reductions) do
    f[name] = function(A, axis, ...)
        if not has_shapes(A, axis, ...) then
            return library[name](A, axis, ...)
        end
        if is_options(axis) then axis = axis.axis end
        return shapes.reduce(name, A, axis)
    end
end
function f.norm(A, p, options)
    if not has_shapes(A) then return library.norm(A, p, options) end
    if is_options(p) then p, options = nil, p end
    return shapes.reduce("norm", A, option(options, "axis"))
end
function f.trace() return unknown("trace") end
function f.close(A, B)
    shapes.map("sub", own.ops.sub, nil, A, B)
    return unknown("close")
end

-- --- products and systems -------------------------------------------------

function f.matmul(A, B, options)
    need("matmul", A)
    need("matmul", B)
    if options and options.transA then A = shapes.transposed(A) end
    if options and options.transB then B = shapes.transposed(B) end
    return shapes.multiply(A, B, options)
end
function f.dot(A, B) return shapes.multiply(need("dot", A), need("dot", B)) end

local function system(name, A, out, columns)
    local n = A.rows
    if A.ndim ~= 2 or n ~= A.cols then
        fail("%s: needs a square matrix, not %s", name, shapes.text_of(A))
    end
    shapes.add(name, "lu", A, n * n * (2.0 / 3 * n + 2.0 * columns),
        bytes_of(A) + (out and bytes_of(out) or 0),
        times.solve(A.device, A.dtype == "f64" and "f64" or "f32", n, columns))
    return out
end
function f.solve(A, B)
    need("solve", A)
    if need("solve", B).rows ~= A.rows then
        fail("solve: %s has %d rows, the right side %s", shapes.text_of(A),
            A.rows, shapes.text_of(B))
    end
    return system("solve", A, new(B.ndim, B.rows, B.cols, B.dtype, B.device),
        B.cols)
end
function f.inv(A)
    need("inv", A)
    return system("inv", A, new(2, A.rows, A.cols, A.dtype, A.device), A.rows)
end
function f.det(A)
    system("det", need("det", A), nil, 0)
    return unknown("det")
end
function f.rcond(A)
    system("rcond", need("rcond", A), nil, 5)
    return unknown("rcond")
end

-- --- views and copies -----------------------------------------------------

function f.t(A) return shapes.transposed(need("t", A)) end
function f.row(A, i)
    if need("row", A).ndim == 1 then return shapes.view(A, 2, 1, A.rows) end
    return shapes.index(A, {{i, i}, {}})
end
function f.col(A, j)
    if need("col", A).ndim == 1 then return shapes.view(A, 2, A.rows, 1) end
    return shapes.index(A, {{}, {j, j}})
end
function f.flatten(A)
    return shapes.view(need("flatten", A), 1, A.rows * A.cols, 1)
end
function f.flip(A) return shapes.view(need("flip", A), A.ndim, A.rows, A.cols) end
function f.reshape(A, m, n)
    need("reshape", A)
    if m * (n or 1) ~= A.rows * A.cols then
        fail("reshape: %s has %d elements, not %d", shapes.text_of(A),
            A.rows * A.cols, m * (n or 1))
    end
    return shapes.view(A, n and 2 or 1, m, n or 1)
end
function f.diag(A, k)
    k = k or 0
    if need("diag", A).ndim == 2 then
        local down, across = A.rows - (k < 0 and -k or 0),
            A.cols - (k > 0 and k or 0)
        local n = smaller(down, across)
        return shapes.view(A, 1, n > 0 and n or 0, 1)
    end
    local n = A.rows + (k < 0 and -k or k)
    return copied("diag", new(2, n, n, A.dtype, A.device), 0)
end

-- The same shape, with elements of its own.
local function like(name, A, dtype, device)
    need(name, A)
    return copied(name, new(A.ndim, A.rows, A.cols, dtype or A.dtype,
        device or A.device), bytes_of(A))
end
for _, name in ipairs{"clone", "tril", "triu", "cumsum", "cumprod"} do
    f[name] = function(A) return like(name, A) end
end
for _, dtype in ipairs{"f32", "f64", "bool"} do
    f[dtype] = function(A)
        return need(dtype, A).dtype == dtype and A or like(dtype, A, dtype)
    end
end
function f.to(A, device)
    return need("to", A).device == device and A or like("to", A, nil, device)
end
function f.free(A) need("free", A) end
function f.forget(A) return A end

-- Values, places or both.
local function sorted(name, A, axis, options, has_values, has_places)
    if is_options(axis) then axis, options = axis.axis, axis end
    axis = axis or option(options, "axis", 1)
    local ndim, length = need(name, A).ndim, axis == 2 and A.cols or A.rows
    local s = has_values and new(ndim, A.rows, A.cols, A.dtype, A.device)
    local places = has_places and new(ndim, A.rows, A.cols, "f64", A.device)
    shapes.add("sort", "sort", s or places, 0, 2 * bytes_of(A), times.sort(
        has_places and "argsort" or "sort", A.device, A.dtype,
        A.rows * A.cols, length))
    if places then
        shapes.map(name, own.ops.add, places, places, 1)
    end
    return s, places
end
function f.sort(A, axis, options)
    local how = is_options(axis) and axis or options
    if option(how, "places") then
        return sorted("sort", A, axis, options, true, true)
    end
    return (sorted("sort", A, axis, options, true, false))
end
function f.argsort(A, axis, options)
    return (select(2, sorted("argsort", A, axis, options, false, true)))
end

local function count_of(list, all)
    if list == nil then return all end
    return type(list) == "number" and 1 or #list
end
function f.take(A, rows, cols)
    need("take", A)
    local s = new(A.ndim, count_of(rows, A.rows), count_of(cols, A.cols),
        A.dtype, A.device)
    return copied("take", s, bytes_of(s))
end

local function joined(name, add)
    return function(...)
        local rows, cols, bytes = 0, 0, 0
        local list = {...}
        for _, A in ipairs(list) do
            need(name, A)
            rows, cols = add(rows, cols, A)
            bytes = bytes + bytes_of(A)
        end
        local first = list[1]
        local is_vector = name == "hcat" and first.ndim == 1
        local s = is_vector and new(1, cols, 1, first.dtype, first.device) or
            new(2, rows, cols, first.dtype, first.device)
        return copied(name, s, bytes)
    end
end
f.hcat = joined("hcat", function(rows, cols, A)
    if A.ndim == 1 then return 1, cols + A.rows end
    return A.rows, cols + A.cols
end)
f.vcat = joined("vcat", function(rows, cols, A)
    if A.ndim == 1 then return rows + 1, A.rows end
    return rows + A.rows, A.cols
end)
function f.outer(x, y)
    need("outer", x)
    need("outer", y)
    return copied("outer", new(2, x.rows, y.rows, x.dtype, x.device),
        bytes_of(x) + bytes_of(y))
end
function f.kron(A, B)
    need("kron", A)
    need("kron", B)
    return copied("kron", new(2, A.rows * B.rows, A.cols * B.cols, A.dtype,
        A.device), bytes_of(A) + bytes_of(B))
end
function f.tile(A, m, n)
    need("tile", A)
    return copied("tile", new(A.ndim, A.rows * m, A.cols * (n or 1), A.dtype,
        A.device), bytes_of(A))
end

-- Rows or columns one by one.
local function each(count, part)
    return function(A)
        local i = 0
        return function()
            i = i + 1
            if i <= count(A) then return i, part(A, i) end
        end
    end
end
f.eachrow = each(function(A) return A.rows end, function(A)
    return A.ndim == 1 and unknown("an element") or
        shapes.view(A, 1, A.cols, 1)
end)
f.eachcol = each(function(A) return A.cols end, function(A)
    return shapes.view(A, 1, A.rows, 1)
end)

-- --- what costs nothing that counts here ----------------------------------

function f.sync() end
f.device, f.default_dtype, f.clock, f.peak, f.memory = library.device,
    library.default_dtype, library.clock, library.peak, library.memory

for name, g in pairs(f) do
    shapes.methods[name] = shapes.methods[name] or g
end
return f
