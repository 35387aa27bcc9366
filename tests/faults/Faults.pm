# What the tools share that let something fail and look at what comes of it:
# a seed, a time, and a line in the end. SEED=n chooses other points, SECONDS=n
# tries more of them, a tool; in the ordinary tests both are fixed.
package Faults;
use strict;
use warnings;
use Exporter qw(import);
use Lumat;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

our @EXPORT = qw(begin_faults is_time_left shuffled outcome_of crashed bad_point end_faults);
my $seed = $ENV{SEED} || 1;
my ($name, $end, @bad);

# From here on the tool has its time, in a new folder.
sub begin_faults
{
    ($name, my $usual) = @_;
    my $folder = new_folder($name);
    chdir $folder or die "$folder: $!\n";
    delete @ENV{qw(COLUMNS NO_COLOR LUMAT_INIT XDG_STATE_HOME XDG_CONFIG_HOME LUMAT_WORKER)};
    @ENV{qw(HOME LUMAT_NO_CUDA LC_ALL)} = ($folder, 1, 'C.UTF-8');
    srand $seed;
    $end = time + ($ENV{SECONDS} || $usual);
}

sub is_time_left { return time < $end }

sub shuffled
{
    my @list = @_;
    for my $i (reverse 1 .. $#list) {
        my $j = int rand($i + 1);
        @list[$i, $j] = @list[$j, $i];
    }
    return @list;
}

# How a command ends ("exit 0", "signal 11", "hangs"), its output and errors.
sub outcome_of
{
    my ($variables, @command) = @_;
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        @ENV{keys %$variables} = values %$variables;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', 'out';
        open STDERR, '>', 'err';
        exec 'timeout', '-k', 1, 120, @command or POSIX::_exit(126);
    }
    waitpid $pid, 0;
    my $code = $? >> 8;
    my $how = $? & 127 ? 'signal ' . ($? & 127) : $code == 124 || $code == 137 ? 'hangs' : "exit $code";
    $how = 'signal ' . ($code - 128) if $code > 128 && $code < 160 && $code != 130 && $code != 137;
    return ($how, read_file('out'), read_file('err'));
}

# Is that the end of a program that did not end itself?
sub crashed { return $_[0] =~ /^signal|^hangs/ || $_[1] =~ /AddressSanitizer|runtime error:/ }

sub bad_point { push @bad, join ' ', @_ }

# One line for the tool; what went wrong, with what repeats it.
sub end_faults
{
    my $tried = shift;
    chdir '/';
    my $line = "$name: $tried, " . @bad . " bad; seed $seed";
    ok(!@bad, $line);
    diag($line) if $ENV{SECONDS};
    splice @bad, 20 if @bad > 20;
    diag($_) for @bad;
    done_testing();
}

1;
