/* The whole of liblumat-cuda-fft.so: cuFFT's plans, kept for the next call of
 * their kind. */
#include <stdlib.h>
#include <string.h>
#include "fft_table.h"
#include "library_call.h"

#include <cufft.h>

/* Making a plan takes from a tenth of a millisecond to many. Those of lengths
 * with large primes hold tables of a few times as many elements. */
enum { MOST_PLANS = 16, MOST_LENGTH = 1 << 27 };

/* A plan, and what it is for: of `of` all but the memory and the direction. */
typedef struct kept_plan {
    fft_batch of;
    cufftHandle plan;
    size_t bytes; /* that it works in */
    uint64_t used;
} kept_plan;

struct fft_device {
    la_setup setup;
    kept_plan plans[MOST_PLANS];
    int count;
    int64_t length; /* of all that are kept */
    uint64_t uses;
};

/* --- errors --------------------------------------------------------------- */

static const char *name_of(cufftResult error)
{
    switch (error) {
    case CUFFT_ALLOC_FAILED:
        return "out of memory";
    case CUFFT_INVALID_VALUE:
        return "an argument that it refuses";
    case CUFFT_INTERNAL_ERROR:
        return "an internal error of its own";
    case CUFFT_EXEC_FAILED:
        return "a kernel of its failed";
    case CUFFT_SETUP_FAILED:
        return "it could not be started";
    case CUFFT_INVALID_SIZE:
        return "a size that it does not support";
    default:
        return "an error that it does not explain";
    }
}

static gpu_status check(const fft_device *d, cufftResult error)
{
    gpu_status status = GPU_INTERNAL;
    if (error == CUFFT_SUCCESS)
        return GPU_OK;
    if (error == CUFFT_ALLOC_FAILED)
        status = GPU_MEMORY;
    if (error == CUFFT_INVALID_SIZE || error == CUFFT_NOT_SUPPORTED)
        status = GPU_UNSUPPORTED;
    return d->setup.fail(status, "fft: cuFFT failed: %s (%d)", name_of(error),
                         (int)error);
}

#define TRY_CALL(d, function, error, ...) \
    TRY(check(d, CALL(d, function, error, __VA_ARGS__)))

/* --- plans ---------------------------------------------------------------- */

static int is_layout(const fft_layout *a, const fft_layout *b)
{
    return a->step == b->step && a->apart == b->apart && a->width == b->width;
}

static int is_for(const kept_plan *p, const fft_batch *b)
{
    const fft_batch *of = &p->of;
    return of->form == b->form && of->type == b->type && of->axes == b->axes &&
           of->n[0] == b->n[0] && of->n[1] == b->n[1] &&
           of->count == b->count && is_layout(&of->in_layout, &b->in_layout) &&
           is_layout(&of->out_layout, &b->out_layout);
}

static int64_t length_of(const fft_batch *b)
{
    return b->n[0] * b->n[1];
}

static void drop_plan(fft_device *d, int i)
{
    cufftDestroy(d->plans[i].plan);
    d->length -= length_of(&d->plans[i].of);
    d->plans[i] = d->plans[--d->count];
}

static void drop_oldest(fft_device *d)
{
    int oldest = 0;
    for (int i = 1; i < d->count; i++)
        if (d->plans[i].used < d->plans[oldest].used)
            oldest = i;
    drop_plan(d, oldest);
}

static cufftType type_of(const fft_batch *b)
{
    static const cufftType types[2][3] = {{CUFFT_C2C, CUFFT_R2C, CUFFT_C2R},
                                          {CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D}};
    return types[b->type == GPU_F64][b->form];
}

/* p has a handle. */
static gpu_status fill_plan(fft_device *d, kept_plan *p)
{
    const fft_batch *b = &p->of;
    long long n[2] = {b->n[0], b->n[1]};
    long long in[2] = {b->n[0], b->in_layout.width};
    long long out[2] = {b->n[0], b->out_layout.width};
    TRY_CALL(d, cufftSetAutoAllocation, CUFFT_SETUP_FAILED, p->plan, 0);
    TRY_CALL(d, cufftSetStream, CUFFT_SETUP_FAILED, p->plan, d->setup.stream);
    TRY_CALL(d, cufftMakePlanMany64, CUFFT_ALLOC_FAILED, p->plan, b->axes, n,
             in, b->in_layout.step, b->in_layout.apart, out, b->out_layout.step,
             b->out_layout.apart, type_of(b), b->count, &p->bytes);
    return GPU_OK;
}

