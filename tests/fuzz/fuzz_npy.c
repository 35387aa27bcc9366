/* Feeds any bytes to the reader of NumPy files, half of them behind a valid
 * start. Holds: a header that is accepted claims exactly the bytes that are
 * there, and every type converts to every other without reading beyond. */
#include <stdlib.h>
#include <string.h>
#include "parse.h"

enum { MESSAGE = 128, PREFIX = 10 };

static void require(int truth)
{
    if (!truth)
        abort();
}

static void convert(const lumat_npy *n, const void *file)
{
    static const size_t sizes[GPU_ALL_DTYPES] = {4, 8, 1, 8, 16};
    char message[MESSAGE] = "";
    size_t count = (size_t)n->pages * (size_t)n->rows * (size_t)n->cols;
    if (n->kind == 'S' || n->kind == 'U')
        return;
    for (int type = 0; type < GPU_ALL_DTYPES; type++) {
        void *host = malloc(sizes[type] * count + 1);
        require(host != NULL);
        int read =
            lumat_npy_read(n, (const char *)file + n->data, 0, (int64_t)count,
                           (gpu_dtype)type, host, type & 1, message, MESSAGE);
        require(read || message[0] != '\0');
        free(host);
    }
}

static void try_file(const uint8_t *data, size_t size)
{
    char message[MESSAGE] = "";
    lumat_npy n;
    uint8_t *file = malloc(size + 1);
    require(file != NULL);
    memcpy(file, data, size);
    if (lumat_npy_open(&n, file, size, message, MESSAGE)) {
        uint64_t bytes = (uint64_t)n.rows * (uint64_t)n.cols;
        require(n.ndim <= 3 && n.rows >= 0 && n.cols >= 0 && n.pages >= 0);
        require((n.ndim == 3 || n.pages == 1) && n.bytes > 0);
        require(bytes * (uint64_t)n.pages * (uint64_t)n.bytes == size - n.data);
        require(lumat_npy_dtype(&n) < GPU_ALL_DTYPES);
        convert(&n, file);
    } else {
        require(message[0] != '\0');
    }
    free(file);
}

/* The input as a header of the length its first byte says, then elements. */
static void try_behind_prefix(const uint8_t *data, size_t size)
{
    size_t header = data[0] < size - 1 ? data[0] : size - 1;
    uint8_t *file = malloc(PREFIX + size);
    require(file != NULL);
    memcpy(file, "\x93NUMPY\x01\x00", PREFIX - 2);
    file[PREFIX - 2] = (uint8_t)header;
    file[PREFIX - 1] = 0;
    memcpy(file + PREFIX, data + 1, size - 1);
    try_file(file, PREFIX + size - 1);
    free(file);
}

/* What is written must be read back as the same. */
static void try_header(const uint8_t *data)
{
    char out[LUMAT_NPY_HEADER], message[MESSAGE] = "";
    gpu_dtype type = (gpu_dtype)(data[0] % GPU_ALL_DTYPES);
    int ndim = 1 + data[1] % 3;
    int64_t sizes[] = {0, data[2], 7};
    lumat_npy n;
    static const char *const types[] = {"f4", "f8", "b1", "c8", "c16"};
    size_t length = lumat_npy_header_of(out, types[type], ndim, sizes);
    require(length % 64 == 0 && length <= sizeof out);
    require(lumat_npy_open(&n, out, length, message, MESSAGE));
    require(n.ndim == ndim);
    require(ndim == 3 ? n.pages == 0 && n.rows == sizes[1] && n.cols == 7
                      : n.rows == 0 && n.cols == (ndim == 1 ? 1 : sizes[1]));
    require(lumat_npy_dtype(&n) == type);
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_file(data, size);
    if (size > 0)
        try_behind_prefix(data, size);
    if (size > 2)
        try_header(data);
    return 0;
}
