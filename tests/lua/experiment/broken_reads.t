#!/usr/bin/perl
# Files that are not what they seem, pipes and devices where a file should be,
# and disks that fail while they are read: an error, never the end of a file.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Experiments;
use POSIX qw(mkfifo);
use Test::More;

# A library that goes before the C library goes before a sanitizer's, too.
$ENV{ASAN_OPTIONS} = join ':', grep { $_ } $ENV{ASAN_OPTIONS}, 'verify_asan_link_order=0';

sub refuses
{
    my ($command, $expected, $what) = @_;
    my ($code, $out, $err) = run_shell("exec timeout 60 $command");
    is($code, 1, "$what: exit code");
    like($err, $expected, $what);
}

# --- pipes and devices ---------------------------------------------------------------------------------------------
script('plain', '', 'quiet = true');
run_shell('$lumat plain.lua');
my $irregular = qr/it is not a regular file/;
for my $kind ('fifo', '/dev/zero') {
    my $make = sub {
        unlink $_[0];
        $kind eq 'fifo' ? mkfifo($_[0], 0600) : symlink $kind, $_[0];
    };
    for my $name (map { s{.*/}{}r } glob 'runs/plain/{experiment,code-*}.json') {
        my $whole = read_file("runs/plain/$name");
        $make->("runs/plain/$name");
        refuses('$lumat plain.lua', qr/cannot read runs\/plain\/$name: $irregular/, "$kind: $name");
        unlink "runs/plain/$name";
        write_file("runs/plain/$name", $whole);
    }
    $make->($_) for 'runs/plain/j-x-1.jsonl', 'runs/plain/claims/w-x', 'a.csv', 'a.npy', 'a.lum';
    my ($code, $out) = run_shell('timeout 60 $lumat plain.lua');
    is("$code$out", '0' . result(), "$kind: what is no journal is none");
    refuses(q($lumat -e 'load "a.csv"'), qr/load: cannot read 'a.csv': $irregular/, "$kind: load");
    refuses(q($lumat -e 'load "a.npy"'), qr/load: cannot read 'a.npy': $irregular/, "$kind: load");
    refuses(q($lumat -e 'load_session "a.lum"'), qr/load_session: cannot read 'a.lum': $irregular/, "$kind: load_session");
    unlink 'runs/plain/j-x-1.jsonl', 'runs/plain/claims/w-x', 'a.csv', 'a.npy', 'a.lum';
}

# What is read once is no file to be read again: a script out of a pipe.
mkfifo('script', 0600);
run_shell('cp plain.lua piped.lua; sed -i s/plain/piped/ piped.lua');
my ($code, $out, $err) = run_shell('cat piped.lua >script & timeout 60 $lumat script');
is("$code$out$err", '0' . result(), 'an experiment of a script out of a pipe');
($code, $out, $err) = run_shell(q(timeout 60 $lumat <(echo 'print(1)')));
is("$code$out$err", "01\n", 'a script out of a pipe');

# --- disks that fail -----------------------------------------------------------------------------------------------
SKIP: {
    my $made = system("cc -shared -fPIC -O1 -o bad.so $source/bad_disk.c -ldl 2>cc.err") == 0;
    skip 'no compiler here', 15 if !$made;
    my $failing = 'env LD_PRELOAD=$PWD/bad.so';
    my $error = qr/Input\/output error/;
    mkdir 'full';
    write_file("full/module_$_.lua", '') for 1 .. 9;
    write_file('full/a.csv', "1,2\n" x 99);
    refuses("$failing BAD_FOLDER=/full \$lumat -e 'ls \"full/*.lua\"'", qr/ls: cannot read 'full\/\*.lua': $error/, 'ls');
    my $offered = q(-e 'package.path = "full/?.lua" print(#completions([[require "module_]]))');
    ($code, $out) = run_shell("\$lumat $offered");
    is($out, "9\n", 'modules of a folder');
    ($code, $out) = run_shell("$failing BAD_FOLDER=/full \$lumat $offered");
    is($out, "0\n", 'none of a folder that cannot be read');
    refuses("$failing BAD_FILE=a.csv \$lumat -e 'load \"full/a.csv\"'", qr/load: cannot read 'full\/a.csv': $error/, 'load');
    refuses("$failing BAD_FOLDER=runs/plain \$lumat plain.lua", $error, 'a run directory');
    refuses("$failing BAD_FILE=plain.lua \$lumat plain.lua", qr/experiment: cannot read plain.lua: $error/, 'a script');
    refuses("$failing BAD_FILE=.jsonl \$lumat plain.lua", qr/cannot read runs\/plain\/j-.*: $error/, 'a journal');
    refuses("$failing BAD_FILE=json \$lumat plain.lua", $error, 'a small file');
    ($code, $out, $err) = run_shell('$lumat plain.lua');
    is("$code$out$err", '0' . result(), 'and afterwards all is as it was');
}
done_once('runs/plain', 8, 'plain');

done_testing();
