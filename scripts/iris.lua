-- Fisher's irises: from a file to groups, principal components and a picture.
--   lumat iris.lua [picture]
local here = arg[0]:match("^.*/") or "./"
local T = load(here .. "iris.csv")
print(T)
print("\nmeans of each species:")
print(T:groupby "species":mean())

-- --- principal components ----------------------------------------------------

local X = zscore(T:matrix())
local U, S, V = svd(X):unpack()
local P = X * V
print("\nshare of the spread that each component has:")
print(S:square() / S:square():sum())
print("\ncorrelation of the columns:")
print(corr(X))

-- --- a picture ---------------------------------------------------------------

-- Each species is a series: the second component where it is that one.
local names, series = T:unique "species":totable(), {}
for k, name in ipairs(names) do
    series[k] = where(T.species:eq(name), P[{{}, 2}], 0 / 0)
end
local chart = scatter(P[{{}, 1}], series[1], series[2], series[3],
    {legend = names, title = "irises by their first two components",
    xlabel = "first", ylabel = "second", height = 16, width = 72})
if arg[1] then
    save(chart, arg[1])
    print("\n" .. arg[1] .. " has the picture")
else
    print()
    print(chart)
end
