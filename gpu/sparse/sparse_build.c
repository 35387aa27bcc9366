/* Sparse matrices made: of triplets, of dense matrices, of others transposed;
 * and made dense again. What a device has no entry for the CPU does, and
 * matrices travel there and back. */
#include "complex_numbers.h"
#include "sparse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* s and result may be NULL. */
static gpu_operation operation_of(const char *name, gpu_device *d,
                                  const gpu_sparse *s, const gpu_matrix *result,
                                  double bytes)
{
    return (gpu_operation){.name = name,
                           .kernel = "csr",
                           .device = d,
                           .result = result,
                           .bytes =
                               (s ? (double)gpu_sparse_bytes(s) : 0) + bytes};
}

/* A dry run knows how many entries there are, or can be, and neither which nor
 * where. */
static gpu_status create_dry(int64_t rows, int64_t cols, int64_t count,
                             gpu_dtype dtype, gpu_device *d, gpu_sparse *out)
{
    *out = (gpu_sparse){.rows = rows, .cols = cols, .count = count};
    gpu_status status =
        gpu_upload_vector(d, GPU_F32, rows + 1, NULL, &out->starts);
    if (status == GPU_OK)
        status = gpu_upload_vector(d, GPU_F32, count, NULL, &out->columns);
    if (status == GPU_OK)
        status = gpu_upload_vector(d, dtype, count, NULL, &out->values);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}

static gpu_status check_complex_values(int is_complex, gpu_dtype dtype)
{
    return !is_complex || gpu_dtype_is_complex(dtype)
               ? GPU_OK
               : gpu_fail(GPU_TYPE, "sparse: complex values do not fit %s",
                          gpu_dtype_name(dtype));
}

/* --- triplets ------------------------------------------------------------- */

/* The first place outside. */
static gpu_status fail_outside(const gpu_triplet_lists *t)
{
    int64_t k = 0;
    while (t->row[k] < t->rows && t->col[k] < t->cols)
        k++;
    return gpu_fail(GPU_RANGE,
                    "sparse: entry %lld is at (%lld, %lld), outside %s",
                    (long long)k + 1, (long long)t->row[k] + 1,
                    (long long)t->col[k] + 1, gpu_size_text(t->rows, t->cols));
}

gpu_status gpu_sparse_cut_off(gpu_sparse *s, int64_t count)
{
    enum { EIGHTH = 8 };
    gpu_sparse all = *s;
    int64_t unused = s->count - count;
    s->count = s->columns.rows = s->values.rows = count;
    if (unused <= all.count / EIGHTH)
        return GPU_OK;
    gpu_matrix columns, values;
    TRY(gpu_clone(&s->columns, GPU_F32, NULL, &columns));
    gpu_status status = gpu_clone(&s->values, s->values.dtype, NULL, &values);
    if (status != GPU_OK) {
        gpu_release(&columns);
        return status;
    }
    gpu_release(&all.columns);
    gpu_release(&all.values);
    s->columns = columns;
    s->values = values;
    return GPU_OK;
}

/* On d, where t lies; the places lie inside. */
static gpu_status build_there(gpu_device *d, const gpu_triplet_lists *t,
                              gpu_sparse *out)
{
    TRY(gpu_sparse_create_arrays(d, t->dtype, t->rows, t->cols, t->count, out));
    gpu_rows_out to = gpu_rows_of(out);
    gpu_operation op = operation_of("sparse", d, out, &out->values, 0);
    int64_t count;
    gpu_status status = RUN_OPERATION(&op, sparse_build, t, to.starts,
                                      to.columns, to.values, &count);
    if (status == GPU_OK)
        status = gpu_sparse_cut_off(out, count);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}

static gpu_status build(const gpu_triplet_lists *t, gpu_dtype dtype,
                        gpu_device *d, gpu_sparse *out)
{
    gpu_sparse here;
    if (!d)
        TRY(gpu_default(&d));
    TRY(build_there(gpu_cpu(), t, &here));
    return gpu_sparse_send(&here, dtype, d, out);
}

/* Room for the places of count entries, to be freed; NULL: there is none. */
static int32_t *take_places(int64_t count)
{
    int32_t *places = malloc((2 * (size_t)count + 1) * sizeof *places);
    if (!places)
        gpu_fail(GPU_MEMORY, "out of memory: %s for the places of entries",
                 gpu_bytes_text(2 * (size_t)count * sizeof *places));
    return places;
}

