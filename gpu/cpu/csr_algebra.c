/* Sparse with sparse. Two matrices of one shape are merged row by row; a
 * product adds up, for each row of the left one, the rows of the right one that
 * its entries name. Source: Gustavson, Two fast algorithms for sparse matrices:
 * multiplication and permuted transposition, 1978.
 *
 * What a result has is counted first, so that it is stored where it belongs.
 * Numbers are computed in f64, in the order of entries. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "csr_parts.h"

typedef struct job {
    gpu_sparse_op op;
    const gpu_csr *a, *b;
    int32_t *starts;  /* of the result; while counting, entries of row i at
                         i + 1 */
    int32_t *columns; /* NULL: only count */
    void *values;
    int32_t *lengths;         /* of merged rows, without what came out as 0 */
    struct workspace *spaces; /* of products: one for each thread */
    int threads;
} job;

/* Is it 0 as t stores it? */
INLINE int vanishes(gpu_dtype t, number x)
{
    if (part_type(t) == GPU_F32)
        x = (number){(float)x.re, (float)x.im};
    return is_zero(x);
}

/* --- merging ----------------------------------------------------------------
 *
 * Which of two rows comes next no processor foresees, so there is no branch on
 * it: both heads are looked at, what is not meant counts as 0, and only what is
 * meant is passed over. */

