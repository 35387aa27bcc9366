/* spmv merge: a block takes a piece of the list of rows' ends and entries (see
 * sparse_rows.h), whatever rows it touches.
 *
 * Its entries are read side by side, multiplied, and laid into shared memory;
 * each thread then walks over its own few items, and what threads have of rows
 * that they share is put together by a scan. Limited by the bytes of the matrix
 * where columns are near each other, else by reads of x, a sector of the L2
 * cache each, of which seven a thread are under way. Any GPU, any strides. */
#include <climits>
#include "sparse_rows.h"

/* An odd number of items: threads then read different banks. */
enum {
    THREADS = 128,
    LANES = 32,
    ITEMS = 7,
    TILE = THREADS * ITEMS,
    WARPS = THREADS / LANES
};
constexpr int SPANS = (int)TILE / (int)SPAN;
static_assert(SPANS * SPAN == (int)TILE, "tiles begin at places of the plan");

/* Sums of a row's last entries, from thread to thread; ended: a row ended
 * there, so that nothing from before counts. */
template <class S> struct carry {
    S sum;
    int ended;
};

template <class S>
__device__ __forceinline__ carry<S> joined(carry<S> before, carry<S> then)
{
    if (!then.ended)
        add(&then.sum, before.sum);
    return {then.sum, before.ended | then.ended};
}

/* What comes before each thread of the block, and in *all what all have. */
template <class S>
__device__ __forceinline__ carry<S> scan(carry<S> mine, carry<S> *warps,
                                         carry<S> *all)
{
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    carry<S> sum = mine, before = {};
    for (int step = 1; step < LANES; step *= 2) {
        carry<S> other = {shuffled(~0u, sum.sum, lane - step, LANES),
                          __shfl_up_sync(~0u, sum.ended, step)};
        if (lane >= step)
            sum = joined(other, sum);
    }
    if (lane == LANES - 1)
        warps[warp] = sum;
    before = {shuffled(~0u, sum.sum, lane - 1, LANES),
              __shfl_up_sync(~0u, sum.ended, 1)};
    if (lane == 0)
        before = {};
    __syncthreads(); /* warps is there */
    carry<S> front = {};
    *all = {};
    for (int w = 0; w < WARPS; w++) {
        if (w == warp)
            front = *all;
        *all = joined(*all, warps[w]);
    }
    return joined(front, before);
}

/* The piece of a block: its rows, and its first entry. */
struct piece {
    int64_t row, first;
    int rows, entries;
};

template <class V>
__device__ __forceinline__ void multiply_entries(const sparse_product<V> &p,
                                                 const piece &t,
                                                 sum_of<V> *products)
{
    int32_t column[ITEMS];
    V value[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int e = k * THREADS + threadIdx.x;
        column[k] = e < t.entries ? __ldcs(p.columns + t.first + e) : -1;
        value[k] = e < t.entries ? __ldcs(p.values + t.first + e) : V();
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (column[k] >= 0)
            products[k * THREADS + threadIdx.x] =
                times(value[k], __ldg(p.d + column[k] * p.d_row));
}

/* How many of the piece's rows end before its item `at`. */
__device__ __forceinline__ int ended_before(const int *ends, const piece &t,
                                            int at)
{
    int low = max(at - t.entries, 0), high = min(at, t.rows);
    while (low < high) {
        int middle = (low + high) / 2;
        if (ends[middle] < at - middle)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    spmv_merge_kernel(const __grid_constant__ sparse_product<V> p,
                      const __grid_constant__ row_plan plan,
                      const __grid_constant__ open_rows<V> o)
{
    typedef sum_of<V> S;
    __shared__ S products[TILE];
    __shared__ int ends[TILE + 1]; /* of rows, counted from the first entry */
    __shared__ carry<S> warps[WARPS];
    int64_t first = blockIdx.x * (int64_t)TILE;
    int items = (int)min((int64_t)TILE, p.rows + p.count - first);
    int64_t row = plan.rows[blockIdx.x * (int64_t)SPANS];
    int64_t next =
        plan.rows[min((blockIdx.x + (int64_t)1) * SPANS, plan.spans)];
    piece t = {row, first - row, (int)(next - row), items - (int)(next - row)};

    multiply_entries(p, t, products);
    for (int r = threadIdx.x; r < t.rows; r += THREADS)
        ends[r] = (int)(p.starts[row + r + 1] - t.first);
    if (threadIdx.x == 0)
        ends[t.rows] = INT_MAX; /* the row that stays open */
    __syncthreads();            /* products and ends are there */

    int at = min((int)threadIdx.x * ITEMS, items);
    int r = ended_before(ends, t, at), e = at - r, end = ends[r], own = -1;
    S sum = {}, own_sum = {};
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (at + k >= items)
            break;
        if (e < end) {
            add(&sum, products[e++]);
            continue;
        }
        if (own < 0) {
            own = r; /* may have begun before this thread */
            own_sum = sum;
        } else {
            write_sum(p, row + r, 0, sum);
        }
        sum = {};
        end = ends[++r];
    }

    carry<S> all, before = scan(carry<S>{sum, own >= 0}, warps, &all);
    bool is_shared = t.rows > 0 && p.starts[row] < t.first;
    if (own >= 0) {
        add(&before.sum, own_sum);
        if (own == 0 && is_shared)
            o.heads[blockIdx.x] = before.sum;
        else
            write_sum(p, row + own, 0, before.sum);
    }
    if (threadIdx.x == 0)
        o.tails[blockIdx.x] = all.sum;
}

template <class V>
static gpu_status launch(cuda_device *d, const gpu_sparse_call *call)
{
    sparse_product<V> p = typed_sparse<V>(call);
    row_plan plan;
    int64_t tiles = ceil_div(p.rows + p.count, TILE);
    TRY(gpu_cuda_plan_rows(d, call, 2 * (size_t)tiles * sizeof(sum_of<V>),
                           &plan));
    sum_of<V> *heads = (sum_of<V> *)plan.room;
    open_rows<V> o = {tiles, SPANS, heads, heads + tiles, 0, 1};
    spmv_merge_kernel<V>
        <<<(unsigned)tiles, THREADS, 0, d->stream>>>(p, plan, o);
    LAUNCHED(d);
    return tiles > 1 ? gpu_cuda_join_rows(d, &p, &plan, &o) : GPU_OK;
}

static gpu_status merge(void *device, const gpu_sparse_call *p)
{
    ENTER(d, device);
    return with_type(p->s.dtype,
                     [=](auto x) { return launch<decltype(x)>(d, p); });
}

const gpu_kernel gpu_cuda_spmv_merge = {
    .operation = "spmv",
    .name = "merge",
    .idea = "equal shares of entries and rows' ends, whatever rows they are of",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = ANY_NUMBERS,
    .bound = gpu_cuda_sparse_bound,
    .sparse = merge,
};
