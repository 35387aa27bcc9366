/* Sparse matrix times vector by cuSPARSE, with the algorithm that gives the
 * same bits in every run. It forgets beta where only the last row has elements
 * (before cuSPARSE 13), so beta is always 0 here. Several columns are done by
 * spmm.cu, which says why. */
#include "la_device.h"

typedef union scalar {
    float f32;
    double f64;
} scalar;

/* One product as cuSPARSE sees it; what is not made yet is NULL. */
typedef struct sparse_call {
    cusparseHandle_t handle;
    cudaDataType type;
    scalar alpha, beta;
    cusparseConstSpMatDescr_t s;
    cusparseConstDnVecDescr_t x; /* y = alpha s x */
    cusparseDnVecDescr_t y;
    void *buffer;
    size_t bytes;
} sparse_call;

static gpu_status check(const la_device *d, cusparseStatus_t error)
{
    gpu_status status = GPU_INTERNAL;
    if (error == CUSPARSE_STATUS_SUCCESS)
        return GPU_OK;
    if (error == CUSPARSE_STATUS_ALLOC_FAILED ||
        error == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES)
        status = GPU_MEMORY;
    if (error == CUSPARSE_STATUS_NOT_SUPPORTED)
        status = GPU_UNSUPPORTED;
    return d->setup.fail(status, "matmul: cuSPARSE failed: %s",
                         cusparseGetErrorName(error));
}

static gpu_status start(la_device *d)
{
    if (d->sparse)
        return GPU_OK;
    cusparseHandle_t handle;
    TRY(check(d, cusparseCreate(&handle)));
    gpu_status status = check(d, cusparseSetStream(handle, d->setup.stream));
    if (status == GPU_OK)
        d->sparse = handle;
    else
        cusparseDestroy(handle);
    return status;
}

void la_close_sparse(la_device *d)
{
    if (d->sparse)
        cusparseDestroy(d->sparse);
}

static gpu_status describe_sparse(const la_device *d, const gpu_csr *s,
                                  sparse_call *call)
{
    return check(d,
                 cusparseCreateConstCsr(&call->s, s->rows, s->cols, s->count,
                                        s->starts, s->columns, s->values,
                                        CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                        CUSPARSE_INDEX_BASE_ZERO, call->type));
}

static gpu_status describe_vectors(const la_device *d, const la_sparse *p,
                                   sparse_call *call)
{
    TRY(check(d,
              cusparseCreateConstDnVec(&call->x, p->s.cols, p->x, call->type)));
    return check(d, cusparseCreateDnVec(&call->y, p->s.rows, p->y, call->type));
}

static gpu_status take_buffer(const la_device *d, sparse_call *call)
{
    if (call->bytes == 0)
        return GPU_OK;
    gpu_status status =
        d->setup.alloc(d->setup.device, call->bytes, &call->buffer);
    if (status == GPU_MEMORY)
        return d->setup.fail(GPU_MEMORY,
                             "matmul: no memory for %zu bytes that cuSPARSE "
                             "works in",
                             call->bytes);
    return status;
}

static gpu_status multiply_vector(const la_device *d, const la_sparse *p,
                                  sparse_call *call)
{
    TRY(describe_vectors(d, p, call));
    TRY(check(d, cusparseSpMV_bufferSize(
                     call->handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                     &call->alpha, call->s, call->x, &call->beta, call->y,
                     call->type, CUSPARSE_SPMV_CSR_ALG2, &call->bytes)));
    TRY(take_buffer(d, call));
    return check(d, cusparseSpMV(call->handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                 &call->alpha, call->s, call->x, &call->beta,
                                 call->y, call->type, CUSPARSE_SPMV_CSR_ALG2,
                                 call->buffer));
}

static void release(const la_device *d, sparse_call *call)
{
    if (call->buffer)
        d->setup.free(d->setup.device, call->buffer, call->bytes);
    if (call->s)
        cusparseDestroySpMat(call->s);
    if (call->x)
        cusparseDestroyDnVec(call->x);
    if (call->y)
        cusparseDestroyDnVec(call->y);
}

gpu_status la_sparse_product(la_device *d, const la_sparse *p)
{
    sparse_call call = {0};
    TRY(start(d));
    call.handle = d->sparse;
    call.type = p->s.dtype == GPU_F64 ? CUDA_R_64F : CUDA_R_32F;
    if (p->s.dtype == GPU_F64)
        call.alpha.f64 = p->alpha;
    else
        call.alpha.f32 = (float)p->alpha;
    gpu_status status = describe_sparse(d, &p->s, &call);
    if (status == GPU_OK)
        status = multiply_vector(d, p, &call);
    release(d, &call);
    return status;
}
