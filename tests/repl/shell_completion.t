#!/usr/bin/perl
# The completion files for bash and zsh: every option of --help is in both,
# and bash completes what it should.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

my $lumat = abs_path($ENV{LUMAT} || 'build/lumat');
my $folder = dirname(abs_path(__FILE__)) . '/../../repl/completions';
my %file = (bash => "$folder/lumat.bash", zsh => "$folder/_lumat");

sub slurp
{
    open my $in, '<', shift or die "$!\n";
    local $/;
    return <$in>;
}

# --- the same options as --help -----------------------------------------------

my $help = `'$lumat' --help`;
my (%option, %takes);
while ($help =~ /^  (-\w)?(?:, )?(--[\w-]+)?(=\w+| (?!\s)\w+)?\s/mg) {
    $option{$_} = 1 for grep { defined } $1, $2;
    $takes{$2} = 1 if defined $2 && $3;
}
ok(keys %option > 12, 'the options of --help: ' . join ' ', sort keys %option);
for my $shell (sort keys %file) {
    my $text = slurp($file{$shell});
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

my $home = tempdir('lumat-completion-XXXXXX', TMPDIR => 1, CLEANUP => 1);
mkdir "$home/scripts";
for my $name ('run.lua', 'rest.txt', 'scripts/deep.lua') {
    open my $out, '>', "$home/$name" or die "$!\n";
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

is(offered('lumat --dev'), '--device=', 'an option');
is(offered('lumat --device='), 'cpu cuda', 'values behind =');
is(offered('lumat --device=c'), 'cpu cuda', 'values that begin so');
is(offered('lumat --device cp'), 'cpu', 'values as the next word');
is(offered('lumat --device=cuda:'), '', 'the number of a GPU, where there is one');
is(offered('lumat --color='), 'always auto never', 'when to use colours');
is(offered('lumat -q --color al'), 'always', 'the same, as the next word');
is(offered('lumat --no'), '--no-init', 'a flag');
like(offered('lumat -'), qr/^--\S+ .*-e .*-p /, 'all options');
is(offered('lumat '), 'run.lua scripts', 'scripts and folders');
is(offered('lumat -q --device cpu r'), 'run.lua', 'a script behind options');
is(offered('lumat --device=cuda:1 r'), 'run.lua', 'a script behind a value with a colon');
is(offered('lumat scripts/'), 'scripts/deep.lua', 'a script in a folder');
is(offered('lumat -e '), '', 'no code');
is(offered('lumat run.lua --dev'), '', 'what belongs to a script');

SKIP: {
    skip 'no zsh here', 1 if system('command -v zsh >/dev/null 2>&1') != 0;
    is(system('zsh', '-n', $file{zsh}), 0, 'zsh reads its file');
}

done_testing();
