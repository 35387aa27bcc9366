/* Reductions of more than is looked at at once: what lies in the host's memory
 * by another device, tile by tile, and what is large block by block.
 *
 * The order in which a sum is added up decides its last bits. So what is more
 * than WHOLE elements is cut into blocks by its shape alone, wherever it lies,
 * and those are the tiles; what is less comes to the device as one. Extremes
 * are the same in any order, and have tiles like any other work. */
#include "op_list.h"
#include "reduce_tiles.h"
#include "tiles.h"

#include <math.h>
#include <stdlib.h>

/* A row of a block has so many elements or more, where there are as many. */
enum { LEAST_COLS = 1 << 20, ALIGNED_COLS = 1024, PLACES = 64 };
enum { FEW = 1 << 24 }; /* elements of a block where memory is short */

static int64_t whole_elements = (int64_t)1 << 30;
static int64_t block_elements = (int64_t)1 << 28;

void gpu_set_blocks(int64_t whole, int64_t block)
{
    whole_elements = whole ? whole : (int64_t)1 << 30;
    block_elements = block ? block : (int64_t)1 << 28;
}

/* --- what is cut ---------------------------------------------------------- */

typedef struct cutting {
    gpu_device *d;
    int is_through; /* views are of the host's memory, */
    unsigned there; /* but these: see gpu_reduce_tiles */
    gpu_program p;
    const gpu_view *in;
    int axis;
    int64_t rows, cols; /* of all */
    int64_t block_rows, block_cols;
    int64_t down, across; /* blocks */
    int64_t first, steps; /* those of this device */
    size_t bytes;         /* of a tile of one operand */
    int64_t pitch;        /* of its rows; 0: no gaps */
    gpu_matrix side[2];
    /* A result a block and line: down x across, down x cols or rows x across.
     * Of places values are those of the extremes there. */
    gpu_matrix partials, values;
} cutting;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int gives_place(int kind)
{
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
}

static int is_sum(int kind)
{
    return kind == GPU_REDUCE_sum || kind == GPU_REDUCE_SQUARES;
}

/* Is it the same in whatever order the elements come? */
static int is_of_any_order(int kind)
{
    return kind == GPU_REDUCE_min || kind == GPU_REDUCE_max ||
           gives_place(kind);
}

int gpu_is_in_blocks(int kind, int64_t rows, int64_t cols)
{
    return is_sum(kind) && !gpu_dry &&
           (double)rows * (double)cols > (double)whole_elements;
}

/* Of operands that did not all fit the device little is brought at once. */
static int64_t elements_of_block(const cutting *c)
{
    return c->there ? smaller(block_elements, FEW) : block_elements;
}

static int64_t most_elements(const cutting *c)
{
    return c->there && is_sum(c->p.reduction) ? elements_of_block(c)
                                              : whole_elements;
}

/* Rows of at least LEAST_COLS where there are several in a block, so that even
 * of sums down columns there is one for 256 elements at most. */
static void cut_by_shape(cutting *c)
{
    int64_t block = elements_of_block(c);
    int64_t least = smaller(LEAST_COLS, block);
    c->block_cols = block / c->rows;
    c->block_cols = c->block_cols / ALIGNED_COLS * ALIGNED_COLS;
    if (c->block_cols < least)
        c->block_cols = least;
    c->block_cols = smaller(c->block_cols, c->cols);
    c->block_rows = smaller(c->rows, block / c->block_cols);
}

static void cut_freely(cutting *c, const gpu_team *team, size_t size)
{
    size_t bytes = gpu_tile_bytes(team, 2 * c->p.inputs);
    int64_t elements = (int64_t)(bytes / size);
    c->block_cols = smaller(c->cols, elements);
    c->block_rows = smaller(c->rows, elements / c->block_cols);
}

/* Where the rows of a block are parts of longer ones they have gaps on the
 * device, too, and begin at like places: sums are cut by that. */
static void lay_out(cutting *c, size_t size)
{
    int64_t rest = c->cols % ALIGNED_COLS;
    c->pitch = 0;
    if (c->block_cols < c->cols && c->block_rows > 1 && is_sum(c->p.reduction))
        c->pitch =
            (c->block_cols + ALIGNED_COLS) / ALIGNED_COLS * ALIGNED_COLS + rest;
    int64_t row = c->pitch ? c->pitch : c->block_cols;
    c->bytes = gpu_tile_end((size_t)(c->block_rows * row) * size + PLACES);
}

