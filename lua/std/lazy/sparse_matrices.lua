-- Sparse matrices with diagonals, and random ones.
local library = ...
local checks = require "lumat.checks"
local sparse_steps = require "lumat.sparse_steps"
local steps = require "lumat.statistics_steps"
local brief, fail, shape_of = checks.brief, checks.fail, checks.shape_of
local sparse_matrices = {}
local ipairs, type, unpack = ipairs, type, table.unpack
local floor, larger, smaller, to_integer = math.floor, math.max, math.min,
    math.tointeger

-- --- unit matrices and diagonals ----------------------------------------------

local function check_dtype(dtype)
    if dtype == "bool" then
        fail("dtype", "a sparse matrix is f32, f64, c64 or c128, not bool")
    end
end

row{
    name = "speye",
    takes = "n: size {dtype, device} or m: size, n: size {dtype, device}",
    gives = "sparse",
    group = "sparse",
    help = "A sparse matrix with ones on the diagonal.",
    example = "speye(2)",
    result = "sparse(eye(2))",
}
function sparse_matrices.speye(m, n, options)
    if type(n) == "table" then n, options = nil, n end
    n = n or m
    options = checks.copied(options or {})
    options.dtype = options.dtype or library.default_dtype()
    check_dtype(options.dtype)
    return sparse_steps.diagonals(library.ones(1, 1, options), {0}, m, n, options)
end

-- What `offsets` says, as whole numbers in a table, none twice.
local function offsets_of(given)
    local list, seen = {}, {}
    if type(given) == "number" then given = {given} end
    if type(given) ~= "table" then given = given:totable() end
    for k, x in ipairs(given) do
        local d = to_integer(x)
        if not d then
            fail("spdiags", "offset %d is %s, expected a whole number", k, brief(x))
        end
        if seen[d] then
            fail("spdiags", "offsets %d and %d are both %d", seen[d], k, d)
        end
        seen[d] = k
        list[k] = d
    end
    return list
end

-- Diagonals as the columns of a matrix, of which a single row is of numbers.
local function diagonals_of(given, count)
    if type(given) == "table" then
        local nested = type(given[1]) == "table"
        given = nested and library.mat(given) or library.vec(given)
    end
    checks.matrix("spdiags", "diagonals", given)
    if given.ndim == 1 then
        given = count == 1 and given:col() or given:row()
    end
    if given.cols ~= count then
        fail("spdiags", "there are %d offsets, and %s has %d diagonals, one a " ..
            "column", count, shape_of(given), given.cols)
    end
    return given
end

