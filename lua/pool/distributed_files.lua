-- Distributed matrices from files and into them: each process reads or writes
-- its own blocks, so that no machine needs room for the whole matrix. The file
-- that is written is there whole or not at all: the prompt makes it under
-- another name, and gives it its own when all have written.
local library = ...
local checks = require "lumat.checks"
local npy = require "lumat.npy_parts"
local is_dry = require "lumat.factor_steps".is_dry
local parts = require "lumat.distributed_parts"
local pool = require "lumat.pool"
local fail, brief, methods = checks.fail, checks.brief, parts.methods
local match, next, type = string.match, next, type
local files = {}

local function check_path(what, path)
    if type(path) ~= "string" or path == "" then
        fail(what, "a file's name is %s, expected a string such as \"A.npy\"",
            brief(path))
    end
end

function files.dload(path, options)
    check_path("dload", path)
    local p = pool.running("dload")
    options = options or {}
    local found = npy.header(path)
    local dtype = options.dtype or found.dtype
    if dtype == "bool" then dtype = "f32" end
    if not parts.types[dtype] then
        fail("dload", "processes have no %s, only f32, f64, c64 and c128",
            brief(dtype))
    end
    local w = parts.new_parts("dload", p, found.rows, found.cols, dtype,
        pool.check_block("dload", options.block))
    return parts.told("dload", w, "load", found.path, found.bytes,
        options.dtype and dtype, w.m, w.n, w.mb, w.nb)
end

local function save(D, path, options)
    local s = parts.state_of("save", D)
    check_path("save", path)
    if not match(path, "%.npy$") then
        return library.save(D:gather(), path, options)
    elseif next(checks.options("save", options)) ~= nil then
        fail("save", "a .npy file takes no options")
    end
    local w = parts.settled("save", s)
    if is_dry() then return end
    local file <close>, temporary, head, bytes = npy.create(path, w.dtype, w.m,
        w.n)
    pool.tell(w.p, "save", "save", w.id, temporary, head, bytes)
    file:commit()
end
methods.save = save
parts.meta.__save = checks.placed(save)

return files
