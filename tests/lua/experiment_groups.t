#!/usr/bin/perl
# Experiments whose points share a setup, as programs: workers that are killed
# or crash while a group is in flight lose what is in flight and nothing else.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(sleep time);

my $lumat = abs_path($ENV{LUMAT} || 'build/lumat');
my $dir = tempdir('lumat-groups-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chdir $dir or die "$dir: $!\n";
delete @ENV{qw(LUMAT_WORKER OMP_NUM_THREADS COLUMNS SLURM_PROCID)};
$ENV{LUMAT_LEASE} = 3;

sub script
{
    my ($name, $body, $more) = @_;
    open my $out, '>', "$name.lua" or die $!;
    print $out <<"END";
local sleep = require "lumat.journal".sleep
local e = experiment{name = "$name", order = {"n", "k"},
    axes = {n = experiment.range(1, 12), k = experiment.range(1, 6)},
    setup = function(p)
        local f = io.open("setups", "a")
        f:write("$name ", p.n, "\\n")
        f:close()
        return {n = p.n}
    end,
    $more measure = function(p, s)
        $body
        return s.n + p.k / 8
    end}
e:run{workers = tonumber((...)), quiet = true}
for _, r in ipairs(e:results()) do
    print(r.p.n, r.p.k, r.status, r.median, r.message)
end
END
}

sub output
{
    open my $in, '-|', @_ or die $!;
    local $/;
    my $text = <$in>;
    close $in;
    return $text // '';
}

sub setups
{
    my $text = output('cat', 'setups');
    return scalar(() = $text =~ /^$_[0] /mg);
}

sub done_once
{
    my ($run, $what) = @_;
    my %count;
    for my $file (glob "runs/$run/j-*.jsonl") {
        open my $in, '<', $file or die $!;
        while (<$in>) {
            $count{$1}++ if /"key":"(\w+)".*"status":/;
        }
    }
    is(scalar(keys %count), 72, "$what: every point is done");
    is(scalar(grep { $_ > 1 } values %count), 0, "$what: none twice");
    is_deeply([glob "runs/$run/claims/*"], [], "$what: no claim is left");
}

my $all = '';
for my $n (1 .. 12) {
    for my $k (1 .. 6) {
        $all .= "$n\t$k\tok\t" . ($n + $k / 8) . "\tnil\n";
    }
}

# --- one setup a group ---------------------------------------------------------
script('calm', '', 'repeats = 3,');
is(output($lumat, 'calm.lua'), $all, 'points that share a setup');
is(setups('calm'), 12, 'have one');
script('shared', 'sleep(0.002)', 'repeats = 3,');
is(output($lumat, 'shared.lua', 4), $all, 'with workers too');
is(setups('shared'), 12, 'no two of them do a group');
done_once('shared', 'workers');

# --- kill -9 -------------------------------------------------------------------
script('storm', 'sleep(0.004)', 'repeats = 3,');
my ($killed, $text) = (0, '');
my $end = time + 90;
while (time < $end) {
    my $pid = fork // die $!;
    if ($pid == 0) {
        open STDOUT, '>', 'out' or die $!;
        exec $lumat, 'storm.lua', 3;
    }
    my $found = 0;
    until ($found == $pid) {
        sleep 0.03 + rand 0.05;
        $found = waitpid $pid, 1;
        my @pids = map { /-(\d+)-\d+$/ } glob 'runs/storm/claims/w-*';
        $killed += kill 'KILL', $pids[rand @pids] if @pids && $killed < 8;
    }
    if ($? == 0) { $text = output('cat', 'out'); last }
}
cmp_ok($killed, '>=', 8, "$killed workers were killed");
is($text, $all, 'the table is that of an undisturbed run');
done_once('storm', 'storm');

# --- points that end their worker ----------------------------------------------
sub without
{
    my ($word) = @_;
    return $all =~ s/^5\t3\tok\t\S+\tnil/5\t3\t$word/mr;
}
script('crash', 'if p.n == 5 and p.k == 3 then os.execute("kill -SEGV $PPID") sleep(1) end',
    'repeats = 2,');
is(output($lumat, 'crash.lua', 2), without("crashed\tnil\tkilled its worker 2 times (segmentation fault)"),
    'of a group the point that crashes is found');
done_once('crash', 'crash');
script('hang', 'if p.n == 5 and p.k == 3 then while true do end end', 'repeats = 2, timeout = 0.3,');
is(output($lumat, 'hang.lua', 2), without("timeout\tnil\ttook longer than 0.3 s; its worker was ended"),
    'and the one that takes too long');
done_once('hang', 'timeout');
script('slow', 'sleep(0.05)', 'repeats = 2, timeout = 0.6,');
is(output($lumat, 'slow.lua', 2), $all, 'the time of others does not count');
is(setups('slow'), 12, 'nobody was ended');
done_testing();
