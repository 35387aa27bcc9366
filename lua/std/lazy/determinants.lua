-- Determinants of factors: products of the numbers on a diagonal, whose range
-- those of a type leave soon, and signs of orders of rows.
local library = ...
local checks = require "lumat.checks"
local steps = require "lumat.factor_steps"
local as_wide, is_complex = checks.as_wide, checks.is_complex
local ipairs, type = ipairs, type
local exp, huge = math.exp, math.huge
local determinants = {}

-- Of the numbers on a diagonal: the sign of their product, of complex ones the
-- product over its size, and the logarithm of its size.
function determinants.sign_and_log(d)
    d = as_wide(d)
    if d.rows == 0 then return 1, 0.0 end
    if steps.is_dry() then return 1, d:abs():log():sum() end
    local zeros = d:eq(0):sum()
    if zeros > 0 then return 0, -huge end
    if is_complex(d) then
        return library.sign(library.sign(d):prod()), d:abs():log():sum()
    end
    return d:lt(0):sum() % 2 == 0 and 1 or -1, d:abs():log():sum()
end

-- The product of such numbers, in f64, whose range those of f32 leave soon; one
-- that leaves it on the way is worked out by its logarithm.
function determinants.product_of(d)
    d = as_wide(d)
    if d.rows == 0 then return 1.0 end
    local product = d:prod()
    if steps.is_dry() then return product end
    local size = library.abs(product)
    if size > 0 and size < huge then return product end
    local sign, log = determinants.sign_and_log(d)
    size = exp(log)
    if log == -huge or type(sign) == "number" then return sign * size end
    local function scaled(x) return x == 0 and x or x * size end
    return library.complex(scaled(sign.real), scaled(sign.imag))
end

-- 1 or -1, of places 1 to n in some order.
function determinants.parity(places)
    local sign, seen = 1, {}
    for i in ipairs(places) do
        while not seen[i] do
            seen[i], i = true, places[i]
            if not seen[i] then sign = -sign end
        end
    end
    return sign
end

return determinants
