/* Feeds any bytes to the reader of PNG files: half of them as they are, half as
 * what stands in a file whose checksums are right and whose rows are stored
 * without being packed. Holds: no file makes it read or write elsewhere, and
 * every sample is at most the largest. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "data_formats.h"

enum { MESSAGE = 128, MOST = 1 << 20 };

static void require(int truth)
{
    if (!truth)
        abort();
}

static void try_file(const uint8_t *bytes, size_t length)
{
    char message[MESSAGE] = "";
    lumat_png p;
    if (!lumat_png_open(&p, bytes, length, message, MESSAGE)) {
        require(message[0] != '\0');
        return;
    }
    uint64_t count = (uint64_t)p.image.rows * (uint64_t)p.image.cols *
                     (uint64_t)p.image.channels;
    require(p.image.rows > 0 && p.image.cols > 0 && p.image.channels > 0);
    if (count > MOST)
        return; /* would only take long */
    uint16_t *samples = calloc((size_t)count, sizeof *samples);
    void *work = malloc(p.work);
    require(samples != NULL && work != NULL);
    if (lumat_png_read(&p, samples, work, message, MESSAGE)) {
        for (uint64_t i = 0; i < count; i++)
            require(samples[i] <= p.image.most);
    } else {
        require(message[0] != '\0');
    }
    free(samples);
    free(work);
}

static size_t put_chunk(uint8_t *out, const char *type, const uint8_t *data,
                        size_t length)
{
    memcpy(out + 4, type, 4);
    if (length > 0)
        memcpy(out + 8, data, length);
    uint32_t sum = (uint32_t)crc32(0, out + 4, (uInt)length + 4);
    for (size_t i = 0; i < 4; i++) {
        out[i] = (uint8_t)(length >> (24 - 8 * i));
        out[8 + length + i] = (uint8_t)(sum >> (24 - 8 * i));
    }
    return length + 12;
}

/* Bytes: rows, columns, depth, colour, interlaced, colours of the palette,
 * bytes of the transparent colour; palette; colour; rows. */
static void try_inside(const uint8_t *data, size_t size)
{
    enum { HEAD = 7 };
    if (size < HEAD)
        return;
    uint8_t header[13] = {0,       0,       0,       data[1], 0, 0,          0,
                          data[0], data[2], data[3], 0,       0, data[4] & 1};
    size_t colours = data[5] % 8u * 3, alpha = data[6] % 8u;
    if (size < HEAD + colours + alpha)
        return;
    const uint8_t *rest = data + HEAD;
    size_t left = size - HEAD - colours - alpha;
    uLong bound = compressBound((uLong)left);
    uint8_t *packed = malloc(bound), *file = malloc(bound + size + 200);
    require(packed != NULL && file != NULL);
    require(compress2(packed, &bound, rest + colours + alpha, (uLong)left, 1) ==
            Z_OK);
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    size_t n = 8;
    n += put_chunk(file + n, "IHDR", header, sizeof header);
    if (colours > 0)
        n += put_chunk(file + n, "PLTE", rest, colours);
    if (alpha > 0)
        n += put_chunk(file + n, "tRNS", rest + colours, alpha);
    n += put_chunk(file + n, "IDAT", packed, bound / 2);
    n += put_chunk(file + n, "IDAT", packed + bound / 2, bound - bound / 2);
    n += put_chunk(file + n, "IEND", NULL, 0);
    try_file(file, n);
    free(packed);
    free(file);
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1); /* so that its end is watched */
    require(copy != NULL);
    memcpy(copy, data, size);
    try_file(copy, size);
    try_inside(copy, size);
    free(copy);
    return 0;
}
