-- Graphs as sparse matrices: degrees, components, searches, ranks, Laplacians
-- and embeddings, by small graphs that can be followed by hand and by random ones
-- against plain loops; and what they refuse.
local lu = require "luaunit"
local t = require "common"
local equals, inf, nan = t.equals, t.inf, t.nan
local f64 = {dtype = "f64"}

local function raises(text, f, ...)
    local arguments = table.pack(...)
    t.raises(function()
        return f(table.unpack(arguments, 1, arguments.n))
    end, text)
end

-- A random graph of n nodes as a sparse matrix, and its edges as lists: each is
-- {to, length} of edges[i].
local function random_graph(n, count, seed)
    local from = randint(1, n, count, {seed = seed}):totable()
    local to = randint(1, n, count, {seed = seed + 1}):totable()
    local length = randint(1, 9, count, {seed = seed + 2}):totable()
    local edges, i, j, v, seen = {}, {}, {}, {}, {}
    for k = 1, n do edges[k] = {} end
    for k = 1, count do
        local a, b = from[k] // 1 | 0, to[k] // 1 | 0
        if not seen[a * n + b] then
            seen[a * n + b] = true
            i[#i + 1], j[#j + 1], v[#v + 1] = a, b, length[k]
            table.insert(edges[a], {b, length[k]})
        end
    end
    return sparse(i, j, v, n, n, f64), edges
end

-- How far nodes are from `from`, by shortening until nothing changes.
local function distances(edges, from, length_of)
    local far = {}
    for i = 1, #edges do far[i] = inf end
    far[from] = 0
    repeat
        local changed = false
        for i = 1, #edges do
            for _, e in ipairs(edges[i]) do
                local d = far[i] + length_of(e)
                if d < far[e[1]] then far[e[1]], changed = d, true end
            end
        end
    until not changed
    return far
end

-- Six nodes: a circle 1 2 3, an edge to 4, and 5 that only goes to itself.
local small = sparse({1, 2, 3, 3, 5}, {2, 3, 1, 4, 5}, {1, 1, 1, 5, 2}, 6, 6,
    f64)

TestDegree = {}

function TestDegree:test_directions()
    equals(degree(small), {1, 1, 2, 0, 1, 0})
    equals(small:degree{direction = "in"}, {1, 1, 1, 1, 1, 0})
    equals(degree(small, {direction = "both"}), {2, 2, 3, 1, 2, 0})
    equals(degree(small, {weighted = true}), {1, 1, 6, 0, 2, 0})
    equals(degree(small, {weighted = true, direction = "in"}),
        {1, 1, 1, 5, 2, 0})
end

function TestDegree:test_dense_and_no_edges()
    equals(degree(mat{{0, 2}, {0, 0}}), {1, 0})
    equals(degree(sparse({}, {}, 1, 3, 3)), {0, 0, 0})
    equals(degree(zeros(0, 0)), {})
end

function TestDegree:test_stored_zeros_are_edges()
    equals(degree(sparse({1, 1}, {1, 2}, {0, 1}, 2, 2)), {2, 0})
end

TestComponents = {}

function TestComponents:test_both_kinds()
    local numbers, count = components(small)
    equals(numbers, {1, 1, 1, 1, 2, 3})
    lu.assertEquals(count, 3)
    numbers, count = components(small, {strong = true})
    equals(numbers, {1, 1, 1, 2, 3, 4})
    lu.assertEquals(count, 4)
    numbers, count = components(sparse({}, {}, 1, 0, 0))
    equals(numbers, {})
    lu.assertEquals(count, 0)
end

-- Two nodes are in one component where both lead to each other, or, taken both
-- ways, one to the other.
function TestComponents:test_random_graphs()
    for seed = 1, 12 do
        local n = 4 + 3 * seed
        local A, edges = random_graph(n, n + seed % 5 * 4, 10 * seed)
        local there, round = {}, {}
        for i = 1, n do
            there[i], round[i] = distances(edges, i, function() return 1 end), {}
        end
        for i = 1, n do
            for _, e in ipairs(edges[i]) do
                table.insert(round[i], {e[1], 1})
                table.insert(round[e[1]], {i, 1})
            end
        end
        local strong = components(A, {strong = true})
        local weak = components(A)
        for i = 1, n do
            local around = distances(round, i, function() return 1 end)
            for j = 1, n do
                lu.assertEquals(strong(i) == strong(j),
                    there[i][j] < inf and there[j][i] < inf)
                lu.assertEquals(weak(i) == weak(j), around[j] < inf)
            end
        end
    end
end

function TestComponents:test_a_long_line_needs_no_deep_stack()
    local n = 200000
    local A = sparse(range(1, n - 1, 1, f64), range(2, n, 1, f64), 1, n, n)
    local _, count = components(A)
    lu.assertEquals(count, 1)
    _, count = components(A, {strong = true})
    lu.assertEquals(count, n)
    lu.assertEquals(bfs(A, 1)(n), n - 1)
    lu.assertEquals(shortest_paths(A, 1)(n), n - 1)
end

TestSearches = {}

function TestSearches:test_by_hand()
    local depths, before = bfs(small, 2)
    equals(depths, {2, 0, 1, 2, inf, inf})
    equals(before, {3, nan, 2, 3, nan, nan})
    local far
    far, before = small:shortest_paths(2)
    equals(far, {2, 0, 1, 6, inf, inf})
    equals(before, {3, nan, 2, 3, nan, nan})
end

function TestSearches:test_one_way()
    local way, length = shortest_paths(small, 1, {to = 4})
    equals(way, {1, 2, 3, 4})
    lu.assertEquals(length, 7)
    way, length = shortest_paths(small, 4, {to = 4})
    equals(way, {4})
    lu.assertEquals(length, 0)
    way, length = shortest_paths(small, 4, {to = 1})
    lu.assertEquals(#way, 0)
    lu.assertEquals(length, inf)
end

function TestSearches:test_random_graphs()
    for seed = 1, 12 do
        local n = 5 + 4 * seed
        local A, edges = random_graph(n, 3 * n, 100 * seed)
        local depths, near = bfs(A, seed)
        equals(depths, distances(edges, seed, function() return 1 end))
        local far, before = shortest_paths(A, seed)
        equals(far, distances(edges, seed, function(e) return e[2] end))
        for i = 1, n do
            if i ~= seed and far(i) < inf then
                local b = before(i) // 1 | 0
                lu.assertEquals(far(b) + A(b, i), far(i))
                lu.assertEquals(depths(near(i) // 1 | 0) + 1, depths(i))
            else
                lu.assertTrue(before(i) ~= before(i))
            end
        end
    end
end

function TestSearches:test_negative_lengths()
    local A = sparse({1, 1, 2, 3}, {2, 3, 4, 2}, {4, 2, 1, -3}, 4, 4)
    equals(shortest_paths(A, 1), {0, -1, 2, 0})
    local B = sparse({1, 2, 3, 4}, {2, 3, 2, 1}, {1, -2, 1, -9}, 4, 4)
    raises("is on a circle of negative length", shortest_paths, B, 1)
    -- One that is not reached does no harm.
    local C = sparse({1, 2, 3}, {4, 3, 2}, {7, -2, 1}, 4, 4)
    equals(shortest_paths(C, 1), {0, inf, inf, 7})
end

function TestSearches:test_lengths_without_end()
    equals(shortest_paths(sparse({1, 2}, {2, 3}, {inf, 1}, 3, 3), 1),
        {0, inf, inf})
    equals(shortest_paths(sparse({1, 1}, {2, 3}, {0, 0}, 3, 3), 1), {0, 0, 0})
end

TestPageRank = {}

-- Ranks solve (1 - d P) x = (1 - d + d lost) jumps.
local function check_ranks(A, options)
    local n, damping = A.rows, options.damping or 0.85
    local ranks = pagerank(A, options)
    local D = full(A:f64())
    local weights = D:sum(2)
    local spread = D / where(weights:eq(0), 1, weights)
    local jumps = options.personal and vec(options.personal, f64) or ones(n, f64)
    jumps = jumps / jumps:sum()
    spread = where(weights:eq(0), jumps:row(), spread)
    local exact = solve(eye(n, f64) - damping * spread.T, (1 - damping) * jumps)
    lu.assertTrue((ranks:f64() - exact):abs():sum() <= (options.tol or 1e-8) +
        (A.dtype == "f32" and 2e-6 or 1e-12))
    lu.assertEquals(ranks.dtype, A.dtype)
    lu.assertEquals(ranks.device, A.device)
end

function TestPageRank:test_against_the_system_they_solve()
    for seed = 1, 6 do
        local A = random_graph(6 + 5 * seed, 20 * seed, 7 * seed)
        check_ranks(A, {})
        check_ranks(A, {damping = 0.5, tol = 1e-12})
        check_ranks(A:f32(), {tol = 1e-5})
        local weights = randint(0, 3, A.rows, {seed = seed}) + 0.5
        check_ranks(A, {personal = weights:totable()})
    end
    check_ranks(small, {})
    check_ranks(sparse({}, {}, 1, 4, 4, f64), {})
    check_ranks(small, {damping = 0})
end

function TestPageRank:test_steps_and_failure()
    local _, steps = pagerank(small)
    lu.assertTrue(steps > 5 and steps < 200)
    raises("after 3 steps ranks may be off by", pagerank, small, {steps = 3})
end

TestLaplacian = {}

function TestLaplacian:test_plain_and_normalized()
    local A = mat({{0, 1, 2}, {1, 0, 0}, {2, 0, 0}}, f64)
    equals(full(laplacian(A)), {{3, -1, -2}, {-1, 1, 0}, {-2, 0, 2}})
    local N = full(laplacian(sparse(A), {normalized = true}))
    local s = 1 / sqrt(vec({3, 1, 2}, f64))
    local D = diag(vec({3, 1, 2}, f64))
    lu.assertTrue((N - (D - A) % s:col() % s:row()):abs():max() < 1e-15)
end

function TestLaplacian:test_nodes_without_edges()
    local N = laplacian(sparse({1, 2}, {2, 1}, 1, 3, 3), {normalized = true})
    equals(full(N), {{1, -1, 0}, {-1, 1, 0}, {0, 0, 0}})
end

-- As many zeros among the eigenvalues as components.
function TestLaplacian:test_zeros_are_components()
    local A = sparse({1, 2, 3, 4, 5}, {2, 3, 1, 5, 6}, 1, 7, 7, f64)
    local L = full(laplacian(A + A.T))
    lu.assertEquals(sum(eigh(L).values:abs():lt(1e-12)), 3)
end

TestEmbedding = {}

-- Two rings joined by an edge: the first number tells them apart.
function TestEmbedding:test_two_rings()
    local n = 20
    local i, j = {}, {}
    for ring = 0, 1 do
        for k = 0, n - 1 do
            i[#i + 1], j[#j + 1] = ring * n + k + 1, ring * n + (k + 1) % n + 1
        end
    end
    i[#i + 1], j[#j + 1] = 1, n + 1
    local A = sparse(i, j, 1, 2 * n, 2 * n, f64)
    local X = spectral_embedding(A + A.T, 2)
    lu.assertEquals(X.shape, {2 * n, 2})
    local first = X[{{}, 1}]:sign()
    lu.assertEquals(first:sum(), 0)
    for k = 1, n do
        lu.assertEquals(first(k), first(1))
        lu.assertEquals(first(n + k), -first(1))
    end
end

-- Columns are eigenvectors of the Laplacian beside D.
function TestEmbedding:test_generalized_eigenvectors()
    local A = random_graph(30, 120, 5)
    A = A + A.T
    local X = spectral_embedding(A, 3)
    local d = degree(A, {weighted = true})
    local LX = full(laplacian(A)) * X
    for k = 1, 3 do
        local x = X[{{}, k}]
        local value = dot(x, LX[{{}, k}]) / dot(x, d % x)
        lu.assertTrue(norm(LX[{{}, k}] - value * (d % x)) < 1e-6 * norm(x))
    end
end

TestRefused = {}

function TestRefused:test_no_graphs()
    raises("a graph is a square matrix, not 3x4", degree, zeros(3, 4))
    raises("a graph is a square matrix, not vector 2", components, vec{1, 2})
    raises("edges have real numbers, these are c128", bfs,
        eye(2, {dtype = "c128"}), 1)
    raises("the length of the edge from 2 to 1 is nan", shortest_paths,
        sparse({2}, {1}, nan, 2, 2), 1)
    raises("the graph has no nodes", pagerank, zeros(0, 0))
end

function TestRefused:test_nodes()
    raises("there is no node 0, nodes are 1 to 6", bfs, small, 0)
    raises("there is no node 7", shortest_paths, small, 7)
    raises("there is no node 9", shortest_paths, small, 1, {to = 9})
end

function TestRefused:test_weights_and_numbers()
    local negative = sparse({1, 2}, {2, 1}, {-1, 1}, 2, 2)
    raises("edges cannot weigh less than 0", pagerank, negative)
    raises("edges cannot weigh less than 0", laplacian, negative, {normalized = true})
    raises("damping is 1", pagerank, small, {damping = 1})
    raises("expected a vector of 6 numbers", pagerank, small,
        {personal = {1, 2}})
    raises("personal adds up to 0", pagerank, small,
        {personal = {0, 0, 0, 0, 0, 0}})
    raises("A is not symmetric", spectral_embedding, small, 1)
    raises("the graph has 2 components", spectral_embedding,
        sparse({1, 2}, {2, 1}, 1, 3, 3), 1)
    raises("2 nodes have at most 1 such numbers, not 2", spectral_embedding,
        sparse({1, 2}, {2, 1}, 1, 2, 2), 2)
end

os.exit(lu.LuaUnit.run("-o", "tap"))
