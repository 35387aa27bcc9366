/* MAT files of versions 4 and 5: arrays one behind the other, packed or not,
 * with arrays in them. */
#include "data_formats.h"

#include <string.h>
#include <zlib.h>

enum {
    HEADER = 128,
    TAG = 8,
    HEADER_4 = 20,
    COMPLEX = 0x0800,
    LOGICAL = 0x0200,
    MOST_RATIO = 1032, /* deflate gives at most 258 bytes for 2 bits */
    /* types of parts */
    INT8 = 1,
    UINT8 = 2,
    INT16 = 3,
    UINT16 = 4,
    INT32 = 5,
    UINT32 = 6,
    MATRIX = 14,
    COMPRESSED = 15,
    UTF8 = 16
};

static uint32_t get(const unsigned char *p, int swapped)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return swapped ? __builtin_bswap32(x) : x;
}

/* --- which version -------------------------------------------------------- */

int lumat_mat_is(const unsigned char *bytes, size_t length)
{
    return length >= HEADER && memcmp(bytes, "MATLAB ", 7) == 0 &&
           (memcmp(bytes + 126, "IM", 2) == 0 ||
            memcmp(bytes + 126, "MI", 2) == 0);
}

int lumat_mat_open(lumat_mat *m, const void *bytes, size_t length, char *error,
                   size_t size)
{
    *m = (lumat_mat){.bytes = bytes, .length = length, .version = 4};
    if (length < HEADER_4)
        return lumat_refuse_data(error, size, "is cut off in its header");
    /* the text that the others begin with has no zero bytes */
    if (memchr(m->bytes, 0, 4) != NULL)
        return 1;
    if (length >= 8 && memcmp(m->bytes, "\x89HDF\r\n\x1a\n", 8) == 0) {
        m->version = 7;
        return 1;
    }
    if (length < HEADER)
        return lumat_refuse_data(error, size, "is cut off in its header");
    uint16_t order, version;
    memcpy(&order, m->bytes + 126, sizeof order);
    memcpy(&version, m->bytes + 124, sizeof version);
    m->swapped = order == ('I' << 8 | 'M');
    if (order != ('M' << 8 | 'I') && !m->swapped)
        return lumat_refuse_data(error, size, "is no MAT file");
    version = m->swapped ? __builtin_bswap16(version) : version;
    m->version = version == 0x0100 ? 5 : version == 0x0200 ? 7 : 0;
    if (m->version == 0)
        return lumat_refuse_data(error, size, "is a MAT file of version %d.%d",
                                 version >> 8, version & 255);
    return 1;
}

/* --- version 5: tagged elements ------------------------------------------- */

/* What a tag at the start of the bytes says. */
typedef struct element {
    uint32_t type;
    const unsigned char *data;
    size_t length;
    size_t whole; /* with its tag and what fills it up */
} element;

/* Small ones stand in their tag. */
static int take_element(const unsigned char *p, size_t left, int swapped,
                        element *e)
{
    if (left < TAG)
        return 0;
    uint32_t first = get(p, swapped);
    if (first >> 16 != 0) {
        e->type = first & 0xffff;
        e->length = first >> 16;
        e->data = p + 4;
        e->whole = TAG;
        return e->length <= 4;
    }
    e->type = first;
    e->length = get(p + 4, swapped);
    e->data = p + TAG;
    if (e->length > left - TAG)
        return 0;
    e->whole = TAG + e->length;
    if (e->type != COMPRESSED && e->whole % 8 != 0)
        e->whole += 8 - e->whole % 8;
    if (e->whole > left)
        e->whole = left; /* the last may lack what fills it up */
    return 1;
}

/* Where the parts of an array are read. */
typedef struct reader {
    const unsigned char *p;
    size_t left;
    int swapped;
    char *error;
    size_t size;
} reader;

