/* Feeds any text to the parser of slice strings. The first bytes are the
 * shape. Holds: whatever is accepted stays inside the matrix. */
#include <stdlib.h>
#include <string.h>
#include "parse.h"

enum { MESSAGE = 128, SHAPE_BYTES = 3 };

static void require(int truth)
{
    if (!truth)
        abort();
}

/* Small sizes, and a few that are larger than any matrix has. */
static int64_t size_of(uint8_t byte)
{
    return byte < 250 ? byte : INT64_MAX >> (byte - 250);
}

static void check_part(const lumat_part *part, int64_t size)
{
    gpu_slice s = part->slice;
    require(s.count >= 0 && s.count <= size);
    require(!part->is_index || s.count == 1);
    if (s.count == 0)
        return;
    int64_t reach, last;
    require(!__builtin_mul_overflow(s.count - 1, s.step, &reach));
    require(!__builtin_add_overflow(s.first, reach, &last));
    require(s.first >= 0 && s.first < size && last >= 0 && last < size);
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[MESSAGE] = "";
    lumat_part part[2];
    if (size < SHAPE_BYTES)
        return 0;
    int ndim = 1 + data[0] % 2;
    int64_t rows = size_of(data[1]), cols = ndim == 1 ? 1 : size_of(data[2]);
    size_t length = size - SHAPE_BYTES;
    char *text = malloc(length + 1);
    require(text != NULL);
    memcpy(text, data + SHAPE_BYTES, length);
    text[length] = '\0';
    if (lumat_slice_parse(text, length, ndim, rows, cols, part, message,
                          MESSAGE)) {
        check_part(&part[0], rows);
        if (ndim == 2)
            check_part(&part[1], cols);
    } else {
        require(message[0] != '\0');
    }
    free(text);
    return 0;
}
