/* The CUDA backend's table: finding and opening devices, timing, and the one
 * place where CUDA errors become statuses. */
#include "cuda_device.h"
#include "la.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const gpu_host *gpu_cuda_host;

enum { SLOT_BYTES = 4096, TICKETS = 256, OLDEST = 80 };

/* Errors after which the process's context is of no use any more. The first
 * group says so in CUDA 13.0's header; the last line is hardware and unknown
 * failures, treated alike. */
static int is_sticky(int error)
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
    if (is_sticky(error)) {
        d->lost = 1;
        return FAIL(GPU_LOST, "cuda:%d failed: %s (%s)", d->ordinal,
                    cudaGetErrorString(error), cudaGetErrorName(error));
    }
    if (error == cudaErrorMemoryAllocation)
        return FAIL(GPU_MEMORY, "cuda:%d: out of memory", d->ordinal);
    return FAIL(GPU_INTERNAL, "cuda:%d: %s (%s)", d->ordinal,
                cudaGetErrorString(error), cudaGetErrorName(error));
}

gpu_status gpu_cuda_enter(cuda_device *d)
{
    if (d->lost)
        return FAIL(GPU_LOST, "cuda:%d failed earlier and is lost", d->ordinal);
    return gpu_cuda_check(d, cudaSetDevice(d->ordinal));
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

/* Why there is no device. CUDA says that its driver is too old where there is
 * none, and that none is detected where one is hidden. */
static void explain(cudaError_t error, char *why, size_t size)
{
    int driver = 0;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    cudaDriverGetVersion(&driver);
    cudaGetLastError();
    if (driver == 0)
        snprintf(why, size, "%s",
                 has_hardware() ? "the NVIDIA GPU here has no driver"
                                : "no NVIDIA GPU here");
    else if (error == cudaErrorInsufficientDriver)
        snprintf(why, size,
                 "the driver here is for CUDA %d.%d, this build needs %d.%d",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                 CUDART_VERSION % 1000 / 10);
    else if (error != cudaSuccess && error != cudaErrorNoDevice)
        snprintf(why, size, "%s", cudaGetErrorString(error));
    else if (visible)
        snprintf(why, size,
                 "no NVIDIA GPU here that CUDA_VISIBLE_DEVICES (\"%s\") leaves",
                 visible);
    else
        snprintf(why, size, "no NVIDIA GPU here");
}

static int probe(char *why, size_t size)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0)
        return count;
    explain(error, why, size);
    return 0;
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
    return gpu_cuda_wait(d);
}

static void close_device(void *device)
{
    cuda_device *d = (cuda_device *)device;
    if (!d->lost && cudaSetDevice(d->ordinal) == cudaSuccess) {
        if (d->stream) {
            cudaStreamSynchronize(d->stream);
            gpu_cuda_la_close(d);
        }
        if (d->scratch)
            cudaFree(d->scratch);
        if (d->tickets)
            cudaFree(d->tickets);
        cudaFreeHost(d->slot);
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
    .memory = gpu_cuda_memory,
    .trim = gpu_cuda_trim,
    .unused = gpu_cuda_unused,
    .sync = sync_device,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
    .peak = gpu_cuda_peak,
    .map = gpu_cuda_map,
    .reduce = gpu_cuda_reduce,
    .gather = gpu_cuda_gather,
    .scatter = gpu_cuda_scatter,
    .compress = gpu_cuda_compress,
    .expand = gpu_cuda_expand,
    .scan = gpu_cuda_scan,
    .sort = gpu_cuda_sort,
    .random = gpu_cuda_random,
    .survey = gpu_cuda_survey,
    .bins = gpu_cuda_bins,
    .blocks = gpu_cuda_blocks,
    .kernels = gpu_cuda_kernels,
    .choose_matmul = gpu_cuda_choose_matmul,
    .choose_dot = gpu_cuda_choose_dot,
    .panel = gpu_cuda_panel,
    .pace = gpu_cuda_pace,
    .sparse_product = gpu_cuda_sparse_product,
    .solve = NULL,
    .determinant = NULL,
    .inverse_norm = NULL,
};

extern "C" __attribute__((visibility("default"))) const gpu_backend *
lumat_backend(const gpu_host *host)
{
    if (host->abi != GPU_BACKEND_ABI)
        return NULL;
    gpu_cuda_host = host;
    return &backend;
}
