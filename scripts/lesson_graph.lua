-- What a sparse matrix says of a graph: element (i, j) is the edge from node i
-- to node j. The karate club of W. W. Zachary, 34 members and 78 friendships:
-- who matters, who is how far from whom, and into what halves it falls; then the
-- same of a random graph of many edges, each answer checked.
--   lumat lesson_graph.lua [nodes edges]          (20000 200000)
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lessons = require "lessons"
local nodes, edges = lessons.sizes("nodes edges", 20000, 200000)
local folder = arg[0]:match("^.*/") or "./"

-- --- the club ----------------------------------------------------------------

local E = load(folder .. "karate.csv")
local G = sparse(E[{{}, 1}], E[{{}, 2}], ones(E.rows), 34, 34)
G = G + G.T -- friends of each other

print(("a club of %d members, %d friendships"):format(G.rows, G.nnz // 2))
local friends = degree(G)
local top, who = topk(friends, 3, {places = true})
print(("most friends: members %g, %g and %g have %g, %g and %g"):format(who[1],
    who[2], who[3], top[1], top[2], top[3]))

-- Where somebody who follows friendships at random is most often: for
-- friendships that go both ways nearly as the number of friends says.
local rank = pagerank(G)
local order = argsort(rank, {descending = true})
print(("highest PageRank: members %g, %g and %g"):format(order[1], order[2],
    order[3]))
lessons.check("ranks add up to 1", math.abs(rank:sum() - 1) < 1e-5,
    "they add up to " .. rank:sum())

local steps = bfs(G, 1)
print(("member 1 knows everybody over at most %g others"):format(steps:max() -
    1))
lessons.check("as far as the shortest paths say",
    all(steps:eq((shortest_paths(G, 1)))), "they differ")

-- The second of the Laplacian's eigenvectors: its signs are two halves with few
-- friendships between them, as the club fell apart.
local side = spectral_embedding(G, 1):flatten():gt(0)
if not side(1) then side = ~side end
local inside = side:f32()
local cut = inside:dot(G * (1 - inside))
print(("two halves: %g members with member 1, %g with member 34, %g " ..
    "friendships between them"):format(inside:sum(), 34 - inside:sum(), cut))
lessons.check("members 1 and 34 are apart", side(1) and not side(34),
    "they are not")

-- --- many edges --------------------------------------------------------------

local from = (rand(edges) * nodes):floor() + 1
local to = (rand(edges) * nodes):floor() + 1
local began = clock()
local R = sparse(from, to, ones(edges), nodes, nodes)
print(("\n%d edges between %d nodes, built in %s"):format(R.nnz, nodes,
    lessons.time(clock() - began)))
began = clock()
local ranks, count = pagerank(R)
print(("PageRank in %d steps, %s"):format(count,
    lessons.time(clock() - began)))
-- Once more by its definition.
local out = degree(R, {weighted = true})
local share = where(out:eq(0), 0, ranks / out)
local lost = where(out:eq(0), ranks, 0):sum()
local again = 0.85 * (R.T * share + lost / nodes) + 0.15 / nodes
lessons.check("one more step does not change it",
    (again - ranks):abs():sum() < 1e-4, "it does")
began = clock()
local part, parts = components(R)
print(("components: %d, %s"):format(parts or part:max(),
    lessons.time(clock() - began)))
local ends = part[from]
lessons.check("both ends of an edge are in one", all(ends:eq(part[to])),
    "some are not")
lessons.finish()
