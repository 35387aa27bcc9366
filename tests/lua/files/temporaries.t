#!/usr/bin/perl
# What a save leaves when it is killed, and who removes it: the next save in
# that folder, which leaves alone whatever may still have a writer.
use strict;
use warnings;
$SIG{INT} = 'DEFAULT'; # a background job inherits it ignored
use Cwd qw(abs_path);
use Fcntl qw(:flock);
use File::Temp qw(tempdir);
use Sys::Hostname;
use Test::More;
use Time::HiRes qw(sleep time);

my $lumat = abs_path($ENV{LUMAT} || 'build/lumat');
my $dir = tempdir('lumat-temporaries-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chdir $dir or die "$dir: $!\n";
$ENV{LUMAT_NO_CUDA} = 1;

sub temporaries { return join ' ', sort glob '.lumat-*' }

sub make
{
    my ($name, $days) = @_;
    open my $out, '>', $name or die "$name: $!\n";
    my $then = time - $days * 24 * 60 * 60;
    utime $then, $then, $name;
    return $out;
}

sub save
{
    my $path = shift;
    system $lumat, '-e', "ones(2, 2):save('$path')";
    return $? == 0;
}

# Begins to save what takes long; its process, once it writes.
sub begin_saving
{
    my ($folder) = @_;
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDERR, '>', '/dev/null';
        exec $lumat, '-e', "A = rand(3000, 3000) while true do A:save('$folder/big.csv') end";
    }
    my $end = time + 20;
    sleep 0.01 until (grep { -s } glob "$folder/.lumat-*-$pid-0.tmp") || time > $end;
    return $pid;
}

sub kill_it
{
    my ($signal, $pid) = @_;
    kill $signal, $pid;
    waitpid $pid, 0;
}

# --- a save that is killed -----------------------------------------------------

mkdir 'sub';
for my $folder ('.', 'sub') {
    unlink "$folder/big.csv";
    my $pid = begin_saving($folder);
    ok(save("$folder/a.csv"), "$folder: another save meanwhile");
    is(scalar(() = glob "$folder/.lumat-*-$pid-0.tmp"), 1, 'leaves its file alone');
    kill_it('KILL', $pid);
    is(scalar(() = glob "$folder/.lumat-*"), 1, 'killed, it leaves one');
    ok(save("$folder/a.csv"), 'the next save');
    is(scalar(() = glob "$folder/.lumat-*"), 0, 'removes it');
}
my $pid = begin_saving('.');
kill_it('INT', $pid);
is(temporaries(), '', 'a save that is stopped leaves none');

# --- whose is it? --------------------------------------------------------------

my $host = hostname();
my $locked = make(".lumat-$host-1-0.tmp", 9);
flock $locked, LOCK_EX or die "flock: $!\n";
my @left = (".lumat-$host-1-1.tmp", '.lumat-elsewhere-1-0.tmp', '.lumat-1-0.tmp');
make($_, 2) for @left;
my @kept = ('.lumat-elsewhere-1-1.tmp', ".lumat-$host-1-2.txt", ".lumat.tmp", 'lumat-1-0.tmp');
make($_, $_ =~ /elsewhere/ ? 0 : 2) for @kept;
mkdir '.lumat-folder.tmp';
symlink 'a.csv', ".lumat-$host-1-3.tmp";
ok(save('a.csv'), 'a save between files of others');
is(scalar(grep { -e } @left), 0, 'removes what nobody writes any more');
is(scalar(grep { -e } @kept), scalar @kept, 'but not what is not known, nor new from elsewhere');
ok(-e ".lumat-$host-1-0.tmp", 'nor what is locked');
ok(-d '.lumat-folder.tmp' && -l ".lumat-$host-1-3.tmp" && -e 'a.csv', 'nor what is no file');
close $locked;
ok(save('a.csv') && !-e ".lumat-$host-1-0.tmp", 'once unlocked it goes');

# --- many at the same time -----------------------------------------------------

unlink glob '.lumat-*1-3.tmp';
rmdir '.lumat-folder.tmp';
my @pids = map {
    my $n = $_;
    my $child = fork // die "fork: $!\n";
    exec $lumat, '-e', "for i = 1, 200 do save(ones(3, 3) * $n, 'same.csv') end" if $child == 0;
    $child;
} 1 .. 4;
my $failed = 0;
for my $child (@pids) {
    waitpid $child, 0;
    $failed++ if $? != 0;
}
is($failed, 0, 'processes that save to one file do not take each other\'s');
is(join(' ', grep { !/elsewhere|txt/ } glob '.lumat-*'), '', 'and leave nothing');

done_testing();
