/* Looking into sparse matrices: elements, entries, blocks, equality, what their
 * pattern is like and how dense its blocks are. The last three on the CPU: of
 * a matrix on a GPU all entries cross the bus. */
#include "sparse.h"

#include <stdlib.h>
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

/* --- a block, as a viewer wants it ---------------------------------------- */
/* The entries of all rows are found together: a gather for each step of a
 * binary search, so that a GPU is asked some twenty times and not some twenty
 * times a row. */

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

/* --- the pattern ---------------------------------------------------------- */

static void take_row(const gpu_host_rows *h, int64_t row,
                     gpu_sparse_pattern *out)
{
    int64_t first = h->starts[row], last = h->starts[row + 1];
    if (first == last) {
        out->empty_rows++;
        return;
    }
    if (last - first > out->longest_row)
        out->longest_row = last - first;
    if (row - h->columns[first] > out->lower)
        out->lower = row - h->columns[first];
    if (h->columns[last - 1] - row > out->upper)
        out->upper = h->columns[last - 1] - row;
}

/* Compares h with its transpose: NaN equals NaN here. */
static gpu_status take_symmetry(const gpu_host_rows *h, gpu_sparse_pattern *out)
{
    gpu_host_rows t;
    gpu_status status = gpu_host_rows_transposed(h, &t);
    size_t count = (size_t)h->count;
    if (status == GPU_OK && h->rows == h->cols) {
        out->is_symmetric =
            !memcmp(h->starts, t.starts,
                    (size_t)(h->rows + 1) * sizeof *h->starts) &&
            !memcmp(h->columns, t.columns, count * sizeof *h->columns);
        out->has_symmetric_values = out->is_symmetric;
        for (size_t k = 0; out->has_symmetric_values && k < count; k++)
            out->has_symmetric_values =
                h->values[k] == t.values[k] ||
                (h->values[k] != h->values[k] && t.values[k] != t.values[k]);
    }
    gpu_host_rows_free(&t);
    return status;
}

gpu_status gpu_sparse_survey(const gpu_sparse *s, gpu_sparse_pattern *out)
{
    gpu_device *d;
    gpu_host_rows h;
    *out = (gpu_sparse_pattern){.lower = GPU_NO_BAND, .upper = GPU_NO_BAND};
    TRY(gpu_sparse_check("survey", s, &d));
    gpu_status status = gpu_host_rows_download(s, &h);
    for (int64_t i = 0; status == GPU_OK && i < s->rows; i++)
        take_row(&h, i, out);
    if (status == GPU_OK && s->rows == s->cols)
        status = take_symmetry(&h, out);
    gpu_host_rows_free(&h);
    return status;
}

/* --- how dense the blocks are --------------------------------------------- */

/* The block of so many over a length in which place lies: the last one that
 * begins at or before it. Sizes are below 2^31, so products fit. */
static int64_t block_of(int64_t place, int64_t blocks, int64_t length)
{
    int64_t b = (int64_t)(place * blocks / length);
    while (b + 1 < blocks && (b + 1) * length / blocks <= place)
        b++;
    return b;
}

static int64_t width_of(int64_t b, int64_t blocks, int64_t length)
{
    return (int64_t)((b + 1) * length / blocks - b * length / blocks);
}

static void add_entries(const gpu_host_rows *h, int64_t rows, int64_t cols,
                        int64_t *counts, double *means)
{
    for (int64_t i = 0; i < h->rows; i++) {
        int64_t line = block_of(i, rows, h->rows) * cols;
        for (int32_t k = h->starts[i]; k < h->starts[i + 1]; k++) {
            int64_t at = line + block_of(h->columns[k], cols, h->cols);
            counts[at]++;
            if (means)
                means[at] += h->values[k];
        }
    }
}

gpu_status gpu_sparse_blocks(const gpu_sparse *s, int64_t rows, int64_t cols,
                             int64_t *counts, double *means)
{
    gpu_device *d;
    gpu_host_rows h;
    TRY(gpu_sparse_check("blocks", s, &d));
    if (rows < 1 || rows > s->rows || cols < 1 || cols > s->cols)
        return gpu_fail(GPU_ARGUMENT,
                        "blocks: %lldx%lld cannot be cut into %lld x %lld "
                        "blocks",
                        (long long)s->rows, (long long)s->cols, (long long)rows,
                        (long long)cols);
    memset(counts, 0, (size_t)(rows * cols) * sizeof *counts);
    for (int64_t at = 0; means && at < rows * cols; at++)
        means[at] = 0;
    gpu_status status = gpu_host_rows_download(s, &h);
    if (status == GPU_OK)
        add_entries(&h, rows, cols, counts, means);
    for (int64_t at = 0; means && at < rows * cols; at++)
        means[at] /= (double)width_of(at / cols, rows, s->rows) *
                     (double)width_of(at % cols, cols, s->cols);
    gpu_host_rows_free(&h);
    return status;
}
