# What the tests in Perl share: the program, files, shells, a terminal.
package Lumat;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Temp qw(tempdir);
use IO::Handle;
use IPC::Open2 qw(open2);

our @EXPORT = qw($lumat is_sanitized new_folder write_file read_file run_shell quote tmux use_tmux tmux_client);
our $lumat = abs_path($ENV{LUMAT} || 'build/lumat');
my ($socket, $servers);    # of tmux's server, and how many there were
die "no program '" . ($ENV{LUMAT} || 'build/lumat') . "'\n" unless $lumat && -x $lumat;

# Whether the program looks after its memory itself: limits of that, and libraries
# in between, are not for it.
sub is_sanitized
{
    return read_file($lumat) =~ /__asan_init|__tsan_init/;
}

# A folder that goes when the test ends.
sub new_folder
{
    return tempdir("lumat-$_[0]-XXXXXX", TMPDIR => 1, CLEANUP => 1);
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

# The text as one word for a shell.
sub quote
{
    my $text = shift;
    $text =~ s/'/'\\''/g;
    return "'$text'";
}

# The lines that tmux answers.
sub tmux
{
    open my $pipe, '-|:utf8', 'tmux', '-u', '-L', $socket, @_ or die "tmux: $!\n";
    my @lines = <$pipe>;
    close $pipe or die "tmux @_ failed\n";
    chomp @lines;
    return @lines;
}

# A client of tmux's that is there for many commands, which takes less time than
# one for each: a function that sends it a line and returns what is answered.
sub tmux_client
{
    my $pid = open2(my $out, my $in, 'tmux', '-u', '-L', $socket, '-C', 'attach', '-f', 'no-output,ignore-size', @_);
    binmode $out, ':utf8';
    my $answer = sub {
        my @lines;
        while (defined(my $line = <$out>)) {
            chomp $line;
            next if $line =~ /^%begin / && (@lines = (), 1);
            return @lines if $line =~ /^%end /;
            die "tmux: @lines\n" if $line =~ /^%error /;
            push @lines, $line;
        }
        die "tmux left\n";
    };
    $answer->();
    return sub { print $in shift, "\n"; $in->flush; return $answer->() };
}

# From now on tmux's server is a new one.
sub use_tmux
{
    my $name = shift;
    stop_tmux();
    $ENV{TMUX_TMPDIR} = new_folder('tmux') unless $servers;
    delete $ENV{TMUX};
    $socket = "lumat-$name-$$-" . ++$servers;
    $SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
}

sub stop_tmux
{
    system "tmux -L $socket kill-server 2>/dev/null" if defined $socket;
    undef $socket;
}

END
{
    my $code = $?;
    stop_tmux();
    $? = $code;
}

1;
