/* What both merge kernels need before and after: where their pieces begin, and
 * the sums of rows that several pieces share. */
#include "scratch_parts.h"
#include "sparse_rows.h"

enum { THREADS = 256, LANES = 32, FEW = 4, MANY = 64 };

double gpu_cuda_sparse_bound(gpu_dtype dtype, int64_t k)
{
    return gpu_cuda_gamma(GPU_F64, k + 2) + gpu_cuda_gamma(dtype, 1);
}

/* --- where pieces begin --------------------------------------------------- */

/* How many rows have ended before item `at`: a row ends behind its entries. */
__device__ __forceinline__ int32_t row_of_item(const int32_t *starts,
                                               int64_t rows, int64_t count,
                                               int64_t at)
{
    int64_t low = max(at - count, (int64_t)0), high = min(at, rows);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (starts[middle + 1] < at - middle)
            low = middle + 1;
        else
            high = middle;
    }
    return (int32_t)low;
}

__global__ void __launch_bounds__(THREADS)
    plan_kernel(const int32_t *starts, int64_t rows, int64_t count,
                int64_t spans, int32_t *plan)
{
    int64_t t = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (t <= spans)
        plan[t] = row_of_item(starts, rows, count, min(t * SPAN, rows + count));
}

gpu_status gpu_cuda_plan_rows(cuda_device *d, const gpu_sparse_call *p,
                              size_t bytes, row_plan *plan)
{
    const gpu_csr *s = &p->s;
    int64_t spans = ceil_div(s->rows + s->count, SPAN);
    size_t size = (size_t)(spans + 1) * sizeof *plan->rows;
    gpu_keep_key key = {KEPT_ROWS,
                        {(void *)s->starts, GPU_F32, s->rows + 1, 1, 1, 1}};
    int32_t *rows = (int32_t *)gpu_cuda_host->recall(p->storage, &key);
    bool is_new = rows == NULL;
    if (is_new)
        rows = (int32_t *)gpu_cuda_host->keep(p->storage, &key, size);
    size_t extra = rows == NULL ? rounded_room(size) : 0;
    char *room = NULL;
    if (bytes + extra > 0)
        TRY(gpu_cuda_scratch(d, bytes + extra, (void **)&room));
    if (rows == NULL)
        rows = (int32_t *)room;
    *plan = {rows, spans, room + extra};
    if (!is_new)
        return GPU_OK;
    plan_kernel<<<grid_for(ceil_div(spans + 1, THREADS)), THREADS, 0,
                  d->stream>>>(s->starts, s->rows, s->count, spans, rows);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- rows of several pieces -------------------------------------------------
 * A row that ends in a piece and began before it: the tails from the piece in
 * which it began on, then the head. `width` columns at a time. A few tails a
 * thread adds, more of them a warp, and the most a block. */

/* The tiles in which a row began and ends, when that is tile `to` and not where
 * it began; otherwise there is none, and from is `to`. */
struct shared_row {
    int64_t row, from, to;
};

template <class V>
__device__ __forceinline__ shared_row find_shared(const sparse_product<V> &p,
                                                  const row_plan &plan,
                                                  const open_rows<V> &o,
                                                  int64_t t)
{
    shared_row none = {0, t, t};
    if (t >= o.tiles)
        return none;
    int64_t tile = o.spans_each * SPAN;
    int64_t row = plan.rows[t * o.spans_each];
    int64_t next = plan.rows[min((t + 1) * o.spans_each, plan.spans)];
    int64_t start = p.starts[row];
    if (next == row || start + row >= t * tile)
        return none;
    return {row, (row + start) / tile, t};
}

/* Every step-th tail from `first` on. */
template <class V>
__device__ __forceinline__ sum_of<V> add_tails(const open_rows<V> &o,
                                               const shared_row &r, int first,
                                               int step, int64_t j)
{
    sum_of<V> sum = {};
#pragma unroll 8
    for (int64_t t = r.from + first; t < r.to; t += step)
        add(&sum, o.tails[t * o.columns + j]);
    return sum;
}

template <class V>
__device__ __forceinline__ void
put_shared(const sparse_product<V> &p, const open_rows<V> &o,
           const shared_row &r, int64_t j, sum_of<V> sum)
{
    add(&sum, o.heads[r.to * o.columns + j]);
    write_sum(p, r.row, o.first + j, sum);
}

/* Rows that whole warps share, one after the other. */
template <class V>
__device__ __forceinline__ void
join_by_warp(const sparse_product<V> &p, const open_rows<V> &o,
             const shared_row &mine, bool is_meant, int width, int64_t j,
             bool inside)
{
    int lane = threadIdx.x % LANES;
    unsigned meant = __ballot_sync(~0u, is_meant && lane % width == 0);
    for (; meant != 0; meant &= meant - 1) {
        int turn = __ffs((int)meant) - 1;
        shared_row r = {__shfl_sync(~0u, mine.row, turn),
                        __shfl_sync(~0u, mine.from, turn),
                        __shfl_sync(~0u, mine.to, turn)};
        sum_of<V> sum = {};
        if (inside)
            sum = add_tails(o, r, lane / width, LANES / width, j);
        for (int step = LANES / 2; step >= width; step /= 2) {
            sum_of<V> other = shuffled(~0u, sum, lane + step, LANES);
            add(&sum, other);
        }
        if (lane < width && inside)
            put_shared(p, o, r, j, sum);
    }
}

template <class V>
__device__ __forceinline__ void
join_by_block(const sparse_product<V> &p, const open_rows<V> &o,
              const shared_row &mine, bool is_meant, int width, int64_t j,
              bool inside)
{
    __shared__ shared_row found[THREADS];
    __shared__ sum_of<V> partial[THREADS];
    __shared__ int count;
    int groups = THREADS / width, group = threadIdx.x / width;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads(); /* count is there */
    if (is_meant && threadIdx.x % width == 0)
        found[atomicAdd(&count, 1)] = mine; /* in any order */
    __syncthreads();                        /* found is there */
    for (int k = 0; k < count; k++) {
        shared_row r = found[k];
        partial[threadIdx.x] = {};
        if (inside)
            partial[threadIdx.x] = add_tails(o, r, group, groups, j);
        for (int step = groups / 2; step > 0; step /= 2) {
            __syncthreads(); /* partial is there */
            if (group < step)
                add(&partial[threadIdx.x], partial[threadIdx.x + step * width]);
        }
        if (group == 0 && inside)
            put_shared(p, o, r, j, partial[threadIdx.x]);
        __syncthreads(); /* partial may be written again */
    }
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    join_kernel(const __grid_constant__ sparse_product<V> p,
                const __grid_constant__ row_plan plan,
                const __grid_constant__ open_rows<V> o, int width)
{
    int groups = THREADS / width, group = threadIdx.x / width;
    int64_t j = blockIdx.y * (int64_t)width + threadIdx.x % width;
    bool inside = j < o.columns;
    shared_row mine =
        find_shared(p, plan, o, blockIdx.x * (int64_t)groups + group);
    int64_t tails = mine.to - mine.from;
    bool is_few = tails <= FEW, is_many = tails > MANY * (LANES / width);
    if (tails > 0 && is_few && inside)
        put_shared(p, o, mine, j, add_tails(o, mine, 0, 1, j));
    join_by_warp(p, o, mine, !is_few && !is_many, width, j, inside);
    if (__syncthreads_or(is_many))
        join_by_block(p, o, mine, is_many, width, j, inside);
}

template <class V>
gpu_status gpu_cuda_join_rows(cuda_device *d, const sparse_product<V> *p,
                              const row_plan *plan, const open_rows<V> *o)
{
    int width = 1;
    while (width < 32 && width < o->columns)
        width *= 2;
    dim3 grid(grid_for(ceil_div(o->tiles, THREADS / width)),
              (unsigned)ceil_div(o->columns, width));
    join_kernel<V><<<grid, THREADS, 0, d->stream>>>(*p, *plan, *o, width);
    LAUNCHED(d);
    return GPU_OK;
}

template gpu_status gpu_cuda_join_rows(cuda_device *,
                                       const sparse_product<float> *,
                                       const row_plan *,
                                       const open_rows<float> *);
template gpu_status gpu_cuda_join_rows(cuda_device *,
                                       const sparse_product<double> *,
                                       const row_plan *,
                                       const open_rows<double> *);
template gpu_status gpu_cuda_join_rows(cuda_device *,
                                       const sparse_product<float2> *,
                                       const row_plan *,
                                       const open_rows<float2> *);
template gpu_status gpu_cuda_join_rows(cuda_device *,
                                       const sparse_product<double2> *,
                                       const row_plan *,
                                       const open_rows<double2> *);
