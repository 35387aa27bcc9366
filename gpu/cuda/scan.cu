/* Running sums and products along one axis.
 *
 * A line is cut into chunks, at most enough to fill the device: their totals,
 * then the totals' running values, then every chunk from where it starts. A
 * line that is one chunk needs a single pass. The cut depends only on shape
 * and device and nothing is combined in order of arrival (as a look-back scan
 * would), so results repeat bit for bit. Limited by bytes: two passes of
 * reading, one of writing. Values run in f64 and are rounded when stored. */
#include "cuda_device.h"

enum { THREADS = 256, WARPS = THREADS / 32, ITEMS = 4 };
enum { BLOCKS_PER_SM = 8, LEAST_CHUNK = 4096, COLUMN_CHUNK = 64 };
enum { MAX_GRID_Y = 65535, MIN_COLUMNS = 16, FEW_CHUNKS = 32 };

/* rows are lines, cols the places along one. */
typedef struct scan_job {
    gpu_view from, to;
    int64_t chunk, chunks;
    int is_product;
    double *starts; /* lines x chunks: totals, then what comes before */
} scan_job;

__device__ __forceinline__ double join(const scan_job &job, double a, double b)
{
    return job.is_product ? a * b : a + b;
}

__device__ __forceinline__ double start_value(const scan_job &job)
{
    return job.is_product ? 1 : 0;
}

/* What the threads before this one hold, joined; total gets all of them. */
__device__ double scan_block(const scan_job &job, double own, double *sums,
                             double *total)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int apart = 1; apart < 32; apart *= 2) {
        double before = __shfl_up_sync(~0u, own, apart);
        if (lane >= apart)
            own = join(job, before, own);
    }
    __syncthreads(); /* sums of the round before are read */
    if (lane == 31)
        sums[warp] = own;
    __syncthreads(); /* sums are written */
    own = __shfl_up_sync(~0u, own, 1);
    double before = start_value(job);
    *total = before;
    for (int w = 0; w < WARPS; w++) {
        if (w < warp)
            before = join(job, before, sums[w]);
        *total = join(job, *total, sums[w]);
    }
    return lane == 0 ? before : join(job, before, own);
}

/* THREADS x ITEMS places of a line from j on, in and out through shared
 * memory so that both ways are coalesced. Returns run joined with them. */
template <bool WRITE>
__device__ double scan_tile(const scan_job &job, int64_t line, int64_t j,
                            int64_t end, double run, double *tile, double *sums)
{
    double own = start_value(job), total;
    double *mine = tile + threadIdx.x * ITEMS;
    for (int k = threadIdx.x; k < THREADS * ITEMS; k += THREADS)
        tile[k] = j + k < end
                      ? load<double>(job.from, place(job.from, line, j + k))
                      : start_value(job);
    __syncthreads(); /* the tile is filled */
    for (int k = 0; k < ITEMS; k++)
        own = join(job, own, mine[k]);
    double before = join(job, run, scan_block(job, own, sums, &total));
    for (int k = 0; WRITE && k < ITEMS; k++)
        mine[k] = before = join(job, before, mine[k]);
    __syncthreads(); /* the tile holds running values, or is free */
    for (int k = threadIdx.x; WRITE && k < THREADS * ITEMS; k += THREADS)
        if (j + k < end)
            store<double>(job.to, place(job.to, line, j + k), tile[k]);
    return join(job, run, total);
}

/* A block walks a chunk of one line: for lines whose elements are near one
 * another. */
template <bool WRITE>
__global__ void __launch_bounds__(THREADS)
    walk_lines(const __grid_constant__ scan_job job)
{
    __shared__ double sums[WARPS], tile[THREADS * ITEMS];
    int64_t begin = blockIdx.x * job.chunk;
    int64_t end = min(begin + job.chunk, job.from.cols);
    for (int64_t line = blockIdx.y; line < job.from.rows; line += gridDim.y) {
        double *start = job.starts + line * job.chunks + blockIdx.x;
        double run = WRITE && job.chunks > 1 ? *start : start_value(job);
        for (int64_t j = begin; j < end; j += THREADS * ITEMS) {
            run = scan_tile<WRITE>(job, line, j, end, run, tile, sums);
            __syncthreads(); /* the tile is stored */
        }
        if (!WRITE && threadIdx.x == 0)
            *start = run;
    }
}

/* A thread walks a chunk of one line: for lines that lie side by side, where
 * a warp reads 32 of them at once. */
