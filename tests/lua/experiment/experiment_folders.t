#!/usr/bin/perl
# Run directories in a bad way: no room on the disk, no permission, moved or
# removed while they are written, of others: what is said, and that a run goes
# on from there once it can.
use strict;
use warnings;
use Cwd qw(getcwd);
use FindBin;
use lib $FindBin::Bin;
use Experiments;
use Test::More;

my $all = result();

# --- full disks ------------------------------------------------------------------
# A small file system that this test may mount, in a name space of its own.
my ($space) = grep { system("$_ sh -c 'mount -t tmpfs -o size=64k none /mnt' 2>/dev/null") == 0 }
    'unshare -m', 'unshare -rm';
my $safe = qr/cannot write in runs\/\w+: No space left on device; \d+ points in its journals are safe, and running again goes on from there/;
mkdir 'small';
for my $workers ('', 'workers = 3, ') {
  SKIP: {
        skip 'no file system can be mounted here', 6 if !$space;
        my $name = $workers ? 'crowd' : 'one';
        script($name, '', "${workers}quiet = true", '', 400);
        my ($code, $out, $err) = run_shell(<<"END");
$space sh -c 'mount -t tmpfs -o size=64k none small && cp $name.lua small && cd small
    for i in 1 2; do \$0 $name.lua >/dev/null; echo \$?; done
    find . -size 0 -name "*.jsonl"; ls runs/$name/claims
    mount -o remount,size=4m none .
    \$0 $name.lua && cp -r runs ..' \$lumat
END
        is($out, "1\n1\n" . result(400), "$name: twice a full disk, then the table");
        my @said = $err =~ /^lumat: (.*)/mg;
        is(scalar(@said), 2, "$name: each time one error");
        like($_, $safe, "$name: nothing is lost") for @said;
        done_once("runs/$name", 400, $name);
    }
}
SKIP: {
    skip 'no file system can be mounted here', 2 if !$space;
    script('never', '', '');
    my ($code, $out, $err) = run_shell("$space sh -c 'mount -t tmpfs -o size=8k none small && "
            . "cp never.lua small && cd small && cat /dev/zero >zero 2>/dev/null; \$0 never.lua' \$lumat");
    is($code, 1, 'a disk that is full from the start');
    like($err, qr{cannot write in runs/never: No space left on device; nothing was measured yet}, 'is told');
}

# --- permission ------------------------------------------------------------------
# As a user who is not root, who reaches this folder and a copy of the program.
sub other_user
{
    return '' if $> != 0;
    my $nobody = 'setpriv --reuid=65534 --regid=65534 --clear-groups';
    system("chmod 755 . && cp -L $lumat program && chmod 755 program") == 0 or return;
    $lumat = getcwd() . '/program';
    return system("$nobody \$PWD/program -p 1 >/dev/null 2>&1") == 0 ? $nobody : undef;
}

sub as_other_user
{
    my $nobody = shift;
    my $read = "HOME=/nowhere $nobody \$lumat -p '#experiment.open(\"locked/run\"):results()'";
    script('locked', '', 'quiet = true', 'dir = "locked/run",');
    my ($code, $out, $err) = run_shell('mkdir locked; $lumat locked.lua; cat locked/run/j-* >before; '
            . "chmod 755 locked; chmod 555 locked/run locked/run/claims; HOME=/nowhere $nobody \$lumat locked.lua");
    is($code, 1, 'a folder that may not be written in');
    like($err, qr{cannot write in locked/run: Permission denied; dir = names another folder}, 'is told');
    ($code, $out, $err) = run_shell($read);
    is("$out$err", "8\n", 'but read');
    ($code, $out, $err) = run_shell("chmod 000 locked/run/j-*; $read");
    like($err, qr{cannot read locked/run/j-\S+: Permission denied}, 'a journal that may not be read');
    ($code, $out, $err) = run_shell("chmod 644 locked/run/j-*; chmod 000 locked/run/experiment.json; $read");
    like($err, qr{cannot read locked/run/experiment.json: Permission denied}, 'nor what the experiment is');
    ($code, $out, $err) = run_shell('chmod 644 locked/run/experiment.json; chmod 755 locked/run locked/run/claims; '
            . '$lumat locked.lua; cat locked/run/j-* | cmp before -');
    is("$code$out$err", "0$all", 'the journal is as it was');
}
SKIP: {
    my $nobody = other_user();
    skip 'there is no other user here', 6 if !defined $nobody;
    as_other_user($nobody);
}

