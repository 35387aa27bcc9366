#!/usr/bin/perl
# The session at the top of the README is what the screen shows.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;

open my $in, '<', "$FindBin::Bin/../../README.md" or die "README.md: $!\n";
my $readme = do { local $/; <$in> };
my ($session) = $readme =~ /^```\n(lumat> .*?)^```/ms or die "no session in the README\n";
# the last digits are the machine's
$session =~ s/^(lumat> norm\(.*\)\n)\d\.\d+e-(\d+)$/$1%{\\d\\.\\d+e-$2}%/m
    or die "no residual in the README's session\n";

my $file = new_folder('readme') . '/readme.session';
open my $out, '>', $file or die "$file: $!\n";
print $out $session, "lumat>\n";
close $out;
exit(system($^X, "$FindBin::Bin/session", $file) >> 8);
