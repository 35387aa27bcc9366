#!/usr/bin/perl
# --safe: what a script can and cannot do, by the language's word and, where the
# kernel knows how, behind the fences; --memory and --time.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use File::Basename qw(dirname);
use Lumat;
use POSIX ();
use Test::More;

my $dir = new_folder('safe');
chdir $dir or die "$dir: $!\n";
delete @ENV{qw(COLUMNS NO_COLOR LUMAT_INIT XDG_STATE_HOME XDG_CONFIG_HOME)};
# Looking for leaks starts a process at the end, which is what must not be.
@ENV{qw(HOME LUMAT_NO_CUDA LC_ALL)} = ($dir, 1, 'C.UTF-8');
$ENV{ASAN_OPTIONS} = 'allocator_may_return_null=1:detect_leaks=0';
mkdir $_ for qw(box other box/sub);
write_file('outside.txt', "secret\n");
write_file('outside.lua', "return 'secret'\n");
write_file('outside.npy', '');
write_file('box/inside.txt', "1 2\n3 4\n");
write_file('box/mine.lua', "return {name = ...}\n");
write_file('other/data.txt', "5 6\n");
symlink '../outside.txt', 'box/link.txt' or die;
symlink '/', 'box/root' or die;
write_file('outside', "secret\n");    # what attack_fence goes for
symlink '../outside', 'box/link' or die;

# --- the fences, without the language ------------------------------------------
my $attack = dirname($lumat) . '/../tests/lua/value/attack_fence';
chomp(my $unfenced = `cd box && LC_ALL=C $lumat --safe -e 1 2>&1`);
my $fenced = $unfenced eq '';
SKIP: {
    skip 'no Landlock here', 2 if $unfenced =~ /needs Landlock/;
    skip 'no program attack_fence', 2 unless -x $attack;
    is($unfenced, '', 'the fences stand');
    my $said = `$attack box 2>&1`;
    is($? >> 8, 0, 'an attacker who calls what he likes') or diag($said);
}

