/* Compressed rows out of triplets in any order, and their transpose: pure
 * host memory. */
#include "sparse.h"

#include <stdlib.h>
#include <string.h>

/* Digits a pass of the radix sort looks at: one counter of each stays in the
 * first cache, and so do the places written to in the second. */
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

typedef struct entry {
    int32_t row, col;
    double value;
} entry;

static gpu_status no_room(size_t bytes)
{
    return gpu_fail(GPU_MEMORY, "out of memory: %s to arrange the entries",
                    gpu_bytes_text(bytes));
}

gpu_status gpu_host_rows_create(gpu_host_rows *h, int64_t rows, int64_t cols,
                                int64_t count)
{
    *h = (gpu_host_rows){.rows = rows, .cols = cols, .count = count};
    if (rows < 0 || cols < 0)
        return gpu_fail(GPU_ARGUMENT,
                        "sparse: a size cannot be negative: %lldx%lld",
                        (long long)rows, (long long)cols);
    if (rows > INT32_MAX || cols > INT32_MAX)
        return gpu_fail(GPU_ARGUMENT,
                        "sparse: %lldx%lld: a size must be below "
                        "2147483648",
                        (long long)rows, (long long)cols);
    if (count > INT32_MAX)
        return gpu_fail(GPU_ARGUMENT,
                        "sparse: %lld entries: there must be fewer than "
                        "2147483648",
                        (long long)count);
    h->starts = calloc((size_t)rows + 1, sizeof *h->starts);
    h->columns = malloc(((size_t)count + 1) * sizeof *h->columns);
    h->values = malloc(((size_t)count + 1) * sizeof *h->values);
    if (h->starts && h->columns && h->values)
        return GPU_OK;
    return no_room(4 * (size_t)rows + 12 * (size_t)count);
}

void gpu_host_rows_free(gpu_host_rows *h)
{
    free(h->starts);
    free(h->columns);
    free(h->values);
    *h = (gpu_host_rows){0};
}

/* Counted from 1, as far as that goes. */
static long long shown(int64_t i)
{
    return i < INT64_MAX ? i + 1 : i;
}

/* --- triplets ------------------------------------------------------------- */

static gpu_status read_entries(const gpu_triplets *t, entry *out)
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
        out[k] = (entry){(int32_t)i, (int32_t)j, t->value[k]};
    }
    return GPU_OK;
}

static int is_sorted(const entry *e, int64_t count)
{
    for (int64_t k = 1; k < count; k++)
        if (e[k - 1].row > e[k].row ||
            (e[k - 1].row == e[k].row && e[k - 1].col > e[k].col))
            return 0;
    return 1;
}

static int digit(const entry *e, int by_row, int shift)
{
    return (by_row ? e->row : e->col) >> shift & (DIGITS - 1);
}

/* Stable: entries with one digit stay in their order. */
static gpu_status sort_by_digit(const entry *from, entry *to, int64_t count,
                                int by_row, int shift)
{
    int64_t place[DIGITS] = {0}, sum = 0;
    for (int64_t k = 0; k < count; k++) {
        POLL_AT(k);
        place[digit(&from[k], by_row, shift)]++;
    }
    for (int d = 0; d < DIGITS; d++) {
        int64_t n = place[d];
        place[d] = sum;
        sum += n;
    }
    for (int64_t k = 0; k < count; k++) {
        POLL_AT(k);
        to[place[digit(&from[k], by_row, shift)]++] = from[k];
    }
    return GPU_OK;
}

/* By row, then column, then the order given: a radix sort from the last digit
 * of the column to the first of the row. *sorted is e or spare. */
static gpu_status sort_entries(entry *e, entry *spare, const gpu_triplets *t,
                               entry **sorted)
{
    int64_t size[2] = {t->cols, t->rows};
    *sorted = e;
    if (is_sorted(e, t->count))
        return GPU_OK;
    for (int by_row = 0; by_row < 2; by_row++)
        for (int shift = 0; (size[by_row] - 1) >> shift > 0;
             shift += DIGIT_BITS) {
            TRY(sort_by_digit(e, spare, t->count, by_row, shift));
            *sorted = spare;
            spare = e;
            e = *sorted;
        }
    return GPU_OK;
}

/* Adds up entries in one place, in f64 and in their order. */
static gpu_status merge_entries(const entry *e, int64_t count, gpu_host_rows *h)
{
    int64_t n = 0;
    for (int64_t k = 0; k < count; k++) {
        POLL_AT(k);
        if (k > 0 && e[k].row == e[k - 1].row && e[k].col == e[k - 1].col) {
            h->values[n - 1] += e[k].value;
            continue;
        }
        h->starts[e[k].row + 1]++;
        h->columns[n] = e[k].col;
        h->values[n++] = e[k].value;
    }
    for (int64_t i = 0; i < h->rows; i++)
        h->starts[i + 1] += h->starts[i];
    h->count = n;
    return GPU_OK;
}

gpu_status gpu_host_rows_from_triplets(const gpu_triplets *t, gpu_host_rows *h)
{
    TRY(gpu_host_rows_create(h, t->rows, t->cols, t->count));
    size_t bytes = ((size_t)t->count + 1) * sizeof(entry);
    entry *e = malloc(bytes), *spare = malloc(bytes);
    gpu_status status = e && spare ? read_entries(t, e) : no_room(2 * bytes);
    entry *sorted = e;
    if (status == GPU_OK)
        status = sort_entries(e, spare, t, &sorted);
    if (status == GPU_OK)
        status = merge_entries(sorted, t->count, h);
    free(e);
    free(spare);
    return status;
}

/* --- the transpose -------------------------------------------------------- */

/* Row i of the result is column i of from, whose rows come in order: so the
 * columns of the result ascend. While it is filled, starts[i] is the place of
 * the next entry of row i, which ends up where row i + 1 starts. */
gpu_status gpu_host_rows_transposed(const gpu_host_rows *from, gpu_host_rows *h)
{
    TRY(gpu_host_rows_create(h, from->cols, from->rows, from->count));
    for (int64_t e = 0; e < from->count; e++) {
        POLL_AT(e);
        h->starts[from->columns[e]]++;
    }
    int32_t sum = 0;
    for (int64_t i = 0; i <= h->rows; i++) {
        int32_t n = h->starts[i];
        h->starts[i] = sum;
        sum += n;
    }
    for (int64_t i = 0; i < from->rows; i++)
        for (int32_t e = from->starts[i]; e < from->starts[i + 1]; e++) {
            POLL_AT(e);
            int32_t at = h->starts[from->columns[e]]++;
            h->columns[at] = (int32_t)i;
            h->values[at] = from->values[e];
        }
    memmove(h->starts + 1, h->starts, (size_t)h->rows * sizeof *h->starts);
    h->starts[0] = 0;
    return GPU_OK;
}
