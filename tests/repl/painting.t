#!/usr/bin/perl
# The line being typed, in colour and with --color=never, shows the same text
# and cursor: two terminals (tmux) get the same random keys, at random widths,
# and are compared as they go. In colour, a dim suggestion behind the cursor is
# allowed; where sizes change there is none, because tmux lays out anew what was
# erased, too.
#
#   LUMAT_PAINTING=300 tests/repl/painting.t   so many sequences (8)
#   LUMAT_SEED=7                               the first one's seed (1)
use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Terminal;
use Test::More;
use Time::HiRes qw(sleep time);

binmode Test::More->builder->$_, ':utf8' for qw(output failure_output todo_output);
my $sequences = $ENV{LUMAT_PAINTING} || 8;
my $seed = $ENV{LUMAT_SEED} || 1;
my $enough = $ENV{LUMAT_PATIENCE} || 5;    # seconds until screens that differ do
my $dir = new_folder('painting');
my @panes = ('auto', 'never');    # sessions, named after their --color

# --- two terminals -------------------------------------------------------------

# What earlier sessions typed: rows, wide characters, a tab.
my $history = <<'END';
#1700000000
for i = 1, 3 do
  print(i, "日本語")
end
#1700000001
x = {1, 2, {3}}
#1700000002
print("a long line that is wider than a narrow terminal: 0123456789 0123456789")
#1700000003
s = "tab	é 😀"
END

my $starts = 0;

sub command
{
    my ($colour, $suggestions) = @_;
    my $home = "$dir/$colour-" . ++$starts;
    my $state = "$home/.local/state/lumat";
    system 'mkdir', '-p', $state;
    write_file("$state/history", $history);
    return "trap : INT; cd $home; env -i TERM=screen-256color LANG=C.UTF-8 HOME=$home LUMAT_NO_CUDA=1 LUMAT_SUGGESTIONS=$suggestions "
        . quote($lumat) . " -q --no-init --color=$colour; echo \"[exit]\"; exec sleep 1000";
}

sub start
{
    my ($width, $height, $suggestions) = @_;
    for my $pane (@panes) {
        resize_pane($pane, $width, $height);
        restart_pane($pane, command($pane, $suggestions));
    }
    for my $pane (@panes) {
        comes_true(sub { screen($pane) =~ /lumat>/ });
    }
}

# --- comparing -----------------------------------------------------------------

