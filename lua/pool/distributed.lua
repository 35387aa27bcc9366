-- Matrices that lie in parts on the processes of a pool: how they are made. What
-- they are is in distributed_parts.lua, what they do in the files that are
-- joined here.
local library = ...
local checks = require "lumat.checks"
local elementwise = require "lumat.elementwise"
local parts = require "lumat.distributed_parts"
local pool = require "lumat.pool"
local draws = require "lumat.statistics_steps"
local fail, brief = checks.fail, checks.brief
local told, geometry = parts.told, parts.geometry
local ipairs, pairs, require, type = ipairs, pairs, require, type
local distributed = {spread = parts.spread}

for _, subject in ipairs{"elements", "reductions", "products", "checks",
    "race", "indices", "files", "shown"} do
    require("lumat.distributed_" .. subject)
end
distributed.dload = require "lumat.distributed_files".dload

local function request(what, m, n, options)
    if type(n) == "table" then n, options = nil, n end
    n = n or m
    local p = pool.running(what)
    options = options or {}
    local dtype = options.dtype or library.default_dtype()
    if not parts.types[dtype] then
        fail(what, "processes have no %s, only f32, f64, c64 and c128",
            brief(dtype))
    end
    if m > 2 ^ 31 - 1 or n > 2 ^ 31 - 1 then
        fail(what, "%dx%d is more rows or columns than ScaLAPACK counts", m, n)
    end
    return parts.new_parts(what, p, m, n, dtype,
        pool.check_block(what, options.block)), options
end

local function made_of(what, name, m, n, options)
    local w = request(what, m, n, options)
    return told(what, w, name, geometry(w))
end

function distributed.dzeros(m, n, options)
    return made_of("dzeros", "zeros", m, n, options)
end

function distributed.deye(m, n, options)
    return made_of("deye", "eye", m, n, options)
end

local function drawn(what, kind, m, n, options)
    local w, given = request(what, m, n, options)
    local seed, call = draws.next_draw(given.seed and {seed = given.seed} or nil)
    local low = given.low or given.mean or 0
    local high = given.high or given.std or 1
    local m_, n_, mb, nb, dtype = geometry(w)
    return told(what, w, "random", m_, n_, mb, nb, dtype, kind, seed, call, low,
        high)
end

function distributed.drand(m, n, options)
    return drawn("drand", "uniform", m, n, options)
end

function distributed.drandn(m, n, options)
    return drawn("drandn", "normal", m, n, options)
end

row{
    name = "dzeros",
    takes = "m: size, n: size {dtype, block} or n: size {dtype, block}",
    gives = "distributed",
    group = "pools",
    example = "pool.count() == 0 or " ..
        "dzeros(3):sum() == 0",
    result = "true",
    help = "Zeros that lie in parts on the processes of the pool, in blocks " ..
        "of the pool's size or of block x block.",
    options = {{"block", "count", false, "rows and columns of a block"}},
}
row{
    name = "deye",
    takes = "m: size, n: size {dtype, block} or n: size {dtype, block}",
    gives = "distributed",
    group = "pools",
    example = "pool.count() == 0 or " ..
        "deye(3):trace() == 3",
    result = "true",
    help = "The unit matrix, in parts on the processes of the pool.",
    options = {{"block", "count", false, "rows and columns of a block"}},
}
row{
    name = "drand",
    takes = "m: size, n: size {seed, low, high, dtype, block} or n: size " ..
        "{seed, low, high, dtype, block}",
    gives = "distributed",
    group = "pools",
    example = "pool.count() == 0 or " ..
        "drand(3, {seed = 1}):gather() == rand(3, 3, {seed = 1})",
    result = "true",
    help = "Uniform random numbers in parts on the processes of the pool: " ..
        "those that rand gives, element by element.",
    options = {{"low", "number", "0", "the least number"},
        {"high", "number", "1", "the bound above, not reached"},
        {"block", "count", false, "rows and columns of a block"}},
}
row{
    name = "drandn",
    takes = "m: size, n: size {mean, std, seed, dtype, block} or n: size " ..
        "{mean, std, seed, dtype, block}",
    gives = "distributed",
    group = "pools",
    example = "pool.count() == 0 or " ..
        "drandn(3, {seed = 1}):gather() == randn(3, 3, {seed = 1})",
    result = "true",
    help = "Normal random numbers in parts on the processes of the pool: " ..
        "those that randn gives, element by element.",
    options = {{"block", "count", false, "rows and columns of a block"}},
}
row{
    name = "spread", method = true,
    takes = "A: matrix {block}",
    gives = "distributed",
    group = "pools",
    example = "pool.count() == 0 or " ..
        "spread(ones(3, 3)):sum(1) == full(1, 3, 3)",
    result = "true",
    help = "A's elements in parts on the processes of the pool, which compute " ..
        "with them as with a matrix: D * E, D + 1, D:sum(1), D:solve(b), " ..
        "D:lu(), D:eigh(). D:gather() brings them back, D[{i, j}] one; " ..
        "D[{rows, columns}] and D[rows], as of a matrix, are copies, distributed " ..
        "as well, and can be assigned.",
    options = {{"block", "count", false, "rows and columns of a block"}},
}

row{
    name = "dload",
    takes = "path: data {dtype, block}",
    gives = "distributed",
    group = "pools",
    example = "pool.count() == 0 or " ..
        "(function() drand(3):save \"/tmp/lumat-example.npy\" return " ..
        "dload(\"/tmp/lumat-example.npy\").rows end)() == 3",
    result = "true",
    help = "The matrix in a .npy file, in parts on the processes of the pool: " ..
        "each reads its own blocks, and the file has to be seen by all of " ..
        "them. Integers and f16 become what load makes of them, a vector a " ..
        "column. D:save(\"A.npy\") writes it in the same way; other files " ..
        "come by spread(load(path)).",
    options = {{"block", "count", false, "rows and columns of a block"}},
}

-- --- joined ------------------------------------------------------------------

for name, f in pairs(parts.methods) do
    parts.methods[name] = checks.method(name, "D", f)
end
local meta = parts.meta
meta.__name, meta.__metatable = "distributed matrix", "distributed matrix"
meta.__members = checks.copied(parts.methods)
for name in pairs(parts.properties) do meta.__members[name] = true end
for name in pairs(elementwise) do meta.__members[name] = true end
for _, event in ipairs{"__add", "__sub", "__mod", "__div", "__idiv", "__mul", "__unm",
    "__pow", "__index", "__newindex", "__call", "__eq", "__concat"} do
    meta[event] = checks.placed(meta[event])
end

return distributed