static int take(reader *r, const char *what, element *e)
{
    if (!take_element(r->p, r->left, r->swapped, e))
        return lumat_refuse_data(r->error, r->size,
                                 "is cut off or damaged: %s is missing", what);
    r->p += e->whole;
    r->left -= e->whole;
    return 1;
}

static int set_elements(const reader *r, const element *e, lumat_elements *out)
{
    static const struct {
        char kind;
        int width;
    } types[] = {{0, 0},   {'i', 1}, {'u', 1}, {'i', 2}, {'u', 2},
                 {'i', 4}, {'u', 4}, {'f', 4}, {0, 0},   {'f', 8},
                 {0, 0},   {0, 0},   {'i', 8}, {'u', 8}, {0, 0},
                 {0, 0},   {'u', 1}, {'u', 2}, {'u', 4}};
    if (e->type >= sizeof types / sizeof *types || types[e->type].kind == 0)
        return lumat_refuse_data(r->error, r->size,
                                 "has elements of an unknown type %u", e->type);
    *out = (lumat_elements){.bytes = e->data,
                            .kind = types[e->type].kind,
                            .width = types[e->type].width,
                            .swapped = r->swapped};
    out->count = (int64_t)(e->length / (size_t)out->width);
    return 1;
}

static int take_elements(reader *r, const char *what, lumat_elements *out)
{
    element e;
    return take(r, what, &e) && set_elements(r, &e, out);
}

static int check_sizes(const reader *r, lumat_mat_array *a)
{
    a->count = 1;
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] < 0 ||
            __builtin_mul_overflow(a->count, a->sizes[i], &a->count) ||
            a->count > INT64_MAX / 16)
            return lumat_refuse_data(r->error, r->size,
                                     "has sizes that are no sizes");
    /* sizes beside a zero may be anything, and are multiplied, too */
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] > INT32_MAX)
            return lumat_refuse_data(r->error, r->size, "has a size of %lld",
                                     (long long)a->sizes[i]);
    return 1;
}

static int take_sizes(reader *r, lumat_mat_array *a)
{
    element e;
    if (!take(r, "the sizes", &e))
        return 0;
    size_t n = e.length / 4;
    if ((e.type != INT32 && e.type != UINT32) || n < 2 ||
        n > LUMAT_MAT_DIMENSIONS)
        return lumat_refuse_data(r->error, r->size,
                                 "has %zu sizes; 2 to %d are read", n,
                                 LUMAT_MAT_DIMENSIONS);
    a->ndim = (int)n;
    for (size_t i = 0; i < n; i++)
        a->sizes[i] = (int32_t)get(e.data + 4 * i, r->swapped);
    return check_sizes(r, a);
}

static int check_count(const reader *r, const lumat_elements *e, int64_t count)
{
    if (e->count == count)
        return 1;
    return lumat_refuse_data(
        r->error, r->size,
        "is cut off or damaged: %lld elements, of which %lld are "
        "there",
        (long long)count, (long long)e->count);
}

static int take_numbers(reader *r, lumat_mat_array *a)
{
    if (!take_elements(r, "the elements", &a->real) ||
        !check_count(r, &a->real, a->count))
        return 0;
    return !a->is_complex ||
           (take_elements(r, "the imaginary part", &a->imaginary) &&
            check_count(r, &a->imaginary, a->count));
}

static int take_letters(reader *r, lumat_mat_array *a)
{
    element e;
    if (!take(r, "the text", &e) || !set_elements(r, &e, &a->real))
        return 0;
    a->is_utf8 = e.type == UTF8;
    if (e.length == 0) /* some write nothing for blanks */
        a->count = a->sizes[0] = 0;
    return a->is_utf8 || check_count(r, &a->real, a->count);
}

