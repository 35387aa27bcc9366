/* Looking at a matrix: surveys, histograms and block means. The checks, and
 * what is worked out from the backend's numbers. */
#include "survey.h"
#include "core.h"

#include <float.h>
#include <math.h>
#include <string.h>
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

static gpu_status survey_whole(gpu_device *d, const gpu_matrix *m,
                               gpu_survey *out)
{
    gpu_view v = gpu_view_of(m);
    TRY(d->backend->survey(d->handle, &v, 1, out));
    double scale = safe_scale(m, out);
    if (scale != 1)
        TRY(d->backend->survey(d->handle, &v, scale, out));
    finish(out, scale);
    return GPU_OK;
}

static gpu_status only_block(const gpu_matrix *m, gpu_block_kind kind,
                             double *out)
{
    gpu_matrix block;
    TRY(gpu_blocks(m, kind, 1, 1, &block));
    gpu_status status = gpu_get(&block, 0, 0, out);
    gpu_release(&block);
    return status;
}

/* Of a square matrix all of whose rows, or columns, are the core: elements
 * that face each other are any two of its. */
static gpu_status find_asymmetry(const gpu_matrix *core, gpu_survey *s)
{
    double low = s->min, high = s->max;
    s->asymmetry = 0;
    if (gpu_size(core) == 1 || s->nan == gpu_size(core))
        return GPU_OK;
    if (s->inf > 0) {
        TRY(only_block(core, GPU_BLOCK_MIN, &low));
        TRY(only_block(core, GPU_BLOCK_MAX, &high));
    }
    if (s->nan > 0)
        s->asymmetry = INFINITY;
    else if (low < high)
        s->asymmetry = high - low;
    if (core->dtype == GPU_F32)
        s->asymmetry = (float)s->asymmetry; /* as A - A.T has it */
    return GPU_OK;
}

static int64_t place_in(const gpu_matrix *m, const gpu_matrix *core,
                        int64_t place)
{
    return place < 0 ? place
                     : place / core->cols * m->cols + place % core->cols;
}

/* From what the core is to what m is. */
static gpu_status repeat_survey(const gpu_matrix *m, const gpu_matrix *core,
                                int64_t times, gpu_survey *s)
{
    double once = (double)s->finite, all = once * (double)times;
    if (m->rows == m->cols)
        TRY(find_asymmetry(core, s));
    s->finite *= times;
    s->zeros *= times;
    s->nan *= times;
    s->inf *= times;
    s->subnormal *= times;
    s->min_at = place_in(m, core, s->min_at);
    s->max_at = place_in(m, core, s->max_at);
    s->odd_at = place_in(m, core, s->odd_at);
    if (s->lower != GPU_NO_BAND)
        s->lower += m->rows - core->rows;
    if (s->upper != GPU_NO_BAND)
        s->upper += m->cols - core->cols;
    if (s->finite == 0)
        return GPU_OK;
    s->squares *= (double)times;
    s->norm *= sqrt((double)times);
    s->std =
        once > 1 ? s->std * sqrt((double)times * (once - 1) / (all - 1)) : 0;
    return GPU_OK;
}

gpu_status gpu_take_survey(const gpu_matrix *m, gpu_survey *out)
{
    gpu_device *d;
    gpu_matrix core;
    TRY(check("survey", m, &d));
    if (!d->backend->survey)
        return lacks(d, "survey");
    int64_t times = gpu_without_repeats(m, &core);
    if (times == 1)
        return survey_whole(d, m, out);
    TRY(survey_whole(d, &core, out));
    return repeat_survey(m, &core, times, out);
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
    gpu_matrix core;
    int64_t times = gpu_without_repeats(m, &core);
    gpu_view v = gpu_view_of(&core);
    TRY(d->backend->bins(d->handle, &v, &how, counts));
    for (int i = 0; i < edges->count; i++)
        counts[i] *= times;
    return GPU_OK;
}

static gpu_status fill_histogram(gpu_device *d, const gpu_matrix *m,
                                 const gpu_edges *edges, gpu_matrix *counts)
{
    int64_t found[GPU_MOST_BINS] = {0};
    gpu_operation op = {.name = "histogram",
                        .kernel = "histogram",
                        .device = d,
                        .result = counts,
                        .extent = m,
                        .bytes = (double)gpu_bytes(m)};
    gpu_begin_operation(&op);
    gpu_status status = gpu_count_bins(m, edges, found);
    TRY(gpu_end_operation(&op, status));
    for (int i = 0; i < edges->count; i++) {
        double count = (double)found[i];
        memcpy(&found[i], &count, sizeof count); /* as elements are */
    }
    return gpu_upload(counts, found);
}

gpu_status gpu_histogram(const gpu_matrix *m, const gpu_edges *edges,
                         gpu_matrix *counts)
{
    gpu_device *d;
    counts->storage = NULL;
    TRY(gpu_check_operands("histogram", &m, 1, &d));
    TRY(gpu_create_zeros(counts, d, GPU_F64, 1, edges->count, 1));
    if (m->rows == 0 || m->cols == 0)
        return GPU_OK;
    gpu_status status = fill_histogram(d, m, edges, counts);
    if (status != GPU_OK)
        gpu_release(counts);
    return status;
}

/* --- blocks --------------------------------------------------------------- */

static gpu_status take_blocks(gpu_device *d, const gpu_matrix *m,
                              gpu_block_kind kind, int64_t rows, int64_t cols,
                              gpu_matrix *out)
{
    int ndim = m->ndim == 1 ? 1 : 2;
    TRY(gpu_create(out, d, GPU_F64, ndim, rows, cols));
    gpu_view v = gpu_view_of(m), to = gpu_target_of(out);
    gpu_status status = d->backend->blocks(d->handle, kind, &v, &to);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* Blocks of what is repeated are repeated. */
static gpu_status repeat_blocks(gpu_device *d, const gpu_matrix *m,
                                const gpu_matrix *blocks, int64_t rows,
                                int64_t cols, gpu_matrix *out)
{
    TRY(gpu_create(out, d, GPU_F64, m->ndim == 1 ? 1 : 2, rows, cols));
    gpu_status status = gpu_copy(blocks, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_blocks(const gpu_matrix *m, gpu_block_kind kind, int64_t rows,
                      int64_t cols, gpu_matrix *out)
{
    gpu_device *d;
    gpu_matrix core, blocks;
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
    if (gpu_without_repeats(m, &core) == 1)
        return take_blocks(d, m, kind, rows, cols, out);
    TRY(take_blocks(d, &core, kind, core.rows == m->rows ? rows : 1,
                    core.cols == m->cols ? cols : 1, &blocks));
    gpu_status status = repeat_blocks(d, m, &blocks, rows, cols, out);
    gpu_release(&blocks);
    return status;
}
