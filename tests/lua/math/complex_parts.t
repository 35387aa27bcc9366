#!/usr/bin/perl
# Complex matrices by programs of their parts, as on a device without loops of
# its own for them: the same tests.
use strict;
use warnings;
use File::Basename qw(dirname);

my $here = dirname($0);
$ENV{LUMAT_COMPLEX} = 'parts';
exec "$here/../../run", "$here/test_complex.lua" or die "$here: $!\n";
