/* Sparse times dense: each row of the result is a sum of rows of d, taken in
 * the order of the entries, one after the other, and kept in f64. The transpose
 * times dense adds in the same order, so that its bits are those of the product
 * of a transpose that was made. */
#include <stdlib.h>
#include <string.h>
#include "csr_parts.h"
#include "vector.h"

enum {
    STRIP = 64,    /* columns of c whose sums are kept at a time */
    TOGETHER = 4,  /* entries added at a time */
    ROWS = 256,    /* between two looks at the flag, */
    POLL = 1 << 16 /* and entries of a row */
};

typedef struct job {
    const gpu_csr *s;
    gpu_view d, c;
    double alpha, beta;
} job;

/* c[i, j0 + j] = alpha sums[j] + beta c[i, j0 + j] */
INLINE void put_row(const job *p, gpu_dtype t, int64_t i, int64_t j0, int64_t n,
                    const double *sums)
{
    int64_t step = p->c.col_stride;
    int64_t at = i * p->c.row_stride + j0 * step;
    for (int64_t j = 0; j < n; j++, at += step) {
        double x = p->alpha * sums[j];
        if (p->beta != 0)
            x += p->beta * load_real(p->c.data, t, at);
        store_real(p->c.data, t, at, x);
    }
}

/* sums[j] += the products of `many` entries from e on with columns j0 + j of
 * d, one after the other; taken together, the sums are loaded and stored once
 * for all of them. */
INLINE void add_entries(const job *p, gpu_dtype t, int32_t e, int many,
                        int64_t j0, int64_t n, double *sums)
{
    double factor[TOGETHER];
    int64_t at[TOGETHER];
    for (int k = 0; k < many; k++) {
        factor[k] = load_real(p->s->values, t, e + k);
        at[k] = p->s->columns[e + k] * p->d.row_stride + j0;
    }
    for (int64_t j = 0; j < n; j++) {
        double sum = sums[j];
        for (int k = 0; k < many; k++)
            sum += factor[k] * load_real(p->d.data, t, at[k] + j);
        sums[j] = sum;
    }
}

/* Rows first .. last - 1, columns j0 .. j0 + n - 1 of c. d has its columns
 * next to each other. */
