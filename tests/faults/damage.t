#!/usr/bin/perl
# What an experiment keeps is cut off, or has a bit turned or zeros in it, at
# each byte of each of its files: it is refused, or what it shows is right; and
# running it again ends, with each point once or an error.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..", $FindBin::Bin;
use Faults;
use Lumat;
use Test::More;

begin_faults('damage', 6);
write_file('run.lua', <<'END');
local e = experiment{name = "x", dir = arg[1] .. "/run", repeats = 1, warmup = 0,
    axes = {n = {1, 2, 3}}, measure = function(p) return p.n * 1e-3 end}
e:run{quiet = true}
for _, row in ipairs(e:results()) do print(row.p.n, row.median) end
END
# Opens run directories 1 to n, each of which is damaged.
write_file('open.lua', <<'END');
local function look(e)
    local seen = {}
    for _, row in ipairs(e:results()) do
        local n, seconds = row.p.n, row.median
        if seen[n] then return "twice", n end
        seen[n] = true
        if type(n) == "number" and seconds and math.abs(seconds - n * 1e-3) > 1e-9 then
            return "wrong", n, seconds
        end
    end
    local _ = tostring(e:table())
end
for i = 1, tonumber(arg[1]) do
    local ok, e = pcall(experiment.open, "d/" .. i .. "/run")
    if ok then
        local works, what, n, seconds = pcall(look, e)
        if works and what then print("BAD", i, what, n, seconds) end
    end
end
print "END"
END

mkdir 'whole';
outcome_of({}, $lumat, '--no-init', 'run.lua', 'whole');
my @files = grep { -f } glob 'whole/run/*';
s|.*/|| for @files;
my %content = map { $_ => read_file("whole/run/$_") } @files;

# Each way to damage a file: where, and how.
my @cases;
for my $file (@files) {
    for my $at (0 .. length($content{$file}) - 1) {
        push @cases, [$file, $at, 'cut'], [$file, $at, 'bit'];
        push @cases, [$file, $at, 'zeros'] if $at % 7 == 0;
    }
}

sub damaged
{
    my ($file, $at, $way) = @_;
    my $text = $content{$file};
    return substr $text, 0, $at if $way eq 'cut';
    substr($text, $at, 1) ^= chr(1 << int rand 8) if $way eq 'bit';
    substr($text, $at, 0) = "\0" x 8 if $way eq 'zeros';
    return $text;
}

sub make_run
{
    my ($folder, $case) = @_;
    mkdir $_ for $folder, "$folder/run", "$folder/run/claims";
    write_file("$folder/run/$_", $content{$_}) for @files;
    write_file("$folder/run/$case->[0]", damaged(@$case));
}

my ($tried, $resumed) = (0, 0);
my $right = "1\t0.001\n2\t0.002\n3\t0.003\n";
@cases = shuffled(@cases);
while (is_time_left() && @cases) {
    my @part = splice @cases, 0, 100;
    system 'rm', '-rf', 'd';
    mkdir 'd';
    make_run('d/' . ($_ + 1), $part[$_]) for 0 .. $#part;
    my ($how, $out, $err) = outcome_of({}, $lumat, '--no-init', 'open.lua', scalar @part);
    bad_point("opening: $how", $err, map { join ' ', @$_, ';' } @part) if $how ne 'exit 0' || $out !~ /^END$/m;
    bad_point("opening @{$part[$1 - 1]}: $2") while $out =~ /^BAD\t(\d+)\t(.*)/mg;
    $tried += @part;
    for my $i (1 .. 5) {
        ($how, $out, $err) = outcome_of({}, $lumat, '--no-init', 'run.lua', "d/$i");
        my $sorted = join '', sort split /^/, $out;
        bad_point("run again, @{$part[$i - 1]}: $how", $out, $err)
            if crashed($how, $err) || ($how eq 'exit 0' ? $sorted ne $right : $err !~ /\S/);
        $resumed++;
    }
}
end_faults("$tried damaged, $resumed run again");
