-- Fourier transforms against their definition, a product with the matrix of
-- its factors in c128, and what goes with them.
local lu_ = require "luaunit"
local t = require "common"

-- Calling f fails with this message.
local function raises(text, f, ...)
    local list = table.pack(...)
    t.raises(function() f(table.unpack(list, 1, list.n)) end, text)
end

-- Matrices have equal elements, all else is equal.
local function equals(x, y, what)
    if type(y) ~= "userdata" then return lu_.assertEquals(x, y, what) end
    lu_.assertIsTrue(x == y, ("%s: %s is not %s"):format(what, x, y))
end

local function is_wide(A)
    return A.dtype == "f64" or A.dtype == "c128"
end

-- Units of roundoff that a transform may be off, of its largest element.
local MOST = 40

-- How far A is from exact B, in units of A's roundoff and B's largest element.
local function distance(A, B)
    local unit = t.unit[is_wide(A) and "f64" or "f32"]
    local largest = abs(B):max()
    local off = abs(c128(A) - c128(B)):max()
    return off / ((largest > 0 and largest or 1) * unit)
end

local function near(A, B, what)
    lu_.assertEquals(A.shape, B.shape, what)
    local off = distance(A, B)
    lu_.assertIsTrue(off < MOST, ("%s: off by %g"):format(what, off))
end

-- What fft multiplies columns of n elements by.
local function factors(n, is_inverse)
    local k = range(0, n - 1, 1, {dtype = "f64"})
    local turns = mod(outer(k, k), n) * (2 * math.pi / n)
    return complex(cos(turns), is_inverse and sin(turns) or -sin(turns))
end

local function random(m, n, dtype, seed)
    local part = (dtype == "c64" or dtype == "f32") and "f32" or "f64"
    local function make(s)
        return n and randn(m, n, {seed = s, dtype = part}) or
            randn(m, {seed = s, dtype = part})
    end
    if dtype == "f32" or dtype == "f64" then return make(seed) end
    return complex(make(seed), make(seed + 1000))
end

local dtypes = {"f32", "f64", "c64", "c128"}
local function each_dtype(f)
    for _, dtype in ipairs(dtypes) do f(dtype) end
end

TestFFT = {}

