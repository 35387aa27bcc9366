/* Reductions: a program's results folded to one value a line, or to one; and
 * running sums and products.
 *
 * Tiles fold into partial results, which are joined in an order that the shape
 * alone fixes, so that the bits do not depend on the threads. Where the reduced
 * axis runs along memory lines are folded one after the other; where it crosses
 * memory, side by side. */
#include <math.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"
#include "op_list.h"
#include "plan.h"

/* --- products that must not overflow ----------------------------------------
 * Kept as mantissa and exponent, they overflow only if their final value
 * does. */

/* The factor loses its exponent first: a small one times the mantissa would be
 * rounded. */
void gpu_cpu_scale(gpu_cpu_scaled *product, double factor)
{
    int exponent, more;
    double mantissa = frexp(factor, &more);
    product->mantissa = frexp(product->mantissa * mantissa, &exponent);
    if (product->mantissa == 0 || !isfinite(product->mantissa))
        exponent = more = 0;
    product->exponent += exponent + more;
}

double gpu_cpu_unscale(gpu_cpu_scaled product)
{
    int64_t e = product.exponent;
    e = e > 5000 ? 5000 : e < -5000 ? -5000 : e;
    return ldexp(product.mantissa, (int)e);
}

/* --- partial results and how they join ------------------------------------ */

typedef struct partial {
    double value; /* the sum, the extreme, the mantissa of a product; the
                     squared distances from the mean */
    double rest;  /* what rounding took from the sum; the mean from origin on */
    int64_t place; /* of the extreme, -1 for none; a product's exponent; how
                      many elements there are a mean of */
    double origin; /* one of those elements */
} partial;

static int is_sum(gpu_reduction kind)
{
    return kind == GPU_REDUCE_sum || kind == GPU_REDUCE_SQUARES;
}

static int is_extreme(gpu_reduction kind)
{
    return !is_sum(kind) && kind != GPU_REDUCE_prod &&
           kind != GPU_REDUCE_SPREAD;
}

static int wants_smallest(gpu_reduction kind)
{
    return kind == GPU_REDUCE_min || kind == GPU_REDUCE_argmin;
}

static int wants_place(gpu_reduction kind)
{
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
}

/* That of no numbers, where NaN is left out: all others are beyond it. */
static double extreme_of_none(gpu_reduction kind)
{
    return wants_smallest(kind) ? (double)INFINITY : -(double)INFINITY;
}

/* What merging changes nothing with. */
static partial nothing(gpu_reduction kind)
{
    partial p = {0, 0, 0, 0};
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

/* Of n elements, from the sums of their distances from `origin`, which is one
 * of them, and of their squares. The square of that one's distance from the
 * mean being part of what is left, at most a factor of n + 1 cancels. */
static partial moments(double origin, double sum, double squares, int64_t n)
{
    partial p = {squares, sum / (double)n, n, origin};
    if (isfinite(squares))
        p.value = fmax(squares - sum * p.rest, 0);
    return p;
}

/* Source: Chan, Golub and LeVeque, Algorithms for computing the sample
 * variance: analysis and recommendations, 1983. Means are kept as distances
 * from an element, so that they have as many digits as the squares need,
 * wherever the elements lie. Squares that are infinite or NaN stay so. */
static void merge_moments(partial *into, const partial *p)
{
    double n = (double)into->place, m = (double)p->place;
    double squares = into->value + p->value;
    if (into->place == 0 || p->place == 0) {
        *into = p->place ? *p : *into;
        return;
    }
    into->place += p->place;
    into->value = squares;
    if (!isfinite(squares))
        return;
    double apart = (p->origin - into->origin) + (p->rest - into->rest);
    double share = m / (n + m);
    into->rest += apart * share;
    into->value += apart * apart * (n * share);
}

/* Is a the extreme of the two? NaN is; of equal ones the first. */
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
    if (is_sum(kind)) {
        merge_sum(into, p->value, p->rest);
    } else if (kind == GPU_REDUCE_SPREAD) {
        merge_moments(into, p);
    } else if (kind == GPU_REDUCE_prod) {
        gpu_cpu_scaled s = {into->value, into->place + p->place};
        gpu_cpu_scale(&s, p->value);
        into->value = s.mantissa;
        into->place = s.exponent;
    } else if (into->place < 0 || (p->place >= 0 && beats(kind, p, into))) {
        *into = *p;
    }
}

static double finish(gpu_reduction kind, const partial *p)
{
    if (is_sum(kind))
        return p->value + p->rest;
    if (kind == GPU_REDUCE_prod)
        return gpu_cpu_unscale((gpu_cpu_scaled){p->value, p->place});
    return wants_place(kind) ? (double)p->place : p->value;
}

