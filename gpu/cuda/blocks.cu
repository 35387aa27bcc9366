/* A matrix cut into blocks, each made one number, on the GPU. Limited by bytes.
 *
 * A block of the matrix is the work of one thread block, or of several that
 * each leave a part when there are too few for the device. Partition and order
 * depend only on the shapes and the device. */
#include "cuda_device.h"

enum { THREADS = 256, WARPS = THREADS / 32, ITEMS = 8, BLOCKS_PER_SM = 5 };
enum { SHORT = 16384 }; /* elements that are worth a thread block */

typedef struct blocks_job {
    gpu_view v, to; /* both turned when that makes v's rows follow memory */
    int bits;       /* 2^bits threads lie along a row, the others below */
    int cuts_rows;  /* parts of a block lie below each other */
    int64_t parts;
    double *partials; /* parts for each block, when there are several */
} blocks_job;

/* --- folding -------------------------------------------------------------- */

__device__ __forceinline__ double not_a_number()
{
    return __longlong_as_double(0x7ff8000000000000);
}

/* NaN stands for nothing yet in min and max, which ignore it. */
template <int KIND> __device__ __forceinline__ double empty()
{
    return KIND == GPU_BLOCK_MIN || KIND == GPU_BLOCK_MAX ? not_a_number() : 0;
}

/* Joins two results, or a result and |x| or x. */
template <int KIND> __device__ __forceinline__ double join(double a, double b)
{
    if (KIND == GPU_BLOCK_MEAN)
        return a + b;
    if (KIND == GPU_BLOCK_LARGEST)
        return b > a || b != b ? b : a;
    if (KIND == GPU_BLOCK_MIN)
        return b < a || a != a ? b : a;
    return b > a || a != a ? b : a;
}

template <int KIND> __device__ __forceinline__ double take(double a, double x)
{
    return join<KIND>(a, KIND == GPU_BLOCK_LARGEST ? fabs(x) : x);
}

/* Thread 0 returns the block's. */
template <int KIND> __device__ double fold_block(double own, double *shared)
{
    for (int apart = 16; apart > 0; apart /= 2)
        own = join<KIND>(own, __shfl_down_sync(~0u, own, apart));
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = own;
    __syncthreads(); /* shared is written */
    for (int w = 1; threadIdx.x == 0 && w < WARPS; w++)
        own = join<KIND>(own, shared[w]);
    return own;
}

/* Where part b of so many over a length begins. */
__device__ __forceinline__ int64_t edge(int64_t b, int64_t parts,
                                        int64_t length)
{
    return divide(b * length, parts);
}

/* --- blocks --------------------------------------------------------------- */

typedef struct area {
    int64_t row, col, rows, cols;
} area;

__device__ __forceinline__ area area_of(const blocks_job &job)
{
    int64_t p = divide(blockIdx.x, job.to.cols);
    int64_t q = blockIdx.x - p * job.to.cols, part = blockIdx.y;
    int64_t row = edge(p, job.to.rows, job.v.rows);
    int64_t col = edge(q, job.to.cols, job.v.cols);
    int64_t rows = edge(p + 1, job.to.rows, job.v.rows) - row;
    int64_t cols = edge(q + 1, job.to.cols, job.v.cols) - col;
    if (job.parts == 1)
        return {row, col, rows, cols};
    if (job.cuts_rows) {
        int64_t first = edge(part, job.parts, rows);
        return {row + first, col, edge(part + 1, job.parts, rows) - first,
                cols};
    }
    int64_t first = edge(part, job.parts, cols);
    return {row, col + first, rows, edge(part + 1, job.parts, cols) - first};
}

/* A thread's elements lie `apart` threads' breadths from each other in one
 * direction; several at a time, so that as many reads are under way. */
template <class T, int KIND>
__device__ __forceinline__ double
fold_line(const T *from, int64_t count, int apart, int64_t stride, double own)
{
    int64_t step = apart * stride;
    for (int64_t left = count; left > 0; left -= ITEMS * apart) {
        double at[ITEMS];
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            at[k] =
                k * apart < left ? widened<T>(from[k * step]) : empty<KIND>();
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            own = take<KIND>(own, at[k]);
        from += ITEMS * step;
    }
    return own;
}

/* Along the rows where that takes more steps than going down. */
template <class T, int KIND>
__device__ __forceinline__ double fold_area(const blocks_job &job,
                                            const area &a)
{
    int width = 1 << job.bits, height = THREADS >> job.bits;
    int x = threadIdx.x & (width - 1), y = threadIdx.x >> job.bits;
    const gpu_view &v = job.v;
    const T *from = (const T *)v.data + place(v, a.row + y, a.col + x);
    double own = empty<KIND>();
    if (a.cols * height > a.rows * width) {
        for (int64_t i = y; i < a.rows;
             i += height, from += height * v.row_stride)
            own =
                fold_line<T, KIND>(from, a.cols - x, width, v.col_stride, own);
    } else {
        for (int64_t j = x; j < a.cols;
             j += width, from += width * v.col_stride)
            own =
                fold_line<T, KIND>(from, a.rows - y, height, v.row_stride, own);
    }
    return own;
}