/* Counted from 1, as far as that goes. */
static long long shown(int64_t i)
{
    return i < INT64_MAX ? i + 1 : i;
}

static gpu_status copy_places(const gpu_triplets *t, int32_t *row, int32_t *col)
{
    for (int64_t k = 0; k < t->count; k++) {
        int64_t i = t->row[k], j = t->col[k];
        POLL_AT(k);
        if (i < 0 || i >= t->rows || j < 0 || j >= t->cols)
            return gpu_fail(GPU_RANGE,
                            "sparse: entry %lld is at (%lld, %lld), outside "
                            "%s",
                            shown(k), shown(i), shown(j),
                            gpu_size_text(t->rows, t->cols));
        row[k] = (int32_t)i;
        col[k] = (int32_t)j;
    }
    return GPU_OK;
}

/* Values go as they are given, and are rounded once they are added up. */
static gpu_status build_triplets(const gpu_triplets *t, int32_t *places,
                                 gpu_dtype dtype, gpu_device *d,
                                 gpu_sparse *out)
{
    gpu_triplet_lists lists = {.rows = t->rows,
                               .cols = t->cols,
                               .count = t->count,
                               .row = places,
                               .col = places + t->count,
                               .values = t->value,
                               .dtype = t->is_complex ? GPU_C128 : GPU_F64};
    TRY(copy_places(t, places, places + t->count));
    return build(&lists, dtype, d, out);
}

gpu_status gpu_sparse_create(gpu_sparse *out, gpu_device *device,
                             gpu_dtype dtype, const gpu_triplets *from)
{
    *out = (gpu_sparse){0};
    TRY(check_complex_values(from->is_complex, dtype));
    TRY(gpu_sparse_check_sizes(from->rows, from->cols, from->count));
    int32_t *places = take_places(from->count);
    if (!places)
        return GPU_MEMORY;
    gpu_status status = build_triplets(from, places, dtype, device, out);
    free(places);
    return status;
}

/* --- lists on a device ---------------------------------------------------- */

static gpu_status fail_place(const char *list, const gpu_matrix *m, int64_t k)
{
    double x = 0;
    TRY(gpu_get(m, k, 0, &x));
    if (x == floor(x) && x > INT32_MAX && x < 0x1p53)
        return gpu_fail(GPU_ARGUMENT,
                        "sparse: %s of entry %lld is %.0f: a size must be "
                        "below 2147483648",
                        list, (long long)k + 1, x);
    if (x == floor(x) && fabs(x) < 0x1p53)
        return gpu_fail(GPU_ARGUMENT,
                        "sparse: %s of entry %lld is %.0f: indices start at 1",
                        list, (long long)k + 1, x);
    return gpu_fail(GPU_ARGUMENT,
                    isnan(x) ? "sparse: %s of entry %lld must be a whole "
                               "number, not NaN"
                             : "sparse: %s of entry %lld must be a whole "
                               "number, not %.14g",
                    list, (long long)k + 1, x);
}

/* The places of a list, which is on any device; size, where it is not known
 * (-1), becomes the largest. */
static gpu_status read_places(const char *list, const gpu_matrix *m,
                              int32_t *places, int64_t *size, int64_t *largest)
{
    gpu_matrix here;
    int64_t wrong = -1;
    TRY(gpu_sparse_bring_vector(m, m->dtype, &here));
    gpu_view from = gpu_view_of(&here);
    gpu_status status = gpu_cpu()->backend->sparse_places(
        gpu_cpu()->handle, &from, places, largest, &wrong);
    if (status == GPU_OK && wrong >= 0)
        status = fail_place(list, &here, wrong);
    gpu_release(&here);
    *size = *size < 0 ? *largest : *size;
    return status;
}

/* Of m on d, which takes them: to places; *fits: there is nothing wrong. */
static gpu_status read_places_there(gpu_device *d, const gpu_matrix *m,
                                    int32_t *places, int64_t *size, int *fits)
{
    gpu_matrix there;
    int64_t wrong, largest;
    TRY(gpu_clone(m, m->dtype, d, &there));
    gpu_view from = gpu_view_of(&there);
    gpu_status status =
        d->backend->sparse_places(d->handle, &from, places, &largest, &wrong);
    gpu_release(&there);
    *size = *size < 0 ? largest : *size;
    *fits = *fits && wrong < 0 && largest <= *size;
    return status;
}

