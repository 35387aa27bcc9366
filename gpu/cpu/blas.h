/* The system's BLAS and LAPACK, loaded when somebody first asks for them. They
 * compute on the threads that call them, and start none of their own. */
#ifndef GPU_CPU_BLAS_H
#define GPU_CPU_BLAS_H

#include <cblas.h>

#include "cpu.h"

typedef struct gpu_cpu_blas_functions {
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&cblas_dgemm) dgemm;
    __typeof__(&cblas_sgemv) sgemv;
    __typeof__(&cblas_dgemv) dgemv;
    __typeof__(&cblas_sdot) sdot;
    __typeof__(&cblas_ddot) ddot;
    int is_shared; /* may several threads call it at once? */
} gpu_cpu_blas_functions;

/* Threads beside those of the pool that may call it at once. */
enum { GPU_CPU_APART = 2 };

/* What gpu_cpu_load_blas found. */
extern gpu_cpu_blas_functions gpu_cpu_blas;

/* Loads the library, unless it is there. What keeps it from being loaded is
 * told, as of `who`, with what goes without it, and the next call tries again.
 */
gpu_status gpu_cpu_load_blas(const char *who, const char *without);
/* Would a mapping of that size be granted now? The loader leaves a library that
 * it lacked memory for in halves, for good: so it is asked before. */
int gpu_cpu_has_room(size_t bytes);
/* A function of LAPACK by its name in Fortran, "dpotrf_"; NULL: there is none.
 * Only after gpu_cpu_load_blas. */
void *gpu_cpu_find_lapack(const char *name);

#endif
