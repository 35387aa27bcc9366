/* Reductions across memory: the rows of a tile are added to, or compared with,
 * one row of results. */
#include <math.h>
#include <stdalign.h>
#include "reduce.h"

enum {
    PLAIN_ROWS = 32,      /* rows summed before the error is looked after */
    MOST_PARTIALS = 65536 /* of all columns together */
};

typedef struct reduction {
    gpu_cpu_plan plan;
    gpu_reduction kind;
    const gpu_view *out;
    int64_t rows_a_part, parts;
    gpu_cpu_partial *partials; /* columns x parts; NULL when parts is 1 */
} reduction;

static void start(gpu_reduction kind, double *r, int64_t n)
{
    double first = kind == GPU_REDUCE_sum   ? 0
                   : kind == GPU_REDUCE_min ? (double)INFINITY
                                            : -(double)INFINITY;
    for (int64_t j = 0; j < n; j++)
        r[j] = first;
}

static void fold_rows(const reduction *r, double *to, const void *x,
                      int64_t rows, int64_t cols)
{
    const gpu_cpu_vector *v = gpu_cpu_vectors;
    gpu_dtype t = r->plan.compute;
    size_t m = (size_t)rows, n = (size_t)cols;
    if (r->kind == GPU_REDUCE_sum)
        v->sum_rows[t](to, x, m, n);
    else if (r->kind == GPU_REDUCE_min)
        v->smallest_rows[t](to, x, m, n);
    else
        v->largest_rows[t](to, x, m, n);
}

/* Joins what plain folding gave for n columns, and starts again. */
static void join(const reduction *r, double *plain, gpu_cpu_partial *sums,
                 int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        gpu_cpu_partial p = {plain[j], 0, 0};
        gpu_cpu_merge(r->kind, &sums[j], &p);
    }
    start(r->kind, plain, n);
}

/* Rows first .. last - 1 of one column of tiles. */
static gpu_status fold_strip(const reduction *r, int64_t strip, int64_t first,
                             int64_t last, char *scratch, double *plain,
                             gpu_cpu_partial *sums)
{
    const gpu_cpu_plan *plan = &r->plan;
    gpu_cpu_tile tile = gpu_cpu_plan_tile(plan, strip);
    int64_t since = 0;
    start(r->kind, plain, tile.cols);
    for (int64_t j = 0; j < tile.cols; j++)
        sums[j] = gpu_cpu_nothing(r->kind);
    for (int64_t row = first; row < last; row += plan->tile_rows) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        tile.row = row;
        tile.rows = last - row < plan->tile_rows ? last - row : plan->tile_rows;
        const void *x = gpu_cpu_plan_run(plan, &tile, scratch, NULL);
        fold_rows(r, plain, x, tile.rows, tile.cols);
        since += tile.rows;
        if (since >= PLAIN_ROWS) {
            join(r, plain, sums, tile.cols);
            since = 0;
        }
    }
    if (since > 0)
        join(r, plain, sums, tile.cols);
    return GPU_OK;
}

static void finish_strip(const reduction *r, int64_t strip, int64_t part,
                         const gpu_cpu_partial *sums)
{
    gpu_cpu_tile tile = gpu_cpu_plan_tile(&r->plan, strip);
    double done[tile.cols];
    for (int64_t j = 0; j < tile.cols; j++)
        if (r->partials)
            r->partials[(tile.col + j) * r->parts + part] = sums[j];
        else
            done[j] = gpu_cpu_finish(r->kind, &sums[j]);
    if (!r->partials)
        gpu_cpu_store_lines(r->out, tile.col, tile.cols, done);
}

/* One tile holds the lines whole: what plain folding gives is the result. */
static void fold_short(const reduction *r, int64_t strip, char *scratch,
                       double *plain)
{
    gpu_cpu_tile tile = gpu_cpu_plan_tile(&r->plan, strip);
    const void *x = gpu_cpu_plan_run(&r->plan, &tile, scratch, NULL);
    start(r->kind, plain, tile.cols);
    fold_rows(r, plain, x, tile.rows, tile.cols);
    gpu_cpu_store_lines(r->out, tile.col, tile.cols, plain);
}

/* A unit of work is one part of the rows of one strip of columns. */
static gpu_status fold_units(void *context, int64_t first, int64_t last)
{
    const reduction *r = context;
    const gpu_cpu_plan *plan = &r->plan;
    alignas(64) char scratch[gpu_cpu_plan_scratch(plan) + 64];
    double plain[plan->tile_cols];
    gpu_cpu_partial sums[plan->tile_cols];
    gpu_cpu_plan_prepare(plan, scratch);
    for (int64_t unit = first; unit < last; unit++) {
        int64_t strip = unit / r->parts, part = unit - strip * r->parts;
        if (plan->rows <= PLAIN_ROWS && plan->tile_rows == plan->rows) {
            if (gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            fold_short(r, strip, scratch, plain);
            continue;
        }
        int64_t row = part * r->rows_a_part, end = row + r->rows_a_part;
        end = end < plan->rows ? end : plan->rows;
        gpu_status status =
            fold_strip(r, strip, row, end, scratch, plain, sums);
        if (status != GPU_OK)
            return status;
        finish_strip(r, strip, part, sums);
    }
    return GPU_OK;
}

static void join_parts(const reduction *r)
{
    for (int64_t j = 0; j < r->plan.cols; j++) {
        gpu_cpu_partial sum = gpu_cpu_nothing(r->kind);
        for (int64_t part = 0; part < r->parts; part++)
            gpu_cpu_merge(r->kind, &sum, &r->partials[j * r->parts + part]);
        double done = gpu_cpu_finish(r->kind, &sum);
        gpu_cpu_store_lines(r->out, j, 1, &done);
    }
}

/* Few strips are cut along their length too, by the shape alone. */
static void cut_rows(reduction *r)
{
    const gpu_cpu_plan *plan = &r->plan;
    int64_t blocks = plan->rows * plan->tile_cols / GPU_CPU_BLOCK / 64;
    int64_t parts = MOST_PARTIALS / plan->cols;
    parts = parts < 64 ? parts : 64;
    parts = parts < blocks ? parts : blocks;
    parts = parts > 1 ? parts : 1;
    int64_t size = (plan->rows + parts - 1) / parts;
    size = (size + plan->tile_rows - 1) / plan->tile_rows * plan->tile_rows;
    r->rows_a_part = size;
    r->parts = (plan->rows + size - 1) / size;
}

gpu_status gpu_cpu_reduce_down(const gpu_program *p, const gpu_view *in,
                               int axis, const gpu_view *out)
{
    reduction r = {.kind = (gpu_reduction)p->reduction, .out = out};
    gpu_cpu_plan_make(&r.plan, p, in, NULL, in->rows, in->cols,
                      axis == 1 ? GPU_CPU_KEEP : GPU_CPU_TURN);
    cut_rows(&r);
    void *room = NULL;
    size_t bytes = (size_t)(r.plan.cols * r.parts) * sizeof(gpu_cpu_partial);
    if (r.parts > 1 && gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    r.partials = room;
    gpu_status status =
        gpu_cpu_parallel(r.plan.tiles_across * r.parts,
                         r.plan.rows * r.plan.cols, fold_units, &r);
    if (status == GPU_OK && room)
        join_parts(&r);
    gpu_cpu_free(NULL, room, room ? bytes : 0);
    return status;
}
