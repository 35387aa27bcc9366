-- Graphs, as sparse matrices: what their edges say of their nodes. Sources: Page,
-- Brin, Motwani and Winograd, The PageRank citation ranking, 1999; Chung,
-- Spectral graph theory, 1997; Belkin and Niyogi, Laplacian eigenmaps, 2003. The
-- searches are those of gpu/sparse/graph.c.
local library = ...
local checks = require "lumat.checks"
local steps = require "lumat.graph_steps"
local brief, fail, shape_of = checks.brief, checks.fail, checks.shape_of
local graph = {}
local type = type
local huge, to_integer = math.huge, math.tointeger

-- --- what a graph is ----------------------------------------------------------

-- A as a sparse square matrix of real numbers.
local function graph_of(what, A)
    if A.dtype == "c64" or A.dtype == "c128" then
        fail(what, "edges have real numbers, these are %s: give A:abs(), say",
            A.dtype)
    end
    if A.ndim ~= 2 or A.rows ~= A.cols then
        fail(what, "a graph is a square matrix, not %s: element (i, j) is the " ..
            "edge from node i to node j", shape_of(A))
    end
    return checks.kind(A) == "matrix" and library.sparse(A) or A
end

local function check_node(what, node, nodes)
    local found = to_integer(node)
    if not found or found < 1 or found > nodes then
        fail(what, "there is no node %s, nodes are 1 to %d", brief(node), nodes)
    end
    return found
end

-- What the edges out of each node add up to.
local function weights_of(A)
    return A * library.ones(A.cols, {dtype = A.dtype, device = A.device})
end

local function refuse_negative(what, A)
    if A:lt(0).nnz > 0 or A:isnan().nnz > 0 then
        fail(what, "edges cannot weigh less than 0, or NaN: A:abs() or A:gt(0) " ..
            "may be meant")
    end
end

-- --- degrees and the Laplacian -------------------------------------------------

row{
    name = "degree", method = true,
    takes = "A: matrix|sparse {direction, weighted}",
    gives = "matrix",
    group = "graphs",
    help = "How many edges each node of a graph has. Element (i, j) of the " ..
        "square matrix A, where there is one, is the edge from node i to node " ..
        "j; of a dense matrix zeros are none.",
    example = "degree(mat{{0, 1, 1}, {1, 0, 0}, {1, 0, 0}})",
    result = "{2, 1, 1}",
    options = {
        {"direction", "\"out\"|\"in\"|\"both\"", "\"out\"", "edges that leave " ..
            "a node, that come to it, or their sum"},
        {"weighted", "boolean", "false", "add the elements up instead"}},
}
function graph.degree(A, options)
    options = options or {}
    A = graph_of("degree", A)
    local count = options.weighted and weights_of or steps.degrees
    local direction = options.direction or "out"
    if direction == "out" then return count(A) end
    if direction == "in" then return count(A.T) end
    return count(A) + count(A.T)
end

-- 1 / sqrt(x), and 0 of 0.
local function root_inverse(x)
    return library.where(x:eq(0), 0, 1 / x:sqrt())
end

-- v along the diagonal.
local function diagonal(v)
    local n = v.rows
    local places = library.range(1, n, 1, {dtype = "f64", device = v.device})
    return library.sparse(places, places, v, n, n)
end

row{
    name = "laplacian", method = true,
    takes = "A: matrix|sparse {normalized}",
    gives = "sparse",
    group = "graphs",
    help = "The Laplacian of a graph: D - A, where D has on its diagonal what " ..
        "the edges out of each node add up to. It is sparse. The number of " ..
        "zero eigenvalues is that of components, of a graph whose edges go " ..
        "both ways.",
    example = "full(laplacian(mat{{0, 1}, {1, 0}}))",
    result = "{{1, -1}, {-1, 1}}",
    options = {
        {"normalized", "boolean", "false", "D^(-1/2) (D - A) D^(-1/2), 0 for " ..
            "nodes without edges"}},
}
function graph.laplacian(A, options)
    A = graph_of("laplacian", A)
    local degrees = weights_of(A)
    local L = diagonal(degrees) - A
    if not (options and options.normalized) then return L end
    refuse_negative("laplacian", A)
    local scale = diagonal(root_inverse(degrees))
    return scale * L * scale
