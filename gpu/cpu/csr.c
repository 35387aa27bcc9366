/* Sparse times dense: each row of the result is a sum of rows of d, taken in
 * the order of the entries and kept in f64. */
#include <stdlib.h>
#include "csr_parts.h"
#include "vector.h"

enum {
    STRIP = 64,    /* columns of c whose sums are kept at a time */
    TOGETHER = 4,  /* entries added at a time */
    POLL = 1 << 16 /* entries of a row between two looks at the flag */
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

/* The same for one column: four sums that do not wait for each other. */
INLINE gpu_status dot_rows(const job *p, gpu_dtype t, int64_t first,
                           int64_t last)
{
    const gpu_csr *s = p->s;
    const int32_t *columns = s->columns;
    int64_t step = p->d.row_stride;
    for (int64_t i = first; i < last; i++) {
        double sums[4] = {0, 0, 0, 0};
        int32_t e = s->starts[i], end = s->starts[i + 1];
        do {
            int32_t stop = end - e > POLL ? e + POLL : end;
            if (gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            for (; e <= stop - 4; e += 4)
                for (int k = 0; k < 4; k++)
                    sums[k] += load_real(s->values, t, e + k) *
                               load_real(p->d.data, t, columns[e + k] * step);
            for (; e < stop; e++)
                sums[0] += load_real(s->values, t, e) *
                           load_real(p->d.data, t, columns[e] * step);
        } while (e < end);
        sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        put_row(p, t, i, 0, 1, sums);
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
