/* Matrices of random numbers. New ones may wait, to be drawn where they are
 * used (pending.c). */
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
                        "rand: the upper limit %g is below the "
                        "lower one, %g",
                        r->high, r->low);
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

gpu_status gpu_fill_random(gpu_matrix *m, const gpu_random *r)
{
    gpu_device *d = NULL;
    TRY(gpu_check_target("rand", m, &d));
    TRY(check_random(m, r));
    return gpu_run_random(m, r);
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
    int waits = rows > 0 && cols > 0 && rows <= INT64_MAX / 16 / cols &&
                gpu_may_record_random(device, dtype, rows * cols);
    TRY((waits ? gpu_create_pending : gpu_create)(out, device, dtype, ndim,
                                                  rows, cols));
    gpu_status status =
        waits ? gpu_record_random(r, out) : gpu_run_random(out, r);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}
