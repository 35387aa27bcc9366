/* Running sums, products and extremes along one axis, in one pass: every
 * element is read once and written once, which is what limits it.
 *
 * A line is cut into tiles that a block holds in registers. What comes before
 * a tile is added up from the totals of the tiles before it, which their
 * blocks publish: those of its own group of GROUP tiles one by one, in order,
 * and for the groups before it a single start, which the last tile of the
 * group before works out. A block waits for the very values it needs (a
 * decoupled look-back would add what is ready), and the cut depends on shape
 * and type alone, so results repeat bit for bit. Blocks take their tiles by
 * ticket: those waited for have begun before. Values run in f64 and are
 * rounded when stored. Source of the tiles that wait: Merrill, Garland,
 * Single-pass parallel prefix scan with decoupled look-back, 2016. */
#include "cuda_device.h"

enum { GROUP = 256, COLUMN_GROUP = 64 };
enum { SHORT_LINE = 8, MIN_COLUMNS = 16, COLUMN_WARPS = 8 };

/* rows are lines, cols the places along one. Of every line, `tiles` totals
 * and the starts of groups; element (t, line) at t * lines + line. */
typedef struct scan_job {
    gpu_view from, to;
    int64_t tiles;
    int wide_from, wide_to; /* 16 bytes may be moved at once */
    unsigned *ticket;
    double *totals, *starts;
} scan_job;

/* What changes nothing that it is joined with. */
template <gpu_scan_kind KIND> __device__ __forceinline__ double neutral()
{
    return KIND == GPU_SCAN_SUM    ? 0
           : KIND == GPU_SCAN_PROD ? 1
           : KIND == GPU_SCAN_MAX  ? -INFINITY
                                   : INFINITY;
}

/* a is what came before b; of extremes NaN stays, and of equal ones a. */
template <gpu_scan_kind KIND>
__device__ __forceinline__ double join(double a, double b)
{
    if (KIND == GPU_SCAN_SUM)
        return a + b;
    if (KIND == GPU_SCAN_PROD)
        return a * b;
    bool is_better = KIND == GPU_SCAN_MAX ? b > a : b < a;
    return is_better || b != b ? b : a;
}

/* --- what blocks tell one another ------------------------------------------
 * A place that is not filled yet has all bits set: a NaN that publish never
 * writes. So a value needs no flag beside it, and no fence. */

__device__ __forceinline__ void publish(double *place, double value)
{
    if (value != value)
        value = __longlong_as_double(0x7ff8000000000000);
    asm volatile("st.relaxed.gpu.global.f64 [%0], %1;" ::"l"(place), "d"(value)
                 : "memory");
}

__device__ __forceinline__ double await(const double *place)
{
    unsigned long long bits;
    do
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                     : "=l"(bits)
                     : "l"(place)
                     : "memory");
    while (bits == ~0ull);
    return __longlong_as_double((long long)bits);
}

/* The block's tile; all threads get it. Tickets begin at ~0. */
__device__ __forceinline__ int64_t take_tile(const scan_job &job)
{
    __shared__ unsigned taken;
    if (threadIdx.x == 0)
        taken = atomicAdd(job.ticket, 1) + 1;
    __syncthreads(); /* taken is written */
    return taken;
}

/* --- lines whose elements are near one another ------------------------------
 */

template <class T> struct alignas(16) vector {
    static constexpr int SIZE = 16 / sizeof(T);
    T at[SIZE];
};

/* A warp's elements of a line from j on, COUNT vectors a lane, ordered by
 * vector, then by lane; neutral ones where the line has ended. */
template <gpu_scan_kind KIND, class T, int COUNT>
__device__ __forceinline__ void read(const scan_job &job, int64_t line,
                                     int64_t j, vector<T> v[COUNT])
{
    constexpr int SIZE = vector<T>::SIZE;
    const gpu_view &in = job.from;
    int lane = threadIdx.x % 32;
    const T *from = (const T *)in.data + place(in, line, j);
    if (job.wide_from && j + COUNT * 32 * SIZE <= in.cols) {
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            v[k] = ((const vector<T> *)from)[k * 32 + lane];
        return;
    }
    from += lane * SIZE * in.col_stride;
    int left = (int)min(in.cols - j - lane * SIZE, (int64_t)COUNT * 32 * SIZE);
#pragma unroll
    for (int k = 0; k < COUNT * SIZE; k++) {
        int at = k / SIZE * 32 * SIZE + k % SIZE;
        v[k / SIZE].at[k % SIZE] =
            at < left ? from[at * in.col_stride] : (T)neutral<KIND>();
    }
}

/* The same elements' results. Where 16 bytes may not be written at once they
 * change places in shared memory, so that lanes write neighbours. */
