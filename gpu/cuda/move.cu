/* Moving elements: picked by lists of rows and columns, and by masks. */
#include <stdlib.h>
#include "cuda_device.h"

/* --- by lists of rows and columns -------------------------------------------
 * Gather and scatter. The lists come from the host and travel through the
 * scratch block. Limited by bytes and by how the picked elements lie. */

enum { THREADS = 256, BLOCKS_PER_SM = 16, MAX_GRID_Y = 65535 };

/* small has the lists' shape; its element (i, j) belongs to big's
 * (rows[i], cols[j]). A list that is NULL is the identity; a place of -1 is
 * left alone. */
typedef struct move_job {
    gpu_view big, small;
    const int64_t *rows, *cols;
} move_job;

template <bool SCATTER>
__global__ void __launch_bounds__(THREADS)
    move_kernel(const __grid_constant__ move_job job)
{
    int64_t i = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t step_i = (int64_t)gridDim.y * blockDim.y;
    int64_t step_j = (int64_t)gridDim.x * blockDim.x;
    for (; i < job.small.rows; i += step_i) {
        int64_t row = job.rows ? job.rows[i] : i;
        int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
        for (; j < job.small.cols; j += step_j) {
            int64_t col = job.cols ? job.cols[j] : j;
            if (row < 0 || col < 0)
                continue;
            int64_t at = place(job.small, i, j);
            int64_t there = place(job.big, row, col);
            if (SCATTER)
                store<double>(job.big, there, load<double>(job.small, at));
            else
                store<double>(job.small, at, load<double>(job.big, there));
        }
    }
}

/* Both lists into scratch, one after the other. */
static gpu_status upload_lists(cuda_device *d, move_job *job,
                               const int64_t *rows, const int64_t *cols)
{
    size_t row_bytes = rows ? (size_t)job->small.rows * sizeof *rows : 0;
    size_t col_bytes = cols ? (size_t)job->small.cols * sizeof *cols : 0;
    char *data = NULL;
    job->rows = job->cols = NULL;
    if (row_bytes + col_bytes == 0)
        return GPU_OK;
    TRY(gpu_cuda_scratch(d, row_bytes + col_bytes, (void **)&data));
    if (rows != NULL)
        job->rows = (const int64_t *)data;
    if (cols != NULL)
        job->cols = (const int64_t *)(data + row_bytes);
    TRY(gpu_cuda_upload(d, data, rows, row_bytes));
    return gpu_cuda_upload(d, data + row_bytes, cols, col_bytes);
}

static void swap_job(move_job *job, const int64_t **rows, const int64_t **cols)
{
    const int64_t *list = *rows;
    *rows = *cols;
    *cols = list;
    swap_axes(&job->big);
    swap_axes(&job->small);
}

/* Do neighbours in memory follow each other down the columns? A small view
 * that is broadcast is read from the cache: then the big one's layout counts.
 */
static bool runs_down(const move_job *job)
{
    bool is_broadcast =
        job->small.row_stride == 0 || job->small.col_stride == 0;
    const gpu_view *v = is_broadcast ? &job->big : &job->small;
    return job->small.cols == 1 ||
           stride_size(v->row_stride) < stride_size(v->col_stride);
}

template <bool SCATTER>
static gpu_status move(cuda_device *d, move_job *job, const int64_t *rows,
                       const int64_t *cols)
{
    const gpu_view *small = &job->small;
    if (runs_down(job))
        swap_job(job, &rows, &cols);
    TRY(upload_lists(d, job, rows, cols));
    int width = 1;
    while (width < THREADS && width < small->cols)
        width *= 2;
    dim3 block(width, THREADS / width);
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    int64_t x = smaller(ceil_div(small->cols, width), most);
    int64_t y = smaller(ceil_div(small->rows, block.y), ceil_div(most, x));
    move_kernel<SCATTER><<<dim3((unsigned)x, (unsigned)smaller(y, MAX_GRID_Y)),
                           block, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_gather(void *device, const gpu_view *from,
                           const int64_t *rows, const int64_t *cols,
                           const gpu_view *to)
{
    ENTER(d, device);
    move_job job = {*from, *to, NULL, NULL};
    if (to->rows == 0 || to->cols == 0)
        return GPU_OK;
    return move<false>(d, &job, rows, cols);
}

/* A copy of list in which a place that comes again later reads -1, so that
 * the last one wins whatever the order of the threads. NULL: no memory. An
 * open-addressing table holds the places already seen from the end. */
static int64_t *keep_last(const int64_t *list, int64_t n)
{
    size_t size = 4;
    while (size < 2 * (size_t)n)
        size *= 2;
    int64_t *kept = (int64_t *)malloc((size_t)n * sizeof *kept);
    int64_t *seen = (int64_t *)malloc(size * sizeof *seen);
    for (size_t s = 0; seen != NULL && s < size; s++)
        seen[s] = -1;
    for (int64_t i = n - 1; kept != NULL && seen != NULL && i >= 0; i--) {
        size_t s = (uint64_t)list[i] * 0x9e3779b97f4a7c15u >> 20 & (size - 1);
        while (seen[s] != -1 && seen[s] != list[i])
            s = (s + 1) & (size - 1);
        kept[i] = seen[s] == list[i] ? -1 : list[i];
        seen[s] = list[i];
    }
    if (seen == NULL) {
        free(kept);
        kept = NULL;
    }
    free(seen);
    return kept;
}

gpu_status gpu_cuda_scatter(void *device, const gpu_view *from,
                            const int64_t *rows, const int64_t *cols,
                            const gpu_view *to)
{
    ENTER(d, device);
    move_job job = {*to, *from, NULL, NULL};
    if (from->rows == 0 || from->cols == 0)
        return GPU_OK;
    int64_t *last_rows = rows ? keep_last(rows, from->rows) : NULL;
    int64_t *last_cols = cols ? keep_last(cols, from->cols) : NULL;
    gpu_status status;
    if ((rows && !last_rows) || (cols && !last_cols))
        status = FAIL(GPU_MEMORY, "scatter: no host memory for its indices");
    else
        status = move<true>(d, &job, last_rows, last_cols);
    free(last_rows);
    free(last_cols);
    return status;
}

/* --- by masks ---------------------------------------------------------------
 * Compress and expand, in row-major order.
 *
 * Each block takes an equal run of the mask: a first pass counts its true
 * values, one block sums the counts up, and a second pass knows the rank of
 * every true value. Limited by bytes: the mask is read twice. */

enum { WARPS = THREADS / 32, MASK_BLOCKS_PER_SM = 8, SUM_THREADS = 1024 };

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
    int64_t most = (int64_t)d->sms * MASK_BLOCKS_PER_SM;
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
