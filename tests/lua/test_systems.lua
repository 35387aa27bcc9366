-- Powers of matrices, linear systems, inverses and determinants.
local lu = require "luaunit"
local t = dofile((arg[0]:match("^.*/") or "") .. "common.lua")
local equals, raises, near = t.equals, t.raises, t.near

local function uniform(m, n, dtype, seed)
    return rand(m, n, {seed = seed, dtype = dtype, low = -1, high = 1})
end

TestPowers = {}

function TestPowers:test_whole_powers()
    local A = mat{{1, 1}, {1, 0}}
    equals(A ^ 0, {{1, 0}, {0, 1}})
    equals(A ^ 1, {{1, 1}, {1, 0}})
    equals(A ^ 10, {{89, 55}, {55, 34}})
    equals(A ^ 31, {{2178309, 1346269}, {1346269, 832040}})
    equals(A ^ -1, {{0, 1}, {1, -1}})
    equals(A ^ -3, {{-1, 2}, {2, -3}})
    equals(A ^ 2.0, {{2, 1}, {1, 1}})
    equals(A, {{1, 1}, {1, 0}})
    lu.assertEquals((zeros(0, 0) ^ 3).shape, {0, 0})
    local B = A ^ 1
    B[1] = 0
    equals(A, {{1, 1}, {1, 0}})
end

function TestPowers:test_what_is_no_power()
    raises(function() return ones(2, 3) ^ 2 end, "2x3", "square", "A:pow")
    raises(function() return ones(2, 2) ^ 0.5 end, "0.5", "whole", "A:pow")
    raises(function() return 2 ^ ones(2, 2) end, "pow")
    raises(function() return ones(2, 2) ^ ones(2, 2) end, "whole")
    raises(function() return vec{1, 2} ^ 2 end, "square", "vector 2")
    raises(function() return ones(2, 2) ^ -1 end,
        "inv: the matrix is singular (pivot 2 is zero)")
end

TestSystems = {}

function TestSystems:test_solve_inv_det()
    for _, dtype in ipairs{"f32", "f64"} do
        local tolerance = dtype == "f32" and 1e-3 or 1e-10
        for _, n in ipairs{1, 2, 3, 31, 65} do
            local A = uniform(n, n, dtype, n) + n * eye(n, {dtype = dtype})
            local x = uniform(n, 3, dtype, 2)
            lu.assertIsTrue(close(solve(A, A * x), x, tolerance))
            lu.assertIsTrue(close(solve(A.T, A.T * x[":,2"]), x[":,2"],
                tolerance))
            lu.assertIsTrue(close(A * inv(A), eye(n, {dtype = dtype}),
                tolerance))
            near(det(A) * det(inv(A)), 1, tolerance)
            lu.assertEquals(solve(A, x).dtype, dtype)
        end
    end
    lu.assertEquals(det(mat{{0, 1}, {1, 0}}), -1)
    near(det(mat({{2, 1, 3}, {0, 3, 1}, {4, 1, 1}}, {dtype = "f64"})), -28,
        1e-14)
    lu.assertEquals(det(zeros(0, 0)), 1)
    lu.assertEquals(det(ones(3, 3)), 0)
    for _, singular in ipairs{mat{{-1, 2}, {-2, 4}}, mat{{1, 2}, {1, 2}},
        mat{{0, 1}, {0, 2}}, -zeros(2, 2), mat{{1, 1, 0}, {-1, 1, 0}, {1, 2, 0}}} do
        lu.assertEquals(1 / det(singular), math.huge) -- it is not -0.0
    end
end

function TestSystems:test_operands_are_not_changed()
    local A, b = mat{{2, 1}, {1, 3}}, vec{1, 2}
    solve(A, b)
    inv(A)
    det(A)
    equals(A, {{2, 1}, {1, 3}})
    equals(b, {1, 2})
end

function TestSystems:test_what_has_no_solution()
    raises(function() solve(ones(2, 2), vec{1, 2}) end,
        "solve: the matrix is singular (pivot 2 is zero)")
    raises(function() inv(zeros(3, 3)) end,
        "inv: the matrix is singular (pivot 1 is zero)")
    raises(function() local P = ones(2, 3) inv(P) end, "inv: needs a square",
        "P is 2x3")
    raises(function() det(ones(2, 3)) end, "square", "2x3")
    raises(function() solve(ones(2, 3), ones(2)) end, "square", "2x3")
    raises(function() solve(eye(2), ones(3)) end, "2x2", "vector 3")
    raises(function() local P = ones(1, 2) solve(eye(2), P) end,
        "P.T would fit")
    raises(function() solve(eye(2), 3) end, "matrix expected", "number")
end

TestDevices = {}

function TestDevices:test_systems_agree()
    for _, n in ipairs{1, 3, 31, 65} do
        t.agrees(function()
            local A = uniform(n, n, "f64", 1) + n * eye(n, {dtype = "f64"})
            return solve(A, uniform(n, 5, "f64", 2)), inv(A)
        end, "systems", 1e4)
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
