-- Matrices of which something is known: that is what is looked at.
local lu_ = require "luaunit"
local t = require "common"
local raises = t.raises
warn("@off")

local f64 = {dtype = "f64"}

local function is(A, B, tolerance)
    lu_.assertEquals(A.shape, B.shape)
    lu_.assertIsTrue(A.size == 0 or
        (A - B):abs():max() <= (tolerance or 0) * math.max(1, B:abs():max()),
        tostring(A) .. " is not " .. tostring(B))
end

TestGallery = {}

function TestGallery:test_common()
    for _, n in ipairs{0, 1, 2, 3, 7} do
        is(invhilb(n, f64) * hilb(n, f64), eye(n, f64), 1e-6)
        is(pascal(n, f64), pascal(n, f64).T)
        lu_.assertEquals(wilkinson(n, f64).shape, {n, n})
        lu_.assertEquals(hilb(n).dtype, "f32")
        if n > 0 then
            lu_.assertAlmostEquals(det(pascal(n, f64)), 1, 1e-6)
        end
    end
    is(wilkinson(4, f64), mat({{1.5, 1, 0, 0}, {1, 0.5, 1, 0}, {0, 1, 0.5, 1},
        {0, 0, 1, 1.5}}, f64))
    local values = eigh(rosser(f64)).values
    is(values, vec({-10 * math.sqrt(10405), 0, 510 - 100 * math.sqrt(26), 1000,
        1000, 510 + 100 * math.sqrt(26), 1020, 10 * math.sqrt(10405)}, f64), 1e-12)
    lu_.assertAlmostEquals(values[3], 0.098048640721516997, 1e-9)
end

function TestGallery:test_magic()
    for n = 1, 12 do
        if n ~= 2 then
            local A, sum = magic(n, f64), n * (n * n + 1) / 2
            for _, sums in ipairs{A:sum(1), A:sum(2)} do
                lu_.assertIsTrue(sums:eq(sum):all(), "magic " .. n)
            end
            lu_.assertEquals({trace(A), trace(flip(A))}, {sum, sum})
            lu_.assertIsTrue(sort(A:flatten()) == range(1, n * n, 1, f64))
        end
    end
    lu_.assertEquals(magic(0).shape, {0, 0})
    raises(function() magic(2) end, "no magic square of 2")
end

function TestGallery:test_hadamard()
    for _, n in ipairs{1, 2, 4, 8, 12, 20, 24, 40} do
        local H = hadamard(n)
        lu_.assertIsTrue(H:abs():eq(1):all())
        lu_.assertIsTrue(H * H.T == n * eye(n), n .. " rows")
    end
    for _, n in ipairs{3, 6, 28, 36} do
        raises(function() hadamard(n) end, tostring(n), "power of 2")
    end
end

function TestGallery:test_of_lists()
    is(toeplitz({1, 2}, {1, 5, 6}), mat{{1, 5, 6}, {2, 1, 5}})
    is(toeplitz(vec{1, 2, 3}), mat{{1, 2, 3}, {2, 1, 2}, {3, 2, 1}})
    is(hankel({1, 2}, {2, 7, 8}), mat{{1, 2, 7}, {2, 7, 8}})
    is(hankel{1, 2}, mat{{1, 2}, {2, 0}})
    is(vander({1, 2, 3}, 2), mat{{1, 1}, {2, 1}, {3, 1}})
    lu_.assertEquals({vander({1, 2}, 0).shape, toeplitz({}).shape}, {{2, 0},
        {0, 0}})
    local C = companion({2, -6, 4}, f64)
    is(C, mat({{3, -2}, {1, 0}}, f64))
    lu_.assertEquals(C.dtype, "f64")
    raises(function() companion{0, 1} end, "first not 0")
    raises(function() toeplitz(eye(2)) end, "expected a vector")
end

