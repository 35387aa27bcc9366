-- What tells of what happened: the functions by name, with their help. Their
-- bodies are loaded when one is called.
local library, methods = ...
local checks = require "lumat.checks"
local require = require

local function later(file, name)
    return function(...)
        return require("lumat." .. file)[name](...)
    end
end

checks.add("profile", "profile([\"on\"|\"off\"|\"top\"|\"reset\"|\"json\", file])",
    "What operations took while it is on: by kind (calls, time, share, " ..
    "bytes, rate) and by line of the script. Every operation is waited for " ..
    "meanwhile. Fields: operations, lines, seconds, busy, on. \"json\" " ..
    "writes a timeline for Perfetto or chrome://tracing. Also :prof.",
    "profile(\"reset\").busy", "0",
    later("profile_report", "profile"))

checks.add("how", "how(name [, file])",
    "The entries of this session that made the variable what it is, the " ..
    "fewest, as Lua that makes it again; with a file, written there. A list " ..
    "of {number, text, seconds}. Also :how.",
    "#how(\"C\")", "0",
    later("lineage_report", "how"))

checks.add("made_by", "made_by(A)",
    "The entry at the prompt that made A, its number, when and how long it " ..
    "took; then the entry that changed A last, if another one did. nil where " ..
    "none is known.",
    "made_by(eye(2))", "nil",
    later("lineage_report", "made_by"))
methods.made_by = library.made_by

checks.add("ls", "ls([pattern])",
    "The names of what is in the folder where you are, or in another one, or " ..
    "of what a pattern such as \"data/*.csv\" fits: a list that shows itself, " ..
    "folders with a slash behind them. Also :ls.",
    "#ls(\"/no*where\")", "0",
    later("folder_listing", "ls"))

checks.add("mem", "mem([\"reset\"])",
    "What holds memory: of each device that is open, bytes of matrices now " ..
    "and at most (from the last reset), kept by products, free and in all; " ..
    "the largest variables; what Lua holds. Fields: devices, variables, lua. " ..
    "Also :mem.",
    "mem().devices[1].live >= 0", "true",
    later("memory_report", "mem"))

checks.add("checking", "checking([on])",
    "With true, every product is checked as it is made: C x against A (B x) " ..
    "in f64 for a random vector x of signs (Freivalds), which costs a few " ..
    "passes over A, B and C. Beyond the kernel's bound it is an error. " ..
    "Fields: on, products, partly (rows with NaN or Inf are left out), worst " ..
    "(of the bound), kernel. Also :check.",
    "checking(false).on", "false",
    later("check_report", "checking"))

checks.add("cost", "cost(f)",
    "What f() would take, without running it: it is called with shapes in " ..
    "place of matrices. Fields: flops, bytes (moved), allocated, peak " ..
    "(bytes at once beyond what there is), seconds (from measured rates), " ..
    "operations, hints (products in a better order). Also :cost.",
    "cost(function() return ones(4, 3) * ones(3, 2) end).flops", "48",
    later("cost", "cost"))
