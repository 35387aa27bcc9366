/* What our own factorisations work on: a copy of a matrix in f32, row by row,
 * its sides rounded up to whole blocks, with the identity's elements behind the
 * last row and column; these touch nothing of the matrix, whatever is done. Of
 * a c64 matrix a row's real parts are a row of the copy, its imaginary ones the
 * next: a complex matrix times it is then a real product, with the real matrix
 * [re -im; im re] for each element of the left one ("doubled"). */
#ifndef GPU_CUDA_PADDED_H
#define GPU_CUDA_PADDED_H

#include "factor.h"
#include "split16.h"

enum { PAD = 32, PAD_ROW = 64 }; /* of the side, of a row's length */

typedef struct padded {
    float *data;
    int parts;        /* 1, or of c64 2: rows of the copy for a row */
    int n, side;      /* rows, and rounded up */
    int cols, across; /* columns, and rounded up: of a square matrix the same */
    int64_t ld;
    size_t bytes;
    int *odd;      /* of the device: was there a number that is none? */
    float *scales; /* of the device: NULL, or what columns were multiplied by */
    size_t scale_bytes;
} padded;

/* The triangle that is copied. */
typedef enum padded_part { PADDED_ALL, PADDED_LOWER } padded_part;

/* times scale, rounded to f32; a may be f64, or c64 */
gpu_status gpu_cuda_pad(cuda_device *d, const gpu_view *a, double scale,
                        padded_part part, padded *p);
/* All of it, each column times the power of two that brings its largest number
 * to [1, 2): what is small in one is not small beside another's. A complex one
 * lies column by column. Are all numbers finite? Waits. */
gpu_status gpu_cuda_pad_by_columns(cuda_device *d, const gpu_view *a, padded *p,
                                   int *is_finite);
/* The same of an identity of b's shape and type. */
gpu_status gpu_cuda_pad_identity(cuda_device *d, const gpu_view *b, padded *p);
/* Back to a, if all of it are finite numbers, and those on the diagonal zero or
 * from least to most: where split16 adds in place, subnormal numbers are lost,
 * and the largest have no reciprocal. Else a stays. Waits. */
gpu_status gpu_cuda_unpad(cuda_device *d, const padded *p, padded_part part,
                          float least, float most, const gpu_view *a,
                          int *is_fine);
/* Back to a; what is on or above the diagonal without its column's scale. */
gpu_status gpu_cuda_copy_back(cuda_device *d, const padded *p, padded_part part,
                              const gpu_view *a);
void gpu_cuda_end_padded(cuda_device *d, padded *p);
/* Of a's magnitudes, which lies column by column, f32 or c64 by its parts; NaN
 * where there is one. scales: NULL, or see padded. Waits. */
gpu_status gpu_cuda_find_largest(cuda_device *d, const gpu_view *a,
                                 float *scales, float *largest);

/* p becomes L and U of its rows order[0 .. side - 1], of the device. Ahead: see
 * gpu_cuda_own_lu. */
gpu_status gpu_cuda_lu_of_padded(cuda_device *d, const padded *p, int is_ahead,
                                 int *order);

/* c = a b and c -= a b: by split16 where it is worth it, else by cuBLAS. Views
 * of f32, c's rows contiguous and a's and b's either rows or columns; c shares
 * no element with a and b. The error is bounded by the sizes of whole rows of a
 * and columns of b: normwise, as factorisations need it. */
gpu_status gpu_cuda_multiply_views(cuda_device *d, const gpu_view *c,
                                   const gpu_view *a, const gpu_view *b);
gpu_status gpu_cuda_subtract_views(cuda_device *d, const gpu_view *c,
                                   const gpu_view *a, const gpu_view *b);
gpu_view gpu_cuda_rows_view(const float *data, int64_t rows, int64_t cols,
                            int64_t ld);

/* c -= a b, m x k times k x n in rows ld apart. Turned: b is the transpose of
 * what lies at b. */
gpu_status gpu_cuda_subtract(cuda_device *d, float *c, const float *a,
                             const float *b, int64_t ld, int64_t m, int64_t n,
                             int64_t k, int is_turned);
/* c -= a b^T, of which only what is at or below the diagonal is wanted that
 * ends at c's last row and column; the rest of c is of no promise. m x k, n x
 * k, m <= n, n - m a multiple of 256. */
gpu_status gpu_cuda_subtract_lower(cuda_device *d, const gpu_view *c,
                                   const gpu_view *a, const gpu_view *b);

/* x = L^-1 x, nb x n; L: what is below its diagonal, and ones. */
gpu_status gpu_cuda_solve_unit_lower(cuda_device *d, const float *L,
                                     int64_t ldl, int nb, float *x, int64_t ldx,
                                     int n);

#endif
