/* Blocks of columns of a Cholesky factorisation: what f32's (chol_split16.cu)
 * and c64's (chol_complex.cu) have of each other. */
#ifndef GPU_CUDA_DEFINITE_ROWS_H
#define GPU_CUDA_DEFINITE_ROWS_H

#include "padded.h"

/* On L's diagonal, of what is well in range. */
static const float LEAST_ROOT = 0x1p-50f, MOST_ROOT = 0x1p60f;

typedef struct cholesky {
    const padded *p; /* what becomes L */
    int width;       /* of a panel of columns */
    /* Memory of the device. Inverses of blocks on the diagonal, see
     * factor_definite, 32 numbers a column: of f32 of all columns, of c64 of a
     * doubled panel's, as the rows below a square are solved for before the
     * next begins. Of c64 two panels, in turns, doubled, their rows 2 width
     * apart. And the first pivot that is not positive, counted from 0, among
     * doubled columns where they are, or INT_MAX. */
    float *inverses, *doubled[2];
    int *minor;
    size_t bytes;
} cholesky;

/* The square of nb on the diagonal of p from its row j on becomes L. first: the
 * number of p's first column. */
gpu_status gpu_cuda_factor_square(cuda_device *d, const cholesky *c,
                                  const padded *p, int j, int nb, int first);
/* x becomes x L^-T, of that square. */
gpu_status gpu_cuda_solve_rows(cuda_device *d, const cholesky *c,
                               const padded *p, int j, int nb,
                               const gpu_view *x);

/* Of c64: the square on the diagonal of c's matrix from row j on becomes L. */
gpu_status gpu_cuda_factor_doubled_square(cuda_device *d, const cholesky *c,
                                          int j, int nb);
/* The rows below that square do. */
gpu_status gpu_cuda_solve_doubled_rows(cuda_device *d, const cholesky *c, int j,
                                       int nb);
/* Rows i to `end` behind the columns [j, j + nb) lose what these have in the
 * lower triangle. */
gpu_status gpu_cuda_update_by_doubled(cuda_device *d, const cholesky *c, int i,
                                      int end, int j, int nb);

#endif
