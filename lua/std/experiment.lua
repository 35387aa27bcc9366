-- experiment{…}: many measurements by one description. What it does is read
-- from lua/experiment when it is first used.
local library, _, help = ...
local checks = require "lumat.checks"
local require, setmetatable = require, setmetatable
local placed = checks.placed

local function from(file, name)
    return placed(function(...) return require("lumat." .. file)[name](...) end)
end

library.experiment = setmetatable({
    open = from("definition", "open"),
    compare = function(...) return require("lumat.comparing").compare(...) end,
    range = from("axes", "range"),
    logspace = from("axes", "logspace"),
    zip = from("axes", "zip"),
    product = from("axes", "product"),
    random = from("axes", "random"),
}, {
    __name = "experiment",
    __call = placed(function(_, spec)
        return require("lumat.definition").define(spec)
    end),
    __tostring = function()
        return "experiment: a function; experiment{name=, axes=, measure=}, " ..
            "see ?experiment"
    end,
})

help.experiment = {
    usage = "experiment{name=, axes=, measure=, …}",
    help = "A set of measurements: :plan() shows what is to do, " ..
        ":run() does it, keeping every finished point in dir whatever " ..
        "happens (its options: ?experiments), :results() gives the rows, :table{} :csv(path) " ..
        ":jsonl(path) :plot{} :report(path) show them. experiment.open(dir) " ..
        "reads a run directory, experiment.compare(a, b) compares two. Axes " ..
        "are lists, pow2(6, 13), experiment.range(first, last, step), " ..
        "experiment.logspace(first, last, count), experiment.zip{…}, " ..
        "experiment.product{…}, experiment.random(count, list or function, " ..
        "seed). Options: name (letters, digits, _ . and -), " ..
        "axes (a table: parameter = its values, a list or what pow2, " ..
        "experiment.range … give; or a list of points), " ..
        "measure (function(p, state): the seconds of one run, called 11 times " ..
        "a point or more unless repeats, stop and warmup say otherwise, or a " ..
        "function to be timed, and a table of more figures; or false and why " ..
        "the point is left out), " ..
        "setup (function(p): the state for measure; points that differ only " ..
        "in what it does not read share one and are measured in turn), " ..
        "group (a list of the axes that setup reads, where its text does not " ..
        "tell; false: a setup for each point), " ..
        "check (function(p, state, output): an error and a table of more " ..
        "figures, true, or false and why), " ..
        "where (function(p): is the point wanted), " ..
        "fixed (a table of parameters that stay the same), " ..
        "flops (a number or function(p): of one run), " ..
        "bytes (a number or function(p): of one run), " ..
        "cost (function(p): how long a point takes, in any unit), " ..
        "repeats (so many samples; else as stop says; 1: measure is called " ..
        "once), " ..
        "stop (when there are enough samples: {interval = 0.01, least = 10, " ..
        "most = 100, seconds = 1} unless it says otherwise), " ..
        "warmup (runs before the first sample, which do not count: 1), " ..
        "cold (true: caches are emptied before each sample), " ..
        "hold (seconds, or function(p): so long the work is repeated besides, " ..
        "for its time under a load that lasts), " ..
        "timeout (seconds after which a worker's point is given up), " ..
        "order (a list: the axes in their order), " ..
        "version (a number or string that makes old points stale), " ..
        "title (over tables, pictures and reports, in place of the name), " ..
        "dir (the run directory, else runs/NAME; false: nothing is kept).",
    example = "#experiment{name = \"a\", axes = {n = pow2(1, 3), k = {1, 2}}, " ..
        "measure = function(p) return p.n end}:points()", result = "6"}

library.pow2 = from("axes", "pow2")
help.pow2 = {
    usage = "pow2(first, last)",
    help = "A list of the powers 2^first … 2^last, for the axis of an " ..
        "experiment.",
    example = "pow2(6, 8)[3]", result = "256"}
