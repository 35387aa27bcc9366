-- experiment{…}: many measurements by one description. What it does is read
-- from lua/experiment when it is first used.
local library = ...
local checks = require "lumat.checks"
local require, setmetatable = require, setmetatable
local placed = checks.placed

-- The function of a file; an error has the place of its caller.
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

row{
    name = "experiment", is_table = true,
    takes = "{name, axes, measure, setup, group, check, where, fixed, flops, " ..
        "bytes, cost, repeats, stop, warmup, cold, hold, timeout, order, " ..
        "version, title, dir}",
    gives = "table",
    usage = "experiment{name=, axes=, measure=, …}",
    group = "experiments",
    help = "A set of measurements: :plan() shows what is to do, :run() does " ..
        "it, keeping every finished point in dir whatever happens (its " ..
        "options: ?experiments), :results() gives the rows, :table{} " ..
        ":csv(path) :jsonl(path) :plot{} :report(path) show them. " ..
        "experiment.open(dir) reads a run directory, " ..
        "experiment.compare(a, b) compares two. Axes are lists, pow2(6, " ..
        "13), experiment.range(first, last, step), " ..
        "experiment.logspace(first, last, count), experiment.zip{…}, " ..
        "experiment.product{…}, experiment.random(count, list or " ..
        "function, seed).",
    example = "#experiment{name = \"a\", axes = {n = pow2(1, 3), k = {1, 2}}, " ..
        "measure = function(p) return p.n end}:points()",
    result = "6",
    options = {
        {"name", "string", false,
            "letters, digits, _ . and -"},
        {"axes", "table", false,
            "a table: parameter = its values, a list or what pow2, " ..
            "experiment.range … give; or a list of points"},
        {"measure", "function", false,
            "function(p, state): the seconds of one run, called 11 times a " ..
            "point or more unless repeats, stop and warmup say otherwise, or " ..
            "a function to be timed, and a table of more figures; or false " ..
            "and why the point is left out"},
        {"setup", "function", false,
            "function(p): the state for measure; points that differ only in " ..
            "what it does not read share one and are measured in turn"},
        {"group", "table|string|boolean", false,
            "a list of the axes that setup reads, where its text does not " ..
            "tell; false: a setup for each point"},
        {"check", "function", false,
            "function(p, state, output): an error and a table of more " ..
            "figures, true, or false and why"},
        {"where", "function", false,
            "function(p): is the point wanted"},
        {"fixed", "table", false,
            "a table of parameters that stay the same"},
        {"flops", "function|number", false,
            "a number or function(p): of one run"},
        {"bytes", "function|number", false,
            "a number or function(p): of one run"},
        {"cost", "function|number", false,
            "function(p): how long a point takes, in any unit"},
        {"repeats", "number", "as stop says",
            "so many samples; 1: measure is called once"},
        {"stop", "table|function", false,
            "when there are enough samples: {interval = 0.01, least = 10, " ..
            "most = 100, seconds = 1} unless it says otherwise"},
        {"warmup", "number", "1",
            "runs before the first sample, which do not count"},
        {"cold", "boolean|function", false,
            "true: caches are emptied before each sample"},
        {"hold", "function|number", false,
            "seconds, or function(p): so long the work is repeated besides, " ..
            "for its time under a load that lasts"},
        {"timeout", "number", false,
            "seconds after which a worker's point is given up"},
        {"order", "table", false,
            "a list: the axes in their order"},
        {"version", "number|string", false,
            "what makes old points stale when it changes"},
        {"title", "string", "the name",
            "over tables, pictures and reports"},
        {"dir", "string|boolean", "runs/NAME",
            "the run directory; false: nothing is kept"}},
}

