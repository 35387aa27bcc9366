-- The README: what stands in it as code runs, and what it names is there.
local lu = require "luaunit"
local t = require "common"
local root = t.root
local lumat = assert(os.getenv("LUMAT"), "LUMAT must name the program")
local registry, library = debug.getregistry(), require "lumat"
help("settings") -- loads the manual
local manual = registry["lumat.manual"]
local readme = t.content(root .. "README.md")

-- --- what is in it ---------------------------------------------------------

-- Outside of blocks, once each, in order.
local function spans(text)
    local list, seen = {}, {}
    for span in text:gsub("\n```.-\n```", ""):gmatch("`([^`]+)`") do
        span = span:gsub("%s+", " ")
        if not seen[span] then
            seen[span] = true
            list[#list + 1] = span
        end
    end
    return list
end

-- Words that are no code: file formats, keys, programs, places, options.
local other = {}
for word in ([[nvcc cpu ~/ $PAGER $if numpy.load markdown ; off errors top mpirun srun
    measure stop repeats warmup cold held setup check verify kernels.def split16 -1 t[1] _U=true
    libopenmpi-dev libscalapack-openmpi-dev D:gather()
    e:csv e:jsonl SEED= SECONDS= lost forever once any arm(fault) calls() injected()
    local ~/.inputrc ~/.local/state/lumat/history LUMAT_SUGGESTIONS=off]])
    :gmatch("%S+") do
    other[word] = true
end
for _, text in ipairs{"apt install git make ca-certificates", ".ci/bare",
    "$if lumat", "json file", "A *", "solve(A,", "f(", "A[", "!make", "--csv", "--dir",
    "LUMAT_FAULT=cudaMallocAsync:7:once", "cudaStreamQuery:1:once:719",
    'require "lumat.faults"', "LUMAT_FAULT=off lumat tests/faults/driver_faults.lua",
    "hold = 2", "threads = 2", "mix = true", "man lumat", "lumat --manual=text",
    'lumat --bytecode -e "_U=true" all.lua', "lumat scripts/bench_matmul.lua --seconds 0.4",
    '{dtype="f64"}', '"9:1:-2"', '{kernel="tiled", tile=16}', "verify(C, A, B, {kernel=})"} do
    other[text] = true
end

-- --- what it is tried by ---------------------------------------------------

local function is_command(name)
    for _, row in ipairs(manual.commands) do
        if row[2] and row[1] == name then return true end
    end
end

local makefile = t.content(root .. "Makefile")

-- What is wrong with a span that names something, or nil; true: it is none.
local function problem_with(span)
    local command = span:match("^:(%a+)")
    if command then
        return not is_command(command) and command ~= "command" and "no such command"
    end
    local topic = span:match("^%?%?(%w+)$") or span:match("^%?(%w+)$") or
        span:match("^(%w+)%?$")
    if topic then
        local found = topic == "name" or topic == "word" or
            select(2, manual.explain(topic, {width = 80, height = 24}))
        return not found and "no such help"
    end
    local target = span:match("^make ([%w-]+)$")
    if target then
        return not makefile:find("\n" .. target:gsub("-", "%%-") .. ":") and "no such target"
    end
    local file = span:match("^scripts/[%w_]+%.lua$") or span:match("^%l+/[%w_/.]+%.%l+$") or
        span:match("^gpu/[%w_/.]+$") or span:match("^%l+/[%w_/]+/$") or
        span:match("^[%w_]+%.lua$") and "scripts/" .. span
    if file then
        local found = io.open(root .. file) -- a folder, too
        if found then found:close() end
        return not found and "no such file"
    end
    return true
end

-- Lua: a piece, several of them, or names of functions. In a child, in a
-- folder of its own, with the names that the README uses.
local prelude = [[
local A = mat{{4, 1, 2}, {1, 5, 3}, {2, 3, 6}}
local names = {A = A, B = A:clone(), C = zeros(3, 3), D = A, x = vec{1, 2, 3}, y = vec{1, 2, 3},
    v = vec{1, 2, 3}, b = vec{1, 2, 3}, i = 2, j = 1, n = 2, p = 2, m = 3, S = sparse(A), k = 1,
    E = A,
    f = function() return A * A end, file = "log.txt", arg = arg, X = A, w = vec{1, 1, 2}, q = 0.5,
    xi = vec{1.5}, keys = vec{1, 2, 1}, mask = vec{1, 2, 3}:gt(1), y1 = vec{1, 2, 3},
    y2 = vec{3, 2, 1}, path = "iris.csv", rows = 1, cols = vec{2}, chart = plot(vec{1, 2})}
names.T = frame{{"petal_length", vec{1, 2, 3}}, {"age", vec{20, 30, 40}}, {"a", vec{3, 1, 2}},
    {"b", vec{1, 1, 0}}, {"species", {"x", "y", "x"}}}
save(names.T, "iris.csv")
setmetatable(names, {__index = _G})
save(A, "data.csv")
save(A, os.getenv("HOME") .. "/a.npy")
local e = experiment{name = "products", dir = "runs/new", axes = {kernel = {"openblas"}, n = {4}},
    measure = function(p) return 1 / p.n end}
e:run{quiet = true}
experiment{name = "products", dir = "runs/old", axes = {kernel = {"openblas"}, n = {4}},
    measure = function(p) return 1 / p.n end}:run{quiet = true}
names.e = e
local function try(piece)
    if piece:find("^sparse%(i") then
        names.i, names.j, names.n = vec{1, 2, 3}, vec{1, 2, 3}, 3
    else
        names.i, names.j, names.n = 2, 1, 2
    end
    local run, problem = load("return " .. piece, "=readme", "t", names)
    run = run or load(piece, "=readme", "t", names)
    local ok = run and true
    if run then ok, problem = pcall(run) end
    if not ok then io.stdout:write("FAILS ", piece, ": ", tostring(problem), "\n") end
end
]]

local program = lumat:find("^/") and lumat or os.getenv("PWD") .. "/" .. lumat

-- What the program prints that gets the text as its script or, "<script", its
-- input, in a folder and a home of its own; and its exit code.
local function run_in_folder(text, arguments)
    local folder = t.scratch("")
    os.execute("mkdir -p '" .. folder .. "/home'")
    t.write(folder .. "/script", text)
    local pipe = assert(io.popen(("cd '%s' && HOME='%s/home' '%s' --no-init --device %s %s 2>&1")
        :format(folder, folder, program, t.device, arguments)))
    local output = pipe:read("a")
    local _, _, code = pipe:close()
    os.execute("rm -rf '" .. folder .. "'")
    return output, code
end

-- The kernels of matmul: the CPU's, and those of the backend for GPUs.
local function kernel_names(of_gpu)
    local names = {}
    if of_gpu then
        local list = t.content(root .. "gpu/cuda/kernels/kernels.def")
        for name in list:gmatch("matmul_([%w_]+)%)") do
            names[#names + 1] = name:gsub("_", "-")
        end
    else
        for _, k in ipairs(kernel_list("cpu")) do
            if k.operation == "matmul" then names[#names + 1] = k.name end
        end
    end
    return names
end

local known = {}
for _, list in ipairs{library, registry["lumat.methods"]} do
    for name in pairs(list) do known[name] = true end
end
for _, of_gpu in ipairs{false, true} do
    for _, name in ipairs(kernel_names(of_gpu)) do known[name] = true end
end

local function is_list_of_names(span)
    for word in span:gmatch("%S+") do
        if not known[word] then return false end
    end
    return true
end

-- "lumat -e 'code'": the Lua in it is compiled, as it may take long.
local function compile_code_of(span)
    for code in span:gmatch("'([^']*)'") do
        lu.assertNotNil(load("return " .. code) or load(code), span)
    end
end

TestReadme = {}

function TestReadme:test_what_stands_as_code_runs_and_what_is_named_is_there()
    local script = {prelude}
    for _, span in ipairs(spans(readme)) do
        local problem = not other[span] and problem_with(span)
        if problem ~= true then
            lu.assertIsTrue(not problem, span .. ": " .. tostring(problem))
        elseif span:find("^lumat ") or span:find("^mpirun ") then
            compile_code_of(span)
        elseif span:find(t.on_gpu and "kernel=" or '"cuda"', 1, true) or
            span:find('"cuda:1"', 1, true) or
            span:find("^pool[{.]") or span:find("drandn?%(") or
            span:find("^dload%(") or span == "spread(A)" then
            -- of the other device, or of processes that may not be there
            lu.assertNotNil(load("return " .. span) or load(span), span)
        elseif span:find("%w") and not is_list_of_names(span) then
            script[#script + 1] = ("try(%q)"):format(span)
        end
    end
    lu.assertIsTrue(#script > 60)
    local output, code = run_in_folder(table.concat(script, "\n"), "script")
    lu.assertNil(output:match("FAILS [^\n]*"))
    lu.assertEquals(code, 0, output)
end

-- Which kernels are the CPU's and which a GPU's.
function TestReadme:test_kernels_are_on_the_device_it_says()
    local cpu, gpu = readme:match("`([%w ]+)` on the CPU, `([%w -]+)` on a GPU")
    for names, of_gpu in pairs{[cpu] = false, [gpu] = true} do
        local there = " " .. table.concat(kernel_names(of_gpu), " ") .. " "
        for name in names:gmatch("%S+") do lu.assertStrContains(there, " " .. name .. " ") end
    end
end

-- The commands of the tables run at the prompt.
function TestReadme:test_commands_run()
    local lines = {"A, B, C = rand(9, 9), rand(9, 9), eye(9)", "C = A * B", "y = vec{1, 2}",
        "x = vec{1, 2}"}
    local at_home = {":view A", ":last", ":edit", ":watch A", ":command", -- need a terminal
        ":view D", ":inspect D", ":cost D * E"} -- need processes
    for _, span in ipairs(spans(readme)) do
        if span:find("^:%a") and not table.concat(at_home, "\n"):find(span, 1, true) and
            not span:find("%.png") then
            lines[#lines + 1] = span:gsub("expr", "A * B"):gsub(" %[n%]", " 3")
                :gsub(" %[> file%]", ""):gsub(" %[reset%]", "")
                :gsub("^:device$", ":device " .. t.device)
        end
    end
    lu.assertIsTrue(#lines > 20)
    local output = run_in_folder(table.concat(lines, "\n") .. "\n", "-q -i <script")
    lu.assertNil(output:match("error: [^\n]*"), output)
end

-- Every option of a text, in order.
local function options_of(text)
    local list, seen = {}, {}
    for option in text:gmatch("%f[^%s|]%-%-?%a[%w-]*") do
        if not seen[option] then list[#list + 1] = option end
        seen[option] = true
    end
    table.sort(list)
    return list
end

-- The usage has the options of --help, but for their long or short forms.
function TestReadme:test_usage()
    local usage = readme:match("\nlumat %[file%.lua.-\n```")
    local pipe = assert(io.popen("'" .. program .. "' --help"))
    local given = pipe:read("a"):gsub("  %-q, %-%-quiet", "  -q"):gsub("  %-%a, ", "  ")
    pipe:close()
    lu.assertEquals(options_of(usage), options_of(given:match("\n\n.*")))
    for code in usage:match("exit codes: ([^\n]*)"):gmatch("%d+") do
        lu.assertStrContains(given:match("exit codes:.*"), code)
    end
end

os.exit(lu.LuaUnit.run("-o", "tap"))
