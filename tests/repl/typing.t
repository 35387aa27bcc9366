#!/usr/bin/perl
# What is typed while an entry runs: it appears once, at the next prompt, and
# whatever reads the terminal has it echo meanwhile. However lumat is left, the
# terminal echoes.
use strict;
use warnings;
$SIG{INT} = 'DEFAULT'; # a background job inherits it ignored
use utf8;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Shell;
use Test::More;
use Time::HiRes qw(sleep);

my $dir = new_folder('typing');
use_shells($dir);
open_shell('a');

# --- settings of the terminal -----------------------------------------------------

sub modes
{
    return `stty -a <@{[ask('a', '#{pane_tty}')]}`;
}

# Waits until the terminal is set so.
sub becomes
{
    my $wanted = shift;
    return comes_true(sub { modes() =~ $wanted });
}

my $runs = qr/ icanon.* -echo /s;    # an entry does, and the terminal is quiet
my $shell = qr/ icanon.* echo /s;
my $forever = 'while true do end';

# Waits until what runs waits for a line: on the way there the terminal may be set
# so for a moment.
sub awaits
{
    return comes_true(sub { modes() =~ $shell && (find_lumat('a'))[1] eq 'S' });
}

# Types an entry, and waits until it runs, or awaits a line.
sub enter
{
    my ($entry, $is_awaiting) = @_;
    type('a', '<C-l>');
    shows('a', qr/^lumat>$/);
    type('a', $entry, '<Enter>');
    $is_awaiting ? awaits() : becomes($runs);
}

# --- typed ahead --------------------------------------------------------------------

my $wait = 'repeat until io.open("go") os.remove("go")';
sub let_go { write_file("$dir/go", '') }

type('a', 'ulimit -c 0', '<Enter>');
start('a');
my $entry = 'go() print("abc") go() print("def")';
type('a', "function go() $wait end", '<Enter>');
enter($entry);
type('a', 'x = 1');
let_go();
ok(shows('a', qr/^lumat> \Q$entry\E\nabc$/), 'what is typed ahead does not appear');
let_go();
ok(shows('a', qr/^lumat> \Q$entry\E\nabc\ndef\nlumat> x = 1$/), 'until the next prompt');
type('a', '<Enter>');
ok(shows('a', qr/\ndef\nlumat> x = 1\nx = 1\nlumat>$/), 'which has it');

# --- what reads the terminal ----------------------------------------------------------

for my $case (['io.write("name? ") n = io.read()', 'name\? '],
              ['io.write("name? ") n = io.stdin:read()', 'name\? '],
              ['for l in io.lines() do n = l break end', ''],
              ['n = io.open("/dev/tty"):read()', ''],
              ['io.input("/dev/tty") n = io.read() io.input(io.stdin)', ''],
              ['for l in io.lines("/dev/tty") do n = l break end', ''],
              ['n = io.popen("read n; echo $n"):read()', '']) {
    my ($entry, $asks) = @$case;
    enter($entry, 1);
    shows('a', qr/\nname\?$/) if $asks;
    type('a', 'joe');
    ok(shows('a', qr/\n${asks}joe$/), "$entry shows what is typed");
    type('a', '<Enter>');
    ok(shows('a', qr/\n${asks}joe\n+n = "joe"\nlumat>$/), 'and gets it');
    type('a', 'n = nil', '<Enter>');
}
enter('debug.debug()', 1);
type('a', 'cont');
ok(shows('a', qr/\nlua_debug> cont$/), 'debug.debug() shows what is typed');
type('a', '<Enter>');
ok(shows('a', qr/\nlumat>$/), 'and ends');
enter('os.execute("read n; echo got $n")', 1);
type('a', 'joe');
ok(shows('a', qr/\njoe$/), 'so does os.execute');
type('a', '<Enter>');
ok(shows('a', qr/\ngot joe\n/), 'which has the terminal to itself');