/* Stores the final values of lines first .. first + n - 1 of a result that is
 * a row or a column. */
static void store_lines(const gpu_view *out, int64_t first, int64_t n,
                        const double *value)
{
    gpu_view to = out->cols == 1 ? gpu_cpu_turned(*out) : *out;
    to = gpu_cpu_part(&to, 0, first, 1, n);
    gpu_view from = {(void *)(uintptr_t)value, GPU_F64, 1, n, n, 1};
    gpu_cpu_convert(&from, &to);
}

/* The results of lines that were cut into parts, whose partials lie side by
 * side: they are merged in their order. */
static void join_parts(gpu_reduction kind, const partial *partials,
                       int64_t lines, int64_t parts, const gpu_view *out)
{
    for (int64_t line = 0; line < lines; line++) {
        partial sum = nothing(kind);
        for (int64_t part = 0; part < parts; part++)
            merge(kind, &sum, &partials[line * parts + part]);
        double done = finish(kind, &sum);
        store_lines(out, line, 1, &done);
    }
}

/* --- down the columns -------------------------------------------------------
 * Reductions across memory: the rows of a tile are added to, or compared with,
 * one row of results. */

enum { MOST_PARTIALS = 65536 /* of all columns together */ };

typedef struct reduction_down {
    gpu_cpu_plan plan;
    gpu_reduction kind;
    const gpu_view *out;
    int64_t rows_a_part, parts;
    partial *partials; /* columns x parts; NULL when parts is 1 */
    int is_direct;     /* the elements are folded where they lie */
    int skips_nan;     /* of extremes */
    int64_t band;      /* rows folded at a time */
} reduction_down;

/* What rows of a strip of columns folded to: sums are double, extremes of the
 * plan's type, their places integers as wide as that. */
typedef struct row_results {
    double *value;
    int64_t *place;
    double *origin, *sum; /* of the distances that value has the squares of */
    int64_t rows;
    int is_begun;
} row_results;

/* Rows of a strip that are folded before the flag is looked at. */
enum { DIRECT_ROWS = 256 };

/* Rows added before the error is looked after; those of f32 leave half the
 * bits of a sum unused. */
static int64_t plain_rows(const reduction_down *r)
{
    if (is_extreme(r->kind))
        return INT64_MAX;
    if (r->kind == GPU_REDUCE_SPREAD)
        return 1024;
    return r->kind == GPU_REDUCE_sum && r->plan.compute == GPU_F32
               ? 1024
               : DIRECT_ROWS;
}

static double element(gpu_dtype t, const void *x, int64_t i)
{
    return t == GPU_F64 ? ((const double *)x)[i] : ((const float *)x)[i];
}

static void fill(gpu_dtype t, void *x, int64_t n, double value)
{
    for (int64_t i = 0; i < n; i++)
        if (t == GPU_F64)
            ((double *)x)[i] = value;
        else
            ((float *)x)[i] = (float)value;
}

/* The first row is what the extremes of rows begin with, if NaN among them
 * counts. */
static void begin_rows(const reduction_down *r, row_results *to, const void *x,
                       int64_t row, int64_t cols)
{
    gpu_dtype t = r->plan.compute;
    to->is_begun = 1;
    to->rows = 0;
    if (!is_extreme(r->kind)) {
        memset(to->value, 0, (size_t)cols * sizeof *to->value);
        if (r->kind != GPU_REDUCE_SPREAD)
            return;
        memset(to->sum, 0, (size_t)cols * sizeof *to->sum);
        for (int64_t j = 0; j < cols; j++)
            to->origin[j] = element(t, x, j);
        return;
    }
    if (r->skips_nan)
        fill(t, to->value, cols, extreme_of_none(r->kind));
    else
        memcpy(to->value, x, (size_t)cols * gpu_cpu_size(t));
    for (int64_t j = 0; wants_place(r->kind) && j < cols; j++)
        if (t == GPU_F64)
            to->place[j] = row;
        else
            ((int32_t *)to->place)[j] = (int32_t)row;
}

/* Where squares overflowed, or had no chance: a NaN or an infinity among the
 * elements makes them NaN. */
static void tell_overflow(gpu_dtype t, double *squares, const void *x,
                          int64_t step, int64_t n)
{
    for (int64_t i = 0; i < n && !isfinite(*squares); i++)
        if (!isfinite(element(t, x, i * step))) {
            *squares = (double)NAN;
            return;
        }
}

static void fold_moments(const reduction_down *r, row_results *to,
                         const void *x, int64_t step, int64_t rows,
                         int64_t cols)
{
    gpu_dtype t = r->plan.compute;
    gpu_cpu_vectors->moments_rows[t](to->origin, to->sum, to->value, x, step,
                                     (size_t)rows, (size_t)cols);
    for (int64_t j = 0; j < cols; j++)
        if (!isfinite(to->value[j]))
            tell_overflow(t, &to->value[j],
                          (const char *)x + (size_t)j * gpu_cpu_size(t), step,
                          rows);
}

