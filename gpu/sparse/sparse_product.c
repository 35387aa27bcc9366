/* Sparse times dense. A backend without it has the CPU do it, on copies. */
#include "sparse.h"

static gpu_csr csr_of(const gpu_sparse *s)
{
    return (gpu_csr){.rows = s->rows,
                     .cols = s->cols,
                     .count = s->count,
                     .starts = gpu_view_of(&s->starts).data,
                     .columns = gpu_view_of(&s->columns).data,
                     .values = gpu_view_of(&s->values).data,
                     .dtype = s->values.dtype};
}

static gpu_status run(gpu_device *d, const gpu_sparse *s, const gpu_matrix *m,
                      gpu_matrix *out)
{
    if (gpu_size(out) == 0)
        return GPU_OK;
    if (s->count == 0)
        return gpu_fill(out, 0);
    gpu_csr csr = csr_of(s);
    gpu_view from = gpu_view_of(m), to = gpu_target_of(out);
    size_t bytes = gpu_sparse_bytes(s) + gpu_bytes(m) + gpu_bytes(out);
    gpu_operation op = {.name = "matmul",
                        .kernel = "csr",
                        .device = d,
                        .result = out,
                        .k = s->cols,
                        .flops = 2 * (double)s->count * (double)m->cols,
                        .bytes = (double)bytes};
    return RUN_OPERATION(&op, sparse_product, &csr, &from, &to, 1, 0);
}

/* s and m are on d and of one type; out is created. */
static gpu_status multiply_on(gpu_device *d, const gpu_sparse *s,
                              const gpu_matrix *m, gpu_matrix *out)
{
    TRY(gpu_create(out, d, m->dtype, m->ndim, s->rows, m->cols));
    gpu_status status = run(d, s, m, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* The product of copies of type `type` on `there`; these are s and m
 * themselves where nothing has to change. */
static gpu_status multiply_there(gpu_device *there, gpu_dtype type,
                                 const gpu_sparse *s, const gpu_matrix *m,
                                 gpu_matrix *out)
{
    gpu_sparse left;
    gpu_matrix right = *m;
    TRY(gpu_sparse_clone(s, type, there, &left));
    gpu_status status = GPU_OK;
    if (m->dtype == type && gpu_matrix_device(m) == there)
        gpu_retain(m);
    else
        status = gpu_clone(m, type, there, &right);
    if (there != gpu_matrix_device(m))
        gpu_note_fallback();
    if (status == GPU_OK) {
        status = multiply_on(there, &left, &right, out);
        gpu_release(&right);
    }
    gpu_sparse_release(&left);
    return status;
}

static gpu_status multiply_on_cpu(gpu_device *d, gpu_dtype type,
                                  const gpu_sparse *s, const gpu_matrix *m,
                                  gpu_matrix *out)
{
    gpu_matrix product;
    TRY(multiply_there(gpu_cpu(), type, s, m, &product));
    gpu_status status = gpu_clone(&product, type, d, out);
    gpu_release(&product);
    return status;
}

gpu_status gpu_sparse_multiply(const gpu_sparse *s, const gpu_matrix *d,
                               gpu_matrix *out)
{
    gpu_device *device;
    const gpu_matrix *in[] = {&s->values, d};
    out->storage = NULL;
    TRY(gpu_check_operands("matmul", in, 2, &device));
    if (s->cols != d->rows)
        return gpu_fail(GPU_SHAPE,
                        "matmul: inner dimensions differ (%lld and %lld)",
                        (long long)s->cols, (long long)d->rows);
    int wide = s->values.dtype == GPU_F64 || d->dtype == GPU_F64;
    gpu_dtype type = wide ? GPU_F64 : GPU_F32;
    gpu_status status = GPU_UNSUPPORTED;
    if (device->backend->sparse_product)
        status = multiply_there(device, type, s, d, out);
    if (status == GPU_UNSUPPORTED && !device->is_cpu)
        status = multiply_on_cpu(device, type, s, d, out);
    return status;
}
