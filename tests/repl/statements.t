#!/usr/bin/perl
# Random statements as one entry at the prompt, below each other, behind a ';'
# or beside each other: they must do what the same text does as a file, and
# expressions among them must show what they give.
#
#   LUMAT_STATEMENTS=2000 tests/repl/statements.t    so many entries (80)
#   LUMAT_SEED=7                                     the first one's seed (1)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Lumat;
use Test::More;

my $count = $ENV{LUMAT_STATEMENTS} || 80;
my $seed = $ENV{LUMAT_SEED} || 1;
my $dir = new_folder('statements');
chdir $dir or die "$dir: $!\n";
@ENV{qw(HOME LC_ALL LUMAT_NO_CUDA)} = ($dir, 'C.UTF-8', 1);

sub pick { return $_[rand @_] }

# Prints what the prompt would show of the values, and keeps them as it does.
my $prelude = join ' ', split /\n/, <<'END';
a, b, c, n, ans, t = 1, 2, 3, 0, 0, {x = 5, 7, 8};
local function text(v) if type(v) == "string" then return '"' .. v .. '"' end return tostring(v) end
function keep(...) if (...) ~= nil then ans = ... end end
function show(...)
  keep(...);
  local count = select("#", ...);
  for i = 1, count do print((count > 1 and i .. ": " or "") .. text((select(i, ...)))) end
end
function f(...) print("f", ...) return ... end
function g(...) print("g", ...) end
local way = {__tostring = function() return "F" end};
function way.__call(self, ...) print("call", ...) return self end
function way.__sub(x, y) print("sub", x, y) return F end
function way.__unm(x) print("unm", x) return F end
function way.__index(x, k) print("index", k) return F end
function way.__newindex(x, k, v) print("set", k, v) end
F = setmetatable({}, way);
END

# --- statements ----------------------------------------------------------------

sub value
{
    my $deep = shift // 0;
    return pick('a', 'b', 'c', 't.x', 't[1]', '#t', 7, '0x10') if $deep > 2 || rand() < 0.4;
    return value($deep + 1) . pick(qw(+ - * ..), ' - ', ' // 3 + ', ' % 5 * ') . ' ' . value($deep + 1) if rand() < 0.5;
    return pick('f(' . value($deep + 1) . ')', '(' . value($deep + 1) . ')', '-' . value($deep + 1),
                'select("#", ' . value($deep + 1) . ')', '(function() return ' . value($deep + 1) . ' end)()');
}

my $names;    # of locals and labels, so far

# Lua's own statements, but for calls.
sub statement
{
    my $name = 'l' . ++$names;
    my $v = '(tonumber(' . value() . ') or 1)';
    return pick(
        "a = $v", "a, b = $v, $v", "local $name = $v", "local $name <const> = $v", "t.x = $v",
        "if a > b then c = $v else g(b) end", 'for i = 1, 2 do g(i) end', 'while a > 100 do a = a // 2 end',
        'repeat n = n + 1 until n % 3 == 0', "do local z = $v g(z) end", "local function $name(x) return x end g($name(2))",
        "function t.f(x) return x end", "goto $name; g('skipped'); ::${name}::", 'g(ans)', "t[f(1)] = $v",
        "local $name <close> = setmetatable({}, {__close = function() print('closed') end})",
        "a = --[==[ a comment ]==] $v", rand() < 0.1 ? 't.nope.x = 1' : 'b = "12" + 0');
}

sub expression
{
    return pick(value(), value() . ', ' . value(), '"text"', "'it' .. " . value(), 'not a', 'nil', 'a == b', '[[long]]',
                'a and b or c', 'ans', 'true, nil', 't.x', '2^3');
}

sub call
{
    return pick('f(' . value() . ')', 'f()', 'g(' . value() . ')', 'f "s"', 'f(nil, ' . value() . ')', '("ab"):rep(2)',
                't.f and t.f(3) or f(4)') =~ s/.* or (.*)/$1/r;
}

