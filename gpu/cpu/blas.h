/* The system's BLAS and LAPACK, loaded when first needed. */
#ifndef GPU_CPU_BLAS_H
#define GPU_CPU_BLAS_H

#include <cblas.h>
#include "backend.h"

/* Loads the library once. Afterwards the functions of gpu_cpu_blas may be
 * called; before, or when this failed, they are NULL. */
gpu_status gpu_cpu_load_blas(void);
int gpu_cpu_has_blas(void);

typedef struct gpu_cpu_blas_functions {
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&cblas_dgemm) dgemm;
    __typeof__(&cblas_sgemv) sgemv;
    __typeof__(&cblas_dgemv) dgemv;
    __typeof__(&cblas_sdot) sdot;
    __typeof__(&cblas_ddot) ddot;
    __typeof__(&cblas_strsm) strsm;
    __typeof__(&cblas_dtrsm) dtrsm;
    __typeof__(&cblas_strsv) strsv;
    __typeof__(&cblas_dtrsv) dtrsv;
    /* LAPACK: factors a (m x n, column-major) with pivots; info as there. */
    void (*sgetrf)(const int *m, const int *n, float *a, const int *lda,
                   int *pivots, int *info);
    void (*dgetrf)(const int *m, const int *n, double *a, const int *lda,
                   int *pivots, int *info);
    /* OpenBLAS only, else NULL */
    int (*get_num_threads)(void);
    void (*set_num_threads)(int threads);
} gpu_cpu_blas_functions;
extern gpu_cpu_blas_functions gpu_cpu_blas;

#endif
