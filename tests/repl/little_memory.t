#!/usr/bin/perl
# A session whose memory is used up: it says so, has some left for what frees
# more, and if even a prompt gets none, it ends with its variables in a file.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Shell;
use Test::More;

my $dir = new_folder('little-memory');
chdir $dir or die;
my $limit = 'ulimit -v 200000';
plan skip_all => 'this build needs more address space than can be taken away'
    if system("$limit; '$lumat' -q --no-init --device cpu -e '' >/dev/null 2>&1") != 0;

use_shells($dir);
open_shell('sh');
type('sh', "($limit; exec \$lumat -q --no-init --device cpu)", '<Enter>');
ok(shows('sh', qr/^lumat\[cpu\]>$/m), 'a session with little memory');

sub fill
{
    type('sh', 't = {}; while pcall(function() t[#t + 1] = zeros(150, 150) end) do end', '<Enter>');
}
type('sh', 'keep = rand(10, 10); sum = keep:sum();', '<Enter>');
fill();
ok(shows('sh', qr/note: there is hardly any memory left; :who shows/), 'it tells when memory is short');
type('sh', 'u = {}; while pcall(function() u[#u + 1] = ("x"):rep(1000) .. #u end) do end v = ("x"):rep(1e7)', '<Enter>');
ok(shows('sh', qr/not enough memory/), 'memory runs out');
type('sh', '<C-l>', 'u = nil', '<Enter>', '1000 + keep.rows', '<Enter>');
ok(shows('sh', qr/^1010$/m), 'what frees some has what it needs, and the session goes on');

# A line of millions of characters: Readline repeats what follows Alt-digits.
fill();
type('sh', '<C-l>', '<Enter>', '#t > 100', '<Enter>');
ok(shows('sh', qr/^true$/m), 'again');
for (1 .. 3) {
    type('sh', '<M-9>', '99999x');
    last if comes_true(sub { screen('sh') =~ /there is no memory left/ }, 2);
}
ok(shows('sh', qr/error: there is no memory left for what is typed/), 'a line too long for what is left');
ok(shows('sh', qr/saved \d+ variables in (\S+)/), 'saves the variables');
my $screen = screen('sh', '-J');
my ($file) = $screen =~ /saved \d+ variables in (\S+\.lum)/;
type('sh', '<Enter>', 'clear; echo "code $?"', '<Enter>');
my (undef, $out) = run_shell("\$lumat --no-init --device cpu -e 'load_session(\"" . ($file // '')
    . "\", {\"keep\", \"sum\", \"t\"}) print(keep:sum() == sum, #t > 100)'");
like($out, qr/^true\ttrue$/m, 'and they are there');
done_testing();
