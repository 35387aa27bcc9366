/* Sparse with sparse, and dense times sparse. What a device has no code for the
 * CPU does, on copies. */
#include "complex_numbers.h"
#include "sparse.h"

/* --- a matrix of two others --------------------------------------------------
 */

/* Entries of a sum, which has no shape of its own that they must fit. */
static gpu_status check_shapes(const char *name, gpu_sparse_op op,
                               const gpu_sparse *a, const gpu_sparse *b)
{
    if (op == GPU_SPARSE_PRODUCT && a->cols != b->rows)
        return gpu_fail(GPU_SHAPE,
                        "%s: inner dimensions differ (%lld and %lld)", name,
                        (long long)a->cols, (long long)b->rows);
    if (op != GPU_SPARSE_PRODUCT && (a->rows != b->rows || a->cols != b->cols))
        return gpu_fail(GPU_SHAPE, "%s: shapes %s and %s do not match", name,
                        gpu_size_text(a->rows, a->cols),
                        gpu_size_text(b->rows, b->cols));
    return GPU_OK;
}

/* a and b are on d and of one type. */
static gpu_status combine_on(gpu_device *d, const char *name, gpu_sparse_op op,
                             const gpu_sparse *a, const gpu_sparse *b,
                             gpu_sparse *out)
{
    gpu_csr left = gpu_csr_of(a), right = gpu_csr_of(b);
    /* Without storage: nothing of it is there before it is whole. */
    gpu_matrix shape = {
        .dtype = a->values.dtype, .ndim = 2, .rows = a->rows, .cols = b->cols};
    int is_product = op == GPU_SPARSE_PRODUCT;
    double each = b->rows > 0 ? (double)b->count / (double)b->rows : 0;
    gpu_sparse_making m = {.dtype = a->values.dtype, .out = out};
    m.op = (gpu_operation){
        .name = name,
        .kernel = "csr",
        .device = d,
        .result = &shape,
        .extent = &a->values,
        .k = is_product ? a->cols : 0,
        .flops = (double)a->count * (is_product ? 2 * each : 1),
        .bytes = (double)(gpu_sparse_bytes(a) + gpu_sparse_bytes(b))};
    TRY(gpu_sparse_begin(&m, a->rows, b->cols));
    return gpu_sparse_end(
        &m, RUN_OPERATION(&m.op, sparse_combine, op, &left, &right, &m.told));
}

/* Copies of a and b on `there`, of a type; these are a and b themselves where
 * nothing has to change. */
static gpu_status combine_there(gpu_device *there, const char *name,
                                gpu_sparse_op op, gpu_dtype type,
                                const gpu_sparse *a, const gpu_sparse *b,
                                gpu_sparse *out)
{
    gpu_sparse left, right;
    TRY(gpu_sparse_clone(a, type, there, &left));
    gpu_status status = gpu_sparse_clone(b, type, there, &right);
    if (status == GPU_OK) {
        status = combine_on(there, name, op, &left, &right, out);
        gpu_sparse_release(&right);
    }
    gpu_sparse_release(&left);
    return status;
}

gpu_status gpu_sparse_combine(const char *name, gpu_sparse_op op,
                              const gpu_sparse *a, const gpu_sparse *b,
                              gpu_sparse *out)
{
    gpu_device *d;
    gpu_sparse here;
    const gpu_matrix *in[] = {&a->values, &b->values};
    gpu_status status = GPU_UNSUPPORTED;
    *out = (gpu_sparse){0};
    TRY(gpu_check_complex(name, in, 2, &d));
    TRY(check_shapes(name, op, a, b));
    gpu_dtype type = gpu_dtype_wider(a->values.dtype, b->values.dtype);
    if (d->backend->sparse_combine)
        status = combine_there(d, name, op, type, a, b, out);
    if (status != GPU_UNSUPPORTED || d->is_cpu)
        return status;
    gpu_note_fallback();
    TRY(combine_there(gpu_cpu(), name, op, type, a, b, &here));
    return gpu_sparse_send(&here, type, d, out);
}

/* --- powers
 * ------------------------------------------------------------------- */

