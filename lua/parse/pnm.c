/* PBM, PGM and PPM: a few numbers as text, then samples as text or bytes. */
#include "data_formats.h"

enum { BITS_TEXT = 1, BITS = 4, MOST_SAMPLE = 65535 };

static int is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

int lumat_pnm_is(const unsigned char *bytes, size_t length)
{
    return length > 3 && bytes[0] == 'P' && bytes[1] >= '1' &&
           bytes[1] <= '6' && (is_space(bytes[2]) || bytes[2] == '#');
}

/* Goes over blanks and comments. */
static void skip(const lumat_pnm *p, size_t *at)
{
    while (*at < p->length && (is_space(p->bytes[*at]) || p->bytes[*at] == '#'))
        if (p->bytes[(*at)++] == '#')
            while (*at < p->length && p->bytes[*at] != '\n')
                ++*at;
}

/* Takes a whole number up to `most`. */
static int take(const lumat_pnm *p, size_t *at, int64_t most, int64_t *out)
{
    skip(p, at);
    size_t start = *at;
    int64_t value = 0;
    for (; *at < p->length && p->bytes[*at] >= '0' && p->bytes[*at] <= '9';
         ++*at) {
        value = 10 * value + (p->bytes[*at] - '0');
        if (value > most)
            return 0;
    }
    *out = value;
    return *at > start;
}

static int is_text(const lumat_pnm *p)
{
    return p->kind < BITS;
}

static size_t row_bytes(const lumat_pnm *p)
{
    size_t cols = (size_t)p->image.cols * (size_t)p->image.channels;
    return p->kind == BITS ? (cols + 7) / 8
                           : cols * (p->image.most > 255 ? 2 : 1);
}

/* Has the file all samples? The shortest text of one is a digit and a blank,
 * or of a bit a digit. */
static int check_size(const lumat_pnm *p, char *error, size_t size)
{
    uint64_t rest = p->length - p->data, each = p->kind == BITS_TEXT ? 1 : 2;
    uint64_t samples = 0, bytes = 0;
    int fits = lumat_image_is_modest(&p->image, p->length);
    if (fits) {
        samples = (uint64_t)p->image.rows * (uint64_t)p->image.cols *
                  (uint64_t)p->image.channels;
        bytes = (uint64_t)p->image.rows * row_bytes(p);
        fits = is_text(p) ? samples <= (rest + 1) / each : bytes <= rest;
    }
    if (!fits)
        return lumat_refuse_data(
            error, size,
            "claims %lldx%lld pixels, too many for the %llu bytes that "
            "follow",
            (long long)p->image.rows, (long long)p->image.cols,
            (unsigned long long)rest);
    if (!is_text(p) && bytes < rest)
        return lumat_refuse_data(error, size,
                                 "has %llu bytes behind its pixels",
                                 (unsigned long long)(rest - bytes));
    return 1;
}

int lumat_pnm_open(lumat_pnm *p, const void *bytes, size_t length, char *error,
                   size_t size)
{
    size_t at = 2;
    int64_t most = 1;
    *p = (lumat_pnm){.bytes = bytes, .length = length};
    if (!lumat_pnm_is(bytes, length))
        return lumat_refuse_data(error, size, "is no PBM, PGM or PPM file");
    p->kind = p->bytes[1] - '0';
    p->image.channels = p->kind % 3 == 0 ? 3 : 1;
    if (!take(p, &at, INT32_MAX, &p->image.cols) ||
        !take(p, &at, INT32_MAX, &p->image.rows) ||
        (p->kind % 3 != 1 && !take(p, &at, MOST_SAMPLE, &most)) || most == 0 ||
        p->image.rows == 0 || p->image.cols == 0)
        return lumat_refuse_data(
            error, size,
            "has no width, height and largest sample at its start");
    p->image.most = (int)most;
    if (at == length || !is_space(p->bytes[at]))
        return lumat_refuse_data(error, size, "is cut off in its header");
    p->data = at + 1;
    return check_size(p, error, size);
}

/* Of bits 1 is black, and of bits as text blanks may be missing. */
static int take_sample(const lumat_pnm *p, size_t *at, int64_t *out)
{
    if (p->kind != BITS_TEXT)
        return take(p, at, MOST_SAMPLE, out);
    skip(p, at);
    if (*at == p->length || (p->bytes[*at] != '0' && p->bytes[*at] != '1'))
        return 0;
    *out = '1' - p->bytes[(*at)++];
    return 1;
}

static int read_text(const lumat_pnm *p, uint16_t *samples, char *error,
                     size_t size)
{
    int64_t across = p->image.cols * p->image.channels, x = 0;
    size_t at = p->data;
    for (int64_t i = 0; i < p->image.rows * across; i++) {
        if (i % across == 0 && p->image.goes_on != NULL &&
            !p->image.goes_on((size_t)across))
            return lumat_refuse_data(error, size, "%s", "");
        if (!take_sample(p, &at, &x))
            return lumat_refuse_data(
                error, size,
                "is cut off or damaged at byte %zu, in row %lld of "
                "%lld",
                at, (long long)(i / across) + 1, (long long)p->image.rows);
        if (x > p->image.most)
            return lumat_refuse_data(
                error, size,
                "has a sample %lld in row %lld, above its largest, %d",
                (long long)x, (long long)(i / across) + 1, p->image.most);
        samples[i] = (uint16_t)x;
    }
    skip(p, &at);
    if (at < p->length)
        return lumat_refuse_data(
            error, size, "has something behind its pixels at byte %zu", at);
    return 1;
}

static int read_bytes(const lumat_pnm *p, uint16_t *samples, char *error,
                      size_t size)
{
    int64_t across = p->image.cols * p->image.channels;
    const unsigned char *row = p->bytes + p->data;
    for (int64_t i = 0; i < p->image.rows; i++, row += row_bytes(p)) {
        if (p->image.goes_on != NULL && !p->image.goes_on((size_t)across))
            return lumat_refuse_data(error, size, "%s", "");
        for (int64_t j = 0; j < across; j++) {
            int x = p->kind == BITS       ? !(row[j / 8] >> (7 - j % 8) & 1)
                    : p->image.most > 255 ? row[2 * j] << 8 | row[2 * j + 1]
                                          : row[j];
            if (x > p->image.most)
                return lumat_refuse_data(
                    error, size,
                    "has a sample %d in row %lld, above its largest, "
                    "%d",
                    x, (long long)i + 1, p->image.most);
            *samples++ = (uint16_t)x;
        }
    }
    return 1;
}

int lumat_pnm_read(const lumat_pnm *p, uint16_t *samples, char *error,
                   size_t size)
{
    return is_text(p) ? read_text(p, samples, error, size)
                      : read_bytes(p, samples, error, size);
}
