# Shells in a real terminal, in which lumat is started.
package Shell;
use strict;
use warnings;
use Exporter qw(import);
use Lumat;
use Terminal;
use Test::More;

our @EXPORT = (@Terminal::EXPORT, qw(use_shells open_shell start find_lumat signal_lumat));
my $dir;    # the shells' home

binmode Test::More->builder->$_, ':utf8' for qw(output failure_output todo_output);

sub use_shells
{
    $dir = shift;
    use_terminals();
}

# A shell in which jobs can be stopped; others than sh: its command.
sub open_shell
{
    my ($name, $shell) = @_;
    my $variables = "TERM=screen-256color LANG=C.UTF-8 HOME=$dir LUMAT_NO_CUDA=1"
        . " LUMAT_SUGGESTIONS=off ASAN_OPTIONS=handle_segv=0 PS1='sh: ' lumat=" . quote($lumat);
    open_pane($name, "cd $dir; exec env -i $variables PATH=\$PATH " . ($shell // 'sh -i'));
    comes_true(sub { screen($name) ne '' });
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
    return child_of(ask(shift, '#{pane_pid}'), 'lumat');
}

sub signal_lumat
{
    my ($number, $name) = @_;
    my ($pid) = find_lumat($name);
    kill $number, $pid if $pid;
}

1;
