#!/usr/bin/perl
# Pools whose processes come by TCP: of one host, of several, by srun. Who comes
# without the token is sent away and disturbs nobody, whatever he sends. Other
# hosts are this one by other names, to which a program in the place of ssh
# goes.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../..";
use Lumat;
use Socket;
use Test::More;
use Time::HiRes qw(sleep time);
$SIG{PIPE} = 'IGNORE';
alarm 300; # whatever is wrong, this test ends

my ($folder) = $lumat =~ m{^(.*/)[^/]*$};
plan skip_all => 'built without MPI and ScaLAPACK' if !-x "${folder}lumat-worker";
my $dir = new_folder('hosts');
chdir $dir or die "$dir: $!\n";
END { chdir '/' }
@ENV{qw(LUMAT_NO_CUDA OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM)} = (1, 1, 1);
delete $ENV{LUMAT_POOL_LINKS};

sub program
{
    my ($name, $text) = @_;
    write_file($name, $text);
    chmod 0755, $name;
}

# Starts the code with the settings: its pid.
sub start
{
    my ($code, %settings) = @_;
    write_file('code.lua', $code);
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    @ENV{keys %settings} = values %settings;
    open STDOUT, '>', 'said' or die $!;
    open STDERR, '>&', \*STDOUT;
    exec $lumat, '--no-init', '--device', 'cpu', 'code.lua';
}

# What the code says.
sub run
{
    waitpid start(@_), 0;
    return read_file('said');
}

# Sums and products of whole numbers are those of one device.
my $work = 'local A = floor(10 * rand(90, 70, {dtype = "f64", seed = 1})) local D = spread(A) '
    . 'print(D:sum() == A:sum(), (D * D.T):gather() == A * A.T, D:gather() == A) print(pool.info()) ';
my $right = qr/^true\ttrue\ttrue$/m;
my @tcp = (LUMAT_POOL_LINKS => 'tcp');

# --- this host ------------------------------------------------------------------------
my $said = run("print(pool{ranks = 4}) $work", @tcp);
like($said, $right, 'by TCP as by sockets of this machine');
like($said, qr/process 4 at \(2, 2\) on \S+: /, 'the hosts are told');
$said = run("print(pool{hosts = {'localhost:2'}}) $work");
like($said, $right, 'this host by its name');
like($said, qr/^pool of 2 processes/, 'as many as the host has');
unlike($said, qr/process 1 at \(1, 1\) on/, 'not by TCP');

# --- strangers -------------------------------------------------------------------------
# An mpirun that tells where workers go to and with which token, and waits.
my ($mpirun) = `sh -c 'command -v mpirun'` =~ /(\S+)/;
mkdir 'bin';
program('bin/mpirun', <<"END");
#!/bin/bash
echo "\${\@: -1} \$LUMAT_POOL_TOKEN" >token.new
mv token.new token
until [ -e go ]; do sleep 0.02; done
exec $mpirun "\$@"
END

sub comes
{
    my $port = shift;
    socket(my $s, PF_INET, SOCK_STREAM, 0) or die $!;
    return connect($s, sockaddr_in($port, INADDR_LOOPBACK)) ? $s : undef;
}

# What comes back from the door: nothing, but its end.
sub answer
{
    my $s = shift;
    my $got = sysread $s, my $text, 100;
    return !defined $got ? 'cut off' : $got == 0 ? 'closed' : $text;
}

my $pid = start("pool{ranks = 3, timeout = 5} $work io.open('up', 'w'):close() while not io.open('end') do end", @tcp, PATH => "$dir/bin:$ENV{PATH}");
ok(comes_true(sub { -e 'token' }), 'a door');
my ($port, $token) = read_file('token') =~ /^tcp:(\d+)\@127\.0\.0\.1 ([0-9a-f]{32})$/;
ok($port, 'at this machine alone, as no other has a process');
my @words = split /\0/, join '', map { read_file($_) } glob '/proc/[0-9]*/cmdline';
is(scalar(grep { index($_, $token) >= 0 } @words), 0, 'the token is in no command line');

