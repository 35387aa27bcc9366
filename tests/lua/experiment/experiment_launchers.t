#!/usr/bin/perl
# The same script, unchanged, under mpirun, srun and GNU parallel: the points
# are shared, one process prints, each one of a machine has a GPU of its own.
# What is not installed is skipped; the words in which Slurm tells a process
# who it is are tried without it, too.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Experiments;
use Test::More;

my $all = result(40);
@ENV{qw(OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM)} = (1, 1);

sub has_command { return system("command -v $_[0] >/dev/null 2>&1") == 0 }

# The script under a launcher: who prints, how many lines of progress there
# are, that the work was shared, that a second start does nothing.
sub check_launcher
{
    my ($name, $command, $prints) = @_;
    script($name, 'sleep(0.05)', '', '', 40);
    my ($code, $out, $err) = run_shell("$command \$lumat $name.lua");
    is("$code$out", "0" . $all x $prints, "$name: the table") or diag($err);
    is(scalar(() = $err =~ /40 of 40 points done/g), $prints, "$name: progress is shown once a table");
    done_once("runs/$name", 40, $name);
    cmp_ok(scalar(() = glob "runs/$name/j-*"), '>', 1, "$name: several had a part");
    is_deeply([glob "runs/$name/claims/*"], [], "$name: no claim is left");
    ($code, $out, $err) = run_shell("$command \$lumat $name.lua --retry-failed");
    is("$code$out", "0" . $all x $prints, "$name: again");
    done_once("runs/$name", 40, "$name again");
}

my $mpirun = 'mpirun --oversubscribe -n 4';
SKIP: {
    skip 'no mpirun here', 12 if !has_command('mpirun');
    check_launcher('mpirun', $mpirun, 1);
    # A point that hangs does not take the whole launch with it.
    script('limit', 'if p.n == 3 then while true do end end', 'quiet = true', 'timeout = 0.5,');
    my ($code, $out, $err) = run_shell("$mpirun \$lumat limit.lua");
    is("$code$out", '0' . result() =~ s/3\tok\tnil/3\ttimeout\ttook longer than 0.5 s; its worker was ended/r,
       'mpirun: a point that hangs') or diag($err);
    script('bad', 'error("no good", 0)', 'quiet = true');
    ($code, $out, $err) = run_shell("$mpirun \$lumat bad.lua");
    like($out, qr/^(\d\tfailed\tmeasure: no good\n){8}$/, 'mpirun: points that fail');
    # Each start does what failed again, once.
    ($code, $out, $err) = run_shell("$mpirun \$lumat bad.lua --retry-failed");
    is_deeply([map { scalar @$_ } values %{rows('runs/bad')}], [(2) x 8], 'mpirun: are done again by one');
}
SKIP: {
    skip 'no Slurm that answers here', 8 if !has_command('srun') || system('timeout 20 srun -n1 true >/dev/null 2>&1') != 0;
    check_launcher('srun', 'srun -n4', 1);
}
SKIP: {
    skip 'no GNU parallel here', 8 if !has_command('parallel') || `parallel --version 2>/dev/null` !~ /GNU/;
    script('parallel', 'sleep(0.05)', 'quiet = true', '', 40);
    my ($code, $out, $err) = run_shell('parallel --will-cite -j4 -N0 $lumat parallel.lua ::: 1 2 3 4');
    is("$code$out$err", "0" . $all x 4, 'parallel: every process prints the whole table');
    done_once('runs/parallel', 40, 'parallel');
    script('shards', 'sleep(0.01)', 'quiet = true', '', 40);
    ($code, $out, $err) = run_shell('parallel --will-cite -j4 $lumat shards.lua --shard={}/4 ::: 1 2 3 4 >/dev/null; $lumat shards.lua');
    is("$out$err", $all, 'parallel: shards are parts of one table');
    done_once('runs/shards', 40, 'shards');
}

# --- which GPU ---------------------------------------------------------------------
# Devices of processes on a machine whose driver counts three.
mkdir 'bin';
write_file('bin/nvidia-smi', "#!/bin/sh\nfor i in 0 1 2; do echo \"GPU \$i: some (UUID: GPU-\$i)\"; done\n");
chmod 0755, 'bin/nvidia-smi';
write_file('which.lua', <<'END');
local workers = require "lumat.workers"
local given = arg[2] and {"cuda:7", "cpu"} or nil
local rank = workers.rank()
print(workers.place(rank), workers.device(given, workers.place(rank) or 0, arg[1]))
END
my $mpi = 'OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_LOCAL_RANK';
my $slurm = 'SLURM_STEP_NUM_TASKS=8 SLURM_PROCID=6 SLURM_LOCALID';
for (['alone: the first of three', '', 'cuda:0', "nil\tcuda:0"],
     ['the rank on this host counts, not that of all', "$mpi=1", 'cuda:0', "1\tcuda:1"],
     ['more ranks than GPUs share them', "$mpi=5", 'cuda:0', "5\tcuda:2"],
     ['Slurm', "$slurm=2", 'cuda:0', "2\tcuda:2"],
     ['GNU parallel counts from 1', 'PARALLEL_JOBSLOT=2', 'cuda:0', "1\tcuda:1"],
     ['those that are visible', "CUDA_VISIBLE_DEVICES=4,6 $mpi=3", 'cuda:0', "3\tcuda:1"],
     ['one that Slurm gave', "CUDA_VISIBLE_DEVICES=GPU-5ebe9f43 $slurm=3", 'cuda:0', "3\tcuda:0"],
     ['what follows one that is none is not visible', "CUDA_VISIBLE_DEVICES=0,-1,1 $mpi=1", 'cuda:0', "1\tcuda:0"],
     ['none is visible', "CUDA_VISIBLE_DEVICES= $mpi=1", 'cuda:0', "1\tnil"],
     ['one that was chosen with --device', "$mpi=1", 'cuda:2', "1\tnil"],
     ['the CPU', "$mpi=1", 'cpu', "1\tnil"],
     ['a list of the script', "$mpi=2", 'cuda:0 list', "2\tcuda:7"]) {
    my ($what, $words, $device, $expected) = @$_;
    my ($code, $out, $err) = run_shell("PATH=\$PWD/bin:\$PATH $words \$lumat which.lua $device");
    is($out, "$expected\n", "device: $what") or diag($err);
}
done_testing();
