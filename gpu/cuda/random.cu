/* Random fills: Philox4x32-10 indexed by element, the same bits as on the
 * CPU. Source: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy
 * as 1, 2, 3, 2011; the generator itself is Random123's.
 *
 * Element e (row-major) takes 32 bits, or 64, of the block of four words that
 * it shares with its neighbours. Sums and products that must not differ from
 * the CPU's are kept apart from one another by the _rn intrinsics, which are
 * never fused. Limited by bytes for uniforms, by f64 maths for normals. */
#include "cuda_device.h"

#include <Random123/philox.h>

enum { THREADS = 256, BLOCKS_PER_SM = 16 };

typedef struct random_job {
    gpu_random r;
    gpu_view to;
    int64_t size;
} random_job;

__device__ __forceinline__ philox4x32_ctr_t words(const gpu_random &r,
                                                  uint64_t block)
{
    philox4x32_ctr_t counter = {{(uint32_t)block, (uint32_t)(block >> 32),
                                 (uint32_t)r.call, (uint32_t)(r.call >> 32)}};
    philox4x32_key_t key = {{(uint32_t)r.seed, (uint32_t)(r.seed >> 32)}};
    return philox4x32(counter, key);
}

__device__ __forceinline__ uint64_t word(const philox4x32_ctr_t &c, int half)
{
    return half ? c.v[2] | (uint64_t)c.v[3] << 32
                : c.v[0] | (uint64_t)c.v[1] << 32;
}

__device__ __forceinline__ float scale(float low, float high, float u)
{
    float x = __fadd_rn(low, __fmul_rn(__fsub_rn(high, low), u));
    return low < high && x >= high ? nextafterf(high, low) : x;
}

__device__ __forceinline__ double scale(double low, double high, double u)
{
    double x = __dadd_rn(low, __dmul_rn(__dsub_rn(high, low), u));
    return low < high && x >= high ? nextafter(high, low) : x;
}

__device__ __forceinline__ float uniform32(const gpu_random &r,
                                           const philox4x32_ctr_t &c, int k)
{
    float u = (float)(c.v[k] >> 8) * 0x1p-24f;
    return scale((float)r.low, (float)r.high, u);
}

__device__ __forceinline__ double uniform64(const gpu_random &r,
                                            const philox4x32_ctr_t &c, int k)
{
    double u = (double)(word(c, k) >> 11) * 0x1p-53;
    return scale(r.low, r.high, u);
}

/* Box and Muller's pair: the even element takes the cosine. */
__device__ __forceinline__ double normal(const gpu_random &r,
                                         const philox4x32_ctr_t &c, int k)
{
    double u1 = (double)((word(c, 0) >> 11) + 1) * 0x1p-53;
    double u2 = (double)(word(c, 1) >> 11) * 0x1p-53;
    double radius = sqrt(-2 * log(u1));
    double x = radius * (k ? sinpi(2 * u2) : cospi(2 * u2));
    return __dadd_rn(r.low, __dmul_rn(r.high, x));
}

__device__ __forceinline__ double integer(const gpu_random &r,
                                          const philox4x32_ctr_t &c, int k)
{
    int64_t low = (int64_t)r.low;
    uint64_t span = (uint64_t)((int64_t)r.high - low) + 1;
    return (double)(low + (int64_t)__umul64hi(word(c, k), span));
}

/* 32-bit uniforms: four elements a block of words. */
__global__ void __launch_bounds__(THREADS)
    fill_narrow(const __grid_constant__ random_job job)
{
    int64_t b = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; 4 * b < job.size; b += gridDim.x * (int64_t)THREADS) {
        philox4x32_ctr_t c = words(job.r, (uint64_t)b);
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (4 * b + k < job.size)
                store<float>(job.to, place_of(job.to, 4 * b + k),
                             uniform32(job.r, c, k));
    }
}

/* All else: two elements a block of words. */
__global__ void __launch_bounds__(THREADS)
    fill_wide(const __grid_constant__ random_job job)
{
    int64_t b = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; 2 * b < job.size; b += gridDim.x * (int64_t)THREADS) {
        philox4x32_ctr_t c = words(job.r, (uint64_t)b);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (2 * b + k >= job.size)
                continue;
            double x = job.r.kind == GPU_UNIFORM  ? uniform64(job.r, c, k)
                       : job.r.kind == GPU_NORMAL ? normal(job.r, c, k)
                                                  : integer(job.r, c, k);
            store<double>(job.to, place_of(job.to, 2 * b + k), x);
        }
    }
}

gpu_status gpu_cuda_random(void *device, const gpu_random *r,
                           const gpu_view *to)
{
    ENTER(d, device);
    random_job job = {*r, *to, to->rows * to->cols};
    if (job.size == 0)
        return GPU_OK;
    flatten(&job.to);
    int narrow = r->kind == GPU_UNIFORM && to->dtype != GPU_F64;
    int64_t blocks = ceil_div(ceil_div(job.size, narrow ? 4 : 2), THREADS);
    blocks = smaller(blocks, (int64_t)d->sms * BLOCKS_PER_SM);
    if (narrow)
        fill_narrow<<<(unsigned)blocks, THREADS, 0, d->stream>>>(job);
    else
        fill_wide<<<(unsigned)blocks, THREADS, 0, d->stream>>>(job);
    LAUNCHED(d);
    return GPU_OK;
}
