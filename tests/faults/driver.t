#!/usr/bin/perl
# Calls of the GPU's driver fail, in a backend that is the CPU's under CUDA's
# name (fake_cuda.c) or, with LUMAT_FAKE=folder, in that for CUDA with a fake
# runtime (`make check-driver`): each call of each case in driver_faults.lua,
# errors that end the device's use, such as come while it is opened; :restart.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..", $FindBin::Bin;
use Faults;
use File::Basename qw(dirname);
use Lumat;
use Test::More;

my $real = $ENV{LUMAT_FAKE};
my @fake = $real ? glob "$real/*.so" : dirname($lumat) . '/../tests/faults/liblumat-cuda.so';
plan skip_all => "no $fake[0]" unless @fake && -f $fake[0];

begin_faults('driver', 12);
delete @ENV{qw(LUMAT_NO_CUDA LUMAT_FAKE)};
$ENV{LUMAT_TOGETHER} = 'on';
mkdir 'bin';
system 'cp', $lumat, @fake, 'bin/';
my @run = ("$ENV{HOME}/bin/lumat", '--no-init');
symlink dirname($lumat) . '/../lib', 'lib';

# --- the variable ----------------------------------------------------------------

my $look = 'package.preload["lumat.faults"]';
my ($how, $out, $err) = outcome_of({}, @run, '-p', $look);
is("$how $out", "exit 0 nil\n", 'no module without LUMAT_FAULT');
for my $text ('x', 'cudaFree:0:once', 'cudaFree:1:twice', 'cudaFree:1:once:x', 'cudaFree:1:once:', ':1:once',
    'a b:1:once', 'cudaFree:1:once:719 ') {
    ($how, $out, $err) = outcome_of({LUMAT_FAULT => $text}, @run, '-p', '1');
    ok($how eq 'exit 1' && $err =~ /^lumat: LUMAT_FAULT: a fault is name:n:once, .*not '\Q$text\E'$/m, "refuses '$text'");
}
($how, $out) = outcome_of({LUMAT_FAULT => 'off'}, @run, '-e', <<'END');
local faults = require "lumat.faults"
local A = zeros(3, 3)
print(A.device, faults.calls().cudaMallocAsync, faults.injected())
faults.arm "cudaMallocHost:1:once"
print(next(faults.calls()) ~= nil, faults.calls().cudaMallocAsync, pcall(faults.arm, "x"))
END
like($out, qr/^cuda:0\t\d+\t0\ntrue\t0\tfalse\t/, 'counts calls, and anew when armed');

# --- what ends the use of the device, or keeps it from being opened -----------------

