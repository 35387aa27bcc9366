/* How much a device is given at a time. What has been issued cannot be taken
 * back: so little enough of it is outstanding that after an interrupt the
 * device is done within a fifth of a second or so, and yet so much that it is
 * never without work. Products that take longer are cut into panels.
 *
 * Both go by a prediction, from rates below what an H200 reaches, scaled by
 * the number of multiprocessors; never by a measurement, as the cut decides
 * the order of additions in some kernels, and results have to repeat. */
#include "cuda_device.h"

#include <string.h>
#include <time.h>

static const double PANEL = 0.1;  /* seconds */
static const double AHEAD = 0.15; /* seconds that may be outstanding */
static const double MARK = 0.01;  /* seconds between two events */
static const double LAUNCH = 2e-6;
enum { GRANULE = 256 }; /* rows and columns of a panel: a tile of any kernel */

/* --- what takes how long -------------------------------------------------- */

/* Of an H200, in flops a second. A product with NaN is done a second time in
 * f64 by split16, so its rate is not what it mostly does. */
static const struct {
    const char *kernel;
    double f32, f64;
} rates[] = {
    {"naive", 1.5e12, 1e12},       {"tiled", 5e12, 3e12},
    {"padded", 5e12, 3e12},        {"register", 30e12, 15e12},
    {"simt", 40e12, 40e12},        {"split16", 80e12, 80e12},
    {"bf16", 400e12, 400e12},      {"tf32", 250e12, 250e12},
    {"dmma", 45e12, 45e12},        {"cublas", 45e12, 45e12},
    {"cublas-tf32", 250e12, 1e12}, {"cublas-bf16", 400e12, 1e12},
};
static const double SLOW = 5e12, BYTES = 1.2e12; /* any other kernel; memory */
static const double MULTIPROCESSORS = 132;
static const double FEW = 1e8; /* flops that are not worth a prediction */

static double rate_of(const cuda_device *d, const gpu_kernel *k,
                      gpu_dtype dtype)
{
    double rate = SLOW;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (strcmp(rates[i].kernel, k->name) == 0)
            rate = dtype == GPU_F64 ? rates[i].f64 : rates[i].f32;
    return rate * d->sms / MULTIPROCESSORS;
}

static double flops_of(const gpu_gemm *p)
{
    return 2 * (double)p->c.rows * (double)p->c.cols * (double)p->a.cols;
}

static double seconds_of(const cuda_device *d, const gpu_kernel *k,
                         const gpu_gemm *p, double bytes)
{
    double moving = LAUNCH + bytes / (BYTES * d->sms / MULTIPROCESSORS);
    double flops = p ? flops_of(p) : 0;
    return flops < FEW ? moving : moving + flops / rate_of(d, k, p->c.dtype);
}

/* --- panels --------------------------------------------------------------- */

/* Of counts of granules near `most`, the one whose tiles fill the last round of
 * the device best. */
static int64_t best_count(const cuda_device *d, int64_t most, int64_t across)
{
    int64_t best = most, slots = larger(d->sms / 2, 1);
    double best_share = 0;
    for (int64_t n = most; n > 0 && n >= most * 3 / 4; n--) {
        int64_t tiles = n * across;
        double share = (double)tiles / (double)(ceil_div(tiles, slots) * slots);
        if (share > best_share) {
            best = n;
            best_share = share;
        }
    }
    return best;
}

/* Granules of the longer side; and of the other where a strip of one granule
 * is too much still. */
static void cut(const cuda_device *d, double seconds, int64_t *longer,
                int64_t *shorter)
{
    int64_t along = ceil_div(*longer, GRANULE);
    int64_t across = ceil_div(*shorter, GRANULE);
    double granule = seconds / ((double)along * (double)across);
    int64_t fit = (int64_t)(PANEL / granule);
    if (fit >= across) {
        *longer = best_count(d, fit / across, across) * GRANULE;
        return;
    }
    *longer = GRANULE;
    *shorter = larger(fit, 1) * GRANULE;
}

void gpu_cuda_panel(void *device, const gpu_kernel *k, const gpu_gemm *p,
                    int64_t *rows, int64_t *cols)
{
    const cuda_device *d = (cuda_device *)device;
    double flops = flops_of(p);
    double seconds = flops < FEW ? 0 : flops / rate_of(d, k, p->c.dtype);
    if (seconds < 1.5 * PANEL)
        return;
    if (*rows >= *cols)
        cut(d, seconds, rows, cols);
    else
        cut(d, seconds, cols, rows);
}

/* --- waiting -------------------------------------------------------------- */

/* Sleeps a little of what it has waited; at first not at all, as most waits
 * are short and what is timed should not grow. */
static void rest(double waited)
{
    if (waited < 5e-3)
        return;
    double seconds = waited / 50 < 1e-3 ? waited / 50 : 1e-3;
    struct timespec t = {0, (long)(seconds * 1e9)};
    nanosleep(&t, NULL);
}

/* Asks until it is so, or an interrupt comes; meanwhile works, where there is
 * something to do. */
