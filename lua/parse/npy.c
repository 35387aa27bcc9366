/* NumPy's .npy files: their headers, with a parser of its own for the
 * dictionary literal (exactly the three keys, nothing evaluated), and their
 * elements, of every width and both byte orders, which other files of plain
 * elements have, too. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "data_formats.h"
#include "parse.h"

enum {
    MAGIC = 6,
    MOST_HEADER = LUMAT_NPY_MOST_HEADER - 12,
    ALIGNMENT = 64,
    MOST_DIMENSIONS = 32,
    MOST_TEXT = 1 << 20, /* bytes of one */
    MOST_PAGES = 1 << 24
};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static const char OWN_ORDER = '<';
#else
static const char OWN_ORDER = '>';
#endif

/* What is left of a header, and where to say what is wrong with it. */
typedef struct parser {
    const char *p, *end;
    int ndim;
    int64_t shape[MOST_DIMENSIONS];
    int is_refused; /* nothing is wrong with it, but it is not read */
    char *error;
    size_t size;
} parser;

static int malformed(const parser *s, const char *what)
{
    return lumat_refuse_data(s->error, s->size, "has a malformed header: %s",
                             what);
}

/* --- the literal ---------------------------------------------------------- */

static void skip_space(parser *s)
{
    while (s->p < s->end && strchr(" \t\r\n", *s->p) != NULL && *s->p != 0)
        s->p++;
}

/* Takes the character c, after space. */
static int take(parser *s, char c)
{
    skip_space(s);
    if (s->p == s->end || *s->p != c)
        return 0;
    s->p++;
    return 1;
}

static int take_word(parser *s, const char *word)
{
    size_t length = strlen(word);
    skip_space(s);
    if ((size_t)(s->end - s->p) < length || memcmp(s->p, word, length) != 0)
        return 0;
    s->p += length;
    return 1;
}

/* Takes a quoted string of at most size - 1 characters, without escapes. */
static int take_string(parser *s, char *out, size_t size)
{
    skip_space(s);
    if (s->p == s->end || (*s->p != '\'' && *s->p != '"'))
        return 0;
    char quote = *s->p++;
    size_t length = 0;
    while (s->p < s->end && *s->p != quote) {
        unsigned char c = (unsigned char)*s->p++;
        if (length + 1 >= size || c < ' ' || c > '~' || c == '\\')
            return 0;
        out[length++] = (char)c;
    }
    out[length] = '\0';
    return take(s, quote);
}

/* Takes digits, with the L that Python 2 wrote after some. */
static int take_size(parser *s, int64_t *out)
{
    skip_space(s);
    const char *start = s->p;
    *out = 0;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, *s->p - '0', out))
            return 0;
        s->p++;
    }
    if (s->p == start)
        return 0;
    if (s->p < s->end && *s->p == 'L')
        s->p++;
    return 1;
}

static int take_shape(parser *s)
{
    if (!take(s, '('))
        return malformed(s, "shape is not a tuple of sizes");
    while (!take(s, ')')) {
        if (s->ndim == MOST_DIMENSIONS || !take_size(s, &s->shape[s->ndim]))
            return malformed(s, "shape is not a tuple of sizes");
        s->ndim++;
        if (!take(s, ',')) {
            if (s->ndim == 1 || !take(s, ')'))
                return malformed(s, "shape is not a tuple of sizes");
            break;
        }
    }
    return 1;
}

static int take_order(parser *s, lumat_npy *n)
{
    n->fortran = take_word(s, "True");
    if (n->fortran || take_word(s, "False"))
        return 1;
    return malformed(s, "fortran_order is neither True nor False");
}

/* --- the element type ----------------------------------------------------- */

static const char *kind_name(char kind)
{
    switch (kind) {
    case 'O':
        return "Python objects, which only Python can make";
    case 'M':
    case 'm':
        return "dates or times";
    case 'V':
        return "structures or raw bytes";
    default:
        return "elements of an unknown type";
    }
}

