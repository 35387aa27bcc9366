-- Operators, functions of elements and conversions of distributed matrices, each
-- process's part by itself: what is made of several is on the same grid.
local library = ...
local checks = require "lumat.checks"
local parts = require "lumat.distributed_parts"
local pool = require "lumat.pool"
local fail, brief, shape_of = checks.fail, checks.brief, checks.shape_of
local is_matrix, is_distributed = checks.is_matrix, parts.is
local state, shape, shape_text = parts.state, parts.shape, parts.shape_text
local methods, meta, types = parts.methods, parts.meta, parts.types
local new, settled = parts.new, parts.settled
local ipairs, pairs, type, unpack = ipairs, pairs, type, table.unpack

-- A matrix or vector of one row or one column beside m x n.
local function line_of(what, A, m, n)
    if A.ndim == 2 and A.rows == 1 and A.cols == n then return "row" end
    if A.ndim == 2 and A.cols == 1 and A.rows == m then return "col" end
    if A.ndim == 1 then
        fail(what, "a vector beside a distributed matrix of %dx%d: v:row() or " ..
            "v:col() says which way", m, n)
    end
    fail(what, "%s beside a distributed matrix of %dx%d", shape_of(A), m, n)
end

-- name(operands…), of which one at least is distributed.
local function map(what, name, ...)
    local list, first = {...}, nil
    for _, x in ipairs(list) do
        if is_distributed(x) and not first then first = state[x] end
    end
    local m, n = shape(first)
    local base = settled(what, first)
    local line, said = nil, {}
    for i, x in ipairs(list) do
        if is_distributed(x) then
            local s = state[x]
            local r, c = shape(s)
            if r ~= m or c ~= n then
                fail(what, "shapes differ: %dx%d and %s", m, n, shape_text(s))
            end
            local w = s == first and base or parts.laid_in(what,
                settled(what, s), base.mb, base.nb)
            list[i], said[i] = w, {part = w.id}
        elseif is_matrix(x) then
            if x.ndim == 2 and x.rows == m and x.cols == n and
                not (m == 1 or n == 1) then
                local w = parts.laid_in(what, state[parts.spread(x)].where,
                    base.mb, base.nb)
                list[i], said[i] = w, {part = w.id}
            elseif line then
                fail(what, "one row or column at a time beside a distributed " ..
                    "matrix")
            else
                local kind = line_of(what, x, m, n)
                local dtype = types[x.dtype] and x.dtype or "f32"
                line = x.T
                line = library[dtype](line:to "cpu"):clone()
                said[i] = {[kind] = dtype}
            end
        elseif type(x) == "number" or type(x) == "boolean" then
            said[i] = x
        elseif type(x) == "userdata" and checks.kind(x) == "complex number" then
            said[i] = {re = x.real, im = x.imag}
        else
            fail(what, "%s is no distributed matrix, matrix or number", brief(x))
        end
    end
    local w = parts.like(what, base)
    local values = pool.tell_with(base.p, what,
        line and function() return line end, nil, "map", w.id, name, base.id,
        unpack(said))
    w.dtype = values[1]
    return new(w)
end

local operators = {add = "+", sub = "-", mod = "%", div = "/", idiv = "//"}
local names = {add = "add", sub = "sub", mod = "mul", div = "div", idiv = "idiv"}
for event, name in pairs(names) do
    meta["__" .. event] = function(x, y)
        local what = "A " .. operators[event] .. " B"
        if event == "mod" and (type(x) == "number" or type(y) == "number") then
            name = "mod"
        else
            name = names[event]
        end
        return map(what, name, x, y)
    end
end
function meta.__unm(D) return map("-A", "neg", D) end

local function converted(dtype)
    return function(D)
        local s = parts.state_of(dtype, D)
        local from = settled(dtype, s)
        if from.dtype == dtype and not s.turned then return D end
        local w = parts.new_parts(dtype, from.p, from.m, from.n, dtype,
            from.mb, from.nb)
        return parts.told(dtype, w, "convert", from.id, dtype)
    end
end
for dtype in pairs(types) do methods[dtype] = converted(dtype) end

return {map = map}
