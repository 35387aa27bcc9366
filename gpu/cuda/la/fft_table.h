/* What liblumat-cuda-fft.so gives to liblumat-cuda.so, its only caller: Fourier
 * transforms by the CUDA toolkit's cuFFT.
 *
 * Of the object the same holds as of liblumat-cuda-la.so: la_table.h. What is
 * worked in comes from the caller's alloc, for the call alone; plans are kept,
 * the last ones of a device, with tables in memory of cuFFT's own. */
#ifndef GPU_CUDA_FFT_TABLE_H
#define GPU_CUDA_FFT_TABLE_H

#include "la_table.h"

enum { FFT_ABI = 1 };

typedef struct fft_device fft_device;

typedef enum fft_form {
    FFT_COMPLEX,
    FFT_FROM_REAL, /* out: n / 2 + 1 complex elements of the last axis */
    FFT_TO_REAL    /* in: those; they are lost */
} fft_form;

/* Where elements lie: of one transform (i, j) at i * width + j, of a line j,
 * times step; the next transform `apart` behind. In elements. */
typedef struct fft_layout {
    int64_t step, apart, width;
} fft_layout;

/* Transforms of one size, not scaled. Same layouts and data: in place. */
typedef struct fft_batch {
    fft_form form;
    gpu_dtype type; /* f32 or f64: of the parts */
    int is_inverse; /* of complex ones */
    int axes;       /* 1: lines; 2: matrices */
    int64_t n[2];   /* a line's length; or rows, cols */
    int64_t count;  /* of transforms */
    fft_layout in_layout, out_layout;
    void *in, *out;
} fft_batch;

typedef struct fft_table {
    int abi;
    gpu_status (*open)(const la_setup *setup, fft_device **out);
    void (*close)(fft_device *d); /* nothing may be running */
    gpu_status (*transform)(fft_device *d, const fft_batch *b);
} fft_table;

/* NULL when the abi is not the one it was built for. */
typedef const fft_table *fft_entry(int abi);
#define FFT_SYMBOL "lumat_cuda_fft"

#endif
