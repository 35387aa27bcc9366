/* The system's BLAS, loaded when somebody first asks for its kernels. */
#ifndef GPU_CPU_BLAS_H
#define GPU_CPU_BLAS_H

#include <cblas.h>
#include "backend.h"

/* Loads the library, unless it is there. What keeps it from being loaded is
 * told, and the next call tries again. Afterwards the functions of
 * gpu_cpu_blas may be called. It computes on the threads that call it, and
 * starts none of its own. */
gpu_status gpu_cpu_load_blas(void);

typedef struct gpu_cpu_blas_functions {
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&cblas_dgemm) dgemm;
    __typeof__(&cblas_sgemv) sgemv;
    __typeof__(&cblas_dgemv) dgemv;
    __typeof__(&cblas_sdot) sdot;
    __typeof__(&cblas_ddot) ddot;
    int is_shared; /* may several threads call it at once? */
} gpu_cpu_blas_functions;
extern gpu_cpu_blas_functions gpu_cpu_blas;

#endif
