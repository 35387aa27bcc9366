/* Reductions: a program's results folded to one value a line, or to one.
 *
 * The reduced axis runs along the grid's rows ("lines"). Tiles fold into one
 * partial a line; partials are merged in the order of the tiles, in ranges
 * cut by the shape alone, so the bits do not depend on the threads. */
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include "plan.h"

enum {
    MAX_PARTS = 1024, /* partials of a reduction to one value */
    TILES_A_PART = 64,
    FEW_LINES = 64, /* fewer lines than this are cut along their length */
    LINE_PARTS = 64
};

typedef struct partial {
    double value;    /* the sum, the extreme, the mantissa of a product */
    double rest;     /* what rounding took from the sum */
    int64_t place;   /* of the extreme; the exponent of a product */
} partial;

typedef struct reduction {
    gpu_cpu_plan plan;
    gpu_reduction kind;
    int whole;           /* to one value */
    const gpu_view *out; /* 1 x 1, 1 x n or m x 1 */
    int64_t tiles_a_part, parts;
    partial *partials; /* parts of them (whole), or lines x parts */
} reduction;

static int is_extreme(gpu_reduction kind)
{
    return kind != GPU_REDUCE_sum && kind != GPU_REDUCE_prod;
}

static int wants_smallest(gpu_reduction kind)
{
    return kind == GPU_REDUCE_min || kind == GPU_REDUCE_argmin;
}

static int wants_place(gpu_reduction kind)
{
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
}

static partial nothing(gpu_reduction kind)
{
    partial p = {0, 0, 0};
    if (kind == GPU_REDUCE_prod)
        p.value = 1;
    if (is_extreme(kind))
        p.place = -1;
    return p;
}

/* Knuth, The Art of Computer Programming 2, 4.2.2: the sum and its error. */
static void merge_sum(partial *into, double value, double rest)
{
    double s = into->value + value;
    double b = s - into->value;
    double error = (into->value - (s - b)) + (value - b);
    into->value = s;
    into->rest += isfinite(error) ? error + rest : 0;
}

static int beats(gpu_reduction kind, const partial *a, const partial *b)
{
    int a_nan = isnan(a->value), b_nan = isnan(b->value);
    if (b->place < 0 || a_nan != b_nan)
        return b->place < 0 || a_nan;
    if (a_nan || a->value == b->value)
        return a->place < b->place;
    return wants_smallest(kind) ? a->value < b->value : a->value > b->value;
}

static void merge(gpu_reduction kind, partial *into, const partial *p)
{
    if (kind == GPU_REDUCE_sum) {
        merge_sum(into, p->value, p->rest);
    } else if (kind == GPU_REDUCE_prod) {
        gpu_cpu_scaled s = {into->value, into->place + p->place};
        gpu_cpu_scale(&s, p->value);
        into->value = s.mantissa;
        into->place = s.exponent;
    } else if (p->place >= 0 && beats(kind, p, into)) {
        *into = *p;
    }
}

static double finish(gpu_reduction kind, const partial *p)
{
    if (kind == GPU_REDUCE_sum)
        return p->value + p->rest;
    if (kind == GPU_REDUCE_prod)
        return gpu_cpu_unscale((gpu_cpu_scaled){p->value, p->place});
    return wants_place(kind) ? (double)p->place : p->value;
}

static double element(gpu_dtype t, const void *x, int64_t i)
{
    return t == GPU_F64 ? ((const double *)x)[i] : ((const float *)x)[i];
}

/* The plain product of a block, unless it came near the ends of the range. */
static partial fold_product(gpu_dtype t, const void *x, int64_t n)
{
    double fast = gpu_cpu_vectors->prod[t](x, (size_t)n);
    gpu_cpu_scaled s = {1, 0};
    if (fabs(fast) > 1e-200 && fabs(fast) < 1e200)
        gpu_cpu_scale(&s, fast);
    else
        for (int64_t i = 0; i < n; i++)
            gpu_cpu_scale(&s, element(t, x, i));
    return (partial){s.mantissa, 0, s.exponent};
}

