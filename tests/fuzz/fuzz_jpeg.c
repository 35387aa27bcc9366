/* Feeds any bytes to what calls libjpeg. Holds: its jumps leave nothing behind,
 * and every sample is one of 8 bits. */
#include <stdlib.h>
#include <string.h>
#include "data_formats.h"

enum { MESSAGE = 256, MOST = 1 << 22 };

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
    lumat_image image;
    if (!lumat_jpeg_open(&image, data, size, message, MESSAGE)) {
        require(message[0] != '\0');
        return 0;
    }
    uint64_t count =
        (uint64_t)image.rows * (uint64_t)image.cols * (uint64_t)image.channels;
    if (count > MOST)
        return 0; /* would only take long */
    uint16_t *samples = calloc((size_t)count + 1, sizeof *samples);
    require(samples != NULL);
    if (!lumat_jpeg_read(&image, data, size, samples, message, MESSAGE))
        require(message[0] != '\0');
    for (uint64_t i = 0; i < count; i++)
        require(samples[i] <= image.most);
    free(samples);
    return 0;
}
