-- pool{…}: processes that compute together. What it does is read from lua/pool
-- when it is first used.
local library = ...
local checks = require "lumat.checks"
local require, setmetatable = require, setmetatable
local placed = checks.placed

local function from(name)
    return placed(function(...) return require("lumat.pool")[name](...) end)
end

library.pool = setmetatable({
    restart = from "restart",
    close = from "close",
    info = from "info",
    ping = from "ping",
    count = from "count",
    rank = from "rank",
}, {
    __name = "pool",
    __call = placed(function(_, options)
        return require("lumat.pool").open(options or {})
    end),
    __tostring = function()
        return "pool: a function; pool{ranks = 4}, see ?pool"
    end,
})

row{
    name = "pool", is_table = true,
    takes = "{ranks, grid, block, device, hosts, launcher, timeout, arguments}",
    gives = "table",
    usage = "pool{ranks=, …}",
    group = "pools",
    example = "pool.count()", result = "0",
    help = "Starts processes that compute together: each has parts " ..
        "of the matrices that drand(m, n), spread(A) and their like make, " ..
        "and D * E, D:sum(), D:solve(b) are done by all. One pool runs at a " ..
        "time. pool.restart() starts it anew where a process was lost, " ..
        "pool.close() ends it, pool.info() tells of it. mpirun -n 4 lumat " ..
        "--spmd f.lua runs a script on four processes at once, without a " ..
        "prompt: each call of distributed matrices is one of all, rank 0 " ..
        "prints and saves; what a script does besides, as by io.open, each " ..
        "does (pool.rank() tells which it is). --spmd-check finds calls " ..
        "that differ.",
    options = {
        {"ranks", "count", false, "how many; as many as cores, or GPUs"},
        {"grid", "table", false, "{rows, columns} of processes; the squarest"},
        {"block", "count", false, "rows and columns of a block",
            "64; of GPUs 1024"},
        {"device", "string", "\"cpu\"", "\"gpu\": a GPU each, by NCCL"},
        {"hosts", "table", "this one", "names of hosts that have lumat in the " ..
            "same place, as {\"a\", \"b:4\"}; their links are not encrypted"},
        {"launcher", "\"mpirun\"|\"srun\"|\"local\"", "\"mpirun\"",
            "\"srun\": a step of Slurm; \"local\": this program alone, without " ..
            "MPI, as where lumat-worker was not built"},
        {"timeout", "number", "20", "seconds without an answer after which a " ..
            "process counts as gone, and all are ended"},
        {"arguments", "table", false,
            "what mpirun is given besides, as {\"--hostfile\", \"h\"}"},
    },
}
row{
    name = "pool.restart", takes = "", gives = "table", usage = "pool.restart()",
    help = "Ends the pool, and starts one like it. What lay on it is lost.",
}
row{
    name = "pool.close", takes = "", gives = "nothing", usage = "pool.close()",
    help = "Ends the pool.",
}
row{
    name = "pool.count", takes = "", gives = "integer", usage = "pool.count()",
    help = "How many processes there are; 0: there is no pool.",
}
row{
    name = "pool.rank", takes = "", gives = "integer", usage = "pool.rank()",
    help = "Which of the processes this is that run one script (lumat --spmd), " ..
        "from 0 on; 0 at the prompt.",
}
row{
    name = "pool.ping", takes = "", gives = "number", usage = "pool.ping()",
    help = "The seconds that an empty command of the pool takes.",
}
row{
    name = "pool.info", takes = "", gives = "string", usage = "pool.info()",
    help = "The processes, what lies on them, and how long a command takes.",
}