INLINE gpu_status add_rows(const job *p, gpu_dtype t, int64_t first,
                           int64_t last, int64_t j0, int64_t n)
{
    const gpu_csr *s = p->s;
    double sums[STRIP];
    for (int64_t i = first; i < last; i++) {
        int32_t e = s->starts[i], end = s->starts[i + 1];
        for (int64_t j = 0; j < n; j++)
            sums[j] = 0;
        do {
            int32_t stop = end - e > POLL ? e + POLL : end;
            if (gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            for (; e <= stop - TOGETHER; e += TOGETHER)
                add_entries(p, t, e, TOGETHER, j0, n, sums);
            for (; e < stop; e++)
                add_entries(p, t, e, 1, j0, n, sums);
        } while (e < end);
        put_row(p, t, i, j0, n, sums);
    }
    return GPU_OK;
}

/* *sum += the products of entries e .. end - 1, one after the other, with the
 * one column of d. */
INLINE void dot_entries(const job *p, gpu_dtype t, int64_t e, int64_t end,
                        double *sum)
{
    int64_t step = p->d.row_stride;
    double own = *sum;
    for (; e < end; e++)
        own += load_real(p->s->values, t, e) *
               load_real(p->d.data, t, p->s->columns[e] * step);
    *sum = own;
}

/* The same of n entries from e[0] and n from e[1] on, whose sums do not wait
 * for each other. */
INLINE void dot_pair(const job *p, gpu_dtype t, const int64_t e[2], int64_t n,
                     double sums[2])
{
    const int32_t *columns = p->s->columns;
    int64_t step = p->d.row_stride;
    double first = sums[0], second = sums[1];
    for (int64_t k = 0; k < n; k++) {
        first += load_real(p->s->values, t, e[0] + k) *
                 load_real(p->d.data, t, columns[e[0] + k] * step);
        second += load_real(p->s->values, t, e[1] + k) *
                  load_real(p->d.data, t, columns[e[1] + k] * step);
    }
    sums[0] = first;
    sums[1] = second;
}

/* As add_rows for one column, and with its bits. Of short rows one after the
 * other a processor works at several at once; long ones are taken in pairs. */
INLINE gpu_status dot_rows(const job *p, gpu_dtype t, int64_t first,
                           int64_t last)
{
    enum { PAIRED = 64 }; /* entries of a row from which it pays */
    const int32_t *starts = p->s->starts;
    for (int64_t i = first, rows; i < last; i += rows) {
        int64_t e[2] = {starts[i], starts[i + 1]}, end[2] = {e[1], e[1]};
        double sums[2] = {0, 0};
        int is_long = end[0] - e[0] >= PAIRED && i + 1 < last;
        rows = is_long ? 2 : 1;
        end[1] = starts[i + rows];
        if (i % ROWS < rows && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        while (is_long && e[0] < end[0] && e[1] < end[1]) {
            int64_t n = gpu_cpu_smaller(end[0] - e[0], end[1] - e[1]);
            n = gpu_cpu_smaller(n, POLL);
            dot_pair(p, t, e, n, sums);
            e[0] += n;
            e[1] += n;
            if (n == POLL && gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
        }
        for (int k = 0; k < rows; k++) {
            for (; end[k] - e[k] > POLL; e[k] += POLL) {
                dot_entries(p, t, e[k], e[k] + POLL, &sums[k]);
                if (gpu_cpu_interrupted())
                    return GPU_INTERRUPTED;
            }
            dot_entries(p, t, e[k], end[k], &sums[k]);
            put_row(p, t, i + k, 0, 1, &sums[k]);
        }
    }
    return GPU_OK;
}

/* --- complex ones ----------------------------------------------------------
 */
/* t is the type of the parts, of which there are twice as many as elements. */

/* As put_row; sums are pairs. */
INLINE void put_pairs(const job *p, gpu_dtype t, int64_t i, int64_t j0,
                      int64_t n, const double *sums)
{
    for (int64_t j = 0; j < n; j++) {
        int64_t at = 2 * (i * p->c.row_stride + (j0 + j) * p->c.col_stride);
        double re = p->alpha * sums[2 * j], im = p->alpha * sums[2 * j + 1];
        if (p->beta != 0) {
            re += p->beta * load_real(p->c.data, t, at);
            im += p->beta * load_real(p->c.data, t, at + 1);
        }
        store_real(p->c.data, t, at, re);
        store_real(p->c.data, t, at + 1, im);
    }
}

/* As add_rows. */
INLINE gpu_status add_pairs(const job *p, gpu_dtype t, int64_t first,
                            int64_t last, int64_t j0, int64_t n)
{
    const gpu_csr *s = p->s;
    double sums[2 * STRIP];
    for (int64_t i = first; i < last; i++) {
        for (int64_t j = 0; j < 2 * n; j++)
            sums[j] = 0;
        for (int32_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            double re = load_real(s->values, t, 2 * (int64_t)e);
            double im = load_real(s->values, t, 2 * (int64_t)e + 1);
            int64_t at = 2 * (s->columns[e] * p->d.row_stride + j0);
            if (e % POLL == 0 && gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            for (int64_t j = 0; j < n; j++) {
                double x = load_real(p->d.data, t, at + 2 * j);
                double y = load_real(p->d.data, t, at + 2 * j + 1);
                sums[2 * j] += re * x - im * y;
                sums[2 * j + 1] += re * y + im * x;
            }
        }
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        put_pairs(p, t, i, j0, n, sums);
    }
    return GPU_OK;
}

/* --- spreading it --------------------------------------------------------- */

/* A row weighs its entries and one; a strip of columns weighs all rows. */
static int64_t weight_of_strip(const gpu_csr *s)
{
    return s->count + s->rows;
}

/* Rows first .. last - 1 of n columns from j0 on: where these are many what
 * they are worth depends on the processor's vectors. */
INLINE gpu_status multiply_columns(const job *p, int64_t first, int64_t last,
                                   int64_t j0, int64_t n)
{
    switch (p->s->dtype) {
    case GPU_F32:
        return add_rows(p, GPU_F32, first, last, j0, n);
    case GPU_F64:
        return add_rows(p, GPU_F64, first, last, j0, n);
    case GPU_C64:
        return add_pairs(p, GPU_F32, first, last, j0, n);
    default:
        return add_pairs(p, GPU_F64, first, last, j0, n);
    }
}

VECTORS static gpu_status multiply_wide(const job *p, int64_t first,
                                        int64_t last, int64_t j0, int64_t n)
{
    return n == STRIP ? multiply_columns(p, first, last, j0, STRIP)
                      : multiply_columns(p, first, last, j0, n);
}

static gpu_status multiply_strip(const job *p, int64_t strip, int64_t first,
                                 int64_t last)
{
    enum { WIDE = 16 };
    int64_t j0 = strip * STRIP, n = gpu_cpu_smaller(p->c.cols - j0, STRIP);
    if (p->c.cols == 1 && p->s->dtype == GPU_F64)
        return dot_rows(p, GPU_F64, first, last);
    if (p->c.cols == 1 && p->s->dtype == GPU_F32)
        return dot_rows(p, GPU_F32, first, last);
    return n < WIDE ? multiply_columns(p, first, last, j0, n)
                    : multiply_wide(p, first, last, j0, n);
}

/* Weights first .. last - 1, counted through strip after strip. */
static gpu_status multiply_part(void *context, int64_t first, int64_t last)
{
    const job *p = context;
    int64_t weight = weight_of_strip(p->s);
    gpu_status status = GPU_OK;
    while (first < last && status == GPU_OK) {
        int64_t strip = first / weight, start = strip * weight;
        int64_t end = last < start + weight ? last : start + weight;
        status = multiply_strip(
            p, strip, row_at(p->s->starts, NULL, p->s->rows, first - start),
            row_at(p->s->starts, NULL, p->s->rows, end - start));
        first = end;
    }
    return status;
}

/* --- operands ------------------------------------------------------------- */

/* d with its columns next to each other: a copy in memory to be freed. */
static gpu_status pack(void *device, gpu_view *d, void **memory)
{
    gpu_program p = {.inputs = 1, .compute = d->dtype};
    gpu_view packed = *d;
    packed.row_stride = d->cols;
    packed.col_stride = 1;
    size_t bytes = (size_t)(d->rows * d->cols) * gpu_cpu_size(d->dtype);
    *memory = packed.data = malloc(bytes);
    if (!packed.data)
        return GPU_MEMORY;
    gpu_status status = gpu_cpu_map(device, &p, d, &packed);
    *d = packed;
    return status;
}

gpu_status gpu_cpu_sparse_product(void *device, const gpu_sparse_call *p)
{
    const gpu_csr *s = &p->s;
    job j = {s, p->d, p->c, p->alpha, p->beta};
    void *memory = NULL;
    int64_t strips = (p->c.cols + STRIP - 1) / STRIP;
    gpu_status status = GPU_OK;
    if (p->d.cols > 1 && p->d.col_stride != 1)
        status = pack(device, &j.d, &memory);
    if (status == GPU_OK)
        status =
            gpu_cpu_parallel(strips * weight_of_strip(s),
                             s->count * p->c.cols + s->rows, multiply_part, &j);
    free(memory);
    return status == GPU_MEMORY ? gpu_cpu_stop(status) : status;
}

/* --- the transpose ----------------------------------------------------------
 * Entry (i, j) adds row i of d to row j of the result. Rows of s come in their
 * order, and each thread has a band of its columns, whose sums are its own:
 * limited by the loads and stores of these, which a narrow band keeps in a
 * cache. What bands there are changes no bits. */

enum {
    SAMPLE = 256,          /* entries that bands are cut by */
    WORTH_BANDS = 1 << 16, /* products of entries: fewer are one thread's */
    MOST_BANDS = 64
};

typedef struct turning {
    job j;
    int64_t j0, n; /* a strip of columns of d and c */
    int64_t bands;
    int64_t cuts[MOST_BANDS + 1]; /* band b: columns cuts[b] .. cuts[b + 1] - 1
                                   */
    double *sums;                 /* cols x n, or x n pairs: c itself … */
    int is_direct;                /* … where that is just so */
} turning;

static int by_size(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* Each band looks at every row, which takes about as long as five products:
 * they are worth it where a fifth of the time or more is gained. */
static int64_t count_bands(const turning *t)
{
    const gpu_csr *s = t->j.s;
    int64_t bands = gpu_cpu_smaller(gpu_cpu_threads(), MOST_BANDS);
    int64_t products = s->count * gpu_cpu_smaller(t->j.c.cols, (int64_t)STRIP);
    if (products < WORTH_BANDS ||
        products / bands * (4 * bands - 5) < 25 * s->rows)
        return 1;
    return bands;
}

/* Bands of about as many entries, by those at equal distances. */
static void cut_bands(turning *t)
{
    const gpu_csr *s = t->j.s;
    int32_t sample[SAMPLE];
    t->cuts[0] = 0;
    t->bands = count_bands(t);
    for (int64_t k = 0; k < SAMPLE && t->bands > 1; k++)
        sample[k] = s->columns[k * s->count / SAMPLE];
    if (t->bands > 1)
        qsort(sample, SAMPLE, sizeof *sample, by_size);
    for (int64_t b = 1; b < t->bands; b++)
        t->cuts[b] = sample[b * SAMPLE / t->bands];
    t->cuts[t->bands] = s->cols;
}

/* The numbers of row i of d that a strip has, in f64: n, or n pairs. */
INLINE void load_row(const turning *t, gpu_dtype type, int64_t n, int64_t i,
                     double *x)
{
    const gpu_view *d = &t->j.d;
    gpu_dtype part = part_type(type);
    int64_t parts = is_complex(type) ? 2 : 1, step = d->col_stride * parts;
    int64_t at = (i * d->row_stride + t->j0 * d->col_stride) * parts;
    for (int64_t j = 0; j < n * parts && d->col_stride == 1; j++)
        x[j] = load_real(d->data, part, at + j);
    for (int64_t j = 0; j < n && d->col_stride != 1; j++)
        for (int64_t k = 0; k < parts; k++)
            x[j * parts + k] = load_real(d->data, part, at + j * step + k);
}

/* Row j of the sums += entry (i, j), which is the e-th, times x, row i of d. */
INLINE void scatter_entry(const turning *t, gpu_dtype type, int64_t n,
                          int64_t e, const double *x)
{
    const gpu_csr *s = t->j.s;
    int64_t width = is_complex(type) ? 2 * n : n;
    double *sums = t->sums + s->columns[e] * width;
    number v = load(s->values, type, e);
    for (int64_t j = 0; j < width && !is_complex(type); j++)
        sums[j] += v.re * x[j];
    for (int64_t j = 0; j < width && is_complex(type); j += 2) {
        sums[j] += v.re * x[j] - v.im * x[j + 1];
        sums[j + 1] += v.re * x[j + 1] + v.im * x[j];
    }
}

/* What row i has in columns low .. high - 1: these are found from the end that
 * they lie at, where there is one. */
INLINE void scatter_row(const turning *t, gpu_dtype type, int64_t n, int64_t i,
                        int64_t low, int64_t high)
{
    const gpu_csr *s = t->j.s;
    int64_t e = s->starts[i], end = s->starts[i + 1];
    double x[2 * STRIP];
    load_row(t, type, n, i, x);
    if (low > 0 && high == s->cols) {
        for (; end > e && s->columns[end - 1] >= low; end--)
            scatter_entry(t, type, n, end - 1, x);
        return;
    }
    if (low > 0)
        e = find_column(s->columns, e, end, low);
    for (; e < end && s->columns[e] < high; e++)
        scatter_entry(t, type, n, e, x);
}

INLINE gpu_status scatter_band(const turning *t, gpu_dtype type, int64_t n,
                               int64_t band)
{
    const job *p = &t->j;
    int64_t low = t->cuts[band], high = t->cuts[band + 1];
    int64_t width = is_complex(type) ? 2 * n : n;
    memset(t->sums + low * width, 0,
           (size_t)((high - low) * width) * sizeof *t->sums);
    for (int64_t i = 0; i < p->s->rows; i++) {
        if (i % ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        scatter_row(t, type, n, i, low, high);
    }
    for (int64_t j = low; j < high && !t->is_direct; j++)
        if (is_complex(type))
            put_pairs(p, part_type(type), j, t->j0, n, t->sums + j * width);
        else
            put_row(p, type, j, t->j0, n, t->sums + j * width);
    return GPU_OK;
}

INLINE gpu_status scatter_typed(const turning *t, int64_t n, int64_t band)
{
    switch (t->j.s->dtype) {
    case GPU_F32:
        return scatter_band(t, GPU_F32, n, band);
    case GPU_F64:
        return scatter_band(t, GPU_F64, n, band);
    case GPU_C64:
        return scatter_band(t, GPU_C64, n, band);
    default:
        return scatter_band(t, GPU_C128, n, band);
    }
}

VECTORS static gpu_status scatter_wide(const turning *t, int64_t band)
{
    return t->n == 8 ? scatter_typed(t, 8, band) : scatter_typed(t, t->n, band);
}

static gpu_status scatter_bands(void *context, int64_t first, int64_t last)
{
    const turning *t = context;
    gpu_status status = GPU_OK;
    for (; first < last && status == GPU_OK; first++)
        status =
            t->n == 1 ? scatter_typed(t, 1, first) : scatter_wide(t, first);
    return status;
}

/* Strip after strip of columns. */
static gpu_status scatter_strips(turning *t, int64_t strip)
{
    const gpu_csr *s = t->j.s;
    gpu_status status = GPU_OK;
    cut_bands(t);
    for (t->j0 = 0; t->j0 < t->j.c.cols && status == GPU_OK; t->j0 += strip) {
        t->n = gpu_cpu_smaller(t->j.c.cols - t->j0, strip);
        status = gpu_cpu_parallel(t->bands, s->count * t->n + s->cols,
                                  scatter_bands, t);
    }
    return status;
}

/* Can sums be kept in c? */
static int lies_as_sums(const job *p, int64_t strip)
{
    return part_type(p->s->dtype) == GPU_F64 && strip == p->c.cols &&
           p->c.row_stride == strip && (p->c.col_stride == 1 || strip == 1) &&
           p->alpha == 1 && p->beta == 0;
}

static gpu_status scatter(turning *t)
{
    int64_t strip = gpu_cpu_smaller(t->j.c.cols, STRIP);
    size_t parts = is_complex(t->j.s->dtype) ? 2 : 1;
    size_t bytes = (size_t)(t->j.s->cols * strip) * parts * sizeof *t->sums;
    void *memory = t->j.c.data;
    t->is_direct = lies_as_sums(&t->j, strip);
    gpu_status status =
        t->is_direct ? GPU_OK : gpu_cpu_alloc(NULL, bytes, &memory);
    if (status != GPU_OK)
        return status;
    t->sums = memory;
    status = scatter_strips(t, strip);
    if (!t->is_direct)
        gpu_cpu_free(NULL, memory, bytes);
    return status;
}

gpu_status gpu_cpu_sparse_turned_product(void *device, const gpu_sparse_call *p)
{
    turning t = {.j = {&p->s, p->d, p->c, p->alpha, p->beta}};
    (void)device;
    gpu_status status = scatter(&t);
    return status == GPU_MEMORY ? gpu_cpu_stop(status) : status;
}