/* The bytes of "S12", or of "U3", which has 4 a letter; 0: it is no text. */
static int text_bytes(const char *type)
{
    int64_t letters = 0;
    const char *p = type + 1;
    if (*type != 'S' && *type != 'a' && *type != 'U')
        return 0;
    while (*p >= '0' && *p <= '9' && letters < MOST_TEXT)
        letters = 10 * letters + (*p++ - '0');
    letters *= *type == 'U' ? 4 : 1;
    return *p == '\0' && letters <= MOST_TEXT ? (int)letters : 0;
}

int lumat_npy_set_type(lumat_npy *n, const char *name)
{
    const char *type = name;
    char order = OWN_ORDER;
    if (*type != '\0' && strchr("<>=|", *type) != NULL)
        order = *type++;
    if (strcmp(type, "?") == 0)
        type = "b1";
    n->swapped = (order == '<' || order == '>') && order != OWN_ORDER;
    n->kind = *type == 'a' ? 'S' : *type;
    n->bytes = text_bytes(type);
    if (n->bytes > 0)
        return 1;
    if (strcmp(type, "c16") == 0) {
        n->bytes = 16;
        return 1;
    }
    n->bytes = type[0] != '\0' && type[1] != '\0' && type[2] == '\0'
                   ? type[1] - '0'
                   : 0;
    const char *sizes = n->kind == 'b'                     ? "1"
                        : n->kind == 'i' || n->kind == 'u' ? "1248"
                        : n->kind == 'f'                   ? "248"
                        : n->kind == 'c'                   ? "8"
                                                           : "";
    return n->bytes > 0 && strchr(sizes, '0' + n->bytes) != NULL;
}

static int set_type(parser *s, lumat_npy *n, const char *descr)
{
    static const char all[] = "b1, i1 to i8, u1 to u8, f2 to f8, c8, c16, S "
                              "and U";
    if (lumat_npy_set_type(n, descr))
        return 1;
    s->is_refused = 1;
    if (n->kind != '\0' && strchr("biufcSU", n->kind) != NULL)
        return lumat_refuse_data(s->error, s->size,
                                 "has dtype '%s'; only %s can be read", descr,
                                 all);
    return lumat_refuse_data(s->error, s->size,
                             "has dtype '%s' (%s); only %s can be read", descr,
                             kind_name(n->kind), all);
}

static int take_type(parser *s, lumat_npy *n)
{
    char descr[64];
    skip_space(s);
    s->is_refused = s->p < s->end && *s->p == '[';
    if (s->is_refused)
        return lumat_refuse_data(
            s->error, s->size,
            "holds structures (a dtype with fields); save each field "
            "as an array of its own");
    if (!take_string(s, descr, sizeof descr))
        return malformed(s, "descr is not the name of a type");
    return set_type(s, n, descr);
}

/* --- the header ---------------------------------------------------------- */

enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };

/* Takes one "'key': value" and returns which it was, or 0. */
static int take_entry(parser *s, lumat_npy *n)
{
    char key[32];
    if (!take_string(s, key, sizeof key) || !take(s, ':'))
        return malformed(s, "a key is missing");
    if (strcmp(key, "descr") == 0)
        return take_type(s, n) ? DESCR : 0;
    if (strcmp(key, "fortran_order") == 0)
        return take_order(s, n) ? ORDER : 0;
    if (strcmp(key, "shape") == 0)
        return take_shape(s) ? SHAPE : 0;
    return malformed(s, "it has keys other than descr, fortran_order, shape");
}

static int take_dictionary(parser *s, lumat_npy *n)
{
    int seen = 0;
    if (!take(s, '{'))
        return malformed(s, "it is no dictionary");
    while (!take(s, '}')) {
        int key = take_entry(s, n);
        if (key == 0)
            return 0;
        if (seen & key)
            return malformed(s, "a key stands there twice");
        seen |= key;
        if (!take(s, ',')) {
            if (!take(s, '}'))
                return malformed(s, "a comma or a brace is missing");
            break;
        }
    }
    skip_space(s);
    if (s->p != s->end)
        return malformed(s, "something follows the dictionary");
    return seen == ALL ? 1 : malformed(s, "a key is missing");
}

