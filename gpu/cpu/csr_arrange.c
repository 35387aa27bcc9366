/* Sparse matrices of entries of others in other places: triangles, Kronecker
 * products, blocks side by side and one above the other, other sizes of the
 * same row-major order, entries put over others.
 *
 * What rows will have is counted first, so that they are stored where they
 * belong; then all threads fill them, each as many entries. */
#include <stdlib.h>
#include <string.h>
#include "csr_parts.h"

enum { POLL_ROWS = 256 /* rows between two looks at the flag */ };

typedef struct job {
    const gpu_sparse_arranging *how;
    int64_t rows;    /* of the result */
    int32_t *starts; /* of the result; while counting, entries of row i at
                        i + 1 */
    int32_t *columns;
    char *values;
    size_t size;         /* of a value */
    int64_t *first_rows; /* of blocks above each other, of the result; … */
    int32_t *first_cols; /* … and columns of those side by side */
} job;

/* Entries from .. from + n - 1 of s become those from `to` on, `across` columns
 * further. */
static void copy_run(const job *p, const gpu_csr *s, int64_t from, int64_t to,
                     int64_t n, int32_t across)
{
    for (int64_t k = 0; k < n; k++)
        p->columns[to + k] = s->columns[from + k] + across;
    memcpy(p->values + to * (int64_t)p->size,
           (const char *)s->values + from * (int64_t)p->size,
           (size_t)n * p->size);
}

/* --- triangles: columns low .. high - 1 of row i, both counted from i -------
 */

static int64_t band_run(const job *p, int64_t i, int64_t *from)
{
    const gpu_csr *s = p->how->parts;
    int64_t e = s->starts[i], end = s->starts[i + 1];
    *from = find_column(s->columns, e, end, i + p->how->low);
    return find_column(s->columns, *from, end, i + p->how->high) - *from;
}

static int64_t count_band(const job *p, int64_t i)
{
    int64_t from;
    return band_run(p, i, &from);
}

static void fill_band(const job *p, int64_t i, int64_t at)
{
    int64_t from, n = band_run(p, i, &from);
    copy_run(p, p->how->parts, from, at, n, 0);
}

/* --- Kronecker products ----------------------------------------------------
 */

/* Which rows of both meet in row i. */
static int64_t rows_of(const job *p, int64_t i, int64_t *inner)
{
    int64_t rows = p->how->parts[1].rows;
    *inner = i % rows;
    return i / rows;
}

static int64_t count_kron(const job *p, int64_t i)
{
    const gpu_csr *a = &p->how->parts[0], *b = &p->how->parts[1];
    int64_t inner, outer = rows_of(p, i, &inner);
    return (int64_t)(a->starts[outer + 1] - a->starts[outer]) *
           (b->starts[inner + 1] - b->starts[inner]);
}

/* t: of the values, which are rounded once. */
INLINE void fill_kron_typed(const job *p, gpu_dtype t, int64_t i, int64_t at)
{
    const gpu_csr *a = &p->how->parts[0], *b = &p->how->parts[1];
    int64_t inner, outer = rows_of(p, i, &inner);
    int64_t first = b->starts[inner], last = b->starts[inner + 1];
    for (int64_t e = a->starts[outer]; e < a->starts[outer + 1]; e++) {
        int32_t across = (int32_t)(a->columns[e] * b->cols);
        number x = load(a->values, t, e);
        for (int64_t f = first; f < last; f++, at++) {
            p->columns[at] = across + b->columns[f];
            store(p->values, t, at, times(t, x, load(b->values, t, f)));
        }
    }
}

static void fill_kron(const job *p, int64_t i, int64_t at)
{
    switch (p->how->parts[0].dtype) {
    case GPU_F32:
        fill_kron_typed(p, GPU_F32, i, at);
        return;
    case GPU_F64:
        fill_kron_typed(p, GPU_F64, i, at);
        return;
    case GPU_C64:
        fill_kron_typed(p, GPU_C64, i, at);
        return;
    default:
        fill_kron_typed(p, GPU_C128, i, at);
    }
}

/* --- blocks ----------------------------------------------------------------
 */

static int64_t count_beside(const job *p, int64_t i)
{
    int64_t count = 0;
    for (int64_t k = 0; k < p->how->count; k++) {
        const gpu_csr *s = &p->how->parts[k];
        count += s->starts[i + 1] - s->starts[i];
    }
    return count;
}

static void fill_beside(const job *p, int64_t i, int64_t at)
{
    for (int64_t k = 0; k < p->how->count; k++) {
        const gpu_csr *s = &p->how->parts[k];
        int64_t e = s->starts[i], n = s->starts[i + 1] - e;
        copy_run(p, s, e, at, n, p->first_cols[k]);
        at += n;
    }
}

