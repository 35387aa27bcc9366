#!/usr/bin/perl
# What a GPU, or several together, compute of the host's matrices, in tiles of
# several sizes (tiled.lua, together.lua): with the CPU's backend under CUDA's
# name, where there is no GPU.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../..";
use File::Basename qw(dirname);
use Lumat;
use Test::More;
use Time::HiRes qw(sleep time);

my $fake = dirname($lumat) . '/../tests/faults/liblumat-cuda.so';
plan skip_all => "no $fake" unless -f $fake;

my $folder = new_folder('tiles');
system('cp', $lumat, $fake, $folder) == 0 or die "cp: $!\n";
symlink dirname($lumat) . '/../lib', "$folder/lib";
delete $ENV{LUMAT_NO_CUDA};
for my $bytes (1000, 4096, 65536, 0) {
    local $ENV{LUMAT_TILE} = $bytes;
    is(`$folder/lumat --no-init --device cpu $FindBin::Bin/tiled.lua 2>&1`, "same\n", $bytes ? "tiles of $bytes bytes" : 'tiles as they are');
}
for my $fusion ('on', 'off') {
    local $ENV{LUMAT_FAKE_MEMORY} = 4 << 20;
    my $out = `$folder/lumat --no-init -e 'settings{fusion = "$fusion"}' $FindBin::Bin/overflow.lua 2>&1`;
    my @told = $out =~ /warning: .*overflow.lua:\d+: memory: the result, f32 500x500 of .*, does not fit cuda:0, where .* are free/g;
    is(scalar @told, 1, "a result that does not fit is told of once, fusion $fusion");
    like($out, qr{^same\n}m, '  and goes on as an operand');
    unlike($out, qr{WRONG|^lumat: (?!warning)}m, '  without an error') or diag $out;
}

# --- several GPUs ----------------------------------------------------------------

$ENV{LUMAT_FAKE_DEVICES} = 3;
my @run = ("$folder/lumat", qw(--no-init --device cpu));
for my $bytes (1000, 65536, 0) {
    local $ENV{LUMAT_TILE} = $bytes;
    is(`@run $FindBin::Bin/tiled.lua 3 2>&1`, "same\n", ($bytes ? "tiles of $bytes bytes" : 'tiles as they are') . ' by three');
}
for my $bytes (1000, 4096) {
    local @ENV{qw(LUMAT_TILE LUMAT_FAULT)} = ($bytes, 'off');
    is(`@run $FindBin::Bin/together.lua 2>&1`, "same\n", "three together, tiles of $bytes bytes");
}
my $code = 'A = ones(300, 300) print(pcall(matmul, A, A, {device = {"cuda:0", "cuda:1"}})) print(matmul(A, A, {device = {"cuda:0", "cuda:2"}}):sum())';
{
    local @ENV{qw(LUMAT_TILE LUMAT_FAKE_MEMORY)} = (4096, '100000000,10,100000000');
    like(`@run -e '$code' 2>&1`, qr/^false\tout of memory on cuda:1: .* needed, .*\n27000000\.0\n$/, 'one without memory is told of by its name');
}
{
    local $ENV{LUMAT_TILE} = 4096;
    like(`@run -e 'A = ones(300, 300) tracing(true) matmul(A, A, {device = {"cuda:2", "cuda:0"}})' 2>&1`,
        qr/^  matmul  \S+  300x300x300  f32 cuda:2, cuda:0  .* of f32 peaks/m, 'a trace names them');
}

# Long enough for an interrupt to come while they compute.
$ENV{LUMAT_TILE} = 1 << 20;
write_file("$folder/long.lua", <<'END');
io.stdout:setvbuf "no"
local A = rand(6000, 6000, {device = "cpu"})
print "begun"
matmul(A, A, {device = {"cuda:0", "cuda:1"}})
print "done"
END
$SIG{INT} = 'DEFAULT'; # a background job inherits it ignored
my $pid = open my $out, '-|', "exec @run $folder/long.lua 2>&1";
is(scalar <$out>, "begun\n", 'two of them begin');
sleep 0.3;
my $sent = time;
kill 'INT', $pid;
my $rest = join '', <$out>;
close $out;
like($rest, qr/^lumat: interrupted/, '  and are interrupted');
is($? >> 8, 130, '  which ends the script');
cmp_ok(time - $sent, '<', $patience, '  soon');
done_testing;