-- The corner that both lists have.
function TestGallery:test_corners()
    local path = t.scratch(".lua")
    local function told(code)
        t.write(path, code)
        local pipe = assert(io.popen(("'%s' --no-init '%s' 2>&1"):format(
            os.getenv("LUMAT"), path)))
        local text = pipe:read("a")
        pipe:close()
        return text
    end
    lu_.assertStrContains(told "toeplitz({1, 2}, {5, 6})",
        ":1: toeplitz: c[1] is 1.0 and r[1] is 5.0 at the same place, which is c's")
    lu_.assertStrContains(told "hankel(vec{1, 2}, {im, 6})",
        ":1: hankel: c[2] is 2.0 and r[1] is 0 + 1i")
    lu_.assertEquals(told "toeplitz({1, 2}, {1, 6}) toeplitz{im, 2} hankel{1, 2}",
        "")
    lu_.assertEquals(told "toeplitz(vec{0.1, 2}, {0.1, 6}) hankel({0, im}, {im})",
        "")
    os.remove(path)
    is(toeplitz({1, 2}, {5, 6}), mat{{1, 6}, {2, 1}})
end

-- Of complex numbers, and made complex.
function TestGallery:test_complex()
    local z = vec({1, 2 * im, -1}, {dtype = "c128"})
    lu_.assertIsTrue(toeplitz(z) == mat{{1, -2 * im, -1}, {2 * im, 1, -2 * im},
        {-1, 2 * im, 1}})
    lu_.assertIsTrue(toeplitz(vec{1, 2}, {1, im}) == mat{{1, im}, {2, 1}})
    lu_.assertIsTrue(hankel{1, im} == mat{{1, im}, {im, 0}})
    lu_.assertIsTrue(vander{im, 2} == mat{{im, 1}, {2, 1}})
    lu_.assertIsTrue(vander(z, 3, {dtype = "c64"}) == mat{{1, 1, 1},
        {-4, 2 * im, 1}, {1, -1, 1}})
    lu_.assertIsTrue(companion{2, 4 * im, 2} == mat{{-2 * im, -1}, {1, 0}})
    lu_.assertEquals({companion(z).dtype, vander(z).dtype,
        vander({im}, {dtype = "c128"}).dtype}, {"c64", "c64", "c128"})
    lu_.assertIsTrue(hilb(2, {dtype = "c128"}) == complex(hilb(2, f64)))
    lu_.assertEquals(gallery("minij", 2, {dtype = "c64"}).dtype, "c64")
    raises(function() vander({im}, f64) end, "complex", "c128", "f64")
    raises(function() hilb(2, {dtype = "bool"}) end, "dtype", "bool")
    raises(function() companion{0 * im, 1} end, "not 0")
end

-- What the list says of each.
function TestGallery:test_named()
    local count = 0
    for name, says in pairs(gallery()) do
        for _, n in ipairs{0, 1, 2, 5, 8} do
            local A = gallery(name, n, f64)
            lu_.assertEquals({A.shape, A.dtype}, {{n, n}, "f64"}, name)
            if says:find("symmetric", 1, true) and not says:find("not symmetric") then
                is(A, A.T, 1e-15)
            end
            if n > 0 and says:find("positive definite", 1, true) then
                lu_.assertIsTrue(eigh((A + A.T) / 2).values[1] > 0, name)
            end
            if n > 1 and says:find("inverse is tridiagonal", 1, true) then
                local X = inv(A)
                local away = tril(X, -2) + triu(X, 2)
                lu_.assertIsTrue(away:abs():max() < 1e-12 * X:abs():max(), name)
            end
        end
        count = count + 1
    end
    lu_.assertIsTrue(count >= 20)
    local C = gallery("chebspec", 5, f64)
    is(C * C * C * C * C, zeros(5, 5, f64), 1e-9)
    lu_.assertEquals(trace(gallery("clement", 5, f64) ^ 2), 40) -- 4, 2, 0, -2, -4
    lu_.assertAlmostEquals(det(gallery("frank", 8, f64)), 1, 1e-6)
    is(gallery("tridiag", 3, 1, -2, 0.5, f64), mat({{-2, 0.5, 0}, {1, -2, 0.5},
        {0, 1, -2}}, f64))
    lu_.assertEquals(gallery("pei", 2, 0.1, f64)(1, 1), 1.1)
    lu_.assertEquals(gallery("minij", 2).dtype, "f32")
    local values = eigh(gallery("fiedler", 6, f64)).values
    lu_.assertIsTrue(values[5] < 0 and values[6] > 0)
    raises(function() gallery("minji", 3) end, "minji", "minij")
    raises(function() gallery("minij") end, "size")
    raises(function() gallery("minij", 3, 1) end, "too many")
    raises(function() gallery("minij", -1) end, "n is -1")
end

os.exit(lu_.LuaUnit.run("-o", "tap"))
