#!/usr/bin/perl
# Experiments as programs: many processes at one run directory, points that
# end their worker, full disks, Ctrl-C, what is printed where.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Experiments;
use Test::More;
use Time::HiRes qw(sleep time);

my $all = result();

# --- what is printed -----------------------------------------------------------
script('plain', '', '');
my ($code, $out, $err) = run_shell('$lumat plain.lua');
is($code, 0, 'a script ends well');
is($out, $all, 'its output is its own');
like($err, qr{^plain: 8 of 8 points done in 0:00  runs/plain\n$}, 'and one line tells');
($code, $out, $err) = run_shell('$lumat plain.lua --quiet');
is($err, '', '--quiet: nothing');
script('log', 'sleep(0.9)', '');
($code, $out, $err) = run_shell('$lumat log.lua');
like($err, qr{^log: \d/8  0:0\d  ETA 0:0\d  n=\d: \d s\nlog: 8 of 8 points done in 0:0[78]  runs/log\n$},
     'a line every few seconds in a log');

# --- many processes ------------------------------------------------------------
script('several', 'sleep(0.01)', 'workers = 3, quiet = true');
($code, $out, $err) = run_shell('$lumat several.lua');
is("$code$out$err", "0$all", 'workers print nothing, the script once');
done_once('runs/several', 8, 'workers');
is_deeply([glob 'runs/several/*.log'], [], 'no log is left');

# Each of several has its part of the threads, and other times than one alone.
SKIP: {
    skip 'one core', 5 if qx(nproc) < 2;
    my $cores = qx(nproc) + 0;
    script('shared', '', 'quiet = true, only = function(p) return p.n < 3 end');
    run_shell('$lumat shared.lua');
    write_file('shared.lua', read_file('shared.lua') =~ s/, only.*end}/}/r);
    my $each = int($cores / 2);
    ($code, $out, $err) = run_shell('$lumat shared.lua --workers 2');
    is($code, 1, 'times of other threads are not mixed');
    like($err, qr{run: 2 points in runs/shared were measured with $cores threads, this run has $each in each of 2 workers: such times cannot be compared\. without workers it goes on; run\{threads = $cores\} takes as many; run\{mix = true\}},
         'and the ways out are told');
    ($code, $out, $err) = run_shell("\$lumat shared.lua --workers 2 --threads=$cores");
    is("$code$out$err", "0$all", 'threads = makes them alike');
    ($code, $out, $err) = run_shell('$lumat shared.lua --threads=1');
    is("$code$out$err", "0$all", 'what is done is no matter');
    run_shell('rm -r runs/shared; $lumat shared.lua --threads=1');
    like(read_file('runs/shared/env-1.json'), qr/"threads":1}/, 'one worker has as many as are wanted');
}

script('race', '', 'quiet = true', '', 300);
($code, $out, $err) = run_shell('for i in 1 2 3 4 5 6 7 8; do $lumat race.lua >/dev/null || echo bad & done; wait');
is("$out$err", '', 'eight processes race');
done_once('runs/race', 300, 'race');
is_deeply([glob 'runs/race/claims/*'], [], 'no claim is left');
cmp_ok(scalar(() = glob 'runs/race/j-*'), '>', 1, 'several had a part');

script('join', 'sleep(0.1)', '');
($code, $out, $err) = run_shell('$lumat join.lua >first 2>/dev/null & sleep 0.3; $lumat join.lua; wait; cat first');
is($out, $all . $all, 'a second run joins the first');
like($err, qr/^join: 1 worker at work here already \(process \d+ on \S+\): the points are shared\n/m,
     'and says so');
done_once('runs/join', 8, 'joined');

script('anew', 'sleep(0.2)', 'resume = false, quiet = true');
($code, $out, $err) = run_shell('$lumat anew.lua & sleep 0.4; $lumat anew.lua; wait');
like($err, qr{runs/anew is being measured \(process \d+ on \S+\)}, 'nothing is done anew under way');
is($out, $all, 'the other run goes on');

