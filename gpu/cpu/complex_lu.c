/* Of complex matrices, LU with partial pivoting and triangles, column by column
 * and without blocks: for a machine that has no LAPACK. */
#include <complex.h>
#include "complex_numbers.h"
#include "cpu.h"
#include "pivot_size.h"

typedef struct work {
    gpu_factoring *f;
    int64_t at; /* of LU: the column that the ones behind it lose */
} work;

/* In columns first .. last - 1: of those behind column `at` its multiples are
 * taken away; of b, each becomes a solution. */
#define LU_OF(name, type, size, turned)                                        \
    static gpu_status update_##name(void *context, int64_t first,              \
                                    int64_t last)                              \
    {                                                                          \
        const work *w = context;                                               \
        int64_t m = w->f->a.rows, k = w->at;                                   \
        const type *by = (const type *)w->f->a.data + k * m;                   \
        for (int64_t j = first; j < last; j++) {                               \
            type *column = (type *)w->f->a.data + (k + 1 + j) * m;             \
            type factor = column[k];                                           \
            for (int64_t i = k + 1; i < m; i++)                                \
                column[i] -= by[i] * factor;                                   \
        }                                                                      \
        return GPU_OK;                                                         \
    }                                                                          \
    static void pivot_##name(gpu_factoring *f, int64_t k)                      \
    {                                                                          \
        int64_t m = f->a.rows, n = f->a.cols, best = k;                        \
        type *a = f->a.data, *column = a + k * m;                              \
        for (int64_t i = k + 1; i < m; i++)                                    \
            if (size(column[i]) > size(column[best]))                          \
                best = i;                                                      \
        int64_t place = f->places[k];                                          \
        f->places[k] = f->places[best];                                        \
        f->places[best] = place;                                               \
        for (int64_t j = 0; best != k && j < n; j++) {                         \
            type held = a[j * m + k];                                          \
            a[j * m + k] = a[j * m + best];                                    \
            a[j * m + best] = held;                                            \
        }                                                                      \
        if (column[k] == 0 && f->trouble == 0)                                 \
            f->trouble = k + 1;                                                \
        for (int64_t i = k + 1; column[k] != 0 && i < m; i++)                  \
            column[i] /= column[k];                                            \
    }                                                                          \
    static gpu_status solve_##name(void *context, int64_t first, int64_t last) \
    {                                                                          \
        const gpu_factoring *f = ((const work *)context)->f;                   \
        int64_t n = f->a.rows;                                                 \
        const type *a = f->a.data;                                             \
        int down = f->is_lower != f->is_turned;                                \
        for (int64_t j = first; j < last; j++) {                               \
            type *x = (type *)f->b.data + j * n;                               \
            for (int64_t done = 0; done < n; done++) {                         \
                int64_t i = down ? done : n - 1 - done;                        \
                int64_t from = down ? 0 : i + 1, end = down ? i : n;           \
                for (int64_t k = from; f->is_turned && k < end; k++)           \
                    x[i] -= (f->is_conjugated ? turned(a[i * n + k])           \
                                              : a[i * n + k]) *                \
                            x[k];                                              \
                type pivot = a[i * (n + 1)];                                   \
                if (!f->is_unit)                                               \
                    x[i] /= f->is_conjugated ? turned(pivot) : pivot;          \
                from = down ? i + 1 : 0;                                       \
                end = down ? n : i;                                            \
                for (int64_t k = from; !f->is_turned && k < end; k++)          \
                    x[k] -= a[i * n + k] * x[i];                               \
            }                                                                  \
        }                                                                      \
        return GPU_OK;                                                         \
    }                                                                          \
    static int is_zero_##name(const gpu_factoring *f, int64_t i)               \
    {                                                                          \
        return ((const type *)f->a.data)[i * (f->a.rows + 1)] == 0;            \
    }

LU_OF(c64, float complex, pivot_size_c64, conjf)
LU_OF(c128, double complex, pivot_size_c128, conj)

static gpu_status factor_lu(work *w)
{
    gpu_factoring *f = w->f;
    int is_c64 = f->a.dtype == GPU_C64;
    int64_t steps = gpu_cpu_smaller(f->a.rows, f->a.cols);
    gpu_status status = GPU_OK;
    for (w->at = 0; w->at < steps && status == GPU_OK; w->at++) {
        int64_t left = f->a.cols - w->at - 1;
        if (gpu_cpu_interrupted())
            return gpu_cpu_stop(GPU_INTERRUPTED);
        (is_c64 ? pivot_c64 : pivot_c128)(f, w->at);
        status = gpu_cpu_parallel(left, 4 * left * (f->a.rows - w->at),
                                  is_c64 ? update_c64 : update_c128, w);
    }
    return status;
}

static gpu_status solve_triangle(work *w)
{
    gpu_factoring *f = w->f;
    int64_t n = f->a.rows;
    int is_c64 = f->a.dtype == GPU_C64;
    for (int64_t i = 0; i < n && !f->is_unit && f->trouble == 0; i++)
        if ((is_c64 ? is_zero_c64 : is_zero_c128)(f, i))
            f->trouble = i + 1;
    if (f->trouble > 0)
        return GPU_OK;
    return gpu_cpu_parallel(f->b.cols, 2 * n * n * f->b.cols,
                            is_c64 ? solve_c64 : solve_c128, w);
}

int gpu_cpu_is_complex_lu(const gpu_factoring *f)
{
    return gpu_dtype_is_complex(f->a.dtype) &&
           (f->kind == GPU_FACTOR_LU || f->kind == GPU_FACTOR_TRIANGLE);
}

gpu_status gpu_cpu_complex_lu(gpu_factoring *f)
{
    work w = {.f = f};
    f->trouble = 0;
    return f->kind == GPU_FACTOR_LU ? factor_lu(&w) : solve_triangle(&w);
}
