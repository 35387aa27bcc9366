/* Operations that move elements to other places: gather, scatter, masks,
 * running sums and extremes, sorting. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"

#include <stdlib.h>

/* Backends' outputs may not overlap their inputs; a copy steps in. */
static gpu_status apart(const gpu_matrix *in, const gpu_matrix *out,
                        gpu_matrix *copy)
{
    copy->storage = NULL;
    if (!gpu_shares_storage(in, out)) {
        gpu_retain(in);
        *copy = *in;
        return GPU_OK;
    }
    return gpu_clone(in, in->dtype, NULL, copy);
}

static gpu_operation moving(const char *name, gpu_device *d,
                            const gpu_matrix *moved)
{
    return (gpu_operation){.name = name,
                           .kernel = name,
                           .device = d,
                           .result = moved,
                           .bytes = 2.0 * (double)gpu_bytes(moved)};
}

gpu_status gpu_gather(const gpu_matrix *m, const int64_t *rows, int64_t nrows,
                      const int64_t *cols, int64_t ncols, gpu_matrix *out)
{
    if (gpu_is_complex(m))
        return gpu_gather_complex(m, rows, nrows, cols, ncols, out);
    gpu_device *d;
    const gpu_matrix *in[] = {m};
    TRY(gpu_check_operands("gather", in, 1, &d));
    TRY(gpu_check_places("gather", rows, nrows, m->rows, "row"));
    TRY(gpu_check_places("gather", cols, ncols, m->cols, "column"));
    TRY(gpu_create(out, d, m->dtype, m->ndim, rows ? nrows : m->rows,
                   cols ? ncols : m->cols));
    if (gpu_size(out) == 0)
        return GPU_OK;
    gpu_view source = gpu_view_of(m), target = gpu_target_of(out);
    gpu_operation op = moving("gather", d, out);
    gpu_status status =
        RUN_OPERATION(&op, gather, &source, rows, cols, &target);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* A list of places each of which comes several times, made part by part: the
 * next one comes `left` times more. */
typedef struct repetition {
    const double *counts;
    int64_t next, left;
    int64_t *places;
} repetition;

/* Few of a kind, which most are, are written at once: how many they are is what
 * no branch can know. There is room for them behind the list. */
enum { FEW = 4, PLACES = 1 << 15 };

static void next_places(repetition *r, int64_t n)
{
    int64_t i = 0;
    while (i < n) {
        int64_t count = r->left < n - i ? r->left : n - i;
        for (int64_t k = 0; k < FEW; k++)
            r->places[i + k] = r->next;
        for (int64_t k = FEW; k < count; k++)
            r->places[i + k] = r->next;
        i += count;
        r->left -= count;
        if (r->left == 0 && i < n)
            r->left = (int64_t)r->counts[++r->next];
    }
}

/* n elements of out, from the first-th on along the axis. */
static gpu_status gather_part(const gpu_matrix *m, int axis,
                              const int64_t *places, int64_t first, int64_t n,
                              const gpu_matrix *out)
{
    gpu_matrix part;
    gpu_slice some = {first, 1, n}, all = {0, 1, out->rows};
    all.count = axis == 1 ? out->cols : out->rows;
    TRY(gpu_view_block(out, axis == 1 ? some : all, axis == 1 ? all : some,
                       &part));
    gpu_view source = gpu_view_of(m), target = gpu_target_of(&part);
    gpu_operation op = moving("repelem", m->storage->device, &part);
    gpu_status status =
        RUN_OPERATION(&op, gather, &source, axis == 1 ? places : NULL,
                      axis == 1 ? NULL : places, &target);
    gpu_release(&part);
    return status;
}

/* Parts of the list stay in the cache of a CPU. */
static gpu_status gather_repeated(repetition *r, const gpu_matrix *m, int axis,
                                  int64_t total, gpu_matrix *out)
{
    gpu_status status =
        gpu_create(out, m->storage->device, m->dtype, m->ndim,
                   axis == 1 ? total : m->rows, axis == 1 ? m->cols : total);
    if (status != GPU_OK || gpu_size(out) == 0)
        return status;
    for (int64_t i = 0; i < total && status == GPU_OK; i += PLACES) {
        int64_t n = PLACES < total - i ? PLACES : total - i;
        next_places(r, n);
        status = gather_part(m, axis, r->places, i, n, out);
    }
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_repeat(const gpu_matrix *m, int axis, const double *counts,
                      int64_t total, gpu_matrix *out)
{
    gpu_device *d = gpu_matrix_device(m);
    gpu_status status;
    int is_whole = gpu_is_complex(m);
    if (!is_whole) {
        TRY(gpu_check_operands("repelem", &m, 1, &d));
        is_whole = !gpu_device_is_cpu(d);
    }
    int64_t most = is_whole || total < PLACES ? total : PLACES;
    repetition r = {.counts = counts};
    r.places = malloc((size_t)(most + FEW) * sizeof *r.places);
    if (!r.places)
        return gpu_fail(GPU_MEMORY, "out of memory");
    r.left = total > 0 ? (int64_t)counts[0] : 0;
    if (is_whole) {
        next_places(&r, total);
        status =
            gpu_gather(m, axis == 1 ? r.places : NULL, axis == 1 ? total : 0,
                       axis == 1 ? NULL : r.places, axis == 1 ? 0 : total, out);
    } else {
        status = gather_repeated(&r, m, axis, total, out);
    }
    free(r.places);
    return status;
}

/* A row, a column or an element as often as the places want it. */
static void spread(gpu_matrix *m, int64_t rows, int64_t cols)
{
    if (m->rows != rows)
        m->row_stride = 0;
    if (m->cols != cols)
        m->col_stride = 0;
    m->rows = rows;
    m->cols = cols;
}

/* Has from as many rows and columns as there are places in m? */
static gpu_status check_spread(const char *name, const gpu_matrix *from,
                               const gpu_matrix *m, int64_t rows, int64_t cols)
{
    int spreads = from->ndim == 2;
    gpu_matrix places = {.ndim = m->ndim, .rows = rows, .cols = cols};
    if ((from->rows != rows && !(spreads && from->rows == 1)) ||
        (from->cols != cols && !(spreads && from->cols == 1)))
        return gpu_fail(GPU_SHAPE, "%s: %s does not fit into %s", name,
                        gpu_shape_text(from), gpu_shape_text(&places));
    return GPU_OK;
}

gpu_status gpu_scatter(const char *name, const gpu_matrix *from,
                       const int64_t *rows, int64_t nrows, const int64_t *cols,
                       int64_t ncols, gpu_matrix *m)
{
    if (gpu_is_complex(m) || gpu_is_complex(from))
        return gpu_scatter_complex(name, from, rows, nrows, cols, ncols, m);
    gpu_device *d;
    TRY(gpu_check_operands(name, &from, 1, &d));
    TRY(gpu_check_target(name, m, &d));
    TRY(gpu_check_places(name, rows, nrows, m->rows, "row"));
    TRY(gpu_check_places(name, cols, ncols, m->cols, "column"));
    nrows = rows ? nrows : m->rows;
    ncols = cols ? ncols : m->cols;
    TRY(check_spread(name, from, m, nrows, ncols));
    if (nrows == 0 || ncols == 0)
        return GPU_OK;
    gpu_matrix source;
    TRY(apart(from, m, &source));
    spread(&source, nrows, ncols);
    gpu_view read = gpu_view_of(&source), target = gpu_target_of(m);
    gpu_matrix moved = source; /* to m, which is written */
    moved.storage = m->storage;
    gpu_operation op = moving("scatter", d, &moved);
    gpu_status status = RUN_OPERATION(&op, scatter, &read, rows, cols, &target);
    gpu_release(&source);
    return status;
}

/* --- by lists on the device ------------------------------------------------
 */

/* f32 holds whole numbers up to 2^24; those behind it may have been others. */
static int64_t last_place(const gpu_view *list, int64_t size)
{
    int64_t exact = 1 << 24;
    return list->dtype == GPU_F32 && size > exact ? exact - 1 : size;
}

/* Is every element of the list, which is not empty, a place of so many? */
static gpu_status look_for_places(const char *name, const gpu_matrix *list,
                                  int64_t size)
{
    gpu_view v = gpu_view_of(list);
    gpu_program p;
    double odd;
    gpu_program_start(&p, 1);
    int first = gpu_program_constant(&p, 1);
    /* -1 is no place, where there are none */
    int last =
        gpu_program_constant(&p, size > 0 ? (double)last_place(&v, size) : -1);
    int place = gpu_program_add(&p, GPU_OP_abs, 0, 0, 0);
    int whole = gpu_program_add(&p, GPU_OP_floor, place, 0, 0);
    int nearest = gpu_program_add(&p, GPU_OP_clip, whole, first, last);
    gpu_program_add(&p, GPU_OP_ne, nearest, place, 0);
    p.reduction = GPU_REDUCE_any;
    TRY(gpu_reduce_all(name, &p, &list, &odd));
    if (odd != 0 && !gpu_dry)
        return gpu_fail(GPU_RANGE,
                        "%s: a list holds what is no whole number within "
                        "1..%lld",
                        name, (long long)size);
    return GPU_OK;
}

/* picks: will it be looked at by pick? */
static gpu_status check_list(const char *name, const gpu_matrix *list,
                             int64_t size, int picks)
{
    if (list->dtype == GPU_BOOL || list->ndim != 1)
        return gpu_fail(GPU_TYPE, "%s: a list of places is a vector of numbers",
                        name);
    return list->rows == 0 || picks ? GPU_OK
                                    : look_for_places(name, list, size);
}

/* What is read lies on one device, *d, with both lists, which name places of
 * m. */
static gpu_status check_lists(const char *name, const gpu_matrix *read,
                              const gpu_matrix *rows, const gpu_matrix *cols,
                              const gpu_matrix *m, gpu_device **d)
{
    const gpu_matrix *in[3] = {read};
    int n = 1;
    if (rows)
        in[n++] = rows;
    if (cols)
        in[n++] = cols;
    TRY(gpu_check_operands(name, in, n, d));
    int64_t nrows = rows ? rows->rows : m->rows;
    int64_t ncols = cols ? cols->rows : m->cols;
    int picks = (*d)->backend->pick_checks && nrows > 0 && ncols > 0;
    if (rows)
        TRY(check_list(name, rows, m->rows, picks));
    return cols ? check_list(name, cols, m->cols, picks) : GPU_OK;
}

/* Lists name places of p->big; name: of what asks for it, in messages. */
static gpu_status pick(const char *name, gpu_operation *op,
                       const gpu_matrix *rows, const gpu_matrix *cols,
                       gpu_picking *p)
{
    if (rows)
        p->rows = gpu_view_of(rows);
    if (cols)
        p->cols = gpu_view_of(cols);
    p->last_row = last_place(&p->rows, p->big.rows);
    p->last_col = last_place(&p->cols, p->big.cols);
    gpu_status status = RUN_OPERATION(op, pick, p);
    if (status != GPU_RANGE)
        return status;
    if (rows)
        TRY(look_for_places(name, rows, p->big.rows));
    if (cols)
        TRY(look_for_places(name, cols, p->big.cols));
    return gpu_fail(GPU_RANGE, "%s: a list holds what is no place", name);
}

gpu_status gpu_take(const gpu_matrix *m, const gpu_matrix *rows,
                    const gpu_matrix *cols, gpu_matrix *out)
{
    if (gpu_is_complex(m))
        return gpu_take_complex(m, rows, cols, out);
    gpu_device *d;
    TRY(check_lists("gather", m, rows, cols, m, &d));
    TRY(gpu_create(out, d, m->dtype, m->ndim, rows ? rows->rows : m->rows,
                   cols ? cols->rows : m->cols));
    if (gpu_size(out) == 0)
        return GPU_OK;
    gpu_picking p = {.big = gpu_view_of(m), .small = gpu_target_of(out)};
    gpu_operation op = moving("gather", d, out);
    gpu_status status = pick(op.name, &op, rows, cols, &p);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_put(const char *name, const gpu_matrix *from,
                   const gpu_matrix *rows, const gpu_matrix *cols,
                   gpu_matrix *m)
{
    if (gpu_is_complex(m) || gpu_is_complex(from))
        return gpu_put_complex(name, from, rows, cols, m);
    gpu_device *d;
    gpu_matrix source, lists[2] = {{.storage = NULL}, {.storage = NULL}};
    int64_t nrows = rows ? rows->rows : m->rows;
    int64_t ncols = cols ? cols->rows : m->cols;
    TRY(check_lists(name, from, rows, cols, m, &d));
    TRY(check_spread(name, from, m, nrows, ncols));
    TRY(gpu_check_target(name, m, &d));
    if (nrows == 0 || ncols == 0)
        return GPU_OK;
    TRY(apart(from, m, &source));
    spread(&source, nrows, ncols);
    gpu_status status = rows ? apart(rows, m, &lists[0]) : GPU_OK;
    if (status == GPU_OK && cols)
        status = apart(cols, m, &lists[1]);
    if (status == GPU_OK) {
        gpu_picking p = {.small = gpu_view_of(&source), .scatters = 1};
        p.big = gpu_target_of(m);
        gpu_matrix moved = source; /* to m, which is written */
        moved.storage = m->storage;
        gpu_operation op = moving("scatter", d, &moved);
        status = pick(name, &op, rows ? &lists[0] : NULL,
                      cols ? &lists[1] : NULL, &p);
    }
    gpu_release(&source);
    gpu_release(&lists[0]);
    gpu_release(&lists[1]);
    return status;
}

/* --- masks ---------------------------------------------------------------- */

/* count: how many elements are true; -1 in a dry run. */
static gpu_status check_mask(const char *name, const gpu_matrix *m,
                             const gpu_matrix *mask, gpu_device **d,
                             int64_t *count)
{
    const gpu_matrix *in[] = {m, mask};
    TRY(gpu_check_operands(name, in, 2, d));
    if (mask->dtype != GPU_BOOL)
        return gpu_fail(GPU_TYPE,
                        "%s: the mask is %s, not bool: make one "
                        "with A:gt(0) and the like",
                        name, gpu_dtype_name(mask->dtype));
    if (mask->ndim != m->ndim || mask->rows != m->rows || mask->cols != m->cols)
        return gpu_fail(GPU_SHAPE, "%s: shapes differ (%s, mask %s)", name,
                        gpu_shape_text(m), gpu_shape_text(mask));
    gpu_program p;
    gpu_program_start(&p, 1);
    p.reduction = GPU_REDUCE_sum;
    double sum;
    TRY(gpu_reduce_all(name, &p, &mask, &sum));
    *count = gpu_dry ? -1 : (int64_t)sum;
    return GPU_OK;
}

static gpu_operation masking(const char *kernel, gpu_device *d,
                             const gpu_matrix *m, const gpu_matrix *mask,
                             const gpu_matrix *result)
{
    return (gpu_operation){.name = "mask",
                           .kernel = kernel,
                           .device = d,
                           .result = result,
                           .extent = m,
                           .bytes = (double)(gpu_bytes(m) + gpu_bytes(mask))};
}

gpu_status gpu_compress(const gpu_matrix *m, const gpu_matrix *mask,
                        gpu_matrix *out)
{
    if (gpu_is_complex(m))
        return gpu_compress_complex(m, mask, out);
    gpu_device *d;
    int64_t count;
    TRY(check_mask("mask", m, mask, &d, &count));
    if (count < 0)
        return gpu_fail(GPU_UNSUPPORTED,
                        "how many elements A[mask] has depends on the mask");
    TRY(gpu_create(out, d, m->dtype, 1, count, 1));
    if (count == 0)
        return GPU_OK;
    gpu_view from = gpu_view_of(m), where = gpu_view_of(mask);
    gpu_view to = gpu_target_of(out);
    gpu_operation op = masking("compress", d, m, mask, out);
    gpu_status status = RUN_OPERATION(&op, compress, &from, &where, &to);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* The place of each element, counted from 1, row by row. */
static gpu_status count_places(const gpu_matrix *m, gpu_matrix *out)
{
    gpu_program p;
    TRY(gpu_create(out, m->storage->device, GPU_F64, m->ndim, m->rows,
                   m->cols));
    gpu_program_start(&p, 0);
    int cols = gpu_program_constant(&p, (double)m->cols);
    int one = gpu_program_constant(&p, 1);
    int row = gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    int before = gpu_program_add(&p, GPU_OP_mul, row, cols, 0);
    int col = gpu_program_add(&p, GPU_OP_COL, 0, 0, 0);
    int place = gpu_program_add(&p, GPU_OP_add, before, col, 0);
    gpu_program_add(&p, GPU_OP_add, place, one, 0);
    gpu_status status = gpu_map("find", &p, NULL, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

static gpu_status find_on_cpu(gpu_device *d, const gpu_matrix *mask,
                              int64_t count, gpu_matrix *out)
{
    TRY(gpu_create(out, d, GPU_F64, 1, count, 1));
    if (count == 0)
        return GPU_OK;
    gpu_view places = gpu_view_of(mask), where = places;
    gpu_view to = gpu_target_of(out);
    places.data = NULL;
    places.dtype = GPU_F64;
    gpu_operation op = masking("find", d, mask, mask, out);
    gpu_status status = RUN_OPERATION(&op, compress, &places, &where, &to);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_find(const gpu_matrix *mask, gpu_matrix *out)
{
    gpu_device *d;
    int64_t count;
    gpu_matrix places;
    TRY(check_mask("find", mask, mask, &d, &count));
    if (count < 0)
        return gpu_fail(GPU_UNSUPPORTED,
                        "how many places there are depends on the mask");
    if (gpu_device_is_cpu(d))
        return find_on_cpu(d, mask, count, out);
    TRY(count_places(mask, &places));
    gpu_status status = gpu_compress(&places, mask, out);
    gpu_release(&places);
    return status;
}

gpu_status gpu_expand(const gpu_matrix *from, const gpu_matrix *mask,
                      gpu_matrix *m)
{
    if (gpu_is_complex(m) || gpu_is_complex(from))
        return gpu_expand_complex(from, mask, m);
    gpu_device *d;
    int64_t count;
    TRY(check_mask("mask", m, mask, &d, &count));
    TRY(gpu_check_target("mask", m, &d));
    if (count < 0)
        count = gpu_size(from);
    if (gpu_size(from) != count)
        return gpu_fail(GPU_SHAPE,
                        "mask: %lld elements are true, %lld values given",
                        (long long)count, (long long)gpu_size(from));
    if (count == 0)
        return GPU_OK;
    gpu_matrix flat; /* contiguous, of m's type, on its device, apart */
    TRY(gpu_clone(from, m->dtype, d, &flat));
    flat.rows = count;
    flat.cols = flat.row_stride = flat.col_stride = 1;
    gpu_matrix where;
    gpu_status status = apart(mask, m, &where);
    if (status == GPU_OK) {
        gpu_view source = gpu_view_of(&flat), truth = gpu_view_of(&where);
        gpu_view to = gpu_target_of(m);
        gpu_operation op = masking("expand", d, m, mask, m);
        status = RUN_OPERATION(&op, expand, &source, &truth, &to);
        gpu_release(&where);
    }
    gpu_release(&flat);
    return status;
}

/* --- running sums, sorting ------------------------------------------------ */

static gpu_status check_axis(const char *name, const gpu_matrix *m, int axis)
{
    if (axis == 1 || (axis == 2 && m->ndim == 2))
        return GPU_OK;
    return gpu_fail(GPU_ARGUMENT, "%s: %s has no axis %d", name,
                    gpu_shape_text(m), axis);
}

/* A mask is counted and sorted as numbers. */
static gpu_status as_number(const gpu_matrix *m, gpu_dtype of_mask,
                            gpu_matrix *out)
{
    if (m->dtype == GPU_BOOL)
        return gpu_clone(m, of_mask, NULL, out);
    gpu_retain(m);
    *out = *m;
    return GPU_OK;
}

static gpu_status create_like(const gpu_matrix *m, gpu_dtype dtype,
                              gpu_matrix *out)
{
    return gpu_create(out, m->storage->device, dtype, m->ndim, m->rows,
                      m->cols);
}

const char *gpu_scan_name(gpu_scan_kind kind)
{
    static const char *const names[] = {"cumsum", "cumprod", "cummax",
                                        "cummin"};
    return names[kind];
}

gpu_status gpu_scan(const gpu_matrix *m, gpu_scan_kind kind, int axis,
                    gpu_matrix *out)
{
    const char *name = gpu_scan_name(kind);
    gpu_device *d = NULL;
    gpu_matrix from;
    const gpu_matrix *in[] = {m};
    TRY(gpu_check_alive(name, m, &d));
    TRY(check_axis(name, m, axis));
    if (gpu_is_complex(m))
        return gpu_scan_complex(m, kind, axis, out);
    TRY(gpu_check_operands(name, in, 1, &d));
    int64_t most = axis == 1 ? m->rows : m->cols; /* f32 counts up to 2^24 */
    TRY(as_number(m, most > 1 << 24 ? GPU_F64 : GPU_F32, &from));
    gpu_status status = create_like(&from, from.dtype, out);
    if (status == GPU_OK && gpu_size(out) > 0) {
        gpu_view source = gpu_view_of(&from), to = gpu_target_of(out);
        gpu_operation op = {.name = name,
                            .kernel = "scan",
                            .device = d,
                            .result = out,
                            .flops = (double)gpu_size(out),
                            .bytes = 2.0 * (double)gpu_bytes(out)};
        status = RUN_OPERATION(&op, scan, kind, axis, &source, &to);
        if (status != GPU_OK)
            gpu_release(out);
    }
    gpu_release(&from);
    return status;
}

/* Along each line of m, a matrix, the place of the first element that is not 0
 * (of is_all: that is), and whether there is one; both are created. */
static gpu_status find_turns(const char *name, const gpu_matrix *m, int is_all,
                             int axis, gpu_matrix *place, gpu_matrix *found)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    int zero = gpu_program_constant(&p, 0);
    gpu_program_add(&p, is_all ? GPU_OP_eq : GPU_OP_ne, 0, zero, 0);
    p.reduction = GPU_REDUCE_argmax;
    TRY(gpu_reduce(name, &p, &m, axis, place));
    p.reduction = GPU_REDUCE_any;
    gpu_status status = gpu_reduce(name, &p, &m, axis, found);
    if (status != GPU_OK)
        gpu_release(place);
    return status;
}

/* A line has one turn at most, so no element waits for the one before. */
gpu_status gpu_scan_truth(const gpu_matrix *m, int is_all, int axis,
                          gpu_matrix *out)
{
    const char *name = is_all ? "cumall" : "cumany";
    gpu_matrix lines = *m, place, found, result = {.storage = NULL};
    gpu_device *d = NULL;
    TRY(gpu_check_alive(name, m, &d));
    TRY(check_axis(name, m, axis));
    if (gpu_is_complex(m)) {
        gpu_matrix mask;
        TRY(gpu_truth_of(name, m, &mask));
        gpu_status done = gpu_scan_truth(&mask, is_all, axis, out);
        gpu_release(&mask);
        return done;
    }
    if (gpu_size(m) == 0)
        return gpu_create(out, d, GPU_BOOL, m->ndim, m->rows, m->cols);
    lines.ndim = 2;
    TRY(find_turns(name, &lines, is_all, axis, &place, &found));
    gpu_program p;
    gpu_program_start(&p, 2);
    int at = gpu_program_add(&p, axis == 1 ? GPU_OP_ROW : GPU_OP_COL, 0, 0, 0);
    int is_behind = gpu_program_add(&p, GPU_OP_ge, at, 0, 0);
    int is_turned = gpu_program_add(&p, GPU_OP_land, is_behind, 1, 0);
    if (is_all)
        gpu_program_add(&p, GPU_OP_lnot, is_turned, 0, 0);
    const gpu_matrix *in[] = {&place, &found};
    gpu_status status = gpu_create(&result, d, GPU_BOOL, 2, m->rows, m->cols);
    if (status == GPU_OK)
        status = gpu_map(name, &p, in, &result);
    if (status != GPU_OK)
        gpu_release(&result);
    gpu_release(&place);
    gpu_release(&found);
    TRY(status);
    *out = result;
    out->ndim = m->ndim;
    return GPU_OK;
}

/* out and order are created, but for the one that is NULL. */
static gpu_status run_sort(gpu_device *d, const gpu_matrix *from, int axis,
                           int descending, const gpu_matrix *out,
                           const gpu_matrix *order)
{
    if (gpu_size(from) == 0)
        return GPU_OK;
    gpu_view source = gpu_view_of(from), to = {0}, places = {0};
    if (out)
        to = gpu_target_of(out);
    if (order)
        places = gpu_target_of(order);
    gpu_operation op = {.name = "sort",
                        .kernel = "sort",
                        .device = d,
                        .result = out ? out : order,
                        .bytes = 2.0 * (double)gpu_bytes(from)};
    return RUN_OPERATION(&op, sort, axis, descending, &source, out ? &to : NULL,
                         order ? &places : NULL);
}

gpu_status gpu_sort(const gpu_matrix *m, int axis, int descending,
                    gpu_matrix *out, gpu_matrix *order)
{
    gpu_device *d;
    gpu_matrix from;
    const gpu_matrix *in[] = {m};
    if (out)
        out->storage = NULL;
    if (order)
        order->storage = NULL;
    TRY(gpu_check_operands("sort", in, 1, &d));
    TRY(check_axis("sort", m, axis));
    TRY(as_number(m, GPU_F32, &from));
    gpu_status status = out ? create_like(&from, from.dtype, out) : GPU_OK;
    if (status == GPU_OK && order)
        status = create_like(&from, GPU_F64, order);
    if (status == GPU_OK)
        status = run_sort(d, &from, axis, descending, out, order);
    if (status != GPU_OK && out)
        gpu_release(out);
    if (status != GPU_OK && order)
        gpu_release(order);
    gpu_release(&from);
    return status;
}

/* --- choosing by rank -------------------------------------------------------
 */

static gpu_status create_selected(gpu_device *d, const gpu_matrix *from,
                                  int axis, int64_t count, gpu_matrix *out)
{
    if (axis == 0 || from->ndim == 1)
        return gpu_create(out, d, from->dtype, 1, count, 1);
    return gpu_create(out, d, from->dtype, 2, axis == 1 ? count : from->rows,
                      axis == 1 ? from->cols : count);
}

static gpu_status run_first(gpu_device *d, const gpu_matrix *from, int axis,
                            int descending, const gpu_matrix *values,
                            const gpu_matrix *order)
{
    gpu_view source = gpu_view_of(from), to = {0}, places = {0};
    if (values)
        to = gpu_target_of(values);
    if (order)
        places = gpu_target_of(order);
    gpu_operation op = {.name = "topk",
                        .kernel = "first",
                        .device = d,
                        .result = values ? values : order,
                        .extent = from,
                        .bytes = (double)gpu_bytes(from)};
    return RUN_OPERATION(&op, first, axis, descending, &source,
                         values ? &to : NULL, order ? &places : NULL);
}

gpu_status gpu_sort_first(const gpu_matrix *m, int axis, int descending,
                          int64_t count, gpu_matrix *values, gpu_matrix *order)
{
    gpu_device *d;
    gpu_matrix from;
    if (values)
        values->storage = NULL;
    if (order)
        order->storage = NULL;
    TRY(gpu_check_operands("topk", &m, 1, &d));
    TRY(check_axis("topk", m, axis));
    int64_t n = axis == 1 ? m->rows : m->cols;
    if (count > n)
        return gpu_fail(GPU_ARGUMENT, "topk: %lld elements of %lld",
                        (long long)count, (long long)n);
    if (count < 1 || gpu_size(m) == 0 || !d->backend->first)
        return GPU_UNSUPPORTED;
    TRY(as_number(m, GPU_F32, &from));
    gpu_status status = GPU_OK;
    if (values)
        status = create_selected(d, &from, axis, count, values);
    gpu_matrix places = from; /* of its shape, but not of its type */
    places.dtype = GPU_F64;
    if (order && status == GPU_OK)
        status = create_selected(d, &places, axis, count, order);
    if (status == GPU_OK)
        status = run_first(d, &from, axis, descending, values, order);
    if (status != GPU_OK && values)
        gpu_release(values);
    if (status != GPU_OK && order)
        gpu_release(order);
    gpu_release(&from);
    return status;
}

/* out = NaN in lines whose last element, sorted, is. */
static gpu_status spread_nan(const gpu_matrix *sorted, int axis,
                             gpu_matrix *out)
{
    gpu_matrix last;
    gpu_program p;
    gpu_slice rows = {0, 1, sorted->rows}, cols = {0, 1, sorted->cols};
    if (axis == 1)
        rows = (gpu_slice){sorted->rows - 1, 1, 1};
    else
        cols = (gpu_slice){sorted->cols - 1, 1, 1};
    TRY(gpu_view_block(sorted, rows, cols, &last));
    last.ndim = 2;
    gpu_matrix wide = *out; /* a vector is a column here */
    wide.ndim = 2;
    gpu_program_start(&p, 2);
    int is_nan = gpu_program_add(&p, GPU_OP_isnan, 1, 0, 0);
    gpu_program_add(&p, GPU_OP_where, is_nan, 1, 0);
    const gpu_matrix *in[] = {&wide, &last};
    gpu_status status = gpu_map("select", &p, in, &wide);
    gpu_release(&last);
    return status;
}

/* By a sort of everything. */
static gpu_status select_sorted(const gpu_matrix *from, int axis,
                                int spreads_nan, const int64_t *places,
                                int64_t count, gpu_matrix *out)
{
    gpu_matrix lines, sorted;
    if (axis == 0) {
        TRY(gpu_reshape(from, 1, gpu_size(from), 1, &lines));
        axis = 1;
    } else {
        gpu_retain(from);
        lines = *from;
    }
    gpu_status status = gpu_sort(&lines, axis, 0, &sorted, NULL);
    gpu_release(&lines);
    TRY(status);
    status = axis == 1 ? gpu_gather(&sorted, places, count, NULL, 0, out)
                       : gpu_gather(&sorted, NULL, 0, places, count, out);
    if (status == GPU_OK && spreads_nan && gpu_size(out) > 0) {
        status = spread_nan(&sorted, axis, out);
        if (status != GPU_OK)
            gpu_release(out);
    }
    gpu_release(&sorted);
    return status;
}

static gpu_status run_select(gpu_device *d, const gpu_matrix *from, int axis,
                             int spreads_nan, const int64_t *places,
                             int64_t count, gpu_matrix *out)
{
    TRY(create_selected(d, from, axis, count, out));
    if (gpu_size(out) == 0)
        return GPU_OK;
    gpu_view source = gpu_view_of(from), to = gpu_target_of(out);
    gpu_operation op = {.name = "select",
                        .kernel = "select",
                        .device = d,
                        .result = out,
                        .extent = from,
                        .bytes = (double)gpu_bytes(from)};
    gpu_status status = RUN_OPERATION(&op, select, axis, spreads_nan, &source,
                                      places, count, &to);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_select(const gpu_matrix *m, int axis, int spreads_nan,
                      const int64_t *places, int64_t count, gpu_matrix *out)
{
    gpu_device *d;
    gpu_matrix from;
    const gpu_matrix *in[] = {m};
    out->storage = NULL;
    TRY(gpu_check_operands("select", in, 1, &d));
    if (axis != 0)
        TRY(check_axis("select", m, axis));
    int64_t n = axis == 0 ? gpu_size(m) : axis == 1 ? m->rows : m->cols;
    TRY(gpu_check_places("select", places, count, n, "place"));
    TRY(as_number(m, GPU_F32, &from));
    gpu_status status = GPU_UNSUPPORTED;
    if (count <= GPU_MOST_SELECTED)
        status = run_select(d, &from, axis, spreads_nan, places, count, out);
    if (status == GPU_UNSUPPORTED)
        status = select_sorted(&from, axis, spreads_nan, places, count, out);
    gpu_release(&from);
    return status;
}
