/* Reductions: a program's results folded to one value a line, or to one.
 *
 * The reduced axis runs along the grid's rows ("lines"). Tiles fold into one
 * partial a line; partials are merged in the order of the tiles, in ranges
 * cut by the shape alone, so the bits do not depend on the threads. */
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include "reduce.h"

enum {
    MAX_PARTS = 1024, /* partials of a reduction to one value */
    TILES_A_PART = 64,
    FEW_LINES = 64, /* fewer lines than this are cut along their length */
    LINE_PARTS = 64
};

typedef struct reduction {
    gpu_cpu_plan plan;
    gpu_reduction kind;
    int whole;           /* to one value */
    const gpu_view *out; /* 1 x 1, 1 x n or m x 1 */
    int64_t tiles_a_part, parts;
    gpu_cpu_partial *partials; /* parts of them (whole), or lines x parts */
} reduction;

static double element(gpu_dtype t, const void *x, int64_t i)
{
    return t == GPU_F64 ? ((const double *)x)[i] : ((const float *)x)[i];
}

/* The plain product of a block, unless it came near the ends of the range. */
static gpu_cpu_partial fold_product(gpu_dtype t, const void *x, int64_t n)
{
    double fast = gpu_cpu_vectors->prod[t](x, (size_t)n);
    gpu_cpu_scaled s = {1, 0};
    if (fabs(fast) > 1e-200 && fabs(fast) < 1e200)
        gpu_cpu_scale(&s, fast);
    else
        for (int64_t i = 0; i < n; i++)
            gpu_cpu_scale(&s, element(t, x, i));
    return (gpu_cpu_partial){s.mantissa, 0, s.exponent};
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
                 int64_t step, gpu_cpu_partial *into)
{
    gpu_dtype t = r->plan.compute;
    gpu_cpu_partial p = {0, 0, 0};
    if (r->kind == GPU_REDUCE_sum) {
        p.value = gpu_cpu_vectors->sum[t](x, (size_t)n);
    } else if (r->kind == GPU_REDUCE_prod) {
        p = fold_product(t, x, n);
    } else {
        p.value = gpu_cpu_wants_smallest(r->kind)
                      ? gpu_cpu_vectors->smallest[t](x, (size_t)n)
                      : gpu_cpu_vectors->largest[t](x, (size_t)n);
        if (gpu_cpu_wants_place(r->kind)) {
            gpu_cpu_partial first = {p.value, 0, from};
            if (!gpu_cpu_beats(r->kind, &first, into))
                return;
            p.place = from + step * find_first(t, x, n, p.value);
        }
    }
    gpu_cpu_merge(r->kind, into, &p);
}

