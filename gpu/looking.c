/* Looking at a matrix: surveys, histograms and block means. The checks, and
 * what is worked out from the backend's numbers. */
#include "survey.h"
#include "core.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static gpu_status check(const char *name, const gpu_matrix *m, gpu_device **d)
{
    TRY(gpu_check_operands(name, &m, 1, d));
    if (gpu_size(m) == 0)
        return gpu_fail(GPU_SHAPE, "%s: %s has no elements", name,
                        gpu_shape_text(m));
    return GPU_OK;
}

static gpu_status lacks(const gpu_device *d, const char *name)
{
    return gpu_fail(GPU_UNSUPPORTED, "%s: %s has no such pass", name, d->name);
}

/* --- surveys -------------------------------------------------------------- */

/* The power of two with which squares of f64 elements neither overflow nor
 * vanish; 1 where they do neither. */
static double safe_scale(const gpu_matrix *m, const gpu_survey *s)
{
    enum { WIDE = 480, MOST = 1000 }; /* 2^480 squared, 2^60 times, fits */
    double largest = fmax(fabs(s->min), fabs(s->max));
    int exponent;
    if (m->dtype != GPU_F64 || s->finite == 0 || largest == 0)
        return 1;
    frexp(largest, &exponent);
    if (abs(exponent) <= WIDE)
        return 1;
    return ldexp(1, exponent > MOST    ? -MOST
                    : exponent < -MOST ? MOST
                                       : -exponent);
}

static void finish(gpu_survey *s, double scale)
{
    double n = (double)s->finite;
    if (s->finite == 0) {
        s->min = s->max = s->mean = s->std = NAN;
        s->norm = 0;
        return;
    }
    s->std = sqrt(s->squares / (n - 1)) / scale; /* NaN of one, as in Octave */
    s->norm = sqrt(s->squares + n * s->mean * s->mean) / scale;
    s->mean /= scale;
    s->squares = s->squares / scale / scale;
}

gpu_status gpu_take_survey(const gpu_matrix *m, gpu_survey *out)
{
    gpu_device *d;
    TRY(check("survey", m, &d));
    if (!d->backend->survey)
        return lacks(d, "survey");
    gpu_view v = gpu_view_of(m);
    TRY(d->backend->survey(d->handle, &v, 1, out));
    double scale = safe_scale(m, out);
    if (scale != 1)
        TRY(d->backend->survey(d->handle, &v, scale, out));
    finish(out, scale);
    return GPU_OK;
}

/* --- histograms ----------------------------------------------------------- */

double gpu_edge(const gpu_edges *e, int i)
{
    return i == e->count ? e->high : (e->from + i * e->by) / e->over;
}

/* high - low may overflow f64, or have few digits or none: a power of two
 * makes it a number like others. */
gpu_edges gpu_even_edges(double low, double high, int count)
{
    double over = 1;
    if (isinf(high - low))
        over = 0.25;
    else if (high - low < DBL_MIN * 0x1p53 &&
             fmax(fabs(low), fabs(high)) < 0x1p400)
        over = 0x1p600;
    double from = low * over;
    return (gpu_edges){from, (high * over - from) / count, over, high, count};
}

/* In steps of `by` an edge is wrong by its own rounding, which may be to a
 * subnormal number, and that of i by; so is the place of an element. */
static gpu_bins make_bins(const gpu_edges *e)
{
    double most = fmax(fabs(e->from), fabs(e->high * e->over));
    gpu_bins b = {*e, gpu_edge(e, 0), 0, 1};
    if (e->by > 0) {
        b.per_unit = 1 / e->by;
        b.near = 8 * DBL_EPSILON * (most * b.per_unit + e->count) +
                 DBL_TRUE_MIN * e->over * b.per_unit;
    }
    return b;
}

gpu_status gpu_count_bins(const gpu_matrix *m, const gpu_edges *edges,
                          int64_t *counts)
{
    gpu_device *d;
    TRY(check("histogram", m, &d));
    if (edges->count < 1 || edges->count > GPU_MOST_BINS)
        return gpu_fail(GPU_ARGUMENT, "histogram: %d bins: use 1 to %d",
                        edges->count, GPU_MOST_BINS);
    gpu_bins how = make_bins(edges);
    if (!isfinite(how.low) || !isfinite(edges->high) || how.low > edges->high)
        return gpu_fail(GPU_ARGUMENT,
                        "histogram: the range %g to %g is not one", how.low,
                        edges->high);
    if (!d->backend->bins)
        return lacks(d, "histogram");
    gpu_view v = gpu_view_of(m);
    return d->backend->bins(d->handle, &v, &how, counts);
}

/* --- blocks --------------------------------------------------------------- */

gpu_status gpu_blocks(const gpu_matrix *m, gpu_block_kind kind, int64_t rows,
                      int64_t cols, gpu_matrix *out)
{
    gpu_device *d;
    out->storage = NULL;
    TRY(check("blocks", m, &d));
    if (rows < 1 || rows > m->rows || cols < 1 || cols > m->cols)
        return gpu_fail(GPU_ARGUMENT,
                        "blocks: %s cannot be cut into %lld x %lld blocks",
                        gpu_shape_text(m), (long long)rows, (long long)cols);
    if (rows > GPU_MOST_BLOCKS / cols)
        return gpu_fail(GPU_ARGUMENT, "blocks: %lld x %lld: at most %d",
                        (long long)rows, (long long)cols, GPU_MOST_BLOCKS);
    if (!d->backend->blocks)
        return lacks(d, "blocks");
    int ndim = m->ndim == 1 ? 1 : 2;
    TRY(gpu_create(out, d, GPU_F64, ndim, rows, cols));
    gpu_view v = gpu_view_of(m), to = gpu_target_of(out);
    gpu_status status = d->backend->blocks(d->handle, kind, &v, &to);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}
