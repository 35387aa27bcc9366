/* Sparse matrices: their arrays on a device, made from triplets and dense
 * matrices and turned back. What takes sorting or counting is done in host
 * memory, so a GPU's matrices travel there and back. */
#include "op_list.h"
#include "sparse.h"

#include <stdlib.h>
#include <string.h>

gpu_status gpu_sparse_check(const char *name, const gpu_sparse *s,
                            gpu_device **d)
{
    const gpu_matrix *in[] = {&s->values};
    return gpu_check_operands(name, in, 1, d);
}

void gpu_sparse_release(gpu_sparse *s)
{
    gpu_release(&s->starts);
    gpu_release(&s->columns);
    gpu_release(&s->values);
}

size_t gpu_sparse_bytes(const gpu_sparse *s)
{
    return gpu_bytes(&s->starts) + gpu_bytes(&s->columns) +
           gpu_bytes(&s->values);
}

/* --- compressed rows in host memory --------------------------------------- */

static const char TO_ARRANGE[] = "to arrange the entries";

static gpu_status no_room(size_t bytes, const char *what_for)
{
    return gpu_fail(GPU_MEMORY, "out of memory: %s %s", gpu_bytes_text(bytes),
                    what_for);
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
    return no_room(4 * (size_t)rows + 12 * (size_t)count, TO_ARRANGE);
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

/* Digits a pass of the radix sort looks at: one counter of each stays in the
 * first cache, and so do the places written to in the second. */
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

typedef struct entry {
    int32_t row, col;
    double value;
} entry;

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
    gpu_status status =
        e && spare ? read_entries(t, e) : no_room(2 * bytes, TO_ARRANGE);
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

/* --- between host and device ---------------------------------------------- */

gpu_status gpu_upload_vector(gpu_device *d, gpu_dtype dtype, int64_t n,
                             const void *host, gpu_matrix *out)
{
    TRY(gpu_create(out, d, dtype, 1, n, 1));
    gpu_status status = gpu_upload(out, host);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* Makes f64 values f32 in place: what is written was read before. */
static void narrow(double *values, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        float single = (float)values[k];
        memcpy((char *)values + k * (int64_t)sizeof single, &single,
               sizeof single);
    }
}

void gpu_widen_f32(double *values, int64_t count)
{
    for (int64_t k = count - 1; k >= 0; k--) {
        float single;
        memcpy(&single, (char *)values + k * (int64_t)sizeof single,
               sizeof single);
        values[k] = single;
    }
}

/* Uploads h, whose values it spoils. */
static gpu_status upload_rows(gpu_host_rows *h, gpu_dtype dtype, gpu_device *d,
                              gpu_sparse *out)
{
    *out = (gpu_sparse){.rows = h->rows, .cols = h->cols, .count = h->count};
    if (!d)
        TRY(gpu_default(&d));
    if (dtype == GPU_F32)
        narrow(h->values, h->count);
    gpu_status status =
        gpu_upload_vector(d, GPU_F32, h->rows + 1, h->starts, &out->starts);
    if (status == GPU_OK)
        status =
            gpu_upload_vector(d, GPU_F32, h->count, h->columns, &out->columns);
    if (status == GPU_OK)
        status = gpu_upload_vector(d, dtype, h->count, h->values, &out->values);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}

gpu_status gpu_host_rows_download(const gpu_sparse *s, gpu_host_rows *h)
{
    TRY(gpu_host_rows_create(h, s->rows, s->cols, s->count));
    TRY(gpu_download(&s->starts, h->starts));
    TRY(gpu_download(&s->columns, h->columns));
    TRY(gpu_download(&s->values, h->values));
    if (s->values.dtype == GPU_F32)
        gpu_widen_f32(h->values, h->count);
    return GPU_OK;
}

gpu_status gpu_sparse_create(gpu_sparse *out, gpu_device *device,
                             gpu_dtype dtype, const gpu_triplets *from)
{
    gpu_host_rows h;
    *out = (gpu_sparse){0};
    gpu_status status = gpu_host_rows_from_triplets(from, &h);
    if (status == GPU_OK)
        status = upload_rows(&h, dtype, device, out);
    gpu_host_rows_free(&h);
    return status;
}

/* A dry run knows how many entries there are, or can be, and neither which nor
 * where: the arrays travel without being looked at. */
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

static gpu_status download_dry(const gpu_sparse *s)
{
    TRY(gpu_download_unseen(&s->starts, NULL));
    TRY(gpu_download_unseen(&s->columns, NULL));
    return gpu_download_unseen(&s->values, NULL);
}

/* --- dense matrices ------------------------------------------------------- */

static double element(const void *host, gpu_dtype dtype, int64_t at)
{
    return dtype == GPU_F64   ? ((const double *)host)[at]
           : dtype == GPU_F32 ? (double)((const float *)host)[at]
                              : (double)((const uint8_t *)host)[at];
}

static gpu_status count_entries(const void *host, gpu_dtype dtype, int64_t size,
                                int64_t *count)
{
    *count = 0;
    for (int64_t at = 0; at < size; at++) {
        POLL_AT(at);
        *count += element(host, dtype, at) != 0;
    }
    return GPU_OK;
}

/* host: m's elements, row-major. Creates h. */
static gpu_status collect_entries(const gpu_matrix *m, const void *host,
                                  gpu_host_rows *h)
{
    int64_t n = 0, count;
    TRY(count_entries(host, m->dtype, gpu_size(m), &count));
    TRY(gpu_host_rows_create(h, m->rows, m->cols, count));
    for (int64_t i = 0; i < m->rows; i++) {
        for (int64_t j = 0; j < m->cols; j++) {
            POLL_AT(i * m->cols + j);
            double x = element(host, m->dtype, i * m->cols + j);
            if (x == 0)
                continue;
            h->columns[n] = (int32_t)j;
            h->values[n++] = x;
        }
        h->starts[i + 1] = (int32_t)n;
    }
    return GPU_OK;
}

gpu_status gpu_sparse_from_dense(const gpu_matrix *m, gpu_dtype dtype,
                                 gpu_device *device, gpu_sparse *out)
{
    gpu_device *d;
    gpu_host_rows h = {0};
    const gpu_matrix *in[] = {m};
    *out = (gpu_sparse){0};
    TRY(gpu_check_operands("sparse", in, 1, &d));
    if (gpu_dry) { /* as many entries as there can be */
        int64_t count = gpu_size(m) < INT32_MAX ? gpu_size(m) : INT32_MAX;
        TRY(gpu_download_unseen(m, NULL));
        return create_dry(m->rows, m->cols, count, dtype, device ? device : d,
                          out);
    }
    void *host = malloc(gpu_bytes(m) + 1);
    if (!host)
        return no_room(gpu_bytes(m), "for a dense copy");
    gpu_status status = gpu_download(m, host);
    if (status == GPU_OK)
        status = collect_entries(m, host, &h);
    free(host);
    if (status == GPU_OK)
        status = upload_rows(&h, dtype, device ? device : d, out);
    gpu_host_rows_free(&h);
    return status;
}

static void place(void *host, gpu_dtype dtype, int64_t at, double x)
{
    if (dtype == GPU_F64)
        ((double *)host)[at] = x;
    else
        ((float *)host)[at] = (float)x;
}

static gpu_status place_all(const gpu_host_rows *h, gpu_dtype dtype, void *host)
{
    for (int64_t i = 0; i < h->rows; i++)
        for (int32_t e = h->starts[i]; e < h->starts[i + 1]; e++) {
            POLL_AT(e);
            place(host, dtype, i * h->cols + h->columns[e], h->values[e]);
        }
    return GPU_OK;
}

/* out exists; its elements are put together in host. */
static gpu_status fill_dense(const gpu_host_rows *h, gpu_matrix *out)
{
    void *host = calloc(gpu_bytes(out) + 1, 1);
    if (!host)
        return no_room(gpu_bytes(out), "for a dense copy");
    gpu_status status = place_all(h, out->dtype, host);
    if (status == GPU_OK)
        status = gpu_upload(out, host);
    free(host);
    return status;
}

static gpu_status bring_dense(const gpu_sparse *s, gpu_matrix *out)
{
    gpu_host_rows h;
    gpu_status status = gpu_host_rows_download(s, &h);
    if (status == GPU_OK)
        status = fill_dense(&h, out);
    gpu_host_rows_free(&h);
    return status;
}

gpu_status gpu_sparse_to_dense(const gpu_sparse *s, gpu_matrix *out)
{
    gpu_device *d;
    out->storage = NULL;
    TRY(gpu_sparse_check("full", s, &d));
    TRY(gpu_create(out, d, s->values.dtype, 2, s->rows, s->cols));
    gpu_status status = gpu_dry ? download_dry(s) : bring_dense(s, out);
    if (status == GPU_OK && gpu_dry)
        status = gpu_upload(out, NULL);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* --- other sparse matrices ------------------------------------------------ */

gpu_status gpu_sparse_transposed(const gpu_sparse *s, gpu_sparse *out)
{
    gpu_device *d;
    gpu_host_rows from, turned = {0};
    *out = (gpu_sparse){0};
    TRY(gpu_sparse_check("transpose", s, &d));
    if (gpu_dry) {
        TRY(download_dry(s));
        return create_dry(s->cols, s->rows, s->count, s->values.dtype, d, out);
    }
    gpu_status status = gpu_host_rows_download(s, &from);
    if (status == GPU_OK)
        status = gpu_host_rows_transposed(&from, &turned);
    if (status == GPU_OK)
        status = upload_rows(&turned, s->values.dtype, d, out);
    gpu_host_rows_free(&from);
    gpu_host_rows_free(&turned);
    return status;
}

/* A part of out that is the same as s's, or a copy on another device. */
static gpu_status share(const gpu_matrix *from, gpu_dtype dtype, gpu_device *d,
                        gpu_matrix *out)
{
    if (from->dtype != dtype || gpu_matrix_device(from) != d)
        return gpu_clone(from, dtype, d, out);
    gpu_retain(from);
    *out = *from;
    return GPU_OK;
}

gpu_status gpu_sparse_clone(const gpu_sparse *s, gpu_dtype dtype,
                            gpu_device *device, gpu_sparse *out)
{
    gpu_device *own;
    *out = (gpu_sparse){.rows = s->rows, .cols = s->cols, .count = s->count};
    TRY(gpu_sparse_check("clone", s, &own));
    gpu_device *d = device ? device : own;
    gpu_status status = share(&s->starts, GPU_F32, d, &out->starts);
    if (status == GPU_OK)
        status = share(&s->columns, GPU_F32, d, &out->columns);
    if (status == GPU_OK)
        status = share(&s->values, dtype, d, &out->values);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}

gpu_status gpu_sparse_scaled(const gpu_sparse *s, double factor,
                             gpu_sparse *out)
{
    gpu_program p;
    const gpu_matrix *in[] = {&s->values};
    TRY(gpu_sparse_clone(s, s->values.dtype, NULL, out));
    gpu_release(&out->values);
    gpu_program_start(&p, 1);
    int by = gpu_program_constant(&p, factor);
    gpu_program_add(&p, GPU_OP_mul, 0, by, 0);
    gpu_status status = gpu_map("mul", &p, in, &out->values);
    if (status == GPU_OK)
        status = gpu_settle(&out->values);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}
