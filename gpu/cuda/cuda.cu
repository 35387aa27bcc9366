/* The CUDA backend: finding and opening devices, their memory, timing, what
 * they reach at most, the table of entries, and the one place where CUDA errors
 * become statuses. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "map_job.h"
#include "factor.h"
#include "fft.h"
#include "lanes.h"
#include "la.h"

/* --- memory -----------------------------------------------------------------
 * The stream-ordered pool and the scratch block. */

/* Kernels read 16 bytes at a time where an element lies anywhere in them. */
enum { GROUP = 16 };

/* For what tells no status: takes the error from CUDA, so that no later call
 * is blamed for it. */
static int is_fine(cudaError_t error)
{
    if (error != cudaSuccess)
        cudaGetLastError();
    return error == cudaSuccess;
}

static gpu_status refuse_lost(const cuda_device *d)
{
    if (!d->lost)
        return GPU_OK;
    return FAIL(GPU_LOST,
                "cuda:%d failed earlier and is lost; at the prompt "
                ":restart uses it again",
                d->ordinal);
}

static int is_usable(cuda_device *d)
{
    return !d->lost && is_fine(cudaSetDevice(d->ordinal));
}

/* Behind all that reads it. */
static void give_back(cuda_device *d, void *data)
{
    is_usable(d); /* or not: a block goes by its stream */
    if (!gpu_cuda_keep_for_small(d, data))
        is_fine(cudaFreeAsync(data, d->stream));
}

static void drop_blocks(cuda_device *d, kept_blocks *kept)
{
    while (kept->count > 0)
        give_back(d, kept->data[--kept->count]);
}

static void drop_all_blocks(cuda_device *d)
{
    for (int i = 0; i < KEPT_SIZES; i++)
        drop_blocks(d, &d->kept[i]);
}

static void trim_pool(cuda_device *d)
{
    if (gpu_cuda_wait(d) == GPU_OK)
        is_fine(cudaMemPoolTrimTo(d->pool, 0));
}

/* What is kept about operands makes room; trimming joins its pieces. */
static cudaError_t take(cuda_device *d, size_t bytes, void **data)
{
    *data = NULL;
    cudaError_t error = cudaMallocAsync(data, bytes, d->stream);
    if (error == cudaErrorMemoryAllocation && gpu_cuda_host->make_room(d)) {
        drop_all_blocks(d);
        trim_pool(d);
        error = cudaMallocAsync(data, bytes, d->stream);
    }
    if (error != cudaSuccess)
        *data = NULL;
    return error;
}

/* All work is done in the stream's order, so a block may be used again at
 * once. */
static kept_blocks *kept_of(cuda_device *d, size_t bytes)
{
    return &d->kept[bytes / GROUP % KEPT_SIZES];
}

static size_t rounded(size_t bytes)
{
    return (bytes + GROUP) / GROUP * GROUP;
}

gpu_status gpu_cuda_alloc(void *device, size_t bytes, void **data)
{
    cuda_device *d = (cuda_device *)device;
    TRY(refuse_lost(d));
    bytes = rounded(bytes);
    kept_blocks *kept = kept_of(d, bytes);
    if (kept->count > 0 && kept->bytes == bytes) {
        *data = kept->data[--kept->count];
        return GPU_OK;
    }
    CHECK(d, cudaSetDevice(d->ordinal)); /* what waits may go on waiting */
    cudaError_t error = take(d, bytes, data);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return GPU_MEMORY;
    }
    return gpu_cuda_check(d, error);
}

void gpu_cuda_free(void *device, void *data, size_t bytes)
{
    cuda_device *d = (cuda_device *)device;
    bytes = rounded(bytes);
    if (data == NULL || d->lost)
        return;
    kept_blocks *kept = kept_of(d, bytes);
    if (bytes <= MOST_KEPT && kept->bytes != bytes) {
        drop_blocks(d, kept);
        kept->bytes = bytes;
    }
    if (bytes <= MOST_KEPT &&
        (size_t)kept->count < KEPT_BYTES / larger(bytes, LEAST_BLOCK))
        kept->data[kept->count++] = data;
    else
        give_back(d, data);
}

static void *slot(void *device)
{
    return ((cuda_device *)device)->slot;
}

