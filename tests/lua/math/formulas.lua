-- Every operation of ops.def as a formula in plain Lua, in double precision:
-- what the tests compare with. Sources: Abramowitz and Stegun, Handbook of
-- Mathematical Functions; Kahan for expm1 and log1p.
local t = require "common"
local inf, nan = t.inf, t.nan

local function floor(x)
    return x ~= x and x or math.abs(x) == inf and x or x // 1.0
end

local function toward_zero(x) return x < 0 and -floor(-x) or floor(x) end

local function half_to_even(x)
    if math.abs(x) >= 2.0 ^ 52 or x ~= x then return x end
    local low = floor(x)
    local rest = x - low
    if rest > 0.5 or (rest == 0.5 and low % 2 ~= 0) then low = low + 1 end
    return low == 0 and x * 0 or low
end

-- Kahan: exact differences of rounded values cancel the rounding.
local function expm1(x)
    local u = math.exp(x)
    if u == 1 or x == inf then return x end
    if u - 1 == -1 then return -1 end
    return u == inf and inf or (u - 1) * x / math.log(u)
end

local function log1p(x)
    local u = 1 + x
    if u == 1 or x == inf then return x end
    return u <= 0 and math.log(u) or math.log(u) * x / (u - 1)
end

local function odd(f)
    return function(x)
        if x == 0 or x ~= x then return x end
        return x < 0 and -f(-x) or f(x)
    end
end

local sinh = odd(function(x)
    if x > 30 then return math.exp(x / 2) / 2 * math.exp(x / 2) end
    local e = expm1(x)
    return (e + e / (e + 1)) / 2
end)

local function cosh(x)
    local e = math.exp(math.abs(x) / 2)
    return math.abs(x) > 30 and e / 2 * e or (e * e + 1 / (e * e)) / 2
end

local tanh = odd(function(x)
    local e = expm1(2 * x)
    return e == inf and 1 or e / (e + 2)
end)

local ln2 = math.log(2)

local asinh = odd(function(x)
    if x > 1e8 then return math.log(x) + ln2 end
    return log1p(x + x * x / (1 + math.sqrt(1 + x * x)))
end)

local function acosh(x)
    if x > 1e8 then return math.log(x) + ln2 end
    return x < 1 and nan or log1p(x - 1 + math.sqrt((x - 1) * (x + 1)))
end

local atanh = odd(function(x)
    return x > 1 and nan or x == 1 and inf or log1p(2 * x / (1 - x)) / 2
end)

local cbrt
cbrt = odd(function(x)
    if x == inf then return x end
    if x < 1e-290 then return cbrt(x * 2.0 ^ 600) / 2.0 ^ 200 end
    local y = x ^ (1 / 3)
    return y - (y * y * y - x) / (3 * y * y)
end)

-- Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.6: a series
-- of positive terms.
local erf = odd(function(x)
    if x > 6 then return 1 end
    local term, sum, n = x, x, 0
    repeat
        n = n + 1
        term = term * 2 * x * x / (2 * n + 1)
        sum = sum + term
    until term <= sum * 1e-18
    return 2 / math.sqrt(math.pi) * math.exp(-x * x) * sum
end)

-- 7.1.14 there: a continued fraction, for x where it converges fast.
local function erfc(x)
    if x ~= x then return x end
    if x < 2 then return 1 - erf(x) end
    if x > 30 then return 0 end
    local fraction = x
    for k = 200, 1, -1 do fraction = x + k / 2 / fraction end
    return math.exp(-x * x) / math.sqrt(math.pi) / fraction
end

-- Stirling's series after shifting; 6.1.41 and, for x < 1/2, 6.1.17 there.
local function lgamma(x)
    if x ~= x then return x end
    if x == -inf or x == inf then return inf end
    if x <= 0 and x == floor(x) then return inf end
    if math.abs(x) < 1e-20 then return -math.log(math.abs(x)) end
    if x < 0.5 then
        local turn = x % 2
        return math.log(math.pi / math.abs(math.sin(math.pi * turn))) -
            lgamma(1 - x)
    end
    local shift = 1
    while x < 20 do shift, x = shift * x, x + 1 end
    local z = 1 / (x * x)
    return (x - 0.5) * math.log(x) - x + math.log(2 * math.pi) / 2 +
        (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z / 1680))) / x -
        math.log(shift)
end

local function gamma(x)
    if math.abs(x) < 1e-20 then return 1 / x end
    if x == -inf or (x < 0 and x == floor(x)) then return nan end
    local negative = x < 0 and floor(x) % 2 ~= 0
    if x > 0 and x <= 23 and x == floor(x) then
        local product = 1.0
        for i = 2, x - 1 do product = product * i end
        return product
    end
    local size = math.exp(lgamma(x))
    return negative and -size or size
end

