-- What is no function and no command: short chapters. A part is a paragraph,
-- or rows of two columns; rows marked `code` have Lua on the left, pieces
-- between two blanks, that a test runs with A, B (2x2), v, w (vectors) and T, a
-- frame.
local manual = ...

manual.topics = {}
local topics = manual.topics

topics.first = {title = "First things", {
    {"A = mat{{1, 2}, {3, 4}}", "a matrix; v = vec{1, 2, 3} is a vector"},
    {"zeros ones eye rand randn", "filled ones, as in rand(3, 4)"},
    {"A * B   A % B   A / B", "matrix product; element by element"},
    {"A + B   2 * A   A ^ -1", "and so on; A.T is transposed"},
    {"solve(A, b)", "a linear system; also inv det norm"},
    {"A[1]   A[{2, 1}]   A(2, 1)", "a row; an element, to assign and to read"},
    {'A["1:2, end"]', "a block, as a view"},
    {"A[A:gt(2)] = 0", "masks: eq ne lt le gt ge"},
    {"A:sum()   A:sum(1)", "of everything; one value a column; also mean max …"},
    {'load "f.csv"', 'a file; save(A, "f.npy") writes one'},
    {"A = …   A = …;", "shows one line; with a semicolon nothing"},
    {"ans", "the last value shown"},
    {"local x = 1", "lasts to the next lines, as in one script"},
    {"?matmul   ??inverse", "help on a name; search"},
    {":help   :who   :quit", "the commands; your variables; leave (or Ctrl-D)"},
}}

topics.experiments = {title = "Experiments", see = "experiment ?results pow2",
    "e:run{…} measures the points that are not done yet, each of them once, " ..
    "however often it is started and stopped. Its options, in a table; " ..
    "workers, threads, shard, budget, retry_failed and quiet also as words " ..
    "behind the script's name: --workers=4 --retry-failed",
    manual.options_of "experiment.run",
    "A run says how many of its points were done before. dir = false keeps " ..
    "nothing: it writes, syncs and claims nothing, and every run begins anew.",
    "A point is the same while its parameters, version, lumat and the text of " ..
    "measure, setup and check are, with the numbers and functions they refer " ..
    "to; comments do not count, nor does what the axes have besides.",
    "Points that differ only in parameters that setup does not read share what " ..
    "it made, up to 16 of them: their samples alternate, so that what drifts " ..
    "meets them all, and each has its row when it is done. What setup reads is " ..
    "taken from its text, where p stands in it as p.name alone; else group = " ..
    "{\"n\"} names it, for groups of any size. group = false sets up each point " ..
    "anew.",
    "The same script under mpirun or srun: every rank takes part, with a GPU " ..
    "of its own where there are several, and the first one alone prints. Any " ..
    "other processes started with it, on machines that share its folder, share " ..
    "the points too. With launcher = \"srun\" the workers are an array job of " ..
    "Slurm, whose script is slurm.sh in the run directory: run{launcher = " ..
    "\"srun\", workers = 64, slurm = {time = \"1:00:00\"}}. The job needs nobody " ..
    "who looks: Ctrl-C leaves it, the same run looks at it again, and a budget " ..
    "is each worker's, from its start. timeout = 60 ends a point after so many seconds, and the " ..
    "worker it is in; a run without workers starts one for it. A worker that " ..
    "dies loses what it was at, which another one does; a point that two " ..
    "workers crash in has the status crashed."}

