/* Linear systems: solve, inverse, determinant. A backend without them has
 * the CPU do it, on copies. */
#include "core.h"

#include <math.h>

static gpu_status check_square(const char *name, const gpu_matrix *a)
{
    if (a->ndim == 2 && a->rows == a->cols)
        return GPU_OK;
    return gpu_fail(GPU_SHAPE, "%s: needs a square matrix, not %s", name,
                    gpu_shape_text(a));
}

static gpu_dtype system_type(const gpu_matrix *a, const gpu_matrix *b)
{
    return a->dtype == GPU_F64 || b->dtype == GPU_F64 ? GPU_F64 : GPU_F32;
}

/* Where the entry is: the matrices' own device, or the CPU. */
static gpu_device *solver(gpu_device *d, int has_entry)
{
    return has_entry ? d : gpu_cpu();
}

static gpu_status run_solve(gpu_device *d, const gpu_matrix *a,
                            const gpu_matrix *b)
{
    if (gpu_size(b) == 0)
        return GPU_OK;
    gpu_view left = gpu_target_of(a), right = gpu_target_of(b);
    double n = (double)a->rows;
    gpu_begin_operation(d, "solve", b, a->rows);
    int tracing = gpu_trace_start(d);
    gpu_status status = d->backend->solve(d->handle, &left, &right);
    return gpu_traced(d, tracing, status, "solve", "lapack", b, a->rows,
                      n * n * (2.0 / 3 * n + 2.0 * (double)b->cols),
                      (double)(gpu_bytes(a) + gpu_bytes(b)));
}

gpu_status gpu_solve(const gpu_matrix *a, const gpu_matrix *b, gpu_matrix *out)
{
    gpu_device *d;
    const gpu_matrix *in[] = {a, b};
    out->storage = NULL;
    TRY(gpu_check_operands("solve", in, 2, &d));
    TRY(check_square("solve", a));
    if (b->rows != a->rows)
        return gpu_fail(GPU_SHAPE, "solve: %s has %lld rows, the right side %s",
                        gpu_shape_text(a), (long long)a->rows,
                        gpu_shape_text(b));
    gpu_device *there = solver(d, d->backend->solve != NULL);
    gpu_dtype type = system_type(a, b);
    gpu_matrix factors, solution = {.storage = NULL};
    TRY(gpu_clone(a, type, there, &factors));
    gpu_status status = gpu_clone(b, type, there, &solution);
    if (there != d)
        gpu_note_fallback();
    if (status == GPU_OK)
        status = run_solve(there, &factors, &solution);
    if (status == GPU_OK && there != d)
        status = gpu_clone(&solution, type, d, out);
    else if (status == GPU_OK) {
        gpu_retain(&solution);
        *out = solution;
    }
    gpu_release(&solution);
    gpu_release(&factors);
    return status;
}

/* The identity: ones where row and column agree. */
static gpu_status identity(gpu_device *d, gpu_dtype type, int64_t n,
                           gpu_matrix *out)
{
    TRY(gpu_create(out, d, type, 2, n, n));
    gpu_program p;
    gpu_program_start(&p, 0);
    int row = gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    int col = gpu_program_add(&p, GPU_OP_COL, 0, 0, 0);
    gpu_program_add(&p, GPU_OP_eq, row, col, 0);
    gpu_status status = gpu_map("eye", &p, NULL, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_inverse(const gpu_matrix *a, gpu_matrix *out)
{
    gpu_device *d;
    gpu_matrix one;
    const gpu_matrix *in[] = {a};
    out->storage = NULL;
    TRY(gpu_check_operands("inv", in, 1, &d));
    TRY(check_square("inv", a));
    TRY(identity(d, system_type(a, a), a->rows, &one));
    gpu_status status = gpu_solve(a, &one, out);
    gpu_release(&one);
    return status;
}

static gpu_status run_determinant(gpu_device *d, const gpu_matrix *factors,
                                  double *out)
{
    gpu_view view = gpu_target_of(factors);
    double n = (double)factors->rows;
    gpu_begin_operation(d, "det", factors, factors->rows);
    int tracing = gpu_trace_start(d);
    gpu_status status = d->backend->determinant(d->handle, &view, out);
    if (*out != *out)
        *out = NAN; /* without a sign */
    if (*out == 0)
        *out = 0; /* of a singular matrix, whatever the other pivots' signs */
    return gpu_traced(d, tracing, status, "det", "lapack", factors,
                      factors->rows, 2.0 / 3 * n * n * n,
                      (double)gpu_bytes(factors));
}

gpu_status gpu_determinant(const gpu_matrix *a, double *out)
{
    gpu_device *d;
    const gpu_matrix *in[] = {a};
    TRY(gpu_check_operands("det", in, 1, &d));
    TRY(check_square("det", a));
    *out = 1;
    if (a->rows == 0)
        return GPU_OK;
    gpu_device *there = solver(d, d->backend->determinant != NULL);
    gpu_matrix factors;
    TRY(gpu_clone(a, system_type(a, a), there, &factors));
    if (there != d)
        gpu_note_fallback();
    gpu_status status = run_determinant(there, &factors, out);
    gpu_release(&factors);
    return status;
}
