/* Operations that look places up and fold what belongs together: searching in
 * sorted vectors, groups by code, their folds, and moving windows. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"

#include <math.h>

/* m as numbers: itself, with a reference, or a copy of a mask. */
static gpu_status as_numbers(const gpu_matrix *m, gpu_matrix *out)
{
    if (m->dtype == GPU_BOOL)
        return gpu_clone(m, GPU_F32, NULL, out);
    gpu_retain(m);
    *out = *m;
    return GPU_OK;
}

static gpu_status check_vector(const char *name, const gpu_matrix *m,
                               const char *what)
{
    if (m->ndim == 1)
        return GPU_OK;
    return gpu_fail(GPU_SHAPE, "%s: %s has to be a vector, not %s", name, what,
                    gpu_shape_text(m));
}

/* --- searching ------------------------------------------------------------ */

gpu_status gpu_search(const gpu_matrix *sorted, const gpu_matrix *values,
                      int is_after, gpu_matrix *out)
{
    const char *name = "searchsorted";
    const gpu_matrix *in[] = {sorted, values};
    gpu_matrix list, sought = {.storage = NULL};
    gpu_device *d;
    TRY(gpu_check_operands(name, in, 2, &d));
    TRY(check_vector(name, sorted, "what is searched"));
    TRY(as_numbers(sorted, &list));
    gpu_status status = as_numbers(values, &sought);
    if (status == GPU_OK)
        status = gpu_create(out, d, GPU_F64, values->ndim, values->rows,
                            values->cols);
    if (status == GPU_OK && gpu_size(out) > 0) {
        gpu_view where = gpu_view_of(&list), what = gpu_view_of(&sought);
        gpu_view to = gpu_target_of(out);
        gpu_operation op = {.name = name,
                            .kernel = "search",
                            .device = d,
                            .result = out,
                            .bytes =
                                (double)(gpu_bytes(&list) + gpu_bytes(&sought) +
                                         gpu_bytes(out))};
        status = RUN_OPERATION(&op, search, &where, &what, is_after, &to);
        if (status != GPU_OK)
            gpu_release(out);
    }
    gpu_release(&list);
    gpu_release(&sought);
    return status;
}

/* --- runs ----------------------------------------------------------------- */

/* What gpu_find_runs gives to the entry, which asks for room. */
typedef struct run_results {
    gpu_runs runs;
    gpu_device *device;
    gpu_dtype dtype;
    gpu_matrix *values, *starts, *lengths;
} run_results;

static gpu_status make_run_room(gpu_runs *r)
{
    run_results *m = (run_results *)r; /* which it begins */
    if (m->values) {
        TRY(gpu_create(m->values, m->device, m->dtype, 1, r->count, 1));
        r->values = gpu_target_of(m->values);
    }
    if (m->starts) {
        TRY(gpu_create(m->starts, m->device, GPU_F64, 1, r->count + 1, 1));
        r->starts = gpu_target_of(m->starts);
    }
    if (m->lengths) {
        TRY(gpu_create(m->lengths, m->device, GPU_F64, 1, r->count, 1));
        r->lengths = gpu_target_of(m->lengths);
    }
    return GPU_OK;
}

gpu_status gpu_find_runs(const gpu_matrix *sorted, gpu_matrix *values,
                         gpu_matrix *starts, gpu_matrix *lengths)
{
    gpu_matrix *results[] = {values, starts, lengths};
    enum { RESULTS = sizeof results / sizeof *results };
    gpu_device *d;
    for (int i = 0; i < RESULTS; i++)
        if (results[i])
            results[i]->storage = NULL;
    TRY(gpu_check_operands("unique", &sorted, 1, &d));
    TRY(check_vector("unique", sorted, "what is sorted"));
    if (gpu_dry)
        return gpu_fail(GPU_UNSUPPORTED, "how many different elements there "
                                         "are depends on them");
    run_results m = {.runs = {.make_room = make_run_room},
                     .device = d,
                     .dtype = sorted->dtype,
                     .values = values,
                     .starts = starts,
                     .lengths = lengths};
    gpu_view from = gpu_view_of(sorted);
    gpu_matrix shape = *sorted; /* nothing of them is there before they are */
    shape.storage = NULL;
    gpu_operation op = {.name = "unique",
                        .kernel = "runs",
                        .device = d,
                        .result = &shape,
                        .extent = sorted,
                        .bytes = (double)gpu_bytes(sorted)};
    gpu_status status = RUN_OPERATION(&op, runs, &from, &m.runs);
    int is_made = 0;
    for (int i = 0; i < RESULTS; i++)
        is_made |= results[i] && results[i]->storage;
    if (status == GPU_OK && !is_made)
        status = make_run_room(&m.runs);
    for (int i = 0; i < RESULTS && status != GPU_OK; i++)
        if (results[i])
            gpu_release(results[i]);
    return status;
}

