#!/usr/bin/perl
# One run directory on several machines: answers of NFS that are old or lost,
# clocks that disagree and jump, machines that sleep.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Experiments;
use Test::More;
use Time::HiRes qw(sleep time);

my $all = result(100);
# Points that share a setup, and are done one after the other.
my $group = 'setup = function() return {} end, repeats = nil, '
    . 'stop = function(s) return #s >= 1 + s[1] % 4 end,';
# A library that goes before the C library goes before a sanitizer's, too.
$ENV{ASAN_OPTIONS} = join ':', grep { $_ } $ENV{ASAN_OPTIONS}, 'verify_asan_link_order=0';

# --- NFS -----------------------------------------------------------------------
SKIP: {
    my $made = system("cc -shared -fPIC -O1 -o old.so $source/old_answers.c -ldl 2>cc.err") == 0;
    skip 'no compiler here', 13 if !$made;
    script('old', 'sleep(0.01)', 'quiet = true', '', 100);
    my $four = 'for i in 1 2 3 4; do LD_PRELOAD=$PWD/old.so $lumat old.lua >$i.out || echo bad & done; wait; cat ?.out';
    my ($code, $out, $err) = run_shell($four);
    is("$out$err", $all x 4, 'old and lost answers: each one has the whole table');
    done_once('runs/old', 100, 'old and lost answers');
    is_deeply([glob 'runs/old/claims/*'], [], 'no claim is left');
    cmp_ok(scalar(() = glob 'runs/old/j-*'), '>', 1, 'several had a part');

    # One of them is killed again and again, at whatever it does.
    for my $name ('killed', 'killed-groups') {
        my ($sleep, $tenths, $more) = $name eq 'killed' ? (0.01, 0, '') : (0.005, 1, $group);
        script($name, "sleep($sleep)", 'quiet = true', $more, 100);
        ($code, $out, $err) = run_shell(
            "name=$name tenths=$tenths; " . 'for i in 1 2; do LD_PRELOAD=$PWD/old.so $lumat $name.lua >$i.out & done; '
                . 'for k in 1 2 3 4 5 6 7 8 9 10; do LD_PRELOAD=$PWD/old.so $lumat $name.lua >/dev/null 2>&1 & '
                . 'sleep 0.$tenths$((RANDOM % 9 + 1)); kill -9 $!; wait $! 2>/dev/null; done; wait; cat 1.out 2.out; '
                . '$lumat $name.lua >/dev/null'); # tidies what one left that was killed after both ended
        is($out, $all x 2, "$name processes: the whole table");
        done_once("runs/$name", 100, "$name processes");
        is_deeply([glob "runs/$name/claims/*"], [], "$name: no claim is left");
    }
}