row{
    name = "spdiags",
    takes = "diagonals: list|matrix|table, offsets: list|integer, m: size, " ..
        "n: size {dtype, device}",
    gives = "sparse",
    group = "sparse",
    help = "The sparse m x n matrix with column k of `diagonals` on the " ..
        "diagonal offsets[k], which is above the main one where positive. Row " ..
        "j of `diagonals` goes to column j, as in SciPy (whose diagonals are " ..
        "rows), and in MATLAB where m >= n; what lies outside is left out, and " ..
        "zeros are. A single row is of one number for each diagonal.",
    example = "spdiags({-1, 2}, {-1, 0}, 2, 2)",
    result = "sparse(mat{{2, 0}, {-1, 2}})",
}
function sparse_matrices.spdiags(diagonals, offsets, m, n, options)
    local list = offsets_of(offsets)
    local D = diagonals_of(diagonals, #list)
    for k, d in ipairs(list) do
        local last = smaller(n, m + d)
        if D.rows > 1 and D.rows < last and last > larger(0, d) then
            fail("spdiags", "diagonal %d reaches column %d, `diagonals` has " ..
                "%d rows", d, last, D.rows)
        end
    end
    options = checks.copied(options or {})
    options.dtype = options.dtype or D.dtype == "bool" and "f32" or D.dtype
    options.device = options.device or D.device
    check_dtype(options.dtype)
    return sparse_steps.diagonals(D, list, m, n, options)
end

-- --- random ones --------------------------------------------------------------

-- Streams of one call of the generator: values, and the rows and columns of each
-- round of places.
local VALUES, FIRST_ROUND = 0, 1

-- n whole numbers 0 … size - 1.
local function draw_places(r, stream, n, size)
    local u = steps.draw("uniform", r.seed, r.call, stream, "f64", "cpu", n)
    return (u * size):floor():minimum(size - 1)
end

-- The places of n different entries, each set of them as likely, as a sparse
-- matrix: as many as are missing are drawn, until none is met twice.
local function draw_pattern(r, n)
    local S = library.sparse(r.m, r.n, {dtype = "f64", device = "cpu"})
    local stream = FIRST_ROUND
    while S.nnz < n do
        local missing = n - S.nnz
        S = S + library.sparse(1 + draw_places(r, stream, missing, r.m),
            1 + draw_places(r, stream + 1, missing, r.n), 1, r.m, r.n,
            {dtype = "f64", device = "cpu"})
        stream = stream + 2
    end
    return S
end

-- Of more than half of all places those without entries are drawn.
local function draw_entries(r, n)
    local all = r.m * r.n
    if n <= all - n then return draw_pattern(r, n) end
    return library.sparse(draw_pattern(r, all - n):full():eq(0),
        {dtype = "f64", device = "cpu"})
end

-- A random matrix with values of that kind.
local function random_matrix(what, kind, m, n, density, options)
    options = options or {}
    if not (density >= 0 and density <= 1) then
        fail(what, "density is %s: expected 0 to 1, the share of elements that " ..
            "are entries", brief(density))
    end
    local dtype = options.dtype or library.default_dtype()
    if dtype ~= "f32" and dtype ~= "f64" then
        fail(what, "results are f32 or f64, not %s", dtype)
    end
    local count = floor(density * m * n + 0.5)
    if count >= 0x1p31 then
        fail(what, "there would be %s entries: there must be fewer than " ..
            "2147483648", brief(count))
    end
    local r = {m = m, n = n}
    r.seed, r.call = steps.next_draw(options)
    local i, j = draw_entries(r, count):triplets()
    local values = steps.draw(kind, r.seed, r.call, VALUES, "f64", "cpu", count)
    if kind == "uniform" then values = 1 - values end
    return library.sparse(i, j, values, m, n,
        {dtype = dtype, device = library.zeros(1, {device = options.device}).device})
end

row{
    name = "sprand",
    takes = "m: size, n: size, density: number {seed, dtype, device}",
    gives = "sparse",
    group = "sparse random",
    help = "A random sparse m x n matrix: of all sets of density * m * n places, " ..
        "rounded, one, and uniform numbers in (0, 1] there. The same seed gives " ..
        "the same matrix on every device.",
    example = "sprand(100, 50, 0.1, {seed = 1}).nnz",
    result = "500",
}
function sparse_matrices.sprand(m, n, density, options)
    return random_matrix("sprand", "uniform", m, n, density, options)
end

row{
    name = "sprandn",
    takes = "m: size, n: size, density: number {seed, dtype, device}",
    gives = "sparse",
    group = "sparse random",
    help = "The same as sprand with normal numbers.",
    example = "sprandn(100, 50, 0.1, {seed = 1}).nnz",
    result = "500",
}
function sparse_matrices.sprandn(m, n, density, options)
    return random_matrix("sprandn", "normal", m, n, density, options)
end

-- --- entries ------------------------------------------------------------------

row{
    name = "nonzeros", method = true,
    takes = "A: matrix|sparse",
    gives = "matrix",
    group = "sparse",
    help = "The elements that are not 0, row by row, a vector.",
    example = "nonzeros(mat{{0, 5}, {7, 0}})",
    result = "{5, 7}",
}
function sparse_matrices.nonzeros(A)
    if checks.kind(A) == "matrix" then return A[A:ne(0)] end
    return sparse_steps.nonzeros(A)
end

return sparse_matrices