# --- launchers -----------------------------------------------------------------
script('ranks', 'sleep(0.02)', 'retry_failed = true');
my $ranks = join ' ', map {
    "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=$_ SLURM_LOCALID=$_ "
        . '$lumat ranks.lua & '
} 0 .. 2;
($code, $out, $err) = run_shell("$ranks wait");
is($out, $all, 'the first rank alone prints');
# (which, where another was faster, begins with what that has done)
is(scalar(grep { !/ were done before this run/ } split /\n/, $err), 1, 'and shows progress') or diag($err);
done_once('runs/ranks', 8, 'ranks');

# --- points that end their worker ----------------------------------------------
script('crash', 'if p.n == 3 then os.execute("kill -SEGV $PPID") sleep(1) end', 'workers = 2, quiet = true');
($code, $out, $err) = run_shell('$lumat crash.lua');
my $crashed = $all =~ s/3\tok\tnil/3\tcrashed\tkilled its worker 2 times (segmentation fault)/r;
is("$code$out$err", "0$crashed", 'a point that two workers crash in is given up');
script('leave', 'if p.n == 3 then os.exit(0) end', 'workers = 2, quiet = true');
($code, $out, $err) = run_shell('$lumat leave.lua; $lumat leave.lua; $lumat leave.lua');
like($out, qr/3\tcrashed\tkilled its worker 2 times \(exit\)\n/, 'so is one that ends the program');
for my $exit (0, 3) {
    script("leave$exit", "if p.n == 3 then os.exit($exit) end", 'quiet = true', 'timeout = 9,');
    ($code, $out, $err) = run_shell("\$lumat leave$exit.lua");
    my $rest = $all =~ s/3\tok\tnil/3\tcrashed\tkilled its worker 2 times (exit)/r;
    is("$code$out$err", "0$rest", 'and another worker does the rest');
}
script('hang', 'if p.n == 3 then while true do end end', 'workers = 2, quiet = true', 'timeout = 0.5,');
($code, $out, $err) = run_shell('$lumat hang.lua');
my $late = $all =~ s/3\tok\tnil/3\ttimeout\ttook longer than 0.5 s; its worker was ended/r;
is("$code$out$err", "0$late", 'and one that takes too long');

# The limit holds without workers, too: one is started for it.
script('alone', 'if p.n == 3 then while true do end end', 'quiet = true', 'timeout = 0.5,');
($code, $out, $err) = run_shell('$lumat alone.lua');
is("$code$out$err", "0$late", 'also where no workers were asked for');
($code, $out, $err) = run_shell('rm -r runs/alone; $lumat - <alone.lua');
like($err, qr/run: a timeout ends the worker a point is in, and workers run the same script again, which has to be a file: lumat sweep.lua; without timeout it runs here/,
     'a script from a pipe has none');
($code, $out, $err) = run_shell('$lumat --safe alone.lua');
like($err, qr/run: a timeout ends the worker a point is in, and --safe starts no processes/, 'nor has --safe');

# A worker that stands still loses its claim when its lease is over.
script('stall', 'if p.n == 3 and not io.open("stalled") then io.open("stalled", "w"):close()'
    . ' os.execute("kill -STOP $PPID") end', 'quiet = true');
{
    local $ENV{LUMAT_LEASE} = 1;
    ($code, $out, $err) = run_shell('$lumat stall.lua >first & pid=$!; sleep 0.5; $lumat stall.lua; '
        . 'kill -CONT $pid; wait; cat first');
}
is($out, $all . $all, 'a worker that was stopped loses its point');
done_once('runs/stall', 8, 'stalled');

# --- full disks ----------------------------------------------------------------
script('full', '', 'quiet = true, order = "given"');
($code, $out, $err) = run_shell('ulimit -f 1; $lumat full.lua');
is($code, 1, 'a full disk is an error');
like($err, qr{cannot write in runs/full: [^;]+; [1-7] points? in its journals (is|are) safe},
     'it says that nothing is lost');
