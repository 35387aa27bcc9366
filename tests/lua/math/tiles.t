#!/usr/bin/perl
# What a GPU computes of the host's matrices, in tiles of several sizes
# (tiled.lua): with the CPU's backend under CUDA's name, where there is no GPU.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../..";
use File::Basename qw(dirname);
use Lumat;
use Test::More;

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
done_testing;