static int set_shape(parser *s, lumat_npy *n)
{
    int first = s->ndim == 3; /* the axis of a page's rows */
    s->is_refused = s->ndim > 3;
    if (s->ndim > 3)
        return lumat_refuse_data(
            s->error, s->size,
            "has %d dimensions; vectors, matrices and lists of "
            "matrices can be read: a.reshape(-1, m, n) makes one",
            s->ndim);
    n->ndim = s->ndim;
    n->pages = first ? s->shape[0] : 1;
    n->rows = s->ndim > 0 ? s->shape[first] : 1;
    n->cols = s->ndim > 1 ? s->shape[first + 1] : 1;
    return 1;
}

/* Can sizes of three dimensions be multiplied, the zeros left out? */
static int is_product_small(const lumat_npy *n)
{
    int64_t rows = n->rows > 0 ? n->rows : 1, cols = n->cols > 0 ? n->cols : 1;
    int64_t product;
    return n->ndim < 3 ||
           (!__builtin_mul_overflow(rows, cols, &product) &&
            !__builtin_mul_overflow(product, 2 * n->pages + 2, &product));
}

int lumat_npy_bytes(const lumat_npy *n, uint64_t *bytes)
{
    return !__builtin_mul_overflow((uint64_t)n->rows, (uint64_t)n->cols,
                                   bytes) &&
           !__builtin_mul_overflow(*bytes, (uint64_t)n->pages, bytes) &&
           !__builtin_mul_overflow(*bytes, (uint64_t)n->bytes, bytes) &&
           n->pages <= MOST_PAGES && is_product_small(n);
}

/* The elements claimed must be exactly the rest of the file. */
static int check_size(const parser *s, const lumat_npy *n, size_t length)
{
    uint64_t bytes, rest = length - n->data;
    if (n->pages > MOST_PAGES)
        return lumat_refuse_data(s->error, s->size,
                                 "has %lld matrices; at most %d are read",
                                 (long long)n->pages, MOST_PAGES);
    if (!lumat_npy_bytes(n, &bytes))
        return lumat_refuse_data(s->error, s->size,
                                 "claims %lldx%lld elements, too many",
                                 (long long)n->rows, (long long)n->cols);
    if (bytes == rest)
        return 1;
    return lumat_refuse_data(
        s->error, s->size,
        "%s: its header claims %llu bytes of elements, %llu follow",
        bytes > rest ? "is cut off" : "is too long", (unsigned long long)bytes,
        (unsigned long long)rest);
}

/* Finds the text of the header. Its length has 2 bytes in version 1.0, 4 from
 * 2.0 on, little-endian. */
static int find_header(parser *s, const unsigned char *file, size_t length)
{
    size_t field = MAGIC + 2, count = 0;
    if (length < field || memcmp(file, "\x93NUMPY", MAGIC) != 0)
        return lumat_refuse_data(s->error, s->size, "is not a NumPy file");
    if (file[MAGIC] < 1 || file[MAGIC] > 3 || file[MAGIC + 1] != 0)
        return lumat_refuse_data(s->error, s->size,
                                 "has format version %d.%d; 1.0 to 3.0 "
                                 "can be read",
                                 file[MAGIC], file[MAGIC + 1]);
    size_t width = file[MAGIC] == 1 ? 2 : 4;
    if (length < field + width)
        return lumat_refuse_data(s->error, s->size, "is cut off in its header");
    for (size_t i = 0; i < width; i++)
        count |= (size_t)file[field + i] << (8 * i);
    if (count > MOST_HEADER)
        return lumat_refuse_data(s->error, s->size,
                                 "has a header of %zu bytes; at most "
                                 "%d are read",
                                 count, MOST_HEADER);
    if (count > length - field - width)
        return lumat_refuse_data(s->error, s->size, "is cut off in its header");
    s->p = (const char *)file + field + width;
    s->end = s->p + count;
    return 1;
}

