# What a random user does at the prompt. A burst is a list of steps: text to
# be sent as it is, Ctrl-Z alone so that `fg` follows, "80x24" for a new size,
# "wait" until nothing moves, "TERM" for a signal. The same seed gives the same steps.
package Monkey;
use strict;
use warnings;
use Exporter qw(import);

our @EXPORT_OK = qw(pick random_burst show_step read_step);

sub pick
{
    return $_[rand @_];
}

# --- what is typed -------------------------------------------------------------

my @values = (
    '1', '-2.5e300', '0/0', '1e999', '"str"', '"caf\xc3\xa9"', 'nil', 'true', '{}', '{1, {2}}',
    'zeros(0, 0)', 'zeros(0, 5)', 'ones(1, 1)', 'rand(3, 4)', 'full(3, 3, 0/0)', 'rand(200, 300)',
    'sparse(eye(5))', 'sparse({1, 3}, {2, 9}, {1.5, -2}, 10, 10)', 'rand(4, 4):gt(0.5)',
    'randint(1, 9, 5, 5)', 'vec{1, 2, 3}', 'eye(4).T', 'rand(9, 9)[{{2, 5}, {3, 8}}]', 'ones(4)',
    'zeros(1, 1):expand(1000, 1000)', '3 + 4i', '(1 + 2', 'f64', 'sin', 'function() end', 'x', 'A',
    'B', 'randn(6, 6, {dtype = "f64"})', 'A * B', 'A + 1', 'solve(A, B)', 'A.T', 'A["1:2, end"]',
    'ones(2, 3, {dtype = "i32"})', 'coroutine.create(print)', 'setmetatable({}, {__tostring = 1})',
);
my @entries = (
    'x = 1', 'A = rand(4, 4)', 'B = A + 1', 'A[1] = 2', 'A[{1, 2}] = "x"', 'A[A:gt(0.5)] = 0',
    'for i = 1, 3 do print(i) end', 'local y = 2', 'y', 'ans', 'error("oops")', 'error({})',
    'error(nil)', 'foo.bar.baz', 'retrun 1', 'x = = 1', '"unfinished', '[[', '-- note', '--[[', ';',
    'io.write("no end")', 'print(("x"):rep(3000))', 'print("\27[7mink\27[0m\r\7\8")', 'goto here',
    'print("\xff\xfe")', '"\xe6\x97\xa5\xe6\x9c\xac"', 'while true do end', 'io.read()', 'repeat until nil',
    'for i = 1, 1e7 do x = i end', 'A * ones(7)', 'A = matmul(rand(300, 300), rand(300, 300))', '::l::',
    'return 1, nil, 3', 'x, y = 1, 2', 'f = function(n) return n end', 'f(f)', 'coroutine.wrap(f)(1)',
    'pcall(error)', 'setmetatable(x, {})', 'string.rep("ab", 1000)', '{1, 2, {3, {4}}}', 'x = {} x.x = x',
    'collectgarbage()', 'coroutine.wrap(function() error("in") end)()', 'local function g() return g() end g()',
    'function h(a)', 'if x then', 'return a', 'else', 'end', '}', ')', 'for i = 1, 300 do print(i) end',
);
my @commands = qw(
    who device kernel mem how view last inspect heat hist spy plot watch cost time bench race
    trace prof check history edit keys help set run save load log
);
my @arguments = (
    '', '', '', 'A', 'A', 'B', 'x', 'A, B', 'B -s', '-s', 'on', 'off', 'errors', 'top', 'reset', '0', '-1', '3',
    '99999999999999999999', '*', 'A*', 'A * B', 'A > f.txt', 'nil', '{', '"', "'", '"a b', ')', 'json p.json',
    'cpu', 'cuda', 'cuda:7', 'nosuch', 'digits 3', 'digits x', 'rows 5', 'edge 1', 'colour never', 'colour auto',
    'dtype f64', 'dtype f32', 'session.lum', 'bad.lum', 'script.lua', 'fails.lua 1 2', 'data.csv', '"with blank.lum"',
    'out.lum A B', 'log.txt', 'rand(500, 500)', 'rand(3, 3), "p.svg"', 'sin', 'math.sin, 0, 6', 'view', ':view',
    '??', "\xff", '1 + 1', 'A:sum()', 'sum', 'A, {', 'error("in")', 'while true do end', 'f', 'zeros(0, 3)',
    'full(5, 5, 0/0)', 'sparse(eye(30))', 'rand(4, 4):gt(0.5)', 'randint(1, 9, 5, 5)', 'ones(5)',
    'zeros(1, 1):expand(100000, 100000)', '9' x 200, 'a' x 300,
);
my @topics = qw(sum matmul indexing commands : :view view_ nosuch * + [ . A :set types experiment ?);
my @opened = (
    'su', 'mat', 'A:', 'A.', 'A * ', 'solve(A, ', 'matmul(A, B, {', 'matmul(A, B, {kernel = "', 'rand(3, 3, {dt',
    ':', ':h', ':set ', ':view ', ':run ', ':load ', ':load "', ':save ', '?', '?su', '??p', 'load("', 'require "',
    'x.', 'for ', 'print(', '"str', '{', 'A[', 'string.', 'math.s', 'local ', 'f(', 'zeros(3', '', ' ', 'save(A, "',
    "\xe6\x97", "\xc3\xa9", 'A:sum(', 'default_dtype("', 'x = y.', '(', '[[', '-- x', 'A..', 'A::', '1.', 'lm.',
);

# --- keys ----------------------------------------------------------------------

my @edits = (
    map({ chr } 1, 2, 5, 6, 8, 11, 12, 14, 16, 20, 21, 23, 25, 31), map({ "\e$_" } '#', qw(b f d t u l c < > y . r \\ *),
    "\x7f", "\b", "\r"), map({ "\e[$_" } qw(A B C D H F 3~ 2~ 5~ 6~ 1;5C 1;5D Z 200~)), map({ "\eO$_" } qw(A B C D H F)),
    "\x7f", "\t", "\r", "\n", "\x18\x18", "\x18\x15", "\x18\x05", "\x11\x01", "\x16\t", "\x16\x1b", "\x1d" . 'a',
    "\e\x1d" . 'x', "\e-", "\e\x07", "\e" . '5', "\e" . '12', "\e ", "\0", "\x18(", "\x18)", "\x18e", "\x1e", "\x1c\b",
    "\e?", "\x18/", "\e!", "\e~", "\e{", "\ep", "\en", "\e&", "\ek",
);
# Not / and ?: Readline's search for a pattern takes seconds in a long entry.
my @vi_keys = (
    split(//, 'hjklwbeWBE0$^xXDCSsRruUpPyYiaIAnN.~;,|GF%=*\\-+_#@v'), 'dd', 'dw', 'cw', 'yy', 'd$', 'fa', 'tb', '3x',
    '20j', "\x12", 'qq', 'r' . "\r", 'rz', "cf\e", 'd3w', "\t",
);
my @view_keys = (
    split(//, 'hjklt+-ceynNY?<>'), map({ "\e[$_" } qw(A B C D H F 5~ 6~ 1;5A 1;5B 1;5C 1;5D 1;5H 1;5F Z)), 'q', "\e",
    "g2,3\r", "g-1\r", "gend,end\r", "g0\r", "g99999999999999999999\r", ":1\r", "gx\r", "g\e", "/nan\r", "/inf\r", "/0\r",
    "/>0.9\r", "/<\r", "/x\r", "/\x7f\x7f", "g1\x7f2\r", "\x0c", "\r", "\0", "\xff", 'q',
);

sub keys_of
{
    my $from = shift;
    return join '', map { pick(@$from) } 1 .. 1 + rand 6;
}

# --- steps ---------------------------------------------------------------------

sub entry
{
    my $kind = rand;
    return pick(@entries) if $kind < 0.5;
    return pick(@values) if $kind < 0.6;
    return pick(qw(x A B f)) . ' = ' . pick(@values) if $kind < 0.8;
    return ':' . pick(@commands) . ' ' . pick(@arguments) if $kind < 0.95;
    return pick('?', '??') . pick(@topics);
}

sub cut
{
    my $text = shift;
    return substr $text, 0, rand 1 + length $text;
}

sub block
{
    return join pick("\n", "\n", "\r", "\r\n"), map { entry() } 1 .. 1 + rand 6;
}

sub screen_copy
{
    return join '', map { 'lumat> ' . entry() . "\n" . pick('', "1\n", "error: x\n", "for \xe2\x80\xa6> end\n") } 1 .. 1 + rand 4;
}

# But for ESC: what is wrong with it goes to the terminal as it is.
sub noise
{
    return join '', grep { $_ ne "\e" } map { chr rand 256 } 1 .. 1 + rand 200;
}

sub pasted
{
    my $kind = rand;
    my $text = $kind < 0.4 ? block() : $kind < 0.6 ? screen_copy() : $kind < 0.75 ? noise()
        : $kind < 0.8 ? 's = "' . ('0123456789' x 5000) . '"' : $kind < 0.85 ? "x = 1\n" x 600 : entry();
    return "\e[200~$text" . pick('', "\n", "\r\n") . pick("\e[201~", "\e[201~", "\e[201~", "\e[201~", '', "\e[20");
}

# Ctrl-Z and Ctrl-S, which stop it and its output, have steps of their own;
# Ctrl-\ has none.
sub tame
{
    my $text = shift;
    $text =~ tr/\x13\x1a\x1c//d;
    return $text;
}

sub size
{
    return '1x1' if rand() < 0.05;
    return int(20 + rand 181) . 'x' . int(5 + rand 56);
}

sub edited
{
    my $text = entry();
    my $place = rand 1 + length $text;
    return (substr($text, 0, $place), keys_of(\@edits), substr($text, $place), keys_of(\@edits));
}

my @kinds = (
    [14, sub { entry() . pick("\r", "\r", "\r", "\n", '') }],
    [10, sub { (map { entry() . "\r" } 1 .. 3) }],
    [12, sub { ':' . pick(@commands, cut(pick(@commands))) . pick(' ', ' ', '') . pick(@arguments) . "\r" }],
    [3,  sub { pick('?', '??') . pick(@topics, @arguments) . "\r" }],
    [10, sub { (pick('', cut(entry())) . pick(@opened), pick("\t", "\t\t", "\t\t\t"), pick('', 'y', 'n', "\r", ' ', "\x7f\t")) }],
    [4,  sub { (cut(entry()), keys_of([@edits[0 .. 5]]), "\t\t") }],
    [12, sub { edited() }],
    [6,  sub { keys_of(\@edits) }],
    [5,  sub { ("\x12" . pick('p', 'for', 'x', 'zz', ':', "\n"), pick("\x12", ''), pick("\r", "\x07", "\e[D", "\e", "\x03", '')) }],
    [3,  sub { ("\x18v", "\e", keys_of(\@vi_keys), keys_of(\@vi_keys), pick("\r", "\x18m", 'i')) }],
    [2,  sub { ("\e", keys_of(\@vi_keys)) }],
    [9,  sub { pasted() }],
    [6,  sub { size() }],
    [5,  sub { (pick('wait', ''), "\x03") }],
    [3,  sub { (pick('wait', ''), "\x1a") }],
    [9,  sub { (':view ' . pick(@values, 'A', 'B') . "\r", pick('wait', ''), (map { pick(size(), (keys_of(\@view_keys)) x 8, "\x1a") } 1 .. 3), pick('q', '')) }],
    [3,  sub { (':watch ' . pick('A', 'x', 'off', 'B') . "\r", 'for i = 1, 3e4 do A = rand(4, 4) end' . "\r", pick('', size(), "\x1a", "\x03")) }],
    [3,  sub { (':edit ' . pick(@arguments) . "\r", pick("\r", '', "\x18\x05")) }],
    [4,  sub { (pick(':last ' . pick(@values), ':keys', ':help', ':history 999', 'A = rand(300, 300) :last A') . "\r", keys_of(\@view_keys), 'q') }],
    [1,  sub { noise() }],
    [1,  sub { ("\x13", entry() . "\r", "\x11") }],
    [1,  sub { ("\x04") }],
    [1,  sub { pick(':quit' . "\r", 'KILL', 'TERM', 'HUP') }],
    [3,  sub { 'wait' }],
);
my $weights = 0;
$weights += $_->[0] for @kinds;

sub random_step
{
    my $place = rand $weights;
    for my $kind (@kinds) {
        return $kind->[1]->() if ($place -= $kind->[0]) < 0;
    }
}

sub random_burst
{
    my $count = shift;
    return grep { $_ ne '' } map { tame_step($_) } map { random_step() } 1 .. $count;
}

sub tame_step
{
    my $step = shift;
    return $step =~ /^[\x13\x1a]\z/ ? $step : tame($step);
}

# --- steps as text -------------------------------------------------------------

sub show_step
{
    my $step = shift;
    return $step if $step =~ /^(?:\d+x\d+|wait|editor \d+|KILL|TERM|HUP)$/;
    $step =~ s/([^ -~]|\\)/sprintf '\\x%02x', ord $1/ge;
    return '"' . $step . '"';
}

sub read_step
{
    my $line = shift;
    return $line unless $line =~ s/^"(.*)"$/$1/s;
    $line =~ s/\\x(..)/chr hex $1/ge;
    return $line;
}

1;
