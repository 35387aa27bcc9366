#!/usr/bin/perl
# Experiments whose points share a setup, as programs: workers that are killed
# or crash while a group is in flight lose what is in flight and nothing else.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Experiments qw(write_file read_file rows $lumat);
use Test::More;
use Time::HiRes qw(sleep time);

$ENV{LUMAT_LEASE} = 3;
my $kills = $ENV{LUMAT_TEST_KILLS} || ($ENV{LUMAT_SLOW} ? 40 : 8);

sub script
{
    my ($name, $body, $more, $count) = @_;
    $count //= 12;
    write_file("$name.lua", <<"END");
local sleep = require "lumat.journal".sleep
local e = experiment{name = "$name", order = {"n", "k"},
    axes = {n = experiment.range(1, $count), k = experiment.range(1, 6)},
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
    return scalar(() = read_file('setups') =~ /^$_[0] /mg);
}

sub done_once
{
    my ($run, $what, $count) = @_;
    my $rows = rows("runs/$run");
    is(scalar(keys %$rows), $count // 72, "$what: every point is done");
    is(scalar(grep { @$_ > 1 } values %$rows), 0, "$what: none twice");
    is_deeply([glob "runs/$run/claims/*"], [], "$what: no claim is left");
}

# What the script prints.
sub result
{
    my $text = '';
    for my $n (1 .. (shift // 12)) {
        $text .= "$n\t$_\tok\t" . ($n + $_ / 8) . "\tnil\n" for 1 .. 6;
    }
    return $text;
}
my $all = result();

# --- one setup a group ---------------------------------------------------------
script('calm', '', 'repeats = 3,');
is(output($lumat, 'calm.lua'), $all, 'points that share a setup');
is(setups('calm'), 12, 'have one');
script('shared', 'sleep(0.002)', 'repeats = 3,');
is(output($lumat, 'shared.lua', 4), $all, 'with workers too');
is(setups('shared'), 12, 'no two of them do a group');
done_once('shared', 'workers');

# --- kill -9 -------------------------------------------------------------------
# The processes at work, by how many claims they have: one for each row of the
# group that they are in the midst of, and one more.
sub workers
{
    my %claims;
    for my $file (glob 'runs/storm/claims/w-*') {
        my ($pid) = $file =~ /-(\d+)-\w+$/ or next;
        $claims{$pid} = ((stat $file)[3] // 1) - 1;
    }
    return \%claims;
}

my $count = $kills > 20 ? 72 : 24;
my $lengths = 'stop = function(s) return #s >= 1 + 2 * (s[1] * 8 % 6) end,';
script('storm', 'sleep(0.006)', $lengths, $count);
my ($killed, $holding, $midst, $text) = (0, 0, 0, '');
my $end = time + 60 + 3 * $kills;
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
        next if $killed >= $kills;
        my $claims = workers();
        my @pids = sort { $claims->{$b} <=> $claims->{$a} } keys %$claims;
        my $victim = $pids[$killed % 2 ? 0 : rand @pids] // next;
        next if $killed % 2 && $claims->{$victim} < 3 || !kill 'KILL', $victim;
        $killed++;
        $holding++ if $claims->{$victim} > 0;
        $midst++ if $claims->{$victim} > 2;
    }
    if ($? == 0) { $text = read_file('out'); last }
}
note("$holding of $killed had a claim, $midst were in the midst of a group");
cmp_ok($killed, '>=', $kills, "$killed workers were killed");
cmp_ok($midst, '>', $kills / 4, 'some of them in the midst of a group');
is($text, result($count), 'the table is that of an undisturbed run');
done_once('storm', 'storm', 6 * $count);

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