static void cut(cutting *c, const gpu_team *team)
{
    size_t size = 1;
    for (int i = 0; i < c->p.inputs; i++)
        if (gpu_dtype_size(c->in[i].dtype) > size)
            size = gpu_dtype_size(c->in[i].dtype);
    c->block_rows = c->rows;
    c->block_cols = c->cols;
    if (is_of_any_order(c->p.reduction))
        cut_freely(c, team, size);
    else if ((double)c->rows * (double)c->cols > (double)most_elements(c))
        cut_by_shape(c);
    c->down = (c->rows + c->block_rows - 1) / c->block_rows;
    c->across = (c->cols + c->block_cols - 1) / c->block_cols;
    c->first = 0;
    c->steps = c->down * c->across;
    lay_out(c, size);
}

/* How many partial results make one. */
static int64_t parts(const cutting *c)
{
    return c->axis == 0   ? c->down * c->across
           : c->axis == 1 ? c->down
                          : c->across;
}

static int64_t result_rows(const cutting *c, int64_t down)
{
    return c->axis == 2 ? c->rows : down;
}

static int64_t result_cols(const cutting *c, int64_t across)
{
    return c->axis == 1 ? c->cols : across;
}

/* --- a block -------------------------------------------------------------- */

typedef struct place {
    int64_t row, col, rows, cols;
} place;

static place place_of(const cutting *c, int64_t step)
{
    place at = {.row = step / c->across * c->block_rows,
                .col = step % c->across * c->block_cols};
    at.rows = smaller(c->block_rows, c->rows - at.row);
    at.cols = smaller(c->block_cols, c->cols - at.col);
    return at;
}

static gpu_view input_at(const cutting *c, int i, int64_t step)
{
    place at = place_of(c, step);
    return gpu_part(&c->in[i], at.row, at.col, at.rows, at.cols);
}

static int has_tile(const cutting *c, int i)
{
    return c->is_through && !(c->there >> i & 1u);
}

/* It begins on the like of a place where it would begin in all of the operand,
 * which decides how wide a device reads, and so how it adds up. */
static gpu_view tile_at(const cutting *c, const gpu_view *part, int i,
                        int64_t step)
{
    place p = place_of(c, step);
    size_t at = (size_t)(p.row * c->cols + p.col);
    at = at * gpu_dtype_size(part->dtype) % PLACES;
    return gpu_tile_view(part, &c->side[(step - c->first) % 2],
                         (size_t)i * c->bytes + at,
                         c->pitch ? c->pitch : part->cols);
}

/* Which of all results are the block's. */
static place place_of_results(const cutting *c, int64_t step)
{
    place at = place_of(c, step);
    return (place){.row = c->axis == 2 ? at.row : step / c->across,
                   .col = c->axis == 1 ? at.col : step % c->across,
                   .rows = c->axis == 2 ? at.rows : 1,
                   .cols = c->axis == 1 ? at.cols : 1};
}

static gpu_view result_at(const cutting *c, const gpu_matrix *all, int64_t step)
{
    place at = place_of_results(c, step);
    gpu_view v = gpu_view_of(all);
    return gpu_part(&v, at.row, at.col, at.rows, at.cols);
}

static gpu_status bring_block(void *context, int64_t number,
                              gpu_tile_part whole)
{
    cutting *c = context;
    int64_t step = c->first + number;
    for (int i = 0; i < c->p.inputs; i++) {
        gpu_view part = input_at(c, i, step);
        gpu_view tile = tile_at(c, &part, i, step);
        if (has_tile(c, i))
            TRY(gpu_bring_tile(c->d, &part, &tile, whole));
    }
    return GPU_OK;
}

static gpu_status reduce_block(void *context, int64_t number,
                               gpu_tile_part *whole)
{
    cutting *c = context;
    int64_t step = c->first + number;
    (void)whole;
    gpu_view in[GPU_MAX_INPUTS], to = result_at(c, &c->partials, step);
    gpu_program p = c->p;
    for (int i = 0; i < p.inputs; i++) {
        in[i] = input_at(c, i, step);
        if (has_tile(c, i))
            in[i] = tile_at(c, &in[i], i, step);
    }
    gpu_advance(in[0].rows * in[0].cols);
    TRY(c->d->backend->reduce(c->d->handle, &p, in, c->axis, &to));
    if (!c->values.storage)
        return GPU_OK;
    p.reduction =
        c->p.reduction == GPU_REDUCE_argmax ? GPU_REDUCE_max : GPU_REDUCE_min;
    to = result_at(c, &c->values, step);
    return c->d->backend->reduce(c->d->handle, &p, in, c->axis, &to);
}

static gpu_status run_here(cutting *c)
{
    for (int64_t step = 0; step < c->steps; step++) {
        TRY(gpu_poll());
        TRY(reduce_block(c, step, NULL));
    }
    return GPU_OK;
}

