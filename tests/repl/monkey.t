#!/usr/bin/perl
# A random user at the prompt, in a terminal (tmux). After each burst of what
# Monkey.pm thinks of, Ctrl-C must bring back a prompt that answers, in the same
# process, and the history must have grown by what ran. Now and then the session
# ends, by request or by a signal: the terminal must be as it was.
#
#   LUMAT_MONKEY=300 tests/repl/monkey.t    so many bursts (14)
#   LUMAT_SEED=7                            the first one's seed (1)
#   LUMAT_BURST=file                        one burst, of steps as a failure shows them
use strict;
use warnings;
$SIG{INT} = 'DEFAULT';
use FindBin;
use lib "$FindBin::Bin/..", $FindBin::Bin;
use Lumat;
use POSIX ();
use Monkey qw(pick random_burst show_step read_step);
use Test::More;
use Time::HiRes qw(sleep time);

binmode Test::More->builder->$_, ':utf8' for qw(output failure_output todo_output);
my $bursts = $ENV{LUMAT_MONKEY} || 14;
my $seed = $ENV{LUMAT_SEED} || 1;
my $patience = $ENV{LUMAT_PATIENCE} || 20;
my $dir = new_folder('monkey');
my $file = "$dir/.local/state/lumat/history";
use_tmux('monkey');

# --- what there is around it ---------------------------------------------------

write_file("$dir/.inputrc", <<'END');
$if lumat
"\C-xv": vi-editing-mode
set keymap vi-insert
"\C-xm": emacs-editing-mode
$endif
END
write_file("$dir/script.lua", "print(...) x = 1\n");
write_file("$dir/fails.lua", "local t\nfor i = 1, 3 do\n  t.x = i\nend\n");
write_file("$dir/$_", "garbage\0\xff\n") for 'bad.lum', 'with blank.lum';
write_file("$dir/data.csv", "1,2\n3,x\n");

# The editor does what the file beside it says.
my @edits = (
    'exit 1', 'kill -9 $$', ':', ': >"$1"', 'rm "$1"', 'rm "$1"; mkdir "$1"', 'printf "a\0b\n\n" >"$1"',
    'head -c 3000 /dev/urandom >"$1"', 'printf "x = 1\ny = {\n" >"$1"', 'printf ":who\nx = 1\n:keys\n" >"$1"',
    'stty raw -echo', 'kill -TSTP 0',
);
mkdir "$dir/bin";
for my $tool (qw(stty rm mkdir head)) {
    my ($path) = grep { -x } map { "$_/$tool" } split /:/, $ENV{PATH};
    symlink $path, "$dir/bin/$tool";
}
write_file("$dir/editor", "#!/bin/sh\n. $dir/editing\n");
chmod 0755, "$dir/editor";

my $variables = "TERM=screen-256color LANG=C.UTF-8 HOME=$dir PATH=$dir/bin LUMAT_NO_CUDA=1 EDITOR=$dir/editor TMPDIR=$dir"
    . " ASAN_OPTIONS=log_path=$dir/report:exitcode=99:detect_leaks=" . ($ENV{LUMAT_LEAKS} || 0)
    . ":allocator_may_return_null=1 UBSAN_OPTIONS=log_path=$dir/report:print_stacktrace=1";

# --- the terminal --------------------------------------------------------------

my ($shell, $program, $size, $tty) = (0, 0, '80x24');
my $ask;    # tmux, a line at a time

sub see
{
    my ($at) = $ask->('display-message -p -t s "#{cursor_x}"');
    my @lines = $ask->('capture-pane -p -t s');
    s/\s+$// for @lines;
    pop @lines while @lines && $lines[-1] eq '';
    return (join("\n", @lines), $at);
}

# Since the session began.
sub row_of_cursor
{
    my ($above, $row) = split / /, ($ask->('display-message -p -t s "#{history_size} #{cursor_y}"'))[0];
    return $above + $row;
}

sub line_of_cursor
{
    my ($row) = $ask->('display-message -p -t s "#{cursor_y}"');
    return ($ask->('capture-pane -p -t s'))[$row] // '';
}