topics.results = {title = "Results of experiments",
    see = "experiment ?experiments",
    "What an experiment e, or a list of its rows, is seen by. Figures: time " ..
    "(the median), rate, gflops, tflops, gbs, held and held_rate (under a load " ..
    "that lasts, by hold), share (of the measured peak), " ..
    "error (what check gave), width (of the 95 % interval), samples, seconds, " ..
    "the axes, and what measure and check gave in tables. where = {n = 64}, or a " ..
    "function(p, row), chooses rows everywhere. A row itself, e:results()[1], " ..
    "has the median as row.median, in seconds; its row.time is when it was " ..
    "measured, in seconds since 1970.",
    {
        {"e:table()", "a line for each point"},
        {"e:table{rows=, cols=, value=}", "an axis against another, or lists of axes; best = " ..
            "false, or true also where numbers head the columns"},
        {"e:table{ratio_to={kernel = \"cublas\"}}", "how many times as fast as the point " ..
            "that has this and else the same parameters; what is zipped with " ..
            "these goes along"},
        {"e:plot{x=, y=, by=, log=}", "lines; log = \"x\", \"y\", \"xy\" or \"\", else as the " ..
            "values are; file = \"a.svg\", .png or .pdf draws them there"},
        {"e:plot{x=, y=, value=}", "a heat map of two axes"},
        {"stat = \"median\"", "of tables and charts: \"min\", \"max\", \"mean\" or \"median\" " ..
            "of the samples of each point, and of the points in one cell, or at " ..
            "one x of a line, which is an error else"},
        {"e:plot{kind = \"roofline\"}", "rates over flops a byte, below the measured peaks"},
        {"e:csv(path)  e:jsonl(path)", "files, written whole or not at all; CSV has the axes, " ..
            "status, seconds, low, high, samples, flops, bytes, rate, unit, " ..
            "share, peak, peak_value, check, held, env, key, message and the " ..
            "figures of measure and check, in seconds, flops or bytes a second " ..
            "and shares of 1"},
        {"e:report(path)", "one HTML file: table, plots, what failed, environment, script; " ..
            "plots = {{y = \"time\"}, …}, title ="},
        {"experiment.compare(a, b)", "experiments, run directories or such files: SAME, FASTER, " ..
            "SLOWER or UNSURE a point; threshold = 0.02"},
    },
    "measure gives the seconds of one run, or a function, which is timed. " ..
    "Either is run once to warm up (warmup = 1), which does not count, and " ..
    "sampled until the 95 % interval of the median is within 1 % of it, with " ..
    "stop = {interval = 0.01, least = 10, most = 100, seconds = 1}: at least 10 " ..
    "samples, at most 100 or a second. So a measure that gives seconds is " ..
    "called 11 times a point or more, less often only where 10 samples take " ..
    "more than 10 seconds. repeats = 5 takes 5 samples, repeats = 1 calls it " ..
    "once. ~ marks intervals wider than 5 %. Shares are of the best peak that " ..
    "was measured where the points were; tables say which that is.",
    "compare takes the factor between the samples of a point (Hodges and " ..
    "Lehmann, on logarithms) with an error from its rank interval, made " ..
    "larger where neighbouring samples are alike (Bartlett), and towards what " ..
    "is usual in the table where it is less, as far as the noise of the points " ..
    "is alike (Smyth). Beyond ten times changes are factors: / 12 .. x 30. " ..
    "Samples that are the very same, as of a run beside itself, are SAME, " ..
    "however few they are. " ..
    "SLOWER, FASTER: the change is above the threshold, its 95 % interval " ..
    "above half of it, and it is no accident (p < 5 %, by Benjamini and " ..
    "Hochberg for all points: where nothing changed, one table in twenty has " ..
    "a false alarm). SAME: two one-sided tests at 5 % put the change within " ..
    "the threshold. UNSURE says how many samples would tell; five are the " ..
    "least. What was not alike (device, driver, clocks …), points of one run " ..
    "alone and errors that differ are listed."}

