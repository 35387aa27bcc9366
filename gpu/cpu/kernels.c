/* The CPU's rungs of the ladder, and which one `auto` takes. */
#include <math.h>
#include "blas.h"
#include "cpu.h"

static const gpu_kernel *const ladder[] = {
    &gpu_cpu_dot_reference,    &gpu_cpu_dot_vector,    &gpu_cpu_dot_openblas,
    &gpu_cpu_matmul_reference, &gpu_cpu_matmul_packed, &gpu_cpu_matmul_openblas,
};

int gpu_cpu_kernels(const gpu_kernel *const **list)
{
    *list = ladder;
    return (int)(sizeof ladder / sizeof *ladder);
}

const gpu_kernel *gpu_cpu_choose_matmul(void *device, const gpu_gemm *p)
{
    (void)device, (void)p;
    return &gpu_cpu_matmul_packed;
}

/* As fast as BLAS where memory sets the pace, closer to the exact value, and
 * its bits do not depend on the number of threads. */
const gpu_kernel *gpu_cpu_choose_dot(void *device, const gpu_view *x,
                                     const gpu_view *y)
{
    (void)device, (void)x, (void)y;
    return &gpu_cpu_dot_vector;
}

double gpu_cpu_gamma(gpu_dtype t, double k)
{
    double ku = k * (t == GPU_F64 ? 0x1p-53 : 0x1p-24);
    return ku < 1 ? ku / (1 - ku) : (double)INFINITY;
}

double gpu_cpu_product_bound(gpu_dtype t, int64_t k)
{
    return gpu_cpu_gamma(t, (double)k);
}
