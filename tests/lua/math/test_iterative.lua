-- Iterative solvers: systems of textbooks by each method, of each type, as a
-- matrix, a sparse one and a function; preconditions; what is told of those that
-- do not converge, and what is refused.
local lu = require "luaunit"
local t = require "common"
local nan, raises = t.nan, t.raises
local f64 = {dtype = "f64"}
local solvers = {cg = cg, minres = minres, gmres = gmres, bicgstab = bicgstab,
    lsqr = lsqr}
local square = {"cg", "minres", "gmres", "bicgstab"}

-- A sparse matrix of a grid of n x n nodes, by the weight of a node and those of
-- its neighbours to the left, right, above and below.
local function grid(n, own, left, right, up, down, like)
    local i, j, v = {}, {}, {}
    local function put(row, col, x)
        i[#i + 1], j[#j + 1], v[#v + 1] = row, col, x
    end
    for y = 0, n - 1 do
        for x = 0, n - 1 do
            local k = y * n + x + 1
            put(k, k, own)
            if x > 0 then put(k, k - 1, left) end
            if x < n - 1 then put(k, k + 1, right) end
            if y > 0 then put(k, k - n, up) end
            if y < n - 1 then put(k, k + n, down) end
        end
    end
    return sparse(i, j, v, n * n, n * n, like or f64)
end

local function poisson(n, like)
    return grid(n, 4, -1, -1, -1, -1, like)
end

local function convection(n)
    return grid(n, 4, -1.6, -0.4, -1.3, -0.7)
end

local function all_near(x, expected, tolerance)
    lu.assertIsTrue((x - vec(expected, f64)):abs():max() <= tolerance)
end

local function relative(A, x, b)
    return (b - A * x):norm() / b:norm()
end

TestIterative = {}

-- Poisson's equation on a square.
function TestIterative:test_poisson()
    local A, b = poisson(20), randn(400, {dtype = "f64", seed = 5})
    local most = {cg = 75, minres = 75, gmres = 160, bicgstab = 60, lsqr = 260}
    for name, solve in pairs(solvers) do
        local x, told = solve(A, b, {info = true})
        lu.assertIsTrue(told.converged, name)
        lu.assertIsTrue(relative(A, x, b) <= 1.01e-10, name)
        t.near(told.residual, relative(A, x, b), 1e-12)
        lu.assertIsTrue(told.steps <= most[name], name .. told.steps)
        lu.assertEquals(told.history.shape, {told.steps + 1})
        lu.assertEquals(told.history[1], 1.0)
        lu.assertIsTrue(told.history[-1] <= 1e-10)
        lu.assertIsNil(told.trouble)
        lu.assertIsTrue(solve(A, b) == x)
        lu.assertIsTrue(relative(A, solve(full(A), b), b) <= 1e-9)
        local x32 = solve(poisson(20, {dtype = "f32"}), b:f32())
        lu.assertEquals(x32.dtype, "f32")
        lu.assertIsTrue(relative(A, x32:f64(), b) <= 3e-5)
        lu.assertEquals(solve(poisson(20, {dtype = "f32"}), b).dtype, "f64")
    end
end

function TestIterative:test_functions()
    local A, b = poisson(9), ones(81, f64)
    for name, solve in pairs(solvers) do
        local x = solve(A, b)
        local same = solve(function(v) return A * v end, b,
            name == "lsqr" and {cols = 81} or nil)
        lu.assertIsTrue((x - same):norm() <= 1e-9 * x:norm(), name)
    end
    raises(function() lsqr(function(v) return v end, b) end, "lsqr", "cols")
    raises(function() lsqr(A, b, {cols = 81}) end, "size of a function's A")
end

function TestIterative:test_unsymmetric()
    local A, b = convection(20), randn(400, {dtype = "f64", seed = 6})
    for _, name in ipairs{"gmres", "bicgstab", "lsqr"} do
        local x, told = solvers[name](A, b, {info = true})
        lu.assertIsTrue(told.converged and relative(A, x, b) <= 1.01e-10, name)
    end
    raises(function() cg(A, b, {steps = 30}) end, "A is not symmetric")
    raises(function() minres(full(A), b, {steps = 30}) end,
        "A is not symmetric")
end

function TestIterative:test_indefinite()
    local A = grid(12, 1.3, -1, -1, -1, -1)
    local b = randn(144, {dtype = "f64", seed = 7})
    local x, told = minres(A, b, {info = true})
    lu.assertIsTrue(told.converged and relative(A, x, b) <= 1.01e-10)
    lu.assertIsTrue(told.steps <= 250)
    raises(function() cg(A, b) end, "not positive definite", "minres or gmres")
    local _, of_cg = cg(A, b, {info = true})
    lu.assertIsFalse(of_cg.converged)
    lu.assertStrContains(of_cg.trouble, "not positive definite")
end

function TestIterative:test_complex()
    local re = randn(40, 40, {dtype = "f64", seed = 1})
    local im = randn(40, 40, {dtype = "f64", seed = 2})
    local A = complex(re, im)
    local H = A * A.H / 40 + eye(40, f64)
    local b = complex(ones(40, f64), randn(40, {dtype = "f64", seed = 3}))
    for name, solve in pairs(solvers) do
        lu.assertIsTrue(relative(H, solve(H, b), b) <= 1e-9, name)
        lu.assertIsTrue(relative(H, solve(sparse(H), b, {precondition =
            "jacobi"}), b) <= 1e-9, name)
    end
    local G = A / 20 + eye(40, f64) * 3
    for _, name in ipairs{"gmres", "bicgstab", "lsqr"} do
        lu.assertIsTrue(relative(G, solvers[name](G, b), b) <= 1e-9, name)
    end
    -- a real matrix, a complex right side
    lu.assertEquals(cg(poisson(3), b[{{1, 9}}]).dtype, "c128")
end

function TestIterative:test_columns()
    local A = poisson(10)
    local B = randn(100, 3, {dtype = "f64", seed = 8})
    B[{{}, 2}] = 0
    for name, solve in pairs(solvers) do
        local X, told = solve(A, B, {info = true})
        lu.assertEquals(X.shape, {100, 3})
        lu.assertIsTrue((A * X - B):norm() <= 1e-9 * B:norm(), name)
        lu.assertEquals({told.steps.shape, told.steps[2], told.converged},
            {{3}, 0, true})
        lu.assertEquals(told.history.cols, 3)
        lu.assertIsTrue(solve(A, B[{{}, 1}]) == X[{{}, 1}])
        lu.assertEquals(solve(A, B[{{}, {1, 1}}]).shape, {100, 1})
        local _, again = solve(A, B, {start = X, info = true})
        t.equals(again.steps, {0, 0, 0})
    end
    raises(function() cg(A, B, {steps = 3}) end, "column 1 of b", "3 steps")
end

-- Of rows of very different sizes, which the precondition knows.
function TestIterative:test_preconditions()
    local d = exp2(linspace(0, 15, 100, f64))
    local p = range(1, 100, 1, f64)
    local D = sparse(p, p, d:sqrt(), 100, 100)
    local A, b = D * poisson(10) * D, ones(100, f64)
    for name, solve in pairs(solvers) do
        local _, plain = solve(A, b, {info = true, steps = 2000})
        local ways = {"jacobi", diag(4 * d)}
        if name ~= "lsqr" then
            ways[3] = function(r) return r / (4 * d):col() end
            ways[4] = chol(full(A))
            ways[5] = D * D
        else
            ways[3] = function(r) return r / (4 * d):col() end
        end
        for k, M in ipairs(ways) do
            local x, told = solve(A, b, {info = true, precondition = M})
            lu.assertIsTrue(told.converged, name .. k)
            lu.assertIsTrue(told.steps < plain.steps / 2, name .. k)
            lu.assertIsTrue(name == "lsqr" or relative(A, x, b) <= 1.01e-10)
        end
    end
    raises(function() cg(A, b, {precondition = "jacoby"}) end, "jacobi")
    raises(function() cg(A, b, {precondition = function(r) return -r end}) end,
        "the precondition is not positive definite")
    raises(function() cg(mat{{0, 1}, {1, 0}}, vec{1, 2}, {precondition =
        "jacobi"}) end, "A(1, 1) is 0")
    raises(function() cg(function(v) return v end, b, {precondition =
        "jacobi"}) end, "elements of A", "function")
    raises(function() cg(A, b, {precondition = chol(eye(3))}) end, "3x3",
        "100x100")
    for _, M in ipairs{eye(3), speye(3), ones(100, 3)} do
        raises(function() cg(A, b, {precondition = M}) end,
            "cg: the precondition is", "x3, expected 100x100")
    end
    lu.assertEquals(lsqr(A, b, {precondition = D * D, info = true}).shape, {100})
end

-- Incomplete factors, by name and as objects, of each type; steps are those of
-- what is exact where nothing is left out.
function TestIterative:test_incomplete_factors()
    for _, dtype in ipairs{"f32", "f64", "c64", "c128"} do
        local A = poisson(20)[dtype](poisson(20))
        local part = ({c64 = "f32", c128 = "f64"})[dtype] or dtype
        local b = randn(400, {dtype = part, seed = 5})
        for name, solve in pairs(solvers) do
            local _, plain = solve(A, b, {info = true})
            for k, M in ipairs{"ilu", "ichol", ilu(A), ichol(A)} do
                local x, told = solve(A, b, {info = true, precondition = M})
                lu.assertIsTrue(told.converged, name .. k)
                lu.assertIsTrue(told.steps < plain.steps * 0.7, name .. k)
                lu.assertIsTrue(name == "lsqr" or relative(A, x, b) <=
                    (A.dtype == part and 1 or 2) * told.residual + 1e-4 *
                    (part == "f32" and 1 or 1e-5))
            end
        end
    end
    local T = spdiags({-1, 3, -1}, {-1, 0, 1}, 50, 50, f64)
    for name, solve in pairs(solvers) do
        local _, told = solve(T, ones(50, f64), {info = true, precondition = "ilu"})
        lu.assertIsTrue(told.steps <= 2, name)
    end
end

function TestIterative:test_incomplete_factors_of_unsymmetric()
    local A, b = convection(20), randn(400, {dtype = "f64", seed = 6})
    for _, name in ipairs{"gmres", "bicgstab", "lsqr"} do
        local _, plain = solvers[name](A, b, {info = true})
        local x, told = solvers[name](A, b, {info = true, precondition = "ilu"})
        lu.assertIsTrue(told.steps < plain.steps / 2, name)
        lu.assertIsTrue(relative(A, x, b) <= 1.01e-10, name)
    end
    -- factors that are whole, of sparse and dense matrices, turned as well
    for _, F in ipairs{_G.lu(A), _G.lu(full(A)), _G.lu(A:f32())} do
        local _, told = lsqr(A, b, {info = true, precondition = F})
        lu.assertIsTrue(told.converged and told.steps <= 6)
    end
    raises(function() gmres(full(A), b, {precondition = "ilu"}) end,
        "\"ilu\" is of sparse matrices", "precondition = A")
    raises(function() gmres(function(v) return A * v end, b, {precondition =
        "ilu"}) end, "ilu(S)")
    raises(function() cg(A, b, {precondition = "ichol"}) end,
        "not symmetric")
    raises(function() lsqr(sparse({1}, {1}, 1, 3, 2), ones(3), {precondition =
        "ichol"}) end, "column 2 has none")
end

TestLsqr = {}

function TestLsqr:test_least_squares()
    local A = randn(60, 20, {dtype = "f64", seed = 1})
    local b = randn(60, {dtype = "f64", seed = 2})
    for _, M in ipairs{A, sparse(A)} do
        for _, way in ipairs{"none", "jacobi"} do
            local x, told = lsqr(M, b, {info = true, precondition =
                way ~= "none" and way or nil})
            lu.assertIsTrue((x - lstsq(A, b)):norm() <= 1e-8 * x:norm())
            lu.assertIsTrue(told.converged and told.slope <= 1e-10)
            lu.assertIsTrue(told.residual > 0.1)
        end
    end
    -- fewer rows than columns: the shortest of all solutions
    local x = lsqr(A.T, b[{{1, 20}}])
    lu.assertIsTrue((x - lstsq(A.T, b[{{1, 20}}])):norm() <= 1e-8 * x:norm())
    local f = function(v, turned) return (turned and A.T or A) * v end
    lu.assertIsTrue((lsqr(f, b, {cols = 20}) - lstsq(A, b)):norm() <= 1e-8)
    -- nothing to be gained at all
    t.equals(lsqr(mat{{1, 0}, {0, 1}, {0, 0}}, vec{0, 0, 5}), {0, 0})
    raises(function() cg(A, b) end, "60x20", "lsqr")
    raises(function() lsqr(A, b[{{1, 20}}]) end, "60x20", "vector 20")
end

TestBreakdown = {}

function TestBreakdown:test_singular()
    local S = mat({{1, 2}, {2, 4}}, f64)
    for _, name in ipairs(square) do
        local x = solvers[name](S, vec({1, 2}, f64))
        lu.assertIsTrue((S * x - vec({1, 2}, f64)):norm() <= 1e-9, name)
        raises(function() solvers[name](S, vec({1, 3}, f64)) end, name,
            "did not converge", "residual")
    end
    raises(function() minres(S, vec({1, 3}, f64)) end, "singular", "range")
    local x = lsqr(S, vec({1, 3}, f64))
    all_near(x, {0.28, 0.56}, 1e-12)
end

function TestBreakdown:test_small_ones()
    for name, solve in pairs(solvers) do
        t.equals(solve(eye(3), zeros(3)), {0, 0, 0})
        t.equals(solve(sparse(eye(3)), vec{3, 4, 5}), {3, 4, 5})
        lu.assertEquals(solve(zeros(0, 0), zeros(0)).shape, {0})
        lu.assertEquals(solve(eye(3), zeros(3, 0)).shape, {3, 0})
        t.equals(solve(mat{{2}}, vec{6}), {3})
        raises(function() solve(eye(2), vec{1, nan}) end, name, "NaN")
        raises(function() solve(mat{{1, nan}, {nan, 1}}, vec{1, 2}) end, name,
            "finite")
        raises(function() solve(eye(3), vec{1, 2}) end, "3x3", "vector 2")
        raises(function() solve(eye(2), vec{1, 2}, {tol = 0}) end, "above 0")
        raises(function() solve(eye(2), vec{1, 2}, {start = vec{1}}) end,
            "start is vector 1")
    end
end

-- Entries that are no numbers show in what is left.
function TestBreakdown:test_sparse_nan()
    local A = sparse({1, 2, 2}, {1, 1, 2}, {1, nan, 1}, 2, 2)
    for name, solve in pairs(solvers) do
        raises(function() solve(A, vec{1, 2}) end, name, "converge")
    end
end

-- A skew-symmetric matrix, of which bicgstab's first direction gives nothing.
function TestBreakdown:test_skew()
    local A, b = mat({{0, 1}, {-1, 0}}, f64), vec({1, 3}, f64)
    all_near(gmres(A, b), {-3, 1}, 1e-12)
    raises(function() bicgstab(A, b) end, "did not converge in")
end

-- Squares of lengths would be out of range.
function TestBreakdown:test_sizes()
    local A = poisson(6)
    local b = ones(36, f64)
    for name, solve in pairs(solvers) do
        local x = solve(A, b)
        for _, size in ipairs{2.0 ^ -600, 2.0 ^ 600} do
            lu.assertIsTrue(solve(A, b * size) == x * size, name)
        end
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
