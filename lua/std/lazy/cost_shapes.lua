-- Matrices without elements: shape, type and device, and what operations on them
-- would take. One run at a time adds up in `run`.
local library, _, _, own = ...
local checks = require "lumat.checks"
local times = require "lumat.cost_times"
local error, getmetatable, ipairs, next, pairs, rawget, select,
    setmetatable, tostring, type = error, getmetatable, ipairs, next, pairs,
    rawget, select, setmetatable, tostring, type
local collectgarbage = collectgarbage
local format, match = string.format, string.match
local floor, larger = math.floor, math.max
local shapes = {}

local run -- what is added up
local matrix, unknown = {}, {} -- metatables: of a shape, of an unknown number
local sizes = {f32 = 4, f64 = 8, bool = 1}

local function fail(text, ...)
    error("cost: " .. format(text, ...), 0)
end
shapes.fail = fail

local function is_shape(x) return rawget(x, "rows") ~= nil end
function shapes.is(x)
    return type(x) == "table" and getmetatable(x) == "matrix" and is_shape(x)
end
local is = shapes.is

local function is_unknown(x)
    return type(x) == "table" and getmetatable(x) == "number"
end
shapes.is_unknown = is_unknown

-- A number that depends on elements.
local function new_unknown(from)
    return setmetatable({from = from}, unknown)
end
shapes.unknown = new_unknown

local function bytes_of(s) return s.rows * s.cols * sizes[s.dtype] end

local function text_of(s)
    return s.ndim == 1 and format("vector %d", s.rows) or
        format("%dx%d", s.rows, s.cols)
end

-- --- adding up ------------------------------------------------------------

function shapes.start()
    run = {flops = 0, bytes = 0, seconds = 0, allocated = 0, peak = 0,
        held = 0, due = 0, operations = {}, products = {},
        alive = setmetatable({}, {__mode = "k"})}
    return run
end

-- What is still reachable counts: memory that nothing refers to is free again.
local function count_held()
    collectgarbage()
    run.held, run.due = 0, 0
    for storage in next, run.alive do run.held = run.held + storage.bytes end
end

local function allocate(bytes)
    local storage = {bytes = bytes}
    run.due = run.due + bytes
    if run.due * 8 > run.held and (run.counted or 0) < 300 then
        run.counted = (run.counted or 0) + 1
        count_held()
    end
    run.alive[storage] = true
    run.held = run.held + bytes
    run.allocated = run.allocated + bytes
    run.peak = larger(run.peak, run.held)
    return storage
end

-- A new matrix; as a view it shares the storage of another.
local function new(ndim, rows, cols, dtype, device, of)
    local s = {ndim = ndim, rows = rows, cols = cols, dtype = dtype,
        device = device, info = {}}
    s.storage = of and of.storage or
        allocate(rows * cols * sizes[dtype])
    return setmetatable(s, matrix)
end
shapes.new = new

-- The shape of a matrix that exists: its storage is not of this run.
function shapes.of(A, name)
    return setmetatable({ndim = A.ndim, rows = A.rows, cols = A.cols,
        dtype = A.dtype, device = A.device, info = {name = name},
        storage = {bytes = 0}}, matrix)
end

local function add(operation, kernel, s, flops, bytes, seconds)
    run.flops, run.bytes = run.flops + flops, run.bytes + bytes
    run.seconds = run.seconds + seconds
    run.operations[#run.operations + 1] = {operation = operation,
        kernel = kernel, shape = text_of(s), flops = flops, bytes = bytes,
        seconds = seconds}
    return s
end
shapes.add = add

-- --- element by element ---------------------------------------------------

local function common(name, a, b)
    if not a then return b end
    local fits = a.ndim == b.ndim and
        (a.rows == b.rows or a.ndim == 2 and (a.rows == 1 or b.rows == 1)) and
        (a.cols == b.cols or a.ndim == 2 and (a.cols == 1 or b.cols == 1))
    if not fits then
        fail("%s: shapes differ (%s and %s)", name, text_of(a), text_of(b))
    end
    if a.device ~= b.device then
        fail("%s: operands are on different devices (%s and %s)", name,
            a.device, b.device)
    end
    return {ndim = a.ndim, rows = larger(a.rows, b.rows),
        cols = larger(a.cols, b.cols), device = a.device}
end

local function map(name, op, out, ...)
    local shape, bytes, wide, any = nil, 0, false, false
    for i = 1, op.arity do
        local x = select(i, ...)
        if is(x) then
            shape, any = common(name, shape, x), true
            bytes = bytes + bytes_of(x)
            wide = wide or x.dtype == "f64"
        elseif type(x) ~= "number" and type(x) ~= "boolean" and
            not is_unknown(x) then
            fail("%s: %s is no matrix or number", name, checks.brief(x))
        end
    end
    if not any then return new_unknown(name) end
    local dtype = op.test and "bool" or wide and "f64" or "f32"
    out = out or new(shape.ndim, shape.rows, shape.cols, dtype, shape.device)
    local n = out.rows * out.cols
    bytes = bytes + bytes_of(out)
    return add(name, "map", out, n * (op.length or 1), bytes, times.elementwise(name, op.arity,
        shape.device, wide and "f64" or "f32", n, bytes))
