#!/usr/bin/perl
# The completion files for bash and zsh: every option of --help is in both,
# and bash completes what it should.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Test::More;

my $folder = "$FindBin::Bin/../../repl/completions";
my %file = (bash => "$folder/lumat.bash", zsh => "$folder/_lumat");

# --- the same options as --help -----------------------------------------------

my $help = `'$lumat' --help`;
my (%option, %takes);
while ($help =~ /^  (-\w)?(?:, )?(--[\w-]+)?(=\w+| (?!\s)\w+)?\s/mg) {
    $option{$_} = 1 for grep { defined } $1, $2;
    $takes{$2} = 1 if defined $2 && $3;
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

SKIP: {
    skip 'no zsh here', 1 if system('command -v zsh >/dev/null 2>&1') != 0;
    is(system('zsh', '-n', $file{zsh}), 0, 'zsh reads its file');
}

done_testing();
