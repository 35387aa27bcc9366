/* Slice strings such as "1:3, end" as ranges of rows and columns. Pure: no
 * Lua, no matrix. */
#ifndef LUMAT_SLICE_H
#define LUMAT_SLICE_H

#include <stddef.h>
#include <stdint.h>
#include "gpu.h"

/* One part of a slice: its places, and whether it was one index (which drops
 * the dimension), a range or a list. */
typedef struct lumat_part {
    gpu_slice slice; /* of a list: all */
    int is_index;
    int64_t swapped; /* of three numbers that take one place or none: how many
                        first:step:last would take, if two more; else 0 */
    const int64_t *places; /* of a list, 0-based; NULL of all that is text */
    int64_t listed;        /* how many places */
} lumat_part;

/* 0-based place of a 1-based or negative index, or -1 when it is outside. */
int64_t lumat_place(int64_t index, int64_t size);

/* first..last (inclusive, as 1-based or negative indices) by step. Returns 1,
 * or 0 with a message in error. An empty range is legal. */
int lumat_slice_range(int64_t first, int64_t last, int64_t step, int64_t size,
                      lumat_part *out, char *error, size_t error_size);

/* Parses "part" (a vector, ndim 1) or "part, part" (ndim 2; a missing second
 * part is everything). A part is empty or ":" (all), an index, first:last, or
 * first:last:step, where an index is an integer, negative from the end, or
 * end, end-1 … Returns 1, or 0 with a message in error. */
int lumat_slice_parse(const char *text, size_t length, int ndim, int64_t rows,
                      int64_t cols, lumat_part out[2], char *error,
                      size_t error_size);

#endif
