#!/usr/bin/perl
# No wait for the processes of a pool is without end: for one that is stopped, in
# a product or before its first word, for a launcher that is missing, ends or
# says nothing, for a worker that is none. And what is slow for another reason is
# waited for.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../..";
use Lumat;
use Test::More;
use Time::HiRes qw(sleep time);
alarm 400; # whatever is wrong, this test ends

my ($folder) = $lumat =~ m{^(.*/)[^/]*$};
plan skip_all => 'built without MPI and ScaLAPACK' if !-x "${folder}lumat-worker";
my $dir = new_folder('waits');
chdir $dir or die "$dir: $!\n";
END { chdir '/' }
$ENV{LUMAT_NO_CUDA} = 1;

# A program in a folder of that name, to go before others.
sub program
{
    my ($folder, $name, $text) = @_;
    mkdir $folder;
    write_file("$folder/$name", $text);
    chmod 0755, "$folder/$name";
}

# Code of Lua, run with the settings before it: what it says.
sub run
{
    my ($code, $settings) = @_;
    write_file('code.lua', $code);
    my ($status, $out, $err) = run_shell(($settings // '') . ' $lumat --no-init --device cpu code.lua');
    return $out . $err;
}

# Starts it in the background: its pid.
sub start
{
    write_file('code.lua', shift);
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    open STDOUT, '>', 'said' or die $!;
    open STDERR, '>&', \*STDOUT;
    exec $lumat, '--no-init', '--device', 'cpu', 'code.lua';
}

sub launchers { return map { $_->[0] } children($_[0], 'mpirun') }
sub workers { return map { $_->[0] } map { children($_, 'lumat-worker') } launchers($_[0]) }
sub is_there { return (read_file("/proc/$_[0]/stat") =~ /\) (\S)/ ? $1 : 'Z') ne 'Z' }
sub all_end { my @pids = @_; return comes_true(sub { !grep { is_there($_) } @pids }) }

my $products = 'local D = drand(500, {dtype = "f64"}) local t = clock() '
    . 'print(pcall(function() while true do local E = D * D end end)) print("after", clock() - t) ';

# --- a process that does not answer ---------------------------------------------------
for (['STOP', 2, qr/process 3 of 4 on \S+ has not answered for [23] s and was ended; what lay on the processes is lost: pool\.restart\(\)/],
     ['KILL', 20, qr/process \d of 4 on \S+ ended by signal 9 \(Killed\); what lay on the processes is lost/]) {
    my ($signal, $timeout, $expected) = @$_;
    my $pid = start("pool{ranks = 4, timeout = $timeout} io.open('up', 'w'):close() $products pool.restart() print(drand(40):sum() > 0)");
    ok(comes_true(sub { -e 'up' }), "$signal: a pool");
    my @pids = workers($pid);
    is(scalar @pids, 4, "$signal: of four");
    ok(computes($pids[0]), "$signal: they compute");
    kill $signal, $pids[2];
    waitpid $pid, 0;
    my $said = read_file('said') =~ s/process [124] of 4 on (\S+) has not/process 3 of 4 on $1 has not/r; # pids are in no order
    like($said, $expected, "$signal: one sentence");
    my ($seconds) = $said =~ /after\t([\d.]+)/;
    cmp_ok($seconds, '<', $timeout + 8, "$signal: within the time and some seconds");
    like($said, qr/^true$/m, "$signal: another pool computes");
    ok(all_end(@pids), "$signal: the processes are ended");
    unlink 'up';
}

# One that is stopped while elements are on their way, of which it takes no more.
{
    my $pid = start('pool{ranks = 2, timeout = 2} local A = ones(4000, 4000) io.open("up", "w"):close() '
        . 'while not io.open("go") do end print(pcall(spread, A)) local t = clock() print(pcall(drand, 3))');
    ok(comes_true(sub { -e 'up' }), 'a pool of two');
    my @pids = workers($pid);
    kill 'STOP', $pids[1];
    write_file('go', '');
    waitpid $pid, 0;
    like(read_file('said'), qr/^false\t.*process \d of 2 on .*pool\.restart\(\)/, 'elements that are not taken');
    ok(all_end(@pids), 'no process is left');
    unlink 'up', 'go';
}

# The launcher is killed: its processes end, and the prompt is told.
{
    my $pid = start("pool{ranks = 2} io.open('up', 'w'):close() $products");
    ok(comes_true(sub { -e 'up' }), 'another pool');
    my @pids = workers($pid);
    ok(computes($pids[0]), 'it computes');
    kill 'KILL', launchers($pid);
    waitpid $pid, 0;
    like(read_file('said'), qr/^false\t.*(is gone|the launcher ended).*pool\.restart\(\)/, 'a launcher that is killed');
    ok(all_end(@pids), 'its processes end');
    unlink 'up';
}

# The prompt is killed, and the launcher does not end by itself, as one that waits
# for a lock.
{
    my $pid = start("pool{ranks = 2} io.open('up', 'w'):close() $products");
    ok(comes_true(sub { -e 'up' }), 'another pool');
    my ($mpirun) = launchers($pid);
    my @pids = workers($pid);
    ok(computes($pids[0]), 'it computes');
    kill 'STOP', $mpirun;
    kill 'KILL', $pid;
    waitpid $pid, 0;
    ok(all_end(@pids), 'the processes end with the prompt');
    ok(all_end($mpirun), 'and so does a launcher that stands still');
    unlink 'up';
}

# The prompt itself stands still for longer than the processes may, and goes on.
{
    my $pid = start('pool{ranks = 2, timeout = 1} local D = drand(300, {dtype = "f64"}) io.open("up", "w"):close() '
        . 'local t = clock() while clock() - t < 6 do local E = D * D end print(D:sum() > 0)');
    ok(comes_true(sub { -e 'up' }), 'a pool');
    sleep 0.5;
    kill 'STOP', $pid;
    sleep 3;
    kill 'CONT', $pid;
    waitpid $pid, 0;
    is(read_file('said'), "true\n", 'a prompt that stood still goes on');
    unlink 'up';
}

# A long operation is no silence.
is(run('pool{ranks = 2, timeout = 1} local D = drand(1600, {dtype = "f64"}) D = D + D.T local t = clock() local E = D:eigh() print(clock() - t > 0)'),
   "true\n", 'what takes long is waited for');

# --- launchers -------------------------------------------------------------------------
mkdir 'none';
symlink `sh -c 'command -v env'` =~ s/\n//r, 'none/env';
like(run('pool{ranks = 2}', "PATH=$dir/none"), qr/pool: there is no mpirun here \(openmpi-bin has it\)\n/, 'no mpirun');
program('fails', 'mpirun', "#!/bin/sh\necho 'mpirun: no such allocation' >&2\nexit 3\n");
like(run('pool{ranks = 2}', "PATH=$dir/fails:\$PATH"), qr/pool: the launcher ended: mpirun: no such allocation\n/, 'an mpirun that ends');
program('waits', 'mpirun', "#!/bin/sh\necho 'mpirun: waits'\nexec sleep 1000\n");
my $began = time;
like(run('pool{ranks = 2}', "LUMAT_POOL_START=2 PATH=$dir/waits:\$PATH"), qr/pool: 2 of 2 processes did not come within 2 s: mpirun: waits\n/, 'an mpirun that does nothing');
cmp_ok(time - $began, '<', 10, 'in time');

# Workers that come: each of these starts them by itself. Messages are a mark, a
# kind, the bytes of the text and of a matrix.
my $fake = <<'END';
#!/usr/bin/perl
use Socket;
my $path = pop;
sub comes { socket(my $s, PF_UNIX, SOCK_STREAM, 0); connect($s, sockaddr_un($path)) or die "$path: $!"; return $s }
sub says { my ($s, $kind, $text) = @_; syswrite $s, pack('VVQ<Q<', 0x6c6d7431, $kind, length $text, 0) . $text }
my @links = map { comes() } 1 .. 2;
END
for (['sleeps before its first word', '', qr/1 of 1 processes did not come within 3 s/],
     ['stops in the midst of its first word', 'syswrite $_, pack("VV", 0x6c6d7431, 1) for @links;', qr/1 of 1 processes did not come within 3 s/],
     ['says what no worker says', 'syswrite $_, "GET / HTTP/1.1\r\n\r\n" x 3 for @links;', qr/1 of 1 processes did not come within 3 s/],
     ['announces a text of a terabyte', 'syswrite $_, pack("VVQ<Q<", 0x6c6d7431, 1, 1 << 40, 0) for @links;', qr/1 of 1 processes did not come within 3 s/],
     ['says what is no Lua', 'says($_, 1, "{0, 1,") for @links;', qr/1 of 1 processes did not come within 3 s/],
     ['is of another version', 'says($links[0], 1, "{0,1,\"0.0.9\",\"here\",1}");', qr/lumat-worker is of version 0\.0\.9, this is \S+: is it of another installation\?/],
     ['is one of three', 'says($links[0], 1, "{0,3,\"0.0.9\",\"here\",1}");', qr/a worker came as one of 3, not of 1: is mpirun that of the MPI it was built with\?/]) {
    my ($what, $does, $expected) = @$_;
    program('worker', 'mpirun', "$fake$does\nsleep 1000;\n");
    $began = time;
    like(run('pool{ranks = 1}', "LUMAT_POOL_START=3 PATH=$dir/worker:\$PATH"), qr/pool: .*$expected/, "a worker that $what");
    cmp_ok(time - $began, '<', 20, 'in time');
}
done_testing();
