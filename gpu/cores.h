/* The host's cores for work that is no arithmetic of matrices of ours: reading
 * text, say, or ScaLAPACK's. Part of gpu.h. */
#ifndef GPU_CORES_H
#define GPU_CORES_H

#include <stdint.h>

/* Calls work(context, i) for i from 0 to count - 1, on all cores and in any
 * order, and returns after all of it. work raises nothing, and looks itself
 * whether it is to stop. */
typedef void gpu_core_work(void *context, int64_t i);
void gpu_on_cores(int64_t count, gpu_core_work *work, void *context);

/* For a program that links BLAS for itself: OpenBLAS asks for the memory it
 * works in again and again until it has it, so one thread's is taken now.
 * Returns 0 where there is none, and 1 also of another BLAS. */
int gpu_take_blas_memory(void);

#endif