sub wait_until
{
    my ($test, $seconds) = @_;
    my $end = time + ($seconds // $patience);
    until ($test->()) {
        return 0 if time > $end;
        sleep 0.01;
    }
    return 1;
}

# Its bytes, whatever they are.
sub send_bytes
{
    my $bytes = shift;
    if (length $bytes < 300) {
        $ask->(join ' ', 'send-keys -t s -H', map { sprintf '%x', ord } split //, $bytes);
    } else {
        write_file("$dir/sent", $bytes);
        $ask->("load-buffer $dir/sent");
        $ask->('paste-buffer -r -d -t s');
    }
}

# Programs are told of new sizes only so often.
sub is_size_known
{
    my ($width, $height) = split /x/, $size;
    my $told = pack 'S4';
    open my $terminal, '<', $tty or return 1;
    ioctl $terminal, 0x5413, $told or die "TIOCGWINSZ: $!\n";
    return "$height $width" eq join ' ', (unpack 'S4', $told)[0, 1];
}

sub resize
{
    my $new = shift;
    return if $new eq $size;
    $size = $new;
    my ($width, $height) = split /x/, $size;
    $ask->("resize-window -t s -x $width -y $height");
    wait_until(\&is_size_known);
}

# Until nothing moves, or it is clear that something goes on.
sub settle
{
    my ($last, $still) = ('', 0);
    wait_until(sub {
        my $now = join '|', see();
        $still = $now eq $last ? $still + 1 : 0;
        $last = $now;
        return $still >= 3;
    }, 1);
}

# --- the process ---------------------------------------------------------------

# Its state, its group and the one that has the terminal.
sub process
{
    open my $in, '<', '/proc/' . shift . '/stat' or return ('gone', 0, -1);
    my ($state, $group, $owner) = (<$in> // '') =~ /\) (\S) \d+ (\d+) \d+ \d+ (-?\d+)/ or return ('gone', 0, -1);
    return ($state =~ /[ZX]/ ? 'gone' : $state eq 'T' ? 'stopped' : $state eq 'S' ? 'sleeps' : 'runs', $group, $owner);
}

sub state
{
    return (process($program))[0];
}

sub has_terminal
{
    my ($state, $group, $owner) = process(shift);
    return $group == $owner;
}

sub find_program
{
    for my $stat (glob '/proc/[0-9]*/stat') {
        open my $in, '<', $stat or next;
        my ($pid, $parent) = (<$in> // '') =~ /^(\d+) \(lumat.*\) \S (\d+)/ or next;
        return $program = $pid if $parent == $shell;
    }
    return 0;
}

# What was typed ahead, the shell gets.
sub comes_to_shell
{
    return wait_until(sub {
        my $row = row_of_cursor();
        send_bytes("\x03");
        return wait_until(sub { line_of_cursor() =~ /^sh:\s*$/ && row_of_cursor() > $row }, 0.3);
    });
}

# In front of the shell again, which writes down how it ends.
sub go_on
{
    wait_until(sub { has_terminal($shell) }) && comes_to_shell() or return 0;
    send_bytes("fg; echo \$? >code\r");
    return wait_until(sub { state() eq 'gone' || has_terminal($program) }, 1);
}

# Whether it came to what the test says, though it may have to be gone on with.
sub comes_to
{
    my ($test, $seconds) = @_;
    return wait_until(sub { go_on() if state() eq 'stopped'; $test->() }, $seconds);
}

# While something runs the terminal takes some 4,000 bytes, and then not even
# Ctrl-C.
sub reads_keys
{
    my $modes = POSIX::Termios->new;
    open my $terminal, '<', $tty or return 0;
    return !($modes->getattr(fileno $terminal) && $modes->getlflag & POSIX::ICANON);
}

my $killed_by = '';    # a signal of ours

sub play
{
    my $step = shift;
    return if state() eq 'gone';
    return resize($step) if $step =~ /^\d+x\d+$/;
    return settle() if $step eq 'wait';
    return write_file("$dir/editing", $edits[$1] . "\n") if $step =~ /^editor (\d+)$/;
    if ($step =~ /^(?:KILL|TERM|HUP)$/) {
        kill $killed_by = $step, $program;
        comes_to(sub { state() eq 'gone' });
    } elsif (length $step < 3000 || wait_until(\&reads_keys, 0.5)) {
        send_bytes($step);
        comes_to(sub { state() eq 'gone' }, 0.1) if $step eq "\x1a";
    }
}

# --- what has to hold ----------------------------------------------------------

my $kept = '';    # the history so far

# Why the history is not what it has to be once the entry ran, or nothing.
sub history_fault
{
    my $entry = shift;
    my $now = read_file($file);
    my @entries = map { s/^#\d+\n//r } split /^(?=#\d)/m, substr $now, length $kept;
    my $lost = substr($now, 0, length $kept) ne $kept;
    $kept = $now;
    return 'the history lost what it had' if $lost;
    return 'the history has a zero' if $now =~ /\0/;
    return 'the history has an empty entry' if grep { !/[^ \t\n]/ } @entries;
    return "the history does not end in $entry" if $entries[-1] ne "$entry\n";
    for (1 .. $#entries) {
        return "the history repeats $entries[$_]" if $entries[$_] eq $entries[$_ - 1];
    }
    return undef;
}

# An empty prompt, and it waits for keys. (A signal that is under way wakes it.)
sub is_at_prompt
{
    my ($text, $at) = see();
    return 0 unless $text =~ /^(lumat(?:\[\S+\])?>)\z/m && $at == 1 + length $1;
    return 0 unless reads_keys() && state() eq 'sleeps';
    return "$text|$at" eq join('|', see()) && state() eq 'sleeps';
}

# Ctrl-C until there is a new prompt.
sub comes_back
{
    resize('80x24');
    return comes_to(sub {
        return 1 if state() eq 'gone';
        my $row = row_of_cursor();
        send_bytes("\x03") if state() ne 'stopped';
        return wait_until(sub { is_at_prompt() && row_of_cursor() > $row }, 0.5);
    });
}

my $slowest = 0;

# Why it does not answer, or nothing.
sub answer_fault
{
    my $entry = 'io.write("alive", 6*' . ++(our $asked) . ', "\n");';
    my $wanted = qr/(?:^|\n)lumat(\[\S+\])?> \Q$entry\E\nalive@{[6 * $asked]}\nlumat(\[\S+\])?>\z/;
    my $began = time;
    send_bytes("$entry\r");
    wait_until(sub { (see())[0] =~ $wanted }) or return 'it does not answer';
    $slowest = time - $began if time - $began > $slowest;
    return history_fault($entry);
}

# The terminal's settings and what tmux knows of it; and whether what is pasted
# gets brackets.
sub terminal_state
{
    my $mark = ++(our $states);
    resize('80x24');
    send_bytes("printf '\\33[H\\33[2J'; stty -a >stty.$mark; IFS= read -r x; echo \"<\$x>\" >paste.$mark\r");
    wait_until(sub { -s "$dir/stty.$mark" });
    tmux('set-buffer', "pasted\n");
    tmux('paste-buffer', '-p', '-t', 's');
    wait_until(sub { -s "$dir/paste.$mark" });
    my @flags = tmux('display-message', '-p', '-t', 's', join ' ', map { "$_=#{$_}" }
        qw(alternate_on cursor_flag insert_flag keypad_cursor_flag keypad_flag mouse_any_flag
           origin_flag wrap_flag scroll_region_upper scroll_region_lower));
    return join "\n", read_file("$dir/stty.$mark"), read_file("$dir/paste.$mark"), @flags;
}

my $before;    # what it was then

# Why what is gone should not have gone so, or nothing.
sub exit_fault
{
    return undef if $killed_by eq 'KILL';
    my %codes = ('' => 0, TERM => 143, HUP => 129);
    my $code = '';
    wait_until(sub { ($code = read_file("$dir/code")) =~ /^\d+\n/ && $code != 148 && has_terminal($shell) })
        or return 'the shell has no terminal';
    return 'it ended with ' . $code if $code != $codes{$killed_by} && $code != 0;
    comes_to_shell() or return 'the shell does not answer';
    my $after = terminal_state();
    return "the terminal was\n$before\nand is\n$after" if $after ne $before;
    return undef;
}

# --- sessions ------------------------------------------------------------------

sub open_shell
{
    tmux('respawn-pane', '-k', '-t', 's', "cd $dir; exec /usr/bin/env -i $variables PS1='sh: ' lumat=" . quote($lumat) . ' /bin/sh -iI');
    tmux('clear-history', '-t', 's');
    wait_until(sub { line_of_cursor() =~ /^sh:\s*$/ });
    ($shell, $tty) = tmux('display-message', '-p', '-t', 's', "#{pane_pid}\n#{pane_tty}");
    $before = terminal_state();
}

sub start
{
    my $options = shift;
    open_shell();
    unlink "$dir/code";
    ($kept = '', unlink $file) if length $kept > 1e6;
    send_bytes("printf '\\33[H\\33[2J'; \"\$lumat\" -q --no-init $options; echo \$? >code\r");
    wait_until(sub { find_program() && is_at_prompt() }) or die "there is no prompt:\n", (see())[0], "\n";
}

# Returns its fault, or nothing.
sub play_burst
{
    my @steps = @_;
    $killed_by = '';
    play($_) for @steps;
    return 'there is no prompt' unless comes_back();
    my $fault = state() eq 'gone' ? exit_fault() : answer_fault();
    ($fault) = ("it wrote a report", $fault) if !$fault && glob "$dir/report*";
    return $fault;
}

sub report
{
    my ($number, $fault, @steps) = @_;
    my ($screen) = see();
    diag("burst $number: $fault; its steps:");
    diag(join "\n", map { show_step($_) } @steps);
    diag("the screen:\n$screen");
    diag("$_:\n" . read_file($_)) for glob "$dir/report*";
    unlink glob "$dir/report*";
}

sub run
{
    my $number = shift;
    srand $number;
    my $options = pick('', '', '--color=never', '--safe', '--strict');
    my @steps = $ENV{LUMAT_BURST} ? map { read_step($_) } split /\n/, read_file($ENV{LUMAT_BURST})
        : ('editor ' . int rand @edits, random_burst(1 + int rand 10));
    start($options) if !$program || state() eq 'gone';
    write_file("$ENV{LUMAT_STEPS}", join "\n", map { show_step($_) } @steps) if $ENV{LUMAT_STEPS};
    my $fault = play_burst(@steps);
    return 1 unless $fault;
    report($number, $fault, @steps);
    $program = 0;
    return 0;
}

my @options = map { ('set-option', '-g', @$_, ';') }
    ['status', 'off'], ['escape-time', '0'], ['history-limit', '100000'], ['remain-on-exit', 'on'];
tmux('-f', '/dev/null', 'start-server', ';', @options, 'new-session', '-d', '-s', 's', '-x', 80, '-y', 24, 'sleep 1000');
$ask = tmux_client('-t', 's');
$bursts = 1 if $ENV{LUMAT_BURST};
ok(run($_), "burst $_") for $seed .. $seed + $bursts - 1;
note(sprintf 'the slowest answer took %.1f s', $slowest);
done_testing();
