/* Feeds any bytes to the reader of PBM, PGM and PPM files. Holds: what a file
 * claims it has, and every sample is at most the largest. */
#include <stdlib.h>
#include <string.h>
#include "data_formats.h"

enum { MESSAGE = 128 };

static void require(int truth)
{
    if (!truth)
        abort();
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[MESSAGE] = "";
    uint8_t *copy = malloc(size + 2);
    lumat_pnm p;
    require(copy != NULL);
    copy[0] = 'P';
    memcpy(copy + 1, data, size);
    if (!lumat_pnm_open(&p, copy, size + 1, message, MESSAGE)) {
        require(message[0] != '\0');
        free(copy);
        return 0;
    }
    uint64_t count = (uint64_t)p.image.rows * (uint64_t)p.image.cols *
                     (uint64_t)p.image.channels;
    require(count <= 8 * (size + 1));
    uint16_t *samples = calloc((size_t)count + 1, sizeof *samples);
    require(samples != NULL);
    if (lumat_pnm_read(&p, samples, message, MESSAGE)) {
        for (uint64_t i = 0; i < count; i++)
            require(samples[i] <= p.image.most);
    } else {
        require(message[0] != '\0');
    }
    free(samples);
    free(copy);
    return 0;
}
