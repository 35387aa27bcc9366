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
done_testing;
