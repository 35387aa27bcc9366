# Shells in a real terminal, in which lumat is started, typed at and looked at.
package Shell;
use strict;
use warnings;
use Exporter qw(import);
use Lumat;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(use_shells open_shell screen type shows start find_lumat signal_lumat comes_true $patience);
our $patience = $ENV{LUMAT_PATIENCE} || 20;
my $dir;    # the shells' home

binmode Test::More->builder->$_, ':utf8' for qw(output failure_output todo_output);

sub use_shells
{
    my ($name, $home) = @_;
    $dir = $home;
    use_tmux($name);
}

# A shell in which jobs can be stopped; others than sh: its command.
sub open_shell
{
    my ($name, $shell) = @_;
    my $variables = "TERM=screen-256color LANG=C.UTF-8 HOME=$dir LUMAT_NO_CUDA=1"
        . " LUMAT_SUGGESTIONS=off ASAN_OPTIONS=handle_segv=0 PS1='sh: ' lumat=$lumat";
    tmux('-f', '/dev/null', 'new-session', '-d', '-s', $name, '-x', 80, '-y', 24,
         "cd $dir; env -i $variables PATH=\$PATH " . ($shell // 'sh -i'));
    tmux('set-option', '-g', 'status', 'off');
    tmux('set-option', '-g', 'escape-time', '0');
}

sub screen
{
    my ($name, @options) = @_;
    my @lines = tmux('capture-pane', '-p', @options, '-t', $name);
    s/\s+$// for @lines;
    pop @lines while @lines && $lines[-1] eq '';
    return join "\n", @lines;
}

sub type
{
    my ($name, @keys) = @_;
    for my $key (@keys) {
        if ($key =~ /^<(.*)>$/) {
            tmux('send-keys', '-t', $name, $1);
        } else {
            tmux('send-keys', '-t', $name, '-l', '--', $key);
        }
    }
}

# Whether the screen comes to match.
sub shows
{
    my ($name, $wanted) = @_;
    my $end = time + $patience;
    until (screen($name) =~ $wanted) {
        if (time > $end) {
            diag("wanted $wanted, the screen:\n" . screen($name));
            return 0;
        }
        sleep 0.02;
    }
    return 1;
}

# Starts lumat on a clear screen.
sub start
{
    my ($name, $args) = @_;
    type($name, 'clear; $lumat -q --no-init ' . ($args // ''), '<Enter>');
    shows($name, qr/^lumat>$/m);
}

# Its process and the letter of the state it is in.
sub find_lumat
{
    my ($shell) = tmux('display-message', '-p', '-t', shift, '#{pane_pid}');
    for my $file (glob '/proc/[0-9]*/stat') {
        open my $in, '<', $file or next;
        my ($pid, $state, $parent) = (<$in> // '') =~ /^(\d+) \(lumat.*\) (\S) (\d+)/ or next;
        return ($pid, $state) if $parent == $shell;
    }
    return (0, '');
}

sub signal_lumat
{
    my ($number, $name) = @_;
    my ($pid) = find_lumat($name);
    kill $number, $pid if $pid;
}

# Waits until it does.
sub comes_true
{
    my $test = shift;
    my $end = time + $patience;
    sleep 0.02 until $test->() || time > $end;
}

1;
