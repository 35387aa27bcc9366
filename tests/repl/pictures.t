#!/usr/bin/perl
# Charts as pictures at the prompt, on terminals of the test's own: what each
# answers decides what it gets, and what is typed meanwhile is not lost.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

my $dir = new_folder('pictures');
chdir $dir or die "$dir: $!\n";
delete @ENV{qw(COLUMNS NO_COLOR LUMAT_INIT XDG_STATE_HOME XDG_CONFIG_HOME COLORTERM)};
@ENV{qw(HOME LUMAT_NO_CUDA LC_ALL TERM)} = ($dir, 1, 'C.UTF-8', 'xterm');

# Linux's numbers of what is asked of a terminal.
my ($unlock, $number, $control, $size) = (0x40045431, 0x80045430, 0x540E, 0x5414);

# --- a terminal -------------------------------------------------------------------

my ($master, $child, $seen);

sub open_terminal
{
    my @arguments = @_;
    open $master, '+<', '/dev/ptmx' or die "ptmx: $!";
    my ($which, $cells) = (pack('i', 0), pack 'S4', 24, 80, 0, 0);
    ioctl($master, $unlock, $which) && ioctl($master, $number, $which)
        && ioctl($master, $size, $cells) or die "a terminal: $!";
    my $name = '/dev/pts/' . unpack 'i', $which;
    $child = fork // die "fork: $!";
    if ($child == 0) {
        close $master;
        POSIX::setsid();
        open my $slave, '+<', $name or die "$name: $!";
        ioctl $slave, $control, my $none = 0;
        open STDIN, '<&', $slave;
        open STDOUT, '>&', $slave;
        open STDERR, '>&', $slave;
        { exec $lumat, '-q', '--no-init', @arguments }
        POSIX::_exit(127);
    }
    $seen = '';
}

sub send_keys { syswrite $master, $_[0] }

# Reads until it has shown what matches, and forgets what came before.
sub comes
{
    my ($wanted, $seconds) = (@_, $patience);
    my $end = time + $seconds;
    while ($seen !~ $wanted) {
        my $read = '';
        vec($read, fileno $master, 1) = 1;
        return 0 if time > $end || !select $read, undef, undef, $end - time;
        sysread $master, my $text, 65536 or return 0;
        $seen .= $text;
    }
    $seen =~ s/\A.*?$wanted//s;
    return 1;
}

sub close_terminal
{
    send_keys("\cD");
    comes(qr/\z./, 0.2);
    close $master;
    waitpid $child, 0;
}

my $asked = qr/\e_Gi=31.*?\e\[c/s;

# Sets pictures on; the terminal answers so.
sub answered_by
{
    my $answer = shift;
    open_terminal();
    comes(qr/lumat> /);
    send_keys(":set pictures on\r");
    ok(comes($asked), 'the terminal is asked');
    send_keys($answer);
}

# --- what they are ------------------------------------------------------------------

answered_by("\e_Gi=31;OK\e\\\e[6;20;10t\e]11;rgb:0000/0000/0000\e\\\e[?62;4;22c");
ok(comes(qr/lumat> /), 'kitty: a prompt comes');
send_keys("plot(vec{1, 3, 2})\r");
ok(comes(qr/\e_Ga=T,f=100,q=2,m=1;iVBORw0KGgo[\w+\/=]*\e\\/), 'kitty: a picture begins');
ok(comes(qr/\e_Gm=0;[\w+\/=]*\e\\\r?\n.*?lumat> /s), 'kitty: it ends, and a prompt comes');
send_keys("1 + 1\r");
ok(comes(qr/[\r\n]2\r\n/), 'kitty: other values are text');
send_keys("print(plot(vec{1, 3, 2}))\r");
ok(comes(qr/┤/), 'kitty: what is printed is text');
send_keys(":set pictures off\r");
comes(qr/lumat> .*lumat> /s);
send_keys("plot(vec{1, 3, 2})\r");
ok(comes(qr/┤/), 'off: text again');
close_terminal();

answered_by("\e]1337;ReportCellSize=17.0;8.0;2.0\a\e[?62;4c");
comes(qr/lumat> /);
send_keys("plot(vec{1, 3, 2})\r");
ok(comes(qr/\e\]1337;File=inline=1;size=\d+:iVBORw0KGgo[\w+\/=]*\a/), 'iTerm2: a picture');
close_terminal();

answered_by("\e[?62;4;22c");
comes(qr/lumat> /);
send_keys("\e[200~plot(vec{1, 3, 2})\n1 + 1\e[201~\r");
ok(comes(qr/\ePq"1;1;\d+;\d+#0;2;0;0;0.*?-\e\\/s), 'sixels: a picture');
ok(comes(qr/[\r\n]2\r\n/), 'sixels: and a number behind it');
close_terminal();

# --- what shows none -------------------------------------------------------------------

for my $answer ("\e[?62;22c", "\e[?14c", "\e]11;rgb:ff/ff/ff\e\\\e[?1;2c") {
    answered_by($answer);
    ok(comes(qr/note: pictures are off: .*sixels do/s), 'none: it is told');
    send_keys("plot(vec{1, 3, 2})\r");
    ok(comes(qr/┤/), 'none: text');
    close_terminal();
}

# One that says nothing is waited for, and no longer; keys are not lost.
answered_by('1 + ');
ok(comes(qr/note: pictures are off/), 'no answer: it is told');
send_keys("2\r");
ok(comes(qr/[\r\n]3\r\n/), 'no answer: what was typed meanwhile is there');
close_terminal();

answered_by("40\e_Gi=31;OK\e\\ +\e[?62c");
comes(qr/40 \+/);
send_keys(" 2\r");
ok(comes(qr/[\r\n]42\r\n/), 'keys amid the answers are keys');
close_terminal();

# What is no answer at all.
for my $answer ("\e_G" . 'x' x 500, "\e[?" . '9' x 300 . 'c', "\e]11;rgb:\e\\\e[?c", "\e\e\e[?;;;;c") {
    answered_by($answer);
    send_keys("\e[?1c");
    comes(qr/note: pictures are off/);
    send_keys("\cU\cC");
    send_keys("\r");
    comes(qr/lumat> /);
    send_keys("\cA\cK7 * 6\r");
    ok(comes(qr/[\r\n]42\r\n/), 'nonsense: the prompt works');
    close_terminal();
}

# No terminal.
my ($code, $out, $err) = run_shell("printf ':set pictures on\\nplot(vec{1, 2})\\n' | \$lumat -q -i --no-init");
like($err, qr/note: pictures are off/, 'no terminal: it is told');
like($out, qr/┤/, 'no terminal: text');

done_testing();