($code, $out, $err) = run_shell('$lumat full.lua');
is("$out$err", $all, 'and a rerun goes on');
done_once('runs/full', 8, 'full disk');

# --- Ctrl-C --------------------------------------------------------------------
# Runs the script until that is so, then stops it; how long that takes.
sub stop_script
{
    my ($name, $is_so) = @_;
    my $pid = fork // die $!;
    if ($pid == 0) {
        $SIG{INT} = 'DEFAULT';
        open STDOUT, '>', 'out';
        open STDERR, '>', 'err';
        exec $lumat, "$name.lua";
    }
    wait_until(\&$is_so);
    kill INT => $pid;
    my $start = time;
    waitpid $pid, 0;
    return time - $start;
}

for my $workers ('', 'workers = 2') {
    my $name = $workers ? 'stop_workers' : 'stop';
    script($name, 'sleep(0.3)', $workers);
    my $took = stop_script($name, sub { keys %{rows("runs/$name")} });
    is($? >> 8, 130, "$name: Ctrl-C ends the script");
    cmp_ok($took, '<', 2, 'soon');
    like(read_file('err'), qr/^lumat: .*interrupted/m, 'with a word');
    my $done = keys %{rows("runs/$name")};
    like(read_file('err'), qr{^$name: stopped; $done of 8 points done, kept in runs/$name; run again for the rest\n}m,
         'which says what is kept, and how to go on');
    is_deeply([glob "runs/$name/claims/*"], [], 'no claim and no worker is left');
    ($code, $out, $err) = run_shell("\$lumat $name.lua");
    is($out, $all, 'and a rerun goes on');
    done_once("runs/$name", 8, $name);
}

script('stop_passing', 'local f = io.open("began" .. p.n, "w") f:write(tostring(left.store.dir)) f:close() sleep(0.3)',
       'order = "given"', 'dir = false,');
write_file('stop_passing.lua', read_file('stop_passing.lua') =~ s/\ne:run/\nleft = e e:run/r);
stop_script('stop_passing', sub { -s 'began2' });
is($? >> 8, 130, 'Ctrl-C ends a run that keeps nothing');
like(read_file('err'), qr{^stop_passing: stopped; 1 of 8 points done \(dir = false keeps none of them\)\n}m, 'and says that');
is(read_file('began2'), 'nil', 'it has no folder');

# --- refusals ------------------------------------------------------------------
($code, $out, $err) = run_shell('rm -r runs/several; $lumat --safe several.lua');
is($code, 1, '--safe');
like($err, qr/several.lua:7: run: --safe starts no processes/, 'starts no processes');
($code, $out, $err) = run_shell('$lumat --safe plain.lua');
is("$code$out", "0$all", 'but runs and reads experiments');
($code, $out, $err) = run_shell('$lumat - <several.lua');
like($err, qr/workers run the same script again, which has to be a file/, 'nor does a script from a pipe');
($code, $out, $err) = run_shell('$lumat plain.lua --workers=0');
like($err, qr/workers is 0, expected/, 'options on the command line are checked');
($code, $out, $err) = run_shell('rm -r runs/plain; $lumat plain.lua --workers 2 --shard=1/2');
is(scalar(() = $out =~ /ok/g), 4, 'and obeyed');

script('edited', 'sleep(0.05)', 'workers = 2, quiet = true');
write_file('edited.lua', 'local f = io.open("edited.lua"); local t = f:read("a"); f:close() '
    . 'if not os.getenv("LUMAT_WORKER") then f = io.open("edited.lua", "w") '
    . 'f:write((t:gsub("return p.n", "return p.n + 1"))) f:close() end ' . read_file('edited.lua'));
run_shell('$lumat edited.lua; sed -i s/p.n.+.1/p.n/ edited.lua');
is(scalar(keys %{rows('runs/edited')}) % 8, 0, 'a script that changes while it runs is one or the other');

done_testing();