/* t has sizes, as in build_lists, room is for its places. *fits: the places are
 * inside, else there is nothing, and the CPU says what is wrong. */
static gpu_status build_in(gpu_device *d, const gpu_sparse_lists *l,
                           gpu_triplet_lists *t, gpu_matrix *room,
                           gpu_dtype dtype, int *fits, gpu_sparse *out)
{
    gpu_matrix values;
    gpu_sparse there;
    int32_t *places = gpu_target_of(room).data;
    t->row = places;
    t->col = places + t->count;
    TRY(read_places_there(d, l->row, places, &t->rows, fits));
    TRY(read_places_there(d, l->col, places + t->count, &t->cols, fits));
    if (!*fits)
        return GPU_OK;
    t->dtype = gpu_dtype_wider(l->value->dtype, dtype);
    TRY(gpu_clone(l->value, t->dtype, d, &values));
    t->values = gpu_view_of(&values).data;
    gpu_status status = build_there(d, t, &there);
    gpu_release(&values);
    return status == GPU_OK ? gpu_sparse_send(&there, dtype, d, out) : status;
}

static gpu_status build_on(gpu_device *d, const gpu_sparse_lists *l,
                           gpu_dtype dtype, int *fits, gpu_sparse *out)
{
    gpu_matrix room;
    gpu_triplet_lists t = {
        .rows = l->rows, .cols = l->cols, .count = l->value->rows};
    TRY(gpu_create(&room, d, GPU_F32, 1, 2 * t.count, 1));
    gpu_status status = build_in(d, l, &t, &room, dtype, fits, out);
    gpu_release(&room);
    return status;
}

/* t has sizes, -1 where they are not known; its values are put in. */
static gpu_status build_lists(const gpu_sparse_lists *l, gpu_triplet_lists *t,
                              int32_t *places, gpu_dtype dtype, gpu_device *d,
                              gpu_sparse *out)
{
    gpu_matrix values;
    int64_t down, across;
    t->row = places;
    t->col = places + t->count;
    TRY(read_places("i", l->row, places, &t->rows, &down));
    TRY(read_places("j", l->col, places + t->count, &t->cols, &across));
    TRY(gpu_sparse_check_sizes(t->rows, t->cols, t->count));
    if (down > t->rows || across > t->cols)
        return fail_outside(t);
    t->dtype = gpu_dtype_wider(l->value->dtype, dtype);
    TRY(gpu_sparse_bring_vector(l->value, t->dtype, &values));
    t->values = gpu_view_of(&values).data;
    gpu_status status = build(t, dtype, d, out);
    gpu_release(&values);
    return status;
}

static int takes_lists(const gpu_device *d)
{
    return !d->is_cpu && d->backend->sparse_build;
}

static gpu_status build_dry(const gpu_sparse_lists *l, gpu_dtype dtype,
                            gpu_device *d, gpu_sparse *out)
{
    if (l->rows < 0 || l->cols < 0)
        return gpu_fail_unread();
    if (!d)
        TRY(gpu_default(&d));
    TRY(create_dry(l->rows, l->cols, l->value->rows, dtype, d, out));
    gpu_triplet_lists t = {
        .rows = l->rows, .cols = l->cols, .count = out->count, .dtype = dtype};
    gpu_device *there = takes_lists(d) ? d : gpu_cpu();
    gpu_operation op = operation_of("sparse", there, out, &out->values, 0);
    gpu_rows_out to = gpu_rows_of(out);
    return RUN_OPERATION(&op, sparse_build, &t, to.starts, to.columns,
                         to.values, &out->count);
}

gpu_status gpu_sparse_build(const gpu_sparse_lists *l, gpu_dtype dtype,
                            gpu_device *device, gpu_sparse *out)
{
    gpu_triplet_lists t = {
        .rows = l->rows, .cols = l->cols, .count = l->value->rows};
    *out = (gpu_sparse){0};
    TRY(check_complex_values(gpu_is_complex(l->value), dtype));
    TRY(gpu_sparse_check_sizes(t.rows < 0 ? 0 : t.rows, t.cols < 0 ? 0 : t.cols,
                               t.count));
    if (gpu_dry)
        return build_dry(l, dtype, device, out);
    int fits = 1;
    if (!device)
        TRY(gpu_default(&device));
    if (takes_lists(device)) {
        TRY(build_on(device, l, dtype, &fits, out));
        if (fits)
            return GPU_OK;
    }
    int32_t *places = take_places(t.count);
    if (!places)
        return GPU_MEMORY;
    gpu_status status = build_lists(l, &t, places, dtype, device, out);
    free(places);
    return status;
}