my @silent = map { comes($port) } 1 .. 100; # more than stand in line
my $half = comes($port);
syswrite $half, substr $token, 0, 16;
my $wrong = comes($port);
syswrite $wrong, 'f' x 32;
like(answer($wrong), qr/^(closed|cut off)$/, 'a wrong token is sent away without a word');
my $nearly = comes($port);
syswrite $nearly, substr($token, 0, 31) . 'x';
like(answer($nearly), qr/^(closed|cut off)$/, 'one that is nearly right, too');
my $web = comes($port);
syswrite $web, "GET / HTTP/1.1\r\nHost: a\r\n\r\n" x 4;
like(answer($web), qr/^(closed|cut off)$/, 'and one who wants a page');
my ($flood, $sent) = (comes($port), 0);
my $began = time;
while ($sent < 1 << 30) {
    my $n = syswrite $flood, 'x' x 1048576;
    last if !$n;
    $sent += $n;
}
cmp_ok($sent, '<', 1 << 27, 'a gigabyte is not taken');
cmp_ok(time - $began, '<', 10, 'nor waited for');

# One that knows the token, as one of another user of the launcher's would, and
# says nothing then.
my $knows = comes($port);
syswrite $knows, $token;
write_file('go', '');
ok(comes_true(sub { -e 'up' }), 'the processes come in between');
like(read_file('said'), $right, 'and compute');
is(comes($port), undef, 'the door is closed once all are there');
like(answer($half), qr/^(closed|cut off)$/, 'for who stood in line, too');
write_file('end', '');
waitpid $pid, 0;
unlink 'up', 'go', 'end', 'token';

