/* The CPU's rungs of the ladder, which one `auto` takes, and the first of them:
 * matmul `reference`, the three loops of the definition, with sums in f64. It
 * is what every other rung is compared with. */
#include <math.h>
#include "cpu.h"

enum {
    STRIP = 256, /* columns of c whose sums are kept at a time */
    POLL = 4096  /* rows of b between two looks at the flag */
};

/* sums[j] = sum over p of a[i, p] b[p, j0 + j]. */
static gpu_status row_strip(const gpu_gemm *g, int64_t i, int64_t j0, int64_t n,
                            double *sums)
{
    double a, b[STRIP];
    for (int64_t j = 0; j < n; j++)
        sums[j] = 0;
    for (int64_t p = 0; p < g->a.cols; p++) {
        if (p % POLL == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        gpu_view one = gpu_cpu_part(&g->a, i, p, 1, 1);
        gpu_view row = gpu_cpu_part(&g->b, p, j0, 1, n);
        gpu_cpu_load(&one, 0, 1, GPU_F64, &a);
        gpu_cpu_load(&row, 0, n, GPU_F64, b);
        for (int64_t j = 0; j < n; j++)
            sums[j] += a * b[j];
    }
    return GPU_OK;
}

static gpu_status multiply_rows(void *context, int64_t first, int64_t last)
{
    const gpu_gemm *g = context;
    double sums[STRIP], old[STRIP];
    for (int64_t i = first; i < last; i++)
        for (int64_t j0 = 0; j0 < g->c.cols; j0 += STRIP) {
            int64_t left = g->c.cols - j0, n = left < STRIP ? left : STRIP;
            gpu_view c = gpu_cpu_part(&g->c, i, j0, 1, n);
            if (row_strip(g, i, j0, n, sums) != GPU_OK)
                return GPU_INTERRUPTED;
            if (g->beta != 0)
                gpu_cpu_load(&c, 0, n, GPU_F64, old);
            for (int64_t j = 0; j < n; j++) {
                sums[j] *= g->alpha;
                if (g->beta != 0)
                    sums[j] += g->beta * old[j];
            }
            gpu_cpu_store(&c, 0, n, GPU_F64, sums);
        }
    return GPU_OK;
}

static gpu_status matmul(void *device, const gpu_gemm *p)
{
    (void)device;
    gpu_gemm g = *p;
    return gpu_cpu_parallel(g.c.rows, g.c.rows * g.c.cols * g.a.cols,
                            multiply_rows, &g);
}

/* f32: exact products added in f64, then one rounding to f32. */
static double bound(gpu_dtype dtype, int64_t k)
{
    double gamma = gpu_cpu_gamma(GPU_F64, (double)k);
    return dtype == GPU_F64 ? gamma : gamma + 0x1p-24 * (1 + gamma);
}

const gpu_kernel gpu_cpu_matmul_reference = {
    .operation = "matmul",
    .name = "reference",
    .idea = "three loops, sums in f64: what the others are checked against",
    .needs = "any CPU",
    .precision = "f32",
    .dtypes = 1 << GPU_F32 | 1 << GPU_F64,
    .bound = bound,
    .matmul = matmul,
};

/* --- the ladder ----------------------------------------------------------- */

static const gpu_kernel *const ladder[] = {
#define KERNEL(symbol) &symbol,
#include "cpu_kernels.def"
#undef KERNEL
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