# --- what scripts try ------------------------------------------------------------
my @refused = (
    'assert(io.open("../outside.txt"))', 'assert(io.open("../outside.txt", "a"))',
    'assert(io.open("../new.txt", "w"))', 'assert(io.open("sub/../../outside.txt"))',
    'assert(io.open("link.txt"))', 'assert(io.open("link.txt", "w"))',
    'assert(io.open("root/etc/passwd"))', 'assert(io.open("/etc/passwd"))',
    'assert(io.open("/proc/self/mem", "r+b"))', 'assert(io.open("/proc/self/environ"))',
    'assert(io.open("/dev/stdin"))', 'assert(io.open("/dev/fd/0"))',
    'io.lines("../outside.txt")', 'io.input("../outside.txt")',
    'io.output("../new.txt")', 'dofile "../outside.lua"',
    'assert(loadfile "../outside.lua")', 'package.path = "../?.lua" require "outside"',
    'load "../outside.npy"', 'load "link.txt"', 'save(ones(2), "../new.npy")',
    'save(ones(2), "root/tmp/new.npy")', 'save_session "../new.lum"',
    'load_session "../outside.npy"', 'transcript "../new.log"',
    'profile("json", "../new.json")', 'plot(vec{1, 2}, {file = "../p.png"})',
    'heat(eye(2), {file = "../p.svg"})', 'os.execute "true"', 'io.popen "true"',
    'os.exit()', 'settings{compile = "on"}', 'settings{compile = "always"}',
    'os.remove "inside.txt"', 'os.rename("inside.txt", "x")',
    'os.tmpname()', 'io.tmpfile()', 'debug.getregistry()', 'debug.getinfo(1)',
    'require "debug"', 'require "lumat.journal"', 'require "lumat.checks"',
    'package.loadlib("libm.so.6", "*")', 'package.loaded.debug.getinfo(1)',
    'package.searchers[1]("x")', 'string.dump(print)', '("x").dump(print)',
    '("%p"):format("x")', 'string.format("%5p", {})', '("\0%p"):format("x")', 'assert(load("\27Lua"))',
    'assert(os.getenv "SECRET")', 'cd ".."', 'ls ".."', 'ls "/etc"', 'assert(ls("/etc/pass*")[1])',
    'assert(ls("../out*")[1])',
    'experiment{name = "x", dir = "../runs", axes = {n = {1}}, measure = function() return 1 end}:run{quiet = true}',
    'experiment{name = "x", axes = {n = {1, 2}}, measure = function() return 1 end}:run{quiet = true, workers = 2}',
);
$ENV{SECRET} = 'secret';
for my $mode ($fenced ? '--safe' : (), '--safe-language') {
    for my $code (@refused) {
        local $ENV{code} = $code;
        my ($status, $out, $err) = run_shell("cd box && \$lumat $mode -e \"\$code\"");
        ok($status == 1 && $out eq '' && $err =~ /^lumat: /, "$mode: $code")
            or diag("$status $out$err");
    }
    is(join(' ', sort glob '*'), 'box err other out outside outside.lua outside.npy outside.txt',
       "$mode: nothing new outside");
    is(read_file('outside.txt'), "secret\n", "$mode: nor changed");

    # --- and what they may ---------------------------------------------------
    my @allowed = (
        ['print(io.open("inside.txt"):read())', "1 2\n"],
        ['io.open("new.txt", "w"):write("x"):close() print(io.open("new.txt"):read())', "x\n"],
        ['for l in io.lines "inside.txt" do print(l) end', "1 2\n3 4\n"],
        ['print(load("inside.txt"):sum())', "10.0\n"],
        ['print(plot(vec{1, 2}, "p.png"))', "wrote p.png\n"],
        ['save(ones(3), "a.npy") print(load("a.npy"):sum())', "3.0\n"],
        ['x = 5 save_session "s.lum" x = 6 load_session "s.lum" print(x)', qr/^5\n/m],
        ['print(require "mine".name, require "mine" == require "mine")', "mine\ttrue\n"],
        ['print(require "lumat".ones == ones, require "string" == string)', "true\ttrue\n"],
        ['print((rand(200, 200) * rand(200, 200)).rows, solve(eye(50), ones(50)):sum())', "200\t50.0\n"],
        ['print(memory("cpu").total > 0, os.time() > 0, os.date("%Y") + 0 > 2000)', "true\ttrue\ttrue\n"],
        ['print(select(2, xpcall(error, debug.traceback, "mine")):match "^mine")', "mine\n"],
        ['print(load "return 6 * 7"())', "42\n"],
        ['settings{compile = "off"} print(settings().compile)', "off\n"],
        ['transcript "t.log" transcript(false) print(io.open("t.log") ~= nil)', "true\n"],
        ['local e = experiment{name = "x", axes = {n = {1, 2}}, measure = function(p) return p.n end}'
         . ' e:run{quiet = true} print(io.open("runs/x/experiment.json") ~= nil)', "true\n"],
        ['print(pcall(io.open, "inside.txt", "q"))', qr/^false\t.*invalid mode/],
    );
    for my $case (@allowed) {
        local $ENV{code} = $case->[0];
        my ($status, $out, $err) = run_shell("cd box && rm -rf runs && \$lumat $mode -e \"\$code\"");
        my $good = ref $case->[1] ? $out =~ $case->[1] : $out eq $case->[1];
        ok($status == 0 && $good, "$mode: $case->[0]") or diag("$status $out$err");
    }

    # --- what the library does for a script --------------------------------------
    my ($status, $out, $err) = run_shell("cd box && rm -rf runs && \$lumat $mode -e '"
        . ' local e = experiment{name = "x", axes = {n = {1}}, measure = load("return 1", "@../outside.txt")}'
        . ' e:run{quiet = true} e:report "r.html" print(io.open "r.html":read "a":find("secret", 1, true))' . "'");
    is($out, "nil\n", "$mode: a report has no file elsewhere as its script") or diag($err);
    mkdir 'box/run';
    symlink '../../outside.txt', "box/run/$_" or die for qw(env-1.json experiment.json j-x-1-abc.jsonl);
    ($status, $out, $err) = run_shell("cd box && \$lumat $mode -e '"
        . ' experiment{name = "x", dir = "run", axes = {n = {1}}, measure = function() return 1 end}:run{quiet = true}' . "'");
    unlike("$out$err", qr/secret/, "$mode: nor is a link in a run's folder read");
    run_shell('rm -rf box/run');
    write_file('.lumat-elsewhere-1-0.tmp', 'left behind');
    utime 1, 1, '.lumat-elsewhere-1-0.tmp';
    run_shell("cd box && \$lumat $mode -e 'save(ones(2), \"../new.npy\")'");
    ok(unlink('.lumat-elsewhere-1-0.tmp'), "$mode: nothing is swept elsewhere");

    # --- no compiler, whatever the environment wants -------------------------
    is((run_shell("LUMAT_COMPILE=always \$lumat $mode -e 'print(settings().compile)'"))[1],
       "off\n", "$mode: nothing is compiled");

    # --- addresses, and what there is ------------------------------------------
    ($status, $out, $err) = run_shell("cd box && \$lumat $mode -e 'local t, co = {}, coroutine.create(print)"
        . ' print(t, print, co, io.stdout, setmetatable({}, {__name = "mine"}))'
        . ' print(tostring(t) == tostring(t), tostring({}) ~= tostring({}), ("%s %5s"):format(t, 1))'
        . " error(t)'");
    is($status, 1, "$mode: an object as the error");
    unlike("$out$err", qr/0x[0-9a-f]{6}/, "$mode: no address is shown");
    like($out, qr/^table: \d+\tfunction: \d+\tthread: \d+\tfile\tmine: \d+\ntrue\ttrue\ttable: \d+     1\n$/,
         "$mode: but which is which");
    ($status, $out, $err) = run_shell("cd box && rm -rf runs && \$lumat $mode -p print -p '{print, coroutine.create(print)}'"
        . ' -e \'print(pcall(function() return ones(2) + print end)) print(("%s %9s"):format(print, {}))\''
        . ' -e \'local e = experiment{name = "x", axes = {n = {1}}, measure = function() error(print) end}'
        . ' e:run{quiet = true} print(e:table())\'');
    unlike("$out$err", qr/0x[0-9a-f]{6}/, "$mode: nor in an echo, a message, a table");
    like($out, qr/^function: \d+\n\{function, thread: \d+\}\n.*FAILED  n=1: measure: function: \d+/s, "$mode: by whatever way");
    ($status, $out, $err) = run_shell("cd box && printf 'print\\nfunction f() end\\nf\\nt = {f}\\nt\\n' | \$lumat -q -i $mode");
    unlike("$out$err", qr/0x[0-9a-f]{6}/, "$mode: nor at the prompt");
    ($status, $out) = run_shell("cd box && \$lumat $mode -e 'local own = require \"lumat\" local names = {}"
        . ' for name in pairs(_G) do if not own[name] then names[#names + 1] = name end end'
        . " table.sort(names) print(table.concat(names, \" \"))'");
    is($out, '_G _VERSION arg assert collectgarbage coroutine debug dofile error getmetatable io ipairs '
        . 'loadfile math next os package pairs pcall print rawequal rawget rawlen rawset require select '
        . "setmetatable string table tonumber tostring type utf8 warn xpcall\n", "$mode: the globals");
}