/* What the pool holds unused; 0 when it cannot be asked. */
static size_t unused(void *device)
{
    cuda_device *d = (cuda_device *)device;
    uint64_t reserved = 0, used = 0;
    if (!is_usable(d) ||
        !is_fine(cudaMemPoolGetAttribute(
            d->pool, cudaMemPoolAttrReservedMemCurrent, &reserved)) ||
        !is_fine(cudaMemPoolGetAttribute(d->pool, cudaMemPoolAttrUsedMemCurrent,
                                         &used)))
        return 0;
    return reserved > used ? reserved - used : 0;
}

/* What the pool holds unused counts as free: trim or an allocation can have
 * it. */
static gpu_status memory(void *device, size_t *free, size_t *total)
{
    ENTER(d, device);
    CHECK(d, cudaMemGetInfo(free, total));
    *free += unused(d);
    return GPU_OK;
}

static void drop_scratch(cuda_device *d)
{
    if (d->scratch != NULL)
        is_fine(cudaFreeAsync(d->scratch, d->stream));
    d->scratch = NULL;
    d->scratch_bytes = 0;
}

static void trim(void *device)
{
    cuda_device *d = (cuda_device *)device;
    if (!is_usable(d))
        return;
    drop_scratch(d);
    drop_all_blocks(d);
    trim_pool(d);
}

/* The old block goes first: the stream's order keeps it alive for the work
 * already issued, and the pool can join it with its neighbours. */
gpu_status gpu_cuda_scratch(cuda_device *d, size_t bytes, void **data)
{
    if (bytes > d->scratch_bytes) {
        size_t rounded = (bytes + (1 << 20)) >> 20 << 20;
        drop_scratch(d);
        CHECK(d, take(d, rounded, &d->scratch));
        d->scratch_bytes = rounded;
    }
    *data = d->scratch;
    return GPU_OK;
}

/* --- peak -------------------------------------------------------------------
 * What the device reaches: fused multiply-adds in registers, and the faster
 * of a plain read and a copy. Each measurement is a few milliseconds. */

enum { THREADS = 256, BLOCKS_PER_SM = 8, CHAINS = 8, UNROLL = 16 };
enum { FIRST_ROUNDS = 64, REPEATS = 5, READS = 8 };

static const double aim_seconds = 4e-3;
static const size_t most_bytes = (size_t)512 << 20;

/* Eight independent chains a thread hide the latency of the multiply-add;
 * x stays bounded because a < 1. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    fma_kernel(T *out, T a, T b, int rounds)
{
    T x[CHAINS];
    for (int c = 0; c < CHAINS; c++)
        x[c] = (T)(threadIdx.x + c);
    for (int n = 0; n < rounds; n++)
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int c = 0; c < CHAINS; c++)
                x[c] = x[c] * a + b;
    T sum = 0;
    for (int c = 0; c < CHAINS; c++)
        sum += x[c];
    if (sum == (T)-1) /* never: keeps the loop */
        *out = sum;
}

/* Eight 16-byte loads in flight a thread. */
__global__ void __launch_bounds__(THREADS)
    read_kernel(const uint4 *data, int64_t n, unsigned *out)
{
    int64_t step = (int64_t)gridDim.x * THREADS;
    unsigned sum = 0;
    for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
         i + (READS - 1) * step < n; i += READS * step) {
        uint4 v[READS];
#pragma unroll
        for (int k = 0; k < READS; k++)
            v[k] = data[i + k * step];
#pragma unroll
        for (int k = 0; k < READS; k++)
            sum += v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    if (sum == 0x9e3779b9u) /* almost never: keeps the loop */
        *out = sum;
}

static gpu_status begin(cuda_device *d)
{
    return gpu_cuda_check(d, cudaEventRecord(d->start, d->stream));
}

static gpu_status end(cuda_device *d, double *seconds)
{
    float milliseconds = 0;
    LAUNCHED(d);
    CHECK(d, cudaEventRecord(d->stop, d->stream));
    CHECK(d, cudaEventSynchronize(d->stop));
    CHECK(d, cudaEventElapsedTime(&milliseconds, d->start, d->stop));
    *seconds = milliseconds * 1e-3;
    return GPU_OK;
}

template <class T>
static gpu_status time_fma(cuda_device *d, T *data, int rounds, double *seconds)
{
    TRY(begin(d));
    fma_kernel<T><<<d->sms * BLOCKS_PER_SM, THREADS, 0, d->stream>>>(
        data, (T)0.999, (T)0.5, rounds);
    return end(d, seconds);
}