/* Rows of x, of which the first is the `row`-th of the lines. */
static void fold_rows(const reduction_down *r, row_results *to, const void *x,
                      int64_t step, int64_t row, int64_t rows, int64_t cols)
{
    const gpu_cpu_vector *v = gpu_cpu_vectors;
    gpu_dtype t = r->plan.compute;
    size_t m = (size_t)rows, n = (size_t)cols;
    if (!to->is_begun)
        begin_rows(r, to, x, row, cols);
    to->rows += rows;
    if (is_sum(r->kind))
        (r->kind == GPU_REDUCE_sum ? v->sum_rows : v->squares_rows)[t](
            to->value, x, step, m, n);
    else if (r->kind == GPU_REDUCE_SPREAD)
        fold_moments(r, to, x, step, rows, cols);
    else if (wants_place(r->kind))
        (wants_smallest(r->kind) ? v->smallest_places : v->largest_places)[t](
            to->value, to->place, x, step, (size_t)row, m, n);
    else if (r->skips_nan)
        (wants_smallest(r->kind)
             ? v->smallest_number_rows
             : v->largest_number_rows)[t](to->value, x, step, m, n);
    else
        (wants_smallest(r->kind) ? v->smallest_rows : v->largest_rows)[t](
            to->value, x, step, m, n);
}

/* A tile of the plan or, where no program stands between, as many rows of the
 * operand itself. */
static void fold_tile_down(const reduction_down *r, row_results *to,
                           const gpu_cpu_tile *tile, char *scratch)
{
    const gpu_view *v = &r->plan.in[0];
    const char *x =
        r->is_direct
            ? (const char *)v->data + (tile->row * v->row_stride + tile->col) *
                                          (int64_t)gpu_cpu_size(v->dtype)
            : gpu_cpu_plan_run(&r->plan, tile, scratch, NULL);
    fold_rows(r, to, x, r->is_direct ? v->row_stride : tile->cols, tile->row,
              tile->rows, tile->cols);
}

static partial result_of(const reduction_down *r, const row_results *from,
                         int64_t j)
{
    gpu_dtype t = r->plan.compute;
    if (r->kind == GPU_REDUCE_SPREAD)
        return moments(from->origin[j], from->sum[j], from->value[j],
                       from->rows);
    if (is_sum(r->kind))
        return (partial){from->value[j], 0, 0, 0};
    partial p = {element(t, from->value, j), 0, 0, 0};
    if (wants_place(r->kind))
        p.place =
            t == GPU_F64 ? from->place[j] : ((const int32_t *)from->place)[j];
    return p;
}

/* Joins what rows folded to for n columns. */
static void join(const reduction_down *r, row_results *from, partial *sums,
                 int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        partial p = result_of(r, from, j);
        merge(r->kind, &sums[j], &p);
    }
    from->is_begun = 0;
}

/* Rows first .. last - 1 of one column of tiles. */
static gpu_status fold_strip(const reduction_down *r, int64_t strip,
                             int64_t first, int64_t last, char *scratch,
                             row_results *plain, partial *sums)
{
    const gpu_cpu_plan *plan = &r->plan;
    gpu_cpu_tile tile = gpu_cpu_plan_tile(plan, strip);
    int64_t since = 0, most = plain_rows(r);
    plain->is_begun = 0;
    for (int64_t j = 0; j < tile.cols; j++)
        sums[j] = nothing(r->kind);
    for (int64_t row = first, rows; row < last; row += rows) {
        rows = gpu_cpu_smaller(r->band, most - since);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        tile.row = row;
        tile.rows = gpu_cpu_smaller(last - row, rows);
        fold_tile_down(r, plain, &tile, scratch);
        since += tile.rows;
        if (since >= most) {
            join(r, plain, sums, tile.cols);
            since = 0;
        }
    }
    if (since > 0)
        join(r, plain, sums, tile.cols);
    return GPU_OK;
}

static void finish_strip(const reduction_down *r, int64_t strip, int64_t part,
                         const partial *sums)
{
    gpu_cpu_tile tile = gpu_cpu_plan_tile(&r->plan, strip);
    double done[tile.cols];
    for (int64_t j = 0; j < tile.cols; j++)
        if (r->partials)
            r->partials[(tile.col + j) * r->parts + part] = sums[j];
        else
            done[j] = finish(r->kind, &sums[j]);
    if (!r->partials)
        store_lines(r->out, tile.col, tile.cols, done);
}

