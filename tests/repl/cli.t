#!/usr/bin/perl
# The command line: every form of it, its exit codes, pipes and bad input.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Test::More;
use Time::HiRes qw(time);

my $dir = new_folder('cli');
chdir $dir or die "$dir: $!\n";
delete @ENV{qw(COLUMNS NO_COLOR LUMAT_INIT XDG_STATE_HOME XDG_CONFIG_HOME)};
@ENV{qw(HOME LUMAT_NO_CUDA LANG LC_ALL)} = ($dir, 1, 'C.UTF-8', 'C.UTF-8');

# Runs a shell command and compares; undef and patterns are allowed for what is wanted.
sub gives
{
    my ($command, $code, $out, $err) = @_;
    my @got = run_shell($command);
    my @wanted = ($code, $out, $err // '');
    my $good = $got[0] == $code;
    for my $i (1, 2) {
        my $w = $wanted[$i];
        $good &&= !defined $w || (ref $w ? $got[$i] =~ $w : $got[$i] eq $w);
    }
    ok($good, $command) or diag("code $got[0]\n$got[1]$got[2]");
}

write_file('args.lua', "print(arg[0], arg[1], arg[-1] ~= nil, #arg, ...)\n");
write_file('fail.lua', "local x = 1\nerror('no good')\n");
write_file('deep.lua', "local function f()\n  error('deep')\nend\nf()\n");
write_file('bang.lua', "#!/usr/bin/env lumat\nprint(debug.getinfo(1,'l').currentline)\n");
write_file('mark.lua', "\xEF\xBB\xBFprint('marked')\n");
write_file('empty.lua', '');
write_file('bad.lua', "x = = 1\n");
write_file('-odd.lua', "print('odd')\n");
mkdir 'folder';
run_shell(q($lumat -e 'io.open("x.luac","wb"):write(string.dump(function() end)):close()'));

# --- what runs -----------------------------------------------------------------
gives(q($lumat -e 'print(1)'), 0, "1\n");
gives(q($lumat -e 1), 0, '');
gives(q($lumat -e 'x = 2' -p 'x + 1' -e 'print(x)'), 0, "3\n2\n");
gives(q($lumat -p '1, "a", {1}, nil'), 0, "1\na\n{1}\nnil\n");
gives(q($lumat -p 'mat{{1,2},{3,4}}'), 0, "f32 2x2  cpu  16 B\n  1  2\n  3  4\n");
gives(q($lumat -e 'x = 3' args.lua a -b --help), 0,
      "args.lua\ta\ttrue\t3\ta\t-b\t--help\n");
gives(q($lumat -- -odd.lua), 0, "odd\n");
gives(q(echo 'print(arg[0], ...)' | $lumat - a b), 0, "-\ta\tb\n");
gives(q(echo 'print("piped")' | $lumat), 0, "piped\n");
gives(q(echo 'print("no")' | $lumat -e 1), 0, '');
gives(q($lumat bang.lua), 0, "2\n");
gives(q($lumat mark.lua), 0, "marked\n");
gives(q($lumat empty.lua), 0, '');
gives(q(printf '1 + 1\nx = 5\n' | $lumat -q -i), 0, "lumat> 2\nlumat> x = 5\nlumat> \n");
gives(q(printf 'print(1)\nx = {1,\n' | $lumat -q -i), 0, qr/lumat> 1\n/,
    qr/error: the input ends in an unfinished entry, which did not run: open is \{/);
gives(q(printf 'x\n' | $lumat -q -i -e 'x = 7'), 0, "lumat> 7\nlumat> \n");
gives(q(printf 'y\n' | $lumat -q -i fail.lua), 0, "lumat> nil\nlumat> \n", qr/no good/);
gives(q(printf ':quit\n' | $lumat -i), 0,
      "lumat 0.1.0  Lua 5.4  ? for help, :quit to leave\nlumat> ");
gives(q($lumat --version), 0, qr/^lumat \d+\.\d+\.\d+  Lua 5\.4\.\d+\n$/);
gives(q($lumat --help), 0, qr/--device=name/);
gives(q($lumat --device cpu -p 1), 0, "1\n");
gives(q($lumat --device=cpu -p 1), 0, "1\n");
gives(q($lumat --no-init -q -p 1), 0, "1\n");

gives(q(printf '!echo from sh; cat\n:pwd\n' | $lumat -q -i), 0, qr/^lumat> from sh\nlumat> \Q$dir\E\n/);
gives(q(printf ':!exit 3\n1 + 1\n' | $lumat -q -i), 0, "lumat> lumat> 2\nlumat> \n", "note: exit 3\n");
gives(q(printf '!touch safe\n:cd folder\n' | $lumat -q -i --safe; ls safe), 2, qr{^lumat> lumat> \Q$dir\E/folder\n}, qr/^error: !: --safe starts no programs\n/);
gives(q(printf 'x = 1\nx?\n' | $lumat -q -i), 0, qr/x = 1\n  a variable of yours/);

# --- exit codes ----------------------------------------------------------------
gives(q($lumat fail.lua), 1, '', "lumat: fail.lua:2: no good\n");
gives(q($lumat deep.lua), 1, '', qr/^lumat: deep.lua:2: deep\nstack traceback:\n.*in main chunk\n$/s);
write_file('calls.lua', "local function worse() bench('x') end\n"
    . "local function each(t) table.sort(t, function() worse() end) end\neach{2, 1}\n");
gives(q($lumat calls.lua), 1, '', <<'END');
lumat: calls.lua:1: bench: f is "x", expected a function: write bench(f [, {seconds=, least=, runs=, device=}])
stack traceback:
	calls.lua:1: in upvalue 'worse'
	calls.lua:2: in function <calls.lua:2>
	[library]: in function 'sort'
	calls.lua:2: in local 'each'
	calls.lua:3: in main chunk
END
gives(q($lumat -e 'bench("x")'), 1, '', qr/^lumat: .*expected a function: write bench\(.*\)\n$/);
gives(q($lumat -e 'local function f() return 1 + f() end f()'), 1, '',
      qr/stack overflow\nstack traceback:(?:\n\t.*'f'){11}\n\t\.\.\.\t\(skipping \d+ levels\)(?:\n\t.*'f'){10}\n.*main chunk\n$/);
gives(q($lumat bad.lua), 1, '', "lumat: bad.lua:1: unexpected symbol near '='\n");
gives(q($lumat -e 'error{}'), 1, '', "lumat: (error object is a table value)\n");
gives(q($lumat -e 'error()'), 1, '', "lumat: (error object is a nil value)\n");
gives(q($lumat -e 'error(setmetatable({}, {__tostring = function() return "told" end}))'),
      1, '', "lumat: told\n");
gives(q($lumat -e 'print(1) error("x", 0)' -e 'print(2)'), 1, "1\n", "lumat: x\n");
gives(q(printf 'print(1)\nerror("x")\nprint(2)\n' | $lumat), 1, "1\n", "lumat: stdin:2: x\n");
gives(q($lumat -e 'os.exit(7)'), 7, '');
gives(q($lumat -e 'ones(2, 3) * ones(2, 3)'), 1, '', qr/2x3/);
gives(q($lumat -p 'x ='), 1, '', qr/^lumat: \(command line\):1: /);
gives(q($lumat --device cuda -e 1), 3, '', qr/GPU/);
gives(q($lumat --device cuda:1 -e 1), 3, '', qr/GPU/);
# Where there is a GPU that can be used, cuda:900 is one too many.
gives(q(env -u LUMAT_NO_CUDA $lumat --device cuda:900 -e 1), 3, '',
      qr/^lumat: no (usable GPU: (no NVIDIA GPU here|this build has no CUDA|.*(GPU|driver) here )|device cuda:900)/);
gives(q(env -u LUMAT_NO_CUDA CUDA_VISIBLE_DEVICES= $lumat -e 'rand(2, {device="cuda"})'), 3, '',
      qr/^lumat: .*no usable GPU: (no NVIDIA GPU here|this build has no CUDA|.*(GPU|driver) here )/);
gives(q($lumat -e 'zeros(1e6, 1e7)'), 4, '', qr/memory/);

# --- commands outside the prompt -------------------------------------------------
my $typed = 'runs a file as if it were typed';
gives(q(printf 'x = 1\n:who\n' | $lumat), 1, '',
      "lumat: stdin:2: unexpected symbol near ':'\n  :who is for the prompt: lumat -q -i <FILE $typed\n");
write_file('commands.lua', "x = y\n\n:set digits\nz = 1\n");
gives(q($lumat commands.lua), 1, '', qr/\n  :set is for the prompt: lumat -q -i <commands.lua $typed\n$/);
gives(q($lumat -q -i <commands.lua), 0, qr/digits = 5.*z = 1\n/s);
gives(q(printf '  :who\n' | $lumat), 1, '', qr/\n  :who is for the prompt: /);
gives(q($lumat -e '?sum'), 1, '', qr/\n  \?sum is for the prompt: /);
gives(q(printf 's = [[\n:who\n]]\nx = = 1\n' | $lumat), 1, '', qr/^[^\n]*\n$/);

# --- wrong command lines -------------------------------------------------------
my $usage = qr/\n  lumat --help lists the options\n$/;
gives(q($lumat -x), 2, '', qr/^lumat: unknown option '-x'$usage/);
gives(q($lumat --devise cpu), 2, '', qr/did you mean --device\?$usage/);
gives(q($lumat --device), 2, '', qr/^lumat: --device lacks its name.*$usage/);
gives(q($lumat --device gpu), 2, '', qr/cpu, cuda or cuda:N, not 'gpu'$usage/);
gives(q($lumat --device cuda:x), 2, '', qr/not 'cuda:x'$usage/);
gives(q($lumat --color=red), 2, '', qr/auto, always or never, not 'red'$usage/);
gives(q($lumat --quiet=1), 2, '', $usage);
gives(q($lumat -e), 2, '', qr/^lumat: -e lacks its code$usage/);
gives(q($lumat -q -e), 2, '', $usage);

# --- files that cannot be run --------------------------------------------------
gives(q($lumat missing.lua), 1, '', "lumat: missing.lua: No such file or directory\n");
gives(q($lumat folder), 1, '', "lumat: folder: it is a directory\n");
gives(q($lumat x.luac), 1, '',
      "lumat: x.luac: precompiled chunks are refused; give the source\n");
gives(q($lumat --bytecode x.luac), 1, '', qr/refused/);
gives(q($lumat <x.luac), 1, '', qr/^lumat: stdin: precompiled/);
gives(q($lumat <folder), 1, '', "lumat: stdin: it is a directory\n");
my $endless = "it has more than 256 MiB, as no script does\n";
gives(q($lumat /dev/zero), 1, '', "lumat: /dev/zero: $endless");
gives(q($lumat </dev/zero), 1, '', "lumat: stdin: $endless");
write_file('zero.lua', "x = 1\n\0\0\n");
gives(q($lumat zero.lua), 1, '', "lumat: zero.lua:2: a zero byte: this is no Lua, or UTF-16\n");
gives(q($lumat <zero.lua), 1, '', qr/^lumat: stdin:2: a zero byte/);
write_file('inside.lua', "print(#'a\0b')\n");
gives(q($lumat inside.lua), 0, "3\n");
gives(q($lumat <(echo 'print(4)')), 0, "4\n");
my $own = 'mkdir -p own/lumat; rm -f own/lumat/init.lua; ';
my $starts = 'env -u LUMAT_INIT XDG_CONFIG_HOME=$PWD/own timeout 60 $lumat -i -q </dev/null';
gives("$own mkfifo own/lumat/init.lua; $starts", 0, qr/^lumat> /,
      qr/^lumat: .*init.lua: it is not a regular file\n$/);
gives("$own ln -s /dev/null own/lumat/init.lua; $starts", 0, qr/^lumat> /);
gives('LUMAT_INIT=<(echo "print(5)") $lumat -i -q </dev/null', 0, qr/^5\nlumat> /);
gives(q($lumat -e 'print(load(string.dump(function() end)))'), 0, qr/^nil/);
SKIP: {
    skip 'root reads everything', 1 if $> == 0;
    chmod 0, 'empty.lua';
    gives(q($lumat empty.lua), 1, '', "lumat: empty.lua: Permission denied\n");
}

# --- where output goes ---------------------------------------------------------
gives(q($lumat -e 'for i = 1, 1e6 do print(i) end' | head -1), 0, "1\n");
gives(q((trap '' PIPE; $lumat -e 'for i = 1, 1e5 do print(i) end'; echo $? >&2) | head -1),
      0, "1\n", "1\n");
for my $lost ([qw(>/dev/full), 'No space left on device'], [qw(>&-), 'Bad file descriptor']) {
    my ($to, $why) = @$lost;
    my $said = "lumat: cannot write the output: $why\n";
    gives("\$lumat -p 1 $to", 1, '', $said);
    gives("\$lumat --version $to", 1, '', $said);
    gives("\$lumat --manual=text $to", 1, '', $said);
    gives("\$lumat -e 'for i = 1, 1e5 do print(i) end' $to", 1, '', $said);
    gives("\$lumat -e 'print(1) os.exit(0)' $to", 1, '', $said);
    gives("\$lumat -e 'print(1) error(\"no\", 0)' $to", 1, '', "lumat: no\n$said");
    gives("\$lumat -e 'x = 1' $to", 0, '');
}
gives(q($lumat -e 'print(1)' <&- 2>&-), 0, "1\n");
gives(q($lumat <&-), 1, '', "lumat: stdin: Bad file descriptor\n");
gives(q($lumat -e 'error("no")' 2>&-), 1, '');
gives(q($lumat -e 'io.open("file", "w"):write("in it"):close() print(1)' >&- 2>&-; cat file),
      0, 'in it');
gives(q({ yes 1 | $lumat -q -i; } | head -1), 0, "lumat> 1\n");
gives(q($lumat -e 'io.write("a") io.stderr:write("b")' 2>&1), 0, 'ba');
gives(q($lumat -e 'io.write("a") error("b", 0)' 2>&1), 1, "alumat: b\n");
my $escape = qr/\e\[/;
gives(q($lumat -p 'mat{{0/0}}'), 0, qr/^(?!.*$escape)/s);
gives(q($lumat --color=always -p 'mat{{0/0}}'), 0, $escape);
gives(q(COLUMNS=40 $lumat -e 'print(ones(1, 60))'), 0, qr/^(?:.{0,40}\n)+$/);
gives(q($lumat -e 'print(ones(1, 60))'), 0, qr/^(?:.{0,84}\n)+$/);

# --- stopping ------------------------------------------------------------------

# Starts the code, waits for its first output and until it is in a loop, or waits
# for a child; sends signals, each once the one before has come. Exit status.
sub interrupted
{
    my ($code, @signals) = @_;
    unlink 'out';
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        $SIG{INT} = 'DEFAULT';
        open STDOUT, '>', 'out';
        open STDERR, '>', 'err';
        exec $lumat, '-e', "print(1) io.stdout:flush() $code";
    }
    comes_true(sub { -s 'out' });
    @signals > 1 ? awaits_child($pid) : computes($pid);
    for my $signal (@signals) {
        kill $signal, $pid;
        # a script handles the first Ctrl-C only
        comes_true(sub { hex((read_file("/proc/$pid/status") =~ /SigCgt:\s*\w*(\w)/)[0] // 0) % 4 < 2 });
    }
    waitpid $pid, 0;
    return $?;
}
# Lua makes it for the first large string, and by half where memory ends then.
is((run_shell(q($lumat -e 'local box = debug.getregistry()["_UBOX*"] print(box.__gc ~= nil, box.__close ~= nil)')))[1],
   "true\ttrue\n", 'what frees large strings is whole before a script begins');
is(interrupted('while true do end', 'INT') >> 8, 130, 'Ctrl-C stops a script');
like(read_file('err'), qr/interrupted/, 'and it says so');
is(interrupted('while true do pcall(function() while true do end end) end',
               'INT') >> 8, 130,
   'Ctrl-C stops a script that catches errors');
is(interrupted('io.popen("exec sleep 20"):close()', 'INT', 'INT') & 127, 2,
   'a second Ctrl-C ends a script that is inside a C function');
is(interrupted('coroutine.wrap(function() while true do end end)()', 'INT') >> 8,
   130, 'Ctrl-C stops a coroutine');

write_file('stopped.lua', "local function inner()\n  while true do end\nend\n"
    . "local function outer()\n  bench(inner)\nend\nouter()\n");
is(interrupted('dofile "stopped.lua"', 'INT') >> 8, 130,
   'Ctrl-C stops what the library calls');
is(read_file('err'), "lumat: interrupted at stopped.lua:2\n", 'and one line says where');

# --- habits ---------------------------------------------------------------------
write_file('habit.lua', "local A = ones(2, 2)\nA(1, 2) = 3\n");
gives(q($lumat habit.lua), 1, '',
      qr/habit.lua:2: syntax error near '='\n  an element is assigned with A\[/);

# --- more locals than a function of Lua's can have --------------------------------
my $locals = join ' ', map { "local v$_ = $_;" } 1 .. 450;
my $sum = join ' ', map { "s = s + v$_;" } 1 .. 450;
sub typed
{
    write_file('typed', join '', map { "$_\n" } @_);
    return q($lumat -q -i --no-init <typed 2>&1 | sed -E 's/^(lumat> )*//');
}
gives(typed("$locals print(v1 + v450);", 'v200, v300', 's = 0;', "$sum", 'v7 = 8;',
            "$sum return s"), 0,
      "451\n1: 200\n2: 300\n202951\n\n");
gives(typed("$locals function get() return v2 end; v2 = 5; local v2 = 6;", 'get(), v2'), 0,
      "1: 5\n2: 6\n\n");
gives(typed("$locals x = = 1", 'v1', "$locals for i = 1, 2 do", 'print(i + v450) end;',
            "$locals error 'no'", 'v450', "local k <const> = 1; $locals k = 2", 'k'), 0,
      "error: unexpected symbol near '='\nnil\nfor …> 451\n452\nerror: no\n450\n"
      . "error: attempt to assign to const variable 'k'\n1\n\n");
gives(typed("$locals\n", 't = {' . join(',', map { "v$_" } 1 .. 200) . '}'), 0,
      qr/^error: 200 locals of earlier entries in one statement: there can be 190$/m);

# --- names and slips -----------------------------------------------------------
write_file('slip.lua', "local function f()\n  made = 1\nend\nf()\nprint(made)\n"
    . "if rawget(_G, 'other') then print(other) end\nmatmull(1)\n");
gives(q($lumat slip.lua), 1, "1\n",
      "lumat: slip.lua:7: attempt to call a nil value (global 'matmull'): did you mean matmul?\n");
gives(q($lumat --strict slip.lua), 1, "1\n",
      "note: slip.lua:2: a function sets the new global 'made'; 'local made' would keep it to"
      . " itself\nlumat: slip.lua:7: 'matmull' is not defined: did you mean matmul?\n");
gives(q($lumat --strict -e 'x = nil print(x)' -e 'function f() x = 2 end f() print(x)'), 0,
      "nil\n2\n");
gives(q($lumat --strict -e 'p, q = eye(2)'), 1, '', qr/:1: 2 names are set, but eye gives one result\n$/);
gives(q($lumat --strict -e 'print(y)'), 1, '', qr/:1: 'y' is not defined\n$/);
gives(q($lumat -e 'print(y)'), 0, "nil\n");
write_file('reads.lua', "local A, s = rand(40, 40), 0\nfor k = 1, 2 do\n"
    . "  for i = 1, 40 do\n    for j = 1, 40 do s = s + A(i, j) * A[{j, i}] end\n"
    . "  end\nend\n");
gives(q($lumat reads.lua), 0, '');
my $reads = 'reads.lua:4:? read 1000 elements of A one by one, each a copy from cpu; '
    . 'A:totable\(\) or A:to\("cpu"\) copies them at once\n';
gives(q(LUMAT_COUNT_READS=cpu $lumat reads.lua), 0, '', qr/^note: $reads$/);
gives(q(LUMAT_COUNT_READS=cpu $lumat --strict reads.lua), 1, '', qr/^lumat: $reads$/);
gives(q(printf 'A = rand(9, 999); s = 0; for i = 1, 999 do s = s + A(1, i) * A(2, i) end;' | LUMAT_COUNT_READS=cpu $lumat -q -i), 0, "lumat> lumat> \n");

# --- screens where there is none -------------------------------------------------
gives(q($lumat -e 'A = ones(3, 9) view(A)'), 1, '',
      qr/^lumat: :view needs a terminal .*; A\["1:3, 1:8"\] prints a part\n$/);
gives(q(echo ':view ones(9)' | $lumat -i -q), 0, qr/^lumat> /,
      qr/^error: :view needs a terminal .*; ans\["1:9"\] prints a part\n$/);
gives(q($lumat -e 'last(ones(1, 60))'), 0, qr/^f32 1x60.*\n +1 +2 .* 60\n(?: +1){61}\n$/);
gives(q(PAGER=false $lumat -e 'last(range(1, 900))' | tail -1), 0, qr/ 900$/);

# --- time ----------------------------------------------------------------------
my @times = sort { $a <=> $b } map {
    my $start = time;
    system $lumat, '-e', '1';
    time - $start;
} 1 .. 9;
cmp_ok($times[0], '<', $ENV{LUMAT_SLOW} ? 5 : 0.03, 'lumat -e 1 starts quickly')
    or diag("@times");

done_testing();
