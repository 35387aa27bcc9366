-- A file as instruments write it, with comments, decimal commas, gaps and dates
-- of its own, to monthly medians and a chart of them.
--   lumat weather.lua [picture]
local here = arg[0]:match("^.*/") or "./"
local T = load(here .. "weather.csv", {delimiter = ";", decimal = ",",
    comment = "#", na = {"", "-", "n/a"}, types = {Datum = "%d.%m.%Y"}})
T = T:rename{Datum = "date", Temperatur = "temperature", Regen = "rain",
    ["Wind aus"] = "wind"}
print(T)

-- --- monthly medians ---------------------------------------------------------

T.month = T.date:floor "month"
local months = T:groupby "month"
local M = months:median{"temperature", "rain"}
M.readings = months:count().count
M.month_mean = movmean(M.temperature, 3)
print("\nmedians of each month, and the mean of three months' temperatures:")
print(M)

-- The same months of all years.
T.of_year = T.date:month()
print("\nthe wettest months of the year, by the share of days with rain:")
T.is_wet = T.rain:gt(0.2)
local year = T[~T.rain:isnan()]:groupby "of_year":mean{"is_wet", "rain"}
print(year:sort("is_wet", {descending = true}):head(3))

-- --- a picture ---------------------------------------------------------------

local chart = plot(M.month.seconds, M.temperature, M.month_mean, {xdates = true,
    style = {"points", "line"}, title = "temperature", ylabel = "degrees",
    legend = {"median of a month", "mean of three"}, height = 12, width = 72})
if arg[1] then
    save(chart, arg[1])
    print("\n" .. arg[1] .. " has the picture")
else
    print()
    print(chart)
end