end
shapes.map = map

-- {out=} behind the operands
local function out_of(options)
    return type(options) == "table" and not is(options) and
        not is_unknown(options) and options.out or nil
end

-- --- reductions and products ----------------------------------------------

function shapes.reduce(name, A, axis)
    if not is(A) then return is_unknown(A) and A or new_unknown(name) end
    local n, bytes = A.rows * A.cols, bytes_of(A)
    local seconds = times.reduction(name, A.device, A.dtype, n, bytes)
    if axis == nil then
        add(name, "reduce", A, n, bytes, seconds)
        if match(name, "^arg") and A.ndim == 2 then
            return new_unknown(name), new_unknown(name)
        end
        return new_unknown(name)
    end
    local truth, is_place = name == "any" or name == "all", match(name, "^arg")
    local many = name == "sum" and A.dtype == "bool" and
        (axis == 2 and A.cols or A.rows) > 2 ^ 24
    local out = new(A.ndim, axis == 2 and A.rows or 1,
        axis == 1 and A.cols or 1, truth and "bool" or
        (A.dtype == "f64" or is_place or many) and "f64" or "f32", A.device)
    return add(name, "reduce", out, n, bytes, seconds)
end

-- Flops, bytes, the kernel and seconds of a product of these sizes.
function shapes.product_cost(device, dtype, m, n, k, kernel)
    local size = sizes[dtype]
    local bytes = (1.0 * m * k + 1.0 * k * n + 1.0 * m * n) * size
    if m == 0 or n == 0 or k == 0 then return 0, bytes, "map", 0 end
    kernel = kernel or own.kernel_for("matmul", dtype, m, n, k, device)
    return 2.0 * m * n * k, bytes, kernel,
        times.product(kernel, device, dtype, m, n, k, bytes)
end

local function dot(A, B, dtype)
    local bytes = 2.0 * A.rows * sizes[dtype]
    local kernel = own.kernel_for("dot", dtype, 1, 1, A.rows, A.device)
    add("dot", kernel, A, 2.0 * A.rows, bytes,
        times.moved(A.device, bytes))
    return new_unknown("dot")
end

