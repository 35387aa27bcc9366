/* Searching in sorted vectors, folds of groups of rows, and moving windows.
 *
 * Limited by bytes, and by reads that lie far apart. A fold is cut where the
 * rows' order says, and what is cut is joined in an order of its own, so that
 * bits repeat. */
#include "cuda_device.h"

enum { THREADS = 256, BLOCKS_PER_SM = 16 };

static unsigned blocks_for(cuda_device *d, int64_t n)
{
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    return (unsigned)smaller(ceil_div(n, THREADS), most);
}

/* --- searching --------------------------------------------------------------
 * A thread a value: the first steps of all searches meet in the cache. */

typedef struct search_job {
    gpu_view sorted, values, to;
    int is_after;
    int64_t size; /* of values */
} search_job;

/* Does a come before x? NaN comes after numbers, and equals NaN. */
__device__ __forceinline__ bool is_before(double a, double x, int is_after)
{
    if (a != a)
        return is_after && x != x;
    if (x != x)
        return true;
    return is_after ? a <= x : a < x;
}

__global__ void __launch_bounds__(THREADS)
    search_kernel(const __grid_constant__ search_job job)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; e < job.size; e += gridDim.x * (int64_t)THREADS) {
        double x = load<double>(job.values, place_of(job.values, e));
        int64_t low = 0, high = job.sorted.rows;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            double a = load<double>(job.sorted, middle * job.sorted.row_stride);
            if (is_before(a, x, job.is_after))
                low = middle + 1;
            else
                high = middle;
        }
        store<double>(job.to, place_of(job.to, e), (double)(low + 1));
    }
}