enter("n = io.read() $wait m = io.read()", 1);
type('a', 'one', '<Enter>');
ok(becomes($runs), 'between two lines the terminal is quiet');
type('a', "ahead\e[A", '<Enter>');
comes_true(sub { input_of('a') > 0 });
like(screen('a'), qr/\none$/, 'a line typed ahead does not appear');
let_go();
ok(shows('a', qr/\none\nahead\^\[\[A\n/), 'until it is read');

# A program may hide what is typed: a password.
enter('do os.execute("stty -echo") io.write("word: ") w = io.read() os.execute("stty echo") end');
shows('a', qr/\nword:$/);
type('a', 'secret', '<Enter>');
ok(shows('a', qr/\nword:\s+w = "secret"\nlumat>$/), 'a password is not shown');
type('a', 'os.execute("stty -echo")', '<Enter>');
shows('a', qr/"exit"\n3: 0$/);
type('a', 'x = 12 + 1', '<Enter>');
ok(shows('a', qr/\nx = 13$/), 'a terminal that was set not to echo still runs what is typed');
unlike(screen('a'), qr/12/, 'and shows nothing of it');
type('a', 'os.execute("stty echo")', '<Enter>');
shows('a', qr/\nx = 13\n+1: true\n2: "exit"\n3: 0\nlumat>$/);
type('a', 'x = 21', '<Enter>');
ok(shows('a', qr/lumat> x = 21\nx = 21\n/), 'until it is set otherwise');

# --- stopping and leaving -------------------------------------------------------------

enter($forever);
type('a', '<C-c>');
ok(shows('a', qr/^lumat> $forever\n\^C\nerror: interrupted\nlumat>$/), 'Ctrl-C is seen');

# However soon it follows Enter it stops the line, or keeps it from running, and
# leaves the next one alone. (Not that of a program: a shell that is about to
# start one may lose it.)
srand($ENV{LUMAT_SEED} // 1);
my ($lost, $unseen) = (0, 0);
for my $i (1 .. 40) {
    type('a', '<C-l>', $forever);
    shows('a', qr/^lumat> \Q$forever\E$/);
    type('a', '<Enter>');
    sleep rand 0.004;
    type('a', '<C-c>');
    $lost++ unless shows('a', qr/(\^C|: interrupted)\nlumat>$/);
    $unseen++ unless screen('a') =~ /\^C/;
    type('a', '<C-c>') if $lost;
    shows('a', qr/\nlumat>$/);
    type('a', "i = $i", '<Enter>');
    $lost++ unless shows('a', qr/\nlumat> i = $i\ni = $i\nlumat>$/);
}
is($lost, 0, 'no Ctrl-C is lost or late');
is($unseen, 0, 'each is shown');

enter($forever);
type('a', '<C-z>');
ok(shows('a', qr/\n\^Z.*Stopped.*\nsh:$/s), 'Ctrl-Z stops an entry');
ok(becomes($shell), 'the terminal is as it was');
type('a', 'clear; fg', '<Enter>');
ok(becomes($runs), 'and quiet again when it goes on');
type('a', 'y = 2', '<C-c>');
ok(shows('a', qr/\n\^C\nerror: interrupted\nlumat>$/), 'as ever');

# Who sets the terminal to echo while an entry runs has it so for that one.
enter($forever);
system "stty echo <@{[ask('a', '#{pane_tty}')]}";
becomes($shell);
type('a', '<C-c>');
shows('a', qr/: interrupted\nlumat>$/);
enter($forever);
type('a', '<C-c>');
ok(shows('a', qr/^lumat> $forever\n\^C\nerror: interrupted\nlumat>$/), 'the next one is quiet');

# At the prompt, too, it is the shell's when lumat stops.
type('a', 'y = 3');
shows('a', qr/lumat> y = 3$/); # what is not read yet the terminal forgets
type('a', '<C-z>');
ok(shows('a', qr/Stopped.*\nsh:$/s), 'Ctrl-Z stops a prompt');
ok(becomes($shell), 'the terminal is as it was');
type('a', 'clear; fg', '<Enter>');
shows('a', qr/^\$\{lumat\}/m);
type('a', ' + 1', '<Enter>');
ok(shows('a', qr/^lumat> y = 3 \+ 1\ny = 4\nlumat>$/m), 'which goes on where it was');

type('a', 'n = io.read()', '<Enter>');
awaits();
type('a', '<C-z>');
shows('a', qr/Stopped.*\nsh:$/s);
type('a', 'clear; fg', '<Enter>');
shows('a', qr/^\$\{lumat\}/m);
awaits();
type('a', 'joe', '<Enter>');
ok(shows('a', qr/\njoe\nn = "joe"\nlumat>$/), 'a line that is awaited may be stopped, too');

for my $way ('os.exit()', 'os.exit(true, true)', ':quit', '<C-d>') {
    type('a', $way, $way =~ /^</ ? () : '<Enter>');
    ok(shows('a', qr/\nsh:$/), "$way leaves");
    ok(becomes($shell), 'the terminal is as it was');
    start('a');
}
for my $signal ('TERM', 'HUP', 'QUIT', 'ALRM', 'USR1', 'ABRT', 'SEGV') {
    enter($forever);
    signal_lumat($signal, 'a');
    ok(shows('a', qr/sh:$/), "SIG$signal ends an entry");
    ok(becomes($shell), 'the terminal is as it was');
    start('a');
}
for my $signal ('TERM', 'HUP', 'QUIT', 'ALRM') { # which Readline handles
    shows('a', qr/^lumat>$/m);
    signal_lumat($signal, 'a');
    ok(shows('a', qr/sh:$/), "SIG$signal ends a prompt");
    ok(becomes($shell), 'the terminal is as it was');
    start('a');
}

# The whole screen, an editor, and a pager have the terminal as it was.
type('a', ':view rand(50, 50)', '<Enter>');
shows('a', qr/^ +1 .*\[1, 1\]/s);
type('a', '<C-z>');
shows('a', qr/sh:$/);
ok(becomes($shell), 'Ctrl-Z in the viewer leaves the terminal as it was');
type('a', 'fg', '<Enter>');
shows('a', qr/^ +1 .*\[1, 1\]/s);
type('a', 'q');
ok(shows('a', qr/lumat>$/), 'it comes back');
type('a', ':quit', '<Enter>');
shows('a', qr/lumat> :quit\nsh:$/);
type('a', 'export EDITOR="sh -c read\ n" PAGER="sh -c read\ n\ </dev/tty"', '<Enter>');
start('a');
type('a', ':edit', '<Enter>');
ok(becomes($shell), 'an editor may read the terminal');
type('a', '<Enter>');
shows('a', qr/\nlumat> :quit$/);
type('a', '<C-u>', ':last ("x\n"):rep(99)', '<Enter>');
ok(becomes($shell), 'and so may a pager');
type('a', '<Enter>');
shows('a', qr/lumat>$/);
type('a', ':quit', '<Enter>');
shows('a', qr/sh:$/);

# Scripts have the terminal as it is.
type('a', "clear; \$lumat -e 'print(6 * 7) io.stdout:flush() $forever'", '<Enter>');
shows('a', qr/^42$/m);
like(modes(), $shell, 'a script leaves the terminal as it is');
type('a', '<C-c>');
shows('a', qr/sh:$/);

done_testing();
