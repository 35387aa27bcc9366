/* What the device reaches: fused multiply-adds in registers, and the faster
 * of a plain read and a copy. Each measurement is a few milliseconds. */
#include "cuda_device.h"

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

gpu_status gpu_cuda_peak(void *device, gpu_peak *out)
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
