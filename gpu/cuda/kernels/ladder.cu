/* The list of kernels, and what all of them refuse or share. */
#include "kernel.h"

#include <math.h>

static const gpu_kernel *const ladder[] = {
#define KERNEL(symbol) &symbol,
#include "kernels.def"
#undef KERNEL
};

int gpu_cuda_kernels(const gpu_kernel *const **list)
{
    *list = ladder;
    return (int)(sizeof ladder / sizeof *ladder);
}

static void swap_operands(gpu_gemm *p)
{
    gpu_view a = p->a;
    p->a = p->b;
    p->b = a;
    gpu_storage *storage = p->a_storage;
    p->a_storage = p->b_storage;
    p->b_storage = storage;
    swap_axes(&p->a);
    swap_axes(&p->b);
    swap_axes(&p->c);
}

/* A side of one element has a stride that means nothing; it is given one that
 * does not mislead the choice of a direction. */
static void settle_strides(gpu_view *v)
{
    if (v->rows == 1)
        v->row_stride = v->cols * v->col_stride;
    if (v->cols == 1 && v->rows > 1)
        v->col_stride = v->rows * v->row_stride;
}

gpu_status gpu_cuda_begin_matmul(const char *name, const gpu_gemm *p,
                                 gpu_gemm *oriented)
{
    gpu_dtype t = p->c.dtype;
    if (t > GPU_F64 || p->a.dtype != t || p->b.dtype != t)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: kernel %s needs operands of one type, f32 or f64",
                    name);
    if (p->c.data == p->a.data || p->c.data == p->b.data)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: kernel %s cannot write over its own operand",
                    name);
    *oriented = *p;
    settle_strides(&oriented->a);
    settle_strides(&oriented->b);
    settle_strides(&oriented->c);
    if (stride_size(oriented->c.row_stride) <
        stride_size(oriented->c.col_stride))
        swap_operands(oriented);
    return GPU_OK;
}

gpu_status gpu_cuda_begin_dot(const char *name, const gpu_view *x,
                              const gpu_view *y)
{
    if (x->dtype > GPU_F64 || x->dtype != y->dtype)
        return FAIL(GPU_UNSUPPORTED,
                    "dot: kernel %s needs operands of one type, f32 or f64",
                    name);
    if ((x->rows != 1 && x->cols != 1) || (y->rows != 1 && y->cols != 1))
        return FAIL(GPU_UNSUPPORTED, "dot: kernel %s needs vectors", name);
    return GPU_OK;
}

double gpu_cuda_gamma(gpu_dtype accumulated, int64_t k)
{
    double u = accumulated == GPU_F64 ? 0x1p-53 : 0x1p-24;
    double ku = (double)k * u;
    return ku < 1 ? ku / (1 - ku) : (double)INFINITY;
}

double gpu_cuda_matmul_bound(gpu_dtype dtype, int64_t k)
{
    return gpu_cuda_gamma(dtype, k + 2);
}