local function hypot(x, y)
    x, y = math.abs(x), math.abs(y)
    if x == inf or y == inf then return inf end
    if x ~= x or y ~= y then return nan end
    if x < y then x, y = y, x end
    if x == 0 then return 0 end
    local small = x < 1e-290 and 2.0 ^ 600 or 1
    x, y = x * small, y * small
    return x * math.sqrt(1 + (y / x) * (y / x)) / small
end

-- Of NaN as if it were positive, whatever its bits are.
local function sign_bit(x)
    return x == x and string.pack(">d", x):byte() >= 128
end

local function copysign(x, y)
    return sign_bit(x) == sign_bit(y) and x or -x
end

local function nextafter(x, y, dtype)
    if x ~= x or y ~= y then return nan end
    if x == y then return y end
    if x == 0 then return copysign(t.smallest[dtype], y) end
    local number, bits = "d", "i8"
    if dtype == "f32" then number, bits = "f", "i4" end
    local n = string.unpack(bits, string.pack(number, x))
    n = n + (((y > x) == (x > 0)) and 1 or -1)
    return (string.unpack(number, string.pack(bits, n)))
end

local function larger(x, y)
    return (x ~= x or y ~= y) and nan or x > y and x or y
end

local function smaller(x, y)
    return (x ~= x or y ~= y) and nan or x < y and x or y
end

local function logaddexp(x, y)
    if x == y then return x + ln2 end
    return larger(x, y) + log1p(math.exp(-math.abs(x - y)))
end

-- Lua's own power gives 1 for 1 ^ NaN and NaN ^ 0, as C does.
local function power(x, y) return x ^ y end

local function round_to(dtype, x) return dtype == "f32" and t.single(x) or x end

-- name: {formula, how many ulps apart it may be, f64 formula's own error}
local exact, close = 0, 4
local unary = {
    neg = {function(x) return -x end, exact},
    abs = {math.abs, exact},
    sign = {function(x)
        return x ~= x and x or x > 0 and 1 or x < 0 and -1 or 0
    end, exact},
    square = {function(x) return x * x end, exact},
    reciprocal = {function(x) return 1 / x end, exact},
    floor = {floor, exact},
    ceil = {function(x) return -floor(-x) end, exact},
    trunc = {toward_zero, exact},
    round = {half_to_even, exact},
    sqrt = {math.sqrt, exact},
    cbrt = {cbrt, close}, exp = {math.exp, close},
    exp2 = {function(x) return 2.0 ^ x end, close},
    expm1 = {expm1, close}, log = {math.log, close},
    log2 = {function(x) return math.log(x, 2) end, close},
    log10 = {function(x) return math.log(x, 10) end, close},
    log1p = {log1p, close},
    sin = {math.sin, close}, cos = {math.cos, close}, tan = {math.tan, close},
    asin = {math.asin, close}, acos = {math.acos, close},
    atan = {math.atan, close},
    sinh = {sinh, close}, cosh = {cosh, close}, tanh = {tanh, close},
    asinh = {asinh, close}, acosh = {acosh, close}, atanh = {atanh, close},
    erf = {erf, close}, erfc = {erfc, close, 1e-13},
    gamma = {gamma, close, 1e-11}, lgamma = {lgamma, close, 1e-13},
    lnot = {function(x) return x == 0 end},
    isnan = {function(x) return x ~= x end},
    isinf = {function(x) return x == inf or x == -inf end},
    isfinite = {function(x) return x - x == 0 end},
    signbit = {sign_bit},
    real = {function(x) return x end, exact},
    conj = {function(x) return x end, exact},
    imag = {function() return 0 end, exact},
    angle = {function(x) return math.atan(0, x) end, close},
}

local binary = {
    add = {function(x, y) return x + y end, exact},
    sub = {function(x, y) return x - y end, exact},
    mul = {function(x, y) return x * y end, exact},
    div = {function(x, y) return x / y end, exact},
    idiv = {function(x, y, dtype) return floor(round_to(dtype, x / y)) end,
        exact},
    mod = {function(x, y) return y == 0 and nan or x % y end, exact},
    pow = {power, close},
    maximum = {larger, exact}, minimum = {smaller, exact},
    hypot = {hypot, close}, atan2 = {math.atan, close},
    copysign = {copysign, exact}, nextafter = {nextafter, exact},
    logaddexp = {logaddexp, close},
    lt = {function(x, y) return x < y end},
    le = {function(x, y) return x <= y end},
    gt = {function(x, y) return x > y end},
    ge = {function(x, y) return x >= y end},
    eq = {function(x, y) return x == y end},
    ne = {function(x, y) return x ~= y end},
    land = {function(x, y) return x ~= 0 and y ~= 0 end},
    lor = {function(x, y) return x ~= 0 or y ~= 0 end},
    lxor = {function(x, y) return (x ~= 0) ~= (y ~= 0) end},
}

local ternary = {
    clip = {function(x, y, z) return smaller(larger(x, y), z) end, exact},
    where = {function(x, y, z) if x ~= 0 then return y end return z end, exact},
}

return {unary = unary, binary = binary, ternary = ternary,
    round_to = round_to}
