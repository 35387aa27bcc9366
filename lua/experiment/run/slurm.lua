-- An experiment's workers as tasks of an array job of Slurm: a script in the run
-- directory, which sbatch takes; each task is a worker as run{workers=} starts
-- them, and takes its points from the directory, which all hosts must see. The
-- job is noted there, so that another start of the experiment looks at the job
-- that is at it in place of submitting one more, and it needs nobody who looks.
local library = ...
local checks = require "lumat.checks"
local journal = require "lumat.journal"
local progress = require "lumat.progress"
local texts = require "lumat.texts"
local workers = require "lumat.workers"
local bar = progress.bar
local fail, brief, plural = checks.fail, checks.brief, checks.plural
local io, ipairs, next, pairs, setmetatable, tostring, type = io, ipairs, next,
    pairs, setmetatable, tostring, type
local concat, sort, unpack = table.concat, table.sort, table.unpack
local find, format, gmatch, gsub, match = string.find, string.format,
    string.gmatch, string.gsub, string.match
local larger, to_integer = math.max, math.tointeger
local remove, time, tmpname = os.remove, os.time, os.tmpname
local slurm = {}

-- Seconds: between two looks at the queue; for a command of Slurm to answer.
local LOOK, ANSWER = 2, 60

-- --- options -----------------------------------------------------------------

-- Those of sbatch that are settled here.
local settled = {array = true, output = true, error = true, wrap = true,
    parsable = true, wait = true, test_only = true, chdir = true}

-- The line of the job's script for an option: as {gpus_per_task = 1}.
local function option_line(name, value)
    if type(name) ~= "string" or not find(name, "^%a[%w_-]+$") then
        fail("run", "slurm has %s, expected long options of sbatch, such as " ..
            "{time = \"1:00:00\", partition = \"gpu\"}", brief(name))
    elseif settled[gsub(name, "-", "_")] then
        fail("run", "slurm.%s is settled by lumat: it submits an array, and " ..
            "what workers say is in the run directory", name)
    end
    local flag = "#SBATCH --" .. gsub(name, "_", "-")
    if value == true then return flag end
    local text = type(value) == "number" and
        tostring(to_integer(value) or value) or value
    if type(text) ~= "string" or find(text, "[%c\"\\]") then
        fail("run", "slurm.%s is %s, expected a number, true or text without " ..
            "quotes", name, brief(value))
    end
    return format(find(text, "^[%w.:,/_=-]*$") and "%s=%s" or "%s=\"%s\"", flag,
        text)
end

