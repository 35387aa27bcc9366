#!/usr/bin/perl
# What others wrote (names, files, messages) reaches the terminal without a
# byte that it would obey, by whatever way; what a script prints itself, as it
# is. Each way is tried with each kind of byte.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Shell;
use Test::More;

my $dir = new_folder('escapes');
use_shells($dir);
chdir $dir or die "$dir: $!\n";

# By name: the bytes, and what Lua has for them in quotes.
my %kinds = (
    escape    => ["\x1b]0;", '\27]0;'],
    bell      => ["\x07", '\7'],
    return    => ["\r", '\13'],
    delete    => ["\x7f", '\127'],
    c1        => ["\xc2\x9b", '\u{9b}'],
    byte      => ["\x9b", '\155'],
    direction => ["\xe2\x80\xae", '\u{202e}'],
    not_utf8  => ["\xff\xfe", '\255\254'],
);

# Lua and commands in which B is the bytes in quotes.
my @ways = (
    'error("BEVIL")', 'error(setmetatable({}, {__tostring = function() return "BEVIL" end}))',
    'warn "BEVIL"', 'local t = {} t.x.BEVIL_ = 1', '_G["BEVIL"] = eye(2)', '_G["BEVIL"] = 1 error(1)',
    '"BEVIL"', '{["BEVIL"] = "BEVIL"}', 's = "BEVIL"', ':who', ':who s*', 'mem()', 'load "BEVIL.csv"',
    'load("bad.csv")', 'A = load("named.csv")', 'A', 'inspect(A)', 'inspect(eye(2), "BEVIL")',
    'save(A, "/nowhere/BEVIL.csv")', 'zeros(2, {BEVIL = 1})', 'zeros(2, {dtype = "BEVIL"})',
    'matmul(eye(2), eye(2), {kernel = "BEVIL"})', 'device "BEVIL"', 'eye(2):to("BEVIL")',
    'require "BEVIL"', 'dofile "BEVIL.lua"', 'help "zBEVIL"', 'settings{BEVIL = 1}', 'eye(2).BEVIL_',
    'load_session "names.lum"', ':who', 'load_session "BEVIL.lum"', 'eye(2)["BEVIL"]',
    'load("x = = 1", "=BEVIL")', 'assert(load("x = = 1", "=BEVIL"))', 'transcript "/nowhere/BEVIL"',
    'profile("on") local _ = eye(2) * eye(2) profile("off")', ':prof top', ':how s', ':history 5',
    'experiment{name = "x", dir = false, axes = {n = {"BEVIL"}}, measure = function() error("BEVIL") end}:run()',
    'print(experiment{name = "y", dir = false, axes = {["n"] = {"BEVIL"}}, measure = function() return 1 end}:run())',
);

sub saved_session
{
    my $name = shift;
    write_file('make.lua', "_G['a${name}EVIL'] = eye(2) save_session('names.lum', {'a${name}EVIL'})\n");
    system "LUMAT_NO_CUDA=1 $lumat --no-init make.lua >/dev/null 2>&1";
}

open_shell('e');
for my $kind (sort keys %kinds) {
    my ($bytes, $quoted) = @{$kinds{$kind}};
    write_file('bad.csv', "1,2\n3,${bytes}EVIL\n");
    write_file('named.csv', "a${bytes}EVIL,b\n1,2\n");
    saved_session($quoted);
    unlink 'raw';
    start('e', '--color=never');
    tmux('pipe-pane', '-t', '=e:', "cat >$dir/raw");
    my @seen;
    for my $i (0 .. $#ways) {
        (my $line = $ways[$i]) =~ s/B(?=EVIL)/$quoted/g;
        type('e', $line, '<Enter>', "'way' .. ' $i done'", '<Enter>');
        shows('e', qr/way $i done/) or last;
    }
    type('e', ":quit", '<Enter>');
    shows('e', qr/sh: *$/);
    tmux('pipe-pane', '-t', '=e:');
    comes_true(sub { read_file('raw') =~ /quit/ });
    my $raw = read_file('raw');
    my @found = $raw =~ /([^\n]*\Q$bytes\EEVIL[^\n]*)/g;
    is(scalar @found, 0, "$kind, by " . @ways . ' ways') or diag(map { "$_\n" } @found);
    cmp_ok(scalar(() = $raw =~ /EVIL/g), '>', 60, 'and all else is shown');
}

# What a script prints is its own.
write_file('own.lua', "print('\\27[1mown') io.stderr:write('\\27[1mmine\\n')");
my (undef, $out, $err) = run_shell('$lumat own.lua');
is("$out$err", "\e[1mown\n\e[1mmine\n", 'a script prints what it likes');
(undef, undef, $err) = run_shell('$lumat -e "error(\'\\\27[1mown\')"; $lumat $(printf "\033[1mx"); $lumat --$(printf "\033[1mx")');
unlike($err, qr/\e/, 'its errors, and a command line, are shown');
done_testing();
