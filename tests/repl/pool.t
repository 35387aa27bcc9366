#!/usr/bin/perl
# A pool at the prompt: Ctrl-C stops what its processes do and keeps them; they
# end with the prompt, however that ends; --safe has none. Where the program was
# built without MPI there is nothing to test.
use strict;
use warnings;
$SIG{INT} = 'DEFAULT'; # a background job inherits it ignored
use utf8;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Shell;
use Test::More;
use Time::HiRes qw(sleep);

my ($worker) = $lumat =~ m{^(.*/)[^/]*$};
plan skip_all => 'built without MPI and ScaLAPACK' if !-x "${worker}lumat-worker";

my $dir = new_folder('pool');
use_shells($dir);
open_shell('a');
start('a');

sub enter
{
    my ($entry) = @_;
    type('a', '<C-l>');
    shows('a', qr/^lumat>$/);
    type('a', $entry, '<Enter>');
}

# The processes of pools that this prompt started.
sub workers
{
    my ($lumat) = find_lumat('a');
    my @list = map { children($_->[0], 'lumat-worker') } children($lumat, 'mpirun');
    return map { $_->[0] } @list;
}

enter('P = pool{ranks = 3}');
shows('a', qr/P = pool of 3 processes on a grid of 1x3/);
my @pids = workers();
is(scalar @pids, 3, 'three processes');

enter('D = drand(1200, {dtype = "f64"})');
shows('a', qr/D = f64 1200x1200  pool 1x3  11\.0 MiB/);
enter(':pool');
shows('a', qr/process 3 at \(1, 3\): .* in 1 part/);

# A product of some seconds.
enter('for i = 1, 1000 do E = D * D end');
ok(comes_true(sub { my $busy = `ps -o time= -p $pids[0]`; $busy !~ /00:00:00/ }),
    'they compute');
type('a', '<C-c>');
shows('a', qr/interrupted/);
sleep 3; # in which they look several times for a command
is_deeply([workers()], \@pids, 'Ctrl-C keeps the processes');
enter('drand(4):sum() > 0');
shows('a', qr/^true$/m);

# QR and eigh stop between panels as well.
for my $what ('Q = D:qr()', 'w = (D + D.T):eigh()') {
    enter("for i = 1, 1000 do $what end");
    sleep 1;
    type('a', '<C-c>');
    shows('a', qr/interrupted/);
    is_deeply([workers()], \@pids, "Ctrl-C in $what keeps the processes");
}

# svd has no steps: that is said, and it ends first.
enter('S = drand(400, {dtype = "f64"}) for i = 1, 1000 do U = S:svd() end');
sleep 1;
type('a', '<C-c>');
shows('a', qr/interrupted/);
is_deeply([workers()], \@pids, 'Ctrl-C in svd keeps the processes');

# Or the pool is ended by another Ctrl-C, and started anew.
enter('U = D:svd()');
sleep 1;
type('a', '<C-c>');
shows('a', qr/svd stops at its next step, or goes on to its end; Ctrl-C again ends the/);
type('a', '<C-c>');
shows('a', qr/interrupted/);
ok(comes_true(sub { !grep { kill 0, $_ } @pids }), 'another Ctrl-C ends them');
enter('D:sum()');
shows('a', qr/lost, as the pool was ended by Ctrl-C: pool\.restart\(\)/);
enter('pool.restart()');
shows('a', qr/^pool of 3 processes/m);
@pids = workers();
is(scalar @pids, 3, 'three others');
enter('drand(4):sum() > 0');
shows('a', qr/^true$/m);

# A view fetches what it shows: the whole has 1.5 GiB.
enter('V = dzeros(20000, {dtype = "f32"}) V[{20000, 20000}] = 7');
shows('a', qr/^lumat>$/m);
type('a', ':view V', '<Enter>');
shows('a', qr/^V  f32 20000x20000  pool 1x3/m);
type('a', 'g', '20000, 20000', '<Enter>');
shows('a', qr/^ *20000 .* 7$/m);
type('a', '/');
shows('a', qr/D:argmax\(\)/);
type('a', 't');
shows('a', qr/20000/);
type('a', 'q');
shows('a', qr/^lumat>$/m);
my ($prompt) = find_lumat('a');
open my $status, '<', "/proc/$prompt/status" or die "no status: $!";
my ($most) = join('', <$status>) =~ /VmHWM:\s+(\d+)/;
cmp_ok($most, '<', 300_000, 'what is not shown stays where it is');

# The prompt is killed.
signal_lumat('KILL', 'a');
ok(comes_true(sub { !grep { kill 0, $_ } @pids }), 'they end with the prompt');

# Nothing is left of one: its socket, log and bell had a folder.
mkdir "$dir/run";
$ENV{XDG_RUNTIME_DIR} = "$dir/run";
my $there = `$lumat -e 'pool{ranks = 2} drand(3):sum() for f in io.popen("ls $dir/run/*"):lines() do print(f) end pool.close()' 2>&1`;
is($there, "log\n", 'a folder with a log; socket and bell have no names any more');
is_deeply([glob "$dir/run/*"], [], 'which goes with the pool');

my $said = `$lumat --safe -e 'pool{ranks = 2}' 2>&1`;
like($said, qr/pool/, '--safe has no pools');
isnt($?, 0, 'and says so');

done_testing();
