-- What is in a folder, as a person reads it.
local checks = require "lumat.checks"
local layout = require "lumat.text_layout"
local listing = {}
local list = require "lumat.list"
local shown = checks.shown

row{
    name = "ls",
    takes = "[pattern: path]",
    gives = "table",
    group = "folders",
    help = "The names of what is in the folder where you are, or in another " ..
        "one, or of what a pattern such as \"data/*.csv\" fits: a list that " ..
        "shows itself, folders with a slash behind them. Also :ls.",
    example = "#ls(\"/no*where\")",
    result = "0",
}
function listing.ls(pattern)
    local names = list(pattern)
    return shown(names, #names > 0 and layout.list(names) or
        "no file" .. (pattern and " fits " .. pattern or ""))
end

return listing
