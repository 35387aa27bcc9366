-- What the library's functions in Lua share: errors with the caller's place,
-- checked arguments, tables that show themselves.
local _, _, _, private = ...
local checks = {}
local error, getmetatable, ipairs, next, pcall = error, getmetatable, ipairs,
    next, pcall
local select, setmetatable, tostring, type, xpcall = select, setmetatable,
    tostring, type, xpcall
local concat, sort = table.concat, table.sort
local find, format, gsub, huge, match = string.find, string.format,
    string.gsub, math.huge, string.match
local debug, require = debug, require
local kind = require "lumat.texts".kind
checks.kind = kind

-- Copies, so that nobody changes them from outside.
function checks.copied(t)
    local c = {}
    for key, value in next, t do c[key] = value end
    return c
end

-- What an object hands out of what it keeps: a matrix, or a list with matrices
-- in it, is a copy, so that nobody who writes to it changes the object.
function checks.handed_out(x)
    if type(x) == "userdata" then return x:clone() end
    if type(x) ~= "table" or getmetatable(x) then return x end
    local c = {}
    for key, value in next, x do c[key] = checks.handed_out(value) end
    return c
end

-- Is what a pcall caught the end of a call that the user stopped? It is passed
-- on then.
function checks.is_interrupt(message)
    return private.is_interrupt(message)
end

-- f as its callers see it: an error raised in a file of the library, or by a
-- function called from there, has the place of f's caller.
local files = private.files
local function placed(f)
    local function finish(ok, ...)
        if ok then return ... end
        local message = ...
        if type(message) == "string" then
            local file, text = match(message, "^([%a_]+):%d+: (.*)$")
            if files[file] then
                -- a function in C between, as save is, has no line
                local caller = debug.getinfo(2, "Sf")
                local is_between = caller and caller.what == "C" and
                    caller.func ~= pcall and caller.func ~= xpcall
                error(text, is_between and 3 or 2)
            end
        end
        error(message, 0)
    end
    return function(...)
        return finish(pcall(f, ...))
    end
end

checks.placed = placed

-- A function of a file that is loaded when it is first called.
local function lazily(file, name)
    local f
    return function(...)
        f = f or require("lumat." .. file)[name]
        return f(...)
    end
end

-- row{…} for what stands in `file`, which has the functions by their names: a
-- member, as experiment.run, and what is no function are told of only.
function checks.rows(file)
    return function(t)
        local is_told = t.is_table or find(t.name, ".", 1, true)
        private.row(t, not is_told and lazily(file, t.name) or nil)
    end
end

-- Names of Lua's own.
checks.luas_own = {}
for name in next, _G do checks.luas_own[name] = true end

-- What draws charts of matrices.
debug.getregistry()["lumat.draw"] = lazily("matrix_charts", "draw")

-- Raises "what: format" with the values.
local function fail(what, text, ...)
    error(what .. ": " .. format(text, ...))
end
checks.fail = fail

-- What a pcall caught, without the place in a file of the library: whoever asked
-- for it says where that was.
function checks.without_place(message)
    return (gsub(tostring(message), "^[%a_]+:%d+: ", ""))
end

function checks.raise_again(message)
    error(checks.without_place(message), 0)
end

-- A number in a format such as "%.3g"; NaN and infinities as matrices show
-- them.
local function figure(shape, x)
    if x ~= x then return "NaN" end
    if x == huge or x == -huge then return x > 0 and "Inf" or "-Inf" end
    return format(shape, x)
end
checks.figure = figure

-- How a message names a wrong value.
local function brief(x)
    if type(x) == "number" then return figure("%s", x) end
    if x == nil then return tostring(x) end
    if type(x) == "string" and #x <= 40 then return format("%q", x) end
    return "a " .. kind(x)
end
checks.brief = brief

function checks.shape_of(A)
    if type(A) == "number" then return "a number" end
    return A.ndim == 1 and format("vector %d", A.rows) or
        format("%dx%d", A.rows, A.cols)
end

function checks.is_matrix(x)
    return type(x) == "userdata" and getmetatable(x) == "matrix"
end

-- Are its elements complex?
function checks.is_complex(A)
    return A.dtype == "c64" or A.dtype == "c128"
end

-- Numbers that can be sorted.
function checks.ordered(what, A)
    if checks.is_complex(A) then
        fail(what, "complex numbers have no order: take abs(A), real(A) or " ..
            "imag(A) first")
    end
end

-- Have they 8 bytes a number?
function checks.is_wide(A)
    return A.dtype == "f64" or A.dtype == "c128"