/* The lines are folded plainly and whole: what that gives is the result. */
static gpu_status fold_plain(const reduction_down *r, int64_t strip,
                             char *scratch, row_results *plain)
{
    gpu_cpu_tile tile = gpu_cpu_plan_tile(&r->plan, strip);
    double done[tile.cols];
    plain->is_begun = 0;
    for (int64_t row = 0; row < r->plan.rows; row += tile.rows) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        tile.row = row;
        tile.rows = gpu_cpu_smaller(r->plan.rows - row, r->band);
        fold_tile_down(r, plain, &tile, scratch);
    }
    for (int64_t j = 0; j < tile.cols; j++) {
        partial p = result_of(r, plain, j);
        done[j] = finish(r->kind, &p);
    }
    store_lines(r->out, tile.col, tile.cols, done);
    return GPU_OK;
}

/* A unit of work is one part of the rows of one strip of columns. */
static gpu_status fold_units(void *context, int64_t first, int64_t last)
{
    const reduction_down *r = context;
    const gpu_cpu_plan *plan = &r->plan;
    alignas(64) char scratch[gpu_cpu_plan_scratch(plan) + 64];
    double value[plan->tile_cols];
    int64_t place[plan->tile_cols];
    double origin[plan->tile_cols], sum[plan->tile_cols];
    row_results plain = {value, place, origin, sum, 0, 0};
    partial sums[plan->tile_cols];
    gpu_cpu_plan_prepare(plan, scratch);
    for (int64_t unit = first; unit < last; unit++) {
        int64_t strip = unit / r->parts, part = unit - strip * r->parts;
        int64_t row = part * r->rows_a_part, end = row + r->rows_a_part;
        int is_plain = r->parts == 1 && plan->rows <= plain_rows(r);
        end = end < plan->rows ? end : plan->rows;
        gpu_status status =
            is_plain ? fold_plain(r, strip, scratch, &plain)
                     : fold_strip(r, strip, row, end, scratch, &plain, sums);
        if (status != GPU_OK)
            return status;
        if (!is_plain)
            finish_strip(r, strip, part, sums);
    }
    return GPU_OK;
}

static int is_direct(const gpu_cpu_plan *plan)
{
    const gpu_view *v = &plan->in[0];
    return plan->length == 0 && plan->inputs == 1 &&
           v->dtype == plan->compute && v->col_stride == 1;
}

/* Few strips are cut along their length too, by the shape alone. */
static void cut_rows(reduction_down *r)
{
    const gpu_cpu_plan *plan = &r->plan;
    int64_t blocks = plan->rows * plan->tile_cols / GPU_CPU_BLOCK / 64;
    int64_t parts = MOST_PARTIALS / plan->cols;
    parts = parts < 64 ? parts : 64;
    parts = parts < blocks ? parts : blocks;
    parts = parts > 1 ? parts : 1;
    int64_t size = (plan->rows + parts - 1) / parts;
    size = (size + DIRECT_ROWS - 1) / DIRECT_ROWS * DIRECT_ROWS;
    r->rows_a_part = size;
    r->parts = (plan->rows + size - 1) / size;
}

/* Sums and extremes down the columns of a grid whose rows run along memory.
 * axis 1 or 2. */
static gpu_status reduce_down(const gpu_program *p, const gpu_view *in,
                              int axis, int skips_nan, const gpu_view *out)
{
    reduction_down r = {.kind = (gpu_reduction)p->reduction,
                        .out = out,
                        .skips_nan = skips_nan};
    gpu_cpu_plan_make(&r.plan, p, in, NULL, in->rows, in->cols,
                      axis == 1 ? GPU_CPU_KEEP : GPU_CPU_TURN);
    r.is_direct = is_direct(&r.plan);
    r.band = r.is_direct ? DIRECT_ROWS : r.plan.tile_rows;
    cut_rows(&r);
    void *room = NULL;
    size_t bytes = (size_t)(r.plan.cols * r.parts) * sizeof(partial);
    if (r.parts > 1 && gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    r.partials = room;
    gpu_status status =
        gpu_cpu_parallel(r.plan.tiles_across * r.parts,
                         r.plan.rows * r.plan.cols, fold_units, &r);
    if (status == GPU_OK && room)
        join_parts(r.kind, r.partials, r.plan.cols, r.parts, out);
    gpu_cpu_free(NULL, room, room ? bytes : 0);
    return status;
}

/* --- along the lines --------------------------------------------------------
 * The reduced axis runs along the grid's rows ("lines"). Tiles fold into one
 * partial a line; partials are merged in the order of the tiles, in ranges
 * cut by the shape alone, so the bits do not depend on the threads. */

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
    int skips_nan;       /* of extremes */
    int is_decidable;    /* of truth values: one of them can decide */
    atomic_int *decided; /* whether one has */
    const gpu_view *out; /* 1 x 1, 1 x n or m x 1 */
    int64_t tiles_a_part, parts;
    partial *partials; /* parts of them (whole), or lines x parts */
} reduction;

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
    return (partial){s.mantissa, 0, s.exponent, 0};
}

