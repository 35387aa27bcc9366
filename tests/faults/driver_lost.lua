-- lumat driver_lost.lua with LUMAT_FAULT=name:n:once:error of an error that ends
-- the use of the device, or one while it is opened: prints GOOD and what came
-- of it, or BAD and why.
--
-- The CPU goes on with what was in its memory, matrices of the device are lost
-- and say so, saving names them; a GPU that does not open is told of in a line.
local function bad(...)
    print("BAD", ...)
    os.exit(9)
end

local H = mat({{1, 2}, {3, 4}}, {device = "cpu"})
local A, B
local ok, got = pcall(function()
    A = H:to(device()) + 1
    B = rand(200, 200)
    local t = A:cumsum(1):sum() + (B * B):max() + sort(B):sum()
    sync()
    return t
end)
if H:sum() ~= 10 or (H + H):sum() ~= 20 then bad "the CPU computes wrong" end
if ok then
    print("GOOD", device() == "cpu" and "on the CPU" or "no harm")
    return
end
local says = tostring(got)
if not says:find "its matrices are lost" then
    if not says:find "%(cudaError%w+%)" and not says:find "out of memory" then
        bad("says", says)
    end
    if os.getenv "LUMAT_FAULT":find ":forever" then
        print("GOOD", "error")
        return
    end
    local works, again = pcall(function() return (zeros(9, 9) + 1):sum() end)
    if works then
        print("GOOD", "error")
        return
    end
    says = tostring(again) -- what a library found, it may call by another name
    if not says:find "its matrices are lost" then bad("and then", says) end
end
if not says:find ":restart" then bad("does not say what to do:", says) end
if A then
    if not tostring(A):find "lost" then bad("shows", tostring(A)) end
    local reads, why = pcall(function() return A:sum() end)
    if reads or not why:find "was lost when cuda:0 failed" then
        bad("reading says", why)
    end
    pcall(function() A:free() end)
end
if zeros(2, 2).device ~= "cpu" then bad "new matrices are on the lost device" end
if rand(3, 3):to "cpu".rows ~= 3 then bad "the CPU does not work" end
local on, why = pcall(function() return H:to "cuda" end)
if on or not why:find "is lost" then bad("to the lost device:", why) end
host, gone = H, B
local path = os.tmpname() .. ".lum"
local saved = B and tostring(save_session(path)) or ""
os.remove(path)
os.remove((path:gsub("%.lum$", "")))
if B and not saved:find "gone %(a matrix that was lost%)" then
    bad("saving says", saved)
end
A, B, gone = nil, nil, nil
collectgarbage()
print("GOOD", "lost")
