/* Runs of equal elements in a sorted vector: their values, where they begin and
 * how long they are.
 *
 * A block counts those that begin in its tile; when it is known how many come
 * before, it finds them again and writes them side by side, and with each the
 * length of the one before. Limited by bytes: the vector is read twice, the
 * second time from its end, where the cache still has some. */
#include "scratch_parts.h"
#include "sort_keys.h"

#include <cub/device/device_scan.cuh>

enum { THREADS = 256, WARPS = THREADS / 32 };
enum { QUADS = 4, STEP = 32 * 4 * QUADS }; /* elements of a warp */
enum { TILE = WARPS * STEP };

/* sorted: without gaps. Of each tile, before: how many begin before it, last:
 * the place of the last one that begins in it, -1 where none does. */
template <class T> struct run_job {
    const T *sorted;
    int64_t size;
    int is_wide; /* 16 bytes may be read at once */
    int32_t *before, *last;
    T *values;
    double *starts, *lengths;
};

/* Four bits for the elements from e on, all lanes' behind each other, that
 * begin a run. *before: the element before the first lane's, and then before
 * the next ones. */
template <class T>
__device__ __forceinline__ unsigned begins(const run_job<T> &job, int64_t e,
                                           T *before)
{
    T x[4] = {};
    unsigned bits = 0;
    if (job.is_wide && e + 4 <= job.size)
        read_four(job.sorted + e, x);
    else
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (e + k < job.size)
                x[k] = job.sorted[e + k];
    T last = __shfl_up_sync(~0u, x[3], 1);
    if (threadIdx.x % 32 == 0)
        last = *before;
    *before = __shfl_sync(~0u, x[3], 31);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        bool is_new = x[k] != last || e + k == 0;
        bits |= (unsigned)(is_new && e + k < job.size) << k;
        last = x[k];
    }
    return bits;
}

/* What a warp begins with. */
template <class T>
__device__ __forceinline__ T before_warp(const run_job<T> &job, int64_t first)
{
    return first > 0 && first < job.size ? job.sorted[first - 1] : T(0);
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    count_runs(const __grid_constant__ run_job<T> job)
{
    __shared__ int sum, last;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = 0, at = -1;
    int64_t first = (int64_t)blockIdx.x * TILE + warp * STEP;
    T before = before_warp(job, first);
    if (threadIdx.x == 0)
        sum = 0, last = -1;
    __syncthreads(); /* sum is zero */
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        int64_t e = first + q * 128 + lane * 4;
        unsigned bits = begins(job, e, &before);
        own += __popc(bits);
        at = bits ? (int)e + 31 - __clz((int)bits) : at;
    }
    own = __reduce_add_sync(~0u, own);
    at = __reduce_max_sync(~0u, at);
    if (lane == 0) {
        atomicAdd(&sum, own);
        atomicMax(&last, at);
    }
    __syncthreads(); /* sum is complete */
    if (threadIdx.x == 0) {
        job.before[blockIdx.x] = sum;
        job.last[blockIdx.x] = last;
    }
}

/* Where the last run begins that begins in a tile before this one, which is not
 * the first; all threads look for it, so many tiles at a time. */
