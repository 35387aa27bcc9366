#!/usr/bin/perl
# The library's functions, methods and operators with arguments of any kind:
# what any_arguments.lua thinks of. Each call gives something or raises an error
# of its own, within five seconds or until Ctrl-C.
#
#   LUMAT_CALLS=100000 tests/lua/any_arguments.t    so many calls (2000)
#   LUMAT_SEED=7                                    the seed (1)
use strict;
use warnings;
$SIG{INT} = 'DEFAULT';
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use POSIX qw(WNOHANG);
use Test::More;
use Time::HiRes qw(sleep time);

my $calls = $ENV{LUMAT_CALLS} || 2000;
my $seed = $ENV{LUMAT_SEED} || 1;
my $dir = new_folder('arguments');
chdir $dir or die "$dir: $!\n";
delete $ENV{DISPLAY};
$ENV{HOME} = $dir;
$ENV{ASAN_OPTIONS} = 'allocator_may_return_null=1:max_allocation_size_mb=3000:detect_leaks=0';

# Runs it, and stops what takes too long. Returns how it ended, and whether it
# had to be stopped.
sub run
{
    my @command = @_;
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', 'out';
        open STDERR, '>', 'err';
        exec @command;
    }
    my ($stopped, $size, $since) = (0, -1, time);
    while (waitpid($pid, WNOHANG) == 0) {
        my $now = (-s 'report') // 0;
        ($size, $since) = ($now, time) if $now != $size;
        kill $stopped++ ? 'KILL' : 'INT', $pid if time > $since + ($stopped ? 7 : 5);
        sleep 0.02;
    }
    return ($?, $stopped);
}

my ($status, $stopped) = run($lumat, '--device', 'cpu', "$FindBin::Bin/any_arguments.lua", $seed, $calls);
my @report = split /^(?=\d|done)/m, read_file('report');
my $last = $report[-1] // '';
if ($stopped == 1) {
    is($status >> 8, 130, 'what takes long is stopped by Ctrl-C') or diag($last);
} else {
    is($status, 0, "$calls calls") or diag("$last\n" . substr read_file('err'), -3000);
    is($last, "done\n", 'to the last one');
}

# What the library is to say in words of its own. (The operators of plain values
# are Lua's.)
my @internal = grep {
    /^  ! .*(?:lua\/std|lua\/batch|assertion failed|stack overflow|[(]a nil value[)]|\bupvalue '|field '\?')/m
        || (/^  ! (?!.*any_arguments)(?!attempt to yield)attempt to /m && !/^\d+ (?:i?pairs|format)/)
} @report;
is(scalar @internal, 0, 'no message is about its inside') or diag(@internal[0 .. ($#internal > 5 ? 5 : $#internal)]);
done_testing();
