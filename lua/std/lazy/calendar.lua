-- The Gregorian calendar in days since 1970 began. The same lines take numbers
-- and vectors. Source: Howard Hinnant, chrono-compatible low-level date
-- algorithms, 2013. Years begin in March, so that the leap day is their last.
local calendar = {}
local floor, type = math.floor, type

local function whole_of(x)
    return type(x) == "number" and floor(x) or x:floor()
end

-- 1 where x is larger than a number, else 0.
local function above(x, limit)
    if type(x) == "number" then return x > limit and 1 or 0 end
    return x:gt(limit):f64()
end

-- Year, month and day of so many days since 1970 began.
function calendar.date_of(days)
    local z = days + 719468
    local era = whole_of(z / 146097)
    local e = z - era * 146097
    local year = whole_of((e - whole_of(e / 1460) + whole_of(e / 36524) -
        whole_of(e / 146096)) / 365)
    local day = e - (year * 365 + whole_of(year / 4) - whole_of(year / 100))
    local part = whole_of((day * 5 + 2) / 153)
    local month = part + 3 - above(part, 9) * 12
    return year + era * 400 + 1 - above(month, 2), month,
        day - whole_of((part * 153 + 2) / 5) + 1
end

-- Days since 1970 began, of a day of the month that is a number.
function calendar.days_of(year, month, day)
    local y = year - 1 + above(month, 2)
    local era = whole_of(y / 400)
    local of_era = y - era * 400
    local part = whole_of(((month + 9 - above(month, 2) * 12) * 153 + 2) / 5)
    return era * 146097 + of_era * 365 + whole_of(of_era / 4) -
        whole_of(of_era / 100) + part + (day - 1) - 719468
end

return calendar
