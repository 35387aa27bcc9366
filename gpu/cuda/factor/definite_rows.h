/* Blocks of rows of a Cholesky factorisation, of copies that lie row by row:
 * what those of f32 and c64 share. See chol_split16.cu. */
#ifndef GPU_CUDA_DEFINITE_ROWS_H
#define GPU_CUDA_DEFINITE_ROWS_H

#include "padded.h"

/* On the diagonal of L, of what is well in range. */
static const float LEAST_ROOT = 0x1p-50f;

/* Memory of the device: inverses of blocks on the diagonal, see
 * factor_definite, 32 numbers a column; and the first minor that is not
 * positive, counted from 0 where p's first column is column `first`, or
 * INT_MAX.
 */
typedef struct cholesky_notes {
    float *inverses;
    int *minor;
    int first;
    size_t bytes;
} cholesky_notes;

/* For `side` columns. */
gpu_status gpu_cuda_take_notes(cuda_device *d, int side, cholesky_notes *notes);
void gpu_cuda_end_notes(cuda_device *d, cholesky_notes *notes);

/* The square of nb on the diagonal from row j on becomes L. */
gpu_status gpu_cuda_factor_square(cuda_device *d, const padded *p, int j,
                                  int nb, const cholesky_notes *notes);
/* Rows i to the last, of the columns [j, j + nb), become those of L. */
gpu_status gpu_cuda_solve_rows(cuda_device *d, const padded *p, int i, int j,
                               int nb, const cholesky_notes *notes);

/* p, of two parts, becomes L. */
gpu_status gpu_cuda_factor_complex(cuda_device *d, const padded *p,
                                   cholesky_notes *notes);

#endif
