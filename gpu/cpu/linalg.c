/* Linear systems through LAPACK. A row-major matrix is, to LAPACK, its
 * transpose: that is factored, and the transposed system solved. */
#include <dlfcn.h>
#include <lapacke.h>
#include <stdlib.h>
#include "cpu.h"

enum { WORTH_THREADS = 128 }; /* order from which threads help */

/* OpenBLAS's threads slow small factorizations down: one for those. Other
 * BLAS libraries do not have these functions. Returns what to restore. */
static int limit_threads(int64_t n)
{
    int (*get)(void);
    void (*set)(int);
    if (n >= WORTH_THREADS)
        return 0;
    *(void **)&get = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
    *(void **)&set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    if (!get || !set)
        return 0;
    int threads = get();
    set(1);
    return threads;
}

static void restore_threads(int threads)
{
    void (*set)(int);
    *(void **)&set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    if (threads > 1 && set)
        set(threads);
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

static lapack_int factor(const gpu_view *a, lapack_int *pivots)
{
    lapack_int n = (lapack_int)a->rows;
    return a->dtype == GPU_F64
               ? LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, n, n, a->data, n, pivots)
               : LAPACKE_sgetrf_work(LAPACK_COL_MAJOR, n, n, a->data, n,
                                     pivots);
}

static void substitute(const gpu_view *a, const lapack_int *pivots, void *b,
                       int64_t columns)
{
    lapack_int n = (lapack_int)a->rows, m = (lapack_int)columns;
    if (a->dtype == GPU_F64)
        LAPACKE_dgetrs_work(LAPACK_COL_MAJOR, 'T', n, m, a->data, n, pivots, b,
                            n);
    else
        LAPACKE_sgetrs_work(LAPACK_COL_MAJOR, 'T', n, m, a->data, n, pivots, b,
                            n);
}

static gpu_status solve(const gpu_view *a, const gpu_view *b,
                        lapack_int *pivots)
{
    size_t bytes = (size_t)(b->rows * b->cols) * gpu_cpu_size(b->dtype);
    void *columns = b->data;
    lapack_int zero = factor(a, pivots);
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
    size_t bytes = (size_t)a->rows * sizeof(lapack_int);
    if (a->rows == 0 || b->cols == 0)
        return GPU_OK;
    if (gpu_cpu_alloc(NULL, bytes, &pivots) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    int threads = limit_threads(a->rows);
    gpu_status status = solve(a, b, pivots);
    restore_threads(threads);
    gpu_cpu_free(NULL, pivots, bytes);
    return status;
}

static double diagonal_product(const gpu_view *a, const lapack_int *pivots)
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
    size_t bytes = (size_t)a->rows * sizeof(lapack_int);
    *out = 1;
    if (a->rows == 0)
        return GPU_OK;
    if (gpu_cpu_alloc(NULL, bytes, &pivots) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    int threads = limit_threads(a->rows);
    lapack_int zero = factor(a, pivots);
    restore_threads(threads);
    *out = zero > 0 ? 0 : diagonal_product(a, pivots);
    gpu_cpu_free(NULL, pivots, bytes);
    return GPU_OK;
}
