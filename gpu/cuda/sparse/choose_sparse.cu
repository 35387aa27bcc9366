/* Sparse products: which rung takes one. */
#include "sparse_rows.h"

/* So few entries and rows that one launch is better than three. */
static const int64_t FEW = 1 << 15;

const gpu_kernel *gpu_cuda_choose_sparse(void *device, const gpu_sparse_call *p)
{
    bool is_small = p->s.rows + p->s.count <= FEW;
    (void)device;
    if (p->c.cols == 1)
        return is_small ? &gpu_cuda_spmv_vector : &gpu_cuda_spmv_merge;
    return is_small ? &gpu_cuda_spmm_rows : &gpu_cuda_spmm_merge;
}

gpu_status gpu_cuda_sparse_product(void *device, const gpu_sparse_call *p)
{
    return p->rung->sparse(device, p);
}
