-- How good is the solution of A x = b? What the condition of A costs, what f64
-- has over f32, and how refinement gets f64's answer from f32's factors, step by
-- step. b is made of an x that is known, so that the error is.
--   lumat lesson_solve.lua [n]          (200)
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"
local n = lessons.sizes("n", 200)
warn "@off" -- solve would warn of what this lesson is about
local f64 = {dtype = "f64"}
local unit = {f32 = 2.0 ^ -24, f64 = 2.0 ^ -53} -- what rounding may be off by

local function error_of(x, exact)
    return norm(x:f64() - exact) / norm(exact)
end

-- How far A is from one that x solves: 1 is as far as rounding A would move it.
local function backward(A, x, b, dtype)
    return norm(b - A * x:f64()) / (norm(A, 2) * norm(x:f64())) / unit[dtype]
end

-- --- condition ---------------------------------------------------------------

-- Solving can turn a relative change of A or b into one of x that is `cond`
-- times as large; and rounding alone changes A by a unit. So of 16 digits
-- log10(cond) may go, of f32's 7 as many.
local function condition()
    print("Hilbert matrices, whose condition grows by 30 a row: A = hilb(n), " ..
        "x = ones(n)")
    print(("%3s %10s %12s %12s %12s %12s"):format("n", "cond(A)", "f32 error",
        "cond * unit", "f64 error", "cond * unit"))
    local within = true
    for size = 2, 12, 2 do
        local cells = {}
        local wide = hilb(size, f64)
        local c = cond(wide)
        for _, dtype in ipairs{"f32", "f64"} do
            local A = dtype == "f32" and wide:f32() or wide
            local x = ones(size, {dtype = dtype})
            local off = error_of(solve(A, A * x), x:f64())
            local allowed = 10 * size * c * unit[dtype]
            within = within and (off <= allowed or allowed > 1)
            cells[#cells + 1], cells[#cells + 2] = off, c * unit[dtype]
        end
        print(("%3d %10.1e %12.1e %12.1e %12.1e %12.1e"):format(size, c,
            table.unpack(cells)))
    end
    lessons.check("errors stay below what the condition allows", within,
        "one is larger")
end

-- The answer is bad, the method is not: b - A x is as small as rounding A once.
local function good_method()
    local A = hilb(12, f64)
    local x = solve(A, A * ones(12, f64))
    local far = backward(A, x, A * ones(12, f64), "f64")
    print(("\nhilb(12) in f64: x is off by %.1e, yet it solves a matrix that " ..
        "is %.2g\nroundings from A: the question is hard, not its answer wrong")
        :format(error_of(x, ones(12, f64)), far))
    lessons.check("the backward error is a few roundings", far < 100,
        ("it is %g"):format(far))
end

-- --- refinement --------------------------------------------------------------

-- n x n in f64, of singular values from 1 down to 1 / c.
local function matrix_of(c)
    local Q = qr(randn(n, n, {seed = 1, dtype = "f64"})).Q
    local P = qr(randn(n, n, {seed = 2, dtype = "f64"})).Q
    local values = exp(linspace(0, -math.log(c), n, f64))
    return Q * diag(values) * P
end

-- Factors cost n^3, a step n^2: so A is factored in f32, once, and each step
-- asks in f64 what is left of b, and the factors what is missing of x. What the
-- factors answer is off by cond * f32's unit: that is what a step gains.
local function refine(c)
    local A, exact = matrix_of(c), ones(n, f64)
    local b = A * exact
    local F = lu(A:f32())
    local x = zeros(n, f64)
    print(("\ncondition %.0e: a step should gain a factor of %.0e")
        :format(c, 1 / (c * unit.f32)))
    print(("  %4s %12s %22s"):format("step", "error of x",
        "|b - A x| in roundings"))
    for step = 1, 8 do
        local left = b - A * x
        local size = norm(left, "inf")
        if size == 0 then break end
        x = x + F:solve((left / size):f32()):f64() * size
        local far = backward(A, x, b, "f64")
        print(("  %4d %12.1e %22.2g"):format(step, error_of(x, exact), far))
        if far < 1 then break end
    end
    return backward(A, x, b, "f64"), A, b
end

condition()
good_method()
for _, c in ipairs{1e2, 1e4, 1e6} do
    local far = refine(c)
    lessons.check("as good as f64's own solution", far < 10,
        ("%g roundings are left"):format(far))
end
local far, A, b = refine(1e10)
lessons.check("f32's factors are no help beyond a condition of 1e8", far > 10,
    "they were")

-- --- what solve does ---------------------------------------------------------

-- solve does all this on a GPU, says what it did, and goes back to f64 where f32
-- is no help.
local x, told = solve(A, b, {info = true})
print(("\nsolve(A, b, {info = true}) of the last one: kind %s, method %s, " ..
    "%d steps,\nrcond %.1e, backward error %.1e"):format(told.kind, told.method,
    told.steps, told.rcond, told.error))
lessons.check("solve", backward(A, x, b, "f64") < 10, "it is not as good")
lessons.finish()
