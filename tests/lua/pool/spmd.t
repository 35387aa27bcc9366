#!/usr/bin/perl
# Scripts that all processes of mpirun run (lumat --spmd): the results of a pool
# at the prompt, and of one device; what is printed, read and written once;
# errors, and calls that differ, which end all. Where the program was built
# without MPI there is nothing to test.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../..";
use Lumat;
use Test::More;
use Time::HiRes qw(time);

my ($worker) = $lumat =~ m{^(.*/)[^/]*$};
plan skip_all => 'built without MPI and ScaLAPACK' if !-x "${worker}lumat-worker";

chdir new_folder('spmd') or die;
$ENV{OMPI_ALLOW_RUN_AS_ROOT} = $ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} = 1;
$ENV{LUMAT_NO_CUDA} = 1;
delete $ENV{LUMAT_INIT};
# Open MPI leaves what it has to the process's end.
$ENV{ASAN_OPTIONS} = join ':', grep { length } $ENV{ASAN_OPTIONS} // '', 'detect_leaks=0';

# What mpirun itself says of a job that ended badly is not looked at.
sub spmd
{
    my ($text, %o) = @_;
    write_file('script.lua', $text);
    my $options = $o{options} // '--spmd';
    my $count = $o{count} // 4;
    my $input = $o{input} ? "printf '$o{input}' |" : '';
    my ($code, $out, $err) =
        run_shell("$input timeout -k 5 100 mpirun --oversubscribe -n $count " .
            "\$lumat $options " . ($o{words} // 'script.lua'));
    my @own = $err =~ /^(lumat: .*|  ranks? .*)$/mg;
    return ($code, $out, join("\n", @own), $err);
}

# --- results -------------------------------------------------------------------
my $work = <<'LUA';
pool{ranks = 4, block = 16}
local function show(name, D)
    local A = type(D) == "number" and D or D:gather()
    if type(A) ~= "number" then
        local total = 0
        for i = 1, A.rows do
            for j = 1, A.cols do total = total * 0.75 + A(i, j) * (i + 2 * j) end
        end
        name, A = name .. " " .. A.rows .. "x" .. A.cols .. " " .. A.dtype, total
    end
    print(name, ("%a"):format(A))
end
local function whole(m, n, dtype, seed)
    return randint(-9, 9, m, n, {device = "cpu", seed = seed})[dtype](
        randint(-9, 9, m, n, {device = "cpu", seed = seed}))
end
for _, dtype in ipairs{"f32", "f64"} do
    local A, B = whole(50, 37, dtype, 1), whole(37, 40, dtype, 2)
    local D, E = spread(A), spread(B)
    assert((D * E):gather() == A * B and (D.T + 1):gather() == A.T + 1)
    assert(D:sum() == A:sum() and D:max(1) == A:max(1) and D[{3, -1}] == A[{3, -1}])
    assert((D + A[{{2, 2}, {}}]):gather() == A + A[{{2, 2}, {}}])
    assert(D:row(4) == A[{{4, 4}, {}}])
    local R = drandn(60, {dtype = dtype, seed = 7})
    assert(R:gather() == randn(60, 60, {dtype = dtype, seed = 7, device = "cpu"}))
    show("product", R * R.T)
    show("solve", R:solve(drand(60, 2, {dtype = dtype, seed = 8})))
    show("lu", R:lu().U)
    local w, V = (R + R.T):eigh():unpack()
    show("values", w:sum())
    show("vectors", V)
    local Q, T = R:qr():unpack()
    show("R", T)
    show("deviation", R:std(1):sum())
    show("line", R:norm())
end
print(drand(9):sum() == rand(9, 9, {device = "cpu"}):sum() or "the sum of f32")
LUA
my ($code, $out, $err) = spmd($work);
is($err, '', 'a script runs on all ranks');
is($code, 0, 'and ends well');
my @lines = split /\n/, $out;
is(scalar @lines, 17, 'it prints once');
my (undef, $at_prompt) = run_shell('$lumat --device cpu script.lua');
is($out, $at_prompt, 'the results are those of a pool');
my (undef, $again) = spmd($work);
is($again, $out, 'the same bits again');
(undef, $again, $err) = spmd($work, options => '--spmd-check');
is("$err$again", $out, 'with --spmd-check, too');
($code, $out, $err) = run_shell("\$lumat --spmd -p 'drand(5, {seed = 1}):gather() == rand(5, 5, {seed = 1})' -e 'print(pool.count(), pool.rank())'");
is("$code$out", "0true\n1\t0\n", 'without mpirun: one rank');

# --- what there is once ----------------------------------------------------------
($code, $out, $err) = spmd(<<'LUA', words => "script.lua a 'b c'", input => 'first\n2 3\nrest\n');
print(pool.count(), arg[0], arg[2], ...)
print(io.read(), io.read("n"), io.read("n"), io.read("a"))
io.write("written\n")
io.stderr:write("lumat: told once\n")
save(ones(2, 3), "a.npy")
print(load("a.npy"):sum())
save(full(pool.rank(), 2, 2), "b.npy")
print(load("b.npy"):sum())
print(pcall(save, ones(2), "none/a.npy"))
local D = drand(70, 40, {seed = 3, block = 8})
D:save("d.npy")
print(load("d.npy") == D:gather(), dload("d.npy") == D)
print(select(2, pcall(D.save, D, "none/d.npy")))
local list = {}
for i = 1, 40 do list["name" .. i] = drand(2) end
for name, D in pairs(list) do D = D + 1; if name == "name7" then print(D:sum() > 4) end end
local numbers = {}
for i = 1, 3 do numbers[i] = dzeros(1) + math.random() end
print(numbers[3] == spread(numbers[3]:gather()))
LUA
is($code, 0, 'files, input and output');
is($err, 'lumat: told once', 'standard error of one rank');
is($out, <<'OUT', 'what is printed');
4	script.lua	b c	a	b c
first	2	3	
rest

written
6.0
0.0
false	save: cannot write 'none/a.npy': No such file or directory
true	true
save: cannot write 'none/d.npy': No such file or directory
true
true
OUT

is_deeply([glob '.lumat-*'], [], 'no file is left');

# Each rank has another value: the first one's counts where one is told to all.
($code, $out) = spmd(<<'LUA', count => 3);
local all = dzeros(3, 3, {block = 1})
pool{grid = {3, 1}, block = 2}
print(pool.info():match("[^\n]*"))
local D = drand(30)
for _ = 1, 200 do D = D + 1 end
collectgarbage()
collectgarbage()
local sum = D:sum()
print(pool.info():match("in 1 part%f[^%a]") or pool.info())
print(pcall(all.sum, all))
pool.close()
print(pcall(drand, 2))
print(pool.restart(), drand(2, {seed = 1}):gather() == rand(2, 2, {seed = 1}))
print(pcall(pool, {ranks = 2}))
print(select(2, pcall(experiment, {name = "a"})):match("%-%-spmd"))
LUA
is($out, <<'OUT', 'pools of a script');
pool of 3 processes on a grid of 3x1, blocks of 2
in 1 part
false	sum: the matrix is lost, as another pool was started: pool.restart() starts the pool anew
false	drand: there is no pool: pool{ranks = 4} starts one
pool of 3 processes on a grid of 3x1, blocks of 2	true
false	pool: the script runs on 3 ranks, and ranks is 2: leave it out, or mpirun -n 2
--spmd
OUT

# Reports are of all ranks, and told once.
my $told;
($code, $out, $err, $told) = spmd(<<'LUA', options => '--spmd-check');
local D, I = drand(40, {block = 8}), deye(40)
print(cost(function() return D * D end).pool.commands)
tracing(true)
local E = D * D
print(I:sum(1):sum() == I:sum())
tracing(false)
print(inspect(D).nan, D:argmax() == D:gather():argmax())
LUA
is("$code$err", '0', 'reports of a script');
is($out, "1\ntrue\n0.0\ttrue\n", 'are those of a pool');
is_deeply([map { s/  .*//r } $told =~ /^  pool 2x2  (.*)$/mg], ['multiply', 'reduce_axis', 'reduce'],
    'a trace has a line a call');

# --- errors ----------------------------------------------------------------------
# Of all, caught or not; of one, the first or another.
for my $option ('--spmd', '--spmd-check=20') {
    ($code, $out, $err) = spmd(<<'LUA', options => $option);
local D = drand(4)
print(pcall(function() return D + drand(3) end))
local E = D * drand(3)
LUA
    is($code, 1, "$option: an error of all ends all");
    is($out, "false\tscript.lua:2: A + B: shapes differ: 4x4 and 3x3\n", 'one that is caught does not');
    is($err, 'lumat: rank 0 of 4: script.lua:3: A * B: inner dimensions differ (4 and 3): A is 4x4, B is 3x3',
        'it is told once');
    for my $rank (0, 2) {
        my $begin = time;
        ($code, $out, $err) = spmd(<<LUA, options => $option);
local D = drand(4)
print(D:sum() > 0)
if pool.rank() == $rank then error("of one") end
D:sum()
LUA
        is($code, 1, "$option: an error of rank $rank ends all");
        is($out, "true\n", 'behind what was printed');
        my $place = 'script.lua:3: of one';
        my $others = $rank == 0 ? 'ranks 1 to 3' : 'ranks 0, 1, 3';
        my $first = "  $others at script.lua:4: sum, reduce(1,\"sum\")";
        my $second = "  rank $rank raised an error: $place";
        ($first, $second) = ($second, $first) if $rank == 0;
        is($err, $option eq '--spmd' ? "lumat: rank $rank of 4: $place" :
            "lumat: the ranks do not call the same:\n$first\n$second", 'it is told once');
        cmp_ok(time - $begin, '<', 15, 'at once');
    }
}
($code) = spmd("drand(3):sum()\nos.exit(7)\n");
is($code, 7, 'the code of os.exit');
($code, $out) = spmd("print(1)\nif pool.rank() == 1 then os.execute('kill -9 ' .. io.open('/proc/self/stat'):read('n')) end\ndrand(3):sum()");
isnt($code, 0, 'a rank that is killed ends all');

# --- calls that differ -------------------------------------------------------------
for my $case (
    ['another function', 'if R == 2 then D:max() else D:sum() end',
        ['ranks 0, 1, 3 at script.lua:2: sum, reduce(1,"sum")', 'rank 2 at script.lua:2: max, reduce(1,"max")']],
    ['another line', "if R == 0 then\nD:sum() else\nD:sum() end",
        ['rank 0 at script.lua:3: sum, reduce(1,"sum")', 'ranks 1 to 3 at script.lua:4: sum, reduce(1,"sum")']],
    ['other shapes', 'dzeros(2 + R // 2)',
        ['ranks 0, 1 at script.lua:2: dzeros, zeros(2,2,2,64,64,"f32")',
         'ranks 2, 3 at script.lua:2: dzeros, zeros(2,3,3,64,64,"f32")']],
    ['other numbers', 'D = D + R',
        [map { sprintf 'rank %d at script.lua:2: A + B, map(2,"add",1,{["part"]=1},%d)', $_, $_ } 0 .. 3]],
    ['an end', 'if R ~= 1 then D:sum() end',
        ['ranks 0, 2, 3 at script.lua:2: sum, reduce(1,"sum")', 'rank 1 ended the script']],
    ['an early exit', 'if R == 3 then os.exit(0) end D:sum()',
        ['ranks 0 to 2 at script.lua:2: sum, reduce(1,"sum")', 'rank 3 ended the script']],
    ['a file', 'if R == 0 then save(ones(2), "c.npy") else D:sum() end',
        ['rank 0 at script.lua:2: writing a file', 'ranks 1 to 3 at script.lua:2: sum, reduce(1,"sum")']],
    ['input', 'if R == 0 then io.read() end',
        ['rank 0 at script.lua:2: reading standard input', 'ranks 1 to 3 ended the script']],
    ['one that never comes', 'if R == 2 then repeat until false end D:sum()',
        ['ranks 0, 1, 3 at script.lua:2: sum, reduce(1,"sum")', 'rank 2 did not come within 2 s']],
) {
    my ($name, $line, $report) = @$case;
    my $begin = time;
    ($code, $out, $err) = spmd("local D, R = drand(4), pool.rank()\n$line\n", options => '--spmd-check=2');
    is($code, 1, "$name ends all");
    is($err, join("\n  ", 'lumat: the ranks do not call the same:', @$report), 'and is told');
    cmp_ok(time - $begin, '<', 15, 'within seconds');
}
($code, $out, $err) = spmd("local D = drand(4)\nif pool.rank() == 0 then repeat until false end\nD:sum()\n",
    options => '--spmd-check=1');
is($code, 1, 'the first that never comes ends all');
is($err, 'lumat: rank 0 did not come within 1 s to where rank 1 waits, script.lua:3: sum, reduce(1,"sum")',
    'and is told');

# --- what is refused ---------------------------------------------------------------
for my $case (
    ['--spmd', '', qr/--spmd runs a script/], ['--spmd', '-', qr/--spmd runs a script/],
    ['--spmd -i', 'script.lua', qr/--spmd runs a script/], ['--spmd --safe', 'script.lua', qr/--safe lets no/],
    ['--spmd-check=no', 'script.lua', qr/--spmd-check takes seconds/],
    ['--spmd', 'nothing.lua', qr/^lumat: rank 0 of 2: nothing.lua: No such file or directory$/],
) {
    my ($options, $words, $says) = @$case;
    ($code, $out, $err) = spmd('print(1)', options => $options, words => $words, count => 2);
    is($out, '', "lumat $options $words prints nothing");
    isnt($code, 0, 'ends badly');
    like($err, $says, 'and says why');
}
system "cp $lumat ./alone";
($code, $out, $err) = run_shell('./alone --spmd script.lua');
is($code, 2, 'without lumat-worker');
like($err, qr/^lumat: --spmd: there is no lumat-worker beside this program/, 'it is told');

done_testing();
