/* What our own factorisations work on: a copy of a square f32 matrix, row by
 * row, its side rounded up to whole blocks, with the identity's elements behind
 * the last row and column; these stay as they are, whatever is done. */
#ifndef GPU_CUDA_PADDED_H
#define GPU_CUDA_PADDED_H

#include "factor.h"
#include "split16.h"

enum { PAD = 32, PAD_ROW = 64 }; /* of the side, of a row's length */

typedef struct padded {
    float *data;
    int n, side;
    int64_t ld;
    size_t bytes;
    int *odd; /* of the device: was there a number that is none? */
} padded;

/* The triangle that is copied. */
typedef enum padded_part { PADDED_ALL, PADDED_LOWER } padded_part;

/* times scale, rounded to f32; a may be f64 */
gpu_status gpu_cuda_pad(cuda_device *d, const gpu_view *a, double scale,
                        padded_part part, padded *p);
/* Back to a, if all of it are finite numbers, and those on the diagonal zero or
 * at least so large: where split16 adds in place, subnormal numbers are lost.
 * Else a stays. Waits. */
gpu_status gpu_cuda_unpad(cuda_device *d, const padded *p, padded_part part,
                          float least, const gpu_view *a, int *is_fine);
void gpu_cuda_end_padded(cuda_device *d, padded *p);

/* p becomes L and U of its rows order[0 .. side - 1], of the device. Ahead: see
 * gpu_cuda_own_lu. */
gpu_status gpu_cuda_lu_of_padded(cuda_device *d, const padded *p, int is_ahead,
                                 int *order);

/* c -= a b, m x k times k x n in rows ld apart: by split16 where it is worth
 * it, else by cuBLAS. Turned: b is the transpose of what lies at b. c shares no
 * element with a and b. The error is bounded by the sizes of whole rows of a
 * and columns of b: normwise, as factorisations need it. */
gpu_status gpu_cuda_subtract(cuda_device *d, float *c, const float *a,
                             const float *b, int64_t ld, int64_t m, int64_t n,
                             int64_t k, int is_turned);

#endif
