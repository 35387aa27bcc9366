#!/usr/bin/perl
# Small files that claim much, and large ones of which little is to be made: what
# loads them takes memory in proportion to what they have.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../..";
use Compress::Zlib qw(crc32);
use Compress::Raw::Zlib qw(:DEFAULT WANT_GZIP);
use Lumat;
use Test::More;

my $folder = new_folder('bombs');
my $sanitized = $lumat =~ m{/san-};    # which takes memory of its own
my $MIB = 1 << 20;
chdir $folder or die "$folder: $!\n";
$ENV{LUMAT_NO_CUDA} = 1;

# Deflated text: a head, and a piece that comes many times.
sub deflated
{
    my ($head, $piece, $times) = @_;
    my $d = Compress::Raw::Zlib::Deflate->new(-WindowBits => -MAX_WBITS, -AppendOutput => 1, -Level => 9);
    my ($out, $crc, $length) = ('', crc32($head), length $head);
    my $many = $times > 1000 ? 1000 : 1;
    my $block = $piece x $many;
    $d->deflate($head, $out);
    for (1 .. $times / $many) {
        $d->deflate($block, $out);
        $crc = crc32($block, $crc);
        $length += length $block;
    }
    $d->flush($out);
    return {data => $out, crc => $crc, length => $length, method => 8};
}

sub stored
{
    my $text = shift;
    return {data => $text, crc => crc32($text), length => length $text, method => 0};
}

# A zip archive of pairs of a name and a part; each may say another place.
sub zip
{
    my ($path, @parts) = @_;
    my ($out, $list, $count) = ('', '', 0);
    while (my ($name, $p) = splice @parts, 0, 2) {
        my $at = $p->{at} // length $out;
        my $length = $p->{claims} // $p->{length};
        my $facts = pack 'vvvvvVVVvv', 20, 0, $p->{method}, 0, 33, $p->{crc}, length $p->{data}, $length, length $name, 0;
        $p->{at} = $at;
        $out .= pack('Va*a*', 0x04034b50, $facts, $name) . $p->{data} if $at == length $out;
        $list .= pack('Vva*vvvVVa*', 0x02014b50, 20, $facts, 0, 0, 0, 0, $at, $name);
        $count++;
    }
    write_file($path, $out . $list . pack 'VvvvvVVv', 0x06054b50, 0, 0, $count, $count, length $list, length $out, 0);
}

sub npy
{
    my ($type, $shape, $data) = @_;
    my $head = "{'descr': '$type', 'fortran_order': False, 'shape': ($shape), }\n";
    return "\x93NUMPY\1\0" . pack('v', length $head) . $head . $data;
}