row{
    name = "experiment.run",
    takes = "e: table {workers, threads, devices, launcher, slurm, shard, " ..
        "budget, only, retry_failed, resume, stale, mix, order, each, quiet}",
    gives = "table",
    usage = "e:run{…}",
    help = "Measures the points that are not done: ?experiments.",
    options = {
        {"workers", "number", false,
            "so many processes, a GPU each where there are several: they run " ..
            "the same script, silently, up to this run"},
        {"threads", "number", "all cores, or of several workers each its part",
            "so many threads in each process"},
        {"devices", "table", false,
            "a list as {\"cuda:1\"}: the devices of workers, in turn; without " ..
            "workers one, for this run"},
        {"launcher", "\"srun\"", false,
            "\"srun\": the workers are an array job of Slurm, which sbatch " ..
            "takes; Ctrl-C leaves it, and the same run again looks at it"},
        {"slurm", "table", false,
            "options of that job as sbatch has them: {partition = \"gpu\", time " ..
            "= \"1:00:00\", mem = \"4G\", gres = \"gpu:1\", cpus_per_task = 4}"},
        {"shard", "string", false,
            "\"2/8\": the second of eight parts"},
        {"budget", "string|number", false,
            "no point is begun after this time: \"90s\", \"10m\", \"2h\""},
        {"only", "function", false,
            "function(p): the points it is true for"},
        {"retry_failed", "boolean", false,
            "true: does those that failed again"},
        {"resume", "boolean", false,
            "false: measures everything anew"},
        {"stale", "\"drop\"|\"keep\"", false,
            "\"drop\": measures anew what other code measured; \"keep\" lets it " ..
            "count"},
        {"mix", "boolean", false,
            "true: adds to rows that were measured elsewhere: on another " ..
            "machine or device, with other threads; tables say which is which"},
        {"order", "\"given\"|\"interleaved\"|\"longest\"", false,
            "of the points: \"given\"; else \"longest\" first for workers where " ..
            "costs are known, or \"interleaved\", as if shuffled"},
        {"each", "function", false,
            "function(row): is called for each point when it is done, whoever " ..
            "did it"},
        {"quiet", "boolean", false,
            "true: no progress"}},
}

row{
    name = "experiment.plan",
    takes = "e: table",
    gives = "table",
    usage = "e:plan()",
    help = "What is done and what is to do.",
}

row{
    name = "experiment.points",
    takes = "e: table",
    gives = "table",
    usage = "e:points()",
    help = "A list of the points: tables of parameters.",
}

row{
    name = "experiment.results",
    takes = "e: table",
    gives = "table",
    usage = "e:results()",
    help = "A list of the rows: row.median is the time that was found, row.time " ..
        "when it was measured, in seconds since 1970.",
}

row{
    name = "experiment.environments",
    takes = "e: table",
    gives = "table",
    usage = "e:environments()",
    help = "Where rows were measured, by the number they name.",
}

row{
    name = "experiment.table",
    takes = "e: table {rows, cols, value, stat, where, best, ratio_to}",
    gives = "table",
    usage = "e:table{…}",
    help = "The points as a table: ?results.",
    options = {
        {"rows", "string|table", false,
            "an axis, or a list of them, down the side"},
        {"cols", "string|table", false,
            "an axis, or a list of them, across the top"},
        {"value", "string|function", false,
            "the figure that is shown"},
        {"stat", "\"min\"|\"max\"|\"mean\"|\"median\"", "\"median\"",
            "of the samples of each point, and of the points in one cell, or " ..
            "at one x of a line"},
        {"where", "table|function", false,
            "chooses rows: {n = 64}, or a function(p, row)"},
        {"best", "boolean", false,
            "false, or true also where numbers head the columns"},
        {"ratio_to", "table", false,
            "{kernel = \"cublas\"}: how many times as fast as the point that " ..
            "has this and else the same parameters; what is zipped with these " ..
            "goes along"}},
}

row{
    name = "experiment.plot",
    takes = "e: table {x, y, by, value, stat, log, file, kind, where, width, " ..
        "height, title}",
    gives = "table",
    usage = "e:plot{…}",
    help = "A chart: ?results.",
    options = {
        {"x", "string", false,
            "the axis along x"},
        {"y", "string|function", false,
            "the figure, or the other axis of a heat map"},
        {"by", "string|table", false,
            "a line for each value of it"},
        {"value", "string|function", false,
            "the figure of a heat map of two axes"},
        {"stat", "\"min\"|\"max\"|\"mean\"|\"median\"", "\"median\"",
            "of the samples of each point, and of the points in one cell, or " ..
            "at one x of a line"},
        {"log", "\"x\"|\"y\"|\"xy\"|string|boolean", "as the values are",
            "which scales are logarithmic"},
        {"kind", "\"lines\"|\"heat\"|\"roofline\"", false,
            "\"roofline\": rates over flops a byte, below the measured peaks"},
        {"where", "table|function", false,
            "chooses rows: {n = 64}, or a function(p, row)"},
        {"title", "string", false,
            "over the chart"}},
}