template <int KIND>
__device__ __forceinline__ void finish(const blocks_job &job, double value)
{
    int64_t p = divide(blockIdx.x, job.to.cols);
    int64_t q = blockIdx.x - p * job.to.cols;
    int64_t rows =
        edge(p + 1, job.to.rows, job.v.rows) - edge(p, job.to.rows, job.v.rows);
    int64_t cols =
        edge(q + 1, job.to.cols, job.v.cols) - edge(q, job.to.cols, job.v.cols);
    if (KIND == GPU_BLOCK_MEAN)
        value /= (double)(rows * cols);
    store<double>(job.to, place(job.to, p, q), value);
}

template <class T, int KIND>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    blocks_kernel(const __grid_constant__ blocks_job job)
{
    __shared__ double shared[WARPS];
    double own = fold_area<T, KIND>(job, area_of(job));
    own = fold_block<KIND>(own, shared);
    if (threadIdx.x > 0)
        return;
    if (job.parts == 1)
        finish<KIND>(job, own);
    else
        job.partials[blockIdx.x * job.parts + blockIdx.y] = own;
}

/* A thread block joins the parts of a block. */
template <int KIND>
__global__ void __launch_bounds__(THREADS)
    join_kernel(const __grid_constant__ blocks_job job)
{
    __shared__ double shared[WARPS];
    double own = empty<KIND>();
    for (int64_t k = threadIdx.x; k < job.parts; k += THREADS)
        own = join<KIND>(own, job.partials[blockIdx.x * job.parts + k]);
    own = fold_block<KIND>(own, shared);
    if (threadIdx.x == 0)
        finish<KIND>(job, own);
}

template <class T, int KIND>
static gpu_status launch_kind(cuda_device *d, const blocks_job &job, dim3 grid)
{
    blocks_kernel<T, KIND><<<grid, THREADS, 0, d->stream>>>(job);
    LAUNCHED(d);
    if (job.parts > 1) {
        join_kernel<KIND><<<grid.x, THREADS, 0, d->stream>>>(job);
        LAUNCHED(d);
    }
    return GPU_OK;
}

template <class T>
static gpu_status launch(cuda_device *d, gpu_block_kind kind,
                         const blocks_job &job, dim3 grid)
{
    switch (kind) {
    case GPU_BLOCK_MEAN:
        return launch_kind<T, GPU_BLOCK_MEAN>(d, job, grid);
    case GPU_BLOCK_LARGEST:
        return launch_kind<T, GPU_BLOCK_LARGEST>(d, job, grid);
    case GPU_BLOCK_MIN:
        return launch_kind<T, GPU_BLOCK_MIN>(d, job, grid);
    default:
        return launch_kind<T, GPU_BLOCK_MAX>(d, job, grid);
    }
}

/* Half a warp or more along a row, whole warps where rows are long; a block of
 * few rows gets its threads side by side. */
static void share_out(cuda_device *d, blocks_job *job)
{
    enum { MOST_PARTS = 65535 };
    int64_t rows = job->v.rows / job->to.rows,
            cols = job->v.cols / job->to.cols;
    int64_t blocks = job->to.rows * job->to.cols;
    job->bits = 5;
    while (job->bits > 0 && 1 << (job->bits - 1) >= cols)
        job->bits--;
    while (job->bits < 8 && THREADS >> (job->bits + 1) >= rows)
        job->bits++;
    int64_t wanted = ceil_div((int64_t)d->sms * BLOCKS_PER_SM, blocks);
    job->cuts_rows = rows >= cols;
    wanted = smaller(wanted, ceil_div(rows * cols, SHORT));
    wanted = smaller(wanted, larger(job->cuts_rows ? rows / ITEMS : cols, 1));
    job->parts = smaller(wanted, MOST_PARTS);
}

gpu_status gpu_cuda_blocks(void *device, gpu_block_kind kind, const gpu_view *v,
                           const gpu_view *to)
{
    ENTER(d, device);
    blocks_job job = {*v, *to, 0, 0, 1, NULL};
    int turns = stride_size(v->row_stride) < stride_size(v->col_stride);
    if (v->rows > 1 && (v->cols == 1 || turns)) {
        swap_axes(&job.v);
        swap_axes(&job.to);
    }
    share_out(d, &job);
    int64_t blocks = to->rows * to->cols;
    if (job.parts > 1)
        TRY(gpu_cuda_scratch(d, (size_t)(blocks * job.parts) * sizeof(double),
                             (void **)&job.partials));
    dim3 grid((unsigned)blocks, (unsigned)job.parts);
    TRY((v->dtype == GPU_F64   ? launch<double>
         : v->dtype == GPU_F32 ? launch<float>
                               : launch<uint8_t>)(d, kind, job, grid));
    return gpu_cuda_wait(d);
}
