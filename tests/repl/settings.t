#!/usr/bin/perl
# A setting is a row: what the function gives, the list, Tab, the help and the
# messages are all of the same settings, whichever there are.
use strict;
use warnings;
$SIG{INT} = 'DEFAULT'; # a background job inherits it ignored
use utf8;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Shell;
use Test::More;

my $dir = new_folder('settings');

# What a line of Lua prints, in words.
sub prints
{
    write_file("$dir/x.lua", shift);
    return split ' ', `$ENV{LUMAT} --device=cpu $dir/x.lua 2>&1`;
}

my @names = sort { $a cmp $b } prints('for name in pairs(settings()) do print(name) end');
cmp_ok(scalar @names, '>', 5, 'settings');

# --- the list, the help, the message ------------------------------------------------

my @listed = map { (split)[0] } split /\n/, `$ENV{LUMAT} --device=cpu -e 'print(settings())'`;
is_deeply([sort @listed], \@names, 'the list has them');

my $help = `$ENV{LUMAT} --device=cpu -e 'help("settings")'`;
my $manual = `$ENV{LUMAT} --manual=text`;
my $message = join ' ', prints('print(pcall(settings, {qqqqqqqqq = 1}))');
for my $name (@names) {
    like($help, qr/^ +$name  /m, "the help has $name");
    like($manual, qr/^ +$name = /m, "the manual has $name");
    like($message, qr/\b$name\b/, "the message names $name");
}

# --- Tab -------------------------------------------------------------------------------

use_shells($dir);
open_shell('a');
start('a');

type('a', ':set ', '<Tab>', '<Tab>');
shows('a', qr/^  $listed[-1]  /m);
is_deeply([sort map { /^  (\w+)  / } screen_lines('a')], \@names, 'Tab behind :set has them all');

# Of a word, what its last letter is, where no other begins like it.
for my $name (@names) {
    my ($value) = prints("print(settings().$name)");
    next if $value =~ /^\d/;
    my $wrong = join ' ', prints("print(pcall(settings, {$name = 'qqq'}))");
    my @words = grep { $_ ne 'qqq' } $wrong =~ /"(\w+)"/g;
    my @alone = grep {
        my $start = substr $_, 0, -1;
        1 == grep { /^\Q$start\E/ } @words;
    } @words;
    $value = $alone[0] if @alone && !grep { $_ eq $value } @alone;
    type('a', '<C-u>', ":set $name ", substr($value, 0, -1), '<Tab>');
    ok(shows('a', qr/:set $name $value$/m), ":set $name $value");
}

type('a', '<C-u>', ':quit', '<Enter>');
done_testing();
