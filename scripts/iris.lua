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

local chart = scatter(P[{{}, 1}], P[{{}, 2}], {by = T.species,
    title = "irises by their first two components", xlabel = "first",
    ylabel = "second", height = 16, width = 72})
if arg[1] then
    save(chart, arg[1])
    print("\n" .. arg[1] .. " has the picture")
else
    print()
    print(chart)
end