/* A short run tells how long the real one must be. */
template <class T>
static gpu_status measure_fma(cuda_device *d, T *data, double *flops)
{
    double seconds, best = 0;
    int rounds = FIRST_ROUNDS;
    TRY(time_fma<T>(d, data, rounds, &seconds));
    TRY(time_fma<T>(d, data, rounds, &seconds));
    double factor = aim_seconds / (seconds > 1e-6 ? seconds : 1e-6);
    if (factor > 1)
        rounds = (int)(rounds * (factor < 4096 ? factor : 4096));
    for (int n = 0; n < REPEATS; n++) {
        TRY(time_fma<T>(d, data, rounds, &seconds));
        int64_t steps = (int64_t)CHAINS * UNROLL * rounds;
        int64_t threads = (int64_t)THREADS * BLOCKS_PER_SM * d->sms;
        double rate = 2 * (double)steps * (double)threads / seconds;
        best = rate > best ? rate : best;
    }
    *flops = best;
    return GPU_OK;
}

static gpu_status measure_bytes(cuda_device *d, char *data, size_t bytes,
                                double *rate)
{
    int64_t n = (int64_t)(bytes / sizeof(uint4));
    int64_t step = (int64_t)d->sms * BLOCKS_PER_SM * THREADS * READS;
    double seconds, best = 0;
    n = larger(n / step, 1) * step;
    n = smaller(n, (int64_t)(bytes / sizeof(uint4)));
    for (int r = 0; r < REPEATS; r++) {
        TRY(begin(d));
        read_kernel<<<d->sms * BLOCKS_PER_SM, THREADS, 0, d->stream>>>(
            (const uint4 *)data, n, d->tickets);
        TRY(end(d, &seconds));
        if (r > 0 && (double)n * sizeof(uint4) / seconds > best)
            best = (double)n * sizeof(uint4) / seconds;
        TRY(begin(d));
        CHECK(d, cudaMemcpyAsync(data, data + bytes / 2, bytes / 2,
                                 cudaMemcpyDeviceToDevice, d->stream));
        TRY(end(d, &seconds));
        if (r > 0 && (double)bytes / seconds > best)
            best = (double)bytes / seconds;
    }
    *rate = best;
    return GPU_OK;
}

/* A block far larger than the L2 cache, or as much as there is. */
static gpu_status find_block(cuda_device *d, void **data, size_t *bytes)
{
    for (*bytes = most_bytes; *bytes >= (size_t)1 << 20; *bytes /= 2) {
        gpu_status status = gpu_cuda_alloc(d, *bytes, data);
        if (status != GPU_MEMORY)
            return status;
    }
    return FAIL(GPU_MEMORY, "cuda:%d: no room to measure its peak", d->ordinal);
}

static gpu_status peak(void *device, gpu_peak *out)
{
    ENTER(d, device);
    void *data;
    size_t bytes;
    TRY(find_block(d, &data, &bytes));
    gpu_status status =
        gpu_cuda_check(d, cudaMemsetAsync(data, 0x5a, bytes, d->stream));
    if (status == GPU_OK)
        status = measure_bytes(d, (char *)data, bytes, &out->bytes);
    if (status == GPU_OK)
        status = measure_fma<float>(d, (float *)data, &out->f32_flops);
    if (status == GPU_OK)
        status = measure_fma<double>(d, (double *)data, &out->f64_flops);
    gpu_cuda_free(d, data, bytes);
    return status;
}

/* --- devices ----------------------------------------------------------------
 * Finding and opening them, timing, errors, and the table. */

const gpu_host *gpu_cuda_host;

enum { SLOT_BYTES = 4096, TICKETS = 256, OLDEST = 80 };

/* The first group says so in CUDA 13.0's header; the last lines are hardware
 * and unknown failures, treated alike. */
int gpu_cuda_is_sticky(int error)
{
    switch (error) {
    case 226: /* contained */
    case 700: /* illegal address */
    case 702: /* launch timeout */
    case 710: /* assert */
    case 714: /* hardware stack error */
    case 715: /* illegal instruction */
    case 716: /* misaligned address */
    case 717: /* invalid address space */
    case 718: /* invalid pc */
    case 719: /* launch failure */
    case 721: /* tensor memory leak */
    case 810: /* MPS client terminated */
    case 911: /* external device */
    case 214: /* uncorrectable ECC */
    case 220: /* uncorrectable NVLink */
    case 999: /* unknown */
        return 1;
    default:
        return 0;
    }
}

