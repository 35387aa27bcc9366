/* Sparse matrices: their arrays on a device, shared, copied and converted. */
#include "complex_numbers.h"
#include "sparse.h"

#include <stdlib.h>
#include <string.h>

gpu_status gpu_sparse_check(const char *name, const gpu_sparse *s,
                            gpu_device **d)
{
    const gpu_matrix *in[] = {&s->values};
    return gpu_check_complex(name, in, 1, d);
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

/* --- arrays --------------------------------------------------------------- */

gpu_status gpu_sparse_check_sizes(int64_t rows, int64_t cols, int64_t count)
{
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
    return GPU_OK;
}

gpu_status gpu_sparse_create_arrays(gpu_device *d, gpu_dtype dtype,
                                    int64_t rows, int64_t cols, int64_t count,
                                    gpu_sparse *out)
{
    *out = (gpu_sparse){.rows = rows, .cols = cols, .count = count};
    TRY(gpu_sparse_check_sizes(rows, cols, count));
    gpu_status status = gpu_create(&out->starts, d, GPU_F32, 1, rows + 1, 1);
    if (status == GPU_OK)
        status = gpu_create(&out->columns, d, GPU_F32, 1, count, 1);
    if (status == GPU_OK)
        status = gpu_create(&out->values, d, dtype, 1, count, 1);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}

gpu_csr gpu_csr_of(const gpu_sparse *s)
{
    return (gpu_csr){.rows = s->rows,
                     .cols = s->cols,
                     .count = s->count,
                     .starts = gpu_view_of(&s->starts).data,
                     .columns = gpu_view_of(&s->columns).data,
                     .values = gpu_view_of(&s->values).data,
                     .dtype = s->values.dtype};
}

gpu_rows_out gpu_rows_of(const gpu_sparse *s)
{
    return (gpu_rows_out){gpu_target_of(&s->starts).data,
                          gpu_target_of(&s->columns).data,
                          gpu_target_of(&s->values).data};
}

/* --- entries that are counted as they are made ---------------------------- */

static gpu_status make_room(gpu_csr_result *r, int64_t most)
{
    gpu_sparse_making *m = (gpu_sparse_making *)r; /* which it begins */
    gpu_device *d = m->op.device;
    if (most > INT32_MAX)
        return gpu_fail(GPU_ARGUMENT,
                        "%s: the result has %lld entries: there must be fewer "
                        "than 2147483648",
                        m->op.name, (long long)most);
    TRY(gpu_create(&m->out->columns, d, GPU_F32, 1, most, 1));
    TRY(gpu_create(&m->out->values, d, m->dtype, 1, most, 1));
    r->columns = gpu_target_of(&m->out->columns).data;
    r->values = gpu_target_of(&m->out->values).data;
    return GPU_OK;
}

gpu_status gpu_sparse_begin(gpu_sparse_making *m, int64_t rows, int64_t cols)
{
    *m->out = (gpu_sparse){.rows = rows, .cols = cols};
    TRY(gpu_sparse_check_sizes(rows, cols, 0));
    TRY(gpu_create(&m->out->starts, m->op.device, GPU_F32, 1, rows + 1, 1));
    m->told = (gpu_csr_result){.starts = gpu_target_of(&m->out->starts).data,
                               .make_room = make_room};
    return GPU_OK;
}

gpu_status gpu_sparse_end(gpu_sparse_making *m, gpu_status status)
{
    gpu_sparse *out = m->out;
    if (status == GPU_OK && !out->values.storage)
        status = make_room(&m->told, 0);
    if (status != GPU_OK) {
        gpu_sparse_release(out);
        return status;
    }
    out->count = out->columns.rows = out->values.rows = m->told.count;
    return GPU_OK;
}

static gpu_status call(gpu_sparse_making *m, gpu_sparse_entry *entry,
                       const void *context)
{
    m->op.result = m->told.columns ? &m->out->values : &m->out->starts;
    return entry(&m->op, context, &m->told);
}

gpu_status gpu_sparse_count(gpu_sparse_making *m, int64_t rows, int64_t cols,
                            gpu_sparse_entry *entry, const void *context)
{
    TRY(gpu_sparse_begin(m, rows, cols));
    gpu_status status = call(m, entry, context);
    if (status != GPU_OK)
        gpu_sparse_release(m->out);
    return status;
}

gpu_status gpu_sparse_fill(gpu_sparse_making *m, gpu_sparse_entry *entry,
                           const void *context)
{
    gpu_status status = make_room(&m->told, m->told.count);
    if (status == GPU_OK)
        status = call(m, entry, context);
    return gpu_sparse_end(m, status);
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

static void widen(double *values, int64_t count)
{
    for (int64_t k = count - 1; k >= 0; k--) {
        float single;
        memcpy(&single, (char *)values + k * (int64_t)sizeof single,
               sizeof single);
        values[k] = single;
    }
}

gpu_status gpu_download_wide(const gpu_matrix *vector, double *values)
{
    int64_t count = gpu_size(vector) * (gpu_is_complex(vector) ? 2 : 1);
    TRY(gpu_is_complex(vector) ? gpu_complex_download(vector, values)
                               : gpu_download(vector, values));
    if (gpu_dtype_of_parts(vector->dtype) == GPU_F32)
        widen(values, count);
    return GPU_OK;
}

/* --- other sparse matrices ------------------------------------------------ */

/* Do a vector's elements lie as those of a sparse matrix do? */
static int is_plain(const gpu_matrix *values)
{
    return gpu_is_contiguous(values) && !values->is_conjugated;
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

gpu_status gpu_sparse_with_values(const gpu_sparse *s, const gpu_matrix *values,
                                  gpu_sparse *out)
{
    gpu_device *d;
    const gpu_matrix *in[] = {&s->values, values};
    *out = (gpu_sparse){.rows = s->rows, .cols = s->cols, .count = s->count};
    TRY(gpu_check_complex("sparse", in, 2, &d));
    if (values->ndim != 1 || values->rows != s->count ||
        values->dtype == GPU_BOOL)
        return gpu_fail(GPU_SHAPE,
                        "sparse: %lld entries do not get a %s of %s, %s, as "
                        "values",
                        (long long)s->count,
                        values->ndim == 1 ? "vector" : "matrix",
                        gpu_shape_text(values), gpu_dtype_name(values->dtype));
    gpu_status status = share(&s->starts, GPU_F32, d, &out->starts);
    if (status == GPU_OK)
        status = share(&s->columns, GPU_F32, d, &out->columns);
    if (status == GPU_OK)
        status = is_plain(values)
                     ? share(values, values->dtype, d, &out->values)
                     : gpu_clone(values, values->dtype, d, &out->values);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}

/* --- the CPU in place of another device ------------------------------------
 */

gpu_status gpu_sparse_bring(const gpu_sparse *s, gpu_sparse *here)
{
    if (gpu_matrix_device(&s->values) != gpu_cpu())
        gpu_note_fallback();
    return gpu_sparse_clone(s, s->values.dtype, gpu_cpu(), here);
}

gpu_status gpu_sparse_bring_vector(const gpu_matrix *m, gpu_dtype dtype,
                                   gpu_matrix *here)
{
    gpu_device *d;
    TRY(gpu_check_complex("sparse", &m, 1, &d));
    if (!d->is_cpu)
        gpu_note_fallback();
    return is_plain(m) ? share(m, dtype, gpu_cpu(), here)
                       : gpu_clone(m, dtype, gpu_cpu(), here);
}

gpu_status gpu_sparse_send(gpu_sparse *here, gpu_dtype dtype, gpu_device *d,
                           gpu_sparse *out)
{
    gpu_status status = gpu_sparse_clone(here, dtype, d, out);
    gpu_sparse_release(here);
    return status;
}