row{
    name = "experiment.report",
    takes = "e: table, path: path {title, plots, where}",
    gives = "table",
    usage = "e:report(path [, {title=, plots=, where=}])",
    help = "Writes one HTML file with everything there is to see, table, " ..
        "plots, what failed, environment and script: ?results.",
    options = {
        {"title", "string", false,
            "over the page"},
        {"plots", "table", false,
            "a list of the options of charts: {{y = \"time\"}, …}"},
        {"where", "table|function", false,
            "chooses rows: {n = 64}, or a function(p, row)"}},
}

row{
    name = "experiment.csv",
    takes = "e: table, path: path {where}",
    gives = "table",
    usage = "e:csv(path [, {where=}])",
    help = "Writes the rows as CSV: ?results.",
    options = {
        {"where", "table|function", false,
            "chooses rows: {n = 64}, or a function(p, row)"}},
}

row{
    name = "experiment.jsonl",
    takes = "e: table, path: path {where}",
    gives = "table",
    usage = "e:jsonl(path [, {where=}])",
    help = "Writes the rows as lines of JSON: ?results.",
    options = {
        {"where", "table|function", false,
            "chooses rows: {n = 64}, or a function(p, row)"}},
}

row{
    name = "experiment.compare",
    takes = "a: table|string, b: table|string {threshold}",
    gives = "table",
    usage = "experiment.compare(a, b [, {threshold=}])",
    help = "SAME, FASTER, SLOWER or UNSURE of each point of two experiments, " ..
        "run directories or files of rows: ?results.",
    options = {
        {"threshold", "number", "0.02",
            "the change that matters, as a share"}},
}

row{
    name = "experiment.open",
    takes = "dir: folder",
    gives = "table",
    usage = "experiment.open(dir)",
    help = "The experiment of a run directory, to look at.",
}

row{
    name = "experiment.range",
    takes = "first: number, last: number [, step: number]",
    gives = "table",
    usage = "experiment.range(first, last [, step])",
    help = "A list of numbers, both ends included.",
}

row{
    name = "experiment.logspace",
    takes = "first: number, last: number, count: count",
    gives = "table",
    usage = "experiment.logspace(first, last, count)",
    help = "A list of numbers, each the same multiple of the one before.",
}

row{
    name = "experiment.zip",
    takes = "axes: table",
    gives = "table",
    usage = "experiment.zip{m = {…}, n = {…}}",
    help = "Parameters that go together, as one axis.",
}

row{
    name = "experiment.product",
    takes = "axes: table",
    gives = "table",
    usage = "experiment.product{m = {…}, n = {…}}",
    help = "Every combination, as one axis.",
}

row{
    name = "experiment.random",
    takes = "count: count, values: table|function [, seed: integer]",
    gives = "table",
    usage = "experiment.random(count, values [, seed])",
    help = "So many values of a list, or that a function(u) makes of numbers " ..
        "from 0 to 1.",
}

row{
    name = "experiment.stop", is_part = true,
    takes = "{interval, least, most, seconds}",
    gives = "nothing",
    help = "When there are enough samples.",
    options = {
        {"interval", "positive", "0.01", "as a share of the median"},
        {"least", "positive", "10", "samples"},
        {"most", "positive", "100", "samples"},
        {"seconds", "positive", "1", "for all of them"}},
}

-- What an experiment is seen by: its methods, read when the first of them is
-- called, as most sessions need none.
local function view(file, name)
    return function(...) return require("lumat." .. file)[name](...) end
end

return {
    views = {
        table = view("tables", "table"),
        csv = view("export", "csv"),
        jsonl = view("export", "jsonl"),
        plot = view("result_charts", "plot"),
        report = view("report", "report"),
        compare = view("comparing", "compare"),
    },
}