gpu_status gpu_cuda_check(cuda_device *d, cudaError_t error)
{
    if (error == cudaSuccess)
        return GPU_OK;
    cudaGetLastError();
    if (gpu_cuda_is_sticky(error)) {
        d->lost = 1;
        return FAIL(GPU_LOST,
                    "cuda:%d failed: %s (%s); its matrices are lost, and at "
                    "the prompt :restart uses it again",
                    d->ordinal, cudaGetErrorString(error),
                    cudaGetErrorName(error));
    }
    if (error == cudaErrorMemoryAllocation)
        return FAIL(GPU_MEMORY, "cuda:%d: out of memory", d->ordinal);
    return FAIL(GPU_INTERNAL, "cuda:%d: %s (%s)", d->ordinal,
                cudaGetErrorString(error), cudaGetErrorName(error));
}

gpu_status gpu_cuda_enter(cuda_device *d)
{
    TRY(refuse_lost(d));
    d->is_answering = 0;
    return d->waits_small ? gpu_cuda_start_small(d)
                          : gpu_cuda_check(d, cudaSetDevice(d->ordinal));
}

/* Does the file of one line begin so? */
static int begins(const char *device, const char *file, const char *start)
{
    char path[512], line[32] = "";
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", device, file);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    int same =
        fgets(line, sizeof line, f) && strncmp(line, start, strlen(start)) == 0;
    fclose(f);
    return same;
}

/* Is there a display or 3D controller of NVIDIA's, with a driver or not? */
static int has_hardware(void)
{
    int found = 0;
    DIR *all = opendir("/sys/bus/pci/devices");
    while (all && !found) {
        const struct dirent *e = readdir(all);
        if (!e)
            break;
        found = begins(e->d_name, "vendor", "0x10de") &&
                begins(e->d_name, "class", "0x03");
    }
    if (all)
        closedir(all);
    return found;
}

/* Why there is no device, and whether one is here all the same. CUDA says that
 * its driver is too old where there is none, and that none is detected where
 * one is hidden. */
static int explain(cudaError_t error, char *why, size_t size)
{
    int driver = 0, is_here = 1;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    cudaDriverGetVersion(&driver);
    cudaGetLastError();
    if (driver == 0) {
        is_here = has_hardware();
        snprintf(why, size, "%s",
                 is_here ? "the NVIDIA GPU here has no driver"
                         : "no NVIDIA GPU here");
    } else if (error == cudaErrorInsufficientDriver) {
        snprintf(why, size,
                 "the driver here is for CUDA %d.%d, this build needs %d.%d",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                 CUDART_VERSION % 1000 / 10);
    } else if (error != cudaSuccess && error != cudaErrorNoDevice) {
        snprintf(why, size, "%s", cudaGetErrorString(error));
    } else {
        is_here = 0;
        snprintf(why, size, "no NVIDIA GPU here%s%s%s",
                 visible ? " that CUDA_VISIBLE_DEVICES (\"" : "",
                 visible ? visible : "", visible ? "\") leaves" : "");
    }
    return is_here;
}

static int probe(char *why, size_t size)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0)
        return count;
    return explain(error, why, size) ? -1 : 0;
}

__global__ void touch()
{
}

/* Is there code for this GPU in here? */
static gpu_status check_image(cuda_device *d, const char *name)
{
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, touch);
    if (error == cudaErrorNoKernelImageForDevice ||
        error == cudaErrorInvalidDeviceFunction) {
        cudaGetLastError();
        return FAIL(GPU_DEVICE,
                    "cuda:%d: %s has compute capability %d.%d, for which "
                    "this build has no code (%d.%d is the oldest)",
                    d->ordinal, name, d->capability / 10, d->capability % 10,
                    OLDEST / 10, OLDEST % 10);
    }
    return gpu_cuda_check(d, error);
}

