#!/usr/bin/perl
# An experiment whose workers, and who started them, are killed at random
# moments: the table in the end is that of an undisturbed run, and no point was
# acknowledged twice. LUMAT_TEST_KILLS sets how often (10, or 100 where
# LUMAT_SLOW is set), LUMAT_TEST_WORKERS how many workers there are (4).
use strict;
use warnings;
$SIG{INT} = 'DEFAULT'; # a background job inherits it ignored
use FindBin;
use lib "$FindBin::Bin/../..";
use Lumat;
use Test::More;
use Time::HiRes qw(sleep time);

my $kills = $ENV{LUMAT_TEST_KILLS} || ($ENV{LUMAT_SLOW} ? 100 : 10);
my $workers = $ENV{LUMAT_TEST_WORKERS} || 4;
my $dir = new_folder('kills');
chdir $dir or die "$dir: $!\n";
delete @ENV{qw(LUMAT_WORKER OMP_NUM_THREADS COLUMNS)};
$ENV{LUMAT_LEASE} = 3;
srand($ENV{LUMAT_TEST_SEED} // 1);

my $pause = $kills > 20 ? 0.1 : 0.02;    # seconds of a point
open my $out, '>', 'sweep.lua' or die $!;
print $out <<"END";
local dir, workers, pause = ...
local sleep = require "lumat.journal".sleep
local e = experiment{name = "sweep", dir = dir,
    axes = {n = experiment.range(1, 100), kind = {"a", "b", "c", "d"}},
    repeats = 1, cost = function(p) return p.n end,
    measure = function(p)
        sleep(tonumber(os.getenv("PAUSE")) * (0.5 + p.n % 10 / 10))
        if p.n % 25 == 7 and p.kind == "b" then error("no good", 0) end
        return p.n * #p.kind + p.kind:byte()
    end}
e:run{workers = tonumber(workers), quiet = true}
for _, r in ipairs(e:results()) do
    print(r.p.n, r.p.kind, r.status, r.median, r.message)
end
END
close $out;

sub output
{
    open my $in, '-|', @_ or die $!;
    local $/;
    my $text = <$in>;
    close $in;
    return $text // '';
}

# The processes of this run that are there: pids of workers.
sub workers
{
    my @pids;
    for my $file (glob "$_[0]/claims/w-*") {
        open my $in, '<', $file or next;
        my (undef, undef, $pid) = split / /, <$in> // '';
        push @pids, $pid if $pid && kill 0, $pid;
    }
    return @pids;
}

# How often each point was acknowledged.
sub acknowledged
{
    my %count;
    for my $file (glob "$_[0]/j-*.jsonl") {
        open my $in, '<', $file or die $!;
        while (<$in>) {
            $count{$1}++ if /"key":"(\w+)".*"status":/;
        }
    }
    return \%count;
}

sub compare_runs
{
    my ($run, $what, $expected, $text) = @_;
    is_deeply([split /\n/, $text], [split /\n/, $expected],
              "$what: the table is that of an undisturbed run");
    my $count = acknowledged($run);
    is(scalar(keys %$count), 400, "$what: every point was acknowledged");
    is(scalar(grep { $_ > 1 } values %$count), 0, "$what: and none twice");
    is_deeply([glob "$run/claims/*"], [], "$what: no claim is left");
}

# Runs the command again and again while processes are killed; returns what
# the last one printed, and how many were killed.
sub disturbed
{
    my ($run, $how_many, $parent_share, @command) = @_;
    my ($killed, $runs, $text, $parents) = (0, 0, '', 0);
    my $end = time + 60 + 5 * $how_many;
    while (time < $end) {
        $runs++;
        my $pid = fork // die $!;
        if ($pid == 0) {
            open STDOUT, '>', "out" or die $!;
            open STDERR, '>', "err" or die $!;
            exec @command;
        }
        my $status;
        while (1) {
            my $found = waitpid $pid, 1;
            if ($found == $pid) { $status = $?; last }
            sleep 0.02 + rand 0.12;
            next if $killed >= $how_many || time > $end;
            my @pids = workers($run);
            my $parent = rand() < $parent_share;
            next if !@pids;
            my $victim = $parent ? $pid : $pids[rand @pids];
            $killed += kill 'KILL', $victim;
            $parents += $parent;
        }
        if ($status == 0) { $text = output('cat', 'out'); last }
    }
    note("$killed killed, $parents of them the parent, in $runs runs");
    return ($text, $killed);
}

$ENV{PAUSE} = 0;
my $expected = output($lumat, 'sweep.lua', 'calm', '');
like($expected, qr/^1\ta\tok\t98\tnil\n/, 'an undisturbed run');
is(scalar(() = $expected =~ /\n/g), 400, 'has all points');

$ENV{PAUSE} = $pause;
my ($text, $killed) = disturbed('storm', $kills, 0.15, $lumat, 'sweep.lua', 'storm', $workers);
cmp_ok($killed, '>=', $kills, "$killed processes were killed");
compare_runs('storm', 'workers', $expected, $text);

SKIP: {
    skip 'no mpirun here', 6 if system('mpirun --version >/dev/null 2>&1') != 0;
    @ENV{qw(OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM)} = (1, 1);
    my @mpirun = ('mpirun', '--oversubscribe', '-n', $workers, $lumat, 'sweep.lua');
    $ENV{PAUSE} = 0;
    is(output(@mpirun, 'mpi', ''), $expected, 'ranks print one table');
    $ENV{PAUSE} = $pause;
    my $few = $kills > 20 ? $kills / 4 : 3;
    ($text, $killed) = disturbed('mpi-storm', $few, 0, @mpirun, 'mpi-storm', '');
    cmp_ok($killed, '>=', $few, "$killed ranks were killed");
    compare_runs('mpi-storm', 'ranks', $expected, $text);
}
done_testing();
