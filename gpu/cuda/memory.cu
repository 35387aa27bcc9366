/* Device memory: the stream-ordered pool, the scratch block, and the way to
 * the host and back. */
#include "cuda_device.h"

/* Kernels read 16 bytes at a time where an element lies anywhere in them. */
enum { GROUP = 16 };
enum { PART = 64 << 20 }; /* bytes copied at a time */

static void trim_pool(cuda_device *d)
{
    if (gpu_cuda_wait(d) == GPU_OK)
        cudaMemPoolTrimTo(d->pool, 0);
    cudaGetLastError();
}

/* What is kept about operands makes room; trimming joins its pieces. */
static cudaError_t take(cuda_device *d, size_t bytes, void **data)
{
    *data = NULL;
    cudaError_t error = cudaMallocAsync(data, bytes, d->stream);
    if (error == cudaErrorMemoryAllocation && gpu_cuda_host->make_room(d)) {
        trim_pool(d);
        error = cudaMallocAsync(data, bytes, d->stream);
    }
    if (error != cudaSuccess)
        *data = NULL;
    return error;
}

gpu_status gpu_cuda_alloc(void *device, size_t bytes, void **data)
{
    ENTER(d, device);
    bytes = (bytes + GROUP) / GROUP * GROUP;
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
    (void)bytes;
    if (data == NULL || d->lost || cudaSetDevice(d->ordinal) != cudaSuccess)
        return;
    cudaFreeAsync(data, d->stream);
    cudaGetLastError();
}

/* Part by part, between which an interrupt is answered. Pageable memory: a
 * copy returns when the source has been read, through the driver's own staging
 * buffers, or what was copied is there. */
static gpu_status copy(cuda_device *d, void *to, const void *from, size_t n,
                       cudaMemcpyKind way)
{
    int stage = n > PART && gpu_cuda_host->begin_stage((int64_t)n);
    gpu_status status = GPU_OK;
    for (size_t at = 0; at < n && status == GPU_OK; at += PART) {
        size_t part = n - at < PART ? n - at : PART;
        status = gpu_cuda_check(d, cudaMemcpyAsync((char *)to + at,
                                                   (const char *)from + at,
                                                   part, way, d->stream));
        if (n <= PART)
            break;
        if (stage)
            gpu_cuda_host->advance((int64_t)part);
        if (status == GPU_OK && *gpu_cuda_host->interrupted)
            status = FAIL(GPU_INTERRUPTED, "interrupted");
    }
    gpu_cuda_host->end_stage(stage);
    return status;
}

gpu_status gpu_cuda_upload(void *device, void *to, const void *from, size_t n)
{
    ENTER(d, device);
    return copy(d, to, from, n, cudaMemcpyHostToDevice);
}

gpu_status gpu_cuda_download(void *device, void *to, const void *from, size_t n)
{
    ENTER(d, device);
    TRY(copy(d, to, from, n, cudaMemcpyDeviceToHost));
    return gpu_cuda_wait(d);
}

/* What the pool holds unused; 0 when it cannot be asked. */
size_t gpu_cuda_unused(void *device)
{
    cuda_device *d = (cuda_device *)device;
    uint64_t reserved = 0, used = 0;
    if (d->lost || cudaSetDevice(d->ordinal) != cudaSuccess)
        return 0;
    cudaMemPoolGetAttribute(d->pool, cudaMemPoolAttrReservedMemCurrent,
                            &reserved);
    cudaMemPoolGetAttribute(d->pool, cudaMemPoolAttrUsedMemCurrent, &used);
    cudaGetLastError();
    return reserved > used ? reserved - used : 0;
}

/* What the pool holds unused counts as free: trim or an allocation can have
 * it. */
gpu_status gpu_cuda_memory(void *device, size_t *free, size_t *total)
{
    ENTER(d, device);
    CHECK(d, cudaMemGetInfo(free, total));
    *free += gpu_cuda_unused(d);
    return GPU_OK;
}

static void drop_scratch(cuda_device *d)
{
    if (d->scratch != NULL)
        cudaFreeAsync(d->scratch, d->stream);
    d->scratch = NULL;
    d->scratch_bytes = 0;
}

void gpu_cuda_trim(void *device)
{
    cuda_device *d = (cuda_device *)device;
    if (d->lost || cudaSetDevice(d->ordinal) != cudaSuccess)
        return;
    drop_scratch(d);
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