# --- folders -------------------------------------------------------------------
for my $mode ($fenced ? '--safe' : (), '--safe-language') {
    my @got = run_shell("\$lumat $mode=box,other:ro -e 'print(load(\"other/data.txt\"):sum())"
        . " print(load(\"box/inside.txt\"):sum())' -e 'save(ones(2), \"box/b.npy\")' -e 'save(ones(2), \"other/b.npy\")'");
    is($got[1], "11.0\n10.0\n", "$mode: folders by name");
    like($got[2], qr{save: cannot write 'other/b.npy': --safe allows it in its folders alone}, "$mode: one of them to read");
    ok(-e 'box/b.npy' && !-e 'other/b.npy', "$mode: and so it is");
    unlink 'box/b.npy';
    @got = run_shell("\$lumat $mode=box outside.lua");
    is($got[0], 0, "$mode: the script itself may lie elsewhere");
    @got = run_shell("\$lumat $mode=nowhere -e 1");
    is($got[2], "lumat: --safe: there is no folder 'nowhere'\n", "$mode: a folder that is not there");
    for my $list ('.,other:ro', 'other:ro,.', 'other,other:ro') {
        @got = run_shell("\$lumat $mode=$list -e 1");
        is($got[0], 1, "$mode=$list is refused");
        like($got[2], qr{^lumat: --safe: '\S+/other' cannot be :ro, as a folder that may be written has it$}, 'with why');
    }
    @got = run_shell("\$lumat $mode=other:ro,other/in -e 1") if mkdir 'other/in';
    is($got[0], 0, "$mode: a folder to write may lie in one to read") or diag($got[2]);
    rmdir 'other/in';
    for my $twice ("$mode=box $mode=other", "$mode --bytecode", "--bytecode $mode") {
        is((run_shell("\$lumat $twice -e 1"))[0], 2, "$twice is refused");
    }
    @got = run_shell("cd box && printf ':run ../outside.lua\\n:run mine.lua\\n' | \$lumat -q -i $mode");
    is($got[2], "error: :run: --safe keeps '../outside.lua' from being read\n", "$mode: :run");
    @got = run_shell("rm -f begun; \$lumat $mode=box -e 'print(io.stderr:write() and 1) io.stdout:flush()' -e 'io.read()' 7<outside.txt <fifo >begun &"
        . ' pid=$!; exec 8>fifo; until [ -s begun ]; do sleep 0.02; done; ls /proc/$pid/fd; kill $pid') if -e 'fifo' || POSIX::mkfifo('fifo', 0600);
    unlike($got[1], qr/^7$/m, "$mode: what was left open is closed");
}

