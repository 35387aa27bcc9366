/* Linear systems: solving, and the determinant. */
#include "blas.h"
#include "cpu.h"

enum { WORTH_THREADS = 128 }; /* order from which threads help */

/* OpenBLAS's threads slow small factorizations down: one for those. Other
 * BLAS libraries do not have these functions. Returns what to restore. */
static int limit_threads(int64_t n)
{
    if (n >= WORTH_THREADS || !gpu_cpu_blas.get_num_threads ||
        !gpu_cpu_blas.set_num_threads)
        return 0;
    int threads = gpu_cpu_blas.get_num_threads();
    gpu_cpu_blas.set_num_threads(1);
    return threads;
}

static void restore_threads(int threads)
{
    if (threads > 1)
        gpu_cpu_blas.set_num_threads(threads);
}

static gpu_status solve(const gpu_view *a, const gpu_view *b, int *pivots)
{
    int zero;
    gpu_status status = gpu_cpu_factor(a, pivots, &zero);
    if (status != GPU_OK)
        return status;
    if (zero > 0)
        return gpu_cpu_host->fail(
            GPU_SINGULAR, "solve: the matrix is singular (pivot %d is zero)",
            zero);
    return gpu_cpu_substitute(a, pivots, b);
}

/* An n x n factorization, and as many columns solved for. */
static int64_t work_of(int64_t n, int64_t columns)
{
    return n * n / 3 * n + n * n * columns;
}

gpu_status gpu_cpu_solve(void *device, const gpu_view *a, const gpu_view *b)
{
    (void)device;
    void *pivots;
    size_t bytes = (size_t)a->rows * sizeof(int);
    if (a->rows == 0 || b->cols == 0)
        return GPU_OK;
    gpu_status status = gpu_cpu_load_blas();
    if (status != GPU_OK)
        return status;
    if (gpu_cpu_alloc(NULL, bytes, &pivots) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    int threads = limit_threads(a->rows);
    int counted = gpu_cpu_begin_stage(work_of(a->rows, b->cols));
    status = solve(a, b, pivots);
    gpu_cpu_end_stage(counted);
    restore_threads(threads);
    gpu_cpu_free(NULL, pivots, bytes);
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
    void *pivots;
    size_t bytes = (size_t)a->rows * sizeof(int);
    *out = 1;
    if (a->rows == 0)
        return GPU_OK;
    gpu_status status = gpu_cpu_load_blas();
    if (status != GPU_OK)
        return status;
    if (gpu_cpu_alloc(NULL, bytes, &pivots) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    int zero, threads = limit_threads(a->rows);
    int counted = gpu_cpu_begin_stage(work_of(a->rows, 0));
    status = gpu_cpu_factor(a, pivots, &zero);
    gpu_cpu_end_stage(counted);
    restore_threads(threads);
    if (status == GPU_OK)
        *out = diagonal_product(a, pivots);
    gpu_cpu_free(NULL, pivots, bytes);
    return status;
}
