/* Chosen rows and columns of a sparse matrix. Where the device has no entry for
 * it the host lists the entries of the chosen rows, of which the CPU's entry
 * chooses the columns; columns and values are gathered where they are. */
#include "sparse.h"

#include <stdlib.h>

/* By the device's entry. */
static gpu_status gather_by_entry(gpu_device *d, const gpu_sparse *s,
                                  const gpu_sparse_picking *how,
                                  gpu_sparse *out)
{
    gpu_csr from = gpu_csr_of(s);
    gpu_sparse_making m = {.dtype = s->values.dtype, .out = out};
    gpu_matrix shape = {
        .dtype = m.dtype, .ndim = 2, .rows = how->nrows, .cols = how->ncols};
    m.op = (gpu_operation){.name = "index",
                           .kernel = "csr",
                           .device = d,
                           .result = &shape,
                           .extent = &shape,
                           .bytes = 2 * (double)gpu_sparse_bytes(s)};
    TRY(gpu_sparse_begin(&m, how->nrows, how->ncols));
    return gpu_sparse_end(
        &m, RUN_OPERATION(&m.op, sparse_gather, &from, how, &m.told));
}

static gpu_status check_size(int64_t rows, int64_t cols)
{
    return rows <= INT32_MAX && cols <= INT32_MAX
               ? GPU_OK
               : gpu_fail(GPU_ARGUMENT,
                          "index: %lldx%lld: a size of a sparse matrix must be "
                          "below 2147483648",
                          (long long)rows, (long long)cols);
}

/* --- where the device has no entry ------------------------------------------
 */

/* The entries of the chosen rows. Arrays of malloc. */
typedef struct row_entries {
    int32_t *starts; /* rows + 1: where in `entries` those of a row begin */
    int64_t *entries, count;
} row_entries;

static void *take_room(int64_t count, size_t size)
{
    size_t bytes = ((size_t)count + 1) * size;
    void *room = malloc(bytes);
    if (!room)
        gpu_fail(GPU_MEMORY, "out of memory: %s to choose entries",
                 gpu_bytes_text(bytes));
    return room;
}
#define ROOM(array, count) \
    (((array) = take_room((count), sizeof *(array))) ? GPU_OK : GPU_MEMORY)

static void free_entries(row_entries *r)
{
    free(r->starts);
    free(r->entries);
}

static int64_t row_of(const gpu_sparse_picking *how, int64_t i)
{
    return how->rows ? how->rows[i] : i;
}

/* Where s's rows begin is given. */
static gpu_status start_rows(const int32_t *from, const gpu_sparse_picking *how,
                             row_entries *r)
{
    TRY(ROOM(r->starts, how->nrows + 1));
    for (int64_t i = 0; i < how->nrows; i++) {
        int64_t row = row_of(how, i);
        POLL_AT(i);
        r->starts[i] = (int32_t)r->count;
        r->count += from[row + 1] - from[row];
        if (r->count > INT32_MAX)
            return gpu_fail(GPU_ARGUMENT,
                            "index: the chosen rows have %lld entries or more: "
                            "there must be fewer than 2147483648",
                            (long long)r->count);
    }
    r->starts[how->nrows] = (int32_t)r->count;
    return GPU_OK;
}

static gpu_status list_rows(const int32_t *from, const gpu_sparse_picking *how,
                            row_entries *r)
{
    TRY(start_rows(from, how, r));
    TRY(ROOM(r->entries, r->count));
    for (int64_t i = 0; i < how->nrows; i++) {
        int64_t e = from[row_of(how, i)] - (int64_t)r->starts[i];
        POLL_AT(i);
        for (int32_t k = r->starts[i]; k < r->starts[i + 1]; k++)
            r->entries[k] = e + k;
    }
    return GPU_OK;
}

static gpu_status list_entries(const gpu_sparse *s,
                               const gpu_sparse_picking *how, row_entries *r)
{
    int32_t *starts;
    TRY(ROOM(starts, s->rows + 1));
    gpu_status status = gpu_download(&s->starts, starts);
    if (status == GPU_OK)
        status = list_rows(starts, how, r);
    free(starts);
    return status;
}

/* The chosen rows on the CPU; the value of an entry is its number in s, an
 * int32_t, which only those move who do not look at it. */
