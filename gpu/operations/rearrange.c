/* Operations that move elements to other places: gather, scatter, masks,
 * running sums and sorting. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"

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

gpu_status gpu_scatter(const gpu_matrix *from, const int64_t *rows,
                       int64_t nrows, const int64_t *cols, int64_t ncols,
                       gpu_matrix *m)
{
    if (gpu_is_complex(m) || gpu_is_complex(from))
        return gpu_scatter_complex(from, rows, nrows, cols, ncols, m);
    gpu_device *d;
    TRY(gpu_check_operands("scatter", &from, 1, &d));
    TRY(gpu_check_target("scatter", m, &d));
    TRY(gpu_check_places("scatter", rows, nrows, m->rows, "row"));
    TRY(gpu_check_places("scatter", cols, ncols, m->cols, "column"));
    nrows = rows ? nrows : m->rows;
    ncols = cols ? ncols : m->cols;
    int spreads = from->ndim == 2;
    if ((from->rows != nrows && !(spreads && from->rows == 1)) ||
        (from->cols != ncols && !(spreads && from->cols == 1)))
        return gpu_fail(GPU_SHAPE, "scatter: %lldx%lld places, %s given",
                        (long long)nrows, (long long)ncols,
                        gpu_shape_text(from));
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

gpu_status gpu_scan(const gpu_matrix *m, gpu_scan_kind kind, int axis,
                    gpu_matrix *out)
{
    if (gpu_is_complex(m))
        return gpu_scan_complex(m, kind, axis, out);
    const char *name = kind == GPU_SCAN_SUM ? "cumsum" : "cumprod";
    gpu_device *d;
    gpu_matrix from;
    const gpu_matrix *in[] = {m};
    TRY(gpu_check_operands(name, in, 1, &d));
    TRY(check_axis(name, m, axis));
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
