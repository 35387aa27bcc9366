/* Which rung `auto` takes. Policy only: no kernel is launched here. */
#include "kernels/kernel.h"

/* Up to so many rows or columns of c, a product is a matter of reading the
 * other operand once. */
enum { FEW = 4 };

/* f64 tensor cores are fast on the large processors alone: 8.0, 9.0, 10.0. On
 * the others FP16's are not faster than three times FP32 either. */
static bool is_large_processor(const cuda_device *d)
{
    return d->capability >= 80 && d->capability % 10 == 0 &&
           d->capability < 120;
}

const gpu_kernel *gpu_cuda_choose_matmul(void *device, const gpu_gemm *p)
{
    const cuda_device *d = (const cuda_device *)device;
    if (smaller(p->c.rows, p->c.cols) <= FEW)
        return &gpu_cuda_matmul_vector;
    if (p->c.dtype == GPU_F64)
        return is_large_processor(d) ? &gpu_cuda_matmul_dmma
                                     : &gpu_cuda_matmul_register;
    if (!is_large_processor(d) || p->a.cols < 32)
        return d->capability >= 80 ? &gpu_cuda_matmul_simt
                                   : &gpu_cuda_matmul_register;
    return &gpu_cuda_matmul_split16;
}

/* One launch, the exactest sums and the widest loads: nothing is better at
 * any length. */
const gpu_kernel *gpu_cuda_choose_dot(void *device, const gpu_view *x,
                                      const gpu_view *y)
{
    (void)device;
    (void)x;
    (void)y;
    return &gpu_cuda_dot_stream;
}
