/* What both merge kernels need before and after: where their pieces begin, and
 * the sums of rows that several pieces share. */
#include "sparse_rows.h"

enum { THREADS = 256, FEW = 16 };

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

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
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
    size_t extra = rows == NULL ? rounded(size) : 0;
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
 * which it began, then the head. So many columns at a time as `width` says; of
 * a long row all threads add tails. */

/* The tiles in which a row that began before tile t, and ends there, began and
 * ends; otherwise row is -1. */
struct shared_row {
    int64_t row, from, to;
};

template <class V>
__device__ __forceinline__ shared_row find_shared(const sparse_product<V> &p,
                                                  const row_plan &plan,
                                                  const open_rows<V> &o,
                                                  int64_t t)
{
    if (t >= o.tiles)
        return {-1, 0, 0};
    int64_t tile = o.spans_each * SPAN;
    int64_t row = plan.rows[t * o.spans_each];
    int64_t next = plan.rows[min((t + 1) * o.spans_each, plan.spans)];
    int64_t start = p.starts[row];
    if (next == row || start + row >= t * tile)
        return {-1, 0, 0};
    return {row, (row + start) / tile, t};
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    join_kernel(const __grid_constant__ sparse_product<V> p,
                const __grid_constant__ row_plan plan,
                const __grid_constant__ open_rows<V> o, int width)
{
    __shared__ shared_row found[THREADS];
    __shared__ sum_of<V> partial[THREADS];
    int groups = THREADS / width, group = threadIdx.x / width;
    int64_t j = blockIdx.y * (int64_t)width + threadIdx.x % width;
    bool inside = j < o.columns;
    shared_row mine =
        find_shared(p, plan, o, blockIdx.x * (int64_t)groups + group);
    bool is_long = mine.row >= 0 && mine.to - mine.from > FEW;
    if (mine.row >= 0 && !is_long && inside) {
        sum_of<V> sum = o.tails[mine.from * o.columns + j];
        for (int64_t t = mine.from + 1; t < mine.to; t++)
            add(&sum, o.tails[t * o.columns + j]);
        add(&sum, o.heads[mine.to * o.columns + j]);
        write_sum(p, mine.row, o.first + j, sum);
    }
    if (!is_long)
        mine.row = -1;
    if (threadIdx.x % width == 0)
        found[group] = mine;
    if (!__syncthreads_or(is_long))
        return;
    for (int g = 0; g < groups; g++) {
        shared_row r = found[g];
        if (r.row < 0)
            continue;
        sum_of<V> sum = {};
#pragma unroll 4
        for (int64_t t = r.from + group; t < r.to; t += groups)
            if (inside)
                add(&sum, o.tails[t * o.columns + j]);
        partial[threadIdx.x] = sum;
        for (int step = groups / 2; step > 0; step /= 2) {
            __syncthreads(); /* partial is there */
            if (group < step)
                add(&partial[threadIdx.x], partial[threadIdx.x + step * width]);
        }
        if (group == 0 && inside) {
            sum = partial[threadIdx.x];
            add(&sum, o.heads[r.to * o.columns + j]);
            write_sum(p, r.row, o.first + j, sum);
        }
        __syncthreads(); /* partial may be written again */
    }
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