static int take_sparse(reader *r, lumat_mat_array *a)
{
    element e;
    if (a->ndim != 2)
        return lumat_refuse_data(r->error, r->size,
                                 "has a sparse matrix of %d sizes", a->ndim);
    if (!take_elements(r, "the rows", &a->rows) ||
        !take_elements(r, "the columns", &a->starts) ||
        !take(r, "the values", &e) || !set_elements(r, &e, &a->real) ||
        (a->is_complex &&
         !take_elements(r, "the imaginary part", &a->imaginary)))
        return 0;
    if (a->is_logical && a->real.count < a->rows.count) {
        /* MATLAB calls the bytes of truth values doubles */
        a->real.count = (int64_t)e.length;
        a->real.kind = 'u';
        a->real.width = 1;
    }
    return check_count(r, &a->starts, a->sizes[1] + 1);
}

/* Each array inside has its tag, at least. */
static int set_inner(const reader *r, lumat_mat_array *a, int64_t each)
{
    int64_t arrays;
    a->inner = r->p;
    a->inner_length = r->left;
    if (__builtin_mul_overflow(a->count, each, &arrays) ||
        (uint64_t)arrays > r->left / TAG || (each == 0 && a->count > 1))
        return lumat_refuse_data(
            r->error, r->size,
            "is cut off or damaged: %lld cells or structures in %zu "
            "bytes",
            (long long)a->count, r->left);
    return 1;
}

static int take_fields(reader *r, lumat_mat_array *a)
{
    element length, names;
    if (!take(r, "the length of the fields' names", &length) ||
        !take(r, "the fields' names", &names))
        return 0;
    if (length.length < 4)
        return lumat_refuse_data(r->error, r->size, "has fields without names");
    uint32_t n = get(length.data, r->swapped);
    if (n == 0 || n > LUMAT_MAT_NAME || names.length % n != 0)
        return lumat_refuse_data(r->error, r->size,
                                 "has names of fields of %u bytes", n);
    a->fields = (const char *)names.data;
    a->field_length = (int)n;
    if (names.length / n > INT32_MAX)
        return lumat_refuse_data(r->error, r->size, "has too many fields");
    a->field_count = (int)(names.length / n);
    return set_inner(r, a, a->field_count);
}

/* The content of an element of type MATRIX. */
static int read_array(reader *r, lumat_mat_array *a)
{
    element e;
    memset(a, 0, sizeof *a);
    a->of = LUMAT_MAT_DOUBLE;
    a->ndim = 2;
    a->real = (lumat_elements){.kind = 'f', .width = 8};
    if (r->left == 0)
        return 1; /* a cell that was never set */
    if (!take(r, "what it is", &e) || e.length < 8)
        return lumat_refuse_data(r->error, r->size, "is cut off or damaged");
    uint32_t flags = get(e.data, r->swapped);
    a->of = (int)(flags & 255);
    a->is_complex = (flags & COMPLEX) != 0;
    a->is_logical = (flags & LOGICAL) != 0;
    if (a->of == LUMAT_MAT_OPAQUE) { /* it has no sizes */
        if (take(r, "the name", &e)) {
            a->name = (const char *)e.data;
            a->name_length = e.length;
        }
        return 1;
    }
    if (!take_sizes(r, a) || !take(r, "the name", &e))
        return 0;
    a->name = (const char *)e.data;
    a->name_length = e.length < LUMAT_MAT_NAME ? e.length : LUMAT_MAT_NAME;
    switch (a->of) {
    case LUMAT_MAT_CELL:
        return set_inner(r, a, 1);
    case LUMAT_MAT_STRUCT:
        return take_fields(r, a);
    case LUMAT_MAT_CHAR:
        return take_letters(r, a);
    case LUMAT_MAT_SPARSE:
        return take_sparse(r, a);
    case LUMAT_MAT_OBJECT: /* its class, and then its fields */
        return take(r, "the class", &e) && take_fields(r, a);
    case LUMAT_MAT_FUNCTION:
        return 1;
    default:
        if (a->of >= LUMAT_MAT_DOUBLE && a->of <= LUMAT_MAT_U64)
            return take_numbers(r, a);
        return lumat_refuse_data(r->error, r->size,
                                 "has an array of an unknown class %d", a->of);
    }
}