/* The block that has row i. */
static int64_t block_of(const job *p, int64_t i)
{
    int64_t low = 0, high = p->how->count - 1;
    while (low < high) {
        int64_t middle = high - (high - low) / 2;
        if (p->first_rows[middle] <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static int64_t count_above(const job *p, int64_t i)
{
    int64_t k = block_of(p, i), row = i - p->first_rows[k];
    const gpu_csr *s = &p->how->parts[k];
    return s->starts[row + 1] - s->starts[row];
}

/* Rows of a block lie next to each other: all are copied at once. */
static gpu_status fill_above(const job *p, int64_t i, int64_t last)
{
    while (i < last) {
        int64_t k = block_of(p, i), first = p->first_rows[k];
        const gpu_csr *s = &p->how->parts[k];
        int64_t end = gpu_cpu_smaller(gpu_cpu_smaller(last, first + s->rows),
                                      i + POLL_ROWS);
        int64_t e = s->starts[i - first];
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        copy_run(p, s, e, p->starts[i], s->starts[end - first] - e, 0);
        i = end;
    }
    return GPU_OK;
}

/* --- other sizes -----------------------------------------------------------
 * Entries keep their order, so that those of a row are a run of the old ones.
 */

/* The first entry that is not before the new row i. */
static int64_t entry_of(const job *p, int64_t i)
{
    const gpu_csr *s = p->how->parts;
    if (s->cols == 0)
        return 0;
    int64_t place = i * p->how->cols, row = place / s->cols;
    if (row >= s->rows)
        return s->count;
    return find_column(s->columns, s->starts[row], s->starts[row + 1],
                       place % s->cols);
}

static int64_t count_reshaped(const job *p, int64_t i)
{
    return entry_of(p, i + 1) - entry_of(p, i);
}

static void fill_reshaped(const job *p, int64_t i, int64_t at)
{
    const gpu_csr *s = p->how->parts;
    int64_t n = p->starts[i + 1] - at, place = i * p->how->cols;
    int64_t row = n > 0 ? place / s->cols : 0;
    for (int64_t e = at; e < at + n; e++) {
        while (s->starts[row + 1] <= e)
            row++;
        p->columns[e] = (int32_t)(row * s->cols + s->columns[e] - place);
    }
    memcpy(p->values + at * (int64_t)p->size,
           (const char *)s->values + at * (int64_t)p->size,
           (size_t)n * p->size);
}

/* --- entries over others: those of the second part, but for zeros, and of the
 * first where the second has none ------------------------------------------ */

/* Row i from place `at` on, where columns are there to be written; where it
 * ends. */
static int64_t merge_row(const job *p, int64_t i, int64_t at)
{
    const gpu_csr *s = &p->how->parts[0], *x = &p->how->parts[1];
    int64_t e = s->starts[i], last = s->starts[i + 1];
    int64_t f = x->starts[i], end = x->starts[i + 1];
    while (e < last || f < end) {
        int64_t run = e;
        while (run < last && (f == end || s->columns[run] < x->columns[f]))
            run++;
        if (p->columns)
            copy_run(p, s, e, at, run - e, 0);
        at += run - e;
        e = run;
        if (f == end)
            break;
        e += e < last && s->columns[e] == x->columns[f];
        if (!is_zero(load(x->values, x->dtype, f))) {
            if (p->columns)
                copy_run(p, x, f, at, 1, 0);
            at++;
        }
        f++;
    }
    return at;
}

static int64_t count_replaced(const job *p, int64_t i)
{
    return merge_row(p, i, 0);
}

static void fill_replaced(const job *p, int64_t i, int64_t at)
{
    merge_row(p, i, at);
}

/* --- rows, on all threads --------------------------------------------------
 */

/* In the order of gpu_sparse_arrangement; fill NULL: see fill_rows. */
static const struct {
    int64_t (*count)(const job *p, int64_t i);
    void (*fill)(const job *p, int64_t i, int64_t at);
} kinds[] = {
    {count_band, fill_band},         {count_kron, fill_kron},
    {count_beside, fill_beside},     {count_above, NULL},
    {count_reshaped, fill_reshaped}, {count_replaced, fill_replaced},
};

/* More than int32 counts stay more. */
static gpu_status count_rows(void *context, int64_t first, int64_t last)
{
    const job *p = context;
    for (int64_t i = first; i < last; i++) {
        int64_t n = kinds[p->how->kind].count(p, i);
        p->starts[i + 1] = n > INT32_MAX ? INT32_MAX : (int32_t)n;
        if (i % POLL_ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
    }
    return GPU_OK;
}

/* Rows that begin in weights from .. to - 1. */
static gpu_status fill_rows(void *context, int64_t from, int64_t to)
{
    const job *p = context;
    int64_t i = row_at(p->starts, NULL, p->rows, from);
    int64_t last = row_at(p->starts, NULL, p->rows, to);
    if (p->how->kind == GPU_SPARSE_ABOVE)
        return fill_above(p, i, last);
    for (; i < last; i++) {
        kinds[p->how->kind].fill(p, i, p->starts[i]);
        if (i % POLL_ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
    }
    return GPU_OK;
}

static gpu_status arrange(job *p, gpu_csr_result *out)
{
    int64_t row = 0, col = 0;
    for (int64_t k = 0; k < p->how->count; k++) {
        p->first_rows[k] = row;
        p->first_cols[k] = (int32_t)col;
        row += p->how->parts[k].rows;
        col += p->how->parts[k].cols;
    }
    gpu_status status = gpu_cpu_parallel(p->rows, p->rows, count_rows, p);
    if (status != GPU_OK)
        return status;
    out->count = add_up_rows(p->starts, p->rows);
    status = out->make_room(out, out->count);
    if (status != GPU_OK || out->count == 0)
        return status;
    p->columns = out->columns;
    p->values = out->values;
    int64_t weight = out->count + p->rows;
    return gpu_cpu_parallel(weight, weight, fill_rows, p);
}

gpu_status gpu_cpu_sparse_arrange(void *device, const gpu_sparse_arranging *how,
                                  gpu_csr_result *out)
{
    size_t count = (size_t)how->count + 1;
    job p = {.how = how,
             .rows = how->rows,
             .starts = out->starts,
             .size = gpu_cpu_size(how->parts[0].dtype),
             .first_rows = malloc(count * sizeof *p.first_rows),
             .first_cols = malloc(count * sizeof *p.first_cols)};
    (void)device;
    gpu_status status = p.first_rows && p.first_cols ? arrange(&p, out)
                                                     : gpu_cpu_stop(GPU_MEMORY);
    free(p.first_rows);
    free(p.first_cols);
    return status;
}