static partial fold_spread(gpu_dtype t, const void *x, int64_t n)
{
    double origin = element(t, x, 0), sum, squares;
    gpu_cpu_vectors->moments[t](x, (size_t)n, origin, &sum, &squares);
    tell_overflow(t, &squares, x, 1, n);
    return moments(origin, sum, squares, n);
}

enum { ONE_PASS = 512 }; /* whose extremes and places take one pass */

/* Folds n elements of a line that start at `from`; step is what one element
 * further means for the place. */
static void fold(const reduction *r, const void *x, int64_t n, int64_t from,
                 int64_t step, partial *into)
{
    gpu_dtype t = r->plan.compute;
    partial p = {0, 0, 0, 0};
    if (r->kind == GPU_REDUCE_sum) {
        p.value = gpu_cpu_vectors->sum[t](x, (size_t)n);
    } else if (r->kind == GPU_REDUCE_SQUARES) {
        p.value = gpu_cpu_vectors->dot[t](x, x, (size_t)n);
    } else if (r->kind == GPU_REDUCE_SPREAD) {
        p = fold_spread(t, x, n);
    } else if (r->kind == GPU_REDUCE_prod) {
        p = fold_product(t, x, n);
    } else if (r->skips_nan) {
        p.value = wants_smallest(r->kind)
                      ? gpu_cpu_vectors->smallest_number[t](x, (size_t)n)
                      : gpu_cpu_vectors->largest_number[t](x, (size_t)n);
    } else if (wants_place(r->kind) && into->place < 0 && n <= ONE_PASS) {
        into->place =
            from + step * (int64_t)(wants_smallest(r->kind)
                                        ? gpu_cpu_vectors->smallest_place
                                        : gpu_cpu_vectors->largest_place)[t](
                              x, (size_t)n, &into->value);
        return;
    } else {
        p.value = wants_smallest(r->kind)
                      ? gpu_cpu_vectors->smallest[t](x, (size_t)n)
                      : gpu_cpu_vectors->largest[t](x, (size_t)n);
        if (wants_place(r->kind)) {
            p.place = from; /* at the earliest */
            if (into->place >= 0 && !beats(r->kind, &p, into))
                return;
            p.place +=
                step * (int64_t)gpu_cpu_vectors->find[t](x, p.value, (size_t)n);
            if (into->place < 0) {
                *into = p;
                return;
            }
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
        for (; tile < end && !*r->decided; tile++) {
            if (gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            fold_tile(r, tile, scratch, &sum);
            if (r->is_decidable && sum.value == (r->kind == GPU_REDUCE_max))
                *r->decided = 1;
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
    atomic_int decided = 0;
    r->partials = partials;
    r->decided = &decided;
    gpu_status status = gpu_cpu_parallel(r->parts, r->plan.rows * r->plan.cols,
                                         fold_whole_range, r);
    if (status == GPU_OK)
        join_parts(r->kind, partials, 1, r->parts, r->out);
    return status;
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
        int64_t lines = plan->rows - line < plan->tile_rows ? plan->rows - line
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
            store_lines(r->out, line, lines, done);
    }
    return GPU_OK;
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
        join_parts(r->kind, partials, plan->rows, r->parts, r->out);
    return status;
}

/* --- masks ------------------------------------------------------------------
 * Truth values that lie without gaps are counted, or looked through up to the
 * first that decides, as the bytes that they are. */

typedef struct mask {
    const uint8_t *data;
    int64_t count, piece;
    int64_t *sums; /* one a piece */
} mask;

enum { MASK_PIECE = 1 << 20, MOST_PIECES = 1024 };

/* Whether the program gives its one input as it is: by nothing, or by asking
 * which of its elements are not 0. */
static int is_same_truth(const gpu_program *p)
{
    const gpu_instruction *i = &p->code[0];
    return p->inputs == 1 &&
           (p->length == 0 ||
            (p->length == 1 && i->op == GPU_OP_ne && i->x == 0 && i->y == 1 &&
             p->constants == 1 && p->constant[0] == 0));
}

static int is_mask(const gpu_program *p, const gpu_view *v)
{
    gpu_view turned = gpu_cpu_turned(*v);
    const gpu_view *t = v->col_stride == 1 ? v : &turned;
    return is_same_truth(p) && v->dtype == GPU_BOOL && t->col_stride == 1 &&
           (t->rows == 1 || t->row_stride == t->cols);
}

static gpu_status count_pieces(void *context, int64_t first, int64_t last)
{
    const mask *m = context;
    for (int64_t i = first; i < last; i++) {
        int64_t from = i * m->piece;
        int64_t n = gpu_cpu_smaller(m->count - from, m->piece);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        m->sums[i] = (int64_t)gpu_cpu_vectors->count(m->data + from, (size_t)n);
    }
    return GPU_OK;
}

static gpu_status count_mask(mask *m, double *sum)
{
    int64_t sums[MOST_PIECES];
    m->sums = sums;
    m->piece = m->count / MOST_PIECES + 1;
    m->piece = m->piece > MASK_PIECE ? m->piece : MASK_PIECE;
    int64_t pieces = (m->count + m->piece - 1) / m->piece;
    /* a byte is an eighth of the work of other elements */
    gpu_status status = gpu_cpu_parallel(pieces, m->count / 8, count_pieces, m);
    *sum = 0;
    for (int64_t i = 0; status == GPU_OK && i < pieces; i++)
        *sum += (double)sums[i];
    return status;
}

/* Whether one of the bytes is `value`. */
static gpu_status look_for(const mask *m, int value, int *found)
{
    *found = 0;
    for (int64_t i = 0; i < m->count && !*found; i += MASK_PIECE) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        *found =
            memchr(m->data + i, value,
                   (size_t)gpu_cpu_smaller(m->count - i, MASK_PIECE)) != NULL;
    }
    return GPU_OK;
}

/* Of all; the product and places are not for this. */
static gpu_status reduce_mask(gpu_reduction kind, const gpu_view *in,
                              const gpu_view *out)
{
    mask m = {.data = in->data, .count = in->rows * in->cols};
    double value;
    int found;
    gpu_status status;
    if (kind != GPU_REDUCE_min && kind != GPU_REDUCE_max) {
        status = count_mask(&m, &value);
        if (kind == GPU_REDUCE_SPREAD)
            value *= ((double)m.count - value) / (double)m.count;
    } else {
        status = look_for(&m, kind == GPU_REDUCE_max, &found);
        value = found == (kind == GPU_REDUCE_max);
    }
    if (status == GPU_OK)
        gpu_cpu_store_one(out, 0, 0, value);
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

/* Whether a program puts in the place of NaN what loses against every number:
 * where(isnan(x), infinity, x) and its smallest value, or the other way round.
 * The folds leave NaN out by themselves, without a pass for each operation. */
static int leaves_nan_out(const gpu_program *p, const gpu_view *in)
{
    const gpu_instruction *is_nan = &p->code[0], *chosen = &p->code[1];
    gpu_reduction kind = (gpu_reduction)p->reduction;
    return (kind == GPU_REDUCE_min || kind == GPU_REDUCE_max) &&
           p->inputs == 1 && p->constants == 1 && p->length == 2 &&
           p->draw == NULL && in[0].dtype != GPU_BOOL &&
           p->constant[0] == extreme_of_none(kind) &&
           is_nan->op == GPU_OP_isnan && is_nan->x == 0 &&
           chosen->op == GPU_OP_where && chosen->x == 2 && chosen->y == 1 &&
           chosen->z == 0;
}

#define OP(...)
#define TEST(name, ...) [GPU_OP_##name] = 1,
#define REDUCTION(...)
static const uint8_t is_test[GPU_OPS] = {
#include "ops.def"
};

gpu_status gpu_cpu_reduce(void *device, const gpu_program *p,
                          const gpu_view *in, int axis, const gpu_view *out)
{
    (void)device;
    gpu_cpu_order order = axis == 1 ? GPU_CPU_TURN : GPU_CPU_KEEP;
    reduction r = {.skips_nan = leaves_nan_out(p, in)};
    gpu_program plain;
    if (r.skips_nan) {
        plain = *p;
        plain.length = plain.constants = 0;
        p = &plain;
    }
    r.kind = (gpu_reduction)p->reduction;
    r.whole = axis == 0;
    r.is_decidable = (r.kind == GPU_REDUCE_max || r.kind == GPU_REDUCE_min) &&
                     p->length > 0 && is_test[p->code[p->length - 1].op];
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
    int is_placed = wants_place(r.kind);
    if (r.whole && !is_placed && r.kind != GPU_REDUCE_prod && is_mask(p, in))
        return reduce_mask(r.kind, in, out);
    if (axis != 0 && is_down(in, axis) && r.kind != GPU_REDUCE_prod &&
        (!is_placed || (axis == 1 ? rows : cols) <= INT32_MAX))
        return reduce_down(p, in, axis, r.skips_nan, out);
    gpu_cpu_plan_make(&r.plan, p, in, NULL, rows, cols, order);
    return r.whole ? reduce_whole(&r) : reduce_lines(&r);
}

/* --- running sums, products, extremes ----------------------------------------
 * In f64, one after the other along each line. Each step waits for the one
 * before, so lines go side by side. */

enum {
    ACROSS = 64,     /* lines at a time, when memory runs across them */
    WIDE_BAND = 512, /* and when no element needs another place */
    ALONG = 8,       /* and when it runs along them */
    PIECE = 1024,    /* elements at a time */
    LINE = PIECE / ALONG
};

typedef struct scanning {
    gpu_scan_kind kind;
    gpu_view from, to; /* lines are rows */
    int across;        /* memory runs across the lines */
    int is_counted;    /* progress, of the only line */
} scanning;

/* What changes nothing that it is joined with. */
static double neutral(gpu_scan_kind kind)
{
    static const double of[] = {0, 1, -INFINITY, INFINITY};
    return of[kind];
}

/* b is joined to what came before it: of extremes NaN stays, and of equal ones
 * the first. */
INLINE double joined(double a, double b, gpu_scan_kind kind)
{
    if (kind == GPU_SCAN_SUM)
        return a + b;
    if (kind == GPU_SCAN_PROD)
        return a * b;
    return ((kind == GPU_SCAN_MAX ? b > a : b < a) | (b != b)) ? b : a;
}

/* Has the loop of each kind put together with the kind known. */
#define FOR_KIND(kind, loop, ...)         \
    switch (kind) {                       \
    case GPU_SCAN_SUM:                    \
        loop(__VA_ARGS__, GPU_SCAN_SUM);  \
        break;                            \
    case GPU_SCAN_PROD:                   \
        loop(__VA_ARGS__, GPU_SCAN_PROD); \
        break;                            \
    case GPU_SCAN_MAX:                    \
        loop(__VA_ARGS__, GPU_SCAN_MAX);  \
        break;                            \
    case GPU_SCAN_MIN:                    \
        loop(__VA_ARGS__, GPU_SCAN_MIN);  \
    }

/* value[i * lines + l] is element i of line l. */
INLINE void scan_across(double *restrict running, double *restrict value,
                        int64_t n, int64_t lines, gpu_scan_kind kind)
{
    for (int64_t i = 0; i < n; i++, value += lines)
        for (int64_t l = 0; l < lines; l++)
            value[l] = running[l] = joined(running[l], value[l], kind);
}

/* ALONG lines, value[l * LINE + i]. */
INLINE void scan_lines(double *restrict running, double *restrict value,
                       int64_t n, gpu_scan_kind kind)
{
    double so_far[ALONG];
    memcpy(so_far, running, sizeof so_far);
    for (int64_t i = 0; i < n; i++)
        for (int l = 0; l < ALONG; l++)
            value[l * LINE + i] = so_far[l] =
                joined(so_far[l], value[l * LINE + i], kind);
    memcpy(running, so_far, sizeof so_far);
}

INLINE void scan_line(double *running, double *value, int64_t n,
                      gpu_scan_kind kind)
{
    double so_far = *running;
    for (int64_t i = 0; i < n; i++)
        value[i] = so_far = joined(so_far, value[i], kind);
    *running = so_far;
}

/* How the elements of so many lines lie while they are worked on. */
static gpu_view block_of(const scanning *s, double *value, int64_t lines,
                         int64_t n)
{
    gpu_view across = {value, GPU_F64, lines, n, 1, lines};
    gpu_view along = {value, GPU_F64, lines, n, LINE, 1};
    return s->across ? across : along;
}

/* Elements of both sides lie side by side across the lines, and are of one type
 * that needs no conversion. */
static int is_plain_across(const scanning *s)
{
    return s->across && s->from.row_stride == 1 && s->to.row_stride == 1 &&
           s->from.dtype == s->to.dtype && s->from.dtype != GPU_BOOL;
}

static gpu_status scan_wide(const scanning *s, int64_t line, int64_t lines)
{
    double running[WIDE_BAND];
    for (int64_t l = 0; l < lines; l++)
        running[l] = neutral(s->kind);
    for (int64_t j = 0; j < s->from.cols; j++) {
        gpu_view from = gpu_cpu_part(&s->from, line, j, lines, 1);
        gpu_view to = gpu_cpu_part(&s->to, line, j, lines, 1);
        if (j % DIRECT_ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        gpu_cpu_vectors->scan_row[from.dtype](running, to.data, from.data,
                                              (size_t)lines, s->kind);
    }
    return GPU_OK;
}

static gpu_status scan_band(const scanning *s, int64_t line, int64_t lines)
{
    double running[ACROSS], value[PIECE];
    int64_t piece = s->across || lines == 1 ? PIECE / lines : LINE;
    for (int64_t l = 0; l < lines; l++)
        running[l] = neutral(s->kind);
    for (int64_t j = 0; j < s->from.cols; j += piece) {
        int64_t n = s->from.cols - j < piece ? s->from.cols - j : piece;
        gpu_view from = gpu_cpu_part(&s->from, line, j, lines, n);
        gpu_view to = gpu_cpu_part(&s->to, line, j, lines, n);
        gpu_view block = block_of(s, value, lines, n);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        gpu_cpu_convert(&from, &block);
        if (s->across)
            FOR_KIND(s->kind, scan_across, running, value, n, lines)
        else if (lines > 1)
            FOR_KIND(s->kind, scan_lines, running, value, n)
        else
            FOR_KIND(s->kind, scan_line, running, value, n)
        gpu_cpu_convert(&block, &to);
        if (s->is_counted)
            gpu_cpu_advance(n);
    }
    return GPU_OK;
}

/* How many of the lines that are left go side by side. */
static int64_t band_of(const scanning *s, int64_t left)
{
    if (is_plain_across(s))
        return left < WIDE_BAND ? left : WIDE_BAND;
    if (s->across)
        return left < ACROSS ? left : ACROSS;
    return left < ALONG ? 1 : ALONG;
}

static gpu_status scan_range(void *context, int64_t first, int64_t last)
{
    const scanning *s = context;
    gpu_status status = GPU_OK;
    for (int64_t band; first < last && status == GPU_OK; first += band) {
        band = band_of(s, last - first);
        status = is_plain_across(s) ? scan_wide(s, first, band)
                                    : scan_band(s, first, band);
    }
    return status;
}

/* Complex lines side by side: each of their elements becomes its product with
 * all before it, in f64. running has their parts. */
#define MULTIPLY_UP(type)                                                \
    static void multiply_up_##type(const scanning *s, int64_t line,      \
                                   int64_t lines, int64_t j, double *re, \
                                   double *im)                           \
    {                                                                    \
        const type *from =                                               \
            (const type *)s->from.data +                                 \
            2 * (line * s->from.row_stride + j * s->from.col_stride);    \
        type *to = (type *)s->to.data +                                  \
                   2 * (line * s->to.row_stride + j * s->to.col_stride); \
        for (int64_t l = 0; l < lines; l++) {                            \
            double a = from[0], b = from[1];                             \
            double x = re[l] * a - im[l] * b, y = re[l] * b + im[l] * a; \
            to[0] = (type)(re[l] = x);                                   \
            to[1] = (type)(im[l] = y);                                   \
            from += 2 * s->from.row_stride;                              \
            to += 2 * s->to.row_stride;                                  \
        }                                                                \
    }
MULTIPLY_UP(float)
MULTIPLY_UP(double)

/* What multiplies up the complex lines of a range: products alone, as sums are
 * those of the parts. */
static gpu_status multiply_range(void *context, int64_t first, int64_t last)
{
    const scanning *s = context;
    double re[ACROSS], im[ACROSS];
    for (int64_t band; first < last; first += band) {
        band = last - first < ACROSS ? last - first : ACROSS;
        for (int64_t l = 0; l < band; l++)
            re[l] = 1, im[l] = 0;
        for (int64_t j = 0; j < s->from.cols; j++) {
            if (j % LINE == 0 && gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            if (s->from.dtype == GPU_C64)
                multiply_up_float(s, first, band, j, re, im);
            else
                multiply_up_double(s, first, band, j, re, im);
            if (s->is_counted && (j + 1) % LINE == 0)
                gpu_cpu_advance(LINE);
        }
    }
    return GPU_OK;
}

static int64_t distance(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

gpu_status gpu_cpu_scan(void *device, gpu_scan_kind kind, int axis,
                        const gpu_view *from, const gpu_view *to)
{
    (void)device;
    scanning s = {kind, *from, *to, 0, 0};
    int64_t n = from->rows * from->cols;
    if (n == 0)
        return GPU_OK;
    if (axis == 1) {
        s.from = gpu_cpu_turned(*from);
        s.to = gpu_cpu_turned(*to);
    }
    s.across = s.from.rows > 1 &&
               distance(s.to.row_stride) < distance(s.to.col_stride);
    if (s.from.rows == 1)
        s.is_counted = gpu_cpu_begin_stage(n);
    int is_complex = from->dtype == GPU_C64 || from->dtype == GPU_C128;
    gpu_status status = gpu_cpu_parallel(
        s.from.rows, n, is_complex ? multiply_range : scan_range, &s);
    gpu_cpu_end_stage(s.is_counted);
    return status;
}
