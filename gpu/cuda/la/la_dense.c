/* matmul and dot by cuBLAS. Results repeat bit for bit: one stream, one
 * workspace, and its atomics are off unless asked for. */
#include "la_device.h"

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
        TRY(check(d, what, cublasCreate(&handle)));
        d->blas = handle;
    }
    TRY(check(d, what, cublasSetStream(d->blas, d->setup.stream)));
    TRY(check(d, what,
              cublasSetWorkspace(d->blas, d->workspace, WORKSPACE_BYTES)));
    d->blas_ready = 1;
    return GPU_OK;
}

void la_close_dense(la_device *d)
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

static cublasStatus_t multiply_f64(cublasHandle_t blas, const la_product *p)
{
    return cublasDgemm_64(blas, operation(&p->a), operation(&p->b), p->m, p->n,
                          p->k, &p->alpha, p->a.data, p->a.ld, p->b.data,
                          p->b.ld, &p->beta, p->c.data, p->c.ld);
}

static cublasStatus_t multiply_f32(cublasHandle_t blas, const la_product *p)
{
    float alpha = (float)p->alpha, beta = (float)p->beta;
    return cublasSgemm_64(blas, operation(&p->a), operation(&p->b), p->m, p->n,
                          p->k, &alpha, p->a.data, p->a.ld, p->b.data, p->b.ld,
                          &beta, p->c.data, p->c.ld);
}

static cublasStatus_t multiply_bf16(cublasHandle_t blas, const la_product *p)
{
    float alpha = (float)p->alpha, beta = (float)p->beta;
    return cublasGemmEx_64(blas, operation(&p->a), operation(&p->b), p->m, p->n,
                           p->k, &alpha, p->a.data, CUDA_R_16BF, p->a.ld,
                           p->b.data, CUDA_R_16BF, p->b.ld, &beta, p->c.data,
                           CUDA_R_32F, p->c.ld, CUBLAS_COMPUTE_32F,
                           CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t multiply(cublasHandle_t blas, const la_product *p)
{
    switch (p->mode) {
    case LA_F64:
        return multiply_f64(blas, p);
    case LA_F32:
    case LA_TF32:
        return multiply_f32(blas, p);
    case LA_BF16:
        return multiply_bf16(blas, p);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

gpu_status la_matmul(la_device *d, const la_product *p)
{
    cublasMath_t math =
        p->mode == LA_TF32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
    TRY(start(d, "matmul"));
    TRY(check(d, "matmul", cublasSetMathMode(d->blas, math)));
    TRY(check(d, "matmul",
              cublasSetPointerMode(d->blas, CUBLAS_POINTER_MODE_HOST)));
    return check(d, "matmul", multiply(d->blas, p));
}

/* BLAS wants the lowest address, whichever way a vector goes. */
static const void *lowest(const la_dot *p, const void *first, int64_t stride)
{
    int64_t size = p->dtype == GPU_F64 ? 8 : 4;
    return (const char *)first + (stride < 0 ? (p->n - 1) * stride * size : 0);
}

gpu_status la_dot_product(la_device *d, const la_dot *p)
{
    const void *x = lowest(p, p->x, p->x_stride);
    const void *y = lowest(p, p->y, p->y_stride);
    TRY(start(d, "dot"));
    TRY(check(d, "dot",
              cublasSetPointerMode(d->blas, CUBLAS_POINTER_MODE_DEVICE)));
    if (p->dtype == GPU_F64)
        return check(d, "dot",
                     cublasDdot_64(d->blas, p->n, x, p->x_stride, y,
                                   p->y_stride, p->out));
    return check(
        d, "dot",
        cublasSdot_64(d->blas, p->n, x, p->x_stride, y, p->y_stride, p->out));
}
