-- The functions in the order of the reference: chapters of groups of names.
-- Names of a group point at each other under "see also"; a function is
-- described where it is named first. What is in no group gets a chapter of
-- its own at the end.
local manual = ...
local gmatch, ipairs = string.gmatch, ipairs

manual.chapters = {
    {"Making matrices",
        "mat vec fromfn",
        "zeros ones full eye",
        "range linspace logspace",
        "rand randn randint randperm seed",
        "diag tril triu",
        "sparse full"},
    {"Shape and place",
        "reshape flatten t",
        "row col reshape",
        "hcat vcat tile",
        "take put where sort argsort flip",
        "eachrow eachcol map",
        "clone f32 f64 bool to totable free"},
    {"Products and linear algebra",
        "matmul dot kernels race verify checking",
        "matmul dot outer kron",
        "solve inv det rcond",
        "norm trace",
        "kernel_list kernel_choice kernel_bound",
        "forget keep_limit"},
    {"Element by element",
        "add sub mul div idiv mod neg reciprocal",
        "pow square sqrt cbrt hypot",
        "abs sign signbit copysign nextafter",
        "maximum minimum clip",
        "floor ceil trunc round",
        "exp exp2 expm1",
        "log log2 log10 log1p logaddexp",
        "sin cos tan",
        "asin acos atan atan2",
        "sinh cosh tanh",
        "asinh acosh atanh",
        "erf erfc gamma lgamma",
        "map fromfn"},
    {"Comparing and masks",
        "eq ne lt le gt ge close",
        "land lor lxor lnot",
        "any all where",
        "isnan isinf isfinite"},
    {"Over everything, columns or rows",
        "sum prod mean var std",
        "min max argmin argmax",
        "cumsum cumprod"},
    {"Seeing matrices",
        "inspect heat hist spy plot",
        "heat watch blocks"},
    {"Files",
        "load save",
        "save_session load_session"},
    {"Time and the machine",
        "bench timing timed clock sync",
        "cost profile bench",
        "device to memory mem peak",
        "rate peak bench",
        "stats tracing profile",
        "how made_by transcript"},
    {"Batch experiments",
        "experiment pow2 bench"},
    {"The session",
        "help who view last settings",
        "default_dtype settings"},
}

-- see[name]: names of the groups it is in, in order, without itself.
function manual.index_chapters()
    local see = {}
    for _, chapter in ipairs(manual.chapters) do
        for i = 2, #chapter do
            for name in gmatch(chapter[i], "%S+") do
                see[name] = see[name] or {}
                for other in gmatch(chapter[i], "%S+") do
                    local list = see[name]
                    if other ~= name and not list[other] then
                        list[other] = true
                        list[#list + 1] = other
                    end
                end
            end
        end
    end
    return see
end
