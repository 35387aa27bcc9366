/* NumPy's .npy files: pure, without Lua. The reader borrows the bytes; nothing
 * here allocates. Source: NumPy Enhancement Proposal 1 and the documentation
 * of numpy.lib.format. */
#ifndef LUMAT_NPY_H
#define LUMAT_NPY_H

#include <stddef.h>
#include <stdint.h>
#include "gpu.h"

typedef struct lumat_npy {
    char kind;          /* 'b' truth values, 'i' 'u' integers, 'f' reals */
    int bytes;          /* of an element */
    int swapped;        /* the other byte order */
    int fortran;        /* column after column */
    int ndim;           /* 0 to 2 */
    int64_t rows, cols; /* 1 where there is no such dimension */
    size_t data;        /* where the elements start */
} lumat_npy;

/* Reads the header and compares the size it claims with what is there: length
 * is the whole file's; of its bytes, LUMAT_NPY_MOST_HEADER are enough. Returns
 * 1, or 0 with a message. */
enum { LUMAT_NPY_MOST_HEADER = 65536 + 12 };
int lumat_npy_open(lumat_npy *n, const void *file, size_t length, char *error,
                   size_t size);

/* The type that takes every value: bool, f32 for what is no wider than 16
 * bits or is float32, else f64. */
gpu_dtype lumat_npy_dtype(const lumat_npy *n);
/* Are the elements those of dtype, bit for bit? */
int lumat_npy_is_plain(const lumat_npy *n, gpu_dtype dtype);

/* Converts so many elements, in the file's order, into to; `elements` is the
 * one of number first, counted from 0. With exact set, fails at an integer
 * beyond 2^53 that f64 would round. */
int lumat_npy_read(const lumat_npy *n, const void *elements, int64_t first,
                   int64_t count, gpu_dtype dtype, void *to, int exact,
                   char *error, size_t size);

/* Writes the header of a file, version 1.0, and returns its length. */
enum { LUMAT_NPY_HEADER = 192 };
size_t lumat_npy_header(char out[LUMAT_NPY_HEADER], gpu_dtype dtype, int ndim,
                        int64_t rows, int64_t cols);

#endif