/* The unit matrix of s's size, type and device. */
static gpu_status create_unit(const gpu_sparse *s, gpu_sparse *out)
{
    gpu_sparse here;
    TRY(gpu_sparse_create_arrays(gpu_cpu(), GPU_F64, s->rows, s->rows, s->rows,
                                 &here));
    gpu_rows_out rows = gpu_rows_of(&here);
    double *values = rows.values;
    if (!gpu_dry)
        rows.starts[0] = 0;
    for (int64_t i = 0; !gpu_dry && i < s->rows; i++) {
        rows.starts[i + 1] = (int32_t)i + 1;
        rows.columns[i] = (int32_t)i;
        values[i] = 1;
    }
    return gpu_sparse_send(&here, s->values.dtype,
                           gpu_matrix_device(&s->values), out);
}

/* a becomes a b; of the a that it was nothing is left. */
static gpu_status multiply_in_place(gpu_sparse *a, const gpu_sparse *b)
{
    gpu_sparse product;
    TRY(gpu_sparse_combine("pow", GPU_SPARSE_PRODUCT, a, b, &product));
    gpu_sparse_release(a);
    *a = product;
    return GPU_OK;
}

gpu_status gpu_sparse_power(const gpu_sparse *s, int64_t n, gpu_sparse *out)
{
    gpu_sparse square = {0};
    gpu_device *d;
    *out = (gpu_sparse){0};
    TRY(gpu_sparse_check("pow", s, &d));
    if (s->rows != s->cols || n < 0)
        return gpu_fail(GPU_ARGUMENT,
                        "pow: S ^ %lld of %s: expected a square matrix and 0 "
                        "or more",
                        (long long)n, gpu_size_text(s->rows, s->cols));
    if (n == 0)
        return create_unit(s, out);
    TRY(gpu_sparse_clone(s, s->values.dtype, NULL, &square));
    gpu_status status = GPU_OK;
    for (; status == GPU_OK && n % 2 == 0; n /= 2)
        status = multiply_in_place(&square, &square);
    if (status == GPU_OK)
        status = gpu_sparse_clone(&square, s->values.dtype, NULL, out);
    while (status == GPU_OK && (n /= 2) > 0) {
        status = multiply_in_place(&square, &square);
        if (status == GPU_OK && n % 2 == 1)
            status = multiply_in_place(out, &square);
    }
    gpu_sparse_release(&square);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}

/* --- elements of a dense matrix ------------------------------------------- */

static gpu_status sample_on(gpu_device *d, const char *name,
                            const gpu_sparse *s, const gpu_matrix *m,
                            gpu_matrix *out)
{
    gpu_csr csr = gpu_csr_of(s);
    gpu_view from = gpu_view_of(m);
    TRY(gpu_create(out, d, m->dtype, 1, s->count, 1));
    if (s->count == 0)
        return GPU_OK;
    gpu_view to = gpu_target_of(out);
    gpu_operation o = {.name = name,
                       .kernel = "csr",
                       .device = d,
                       .result = out,
                       .bytes = (double)(gpu_sparse_bytes(s) + gpu_bytes(out))};
    from.row_stride = m->rows == 1 ? 0 : from.row_stride;
    from.col_stride = m->cols == 1 ? 0 : from.col_stride;
    gpu_status status = RUN_OPERATION(&o, sparse_sample, &csr, &from, to.data);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_sparse_sample(const char *name, const gpu_sparse *s,
                             const gpu_matrix *m, gpu_matrix *out)
{
    gpu_device *d;
    const gpu_matrix *in[] = {&s->values, m};
    gpu_sparse here;
    gpu_matrix dense, found;
    out->storage = NULL;
    TRY(gpu_check_complex(name, in, 2, &d));
    if (m->ndim != 2 || (m->rows != s->rows && m->rows != 1) ||
        (m->cols != s->cols && m->cols != 1))
        return gpu_fail(GPU_SHAPE, "%s: shapes %s and %s do not match", name,
                        gpu_size_text(s->rows, s->cols), gpu_shape_text(m));
    gpu_device *there = d->backend->sparse_sample ? d : gpu_cpu();
    if (there == d && !m->is_conjugated)
        return sample_on(d, name, s, m, out);
    TRY(gpu_sparse_clone(s, s->values.dtype, there, &here));
    gpu_status status = gpu_clone(m, m->dtype, there, &dense);
    if (there != d)
        gpu_note_fallback();
    if (status == GPU_OK) {
        status = sample_on(there, name, &here, &dense, &found);
        gpu_release(&dense);
    }
    if (status == GPU_OK) {
        status = gpu_clone(&found, m->dtype, d, out);
        gpu_release(&found);
    }
    gpu_sparse_release(&here);
    return status;
}
