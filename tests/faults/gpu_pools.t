#!/usr/bin/perl
# Pools of processes that each have a GPU, in a backend that is the CPU's under
# CUDA's name: where parts lie, what is exchanged, and who fails.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..", $FindBin::Bin;
use Faults;
use File::Basename qw(dirname);
use Lumat;
use Test::More;

my $fake = dirname($lumat) . '/../tests/faults/liblumat-cuda.so';
plan skip_all => "no $fake" unless -f $fake;

begin_faults('gpu_pools', 60);
delete $ENV{LUMAT_NO_CUDA};
$ENV{CUDA_VISIBLE_DEVICES} = '0,1,2,3';
$ENV{LUMAT_FAKE_DEVICES} = 4;
mkdir 'bin';
system 'cp', $lumat, $fake, 'bin/';
symlink dirname($lumat) . '/../lib', 'lib';
my $own = "$ENV{HOME}/bin/lumat";
my $tests = "$FindBin::Bin/..";

my ($how, $out, $err);
# GPUs, columns of what a product is cut into, libraries or none, whose process fails,
# and how many tests have to run
my @runs = (['test_pool', 4, '', 'none', '', 40], ['test_pool', 2, '', 'none', '', 40],
    ['test_pool', 4, 5, 'none', '', 40], ['test_pool_files', 4, '', 'none', '', 10],
    ['test_pool_indices', 4, '', 'none', '', 10], ['test_pool_repeats', 4, '', 'none', '', 10],
    ['test_pool_libraries', 4, '', '', '', 10], ['test_pool_libraries', 2, '', '', '', 10],
    ['test_pool_libraries', 2, '', 'none', '', 2], ['test_pool_libraries', 2, '', '', 1, 2]);
# a build that is slow has the others without GPUs
@runs = grep { $_->[1] == 2 || $_->[2] } @runs if $ENV{LUMAT_TEST_EVERY};
for (@runs) {
    my ($test, $gpus, $panel, $libraries, $fails, $least) = @$_;
    ($how, $out, $err) = outcome_of({LUMAT => $own, LUMAT_POOL_TEST => $test, LUMAT_PANEL => $panel,
            LUMAT_FAKE_LIBRARIES => $libraries, LUMAT_FAKE_LIBRARY_FAILS => $fails,
            LUMAT_FAKE_DEVICES => $gpus, CUDA_VISIBLE_DEVICES => join(',', 0 .. $gpus - 1)},
        "$tests/run", "$tests/lua/pool/test_gpu_pool.lua");
    is($how, 'exit 0', "$test on $gpus GPUs");
    my $count = () = $out =~ /^ok +\d+\t(?!# SKIP)/mg;
    cmp_ok($count, '>=', $least, "$count tests");
    diag($out, $err) if $how ne 'exit 0';
}

my @run = ($own, '--no-init', '-e');
($how, $out, $err) = outcome_of({}, @run, 'pool{device = "gpu", ranks = 5}');
like($err, qr/ranks is 5, and there are 4 GPUs: one process each/, 'as many processes as GPUs');
($how, $out, $err) = outcome_of({}, @run, 'pool{device = "gpu", launcher = "mpirun"}');
like($err, qr/are started by launcher = "local", not "mpirun"/, 'mpirun has the CPU');
($how, $out, $err) = outcome_of({LUMAT_FAKE_DEVICES => 2}, @run, 'pool{device = "gpu", ranks = 4}');
like($err, qr/pool: .*cuda:[23]/, 'a process that sees no GPU says so');

# Factors in blocks of whole panels stay where the matrix lies: less goes over links.
($how, $out, $err) = outcome_of({LUMAT_PANEL => 5}, @run, <<'END');
pool{device = "gpu", ranks = 2, grid = {1, 2}, block = 5}
local module = require "lumat.pool"
local p = module.running "test"
local function traffic_of(block)
    local D = drandn(80, {seed = 1, block = block})
    module.tell(p, "test", "traffic")
    D:lu()
    local sum = 0
    for _, sent in ipairs(module.tell(p, "test", "traffic")) do
        for _, bytes in ipairs(sent) do sum = sum + bytes end
    end
    return sum
end
-- blocks of one panel never move: those of two go over links no more
local one, two = traffic_of(5), traffic_of(10)
print(one > 0 and two <= one + 80 * 80)
END
like($out, qr/^true$/m, 'factors that stay where they are') or diag($out, $err);

# Whether a matrix has room is asked of what is free without what is out of use.
($how, $out, $err) = outcome_of({LUMAT_FAKE_MEMORY => 1 << 30}, @run, <<'END');
pool{device = "gpu"}
local module = require "lumat.pool"
local p = module.running "test"
local function free() return module.tell(p, "test", "host")[1].free end
local before = free()
local D = dzeros(4000, {dtype = "f64"})
local held = free()
D = nil
module.collect(p)
print(before - held, free() == before)
END
like($out, qr/^33554432\ttrue$/m, 'what was freed is free') or diag($out, $err);
($how, $out, $err) = outcome_of({LUMAT_NO_CUDA => 1}, @run, 'pool{device = "gpu"}');
like($err, qr/pool: .*LUMAT_NO_CUDA/, 'no GPU is one sentence');
done_testing();