# --- a worker that was killed before it said who it is ---------------------------
{
    script('begun', '', 'quiet = true', '', 100);
    my ($code, $out, $err) = run_shell('$lumat begun.lua; true & dead=$!; wait $dead; host=$(uname -n | cut -c1-40); '
        . 'for pid in $dead $$; do : >runs/begun/claims/w-$host-$pid-0123456789ab; done; echo $$ >alive; $lumat begun.lua');
    is("$out$err", $all x 2, 'files that say nothing are in nobody\'s way');
    my $pid = read_file('alive') =~ s/\n//r;
    my @left = glob 'runs/begun/claims/*';
    is(scalar @left, 1, 'that of a process that is gone is taken away');
    like($left[0] // '', qr/-$pid-0123456789ab$/, 'that of one that is there is not');
}

# --- clocks ----------------------------------------------------------------------
SKIP: {
    my ($faketime) = glob '/usr/lib/*/faketime/libfaketimeMT.so.1';
    skip 'no libfaketime here', 7 if !$faketime;
    local $ENV{LUMAT_LEASE} = 2;
    local @ENV{qw(FAKETIME_DONT_FAKE_MONOTONIC FAKETIME_NO_CACHE)} = (1, 1);
    script('clocks', 'sleep(0.02)', 'quiet = true', '', 100);
    write_file('jumps', '+0');
    my ($code, $out, $err) = run_shell(
        "for t in -400d +4000d; do LD_PRELOAD=$faketime FAKETIME=\$t \$lumat clocks.lua >out\$t & done; "
            . "LD_PRELOAD=$faketime FAKETIME_TIMESTAMP_FILE=\$PWD/jumps \$lumat clocks.lua >out3 & "
            . '(for t in -1h +30d -900d +1d +0 -1d; do sleep 0.1; echo $t >jumps; done) & '
            . '$lumat clocks.lua >out4; wait; cat out-400d out+4000d out3 out4');
    is("$out$err", $all x 4, 'clocks that disagree and jump: one table');
    done_once('runs/clocks', 100, 'clocks');
    my %years = map { /"time":(\d+)/ ? (int($1 / 31557600) => 1) : () } map { @$_ } values %{rows('runs/clocks')};
    cmp_ok(scalar(keys %years), '>', 2, 'their years differ');
    script('budget', 'sleep(0.02)', 'quiet = true, budget = 100', '', 100);
    write_file('jumps', '+0');
    ($code, $out, $err) = run_shell("(sleep 0.7; echo +30d >jumps) & LD_PRELOAD=$faketime "
            . 'FAKETIME_TIMESTAMP_FILE=$PWD/jumps $lumat budget.lua');
    is("$out$err", $all, 'a jump uses no budget up');
    done_once('runs/budget', 100, 'budget');
}

# --- sleep ---------------------------------------------------------------------
# Workers stand still for longer than their leases; their points are taken over,
# and they write none of them late.
{
    local $ENV{LUMAT_LEASE} = 0.4;
    mkdir 'still';
    script('sleepy', 'sleep(0.01) if p.n % 10 == 3 and not io.open("still/" .. p.n) then '
        . 'io.open("still/" .. p.n, "w"):close() os.execute("kill -STOP $PPID") end', 'quiet = true', '', 100);
    my ($code, $out, $err) = run_shell(
        'for i in 1 2 3; do $lumat sleepy.lua >$i.out & pids="$pids $!"; done; '
            . 'while sleep 0.9; kill -CONT $pids; do :; done 2>/dev/null & for p in $pids; do wait $p; done; kill $! 2>/dev/null; rm -f 4.out; cat ?.out');
    is($out, $all x 3, 'processes that stand still: one table');
    done_once('runs/sleepy', 100, 'processes that stand still');
    is(scalar(() = glob 'still/*'), 10, 'ten times');
    is_deeply([glob 'runs/sleepy/claims/*'], [], 'no claim is left');

    script('late', 'if p.n == 3 and not io.open("stalled") then io.open("stalled", "w"):close()'
        . ' os.execute("kill -STOP $PPID") end', '');
    ($code, $out, $err) = run_shell('$lumat late.lua >first 2>words & pid=$!; for i in $(seq 400); do [ -e stalled ] && break; sleep 0.05; done; '
        . '$lumat late.lua; kill -CONT $pid; wait; cat first words');
    like($out, qr/this process was stopped for so long that another one took n=3 over; its result is dropped/,
         'a late worker says so');
    done_once('runs/late', 8, 'late');
}

# --- sleep, of groups ------------------------------------------------------------
my $stall = 'io.open(name, "w"):close() os.execute("kill -STOP $PPID")';
{
    local $ENV{LUMAT_LEASE} = 0.4;
    mkdir 'groups';
    script('groups', <<"END", 'quiet = true', $group, 100);
        sleep(0.005)
        s.calls = (s.calls or 0) + 1
        local name = "groups/" .. p.n
        if p.n % 12 == 3 and s.calls == 4 and not io.open(name) then $stall end
END
    my ($code, $out, $err) = run_shell(
        'for i in 1 2 3; do $lumat groups.lua >$i.out & pids="$pids $!"; done; '
            . 'while sleep 0.9; kill -CONT $pids; do :; done 2>/dev/null & for p in $pids; do wait $p; done; kill $! 2>/dev/null; cat 1.out 2.out 3.out');
    is($out, $all x 3, 'groups whose workers stand still: one table');
    done_once('runs/groups', 100, 'groups whose workers stand still');
    is(scalar(() = glob 'groups/*'), 9, 'nine times');
    is_deeply([glob 'runs/groups/claims/*'], [], 'no claim is left');
}

sub start
{
    my ($name, $pause) = @_;
    local $ENV{PAUSE} = $pause;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    open STDOUT, '>', "$name.out" or die $!;
    open STDERR, '>', "$name.err" or die $!;
    exec $lumat, 'midst.lua';
}

# One wakes when another one is in the midst of the group that it had: it writes
# no row more, and does not take the group from that one for others, such as
# wait for it or come then.
sub check_midst
{
    script('midst', <<"END", '', $group =~ s/% 4/% 8/r, 16);
        local name = "midst"
        s.calls = (s.calls or 0) + 1
        if s.calls == 5 and not io.open(name) then $stall end
        sleep(tonumber(os.getenv("PAUSE")))
END
    local $ENV{LUMAT_LEASE} = 0.4;
    my $first = start('first', 0.001);
    ok(wait_until { -e 'midst' }, 'a worker stands still');
    my $before = keys %{rows('runs/midst')};
    my @others = map { start($_, 0.03) } 'second', 'third';
    ok(wait_until { keys %{rows('runs/midst')} > $before + 1 }, 'another one does its points');
    kill 'CONT', $first;
    ok(wait_until { read_file('first.err') =~ /took/ }, 'the first one is told so');
    push @others, start('fourth', 0.001);
    waitpid $_, 0 for $first, @others;
    cmp_ok($before, '>', 0, 'it had done some');
    is(read_file("$_.out"), result(16), "the $_ one has the whole table") for qw(first second third fourth);
    like(read_file('first.err'), qr/^midst: .* another one took n=\d+ over; its result is dropped\nmidst: 16 of 16/m,
         'it says so once, and measures none of the rest');
    done_once('runs/midst', 16, 'midst');
    is_deeply([glob 'runs/midst/claims/*'], [], 'no claim is left');
}
check_midst();
done_testing();