static gpu_status wait_until(cuda_device *d, cudaError_t (*ask)(void *of),
                             void *of, gpu_cuda_work *work)
{
    cudaError_t answer;
    double start = 0;
    while ((answer = ask(of)) == cudaErrorNotReady) {
        int did = 0;
        cudaGetLastError();
        if (*gpu_cuda_host->interrupted) {
            d->is_interrupted = 1;
            return FAIL(GPU_INTERRUPTED, "interrupted");
        }
        if (work)
            TRY(work(d, &did));
        if (did) {
            start = 0;
            continue;
        }
        if (start == 0)
            start = gpu_now();
        rest(gpu_now() - start);
    }
    return gpu_cuda_check(d, answer);
}

static cudaError_t ask_stream(void *stream)
{
    return cudaStreamQuery((cudaStream_t)stream);
}

static cudaError_t ask_event(void *event)
{
    return cudaEventQuery((cudaEvent_t)event);
}

gpu_status gpu_cuda_wait(cuda_device *d)
{
    if (d->waits_small)
        TRY(gpu_cuda_start_small(d));
    TRY(wait_until(d, ask_stream, d->stream, NULL));
    d->is_interrupted = 0;
    d->pace.count = 0;
    d->pace.issued = d->pace.outstanding = 0;
    return GPU_OK;
}

gpu_status gpu_cuda_wait_for(cuda_device *d, cudaEvent_t event)
{
    return wait_until(d, ask_event, event, NULL);
}

gpu_status gpu_cuda_work_until(cuda_device *d, cudaEvent_t event,
                               gpu_cuda_work *work)
{
    return wait_until(d, ask_event, event, work);
}

/* --- numbers ---------------------------------------------------------------
 * Kernels write them into pinned memory, where the host watches them arrive. */

/* Stands where none has arrived: a number that hardly any result is, and where
 * one is, the stream's end tells. */
static const uint64_t missing = 0x5eed0001;
enum { POLLS = 1 << 14 }; /* about ten microseconds */

/* What nobody waited for to the end may write into the slot yet, where its
 * number would be taken for the next one's. A GPU has little work ahead of it:
 * that is not interrupted once more. */
void gpu_cuda_empty_slot(cuda_device *d, int numbers)
{
    if (d->is_interrupted && cudaStreamSynchronize(d->stream) == cudaSuccess)
        d->is_interrupted = 0;
    for (int n = 0; n < numbers; n++)
        ((volatile uint64_t *)d->slot)[n] = missing;
}

gpu_status gpu_cuda_await_number(cuda_device *d, int number)
{
    const volatile uint64_t *slot = (const volatile uint64_t *)d->slot + number;
    for (int polls = 0; polls < POLLS; polls++)
        if (*slot != missing)
            return GPU_OK;
    return gpu_cuda_wait(d);
}

/* --- pace ----------------------------------------------------------------- */

/* An event behind what was issued since the last one. */
static cudaError_t mark(cuda_device *d)
{
    cuda_pace *p = &d->pace;
    int slot = (p->first + p->count) % MOST_MARKS;
    if (p->event[slot] == NULL) {
        cudaError_t error =
            cudaEventCreateWithFlags(&p->event[slot], cudaEventDisableTiming);
        if (error != cudaSuccess)
            return error;
    }
    p->seconds[slot] = p->issued;
    p->outstanding += p->issued;
    p->issued = 0;
    p->count++;
    return cudaEventRecord(p->event[slot], d->stream);
}

/* The oldest mark is passed. */
static gpu_status pass_mark(cuda_device *d)
{
    cuda_pace *p = &d->pace;
    TRY(gpu_cuda_wait_for(d, p->event[p->first]));
    p->outstanding -= p->seconds[p->first];
    p->first = (p->first + 1) % MOST_MARKS;
    p->count--;
    return GPU_OK;
}

/* What goes wrong here and ends the device's use, the next call tells. */
void gpu_cuda_pace(void *device, const gpu_kernel *k, const gpu_gemm *p,
                   double bytes)
{
    cuda_device *d = (cuda_device *)device;
    d->pace.issued += seconds_of(d, k, p, bytes);
    if (d->pace.issued < MARK || d->pace.count == MOST_MARKS || d->lost)
        return;
    if (gpu_cuda_enter(d) != GPU_OK || mark(d) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    while (d->pace.count > 0 &&
           (d->pace.outstanding > AHEAD || d->pace.count == MOST_MARKS))
        if (pass_mark(d) != GPU_OK)
            return;
}

gpu_status gpu_cuda_go_on(cuda_device *d, double bytes)
{
    gpu_cuda_pace(d, NULL, NULL, bytes);
    if (*gpu_cuda_host->interrupted)
        return FAIL(GPU_INTERRUPTED, "interrupted");
    return GPU_OK;
}

void gpu_cuda_forget_pace(cuda_device *d)
{
    for (int i = 0; i < MOST_MARKS; i++)
        if (d->pace.event[i] != NULL)
            cudaEventDestroy(d->pace.event[i]);
}