/* --- groups --------------------------------------------------------------- */

static gpu_status check_groups(const char *name, const gpu_matrix *codes,
                               int64_t groups)
{
    TRY(check_vector(name, codes, "what tells rows apart"));
    if (codes->dtype == GPU_BOOL)
        return gpu_fail(GPU_TYPE, "%s: codes are numbers, not a mask", name);
    if (groups < 0 || groups >= INT32_MAX)
        return gpu_fail(GPU_ARGUMENT, "%s: %lld groups; there can be 2^31 - 2",
                        name, (long long)groups);
    return GPU_OK;
}

/* order and counts exist, but for one that is NULL. */
static gpu_status run_group(gpu_device *d, const gpu_matrix *codes,
                            double first, int64_t groups,
                            const gpu_matrix *order, const gpu_matrix *counts)
{
    gpu_grouping g = {
        .codes = gpu_view_of(codes), .first = first, .groups = groups};
    if (order)
        g.order = gpu_target_of(order);
    if (counts)
        g.counts = gpu_target_of(counts);
    gpu_operation op = {.name = "group",
                        .kernel = "group",
                        .device = d,
                        .result = order ? order : counts,
                        .extent = codes,
                        .bytes = (double)gpu_bytes(codes) +
                                 (order ? 2.0 * (double)gpu_bytes(order) : 0)};
    return RUN_OPERATION(&op, group, &g);
}

gpu_status gpu_group(const gpu_matrix *codes, double first, int64_t groups,
                     gpu_matrix *order, gpu_matrix *counts)
{
    gpu_device *d;
    if (order)
        order->storage = NULL;
    if (counts)
        counts->storage = NULL;
    TRY(gpu_check_operands("group", &codes, 1, &d));
    TRY(check_groups("group", codes, groups));
    gpu_status status = GPU_OK;
    if (order)
        status = gpu_create(order, d, GPU_F64, 1, codes->rows, 1);
    if (status == GPU_OK && counts)
        status = codes->rows == 0
                     ? gpu_create_zeros(counts, d, GPU_F64, 1, groups, 1)
                     : gpu_create(counts, d, GPU_F64, 1, groups, 1);
    if (status == GPU_OK && codes->rows > 0 && (order || groups > 0))
        status = run_group(d, codes, first, groups, order, counts);
    if (status != GPU_OK && order)
        gpu_release(order);
    if (status != GPU_OK && counts)
        gpu_release(counts);
    return status;
}

