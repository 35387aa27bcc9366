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
use Monkey qw(pick random_burst show_step read_step);
use Terminal;
use Test::More;
use Time::HiRes qw(time);

binmode Test::More->builder->$_, ':utf8' for qw(output failure_output todo_output);
my $bursts = $ENV{LUMAT_MONKEY} || 14;
my $seed = $ENV{LUMAT_SEED} || 1;
my $dir = new_folder('monkey');
my $file = "$dir/.local/state/lumat/history";

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

my ($shell, $program, $size) = (0, 0, '80x24');

sub see
{
    my $at = ask('s', '#{cursor_x}');
    return (screen('s'), $at);
}

# Since the session began.
sub row_of_cursor
{
    my ($above, $row) = split / /, ask('s', '#{history_size} #{cursor_y}');
    return $above + $row;
}

sub line_of_cursor
{
    my $row = ask('s', '#{cursor_y}');
    return (screen_lines('s'))[$row] // '';
}

sub resize
{
    my $new = shift;
    return if $new eq $size;
    $size = $new;
    resize_pane('s', split /x/, $size);
}

# Until nothing moves, or it is clear that something goes on.
sub settle
{
    my ($last, $still) = ('', 0);
    comes_true(sub {
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

# What was typed ahead, the shell gets.
sub comes_to_shell
{
    return comes_true(sub {
        my $row = row_of_cursor();
        send_bytes('s', "\x03");
        return comes_true(sub { line_of_cursor() =~ /^sh:\s*$/ && row_of_cursor() > $row }, 0.3);
    });
}

# In front of the shell again, which writes down how it ends.
sub go_on
{
    comes_true(sub { has_terminal($shell) }) && comes_to_shell() or return 0;
    send_bytes('s', "fg; echo \$? >code\r");
    return comes_true(sub { state() eq 'gone' || has_terminal($program) }, 1);
}

# Whether it came to what the test says, though it may have to be gone on with.
sub comes_to
{
    my ($test, $seconds) = @_;
    return comes_true(sub { go_on() if state() eq 'stopped'; $test->() }, $seconds);
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
        # a terminal that gives lines takes some 4,000 bytes, and then not even Ctrl-C
    } elsif (length $step < 3000 || comes_true(sub { !reads_lines('s') }, 0.5)) {
        send_bytes('s', $step);
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
    return 0 unless !reads_lines('s') && state() eq 'sleeps';
    return "$text|$at" eq join('|', see()) && state() eq 'sleeps';
}

# Ctrl-C until there is a new prompt.
sub comes_back
{
    resize('80x24');
    return comes_to(sub {
        return 1 if state() eq 'gone';
        my $row = row_of_cursor();
        send_bytes('s', "\x03") if state() ne 'stopped';
        return comes_true(sub { is_at_prompt() && row_of_cursor() > $row }, 0.5);
    });
}

my $slowest = 0;

# Why it does not answer, or nothing.
sub answer_fault
{
    my $entry = 'io.write("alive", 6*' . ++(our $asked) . ', "\n");';
    my $wanted = qr/(?:^|\n)lumat(\[\S+\])?> \Q$entry\E\nalive@{[6 * $asked]}\nlumat(\[\S+\])?>\z/;
    my $began = time;
    send_bytes('s', "$entry\r");
    comes_true(sub { (see())[0] =~ $wanted }) or return 'it does not answer';
    $slowest = time - $began if time - $began > $slowest;
    return history_fault($entry);
}

# The terminal's settings and what tmux knows of it; and whether what is pasted
# gets brackets.
sub terminal_state
{
    my $mark = ++(our $states);
    resize('80x24');
    send_bytes('s', "printf '\\33[H\\33[2J'; stty -a >stty.$mark; IFS= read -r x; echo \"<\$x>\" >paste.$mark\r");
    comes_true(sub { -s "$dir/stty.$mark" });
    paste('s', "pasted\n");
    comes_true(sub { -s "$dir/paste.$mark" });
    my $flags = ask('s', join ' ', map { "$_=#{$_}" }
        qw(alternate_on cursor_flag insert_flag keypad_cursor_flag keypad_flag mouse_any_flag
           origin_flag wrap_flag scroll_region_upper scroll_region_lower));
    return join "\n", read_file("$dir/stty.$mark"), read_file("$dir/paste.$mark"), $flags;
}

my $before;    # what it was then

# Why what is gone should not have gone so, or nothing.
sub exit_fault
{
    return undef if $killed_by eq 'KILL';
    my %codes = ('' => 0, TERM => 143, HUP => 129);
    my $code = '';
    comes_true(sub { ($code = read_file("$dir/code")) =~ /^\d+\n/ && $code != 148 && has_terminal($shell) })
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
    restart_pane('s', "cd $dir; exec /usr/bin/env -i $variables PS1='sh: ' lumat=" . quote($lumat) . ' /bin/sh -iI');
    comes_true(sub { line_of_cursor() =~ /^sh:\s*$/ });
    $shell = ask('s', '#{pane_pid}');
    $before = terminal_state();
}

sub start
{
    my $options = shift;
    open_shell();
    unlink "$dir/code";
    ($kept = '', unlink $file) if length $kept > 1e6;
    send_bytes('s', "printf '\\33[H\\33[2J'; \"\$lumat\" -q --no-init $options; echo \$? >code\r");
    comes_true(sub { ($program = (child_of($shell, 'lumat'))[0]) && is_at_prompt() }) or die "there is no prompt:\n", (see())[0], "\n";
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

use_terminals();
open_pane('s', 'exec sleep 1000');
$bursts = 1 if $ENV{LUMAT_BURST};
ok(run($_), "burst $_") for $seed .. $seed + $bursts - 1;
note(sprintf 'the slowest answer took %.1f s', $slowest);
done_testing();