my @errors = $ENV{SECONDS} ? (214, 220, 226, 700, 702, 710, 714 .. 719, 721, 810, 911, 999) : (700, 719, 999);
my @points = ('any:1:forever', 'any:2:forever', 'cudaMallocHost:1:once', 'cudaGetDeviceCount:1:once:35');
for my $error (@errors) {
    push @points, map { "any:$_:once:$error" } 2 .. ($real ? 70 : 30);
}
my ($tried, %came) = (0);
for my $point (shuffled(@points)) {
    $tried++;
    ($how, $out, $err) = outcome_of({LUMAT_FAULT => $point}, @run, "$FindBin::Bin/driver_lost.lua");
    my ($result) = $out =~ /^GOOD\t(.*)/;
    $came{$result // ''}++;
    my @lines = grep { !/save_session: left out: gone \(a matrix that was lost\)$/ } split /\n/, $err;
    # the last work may go wrong when the script has ended
    pop @lines if $how eq 'exit 3' && $lines[-1] =~ /^lumat: cuda:0 failed: .*its matrices are lost/;
    bad_point("$point: $how", $out, $err) unless $result && ($how eq 'exit 0' || @lines == 0);
    # that there is no GPU is worth no word
    my $notes = $result && $result =~ /lost|on the CPU/ && $point ne 'any:1:forever';
    bad_point("$point: wrong notes", $err)
        unless @lines == $notes && (!$notes || $lines[0] =~ /^note: the CPU computes/);
}
ok($came{lost} && $came{'on the CPU'}, 'some points end the use of the device, some keep it shut');

($how, $out, $err) = outcome_of({LUMAT_FAULT => 'cudaLaunchKernel:1:once:719'}, @run, '-e',
    'print((rand(3, 3) + 1):sum())');
is($how, 'exit 3', 'a script ends with 3');
like($err, qr/its matrices are lost/, 'and says why');
($how, $out, $err) = outcome_of({LUMAT_FAULT => 'cudaGetDeviceCount:1:once:35'}, @run, '--device', 'cuda', '-p', '1');
ok($how eq 'exit 3' && $err =~ /no usable GPU: the driver (is too old|here is for)/, 'a device that was asked for has to be there');

# --- the cases ---------------------------------------------------------------------

($how, $out, $err) = outcome_of({LUMAT_FAULT => 'off', LUMAT_TILE => 512, LUMAT_FAKE_DEVICES => 2, POINTS => $real || $ENV{SECONDS} ? 1e9 : 2, SECONDS => 20},
    @run, "$FindBin::Bin/driver_faults.lua");
my ($cases) = $out =~ /^(\d+) points/m;
$tried += $cases // 0;
# what found no memory there may lie here, of which is told once
my $told = $err =~ s/^lumat: warning: [^\n]* does not fit cuda:0, [^\n]*computed in tiles[^\n]*\n//;
# and what looks at elements there finds anything
$err =~ s/^lumat: warning: [^\n]*: (?:solve|inv): A\[\{1, 1\}\] is Inf\n//mg if $real;
bad_point($how, $out =~ /^(BAD.*)/m, $err) unless $how eq 'exit 0' && $cases && $err eq '';
ok($told, 'what does not fit goes to the CPU');

cmp_ok($cases // 0, '>', $real ? 2000 : 100, 'enough points');

# --- a library that fails -------------------------------------------------------------

# The plain routine follows the polar one; the CPU, whose values are right.
if ($real) {
    my $svd = <<'END';
local steps = require "lumat.factor_steps"
local D = mat{{3, 0}, {4, 5}}
local S = steps.svd(D, "values")
print(S.device, close(S:to "cpu", steps.svd(D:to "cpu", "values")))
END
    my %fails = map { $_ => "LUMAT_FAKE_cusolverDnX${_}_FAILS" } 'gesvd', 'gesvdp';
    is(join(' ', (outcome_of({$fails{gesvdp} => 1}, @run, '-e', $svd))[0, 2]), 'exit 0 ', 'svd whose first routine fails goes on');
    is(join(' ', outcome_of({map { $_ => 1 } values %fails}, @run, '-e', $svd)), "exit 0 cuda:0\ttrue\n ",
        'where both fail the CPU finds the values');
}

# --- small work -------------------------------------------------------------------

# Many small operations are one launch; one that fails is made again.
if ($real) {
    ($how, $out, $err) = outcome_of({LUMAT_FAULT => 'off'}, @run, '-e', <<'END');
settings{fusion = "off"}
local faults = require "lumat.faults"
local A = ones(3, 3)
sync()
faults.arm "cudaLaunchKernel:99:once"
for _ = 1, 36 do A = A + 1 end
print(faults.calls().cudaLaunchKernel or 0)
sync()
print(faults.calls().cudaLaunchKernel)
faults.arm "cudaLaunchKernel:1:once"
A = A + 1
print(pcall(sync))
sync()
print(faults.calls().cudaLaunchKernel)
END
    like($out, qr/^1\n2\nfalse\t[^\n]*\n2\n$/, 'small work is started together, and again where that failed');
    is("$how $err", 'exit 0 ', 'and nothing is left');
}

# --- two devices ------------------------------------------------------------------

# Each call is made for the device whose stream it is of.
if ($real) {
    for my $type ('f32', 'f64') {
        ($how, $out, $err) = outcome_of({LUMAT_FAULT => 'off', LUMAT_FAKE_DEVICES => 2, LUMAT_TILE => 4 << 20}, @run, '--device', 'cpu', '-e', <<"END");
local by, A = {device = {"cuda:1", "cuda:0"}}, zeros(2500, 2500, {dtype = "$type"})
local held = {matmul(A, A, by), matmul(A.T, A, {device = by.device, out = A:clone(), beta = 1}), add(A, A.T, by), A:max(by), A:argmin(by)}
print(memory("cuda:0").live, memory("cuda:1").live)
END
        is("$how $out$err", "exit 0 0\t0\n", "two devices together, $type");
    }
}

# --- copies ------------------------------------------------------------------------

for my $fault ('off', 'cudaHostAlloc:1:forever') {
    ($how, $out, $err) = outcome_of({LUMAT_FAULT => $fault}, @run, '--device', 'cpu', "$FindBin::Bin/driver_copies.lua");
    is("$how $out$err", "exit 0 same\n", "copies, LUMAT_FAULT=$fault");
}

# --- :restart -------------------------------------------------------------------------

write_file('entries', <<'END');
H = mat({{1, 2}, {3, 4}}, {device = "cpu"}); n = 5; word = "text"; row = 7
A = H:to "cuda"; function f() end
require "lumat.faults".arm "cudaLaunchKernel:1:once:719"
(A + 1):sum()
A
A:sum()
(H + H):sum()
1 + 1
:mem
zeros(2, 2).device
:restart
H == mat({{1, 2}, {3, 4}}, {device = "cpu"})
n + row, word, A, f, begun, (device())
(rand(3, 3) + 1).device
END
$ENV{LUMAT_FAULT} = 'off';
my $text = qx('$run[0]' --no-init -q -i -e 'begun = (begun or 0) + 1' <entries 2>&1);
delete $ENV{LUMAT_FAULT};
like($text, qr/error: .*its matrices are lost, and at\W+the prompt :restart uses it again/, 'an entry says that the device is lost');
like($text, qr/> f32 2x2  cuda:0  lost\n/, 'a matrix shows it');
like($text, qr/error: sum: the matrix was lost when cuda:0 failed; at the prompt :restart/, 'so does its use');
like($text, qr/> 20\.0\n.*> 2\n/s, 'the CPU goes on');
like($text, qr/^cuda:0   is lost\n/m, ':mem says so');
like($text, qr/note: the CPU computes from here on: cuda:0 was lost/m, 'with a note');
like($text, qr/saved 5 variables in .*; left out: A \(a matrix that was lost\), f \(a function\)/, ':restart saves and names what it cannot');
like($text, qr/restored 5 variables\n/, 'and restores');
like($text, qr/> true\n/, 'matrices');
like($text, qr/> 1: 12\n2: "text"\n3: nil\n4: nil\n5: 1\n6: "cuda:0"\n/, 'and other values; the device is back');
is(scalar(() = glob "$ENV{HOME}/.local/state/lumat/restart-*"), 0, 'no file stays');
($how, $out, $err) = outcome_of({LUMAT_RESTORED => '/nowhere.lum'}, @run, '-p', '1');
like($err, qr/cannot read|nowhere/, 'what is not there is told of');

end_faults("$tried points, $came{lost} of them lost the device");
