#!/usr/bin/perl
# The completion files for bash and zsh: every option of --help is in both,
# and both shells complete what they should.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Shell;
use Test::More;

my $folder = "$FindBin::Bin/../../repl/completions";
my %file = (bash => "$folder/lumat.bash", zsh => "$folder/_lumat");

# --- the same options as --help -----------------------------------------------

my $help = `'$lumat' --help`;
my (%option, %takes);
while ($help =~ /^  (-\w)?(?:, )?(--[\w-]+)?(=\w+|\[=\w+\]| (?!\s)\w+)?\s/mg) {
    $option{$_} = 1 for grep { defined } $1, $2;
    $takes{$2} = 1 if defined $2 && $3 && $3 !~ /^\[/;
}
ok(keys %option > 12, 'the options of --help: ' . join ' ', sort keys %option);
for my $shell (sort keys %file) {
    my $text = read_file($file{$shell});
    for my $option (sort keys %option) {
        like($text, qr/(?<![\w-])\Q$option\E(?![\w-])/, "$shell knows $option");
        like($text, qr/\Q$option\E=/, "$shell knows that $option takes a value")
            if $takes{$option};
    }
    my %known = map { $_ => 1 } $text =~ /(?<![\w-])(--[a-z][\w-]+)/g;
    for my $option (sort keys %known) {
        ok($option{$option}, "$option of $shell is an option");
    }
}

# --- what bash offers -----------------------------------------------------------

my $home = new_folder('completion');
mkdir "$home/scripts";
for my $name ('run.lua', 'rest.txt', 'scripts/deep.lua') {
    write_file("$home/$name", '');
}

# Splits a line as bash does, with the word breaks it has by default.
sub offered
{
    my $line = shift;
    my @words = grep { /\S/ } split /(\s+|[=:])/, $line;
    push @words, '' if $line =~ /\s$/ || @words < 2;
    my $words = join ' ', map { "'$_'" } @words;
    open my $pipe, '-|', 'bash', '--norc', '-c', <<"END" or die "bash: $!\n";
cd '$home' && . '$file{bash}' || exit
compopt() { :; }
COMP_WORDS=($words) COMP_CWORD=$#words COMP_LINE='$line'
COMP_POINT=\${#COMP_LINE}
_lumat lumat "\${COMP_WORDS[COMP_CWORD]}"
printf '%s\\n' "\${COMPREPLY[@]}"
END
    chomp(my @offers = <$pipe>);
    close $pipe;
    return join ' ', sort grep { !/^(cuda:)?\d+$/ } @offers;
}

# What is offered behind a line.
my @cases = (
    ['lumat --dev', '--device=', 'an option'],
    ['lumat --device=', 'cpu cuda', 'values behind ='],
    ['lumat --device=c', 'cpu cuda', 'values that begin so'],
    ['lumat --device cp', 'cpu', 'values as the next word'],
    ['lumat --device=cuda:', '', 'the number of a GPU, where there is one'],
    ['lumat --color=', 'always auto never', 'when to use colours'],
    ['lumat -q --color al', 'always', 'the same, as the next word'],
    ['lumat --no', '--no-init', 'a flag'],
    ['lumat ', 'run.lua scripts', 'scripts and folders'],
    ['lumat -q --device cpu r', 'run.lua', 'a script behind options'],
    ['lumat --device=cuda:1 r', 'run.lua', 'a script behind a value with a colon'],
    ['lumat scripts/', 'scripts/deep.lua', 'a script in a folder'],
    ['lumat -e ', '', 'no code'],
    ['lumat run.lua --dev', '', 'what belongs to a script'],
);
is(offered($_->[0]), $_->[1], $_->[2]) for @cases;
like(offered('lumat -'), qr/^--\S+ .*-e .*-p /, 'all options');

# --- what zsh offers, in a terminal --------------------------------------------

# What stands on a clear screen after the line, Tab, and what is typed then.
sub completes
{
    my ($line, $wanted, $name, @then) = @_;
    (my $shown = $line) =~ s/ $//;
    type('z', '<C-u>', '<C-l>', $line, '<Tab>', @then);
    ok(shows('z', qr/^z: \Q$shown\E ?$wanted$/), $name);
}

SKIP: {
    skip 'no zsh here', 1 if system('command -v zsh >/dev/null 2>&1') != 0;
    mkdir "$home/functions";
    write_file("$home/functions/_lumat", read_file($file{zsh}));
    use_shells($home);
    open_shell('z', 'zsh -f -i');
    type('z', 'PS1="z: "; fpath=(~/functions $fpath); autoload -Uz compinit; compinit -u; clear', '<Enter>');
    shows('z', qr/^z:$/);
    completes('lumat --', qr/\n--bytecode +-- let load take.*\n--device +-- where.*/s, 'zsh lists the options');
    completes('lumat --dev', qr/ice=/, 'ends one');
    completes('lumat --device=cp', qr/u/, 'a value behind =');
    completes('lumat --device cp', qr/u/, 'a value as the next word');
    completes('lumat -q --color ', qr/\nalways +auto +never/, 'when to use colours');
    completes('lumat ', qr/\nfunctions\/ +run\.lua +scripts\//, 'scripts and folders');
    completes('lumat -q --device cpu r', qr/un\.lua/, 'a script behind options');
    completes('lumat scripts/', qr/deep\.lua/, 'a script in a folder');
    completes('lumat run.lua res', qr/t\.txt/, 'any file for a script');
    completes('lumat - ', qr/\nfunctions\/ +rest\.txt.*/, 'also for one from standard input');
    completes('lumat run.lua --dev', qr/!/, 'and no options of ours', '!');
    completes('lumat -e ', qr/!/, 'no code', '!');
}

done_testing();
