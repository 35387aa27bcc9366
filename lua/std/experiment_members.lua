-- What Tab and the hints of calls know of the functions of experiment, and of
-- an experiment's methods; whose usage begins with e: are methods. What the
-- options do is in ?experiments and ?results.
local _, _, help = ...

help.experiment.members = {
    run = {usage = "e:run{…}",
        help = "Measures the points that are not done: ?experiments. " ..
            "Options: resume (true, false), workers, threads, devices, " ..
            "shard, budget, only, retry_failed (true, false), quiet (true, " ..
            "false), stale (\"drop\", \"keep\"), mix (true, false), order " ..
            "(\"given\", \"interleaved\", \"longest\"), each."},
    plan = {usage = "e:plan()", help = "What is done and what is to do."},
    points = {usage = "e:points()",
        help = "A list of the points: tables of parameters."},
    results = {usage = "e:results()", help = "A list of the rows."},
    environments = {usage = "e:environments()",
        help = "Where rows were measured, by the number they name."},
    table = {usage = "e:table{…}",
        help = "The points as a table: ?results. Options: rows, cols, value, " ..
            "stat (\"min\", \"max\", \"mean\", \"median\"), where, best " ..
            "(true, false), ratio_to."},
    plot = {usage = "e:plot{…}",
        help = "A chart: ?results. Options: x, y, by, value, stat (\"min\", " ..
            "\"max\", \"mean\", \"median\"), log (\"x\", \"y\", \"xy\", true, " ..
            "false), file, kind (\"lines\", \"heat\", \"roofline\"), where, " ..
            "width, height, title."},
    report = {usage = "e:report(path [, options])",
        help = "Writes a page of everything there is to see: ?results. " ..
            "Options: title, plots, where."},
    csv = {usage = "e:csv(path [, options])",
        help = "Writes the rows as CSV: ?results. Options: where."},
    jsonl = {usage = "e:jsonl(path [, options])",
        help = "Writes the rows as lines of JSON: ?results. Options: where."},
    compare = {usage = "experiment.compare(a, b [, options])",
        help = "SAME, FASTER, SLOWER or UNSURE of each point: ?results. " ..
            "Options: threshold."},
    open = {usage = "experiment.open(dir)",
        help = "The experiment of a run directory, to look at."},
    range = {usage = "experiment.range(first, last [, step])",
        help = "A list of numbers, both ends included."},
    logspace = {usage = "experiment.logspace(first, last, count)",
        help = "A list of numbers, each the same multiple of the one before."},
    zip = {usage = "experiment.zip{m = {…}, n = {…}}",
        help = "Parameters that go together, as one axis."},
    product = {usage = "experiment.product{m = {…}, n = {…}}",
        help = "Every combination, as one axis."},
    random = {usage = "experiment.random(count, values [, seed])",
        help = "So many values of a list, or that a function(u) makes of " ..
            "numbers from 0 to 1."},
}