end

row{
    name = "spectral_embedding", method = true,
    takes = "A: matrix|sparse, k: count {tol}",
    gives = "matrix",
    group = "graphs",
    help = "k numbers for each node of a graph, such that nodes which share " ..
        "edges lie near each other: eigenvectors of the normalized Laplacian " ..
        "for its smallest eigenvalues but the first, divided by the roots of " ..
        "the degrees. The sign of the first parts a graph in two. A has to be " ..
        "symmetric and in one piece (see components).",
    example = "#spectral_embedding(sparse({1, 2, 2, 3}, {2, 1, 3, 2}, 1), 1)",
    result = "3",
    options = {
        {"tol", "positive", "1e-8, 1e-5 in f32", "the largest residual of " ..
            "eigenvectors"}},
}
function graph.spectral_embedding(A, k, options)
    local what = "spectral_embedding"
    A = graph_of(what, A)
    refuse_negative(what, A)
    local n = A.rows
    if k >= n then
        fail(what, "%d nodes have at most %d such numbers, not %d", n,
            n > 0 and n - 1 or 0, k)
    end
    if A.T ~= A then
        fail(what, "A is not symmetric: A + A.T takes edges both ways")
    end
    local _, pieces = steps.components(A, false)
    if pieces > 1 then
        fail(what, "the graph has %d components: take one of them, c = " ..
            "components(A), m = c:eq(mode(c)), A[{m, m}]", pieces)
    end
    local scale = root_inverse(weights_of(A)):col()
    local F = library.eigs(function(X) return scale % (A * (scale % X)) end,
        k + 1, {n = n, dtype = A.dtype, device = A.device, symmetric = true,
            which = "largestreal",
            tol = options and options.tol or A.dtype == "f32" and 1e-5 or 1e-8})
    local found = F.vectors[{{}, {2, k + 1}}]
    local places = found:abs():argmax(1)
    local signs = library.ones(k, {dtype = found.dtype, device = "cpu"})
    for j = 1, k do
        if found(places(1, j) // 1 | 0, j) < 0 then signs[j] = -1 end
    end
    return scale % found % signs:to(found.device):row()
end

-- --- ranks --------------------------------------------------------------------

-- What a walk that jumps goes to: a column that adds up to 1.
local function jumps_of(A, given)
    local n, there = A.rows, {dtype = A.dtype, device = A.device}
    if given == nil then return library.full(n, 1 / n, there) end
    if type(given) == "table" then given = library.vec(given, there) end
    checks.matrix("pagerank", "personal", given)
    if given.ndim ~= 1 or given.rows ~= n then
        fail("pagerank", "personal is %s, expected a vector of %d numbers, one " ..
            "for each node", shape_of(given), n)
    end
    local sum, least = given:sum(), given:min()
    if not (least >= 0 and sum > 0 and sum < huge) then
        fail("pagerank", "personal adds up to %s, its least is %s: expected " ..
            "numbers of 0 or more, not all 0", brief(sum), brief(least))
    end
    local jumps = (given:f64() / sum):to(A.device)
    return A.dtype == "f32" and jumps:f32() or jumps
end

row{
    name = "pagerank", method = true,
    takes = "A: matrix|sparse {damping, personal, tol, steps}",
    gives = "matrix, integer",
    group = "graphs",
    help = "How often each node of a graph is met by one who follows edges " ..
        "with probability `damping`, each as likely as its weight says, and " ..
        "jumps anywhere else; from nodes without edges always. Ranks add up " ..
        "to 1. Second the number of steps.",
    example = "pagerank(mat{{0, 1}, {1, 0}})",
    result = "{0.5, 0.5}",
    options = {
        {"damping", "number", "0.85", "the probability of following an edge"},
        {"personal", "matrix|table", "anywhere", "how likely a jump goes to " ..
            "each node: weights"},
        {"tol", "positive", "1e-8, 1e-5 in f32", "how far ranks may be off, " ..
            "added up"},
        {"steps", "count", "1000", "at most"}},
}
function graph.pagerank(A, options)
    options = options or {}
    local damping = options.damping or 0.85
    if not (damping >= 0 and damping < 1) then
        fail("pagerank", "damping is %s: expected 0 or more, less than 1",
            brief(damping))
    end
    A = graph_of("pagerank", A)
    refuse_negative("pagerank", A)
    if A.rows == 0 then fail("pagerank", "the graph has no nodes") end
    local tol = options.tol or A.dtype == "f32" and 1e-5 or 1e-8
    local jumps, weights = jumps_of(A, options.personal), weights_of(A)
    local share = library.where(weights:eq(0), 0, 1 / weights)
    local back = A.T
    local ranks, most, off = jumps, options.steps or 1000, nil
    for step = 1, most do
        -- What is lost at nodes without edges jumps as well.
        local followed = damping * (back * (share % ranks))
        local after = followed + (1 - followed:sum()) * jumps
        -- A step brings ranks nearer to the true ones by the factor damping.
        off = (after - ranks):abs():sum() * damping / (1 - damping)
        ranks = after
        if off <= tol then return ranks, step end
    end
    fail("pagerank", "after %d steps ranks may be off by %s, tol is %s: more " ..
        "steps, a larger tol%s", most, brief(off), brief(tol),
        A.dtype == "f32" and " or f64 may do" or " may do")
end

-- --- searches -----------------------------------------------------------------

row{
    name = "components", method = true,
    takes = "A: matrix|sparse {strong}",
    gives = "matrix, integer",
    group = "graphs",
    help = "The number of the component that each node of a graph is in, from " ..
        "1 in the order of their first nodes; second how many there are. Nodes " ..
        "are in one where edges join them, in whichever direction.",
    example = "components(sparse({1, 3}, {2, 4}, 1, 5, 5))",
    result = "{1, 1, 2, 2, 3}",
    options = {
        {"strong", "boolean", "false", "only where a way leads there and back"}},
}
function graph.components(A, options)
    return steps.components(graph_of("components", A),
        options and options.strong or false)
end

row{
    name = "bfs", method = true,
    takes = "A: matrix|sparse, from: integer",
    gives = "matrix, matrix",
    group = "graphs",
    help = "Breadth-first search: how many edges lie between the node `from` " ..
        "and each other, inf where no way leads; second the node before it on " ..
        "such a way, nan where there is none.",
    example = "bfs(sparse({1, 2}, {2, 3}, 1, 3, 3), 1)",
    result = "{0, 1, 2}",
}
function graph.bfs(A, from)
    A = graph_of("bfs", A)
    return steps.walk(A, check_node("bfs", from, A.rows))
end

-- The nodes from the first one on to `to`, and how far that is.
local function way_to(to, distances, previous)
    local length = distances(to)
    if length == huge then return library.vec({}, {dtype = "f64"}), length end
    local before, back, nodes = previous:to("cpu"), {}, {}
    while to do
        back[#back + 1] = to
        to = to_integer(before(to))
    end
    for i = #back, 1, -1 do nodes[#nodes + 1] = back[i] end
    return library.vec(nodes, {dtype = "f64", device = previous.device}), length
end

row{
    name = "shortest_paths", method = true,
    takes = "A: matrix|sparse, from: integer {to}",
    gives = "matrix, matrix|number",
    group = "graphs",
    help = "How far each node of a graph is from the node `from`, where each " ..
        "edge is as long as its element says: inf where no way leads; second " ..
        "the node before it on the shortest way, nan where there is none. With " ..
        "{to = node} the nodes along the way there, and its length. Lengths " ..
        "may be negative, unless a circle is.",
    example = "shortest_paths(sparse({1, 1, 2}, {2, 3, 3}, {1, 5, 2}, 3, 3), 1)",
    result = "{0, 1, 3}",
    options = {{"to", "integer", "all", "the node to go to"}},
}
function graph.shortest_paths(A, from, options)
    local what = "shortest_paths"
    A = graph_of(what, A)
    from = check_node(what, from, A.rows)
    local to = options and options.to
    if to then to = check_node(what, to, A.rows) end
    local distances, previous, circle = steps.paths(A, from)
    if circle then
        fail(what, "node %d is on a circle of negative length: each round makes " ..
            "a way shorter, so none is the shortest", circle)
    end
    if to then return way_to(to, distances, previous) end
    return distances, previous
end

return graph
