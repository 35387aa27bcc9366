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
# A library that goes before the C library goes before a sanitizer's, too.
$ENV{ASAN_OPTIONS} = join ':', grep { $_ } $ENV{ASAN_OPTIONS}, 'verify_asan_link_order=0';

# --- NFS -----------------------------------------------------------------------
SKIP: {
    my $made = system("cc -shared -fPIC -O1 -o old.so $source/old_answers.c -ldl 2>cc.err") == 0;
    skip 'no compiler here', 9 if !$made;
    script('old', 'sleep(0.01)', 'quiet = true', '', 100);
    my $four = 'for i in 1 2 3 4; do LD_PRELOAD=$PWD/old.so $lumat old.lua >$i.out || echo bad & done; wait; cat ?.out';
    my ($code, $out, $err) = run($four);
    is("$out$err", $all x 4, 'old and lost answers: each one has the whole table');
    done_once('runs/old', 100, 'old and lost answers');
    is_deeply([glob 'runs/old/claims/*'], [], 'no claim is left');
    cmp_ok(scalar(() = glob 'runs/old/j-*'), '>', 1, 'several had a part');

    # One of them is killed again and again, at whatever it does.
    script('killed', 'sleep(0.01)', 'quiet = true', '', 100);
    ($code, $out, $err) = run(
        'for i in 1 2; do LD_PRELOAD=$PWD/old.so $lumat killed.lua >$i.out & done; '
            . 'for k in 1 2 3 4 5 6 7 8 9 10; do LD_PRELOAD=$PWD/old.so $lumat killed.lua >/dev/null 2>&1 & '
            . 'sleep 0.0$((RANDOM % 9 + 1)); kill -9 $!; wait $! 2>/dev/null; done; wait; cat 1.out 2.out');
    is($out, $all x 2, 'and killed processes: the whole table');
    done_once('runs/killed', 100, 'and killed processes');
    is_deeply([glob 'runs/killed/claims/*'], [], 'no claim is left');
}

# --- clocks ----------------------------------------------------------------------
SKIP: {
    my ($faketime) = glob '/usr/lib/*/faketime/libfaketimeMT.so.1';
    skip 'no libfaketime here', 7 if !$faketime;
    local $ENV{LUMAT_LEASE} = 2;
    local @ENV{qw(FAKETIME_DONT_FAKE_MONOTONIC FAKETIME_NO_CACHE)} = (1, 1);
    script('clocks', 'sleep(0.02)', 'quiet = true', '', 100);
    write_file('jumps', '+0');
    my ($code, $out, $err) = run(
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
    ($code, $out, $err) = run("(sleep 0.7; echo +30d >jumps) & LD_PRELOAD=$faketime "
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
    my ($code, $out, $err) = run(
        'for i in 1 2 3; do $lumat sleepy.lua >$i.out & pids="$pids $!"; done; '
            . 'while sleep 0.9; kill -CONT $pids; do :; done 2>/dev/null & for p in $pids; do wait $p; done; kill $! 2>/dev/null; rm -f 4.out; cat ?.out');
    is($out, $all x 3, 'processes that stand still: one table');
    done_once('runs/sleepy', 100, 'processes that stand still');
    is(scalar(() = glob 'still/*'), 10, 'ten times');
    is_deeply([glob 'runs/sleepy/claims/*'], [], 'no claim is left');

    script('late', 'if p.n == 3 and not io.open("stalled") then io.open("stalled", "w"):close()'
        . ' os.execute("kill -STOP $PPID") end', '');
    ($code, $out, $err) = run('$lumat late.lua >first 2>words & pid=$!; for i in $(seq 400); do [ -e stalled ] && break; sleep 0.05; done; '
        . '$lumat late.lua; kill -CONT $pid; wait; cat first words');
    like($out, qr/this process was stopped for so long that another one took n=3 over; its result is dropped/,
         'a late worker says so');
    done_once('runs/late', 8, 'late');
}
done_testing();
