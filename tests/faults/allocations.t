#!/usr/bin/perl
# An allocation fails, or all from one on, in everything that without_memory.lua
# does: the session lives, and an error speaks of memory.
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

begin_faults('allocations', 8);
my @run = ($lumat, '--no-init', "$FindBin::Bin/without_memory.lua");
my (undef, $names) = outcome_of({}, @run);
my @points;
for my $name (sort split /\n/, $names) {
    my ($how, $out, $err) = outcome_of({LD_PRELOAD => $shim, FAULT => 0}, @run, $name);
    if ($out =~ /^GOOD\tnothing failed\t(\d+)/m) {
        push @points, [shuffled(map { ([$name, $_, 0], [$name, $_, 1]) } 1 .. $1)];
    } else {
        bad_point($name, 'without a fault:', $how, $out, $err);
    }
}

# One of each in turn: what allocates often has no more than the others.
sub next_round { return shuffled(map { @$_ ? shift @$_ : () } @points) }

my ($tried, %came) = (0);
my @round;
while (is_time_left() && (@round || (@round = next_round()))) {
    my ($name, $at, $forever) = @{shift @round};
    my %faults = (LD_PRELOAD => $shim, FAIL_AT => $at, FAULT => ++$tried);
    $faults{FAIL_FOREVER} = 1 if $forever;
    my ($how, $out, $err) = outcome_of(\%faults, @run, $name);
    $came{$1}++ if $out =~ /^GOOD\t(.*)\t/m;
    bad_point("$name, allocation $at" . ($forever ? ' and all behind it' : '') . ": $how", $out, $err)
        unless $how eq 'exit 0' && $out =~ /^GOOD/m;
    system "rm -rf f$tried*";
}
end_faults("$tried points, " . ($came{error} // 0) . ' errors');
