/* Feeds any bytes to the reader of MAT files of versions 4 and 5, half of them
 * behind a valid header. Holds: all that an array is said to have lies in the
 * file, or in what was unpacked, and walks end. */
#include <stdlib.h>
#include <string.h>
#include "data_formats.h"

enum { MESSAGE = 256, MOST_DEPTH = 20, MOST = 1 << 24 };

static void require(int truth)
{
    if (!truth)
        abort();
}

static volatile unsigned used;

static void touch(const lumat_elements *e)
{
    require(e->count >= 0);
    for (int64_t i = 0; i < e->count * e->width; i++)
        used += e->bytes[i];
}

static void visit(const lumat_mat *m, const lumat_mat_array *a, int depth,
                  int *left)
{
    char message[MESSAGE] = "";
    lumat_mat_array inner;
    require(a->ndim >= 0 && a->ndim <= LUMAT_MAT_DIMENSIONS);
    for (size_t i = 0; i < a->name_length; i++)
        used += (unsigned char)a->name[i];
    touch(&a->real);
    touch(&a->rows);
    touch(&a->starts);
    if (a->is_complex)
        touch(&a->imaginary);
    for (int64_t i = 0; i < (int64_t)a->field_count * a->field_length; i++)
        used += (unsigned char)a->fields[i];
    int64_t each = a->fields != NULL ? a->field_count : 1;
    if (a->inner == NULL || depth > MOST_DEPTH)
        return;
    size_t at = 0;
    for (int64_t i = 0; i < a->count * each && --*left > 0; i++) {
        if (!lumat_mat_inner(m, a, &at, &inner, message, MESSAGE)) {
            require(message[0] != '\0');
            return;
        }
        require(at <= a->inner_length);
        visit(m, &inner, depth + 1, left);
    }
}

static void try_array(const lumat_mat *m, const void *bytes, size_t length)
{
    char message[MESSAGE] = "";
    lumat_mat_array a;
    int left = 1000;
    if (lumat_mat_read(m, bytes, length, &a, message, MESSAGE))
        visit(m, &a, 0, &left);
    else
        require(message[0] != '\0');
}

static void try_file(const uint8_t *bytes, size_t length)
{
    char message[MESSAGE] = "";
    lumat_mat m;
    lumat_mat_part part;
    size_t at = 0;
    int got;
    if (!lumat_mat_open(&m, bytes, length, message, MESSAGE)) {
        require(message[0] != '\0');
        return;
    }
    if (m.version == 7)
        return;
    while ((got = lumat_mat_next(&m, &at, &part, message, MESSAGE)) > 0) {
        require(at <= length);
        if (part.unpacked == 0) {
            if (part.is_array)
                try_array(&m, part.bytes, part.length);
        } else if (part.unpacked < MOST) {
            void *to = malloc(part.unpacked);
            require(to != NULL);
            if (lumat_mat_unpack(&part, to, NULL))
                try_array(&m, to, part.unpacked);
            free(to);
        }
    }
    require(got == 0 || message[0] != '\0');
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HEADER = 128 };
    uint8_t *copy = malloc(HEADER + size + 1);
    require(copy != NULL);
    memcpy(copy, data, size);
    uint8_t *exact = realloc(copy, size + 1);
    try_file(exact, size);
    copy = malloc(HEADER + size);
    require(copy != NULL);
    memset(copy, ' ', HEADER);
    memcpy(copy + HEADER - 4, size & 1 ? "\0\1IM" : "\1\0MI", 4);
    memcpy(copy + HEADER, data, size);
    try_file(copy, HEADER + size);
    free(copy);
    free(exact);
    return 0;
}
