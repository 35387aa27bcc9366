/* Looking at sparse matrices: what their pattern is like, and how dense its
 * blocks are. On the CPU; of one on a GPU all entries cross the bus. */
#include "sparse.h"

#include <string.h>

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

/* --- blocks --------------------------------------------------------------- */

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
