/* Incomplete factors of sparse matrices: the halves of the matrix, which
 * gpu/cpu/csr_incomplete.c makes the factors of in their place. */
#include "complex_numbers.h"
#include "sparse.h"

#include <math.h>
#include <string.h>

/* Entries below and above the diagonal of a square matrix, without it; fails
 * softly, in told, at a row that has no entry on the diagonal. */
static gpu_status count_halves(const gpu_csr *s, int64_t *below, int64_t *above,
                               gpu_sparse_breakdown *told)
{
    *below = *above = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        int has_diagonal = 0;
        POLL_AT(i);
        for (int32_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            *below += s->columns[e] < i;
            *above += s->columns[e] > i;
            has_diagonal |= s->columns[e] == i;
        }
        if (!has_diagonal && told->row == 0)
            *told = (gpu_sparse_breakdown){.row = i + 1, .is_missing = 1};
    }
    return GPU_OK;
}

static gpu_status check_finite(const gpu_csr *s, const char *name)
{
    const double *values = s->values;
    int parts = s->dtype == GPU_C128 ? 2 : 1;
    int64_t row = 0, e = 0;
    for (; e < s->count * parts && isfinite(values[e]); e++)
        POLL_AT(e);
    if (e == s->count * parts)
        return GPU_OK;
    while (s->starts[row + 1] <= e / parts)
        row++;
    return gpu_fail(GPU_ARGUMENT,
                    "%s: the entry in row %lld, column %lld is not finite; a "
                    "factorisation needs finite numbers",
                    name, (long long)row + 1,
                    (long long)s->columns[e / parts] + 1);
}

/* Entries first .. last - 1 of s behind those that out has; where it ends. */
static int32_t append(const gpu_csr *s, int32_t first, int32_t last,
                      const gpu_rows_out *out, int32_t at)
{
    size_t size = gpu_dtype_size(s->dtype), count = (size_t)(last - first);
    memcpy(out->columns + at, s->columns + first, count * sizeof *out->columns);
    memcpy((char *)out->values + (size_t)at * size,
           (const char *)s->values + (size_t)first * size, count * size);
    return at + last - first;
}

/* Of a matrix with a diagonal: the lower half with it, of L U with ones in its
 * place; and, unless upper is NULL, the upper half with it. */
static gpu_status split(const gpu_csr *s, const gpu_rows_out *lower,
                        const gpu_rows_out *upper)
{
    int32_t down = 0, up = 0;
    int parts = s->dtype == GPU_C128 ? 2 : 1;
    lower->starts[0] = 0;
    if (upper)
        upper->starts[0] = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        int32_t first = s->starts[i], last = s->starts[i + 1], middle = first;
        POLL_AT(i);
        while (s->columns[middle] < i)
            middle++;
        lower->starts[i + 1] = down = append(s, first, middle + 1, lower, down);
        if (!upper)
            continue;
        double *one = (double *)lower->values + (int64_t)(down - 1) * parts;
        one[0] = 1;
        one[parts - 1] = parts == 1;
        upper->starts[i + 1] = up = append(s, middle, last, upper, up);
    }
    return GPU_OK;
}

/* s lies on the CPU, in f64 or c128, and has a diagonal. */
static gpu_status factor_halves(const gpu_sparse *s, gpu_sparse *lower,
                                gpu_sparse *upper, gpu_sparse_breakdown *told)
{
    gpu_csr from = gpu_csr_of(s);
    gpu_rows_out down = gpu_rows_of(lower), up = {0};
    gpu_incomplete of = {.is_chol = !upper, .lower = gpu_csr_of(lower)};
    gpu_matrix shape = {
        .dtype = s->values.dtype, .ndim = 2, .rows = s->rows, .cols = s->cols};
    if (upper) {
        up = gpu_rows_of(upper);
        of.upper = gpu_csr_of(upper);
    }
    if (!gpu_dry)
        TRY(split(&from, &down, upper ? &up : NULL));
    of.lower_values = down.values;
    of.upper_values = up.values;
    gpu_operation op = {.name = upper ? "ilu" : "ichol",
                        .kernel = "csr",
                        .device = gpu_cpu(),
                        .result = &shape,
                        .extent = &s->values,
                        .bytes = 2 * (double)gpu_sparse_bytes(s)};
    return RUN_OPERATION(&op, sparse_incomplete, &of, told);
}

static gpu_status make_factors(const gpu_sparse *s, gpu_sparse *lower,
                               gpu_sparse *upper, gpu_sparse_breakdown *told)
{
    gpu_csr from = gpu_csr_of(s);
    int64_t below = s->count / 2, above = below, n = s->rows;
    if (!gpu_dry) {
        TRY(check_finite(&from, upper ? "ilu" : "ichol"));
        TRY(count_halves(&from, &below, &above, told));
    }
    if (told->row > 0)
        return GPU_OK;
    TRY(gpu_sparse_create_arrays(gpu_cpu(), s->values.dtype, n, n, below + n,
                                 lower));
    gpu_status status =
        upper ? gpu_sparse_create_arrays(gpu_cpu(), s->values.dtype, n, n,
                                         above + n, upper)
              : GPU_OK;
    if (status == GPU_OK)
        status = factor_halves(s, lower, upper, told);
    if (status == GPU_OK && told->row == 0)
        return GPU_OK;
    gpu_sparse_release(lower);
    if (upper)
        gpu_sparse_release(upper);
    return status;
}

gpu_status gpu_sparse_incomplete_factors(const gpu_sparse *s, gpu_sparse *lower,
                                         gpu_sparse *upper,
                                         gpu_sparse_breakdown *told)
{
    const char *name = upper ? "ilu" : "ichol";
    gpu_device *d;
    gpu_sparse here;
    *lower = (gpu_sparse){0};
    if (upper)
        *upper = (gpu_sparse){0};
    *told = (gpu_sparse_breakdown){0};
    TRY(gpu_sparse_check(name, s, &d));
    if (s->rows != s->cols)
        return gpu_fail(GPU_SHAPE, "%s: needs a square matrix, not %s", name,
                        gpu_size_text(s->rows, s->cols));
    if (!d->is_cpu)
        gpu_note_fallback();
    TRY(gpu_sparse_clone(s, gpu_is_complex(&s->values) ? GPU_C128 : GPU_F64,
                         gpu_cpu(), &here));
    gpu_status status = gpu_settle(&here.values);
    if (status == GPU_OK)
        status = make_factors(&here, lower, upper, told);
    gpu_sparse_release(&here);
    return status;
}