topics.frames = {title = "Frames: named columns",
    see = "frame dates load save vcat ?indexing",
    "A frame is for data of several kinds: columns of one length, of numbers " ..
    "(vectors), text (a list of labels, and for each row the place of its own) " ..
    "or dates (seconds since 1970, UTC). load \"iris.csv\" gives one where a " ..
    "column is text or dates, save(T, \"f.csv\") writes one. With iris.csv the " ..
    "means of each species are two lines: T = load \"iris.csv\" and " ..
    "T:groupby \"species\":mean(). Here T has numbers a and b, species and when:",
    {code = true,
        {"T.a  T[\"a\"]  T:col \"a\"", "a column; the last one also where a method has that name"},
        {"T.c = T.a / T.b  T.a = nil", "adds or replaces one, takes it out; in all rows a " ..
            "number or text"},
        {"T[3]  T[-1].species", "a row, a table by names; the last row's species"},
        {"T[T.a:gt(1)]  T[{{1, 2}}]", "rows by a mask, a range; T[vec{3, 1}] by a list"},
        {"T[{{1, 2}, {\"a\", \"b\"}}]  T[{3, \"a\"}]", "rows and columns; an element"},
        {"T.species:eq \"oak\"", "a mask of text, as isin{\"oak\", \"elm\"} and, by a " ..
            "pattern, match \"^o\"; == is false in Lua, whatever stands there"},
        {"T.species:map(string.upper)", "other text, or numbers, by a function or a table " ..
            "of labels"},
        {"T.when:year()  T.when:ge \"2020-02\"", "of dates; more: dates"},
        {"T:sort \"a\"  T:sort{\"species\", \"a\"}", "rows in order"},
        {"T:groupby \"species\":mean()", "a row a group; agg{a = \"mean\", b = \"max\"} of " ..
            "columns in their own way"},
        {"T:describe()  T:value_counts \"species\"", "what there is"},
        {"T:matrix{\"a\", \"b\"}  T:matrix()", "columns as a matrix; all that are numbers"},
        {"for name, c in pairs(T) do … end", "goes through the columns, eachrow through " ..
            "the rows"},
    },
    "A frame shares the vectors that it is given: T.a[2] = 0, T.a[T.a:lt(0)] = " ..
    "0 and T.species[2] = \"ash\" write to them. T[mask] is a frame of copies: " ..
    "what is assigned to T[mask].b is not seen in T, T.b[mask] = 0 is. Numbers " ..
    "that are missing are NaN, text and dates false in a list and nil as an element; " ..
    "means, sums and the like of groups, describe and value_counts leave them out, " ..
    "T.a:mean() does not. A column called like a method (unique, sort) is T:col \"sort\", " ..
    "T:set(\"sort\", v) sets it.",
    "There are no joins and no reshaping. What a join by a key brings, map does: " ..
    "T.price = T.species:map{oak = 3, elm = 2}. Wide to long: vcat of frames " ..
    "with a column that tells them apart; larger work is that of a database, " ..
    "the results of which are loaded.",
    manual.member_rows "frame"}

