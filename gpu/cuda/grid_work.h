/* What NVIDIA's libraries do of matrices that lie on the GPUs of several
 * processes: between exchange.cu, which has the processes' links, and
 * grid_work.cu. */
#ifndef GPU_CUDA_GRID_WORK_H
#define GPU_CUDA_GRID_WORK_H

#include "cuda_device.h"

extern "C" {
#include "exchange.h"
}

/* Their handles and grids of one exchange; made when a task first needs them.
 */
typedef struct grid_libraries {
    void *blas, *solver, *blas_grid, *solver_grid;
    int is_broken; /* the processes no longer have the same of them */
} grid_libraries;

/* A step's status, or that it failed in another process. All call it. */
gpu_status gpu_cuda_all_are_well(const gpu_grid_work *w, gpu_status status);

/* What is missing for the task; NULL: nothing. */
const char *gpu_cuda_grid_lacks(gpu_grid_task task);
/* comm: NCCL's, of calls that wait. */
gpu_status gpu_cuda_grid_work(cuda_device *d, grid_libraries *l, void *comm,
                              gpu_grid_work *w);

#endif