/* Folds a tile into one partial for all its lines, or one for each. */
static void fold_tile(const reduction *r, int64_t number, char *scratch,
                      gpu_cpu_partial *into)
{
    const gpu_cpu_plan *plan = &r->plan;
    gpu_cpu_tile tile = gpu_cpu_plan_tile(plan, number);
    size_t line = (size_t)tile.cols * gpu_cpu_size(plan->compute);
    const char *x = gpu_cpu_plan_run(plan, &tile, scratch, NULL);
    if (r->whole && tile.cols == plan->cols && !gpu_cpu_wants_place(r->kind)) {
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
        gpu_cpu_partial sum = gpu_cpu_nothing(r->kind);
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
    gpu_cpu_partial partials[r->parts + 1];
    r->partials = partials;
    gpu_status status = gpu_cpu_parallel(r->parts, r->plan.rows * r->plan.cols,
                                         fold_whole_range, r);
    if (status != GPU_OK)
        return status;
    gpu_cpu_partial sum = gpu_cpu_nothing(r->kind);
    for (int64_t part = 0; part < r->parts; part++)
        gpu_cpu_merge(r->kind, &sum, &partials[part]);
    gpu_cpu_store_one(r->out, 0, 0, gpu_cpu_finish(r->kind, &sum));
    return GPU_OK;
}

/* A unit of work is one part of a band of tile_rows lines. */
static gpu_status fold_bands(void *context, int64_t first, int64_t last)
{
    const reduction *r = context;
    const gpu_cpu_plan *plan = &r->plan;
    alignas(64) char scratch[gpu_cpu_plan_scratch(plan) + 64];
    gpu_cpu_partial sums[plan->tile_rows];
    double done[plan->tile_rows];
    gpu_cpu_plan_prepare(plan, scratch);
    for (int64_t unit = first; unit < last; unit++) {
        int64_t band = unit / r->parts, part = unit - band * r->parts;
        int64_t line = band * plan->tile_rows;
        int64_t lines = plan->rows - line < plan->tile_rows ? plan->rows - line
                                                            : plan->tile_rows;
        int64_t tile = part * r->tiles_a_part;
        int64_t end = tile + r->tiles_a_part;
        end = end < plan->tiles_across ? end : plan->tiles_across;
        for (int64_t i = 0; i < lines; i++)
            sums[i] = gpu_cpu_nothing(r->kind);
        for (; tile < end; tile++) {
            if (gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            fold_tile(r, band * plan->tiles_across + tile, scratch, sums);
        }
        for (int64_t i = 0; i < lines; i++)
            if (r->partials)
                r->partials[(line + i) * r->parts + part] = sums[i];
            else
                done[i] = gpu_cpu_finish(r->kind, &sums[i]);
        if (!r->partials)
            gpu_cpu_store_lines(r->out, line, lines, done);
    }
    return GPU_OK;
}

static void join_parts(const reduction *r)
{
    for (int64_t line = 0; line < r->plan.rows; line++) {
        gpu_cpu_partial sum = gpu_cpu_nothing(r->kind);
        for (int64_t part = 0; part < r->parts; part++)
            gpu_cpu_merge(r->kind, &sum, &r->partials[line * r->parts + part]);
        double done = gpu_cpu_finish(r->kind, &sum);
        gpu_cpu_store_lines(r->out, line, 1, &done);
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
    gpu_cpu_partial partials[r->parts > 1 ? plan->rows * r->parts : 1];
    if (r->parts > 1)
        r->partials = partials;
    gpu_status status = gpu_cpu_parallel(
        bands * r->parts, plan->rows * plan->cols, fold_bands, r);
    if (status == GPU_OK && r->partials)
        join_parts(r);
    return status;
}

/* Is it better to fold many lines side by side than one after the other?
 * When the reduced axis crosses memory, and when it is short. */
static int is_down(const gpu_view *in, int axis)
{
    enum { SHORT_LINE = 32, MANY_LINES = 16 };
    gpu_view v = axis == 1 ? *in : gpu_cpu_turned(*in);
    if (v.rows <= SHORT_LINE && v.cols >= GPU_CPU_BLOCK)
        return 1;
    return v.cols >= MANY_LINES && llabs(v.col_stride) == 1 &&
           llabs(v.row_stride) > 1;
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
        order = gpu_cpu_wants_place(r.kind) ? GPU_CPU_ROW_MAJOR : GPU_CPU_ANY;
    r.out = out;
    int64_t rows = p->inputs ? in[0].rows : 1;
    int64_t cols = p->inputs ? in[0].cols : 1;
    if (rows == 0 || cols == 0) {
        gpu_cpu_partial none = gpu_cpu_nothing(r.kind);
        none.value = gpu_cpu_is_extreme(r.kind) ? (double)NAN : none.value;
        if (r.whole)
            gpu_cpu_store_one(out, 0, 0, gpu_cpu_finish(r.kind, &none));
        return GPU_OK;
    }
    if (axis != 0 && is_down(in, axis) && r.kind != GPU_REDUCE_prod &&
        !gpu_cpu_wants_place(r.kind))
        return gpu_cpu_reduce_down(p, in, axis, out);
    gpu_cpu_plan_make(&r.plan, p, in, NULL, rows, cols, order);
    return r.whole ? reduce_whole(&r) : reduce_lines(&r);
}