-- The lines for all of them, in order.
local function option_lines(options)
    local lines = {}
    for name, value in pairs(options or {}) do
        if value ~= false then lines[#lines + 1] = option_line(name, value) end
    end
    sort(lines)
    return lines
end

-- Raises where the options of a run do not go together.
function slurm.check(o)
    if o.slurm and not o.launcher then
        fail("run", "slurm = {…} is for launcher = \"srun\"")
    elseif o.launcher and not o.workers then
        fail("run", "launcher = \"srun\" takes workers = so many")
    elseif o.launcher and o.devices then
        fail("run", "Slurm gives workers their devices: slurm = {gres = " ..
            "\"gpu:1\"} in place of devices")
    end
    option_lines(o.slurm)
end

-- --- the script --------------------------------------------------------------

local function quoted(text)
    return "'" .. gsub(text, "'", "'\\''") .. "'"
end

-- A task starts its worker, and another one where it was killed, as by a point
-- of which it died; not where Slurm ended it, nor for ever: five that wrote no
-- row are enough. What it said goes where all went well.
local loop = [[
[ -e "$dir/experiment.json" ] || {
    echo "lumat: $(uname -n) does not see $dir: a folder that all hosts share is needed"
    exit 1
}
deaths=0
while :; do
    %s
    code=$?
    [ $code -gt 128 ] && [ $code -ne 130 ] && [ $code -ne 143 ] || break
    now=$(cat "$dir"/j-*.jsonl 2>/dev/null | wc -c)
    [ "$now" = "$before" ] && deaths=$((deaths + 1)) || deaths=1
    before=$now
    [ $deaths -lt 5 ] || break
done
[ $code -ne 0 ] || rm -f "$dir/worker-$SLURM_ARRAY_TASK_ID.log"
exit $code
]]

-- The text of the job's script.
local function script_of(run, count)
    local o, dir = run.options, journal.real_path(run.store.dir)
    if find(dir, "[%c\"\\]") then
        fail("run", "%s cannot be told to sbatch: dir = names a folder " ..
            "without quotes", dir)
    end
    local given, lines = o.slurm or {}, {"#!/bin/sh"}
    local function add(...) lines[#lines + 1] = format(...) end
    add("#SBATCH --array=1-%d", count)
    add("#SBATCH --output=\"%s/worker-%%a.log\"", gsub(dir, "%%", "%%%%"))
    if not (given.job_name or given["job-name"]) then
        add("#SBATCH --job-name=%s", run.name)
    end
    if o.threads and not (given.cpus_per_task or given["cpus-per-task"]) then
        add("#SBATCH --cpus-per-task=%d", o.threads)
    end
    for _, line in ipairs(option_lines(o.slurm)) do add("%s", line) end
    local path, words = workers.command()
    words[1] = path
    for i, word in ipairs(words) do words[i] = quoted(word) end
    add("dir=%s", quoted(dir))
    add("threads=%s", o.threads or "${SLURM_CPUS_PER_TASK:-1}")
    add("export LUMAT_WORKER=\"$dir\" LUMAT_WORKER_LEFT=%s",
        o.budget and format("%.3f", o.budget) or "")
    add("export OMP_NUM_THREADS=$threads OPENBLAS_NUM_THREADS=$threads")
    return concat(lines, "\n") .. "\n" .. format(loop, concat(words, " "))
end

-- --- Slurm's commands --------------------------------------------------------
-- They run beside this process, in a group of their own, so that a controller
-- that does not answer stops nothing here, nor Ctrl-C one that is at it.

local command = {}
command.__index = command

local function begin(name, ...)
    local c = setmetatable({log = tmpname(), crew = journal.crew(),
        began = library.clock()}, command)
    c.crew:start("/usr/bin/env", {"env", name, ...}, {}, c.log)
    return c
end

-- Nobody waits for it any more.
function command:close()
    self.crew:close()
    remove(self.log)
end

-- Its code and what it said, once it has ended; 127: there is no such command.
function command:ended()
    if self.code then return self.code, self.text end
    local pid, code = self.crew:ended()
    if not pid and library.clock() - self.began < ANSWER then return nil end
    local text = gsub(journal.read_file(self.log) or "", "%s+$", "")
    self.code = pid and code or -1
    self.text = pid and text or format("no answer for %d s", ANSWER)
    self:close()
    return self.code, self.text
end

function command:wait()
    while true do
        local code, text = self:ended()
        if code then return code, text end
        journal.sleep(0.01)
    end
end

-- The last line, which says why.
local function reason(text)
    return texts.visible(match(text, "([^\n]*)$"))
end

-- --- the queue ---------------------------------------------------------------

local over = {BOOT_FAIL = true, CANCELLED = true, COMPLETED = true,
    DEADLINE = true, FAILED = true, NODE_FAIL = true, OUT_OF_MEMORY = true,
    PREEMPTED = true, REVOKED = true, TIMEOUT = true}

local function ask(job)
    local words = {"-h", "-r", "-t", "all", "-o", "%K|%T|%r|%N", "-j", job.id}
    if job.cluster then
        words[#words + 1], words[#words + 2] = "-M", job.cluster
    end
    return begin("squeue", unpack(words))
end

-- What squeue says of a job: {[task] = {state, reason, host}}, none of them
-- where Slurm has forgotten the job; nil and why where it does not say.
local function read_queue(code, text)
    if code ~= 0 then
        if find(text, "Invalid job id", 1, true) then return {} end
        return nil, code == 127 and "there is no squeue here" or reason(text)
    end
    local tasks = {}
    for number, state, why, host in gmatch(text, "(%d+)|([%u_]+)|([^|\n]*)|([^\n]*)") do
        tasks[to_integer(number)] = {state = state, reason = why, host = host}
    end
    return tasks
end

local function is_active(tasks)
    for _, task in next, tasks do
        if not over[task.state] then return true end
    end
    return false
end

-- --- the job -----------------------------------------------------------------

-- The job that is at this run directory, as noted there, or nil.
function slurm.find(run)
    local last = run.store.job
    if not last then return nil end
    local tasks, why = read_queue(ask(last):wait())
    if not tasks then
        fail("run", "job %s may be at %s, and squeue does not say: %s", last.id,
            run.store.dir, why)
    end
    if not is_active(tasks) then return nil end
    if last.code ~= run.code.hash then
        fail("run", "job %s is at %s, with the code as it was: scancel %s ends " ..
            "it", last.id, run.store.dir, last.id)
    end
    return {id = last.id, cluster = last.cluster, told = {}}
end

-- Gives the job to the directory for those who come.
local function note(run, job)
    local host, pid = journal.identity()
    local last = run.store.job
    local record = {note = "slurm", id = job.id, cluster = job.cluster,
        code = run.code.hash, number = last and last.number + 1 or 1}
    run.store:begin(journal.unique() .. "-notes", {note = "notes", time = time(),
        host = host, pid = pid})
    local store <close> = run.store
    run.store:append(record)
    run.store:take_in(record)
end

-- What sbatch answered.
local function take_answer(run, count, code, text)
    local id, cluster = match(text, "^(%d+);?(%S*)$")
    if not id then -- a word of warning goes before
        id, cluster = match(text, "\n(%d+);?(%S*)$")
    end
    if code == 127 then
        fail("run", "there is no sbatch here: without launcher the workers " ..
            "run on this machine")
    elseif code ~= 0 or not id then
        fail("run", "sbatch: %s", reason(text))
    end
    run.job = {id = id, cluster = cluster ~= "" and cluster or nil, told = {}}
    run.bar:say(format("%s: job %s of Slurm was submitted, %s", run.name, id,
        plural(count, "worker")))
    note(run, run.job)
end

local function submit(run, count)
    local path = run.store.dir .. "/slurm.sh"
    local file, why = io.open(path, "w")
    if not file then run.store:cannot_write(why) end
    file:write(script_of(run, count))
    file:close()
    run.submitting = begin("sbatch", "--parsable", path)
    run.submitting.count = count
    take_answer(run, count, run.submitting:wait())
    run.submitting = nil
end

-- --- watching ----------------------------------------------------------------

-- What a task that ended without its work done says.
local function problem_of(run, job, number, task)
    local why = task.reason ~= "None" and task.reason ~= "" and
        format(" (%s)", task.reason) or ""
    local said = task.state == "FAILED" and
        ": " .. workers.last_words(run, number) or ""
    return format("worker %d of job %s ended, %s%s%s", number, job.id,
        task.state, why, said)
end

-- Why tasks wait, told when that changes, and ever more rarely.
local function tell_waiting(run, job, count, why)
    local now = library.clock()
    if count == 0 or job.running > 0 then
        job.waits = nil
        return
    end
    local w = job.waits
    if not w then
        job.waits = {since = now, due = now + 5}
        return
    end
    if now < w.due and (why == w.why or not w.why) then return end
    w.why, w.due = why, now + larger(60, 2 * (now - w.since))
    run.bar:say(format("%s: job %s waits for %s: %s", run.name, job.id,
        bar.clock_text(now - w.since), why))
end

local function take_tasks(run, job, tasks)
    local waiting, why = 0, nil
    job.running, job.waiting, job.is_over = 0, 0, not is_active(tasks)
    for number, task in pairs(tasks) do
        if task.state == "RUNNING" then
            job.running = job.running + 1
        elseif not over[task.state] then
            waiting, why = waiting + 1, task.reason
        elseif task.state ~= "COMPLETED" and not job.told[number] then
            job.told[number] = true
            job.problem = problem_of(run, job, number, task)
            run.bar:say(run.name .. ": " .. job.problem)
        end
    end
    job.waiting = waiting
    tell_waiting(run, job, waiting, why)
end

-- Asks how the job is, every now and then.
local function look(run, job)
    local now = library.clock()
    if not job.asking then
        if now >= (job.next_look or 0) then job.asking = ask(job) end
        return
    end
    local code, text = job.asking:ended()
    if not code then return end
    job.asking, job.next_look = nil, now + LOOK
    local tasks, why = read_queue(code, text)
    if tasks then
        job.silent = nil
        take_tasks(run, job, tasks)
    elseif job.silent ~= why then -- the job goes on without its controller
        job.silent = why
        run.bar:say(format("%s: squeue does not say how job %s is: %s", run.name,
            job.id, why))
    end
end

-- Ctrl-C: the job goes on.
function slurm.tell_stop(run)
    if run.submitting then
        take_answer(run, run.submitting.count, run.submitting:wait())
    end
    if not run.job then return end -- nothing was submitted
    if run.job.asking then run.job.asking:close() end
    run.store:refresh(true)
    local done = progress.count(run)
    run.bar:say_stopped(format("%s: %d of %s done, kept in %s; job %s goes " ..
        "on: run again to look at it, scancel %s to end it", run.name, done,
        plural(#run.points, "point"), run.store.dir, run.job.id, run.job.id))
end

-- What has not begun is not needed any more.
local function cancel_waiting(job)
    if job.waiting == 0 then return end
    local words = {"--state=PENDING", job.id}
    if job.cluster then words[3], words[4] = "-M", job.cluster end
    begin("scancel", unpack(words)):wait()
end

-- Submits the job, unless it is there, and waits until its workers have done
-- what is to do; whether the budget was used up first.
function slurm.supervise(run, count)
    if not run.job then submit(run, count) else
        run.bar:say(format("%s: job %s is at it", run.name, run.job.id))
    end
    local job, all = run.job, #run.points
    job.running, job.waiting = 0, 0
    local due = 0
    while progress.count(run) < all and not job.is_over do
        local now = library.clock()
        look(run, job)
        run.store:refresh(now >= due)
        if now >= due then due = now + LOOK end
        progress.show(run, larger(1, job.running))
        progress.tell(run)
        journal.sleep(0.1)
    end
    if job.asking then job.asking:close() end
    run.store:refresh(true)
    progress.tell(run)
    local done = progress.count(run)
    if done == all then
        cancel_waiting(job)
    elseif job.problem or not run.options.budget then
        fail("run", "%d of %d points are not done: %s", all - done, all,
            job.problem or format("job %s has ended", job.id))
    end
    return done < all
end

return slurm
