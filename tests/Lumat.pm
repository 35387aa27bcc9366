# What the tests in Perl share: the program, files, shells.
package Lumat;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Temp qw(tempdir);
use Time::HiRes qw(sleep time);

our @EXPORT = qw($lumat is_sanitized new_folder write_file read_file run_shell quote comes_true computes children awaits_child $patience);
our $patience = $ENV{LUMAT_PATIENCE} || 60;
our $lumat = abs_path($ENV{LUMAT} || 'build/lumat');
die "no program '" . ($ENV{LUMAT} || 'build/lumat') . "'\n" unless $lumat && -x $lumat;

# Whether the program looks after its memory itself: limits of that, and libraries
# in between, are not for it.
sub is_sanitized
{
    return read_file($lumat) =~ /__asan_init|__tsan_init/;
}

# A folder that goes when the test ends. Launchers of Open MPI have theirs within,
# where none of another test that ends takes it away.
sub new_folder
{
    my $folder = tempdir("lumat-$_[0]-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    $ENV{OMPI_MCA_orte_tmpdir_base} = $folder;
    return $folder;
}

# Text of characters as UTF-8, bytes as they are.
sub write_file
{
    my ($path, $text) = @_;
    utf8::encode($text) if utf8::is_utf8($text);
    open my $out, '>:raw', $path or die "$path: $!\n";
    print $out $text;
    close $out;
}

# Its bytes; none of what is not there.
sub read_file
{
    open my $in, '<:raw', shift or return '';
    local $/;
    return <$in> // '';
}

# A shell command in which $lumat is the program: its code, output, errors.
sub run_shell
{
    my $command = shift;
    local $ENV{lumat} = $lumat;
    system 'bash', '-c', "{ $command\n} >out 2>err </dev/null";
    return ($? >> 8, read_file('out'), read_file('err'));
}

# Waits until the test is true, at most so many seconds; returns whether it is.
sub comes_true
{
    my ($test, $seconds) = @_;
    my $end = time + ($seconds // $patience);
    until ($test->()) {
        return 0 if time > $end;
        sleep 0.01;
    }
    return 1;
}

# Waits until the process has computed for two ticks of the clock more: until it
# is in a loop.
sub computes
{
    my $pid = shift;
    my $ticks = sub { (split / /, read_file("/proc/$pid/stat") =~ s/.*\) //r)[11] // 0 };
    my $before = $ticks->();
    return comes_true(sub { $ticks->() >= $before + 2 });
}

# The processes that it started, [pid, state] of each, whose names begin so.
sub children
{
    my ($parent, $name) = (@_, '');
    my @found;
    for my $file (glob '/proc/[0-9]*/stat') {
        open my $in, '<', $file or next;
        my ($pid, $state, $its) = (<$in> // '') =~ /^(\d+) \($name.*\) (\S) (\d+)/ or next;
        push @found, [$pid, $state] if $its == $parent;
    }
    return sort { $a->[0] <=> $b->[0] } @found;
}

# Waits until the process waits for one that it started.
sub awaits_child
{
    my $pid = shift;
    return comes_true(sub {
        return read_file("/proc/$pid/stat") =~ /\) S / && read_file("/proc/$pid/task/$pid/children") =~ /\d/;
    });
}

# The text as one word for a shell.
sub quote
{
    my $text = shift;
    $text =~ s/'/'\\''/g;
    return "'$text'";
}

1;
