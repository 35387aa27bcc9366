#!/usr/bin/perl
# The program is killed while it saves: the file is the old one or the new one,
# whole, and the next save takes away what the killed one left.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..", $FindBin::Bin;
use Faults;
use Lumat;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

begin_faults('kills', 5);
my %size = ('k.npy' => 700, 'k.csv' => 300, 'k.lum' => 700);
my ($tried, $written, %fresh, %took) = (0, 0);

# Lua that saves a matrix of that number.
sub saving
{
    my ($name, $number) = @_;
    my $save = $name eq 'k.lum' ? "A = A save_session '$name'" : "save(A, '$name')";
    return "A = full($size{$name}, $size{$name}, $number) $save";
}

# The number that the file is full of.
sub number_in
{
    my $name = shift;
    my $load = $name eq 'k.lum' ? "load_session '$name'" : "A = load '$name'";
    my ($how, $out, $err) = outcome_of({}, $lumat, '--no-init', '-e',
        "$load assert(A.rows == $size{$name} and A.cols == $size{$name} and A:min() == A:max()) print(A:max() // 1)");
    return $how eq 'exit 0' && $out =~ /^(\d+)/ ? $1 : "$how: $err";
}

for my $name (sort keys %size) {
    my $start = time;
    my ($how, undef, $err) = outcome_of({}, $lumat, '--no-init', '-e', saving($name, 0));
    bad_point($name, 'without a fault:', $how, $err) if $how ne 'exit 0';
    $took{$name} = time - $start;
    $fresh{$name} = 0;
}
while (is_time_left()) {
    my ($name) = shuffled(sort keys %size);
    my $number = ++$tried;
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDERR, '>', '/dev/null';
        exec $lumat, '--no-init', '-e', saving($name, $number) or POSIX::_exit(126);
    }
    sleep rand $took{$name};
    kill 'KILL', $pid;
    waitpid $pid, 0;
    my $now = number_in($name);
    bad_point("$name, kill $number: it has $now, not $fresh{$name} or $number") unless $now eq $fresh{$name} || $now eq $number;
    $written++ if $now eq $number;
    $fresh{$name} = $now if $now =~ /^\d+$/;
}
outcome_of({}, $lumat, '--no-init', '-e', 'save(ones(2, 2), "last.npy")');
bad_point('left behind:', $_) for glob '.lumat-*';
end_faults("$tried kills, $written too late");