static int64_t find_first(gpu_dtype t, const void *x, int64_t n, double value)
{
    for (int64_t i = 0; i < n; i++) {
        double e = element(t, x, i);
        if (e == value || (isnan(value) && isnan(e)))
            return i;
    }
    return 0;
}

/* Folds n elements of a line that start at `from`; step is what one element
 * further means for the place. */
static void fold(const reduction *r, const void *x, int64_t n, int64_t from,
                 int64_t step, partial *into)
{
    gpu_dtype t = r->plan.compute;
    partial p = {0, 0, 0};
    if (r->kind == GPU_REDUCE_sum) {
        p.value = gpu_cpu_vectors->sum[t](x, (size_t)n);
    } else if (r->kind == GPU_REDUCE_prod) {
        p = fold_product(t, x, n);
    } else {
        p.value = wants_smallest(r->kind)
                      ? gpu_cpu_vectors->smallest[t](x, (size_t)n)
                      : gpu_cpu_vectors->largest[t](x, (size_t)n);
        if (wants_place(r->kind)) {
            partial first = {p.value, 0, from};
            if (!beats(r->kind, &first, into))
                return;
            p.place = from + step * find_first(t, x, n, p.value);
        }
    }
    merge(r->kind, into, &p);
}

/* Folds a tile into one partial for all its lines, or one for each. */
static void fold_tile(const reduction *r, int64_t number, char *scratch,
                      partial *into)
{
    const gpu_cpu_plan *plan = &r->plan;
    gpu_cpu_tile tile = gpu_cpu_plan_tile(plan, number);
    size_t line = (size_t)tile.cols * gpu_cpu_size(plan->compute);
    const char *x = gpu_cpu_plan_run(plan, &tile, scratch, NULL);
    if (r->whole && tile.cols == plan->cols && !wants_place(r->kind)) {
        fold(r, x, tile.rows * tile.cols, 0, 0, into);
        return;
    }
    for (int64_t i = 0; i < tile.rows; i++) {
        int64_t from = tile.col, step = 1;
        if (r->whole && plan->turned) {
            from = tile.col * plan->rows + tile.row + i;
            step = plan->rows;
        } else if (r->whole) {
            from += (tile.row + i) * plan->cols;
        }
        fold(r, x + (size_t)i * line, tile.cols, from, step,
             into + (r->whole ? 0 : i));
    }
}

