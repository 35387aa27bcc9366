-- What is said below a table of rows: of the peaks they are shares of, and of
-- the environments they are from where there are several.
local columns = require "lumat.columns"
local origins = require "lumat.origins"
local peaks = require "lumat.peaks"
local sources = require "lumat.sources"
local text_lines = require "lumat.lines"
local notes = {}
local ipairs = ipairs
local concat, format = table.concat, string.format

local function environment_lines(source, rows, lines)
    local several = origins.several(source, rows)
    if #several < 2 then return end
    for i, e in ipairs(several) do
        lines[#lines + 1] = format("%d point%s of environment %d%s", e.count,
            e.count == 1 and "" or "s", e.number, #e.differs > 0 and ": " ..
                concat(e.differs, "; ") or i > 1 and
                ": another commit of the working folder" or "")
    end
end

-- The lines, none of them with characters that a terminal acts on. has_shares:
-- the rows are shown with their shares of peaks.
function notes.lines(source, rows, has_shares)
    local good, lines = {}, {}
    for _, row in ipairs(rows) do
        if columns.is_good(row) then good[#good + 1] = row end
    end
    lines[1] = has_shares and peaks.said(good) or nil
    for _, line in ipairs(peaks.notes(good, function(row)
        return (columns.get(row, "share"))
    end, function(row)
        return sources.describe(source.axes, row.p)
    end)) do
        lines[#lines + 1] = line
    end
    environment_lines(source, rows, lines)
    for i, line in ipairs(lines) do lines[i] = text_lines.harmless(line) end
    return lines
end

return notes
