-- A study to adapt: eigenvector centrality by power iteration, and PageRank,
-- on a graph that people know: who met whom outside a karate club (W. W.
-- Zachary, An information flow model for conflict and fission in small groups,
-- Journal of Anthropological Research 33, 1977). karate.csv has its 78 edges.
--   lumat study_graph.lua [edges.csv] [--workers N] [--quiet] …
-- How many steps do so many digits take, and is a sparse matrix worth it?
-- Kept in runs/graph; ends in tables, charts and graph.html.
local folder = arg[0]:match("^.*/") or "./"
local given = arg[1] and not arg[1]:find("^%-%-") and arg[1]
local path = given or folder .. "karate.csv"
local DAMPING = 0.85

-- The matrix of who knows whom, both ways.
local function read_graph()
    local edges = load(path, {header = true, dtype = "f64"})
    local nodes = math.tointeger(edges:max())
    local A = zeros(nodes, nodes, {dtype = "f64"})
    for i = 1, #edges do
        local a, b = edges(i, 1) // 1 | 0, edges(i, 2) // 1 | 0
        A[{a, b}], A[{b, a}] = 1, 1
    end
    return A
end

local A = read_graph()
local nodes = #A

-- Column j spreads what j has over those it knows.
local function spread_matrix()
    return A / A:sum(1):reshape(1, nodes)
end

local matrices = {centrality = A, pagerank = spread_matrix()}

-- One step of either iteration; both keep vectors with a sum of 1.
local steps = {
    centrality = function(M, x)
        local y = M * x + x -- of M + 1, whose powers do not alternate
        return y / y:sum()
    end,
    pagerank = function(M, x)
        return M * x * DAMPING + (1 - DAMPING) / nodes
    end,
}

-- Until nothing moves by more than the tolerance: the vector, the steps.
local function iterate(step, M, tolerance)
    local x, count = full(nodes, 1 / nodes, {dtype = "f64"}), 0
    repeat
        local y = step(M, x)
        local moved = (y - x):abs():max()
        x, count = y, count + 1
    until moved <= tolerance or count == 10000
    return x, count
end

-- PageRank solves a system; centrality is as far as doubles go.
local exact = {
    pagerank = solve(eye(nodes, {dtype = "f64"}) -
        DAMPING * matrices.pagerank, full(nodes, (1 - DAMPING) / nodes,
        {dtype = "f64"})),
    centrality = iterate(steps.centrality, A, 1e-16),
}

local e = experiment{
    name = "graph",
    order = {"problem", "storage", "digits"},
    axes = {problem = {"centrality", "pagerank"},
        storage = {"dense", "sparse"}, digits = experiment.range(2, 12, 2)},
    setup = function(p)
        local M = matrices[p.problem]
        return p.storage == "sparse" and sparse(M) or M
    end,
    measure = function(p, M)
        return function()
            return iterate(steps[p.problem], M, 10.0 ^ -p.digits)
        end
    end,
    check = function(p, M, x)
        local _, count = iterate(steps[p.problem], M, 10.0 ^ -p.digits)
        return norm(x - exact[p.problem]) / norm(exact[p.problem]),
            {steps = count}
    end,
    stop = {seconds = 0.3},
}
e:run()
print(e:table{rows = {"problem", "digits"}, cols = "storage"})
print(e:table{rows = "digits", cols = "problem", value = "steps",
    where = {storage = "dense"}, best = false})
print(e:plot{x = "digits", y = "time", by = {"problem", "storage"}})
print(e:plot{x = "steps", y = "error", by = "problem", log = "y",
    where = {storage = "dense"}})

for _, problem in ipairs{"centrality", "pagerank"} do
    local x, parts = exact[problem]:totable(), {}
    local place = {}
    for i = 1, nodes do place[i] = i end
    table.sort(place, function(i, j) return x[i] > x[j] end)
    for i = 1, math.min(5, nodes) do
        parts[i] = ("%d (%.4f)"):format(place[i], x[place[i]])
    end
    print(("%-11s %s"):format(problem, table.concat(parts, "  ")))
end
e:report("graph.html", {title = "Power iteration and PageRank",
    plots = {{x = "digits", y = "time", by = {"problem", "storage"}},
        {x = "digits", y = "steps", by = "problem", where = {storage = "dense"}},
        {x = "digits", y = "error", by = "problem", log = "y",
            where = {storage = "dense"}}}})
print("graph.html has it all")