static gpu_status describe_device(cuda_device *d)
{
    cudaDeviceProp properties;
    int driver = 0;
    CHECK(d, cudaGetDeviceProperties(&properties, d->ordinal));
    CHECK(d, cudaDriverGetVersion(&driver));
    d->sms = properties.multiProcessorCount;
    d->capability = properties.major * 10 + properties.minor;
    snprintf(d->description, sizeof d->description,
             "%s, %.1f GiB, %d multiprocessors, sm_%d, driver for CUDA %d.%d",
             properties.name, (double)properties.totalGlobalMem / (1 << 30),
             d->sms, d->capability, driver / 1000, driver % 1000 / 10);
    return check_image(d, properties.name);
}

/* Freed memory stays in the pool, so that an allocation costs under a
 * microsecond and never waits for the device; trim gives it back. */
static gpu_status prepare_memory(cuda_device *d)
{
    uint64_t keep = UINT64_MAX;
    CHECK(d, cudaDeviceGetDefaultMemPool(&d->pool, d->ordinal));
    CHECK(d, cudaMemPoolSetAttribute(d->pool, cudaMemPoolAttrReleaseThreshold,
                                     &keep));
    CHECK(d, cudaMallocHost((void **)&d->slot, SLOT_BYTES));
    CHECK(d, cudaMallocAsync((void **)&d->tickets, TICKETS * sizeof(unsigned),
                             d->stream));
    return gpu_cuda_check(
        d,
        cudaMemsetAsync(d->tickets, 0, TICKETS * sizeof(unsigned), d->stream));
}

static gpu_status prepare(cuda_device *d)
{
    CHECK(d, cudaSetDevice(d->ordinal));
    TRY(describe_device(d));
    CHECK(d, cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking));
    CHECK(d, cudaEventCreate(&d->start));
    CHECK(d, cudaEventCreate(&d->stop));
    TRY(prepare_memory(d));
    TRY(gpu_cuda_prepare_sort(d));
    return gpu_cuda_wait(d);
}

static void close_device(void *device)
{
    cuda_device *d = (cuda_device *)device;
    if (is_usable(d)) {
        if (d->stream) {
            if (d->waits_small)
                gpu_cuda_start_small(d);
            cudaStreamSynchronize(d->stream);
            gpu_cuda_la_close(d);
            gpu_cuda_solver_close(d);
            gpu_cuda_fft_close(d);
            gpu_cuda_close_lanes(d);
            drop_all_blocks(d);
        }
        if (d->scratch)
            cudaFree(d->scratch);
        if (d->tickets)
            cudaFree(d->tickets);
        cudaFreeHost(d->slot);
        gpu_cuda_end_staging(d);
        gpu_cuda_forget_small(d);
        gpu_cuda_forget_pace(d);
        if (d->start)
            cudaEventDestroy(d->start);
        if (d->stop)
            cudaEventDestroy(d->stop);
        if (d->stream)
            cudaStreamDestroy(d->stream);
        cudaGetLastError();
    }
    free(d);
}

static gpu_status open_device(int index, void **device)
{
    cuda_device *d = (cuda_device *)calloc(1, sizeof *d);
    if (d == NULL)
        return FAIL(GPU_MEMORY, "cuda:%d: no host memory", index);
    d->ordinal = index;
    gpu_status status = prepare(d);
    if (status != GPU_OK) {
        close_device(d);
        return status;
    }
    *device = d;
    return GPU_OK;
}

static const char *describe(void *device)
{
    return ((cuda_device *)device)->description;
}

static int capability(void *device)
{
    return ((cuda_device *)device)->capability;
}

static int is_lost(void *device)
{
    return ((cuda_device *)device)->lost;
}

static gpu_status map(void *device, const gpu_program *p, const gpu_view *in,
                      const gpu_view *out)
{
    gpu_status status = gpu_cuda_put_off((cuda_device *)device, p, in, out);
    return status == GPU_UNSUPPORTED ? gpu_cuda_map(device, p, in, out)
                                     : status;
}

/* A number may go straight to the host: see gpu_cuda_download. */
static gpu_status reduce(void *device, const gpu_program *p, const gpu_view *in,
                         int axis, const gpu_view *out)
{
    cuda_device *d = (cuda_device *)device;
    int is_answer = out->data == d->slot && out->rows * out->cols == 1;
    if (is_answer)
        gpu_cuda_empty_slot(d, 1);
    TRY(gpu_cuda_reduce(d, p, in, axis, out));
    d->is_answering = is_answer;
    return GPU_OK;
}

