/* Factorisations on the GPU: the rungs, and the entries of the backend's table
 * that they are behind (backend.h).
 *
 *   cusolver.cu   the peer, for all kinds: loads liblumat-cuda-solver.so
 *   systems.cu    solve, determinant, inverse_norm by LU */
#ifndef GPU_CUDA_FACTOR_H
#define GPU_CUDA_FACTOR_H

#include "cuda_device.h"

/* The entries. */
const gpu_kernel *gpu_cuda_choose_factor(void *device, const gpu_factoring *f);
gpu_status gpu_cuda_factor(void *device, gpu_factoring *f);
gpu_status gpu_cuda_solve(void *device, const gpu_view *a, const gpu_view *b,
                          gpu_inverse_size *inverse);
gpu_status gpu_cuda_determinant(void *device, const gpu_view *a, double *out);
gpu_status gpu_cuda_inverse_norm(void *device, const gpu_view *a,
                                 gpu_inverse_size *inverse);

/* Before the device's stream and memory go. */
void gpu_cuda_solver_close(cuda_device *d);

/* --- between the files ---------------------------------------------------- */

extern const gpu_kernel gpu_cuda_factor_cusolver;

/* Is liblumat-cuda-solver.so there? */
bool gpu_cuda_has_solver(void);

/* An LU that stays on the device: a, column by column, has been factored. */
typedef struct cuda_lu {
    gpu_view a;      /* L and U */
    int64_t *pivots; /* on the device, from 1 */
    size_t bytes;    /* of the pivots */
    int64_t zero;    /* the first pivot that is, from 1; or 0 */
} cuda_lu;

/* To be ended where it succeeds. */
gpu_status gpu_cuda_begin_lu(cuda_device *d, const gpu_view *a, cuda_lu *lu);
void gpu_cuda_end_lu(cuda_device *d, cuda_lu *lu);
/* b, column by column, becomes the x of a x = b, or a^T x = b. */
gpu_status gpu_cuda_solve_lu(cuda_device *d, const cuda_lu *lu, int turned,
                             const gpu_view *b);
/* b becomes the x of a triangle a x = b; how: of f. */
gpu_status gpu_cuda_solve_triangle(cuda_device *d, const gpu_factoring *how,
                                   const gpu_view *a, const gpu_view *b);

/* Where a's diagonal has its first zero, from 1; or 0. Waits. GPU_UNSUPPORTED
 * where it has numbers that the CPU should divide by. */
gpu_status gpu_cuda_look_at_diagonal(cuda_device *d, const char *name,
                                     const gpu_view *a, int64_t *zero);
/* Memory of the device to work in, to be freed by gpu_cuda_free. */
gpu_status gpu_cuda_take_room(cuda_device *d, size_t bytes, void **data);
/* to = from, of one shape and type, on the device. */
gpu_status gpu_cuda_copy_view(cuda_device *d, const gpu_view *from,
                              const gpu_view *to);

#endif
