/* For backends: how large the inverse of a matrix is that they have factored.
 */
#ifndef GPU_INVERSE_SIZE_H
#define GPU_INVERSE_SIZE_H

#include "backend.h"

/* x, of n elements, becomes start A^-1 x, or turned, start A^-T x; the rows of
 * A^-1 may be in any order, the same in both. */
typedef gpu_status gpu_invert(void *context, double *x, double start,
                              int turned);

/* Fills out's norms, of an A that is n x n and not singular. room: 2 n. A
 * failure of inverse ends it. */
gpu_status gpu_measure_inverse(int64_t n, double *room, gpu_invert *inverse,
                               void *context, gpu_inverse_size *out);

#endif
