-- What processes do together where their prompt started them itself, without
-- MPI: of our own operations on what each has, and exchanges between. The
-- functions are those of lumat.grid, in lua/worker.
local factors = require "lumat.local_factors"
local layout = require "lumat.local_layout"
local products = require "lumat.local_products"
local next, require = next, require

local grid = {agree = layout.agree, arrange = layout.arrange,
    traffic = layout.traffic, ping = layout.ping}
for _, functions in next, {products, factors} do
    for name, f in next, functions do grid[name] = f end
end

-- m x n elements of A from ia, ja on into C from ic, jc on.
function grid.move(c, ic, jc, a, ia, ja, m, n)
    layout.move(c, layout.place, ic, jc, a, layout.place, ia, ja, m, n)
end

-- What all send and get: see swap.c in lua/worker.
function grid.prepare_swap(sent, wanted) return {sent, wanted} end
function grid.swap(ready) layout.swap(ready[1], ready[2]) end

-- What went to others is always counted.
function grid.stop_traffic() end

-- Process `own` of `all`, from 0, which come together in that folder, and whose
-- parts lie on that device.
return function(folder, own, all, device)
    grid.device = device
    function grid.who() return own, all end
    layout.open(folder, own, all, device)
    return grid
end
