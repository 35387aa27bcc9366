/* Looking into sparse matrices: elements, entries, blocks, equality, what their
 * pattern is like and how dense its blocks are. The last three on the CPU: of
 * a matrix on a GPU all entries cross the bus. */
#include "complex_numbers.h"
#include "sparse.h"

#include <stdlib.h>
#include <string.h>

/* Numbers a value. */
static int parts_of(const gpu_sparse *s)
{
    return gpu_is_complex(&s->values) ? 2 : 1;
}

/* --- elements ------------------------------------------------------------- */

/* count integers from the first-th on. */
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

/* The same of values, as f64. */
static gpu_status download_values(const gpu_matrix *values, int64_t first,
                                  int64_t count, double *out)
{
    gpu_matrix part;
    gpu_slice places = {first, 1, count}, all = {0, 1, 1};
    TRY(gpu_view_block(values, places, all, &part));
    gpu_status status = gpu_download_wide(&part, out);
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

gpu_status gpu_sparse_find(const gpu_sparse *s, int64_t i, int64_t j,
                           int64_t *entry)
{
    gpu_device *d;
    int32_t ends[2], found = -1;
    int64_t at;
    *entry = -1;
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
    *entry = found == j ? at : -1;
    return GPU_OK;
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
    TRY(download_values(&s->values, first, count, values));
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

/* The integers at so many places of a vector. */
static gpu_status read_places(const gpu_matrix *vector, const int64_t *places,
                              int64_t count, int32_t *host)
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
    gpu_matrix part;
    if (count == 0)
        return GPU_OK;
    TRY(gpu_gather(&f->s->values, places, count, NULL, 1, &part));
    gpu_status status = gpu_download_wide(&part, values);
    gpu_release(&part);
    return status;
}

/* Puts the entries that were found into their places of the block. */
static gpu_status place_entries(search *f, gpu_slice cols, double *scratch,
                                double *values, uint8_t *stored)
{
    int64_t n = 0, k = 0, parts = parts_of(f->s);
    for (int64_t e = 0; e < f->count; e += 2)
        for (int64_t p = f->low[e]; p < f->low[e + 1]; p++)
            f->places[n++] = p;
    TRY(read_places(&f->s->columns, f->places, n, f->found));
    TRY(read_values(f, f->places, n, scratch));
    for (int64_t e = 0; e < f->count; e += 2)
        for (int64_t p = f->low[e]; p < f->low[e + 1]; p++, k++) {
            int64_t at = e / 2 * cols.count + f->found[k] - cols.first;
            memcpy(values + parts * at, scratch + parts * k,
                   (size_t)parts * sizeof *values);
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
    size_t value = (size_t)parts_of(f->s) * sizeof(double);
    size_t item =
        value + sizeof *f->places + sizeof *f->found + sizeof *f->asked;
    double *scratch = malloc(most * item + 2 * ends * sizeof *f->low);
    if (!scratch)
        return NULL;
    f->places = (void *)((char *)scratch + most * value);
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
    memset(values, 0, elements * (size_t)parts_of(s) * sizeof *values);
    memset(stored, 0, elements);
    gpu_status status = find_ends(&f, rows, cols);
    if (status == GPU_OK)
        status = place_entries(&f, cols, scratch, values, stored);
    free(scratch);
    return status;
}

/* --- all entries in host memory --------------------------------------------
 */

/* Compressed rows as in gpu_csr, with values in f64 whatever their type. */
typedef struct host_rows {
    int64_t rows, cols, count;
    int32_t *starts, *columns;
    int parts;      /* numbers a value: 1, or 2 of complex ones */
    double *values; /* parts x count */
} host_rows;

static void free_rows(host_rows *h)
{
    free(h->starts);
    free(h->columns);
    free(h->values);
    *h = (host_rows){0};
}

/* h is freed by the caller on success and on failure. */
static gpu_status download_rows(const gpu_sparse *s, host_rows *h)
{
    *h = (host_rows){.rows = s->rows,
                     .cols = s->cols,
                     .count = s->count,
                     .parts = parts_of(s)};
    size_t rows = (size_t)s->rows + 1, count = (size_t)s->count + 1;
    size_t values = count * (size_t)h->parts * sizeof *h->values;
    h->starts = malloc(rows * sizeof *h->starts);
    h->columns = malloc(count * sizeof *h->columns);
    h->values = malloc(values);
    if (!h->starts || !h->columns || !h->values)
        return gpu_fail(GPU_MEMORY, "out of memory: %s to look into a matrix",
                        gpu_bytes_text(4 * (rows + count) + values));
    TRY(gpu_download(&s->starts, h->starts));
    TRY(gpu_download(&s->columns, h->columns));
    return gpu_download_wide(&s->values, h->values);
}

/* --- equality ------------------------------------------------------------- */

static int is_zero(const host_rows *h, int32_t at)
{
    const double *x = h->values + h->parts * (int64_t)at;
    return x[0] == 0 && (h->parts == 1 || x[1] == 0);
}

/* A real value has an imaginary part of 0. */
static int are_same(const host_rows *a, int32_t x, const host_rows *b,
                    int32_t y)
{
    const double *one = a->values + a->parts * (int64_t)x;
    const double *other = b->values + b->parts * (int64_t)y;
    return one[0] == other[0] &&
           (a->parts > 1 ? one[1] : 0) == (b->parts > 1 ? other[1] : 0);
}

/* The next entry of a row that is not zero: its column, or -1 at the end. */
static int32_t next_entry(const host_rows *h, int64_t row, int32_t *at)
{
    int32_t end = h->starts[row + 1];
    while (*at < end && is_zero(h, *at))
        ++*at;
    return *at < end ? h->columns[*at] : -1;
}

static int rows_are_equal(const host_rows *a, const host_rows *b, int64_t row)
{
    int32_t x = a->starts[row], y = b->starts[row], column;
    while ((column = next_entry(a, row, &x)) == next_entry(b, row, &y)) {
        if (column < 0)
            return 1;
        if (!are_same(a, x++, b, y++))
            return 0;
    }
    return 0;
}

gpu_status gpu_sparse_equal(const gpu_sparse *a, const gpu_sparse *b,
                            int *equal)
{
    gpu_device *d;
    host_rows x, y = {0};
    const gpu_matrix *in[] = {&a->values, &b->values};
    *equal = 0;
    TRY(gpu_check_complex("==", in, 2, &d));
    if (a->rows != b->rows || a->cols != b->cols)
        return GPU_OK;
    gpu_status status = download_rows(a, &x);
    if (status == GPU_OK)
        status = download_rows(b, &y);
    *equal = status == GPU_OK;
    for (int64_t i = 0; *equal && status == GPU_OK && i < a->rows; i++) {
        *equal = rows_are_equal(&x, &y, i);
        if (i % GPU_POLL == 0 && gpu_poll() != GPU_OK)
            status = GPU_INTERRUPTED;
    }
    free_rows(&x);
    free_rows(&y);
    return status;
}

/* --- the pattern ---------------------------------------------------------- */

static void take_row(const host_rows *h, int64_t row, gpu_sparse_pattern *out)
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

/* NaN equals NaN here. */
static void compare(const host_rows *h, const host_rows *t,
                    gpu_sparse_pattern *out)
{
    size_t count = (size_t)h->count, numbers = count * (size_t)h->parts;
    out->is_symmetric =
        !memcmp(h->starts, t->starts,
                (size_t)(h->rows + 1) * sizeof *h->starts) &&
        !memcmp(h->columns, t->columns, count * sizeof *h->columns);
    out->has_symmetric_values = out->is_symmetric;
    for (size_t k = 0; out->has_symmetric_values && k < numbers; k++)
        out->has_symmetric_values =
            h->values[k] == t->values[k] ||
            (h->values[k] != h->values[k] && t->values[k] != t->values[k]);
}

/* Compares s, which h is of, with its transpose. */
static gpu_status take_symmetry(const gpu_sparse *s, const host_rows *h,
                                gpu_sparse_pattern *out)
{
    gpu_sparse turned;
    host_rows t;
    TRY(gpu_sparse_transposed(s, &turned));
    gpu_status status = download_rows(&turned, &t);
    if (status == GPU_OK)
        compare(h, &t, out);
    free_rows(&t);
    gpu_sparse_release(&turned);
    return status;
}

gpu_status gpu_sparse_survey(const gpu_sparse *s, gpu_sparse_pattern *out)
{
    gpu_device *d;
    host_rows h;
    *out = (gpu_sparse_pattern){.lower = GPU_NO_BAND, .upper = GPU_NO_BAND};
    TRY(gpu_sparse_check("survey", s, &d));
    gpu_status status = download_rows(s, &h);
    for (int64_t i = 0; status == GPU_OK && i < s->rows; i++)
        take_row(&h, i, out);
    if (status == GPU_OK && s->rows == s->cols)
        status = take_symmetry(s, &h, out);
    free_rows(&h);
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

static void add_entries(const host_rows *h, int64_t rows, int64_t cols,
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
    host_rows h;
    TRY(gpu_sparse_check("blocks", s, &d));
    if (means && gpu_is_complex(&s->values))
        return gpu_fail_complex("blocks");
    if (rows < 1 || rows > s->rows || cols < 1 || cols > s->cols)
        return gpu_fail(GPU_ARGUMENT,
                        "blocks: %lldx%lld cannot be cut into %lld x %lld "
                        "blocks",
                        (long long)s->rows, (long long)s->cols, (long long)rows,
                        (long long)cols);
    memset(counts, 0, (size_t)(rows * cols) * sizeof *counts);
    for (int64_t at = 0; means && at < rows * cols; at++)
        means[at] = 0;
    gpu_status status = download_rows(s, &h);
    if (status == GPU_OK)
        add_entries(&h, rows, cols, counts, means);
    for (int64_t at = 0; means && at < rows * cols; at++)
        means[at] /= (double)width_of(at / cols, rows, s->rows) *
                     (double)width_of(at % cols, cols, s->cols);
    free_rows(&h);
    return status;
}