gpu_status gpu_groups_present(const gpu_matrix *codes, double first,
                              int64_t groups, gpu_matrix *out)
{
    gpu_device *d;
    out->storage = NULL;
    TRY(gpu_check_operands("group", &codes, 1, &d));
    TRY(check_groups("group", codes, groups));
    if (codes->rows == 0 || groups == 0)
        return gpu_create_zeros(out, d, GPU_BOOL, 1, groups, 1);
    TRY(gpu_create(out, d, GPU_BOOL, 1, groups, 1));
    gpu_status status = run_group(d, codes, first, groups, NULL, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* --- folds ---------------------------------------------------------------- */

static const char *fold_name(gpu_fold_kind kind)
{
    static const char *const names[] = {"sum",   "prod",   "max",   "min",
                                        "count", "spread", "median"};
    return names[kind];
}

/* Everything that is read lies on one device and has the shape it should;
 * *groups: how many there are. */
static gpu_status check_fold(const char *name, const gpu_fold_call *c,
                             gpu_device **d, int64_t *groups)
{
    const gpu_matrix *in[5] = {c->values};
    int n = 1;
    if (c->codes)
        in[n++] = c->codes;
    if (c->starts)
        in[n++] = c->starts;
    if (c->places)
        in[n++] = c->places;
    if (c->kind == GPU_FOLD_SPREAD)
        in[n++] = c->about;
    TRY(gpu_check_operands(name, in, n, d));
    *groups = c->codes ? c->groups : c->starts->rows - 1;
    if (c->codes) {
        TRY(check_groups(name, c->codes, *groups));
        if (c->codes->rows != c->values->rows)
            return gpu_fail(GPU_SHAPE, "%s: %lld codes for %s", name,
                            (long long)c->codes->rows,
                            gpu_shape_text(c->values));
        if (c->kind == GPU_FOLD_MEDIAN)
            return gpu_fail(GPU_ARGUMENT, "%s: is of ordered rows", name);
    } else if (c->starts->ndim != 1 || c->starts->dtype != GPU_F64 ||
               c->starts->rows < 1 ||
               (c->places &&
                (c->places->ndim != 1 || c->places->dtype != GPU_F64))) {
        return gpu_fail(GPU_TYPE,
                        "%s: places are f64 vectors, with one more "
                        "start than there are groups",
                        name);
    }
    if (c->kind == GPU_FOLD_SPREAD &&
        (c->about->dtype != GPU_F64 || c->about->rows != *groups ||
         c->about->cols != c->values->cols))
        return gpu_fail(GPU_SHAPE, "%s: the middles are %s, not %s", name,
                        gpu_shape_text(c->about),
                        gpu_size_text(*groups, c->values->cols));
    return GPU_OK;
}

/* What backends that fold ordered rows alone are given in place of codes. */
typedef struct row_order {
    gpu_matrix order, starts;
} row_order;

static gpu_status order_rows(gpu_device *d, const gpu_fold_call *c,
                             row_order *o)
{
    gpu_matrix counts, rest = {.storage = NULL}, sums;
    int64_t groups = c->groups;
    TRY(gpu_group(c->codes, c->first, groups, &o->order, &counts));
    gpu_status status = gpu_scan(&counts, GPU_SCAN_SUM, 1, &sums);
    gpu_release(&counts);
    if (status == GPU_OK) {
        o->starts.storage = NULL;
        status = gpu_create(&o->starts, d, GPU_F64, 1, groups + 1, 1);
        if (status == GPU_OK)
            status = gpu_fill(&o->starts, 1);
        if (status == GPU_OK)
            status = gpu_view_block(&o->starts, (gpu_slice){1, 1, groups},
                                    (gpu_slice){0, 1, 1}, &rest);
        if (status == GPU_OK) {
            gpu_program p;
            const gpu_matrix *in[] = {&rest, &sums};
            gpu_program_start(&p, 2);
            gpu_program_add(&p, GPU_OP_add, 0, 1, 0);
            status = gpu_map("group", &p, in, &rest);
        }
        gpu_release(&rest);
        gpu_release(&sums);
        if (status != GPU_OK)
            gpu_release(&o->starts);
    }
    if (status != GPU_OK)
        gpu_release(&o->order);
    return status;
}

static gpu_status run_fold(gpu_device *d, const char *name,
                           const gpu_matrix *values, const gpu_folding *f,
                           const gpu_matrix *out)
{
    gpu_operation op = {.name = name,
                        .kernel = "fold",
                        .device = d,
                        .result = out,
                        .extent = values,
                        .flops = (double)gpu_size(values),
                        .bytes = (double)gpu_bytes(values) +
                                 8.0 * (double)values->rows};
    return RUN_OPERATION(&op, fold, f);
}

static gpu_status fold_there(gpu_device *d, const char *name,
                             const gpu_fold_call *c, const gpu_matrix *values,
                             int64_t groups, const gpu_matrix *out)
{
    gpu_folding f = {.kind = c->kind,
                     .skips_nan = c->skips_nan,
                     .from = gpu_view_of(values),
                     .groups = groups,
                     .first = c->first};
    if (c->codes)
        f.codes = gpu_view_of(c->codes);
    else
        f.starts = gpu_view_of(c->starts);
    if (!c->codes && c->places)
        f.places = gpu_view_of(c->places);
    if (c->kind == GPU_FOLD_SPREAD)
        f.about = gpu_view_of(c->about);
    f.to = gpu_target_of(out);
    gpu_status status = run_fold(d, name, values, &f, out);
    if (status == GPU_UNSUPPORTED && c->kind == GPU_FOLD_MEDIAN)
        return gpu_fail(status, "%s: is for matrices on the CPU", name);
    if (status != GPU_UNSUPPORTED || !c->codes)
        return status;
    row_order o;
    TRY(order_rows(d, c, &o));
    const gpu_matrix *in[] = {&o.order, &o.starts};
    status = gpu_check_operands(name, in, 2, &d);
    if (status == GPU_OK) {
        f.codes = (gpu_view){.data = NULL};
        f.starts = gpu_view_of(&o.starts);
        f.places = gpu_view_of(&o.order);
        status = run_fold(d, name, values, &f, out);
    }
    gpu_release(&o.order);
    gpu_release(&o.starts);
    return status;
}

/* What folds of nothing are. */
static double of_nothing(gpu_fold_kind kind)
{
    return kind == GPU_FOLD_PROD ? 1
           : kind == GPU_FOLD_MAX || kind == GPU_FOLD_MIN ||
                   kind == GPU_FOLD_MEDIAN
               ? (double)NAN
               : 0;
}

gpu_status gpu_fold(const gpu_fold_call *c, gpu_matrix *out)
{
    const char *name = fold_name(c->kind);
    gpu_device *d;
    gpu_matrix values;
    int64_t groups;
    TRY(check_fold(name, c, &d, &groups));
    TRY(as_numbers(c->values, &values));
    gpu_status status =
        gpu_create(out, d, GPU_F64, c->values->ndim, groups, c->values->cols);
    if (status == GPU_OK && gpu_size(out) > 0) {
        status = values.rows == 0
                     ? gpu_fill(out, of_nothing(c->kind))
                     : fold_there(d, name, c, &values, groups, out);
        if (status != GPU_OK)
            gpu_release(out);
    }
    gpu_release(&values);
    return status;
}

/* --- windows -------------------------------------------------------------- */

static const char *window_name(gpu_window_kind kind)
{
    static const char *const names[] = {"movmean", "movmin", "movmax", "movstd",
                                        "movmedian"};
    return names[kind];
}

/* to: f64, on the device, of the lines' shape. */
static gpu_status run_windows(gpu_device *d, const char *name,
                              const gpu_matrix *m, const gpu_windows *w,
                              const gpu_matrix *to)
{
    gpu_operation op = {.name = name,
                        .kernel = "windows",
                        .device = d,
                        .result = to,
                        .k = w->length,
                        .flops = (double)gpu_size(to),
                        .bytes = (double)(gpu_bytes(m) + gpu_bytes(to))};
    return RUN_OPERATION(&op, windows, w);
}

static gpu_status windows_there(gpu_device *d, const char *name,
                                const gpu_matrix *m, int axis, gpu_windows *w,
                                const gpu_matrix *to)
{
    w->from = gpu_view_of(m);
    w->to = gpu_target_of(to);
    if (axis == 2) {
        w->from = gpu_turned(&w->from);
        w->to = gpu_turned(&w->to);
    }
    return run_windows(d, name, m, w, to);
}

/* By the CPU, on copies. */
static gpu_status windows_on_cpu(const char *name, const gpu_matrix *m,
                                 int axis, gpu_windows *w, gpu_matrix *to)
{
    gpu_device *cpu = gpu_cpu();
    gpu_matrix from, made;
    gpu_note_fallback();
    TRY(gpu_clone(m, m->dtype, cpu, &from));
    gpu_status status =
        gpu_create(&made, cpu, GPU_F64, to->ndim, to->rows, to->cols);
    if (status == GPU_OK) {
        status = windows_there(cpu, name, &from, axis, w, &made);
        if (status == GPU_OK)
            status = gpu_copy(&made, to);
        gpu_release(&made);
    }
    gpu_release(&from);
    return status;
}

/* Where all windows would reach beyond the line they are cut. */
static void trim(int64_t size, int64_t count, int64_t *length, int64_t *first)
{
    int64_t last = *first + *length - 1; /* of the first result's window */
    if (last >= size)
        last = size - 1;
    if (*first < 1 - count)
        *first = 1 - count;
    *length = last - *first + 1;
}

gpu_status gpu_window(const gpu_matrix *m, gpu_window_kind kind, int axis,
                      int64_t length, int64_t first, int64_t count,
                      gpu_matrix *out)
{
    const char *name = window_name(kind);
    gpu_device *d;
    gpu_matrix numbers, wide = {.storage = NULL};
    TRY(gpu_check_operands(name, &m, 1, &d));
    int64_t size = axis == 1 ? m->rows : m->cols;
    if (axis != 1 && (axis != 2 || m->ndim == 1))
        return gpu_fail(GPU_ARGUMENT, "%s: %s has no axis %d", name,
                        gpu_shape_text(m), axis);
    if (length < 1 || count < 0 ||
        (count > 0 && (first + length < 1 || count - 1 + first >= size)))
        return gpu_fail(GPU_ARGUMENT, "%s: a window of %lld lies outside", name,
                        (long long)length);
    trim(size, count, &length, &first);
    TRY(as_numbers(m, &numbers));
    gpu_windows w = {.kind = kind, .length = length, .first = first};
    gpu_status status =
        gpu_create(&wide, d, GPU_F64, m->ndim, axis == 1 ? count : m->rows,
                   axis == 2 ? count : m->cols);
    if (status == GPU_OK && gpu_size(&wide) > 0) {
        status = windows_there(d, name, &numbers, axis, &w, &wide);
        if (status == GPU_UNSUPPORTED && !gpu_device_is_cpu(d))
            status = windows_on_cpu(name, &numbers, axis, &w, &wide);
    }
    if (status == GPU_OK && numbers.dtype != GPU_F64)
        status = gpu_clone(&wide, numbers.dtype, NULL, out);
    else if (status == GPU_OK)
        *out = wide;
    if (status != GPU_OK || numbers.dtype != GPU_F64)
        gpu_release(&wide);
    gpu_release(&numbers);
    return status;
}