template <bool WRITE>
__global__ void __launch_bounds__(THREADS)
    walk_columns(const __grid_constant__ scan_job job)
{
    int64_t line = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    int64_t chunk = blockIdx.y * (int64_t)blockDim.y + threadIdx.y;
    if (line >= job.from.rows || chunk >= job.chunks)
        return;
    double *start = job.starts + line * job.chunks + chunk;
    int64_t begin = chunk * job.chunk;
    int64_t end = min(begin + job.chunk, job.from.cols);
    double run = WRITE && job.chunks > 1 ? *start : start_value(job);
    for (int64_t j = begin; j < end; j++) {
        run = join(job, run, load<double>(job.from, place(job.from, line, j)));
        if (WRITE)
            store<double>(job.to, place(job.to, line, j), run);
    }
    if (!WRITE)
        *start = run;
}

/* Each line's totals become what comes before each chunk: a thread a line
 * where there are few chunks, else a block. */
__global__ void __launch_bounds__(THREADS)
    start_few(const __grid_constant__ scan_job job)
{
    int64_t line = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    double run = start_value(job);
    if (line >= job.from.rows)
        return;
    for (int64_t c = 0; c < job.chunks; c++) {
        double *start = job.starts + line * job.chunks + c;
        double own = *start;
        *start = run;
        run = join(job, run, own);
    }
}

__global__ void __launch_bounds__(THREADS)
    start_many(const __grid_constant__ scan_job job)
{
    __shared__ double sums[WARPS];
    double *starts = job.starts + blockIdx.x * job.chunks;
    double run = start_value(job), total;
    for (int64_t first = 0; first < job.chunks; first += THREADS) {
        int64_t c = first + threadIdx.x;
        double own = c < job.chunks ? starts[c] : start_value(job);
        double before = scan_block(job, own, sums, &total);
        if (c < job.chunks)
            starts[c] = join(job, run, before);
        run = join(job, run, total);
    }
}

static gpu_status start_chunks(cuda_device *d, const scan_job *job)
{
    int64_t lines = job->from.rows;
    if (job->chunks <= FEW_CHUNKS)
        start_few<<<(unsigned)ceil_div(lines, THREADS), THREADS, 0,
                    d->stream>>>(*job);
    else
        start_many<<<(unsigned)lines, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

static void cut(scan_job *job, int64_t wanted, int64_t least)
{
    int64_t length = job->from.cols;
    int64_t chunks = larger(smaller(wanted, length / least), 1);
    job->chunk = ceil_div(length, chunks);
    job->chunks = ceil_div(length, job->chunk);
}

typedef void scan_kernel(scan_job job);

static gpu_status run(cuda_device *d, scan_job *job, scan_kernel *totals,
                      scan_kernel *write, dim3 grid, dim3 block)
{
    if (job->chunks > 1) {
        int64_t lines = job->from.rows;
        TRY(gpu_cuda_scratch(
            d, (size_t)(lines * job->chunks) * sizeof *job->starts,
            (void **)&job->starts));
        totals<<<grid, block, 0, d->stream>>>(*job);
        LAUNCHED(d);
        TRY(start_chunks(d, job));
    }
    write<<<grid, block, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status scan_lines(cuda_device *d, scan_job *job)
{
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    int64_t lines = smaller(job->from.rows, MAX_GRID_Y);
    cut(job, ceil_div(most, lines), LEAST_CHUNK);
    return run(d, job, walk_lines<false>, walk_lines<true>,
               dim3((unsigned)job->chunks, (unsigned)lines), THREADS);
}

static gpu_status scan_columns(cuda_device *d, scan_job *job)
{
    int64_t groups = ceil_div(job->from.rows, 32);
    int64_t warps = (int64_t)d->sms * BLOCKS_PER_SM * WARPS;
    cut(job, smaller(ceil_div(warps, groups), MAX_GRID_Y), COLUMN_CHUNK);
    dim3 block(32, (unsigned)smaller(WARPS, job->chunks));
    dim3 grid((unsigned)groups, (unsigned)ceil_div(job->chunks, block.y));
    return run(d, job, walk_columns<false>, walk_columns<true>, grid, block);
}

gpu_status gpu_cuda_scan(void *device, gpu_scan_kind kind, int axis,
                         const gpu_view *from, const gpu_view *to)
{
    ENTER(d, device);
    scan_job job = {*from, *to, 0, 0, kind == GPU_SCAN_PROD, NULL};
    if (from->rows == 0 || from->cols == 0)
        return GPU_OK;
    if (axis == 1) {
        swap_axes(&job.from);
        swap_axes(&job.to);
    }
    if (job.from.rows >= MIN_COLUMNS &&
        stride_size(job.from.row_stride) < stride_size(job.from.col_stride))
        return scan_columns(d, &job);
    return scan_lines(d, &job);
}
