/* Blocks of sparse matrices, as a viewer wants them. The entries of all rows
 * are found together: a gather for each step of a binary search, so that a
 * GPU is asked some twenty times and not some twenty times a row. */
#include "sparse.h"

#include <stdlib.h>
#include <string.h>

/* Where to look, and where to put it. Each array has room for both ends of
 * every row. */
typedef struct search {
    const gpu_sparse *s;
    int64_t count;       /* of ends: two for every row */
    int64_t *low, *high; /* each end is between them */
    int64_t *places;     /* of entries being read */
    int32_t *found;      /* what is there */
    int *asked;          /* which end each place is for */
} search;

/* The elements at so many places of a vector, as they are stored. */
static gpu_status read_places(const gpu_matrix *vector, const int64_t *places,
                              int64_t count, void *host)
{
    gpu_matrix part;
    if (count == 0)
        return GPU_OK;
    TRY(gpu_gather(vector, places, count, NULL, 1, &part));
    gpu_status status = gpu_download(&part, host);
    gpu_release(&part);
    return status;
}

/* A step of the search for the first entry of each row at or behind a column:
 * even ends look for first, odd ones for last. Returns how many are left. */
static gpu_status narrow(search *f, int64_t first, int64_t last, int64_t *left)
{
    int64_t n = 0;
    for (int64_t e = 0; e < f->count; e++) {
        if (f->low[e] == f->high[e])
            continue;
        f->asked[n] = (int)e;
        f->places[n++] = f->low[e] + (f->high[e] - f->low[e]) / 2;
    }
    TRY(read_places(&f->s->columns, f->places, n, f->found));
    for (int64_t k = 0; k < n; k++) {
        int e = f->asked[k];
        if (f->found[k] < (e % 2 ? last : first))
            f->low[e] = f->places[k] + 1;
        else
            f->high[e] = f->places[k];
    }
    *left = n;
    return GPU_OK;
}

static gpu_status find_ends(search *f, gpu_slice rows, gpu_slice cols)
{
    gpu_matrix part;
    gpu_slice ends = {rows.first, 1, rows.count + 1}, all = {0, 1, 1};
    int64_t left = 1;
    TRY(gpu_view_block(&f->s->starts, ends, all, &part));
    gpu_status status = gpu_download(&part, f->found);
    gpu_release(&part);
    for (int64_t i = 0; i < rows.count; i++) {
        f->low[2 * i] = f->low[2 * i + 1] = f->found[i];
        f->high[2 * i] = f->high[2 * i + 1] = f->found[i + 1];
    }
    while (status == GPU_OK && left > 0)
        status = narrow(f, cols.first, cols.first + cols.count, &left);
    return status;
}

static gpu_status read_values(const search *f, const int64_t *places,
                              int64_t count, double *values)
{
    TRY(read_places(&f->s->values, places, count, values));
    if (f->s->values.dtype == GPU_F32)
        gpu_widen_f32(values, count);
    return GPU_OK;
}

/* Puts the entries that were found into their places of the block. */
static gpu_status place_entries(search *f, gpu_slice cols, double *scratch,
                                double *values, uint8_t *stored)
{
    int64_t n = 0, k = 0;
    for (int64_t e = 0; e < f->count; e += 2)
        for (int64_t p = f->low[e]; p < f->low[e + 1]; p++)
            f->places[n++] = p;
    TRY(read_places(&f->s->columns, f->places, n, f->found));
    TRY(read_values(f, f->places, n, scratch));
    for (int64_t e = 0; e < f->count; e += 2)
        for (int64_t p = f->low[e]; p < f->low[e + 1]; p++, k++) {
            int64_t at = e / 2 * cols.count + f->found[k] - cols.first;
            values[at] = scratch[k];
            stored[at] = 1;
        }
    return GPU_OK;
}

/* One piece of memory for all arrays; scratch, its beginning, is NULL when
 * there is none. */
static double *take_memory(search *f, size_t elements)
{
    size_t ends = (size_t)f->count;
    size_t most = elements > ends + 1 ? elements : ends + 1;
    size_t item = sizeof(double) + sizeof *f->places + sizeof *f->found +
                  sizeof *f->asked;
    double *scratch = malloc(most * item + 2 * ends * sizeof *f->low);
    if (!scratch)
        return NULL;
    f->places = (void *)(scratch + most);
    f->low = f->places + most;
    f->high = f->low + ends;
    f->found = (void *)(f->high + ends);
    f->asked = (void *)(f->found + most);
    return scratch;
}

gpu_status gpu_sparse_block(const gpu_sparse *s, gpu_slice rows, gpu_slice cols,
                            double *values, uint8_t *stored)
{
    gpu_device *d;
    size_t elements = (size_t)(rows.count * cols.count);
    search f = {.s = s, .count = 2 * rows.count};
    TRY(gpu_sparse_check("read", s, &d));
    double *scratch = take_memory(&f, elements);
    if (!scratch)
        return gpu_fail(GPU_MEMORY, "out of memory: %s to look into a matrix",
                        gpu_bytes_text(elements * sizeof *values));
    memset(values, 0, elements * sizeof *values);
    memset(stored, 0, elements);
    gpu_status status = find_ends(&f, rows, cols);
    if (status == GPU_OK)
        status = place_entries(&f, cols, scratch, values, stored);
    free(scratch);
    return status;
}
