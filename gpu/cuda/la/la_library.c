/* The whole of liblumat-cuda-la.so: the handles of one device, each made when
 * first needed, and products by them. */
#include <stdlib.h>
#include "la_table.h"
#include "library_call.h"

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

#define BLAS(d, function, ...) \
    CALL_OF(d, #function, function, CUBLAS_STATUS_EXECUTION_FAILED, __VA_ARGS__)
#define SPARSE(d, function, ...)                                      \
    CALL_OF(d, #function, function, CUSPARSE_STATUS_EXECUTION_FAILED, \
            __VA_ARGS__)

/* --- cuBLAS -----------------------------------------------------------------
 * matmul and dot. Results repeat bit for bit: one stream, one workspace, and
 * its atomics are off unless asked for. */

/* cuBLAS's own choice for Hopper. A buffer of ours, because cuBLAS would take
 * and return one of its own from the pool again and again. */
enum { WORKSPACE_BYTES = 32 << 20 };

static gpu_status check(const la_device *d, const char *what,
                        cublasStatus_t error)
{
    gpu_status status = GPU_INTERNAL;
    if (error == CUBLAS_STATUS_SUCCESS)
        return GPU_OK;
    if (error == CUBLAS_STATUS_ALLOC_FAILED)
        status = GPU_MEMORY;
    if (error == CUBLAS_STATUS_NOT_SUPPORTED)
        status = GPU_UNSUPPORTED;
    return d->setup.fail(status, "%s: cuBLAS failed: %s", what,
                         cublasGetStatusName(error));
}

static gpu_status take_workspace(la_device *d)
{
    gpu_status status =
        d->setup.alloc(d->setup.device, WORKSPACE_BYTES, &d->workspace);
    if (status == GPU_MEMORY)
        return d->setup.fail(GPU_MEMORY, "no memory for cuBLAS's workspace");
    return status;
}

/* The stream goes before the workspace: setting it drops the workspace. */
static gpu_status start(la_device *d, const char *what)
{
    if (d->blas_ready)
        return GPU_OK;
    if (!d->workspace)
        TRY(take_workspace(d));
    if (!d->blas) {
        cublasHandle_t handle;
        TRY(check(
            d, what,
            CALL(d, cublasCreate, CUBLAS_STATUS_NOT_INITIALIZED, &handle)));
        d->blas = handle;
    }
    TRY(check(d, what, BLAS(d, cublasSetStream, d->blas, d->setup.stream)));
    TRY(check(
        d, what,
        BLAS(d, cublasSetWorkspace, d->blas, d->workspace, WORKSPACE_BYTES)));
    d->blas_ready = 1;
    return GPU_OK;
}

static void close_blas(la_device *d)
{
    if (d->blas)
        cublasDestroy(d->blas);
    if (d->workspace)
        d->setup.free(d->setup.device, d->workspace, WORKSPACE_BYTES);
}

static cublasOperation_t operation(const la_operand *o)
{
    return o->transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

static cublasStatus_t multiply_f64(const la_device *d, const la_product *p)
{
    return BLAS(d, cublasDgemm_64, d->blas, operation(&p->a), operation(&p->b),
                p->m, p->n, p->k, &p->alpha, p->a.data, p->a.ld, p->b.data,
                p->b.ld, &p->beta, p->c.data, p->c.ld);
}

static cublasStatus_t multiply_f32(const la_device *d, const la_product *p)
{
    float alpha = (float)p->alpha, beta = (float)p->beta;
    return BLAS(d, cublasSgemm_64, d->blas, operation(&p->a), operation(&p->b),
                p->m, p->n, p->k, &alpha, p->a.data, p->a.ld, p->b.data,
                p->b.ld, &beta, p->c.data, p->c.ld);
}

static cublasStatus_t multiply_bf16(const la_device *d, const la_product *p)
{
    float alpha = (float)p->alpha, beta = (float)p->beta;
    return BLAS(d, cublasGemmEx_64, d->blas, operation(&p->a), operation(&p->b),
                p->m, p->n, p->k, &alpha, p->a.data, CUDA_R_16BF, p->a.ld,
                p->b.data, CUDA_R_16BF, p->b.ld, &beta, p->c.data, CUDA_R_32F,
                p->c.ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t multiply(const la_device *d, const la_product *p)
{
    switch (p->mode) {
    case LA_F64:
        return multiply_f64(d, p);
    case LA_F32:
    case LA_TF32:
        return multiply_f32(d, p);
    case LA_BF16:
        return multiply_bf16(d, p);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

static gpu_status matmul(la_device *d, const la_product *p)
{
    cublasMath_t math =
        p->mode == LA_TF32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
    TRY(start(d, "matmul"));
    TRY(check(d, "matmul", BLAS(d, cublasSetMathMode, d->blas, math)));
    TRY(check(
        d, "matmul",
        BLAS(d, cublasSetPointerMode, d->blas, CUBLAS_POINTER_MODE_HOST)));
    return check(d, "matmul", multiply(d, p));
}

/* BLAS wants the lowest address, whichever way a vector goes. */
static const void *lowest(const la_dot *p, const void *first, int64_t stride)
{
    int64_t size = p->dtype == GPU_F64 ? 8 : 4;
    return (const char *)first + (stride < 0 ? (p->n - 1) * stride * size : 0);
}

static gpu_status dot_product(la_device *d, const la_dot *p)
{
    const void *x = lowest(p, p->x, p->x_stride);
    const void *y = lowest(p, p->y, p->y_stride);
    TRY(start(d, "dot"));
    TRY(check(
        d, "dot",
        BLAS(d, cublasSetPointerMode, d->blas, CUBLAS_POINTER_MODE_DEVICE)));
    if (p->dtype == GPU_F64)
        return check(d, "dot",
                     BLAS(d, cublasDdot_64, d->blas, p->n, x, p->x_stride, y,
                          p->y_stride, p->out));
    return check(d, "dot",
                 BLAS(d, cublasSdot_64, d->blas, p->n, x, p->x_stride, y,
                      p->y_stride, p->out));
}

/* --- cuSPARSE ---------------------------------------------------------------
 * Sparse matrix times vector, with the algorithm that gives the same bits in
 * every run. It forgets beta where only the last row has elements (before
 * cuSPARSE 13), so beta is always 0 here. Several columns are done by la.cu,
 * which says why. */

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

static gpu_status check_sparse(const la_device *d, cusparseStatus_t error)
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

static gpu_status start_sparse(la_device *d)
{
    if (d->sparse)
        return GPU_OK;
    cusparseHandle_t handle;
    TRY(check_sparse(
        d, CALL(d, cusparseCreate, CUSPARSE_STATUS_NOT_INITIALIZED, &handle)));
    gpu_status status =
        check_sparse(d, SPARSE(d, cusparseSetStream, handle, d->setup.stream));
    if (status == GPU_OK)
        d->sparse = handle;
    else
        cusparseDestroy(handle);
    return status;
}

static void close_sparse(la_device *d)
{
    if (d->sparse)
        cusparseDestroy(d->sparse);
}

static gpu_status describe_sparse(const la_device *d, const gpu_csr *s,
                                  sparse_call *call)
{
    return check_sparse(
        d, CALL(d, cusparseCreateConstCsr, CUSPARSE_STATUS_ALLOC_FAILED,
                &call->s, s->rows, s->cols, s->count, s->starts, s->columns,
                s->values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                CUSPARSE_INDEX_BASE_ZERO, call->type));
}

static gpu_status describe_vectors(const la_device *d, const la_sparse *p,
                                   sparse_call *call)
{
    TRY(check_sparse(d, CALL(d, cusparseCreateConstDnVec,
                             CUSPARSE_STATUS_ALLOC_FAILED, &call->x, p->s.cols,
                             p->x, call->type)));
    return check_sparse(d, CALL(d, cusparseCreateDnVec,
                                CUSPARSE_STATUS_ALLOC_FAILED, &call->y,
                                p->s.rows, p->y, call->type));
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
    TRY(check_sparse(d,
                     SPARSE(d, cusparseSpMV_bufferSize, call->handle,
                            CUSPARSE_OPERATION_NON_TRANSPOSE, &call->alpha,
                            call->s, call->x, &call->beta, call->y, call->type,
                            CUSPARSE_SPMV_CSR_ALG2, &call->bytes)));
    TRY(take_buffer(d, call));
    return check_sparse(d, SPARSE(d, cusparseSpMV, call->handle,
                                  CUSPARSE_OPERATION_NON_TRANSPOSE,
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

static gpu_status sparse_product(la_device *d, const la_sparse *p)
{
    sparse_call call = {0};
    TRY(start_sparse(d));
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

/* --- the table --------------------------------------------------------------
 * The one exported symbol. */

static gpu_status open_device(const la_setup *setup, la_device **out)
{
    la_device *d = calloc(1, sizeof *d);
    if (!d)
        return setup->fail(GPU_MEMORY, "out of memory");
    d->setup = *setup;
    *out = d;
    return GPU_OK;
}

static void close_device(la_device *d)
{
    close_blas(d);
    close_sparse(d);
    free(d);
}

static const la_table table = {
    .abi = LA_ABI,
    .open = open_device,
    .close = close_device,
    .matmul = matmul,
    .dot = dot_product,
    .sparse_product = sparse_product,
};

__attribute__((visibility("default"))) la_entry lumat_cuda_la;

const la_table *lumat_cuda_la(int abi)
{
    return abi == LA_ABI ? &table : NULL;
}
