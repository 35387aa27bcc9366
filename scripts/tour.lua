-- Ten minutes of the calculator. Every line after `lumat> ` is run as if typed
-- at the prompt, and what it gives is shown below it: nothing here is canned.
--   lumat tour.lua
local surprises = 0

local function text_of(value)
    return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

-- The first line of a matrix's text says what it is.
local function headline(value)
    if type(value) == "table" then
        return ("table, %d entries"):format(#value)
    end
    return text_of(value):match("[^\n]*")
end

-- After `A = …` the prompt shows one line, and no data.
local function show_names(code)
    local names = code:match("^([%a_][%w_, ]*)=[^=]")
    for name in (names or ""):gmatch("[%w_]+") do
        print(name .. " = " .. headline(_G[name]))
    end
end

local function echo(code, silent, ...)
    local count = select("#", ...)
    if silent then return end
    if count == 0 then return show_names(code) end
    for i = 1, count do
        if count > 1 then io.write(i, ": ") end
        print(text_of((select(i, ...))))
    end
end

-- Runs one line. An error is shown as the prompt shows it; `!` in front of a
-- line announces one, and any other, or one that does not come, is a surprise.
local function run(line)
    local wanted, code = line:match("^%s*(!?)(.*)$")
    local silent = code:find(";$")
    local text = code:gsub(";$", "")
    print("lumat> " .. code)
    io.stdout:flush()
    local chunk = load("return " .. text, "=tour") or load(text, "=tour")
    local results = table.pack(pcall(chunk))
    if results[1] then
        echo(text, silent, table.unpack(results, 2, results.n))
    else
        print("error: " .. tostring(results[2]):gsub("^tour:%d+: ", ""))
    end
    if results[1] == (wanted == "!") then
        surprises = surprises + 1
        print("*** the tour did not expect that")
    end
end

-- A chapter: its name, a few sentences, its lines of code.
local function chapter(title, words, lines)
    print(("\n--- %s %s\n%s\n"):format(title, ("-"):rep(70 - #title), words))
    for line in lines:gmatch("[^\n]+") do
        run(line)
    end
end

chapter("Where", [[
Matrices live on the GPU when there is one, else on the CPU; the language is
Lua 5.4. Everything below works the same on both.]], [[
    device()]])

chapter("Making", [[
Tables become matrices, and there are constructors for the usual ones. Elements
are f32 unless told otherwise. An assignment shows one line; a name shows all.]],
[[
    A = mat{{1, 2, 3}, {4, 5, 6}}
    A
    vec{1, 2, 3}
    eye(3)
    linspace(0, 1, 5)
    range(10, 1, -3)
    fromfn(2, 3, function(i, j) return 10 * i + j end)
    full(2, 2, 1 / 3, {dtype = "f64"})]])

chapter("Looking", [[
A large matrix shows its corners, and what is hidden. Each column is laid out by
itself; a number too small or too large for it goes to e-notation alone, and a
printed 0 is exactly zero.]], [[
    B = rand(1000, 1000, {seed = 1})
    B
    B.rows, B.cols, B.dtype
    mat{{12345.678, 1.2e-7, 0}, {3.25, -2.5, 0 / 0}}
    "B is " .. B
    who()]])

chapter("Indexing", [[
Places count from 1, negative ones from the end. Rows, columns and blocks are
views: they share the elements, and writing to one writes to the whole. A string
cuts slices; a mask chooses elements.]], [=[
    A = fromfn(5, 5, function(i, j) return 10 * i + j end)
    A[2]
    A(2, 3), A[{2, 3}], A[-1][-1]
    A["2:3, 4:end"]
    A["::2, 1"]
    block = A[{{1, 2}, {1, 2}}]
    block[{1, 1}] = 99
    A["end, :"] = 0
    A[A:gt(50)] = -1
    A
    A.T[1]
    A[A:lt(0)]]=])

chapter("Arithmetic", [[
+ and - go element by element, and so do % and / of two matrices, because * is
the product of matrices. A row or a column beside a matrix is repeated. Methods
compare, and a comparison of elements is a mask.]], [[
    A, B = mat{{1, 2}, {3, 4}}, mat{{5, 6}, {7, 8}}
    A + B
    A % B
    2 * A - 1
    A / vec{10, 100}:row()
    sqrt(A)
    A:ge(3)
    where(A:ge(3), A, 0)
    A == A:clone()
    sin(linspace(0, math.pi, 5))]])

chapter("Products", [[
* multiplies matrices, a matrix and a vector, or two vectors (a dot product). A
transpose is a view, never copied for a product. ^ is the matrix power.]], [[
    A * B
    A * vec{1, 1}
    vec{1, 2, 3} * vec{4, 5, 6}
    A.T * B
    A ^ 10
    A ^ -1
    outer(vec{1, 2}, vec{3, 4, 5})
    matmul(A, B, {transA = true, alpha = 2})]])

chapter("Reductions", [[
Sums and the like take everything, or run along an axis: 1 gives one value a
column, 2 one a row.]], [[
    A = mat{{3, 1, 2}, {9, 7, 8}}
    sum(A)
    A:sum(1)
    A:max(2)
    A:argmax()
    mean(A), std(A), norm(A)
    cumsum(A, 2)
    A - A:row(1)
    sort(vec{3, 1, 2}), argsort(vec{3, 1, 2})]])

chapter("Linear systems", [[
solve finds x in A x = b; det and inv are there too. An ill-conditioned matrix
(Hilbert's, 1 / (i + j - 1)) loses digits even in f64; one can see how many.]],
[[
    A = mat({{4, -2, 1}, {-2, 4, -2}, {1, -2, 4}}, {dtype = "f64"})
    b = vec({11, -16, 17}, {dtype = "f64"})
    x = solve(A, b)
    x
    norm(A * x - b)
    det(A)
    inv(A)
    H = 1 / (range(1, 8):col():f64() + range(0, 7):row():f64())
    abs(solve(H, H:sum(2)) - 1):max()]])

chapter("Random numbers", [[
A seed gives the same numbers on every device. A million points in a square, and
how many of them fall in the circle, give pi to about three digits.]], [[
    rand(2, 3, {seed = 42})
    randn(2, 3, {seed = 42, mean = 10, std = 2})
    randint(1, 6, 10, {seed = 7})
    randperm(8, {seed = 7})
    rand(3, {seed = 1}) == rand(3, {seed = 1})
    P = rand(2, 1000000, {seed = 3})
    4 * mean((P[1] % P[1] + P[2] % P[2]):le(1))]])

chapter("Files", [[
Tables (.csv, .tsv, .txt) and NumPy's .npy are read and written; a file is
replaced whole or not at all. The names in a table's first line come second.]], [[
    name = os.tmpname()
    A = mat{{1, 2.5}, {3, 0 / 0}, {5, 1e-7}}
    save(A, name .. ".csv", {header = {"time", "height"}})
    print(io.open(name .. ".csv"):read("a"))
    C, names = load(name .. ".csv")
    C
    names[1], names[2]
    save(A:f64(), name .. ".npy")
    load(name .. ".npy")
    os.remove(name), os.remove(name .. ".csv"), os.remove(name .. ".npy");]])

chapter("Errors that help", [[
A mistake says what is wrong, with the values, and what to write instead. The
session goes on; pcall catches an error in a program.]], [[
    A, B = rand(3, 4), rand(3, 4)
    !A * B
    !A + rand(2, 2)
    !A[7]
    !A["1:9, 2"]
    !A < 1
    !A:summ()
    !mat{{1, 2}, {3}}
    !solve(mat{{1, 2}, {2, 4}}, vec{1, 2})
    !zeros(1e10, 1e10)
    !load("no_such_file.csv")
    ok, message = pcall(matmul, ones(2, 2), ones(2, 2), {kernel = "none"})
    message]])

chapter("Kernels", [[
A product can run on any rung of a ladder of kernels: choose one by name, check
it against double precision, race them all. One wrong element does not slip by.]],
[[
    kernels()
    A, B = rand(128, 128, {seed = 1}), rand(128, 128, {seed = 2})
    C = A * B
    verify(C, A, B)
    C[{5, 7}] = C(5, 7) + 0.01
    verify(C, A, B)
    race(A, B, {seconds = 0.02})
    bench(function() return A + B end, {seconds = 0.02})]])

chapter("Trace", [[
With the trace on, every operation says which kernel ran, how long it took, its
rate and the share of the machine's measured peak (on standard error).]], [[
    tracing(true)
    C = A * A.T;
    s = sum(exp(C / 64))
    tracing(false)]])

print("\n?name at the prompt gives help on a name, ??word searches, :help lists "
    .. "commands.")
if surprises > 0 then
    print(surprises .. " lines did not do what this tour says")
    os.exit(1)
end