static gpu_status fold_whole_range(void *context, int64_t first, int64_t last)
{
    const reduction *r = context;
    alignas(64) char scratch[gpu_cpu_plan_scratch(&r->plan) + 64];
    gpu_cpu_plan_prepare(&r->plan, scratch);
    for (int64_t part = first; part < last; part++) {
        int64_t tile = part * r->tiles_a_part;
        int64_t end = tile + r->tiles_a_part;
        end = end < r->plan.tiles ? end : r->plan.tiles;
        partial sum = nothing(r->kind);
        for (; tile < end; tile++) {
            if (gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            fold_tile(r, tile, scratch, &sum);
        }
        r->partials[part] = sum;
    }
    return GPU_OK;
}

static gpu_status reduce_whole(reduction *r)
{
    int64_t tiles = r->plan.tiles;
    r->tiles_a_part = (tiles + MAX_PARTS - 1) / MAX_PARTS;
    if (r->tiles_a_part < TILES_A_PART)
        r->tiles_a_part = TILES_A_PART;
    r->parts = (tiles + r->tiles_a_part - 1) / r->tiles_a_part;
    partial partials[r->parts + 1];
    r->partials = partials;
    gpu_status status =
        gpu_cpu_parallel(r->parts, r->plan.rows * r->plan.cols,
                         fold_whole_range, r);
    if (status != GPU_OK)
        return status;
    partial sum = nothing(r->kind);
    for (int64_t part = 0; part < r->parts; part++)
        merge(r->kind, &sum, &partials[part]);
    gpu_cpu_store_one(r->out, 0, 0, finish(r->kind, &sum));
    return GPU_OK;
}

/* Stores the final values of lines first .. first + n - 1. */
static void store_lines(const reduction *r, int64_t first, int64_t n,
                        const double *value)
{
    gpu_view to = r->out->cols == 1 ? gpu_cpu_turned(*r->out) : *r->out;
    to = gpu_cpu_part(&to, 0, first, 1, n);
    gpu_view from = {(void *)(uintptr_t)value, GPU_F64, 1, n, n, 1};
    gpu_cpu_convert(&from, &to);
}

/* A unit of work is one part of a band of tile_rows lines. */
static gpu_status fold_bands(void *context, int64_t first, int64_t last)
{
    const reduction *r = context;
    const gpu_cpu_plan *plan = &r->plan;
    alignas(64) char scratch[gpu_cpu_plan_scratch(plan) + 64];
    partial sums[plan->tile_rows];
    double done[plan->tile_rows];
    gpu_cpu_plan_prepare(plan, scratch);
    for (int64_t unit = first; unit < last; unit++) {
        int64_t band = unit / r->parts, part = unit - band * r->parts;
        int64_t line = band * plan->tile_rows;
        int64_t lines = plan->rows - line < plan->tile_rows
                            ? plan->rows - line
                            : plan->tile_rows;
        int64_t tile = part * r->tiles_a_part;
        int64_t end = tile + r->tiles_a_part;
        end = end < plan->tiles_across ? end : plan->tiles_across;
        for (int64_t i = 0; i < lines; i++)
            sums[i] = nothing(r->kind);
        for (; tile < end; tile++) {
            if (gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            fold_tile(r, band * plan->tiles_across + tile, scratch, sums);
        }
        for (int64_t i = 0; i < lines; i++)
            if (r->partials)
                r->partials[(line + i) * r->parts + part] = sums[i];
            else
                done[i] = finish(r->kind, &sums[i]);
        if (!r->partials)
            store_lines(r, line, lines, done);
    }
    return GPU_OK;
}

static void join_parts(const reduction *r)
{
    for (int64_t line = 0; line < r->plan.rows; line++) {
        partial sum = nothing(r->kind);
        for (int64_t part = 0; part < r->parts; part++)
            merge(r->kind, &sum, &r->partials[line * r->parts + part]);
        double done = finish(r->kind, &sum);
        store_lines(r, line, 1, &done);
    }
}

static gpu_status reduce_lines(reduction *r)
{
    const gpu_cpu_plan *plan = &r->plan;
    int64_t bands = (plan->rows + plan->tile_rows - 1) / plan->tile_rows;
    int64_t across = plan->tiles_across;
    r->tiles_a_part = across;
    r->parts = 1;
    r->partials = NULL;
    if (plan->rows < FEW_LINES && across >= 2 * TILES_A_PART) {
        r->tiles_a_part = (across + LINE_PARTS - 1) / LINE_PARTS;
        r->parts = (across + r->tiles_a_part - 1) / r->tiles_a_part;
    }
    partial partials[r->parts > 1 ? plan->rows * r->parts : 1];
    if (r->parts > 1)
        r->partials = partials;
    gpu_status status = gpu_cpu_parallel(
        bands * r->parts, plan->rows * plan->cols, fold_bands, r);
    if (status == GPU_OK && r->partials)
        join_parts(r);
    return status;
}

gpu_status gpu_cpu_reduce(void *device, const gpu_program *p,
                          const gpu_view *in, int axis, const gpu_view *out)
{
    (void)device;
    gpu_cpu_order order = axis == 1 ? GPU_CPU_TURN : GPU_CPU_KEEP;
    reduction r;
    r.kind = (gpu_reduction)p->reduction;
    r.whole = axis == 0;
    if (r.whole)
        order = wants_place(r.kind) ? GPU_CPU_ROW_MAJOR : GPU_CPU_ANY;
    r.out = out;
    int64_t rows = p->inputs ? in[0].rows : 1;
    int64_t cols = p->inputs ? in[0].cols : 1;
    if (rows == 0 || cols == 0) {
        partial none = nothing(r.kind);
        none.value = is_extreme(r.kind) ? (double)NAN : none.value;
        if (r.whole)
            gpu_cpu_store_one(out, 0, 0, finish(r.kind, &none));
        return GPU_OK;
    }
    gpu_cpu_plan_make(&r.plan, p, in, NULL, rows, cols, order);
    return r.whole ? reduce_whole(&r) : reduce_lines(&r);
}
