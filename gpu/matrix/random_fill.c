/* Matrices of random numbers. New ones may wait, to be drawn where they are
 * used (pending.c). */
#include "complex_numbers.h"
#include "core.h"

#include <math.h>

static gpu_status check_random(const gpu_matrix *m, const gpu_random *r)
{
    if (!(r->low - r->low == 0) || !(r->high - r->high == 0))
        return gpu_fail(GPU_ARGUMENT,
                        "rand: the limits must be finite, not "
                        "%g and %g",
                        r->low, r->high);
    if (r->kind == GPU_NORMAL && r->high < 0)
        return gpu_fail(GPU_ARGUMENT,
                        "randn: the standard deviation %g is negative",
                        r->high);
    if (r->kind != GPU_NORMAL && r->high < r->low)
        return gpu_fail(GPU_ARGUMENT,
                        "%s: the upper limit %g is below the "
                        "lower one, %g",
                        r->kind == GPU_INTEGER ? "randint" : "rand", r->high,
                        r->low);
    if (r->first < 0 || r->first % 4 != 0)
        return gpu_fail(GPU_INTERNAL, "rand: a part begins with element %lld",
                        (long long)r->first);
    double limit = m->dtype == GPU_F64 ? 0x1p53 : 0x1p24;
    if (r->kind == GPU_INTEGER && m->dtype != GPU_BOOL &&
        (fabs(r->low) > limit || fabs(r->high) > limit))
        return gpu_fail(GPU_ARGUMENT,
                        "randint: %.0f..%.0f is more than %s holds exactly%s",
                        r->low, r->high, gpu_dtype_name(m->dtype),
                        m->dtype == GPU_F32 ? "; add {dtype=\"f64\"}" : "");
    return GPU_OK;
}

gpu_status gpu_run_random(const gpu_matrix *m, const gpu_random *r)
{
    if (gpu_size(m) == 0)
        return GPU_OK;
    gpu_view to = gpu_target_of(m);
    gpu_operation op = {.name = "rand",
                        .kernel = "philox",
                        .device = m->storage->device,
                        .result = m,
                        .writes_all = 1,
                        .bytes = (double)gpu_bytes(m)};
    return RUN_OPERATION(&op, random, r, &to);
}

gpu_random gpu_random_of_parts(const gpu_random *r)
{
    gpu_random each = *r;
    if (r->kind == GPU_NORMAL)
        each.high = r->high * sqrt(0.5);
    return each;
}

static gpu_status fill_complex(gpu_matrix *m, const gpu_random *r)
{
    gpu_matrix reals, fresh;
    gpu_random each = gpu_random_of_parts(r);
    if (r->kind == GPU_INTEGER)
        return gpu_fail_complex("randint");
    if (r->kind == GPU_NORMAL && r->low != 0)
        return gpu_fail(GPU_ARGUMENT,
                        "randn: complex numbers have the mean 0, not %g: add "
                        "it to them",
                        r->low);
    if (gpu_is_contiguous(m) && gpu_as_reals(m, &reals))
        return gpu_fill_random(&reals, &each);
    TRY(gpu_create(&fresh, gpu_matrix_device(m), m->dtype, m->ndim, m->rows,
                   m->cols));
    gpu_status status = fill_complex(&fresh, r);
    if (status == GPU_OK)
        status = gpu_copy(&fresh, m);
    gpu_release(&fresh);
    return status;
}

gpu_status gpu_fill_random(gpu_matrix *m, const gpu_random *r)
{
    gpu_device *d = NULL;
    if (gpu_is_complex(m))
        return fill_complex(m, r);
    TRY(gpu_check_target("rand", m, &d));
    TRY(check_random(m, r));
    return gpu_run_random(m, r);
}

gpu_status gpu_create_variates(gpu_matrix *out, gpu_variate_kind kind,
                               uint64_t seed, uint64_t call,
                               const gpu_matrix *mean, const gpu_matrix *chance)
{
    const char *name = kind == GPU_POISSON ? "poisson" : "binomial";
    const gpu_matrix *in[] = {mean, chance};
    gpu_device *d;
    out->storage = NULL;
    TRY(gpu_check_operands(name, in, chance ? 2 : 1, &d));
    if (mean->dtype != GPU_F64 || (chance && chance->dtype != GPU_F64) ||
        (chance && (chance->rows != mean->rows || chance->cols != mean->cols)))
        return gpu_fail(GPU_INTERNAL, "%s: parameters of other types or shapes",
                        name);
    if (!d->backend->variates)
        return gpu_fail(GPU_UNSUPPORTED,
                        "%s: parameters of each element lie "
                        "on the CPU",
                        name);
    TRY(gpu_create(out, d, GPU_F64, mean->ndim, mean->rows, mean->cols));
    if (gpu_size(out) == 0)
        return GPU_OK;
    gpu_variates v = {kind, seed, call, gpu_view_of(mean), {0}};
    gpu_view to = gpu_target_of(out);
    if (chance)
        v.chance = gpu_view_of(chance);
    gpu_operation op = {.name = name,
                        .kernel = "variates",
                        .device = d,
                        .result = out,
                        .bytes = 2 * (double)gpu_bytes(out)};
    gpu_status status = RUN_OPERATION(&op, variates, &v, &to);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

static gpu_status create_complex_random(gpu_matrix *out, gpu_device *device,
                                        gpu_dtype dtype, int ndim, int64_t rows,
                                        int64_t cols, const gpu_random *r)
{
    TRY(gpu_create(out, device, dtype, ndim, rows, cols));
    gpu_status status = fill_complex(out, r);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_create_random(gpu_matrix *out, gpu_device *device,
                             gpu_dtype dtype, int ndim, int64_t rows,
                             int64_t cols, const gpu_random *r)
{
    const gpu_matrix like = {.dtype = dtype};
    out->storage = NULL;
    if (!device)
        TRY(gpu_default(&device));
    TRY(check_random(&like, r));
    if (gpu_dtype_is_complex(dtype))
        return create_complex_random(out, device, dtype, ndim, rows, cols, r);
    int waits = rows > 0 && cols > 0 && rows <= INT64_MAX / 16 / cols &&
                r->first == 0 &&
                gpu_may_record_random(device, dtype, rows * cols);
    TRY((waits ? gpu_create_pending : gpu_create)(out, device, dtype, ndim,
                                                  rows, cols));
    gpu_status status =
        waits ? gpu_record_random(r, out) : gpu_run_random(out, r);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}