# The cursor, and each line's text and, beside it, which characters are dim.
sub state_of
{
    my $pane = shift;
    my $at = ask($pane, '#{cursor_y},#{cursor_x}');
    my $dim = 0;
    my @lines;
    for my $line (tmux('capture-pane', '-p', '-e', '-t', $pane)) {
        my ($text, $marks) = ('', '');
        while ($line =~ /\G(?:\e\[([\d;]*)m|\e\(?.|[\x0e\x0f]|(.))/g) {
            if (defined $2) {
                $text .= $2;
                $marks .= $dim;
            } elsif (defined $1) {
                for my $code (split /;/, $1 eq '' ? '0' : $1) {
                    $dim = 0 if $code == 0 || $code == 22;
                    $dim = 1 if $code == 2;
                }
            }
        }
        $text =~ s/\s+$//;
        push @lines, [$text, substr $marks, 0, length $text];
    }
    return ($at, @lines);
}

# The painted text may go on with a suggestion, which is dim, behind blanks that
# were typed. (A comment before it is dim as well.)
sub is_same_line
{
    my ($painted, $plain) = @_;
    my ($text, $marks) = @$painted;
    my $length = length $plain->[0];
    return 1 if $text eq $plain->[0];
    return 0 unless substr($text, 0, $length) eq $plain->[0];
    return 0 unless substr($marks, $length) =~ /^(0*)1+$/;
    return substr($text, $length, length $1) =~ /^ *$/;
}

sub is_same
{
    my ($painted, $plain) = @_;
    my ($at, @a) = @$painted;
    my ($at_plain, @b) = @$plain;
    return 0 if $at ne $at_plain || @a != @b;
    my ($row) = $at =~ /^(\d+)/;
    for my $i (0 .. $#a) {
        return 0 if $a[$i][0] =~ /^\[exit/;
        return 0 unless $i == $row ? is_same_line($a[$i], $b[$i]) : $a[$i][0] eq $b[$i][0];
    }
    return 1;
}

sub text_of
{
    my ($at, @lines) = @{+shift};
    return join '|', $at, map { $_->[0] } @lines;
}

# Both screens once they have not changed for a while, or are equal for one.
sub settle
{
    my $end = time + $enough;
    my ($last, $still) = ('', 0);
    while (1) {
        my @states = map { [state_of($_)] } @panes;
        my $text = join "\n", map { text_of($_) } @states;
        $still = $text eq $last ? $still + 1 : 0;
        $last = $text;
        my $same = is_same(@states);
        return ($same, @states) if ($same && $still >= 1) || $still >= 20 || time > $end;
        sleep 0.015;
    }
}

sub show_difference
{
    my ($number, $size, $keys, $painted, $plain) = @_;
    my ($at, @a) = @$painted;
    my ($at_plain, @b) = @$plain;
    diag("sequence $number at $size: " . join ' ', @$keys);
    diag("painted, cursor at $at");
    diag("  |$_->[0]") for @a;
    diag("plain, cursor at $at_plain");
    diag("  |$_->[0]") for @b;
}

# --- keys ----------------------------------------------------------------------

my @texts = (
    'x', 'print(', ')', '"str', '"', ' = ', '1 + ', 'for i = 1, 3 do', 'end', '{', '}', '[[',
    ']]', '--note', '日本', '語', 'é', 'e' . "\x{301}", '😀', 'ｆ', ' ', 'function f(a)', 'return a',
    'if x then', 'else', '0x1F', 'A.T * B', 'wide 日本語 and narrow text to wrap a row somewhere',
    ':who', '?sum', 'for', 'pr',
);
my @moves = qw(Left Left C-a Home M-b Up Up Down Down C-p C-n M-< M->);
my @moves_on = qw(Right Right C-f C-e End M-f);    # they take a suggestion
my @edits = qw(BSpace BSpace DC C-k C-u C-w C-y M-y M-d C-t M-t M-u M-c C-_ C-_ M-BSpace C-l M-\\);
my @pastes = (
    "a = 1\nb = 2", "for k = 1, 2 do\n\tprint(k)\nend", "日本語", "x", "\ty\n", "1 + 1\n",
    "lumat> u = 3\nlumat> u + 1\n4\n", "y" x 150,
);

sub pick
{
    return $_[rand @_];
}

# Keys as tmux names them; =text is typed, +text pasted, and WxH a new size.
sub random_keys
{
    my $resizes = shift;
    my $kind = rand;
    return '=' . pick(@texts) if $kind < 0.42;
    return pick(@moves, $resizes ? @moves_on : ()) if $kind < 0.62;
    return pick(@edits) if $kind < 0.78;
    return 'Enter' if $kind < 0.84;
    return 'M-Enter' if $kind < 0.86;
    return '+' . pick(@pastes) if $kind < 0.90;
    return ('C-r', '=' . pick('p', 'for', 'x', '日', 'zz'), pick('C-r', 'Left', 'C-g', 'Enter'))
        if $kind < 0.93;
    return ('M-' . int(rand 9), pick('=z', 'Left', 'BSpace', 'C-g')) if $kind < 0.95;
    return ('C-v', pick('Tab', 'C-a', 'C-g')) if $kind < 0.96;
    return 'C-c' if $kind < 0.97 || !$resizes;
    return int(20 + rand 101) . 'x' . int(8 + rand 20);
}

sub send_keys
{
    my $key = shift;
    if ($key =~ /^(\d+)x(\d+)$/) {
        resize_pane($_, $1, $2) for @panes;
        return;
    }
    for my $pane (@panes) {
        if ($key =~ /^\+(.*)/s) {
            paste($pane, $1);
        } elsif ($key =~ /^=(.*)/s) {
            send_bytes($pane, $1);
        } else {
            type($pane, "<$key>");
        }
    }
}

# Ctrl-C makes the terminal drop keys that were not read; a new size is acted
# upon when a key is waited for; what is typed while an entry runs, the terminal
# shows wherever the cursor is.
sub play
{
    my $number = shift;
    srand $number;
    my ($width, $height) = (int(20 + rand 101), int(8 + rand 20));
    my @sent;
    start($width, $height, $number % 2 ? 'off' : 'on');
    for my $step (1 .. 25) {
        my @keys = random_keys($number % 2);
        my $waits = "@keys" =~ /C-c|\dx\d|Enter|\+/;
        settle() if $waits;
        send_keys($_) for @keys;
        push @sent, @keys;
        next unless $waits || $step % 3 == 0 || $step == 25;
        my ($same, @states) = settle();
        next if $same;
        show_difference($number, "${width}x$height", \@sent, @states);
        return 0;
    }
    return 1;
}

use_terminals();
tmux('set-option', '-g', 'history-limit', '200');
open_pane($_, 'exec sleep 1000') for @panes;
ok(play($_), "sequence $_") for $seed .. $seed + $sequences - 1;
done_testing();