static gpu_status bring_rows(const gpu_sparse *s, const row_entries *r,
                             int64_t nrows, gpu_sparse *out)
{
    gpu_matrix columns;
    int32_t *numbers;
    *out = (gpu_sparse){.rows = nrows, .cols = s->cols, .count = r->count};
    TRY(gpu_upload_vector(gpu_cpu(), GPU_F32, nrows + 1, r->starts,
                          &out->starts));
    TRY(gpu_gather(&s->columns, r->entries, r->count, NULL, 1, &columns));
    gpu_status status = gpu_clone(&columns, GPU_F32, gpu_cpu(), &out->columns);
    gpu_release(&columns);
    TRY(status);
    TRY(ROOM(numbers, r->count));
    for (int64_t k = 0; k < r->count; k++)
        numbers[k] = (int32_t)r->entries[k];
    status =
        gpu_upload_vector(gpu_cpu(), GPU_F32, r->count, numbers, &out->values);
    free(numbers);
    return status;
}

/* The entries whose numbers are the values of `rows`. */
static gpu_status read_entries(const gpu_sparse *rows, row_entries *r)
{
    int32_t *numbers;
    r->count = rows->count;
    TRY(ROOM(r->entries, r->count));
    TRY(ROOM(numbers, r->count));
    gpu_status status = gpu_download(&rows->values, numbers);
    for (int64_t k = 0; status == GPU_OK && k < r->count; k++)
        r->entries[k] = numbers[k];
    free(numbers);
    return status;
}

/* Of the chosen rows r becomes what is in the chosen columns, and out, on d,
 * gets its starts and columns. */
static gpu_status choose_columns(const gpu_sparse *s,
                                 const gpu_sparse_picking *how, gpu_device *d,
                                 row_entries *r, gpu_sparse *out)
{
    gpu_sparse rows, chosen = {.rows = 0};
    gpu_sparse_picking columns = {NULL, how->cols, how->nrows, how->ncols};
    gpu_status status = bring_rows(s, r, how->nrows, &rows);
    if (status == GPU_OK)
        status = gather_by_entry(gpu_cpu(), &rows, &columns, &chosen);
    gpu_sparse_release(&rows);
    TRY(status);
    free_entries(r);
    *r = (row_entries){.starts = NULL};
    status = read_entries(&chosen, r);
    if (status == GPU_OK)
        status = gpu_clone(&chosen.starts, GPU_F32, d, &out->starts);
    if (status == GPU_OK)
        status = gpu_clone(&chosen.columns, GPU_F32, d, &out->columns);
    gpu_sparse_release(&chosen);
    return status;
}

/* Of all columns out gets the starts and columns of the chosen rows. */
static gpu_status take_rows(const gpu_sparse *s, const gpu_sparse_picking *how,
                            gpu_device *d, const row_entries *r,
                            gpu_sparse *out)
{
    TRY(gpu_upload_vector(d, GPU_F32, how->nrows + 1, r->starts, &out->starts));
    return gpu_gather(&s->columns, r->entries, r->count, NULL, 1,
                      &out->columns);
}

static gpu_status gather_there(const gpu_sparse *s,
                               const gpu_sparse_picking *how, gpu_device *d,
                               row_entries *r, gpu_sparse *out)
{
    TRY(gpu_settle(&s->values));
    TRY(list_entries(s, how, r));
    TRY(how->cols ? choose_columns(s, how, d, r, out)
                  : take_rows(s, how, d, r, out));
    out->count = r->count;
    return gpu_gather(&s->values, r->entries, r->count, NULL, 1, &out->values);
}

gpu_status gpu_sparse_gather(const gpu_sparse *s, const int64_t *rows,
                             int64_t nrows, const int64_t *cols, int64_t ncols,
                             gpu_sparse *out)
{
    gpu_device *d;
    *out = (gpu_sparse){0};
    TRY(gpu_sparse_check("index", s, &d));
    TRY(gpu_check_places("index", rows, nrows, s->rows, "row"));
    TRY(gpu_check_places("index", cols, ncols, s->cols, "column"));
    if (!rows && !cols)
        return gpu_sparse_clone(s, s->values.dtype, NULL, out);
    gpu_sparse_picking how = {rows, cols, rows ? nrows : s->rows,
                              cols ? ncols : s->cols};
    TRY(check_size(how.nrows, how.ncols));
    if (d->backend->sparse_gather)
        return gather_by_entry(d, s, &how, out);
    row_entries r = {.starts = NULL};
    out->rows = how.nrows;
    out->cols = how.ncols;
    gpu_status status = gather_there(s, &how, d, &r, out);
    free_entries(&r);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}