/* x where the condition, 0 or 1, holds, else 0. */
INLINE double where(uint64_t condition, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= -condition;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Do both have the same columns in row i? */
INLINE int is_aligned(const gpu_csr *a, const gpu_csr *b, int64_t i)
{
    int32_t e = a->starts[i], f = b->starts[i], count = a->starts[i + 1] - e;
    if (b->starts[i + 1] - f != count)
        return 0;
    for (int32_t k = 0; k < count; k++)
        if (a->columns[e + k] != b->columns[f + k])
            return 0;
    return 1;
}

/* Columns that both rows have. */
static int32_t count_common(const gpu_csr *a, const gpu_csr *b, int64_t i)
{
    int32_t e = a->starts[i], last = a->starts[i + 1], count = 0;
    int32_t f = b->starts[i], end = b->starts[i + 1];
    if ((a->columns == b->columns && e == f && last == end) ||
        is_aligned(a, b, i))
        return last - e;
    while (e < last && f < end) {
        int32_t left = a->columns[e], right = b->columns[f];
        count += left == right;
        e += left <= right;
        f += right <= left;
    }
    return count;
}

static int32_t count_merged(const job *p, int64_t i)
{
    const gpu_csr *a = p->a, *b = p->b;
    int32_t common = count_common(a, b, i);
    if (p->op == GPU_SPARSE_MUL)
        return common;
    return a->starts[i + 1] - a->starts[i] + b->starts[i + 1] - b->starts[i] -
           common;
}

/* Puts an entry at place `at` and goes on, unless it is 0. */
INLINE int64_t put(const job *p, gpu_dtype t, int64_t at, int32_t column,
                   number x)
{
    p->columns[at] = column;
    store(p->values, t, at, x);
    return at + !vanishes(t, x);
}

/* A row of a sum or difference, from place `at` on; where it ends. */
INLINE int64_t unite_row(const job *p, gpu_dtype t, double sign, int64_t i,
                         int64_t at)
{
    const gpu_csr *a = p->a, *b = p->b;
    int32_t e = a->starts[i], last = a->starts[i + 1];
    int32_t f = b->starts[i], end = b->starts[i + 1];
    if (is_aligned(a, b, i)) {
        for (; e < last; e++, f++) {
            number x = load(a->values, t, e), y = load(b->values, t, f);
            at = put(p, t, at, a->columns[e],
                     (number){x.re + sign * y.re, x.im + sign * y.im});
        }
        return at;
    }
    while (e < last && f < end) {
        int32_t left = a->columns[e], right = b->columns[f];
        unsigned has_left = left <= right, has_right = right <= left;
        number x = load(a->values, t, e), y = load(b->values, t, f);
        number sum = {where(has_left, x.re) + where(has_right, sign * y.re), 0};
        if (is_complex(t))
            sum.im = where(has_left, x.im) + where(has_right, sign * y.im);
        at = put(p, t, at, has_left ? left : right, sum);
        e += (int32_t)has_left;
        f += (int32_t)has_right;
    }
    for (; e < last; e++)
        at = put(p, t, at, a->columns[e], load(a->values, t, e));
    for (; f < end; f++) {
        number y = load(b->values, t, f);
        at = put(p, t, at, b->columns[f], (number){sign * y.re, sign * y.im});
    }
    return at;
}

/* The same of element by element products: what one of them lacks is 0. */
INLINE int64_t intersect_row(const job *p, gpu_dtype t, int64_t i, int64_t at)
{
    const gpu_csr *a = p->a, *b = p->b;
    int32_t e = a->starts[i], last = a->starts[i + 1];
    int32_t f = b->starts[i], end = b->starts[i + 1];
    while (e < last && f < end) {
        int32_t left = a->columns[e], right = b->columns[f];
        if (left == right)
            at = put(p, t, at, left,
                     times(t, load(a->values, t, e), load(b->values, t, f)));
        e += left <= right;
        f += right <= left;
    }
    return at;
}

INLINE int64_t merge_row(const job *p, gpu_dtype t, int64_t i, int64_t at)
{
    if (p->op == GPU_SPARSE_MUL)
        return intersect_row(p, t, i, at);
    return p->op == GPU_SPARSE_ADD ? unite_row(p, t, 1, i, at)
                                   : unite_row(p, t, -1, i, at);
}

/* --- products ---------------------------------------------------------------
 */

enum { LEVELS = 6, WORD = 64 };

/* What a thread has for a row of the result. While entries are counted,
 * marks[c] is one more than the last row that had column c. Then they are added
 * up in sums, and `bits` is the set of columns, from which they come in order:
 * a bit for each, and above 64 of a level one that says whether any is set. */
typedef struct workspace {
    atomic_int is_taken;
    int32_t *marks;
    int levels;
    uint64_t *bits[LEVELS];
    double *sums; /* one a column, two of complex ones */
} workspace;

static void free_space(workspace *w)
{
    free(w->marks);
    free(w->bits[0]);
    free(w->sums);
}

static gpu_status make_space(const job *p, workspace *w)
{
    int64_t words[LEVELS], total = 0, n = p->b->cols;
    size_t columns = (size_t)n + 1;
    if (!p->columns) {
        w->marks = calloc(columns, sizeof *w->marks);
        return w->marks ? GPU_OK : GPU_MEMORY;
    }
    do {
        n = (n + WORD - 1) / WORD;
        words[w->levels++] = n;
        total += n;
    } while (n > 1);
    w->bits[0] = calloc((size_t)total + 1, sizeof *w->bits[0]);
    for (int k = 1; w->bits[0] && k < w->levels; k++)
        w->bits[k] = w->bits[k - 1] + words[k - 1];
    w->sums =
        malloc(columns * (is_complex(p->a->dtype) ? 2 : 1) * sizeof *w->sums);
    return w->bits[0] && w->sums ? GPU_OK : GPU_MEMORY;
}

/* One that no other thread has; there are as many as threads. */
static workspace *take_space(const job *p)
{
    int k = 0;
    while (atomic_exchange(&p->spaces[k].is_taken, 1))
        k = (k + 1) % p->threads;
    return &p->spaces[k];
}

/* The row of b that row i of the product is a multiple of, where a has a single
 * entry there, as where rows are scaled or put in another order; else -1. */
INLINE int32_t single_row(const job *p, int64_t i)
{
    int32_t e = p->a->starts[i];
    return p->a->starts[i + 1] == e + 1 ? p->a->columns[e] : -1;
}

static int32_t count_products(const job *p, workspace *w, int64_t i)
{
    const gpu_csr *a = p->a, *b = p->b;
    int32_t count = 0, mark = (int32_t)i + 1, single = single_row(p, i);
    if (single >= 0)
        return b->starts[single + 1] - b->starts[single];
    for (int32_t e = a->starts[i]; e < a->starts[i + 1]; e++) {
        int32_t row = a->columns[e], end = b->starts[row + 1];
        for (int32_t f = b->starts[row]; f < end; f++) {
            int32_t *at = &w->marks[b->columns[f]];
            count += *at != mark;
            *at = mark;
        }
    }
    return count;
}

/* Was the column not in the set? It is now. */
INLINE int enter(workspace *w, int32_t column)
{
    uint32_t at = (uint32_t)column;
    uint64_t *word = &w->bits[0][at / WORD], bit = 1ull << at % WORD;
    if (*word & bit)
        return 0;
    for (int k = 1; *word == 0 && k < w->levels; k++) {
        *word |= bit;
        at /= WORD;
        bit = 1ull << at % WORD;
        word = &w->bits[k][at / WORD];
    }
    *word |= bit;
    return 1;
}

/* Takes the columns of a word of level 0 out of the set, in order, with their
 * sums, from place `at` on; where they end. */
INLINE int64_t take_word(const job *p, gpu_dtype t, workspace *w, int64_t k,
                         int64_t at)
{
    uint64_t word = w->bits[0][k];
    w->bits[0][k] = 0;
    for (; word; word &= word - 1, at++) {
        int64_t column = k * WORD + __builtin_ctzll(word);
        p->columns[at] = (int32_t)column;
        store(p->values, t, at,
              load(w->sums, is_complex(t) ? GPU_C128 : GPU_F64, column));
    }
    return at;
}

/* The same of a word of level 1 and of higher ones. */
INLINE int64_t take_words(const job *p, gpu_dtype t, workspace *w, int64_t k,
                          int64_t at)
{
    uint64_t word = w->bits[1][k];
    w->bits[1][k] = 0;
    for (; word; word &= word - 1)
        at = take_word(p, t, w, k * WORD + __builtin_ctzll(word), at);
    return at;
}

static int64_t take_all(const job *p, gpu_dtype t, workspace *w, int level,
                        int64_t k, int64_t at)
{
    if (level == 0)
        return take_word(p, t, w, k, at);
    if (level == 1)
        return take_words(p, t, w, k, at);
    uint64_t word = w->bits[level][k];
    w->bits[level][k] = 0;
    for (; word; word &= word - 1)
        at = take_all(p, t, w, level - 1, k * WORD + __builtin_ctzll(word), at);
    return at;
}

/* Row i of the product, from place `at` on: that row of b times an entry. */
INLINE void scale_row(const job *p, gpu_dtype t, int64_t i, int32_t row,
                      int64_t at)
{
    const gpu_csr *b = p->b;
    number x = load(p->a->values, t, p->a->starts[i]);
    for (int32_t f = b->starts[row]; f < b->starts[row + 1]; f++, at++) {
        p->columns[at] = b->columns[f];
        store(p->values, t, at, times(t, x, load(b->values, t, f)));
    }
}

/* The same of any row. */
INLINE void multiply_row(const job *p, gpu_dtype t, workspace *w, int64_t i,
                         int64_t at)
{
    const gpu_csr *a = p->a, *b = p->b;
    int parts = is_complex(t) ? 2 : 1;
    int32_t single = single_row(p, i);
    if (single >= 0) {
        scale_row(p, t, i, single, at);
        return;
    }
    for (int32_t e = a->starts[i]; e < a->starts[i + 1]; e++) {
        int32_t row = a->columns[e], end = b->starts[row + 1];
        number x = load(a->values, t, e);
        for (int32_t f = b->starts[row]; f < end; f++) {
            number y = times(t, x, load(b->values, t, f));
            double *sum = &w->sums[(int64_t)parts * b->columns[f]];
            int is_new = enter(w, b->columns[f]);
            sum[0] = is_new ? y.re : sum[0] + y.re;
            if (is_complex(t))
                sum[1] = is_new ? y.im : sum[1] + y.im;
        }
    }
    take_all(p, t, w, w->levels - 1, 0, at);
}

/* --- rows, on all threads ----------------------------------------------------
 */

static gpu_status count_rows(const job *p, workspace *w, int64_t first,
                             int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        p->starts[i + 1] = w ? count_products(p, w, i) : count_merged(p, i);
        if (i % 256 == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
    }
    return GPU_OK;
}

INLINE gpu_status fill_rows(const job *p, gpu_dtype t, workspace *w,
                            int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        int64_t at = p->starts[i];
        if (w)
            multiply_row(p, t, w, i, at);
        else
            p->lengths[i] = (int32_t)(merge_row(p, t, i, at) - at);
        if (i % 256 == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
    }
    return GPU_OK;
}

static gpu_status do_rows(const job *p, workspace *w, int64_t first,
                          int64_t last)
{
    if (!p->columns)
        return count_rows(p, w, first, last);
    switch (p->a->dtype) {
    case GPU_F32:
        return fill_rows(p, GPU_F32, w, first, last);
    case GPU_F64:
        return fill_rows(p, GPU_F64, w, first, last);
    case GPU_C64:
        return fill_rows(p, GPU_C64, w, first, last);
    default:
        return fill_rows(p, GPU_C128, w, first, last);
    }
}

/* Rows that begin in weights from .. to - 1. */
static gpu_status do_part(void *context, int64_t from, int64_t to)
{
    const job *p = context;
    const int32_t *more = p->op == GPU_SPARSE_PRODUCT ? NULL : p->b->starts;
    int64_t first = row_at(p->a->starts, more, p->a->rows, from);
    int64_t last = row_at(p->a->starts, more, p->a->rows, to);
    if (p->op != GPU_SPARSE_PRODUCT)
        return do_rows(p, NULL, first, last);
    workspace *w = take_space(p);
    gpu_status status = w->marks || w->levels > 0 ? GPU_OK : make_space(p, w);
    if (status == GPU_OK)
        status = do_rows(p, w, first, last);
    atomic_store(&w->is_taken, 0);
    return status;
}

/* Of all rows, as row_at counts it. */
static int64_t count_weight(const job *p)
{
    int64_t merged = p->op == GPU_SPARSE_PRODUCT ? 0 : p->b->count;
    return p->a->rows + p->a->count + merged;
}

/* How many elements' work it is, about. */
static int64_t count_work(const job *p)
{
    int64_t weight = count_weight(p);
    if (p->op != GPU_SPARSE_PRODUCT || p->b->rows == 0)
        return weight;
    return weight * (4 + 4 * p->b->count / p->b->rows);
}

static gpu_status run(job *p)
{
    p->threads = gpu_cpu_threads();
    if (p->op == GPU_SPARSE_PRODUCT) {
        p->spaces = calloc((size_t)p->threads, sizeof *p->spaces);
        if (!p->spaces)
            return gpu_cpu_stop(GPU_MEMORY);
    }
    gpu_status status =
        gpu_cpu_parallel(count_weight(p), count_work(p), do_part, p);
    for (int k = 0; p->spaces && k < p->threads; k++)
        free_space(&p->spaces[k]);
    free(p->spaces);
    p->spaces = NULL;
    return status;
}

/* Where rows are shorter than they have room, all move up; how many entries
 * are left. */
static int64_t close_gaps(const job *p)
{
    size_t size = gpu_cpu_size(p->a->dtype);
    char *values = p->values;
    int64_t at = 0;
    for (int64_t i = 0; i < p->a->rows; i++) {
        int64_t from = p->starts[i], length = p->lengths[i];
        if (from != at) {
            memmove(p->columns + at, p->columns + from,
                    (size_t)length * sizeof *p->columns);
            memmove(values + at * (int64_t)size, values + from * (int64_t)size,
                    (size_t)length * size);
        }
        p->starts[i] = (int32_t)at;
        at += length;
    }
    p->starts[p->a->rows] = (int32_t)at;
    return at;
}

gpu_status gpu_cpu_sparse_combine(void *device, gpu_sparse_op op,
                                  const gpu_csr *a, const gpu_csr *b,
                                  gpu_csr_result *out)
{
    job p = {.op = op, .a = a, .b = b, .starts = out->starts};
    (void)device;
    gpu_status status = run(&p);
    if (status != GPU_OK)
        return status;
    out->count = add_up_rows(p.starts, a->rows);
    status = out->make_room(out, out->count);
    if (status != GPU_OK || out->count == 0)
        return status;
    p.columns = out->columns;
    p.values = out->values;
    if (op == GPU_SPARSE_PRODUCT)
        return run(&p);
    p.lengths = malloc(((size_t)a->rows + 1) * sizeof *p.lengths);
    if (!p.lengths)
        return gpu_cpu_stop(GPU_MEMORY);
    status = run(&p);
    if (status == GPU_OK)
        out->count = close_gaps(&p);
    free(p.lengths);
    return status;
}

/* --- a dense matrix at the places of entries
 * ------------------------------------ */

typedef struct sampling {
    const gpu_csr *s;
    const gpu_view *m;
    char *out;
} sampling;

INLINE void sample_row(const sampling *p, size_t size, int64_t i)
{
    const gpu_view *m = p->m;
    const char *row = (const char *)m->data + i * m->row_stride * (int64_t)size;
    for (int64_t e = p->s->starts[i]; e < p->s->starts[i + 1]; e++)
        memcpy(p->out + e * (int64_t)size,
               row + p->s->columns[e] * m->col_stride * (int64_t)size, size);
}

static gpu_status sample_rows(void *context, int64_t first, int64_t last)
{
    const sampling *p = context;
    size_t size = gpu_cpu_size(p->m->dtype);
    for (int64_t i = first; i < last; i++) {
        if (size == 4)
            sample_row(p, 4, i);
        else if (size == 8)
            sample_row(p, 8, i);
        else
            sample_row(p, size, i);
        if (i % 1024 == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
    }
    return GPU_OK;
}

gpu_status gpu_cpu_sparse_sample(void *device, const gpu_csr *s,
                                 const gpu_view *m, void *out)
{
    sampling p = {s, m, out};
    (void)device;
    return gpu_cpu_parallel(s->rows, s->count + s->rows, sample_rows, &p);
}