int lumat_npy_open(lumat_npy *n, const void *file, size_t length, char *error,
                   size_t size)
{
    parser s = {.error = error, .size = size};
    *n = (lumat_npy){0};
    int is_read = find_header(&s, file, length) && take_dictionary(&s, n) &&
                  set_shape(&s, n);
    n->is_refused = s.is_refused;
    if (!is_read)
        return 0;
    n->data = (size_t)(s.end - (const char *)file);
    return check_size(&s, n, length);
}

const char *lumat_npy_type_name(gpu_dtype dtype)
{
    static const char *const names[GPU_ALL_DTYPES] = {"f4", "f8", "b1", "c8",
                                                      "c16"};
    return names[dtype];
}

size_t lumat_npy_header_of(char out[LUMAT_NPY_HEADER], const char *type,
                           int ndim, const int64_t *sizes)
{
    enum { PREFIX = MAGIC + 4 };
    char shape[96] = "", order = OWN_ORDER;
    size_t length = 0;
    for (int i = 0; i < ndim; i++)
        length +=
            (size_t)snprintf(shape + length, sizeof shape - length,
                             i == 0 ? "%lld," : " %lld,", (long long)sizes[i]);
    if (ndim > 1)
        shape[length - 1] = '\0';
    if (type[0] == 'b' || type[0] == 'S' || strcmp(type, "u1") == 0)
        order = '|';
    int text =
        snprintf(out + PREFIX, LUMAT_NPY_HEADER - PREFIX,
                 "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }",
                 order, type, shape);
    size_t used = PREFIX + (size_t)text;
    size_t total = (used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(out + used, ' ', total - used - 1);
    out[total - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", MAGIC + 2);
    out[MAGIC + 2] = (char)((total - PREFIX) & 0xFF);
    out[MAGIC + 3] = (char)((total - PREFIX) >> 8);
    return total;
}

size_t lumat_npy_header(char out[LUMAT_NPY_HEADER], gpu_dtype dtype, int ndim,
                        int64_t rows, int64_t cols)
{
    int64_t sizes[] = {rows, cols};
    return lumat_npy_header_of(out, lumat_npy_type_name(dtype), ndim, sizes);
}

/* --- the elements --------------------------------------------------------- */

static const int64_t EXACT_INTEGERS = (int64_t)1 << 53;

/* An element's bits, in the low bytes. */
static uint64_t bits_at(const lumat_npy *n, const unsigned char *p)
{
    uint64_t bits = 0;
    for (int i = 0; i < n->bytes; i++) {
        int little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != n->swapped;
        int place = little ? i : n->bytes - 1 - i;
        bits |= (uint64_t)p[i] << (8 * place);
    }
    return bits;
}

/* Source: IEEE 754-2008, binary16. */
static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 && fraction != 0 ? NAN
                  : exponent == 31                ? INFINITY
                  : exponent == 0                 ? ldexp(fraction, -24)
                                  : ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 ? -size : size;
}

static double real_value(uint64_t bits, int bytes)
{
    float single;
    double value;
    uint32_t low = (uint32_t)bits;
    if (bytes == 2)
        return half_value((uint16_t)bits);
    memcpy(&single, &low, sizeof single);
    memcpy(&value, &bits, sizeof value);
    return bytes == 4 ? (double)single : value;
}

static int64_t signed_value(uint64_t bits, int bytes)
{
    int shift = 64 - 8 * bytes;
    return (int64_t)(bits << shift) >> shift;
}

static double value_of(const lumat_npy *n, uint64_t bits)
{
    if (n->kind == 'f')
        return real_value(bits, n->bytes);
    if (n->kind == 'i')
        return (double)signed_value(bits, n->bytes);
    return n->kind == 'b' ? bits != 0 : (double)bits;
}

/* Would f64 round this integer? Every one up to 2^53 is exact. */
static int is_rounded(const lumat_npy *n, uint64_t bits)
{
    if (n->bytes < 8 || n->kind == 'f')
        return 0;
    if (n->kind == 'u')
        return bits > (uint64_t)EXACT_INTEGERS;
    int64_t x = (int64_t)bits;
    return x > EXACT_INTEGERS || x < -EXACT_INTEGERS;
}

static int fail_rounded(const lumat_npy *n, int64_t i, uint64_t bits,
                        char *error, size_t size)
{
    char number[32];
    int64_t in_page = n->fortran ? i / n->pages : i % (n->rows * n->cols);
    int64_t row = n->fortran ? in_page % n->rows : in_page / n->cols;
    int64_t col = n->fortran ? in_page / n->rows : in_page % n->cols;
    snprintf(number, sizeof number, n->kind == 'u' ? "%llu" : "%lld",
             (unsigned long long)bits);
    snprintf(error, size,
             "its element [%lld, %lld] is %s, beyond 2^53 where f64 rounds "
             "integers; give {dtype=\"f64\"} to accept that",
             (long long)(n->passed + row + 1), (long long)col + 1, number);
    return 0;
}

gpu_dtype lumat_npy_dtype(const lumat_npy *n)
{
    if (n->kind == 'b')
        return GPU_BOOL;
    if (n->kind == 'c')
        return n->bytes == 16 ? GPU_C128 : GPU_C64;
    if (n->kind == 'f')
        return n->bytes == 8 ? GPU_F64 : GPU_F32;
    return n->bytes >= 4 ? GPU_F64 : GPU_F32;
}

int lumat_npy_is_plain(const lumat_npy *n, gpu_dtype dtype)
{
    static const char kinds[GPU_ALL_DTYPES] = {'f', 'f', 0, 'c', 'c'};
    static const int bytes[GPU_ALL_DTYPES] = {4, 8, 0, 8, 16};
    return n->kind == kinds[dtype] && !n->swapped && n->bytes == bytes[dtype];
}

/* Pairs from pairs, or from real elements, which get no imaginary part. */
static int read_pairs(const lumat_npy *n, const void *elements, int64_t first,
                      int64_t count, gpu_dtype part, void *to, int exact,
                      char *error, size_t size)
{
    const unsigned char *p = elements;
    size_t width = part == GPU_F32 ? sizeof(float) : sizeof(double);
    char *pair = to;
    lumat_npy real = *n;
    if (n->kind == 'c') {
        real.kind = 'f';
        real.bytes = n->bytes / 2;
        return lumat_npy_read(&real, elements, 2 * first, 2 * count, part, to,
                              exact, error, size);
    }
    for (int64_t i = 0; i < count; i++, p += n->bytes, pair += 2 * width) {
        if (!lumat_npy_read(n, p, first + i, 1, part, pair, exact, error, size))
            return 0;
        memset(pair + width, 0, width);
    }
    return 1;
}

int lumat_npy_read(const lumat_npy *n, const void *elements, int64_t first,
                   int64_t count, gpu_dtype dtype, void *to, int exact,
                   char *error, size_t size)
{
    const unsigned char *p = elements;
    float *singles = to;
    double *doubles = to;
    unsigned char *truths = to;
    if (dtype >= GPU_C64)
        return read_pairs(n, elements, first, count,
                          dtype == GPU_C64 ? GPU_F32 : GPU_F64, to, exact,
                          error, size);
    if (n->kind == 'c')
        return lumat_refuse_data(
            error, size,
            "holds complex numbers: give {dtype=\"c64\"} or "
            "{dtype=\"c128\"}, or none");
    for (int64_t i = 0; i < count; i++, p += n->bytes) {
        uint64_t bits = bits_at(n, p);
        double x = value_of(n, bits);
        if (exact && is_rounded(n, bits))
            return fail_rounded(n, first + i, bits, error, size);
        if (dtype == GPU_F32)
            singles[i] = (float)x;
        else if (dtype == GPU_F64)
            doubles[i] = x;
        else
            truths[i] = x != 0;
    }
    return 1;
}
