#!/usr/bin/perl
# What the system limits (ulimit) is an error that says so: nothing is written
# by half, nothing is lost without a word, and the program does not die of it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Test::More;

my $dir = new_folder('limits');
chdir $dir or die "$dir: $!\n";
delete @ENV{qw(COLUMNS NO_COLOR LUMAT_INIT XDG_STATE_HOME XDG_CONFIG_HOME)};
@ENV{qw(HOME LUMAT_NO_CUDA LC_ALL)} = ($dir, 1, 'C.UTF-8');

# Code, output and errors of Lua under a limit: "f 8" is ulimit -f 8.
sub limited
{
    my ($limit, $code) = @_;
    write_file('it.lua', $code);
    return run_shell("ulimit -$limit; \$lumat --no-init it.lua");
}

# --- files -----------------------------------------------------------------------
# By file: what writes it.
my %writers = (
    'a.npy'     => 'save(rand(100, 200), F)',
    'a.csv'     => 'save(rand(100, 200), F)',
    'a.lum'     => 'A = rand(100, 200) save_session(F)',
    'a.svg'     => 'plot(rand(999), {file = F})',
    'a.png'     => 'heat(rand(9, 9), {file = F})',
    'a.pdf'     => 'save(imshow(rand(99, 99)), F)',
    'a.json'    => 'profile("on") for i = 1, 200 do local _ = eye(2) + i end profile("json", F)',
    't.csv'     => 'sweep:csv(F)',
    't.jsonl'   => 'sweep:jsonl(F)',
    't.html'    => 'sweep:report(F)',
    't.svg'     => 'sweep:plot{x = "n", y = "time", file = F}',
    'a.log'     => 'transcript(F) print(("x"):rep(9000)) transcript(false)',
);
my $before = <<'END';
local points = {}
for i = 1, 300 do points[i] = i end
sweep = experiment{name = "sweep", dir = false, axes = {n = points},
    measure = function(p) return p.n end, repeats = 1, warmup = 0}
END

sub names { return join ' ', sort map { s|.*/||r } glob('f/* f/.lumat-*') }

mkdir 'f';
for my $name (sort keys %writers) {
    my $lua = "local F = 'f/$name'\n" . ($name =~ /^t/ ? $before . "sweep:run{quiet = true}\n" : '') . $writers{$name};
    write_file("f/$name", 'old');
    my ($code, undef, $err) = limited('f 4', $lua);
    is($code, 1, "$name: the exit code");
    like($err, qr/\Q$name\E.*File too large/, "$name: the error is told");
    if ($name eq 'a.log') {
        like(read_file("f/$name"), qr/^oldx+$/, "$name: what there was room for");
    } else {
        is(read_file("f/$name"), 'old', "$name: the old file is there");
    }
    is(names(), $name, "$name: and nothing else");
    unlink "f/$name";
    is((limited('f unlimited', $lua))[0], 0, "$name: without the limit");
    ok(-s "f/$name", "$name: it is written");
    unlink "f/$name";
}

# The prompt alone knows how.
write_file('typed', "A = 1;\n" . "A = A + 1000000000000000;\n" x 250 . ":how A > f/made.lua\n");
write_file('f/made.lua', 'old');
my ($code, $out, $err) = run_shell('ulimit -f 4; $lumat -q -i --no-init <typed');
is($err, "error: how: cannot write 'f/made.lua': File too large\n", ':how > file: the error is told');
is(read_file('f/made.lua'), 'old', ':how > file: the old file is there');

($code, $out, $err) = limited('f 4', <<'END');
print(pcall(save, rand(100, 200), "b.npy"))
save(ones(2, 2), "b.npy")
print(load("b.npy"):sum(), os.execute("grep -q SigIgn:.*[0]...... /proc/self/status"))
END
is($code, 0, 'the session goes on');
like($out, qr/^false\tsave: cannot write 'b.npy': File too large\n4.0\ttrue/, 'and writes what is small');

# What is started has the signal as everybody has it.
write_file('it.lua', 'os.execute("ulimit -f 1; head -c 9999 /dev/zero >big; echo $?")');
($code, $out) = run_shell('$lumat --no-init it.lua');
is($out, "153\n", 'what is started ends by the signal');