template <class T>
__device__ __forceinline__ int last_before(const run_job<T> &job, int64_t tile)
{
    __shared__ int found;
    int at = -1;
    for (int64_t end = tile; at < 0 && end > 0; end -= THREADS) {
        int64_t k = end - THREADS + threadIdx.x;
        if (threadIdx.x == 0)
            found = -1;
        __syncthreads(); /* so it is */
        int own = __reduce_max_sync(~0u, k >= 0 ? job.last[k] : -1);
        if (threadIdx.x % 32 == 0)
            atomicMax(&found, own);
        __syncthreads(); /* all have told */
        at = found;
        __syncthreads(); /* found has been read */
    }
    return at;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    put_runs(const __grid_constant__ run_job<T> job)
{
    __shared__ uint16_t found[TILE]; /* their places in the tile */
    __shared__ int counts[WARPS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t place = gridDim.x - 1 - blockIdx.x;
    int64_t tile = place * TILE, first = tile + warp * STEP;
    bool is_last = blockIdx.x == 0;
    unsigned bits[QUADS];
    int rank[QUADS], sum = 0, total = 0;
    T before = before_warp(job, first);
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        bits[q] = begins(job, first + q * 128 + lane * 4, &before);
        int upto = __popc(bits[q]);
        for (int step = 1; step < 32; step *= 2) {
            int lower = __shfl_up_sync(~0u, upto, step);
            upto += lane >= step ? lower : 0;
        }
        rank[q] = sum + upto - __popc(bits[q]);
        sum += __shfl_sync(~0u, upto, 31);
    }
    if (lane == 0)
        counts[warp] = sum;
    __syncthreads(); /* counts are there */
    int own = 0;
    for (int w = 0; w < WARPS; w++) {
        own += w < warp ? counts[w] : 0;
        total += counts[w];
    }
#pragma unroll
    for (int q = 0; q < QUADS; q++)
        for (int at = own + rank[q]; bits[q]; bits[q] &= bits[q] - 1)
            found[at++] = (uint16_t)(warp * STEP + q * 128 + lane * 4 +
                                     __ffs((int)bits[q]) - 1);
    __syncthreads(); /* all are found */
    int64_t to = job.before[place];
    for (int k = threadIdx.x; k < total; k += THREADS) {
        int64_t e = tile + found[k];
        if (job.values)
            job.values[to + k] = job.sorted[e];
        if (job.starts)
            job.starts[to + k] = (double)(e + 1);
        if (job.lengths && k > 0)
            job.lengths[to + k - 1] = (double)(found[k] - found[k - 1]);
    }
    if (job.starts && is_last && threadIdx.x == 0)
        job.starts[to + total] = (double)(job.size + 1);
    if (!job.lengths || (total == 0 && !is_last))
        return;
    int64_t last = place > 0 ? last_before(job, place) : 0;
    if (threadIdx.x > 0)
        return;
    if (total > 0 && to > 0)
        job.lengths[to - 1] = (double)(tile + found[0] - last);
    if (total > 0)
        last = tile + found[total - 1];
    if (is_last)
        job.lengths[to + total - 1] = (double)(job.size - last);
}

template <class T>
static gpu_status find_runs(cuda_device *d, const gpu_view *sorted, gpu_runs *r)
{
    run_job<T> job = {(const T *)sorted->data, sorted->rows,
                      is_aligned(sorted->data)};
    int64_t tiles = ceil_div(job.size, TILE);
    size_t scanning = 0;
    int32_t count;
    char *room;
    CHECK(d, cub::DeviceScan::ExclusiveSum(NULL, scanning, job.before,
                                           job.before, tiles + 1, d->stream));
    TRY(gpu_cuda_scratch(
        d,
        2 * rounded_room((size_t)(tiles + 1) * sizeof *job.before) + scanning,
        (void **)&room));
    job.before = take_part<int32_t>(&room, tiles + 1);
    job.last = take_part<int32_t>(&room, tiles + 1);
    count_runs<T><<<(unsigned)tiles, THREADS, 0, d->stream>>>(job);
    LAUNCHED(d);
    CHECK(d, cub::DeviceScan::ExclusiveSum(room, scanning, job.before,
                                           job.before, tiles + 1, d->stream));
    TRY(gpu_cuda_download(d, &count, job.before + tiles, sizeof count));
    r->count = count;
    TRY(r->make_room(r));
    job.values = (T *)r->values.data;
    job.starts = (double *)r->starts.data;
    job.lengths = (double *)r->lengths.data;
    put_runs<T><<<(unsigned)tiles, THREADS, 0, d->stream>>>(job);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_runs(void *device, const gpu_view *sorted, gpu_runs *r)
{
    ENTER(d, device);
    gpu_view v = *sorted;
    void *copy = NULL;
    gpu_status status = GPU_OK;
    if (v.rows >= INT32_MAX)
        return FAIL(GPU_UNSUPPORTED, "unique: %lld elements are too many here",
                    (long long)v.rows);
    if (v.rows > 1 && v.row_stride != 1)
        status = gpu_cuda_copy_view(d, "unique", &v, &copy);
    if (status == GPU_OK)
        status = v.dtype == GPU_F64 ? find_runs<double>(d, &v, r)
                                    : find_runs<float>(d, &v, r);
    gpu_cuda_free(d, copy, gpu_cuda_copy_bytes(sorted));
    return status;
}
