/* Looking into sparse matrices: elements, entries, equality. */
#include "sparse.h"

#include <string.h>

/* --- elements ------------------------------------------------------------- */

/* count elements from the first-th on, as they are stored. */
static gpu_status download_part(const gpu_matrix *vector, int64_t first,
                                int64_t count, void *host)
{
    gpu_matrix part;
    gpu_slice places = {first, 1, count}, all = {0, 1, 1};
    TRY(gpu_view_block(vector, places, all, &part));
    gpu_status status = gpu_download(&part, host);
    gpu_release(&part);
    return status;
}

/* The first place of low .. high - 1 whose integer is above limit, or high. */
static gpu_status find_above(const gpu_matrix *integers, int64_t low,
                             int64_t high, int64_t limit, int64_t *out)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int32_t found;
        TRY(download_part(integers, middle, 1, &found));
        if (found > limit)
            high = middle;
        else
            low = middle + 1;
    }
    *out = low;
    return GPU_OK;
}

gpu_status gpu_sparse_get(const gpu_sparse *s, int64_t i, int64_t j,
                          double *out)
{
    gpu_device *d;
    int32_t ends[2], found = -1;
    int64_t at;
    *out = 0;
    TRY(gpu_sparse_check("read", s, &d));
    if (i < 0 || i >= s->rows || j < 0 || j >= s->cols)
        return gpu_fail(GPU_RANGE, "element (%lld, %lld) is outside %lldx%lld",
                        (long long)i + 1, (long long)j + 1, (long long)s->rows,
                        (long long)s->cols);
    if (gpu_dry)
        return GPU_OK;
    TRY(download_part(&s->starts, i, 2, ends));
    TRY(find_above(&s->columns, ends[0], ends[1], j - 1, &at));
    if (at < ends[1])
        TRY(download_part(&s->columns, at, 1, &found));
    return found == j ? gpu_get(&s->values, at, 0, out) : GPU_OK;
}

gpu_status gpu_sparse_rank(const gpu_sparse *s, int64_t i, int64_t j,
                           int64_t *out)
{
    gpu_device *d;
    int32_t ends[2];
    TRY(gpu_sparse_check("read", s, &d));
    TRY(download_part(&s->starts, i, 2, ends));
    return find_above(&s->columns, ends[0], ends[1], j - 1, out);
}

/* Ends of rows, some at a time. */
typedef struct row_ends {
    int32_t end[1024];
    int64_t row, first, count; /* the row looked at, and those that are here */
} row_ends;

/* Moves on to the row of an entry: it is among the next ones, or far away. */
static gpu_status find_row(const gpu_sparse *s, int64_t entry, row_ends *r)
{
    int64_t above, most = sizeof r->end / sizeof *r->end;
    while (r->row < r->first + r->count && r->end[r->row - r->first] <= entry)
        r->row++;
    if (r->row < r->first + r->count)
        return GPU_OK;
    TRY(find_above(&s->starts, r->row + 1, s->rows + 1, entry, &above));
    r->row = r->first = above - 1;
    r->count = s->rows - r->first < most ? s->rows - r->first : most;
    return download_part(&s->starts, above, r->count, r->end);
}

static gpu_status find_rows(const gpu_sparse *s, int64_t first, int64_t count,
                            int64_t *rows)
{
    row_ends ends = {.row = 0};
    for (int64_t k = 0; k < count; k++) {
        TRY(find_row(s, first + k, &ends));
        rows[k] = ends.row;
    }
    return GPU_OK;
}

gpu_status gpu_sparse_entries(const gpu_sparse *s, int64_t first, int64_t count,
                              int64_t *rows, int64_t *cols, double *values)
{
    gpu_device *d;
    int32_t column;
    TRY(gpu_sparse_check("read", s, &d));
    TRY(find_rows(s, first, count, rows));
    TRY(download_part(&s->columns, first, count, cols));
    TRY(download_part(&s->values, first, count, values));
    if (s->values.dtype == GPU_F32)
        gpu_widen_f32(values, count);
    for (int64_t k = count - 1; k >= 0; k--) {
        memcpy(&column, (char *)cols + k * (int64_t)sizeof column,
               sizeof column);
        cols[k] = column;
    }
    return GPU_OK;
}

/* --- equality ------------------------------------------------------------- */

/* The next entry of a row that is not zero: its column, or -1 at the end. */
static int32_t next_entry(const gpu_host_rows *h, int64_t row, int32_t *at)
{
    int32_t end = h->starts[row + 1];
    while (*at < end && h->values[*at] == 0)
        ++*at;
    return *at < end ? h->columns[*at] : -1;
}

static int rows_are_equal(const gpu_host_rows *a, const gpu_host_rows *b,
                          int64_t row)
{
    int32_t x = a->starts[row], y = b->starts[row], column;
    while ((column = next_entry(a, row, &x)) == next_entry(b, row, &y)) {
        if (column < 0)
            return 1;
        if (!(a->values[x++] == b->values[y++]))
            return 0;
    }
    return 0;
}

gpu_status gpu_sparse_equal(const gpu_sparse *a, const gpu_sparse *b,
                            int *equal)
{
    gpu_device *d;
    gpu_host_rows x, y = {0};
    const gpu_matrix *in[] = {&a->values, &b->values};
    *equal = 0;
    TRY(gpu_check_operands("==", in, 2, &d));
    if (a->rows != b->rows || a->cols != b->cols)
        return GPU_OK;
    gpu_status status = gpu_host_rows_download(a, &x);
    if (status == GPU_OK)
        status = gpu_host_rows_download(b, &y);
    *equal = status == GPU_OK;
    for (int64_t i = 0; *equal && status == GPU_OK && i < a->rows; i++) {
        *equal = rows_are_equal(&x, &y, i);
        if (i % GPU_POLL == 0 && gpu_poll() != GPU_OK)
            status = GPU_INTERRUPTED;
    }
    gpu_host_rows_free(&x);
    gpu_host_rows_free(&y);
    return status;
}