gpu_status gpu_cuda_search(void *device, const gpu_view *sorted,
                           const gpu_view *values, int is_after,
                           const gpu_view *to)
{
    ENTER(d, device);
    search_job job = {*sorted, *values, *to, is_after,
                      values->rows * values->cols};
    if (job.size == 0)
        return GPU_OK;
    search_kernel<<<blocks_for(d, job.size), THREADS, 0, d->stream>>>(job);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- folds ------------------------------------------------------------------
 * A group of up to LONG rows is folded by some lanes of a warp for each column:
 * as many as an average group is worth. Longer ones are folded chunk by chunk
 * of all rows, of which each belongs in parts to at most two of them, and those
 * parts are joined afterwards: so one group of all rows is as fast as many. */

enum { CHUNK = 4096, LONG = CHUNK };  /* LONG is not below CHUNK */
#define NOTHING 0x7ff8dead00000000ull /* of extremes: no element yet */

/* parts: two of each chunk by column: of the group that its first row is in,
 * and of the one that its last row is in, where that is another one. */
typedef struct fold_job {
    gpu_view from, starts, places, about, to;
    int kind, skips_nan, has_places;
    int64_t groups, rows; /* rows in order */
    int width, lanes;     /* neighbouring columns and lanes of a unit */
    int64_t strips;       /* of width columns */
    double *parts;
} fold_job;

__device__ __forceinline__ bool is_nothing(double x)
{
    return (unsigned long long)__double_as_longlong(x) == NOTHING;
}

__device__ __forceinline__ double neutral(int kind)
{
    if (kind == GPU_FOLD_MAX || kind == GPU_FOLD_MIN)
        return __longlong_as_double((long long)NOTHING);
    return kind == GPU_FOLD_PROD ? 1.0 : 0.0;
}

/* Either may be NOTHING. */
__device__ __forceinline__ double extreme(double a, double b, bool is_max)
{
    if (is_nothing(b))
        return a;
    if (is_nothing(a))
        return b;
    if (a != a || b != b)
        return __longlong_as_double(0x7ff8000000000000);
    return (is_max ? b > a : b < a) ? b : a;
}

__device__ __forceinline__ double joined(double a, double b, int kind)
{
    if (kind == GPU_FOLD_MAX || kind == GPU_FOLD_MIN)
        return extreme(a, b, kind == GPU_FOLD_MAX);
    return kind == GPU_FOLD_PROD ? a * b : a + b;
}

/* x as what is joined; as extremes know NOTHING, it is never that. */
__device__ __forceinline__ double taken(const fold_job &job, double x,
                                        double about)
{
    if (x != x) {
        if (job.skips_nan || job.kind == GPU_FOLD_COUNT)
            return neutral(job.kind);
        return __longlong_as_double(0x7ff8000000000000);
    }
    if (job.kind == GPU_FOLD_COUNT)
        return 1;
    return job.kind == GPU_FOLD_SPREAD ? (x - about) * (x - about) : x;
}

/* Where group g begins among the ordered rows, from 0. */
__device__ __forceinline__ int64_t start_of(const fold_job &job, int64_t g)
{
    double start = load<double>(job.starts, g * job.starts.row_stride);
    int64_t first = start >= 1 ? (int64_t)start - 1 : 0;
    return min(first, job.rows);
}

/* The ordered rows first, first + step … below last of column c. */
__device__ __forceinline__ double fold_rows(const fold_job &job, int64_t first,
                                            int64_t last, int64_t step,
                                            int64_t c, double about)
{
    double so_far = neutral(job.kind);
#pragma unroll 4
    for (int64_t i = first; i < last; i += step) {
        int64_t row = i;
        if (job.has_places) {
            double x = load<double>(job.places, i * job.places.row_stride);
            row = x >= 1 ? min((int64_t)x - 1, job.from.rows - 1) : 0;
        }
        double x = load<double>(job.from, place(job.from, row, c));
        so_far = joined(so_far, taken(job, x, about), job.kind);
    }
    return so_far;
}

__device__ __forceinline__ double about_of(const fold_job &job, int64_t g,
                                           int64_t c)
{
    return job.kind == GPU_FOLD_SPREAD
               ? load<double>(job.about, place(job.about, g, c))
               : 0.0;
}

__device__ __forceinline__ void put(const fold_job &job, int64_t g, int64_t c,
                                    double x)
{
    if (is_nothing(x))
        x = __longlong_as_double(0x7ff8000000000000);
    store<double>(job.to, place(job.to, g, c), x);
}

/* What the lanes of a unit hold for their columns, width lanes apart. */
__device__ __forceinline__ double join_lanes(const fold_job &job, double own)
{
    int all = job.width * job.lanes;
    unsigned ones = all == 32 ? ~0u : (1u << all) - 1;
    unsigned mask = ones << (threadIdx.x % 32 / all * all);
    for (int apart = all / 2; apart >= job.width; apart /= 2)
        own = joined(own, __shfl_xor_sync(mask, own, apart), job.kind);
    return own;
}

/* A unit for a group and a strip of columns. */
__global__ void __launch_bounds__(THREADS)
    fold_short_kernel(const __grid_constant__ fold_job job)
{
    int all = job.width * job.lanes, t = threadIdx.x % all;
    int64_t units = THREADS / all, count = job.groups * job.strips;
    int64_t u = blockIdx.x * units + threadIdx.x / all;
    for (; u < count; u += gridDim.x * units) {
        int64_t g = divide(u, job.strips);
        int64_t c = (u - g * job.strips) * job.width + t % job.width;
        int64_t begin = start_of(job, g), end = start_of(job, g + 1);
        if (end - begin > LONG)
            continue;
        double own = neutral(job.kind);
        bool is_inside = c < job.from.cols;
        if (is_inside)
            own = fold_rows(job, begin + t / job.width, end, job.lanes, c,
                            about_of(job, g, c));
        own = join_lanes(job, own);
        if (is_inside && t < job.width)
            put(job, g, c, own);
    }
}

/* The last group that begins at an ordered row or before it; -1: none. Of such
 * that begin together all but the last are empty. */
__device__ __forceinline__ int64_t group_at(const fold_job &job, int64_t row)
{
    int64_t low = 0, high = job.groups;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (start_of(job, middle) <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* A block's threads fold rows first .. last - 1 of group g into a part. */
__device__ __forceinline__ void fold_part(const fold_job &job, int64_t g,
                                          int64_t first, int64_t last,
                                          int64_t c, double *part)
{
    __shared__ double shared[THREADS];
    int t = threadIdx.x, width = job.width;
    bool is_inside = c < job.from.cols;
    shared[t] = is_inside ? fold_rows(job, first + t / width, last,
                                      THREADS / width, c, about_of(job, g, c))
                          : neutral(job.kind);
    for (int apart = THREADS / 2; apart >= width; apart /= 2) {
        __syncthreads(); /* what is joined now is written */
        if (t < apart)
            shared[t] = joined(shared[t], shared[t + apart], job.kind);
    }
    __syncthreads(); /* joined by the same threads: for the next part */
    if (is_inside && t < width)
        part[c] = shared[t];
    __syncthreads(); /* shared is read */
}

/* A block a chunk and strip. */
__global__ void __launch_bounds__(THREADS)
    fold_chunk_kernel(const __grid_constant__ fold_job job)
{
    int64_t chunk = blockIdx.x, cols = job.from.cols;
    int64_t c = blockIdx.y * (int64_t)job.width + threadIdx.x % job.width;
    int64_t first = chunk * CHUNK, last = min(first + CHUNK, job.rows);
    int64_t head = group_at(job, first), tail = group_at(job, last - 1);
    if (head >= 0) {
        int64_t begin = start_of(job, head), end = start_of(job, head + 1);
        if (end - begin > LONG && end > first)
            fold_part(job, head, first, min(end, last), c,
                      job.parts + 2 * chunk * cols);
    }
    if (tail != head && tail >= 0) {
        int64_t begin = start_of(job, tail), end = start_of(job, tail + 1);
        if (end - begin > LONG && end > begin)
            fold_part(job, tail, begin, min(end, last), c,
                      job.parts + (2 * chunk + 1) * cols);
    }
}

/* A warp for each column of a long group. */
__global__ void __launch_bounds__(THREADS)
    fold_join_kernel(const __grid_constant__ fold_job job)
{
    int64_t cols = job.from.cols, warps = THREADS / 32;
    int64_t w = blockIdx.x * warps + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    for (; w < job.groups; w += gridDim.x * warps) {
        int64_t begin = start_of(job, w), end = start_of(job, w + 1);
        if (end - begin <= LONG)
            continue;
        int64_t chunk = begin / CHUNK, behind = (end - 1) / CHUNK + 1;
        int64_t from = 2 * chunk + (begin > chunk * CHUNK), count;
        count = behind - chunk;
        for (int64_t c = 0; c < cols; c++) {
            double own = neutral(job.kind);
#pragma unroll 4
            for (int64_t k = lane; k < count; k += 32) {
                int64_t part = k == 0 ? from : 2 * (chunk + k);
                own = joined(own, job.parts[part * cols + c], job.kind);
            }
            for (int apart = 16; apart > 0; apart /= 2)
                own = joined(own, __shfl_xor_sync(~0u, own, apart), job.kind);
            if (lane == 0)
                put(job, w, c, own);
        }
    }
}

/* Lanes side by side read neighbours, and are no more than groups are worth. */
static void share_out(fold_job *job)
{
    const gpu_view *from = &job->from;
    int64_t average = job->rows / job->groups + 1;
    bool is_down = from->cols > 1 && stride_size(from->row_stride) <
                                         stride_size(from->col_stride);
    job->width = job->lanes = 1;
    while (!is_down && job->width < 32 && job->width < from->cols)
        job->width *= 2;
    while (job->lanes * job->width < 32 && job->lanes * 4 < average)
        job->lanes *= 2;
    job->strips = ceil_div(from->cols, job->width);
}

gpu_status gpu_cuda_fold(void *device, const gpu_folding *f)
{
    ENTER(d, device);
    fold_job job = {f->from, f->starts, f->places, f->about, f->to};
    enum { MOST_STRIPS = 65535 };
    if (f->codes.data || f->kind == GPU_FOLD_MEDIAN)
        return GPU_UNSUPPORTED;
    job.kind = f->kind;
    job.skips_nan = f->skips_nan;
    job.has_places = f->places.data != NULL;
    job.groups = f->groups;
    job.rows = job.has_places ? f->places.rows : f->from.rows;
    if (job.groups == 0 || f->from.cols == 0)
        return GPU_OK;
    share_out(&job);
    int64_t units = THREADS / (job.width * job.lanes);
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    int64_t blocks = ceil_div(job.groups * job.strips, units);
    fold_short_kernel<<<(unsigned)smaller(blocks, most), THREADS, 0,
                        d->stream>>>(job);
    LAUNCHED(d);
    if (job.rows <= LONG)
        return GPU_OK;
    if (job.strips > MOST_STRIPS)
        return FAIL(GPU_UNSUPPORTED, "fold: %lld columns are too many",
                    (long long)f->from.cols);
    int64_t chunks = ceil_div(job.rows, CHUNK);
    TRY(gpu_cuda_scratch(
        d, (size_t)(2 * chunks * f->from.cols) * sizeof *job.parts,
        (void **)&job.parts));
    fold_chunk_kernel<<<dim3((unsigned)chunks, (unsigned)job.strips), THREADS,
                        0, d->stream>>>(job);
    LAUNCHED(d);
    blocks = ceil_div(job.groups, THREADS / 32);
    fold_join_kernel<<<(unsigned)smaller(blocks, most), THREADS, 0,
                       d->stream>>>(job);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- windows ----------------------------------------------------------------
 * A thread a result, which goes over its window: neighbours read the same
 * elements, from the cache. */

enum { MOST_RANKED = 1024 }; /* elements of a median's window */

typedef struct window_job {
    gpu_view from, to;
    int kind;
    int64_t length, first;
    int64_t begin, end; /* rows of to */
} window_job;

/* One column's window. */
typedef struct window {
    const gpu_view *v;
    int64_t low, high, column;
} window;

__device__ __forceinline__ double at(const window &w, int64_t i)
{
    return load<double>(*w.v, place(*w.v, i, w.column));
}

__device__ double mean_of(const window &w)
{
    double sum = 0;
    for (int64_t i = w.low; i < w.high; i++)
        sum += at(w, i);
    return sum / (double)(w.high - w.low);
}

__device__ double variance_of(const window &w)
{
    double mean = mean_of(w), spread = 0;
    for (int64_t i = w.low; i < w.high; i++) {
        double apart = at(w, i) - mean;
        spread += apart * apart;
    }
    return spread / (double)(w.high - w.low - 1);
}

__device__ double extreme_of(const window &w, bool is_max)
{
    double best = at(w, w.low);
    for (int64_t i = w.low + 1; i < w.high; i++) {
        double x = at(w, i);
        best = x != x || (is_max ? x > best : x < best) ? x : best;
    }
    return best;
}

/* The elements that would stand in the middle: each one's rank is how many are
 * below it. */
__device__ double median_of(const window &w)
{
    int64_t n = w.high - w.low, lower = (n - 1) / 2, upper = n / 2;
    double a = 0, b = 0;
    for (int64_t i = w.low; i < w.high; i++) {
        double x = at(w, i);
        int64_t below = 0, equal = 0;
        if (x != x)
            return x;
        for (int64_t j = w.low; j < w.high; j++) {
            double y = at(w, j);
            below += y < x;
            equal += y == x;
        }
        if (below <= lower && lower < below + equal)
            a = x;
        if (below <= upper && upper < below + equal)
            b = x;
    }
    return a == b ? a : a / 2 + b / 2;
}

__global__ void __launch_bounds__(THREADS)
    window_kernel(const __grid_constant__ window_job job)
{
    int64_t cols = job.to.cols, count = (job.end - job.begin) * cols;
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; e < count; e += gridDim.x * (int64_t)THREADS) {
        int64_t row = divide(e, cols), c = e - row * cols;
        row += job.begin;
        int64_t low = row + job.first;
        window w = {&job.from, max(low, (int64_t)0),
                    min(low + job.length, job.from.rows), c};
        double x = job.kind == GPU_WINDOW_MEAN  ? mean_of(w)
                   : job.kind == GPU_WINDOW_VAR ? variance_of(w)
                   : job.kind == GPU_WINDOW_MEDIAN
                       ? median_of(w)
                       : extreme_of(w, job.kind == GPU_WINDOW_MAX);
        store<double>(job.to, place(job.to, row, c), x);
    }
}

/* What is issued cannot be stopped, so it is issued in parts of about so many
 * elements that are read. */
gpu_status gpu_cuda_windows(void *device, const gpu_windows *w)
{
    ENTER(d, device);
    const double most = 4e9;
    if (w->kind == GPU_WINDOW_MEDIAN && w->length > MOST_RANKED)
        return GPU_UNSUPPORTED;
    double reads = (double)w->length * (double)w->to.cols;
    if (w->kind == GPU_WINDOW_MEDIAN)
        reads *= (double)w->length;
    int64_t rows = larger(1, (int64_t)(most / larger(1, (int64_t)reads)));
    window_job job = {w->from, w->to, w->kind, w->length, w->first, 0, 0};
    for (; job.begin < w->to.rows; job.begin = job.end) {
        job.end = smaller(job.begin + rows, w->to.rows);
        if (job.begin > 0) {
            gpu_cuda_pace(d, NULL, NULL, 1e11); /* as long as moving these */
            if (*gpu_cuda_host->interrupted)
                return FAIL(GPU_INTERRUPTED, "interrupted");
        }
        int64_t n = (job.end - job.begin) * w->to.cols;
        window_kernel<<<blocks_for(d, n), THREADS, 0, d->stream>>>(job);
        LAUNCHED(d);
    }
    return GPU_OK;
}