-- What load and save know of each kind of file stands with them.
local function formats()
    local rows = {}
    for i, f in ipairs(require "lumat.formats") do
        local takes = {}
        for _, of in ipairs{{"load", f.reads}, {"save", f.writes}} do
            local options = of[2] and of[2]:gsub(" ?device$", ""):gsub(" ", ", ")
            if options and options ~= "" then
                takes[#takes + 1] = of[1] .. " takes " .. options
            end
        end
        if not f.writes then
            takes[#takes + 1] = "read, and not written"
        end
        rows[i] = {f.endings, f.about .. (#takes > 0 and " (" ..
            table.concat(takes, "; ") .. ")" or "")}
    end
    return rows
end

topics.formats = {title = "Files of data", see = "load save ?frames",
    "load \"a.npy\" reads a file and save(A, \"a.npy\") writes one. Which kind " ..
    "it is, its first bytes tell, or the ending of its name, behind which may " ..
    "stand .gz: what gzip packs. Options stand in a table: load(\"a.mat\", " ..
    "{names = {\"A\"}}), and each takes {device=}.",
    formats(),
    "No file is trusted. What one claims is compared with what it has before " ..
    "anything is made room for, and an error says what is wrong and where. What " ..
    "has no place here, as Python's objects and MATLAB's functions, is left " ..
    "out of a table of names with a warning. Integers beyond 2^53, which f64 " ..
    "would round, are refused unless {dtype = \"f64\"} is given. A table of " ..
    "names that save writes may hold matrices, numbers, truth values and " ..
    "strings; a list of matrices of one shape is an array of three dimensions " ..
    "in .npy and .npz. Of images {low =, high =} says which values are black " ..
    "and white, {palette = \"heat\"} colours them, {bits = 16} keeps more of " ..
    "them."}

topics.charts = {title = "Charts", see = "plot scatter hist boxplot imshow contour " ..
    "subplot save",
    "plot and the others give a chart: a value that shows itself at the prompt, " ..
    "drawn as wide as the screen is. In a script print(plot(v)) shows it. " ..
    "Nothing is drawn anywhere before: there is no current figure, no hold on.",
    {code = true,
        {"plot(v)  plot(v, w)", "a line over 1, 2, 3 …; w over v"},
        {"plot(v, w, v + w)", "two lines over v; columns of a matrix are lines, too"},
        {'plot(v, {style = "points"})', '"line", "points", "bars", "steps" or "errors" with ' ..
            "error = e; a list has one for each series"},
        {'plot{v, w, style = "steps"}', "the same in one table"},
        {"plot(math.sin, 0, 6)", "a function from 0 to 6"},
        {"scatter(v, w)  hist(v)", "points; how many elements lie where"},
        {"boxplot(v, w)  boxplot(A)", "quartiles of vectors, or of columns"},
        {"imshow(A)  contour(A)", "a matrix in colours; lines of one height"},
        {"subplot{{plot(v), hist(v)}, {imshow(A)}}", "charts in rows; subplot{a, b} is one row"},
        {'plot(v, {title = "t", xlabel = "x", ylabel = "y"})', "texts"},
        {'plot(v, w, v, {legend = {"a", "b"}})', "names of series; legend = false leaves them out"},
        {"plot(v, {xlim = {1, 3}, ylim = {0, 5}})", "the ends of the axes"},
        {"plot(v, {logx = true, logy = true})", "logarithmic axes"},
        {"plot(86400 * v, w, {xdates = true})", "x in seconds since 1970 (UTC)"},
        {'plot(v, {style = "bars", names = {"a", "b"}})', "what stands below 1, 2"},
    },
    {
        {'save(plot(v), "a.svg")', "or .png or .pdf; plot(v, \"a.svg\") and " ..
            "plot(v, {file = \"a.svg\"}) do the same"},
        {"size = {680, 420}", "of the file in pixels; a .png has two for each"},
        {"dark = true", "on dark ground; an .svg without it is as its reader's theme"},
        {"width, height", "of the text, in characters"},
        {":set pictures on", "charts at the prompt are pictures, where the terminal " ..
            "says that it shows some (kitty, iTerm2, sixels)"},
    },
    "NaN breaks a line. Inf, and what is 0 or less on a logarithmic axis, is " ..
    "left out and counted below the chart. Of more than 20 000 elements a line " ..
    "keeps the least and the greatest of each of many columns, and points " ..
    "that would lie on one another are one: that is done on the device, and no " ..
    "picture shows the difference.",
    "No other program draws: letters of a .png are lumat's own, Latin and " ..
    "Greek; a letter it has not is an empty frame, and an .svg has every one."}

topics.operators = {title = "Operators", see = "matmul ?indexing ?lua",
    "Plain Lua 5.4: numbers, vectors and matrices mix.",
    {code = true,
        {"A * B  A * v  v * w", "matrix product; of two vectors the dot product, a number"},
        {"2 * A  A / 2  A + 1", "with a number: every element"},
        {"A % B  A / B  A // B", "element by element; A % 3 is the remainder"},
        {"A + B  A - B  -A", "of one shape, or a 1xn or mx1 matrix stretched; a vector " ..
            "is, as v:row() or v:col()"},
        {"A ^ 2  A ^ -1  A:pow(2)", "matrix power; the inverse; element by element"},
        {"A .. B  vcat(A, B)", "side by side; one above the other"},
        {'"A = " .. A', "with a string: text"},
        {"A == B  A ~= B", "one boolean: same shape, all equal. A:eq(B) is a mask, " ..
            "A:close(B) allows for rounding"},
        {"A:lt(B)  A:ge(0)  A:ne(1)", "masks; A < 1 raises, since Lua makes one boolean of it"},
        {"A:gt(1) & B:lt(2)  ~A:eq(1)", "masks combined: & and, | or, ~ not"},
        {"A.T  A:t()", "transposed, as a view"},
        {"#A", "rows; of a vector its length"},
        {"A:add_(B)", "in place: a function's name with _ behind it"},
    },
    "Lua has no +=, no A(i, j) = x and no A'; where one of them is met, the " ..
    "message says what to write."}

topics.indexing = {title = "Indexing", see = "take put where ?operators ?properties",
    "Indices start at 1; negative ones count from the end; what is outside " ..
    "raises. Rows, columns and blocks are views: they share their elements " ..
    "with the matrix they are of; A:clone() copies, and so do lists and masks.",
    {code = true,
        {"A[1]  A[-1]  v[2]", "a row as a vector, the last one; an element of a vector"},
        {"A:row(1)  A:col(-1)", "a row as a 1xn matrix, a column as mx1: they broadcast"},
        {"A[{1, 2}]  A(1, 2)", "an element"},
        {"A[{1, 2}] = 5  A[2] = 0  v[1] = 7", "assigned: an element, a row"},
        {"A[{{1, 2}, {}}]  A[{{}, 2}]", "rows 1 to 2; column 2; {} is all"},
        {"A[{{1, 2, 1}, 1}]", "first, last, step"},
        {'A["1:2, end"]  A["::-1, :"]', "the same as text: first:last or " ..
            "first:last:step; also end-1"},
        {'A["2, :"] = 0  A[{{}, 1}] = v', "blocks are assigned as well"},
        {"A[A:gt(2)]  A[A:gt(2)] = 0", "the elements a mask chooses, as a vector; assigned"},
        {"A[vec{2, -1}]  v[vec{2, 1}]", "rows by a list of their places, a vector; elements"},
        {"A[{{}, vec{2, 1}}]  A[{vec{1, 2}, vec{2, 1}}]",
            "columns by a list; the rows and columns of two"},
        {"A[A[{{}, 1}]:gt(1)]  A[{{}, A[1]:gt(1)}]", "rows by a mask of as many elements; columns"},
        {"A[vec{1, 2}] = 0", "assigned; of a place that comes again the last value stays"},
        {"for i, row in A:eachrow() do end", "all rows; also eachcol"},
    },
    "The step comes last, as in Lua's for: v[\"9:1:-2\"] is every second " ..
    "element from the ninth down. Where first:step:last, the order of other " ..
    "languages, would have taken more, a warning says so. {1, 3} is a range " ..
    "wherever it stands: the rows 1 and 3 are A[vec{1, 3}]. Of a sparse matrix " ..
    "S[…] gives a sparse one; S[{i, j}] = x, of rows, columns and " ..
    "blocks as well, writes all of S anew each time: many entries are better " ..
    "made at once."}

topics.random = {title = "Random numbers",
    see = "rand randn randint randperm exponential poisson choice seed",
    "Every session and every script begins at the same seed, so that it gives " ..
    "the same numbers when it is run again, on a GPU as on the CPU (normal ones " ..
    "but for their last digits). For others each time: seed(os.time()).",
    {code = true,
        {"rand(2, 3)  rand(9, {low = -1, high = 1})", "uniform, in [0, 1) or as told"},
        {"randn(2, 3)  randn(9, {mean = 5, std = 2})", "normal"},
        {"randint(1, 6, 10)  randperm(5)", "whole numbers, 1 and 6 among them; 1 to 5 in " ..
            "random order"},
        {"poisson(4, 10)  randgamma(2, 3, 10)", "of other distributions, ten of which there are"},
        {"choice(v, 5)  shuffle(v)", "elements at random; all of them in random order"},
        {"seed(7)  seed(os.time())", "the numbers from here on: the same again, or others"},
        {"rand(3, {seed = 7})", "of a seed of its own; what others get stays as it was"},
    },
    "The numbers of a matrix depend on the seed and on how many random matrices " ..
    "were made since, not on their sizes. math.random is Lua's own: it begins " ..
    "elsewhere each time."}

topics.properties = {title = "Properties of a matrix", see = "who ?indexing", {code = true,
    {"A.rows  A.cols  #A", "sizes; a vector has its length as rows"},
    {"A.shape  A.ndim  A.size", "{rows, cols}; 2, or 1 for a vector; how many elements"},
    {"A.dtype", '"f32", "f64", "bool", "c64" or "c128"'},
    {"A.device", '"cpu", "cuda:0"; "none" once it has been freed'},
    {"A.T  A.H", "transposed, as a view; and conjugated, which only complex " ..
        "elements show"}}}

topics.printing = {title = "Printing", see = "settings ?keys",
    "An expression shows its value and becomes ans; an assignment shows one " ..
    "line for each name that changed, and no data; a semicolon behind it " ..
    "silences either. In an entry of several rows each that is an expression " ..
    "shows its value, where Lua would refuse it, too; a row that begins with " ..
    "( or - goes on with the one above it, as in a file. print shows the same " ..
    "text, but for numbers, which it writes with 14 digits, as Lua does: here " ..
    "they have as many as it takes to read them back, those that come from " ..
    "an f32 matrix as an f32.",
    "A matrix has a line of type, shape, device and bytes above it. Each " ..
    "column is laid out by itself, its largest number below 1e6 to 5 " ..
    "significant digits, decimals aligned; there is no common factor. A number " ..
    "that would lose more than 5 % of its value so goes to e-notation alone, " ..
    "as does one from 1e6 on, with 3 digits where others are plain; A[i] shows " ..
    "it whole. " ..
    "What is printed as 0 is exactly 0. NaN, of either sign, and infinities " ..
    "are NaN, Inf and -Inf; CSV files have nan and inf, as NumPy writes them, " ..
    "JSON NaN and Infinity.",
    "What does not fit the screen is cut: the first and last rows and " ..
    "columns stay, with their numbers, and a last line tells how many " ..
    "elements are hidden and whether NaN or Inf is among them. Only what is " ..
    "shown comes from a GPU.",
    {{":set digits 7", "significant digits"},
     {":set rows 40", "a matrix of more rows is cut; auto: as the screen has room"},
     {":set edge 6", "rows shown of the beginning of one that is cut"},
     {":set", "all settings, with their values"}}}

topics.devices = {title = "Devices", see = "device to peak tracing ?memory",
    "New matrices live on the default device: a GPU where there is one, " ..
    "opened at the first matrix, else the CPU. Every operation runs where " ..
    "its operands are; operands on different devices are an error that says " ..
    "what to write. The same functions give the same results on both, but " ..
    "for the last digits: element by element they are right to 1 unit in the " ..
    "last place on the CPU (gamma, lgamma, erfc and logaddexp to 2), on a GPU " ..
    "to what CUDA's manual says, at most 4 in f32.",
    {{":device", "the default device, its memory and measured peaks"},
     {":device cpu", "choose one: cpu, cuda, cuda:1; at the start --device=cpu"},
     {'A:to("cpu")  A:to("cuda")', "a copy there; the matrix itself if it is there already"},
     {'rand(3, 3, {device = "cpu"})', "made there"},
     {":trace on", "what each operation did: kernel, time, rate, share of the peak"}},
    "What does not fit the GPU stays on the CPU: add(A, B, {device=\"cuda\"}) " ..
    "and other functions of elements, map(A, f, {device=\"cuda\"}), reductions, " ..
    "norms and matmul compute matrices on the CPU by a GPU, in tiles, while " ..
    "the next ones come and those before go; the result lies on the CPU. " ..
    "Functions that ask where an element lies are not computed so, nor are " ..
    "prod, var and std of more than 2^30 elements. A result of the same " ..
    "operations that finds no room on the GPU is computed so, too, told of " ..
    "once, and lies on the CPU; it goes on beside matrices of that GPU.",
    "Operations on a GPU return at once and run in order; printing, reading " ..
    "an element, saving and the end of each line wait. sync() waits for " ..
    "everything; bench and :time measure rightly.",
    "What is worked out element by element of 65536 elements or more (on a " ..
    "GPU of any size) waits until it is needed and then runs in one pass over " ..
    "memory: sqrt(sin(x) % y + 2) - x / 3 reads x and y once and writes " ..
    "once, ((x - y) % (x - y)):sum() writes nothing, x[x:gt(2)] = 0 reads and " ..
    "writes x once, 2 * rand(n) - 1 only writes. Types may meet in a pass, as " ..
    "in a * 2 - 1 + b of f32 and f64; but a function of f32 (exp, sin, pow) " ..
    "ends one that goes on in f64, where it has other bits. A product of f32 " ..
    "on a GPU that takes less than about 20 ms waits as well, so that A * B + c, " ..
    "2 * (A * B) or maximum(A * B + row, 0) write their result alone; the next " ..
    "product begins it at the latest. Every bit is that of one " ..
    "operation after the other, and shapes are checked where they are " ..
    "written. It is needed when it is printed, read, multiplied, saved or " ..
    "copied, before an operand of it is written to or freed, and at the end " ..
    "of an entry; traces and profiles name all its operations, under the " ..
    "line that needed it, and where there is no memory then the error names " ..
    "the lines that wrote them, too. :set fusion off runs each at once, always " ..
    "has small ones wait, too.",
    "map(A, B, f) runs f, a function in Lua, in one pass as well, if it only " ..
    "computes: with arithmetic, conditions, loops with a known count, " ..
    "functions of numbers, and what it takes from outside. f gets numbers, " ..
    "and is worked out in f64 as Lua does. What else it may do, printing or " ..
    "drawing random numbers, is done for every element: then f is called on " ..
    "the CPU, tens of times as slow, and a warning tells why where that is " ..
    "noticed. Random numbers are better an operand: map(A, rand(3, 3), f).",
    "A chain that a GPU has seen so often that it is worth 0.2 s gets a " ..
    "kernel of its own, which makes it up to three times as fast, compiled " ..
    "beside the work by CUDA's NVRTC, where that is there and of the version " ..
    "lumat was built with. The bits stay the same. Kernels are kept in " ..
    "~/.cache/lumat (in $XDG_CACHE_HOME if that is set), 64 MiB of them; " ..
    "stats().compiled counts their runs. :set compile off makes and uses " ..
    "none, always compiles each at once and waits for it; --safe uses none."}

topics.memory = {title = "Memory", see = "free forget keep_limit stats ?devices",
    "A matrix is freed when nothing refers to it any more; the collector " ..
    "knows how many bytes it holds. Views keep the matrix they are of. " ..
    "Where a loop should free at once: A:free(), or local A <close> = … .",
    "Before \"out of memory\" is raised everything unused is collected and " ..
    "the kept pools are returned; the message says what was needed and what " ..
    "was free. ans keeps the last value shown alive.",
    {{":who", "your variables and their bytes"},
     {"memory()", "bytes alive, at most, kept, free and in all"},
     {"add(A, B, {out = C})", "no new matrix; also A:add_(B)"},
     {"forget(A)", "drops what products keep about A to be faster"}}}

topics.errors = {title = "Errors", see = "?operators ?startup",
    "A message names the operation, the values and what would fit; at the " ..
    "prompt nothing is lost by one: variables and what ran before stay.",
    "A name without a value is told before a line runs, if the line is sure " ..
    "to fail by it. One that is only printed, passed or assigned is nil in " ..
    "Lua; at the prompt a note says what may have been meant, once. " ..
    "Looking is legal: x == nil, if x then. In scripts " ..
    "Lua's own rule holds; lumat --strict makes reading a global that " ..
    "was never set an error (rawget(_G, \"x\") looks), tells of functions that " ..
    "set new globals, and refuses to read a matrix on a GPU element by " ..
    "element a thousand times.",
    {{"pcall(f, …)", "catches: false and the message"},
     {'error("text")', "raises one of your own"},
     {"lumat: exp.lua:12: …", "a script's error: file, line, message; exit code 1"}}}

topics.keys = {title = "Keys", see = "?printing ?commands",
    "Lines are edited by GNU Readline; its keys and your ~/.inputrc hold, " ..
    "with $if lumat for what is meant for here alone.",
    {{"RETURN", "runs the line; while the Lua is unfinished it goes on, and the " ..
        "prompt names what is open; Alt-RETURN begins a row in any case"},
     {"→ Alt-F", "take the dim text behind the cursor, an earlier entry: all, a word"},
     {"TAB", "completes names, fields, methods, commands, files; twice: lists them"},
     {"↑ ↓", "earlier entries; Ctrl-R searches in them"},
     {"Ctrl-C", "at the prompt: drops the line, ↑ brings it back; else stops what " ..
        "runs; what goes on, the third offers to leave, the variables kept"},
     {"Ctrl-D", "on an empty line: leaves, as does :quit"},
     {"Ctrl-A Ctrl-E", "to the beginning, to the end"},
     {"Ctrl-W Ctrl-U Ctrl-Y", "cut a word, cut the line, put it back"},
     {"Ctrl-L", "clears the screen"},
     {":keys", "lists all, with the names that ~/.inputrc can bind"}},
    "Entries are kept in the history, whole, when they are run; a blank in " ..
    "front keeps one out. A pasted block runs as one entry; with commands " ..
    "in it, piece by piece, up to one that fails. The path of a file of data, " ..
    "pasted into an empty line as terminals do when a file is dropped on " ..
    "them, becomes load \"path\", for RETURN to run."}

topics.commands = {title = "Commands", see = "?keys ?startup",
    "A colon and a name, which may be cut short while it is the only such " ..
    "one. Most have a function in Lua that does the same. !command runs a " ..
    "command of the shell, :cd goes to another folder.", {names = true}}

topics.startup = {title = "Starting", see = "settings ?scripts ?keys",
    "lumat alone prompts; lumat file.lua runs a script; lumat --help lists " ..
    "the options.",
    {{"~/.config/lumat/init.lua", "Lua that runs before the first prompt, for settings " ..
        "and functions of your own; in $XDG_CONFIG_HOME if that is set"},
     {"LUMAT_INIT", "another file in its place; empty: none, as --no-init"},
     {"~/.local/state/lumat/history", "the entries of all sessions; in $XDG_STATE_HOME " ..
        "if that is set"},
     {"LANG", "one of UTF-8, such as C.UTF-8, draws with its characters, any other with " ..
        "ASCII; LC_CTYPE and LC_ALL come before it"},
     {"NO_COLOR", "not empty: no colour, as --color=never"},
     {"COLUMNS", "the width of what scripts print, else 80"},
     {"LUMAT_FUSION", "off: every operation runs at once; on, always: see settings"},
     {"LUMAT_COMPILE", "on, always or off: kernels compiled for chains, see settings"},
     {"LUMAT_SUGGESTIONS", "off: no dim text of earlier entries behind the cursor"},
     {"OMP_NUM_THREADS", "how many threads work on the CPU, else as many as it has cores"},
     {"LUMAT_NO_CUDA", "not empty: as if there were no GPU"},
     {"LUMAT_FAULT", "for tests: a call of the GPU's driver that fails, as " ..
        "cudaMallocAsync:7:once"}}}

topics.scripts = {title = "Scripts", see = "load bench ?startup ?errors",
    "A script is Lua; the library's names are globals, and local lm = " ..
    'require "lumat" gives them as a table. Its arguments are ... and arg.',
    {{"lumat exp.lua 10 fast", "runs it; :run exp.lua 10 fast at the prompt"},
     {"lumat -e code -p expr", "runs code; prints a value"},
     {"lumat -i exp.lua", "prompts afterwards, whatever happened"},
     {"… | lumat", "standard input as a script; lumat - with arguments"}},
    "Nothing but what the script prints goes to standard output; messages go " ..
    "to standard error. Reading elements one by one from a GPU is slow, and " ..
    "told once a line of the script does it a thousand times."}

topics.safe = {title = "Scripts of others", see = "?scripts ?startup",
    "lumat --safe runs a script that is not trusted: it computes, and reads " ..
    "and writes files below the folders it was given, and starts nothing.",
    {{"--safe", "files of the current folder and below"},
     {"--safe=data:ro,out", "reads below data, reads and writes below out; a folder to read " ..
        "(:ro) cannot lie in one to write"},
     {"--safe-language", "the same by Lua's functions alone, on systems without Landlock " ..
        "(Linux before 5.13); weaker, as an error in lumat would be a way out"},
     {"--memory=2G", "the most that Lua's values and matrices on the CPU may hold"},
     {"--time=60", "the most seconds that a script, or an entry at the prompt, may take; " ..
        "stops it as Ctrl-C does, and ends a script that does not stop five seconds later"}},
    "The kernel keeps what --safe promises: no other program, no network, no " ..
    "file elsewhere, no signal to other processes. Symbolic links count as " ..
    "what they lead to. io.popen, os.execute, os.remove, os.rename, the debug " ..
    "library but for traceback, C modules and most environment variables are " ..
    "not there; require finds modules in the folders; texts show numbers in " ..
    "place of addresses.",
    "A GPU is opened before the script starts, which takes a moment more; " ..
    "--device cpu goes without. The driver and the libraries are trusted, and " ..
    "that a file exists, its size and its times are not hidden."}

topics.lua = {title = "Lua in a few lines", see = "?operators ?errors",
    {code = true,
     {"x, y = 1, 2", "assigns; a name without a value is nil"},
     {"local x = 1", "a variable of the block it is in; at the prompt, of the " ..
        "session from there on"},
     {"if x > 1 then … else … end", "only nil and false count as false; x ~= y is " ..
        "\"not equal\""},
     {"for i = 1, 10 do … end", "counts; for k, v in pairs(t) do … end goes through a table"},
     {"while x do … end", "also repeat … until x; break leaves"},
     {"function f(a, b) … end", "with return a + b in it; several values can be returned"},
     {'t = {1, 2, key = "value"}', "a table: t[1], t.key, #t"},
     {'"text" .. 1', "joins; [[ … ]] spans lines; (\"%d\"):format(3)"},
     {"-- to the end of the line", "a comment; --[[ … ]] over lines"},
     {"2^10  7 // 2  7 % 2  1e-3", "a power, whole division, remainder, a number"}},
    "The language is described in www.lua.org/manual/5.4."}
