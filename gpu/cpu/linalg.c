/* Linear systems through LAPACK. A row-major matrix is, to LAPACK, its
 * transpose: that is factored, and the transposed system solved. */
#include <stdlib.h>
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

/* The rows of b as LAPACK's columns, and back. */
static void transpose(gpu_dtype t, void *from, void *to, int64_t rows,
                      int64_t cols)
{
    enum { SIDE = 32 };
    gpu_view f = {from, t, rows, cols, cols, 1};
    gpu_view r = {to, t, rows, cols, 1, rows};
    for (int64_t i = 0; i < rows; i += SIDE)
        for (int64_t j = 0; j < cols; j += SIDE) {
            int64_t m = rows - i < SIDE ? rows - i : SIDE;
            int64_t n = cols - j < SIDE ? cols - j : SIDE;
            gpu_view a = gpu_cpu_part(&f, i, j, m, n);
            gpu_view b = gpu_cpu_part(&r, i, j, m, n);
            gpu_cpu_convert(&a, &b);
        }
}

/* Returns LAPACK's info: 0, or the first pivot that is zero. */
static int factor(const gpu_view *a, int *pivots)
{
    int n = (int)a->rows, info;
    if (a->dtype == GPU_F64)
        gpu_cpu_blas.dgetrf(&n, &n, a->data, &n, pivots, &info);
    else
        gpu_cpu_blas.sgetrf(&n, &n, a->data, &n, pivots, &info);
    return info;
}

static void substitute(const gpu_view *a, const int *pivots, void *b,
                       int64_t columns)
{
    int n = (int)a->rows, m = (int)columns, info;
    if (a->dtype == GPU_F64)
        gpu_cpu_blas.dgetrs("T", &n, &m, a->data, &n, pivots, b, &n, &info, 1);
    else
        gpu_cpu_blas.sgetrs("T", &n, &m, a->data, &n, pivots, b, &n, &info, 1);
}

static gpu_status solve(const gpu_view *a, const gpu_view *b, int *pivots)
{
    size_t bytes = (size_t)(b->rows * b->cols) * gpu_cpu_size(b->dtype);
    void *columns = b->data;
    int zero = factor(a, pivots);
    if (zero > 0)
        return gpu_cpu_host->fail(
            GPU_SINGULAR, "solve: the matrix is singular (pivot %d is zero)",
            (int)zero);
    if (zero < 0)
        return gpu_cpu_host->fail(
            GPU_INTERNAL, "solve: LAPACK refused argument %d", (int)-zero);
    if (b->cols > 1 && gpu_cpu_alloc(NULL, bytes, &columns) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    if (b->cols > 1)
        transpose(b->dtype, b->data, columns, b->rows, b->cols);
    substitute(a, pivots, columns, b->cols);
    if (b->cols > 1) {
        transpose(b->dtype, columns, b->data, b->cols, b->rows);
        gpu_cpu_free(NULL, columns, bytes);
    }
    return GPU_OK;
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
    status = solve(a, b, pivots);
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
    int threads = limit_threads(a->rows);
    factor(a, pivots);
    restore_threads(threads);
    *out = diagonal_product(a, pivots);
    gpu_cpu_free(NULL, pivots, bytes);
    return GPU_OK;
}
