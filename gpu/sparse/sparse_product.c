/* Sparse times dense, and its transpose times dense. A backend without it has
 * the CPU do it, on copies. */
#include "complex_numbers.h"
#include "sparse.h"

#include <string.h>

/* The rung for a product, whose views lie on d or are of its shapes; NULL: the
 * backend's entry does without, or the CPU does it. */
static gpu_status choose(gpu_device *d, const char *kernel, gpu_sparse_call *p)
{
    const gpu_backend *b = d->backend;
    int is_auto = !kernel || strcmp(kernel, "auto") == 0;
    if (is_auto && b->sparse_survey)
        TRY(b->sparse_survey(d->handle, p));
    p->rung = b->choose_sparse ? b->choose_sparse(d->handle, p) : NULL;
    return is_auto ? GPU_OK
                   : gpu_find_rung(d, p->c.cols == 1 ? "spmv" : "spmm", kernel,
                                   p->s.dtype, &p->rung);
}

/* The left side of a product: s, or its transpose, which is not made. */
typedef struct left_side {
    const gpu_sparse *s;
    int is_turned;
} left_side;

static gpu_status run_entry(gpu_operation *op, int is_turned,
                            const gpu_sparse_call *p)
{
    if (is_turned)
        return RUN_OPERATION(op, sparse_turned_product, p);
    return RUN_OPERATION(op, sparse_product, p);
}

static gpu_status run(gpu_device *d, const left_side *left, const gpu_matrix *m,
                      const char *kernel, gpu_matrix *out)
{
    const gpu_sparse *s = left->s;
    if (gpu_size(out) == 0)
        return GPU_OK;
    if (s->count == 0)
        return gpu_is_complex(out) ? gpu_complex_fill(out, (gpu_complex){0, 0})
                                   : gpu_fill(out, 0);
    gpu_sparse_call p = {.s = gpu_csr_of(s),
                         .storage = s->starts.storage,
                         .d = gpu_view_of(m),
                         .c = gpu_target_of(out),
                         .alpha = 1};
    gpu_begin_product(d);
    gpu_status status = left->is_turned ? GPU_OK : choose(d, kernel, &p);
    size_t bytes = gpu_sparse_bytes(s) + gpu_bytes(m) + gpu_bytes(out);
    gpu_operation op = {.name = "matmul",
                        .kernel = left->is_turned ? "scatter"
                                  : p.rung        ? p.rung->name
                                                  : "csr",
                        .device = d,
                        .result = out,
                        .k = m->rows,
                        .flops = (gpu_is_complex(m) ? 8 : 2) *
                                 (double)s->count * (double)m->cols,
                        .bytes = (double)bytes};
    if (status == GPU_OK)
        status = run_entry(&op, left->is_turned, &p);
    gpu_end_product(d, status);
    return status;
}

