-- What goes with Fourier transforms: frequencies, shifts, convolutions and
-- correlations.
local library = ...
local checks = require "lumat.checks"
local along = require "lumat.along"
local steps = require "lumat.fft_steps"
local fail, is_complex, is_wide, shape_of = checks.fail, checks.is_complex,
    checks.is_wide, checks.shape_of
local signals = {}
local type = type
local larger, log, smaller = math.max, math.log, math.min

-- --- frequencies --------------------------------------------------------------

-- 0, 1, … last, in f64.
local function counted(last, options)
    return library.range(0, last, 1,
        {dtype = "f64", device = options and options.device})
end

-- k / (n d), rounded once.
local function frequencies(k, n, d, options)
    local dtype = options and options.dtype or library.default_dtype()
    local f = k / (n * (d or 1))
    if dtype == "f64" then return f end
    return f:f32()
end

row{
    name = "fftfreq",
    takes = "n: count [, d: positive] {dtype, device}",
    gives = "matrix",
    group = "fourier",
    help = "The frequencies of fft's n elements: 0, 1, … and then the negative " ..
        "ones up to -1, divided by n d, where d (1) is the time from sample to " ..
        "sample.",
    example = "fftfreq(4, 0.5)",
    result = "{0, 0.5, -1, -0.5}",
}
function signals.fftfreq(n, d, options)
    if type(d) == "table" then d, options = nil, d end
    local k = counted(n - 1, options)
    return frequencies(k - n * k:gt((n - 1) // 2):f64(), n, d, options)
end

row{
    name = "rfftfreq",
    takes = "n: count [, d: positive] {dtype, device}",
    gives = "matrix",
    group = "fourier",
    help = "The frequencies of the n // 2 + 1 elements of rfft of n numbers: " ..
        "0, 1, … divided by n d, where d (1) is the time from sample to sample.",
    example = "rfftfreq(4, 0.5)",
    result = "{0, 0.5, 1}",
}
function signals.rfftfreq(n, d, options)
    if type(d) == "table" then d, options = nil, d end
    return frequencies(counted(n // 2, options), n, d, options)
end

-- --- shifts -------------------------------------------------------------------

-- Elements move by half of an axis, or back: of one axis, or of all.
local function rolled(what, A, axis, sign)
    along.axis(what, A, {axis = axis})
    for i = axis or 1, axis or A.ndim do
        A = library.roll(A, sign * (along.size(A, i) // 2), {axis = i})
    end
    return A
end

row{
    name = "fftshift", method = true,
    takes = "A: matrix [, axis: axis]",
    gives = "matrix",
    group = "fourier",
    help = "A spectrum with the frequency 0 in the middle, of fft(A) or " ..
        "fftfreq(n): the second half comes first, along one axis or all.",
    example = "fftshift(vec{0, 1, 2, -2, -1})",
    result = "{-2, -1, 0, 1, 2}",
}
function signals.fftshift(A, axis)
    return rolled("fftshift", A, axis, 1)
end

row{
    name = "ifftshift", method = true,
    takes = "A: matrix [, axis: axis]",
    gives = "matrix",
    group = "fourier",
    help = "What fftshift did is undone, of odd lengths, too.",
    example = "ifftshift(vec{-2, -1, 0, 1, 2})",
    result = "{0, 1, 2, -2, -1}",
}
function signals.ifftshift(A, axis)
    return rolled("ifftshift", A, axis, -1)
end

-- --- convolutions -------------------------------------------------------------

-- The least even number from n on without prime factors above 7.
local function fast_length(n)
    local best = 2
    while best < n do best = best * 2 end
    local sevens = 1
    while sevens < best do
        local fives = sevens
        while fives < best do
            local threes = fives
            while threes < best do
                local length = 2 * threes
                while length < n do length = length * 2 end
                best = smaller(best, length)
                threes = threes * 3
            end
            fives = fives * 5
        end
        sevens = sevens * 7
    end
    return best
end

-- x in the precision of both.
local function widened(x, y)
    if is_wide(x) or not is_wide(y) then return x end
    return is_complex(x) and library.c128(x) or x:f64()
end

-- Are sums faster than transforms? Times are counted in multiply-adds: those of
-- n elements take the CPU OF_TRANSFORM n log n, a GPU so many to begin with and
-- for each element; its sums last as long as those of one for each of y, which
-- follow each other.
local OF_TRANSFORM, SHORT = 6, 16
local ON_GPU = {beginning = 4e8, element = 128, of_y = 350000}

local function is_direct(x, y, rows, cols)
    local sums, length = x.size * 1.0 * y.size, rows * 1.0 * cols
    if smaller(x.size, y.size) <= SHORT then return true end
    if x.device == "cpu" then
        return sums <= OF_TRANSFORM * length * log(length, 2)
    end
    return larger(sums, y.size * ON_GPU.of_y) <=
        ON_GPU.beginning + ON_GPU.element * length
end

local function by_transforms(x, y, rows, cols)
    x, y = widened(x, y), widened(y, x)
    if x.ndim == 1 then
        local n = fast_length(rows)
        if is_complex(x) or is_complex(y) then
            return library.ifft(library.fft(x, n) % library.fft(y, n))
        end
        return library.irfft(library.rfft(x, n) % library.rfft(y, n), n)
    end
    local m, n = fast_length(rows), fast_length(cols)
    if is_complex(x) or is_complex(y) then
        return library.ifft2(library.fft2(x, m, n) % library.fft2(y, m, n))
    end
    local function spectrum(A)
        return library.fft(library.rfft(A, n, {axis = 2}), m)
    end
    return library.irfft(library.ifft(spectrum(x) % spectrum(y)), n, {axis = 2})
end

-- Of an axis with m and n elements: from where, and how many.
local function overlap(shape, m, n)
    if shape == "same" then return n // 2 + 1, m end
    if shape == "valid" then return n, larger(m - n + 1, 0) end
    return 1, m + n - 1
end

local function convolve(what, x, y, shape, method)
    if x.ndim ~= y.ndim then
        fail(what, "takes two vectors, or two matrices, not %s and %s",
            shape_of(x), shape_of(y))
    elseif x.size == 0 or y.size == 0 then
        fail(what, "%s is empty", x.size == 0 and "x" or "y")
    end
    if shape == "full" and x.size < y.size then x, y = y, x end
    local rows, cols = x.rows + y.rows - 1, x.cols + y.cols - 1
    local i, m = overlap(shape, x.rows, y.rows)
    local j, n = overlap(shape, x.cols, y.cols)
    if method == "direct" or m == 0 or n == 0 or
        (method ~= "fft" and is_direct(x, y, rows, cols)) then
        return steps.convolve(x, y, shape)
    end
    local whole = by_transforms(x, y, rows, cols)
    if x.ndim == 1 then return whole[{{i, i + m - 1}}]:clone() end
    return whole[{{i, i + m - 1}, {j, j + n - 1}}]:clone()
end

row{
    name = "conv", method = true,
    takes = "x: matrix, y: matrix [, shape: \"full\"|\"same\"|\"valid\"] {method}",
    gives = "matrix",
    group = "fourier",
    help = "Convolution of two vectors (also the product of two polynomials), " ..
        "or of two matrices: of m and n elements the m + n - 1 of \"full\"; " ..
        "\"same\": m of these from place n // 2 + 1 on, as in MATLAB and Octave " ..
        "(SciPy begins one place earlier where n is even); \"valid\": those " ..
        "m - n + 1 for which all of y lies in x. By sums, and where both are long by " ..
        "transforms.",
    example = "conv(vec{1, 2}, vec{1, 3, 4})",
    result = "{1, 5, 10, 8}",
    options = {{"method", "\"direct\"|\"fft\"", "the faster one",
        "\"direct\": sums in f64, rounded once; \"fft\": by transforms, " ..
            "whose errors are those of the largest elements"}},
}
function signals.conv(x, y, shape, options)
    if type(shape) == "table" then shape, options = nil, shape end
    return convolve("conv", x, y, shape or "full", options and options.method)
end

row{
    name = "xcorr", method = true,
    takes = "x: vector [, y: vector] {most, lags, method}",
    gives = "matrix, matrix with lags",
    group = "fourier",
    help = "Correlation of x with y, or with itself: for each lag l from " ..
        "1 - #y to #x - 1 the sum of x[j + l] conj(y[j]); with most=k only " ..
        "those from -k to k. With lags also these.",
    example = "xcorr(vec{1, 2, 3}, vec{0, 1, 0})",
    result = "{0, 1, 2, 3, 0}",
    options = {
        {"method", "\"direct\"|\"fft\"", "the faster one", "as conv has it"},
        {"most", "size", "all lags", "the largest lag, either way"},
        {"lags", "boolean", "false", "also the lags, a vector"}},
}
function signals.xcorr(x, y, options)
    if type(y) == "table" then y, options = nil, y end
    y, options = y or x, options or {}
    if #x == 0 or #y == 0 then
        fail("xcorr", "%s is empty", #x == 0 and "x" or "y")
    end
    local c = convolve("xcorr", x, library.conj(library.flip(y)), "full",
        options.method)
    local first, last = 1 - #y, #x - 1
    if options.most then
        local from, to = larger(first, -options.most), smaller(last, options.most)
        c = c[{{from - first + 1, to - first + 1}}]:clone()
        first, last = from, to
    end
    if not options.lags then return c end
    return c, library.range(first, last, 1, {device = c.device,
        dtype = checks.is_wide(c) and "f64" or library.default_dtype()})
end

return signals