template <class T, int COUNT>
__device__ __forceinline__ void write(const scan_job &job, int64_t line,
                                      int64_t j, const vector<T> v[COUNT],
                                      vector<T> shared[32])
{
    constexpr int SIZE = vector<T>::SIZE;
    const gpu_view &out = job.to;
    int lane = threadIdx.x % 32;
    T *to = (T *)out.data + place(out, line, j);
    if (job.wide_to && j + COUNT * 32 * SIZE <= out.cols) {
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            ((vector<T> *)to)[k * 32 + lane] = v[k];
        return;
    }
    to += lane * out.col_stride;
    int left = (int)min(out.cols - j - lane, (int64_t)COUNT * 32 * SIZE);
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        shared[lane] = v[k];
        __syncwarp(); /* the vectors of all lanes are there */
#pragma unroll
        for (int s = 0; s < SIZE; s++)
            if ((k * SIZE + s) * 32 < left)
                to[(k * SIZE + s) * 32 * out.col_stride] =
                    ((const T *)shared)[s * 32 + lane];
        __syncwarp(); /* and read */
    }
}

/* A vector's own total for each of COUNT vectors of a lane becomes what comes
 * before it among the warp's, which are ordered by vector, then by lane.
 * Returns the warp's total. */
template <gpu_scan_kind KIND, int COUNT>
__device__ __forceinline__ double scan_warp(double own[COUNT])
{
    int lane = threadIdx.x % 32;
    double total = neutral<KIND>();
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2)
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            double before = __shfl_up_sync(~0u, own[k], apart);
            if (lane >= apart)
                own[k] = join<KIND>(before, own[k]);
        }
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        double all = __shfl_sync(~0u, own[k], 31);
        double before = __shfl_up_sync(~0u, own[k], 1);
        own[k] = lane == 0 ? total : join<KIND>(total, before);
        total = join<KIND>(total, all);
    }
    return total;
}

/* What comes before the block's tile of the line, for all its threads. */
template <gpu_scan_kind KIND, int WARPS>
__device__ double before_tile(const scan_job &job, int64_t line, int64_t tile,
                              double total)
{
    __shared__ double sums[WARPS], start;
    int64_t lines = job.from.rows, group = tile / GROUP;
    int t = threadIdx.x, among = (int)(tile % GROUP);
    const double *first = job.totals + (tile - among) * lines + line;
    double before = neutral<KIND>();
    if (t == 0)
        publish(job.totals + tile * lines + line, total);
    for (int k = t; k < among; k += 32 * WARPS)
        before = join<KIND>(before, await(first + k * lines));
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2)
        before = join<KIND>(before, __shfl_down_sync(~0u, before, apart));
    if (t % 32 == 0)
        sums[t / 32] = before;
    if (t == 0)
        start =
            group ? await(job.starts + group * lines + line) : neutral<KIND>();
    __syncthreads(); /* sums and start are written */
    before = start;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        before = join<KIND>(before, sums[w]);
    if (t == 0 && among == GROUP - 1 && tile + 1 < job.tiles)
        publish(job.starts + (group + 1) * lines + line,
                join<KIND>(before, total));
    return before;
}

/* Keeps v as it is: without this its elements would be held in f64, too, from
 * one use to the next. */
__device__ __forceinline__ void settle(float &v)
{
    asm volatile("" : "+f"(v));
}

__device__ __forceinline__ void settle(double &v)
{
    (void)v;
}

/* Blocks of one tile's warps, or of eight tiles of one warp. */
__host__ __device__ constexpr int threads_of(int warps)
{
    return warps == 1 ? 256 : 32 * warps;
}

/* WARPS warps a tile, COUNT vectors a lane. With one warp a tile is a whole
 * line. */
template <gpu_scan_kind KIND, class T, int WARPS, int COUNT>
__global__ void __launch_bounds__(threads_of(WARPS), WARPS == 1 ? 2 : 3)
    scan_lines(const __grid_constant__ scan_job job)
{
    constexpr int SIZE = vector<T>::SIZE, CHUNK = 32 * COUNT * SIZE;
    __shared__ vector<T> shared[threads_of(WARPS)];
    __shared__ double sums[WARPS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t line = blockIdx.x, tile = 0;
    if (WARPS == 1) {
        line = line * 8 + warp;
        warp = 0;
        if (line >= job.from.rows)
            return;
    } else if (job.tiles > 1) {
        int64_t number = take_tile(job);
        line = divide(number, job.tiles);
        tile = number - line * job.tiles;
    }
    int64_t j = (tile * WARPS + warp) * CHUNK;
    vector<T> v[COUNT];
    double own[COUNT];
    read<KIND, T, COUNT>(job, line, j, v);
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        own[k] = v[k].at[0];
#pragma unroll
        for (int s = 1; s < SIZE; s++)
            own[k] = join<KIND>(own[k], v[k].at[s]);
    }
    double total = scan_warp<KIND, COUNT>(own), start = neutral<KIND>();
    if (WARPS > 1) {
        if (lane == 0)
            sums[warp] = total;
        __syncthreads(); /* sums are written */
        total = neutral<KIND>();
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            start = w == warp ? total : start;
            total = join<KIND>(total, sums[w]);
        }
    }
    if (WARPS > 1 && job.tiles > 1)
        start =
            join<KIND>(before_tile<KIND, WARPS>(job, line, tile, total), start);
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        double run = join<KIND>(start, own[k]);
#pragma unroll
        for (int s = 0; s < SIZE; s++) {
            settle(v[k].at[s]);
            run = join<KIND>(run, v[k].at[s]);
            v[k].at[s] = (T)run;
        }
    }
    write<T, COUNT>(job, line, j, v, shared + (threadIdx.x - lane));
}

