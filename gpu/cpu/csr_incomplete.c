/* Incomplete factors of a sparse matrix, which have entries where it has some:
 * what elimination would add elsewhere is left out. Source: Meijerink and van
 * der Vorst, An iterative solution method for linear systems of which the
 * coefficient matrix is a symmetric M-matrix, 1977; row by row as in Saad,
 * Iterative methods for sparse linear systems, 2003, 10.3.
 *
 * A row is spread out over all columns, so that rows above it reach it without
 * a search. Rows wait for those above them: it runs on one thread. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include "cpu.h"

enum { ROWS = 1024 }; /* between two looks at the flag */

typedef struct job {
    const gpu_incomplete *of;
    int counted; /* is the progress? */
    gpu_sparse_breakdown *told;
} job;

static gpu_status look_up(const job *j, int64_t row)
{
    if (row % ROWS != 0)
        return GPU_OK;
    if (j->counted && row > 0)
        gpu_cpu_advance(ROWS);
    return gpu_cpu_interrupted() ? GPU_INTERRUPTED : GPU_OK;
}

static gpu_status break_down(const job *j, int64_t row, double re, double im)
{
    *j->told = (gpu_sparse_breakdown){.row = row + 1, .pivot = {re, im}};
    return GPU_OK;
}

#define ITSELF(x) (x)
#define NOTHING(x) ((void)(x), 0.0)

/* type's numbers, whose parts real and imaginary are; squared(x) is |x|^2. */
#define FACTORS(name, type, real, imaginary, conjugated)                     \
    /* L U, L with ones: at[column] is where row i has that column. */       \
    static gpu_status factor_lu_##name(const job *j, type **at)              \
    {                                                                        \
        const gpu_csr *l = &j->of->lower, *u = &j->of->upper;                \
        type *down = j->of->lower_values, *up = j->of->upper_values;         \
        for (int64_t i = 0; i < l->rows; i++) {                              \
            gpu_status status = look_up(j, i);                               \
            if (status != GPU_OK)                                            \
                return status;                                               \
            int32_t end = l->starts[i + 1] - 1, pivot = u->starts[i];        \
            for (int32_t e = l->starts[i]; e < end; e++)                     \
                at[l->columns[e]] = down + e;                                \
            for (int32_t e = pivot; e < u->starts[i + 1]; e++)               \
                at[u->columns[e]] = up + e;                                  \
            for (int32_t e = l->starts[i]; e < end; e++) {                   \
                int32_t k = l->columns[e], first = u->starts[k];             \
                type factor = down[e] /= up[first];                          \
                for (int32_t f = first + 1; f < u->starts[k + 1]; f++)       \
                    if (at[u->columns[f]])                                   \
                        *at[u->columns[f]] -= factor * up[f];                \
            }                                                                \
            for (int32_t e = l->starts[i]; e < end; e++)                     \
                at[l->columns[e]] = NULL;                                    \
            for (int32_t e = pivot; e < u->starts[i + 1]; e++)               \
                at[u->columns[e]] = NULL;                                    \
            if (up[pivot] == 0 || !isfinite(real(up[pivot])) ||              \
                !isfinite(imaginary(up[pivot])))                             \
                return break_down(j, i, real(up[pivot]),                     \
                                  imaginary(up[pivot]));                     \
        }                                                                    \
        return GPU_OK;                                                       \
    }                                                                        \
                                                                             \
    /* L L^H: row[column] is what row i of L has there already, or 0. */     \
    static gpu_status factor_chol_##name(const job *j, type *row)            \
    {                                                                        \
        const gpu_csr *l = &j->of->lower;                                    \
        type *values = j->of->lower_values;                                  \
        for (int64_t i = 0; i < l->rows; i++) {                              \
            gpu_status status = look_up(j, i);                               \
            if (status != GPU_OK)                                            \
                return status;                                               \
            int32_t first = l->starts[i], end = l->starts[i + 1] - 1;        \
            double pivot = real(values[end]);                                \
            for (int32_t e = first; e < end; e++) {                          \
                int32_t k = l->columns[e], last = l->starts[k + 1] - 1;      \
                type sum = values[e];                                        \
                for (int32_t f = l->starts[k]; f < last; f++)                \
                    sum -= row[l->columns[f]] * conjugated(values[f]);       \
                row[k] = values[e] = sum /= real(values[last]);              \
                pivot -=                                                     \
                    real(sum) * real(sum) + imaginary(sum) * imaginary(sum); \
            }                                                                \
            for (int32_t e = first; e < end; e++)                            \
                row[l->columns[e]] = 0;                                      \
            if (!(pivot > 0) || !isfinite(pivot))                            \
                return break_down(j, i, pivot, 0);                           \
            values[end] = sqrt(pivot);                                       \
        }                                                                    \
        return GPU_OK;                                                       \
    }
FACTORS(real, double, ITSELF, NOTHING, ITSELF)
FACTORS(complex, double _Complex, creal, cimag, conj)

static gpu_status factor(const job *j, void *memory)
{
    int is_complex = j->of->lower.dtype == GPU_C128;
    if (j->of->is_chol)
        return is_complex ? factor_chol_complex(j, memory)
                          : factor_chol_real(j, memory);
    return is_complex ? factor_lu_complex(j, memory)
                      : factor_lu_real(j, memory);
}

gpu_status gpu_cpu_sparse_incomplete(void *device, const gpu_incomplete *of,
                                     gpu_sparse_breakdown *told)
{
    size_t each = of->is_chol ? gpu_cpu_size(of->lower.dtype) : sizeof(void *);
    void *memory = calloc((size_t)of->lower.cols + 1, each);
    (void)device;
    if (!memory)
        return gpu_cpu_stop(GPU_MEMORY);
    job j = {of, gpu_cpu_begin_stage(of->lower.rows), told};
    gpu_status status = factor(&j, memory);
    gpu_cpu_end_stage(j.counted);
    free(memory);
    return gpu_cpu_stop(status);
}
