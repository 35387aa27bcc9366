-- Matrices of which only products are asked for: dense, sparse, or a function
-- that gives them. An operator has rows, cols, dtype, device; apply(X), the
-- product with n columns, and turned(X), that of the adjoint; matrix, where it is
-- a dense one.
local library = ...
local checks = require "lumat.checks"
local steps = require "lumat.factor_steps"
local fail, is_complex, shape_of = checks.fail, checks.is_complex,
    checks.shape_of
local ipairs = ipairs
local operators = {}

local unit = checks.unit

local function adjoint(A)
    return is_complex(A) and A.H or A.T
end
operators.adjoint = adjoint

function operators.is_function(A)
    return checks.kind(A) ~= "matrix" and checks.kind(A) ~= "sparse matrix"
end

-- What a function gives of columns, checked.
local function checked(what, f, rows, ...)
    local Y = f(...)
    checks.matrix(what, "what the function gives", Y)
    if Y.ndim ~= 2 or Y.rows ~= rows or Y.cols ~= (...).cols then
        fail(what, "the function gives %s of %s, expected %dx%d", shape_of(Y),
            shape_of((...)), rows, (...).cols)
    end
    return Y
end
operators.checked = checked

local function operator_of_function(what, f, rows, cols, options)
    local dtype = options.dtype or "f64"
    return {rows = rows, cols = cols, dtype = dtype,
        device = options.device or library.device(),
        apply = function(X) return checked(what, f, rows, X, false) end,
        turned = function(Y) return checked(what, f, cols, Y, true) end}
end

-- Of a matrix, dense or sparse; elements have to be finite, and are no masks.
function operators.of_matrix(what, A)
    local is_dense = checks.kind(A) == "matrix"
    if is_dense and A.ndim ~= 2 then
        fail(what, "needs a matrix, not %s", shape_of(A))
    end
    if is_dense and A.dtype == "bool" then A = A:f32() end
    local row, col, apart, largest
    if is_dense then row, col, apart, largest = steps.look(A, true) end
    if row then
        checks.refuse_odd(what, "A", row, col, checks.figure("%s", A(row, col)))
    end
    return {rows = A.rows, cols = A.cols, dtype = A.dtype, device = A.device,
        matrix = is_dense and A or nil,
        is_symmetric = apart and A.rows == A.cols and
            not checks.is_asymmetric(A, apart, largest),
        apply = function(X) return A * X end,
        turned = function(Y) return adjoint(A) * Y end}
end

-- What is told of a function's A only; a matrix has its own.
local sizes = {"n", "rows", "cols"}

-- Refuses options of functions where A is a matrix, which would not hear them.
function operators.refuse_told(what, A, options)
    if operators.is_function(A) then return end
    for _, name in ipairs(sizes) do
        if options[name] then
            fail(what, "%s is the size of a function's A; this one has %d",
                name, name == "cols" and A.cols or A.rows)
        end
    end
    if options.dtype then
        fail(what, "dtype is that of a function's A; of this one write A:%s()",
            options.dtype)
    end
    if options.device then
        fail(what, "device is that of a function's A; of this one write " ..
            "A:to(%q)", options.device)
    end
end

-- rows, cols: of a function, whose options may tell dtype and device.
function operators.of(what, A, rows, cols, options)
    if not operators.is_function(A) then return operators.of_matrix(what, A) end
    if not rows or not cols then
        fail(what, "of a function the size has to be told: %s",
            what == "eigs" and "{n = …}" or what == "lsqr" and "{cols = …}" or
                "{rows = …, cols = …}")
    end
    return operator_of_function(what, A, rows, cols, options)
end

return operators