/* Both sides are on d and of one type; out is created. */
static gpu_status multiply_on(gpu_device *d, const left_side *left,
                              const gpu_matrix *m, const char *kernel,
                              gpu_matrix *out)
{
    int64_t rows = left->is_turned ? left->s->cols : left->s->rows;
    TRY(gpu_create(out, d, m->dtype, m->ndim, rows, m->cols));
    gpu_status status = run(d, left, m, kernel, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* The product of copies of type `type` on `there`; these are the sides
 * themselves where nothing has to change. */
static gpu_status multiply_there(gpu_device *there, gpu_dtype type,
                                 const left_side *left, const gpu_matrix *m,
                                 const char *kernel, gpu_matrix *out)
{
    gpu_sparse s;
    gpu_matrix right = *m;
    TRY(gpu_sparse_clone(left->s, type, there, &s));
    gpu_status status = GPU_OK;
    int is_packed =
        !gpu_is_complex(m) || (gpu_is_contiguous(m) && !m->is_conjugated);
    if (m->dtype == type && gpu_matrix_device(m) == there && is_packed)
        gpu_retain(m);
    else
        status = gpu_clone(m, type, there, &right);
    if (there != gpu_matrix_device(m))
        gpu_note_fallback();
    if (status == GPU_OK) {
        left_side copy = {&s, left->is_turned};
        status = multiply_on(there, &copy, &right, kernel, out);
        gpu_release(&right);
    }
    gpu_sparse_release(&s);
    return status;
}

static gpu_status multiply_on_cpu(gpu_device *d, gpu_dtype type,
                                  const gpu_sparse *s, const gpu_matrix *m,
                                  gpu_matrix *out)
{
    gpu_matrix product;
    left_side left = {s, 0};
    TRY(multiply_there(gpu_cpu(), type, &left, m, NULL, &product));
    gpu_status status = gpu_clone(&product, type, d, out);
    gpu_release(&product);
    return status;
}

/* Both of one type: on the device, or where that has no entry for it on the
 * CPU. */
static gpu_status multiply(gpu_device *d, gpu_dtype type, const gpu_sparse *s,
                           const gpu_matrix *m, const char *kernel,
                           gpu_matrix *out)
{
    gpu_status status = GPU_UNSUPPORTED;
    left_side left = {s, 0};
    int is_done_here =
        d->is_cpu || !gpu_dtype_is_complex(type) || d->backend->choose_sparse;
    if (d->backend->sparse_product && is_done_here)
        status = multiply_there(d, type, &left, m, kernel, out);
    if (status == GPU_UNSUPPORTED && !d->is_cpu && !kernel)
        status = multiply_on_cpu(d, type, s, m, out);
    return status;
}

/* --- real with complex -------------------------------------------------------
 * What is real has no imaginary part, not one of zeros, which an infinity would
 * make NaN of. */

/* s is real: the product with a real matrix of both parts side by side. */
static gpu_status multiply_parts_of_dense(gpu_device *d, gpu_dtype type,
                                          const gpu_sparse *s,
                                          const gpu_matrix *m,
                                          const char *kernel, gpu_matrix *out)
{
    gpu_matrix plain, product, both;
    TRY(gpu_clone(m, type, d, &plain));
    int ndim = plain.ndim;
    plain.ndim = 2;
    gpu_as_reals(&plain, &both);
    gpu_status status =
        multiply(d, gpu_dtype_of_parts(type), s, &both, kernel, &product);
    gpu_release(&plain);
    TRY(status);
    gpu_matrix parts[2] = {product, product};
    for (int k = 0; k < 2; k++) {
        parts[k].offset += k * product.col_stride;
        parts[k].col_stride *= 2;
        parts[k].cols /= 2;
        parts[k].ndim = ndim;
    }
    status = gpu_complex_join(&parts[0], &parts[1], type, out);
    gpu_release(&product);
    return status;
}

static gpu_status multiply_part_of_sparse(gpu_device *d, gpu_dtype type,
                                          const gpu_sparse *s,
                                          gpu_complex_part which,
                                          const gpu_matrix *m,
                                          const char *kernel, gpu_matrix *out)
{
    gpu_matrix part;
    gpu_sparse of_part;
    gpu_view_part(&s->values, which, &part);
    gpu_status status = gpu_sparse_with_values(s, &part, &of_part);
    gpu_release(&part);
    TRY(status);
    status = multiply(d, type, &of_part, m, kernel, out);
    gpu_sparse_release(&of_part);
    return status;
}

/* m is real: a product for each part of s. */
static gpu_status multiply_parts_of_sparse(gpu_device *d, gpu_dtype type,
                                           const gpu_sparse *s,
                                           const gpu_matrix *m,
                                           const char *kernel, gpu_matrix *out)
{
    gpu_matrix re, im;
    gpu_dtype part = gpu_dtype_of_parts(type);
    TRY(multiply_part_of_sparse(d, part, s, GPU_REAL_PART, m, kernel, &re));
    gpu_status status =
        multiply_part_of_sparse(d, part, s, GPU_IMAGINARY_PART, m, kernel, &im);
    if (status == GPU_OK) {
        status = gpu_complex_join(&re, &im, type, out);
        gpu_release(&im);
    }
    gpu_release(&re);
    return status;
}

static gpu_status check_inner(int64_t left, int64_t right)
{
    return left == right
               ? GPU_OK
               : gpu_fail(GPU_SHAPE,
                          "matmul: inner dimensions differ (%lld and %lld)",
                          (long long)left, (long long)right);
}

gpu_status gpu_sparse_multiply(const gpu_sparse *s, const gpu_matrix *d,
                               const char *kernel, gpu_matrix *out)
{
    gpu_device *device;
    const gpu_matrix *in[] = {&s->values, d};
    out->storage = NULL;
    TRY(gpu_check_complex("matmul", in, 2, &device));
    TRY(check_inner(s->cols, d->rows));
    gpu_dtype type = gpu_dtype_wider(s->values.dtype, d->dtype);
    if (gpu_is_complex(d) && !gpu_is_complex(&s->values))
        return multiply_parts_of_dense(device, type, s, d, kernel, out);
    if (gpu_is_complex(&s->values) && !gpu_is_complex(d))
        return multiply_parts_of_sparse(device, type, s, d, kernel, out);
    return multiply(device, type, s, d, kernel, out);
}

/* Beyond so many columns the transpose is worth its making. */
enum { MOST_TURNED = 16 };

gpu_status gpu_sparse_multiply_turned(const gpu_sparse *s, const gpu_matrix *d,
                                      gpu_matrix *out)
{
    gpu_device *device;
    const gpu_matrix *in[] = {&s->values, d};
    left_side left = {s, 1};
    out->storage = NULL;
    TRY(gpu_check_complex("matmul", in, 2, &device));
    TRY(check_inner(s->rows, d->rows));
    if (!device->backend->sparse_turned_product || d->cols > MOST_TURNED ||
        gpu_is_complex(d) != gpu_is_complex(&s->values))
        return GPU_UNSUPPORTED;
    return multiply_there(device, gpu_dtype_wider(s->values.dtype, d->dtype),
                          &left, d, NULL, out);
}

gpu_status gpu_sparse_kernel_choice(const gpu_sparse *s, const gpu_matrix *d,
                                    const char **name)
{
    gpu_device *device;
    const gpu_matrix *in[] = {&s->values, d};
    *name = NULL;
    TRY(gpu_check_complex("matmul", in, 2, &device));
    gpu_view view = gpu_view_of(d);
    gpu_sparse_call p = {.s = gpu_csr_of(s),
                         .storage = s->starts.storage,
                         .d = view,
                         .c = view,
                         .alpha = 1};
    p.s.dtype = gpu_dtype_wider(s->values.dtype, d->dtype);
    p.c.rows = s->rows;
    TRY(choose(device, NULL, &p));
    *name = p.rung ? p.rung->name : NULL;
    return GPU_OK;
}