/* --- dense matrices ------------------------------------------------------- */

static gpu_status call_from_dense(gpu_operation *op, const void *context,
                                  gpu_csr_result *r)
{
    return RUN_OPERATION(op, sparse_from_dense, context, r->starts, r->columns,
                         r->values, &r->count);
}

/* m lies on d, without gaps in its rows. */
static gpu_status collect(gpu_device *d, const gpu_matrix *m, gpu_sparse *out)
{
    gpu_view from = gpu_view_of(m);
    gpu_sparse_making making = {
        .op = operation_of("sparse", d, NULL, NULL, (double)gpu_bytes(m)),
        .dtype = m->dtype == GPU_BOOL ? GPU_F32 : m->dtype,
        .out = out};
    making.op.extent = m;
    TRY(gpu_sparse_count(&making, m->rows, m->cols, call_from_dense, &from));
    return gpu_sparse_fill(&making, call_from_dense, &from);
}

/* As many entries as there can be, found `there`. */
static gpu_status collect_dry(gpu_device *there, const gpu_matrix *m,
                              gpu_dtype dtype, gpu_device *d, gpu_sparse *out)
{
    int64_t count = gpu_size(m) < INT32_MAX ? gpu_size(m) : INT32_MAX;
    gpu_view from = gpu_view_of(m);
    TRY(gpu_download_unseen(m, NULL));
    TRY(create_dry(m->rows, m->cols, count, dtype, d, out));
    gpu_operation op = operation_of("sparse", there, out, &out->values,
                                    2 * (double)gpu_bytes(m));
    gpu_rows_out to = gpu_rows_of(out);
    return RUN_OPERATION(&op, sparse_from_dense, &from, to.starts, to.columns,
                         to.values, &count);
}

gpu_status gpu_sparse_from_dense(const gpu_matrix *m, gpu_dtype dtype,
                                 gpu_device *device, gpu_sparse *out)
{
    gpu_device *d;
    gpu_matrix plain;
    gpu_sparse here;
    const gpu_matrix *in[] = {m};
    *out = (gpu_sparse){0};
    TRY(gpu_check_complex("sparse", in, 1, &d));
    TRY(check_complex_values(gpu_is_complex(m), dtype));
    gpu_device *there = d->backend->sparse_from_dense ? d : gpu_cpu();
    if (gpu_dry)
        return collect_dry(there, m, dtype, device ? device : d, out);
    if (there == d && !m->is_conjugated && m->col_stride == 1) {
        gpu_retain(m);
        plain = *m;
    } else {
        TRY(gpu_clone(m, m->dtype, there, &plain));
    }
    gpu_status status = collect(there, &plain, &here);
    gpu_release(&plain);
    return status == GPU_OK
               ? gpu_sparse_send(&here, dtype, device ? device : d, out)
               : status;
}

/* --- diagonals ------------------------------------------------------------ */

typedef struct offset {
    int64_t offset, place;
} offset;