# What begins so goes on with what is in front of it.
sub may_go_on
{
    return shift =~ /^[-(\[{"']/;
}

# Text for the prompt and for a file, and whether it is known to be no more than
# one row.
sub random_entry
{
    my ($entry, $file, $kind) = ('', '', '');
    $names = 0;
    my $left = 1 + int rand 7;
    while ($left-- > 0) {
        my $next = pick(qw(statement statement expression call));
        my $text = $next eq 'statement' ? statement() : $next eq 'call' ? call() : expression();
        my @ways = ("\n", "\n", ';', ";\n");
        push @ways, ' ' if $kind ne 'expression' && $next ne 'expression';
        @ways = grep { /;/ } @ways if may_go_on($text);
        my $between = $entry eq '' ? '' : pick(@ways);
        $file =~ s/show(\(\x01)/keep$1/ if $between =~ /^[; ]/;
        $file =~ s/\x01//;
        $entry .= $between . $text;
        $file .= $between . ($next eq 'statement' ? $text : "show(\x01$text)");
        $kind = $next;
    }
    if (rand() < 0.3) {
        $_ .= ';' for $entry, $file;
        $file =~ s/show(\(\x01)/keep$1/;
    }
    $file =~ s/\x01//;
    return ($entry, $file);
}

# Rows that Lua may read as one statement or several. F can be called, indexed
# and subtracted, and gives itself.
sub random_rows
{
    my @rows = map {
        pick('F(1)', 'x = F', 'local y = F', '(F)(2)', '-F', '{3}', '"s"', '[[s]]', '[4]', '.z', ':w()', 'F.x = F', 'x = 5',
             'x = -F', 'do local v = F end', 'local z', '(F or x)(6)', '= F', ', F', 'F', '- 2', 'x, y = F', '("s"):len()')
    } 1 .. 2 + rand 5;
    return join "\n", @rows, 'F(x)';
}

# --- running -------------------------------------------------------------------

sub run
{
    my ($options, $input) = @_;
    write_file('input', $input);
    my (undef, $output, $errors) = run_shell("\"\$lumat\" --no-init $options <input");
    my ($error) = $errors =~ /^(?:error:|lumat:) (.*)/m;
    return ($output, $error);
}

# Rows are read one by one, so all but the last end in a comment that goes on.
sub run_entry
{
    my $entry = shift;
    my ($output, $error) = run('-q -i', "$prelude;\n" . $entry =~ s/\n/ --[[\n]]/gr . "\nprint('DONE')\n");
    $output =~ s/lumat> | *(?:--\[\[ )?…> //g;
    return ($output =~ s/DONE\n\n$//r, $error);
}

sub run_file
{
    my $text = shift;
    my $rows = $text =~ tr/\n//;
    my ($output, $error) = run('-', "$prelude $text\n");
    $error =~ s/^stdin:(\d+): /$rows ? "line $1: " : ''/e if defined $error;
    return ($output, $error);
}

sub is_same
{
    my ($number, $entry, $file, $filter) = @_;
    my @wanted = run_file($file);
    return 'no Lua' if defined $wanted[1] && $wanted[1] =~ / near | at line |label|attempt to assign to const/;
    my @got = run_entry($entry);
    $got[1] =~ s/^(.*?)\n.*/$1/s if defined $got[1];
    $_->[0] =~ s/$filter//g, $_->[0] =~ s/0x\w+/0x/g for \@got, \@wanted;
    return 1 if $got[0] eq $wanted[0] && ($got[1] // '') eq ($wanted[1] // '');
    diag("entry $number:\n$entry\nas a file:\n$file");
    diag('wanted: ', explain(\@wanted), 'got: ', explain(\@got));
    return 0;
}

my ($kept, @failed) = (0);
for my $number ($seed .. $seed + $count - 1) {
    srand $number;
    my $same = is_same($number, random_entry(), qr/^\w+ = .*\n/m);
    $kept++ if $same eq '1';
    push @failed, $number if !$same;
}
is("@failed", '', 'entries show what their expressions give');
cmp_ok($kept, '>', $count / 2, 'most of them are Lua');

($kept, @failed) = (0);
for my $number ($seed .. $seed + 2 * $count - 1) {
    srand $number;
    my $rows = random_rows();
    my $same = is_same($number, $rows, $rows, qr/^(?:F|\d+)\n/m);
    $kept++ if $same eq '1';
    push @failed, $number if !$same;
}
is("@failed", '', 'rows are read as in a file');
cmp_ok($kept, '>', $count / 20, 'some of them are Lua');
done_testing();
