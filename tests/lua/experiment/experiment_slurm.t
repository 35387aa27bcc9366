#!/usr/bin/perl
# Workers as an array job of Slurm: the script that is submitted, a job that
# waits, fails, is cancelled or forgotten, Ctrl-C, a second start. By commands
# that do what Slurm's do, as far as it is needed; and, where Slurm is installed,
# by a controller and one node that are started for the test.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Experiments;
use Cwd qw(getcwd);
use Test::More;
use Time::HiRes qw(sleep);
$SIG{INT} = 'DEFAULT'; # a background job inherits it ignored

my $here = getcwd();
mkdir $_ for 'bin', 'queue';

sub command
{
    my ($name, $text) = @_;
    write_file("bin/$name", "#!/bin/bash\nqueue=$here/queue\n$text");
    chmod 0755, "bin/$name";
}

# Tasks have a file each, with what squeue says of it. With the file `wait` there
# they are not begun, and each look may begin some.
command('sbatch', <<'END');
[ "$1" = --parsable ] || { echo "sbatch: error: not as expected: $*" >&2; exit 1; }
script=$2
value() { sed -n "s/^#SBATCH --$1=//p" "$script" | tr -d '"'; }
[ "$(value partition)" != none ] || { echo "sbatch: error: invalid partition specified: none
sbatch: error: Batch job submission failed: Invalid partition name specified" >&2; exit 1; }
[ -z "$(value time | tr -d 0-9:)" ] || exit 1
id=$(($(ls $queue | grep -c ^job) + 40)); mkdir $queue/job$id
cp "$script" $queue/job$id/script
value output >$queue/job$id/output
for task in $(seq $(value array | tr - ' ')); do
    echo "$task|PENDING|Priority|" >$queue/job$id/task$task
done
[ ! -e $queue/slow ] || sleep 1
echo "sbatch: a word of warning" >&2
[ -e $queue/wait ] || $queue/../bin/begin $id
echo "$id;"
END
command('begin', <<'END');
for file in $queue/job$1/task*; do
    task=${file##*task}
    grep -q PENDING $file || continue
    echo "$task|RUNNING|None|a" >$file
    log=$(sed "s/%a/$task/; s/%%/%/g" $queue/job$1/output)
    (SLURM_ARRAY_TASK_ID=$task setsid sh $queue/job$1/script >"$log" 2>&1 </dev/null & echo $! >$queue/job$1/pid$task
     if wait $!; then state='COMPLETED|None'; else state='FAILED|NonZeroExitCode'; fi
     grep -q RUNNING $file && echo "$task|$state|a" >$file) >/dev/null 2>&1 </dev/null &
done
END
command('squeue', <<'END');
[ "$1 $2 $3 $4" = '-h -r -t all' ] || exit 1
while [ $# -gt 0 ]; do [ "$1" != -j ] || id=$2; shift; done
[ ! -e $queue/silent ] || { echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1; }
[ -d $queue/job$id ] && [ ! -e $queue/forgotten ] || { echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1; }
cat $queue/job$id/task*
END
command('scancel', <<'END');
[ "$1" != --state=PENDING ] || { only=PENDING; shift; }
echo "scancel $only $1" >>$queue/cancelled
for file in $queue/job$1/task*; do
    task=${file##*task}
    grep -q "${only:-.}" $file || continue
    grep -q COMPLETED $file && continue
    echo "$task|CANCELLED|None|" >$file # first, so that its end is not taken for a failure
    [ ! -e $queue/job$1/pid$task ] || kill -TERM -- -$(cat $queue/job$1/pid$task)
done
END
$ENV{PATH} = "$here/bin:$ENV{PATH}";

my $srun = 'launcher = "srun", workers = 3';
my $all = result(30);

# Starts the script of that name in the background: its pid.
sub start
{
    my $name = shift;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    open STDOUT, '>', "$name.out" or die $!;
    open STDERR, '>', "$name.err" or die $!;
    exec $lumat, "$name.lua";
}

sub says { my ($name, $what) = @_; return wait_until { read_file("$name.err") =~ $what } }

# --- what Slurm's own and those that stand for it do ------------------------------
sub check_all
{
    my ($kind) = @_;

    # A job that does it all, and of which a worker is killed at a point.
    script("$kind-a", 'sleep(0.02) if p.n == 7 and not io.open("once") then io.open("once", "w"):close() os.execute("kill -9 $PPID") end',
           "$srun, slurm = {time = \"0:10:00\", comment = \"a b\"}", '', 30);
    unlink 'once';
    my ($code, $out, $err) = run_shell("\$lumat $kind-a.lua");
    is("$code$out", "0$all", "$kind: the points are done") or diag($err);
    like($err, qr/^$kind-a: job \d+ of Slurm was submitted, 3 workers\n(.*\n)*$kind-a: 30 of 30 points done in/, "$kind: it says so");
    done_once("runs/$kind-a", 30, $kind);
    ok(wait_until { !glob "runs/$kind-a/claims/*" }, "$kind: no claim is left");
    ok(wait_until { !glob "runs/$kind-a/*.log" }, "$kind: no log of what went well");
    like(read_file("runs/$kind-a/slurm.sh"), qr/^#!.*\n(#SBATCH .*\n)*#SBATCH --comment="a b"\n#SBATCH --time=0:10:00\n/, "$kind: options are lines of the script");
    ($code, $out, $err) = run_shell("\$lumat $kind-a.lua");
    is($out, $all, "$kind: again");
    unlike($err, qr/submitted/, "$kind: nothing is to do then");

    # Ctrl-C leaves the job; the same again looks at it, also where it is done by then.
    script("$kind-b", 'sleep(0.2)', $srun, '', 30);
    my $pid = start("$kind-b");
    ok(wait_until { keys %{rows("runs/$kind-b")} > 2 }, "$kind: it has begun");
    kill 'INT', $pid;
    waitpid $pid, 0;
    like(read_file("$kind-b.err"), qr/$kind-b: \d+ of 30 points done, kept in runs\/$kind-b; job (\d+) goes on: run again to look at it, scancel \1 to end it/,
         "$kind: Ctrl-C says how to look again");
    my $before = keys %{rows("runs/$kind-b")};
    ok(wait_until { keys %{rows("runs/$kind-b")} > $before + 1 }, "$kind: it goes on");
    ($code, $out, $err) = run_shell("\$lumat $kind-b.lua");
    is($out, $all, "$kind: the whole table") or diag($err);
    like($err, qr/$kind-b: job \d+ is at it/, "$kind: no second job");
    done_once("runs/$kind-b", 30, "$kind, again");

    # Workers that end by an error.
    script("$kind-c", '', $srun, 'setup = function() if os.getenv("LUMAT_WORKER") then os.exit(3) end end,', 8);
    ($code, $out, $err) = run_shell("\$lumat $kind-c.lua");
    is("$code$out", '1', "$kind: workers that end");
    like($err, qr/$kind-c: worker \d of job (\d+) ended, FAILED \(NonZeroExitCode\)/, "$kind: is told when it happens");
    like($err, qr/\d of 8 points are not done: worker \d of job/, "$kind: fails the run");

    # One that is cancelled, in the midst.
    script("$kind-d", 'sleep(0.3)', $srun, '', 30);
    $pid = start("$kind-d");
    ok(wait_until { keys %{rows("runs/$kind-d")} > 2 }, "$kind: another has begun");
    my ($id) = read_file("$kind-d.err") =~ /job (\d+)/;
    system "scancel $id";
    waitpid $pid, 0;
    like(read_file("$kind-d.err"), qr/worker \d of job $id ended, CANCELLED.*\n(.*\n)*.*points are not done: worker \d of job $id ended, CANCELLED/, "$kind: a job that is cancelled");

    # What sbatch refuses.
    script("$kind-e", '', "$srun, slurm = {partition = \"none\"}");
    ($code, $out, $err) = run_shell("\$lumat $kind-e.lua");
    like($err, qr/run: sbatch: .*Invalid partition name specified\n/, "$kind: sbatch says what is wrong");
}
check_all('fake');

# --- what is seldom ------------------------------------------------------------------
{
    # It waits: the reason is told; what is not needed any more is cancelled.
    write_file('queue/wait', '');
    script('waits', 'sleep(0.01)', $srun, '', 30);
    my $pid = start('waits');
    ok(says('waits', qr/waits: job \d+ waits for 0:0\d: Priority\n/), 'a job that waits: the reason');
    my ($id) = read_file('waits.err') =~ /job (\d+)/;
    unlink 'queue/wait';
    write_file("queue/job$id/task3", "3|PENDING|Resources|\n");
    my ($code, $out, $err) = run_shell("mv queue/job$id/task3 t; begin $id; mv t queue/job$id/task3");
    waitpid $pid, 0;
    is(read_file('waits.out'), $all, 'two of three do it all');
    like(read_file('queue/cancelled'), qr/^scancel PENDING $id$/m, 'the third is not needed');

    # The controller does not answer for a while; then it has forgotten the job.
    script('silent', 'sleep(0.1) if not io.open("go") then while not io.open("go") do sleep(0.05) end end', $srun, '', 30);
    $pid = start('silent');
    ok(says('silent', qr/submitted/), 'a job');
    write_file('queue/silent', '');
    ok(says('silent', qr/squeue does not say how job \d+ is: slurm_load_jobs error: Unable to contact/), 'no controller');
    write_file('go', '');
    waitpid $pid, 0;
    is(read_file('silent.out'), $all, 'the job is done without it');
    unlink 'queue/silent';

    script('forgotten', 'sleep(60)', $srun, '', 8);
    $pid = start('forgotten');
    ok(says('forgotten', qr/submitted/), 'another job');
    write_file('queue/forgotten', '');
    waitpid $pid, 0;
    ($id) = read_file('forgotten.err') =~ /job (\d+)/;
    like(read_file('forgotten.err'), qr/8 of 8 points are not done: job $id has ended/, 'a job that is not known any more');
    unlink 'queue/forgotten';
    system "scancel $id";

    # Ctrl-C while sbatch is at it: its job is known.
    write_file('queue/slow', '');
    script('slow', 'sleep(0.1)', $srun, '', 30);
    $pid = start('slow');
    ok(wait_until { -s 'runs/slow/slurm.sh' }, 'sbatch is at it');
    sleep 0.3;
    kill 'INT', $pid;
    waitpid $pid, 0;
    unlink 'queue/slow';
    like(read_file('slow.err'), qr/slow: \d+ of 30 points done.*job \d+ goes on/, 'Ctrl-C then leaves no unknown job');
    ($code, $out, $err) = run_shell('$lumat slow.lua --workers=2');
    is($out, $all, 'it is looked at');
    like($err, qr/is at it/, 'no other is submitted');

    # Other code, or anew, beside a job that is at it.
    script('other', 'sleep(0.5)', $srun, '', 8);
    $pid = start('other');
    ok(wait_until { keys %{rows('runs/other')} > 0 }, 'a job is at it');
    kill 'INT', $pid;
    waitpid $pid, 0;
    ($id) = read_file('other.err') =~ /job (\d+)/;
    script('other', 'sleep(0.5)', "$srun, resume = false", '', 8);
    ($code, $out, $err) = run_shell('$lumat other.lua');
    like($err, qr/job $id is at runs\/other: run\{resume = false\} would take its points away; scancel $id ends it/, 'nothing anew beside it');
    script('other', 'sleep(0.4)', "$srun, stale = \"keep\"", '', 8);
    ($code, $out, $err) = run_shell('$lumat other.lua');
    like($err, qr/job $id is at runs\/other, with the code as it was: scancel $id ends it/, 'nor other code');
    system "scancel $id";
}

# --- what is refused -------------------------------------------------------------------
for (['launcher = "srun"', qr/launcher = "srun" takes workers = so many/],
     ['launcher = "mpirun", workers = 2', qr/launcher is "mpirun".*"srun"/],
     ['slurm = {time = 1}', qr/slurm = \{…\} is for launcher = "srun"/],
     ["$srun, devices = {\"cpu\"}", qr/Slurm gives workers their devices/],
     ["$srun, slurm = {array = \"1-9\"}", qr/slurm\.array is settled by lumat/],
     ["$srun, slurm = {\"--time=3\"}", qr/slurm has 1, expected long options of sbatch/],
     ["$srun, slurm = {comment = \"a\\nb\"}", qr/slurm\.comment is "a\\.b", expected a number, true or text without quotes/s]) {
    my ($options, $expected) = @$_;
    script('refused', '', $options);
    my ($code, $out, $err) = run_shell('$lumat refused.lua');
    like($err, $expected, $options =~ s/\n/ /gr);
}
{
    script('refused', '', $srun);
    my ($code, $out, $err) = run_shell('mkdir -p none; ln -sf $(command -v sh) $(command -v env) none/; PATH=$PWD/none $lumat refused.lua');
    like($err, qr/there is no sbatch here: without launcher the workers run on this machine/, 'no Slurm');
    ($code, $out, $err) = run_shell('$lumat --safe refused.lua');
    isnt($code, 0, '--safe starts no job');
    like($err, qr/safe/, 'and says so');
}

# --- Slurm itself -----------------------------------------------------------------------
# One controller and one node, by hand, as far as this machine lets them.
my @daemons;
END { kill 'TERM', reverse @daemons if @daemons; waitpid $_, 0 for @daemons }

sub daemon
{
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>', "$_[0].log" or die $!;
        open STDERR, '>&', \*STDOUT or die $!;
        exec @_;
        exit 127;
    }
    push @daemons, $pid;
}

sub start_slurm
{
    my $host = `uname -n` =~ s/[.\n].*//sr;
    my $port = 20000 + $$ % 20000;
    mkdir $_ for 'state', 'spool';
    chmod 0755, '.';
    write_file('munge.key', join '', map { chr int rand 256 } 1 .. 256);
    chmod 0600, 'munge.key';
    write_file('slurm.conf', <<"END");
ClusterName=one
SlurmctldHost=$host
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$here/munge.sock
SlurmctldPort=$port
SlurmdPort=@{[$port + 1]}
SlurmctldPidFile=$here/ctld.pid
SlurmdPidFile=$here/slurmd.pid
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
NodeName=$host CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
    $ENV{SLURM_CONF} = "$here/slurm.conf";
    $ENV{PATH} .= ':/usr/sbin:/sbin';
    daemon('munged', '-F', '-f', "--key-file=$here/munge.key", "--socket=$here/munge.sock", "--pid-file=$here/munged.pid",
           "--log-file=$here/munged.log", "--seed-file=$here/munged.seed");
    return 0 if !wait_until { -S 'munge.sock' };
    daemon('slurmctld', '-D', '-i');
    sleep 1;
    daemon('slurmd', '-D');
    return wait_until { `sinfo -h -o %T 2>/dev/null` =~ /idle/ };
}

SKIP: {
    $ENV{PATH} =~ s/^\Q$here\E\/bin://;
    skip 'no Slurm is installed here', 1 if grep { system("PATH=\$PATH:/usr/sbin:/sbin; command -v $_ >/dev/null 2>&1") != 0 } qw(munged slurmctld slurmd sbatch);
    skip 'Slurm is started by root alone', 1 if $> != 0;
    skip 'Slurm does not start here', 1 if !start_slurm();
    check_all('slurm');
}
done_testing();