# What a call says, the most memory of the program in KiB, and the seconds.
sub run_call
{
    my $call = shift;
    my $code = "local ok, e = pcall(function() $call end) print(ok and 'fine' or e) "
        . "for l in io.lines '/proc/self/status' do if l:find 'VmHWM' then print(l) end end print(os.clock())";
    my ($status, $out) = run_shell('timeout 60 "$lumat" --no-init -e ' . quote($code));
    my ($said, $most, $seconds) = $out =~ /\A(.*)\nVmHWM:\s*(\d+) kB\n(\S+)\n\z/s;
    return ($said // "exit $status: $out", $most // 0, $seconds // 60);
}

# It says so within 64 MiB and 4 times what there is, and the seconds.
sub takes
{
    my ($what, $call, $said, $bytes, $within) = @_;
    my ($text, $most, $seconds) = run_call($call);
    like($text, $said, "$what: says so");
    my $limit = 64 * 1024 + 4 * $bytes / 1024;
    ok($sanitized || $most <= $limit, "$what: $most KiB of $limit");
    ok($sanitized || $seconds <= $within, "$what: $seconds s of $within");
}

sub session
{
    my ($what, $said, $bytes, $within, @parts) = @_;
    zip('a.lum', @parts);
    takes($what, "load_session 'a.lum'", $said, $bytes + -s 'a.lum', $within);
}

my $head = "lumat session 1\n";

# --- records ---------------------------------------------------------------------------------------------------------

session('records packed into nothing', qr/packs the 160000016 bytes of 'session.txt' into/, 0, 1,
    'session.txt', deflated($head, "g sb v1\n", 20_000_000));
session('blank lines', qr/packs the 200000016 bytes/, 0, 1, 'session.txt', deflated($head, "\n", 200_000_000));
session('a name many times', qr/record 3/, 0, 1, 'session.txt', stored("${head}g sb i1\n" . "g sb i1\n" x 200_000));
session('a number many times', qr/record 3/, 0, 1, 'session.txt', stored($head . "t 1\n" x 200_000));
session('empty tables', qr/fine/, 0, 20,
    'session.txt', stored(join '', $head, (map { "t $_\n" } 1 .. 300_000), (map { "e 1 i$_ v$_\n" } 2 .. 300_000), "g sx v1\n"));
session('tables in tables', qr/fine/, 0, 20,
    'session.txt', stored(join '', $head, (map { "t $_\ne $_ i1 v" . ($_ + 1) . "\n" } 1 .. 299_999), "t 300000\ng sx v1\n"));
session('a long text', qr/fine/, 0, 10, 'session.txt', stored("${head}g sx s" . 'ab' x (8 * $MIB) . "\n"));
session('a long line', qr/record 2/, 0, 10, 'session.txt', stored("${head}m 1" . ' x' x (8 * $MIB) . "\n"));

# --- parts -----------------------------------------------------------------------------------------------------------

my $large = npy('<f4', '20000, 20000', '');
session('elements that are not there', qr/claims 1600000000 bytes of elements, 0 follow/, 0, 1,
    'session.txt', stored("${head}m 1 a.npy cpu\ng sa v1\n"), 'a.npy', stored($large));
session('a directory that lies', qr/claims 1600000078 bytes in its part 'a.npy', which has/, 0, 1,
    'session.txt', stored("${head}m 1 a.npy cpu\ng sa v1\n"),
    'a.npy', {%{deflated($large, "\0", 1000)}, claims => 1_600_000_000 + length $large});
session('the same of what is not packed', qr/claims 1600000078 bytes in its part 'a.npy', which has 78/, 0, 1,
    'session.txt', stored("${head}m 1 a.npy cpu\ng sa v1\n"),
    'a.npy', {%{stored($large)}, claims => 1_600_000_000 + length $large});
session('zeros that are there', qr/fine/, 16_000_000, 5, 'session.txt', stored("${head}m 1 a.npy cpu\ng sa v1\n"),
    'a.npy', deflated(npy('<f4', '2000, 2000', ''), "\0" x 1000, 16_000));
session('one part for many', qr/record 3/, 40_000_000, 5,
    'session.txt', stored($head . join '', map { "m $_ a.npy cpu\n" } 1 .. 50),
    'a.npy', deflated(npy('<f4', '10000, 1000', ''), "\0" x 1000, 40_000));
my $shared = stored(npy('<f4', '1000, 1000', "\0" x 4_000_000));
session('parts in one place', qr/its parts overlap/, 0, 5,
    'session.txt', stored($head . join '', map { "m $_ $_.npy cpu\n" } 1 .. 50), map { ("$_.npy", $shared) } 1 .. 50);
session('a name twice', qr/two parts of the name 'session.txt'/, 0, 1,
    'session.txt', stored($head), 'session.txt', stored($head));
session('many parts', qr/fine/, 0, 10, 'session.txt', stored($head . join '', map { "m $_ $_.npy cpu\n" } 1 .. 5000),
    map { ("$_.npy", stored(npy('<f4', '1, 1', "\0" x 4))) } 1 .. 5000);
session('rows without entries', qr/a sparse matrix of 2000000000 rows and few entries/, 0, 1,
    'session.txt', stored("${head}p 1 s cpu f32 2000000000 4\ng sx v1\n"), 's', stored("\0" x 96));
session('more rows than there can be', qr/a sparse matrix of 9223372036854775807 rows/, 0, 1,
    'session.txt', stored("${head}p 1 s cpu f32 9223372036854775807 4\ng sx v1\n"), 's', stored("\0" x 96));
session('an entry at the last place there is', qr/is at \(9223372036854775807, 1\), outside 4x4/, 0, 1,
    'session.txt', stored("${head}p 1 s cpu f32 4 4\ng sx v1\n"), 's', stored(pack 'q<q<d<', 9223372036854775807, 0, 1));
zip('a.lum', 'session.txt', stored("${head}p 1 s cpu f32 20000000 4\ng sx v1\n"), 's', stored("\0" x 96));
my ($said) = run_call("load_session('a.lum', {'x'}) print(x.rows)");
like($said, qr/^20000000\nfine/, 'what is asked for by name is loaded, however many rows it has');

# --- tables and arrays -----------------------------------------------------------------------------------------------

my $n = 24 * $MIB;
write_file('commas.csv', ',' x $n);
takes('commas', "load 'commas.csv'", qr/fine/, $n, 5);
write_file('rows.csv', ",\n" x ($n / 2));
takes('rows of nothing', "load 'rows.csv'", qr/fine/, $n, 5);
write_file('zeros.csv', "\0" x $n);
takes('zero bytes', "load 'zeros.csv'", qr/zeros.csv:1: column 1: a zero byte/, $n, 1);
write_file('quote.csv', "1,2\n\"" . 'a' x $n);
takes('a quote', "load 'quote.csv'", qr/quote.csv:2: column 1: a quote begins here/, $n, 1);
write_file('digits.csv', '1' x $n);
takes('digits', "load 'digits.csv'", qr/fine/, $n, 5);
write_file('lines.csv', "\n" x $n);
takes('lines', "load 'lines.csv'", qr/is empty/, $n, 5);
write_file('names.csv', 'a' . ',' x $n);
takes('names', "load 'names.csv'", qr/names.csv:1: it names 25165825 columns/, $n, 5);
write_file('bytes.npy', npy('|u1', "$n,", "\1" x $n));
takes('bytes', "load 'bytes.npy'", qr/fine/, $n, 5);
write_file('large.npy', npy('<f4', '100000, 100000', ''));
takes('elements that are not there', "load 'large.npy'", qr/claims 40000000000 bytes of elements, 0 follow/, 0, 1);

# --- formats of others -----------------------------------------------------------------------------------------------

# An array of zeros that deflate packs a thousand times is what it says it is.
zip('zeros.npz', 'a.npy', deflated(npy('|b1', 8 * $MIB . ',', ''), "\0", 8 * $MIB));
takes('packed zeros', "print(load('zeros.npz').a.rows)", qr/8388608/, 8 * $MIB, 5);
zip('claims.npz', 'a.npy', {%{stored('x')}, method => 8, claims => 4_000_000_000});
takes('a part that claims', "load 'claims.npz'", qr/claims 4000000000 bytes in its part/, 0, 1);
zip('header.npz', 'a.npy', stored(npy('<f8', '1000000, 1000000', '')));
takes('elements of a part', "load 'header.npz'", qr/'a.npy' that is cut off: its header claims/, 0, 1);
write_file('claims.mtx', "%%MatrixMarket matrix coordinate real general\n2000000000 9 1\n1 1 1\n");
takes('rows of entries', "load 'claims.mtx'", qr/claims a sparse matrix of 2000000000 rows/, 0, 1);
write_file('dense.mtx', "%%MatrixMarket matrix coordinate real general\n90000 90000 1\n1 1 1\n");
takes('a dense one of entries', "load('dense.mtx', {dtype = 'bool'})", qr/would be too large/, 0, 1);
write_file('claims.pgm', "P5 60000 60000 255\nabc");
takes('pixels', "load 'claims.pgm'", qr/claims 60000x60000 pixels/, 0, 1);
my $array = pack('V*', 6, 8, 6, 0, 5, 8, 40000, 40000, 1, 1) . "a\0\0\0\0\0\0\0" . pack('VV', 9, 12_800_000);
my $packer = Compress::Raw::Zlib::Deflate->new(-AppendOutput => 1);
my $packed = '';
$packer->deflate(pack('VV', 14, 4_000_000_000) . $array, $packed);
$packer->flush($packed);
write_file('claims.mat', ('MATLAB 5.0' x 12) =~ s/^(.{116}).*/$1/r . "\0" x 8 . "\0\1IM" . pack('VV', 15, length $packed) . $packed);
takes('an array that is packed', "load 'claims.mat'", qr/is cut off or damaged at byte 128/, 0, 1);
my $many = Compress::Raw::Zlib::Deflate->new(-WindowBits => WANT_GZIP, -AppendOutput => 1);
my $gz = '';
$many->deflate("1,2\n" x 250_000, $gz) for 1 .. 12;
$many->flush($gz);
write_file('text.csv.gz', $gz);
takes('packed text', "print(load('text.csv.gz').rows)", qr/3000000/, 24 * $MIB, 10);

chdir '/';
done_testing();