/* What the device has partial results in, or, where each is a result itself,
 * those. */
static gpu_status make_partials(cutting *c, gpu_matrix *result)
{
    if (parts(c) == 1 && c->d == gpu_matrix_device(result)) {
        c->partials = *result;
        gpu_retain(result);
        return GPU_OK;
    }
    int64_t rows = result_rows(c, c->down), cols = result_cols(c, c->across);
    gpu_dtype type = parts(c) == 1 ? result->dtype : GPU_F64;
    TRY(gpu_create(&c->partials, c->d, type, 2, rows, cols));
    return gives_place(c->p.reduction) && parts(c) > 1
               ? gpu_create(&c->values, c->d, GPU_F64, 2, rows, cols)
               : GPU_OK;
}

static gpu_status make_sides(cutting *c)
{
    for (int s = 0; s < 2 && s < c->steps; s++)
        TRY(gpu_create_buffer(c->d, (size_t)c->p.inputs * c->bytes,
                              &c->side[s]));
    return GPU_OK;
}

/* Those of a step go from one device's partial results to another's. */
static gpu_status pass_step(const cutting *c, int64_t step,
                            const gpu_matrix *from, const gpu_matrix *to)
{
    place at = place_of_results(c, step);
    gpu_slice rows = {at.row, 1, at.rows}, cols = {at.col, 1, at.cols};
    gpu_matrix part, here = {.storage = NULL}, target = {.storage = NULL};
    TRY(gpu_view_block(from, rows, cols, &part));
    gpu_status status = gpu_clone(&part, part.dtype, gpu_cpu(), &here);
    gpu_release(&part);
    TRY(status);
    status = gpu_view_block(to, rows, cols, &target);
    if (status == GPU_OK)
        status = gpu_copy(&here, &target);
    gpu_release(&target);
    gpu_release(&here);
    return status;
}

/* All of one device's go to the first. */
static gpu_status pass_on(const cutting *c, const cutting *first)
{
    gpu_status status = GPU_OK;
    int before = gpu_pause_trace(1);
    for (int64_t n = c->first; n < c->first + c->steps; n++) {
        if (status == GPU_OK)
            status = pass_step(c, n, &c->partials, &first->partials);
        if (status == GPU_OK && c->values.storage)
            status = pass_step(c, n, &c->values, &first->values);
    }
    gpu_pause_trace(before);
    return status;
}

/* By `count` devices, of which c[0] gets all partial results. */
static gpu_status run_through(cutting *c, int count)
{
    gpu_tile_work works[GPU_MOST_TEAM] = {{.steps = 0}};
    for (int i = 0; i < count; i++) {
        TRY(make_sides(&c[i]));
        works[i] = (gpu_tile_work){.device = c[i].d,
                                   .steps = c[i].steps,
                                   .sides = 2,
                                   .bring = bring_block,
                                   .work = reduce_block,
                                   .context = &c[i]};
    }
    TRY(gpu_run_tiles(works, count));
    for (int i = 1; i < count; i++)
        TRY(pass_on(&c[i], &c[0]));
    return GPU_OK;
}

/* --- all blocks together -------------------------------------------------- */

/* The number of the element in its line, or of the whole in row-major order. */
static double full_place(const cutting *c, int64_t step, double within)
{
    place at = place_of(c, step);
    if (c->axis > 0)
        return within + (double)(c->axis == 1 ? at.row : at.col);
    int64_t n = (int64_t)within;
    return (double)((at.row + n / at.cols) * c->cols + at.col + n % at.cols);
}

typedef struct best {
    double value, place; /* place < 0: none yet */
} best;

/* NaN is the most extreme of all; of equals the first counts. */
static int beats(int kind, best a, best b)
{
    int a_is_nan = isnan(a.value), b_is_nan = isnan(b.value);
    if (b.place < 0 || a_is_nan != b_is_nan)
        return b.place < 0 || a_is_nan;
    if (a_is_nan || a.value == b.value)
        return a.place < b.place;
    return kind == GPU_REDUCE_argmax ? a.value > b.value : a.value < b.value;
}

/* One place of the results, of so many partial ones. */
static double best_place(const cutting *c, const double *places,
                         const double *values, int64_t line)
{
    best found = {0, -1};
    for (int64_t k = 0; k < parts(c); k++) {
        int64_t at = c->axis == 1   ? k * c->cols + line
                     : c->axis == 2 ? line * c->across + k
                                    : k;
        int64_t step = c->axis == 1   ? k * c->across + line / c->block_cols
                       : c->axis == 2 ? line / c->block_rows * c->across + k
                                      : k;
        best next = {values[at], full_place(c, step, places[at])};
        if (beats(c->p.reduction, next, found))
            found = next;
    }
    return found.place;
}

