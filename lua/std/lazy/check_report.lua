-- Every product checked as it is made.
local checks = require "lumat.checks"
local report = {}
local trace = require "lumat.trace"
local format = string.format

local function text_of(found)
    local state = found.on and "products are checked" or
        "products are not checked"
    if found.products == 0 then
        return state .. (found.on and "; none so far" or
            ": checking(true) checks each one")
    end
    return format("%s; %d so far, all right: at most %.2g of the bound%s%s",
        state, found.products, found.worst,
        found.kernel and ", by " .. found.kernel or "", -- none when all are exact
        found.partly > 0 and format("; %d in part, as they have NaN or Inf",
            found.partly) or "")
end

local function failed_text(found)
    return format("%s; %d so far, at worst %s times the bound, by %s: WRONG",
        found.on and "products are checked" or "products are not checked",
        found.products, checks.figure("%.3g", found.worst), found.kernel)
end

row{
    name = "checking",
    takes = "[on: boolean]",
    gives = "table",
    group = "products",
    help = "With true, every product is checked as it is made: C x against A " ..
        "(B x) in f64 for a random vector x of signs (Freivalds), which " ..
        "costs a few passes over A, B and C. Beyond the kernel's bound it " ..
        "is an error. Fields: on, products, partly (rows with NaN or Inf " ..
        "are left out), worst (of the bound), kernel. Also :check.",
    example = "checking(false).on",
    result = "false",
}
function report.checking(on)
    local found = {}
    if on ~= nil then trace.checking(on) end
    found.products, found.partly, found.worst, found.on, found.kernel =
        trace.checking()
    return checks.shown(found, found.worst <= 1 and text_of(found) or
        failed_text(found))
end

return report