# --- transcripts -----------------------------------------------------------------
my $full = qr/log: \/dev\/full: No space left on device; nothing more is written to it\n/;
my $lacks = qr/log: \/dev\/full is not complete: No space left on device\n/;
for (['is told at once and at the end', 'print(("x"):rep(99999)) io.stderr:write("then\n")', 1, qr/^${full}then\nlumat: $lacks$/],
     ['is told at the end', 'print("x")', 1, qr/^lumat: $lacks$/],
     ['is an error of the end', 'print("x") transcript(false)', 1, qr/^lumat: it.lua:1: transcript: \/dev\/full is not complete: No space left on device\n/],
     ['that is caught is known', 'print("x") pcall(transcript, false)', 0, qr/^$/],
     ['is told where another begins', 'print("x") transcript("t.log")', 1, qr/^${full}lumat: $lacks$/],
     ['is told by os.exit', 'print("x") os.exit(0)', 1, qr/^lumat: $lacks$/],
     ['is told by os.exit that closes', 'print("x") os.exit(true, true)', 1, qr/^lumat: $lacks$/]) {
    my ($name, $lua, $wanted, $says) = @$_;
    ($code, undef, $err) = limited('f unlimited', "transcript '/dev/full' $lua");
    is($code, $wanted, "a log on a full disk $name: the exit code");
    like($err, $says, "a log on a full disk $name");
}
unlink 't.log';
($code, $out, $err) = limited('f unlimited', 'transcript "t.log" print("kept") os.exit(0)');
is($code . $err . read_file('t.log'), "0kept\n", 'os.exit loses nothing of a log');

# --- the stack -------------------------------------------------------------------
# What is garbage by then would be finalised amid the deepest calls, and fail.
my $deep = <<'END';
collectgarbage()
local function nested(n)
    return (("x"):gsub("x", function() return n == 0 and "y" or nested(n - 1) end))
end
print(nested(190), load("return " .. ("("):rep(180) .. "1" .. (")"):rep(180))())
local function coroutines(n)
    return coroutine.wrap(function() return n == 0 and 1 or coroutines(n - 1) end)()
end
print(pcall(coroutines, 150), pcall(coroutines, 400))
local x = rand(300000)
print(sort(x)[1] == x:min(), sort(x, {places = true})[1] == x:min(), sort(x:f64())[-1] == x:max())
local A = rand(300, 300) + 300 * eye(300)
print(norm(A * solve(A, ones(300)) - 1) < 1, kron(rand(40, 40), rand(40, 40)).rows, inspect(A).nan)
print(select(2, pcall(function() local function f() return 1 + f() end return f() end)):match("stack overflow"))
END
SKIP: {
    skip 'sanitizers take more of the stack', 6 if is_sanitized();
    my $wanted = (limited('s 8192', $deep))[1];
    like($wanted, qr/^y\t1\n.*stack overflow\n$/s, 'nested calls');
    for my $size (64, 256, 1024, 2048, 'unlimited') {
        ($code, $out, $err) = limited("s $size", $deep);
        is("$code$out$err", "0$wanted", "ulimit -s $size");
    }
}

# --- memory ----------------------------------------------------------------------
SKIP: {
    skip 'sanitizers take all of the address space', 4 if is_sanitized();
    for my $limit (60000, 300000) {
        ($code, undef, $err) = limited("v $limit", 'local t = {} for i = 1, 99 do t[i] = zeros(1000, 2000, {dtype = "f64"}) end');
        is($code, 4, "ulimit -v $limit: the exit code");
        my ($needed, $free, $total) = $err =~ /: ([\d.]+) MiB needed, ([\d.]+) MiB free of ([\d.]+) MiB/;
        ok(defined $total && $free < $needed + 2 && abs($total - $limit / 1024) < 0.1, "ulimit -v $limit: true numbers") or diag($err);
    }
}

# --- time ------------------------------------------------------------------------
($code, undef, $err) = limited('t 2', 'while true do end');
is($code, 152, 'ulimit -t: the signal');
like($err, qr/^lumat: the processor time is used up that ulimit -t allows\n/, "ulimit -t: what is told");

# --- open files --------------------------------------------------------------------
my $run = 'local e = experiment{name = "x", dir = "run", axes = {n = {1, 2}}, measure = function() return 1 end} e:run{quiet = true} print(#e:results())';
for my $limit (4 .. 12) {
    system 'rm', '-rf', 'run';
    ($code, $out, $err) = limited("n $limit", $run);
    ok($code == 0 ? $out eq "2\n" : $err =~ /^lumat: .*Too many open files/ && $err !~ /gone|removed/, "ulimit -n $limit names the cause") or diag("$code $out $err");
    ($code, $out, $err) = limited("n $limit", 'A = ones(2, 2) save_session "s.lum" load_session "s.lum" save(A, "a.npy") print(load("a.npy"):sum())');
    ok($code == 0 ? $out eq "4.0\n" : $err =~ /^lumat: .*Too many open files/, "ulimit -n $limit: files") or diag("$code $out $err");
}

done_testing();
