/* Entries of a sparse matrix chosen and listed, row by row on all cores:
 * counted first, so that each is written where it belongs. */
#include <math.h>
#include <string.h>
#include "csr_parts.h"

enum { ROWS = 256 }; /* between two looks at the flag */

/* --- those that are kept -------------------------------------------------- */

typedef struct keeping {
    const gpu_csr *s;
    const gpu_sparse_choice *choice;
    int32_t *starts, *columns;
    char *values;
} keeping;

INLINE int is_large(const void *values, gpu_dtype t, int64_t e, double least)
{
    number x = load(values, t, e);
    if (!is_complex(t))
        return !(fabs(x.re) <= least);
    return least == 0 ? !is_zero(x) : !(hypot(x.re, x.im) <= least);
}

/* t: of the values, GPU_BOOL: by the mask. */
INLINE int is_kept(const keeping *k, gpu_dtype t, int64_t e)
{
    if (t == GPU_BOOL)
        return k->choice->mask[e] != 0;
    return is_large(k->s->values, t, e, k->choice->tolerance);
}

INLINE int32_t count_row(const keeping *k, gpu_dtype t, int64_t i)
{
    int32_t n = 0;
    for (int64_t e = k->s->starts[i]; e < k->s->starts[i + 1]; e++)
        n += is_kept(k, t, e);
    return n;
}

/* Each entry is written where the next one goes, and stays if it is kept; what
 * would be written behind the row's last one is not. */
INLINE void keep_row(const keeping *k, gpu_dtype t, size_t size, int64_t i)
{
    static const float one = 1;
    const char *from = k->s->values;
    int64_t at = k->starts[i], end = k->starts[i + 1];
    for (int64_t e = k->s->starts[i]; at < end; e++) {
        k->columns[at] = k->s->columns[e];
        if (t == GPU_BOOL)
            memcpy(k->values + (size_t)at * sizeof one, &one, sizeof one);
        else
            memcpy(k->values + (size_t)at * size, from + (size_t)e * size,
                   size);
        at += is_kept(k, t, e);
    }
}

INLINE gpu_status do_rows(const keeping *k, gpu_dtype t, size_t size,
                          int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        if (i % ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (k->columns)
            keep_row(k, t, size, i);
        else
            k->starts[i + 1] = count_row(k, t, i);
    }
    return GPU_OK;
}

static gpu_status keep_rows(void *context, int64_t first, int64_t last)
{
    const keeping *k = context;
    if (k->choice->mask)
        return do_rows(k, GPU_BOOL, 4, first, last);
    switch (k->s->dtype) {
    case GPU_F32:
        return do_rows(k, GPU_F32, 4, first, last);
    case GPU_F64:
        return do_rows(k, GPU_F64, 8, first, last);
    case GPU_C64:
        return do_rows(k, GPU_C64, 8, first, last);
    default:
        return do_rows(k, GPU_C128, 16, first, last);
    }
}

gpu_status gpu_cpu_sparse_keep(void *device, const gpu_csr *s,
                               const gpu_sparse_choice *choice, int32_t *starts,
                               int32_t *columns, void *values, int64_t *count)
{
    keeping k = {s, choice, starts, columns, values};
    (void)device;
    gpu_status status =
        gpu_cpu_parallel(s->rows, s->count + s->rows, keep_rows, &k);
    if (status == GPU_OK && !columns)
        *count = add_up_rows(starts, s->rows);
    return status;
}

/* --- where they are ------------------------------------------------------- */

typedef struct listing {
    const gpu_csr *s;
    double *rows, *cols;
} listing;

static gpu_status list_rows(void *context, int64_t first, int64_t last)
{
    const listing *l = context;
    const gpu_csr *s = l->s;
    for (int64_t i = first; i < last; i++) {
        if (i % ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            l->rows[e] = (double)i + 1;
            l->cols[e] = (double)s->columns[e] + 1;
        }
    }
    return GPU_OK;
}

gpu_status gpu_cpu_sparse_list(void *device, const gpu_csr *s, double *rows,
                               double *cols)
{
    listing l = {s, rows, cols};
    (void)device;
    return gpu_cpu_parallel(s->rows, s->count + s->rows, list_rows, &l);
}

/* --- diagonals ------------------------------------------------------------ */

typedef struct laying {
    const gpu_diagonals *d;
    int32_t *starts, *columns;
    char *values;
} laying;

