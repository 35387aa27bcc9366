/* Linear systems: solving, the determinant, how large the inverse is. */
#include <math.h>
#include "cpu.h"

enum { ESTIMATE = 2 }; /* right sides that the norm of the inverse costs */

/* A matrix that is being factored. */
typedef struct work {
    const gpu_view *a;
    int *pivots;
    int zero;    /* the first pivot that is, or 0 */
    int counted; /* progress */
} work;

static size_t pivot_bytes(const gpu_view *a)
{
    return (size_t)a->rows * sizeof(int);
}

static void end(work *w)
{
    gpu_cpu_end_stage(w->counted);
    gpu_cpu_free(NULL, w->pivots, pivot_bytes(w->a));
}

/* Factors a, which is not empty; `columns` will be solved for. To be ended
 * where it succeeds. */
static gpu_status begin(work *w, const gpu_view *a, int64_t columns)
{
    void *pivots;
    int64_t n = a->rows;
    if (gpu_cpu_alloc(NULL, pivot_bytes(a), &pivots) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    *w = (work){.a = a, .pivots = pivots};
    w->counted = gpu_cpu_begin_stage(n * n / 3 * n + n * n * columns);
    gpu_status status = gpu_cpu_factor(a, pivots, &w->zero);
    if (status != GPU_OK)
        end(w);
    return status;
}

gpu_status gpu_cpu_solve(void *device, const gpu_view *a, const gpu_view *b,
                         gpu_inverse_size *inverse)
{
    (void)device;
    work w;
    if (a->rows == 0 || b->cols == 0)
        return GPU_OK;
    gpu_status status = begin(&w, a, b->cols + (inverse ? ESTIMATE : 0));
    if (status != GPU_OK)
        return status;
    if (w.zero > 0)
        status = gpu_cpu_host->fail(
            GPU_SINGULAR, "solve: the matrix is singular (pivot %d is zero)",
            w.zero);
    if (status == GPU_OK)
        status = gpu_cpu_substitute(a, w.pivots, b);
    if (status == GPU_OK && inverse)
        status = gpu_cpu_measure_inverse(a, inverse);
    end(&w);
    return status;
}

static double diagonal_product(const gpu_view *a, const int *pivots)
{
    gpu_cpu_scaled product = {1, 0};
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t at = i * (a->rows + 1);
        gpu_cpu_scale(&product, a->dtype == GPU_F64
                                    ? ((const double *)a->data)[at]
                                    : ((const float *)a->data)[at]);
        if (pivots[i] != i + 1)
            product.mantissa = -product.mantissa;
    }
    return gpu_cpu_unscale(product);
}

gpu_status gpu_cpu_determinant(void *device, const gpu_view *a, double *out)
{
    (void)device;
    work w;
    *out = 1;
    if (a->rows == 0)
        return GPU_OK;
    gpu_status status = begin(&w, a, 0);
    if (status != GPU_OK)
        return status;
    *out = diagonal_product(a, w.pivots);
    end(&w);
    return GPU_OK;
}

gpu_status gpu_cpu_inverse_norm(void *device, const gpu_view *a,
                                gpu_inverse_size *inverse)
{
    (void)device;
    work w;
    inverse->norm_1 = inverse->norm_2 = INFINITY;
    gpu_status status = begin(&w, a, ESTIMATE);
    if (status != GPU_OK)
        return status;
    if (w.zero == 0)
        status = gpu_cpu_measure_inverse(a, inverse);
    end(&w);
    return status;
}