# A launcher that lost its folder to another that ended is tried again, not for ever.
program('bin/mpirun', <<'END');
#!/bin/bash
echo try >>tries
echo 'A call to mkdir was unable to create the desired directory:' >&2
[ "$(wc -l <tries)" -lt "$tries_in_vain" ] && exit 1
PATH=${PATH#*:} exec mpirun "$@"
END
like(run("pool{ranks = 2} $work", PATH => "$dir/bin:$ENV{PATH}", tries_in_vain => 3), $right, 'the third try comes up');
is(read_file('tries'), "try\n" x 3, 'three tries');
unlink 'tries';
like(run('pool{ranks = 2}', PATH => "$dir/bin:$ENV{PATH}", tries_in_vain => 100), qr/pool: the launcher ended: A call to mkdir/, 'tries in vain end');
is(read_file('tries'), "try\n" x 5, 'after five');
unlink 'tries';

# Those who came in vain are counted.
program('bin/mpirun', "#!/bin/bash\necho \"\${\@: -1}\" >token.new\nmv token.new token\nexec sleep 100\n");
$pid = start('pool{ranks = 2}', @tcp, LUMAT_POOL_START => 3, PATH => "$dir/bin:$ENV{PATH}");
comes_true(sub { -e 'token' });
($port) = read_file('token') =~ /^tcp:(\d+)/;
my @vain = map { my $s = comes($port); syswrite $s, 'g' x 32; $s } 1 .. 3;
waitpid $pid, 0;
like(read_file('said'), qr/2 of 2 processes did not come within 3 s, and 3 who came did not show the token: it left no word/, 'who came in vain is counted');

# --- other hosts -------------------------------------------------------------------------
program('goes', "#!/bin/sh\necho \"\$1\" >>visited\nshift\nexec sh -c \"exec \$*\"\n");
# All of them are on this machine, where shared memory would be taken for theirs.
my $there = "{'--mca', 'plm_rsh_agent', '$dir/goes', '--mca', 'btl', 'self,tcp'}";
SKIP: {
    $said = run("print(pool{ranks = 4, hosts = {'lumat-a', 'lumat-b:1'}, arguments = $there}) $work");
    # Without an interface beside the loopback launchers find no way.
    skip "no other host can be made here: $said", 6 if $said =~ /launcher ended/;
    like($said, $right, 'two other hosts');
    # More than once where a launcher was tried again: on one machine they are
    # in each other's way.
    my %visited = map { $_ => 1 } split ' ', read_file('visited');
    is_deeply([sort keys %visited], ['lumat-a', 'lumat-b'], 'each is gone to');

    # All that is of one host stands still.
    $pid = start("pool{ranks = 2, timeout = 2, hosts = {'lumat-a', 'lumat-b'}, arguments = $there} local D = drand(400, {dtype = 'f64'}) "
        . "io.open('up', 'w'):close() print(pcall(function() while true do local E = D * D end end)) pool.restart() print(drand(9):sum() > 0)");
    ok(comes_true(sub { -e 'up' }), 'a pool of two hosts');
    my ($mpi) = children($pid, 'mpirun');
    my ($daemon) = children($mpi->[0]);
    my @host = map { $_->[0] } $daemon, children($daemon->[0]);
    kill 'STOP', @host;
    waitpid $pid, 0;
    like(read_file('said'), qr/^false\t.*process \d of 2 on \S+ has not answered for [23] s and was ended/, 'a host that does not answer');
    like(read_file('said'), qr/^true$/m, 'another pool');
    kill 'KILL', @host; # what no launcher reaches
    unlink 'up';
}
like(run("pool{ranks = 2, hosts = {'nowhere.invalid'}, timeout = 3}", LUMAT_POOL_START => 30), qr/pool: (the launcher ended|\d of 2 processes did not come)/, 'a host that is none');

# --- by srun ------------------------------------------------------------------------------
# Its words, by one that starts the workers by mpirun; Slurm itself is tried where
# it answers.
program('bin/srun', <<'END');
#!/bin/bash
echo "$*" >srun.words
n=${1#--ntasks=}
exec mpirun --oversubscribe --bind-to none -x LUMAT_POOL_TOKEN -n $n "${@: -2}"
END
unlink 'bin/mpirun';
$said = run("print(pool{ranks = 2, launcher = 'srun', hosts = {'a', 'b'}, arguments = {'--partition=all'}}) $work", PATH => "$dir/bin:$ENV{PATH}");
like($said, $right, 'srun');
like(read_file('srun.words'), qr/^--ntasks=2 --mpi=pmix --export=ALL --kill-on-bad-exit=1 --quit-on-interrupt --nodelist=a,b --partition=all \S+lumat-worker tcp:\d+\@\S+$/, 'its words');
SKIP: {
    skip 'no Slurm that answers here', 1 if system('srun -n1 true >/dev/null 2>&1') != 0 || `srun --mpi=list 2>&1` !~ /pmix/;
    like(run("print(pool{ranks = 2, launcher = 'srun'}) $work"), $right, 'Slurm itself');
}

# --- what is refused -----------------------------------------------------------------------
for (['hosts = {}', qr/hosts is no list of names, such as/],
     ['hosts = {"a;b"}', qr/hosts has "a;b", expected a name/],
     ['hosts = {"--help"}', qr/hosts has "--help", expected a name/],
     ['hosts = {"a:0"}', qr/hosts has "a:0", expected/],
     ['ranks = 5, hosts = {"a:2", "b:2"}', qr/hosts have 4 processes, and ranks is 5/],
     ['ranks = 2, hosts = {"a:2", "b"}', qr/2 processes are too few for these hosts: 3 are needed/],
     ['launcher = "ssh"', qr/launcher is "ssh", expected "mpirun"/],
     ['launcher = "srun", hosts = {"a:2"}', qr/srun shares processes out itself/],
     ['timeout = 0', qr/timeout is 0, expected 1 to 86400 seconds/]) {
    my ($options, $expected) = @$_;
    like(run("pool{$options}"), $expected, $options);
}
done_testing();