static gpu_status sync_device(void *device)
{
    ENTER(d, device);
    return gpu_cuda_wait(d);
}

static gpu_status timer_start(void *device)
{
    ENTER(d, device);
    return gpu_cuda_check(d, cudaEventRecord(d->start, d->stream));
}

static gpu_status timer_stop(void *device, double *seconds)
{
    ENTER(d, device);
    float milliseconds = 0;
    CHECK(d, cudaEventRecord(d->stop, d->stream));
    TRY(gpu_cuda_wait_for(d, d->stop));
    CHECK(d, cudaEventElapsedTime(&milliseconds, d->start, d->stop));
    *seconds = milliseconds * 1e-3;
    return GPU_OK;
}

static const gpu_backend backend = {
    .abi = GPU_BACKEND_ABI,
    .name = "cuda",
    .probe = probe,
    .open = open_device,
    .close = close_device,
    .describe = describe,
    .capability = capability,
    .is_lost = is_lost,
    .alloc = gpu_cuda_alloc,
    .free = gpu_cuda_free,
    .upload = gpu_cuda_upload,
    .download = gpu_cuda_download,
    .memory = memory,
    .trim = trim,
    .unused = unused,
    .slot = slot,
    .bring = gpu_cuda_bring,
    .fetch = gpu_cuda_fetch,
    .deliver = gpu_cuda_deliver,
    .mark = gpu_cuda_mark,
    .follow = gpu_cuda_follow,
    .sync = sync_device,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
    .peak = peak,
    .draws = 1,
    .map = map,
    .joins = gpu_cuda_joins,
    .reduce = reduce,
    .gather = gpu_cuda_gather,
    .scatter = gpu_cuda_scatter,
    .pick = gpu_cuda_pick,
    .pick_checks = 1,
    .compress = gpu_cuda_compress,
    .expand = gpu_cuda_expand,
    .scan = gpu_cuda_scan,
    .sort = gpu_cuda_sort,
    .select = gpu_cuda_select,
    .first = gpu_cuda_first,
    .search = gpu_cuda_search,
    .runs = gpu_cuda_runs,
    .group = gpu_cuda_group,
    .fold = gpu_cuda_fold,
    .windows = gpu_cuda_windows,
    .random = gpu_cuda_random,
    .survey = gpu_cuda_survey,
    .bins = gpu_cuda_bins,
    .blocks = gpu_cuda_blocks,
    .kernels = gpu_cuda_kernels,
    .choose_matmul = gpu_cuda_choose_matmul,
    .choose_dot = gpu_cuda_choose_dot,
    .panel = gpu_cuda_panel,
    .pace = gpu_cuda_pace,
    .sparse_survey = gpu_cuda_sparse_survey,
    .choose_sparse = gpu_cuda_choose_sparse,
    .sparse_product = gpu_cuda_sparse_product,
    .sparse_combine = gpu_cuda_sparse_combine,
    .sparse_sample = gpu_cuda_sparse_sample,
    .sparse_reduce = gpu_cuda_sparse_reduce,
    .sparse_lookup = gpu_cuda_sparse_lookup,
    .sparse_along = gpu_cuda_sparse_along,
    .sparse_arrange = gpu_cuda_sparse_arrange,
    .sparse_places = gpu_cuda_sparse_places,
    .sparse_build = gpu_cuda_sparse_build,
    .sparse_transpose = gpu_cuda_sparse_transpose,
    .sparse_from_dense = gpu_cuda_sparse_from_dense,
    .sparse_keep = gpu_cuda_sparse_keep,
    .sparse_to_dense = gpu_cuda_sparse_to_dense,
    .solve = gpu_cuda_solve,
    .determinant = gpu_cuda_determinant,
    .inverse_norm = gpu_cuda_inverse_norm,
    .choose_factor = gpu_cuda_choose_factor,
    .factor = gpu_cuda_factor,
    .complex_map = gpu_cuda_complex_map,
    .fft = gpu_cuda_fft,
    .convolve = gpu_cuda_convolve,
    .complex_pairs = gpu_cuda_complex_pairs,
};

extern "C" __attribute__((visibility("default"))) const gpu_backend *
lumat_backend(const gpu_host *host)
{
    if (host->abi != GPU_BACKEND_ABI)
        return NULL;
    gpu_cuda_host = host;
    gpu_cuda_take_faults(host);
    return &backend;
}
