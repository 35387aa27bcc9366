/* Discrete Fourier transforms and convolutions.
 *
 * Of n numbers x the transform is X[k] = sum of x[j] exp(-2 pi i j k / n), its
 * inverse the same with + and a factor 1 / n, which `norm` may shift. Any n is
 * fast, large primes a few times less so. Errors grow as log n does: of f32 and
 * c64 it is computed in f32, of f64 and c128 in f64. A line's result depends on
 * its elements and its length alone: not on the lines beside it where the CPU
 * computes, nor on threads, nor on how it lies in memory. */
#ifndef GPU_FOURIER_H
#define GPU_FOURIER_H

#include "gpu.h"

typedef enum gpu_spectrum {
    GPU_SPECTRUM_WHOLE,     /* complex, as many as there are elements */
    GPU_SPECTRUM_HALF,      /* of a real m: the first n / 2 + 1, of which the
                               others are the conjugates */
    GPU_SPECTRUM_FROM_HALF, /* back from that half to n real numbers */
} gpu_spectrum;

/* Which direction has the factor 1 / n; of ORTHO both have its root. */
typedef enum gpu_fft_norm {
    GPU_FFT_BACKWARD,
    GPU_FFT_ORTHO,
    GPU_FFT_FORWARD,
    GPU_FFT_NORMS
} gpu_fft_norm;

typedef struct gpu_transform {
    const char *name; /* of the operation, for good */
    gpu_spectrum spectrum;
    int is_inverse; /* always, from half */
    int axis;       /* 1: each column; 2: each row; 0: both, of the whole */
    gpu_fft_norm norm;
    int64_t length[2]; /* of columns, of rows: what is longer is cut, what is
                          shorter gets zeros behind it; 0: as they are, or from
                          half 2 (n - 1) */
} gpu_transform;

/* out is created, where m lies: c64 or c128, or from half f32 or f64. Lengths
 * are at least 1. A device that has no transforms has the CPU do it, on copies.
 */
gpu_status gpu_fft(const gpu_matrix *m, const gpu_transform *t,
                   gpu_matrix *out);

/* out, which is created, is x convolved with y: the sum of x[i - u, j - v] *
 * y[u, v] over all elements of y, x being zero around itself. Two vectors, or
 * two matrices; of x's and y's sides are m and n. Sums are in f64, in one order
 * everywhere; of masks out is f32. */
typedef enum gpu_overlap {
    GPU_OVERLAP_FULL, /* m + n - 1: wherever they meet */
    GPU_OVERLAP_SAME, /* x's size, from the middle of that */
    GPU_OVERLAP_VALID /* m - n + 1: where y lies in x; at least 0 */
} gpu_overlap;
gpu_status gpu_convolve(const gpu_matrix *x, const gpu_matrix *y,
                        gpu_overlap overlap, gpu_matrix *out);

#endif
