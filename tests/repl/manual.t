#!/usr/bin/perl
# The manual as the program prints it: that roff takes it, and that it says
# what --help and the commands say.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Test::More;

my $dir = new_folder('manual');
chdir $dir or die "$dir: $!\n";
delete $ENV{COLUMNS};
@ENV{qw(HOME LUMAT_NO_CUDA LANG LC_ALL)} = ($dir, 1, 'C.UTF-8', 'C.UTF-8');

sub output
{
    my $command = shift;
    local $ENV{lumat} = $lumat;
    return scalar `$command`;
}

my %form = map { $_ => output("\$lumat --manual=$_") } qw(text markdown roff);
for my $name (sort keys %form) {
    is($?, 0, "--manual=$name");
    cmp_ok(length $form{$name}, '>', 20000, "$name has much to say");
}
like(output('$lumat --manual=pdf 2>&1'), qr/text, markdown or roff, not 'pdf'/, 'no other form');
is($? >> 8, 2, 'which is a wrong command line');
is(output('$lumat --manual=roff -e "error()" && echo good | tail -1'),
   $form{roff} . "good\n", 'nothing else happens');

my $plain = $form{text};
$plain =~ s/\s+/ /g;
for my $line (split /\n/, output('$lumat --help')) {
    my ($option, $help) = $line =~ /^  (\S.*?)  +(\S.*)$/ or next;
    ok(index($plain, "$option $help") >= 0, "the manual has $option");
}
my $listed = output(q(printf '?commands\n' | $lumat -q -i));
for my $command ($listed =~ /^  :(\w+)/mg) {
    like($form{roff}, qr/^\\fB:$command\b/m, "the manual has :$command");
}
cmp_ok(scalar(() = $listed =~ /^  :\w+/mg), '>', 10, 'commands were listed');

SKIP: {
    skip 'no groff here', 3 if system('groff --version >/dev/null 2>&1') != 0;
    open my $out, '>', 'lumat.1' or die $!;
    print $out $form{roff};
    close $out;
    is(output('groff -man -Tutf8 -ww lumat.1 2>&1 >page'), '', 'groff has nothing to complain of');
    my $page = output("cat page");
    $page =~ s{.\x08|\x1b\[[0-9;]*m}{}g;
    like($page, qr/^LUMAT\(1\)\s+User Commands\s+LUMAT\(1\)$/m, 'it is a page of section 1');
    like($page, qr/A\["1:2, end"\]/, 'code is as it is typed');
}
done_testing();