/* --- lines that lie side by side --------------------------------------------
 * Each lane has a line of its own. */

/* What comes before the tile in the lane's line. */
template <gpu_scan_kind KIND>
__device__ double before_in_column(const scan_job &job, int64_t line,
                                   int64_t tile, double total)
{
    int64_t lines = job.from.rows, group = tile / COLUMN_GROUP;
    __shared__ double sums[COLUMN_WARPS][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int among = (int)(tile % COLUMN_GROUP);
    const double *first = job.totals + (tile - among) * lines + line;
    double before = neutral<KIND>();
    if (warp == 0)
        publish(job.totals + tile * lines + line, total);
#pragma unroll 4
    for (int k = warp; k < among; k += COLUMN_WARPS)
        before = join<KIND>(before, await(first + k * lines));
    sums[warp][lane] = before;
    before = group ? await(job.starts + group * lines + line) : neutral<KIND>();
    __syncthreads(); /* sums are written */
#pragma unroll
    for (int w = 0; w < COLUMN_WARPS; w++)
        before = join<KIND>(before, sums[w][lane]);
    if (warp == 0 && among == COLUMN_GROUP - 1 && tile + 1 < job.tiles)
        publish(job.starts + (group + 1) * lines + line,
                join<KIND>(before, total));
    return before;
}

/* COUNT places a lane, of 32 lines; the warps of a block follow each other
 * along them. The lanes beyond the last line take it, too, and write nothing:
 * they publish what its own lane does. */
template <gpu_scan_kind KIND, class T>
__global__ void __launch_bounds__(32 * COLUMN_WARPS, 3)
    scan_columns(const __grid_constant__ scan_job job)
{
    constexpr int COUNT = 128 / sizeof(T);
    __shared__ double sums[COLUMN_WARPS][32];
    int64_t strips = (job.from.rows + 31) / 32;
    int64_t number = job.tiles > 1 ? take_tile(job) : blockIdx.x;
    int64_t tile = divide(number, strips), strip = number - tile * strips;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t own_line = strip * 32 + lane;
    int64_t line = min(own_line, job.from.rows - 1);
    int64_t j = (tile * COLUMN_WARPS + warp) * COUNT;
    const T *from = (const T *)job.from.data + place(job.from, line, j);
    T *to = (T *)job.to.data + place(job.to, line, j);
    int count = (int)min(max(job.from.cols - j, (int64_t)0), (int64_t)COUNT);
    T v[COUNT];
    double run = neutral<KIND>(), total = neutral<KIND>();
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        v[k] = k < count ? from[k * job.from.col_stride] : (T)neutral<KIND>();
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        run = join<KIND>(run, v[k]);
    sums[warp][lane] = run;
    __syncthreads(); /* sums are written */
#pragma unroll
    for (int w = 0; w < COLUMN_WARPS; w++) {
        run = w == warp ? total : run;
        total = join<KIND>(total, sums[w][lane]);
    }
    if (job.tiles > 1)
        run = join<KIND>(before_in_column<KIND>(job, line, tile, total), run);
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        settle(v[k]);
        run = join<KIND>(run, v[k]);
        if (k < count && own_line == line)
            to[k * job.to.col_stride] = (T)run;
    }
}

/* A thread a line. */
template <gpu_scan_kind KIND, class T>
__global__ void __launch_bounds__(256)
    scan_short(const __grid_constant__ scan_job job)
{
    int64_t line = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (line >= job.from.rows)
        return;
    const T *from = (const T *)job.from.data + line * job.from.row_stride;
    T *to = (T *)job.to.data + line * job.to.row_stride;
    double run = neutral<KIND>();
#pragma unroll 8
    for (int64_t j = 0; j < job.from.cols; j++) {
        run = join<KIND>(run, from[j * job.from.col_stride]);
        to[j * job.to.col_stride] = (T)run;
    }
}

