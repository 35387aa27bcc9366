#!/usr/bin/perl
# The terminal around the prompt: signals and what they leave behind, colours,
# output without an end, a megabyte pasted, and a history file that is in use
# or cannot be written.
use strict;
use warnings;
$SIG{INT} = 'DEFAULT'; # a background job inherits it ignored
use utf8;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Shell;
use Test::More;
use Time::HiRes qw(time);

my $dir = new_folder('terminal');
my $state = "$dir/.local/state/lumat";
use_shells($dir);

write_file("$dir/part.lua", 'io.write("no end")');
open_shell('a');

# --- signals -------------------------------------------------------------------

start('a');
type('a', 'for i = 1, 2 do', '<Enter>', 'print(i)');
shows('a', qr/print\(i\)/);
type('a', '<C-z>');
ok(shows('a', qr/Stopped.*\nsh:$/s), 'Ctrl-Z stops it');
type('a', 'echo "it $((1 + 1)) works"', '<Enter>');
ok(shows('a', qr/^it 2 works$/m), 'and the shell is as it was');
type('a', 'clear; fg', '<Enter>');
ok(shows('a', qr/lumat> for i = 1, 2 do\nfor …>   print\(i\)$/), 'it comes back with its rows');
type('a', '<Enter>', 'end', '<Enter>');
ok(shows('a', qr/for …> end\n1\n2\nlumat>$/), 'and goes on');

# The viewer and its help give the terminal back meanwhile, whatever its size.
type('a', ':view rand(50, 50)', '<Enter>');
shows('a', qr/^ +1 .*\[1, 1\]/s);
type('a', '?');
shows('a', qr/^arrows.*\nlines 1 to 12 of 12; q leaves$/s);
type('a', '<C-z>');
ok(shows('a', qr/Stopped.*\nsh:$/s), 'Ctrl-Z stops the viewer');
type('a', 'clear; stty -a | grep -c " icanon.* echo "', '<Enter>');
ok(shows('a', qr/^1\nsh:$/m), 'the terminal is as it was');
resize_pane('a', 20, 5);
type('a', 'fg', '<Enter>');
ok(shows('a', qr/^arrows, h j k l\n.*\n1-4\/\d+; q leaves$/s), 'it comes back with its help');
type('a', 'q');
ok(shows('a', qr/^ +1 +2\n.*\[1, 1\]/s), 'which q leaves');
resize_pane('a', 10, 3);
ok(shows('a', qr/^ +1\n 1.*\n\[1, 1\]/), 'it follows the size');
resize_pane('a', 80, 24);
type('a', 'q');
ok(shows('a', qr/lumat>$/), 'and leaves a prompt');

