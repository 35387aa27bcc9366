/* Compress and expand: the elements where a mask is true, in row-major order.
 *
 * Each block takes an equal run of the mask: a first pass counts its true
 * values, one block sums the counts up, and a second pass knows the rank of
 * every true value. Limited by bytes: the mask is read twice. */
#include "view.h"

enum { THREADS = 256, WARPS = THREADS / 32, BLOCKS_PER_SM = 8 };
enum { SUM_THREADS = 1024 };

/* mask and elements have one shape; packed has one element a true value. */
typedef struct mask_job {
    gpu_view mask, elements, packed;
    int64_t size, run; /* elements in all, and for one block */
    int64_t *counts;   /* one a block */
} mask_job;

__device__ __forceinline__ bool is_true(const mask_job &job, int64_t e,
                                        int64_t end)
{
    return e < end && load<double>(job.mask, place_of(job.mask, e)) != 0;
}

/* The rank of a true thread among the block's; total gets how many. */
__device__ int rank_in_block(bool mine, int *counts, int *total)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, before = 0;
    unsigned votes = __ballot_sync(~0u, mine);
    __syncthreads(); /* counts of the round before are read */
    if (lane == 0)
        counts[warp] = __popc(votes);
    __syncthreads(); /* counts are written */
    *total = 0;
    for (int w = 0; w < WARPS; w++) {
        before += w < warp ? counts[w] : 0;
        *total += counts[w];
    }
    return before + __popc(votes & ((1u << lane) - 1));
}

__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ mask_job job)
{
    __shared__ int counts[WARPS];
    int64_t begin = blockIdx.x * job.run;
    int64_t end = min(begin + job.run, job.size);
    int own = 0;
    int64_t sum = 0;
    for (int64_t e = begin + threadIdx.x; e < end; e += THREADS)
        own += is_true(job, e, end);
    own = __reduce_add_sync(~0u, own);
    if (threadIdx.x % 32 == 0)
        counts[threadIdx.x / 32] = own;
    __syncthreads(); /* counts are written */
    for (int w = 0; w < WARPS; w++)
        sum += counts[w];
    if (threadIdx.x == 0)
        job.counts[blockIdx.x] = sum;
}

/* Turns counts into the sums of those before: one block, by doubling. */
__global__ void __launch_bounds__(SUM_THREADS)
    sum_kernel(int64_t *counts, int blocks)
{
    __shared__ int64_t sums[SUM_THREADS];
    int64_t run = 0;
    int t = threadIdx.x;
    for (int first = 0; first < blocks; first += SUM_THREADS) {
        int64_t own = first + t < blocks ? counts[first + t] : 0;
        sums[t] = own;
        for (int apart = 1; apart < SUM_THREADS; apart *= 2) {
            __syncthreads(); /* the step before has written */
            int64_t before = t >= apart ? sums[t - apart] : 0;
            __syncthreads(); /* all have read */
            sums[t] += before;
        }
        __syncthreads(); /* sums are complete */
        if (first + t < blocks)
            counts[first + t] = run + sums[t] - own;
        run += sums[SUM_THREADS - 1];
        __syncthreads(); /* sums are read */
    }
}

template <bool EXPAND>
__global__ void __launch_bounds__(THREADS)
    pack_kernel(const __grid_constant__ mask_job job)
{
    __shared__ int counts[WARPS];
    int64_t begin = blockIdx.x * job.run;
    int64_t end = min(begin + job.run, job.size);
    int64_t rank = job.counts[blockIdx.x];
    for (int64_t e = begin; e < end; e += THREADS) {
        int total;
        int64_t own = e + threadIdx.x;
        bool mine = is_true(job, own, end);
        int64_t r = rank + rank_in_block(mine, counts, &total);
        rank += total;
        if (!mine)
            continue;
        int64_t at = place_of(job.elements, own);
        int64_t packed = place_of(job.packed, r);
        if (EXPAND)
            store<double>(job.elements, at, load<double>(job.packed, packed));
        else
            store<double>(job.packed, packed, load<double>(job.elements, at));
    }
}

template <bool EXPAND> static gpu_status pack(cuda_device *d, mask_job *job)
{
    job->size = job->mask.rows * job->mask.cols;
    if (job->size == 0)
        return GPU_OK;
    flatten(&job->mask);
    flatten(&job->elements);
    flatten(&job->packed);
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    job->run = ceil_div(ceil_div(job->size, THREADS), most) * THREADS;
    unsigned blocks = (unsigned)ceil_div(job->size, job->run);
    TRY(gpu_cuda_scratch(d, blocks * sizeof *job->counts,
                         (void **)&job->counts));
    count_kernel<<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    sum_kernel<<<1, SUM_THREADS, 0, d->stream>>>(job->counts, (int)blocks);
    LAUNCHED(d);
    pack_kernel<EXPAND><<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_compress(void *device, const gpu_view *from,
                             const gpu_view *mask, const gpu_view *to)
{
    ENTER(d, device);
    mask_job job = {*mask, *from, *to, 0, 0, NULL};
    return pack<false>(d, &job);
}

gpu_status gpu_cuda_expand(void *device, const gpu_view *from,
                           const gpu_view *mask, const gpu_view *to)
{
    ENTER(d, device);
    mask_job job = {*mask, *to, *from, 0, 0, NULL};
    return pack<true>(d, &job);
}
