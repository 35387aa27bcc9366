#!/usr/bin/perl
# An allocation fails in one process of a pool while all do something together:
# all hear of it and go on. Where it is one inside of ScaLAPACK, which ends all
# then, the prompt says so within seconds and starts another pool.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..", $FindBin::Bin;
use Faults;
use File::Basename qw(dirname);
use Lumat;
use Test::More;

my $shim = dirname($lumat) . '/../tests/faults/fail_alloc.so';
plan skip_all => 'a sanitizer has allocations of its own' if is_sanitized();
plan skip_all => "no $shim" unless -f $shim;

begin_faults('pool_allocations', 60);
my $most = $ENV{SECONDS} ? 100 : 3;
my $file = "$ENV{HOME}/fails";
for my $launcher (-x dirname($lumat) . '/lumat-worker' ? 'mpirun' : (), 'local') {
    my %faults = (LD_PRELOAD => $shim, FAIL_FILE => $file, FAIL_RANK => 2, FAIL_LEAST => 1024);
    my @run = ($lumat, '--no-init', "$FindBin::Bin/without_memory_in_one.lua", $launcher, $most, $file);
    my ($how, $out, $err) = outcome_of(\%faults, @run);
    is($how, 'exit 0', "$launcher: it comes to its end") or diag($out, $err);
    unlike($out, qr/BAD/, "$launcher: each is one error, and goes after it") or diag($out);
    my ($kept, $lost, $slowest) = (0, 0, 0);
    while ($out =~ /^\w+\t(\d+)\t(\d+)\t([\d.]+)$/mg) {
        ($kept, $lost) = ($kept + $1, $lost + $2);
        $slowest = $3 if $3 > $slowest;
    }
    cmp_ok($kept, '>', 15, "$launcher: all heard of $kept, and the pool was kept");
    is($lost, 0, 'local: no pool is lost') if $launcher eq 'local';
    cmp_ok($slowest, '<', 8, "$launcher: none of $lost lost pools was waited for");

    # no memory for what is told, which fits into what was read of the link
    @faults{'FAIL_LEAST', 'FAIL_TIMES'} = (800, 2);
    ($how, $out, $err) = outcome_of(\%faults, $lumat, '--no-init', '-e', <<"END");
pool{ranks = 4, launcher = "$launcher"}
local module = require "lumat.pool"
local file = assert(io.open("$file", "w"))
file:write "1 1000000"
file:close()
print(pcall(module.tell, module.running "told", "told", "ping", ("x"):rep(900)))
print(os.remove "$file" == nil and "it failed")
pool.restart()
print(drand(9):sum() > 0)
END
    is($how, 'exit 0', "$launcher: a message without memory is not waited for");
    like($out, qr/^false\t.*pool\.restart\(\).*\nit failed\ntrue$/m, "$launcher: it is one error") or diag($out, $err);
}
done_testing();
