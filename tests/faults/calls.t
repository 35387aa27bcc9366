#!/usr/bin/perl
# A call of the system fails while a file is written, once, or from then on
# (strace injects the error): what ends well has written all of it, what does
# not says so and has left what was there before, whole. An experiment that is
# run again goes on from what it acknowledged, and has each point once.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..", $FindBin::Bin;
use Faults;
use Lumat;
use Test::More;

plan skip_all => 'no strace' if system 'strace -o /dev/null -e trace=none true 2>/dev/null';
begin_faults('calls', 8);
$ENV{ASAN_OPTIONS} = 'allocator_may_return_null=1:detect_leaks=0';    # which traces, too

my %writers = (
    'o.npy'  => 'save(full(40, 30, 0.5), F)',
    'o.csv'  => 'save(full(40, 30, 0.5), F)',
    'o.lum'  => 'a = full(40, 30, 0.5) b = a[2] c = "text" save_session(F)',
    'o.svg'  => 'plot(sin(range(1, 2000)), F)',
    'o.lua'  => 'a = 1 require "lumat.texts".write("how", F, ("a = 1\n"):rep(99))',
    'o.log'  => 'transcript(F) print "one" print(("two"):rep(9000)) transcript(false)',
    'o.html' => <<'END',
local d = F:match "^.*/"
local function note(word, n)
    local f = io.open(d .. "notes", "a")
    return f and f:write(word, " ", n, "\n") and f:close()
end
local e = experiment{name = "x", dir = d .. "run", repeats = 1, warmup = 0, axes = {n = {1, 2, 3, 4}},
    measure = function(p) note("measured", p.n) return p.n * 1e-3 end}
e:run{quiet = true, each = function(row) assert(note("acknowledged", row.p.n)) end}
local f <close> = assert(io.open(F, "w"))
for _, row in ipairs(e:results()) do assert(f:write(row.p.n, " ", row.median, "\n")) end
assert(f:close())
END
);
# By call: the errors it may have.
my %errors = (
    (map { $_ => [qw(ENOSPC EIO EINTR)] } qw(write pwrite64 fsync fdatasync)),
    (map { $_ => [qw(ENOSPC EIO)] } qw(ftruncate rename link mkdir flock fchmod)),
    (map { $_ => [qw(EIO EACCES)] } qw(unlink access lseek)),
    close => ['EIO'], sync_file_range => ['EIO'], openat => [qw(EIO EMFILE ENOSPC)],
    newfstatat => ['EIO'], fstat => ['EIO'], getdents64 => ['EIO'], readlink => ['EIO'],
);
# What an experiment reads of others' work, or of the script, is not the matter
# here.
my %spared = ('o.html' => [qw(close openat access newfstatat fstat lseek getdents64 readlink)]);
my $old = "what was there\n";

sub prepare
{
    my $name = shift;
    system 'rm', '-rf', 'w';
    mkdir 'w';
    write_file("w/$name", $old) unless $name eq 'o.html';
    write_file('it.lua', "local F = 'w/$name'\n$writers{$name}\n");
}

my @run = ($lumat, '--no-init', 'it.lua');
my @strace = ('strace', '-f', '-qq', '-o', 'trace');

# The points of a writer: calls after the script was read.
sub points_of
{
    my $name = shift;
    my (%count, $is_in, @points);
    for (split /\n/, read_file('trace')) {
        my ($call) = /^\d+ +(\w+)\(/ or next;
        $count{$call}++;
        $is_in++ if /^\d+ +close/ && $is_in;
        $is_in ||= 1 if /it\.lua"/;
        next if !$is_in || $is_in < 2 || !$errors{$call} || grep { $_ eq $call } @{$spared{$name}};
        for my $error (@{$errors{$call}}) {
            push @points, [$name, "$call:error=$error:when=$count{$call}"];
            push @points, [$name, "$call:error=$error:when=$count{$call}+"] if $error ne 'EINTR';
        }
    }
    return @points;
}

my (%whole, @points);
for my $name (sort keys %writers) {
    prepare($name);
    my ($how, undef, $err) = outcome_of({}, @strace, @run);
    bad_point($name, 'without a fault:', $how, $err) if $how ne 'exit 0';
    $whole{$name} = read_file("w/$name");
    push @points, [shuffled(points_of($name))];
}

# What is wrong with the end, or nothing.
sub judge_file
{
    my ($name, $how) = @_;
    my $now = read_file("w/$name");
    return 'it ended well, and the file is another' if $how eq 'exit 0' && $now ne $whole{$name};
    return '' if $now eq $old || $now eq $whole{$name};
    return '' if $name eq 'o.log' && $how ne 'exit 0' && index($now, $old) == 0;
    return 'the file is ' . length($now) . ' bytes of neither';
}

sub judge_experiment
{
    my ($again, undef, $why) = outcome_of({}, @run);
    return "run again: $again $why" if $again ne 'exit 0';
    my %done;
    for (split /\n/, read_file('w/notes')) {
        my ($word, $n) = split / /;
        return "point $n was done already" if $done{$n};
        $done{$n} = 1 if $word eq 'acknowledged';
    }
    return read_file('w/o.html') eq $whole{'o.html'} ? '' : 'the points are others';
}

my ($tried, $refused, @round) = (0, 0);
while (is_time_left() && (@round || (@round = shuffled(map { @$_ ? shift @$_ : () } @points)))) {
    my ($name, $inject) = @{shift @round};
    prepare($name);
    my ($call) = $inject =~ /^(\w+)/;
    my ($how, $out, $err) = outcome_of({}, @strace, '-e', "trace=$call", '-e', "inject=$inject", @run);
    my $can_speak = $inject !~ /^write.*\+$/;
    my $wrong = crashed($how, $err) ? $how
        : $how ne 'exit 0' && $can_speak && $err !~ /\S/ ? 'no word of it'
        : $name eq 'o.html' ? judge_experiment() : judge_file($name, $how);
    $tried++;
    $refused++ if $how ne 'exit 0';
    bad_point("$name, $inject ($how): $wrong", $err) if $wrong;
}
end_faults("$tried points, $refused errors");