# --- limits --------------------------------------------------------------------
for my $code ('t = {} for i = 1, 1e9 do t[i] = {} end', 's = ("x"):rep(1e9)', 'A = zeros(5000, 5000)',
              't = {} for i = 1, 1e6 do t[i] = rand(100, 100) end') {
    local $ENV{code} = $code;
    my ($status, undef, $err) = run_shell('$lumat --device cpu --memory=64M -e "$code"');
    is($status, 4, "--memory: $code");
    like($err, qr/memory/, 'is told');
}
is((run_shell('$lumat --device cpu --memory=64M -e "for i = 1, 500 do local A = rand(1000, 1000) end"'))[0], 0,
   '--memory: what is let go does not count');
my $peak = q(print(io.open("/proc/self/status"):read "a":match "VmHWM:%s*(%d+)"));
for my $code ('pcall(function() local t = {} for i = 1, 1e9 do t[i] = zeros(1) end end) collectgarbage()',
              'for i = 1, 100 do local A = zeros(1000, 6000 + 500 * (i % 19)) A = nil collectgarbage() end') {
    local $ENV{code} = "$code $peak";
    my (undef, $out) = run_shell('$lumat --device cpu --memory=64M -e "$code"');
    like($out, qr/^\d+$/, "goes on short of memory: $code");
    SKIP: {
        skip 'sanitizers hold more', 1 if is_sanitized();
        cmp_ok($out / 1024, '<', 110, "--memory holds: $code");
    }
}
for my $code ('while true do end', 'while true do pcall(error) end', 'A = rand(2000, 2000) while true do A = A * A end') {
    local $ENV{code} = $code;
    my $begin = time;
    my ($status, undef, $err) = run_shell('$lumat --device cpu --time=0.3 -e "$code"');
    is($status, 130, "--time: $code");
    like($err, qr/--time=0.3 allows no more/, 'is told');
    cmp_ok(time - $begin, '<', 20, 'in time');
}
like((run_shell(q(printf 'while true do end\n1 + 1\n' | $lumat -q -i --time=0.2)))[1], qr{lumat> 2},
     '--time: each entry has its own');
like((run_shell(q(printf 't = setmetatable({}, {__tostring = function() while true do end end})\nt\n1 + 1\n' | $lumat -q -i --time=0.2)))[1],
     qr{lumat> 2}, '--time: what an entry shows has it, too');
is((run_shell(q($lumat --time=0.2 -e 'setmetatable({}, {__gc = function() while true do end end})')))[0], 0,
   '--time: a finaliser at the end is stopped');
write_file('long.lua', 'return ' . 'x and ' x 200_000 . 'x');
for my $words ('long.lua', q(-e 'io.popen("exec sleep 20"):close()')) {
    my $begin = time;
    my ($status, undef, $err) = run_shell("\$lumat --time=0.2 $words");
    is($status, 130, '--time: what does not stop ends with the program');
    is($err, "lumat: --time=0.2 allows no more, and what runs does not stop\n", 'is told');
    cmp_ok(time - $begin, '<', 20, 'in time');
}
my ($caught) = run_shell(q(timeout -s KILL 15 $lumat --time=0.2 -e 'setmetatable({}, {__gc = function() while true do)
    . q( pcall(function() while true do end end) end end})'));
isnt($caught, 137, '--time: a finaliser that catches errors ends, one way or the other');
for my $option ('--memory=3', '--memory=x', '--memory=', '--time=x', '--time=0', '--time=-1') {
    is((run_shell("\$lumat $option -e 1"))[0], 2, "$option is refused");
}
done_testing();
