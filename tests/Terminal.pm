# Terminals for the tests in Perl: panes of a tmux server of the test's own, in
# which programs run, are typed at and looked at. Nothing here waits for a time:
# what waits does so until something is true, or for $patience seconds.
package Terminal;
use strict;
use warnings;
use Exporter qw(import);
use IO::Handle;
use IPC::Open2 qw(open2);
use Lumat;
use POSIX ();

our @EXPORT = qw(
    use_terminals open_pane restart_pane close_pane resize_pane
    tmux ask screen_lines screen type paste send_bytes shows reads_lines input_of child_of
);
my ($folder, $socket, $servers);    # the server's; how many there were
my ($client, $to, $from);           # the one client's process, and its ends

# --- the server ----------------------------------------------------------------

# From now on there is a new server, with no pane but one that keeps it up; those
# of the one before are gone.
sub use_terminals
{
    stop_server();
    $folder //= new_folder('tmux');
    $ENV{TMUX_TMPDIR} = $folder;
    $socket = 'lumat-' . ++$servers;
    delete $ENV{TMUX};
    $SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
    my @options = map { (';', 'set-option', '-g', @$_) }
        ['status', 'off'], ['escape-time', '0'], ['history-limit', '100000'], ['remain-on-exit', 'on'];
    system('tmux', '-u', '-L', $socket, '-f', '/dev/null', 'new-session', '-d', '-s', 'keeper',
           '-x', 80, '-y', 24, 'exec sleep 100000', @options) == 0 or die "tmux does not start\n";
    $client = open2($from, $to, 'tmux', '-u', '-L', $socket, '-C', 'attach', '-f', 'no-output,ignore-size', '-t', 'keeper');
    binmode $_, ':utf8' for $from, $to;
    answer();
}

sub stop_server
{
    return unless defined $client;
    close $_ for $to, $from;
    system 'tmux', '-L', $socket, 'kill-server';
    kill 'TERM', $client;
    waitpid $client, 0;
    undef $client;
}

END
{
    my $code = $?;
    stop_server();
    $? = $code;
}

# What stands between a pair of marks that name one command.
sub answer
{
    my (@lines, $begun);
    while (defined(my $line = <$from>)) {
        chomp $line;
        if (!defined $begun) {
            $begun = $1 if $line =~ /^%begin (.*)/;
        } elsif ($line eq "%end $begun") {
            return @lines;
        } elsif ($line eq "%error $begun") {
            die "tmux: @lines\n";
        } else {
            push @lines, $line;
        }
    }
    die "tmux left\n";
}

# A command of tmux's in words; the lines that it answers. One client sends them
# all, which takes less time than a process for each.
sub tmux
{
    print $to join(' ', map { quote($_) } @_), "\n";
    $to->flush;
    return answer();
}

# A pane's name for tmux: that of its session, and not the beginning of another's
# or of a window's.
sub place
{
    return "=$_[0]:";
}

# What a format of tmux's says of the pane.
sub ask
{
    my ($pane, $format) = @_;
    return join "\n", tmux('display-message', '-p', '-t', place($pane), $format);
}

# --- panes ---------------------------------------------------------------------

# A pane in which the shell's command runs, of 80x24 or so many columns and rows.
sub open_pane
{
    my ($pane, $command, $width, $height) = @_;
    ($width, $height) = (80, 24) unless $width;
    tmux('new-session', '-d', '-s', $pane, '-x', $width, '-y', $height, $command);
    resize_pane($pane, $width, $height);
}

# Another command in place of what runs there, on an empty screen.
sub restart_pane
{
    my ($pane, $command) = @_;
    tmux('respawn-pane', '-k', '-t', place($pane), $command);
    tmux('clear-history', '-t', place($pane));
}

sub close_pane
{
    tmux('kill-session', '-t', '=' . shift);
}

# Columns and rows. Programs are told of a new size only so often: this returns
# once the terminal has it.
sub resize_pane
{
    my ($pane, $width, $height) = @_;
    tmux('resize-window', '-t', place($pane), '-x', $width, '-y', $height);
    my $tty = ask($pane, '#{pane_tty}');
    comes_true(sub {
        my $told = pack 'S4';
        open my $terminal, '<', $tty or return 1;
        ioctl $terminal, 0x5413, $told or return 1;    # TIOCGWINSZ
        return "$height $width" eq join ' ', (unpack 'S4', $told)[0, 1];
    });
}

# --- what is seen --------------------------------------------------------------

# Its rows, without blanks at their ends and empty ones below. Options are those
# of capture-pane: '-e' with colours, '-S', '-' with what scrolled away.
sub screen_lines
{
    my ($pane, @options) = @_;
    my @lines = tmux('capture-pane', '-p', @options, '-t', place($pane));
    s/\s+$// for @lines;
    pop @lines while @lines && $lines[-1] eq '';
    return @lines;
}

sub screen
{
    return join "\n", screen_lines(@_);
}

# Whether the screen comes to match; else what it showed is told.
sub shows
{
    my ($pane, $wanted) = @_;
    return 1 if comes_true(sub { screen($pane) =~ $wanted });
    Test::More::diag("wanted $wanted, the screen:\n" . screen($pane));
    return 0;
}

# --- what is typed -------------------------------------------------------------

# Bytes as they are; many at once by way of a file.
sub send_bytes
{
    my ($pane, $bytes) = @_;
    utf8::encode($bytes) if utf8::is_utf8($bytes);
    if (length $bytes < 300) {
        tmux('send-keys', '-t', place($pane), '-H', map { sprintf '%x', ord } split //, $bytes) if $bytes ne '';
    } else {
        write_file("$folder/sent", $bytes);
        tmux('load-buffer', "$folder/sent");
        tmux('paste-buffer', '-r', '-d', '-t', place($pane));
    }
}

# Texts, and keys as tmux names them: '<C-c>'.
sub type
{
    my ($pane, @keys) = @_;
    for my $key (@keys) {
        if ($key =~ /^<(.+)>$/) {
            tmux('send-keys', '-t', place($pane), $1);
        } else {
            send_bytes($pane, $key);
        }
    }
}

# In brackets, where the program has asked for them.
sub paste
{
    my ($pane, $text) = @_;
    write_file("$folder/pasted", $text);
    tmux('load-buffer', "$folder/pasted");
    tmux('paste-buffer', '-p', '-t', place($pane));
}

# --- the terminal's other side -------------------------------------------------

# Whether it gives whole lines to who reads it, as while an entry runs; a prompt
# takes each key. So does, for lack of others, one that is gone.
sub reads_lines
{
    my $modes = POSIX::Termios->new;
    open my $terminal, '<', ask(shift, '#{pane_tty}') or return 1;
    return !$modes->getattr(fileno $terminal) || $modes->getlflag & POSIX::ICANON;
}

# How many bytes are to be read there, of whole lines.
sub input_of
{
    my $count = pack 'i';
    open my $terminal, '<', ask(shift, '#{pane_tty}') or return 0;
    ioctl $terminal, 0x541b, $count or return 0;    # FIONREAD
    return unpack 'i', $count;
}

# A child of the process, its name beginning so, and the letter of its state; 0
# and nothing where there is none.
sub child_of
{
    my ($first) = children(@_);
    return $first ? @$first : (0, '');
}

1;