end

-- In the type of 8 bytes a number.
function checks.as_wide(A)
    return checks.is_complex(A) and A:c128() or A:f64()
end

-- Of each type: the distance from 1 to the next number.
checks.unit = {f32 = 2.0 ^ -23, f64 = 2.0 ^ -52, c64 = 2.0 ^ -23,
    c128 = 2.0 ^ -52}

-- A factorisation cannot go on: an element is `text`.
function checks.refuse_odd(what, name, row, col, text)
    fail(what, "%s[{%d, %d}] is %s; it needs finite numbers", name, row, col,
        text)
end

-- Is A, whose largest element is so large, as far from its transpose, or of
-- complex numbers from its conjugate one, as no rounding in a product leaves it?
function checks.is_asymmetric(A, apart, largest)
    return apart > 100 * A.rows * checks.unit[A.dtype] * largest
end

-- It is, and should not be; any: what takes such a matrix, or nil.
function checks.refuse_asymmetry(what, name, A, apart, any)
    local kind, turned = "symmetric", name .. ".T"
    if checks.is_complex(A) then kind, turned = "Hermitian", name .. ".H" end
    fail(what, "the matrix is not %s: %s and %s differ by %.3g; (%s + " ..
        "%s) / 2 is%s", kind, name, turned, apart, name, turned,
        any and ", and " .. any .. " takes any" or "")
end

-- The narrowest type of real or complex numbers that has A's and B's.
function checks.wider_type(A, B)
    local is_wide = checks.is_wide(A) or checks.is_wide(B)
    if checks.is_complex(A) or checks.is_complex(B) then
        return is_wide and "c128" or "c64"
    end
    return is_wide and "f64" or "f32"
end

function checks.is_sparse(x)
    return type(x) == "userdata" and getmetatable(x) == "sparse matrix"
end

function checks.matrix(what, name, A)
    if checks.is_sparse(A) then
        fail(what, "%s is a sparse matrix; write full(%s)", name,
            match(name, "^%w+$") or "S")
    end
    if not checks.is_matrix(A) then
        fail(what, "%s is %s, expected a matrix", name, brief(A))
    end
    if A.device == "none" then fail(what, "%s has been freed", name) end
end

-- Rows, columns and inner dimension of A * B; vectors act as a row on the
-- left and a column on the right.
function checks.sizes(A, B)
    return A.ndim == 1 and 1 or A.rows, B.ndim == 1 and 1 or B.cols,
        A.ndim == 1 and A.rows or A.cols
end

-- A and B are operands of a product; returns the shape of A * B. A may be
-- sparse.
function checks.product(what, A, B)
    if not checks.is_sparse(A) then checks.matrix(what, "A", A) end
    checks.matrix(what, "B", B)
    local rows, cols, inner = checks.sizes(A, B)
    if inner ~= B.rows then
        fail(what, "inner dimensions differ (%d and %d): A is %s, B is %s",
            inner, B.rows, checks.shape_of(A), checks.shape_of(B))
    end
    if A.ndim == 1 and B.ndim == 1 then return "a number" end
    return (A.ndim == 1 or B.ndim == 1) and
        format("vector %d", rows * cols) or format("%dx%d", rows, cols)
end

-- The options, checked by the row of that name; an empty table for none.
function checks.options(name, options)
    if options == nil then return {} end
    if type(options) ~= "table" or getmetatable(options) then
        fail(match(name, "[^.]*$"), "the options are %s, expected a plain table",
            brief(options))
    end
    private.check_options(name, options)
    return options
end

-- "1 point", "2 points"; "2 processes" where that is given, too
function checks.plural(n, what, many)
    return format("%d %s", n, n == 1 and what or many or what .. "s")
end

-- A method of `name`, placed, that refuses what it has no name for: `object` is what
-- it is called on, as D.
function checks.method(name, object, f)
    local info = debug.getinfo(f, "u")
    local most = info.nparams
    if info.isvararg then return placed(f) end
    return placed(function(...)
        for i = most + 1, select("#", ...) do
            local given = (select(i, ...))
            if given ~= nil then
                fail(name, "%s:%s takes %s, not %s", object, name, most == 1 and
                    "no arguments" or checks.plural(most - 1, "argument"),
                    brief(given))
            end
        end
        return f(...)
    end)
end

-- A table that shows itself as text, also when a session brings it back.
function checks.shown(fields, text)
    setmetatable(fields, {__tostring = function() return text end})
    return require "lumat.kept".note(fields, "shown")
end

package.loaded["lumat.checks"] = checks
