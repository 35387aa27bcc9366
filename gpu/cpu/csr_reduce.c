/* Rows and columns of a sparse matrix folded to a number each, and its elements
 * at the places of another one's entries.
 *
 * A row is folded by one thread, in the order of its entries. For columns the
 * rows are cut into blocks, as many as the shape says: each adds to a line of
 * numbers of its own, and these are joined in order, so that results do not
 * depend on the threads. Sums are kept in f64; what bounds all of it are bytes,
 * for columns those that lie far apart. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "csr_parts.h"

enum {
    MOST_BLOCKS = 16,    /* of rows, where columns are folded */
    PLAIN = 1024,        /* entries of a row added before their rounding is
                            looked after */
    POLL_ROWS = 256,     /* rows between two looks at the flag */
    POLL_ENTRIES = 65536 /* and entries of a row */
};

/* --- one entry after the other ---------------------------------------------
 * All of these are inlined where kind and type are known. */

INLINE int is_extreme(gpu_sparse_fold kind)
{
    return kind == GPU_SPARSE_MIN || kind == GPU_SPARSE_MAX;
}

INLINE int is_nan(gpu_dtype t, number x)
{
    return x.re != x.re || (is_complex(t) && x.im != x.im);
}

/* What extremes begin with: of elements that are all left out NaN remains. */
INLINE double least(gpu_sparse_fold kind, int skips)
{
    if (skips)
        return (double)NAN;
    return kind == GPU_SPARSE_MAX ? -(double)INFINITY : (double)INFINITY;
}

/* NaN stays where it is not left out, and gives way where it is. */
INLINE double extreme(gpu_sparse_fold kind, int skips, double best, double x)
{
    int beats = kind == GPU_SPARSE_MAX ? x > best : x < best;
    return beats || (skips ? best != best : x != x) ? x : best;
}

/* sum += what x adds to a sum of that kind. */
INLINE void add(gpu_sparse_fold kind, gpu_dtype t, number x, number *sum)
{
    switch (kind) {
    case GPU_SPARSE_SQUARES:
        sum->re += is_complex(t) ? x.re * x.re + x.im * x.im : x.re * x.re;
        return;
    case GPU_SPARSE_NONZEROS:
        sum->re += x.re != 0 || (is_complex(t) && x.im != 0);
        return;
    case GPU_SPARSE_NANS:
        sum->re += is_nan(t, x);
        return;
    default:
        sum->re += x.re;
        if (is_complex(t))
            sum->im += x.im;
    }
}

/* Are results pairs? */
INLINE int gives_pairs(gpu_sparse_fold kind, gpu_dtype t)
{
    return is_complex(t) && (kind == GPU_SPARSE_SUM || kind == GPU_SPARSE_PROD);
}

/* --- rows ------------------------------------------------------------------
 */

typedef struct job {
    const gpu_csr *s;
    const gpu_sparse_folding *how;
    double *out;
    double *sums;    /* of columns: a line a block, of pairs where pairs are
                        given */
    int32_t *counts; /* the same of entries, for extremes; else NULL */
    int64_t blocks;
} job;

/* Entries e .. end - 1 as a plain sum; of reals four that do not wait for each
 * other. */
