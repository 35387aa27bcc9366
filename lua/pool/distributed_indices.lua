-- Elements, rows, columns and blocks of distributed matrices, read and written;
-- what is put together of several; and their properties.
local library = ...
local checks = require "lumat.checks"
local cyclic = require "lumat.block_cyclic"
local elementwise = require "lumat.elementwise"
local map = require "lumat.distributed_elements".map
local parts = require "lumat.distributed_parts"
local pool = require "lumat.pool"
local vector_of = require "lumat.ranks".expand
local fail, brief = checks.fail, checks.brief
local state, shape, state_of = parts.state, parts.shape, parts.state_of
local methods, meta, properties = parts.methods, parts.meta, parts.properties
local new, told = parts.new, parts.told
local settled, fetch = parts.settled, parts.fetch
local getmetatable, ipairs, pairs, tostring, type = getmetatable, ipairs, pairs,
    tostring, type
local larger, smaller, to_integer = math.max, math.min, math.tointeger

local function place(what, i, n, kind)
    local found = to_integer(i)
    if found and found < 0 then found = n + 1 + found end
    if not found or found < 1 or found > n then
        fail(what, "%s %s is outside 1..%d", kind, brief(to_integer(i) or i), n)
    end
    return found
end

-- One side of an index: which rows, or columns, as processes are told: {first,
-- last}, or {list = {…}} where they are no range; and how many they are.
local function range_side(what, r, n, kind)
    if #r == 0 then return {1, n}, n end
    if #r > 3 or #r == 1 then
        fail(what, "a side is a number, {first, last}, {first, last, step}, a " ..
            "vector of places, a mask, or {} for all")
    end
    local first, last = place(what, r[1], n, kind), place(what, r[2], n, kind)
    local step = r[3] == nil and 1 or to_integer(r[3])
    if not step or step == 0 then
        fail(what, "the step of %ss is %s, expected a whole number but 0", kind,
            brief(r[3]))
    elseif step == 1 then
        return {first, last}, larger(0, last - first + 1)
    end
    local list = {}
    for i = first, last, step do list[#list + 1] = i end
    return {list = list}, #list
end

local function list_side(what, v, n, kind)
    if not (v.ndim == 1 or v.rows == 1 or v.cols == 1) then
        fail(what, "%ss are chosen by a vector, not %s", kind,
            checks.shape_of(v))
    end
    local count = v.rows * v.cols
    if v.dtype == "bool" then
        if count ~= n then
            fail(what, "the mask has length %d, there are %d %ss", count, n, kind)
        end
        v = library.find(v:reshape(count))
    end
    local list = v:reshape(v.rows * v.cols):totable()
    for i, x in ipairs(list) do list[i] = place(what, x, n, kind) end
    return {list = list}, #list
end

local function side_of(what, r, n, kind)
    if type(r) == "number" then
        local i = place(what, r, n, kind)
        return {i, i}, 1
    elseif checks.is_matrix(r) then
        return list_side(what, r, n, kind)
    elseif type(r) ~= "table" or getmetatable(r) ~= nil then
        fail(what, "%s is no index of %ss", brief(r), kind)
    end
    return range_side(what, r, n, kind)
end

-- Both sides of D[key], of the elements as they are read; a vector takes rows.
local function sides_of(what, s, key)
    if checks.is_matrix(key) then key = {key, {}} end
    if #key ~= 2 then
        fail(what, "D[{rows, columns}] has two sides, not %d", #key)
    end
    local m, n = shape(s)
    local i, k = side_of(what, key[1], m, "row")
    local j, l = side_of(what, key[2], n, "column")
    return i, k, j, l
end

-- An element, or rows and columns, which are distributed as well and a copy.
local function block_of(D, key)
    local s = state[D]
    local i, k, j, l = sides_of("index", s, key)
    if type(key) == "table" and type(key[1]) == "number" and
        type(key[2]) == "number" then
        return fetch("index", s, i[1], i[1], j[1], j[1])(1, 1)
    end
    local w = settled("index", s)
    local b = parts.like("index", w, k, l)
    if i.list or j.list then
        return told("index", b, "take", w.id, i, j, b.mb, b.nb)
    end
    return told("index", b, "block", w.id, i[1], j[1], k, l, b.mb, b.nb)
end

-- --- assignment --------------------------------------------------------------

-- Of a list with places that are there twice the last ones: which of the list,
-- and the list; the list as it is where there are none.
local function last_places(side, count)
    if not side.list then return {1, count}, side end
    local last, which, kept = {}, {}, {}
    for k, x in ipairs(side.list) do last[x] = k end
    for k, x in ipairs(side.list) do
        if last[x] == k then which[#which + 1], kept[#kept + 1] = k, x end
    end
    return {list = which}, {list = kept}
end

-- What is put into w has its type.
local function fitting(w, value)
    if checks.is_complex(value) and not checks.is_complex(w) then
        fail("assignment", "the value is complex, and the matrix is %s: take " ..
            "real(A), imag(A) or abs(A), or make that one complex", w.dtype)
    end
    return value.dtype == w.dtype and value or value[w.dtype](value)
end

-- Rows i and columns j of the parts become those of a matrix here, k x l.
local function send(w, i, j, A)
    local rows, cols = vector_of(i), vector_of(j)
    local host, p = A:to "cpu", w.p
    pool.tell_with(p, "assignment", function(number)
        local r, c = (number - 1) // p.cols, (number - 1) % p.cols
        local of_rows = cyclic.owned(rows, w.mb, r, p.rows)
        local of_cols = cyclic.owned(cols, w.nb, c, p.cols)
        return host[{of_rows, of_cols}].T:clone()
    end, nil, "set", w.id, i, j, w.dtype)
end

-- A number for processes.
local function number_for(w, value)
    if type(value) ~= "userdata" then return value end
    if not checks.is_complex(w) then
        fail("assignment", "the value is complex, and the matrix is %s", w.dtype)
    end
    return {re = value.real, im = value.imag}
end

local function is_number(x)
    return type(x) == "number" or checks.kind(x) == "complex number"
end

local function assign(D, key, value)
    local what = "assignment"
    local s = state[D]
    local w = parts.check_alive(what, s)
    local i, k, j, l = sides_of(what, s, key)
    if is_number(value) then
        if s.turned == "C" and type(value) == "userdata" then
            value = value:conj()
        end
        if s.turned then i, j = j, i end
        pool.tell(w.p, what, "fill", w.id, i, j, number_for(w, value))
        return
    end
    if not (parts.is(value) or checks.is_matrix(value)) then
        fail(what, "%s is no number or matrix", brief(value))
    end
    if value.ndim == 1 then value = k == 1 and value:row() or value:col() end
    if value.rows ~= k or value.cols ~= l then
        fail(what, "%dx%d does not fit into %dx%d", value.rows, value.cols, k, l)
    end
    if s.turned then
        i, j, value = j, i, s.turned == "C" and value.H or value.T
        k, l = l, k
    end
    value = fitting(w, value)
    local from_rows, from_cols
    from_rows, i = last_places(i, k)
    from_cols, j = last_places(j, l)
    if parts.is(value) then
        local v = settled(what, state[value])
        pool.tell(w.p, what, "assign", w.id, i, j, v.id, from_rows, from_cols)
    else
        send(w, i, j, value[{vector_of(from_rows), vector_of(from_cols)}])
    end
end

-- Where a distributed mask is true.
local function assign_where(D, mask, value)
    local what = "assignment"
    local s, by = state[D], state[mask]
    local w = parts.check_alive(what, s)
    if mask.dtype ~= "bool" or mask.rows ~= D.rows or mask.cols ~= D.cols then
        fail(what, "D[mask] takes a mask of D's shape, such as D:gt(0), not %s " ..
            "%dx%d", mask.dtype, mask.rows, mask.cols)
    elseif not is_number(value) then
        fail(what, "where a mask is true a number is put, not %s", brief(value))
    end
    if s.turned == "C" and type(value) == "userdata" then value = value:conj() end
    by = state[s.turned and mask.T or mask]
    local v = parts.laid_in(what, settled(what, by), w.mb, w.nb)
    pool.tell(w.p, what, "fill_where", w.id, v.id, number_for(w, value))
end

-- --- lines, diagonals --------------------------------------------------------

function methods.gather(D)
    local s = state_of("gather", D)
    local m, n = shape(s)
    return fetch("gather", s, 1, m, 1, n):clone()
end

function methods.clone(D) return block_of(D, {{}, {}}) end

function methods.row(D, i)
    local s = state_of("row", D)
    local m, n = shape(s)
    i = place("row", i, m, "row")
    return fetch("row", s, i, i, 1, n):clone()
end

function methods.col(D, j)
    local s = state_of("col", D)
    local m, n = shape(s)
    j = place("col", j, n, "column")
    return fetch("col", s, 1, m, j, j):clone()
end

-- Elements of a diagonal, that `above` the main one, as a vector here.
function methods.diag(D, above)
    local s = state_of("diag", D)
    local w = parts.check_alive("diag", s)
    local k = to_integer(above or 0)
    if not k then fail("diag", "the diagonal is %s", brief(above)) end
    local m, n = shape(s)
    local count = larger(0, smaller(m + smaller(k, 0), n - larger(k, 0)))
    local own = s.turned and -k or k
    local out = library.zeros(count, {dtype = w.dtype, device = "cpu"})
    pool.tell_with(w.p, "diag", nil, function(link, told_value)
        if told_value[1] == 0 then return end
        local list = link:matrix(told_value[2], told_value[1], 1)
        local at = library.vec(told_value[3], {dtype = "f64", device = "cpu"})
        out[at] = list:reshape(told_value[1])
    end, "diagonal", w.id, larger(0, -own) + 1, larger(0, own) + 1, count)
    return s.turned == "C" and library.conj(out) or out
end

-- --- put together ------------------------------------------------------------

-- Matrices one below the other, or side by side; those here are spread.
local function joined(what, list)
    local is_down, dtype, block = what == "vcat", nil, nil
    for k, x in ipairs(list) do
        if not (parts.is(x) or checks.is_matrix(x)) then
            fail(what, "argument %d is %s, no matrix", k, brief(x))
        end
        if parts.is(x) and not block then block = state[x].where.mb end
    end
    local rows, cols = 0, 0
    for k, x in ipairs(list) do
        local D = parts.spread(x, {block = block})
        list[k] = D
        if k > 1 and (is_down and D.cols ~= cols or
            not is_down and D.rows ~= rows) then
            fail(what, "argument %d is %dx%d, those before it have %d %s", k,
                D.rows, D.cols, is_down and cols or rows,
                is_down and "columns" or "rows")
        end
        rows = is_down and rows + D.rows or D.rows
        cols = is_down and D.cols or cols + D.cols
        dtype = dtype and checks.wider_type({dtype = dtype}, D) or D.dtype
    end
    if dtype == "bool" then dtype = "f32" end
    local p = state[list[1]].where.p
    local w = parts.new_parts(what, p, rows, cols, dtype, block)
    pool.tell(p, what, "zeros", w.id, parts.geometry(w))
    local at = 1
    for _, D in ipairs(list) do
        local v = settled(what, state[D.dtype == dtype and D or D[dtype](D)])
        pool.tell(p, what, "place", w.id, is_down and at or 1,
            is_down and 1 or at, v.id)
        at = at + (is_down and v.m or v.n)
    end
    return new(w)
end

function methods.vcat(...) return joined("vcat", {...}) end
function methods.hcat(...) return joined("hcat", {...}) end

function meta.__concat(x, y)
    if type(x) == "string" or type(y) == "string" then
        return tostring(x) .. tostring(y)
    end
    return joined("A .. B", {x, y})
end

-- --- properties --------------------------------------------------------------

for name, value in pairs{
    rows = function(s) return (shape(s)) end,
    cols = function(s) local _, n = shape(s) return n end,
    shape = function(s) return {shape(s)} end,
    ndim = function() return 2 end,
    dtype = function(s) return s.where.dtype end,
    device = function() return "pool" end,
    T = function(s)
        local now = s.turned
        if now == "C" then
            return map("A.T", "conj", new(s.where))
        end
        return new(s.where, not now and "T" or false)
    end,
    H = function(s)
        local complex = checks.is_complex(s.where)
        if not complex then
            return new(s.where, not s.turned and "T" or false)
        elseif s.turned == "T" then
            return map("A.H", "conj", new(s.where))
        end
        return new(s.where, not s.turned and "C" or false)
    end,
} do
    properties[name] = value
end

function meta.__index(D, key)
    local s = state[D]
    if type(key) == "table" and getmetatable(key) == nil or
        checks.is_matrix(key) then
        return block_of(D, key)
    elseif type(key) == "number" then
        local line = D:row(key)
        return line:reshape(line.cols)
    end
    if methods[key] then return methods[key] end
    if properties[key] then return properties[key](s) end
    if elementwise[key] then
        return function(...) return map(key, key, ...) end
    end
    if parts.is(key) then
        fail("index", "D[mask] of a distributed matrix is not there: D[mask] = x " ..
            "is, and D:gather()[mask:gather()] has its elements here")
    end
    fail("distributed matrix", "there is no %s: D:gather() is the whole matrix here",
        brief(key))
end

function meta.__newindex(D, key, value)
    if parts.is(key) then return assign_where(D, key, value) end
    if checks.is_matrix(key) or type(key) == "table" and
        getmetatable(key) == nil then
        return assign(D, key, value)
    elseif type(key) == "number" then
        return assign(D, {key, {}}, value)
    end
    fail("distributed matrix", "%s is no index: D[{i, j}] = x, D[{rows, " ..
        "columns}] = A, D[mask] = x", brief(key))
end

function meta.__len(D) return (shape(state[D])) end
function meta.__call(D, i, j) return block_of(D, {i, j}) end

function meta.__eq(x, y)
    if not (state[x] and state[y]) then return false end
    local m, n = shape(state[x])
    local r, c = shape(state[y])
    return m == r and n == c and map("==", "eq", x, y):all()
end