# --- moved and removed -------------------------------------------------------------
# Its third point waits until the deed is done, so that two were measured before it.
my $marked = 'io.open("marks/" .. p.n, "w"):close() while p.n == 3 and not os.rename("done", "done") do sleep(0.01) end';
mkdir 'marks';
for (['moved', 'mv runs/moved elsewhere', '', qr{cannot write in runs/moved: the folder was removed, or moved; \d points? in its journals (is|are) safe}],
     ['removed', 'rm -rf runs/removed; sleep 0.1; rm -rf runs/removed', '', qr{runs/removed(: | is gone: )(the folder was removed|No such file)}],
     ['scattered', 'rm -rf runs/scattered; sleep 0.1; rm -rf runs/scattered', 'workers = 2', qr{(the run directory runs/scattered is gone|cannot read runs/scattered/j-\S+): No such file}],
     ['unclaimed', 'rm -rf runs/unclaimed/claims', '', qr{cannot write in runs/unclaimed: the folder claims in it was removed; \d points? in}]) {
    my ($name, $deed, $workers, $expected) = @$_;
    script($name, $marked, $workers);
    my ($code, $out, $err) = run_shell("rm -f marks/* done; (for i in \$(seq 1500); do [ ! -e marks/3 ] || break; sleep 0.02; done; "
            . "$deed; touch done) & \$lumat $name.lua; code=\$?; wait; exit \$code");
    is($code, 1, "$name: an error");
    like($err, $expected, "$name: told");
    ($code, $out, $err) = run_shell("[ ! -d elsewhere ] || mv elsewhere runs/$name; \$lumat $name.lua");
    is($out, $all, "$name: a rerun goes on");
    done_once("runs/$name", 8, $name);
}

# --- of others ---------------------------------------------------------------------
script('plain', '', 'quiet = true');
run_shell('$lumat plain.lua');
my ($known) = map { m{([^/]+)$} } glob 'runs/plain/code-*.json';
write_file('plain.lua', read_file('plain.lua') =~ s/range\(1, 8\)/range(1, 8 + #arg)/r);
my $gone = 'put a copy of it back, or remove it: where its rows were measured is not known then';
for (['env-1.json', '', qr{runs/plain/env-1.json is damaged: it is empty; $gone}],
     ['env-1.json', '{"cpu":"abc', qr{runs/plain/env-1.json is damaged: it ends in the midst, after 11 bytes; $gone}],
     ['env-1.json', '{"cpu":"abc",' . "\n" . '"threads"=2}', qr{runs/plain/env-1.json is damaged: line 2, byte 10: a name without a colon; $gone}],
     [$known, '[1,', qr{runs/plain/$known is damaged: it ends in the midst, after 3 bytes; it can be removed: the rows are in the journals, and a run writes it anew}],
     ['experiment.json', '{"format":1', qr{runs/plain/experiment.json is damaged: it ends in the midst, after 11 bytes; with \{"format":1,"name":"plain"\} in it, all is as it was}],
     ['experiment.json', '1', qr{runs/plain/experiment.json is damaged: it has one value alone; with}],
     ['experiment.json', '{"format":7,"lumat":"9.0","name":"plain"}', qr{runs/plain is of another version of lumat \(9.0\): its format is 7, this one reads up to 1}],
     ['experiment.json', '{"version":"1.2","parts":[]}', qr{runs/plain is no run directory: its experiment.json is of another program}],
     ['experiment.json', '{"format":1,"name":"fancy"}', qr{runs/plain has the runs of "fancy", not of "plain": another dir = is needed}]) {
    my ($file, $text, $expected) = @$_;
    my $whole = read_file("runs/plain/$file");
    write_file("runs/plain/$file", $text);
    my ($code, $out, $err) = run_shell('$lumat plain.lua more');
    is($code, 1, "$file: $text: refused");
    like($err, $expected, 'and why');
    write_file("runs/plain/$file", $whole);
}
my ($code, $out, $err) = run_shell('cat runs/plain/j-* >before; $lumat plain.lua; cat runs/plain/j-* | cmp before -');
is("$code$out$err", "0$all", 'the journal is as it was');

# The remedies that are told.
write_file('runs/plain/experiment.json', '{"format":1,"name":"plain"}');
unlink "runs/plain/$known";
($code, $out, $err) = run_shell('$lumat plain.lua');
is("$code$out$err", "0$all", 'another experiment.json, and no file of the code');
ok(-s "runs/plain/$known", 'which is there again');
unlink 'runs/plain/env-1.json';
($code, $out, $err) = run_shell('$lumat plain.lua more');
like($err, qr{8 points in runs/plain were measured elsewhere \(its env-N.json, which said where, is gone\)},
     'what was measured who knows where is not mixed');
run_shell('sed -i "s/quiet = true/mix = true/" plain.lua; $lumat plain.lua more');
($code, $out, $err) = run_shell('$lumat -p "experiment.open(\"runs/plain\"):table()"');
like($out, qr/^  8 points of environment 1\n  1 point of environment 2: .*threads was unknown, is \d/m,
     'but where that is asked for, and told');

done_testing();