/* --- version 4 ------------------------------------------------------------ */

/* What the five numbers in front of an array say. */
typedef struct header_4 {
    int precision, kind, is_complex, swapped;
    int64_t rows, cols, name;
    uint64_t bytes; /* of the whole array */
} header_4;

static int read_header_4(const unsigned char *p, size_t left, header_4 *h)
{
    static const int widths[] = {8, 4, 4, 2, 2, 1};
    if (left < HEADER_4)
        return 0;
    h->swapped = get(p, 0) > 9999;
    uint32_t type = get(p, h->swapped);
    h->precision = (int)(type / 10 % 10);
    h->kind = (int)(type % 10);
    h->rows = (int32_t)get(p + 4, h->swapped);
    h->cols = (int32_t)get(p + 8, h->swapped);
    h->is_complex = get(p + 12, h->swapped) == 1;
    h->name = (int32_t)get(p + 16, h->swapped);
    if (type > 9999 || type / 1000 > 1 || type / 100 % 10 != 0 ||
        h->precision > 5 || h->kind > 2 || h->rows < 0 || h->cols < 0 ||
        h->name < 1 || h->name > LUMAT_MAT_NAME)
        return 0;
    h->bytes = (uint64_t)h->rows * (uint64_t)h->cols *
               (uint64_t)widths[h->precision] *
               (h->is_complex ? 2 : 1); /* below 2^66: checked by halves */
    uint64_t half = (uint64_t)h->rows * (uint64_t)h->cols;
    if (half > left)
        return 0;
    h->bytes += HEADER_4 + (uint64_t)h->name;
    return h->bytes <= left;
}

static int read_array_4(reader *r, lumat_mat_array *a)
{
    static const struct {
        char kind;
        int width;
    } types[] = {{'f', 8}, {'f', 4}, {'i', 4}, {'i', 2}, {'u', 2}, {'u', 1}};
    header_4 h;
    memset(a, 0, sizeof *a);
    if (!read_header_4(r->p, r->left, &h))
        return lumat_refuse_data(r->error, r->size, "is cut off or damaged");
    a->of = h.kind == 1 ? LUMAT_MAT_CHAR : LUMAT_MAT_DOUBLE;
    a->is_triplets = h.kind == 2;
    a->is_complex = h.is_complex;
    a->ndim = 2;
    a->sizes[0] = h.rows;
    a->sizes[1] = h.cols;
    a->count = h.rows * h.cols;
    a->name = (const char *)r->p + HEADER_4;
    a->name_length = strnlen(a->name, (size_t)h.name);
    a->real = (lumat_elements){.bytes = r->p + HEADER_4 + h.name,
                               .count = a->count,
                               .kind = types[h.precision].kind,
                               .width = types[h.precision].width,
                               .swapped = h.swapped};
    a->imaginary = a->real;
    a->imaginary.bytes += a->count * a->real.width;
    if (a->is_triplets && (h.cols < 3 || h.cols > 4 || h.rows < 1))
        return lumat_refuse_data(r->error, r->size,
                                 "has a damaged sparse matrix");
    return 1;
}

/* --- parts ---------------------------------------------------------------- */

/* How many bytes the array has that is packed in the element: its tag says. */
static int find_unpacked(const element *e, int swapped, lumat_mat_part *part)
{
    unsigned char tag[TAG];
    z_stream z = {.next_in = (unsigned char *)e->data,
                  .avail_in = (uInt)e->length,
                  .next_out = tag,
                  .avail_out = TAG};
    if (inflateInit(&z) != Z_OK)
        return 0;
    inflate(&z, Z_SYNC_FLUSH);
    inflateEnd(&z);
    if (z.avail_out > 0)
        return 0;
    uint64_t length = (uint64_t)get(tag + 4, swapped) + TAG;
    part->is_array = get(tag, swapped) == MATRIX;
    part->unpacked = (size_t)length;
    return length / MOST_RATIO <= e->length;
}