static gpu_status make_plan(fft_device *d, const fft_batch *b, kept_plan **out)
{
    while (d->count == MOST_PLANS ||
           (d->count > 0 && d->length + length_of(b) > MOST_LENGTH))
        drop_oldest(d);
    kept_plan *p = &d->plans[d->count];
    *p = (kept_plan){.of = *b};
    TRY_CALL(d, cufftCreate, CUFFT_ALLOC_FAILED, &p->plan);
    gpu_status status = fill_plan(d, p);
    if (status != GPU_OK) {
        cufftDestroy(p->plan);
        return status;
    }
    d->count++;
    d->length += length_of(b);
    *out = p;
    return GPU_OK;
}

/* Of plans that are kept, cuFFT has memory that it may lack for another. */
static gpu_status take_plan(fft_device *d, const fft_batch *b, kept_plan **out)
{
    gpu_status status = GPU_OK;
    *out = NULL;
    for (int i = 0; i < d->count && !*out; i++)
        if (is_for(&d->plans[i], b))
            *out = &d->plans[i];
    if (!*out)
        status = make_plan(d, b, out);
    if (status == GPU_MEMORY && d->count > 0) {
        while (d->count > 0)
            drop_oldest(d);
        status = make_plan(d, b, out);
    }
    if (status == GPU_OK)
        (*out)->used = ++d->uses;
    return status;
}

/* --- transforms ----------------------------------------------------------- */

static cufftResult execute(fft_device *d, cufftHandle plan, const fft_batch *b)
{
    enum { FAILED = CUFFT_EXEC_FAILED };
    int way = b->is_inverse ? CUFFT_INVERSE : CUFFT_FORWARD;
    switch (type_of(b)) {
    case CUFFT_C2C:
        return CALL(d, cufftExecC2C, FAILED, plan, b->in, b->out, way);
    case CUFFT_Z2Z:
        return CALL(d, cufftExecZ2Z, FAILED, plan, b->in, b->out, way);
    case CUFFT_R2C:
        return CALL(d, cufftExecR2C, FAILED, plan, b->in, b->out);
    case CUFFT_D2Z:
        return CALL(d, cufftExecD2Z, FAILED, plan, b->in, b->out);
    case CUFFT_C2R:
        return CALL(d, cufftExecC2R, FAILED, plan, b->in, b->out);
    default:
        return CALL(d, cufftExecZ2D, FAILED, plan, b->in, b->out);
    }
}

static gpu_status transform(fft_device *d, const fft_batch *b)
{
    kept_plan *p;
    void *room = NULL;
    TRY(take_plan(d, b, &p));
    if (p->bytes > 0 &&
        d->setup.alloc(d->setup.device, p->bytes, &room) != GPU_OK)
        return d->setup.fail(GPU_MEMORY,
                             "fft: no memory for %zu MiB that cuFFT works in",
                             (p->bytes >> 20) + 1);
    gpu_status status =
        check(d, CALL(d, cufftSetWorkArea, CUFFT_EXEC_FAILED, p->plan, room));
    if (status == GPU_OK)
        status = check(d, execute(d, p->plan, b));
    if (room)
        d->setup.free(d->setup.device, room, p->bytes);
    return status;
}

/* --- the table -------------------------------------------------------------
 * The one exported symbol. */

static gpu_status open_device(const la_setup *setup, fft_device **out)
{
    fft_device *d = calloc(1, sizeof *d);
    if (!d)
        return setup->fail(GPU_MEMORY, "out of memory");
    d->setup = *setup;
    *out = d;
    return GPU_OK;
}

static void close_device(fft_device *d)
{
    while (d->count > 0)
        drop_plan(d, 0);
    free(d);
}

static const fft_table table = {
    .abi = FFT_ABI,
    .open = open_device,
    .close = close_device,
    .transform = transform,
};

__attribute__((visibility("default"))) fft_entry lumat_cuda_fft;

const fft_table *lumat_cuda_fft(int abi)
{
    return abi == FFT_ABI ? &table : NULL;
}
