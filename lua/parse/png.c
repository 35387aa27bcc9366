/* PNG: chunks, whose packed rows are filtered by their neighbours and lie in
 * one pass or seven. */
#include "data_formats.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    SIGNATURE = 8,
    CHUNK = 12, /* bytes of one beside its data */
    GREY = 0,
    RGB = 2,
    PALETTE = 3,
    GREY_ALPHA = 4,
    RGB_ALPHA = 6,
    PASSES = 7,
    MOST_RATIO = 1032 /* deflate gives at most 258 bytes for 2 bits */
};

int lumat_image_is_modest(const lumat_image *image, size_t length)
{
    enum { ANYWAY = 1 << 26, TIMES = 64 };
    uint64_t samples;
    return !__builtin_mul_overflow((uint64_t)image->rows, (uint64_t)image->cols,
                                   &samples) &&
           !__builtin_mul_overflow(samples, (uint64_t)image->channels,
                                   &samples) &&
           samples <= ANYWAY + TIMES * (uint64_t)length;
}

/* --- chunks --------------------------------------------------------------- */

static uint32_t get(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

typedef struct chunk {
    const unsigned char *type, *data;
    size_t length;
} chunk;

/* Takes the chunk at *at; 0: there is none that is whole. */
static int next_chunk(const lumat_png *p, size_t *at, chunk *c)
{
    if (p->length - *at < CHUNK)
        return 0;
    c->length = get(p->bytes + *at);
    c->type = p->bytes + *at + 4;
    c->data = c->type + 4;
    if (c->length > p->length - *at - CHUNK)
        return 0;
    *at += CHUNK + c->length;
    return 1;
}

static int is_type(const chunk *c, const char *type)
{
    return memcmp(c->type, type, 4) == 0;
}

int lumat_png_is(const unsigned char *bytes, size_t length)
{
    return length >= SIGNATURE &&
           memcmp(bytes, "\x89PNG\r\n\x1a\n", SIGNATURE) == 0;
}

/* --- what is claimed ------------------------------------------------------ */

static int samples_of(int colour)
{
    return colour == RGB          ? 3
           : colour == RGB_ALPHA  ? 4
           : colour == GREY_ALPHA ? 2
                                  : 1;
}

static int is_depth_right(int colour, int depth)
{
    if (depth == 8 || (depth == 16 && colour != PALETTE))
        return colour <= RGB_ALPHA && colour != 1 && colour != 5;
    return (colour == GREY || colour == PALETTE) &&
           (depth == 1 || depth == 2 || depth == 4);
}

static int read_header(lumat_png *p, const chunk *c, char *error, size_t size)
{
    if (c->length != 13)
        return lumat_refuse_data(error, size, "has a header of %zu bytes",
                                 c->length);
    uint32_t cols = get(c->data), rows = get(c->data + 4);
    p->depth = c->data[8];
    p->colour = c->data[9];
    p->is_interlaced = c->data[12] == 1;
    if (rows == 0 || cols == 0 || rows > INT32_MAX || cols > INT32_MAX)
        return lumat_refuse_data(error, size, "claims %ux%u pixels", rows,
                                 cols);
    if (!is_depth_right(p->colour, p->depth) || c->data[10] != 0 ||
        c->data[11] != 0 || c->data[12] > 1)
        return lumat_refuse_data(
            error, size,
            "is of a kind that PNG does not have: colour type %d of "
            "%d bits",
            p->colour, p->depth);
    p->image.rows = rows;
    p->image.cols = cols;
    return 1;
}

/* The places of a pass's pixels: first and step. */
static const unsigned char pass_row[][2] = {{0, 8}, {0, 8}, {4, 8}, {0, 4},
                                            {2, 4}, {0, 2}, {1, 2}};
static const unsigned char pass_col[][2] = {{0, 8}, {4, 8}, {0, 4}, {2, 4},
                                            {0, 2}, {1, 2}, {0, 1}};

static int64_t places(int64_t all, int first, int step)
{
    return all > first ? (all - first + step - 1) / step : 0;
}

typedef struct pass {
    int64_t rows, cols;
    int row, row_step, col, col_step;
    size_t bytes; /* of a row, without its filter */
} pass;

static pass pass_of(const lumat_png *p, int i)
{
    pass s = {.row_step = 1, .col_step = 1};
    if (p->is_interlaced) {
        s.row = pass_row[i][0];
        s.row_step = pass_row[i][1];
        s.col = pass_col[i][0];
        s.col_step = pass_col[i][1];
    }
    s.rows = places(p->image.rows, s.row, s.row_step);
    s.cols = places(p->image.cols, s.col, s.col_step);
    s.bytes =
        ((size_t)s.cols * (size_t)(p->depth * samples_of(p->colour)) + 7) / 8;
    if (s.cols == 0)
        s.rows = 0;
    return s;
}

/* Can so many packed bytes be all rows? */
static int check_packed(const lumat_png *p, uint64_t packed, char *error,
                        size_t size)
{
    uint64_t bytes = 0;
    for (int i = 0; i < (p->is_interlaced ? PASSES : 1); i++) {
        pass s = pass_of(p, i);
        bytes += (uint64_t)s.rows * (s.bytes + 1);
        if (s.bytes >= INT32_MAX)
            return lumat_refuse_data(error, size, "has rows of %zu bytes",
                                     s.bytes);
    }
    if (bytes / MOST_RATIO > packed)
        return lumat_refuse_data(
            error, size, "claims %lldx%lld pixels, too many for its %llu bytes",
            (long long)p->image.rows, (long long)p->image.cols,
            (unsigned long long)packed);
    if (!lumat_image_is_modest(&p->image, p->length))
        return lumat_refuse_data(
            error, size, "claims %lldx%lld pixels, too many",
            (long long)p->image.rows, (long long)p->image.cols);
    return 1;
}

static int take_chunk(lumat_png *p, const chunk *c, uint64_t *packed,
                      char *error, size_t size)
{
    if (is_type(c, "IDAT")) {
        *packed += c->length;
    } else if (is_type(c, "PLTE")) {
        p->palette = c->data;
        p->colours = (int)(c->length / 3);
        if (c->length % 3 != 0 || c->length == 0 || c->length > 3 * 256)
            return lumat_refuse_data(error, size, "has a palette of %zu bytes",
                                     c->length);
    } else if (is_type(c, "tRNS")) {
        size_t most = p->colour == RGB ? 6 : p->colour == GREY ? 2 : 256;
        if (c->length > most || (p->colour != PALETTE && c->length < most))
            return lumat_refuse_data(error, size,
                                     "has a transparent colour of %zu bytes",
                                     c->length);
        p->alpha = c->data;
        p->alphas = c->length;
    } else if (!(c->type[0] & 0x20) && !is_type(c, "IHDR") &&
               !is_type(c, "IEND")) {
        return lumat_refuse_data(error, size,
                                 "has a chunk '%.4s' that is not known",
                                 (const char *)c->type);
    }
    return 1;
}

static int finish_header(lumat_png *p, char *error, size_t size)
{
    int is_seen =
        p->alpha != NULL && p->colour != GREY_ALPHA && p->colour != RGB_ALPHA;
    p->image.channels =
        (p->colour == PALETTE ? 3 : samples_of(p->colour)) + is_seen;
    p->image.most = p->colour == PALETTE ? 255 : (1 << p->depth) - 1;
    if (!is_seen)
        p->alpha = NULL;
    if (p->colour == PALETTE && p->palette == NULL)
        return lumat_refuse_data(error, size, "has no palette");
    p->work = 2 * pass_of(&(lumat_png){.image = p->image,
                                       .depth = p->depth,
                                       .colour = p->colour},
                          0)
                      .bytes +
              2;
    return 1;
}

int lumat_png_open(lumat_png *p, const void *bytes, size_t length, char *error,
                   size_t size)
{
    size_t at = SIGNATURE;
    uint64_t packed = 0;
    chunk c;
    *p = (lumat_png){.bytes = bytes, .length = length};
    if (!lumat_png_is(bytes, length))
        return lumat_refuse_data(error, size, "is no PNG file");
    for (int first = 1, ended = 0; !ended; first = 0) {
        size_t start = at;
        if (!next_chunk(p, &at, &c))
            return lumat_refuse_data(error, size, "is cut off at byte %zu",
                                     start);
        if (crc32_z(0, c.type, c.length + 4) != get(c.data + c.length))
            return lumat_refuse_data(
                error, size,
                "is damaged: the checksum of '%.4s' at byte %zu is "
                "wrong",
                (const char *)c.type, start);
        if (first != is_type(&c, "IHDR"))
            return lumat_refuse_data(error, size, "has no header at its start");
        if ((first && !read_header(p, &c, error, size)) ||
            !take_chunk(p, &c, &packed, error, size))
            return 0;
        ended = is_type(&c, "IEND");
    }
    return finish_header(p, error, size) &&
           check_packed(p, packed, error, size);
}

/* --- rows ----------------------------------------------------------------- */

static int paeth(int left, int up, int corner)
{
    int guess = left + up - corner;
    int a = abs(guess - left), b = abs(guess - up), c = abs(guess - corner);
    return a <= b && a <= c ? left : b <= c ? up : corner;
}

/* Undoes the filter of a row in place, of pixels of so many bytes. */
static int unfilter(int filter, unsigned char *row, const unsigned char *up,
                    size_t bytes, size_t pixel)
{
    if (filter > 4)
        return 0;
    for (size_t i = 0; filter > 0 && i < bytes; i++) {
        int left = i >= pixel ? row[i - pixel] : 0;
        int corner = i >= pixel ? up[i - pixel] : 0;
        int add = filter == 1   ? left
                  : filter == 2 ? up[i]
                  : filter == 3 ? (left + up[i]) / 2
                                : paeth(left, up[i], corner);
        row[i] = (unsigned char)(row[i] + add);
    }
    return 1;
}

static unsigned sample_at(const lumat_png *p, const unsigned char *row,
                          size_t i)
{
    if (p->depth == 16)
        return (unsigned)row[2 * i] << 8 | row[2 * i + 1];
    if (p->depth == 8)
        return row[i];
    size_t bit = i * (size_t)p->depth;
    unsigned shift = 8 - (unsigned)p->depth - (unsigned)(bit % 8);
    return row[bit / 8] >> shift & ((1u << p->depth) - 1);
}

/* A pixel of a palette; 0: there is no such colour. */
static int put_colour(const lumat_png *p, unsigned i, uint16_t *out)
{
    if ((int)i >= p->colours)
        return 0;
    for (int k = 0; k < 3; k++)
        out[k] = p->palette[3 * i + (unsigned)k];
    if (p->alpha != NULL)
        out[3] = i < p->alphas ? p->alpha[i] : 255;
    return 1;
}

static int put_pixel(const lumat_png *p, const unsigned char *row, size_t i,
                     uint16_t *out)
{
    int n = samples_of(p->colour), is_clear = 1;
    if (p->colour == PALETTE)
        return put_colour(p, sample_at(p, row, i), out);
    for (int k = 0; k < n; k++) {
        unsigned x = sample_at(p, row, i * (size_t)n + (size_t)k);
        out[k] = (uint16_t)x;
        if (p->alpha != NULL)
            is_clear &=
                x == ((unsigned)p->alpha[2 * k] << 8 | p->alpha[2 * k + 1]);
    }
    if (p->alpha != NULL)
        out[n] = is_clear ? 0 : (uint16_t)p->image.most;
    return 1;
}

/* Where the packed bytes go on. */
typedef struct unpacker {
    const lumat_png *p;
    size_t at; /* of the next chunk */
    z_stream z;
} unpacker;

/* Gives exactly so many bytes; 0: there are not so many. */
static int unpack(unpacker *u, unsigned char *to, size_t length)
{
    u->z.next_out = to;
    u->z.avail_out = (uInt)length;
    while (u->z.avail_out > 0) {
        chunk c;
        if (u->z.avail_in == 0) {
            if (!next_chunk(u->p, &u->at, &c))
                return 0;
            if (!is_type(&c, "IDAT"))
                continue;
            u->z.next_in = (unsigned char *)c.data;
            u->z.avail_in = (uInt)c.length;
        }
        int result = inflate(&u->z, Z_NO_FLUSH);
        if (u->z.avail_out > 0 && result != Z_OK && result != Z_BUF_ERROR)
            return 0;
    }
    return 1;
}

static int read_pass(unpacker *u, const pass *s, uint16_t *samples,
                     unsigned char *work, char *error, size_t size)
{
    const lumat_png *p = u->p;
    unsigned char *row = work, *up = work + s->bytes + 1;
    size_t bits = (size_t)(p->depth * samples_of(p->colour));
    size_t channels = (size_t)p->image.channels;
    memset(up, 0, s->bytes + 1);
    for (int64_t i = 0; i < s->rows; i++) {
        int64_t y = s->row + i * s->row_step;
        if (!unpack(u, row, s->bytes + 1))
            return lumat_refuse_data(
                error, size, "is damaged or cut off in row %lld of %lld",
                (long long)y + 1, (long long)p->image.rows);
        if (!unfilter(row[0], row + 1, up + 1, s->bytes,
                      bits < 8 ? 1 : bits / 8))
            return lumat_refuse_data(error, size,
                                     "is damaged: row %lld has filter %d",
                                     (long long)y + 1, row[0]);
        for (int64_t j = 0; j < s->cols; j++) {
            int64_t x = s->col + j * s->col_step;
            size_t pixel = (size_t)(y * p->image.cols + x);
            if (!put_pixel(p, row + 1, (size_t)j, samples + pixel * channels))
                return lumat_refuse_data(
                    error, size,
                    "is damaged: pixel [%lld, %lld] is of no colour "
                    "of its palette",
                    (long long)y + 1, (long long)x + 1);
        }
        if (p->image.goes_on != NULL &&
            !p->image.goes_on((size_t)s->cols * channels))
            return lumat_refuse_data(error, size, "%s", "");
        unsigned char *other = row;
        row = up;
        up = other;
    }
    return 1;
}

int lumat_png_read(const lumat_png *p, uint16_t *samples, void *work,
                   char *error, size_t size)
{
    unpacker u = {.p = p, .at = SIGNATURE};
    int done = 1;
    if (inflateInit(&u.z) != Z_OK)
        return lumat_refuse_data(error, size,
                                 "needs more memory than there is");
    for (int i = 0; done && i < (p->is_interlaced ? PASSES : 1); i++) {
        pass s = pass_of(p, i);
        done = read_pass(&u, &s, samples, work, error, size);
    }
    inflateEnd(&u.z);
    return done;
}
