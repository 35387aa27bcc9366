#!/usr/bin/perl
# Ctrl-C while a matrix is on its way to the processes of a pool, or back: the
# prompt comes back, the processes stay, and what they hold is whole.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../..";
use IO::Handle;
use Lumat;
use Test::More;
use Time::HiRes qw(sleep);
$SIG{INT} = 'DEFAULT'; # a background job inherits it ignored
alarm 300; # whatever is wrong, this test ends

my ($folder) = $lumat =~ m{^(.*/)[^/]*$};
my $dir = new_folder('interrupts');
chdir $dir or die "$dir: $!\n";
END { chdir '/' }
$ENV{LUMAT_NO_CUDA} = 1;

# A prompt whose entries are what is printed to the handle: its pid, and that.
sub start
{
    pipe my $reads, my $writes or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '<&', $reads or die $!;
        open STDOUT, '>', 'said' or die $!;
        open STDERR, '>&', \*STDOUT;
        close $writes;
        exec $lumat, '-q', '-i', '--no-init', '--device', 'cpu';
    }
    $writes->autoflush;
    return ($pid, $writes);
}

# By the name of its launcher what starts a pool of two, and the matrix.
my %pools = (local => 'pool{ranks = 2, launcher = "local"} ');
$pools{mpirun} = 'pool{ranks = 2} ' if -x "${folder}lumat-worker";
my $matrix = 'A = rand(2000, 2000, {seed = 1}) D = spread(A)';

# What goes on until it is stopped.
my %ways = (to => 'local E = spread(A)', from => 'local B = D:gather()', both => 'local B = spread(A.T):gather()');

for my $launcher (sort keys %pools) {
    for my $way (sort keys %ways) {
        my ($pid, $entries) = start();
        print $entries "$pools{$launcher}\n$matrix\n";
        print $entries "for i = 1, math.huge do $ways{$way} if i == 3 then io.open('up', 'w'):close() end end\n";
        ok(comes_true(sub { -e 'up' }), "$launcher, $way: elements are on their way");
        sleep 0.013 * (1 + length $way); # somewhere in the midst of one
        kill 'INT', $pid;
        ok(comes_true(sub { read_file('said') =~ /interrupted/ }), "$launcher, $way: it is stopped");
        print $entries "D:gather() == A and spread(A):gather() == A and pool.count() == 2\n";
        close $entries;
        waitpid $pid, 0;
        like(read_file('said'), qr/interrupted(?!.*(?:lost|pool\.restart)).*\btrue$/ms, "$launcher, $way: the processes go on, and have what they had");
        unlink 'up';
    }
}
done_testing();
