/* Entries of a sparse matrix chosen and listed, row by row on all cores:
 * counted first, so that each is written where it belongs. */
#include <math.h>
#include <stdatomic.h>
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

/* Rows that have all of `count` diagonals, so that none is looked at. */
INLINE void lay_full(const laying *l, size_t size, int64_t count, int64_t first,
                     int64_t last)
{
    const gpu_diagonals *d = l->d;
    const char *from = d->values.data;
    int64_t step = d->values.row_stride, across = d->values.col_stride;
    int32_t *columns = l->columns + l->starts[first];
    char *values = l->values + (size_t)l->starts[first] * size;
    for (int64_t i = first; i < last; i++)
        for (int64_t k = 0; k < count; k++, values += size) {
            int64_t j = i + d->offsets[k];
            *columns++ = (int32_t)j;
            memcpy(values,
                   from + (size_t)(j * step + d->places[k] * across) * size,
                   size);
        }
}

/* The same of a single diagonal: columns are counted up, and numbers copied. */
INLINE void lay_single(const laying *l, size_t size, int64_t first,
                       int64_t last)
{
    const gpu_diagonals *d = l->d;
    int64_t step = d->values.row_stride, count = last - first;
    int32_t column = (int32_t)(first + d->offsets[0]);
    const char *from =
        (const char *)d->values.data +
        (size_t)(column * step + d->places[0] * d->values.col_stride) * size;
    int32_t *columns = l->columns + l->starts[first];
    char *values = l->values + (size_t)l->starts[first] * size;
    for (int32_t k = 0; k < (int32_t)count; k++)
        columns[k] = column + k;
    for (int64_t k = 0; k < count; k++)
        memcpy(values + (size_t)k * size, from + (size_t)(k * step) * size,
               size);
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
    for (int64_t i = first; i < last;) {
        int64_t end = gpu_cpu_smaller(last, i + ROWS), count = d->count;
        int is_full = i >= low && end <= high;
        int64_t sum = places_before(d, i);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        for (int64_t n = is_full ? end - i : 0, k = 0; k < n; k++)
            l->starts[i + k] = (int32_t)(sum + k * count);
        for (i = is_full ? end : i; i < end; i++) {
            l->starts[i] = (int32_t)sum;
            sum = places_before(d, i + 1);
        }
    }
    return GPU_OK;
}

/* Is there a zero among the numbers, also those outside the matrix? */
typedef struct scanning {
    const gpu_diagonals *d;
    atomic_int found;
} scanning;

INLINE int has_zero(const gpu_diagonals *d, gpu_dtype t, int64_t j)
{
    const gpu_view *v = &d->values;
    int found = 0;
    for (int64_t k = 0; k < d->count; k++)
        found |=
            is_zero(load(v->data, t, j * v->row_stride + k * v->col_stride));
    return found;
}

INLINE gpu_status scan(scanning *s, gpu_dtype t, int64_t first, int64_t last)
{
    int found = 0;
    for (int64_t j = first; j < last && !found; j++) {
        if (j % ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        found = has_zero(s->d, t, j);
    }
    if (found)
        atomic_store(&s->found, 1);
    return GPU_OK;
}

static gpu_status scan_rows(void *context, int64_t first, int64_t last)
{
    scanning *s = context;
    switch (s->d->values.dtype) {
    case GPU_F32:
        return scan(s, GPU_F32, first, last);
    case GPU_F64:
        return scan(s, GPU_F64, first, last);
    case GPU_C64:
        return scan(s, GPU_C64, first, last);
    default:
        return scan(s, GPU_C128, first, last);
    }
}

static gpu_status find_zeros(const gpu_diagonals *d, int *found)
{
    scanning s = {.d = d};
    int64_t rows = d->values.row_stride == 0 ? 1 : d->values.rows;
    gpu_status status = gpu_cpu_parallel(rows, rows * d->count, scan_rows, &s);
    *found = s.found;
    return status;
}

INLINE gpu_status lay(const laying *l, gpu_dtype t, size_t size, int64_t first,
                      int64_t last)
{
    int64_t count = l->d->count;
    for (int64_t i = first; i < last;) {
        int64_t end = gpu_cpu_smaller(last, i + ROWS);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (l->columns && l->starts[end] - l->starts[i] == (end - i) * count) {
            if (count == 1)
                lay_single(l, size, i, end);
            else
                lay_full(l, size, count, i, end);
            i = end;
        }
        for (; i < end; i++) {
            int32_t n = lay_row(l, t, size, i);
            if (!l->columns)
                l->starts[i + 1] = n;
        }
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
    int64_t all = places_before(d, d->rows);
    int is_counted = columns != NULL;
    (void)device;
    if (!is_counted) {
        gpu_status status = find_zeros(d, &is_counted);
        if (status != GPU_OK)
            return status;
    }
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