for my $signal ('HUP', 'TERM') {
    for my $keys ('', '?') {
        type('a', ':view rand(50, 50)', '<Enter>');
        shows('a', qr/^ +1 .*\[1, 1\]/s);
        type('a', $keys);
        shows('a', $keys ? qr/^arrows/ : qr/^ +1 /);
        signal_lumat($signal, 'a');
        ok(shows('a', qr/sh:$/), "SIG$signal ends the viewer");
        type('a', 'clear; stty -a | grep -c " icanon.* echo "', '<Enter>');
        ok(shows('a', qr/^1\nsh:$/m), 'the terminal is as it was');
        start('a');
    }
    type('a', "typed$signal = {", '<Enter>', '1');
    shows('a', qr/\{ …>   1$/);
    signal_lumat($signal, 'a');
    ok(shows('a', qr/sh:$/), "SIG$signal ends it");
    type('a', 'clear; stty -a | grep -c " icanon.* echo "', '<Enter>');
    ok(shows('a', qr/^1\nsh:$/m), 'the terminal is as it was');
    like(read_file("$state/history"), qr/typed$signal = \{\n  1\n$/, 'what was typed is kept');
    start('a');
}

# The shell that waits for it stops, too.
type('a', ':quit', '<Enter>');
shows('a', qr/sh:$/);
type('a', 'clear; sh -c \'"$lumat" -q --no-init; echo left\'', '<Enter>');
shows('a', qr/^lumat>$/m);
type('a', ':view rand(50, 50)', '<Enter>');
shows('a', qr/^ +1 .*\[1, 1\]/s);
type('a', '<C-z>');
ok(shows('a', qr/Stopped.*\nsh:$/s), 'Ctrl-Z stops the job that the viewer is in');
type('a', 'fg', '<Enter>');
shows('a', qr/^ +1 .*\[1, 1\]/s);
type('a', 'q:quit', '<Enter>');
ok(shows('a', qr/^left\nsh:$/m), 'which goes on');

# An editor that stops its job, as vi does at Ctrl-Z, and one that is killed.
write_file("$dir/editor", "#!/bin/sh\nkill -TSTP 0\necho 'y = 2' >\"\$1\"\nstty raw -echo\n");
chmod 0755, "$dir/editor";
for my $keys ([':edit x', '<Enter>'], ['x = 3', '<C-x>', '<C-e>']) {
    type('a', 'clear; EDITOR=./editor $lumat -q --no-init', '<Enter>');
    shows('a', qr/^lumat>$/m);
    type('a', 'x = 1', '<Enter>', @$keys);
    ok(shows('a', qr/Stopped.*\nsh:$/s), "$keys->[0]: the editor's Ctrl-Z stops it");
    type('a', 'fg', '<Enter>');
    ok(shows('a', qr/lumat> y = 2$/), 'and what was edited comes back');
    type('a', '<Enter>', ':quit', '<Enter>');
    shows('a', qr/\ny = 2\nlumat> :quit\nsh:$/);
    type('a', 'clear; stty -a | grep -c " icanon.* echo "', '<Enter>');
    ok(shows('a', qr/^1\nsh:$/m), 'the terminal is as it was');
}

# Output that waits for the terminal goes on after a signal.
start('a');
type('a', 'repeat until io.open("go"); for i = 1, 20000 do print(i) end print("through")', '<Enter>');
comes_true(sub { reads_lines('a') });
type('a', '<C-s>');
write_file("$dir/go", '');
comes_true(sub { (find_lumat('a'))[1] eq 'S' });
signal_lumat('WINCH', 'a') for 1 .. 3;
type('a', '<C-q>');
ok(shows('a', qr/\n20000\nthrough\nlumat>$/), 'a new size while output is held up loses nothing');
type('a', ':quit', '<Enter>');
shows('a', qr/sh:$/);
start('a');

# A terminal that is closed sends its signal to the shell alone.
open_shell('closed');
start('closed');
type('closed', 'closed = {', '<Enter>', 'os.exit(');
shows('closed', qr/\{ …>   os\.exit\($/);
close_pane('closed');
comes_true(sub { read_file("$state/history") =~ /closed/ });
like(read_file("$state/history"), qr/^closed = \{\n  os\.exit\(\n\z/m,
     'what was typed when the terminal was closed is kept');

# --- what is on the screen -----------------------------------------------------

type('a', 'io.write("no end") x = 1', '<Enter>');
ok(shows('a', qr/\nno end\nx = 1\nlumat>$/), 'a result begins its line');
type('a', ':run part.lua', '<Enter>');
ok(shows('a', qr/\nno end\nlumat>$/), 'and so does the prompt');
type('a', '<C-l>', 'local s = "a" .. 1 -- (x)');
shows('a', qr/^lumat> local s = "a" \.\. 1 -- \(x\)$/);
sub colours_of
{
    my $line = (split /\n/, screen('a', '-e'))[0];
    my $colours = '';
    my $now = '.';
    while ($line =~ /\e\[([\d;]*)m|(.)/g) {
        if (defined $2) {
            $colours .= $now;
            next;
        }
        for my $code (split /;/, $1 eq '' ? 0 : $1) {
            $now = $code == 35 ? 'k' : $code == 32 ? 's' : $code == 36 ? 'n' : $code == 33 ? 'b'
                : $code == 1 ? 'B' : $code == 2 ? 'c' : $code == 49 ? $now : '.';
        }
    }
    return $colours;
}
# The text is there a moment before its colours.
sub has_colours
{
    my ($wanted, $name) = @_;
    comes_true(sub { colours_of() eq $wanted });
    is(colours_of(), $wanted, $name);
}
has_colours('BBBBBBB' . 'kkkkk.....sss....n.cccccc', 'tokens have colours');
type('a', '<C-a>', '<C-k>', 'f(g(1))');
shows('a', qr/^lumat> f\(g\(1\)\)$/);
has_colours('BBBBBBB' . '.b..n.b', 'brackets that belong together stand out');
type('a', '<C-a>', '<C-k>', ':who x');
shows('a', qr/^lumat> :who x$/);
has_colours('BBBBBBB' . 'BBBB..', 'a command that is known stands out');
type('a', '<C-u>', ':quit', '<Enter>');
shows('a', qr/sh:$/);
for my $plain ('NO_COLOR=1 $lumat', '$lumat --color=never') {
    type('a', "clear; $plain -q --no-init", '<Enter>');
    shows('a', qr/^lumat>$/m);
    type('a', 'for i = 1, "x"');
    shows('a', qr/^lumat> for i = 1, "x"$/);
    unlike(screen('a', '-e'), qr/\e/, "$plain: no colours");
    type('a', '<C-u>', ':quit', '<Enter>');
    shows('a', qr/sh:$/);
}

# Readline's own prompt of a search has room for so much.
start('a');
type('a', '<C-r>');
shows('a', qr/reverse-i-search/);
paste('a', 'y' x 30_000);
type('a', '<C-g>', 'print(6 * 7)', '<Enter>');
ok(shows('a', qr/lumat> print\(6 \* 7\)\n42\nlumat>$/), 'a long text pasted into a search');
type('a', ':quit', '<Enter>');
shows('a', qr/sh:$/);

# --- a megabyte in one line ----------------------------------------------------

start('a');
my $began = time;
paste('a', 'x = "' . 'é日' x 200_000 . "\"\n");
ok(shows('a', qr/\(1000000 bytes\)\nlumat>$/), 'a megabyte is pasted');
cmp_ok(time - $began, '<', 10, 'within seconds');
type('a', '#x', '<Enter>');
ok(shows('a', qr/lumat> #x\n1000000\nlumat>$/), 'nothing of it is lost');
type('a', ':quit', '<Enter>');
shows('a', qr/sh:$/);

# --- history -------------------------------------------------------------------

write_file("$state/history", join '', map { "#1700000000\nn = $_\n" } 1 .. 20_003);
start('a');
type('a', '<Up>');
ok(shows('a', qr/lumat> n = 20003$/), 'the newest entry is there');
my @times = read_file("$state/history") =~ /^#1/mg;
is(scalar @times, 20_000, 'the file is cut to 20,000 entries');
like(read_file("$state/history"), qr/^#1700000000\nn = 4\n/, 'the oldest ones go');
type('a', '<C-u>');

open_shell('b');
write_file("$state/history", '');
start('b');
for my $i (1 .. 10) {
    type('a', "a = $i", '<Enter>');
    type('b', "b = $i", '<Enter>');
}
ok(shows('a', qr/\na = 10\nlumat>$/) && shows('b', qr/\nb = 10\nlumat>$/), 'two sessions at a time');
my $kept = read_file("$state/history");
is(join(' ', $kept =~ /^a = (\d+)$/mg), join(' ', 1 .. 10), 'lose nothing');
is(join(' ', $kept =~ /^b = (\d+)$/mg), join(' ', 1 .. 10), 'of either');
type('b', '<Up>');
ok(shows('b', qr/lumat> b = 10$/), 'and have their own entries first');
type('b', '<C-u>', ':quit', '<Enter>');
shows('b', qr/sh:$/);

# A file that was cut by a third session in the meantime is found again.
rename "$state/history", "$state/old";
write_file("$state/history", '');
type('a', 'late = 1', '<Enter>');
shows('a', qr/\nlate = 1\nlumat>$/);
like(read_file("$state/history"), qr/^#\d+\nlate = 1\n$/, 'entries go where the name is');
type('a', ':quit', '<Enter>');
shows('a', qr/sh:$/);

# One that can only be read: root, who may write it, is not asked.
SKIP: {
    skip 'root writes everything', 2 if $> == 0;
    write_file("$state/history", "#1700000000\nold = 1\n");
    chmod 0400, "$state/history";
    start('a');
    ok(shows('a', qr/note: the history is not kept: .*Permission denied/), 'a history that is read-only');
    type('a', '<Up>');
    ok(shows('a', qr/lumat> old = 1$/), 'is read');
    type('a', '<C-u>', ':quit', '<Enter>');
    shows('a', qr/sh:$/);
}

unlink "$state/history";
symlink '/dev/full', "$state/history" or die "symlink: $!\n";
start('a');
type('a', 'x = 1', '<Enter>');
shows('a', qr/\nx = 1\nlumat>$/);
type('a', 'y = 2', '<Enter>');
ok(shows('a', qr/note: the history is not kept: .*not a regular file\nlumat> x = 1\nx = 1\nlumat> y = 2\ny = 2\nlumat>$/s),
   'a history that is a device is told once');
unlink "$state/history";
type('a', 'z = 3', '<Enter>');
shows('a', qr/\nz = 3\nlumat>$/);
is(join(' ', read_file("$state/history") =~ /^([^#].*)$/mg), 'x = 1 y = 2 z = 3',
   'what could not be written is written later');
type('a', ':quit', '<Enter>');

# --- a terminal that goes while something runs -----------------------------------

# Stopped once or not, a watched loop ends with its terminal.
for my $stops (0, 1) {
    my $name = "watched$stops";
    open_shell($name);
    start($name);
    type($name, 'A = eye(2)', '<Enter>', ':watch A', '<Enter>',
         'while true do A[{1, 1}] = 1 end', '<Enter>');
    shows($name, qr/\n  1 +2\n  0 +1$/);
    for (1 .. $stops) {
        type($name, '<C-z>');
        shows($name, qr/Stopped.*\nsh:$/s);
        type($name, 'clear; fg', '<Enter>');
        shows($name, qr/\n  1 +2\n  0 +1$/);
    }
    my ($pid) = find_lumat($name);
    ok($pid, 'a loop is watched');
    close_pane($name);
    ok(comes_true(sub { !-e "/proc/$pid" }), "it ends with the terminal, stopped $stops times before");
    kill 'KILL', $pid if $pid && -e "/proc/$pid";
}

done_testing();