/* Row i; returns how many entries it has. */
INLINE int32_t lay_row(const laying *l, gpu_dtype t, size_t size, int64_t i)
{
    const gpu_diagonals *d = l->d;
    const char *from = d->values.data;
    int64_t at = l->columns ? l->starts[i] : 0, first = at;
    int64_t end = l->columns ? l->starts[i + 1] : INT64_MAX;
    int64_t step = d->values.col_stride;
    if (end - at == d->count) { /* none is outside, and none 0 */
        for (int64_t k = 0; k < d->count; k++) {
            int64_t j = i + d->offsets[k];
            l->columns[at + k] = (int32_t)j;
            memcpy(l->values + (size_t)(at + k) * size,
                   from + (size_t)(j * d->values.row_stride +
                                   d->places[k] * step) *
                              size,
                   size);
        }
        return (int32_t)d->count;
    }
    for (int64_t k = 0; k < d->count && at < end; k++) {
        int64_t j = i + d->offsets[k];
        if (j < 0 || j >= d->cols)
            continue;
        const char *value =
            from + (size_t)(j * d->values.row_stride +
                            d->places[k] * d->values.col_stride) *
                       size;
        if (l->columns) {
            l->columns[at] = (int32_t)j;
            memcpy(l->values + (size_t)at * size, value, size);
        }
        at += !is_zero(load(value, t, 0));
    }
    return (int32_t)(at - first);
}

/* How many places of the diagonals lie in rows before i. */
static int64_t places_before(const gpu_diagonals *d, int64_t i)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < d->count; k++) {
        int64_t first = d->offsets[k] < 0 ? -d->offsets[k] : 0;
        int64_t last = gpu_cpu_smaller(i, d->cols - d->offsets[k]);
        sum += last > first ? last - first : 0;
    }
    return sum;
}

static gpu_status start_rows(void *context, int64_t first, int64_t last)
{
    const laying *l = context;
    const gpu_diagonals *d = l->d;
    int64_t high = d->count > 0 ? d->cols - d->offsets[d->count - 1] : 0;
    int64_t low = d->count > 0 ? -d->offsets[0] : 0; /* all are between */
    int64_t sum = places_before(d, first);
    for (int64_t i = first; i < last; i++) {
        if (i % ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        l->starts[i] = (int32_t)sum;
        sum = i >= low && i < high ? sum + d->count : places_before(d, i + 1);
    }
    return GPU_OK;
}

/* Is there a zero among the numbers, also outside the matrix? A single row is
 * looked at: of more rows each is counted. */
static int has_zeros(const gpu_diagonals *d)
{
    size_t size = gpu_cpu_size(d->values.dtype);
    if (d->values.row_stride != 0)
        return 1;
    for (int64_t k = 0; k < d->count; k++) {
        const char *value = (const char *)d->values.data +
                            (size_t)(k * d->values.col_stride) * size;
        if (is_zero(load(value, d->values.dtype, 0)))
            return 1;
    }
    return 0;
}

INLINE gpu_status lay(const laying *l, gpu_dtype t, size_t size, int64_t first,
                      int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        if (i % ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        int32_t n = lay_row(l, t, size, i);
        if (!l->columns)
            l->starts[i + 1] = n;
    }
    return GPU_OK;
}

static gpu_status lay_rows(void *context, int64_t first, int64_t last)
{
    const laying *l = context;
    switch (l->d->values.dtype) {
    case GPU_F32:
        return lay(l, GPU_F32, 4, first, last);
    case GPU_F64:
        return lay(l, GPU_F64, 8, first, last);
    case GPU_C64:
        return lay(l, GPU_C64, 8, first, last);
    default:
        return lay(l, GPU_C128, 16, first, last);
    }
}

gpu_status gpu_cpu_sparse_diagonals(void *device, const gpu_diagonals *d,
                                    int32_t *starts, int32_t *columns,
                                    void *values, int64_t *count)
{
    laying l = {d, starts, columns, values};
    int is_counted = columns || has_zeros(d);
    int64_t all = places_before(d, d->rows);
    (void)device;
    if (!is_counted && all <= INT32_MAX) {
        starts[d->rows] = (int32_t)all;
        *count = all;
        return gpu_cpu_parallel(d->rows, d->rows * (d->count + 1), start_rows,
                                &l);
    }
    gpu_status status =
        gpu_cpu_parallel(d->rows, d->rows * (d->count + 1), lay_rows, &l);
    if (status == GPU_OK && !columns)
        *count = add_up_rows(starts, d->rows);
    return status;
}
