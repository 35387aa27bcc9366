-- What other languages call it, in one table: ?word shows its page, ??word
-- finds it, and a name without a value is told what to write. A row goes when
-- a function takes its word.
--
-- {words, pages, write =, says =}: the first page answers ?word, the others
-- come next in a search (names, :commands and topics; nothing if there is
-- none). write is Lua that runs with A, B (2x2), v, w, b (vectors), f (a
-- function) and n; says a sentence where that alone would not do.
local manual = ...
local gmatch, gsub, ipairs, lower, match = string.gmatch, string.gsub, ipairs,
    string.lower, string.match

local rows = {
    -- sizes and types
    {"size, shape, dim, dims", "properties", write = "A.shape"},
    {"length, len", "properties", write = "#A"},
    {"numel, nelement, nelements, number of elements", "properties", write = "A.size"},
    {"ndims, number of dimensions, dimension", "properties", write = "A.ndim"},
    {"nrow, nrows, rows, height, number of rows", "properties", write = "A.rows"},
    {"ncol, ncols, cols, columns, width, number of columns", "properties", write = "A.cols"},
    {"isempty", "properties", write = "A.size == 0"},
    {"dtype, eltype, typeof, class, element type", "properties default_dtype",
        write = "A.dtype"},
    {"astype, cast, convert, conversion", "f64 f32 bool default_dtype", write = "A:f64()"},
    {"double, float64, double precision", "f64 default_dtype", write = "A:f64()"},
    {"single, float, float32, single precision", "f32 default_dtype", write = "A:f32()"},
    {"logical, boolean", "bool indexing", write = "bool(A)"},
    {"int, int8, int16, int32, int64, uint8, integer, integers", "properties idiv floor",
        says = "elements are f32, f64, bool or complex, which hold whole numbers exactly up to " ..
            "2^24 and 2^53"},
    {"half, float16, fp16, bfloat16, bf16, tf32, tensor cores, tensor core", "matmul kernels",
        says = "elements are f32, f64, bool or complex; on a GPU a product alone can be " ..
            "less precise",
        write = 'matmul(A, B, {precision = "bf16"})'},
    {"im, imaginary, imaginary unit, 1i, 1j, complex64, complex128", "complex",
        write = "3 + 2 * im"},
    {"conjugate, conj transpose, conjugate transpose, hermitian", "conj properties",
        write = "A.H"},
    {"phase, argument, arg of complex", "angle"},
    -- making matrices
    {"identity, identity matrix, unit matrix", "eye"},
    {"array, matrix, ndarray, tensor, asarray", "mat"},
    {"vector, list", "vec", write = "vec{1, 2, 3}"},
    {"fill, constant, repeated", "full"},
    {"empty, zeros_like, empty_like, similar, undef", "zeros",
        write = "zeros(A.rows, A.cols, {dtype = A.dtype})"},
    {"ones_like", "ones", write = "ones(A.rows, A.cols, {dtype = A.dtype})"},
    {"arange, seq, sequence, iota", "range linspace", write = "range(1, 10)"},
    {"geomspace", "logspace"},
    {"meshgrid, ndgrid, mgrid, grid", "fromfn row col",
        says = "a grid of places is not needed: a row and a column are stretched",
        write = "v:row() + w:col()"},
    {"repmat, rep", "tile kron", write = "tile(A, 2, 3)"},
    {"repelem", "indexing take tile",
        says = "there is no repelem yet; a list gives elements as often as they are named",
        write = "v[vec{1, 1, 2, 2}]"},
    {"hilbert", "hilb", write = "hilb(n)"},
    {"compan", "companion", write = "companion(v)"},
    {"circulant, test matrix, test matrices, higham", "gallery", write = 'gallery("circul", n)'},
    {"blkdiag, block_diag", "vcat hcat kron zeros",
        says = "there is no blkdiag yet; blocks are joined, or written into zeros",
        write = "vcat(hcat(A, zeros(2, 2)), hcat(zeros(2, 2), B))"},
    {"diagonal, diagm", "diag"},
    {"lower triangle, triangular", "tril triu"},
    {"upper triangle", "triu"},
    {"csr, csc, coo, triplets, speye, spdiags, sprand, spmv, spmm, sparse matrix", "sparse",
        write = "sparse(eye(n))"},
    {"nnz, count_nonzero, countnz, nonzeros, non-zeros", "sum ne inspect sparse",
        write = "A:ne(0):sum()"},
    -- random numbers
    {"random numbers", "random rand randn randint randperm seed"},
    {"rng, srand, randomseed, set.seed, manual_seed, reproducible", "random seed",
        write = "seed(1)"},
    {"uniform, unif, runif", "rand", write = "rand(n)"},
    {"normal, gaussian, rnorm, normrnd, standard_normal", "randn", write = "randn(n)"},
    {"randi, randint64, dice", "randint", write = "randint(1, 6, n)"},
    {"shuffle, permutation, permute, sample, choice", "randperm take randint",
        write = "take(v, randperm(#v))"},
    -- shapes
    {"transpose, transposed, ctranspose, adjoint, permutedims, swapaxes", "t", write = "A.T"},
    {"concat, concatenate, cat, append, join", "hcat vcat", write = "hcat(A, B)"},
    {"horzcat, hstack, cbind, column_stack, side by side", "hcat", write = "hcat(A, B)"},
    {"vertcat, vstack, stack, rbind, row_stack", "vcat", write = "vcat(A, B)"},
    {"ravel, flat", "flatten"},
    {"resize", "reshape"},
    {"squeeze, expand_dims, unsqueeze, newaxis", "row col reshape", write = "v:row()"},
    {"split, chunk, hsplit, vsplit, mat2cell", "indexing blocks", write = 'A["1:1, :"]'},
    {"fliplr", "flip", write = "A:flip(2)"},
    {"flipud", "flip", write = "A:flip(1)"},
    {"reverse, rev", "flip"},
    {"rot90, rotate", "flip t", write = "A.T:flip(1)"},
    {"circshift, roll, shift", "hcat vcat indexing",
        says = "there is no shift around yet; its parts are joined the other way round",
        write = 'hcat(v["2:end"], v["1:1"])'},
    {"copy, deepcopy, dup, duplicate", "clone", write = "A:clone()"},
    {"tolist, to_list", "totable", write = "A:totable()"},
    -- indexing
    {"index, indices, slice, slicing, colon, subscript, submatrix, views, element, " ..
        "item, column, select rows, row view", "indexing eachrow take flip"},
    {"end", "indexing lua"},
    {"mask, masking, filter, subset, boolean indexing, logical indexing", "indexing where " ..
        "lt any bool", write = "A[A:gt(2)]"},
    {"find, nonzero, which, findall, flatnonzero, argwhere", "indexing where argmax",
        says = "there is no find yet; the places a mask of a vector chooses",
        write = "range(1, #v)[v:gt(1)]"},
    {"head", "indexing view", write = 'A["1:2"]'},
    {"tail", "indexing view", write = 'A["-2:-1"]'},
    {"ifelse, iif, ternary", "where", write = "where(A:gt(2), A, 0)"},
    {"getindex, at, iloc, loc", "indexing", write = "A(1, 2)"},
    {"setindex, setitem", "indexing put", write = "put(v, vec{7}, {1})"},
    {"fancy indexing, index list, list of indices, integer indexing, ix_",
        "indexing take put", write = "A[{vec{2, 1}, {}}]"},
    {"scatter_add, gather rows", "put take"},
    -- over everything
    {"average, avg, arithmetic mean", "mean"},
    {"stddev, stdev, sd, standard deviation", "std"},
    {"variance", "var"},
    {"total, reduce, reduction", "sum"},
    {"product", "prod matmul"},
    {"amax, largest", "max maximum", write = "max(A)"},
    {"amin, smallest", "min minimum", write = "min(A)"},
    {"rowsum, rowsums", "sum", write = "A:sum(2)"},
    {"colsum, colsums", "sum", write = "A:sum(1)"},
    {"rowmeans", "mean", write = "A:mean(2)"},
    {"colmeans", "mean", write = "A:mean(1)"},
    {"axis", "sum mean", write = "A:sum(1)"},
    {"running maximum, running minimum, accumulate", "cummax cummin cumsum",
        write = "cummax(A)"},
    {"diff, differences", "sub indexing",
        says = "there is no diff yet", write = 'v["2:end"] - v["1:end-1"]'},
    {"quantiles, prctile, quartile, iqr, nanquantile, percentiles", "quantile percentile",
        write = "quantile(v, {0.25, 0.5, 0.75})"},
    {"nanmedian", "median", write = 'median(v, {nan = "skip"})'},
    {"most frequent, modus", "mode", write = "mode(v)"},
    {"covariance", "cov", write = "cov(A)"},
    {"corrcoef, correlation, pearson, pearsonr", "corr", write = "corr(A)"},
    {"normalize, standardize, standard score, scale", "zscore",
        write = "zscore(A)"},
    {"nansum, nanmean, nanmax, nanmin, nanstd, nanvar, na.rm, omitnan, skipna", "sum mean",
        write = 'sum(A, {nan = "skip"})'},
    {"weighted mean, weighted average, aweights, fweights", "mean std quantile",
        write = "mean(v, {weights = v})"},
    {"ddof, population variance, biased", "var std", write = "var(v, {ddof = 0})"},
    {"keepdim, drop dimension", "sum flatten",
        write = "sum(A, {axis = 1, keepdims = false})"},
    {"unique, intersect, union, setdiff, ismember, isin, groupby, accumarray, bincount, " ..
        "histcounts, tabulate", "sort hist eq",
        says = "there are no sets and groups yet"},
    {"sortrows", "sort take", says = "there is no sortrows yet; sort sorts each column or row"},
    {"sorted", "sort argsort"},
    {"ordering, sortperm, sort_index", "argsort sort", write = "argsort(v)"},
    -- element by element
    {"elementwise, element-wise, hadamard product, times, .*, ./, .^", "operators mul pow map",
        write = "A % B"},
    {"power", "pow operators", write = "A:pow(2)"},
    {"mpower, matrix_power, matrix power, fractional_matrix_power", "operators pow sqrtm",
        write = "A ^ 2"},
    {"absolute, fabs, absolute value", "abs"},
    {"ln, natural logarithm", "log"},
    {"remainder, rem, fmod", "mod", write = "A % 3"},
    {"fix", "trunc"},
    {"ceiling", "ceil"},
    {"rint, rounding", "round"},
    {"sgn, signum", "sign"},
    {"clamp, limit", "clip"},
    {"arcsin", "asin"},
    {"arccos", "acos"},
    {"arctan", "atan"},
    {"arctan2", "atan2"},
    {"factorial", "gamma", write = "gamma(A + 1)"},
    {"pmax", "maximum"},
    {"pmin", "minimum"},
    {"sigmoid, logistic", "exp", write = "1 / (1 + exp(-A))"},
    {"relu", "maximum", write = "maximum(A, 0)"},
    {"softmax", "exp sum", write = "exp(A) / exp(A):sum(2)"},
    {"arrayfun, cellfun, apply, sapply, lapply, applymap, vectorize, foreach", "map fromfn eachrow",
        write = "A:map(f)"},
    {"bsxfun, broadcast, broadcasting, implicit expansion, stretch", "operators row col",
        write = "A + v:row()"},
    {"in place, inplace, in-place", "operators memory", write = "A:add_(B)"},
    -- comparing
    {"equal, equals", "eq operators", write = "A:eq(B)"},
    {"not_equal", "ne", write = "A:ne(B)"},
    {"less", "lt", write = "A:lt(B)"},
    {"less_equal", "le", write = "A:le(B)"},
    {"greater", "gt", write = "A:gt(B)"},
    {"greater_equal", "ge", write = "A:ge(B)"},
    {"isequal, array_equal, all.equal", "operators close", write = "A == B"},
    {"allclose, isclose, isapprox, approx, tolerance", "close", write = "close(A, B)"},
    {"logical_and, and", "land operators", write = "A:gt(1) & B:gt(2)"},
    {"logical_or, or", "lor operators", write = "A:gt(1) | B:gt(2)"},
    {"logical_not, not", "lnot operators", write = "~A:gt(1)"},
    {"logical_xor, xor", "lxor", write = "A:gt(1) ~ B:gt(2)"},
    {"nan, na, missing, is.na, isna, isnull, nan values", "isnan inspect printing", write = "0/0"},
    {"fillna, nan_to_num", "isnan indexing", write = "where(A:isnan(), 0, A)"},
    {"dropna, rmmissing", "isnan indexing", write = "A[~A:isnan()]"},
    {"inf, infinity", "isinf lua", write = "math.huge"},
    -- linear algebra
    {"mm, gemm, sgemm, dgemm, mtimes, mmul, matrix product, matrix multiplication, " ..
        "multiply, @", "matmul operators mul", write = "A * B"},
    {"inner, vdot, ddot, inner product, dot product, scalar product", "dot", write = "dot(v, w)"},
    {"einsum, tensordot", "matmul dot outer", says = "there is no einsum; products are",
        write = "A * B"},
    {"cross product, vector product", "cross",
        says = "cross(x, y) is that of vectors of three"},
    {"inverse", "inv solve", write = "inv(A)"},
    {"determinant", "det"},
    {"slogdet, logabsdet", "logdet det", write = "logdet(A)"},
    {"mldivide, linsolve, backslash, linear system, linear equations, \\", "solve inv",
        write = "solve(A, b)"},
    {"iterative solver, krylov solver, bicgstab, conjugate gradient, minres",
        "gmres solve", write = "gmres(A, b)"},
    {"lsqr, lm, least squares, regression, lsqminnorm", "lstsq qr", write = "lstsq(A, b)"},
    {"pseudo-inverse, pseudoinverse, moore-penrose", "pinv lstsq", write = "pinv(A)"},
    {"eigen, eigenvalue, eigenvalues, eigenvectors", "eig eigh eigvals eigs",
        write = "eig(A).values"},
    {"eigvalsh, symmetric eigenvalues", "eigh", says = "eigh(A).values are the eigenvalues"},
    {"singular values, singular value decomposition", "svd svdvals svds", write = "svd(A).S"},
    {"pca, principal components", "svd eigh", write = "svd(A - A:mean(1)).V"},
    {"matrix_rank", "rank", write = "rank(A)"},
    {"null space, nullspace, null_space, kernel of a matrix", "null", write = "null(A)"},
    {"column space, range of a matrix, orthonormal basis, orthogonalize", "orth qr",
        write = "orth(A)"},
    {"condition number, condition, singular, ill-conditioned", "cond rcond solve",
        write = "cond(A)"},
    {"cholesky", "chol", write = "chol(A).L"},
    {"factorization, factorisation, decomposition, factorize", "lu chol qr svd eigh"},
    {"hessenberg", "hess", says = "hess(A) is the Hessenberg form"},
    {"qz, gges", "lu chol qr ldl eig eigh svd schur hess",
        says = "there are LU, Cholesky, QR, LDL, Schur, Hessenberg, singular values and " ..
            "eigenvalues, eig(A, B) and eigh(A, B) those of a pair"},
    {"generalized eigenvalues, generalised eigenvalues, ggev, matrix pencil", "eig eigh",
        says = "eig(A, B) has the values with A v = value B v, eigh(A, B) of a symmetric pair"},
    {"solve_triangular, trtrs", "solve",
        says = "solve(A, b) sees what A is; {kind=\"lower\"} tells"},
    {"solve_banded, tridiagonal", "solve",
        says = "solve(A, b) sees that A is banded; {kind=\"banded\"} tells"},
    {"solve_sylvester, sylv", "sylvester", says = "sylvester(A, B, C) is the X with A X + X B = C"},
    {"solve_continuous_lyapunov", "lyap",
        says = "lyap(A, Q) is the X with A X + X A.T + Q = 0; SciPy's is lyap(A, -Q)"},
    {"ldlt, bunchkaufman", "ldl", says = "ldl(A) is L D L.T of a symmetric matrix"},
    {"arpack, lanczos, arnoldi, krylov, lobpcg, eigsh, few eigenvalues", "eigs eig eigh",
        says = "eigs(A, k) gives k eigenvalues of a large matrix"},
    {"truncated svd, randomized svd, svdsketch, tsvd, few singular values", "svds svd",
        says = "svds(A, k) gives the k largest singular values"},
    {"matrix exponential", "expm", write = "expm(A)"},
    {"matrix logarithm", "logm", write = "logm(A)"},
    {"matrix square root, principal square root", "sqrtm", write = "sqrtm(A)"},
    {"funm, cosm, sinm, signm, matrix function, matrix functions",
        "expm logm sqrtm eigh operators",
        says = "of matrix functions there are expm, logm, sqrtm and A ^ p; others of a " ..
            "symmetric A come from eigh(A), as in F.vectors * diag(F.values:cos()) * " ..
            "F.vectors.T"},
    {"polynomial fit, curve fitting", "polyfit polyval lstsq", write = "polyfit(v, w, n)"},
    {"zeros of a polynomial", "roots polyval", write = "roots(v)"},
    {"tr", "trace", write = "trace(A)"},
    {"vecnorm", "norm", write = "norm(A, {axis = 1})"},
    {"fourier, dft, spectrum, fourier transform, frequency", "fft rfft fft2 fftfreq",
        write = "fft(v)"},
    {"fftn, rfft2, irfft2", "fft2 ifft2", write = "fft2(A)"},
    {"hfft, ihfft", "irfft rfft"},
    {"inverse fft, inverse fourier transform", "ifft irfft ifft2", write = "ifft(fft(v))"},
    {"convolve, conv2, convolution, filter2, deconv, polynomial product, polymul",
        "conv", write = "conv(v, w)"},
    {"correlate, cross-correlation, autocorrelation, autocorr, lag", "xcorr",
        write = "xcorr(v, w)"},
    {"interp1, interpolate, spline, trapz, integrate, quad, ode45, fzero, " ..
        "fminsearch, minimize, optimize", "polyfit lstsq sum",
        says = "there is no interpolating, integrating or optimising yet; polynomials are fitted",
        write = "polyfit(v, w, n)"},
    -- seeing
    {"disp, display, println, echo, puts, cout, console", "printing", write = "print(A)"},
    {"printf, fprintf", "printing lua", write = 'print(string.format("%d", n))'},
    {"sprintf, num2str, str2num, mat2str", "lua printing", write = 'string.format("%d", n)'},
    {"format, format long, digits, significant digits, decimals", "settings printing",
        write = "settings{digits = 5}"},
    {"color, colors, colours", "settings startup"},
    {"histogram, distribution", "hist inspect :hist", write = "hist(v)"},
    {"heatmap, imshow, imagesc, matshow, pcolor, image, surf, contour, colormap",
        "heat :heat", write = "heat(A)"},
    {"figure, graph, line plot, scatter, pyplot, plt, matplotlib, ggplot, gnuplot, " ..
        "savefig, subplot, xlabel", "plot :plot", write = "plot(v)"},
    {"describe, summary, isdiag, issymmetric", "inspect :inspect", write = "inspect(A)"},
    {"more, pager", "last view"},
    {"spreadsheet, browse, openvar", "view :view", write = "view(A)"},
    -- files
    {"read, csv, tsv, csvread, read_csv, read.csv, readmatrix, readtable, loadtxt, genfromtxt, " ..
        "dlmread, fread, import data", "load save", write = "load"},
    {"write, csvwrite, to_csv, write.csv, writematrix, savetxt, dlmwrite, export", "save load",
        write = "save"},
    {"npy", "load save"},
    {"npz, savez, pickle, workspace, saved session", "save_session load_session :save :load"},
    {"hdf5, h5, parquet, excel, xlsx, json, matfile, loadmat, savemat, matrix market", "load save",
        says = "CSV, TSV and NPY files are read and written, sessions as NPZ; nothing else yet"},
    -- frames
    {"dataframe, data frame, data.frame, tibble, data.table, timetable, polars",
        "frames frame dates", write = 'frame{a = {1, 2}, b = {"x", "y"}}'},
    {"group_by, aggregate, tapply, groupsummary, split-apply-combine, summarise, summarize",
        "frames frame", says = "T:groupby \"a\" groups the rows of a frame"},
    {"value_counts, countmap, sort_values, nlargest, na.omit", "frames frame",
        says = "frames have methods for it"},
    {"merge, inner join, left join, left_join, innerjoin, outerjoin, pivot, pivot_table, " ..
        "pivot_wider, pivot_longer, melt, unstack, dcast", "frames frame",
        says = "frames have no joins and no reshaping; ?frames tells what does instead"},
    {"factor, levels, category, categories, text column, strings", "frames frame",
        says = "text in a frame is kept as codes and labels: T.a.codes, T.a.labels"},
    {"date, datetime, timestamp, to_datetime, as.date, strptime, strftime, datenum, weekday",
        "dates frames", write = 'dates{"2020-01-31"}'},
    -- time and the machine
    {"tic, toc, elapsed, stopwatch, timer, timeit, time.time, perf_counter, cputime, " ..
        "system.time, how long", "timing :time bench clock timed",
        write = "timing(f)"},
    {"benchmark, btime, microbenchmark, speed", "bench :bench timing", write = "bench(f)"},
    {"profiler, hot spots, flame graph", "profile :prof"},
    {"gpu, cpu, cuda, nvidia, to device, default device", "devices device :device"},
    {"gpuarray, cuarray, cupy array", "to devices", write = 'A:to("cpu")'},
    {"gather", "to totable take", write = 'A:to("cpu")'},
    {"synchronize, synchronise, cudadevicesynchronize", "sync"},
    {"vram, ram, free memory, nvidia-smi, gc, garbage collection", "memory mem :mem"},
    {"threads, nthreads, num_threads, omp_num_threads, maxnumcompthreads, cores", "startup",
        says = "OMP_NUM_THREADS in the environment says how many threads the CPU's work uses"},
    {"flops, bandwidth, roofline, throughput, peak performance", "rate peak cost race"},
    {"cublas, openblas, blas, lapack, tiling", "kernels :kernel race matmul"},
    {"freivalds", "checking verify"},
    -- experiments
    {"sweep, batch, grid search, parameter study, journal, resume",
        "experiment experiments results"},
    -- the session
    {"whos, variables, workspace variables", "who :who", write = ":who"},
    {"dir, listdir, list files, folder, directory", "ls cd pwd :ls :cd", write = "ls()"},
    {"chdir, getwd, setwd, getcwd, working directory", "cd pwd :cd :pwd", write = "cd"},
    {"shell, system, bash, sh, subprocess, popen, unix, dos, !", "commands",
        says = "!command runs one of the shell's at the prompt", write = 'os.execute("true")'},
    {"clear, clearvars, del, delete, rm", "memory free",
        says = "a variable goes with x = nil, its memory at once with A:free(); Ctrl-L " ..
            "clears the screen"},
    {"clc, cls, clf, clear screen", "keys", says = "Ctrl-L clears the screen"},
    {"exit", "keys", says = ":quit leaves the prompt, os.exit() a script"},
    {"bye, logout", "keys", write = ":quit"},
    {"man, doc, docs, documentation, lookfor, apropos", "help", write = "help"},
    {"shortcut, shortcuts, completion, autocomplete, multiline", "keys :history :keys"},
    {"ans", "printing last"},
    {"semicolon, silent, echo results", "printing"},
    {"source, run script", "scripts", write = "dofile"},
    {"config, configuration, rc, init, init.lua, environment variables", "startup settings"},
    {"exception, try, catch, except, error handling", "errors", write = "pcall(f)"},
    {"throw, raise", "errors", write = "error"},
    -- the language
    {"lambda, anonymous function, def, func", "lua", write = "function() end"},
    {"include, import, using, library", "scripts lua", write = "require"},
    {"np, numpy, cp, cupy, torch, jnp, jax, pd, pandas, scipy, linalg, tf", "scripts",
        says = "functions stand without a prefix here", write = "zeros(3)"},
    {"pi", "lua", write = "math.pi"},
    {"eps, epsilon, machine epsilon", "nextafter",
        says = "the spacing at 1 is 2^-23 in f32, 2^-52 in f64"},
    {"true", "lua", write = "true"},
    {"false", "lua", write = "false"},
    {"none, undefined", "lua", write = "nil"},
    {"local, function, for, if, while, repeat, until, do, then, elseif, else, return, break, " ..
        "goto, in, nil, string, table, struct, dict, loop, comment", "lua"},
    {"*, /, +, -, %, ^, //, .., ==, #, &, |, ~, ~=, <, >, <=, >=", "operators"},
    {"=, ;", "printing"},
    {"[], [, (", "indexing"},
    {"?, first", "first"},
}

manual.word_rows = rows
-- word -> {pages = {…}, write =, says =}
manual.words = {}

for _, row in ipairs(rows) do
    local entry = {pages = {}, write = row.write, says = row.says}
    for page in gmatch(row[2], "%S+") do entry.pages[#entry.pages + 1] = page end
    for word in gmatch(row[1], "[^,%s][^,]*") do manual.words[word] = entry end
end

-- The row of a word, or of what it is the plural of; "np.where" is where's.
function manual.word(text)
    local word, words = lower(text), manual.words
    local last = match(word, "%.([%a_][%w_]*)$")
    return words[word] or words[gsub(word, "s$", "")] or words[gsub(word, "es$", "")] or
        last and words[last]
end

-- What a row says of its word: a sentence, or what to write.
local function said(row)
    if not row.says then return row.write end
    return row.says .. (row.write and ": " .. row.write or "")
end
manual.said = said

-- How a message goes on about a name that is not there and that is a word of
-- other languages, and whether it does.
function manual.instead(word)
    local row = manual.words[lower(word)]
    if not row then return nil, false end
    if row.says then return said(row), true end
    local name = row.write or manual.help[row.pages[1]] and row.pages[1]
    return name and "did you mean " .. name .. "?", name and true or false
end