/* --- launches ----------------------------------------------------------------
 */

/* Memory for what blocks tell one another, all bits of it set. */
static gpu_status prepare(cuda_device *d, scan_job *job, int64_t group)
{
    int64_t lines = job->from.rows;
    size_t totals = (size_t)(job->tiles * lines) * sizeof(double);
    size_t starts =
        (size_t)(ceil_div(job->tiles, group) * lines) * sizeof(double);
    char *data = NULL;
    if (job->tiles == 1)
        return GPU_OK;
    TRY(gpu_cuda_scratch(d, totals + starts + sizeof *job->ticket,
                         (void **)&data));
    job->totals = (double *)data;
    job->starts = (double *)(data + totals);
    job->ticket = (unsigned *)(data + totals + starts);
    CHECK(d, cudaMemsetAsync(data, 0xff, totals + starts + sizeof *job->ticket,
                             d->stream));
    return GPU_OK;
}

template <gpu_scan_kind KIND, class T, int WARPS, int COUNT>
static gpu_status run_lines(cuda_device *d, scan_job *job)
{
    int64_t tile = (int64_t)WARPS * COUNT * 32 * vector<T>::SIZE;
    int64_t lines = ceil_div(job->from.rows, WARPS == 1 ? 8 : 1);
    job->tiles = ceil_div(job->from.cols, tile);
    TRY(prepare(d, job, GROUP));
    scan_lines<KIND, T, WARPS, COUNT>
        <<<(unsigned)(lines * job->tiles), threads_of(WARPS), 0, d->stream>>>(
            *job);
    LAUNCHED(d);
    return GPU_OK;
}

template <gpu_scan_kind KIND, class T>
static gpu_status run_columns(cuda_device *d, scan_job *job)
{
    int64_t tile = COLUMN_WARPS * (128 / (int64_t)sizeof(T));
    int64_t strips = ceil_div(job->from.rows, 32);
    job->tiles = ceil_div(job->from.cols, tile);
    TRY(prepare(d, job, COLUMN_GROUP));
    scan_columns<KIND, T>
        <<<(unsigned)(strips * job->tiles), 32 * COLUMN_WARPS, 0, d->stream>>>(
            *job);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T> static int is_wide(const gpu_view *v)
{
    return v->col_stride == 1 && is_aligned(v->data) &&
           (v->rows == 1 || v->row_stride % vector<T>::SIZE == 0);
}

template <gpu_scan_kind KIND, class T>
static gpu_status scan(cuda_device *d, scan_job *job)
{
    constexpr int64_t STEP = 32 * vector<T>::SIZE; /* a warp's vectors */
    const gpu_view *from = &job->from;
    bool is_side_by_side =
        from->rows >= MIN_COLUMNS &&
        stride_size(from->row_stride) < stride_size(from->col_stride);
    if (from->cols <= SHORT_LINE) {
        int64_t blocks = ceil_div(from->rows, 256);
        scan_short<KIND, T><<<(unsigned)blocks, 256, 0, d->stream>>>(*job);
        LAUNCHED(d);
        return GPU_OK;
    }
    if (is_side_by_side)
        return run_columns<KIND, T>(d, job);
    job->wide_from = is_wide<T>(from);
    job->wide_to = is_wide<T>(&job->to);
    if (from->cols <= 2 * STEP)
        return run_lines<KIND, T, 1, 2>(d, job);
    if (from->cols <= 8 * STEP)
        return run_lines<KIND, T, 1, 8>(d, job);
    if (from->cols <= 16 * STEP)
        return run_lines<KIND, T, 8, 2>(d, job);
    return run_lines<KIND, T, 8, 8>(d, job);
}

template <gpu_scan_kind KIND>
static gpu_status scan_of(cuda_device *d, scan_job *job)
{
    return job->from.dtype == GPU_F64 ? scan<KIND, double>(d, job)
                                      : scan<KIND, float>(d, job);
}

gpu_status gpu_cuda_scan(void *device, gpu_scan_kind kind, int axis,
                         const gpu_view *from, const gpu_view *to)
{
    ENTER(d, device);
    scan_job job = {*from, *to, 1, 0, 0, NULL, NULL, NULL};
    if (from->rows == 0 || from->cols == 0)
        return GPU_OK;
    if (axis == 1) {
        swap_axes(&job.from);
        swap_axes(&job.to);
    }
    switch (kind) {
    case GPU_SCAN_SUM:
        return scan_of<GPU_SCAN_SUM>(d, &job);
    case GPU_SCAN_PROD:
        return scan_of<GPU_SCAN_PROD>(d, &job);
    case GPU_SCAN_MAX:
        return scan_of<GPU_SCAN_MAX>(d, &job);
    default:
        return scan_of<GPU_SCAN_MIN>(d, &job);
    }
}