static int by_offset(const void *a, const void *b)
{
    const offset *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Both lists of d, in one piece of memory to be freed: ascending. NULL: there
 * is none. */
static int64_t *order_offsets(const int64_t *offsets, gpu_diagonals *d)
{
    size_t count = (size_t)d->count;
    int64_t *lists = malloc((2 * count + 1) * sizeof *lists);
    offset *all = malloc((count + 1) * sizeof *all);
    for (size_t k = 0; lists && all && k < count; k++)
        all[k] = (offset){offsets[k], (int64_t)k};
    if (lists && all)
        qsort(all, count, sizeof *all, by_offset);
    for (size_t k = 0; lists && all && k < count; k++) {
        lists[k] = all[k].offset;
        lists[count + k] = all[k].place;
    }
    if (!all) {
        free(lists);
        lists = NULL;
    }
    free(all);
    d->offsets = lists;
    d->places = lists ? lists + count : NULL;
    return lists;
}

static gpu_status call_diagonals(gpu_operation *op, const void *context,
                                 gpu_csr_result *r)
{
    return RUN_OPERATION(op, sparse_diagonals, context, r->starts, r->columns,
                         r->values, &r->count);
}

/* The diagonals lie on the CPU. */
static gpu_status lay(const gpu_diagonals *d, const gpu_matrix *from,
                      gpu_sparse *out)
{
    gpu_sparse_making m = {.op = operation_of("spdiags", gpu_cpu(), NULL, NULL,
                                              (double)gpu_bytes(from)),
                           .dtype = from->dtype,
                           .out = out};
    m.op.extent = from;
    TRY(gpu_sparse_count(&m, d->rows, d->cols, call_diagonals, d));
    return gpu_sparse_fill(&m, call_diagonals, d);
}

gpu_status gpu_sparse_from_diagonals(const gpu_matrix *diagonals,
                                     const int64_t *offsets, int64_t rows,
                                     int64_t cols, gpu_dtype dtype,
                                     gpu_device *device, gpu_sparse *out)
{
    gpu_matrix from;
    gpu_sparse here;
    gpu_diagonals d = {.rows = rows, .cols = cols, .count = diagonals->cols};
    *out = (gpu_sparse){0};
    TRY(check_complex_values(gpu_is_complex(diagonals), dtype));
    TRY(gpu_sparse_check_sizes(rows, cols, 0));
    if (diagonals->dtype == dtype && !diagonals->is_conjugated &&
        gpu_matrix_device(diagonals) == gpu_cpu()) {
        gpu_retain(diagonals);
        from = *diagonals;
    } else {
        TRY(gpu_clone(diagonals, dtype, gpu_cpu(), &from));
    }
    int64_t *lists = order_offsets(offsets, &d);
    gpu_status status = lists ? gpu_settle(&from)
                              : gpu_fail(GPU_MEMORY, "spdiags: out of memory");
    d.values = gpu_view_of(&from);
    if (from.rows == 1)
        d.values.row_stride = 0;
    if (status == GPU_OK)
        status = lay(&d, &from, &here);
    free(lists);
    gpu_release(&from);
    return status == GPU_OK ? gpu_sparse_send(&here, dtype, device, out)
                            : status;
}

/* --- and back ------------------------------------------------------------- */

/* s lies on d. */
static gpu_status spread(gpu_device *d, const gpu_sparse *s, gpu_matrix *out)
{
    TRY(gpu_create(out, d, s->values.dtype, 2, s->rows, s->cols));
    if (gpu_size(out) == 0)
        return GPU_OK;
    gpu_csr rows = gpu_csr_of(s);
    gpu_operation op = operation_of("full", d, s, out, (double)gpu_bytes(out));
    op.writes_all = 1;
    gpu_status status =
        RUN_OPERATION(&op, sparse_to_dense, &rows, gpu_target_of(out).data);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_sparse_to_dense(const gpu_sparse *s, gpu_matrix *out)
{
    gpu_device *d;
    gpu_sparse here;
    gpu_matrix dense;
    out->storage = NULL;
    TRY(gpu_sparse_check("full", s, &d));
    if (d->backend->sparse_to_dense)
        return spread(d, s, out);
    TRY(gpu_sparse_bring(s, &here));
    gpu_status status = spread(gpu_cpu(), &here, &dense);
    gpu_sparse_release(&here);
    if (status == GPU_OK) {
        status = gpu_clone(&dense, dense.dtype, d, out);
        gpu_release(&dense);
    }
    return status;
}

/* --- the transpose -------------------------------------------------------- */

/* s lies on d. */
static gpu_status turn(gpu_device *d, const gpu_sparse *s, gpu_sparse *out)
{
    gpu_csr rows = gpu_csr_of(s);
    TRY(gpu_sparse_create_arrays(d, s->values.dtype, s->cols, s->rows, s->count,
                                 out));
    gpu_rows_out to = gpu_rows_of(out);
    gpu_operation op = operation_of("transpose", d, out, &out->values,
                                    (double)gpu_sparse_bytes(s));
    gpu_status status = RUN_OPERATION(&op, sparse_transpose, &rows, to.starts,
                                      to.columns, to.values);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}

gpu_status gpu_sparse_transposed(const gpu_sparse *s, gpu_sparse *out)
{
    gpu_device *d;
    gpu_sparse here, turned;
    *out = (gpu_sparse){0};
    TRY(gpu_sparse_check("transpose", s, &d));
    if (d->backend->sparse_transpose)
        return turn(d, s, out);
    TRY(gpu_sparse_bring(s, &here));
    gpu_status status = turn(gpu_cpu(), &here, &turned);
    gpu_sparse_release(&here);
    return status == GPU_OK
               ? gpu_sparse_send(&turned, turned.values.dtype, d, out)
               : status;
}
