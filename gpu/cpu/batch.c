/* Many small systems at once: each by LU with partial pivoting, row by row, as
 * they lie; the cores share them. */
#include <complex.h>
#include <math.h>
#include <stdatomic.h>
#include "cpu.h"
#include "pivot_size.h"

typedef struct batch {
    const gpu_factoring *f;
    atomic_llong failed; /* the first system without a solution, from 1; or 0 */
} batch;

typedef float complex float_complex;
typedef double complex double_complex;

/* A system's rows: a (n x n) is lost, b (n x m) becomes x. Returns 0, or which
 * pivot is zero, from 1. */
#define SOLVE(type, magnitude)                                            \
    static int64_t solve_##type(type *a, type *b, int64_t n, int64_t m)   \
    {                                                                     \
        for (int64_t k = 0; k < n; k++) {                                 \
            int64_t best = k;                                             \
            for (int64_t i = k + 1; i < n; i++)                           \
                if (magnitude(a[i * n + k]) > magnitude(a[best * n + k])) \
                    best = i;                                             \
            if (a[best * n + k] == 0)                                     \
                return k + 1;                                             \
            for (int64_t j = k; best != k && j < n; j++) {                \
                type other = a[k * n + j];                                \
                a[k * n + j] = a[best * n + j];                           \
                a[best * n + j] = other;                                  \
            }                                                             \
            for (int64_t j = 0; best != k && j < m; j++) {                \
                type other = b[k * m + j];                                \
                b[k * m + j] = b[best * m + j];                           \
                b[best * m + j] = other;                                  \
            }                                                             \
            for (int64_t i = k + 1; i < n; i++) {                         \
                type factor = a[i * n + k] / a[k * n + k];                \
                for (int64_t j = k + 1; j < n; j++)                       \
                    a[i * n + j] -= factor * a[k * n + j];                \
                for (int64_t j = 0; j < m; j++)                           \
                    b[i * m + j] -= factor * b[k * m + j];                \
            }                                                             \
        }                                                                 \
        for (int64_t k = n - 1; k >= 0; k--)                              \
            for (int64_t j = 0; j < m; j++) {                             \
                type x = b[k * m + j];                                    \
                for (int64_t i = k + 1; i < n; i++)                       \
                    x -= a[k * n + i] * b[i * m + j];                     \
                b[k * m + j] = x / a[k * n + k];                          \
            }                                                             \
        return 0;                                                         \
    }
SOLVE(float, fabsf)
SOLVE(double, fabs)
SOLVE(float_complex, pivot_size_c64)
SOLVE(double_complex, pivot_size_c128)

static int64_t solve_one(const batch *all, int64_t s)
{
    const gpu_factoring *f = all->f;
    int64_t n = f->a.rows, m = f->b.rows;
    size_t size = gpu_cpu_size(f->a.dtype);
    void *a = (char *)f->a.data + (size_t)(s * n * n) * size;
    void *b = (char *)f->b.data + (size_t)(s * n * m) * size;
    switch (f->a.dtype) {
    case GPU_F64:
        return solve_double(a, b, n, m);
    case GPU_C64:
        return solve_float_complex(a, b, n, m);
    case GPU_C128:
        return solve_double_complex(a, b, n, m);
    default:
        return solve_float(a, b, n, m);
    }
}

/* The systems first .. last - 1. Of those without a solution the first is told,
 * whichever thread comes first; it stays as it was left. */
static gpu_status solve_some(void *context, int64_t first, int64_t last)
{
    batch *all = context;
    for (int64_t s = first; s < last; s++) {
        long long known = atomic_load(&all->failed);
        if (solve_one(all, s) == 0)
            continue;
        while ((known == 0 || s + 1 < known) &&
               !atomic_compare_exchange_weak(&all->failed, &known, s + 1))
            ;
    }
    return GPU_OK;
}

gpu_status gpu_cpu_solve_batch(gpu_factoring *f)
{
    int64_t n = f->a.rows, m = f->b.rows, count = f->a.cols / n;
    batch all = {.f = f};
    gpu_status status =
        gpu_cpu_parallel(count, count * n * n * (n + m), solve_some, &all);
    f->trouble = atomic_load(&all.failed);
    return status;
}
