# What the tests of experiments as programs share: scripts in a folder of their
# own, commands of the shell, what journals say.
package Experiments;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use FindBin;
use lib "$FindBin::Bin/../..";
use Lumat;
use Test::More;
our @EXPORT = qw(write_file read_file run_shell rows done_once script result wait_until $lumat $source);

our $source = abs_path(dirname(__FILE__));
my $dir = new_folder('runs');
chdir $dir or die "$dir: $!\n";
END { chdir '/' }
delete @ENV{qw(LUMAT_WORKER OMP_NUM_THREADS COLUMNS LUMAT_LEASE SLURM_PROCID
    PARALLEL_JOBSLOT CUDA_VISIBLE_DEVICES)};

# The rows of the run directory by their key.
sub rows
{
    my %row;
    for my $file (glob "$_[0]/j-*.jsonl") {
        for (split /\n/, read_file($file)) {
            push @{$row{$1}}, $_ if /"key":"(\w+)".*"status":/;
        }
    }
    return \%row;
}

# Every point of the run directory was done once, and so many there are.
sub done_once
{
    my ($run, $count, $what) = @_;
    my $rows = rows($run);
    is(scalar(keys %$rows), $count, "$what: $count points are done");
    is(scalar(grep { @$_ > 1 } values %$rows), 0, "$what: none twice");
}

# A script with an experiment of 8 points, or more, whose measure has this body.
sub script
{
    my ($name, $body, $options, $more, $count) = @_;
    $more //= '';
    $count //= 8;
    write_file("$name.lua", <<"END");
local found, journal = pcall(require, "lumat.journal") local sleep = found and journal.sleep
local e = experiment{name = "$name", axes = {n = experiment.range(1, $count)},
    repeats = 1, $more measure = function(p, s)
        $body
        return p.n
    end}
e:run{$options}
for _, r in ipairs(e:results()) do print(r.p.n, r.status, r.message) end
END
}

# What such a script prints.
sub result
{
    return join '', map { "$_\tok\tnil\n" } 1 .. (shift // 8);
}

# Waits until something is so, half a minute at most.
sub wait_until(&)
{
    my $is_so = shift;
    for (1 .. 1500) {
        return 1 if $is_so->();
        select undef, undef, undef, 0.02;
    }
    return 0;
}

1;