int lumat_mat_next(const lumat_mat *m, size_t *at, lumat_mat_part *part,
                   char *error, size_t size)
{
    element e;
    header_4 h;
    const unsigned char *p = m->bytes + *at;
    *part = (lumat_mat_part){.bytes = p, .is_array = 1};
    if (m->version == 4) {
        if (*at == m->length)
            return 0;
        if (!read_header_4(p, m->length - *at, &h)) {
            lumat_refuse_data(error, size,
                              "is cut off, damaged or no MAT file, at byte %zu",
                              *at);
            return -1;
        }
        part->length = (size_t)h.bytes;
        *at += part->length;
        return 1;
    }
    *at = *at < HEADER ? HEADER : *at;
    p = m->bytes + *at;
    if (*at == m->length)
        return 0;
    if (!take_element(p, m->length - *at, m->swapped, &e) ||
        (e.type == COMPRESSED && !find_unpacked(&e, m->swapped, part))) {
        lumat_refuse_data(error, size, "is cut off or damaged at byte %zu",
                          *at);
        return -1;
    }
    part->is_array = e.type == COMPRESSED ? part->is_array : e.type == MATRIX;
    part->bytes = e.type == COMPRESSED ? e.data : p;
    part->length = e.type == COMPRESSED ? e.length : e.whole;
    *at += e.whole;
    return 1;
}

int lumat_mat_unpack(const lumat_mat_part *part, void *to,
                     int (*goes_on)(size_t bytes))
{
    enum { MOST = 1 << 22 };
    z_stream z = {.next_in = (unsigned char *)part->bytes,
                  .avail_in = (uInt)part->length,
                  .next_out = to};
    size_t left = part->unpacked;
    int result = inflateInit(&z);
    while (result == Z_OK && left > 0) {
        z.avail_out = (uInt)(left < MOST ? left : MOST);
        uInt room = z.avail_out;
        result = inflate(&z, Z_NO_FLUSH);
        if (z.avail_out == room && result == Z_OK)
            break;
        left -= room - z.avail_out;
        if (goes_on != NULL && !goes_on(0))
            break;
    }
    if (result == Z_OK && left == 0) { /* the checksum is behind it */
        unsigned char none;
        z.next_out = &none;
        z.avail_out = 1;
        result = inflate(&z, Z_FINISH);
    }
    inflateEnd(&z);
    return left == 0 && result == Z_STREAM_END;
}

int lumat_mat_read(const lumat_mat *m, const void *bytes, size_t length,
                   lumat_mat_array *a, char *error, size_t size)
{
    element e;
    reader r = {.p = bytes,
                .left = length,
                .swapped = m->swapped,
                .error = error,
                .size = size};
    if (m->version == 4)
        return read_array_4(&r, a);
    if (!take_element(bytes, length, m->swapped, &e) || e.type != MATRIX)
        return lumat_refuse_data(error, size, "is cut off or damaged");
    r.p = e.data;
    r.left = e.length;
    return read_array(&r, a);
}

int lumat_mat_inner(const lumat_mat *m, const lumat_mat_array *a, size_t *at,
                    lumat_mat_array *out, char *error, size_t size)
{
    element e;
    if (!take_element(a->inner + *at, a->inner_length - *at, m->swapped, &e) ||
        e.type != MATRIX)
        return lumat_refuse_data(
            error, size, "is cut off or damaged inside of '%.*s'",
            (int)a->name_length, a->name != NULL ? a->name : "");
    reader r = {.p = e.data,
                .left = e.length,
                .swapped = m->swapped,
                .error = error,
                .size = size};
    *at += e.whole;
    return read_array(&r, out);
}