INLINE number add_run(const job *p, gpu_sparse_fold kind, gpu_dtype t,
                      int skips, int64_t e, int64_t end)
{
    number sums[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    for (; e <= end - 4; e += 4)
        for (int k = 0; k < 4; k++) {
            number x = load(p->s->values, t, e + k);
            if (!skips || !is_nan(t, x))
                add(kind, t, x, &sums[k]);
        }
    for (; e < end; e++) {
        number x = load(p->s->values, t, e);
        if (!skips || !is_nan(t, x))
            add(kind, t, x, &sums[0]);
    }
    return (number){(sums[0].re + sums[1].re) + (sums[2].re + sums[3].re),
                    (sums[0].im + sums[1].im) + (sums[2].im + sums[3].im)};
}

/* sum + x, what rounding takes going to rest. Source: Knuth, The Art of
 * Computer Programming 2, 4.2.2. */
static double add_exactly(double sum, double x, double *rest)
{
    double s = sum + x, b = s - sum;
    double error = (sum - (s - b)) + (x - b);
    *rest += isfinite(error) ? error : 0;
    return s;
}

static void add_number(number *sum, number x, number *rest)
{
    sum->re = add_exactly(sum->re, x.re, &rest->re);
    sum->im = add_exactly(sum->im, x.im, &rest->im);
}

INLINE number sum_row(const job *p, gpu_sparse_fold kind, gpu_dtype t,
                      int skips, int64_t e, int64_t end)
{
    number sum, rest = {0, 0};
    if (end - e <= PLAIN)
        return add_run(p, kind, t, skips, e, end);
    for (sum = (number){0, 0}; e < end; e += PLAIN) {
        if (e % POLL_ENTRIES < PLAIN && gpu_cpu_interrupted())
            break;
        add_number(
            &sum,
            add_run(p, kind, t, skips, e, gpu_cpu_smaller(end, e + PLAIN)),
            &rest);
    }
    return (number){sum.re + rest.re, sum.im + rest.im};
}

/* A place without an entry is 0. */
INLINE double extreme_of_row(const job *p, gpu_sparse_fold kind, gpu_dtype t,
                             int skips, int64_t e, int64_t end)
{
    double best = least(kind, skips);
    if (end - e < p->s->cols)
        best = extreme(kind, skips, best, 0);
    for (; e < end; e++)
        best = extreme(kind, skips, best, load(p->s->values, t, e).re);
    return best;
}

/* A place without an entry makes 0 of what is finite, and NaN of the rest. */
INLINE number product_of_row(const job *p, gpu_dtype t, int skips, int64_t e,
                             int64_t end)
{
    gpu_cpu_scaled product = {1, 0};
    number z = {1, 0};
    int has_zero = end - e < p->s->cols;
    for (; e < end; e++) {
        number x = load(p->s->values, t, e);
        if (skips && is_nan(t, x))
            continue;
        if (!is_complex(t))
            gpu_cpu_scale(&product, x.re);
        else
            z = times(t, z, x);
    }
    if (has_zero)
        gpu_cpu_scale(&product, 0);
    if (!is_complex(t))
        return (number){gpu_cpu_unscale(product), 0};
    return has_zero ? (number){z.re * 0, z.im * 0} : z;
}

INLINE gpu_status fold_rows(const job *p, gpu_sparse_fold kind, gpu_dtype t,
                            int skips, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        int64_t e = p->s->starts[i], end = p->s->starts[i + 1];
        if (i % POLL_ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (is_extreme(kind)) {
            p->out[i] = extreme_of_row(p, kind, t, skips, e, end);
            continue;
        }
        number x = kind == GPU_SPARSE_PROD ? product_of_row(p, t, skips, e, end)
                                           : sum_row(p, kind, t, skips, e, end);
        if (!gives_pairs(kind, t)) {
            p->out[i] = x.re;
        } else {
            p->out[2 * i] = x.re;
            p->out[2 * i + 1] = x.im;
        }
    }
    return gpu_cpu_interrupted() ? GPU_INTERRUPTED : GPU_OK;
}

/* --- columns ---------------------------------------------------------------
 */

/* The first row of a block: all have about as many entries. */
static int64_t first_row(const job *p, int64_t block)
{
    const gpu_csr *s = p->s;
    int64_t w = (s->count + s->rows) / p->blocks * block;
    return block == p->blocks ? s->rows : row_at(s->starts, NULL, s->rows, w);
}

INLINE void fold_entry(const job *p, gpu_sparse_fold kind, gpu_dtype t,
                       int skips, int64_t e, double *sums, int32_t *counts)
{
    int32_t j = p->s->columns[e];
    number x = load(p->s->values, t, e);
    if (is_extreme(kind)) {
        sums[j] = extreme(kind, skips, sums[j], x.re);
        counts[j]++;
        return;
    }
    if (skips && is_nan(t, x))
        return;
    if (gives_pairs(kind, t)) {
        sums[2 * j] += x.re;
        sums[2 * j + 1] += x.im;
    } else {
        number sum = {sums[j], 0};
        add(kind, t, x, &sum);
        sums[j] = sum.re;
    }
}

/* The rows of a block, into its line. */
INLINE gpu_status fold_block(const job *p, gpu_sparse_fold kind, gpu_dtype t,
                             int skips, int64_t block)
{
    const gpu_csr *s = p->s;
    int64_t width = s->cols * (gives_pairs(kind, t) ? 2 : 1);
    int64_t first = first_row(p, block), last = first_row(p, block + 1);
    double *sums = p->sums + block * width;
    int32_t *counts = p->counts ? p->counts + block * s->cols : NULL;
    double begin = is_extreme(kind) ? least(kind, skips) : 0;
    for (int64_t j = 0; j < width; j++)
        sums[j] = begin;
    if (counts)
        memset(counts, 0, (size_t)s->cols * sizeof *counts);
    for (int64_t e = s->starts[first], end = s->starts[last]; e < end;) {
        int64_t stop = gpu_cpu_smaller(end, e + POLL_ENTRIES);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        for (; e < stop; e++)
            fold_entry(p, kind, t, skips, e, sums, counts);
    }
    return GPU_OK;
}

INLINE gpu_status fold_blocks(const job *p, gpu_sparse_fold kind, gpu_dtype t,
                              int skips, int64_t first, int64_t last)
{
    gpu_status status = GPU_OK;
    for (int64_t k = first; k < last && status == GPU_OK; k++)
        status = fold_block(p, kind, t, skips, k);
    return status;
}

/* Of column j, from its places in all lines. */
static double join_extremes(const job *p, int64_t j)
{
    gpu_sparse_fold kind = p->how->kind;
    int skips = p->how->skips_nan;
    double best = least(kind, skips);
    int64_t count = 0;
    for (int64_t k = 0; k < p->blocks; k++) {
        best = extreme(kind, skips, best, p->sums[k * p->s->cols + j]);
        count += p->counts[k * p->s->cols + j];
    }
    return count < p->s->rows ? extreme(kind, skips, best, 0) : best;
}

/* A line that left out all it had says NaN, which is not to hide others: as
 * extreme() does where it skips. Places first .. last - 1 of the results. */
static gpu_status join_blocks(void *context, int64_t first, int64_t last)
{
    const job *p = context;
    int pairs = gives_pairs(p->how->kind, p->s->dtype);
    int64_t width = p->s->cols * (pairs ? 2 : 1);
    for (int64_t j = first; j < last; j++) {
        if (is_extreme(p->how->kind)) {
            p->out[j] = join_extremes(p, j);
            continue;
        }
        double sum = p->sums[j], rest = 0;
        for (int64_t k = 1; k < p->blocks; k++)
            sum = add_exactly(sum, p->sums[k * width + j], &rest);
        p->out[j] = sum + rest;
    }
    return GPU_OK;
}

/* --- kinds and types -------------------------------------------------------
 */

/* first .. last - 1 are rows, or blocks of them. */
INLINE gpu_status fold_typed(const job *p, gpu_sparse_fold kind, gpu_dtype t,
                             int skips, int64_t first, int64_t last)
{
    return p->how->axis == 2 ? fold_rows(p, kind, t, skips, first, last)
                             : fold_blocks(p, kind, t, skips, first, last);
}

INLINE gpu_status fold_kind(const job *p, gpu_sparse_fold kind, int skips,
                            int64_t first, int64_t last)
{
    switch (p->s->dtype) {
    case GPU_F32:
        return fold_typed(p, kind, GPU_F32, skips, first, last);
    case GPU_F64:
        return fold_typed(p, kind, GPU_F64, skips, first, last);
    case GPU_C64:
        return fold_typed(p, kind, GPU_C64, skips, first, last);
    default:
        return fold_typed(p, kind, GPU_C128, skips, first, last);
    }
}

static gpu_status fold_part(void *context, int64_t first, int64_t last)
{
    const job *p = context;
    int skips = p->how->skips_nan;
#define KIND(kind)                                        \
    case kind:                                            \
        return skips ? fold_kind(p, kind, 1, first, last) \
                     : fold_kind(p, kind, 0, first, last)
    switch (p->how->kind) {
        KIND(GPU_SPARSE_SUM);
        KIND(GPU_SPARSE_PROD);
        KIND(GPU_SPARSE_MIN);
        KIND(GPU_SPARSE_MAX);
        KIND(GPU_SPARSE_SQUARES);
        KIND(GPU_SPARSE_NONZEROS);
    default:
        return fold_kind(p, GPU_SPARSE_NANS, 0, first, last);
    }
#undef KIND
}

/* As many as are worth a line of numbers each. */
static int64_t count_blocks(const gpu_csr *s)
{
    int64_t worth = s->count / (2 * s->cols + 1);
    return worth < 1 ? 1 : gpu_cpu_smaller(worth, MOST_BLOCKS);
}

static gpu_status fold_columns(job *p)
{
    const gpu_csr *s = p->s;
    p->blocks = count_blocks(s);
    int64_t width = s->cols * (gives_pairs(p->how->kind, s->dtype) ? 2 : 1);
    size_t room = (size_t)(p->blocks * s->cols) + 1;
    p->sums = malloc(((size_t)(p->blocks * width) + 1) * sizeof *p->sums);
    if (is_extreme(p->how->kind))
        p->counts = malloc(room * sizeof *p->counts);
    gpu_status status = GPU_OK;
    if (!p->sums || (is_extreme(p->how->kind) && !p->counts))
        status = gpu_cpu_stop(GPU_MEMORY);
    if (status == GPU_OK)
        status = gpu_cpu_parallel(p->blocks, s->count + s->cols, fold_part, p);
    if (status == GPU_OK)
        status = gpu_cpu_parallel(width, p->blocks * width, join_blocks, p);
    free(p->sums);
    free(p->counts);
    return status;
}

gpu_status gpu_cpu_sparse_reduce(void *device, const gpu_sparse_folding *how,
                                 const gpu_csr *s, double *out)
{
    job p = {.s = s, .how = how, .out = out};
    (void)device;
    if (how->axis == 1)
        return fold_columns(&p);
    return gpu_cpu_parallel(s->rows, s->count + s->rows, fold_part, &p);
}

/* --- elements at the places of another matrix's entries --------------------
 */

typedef struct lookup {
    const gpu_csr *s, *places;
    char *out;
} lookup;

/* The first entry from e on, before end, whose column is not below: the next
 * few are looked at one by one, as patterns are mostly alike. */
static int64_t find_near(const int32_t *columns, int64_t e, int64_t end,
                         int32_t column)
{
    enum { NEAR = 8 };
    int64_t near = gpu_cpu_smaller(end, e + NEAR);
    while (e < near && columns[e] < column)
        e++;
    return e < near ? e : find_column(columns, e, end, column);
}

INLINE void look_up_row(const lookup *p, size_t size, int64_t i)
{
    const gpu_csr *s = p->s, *at = p->places;
    int64_t e = s->starts[i], end = s->starts[i + 1];
    for (int64_t k = at->starts[i]; k < at->starts[i + 1]; k++) {
        char *to = p->out + k * (int64_t)size;
        e = find_near(s->columns, e, end, at->columns[k]);
        if (e < end && s->columns[e] == at->columns[k])
            memcpy(to, (const char *)s->values + e * (int64_t)size, size);
        else
            memset(to, 0, size);
    }
}

static gpu_status look_up_rows(void *context, int64_t first, int64_t last)
{
    const lookup *p = context;
    size_t size = gpu_cpu_size(p->s->dtype);
    for (int64_t i = first; i < last; i++) {
        if (size == 4)
            look_up_row(p, 4, i);
        else if (size == 8)
            look_up_row(p, 8, i);
        else
            look_up_row(p, 16, i);
        if (i % POLL_ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
    }
    return GPU_OK;
}

typedef struct walk {
    const gpu_csr *s;
    const gpu_sparse_path *path;
    char *out;
} walk;

INLINE gpu_status walk_along(const walk *w, size_t size, int64_t first,
                             int64_t last)
{
    const gpu_csr *s = w->s;
    for (int64_t k = first; k < last; k++) {
        int64_t row = w->path->row + k;
        int32_t column = (int32_t)(w->path->column + k * w->path->step);
        int64_t end = s->starts[row + 1];
        int64_t e = find_column(s->columns, s->starts[row], end, column);
        char *to = w->out + (size_t)k * size;
        if (k % POLL_ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (e < end && s->columns[e] == column)
            memcpy(to, (const char *)s->values + (size_t)e * size, size);
        else
            memset(to, 0, size);
    }
    return GPU_OK;
}

static gpu_status walk_part(void *context, int64_t first, int64_t last)
{
    const walk *w = context;
    size_t size = gpu_cpu_size(w->s->dtype);
    return size == 4   ? walk_along(w, 4, first, last)
           : size == 8 ? walk_along(w, 8, first, last)
                       : walk_along(w, 16, first, last);
}

gpu_status gpu_cpu_sparse_along(void *device, const gpu_csr *s,
                                const gpu_sparse_path *path, void *out)
{
    walk w = {s, path, out};
    (void)device;
    return gpu_cpu_parallel(path->count, 4 * path->count, walk_part, &w);
}

gpu_status gpu_cpu_sparse_lookup(void *device, const gpu_csr *s,
                                 const gpu_csr *places, void *out)
{
    lookup p = {s, places, out};
    (void)device;
    return gpu_cpu_parallel(s->rows, s->count + places->count + s->rows,
                            look_up_rows, &p);
}