-- Vectors are a row on the left and a column on the right.
function shapes.multiply(A, B, options)
    local rows, cols, inner = checks.sizes(A, B)
    if inner ~= B.rows then
        fail("matmul: inner dimensions differ (%d and %d): %s * %s", inner,
            B.rows, text_of(A), text_of(B))
    end
    if A.device ~= B.device then
        fail("matmul: operands are on different devices (%s and %s)",
            A.device, B.device)
    end
    local dtype = (A.dtype == "f64" or B.dtype == "f64") and "f64" or "f32"
    if A.ndim == 1 and B.ndim == 1 then return dot(A, B, dtype) end
    local out = options and options.out
    local is_vector = A.ndim == 1 or B.ndim == 1
    local C = out or new(is_vector and 1 or 2, is_vector and rows * cols or
        rows, is_vector and 1 or cols, dtype, A.device)
    local flops, bytes, kernel, seconds = shapes.product_cost(A.device, dtype,
        rows, cols, inner, options and options.kernel)
    if not out and not options then
        C.info = {left = A, right = B, flops = flops, seconds = seconds}
        run.products[#run.products + 1] = C
        A.info.used = (A.info.used or 0) + 1
        B.info.used = (B.info.used or 0) + 1
    end
    return add("matmul", kernel, C, flops, bytes, seconds)
end

-- --- views and copies -----------------------------------------------------

function shapes.view(A, ndim, rows, cols)
    return new(ndim, rows, cols, A.dtype, A.device, A)
end

function shapes.transposed(A)
    if A.ndim == 1 then return A end
    local s = shapes.view(A, 2, A.cols, A.rows)
    s.info.name = A.info.name and A.info.name .. ".T"
    return s
end

-- How many places the list has on a side of A; nil for what is no list.
local function length_of(A, list)
    if not is(list) then return end
    if list.dtype == "bool" then
        fail("how many elements %s[mask] has depends on the mask",
            A.info.name or "A")
    end
    return list.rows
end

-- The block of A[key], and how many rows and columns of it its lists choose.
local function block_of(A, key)
    if is(key) then return A, length_of(A, key) end
    local sides, counts = key, {}
    if type(key) == "table" then
        sides = {}
        for k = 1, #key do
            counts[k] = length_of(A, key[k])
            sides[k] = counts[k] and {} or key[k]
        end
    end
    local part = own.phantom(A.ndim, A.rows, A.cols)[sides]
    if type(part) == "number" then return end
    local block = shapes.view(A, part.ndim, part.rows, part.cols)
    if part.ndim < A.ndim then return block, counts[1] or counts[2] end
    return block, counts[1], counts[2]
end

-- A[key]: what a view of such a matrix would be; with lists its shape, and
-- true: it would be a copy.
function shapes.index(A, key)
    if is_unknown(key) then
        return A.ndim == 1 and new_unknown("an element") or
            shapes.view(A, 1, A.cols, 1)
    end
    local block, rows, cols = block_of(A, key)
    if not block then return new_unknown("an element") end
    if not rows and not cols then return block end
    return shapes.view(A, block.ndim, rows or block.rows,
        cols or block.cols), true
end

-- Written anew with so many bytes read.
function shapes.copied(name, s, read)
    local bytes = bytes_of(s) + read
    return add(name, name, s, 0, bytes, times.moved(s.device, bytes))
end
shapes.bytes_of, shapes.text_of, shapes.out_of = bytes_of, text_of, out_of

-- --- the metatables -------------------------------------------------------

local properties = {size = function(A) return A.rows * A.cols end,
    bytes = bytes_of, T = shapes.transposed,
    shape = function(A)
        return A.ndim == 1 and {A.rows} or {A.rows, A.cols}
    end}

-- methods: filled by cost.lua
shapes.methods = {}
matrix.__metatable = "matrix"
function matrix.__index(A, key)
    if properties[key] then return properties[key](A) end
    local method = shapes.methods[key]
    if method then return method end
    if type(key) == "string" and not match(key, "^[%d:%-, ]") and
        not match(key, "^end") then
        fail("nothing is known of what A:%s costs", key)
    end
    local part, is_copy = shapes.index(A, key)
    if not is_copy then return part end
    part = new(part.ndim, part.rows, part.cols, A.dtype, A.device)
    return shapes.copied("gather", part, bytes_of(part))
end
function matrix.__newindex(A, key, value)
    local is_mask = is(key) and key.dtype == "bool"
    local part, is_list = A, false
    if not is_mask then part, is_list = shapes.index(A, key) end
    if is_list and type(value) == "number" then -- a matrix to be broadcast
        shapes.copied("copy", new(2, 1, 1, A.dtype, A.device), 0)
    end
    if is(part) then
        shapes.copied(is_list and "scatter" or "copy", part, is_list and
            bytes_of(part) or is(value) and bytes_of(value) or 0)
    end
end
function matrix.__call(A, i, j)
    return (j or A.ndim == 1) and new_unknown("an element") or
        shapes.index(A, i)
end
function matrix.__len(A) return A.rows end
function matrix.__mul(A, B)
    if is(A) and is(B) then return shapes.multiply(A, B) end
    return map("mul", own.ops.mul, nil, A, B)
end
function matrix.__mod(A, B)
    local name = is(A) and is(B) and "mul" or "mod"
    return map(name, own.ops[name], nil, A, B)
end
for event, name in pairs{__add = "add", __sub = "sub", __div = "div",
    __idiv = "idiv", __band = "land", __bor = "lor", __bxor = "lxor"} do
    matrix[event] = function(A, B)
        return map(name, own.ops[name], nil, A, B)
    end
end
function matrix.__unm(A) return map("neg", own.ops.neg, nil, A) end
function matrix.__bnot(A) return map("lnot", own.ops.lnot, nil, A) end
function matrix.__tostring(A) return A.dtype .. " " .. text_of(A) end
function matrix.__eq() fail("A == B depends on the elements") end

unknown.__metatable = "number"
for _, event in ipairs{"add", "sub", "mul", "div", "mod", "pow", "idiv"} do
    unknown["__" .. event] = function(a, b)
        local other = is(a) and a or is(b) and b
        if other then return matrix["__" .. event](a, b) end
        return new_unknown((is_unknown(a) and a or b).from)
    end
end
function unknown.__unm(a) return a end
function unknown.__tostring() return "?" end
for _, event in ipairs{"lt", "le", "eq"} do
    unknown["__" .. event] = function(a, b)
        fail("what is done depends on elements (%s): it has to be run",
            (is_unknown(a) and a or b).from)
    end
end

-- A matrix like A, written once.
local function fresh(name, A, read)
    return shapes.copied(name, new(2, A.rows, A.cols, A.dtype == "f64" and
        "f64" or "f32", A.device), read)
end

-- A ^ n by squaring, as it is done: from the identity, whose place a copy of
-- the first power takes.
function matrix.__pow(A, n)
    if type(n) ~= "number" or n ~= floor(n) or not is(A) or
        A.rows ~= A.cols then
        fail("A ^ n needs a square matrix and a whole number")
    end
    local base = n < 0 and shapes.methods.inv(A) or A
    local result, is_first = fresh("eye", A, A.rows * sizes[base.dtype]), true
    n = (n < 0 and -n or n) // 1 | 0
    while n > 0 do
        if n & 1 == 1 and is_first then
            result, is_first = fresh("copy", base, bytes_of(base)), false
        elseif n & 1 == 1 then
            result = shapes.multiply(result, base)
        end
        n = n >> 1
        if n > 0 then base = shapes.multiply(base, base) end
    end
    return result
end

matrix.__concat = function(A, B)
    if is(A) and is(B) then return shapes.methods.hcat(A, B) end
    if type(A) == "number" or type(B) == "number" then
        fail("a matrix and a number do not join: write hcat and ones")
    end
    return tostring(A) .. tostring(B)
end

return shapes
