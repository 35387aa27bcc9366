/* The product of a sparse matrix and a dense one of several columns. */
#ifndef GPU_CUDA_SPMM_H
#define GPU_CUDA_SPMM_H

#include "cuda_device.h"

/* c = alpha s x + beta c, as gpu_backend's sparse_product. */
gpu_status gpu_cuda_spmm(cuda_device *d, const gpu_csr *s, const gpu_view *x,
                         const gpu_view *c, double alpha, double beta);

#endif