function TestFFT:test_definition()
    local lengths = {67, 97, 101, 127, 128, 243, 256, 343, 509}
    for n = 1, 64 do lengths[#lengths + 1] = n end
    for _, n in ipairs(lengths) do
        local F, G = factors(n), factors(n, true)
        each_dtype(function(dtype)
            local v = random(n, nil, dtype, n)
            local what = dtype .. " " .. n
            near(fft(v), F * c128(v), "fft " .. what)
            near(ifft(v), G * c128(v) / n, "ifft " .. what)
            equals(fft(v).dtype, is_wide(v) and "c128" or "c64")
        end)
    end
end

function TestFFT:test_half()
    for n = 1, 33 do
        for _, dtype in ipairs{"f32", "f64"} do
            local v = random(n, nil, dtype, n)
            local whole, half = fft(v), rfft(v)
            equals(half.rows, n // 2 + 1)
            near(half, whole[{{1, n // 2 + 1}}], "rfft " .. n)
            local back = irfft(half, n)
            equals(back.dtype, dtype)
            near(back, v, "irfft " .. n)
            if n > 1 and n % 2 == 0 then near(irfft(half), v, "irfft") end
        end
    end
end

-- As NumPy has it, the numbers that have to be real are taken as such.
function TestFFT:test_half_of_what_is_no_spectrum()
    local h = c128(vec{1 + 5 * im, 2 + 3 * im, 4 - 7 * im})
    near(irfft(h), vec({2.25, -2.25, 0.25, 0.75}, {dtype = "f64"}), "even")
    near(irfft(h, 5), irfft(c128(vec{1, 2 + 3 * im, 4 - 7 * im}), 5), "odd")
    equals(irfft(vec{6, 0, 0, 0}, 6):sum(), 6)
end

-- Columns, rows, and views of all kinds.
function TestFFT:test_lines()
    each_dtype(function(dtype)
        for k, s in ipairs{{1, 1}, {5, 7}, {12, 3}, {1, 9}, {9, 1}, {33, 20}} do
            local m, n = s[1], s[2]
            local wide = random(2 * m + 1, n + 2, dtype, k)
            local views = {random(m, n, dtype, k), random(n, m, dtype, k).T,
                random(n, m, dtype, k).H, conj(random(m, n, dtype, k)),
                wide[{{2, 2 * m, 2}, {2, n + 1}}],
                wide[{{2 * m, 2, -2}, {n + 1, 2, -1}}],
                random(1, n, dtype, k) + zeros(m, 1)}
            for i, A in ipairs(views) do
                local what = ("%s %dx%d, view %d"):format(dtype, m, n, i)
                local before = A:clone()
                local D = c128(A)
                near(fft(A), factors(m) * D, what)
                near(ifft(A, {axis = 2}), D * factors(n, true) / n, what)
                near(fft2(A), factors(m) * D * factors(n), what)
                near(ifft2(fft2(A)), A, what)
                if dtype == "f32" or dtype == "f64" then
                    near(rfft(A, {axis = 2}), fft(A, {axis = 2})
                        [{{}, {1, n // 2 + 1}}], what)
                    near(irfft(rfft(A), m), A, what)
                    near(irfft(rfft(A, {axis = 2}), n, {axis = 2}), A, what)
                end
                lu_.assertIsTrue(A == before, "operands stay")
            end
        end
    end)
end

-- A line's bits do not depend on where it lies, or on what is beside it.
function TestFFT:test_bits_repeat()
    for _, n in ipairs{1, 6, 30, 31, 64, 97, 1000} do
        each_dtype(function(dtype)
            local A = random(3, n, dtype, n)
            local rows = fft(A, {axis = 2})
            lu_.assertIsTrue(fft(A, {axis = 2}) == rows)
            if device() == "cpu" then
                for i = 1, 3 do
                    lu_.assertIsTrue(fft(A[i]) == rows[i])
                    lu_.assertIsTrue(fft(A.T)[{{}, {i, i}}] == rows[i]:col())
                    local apart = zeros(n + 1, {dtype = dtype})
                    apart[{{2, n + 1}}] = A[i]
                    lu_.assertIsTrue(fft(apart[{{2, n + 1}}]) == rows[i])
                end
            end
        end)
    end
end

function TestFFT:test_lengths_and_norms()
    local v = random(10, nil, "c128", 4)
    near(fft(v, 7), factors(7) * v[{{1, 7}}], "cut")
    near(fft(v, 16), factors(16) * vcat(v:col(), zeros(6, 1)):flatten(), "padded")
    near(irfft(v, 30), irfft(vcat(v:col(), zeros(6, 1)):flatten(), 30), "half")
    local A = random(4, 6, "f64", 5)
    local B = zeros(8, 6, {dtype = "f64"})
    B["1:4, :"] = A
    near(fft2(A, 8, 3), fft2(B[{{}, {1, 3}}]), "both")
    near(fft2(A, nil, 3), fft2(A[{{}, {1, 3}}]), "columns alone")
    near(fft2(A, 8), fft2(B), "rows alone")
    near(ifft2(A, nil, 3, {norm = "ortho"}),
        ifft2(A[{{}, {1, 3}}], {norm = "ortho"}), "columns and a norm")
    near(ifft2(A, 8, nil, {norm = "ortho"}), ifft2(B, {norm = "ortho"}),
        "rows and a norm")
    near(fft(A, 3, {axis = 2}), fft(A[{{}, {1, 3}}], {axis = 2}), "rows")
    for norm, by in pairs{backward = 1, ortho = 1 / math.sqrt(10),
        forward = 1 / 10} do
        near(fft(v, {norm = norm}), fft(v) * by, norm)
        near(ifft(fft(v, {norm = norm}), {norm = norm}), v, norm)
        near(irfft(rfft(real(v), {norm = norm}), {norm = norm}), real(v), norm)
    end
    near(fft2(A, {norm = "ortho"}), fft2(A) / math.sqrt(24), "ortho of both")
end

function TestFFT:test_long()
    for _, n in ipairs{97 * 101, 1 << 14, 10007, 3 * 5 * 7 * 11 * 13, 1 << 18} do
        each_dtype(function(dtype)
            local v = random(n, nil, dtype, 3)
            local w = fft(v)
            near(ifft(w), v, "there and back " .. n)
            local size, other = norm(abs(v):f64()), norm(abs(w):f64())
            lu_.assertAlmostEquals(other / (size * math.sqrt(n)), 1, 1e-6)
            -- one element by the definition
            local k = n // 3
            local turns = mod(range(0, n - 1, 1, {dtype = "f64"}) * k, n) *
                (2 * math.pi / n)
            local exact = (c128(v) % complex(cos(turns), -sin(turns))):sum()
            local off = abs(complex(w(k + 1).real, w(k + 1).imag) - exact)
            lu_.assertIsTrue(off < MOST * abs(w):max() *
                t.unit[is_wide(v) and "f64" or "f32"])
        end)
    end
end

function TestFFT:test_special_elements()
    local v = fft(vec{1, 0 / 0, 2})
    lu_.assertIsTrue(isnan(real(v)):all())
    equals(fft(vec{1, math.huge, 2})[1].real, math.huge)
    equals(fft(zeros(0, 3), 2), complex(zeros(2, 3)))
    equals(fft(zeros(3, 0)).shape, {3, 0})
    equals(rfft(zeros(4, 0)).shape, {3, 0})
    equals(fft(vec{true, false, true}).dtype, "c64")
    equals(fft(vec{true, false, true})[1].real, 2.0)
end

function TestFFT:test_errors()
    raises("fft: there is nothing to transform in vector 0", fft, zeros(0))
    raises("fft: there is nothing to transform in 0x3", fft, zeros(0, 3))
    raises("fft: n is 0: a transform has 1 element or more", fft, vec{1}, 0)
    raises("irfft: half a spectrum of one element is that of 1 number or of " ..
        "none: write irfft(A, 1)", irfft, vec{1})
    raises("rfft: takes real numbers, and the vector is c64: write fft(A)",
        rfft, vec{im})
    raises("fft2: A is a vector, not a matrix", fft2, vec{1})
    raises("fft: a vector has no axis 2", fft, vec{1}, {axis = 2})
    raises("norm is \"none\", expected \"backward\", \"ortho\" or \"forward\"",
        fft, vec{1}, {norm = "none"})
    raises("conv: y is empty", conv, vec{1}, zeros(0))
    raises("conv: x is empty", conv, zeros(0), vec{1, 2})
    raises("conv: takes two vectors, or two matrices, not vector 1 and 2x2",
        conv, vec{1}, eye(2))
    raises("xcorr: x is empty", xcorr, zeros(0))
end

TestSignals = {}

function TestSignals:test_frequencies()
    equals(fftfreq(5), vec{0, 1, 2, -2, -1} / 5)
    equals(fftfreq(4, 0.5), vec{0, 0.5, -1, -0.5})
    equals(fftfreq(1), vec{0})
    for _, f in ipairs{fftfreq, rfftfreq} do
        raises("d is 0, expected a number above 0", f, 4, 0)
        raises("d is NaN, expected a number above 0", f, 4, 0 / 0)
    end
    equals(rfftfreq(5), vec{0, 1, 2} / 5)
    equals(rfftfreq(6, 2, {dtype = "f64"}), vec({0, 1, 2, 3},
        {dtype = "f64"}) / 12)
end

function TestSignals:test_shifts()
    for n = 1, 7 do
        local A = random(n, n + 1, "c64", n)
        for axis = 1, 2 do
            local B = fftshift(A, axis)
            lu_.assertIsTrue(ifftshift(B, axis) == A)
            local size = axis == 1 and n or n + 1
            local middle = size // 2 + 1
            lu_.assertIsTrue(axis == 1 and B[middle] == A[1] or
                axis == 2 and B:col(middle) == A:col(1))
        end
        lu_.assertIsTrue(ifftshift(fftshift(A)) == A)
        lu_.assertIsTrue(fftshift(A) == fftshift(fftshift(A, 1), 2))
    end
    equals(fftshift(vec{true, false, false}), vec{false, true, false})
    equals(fftshift(zeros(0)), zeros(0))
end

-- By the definition, in f64 and exactly, as all are small whole numbers.
local function sums(x, y)
    local out = zeros(x.rows + y.rows - 1, x.cols + y.cols - 1)
    for i = 1, y.rows do
        for j = 1, y.cols do
            local at = {{i, i + x.rows - 1}, {j, j + x.cols - 1}}
            out[at] = out[at] + y(i, j) * x
        end
    end
    return out
end

local function whole(m, n, seed)
    return randint(-9, 9, m, n, {seed = seed})
end

local same = equals

function TestSignals:test_matrices_convolved()
    for k, s in ipairs{{1, 1, 1, 1}, {5, 7, 3, 2}, {3, 2, 5, 7}, {1, 40, 1, 9},
        {40, 1, 9, 1}, {30, 20, 4, 4}, {3, 2000, 2, 600}} do
        local m, n, p, q = s[1], s[2], s[3], s[4]
        local x, y = whole(m, n, k), whole(p, q, k + 100)
        local full = sums(x, y)
        local what = ("%dx%d with %dx%d"):format(m, n, p, q)
        same(conv(x, y, {method = "direct"}), full, what)
        same(conv(x.T, y.T, {method = "direct"}), full.T, what)
        same(round(conv(x:f64(), y, {method = "fft"})), full:f64(), what)
        for _, method in ipairs{"direct", "fft"} do
            same(round(conv(x, y, "same", {method = method})),
                full[{{p // 2 + 1, p // 2 + m}, {q // 2 + 1, q // 2 + n}}], what)
            local valid = conv(x, y, "valid", {method = method})
            equals(valid.shape, {math.max(m - p + 1, 0), math.max(n - q + 1, 0)})
            if m >= p and n >= q then
                same(round(valid), full[{{p, m}, {q, n}}], what)
            end
        end
        local z = complex(x, 2 * x)
        same(conv(z, y, {method = "direct"}), complex(full, 2 * full), what)
        same(conv(y, z, {method = "direct"}), complex(full, 2 * full), what)
        same(conv(z, conj(complex(y, y)), {method = "direct"}),
            complex(3 * full, full), what)
    end
end

function TestSignals:test_vectors_convolved()
    for k, s in ipairs{{1, 1}, {3, 5}, {100, 7}, {5000, 1300}, {1300, 5000}} do
        local x, y = whole(s[1], 1, k):flatten(), whole(s[2], 1, k + 9):flatten()
        local full = sums(x:col(), y:col()):flatten()
        same(conv(x, y, {method = "direct"}), full, "direct")
        same(round(conv(x:f64(), y, {method = "fft"})), full:f64(), "fft")
        same(round(conv(x:f64(), y)), full:f64(), "by itself")
        same(conv(flip(x), flip(y), {method = "direct"}), flip(full), "flipped")
    end
    local odd = vec{1, 0 / 0, 2, 3}
    equals(isnan(conv(odd, vec{1, 1})), vec{false, true, true, false, false})
    equals(conv(vec{1, 2}, vec{1, math.huge})[1], 1)
end

function TestSignals:test_correlation()
    local x, y = vec{1, 2, 3, 4}, vec{2, -1}
    local c, lags = xcorr(x, y, {lags = true})
    equals(lags, vec{-1, 0, 1, 2, 3})
    equals(c, vec{-1, 0, 1, 2, 8})
    for i = 1, #lags do
        local sum = 0
        for j = 1, #y do
            local at = j + lags[i] // 1 | 0
            if at >= 1 and at <= #x then sum = sum + x[at] * y[j] end
        end
        equals(c[i], sum)
    end
    equals(xcorr(x), xcorr(x, x))
    c, lags = xcorr(x, {most = 1, lags = true})
    equals(lags, vec{-1, 0, 1})
    equals(c, vec{20, 30, 20})
    local z = vec{1 + im, 2 - im}
    equals(xcorr(z)[2], 7 + 0 * im)
    near(xcorr(z, {method = "fft"}), xcorr(z, {method = "direct"}), "complex")
end

os.exit(lu_.LuaUnit.run("-o", "tap"))