/* On the CPU: there are few. */
static gpu_status join_places(cutting *c, gpu_matrix *result)
{
    int64_t lines = gpu_size(result), n = gpu_size(&c->partials);
    double *places = malloc(2 * (size_t)n * sizeof *places);
    double *values = places ? places + n : NULL;
    double *found = malloc((size_t)lines * sizeof *found);
    gpu_status status =
        places && found ? GPU_OK
                        : gpu_fail(GPU_MEMORY, "out of memory for %s of places",
                                   gpu_bytes_text((size_t)n * 16));
    if (status == GPU_OK)
        status = gpu_download(&c->partials, places);
    if (status == GPU_OK)
        status = gpu_download(&c->values, values);
    for (int64_t i = 0; i < lines && status == GPU_OK; i++)
        found[i] = best_place(c, places, values, i);
    if (status == GPU_OK)
        status = gpu_upload(result, found);
    free(places);
    free(found);
    return status;
}

static gpu_status join_partials(cutting *c, gpu_matrix *result)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    p.compute = GPU_F64;
    p.reduction = is_sum(c->p.reduction) ? GPU_REDUCE_sum : c->p.reduction;
    gpu_view from = gpu_view_of(&c->partials), to = gpu_target_of(result);
    return c->d->backend->reduce(c->d->handle, &p, &from, c->axis, &to);
}

static gpu_status refuse_parts(const cutting *c)
{
    const char *what =
        c->p.reduction == GPU_REDUCE_prod ? "a product" : "a variance";
    return gpu_fail(
        GPU_UNSUPPORTED,
        "%s cannot be put together from parts, and %s is more than "
        "the %lld elements of one: %s",
        what, gpu_size_text(c->rows, c->cols), (long long)whole_elements,
        c->there ? "move its operands to one device" : "leave {device=} away");
}

/* By `count` devices, which have c each. Partial results are f64; where each is
 * a result itself, of its type. */
static gpu_status reduce(cutting *c, int count, gpu_matrix *result)
{
    int is_whole = parts(c) == 1;
    if (!is_whole && !is_sum(c->p.reduction) &&
        !is_of_any_order(c->p.reduction))
        return refuse_parts(c);
    for (int i = 0; i < count; i++)
        TRY(make_partials(&c[i], result));
    TRY(c->is_through ? run_through(c, count) : run_here(c));
    if (is_whole)
        return GPU_OK;
    return c->values.storage ? join_places(c, result)
                             : join_partials(c, result);
}

static void end(cutting *c)
{
    gpu_release(&c->partials);
    gpu_release(&c->values);
    gpu_release(&c->side[0]);
    gpu_release(&c->side[1]);
}

gpu_status gpu_reduce_blocks(gpu_device *d, const gpu_program *p,
                             const gpu_view *in, int axis, gpu_matrix *out)
{
    gpu_team alone = {1, {d}};
    cutting c = {.d = d,
                 .p = *p,
                 .in = in,
                 .axis = axis,
                 .rows = in->rows,
                 .cols = in->cols};
    cut(&c, &alone);
    gpu_status status = reduce(&c, 1, out);
    end(&c);
    return status;
}

/* Each device has steps of its own. */
static void deal(cutting *c, const gpu_team *team)
{
    int64_t all = c->steps;
    for (int i = 0; i < team->count; i++) {
        c[i] = c[0];
        c[i].d = team->devices[i];
        c[i].first = all * i / team->count;
        c[i].steps = all * (i + 1) / team->count - c[i].first;
    }
}

gpu_status gpu_reduce_tiles(gpu_team *team, const gpu_program *p,
                            unsigned there, const gpu_view *in, int axis,
                            gpu_matrix *out)
{
    cutting c[GPU_MOST_TEAM] = {{.d = team->devices[0],
                                 .is_through = 1,
                                 .there = there,
                                 .p = *p,
                                 .in = in,
                                 .axis = axis,
                                 .rows = in->rows,
                                 .cols = in->cols}};
    gpu_matrix result;
    cut(c, team);
    team->count = (int)smaller(team->count, c->steps);
    deal(c, team);
    TRY(gpu_create(&result, c->d, out->dtype, 2, result_rows(c, 1),
                   result_cols(c, 1)));
    int stage = gpu_begin_stage(c->rows * c->cols);
    gpu_status status = reduce(c, team->count, &result);
    gpu_end_stage(stage);
    if (status == GPU_OK)
        status = gpu_copy(&result, out);
    for (int i = 0; i < team->count; i++)
        end(&c[i]);
    gpu_release(&result);
    return status;
}
