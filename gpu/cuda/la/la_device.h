/* What the files of liblumat-cuda-la.so share: the handles of one device,
 * each made when first needed. */
#ifndef GPU_CUDA_LA_DEVICE_H
#define GPU_CUDA_LA_DEVICE_H

#include "la_table.h"

#define DISABLE_CUSPARSE_DEPRECATED
#include <cublas_v2.h>
#include <cusparse.h>

struct la_device {
    la_setup setup;
    cublasHandle_t blas;
    void *workspace; /* cuBLAS's */
    int blas_ready;
    cusparseHandle_t sparse;
};

#define TRY(call)                    \
    do {                             \
        gpu_status status_ = (call); \
        if (status_ != GPU_OK)       \
            return status_;          \
    } while (0)

gpu_status la_matmul(la_device *d, const la_product *p);
gpu_status la_dot_product(la_device *d, const la_dot *p);
void la_close_dense(la_device *d);

gpu_status la_sparse_product(la_device *d, const la_sparse *p);
void la_close_sparse(la_device *d);

#endif
